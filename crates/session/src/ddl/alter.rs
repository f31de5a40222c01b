//! ALTER TABLE: changes of columns copy the rows to a table of the new definition, which then takes the old one's place;
//! indexes, foreign keys and names change in place. Either is one change of the catalog, and whatever fails before that leaves
//! the table as it was.

mod charset;
mod counter;
mod draft;
mod instant;
mod named;
mod numbered;
mod recast;
mod told;

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_channel::blocking::blocking;
use avocet_engine::{AlterRest, Alteration, IndexesAhead, NewForeignKeys, ScanRequest, TableHandle, Txn};
use avocet_point::{implicit_default, rules_of};
use avocet_sql::kept;
use avocet_sql::kept::allowed::check_for_old_rows;
use avocet_sql::parse::ast::ObjectName;
use avocet_sql::parse::statement::{AlterAction, ColumnPosition, ColumnSpec, DefaultSpec};
use avocet_types::arrow_map::datum_at;
use avocet_types::convert::ConvertContext;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::schema::{ColumnDef, DefaultValue, ForeignKeyDef, IndexDef};
use avocet_types::temporal::ZeroDates;
use avocet_types::{Datum, RowRules, SqlType, Value};
pub(crate) use draft::Draft;
use draft::{BEHIND_COLUMNS, BEHIND_CONSTRAINTS, COLUMNS, turn};
use numbered::{KeyOrder, Numbers};
use recast::{Recast, is_cut};

use super::{check_name, checks, finished, functional, generated, how, indexes, kept_keys, partitions};
use crate::bulk::Bulk;
use crate::run::{Done, Outcome, Text};
use crate::state::{Level, Session};
use crate::store::{Storing, generates};

/// Rows on their way to a copy.
struct Copying<'c> {
    draft: &'c Draft,
    numbers: Numbers<'c>,
    rules: Option<&'c RowRules>,
    storing: Storing,
    bulk: Bulk,
    /// By column: what its values become before they are stored.
    recasts: Vec<Option<Recast>>,
    /// Of the row at hand, from 1 on.
    number: u64,
    left_out: u64,
}

/// How many rows a copy has, and how many it is to be without.
pub(crate) struct CopiedRows {
    pub rows: u64,
    pub left_out: u64,
}

impl Session {
    pub(super) async fn alter_table(
        &mut self,
        name: &ObjectName,
        actions: &[AlterAction],
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        let (database, table) = self.full_name(name)?;
        if self.temporary.has(&database, &table) {
            return self.alter_temporary((database, table), actions, text);
        }
        self.refuse_view(&database, &table)?;
        let catalog = self.stored_catalog();
        let Some(handle) = catalog.table(&database, &table) else {
            return Err(ErrorCode::NO_SUCH_TABLE.with(&[&database, &table]));
        };
        // What is wrong with the statement is said before it waits for anybody.
        let before = self.conditions.len();
        let draft = self.checked_draft(handle, actions, false, text)?;
        let rename = self.new_name(&draft, (&database, &table))?;
        let engine = self.shared.engine.clone();
        let parents = self.parents_named(&database, actions);
        let wait = self.ddl_wait();
        let hold = |wait| blocking(|| engine.alter(&database, &table, &parents, rename.as_ref(), wait));
        let mut alteration = hold(wait)?;
        // Again, as nobody can change it now.
        self.conditions.truncate(before);
        let mut draft = self.draft(alteration.table(), actions, text)?;
        let mut ahead = None;
        if self.locked.is_none() && !how::keeps_others_out(actions) && draft.builds_large(alteration.table())
        {
            ahead = blocking(|| alteration.build_ahead(&engine, &draft.def))?;
            alteration = hold(self.ddl_wait())?;
            self.conditions.truncate(before);
            draft = self.draft(alteration.table(), actions, text)?;
        }
        let auto_increment = blocking(|| self.next_number_of(alteration.table(), draft.auto_increment))?;
        let rest = AlterRest { auto_increment, rename, left_out: 0 };
        self.warn_of_kept_keys(&draft.def, Some(&alteration.table().clone().def));
        let counted = self.counts_rows(&draft, &alteration.table().def, actions);
        let rows = blocking(|| match draft.copies {
            true => self.change_columns(alteration, draft, rest, actions),
            false => self.change_in_place(alteration, draft, rest, ahead),
        })?;
        let affected_rows = if counted { rows } else { 0 };
        let warnings = self.condition_count();
        let info = match told::tells_nothing(actions) {
            true => String::new(),
            false => format!("Records: {affected_rows}  Duplicates: 0  Warnings: {warnings}"),
        };
        Ok(Outcome::Done(Done { affected_rows, info, ..Done::default() }))
    }

