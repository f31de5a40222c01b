//! Queries of a client that run on a peer of this server: another Avocet that follows the same source.
//!
//! The client's settings are given to a session there, the peer waits until it is as fresh as asked for, and its reply is passed on as
//! it comes. Until the first packet of that has come, the query can go elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_channel::Interruption;
use avocet_session::api::{Freshness, Routing, SessionFactory, SqlSession};
use avocet_types::error::{ErrorCode, SqlError};
use foldhash::HashMap;

use super::Behind;
use super::relay::{GATHERED, move_reply};
use super::statement::{Job, is_asked_for};
use crate::connection::{Connection, Next};
use crate::front::framer::{Framer, Reply, Step};
use crate::front::peers::Peer;
use crate::front::shape::Shape;
use crate::front::upstream::{NoAnswer, Upstream, read_error};
use crate::front::view::Settings;
use crate::front::{Front, Late, login};
use crate::protocol::params;
use crate::protocol::{StatusFlags, charset};
use crate::wire::WireError;

const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_CLOSE: u8 = 25;
/// Where a COM_STMT_EXECUTE has its statement's number.
const STATEMENT_AT: std::ops::Range<usize> = 1..5;
/// Whether a peer still follows the source is asked for again after so long.
const WELL_FOR: Duration = Duration::from_secs(1);
/// So long a peer may take to let this server in.
const PATIENCE: Duration = Duration::from_secs(2);
/// Larger commands are not sent to peers: one with parameters is copied for that.
const MOST_SENT: usize = 1 << 20;

/// A client's session on a peer.
pub(super) struct Link {
    peer: Arc<Peer>,
    upstream: Upstream,
    /// As the peer numbers it.
    thread: u32,
    /// As the session there is set.
    applied: Option<Settings>,
    has_database: bool,
    /// The peer's numbers of the client's prepared statements, by the source's.
    statements: HashMap<u32, u32>,
    /// Of those that the client has closed, the peer's numbers; it is told before the next command.
    closed: Vec<u32>,
    /// When the peer was seen to follow the source, and which server that was.
    well_since: Option<Instant>,
    follows: String,
}

impl Behind {
    /// Whether the last query ran on the server on which the last statement did.
    pub(super) fn has_last_query_where_last(&self) -> bool {
        let peers = (self.last_peer.as_ref(), self.last_query_peer.as_ref());
        let is_one_peer = match peers {
            (Some(last), Some(query)) => Arc::ptr_eq(last, query),
            (None, None) => true,
            _ => false,
        };
        self.view.last_ran_here == self.view.last_query_ran_here && (is_one_peer || !self.view.last_ran_here)
    }

    /// The peer that has what a statement asks for of the one before.
    pub(super) fn peer_asked(&self, shape: &Shape) -> Option<Arc<Peer>> {
        match shape.asks_found_rows {
            true => self.last_query_peer.clone(),
            false => self.last_peer.clone(),
        }
    }
}

impl Link {
    pub fn is_large(&self) -> bool {
        self.upstream.wire.is_large()
    }

    pub fn rest(&mut self) {
        self.upstream.wire.rest();
    }

    /// The client has closed a prepared statement.
    pub fn forget(&mut self, id: u32) {
        self.closed.extend(self.statements.remove(&id));
    }
}

/// How an attempt ended.
pub(super) enum Tried {
    Done(Next),
    /// It was killed; nothing has been sent to the client.
    Killed,
    /// The client is gone, or the connection was killed.
    Gone,
    Late(Late),
    /// It cannot be had there, and hardly anywhere else.
    Refused(String),
    Failed(String),
    /// The peer is gone, before the client has got anything.
    Lost(String),
}

/// Why a peer cannot run a query.
enum Unready {
    Late(Late),
    /// What it says, and it may be used for others.
    Refused(String),
    Lost(String),
}

impl From<NoAnswer> for Unready {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::Refused(error) => Self::Refused(error.message),
            NoAnswer::Lost(error) => Self::Lost(error.to_string()),
        }
    }
}

impl From<WireError> for Unready {
    fn from(error: WireError) -> Self {
        Self::Lost(error.to_string())
    }
}

