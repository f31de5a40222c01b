//! Rows that wait: in memory while they are few, in a file of the spill folder when they are many.
//!
//! A statement whose rows are all to be there before something is done with them (a cursor's, those of a query that reads the
//! table that it changes) keeps them here, encoded by whoever knows how. The file has no name any more: it goes with its spool,
//! or with the process.
//!
//! ```text
//!  file:  ┌─────┬─────┬───┬─────┐  rows that came first      row: ┌────────┬──────────────┐
//!         └─────┴─────┴───┴─────┘                                 │ len u32│ bytes        │
//!  tail:  ┌─────┬─────┐            those after them               └────────┴──────────────┘
//!         └─────┴─────┘
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_channel::SinkError;

/// So many bytes are in memory before they go to the file.
const TAIL: usize = 256 * 1024;
/// So much of the file is read at a time.
const WINDOW: usize = 64 * 1024;
const HEADER: usize = 4;

pub struct Spool {
    folder: Option<PathBuf>,
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
    tail: Vec<u8>,
}

/// A place among the rows of a spool, to which nothing is added any more.
#[derive(Default)]
pub struct SpoolReader {
    /// Bytes of the file that are or were in the window.
    read: u64,
    window: Vec<u8>,
    /// Where the next row starts in the window, and in the spool's tail.
    next: usize,
    next_in_tail: usize,
}

impl Spool {
    /// Without a folder, all rows stay in memory.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, file: None, written: 0, tail: Vec::new() }
    }

    /// Bytes of memory that it takes when a row of so many is added.
    pub fn bytes_with(&self, row: usize) -> usize {
        match self.folder.is_some() && self.is_full_with(row) {
            true => self.tail.capacity().max(HEADER + row),
            false => self.tail.capacity().max(self.tail.len() + HEADER + row),
        }
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.tail.capacity()
    }

    fn is_full_with(&self, row: usize) -> bool {
        !self.tail.is_empty() && self.tail.len() + HEADER + row > TAIL
    }

    pub fn push(&mut self, row: &[u8]) -> Result<(), SinkError> {
        let len = u32::try_from(row.len()).map_err(|_| SinkError::RowTooLarge)?;
        if self.folder.is_some() && self.is_full_with(row.len()) {
            self.spill()?;
        }
        self.tail.extend_from_slice(&len.to_le_bytes());
        self.tail.extend_from_slice(row);
        Ok(())
    }

    /// No more rows come: if there is a file, all of them are there from now on.
    pub fn finish(&mut self) -> Result<(), SinkError> {
        if self.file.is_some() {
            self.spill()?;
        }
        self.tail.shrink_to_fit();
        Ok(())
    }

    fn spill(&mut self) -> Result<(), SinkError> {
        self.write_tail().map_err(|error| SinkError::CannotSpill(error.kind()))
    }

    fn write_tail(&mut self) -> io::Result<()> {
        if let (None, Some(folder)) = (&self.file, &self.folder) {
            self.file = Some(nameless_file(folder)?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.tail)?;
            self.written += self.tail.len() as u64;
        }
        self.tail.clear();
        self.tail.shrink_to(TAIL);
        Ok(())
    }
}

impl SpoolReader {
    /// Whether all rows were read.
    pub fn is_at_end(&self, spool: &Spool) -> bool {
        self.read == spool.written && self.next == self.window.len() && self.next_in_tail == spool.tail.len()
    }

    /// Bytes of memory that its window takes, and will to read the next row.
    pub fn bytes(&self, spool: &Spool) -> usize {
        let row = self.window[self.next..].first_chunk().map_or(0, |header| row_len(*header));
        let is_read = spool.file.is_some() && !self.is_at_end(spool);
        self.window.capacity().max(if is_read { WINDOW.max(row) } else { 0 })
    }

    /// The next row.
    pub fn next<'r>(&'r mut self, spool: &'r Spool) -> Result<Option<&'r [u8]>, SinkError> {
        self.need(spool, HEADER)?;
        if let Some(header) = self.window[self.next..].first_chunk() {
            let end = row_len(*header);
            self.need(spool, end)?;
            let begin = self.next;
            self.next += end;
            return Ok(Some(&self.window[begin + HEADER..begin + end]));
        }
        let tail = &spool.tail[self.next_in_tail..];
        let Some(header) = tail.first_chunk() else { return Ok(None) };
        let end = row_len(*header);
        self.next_in_tail += end;
        Ok(Some(&tail[HEADER..end]))
    }

    /// Reads until so many bytes are in the window, or the file ends.
    fn need(&mut self, spool: &Spool, bytes: usize) -> Result<(), SinkError> {
        let left = spool.written - self.read;
        let Some(file) = spool.file.as_ref().filter(|_| left > 0 && self.window.len() - self.next < bytes)
        else {
            return Ok(());
        };
        self.window.drain(..self.next);
        self.next = 0;
        let begin = self.window.len();
        let end = bytes.max(WINDOW).min(begin + usize::try_from(left).unwrap_or(usize::MAX));
        self.window.resize(end, 0);
        let read = file.read_exact_at(&mut self.window[begin..], self.read);
        read.map_err(|error| SinkError::CannotSpill(error.kind()))?;
        self.read += (end - begin) as u64;
        if self.window.capacity() > 2 * end.max(WINDOW) {
            self.window.shrink_to(end.max(WINDOW));
        }
        Ok(())
    }
}

/// A row's length with its header.
fn row_len(header: [u8; HEADER]) -> usize {
    HEADER + u32::from_le_bytes(header) as usize
}

/// A file that only its handle leads to.
fn nameless_file(folder: &Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(folder)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("rows-{}-{number}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: u32, len: usize) -> impl Iterator<Item = Vec<u8>> {
        (0..count).map(move |n| n.to_le_bytes().repeat(len / 4 + n as usize % 7))
    }

    #[test]
    fn few_rows_stay_in_memory_and_many_do_not() {
        let folder = tempfile::tempdir().expect("a directory");
        let cases =
            [(0, 0, false), (10, 100, false), (20_000, 100, true), (7, 300_000, true), (1, 300_000, false)];
        for (count, len, spills) in cases {
            for finishes in [false, true] {
                let mut spool = Spool::new(Some(folder.path().to_owned()));
                for row in rows(count, len) {
                    let foretold = spool.bytes_with(row.len());
                    spool.push(&row).expect("written");
                    assert!(spool.bytes() <= 2 * foretold.max(TAIL));
                }
                if finishes {
                    spool.finish().expect("written");
                    assert!(!spills || spool.bytes() == 0);
                }
                assert_eq!(spool.file.is_some(), spills);
                let mut reader = SpoolReader::default();
                for row in rows(count, len) {
                    assert!(!reader.is_at_end(&spool));
                    assert!(reader.next(&spool).expect("read") == Some(&row[..]), "{count} rows of {len}");
                    assert!(reader.bytes(&spool) <= 2 * WINDOW.max(len + 100), "{}", reader.bytes(&spool));
                }
                assert!(reader.is_at_end(&spool) && reader.next(&spool).expect("read").is_none());
            }
        }
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "no file has a name");
    }

    #[test]
    fn without_a_folder_rows_stay_in_memory() {
        let mut spool = Spool::new(None);
        rows(10_000, 100).for_each(|row| spool.push(&row).expect("kept"));
        assert!(spool.bytes() > 1_000_000);
        let mut reader = SpoolReader::default();
        for row in rows(10_000, 100) {
            assert!(reader.next(&spool).expect("read") == Some(&row[..]));
        }
    }
}
