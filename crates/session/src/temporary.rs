//! Temporary tables: what a session has for itself, under names that hide those of stored tables and views.
//!
//! ```text
//!  stored catalog ──with_temporary──▶ the session's catalog ──▶ binder, point plans, DataFusion, SHOW CREATE, DESCRIBE
//!        └──────────────────────────────────────────────────▶ DDL of stored tables, texts of views, SHOW TABLES, information_schema
//! ```
//!
//! Their creation and end are no changes of the stored catalog and commit nothing; ALTER, TRUNCATE and CREATE INDEX commit
//! what is open, as MySQL has it, and put a new table in the old one's place.
//!
//! Invariant: plans that may use a temporary table are found by this session alone, and only until its set of temporary
//! tables changes: their keys have a number that stands for that set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_engine::{Catalog, TableHandle, TemporaryTable};
use parking_lot::Mutex;

/// Numbers of sets of temporary tables, of all sessions.
static NAMESPACES: AtomicU64 = AtomicU64::new(1);

/// Those of one session.
#[derive(Default)]
pub(crate) struct TemporaryTables {
    /// By database and name.
    tables: BTreeMap<(String, String), TemporaryTable>,
    /// Stands for this set of tables; 0 for none.
    namespace: u64,
    /// The session's catalog, over the stored one that was newest.
    seen: Mutex<Option<Arc<Catalog>>>,
}

impl TemporaryTables {
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub fn namespace(&self) -> u64 {
        self.namespace
    }

    pub fn has(&self, database: &str, name: &str) -> bool {
        !self.tables.is_empty() && self.get(database, name).is_some()
    }

    pub fn get(&self, database: &str, name: &str) -> Option<&Arc<TableHandle>> {
        let known = self.tables.get(&(database.to_owned(), name.to_owned()));
        known.map(TemporaryTable::table)
    }

    /// These before what is stored.
    pub fn over(&self, stored: Arc<Catalog>) -> Arc<Catalog> {
        let mut seen = self.seen.lock();
        match &*seen {
            Some(seen) if seen.version() == stored.version() => seen.clone(),
            _ => seen.insert(Arc::new(stored.with_temporary(self.tables.values()))).clone(),
        }
    }

    pub fn put(&mut self, key: (String, String), table: TemporaryTable) {
        self.tables.insert(key, table);
        self.note_change();
    }

    pub fn remove(&mut self, key: &(String, String)) {
        self.tables.remove(key);
        self.note_change();
    }

    pub fn clear(&mut self) {
        self.tables.clear();
        self.note_change();
    }

    fn note_change(&mut self) {
        self.namespace = match self.tables.is_empty() {
            true => 0,
            false => NAMESPACES.fetch_add(1, Ordering::Relaxed),
        };
        *self.seen.get_mut() = None;
    }
}
