//! A session: the state of one connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use avocet_base::Timestamp;
use avocet_channel::Status;
use avocet_engine::{AccountId, BackupLock, Catalog, Privileges, Txn};
use avocet_point::PointScratch;
use avocet_sql::parse::ast::Span;
use avocet_sql::parse::deprecated::Deprecated;
use avocet_sql::parse::statement::IsolationLevel;
use avocet_types::convert::ConvertContext;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalContext, SessionInfo as EvalSession, SqlMode, Warning};
use avocet_types::{Collation, Value};

use super::api::{SessionInfo, StatementId};
use super::candidate::PointMemory;
use super::held::UserVariables;
use super::locked::Locked;
use super::named_locks::{EndOfLocks, SessionHost, TimeLimit};
use super::plan_cache::RecentPlans;
use super::prepared_statement::PreparedStatement;
use super::privileges::access::Access;
use super::privileges::needs::Need;
use super::savepoints::Savepoints;
use super::server_functions::ServerFunctions;
use super::settings::Settings;
use super::shared::{Shared, stop_request};
use super::sql_mode;
use super::summaries::RecentSummaries;
use super::temporary::TemporaryTables;
use super::variables::SessionVariables;

/// How bad a condition of SHOW WARNINGS is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Note,
    Warning,
    Error,
}

#[derive(Clone, Debug)]
pub struct Condition {
    pub level: Level,
    pub errno: u16,
    pub message: String,
}

/// What `@@warning_count` and `@@error_count` say.
#[derive(Default)]
pub(super) struct ConditionCounts {
    pub warnings: u64,
    pub errors: u64,
    /// They are taken for a statement that begins once more, since its plan has not run it.
    are_taken: bool,
}

/// What a statement with hints changed, until it ends.
pub(super) struct Hinted {
    pub before: Vec<(usize, Value)>,
    /// What the hints are warned of: part of the statement's conditions, which begin anew with it.
    pub conditions: Vec<Condition>,
}

/// A transaction that the client began, with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Explicit {
    pub read_only: bool,
}

/// What SET TRANSACTION says of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Characteristics {
    pub level: Option<IsolationLevel>,
    pub read_only: Option<bool>,
}

