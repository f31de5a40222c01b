//! LOCK TABLES, UNLOCK TABLES, FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP.
//!
//! The engine keeps others away (`engine/src/table_locks.rs`); here stands what the session itself may do meanwhile: it uses
//! the tables that it has locked, by the names by which it has locked them, and changes those that it has locked WRITE.
//! Statements take the general path meanwhile, which asks [`Session::check_table_locks`].

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use avocet_channel::blocking::blocking;
use avocet_engine::{Catalog, EngineError, Entered, TableHandle, TableLockMode};
use avocet_sql::bind::{invalid_view, names_in, parse_view};
use avocet_sql::facts::{StatementClass, StatementFacts, TableUse};
use avocet_sql::parse::ast::{Ident, ObjectName, TableRef};
use avocet_sql::parse::statement::{AlterAction, StatementKind};
use avocet_types::error::{ErrorCode, SqlError};

use crate::info_schema;
use crate::locked::{Locked, LockedName};
use crate::run::Outcome;
use crate::state::Session;

impl Session {
    /// LOCK TABLES. The transaction before it is committed already.
    pub(crate) fn lock_tables(
        &mut self,
        tables: &[(ObjectName, Option<Ident>, bool)],
    ) -> Result<Outcome, SqlError> {
        self.locked = None;
        if tables.iter().any(|(_, _, write)| *write) {
            self.check_transaction_writes()?;
        }
        let mut names: Vec<LockedName> = Vec::new();
        for (name, alias, write) in tables {
            let database = match &name.database {
                Some(database) => database.name.clone(),
                None => self.current_database()?.to_owned(),
            };
            // Nobody else uses it: there is nothing to be locked.
            if self.temporary.has(&database, &name.name.name) {
                continue;
            }
            let called = alias.as_ref().unwrap_or(&name.name).name.clone();
            let is_same = |other: &LockedName| other.database == database && other.called == called;
            if names.iter().any(is_same) {
                return Err(ErrorCode::NONUNIQ_TABLE.with(&[&called]));
            }
            let mode = if *write { TableLockMode::Write } else { TableLockMode::Read };
            let (table, is_view) = (name.name.name.clone(), false);
            names.push(LockedName { database, table, called, is_view, mode });
        }
        self.lock(names)
    }

    /// FLUSH TABLES … WITH READ LOCK.
    pub(crate) fn flush_with_read_lock(&mut self, tables: &[ObjectName]) -> Result<Outcome, SqlError> {
        if self.locked.is_some() {
            return Err(ErrorCode::LOCK_OR_ACTIVE_TRANSACTION.with(&[]));
        }
        if !tables.is_empty() {
            let tables: Vec<_> = tables.iter().map(|name| (name.clone(), None, false)).collect();
            return self.lock_tables(&tables);
        }
        let (engine, wait) = (self.shared.engine.clone(), self.ddl_wait());
        let begin = Instant::now();
        let locks = blocking(|| engine.lock_all_tables(&wait))?;
        // A dump asks for the log's place now, and replicas go on from there: all that it reads has to be before that.
        let left = wait.timeout.saturating_sub(begin.elapsed());
        if !self.catch_up(left) {
            self.info.interrupt.check()?;
            if begin.elapsed() >= wait.timeout {
                return Err(ErrorCode::LOCK_WAIT_TIMEOUT.with(&[]));
            }
        }
        self.locked = Some(Locked { names: None, locks: Arc::new(locks) });
        Ok(Outcome::ok())
    }

    fn lock(&mut self, mut names: Vec<LockedName>) -> Result<Outcome, SqlError> {
        let (engine, wait) = (self.shared.engine.clone(), self.ddl_wait());
        let invalid = Cell::new(None);
        let wanted = |catalog: &Catalog| {
            let mut found = Vec::new();
            for name in names.iter().filter(|name| !info_schema::is_virtual(&name.database)) {
                let missing = || EngineError::NoSuchTable(name.database.clone(), name.table.clone());
                let relation = catalog.relation(&name.database, &name.table).ok_or_else(missing)?;
                let parts = with_parts(catalog, relation, name.mode).map_err(|error| {
                    invalid.set(Some(error));
                    missing()
                });
                found.append(&mut parts?);
            }
            Ok(found)
        };
        let locks = blocking(|| engine.lock_tables(&wait, wanted));
        let locks = locks.map_err(|error| invalid.take().unwrap_or_else(|| error.into()))?;
        // What foreign keys and views brought along can be used by its name.
        for (table, mode) in locks.tables() {
            let (database, name, is_view) = (&table.def.database, &table.def.name, table.def.view.is_some());
            let mut known = false;
            for at in names.iter_mut().filter(|at| at.database == *database && at.table == *name) {
                (at.is_view, known) = (is_view, true);
            }
            if !known {
                let (database, table, called) = (database.clone(), name.clone(), name.clone());
                // What may be changed through a view, its tables say.
                let mode = if is_view { TableLockMode::Write } else { *mode };
                names.push(LockedName { database, table, called, is_view, mode });
            }
        }
        self.locked = Some(Locked { names: Some(names), locks: Arc::new(locks) });
        Ok(Outcome::ok())
    }

