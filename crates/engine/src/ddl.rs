//! Changes of the catalog. Each is a durable transaction of its own.
//!
//! Order: metadata lock (waits for the transactions that use the table) → DDL latch → check → log → publish →
//! wait until durable. The latch is held until the change is visible, so that whoever takes a snapshot under
//! the latch has the catalog of that snapshot.

mod exclusive;
mod foreign;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use avocet_base::{IndexId, TableId};
use avocet_log::Durability;
use avocet_storage::relation::SegmentState;
use avocet_types::{Collation, ForeignKeyDef, IndexDef, IndexKind, TableDef};

use crate::catalog::{Catalog, Change, DatabaseDef, UserDef};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::recovery::build_index;
use crate::redo;
use crate::table::{IndexHandle, TableHandle};
use exclusive::{Exclusive, Group};

/// A year: whoever is in the way ends before.
const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

impl Engine {
    /// Logs a change and publishes the catalog that it makes.
    fn apply(&self, change: &Change, publish: impl FnOnce(&mut Catalog)) -> Result<()> {
        self.check_running()?;
        let mut payload = Vec::new();
        change.encode(&mut payload);
        // Whoever commits in between has not seen the change that is logged before it.
        self.catalog_changing.store(true, Ordering::Release);
        let logged = self
            .pipeline
            .log_commit(redo::KIND_CATALOG, &payload, None, Durability::Sync)
            .inspect_err(|e| self.stop_unless_refused(e));
        if logged.is_ok() {
            let mut catalog = (*self.catalog()).clone();
            publish(&mut catalog);
            catalog.relink();
            self.catalog.store(Arc::new(catalog));
        }
        self.catalog_changing.store(false, Ordering::Release);
        logged?.wait()
    }

    fn apply_plain(&self, change: &Change) -> Result<()> {
        self.apply(change, |catalog| catalog.apply(change))
    }

    pub fn create_database(&self, name: &str, collation: Collation) -> Result<()> {
        let _latch = self.ddl.lock();
        if self.catalog().database(name).is_some() {
            return Err(EngineError::DatabaseExists(name.into()));
        }
        self.apply_plain(&Change::CreateDatabase(DatabaseDef { name: name.into(), collation }))
    }

    /// Drops a database and all its tables; returns how many these were. With `checks`, tables of other databases must not
    /// refer to them.
    pub fn drop_database(&self, name: &str, checks: bool, timeout: Duration) -> Result<usize> {
        let group = self.lock_group(timeout, |catalog| {
            let tables = catalog.tables_in(name);
            Ok(tables
                .flat_map(|t| foreign::linked_with(catalog, &t.def).into_iter().chain([t.clone()]))
                .collect())
        })?;
        let _latch = self.ddl.lock();
        let catalog = self.catalog();
        if catalog.database(name).is_none() {
            return Err(EngineError::NoSuchDatabase(name.into()));
        }
        let tables: Vec<_> = catalog.tables_in(name).cloned().collect();
        if checks {
            tables.iter().try_for_each(|table| foreign::check_not_referenced(&catalog, table, &tables))?;
        }
        self.apply_plain(&Change::DropDatabase(name.into()))?;
        tables.iter().for_each(|table| self.retire_blocks(table));
        drop(group);
        Ok(tables.len())
    }

    /// Creates a table; the ids in `def` and its indexes are given here.
    pub fn create_table(&self, def: TableDef) -> Result<Arc<TableHandle>> {
        self.create_table_with(def, true, NO_TIMEOUT)
    }

