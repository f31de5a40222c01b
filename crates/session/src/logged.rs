//! The server's binary log, as sessions have it: SHOW, the streams of replicas, and the statements that go there as text.
//!
//! A statement that changes definitions goes to the engine with what of the session decides what its text means, so that the log
//! has both in one record.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use avocet_channel::Interruption;
use avocet_channel::blocking::blocking;
use avocet_engine::{Privileges, Statement, run_as_statement};
use avocet_sql::parse::statement::{PurgeLogs, StatementKind, UserName};
use avocet_sql::parse::text_told;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
use avocet_types::{Collation, Datum};

use super::binary_log::{BinaryLog, DumpFrom, Dumping, KeptLog, LogReset, Replica};
use super::output::{COUNT, Rowset, text, varchar};
use super::privileges::needs_one_of;
use super::run::{Outcome, Text};
use super::sql_mode::{as_read_in, mysql_bits};
use super::state::{Level, Session};

/// Texts are UTF-8 here, whatever the client sent: utf8mb4_general_ci, which all servers know.
const OF_TEXTS: u16 = 45;

/// So long SHOW BINARY LOG STATUS waits for a log that is behind what is committed; it tells how far it is then.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);

/// 1236
fn refused(why: impl Into<String>) -> SqlError {
    SqlError { errno: 1236, sqlstate: *b"HY000", message: why.into() }
}

/// 1867 and 1868, with the names that MySQL's index has.
fn not_purged(kept: &KeptLog) -> (u16, String) {
    match kept {
        KeptLog::Active(file) => {
            (1868, format!("file ./{file} was not purged because it is the active log file."))
        }
        KeptLog::InUse { file, readers, purged, of } => (
            1867,
            format!(
                "file ./{file} was not purged because it was being read by {readers} thread(s), purged only {purged} out of {of} files."
            ),
        ),
    }
}

impl Session {
    fn binary_log(&self) -> Option<&std::sync::Arc<dyn BinaryLog>> {
        self.shared.binary_log.get()
    }

    /// Waits until the log has what is committed by now: who has seen it must find it there. Whether it has.
    pub(super) fn catch_up(&self, at_most: Duration) -> bool {
        let stop = || self.info.interrupt.get().is_some();
        self.binary_log().is_none_or(|log| blocking(|| log.catch_up(at_most, &stop)))
    }

    /// COM_REGISTER_SLAVE
    pub(super) fn note_replica(&mut self, mut replica: Replica) -> Result<(), SqlError> {
        self.check_replicates()?;
        let uuid = self.user_variables.get("replica_uuid").or_else(|| self.user_variables.get("slave_uuid"));
        if let Some((Datum::Str(uuid), _)) = uuid {
            replica.uuid = uuid.to_string();
        }
        self.shared.replicas.lock().insert(self.info.connection_id, replica);
        Ok(())
    }

    /// Ends what is sent to connections that the same replica had before: it may not know yet that they are gone.
    fn end_earlier_dumps(&self) {
        let replicas = self.shared.replicas.lock();
        let Some(own) = replicas.get(&self.info.connection_id) else { return };
        let is_same = |other: &Replica| match &*own.uuid {
            "" => other.server_id == own.server_id,
            uuid => other.uuid == uuid,
        };
        let earlier = replicas.iter().filter(|(id, other)| **id != self.info.connection_id && is_same(other));
        let earlier: Vec<u32> = earlier.map(|(id, _)| *id).collect();
        drop(replicas);
        for id in earlier {
            // It may have gone by itself.
            let _ = self.info.connections.kill(id, Interruption::Connection);
        }
    }

    fn check_replicates(&mut self) -> Result<(), SqlError> {
        let needed = Privileges::REPLICATION_SLAVE;
        let access = self.access();
        match access.is_embedded() || access.global().contains(needed) {
            true => Ok(()),
            false => Err(needs_one_of(needed)),
        }
    }

    /// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID
    pub(super) fn begin_dumping(&mut self, from: DumpFrom) -> Result<Dumping, SqlError> {
        self.check_replicates()?;
        self.end_earlier_dumps();
        let Some(log) = self.binary_log() else { return Err(refused("Binary log is not open")) };
        let variable = |names: [&str; 2]| {
            names.iter().find_map(|name| self.user_variables.get(name)).map(|(value, _)| value)
        };
        let is_none =
            |value: Datum<'_>| matches!(value, Datum::Str(name) if name.eq_ignore_ascii_case("NONE"));
        let Some(checksum) = variable(["source_binlog_checksum", "master_binlog_checksum"]) else {
            return Err(refused(
                "Replica can not handle replication events with the checksum that source is configured to log",
            ));
        };
        // As from MySQL, that holds up to the description of the file, which says that its events have them.
        let begins_without_checksum = is_none(checksum);
        let period = match variable(["source_heartbeat_period", "master_heartbeat_period"]) {
            Some(Datum::Int(nanos)) => nanos.max(0) as u64,
            Some(Datum::UInt(nanos)) => nanos,
            _ => 0,
        };
        // MySQL's SOURCE_HEARTBEAT_PERIOD has no less.
        const LEAST: Duration = Duration::from_millis(1);
        let heartbeat = (period > 0).then(|| Duration::from_nanos(period).max(LEAST));
        let is_mariadb = variable(["mariadb_slave_capability"; 2]).is_some();
        let dump = log.dump(from, begins_without_checksum).map_err(refused)?;
        Ok(Dumping { dump, heartbeat, is_mariadb })
    }

