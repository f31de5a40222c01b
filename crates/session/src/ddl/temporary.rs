//! Statements that make, change and drop temporary tables ([`crate::temporary`]), and what statements mean by their names.

use std::sync::Arc;

use avocet_channel::blocking::blocking;
use avocet_engine::{TableHandle, TemporaryTable};
use avocet_sql::facts::{StatementFacts, TableUse};
use avocet_sql::parse::ast::Query;
use avocet_sql::parse::statement::{AlterAction, CreateTable, StatementKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;

use super::alter::Draft;
use super::columns::{Filled, of_query as columns_of_query};
use crate::plan_cache::RecentPlans;
use crate::run::{Done, Outcome, Text};
use crate::state::Session;
use crate::temporary::TemporaryTables;

impl Session {
    /// All tables go, at the end of what the client takes for a session.
    pub(crate) fn drop_temporary_tables(&mut self) {
        if !self.temporary.is_empty() {
            self.change_temporary(TemporaryTables::clear);
        }
    }

    fn change_temporary(&mut self, change: impl FnOnce(&mut TemporaryTables)) {
        change(&mut self.temporary);
        // They hold tables that may be gone.
        self.recent_plans = RecentPlans::default();
    }

    /// Whether a statement names a temporary table.
    pub(crate) fn is_temporary(&self, table: &TableUse) -> bool {
        let database = table.database.as_deref().or(self.database.as_deref());
        database.is_some_and(|database| self.temporary.has(database, &table.table))
    }

    /// Whether all that a statement changes are rows of temporary tables.
    pub(crate) fn changes_temporary_alone(&self, kind: &StatementKind) -> bool {
        if self.temporary.is_empty() {
            return false;
        }
        let facts = StatementFacts::of_kind(kind);
        !facts.writes.is_empty() && facts.writes.iter().all(|table| self.is_temporary(table))
    }

    /// CREATE TEMPORARY TABLE.
    pub(crate) async fn create_temporary(
        &mut self,
        create: &CreateTable,
        (database, name): (String, String),
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        if self.has_temporary_already(&database, &name, create.if_not_exists)? {
            return Ok(Outcome::ok());
        }
        if !create.foreign_keys.is_empty() {
            return Err(ErrorCode::CANNOT_ADD_FOREIGN.with(&[]));
        }
        let key = (database.clone(), name.clone());
        if let Some(query) = &create.query {
            return self.create_temporary_of(create, query, key, text).await;
        }
        let def = self.table_def(create, database, name, Vec::new(), text)?;
        self.put_temporary(key, def, create.options.auto_increment)?;
        Ok(Outcome::ok())
    }

    /// CREATE TEMPORARY TABLE … LIKE, of a definition.
    pub(crate) fn create_temporary_like(
        &mut self,
        def: TableDef,
        if_not_exists: bool,
    ) -> Result<Outcome, SqlError> {
        let key = (def.database.clone(), def.name.clone());
        if !self.has_temporary_already(&key.0, &key.1, if_not_exists)? {
            self.put_temporary(key, def, None)?;
        }
        Ok(Outcome::ok())
    }

    fn put_temporary(
        &mut self,
        key: (String, String),
        def: TableDef,
        auto_increment: Option<u64>,
    ) -> Result<(), SqlError> {
        if def.kept_keys.iter().any(|key| !key.kind.is_spatial()) {
            return Err(ErrorCode::INNODB_NO_FT_TEMP_TABLE.with(&[]));
        }
        let table = self.shared.engine.create_temporary(def, auto_increment)?;
        self.change_temporary(|temporary| temporary.put(key, table));
        Ok(())
    }

    /// True if there is one of this name and that is fine; an error if it is not fine.
    fn has_temporary_already(
        &mut self,
        database: &str,
        name: &str,
        if_not_exists: bool,
    ) -> Result<bool, SqlError> {
        if !self.temporary.has(database, name) {
            return Ok(false);
        }
        let exists = ErrorCode::TABLE_EXISTS_ERROR.with(&[&name]);
        if !if_not_exists {
            return Err(exists);
        }
        self.note(&exists);
        Ok(true)
    }

    /// CREATE TEMPORARY TABLE … SELECT: the rows are of the running transaction, the table is not.
    async fn create_temporary_of(
        &mut self,
        create: &CreateTable,
        query: &Query,
        key: (String, String),
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        let mark = self.begin_statement()?;
        let result = async {
            let (bound, tables) = self.bind_and_hold(query, text)?;
            let columns = columns_of_query(&bound);
            let selected = columns.len();
            let def = self.table_def(create, key.0.clone(), key.1.clone(), columns, text)?;
            self.check_zero_defaults(&def)?;
            let mut rows = self.begin_filling(bound, tables, text).await?;
            let first = def.own_columns().len() - selected.min(def.own_columns().len());
            let made = self.shared.engine.create_temporary(def, create.options.auto_increment)?;
            let mut txn = self.txn.take().expect("the statement has begun");
            let filled = blocking(|| self.fill(&mut txn, made.table(), first, &mut rows));
            self.txn = Some(txn);
            Ok((made, filled?))
        }
        .await;
        let (made, Filled { rows, first_generated }) = self.end_statement(mark, result).await?;
        self.change_temporary(|temporary| temporary.put(key, made));
        let info = format!("Records: {rows}  Duplicates: 0  Warnings: {}", self.condition_count());
        let last_insert_id = first_generated;
        Ok(Outcome::Done(Done {
            affected_rows: rows,
            last_insert_id,
            tells_chosen: true,
            info,
            ..Done::default()
        }))
    }

    pub(crate) fn drop_temporary(&mut self, names: &[(String, String)]) {
        if !names.is_empty() {
            self.change_temporary(|temporary| names.iter().for_each(|name| temporary.remove(name)));
        }
    }

    pub(crate) fn truncate_temporary(&mut self, database: &str, name: &str) -> Result<(), SqlError> {
        let table = self.temporary.get(database, name).expect("looked up before");
        let def = (*table.def).clone();
        self.put_temporary((database.to_owned(), name.to_owned()), def, None)
    }

    /// ALTER TABLE of a temporary table: its rows are copied to one of the new definition.
    pub(crate) fn alter_temporary(
        &mut self,
        (database, name): (String, String),
        actions: &[AlterAction],
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        let old = self.temporary.get(&database, &name).expect("looked up before").clone();
        if actions.iter().any(|action| matches!(action, AlterAction::AddForeignKey(_))) {
            return Err(ErrorCode::CANNOT_ADD_FOREIGN.with(&[]));
        }
        let mut draft = self.checked_draft(&old, actions, true, text)?;
        let renamed = self.new_name(&draft, (&database, &name))?;
        let key = renamed.clone().unwrap_or_else(|| (database.clone(), name.clone()));
        if renamed.is_some() && self.temporary.has(&key.0, &key.1) {
            return Err(ErrorCode::TABLE_EXISTS_ERROR.with(&[&key.1]));
        }
        (draft.def.database, draft.def.name) = key.clone();
        let (made, rows) = blocking(|| self.rebuild_temporary(&old, &draft))?;
        self.change_temporary(|temporary| {
            temporary.remove(&(database, name));
            temporary.put(key, made);
        });
        let info = format!("Records: {rows}  Duplicates: 0  Warnings: {}", self.condition_count());
        Ok(Outcome::Done(Done { affected_rows: rows, info, ..Done::default() }))
    }

    fn rebuild_temporary(
        &mut self,
        old: &Arc<TableHandle>,
        draft: &Draft,
    ) -> Result<(TemporaryTable, u64), SqlError> {
        let engine = self.shared.engine.clone();
        let made = engine.create_temporary(draft.def.clone(), draft.auto_increment)?;
        let mut txn = engine.begin(self.ddl_options());
        txn.set_interrupt(self.stop.clone());
        txn.begin_statement();
        let rows = self.copy_rows(&mut txn, old, draft, made.table())?.rows;
        txn.commit()?.wait()?;
        Ok((made, rows))
    }

    /// 1352 for a view over temporary tables.
    pub(crate) fn refuse_view_of_temporary<'t>(
        &self,
        tables: impl IntoIterator<Item = &'t Arc<TableDef>>,
    ) -> Result<(), SqlError> {
        match tables.into_iter().find(|table| table.id.is_temporary()) {
            None => Ok(()),
            Some(table) => Err(ErrorCode::VIEW_SELECT_TMPTABLE.with(&[&table.name])),
        }
    }
}
