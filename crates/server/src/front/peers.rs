//! Other Avocets that follow the same source. What can be answered here can be answered by them, so that a query goes where the
//! fewest run, and to the next one if that one is away, or not fresh enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A peer that could not be used is left alone for so long, then twice as long, and so on up to the most.
const REST: Duration = Duration::from_secs(1);
const MOST_REST: Duration = Duration::from_secs(30);

/// Where a peer listens, and the account there that reads for everybody: a front asks the source who may read what.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerAccount {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
}

/// Another Avocet.
pub(crate) struct Peer {
    pub account: PeerAccount,
    /// Queries that run there for this front.
    running: AtomicUsize,
    away: Mutex<Away>,
    /// All that had been committed at the source at this moment is visible there.
    fresh_as_of: Mutex<Option<Instant>>,
}

/// Of a peer that could not be used: until when nobody tries, and how long that is.
#[derive(Default)]
struct Away {
    until: Option<Instant>,
    rest: Duration,
}

impl Peer {
    fn new(account: PeerAccount) -> Self {
        Self { account, running: AtomicUsize::new(0), away: Mutex::default(), fresh_as_of: Mutex::new(None) }
    }

    /// It could not be reached, or it does not follow any more.
    pub fn failed(&self, why: &dyn std::fmt::Display) {
        let mut away = self.away.lock();
        match away.rest.is_zero() {
            true => tracing::warn!(peer = %self, %why, "a peer cannot be used"),
            false => tracing::debug!(peer = %self, %why, "a peer still cannot be used"),
        }
        away.rest = (away.rest * 2).clamp(REST, MOST_REST);
        away.until = Some(Instant::now() + away.rest);
        // One that begins anew may have less than it has shown.
        *self.fresh_as_of.lock() = None;
    }

    /// It has answered.
    pub fn worked(&self) {
        let mut away = self.away.lock();
        if !away.rest.is_zero() {
            tracing::info!(peer = %self, "a peer can be used again");
            *away = Away::default();
        }
    }

    /// Whether nobody should try: it rests, or somebody finds out just now whether it is back.
    fn is_away(&self) -> bool {
        let away = self.away.lock();
        let is_tried = !away.rest.is_zero() && self.running.load(Ordering::Relaxed) > 0;
        is_tried || away.until.is_some_and(|until| until > Instant::now())
    }

    pub fn note_fresh(&self, as_of: Instant) {
        let mut fresh = self.fresh_as_of.lock();
        *fresh = (*fresh).max(Some(as_of));
    }

    pub fn is_fresh_within(&self, bound: Duration) -> bool {
        self.fresh_as_of.lock().is_some_and(|at| at.elapsed() <= bound)
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.account.host, self.account.port)
    }
}

/// A server that has what the source has.
#[derive(Clone)]
pub(crate) enum Replica {
    Here,
    Peer(Arc<Peer>),
}

/// This server, and its peers.
pub(crate) struct Peers {
    peers: Vec<Arc<Peer>>,
    running_here: AtomicUsize,
}

/// A query that runs somewhere; it is counted until this is dropped.
pub(crate) struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Peers {
    pub fn new(accounts: &[PeerAccount]) -> Self {
        let peers = accounts.iter().cloned().map(|account| Arc::new(Peer::new(account))).collect();
        Self { peers, running_here: AtomicUsize::new(0) }
    }

    /// The places to try, in this order. Of those with as little to do, this server is first.
    pub fn by_load(&self) -> Vec<Replica> {
        let mut places = vec![(self.running_here.load(Ordering::Relaxed), Replica::Here)];
        let peers = self.peers.iter().filter(|peer| !peer.is_away());
        places.extend(peers.map(|peer| (peer.running.load(Ordering::Relaxed), Replica::Peer(peer.clone()))));
        places.sort_by_key(|(running, _)| *running);
        places.into_iter().map(|(_, place)| place).collect()
    }

    pub fn begin<'a>(&'a self, place: &'a Replica) -> Running<'a> {
        let counter = match place {
            Replica::Here => &self.running_here,
            Replica::Peer(peer) => &peer.running,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Running(counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(ports: &[u16]) -> Peers {
        let account = |port: &u16| PeerAccount {
            host: "10.0.0.2".into(),
            port: *port,
            user: "front".into(),
            password: String::new(),
        };
        Peers::new(&ports.iter().map(account).collect::<Vec<_>>())
    }

    fn order(peers: &Peers) -> Vec<u16> {
        let port = |place: Replica| match place {
            Replica::Here => 0,
            Replica::Peer(peer) => peer.account.port,
        };
        peers.by_load().into_iter().map(port).collect()
    }

    #[test]
    fn the_place_with_the_fewest_queries_is_first() {
        let peers = peers(&[1, 2]);
        assert_eq!(order(&peers), [0, 1, 2]);
        let places = peers.by_load();
        let here = peers.begin(&places[0]);
        assert_eq!(order(&peers), [1, 2, 0]);
        let one = peers.begin(&places[1]);
        let two = peers.begin(&places[1]);
        assert_eq!(order(&peers), [2, 0, 1]);
        drop((here, two));
        assert_eq!(order(&peers), [0, 2, 1]);
        drop(one);
        assert_eq!(order(&peers), [0, 1, 2]);
    }

    #[test]
    fn a_peer_that_failed_rests() {
        let peers = peers(&[1, 2]);
        peers.peers[0].failed(&"no route");
        assert_eq!(order(&peers), [0, 2]);
        peers.peers[0].away.lock().until = Some(Instant::now());
        assert_eq!(order(&peers), [0, 1, 2]);
        // One query finds out whether it is back.
        let one = Replica::Peer(peers.peers[0].clone());
        let tried = peers.begin(&one);
        assert_eq!(order(&peers), [0, 2]);
        drop(tried);
        peers.peers[0].failed(&"no route");
        assert_eq!(peers.peers[0].away.lock().rest, REST * 2);
        peers.peers[0].worked();
        assert_eq!(order(&peers), [0, 1, 2]);
    }

    #[test]
    fn freshness_does_not_go_back() {
        let peers = peers(&[1]);
        let (early, late) = (Instant::now(), Instant::now());
        let peer = &peers.peers[0];
        assert!(!peer.is_fresh_within(Duration::MAX));
        peer.note_fresh(late);
        peer.note_fresh(early);
        assert_eq!(*peer.fresh_as_of.lock(), Some(late));
        assert!(peer.is_fresh_within(Duration::from_secs(60)));
    }
}