impl<F: SessionFactory> Connection<F> {
    /// Runs a query on a peer, if that one can, and is fresh enough.
    pub(super) async fn try_peer(
        &mut self,
        behind: &mut Behind,
        job: &Job,
        peer: &Arc<Peer>,
        routing: &Routing,
    ) -> Result<Tried, WireError> {
        // A reply of the peer says that it is in no transaction, and commits by itself.
        let status = behind.upstream.status;
        if status.contains(StatusFlags::SERVER_STATUS_IN_TRANS)
            || !status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT)
        {
            return Ok(Tried::Failed("a transaction is open".into()));
        }
        let (Job::Query(packet) | Job::Execute(packet, _)) = job;
        if packet.len() > MOST_SENT {
            return Ok(Tried::Failed("it is too long for a peer".into()));
        }
        // A session that was there may have ended with the peer that is there again.
        let known = behind.links.iter().any(|link| Arc::ptr_eq(&link.peer, peer));
        match self.try_link(behind, job, peer, routing).await? {
            Tried::Lost(_) if known => {}
            tried => return Ok(tried),
        }
        self.try_link(behind, job, peer, routing).await
    }

    async fn try_link(
        &mut self,
        behind: &mut Behind,
        job: &Job,
        peer: &Arc<Peer>,
        routing: &Routing,
    ) -> Result<Tried, WireError> {
        let interrupt = self.registration.interrupt.clone();
        let ready = tokio::select! {
            biased;
            ready = tokio::time::timeout(routing.patience + PATIENCE, self.ready(behind, job, peer, routing)) => {
                ready.unwrap_or_else(|_| Err(Unready::Lost("it does not answer".into())))
            }
            Interruption::Statement = interrupt.raised() => return Ok(Tried::Killed),
        };
        let (mut link, payload) = match ready {
            Ok(ready) => ready,
            Err(Unready::Late(late)) => return Ok(Tried::Late(late)),
            Err(Unready::Refused(why)) => return Ok(Tried::Failed(format!("{peer}: {why}"))),
            Err(Unready::Lost(why)) => return Ok(Tried::Lost(why)),
        };
        if let Err(error) = link.upstream.send(&payload).await {
            return Ok(Tried::Lost(error.to_string()));
        }
        match self.await_first(behind, &mut link).await {
            First::Reply => {}
            First::Error(error) if is_asked_for(error.errno) => {
                self.reply_error(&error);
                behind.links.push(link);
                return Ok(Tried::Done(Next::Continue));
            }
            First::Error(error) => {
                behind.links.push(link);
                return Ok(Tried::Failed(format!("{peer}: {}", error.message)));
            }
            First::Lost(error) => return Ok(Tried::Lost(error.to_string())),
            // The connection is given up, which ends the query there, too.
            First::Deaf => return Ok(Tried::Killed),
            First::SourceLost => return Ok(Tried::Gone),
        }
        let next = self.pass_from(behind, &mut link).await?;
        if next == Next::Continue {
            behind.links.push(link);
        }
        Ok(Tried::Done(next))
    }

    /// Runs a statement that asks for the warnings or the numbers of the one before, where that one ran; `None` if the session there
    /// is gone.
    pub(super) async fn ask_peer(
        &mut self,
        behind: &mut Behind,
        job: &Job,
        peer: &Arc<Peer>,
    ) -> Result<Option<Next>, WireError> {
        let Some(at) = behind.links.iter().position(|link| Arc::ptr_eq(&link.peer, peer)) else {
            return Ok(None);
        };
        let mut link = behind.links.swap_remove(at);
        let Ok(payload) = self.payload_for(behind, &mut link, job).await else { return Ok(None) };
        if link.upstream.send(&payload).await.is_err() {
            return Ok(None);
        }
        let next = self.pass_from(behind, &mut link).await?;
        if next == Next::Continue {
            behind.links.push(link);
        }
        Ok(Some(next))
    }

    /// A session on the peer that is like the client's, on data that is as fresh as it is to be, and what is to be sent to it.
    async fn ready(
        &mut self,
        behind: &mut Behind,
        job: &Job,
        peer: &Arc<Peer>,
        routing: &Routing,
    ) -> Result<(Link, Vec<u8>), Unready> {
        let front = behind.front.clone();
        let known = behind.links.iter().position(|link| Arc::ptr_eq(&link.peer, peer));
        let known = known.map(|at| behind.links.swap_remove(at));
        // A default database that was chosen cannot be given up, but with the session.
        let has_database = behind.view.settings.as_ref().is_some_and(|settings| settings.database.is_some());
        let mut link = match known.filter(|link| has_database || !link.has_database) {
            Some(link) => link,
            None => self.link_to(&front, behind.upstream.capabilities, peer).await?,
        };
        if link.well_since.is_none_or(|since| since.elapsed() > WELL_FOR) {
            let own = front.source.uuid();
            check(&own, &mut link.upstream).await?;
            (link.well_since, link.follows) = (Some(Instant::now()), own);
        }
        if link.applied != behind.view.settings {
            link.applied = None;
            let Some(settings) = behind.view.settings.clone() else {
                return Err(Unready::Refused("the session is not known".into()));
            };
            link.upstream.query(settings.set.as_bytes()).await?;
            if let Some(database) = &settings.database {
                let client = self.session.status().client;
                let choice = format!("USE `{}`", database.replace('`', "``"));
                link.upstream.query(&charset::encode_for(&choice, client)).await?;
                link.has_database = true;
            }
            link.applied = Some(settings);
        }
        tokio::select! {
            biased;
            waited = wait_until_fresh(&front, &mut link, routing) => waited?,
            () = behind.source_gone() => {
                return Err(Unready::Refused("the source has closed the connection".into()));
            }
        }
        // What is visible here may be older than what the session sees now.
        behind.view.has_written = true;
        let payload = self.payload_for(behind, &mut link, job).await?;
        Ok((link, payload))
    }

    async fn link_to(
        &mut self,
        front: &Front,
        capabilities: crate::protocol::CapabilityFlags,
        peer: &Arc<Peer>,
    ) -> Result<Link, Unready> {
        let tls = (&front.peer_connector, front.source.tls().is_required);
        let signed_in = login::sign_in(&peer.account, capabilities, tls, PATIENCE);
        let (mut upstream, thread) = match tokio::time::timeout(PATIENCE, signed_in).await {
            Ok(Ok(signed_in)) => signed_in,
            // It lets nobody in: as good as away.
            Ok(Err(NoAnswer::Refused(error))) => return Err(Unready::Lost(error.message)),
            Ok(Err(NoAnswer::Lost(error))) => return Err(Unready::Lost(error.to_string())),
            Err(_) => return Err(Unready::Lost("it does not answer".into())),
        };
        upstream.wire.count(self.shared.memory.as_ref());
        // A view that asks who reads it would be told of the front's account.
        upstream.query(b"SET SESSION avocet_on_behalf = ON").await?;
        let peer = peer.clone();
        Ok(Link {
            peer,
            upstream,
            thread,
            applied: None,
            has_database: false,
            statements: HashMap::default(),
            closed: Vec::new(),
            well_since: None,
            follows: String::new(),
        })
    }

    /// The client's command as the peer understands it, which has other numbers for prepared statements.
    async fn payload_for(&mut self, behind: &Behind, link: &mut Link, job: &Job) -> Result<Vec<u8>, Unready> {
        for there in std::mem::take(&mut link.closed) {
            let [a, b, c, d] = there.to_le_bytes();
            link.upstream.send(&[COM_STMT_CLOSE, a, b, c, d]).await?;
        }
        let (packet, id) = match job {
            Job::Query(packet) => return Ok(self.wire.input.slice(packet.clone()).to_vec()),
            Job::Execute(packet, id) => (packet.clone(), *id),
        };
        let gone = || Unready::Refused("the statement is not known".into());
        let remote = behind.statements.get(&id).ok_or_else(gone)?;
        let there = match link.statements.get(&id) {
            Some(there) => *there,
            None => {
                let client = self.session.status().client;
                let there = prepare(&mut link.upstream, &charset::encode_for(&remote.text, client)).await?;
                link.statements.insert(id, there);
                there
            }
        };
        let payload = self.wire.input.slice(packet);
        let whole = match remote.binds || remote.params == 0 {
            false => params::with_types(payload, self.capabilities, remote.params, &remote.types)
                .ok_or_else(gone)?,
            true => payload.to_vec(),
        };
        let mut payload = whole;
        payload.get_mut(STATEMENT_AT).ok_or_else(gone)?.copy_from_slice(&there.to_le_bytes());
        Ok(payload)
    }

    /// Waits for the begin of a reply, as long as the query takes.
    async fn await_first(&mut self, behind: &mut Behind, link: &mut Link) -> First {
        let interrupt = self.registration.interrupt.clone();
        let mut killed: Option<tokio::time::Instant> = None;
        loop {
            let deaf = killed.map(|at| at + PATIENCE);
            if let Some(first) = first_of(&mut link.upstream) {
                return first;
            }
            tokio::select! {
                biased;
                read = link.upstream.wire.more() => {
                    if let Err(error) = read {
                        return First::Lost(error);
                    }
                }
                () = behind.source_gone() => return First::SourceLost,
                Interruption::Statement = interrupt.raised(), if killed.is_none() => {
                    killed = Some(tokio::time::Instant::now());
                    self.kill(&behind.front, link);
                }
                () = at(deaf) => return First::Deaf,
            }
        }
    }

    /// Passes a peer's reply on to the client.
    async fn pass_from(&mut self, behind: &mut Behind, link: &mut Link) -> Result<Next, WireError> {
        let mut framer = Framer::new(Reply::Results, link.upstream.deprecates_eof());
        let interrupt = self.registration.interrupt.clone();
        let mut has_passed = false;
        let mut killed: Option<tokio::time::Instant> = None;
        loop {
            let step = move_reply(&mut framer, &mut link.upstream.wire, &mut self.wire)?;
            has_passed |= step.count() > 0;
            match step {
                Step::Ended(_) => break,
                // No query reads the client's files.
                Step::File(_) => return Ok(Next::Close),
                Step::More(_) => {}
            }
            if self.wire.out.len() >= GATHERED {
                self.wire.flush().await?;
            }
            let is_waiting = !self.wire.out.is_empty();
            tokio::select! {
                biased;
                read = link.upstream.wire.more() => {
                    if let Err(error) = read {
                        link.peer.failed(&error);
                        if !has_passed {
                            self.reply_error(&ErrorCode::UNKNOWN_ERROR.because(format!("Avocet: {}: {error}", link.peer)));
                            return Ok(Next::Continue);
                        }
                        // Half a reply cannot be ended properly.
                        return Ok(Next::Close);
                    }
                }
                flushed = self.wire.flush(), if is_waiting => flushed?,
                () = behind.source_gone() => return Ok(Next::Close),
                Interruption::Statement = interrupt.raised(), if killed.is_none() => {
                    killed = Some(tokio::time::Instant::now());
                    self.kill(&behind.front, link);
                }
                () = at(killed.map(|at| at + PATIENCE)) => return Ok(Next::Close),
            }
        }
        link.upstream.wire.rest_for_now();
        Ok(Next::Continue)
    }

    /// Ends the statement of a session on a peer; that one's reply says so.
    fn kill(&self, front: &Arc<Front>, link: &Link) {
        let (front, peer, thread) = (front.clone(), link.peer.clone(), link.thread);
        let capabilities = link.upstream.capabilities;
        tokio::spawn(async move {
            let tls = (&front.peer_connector, front.source.tls().is_required);
            let killed = async {
                let (mut upstream, _) = login::sign_in(&peer.account, capabilities, tls, PATIENCE).await?;
                upstream.query(format!("KILL QUERY {thread}").as_bytes()).await
            };
            match tokio::time::timeout(PATIENCE, killed).await {
                Ok(Ok(_)) => {}
                Ok(Err(NoAnswer::Refused(error))) => tracing::warn!(%peer, %error, "a query was not killed"),
                Ok(Err(NoAnswer::Lost(error))) => tracing::warn!(%peer, %error, "a query was not killed"),
                Err(_) => tracing::warn!(%peer, "a query was not killed: no answer"),
            }
        });
    }
}

