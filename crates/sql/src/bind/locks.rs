//! FOR UPDATE and FOR SHARE: which tables of a block they lock, and how.
//!
//! A clause without OF means all tables of the block, but not those of subqueries and derived tables (MySQL Reference
//! Manual, 15.2.13 "SELECT Statement", 17.7.2.4 "Locking Reads"). After a set operation it is the last block's.

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;

use crate::parse::ast::{LockClause, ObjectName};
use crate::plan::{Derived, From, QueryBody, ScanLock, TableScan};

/// Notes the locks in the block's scans.
pub fn apply(clauses: &[LockClause], body: &mut QueryBody) -> Result<(), SqlError> {
    if clauses.is_empty() {
        return Ok(());
    }
    let mut block = Block::default();
    match body {
        QueryBody::Select(select) => collect(&mut select.from, None, &mut block),
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
            let mut is_found = others.iter().any(|alias| **alias == **shown);
            for scan in scans.iter_mut().filter(|scan| is_meant(name, scan)) {
                put(scan, lock)?;
                is_found = true;
            }
            if !is_found {
                return Err(ErrorCode::UNRESOLVED_TABLE_LOCK.with(&[shown]));
            }
        }
    }
    Ok(())
}

fn put((shown, scan): &mut Shown<'_>, lock: ScanLock) -> Result<(), SqlError> {
    match scan.lock.replace(lock) {
        None => Ok(()),
        Some(_) => {
            Err(ErrorCode::DUPLICATE_TABLE_LOCK.with(&[&shown.as_ref().map_or(&scan.alias, |view| &view.1)]))
        }
    }
}

/// OF names a table as the query calls it: by its alias, if it has one.
fn is_meant(name: &ObjectName, (shown, scan): &Shown<'_>) -> bool {
    let (database, alias) = match shown {
        Some((view, alias)) => (&view.database, alias),
        None => (&scan.table.database, &scan.alias),
    };
    let same_database = name.database.as_ref().is_none_or(|of| of.name == *database);
    same_database && *name.name.name == **alias
}

/// A scan, and the view of the block through which it is read.
type Shown<'p> = (Option<(Arc<TableDef>, Arc<str>)>, &'p mut TableScan);

/// What a block's FROM names.
#[derive(Default)]
struct Block<'p> {
    scans: Vec<Shown<'p>>,
    /// Derived tables and common table expressions: they have no rows to be locked.
    others: Vec<Arc<str>>,
}

fn collect<'p>(from: &'p mut From, through: Option<&(Arc<TableDef>, Arc<str>)>, block: &mut Block<'p>) {
    match from {
        From::Table(scan) => block.scans.push((through.cloned(), scan)),
        From::Join(join) => {
            collect(&mut join.left, through, block);
            collect(&mut join.right, through, block);
        }
        From::Derived(Derived { query, alias, view, .. }) => match (view, &mut query.body) {
            // Through a view that is merged, its tables are locked; one without a name has the block's own rows, of which
            // ORDER BY is computed (see `distinct`).
            (view, QueryBody::Select(select))
                if view.as_ref().map_or(alias.is_empty(), |view| view.merges) =>
            {
                let own = view.as_ref().map(|view| (view.def.clone(), alias.clone()));
                collect(&mut select.from, through.or(own.as_ref()), block);
            }
            _ => block.others.push(alias.clone()),
        },
        From::Cte(cte) => block.others.push(cte.alias.clone()),
        From::Dual => {}
    }
}