    /// With `checks` off, the parents of its foreign keys need not be there (yet).
    pub fn create_table_with(
        &self,
        mut def: TableDef,
        checks: bool,
        timeout: Duration,
    ) -> Result<Arc<TableHandle>> {
        let group = self.lock_group(timeout, |catalog| Ok(foreign::linked_with(catalog, &def)))?;
        let _latch = self.ddl.lock();
        let catalog = self.catalog();
        if catalog.database(&def.database).is_none() {
            return Err(EngineError::NoSuchDatabase(def.database));
        }
        if catalog.table(&def.database, &def.name).is_some() {
            return Err(EngineError::TableExists(def.name));
        }
        foreign::check_definition(&catalog, &def, checks)?;
        def.indexes.sort_by_key(|i| i.kind != IndexKind::Primary);
        let next = catalog.next_id();
        def.id = TableId(next);
        for (n, index) in def.indexes.iter_mut().enumerate() {
            index.id = IndexId(next + 1 + n as u32);
        }
        let id = def.id;
        self.apply_plain(&Change::CreateTable(Box::new(def)))?;
        drop(group);
        Ok(self.catalog().table_by_id(id).expect("published just now").clone())
    }

    fn find(&self, database: &str, name: &str) -> Result<Arc<TableHandle>> {
        self.find_in(&self.catalog(), database, name)
    }

    fn find_in(&self, catalog: &Catalog, database: &str, name: &str) -> Result<Arc<TableHandle>> {
        let table = catalog.table(database, name).cloned();
        table.ok_or_else(|| EngineError::NoSuchTable(database.into(), name.into()))
    }

    /// The table under an exclusive metadata lock, as it is once that is held.
    fn find_exclusive(&self, database: &str, name: &str, timeout: Duration) -> Result<Exclusive> {
        loop {
            let lock = Exclusive::lock(&self.find(database, name)?, timeout)?;
            let now = self.find(database, name)?;
            if Arc::ptr_eq(&now, &lock.table) {
                return Ok(lock);
            }
        }
    }

    pub fn drop_table(&self, database: &str, name: &str, timeout: Duration) -> Result<()> {
        self.drop_tables(&[(database.to_owned(), name.to_owned())], true, timeout)
    }

    /// Drops tables, each of which is there. With `checks`, no other tables must refer to them.
    pub fn drop_tables(&self, names: &[(String, String)], checks: bool, timeout: Duration) -> Result<()> {
        let group = self.lock_group(timeout, |catalog| {
            let mut all = Vec::new();
            for (database, name) in names {
                let table = self.find_in(catalog, database, name)?;
                all.extend(foreign::linked_with(catalog, &table.def));
                all.push(table);
            }
            Ok(all)
        })?;
        let _latch = self.ddl.lock();
        let tables: Vec<Arc<TableHandle>> = names
            .iter()
            .map(|(database, name)| group.table(database, name).cloned())
            .collect::<Result<_>>()?;
        let catalog = self.catalog();
        if checks {
            tables.iter().try_for_each(|table| foreign::check_not_referenced(&catalog, table, &tables))?;
        }
        for table in foreign::children_first(&catalog, tables) {
            self.apply_plain(&Change::DropTable(table.id()))?;
            self.retire_blocks(&table);
        }
        Ok(())
    }

    /// With `checks`, no other table must refer to it.
    pub fn truncate_table(&self, database: &str, name: &str, checks: bool, timeout: Duration) -> Result<()> {
        let group = self.lock_linked(database, name, timeout)?;
        let _latch = self.ddl.lock();
        let table = group.table(database, name)?;
        if checks {
            foreign::check_may_truncate(&self.catalog(), table)?;
        }
        let new = TableId(self.catalog().next_id());
        self.apply_plain(&Change::TruncateTable { old: table.id(), new })?;
        self.retire_blocks(table);
        Ok(())
    }

    /// Adds an index and fills it; for a unique one, fails if two rows have the same key.
    pub fn create_index(&self, database: &str, name: &str, index: IndexDef, timeout: Duration) -> Result<()> {
        let lock = self.find_exclusive(database, name, timeout)?;
        // Nobody uses the table now, so with the old versions collected the newest rows are all there is.
        self.collect_all_garbage();
        let _latch = self.ddl.lock();
        self.add_index(&lock.table, index)
    }

