//! The catalog: databases, tables and accounts. A catalog value is immutable; DDL publishes a new one.
//!
//! Every change is a [`Change`], which is also what the redo log and (as a list that builds the whole
//! catalog) the checkpoint hold: one way to apply, one codec.

mod accounts;
mod change;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use avocet_base::{IndexId, TableId, Timestamp};
use avocet_storage::relation::RowsPerSegment;
use avocet_types::names;
use avocet_types::{Collation, ForeignKeyDef, IndexDef, TableDef};
use hashbrown::HashMap;

use crate::foreign::{Link, Links};
use crate::table::{IndexHandle, TableHandle, Trees};
pub use accounts::{AccountId, GrantScope, Grants, LoginRules, PasswordRules, Privileges, TlsRule, UserDef};
pub(crate) use change::Change;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseDef {
    pub name: String,
    pub collation: Collation,
}

/// By database and name.
type Relations = BTreeMap<String, BTreeMap<String, Arc<TableHandle>>>;

#[derive(Clone, Default)]
pub struct Catalog {
    version: u64,
    /// Of the tables that are made.
    segment_rows: RowsPerSegment,
    databases: BTreeMap<String, DatabaseDef>,
    tables: Relations,
    /// They share the tables' names, but no code that looks for a table to read or write finds one.
    views: Relations,
    /// Tables and views.
    by_id: HashMap<TableId, Arc<TableHandle>>,
    users: BTreeMap<(String, String), Arc<UserDef>>,
    next_id: u32,
    /// When the change that is being applied was logged; `MIN` in recovery, before anybody reads.
    now: Timestamp,
    /// Foreign keys, by child and name, that were not always enforced: some rows may have no parents.
    unenforced: BTreeSet<(TableId, String)>,
    /// Of the tables that have foreign keys or are referred to; made by [`Self::relink`].
    links: HashMap<TableId, Arc<Links>>,
}

impl Catalog {
    /// An empty catalog, whose tables will have segments of so many rows.
    pub(crate) fn new(segment_rows: RowsPerSegment) -> Self {
        Self { segment_rows, ..Self::default() }
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn databases(&self) -> impl Iterator<Item = &DatabaseDef> {
        self.databases.values()
    }

    pub fn database(&self, name: &str) -> Option<&DatabaseDef> {
        self.databases.get(name)
    }

    pub fn table(&self, database: &str, name: &str) -> Option<&Arc<TableHandle>> {
        self.tables.get(database)?.get(name)
    }

    pub fn view(&self, database: &str, name: &str) -> Option<&Arc<TableHandle>> {
        self.views.get(database)?.get(name)
    }

    /// A table or a view.
    pub fn relation(&self, database: &str, name: &str) -> Option<&Arc<TableHandle>> {
        self.table(database, name).or_else(|| self.view(database, name))
    }

    pub fn has_views(&self) -> bool {
        !self.views.is_empty()
    }

    /// Sorted by name.
    pub fn views_in(&self, database: &str) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.views.get(database).into_iter().flat_map(BTreeMap::values)
    }

    /// Tables and views, sorted by name.
    pub fn relations_in(&self, database: &str) -> impl Iterator<Item = &Arc<TableHandle>> {
        let mut all: Vec<_> = self.tables_in(database).chain(self.views_in(database)).collect();
        all.sort_by(|a, b| a.def.name.cmp(&b.def.name));
        all.into_iter()
    }

    pub fn views(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.views.values().flat_map(BTreeMap::values)
    }

