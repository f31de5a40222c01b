//! The syntax tree of statements that are not plain queries.

mod account;
mod definition;
mod partition;

use avocet_types::error::SqlError;

use crate::parse::ast::{
    Expr, Ident, Limit, ObjectName, OrderItem, Query, Span, TableRef, VariableScope, With,
};
use crate::parse::deprecated::Deprecated;
use crate::parse::hints::Hints;

pub use account::*;
pub use definition::*;
pub use partition::*;

impl StatementKind {
    /// Whether it makes definitions with expressions in them.
    pub(super) fn is_kept(&self) -> bool {
        matches!(
            self,
            Self::CreateTable(_) | Self::AlterTable { .. } | Self::CreateIndex { .. } | Self::CreateView(_)
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    /// The statement's own text within the source, without the `;`.
    pub span: Span,
    /// How many `?` it has.
    pub params: u32,
    /// Which of them are a LIMIT or an OFFSET, by number.
    pub limit_params: Vec<u32>,
    pub hints: Option<Box<Hints>>,
    /// How tall the trees of its chains of operators are, beside what is nested. Whoever walks trees recurses: tall ones are
    /// walked on a stack that is as large, see [`on_stack_for`](crate::parse::on_stack_for).
    pub height: u32,
    /// Its expressions assign to user variables.
    pub assigns: bool,
    pub deprecated: Box<[Deprecated]>,
    /// It reads `@@warning_count` or `@@error_count`, of which a statement that is prepared would see its own.
    pub reads_counts: bool,
}

impl Statement {
    pub(super) fn without_params(kind: StatementKind, span: Span) -> Self {
        Self {
            kind,
            span,
            params: 0,
            limit_params: Vec::new(),
            hints: None,
            height: 0,
            assigns: false,
            deprecated: Box::default(),
            reads_counts: false,
        }
    }
}

/// What stored programs there are in MySQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    Procedure,
    Function,
    Trigger,
    Event,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// Nothing, or nothing but semicolons.
    Empty,
    /// Nothing but comments: MySQL answers OK.
    Comment,
    Query(Box<Query>),
    /// `SELECT … INTO`
    SelectInto {
        query: Box<Query>,
        into: Box<SelectInto>,
    },
    Insert(Box<Insert>),
    LoadData(Box<LoadData>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    CreateTable(Box<CreateTable>),
    CreateTableLike {
        name: ObjectName,
        like: ObjectName,
        if_not_exists: bool,
        temporary: bool,
    },
    DropTable {
        names: Vec<ObjectName>,
        if_exists: bool,
        temporary: bool,
    },
    /// CREATE VIEW and ALTER VIEW.
    CreateView(Box<CreateView>),
    DropView {
        names: Vec<ObjectName>,
        if_exists: bool,
    },
    AlterTable {
        name: ObjectName,
        actions: Vec<AlterAction>,
    },
    RenameTable(Vec<(ObjectName, ObjectName)>),
    TruncateTable(ObjectName),
    CreateIndex {
        table: ObjectName,
        index: IndexSpec,
        how: AlterHow,
    },
    DropIndex {
        table: ObjectName,
        name: Ident,
        how: AlterHow,
    },
    CreateDatabase {
        name: Ident,
        if_not_exists: bool,
        charset: Option<String>,
        collation: Option<String>,
    },
    AlterDatabase {
        name: Option<Ident>,
        charset: Option<String>,
        collation: Option<String>,
    },
    DropDatabase {
        name: Ident,
        if_exists: bool,
    },
    /// DROP PROCEDURE, FUNCTION, TRIGGER or EVENT.
    DropProgram {
        kind: ProgramKind,
        name: ObjectName,
        if_exists: bool,
    },
    Use(Ident),
    Set(Vec<SetItem>),
    Show(Box<Show>),
    /// `DESCRIBE t [column | 'pattern']`
    Describe {
        table: ObjectName,
        column: Option<String>,
    },
    Explain {
        statement: Box<Statement>,
        analyze: bool,
        format: Option<String>,
    },
    Begin {
        read_only: Option<bool>,
        consistent_snapshot: bool,
    },
    Commit(Completion),
    Rollback(Completion),
    Savepoint(Ident),
    RollbackTo(Ident),
    ReleaseSavepoint(Ident),
    LockTables(Vec<(ObjectName, Option<Ident>, bool)>),
    UnlockTables,
    /// LOCK INSTANCE FOR BACKUP
    LockInstance,
    UnlockInstance,
    /// FLUSH TABLES … WITH READ LOCK: of these, or of all if none is named.
    FlushWithReadLock(Vec<ObjectName>),
    Prepare {
        name: Ident,
        source: PrepareSource,
    },
    /// The names are those of user variables.
    Execute {
        name: Ident,
        using: Vec<String>,
    },
    Deallocate(Ident),
    Kill {
        connection: Expr,
        query_only: bool,
    },
    CreateUser {
        users: Vec<UserSpec>,
        if_not_exists: bool,
        default_roles: Vec<UserName>,
        options: Box<AccountOptions>,
    },
    AlterUser {
        users: Vec<UserSpec>,
        if_exists: bool,
        options: Box<AccountOptions>,
    },
    DropUser {
        users: Vec<UserName>,
        if_exists: bool,
    },
    SetPassword {
        user: Option<UserName>,
        password: String,
        /// `REPLACE '…'`
        current: Option<String>,
        /// RETAIN CURRENT PASSWORD
        retains: bool,
    },
    CreateRole {
        roles: Vec<UserName>,
        if_not_exists: bool,
    },
    DropRole {
        roles: Vec<UserName>,
        if_exists: bool,
    },
    RenameUser(Vec<(UserName, UserName)>),
    SetRole(RoleSet),
    /// SET DEFAULT ROLE, and ALTER USER … DEFAULT ROLE.
    SetDefaultRole {
        roles: RoleSet,
        users: Vec<UserName>,
        if_exists: bool,
    },
    GrantRoles {
        roles: Vec<UserName>,
        to: Vec<UserName>,
        admin_option: bool,
    },
    RevokeRoles {
        roles: Vec<UserName>,
        from: Vec<UserName>,
        how: RevokeHow,
    },
    Grant {
        privileges: Vec<PrivilegeSpec>,
        on: GrantTarget,
        to: Vec<UserName>,
        grant_option: bool,
    },
    Revoke {
        privileges: Vec<PrivilegeSpec>,
        on: GrantTarget,
        from: Vec<UserName>,
        how: RevokeHow,
    },
    /// `REVOKE ALL PRIVILEGES, GRANT OPTION FROM …`
    RevokeAll {
        from: Vec<UserName>,
        how: RevokeHow,
    },
    /// What is flushed, in upper case: `PRIVILEGES`, `TABLES`, `BINARY LOGS`, …
    Flush(Vec<&'static str>),
    /// PURGE BINARY LOGS
    PurgeLogs(PurgeLogs),
    /// RESET BINARY LOGS AND GTIDS, and the number of the file that is the first then.
    ResetLogs {
        first: u64,
    },
    /// All that is persisted if no variable is named.
    ResetPersist {
        name: Option<String>,
        if_exists: bool,
    },
    Do(Vec<Expr>),
    Call {
        name: ObjectName,
        arguments: Vec<Expr>,
    },
    Analyze(Vec<ObjectName>),
    Check {
        tables: Vec<ObjectName>,
        for_upgrade: bool,
    },
    Checksum {
        tables: Vec<ObjectName>,
        quick: bool,
    },
    Optimize(Vec<ObjectName>),
    Repair(Vec<ObjectName>),
    GetDiagnostics(Box<GetDiagnostics>),
    /// The topic, as it was written.
    Help(String),
    /// Compares tables with the source that is followed, all of them if none are named. `repairs`: those that differ are copied
    /// again.
    CheckReplication {
        tables: Vec<ObjectName>,
        repairs: bool,
    },
    /// `CHANGE REPLICATION SOURCE TO …`
    ChangeSource(Box<SourceOptions>),
    StartReplica {
        channel: Option<String>,
    },
    StopReplica {
        channel: Option<String>,
    },
    /// `PROMOTE REPLICA …`, which is Avocet's own.
    PromoteReplica(Box<PromoteOptions>),
    /// `all`: the source is forgotten, too.
    ResetReplica {
        all: bool,
        channel: Option<String>,
        /// The binary log is reset as well, as by RESET BINARY LOGS AND GTIDS.
        first_log: Option<u64>,
    },
    /// `XA`, `LOAD XML`, routines, triggers, …: known, but not served. Holds the leading words.
    Unsupported(String),
    /// It has a clause that is known, but not served.
    Refused(Box<SqlError>),
    /// It puts rows into named partitions of a table. That is not served, and is another error for a table that has none.
    RefusedPartitions {
        table: ObjectName,
        error: Box<SqlError>,
    },
}

/// What GET DIAGNOSTICS puts into which user variables.
#[derive(Clone, Debug, PartialEq)]
pub enum GetDiagnostics {
    Statement { targets: Vec<(String, StatementItem)> },
    Condition { number: Expr, targets: Vec<(String, ConditionItem)> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementItem {
    Number,
    RowCount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionItem {
    ClassOrigin,
    SubclassOrigin,
    ReturnedSqlstate,
    MessageText,
    MysqlErrno,
    /// What only SIGNAL sets: empty.
    Unset,
}

/// What CHANGE REPLICATION SOURCE sets; the rest stays as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceOptions {
    /// FOR CHANNEL, in lower case.
    pub channel: Option<String>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub auto_position: Option<bool>,
    /// The longest wait between two attempts to connect.
    pub connect_retry_seconds: Option<u32>,
    pub ssl: Option<bool>,
    /// A file of the server's machine.
    pub ssl_ca: Option<String>,
    pub ssl_verify_server_cert: Option<bool>,
}

/// What PROMOTE REPLICA is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromoteOptions {
    pub action: PromoteAction,
    /// The longest time that the source takes no writes before this server does, or the source again.
    pub timeout_seconds: Option<u32>,
    pub verify: PromoteVerify,
    /// Tables that are compared, written as those below; all if none is named.
    pub verify_tables: Vec<String>,
    /// Tables that need not be here: `db.table`, `db`, with `*` for any part.
    pub allow_left_out: Vec<String>,
    /// The source's accounts are made here.
    pub accounts: bool,
    /// Who stops writes at the source, if not the account that follows it.
    pub source_user: Option<String>,
    pub source_password: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromoteAction {
    #[default]
    Promote,
    /// Only says whether it could, and what it would leave behind.
    Check,
    /// Gives the source its writes back after a promotion that did not come to its end.
    Undo,
}

/// When tables are compared with the source's by value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromoteVerify {
    /// While the source is still written to, so that nobody waits.
    #[default]
    Before,
    /// While it takes no writes.
    Stopped,
    Both,
    None,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub replace: bool,
    pub ignore: bool,
    pub table: ObjectName,
    /// Absent means all columns in table order.
    pub columns: Option<Vec<Ident>>,
    pub source: InsertSource,
    /// `VALUES … AS new(a, b)`
    pub row_alias: Option<(Ident, Vec<Ident>)>,
    pub on_duplicate: Vec<Assignment>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    Values(Vec<Vec<Expr>>),
    Query(Box<Query>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// The client has the file, not the server.
    pub local: bool,
    pub file: String,
    pub on_duplicate: OnDuplicateKey,
    pub table: ObjectName,
    pub charset: Option<String>,
    pub format: DelimitedFormat,
    pub skip_lines: u64,
    /// Where a line's fields go, in order; absent means all columns in table order.
    pub targets: Option<Vec<LoadTarget>>,
    pub assignments: Vec<Assignment>,
}

/// Where the rows of a SELECT go instead of to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectInto {
    /// The names of user variables, in lower case.
    Variables(Vec<String>),
    Outfile {
        file: String,
        charset: Option<String>,
        format: DelimitedFormat,
    },
    Dumpfile(String),
}

/// What becomes of a row whose key is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicateKey {
    Fail,
    Ignore,
    Replace,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LoadTarget {
    Column(Ident),
    /// The name of a user variable, in lower case.
    Variable(String),
}

/// How a file separates lines and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelimitedFormat {
    pub field_terminator: Vec<u8>,
    /// Of one byte, or empty.
    pub enclosed: Vec<u8>,
    pub optionally_enclosed: bool,
    /// Of one byte, or empty; `None` for the default.
    pub escape: Option<Vec<u8>>,
    pub line_start: Vec<u8>,
    pub line_terminator: Vec<u8>,
}

impl Default for DelimitedFormat {
    fn default() -> Self {
        Self {
            field_terminator: b"\t".to_vec(),
            enclosed: Vec::new(),
            optionally_enclosed: false,
            escape: None,
            line_start: Vec::new(),
            line_terminator: b"\n".to_vec(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub table: Option<ObjectName>,
    pub column: Ident,
    pub value: Expr,
}

impl Assignment {
    /// Whether the column is named as one of this table, or without a table.
    pub fn is_of(&self, database: &str, table: &str) -> bool {
        self.table.as_ref().is_none_or(|of| {
            of.name.name == table && of.database.as_ref().is_none_or(|named| named.name == database)
        })
    }

    /// The column's name as it is written, with its table's.
    pub fn shown_column(&self) -> String {
        let table = self.table.as_ref().map(|of| [of.database.as_ref(), Some(&of.name)]);
        let names = table.into_iter().flatten().flatten().chain([&self.column]);
        names.map(|name| name.name.as_str()).collect::<Vec<_>>().join(".")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub with: Option<With>,
    pub ignore: bool,
    /// More than one, or a join: a multi-table update.
    pub tables: Vec<TableRef>,
    pub assignments: Vec<Assignment>,
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub with: Option<With>,
    pub ignore: bool,
    /// Of a multi-table delete; empty for the single-table form.
    pub targets: Vec<ObjectName>,
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `SET [scope] name = value`; the name in lower case; no value means DEFAULT.
    Variable {
        scope: VariableScope,
        name: String,
        value: Option<Expr>,
    },
    UserVariable {
        name: String,
        value: Expr,
    },
    /// No charset means DEFAULT.
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    CharacterSet(Option<String>),
    Transaction {
        scope: VariableScope,
        isolation: Option<IsolationLevel>,
        read_only: Option<bool>,
    },
}

/// What follows the end of a transaction; what is not said, `@@completion_type` decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// AND [NO] CHAIN
    pub chain: Option<bool>,
    /// [NO] RELEASE
    pub release: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    pub kind: ShowKind,
    pub filter: ShowFilter,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    None,
    Like(String),
    Where(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ShowKind {
    Databases,
    Tables {
        database: Option<Ident>,
        full: bool,
    },
    TableStatus {
        database: Option<Ident>,
    },
    Columns {
        table: ObjectName,
        full: bool,
    },
    Indexes {
        table: ObjectName,
    },
    /// Of a table or a view.
    CreateTable(ObjectName),
    CreateView(ObjectName),
    CreateDatabase {
        name: Ident,
        if_not_exists: bool,
    },
    CreateUser(Option<UserName>),
    Variables(VariableScope),
    Status(VariableScope),
    Warnings {
        limit: Option<Limit>,
    },
    Errors {
        limit: Option<Limit>,
    },
    CountWarnings,
    CountErrors,
    Processlist {
        full: bool,
    },
    Grants {
        user: Option<UserName>,
        /// With these roles active.
        using: Vec<UserName>,
    },
    Engines,
    Charset,
    Collation,
    Plugins,
    Privileges,
    Events {
        database: Option<Ident>,
    },
    Triggers {
        database: Option<Ident>,
    },
    /// `BINLOG EVENTS`, `RELAYLOG EVENTS`
    LogEvents(Box<LogEvents>),
    /// `REPLICA STATUS [FOR CHANNEL 'name']`
    ReplicaStatus {
        channel: Option<String>,
    },
    /// MASTER STATUS, BINARY LOG STATUS, BINARY LOGS, PROCEDURE STATUS,
    /// FUNCTION STATUS, OPEN TABLES, ENGINE … STATUS, PROFILES, …: the words after SHOW, in upper case.
    Other(String),
}

impl ShowKind {
    /// Whether WHERE may follow.
    pub fn has_filter(&self) -> bool {
        !matches!(
            self,
            Self::CreateTable(_)
                | Self::CreateDatabase { .. }
                | Self::CreateUser(_)
                | Self::Warnings { .. }
                | Self::Errors { .. }
                | Self::CountWarnings
                | Self::CountErrors
                | Self::Processlist { .. }
                | Self::Grants { .. }
                | Self::Engines
                | Self::Plugins
                | Self::Privileges
                | Self::LogEvents(_)
        )
    }

    /// Whether LIKE may follow.
    pub fn has_pattern(&self) -> bool {
        self.has_filter() && !matches!(self, Self::Indexes { .. })
    }
}

/// `EVENTS [IN 'file'] [FROM position] [LIMIT …]`
#[derive(Clone, Debug, PartialEq)]
pub struct LogEvents {
    /// Of the log that a replica keeps of its source's.
    pub is_relay: bool,
    /// FOR CHANNEL, in lower case.
    pub channel: Option<String>,
    pub file: Option<String>,
    pub from: Option<u64>,
    pub limit: Option<Limit>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PrepareSource {
    Text(String),
    UserVariable(String),
}

/// Which files of the binary log PURGE deletes.
#[derive(Clone, Debug, PartialEq)]
pub enum PurgeLogs {
    /// Those before this one.
    To(String),
    /// Those that ended before a moment, in seconds since 1970.
    Before(Box<Expr>),
}
