//! Where LOAD DATA's bytes come from, and the part of them that is held.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use avocet_channel::blocking::blocking;
use avocet_channel::{Interrupt, LocalFiles, ResultSink};
use avocet_engine::Engine;
use avocet_sql::parse::statement::LoadData;
use avocet_types::error::{ErrorCode, SqlError};

use crate::permitted_files::os_error;
use crate::state::Session;

/// So much is read at a time, at least.
const CHUNK: usize = 256 * 1024;

/// A file that is being loaded.
pub(super) enum Source<'s> {
    Server(File),
    /// The client's, by the name that it is asked for.
    Client {
        files: &'s mut dyn LocalFiles,
        name: String,
        ended: bool,
    },
}

impl Session {
    /// The file of a statement, if it may be read.
    pub(super) fn source_of<'s>(
        &self,
        load: &LoadData,
        sink: &'s mut dyn ResultSink,
    ) -> Result<Source<'s>, SqlError> {
        if !load.local {
            return Ok(Source::Server(self.open_server_file(&load.file)?));
        }
        match sink.local_files() {
            Some(files) if self.shared.globals.settings().local_infile => {
                Ok(Source::Client { files, name: load.file.clone(), ended: false })
            }
            _ => Err(ErrorCode::CLIENT_LOCAL_FILES_DISABLED.with(&[])),
        }
    }
}

impl Source<'_> {
    /// Begins; a client may pause for as long as `patience`.
    pub fn open(&mut self, patience: Duration) -> Result<(), SqlError> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Client { files, name, .. } => Ok(files.request(name, patience)?),
        }
    }

    /// Appends more of the file; false at its end.
    async fn read(&mut self, to: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, SqlError> {
        match self {
            Self::Server(file) => {
                let read = blocking(|| file.take(CHUNK as u64).read_to_end(to));
                let failed = |error: io::Error| {
                    let (number, text) = os_error(&error);
                    ErrorCode::GET_ERRNO.with(&[&number, &text])
                };
                Ok(read.map_err(failed)? > 0)
            }
            Self::Client { ended: true, .. } => Ok(false),
            Self::Client { files, ended, .. } => {
                let more = tokio::select! {
                    biased;
                    _ = interrupt.raised() => return Err(ErrorCode::QUERY_INTERRUPTED.with(&[])),
                    more = poll_fn(|cx| files.poll_read(cx, to)) => more?,
                };
                *ended = !more;
                Ok(more)
            }
        }
    }

    /// Reads what is left and is not wanted, since a client sends its file whole.
    pub async fn finish(&mut self, interrupt: &Interrupt) -> Result<(), SqlError> {
        if matches!(self, Self::Client { .. }) {
            let mut rest = Vec::new();
            while self.read(&mut rest, interrupt).await? {
                rest.clear();
            }
        }
        Ok(())
    }
}

/// The part of a file that is on hand. What it takes is counted.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// What stands before was consumed.
    at: usize,
    /// The length of the row that is being stored.
    row: usize,
    /// The rest of the file is on hand.
    all: bool,
    /// A row may take so many bytes.
    most: usize,
    engine: Arc<Engine>,
    /// Whether the statement is to end.
    stop: Arc<dyn Fn() -> bool + Send + Sync>,
    reserved: usize,
}

impl Buffer {
    pub fn new(engine: &Arc<Engine>, stop: Arc<dyn Fn() -> bool + Send + Sync>, most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(CHUNK);
        Self { bytes: Vec::new(), at: 0, row: 0, all: false, most, engine: engine.clone(), stop, reserved: 0 }
    }

    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub fn is_all(&self) -> bool {
        self.all
    }

    pub fn consume(&mut self, count: usize) {
        self.at += count;
    }

    /// The first bytes that are unread are a row, which is consumed once it is stored.
    pub fn keep_row(&mut self, len: usize) {
        self.row = len;
    }

    pub fn row(&self) -> &[u8] {
        &self.bytes[self.at..self.at + self.row]
    }

    pub fn consume_row(&mut self) {
        self.at += std::mem::take(&mut self.row);
    }

    /// Reads until there is twice as much as before, so that a row which is longer than what is on hand is not begun again
    /// too often.
    pub async fn fill(&mut self, source: &mut Source<'_>, interrupt: &Interrupt) -> Result<(), SqlError> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let held = self.bytes.len();
        if held > self.most {
            return Err(ErrorCode::NET_PACKET_TOO_LARGE.with(&[]));
        }
        let wanted = (2 * held).max(CHUNK);
        self.reserve(wanted + CHUNK)?;
        while self.bytes.len() < wanted && !self.all {
            self.all = !source.read(&mut self.bytes, interrupt).await?;
        }
        Ok(())
    }

    /// Counts that the buffer may grow to so many bytes; waits until there is memory for them.
    fn reserve(&mut self, bytes: usize) -> Result<(), SqlError> {
        let Some(more) = bytes.checked_sub(self.reserved).filter(|more| *more > 0) else { return Ok(()) };
        self.engine.reserve_with_patience(more, &*self.stop)?;
        self.reserved += more;
        self.bytes.reserve(bytes.saturating_sub(self.bytes.len()));
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.engine.memory().release(self.reserved);
    }
}
