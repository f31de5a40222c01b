//! The front: this server in the place of the MySQL that it follows.
//!
//! ```text
//!  client ─▶ command ─▶ shape (text alone) ─▶ route ─┬─▶ source: bytes there, bytes back   (framer)
//!                           ▲                        │
//!                session (view: what the source      ├─▶ here: the data is fresh enough, then the
//!                says of this one)                   │   connection's own session answers
//!                                                    └─▶ a peer: another Avocet, which has less to do
//! ```
//!
//! Clients sign in with the source's users and passwords: the exchange is passed on (`exchange`), and each client has a connection
//! of its own to the source (`upstream`). Whatever is not a query that this server answers faster goes there as it came, and the
//! reply is not parsed but for where it ends and what it says of the transaction.
//!
//! Invariants:
//! 1. A query runs here only if the source lets this client read every column of every table in it, which it is asked each time, in
//!    the client's session and in words of the front's own: how the two servers read the client's text does not matter for that.
//! 2. And only outside of transactions and with settings that this server has, too: the session here is given those that the source
//!    tells of (`view`), after every statement that may have changed them.
//! 3. Once this server has taken the source's place, nobody is led to that one: connections through the front end between two
//!    commands, and new ones are ordinary ones of this server, with its accounts.
//! 4. A peer answers what this server would have answered: the same settings, at least as fresh, of the same source.
//! 5. What fails here before the client has got anything runs on the source; nothing is answered from data that is known to be
//!    older than the session asks for.

pub(crate) mod costs;
pub(crate) mod dialect;
pub(crate) mod effects;
pub(crate) mod exchange;
pub(crate) mod framer;
pub(crate) mod login;
pub(crate) mod peers;
pub(crate) mod secure;
pub(crate) mod shape;
pub(crate) mod shapes;
pub(crate) mod upstream;
pub(crate) mod view;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use avocet_channel::Interrupt;
use avocet_session::api::{Freshness, Journal};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

use costs::Costs;
pub use peers::PeerAccount;
use peers::Peers;
pub use secure::SourceTls;
use shapes::Shapes;

use crate::files::FileError;

/// Why the data here cannot be said to be as fresh as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// It did not get so far in time.
    TimedOut,
    /// It will not, until somebody mends it.
    Broken(String),
    /// The source cannot be asked.
    SourceGone(String),
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("the data here did not become fresh enough in time"),
            Self::Broken(why) => write!(f, "replication is broken: {why}"),
            Self::SourceGone(why) => write!(f, "the source cannot be asked how far it is: {why}"),
        }
    }
}

/// Where the source's log ends.
#[derive(Clone, Debug)]
pub struct LogEnd {
    /// Which server it is, as [`Source::uuid`] says it.
    pub source: String,
    pub file: String,
    pub offset: u64,
    /// What was committed before that moment is before the end.
    pub asked: Instant,
}

/// A question for the end of the source's log.
pub type AskedEnd<'a> = Pin<Box<dyn Future<Output = Result<LogEnd, Late>> + Send + 'a>>;

/// A wait for freshness.
pub type Wait<'a> = Pin<Box<dyn Future<Output = Result<(), Late>> + Send + 'a>>;

/// The MySQL server behind the front, and how far it is followed.
pub trait Source: Send + Sync + 'static {
    /// Host and port.
    fn address(&self) -> (&str, u16);

    fn tls(&self) -> &SourceTls;

    /// The server's own `server_uuid`.
    fn uuid(&self) -> String;

    /// Other Avocets that follow it, on which queries can run as well.
    fn peers(&self) -> &[PeerAccount];

    /// Whether this server has taken its place: then clients are served as everywhere else.
    fn replaced(&self) -> watch::Receiver<bool>;

    /// Why a table of it cannot be read here; `None` if it can, or is no table.
    fn why_not_followed(&self, database: &str, table: &str) -> Option<String>;

    /// Returns when what is visible here is so fresh. `has_written`: the session has changed something since it waited last.
    fn fresh(&self, freshness: Freshness, has_written: bool, at_most: Duration) -> Wait<'_>;

    /// Asks it where its log ends now.
    fn end(&self) -> AskedEnd<'_>;
}

/// What all connections through a front share.
pub(crate) struct Front {
    pub source: Arc<dyn Source>,
    pub shapes: Shapes,
    pub costs: Costs,
    pub journal: Arc<Journal>,
    pub connector: TlsConnector,
    pub peer_connector: TlsConnector,
    pub peers: Peers,
    /// Who runs a statement here, by the thread id that the source has given the client.
    threads: Mutex<HashMap<u32, Weak<Interrupt>>>,
}

impl Front {
    pub fn new(source: Arc<dyn Source>, journal: Arc<Journal>) -> Result<Self, FileError> {
        let connector = secure::connector(source.tls())?;
        let peer_connector = secure::peer_connector(source.tls())?;
        let peers = Peers::new(source.peers());
        Ok(Self {
            source,
            peers,
            shapes: Shapes::default(),
            costs: Costs::default(),
            journal,
            connector,
            peer_connector,
            threads: Mutex::default(),
        })
    }

    pub fn is_replaced(&self) -> bool {
        *self.source.replaced().borrow()
    }

    /// A client has come, which the source knows by this number.
    pub fn enter(&self, thread: u32, interrupt: &Arc<Interrupt>) {
        self.threads.lock().insert(thread, Arc::downgrade(interrupt));
    }

    pub fn leave(&self, thread: u32) {
        self.threads.lock().remove(&thread);
    }

    /// Who has this number, if it came through this front.
    pub fn interrupt_of(&self, thread: u32) -> Option<Arc<Interrupt>> {
        self.threads.lock().get(&thread).and_then(Weak::upgrade)
    }
}