/// One connection's state. Statements run in [`run`](super::run).
pub struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) info: SessionInfo,
    pub(super) variables: SessionVariables,
    pub(super) settings: Settings,
    pub(super) user_variables: UserVariables,
    /// The collation that the client signed in with, until it sets `character_set_results`.
    pub(super) results_collation: Option<Collation>,
    pub(super) database: Option<String>,
    /// The conditions of the last statement that was not itself about them.
    pub(super) conditions: Vec<Condition>,
    /// How many more there were than `max_error_count` lets be kept.
    pub(super) conditions_dropped: u64,
    pub(super) counts: ConditionCounts,
    pub(super) last_insert_id: u64,
    pub(super) row_count: i64,
    pub(super) found_rows: u64,
    pub(super) txn: Option<Txn>,
    /// The newest commit of others that its transactions have met: what it reads later has that.
    pub(super) newest_met: Timestamp,
    /// Set between BEGIN and the end of the transaction.
    pub(super) explicit: Option<Explicit>,
    /// SET TRANSACTION without a scope: for the next transaction only.
    pub(super) next: Characteristics,
    /// Of the running transaction.
    pub(super) running: Characteristics,
    /// The last statement failed because of its snapshot alone, and was taken back.
    pub(super) may_restart: bool,
    /// Of the running transaction, in the order in which they were set.
    pub(super) savepoints: Savepoints,
    /// When the running statement has to end; see [`Session::begin_time`].
    pub(super) deadline: Option<Instant>,
    /// A statement runs. Still set when the next one begins only if its future was dropped half-way.
    pub(super) in_flight: bool,
    pub(super) prepared: HashMap<StatementId, Arc<PreparedStatement>>,
    pub(super) named: HashMap<String, Arc<PreparedStatement>>,
    pub(super) next_statement: u32,
    pub(super) context: Arc<EvalContext>,
    pub(super) stop: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(super) more_results: bool,
    pub(super) point_scratch: PointScratch,
    pub(super) point_memory: PointMemory,
    pub(super) recent_plans: RecentPlans,
    pub(super) recent_summaries: RecentSummaries,
    pub(super) temporary: TemporaryTables,
    pub(super) host: EndOfLocks,
    /// What the running statement's optimizer hints changed.
    pub(super) hinted: Option<Box<Hinted>>,
    /// The session's own database while a statement runs that was prepared in another.
    left_database: Option<Option<String>>,
    /// A statement runs that was prepared with other settings.
    left_settings: bool,
    /// Expressions of the running statement assign to user variables.
    pub(super) assigns: bool,
    /// The deprecated syntax of its text; none of a statement that was prepared.
    pub(super) deprecated: Vec<Deprecated>,
    /// Variables that changed since the last reply, of those that the client wants to be told of.
    pub(super) changed_variables: Vec<usize>,
    /// What the account may do, as of the last statement.
    pub(super) access: Access,
    /// LOCK TABLES. Behind the transaction, which ends before.
    pub(super) locked: Option<Locked>,
    /// LOCK INSTANCE FOR BACKUP.
    pub(super) backup: Option<BackupLock>,
    /// What definers of views may do, as of the last statements that used them.
    pub(super) definers: HashMap<AccountId, Arc<Access>>,
    /// Its client signed in at the server that this one stands before.
    pub is_behind_front: bool,
    /// It runs what another server has done: `super_read_only` does not hold for it.
    pub(super) applies: bool,
    /// Where the running statement stands in the text that it came in, if others are in there.
    pub(super) part_of_text: Option<Span>,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, info: SessionInfo, access: Access) -> Result<Self, SqlError> {
        let variables = SessionVariables::new(shared.globals.clone());
        let settings = Settings::new(&variables.own);
        let seed = u64::from(info.connection_id).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ shared.engine.options().env.clock.wall_us() as u64;
        let user_variables = UserVariables::new(shared.engine.memory());
        let globals = shared.globals.clone();
        let folder = Box::new(move || globals.file_folder());
        let host = Arc::new(SessionHost {
            connection: info.connection_id,
            locks: shared.locks.clone(),
            interrupt: info.interrupt.clone(),
            time: TimeLimit::default(),
            replication: shared.replication.clone(),
            binary_log: shared.binary_log.clone(),
            replicas: shared.replicas.clone(),
            server: ServerFunctions::new(
                shared.engine.clone(),
                folder,
                info.connections.clone(),
                user_variables.values(),
            ),
            has_ended: AtomicBool::new(false),
        });
        let savepoints = Savepoints::none(shared.engine.memory());
        let mut session = Self {
            stop: stop_request(&info.interrupt),
            database: None,
            context: Arc::new(EvalContext::new(0, seed)),
            shared,
            variables,
            settings,
            user_variables,
            results_collation: None,
            conditions: Vec::new(),
            conditions_dropped: 0,
            counts: ConditionCounts::default(),
            last_insert_id: 0,
            row_count: 0,
            newest_met: Timestamp::MIN,
            found_rows: 0,
            txn: None,
            explicit: None,
            next: Characteristics::default(),
            running: Characteristics::default(),
            may_restart: false,
            savepoints,
            deadline: None,
            in_flight: false,
            prepared: HashMap::new(),
            named: HashMap::new(),
            next_statement: 1,
            more_results: false,
            point_scratch: PointScratch::default(),
            point_memory: PointMemory::default(),
            recent_plans: RecentPlans::default(),
            recent_summaries: RecentSummaries::default(),
            temporary: TemporaryTables::default(),
            host: EndOfLocks(host),
            hinted: None,
            left_database: None,
            left_settings: false,
            assigns: false,
            deprecated: Vec::new(),
            changed_variables: Vec::new(),
            access,
            locked: None,
            backup: None,
            definers: HashMap::new(),
            is_behind_front: false,
            applies: false,
            part_of_text: None,
            info,
        };
        session.begin_variables();
        session.begin_roles();
        session.note_rights();
        if let Some(name) = session.info.database.clone() {
            session.change_database(&name)?;
        }
        Ok(session)
    }

    /// Whether its queries are those of a session of the server that this one follows.
    pub(super) fn is_on_behalf(&self) -> bool {
        self.is_behind_front || self.settings.on_behalf
    }

    /// Tells functions what the account may do now.
    pub(super) fn note_rights(&self) {
        let held = |any: Privileges| self.access.is_embedded() || self.access.global().intersects(any);
        let sees_roles = held(Privileges::ROLE_ADMIN | Privileges::SUPER);
        self.host.0.server.set_rights(held(Privileges::FILE), sees_roles);
    }

    /// The variables of a new connection: the server's values, and what the handshake said.
    pub(super) fn begin_variables(&mut self) {
        self.variables.own = self.variables.globals.snapshot();
        let text = |s: &str| Value::Str(s.to_owned().into());
        let collation = Collation(self.info.collation);
        // An id that there is none of reads as the default's information.
        let info = collation.info();
        let own = &mut self.variables.own;
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            own.put_by_name(name, text(info.charset.name()));
        }
        own.put_by_name("collation_connection", text(info.name));
        let default = info.charset.default_collation();
        self.results_collation = Some(Collation(info.id)).filter(|collation| *collation != default);
        if self.info.interactive {
            let timeout = own.by_name("interactive_timeout").clone();
            own.put_by_name("wait_timeout", timeout);
        }
        if self.info.ignore_space
            && let Value::Str(modes) = own.by_name("sql_mode")
        {
            let modes = sql_mode::normalize(&format!("{modes},IGNORE_SPACE"));
            own.put_by_name("sql_mode", text(&modes.expect("modes as they are kept")));
        }
        own.put_by_name("pseudo_thread_id", Value::UInt(self.info.connection_id.into()));
        self.refresh();
    }

    /// After a change of variables.
    pub(super) fn refresh(&mut self) {
        self.settings = Settings::new(&self.variables.own);
    }

    /// What the session's statements see: its temporary tables before what is stored.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        let stored = self.stored_catalog();
        if self.temporary.is_empty() { stored } else { self.temporary.over(stored) }
    }

    pub(super) fn stored_catalog(&self) -> Arc<Catalog> {
        self.shared.engine.catalog()
    }

    pub(super) fn now_us(&self) -> i64 {
        self.settings.fixed_time.unwrap_or_else(|| self.shared.engine.options().env.clock.wall_us())
    }

    pub(super) fn change_database(&mut self, name: &str) -> Result<(), SqlError> {
        if name.is_empty() {
            return Err(ErrorCode::NO_DB_ERROR.with(&[]));
        }
        self.check_needs(&[Need::Use { database: name.to_owned() }])?;
        let catalog = self.catalog();
        let collation = match catalog.database(name) {
            Some(database) => database.collation,
            None if super::schemas::is_virtual(name) => Collation(33),
            None => return Err(ErrorCode::BAD_DB_ERROR.with(&[&name])),
        };
        self.enter_database(Some(name), collation);
        Ok(())
    }

    /// The default database is dropped: what is said of it is the server's, as MySQL has it.
    pub(super) fn leave_database(&mut self) {
        self.enter_database(None, self.settings.server_collation);
    }

    fn enter_database(&mut self, name: Option<&str>, collation: Collation) {
        let text = |s: &str| Value::Str(s.to_owned().into());
        self.variables.own.put_by_name("character_set_database", text(collation.info().charset.name()));
        self.variables.own.put_by_name("collation_database", text(collation.name()));
        self.refresh();
        self.database = name.map(str::to_owned);
        self.info.connections.set_database(self.info.connection_id, name);
    }

    /// A prepared statement runs in the database in which it was prepared, and by the settings that it was resolved by; to be taken
    /// back by `leave_prepared`.
    #[inline]
    pub(super) fn enter_prepared(&mut self, statement: &PreparedStatement) {
        if statement.resolved.put_in(&mut self.settings) {
            self.left_settings = true;
            self.tell_settings();
        }
        let database = statement.database.as_deref();
        if self.database.as_deref() != database {
            self.left_database = Some(std::mem::replace(&mut self.database, database.map(str::to_owned)));
            self.tell_database();
        }
    }

    /// What the statement that runs is evaluated by.
    fn tell_settings(&mut self) {
        if let Some(context) = Arc::get_mut(&mut self.context) {
            context.sql_mode = self.settings.sql_mode;
            context.div_precision_increment = self.settings.div_precision_increment;
            context.locale = self.settings.locale;
        }
    }

    /// What DATABASE() is in the statement that runs.
    fn tell_database(&mut self) {
        let database = self.if_there(self.database.clone());
        if let Some(context) = Arc::get_mut(&mut self.context) {
            context.session.database = database;
        }
    }

    /// A database, unless it has been dropped.
    fn if_there(&self, database: Option<String>) -> Option<String> {
        let catalog = self.catalog();
        database.filter(|name| catalog.database(name).is_some() || super::schemas::is_virtual(name))
    }

    #[inline]
    pub(super) fn leave_prepared(&mut self) {
        if std::mem::take(&mut self.left_settings) {
            self.refresh();
            self.tell_settings();
        }
        if let Some(before) = self.left_database.take() {
            // It may be the one that the statement has dropped.
            self.database = self.if_there(before);
            self.tell_database();
        }
    }

    /// The database that an unqualified name means; error 1046 if there is none.
    pub(super) fn current_database(&self) -> Result<&str, SqlError> {
        self.database.as_deref().ok_or_else(|| ErrorCode::NO_DB_ERROR.with(&[]))
    }

    /// Begins the time that `max_execution_time` gives a statement: only queries have such a limit. `is_one_row`: SLEEP
    /// answers in it also when it was cut short.
    pub(super) fn begin_time(&mut self, is_query: bool, is_one_row: bool) {
        let time = self.settings.max_execution_time.filter(|_| is_query);
        self.deadline = time.and_then(|time| Instant::now().checked_add(time));
        self.host.0.time.set(self.deadline, is_one_row || !is_query);
    }

    /// Makes the evaluation context of a new statement, in the memory of the last one's if nobody holds on to it.
    pub(super) fn begin_context(&mut self) {
        let now = self.now_us();
        if Arc::get_mut(&mut self.context).is_none() {
            let seed = self.context.next_random();
            self.context = Arc::new(EvalContext::new(now, seed));
        }
        let (settings, info) = (&self.settings, &self.info);
        let context = Arc::get_mut(&mut self.context).expect("nobody else has it");
        context.begin_statement(now);
        context.time_zone = settings.time_zone;
        context.sql_mode = settings.sql_mode;
        context.div_precision_increment = settings.div_precision_increment;
        context.default_week_format = settings.default_week_format;
        context.block_encryption = settings.block_encryption;
        context.locale = settings.locale;
        context.max_allowed_packet = settings.max_allowed_packet;
        context.group_concat_max_len = settings.group_concat_max_len;
        context.cte_max_recursion_depth = settings.cte_max_recursion_depth;
        (context.storing, context.ignoring) = (false, false);
        if context.host.is_none() {
            context.host = Some(self.host.0.clone());
        }
        let known = &mut context.session;
        if known.version.is_empty() {
            *known = EvalSession {
                connection_id: info.connection_id.into(),
                user: format!("{}@{}", info.account.user, info.client_host),
                current_user: format!("{}@{}", info.account.user, info.account.host),
                version: "8.4.13-avocet".into(),
                ..EvalSession::default()
            };
        }
        if !(known.current_role.is_empty() && self.access.roles().is_empty()) {
            known.current_role = self.access.roles_text();
        }
        known.connection_id = settings.pseudo_thread_id;
        if known.database != self.database {
            known.database.clone_from(&self.database);
        }
        known.last_insert_id = self.last_insert_id;
        known.row_count = self.row_count;
        known.found_rows = self.found_rows;
    }

    /// Within a statement that stores values, whether what does not fit is an error.
    pub(super) fn set_ignoring(&mut self, ignoring: bool) {
        if let Some(context) = Arc::get_mut(&mut self.context) {
            context.ignoring = ignoring;
        }
    }

    pub(super) fn set_storing(&mut self, storing: bool) {
        if let Some(context) = Arc::get_mut(&mut self.context) {
            context.storing = storing;
        }
    }

    pub(super) fn convert_context(&self, ignore: bool) -> ConvertContext {
        let context = &self.context;
        ConvertContext {
            strict: self.settings.sql_mode.is_strict() && !ignore,
            zone: self.settings.time_zone,
            today: avocet_types::temporal::date_of(context.local_now_micros()),
            excess_digits: self.settings.sql_mode.excess_digits(),
            zero_dates: self.settings.sql_mode.zero_dates(),
        }
    }

    pub(super) fn warn(&mut self, level: Level, errno: u16, message: String) {
        if level == Level::Note && !self.settings.notes {
            return;
        }
        if self.conditions.len() < self.settings.max_error_count {
            self.conditions.push(Condition { level, errno, message });
        } else {
            self.conditions_dropped += 1;
        }
    }

    pub(super) fn clear_conditions(&mut self) {
        self.conditions.clear();
        self.conditions_dropped = 0;
    }

    /// How many conditions there were, kept or not.
    pub(super) fn condition_count(&self) -> u64 {
        self.conditions.len() as u64 + self.conditions_dropped
    }

    pub(super) fn error_count(&self) -> u64 {
        self.conditions.iter().filter(|condition| condition.level == Level::Error).count() as u64
    }

    /// A statement begins, which may ask how many conditions the one before it had.
    pub(super) fn take_condition_counts(&mut self) {
        if !std::mem::take(&mut self.counts.are_taken) {
            (self.counts.warnings, self.counts.errors) = (self.condition_count(), self.error_count());
        }
    }

    /// The statement that has begun will begin once more: its plan has not run it.
    pub(super) fn keep_condition_counts(&mut self) {
        self.counts.are_taken = true;
    }

    pub(super) fn note(&mut self, error: &SqlError) {
        self.warn(Level::Note, error.errno, error.message.clone());
    }

    /// Takes over what evaluation warned of.
    pub(super) fn collect_warnings(&mut self) {
        if self.context.warning_count() > 0 {
            for Warning { errno, message, note } in self.context.take_warnings() {
                self.warn(if note { Level::Note } else { Level::Warning }, errno, message);
            }
        }
    }

    pub(super) fn status_now(&self) -> Status {
        Status {
            autocommit: self.settings.autocommit,
            in_transaction: self.in_transaction(),
            read_only: self.explicit.is_some_and(|e| e.read_only),
            more_results: self.more_results,
            out_parameters: false,
            no_index_used: false,
            no_backslash_escapes: self.settings.sql_mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
            client: self.settings.client_charset,
            results: self.settings.results_charset,
            results_collation: self.results_collation,
            warnings: self.condition_count().min(u16::MAX.into()) as u16,
        }
    }
}
