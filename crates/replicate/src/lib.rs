//! Following a MySQL or MariaDB server: its tables are copied while it goes on, and its transactions are applied as they come.
//!
//! ```text
//!                 ┌── stream ──▶ binary log's events ──┐
//!  source         ┤                                    ├─▶ inbox ─▶ follow ─▶ engine: one commit with the position
//!                 └── copy ────▶ chunks of tables ─────┘                │
//!                                                            announce ◀─┘ visible: waits end, tables are let go
//! ```
//!
//! - `source`: what the server says about itself; whether it can be followed
//! - `binlog`: the log's bytes
//! - `stream`, `copy`: the threads that read
//! - `follow`: the thread that applies
//! - `semisync`: telling the source what is durable here
//! - `compare`: whether what is here is the source's
//! - `promote`: what a promotion does at the source
//! - `state`: what is in force, and the tables that are not followed (yet)
//!
//! SQL comes in by [`Definitions`]: this crate knows neither sessions nor executors.
#![deny(unsafe_code)]

mod announce;
mod binlog;
mod compare;
mod copy;
mod error;
mod follow;
mod inbox;
mod lag;
mod patterns;
mod probe;
pub mod promote;
pub mod publish;
mod semisync;
pub mod source;
mod state;
mod status;
mod stream;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use avocet_engine::Engine;
use mysql::Opts;

use announce::Announcer;
use copy::{Copies, Watch};
use follow::{Announcement, Follower, Run, Withholdings};
use inbox::Inbox;
use state::State;

pub use avocet_types::gtid;
pub use binlog::SessionOfQuery;
pub use compare::{Compared, Rows, Verdict};
pub use error::{ReplicateError, Result};
pub use follow::{Definitions, SOURCE};
pub use patterns::{Channel, Claims, Pattern, Patterns, SYSTEM};
pub use probe::{Answer, Probe, Question};
pub use state::{LogPlace, TableName};
pub use status::{Ahead, Broken, Late, Phase, Progress, SemiSync, Snapshot, Status};

/// What is followed, and how.
pub struct Config {
    pub source: Opts,
    pub patterns: Patterns,
    /// The engine's number of the source: each channel has another.
    pub number: u32,
    /// By which the source knows this replica; no other may have it.
    pub server_id: u32,
    /// Tables that are read at a time.
    pub copy_threads: usize,
    /// Threads of the engine's applier.
    pub workers: usize,
    /// The longest wait between two attempts to connect.
    pub retry_after: Duration,
    /// The source's commits are to wait until they are durable here.
    pub semi_sync: bool,
    /// Where others see how far it is: the same for one start after another.
    pub status: Arc<Status>,
    /// Told whenever more transactions are visible.
    pub on_visible: Box<dyn Fn(&gtid::GtidSet) + Send>,
}

/// Compares what is here with the source, and has what differs copied again.
#[derive(Clone)]
pub struct Checker {
    source: Opts,
    patterns: Patterns,
    engine: Arc<Engine>,
    status: Arc<Status>,
    inbox: Arc<Inbox>,
}

impl Checker {
    /// Compares these tables, or all that are followed if none are named; `here` reads rows of this server. With `repairs`, those that
    /// differ are copied again. A source that says nothing for as long as `patience` is lost.
    ///
    /// # Errors
    /// If the source is lost, or `stop` says so.
    pub fn check(
        &self,
        tables: &[TableName],
        repairs: bool,
        here: &mut dyn Rows,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Compared>> {
        let all: Vec<TableName>;
        let tables = match tables {
            [] => {
                let catalog = self.engine.catalog();
                let names = catalog.tables().map(|table| (&table.def.database, &table.def.name));
                let followed = names.filter(|(database, table)| self.patterns.has_table(database, table));
                let name = |(database, table): (&String, &String)| TableName {
                    database: database.clone(),
                    table: table.clone(),
                };
                all = followed.map(name).collect();
                &all
            }
            named => named,
        };
        let source = source::within(&self.source, patience);
        let compared = compare::compare(&source, &self.engine, &self.status, here, tables, stop)?;
        if repairs {
            let differ = compared.iter().filter(|table| matches!(table.verdict, Verdict::Different(_)));
            differ.for_each(|table| self.inbox.doubt(table.name.clone()));
        }
        Ok(compared)
    }
}

/// A source that is followed.
pub struct Attachment {
    checker: Checker,
    inbox: Arc<Inbox>,
    status: Arc<Status>,
    threads: Vec<JoinHandle<()>>,
    /// Ends with it.
    _lag: lag::Watched,
    memory: Reserved,
}

/// Bytes of the engine's budget, as long as it lives.
struct Reserved {
    engine: Arc<Engine>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.engine.memory().release(self.bytes);
    }
}

