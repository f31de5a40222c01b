//! Where a query runs: by its text, its session, what the source thinks it costs, and how fresh the data here is.

use std::future::poll_fn;
use std::time::Duration;

use avocet_channel::Interruption;
use avocet_session::api::{Freshness, Route, Routing, SessionFactory, SqlSession};
use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};

use super::Behind;
use crate::connection::Connection;
use crate::front::Late;
use crate::front::costs::{Costs, read_cost};
use crate::front::dialect::Dialect;
use crate::front::shape::Candidate;
use crate::front::upstream::NoAnswer;
use crate::front::view::{Settings, question};
use crate::protocol::{StatusFlags, charset};
use crate::sink::Discard;
use crate::wire::WireError;

/// What came of a search for a place.
pub(super) enum Chosen {
    /// The session here is like the source's: here or on a peer, where the data is as fresh as it is to be.
    Replica(Noted),
    Source(Noted),
    /// The connection to the source is gone.
    SourceLost(WireError),
}

/// What the journal is to say of a choice.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub why: String,
    pub cost: Option<f64>,
    pub waited: Duration,
    /// It was to run here.
    pub fell_back: bool,
    pub was_late: bool,
}

impl Noted {
    fn because(why: impl Into<String>) -> Chosen {
        Chosen::Source(Self { why: why.into(), ..Self::default() })
    }
}

/// How a wait for freshness ended.
pub(super) enum Waited {
    Fresh,
    Late(Late),
    Killed,
    ClientLost,
}

