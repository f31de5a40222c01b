//! Segment files: their names, their header block, their place in the log.
//!
//! ```text
//!  <start LSN, 16 hex digits>.log
//!  ┌─────────────────────────────────────────────────────────────────────┬────────────────────────────────────┐
//!  │ header block, 4096 bytes                                            │ frames, byte offset =              │
//!  │ magic 8│version 4│crc 4│log id 8│start 8│room 8│chain 4│0│previous 8│ 4096 + (place − start); then zeros │
//!  └─────────────────────────────────────────────────────────────────────┴────────────────────────────────────┘
//! ```
//!
//! The header has a block of its own so that no later write touches its sector.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use avocet_base::checksum::crc32c;
use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::env::DiskFile;
use avocet_base::{Env, Lsn};

use crate::error::{Error, Result};
use crate::frame::Place;

/// Bytes before the first frame.
pub(crate) const HEADER_BLOCK: u64 = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"AVOCETLG");
/// The version that is written.
const VERSION: u32 = 2;
/// Before frames could be compressed. A header of that version ends before the start of the segment before.
const VERSION_1: u32 = 1;
const HEADER_LEN: usize = 56;
const HEADER_LEN_1: usize = 48;

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Same in all segments of a log, different in every log.
    pub log_id: u64,
    /// LSN of the first frame; also the file's name.
    pub start: Lsn,
    /// Bytes there are for frames.
    pub room: u64,
    /// Head CRC of the frame before the first one, 0 at the beginning of the log.
    pub chain: u32,
    /// Start of the segment before, its own if there never was one; unknown in version 1.
    pub previous: Option<Lsn>,
}

impl SegmentHeader {
    /// Whether frames in the segment may be compressed.
    pub fn may_pack(&self) -> bool {
        self.previous.is_some()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::with_capacity(HEADER_BLOCK as usize);
        fields.put_u64(self.log_id);
        fields.put_u64(self.start.0);
        fields.put_u64(self.room);
        fields.put_u32(self.chain);
        fields.put_u32(0);
        fields.put_u64(self.previous.unwrap_or(self.start).0);
        let mut block = Vec::with_capacity(HEADER_BLOCK as usize);
        block.put_u64(MAGIC);
        block.put_u32(VERSION);
        block.put_u32(crc32c(&fields));
        block.extend_from_slice(&fields);
        block.resize(HEADER_BLOCK as usize, 0);
        block
    }

    /// Checks a header; the error is the reason in words.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut r = Reader::new(bytes);
        let short = |_: Malformed| "the segment's header is cut off".to_string();
        if r.u64("magic").map_err(short)? != MAGIC {
            return Err("the segment's header has no Avocet mark".into());
        }
        let version = r.u32("version").map_err(short)?;
        let len = match version {
            VERSION_1 => HEADER_LEN_1,
            VERSION => HEADER_LEN,
            _ => {
                let known = format!("this program knows {VERSION_1} and {VERSION}");
                return Err(format!("the segment has format version {version}; {known}"));
            }
        };
        let crc = r.u32("crc").map_err(short)?;
        let fields = bytes.get(r.position()..len).ok_or("the segment's header is cut off")?;
        if crc32c(fields) != crc {
            return Err("the segment's header has a wrong checksum".into());
        }
        let mut header = Self {
            log_id: r.u64("log id").map_err(short)?,
            start: Lsn(r.u64("start").map_err(short)?),
            room: r.u64("room").map_err(short)?,
            chain: r.u32("chain").map_err(short)?,
            previous: None,
        };
        if version != VERSION_1 {
            r.u32("reserved").map_err(short)?;
            header.previous = Some(Lsn(r.u64("previous").map_err(short)?));
        }
        Ok(header)
    }
}

/// Where in the file of the segment that begins at `start` a place is.
pub(crate) fn offset_of(start: Lsn, place: Place) -> u64 {
    HEADER_BLOCK + (place.0 - start.0)
}

pub(crate) fn segment_path(dir: &Path, start: Lsn) -> PathBuf {
    dir.join(format!("{:016x}.log", start.0))
}

fn start_of_name(name: &str) -> Option<Lsn> {
    let digits = name.strip_suffix(".log")?;
    let canonical = digits.len() == 16 && !digits.bytes().any(|b| b.is_ascii_uppercase() || b == b'+');
    canonical.then(|| u64::from_str_radix(digits, 16).ok().map(Lsn)).flatten()
}

