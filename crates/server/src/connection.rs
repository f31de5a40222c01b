//! One client from greeting to goodbye: the task that reads commands and runs them on a session.
//!
//! A statement runs inline: its packet is parsed where it was read, its rows are encoded into the write
//! buffer, and one write sends the reply; a reply that is larger than the buffer is sent piece by piece. While a statement waits (for a lock, the log, a query's workers) the task
//! also watches for KILL and for a client that hangs up; either drops the statement's future.

mod behind;
mod commands;
mod dump;
mod sign_in;

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use avocet_channel::{Interrupt, Interruption, OkReply};
use avocet_session::api::{Prepared, SessionFactory, SessionInfo, SqlSession, StatementId, Timeouts};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Datum, SqlType};
use foldhash::HashMap;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::account::Account;
use crate::auth::accounts::ClientHost;
use crate::cursor::Cursor;
use crate::front::Front;
use crate::listen::Peer;
use crate::local_file::LocalFile;
use crate::protocol::handshake::Salt;
use crate::protocol::params::ParamType;
use crate::protocol::{CapabilityFlags, StatusFlags, reply};
use crate::registry::{Activity, Registration};
use crate::server::Shared;
use crate::transport::{Line, Transport};
use crate::wire::{Wire, WireError};

use behind::Behind;

/// How long a client may go on sending a packet that was refused.
const LINGER: Duration = Duration::from_secs(5);

/// Whether a connection goes on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Continue,
    Close,
}

/// A prepared statement as the protocol sees it.
struct Statement {
    prepared: Prepared,
    text: String,
    /// The types that the client bound last.
    types: Vec<ParamType>,
    long_data: LongData,
    /// What was wrong with a COM_STMT_SEND_LONG_DATA, which has no reply of its own.
    long_data_error: Option<SqlError>,
    cursor: Option<Cursor>,
}

/// Pieces of parameters that came ahead of their statement's execution.
#[derive(Default)]
struct LongData {
    params: Vec<Option<Vec<u8>>>,
    account: Account,
}

impl LongData {
    fn clear(&mut self) {
        self.params.clear();
        self.account.shrink(0);
    }
}

/// A signed-in connection.
struct Connection<F: SessionFactory> {
    shared: Arc<Shared<F>>,
    registration: Registration,
    wire: Wire,
    session: F::Session,
    capabilities: CapabilityFlags,
    salt: Salt,
    host: ClientHost,
    /// As the registry knows them.
    timeouts: Timeouts,
    /// What the session was opened with, for the next one after COM_CHANGE_USER.
    info: SessionInfo,
    statements: HashMap<StatementId, Statement>,
    /// Column types of the result being written; kept for its allocation.
    types: Vec<SqlType>,
    /// As that, for parameters.
    values: Vec<Datum<'static>>,
    local_file: LocalFile,
    /// Of a client that came through a front: its session on the source, and what that one said last of its transaction.
    behind: Option<Box<Behind>>,
    outer_status: Option<StatusFlags>,
}