/// Whether the peer follows this server, which is the own source.
async fn check(own: &str, upstream: &mut Upstream) -> Result<(), Unready> {
    let rows = upstream.query(b"SELECT source_uuid, sql_running FROM avocet.replication").await?;
    let text = |row: &[Option<Vec<u8>>], at: usize| {
        String::from_utf8_lossy(row.get(at).and_then(Option::as_deref).unwrap_or_default()).into_owned()
    };
    match rows.as_slice() {
        [row] if text(row, 0) != own => {
            Err(Unready::Lost(format!("it follows the server {}, and this one {own}", text(row, 0))))
        }
        [row] if text(row, 1) != "Yes" => Err(Unready::Lost("it has stopped following the source".into())),
        [_] => Ok(()),
        _ => Err(Unready::Lost(
            "it does not follow the source, or its account may not see that (SUPER or REPLICATION CLIENT)"
                .into(),
        )),
    }
}

async fn wait_until_fresh(front: &Front, link: &mut Link, routing: &Routing) -> Result<(), Unready> {
    match routing.freshness {
        Freshness::Any => return Ok(()),
        Freshness::Bounded(bound) if link.peer.is_fresh_within(bound) => return Ok(()),
        // Another place may have shown the session more than this one has.
        Freshness::Session | Freshness::Bounded(_) | Freshness::Latest => {}
    }
    let began = Instant::now();
    let end = tokio::time::timeout(routing.patience, front.source.end());
    let end = end.await.unwrap_or(Err(Late::TimedOut)).map_err(Unready::Late)?;
    // Places of one server say nothing about another's log.
    if link.follows != end.source {
        check(&end.source, &mut link.upstream).await?;
        link.follows.clone_from(&end.source);
    }
    let left = routing.patience.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
    let file = end.file.replace('\\', "\\\\").replace('\'', "''");
    let sql = format!("SELECT SOURCE_POS_WAIT('{file}', {}, {:.3})", end.offset, left.as_secs_f64());
    let rows = link.upstream.query(sql.as_bytes()).await?;
    let waited = rows.first().and_then(|row| row.first()).and_then(Option::as_deref);
    match waited.and_then(|moves| std::str::from_utf8(moves).ok()?.parse::<i64>().ok()) {
        Some(moves) if moves >= 0 => {
            link.peer.note_fresh(end.asked);
            Ok(())
        }
        Some(_) => Err(Unready::Late(Late::TimedOut)),
        None => Err(Unready::Lost("it does not follow the source".into())),
    }
}

