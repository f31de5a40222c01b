//! Temporary tables: rows of one session, in memory alone.
//!
//! Such a table is in no catalog but the one that its session sees ([`Catalog::with_temporary`]); the log, checkpoints, freezing and
//! recovery do not know it. Its rows are versioned, locked and taken back like all others, so that statements and
//! transactions need not tell the kinds apart; what a transaction changes there is left out of its record
//! (`txn/parts.rs`), and a transaction that has changed nothing else has none (`txn/commit.rs`).
//!
//! They are made in `ddl/temporary.rs`.
//!
//! Invariants:
//! 1. Ids are in [`TableId::TEMPORARY`], and of one table at a time.
//! 2. The table's rows are hot: nothing gives them a block, which the log would have to refer to.
//! 3. Its memory is counted as long as its owner has it.

use std::sync::Arc;

use avocet_base::TableId;
use hashbrown::HashMap;
use parking_lot::Mutex;

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
    /// Adds the table that `make` gives for an id.
    pub fn add(&self, make: impl FnOnce(TableId) -> TableHandle) -> Arc<TableHandle> {
        let mut known = self.0.lock();
        let table = Arc::new(make(known.next_id()));
        known.tables.insert(table.id(), table.clone());
        table
    }

    pub fn remove(&self, id: TableId) {
        self.0.lock().tables.remove(&id);
    }

    pub fn all(&self) -> Vec<Arc<TableHandle>> {
        self.0.lock().tables.values().cloned().collect()
    }
}
