//! FOR UPDATE and FOR SHARE: which tables of a block they lock, and how.
//!
//! A clause without OF means all tables of the block, but not those of subqueries and derived tables (MySQL Reference
//! Manual, 15.2.13 "SELECT Statement", 17.7.2.4 "Locking Reads").

use avocet_engine::{LockWait, RowLock};

use crate::error::{ErrorCode, SqlError};
use crate::parse::ast::{self, LockClause, ObjectName};
use crate::plan::{From, QueryBody, TableScan};

/// Notes the locks in the block's scans.
pub fn apply(clauses: &[LockClause], body: &mut QueryBody) -> Result<(), SqlError> {
    let mut scans = Vec::new();
    if let QueryBody::Select(select) = body {
        collect(&mut select.from, &mut scans);
    }
    for clause in clauses {
        let lock = RowLock { exclusive: clause.exclusive, wait: wait(clause.wait) };
        if clause.of.is_empty() {
            scans.iter_mut().try_for_each(|scan| put(scan, lock))?;
        }
        for name in &clause.of {
            let shown = &name.name.name;
            let scan = scans.iter_mut().find(|scan| is_meant(name, scan));
            let scan = scan.ok_or_else(|| ErrorCode::UNRESOLVED_TABLE_LOCK.with(&[shown]))?;
            put(scan, lock)?;
        }
    }
    Ok(())
}

fn wait(wait: ast::LockWait) -> LockWait {
    match wait {
        ast::LockWait::Wait => LockWait::Wait,
        ast::LockWait::NoWait => LockWait::NoWait,
        ast::LockWait::SkipLocked => LockWait::SkipLocked,
    }
}

fn put(scan: &mut TableScan, lock: RowLock) -> Result<(), SqlError> {
    match scan.lock.replace(lock) {
        None => Ok(()),
        Some(_) => Err(ErrorCode::DUPLICATE_TABLE_LOCK.with(&[&scan.alias])),
    }
}

/// OF names a table as the query calls it: by its alias, if it has one.
fn is_meant(name: &ObjectName, scan: &TableScan) -> bool {
    let same_database = name.database.as_ref().is_none_or(|of| of.name == scan.table.database);
    same_database && name.name.name.eq_ignore_ascii_case(&scan.alias)
}

fn collect<'p>(from: &'p mut From, scans: &mut Vec<&'p mut TableScan>) {
    match from {
        From::Table(scan) => scans.push(scan),
        From::Join(join) => {
            collect(&mut join.left, scans);
            collect(&mut join.right, scans);
        }
        From::Dual | From::Derived(_) | From::Cte(_) => {}
    }
}