    /// The definition that the actions lead to, if they may.
    pub(crate) fn checked_draft(
        &mut self,
        table: &TableHandle,
        actions: &[AlterAction],
        copies: bool,
        text: &Text<'_>,
    ) -> Result<Draft, SqlError> {
        let draft = self.draft(table, actions, text)?;
        self.check_altered_zero_defaults(&draft.def, actions)?;
        how::check_actions(actions, copies || draft.copies_rows() || draft.verifies)?;
        self.check_primary_key(&draft.def)?;
        Ok(draft)
    }

    /// The name that the actions give the table, if it is another one.
    pub(crate) fn new_name(
        &self,
        draft: &Draft,
        from: (&str, &str),
    ) -> Result<Option<(String, String)>, SqlError> {
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
            if from.0 != to.0 && self.stored_catalog().view(&from.0, &from.1).is_some() {
                return Err(ErrorCode::FORBID_SCHEMA_CHANGE.with(&[&from.0, &to.0]));
            }
            names.push((from, to));
        }
        // As MySQL looks for them: the new name first.
        if let [(from, to)] = &*names
            && let catalog = self.stored_catalog()
            && catalog.relation(&from.0, &from.1).is_none()
            && catalog.relation(&to.0, &to.1).is_some()
        {
            return Err(ErrorCode::TABLE_EXISTS_ERROR.with(&[&to.1]));
        }
        let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
        blocking(|| self.shared.engine.rename_tables(&names, checks, wait))?;
        Ok(Outcome::ok())
    }

    /// Changes that need no copy: of indexes, checks, foreign keys and names. Returns how many rows were looked at.
    fn change_in_place(
        &mut self,
        alteration: Alteration,
        draft: Draft,
        rest: AlterRest,
        ahead: Option<IndexesAhead<'_>>,
    ) -> Result<u64, SqlError> {
        let foreign = self.new_foreign_keys(&draft);
        let rows = alteration.table().row_count();
        if draft.verifies {
            alteration.check(&self.shared.engine, &draft.def, &foreign, &rest)?;
            self.verify_checks(alteration.table(), &draft.def)?;
        }
        alteration.change_in_place(&self.shared.engine, &draft.def, foreign, rest, ahead)?;
        Ok(rows)
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
        let refers = |key: &ForeignKeyDef| key.parent_columns.iter().any(|of| names::eq(of, name));
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
        let is_gone = |index: &&IndexDef| !def.indexes.iter().any(|i| names::eq(&i.name, &index.name));
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
                let renamed = draft.renamed.iter().find(|(from, _)| names::eq(from, name));
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
        let mut draft = Draft::new(&table.def, actions);
        let mut ordered: Vec<&AlterAction> = actions.iter().collect();
        ordered.sort_by_key(|action| turn(action));
        let before = |rest: &[&AlterAction], what| rest.partition_point(|action| turn(action) < what);
        let (constraints, rest) = ordered.split_at(before(&ordered, BEHIND_CONSTRAINTS));
        let (drops, rest) = rest.split_at(before(rest, COLUMNS));
        let (of_columns, others) = rest.split_at(before(rest, BEHIND_COLUMNS));
        for action in constraints {
            self.apply_action(&mut draft, action, text)?;
        }
        named::check(&table.def, actions)?;
        for action in drops {
            self.apply_action(&mut draft, action, text)?;
        }
        check_may_rename(&mut draft, actions)?;
        for (from, to) in actions.iter().filter_map(named::changed_column).filter(|(from, to)| from != to) {
            let at = draft.known(from)?;
            draft.rename_column(at, to);
        }
        for action in of_columns {
            self.apply_action(&mut draft, action, text)?;
        }
        draft.check_column_names()?;
        indexes::fit_prefixes(&mut draft.def);
        draft.rename_own_parents();
        draft.rename_indexes(&named::renamed_indexes(actions))?;
        for spec in actions.iter().filter_map(named::definition) {
            indexes::of_attributes(&mut draft.def, spec)?;
        }
        for action in others {
            self.apply_action(&mut draft, action, text)?;
        }
        indexes::check_written_null(&draft.def, &draft.written_null)?;
        self.check_still_indexed(table, &draft)?;
        indexes::drop_superfluous(&mut draft.def);
        if !actions.iter().all(keeps_created) {
            draft.def.created_us = Some(self.now_us());
        }
        draft.drop_hidden();
        functional::retype(&mut draft.def)?;
        if draft.def.own_columns().is_empty() {
            return Err(ErrorCode::CANT_REMOVE_ALL_FIELDS.with(&[]));
        }
        draft.keeps_rows = !how::asks_for_copy(actions) && instant::keeps_rows(&draft, &table.def);
        finished::check(&draft.def)?;
        self.check_comments(&mut draft.def)?;
        self.warn_of_duplicate_indexes(&draft.def);
        kept_keys::check_systems(&draft.def, &table.def)?;
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
            AlterAction::Unneeded(what) => self.warn_of_unneeded(&draft.def, *what),
            AlterAction::How(_) => {}
            AlterAction::AddColumn { column, position } => {
                draft.copies = true;
                let at = draft.position(position, draft.def.own_columns().len())?;
                let def = self.column_def(column, draft.def.default_collation, text)?;
                draft.written_null.extend((column.nullable == Some(true)).then(|| def.name.clone()));
                if let Some(DefaultSpec::Expr(expr)) = &column.default {
                    check_for_old_rows(expr)?;
                }
                draft.insert(at, def, None);
                finished::check_number_of_columns(&draft.def)?;
            }
            AlterAction::DropColumn(name) => {
                draft.copies = true;
                let at = draft.column(&name.name, ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[&name.name]))?;
                self.check_no_key_needs(draft, at)?;
                checks::let_go_of_column(&mut draft.def, at, true)?;
                partitions::check_is_unused(&draft.def, at)?;
                kept::check_is_unused(&draft.def, at, &|other| draft.drops(other))?;
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
                draft.rename_column(at, &to.name);
            }
            AlterAction::SetDefault { column, default } => {
                draft.copies = true;
                let at = draft.known(&column.name)?;
                self.set_default(&mut draft.def.columns[at], default.as_ref(), text)?;
            }
            AlterAction::SetVisible { column, visible } => {
                draft.copies = true;
                let at = draft.known(&column.name)?;
                draft.def.columns[at].invisible = !visible;
            }
            AlterAction::SetIndexVisible { index, visible } => draft.show_index(&index.name, *visible)?,
            AlterAction::AddIndex(index) if kept_keys::is_kept(&draft.def, index) => {
                kept_keys::add(&mut draft.def, index)?;
            }
            AlterAction::AddIndex(index) => {
                let nullable: Vec<bool> = draft.def.columns.iter().map(|c| c.nullable).collect();
                indexes::add(&mut draft.def, index, &|expr| self.kept_text(expr, text))?;
                // Hidden columns come with it.
                draft.copies |= draft.sources.len() < draft.def.columns.len();
                draft.sources.resize(draft.def.columns.len(), None);
                // A primary key makes its columns NOT NULL.
                draft.copies |=
                    draft.def.columns.iter().zip(nullable).any(|(c, before)| c.nullable != before);
            }
            AlterAction::DropIndex(index) => draft.drop_index(&index.name)?,
            AlterAction::DropPrimaryKey => draft.drop_index("PRIMARY")?,
            // All of them at once, before.
            AlterAction::RenameIndex { .. } => draft.copies = true,
            AlterAction::RenameTable(to) => draft.rename = Some(to.clone()),
            AlterAction::ConvertCharset { charset, collation } => {
                self.convert_charset(draft, charset, collation.as_deref())?;
            }
            AlterAction::Options(options) => draft.options(options, self.settings.utf8mb4_collation)?,
            AlterAction::Partitions(change) => self.change_partitions(draft, change, text)?,
            AlterAction::AddForeignKey(spec) => {
                let name = self.draft_foreign_key(&mut draft.def, spec)?;
                draft.added_keys.push(name);
            }
            AlterAction::AddCheck(spec) => {
                checks::check_columns(&draft.def, spec)?;
                self.add_check(&mut draft.def, spec, text)?;
                draft.verifies |= spec.enforced;
            }
            AlterAction::DropCheck(name) => {
                let at = checks::position_of(&draft.def, &name.name);
                let missing = || ErrorCode::CHECK_CONSTRAINT_NOT_FOUND.with(&[&name.name]);
                draft.def.checks.remove(at.ok_or_else(missing)?);
            }
            AlterAction::EnforceCheck { name, enforced, is_check } => {
                if !is_check {
                    draft.check_is_one_constraint(&name.name, "ALTER")?;
                }
                let at = checks::position_of(&draft.def, &name.name);
                let missing = || match is_check {
                    true => ErrorCode::CHECK_CONSTRAINT_NOT_FOUND.with(&[&name.name]),
                    false => ErrorCode::CONSTRAINT_NOT_FOUND.with(&[&name.name]),
                };
                let check = &mut draft.def.checks[at.ok_or_else(missing)?];
                draft.verifies |= *enforced && !check.enforced;
                check.enforced = *enforced;
            }
            AlterAction::DropForeignKey(name) => {
                draft.drop_foreign_key(&name.name, ErrorCode::CANT_DROP_FIELD_OR_KEY)?;
            }
            AlterAction::DropConstraint(name) => {
                let missing = ErrorCode::CONSTRAINT_NOT_FOUND;
                draft.check_is_one_constraint(&name.name, "DROP")?;
                if let Some(at) = checks::position_of(&draft.def, &name.name) {
                    draft.def.checks.remove(at);
                } else if draft.drop_foreign_key(&name.name, missing).is_err() {
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
        let in_primary =
            draft.def.primary_key().is_some_and(|key| key.parts.iter().any(|part| part.column == at));
        draft.written_null.extend((spec.nullable == Some(true)).then(|| def.name.clone()));
        def.nullable &= !in_primary;
        generated::check_change(&draft.def.columns[at], &def)?;
        draft.rename_column(at, &def.name);
        draft.def.columns[at] = def;
        match position {
            ColumnPosition::Last => Ok(()),
            position => draft.shift(at, position),
        }
    }

    fn set_default(
        &mut self,
        column: &mut ColumnDef,
        default: Option<&DefaultSpec>,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        column.default = match default {
            None => (column.nullable && column.generated.is_none()).then_some(DefaultValue::Dropped),
            Some(_) if column.generated.is_some() => {
                return Err(ErrorCode::WRONG_USAGE.with(&[&"DEFAULT", &"generated column"]));
            }
            // As MySQL has it: in ALTER … SET DEFAULT expressions, too, are refused for them.
            Some(_) if matches!(column.ty, SqlType::Text { .. } | SqlType::Blob { .. } | SqlType::Json) => {
                return Err(ErrorCode::BLOB_CANT_HAVE_DEFAULT.with(&[&column.name]));
            }
            Some(default) => self.column_default(column, default, text)?,
        };
        Ok(())
    }

    /// Changes that columns or what is known of them take part in: the rows stay where they are, if they can, or are copied.
    fn change_columns(
        &mut self,
        alteration: Alteration,
        draft: Draft,
        rest: AlterRest,
        actions: &[AlterAction],
    ) -> Result<u64, SqlError> {
        let engine = self.shared.engine.clone();
        if draft.keeps_rows && alteration.has_newest_rows_alone(&engine) {
            let sources = self.values_of_old_rows(alteration.table(), &draft)?;
            let foreign = self.new_foreign_keys(&draft);
            if alteration.reshape(&engine, &draft.def, &sources, &foreign, &rest)? {
                return Ok(alteration.table().row_count());
            }
        }
        // A snapshot that needs older versions, or too many columns that are gone, makes a copy of what would need none.
        how::check_actions(actions, true)?;
        self.rebuild(alteration, draft, rest)
    }

    /// By column of a new definition: where it was, or what the rows have in it that there are.
    fn values_of_old_rows(
        &mut self,
        table: &TableHandle,
        draft: &Draft,
    ) -> Result<Vec<Result<usize, Value>>, SqlError> {
        self.set_storing(true);
        let storing = self.storing(false);
        let has_rows = table.row_count() > 0;
        let column = |(column, source): (&ColumnDef, &Option<usize>)| match source {
            Some(at) => Ok(Ok(*at)),
            // Of no row; and what cannot be had is an error for rows alone.
            None if !has_rows => Ok(Err(Datum::Null)),
            None => {
                let value = self.value_for_old_rows(column, &storing)?;
                self.check_zero_of_old_rows(&value, column, &storing, 1)?;
                Ok(Err(value))
            }
        };
        draft.def.columns.iter().zip(&draft.sources).map(column).collect()
    }

    /// Copies the rows to a table of the new definition, and puts that in the old one's place. Returns how many rows.
    ///
    /// The copy is made in a transaction of its own, whatever the session's does: nothing here is awaited, so a session that
    /// ends finds the old table or the new one.
    fn rebuild(&mut self, alteration: Alteration, draft: Draft, rest: AlterRest) -> Result<u64, SqlError> {
        let engine = self.shared.engine.clone();
        let foreign = self.new_foreign_keys(&draft);
        alteration.check(&engine, &draft.def, &foreign, &rest)?;
        let mut rest = rest;
        let copy = engine.create_unfinished(draft.def.clone())?;
        let mut left_out = 0;
        let rows = copy.fill(self.ddl_options(), self.stop.clone(), |txn| {
            let copied = self.copy_rows(txn, alteration.table(), &draft, copy.table())?;
            left_out = copied.left_out;
            Ok::<_, SqlError>(copied.rows)
        })?;
        rest.left_out = left_out;
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

    pub(crate) fn copy_rows(
        &mut self,
        txn: &mut Txn,
        old: &Arc<TableHandle>,
        draft: &Draft,
        copy: &Arc<TableHandle>,
    ) -> Result<CopiedRows, SqlError> {
        self.set_storing(true);
        // A new column counts from one, whatever the one that is gone had come to.
        let counted =
            |(column, source): (&ColumnDef, &Option<usize>)| column.auto_increment && source.is_some();
        if draft.auto_increment.is_none() && draft.def.columns.iter().zip(&draft.sources).any(counted) {
            copy.note_auto_increment(old.next_auto_increment().saturating_sub(1));
        }
        let reader = txn.newest_reader();
        let is_logged = self.logs_definitions() && !old.def.id.is_temporary();
        let numbers_rows = numbered::numbers_rows(draft, &old.def);
        let ordered = if numbers_rows { KeyOrder::of(old, &reader) } else { None };
        if numbers_rows {
            copy.note_auto_increment(draft.auto_increment.unwrap_or(1).saturating_sub(1));
            if is_logged {
                numbered::tell_steps();
            }
        }
        let mut copying = Copying {
            draft,
            numbers: Numbers::of(copy, old, is_logged),
            rules: rules_of(copy)?,
            storing: Storing { fits_virtual: !draft.computes_anew(&old.def), ..self.storing(false) },
            bulk: Bulk::new(copy),
            recasts: self.recasts(draft, &old.def.columns)?,
            number: 0,
            left_out: 0,
        };
        let columns = &old.def.columns;
        if let Some(mut ordered) = ordered {
            loop {
                self.info.interrupt.check()?;
                let rows = ordered.next(txn)?;
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    let value = |at: usize| (row[at].clone(), &columns[at]);
                    self.copy_row(txn, &mut copying, &value, columns.len())?;
                }
            }
        } else {
            let request = ScanRequest { columns: (0..columns.len()).collect(), ..ScanRequest::default() };
            let scan = reader.scan(old, request);
            let mut outcome = Ok(());
            for morsel in 0..scan.morsels() {
                self.info.interrupt.check()?;
                let _ = scan.read(morsel, &mut |batch| {
                    outcome = (0..batch.num_rows()).try_for_each(|row| {
                        let value = |at: usize| {
                            let column = &columns[at];
                            (datum_at(batch.column(at).as_ref(), row, &column.ty).into_owned(), column)
                        };
                        self.copy_row(txn, &mut copying, &value, columns.len())
                    });
                    match outcome {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    }
                })?;
                if outcome.is_err() {
                    break;
                }
            }
            outcome?;
        }
        let Copying { bulk, left_out, .. } = copying;
        let rows = bulk.finish(txn).map_err(|error| of_resequenced(error, copy))?;
        Ok(CopiedRows { rows, left_out })
    }

    /// Copies a row, unless it is to be left out.
    fn copy_row<'a>(
        &mut self,
        txn: &mut Txn,
        copying: &mut Copying<'_>,
        old_value: &dyn Fn(usize) -> (Value, &'a ColumnDef),
        columns: usize,
    ) -> Result<(), SqlError> {
        copying.number += 1;
        if let Some(condition) = &copying.draft.left_out {
            let old_row: Vec<Value> = (0..columns).map(|at| old_value(at).0).collect();
            if !matches!(condition.eval(&&old_row[..], &[], &self.context)?, Datum::Int(0) | Datum::Null) {
                copying.left_out += 1;
                return Ok(());
            }
        }
        let copy = copying.numbers.copy();
        let made = self.copied_row(copying, old_value);
        made.and_then(|row| copying.bulk.push(txn, &row)).map_err(|error| of_resequenced(error, copy))
    }

    /// What a row has that had NULL in a column that takes none now; an error in strict mode.
    fn instead_of_null(
        &mut self,
        column: &ColumnDef,
        was: &SqlType,
        storing: &Storing,
        number: u64,
    ) -> Result<Value, SqlError> {
        let truncated = || ErrorCode::WARN_DATA_TRUNCATED.with(&[&column.name, &number]);
        let keeps_type = match (was, &column.ty) {
            (SqlType::VarChar { collation: was, .. }, SqlType::VarChar { collation, .. }) => was == collation,
            (was, ty) => was == ty,
        };
        match implicit_default(&column.ty).filter(|_| !storing.convert.strict) {
            Some(value) => {
                let SqlError { errno, message, .. } = truncated();
                self.warn(Level::Warning, errno, message);
                Ok(value)
            }
            None if keeps_type || !storing.convert.strict => Err(ErrorCode::INVALID_USE_OF_NULL.with(&[])),
            None => Err(truncated()),
        }
    }

    fn copied_row<'a>(
        &mut self,
        copying: &Copying<'_>,
        old_value: &dyn Fn(usize) -> (Value, &'a ColumnDef),
    ) -> Result<Vec<Value>, SqlError> {
        let &Copying { draft, ref numbers, rules, ref storing, ref recasts, number, .. } = copying;
        // An expression may take long for each row.
        self.info.interrupt.check()?;
        let mut row = Vec::with_capacity(draft.def.columns.len());
        // Zero dates that are there stay, whatever the mode says now.
        let zero_dates = ZeroDates::ALLOWED;
        let unchanged = Storing { convert: ConvertContext { zero_dates, ..storing.convert }, ..*storing };
        for ((column, source), recast) in draft.def.columns.iter().zip(&draft.sources).zip(recasts) {
            row.push(match source {
                // Computed below, as defaults of new columns are.
                _ if column.generated.is_some() => Datum::Null,
                Some(at) => {
                    let (value, ColumnDef { ty, auto_increment, .. }) = old_value(*at);
                    let is_numbered_now = column.auto_increment && !auto_increment;
                    if value.is_null() && is_numbered_now {
                        row.push(numbers.next(column)?);
                        continue;
                    }
                    if value.is_null() && !column.nullable {
                        row.push(self.instead_of_null(column, ty, storing, number)?);
                        continue;
                    }
                    let storing = if *ty == column.ty { &unchanged } else { storing };
                    let (value, of) = match recast {
                        Some(recast) => recast.run(value, &self.context)?,
                        None => (value, *ty),
                    };
                    let stored = self.store(value, &of, column, storing, number);
                    let stored = stored.map_err(|error| match error.errno {
                        1406 if is_cut(ty, &column.ty) => {
                            ErrorCode::WARN_DATA_TRUNCATED.with(&[&column.name, &number])
                        }
                        _ => error,
                    })?;
                    match stored {
                        stored if is_numbered_now && generates(&stored, storing) => numbers.next(column)?,
                        given if is_numbered_now => {
                            numbers.note(&given);
                            given
                        }
                        stored => stored,
                    }
                }
                None if column.auto_increment => numbers.next(column)?,
                None => {
                    let value = self.value_for_old_rows(column, storing)?;
                    self.check_zero_of_old_rows(&value, column, storing, number)?;
                    value
                }
            });
        }
        if let Some(rules) = rules {
            let is_given: Vec<bool> = draft.sources.iter().map(Option::is_some).collect();
            self.compute_missing(rules, &draft.def.columns, &mut row, &is_given, storing, number)?;
            for (at, program) in rules.generated() {
                let column = &draft.def.columns[*at];
                if column.is_hidden() && draft.sources[*at].is_none() {
                    let strict = Storing { fits_virtual: false, ..*storing };
                    row[*at] = self.computed_value(program, column, &row, &strict, number)?;
                }
            }
            rules.check(&&row[..], &self.context)?;
        }
        Ok(row)
    }

    /// What rows that are there already get in a new column.
    fn value_for_old_rows(&mut self, column: &ColumnDef, storing: &Storing) -> Result<Value, SqlError> {
        let lenient = Storing { convert: ConvertContext { strict: false, ..storing.convert }, ..*storing };
        let warnings = self.conditions.len();
        let value = self.default_value(column, &lenient, true);
        self.conditions.truncate(warnings);
        value
    }
}

