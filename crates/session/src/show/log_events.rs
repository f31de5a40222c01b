//! SHOW BINLOG EVENTS and SHOW RELAYLOG EVENTS.

use avocet_channel::blocking::blocking;
use avocet_channel::{Cancellation, OutputColumn, ResultSink};
use avocet_sql::parse::statement::LogEvents;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Datum, IntWidth, SqlType};

use crate::output::{COUNT, text, varchar};
use crate::run::{Outcome, Text};
use crate::state::Session;

/// 1220
fn failed(why: String) -> SqlError {
    let message = format!("Error when executing command SHOW BINLOG EVENTS: {why}");
    SqlError { errno: 1220, sqlstate: *b"HY000", message }
}

impl Session {
    /// A row for each event, sent as the file is read. Without the log, and of a log that a source's events are put into (there is
    /// none), there are no rows.
    pub(crate) async fn show_log_events(
        &mut self,
        asked: &LogEvents,
        statement: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let limits = asked.limit.as_ref().map(|limit| self.limits(limit, statement)).transpose()?;
        let (mut skip, mut left) = match limits {
            // As in MySQL, that is no limit.
            None | Some((0, 0)) => (0, usize::MAX),
            Some(limits) => limits,
        };
        if asked.is_relay {
            self.check_channel(asked.channel.as_deref())?;
            if asked.channel.is_none() && self.shared.sources().len() > 1 {
                return Err(ErrorCode::REPLICA_MULTIPLE_CHANNELS_CMD.with(&[]));
            }
        }
        let log = self.shared.binary_log.get().filter(|_| !asked.is_relay).cloned();
        let events = log.map(|log| blocking(|| log.events(asked.file.as_deref(), asked.from.unwrap_or(0))));
        let mut events = events.transpose().map_err(failed)?;
        let id = SqlType::Int { width: IntWidth::W32, unsigned: true };
        let columns = [
            ("Log_name", varchar(20)),
            ("Pos", COUNT),
            ("Event_type", varchar(20)),
            ("Server_id", id),
            ("End_log_pos", COUNT),
            ("Info", varchar(20)),
        ];
        let columns = columns.map(|(name, ty)| OutputColumn::expression(name, ty));
        sink.columns(&columns, self.settings.time_zone)?;
        let interrupt = self.info.interrupt.clone();
        let cancellation = Cancellation::after(&interrupt, None);
        let (mut some, mut rows) = (Vec::new(), 0);
        let mut has_more = events.is_some();
        while let Some(events) = events.as_mut().filter(|_| has_more && left > 0) {
            interrupt.check()?;
            has_more = blocking(|| events.next(&mut some)).map_err(failed)?;
            for event in some.drain(..) {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                if left == 0 {
                    break;
                }
                left -= 1;
                rows += 1;
                sink.row(&[
                    text(events.file()),
                    Datum::UInt(event.position),
                    text(event.kind),
                    Datum::UInt(event.server_id.into()),
                    Datum::UInt(event.end),
                    text(event.info),
                ])?;
                if sink.wants_flush() {
                    cancellation.flush(sink).await?;
                }
            }
        }
        Ok(Outcome::Rows(rows))
    }
}