/// Whether `dir` holds a log, however short.
///
/// # Errors
/// `Io` if it cannot be listed.
pub fn has_log(env: &Env, dir: &Path) -> Result<bool> {
    Ok(!list(env, dir)?.is_empty())
}

/// Starts of the segments in `dir`, ascending.
pub(crate) fn list(env: &Env, dir: &Path) -> Result<Vec<Lsn>> {
    let names = env.disk.list(dir).map_err(Error::io("list", dir))?;
    let mut starts: Vec<Lsn> = names.iter().filter_map(|name| start_of_name(name)).collect();
    starts.sort_unstable();
    Ok(starts)
}

/// An open segment whose header was found right.
pub(crate) struct OpenSegment {
    pub header: SegmentHeader,
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// Bytes for frames that the file really has.
    pub len: u64,
}

impl OpenSegment {
    /// Opens the segment that begins at `start`. Since a segment gets its name after its header is durable,
    /// a header that is not right is damage wherever the segment stands.
    pub fn open(env: &Env, dir: &Path, start: Lsn, write: bool) -> Result<Self> {
        let path = segment_path(dir, start);
        let file = env.disk.open(&path, write).map_err(Error::io("open", &path))?;
        let size = file.size().map_err(Error::io("read the size of", &path))?;
        let mut block = vec![0; size.min(HEADER_BLOCK) as usize];
        file.read_at(&mut block, 0).map_err(Error::io("read", &path))?;
        let damaged = |reason| Error::Corrupt { path: path.clone(), offset: 0, lsn: start, reason };
        let header = SegmentHeader::decode(&block).map_err(damaged)?;
        if header.start != start {
            return Err(damaged(format!("the segment's header says that it begins at {}", header.start)));
        }
        if size < HEADER_BLOCK {
            return Err(damaged("the segment's header is cut off".into()));
        }
        let len = (size - HEADER_BLOCK).min(header.room);
        Ok(Self { header, path, file, len })
    }

    /// Whether the file has lost its end: it had its whole length before it got its name.
    pub fn is_cut(&self) -> bool {
        self.len < self.header.room
    }

    /// Where the first frame is.
    pub fn first_place(&self) -> Place {
        Place(self.header.start.0)
    }

    /// Bytes for frames from a place of this segment on.
    pub fn room_from(&self, place: Place) -> u64 {
        self.len - (place.0 - self.header.start.0)
    }

    /// Damage at a place of this segment.
    pub fn damage(&self, lsn: Lsn, place: Place, reason: impl Into<String>) -> Error {
        let offset = offset_of(self.header.start, place);
        Error::Corrupt { path: self.path.clone(), offset, lsn, reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips_and_any_flipped_bit_is_seen() {
        let header =
            SegmentHeader { log_id: 7, start: Lsn(4096), room: 1 << 20, chain: 99, previous: Some(Lsn(512)) };
        let block = header.encode();
        assert_eq!(block.len() as u64, HEADER_BLOCK);
        assert_eq!(SegmentHeader::decode(&block), Ok(header));
        for bit in 0..HEADER_LEN * 8 {
            let mut bad = block.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bad).is_err(), "bit {bit}");
        }
        for len in 0..HEADER_LEN {
            assert!(SegmentHeader::decode(&block[..len]).is_err(), "length {len}");
        }
    }

    /// As written before frames could be compressed: no start of the segment before, and no checksum over one.
    #[test]
    fn headers_of_version_1_are_read_and_unknown_versions_are_named() {
        let header = SegmentHeader { log_id: 7, start: Lsn(4096), room: 1 << 20, chain: 99, previous: None };
        let mut block = header.encode();
        block[8..12].copy_from_slice(&1u32.to_le_bytes());
        let crc = crc32c(&block[16..48]);
        block[12..16].copy_from_slice(&crc.to_le_bytes());
        block[48..56].fill(0);
        assert_eq!(SegmentHeader::decode(&block), Ok(header));
        assert!(!header.may_pack());
        block[8] = 3;
        let why = SegmentHeader::decode(&block).unwrap_err();
        assert_eq!(why, "the segment has format version 3; this program knows 1 and 2");
    }

    #[test]
    fn only_canonical_names_are_segments() {
        assert_eq!(start_of_name("00000000000000ff.log"), Some(Lsn(255)));
        for name in ["ff.log", "00000000000000FF.log", "00000000000000ff", "+0000000000000ff.log", "spare.0"]
        {
            assert_eq!(start_of_name(name), None, "{name}");
        }
    }
}
