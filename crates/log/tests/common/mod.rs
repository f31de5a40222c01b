//! A log on a simulated disk.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod bytes;

use std::path::Path;

use avocet_base::Lsn;
use avocet_base::env::SimDisk;
use avocet_log::{Compression, Error, LogOptions, LogReader, LogWriter};

pub const DIR: &str = "/log";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRecord {
    pub kind: u8,
    pub tag: u64,
    pub payload: Vec<u8>,
}

/// Segments of 16 KiB and little pending, so that rolling and waiting are common; so are frames made ahead. Nothing is compressed, so that LSNs tell
/// where in the file a record is.
pub fn options() -> LogOptions {
    LogOptions {
        segment_size: 16 << 10,
        max_pending: 8 << 10,
        max_spares: 1,
        compression: Compression::None,
        frame_ahead_from: 700,
        ..LogOptions::new(DIR)
    }
}

/// The same, but all is compressed that can be.
pub fn packing() -> LogOptions {
    LogOptions { compression: Compression::Lz4, compress_from: 0, ..options() }
}

pub fn open_writer(disk: &SimDisk, options: LogOptions, at: Lsn) -> LogWriter {
    LogWriter::open(disk.env(), options, at).unwrap()
}

/// All records from `from` on, and where the log ends.
pub fn read_all(disk: &SimDisk, from: Lsn) -> Result<(Vec<OwnedRecord>, Lsn), Error> {
    let mut records = Vec::new();
    let end = read_into(disk, from, &mut records)?;
    Ok((records, end))
}

/// The same, but keeps what was read before an error.
pub fn read_into(disk: &SimDisk, from: Lsn, records: &mut Vec<OwnedRecord>) -> Result<Lsn, Error> {
    let mut reader = LogReader::open(disk.env(), Path::new(DIR), from)?;
    while let Some(r) = reader.next_record()? {
        records.push(OwnedRecord { kind: r.kind, tag: r.tag, payload: r.payload.to_vec() });
    }
    Ok(reader.end_lsn())
}
