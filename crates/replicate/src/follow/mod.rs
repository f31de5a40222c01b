//! The applying thread: events and copied rows to commits, in the source's order.
//!
//! ```text
//!  stream ─▶ Transaction, events …, end ─┬─ row events ─▶ rows.rs ───────┐
//!                                        └─ statements ─▶ statements.rs ─┤
//!  copies ─▶ rows ──────────────────────────────────────▶ copied.rs ─────┴─▶ publish: one commit with the state
//! ```
//!
//! Several transactions of the source may be one commit here. A commit ends where one of them ends, and has the GTIDs of all
//! that is in it. So readers see states that the source has had, and a restart goes on where the rows are.
//!
//! Invariants:
//! 1. A transaction is in `executed` only if all of its changes are in the same commit or before it, or the tables that lack some are set
//!    aside by that commit.
//! 2. A table that is not exactly the source's at the position is withheld from everybody else.
//! 3. What is not understood stops the stream before its transaction; nothing is passed over.

mod acks;
mod anew;
mod cascades;
mod copied;
mod defaults;
mod maps;
mod names;
mod rows;
mod statements;
mod stuck;
mod tables;
#[cfg(test)]
mod tests;
mod unlogged;
mod words;
mod zone;

pub use rows::has_text_of;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use avocet_engine::{Applier, CommitTicket, Engine, EngineError, ReadScratch, TableHandle};
use avocet_types::error::SqlError;
use mysql::Opts;
use parking_lot::Mutex;

use self::cascades::Family;
use self::stuck::Stuck;
use crate::binlog::{Begins, Query, SessionOfQuery, Shape, TableCodec, TableMap, kind};
use crate::copy::{ByPlace, Copies, Resume, Watch, key_of};
use crate::error::{After, ReplicateError, Result};
use crate::gtid::{Gtid, GtidSet};
use crate::inbox::{FromStream, Inbox};
use crate::patterns::Patterns;
use crate::semisync::Acks;
use crate::source::{self, Connection, Flavor, LogsReplicated};
use crate::state::{LogPlace, State, TableName, TableState};
use crate::status::{Phase, Status};
use crate::stream;

/// The engine's number of the default channel's source.
pub const SOURCE: u32 = 1;
/// Changes that are in one commit at most, of more than one transaction.
const GROUP_CHANGES: u64 = 4096;
/// And for how long they are gathered.
const GROUP_TIME: Duration = Duration::from_millis(20);
/// How long the inbox is waited for before other work is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// The first wait before another attempt to connect; each is twice as long as the one before.
const BACK_OFF: Duration = Duration::from_millis(100);
/// Who followed for so long begins with the first again.
const CALM: Duration = Duration::from_secs(10);
/// A table whose copy failed rests for so long.
const COPY_REST: Duration = Duration::from_secs(1);
/// A table whose copies fail again and again rests for so long at most.
const LONGEST_REST: u32 = 32;
/// Failures after such a time begin with the shortest rest again.
const FAILURES_FORGOTTEN: Duration = Duration::from_secs(600);
/// How long readers of a table are waited for by definitions of the source, whose alternative is another copy.
const DEFINITION_WAIT: Duration = Duration::from_secs(30);
/// And by what clears a table for its copy, which can be done later.
const CLEARING_WAIT: Duration = Duration::from_secs(1);
/// Of a source without GTIDs: a transaction that was sent, and of which no row is known, is taken to be visible after so long.
const UNSEEN_REST: Duration = Duration::from_secs(10);

/// Runs definitions: SQL that no row event can express.
pub trait Definitions: Send {
    /// Runs one statement in a session like the one that it ran in at the source. Foreign keys are not checked. Readers of its tables are
    /// waited for so long: nothing else is applied meanwhile.
    fn run(
        &mut self,
        database: Option<&str>,
        session: &SessionOfQuery,
        sql: &str,
        lock_wait: Duration,
    ) -> Result<(), SqlError>;
}

/// How often tables have been withheld. A commit that lets a table go becomes visible later, and it may have been withheld anew by
/// then: then it is not let go.
#[derive(Default)]
pub struct Withholdings(Mutex<HashMap<TableName, u64>>);

