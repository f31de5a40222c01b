//! The log: bytes as a segment's frames, and bytes as the payloads of frames whose checksums are right. Recovery says what is
//! wrong by name, or takes what happens to make sense.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use avocet_base::Lsn;
use avocet_base::env::Disk;
use avocet_base::env::sim::SimDisk;
use avocet_engine::{Engine, EngineError, EngineOptions, ErrorKind};
use avocet_log::{LogOptions, LogReader, LogWriter, MAX_KIND};
use avocet_types::Collation;

/// Where a segment's frames begin.
const FRAMES: usize = 4096;
const LOG: &str = "/data/log";

fn options(disk: &SimDisk) -> EngineOptions {
    let options = EngineOptions::new("/data");
    EngineOptions { env: disk.env(), log_segment_bytes: 16 << 10, background: false, ..options }
}

/// A directory with a little log.
fn directory() -> SimDisk {
    static DIRECTORY: OnceLock<SimDisk> = OnceLock::new();
    let made = DIRECTORY.get_or_init(|| {
        let disk = SimDisk::new();
        let engine = Engine::open(options(&disk)).expect("opens");
        engine.create_database("d", Collation::DEFAULT).expect("created");
        drop(engine);
        disk
    });
    made.kill()
}

fn segment(disk: &SimDisk) -> PathBuf {
    let names = disk.list(Path::new(LOG)).expect("listed");
    let name = names.iter().find(|name| name.ends_with(".log")).expect("a segment");
    Path::new(LOG).join(name)
}

/// The first byte says which: frames, or payloads, each after its kind and its length (u16).
pub fn run(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    let disk = directory();
    if which % 2 == 0 {
        frames(&disk, rest);
    } else if payloads(&disk, rest).is_none() {
        return;
    }
    match Engine::open(options(&disk)) {
        Ok(_) => {}
        // A call of a procedure that nobody has registered.
        Err(EngineError::NotRegistered(_)) => {}
        // A block that was never written is no file.
        Err(e) => assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::Stopped), "{e}"),
    }
}

fn frames(disk: &SimDisk, bytes: &[u8]) {
    let overwrite = |segment: &mut Vec<u8>| {
        let len = bytes.len().min(segment.len() - FRAMES);
        segment[FRAMES..FRAMES + len].copy_from_slice(&bytes[..len]);
    };
    disk.tamper(&segment(disk), overwrite).expect("there");
    if let Ok(mut reader) = LogReader::open(disk.env(), Path::new(LOG), Lsn(0)) {
        while let Ok(Some(_)) = reader.next_record() {}
    }
    let _ = avocet_log::verify(&disk.env(), Path::new(LOG));
}

/// Appends records; `None` if there are none.
fn payloads(disk: &SimDisk, mut rest: &[u8]) -> Option<()> {
    let mut log_options = LogOptions::new(LOG);
    log_options.segment_size = 16 << 10;
    let mut reader = LogReader::open(disk.env(), Path::new(LOG), Lsn(0)).expect("readable");
    while reader.next_record().expect("whole").is_some() {}
    let log = LogWriter::open(disk.env(), log_options, reader.end_lsn()).expect("opened");
    let mut tag = 1000;
    while let Some(([kind, low, high], after)) = rest.split_first_chunk::<3>() {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        log.append(kind % (MAX_KIND + 1), tag, &after[..len]).expect("appended");
        rest = &after[len..];
        tag += 1;
    }
    log.close().expect("closed");
    (tag > 1000).then_some(())
}