    /// Sorted by name.
    pub fn tables_in(&self, database: &str) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.tables.get(database).into_iter().flat_map(BTreeMap::values)
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.tables.values().flat_map(BTreeMap::values)
    }

    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<TableHandle>> {
        self.by_id.get(&id)
    }

    pub fn users(&self) -> impl Iterator<Item = &Arc<UserDef>> {
        self.users.values()
    }

    pub fn user(&self, name: &str, host: &str) -> Option<&Arc<UserDef>> {
        self.users.get(&(name.to_owned(), host.to_owned()))
    }

    /// The foreign keys that refer to a table, each with its child.
    pub fn foreign_keys_to(
        &self,
        table: TableId,
    ) -> impl Iterator<Item = (&Arc<TableHandle>, &ForeignKeyDef)> {
        let links = self.links.get(&table);
        links.into_iter().flat_map(|links| &links.as_parent).map(|link| (&link.child, link.def()))
    }

    /// The name of the parent's index that a foreign key relies on; `None` if the parent is not there.
    pub fn index_of_parent(&self, child: TableId, key: &str) -> Option<&str> {
        let link = self.links.get(&child)?.as_child.iter().find(|link| link.def().name == key)?;
        let parent = link.parent.as_ref()?;
        Some(&parent.table.def.indexes[parent.index].name)
    }

    pub(crate) fn links(&self, table: TableId) -> Option<&Arc<Links>> {
        self.links.get(&table)
    }

    pub(crate) fn is_enforced(&self, child: TableId, key: &str) -> bool {
        !self.unenforced.contains(&(child, key.to_owned()))
    }

    /// Brings the links up to date, after any number of changes.
    pub(crate) fn relink(&mut self) {
        let mut links: HashMap<TableId, Links> = HashMap::new();
        for child in self.by_id.values() {
            for key in 0..child.def.foreign_keys.len() {
                let link = Arc::new(Link::new(self, child, key));
                if let Some(parent) = &link.parent {
                    links.entry(parent.table.id()).or_default().as_parent.push(link.clone());
                }
                links.entry(child.id()).or_default().as_child.push(link);
            }
        }
        links.values_mut().for_each(Links::sort);
        if links.is_empty() && self.links.is_empty() {
            return;
        }
        for table in self.by_id.values() {
            table.set_parent(links.get(&table.id()).is_some_and(|links| !links.as_parent.is_empty()));
        }
        let old = std::mem::take(&mut self.links);
        let kept = |(id, new): (TableId, Links)| match old.get(&id) {
            Some(same) if same.is_same_as(&new) => (id, same.clone()),
            _ => (id, Arc::new(new)),
        };
        self.links = links.into_iter().map(kept).collect();
    }

    /// An id for a new table or index.
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.max(1)
    }

    pub(crate) fn note_id(&mut self, used: u32) {
        self.next_id = self.next_id.max(used.saturating_add(1));
    }

    /// What is applied from now on is logged under this timestamp.
    pub(crate) fn begin_change(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Applies a change that was checked before it was logged.
    pub(crate) fn apply(&mut self, change: &Change) {
        self.version += 1;
        match change {
            Change::Several(changes) => changes.iter().for_each(|change| self.apply(change)),
            Change::PutDatabase(def) => {
                self.tables.entry(def.name.clone()).or_default();
                self.databases.insert(def.name.clone(), def.clone());
            }
            Change::DropDatabase(name) => {
                self.databases.remove(name);
                for view in self.views.remove(name).unwrap_or_default().values() {
                    self.by_id.remove(&view.id());
                }
                let tables = self.tables.remove(name).unwrap_or_default();
                for table in tables.values() {
                    self.by_id.remove(&table.id());
                    self.forget_enforcement(table.id());
                }
                tables.values().for_each(|table| self.unenforce_children_of(&table.def));
            }
            Change::CreateTable(def) => {
                self.note_id(def.id.0);
                def.indexes.iter().for_each(|i| self.note_id(i.id.0));
                self.publish(TableHandle::new((**def).clone(), self.segment_rows).readable_from(self.now));
            }
            Change::CreateView(def) => {
                self.note_id(def.id.0);
                self.publish(TableHandle::new((**def).clone(), self.segment_rows));
            }
            Change::DropTable(id) => {
                if let Some(table) = self.remove(*id) {
                    self.forget_enforcement(*id);
                    self.unenforce_children_of(&table.def);
                }
            }
            Change::RenameTable { table, database, name } => self.rename(*table, database, name),
            Change::PublishTable { table, database, name, rows: _ } => {
                if let Some(handle) = self.remove(*table) {
                    let mut def = (*handle.def).clone();
                    (def.database, def.name) = (database.clone(), name.clone());
                    self.publish(handle.redefined(def).readable_from(self.now));
                }
            }
            Change::AutoIncrement { table, next } => {
                if let Some(handle) = self.by_id.get(table) {
                    handle.note_auto_increment(next.saturating_sub(1));
                }
            }
            Change::SetAutoIncrement { table, next } => {
                if let Some(handle) = self.by_id.get(table) {
                    handle.set_auto_increment(*next);
                }
            }
            Change::ReplaceTable { old, new, rows: _, foreign_keys, renamed } => {
                if let (Some(old), Some(new)) = (self.remove(*old), self.remove(*new)) {
                    let mut def = (*new.def).clone();
                    def.database.clone_from(&old.def.database);
                    def.name.clone_from(&old.def.name);
                    def.foreign_keys.clone_from(foreign_keys);
                    def.forget_damaged_keys();
                    // Whoever waits for the old one's lock waits for this table.
                    self.publish(new.redefined(def).readable_from(self.now).locked_as(&old));
                    self.carry_enforcement(old.id(), new.id());
                    self.rename_referenced_columns(&old.def, new.id(), renamed);
                }
            }
            Change::Reshape { old, def, rows: _, renamed } => {
                let old = self.by_id.get(old).cloned();
                // Recovery looks at what came of it (`check_reshaped`); before it was logged, it was made.
                if let Some(old) = old
                    && let Ok(handle) = old.reshaped((**def).clone(), &|| Ok(()))
                {
                    self.publish_reshaped(&old, handle, &[], renamed);
                }
            }
            Change::TruncateTable { old, new } => {
                self.note_id(new.0);
                if let Some(table) = self.by_id.remove(old) {
                    let mut def = (*table.def).clone();
                    def.id = *new;
                    def.stored = None;
                    self.forget_enforcement(*old);
                    self.unenforce_children_of(&def);
                    self.publish(
                        TableHandle::new(def, self.segment_rows).readable_from(self.now).locked_as(&table),
                    );
                }
            }
            Change::AddForeignKey { table, key } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    let mut def = (*handle.def).clone();
                    def.foreign_keys.push(key.clone());
                    def.forget_damaged_keys();
                    self.publish(handle.redefined(def));
                }
            }
            Change::DropForeignKey { table, name } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    let mut def = (*handle.def).clone();
                    def.foreign_keys.retain(|key| key.name != *name);
                    self.unenforced.remove(&(*table, name.clone()));
                    self.publish(handle.redefined(def));
                }
            }
            Change::SetChecks { table, checks } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    let def = TableDef { checks: checks.clone(), ..(*handle.def).clone() };
                    self.publish(handle.redefined(def));
                }
            }
            Change::SetKept { table, partitioning, kept_keys } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    let mut def = (*handle.def).clone();
                    def.partitioning.clone_from(partitioning);
                    def.kept_keys = kept_keys.clone();
                    def.kept_keys.retain(|key| key.columns.iter().all(|column| *column < def.columns.len()));
                    self.publish(handle.redefined(def));
                }
            }
            Change::SetCreated { table, at_us } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    let def = TableDef { created_us: Some(*at_us), ..(*handle.def).clone() };
                    self.publish(handle.redefined(def));
                }
            }
            Change::ShowIndex { table, index, visible } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    let mut def = (*handle.def).clone();
                    let shown = def.indexes.iter_mut().filter(|of| of.id == *index);
                    shown.for_each(|index| index.invisible = !visible);
                    self.publish(handle.redefined(def));
                }
            }
            Change::Unenforce { table, name } => {
                self.unenforced.insert((*table, name.clone()));
            }
            Change::CreateIndex { table, index } => {
                self.note_id(index.id.0);
                if let Some(handle) = self.by_id.get(table).cloned() {
                    self.publish(handle.adding_index(index.clone(), &|_, _| None));
                }
            }
            Change::DropIndex { table, index } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    self.publish(handle.dropping_index(*index));
                }
            }
            Change::PutUser(user) => {
                self.users.insert((user.name.clone(), user.host.clone()), Arc::new(UserDef::clone(user)));
            }
            Change::DropUser { name, host } => {
                self.users.remove(&(name.clone(), host.clone()));
            }
        }
    }

    fn remove(&mut self, id: TableId) -> Option<Arc<TableHandle>> {
        let table = self.by_id.remove(&id)?;
        let database = &table.def.database;
        let relations = if table.def.is_view() { &mut self.views } else { &mut self.tables };
        if let Some(all) = relations.get_mut(database) {
            all.remove(&table.def.name);
            // Tables that are being filled are in databases that nobody has made.
            if all.is_empty() && (table.def.is_view() || !self.databases.contains_key(database)) {
                relations.remove(database);
            }
        }
        Some(table)
    }

    /// Foreign keys follow the parent that they refer to; and names that were made of the table's name follow it, too, those of
    /// checks as well.
    fn rename(&mut self, table: TableId, database: &str, name: &str) {
        let Some(handle) = self.remove(table) else { return };
        let old = handle.def.clone();
        let mut def = (*old).clone();
        def.checks = crate::ddl::checks::renamed(&old, name);
        def.database = database.into();
        def.name = name.into();
        let generated = format!("{}_ibfk_", old.name);
        for key in &mut def.foreign_keys {
            if let Some(number) = key.name.strip_prefix(&generated) {
                let new_name = format!("{name}_ibfk_{number}");
                if self.unenforced.remove(&(table, key.name.clone())) {
                    self.unenforced.insert((table, new_name.clone()));
                }
                key.name = new_name;
            }
        }
        self.publish(handle.redefined(def));
        self.redefine_keys_to(&old, None, |key| {
            key.parent_database = database.into();
            key.parent_table = name.into();
        });
    }

    /// In other tables: the new one says it right.
    fn rename_referenced_columns(&mut self, parent: &TableDef, new: TableId, renamed: &[(String, String)]) {
        if renamed.is_empty() {
            return;
        }
        self.redefine_keys_to(parent, Some(new), |key| {
            for column in &mut key.parent_columns {
                if let Some((_, to)) = renamed.iter().find(|(from, _)| names::eq(from, column)) {
                    column.clone_from(to);
                }
            }
        });
    }

    /// Changes all foreign keys that refer to a table, but those of one table.
    fn redefine_keys_to(
        &mut self,
        parent: &TableDef,
        but: Option<TableId>,
        change: impl Fn(&mut ForeignKeyDef),
    ) {
        let refers = |key: &ForeignKeyDef| key.references(&parent.database, &parent.name);
        let is_child =
            |table: &&Arc<TableHandle>| Some(table.id()) != but && table.def.foreign_keys.iter().any(refers);
        let children: Vec<_> = self.tables().filter(is_child).cloned().collect();
        for child in children {
            let mut def = (*child.def).clone();
            def.foreign_keys.iter_mut().filter(|key| refers(key)).for_each(&change);
            self.publish(child.redefined(def));
        }
    }

    /// The rows of a parent are gone, without a look at its children.
    fn unenforce_children_of(&mut self, parent: &TableDef) {
        let keys =
            self.tables().flat_map(|child| child.def.foreign_keys.iter().map(move |key| (child.id(), key)));
        let keys = keys.filter(|(_, key)| key.references(&parent.database, &parent.name));
        let keys: Vec<_> = keys.map(|(child, key)| (child, key.name.clone())).collect();
        self.unenforced.extend(keys);
    }

    fn forget_enforcement(&mut self, child: TableId) {
        self.unenforced.retain(|(table, _)| *table != child);
    }

    fn carry_enforcement(&mut self, old: TableId, new: TableId) {
        let names: Vec<String> =
            self.unenforced.iter().filter(|(table, _)| *table == old).map(|(_, name)| name.clone()).collect();
        self.forget_enforcement(old);
        self.unenforced.extend(names.into_iter().map(|name| (new, name)));
    }

    /// Publishes what a table was reshaped to, some of whose indexes the change has made.
    pub(crate) fn publish_reshaped(
        &mut self,
        old: &TableHandle,
        handle: TableHandle,
        new_indexes: &[IndexId],
        renamed: &[(String, String)],
    ) {
        let new = handle.id();
        self.note_id(new.0);
        new_indexes.iter().for_each(|id| self.note_id(id.0));
        let handle = handle.with_new_indexes(new_indexes, self.now);
        self.remove(old.id());
        if new == old.id() {
            self.publish(handle);
        } else {
            self.publish(handle.readable_from(self.now));
            self.carry_enforcement(old.id(), new);
        }
        self.rename_referenced_columns(&old.def, new, renamed);
    }

    /// Publishes a handle some of whose indexes the change that is being applied has made.
    pub(crate) fn publish_with_new_indexes(&mut self, handle: TableHandle, new: &[IndexId]) {
        new.iter().for_each(|id| self.note_id(id.0));
        self.publish(handle.with_new_indexes(new, self.now));
    }

    /// Publishes a handle under its definition's name and id.
    pub(crate) fn publish(&mut self, handle: TableHandle) {
        let handle = Arc::new(handle);
        self.by_id.insert(handle.id(), handle.clone());
        let relations = if handle.def.is_view() { &mut self.views } else { &mut self.tables };
        let all = relations.entry(handle.def.database.clone()).or_default();
        all.insert(handle.def.name.clone(), handle);
        self.version += 1;
    }

    /// A table that stands before all others of its name.
    pub(crate) fn put_in_front(&mut self, table: &Arc<TableHandle>) {
        let TableDef { database, name, .. } = &*table.def;
        if let Some(views) = self.views.get_mut(database) {
            views.remove(name);
        }
        self.by_id.insert(table.id(), table.clone());
        self.tables.entry(database.clone()).or_default().insert(name.clone(), table.clone());
    }

    /// The changes that build this catalog from nothing.
    pub(crate) fn as_changes(&self) -> Vec<Change> {
        let databases = self.databases.values().cloned().map(Change::PutDatabase);
        let tables = self.tables().map(|t| Change::CreateTable(Box::new((*t.def).clone())));
        let views = self.views().map(|view| Change::CreateView(Box::new((*view.def).clone())));
        let users = self.users.values().map(|user| Change::PutUser(Box::new((**user).clone())));
        let unenforced = self.unenforced.iter().cloned();
        let unenforced = unenforced.map(|(table, name)| Change::Unenforce { table, name });
        databases.chain(tables).chain(views).chain(users).chain(unenforced).collect()
    }
}

