//! A replica, as sessions see it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use avocet_replicate::gtid::GtidSet;
use avocet_replicate::{
    Attachment, Compared, Late, LogPlace, Phase, Rows, SemiSync, Snapshot, TableName, Verdict,
};
use avocet_session::replication::{
    CheckedTable, CopyProgress, LeftOut, PlaceWait, PromoteOptions, Promotion, ReplicaStatus, SourceOptions,
};
use avocet_types::Value;
use avocet_types::error::{ErrorCode, SqlError};

use super::promotion::Running;
use super::role::{PROMOTING, Promoting};
use super::settings::Settings;
use super::{Replica, preflight};

pub(super) fn failed(why: impl std::fmt::Display) -> SqlError {
    ErrorCode::UNKNOWN_ERROR.because(why.to_string())
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Rows of this server, by SQL.
struct RowsHere(avocet_session::Connection);

impl Rows for RowsHere {
    fn read(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, SqlError> {
        Ok(self.0.query_with(sql, parameters)?.rows)
    }
}

impl Replica {
    /// Who says by statements what `attach` was told at its start does not mean that.
    fn settings(&self) -> Result<&Settings, SqlError> {
        self.may_follow()?;
        self.settings
            .as_ref()
            .ok_or_else(|| SqlError::unsupported("another source than that of avocet attach"))
    }

    /// Whether statements have said anything of its channel, or the command line has.
    pub(super) fn exists(&self) -> bool {
        self.settings.as_ref().is_none_or(Settings::exists)
    }

    /// # Errors
    /// One that has taken its source's place.
    pub(super) fn may_follow(&self) -> Result<(), SqlError> {
        self.role.promoted().map_or(Ok(()), |promoted| Err(failed(promoted.refuses_source())))
    }

    /// Whether it has a source, that is followed or may be.
    pub(super) fn is_known(&self) -> bool {
        self.role.promoted().is_none() && self.settings.as_ref().is_none_or(Settings::is_known)
    }

    pub(super) fn shown(&self) -> Option<ReplicaStatus> {
        if !self.is_known() {
            return None;
        }
        let shown = self.status.snapshot();
        let copies = self.status.copies().into_iter().map(|copy| CopyProgress {
            database: copy.name.database,
            table: copy.name.table,
            rows: copy.rows,
            of_about: copy.of_about,
            bytes: copy.bytes,
        });
        let Snapshot {
            phase, source: (host, port, user), place, executed, last_error, tables, ahead, ..
        } = shown;
        let tls = self.tls.lock().clone();
        Some(ReplicaStatus {
            channel: self.name.clone(),
            source_host: host,
            source_port: port,
            source_user: user,
            source_uuid: shown.source_uuid,
            state: match phase {
                Phase::Connecting => "Connecting to source",
                Phase::Following => "Waiting for source to send event",
                Phase::Halted | Phase::Stopped => "",
            }
            .into(),
            reads: match phase {
                Phase::Connecting => "Connecting",
                Phase::Following => "Yes",
                Phase::Halted | Phase::Stopped => "No",
            },
            applies: matches!(phase, Phase::Connecting | Phase::Following),
            log_file: place.file,
            log_position: place.offset,
            visible: self.status.visible_place().map(|place| (place.file, place.offset)),
            auto_position: !shown.by_place,
            last_error,
            left_out: tables
                .into_iter()
                .map(|(name, state)| LeftOut { database: name.database, table: name.table, state })
                .collect(),
            semi_sync: shown.semi_sync == SemiSync::On,
            semi_sync_obstacle: match shown.semi_sync {
                SemiSync::Not(why) => Some(why),
                SemiSync::Off | SemiSync::On => None,
            },
            seconds_behind: shown.seconds_behind,
            transactions_behind: ahead.as_ref().and_then(|ahead| ahead.transactions),
            bytes_behind: ahead.as_ref().and_then(|ahead| ahead.bytes),
            source_log: ahead.map(|ahead| (ahead.end.file, ahead.end.offset)),
            transactions: shown.transactions,
            changes: shown.changes,
            transactions_per_second: shown.transactions_per_second,
            changes_per_second: shown.changes_per_second,
            copied_bytes: self.status.copied_bytes(),
            copies: copies.collect(),
            executed: executed.to_string(),
            ssl: tls.is_some(),
            ssl_ca: tls.flatten(),
            connect_retry_seconds: self.retry_after.load(Ordering::Relaxed),
        })
    }

    pub(super) fn change_source(&self, options: &SourceOptions) -> Result<(), SqlError> {
        if self.status.broken().is_none() {
            return Err(ErrorCode::REPLICA_CHANNEL_IO_THREAD_MUST_STOP.with(&[&self.name]));
        }
        let settings = self.settings()?;
        self.role.may_begin().map_err(failed)?;
        if !options.auto_position.unwrap_or_else(|| settings.uses_gtids()) {
            return Err(SqlError::unsupported("CHANGE REPLICATION SOURCE without SOURCE_AUTO_POSITION = 1"));
        }
        settings.change(options).map_err(failed)?;
        self.know(settings.source().map_err(failed)?);
        Ok(())
    }

    /// False if its source is followed already.
    pub(super) fn start(&self) -> Result<bool, SqlError> {
        if self.status.broken().is_some() {
            self.role.may_begin().map_err(failed)?;
        }
        if self.settings.is_some() && self.status.broken().is_some() {
            // What it names may have been mended since: a file, a server without TLS.
            let source = self.settings()?.source().map_err(failed)?;
            self.know(source);
        }
        let source = self.state.lock().source.clone();
        let source = source.ok_or_else(|| ErrorCode::BAD_REPLICA.with(&[]))?;
        if self.status.broken().is_none() {
            return Ok(false);
        }
        preflight(&source, Attachment::has_begun(self.database.engine(), self.number)).map_err(failed)?;
        let begun = self.begin().map_err(failed)?;
        if self.settings.is_some() {
            self.settings()?.set_running(true).map_err(failed)?;
        }
        Ok(begun)
    }

    /// False if its source is not followed.
    pub(super) fn stop(&self) -> Result<bool, SqlError> {
        let was_running = self.end();
        if self.settings.is_some() && self.role.promoted().is_none() {
            self.settings()?.set_running(false).map_err(failed)?;
        }
        Ok(was_running)
    }

    pub(super) fn reset(&self, all: bool) -> Result<(), SqlError> {
        if self.status.broken().is_none() {
            return Err(ErrorCode::REPLICA_CHANNEL_MUST_STOP.with(&[&self.name]));
        }
        if all && self.log.as_ref().is_some_and(|log| log.is_waiting()) {
            return Err(failed(
                "the binary log here begins with PROMOTE REPLICA: without it, start the server without --log-bin",
            ));
        }
        if all {
            self.settings()?.forget().map_err(failed)?;
            self.know(None);
        }
        Ok(())
    }

    pub(super) fn promote(
        &self,
        options: &PromoteOptions,
        promoting: Promoting,
    ) -> Result<Box<dyn Promotion>, SqlError> {
        let replica = self.this.upgrade().ok_or_else(|| failed("the server is stopping"))?;
        Ok(Box::new(Running::begin(replica, options, promoting)?))
    }

    pub(super) fn wait_for(&self, wanted: &GtidSet, at_most: Duration, stop: &dyn Fn() -> bool) -> bool {
        self.status.wait_for(wanted, at_most, stop)
    }

    pub(super) fn wait_for_place(
        &self,
        file: &str,
        position: u64,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> PlaceWait {
        let place = LogPlace { file: file.to_owned(), offset: position };
        match self.status.wait_place(&place, at_most, stop) {
            Some(Ok(moves)) => PlaceWait::Reached(moves),
            Some(Err(Late)) => PlaceWait::Late,
            None => PlaceWait::Never,
        }
    }

    pub(super) fn check(
        &self,
        tables: &[(String, String)],
        repairs: bool,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<CheckedTable>, String> {
        // A table that is set aside is one that stays behind.
        let is_late = || repairs && self.role.is_promoting();
        if is_late() {
            return Err(PROMOTING.into());
        }
        let name = |(database, table): &(String, String)| TableName {
            database: database.clone(),
            table: table.clone(),
        };
        let names: Vec<TableName> = tables.iter().map(name).collect();
        let mut here = self.database.connect_to_apply().map_err(|error| error.message)?;
        here.query("SET SESSION time_zone = '+00:00', sql_mode = ''").map_err(|error| error.message)?;
        let checker = self.checker.lock().clone().ok_or("replication does not run")?;
        let stop = || stop() || is_late();
        let compared = checker.check(&names, repairs, &mut RowsHere(here), patience, &stop);
        let compared = compared.map_err(|error| match is_late() {
            true => PROMOTING.into(),
            false => error.to_string(),
        })?;
        Ok(compared
            .into_iter()
            .map(|Compared { name, rows, verdict }| {
                let (verdict, detail) = match verdict {
                    Verdict::Equal => ("equal", String::new()),
                    Verdict::Different(row) => ("different", row),
                    Verdict::Unknown(why) => ("unknown", why),
                };
                CheckedTable { database: name.database, table: name.table, rows, verdict, detail }
            })
            .collect())
    }
}
