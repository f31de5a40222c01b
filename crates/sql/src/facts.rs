//! Statement facts: what a statement reads, writes and depends on, told from its text alone, once for each statement that is
//! kept.
//!
//! ```text
//!  syntax tree ─▶ StatementFacts ─┬─▶ the plan cache: what a kept plan may do
//!                                 ├─▶ a router: where the statement can run
//!                                 └─▶ merged reads: which statements may share an answer
//! ```
//!
//! Nothing is looked up: a name may be a view's, whose own text has facts of its own; a name without a database is of the default one, and a column without a table is of any table of
//! its query ([`ColumnUse`]). Facts err to the safe side: what is not known to be a pure read is none.
//!
//! Invariants:
//! 1. Every kind of statement and of expression is matched by name: a new one does not compile until its facts are said.
//! 2. [`StatementFacts::reads_only`] holds only of statements that leave tables, session and server as they are.

mod parts;
mod reader;
#[cfg(test)]
mod tests;

use crate::parse::ast::{Ident, ObjectName, Query, VariableScope};
use crate::parse::statement::{
    GetDiagnostics, InsertSource, LoadTarget, PrepareSource, PurgeLogs, SelectInto, SetItem, ShowFilter,
    Statement, StatementKind,
};

pub use parts::{Aggregate, Part};
use reader::Reader;

/// What a statement is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementFacts {
    pub class: StatementClass,
    /// Tables whose rows it reads, each once, in the order of the text.
    pub reads: Vec<TableUse>,
    /// Columns that it names. `None` for a name: all of them (`*`).
    pub columns: Vec<ColumnUse>,
    /// Tables whose rows or definitions it changes.
    pub writes: Vec<TableUse>,
    /// It locks rows: a change, or FOR UPDATE, FOR SHARE.
    pub locks_rows: bool,
    /// Given the same rows and the same session, it gives the same answer.
    pub deterministic: bool,
    /// Parts of the session that its outcome depends on.
    pub needs: SessionState,
    /// Parts of the session that it changes.
    pub changes: SessionState,
    /// It names a variable `avocet_…`, which no MySQL has.
    pub names_own_variable: bool,
    /// It calls a function that is none of MySQL's own: what that does is not in the text.
    pub calls_unknown: bool,
    /// It calls VERSION() or ICU_VERSION(), which tell of the server.
    pub asks_version: bool,
    /// It waits by itself: SLEEP().
    pub waits: bool,
    /// Which answer it gives depends on the order in which rows come, as far as that is left open: LIMIT within, GROUP_CONCAT() and
    /// functions over windows may have many, `ORDER BY` or not.
    pub picks: bool,
    /// Parameters that are operands of arithmetic with what is none, and so numbers.
    pub numeric_params: Vec<u32>,
    /// What its expressions are made of, each once.
    pub parts: Vec<Part>,
}

/// The kinds of statements that are treated alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatementClass {
    /// Nothing, or a comment.
    #[default]
    Empty,
    Query,
    /// INSERT, REPLACE, UPDATE, DELETE, LOAD DATA.
    Change,
    /// Of tables, indexes and databases: commits before and after.
    Definition,
    /// BEGIN, COMMIT, SAVEPOINT and their kin.
    Transaction,
    /// SET, USE, PREPARE: of this session alone.
    Session,
    /// SHOW, DESCRIBE, EXPLAIN, CHECKSUM.
    Information,
    /// Accounts and privileges.
    Account,
    /// KILL, FLUSH, table maintenance, global variables.
    Administration,
    /// CALL: whatever the procedure does.
    Call,
    /// What the parser knows and refuses.
    Refused,
}

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableUse {
    /// `None` for the default database.
    pub database: Option<String>,
    pub table: String,
    /// What the statement calls it, if that is another name.
    pub alias: Option<String>,
}

/// A column as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnUse {
    pub database: Option<String>,
    /// A table's name or alias.
    pub table: Option<String>,
    pub column: Option<String>,
}

/// A set of parts of a session's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionState(u32);

