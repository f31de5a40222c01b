//! Frames that are compressed together: what the log thread makes of a group, and what a reader takes out again.
//!
//! ```text
//!   a group as it was appended    │ frame │ frame │ … │ frame │ frame │ … │ frame │   whole frames, not sealed
//!                                 └────── chunk ──────┴────── chunk ──────┘   │
//!   as it is written              │ head │ raw length u32 │ LZ4 block │ 0…7 × 0 │ head │ … │ frame │
//! ```
//!
//! A chunk that LZ4 makes clearly shorter goes into a frame of kind [`KIND_PACKED`](crate::frame::KIND_PACKED), whose tag is
//! the LSN of the chunk's first frame; any other is written as it is. So what is written of a group is never longer than the
//! group, and a record that fits what is left of a segment fits it however it is written.
//!
//! The frames in a chunk keep the checksums of their payloads, which the committing threads made: a reader checks those
//! too, and takes all frames out of a chunk or none.

use std::fmt;
use std::str::FromStr;

use avocet_base::Lsn;
use lz4_flex::block::{
    CompressTable, compress_into, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use crate::frame::{ALIGN, Flaw, HEAD, Head, MAX_KIND, Record, first_len, frame_len};

/// How groups are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    None,
    #[default]
    Lz4,
}

/// `none` or `lz4`, in any case.
impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            _ => Err(format!("'{text}' is neither lz4 nor none")),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
        })
    }
}

/// Frames of a chunk together, unless it is one that is larger: what LZ4's small table covers, and a processor's cache.
const CHUNK: usize = (64 << 10) - ALIGN;
/// A frame that is larger than this stays as it is: its compressed copy would be memory that nobody has reckoned with.
const MAX_PACKED: usize = 16 << 20;
/// A chunk stays as it is unless this part of it is saved.
const LEAST_SAVED: usize = 8;
/// Bytes of the raw length before the block.
const RAW_LEN: usize = 4;

/// Compresses groups. Part of the log thread.
pub(crate) struct Packer {
    /// Chunks of fewer bytes stay as they are.
    from: usize,
    table: CompressTable,
    /// Payload of the frame being made.
    payload: Vec<u8>,
    out: Vec<u8>,
}

impl Packer {
    pub fn new(from: usize) -> Self {
        Self { from, table: CompressTable::small(), payload: Vec::new(), out: Vec::new() }
    }

    /// What is to be written of `frames`, whole frames of which the first has LSN `lsn`: they themselves or fewer bytes.
    pub fn pack<'a>(&'a mut self, frames: &'a mut [u8], lsn: Lsn) -> &'a mut [u8] {
        if frames.len() < self.from {
            return frames;
        }
        self.out.clear();
        let mut at = 0;
        while at < frames.len() {
            let chunk = &frames[at..][..chunk_len(&frames[at..])];
            if !self.put_packed(chunk, Lsn(lsn.0 + at as u64)) {
                self.out.extend_from_slice(chunk);
            }
            at += chunk.len();
        }
        &mut self.out
    }

    /// Gives back memory over `keep` bytes.
    pub fn shrink(&mut self, keep: usize) {
        self.out.clear();
        self.out.shrink_to(keep);
        self.payload.truncate(keep);
        self.payload.shrink_to(keep);
    }

    /// Puts the chunk compressed, if that is worth while.
    fn put_packed(&mut self, chunk: &[u8], lsn: Lsn) -> bool {
        if chunk.len() < self.from || chunk.len() > MAX_PACKED {
            return false;
        }
        let most = RAW_LEN + get_maximum_output_size(chunk.len());
        if self.payload.len() < most {
            self.payload.resize(most, 0);
        }
        self.payload[..RAW_LEN].copy_from_slice(&(chunk.len() as u32).to_le_bytes());
        let block = &mut self.payload[RAW_LEN..most];
        let packed = match chunk.len() <= CHUNK {
            true => compress_into_with_table(chunk, block, &mut self.table),
            false => compress_into(chunk, block),
        };
        let payload_len = RAW_LEN + packed.expect("there is room for what LZ4 makes at most");
        let saves = frame_len(payload_len) + chunk.len() / LEAST_SAVED <= chunk.len();
        if saves {
            Record::packed(&self.payload[..payload_len]).put(lsn.0, &mut self.out);
        }
        saves
    }
}

/// Bytes of the frames at the beginning of `frames` that make a chunk.
fn chunk_len(frames: &[u8]) -> usize {
    let mut len = first_len(frames);
    while len < frames.len() {
        let with_next = len + first_len(&frames[len..]);
        if with_next > CHUNK {
            break;
        }
        len = with_next;
    }
    len
}

/// The frames of one chunk, taken out.
#[derive(Default)]
pub(crate) struct Unpacked {
    bytes: Vec<u8>,
    /// Where the next frame is.
    at: usize,
}

impl Unpacked {
    /// Takes out what a packed frame with this payload carries, in place of what was there.
    ///
    /// # Errors
    /// `Packed` if that is not whole frames with the right checksums.
    pub fn fill(&mut self, payload: &[u8]) -> Result<(), Flaw> {
        let filled = self.take_out(payload);
        if filled.is_err() {
            self.clear();
        }
        filled
    }

    fn take_out(&mut self, payload: &[u8]) -> Result<(), Flaw> {
        let (raw_len, block) = payload.split_first_chunk::<RAW_LEN>().ok_or(Flaw::Packed)?;
        let raw_len = u32::from_le_bytes(*raw_len) as usize;
        // LZ4 makes at most 255 bytes of one: so much memory is not asked for before it is known to be needed.
        if raw_len > MAX_PACKED || raw_len > block.len().saturating_mul(255) {
            return Err(Flaw::Packed);
        }
        self.at = 0;
        self.bytes.resize(raw_len, 0);
        if decompress_into(block, &mut self.bytes).ok() != Some(raw_len) {
            return Err(Flaw::Packed);
        }
        let mut at = 0;
        while at < raw_len {
            at += checked_len(&self.bytes[at..]).ok_or(Flaw::Packed)?;
        }
        Ok(())
    }

    /// The next frame, and where its payload is.
    pub fn next_frame(&mut self) -> Option<(Head, usize)> {
        let head = Head::unsealed(self.bytes.get(self.at..)?.first_chunk()?)?;
        let payload = self.at + HEAD;
        self.at += head.frame_len();
        Some((head, payload))
    }

    /// A payload that `next_frame` told of.
    pub fn payload(&self, at: usize, len: usize) -> &[u8] {
        &self.bytes[at..][..len]
    }

    pub fn clear(&mut self) {
        self.at = 0;
        self.bytes.clear();
    }
}

/// Bytes of the frame that `frames` begin with, if it is a whole one that may be in a chunk.
fn checked_len(frames: &[u8]) -> Option<usize> {
    let head = Head::unsealed(frames.first_chunk()?)?;
    let body = frames.get(HEAD..head.frame_len())?;
    let fits = head.kind <= MAX_KIND && head.flags == 0 && head.check_body(body).is_ok();
    fits.then(|| head.frame_len())
}

#[cfg(test)]
#[path = "packed/tests.rs"]
mod tests;
