//! Exclusive metadata locks: of one table, or of a table and those that its foreign keys link it with.
//!
//! At first, several locks are taken without waiting while holding any: whoever is in the way is waited for alone, and then
//! all are tried anew, that one first. So DDL does not stand in a circle with transactions, which take theirs one by one. Under
//! load there is always somebody in the way of one of them; so after [`POLITE`], newcomers queue at all of them, and a
//! transaction that would close a circle is rolled back as a deadlock's victim.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::metadata_lock::Patience;
use crate::stop::Stop;
use crate::table::TableHandle;
use crate::table_locks::{TableLockMode, TableLocks};

/// So long DDL leaves all tables to others while it waits for one.
const POLITE: Duration = Duration::from_secs(1);

/// How long a change of definitions waits for transactions that use its tables.
#[derive(Clone)]
pub struct DdlWait {
    pub timeout: Duration,
    /// Asked from time to time; true ends the wait with `Interrupted`.
    pub interrupted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// What the session has locked by LOCK TABLES: it can lock no other tables then, since it would wait while it holds some.
    pub own: Option<Arc<TableLocks>>,
}

impl DdlWait {
    /// From now on.
    pub(crate) fn patiently<T>(&self, wait: impl FnOnce(&Patience<'_>) -> Result<T>) -> Result<T> {
        let interrupted = || self.interrupted.as_ref().is_some_and(|asked| asked());
        wait(&Patience { deadline: Instant::now() + self.timeout, interrupted: &interrupted })
    }

    pub(super) fn stop(&self) -> Stop {
        Stop(self.interrupted.clone())
    }
}

impl From<Duration> for DdlWait {
    fn from(timeout: Duration) -> Self {
        Self { timeout, interrupted: None, own: None }
    }
}

/// An exclusive metadata lock.
pub(super) struct Exclusive {
    pub table: Arc<TableHandle>,
    /// The session has it WRITE by LOCK TABLES, and keeps that. (What it has READ it has READ again afterwards.)
    is_own: bool,
}

impl Exclusive {
    fn taken(table: &Arc<TableHandle>) -> Self {
        Self { table: table.clone(), is_own: false }
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if !self.is_own {
            self.table.metadata_lock.unlock_exclusive();
        }
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
        wait.patiently(|patience| match &wait.own {
            None => self.lock_group_with(patience, wanted),
            Some(own) => self.lock_own_group(own, patience, wanted),
        })
    }

    fn lock_group_with(
        &self,
        patience: &Patience<'_>,
        wanted: impl Fn(&Catalog) -> Result<Vec<Arc<TableHandle>>>,
    ) -> Result<Group> {
        let begun = Instant::now();
        let mut awaited: Option<Arc<TableHandle>> = None;
        loop {
            let tables = one_each(wanted(&self.catalog())?);
            awaited = awaited.filter(|first| tables.iter().any(|table| Arc::ptr_eq(table, first)));
            let at_once: &[Arc<TableHandle>] = match &awaited {
                Some(_) if begun.elapsed() > POLITE => &tables,
                Some(first) => std::slice::from_ref(first),
                None => &[],
            };
            let mut locks = self.lock_all(at_once, patience)?;
            let is_locked =
                |locks: &[Exclusive], table| locks.iter().any(|lock| Arc::ptr_eq(&lock.table, table));
            awaited = None;
            for table in &tables {
                if is_locked(&locks, table) {
                    continue;
                }
                if !table.metadata_lock.try_lock_exclusive() {
                    awaited = Some(table.clone());
                    break;
                }
                locks.push(Exclusive::taken(table));
            }
            if awaited.is_none() && are_same(&tables, &one_each(wanted(&self.catalog())?)) {
                return Ok(Group { locks });
            }
        }
    }

    /// The same of tables that the session has locked.
    ///
    /// # Errors
    /// `NotLocked` if it has not; `Deadlock` if another session wants to have one of them alone that both have READ.
    fn lock_own_group(
        &self,
        own: &TableLocks,
        patience: &Patience<'_>,
        wanted: impl Fn(&Catalog) -> Result<Vec<Arc<TableHandle>>>,
    ) -> Result<Group> {
        let mut locks = Vec::new();
        for table in one_each(wanted(&self.catalog())?) {
            match own.mode_of(&table) {
                None => return Err(EngineError::NotLocked(table.def.name.clone())),
                Some(TableLockMode::Write) => locks.push(Exclusive { table, is_own: true }),
                Some(TableLockMode::Read) => {
                    self.metadata_waits.upgrade(&table.metadata_lock, patience)?;
                    locks.push(Exclusive::taken(&table));
                }
            }
        }
        Ok(Group { locks })
    }

    /// Waits for whoever uses these tables.
    fn lock_all(&self, tables: &[Arc<TableHandle>], patience: &Patience<'_>) -> Result<Vec<Exclusive>> {
        let locks: Vec<_> = tables.iter().map(|table| table.metadata_lock.clone()).collect();
        self.metadata_waits.lock_exclusive(&locks, &locks, patience)?;
        Ok(tables.iter().map(Exclusive::taken).collect())
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