impl SessionState {
    pub const NOTHING: Self = Self(0);
    pub const USER_VARIABLES: Self = Self(1 << 0);
    /// Session variables beside those that every statement depends on (sql_mode, collations).
    pub const VARIABLES: Self = Self(1 << 1);
    pub const LAST_INSERT_ID: Self = Self(1 << 2);
    pub const FOUND_ROWS: Self = Self(1 << 3);
    pub const ROW_COUNT: Self = Self(1 << 4);
    /// Warnings and errors of the statement before.
    pub const CONDITIONS: Self = Self(1 << 5);
    pub const DATABASE: Self = Self(1 << 6);
    pub const TIME_ZONE: Self = Self(1 << 7);
    /// The statement's time: NOW().
    pub const CLOCK: Self = Self(1 << 8);
    pub const TEMPORARY_TABLES: Self = Self(1 << 9);
    /// GET_LOCK and its kin.
    pub const NAMED_LOCKS: Self = Self(1 << 10);
    pub const TABLE_LOCKS: Self = Self(1 << 11);
    /// Whether a transaction is open, and what it will be like.
    pub const TRANSACTION: Self = Self(1 << 12);
    /// Statements prepared by name.
    pub const PREPARED: Self = Self(1 << 13);
    /// Account, roles, connection id.
    pub const IDENTITY: Self = Self(1 << 14);
    pub const SQL_MODE: Self = Self(1 << 15);

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl std::ops::BitOr for SessionState {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl TableUse {
    fn of(name: &ObjectName, alias: Option<&Ident>) -> Self {
        Self {
            database: name.database.as_ref().map(|d| d.name.clone()),
            table: name.name.name.clone(),
            alias: alias.map(|alias| alias.name.clone()),
        }
    }

    /// The name by which the statement's columns refer to it.
    pub fn called(&self) -> &str {
        self.alias.as_ref().unwrap_or(&self.table)
    }
}

impl StatementFacts {
    pub fn of(statement: &Statement) -> Self {
        Self::of_kind(&statement.kind)
    }

    pub fn of_kind(kind: &StatementKind) -> Self {
        let mut facts = Self { deterministic: true, ..Self::default() };
        facts.statement(kind);
        facts
    }

    /// Of a query that is a statement of its own, or stands for a view.
    pub fn of_query(query: &Query) -> Self {
        let mut facts = Self { class: StatementClass::Query, deterministic: true, ..Self::default() };
        facts.changes.add(SessionState::FOUND_ROWS);
        Reader::new(&mut facts).query(query);
        facts
    }

    /// Why a session with the same settings, on a server with the same rows, may answer a query otherwise; `None` if it may not.
    pub fn why_of_session(&self) -> Option<&'static str> {
        use SessionState as S;
        let needs = |state| self.needs.intersects(state);
        Some(match () {
            () if needs(S::USER_VARIABLES) => "it reads user variables",
            () if needs(S::VARIABLES) => "it reads system variables",
            () if needs(S::LAST_INSERT_ID) => "it reads LAST_INSERT_ID()",
            () if needs(S::FOUND_ROWS | S::ROW_COUNT | S::CONDITIONS) => "it asks for the statement before",
            () if needs(S::NAMED_LOCKS) => "it asks for locks",
            () if needs(S::IDENTITY) => "it asks who is connected",
            () if self.asks_version => "it asks for the server's version",
            () if !self.deterministic => "it calls functions that do not give the same twice",
            () => return None,
        })
    }

    /// Whether it leaves tables, session and server as they are, and locks nothing.
    pub fn reads_only(&self) -> bool {
        matches!(self.class, StatementClass::Query | StatementClass::Information)
            && self.writes.is_empty()
            && !self.locks_rows
            // What every statement leaves behind.
            && SessionState(self.changes.0 & !SessionState::FOUND_ROWS.0).is_empty()
    }

    fn reads(&mut self, name: &ObjectName) {
        self.reads_as(name, None);
    }

    fn reads_as(&mut self, name: &ObjectName, alias: Option<&Ident>) {
        add(&mut self.reads, name, alias);
        self.needs_database(name);
    }

    fn writes(&mut self, name: &ObjectName) {
        self.writes_as(name, None);
    }

    fn writes_as(&mut self, name: &ObjectName, alias: Option<&Ident>) {
        add(&mut self.writes, name, alias);
        self.needs_database(name);
    }

    fn needs_database(&mut self, name: &ObjectName) {
        if name.database.is_none() {
            self.needs.add(SessionState::DATABASE);
        }
    }

    fn statement(&mut self, kind: &StatementKind) {
        use SessionState as S;
        use StatementClass as C;
        use StatementKind as K;
        self.class = class_of(kind);
        match kind {
            K::Empty | K::Comment | K::Refused(_) | K::Unsupported(_) => {}
            K::RefusedPartitions { table, .. } => self.change(table),
            K::Query(query) => *self = Self::of_query(query),
            K::SelectInto { query, into } => {
                self.changes.add(S::FOUND_ROWS);
                Reader::new(self).query(query);
                match &**into {
                    SelectInto::Variables(_) => self.changes.add(S::USER_VARIABLES),
                    // A file of the server: not a read.
                    SelectInto::Outfile { .. } | SelectInto::Dumpfile(_) => self.class = C::Administration,
                }
            }
            K::Insert(insert) => {
                self.change(&insert.table);
                self.changes.add(S::LAST_INSERT_ID);
                self.needs.add(S::SQL_MODE);
                let mut reader = Reader::new(self);
                match &insert.source {
                    InsertSource::Values(rows) => rows.iter().flatten().for_each(|value| reader.expr(value)),
                    InsertSource::Query(query) => reader.query(query),
                }
                insert.on_duplicate.iter().for_each(|a| reader.expr(&a.value));
            }
            K::LoadData(load) => {
                self.change(&load.table);
                self.changes.add(S::LAST_INSERT_ID);
                self.needs.add(S::SQL_MODE);
                // A file is not among the rows that are the same.
                self.deterministic = false;
                let targets = load.targets.iter().flatten();
                if targets.into_iter().any(|target| matches!(target, LoadTarget::Variable(_))) {
                    self.changes.add(S::USER_VARIABLES);
                }
                let mut reader = Reader::new(self);
                load.assignments.iter().for_each(|a| reader.expr(&a.value));
            }
            K::Update(update) => {
                self.locks_rows = true;
                self.changes.add(S::ROW_COUNT);
                self.needs.add(S::SQL_MODE);
                let mut reader = Reader::new(self);
                update.with.iter().for_each(|with| reader.with(with));
                let assigned = update.assignments.iter().map(|a| a.table.as_ref().map(|t| &t.name));
                let assigned: Option<Vec<&Ident>> = assigned.collect();
                update.tables.iter().for_each(|table| reader.changed_tables(table, assigned.as_deref()));
                update.assignments.iter().for_each(|a| reader.expr(&a.value));
                update.filter.iter().for_each(|filter| reader.expr(filter));
                update.order_by.iter().for_each(|item| reader.expr(&item.expr));
                reader.limit(update.limit.as_ref());
            }
            K::Delete(delete) => {
                self.locks_rows = true;
                self.changes.add(S::ROW_COUNT);
                let mut reader = Reader::new(self);
                delete.with.iter().for_each(|with| reader.with(with));
                delete.from.iter().for_each(|table| reader.deleted_tables(table, &delete.targets));
                delete.filter.iter().for_each(|filter| reader.expr(filter));
                delete.order_by.iter().for_each(|item| reader.expr(&item.expr));
                reader.limit(delete.limit.as_ref());
            }
            K::CreateTable(create) => {
                self.defines(&create.name, create.temporary);
                create.query.iter().for_each(|query| Reader::new(self).query(query));
            }
            K::CreateTableLike { name, like, temporary, .. } => {
                self.defines(name, *temporary);
                self.reads(like);
            }
            K::DropTable { names, temporary, .. } => {
                names.iter().for_each(|name| self.defines(name, *temporary));
            }
            K::CreateView(create) => {
                self.defines(&create.name, false);
                Reader::new(self).query(&create.query);
            }
            K::DropView { names, .. } => names.iter().for_each(|name| self.defines(name, false)),
            K::AlterTable { name, .. } | K::TruncateTable(name) => self.defines(name, false),
            K::CreateIndex { table, .. } | K::DropIndex { table, .. } => self.defines(table, false),
            K::RenameTable(pairs) => {
                pairs.iter().flat_map(|(from, to)| [from, to]).for_each(|name| self.defines(name, false));
            }
            K::CreateDatabase { .. } | K::AlterDatabase { .. } => self.changes.add(S::TRANSACTION),
            K::DropProgram { .. } => {
                self.needs.add(S::DATABASE);
                self.changes.add(S::TRANSACTION);
            }
            K::DropDatabase { .. } => self.changes.add(S::TRANSACTION | S::DATABASE),
            K::Use(_) => self.changes.add(S::DATABASE),
            K::Set(items) => items.iter().for_each(|item| self.set(item)),
            K::Show(show) => {
                self.needs.add(S::IDENTITY | S::DATABASE | S::VARIABLES | S::CONDITIONS);
                self.deterministic = false;
                if let ShowFilter::Where(filter) = &show.filter {
                    Reader::new(self).expr(filter);
                }
            }
            K::Describe { table, .. } => {
                self.needs.add(S::IDENTITY);
                self.reads(table);
            }
            K::Explain { statement, analyze, .. } => {
                if *analyze {
                    self.statement(&statement.kind);
                } else {
                    self.reads = Self::of(statement).reads;
                    self.class = C::Information;
                }
                self.deterministic = false;
            }
            K::Begin { .. } | K::Commit(_) | K::Rollback(_) => self.changes.add(S::TRANSACTION),
            K::Savepoint(_) | K::RollbackTo(_) | K::ReleaseSavepoint(_) => {
                self.needs.add(S::TRANSACTION);
                self.changes.add(S::TRANSACTION);
            }
            K::LockTables(_) | K::UnlockTables | K::FlushWithReadLock(_) => {
                self.changes.add(S::TABLE_LOCKS | S::TRANSACTION)
            }
            K::LockInstance | K::UnlockInstance => self.changes.add(S::TABLE_LOCKS),
            K::GetDiagnostics(asked) => {
                self.needs.add(S::CONDITIONS);
                self.changes.add(S::USER_VARIABLES);
                if let GetDiagnostics::Condition { number, .. } = &**asked {
                    Reader::new(self).expr(number);
                }
            }
            K::Help(_) => self.deterministic = false,
            K::Prepare { source, .. } => {
                self.changes.add(S::PREPARED);
                if let PrepareSource::UserVariable(_) = source {
                    self.needs.add(S::USER_VARIABLES);
                }
            }
            // What it runs is not in its text.
            K::Execute { using, .. } => {
                self.needs.add(S::PREPARED);
                if !using.is_empty() {
                    self.needs.add(S::USER_VARIABLES);
                }
                self.deterministic = false;
            }
            K::Deallocate(_) => self.changes.add(S::PREPARED),
            K::SetRole(_) => self.changes.add(S::IDENTITY),
            K::Do(exprs) => {
                let mut reader = Reader::new(self);
                exprs.iter().for_each(|expr| reader.expr(expr));
            }
            K::Call { arguments, .. } => {
                self.deterministic = false;
                self.locks_rows = true;
                self.changes.add(S::USER_VARIABLES | S::LAST_INSERT_ID | S::TRANSACTION);
                let mut reader = Reader::new(self);
                arguments.iter().for_each(|expr| reader.expr(expr));
            }
            K::Kill { connection, .. } => Reader::new(self).expr(connection),
            K::PurgeLogs(PurgeLogs::Before(moment)) => Reader::new(self).expr(moment),
            K::PurgeLogs(PurgeLogs::To(_)) => {}
            K::Analyze(names)
            | K::Check { tables: names, .. }
            | K::Checksum { tables: names, .. }
            | K::Optimize(names)
            | K::Repair(names) => {
                names.iter().for_each(|name| self.reads(name));
            }
            // It looks at tables of another server.
            K::CheckReplication { .. } => self.deterministic = false,
            K::Flush(_)
            | K::ResetLogs { .. }
            | K::ResetPersist { .. }
            | K::ChangeSource(_)
            | K::PromoteReplica(_)
            | K::StartReplica { .. }
            | K::StopReplica { .. }
            | K::ResetReplica { .. } => {}
            K::CreateUser { .. }
            | K::AlterUser { .. }
            | K::DropUser { .. }
            | K::SetPassword { .. }
            | K::CreateRole { .. }
            | K::DropRole { .. }
            | K::RenameUser(_)
            | K::SetDefaultRole { .. }
            | K::GrantRoles { .. }
            | K::RevokeRoles { .. }
            | K::Grant { .. }
            | K::Revoke { .. }
            | K::RevokeAll { .. } => self.changes.add(S::TRANSACTION),
        }
    }

    fn change(&mut self, table: &ObjectName) {
        self.writes(table);
        self.locks_rows = true;
        self.changes.add(SessionState::ROW_COUNT);
    }

    fn defines(&mut self, table: &ObjectName, temporary: bool) {
        self.writes(table);
        let changed = if temporary { SessionState::TEMPORARY_TABLES } else { SessionState::TRANSACTION };
        self.changes.add(changed);
    }

    fn set(&mut self, item: &SetItem) {
        use SessionState as S;
        match item {
            SetItem::Variable { scope, name, value } => {
                value.iter().for_each(|value| Reader::new(self).expr(value));
                self.names_own_variable |= is_own(name);
                match (scope, name.as_str()) {
                    (VariableScope::Global | VariableScope::Persist | VariableScope::PersistOnly, _) => {
                        self.class = StatementClass::Administration;
                    }
                    (_, "time_zone") => self.changes.add(S::TIME_ZONE),
                    (_, "sql_mode") => self.changes.add(S::SQL_MODE),
                    (_, "timestamp") => self.changes.add(S::CLOCK),
                    (_, "last_insert_id" | "identity" | "insert_id") => self.changes.add(S::LAST_INSERT_ID),
                    (
                        _,
                        "autocommit"
                        | "transaction_isolation"
                        | "tx_isolation"
                        | "transaction_read_only"
                        | "tx_read_only",
                    ) => self.changes.add(S::TRANSACTION),
                    _ => self.changes.add(S::VARIABLES),
                }
            }
            SetItem::UserVariable { name: _, value } => {
                Reader::new(self).expr(value);
                self.changes.add(S::USER_VARIABLES);
            }
            SetItem::Names { .. } | SetItem::CharacterSet(_) => self.changes.add(S::VARIABLES),
            SetItem::Transaction { scope, .. } => match scope {
                VariableScope::Global | VariableScope::Persist | VariableScope::PersistOnly => {
                    self.class = StatementClass::Administration;
                }
                VariableScope::Default | VariableScope::Session => self.changes.add(S::TRANSACTION),
            },
        }
    }
}

/// Whether a variable, by its name in lower case, is one that no MySQL has.
fn is_own(variable: &str) -> bool {
    variable.starts_with("avocet_")
}

fn add(uses: &mut Vec<TableUse>, name: &ObjectName, alias: Option<&Ident>) {
    let table = TableUse::of(name, alias);
    if !uses.contains(&table) {
        uses.push(table);
    }
}

fn class_of(kind: &StatementKind) -> StatementClass {
    use StatementClass as C;
    use StatementKind as K;
    match kind {
        K::Empty | K::Comment => C::Empty,
        K::Query(_) | K::SelectInto { .. } | K::Do(_) => C::Query,
        K::Insert(_) | K::LoadData(_) | K::Update(_) | K::Delete(_) => C::Change,
        K::CreateTable(_)
        | K::CreateTableLike { .. }
        | K::DropTable { .. }
        | K::CreateView(_)
        | K::DropView { .. }
        | K::AlterTable { .. }
        | K::RenameTable(_)
        | K::TruncateTable(_)
        | K::CreateIndex { .. }
        | K::DropIndex { .. }
        | K::CreateDatabase { .. }
        | K::AlterDatabase { .. }
        | K::DropDatabase { .. }
        | K::DropProgram { .. } => C::Definition,
        K::Begin { .. }
        | K::Commit(_)
        | K::Rollback(_)
        | K::Savepoint(_)
        | K::RollbackTo(_)
        | K::ReleaseSavepoint(_)
        | K::LockTables(_)
        | K::UnlockTables
        | K::FlushWithReadLock(_) => C::Transaction,
        K::LockInstance | K::UnlockInstance => C::Administration,
        K::Use(_)
        | K::Set(_)
        | K::Prepare { .. }
        | K::Deallocate(_)
        | K::SetRole(_)
        | K::GetDiagnostics(_) => C::Session,
        K::Show(_) | K::Describe { .. } | K::Explain { .. } | K::Checksum { .. } | K::Help(_) => {
            C::Information
        }
        K::CreateUser { .. }
        | K::AlterUser { .. }
        | K::DropUser { .. }
        | K::SetPassword { .. }
        | K::CreateRole { .. }
        | K::DropRole { .. }
        | K::RenameUser(_)
        | K::SetDefaultRole { .. }
        | K::GrantRoles { .. }
        | K::RevokeRoles { .. }
        | K::Grant { .. }
        | K::Revoke { .. }
        | K::RevokeAll { .. } => C::Account,
        K::Flush(_)
        | K::ResetLogs { .. }
        | K::ResetPersist { .. }
        | K::ChangeSource(_)
        | K::PromoteReplica(_)
        | K::StartReplica { .. }
        | K::StopReplica { .. }
        | K::ResetReplica { .. }
        | K::Kill { .. }
        | K::PurgeLogs(_)
        | K::Analyze(_)
        | K::Check { .. }
        | K::Optimize(_)
        | K::Repair(_)
        | K::CheckReplication { .. } => C::Administration,
        K::Call { .. } | K::Execute { .. } => C::Call,
        K::Unsupported(_) | K::Refused(_) | K::RefusedPartitions { .. } => C::Refused,
    }
}