/// The last time that a table was withheld, as of some moment.
pub struct Withholding {
    name: TableName,
    time: u64,
}

impl Withholdings {
    fn withhold(&self, engine: &Engine, name: &TableName, why: &str) {
        let mut times = self.0.lock();
        *times.entry(name.clone()).or_default() += 1;
        engine.withhold(&name.database, &name.table, why);
    }

    fn latest<'a>(&self, names: impl Iterator<Item = &'a TableName>) -> Vec<Withholding> {
        let times = self.0.lock();
        let latest = |name: &TableName| times.get(name).copied().unwrap_or_default();
        names.map(|name| Withholding { name: name.clone(), time: latest(name) }).collect()
    }

    pub fn release(&self, engine: &Engine, withheld: &[Withholding]) {
        let times = self.0.lock();
        for Withholding { name, time } in withheld {
            if times.get(name).copied().unwrap_or_default() == *time {
                engine.release(&name.database, &name.table);
            }
        }
    }
}

/// What becomes known once a commit is visible.
pub enum Announcement {
    Commit {
        ticket: CommitTicket,
        executed: GtidSet,
        committed_us: i64,
        release: Vec<Withholding>,
        place: LogPlace,
        /// What is in force then.
        state: Box<State>,
        /// Of a semi-synchronous stream.
        acks: Option<Arc<Acks>>,
    },
    /// Nothing stands between the last commit and this place in the source's log; and who is to be told of it.
    Place { source: String, place: LogPlace, acks: Option<Arc<Acks>> },
    /// A stream has ended, or another one begins: what stands behind its last place is not known.
    NoPlace,
}

pub struct Follower {
    pub engine: Arc<Engine>,
    pub applier: Applier,
    pub definitions: Box<dyn Definitions>,
    pub opts: Opts,
    /// Of the source, since the last connection: what it is, and which version.
    pub flavor: Flavor,
    pub version: u32,
    /// What foreign keys change is in its log: in what it writes now, and in what comes.
    pub can_log_cascades: bool,
    pub logs_cascades: bool,
    /// The source has triggers, or may have: statements change more than they name.
    pub may_have_triggers: bool,
    /// The source keeps the names of databases and tables in lower case.
    pub folds_names: bool,
    /// The source's machine has UTC, and has had it all the time.
    pub is_in_utc: bool,
    /// The engine's number of the source.
    pub number: u32,
    pub server_id: u32,
    pub patterns: Patterns,
    pub inbox: Arc<Inbox>,
    pub watch: Arc<Watch>,
    pub copies: Copies,
    pub status: Arc<Status>,
    pub state: State,
    pub announce: Sender<Announcement>,
    pub withholdings: Arc<Withholdings>,
    /// What was refused is tried once more: a start is when somebody may have mended it.
    pub tries_refused: bool,
    /// The longest wait between two attempts to connect.
    pub retry_after: Duration,
    /// The source's commits are to wait until they are durable here.
    pub semi_sync: bool,
    pub run: Run,
}

/// What is known since the stream began.
#[derive(Default)]
pub struct Run {
    maps: HashMap<u64, Mapped>,
    place: LogPlace,
    /// The transaction whose events come.
    open: Option<Open>,
    group: Group,
    scratch: ReadScratch,
    /// Tables whose copies rest, until then.
    resting: HashMap<TableName, Instant>,
    /// How often tables have failed, and when last.
    failures: HashMap<TableName, (u32, Instant)>,
    /// Transactions for which there is no room here, by their ids: their tables are set aside.
    oversized: BTreeSet<String>,
    /// Tables that the open transaction has changed.
    touched: BTreeSet<TableName>,
    /// What is done now is done to children, too: the source's log does not say it.
    cascades: bool,
    /// Names that are withheld by this.
    withheld: BTreeSet<TableName>,
    /// Of a source without GTIDs: where the last transaction ends is not known yet, so nothing is committed.
    awaits_place: bool,
    /// The source can wait for what is durable here, and is to.
    can_be_acked: bool,
    /// Of a stream that is semi-synchronous.
    acks: Option<Arc<Acks>>,
    /// Of a source without GTIDs, by table that waits to be copied: the last event of its rows, as it came.
    unread: HashMap<TableName, Unread>,
}

