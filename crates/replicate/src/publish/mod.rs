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
//! - `room`: what it does when its disk is full
//! - `reader`: what a replica gets
//! - `shown`: what SHOW BINLOG EVENTS tells
//! - `verify`: what `avocet check` looks at
//!
//! Invariants:
//! 1. A transaction's number follows from its place in the redo log: whoever converts a part of that again, after a crash, comes
//!    to the same events. So nothing that was sent is ever given to something else.
//! 2. Readers see whole transactions, and none whose redo record is not durable.
//! 3. The commit's timestamp stands in a transaction's last event, so that the files themselves say how far they go.

mod events;
mod files;
mod reader;
mod room;
mod rows;
mod shown;
mod verify;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use avocet_base::Timestamp;
use avocet_engine::{CaptureError, ChangeSink, ChangeStream, Engine, Statement, TableHandle};
use avocet_types::RowRef;
use parking_lot::Mutex;

use crate::gtid::GtidSet;

pub use events::decode_gtids;
use files::Files;
pub use files::{Kept, LogFile, Reset};
pub use reader::{Dump, DumpError, From, Step};
pub use shown::{LoggedEvent, LoggedEvents};
pub use verify::{Verified, verify};
use writer::Writer;

/// With what a binary log begins that has no files yet.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// What was in force here of the server whose place this one has taken.
    pub executed: GtidSet,
    /// What was committed up to here is that, and is not told.
    pub ts: Timestamp,
    /// Something was committed after that which will never be in the log: no replica can have it, so none may begin from that server's
    /// state. It is counted as the first transaction, which has been purged.
    pub lacks_some: bool,
}

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
    pub base: Base,
}

/// The binary log of an engine, written as long as this is there.
pub struct BinaryLog {
    begun: Mutex<Begun>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How the log is to begin, and who waits for that.
type Begin = (BinlogOptions, Sender<Result<Arc<Files>, String>>);

enum Begun {
    /// What is committed is another server's until somebody says that the log begins.
    Waiting(Sender<Begin>),
    Files(Arc<Files>),
}

impl BinaryLog {
    /// Goes on with the files that are there, or begins with the first. The engine must have been opened with `capture_changes`.
    ///
    /// # Errors
    /// Files that cannot be read or written; no stream of changes.
    pub fn start(engine: &Arc<Engine>, options: BinlogOptions) -> Result<Self, String> {
        let stream = stream_of(engine)?;
        let writer = open(options, engine)?;
        let files = writer.files().clone();
        let stopping = Arc::downgrade(engine);
        let thread = spawn(move || write(writer, stream, &stopping))?;
        Ok(Self { begun: Mutex::new(Begun::Files(files)), thread: Mutex::new(Some(thread)) })
    }

    /// Has no log yet: what is committed comes from another server, and is passed over until [`begin`](Self::begin).
    ///
    /// # Errors
    /// No stream of changes.
    pub fn wait(engine: &Arc<Engine>) -> Result<Self, String> {
        let mut stream = stream_of(engine)?;
        let (sender, told) = channel::<Begin>();
        let engine = Arc::downgrade(engine);
        let thread = spawn(move || {
            let Some((options, answer)) = pass_over(&mut stream, &told, &engine) else { return };
            let opened = match engine.upgrade() {
                Some(engine) => open(options, &engine),
                None => return,
            };
            // Who asked waits for it.
            let _ = answer.send(opened.as_ref().map(|writer| writer.files().clone()).map_err(Clone::clone));
            if let Ok(writer) = opened {
                write(writer, stream, &engine);
            }
        })?;
        Ok(Self { begun: Mutex::new(Begun::Waiting(sender)), thread: Mutex::new(Some(thread)) })
    }

    /// The log begins, after the options' base.
    ///
    /// # Errors
    /// Files that cannot be written; a log that has begun.
    pub fn begin(&self, options: BinlogOptions) -> Result<Log, String> {
        let mut begun = self.begun.lock();
        let Begun::Waiting(sender) = &*begun else { return Err("the binary log has begun already".into()) };
        let (answer, answered) = channel();
        let gone = "the thread of the binary log has ended";
        sender.send((options, answer)).map_err(|_| gone)?;
        let files = answered.recv().map_err(|_| gone)??;
        *begun = Begun::Files(files.clone());
        Ok(Log(files))
    }

    /// Waits until the writer has ended: its engine's log must have been closed.
    pub fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // What it has failed of was said when it did.
            let _ = thread.join();
        }
    }

    /// `None` if it has not begun.
    pub fn log(&self) -> Option<Log> {
        match &*self.begun.lock() {
            Begun::Waiting(_) => None,
            Begun::Files(files) => Some(Log(files.clone())),
        }
    }
}

fn stream_of(engine: &Arc<Engine>) -> Result<ChangeStream, String> {
    let stream = engine.change_stream().map_err(|error| error.to_string())?;
    stream.ok_or_else(|| "the engine tells nobody of changes".into())
}

