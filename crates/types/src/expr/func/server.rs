//! Functions that ask about the server: its files, threads and accounts.

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::int;
use crate::expr::func::text::{chars, string};
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// NULL for what may not be read, or is not there.
pub(crate) fn load_file<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let limit = ctx.max_allowed_packet;
    let loaded = ctx.host.as_ref().and_then(|host| host.load_file(chars(&args[0]), limit + 1));
    Ok(match loaded {
        Some(bytes) if bytes.len() as u64 > limit => {
            ctx.note(&EvalError::ResultTooLarge { function: "load_file", limit });
            Datum::Null
        }
        Some(bytes) => Datum::Bytes(bytes.into()),
        None => Datum::Null,
    })
}

fn thread(connection: Option<u64>, ctx: &EvalContext) -> Datum<'static> {
    let thread = ctx.host.as_ref().and_then(|host| host.thread_id(connection));
    thread.map_or(Datum::Null, Datum::UInt)
}

pub(crate) fn current_thread_id<'a>(
    _: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    Ok(thread(None, ctx))
}

pub(crate) fn thread_id<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(match u64::try_from(int(&args[0])) {
        Ok(connection) => thread(Some(connection), ctx),
        Err(_) => Datum::Null,
    })
}

pub(crate) fn roles_graphml<'a>(_: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(ctx.host.as_ref().map_or(Datum::Null, |host| string(host.roles_graph())))
}

/// There is no ICU here: regular expressions are those of the `regex` crate.
pub(crate) fn icu_version<'a>(_: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Null)
}

/// 0 for every password, as without a component that validates them.
pub(crate) fn password_strength<'a>(_: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(0))
}