    /// Adds an index to a table that nobody uses, and of which only the newest rows are left. The latch is held.
    fn add_index(&self, table: &TableHandle, mut index: IndexDef) -> Result<()> {
        let same_name = |i: &IndexDef| i.name.eq_ignore_ascii_case(&index.name);
        if table.def.indexes.iter().any(same_name) {
            return Err(EngineError::IndexExists(index.name));
        }
        index.id = IndexId(self.catalog().next_id());
        let handle = table.adding_index(index.clone());
        let at = handle.indexes.iter().position(|i| i.def.id == index.id).expect("just added");
        build_index(&handle, at)?;
        if index.kind.is_unique() {
            check_unique(&handle, at)?;
        }
        let change = Change::CreateIndex { table: table.id(), index: index.clone() };
        self.apply(&change, |catalog| {
            catalog.note_id(index.id.0);
            catalog.publish(handle);
        })
    }

    pub fn drop_index(&self, database: &str, name: &str, index: &str, timeout: Duration) -> Result<()> {
        let lock = self.find_exclusive(database, name, timeout)?;
        // Leftovers of earlier transactions name indexes by position: they go first.
        self.collect_all_garbage();
        let _latch = self.ddl.lock();
        let table = &lock.table;
        let found = table.def.indexes.iter().find(|i| i.name.eq_ignore_ascii_case(index));
        let id = found.ok_or_else(|| EngineError::NoSuchIndex(index.into()))?.id;
        let mut without = (*table.def).clone();
        without.indexes.retain(|index| index.id != id);
        foreign::check_indexes(&self.catalog(), &without, index)?;
        self.apply_plain(&Change::DropIndex { table: table.id(), index: id })
    }

    /// Gives a table another name. Foreign keys that refer to it follow.
    pub fn rename_table(
        &self,
        from: (&str, &str),
        to: (&str, &str),
        checks: bool,
        timeout: Duration,
    ) -> Result<()> {
        let group = self.lock_group(timeout, |catalog| {
            let table = self.find_in(catalog, from.0, from.1)?;
            let mut all = foreign::linked_with(catalog, &table.def);
            all.extend(foreign::children_of(catalog, to.0, to.1));
            all.push(table);
            Ok(all)
        })?;
        let _latch = self.ddl.lock();
        let catalog = self.catalog();
        let table = group.table(from.0, from.1)?;
        if catalog.database(to.0).is_none() {
            return Err(EngineError::NoSuchDatabase(to.0.into()));
        }
        if catalog.table(to.0, to.1).is_some() {
            return Err(EngineError::TableExists(to.1.into()));
        }
        if foreign::children_of(&catalog, to.0, to.1).next().is_some() {
            let mut renamed = (*table.def).clone();
            (renamed.database, renamed.name) = (to.0.into(), to.1.into());
            renamed.foreign_keys.clear();
            foreign::check_definition(&catalog, &renamed, checks)?;
        }
        let change = Change::RenameTable { table: table.id(), database: to.0.into(), name: to.1.into() };
        self.apply_plain(&change)
    }

    /// Holds a table so that nobody else uses it, nor those that foreign keys link it with or that `parents` names, while
    /// its rows are copied to another one that shall replace it.
    pub fn alter(
        &self,
        database: &str,
        name: &str,
        parents: &[(String, String)],
        timeout: Duration,
    ) -> Result<Alteration> {
        let group = self.lock_group(timeout, |catalog| {
            let table = self.find_in(catalog, database, name)?;
            let mut all = foreign::linked_with(catalog, &table.def);
            all.extend(parents.iter().filter_map(|(database, name)| catalog.table(database, name).cloned()));
            all.push(table);
            Ok(all)
        })?;
        let table = group.table(database, name)?.clone();
        Ok(Alteration { table, _group: group })
    }

    /// Creates an account or changes it.
    pub fn put_user(&self, user: UserDef) -> Result<()> {
        let _latch = self.ddl.lock();
        self.apply_plain(&Change::PutUser(user))
    }