fn open(options: BinlogOptions, engine: &Engine) -> Result<Writer, String> {
    let folder = options.folder.display().to_string();
    let opened = Writer::open(options, engine.options().env.clone());
    let writer = opened.map_err(|error| format!("the binary log in {folder}: {error}"))?;
    // The same timestamps would be given to other transactions, which would not be in it.
    let (logged, last) = (writer.last_commit(), engine.last_commit());
    match logged > last {
        false => Ok(writer),
        true => Err(ahead(&folder, logged, last)),
    }
}

/// What is said of a binary log that has more than the data.
pub fn ahead(folder: &str, logged: Timestamp, last: Timestamp) -> String {
    format!(
        "the binary log in {folder} has transactions that the data directory does not have (up to {}, and here is up to {}): the end of the \
         redo log is lost, or the directory is older than its binary log; bring the directory back from a backup that is whole, or move the \
         folder away to begin a new log (replicas then have to be set up anew)",
        logged.0, last.0
    )
}

fn spawn(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let spawned = std::thread::Builder::new().name("binary-log".into()).spawn(run);
    spawned.map_err(|error| error.to_string())
}

fn write(writer: Writer, stream: ChangeStream, engine: &Weak<Engine>) {
    match writer.run(stream) {
        Ok(()) => {}
        Err(CaptureError::Sink(error)) if room::is_full(&error) => {
            tracing::warn!(
                "the binary log has no room for all that was committed: the rest is written at the next start"
            );
        }
        Err(error) => stop_because(engine, &error),
    }
}

fn stop_because(engine: &Weak<Engine>, error: &CaptureError) {
    tracing::error!("the binary log cannot be written: {error}; the server stops taking commits");
    if let Some(engine) = engine.upgrade() {
        engine.stop_because(&format!("the binary log cannot be written: {error}"));
    }
}

/// Lets the redo log go that nobody is told of, until the log begins; `None` if the engine ends before.
fn pass_over<T>(stream: &mut ChangeStream, told: &Receiver<T>, engine: &Weak<Engine>) -> Option<T> {
    /// As often the engine's checkpoints may have to wait.
    const LOOK: Duration = Duration::from_millis(200);
    loop {
        loop {
            match stream.next(&mut Nobody) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    stop_because(engine, &error);
                    return None;
                }
            }
        }
        stream.acknowledge();
        match told.recv_timeout(LOOK) {
            Ok(begin) => return Some(begin),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stream.wait(Duration::ZERO).is_err() {
            return None;
        }
    }
}

/// Wants to be told of nothing.
struct Nobody;

impl ChangeSink for Nobody {
    fn wants(&self, _ts: Timestamp) -> bool {
        false
    }

    fn begin(&mut self, _wall_us: i64) -> io::Result<()> {
        Ok(())
    }

    fn insert(&mut self, _table: &TableHandle, _row: RowRef<'_>) -> io::Result<()> {
        Ok(())
    }

    fn update(&mut self, _table: &TableHandle, _before: RowRef<'_>, _after: RowRef<'_>) -> io::Result<()> {
        Ok(())
    }

    fn delete(&mut self, _table: &TableHandle, _row: RowRef<'_>) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _ts: Timestamp) -> io::Result<()> {
        Ok(())
    }

    fn statement(&mut self, _ts: Timestamp, _statement: &Statement, _is_all: bool) -> io::Result<()> {
        Ok(())
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

    /// Deletes the files before this one, up to one that is read; says what is kept of them. `None` if there is no such file.
    ///
    /// # Errors
    /// Files that cannot be deleted.
    pub fn purge_to(&self, name: &str) -> Option<std::io::Result<Option<Kept>>> {
        self.0.purge_to(name)
    }

    /// Deletes the files whose last transaction is older than this, in seconds since 1970, up to one that is read or written to; says
    /// which that is.
    ///
    /// # Errors
    /// Files that cannot be deleted.
    pub fn purge_before(&self, seconds: u64) -> std::io::Result<Option<Kept>> {
        self.0.purge_before(seconds)
    }

    /// Ends the last file and begins another; false if it was stopped before, or nothing is written any more. Blocks.
    pub fn rotate(&self, stop: &dyn Fn() -> bool) -> bool {
        self.0.rotate(stop)
    }

    /// Begins anew, with a file of this number and without transactions: those that are committed by now will never be in it. Not while
    /// somebody reads it. Blocks.
    pub fn reset(&self, first: u64, stop: &dyn Fn() -> bool) -> Reset {
        self.0.reset(first, stop)
    }

    /// Waits until transactions are in it, but for no longer than this; whether they are.
    pub fn wait_for(&self, set: &GtidSet, at_most: std::time::Duration, stop: &dyn Fn() -> bool) -> bool {
        self.0.wait_for(set, at_most, stop)
    }

    /// What is in a file, the first one if none is named, from a position on.
    ///
    /// # Errors
    /// What MySQL says behind error 1220.
    pub fn events(&self, file: Option<&str>, from: u64) -> Result<LoggedEvents, String> {
        LoggedEvents::open(&self.0, file, from)
    }

    /// What a replica asks for.
    pub fn dump(&self, from: From, begins_without_checksum: bool) -> Result<Dump, DumpError> {
        Dump::open(self.0.clone(), from, begins_without_checksum)
    }
}

#[cfg(test)]
mod tests;
