//! Statements of a client that came through a front, from their text to the end of their reply.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use avocet_channel::Interruption;
use avocet_session::api::{Journal, Routed, SessionFactory, SqlSession, StatementId};
use avocet_types::error::{ErrorCode, SqlError};

use super::Behind;
use super::choice::{Chosen, Noted};
use super::places::Asked;
use crate::connection::commands::Ran;
use crate::connection::{Connection, Next};
use crate::front::dialect::Dialect;
use crate::front::effects::Effects;
use crate::front::framer::Reply;
use crate::front::shape::{Candidate, Place, Shape};
use crate::protocol::charset;
use crate::protocol::command::{self, Command};
use crate::registry::Activity;
use crate::sink::Discard;
use crate::wire::WireError;

/// A query that takes the source so long is not as cheap as it was thought to be.
const DEAR: Duration = Duration::from_millis(50);

/// How a statement came.
#[derive(Clone)]
pub(super) enum Job {
    Query(Range<usize>),
    /// With the number that the source has given it.
    Execute(Range<usize>, u32),
}

impl<F: SessionFactory> Connection<F> {
    pub(super) async fn query_with(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
    ) -> Result<Next, WireError> {
        let raw = match command::parse(self.wire.input.slice(packet.clone()), self.capabilities) {
            Ok(Command::Query(raw)) => raw,
            _ => return Ok(Next::Close),
        };
        self.begin(Activity::Query, raw);
        let job = Job::Query(packet);
        let Some((shape, has_key)) = self.shape_of(behind, &job) else {
            // The source says what is wrong with its characters.
            return self.pass_job(behind, job, &Effects::unknown()).await;
        };
        self.answer(behind, job, shape, has_key).await
    }

    /// The shape of a statement, and whether it has a digest, which is read then. `None` if its text is not in the client's
    /// character set.
    fn shape_of(&self, behind: &mut Behind, job: &Job) -> Option<(Arc<Shape>, bool)> {
        match job {
            Job::Query(packet) => {
                let text = self.text_of(packet.clone())?;
                Some(behind.front.shapes.of(&text, self.session.sql_mode(), &mut behind.digest))
            }
            Job::Execute(_, id) => behind.shape_of_prepared(*id, self.session.sql_mode()),
        }
    }

