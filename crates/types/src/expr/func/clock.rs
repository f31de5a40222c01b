//! The statement's time. All calls in a statement see the same; SYSDATE too, as under `--sysdate-is-now`.

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::program::CallInfo;
use crate::sql_type::SqlType;
use crate::temporal::{date_of, time_of, truncate_to_fsp};

type Args<'x, 'a> = &'x mut [Datum<'a>];

fn fsp(info: &CallInfo) -> u8 {
    match info.ty {
        SqlType::DateTime { fsp } | SqlType::Time { fsp } => fsp,
        _ => 0,
    }
}

pub(crate) fn now<'a>(_: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::DateTime(truncate_to_fsp(ctx.local_now_micros(), fsp(info))))
}

pub(crate) fn date<'a>(_: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Date(date_of(ctx.local_now_micros())))
}

pub(crate) fn time<'a>(_: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Time(truncate_to_fsp(time_of(ctx.local_now_micros()), fsp(info))))
}

pub(crate) fn utc_now<'a>(_: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::DateTime(truncate_to_fsp(ctx.statement_time_micros, fsp(info))))
}

pub(crate) fn utc_date<'a>(_: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Date(date_of(ctx.statement_time_micros)))
}

pub(crate) fn utc_time<'a>(_: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Time(truncate_to_fsp(time_of(ctx.statement_time_micros), fsp(info))))
}
