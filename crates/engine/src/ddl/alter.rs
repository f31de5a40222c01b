//! ALTER TABLE: a table is held so that nobody else uses it, and then changed in place (indexes, foreign keys, its name) or
//! replaced by a copy. Either is one record of the log, however much the statement changes: all of it or nothing.

use std::sync::Arc;

use avocet_base::{IndexId, TableId};
use avocet_types::{ForeignKeyDef, IndexDef, IndexPart, TableDef, Value};

use super::exclusive::{DdlWait, Group};
use super::unfinished::Unfinished;
use super::{check_unique, checks, foreign};
use crate::catalog::{Catalog, Change};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_ahead::{IndexesAhead, added_indexes, gone_indexes};
use crate::index_build::build_new_index;
use crate::stop::Stop;
use crate::table::{IndexHandle, TableHandle};

/// A table that is being altered. Dropped before it is finished, the table stays as it was.
pub struct Alteration {
    table: Arc<TableHandle>,
    _group: Group,
    /// Ends what takes long.
    stop: Stop,
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

impl NewForeignKeys {
    /// Those that the rows must have parents by, and may not have.
    fn checked(&self) -> impl Iterator<Item = &ForeignKeyDef> {
        self.keys.iter().filter(|key| self.checks && self.added.contains(&key.name))
    }

    /// Those that a table has.
    pub fn unchanged(def: &TableDef) -> Self {
        Self { keys: def.foreign_keys.clone(), ..Self::default() }
    }
}

/// What an ALTER TABLE changes besides columns, indexes and foreign keys.
#[derive(Clone, Default)]
pub struct AlterRest {
    pub auto_increment: Option<u64>,
    /// The new database and name.
    pub rename: Option<(String, String)>,
    /// Rows that the copy is to be without.
    pub left_out: u64,
}

impl Engine {
    /// Holds a table so that nobody else uses it, nor those that foreign keys link it with (under its new name, too) or that
    /// `parents` names.
    pub fn alter(
        &self,
        database: &str,
        name: &str,
        parents: &[(String, String)],
        rename: Option<&(String, String)>,
        wait: impl Into<DdlWait>,
    ) -> Result<Alteration> {
        let wait = wait.into();
        let stop = wait.stop();
        let group = self.lock_group(wait, |catalog| {
            let table = self.find_in(catalog, database, name)?;
            let mut all = foreign::linked_with(catalog, &table.def);
            all.extend(parents.iter().filter_map(|(database, name)| catalog.table(database, name).cloned()));
            all.extend(rename.into_iter().flat_map(|to| foreign::children_of(catalog, &to.0, &to.1)));
            all.push(table);
            Ok(all)
        })?;
        let table = group.table(database, name)?.clone();
        // What was committed before the table was held is to be seen by those who read it now.
        self.wait_until_visible();
        Ok(Alteration { table, _group: group, stop })
    }

    /// Whether a table may have this name: its database is there, nothing has the name, and children that wait for a
    /// parent of the name fit.
    pub(super) fn check_name_is_free(
        &self,
        catalog: &Catalog,
        def: &TableDef,
        database: &str,
        name: &str,
        checks: bool,
    ) -> Result<()> {
        if catalog.database(database).is_none() {
            return Err(EngineError::NoSuchDatabase(database.into()));
        }
        if catalog.relation(database, name).is_some() {
            return Err(EngineError::TableExists(name.into()));
        }
        checks::check_names(catalog, &checks::renamed(def, name), database, Some(def.id))?;
        if foreign::children_of(catalog, database, name).next().is_some() {
            let mut renamed = def.clone();
            (renamed.database, renamed.name) = (database.into(), name.into());
            renamed.foreign_keys.clear();
            foreign::check_definition(catalog, &renamed, checks)?;
        }
        Ok(())
    }
}

impl Alteration {
    pub fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }

    /// Whether foreign keys and names allow the new definition, whatever the rows are.
    pub fn check(
        &self,
        engine: &Engine,
        new: &TableDef,
        foreign: &NewForeignKeys,
        rest: &AlterRest,
    ) -> Result<()> {
        let NewForeignKeys { keys, added, renamed, checks } = foreign;
        let mut def = new.clone();
        def.database.clone_from(&self.table.def.database);
        def.name.clone_from(&self.table.def.name);
        def.foreign_keys.clone_from(keys);
        let catalog = engine.catalog();
        if let Some((database, name)) = &rest.rename {
            // The names of its own checks are free, also where it is copied.
            let named = TableDef { id: self.table.id(), ..def.clone() };
            engine.check_name_is_free(&catalog, &named, database, name, *checks)?;
        }
        checks::check_names(&catalog, &def.checks, &def.database, Some(self.table.id()))?;
        foreign::check_replacement(&catalog, &self.table, &def, added, renamed, *checks)
    }

