//! A promotion: this server takes the place of the one that it follows, step by step, while clients write to that one.
//!
//! ```text
//!  check ─▶ verify ─▶ stop writes ─▶ catch up ─▶ verify ─▶ accounts ─▶ counters ─▶ become primary
//!                          │ promotion.json                                              │ promoted.json
//!                          ╰──────── what fails here gives the source its writes back ───╯
//! ```
//!
//! Invariants:
//! 1. The source takes no writes from the moment on at which this server could become a primary, over restarts of either, and it gets them
//!    back only while this server is a replica for certain.
//! 2. Nothing that the source has acknowledged is missing here: what it has executed is read after its writes have stopped, awaited, and
//!    read again when nothing is applied here any more.
//! 3. Whoever dies in the middle leaves a replica, and `promotion.json`; or a primary, and `promoted.json`.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_channel::blocking::blocking;
use avocet_replicate::promote::{self, Applied, Fence, Was};
use avocet_replicate::source::{self, Connection, Flavor, Severity, variable};
use avocet_replicate::{Pattern, Phase, TableName};
use avocet_session::replication::{PromoteAction, PromoteOptions, PromoteVerify, Promotion, PromotionStep};
use avocet_types::error::{ErrorCode, SqlError};
use mysql::{Opts, OptsBuilder};

use super::promoted::{Promoted, Stopping, durable};
use super::role::Promoting;
use super::{Replica, Source, carried, channels};

/// For how long writes are stopped at most, unless somebody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A copy that is farther behind is not waited for.
const LAG: Duration = Duration::from_secs(10);
/// For how long the source may take for an answer while it takes writes, and at least.
const SURVEY: Duration = Duration::from_secs(60);
const LEAST: Duration = Duration::from_secs(1);
/// How long a source that cannot be reached is tried to be given its writes back.
const PERSISTENCE: Duration = Duration::from_secs(20);

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Undo,
    Check,
    VerifyBefore,
    StopWrites,
    CatchUp,
    VerifyStopped,
    Accounts,
    Counters,
    Become,
    Ended,
}

/// A promotion that runs.
pub struct Running {
    replica: Arc<Replica>,
    options: PromoteOptions,
    source: Source,
    /// Who stops writes.
    opts: Opts,
    allowed: Vec<Pattern>,
    /// Tables that are compared; all if there are none.
    verified: Vec<Pattern>,
    begun: Instant,
    stage: Stage,
    told: VecDeque<PromotionStep>,
    /// Writes at the source are stopped, or may be, and must be given back.
    stopping: Option<Stopping>,
    fence: Option<Fence>,
    /// When writes must be possible again, here or there.
    deadline: Instant,
    /// Nothing is applied any more.
    is_detached: bool,
    _promoting: Promoting,
}

/// Why it cannot go on.
type Refusal = String;

fn refused(why: impl Display) -> SqlError {
    ErrorCode::UNKNOWN_ERROR.because(why.to_string())
}

fn text(error: impl Display) -> Refusal {
    error.to_string()
}

fn patterns(texts: &[String]) -> Result<Vec<Pattern>, SqlError> {
    texts.iter().map(|text| text.parse().map_err(|error: String| refused(error))).collect()
}

impl Running {
    pub fn begin(
        replica: Arc<Replica>,
        options: &PromoteOptions,
        promoting: Promoting,
    ) -> Result<Self, SqlError> {
        if let Some(promoted) = replica.role.promoted() {
            return Err(refused(promoted));
        }
        let source = replica.state.lock().source.clone();
        let source =
            source.ok_or_else(|| refused("no source is followed, whose place this server could take"))?;
        let (allowed, verified) = (patterns(&options.allow_left_out)?, patterns(&options.verify_tables)?);
        let mut opts = source.opts.clone();
        if let Some(user) = &options.source_user {
            let admin = OptsBuilder::from_opts(opts).user(Some(user)).pass(options.source_password.clone());
            opts = admin.into();
        }
        let stage = match options.action {
            PromoteAction::Undo => Stage::Undo,
            PromoteAction::Promote | PromoteAction::Check => Stage::Check,
        };
        Ok(Self {
            replica,
            options: options.clone(),
            source,
            opts,
            allowed,
            verified,
            begun: Instant::now(),
            stage,
            told: VecDeque::new(),
            stopping: None,
            fence: None,
            deadline: Instant::now(),
            is_detached: false,
            _promoting: promoting,
        })
    }

