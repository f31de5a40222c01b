//! Functions that tell of the session.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::func::int;
use crate::expr::func::text::string;
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

macro_rules! of_session {
    ($($name:ident = $body:expr;)*) => {$(
        pub(crate) fn $name<'a>(_: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
            let function: fn(&EvalContext) -> Datum<'static> = $body;
            Ok(function(ctx))
        }
    )*};
}

of_session! {
    version = |ctx| string(ctx.session.version.clone());
    database = |ctx| ctx.session.database.clone().map_or(Datum::Null, string);
    user = |ctx| string(ctx.session.user.clone());
    current_user = |ctx| string(ctx.session.current_user.clone());
    current_role = |ctx| string(match ctx.session.current_role.as_str() {
        "" => "NONE".to_owned(),
        roles => roles.to_owned(),
    });
    connection_id = |ctx| Datum::UInt(ctx.session.connection_id);
    last_insert_id = |ctx| Datum::UInt(ctx.session.last_insert_id);
    row_count = |ctx| Datum::Int(ctx.session.row_count);
    found_rows = |ctx| Datum::Int(ctx.session.found_rows as i64);
    uuid = new_uuid;
    uuid_short = new_short_uuid;
}

/// LAST_INSERT_ID(value): what LAST_INSERT_ID() gives from the next statement on.
pub(crate) fn set_last_insert_id<'a>(
    args: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let id = match &args[0] {
        Datum::UInt(id) => *id,
        other => int(other) as u64,
    };
    ctx.set_insert_id(id);
    Ok(Datum::UInt(id))
}

/// The last one that was given out by this process; 0 for none.
static SHORT_UUID: AtomicU64 = AtomicU64::new(0);

/// The server's number, the second in which the first one was asked for, and how many there were since: unique as long as
/// there are fewer than 2^24 a second.
fn new_short_uuid(ctx: &EvalContext) -> Datum<'static> {
    const SERVER: u64 = 1 << 56;
    let seconds = (ctx.statement_time_micros.max(0) as u64 / 1_000_000) & 0xFFFF_FFFF;
    let first = SERVER | seconds << 24;
    let next = |last: u64| Some(if last == 0 { first } else { last + 1 });
    let before = SHORT_UUID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
    Datum::UInt(next(before).unwrap_or_default())
}

/// Intervals of 100 ns from 1582-10-15 to 1970-01-01.
const UUID_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// A UUID of version 1, as MySQL makes them: time, then random bits for sequence and node.
fn new_uuid(ctx: &EvalContext) -> Datum<'static> {
    let ticks = (ctx.statement_time_micros.max(0) as u64).wrapping_mul(10).wrapping_add(UUID_EPOCH);
    let (sequence, node) = (ctx.next_random() & 0x3FFF | 0x8000, ctx.next_random() & 0xFFFF_FFFF_FFFF);
    let (low, mid, high) = (ticks as u32, (ticks >> 32) as u16, (ticks >> 48) as u16 & 0xFFF | 0x1000);
    string(format!("{low:08x}-{mid:04x}-{high:04x}-{sequence:04x}-{node:012x}"))
}
