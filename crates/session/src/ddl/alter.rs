//! ALTER TABLE: changes of columns copy the rows to a table of the new definition, which then takes the old one's place;
//! indexes, foreign keys and names change in place. Either is one change of the catalog, and whatever fails before that leaves
//! the table as it was.

mod draft;

use std::sync::Arc;

use avocet_channel::blocking::blocking;
use avocet_engine::{AlterRest, Alteration, NewForeignKeys, ScanRequest, TableHandle, Txn};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::{Expr, ObjectName};
use avocet_sql::parse::statement::{AlterAction, ColumnPosition, ColumnSpec};
use avocet_types::arrow_map::datum_at;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{ColumnDef, ForeignKeyDef, IndexDef, IndexKind};
use avocet_types::{Datum, SqlType, Value};
use draft::{Draft, turn};

use super::{check_name, columns, how, indexes};
use crate::bulk::Bulk;
use crate::run::{Done, Outcome, Text};
use crate::state::Session;
use crate::store::Storing;

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
        // What is wrong with the statement is said before it waits for anybody.
        let draft = self.draft(handle, actions, text)?;
        how::check_actions(actions, draft.copies)?;
        self.check_primary_key(&draft.def)?;
        let rename = self.new_name(&draft, (&database, &table))?;
        let engine = self.shared.engine.clone();
        let parents = self.parents_named(&database, actions);
        let wait = self.ddl_wait();
        let alteration = blocking(|| engine.alter(&database, &table, &parents, rename.as_ref(), wait))?;
        // Again, as nobody can change it now.
        let draft = self.draft(alteration.table(), actions, text)?;
        let rest = AlterRest { auto_increment: draft.auto_increment, rename };
        // Columns that MySQL adds and drops in place count no rows.
        let counted = draft.converts;
        let rows = blocking(|| match draft.copies {
            true => self.rebuild(alteration, draft, rest),
            false => self.change_in_place(alteration, draft, rest).map(|()| 0),
        })?;
        let affected_rows = if counted { rows } else { 0 };
        let info = format!("Records: {affected_rows}  Duplicates: 0  Warnings: 0");
        Ok(Outcome::Done(Done { affected_rows, info, ..Done::default() }))
    }

    /// The name that the actions give the table, if it is another one.
    fn new_name(&self, draft: &Draft, from: (&str, &str)) -> Result<Option<(String, String)>, SqlError> {
        let Some(to) = &draft.rename else { return Ok(None) };
        let to = self.full_name(to)?;
        check_name(&to.1, ErrorCode::WRONG_TABLE_NAME)?;
        Ok((from != (&to.0, &to.1)).then_some(to))
    }

    pub(super) fn rename_tables(&mut self, pairs: &[(ObjectName, ObjectName)]) -> Result<Outcome, SqlError> {
        let mut names = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            let (from, to) = (self.full_name(from)?, self.full_name(to)?);
            check_name(&to.1, ErrorCode::WRONG_TABLE_NAME)?;
            names.push((from, to));
        }
        let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
        blocking(|| self.shared.engine.rename_tables(&names, checks, wait))?;
        Ok(Outcome::ok())
    }

    /// Changes that need no copy: of indexes, foreign keys and names.
    fn change_in_place(&self, alteration: Alteration, draft: Draft, rest: AlterRest) -> Result<(), SqlError> {
        let foreign = self.new_foreign_keys(&draft);
        Ok(alteration.change_in_place(&self.shared.engine, &draft.def, foreign, rest)?)
    }

    fn new_foreign_keys(&self, draft: &Draft) -> NewForeignKeys {
        NewForeignKeys {
            keys: draft.def.foreign_keys.clone(),
            added: draft.added_keys.clone(),
            renamed: draft.renamed.clone(),
            checks: self.settings.foreign_key_checks,
        }
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
            AlterAction::Nothing | AlterAction::How(_) => {}
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
    ///
    /// The copy is made in a transaction of its own, whatever the session's does: nothing here is awaited, so a session that
    /// ends finds the old table or the new one.
    fn rebuild(&mut self, alteration: Alteration, draft: Draft, rest: AlterRest) -> Result<u64, SqlError> {
        let engine = self.shared.engine.clone();
        let foreign = self.new_foreign_keys(&draft);
        alteration.check(&engine, &draft.def, &foreign, &rest)?;
        let copy = engine.create_unfinished(draft.def.clone())?;
        let rows = copy.fill(self.ddl_options(), self.stop.clone(), |txn| {
            self.copy_rows(txn, alteration.table(), &draft, copy.table())
        })?;
        self.info.interrupt.check()?;
        alteration.replace_by(copy, rows, foreign, rest)?;
        Ok(rows)
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
        txn: &mut Txn,
        old: &Arc<TableHandle>,
        draft: &Draft,
        copy: &Arc<TableHandle>,
    ) -> Result<u64, SqlError> {
        self.set_storing(true);
        copy.note_auto_increment(old.next_auto_increment().saturating_sub(1));
        let storing = self.storing(false);
        let request = ScanRequest { columns: (0..old.def.columns.len()).collect(), ..ScanRequest::default() };
        let scan = txn.newest_reader().scan(old, request);
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
                    if let Err(error) = made.and_then(|row| bulk.push(txn, &row)) {
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
        bulk.finish(txn)
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
                        1406 if !matches!(column.ty, SqlType::Bit { .. }) => {
                            ErrorCode::WARN_DATA_TRUNCATED.with(&[&column.name, &number])
                        }
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
