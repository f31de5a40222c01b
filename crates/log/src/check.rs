//! Walks a whole log and lists what is wrong with it, for `avocet check`.

use std::path::{Path, PathBuf};

use avocet_base::{Env, Lsn};

use crate::error::{Error, Result};
use crate::reader::{LogReader, Tail};
use crate::segment::{list, segment_path};

/// Something wrong in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub path: PathBuf,
    pub lsn: Lsn,
    pub text: String,
}

/// What [`verify`] saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub segments: usize,
    pub records: u64,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Where the oldest segment begins.
    pub start: Lsn,
    /// End of the last whole record.
    pub end: Lsn,
    /// Where the log ends, if it was not damaged there; a torn last group is no finding.
    pub tail: Option<Tail>,
    pub findings: Vec<Finding>,
}

/// Reads every record of the log in `dir`, going on behind damage.
///
/// # Errors
/// Only if the directory cannot be read; everything else is a finding.
pub fn verify(env: &Env, dir: &Path) -> Result<Report> {
    let starts = list(env, dir)?;
    let mut report = Report { segments: starts.len(), ..Report::default() };
    report.start = starts.first().copied().unwrap_or_default();
    let mut unreadable = starts.iter();
    // The first segment whose header can be read; the ones before it are findings.
    let reader = unreadable.find_map(|&start| match LogReader::open(env.clone(), dir, start) {
        Ok(reader) => Some(reader),
        Err(e) => {
            report.find(dir, start, &e);
            None
        }
    });
    if let Some(reader) = reader {
        report.walk(dir, reader);
    }
    Ok(report)
}

impl Report {
    fn walk(&mut self, dir: &Path, mut reader: LogReader) {
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    self.records += 1;
                    self.payload_bytes += record.payload.len() as u64;
                    self.end = record.end;
                }
                Ok(None) => break,
                Err(e) => {
                    self.find(dir, reader.end_lsn(), &e);
                    match reader.skip_damage() {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(e) => return self.find(dir, reader.end_lsn(), &e),
                    }
                }
            }
        }
        self.end = reader.end_lsn();
        self.tail = reader.tail().cloned();
    }

    fn find(&mut self, dir: &Path, lsn: Lsn, error: &Error) {
        let (path, lsn) = match error {
            Error::Corrupt { path, lsn, .. } => (path.clone(), *lsn),
            Error::Io { path, .. } => (path.clone(), lsn),
            Error::MissingSegment { lsn, .. } => (segment_path(dir, *lsn), *lsn),
            _ => (dir.to_path_buf(), lsn),
        };
        self.findings.push(Finding { path, lsn, text: error.to_string() });
    }
}