/// An event of rows whose table is not here, with its TABLE_MAP.
pub(crate) struct Unread {
    kind: u8,
    map: Vec<u8>,
    event: Vec<u8>,
}

struct Open {
    gtid: Option<Gtid>,
    /// Where its first event ends.
    place: LogPlace,
    committed_us: i64,
    shape: Shape,
    /// BEGIN has said that it goes on to a COMMIT, an XID or an XA_PREPARE.
    has_begun: bool,
}

impl Open {
    /// By which it is known after a restart.
    fn id(&self) -> String {
        self.gtid.as_ref().map_or_else(|| self.place.to_string(), ToString::to_string)
    }
}

/// Why a stream's events are not handled any more.
enum Next {
    Stop,
    OtherStream,
}

/// What the next commit has.
#[derive(Default)]
struct Group {
    transactions: u64,
    changes: u64,
    begun: Option<Instant>,
    committed_us: i64,
    /// The state differs from what is committed.
    is_changed: bool,
}

/// A table of the stream: its map, and what it is here.
struct Mapped {
    body: Vec<u8>,
    map: TableMap,
    name: TableName,
    /// `None` until a row event asks, and after the table's state has changed.
    target: Option<Target>,
}

enum Target {
    /// Nobody wants it.
    Unwanted,
    /// It is to be copied, so nothing is to be done.
    Aside,
    Table(Box<Applied>),
}

/// A table whose rows are applied.
struct Applied {
    table: Arc<TableHandle>,
    codec: TableCodec,
    /// Which index tells rows apart.
    key: usize,
    /// It is being copied or catching up: rows may be newer than the position.
    is_lenient: bool,
    /// Its generated columns, hidden ones too, which events may lack.
    generated: Vec<usize>,
    /// Its children that are being copied, where the log does not say what becomes of them.
    family: Option<Family>,
}

/// Why a change was not applied.
enum Setback {
    /// Its table cannot go on as it is.
    Table(String),
    /// There is no room for all that its transaction changes.
    TooLarge(String),
    Error(ReplicateError),
}

impl From<ReplicateError> for Setback {
    fn from(error: ReplicateError) -> Self {
        Self::Error(error)
    }
}

impl From<EngineError> for Setback {
    fn from(error: EngineError) -> Self {
        use EngineError as E;
        match &error {
            E::DuplicateKey { .. }
            | E::KeyTooLong { .. }
            | E::RowTooLarge { .. }
            | E::NullInColumn(_)
            | E::BadValue { .. }
            | E::NoSuchTable(..) => Self::Table(error.to_string()),
            E::TransactionTooLarge { .. } | E::RecordTooLarge { .. } => Self::TooLarge(error.to_string()),
            _ => Self::Error(error.into()),
        }
    }
}

