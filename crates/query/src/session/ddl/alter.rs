//! ALTER TABLE: changes of columns copy the rows to a table of the new definition, which then takes the old one's place
//! in one change of the catalog. Whatever fails before that leaves the table as it was.

use std::sync::Arc;
use std::time::Duration;

use avocet_engine::{Alteration, Engine, EngineError, ScanRequest, TableHandle};
use avocet_types::arrow_map::datum_at;
use avocet_types::schema::{ColumnDef, IndexKind, TableDef};
use avocet_types::{Datum, SqlType, Value};

use super::{check_name, columns, indexes};
use crate::bind::unsupported;
use crate::error::{ErrorCode, SqlError};
use crate::parse::ast::{Expr, ObjectName};
use crate::parse::statement::{AlterAction, ColumnPosition, ColumnSpec, TableOptions};
use crate::session::bulk::Bulk;
use crate::session::database::blocking;
use crate::session::run::{Done, Outcome, Text};
use crate::session::settings::collation_of;
use crate::session::state::Session;
use crate::session::store::Storing;

/// Tables under such names are copies that were not finished.
const COPY_PREFIX: &str = "#sql-alter-";

/// Whether users see the table: not a copy that is being made.
pub(crate) fn is_listed(table: &TableHandle) -> bool {
    !table.def.name.starts_with(COPY_PREFIX)
}

/// Drops the copies that a crash left behind.
pub(crate) fn drop_unfinished(engine: &Engine) -> Result<(), EngineError> {
    let catalog = engine.catalog();
    for table in catalog.tables().filter(|table| !is_listed(table)) {
        engine.drop_table(&table.def.database, &table.def.name, Duration::ZERO)?;
    }
    Ok(())
}

/// A definition on its way to the new one.
struct Draft {
    def: TableDef,
    /// By column: where it was in the old table; `None` for a new one.
    sources: Vec<Option<usize>>,
    /// Some values change their type.
    converts: bool,
    /// Anything changed that needs a copy.
    copies: bool,
    rename: Option<ObjectName>,
    auto_increment: Option<u64>,
}

impl Session {
    pub(super) async fn alter_table(
        &mut self,
        name: &ObjectName,
        actions: &[AlterAction],
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        let (database, table) = self.full_name(name)?;
        let catalog = self.catalog();
        let Some(handle) = catalog.table(&database, &table) else {
            return Err(ErrorCode::NO_SUCH_TABLE.with(&[&database, &table]));
        };
        let draft = self.draft(handle, actions, text)?;
        let mut rows = 0;
        if draft.copies {
            rows = self.rebuild(&database, &table, actions, text).await?;
        } else {
            self.alter_indexes(&database, &table, actions)?;
        }
        if let (Some(next), Some(table)) = (draft.auto_increment, self.catalog().table(&database, &table)) {
            table.note_auto_increment(next.saturating_sub(1));
        }
        if let Some(to) = &draft.rename {
            let (to_database, to_name) = self.full_name(to)?;
            self.rename_one((&database, &table), (&to_database, &to_name))?;
        }
        // Columns that MySQL adds and drops in place count no rows.
        let affected_rows = if draft.converts { rows } else { 0 };
        let info = format!("Records: {affected_rows}  Duplicates: 0  Warnings: 0");
        Ok(Outcome::Done(Done { affected_rows, info, ..Done::default() }))
    }

    pub(super) fn rename_tables(&mut self, pairs: &[(ObjectName, ObjectName)]) -> Result<Outcome, SqlError> {
        let mut done: Vec<((String, String), (String, String))> = Vec::new();
        for (from, to) in pairs {
            let names = (self.full_name(from)?, self.full_name(to)?);
            let ((from_database, from), (to_database, to)) = &names;
            if let Err(error) = self.rename_one((from_database, from), (to_database, to)) {
                // All or none.
                for ((from_database, from), (to_database, to)) in done.iter().rev() {
                    self.rename_one((to_database, to), (from_database, from))?;
                }
                return Err(error);
            }
            done.push(names);
        }
        Ok(Outcome::ok())
    }

    fn rename_one(&mut self, from: (&str, &str), to: (&str, &str)) -> Result<(), SqlError> {
        check_name(to.1, ErrorCode::WRONG_TABLE_NAME)?;
        if from == to {
            return Ok(());
        }
        let timeout = self.ddl_timeout();
        Ok(blocking(|| self.shared.engine.rename_table(from, to, timeout))?)
    }

