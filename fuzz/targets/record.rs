//! The log: bytes as a segment's frames, as the payloads of frames, and as frames whose checksums are right. Recovery says what
//! is wrong by name, or takes what happens to make sense.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use avocet_base::Lsn;
use avocet_base::checksum::crc32c;
use avocet_base::env::Disk;
use avocet_base::env::sim::SimDisk;
use avocet_engine::{Engine, EngineError, ErrorKind};
use avocet_log::{LogReader, MAX_KIND};

#[path = "history.rs"]
pub mod history;

use history::LOG;

/// Where a segment's frames begin, and how many bytes are before a frame's payload: docs/log.md.
const FRAMES: usize = 4096;
const HEAD: usize = 32;

/// What a history leaves on disk besides its log.
fn corpus() -> &'static SimDisk {
    static CORPUS: OnceLock<SimDisk> = OnceLock::new();
    CORPUS.get_or_init(|| history::corpus().0)
}

fn segment(disk: &SimDisk) -> PathBuf {
    let names = disk.list(Path::new(LOG)).expect("listed");
    let name = names.iter().find(|name| name.ends_with(".log")).expect("a segment");
    Path::new(LOG).join(name)
}

/// The first byte says which: frames; payloads, each after its kind and its length (u16); or frames to be sealed.
pub fn run(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    let disk = match which % 3 {
        0 => frames(rest),
        1 => history::directory(corpus(), Payloads(rest)),
        _ => frames(&sealed(rest)),
    };
    let options = history::options(&disk);
    let _ = avocet_engine::check(options.clone());
    match Engine::open(options) {
        Ok(_) => {}
        // A call of a procedure that nobody has registered, or that has not been logged like this.
        Err(EngineError::NotRegistered(_) | EngineError::NotReproduced { .. }) => {}
        // A block that was never written is no file.
        Err(e) => assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::Stopped), "{e}"),
    }
}

/// A log of these bytes, read to its end.
fn frames(bytes: &[u8]) -> SimDisk {
    let disk = history::directory(corpus(), std::iter::empty());
    let overwrite = |segment: &mut Vec<u8>| {
        let len = bytes.len().min(segment.len() - FRAMES);
        segment[FRAMES..FRAMES + len].copy_from_slice(&bytes[..len]);
    };
    disk.tamper(&segment(&disk), overwrite).expect("there");
    if let Ok(mut reader) = LogReader::open(disk.env(), Path::new(LOG), Lsn(0)) {
        while let Ok(Some(_)) = reader.next_record() {}
    }
    disk
}

/// Records: a kind, a length (u16) and so many bytes each.
struct Payloads<'b>(&'b [u8]);

impl<'b> Iterator for Payloads<'b> {
    type Item = (u8, &'b [u8]);

    fn next(&mut self) -> Option<(u8, &'b [u8])> {
        let ([kind, low, high], after) = self.0.split_first_chunk::<3>()?;
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (payload, rest) = after.split_at(len);
        self.0 = rest;
        Some((kind % (MAX_KIND + 1), payload))
    }
}

/// Bytes before a payload that is to be sealed: kind, flags, distance of the group, tag (u16), length (u16).
const SEALED: usize = 7;

/// Frames of any kind and with any flags whose checksums, marks and chains are right for an empty log of the corpus.
fn sealed(mut rest: &[u8]) -> Vec<u8> {
    let disk = history::directory(corpus(), std::iter::empty());
    let header = disk.contents(&segment(&disk)).expect("there");
    let mut chain: [u8; 4] = header[40..44].try_into().expect("four bytes");
    let mut out = Vec::new();
    while let Some(([kind, flags, group, tag, tag_high, len, len_high], after)) =
        rest.split_first_chunk::<SEALED>()
    {
        let len = usize::from(u16::from_le_bytes([*len, *len_high])).min(after.len());
        let (payload, next) = after.split_at(len);
        let mut head = [0; HEAD];
        head[4..8].copy_from_slice(&crc32c(payload).to_le_bytes());
        head[8..12].copy_from_slice(&(len as u32).to_le_bytes());
        let distance = (u32::from(*group) * 8).min(out.len() as u32);
        head[12..16].copy_from_slice(&distance.to_le_bytes());
        (head[16], head[17]) = (*kind, *flags);
        head[18..20].copy_from_slice(&0xa70c_u16.to_le_bytes());
        head[20..24].copy_from_slice(&chain);
        (head[24], head[25]) = (*tag, *tag_high);
        let covered = [&header[16..24], &(out.len() as u64).to_le_bytes()[..], &head[4..]].concat();
        chain = crc32c(&covered).to_le_bytes();
        head[..4].copy_from_slice(&chain);
        out.extend_from_slice(&head);
        out.extend_from_slice(payload);
        out.resize(out.len().next_multiple_of(8), 0);
        rest = next;
    }
    out
}
