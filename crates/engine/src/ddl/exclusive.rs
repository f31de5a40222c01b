//! Exclusive metadata locks: of one table, or of a table and those that its foreign keys link it with.
//!
//! Several locks are taken without waiting while holding any: whoever is in the way is waited for alone, and then all are
//! tried anew, that one first. So DDL never stands in a circle with transactions, which take theirs one by one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// How long a change of definitions waits for transactions that use its tables.
#[derive(Clone)]
pub struct DdlWait {
    pub timeout: Duration,
    /// Asked from time to time; true ends the wait with `Interrupted`.
    pub interrupted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl From<Duration> for DdlWait {
    fn from(timeout: Duration) -> Self {
        Self { timeout, interrupted: None }
    }
}

/// An exclusive metadata lock.
pub(super) struct Exclusive {
    pub table: Arc<TableHandle>,
}

impl Exclusive {
    fn lock(table: &Arc<TableHandle>, timeout: Duration, wait: &DdlWait) -> Result<Self> {
        let interrupted = || wait.interrupted.as_ref().is_some_and(|asked| asked());
        table.metadata_lock.lock_exclusive(timeout, &interrupted)?;
        Ok(Self { table: table.clone() })
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        self.table.metadata_lock.unlock_exclusive();
    }
}

/// Tables that nobody else uses.
pub(super) struct Group {
    locks: Vec<Exclusive>,
}

impl Group {
    pub fn table(&self, database: &str, name: &str) -> Result<&Arc<TableHandle>> {
        let mut tables = self.locks.iter().map(|lock| &lock.table);
        let found = tables.find(|table| table.def.database == database && table.def.name == name);
        found.ok_or_else(|| EngineError::NoSuchTable(database.into(), name.into()))
    }
}

impl Engine {
    /// Locks the tables that `wanted` names, which are then as it saw them.
    pub(super) fn lock_group(
        &self,
        wait: impl Into<DdlWait>,
        wanted: impl Fn(&Catalog) -> Result<Vec<Arc<TableHandle>>>,
    ) -> Result<Group> {
        let wait = &wait.into();
        let deadline = Instant::now() + wait.timeout;
        let mut awaited: Option<Arc<TableHandle>> = None;
        loop {
            let tables = one_each(wanted(&self.catalog())?);
            let mut locks = Vec::with_capacity(tables.len());
            if let Some(first) = awaited.take().filter(|first| tables.iter().any(|t| Arc::ptr_eq(t, first))) {
                let timeout = deadline.saturating_duration_since(Instant::now());
                locks.push(Exclusive::lock(&first, timeout, wait)?);
            }
            for table in &tables {
                if locks.iter().any(|lock: &Exclusive| Arc::ptr_eq(&lock.table, table)) {
                    continue;
                }
                match Exclusive::lock(table, Duration::ZERO, wait) {
                    Ok(lock) => locks.push(lock),
                    Err(_) if Instant::now() >= deadline => return Err(EngineError::LockWaitTimeout),
                    Err(_) => {
                        awaited = Some(table.clone());
                        break;
                    }
                }
            }
            if awaited.is_none() && are_same(&tables, &one_each(wanted(&self.catalog())?)) {
                return Ok(Group { locks });
            }
        }
    }
}

/// A table may be linked with another one in several ways.
fn one_each(mut tables: Vec<Arc<TableHandle>>) -> Vec<Arc<TableHandle>> {
    tables.sort_by_key(|table| table.id());
    tables.dedup_by_key(|table| table.id());
    tables
}

fn are_same(a: &[Arc<TableHandle>], b: &[Arc<TableHandle>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}
