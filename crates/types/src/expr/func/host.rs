//! Functions that wait, and locks by name: what they ask of the session, [`Host`](crate::expr::Host).

use std::time::Duration;

use crate::datum::Datum;
use crate::expr::context::{EvalContext, Host};
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::string;
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// Characters that the name of a lock has at most.
const LONGEST_NAME: usize = 64;

/// 0 after the whole time, 1 if interrupted.
pub(crate) fn sleep<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let seconds = match args[0] {
        Datum::Double(seconds) if seconds >= 0.0 => seconds,
        _ => {
            let wrong = EvalError::WrongArguments("sleep.");
            if ctx.sql_mode.is_strict() && !ctx.ignoring {
                return Err(wrong);
            }
            ctx.note(&wrong);
            return Ok(Datum::Int(0));
        }
    };
    // Longer than anybody waits, and short enough for every clock.
    let longest = Duration::from_secs(u32::MAX.into());
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(longest).min(longest);
    let whole = match &ctx.host {
        Some(host) if !time.is_zero() => host.sleep(time)?,
        _ => true,
    };
    Ok(Datum::Int(i64::from(!whole)))
}

/// 1 with the lock, 0 after the time, NULL if interrupted. A negative time has no end.
pub(crate) fn get_lock<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let timeout = match args[1] {
        Datum::Int(seconds) => u64::try_from(seconds).ok().map(Duration::from_secs),
        Datum::UInt(seconds) => Some(Duration::from_secs(seconds)),
        _ => Some(Duration::ZERO),
    };
    with_lock(args, ctx, |host, name| Ok(Some(host.get_lock(name, timeout)?.into())))
}

/// 0 when all of the transactions are in force here, 1 after the time. A time of 0 has no end.
pub(crate) fn wait_for_executed_gtid_set<'a>(
    args: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let wrong = EvalError::WrongArguments("WAIT_FOR_EXECUTED_GTID_SET.");
    let timeout = match args.get(1) {
        None => None,
        Some(Datum::Double(seconds)) if *seconds >= 0.0 => {
            Duration::try_from_secs_f64(*seconds).ok().filter(|timeout| !timeout.is_zero())
        }
        Some(_) => return Err(wrong),
    };
    // As many bytes of the text MySQL's message has.
    const SHOWN: usize = 200;
    let malformed = |set: &str| EvalError::MalformedGtidSet(set[..set.floor_char_boundary(SHOWN)].to_owned());
    let Datum::Str(set) = &args[0] else { return Err(malformed("NULL")) };
    let Some(host) = &ctx.host else { return Ok(Datum::Null) };
    let arrived = host.wait_for_transactions(set, timeout)?.ok_or_else(|| malformed(set))?;
    Ok(Datum::Int(i64::from(!arrived)))
}

/// How often what is visible here of a source's log moved until it was at a place; -1 after the time, NULL if nothing moves there. A time
/// of 0 has no end.
pub(crate) fn source_pos_wait<'a>(
    args: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let timeout = match args.get(2) {
        Some(Datum::Double(seconds)) if *seconds < 0.0 => {
            let wrong = EvalError::WrongArguments("SOURCE_POS_WAIT.");
            if ctx.sql_mode.is_strict() {
                return Err(wrong);
            }
            ctx.note(&wrong);
            return Ok(Datum::Null);
        }
        Some(Datum::Double(seconds)) => {
            Duration::try_from_secs_f64(*seconds).ok().filter(|timeout| !timeout.is_zero())
        }
        _ => None,
    };
    let channel = match args.get(3) {
        None => None,
        Some(Datum::Str(name)) => Some(name.to_lowercase()),
        Some(_) => return Ok(Datum::Null),
    };
    let position = match args[1] {
        Datum::Int(position) => u64::try_from(position).ok(),
        Datum::UInt(position) => Some(position),
        _ => None,
    };
    match (&args[0], position, &ctx.host) {
        (Datum::Str(file), Some(position), Some(host)) if !file.is_empty() => {
            let moved = host.wait_for_place(file, position, channel.as_deref(), timeout)?;
            Ok(moved.map_or(Datum::Null, Datum::Int))
        }
        _ => Ok(Datum::Null),
    }
}

/// 1 if it was the session's, 0 if it is another's, NULL if nobody has it.
pub(crate) fn release_lock<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    with_lock(args, ctx, |host, name| Ok(host.release_lock(name).map(i64::from)))
}

pub(crate) fn release_all_locks<'a>(
    _: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    Ok(Datum::UInt(ctx.host.as_ref().map_or(0, |host| host.release_all_locks())))
}

pub(crate) fn is_free_lock<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    with_lock(args, ctx, |host, name| Ok(Some(i64::from(host.lock_owner(name).is_none()))))
}

/// The connection that has the lock.
pub(crate) fn is_used_lock<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let mut owner = None;
    with_lock(args, ctx, |host, name| {
        owner = host.lock_owner(name);
        Ok(None)
    })?;
    Ok(owner.map_or(Datum::Null, Datum::UInt))
}

/// A statement's text without its values.
pub(crate) fn statement_digest_text<'a>(
    args: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let (Datum::Str(statement), Some(host)) = (&args[0], &ctx.host) else { return Ok(Datum::Null) };
    Ok(string(host.statement_digest(statement, ctx.sql_mode)?.text))
}

/// The hash of this text.
pub(crate) fn statement_digest<'a>(
    args: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let (Datum::Str(statement), Some(host)) = (&args[0], &ctx.host) else { return Ok(Datum::Null) };
    Ok(string(host.statement_digest(statement, ctx.sql_mode)?.digest))
}

/// Does something with the lock that the first argument names; `None` is NULL.
fn with_lock<'a>(
    args: &[Datum<'a>],
    ctx: &EvalContext,
    act: impl FnOnce(&dyn Host, &str) -> EvalResult<Option<i64>>,
) -> EvalResult<Datum<'a>> {
    let name = match &args[0] {
        Datum::Str(name) if name.chars().count() > LONGEST_NAME => {
            return Err(EvalError::UserLockLongName(name.to_string(), LONGEST_NAME));
        }
        Datum::Str(name) if !name.is_empty() => name,
        Datum::Str(name) => return Err(EvalError::UserLockName(name.to_string())),
        _ => return Err(EvalError::UserLockName("NULL".into())),
    };
    let Some(host) = &ctx.host else { return Ok(Datum::Null) };
    Ok(act(&**host, name)?.map_or(Datum::Null, Datum::Int))
}
