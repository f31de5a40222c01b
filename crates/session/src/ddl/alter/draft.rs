//! The definition of a table on its way to the new one: what single actions make of it.

use avocet_engine::TableHandle;
use avocet_sql::parse::ast::ObjectName;
use avocet_sql::parse::statement::{AlterAction, ColumnPosition, TableOptions};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::RowProgram;
use avocet_types::schema::{ColumnDef, IndexDef, TableDef};
use avocet_types::{Collation, Members, SqlType};

use super::super::columns::member_error;
use super::super::{check_name, check_options, functional, indexes};
use crate::settings::collation_of;

/// Of a table with so many rows indexes are built while others go on with it; for fewer, it is not worth to wait for them twice.
const LARGE: u64 = 20_000;

/// A definition on its way to the new one.
pub(crate) struct Draft {
    pub def: TableDef,
    /// By column: where it was in the old table; `None` for a new one.
    pub sources: Vec<Option<usize>>,
    /// Some values change their type.
    pub converts: bool,
    /// Columns changed, or what is known of them: rows are copied, unless they can stay.
    pub copies: bool,
    /// The rows can stay where they are.
    pub keeps_rows: bool,
    /// The names of the columns that go.
    dropped: Vec<String>,
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

/// The order in which actions count: what is dropped first may be added again, and foreign keys use what is added.
pub(super) fn turn(action: &AlterAction) -> u8 {
    match action {
        AlterAction::DropForeignKey(_) | AlterAction::DropConstraint(_) | AlterAction::DropCheck(_) => 0,
        AlterAction::DropIndex(_) | AlterAction::DropPrimaryKey => 1,
        // A functional index that goes as well does not need it.
        AlterAction::DropColumn(_) => 2,
        AlterAction::AddIndex(_) => 4,
        AlterAction::Partitions(_) => 6,
        AlterAction::AddForeignKey(_) | AlterAction::AddCheck(_) | AlterAction::EnforceCheck { .. } => 5,
        _ => 3,
    }
}

impl Draft {
    pub fn new(def: &TableDef, actions: &[AlterAction]) -> Self {
        let dropped = |action: &AlterAction| match action {
            AlterAction::DropColumn(name) => Some(name.name.clone()),
            _ => None,
        };
        Self {
            dropped: actions.iter().filter_map(dropped).collect(),
            def: def.clone(),
            sources: (0..def.columns.len()).map(Some).collect(),
            converts: false,
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

    /// Whether the statement drops a column.
    pub fn drops(&self, name: &str) -> bool {
        self.dropped.iter().any(|dropped| dropped.eq_ignore_ascii_case(name))
    }

    pub fn column(&self, name: &str, missing: SqlError) -> Result<usize, SqlError> {
        self.def.column(name).ok_or(missing)
    }

    pub fn known(&self, name: &str) -> Result<usize, SqlError> {
        self.column(name, ErrorCode::BAD_FIELD_ERROR.with(&[&name, &self.def.name]))
    }

    pub fn position(&self, position: &ColumnPosition, last: usize) -> Result<usize, SqlError> {
        Ok(match position {
            ColumnPosition::Last => last,
            ColumnPosition::First => 0,
            ColumnPosition::After(name) => self.known(&name.name)? + 1,
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

    /// Foreign keys of the table to itself follow; those of others when the table is replaced.
    pub fn rename_column(&mut self, at: usize, to: &str) {
        let from = std::mem::replace(&mut self.def.columns[at].name, to.to_owned());
        if from == to {
            return;
        }
        let (database, table) = (&self.def.database, &self.def.name);
        let own = self.def.foreign_keys.iter_mut().filter(|key| key.references(database, table));
        for column in own.flat_map(|key| &mut key.parent_columns).filter(|c| c.eq_ignore_ascii_case(&from)) {
            to.clone_into(column);
        }
        self.renamed.push((from, to.to_owned()));
    }

    pub fn drop_foreign_key(&mut self, name: &str, missing: ErrorCode) -> Result<(), SqlError> {
        let at = self.def.foreign_keys.iter().position(|key| key.name.eq_ignore_ascii_case(name));
        self.def.foreign_keys.remove(at.ok_or_else(|| missing.with(&[&name]))?);
        Ok(())
    }

    /// Moves a column; indexes keep their columns.
    pub fn shift(&mut self, at: usize, position: &ColumnPosition) -> Result<(), SqlError> {
        let name = self.def.columns[at].name.clone();
        if let ColumnPosition::After(after) = position
            && after.name.eq_ignore_ascii_case(&name)
        {
            return Err(ErrorCode::BAD_FIELD_ERROR.with(&[&after.name, &self.def.name]));
        }
        let names: Vec<Vec<String>> = self
            .def
            .indexes
            .iter()
            .map(|index| index.parts.iter().map(|p| self.def.columns[p.column].name.clone()).collect())
            .collect();
        let key_names: Vec<Vec<String>> = self
            .def
            .foreign_keys
            .iter()
            .map(|key| key.columns.iter().map(|&c| self.def.columns[c].name.clone()).collect())
            .collect();
        let searched: Vec<Vec<String>> = self
            .def
            .kept_keys
            .iter()
            .map(|key| key.columns.iter().map(|&c| self.def.columns[c].name.clone()).collect())
            .collect();
        let column = self.def.columns.remove(at);
        let source = self.sources.remove(at);
        let to = self.position(position, self.def.own_columns().len())?;
        self.def.columns.insert(to, column);
        self.sources.insert(to, source);
        for (index, names) in self.def.indexes.iter_mut().zip(names) {
            for (part, name) in index.parts.iter_mut().zip(names) {
                part.column = self.def.columns.iter().position(|c| c.name == name).unwrap_or(part.column);
            }
        }
        for (key, names) in self.def.kept_keys.iter_mut().zip(searched) {
            for (own, name) in key.columns.iter_mut().zip(names) {
                *own = self.def.columns.iter().position(|c| c.name == name).unwrap_or(*own);
            }
        }
        for (key, names) in self.def.foreign_keys.iter_mut().zip(key_names) {
            for (own, name) in key.columns.iter_mut().zip(names) {
                *own = self.def.columns.iter().position(|c| c.name == name).unwrap_or(*own);
            }
        }
        Ok(())
    }

    /// Error 3939 if the name is that of constraints of several kinds.
    pub fn check_is_one_constraint(&self, name: &str, clause: &str) -> Result<(), SqlError> {
        let is_meant = |other: &str| other.eq_ignore_ascii_case(name);
        let unique = self.def.indexes.iter().filter(|index| index.kind.is_unique() && is_meant(&index.name));
        let foreign = self.def.foreign_keys.iter().filter(|key| is_meant(&key.name));
        let checks = self.def.checks.iter().filter(|check| is_meant(&check.name));
        match unique.count() + foreign.count() + checks.count() {
            0 | 1 => Ok(()),
            _ => Err(ErrorCode::MULTIPLE_CONSTRAINTS_WITH_SAME_NAME.with(&[&name, &clause])),
        }
    }

    /// Of indexes, only unique ones are constraints.
    pub fn drop_unique(&mut self, name: &str, missing: ErrorCode) -> Result<(), SqlError> {
        let is_meant = |index: &IndexDef| index.kind.is_unique() && index.name.eq_ignore_ascii_case(name);
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
        if let Some(at) = self.def.kept_keys.iter().position(|key| key.name.eq_ignore_ascii_case(name)) {
            self.def.kept_keys.remove(at);
            return Ok(());
        }
        let at = self.def.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[&name]))?;
        self.def.indexes.remove(at);
        self.drop_hidden();
        Ok(())
    }

    pub fn show_index(&mut self, name: &str, visible: bool) -> Result<(), SqlError> {
        let at = self.def.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| ErrorCode::KEY_DOES_NOT_EXIST.with(&[&name, &self.def.name]))?;
        self.def.indexes[at].invisible = !visible;
        Ok(())
    }

    pub fn rename_index(&mut self, from: &str, to: &str) -> Result<(), SqlError> {
        if let Some(at) = self.def.kept_keys.iter().position(|key| key.name.eq_ignore_ascii_case(from)) {
            if indexes::is_taken(&self.def, to) && !from.eq_ignore_ascii_case(to) {
                return Err(ErrorCode::DUP_KEYNAME.with(&[&to]));
            }
            check_name(to, indexes::WRONG_INDEX_NAME)?;
            self.def.kept_keys[at].name = to.into();
            return Ok(());
        }
        let missing = || ErrorCode::KEY_DOES_NOT_EXIST.with(&[&from, &self.def.name]);
        let at = self.def.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(from));
        let at = at.ok_or_else(missing)?;
        let taken = |(other, index): (usize, &IndexDef)| other != at && index.name.eq_ignore_ascii_case(to);
        let is_fulltext = self.def.kept_keys.iter().any(|key| key.name.eq_ignore_ascii_case(to));
        if is_fulltext || self.def.indexes.iter().enumerate().any(taken) {
            return Err(ErrorCode::DUP_KEYNAME.with(&[&to]));
        }
        check_name(to, indexes::WRONG_INDEX_NAME)?;
        self.def.indexes[at].name = to.into();
        functional::rename(&mut self.def, from, to);
        Ok(())
    }

    /// CONVERT TO: all columns of characters, and the table's default.
    pub fn convert_charset(&mut self, charset: &str, collation: Option<&str>) -> Result<(), SqlError> {
        let Some(to) = collation_of(Some(charset), collation)? else { return Ok(()) };
        self.copies = true;
        self.converts = true;
        self.def.default_collation = to;
        // What hidden ones become follows from the others.
        for column in self.def.columns.iter_mut().filter(|column| !column.is_hidden()) {
            column.ty = match column.ty {
                SqlType::Enum(members) => SqlType::Enum(under_collation(members, to, &column.name, "ENUM")?),
                SqlType::Set(members) => SqlType::Set(under_collation(members, to, &column.name, "SET")?),
                SqlType::Char { len, .. } => SqlType::Char { len, collation: to },
                SqlType::VarChar { len, .. } => SqlType::VarChar { len, collation: to },
                SqlType::Text { size, .. } => SqlType::Text { size, collation: to },
                ty => ty,
            };
        }
        Ok(())
    }

    pub fn options(&mut self, options: &TableOptions) -> Result<(), SqlError> {
        check_options(options)?;
        self.auto_increment = options.auto_increment.or(self.auto_increment);
        if let Some(to) = collation_of(options.charset.as_deref(), options.collation.as_deref())? {
            self.copies = true;
            self.def.default_collation = to;
        }
        if let Some(comment) = &options.comment {
            self.copies = true;
            self.def.comment.clone_from(comment);
        }
        Ok(())
    }
}

/// The same members in another character set.
fn under_collation(members: Members, to: Collation, column: &str, kind: &str) -> Result<Members, SqlError> {
    members.with_collation(to).map_err(|error| member_error(error, column, kind))
}
