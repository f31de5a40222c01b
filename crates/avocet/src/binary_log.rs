//! The binary log of `avocet serve --log-bin`, as sessions and replicas' connections see it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use avocet_engine::Engine;
use avocet_replicate::gtid::GtidSet;
use avocet_replicate::publish::{
    Base, BinaryLog, BinlogOptions, Dump, From, Kept, Log, LoggedEvents, Reset, Step, decode_gtids,
};
use avocet_session::Database;
use avocet_session::api::DumpFrom;
use avocet_session::binary_log::{
    BinaryLog as Told, BinaryLogDump, BinaryLogEvents, BinaryLogStatus, DumpStep, KeptLog, LogReset,
    LoggedEvent,
};

use crate::Failure;

#[derive(clap::Args)]
// Others of this name are parts of the same command.
#[group(skip)]
pub struct Args {
    /// Keep a binary log, so that MySQL replicas and tools of change capture can follow this server (variable log_bin); that of a
    /// server that follows another begins with PROMOTE REPLICA
    #[arg(long)]
    pub log_bin: bool,
    /// Bytes of a file of the binary log, about, such as 1G (variable max_binlog_size)
    #[arg(long, value_name = "BYTES", value_parser = file_bytes, default_value = "1G")]
    max_binlog_size: usize,
    /// Seconds for which files of the binary log are kept; 0 for ever (variable binlog_expire_logs_seconds)
    #[arg(long, value_name = "SECONDS", default_value_t = 2_592_000)]
    binlog_expire_logs_seconds: u64,
}

/// As MySQL bounds it. Beyond 4 GiB, events do not tell their positions.
fn file_bytes(text: &str) -> Result<usize, String> {
    crate::serve::bytes(text).and_then(|bytes| match bytes {
        0x1000..=0x4000_0000 => Ok(bytes),
        _ => Err("a file of the binary log has from 4K to 1G".into()),
    })
}

/// When the log begins.
pub enum Begins {
    /// At the start of the server.
    Now(Base),
    /// What is committed is another server's until a promotion.
    WithPromotion,
}

/// The binary log of this server.
pub struct OwnLog {
    log: BinaryLog,
    options: BinlogOptions,
    database: Database,
}

/// Starts the binary log, if there is to be one.
pub fn start(
    args: &Args,
    server_id: u32,
    data: &Path,
    database: &Database,
    begins: Begins,
) -> Result<Option<Arc<OwnLog>>, Failure> {
    database.set_option("server_id", &server_id.to_string())?;
    let folder: PathBuf = data.join("binlog");
    if !args.log_bin {
        if folder.is_dir() {
            tracing::warn!("without --log-bin, what is committed now will never be in the binary log");
        }
        return Ok(None);
    }
    let mut options = BinlogOptions {
        folder,
        server_id,
        version: database.option("version")?,
        max_file_bytes: args.max_binlog_size as u64,
        expire_seconds: args.binlog_expire_logs_seconds,
        base: Base::default(),
    };
    let engine = database.engine();
    let log = match begins {
        Begins::Now(base) => {
            options.base = base;
            BinaryLog::start(engine, options.clone())?
        }
        Begins::WithPromotion if options.folder.join("binlog.index").exists() => {
            return Err(format!(
                "{} has a binary log of this server's own, in which what comes from a source would be missing: start it without --log-bin",
                options.folder.display()
            )
            .into());
        }
        Begins::WithPromotion => BinaryLog::wait(engine)?,
    };
    let own = OwnLog { log, options, database: database.clone() };
    if let Some(log) = own.log.log() {
        own.tell(log)?;
    }
    Ok(Some(Arc::new(own)))
}

impl OwnLog {
    pub fn server_id(&self) -> u32 {
        self.options.server_id
    }

    /// It has not begun yet.
    pub fn is_waiting(&self) -> bool {
        self.log.log().is_none()
    }

    /// It begins, with what is committed after this.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn begin(&self, base: Base) -> Result<(), Failure> {
        let log = self.log.begin(BinlogOptions { base, ..self.options.clone() })?;
        self.tell(log)
    }

    /// Waits until all is written: the engine's log must have been closed.
    pub fn join(&self) {
        self.log.join();
    }

    /// Sessions and replicas know of it from now on.
    fn tell(&self, log: Log) -> Result<(), Failure> {
        let Self { options, database, .. } = self;
        for (name, value) in [
            ("log_bin", "ON".to_owned()),
            ("log_bin_basename", options.folder.join("binlog").display().to_string()),
            ("gtid_mode", "ON".to_owned()),
            ("enforce_gtid_consistency", "ON".to_owned()),
            ("server_uuid", log.server_uuid()),
            ("max_binlog_size", options.max_file_bytes.to_string()),
            ("binlog_expire_logs_seconds", options.expire_seconds.to_string()),
        ] {
            database.set_option(name, &value)?;
        }
        database.log_to(Arc::new(Shown { log, engine: Arc::downgrade(database.engine()) }));
        Ok(())
    }
}

