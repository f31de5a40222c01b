//! Where a transaction that was applied comes from: the head of its record, before its operations.
//!
//! ```text
//!  version u8 = 1 │ source varint │ wall time u64 (microseconds since 1970, UTC, two's complement) │ position: length varint, bytes
//! ```

use avocet_base::codec::{Malformed, Put, Reader};

const WHAT: &str = "origin";
const VERSION: u8 = 1;

/// Up to where another source's transactions are in force with a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Which source; its numbers are given by whoever applies.
    pub source: u32,
    /// Where in the source, in its own terms.
    pub position: Vec<u8>,
    /// When it was committed there: microseconds since 1970, UTC.
    pub wall_us: i64,
}

impl Origin {
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.put_u8(VERSION);
        to.put_varint(self.source.into());
        to.put_u64(self.wall_us as u64);
        to.put_bytes(&self.position);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.u8(WHAT)? != VERSION {
            return Err(reader.malformed("version of an origin"));
        }
        let source = u32::try_from(reader.varint(WHAT)?).map_err(|_| reader.malformed(WHAT))?;
        let wall_us = reader.u64(WHAT)? as i64;
        Ok(Self { source, wall_us, position: reader.bytes(WHAT)?.to_vec() })
    }

    /// Cuts a record into origin and operations.
    pub(crate) fn split(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new(payload);
        let origin = Self::read(&mut reader)?;
        Ok((origin, &payload[reader.position()..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_round_trip_and_cuts_are_refused() {
        let origin = Origin { source: 70_000, position: b"binlog.000007:4".to_vec(), wall_us: -5 };
        let mut bytes = Vec::new();
        origin.encode(&mut bytes);
        let head = bytes.len();
        bytes.extend_from_slice(b"operations");
        assert_eq!(Origin::split(&bytes), Ok((origin, &b"operations"[..])));
        for cut in 0..head {
            assert!(Origin::split(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        bytes[0] = 2;
        assert!(Origin::split(&bytes).is_err(), "another version");
    }
}