impl Follower {
    /// Follows until it is stopped, or somebody has to look.
    pub fn follow(&mut self) {
        let mut back_off = BACK_OFF;
        let mut stuck = Stuck::default();
        while !self.inbox.is_stopped() {
            let begin = Instant::now();
            let ended = match self.begin().and_then(|()| self.go_on()) {
                Ok(Next::Stop) | Err(ReplicateError::Stopped) => break,
                Ok(Next::OtherStream) => None,
                Err(error) => Some(error),
            };
            self.applier.take_back();
            // Another server may have its address by now.
            self.tell(Announcement::NoPlace);
            // They have read on; what they sent last may be lost.
            self.state.tables.keys().for_each(|name| self.copies.cancel(name));
            let Run { withheld, unread, failures, oversized, .. } = std::mem::take(&mut self.run);
            self.run = Run { withheld, unread, failures, oversized, ..Run::default() };
            let Some(error) = ended else { continue };
            let text = error.to_string();
            let at = (&self.state.executed, self.state.place.as_ref());
            match stuck.after(&error, &text, at) {
                After::Halt => {
                    tracing::error!(error = text, "replication has halted; the data here stays as it is");
                    self.status.set_phase(Phase::Halted, Some(text));
                    return;
                }
                After::CopyAnew => {
                    tracing::warn!(error = text, "everything is copied again");
                    self.status.set_phase(Phase::Connecting, Some(text.clone()));
                    if let Err(error) = self.begin_anew(&text) {
                        tracing::warn!(%error, "it cannot be copied now");
                    }
                }
                After::Retry => {
                    tracing::warn!(
                        error = text,
                        "replication was interrupted; it goes on when the source is back"
                    );
                    self.status.set_phase(Phase::Connecting, Some(text));
                }
            }
            back_off = if begin.elapsed() > CALM { BACK_OFF } else { (back_off * 2).min(self.retry_after) };
            if self.inbox.wait_for_stop(back_off) {
                break;
            }
        }
        self.status.set_phase(Phase::Stopped, None);
    }

    /// Withholds what was unfinished when the server ended, before anybody is served.
    pub fn take_up(&mut self) -> Result<()> {
        if let Some(origin) = self.engine.applied(self.number) {
            self.state = State::decode(&origin.position).map_err(damaged_position)?;
            self.withhold_all();
            self.tries_refused = true;
            self.status.set_visible(self.state.executed.clone(), origin.wall_us);
            self.status.set_tables(&self.state);
        }
        Ok(())
    }

    /// Takes up what is committed, asks the source who it is, and starts the stream.
    fn begin(&mut self) -> Result<()> {
        let mut conn = source::connect(&self.opts)?;
        self.know(&mut conn)?;
        let identity = source::identity(&mut conn)?;
        let mut is_new = false;
        match self.engine.applied(self.number) {
            Some(origin) => {
                self.state = State::decode(&origin.position).map_err(damaged_position)?;
                let executed = &self.state.executed;
                let (other, is_other) = match self.flavor {
                    Flavor::MySql => ("MariaDB", executed.is_of_mariadb()),
                    Flavor::MariaDb => ("MySQL", executed.is_of_mysql()),
                };
                if is_other {
                    return Err(ReplicateError::Refused(format!(
                        "what is here is of a {other}, and the source is none: attach a new data directory to it"
                    )));
                }
                if self.state.source != identity {
                    self.go_over_to(&mut conn, identity)?;
                }
            }
            None => {
                let (executed, place) = source::beginning(&mut conn)?;
                self.state = State { source: identity, executed, place, ..State::default() };
                is_new = true;
            }
        }
        if std::mem::take(&mut self.tries_refused) {
            for state in
                self.state.tables.values_mut().filter(|state| matches!(state, TableState::Refused { .. }))
            {
                *state = TableState::Waiting { why: "it was refused before".into() };
            }
        }
        self.add_missing(&mut conn)?;
        self.set_unlogged_aside(&mut conn)?;
        if !self.state.is_whole() {
            let end = source::log_end(&mut conn)?;
            self.recopy_beyond(&end);
        }
        self.look_at_all_parents();
        self.withhold_all();
        self.commit()?;
        self.tell(Announcement::NoPlace);
        let acks = self.acks_of(&mut conn)?;
        // What is in force here, and what the source has executed by now, is before it. A source whose commits wait for this stream may
        // not say it before that has begun; then there is nothing to copy, either.
        let end = match acks {
            Some(_) => self.state.place.clone().unwrap_or_default(),
            None => source::log_end(&mut conn)?,
        };
        let not_before = (!is_new).then(|| Instant::now() + UNSEEN_REST);
        let by_place = self.state.place.as_ref().map(|_| ByPlace { not_before, last_row: None });
        self.watch.begin_stream(&self.state.source, &self.state.executed, end, by_place);
        self.resume_copies();
        let from = match &self.state.place {
            Some(place) => stream::From::Place(place.clone()),
            None => stream::From::Gtids(self.state.executed.clone()),
        };
        let request = stream::Request {
            opts: self.opts.clone(),
            flavor: self.flavor,
            server_id: self.server_id,
            from,
            acks: acks.clone(),
        };
        self.run.acks = acks;
        self.status.set_phase(Phase::Following, None);
        stream::start(request, self.status.clone(), self.inbox.clone());
        Ok(())
    }