fn told_kept(kept: Kept) -> KeptLog {
    match kept {
        Kept::Active(file) => KeptLog::Active(file),
        Kept::InUse { file, readers, purged, of } => KeptLog::InUse { file, readers, purged, of },
    }
}

struct Shown {
    log: Log,
    engine: Weak<Engine>,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Shown").field(&self.log.position()).finish()
    }
}

impl Told for Shown {
    fn status(&self) -> BinaryLogStatus {
        let (file, position) = self.log.position();
        BinaryLogStatus {
            file,
            position,
            executed: self.log.executed().to_string(),
            purged: self.log.purged().to_string(),
        }
    }

    fn catch_up(&self, at_most: Duration, stop: &dyn Fn() -> bool) -> bool {
        self.engine.upgrade().is_some_and(|engine| engine.await_shown(at_most, stop))
    }

    fn files(&self) -> Vec<(String, u64)> {
        self.log.files().into_iter().map(|file| (file.name, file.bytes)).collect()
    }

    fn rotate(&self, stop: &dyn Fn() -> bool) -> bool {
        self.log.rotate(stop)
    }

    fn reset(&self, first: u64, stop: &dyn Fn() -> bool) -> LogReset {
        match self.log.reset(first, stop) {
            Reset::Done => LogReset::Done,
            Reset::InUse(readers) => LogReset::InUse(readers),
            Reset::Stopped => LogReset::Stopped,
        }
    }

    fn purge_to(&self, name: &str) -> Option<io::Result<Option<KeptLog>>> {
        Some(self.log.purge_to(name)?.map(|kept| kept.map(told_kept)))
    }

    fn purge_before(&self, seconds: u64) -> io::Result<Option<KeptLog>> {
        Ok(self.log.purge_before(seconds)?.map(told_kept))
    }

    fn wait_for(&self, set: &str, at_most: Duration, stop: &dyn Fn() -> bool) -> Option<bool> {
        let wanted = GtidSet::of_mysql_text(set).ok()?;
        Some(self.log.wait_for(&wanted, at_most, stop))
    }

    fn events(&self, file: Option<&str>, from: u64) -> Result<Box<dyn BinaryLogEvents>, String> {
        Ok(Box::new(ShownEvents { events: self.log.events(file, from)?, some: Vec::new() }))
    }

    fn dump(&self, from: DumpFrom, begins_without_checksum: bool) -> Result<Box<dyn BinaryLogDump>, String> {
        let from = match from {
            DumpFrom::Gtids(set, place) => {
                From::Gtids(decode_gtids(&set).ok_or("the set of GTIDs cannot be read")?, place)
            }
            DumpFrom::Position(file, position) => From::Position(file, position),
        };
        let dump = self.log.dump(from, begins_without_checksum).map_err(|error| error.to_string())?;
        Ok(Box::new(Dumped(dump)))
    }
}

struct ShownEvents {
    events: LoggedEvents,
    /// Kept for its room.
    some: Vec<avocet_replicate::publish::LoggedEvent>,
}

impl BinaryLogEvents for ShownEvents {
    fn file(&self) -> &str {
        self.events.file()
    }

    fn next(&mut self, to: &mut Vec<LoggedEvent>) -> Result<bool, String> {
        let has_more = self.events.next(&mut self.some)?;
        to.extend(self.some.drain(..).map(|event| LoggedEvent {
            position: event.position,
            kind: event.kind,
            server_id: event.server_id,
            end: event.end,
            info: event.info,
        }));
        Ok(has_more)
    }
}

struct Dumped(Dump);

impl BinaryLogDump for Dumped {
    fn next(&mut self, to: &mut Vec<u8>) -> io::Result<DumpStep> {
        Ok(match self.0.next(to)? {
            Step::Event => DumpStep::Event,
            Step::Skipped => DumpStep::Skipped,
            Step::End => DumpStep::End,
        })
    }

    fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_more(cx)
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    fn buffered(&self) -> usize {
        self.0.buffered()
    }

    fn heartbeat(&self, in_full: bool, to: &mut Vec<u8>) {
        self.0.heartbeat(in_full, to);
    }
}