impl TableHandle {
    /// With another index. Those that a new primary key gives other entries begin anew, too: `trees` says for each of these
    /// where its entries are, by the index and the parts of its keys, if they are anywhere.
    pub(crate) fn adding_index(&self, index: IndexDef, trees: &Trees<'_>) -> Self {
        let at = if index.kind == avocet_types::IndexKind::Primary { 0 } else { self.def.indexes.len() };
        let mut def = (*self.def).clone();
        def.indexes.insert(at, index.clone());
        let mut indexes = self.indexes.clone();
        indexes.insert(at, Arc::new(IndexHandle::over(trees, &def, index)));
        renew_indexes(&def, &mut indexes, trees);
        self.with_indexes(def, indexes)
    }

    /// The same rows and indexes under another definition of names and foreign keys.
    fn redefined(&self, def: TableDef) -> Self {
        self.with_indexes(def, self.indexes.clone())
    }

    /// Without an index. Those whose entries end with its columns, if it is the primary key, begin anew without entries.
    pub(crate) fn dropping_index(&self, index: IndexId) -> Self {
        let mut def = (*self.def).clone();
        def.indexes.retain(|i| i.id != index);
        let mut indexes: Vec<_> = self.indexes.iter().filter(|i| i.def.id != index).cloned().collect();
        renew_indexes(&def, &mut indexes, &|_, _| None);
        self.with_indexes(def, indexes)
    }
}

