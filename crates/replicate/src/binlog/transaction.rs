//! GTID events: the identifier that a transaction begins with.

use mysql::binlog::events::{Event, GtidEvent};

use crate::error::{ReplicateError, Result};
use crate::gtid::{Gtid, Origin};

/// The identifier of a GTID event, tagged or not, and when the transaction was committed at its first source:
/// microseconds since 1970, or 0 if the event does not say it.
pub fn gtid_of(event: &Event) -> Result<(Gtid, i64)> {
    let gtid: GtidEvent = event.read_event().map_err(|error| ReplicateError::damaged(error.to_string()))?;
    let tag = gtid.tag().map(ToString::to_string).unwrap_or_default();
    let committed = match gtid.original_commit_timestamp() {
        0 => gtid.immediate_commit_timestamp(),
        original => original,
    };
    let origin = Origin { uuid: gtid.sid(), tag };
    Ok((Gtid { origin, number: gtid.gno() }, committed as i64))
}