    /// SHOW BINARY LOG STATUS
    pub(super) fn binary_log_status(&self, mut rows: Rowset) -> Rowset {
        if let Some(log) = self.binary_log() {
            self.catch_up(SHOWN_WITHIN);
            let status = log.status();
            rows.columns[1].1 = COUNT;
            rows.push(vec![
                text(status.file),
                Datum::UInt(status.position),
                text(""),
                text(""),
                text(status.executed),
            ]);
        }
        rows
    }

    /// SHOW BINARY LOGS: error 1381 without one.
    pub(super) fn binary_logs(&self) -> Result<Rowset, SqlError> {
        let off = || SqlError {
            errno: 1381,
            sqlstate: *b"HY000",
            message: "You are not using binary logging".into(),
        };
        let log = self.binary_log().ok_or_else(off)?;
        let columns = [("Log_name", varchar(255)), ("File_size", COUNT), ("Encrypted", varchar(3))];
        let mut rows = Rowset::new("", &columns);
        for (name, bytes) in log.files() {
            rows.push(vec![text(name), Datum::UInt(bytes), text("No")]);
        }
        Ok(rows)
    }

    /// FLUSH: of what may be flushed, only the binary log is kept where that tells.
    pub(super) fn flush(&mut self, what: &[&str]) -> Result<Outcome, SqlError> {
        if what.iter().any(|what| matches!(*what, "LOGS" | "BINARY LOGS"))
            && let Some(log) = self.binary_log().cloned()
        {
            let interrupt = self.info.interrupt.clone();
            let stop = || interrupt.get().is_some();
            let is_done = blocking(|| log.rotate(&stop));
            interrupt.check()?;
            if !is_done {
                return Err(ErrorCode::UNKNOWN_ERROR.because("the binary log is not written any more"));
            }
        }
        Ok(Outcome::ok())
    }

    /// RESET BINARY LOGS AND GTIDS: what is committed by now is in no log any more. Without a log, there is nothing to do.
    pub(super) fn reset_logs(&mut self, first: u64) -> Result<Outcome, SqlError> {
        if self.locked.is_some() {
            return Err(ErrorCode::LOCK_OR_ACTIVE_TRANSACTION.with(&[]));
        }
        let Some(log) = self.binary_log().cloned() else { return Ok(Outcome::ok()) };
        let interrupt = self.info.interrupt.clone();
        let stop = || interrupt.get().is_some();
        let reset = blocking(|| log.reset(first, &stop));
        match reset {
            LogReset::Done => Ok(Outcome::ok()),
            LogReset::InUse(readers) => Err(ErrorCode::UNKNOWN_ERROR.because(format!(
                "the binary log is read by {readers} connection(s), which would miss what is committed from now on: stop the replicas first (SHOW REPLICAS)"
            ))),
            LogReset::Stopped => {
                interrupt.check()?;
                Err(ErrorCode::UNKNOWN_ERROR.because("the binary log is not written any more"))
            }
        }
    }

    /// PURGE BINARY LOGS: of a moment that is none, nothing is that old.
    pub(super) fn purge_logs(&mut self, purge: &PurgeLogs, text: &Text<'_>) -> Result<Outcome, SqlError> {
        let log = self.binary_log().cloned();
        let purged = match purge {
            PurgeLogs::To(name) => match log.map(|log| log.purge_to(name)) {
                // The index has names without a folder.
                Some(None) => {
                    let message = "Target log not found in binlog index".into();
                    return Err(SqlError { errno: 1373, sqlstate: *b"HY000", message });
                }
                Some(Some(purged)) => purged,
                None => Ok(None),
            },
            PurgeLogs::Before(moment) => {
                let seconds = match self.constant(moment, text)? {
                    Datum::Int(seconds) => u64::try_from(seconds).unwrap_or(0),
                    Datum::UInt(seconds) => seconds,
                    Datum::Decimal(seconds) => seconds.to_f64() as u64,
                    _ => 0,
                };
                log.map_or(Ok(None), |log| log.purge_before(seconds))
            }
        };
        let kept = purged.map_err(|error| {
            ErrorCode::UNKNOWN_ERROR.because(format!("files of the binary log cannot be deleted: {error}"))
        })?;
        if let Some(kept) = kept {
            let (errno, message) = not_purged(&kept);
            self.warn(Level::Warning, errno, message);
        }
        Ok(Outcome::ok())
    }

