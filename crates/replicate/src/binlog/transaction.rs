//! GTID events: the identifier that a transaction begins with, and what they say of its form.

use mysql::binlog::events::{AnonymousGtidEvent, Event, GtidEvent};

use super::bytes::Bytes;
use crate::error::{ReplicateError, Result};
use crate::gtid::{DomainGtid, Gtid, Origin};

/// How a transaction goes on after its identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Its statements say it, as in all of MySQL's logs.
    Spoken,
    /// It is one statement (MariaDB).
    Single,
    /// It goes on to its end, and a definition in it is followed by rows (MariaDB).
    Group,
    /// It is one statement that has begun and is not in force, or has been given up (MariaDB, `binlog_alter_two_phase`).
    Undecided,
}

/// What a transaction begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begins {
    /// `None` if the source gives none.
    pub gtid: Option<Gtid>,
    /// When it was committed at its first source: microseconds since 1970, or 0 if nothing says it.
    pub committed_us: i64,
    pub shape: Shape,
}

/// Of a GTID event of MySQL, tagged or not.
pub fn begins(event: &Event) -> Result<Begins> {
    let gtid: GtidEvent = event.read_event().map_err(|error| ReplicateError::damaged(error.to_string()))?;
    let tag = gtid.tag().map(ToString::to_string).unwrap_or_default();
    let origin = Origin { uuid: gtid.sid(), tag };
    let number = gtid.gno();
    Ok(spoken(Some(Gtid::Numbered { origin, number }), &gtid))
}

/// Of the event in its place where MySQL gives no identifiers (`gtid_mode`).
pub fn begins_anonymous(event: &Event) -> Result<Begins> {
    let AnonymousGtidEvent(gtid) =
        event.read_event().map_err(|error| ReplicateError::damaged(error.to_string()))?;
    Ok(spoken(None, &gtid))
}

fn spoken(id: Option<Gtid>, gtid: &GtidEvent) -> Begins {
    let committed = match gtid.original_commit_timestamp() {
        0 => gtid.immediate_commit_timestamp(),
        original => original,
    };
    Begins { gtid: id, committed_us: committed as i64, shape: Shape::Spoken }
}

const STANDALONE: u8 = 1;
const GROUP_COMMIT: u8 = 2;
const PREPARED_XA: u8 = 64;
const COMPLETED_XA: u8 = 128;
const START_ALTER: u8 = 2;
const ROLLBACK_ALTER: u8 = 8;

/// Of a GTID event of MariaDB, without its header, but for the server and the time in that.
///
/// ```text
///  sequence u64 │ domain u32 │ flags u8 │ [id of the group commit u64] │ [XA: format u32, lengths u8 u8, id] │ [more flags u8 │ …]
/// ```
///
/// A short one is filled up with zeros, which say nothing.
pub fn begins_in_domain(body: &[u8], server: u32, seconds: u32) -> Result<Begins> {
    let mut bytes = Bytes::new(body, "a GTID event");
    let (sequence, domain, flags) = (bytes.u64()?, bytes.u32()?, bytes.u8()?);
    if flags & GROUP_COMMIT != 0 {
        bytes.u64()?;
    }
    if flags & (PREPARED_XA | COMPLETED_XA) != 0 {
        bytes.u32()?;
        let lengths = usize::from(bytes.u8()?) + usize::from(bytes.u8()?);
        bytes.take(lengths)?;
    }
    // Before 10.8 there are none.
    let more = if bytes.is_empty() { 0 } else { bytes.u8()? };
    let shape = match flags & STANDALONE != 0 {
        true if more & (START_ALTER | ROLLBACK_ALTER) != 0 => Shape::Undecided,
        true => Shape::Single,
        false => Shape::Group,
    };
    Ok(Begins {
        gtid: Some(Gtid::InDomain(domain, DomainGtid { server, sequence })),
        committed_us: i64::from(seconds) * 1_000_000,
        shape,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::bytes::from_hex;

    /// Recorded from a MariaDB 10.11.
    #[test]
    fn identifiers_of_a_mariadb_say_how_their_transactions_go_on() {
        for (body, number, shape) in [
            ("04000000000000000000000029000000000000", 4, Shape::Single),
            ("0700000000000000000000000c000000000000", 7, Shape::Group),
            ("0e00000000000000000000004c0100000001007101ff", 14, Shape::Group),
            ("0f00000000000000000000008d01000000010071", 15, Shape::Single),
            ("12000000000000000000000029020000000000", 18, Shape::Undecided),
            ("13000000000000000000000029041200000000000000", 19, Shape::Single),
        ] {
            let body = from_hex(body);
            let read = begins_in_domain(&body, 1, 1_700_000_000).expect("an event");
            let gtid = Some(Gtid::InDomain(0, DomainGtid { server: 1, sequence: number }));
            assert_eq!(read, Begins { gtid, committed_us: 1_700_000_000_000_000, shape });
            for cut in 0..13 {
                assert!(begins_in_domain(&body[..cut], 1, 0).is_err(), "cut at {cut}");
            }
        }
    }
}