    /// The table `new` takes the name of the altered one, which is dropped. `rows` are those of `new`: all that the altered table
    /// has but those that are left out.
    pub fn replace_by(
        self,
        mut new: Unfinished,
        rows: u64,
        foreign: NewForeignKeys,
        rest: AlterRest,
    ) -> Result<()> {
        let (engine, copy) = (new.engine().clone(), new.table().clone());
        self.check(&engine, &copy.def, &foreign, &rest)?;
        let there = self.table.count_rows();
        if there != rows + rest.left_out {
            let what = format!("the copy of '{}.{}'", self.table.def.database, self.table.def.name);
            return Err(EngineError::RowsMissing { what, expected: there, found: rows + rest.left_out });
        }
        for key in foreign.checked() {
            engine.check_rows(&copy, key, &self.stop)?;
        }
        let _latch = engine.ddl.lock();
        self.check(&engine, &copy.def, &foreign, &rest)?;
        let NewForeignKeys { keys, added, renamed, checks } = foreign;
        let (old, table) = (self.table.id(), copy.id());
        let unenforced = added.into_iter().filter(|_| !checks);
        let mut changes: Vec<Change> = unenforced.map(|name| Change::Unenforce { table, name }).collect();
        let replace = Change::ReplaceTable { old, new: table, rows: Some(rows), foreign_keys: keys, renamed };
        changes.push(replace);
        let renamed = rest.rename.map(|(database, name)| Change::RenameTable { table, database, name });
        changes.extend(renamed);
        self.stop.check()?;
        new.apply(rows, changes, rest.auto_increment)?;
        engine.retire_blocks(&self.table);
        Ok(())
    }

    /// Whether the table's columns may change under its rows: no snapshot needs older versions of these.
    pub fn has_newest_rows_alone(&self, engine: &Engine) -> bool {
        engine.collect_all_garbage();
        !self.table.relation.has_versions()
    }

    /// The table gets the columns of `def`, and its rows stay where they are. `sources` says by column where it was, or what rows
    /// have in it that are there; indexes that were there are on the columns that they were on, new ones have no ids and are
    /// filled first, and foreign keys are those of before.
    /// False, and nothing has changed, if blocks would carry too many columns that are gone.
    ///
    /// The rows must have no older versions: see [`Self::has_newest_rows_alone`].
    pub fn reshape(
        &self,
        engine: &Engine,
        def: &TableDef,
        sources: &[Result<usize, Value>],
        foreign: &NewForeignKeys,
        rest: &AlterRest,
    ) -> Result<bool> {
        self.check(engine, def, foreign, rest)?;
        let old = &self.table;
        let Some(stored) = def.stored_after(&old.def, sources) else { return Ok(false) };
        let is_known = |index: &&IndexDef| old.def.indexes.iter().any(|known| known.id == index.id);
        // Entries end in the primary key's columns: where one of these is gone, all are made anew.
        let stays =
            |part: &IndexPart| sources.iter().any(|source| matches!(source, Ok(at) if *at == part.column));
        let is_kept = |index: &&Arc<IndexHandle>| def.indexes.iter().any(|kept| kept.id == index.def.id);
        if !old.indexes.iter().filter(is_kept).all(|index| index.parts.iter().all(stays)) {
            return Ok(false);
        }
        let indexes = def.indexes.iter().filter(is_known).cloned().collect();
        let mut kept = TableDef { stored, indexes, ..def.clone() };
        kept.database.clone_from(&old.def.database);
        kept.name.clone_from(&old.def.name);
        let in_place = |(at, source): (usize, &Result<usize, Value>)| matches!(source, Ok(was) if *was == at);
        let is_same = sources.len() == old.def.columns.len() && sources.iter().enumerate().all(in_place);
        let _still = StillSegments::of(engine, old);
        let _copies = engine.memory.hold_copies(if is_same { 0 } else { old.relation.hot_bytes() });
        let handle = old.reshaped(kept, &|| self.stop.check())?;
        if !is_same {
            handle.relation.resume_inserts();
        }
        let (rows, there) = (old.count_rows(), handle.count_rows());
        if there != rows {
            let what = format!("'{}' with its new columns", old.name());
            return Err(EngineError::RowsMissing { what, expected: rows, found: there });
        }
        let mut reshaped = (*handle.def).clone();
        let handle = self.reindexed(engine, handle, def, None)?;
        let _latch = engine.ddl.lock();
        self.check(engine, def, foreign, rest)?;
        let next = engine.catalog().next_id();
        let new = if is_same { old.id() } else { TableId(next) };
        reshaped.id = new;
        let Numbered { handle, changes: indexed, new: new_indexes } = self.numbered(&handle, new, next + 1);
        let renamed = foreign.renamed.clone();
        let mut changes = vec![Change::Reshape { old: old.id(), def: Box::new(reshaped), rows, renamed }];
        changes.extend(indexed);
        let known = changes.len();
        changes.extend(rest.auto_increment.map(|next| Change::SetAutoIncrement { table: new, next }));
        let renaming = rest.rename.clone();
        changes.extend(renaming.map(|(database, name)| Change::RenameTable { table: new, database, name }));
        self.stop.check()?;
        engine.apply(&Change::Several(changes.clone()), |catalog| {
            catalog.publish_reshaped(old, handle, &new_indexes, &foreign.renamed);
            changes[known..].iter().for_each(|change| catalog.apply(change));
        })?;
        Ok(true)
    }