    /// Changes that need no copy: of indexes.
    fn alter_indexes(
        &mut self,
        database: &str,
        table: &str,
        actions: &[AlterAction],
    ) -> Result<(), SqlError> {
        for action in actions {
            match action {
                AlterAction::AddIndex(index) => self.add_index(database, table, index)?,
                AlterAction::DropIndex(index) => self.remove_index(database, table, &index.name)?,
                AlterAction::DropPrimaryKey => self.remove_index(database, table, "PRIMARY")?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The definition that the actions lead to.
    fn draft(
        &mut self,
        table: &TableHandle,
        actions: &[AlterAction],
        text: &Text<'_>,
    ) -> Result<Draft, SqlError> {
        let mut draft = Draft {
            def: (*table.def).clone(),
            sources: (0..table.def.columns.len()).map(Some).collect(),
            converts: false,
            copies: false,
            rename: None,
            auto_increment: None,
        };
        // What is dropped first may be added again.
        let is_drop = |action: &&AlterAction| {
            matches!(
                action,
                AlterAction::DropColumn(_) | AlterAction::DropIndex(_) | AlterAction::DropPrimaryKey
            )
        };
        let (drops, others): (Vec<_>, Vec<_>) = actions.iter().partition(is_drop);
        let (indexes, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|action| matches!(action, AlterAction::AddIndex(_)));
        for action in drops.into_iter().chain(others).chain(indexes) {
            self.apply_action(&mut draft, action, text)?;
        }
        if draft.def.columns.is_empty() {
            return Err(ErrorCode::CANT_REMOVE_ALL_FIELDS.with(&[]));
        }
        columns::check(&draft.def)?;
        indexes::check_auto(&draft.def)?;
        Ok(draft)
    }

    fn apply_action(
        &mut self,
        draft: &mut Draft,
        action: &AlterAction,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        match action {
            AlterAction::Nothing => {}
            AlterAction::AddColumn { column, position } => {
                draft.copies = true;
                let at = draft.position(position, draft.def.columns.len())?;
                let def = self.column_def(column, draft.def.default_collation, text)?;
                if draft.def.column(&def.name).is_some() {
                    return Err(ErrorCode::DUP_FIELDNAME.with(&[&def.name]));
                }
                draft.insert(at, def, None);
                indexes::of_attributes(&mut draft.def, column)?;
            }
            AlterAction::DropColumn(name) => {
                draft.copies = true;
                let at = draft.column(&name.name, ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[&name.name]))?;
                draft.remove(at);
            }
            AlterAction::ModifyColumn { column, position } => {
                self.change_column(draft, &column.name.name, column, position, text)?;
            }
            AlterAction::ChangeColumn { old, column, position } => {
                self.change_column(draft, &old.name, column, position, text)?;
            }
            AlterAction::RenameColumn { from, to } => {
                draft.copies = true;
                let at = draft.known(&from.name)?;
                check_name(&to.name, ErrorCode::WRONG_COLUMN_NAME)?;
                if draft.def.column(&to.name).is_some_and(|other| other != at) {
                    return Err(ErrorCode::DUP_FIELDNAME.with(&[&to.name]));
                }
                draft.def.columns[at].name.clone_from(&to.name);
            }
            AlterAction::SetDefault { column, default } => {
                draft.copies = true;
                let at = draft.known(&column.name)?;
                self.set_default(&mut draft.def.columns[at], default.as_ref(), text)?;
            }
            AlterAction::AddIndex(index) => {
                let nullable: Vec<bool> = draft.def.columns.iter().map(|c| c.nullable).collect();
                indexes::add(&mut draft.def, index)?;
                // A primary key makes its columns NOT NULL.
                draft.copies |=
                    draft.def.columns.iter().zip(nullable).any(|(c, before)| c.nullable != before);
            }
            AlterAction::DropIndex(index) => draft.drop_index(&index.name)?,
            AlterAction::DropPrimaryKey => draft.drop_index("PRIMARY")?,
            AlterAction::RenameIndex { from, to } => {
                draft.copies = true;
                draft.rename_index(&from.name, &to.name)?;
            }
            AlterAction::RenameTable(to) => draft.rename = Some(to.clone()),
            AlterAction::ConvertCharset { charset, collation } => {
                draft.convert_charset(charset, collation.as_deref())?;
            }
            AlterAction::Options(options) => draft.options(options)?,
            AlterAction::AddForeignKey(_) => return Err(unsupported("FOREIGN KEY")),
            AlterAction::AddCheck(_) => return Err(unsupported("CHECK")),
            AlterAction::DropForeignKey(name) | AlterAction::DropConstraint(name) => {
                return Err(ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[&name.name]));
            }
        }
        Ok(())
    }

    fn change_column(
        &mut self,
        draft: &mut Draft,
        old: &str,
        spec: &ColumnSpec,
        position: &ColumnPosition,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        draft.copies = true;
        let at = draft.known(old)?;
        let mut def = self.column_def(spec, draft.def.default_collation, text)?;
        if draft.def.column(&def.name).is_some_and(|other| other != at) {
            return Err(ErrorCode::DUP_FIELDNAME.with(&[&def.name]));
        }
        let in_primary = draft
            .def
            .indexes
            .iter()
            .any(|i| i.kind == IndexKind::Primary && i.parts.iter().any(|p| p.column == at));
        def.nullable &= !in_primary;
        let before = &draft.def.columns[at];
        draft.converts |= before.ty != def.ty || before.nullable != def.nullable;
        draft.def.columns[at] = def;
        if *position != ColumnPosition::Last {
            draft.shift(at, position)?;
        }
        indexes::of_attributes(&mut draft.def, spec)
    }

    fn set_default(
        &mut self,
        column: &mut ColumnDef,
        default: Option<&Expr>,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        column.default = match default {
            None => None,
            Some(default) => self.column_default(column, default, text)?,
        };
        Ok(())
    }

    /// Copies the rows to a table of the new definition, and puts that in the old one's place. Returns how many rows.
    async fn rebuild(
        &mut self,
        database: &str,
        name: &str,
        actions: &[AlterAction],
        text: &Text<'_>,
    ) -> Result<u64, SqlError> {
        let engine = self.shared.engine.clone();
        let timeout = self.ddl_timeout();
        let alteration = blocking(|| engine.alter(database, name, timeout))?;
        // Again, as nobody can change it now.
        let draft = self.draft(alteration.table(), actions, text)?;
        let mut def = draft.def.clone();
        def.name = format!("{COPY_PREFIX}{}", alteration.table().def.id.0);
        let copy_name = def.name.clone();
        let copy = blocking(|| engine.create_table(def))?;
        let mark = self.begin_statement()?;
        let copied = self.copy_rows(&alteration, &draft, &copy);
        let result = match self.end_statement(mark, copied).await {
            Ok(rows) => {
                blocking(|| alteration.replace_by(&engine, &copy)).map(|()| rows).map_err(SqlError::from)
            }
            Err(error) => Err(error),
        };
        if result.is_err() {
            blocking(|| engine.drop_table(database, &copy_name, timeout))?;
        }
        result
    }

    fn copy_rows(
        &mut self,
        alteration: &Alteration,
        draft: &Draft,
        copy: &Arc<TableHandle>,
    ) -> Result<u64, SqlError> {
        let old = alteration.table();
        self.set_storing(true);
        self.hold(copy)?;
        copy.note_auto_increment(old.next_auto_increment().saturating_sub(1));
        let storing = self.storing(false);
        let request = ScanRequest { columns: (0..old.def.columns.len()).collect(), ..ScanRequest::default() };
        let scan = self.txn().newest_reader().scan(old, request);
        let mut bulk = Bulk::new(copy);
        let (mut number, mut failure) = (0, None);
        for morsel in 0..scan.morsels() {
            self.info.interrupt.check()?;
            let _ = scan.read(morsel, &mut |batch| {
                for row in 0..batch.num_rows() {
                    number += 1;
                    let old_value = |at: usize| {
                        let ty = &old.def.columns[at].ty;
                        (datum_at(batch.column(at).as_ref(), row, ty).into_owned(), *ty)
                    };
                    let made = self.copied_row(draft, copy, &old_value, &storing, number);
                    if let Err(error) = made.and_then(|row| bulk.push(self.txn(), &row)) {
                        failure = Some(error);
                        return std::ops::ControlFlow::Break(());
                    }
                }
                std::ops::ControlFlow::Continue(())
            })?;
            if let Some(error) = failure {
                return Err(error);
            }
        }
        bulk.finish(self.txn())
    }

    fn copied_row(
        &mut self,
        draft: &Draft,
        copy: &TableHandle,
        old_value: &dyn Fn(usize) -> (Value, SqlType),
        storing: &Storing,
        number: u64,
    ) -> Result<Vec<Value>, SqlError> {
        let mut row = Vec::with_capacity(draft.def.columns.len());
        for (column, source) in draft.def.columns.iter().zip(&draft.sources) {
            row.push(match source {
                Some(at) => {
                    let (value, ty) = old_value(*at);
                    if value.is_null() && !column.nullable {
                        return Err(ErrorCode::INVALID_USE_OF_NULL.with(&[]));
                    }
                    // A string that is too long counts as data that is cut.
                    let stored = self.store(value, &ty, column, storing, number);
                    stored.map_err(|error| match error.errno {
                        1406 => ErrorCode::WARN_DATA_TRUNCATED.with(&[&column.name, &number]),
                        _ => error,
                    })?
                }
                None if column.auto_increment => match column.ty.is_unsigned() {
                    true => Datum::UInt(copy.reserve_auto_increment(1)),
                    false => Datum::Int(copy.reserve_auto_increment(1) as i64),
                },
                None => self.value_for_old_rows(column, storing)?,
            });
        }
        Ok(row)
    }

    /// What rows that are there already get in a new column.
    fn value_for_old_rows(&mut self, column: &ColumnDef, storing: &Storing) -> Result<Value, SqlError> {
        let lenient = Storing {
            convert: avocet_types::convert::ConvertContext { strict: false, ..storing.convert },
            ..*storing
        };
        let warnings = self.conditions.len();
        let value = self.default_value(column, &lenient);
        self.conditions.truncate(warnings);
        value
    }
}

impl Draft {
    fn column(&self, name: &str, missing: SqlError) -> Result<usize, SqlError> {
        self.def.column(name).ok_or(missing)
    }

