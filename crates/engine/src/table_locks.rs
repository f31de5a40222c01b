//! LOCK TABLES: locks on tables that a session holds beyond its transactions.
//!
//! WRITE is what DDL takes, READ lets others read (`metadata_lock.rs`). Both are taken in the order of the tables' ids, as DDL
//! does where it holds several, so that they stand in no circle. The session's own transactions and DDL go past its locks.
//!
//! All that was committed before the locks were granted is visible under them, as is what their holder does to whoever waits for
//! them ([`Txn::use_table`](crate::Txn::use_table)).
//!
//! Who locks all tables keeps definitions from changing first: whoever changes them has *entered* for as long
//! ([`Engine::enter_definitions`]). LOCK INSTANCE FOR BACKUP does that alone.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::ddl::DdlWait;
use crate::engine::Engine;
use crate::error::Result;
use crate::metadata_lock::{MetadataLock, Patience};
use crate::table::TableHandle;

/// Definitions may be changed until this is dropped: nobody has all tables locked, and nobody else takes a backup.
pub struct Entered([Arc<MetadataLock>; 2]);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.iter().for_each(|gate| gate.end_write());
    }
}

/// LOCK INSTANCE FOR BACKUP: nobody else changes definitions until this is dropped. Several may have it.
pub struct BackupLock(Arc<MetadataLock>);

impl Drop for BackupLock {
    fn drop(&mut self) {
        self.0.unlock_read();
    }
}

/// What others may do with a locked table: read it, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLockMode {
    Read,
    Write,
}

/// Tables that are locked until this is dropped.
#[derive(Default)]
pub struct TableLocks {
    held: Vec<(Arc<MetadataLock>, TableLockMode)>,
    tables: Vec<(Arc<TableHandle>, TableLockMode)>,
}

impl TableLocks {
    /// The tables as they were when they were locked, with those that foreign keys brought along.
    pub fn tables(&self) -> &[(Arc<TableHandle>, TableLockMode)] {
        &self.tables
    }

    pub(crate) fn mode_of(&self, table: &TableHandle) -> Option<TableLockMode> {
        let is_of = |(lock, _): &&(Arc<MetadataLock>, _)| Arc::ptr_eq(lock, &table.metadata_lock);
        self.held.iter().find(is_of).map(|(_, mode)| *mode)
    }
}

impl Drop for TableLocks {
    fn drop(&mut self) {
        for (lock, mode) in &self.held {
            match mode {
                TableLockMode::Read => lock.unlock_read(),
                TableLockMode::Write => lock.unlock_exclusive(),
            }
        }
    }
}

impl Engine {
    /// Locks the tables that `wanted` names, which are then as it saw them, and those that foreign keys link them with as far as
    /// changes reach. A table that is named twice is locked WRITE if it is named so once.
    ///
    /// # Errors
    /// `LockWaitTimeout`, `Interrupted`, what `wanted` fails with. Nothing is locked then.
    pub fn lock_tables(
        &self,
        wait: &DdlWait,
        wanted: impl Fn(&Catalog) -> Result<Vec<(Arc<TableHandle>, TableLockMode)>>,
    ) -> Result<TableLocks> {
        wait.patiently(|patience| {
            self.lock_with(patience, |catalog| Ok(with_linked(catalog, wanted(catalog)?)))
        })
    }

    /// Locks all tables READ, and keeps others from changing definitions.
    ///
    /// # Errors
    /// As [`Self::lock_tables`].
    pub fn lock_all_tables(&self, wait: &DdlWait) -> Result<TableLocks> {
        wait.patiently(|patience| {
            let gate = &self.definitions;
            self.metadata_waits.lock_read(gate, std::slice::from_ref(gate), patience)?;
            let mut entrance =
                TableLocks { held: vec![(gate.clone(), TableLockMode::Read)], tables: Vec::new() };
            let all = |catalog: &Catalog| {
                Ok(catalog.tables().map(|table| (table.clone(), TableLockMode::Read)).collect())
            };
            let mut locks = self.lock_with(patience, all)?;
            locks.held.append(&mut entrance.held);
            Ok(locks)
        })
    }

