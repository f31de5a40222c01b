//! Where a query runs: by its text, its session, what the source thinks it costs, and how fresh the data here is.

use std::future::poll_fn;
use std::time::{Duration, Instant};

use avocet_channel::Interruption;
use avocet_session::api::{Freshness, Route, Routing, SessionFactory, SqlSession};
use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};

use super::Behind;
use crate::connection::Connection;
use crate::front::Late;
use crate::front::costs::{Costs, read_cost};
use crate::front::shape::Candidate;
use crate::front::upstream::NoAnswer;
use crate::front::view::{Settings, question};
use crate::protocol::{StatusFlags, charset};
use crate::sink::Discard;
use crate::wire::WireError;

/// How often a permission is asked for that accounts have changed under.
const MOST_ASKED: usize = 3;

/// What came of a search for a place.
pub(super) enum Chosen {
    /// The session here is like the source's, and the data is as fresh as it is to be.
    Here(Noted),
    Source(Noted),
    Error(SqlError),
    /// The connection to the source is gone.
    SourceLost(WireError),
    /// The client is gone, or the connection was killed.
    ClientLost,
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
enum Waited {
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
            () if view.holds_table_locks => "the session has locked tables",
            () if candidate.needs_clock && view.clock_is_set => "the session's timestamp is set",
            () if self.routing_of(candidate).route == Route::Source => "avocet_route is source",
            () => {
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
        !reads_committed || view.may_have_other_level || (is_open && view.has_changed)
    }

    /// Whether the source is known to have little work with a query: then nothing else need be asked. Leaves the query's key.
    pub(super) fn is_known_cheap(&self, behind: &mut Behind, candidate: &Candidate) -> bool {
        let routing = self.routing_of(candidate);
        let Some(settings) = &behind.view.applied else { return false };
        Costs::key(settings, &behind.digest.text, &mut behind.key);
        let known = behind.front.costs.get(&behind.key, behind.front.source.accounts_version());
        routing.route == Route::Auto && known.is_some_and(|known| known.cost < routing.least_cost)
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
        let settings = match behind.upstream.query(question().as_bytes()).await {
            Ok(rows) => {
                rows.first().map_or(Err("the source tells nothing of its session".into()), Settings::read)
            }
            Err(NoAnswer::Refused(error)) => Err(error.message),
            Err(NoAnswer::Lost(error)) => return Err(error),
        };
        let settings = match settings {
            Ok(settings) => settings,
            Err(why) => {
                behind.view.unlike = Some(why);
                return Ok(());
            }
        };
        behind.view.clock_is_set = settings.clock_is_set;
        if behind.view.applied.as_ref() != Some(&settings) {
            if let Err(error) = self.apply(&settings).await {
                behind.view.applied = None;
                behind.view.unlike = Some(format!("its settings cannot be had here: {}", error.message));
                return Ok(());
            }
            behind.view.applied = Some(settings.clone());
        }
        behind.view.settings = Some(settings);
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
                Some(database) if !behind.front.source.follows(database, table) => {
                    return Noted::because(format!("{database}.{table} is not followed"));
                }
                Some(_) => {}
            }
        }
        if has_key {
            // The default database is known by now.
            Costs::key(settings, &behind.digest.text, &mut behind.key);
        }
        if behind.view.may_have_temporary {
            let client = self.session.status().client;
            match reads_temporary(behind, candidate, client).await {
                Ok(false) => {}
                Ok(true) => return Noted::because("it reads a temporary table"),
                Err(NoAnswer::Refused(error)) => return Noted::because(error.message),
                Err(NoAnswer::Lost(error)) => return Chosen::SourceLost(error),
            }
        }
        let mut noted = Noted::default();
        for _ in 0..MOST_ASKED {
            let version = behind.front.source.accounts_version();
            let known = behind.front.costs.get(&behind.key, version).filter(|_| has_key);
            let (cost, refused) = match known {
                Some(known) => (known.cost, known.refused),
                None => match ask_cost(behind, explained).await {
                    Ok(cost) => {
                        if has_key {
                            behind.front.costs.put(&behind.key, cost, version);
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
            let began = Instant::now();
            let waited = self.wait_until_fresh(behind, &routing).await;
            noted.waited += began.elapsed();
            match waited {
                Waited::Fresh => {}
                Waited::Killed => return Chosen::Error(ErrorCode::QUERY_INTERRUPTED.with(&[])),
                Waited::ClientLost => return Chosen::ClientLost,
                Waited::Late(late) if routing.fails_when_late => {
                    return Chosen::Error(ErrorCode::UNKNOWN_ERROR.because(format!("Avocet: {late}")));
                }
                Waited::Late(late) => {
                    noted.why = late.to_string();
                    (noted.fell_back, noted.was_late) = (true, true);
                    return Chosen::Source(noted);
                }
            }
            if behind.front.source.accounts_version() == version {
                noted.why = match routing.route {
                    Route::Here => "avocet_route is here".into(),
                    _ => "the source would have more work with it".into(),
                };
                return Chosen::Here(noted);
            }
        }
        Noted::because("accounts change all the time")
    }

    async fn wait_until_fresh(&mut self, behind: &mut Behind, routing: &Routing) -> Waited {
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
        };
        if matches!((&waited, routing.freshness), (Waited::Fresh, Freshness::Latest | Freshness::Session)) {
            behind.view.has_written = false;
        }
        waited
    }
}

/// Whether one of the tables is a temporary one that a procedure or the like has made: the source is asked.
async fn reads_temporary(
    behind: &mut Behind,
    candidate: &Candidate,
    client: Option<Charset>,
) -> Result<bool, NoAnswer> {
    for (database, table) in &candidate.tables {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        let name = match database {
            Some(database) => format!("{}.{}", quoted(database), quoted(table)),
            None => quoted(table),
        };
        let question = format!("SHOW CREATE TABLE {name}");
        let rows = behind.upstream.query(&charset::encode(&question, client)).await?;
        let definition = rows.first().and_then(|row| row.get(1)).and_then(Option::as_deref);
        if definition.is_some_and(|text| text.starts_with(b"CREATE TEMPORARY TABLE")) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn ask_cost(behind: &mut Behind, explained: &[u8]) -> Result<f64, NoAnswer> {
    let mut sql = b"EXPLAIN FORMAT=JSON ".to_vec();
    sql.extend_from_slice(explained);
    let rows = behind.upstream.query(&sql).await?;
    let json = rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
    Ok(json.and_then(read_cost).unwrap_or_default())
}
