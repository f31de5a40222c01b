//! The definition of a table on its way to the new one: what single actions make of it.

use std::collections::HashSet;

use avocet_engine::TableHandle;
use avocet_sql::parse::ast::ObjectName;
use avocet_sql::parse::statement::{AlterAction, ColumnPosition, TableOptions};
use avocet_types::Collation;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::RowProgram;
use avocet_types::names;
use avocet_types::schema::{ColumnDef, IndexDef, TableDef};
use avocet_types::stored::keeps_values;

use super::super::{check_name, check_options, functional, indexes};
use super::named;
use crate::settings::collation_of;

/// Of a table with so many rows indexes are built while others go on with it; for fewer, it is not worth to wait for them twice.
const LARGE: u64 = 20_000;

/// A definition on its way to the new one.
pub(crate) struct Draft {
    pub def: TableDef,
    /// By column: where it was in the old table; `None` for a new one.
    pub sources: Vec<Option<usize>>,
    /// Columns changed, or what is known of them: rows are copied, unless they can stay.
    pub copies: bool,
    /// The rows can stay where they are.
    pub keeps_rows: bool,
    /// The names of the columns that go.
    dropped: HashSet<String>,
    /// The names that the columns had.
    old_names: Vec<String>,
    /// The names of the columns for which NULL is written.
    pub written_null: Vec<String>,
    /// Checks are enforced that were not: rows must fulfil them.
    pub verifies: bool,
    /// Rows for which this holds are not copied: partitions are dropped or truncated.
    pub left_out: Option<RowProgram>,
    pub rename: Option<ObjectName>,
    pub auto_increment: Option<u64>,
    /// The names of its foreign keys that are new.
    pub added_keys: Vec<String>,
    /// Columns by their old and new names.
    pub renamed: Vec<(String, String)>,
}

/// What is dropped beside constraints.
pub(super) const BEHIND_CONSTRAINTS: u8 = 1;

/// Columns that stay, and all that is no list of parts.
pub(super) const COLUMNS: u8 = 3;

/// What is about indexes, constraints and partitions finds the columns as they come to be.
pub(super) const BEHIND_COLUMNS: u8 = 5;

/// The order in which actions count: what is dropped first may be added again, columns that keep their place have it before
/// others, and foreign keys use what is added.
pub(super) fn turn(action: &AlterAction) -> u8 {
    match action {
        AlterAction::AddColumn { .. } => 4,
        moved if named::moves(moved) => 4,
        AlterAction::DropForeignKey(_) | AlterAction::DropConstraint(_) | AlterAction::DropCheck(_) => 0,
        AlterAction::DropIndex(_) | AlterAction::DropPrimaryKey => BEHIND_CONSTRAINTS,
        // A functional index that goes as well does not need it.
        AlterAction::DropColumn(_) => 2,
        AlterAction::AddIndex(_) => BEHIND_COLUMNS,
        AlterAction::AddForeignKey(_) | AlterAction::AddCheck(_) | AlterAction::EnforceCheck { .. } => 6,
        AlterAction::Partitions(_) => 7,
        _ => COLUMNS,
    }
}

impl Draft {
    pub fn new(def: &TableDef, actions: &[AlterAction]) -> Self {
        let dropped = |action: &AlterAction| match action {
            AlterAction::DropColumn(name) => Some(names::fold(&name.name).into_owned()),
            _ => None,
        };
        Self {
            dropped: actions.iter().filter_map(dropped).collect(),
            old_names: def.own_columns().iter().map(|column| column.name.clone()).collect(),
            written_null: Vec::new(),
            def: def.clone(),
            sources: (0..def.columns.len()).map(Some).collect(),
            copies: false,
            keeps_rows: false,
            verifies: false,
            left_out: None,
            rename: None,
            auto_increment: None,
            added_keys: Vec::new(),
            renamed: Vec::new(),
        }
    }

    /// Whether the rows are written again.
    pub fn copies_rows(&self) -> bool {
        self.copies && !self.keeps_rows
    }

    /// Whether indexes are built that take long, and nothing else does.
    pub fn builds_large(&self, table: &TableHandle) -> bool {
        let is_new = |index: &IndexDef| table.def.indexes.iter().all(|known| known.id != index.id);
        let nothing_else = !self.copies && !self.verifies && self.added_keys.is_empty();
        nothing_else && table.row_count() >= LARGE && self.def.indexes.iter().any(is_new)
    }

    /// Whether values are computed that are kept, or converted: then MySQL copies the rows as well, and evaluates all columns.
    pub fn computes_anew(&self, old: &TableDef) -> bool {
        let column = |(column, source): (&ColumnDef, &Option<usize>)| match source {
            _ if column.is_virtual() => false,
            None => column.is_computed(),
            Some(at) => !keeps_values(&old.columns[*at].ty, &column.ty),
        };
        self.def.columns.iter().zip(&self.sources).any(column)
    }

