//! Row locks as a query asks for them, in the engine's terms.

use avocet_engine::{LockWait, RowLock};
use avocet_sql::parse::ast;
use avocet_sql::plan::ScanLock;

/// How the engine locks what a scan gives.
pub fn row_lock(lock: ScanLock) -> RowLock {
    let wait = match lock.wait {
        ast::LockWait::Wait => LockWait::Wait,
        ast::LockWait::NoWait => LockWait::NoWait,
        ast::LockWait::SkipLocked => LockWait::SkipLocked,
    };
    RowLock { exclusive: lock.exclusive, wait }
}