/// Tables that were made here would be taken for the source's.
fn refuse_others_tables(engine: &Engine, patterns: &Patterns) -> Result<()> {
    let catalog = engine.catalog();
    let mut names = catalog.tables().map(|table| (&table.def.database, &table.def.name));
    match names.find(|(database, table)| patterns.has_table(database, table)) {
        None => Ok(()),
        Some((database, table)) => Err(ReplicateError::Refused(format!(
            "{database}.{table} is here and did not come from the source: drop or rename what is not the source's, leave it out, or \
             begin with a new data directory"
        ))),
    }
}

/// What queues and chunks take: each chunk is in the queue, or with a thread that reads it, beside its encoded form.
fn queue_bytes(config: &Config) -> usize {
    const CHUNK: usize = 40 << 20;
    inbox::EVENT_BYTES + (inbox::CHUNKS + config.copy_threads) * CHUNK
}

impl Attachment {
    /// Begins to follow. The engine's tables that the patterns name belong to the source from now on.
    ///
    /// # Errors
    /// `Refused` if there is no memory for it, or tables of the same names are here that are not the source's.
    pub fn start(engine: &Arc<Engine>, config: Config, definitions: Box<dyn Definitions>) -> Result<Self> {
        let bytes = queue_bytes(&config).min(engine.memory().limit() / 4);
        if !engine.memory().reserve(bytes) {
            return Err(ReplicateError::Refused(format!(
                "there are no {bytes} bytes of memory for it: raise --memory-limit"
            )));
        }
        let memory = Reserved { engine: engine.clone(), bytes };
        if !Self::has_begun(engine, config.number) {
            refuse_others_tables(engine, &config.patterns)?;
        }
        let (inbox, watch, status) = (Arc::<Inbox>::default(), Arc::<Watch>::default(), config.status);
        status.begin();
        status.set_semi_sync(SemiSync::Off);
        let copies = Copies::start(
            config.source.clone(),
            config.copy_threads,
            inbox.clone(),
            watch.clone(),
            status.clone(),
        );
        let checker = Checker {
            source: config.source.clone(),
            patterns: config.patterns.clone(),
            engine: engine.clone(),
            status: status.clone(),
            inbox: inbox.clone(),
        };
        let (announce, announced) = channel::<Announcement>();
        let withholdings = Arc::<Withholdings>::default();
        let mut follower = Follower {
            engine: engine.clone(),
            applier: engine.applier(config.number, config.workers),
            definitions,
            opts: config.source,
            flavor: source::Flavor::default(),
            version: 0,
            can_log_cascades: false,
            logs_cascades: false,
            may_have_triggers: false,
            folds_names: false,
            is_in_utc: true,
            number: config.number,
            server_id: config.server_id,
            patterns: config.patterns,
            inbox: inbox.clone(),
            watch,
            copies,
            status: status.clone(),
            state: State::default(),
            announce,
            withholdings: withholdings.clone(),
            tries_refused: false,
            retry_after: config.retry_after,
            semi_sync: config.semi_sync,
            run: Run::default(),
        };
        follower.take_up()?;
        let on_visible = config.on_visible;
        on_visible(&follower.state.executed);
        let mut announcer = Announcer {
            engine: engine.clone(),
            status: status.clone(),
            withholdings,
            on_visible,
            has_lost: false,
        };
        let announcer = move || announced.into_iter().for_each(|announcement| announcer.tell(announcement));
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(run)
        };
        let refused = |error: std::io::Error| ReplicateError::Refused(format!("no thread for it: {error}"));
        let mut threads = vec![spawn("replica-announce", Box::new(announcer)).map_err(refused)?];
        threads.push(spawn("replica-apply", Box::new(move || follower.follow())).map_err(refused)?);
        let lag = lag::watch(&checker.source, status.clone()).map_err(refused)?;
        Ok(Self { checker, inbox, status, threads, _lag: lag, memory })
    }

    /// Whether the engine has followed a source of this number before.
    pub fn has_begun(engine: &Engine, number: u32) -> bool {
        engine.applied(number).is_some()
    }

    pub fn status(&self) -> &Arc<Status> {
        &self.status
    }

    pub fn checker(&self) -> Checker {
        self.checker.clone()
    }

    /// Ends at the next boundary of the source's transactions; what was applied is committed.
    pub fn stop(mut self) {
        self.inbox.stop();
        for thread in self.threads.drain(..).rev() {
            if thread.join().is_err() {
                tracing::error!("a thread of the replication has panicked");
            }
        }
        tracing::info!(bytes = self.memory.bytes, "replication has ended");
    }
}
