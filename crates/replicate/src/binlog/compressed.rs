//! MariaDB's compressed events (`log_bin_compress`): the statement of a QUERY event, or the rows of a row event. What stands before them
//! is as in the events that they stand for.
//!
//! ```text
//!  0x80 | algorithm << 4 | bytes of the length │ length, highest byte first │ zlib
//! ```

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::ZlibDecoder;

use super::bytes::Bytes;
use super::kind;
use crate::error::{ReplicateError, Result};

const ZLIB: u8 = 0;
/// No statement and no row is longer: `max_allowed_packet` at most.
const MOST_BYTES: u64 = 1 << 30;

fn damaged(why: impl Into<String>) -> ReplicateError {
    ReplicateError::Damaged(format!("a compressed event: {}", why.into()))
}

/// An event's kind and body as they are without compression; the same ones if it has none.
pub fn decompressed(event_kind: u8, body: &[u8]) -> Result<(u8, Cow<'_, [u8]>)> {
    let (plain_kind, ahead) = match event_kind {
        kind::QUERY_COMPRESSED => (kind::QUERY, before_statement(body)?),
        kind::WRITE_ROWS_COMPRESSED_V1 => (kind::WRITE_ROWS_V1, before_rows(body, false, false)?),
        kind::UPDATE_ROWS_COMPRESSED_V1 => (kind::UPDATE_ROWS_V1, before_rows(body, false, true)?),
        kind::DELETE_ROWS_COMPRESSED_V1 => (kind::DELETE_ROWS_V1, before_rows(body, false, false)?),
        kind::WRITE_ROWS_COMPRESSED => (kind::WRITE_ROWS, before_rows(body, true, false)?),
        kind::UPDATE_ROWS_COMPRESSED => (kind::UPDATE_ROWS, before_rows(body, true, true)?),
        kind::DELETE_ROWS_COMPRESSED => (kind::DELETE_ROWS, before_rows(body, true, false)?),
        _ => return Ok((event_kind, Cow::Borrowed(body))),
    };
    let (head, rest) = body.split_at(ahead);
    let mut plain = head.to_vec();
    inflate(rest, &mut plain)?;
    Ok((plain_kind, Cow::Owned(plain)))
}

/// The length of what stands before a statement.
fn before_statement(body: &[u8]) -> Result<usize> {
    let mut bytes = Bytes::new(body, "a compressed QUERY event");
    bytes.take(8)?;
    let database = usize::from(bytes.u8()?);
    bytes.u16()?;
    let variables = usize::from(bytes.u16()?);
    bytes.take(variables + database + 1)?;
    Ok(body.len() - bytes.rest().len())
}

/// The length of what stands before rows.
fn before_rows(body: &[u8], has_extra: bool, is_update: bool) -> Result<usize> {
    let mut bytes = Bytes::new(body, "a compressed row event");
    bytes.take(8)?;
    if has_extra {
        let len = usize::from(bytes.u16()?);
        bytes.take(len.saturating_sub(2))?;
    }
    let columns = usize::try_from(bytes.packed()?).unwrap_or(usize::MAX);
    let images = if is_update { 2 } else { 1 };
    bytes.take(columns.div_ceil(8).saturating_mul(images))?;
    Ok(body.len() - bytes.rest().len())
}