impl<F: SessionFactory> Connection<F> {
    /// Why nothing runs here in the session as it is.
    pub(super) fn why_not_here(&self, behind: &Behind, candidate: &Candidate) -> Option<&'static str> {
        let view = &behind.view;
        Some(match () {
            () if self.is_in_snapshot(behind, candidate) => "it is in a transaction",
            // Where a character may end in a backslash, or be none, two readers may find different ends of strings.
            () if !matches!(self.session.status().client, None | Some(Charset::Latin1 | Charset::Ascii)) => {
                "the client's character set is not UTF-8"
            }
            () if behind.dialect == Dialect::MariaDb && candidate.foreign.is_some() => {
                "a MariaDB answers some of it otherwise"
            }
            () if view.holds_table_locks => "the session has locked tables",
            // Times beside dates have its day, too.
            () if view.has_own_time() => "the session's timestamp is set",
            () if self.routing_of(candidate).route == Route::Source => "avocet_route is source",
            () => {
                if view.temporary.is_empty() {
                    return None;
                }
                let is_temporary = |(_, table): &(_, String)| view.temporary.contains(&table.to_lowercase());
                return candidate.tables.iter().any(is_temporary).then_some("it reads a temporary table");
            }
        })
    }

    /// Whether a query belongs to a transaction that may see other rows than what is committed by now: its own changes, or a snapshot. One
    /// of READ COMMITTED sees just that as long as it has changed nothing. Where no transaction is open yet and autocommit is off, the
    /// query would begin one, and its snapshot; who asks for `avocet_route = here` takes two snapshots for one.
    fn is_in_snapshot(&self, behind: &Behind, candidate: &Candidate) -> bool {
        let status = behind.upstream.status;
        let is_open = status.contains(StatusFlags::SERVER_STATUS_IN_TRANS);
        if !is_open && status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT) {
            return false;
        }
        let view = &behind.view;
        if !is_open && self.routing_of(candidate).route == Route::Here {
            return false;
        }
        // What is not known is asked for, and this then again.
        let reads_committed = view.settings.as_ref().is_none_or(|settings| settings.reads_committed);
        !reads_committed
            || view.may_have_other_level
            || (is_open && (view.has_changed || view.level_has_changed))
    }

    /// Whether the source is known to have little work with a query: then nothing else need be asked. Leaves the query's key.
    pub(super) fn is_known_cheap(&self, behind: &mut Behind, candidate: &Candidate) -> bool {
        let routing = self.routing_of(candidate);
        let Some(settings) = &behind.view.applied else { return false };
        if routing.route != Route::Auto {
            return false;
        }
        Costs::key(settings, &behind.digest.text, &mut behind.key);
        behind.front.costs.is_below(&behind.key, routing.least_cost)
    }

    pub(super) fn routing_of(&self, candidate: &Candidate) -> Routing {
        let routing = self.session.routing();
        Routing { route: candidate.route.unwrap_or(routing.route), ..routing }
    }

    /// Asks the source what the session is like, if that is not known, and makes the session here like it.
    ///
    /// # Errors
    /// How the source was lost.
    pub(super) async fn match_session(&mut self, behind: &mut Behind) -> Result<(), WireError> {
        if behind.view.is_known() {
            return Ok(());
        }
        let settings = match behind.upstream.query(question(behind.dialect).as_bytes()).await {
            Ok(rows) => {
                let nothing = || Err("the source tells nothing of its session".into());
                rows.first().map_or_else(nothing, |row| Settings::read(row, behind.dialect))
            }
            Err(NoAnswer::Refused(error)) => Err(error.message),
            Err(NoAnswer::Lost(error)) => return Err(error),
        };
        let settings = match settings {
            Ok(settings) => settings,
            Err(why) => {
                behind.view.be_unlike(why);
                return Ok(());
            }
        };
        if behind.view.applied.as_ref() != Some(&settings) {
            let mut applied = self.apply(&settings).await;
            if applied.as_ref().is_err_and(is_unknown_database) {
                // It may have been made at the source a moment ago.
                let patience = self.session.routing().patience.min(UNKNOWN_FOR);
                let _ = behind.front.source.fresh(Freshness::Latest, true, patience).await;
                applied = self.apply(&settings).await;
            }
            if let Err(error) = applied {
                behind.view.applied = None;
                behind.view.be_unlike(format!("its settings cannot be had here: {}", error.message));
                if is_unknown_database(&error) {
                    behind.view.ask_again_after(UNKNOWN_FOR);
                }
                return Ok(());
            }
            behind.view.applied = Some(settings.clone());
        }
        behind.view.be_like(settings, self.session.sql_mode(), self.session.status().client);
        Ok(())
    }

    async fn apply(&mut self, settings: &Settings) -> Result<(), SqlError> {
        self.session.execute(&settings.set, &mut Discard).await?;
        match (&settings.database, self.session.database()) {
            (Some(name), here) if here != Some(name) => self.session.use_database(name),
            (None, Some(_)) => Err(ErrorCode::NO_DB_ERROR.with(&[])),
            _ => Ok(()),
        }
    }

    /// Chooses a place for a query that may run on either server, once [`Self::match_session`] has been. `explained`: as the
    /// source can explain it, in the client's character set.
    pub(super) async fn choose(
        &mut self,
        behind: &mut Behind,
        candidate: &Candidate,
        explained: &[u8],
        has_key: bool,
    ) -> Chosen {
        let routing = self.routing_of(candidate);
        if let Some(why) = &behind.view.unlike {
            return Noted::because(why.clone());
        }
        let Some(settings) = &behind.view.settings else { return Noted::because("the session is not known") };
        for (database, table) in &candidate.tables {
            match database.as_ref().or(settings.database.as_ref()) {
                None => return Noted::because("no database is chosen"),
                Some(database) => {
                    if let Some(why) = behind.front.source.why_not_followed(database, table) {
                        return Noted::because(format!("{database}.{table} cannot be read here: {why}"));
                    }
                }
            }
        }
        if has_key {
            // The default database is known by now.
            Costs::key(settings, &behind.digest.text, &mut behind.key);
        }
        let mut noted = Noted::default();
        let known = behind.front.costs.get(&behind.key).filter(|_| has_key);
        let (cost, refused) = match known {
            Some(known) => (known.cost, known.refused),
            None => match ask_cost(behind, explained).await {
                Ok(cost) => {
                    if has_key {
                        behind.front.costs.put(&behind.key, cost);
                    }
                    (cost, None)
                }
                Err(NoAnswer::Refused(error)) => {
                    return Noted::because(format!("the source cannot explain it: {}", error.message));
                }
                Err(NoAnswer::Lost(error)) => return Chosen::SourceLost(error),
            },
        };
        noted.cost = Some(cost);
        if routing.route == Route::Auto {
            if cost < routing.least_cost {
                noted.why = "the source has little work with it".into();
                return Chosen::Source(noted);
            }
            if let Some(why) = refused {
                noted.why = why.to_string();
                return Chosen::Source(noted);
            }
        }
        let client = self.session.status().client;
        match why_not_read(behind, candidate, client).await {
            Ok(None) => {}
            Ok(Some(why)) => {
                noted.why = why;
                return Chosen::Source(noted);
            }
            Err(error) => return Chosen::SourceLost(error),
        }
        noted.why = match routing.route {
            Route::Here => "avocet_route is here".into(),
            _ if cost < 1.0 => "avocet_route_cost asks for it".into(),
            _ => "the source would have more work with it".into(),
        };
        Chosen::Replica(noted)
    }

    /// Waits until what is visible here is as fresh as it is to be.
    pub(super) async fn wait_until_fresh(&mut self, behind: &mut Behind, routing: &Routing) -> Waited {
        let front = behind.front.clone();
        let fresh = front.source.fresh(routing.freshness, behind.view.has_written, routing.patience);
        let line = self.wire.line.clone();
        let waited = tokio::select! {
            biased;
            fresh = fresh => match fresh {
                Ok(()) => Waited::Fresh,
                Err(late) => Waited::Late(late),
            },
            what = self.registration.interrupt.raised() => match what {
                Interruption::Statement => Waited::Killed,
                Interruption::Connection => Waited::ClientLost,
            },
            () = poll_fn(|cx| line.lock().transport.poll_hangup(cx)) => Waited::ClientLost,
            // KILL at the source ends its connection, and so this one.
            () = behind.source_gone() => Waited::ClientLost,
        };
        if matches!((&waited, routing.freshness), (Waited::Fresh, Freshness::Latest | Freshness::Session)) {
            behind.view.has_written = false;
        }
        waited
    }
}

