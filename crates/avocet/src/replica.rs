//! This server as a replica: whom it follows, and since when. `attach` names the source for as long as it runs; for `serve`, statements
//! do, and it is kept in the data directory. Of several sources each has a channel, and each channel a replica ([`Channels`]).

mod carried;
mod channels;
mod definitions;
mod document;
pub mod promoted;
mod promotion;
mod report;
mod role;
mod settings;
pub mod tls;
mod told;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use avocet_replicate::gtid::GtidSet;
use avocet_replicate::source::{self, check};
use avocet_replicate::{Attachment, Checker, Config, Patterns, Phase, SOURCE, Status};
use avocet_session::Database;
use mysql::Opts;
use parking_lot::Mutex;

use crate::Failure;
use crate::binary_log::OwnLog;

pub use channels::Channels;
use channels::Executed;
use definitions::SqlDefinitions;
use promoted::{Promoted, Stopping};
use role::Role;
pub use settings::Kept;
use settings::Settings;
use tls::Tls;

/// Who is followed, and how.
#[derive(Clone)]
pub struct Source {
    pub opts: Opts,
    /// What the options' TLS came from.
    pub tls: Tls,
    pub patterns: Patterns,
    /// By which the source knows this replica; made from the data directory's path if not given.
    pub server_id: Option<u32>,
    /// Tables that are copied at a time.
    pub copy_threads: usize,
    /// The longest wait between two attempts to connect.
    pub retry_after: Duration,
}

impl Source {
    pub fn new(opts: Opts) -> Self {
        Self {
            opts,
            tls: Tls::default(),
            patterns: Patterns::default(),
            server_id: None,
            copy_threads: 2,
            retry_after: Duration::from_secs(10),
        }
    }
}

/// A replica of one source, or what may become one.
pub struct Replica {
    database: Database,
    /// Of its channel; the default one's is empty.
    name: String,
    /// The engine's number of its source.
    number: u32,
    status: Arc<Status>,
    /// What statements have said; `None` if the command line names the source.
    settings: Option<Settings>,
    /// What of all sources is in force here.
    executed: Arc<Executed>,
    /// Whoever begins or ends it holds this.
    state: Mutex<State>,
    checker: Mutex<Option<Checker>>,
    /// Whether connections are encrypted, and with what certificates are verified: for those who look, as the next.
    tls: Mutex<Option<Option<String>>>,
    /// Seconds.
    retry_after: AtomicU32,
    /// Of a server that keeps one.
    log: Option<Arc<OwnLog>>,
    /// What all channels have in common.
    role: Arc<Role>,
    /// Told when it takes its source's place.
    on_promoted: OnceLock<Box<dyn Fn() + Send + Sync>>,
    this: Weak<Self>,
}

struct State {
    source: Option<Source>,
    running: Option<Running>,
}

struct Running {
    attachment: Attachment,
    reporter: Option<JoinHandle<()>>,
}

impl Replica {
    /// One whose source the command line names. `log`: that of a server that keeps a binary log.
    pub fn of(database: Database, source: Source, log: Option<Arc<OwnLog>>) -> Arc<Self> {
        let executed = Executed::of(&database);
        let replica = Self::with(database, None, log, executed, Arc::default());
        replica.know(Some(source));
        replica.warn_of_interrupted();
        replica
    }

    /// Goes on as it was when the server ended: it follows if it did.
    fn resume(&self, settings: &Settings) -> Result<(), Failure> {
        let (source, was_running) = (settings.source(), settings.is_running());
        let (host, port, user) = settings.address();
        self.status.set_source(&host, port, &user);
        let known = source.map(|source| self.know(source)).map_err(Failure::from);
        if was_running {
            // Its tables are the source's, whether that can be followed now or not.
            self.database.set_option("super_read_only", "ON")?;
        }
        if was_running && let Err(error) = known.and_then(|()| self.begin()) {
            // Those who look see it, and START REPLICA tries again.
            tracing::error!(%error, channel = self.name, "the source cannot be followed");
            self.status.set_phase(Phase::Halted, Some(error.to_string()));
        }
        Ok(())
    }

    /// One that has taken its source's place.
    pub fn in_its_place(database: Database, promoted: Promoted) -> Result<Arc<Self>, Failure> {
        let executed = Executed::of(&database);
        let replica = Self::with(database, None, None, executed, Arc::default());
        replica.be_promoted(promoted)?;
        Ok(replica)
    }

    fn with(
        database: Database,
        settings: Option<Settings>,
        log: Option<Arc<OwnLog>>,
        executed: Arc<Executed>,
        role: Arc<Role>,
    ) -> Arc<Self> {
        let status = Arc::<Status>::default();
        status.set_phase(Phase::Stopped, None);
        Arc::new_cyclic(|this| Self {
            database,
            name: settings.as_ref().map(|settings| settings.name().to_owned()).unwrap_or_default(),
            number: settings.as_ref().map_or(SOURCE, Settings::number),
            status,
            settings,
            executed,
            state: Mutex::new(State { source: None, running: None }),
            checker: Mutex::new(None),
            tls: Mutex::new(None),
            retry_after: AtomicU32::new(0),
            log,
            role,
            on_promoted: OnceLock::new(),
            this: this.clone(),
        })
    }

    /// Has somebody told when it takes its source's place. To be called once.
    pub fn when_promoted(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_promoted.set(Box::new(tell));
    }