fn inflate(compressed: &[u8], to: &mut Vec<u8>) -> Result<()> {
    let mut bytes = Bytes::new(compressed, "a compressed event");
    let head = bytes.u8()?;
    if head & 0x80 == 0 || (head >> 4) & 7 != ZLIB {
        return Err(damaged(format!("compression {head:#04x} is unknown")));
    }
    let wanted = bytes.take(usize::from(head & 15))?;
    if wanted.is_empty() || wanted.len() > 8 {
        return Err(damaged("its length has no bytes, or too many"));
    }
    let wanted = wanted.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    if wanted > MOST_BYTES {
        return Err(damaged(format!("it says that it has {wanted} bytes")));
    }
    let (begin, mut decoder) = (to.len(), ZlibDecoder::new(bytes.rest()));
    // What it says is not set aside before it is there, and one byte more shows that it was wrong.
    let read = (&mut decoder).take(wanted + 1).read_to_end(to);
    read.map_err(|error| damaged(error.to_string()))?;
    let has = (to.len() - begin) as u64;
    if has != wanted {
        return Err(damaged(format!("it has {has} of {wanted} bytes")));
    }
    match decoder.into_inner().is_empty() {
        true => Ok(()),
        false => Err(damaged("something stands behind its end")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::bytes::from_hex;
    use crate::binlog::{Query, RowsEvent};

    /// Recorded from a MariaDB 10.11: `insert into c values (1, repeat('x',2000), 'hello'), (2, repeat('y',300), null)`.
    const INSERT: &str = "18000000000001000307820911789cfbc1c8c0c07081bd62148c8251300a46c1281805431eb03264a4e6e4e4ff6102d6ee3a8c95\
        a380680000b7f03c9d";
    /// `update c set a = repeat('z',500) where id = 1`
    const UPDATE: &str = "18000000000001000307078209e0789cfbc1c8c0c07081bd62148c8251300a46c1281805431eb03264a4e6e4e4ff00d5ee5f18\
        ab46c18803d0140000f33a9ff5";
    /// `delete from c where id = 2`
    const DELETE: &str = "18000000000001000307820133789cfbc3c4c0c0a0c358390a880600c83a8ef8";
    /// `alter table c add column json json`
    const QUERY: &str = "080000000000000001000023000000000001010000205400000000060373746404210021000800813b0000000000000072008122\
        789c4bcc29492d5228494cca49554856484c495148cecf29cdcd53c82ace871000d7300c6f";

    #[test]
    fn recorded_events_are_what_was_done() {
        for (event_kind, hex, wanted, rows) in [
            (kind::WRITE_ROWS_COMPRESSED_V1, INSERT, kind::WRITE_ROWS_V1, 2321),
            (kind::UPDATE_ROWS_COMPRESSED_V1, UPDATE, kind::UPDATE_ROWS_V1, 2528),
            (kind::DELETE_ROWS_COMPRESSED_V1, DELETE, kind::DELETE_ROWS_V1, 307),
        ] {
            let body = from_hex(hex);
            let (plain_kind, plain) = decompressed(event_kind, &body).expect("an event");
            assert_eq!(plain_kind, wanted);
            let ahead = if wanted == kind::UPDATE_ROWS_V1 { 11 } else { 10 };
            assert_eq!((&plain[..ahead], plain.len()), (&body[..ahead], ahead + rows));
            let event = RowsEvent::read(plain_kind, &plain).expect("rows");
            assert_eq!(event.table_id, 0x18);
        }
        let body = from_hex(QUERY);
        let (plain_kind, plain) = decompressed(kind::QUERY_COMPRESSED, &body).expect("an event");
        assert_eq!(plain_kind, kind::QUERY);
        let query = Query::read(&plain, 7).expect("a statement");
        assert_eq!((&*query.database, &query.text[..]), ("r", &b"alter table c add column json json"[..]));
        assert_eq!(query.session.sql_mode, Some(0x5420_0000));
        assert!(!query.session.has_unknown, "{query:?}");
    }

    #[test]
    fn cut_and_changed_events_are_refused() {
        for (event_kind, hex) in [
            (kind::WRITE_ROWS_COMPRESSED_V1, INSERT),
            (kind::UPDATE_ROWS_COMPRESSED_V1, UPDATE),
            (kind::QUERY_COMPRESSED, QUERY),
        ] {
            let body = from_hex(hex);
            for cut in 0..body.len() {
                assert!(decompressed(event_kind, &body[..cut]).is_err(), "cut at {cut}");
            }
            let mut more = body.clone();
            more.push(0);
            assert!(decompressed(event_kind, &more).is_err(), "a byte more");
        }
        let body = from_hex(DELETE);
        let mut lies = body.clone();
        lies[12] = 0x32;
        assert!(
            decompressed(kind::DELETE_ROWS_COMPRESSED_V1, &lies).is_err(),
            "a length that is not its own"
        );
        lies[10] = 0x92;
        assert!(decompressed(kind::DELETE_ROWS_COMPRESSED_V1, &lies).is_err(), "an unknown algorithm");
        let (same, plain) = decompressed(kind::XID, &body).expect("not compressed");
        assert_eq!((same, &*plain), (kind::XID, &*body));
    }

    proptest::proptest! {
        /// Whatever bytes come, the answer is rows or an error.
        #[test]
        fn no_bytes_bring_it_down(
            event_kind in kind::QUERY_COMPRESSED..=kind::DELETE_ROWS_COMPRESSED,
            at in 0usize..60,
            changed in proptest::prelude::any::<u8>(),
            cut in 0usize..90,
        ) {
            for hex in [INSERT, UPDATE, DELETE, QUERY] {
                let mut body = from_hex(hex);
                let len = body.len();
                body[at % len] = changed;
                body.truncate(cut.max(1));
                if let Ok((plain_kind, plain)) = decompressed(event_kind, &body) {
                    if plain_kind == kind::QUERY {
                        let _ = Query::read(&plain, 0);
                    } else {
                        let _ = RowsEvent::read(plain_kind, &plain);
                    }
                }
            }
        }
    }
}
