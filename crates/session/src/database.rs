//! A database that is open: the engine, the server's variables, and a factory of sessions.
//!
//! The protocol server, the embedded shell and tests all work through one of these.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use avocet_channel::Interruption;
use avocet_channel::blocking::blocking;
use avocet_engine::{Engine, EngineOptions, GrantScope, MemoryBudget, Privileges, UserDef};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Collation, Value};
use parking_lot::Mutex;

use super::api::{AccountName, ClientMemory, ConnectionRow, Connections, SessionFactory, SessionInfo};
use super::binary_log::BinaryLog;
use super::commands::Commands;
use super::counters::Counters;
use super::guard::ADMINISTRATORS;
use super::persisted::Persisted;
use super::plan_cache::PlanCache;
use super::privileges::Access;
use super::replication::Replication;
use super::routing::Journal;
use super::shared::{Passwords, Shared};
use super::state::Session;
use super::summaries::Summaries;
use super::variables::{Globals, VARIABLES, Values, find};

/// For use without a protocol server: no password can be set, and what is stored of one is kept as it is given.
struct NoPasswords;

impl Passwords for NoPasswords {
    fn auth_string(&self, plugin: &str, password: &[u8]) -> Option<Vec<u8>> {
        let known = matches!(plugin, "caching_sha2_password" | "mysql_native_password");
        (known && password.is_empty()).then(Vec::new)
    }

    fn is_stored(&self, _: &str, _: &[u8]) -> bool {
        true
    }

    fn is_password(&self, _: &str, stored: &[u8], password: &[u8]) -> bool {
        stored.is_empty() && password.is_empty()
    }
}

/// An open database. A cheap handle.
#[derive(Clone)]
pub struct Database(pub(super) Arc<Shared>);

impl Database {
    /// Opens a data directory, made if there is none, with default options.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SqlError> {
        let rule_compiler = Some(avocet_sql::kept::compile as avocet_engine::RuleCompiler);
        let engine = Engine::open(EngineOptions { rule_compiler, ..EngineOptions::new(path) })?;
        Self::new(engine, None)
    }

    /// Serves an engine. A new data directory gets its first account, `root`@`localhost` without a password.
    pub fn new(engine: Arc<Engine>, passwords: Option<Box<dyn Passwords>>) -> Result<Self, SqlError> {
        engine.set_wait_hook(Arc::new(|wait| blocking(wait)));
        engine.set_rule_compiler(avocet_sql::kept::compile);
        engine.drop_unfinished()?;
        if engine.catalog().users().next().is_none() {
            let mut root = UserDef::new("root", "localhost");
            root.grant(GrantScope::Global, Privileges::ALL);
            engine.put_user(root)?;
        }
        let mut values = Values::defaults();
        let data = engine.options().data.display().to_string();
        let durability = engine.options().durability.to_string();
        values.put_by_name("durability", Value::Str(durability.into()));
        let pace = engine.options().background_bytes_per_second >> 20;
        values.put_by_name("background_mib_per_second", Value::UInt(pace));
        values.put_by_name("datadir", Value::Str(format!("{data}/").into()));
        let persisted = Persisted::open(&engine.options().env, &engine.options().data)?;
        for (name, value) in persisted.list() {
            values.put_persisted(&name, &value).map_err(|error| persisted.wrong(&error.message))?;
        }
        Ok(Self(Arc::new(Shared {
            persisted,
            engine,
            globals: Arc::new(Globals::new(values)),
            passwords: passwords.unwrap_or_else(|| Box::new(NoPasswords)),
            counters: Counters::default(),
            commands: Commands::default(),
            plans: PlanCache::default(),
            summaries: Summaries::default(),
            locks: Arc::default(),
            spill: OnceLock::new(),
            analytics: OnceLock::new(),
            analytics_start: Mutex::new(()),
            replication: Arc::default(),
            binary_log: Arc::default(),
            replicas: Arc::default(),
            journal: Arc::default(),
            prepared: AtomicUsize::new(0),
            next_embedded: AtomicU32::new(1),
        })))
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.0.engine
    }

    /// Lets queries that need more memory than they may have use this folder, which is emptied first. To be called
    /// before the first query.
    pub fn spill_to(&self, folder: impl Into<PathBuf>) {
        // A second call would come too late.
        let _ = self.0.spill.set(folder.into());
    }

    /// The server follows another, or may be told to: SHOW REPLICA STATUS, START REPLICA and waits ask this. To be called once.
    pub fn follow(&self, replication: Arc<dyn Replication>) {
        // A second call would come too late.
        let _ = self.0.replication.set(replication);
    }

    /// Others may follow this server from now on, by its binary log. To be called once.
    pub fn log_to(&self, log: Arc<dyn BinaryLog>) {
        self.0.globals.follow(log.clone());
        // A second call would come too late.
        let _ = self.0.binary_log.set(log);
    }

    /// Where a front notes which queries ran where.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.0.journal
    }

    /// Gives a global variable a value, read-only ones too: for the server's options (`port`, `bind_address`, …).
    pub fn set_option(&self, name: &str, value: &str) -> Result<(), SqlError> {
        let position = find(name)?;
        let value = VARIABLES[position].parse_text(value)?;
        self.0.globals.put(position, value);
        Ok(())
    }

    /// A global variable as SHOW VARIABLES has it.
    pub fn option(&self, name: &str) -> Result<String, SqlError> {
        let position = find(name)?;
        Ok(VARIABLES[position].show(&self.0.globals.get(position)))
    }

    /// Whether the commits of a source that is followed from now on are to wait until they are durable here.
    pub fn wants_semi_sync(&self) -> bool {
        self.0.globals.settings().semi_sync_replica
    }

    /// As [`Self::set_option`], unless SET PERSIST has given the variable a value: as in MySQL, that prevails.
    pub fn set_default(&self, name: &str, value: &str) -> Result<(), SqlError> {
        if self.0.persisted.has(name) { Ok(()) } else { self.set_option(name, value) }
    }

    /// A session of `root`@`localhost` inside this process, which may do everything, whatever became of that account.
    pub fn session(&self, database: Option<&str>) -> Result<Session, SqlError> {
        let id = self.0.next_embedded.fetch_add(1, Ordering::Relaxed);
        Session::new(
            self.0.clone(),
            SessionInfo {
                connection_id: id,
                account: AccountName { user: "root".into(), host: "localhost".into() },
                client_host: "localhost".into(),
                database: database.map(str::to_owned),
                found_rows: false,
                multi_statements: true,
                interactive: false,
                ignore_space: false,
                collation: Collation::DEFAULT.0,
                cipher: String::new(),
                interrupt: Arc::default(),
                connections: Arc::new(NoConnections),
            },
            Access::embedded(),
        )
    }

    /// Whether an account has to change its password before it does anything else.
    pub fn has_expired_password(&self, account: &UserDef) -> bool {
        let now = self.0.engine.options().env.clock.wall_us() / 1_000_000;
        account.password.has_expired(now, self.0.globals.settings().password_days)
    }

    /// Ends background work, writes a checkpoint and closes the log. Sessions must have ended.
    pub fn shutdown(&self) -> Result<(), SqlError> {
        Ok(self.0.engine.shutdown()?)
    }
}