    fn know(&mut self, conn: &mut Connection) -> Result<()> {
        self.flavor = conn.flavor;
        self.version = conn.version.0.unwrap_or_default();
        self.can_log_cascades = source::logs_cascades(conn)?;
        // One that is gone may have been there when what comes was written.
        self.may_have_triggers |= source::may_have_triggers(conn)?;
        self.logs_cascades = self.can_log_cascades;
        self.folds_names = source::folds_names(conn)?;
        self.is_in_utc &= source::is_in_utc(conn)?;
        match source::logs_replicated(conn)? {
            (LogsReplicated::No, variable) => {
                let (why, cure) = source::unlogged(variable);
                Err(ReplicateError::Refused(format!("{why}: {cure}")))
            }
            _ => Ok(()),
        }
    }

    fn resume_copies(&mut self) {
        let catalog = self.engine.catalog();
        let mut lost = Vec::new();
        for (name, state) in &self.state.tables {
            let TableState::Copying { definition, after } = state else { continue };
            if self.copies.has(name) {
                continue;
            }
            match catalog.table(&name.database, &name.table) {
                Some(table) => {
                    let (table, definition, after) = (table.clone(), definition.clone(), after.clone());
                    self.copies.add(name, Some(Resume { table, definition, after }));
                }
                None => lost.push(name.clone()),
            }
        }
        for name in lost {
            self.set_aside(&name, "its copy is gone");
        }
    }

    /// Handles what comes, until the stream ends.
    fn go_on(&mut self) -> Result<Next> {
        loop {
            if self.inbox.is_stopped() {
                self.publish()?;
                return Ok(Next::Stop);
            }
            if self.is_at_boundary() {
                if self.wants_other_stream() {
                    self.publish()?;
                    return Ok(Next::OtherStream);
                }
                for name in self.inbox.take_doubted() {
                    self.set_aside(&name, "CHECK REPLICATION has found that it differs from the source's");
                }
                while let Some(copy) = self.inbox.next_copy() {
                    self.copied(copy)?;
                }
                self.start_copies();
                if self.is_group_full() {
                    self.publish()?;
                }
            }
            match self.inbox.next_event(Instant::now() + LOOK, self.is_at_boundary()) {
                Some(FromStream::Ended(error)) => return Err(error),
                Some(FromStream::Reached(place)) => self.reached(place)?,
                Some(FromStream::Transaction { begins, place }) => {
                    if self.run.open.is_some() {
                        return Err(ReplicateError::damaged("a transaction begins within another"));
                    }
                    let Begins { gtid, committed_us, shape } = begins;
                    if gtid.is_none() && self.state.place.is_none() {
                        return Err(ReplicateError::Refused(
                            "the source has written a transaction without a GTID: set gtid_mode to ON there, and attach anew"
                                .into(),
                        ));
                    }
                    self.watch.received(gtid.as_ref(), &place);
                    self.run.open = Some(Open { gtid, place, committed_us, shape, has_begun: false });
                    self.run.touched.clear();
                    self.run.forget_maps();
                }
                Some(FromStream::Event { kind, began, body }) => self.event(kind, began, &body)?,
                None => {}
            }
        }
    }

    /// Whether all that was applied is of whole transactions, and it is known where they end.
    fn is_at_boundary(&self) -> bool {
        self.run.open.is_none() && !self.run.awaits_place
    }

    fn is_group_full(&self) -> bool {
        let group = &self.run.group;
        let is_old = group.begun.is_some_and(|begun| begun.elapsed() >= GROUP_TIME);
        group.is_changed && (is_old || group.changes >= GROUP_CHANGES || !self.inbox.has_events())
    }

