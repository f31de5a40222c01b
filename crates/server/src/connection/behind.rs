//! A connection that came through a front: its commands go to the source, but for the queries that are answered here.

mod choice;
mod peer;
mod places;
mod prepared;
mod relay;
mod sign_in;
mod statement;

use std::future::{pending, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use avocet_channel::{Interrupt, Interruption};
use avocet_session::api::{SessionFactory, SqlSession, StatementId, Timeouts};
use avocet_sql::parse::digest::Digest;
use avocet_types::error::{ErrorCode, SqlError};
use foldhash::HashMap;
use tokio::sync::watch;

use super::{Connection, Next, ended};
use crate::account::Account;
use crate::front::Front;
use crate::front::dialect::Dialect;
use crate::front::effects::Effects;
use crate::front::framer::Reply;
use crate::front::peers::Peer;
use crate::front::upstream::Upstream;
use crate::front::view::View;
use crate::protocol::command::{self, Command};
use crate::protocol::params::ParamType;
use crate::registry::Activity;
use crate::wire::WireError;

use peer::Link;
use prepared::Remote;
pub(super) use sign_in::sign_in;

/// The source's side of a connection.
pub(super) struct Behind {
    front: Arc<Front>,
    upstream: Upstream,
    dialect: Dialect,
    view: View,
    /// As the source numbers the connection.
    thread: u32,
    user: String,
    /// What the client has prepared, by the source's numbers.
    statements: HashMap<u32, Remote>,
    /// Bytes of their texts and digests, counted.
    texts: usize,
    account: Account,
    /// The client's sessions on peers.
    links: Vec<Link>,
    /// Of the last statement, and of the last query, that did not run on the source: the peer, if one ran it.
    last_peer: Option<Arc<Peer>>,
    last_query_peer: Option<Arc<Peer>>,
    /// Used again for each statement.
    digest: Digest,
    key: Vec<u8>,
    types: Vec<ParamType>,
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.front.leave(self.thread);
    }
}

impl Behind {
    pub fn replaced(&self) -> watch::Receiver<bool> {
        self.front.source.replaced()
    }

    /// Ready when the source ends the client's session while somebody else works for the client. It does not do so because nothing is
    /// asked of it meanwhile: a session with a query is not idle, wherever that runs.
    async fn source_gone(&mut self) {
        let every = self.ping_every();
        self.upstream.stay(every).await;
    }

    fn ping_every(&self) -> Duration {
        /// A source with the longest `wait_timeout` may have a firewall before it.
        const MOST: Duration = Duration::from_secs(30);
        const LEAST: Duration = Duration::from_millis(100);
        let idle = self.view.applied.as_ref().map_or(Timeouts::default().idle, |settings| settings.idle);
        (idle / 3).clamp(LEAST, MOST)
    }
}

/// Clients take it for a server that is restarted, and connect again.
pub(super) fn has_replaced() -> SqlError {
    let message = "This server has taken the source's place: connect again";
    SqlError { message: message.into(), ..ErrorCode::SERVER_SHUTDOWN.with(&[]) }
}

/// Ready when the source says something that nobody has asked for: that it has closed the connection, mostly.
pub(super) async fn unasked(behind: Option<&mut Behind>) {
    match behind {
        Some(behind) => behind.upstream.unasked().await,
        None => pending().await,
    }
}

/// Ready when this server has taken the source's place.
pub(super) async fn replaced(replaced: Option<&mut watch::Receiver<bool>>) {
    let Some(replaced) = replaced else { return pending().await };
    // Whoever would tell is gone only with the server.
    if replaced.wait_for(|is_so| *is_so).await.is_err() {
        pending().await
    }
}

/// Returns when the connection is to end; a KILL QUERY is for whoever runs the statement.
async fn cut(interrupt: &Interrupt) {
    if interrupt.raised().await != Interruption::Connection {
        pending::<()>().await;
    }
}

impl<F: SessionFactory> Connection<F> {
    /// Passes on what the source says between commands, which is its last word.
    pub(super) async fn pass_unasked(&mut self) -> Result<(), WireError> {
        if let Some(behind) = &self.behind {
            self.wire.out.put_raw(behind.upstream.wire.input.unread());
            self.wire.flush().await?;
        }
        Ok(())
    }

    /// Serves a client that came through a front until it leaves.
    pub(super) async fn run_behind(&mut self) -> Result<(), WireError> {
        let interrupt = self.registration.interrupt.clone();
        let mut ended = pin!(ended(&interrupt));
        let mut replaced = self.behind.as_ref().map(|behind| behind.replaced());
        while let Some(packet) = self.next_command(ended.as_mut(), replaced.as_mut()).await? {
            let next = self.handle_behind(packet).await?;
            if next == Next::Close || self.registration.is_cut_off() {
                break;
            }
            if !self.flush_reply(ended.as_mut()).await? {
                break;
            }
            self.wire.rest_for_now();
            if self.has_large_buffers() {
                self.rest_when_calm().await;
            }
        }
        Ok(())
    }

    /// Whether buffers have grown that what is passed on goes through.
    fn has_large_buffers(&self) -> bool {
        let Some(behind) = &self.behind else { return false };
        let links = &behind.links;
        self.wire.is_large() || behind.upstream.wire.is_large() || links.iter().any(Link::is_large)
    }

