//! ALTER TABLE: changes of columns copy the rows to a table of the new definition, which then takes the old one's place
//! in one change of the catalog. Whatever fails before that leaves the table as it was.

mod draft;

use std::sync::Arc;
use std::time::Duration;

use avocet_engine::{Alteration, Engine, EngineError, NewForeignKeys, ScanRequest, TableHandle};
use avocet_types::arrow_map::datum_at;
use avocet_types::schema::{ColumnDef, ForeignKeyDef, IndexDef, IndexKind};
use avocet_types::{Datum, SqlType, Value};

use super::{check_name, columns, indexes};
use crate::bind::unsupported;
use crate::error::{ErrorCode, SqlError};
use crate::parse::ast::{Expr, ObjectName};
use crate::parse::statement::{AlterAction, ColumnPosition, ColumnSpec};
use crate::session::bulk::Bulk;
use crate::session::run::{Done, Outcome, Text};
use crate::session::state::Session;
use crate::session::store::Storing;
use crate::turns::blocking;
use draft::{Draft, is_step_by_step, turn};

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
        let (checks, timeout) = (self.settings.foreign_key_checks, self.ddl_timeout());
        Ok(blocking(|| self.shared.engine.rename_table(from, to, checks, timeout))?)
    }

    /// Changes that need no copy: of indexes and foreign keys.
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
                AlterAction::AddForeignKey(spec) => self.add_one_foreign_key(database, table, spec)?,
                AlterAction::DropForeignKey(name) => self.remove_foreign_key(database, table, &name.name)?,
                AlterAction::DropConstraint(name) => {
                    let catalog = self.catalog();
                    let handle = catalog.table(database, table);
                    let is_key = |h: &Arc<TableHandle>| {
                        h.def.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(&name.name))
                    };
                    match handle.is_some_and(is_key) {
                        true => self.remove_foreign_key(database, table, &name.name)?,
                        false => self.remove_index(database, table, &name.name)?,
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn remove_foreign_key(&self, database: &str, table: &str, key: &str) -> Result<(), SqlError> {
        let timeout = self.ddl_timeout();
        Ok(blocking(|| self.shared.engine.drop_foreign_key(database, table, key, timeout))?)
    }

    /// 1828 and 1829 for a column that foreign keys need.
    fn check_no_key_needs(&self, draft: &Draft, column: usize) -> Result<(), SqlError> {
        let name = &draft.def.columns[column].name;
        if let Some(key) = draft.def.foreign_keys.iter().find(|key| key.columns.contains(&column)) {
            return Err(ErrorCode::FK_COLUMN_CANNOT_DROP.with(&[name, &key.name]));
        }
        let catalog = self.catalog();
        let mut keys = catalog.foreign_keys_to(draft.def.id);
        let refers = |key: &ForeignKeyDef| key.parent_columns.iter().any(|of| of.eq_ignore_ascii_case(name));
        let stays = |key: &ForeignKeyDef| draft.def.foreign_keys.iter().any(|own| own.name == key.name);
        match keys.find(|(child, key)| refers(key) && (child.def.id != draft.def.id || stays(key))) {
            None => Ok(()),
            Some((child, key)) => {
                Err(ErrorCode::FK_COLUMN_CANNOT_DROP_CHILD.with(&[name, &key.name, &child.def.name]))
            }
        }
    }

    /// 1553 if an index goes that foreign keys need, and no other takes its place.
    fn check_still_indexed(&self, table: &TableHandle, draft: &Draft) -> Result<(), SqlError> {
        let def = &draft.def;
        let is_gone =
            |index: &&IndexDef| !def.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(&index.name));
        let Some(gone) = table.def.indexes.iter().find(is_gone) else { return Ok(()) };
        let needed = || Err(ErrorCode::DROP_INDEX_FK.with(&[&gone.name]));
        if def.foreign_keys.iter().any(|key| def.index_on(&key.columns).is_none()) {
            return needed();
        }
        let catalog = self.catalog();
        let is_dropped = |key: &ForeignKeyDef| !def.foreign_keys.iter().any(|own| own.name == key.name);
        for (child, key) in catalog.foreign_keys_to(table.def.id) {
            if child.id() == table.id() && is_dropped(key) {
                continue;
            }
            let now = |name: &String| {
                let renamed = draft.renamed.iter().find(|(from, _)| from.eq_ignore_ascii_case(name));
                def.column(renamed.map_or(name, |(_, to)| to))
            };
            let columns: Option<Vec<usize>> = key.parent_columns.iter().map(now).collect();
            if columns.is_some_and(|columns| def.unique_index_on(&columns).is_none()) {
                return needed();
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
        let mut draft = Draft::new(&table.def);
        let mut ordered: Vec<&AlterAction> = actions.iter().collect();
        ordered.sort_by_key(|action| turn(action));
        for action in ordered {
            self.apply_action(&mut draft, action, text)?;
        }
        self.check_still_indexed(table, &draft)?;
        indexes::drop_superfluous(&mut draft.def);
        draft.copies |= !is_step_by_step(table, actions);
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
                self.check_no_key_needs(draft, at)?;
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
                draft.rename_column(at, &to.name);
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
            AlterAction::AddForeignKey(spec) => {
                let name = self.draft_foreign_key(&mut draft.def, spec)?;
                draft.added_keys.push(name);
            }
            AlterAction::AddCheck(_) => return Err(unsupported("CHECK")),
            AlterAction::DropForeignKey(name) => {
                draft.drop_foreign_key(&name.name, ErrorCode::CANT_DROP_FIELD_OR_KEY)?;
            }
            AlterAction::DropConstraint(name) => {
                let missing = ErrorCode::CONSTRAINT_NOT_FOUND;
                if draft.drop_foreign_key(&name.name, missing).is_err() {
                    draft.drop_unique(&name.name, missing)?;
                }
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
        draft.rename_column(at, &def.name);
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
        let parents = self.parents_named(database, actions);
        let alteration = blocking(|| engine.alter(database, name, &parents, timeout))?;
        // Again, as nobody can change it now.
        let draft = self.draft(alteration.table(), actions, text)?;
        let mut def = draft.def.clone();
        def.name = format!("{COPY_PREFIX}{}", alteration.table().def.id.0);
        // Until the copy is the table, nobody is its parent or child.
        let foreign = NewForeignKeys {
            keys: std::mem::take(&mut def.foreign_keys),
            added: draft.added_keys.clone(),
            renamed: draft.renamed.clone(),
            checks: self.settings.foreign_key_checks,
        };
        alteration.check(&engine, &def, &foreign)?;
        let copy_name = def.name.clone();
        let copy = blocking(|| engine.create_table(def))?;
        let mark = self.begin_statement()?;
        let copied = self.copy_rows(&alteration, &draft, &copy);
        let result = match self.end_statement(mark, copied).await {
            Ok(rows) => blocking(|| alteration.replace_by(&engine, &copy, foreign))
                .map(|()| rows)
                .map_err(SqlError::from),
            Err(error) => Err(error),
        };
        if result.is_err() {
            blocking(|| engine.drop_table(database, &copy_name, timeout))?;
        }
        result
    }

    /// The tables that new foreign keys refer to.
    fn parents_named(&self, database: &str, actions: &[AlterAction]) -> Vec<(String, String)> {
        let parent = |action: &AlterAction| match action {
            AlterAction::AddForeignKey(spec) => {
                let table = &spec.references.table;
                let database = table.database.as_ref().map_or(database, |name| name.name.as_str());
                Some((database.to_owned(), table.name.name.clone()))
            }
            _ => None,
        };
        actions.iter().filter_map(parent).collect()
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
        let value = self.default_value(column, &lenient, true);
        self.conditions.truncate(warnings);
        value
    }
}
