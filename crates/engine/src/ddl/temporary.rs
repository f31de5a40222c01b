//! Making temporary tables ([`crate::temporary`]). No log, no latch of DDL, no metadata lock: nobody else knows of them.

use std::sync::Arc;

use avocet_base::IndexId;
use avocet_types::{IndexKind, TableDef};

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

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
        def.stored = None;
        for (n, index) in def.indexes.iter_mut().enumerate() {
            index.id = IndexId(n as u32 + 1);
        }
        let table = self.temporary.add(|id| {
            def.id = id;
            TableHandle::new(def, self.options.rows_per_segment)
        });
        table.note_auto_increment(auto_increment.unwrap_or(1).saturating_sub(1));
        self.memory.grow(table.bytes_of_few_rows());
        Ok(TemporaryTable { engine: self.clone(), table })
    }
}

impl TemporaryTable {
    pub fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }
}

impl Drop for TemporaryTable {
    fn drop(&mut self) {
        self.engine.temporary.remove(self.table.id());
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