    /// LOCK INSTANCE FOR BACKUP: till UNLOCK INSTANCE, or the session's end.
    pub(crate) fn lock_instance(&mut self) -> Result<Outcome, SqlError> {
        if self.backup.is_none() {
            let (engine, wait) = (self.shared.engine.clone(), self.ddl_wait());
            self.backup = Some(blocking(|| engine.lock_for_backup(&wait))?);
        }
        Ok(Outcome::ok())
    }

    pub(crate) fn unlock_instance(&mut self) -> Outcome {
        self.backup = None;
        Outcome::ok()
    }

    /// Waits for whoever has all tables locked, and for others' backups.
    pub(crate) fn enter_definitions(&self) -> Result<Entered, SqlError> {
        let wait = self.ddl_wait();
        Ok(blocking(|| self.shared.engine.enter_definitions(&wait, self.backup.as_ref()))?)
    }

    /// UNLOCK TABLES commits what was done under LOCK TABLES. A transaction under FLUSH TABLES WITH READ LOCK goes on.
    pub(crate) async fn unlock_tables(&mut self) -> Result<Outcome, SqlError> {
        match &self.locked {
            Some(locked) if locked.names.is_some() => self.commit().await?,
            Some(_) => self.txn.iter_mut().for_each(|txn| txn.set_table_locks(None)),
            None => {}
        }
        self.locked = None;
        Ok(Outcome::ok())
    }

