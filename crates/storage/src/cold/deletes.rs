//! Delete vectors in persisted form: the ordinals of a segment whose rows are deleted, as of some snapshot.
//!
//! ```text
//!  ┌────────────┬─────────┬───────────────────┬────────────┐
//!  │ magic u32  │ len u32 │ roaring bitmap    │ CRC-32C    │  CRC over all before it
//!  └────────────┴─────────┴───────────────────┴────────────┘
//! ```

use avocet_base::checksum::crc32c;
use avocet_base::codec::{Put, Reader};
use roaring::RoaringBitmap;

use super::ordinals::MAX_ROWS;
use crate::error::{Result, StorageError};

const MAGIC: u32 = u32::from_le_bytes(*b"AVDL");

/// The bytes of a set of deleted ordinals.
pub fn encode_deletes(deleted: &RoaringBitmap) -> Vec<u8> {
    assert!(deleted.max().is_none_or(|max| (max as usize) < MAX_ROWS), "ordinals have 16 bits");
    let mut buf = Vec::with_capacity(deleted.serialized_size() + 12);
    buf.put_u32(MAGIC);
    buf.put_u32(deleted.serialized_size() as u32);
    deleted.serialize_into(&mut buf).expect("writing to memory does not fail");
    let crc = crc32c(&buf);
    buf.put_u32(crc);
    buf
}

/// Reads what [`encode_deletes`] wrote.
pub fn decode_deletes(bytes: &[u8]) -> Result<RoaringBitmap> {
    const WHAT: &str = "delete vector";
    let mut r = Reader::new(bytes);
    if r.u32(WHAT)? != MAGIC {
        return Err(r.malformed(WHAT).into());
    }
    let len = r.u32(WHAT)? as usize;
    let raw = r.take(len, WHAT)?;
    let covered = r.position();
    let crc = r.u32(WHAT)?;
    r.finish(WHAT)?;
    if crc32c(&bytes[..covered]) != crc {
        return Err(StorageError::corrupt(WHAT, "checksum mismatch"));
    }
    let deleted = RoaringBitmap::deserialize_from(raw).map_err(|e| StorageError::corrupt(WHAT, e))?;
    match deleted.max() {
        Some(max) if max as usize >= MAX_ROWS => {
            Err(StorageError::corrupt(WHAT, "an ordinal has over 16 bits"))
        }
        _ => Ok(deleted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_of_any_byte_is_found() {
        for set in
            [RoaringBitmap::new(), (0..1000).chain(60_000..65_536).collect(), [7, 9].into_iter().collect()]
        {
            let bytes = encode_deletes(&set);
            assert_eq!(decode_deletes(&bytes).unwrap(), set);
            for at in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[at] ^= 0x10;
                assert!(decode_deletes(&bad).is_err());
                assert!(decode_deletes(&bytes[..at]).is_err());
            }
        }
    }
}
