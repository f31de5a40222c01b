//! GTID_SUBSET and GTID_SUBTRACT.

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::program::CallInfo;
use crate::gtid::GtidSet;

type Args<'x, 'a> = &'x mut [Datum<'a>];

fn set(text: &Datum<'_>) -> EvalResult<Option<GtidSet>> {
    let Datum::Str(text) = text else { return Ok(None) };
    let set = GtidSet::of_mysql_text(text);
    set.map(Some).map_err(|malformed| EvalError::MalformedGtidSet(malformed.to_string()))
}

pub(crate) fn subset<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let (Some(part), Some(whole)) = (set(&args[0])?, set(&args[1])?) else { return Ok(Datum::Null) };
    Ok(Datum::Int(whole.contains_all(&part).into()))
}

pub(crate) fn subtract<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    // A set that is none is not looked at beside NULL.
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let (Some(from), Some(what)) = (set(&args[0])?, set(&args[1])?) else { return Ok(Datum::Null) };
    Ok(Datum::Str(from.minus(&what).mysql_text().into()))
}