    /// Gives large buffers back if the client asks for nothing for a while.
    async fn rest_when_calm(&mut self) {
        const AFTER: Duration = Duration::from_secs(1);
        self.registration.sleep();
        // What is wrong with the connection shows when the command is read.
        if tokio::time::timeout(AFTER, self.wire.begun()).await.is_ok() {
            return;
        }
        self.wire.rest();
        if let Some(behind) = &mut self.behind {
            behind.upstream.wire.rest();
            behind.links.iter_mut().for_each(Link::rest);
        }
    }

    /// Runs one command, here or on the source, and leaves what is left of its reply in the write buffer.
    async fn handle_behind(&mut self, packet: Range<usize>) -> Result<Next, WireError> {
        let Some(mut behind) = self.behind.take() else { return Ok(Next::Close) };
        let (interrupt, line) = (self.registration.interrupt.clone(), self.wire.line.clone());
        // Wherever it waits for the source, which may stand still: a KILL and a client that leaves end it.
        let next = tokio::select! {
            biased;
            next = self.handle_with(&mut behind, packet) => next,
            () = cut(&interrupt) => Ok(Next::Close),
            () = poll_fn(|cx| line.lock().transport.poll_hangup(cx)) => Ok(Next::Close),
        };
        self.behind = Some(behind);
        next
    }

    async fn handle_with(&mut self, behind: &mut Behind, packet: Range<usize>) -> Result<Next, WireError> {
        let payload = self.wire.input.slice(packet.clone());
        let Ok(command) = command::parse(payload, self.capabilities) else {
            self.reply_error(&ErrorCode::MALFORMED_PACKET.with(&[]));
            return Ok(Next::Continue);
        };
        let settings = Effects { settings: true, ..Effects::default() };
        let nothing = Effects::default();
        match command {
            Command::Query(_) => return self.query_with(behind, packet).await,
            Command::Prepare(_) => return self.prepare_with(behind, packet).await,
            Command::Execute { statement, .. } => return self.execute_with(behind, packet, statement).await,
            Command::Fetch { .. } => {
                self.begin(Activity::Fetch, b"");
                return self.pass(behind, packet, Reply::Rows, &nothing).await;
            }
            Command::CloseStatement(id) => {
                self.forget_statement(behind, id);
                return self.pass_without_reply(behind, packet).await;
            }
            Command::SendLongData { statement, .. } => {
                if let Some(remote) = behind.statements.get_mut(&statement) {
                    remote.has_long_data = true;
                }
                return self.pass_without_reply(behind, packet).await;
            }
            Command::ResetStatement(id) => {
                if let Some(remote) = behind.statements.get_mut(&id) {
                    remote.has_long_data = false;
                }
            }
            Command::Quit => {
                // Whether it arrives or not, the connection ends.
                let _ = behind.upstream.send(payload).await;
                return Ok(Next::Close);
            }
            Command::InitDb(_) => return self.pass(behind, packet, Reply::Packet, &settings).await,
            Command::FieldList { .. } => return self.pass(behind, packet, Reply::Fields, &nothing).await,
            Command::ProcessKill(thread) => {
                let kills = Effects { kills: Some((thread, false)), ..Effects::default() };
                return self.pass(behind, packet, Reply::Packet, &kills).await;
            }
            Command::ResetConnection => {
                let next = self.pass(behind, packet, Reply::Packet, &settings).await?;
                self.session.reset().await;
                self.forget_statements(behind);
                behind.view.reset();
                return Ok(next);
            }
            Command::ChangeUser(_) => return Box::pin(self.change_user_with(behind, packet)).await,
            Command::Statistics | Command::Ping | Command::Debug | Command::SetOption { .. } => {}
            Command::RegisterReplica { .. }
            | Command::Dump { .. }
            | Command::DumpGtids { .. }
            | Command::Unknown => {
                self.reply_error(&ErrorCode::UNKNOWN_COM_ERROR.with(&[]));
                return Ok(Next::Continue);
            }
        }
        self.pass(behind, packet, Reply::Packet, &nothing).await
    }

    /// What the session here prepared for the client goes with the client's own.
    fn forget_statement(&mut self, behind: &mut Behind, id: u32) {
        if let Some(remote) = behind.statements.remove(&id) {
            behind.texts -= remote.size();
            behind.account.shrink(behind.texts);
        }
        behind.links.iter_mut().for_each(|link| link.forget(id));
        if let Some(statement) = self.statements.remove(&StatementId(id)) {
            self.session.close_prepared(statement.prepared.id);
        }
    }

    fn forget_statements(&mut self, behind: &mut Behind) {
        behind.statements.clear();
        // They are as new when they are made anew.
        behind.links.clear();
        behind.texts = 0;
        behind.account.shrink(0);
        self.statements.clear();
    }

    fn lost_source(&mut self, error: &WireError) -> Next {
        tracing::debug!(%error, "a client has lost its connection to the source");
        self.reply_error(&SqlError {
            errno: 2013,
            sqlstate: *b"HY000",
            message: "Lost connection to MySQL server during query".into(),
        });
        Next::Close
    }
}