/// Serves a client until it leaves.
pub(crate) async fn serve<F: SessionFactory>(
    shared: Arc<Shared<F>>,
    transport: Transport,
    peer: Peer,
    registration: Registration,
    front: Option<Arc<Front>>,
) {
    let id = registration.id;
    let signed_in = match front {
        None => sign_in::sign_in(shared, transport, peer, registration).await,
        Some(front) => behind::sign_in(shared, front, transport, peer, registration).await,
    };
    match signed_in {
        Ok(Some(mut connection)) => {
            let ran = match connection.behind.is_some() {
                false => connection.run().await,
                // In a box, so that connections without a front pay nothing for it.
                true => Box::pin(connection.run_behind()).await,
            };
            if let Err(error) = ran {
                tracing::debug!(connection = id, %error, "connection ended");
            }
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(connection = id, %error, "connection ended before sign-in"),
    }
}

impl<F: SessionFactory> Connection<F> {
    async fn run(&mut self) -> Result<(), WireError> {
        let interrupt = self.registration.interrupt.clone();
        // One wait for the whole connection: statements do not begin it anew.
        let mut ended = pin!(ended(&interrupt));
        while let Some(packet) = self.next_command(ended.as_mut(), None).await? {
            let next = self.handle(packet).await?;
            if next == Next::Close || self.registration.is_cut_off() {
                break;
            }
            self.wire.max_packet = self.session.max_allowed_packet();
            let timeouts = self.session.timeouts();
            if timeouts != self.timeouts {
                self.timeouts = timeouts;
                self.registration.set_timeouts(timeouts);
            }
            if !self.flush_reply(ended.as_mut()).await? {
                break;
            }
            self.wire.rest();
        }
        Ok(())
    }

    /// Waits for the next command; `None` if the connection ends instead, and the client has been told what it is to be told.
    async fn next_command(
        &mut self,
        ended: Pin<&mut impl Future<Output = ()>>,
        replaced: Option<&mut watch::Receiver<bool>>,
    ) -> Result<Option<Range<usize>>, WireError> {
        self.registration.sleep();
        if self.shared.registry.is_stopping() {
            self.say_goodbye(ErrorCode::SERVER_SHUTDOWN.with(&[])).await?;
            return Ok(None);
        }
        let Self { wire, behind, .. } = self;
        let command = tokio::select! {
            biased;
            // What is sent to the source now would be answered from the past.
            () = behind::replaced(replaced) => {
                self.wire.out.set_sequence(1);
                self.say_goodbye(behind::has_replaced()).await?;
                return Ok(None);
            }
            command = wire.command() => Some(command),
            () = ended => None,
            () = behind::unasked(behind.as_deref_mut()) => {
                self.pass_unasked().await?;
                return Ok(None);
            }
        };
        // A command that comes together with the KILL of its connection is too late.
        let is_killed = self.registration.interrupt.get() == Some(Interruption::Connection);
        let command = command.filter(|_| !is_killed);
        let Some(command) = command else {
            // The client reads it as the reply to what it sends next.
            self.wire.out.set_sequence(1);
            if self.shared.registry.is_stopping() {
                self.say_goodbye(ErrorCode::SERVER_SHUTDOWN.with(&[])).await?;
            } else if self.registration.has_timed_out() {
                self.say_goodbye(ErrorCode::CLIENT_INTERACTION_TIMEOUT.with(&[])).await?;
            }
            // Who was killed is told by the end of the connection, as by MySQL.
            return Ok(None);
        };
        let refusal = match command {
            Ok(packet) => {
                self.registration.interrupt.begin_statement();
                return Ok(Some(packet));
            }
            Err(WireError::Closed) => return Ok(None),
            Err(WireError::OutOfOrder) => {
                self.say_goodbye(ErrorCode::NET_PACKETS_OUT_OF_ORDER.with(&[])).await?;
                return Ok(None);
            }
            Err(WireError::TooLarge) => ErrorCode::NET_PACKET_TOO_LARGE.with(&[]),
            Err(WireError::OutOfMemory) => {
                let message = "The server has no memory for so large a packet at the moment";
                ErrorCode::OUT_OF_RESOURCES.because(message)
            }
            Err(error) => return Err(error),
        };
        self.wire.forget_input();
        self.say_goodbye(refusal).await?;
        self.wire.linger(LINGER).await;
        Ok(None)
    }

    /// Writes what is left of a reply; false if the connection ends instead.
    async fn flush_reply(&mut self, ended: Pin<&mut impl Future<Output = ()>>) -> Result<bool, WireError> {
        tokio::select! {
            biased;
            flushed = self.wire.flush() => flushed.map(|()| true),
            () = ended => Ok(false),
        }
    }

    /// A last error to a client that may not be listening any more.
    async fn say_goodbye(&mut self, error: SqlError) -> Result<(), WireError> {
        reply::error(&mut self.wire.out, true, &error);
        let _ = tokio::time::timeout(Duration::from_secs(1), self.wire.flush()).await;
        Ok(())
    }

    fn begin(&self, activity: Activity, text: &[u8]) {
        self.shared.registry.count_statement();
        self.registration.begin(activity, text);
    }

    fn reply_ok(&mut self) {
        let ok = OkReply { status: self.session.status(), ..OkReply::default() };
        reply::ok(&mut self.wire.out, self.capabilities, &ok);
    }

    fn reply_error(&mut self, error: &SqlError) {
        reply::error_in(&mut self.wire.out, true, error, self.session.status().results);
    }

    fn reply_result(&mut self, result: Result<(), SqlError>) {
        match result {
            Ok(()) => self.reply_ok(),
            Err(error) => self.reply_error(&error),
        }
    }
}

/// Returns when the connection is to end.
async fn ended(interrupt: &Interrupt) {
    // Between statements a KILL QUERY hits nothing and is dropped at the next statement.
    loop {
        match interrupt.raised().await {
            Interruption::Connection => return,
            Interruption::Statement => interrupt.begin_statement(),
        }
    }
}

/// Why a statement did not come to its end.
enum Cut {
    HungUp,
    Killed,
    /// A bug of ours, which is the end of this statement alone.
    Panicked,
}

/// Runs a statement's future, unless its client hangs up or its connection is killed first. The future comes pinned:
/// it is large, and moving it would cost more than many a statement.
async fn attended<T>(
    mut statement: Pin<&mut impl Future<Output = T>>,
    line: &Mutex<Line>,
    interrupt: &Interrupt,
) -> Result<T, Cut> {
    // What a panic leaves of the session is rolled back with the transaction; see `Connection::conclude`.
    let mut poll = |cx: &mut Context<'_>| {
        let polled = catch_unwind(AssertUnwindSafe(|| statement.as_mut().poll(cx)));
        polled.map_or(Poll::Ready(Err(Cut::Panicked)), |poll| poll.map(Ok))
    };
    // Most statements are done at the first poll: they pay for no watching.
    let first = poll_fn(|cx| Poll::Ready(poll(cx))).await;
    if let Poll::Ready(output) = first {
        return output;
    }
    let killed = async {
        while interrupt.raised().await != Interruption::Connection {
            // A killed statement ends by itself; what is left to watch for is the connection's end.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        output = poll_fn(poll) => output,
        () = killed => Err(Cut::Killed),
        () = poll_fn(|cx| line.lock().transport.poll_hangup(cx)) => {
            interrupt.raise(Interruption::Connection);
            Err(Cut::HungUp)
        }
    }
}