    /// False if there is no such account.
    pub fn drop_user(&self, name: &str, host: &str) -> Result<bool> {
        let _latch = self.ddl.lock();
        if self.catalog().user(name, host).is_none() {
            return Ok(false);
        }
        self.apply_plain(&Change::DropUser { name: name.into(), host: host.into() })?;
        Ok(true)
    }

    fn retire_blocks(&self, table: &TableHandle) {
        for (_, state) in table.relation.used_segments() {
            if let SegmentState::Cold(cold) = &*state {
                self.blocks.retire(&cold.block);
            }
        }
    }
}

pub(crate) fn check_unique(table: &TableHandle, index: usize) -> Result<()> {
    let handle: &IndexHandle = &table.indexes[index];
    let mut last: Vec<u8> = Vec::new();
    let mut duplicate = None;
    let mut scratch = avocet_storage::index::ScanScratch::default();
    let all = std::ops::Bound::Unbounded;
    let ascending = avocet_storage::index::Direction::Ascending;
    handle.tree.scan(all, all, ascending, &mut scratch, &mut |entry| {
        let (key, id) = crate::table::split_entry(entry);
        if key == last && !last.is_empty() {
            duplicate = Some(id);
            return std::ops::ControlFlow::Break(());
        }
        last.clear();
        // Keys with a NULL in them may repeat; they are left out of the comparison.
        if !crate::rows::newest_has_null(table, index, id) {
            last.extend_from_slice(key);
        }
        std::ops::ControlFlow::Continue(())
    });
    match duplicate {
        None => Ok(()),
        Some(id) => Err(EngineError::DuplicateKey {
            entry: crate::rows::newest_key_text(table, index, id),
            table: table.def.name.clone(),
            key: handle.def.name.clone(),
        }),
    }
}

/// A table that is being altered. Dropped before it is finished, the table stays as it was.
pub struct Alteration {
    table: Arc<TableHandle>,
    _group: Group,
}

/// What of a table's foreign keys changes with the table.
#[derive(Default)]
pub struct NewForeignKeys {
    /// All that the table has in the end.
    pub keys: Vec<ForeignKeyDef>,
    /// The names of those that it did not have before.
    pub added: Vec<String>,
    /// Columns of the table that other tables refer to, by their old and new names.
    pub renamed: Vec<(String, String)>,
    /// Rows are checked by the keys that were added, whose parents must be there.
    pub checks: bool,
}

impl Alteration {
    pub fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }

    /// Whether foreign keys allow the new definition, whatever the rows are.
    pub fn check(&self, engine: &Engine, new: &TableDef, foreign: &NewForeignKeys) -> Result<()> {
        let NewForeignKeys { keys, added, renamed, checks } = foreign;
        let mut def = new.clone();
        def.database.clone_from(&self.table.def.database);
        def.name.clone_from(&self.table.def.name);
        def.foreign_keys.clone_from(keys);
        foreign::check_replacement(&engine.catalog(), &self.table, &def, added, renamed, *checks)
    }

    /// The table `new`, which nobody knows of, takes the name of the altered one, which is dropped.
    pub fn replace_by(self, engine: &Engine, new: &Arc<TableHandle>, foreign: NewForeignKeys) -> Result<()> {
        let _latch = engine.ddl.lock();
        self.check(engine, &new.def, &foreign)?;
        let NewForeignKeys { keys, added, renamed, checks } = foreign;
        for key in keys.iter().filter(|key| checks && added.contains(&key.name)) {
            engine.check_rows(new, key)?;
        }
        let (old, new) = (self.table.id(), new.id());
        for name in added.into_iter().filter(|_| !checks) {
            engine.apply_plain(&Change::Unenforce { table: new, name })?;
        }
        engine.apply_plain(&Change::ReplaceTable { old, new, foreign_keys: keys, renamed })?;
        engine.retire_blocks(&self.table);
        Ok(())
    }
}
