//! How a transaction is isolated, and what its commit is to have survived.

use std::time::Duration;

use avocet_log::Durability;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// A snapshot per statement; locking reads and writes act on the newest committed rows.
    ReadCommitted,
    /// A snapshot per transaction; locking reads and writes act on the newest committed rows all the same.
    RepeatableRead,
    /// A snapshot per transaction for all that it does: what has changed since cannot be locked or changed.
    Snapshot,
    /// As `Snapshot`; and what was read must still be so at the commit of a transaction that changes anything.
    Serializable,
}

/// Which commits the snapshots of a transaction include.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// Those that are durable: whatever is read may be shown to anyone.
    Visible,
    /// Those that are logged, durable or not. What was read may be shown only once the transaction's ticket is
    /// done (which then waits even if nothing was changed). For procedures that answer once, at their end: a
    /// worker can run the next transaction before the last one is durable.
    Logged,
}

#[derive(Clone, Copy, Debug)]
pub struct TxnOptions {
    pub isolation: Isolation,
    pub freshness: Freshness,
    pub read_only: bool,
    /// How long it waits for rows.
    pub lock_wait_timeout: Duration,
    /// How long it waits for changes of definitions.
    pub metadata_lock_timeout: Duration,
    /// What the commit is to have survived when it is acknowledged; as the engine has it if `None`.
    pub durability: Option<Durability>,
    /// Whether those who are told of changes are told of these.
    pub captured: bool,
}

impl Default for TxnOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::RepeatableRead,
            freshness: Freshness::Visible,
            read_only: false,
            lock_wait_timeout: Duration::from_secs(50),
            metadata_lock_timeout: Duration::from_secs(31_536_000),
            durability: None,
            captured: true,
        }
    }
}
