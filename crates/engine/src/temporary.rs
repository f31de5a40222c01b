//! Temporary tables: rows of one session, in memory alone.
//!
//! Such a table is in no catalog but the one that its session sees ([`Catalog::with_temporary`]); the log, checkpoints, freezing and
//! recovery do not know it. Its rows are versioned, locked and taken back like all others, so that statements and
//! transactions need not tell the kinds apart; what a transaction changes there is left out of its record
//! (`txn/parts.rs`), and a transaction that has changed nothing else has none (`txn/commit.rs`).
//!
//! Invariants:
//! 1. Ids are in [`TableId::TEMPORARY`], and of one table at a time.
//! 2. The table's rows are hot: nothing gives them a block, which the log would have to refer to.
//! 3. Its memory is counted as long as its owner has it.

use std::sync::Arc;

use avocet_base::{IndexId, TableId};
use avocet_types::{IndexKind, TableDef};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// All that there are.
#[derive(Default)]
pub(crate) struct TemporaryTables(Mutex<Known>);

#[derive(Default)]
struct Known {
    tables: HashMap<TableId, Arc<TableHandle>>,
    /// What was given out last, less the first.
    last: u32,
}

impl Known {
    fn next_id(&mut self) -> TableId {
        loop {
            self.last = (self.last + 1) % TableId::TEMPORARY.len() as u32;
            let id = TableId(TableId::TEMPORARY.start + self.last);
            if !self.tables.contains_key(&id) {
                return id;
            }
        }
    }
}

impl TemporaryTables {
    pub fn all(&self) -> Vec<Arc<TableHandle>> {
        self.0.lock().tables.values().cloned().collect()
    }
}

/// A temporary table, which is gone when this is dropped and no transaction uses it any more.
pub struct TemporaryTable {
    engine: Arc<Engine>,
    table: Arc<TableHandle>,
}

impl Engine {
    /// Creates a temporary table; the ids in `def` and its indexes are given here.
    ///
    /// # Errors
    /// `NoSuchDatabase`; `OutOfMemory` if tables may not grow now.
    pub fn create_temporary(
        self: &Arc<Self>,
        mut def: TableDef,
        auto_increment: Option<u64>,
    ) -> Result<TemporaryTable> {
        let catalog = self.catalog();
        if catalog.database(&def.database).is_none() {
            return Err(EngineError::NoSuchDatabase(def.database));
        }
        if self.memory.is_full() {
            return Err(self.memory.out_of_memory());
        }
        def.indexes.sort_by_key(|index| index.kind != IndexKind::Primary);
        for (n, index) in def.indexes.iter_mut().enumerate() {
            index.id = IndexId(n as u32 + 1);
        }
        let mut known = self.temporary.0.lock();
        def.id = known.next_id();
        let table = Arc::new(TableHandle::new(def, self.options.rows_per_segment));
        table.note_auto_increment(auto_increment.unwrap_or(1).saturating_sub(1));
        known.tables.insert(table.id(), table.clone());
        drop(known);
        self.memory.grow(table.bytes_of_few_rows());
        Ok(TemporaryTable { engine: self.clone(), table })
    }
}

impl TemporaryTable {
    pub fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }

    /// The same rows under another name.
    pub fn rename(&mut self, database: &str, name: &str) {
        let mut def = (*self.table.def).clone();
        (def.database, def.name) = (database.to_owned(), name.to_owned());
        self.table = Arc::new(self.table.redefined(def));
        self.engine.temporary.0.lock().tables.insert(self.table.id(), self.table.clone());
    }
}

impl Drop for TemporaryTable {
    fn drop(&mut self) {
        self.engine.temporary.0.lock().tables.remove(&self.table.id());
    }
}

impl Catalog {
    /// What a session with temporary tables sees: these in place of tables and views of their names. It is of the same version.
    pub fn with_temporary<'t>(&self, tables: impl IntoIterator<Item = &'t TemporaryTable>) -> Self {
        let mut seen = self.clone();
        for temporary in tables {
            seen.put_in_front(&temporary.table);
        }
        seen
    }
}