/// Puts others in the place of indexes whose entries the definition makes others: recovery would build them so.
pub(crate) fn renew_indexes(def: &TableDef, indexes: &mut [Arc<IndexHandle>], trees: &Trees<'_>) {
    for index in indexes.iter_mut().filter(|index| !index.has_parts_in(def)) {
        *index = Arc::new(IndexHandle::over(trees, def, index.def.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::change::tests::key;
    use super::*;

    /// A catalog is the same when it is built from its changes, and its links are.
    #[test]
    fn links_follow_names() {
        let table = |id: u32, name: &str, foreign_keys| {
            let column = avocet_types::ColumnDef::new("id", avocet_types::SqlType::BIGINT);
            let primary = IndexDef { id: IndexId(id + 100), ..IndexDef::primary(&[0]) };
            let def = TableDef::new("d", name, vec![column], vec![primary]);
            Change::CreateTable(Box::new(TableDef { id: TableId(id), foreign_keys, ..def }))
        };
        let parents = |catalog: &Catalog, child: u32| -> Vec<u32> {
            let links = catalog.links(TableId(child)).expect("it has a key");
            links.as_child.iter().filter_map(|link| Some(link.parent.as_ref()?.table.id().0)).collect()
        };
        let mut catalog = Catalog::default();
        let database = DatabaseDef { name: "d".into(), collation: Collation::DEFAULT };
        let changes =
            [Change::PutDatabase(database), table(1, "child", vec![key("p")]), table(2, "p", vec![])];
        changes.iter().for_each(|change| catalog.apply(change));
        catalog.relink();
        assert_eq!(parents(&catalog, 1), [2]);
        assert!(catalog.table_by_id(TableId(2)).expect("there").is_parent());
        catalog.apply(&Change::RenameTable { table: TableId(2), database: "d".into(), name: "q".into() });
        catalog.apply(&Change::Unenforce { table: TableId(1), name: "k".into() });
        let mut again = Catalog::default();
        catalog.as_changes().iter().for_each(|change| again.apply(change));
        for catalog in [&mut catalog, &mut again] {
            catalog.relink();
            assert_eq!(parents(catalog, 1), [2]);
            assert!(!catalog.is_enforced(TableId(1), "k"));
            catalog.apply(&Change::TruncateTable { old: TableId(1), new: TableId(7) });
            assert!(catalog.is_enforced(TableId(7), "k"));
            catalog.apply(&Change::DropTable(TableId(2)));
            catalog.relink();
            assert!(parents(catalog, 7).is_empty());
            assert!(!catalog.is_enforced(TableId(7), "k"), "its parents went without a look at it");
        }
    }
}