/// The peer's number for a statement.
async fn prepare(upstream: &mut Upstream, text: &[u8]) -> Result<u32, Unready> {
    let mut command = vec![COM_STMT_PREPARE];
    command.extend_from_slice(text);
    upstream.send(&command).await?;
    let mut framer = Framer::new(Reply::Prepared, upstream.deprecates_eof());
    let mut first = Vec::new();
    loop {
        let unread = upstream.wire.input.unread();
        let step = framer.look(unread).map_err(WireError::from)?;
        first.extend_from_slice(&unread[..step.count()]);
        upstream.wire.input.take(step.count());
        if let Step::Ended(_) = step {
            break;
        }
        upstream.wire.more().await?;
    }
    match framer.prepared {
        Some((id, _, _)) => Ok(id),
        None => Err(Unready::Refused(read_error(first.get(4..).unwrap_or_default()).message)),
    }
}

/// Returns at that moment.
async fn at(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// How a reply begins.
enum First {
    Reply,
    Error(SqlError),
    Lost(WireError),
    /// It was killed, and the peer does not say so.
    Deaf,
    /// KILL at the source ends its connection, and so this one; the peer notices that its client is gone.
    SourceLost,
}

/// What the bytes that have come are the begin of, if that can be told. An error is taken; of other replies, nothing is.
fn first_of(upstream: &mut Upstream) -> Option<First> {
    const HEADER: usize = 4;
    let (header, payload) = upstream.wire.input.unread().split_first_chunk::<HEADER>()?;
    let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    if *payload.first()? != 0xFF {
        return Some(First::Reply);
    }
    let error = read_error(payload.get(..len)?);
    upstream.wire.input.take(HEADER + len);
    Some(First::Error(error))
}
