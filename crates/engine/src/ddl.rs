//! Changes of the catalog. Each is a durable transaction of its own.
//!
//! Order: metadata lock (waits for the transactions that use the table) → DDL latch → check → log → publish →
//! wait until durable. The latch is held until the change is visible, so that whoever takes a snapshot under
//! the latch has the catalog of that snapshot.

mod alter;
pub(crate) mod checks;
mod exclusive;
mod foreign;
mod temporary;
mod unfinished;
mod views;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use avocet_base::{IndexId, RowId, TableId};
use avocet_log::Durability;
use avocet_storage::relation::SegmentState;
use avocet_types::names;
use avocet_types::{Collation, IndexDef, IndexKind, TableDef};

use crate::capture;
use crate::catalog::{Catalog, Change, DatabaseDef, UserDef};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::redo;
use crate::stop::Stop;
use crate::table::{IndexHandle, TableHandle};
pub use alter::{AlterRest, Alteration, NewForeignKeys};
pub use exclusive::DdlWait;
pub use temporary::TemporaryTable;
pub use unfinished::Unfinished;

/// Database and name of a table, and those that it gets.
pub type Renaming = ((String, String), (String, String));

/// A change of one account.
#[derive(Debug)]
pub enum AccountChange {
    /// There is this account, and none other of its name and host.
    Put(Box<UserDef>),
    Drop {
        name: String,
        host: String,
    },
}

impl AccountChange {
    pub fn put(user: UserDef) -> Self {
        Self::Put(Box::new(user))
    }
}

impl From<AccountChange> for Change {
    fn from(change: AccountChange) -> Self {
        match change {
            AccountChange::Put(user) => Self::PutUser(user),
            AccountChange::Drop { name, host } => Self::DropUser { name, host },
        }
    }
}

/// A year: whoever is in the way ends before.
const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