    /// Keeps definitions from changing, while all rows can be changed. Waits for those that are being changed.
    ///
    /// # Errors
    /// `LockWaitTimeout`, `Interrupted`.
    pub fn lock_for_backup(&self, wait: &DdlWait) -> Result<BackupLock> {
        let gate = &self.backups;
        wait.patiently(|patience| self.metadata_waits.lock_read(gate, std::slice::from_ref(gate), patience))?;
        Ok(BackupLock(gate.clone()))
    }

    /// For whoever is about to change definitions: waits until nobody has all tables locked, and nobody but itself has them
    /// locked for a backup.
    ///
    /// # Errors
    /// `LockWaitTimeout`, `Interrupted`.
    pub fn enter_definitions(&self, wait: &DdlWait, own: Option<&BackupLock>) -> Result<Entered> {
        let own = u32::from(own.is_some());
        let enter = |gate: &Arc<MetadataLock>, own: u32| match gate.try_begin_write_beside(own) {
            true => Ok(()),
            false => wait.patiently(|patience| {
                self.metadata_waits.begin_write_beside(own, gate, [].into_iter(), patience)
            }),
        };
        enter(&self.definitions, 0)?;
        if let Err(error) = enter(&self.backups, own) {
            self.definitions.end_write();
            return Err(error);
        }
        Ok(Entered([self.definitions.clone(), self.backups.clone()]))
    }

    fn lock_with(
        &self,
        patience: &Patience<'_>,
        wanted: impl Fn(&Catalog) -> Result<Vec<(Arc<TableHandle>, TableLockMode)>>,
    ) -> Result<TableLocks> {
        loop {
            let tables = one_each(wanted(&self.catalog())?);
            let all: Vec<_> = tables.iter().map(|(table, _)| table.metadata_lock.clone()).collect();
            let mut locks = TableLocks::default();
            for (lock, (_, mode)) in all.iter().zip(&tables) {
                match mode {
                    TableLockMode::Read => self.metadata_waits.lock_read(lock, &all, patience)?,
                    TableLockMode::Write => {
                        self.metadata_waits.lock_exclusive(std::slice::from_ref(lock), &all, patience)?;
                    }
                }
                locks.held.push((lock.clone(), *mode));
            }
            let now = one_each(wanted(&self.catalog())?);
            if now.len() == tables.len() && now.iter().zip(&tables).all(|((a, _), (b, _))| Arc::ptr_eq(a, b))
            {
                // Transactions let go of tables once they are logged: what they have done is to be seen under the locks.
                self.wait_until_visible();
                locks.tables = tables;
                return Ok(locks);
            }
        }
    }
}

/// With what changes of these tables reach by foreign keys: parents are read, children that are deleted or changed along with
/// them are written, others are read. So nobody who has locked tables waits in the middle of a change for another who has.
fn with_linked(
    catalog: &Catalog,
    mut tables: Vec<(Arc<TableHandle>, TableLockMode)>,
) -> Vec<(Arc<TableHandle>, TableLockMode)> {
    let mut at = 0;
    while let Some((table, mode)) = tables.get(at).cloned() {
        at += 1;
        let Some(links) = catalog.links(table.id()).filter(|_| mode == TableLockMode::Write) else {
            continue;
        };
        let parents = links.as_child.iter().filter_map(|link| link.parent.as_ref());
        let parents = parents.map(|parent| (parent.table.clone(), TableLockMode::Read));
        let children = links.as_parent.iter().map(|link| match link.changes_children() {
            true => (link.child.clone(), TableLockMode::Write),
            false => (link.child.clone(), TableLockMode::Read),
        });
        for (linked, mode) in parents.chain(children) {
            if !tables.iter().any(|(one, has)| one.id() == linked.id() && *has >= mode) {
                tables.push((linked, mode));
            }
        }
    }
    tables
}

