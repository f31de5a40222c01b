//! The way back: what is committed here, as a MySQL binary log that others follow.
//!
//! ```text
//!  redo log ─▶ engine's ChangeStream ─▶ writer ─▶ binlog.000001 … ─▶ reader ─▶ a replica's connection
//! ```
//!
//! - `events`: the bytes of events
//! - `rows`: tables and rows in them
//! - `files`: the log's files: what is in them, the index, purging
//! - `writer`: the thread that turns changes into events
//! - `reader`: what a replica gets
//!
//! Invariants:
//! 1. A transaction's number follows from its place in the redo log: whoever converts a part of that again, after a crash, comes
//!    to the same events. So nothing that was sent is ever given to something else.
//! 2. Readers see whole transactions, and none whose redo record is not durable.
//! 3. The commit's timestamp stands in a transaction's last event, so that the files themselves say how far they go.

mod events;
mod files;
mod reader;
mod rows;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use avocet_engine::Engine;

use crate::gtid::GtidSet;

pub use events::decode_gtids;
use files::Files;
pub use files::LogFile;
pub use reader::{Dump, DumpError, From, Step};
use writer::Writer;

/// How the binary log is written.
#[derive(Clone, Debug)]
pub struct BinlogOptions {
    /// Where its files are.
    pub folder: PathBuf,
    pub server_id: u32,
    /// What the server says that it is.
    pub version: String,
    /// A file that has become this large is the last one no more.
    pub max_file_bytes: u64,
    /// Files whose transactions are older than this are deleted; 0 for never.
    pub expire_seconds: u64,
}

/// The binary log of an engine, written as long as this is there.
pub struct BinaryLog {
    files: Arc<Files>,
    thread: Option<JoinHandle<()>>,
}

impl BinaryLog {
    /// Goes on with the files that are there, or begins with the first. The engine must have been opened with `capture_changes`.
    ///
    /// # Errors
    /// Files that cannot be read or written; no stream of changes.
    pub fn start(engine: &Arc<Engine>, options: BinlogOptions) -> Result<Self, String> {
        let stream = engine.change_stream().map_err(|error| error.to_string())?;
        let stream = stream.ok_or("the engine tells nobody of changes")?;
        let folder = options.folder.display().to_string();
        let started = Writer::open(options, engine.options().env.clone())
            .map_err(|error| format!("the binary log in {folder}: {error}"));
        let writer = started?;
        let files = writer.files().clone();
        let weak = Arc::downgrade(engine);
        let spawned = std::thread::Builder::new().name("binary-log".into()).spawn(move || {
            if let Err(error) = writer.run(stream) {
                tracing::error!("the binary log cannot be written: {error}; the server stops taking commits");
                if let Some(engine) = weak.upgrade() {
                    engine.stop_because(&format!("the binary log cannot be written: {error}"));
                }
            }
        });
        let thread = Some(spawned.map_err(|error| error.to_string())?);
        Ok(Self { files, thread })
    }

    /// Waits until the writer has ended: its engine's log must have been closed.
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    pub fn log(&self) -> Log {
        Log(self.files.clone())
    }
}

/// What there is to ask of a binary log.
#[derive(Clone)]
pub struct Log(Arc<Files>);

impl Log {
    pub fn server_uuid(&self) -> String {
        self.0.uuid_text()
    }

    /// The last file, and where it ends.
    pub fn position(&self) -> (String, u64) {
        let state = self.0.state();
        (state.current.clone(), state.end)
    }

    pub fn executed(&self) -> GtidSet {
        self.0.executed()
    }

    /// What is in no file any more.
    pub fn purged(&self) -> GtidSet {
        self.0.purged()
    }

    pub fn files(&self) -> Vec<LogFile> {
        self.0.list()
    }

    /// Deletes the files before this one. `None` if there is no such file.
    pub fn purge_to(&self, name: &str) -> Option<std::io::Result<()>> {
        self.0.purge_to(name)
    }

    /// Deletes the files whose last transaction is older than this, in seconds since 1970.
    pub fn purge_before(&self, seconds: u64) -> std::io::Result<()> {
        self.0.purge_before(seconds)
    }

    /// Waits until transactions are in it, but for no longer than this; whether they are.
    pub fn wait_for(&self, set: &GtidSet, at_most: std::time::Duration, stop: &dyn Fn() -> bool) -> bool {
        self.0.wait_for(set, at_most, stop)
    }

    /// What a replica asks for.
    pub fn dump(&self, from: From, begins_without_checksum: bool) -> Result<Dump, DumpError> {
        Dump::open(self.0.clone(), from, begins_without_checksum)
    }
}
