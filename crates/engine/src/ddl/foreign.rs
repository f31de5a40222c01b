//! Foreign keys in DDL: which tables a change concerns, and whether it is allowed.

use std::sync::Arc;

use avocet_types::names;
use avocet_types::{ForeignKeyDef, TableDef};

use super::exclusive::{DdlWait, Group};
use crate::catalog::{Catalog, Change};
use crate::engine::Engine;
use crate::error::ForeignKeyError;
use crate::error::Result;
use crate::foreign::{self, Link};
use crate::stop::Stop;
use crate::table::TableHandle;

/// The tables that foreign keys link with a table: its parents, and its children, also those that wait for a parent of
/// this name.
pub(super) fn linked_with(catalog: &Catalog, def: &TableDef) -> Vec<Arc<TableHandle>> {
    let parents = def.foreign_keys.iter().filter_map(|key| parent_of(catalog, key));
    parents.chain(children_of(catalog, &def.database, &def.name)).collect()
}

fn parent_of(catalog: &Catalog, key: &ForeignKeyDef) -> Option<Arc<TableHandle>> {
    catalog.table(&key.parent_database, &key.parent_table).cloned()
}

pub(super) fn children_of<'c>(
    catalog: &'c Catalog,
    database: &'c str,
    name: &'c str,
) -> impl Iterator<Item = Arc<TableHandle>> + 'c {
    let refers = move |table: &&Arc<TableHandle>| {
        table.def.foreign_keys.iter().any(|key| key.references(database, name))
    };
    catalog.tables().filter(refers).cloned()
}

/// Whether a definition fits its parents, and its children if it has any. With checks off, what is not there may come.
pub(super) fn check_definition(catalog: &Catalog, def: &TableDef, checks: bool) -> Result<()> {
    for key in &def.foreign_keys {
        check_key(catalog, def, key, checks)?;
    }
    for child in children_of(catalog, &def.database, &def.name) {
        let keys = child.def.foreign_keys.iter().filter(|key| key.references(&def.database, &def.name));
        for key in keys {
            match foreign::check_parent(&child.def, key, def) {
                Err(ForeignKeyError::NoSuchColumn { .. } | ForeignKeyError::Incompatible { .. })
                    if checks =>
                {
                    return Err(ForeignKeyError::UnfitParent.into());
                }
                Err(ForeignKeyError::NoUniqueIndex { .. }) if checks && !is_indexed(def, key) => {
                    return Err(ForeignKeyError::UnfitParent.into());
                }
                other => other?,
            }
        }
    }
    Ok(())
}

/// Whether a parent has any index on the columns that a key refers to.
fn is_indexed(parent: &TableDef, key: &ForeignKeyDef) -> bool {
    let columns: Option<Vec<usize>> = key.parent_columns.iter().map(|name| parent.column(name)).collect();
    columns.is_some_and(|columns| parent.index_on(&columns).is_some())
}

fn check_key(catalog: &Catalog, child: &TableDef, key: &ForeignKeyDef, checks: bool) -> Result<()> {
    foreign::check_child(child, key)?;
    let is_other = |table: &&Arc<TableHandle>| table.def.name != child.name;
    let mut others = catalog.tables_in(&child.database).filter(is_other).flat_map(|t| &t.def.foreign_keys);
    let own = child.foreign_keys.iter().filter(|other| names::eq_unaccented(&other.name, &key.name)).count();
    if own > 1 || others.any(|other| names::eq_unaccented(&other.name, &key.name)) {
        return Err(ForeignKeyError::DuplicateName(key.name.clone()).into());
    }
    if key.references(&child.database, &child.name) {
        return Ok(foreign::check_parent(child, key, child)?);
    }
    match catalog.table(&key.parent_database, &key.parent_table) {
        Some(parent) => Ok(foreign::check_parent(child, key, &parent.def)?),
        None if checks => Err(ForeignKeyError::NoSuchParent(key.parent_table.clone()).into()),
        None => Ok(()),
    }
}

/// Whether a definition may replace that of a table: it fits the parents of its keys, and its children as they will be.
pub(super) fn check_replacement(
    catalog: &Catalog,
    old: &TableHandle,
    new: &TableDef,
    added: &[String],
    renamed: &[(String, String)],
    checks: bool,
) -> Result<()> {
    for key in &new.foreign_keys {
        let is_added = added.contains(&key.name);
        check_key(catalog, new, key, checks && is_added)?;
    }
    for (child, key) in catalog.foreign_keys_to(old.id()).filter(|(child, _)| child.id() != old.id()) {
        let mut key = key.clone();
        for column in &mut key.parent_columns {
            if let Some((_, to)) = renamed.iter().find(|(from, _)| names::eq(from, column)) {
                column.clone_from(to);
            }
        }
        foreign::check_parent(&child.def, &key, new)?;
    }
    Ok(())
}