fn one_each(mut tables: Vec<(Arc<TableHandle>, TableLockMode)>) -> Vec<(Arc<TableHandle>, TableLockMode)> {
    tables.sort_by_key(|(table, mode)| (table.id(), std::cmp::Reverse(*mode)));
    tables.dedup_by_key(|(table, _)| table.id());
    tables
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use avocet_base::env::SimDisk;
    use avocet_storage::hot::RowBuf;
    use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

    use super::*;
    use crate::engine::EngineOptions;
    use crate::txn::{Isolation, TxnOptions};

    fn filled() -> (Arc<Engine>, Arc<TableHandle>, avocet_base::RowId) {
        let disk = SimDisk::new();
        let options = EngineOptions { background: false, env: disk.env(), ..EngineOptions::new("data") };
        let engine = Engine::open(options).expect("it opens");
        engine.create_database("d", Collation::DEFAULT).expect("a new one");
        let columns = ["id", "v"].map(|name| ColumnDef::new(name, SqlType::BIGINT)).into();
        let indexes = vec![IndexDef::primary(&[0])];
        let table = engine.create_table(TableDef::new("d", "t", columns, indexes)).expect("a new one");
        let mut txn = engine.begin(TxnOptions::default());
        let id = txn.insert(&table, &[Datum::Int(1), Datum::Int(0)]).expect("a new key");
        txn.commit().expect("no conflict").wait().expect("durable");
        (engine, table, id)
    }

    fn lock(engine: &Engine, table: &Arc<TableHandle>, mode: TableLockMode) -> Arc<TableLocks> {
        let wait = DdlWait::from(Duration::from_secs(30));
        Arc::new(engine.lock_tables(&wait, |_| Ok(vec![(table.clone(), mode)])).expect("its turn"))
    }

    fn value(txn: &crate::Txn, table: &Arc<TableHandle>, id: avocet_base::RowId) -> i64 {
        let mut row = RowBuf::default();
        assert!(txn.read(table, id, &mut row).expect("read"));
        match row.row(&table.layout).get(1) {
            Datum::Int(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_committed_before_the_locks_is_seen_under_them() {
        let (engine, table, id) = filled();
        let wait = DdlWait::from(Duration::from_secs(30));
        for n in 1..=30 {
            let mut writer = engine.begin(TxnOptions::default());
            writer.update(&table, id, &[(1, Datum::Int(n))]).expect("no conflict");
            // It is logged, and nobody waits for its being durable.
            let ticket = writer.commit().expect("no conflict");
            let locks = match n % 3 {
                0 => lock(&engine, &table, TableLockMode::Read),
                1 => lock(&engine, &table, TableLockMode::Write),
                _ => Arc::new(engine.lock_all_tables(&wait).expect("its turn")),
            };
            let mut txn = engine.begin(TxnOptions::default());
            txn.set_table_locks(Some(locks));
            txn.begin_statement();
            txn.use_table(&table).expect("it is there");
            assert_eq!(value(&txn, &table, id), n);
            drop(txn);
            ticket.wait().expect("durable");
        }
    }

    #[test]
    fn who_has_waited_for_locks_reads_what_was_done_under_them() {
        let (engine, table, id) = filled();
        let levels = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];
        for (n, isolation) in (1..).zip(levels) {
            let locks = lock(&engine, &table, TableLockMode::Write);
            let mut reader = engine.begin(TxnOptions { isolation, ..TxnOptions::default() });
            reader.begin_statement();
            std::thread::scope(|scope| {
                let read = scope.spawn(|| {
                    reader.use_table(&table).expect("it is there");
                    value(&reader, &table, id)
                });
                while engine.metadata_waits.is_empty() {
                    std::thread::yield_now();
                }
                let mut writer = engine.begin(TxnOptions::default());
                writer.set_table_locks(Some(locks.clone()));
                writer.update(&table, id, &[(1, Datum::Int(n))]).expect("it is the holder's");
                drop(writer.commit().expect("no conflict"));
                drop(locks);
                assert_eq!(read.join().expect("no panic"), n, "{isolation:?}");
            });
        }
    }
}
