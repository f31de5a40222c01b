//! FOR UPDATE and FOR SHARE: which tables of a block they lock, and how.
//!
//! A clause without OF means all tables of the block, but not those of subqueries and derived tables (MySQL Reference
//! Manual, 15.2.13 "SELECT Statement", 17.7.2.4 "Locking Reads"). After a set operation it is the last block's.

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};

use crate::parse::ast::{LockClause, ObjectName};
use crate::plan::{From, QueryBody, ScanLock, TableScan};

/// Notes the locks in the block's scans.
pub fn apply(clauses: &[LockClause], body: &mut QueryBody) -> Result<(), SqlError> {
    if clauses.is_empty() {
        return Ok(());
    }
    let mut block = Block::default();
    match body {
        QueryBody::Select(select) => collect(&mut select.from, &mut block),
        QueryBody::SetOperation(set) => return apply(clauses, &mut set.right.body),
        QueryBody::Nested(inner) => return apply(clauses, &mut inner.body),
        QueryBody::Values(_) | QueryBody::JsonTable(_) => {}
    }
    let Block { mut scans, others } = block;
    for clause in clauses {
        let lock = ScanLock { exclusive: clause.exclusive, wait: clause.wait };
        if clause.of.is_empty() {
            scans.iter_mut().try_for_each(|scan| put(scan, lock))?;
        }
        for name in &clause.of {
            let shown = &name.name.name;
            match scans.iter_mut().find(|scan| is_meant(name, scan)) {
                Some(scan) => put(scan, lock)?,
                None if others.iter().any(|alias| alias.eq_ignore_ascii_case(shown)) => {}
                None => return Err(ErrorCode::UNRESOLVED_TABLE_LOCK.with(&[shown])),
            }
        }
    }
    Ok(())
}

fn put(scan: &mut TableScan, lock: ScanLock) -> Result<(), SqlError> {
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

/// What a block's FROM names.
#[derive(Default)]
struct Block<'p> {
    scans: Vec<&'p mut TableScan>,
    /// Derived tables and common table expressions: they have no rows to be locked.
    others: Vec<Arc<str>>,
}

fn collect<'p>(from: &'p mut From, block: &mut Block<'p>) {
    match from {
        From::Table(scan) => block.scans.push(scan),
        From::Join(join) => {
            collect(&mut join.left, block);
            collect(&mut join.right, block);
        }
        From::Derived(derived) => block.others.push(derived.alias.clone()),
        From::Cte(cte) => block.others.push(cte.alias.clone()),
        From::Dual => {}
    }
}