    fn known(&self, name: &str) -> Result<usize, SqlError> {
        self.column(name, ErrorCode::BAD_FIELD_ERROR.with(&[&name, &self.def.name]))
    }

    fn position(&self, position: &ColumnPosition, last: usize) -> Result<usize, SqlError> {
        Ok(match position {
            ColumnPosition::Last => last,
            ColumnPosition::First => 0,
            ColumnPosition::After(name) => self.known(&name.name)? + 1,
        })
    }

    fn insert(&mut self, at: usize, column: ColumnDef, source: Option<usize>) {
        self.def.columns.insert(at, column);
        self.sources.insert(at, source);
        for part in self.def.indexes.iter_mut().flat_map(|index| &mut index.parts) {
            part.column += usize::from(part.column >= at);
        }
    }

    /// A column leaves its indexes, and an index without columns goes too.
    fn remove(&mut self, at: usize) {
        self.def.columns.remove(at);
        self.sources.remove(at);
        for index in &mut self.def.indexes {
            index.parts.retain(|part| part.column != at);
            for part in &mut index.parts {
                part.column -= usize::from(part.column > at);
            }
        }
        self.def.indexes.retain(|index| !index.parts.is_empty());
    }

    /// Moves a column; indexes keep their columns.
    fn shift(&mut self, at: usize, position: &ColumnPosition) -> Result<(), SqlError> {
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
        let column = self.def.columns.remove(at);
        let source = self.sources.remove(at);
        let to = self.position(position, self.def.columns.len())?;
        self.def.columns.insert(to, column);
        self.sources.insert(to, source);
        for (index, names) in self.def.indexes.iter_mut().zip(names) {
            for (part, name) in index.parts.iter_mut().zip(names) {
                part.column = self.def.columns.iter().position(|c| c.name == name).unwrap_or(part.column);
            }
        }
        Ok(())
    }

