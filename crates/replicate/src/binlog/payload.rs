//! TRANSACTION_PAYLOAD: a transaction's events, compressed as one.
//!
//! They are handed on one by one as they are decompressed, and never all held. Sizes and ends are checked here: a
//! payload that is damaged or cut must not look like a shorter transaction.

use std::io::Read;

use super::bytes::Bytes;
use crate::error::{ReplicateError, Result};

mod field {
    pub const END: u64 = 0;
    pub const SIZE: u64 = 1;
    pub const COMPRESSION: u64 = 2;
    pub const UNCOMPRESSED_SIZE: u64 = 3;
}

const ZSTD: u64 = 0;
const NONE: u64 = 255;
/// Type at 4, size at 9.
const HEADER_LEN: usize = 19;

fn damaged(why: impl Into<String>) -> ReplicateError {
    ReplicateError::Damaged(format!("a compressed transaction: {}", why.into()))
}

/// Takes the kind of an event, the time in its header, and its body.
type Visit<'v> = &'v mut dyn FnMut(u8, u32, Vec<u8>) -> Result<()>;

/// Calls `visit` with each event of a payload.
pub fn each_event(event: &[u8], visit: Visit<'_>) -> Result<()> {
    let mut fields = Bytes::new(event, "a compressed transaction");
    let (mut size, mut compression, mut uncompressed) = (None, None, None);
    loop {
        let name = fields.packed()?;
        if name == field::END {
            break;
        }
        let mut value = Bytes::new(fields.packed_bytes()?, "a compressed transaction");
        match name {
            field::SIZE => size = Some(value.packed()?),
            field::COMPRESSION => compression = Some(value.packed()?),
            field::UNCOMPRESSED_SIZE => uncompressed = Some(value.packed()?),
            _ => {}
        }
    }
    let payload = fields.rest();
    if size.is_some_and(|size| size != payload.len() as u64) {
        return Err(damaged("its size is not what it says"));
    }
    let total = match compression {
        Some(NONE) => events_of(payload, visit)?,
        Some(ZSTD) | None => {
            let decoder = zstd::stream::read::Decoder::with_buffer(payload);
            events_of(decoder.map_err(|error| damaged(error.to_string()))?, visit)?
        }
        Some(other) => return Err(damaged(format!("compression {other} is unknown"))),
    };
    match uncompressed {
        Some(wanted) if wanted != total => Err(damaged(format!("it has {total} of {wanted} bytes"))),
        _ => Ok(()),
    }
}

/// Returns how many bytes there were.
fn events_of(mut from: impl Read, visit: Visit<'_>) -> Result<u64> {
    let mut total = 0;
    loop {
        let mut header = [0; HEADER_LEN];
        if from.read(&mut header[..1]).map_err(|error| damaged(error.to_string()))? == 0 {
            return Ok(total);
        }
        from.read_exact(&mut header[1..]).map_err(|error| damaged(error.to_string()))?;
        let size = u32::from_le_bytes(header[9..13].try_into().expect("four bytes")) as usize;
        let body =
            size.checked_sub(HEADER_LEN).ok_or_else(|| damaged("an event is smaller than its header"))?;
        let mut event = Vec::new();
        // What is not there is not set aside.
        let read = from.by_ref().take(body as u64).read_to_end(&mut event);
        if read.map_err(|error| damaged(error.to_string()))? != body {
            return Err(damaged("its last event is cut"));
        }
        total += size as u64;
        visit(header[4], u32::from_le_bytes(*header.first_chunk().expect("four bytes")), event)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(events: &[(u8, &[u8])]) -> (Vec<u8>, u64) {
        let mut plain = Vec::new();
        for (kind, body) in events {
            let mut header = [0; HEADER_LEN];
            header[4] = *kind;
            header[9..13].copy_from_slice(&((HEADER_LEN + body.len()) as u32).to_le_bytes());
            plain.extend_from_slice(&header);
            plain.extend_from_slice(body);
        }
        let size = plain.len() as u64;
        (zstd::bulk::compress(&plain, 3).expect("compressed"), size)
    }

    fn event(payload: &[u8], uncompressed: u64) -> Vec<u8> {
        let mut event = Vec::new();
        for (name, value) in [(2, ZSTD), (3, uncompressed), (1, payload.len() as u64)] {
            event.extend_from_slice(&[name, 9, 254]);
            event.extend_from_slice(&value.to_le_bytes());
        }
        event.push(0);
        event.extend_from_slice(payload);
        event
    }

    fn events(of: &[u8]) -> Result<Vec<(u8, Vec<u8>)>> {
        let mut all = Vec::new();
        each_event(of, &mut |kind, _, body| {
            all.push((kind, body));
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn events_come_out_and_damage_is_never_a_shorter_transaction() {
        let body = vec![7; 3000];
        let (packed, size) = payload(&[(19, b"abc"), (30, &body)]);
        let good = event(&packed, size);
        let all = events(&good).expect("whole");
        assert_eq!(all, [(19, b"abc".to_vec()), (30, body)]);
        for cut in 0..good.len() {
            assert!(events(&good[..cut]).is_err(), "cut at {cut}");
        }
        assert!(events(&event(&packed, size + 1)).is_err());
        let (short, _) = payload(&[(19, b"abc")]);
        assert!(events(&event(&short, size)).is_err(), "a shorter one");
    }
}