    fn say(&mut self, step: &'static str, result: &'static str, detail: impl Into<String>) {
        let detail = detail.into();
        let milliseconds = self.begun.elapsed().as_millis() as u64;
        tracing::info!("promotion, {milliseconds} ms: {step}: {result}: {detail}");
        self.told.push_back(PromotionStep { step, result, detail, milliseconds });
    }

    fn place(&self) -> String {
        super::place(&self.opts)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn check_time(&self, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        match () {
            () if stop() => Err("it was interrupted".into()),
            () if self.left().is_zero() => Err(format!(
                "it took longer than the {} s for which writes may be stopped: raise TIMEOUT",
                self.timeout().as_secs()
            )),
            () => Ok(()),
        }
    }

    /// A connection whose answers are not awaited for longer than this.
    fn connect(&self, at_most: Duration) -> Result<Connection, Refusal> {
        source::connect(&source::within(&self.opts, at_most.max(LEAST))).map_err(text)
    }

    /// Whether a connection has led to the server that is followed: behind a proxy may be several.
    fn check_identity(&self, is: &str) -> Result<(), Refusal> {
        let applied = Applied::of(self.replica.database.engine(), self.replica.number).map_err(text)?;
        match applied.map(|applied| applied.source) {
            Some(followed) if followed != is => Err(format!(
                "{} is not the server that is followed ({is}, not {followed}): connections may go to several servers there, whose writes \
                 cannot all be stopped; follow the server by an address of its own",
                self.place()
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn timeout(&self) -> Duration {
        self.options.timeout_seconds.map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.into()))
    }

    fn verifies(&self, stage: Stage) -> bool {
        match self.options.verify {
            PromoteVerify::None => false,
            PromoteVerify::Before => stage == Stage::VerifyBefore,
            PromoteVerify::Stopped => stage == Stage::VerifyStopped,
            PromoteVerify::Both => true,
        }
    }

    /// Does what is to be done next, and says what is to be done then.
    fn advance(&mut self, stop: &dyn Fn() -> bool) -> Result<Stage, Refusal> {
        Ok(match self.stage {
            Stage::Undo => {
                self.undo_interrupted()?;
                Stage::Ended
            }
            Stage::Check => {
                if self.options.action == PromoteAction::Promote {
                    self.take_over_interrupted()?;
                }
                self.check(stop)?;
                match self.options.action {
                    PromoteAction::Check => Stage::Ended,
                    _ => Stage::VerifyBefore,
                }
            }
            Stage::VerifyBefore => {
                if self.verifies(Stage::VerifyBefore) {
                    self.verify("verify before", false, stop)?;
                }
                Stage::StopWrites
            }
            Stage::StopWrites => {
                self.stop_writes(stop)?;
                Stage::CatchUp
            }
            Stage::CatchUp => {
                self.catch_up(stop)?;
                Stage::VerifyStopped
            }
            Stage::VerifyStopped => {
                if self.verifies(Stage::VerifyStopped) {
                    self.verify("verify stopped", true, stop)?;
                }
                Stage::Accounts
            }
            Stage::Accounts => {
                if self.options.accounts {
                    self.copy_accounts(stop)?;
                }
                Stage::Counters
            }
            Stage::Counters => {
                self.raise_counters(stop)?;
                Stage::Become
            }
            Stage::Become => {
                self.become_primary(stop)?;
                Stage::Ended
            }
            Stage::Ended => Stage::Ended,
        })
    }

    fn undo_interrupted(&mut self) -> Result<(), Refusal> {
        let stopping = Stopping::open(&self.replica.database)?;
        let stopping = stopping.ok_or("no promotion was cut short: the source is as it was")?;
        self.check_is_same(&stopping)?;
        promote::undo(&self.opts, &stopping.source_id, &stopping.was, PERSISTENCE)
            .map_err(|error| format!("{}: {error}; there by hand: {}", stopping.source, stopping.cure()))?;
        Stopping::forget(&self.replica.database)?;
        self.say("undo", "ok", format!("{} takes writes as it did before the promotion", stopping.source));
        Ok(())
    }

    /// Whatever fails from here on gives the source the writes back that an earlier promotion has stopped.
    fn take_over_interrupted(&mut self) -> Result<(), Refusal> {
        if let Some(stopping) = Stopping::open(&self.replica.database)? {
            self.check_is_same(&stopping)?;
            let source = stopping.source.clone();
            self.stopping = Some(stopping);
            self.say(
                "check",
                "note",
                format!("an earlier promotion has stopped writes at {source}, and this one goes on with it"),
            );
        }
        Ok(())
    }

    fn check_is_same(&self, stopping: &Stopping) -> Result<(), Refusal> {
        match stopping.source == self.place() {
            true => Ok(()),
            false => Err(format!(
                "a promotion was cut short whose source was {}, and {} is followed now: there by hand: {}; then remove promotion.json from \
                 the data directory",
                stopping.source,
                self.place(),
                stopping.cure()
            )),
        }
    }

    fn check(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let shown = self.replica.status.snapshot();
        if let Some(broken) = self.replica.status.broken() {
            return Err(format!("replication does not run: {}", broken.0));
        }
        if shown.phase != Phase::Following {
            let why = shown.last_error.map(|error| format!(": {error}")).unwrap_or_default();
            return Err(format!("the source is not connected{why}"));
        }
        let applied = Applied::of(self.replica.database.engine(), self.replica.number).map_err(text)?;
        if applied.is_some_and(|applied| applied.by_place) {
            return Err("the source is followed by file and position, which do not tell what is in force here: set its gtid_mode to ON, \
                 and attach a new data directory"
                .into());
        }
        let mut conn = self.connect(SURVEY)?;
        self.check_identity(&source::identity(&mut conn).map_err(text)?)?;
        let report =
            promote::survey(&mut conn, &self.source.patterns, self.options.accounts).map_err(text)?;
        let mut fatal = Vec::new();
        for finding in report.findings {
            let cure = finding.cure.map(|cure| format!(" → {cure}")).unwrap_or_default();
            let told = format!("{}{cure}", finding.what);
            match finding.severity {
                Severity::Fatal => fatal.push(told),
                Severity::Fine => self.say("check", "ok", told),
                Severity::Notice | Severity::Partly => self.say("check", "note", told),
            }
        }
        if !fatal.is_empty() {
            return Err(fatal.join("; "));
        }
        self.check_tables(Some(&mut conn))?;
        self.check_way_back(&mut conn)?;
        let executed = source::executed(&mut conn).map_err(text)?;
        let begin = Instant::now();
        let reached = self.replica.status.wait_unless_broken(&executed, LAG, stop);
        if !reached.map_err(|broken| broken.0)? {
            return Err(format!(
                "the copy here is more than {} s behind the source: wait until SHOW REPLICA STATUS says less",
                LAG.as_secs()
            ));
        }
        let took = begin.elapsed().as_millis();
        self.say("check", "ok", format!("what the source has committed was visible here after {took} ms"));
        Ok(())
    }

    /// Every table is followed, or may stay behind. With a connection, those are looked at, too, that nobody wanted to follow.
    fn check_tables(&mut self, conn: Option<&mut Connection>) -> Result<(), Refusal> {
        let mut behind = self.replica.status.snapshot().tables;
        let has_looked = conn.is_some();
        if let Some(conn) = conn {
            let left_out = promote::left_out(conn, &self.source.patterns).map_err(text)?;
            behind
                .extend(left_out.into_iter().map(|name| (name, "left out by --include or --exclude".into())));
        }
        let (allowed, missing): (Vec<_>, Vec<_>) =
            behind.into_iter().partition(|(name, _)| self.may_stay_behind(name));
        if !missing.is_empty() {
            let told: Vec<String> = missing.iter().map(|(name, why)| format!("{name} ({why})")).collect();
            let names: Vec<String> = missing.iter().map(|(name, _)| format!("'{name}'")).collect();
            return Err(format!(
                "tables of the source are not here: {}; if they may stay behind, ALLOW_LEFT_OUT = ({})",
                told.join(", "),
                names.join(", ")
            ));
        }
        if has_looked {
            for (name, why) in allowed {
                self.say("check", "note", format!("{name} stays behind: {why}"));
            }
            self.say("check", "ok", "all other tables are followed");
        }
        Ok(())
    }

    fn may_stay_behind(&self, name: &TableName) -> bool {
        may_stay_behind(&self.allowed, name)
    }

    /// Whether the source can follow this server afterwards.
    fn check_way_back(&mut self, conn: &mut Connection) -> Result<(), Refusal> {
        let Some(log) = self.replica.log.clone() else {
            self.say(
                "check",
                "note",
                "there is no binary log here: the old source will not be able to follow this server → start this one with --log-bin first",
            );
            return Ok(());
        };
        let id = variable(conn, "server_id").map_err(text)?.unwrap_or_default();
        if id == log.server_id().to_string() {
            return Err(format!(
                "both servers have the server id {id}, with which neither can follow the other: start this one with another --server-id"
            ));
        }
        let told = match conn.flavor {
            Flavor::MySql => {
                "the binary log here begins behind the source's transactions: the source can follow this server"
            }
            Flavor::MariaDb => {
                "the binary log here begins at the promotion: the source can follow this server by file and position"
            }
        };
        self.say("check", "ok", told);
        Ok(())
    }

    /// Names of the tables to be compared; none for all.
    fn verified_tables(&self) -> Result<Vec<(String, String)>, Refusal> {
        if self.verified.is_empty() {
            return Ok(Vec::new());
        }
        let catalog = self.replica.database.engine().catalog();
        let names = catalog.tables().map(|table| (table.def.database.clone(), table.def.name.clone()));
        let named: Vec<_> = names
            .filter(|(database, table)| {
                self.source.patterns.has_table(database, table)
                    && self.verified.iter().any(|pattern| pattern.has(database, table))
            })
            .collect();
        match named.is_empty() {
            true => Err("VERIFY_TABLES names no table that is followed".into()),
            false => Ok(named),
        }
    }

    /// Compares tables by value.
    fn verify(
        &mut self,
        step: &'static str,
        is_stopped: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Refusal> {
        let deadline = is_stopped.then_some(self.deadline);
        let stop_or_late = || stop() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let patience = if is_stopped { self.left().max(LEAST) } else { channels::PATIENCE };
        let compared = self.replica.check(&self.verified_tables()?, false, patience, &stop_or_late);
        if is_stopped {
            self.check_time(stop)?;
        }
        let (mut tables, mut rows, mut bad) = (0, 0, Vec::new());
        for table in compared? {
            let name = TableName { database: table.database, table: table.table };
            match table.verdict {
                "equal" => {
                    tables += 1;
                    rows += table.rows;
                }
                "unknown" if self.may_stay_behind(&name) => {}
                // A table whose rows change all the time.
                "unknown" if !is_stopped => {
                    self.say(step, "note", format!("{name}: {} → VERIFY = STOPPED can tell", table.detail));
                }
                _ => bad.push(format!("{name}: {}", table.detail)),
            }
        }
        if !bad.is_empty() {
            let bad = bad.join("; ");
            return Err(format!(
                "tables are not the source's: {bad}; CHECK REPLICATION TABLE … REPAIR copies them again"
            ));
        }
        self.say(step, "ok", format!("{tables} tables, {rows} rows are the source's"));
        Ok(())
    }

    fn stop_writes(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        self.deadline = Instant::now() + self.timeout();
        self.check_time(stop)?;
        let mut fence = Fence::connect(&self.opts, self.left()).map_err(text)?;
        let conn = fence.connection();
        let source_id = source::identity(conn).map_err(text)?;
        self.check_identity(&source_id)?;
        let was = match &self.stopping {
            // What it is now, an interrupted promotion has made of it.
            Some(Stopping { source_id: of, was, .. }) if of.is_empty() || *of == source_id => was.clone(),
            _ => Was::of(conn).map_err(text)?,
        };
        let (source, is_mariadb) = (self.place(), conn.flavor == Flavor::MariaDb);
        let stopping = Stopping { source, source_id, is_mariadb, was };
        stopping.keep(&self.replica.database)?;
        self.stopping = Some(stopping);
        let begin = Instant::now();
        fence.stop_writes(self.left(), stop).map_err(text)?;
        self.fence = Some(fence);
        let took = begin.elapsed().as_millis();
        self.say("stop writes", "ok", format!("{} takes no writes, after {took} ms", self.place()));
        Ok(())
    }

    fn fence(&mut self) -> Result<&mut Fence, Refusal> {
        self.fence.as_mut().ok_or_else(|| "writes at the source are not stopped".into())
    }

    fn catch_up(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let begin = Instant::now();
        let executed = self.fence()?.executed().map_err(text)?;
        let reached = self.replica.status.wait_unless_broken(&executed, self.left(), stop);
        if !reached.map_err(|broken| format!("replication has stopped: {}", broken.0))? {
            self.check_time(stop)?;
            return Err("the copy here does not reach what the source has committed".into());
        }
        self.check_tables(None)?;
        let applied = Applied::of(self.replica.database.engine(), self.replica.number).map_err(text)?;
        check_applied(applied.as_ref(), &self.allowed)?;
        let took = begin.elapsed().as_millis();
        self.say(
            "catch up",
            "ok",
            format!("all that the source has committed is here, after {took} ms: {executed}"),
        );
        Ok(())
    }

    fn copy_accounts(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let accounts = promote::accounts(&mut self.connect(self.left())?).map_err(text)?;
        self.check_time(stop)?;
        let carried = carried::accounts(&self.replica.database, &accounts).map_err(text)?;
        for left in carried.left {
            self.say("accounts", "note", left);
        }
        self.say("accounts", "ok", format!("{} accounts are here as at the source", carried.made));
        Ok(())
    }

    fn raise_counters(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let patterns = self.source.patterns.clone();
        let counters = promote::counters(&mut self.connect(self.left())?, &patterns).map_err(text)?;
        self.check_time(stop)?;
        let raised = carried::counters(&self.replica.database, &counters).map_err(text)?;
        self.say("counters", "ok", format!("{} AUTO_INCREMENT values go on behind the source's", raised));
        Ok(())
    }

    fn become_primary(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        self.check_time(stop)?;
        // From here on, a source that is restarted takes no writes either.
        let lasts = self.fence()?.persist().map_err(text)?;
        let replica = self.replica.clone();
        let (database, engine) = (&replica.database, replica.database.engine());
        // Nobody begins to follow before it is known what this server is.
        let mut state = replica.state.lock();
        self.is_detached = true;
        replica.end_attachment(&mut state);
        let applied = Applied::of(engine, replica.number).map_err(text)?.ok_or("nothing was applied here")?;
        // A table may have been set aside since the copy here was found to be complete.
        check_applied(Some(&applied), &self.allowed)?;
        self.check_stopped(&applied)?;
        // These, too, are before the binary log begins: the tables stay where they are at the source.
        for name in &applied.unfinished {
            carried::drop_remains(database, name).map_err(text)?;
        }
        let ts = durable(database).map_err(text)?;
        // That may have taken its time.
        self.check_stopped(&applied)?;
        let promoted = Promoted {
            source: self.place(),
            source_id: applied.source.clone(),
            executed: applied.executed.clone(),
            ts,
            logs: replica.log.is_some(),
        };
        if let Err(error) = promoted.keep(database) {
            // It may be there all the same.
            if let Err(again) = Promoted::forget(database) {
                self.stopping = None;
                self.is_detached = false;
                return Err(format!(
                    "{error}, and {again}: whether this server is the primary is known when it is started again, and the source takes no \
                     writes until then"
                ));
            }
            return Err(error);
        }
        // It is a primary: whatever fails now is no reason to let the source write.
        let stopping = self.stopping.take();
        self.fence = None;
        self.is_detached = false;
        state.source = None;
        replica.role.be_promoted(promoted.clone());
        drop(state);
        self.finish(promoted, lasts, stopping.as_ref())
    }

    /// Whether the source, the one that was followed, takes no writes, and has nothing that is not here.
    fn check_stopped(&mut self, applied: &Applied) -> Result<(), Refusal> {
        let fence = self.fence()?;
        let executed = fence.executed().map_err(text)?;
        if !applied.executed.contains_all(&executed) {
            return Err(format!(
                "somebody has written to the source after its writes were stopped: it has {executed}, and {} is here",
                applied.executed
            ));
        }
        if !fence.holds().map_err(text)? {
            return Err("the source takes writes again: it was restarted, or somebody has let it".into());
        }
        let is = source::identity(fence.connection()).map_err(text)?;
        self.check_identity(&is)
    }

    /// What follows once this server is a primary.
    fn finish(
        &mut self,
        promoted: Promoted,
        lasts: bool,
        stopping: Option<&Stopping>,
    ) -> Result<(), Refusal> {
        let replica = self.replica.clone();
        let stays_read_only = |error: &dyn Display| {
            format!("this server is the primary, but takes no writes: {error}; restart it, and it does")
        };
        let base = promoted.base(&replica.database).map_err(|error| stays_read_only(&error))?;
        replica.be_promoted(promoted).map_err(|error| stays_read_only(&error))?;
        if let Some(log) = &replica.log {
            log.begin(base).map_err(|error| stays_read_only(&error))?;
        }
        replica.database.set_option("read_only", "OFF").map_err(|error| stays_read_only(&error.message))?;
        if let Some(tell) = replica.on_promoted.get() {
            tell();
        }
        self.say("become primary", "ok", format!("this server takes writes, {} does not", self.place()));
        let place = self.place();
        let is_mariadb = stopping.is_some_and(|stopping| stopping.is_mariadb);
        if !lasts {
            let (also, variable) = match is_mariadb {
                false => ("", "super_read_only"),
                true => (", and accounts with READ_ONLY ADMIN may write to it now", "read_only"),
            };
            let told = format!(
                "a restart of {place} ends its being read-only{also} → put {variable} = 1 into its configuration"
            );
            self.say("become primary", "note", told);
        }
        if replica.log.is_some() {
            let told = match is_mariadb {
                false => {
                    "SOURCE_AUTO_POSITION = 1; START REPLICA, with an account of this server that has REPLICATION SLAVE"
                }
                true => {
                    "MASTER_LOG_FILE = 'binlog.000001', MASTER_LOG_POS = 4, MASTER_USE_GTID = no; START SLAVE"
                }
            };
            self.say(
                "way back",
                "note",
                format!("{place} can follow this server → there: CHANGE REPLICATION SOURCE TO SOURCE_HOST = …, SOURCE_PORT = …, {told}"),
            );
        }
        Ok(())
    }

    /// Makes the source, and this server, what they were. What is said of the source then.
    fn take_back(&mut self) -> String {
        self.fence = None;
        let mut told = String::new();
        if let Some(stopping) = self.stopping.take() {
            told = match promote::undo(&self.opts, &stopping.source_id, &stopping.was, PERSISTENCE) {
                Ok(()) => match Stopping::forget(&self.replica.database) {
                    Ok(()) => "; the source takes writes as before".into(),
                    Err(error) => format!("; the source takes writes as before, but {error}"),
                },
                Err(error) => {
                    let cure = stopping.cure();
                    format!(
                        "; the source may take no writes, and cannot be given them back ({error}): PROMOTE REPLICA UNDO tries again (there by \
                         hand: {cure})"
                    )
                }
            };
        }
        if std::mem::take(&mut self.is_detached)
            && let Err(error) = self.replica.attach()
        {
            told.push_str(&format!(
                "; the source is not followed any more ({error}): START REPLICA, or restart this server"
            ));
        }
        told
    }
}

fn may_stay_behind(allowed: &[Pattern], name: &TableName) -> bool {
    allowed.iter().any(|pattern| pattern.has(&name.database, &name.table))
}

/// Whether what is here is all of the source but what may stay behind.
fn check_applied(applied: Option<&Applied>, allowed: &[Pattern]) -> Result<(), Refusal> {
    let Some(applied) = applied else { return Ok(()) };
    let missing: Vec<String> = applied
        .unfinished
        .iter()
        .filter(|name| !may_stay_behind(allowed, name))
        .map(ToString::to_string)
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "tables of the source are not here as they are there: {}; wait until they are copied, or name them in ALLOW_LEFT_OUT",
            missing.join(", ")
        ));
    }
    match applied.prepared {
        0 => Ok(()),
        prepared => Err(format!(
            "{prepared} XA transactions are prepared at the source: XA COMMIT or XA ROLLBACK each that XA RECOVER shows there"
        )),
    }
}

impl Promotion for Running {
    fn step(&mut self, stop: &dyn Fn() -> bool) -> Result<Option<PromotionStep>, SqlError> {
        loop {
            if let Some(step) = self.told.pop_front() {
                return Ok(Some(step));
            }
            if self.stage == Stage::Ended {
                return Ok(None);
            }
            match self.advance(stop) {
                Ok(next) => self.stage = next,
                Err(why) => {
                    let stage = std::mem::replace(&mut self.stage, Stage::Ended);
                    let source = self.take_back();
                    tracing::warn!("promotion: {stage:?}: {why}{source}");
                    // Who asked for it to end is told that.
                    return Err(match stop() {
                        true => ErrorCode::QUERY_INTERRUPTED.because(format!("{why}{source}")),
                        false => refused(format!("{why}{source}")),
                    });
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.stopping.is_some() || self.is_detached {
            let source = blocking(|| self.take_back());
            tracing::warn!("promotion: nobody waits for its end{source}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_lets_stay_behind_is_in_the_way() {
        let name = |table: &str| TableName { database: "shop".into(), table: table.into() };
        let applied = |unfinished: &[&str], prepared| Applied {
            source: String::new(),
            executed: Default::default(),
            by_place: false,
            unfinished: unfinished.iter().map(|table| name(table)).collect(),
            prepared,
        };
        let allowed = ["shop.old_a", "shop.old_b"].map(|name| name.parse().expect("a pattern"));
        let check =
            |unfinished: &[&str], prepared| check_applied(Some(&applied(unfinished, prepared)), &allowed);
        assert_eq!(check(&[], 0), Ok(()));
        assert_eq!(check(&["old_a", "old_b"], 0), Ok(()));
        let refused = check(&["old_a", "orders"], 0).expect_err("orders is the source's");
        assert!(refused.contains(": shop.orders;"), "{refused}");
        assert!(check(&["old_a"], 1).is_err());
    }
}