    /// As it is after a promotion, and after every start since.
    fn be_promoted(&self, promoted: Promoted) -> Result<(), Failure> {
        tracing::info!("{promoted}");
        if let Some(settings) = &self.settings {
            settings.forget()?;
        }
        self.know(None);
        if self.log.as_ref().is_none_or(|log| log.is_waiting()) {
            self.database.set_option("gtid_executed", &promoted.executed.to_string())?;
        }
        // It is so already if this server was not started as one.
        self.role.be_promoted(promoted);
        Stopping::forget(&self.database)?;
        Ok(())
    }

    /// A promotion did not come to its end, and the source may take no writes since.
    fn warn_of_interrupted(&self) {
        match Stopping::open(&self.database) {
            Ok(Some(stopping)) => tracing::warn!("{stopping}"),
            Ok(None) => {}
            Err(error) => tracing::error!("{error}"),
        }
    }

    pub fn status(&self) -> &Arc<Status> {
        &self.status
    }

    fn know(&self, source: Option<Source>) {
        if let Some(source) = &source {
            let opts = &source.opts;
            let user = opts.get_user().unwrap_or_default();
            self.status.set_source(&opts.get_ip_or_hostname(), opts.get_tcp_port(), user);
            let verified_by = source.tls.verified_by().map(|path| path.display().to_string());
            *self.tls.lock() = opts.get_ssl_opts().map(|_| verified_by);
            self.retry_after.store(source.retry_after.as_secs() as u32, Ordering::Relaxed);
        }
        self.state.lock().source = source;
    }

    /// Begins to follow; false if one is followed already.
    ///
    /// # Errors
    /// A source that cannot be followed; a promotion of this server.
    pub fn begin(&self) -> Result<bool, Failure> {
        self.role.may_begin()?;
        self.attach()
    }

    /// The same, of the promotion that has let its source go.
    fn attach(&self) -> Result<bool, Failure> {
        let mut state = self.state.lock();
        if state.running.is_some() && self.status.broken().is_none() {
            return Ok(false);
        }
        if let Some(promoted) = self.role.promoted() {
            return Err(promoted.refuses_source().into());
        }
        let source = state.source.clone().ok_or("no source is known")?;
        if self.log.as_ref().is_some_and(|log| !log.is_waiting()) {
            return Err(
                "what comes from a source is not in this server's binary log, which has begun: start the server without --log-bin; \
                 once it follows, it may have the option again"
                    .into(),
            );
        }
        // One that has halted is begun anew.
        self.end_attachment(&mut state);
        let engine = self.database.engine();
        let (told, number) = (self.executed.clone(), self.number);
        let config = Config {
            number,
            server_id: source.server_id.unwrap_or_else(|| server_id(&engine.options().data)),
            source: source.opts,
            patterns: source.patterns,
            copy_threads: source.copy_threads,
            workers: 1,
            retry_after: source.retry_after,
            semi_sync: self.database.wants_semi_sync(),
            status: self.status.clone(),
            on_visible: Box::new(move |executed: &GtidSet| told.tell(number, executed)),
        };
        let definitions = SqlDefinitions { database: self.database.clone() };
        // From the first row on that comes from the source.
        let before = self.database.option("super_read_only")?;
        self.database.set_option("super_read_only", "ON")?;
        let attachment = match Attachment::start(engine, config, Box::new(definitions)) {
            Ok(attachment) => attachment,
            Err(error) => {
                self.database.set_option("super_read_only", &before)?;
                return Err(error.into());
            }
        };
        *self.checker.lock() = Some(attachment.checker());
        let reporter = report::start(self.status.clone());
        state.running = Some(Running { attachment, reporter });
        Ok(true)
    }

    /// Ends at a boundary of the source's transactions; false if none is followed.
    pub fn end(&self) -> bool {
        self.end_attachment(&mut self.state.lock())
    }

    fn end_attachment(&self, state: &mut State) -> bool {
        let was_running = self.status.broken().is_none();
        *self.checker.lock() = None;
        let Some(Running { attachment, reporter }) = state.running.take() else { return false };
        attachment.stop();
        self.status.set_phase(Phase::Stopped, None);
        // It ends with that phase, and has nothing to lose.
        let _ = reporter.map(JoinHandle::join);
        was_running
    }
}

/// Host and port of a source.
pub fn place(opts: &Opts) -> String {
    format!("{}:{}", opts.get_ip_or_hostname(), opts.get_tcp_port())
}

/// Who starts it waits for the answer: a source that accepts a connection and says nothing does not answer. One whose commits wait for
/// this server may not answer before it is followed.
pub fn patient(opts: &Opts) -> Opts {
    const PATIENCE: Duration = Duration::from_secs(10);
    source::within(opts, PATIENCE)
}

/// Says why a source cannot be followed; one that does not answer may come back, if what was copied of it is here.
fn preflight(source: &Source, has_begun: bool) -> Result<(), String> {
    let opts = &source.opts;
    let report = source::connect(&patient(opts)).and_then(|mut conn| check(&mut conn, &source.patterns));
    match report {
        Ok(report) if report.is_fatal() => Err(format!("the source cannot be followed as it is\n{report}")),
        Err(error) if !has_begun => Err(format!("{}: {error}", place(opts))),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Distinct for each data directory of a machine, and most probably of all.
pub fn server_id(data: &Path) -> u32 {
    let mut hasher = DefaultHasher::new();
    // Containers of one image have the same id, or none, and most often the same path.
    for file in ["/etc/machine-id", "/proc/sys/kernel/hostname"] {
        std::fs::read_to_string(file).unwrap_or_default().hash(&mut hasher);
    }
    data.display().to_string().hash(&mut hasher);
    (hasher.finish() as u32).max(1 << 16)
}