    /// Lets others go on with the table while the new indexes of `def` are filled, for
    /// [`Self::change_in_place`] of a later alteration. `None` if somebody does so already: then they are built there.
    pub fn build_ahead<'e>(self, engine: &'e Engine, def: &TableDef) -> Result<Option<IndexesAhead<'e>>> {
        let (table, stop) = (self.table.clone(), self.stop.clone());
        let Some(mut ahead) = IndexesAhead::begin(&table, &engine.memory) else { return Ok(None) };
        drop(self);
        ahead.build(&def.indexes, &stop)?;
        Ok(Some(ahead))
    }

    /// The table gets the indexes of `def` (those that it does not have yet without ids), its checks (which the rows fulfil),
    /// the foreign keys and the name;
    /// its columns stay. New indexes are filled first; for a unique one, fails if two rows have the same key.
    /// What was built `ahead` for just these indexes is used, if the table is what it was then.
    pub fn change_in_place(
        self,
        engine: &Engine,
        def: &TableDef,
        foreign: NewForeignKeys,
        rest: AlterRest,
        ahead: Option<IndexesAhead<'_>>,
    ) -> Result<()> {
        // Nobody uses the table now, so with the old versions collected the newest rows are all that new indexes need. (A
        // snapshot that would need more does not read them.)
        engine.collect_all_garbage();
        self.check(engine, def, &foreign, &rest)?;
        let table = self.table.id();
        let mut handle = self.table.with_indexes((*self.table.def).clone(), self.table.indexes.clone());
        for gone in gone_indexes(&self.table.def.indexes, &def.indexes) {
            handle = handle.dropping_index(gone.id);
        }
        let handle = self.reindexed(engine, handle, def, ahead)?;
        for key in foreign.checked() {
            engine.check_rows(&self.table, key, &self.stop)?;
        }
        let _latch = engine.ddl.lock();
        self.check(engine, def, &foreign, &rest)?;
        let Numbered { handle, changes: indexed, new } =
            self.numbered(&handle, table, engine.catalog().next_id());
        let gone = gone_indexes(&self.table.def.indexes, &def.indexes);
        let mut changes: Vec<Change> =
            gone.map(|gone| Change::DropIndex { table, index: gone.id }).chain(indexed).collect();
        self.change_foreign_keys(foreign, &mut changes);
        for index in &def.indexes {
            let is_same = |old: &&IndexDef| old.id == index.id;
            let old = self.table.def.indexes.iter().find(is_same);
            if old.is_some_and(|old| old.invisible != index.invisible) {
                changes.push(Change::ShowIndex { table, index: index.id, visible: !index.invisible });
            }
        }
        if def.checks != self.table.def.checks {
            changes.push(Change::SetChecks { table, checks: def.checks.clone() });
        }
        let old = &self.table.def;
        if (&def.partitioning, &def.kept_keys) != (&old.partitioning, &old.kept_keys) {
            let (partitioning, kept_keys) = (def.partitioning.clone(), def.kept_keys.clone());
            changes.push(Change::SetKept { table, partitioning, kept_keys });
        }
        if let Some(at_us) = def.created_us.filter(|_| def.created_us != old.created_us) {
            changes.push(Change::SetCreated { table, at_us });
        }
        changes.extend(rest.auto_increment.map(|next| Change::SetAutoIncrement { table, next }));
        let renamed = rest.rename.map(|(database, name)| Change::RenameTable { table, database, name });
        changes.extend(renamed);
        if changes.is_empty() {
            return Ok(());
        }
        self.stop.check()?;
        let of_indexes =
            |change: &&Change| matches!(change, Change::CreateIndex { .. } | Change::DropIndex { .. });
        engine.apply(&Change::Several(changes.clone()), |catalog| {
            if changes.iter().any(|change| of_indexes(&change)) {
                catalog.publish_with_new_indexes(handle, &new);
            }
            changes.iter().filter(|change| !of_indexes(change)).for_each(|change| catalog.apply(change));
        })
    }

    /// A handle of the table with the indexes of `def` that it does not have yet, which have no ids. All that have other entries
    /// than before are filled: the new ones, and those that a new primary key makes anew.
    fn reindexed(
        &self,
        engine: &Engine,
        mut handle: TableHandle,
        def: &TableDef,
        ahead: Option<IndexesAhead<'_>>,
    ) -> Result<TableHandle> {
        let ahead = ahead.and_then(|ahead| Some((ahead.settle(&self.table)?, ahead)));
        let trees = |index: &IndexDef, parts: &[IndexPart]| ahead.as_ref()?.1.tree(index, parts);
        for added in added_indexes(&self.table.def.indexes, &def.indexes) {
            handle = handle.adding_index(added.clone(), &trees);
        }
        for at in (0..handle.indexes.len()).filter(|&at| !self.table.has_tree_of(&handle, at)) {
            let is_built = match &ahead {
                Some((meanwhile, ahead)) => ahead.catch_up(&handle, at, meanwhile, &self.stop)?,
                None => false,
            };
            if !is_built {
                build_new_index(&handle, at, &engine.memory, &self.stop)?;
            }
            if handle.indexes[at].def.kind.is_unique() {
                check_unique(&handle, at, &self.stop)?;
            }
        }
        Ok(handle)
    }

    /// The same as table `id`, its new indexes with ids from `first` on. Under the DDL latch, since others take ids, too.
    fn numbered(&self, handle: &TableHandle, id: TableId, first: u32) -> Numbered {
        let (mut changes, mut new) = (Vec::new(), Vec::new());
        let mut def = TableDef { id, ..(*handle.def).clone() };
        let mut indexes = handle.indexes.clone();
        for (at, index) in indexes.iter_mut().enumerate() {
            let is_added = self.table.def.indexes.iter().all(|known| known.id != index.def.id);
            if is_added {
                let index_id = IndexId(first + changes.len() as u32);
                def.indexes[at].id = index_id;
                let numbered = index.moved(&def, def.indexes[at].clone(), &Some);
                *index = Arc::new(numbered.expect("no column has moved"));
                changes.push(Change::CreateIndex { table: id, index: def.indexes[at].clone() });
            }
            if !self.table.has_tree_of(handle, at) {
                new.push(index.def.id);
            }
        }
        Numbered { handle: handle.with_indexes(def, indexes), changes, new }
    }

    fn change_foreign_keys(&self, foreign: NewForeignKeys, changes: &mut Vec<Change>) {
        let table = self.table.id();
        let NewForeignKeys { keys, added, checks, renamed: _ } = foreign;
        let stays =
            |old: &ForeignKeyDef| keys.iter().any(|key| key.name == old.name && !added.contains(&key.name));
        let gone = self.table.def.foreign_keys.iter().filter(|old| !stays(old));
        changes.extend(gone.map(|old| Change::DropForeignKey { table, name: old.name.clone() }));
        for key in keys.into_iter().filter(|key| added.contains(&key.name)) {
            if !checks {
                changes.push(Change::Unenforce { table, name: key.name.clone() });
            }
            changes.push(Change::AddForeignKey { table, key });
        }
    }
}

/// A table with other indexes, as it is published.
struct Numbered {
    handle: TableHandle,
    /// That make the indexes which it did not have.
    changes: Vec<Change>,
    /// Indexes with other entries than before.
    new: Vec<IndexId>,
}

/// Has the segments of a table stay what they are: what was made of them is what recovery makes of them. (It may take long, so
/// the DDL latch, under which segments are frozen and compacted, is not held meanwhile.)
struct StillSegments<'t>(&'t TableHandle);

impl<'t> StillSegments<'t> {
    fn of(engine: &Engine, table: &'t TableHandle) -> Self {
        let _latch = engine.ddl.lock();
        table.relation.set_still(true);
        Self(table)
    }
}

impl Drop for StillSegments<'_> {
    fn drop(&mut self) {
        self.0.relation.set_still(false);
    }
}