    fn text_of(&self, packet: Range<usize>) -> Option<Cow<'_, str>> {
        match command::parse(self.wire.input.slice(packet), self.capabilities) {
            Ok(Command::Query(raw)) => {
                charset::decode(raw, self.session.status().client, self.session.sql_mode()).ok()
            }
            _ => None,
        }
    }

    /// Runs a statement where its shape, its session and the data's freshness let it. What more than passing it on takes is in boxes: the
    /// future of a statement that is passed on is small.
    pub(super) async fn answer(
        &mut self,
        behind: &mut Behind,
        job: Job,
        mut shape: Arc<Shape>,
        mut has_key: bool,
    ) -> Result<Next, WireError> {
        let began = Instant::now();
        for is_known in [false, true] {
            match &shape.place {
                Place::Here { .. } => break,
                Place::WithLast if shape.asks_several(behind.has_last_query_where_last()) => {
                    return Ok(self.refuse_apart());
                }
                Place::WithLast if self.asks_here(behind, &shape) => match behind.peer_asked(&shape) {
                    None => break,
                    Some(peer) => return Box::pin(self.ask_last_peer(behind, &job, &peer)).await,
                },
                Place::Source(_) if self.asks_here(behind, &shape) => return Ok(self.refuse_apart()),
                Place::Source(why) => return self.pass_plainly(behind, job, &shape, why, began).await,
                Place::WithLast => return self.pass_plainly(behind, job, &shape, "", began).await,
                Place::Either(candidate) => {
                    if let Some(why) = self.why_not_here(behind, candidate) {
                        return self.pass_plainly(behind, job, &shape, why, began).await;
                    }
                    if has_key && self.is_known_cheap(behind, candidate) {
                        let key = std::mem::take(&mut behind.key);
                        let next =
                            self.pass_plainly(behind, job, &shape, "it seemed to be cheap", began).await;
                        if began.elapsed() > DEAR {
                            behind.front.costs.measured(&key, began.elapsed());
                        }
                        behind.key = key;
                        return next;
                    }
                    if is_known || behind.view.is_known() {
                        let candidate = candidate.clone();
                        let chosen = self.answer_either(behind, job, &shape, &candidate, has_key, began);
                        return Box::pin(chosen).await;
                    }
                    if let Err(error) = Box::pin(self.match_session(behind)).await {
                        return Ok(self.lost_source(&error));
                    }
                    // The text may mean something else under the session's real settings.
                    match self.shape_of(behind, &job) {
                        Some(found) => (shape, has_key) = found,
                        None => {
                            return self
                                .pass_plainly(behind, job, &shape, "its text cannot be read", began)
                                .await;
                        }
                    }
                }
            }
        }
        Box::pin(self.answer_own(behind, job, &shape)).await
    }

    /// Runs a statement that is about what happened here, or about this server.
    async fn answer_own(&mut self, behind: &mut Behind, job: Job, shape: &Shape) -> Result<Next, WireError> {
        let as_there = !matches!(shape.place, Place::Here { as_there: false });
        if as_there && let Err(error) = self.match_session(behind).await {
            return Ok(self.lost_source(&error));
        }
        if matches!(shape.place, Place::Here { .. })
            && let Err(error) = self.speak_own(behind).await
        {
            self.reply_error(&error);
            return Ok(Next::Continue);
        }
        let ran = self.run_job(behind, &job).await?;
        // FOUND_ROWS() and warnings are asked for by statements that leave them as they are.
        if !matches!(shape.place, Place::WithLast) {
            behind.last_peer = None;
            if shape.effects.finds_rows {
                behind.last_query_peer = None;
                behind.view.last_query_ran_here = true;
            }
        }
        behind.view.last_ran_here = true;
        Ok(self.conclude(ran.outcome))
    }

    /// What is about Avocet alone means what it means here, whatever the source is.
    async fn speak_own(&mut self, behind: &mut Behind) -> Result<(), SqlError> {
        if behind.dialect == Dialect::MySql {
            return Ok(());
        }
        self.session.execute("SET SESSION avocet_dialect = 'mysql'", &mut Discard).await?;
        // The next query of the source's tables finds the session like the source's again.
        (behind.view.settings, behind.view.applied) = (None, None);
        Ok(())
    }

    /// What a statement asks for is known where it cannot run.
    fn refuse_apart(&mut self) -> Next {
        let message = "Avocet: a statement before ran on another server than this one runs on, which cannot tell its FOUND_ROWS(), \
                       ROW_COUNT() or warnings; SET avocet_route = 'source' before it, or ask for each of them alone";
        self.reply_error(&ErrorCode::UNKNOWN_ERROR.because(message));
        Next::Continue
    }

    fn asks_here(&self, behind: &Behind, shape: &Shape) -> bool {
        shape.asks_here(behind.view.last_ran_here, behind.view.last_query_ran_here)
    }

    async fn answer_either(
        &mut self,
        behind: &mut Behind,
        job: Job,
        shape: &Shape,
        candidate: &Candidate,
        has_key: bool,
        began: Instant,
    ) -> Result<Next, WireError> {
        if let Job::Execute(_, id) = &job
            && let Some(why) = behind.why_means_other(*id)
        {
            return self.pass_plainly(behind, job, shape, why, began).await;
        }
        let Some(explained) = self.explained(behind, &job) else {
            return self.pass_plainly(behind, job, shape, "it cannot be explained", began).await;
        };
        match self.choose(behind, candidate, &explained, has_key).await {
            Chosen::SourceLost(error) => Ok(self.lost_source(&error)),
            Chosen::Source(noted) => {
                let next = self.pass_job(behind, job.clone(), &shape.effects).await;
                self.note(behind, &job, false, noted, began);
                next
            }
            Chosen::Replica(noted) => {
                let routing = self.routing_of(candidate);
                self.run_on_replica(behind, Asked { job, shape, has_key, began }, &routing, noted).await
            }
        }
    }

    /// As the source can explain it.
    fn explained(&mut self, behind: &Behind, job: &Job) -> Option<Vec<u8>> {
        match job {
            Job::Query(packet) => {
                match command::parse(self.wire.input.slice(packet.clone()), self.capabilities) {
                    Ok(Command::Query(raw)) => Some(raw.to_vec()),
                    _ => None,
                }
            }
            Job::Execute(packet, id) => self.explained_execute(behind, packet.clone(), *id),
        }
    }

    pub(super) async fn run_job(&mut self, behind: &mut Behind, job: &Job) -> Result<Ran, WireError> {
        self.outer_status = Some(behind.upstream.status);
        if let Job::Execute(_, id) = job
            && let Err(error) = self.prepare_here(behind, *id).await
        {
            return Ok(Ran::failed(error));
        }
        let interrupt = self.registration.interrupt.clone();
        // KILL at the source ends its connection, and so this one.
        let gone = move || interrupt.raise(Interruption::Connection);
        let kept = behind.upstream.keep(behind.ping_every(), gone);
        let ran = match job {
            Job::Query(packet) => self.run_query(packet.clone()).await,
            Job::Execute(packet, id) => Ok(self.run_prepared(packet.clone(), StatementId(*id)).await),
        };
        if let Some(upstream) = kept.take_back().await {
            behind.upstream = upstream;
        }
        ran
    }

    /// To the source, as one of many, of which nothing is noted unless it takes long.
    async fn pass_plainly(
        &mut self,
        behind: &mut Behind,
        job: Job,
        shape: &Shape,
        why: &str,
        began: Instant,
    ) -> Result<Next, WireError> {
        let next = self.pass_job(behind, job.clone(), &shape.effects).await;
        match began.elapsed() > DEAR {
            true => self.note(behind, &job, false, Noted { why: why.to_owned(), ..Noted::default() }, began),
            false => behind.front.journal.count_passed_on(),
        }
        next
    }

    pub(super) async fn pass_job(
        &mut self,
        behind: &mut Behind,
        job: Job,
        effects: &Effects,
    ) -> Result<Next, WireError> {
        match job {
            Job::Query(packet) => self.pass(behind, packet, Reply::Results, effects).await,
            Job::Execute(packet, id) => self.pass_execute(behind, packet, id, effects).await,
        }
    }

    pub(super) fn note(&self, behind: &Behind, job: &Job, ran_here: bool, noted: Noted, began: Instant) {
        let text = match job {
            Job::Query(packet) => self.text_of(packet.clone()).unwrap_or_default(),
            Job::Execute(_, id) => behind.statements.get(id).map_or("", |remote| &remote.text).into(),
        };
        let mut end = text.len().min(Journal::TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let took = began.elapsed();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let routed = Routed {
            id: 0,
            at_us: now.saturating_sub(took).as_micros() as i64,
            thread: behind.thread,
            user: behind.user.clone(),
            database: behind.view.applied.as_ref().and_then(|settings| settings.database.clone()),
            text: text[..end].to_owned(),
            ran_here,
            why: noted.why,
            cost: noted.cost,
            freshness: self.session.routing().freshness.to_string(),
            waited_us: noted.waited.as_micros() as u64,
            took_us: took.as_micros() as u64,
        };
        behind.front.journal.note(routed, noted.fell_back, noted.was_late);
    }
}

/// Errors that somebody has asked for: KILL, and limits of time. They are the statement's end wherever it runs.
pub(super) fn is_asked_for(errno: u16) -> bool {
    errno == ErrorCode::QUERY_INTERRUPTED.with(&[]).errno || errno == 3024
}