    /// Whether the statement drops a column.
    pub fn drops(&self, name: &str) -> bool {
        self.dropped.contains(&*names::fold(name))
    }

    pub fn column(&self, name: &str, missing: SqlError) -> Result<usize, SqlError> {
        self.def.column(name).ok_or(missing)
    }

    /// Where a column is that had this name before the statement.
    pub fn known(&self, name: &str) -> Result<usize, SqlError> {
        let old = self.old_names.iter().position(|own| names::eq(own, name));
        let at = old.and_then(|old| self.sources.iter().position(|source| *source == Some(old)));
        at.ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name, &self.def.name]))
    }

    /// Where a column is that has this name now.
    fn placed(&self, name: &str) -> Result<usize, SqlError> {
        let at = self.def.own_columns().iter().position(|column| names::eq(&column.name, name));
        at.ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name, &self.def.name]))
    }

    /// 1060 for two columns of one name, once all of them have theirs.
    pub fn check_column_names(&self) -> Result<(), SqlError> {
        let own = self.def.own_columns();
        let is_taken = |(at, column): &(usize, &ColumnDef)| {
            own[..*at].iter().any(|other| names::eq(&other.name, &column.name))
        };
        match own.iter().enumerate().find(is_taken) {
            None => Ok(()),
            Some((_, column)) => Err(ErrorCode::DUP_FIELDNAME.with(&[&column.name])),
        }
    }

    pub fn position(&self, position: &ColumnPosition, last: usize) -> Result<usize, SqlError> {
        Ok(match position {
            ColumnPosition::Last => last,
            ColumnPosition::First => 0,
            ColumnPosition::After(name) => self.placed(&name.name)? + 1,
        })
    }

    pub fn insert(&mut self, at: usize, column: ColumnDef, source: Option<usize>) {
        self.def.columns.insert(at, column);
        self.sources.insert(at, source);
        for part in self.def.indexes.iter_mut().flat_map(|index| &mut index.parts) {
            part.column += usize::from(part.column >= at);
        }
        let keys = self.def.foreign_keys.iter_mut().map(|key| &mut key.columns);
        let keys = keys.chain(self.def.kept_keys.iter_mut().map(|key| &mut key.columns));
        keys.flatten().for_each(|column| *column += usize::from(*column >= at));
    }

    /// A column leaves its indexes, and an index without columns goes too.
    pub fn remove(&mut self, at: usize) {
        self.def.columns.remove(at);
        self.sources.remove(at);
        for index in &mut self.def.indexes {
            index.parts.retain(|part| part.column != at);
            for part in &mut index.parts {
                part.column -= usize::from(part.column > at);
            }
        }
        self.def.indexes.retain(|index| !index.parts.is_empty());
        for key in &mut self.def.kept_keys {
            key.columns.retain(|column| *column != at);
            key.columns.iter_mut().for_each(|column| *column -= usize::from(*column > at));
        }
        self.def.kept_keys.retain(|key| !key.columns.is_empty());
        // None of them is on the column.
        for column in self.def.foreign_keys.iter_mut().flat_map(|key| &mut key.columns) {
            *column -= usize::from(*column > at);
        }
    }

    pub fn rename_column(&mut self, at: usize, to: &str) {
        let from = std::mem::replace(&mut self.def.columns[at].name, to.to_owned());
        if from != to {
            self.renamed.push((from, to.to_owned()));
        }
    }

    /// Foreign keys of the table to itself follow its columns' names; those of others when the table is replaced.
    pub fn rename_own_parents(&mut self) {
        let (database, table) = (&self.def.database, &self.def.name);
        let own = self.def.foreign_keys.iter_mut().filter(|key| key.references(database, table));
        for column in own.flat_map(|key| &mut key.parent_columns) {
            if let Some((_, to)) = self.renamed.iter().find(|(from, _)| names::eq(from, column)) {
                to.clone_into(column);
            }
        }
    }

    pub fn drop_foreign_key(&mut self, name: &str, missing: ErrorCode) -> Result<(), SqlError> {
        let at = self.def.foreign_keys.iter().position(|key| names::eq(&key.name, name));
        self.def.foreign_keys.remove(at.ok_or_else(|| missing.with(&[&name]))?);
        Ok(())
    }

    /// Moves a column; indexes keep their columns.
    pub fn shift(&mut self, at: usize, position: &ColumnPosition) -> Result<(), SqlError> {
        let before = self.position(position, self.def.own_columns().len())?;
        // Without the column itself.
        let to = before - usize::from(before > at);
        let column = self.def.columns.remove(at);
        self.def.columns.insert(to, column);
        let source = self.sources.remove(at);
        self.sources.insert(to, source);
        let parts = self.def.indexes.iter_mut().flat_map(|index| &mut index.parts);
        let searched = self.def.kept_keys.iter_mut().flat_map(|key| &mut key.columns);
        let foreign = self.def.foreign_keys.iter_mut().flat_map(|key| &mut key.columns);
        for own in parts.map(|part| &mut part.column).chain(searched).chain(foreign) {
            if *own == at {
                *own = to;
            } else {
                *own -= usize::from(*own > at);
                *own += usize::from(*own >= to);
            }
        }
        Ok(())
    }

    /// Error 3939 if the name is that of constraints of several kinds.
    pub fn check_is_one_constraint(&self, name: &str, clause: &str) -> Result<(), SqlError> {
        let is_meant = |other: &str| names::eq(other, name);
        let unique = self.def.indexes.iter().filter(|index| index.kind.is_unique() && is_meant(&index.name));
        let foreign = self.def.foreign_keys.iter().filter(|key| names::eq(&key.name, name));
        let checks = self.def.checks.iter().filter(|check| is_meant(&check.name));
        match unique.count() + foreign.count() + checks.count() {
            0 | 1 => Ok(()),
            _ => Err(ErrorCode::MULTIPLE_CONSTRAINTS_WITH_SAME_NAME.with(&[&name, &clause])),
        }
    }

    /// Of indexes, only unique ones are constraints.
    pub fn drop_unique(&mut self, name: &str, missing: ErrorCode) -> Result<(), SqlError> {
        let is_meant = |index: &IndexDef| index.kind.is_unique() && names::eq(&index.name, name);
        let at = self.def.indexes.iter().position(is_meant);
        self.def.indexes.remove(at.ok_or_else(|| missing.with(&[&name]))?);
        self.drop_hidden();
        Ok(())
    }

    /// Hidden columns go with their indexes.
    pub fn drop_hidden(&mut self) {
        while let Some(at) = functional::unused(&self.def) {
            self.copies = true;
            self.remove(at);
        }
    }

    pub fn drop_index(&mut self, name: &str) -> Result<(), SqlError> {
        if let Some(at) = self.def.kept_keys.iter().position(|key| names::eq(&key.name, name)) {
            self.def.kept_keys.remove(at);
            return Ok(());
        }
        let at = self.def.indexes.iter().position(|index| names::eq(&index.name, name));
        let at = at.ok_or_else(|| ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[&name]))?;
        self.def.indexes.remove(at);
        self.drop_hidden();
        Ok(())
    }

    pub fn show_index(&mut self, name: &str, visible: bool) -> Result<(), SqlError> {
        let at = self.def.indexes.iter().position(|index| names::eq(&index.name, name));
        let at = at.ok_or_else(|| ErrorCode::KEY_DOES_NOT_EXIST.with(&[&name, &self.def.name]))?;
        self.def.indexes[at].invisible = !visible;
        Ok(())
    }

    /// Gives indexes their new names, all at once: two may swap them.
    pub fn rename_indexes(&mut self, renamed: &[(&str, &str)]) -> Result<(), SqlError> {
        let new_name = |name: &str| renamed.iter().find(|(from, _)| names::eq(from, name)).map(|(_, to)| *to);
        let of_keys = self.def.kept_keys.iter_mut().map(|key| &mut key.name);
        for name in self.def.indexes.iter_mut().map(|index| &mut index.name).chain(of_keys) {
            if let Some(to) = new_name(name) {
                check_name(to, indexes::WRONG_INDEX_NAME)?;
                if to.eq_ignore_ascii_case("PRIMARY") {
                    return Err(indexes::WRONG_INDEX_NAME.with(&[&to]));
                }
                to.clone_into(name);
            }
        }
        for (_, to) in renamed {
            let of_keys = self.def.kept_keys.iter().map(|key| &key.name);
            let all = self.def.indexes.iter().map(|index| &index.name).chain(of_keys);
            if all.filter(|name| names::eq(name, to)).count() > 1 {
                return Err(ErrorCode::DUP_KEYNAME.with(&[to]));
            }
        }
        functional::rename(&mut self.def, &new_name);
        Ok(())
    }

    pub fn options(&mut self, options: &TableOptions, utf8mb4: Collation) -> Result<(), SqlError> {
        check_options(options)?;
        self.auto_increment = options.auto_increment.or(self.auto_increment);
        if let Some(to) = collation_of(options.charset.as_deref(), options.collation.as_deref(), utf8mb4)? {
            self.copies = true;
            self.def.default_collation = to;
        }
        if !options.stated.is_empty() {
            self.copies = true;
            options.state(&mut self.def.stated);
        }
        if let Some(comment) = &options.comment {
            self.copies = true;
            self.def.comment.clone_from(comment);
        }
        Ok(())
    }
}
