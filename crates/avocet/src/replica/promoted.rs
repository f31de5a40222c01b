//! What the data directory keeps of a promotion.
//!
//! ```text
//!   promotion.json ── before writes are stopped at the source: what the source was, so that it can be made so again
//!         │
//!         ▼
//!   promoted.json ─── this server has taken the source's place
//! ```
//!
//! Invariants:
//! 1. Where `promoted.json` is, no source is followed, whatever the command line and `replica.json` say. Its appearance is the moment of the
//!    promotion: before it, this server is a replica; from it on, it is a primary.
//! 2. It is written when all that the source has committed is on disk here, and the source takes no writes, over restarts, too.
//! 3. Where `promotion.json` is, the source may take no writes because of this server.

use std::fmt;

use avocet_base::Timestamp;
use avocet_engine::{Durability, Freshness, TxnOptions};
use avocet_replicate::gtid::GtidSet;
use avocet_replicate::promote::Was;
use avocet_replicate::publish::Base;
use avocet_replicate::source::Flavor;
use avocet_session::Database;
use avocet_types::json::Json;

use super::document::Document;
use crate::Failure;

const PROMOTED: &str = "promoted.json";
const STOPPING: &str = "promotion.json";

/// This server has taken the place of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Promoted {
    /// Host and port.
    pub source: String,
    /// By which the source is told from others.
    pub source_id: String,
    /// All that the source had committed.
    pub executed: GtidSet,
    /// What was committed here up to this is the source's.
    pub ts: Timestamp,
    /// The binary log begins there.
    pub logs: bool,
}

impl Promoted {
    /// `None` for a server that has not been promoted.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open(database: &Database) -> Result<Option<Self>, String> {
        Document::of(database, PROMOTED).read(|members| {
            Some(Self {
                source: members.text("source")?,
                source_id: members.text("source_id")?,
                executed: members.text("executed")?.parse().ok()?,
                ts: Timestamp(members.number("timestamp")?),
                logs: members.flag("binary_log")?,
            })
        })
    }

    /// When it returns, this server is a primary.
    ///
    /// # Errors
    /// A file that cannot be written: then it is a replica still.
    pub fn keep(&self, database: &Database) -> Result<(), String> {
        Document::of(database, PROMOTED).write(vec![
            ("source", Json::String(self.source.clone())),
            ("source_id", Json::String(self.source_id.clone())),
            ("executed", Json::String(self.executed.to_string())),
            ("timestamp", Json::UInt(self.ts.0)),
            ("binary_log", Json::Bool(self.logs)),
        ])
    }

    /// After a file that was not written for certain. When it returns, this server is a replica.
    ///
    /// # Errors
    /// A file that cannot be removed: then it may be either.
    pub fn forget(database: &Database) -> Result<(), String> {
        Document::of(database, PROMOTED).remove()
    }

    /// What is committed from now on is in no log: one that begins later lacks it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep_without_log(&mut self, database: &Database) -> Result<(), String> {
        match std::mem::take(&mut self.logs) {
            true => self.keep(database),
            false => Ok(()),
        }
    }

    /// With what a binary log begins that has no files yet.
    pub fn base(&self, database: &Database) -> Result<Base, Failure> {
        // Of a MariaDB's identifiers there is no place in this log.
        let executed = self.executed.of_mysql();
        Ok(match self.logs {
            true => Base { executed, ts: self.ts, lacks_some: false },
            // What was committed since then is in no log.
            false => Base { executed, ts: durable(database)?, lacks_some: true },
        })
    }

    pub fn refuses_source(&self) -> String {
        format!(
            "this server has taken the place of {}, and has transactions of its own since: a new data directory can follow a source",
            self.source
        )
    }
}

impl fmt::Display for Promoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this server has taken the place of {}: it is a primary, and follows nobody", self.source)
    }
}

/// The last commit, which is on disk when this returns, as all before it.
pub fn durable(database: &Database) -> Result<Timestamp, Failure> {
    let options = TxnOptions {
        freshness: Freshness::Logged,
        durability: Some(Durability::Sync),
        read_only: true,
        ..TxnOptions::default()
    };
    let txn = database.engine().begin(options);
    let ts = txn.snapshot_ts();
    txn.commit()?.wait()?;
    Ok(ts)
}

/// Writes are about to be stopped at the source, or are stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopping {
    /// Host and port.
    pub source: String,
    /// By which the source is told from others; empty in files of before that was kept.
    pub source_id: String,
    pub is_mariadb: bool,
    pub was: Was,
}

impl Stopping {
    /// `None` if no promotion was cut short.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open(database: &Database) -> Result<Option<Self>, String> {
        Document::of(database, STOPPING).read(|members| {
            Some(Self {
                source: members.text("source")?,
                source_id: members.text("source_id").unwrap_or_default(),
                is_mariadb: members.flag("mariadb")?,
                was: Was {
                    read_only: members.flag("read_only")?,
                    super_read_only: members.flag("super_read_only")?,
                    persisted: members.text("persisted").filter(|value| !value.is_empty()),
                },
            })
        })
    }

    pub fn keep(&self, database: &Database) -> Result<(), String> {
        Document::of(database, STOPPING).write(vec![
            ("source", Json::String(self.source.clone())),
            ("source_id", Json::String(self.source_id.clone())),
            ("mariadb", Json::Bool(self.is_mariadb)),
            ("read_only", Json::Bool(self.was.read_only)),
            ("super_read_only", Json::Bool(self.was.super_read_only)),
            ("persisted", Json::String(self.was.persisted.clone().unwrap_or_default())),
        ])
    }

    pub fn forget(database: &Database) -> Result<(), String> {
        Document::of(database, STOPPING).remove()
    }

    /// What makes the source what it was, for people.
    pub fn cure(&self) -> String {
        let flavor = if self.is_mariadb { Flavor::MariaDb } else { Flavor::MySql };
        self.was.statements(flavor).join("; ")
    }
}

impl fmt::Display for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a promotion did not come to its end, and {} may take no writes since: PROMOTE REPLICA tries again, PROMOTE REPLICA UNDO lets \
             it write (there by hand: {})",
            self.source,
            self.cure()
        )
    }
}