impl SessionFactory for Database {
    type Session = Session;

    fn is_administrator(&self, account: &AccountName) -> bool {
        Access::of_account(&self.0.engine.catalog(), account, &[], &[]).global().intersects(ADMINISTRATORS)
    }

    fn max_connections(&self) -> usize {
        self.0.globals.settings().max_connections
    }

    fn requires_secure_transport(&self) -> bool {
        self.0.globals.settings().require_secure_transport
    }

    fn connect_timeout(&self) -> Option<Duration> {
        Some(self.0.globals.settings().connect_timeout)
    }

    fn client_memory(&self) -> Option<Arc<dyn ClientMemory>> {
        Some(Arc::new(BudgetOfClients(self.0.engine.memory().clone())))
    }

    fn spill_folder(&self) -> Option<PathBuf> {
        self.0.spill.get().cloned()
    }

    fn open_behind_front(&self, info: SessionInfo) -> Result<Session, SqlError> {
        let info = SessionInfo { database: None, ..info };
        let mut session = Session::new(self.0.clone(), info, Access::embedded())?;
        session.is_behind_front = true;
        Ok(session)
    }

    fn open(&self, info: SessionInfo) -> Result<Session, SqlError> {
        let catalog = self.0.engine.catalog();
        let account = catalog.user(&info.account.user, &info.account.host);
        let expired = account.is_some_and(|account| self.has_expired_password(account));
        let access = Access::of_account(&catalog, &info.account, &[], &[]).with_expired_password(expired);
        Session::new(self.0.clone(), info, access)
    }
}

/// The part of the engine's budget that is counted as clients'.
struct BudgetOfClients(Arc<MemoryBudget>);

impl ClientMemory for BudgetOfClients {
    fn reserve(&self, bytes: usize) -> bool {
        self.0.reserve_for_client(bytes)
    }

    fn take(&self, bytes: usize) {
        self.0.take_for_client(bytes);
    }

    fn release(&self, bytes: usize) {
        self.0.release_of_client(bytes);
    }
}

/// Embedded sessions know of no others.
pub(super) struct NoConnections;

impl Connections for NoConnections {
    fn list(&self) -> Vec<ConnectionRow> {
        Vec::new()
    }

    fn kill(&self, connection_id: u32, _what: Interruption) -> Result<(), SqlError> {
        Err(ErrorCode::NO_SUCH_THREAD.with(&[&connection_id]))
    }

    fn set_database(&self, _connection_id: u32, _database: Option<&str>) {}
}
