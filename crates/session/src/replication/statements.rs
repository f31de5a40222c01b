//! CHANGE REPLICATION SOURCE, START, STOP, RESET and PROMOTE REPLICA, and CHECK REPLICATION.

use std::sync::Arc;

use avocet_channel::blocking::blocking;
use avocet_channel::{Cancellation, OutputColumn, ResultSink};
use avocet_sql::parse::ast::ObjectName;
use avocet_types::Datum;
use avocet_types::error::{ErrorCode, SqlError};

use super::{CheckedTable, PromoteOptions, PromotionStep, Replication, SourceOptions};
use crate::output::{COUNT, LONG_TEXT, Rowset, text, varchar};
use crate::run::Outcome;
use crate::state::Session;

/// Characters of a channel's name.
const MOST_NAME: usize = 64;

/// Where no source can be followed, there is no other channel.
pub(crate) fn default_channel(channel: Option<&str>) -> Result<(), SqlError> {
    match channel.filter(|name| !name.is_empty()) {
        Some(name) => Err(ErrorCode::REPLICA_CHANNEL_DOES_NOT_EXIST.with(&[&name])),
        None => Ok(()),
    }
}

impl Session {
    /// A channel that a statement names is there.
    pub(crate) fn check_channel(&self, channel: Option<&str>) -> Result<(), SqlError> {
        match (self.shared.replication.get(), channel) {
            (Some(replication), Some(channel)) => replication.knows(channel),
            (_, channel) => default_channel(channel),
        }
    }

    fn replication(&self) -> Result<Arc<dyn Replication>, SqlError> {
        let replication = self.shared.replication.get().cloned();
        replication.ok_or_else(|| SqlError::unsupported("replication in a program"))
    }

    /// `CHANGE REPLICATION SOURCE TO …`
    pub(crate) fn change_source(&mut self, options: &SourceOptions) -> Result<Outcome, SqlError> {
        let has_name = |name: &str| name.chars().count() <= MOST_NAME && !name.chars().any(char::is_control);
        if !options.channel.as_deref().is_none_or(has_name) {
            return Err(ErrorCode::REPLICA_CHANNEL_NAME_INVALID_OR_TOO_LONG.with(&[]));
        }
        if options.host.as_deref() == Some("") {
            return Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"SOURCE_HOST"]));
        }
        self.replication()?.change_source(options)?;
        if options.user.is_some() || options.password.is_some() {
            self.note(&ErrorCode::INSECURE_CHANGE_SOURCE.with(&[]));
        }
        Ok(Outcome::ok())
    }

    /// START REPLICA
    pub(crate) fn start_replica(&mut self, channel: Option<&str>) -> Result<Outcome, SqlError> {
        let Ok(replication) = self.replication() else {
            default_channel(channel)?;
            return Err(ErrorCode::BAD_REPLICA.with(&[]));
        };
        for name in blocking(|| replication.start(channel))? {
            self.note(&ErrorCode::REPLICA_CHANNEL_WAS_RUNNING.with(&[&name]));
        }
        Ok(Outcome::ok())
    }

    /// STOP REPLICA
    pub(crate) fn stop_replica(&mut self, channel: Option<&str>) -> Result<Outcome, SqlError> {
        let were_stopped = match self.replication() {
            Ok(replication) => blocking(|| replication.stop(channel))?,
            Err(_) => {
                default_channel(channel)?;
                vec![String::new()]
            }
        };
        for name in were_stopped {
            self.note(&ErrorCode::REPLICA_CHANNEL_WAS_NOT_RUNNING.with(&[&name]));
        }
        Ok(Outcome::ok())
    }

    /// `RESET REPLICA [ALL]`
    pub(crate) fn reset_replica(&mut self, all: bool, channel: Option<&str>) -> Result<Outcome, SqlError> {
        match self.replication() {
            Ok(replication) => blocking(|| replication.reset(all, channel))?,
            Err(_) => default_channel(channel)?,
        }
        Ok(Outcome::ok())
    }

    /// PROMOTE REPLICA: a row for each step, sent when the step is done.
    pub(crate) async fn promote_replica(
        &mut self,
        options: &PromoteOptions,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let Ok(replication) = self.replication() else {
            return Err(ErrorCode::UNKNOWN_ERROR
                .because("no other server is followed, whose place this server could take"));
        };
        let interrupt = self.info.interrupt.clone();
        let stop = || interrupt.get().is_some();
        let mut promotion = blocking(|| replication.promote(options))?;
        let columns =
            [("Step", varchar(32)), ("Result", varchar(16)), ("Milliseconds", COUNT), ("Detail", LONG_TEXT)];
        let columns = columns.map(|(name, ty)| OutputColumn::expression(name, ty));
        sink.columns(&columns, self.settings.time_zone)?;
        let cancellation = Cancellation::after(&interrupt, None);
        let mut rows = 0;
        let outcome = loop {
            let step = match blocking(|| promotion.step(&stop)) {
                Ok(Some(step)) => step,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            let PromotionStep { step, result, detail, milliseconds } = step;
            sink.row(&[text(step), text(result), Datum::UInt(milliseconds), text(detail)])?;
            rows += 1;
            // Whoever waits for the end of the whole would not know what it waits for.
            if let Err(error) = cancellation.flush(sink).await {
                break Err(error);
            }
        };
        // It takes back what it did, if it has not come to its end.
        blocking(|| drop(promotion));
        outcome?;
        Ok(Outcome::Rows(rows))
    }

    /// CHECK REPLICATION: a row for each table.
    pub(crate) fn check_replication(
        &mut self,
        tables: &[ObjectName],
        repairs: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let mut names = Vec::with_capacity(tables.len());
        for name in tables {
            let database = match &name.database {
                Some(database) => database.name.clone(),
                None => self.current_database()?.to_owned(),
            };
            names.push((database, name.name.name.clone()));
        }
        let Ok(replication) = self.replication() else {
            return Err(ErrorCode::UNKNOWN_ERROR
                .because("no other server is followed: there is nothing to compare with"));
        };
        let interrupt = self.info.interrupt.clone();
        let stop = || interrupt.get().is_some();
        let checked = blocking(|| replication.check(&names, repairs, &stop));
        interrupt.check()?;
        let checked = checked.map_err(|why| ErrorCode::UNKNOWN_ERROR.because(why))?;
        let columns =
            [("Table", varchar(128)), ("Rows", COUNT), ("Result", varchar(16)), ("Detail", LONG_TEXT)];
        let mut rows = Rowset::new("", &columns);
        for CheckedTable { database, table, rows: compared, verdict, detail } in checked {
            let name = format!("{database}.{table}");
            rows.push(vec![text(name), Datum::UInt(compared), text(verdict), text(detail)]);
        }
        self.send(&rows, sink)
    }
}