/// Says of a duplicate entry that it may come from a column's new numbers, if the first key is that column's.
fn of_resequenced(error: SqlError, copy: &TableHandle) -> SqlError {
    let first = copy.def.indexes.first().and_then(|key| key.parts.first());
    if error.errno != ErrorCode::DUP_ENTRY.errno
        || first.is_none_or(|part| !copy.def.columns[part.column].auto_increment)
    {
        return error;
    }
    let why = "ALTER TABLE causes auto_increment resequencing, resulting in duplicate entry";
    SqlError { message: error.message.replacen("Duplicate entry", why, 1), ..error }
}

/// Whether the table's CREATE_TIME stays what it was.
fn keeps_created(action: &AlterAction) -> bool {
    matches!(action, AlterAction::RenameTable(_) | AlterAction::Unneeded(_) | AlterAction::How(_))
}

/// What defaults and checks name a column by stays. Asked while all columns have their old names.
fn check_may_rename(draft: &mut Draft, actions: &[AlterAction]) -> Result<(), SqlError> {
    for (from, to) in actions.iter().filter_map(named::changed_column) {
        if names::eq(from, to) {
            continue;
        }
        let at = draft.known(from)?;
        checks::let_go_of_column(&mut draft.def, at, false)?;
        partitions::check_is_unnamed(&draft.def, at)?;
        kept::check_is_unused(&draft.def, at, &|_| false)?;
    }
    Ok(())
}