/// Whether other tables refer to a table, but those named.
pub(super) fn check_not_referenced(
    catalog: &Catalog,
    table: &TableHandle,
    but: &[Arc<TableHandle>],
) -> Result<()> {
    let is_kept = |child: &Arc<TableHandle>| {
        child.id() != table.id() && !but.iter().any(|other| other.id() == child.id())
    };
    match catalog.foreign_keys_to(table.id()).find(|(child, _)| is_kept(child)) {
        None => Ok(()),
        Some((child, key)) => Err(ForeignKeyError::Referenced {
            table: table.def.name.clone(),
            key: key.name.clone(),
            child: child.def.name.clone(),
        }
        .into()),
    }
}

/// Tables in an order in which none goes before those that refer to it, as far as there is one.
pub(super) fn children_first(catalog: &Catalog, mut left: Vec<Arc<TableHandle>>) -> Vec<Arc<TableHandle>> {
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_last = |table: &Arc<TableHandle>| {
            let mut children = catalog.foreign_keys_to(table.id()).map(|(child, _)| child.id());
            !children.any(|child| child != table.id() && left.iter().any(|other| other.id() == child))
        };
        let next = left.iter().position(is_last).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

pub(super) fn check_may_truncate(catalog: &Catalog, table: &TableHandle) -> Result<()> {
    match catalog.foreign_keys_to(table.id()).find(|(child, _)| child.id() != table.id()) {
        None => Ok(()),
        Some((child, key)) => Err(ForeignKeyError::CannotTruncate {
            database: child.def.database.clone(),
            child: child.def.name.clone(),
            key: key.name.clone(),
        }
        .into()),
    }
}

/// Whether foreign keys of and to a table find their indexes in a list of these.
pub(super) fn check_indexes(catalog: &Catalog, table: &TableDef, dropped: &str) -> Result<()> {
    let needed = || Err(ForeignKeyError::NeedsIndex(dropped.into()).into());
    if table.foreign_keys.iter().any(|key| table.index_on(&key.columns).is_none()) {
        return needed();
    }
    for (_, key) in catalog.foreign_keys_to(table.id) {
        let columns: Option<Vec<usize>> = key.parent_columns.iter().map(|name| table.column(name)).collect();
        if columns.is_some_and(|columns| table.unique_index_on(&columns).is_none()) {
            return needed();
        }
    }
    Ok(())
}

impl Engine {
    /// Whether all rows of a table, which nobody uses, have their parents by a key that it has not yet.
    pub(super) fn check_rows(
        &self,
        table: &Arc<TableHandle>,
        key: &ForeignKeyDef,
        stop: &Stop,
    ) -> Result<()> {
        let mut def = (*table.def).clone();
        def.foreign_keys = vec![key.clone()];
        let child = Arc::new(table.with_indexes(def, table.indexes.clone()));
        match foreign::first_orphan(&Link::new(&self.catalog(), &child, 0), stop)? {
            true => Err(ForeignKeyError::no_parent(&child.def, key).into()),
            false => Ok(()),
        }
    }

    pub(super) fn lock_linked(&self, database: &str, name: &str, wait: impl Into<DdlWait>) -> Result<Group> {
        self.lock_group(wait, |catalog| {
            let table = self.find_in(catalog, database, name)?;
            let mut all = linked_with(catalog, &table.def);
            all.push(table);
            Ok(all)
        })
    }

    /// Notes that rows of foreign keys of and to a table may lack parents from now on: it is written while checks are off.
    pub(crate) fn unenforce(&self, table: &TableHandle) -> Result<()> {
        let catalog = self.catalog();
        let Some(links) = catalog.links(table.id()) else { return Ok(()) };
        for link in links.as_child.iter().chain(&links.as_parent) {
            let (child, name) = (link.child.id(), &link.def().name);
            if !catalog.is_enforced(child, name) {
                continue;
            }
            let _latch = self.ddl.lock();
            if self.catalog().is_enforced(child, name) {
                self.apply_plain(&Change::Unenforce { table: child, name: name.clone() })?;
            }
        }
        Ok(())
    }
}