    /// Whether a statement keeps to what the session has locked.
    pub(crate) fn check_table_locks(&self, kind: &StatementKind) -> Result<(), SqlError> {
        let Some(locked) = &self.locked else { return Ok(()) };
        let facts = StatementFacts::of_kind(kind);
        if facts.class == StatementClass::Definition && self.is_of_temporary(kind, &facts) {
            return Ok(());
        }
        let Some(names) = &locked.names else {
            let stored = |table: &TableUse| !self.needs_no_lock(table);
            let changes = facts.class == StatementClass::Definition
                || facts.class == StatementClass::Account
                || facts.writes.iter().any(stored);
            return match changes {
                true => Err(ErrorCode::CANT_UPDATE_WITH_READLOCK.with(&[])),
                false => Ok(()),
            };
        };
        match kind {
            StatementKind::CreateDatabase { .. }
            | StatementKind::AlterDatabase { .. }
            | StatementKind::DropDatabase { .. }
            | StatementKind::DropProgram { .. }
            | StatementKind::CreateView(_)
            | StatementKind::DropView { .. } => {
                return Err(ErrorCode::LOCK_OR_ACTIVE_TRANSACTION.with(&[]));
            }
            // A table of accounts would have to be locked.
            _ if facts.class == StatementClass::Account => {
                return Err(ErrorCode::TABLE_NOT_LOCKED.with(&[&"user"]));
            }
            // They answer of each table by itself.
            StatementKind::Analyze(_)
            | StatementKind::Check { .. }
            | StatementKind::Optimize(_)
            | StatementKind::Repair(_) => return Ok(()),
            _ if facts.class == StatementClass::Information
                && !matches!(kind, StatementKind::Explain { .. }) =>
            {
                return Ok(());
            }
            _ => {}
        }
        let is_new = |table: &TableUse| match kind {
            StatementKind::RenameTable(pairs) => !pairs.iter().any(|(from, _)| from.name.name == table.table),
            StatementKind::CreateTable(create) => create.temporary && create.name.name.name == table.table,
            StatementKind::CreateTableLike { name, temporary, .. } => {
                *temporary && name.name.name == table.table
            }
            _ => false,
        };
        // What is dropped is named as it is, whatever it is called by.
        let drops = matches!(kind, StatementKind::DropTable { .. });
        let mode_of = |table: &TableUse| {
            let of = |name: &&LockedName| self.is_of(name, table) || drops && self.is_table_of(name, table);
            names.iter().filter(of).map(|name| name.mode).max()
        };
        for table in facts.reads.iter().filter(|table| !self.needs_no_lock(table)) {
            mode_of(table).ok_or_else(|| ErrorCode::TABLE_NOT_LOCKED.with(&[&table.called()]))?;
        }
        for table in facts.writes.iter().filter(|table| !self.needs_no_lock(table) && !is_new(table)) {
            match mode_of(table) {
                None => return Err(ErrorCode::TABLE_NOT_LOCKED.with(&[&table.called()])),
                // Which table an unqualified column of several is of, binding tells; the engine refuses the change then.
                Some(TableLockMode::Read) if !changes_one_of_several(kind) => {
                    return Err(ErrorCode::TABLE_NOT_LOCKED_FOR_WRITE.with(&[&table.called()]));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Whether a table may be looked at.
    pub(crate) fn check_is_locked(&self, database: &str, table: &str) -> Result<(), SqlError> {
        let Some(names) = self.locked.as_ref().and_then(|locked| locked.names.as_ref()) else {
            return Ok(());
        };
        if self.temporary.has(database, table) {
            return Ok(());
        }
        match names.iter().any(|at| at.database == database && at.table == table) {
            true => Ok(()),
            false => Err(ErrorCode::TABLE_NOT_LOCKED.with(&[&table])),
        }
    }

    /// The server's own tables, and the session's.
    fn needs_no_lock(&self, table: &TableUse) -> bool {
        let database = table.database.as_deref().or(self.database.as_deref());
        database.is_some_and(info_schema::is_virtual) || self.is_temporary(table)
    }

    /// Whether a statement changes definitions of temporary tables alone.
    pub(crate) fn is_of_temporary(&self, kind: &StatementKind, facts: &StatementFacts) -> bool {
        use StatementKind as S;
        match kind {
            S::CreateTable(create) => create.temporary && create.query.is_none(),
            S::DropTable { temporary: true, .. } => true,
            S::DropTable { .. }
            | S::AlterTable { .. }
            | S::TruncateTable(_)
            | S::CreateIndex { .. }
            | S::DropIndex { .. } => {
                !facts.writes.is_empty() && facts.writes.iter().all(|table| self.is_temporary(table))
            }
            _ => false,
        }
    }

    fn is_of(&self, name: &LockedName, table: &TableUse) -> bool {
        self.is_table_of(name, table) && (name.is_view || table.called() == name.called)
    }

    fn is_table_of(&self, name: &LockedName, table: &TableUse) -> bool {
        table.database.as_deref().or(self.database.as_deref()) == Some(&*name.database)
            && table.table == name.table
    }

    /// A definition has changed under the session's locks: a table has another name, or none.
    pub(crate) fn follow_definitions(&mut self, kind: &StatementKind) {
        let current = self.database.clone();
        let Some(names) = self.locked.as_mut().and_then(|locked| locked.names.as_mut()) else { return };
        let database_of =
            |name: &ObjectName| name.database.as_ref().map(|d| d.name.clone()).or_else(|| current.clone());
        let is_of = |at: &LockedName, name: &ObjectName| {
            Some(&at.database) == database_of(name).as_ref() && at.table == name.name.name
        };
        let mut rename = |from: &ObjectName, to: &ObjectName| {
            for at in names.iter_mut().filter(|at| is_of(at, from)) {
                if at.called == at.table {
                    at.called.clone_from(&to.name.name);
                }
                at.database = database_of(to).unwrap_or_default();
                at.table.clone_from(&to.name.name);
            }
        };
        match kind {
            StatementKind::RenameTable(pairs) => pairs.iter().for_each(|(from, to)| rename(from, to)),
            StatementKind::AlterTable { name, actions } => {
                for action in actions {
                    if let AlterAction::RenameTable(to) = action {
                        rename(name, to);
                    }
                }
            }
            StatementKind::DropTable { names: dropped, .. } => {
                names.retain(|at| !dropped.iter().any(|name| is_of(at, name)));
            }
            _ => {}
        }
        // With the last of them the locks end, as in MySQL.
        if names.is_empty() {
            self.locked = None;
        }
    }
}

/// A table, or a view with all that it is made of. A view has no rows of its own: it is locked against who would define it anew.
fn with_parts(
    catalog: &Catalog,
    relation: &Arc<TableHandle>,
    mode: TableLockMode,
) -> Result<Vec<(Arc<TableHandle>, TableLockMode)>, SqlError> {
    let mut found = vec![(relation.clone(), mode)];
    let mut at = 0;
    while let Some((table, _)) = found.get(at).cloned() {
        at += 1;
        let Some(view) = &table.def.view else { continue };
        found[at - 1].1 = TableLockMode::Read;
        for (database, name) in names_in(&parse_view(&table.def, view)?) {
            if info_schema::is_virtual(&database) {
                continue;
            }
            let part = catalog.relation(&database, &name).ok_or_else(|| invalid_view(&relation.def))?;
            if !found.iter().any(|(known, _)| known.id() == part.id()) {
                found.push((part.clone(), mode));
            }
        }
    }
    Ok(found)
}

/// An UPDATE of several tables.
fn changes_one_of_several(kind: &StatementKind) -> bool {
    match kind {
        StatementKind::Update(update) => {
            !matches!(&*update.tables, [TableRef::Table { .. }])
                && update.assignments.iter().any(|assignment| assignment.table.is_none())
        }
        _ => false,
    }
}