impl Engine {
    /// Logs a change and publishes the catalog that it makes.
    fn apply(&self, change: &Change, publish: impl FnOnce(&mut Catalog)) -> Result<()> {
        self.health.check()?;
        let mut payload = Vec::new();
        change.encode(&mut payload);
        if self.options.capture_changes && !change.is_of_unfinished(&self.catalog()) {
            capture::take_statement(&self.options.env, &mut payload);
        }
        // Whoever commits in between has not seen the change that is logged before it.
        self.catalog_changing.store(true, Ordering::Release);
        let logged = self
            .pipeline
            .log_commit(redo::KIND_CATALOG, &payload, None, Durability::Sync)
            .inspect_err(|e| self.health.stop_unless_refused(e));
        if let Ok(ticket) = &logged {
            let mut catalog = (*self.catalog()).clone();
            catalog.begin_change(ticket.timestamp());
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
        self.apply_plain(&Change::PutDatabase(DatabaseDef { name: name.into(), collation }))
    }

    /// Gives a database another collation, for tables to come.
    pub fn alter_database(&self, name: &str, collation: Collation) -> Result<()> {
        let _latch = self.ddl.lock();
        if self.catalog().database(name).is_none() {
            return Err(EngineError::NoSuchDatabase(name.into()));
        }
        self.apply_plain(&Change::PutDatabase(DatabaseDef { name: name.into(), collation }))
    }

    /// Drops a database and all its tables and views; returns how many these were. With `checks`, tables of other databases must not
    /// refer to them.
    pub fn drop_database(&self, name: &str, checks: bool, wait: impl Into<DdlWait>) -> Result<usize> {
        let group = self.lock_group(wait, |catalog| {
            let views = catalog.views_in(name).cloned();
            let tables = catalog.tables_in(name);
            Ok(tables
                .flat_map(|t| foreign::linked_with(catalog, &t.def).into_iter().chain([t.clone()]))
                .chain(views)
                .collect())
        })?;
        let _latch = self.ddl.lock();
        let catalog = self.catalog();
        if catalog.database(name).is_none() {
            return Err(EngineError::NoSuchDatabase(name.into()));
        }
        let views = catalog.views_in(name).count();
        let tables: Vec<_> = catalog.tables_in(name).cloned().collect();
        if checks {
            tables.iter().try_for_each(|table| foreign::check_not_referenced(&catalog, table, &tables))?;
        }
        self.apply_plain(&Change::DropDatabase(name.into()))?;
        tables.iter().for_each(|table| self.retire_blocks(table));
        drop(group);
        Ok(tables.len() + views)
    }

    /// Creates a table; the ids in `def` and its indexes are given here.
    pub fn create_table(&self, def: TableDef) -> Result<Arc<TableHandle>> {
        self.create_table_with(def, None, true, NO_TIMEOUT)
    }

    /// With the first AUTO_INCREMENT value. With `checks` off, the parents of its foreign keys need not be there (yet).
    pub fn create_table_with(
        &self,
        def: TableDef,
        auto_increment: Option<u64>,
        checks: bool,
        wait: impl Into<DdlWait>,
    ) -> Result<Arc<TableHandle>> {
        let group = self.lock_group(wait, |catalog| Ok(foreign::linked_with(catalog, &def)))?;
        let _latch = self.ddl.lock();
        let catalog = self.catalog();
        if catalog.database(&def.database).is_none() {
            return Err(EngineError::NoSuchDatabase(def.database));
        }
        if catalog.relation(&def.database, &def.name).is_some() {
            return Err(EngineError::TableExists(def.name));
        }
        foreign::check_definition(&catalog, &def, checks)?;
        checks::check_names(&catalog, &def.checks, &def.database, None)?;
        let table = self.create_under_latch(def, auto_increment)?;
        drop(group);
        Ok(table)
    }

    /// Creates a table whose definition was checked.
    fn create_under_latch(&self, mut def: TableDef, auto_increment: Option<u64>) -> Result<Arc<TableHandle>> {
        def.indexes.sort_by_key(|i| i.kind != IndexKind::Primary);
        // It may be another table's, whose blocks this one has not.
        def.stored = None;
        let next = self.catalog().next_id();
        def.id = TableId(next);
        for (n, index) in def.indexes.iter_mut().enumerate() {
            index.id = IndexId(next + 1 + n as u32);
        }
        let id = def.id;
        let create = Change::CreateTable(Box::new(def));
        self.apply_plain(&match auto_increment {
            None => create,
            Some(next) => Change::Several(vec![create, Change::AutoIncrement { table: id, next }]),
        })?;
        let table = self.catalog().table_by_id(id).expect("published just now").clone();
        // Until tables are counted again, whoever asks for room is to know of it.
        self.memory.grow(table.bytes_of_few_rows());
        Ok(table)
    }

    fn find_in(&self, catalog: &Catalog, database: &str, name: &str) -> Result<Arc<TableHandle>> {
        let table = catalog.table(database, name).cloned();
        table.ok_or_else(|| EngineError::NoSuchTable(database.into(), name.into()))
    }

    pub fn drop_table(&self, database: &str, name: &str, wait: impl Into<DdlWait>) -> Result<()> {
        self.drop_tables(&[(database.to_owned(), name.to_owned())], true, wait)
    }

    /// Drops tables, each of which is there. With `checks`, no other tables must refer to them.
    pub fn drop_tables(
        &self,
        names: &[(String, String)],
        checks: bool,
        wait: impl Into<DdlWait>,
    ) -> Result<()> {
        let group = self.lock_group(wait, |catalog| {
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
        let tables = foreign::children_first(&catalog, tables);
        let drops: Vec<Change> = tables.iter().map(|table| Change::DropTable(table.id())).collect();
        if drops.is_empty() {
            return Ok(());
        }
        self.apply_plain(&Change::Several(drops))?;
        tables.iter().for_each(|table| self.retire_blocks(table));
        Ok(())
    }

    /// With `checks`, no other table must refer to it.
    pub fn truncate_table(
        &self,
        database: &str,
        name: &str,
        checks: bool,
        wait: impl Into<DdlWait>,
    ) -> Result<()> {
        let group = self.lock_linked(database, name, wait)?;
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
    pub fn create_index(
        &self,
        database: &str,
        name: &str,
        mut index: IndexDef,
        wait: impl Into<DdlWait>,
    ) -> Result<()> {
        let alteration = self.alter(database, name, &[], None, wait)?;
        let mut def = (*alteration.table().def).clone();
        if def.indexes.iter().any(|other| names::eq(&other.name, &index.name)) {
            return Err(EngineError::IndexExists(index.name));
        }
        index.id = IndexId(0);
        def.indexes.push(index);
        let foreign = NewForeignKeys::unchanged(&def);
        alteration.change_in_place(self, &def, foreign, AlterRest::default(), None)
    }

    pub fn drop_index(
        &self,
        database: &str,
        name: &str,
        index: &str,
        wait: impl Into<DdlWait>,
    ) -> Result<()> {
        let alteration = self.alter(database, name, &[], None, wait)?;
        let mut def = (*alteration.table().def).clone();
        let found = def.indexes.iter().position(|other| names::eq(&other.name, index));
        def.indexes.remove(found.ok_or_else(|| EngineError::NoSuchIndex(index.into()))?);
        foreign::check_indexes(&self.catalog(), &def, index)?;
        let foreign = NewForeignKeys::unchanged(&def);
        alteration.change_in_place(self, &def, foreign, AlterRest::default(), None)
    }

    /// Gives a table another name. Foreign keys that refer to it follow.
    pub fn rename_table(
        &self,
        from: (&str, &str),
        to: (&str, &str),
        checks: bool,
        wait: impl Into<DdlWait>,
    ) -> Result<()> {
        let own = |(database, name): (&str, &str)| (database.to_owned(), name.to_owned());
        self.rename_tables(&[(own(from), own(to))], checks, wait)
    }

    /// Gives tables other names, one after the other, in one change: nobody sees some of them renamed, others not.
    pub fn rename_tables(&self, pairs: &[Renaming], checks: bool, wait: impl Into<DdlWait>) -> Result<()> {
        let _group = self.lock_group(wait, |catalog| {
            let mut all = Vec::new();
            for (from, to) in pairs {
                // What is not there may be a name that an earlier pair gives.
                if let Some(table) = catalog.relation(&from.0, &from.1) {
                    all.extend(foreign::linked_with(catalog, &table.def));
                    all.push(table.clone());
                }
                all.extend(foreign::children_of(catalog, &to.0, &to.1));
            }
            Ok(all)
        })?;
        let _latch = self.ddl.lock();
        // Each pair is checked in the catalog that those before it make.
        let mut catalog = (*self.catalog()).clone();
        let mut changes = Vec::with_capacity(pairs.len());
        for (from, (database, name)) in pairs {
            let missing = || EngineError::NoSuchTable(from.0.clone(), from.1.clone());
            let table = catalog.relation(&from.0, &from.1).cloned().ok_or_else(missing)?;
            self.check_name_is_free(&catalog, &table.def, database, name, checks)?;
            let change =
                Change::RenameTable { table: table.id(), database: database.clone(), name: name.clone() };
            catalog.apply(&change);
            changes.push(change);
        }
        self.apply_plain(&Change::Several(changes))
    }

    /// Creates an account or changes it.
    pub fn put_user(&self, user: UserDef) -> Result<()> {
        let _latch = self.ddl.lock();
        self.apply_plain(&Change::PutUser(Box::new(user)))
    }

    /// Changes accounts: all that `decide` says, or nothing. It is shown a catalog that nobody changes meanwhile.
    pub fn change_accounts<E: From<EngineError>>(
        &self,
        decide: impl FnOnce(&Catalog) -> std::result::Result<Vec<AccountChange>, E>,
    ) -> std::result::Result<(), E> {
        let _latch = self.ddl.lock();
        let changes: Vec<Change> = decide(&self.catalog())?.into_iter().map(Change::from).collect();
        if changes.is_empty() {
            return Ok(());
        }
        Ok(self.apply_plain(&Change::Several(changes))?)
    }

    fn retire_blocks(&self, table: &TableHandle) {
        for (_, state) in table.relation.used_segments() {
            if let SegmentState::Cold(cold) = &*state {
                self.blocks.retire(&cold.block);
            }
        }
    }
}

/// Whether no two rows have the same key.
pub(crate) fn check_unique(table: &TableHandle, index: usize, stop: &Stop) -> Result<()> {
    let handle: &IndexHandle = &table.indexes[index];
    let (mut last, mut last_id): (Vec<u8>, _) = (Vec::new(), RowId(0));
    let mut duplicate = None;
    let mut seen = 0;
    let may_be_null = handle.def.parts.iter().any(|part| table.def.columns[part.column].nullable);
    let mut scratch = avocet_storage::index::ScanScratch::default();
    let all = std::ops::Bound::Unbounded;
    let ascending = avocet_storage::index::Direction::Ascending;
    handle.tree.scan(all, all, ascending, &mut scratch, &mut |entry| {
        seen += 1;
        if seen % Stop::EVERY == 0 && stop.is_raised() {
            return std::ops::ControlFlow::Break(());
        }
        let (key, id) = crate::table::split_entry(entry);
        if key == last && !last.is_empty() {
            // Entries of rows that are gone stay for as long as a snapshot may see these.
            let has_key = |id| crate::entries::live_has_key(table, index, id, key);
            match (has_key(last_id), has_key(id)) {
                (true, true) => {
                    duplicate = Some(id);
                    return std::ops::ControlFlow::Break(());
                }
                (true, false) => return std::ops::ControlFlow::Continue(()),
                (false, _) => {}
            }
        }
        last.clear();
        last_id = id;
        // Keys with a NULL in them may repeat; they are left out of the comparison.
        if !may_be_null || !crate::entries::newest_has_null(table, index, id) {
            last.extend_from_slice(key);
        }
        std::ops::ControlFlow::Continue(())
    });
    match duplicate {
        None => stop.check(),
        Some(id) => Err(EngineError::DuplicateKey {
            entry: crate::entries::newest_key_text(table, index, id),
            table: table.def.name.clone(),
            key: handle.def.name.clone(),
        }),
    }
}