    fn drop_index(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self.def.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[&name]))?;
        self.def.indexes.remove(at);
        Ok(())
    }

    fn rename_index(&mut self, from: &str, to: &str) -> Result<(), SqlError> {
        let missing = || ErrorCode::KEY_DOES_NOT_EXIST.with(&[&from, &self.def.name]);
        let at = self.def.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(from));
        let at = at.ok_or_else(missing)?;
        let taken = |(other, index): (usize, &avocet_types::schema::IndexDef)| {
            other != at && index.name.eq_ignore_ascii_case(to)
        };
        if self.def.indexes.iter().enumerate().any(taken) {
            return Err(ErrorCode::DUP_KEYNAME.with(&[&to]));
        }
        check_name(to, indexes::WRONG_INDEX_NAME)?;
        self.def.indexes[at].name = to.into();
        Ok(())
    }

    /// CONVERT TO: all columns of characters, and the table's default.
    fn convert_charset(&mut self, charset: &str, collation: Option<&str>) -> Result<(), SqlError> {
        let Some(to) = collation_of(Some(charset), collation)? else { return Ok(()) };
        self.copies = true;
        self.converts = true;
        self.def.default_collation = to;
        for column in &mut self.def.columns {
            column.ty = match column.ty {
                SqlType::Char { len, .. } => SqlType::Char { len, collation: to },
                SqlType::VarChar { len, .. } => SqlType::VarChar { len, collation: to },
                SqlType::Text { size, .. } => SqlType::Text { size, collation: to },
                ty => ty,
            };
        }
        Ok(())
    }

    fn options(&mut self, options: &TableOptions) -> Result<(), SqlError> {
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