    fn reached(&mut self, place: LogPlace) -> Result<()> {
        self.run.place = place;
        if self.run.open.is_none()
            && let Some(in_force) = &mut self.state.place
        {
            in_force.clone_from(&self.run.place);
            self.run.awaits_place = false;
        }
        let is_idle = !self.inbox.has_events();
        if is_idle || self.run.group.changes >= GROUP_CHANGES {
            self.status.set_place(&self.run.place, is_idle);
        }
        let place = &self.run.place;
        let has_caught_up =
            |state: &TableState| matches!(state, TableState::CatchingUp { until } if place.reaches(until));
        if self.run.open.is_none() && self.state.tables.values().any(has_caught_up) {
            self.run.group.is_changed = true;
        }
        // What the next commit has is not visible before that.
        let is_told = is_idle || self.run.acks.is_some();
        if is_told && self.run.open.is_none() && !self.run.group.is_changed {
            let acks = self.run.acks.clone().filter(|_| self.state.is_whole());
            let (source, place) = (self.state.source.clone(), self.run.place.clone());
            self.tell(Announcement::Place { source, place, acks });
        }
        Ok(())
    }

    fn event(&mut self, event_kind: u8, began: u32, body: &[u8]) -> Result<()> {
        match event_kind {
            kind::TABLE_MAP => {
                let patterns = &self.patterns;
                self.run.map_table(body, self.flavor, |database, table| patterns.names_table(database, table))
            }
            kind::WRITE_ROWS..=kind::DELETE_ROWS
            | kind::WRITE_ROWS_V1..=kind::DELETE_ROWS_V1
            | kind::PARTIAL_UPDATE_ROWS => self.row_event(event_kind, body),
            kind::XID => self.end_transaction(),
            kind::QUERY => self.query(Query::read(body, began)?),
            kind::EXECUTE_LOAD_QUERY => self.query(Query::read_load(body, began)?),
            kind::XA_PREPARE => self.xa_prepare(body),
            kind::FORMAT_DESCRIPTION => {
                self.written_by(server_version(body));
                Ok(())
            }
            // They describe the log, or what follows for people.
            kind::PREVIOUS_GTIDS
            | kind::STOP
            | kind::ROWS_QUERY
            | kind::IGNORABLE
            | kind::TRANSACTION_CONTEXT
            | kind::VIEW_CHANGE => Ok(()),
            // The source sends events as they were before it encrypted its log.
            kind::ANNOTATE_ROWS | kind::BINLOG_CHECKPOINT | kind::GTID_LIST | kind::START_ENCRYPTION => {
                Ok(())
            }
            // They belong to a statement that follows, which is looked at.
            kind::INTVAR
            | kind::RAND
            | kind::USER_VAR
            | kind::BEGIN_LOAD_QUERY
            | kind::APPEND_BLOCK
            | kind::DELETE_FILE => Ok(()),
            kind::INCIDENT => {
                Err(ReplicateError::Purged("the source notes that its log has lost changes".into()))
            }
            other => Err(ReplicateError::Refused(format!(
                "event {other} of the source's log is not known: this version cannot follow it beyond {}",
                self.state.executed
            ))),
        }
    }

