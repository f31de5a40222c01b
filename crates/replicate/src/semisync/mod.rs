//! Semi-synchronous replication, from the replica's side: the source's commits wait until they are durable here.
//!
//! ```text
//!  source ── 0 │ 0xEF │ flag │ event … ──▶ link ── events ─▶ inbox ─▶ follow ─▶ commit ─▶ durable
//!         ◀── 0xEF │ position u64 │ file ── acks ◀──────────────── announce ◀──────────────┘
//! ```
//!
//! A MySQL that is a replica answers when an event is in its relay log. There is none here: what has come is kept by the commit that
//! applies it, so the answer is given when that commit is on disk. MySQL source documentation, "Semisynchronous replication"; the
//! wire format is that of `semisync.h` and `semisync_replica.cc`.
//!
//! Invariants:
//! 1. A place is acknowledged only when all that the source has written before it is on disk here, whatever `--durability` says.
//! 2. That holds for every table that is followed: while one of them is being copied, a stream is not semi-synchronous.

mod link;
mod transport;

use std::collections::VecDeque;
use std::sync::Arc;

use mysql::prelude::Queryable;
use parking_lot::Mutex;

use crate::error::Result;
use crate::source::{Connection, Flavor};
use crate::state::LogPlace;

pub use link::{Link, NoLink};
use transport::Transport;

/// Places that are remembered until they are durable: as many as the source has commits that wait.
const MOST_ASKED: usize = 4096;

/// Whether the source can do it, whether or not it does at this moment.
pub fn is_supported(conn: &mut Connection) -> Result<bool> {
    let names: Vec<(String, String)> = conn.query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('rpl_semi_sync_source_enabled', 'rpl_semi_sync_master_enabled')",
    )?;
    Ok(!names.is_empty())
}

/// What a source without it is told to do.
pub fn cure(flavor: Flavor) -> &'static str {
    match flavor {
        Flavor::MySql => {
            "the source has no plugin for it: INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so' and SET GLOBAL \
             rpl_semi_sync_source_enabled = ON there, then STOP REPLICA and START REPLICA here"
        }
        Flavor::MariaDb => "the source does not have it: MariaDB has from 10.3 on",
    }
}

/// By which a stream is known to wait, under the names of both times.
pub fn announcement(flavor: Flavor) -> &'static str {
    match flavor {
        Flavor::MySql => "SET @rpl_semi_sync_replica = 1, @rpl_semi_sync_slave = 1",
        Flavor::MariaDb => "SET @rpl_semi_sync_slave = 1",
    }
}

/// What a stream's source wants to know, and what it has been told.
#[derive(Default)]
pub struct Acks(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    to: Option<Arc<Transport>>,
    /// Ends of transactions that the source waits for, in its order.
    asked: VecDeque<LogPlace>,
    /// All before this is on disk.
    durable: Option<LogPlace>,
    /// A commit has failed: nothing behind it will be durable.
    is_lost: bool,
}

impl Inner {
    /// The newest place that is asked for and durable.
    fn due(&mut self) -> Option<(Arc<Transport>, LogPlace)> {
        let durable = self.durable.as_ref().filter(|_| !self.is_lost)?;
        let to = self.to.clone()?;
        let count = self.asked.iter().take_while(|place| durable.reaches(place)).count();
        Some((to, self.asked.drain(..count).next_back()?))
    }
}

impl Acks {
    fn connect(&self, to: Arc<Transport>) {
        self.0.lock().to = Some(to);
    }

    /// The source waits until all before this place is durable here.
    pub fn asked(&self, place: LogPlace) {
        let mut inner = self.0.lock();
        if inner.asked.len() >= MOST_ASKED {
            // The answer to a later one is an answer to this, too.
            inner.asked.pop_front();
        }
        inner.asked.push_back(place);
        tell(inner.due());
    }

    /// All before this place is on disk.
    pub fn durable(&self, place: &LogPlace) {
        let mut inner = self.0.lock();
        inner.durable = Some(place.clone());
        tell(inner.due());
    }

    /// Nothing is acknowledged any more.
    pub fn lose(&self) {
        self.0.lock().is_lost = true;
    }
}

/// Under the lock, so that places are told in their order. An answer is a few bytes, and writing has a time limit.
fn tell(due: Option<(Arc<Transport>, LogPlace)>) {
    let Some((to, place)) = due else { return };
    if let Err(error) = to.acknowledge(&place) {
        tracing::warn!(%error, "the source cannot be told what is durable here");
        // The stream's thread finds it closed, and connects anew.
        to.close();
    }
}

#[cfg(test)]
mod tests;
