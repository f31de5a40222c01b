//! What a session has locked by LOCK TABLES (`table_locks.rs`).

use std::sync::Arc;

use avocet_engine::{TableLockMode, TableLocks};

/// What a session has locked.
pub(crate) struct Locked {
    /// `None` for all tables: FLUSH TABLES WITH READ LOCK.
    pub names: Option<Vec<LockedName>>,
    pub locks: Arc<TableLocks>,
}

pub(crate) struct LockedName {
    pub database: String,
    pub table: String,
    /// The name by which statements must call it.
    pub called: String,
    /// Statements may call a view as they like.
    pub is_view: bool,
    pub mode: TableLockMode,
}