/// A default database that is not here is looked for again after so long.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);

fn is_unknown_database(error: &SqlError) -> bool {
    error.errno == ErrorCode::BAD_DB_ERROR.with(&[&""]).errno
}

/// Why the tables of a query cannot be read here in the place of the source: this client may not read all of their columns there, or
/// its session has a temporary table of that name. The source is asked each time, about the tables that would be read here, by
/// statements of the front's own.
async fn why_not_read(
    behind: &mut Behind,
    candidate: &Candidate,
    client: Option<Charset>,
) -> Result<Option<String>, WireError> {
    for (database, table) in &candidate.tables {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let name = match database {
            Some(database) => format!("{}.{}", quoted(database), quoted(table)),
            None => quoted(table),
        };
        let definition = format!("SHOW CREATE TABLE {name}");
        let definition = match behind.upstream.query(&charset::encode_for(&definition, client)).await {
            Ok(rows) => {
                rows.into_iter().next().and_then(|row| row.into_iter().nth(1).flatten()).unwrap_or_default()
            }
            Err(NoAnswer::Refused(error)) => return Ok(Some(format!("the source says: {}", error.message))),
            Err(NoAnswer::Lost(error)) => return Err(error),
        };
        if definition.starts_with(b"CREATE TEMPORARY TABLE") {
            return Ok(Some("it reads a temporary table".into()));
        }
        // What a view is made of is not in the query's text.
        if behind.dialect == Dialect::MariaDb && !definition.starts_with(b"CREATE TABLE") {
            return Ok(Some("it reads a view, of which a MariaDB may make something else".into()));
        }
        let mut all = b"EXPLAIN SELECT *".to_vec();
        for column in invisible_columns(&definition) {
            all.extend_from_slice(b", ");
            all.extend_from_slice(column);
        }
        all.extend_from_slice(&charset::encode_for(&format!(" FROM {name}"), client));
        match behind.upstream.query(&all).await {
            Ok(_) => {}
            Err(NoAnswer::Refused(error)) => return Ok(Some(format!("the source says: {}", error.message))),
            Err(NoAnswer::Lost(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// The columns, in backquotes, that `*` does not mean: SHOW CREATE TABLE has a line for each column, which begins with its name. A
/// comment that looks like it only asks for more than is needed.
fn invisible_columns(definition: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = definition.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    lines.filter_map(|line| {
        let rest = line.strip_prefix(b"`")?;
        if !line.windows(b"INVISIBLE".len()).any(|word| word == b"INVISIBLE") {
            return None;
        }
        // A backquote in a name is doubled.
        let mut end = 0;
        while end < rest.len() {
            match (rest[end], rest.get(end + 1)) {
                (b'`', Some(b'`')) => end += 2,
                (b'`', _) => return line.get(..end + 2),
                _ => end += 1,
            }
        }
        None
    })
}

async fn ask_cost(behind: &mut Behind, explained: &[u8]) -> Result<f64, NoAnswer> {
    let mut sql = b"EXPLAIN FORMAT=JSON ".to_vec();
    sql.extend_from_slice(explained);
    let rows = behind.upstream.query(&sql).await?;
    let json = rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
    Ok(json.and_then(|json| read_cost(json, behind.dialect)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_columns_are_named_as_the_definition_has_them() {
        let definition = b"CREATE TABLE `t` (\n  `a` int NOT NULL,\n  `b``c` int DEFAULT NULL /*!80023 INVISIBLE */,\n  PRIMARY KEY (`a`)\n)";
        assert_eq!(invisible_columns(definition).collect::<Vec<_>>(), [b"`b``c`"]);
        assert_eq!(invisible_columns(b"`cut INVISIBLE").count(), 0);
    }
}