    /// What a table of the stream is here.
    fn target_of(&mut self, map: &TableMap, name: &TableName) -> Result<Target> {
        if !self.patterns.names_table(&name.database, &name.table) || !self.claim(name)? {
            return Ok(Target::Unwanted);
        }
        let state = self.state.tables.get(name);
        let is_lenient = match state {
            Some(TableState::Waiting { .. } | TableState::Refused { .. }) => return Ok(Target::Aside),
            Some(TableState::Copying { .. } | TableState::CatchingUp { .. }) => true,
            None => false,
        };
        if let Some(why) = &map.unread {
            self.set_aside_failed(name, why);
            return Ok(Target::Aside);
        }
        // A MySQL says at least which numbers have signs; then columns are known by their order.
        if !map.is_full && self.flavor == Flavor::MariaDb {
            return Err(ReplicateError::Refused(
                "the source writes row events without the names of their columns: SET GLOBAL binlog_row_metadata = FULL there, then \
                 FLUSH BINARY LOGS, and attach a new data directory"
                    .into(),
            ));
        }
        let catalog = self.engine.catalog();
        let Some(table) = catalog.table(&name.database, &name.table) else {
            self.set_aside(name, "the source has changed its rows, and it is not here");
            return Ok(Target::Aside);
        };
        let codec = TableCodec::new(map, &table.def);
        let codec = codec.and_then(|codec| match key_of(&table.def) {
            Some(key) => Ok((codec, key)),
            None => Err("it has no key".into()),
        });
        match codec {
            Ok((codec, key)) => {
                let family = self.family_of(name, table);
                let columns = table.def.columns.iter().enumerate();
                let generated =
                    columns.filter(|(_, column)| column.generated.is_some()).map(|(at, _)| at).collect();
                let table = table.clone();
                Ok(Target::Table(Box::new(Applied { table, codec, key, is_lenient, generated, family })))
            }
            Err(why) => {
                self.set_aside_failed(name, &why);
                Ok(Target::Aside)
            }
        }
    }

    fn end_transaction(&mut self) -> Result<()> {
        let Some(open) = self.run.open.take() else {
            return Err(ReplicateError::damaged("a transaction ends that has not begun"));
        };
        match (&self.state.place, &open.gtid) {
            (None, Some(gtid)) => self.state.executed.add(gtid),
            // The next thing that comes is where it ends.
            _ => self.run.awaits_place = true,
        }
        let group = &mut self.run.group;
        group.begun.get_or_insert_with(Instant::now);
        group.transactions += 1;
        group.committed_us = open.committed_us;
        group.is_changed = true;
        Ok(())
    }

    /// Commits what has been applied, if anything was, unless the stream is within a transaction.
    fn publish(&mut self) -> Result<()> {
        if !self.run.group.is_changed || !self.is_at_boundary() {
            return Ok(());
        }
        self.commit()
    }

    fn commit(&mut self) -> Result<()> {
        let place = &self.run.place;
        let has_caught_up =
            |state: &TableState| matches!(state, TableState::CatchingUp { until } if place.reaches(until));
        let caught_up: Vec<TableName> = self
            .state
            .tables
            .iter()
            .filter(|(_, state)| has_caught_up(state))
            .map(|(name, _)| name.clone())
            .collect();
        for name in &caught_up {
            tracing::info!(table = %name, "followed from here on");
            self.state.tables.remove(name);
            self.changed(name);
        }
        let committed_us = self.run.group.committed_us;
        let ticket = self.applier.publish(&self.state.encode(), committed_us)?;
        let followed = self.run.withheld.iter().filter(|name| !self.state.tables.contains_key(*name));
        let release = self.withholdings.latest(followed);
        self.run.withheld.retain(|name| self.state.tables.contains_key(name));
        let executed = self.state.executed.clone();
        self.status.count(self.run.group.transactions, self.run.group.changes);
        self.run.group = Group::default();
        self.tell(Announcement::Commit {
            ticket,
            executed,
            committed_us,
            release,
            place: self.run.place.clone(),
            state: Box::new(self.state.clone()),
            acks: self.run.acks.clone(),
        });
        Ok(())
    }

    fn tell(&self, announcement: Announcement) {
        // Whoever announces ends after this thread.
        let _ = self.announce.send(announcement);
    }
}

/// Which version has written a file of the log; its first event says so.
fn server_version(description: &[u8]) -> Option<u32> {
    let text = description.get(2..52)?;
    source::number_of(std::str::from_utf8(text).ok()?.trim_end_matches('\0'))
}

fn damaged_position(error: impl std::fmt::Display) -> ReplicateError {
    ReplicateError::Refused(format!("the position here is damaged: {error}"))
}

fn withheld_because(state: &TableState) -> String {
    match state {
        TableState::Waiting { why } => format!("it is copied from the source again: {why}"),
        TableState::Copying { .. } | TableState::CatchingUp { .. } => {
            "it is being copied from the source".into()
        }
        TableState::Refused { why } => format!("it cannot be followed: {why}"),
    }
}