    /// SHOW REPLICAS
    pub(super) fn replicas(&self, mut rows: Rowset) -> Rowset {
        for at in [0, 2, 3] {
            rows.columns[at].1 = COUNT;
        }
        let source = match self.shared.globals.get(super::variables::known("server_id")) {
            Datum::UInt(id) => id,
            _ => 0,
        };
        for replica in self.shared.replicas.lock().values() {
            rows.push(vec![
                Datum::UInt(replica.server_id.into()),
                text(&*replica.host),
                Datum::UInt(replica.port.into()),
                Datum::UInt(source),
                text(&*replica.uuid),
            ]);
        }
        rows
    }

    /// What the binary log is to have of a statement that changes definitions; nothing without one.
    fn logged_statement(&self, kind: &StatementKind, source: &Text<'_>) -> Option<Statement> {
        if !self.shared.engine.options().capture_changes || !self.settings.log_bin {
            return None;
        }
        let own = &self.variables.own;
        let id = |collation: &Datum<'_>| match collation {
            Datum::Str(name) => {
                Collation::by_name(name).map_or(Collation::DEFAULT.0, |collation| collation.0)
            }
            _ => Collation::DEFAULT.0,
        };
        let words = |value: &Datum<'_>| match value {
            Datum::Str(text) => text.to_string(),
            _ => String::new(),
        };
        // Passwords are told as what is kept of them.
        let tells_password = matches!(
            kind,
            StatementKind::CreateUser { .. }
                | StatementKind::AlterUser { .. }
                | StatementKind::SetPassword { .. }
        );
        let span = self.part_of_text.map(|span| span.start as usize..span.end as usize);
        let own_text = span.and_then(|span| source.source.get(span)).unwrap_or(source.source);
        let own_text = String::from_utf8_lossy(own_text).trim().trim_end_matches(';').to_owned();
        let account = self.account_name(&UserName::CurrentUser);
        let modes = self.settings.sql_mode;
        let mode =
            source.parsed_by.map_or(modes, |parsed_by| modes.without(SqlMode::PARSING).with(parsed_by));
        let own_text = text_told(kind, &own_text, mode, (&account.0, &account.1));
        // As from MySQL, a database's own statements are of that database; and one without a word of it has the server's collation, of
        // which nothing else is made.
        let (database, collation_server) = match kind {
            StatementKind::CreateDatabase { name, charset: None, collation: None, .. } => {
                (Some(name.name.clone()), id(own.by_name("collation_server")))
            }
            StatementKind::CreateDatabase { name, .. }
            | StatementKind::DropDatabase { name, .. }
            | StatementKind::AlterDatabase { name: Some(name), .. } => (Some(name.name.clone()), OF_TEXTS),
            _ => (self.database.clone(), OF_TEXTS),
        };
        let names_database = matches!(
            kind,
            StatementKind::CreateDatabase { .. }
                | StatementKind::DropDatabase { .. }
                | StatementKind::AlterDatabase { name: Some(_), .. }
        );
        Some(Statement {
            wall_us: self.now_us(),
            database,
            names_database,
            sql_mode: as_read_in(mysql_bits(&words(own.by_name("sql_mode"))), mode),
            // Of a prepared one, as it was then.
            collations: [OF_TEXTS, self.settings.connection_collation.0, collation_server],
            utf8mb4_collation: self.settings.utf8mb4_collation.0,
            time_zone: words(own.by_name("time_zone")),
            foreign_key_checks: self.settings.foreign_key_checks,
            unique_checks: true,
            auto_increment: (
                self.settings.auto_increment_increment as u16,
                self.settings.auto_increment_offset as u16,
            ),
            texts: if tells_password { Vec::new() } else { vec![own_text] },
        })
    }

    /// Whether statements that change definitions go to a binary log.
    pub(super) fn logs_definitions(&self) -> bool {
        self.shared.engine.options().capture_changes && self.settings.log_bin
    }

    /// Runs a statement that changes definitions so that the binary log has it.
    pub(super) fn begin_logged(&self, kind: &StatementKind, source: &Text<'_>) -> Logged {
        Logged(self.logged_statement(kind, source).map(Box::new))
    }
}

/// The statement that runs, as the binary log is to have it.
pub(super) struct Logged(Option<Box<Statement>>);

impl Logged {
    /// Runs something as a part of it.
    pub fn run<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let mut statement = self.0.take().map(|statement| *statement);
        let outcome = run_as_statement(&mut statement, run);
        self.0 = statement.map(Box::new);
        outcome
    }

    /// The same for what awaits.
    pub async fn follow<T>(self, run: impl Future<Output = T> + Send) -> T {
        match self.0 {
            None => run.await,
            Some(_) => Following { logged: self, run: Box::pin(run) }.await,
        }
    }
}

struct Following<F> {
    logged: Logged,
    run: Pin<Box<F>>,
}

impl<F: Future> Future for Following<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { logged, run } = &mut *self;
        logged.run(|| run.as_mut().poll(cx))
    }
}
