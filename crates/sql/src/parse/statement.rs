//! The syntax tree of statements that are not plain queries.

use avocet_types::error::SqlError;
use avocet_types::{ReferentialAction, ViewAlgorithm, ViewCheck, ViewSecurity};

use crate::parse::ast::{
    Expr, Ident, Limit, ObjectName, OrderItem, Query, Span, TableRef, TypeSpec, VariableScope, With,
};
use crate::parse::hints::Hints;

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
}

impl Statement {
    pub(super) fn without_params(kind: StatementKind, span: Span) -> Self {
        Self { kind, span, params: 0, limit_params: Vec::new(), hints: None, height: 0 }
    }
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
    Do(Vec<Expr>),
    Call {
        name: ObjectName,
        arguments: Vec<Expr>,
    },
    Analyze(Vec<ObjectName>),
    Check(Vec<ObjectName>),
    Optimize(Vec<ObjectName>),
    /// `HELP`, `XA`, `LOAD XML`, routines, triggers, …: known, but not served. Holds the leading words.
    Unsupported(String),
    /// It has a clause that is known, but not served.
    Refused(Box<SqlError>),
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
pub struct CreateTable {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub columns: Vec<ColumnSpec>,
    pub indexes: Vec<IndexSpec>,
    pub foreign_keys: Vec<ForeignKeySpec>,
    /// Those of columns, too.
    pub checks: Vec<CheckSpec>,
    pub options: TableOptions,
    /// `PARTITION BY …` was given: parsed so that it can be refused by name.
    pub partitioned: bool,
    /// `CREATE TABLE … AS SELECT`
    pub query: Option<Box<Query>>,
}

/// A view's definition; what is `None` is as the view that is altered has it.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub how: CreateViewHow,
    pub name: ObjectName,
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<UserName>,
    pub security: Option<ViewSecurity>,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
    pub check: ViewCheck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateViewHow {
    Create,
    IfNotExists,
    OrReplace,
    Alter,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    pub engine: Option<String>,
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub comment: Option<String>,
    pub auto_increment: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    pub name: Ident,
    pub ty: TypeSpec,
    pub nullable: Option<bool>,
    pub default: Option<DefaultSpec>,
    pub on_update_now: bool,
    pub auto_increment: bool,
    pub primary_key: bool,
    pub unique: bool,
    pub comment: Option<String>,
    pub references: Option<Reference>,
    pub checks: Vec<CheckSpec>,
    pub generated: Option<GeneratedSpec>,
    pub invisible: bool,
}

impl ColumnSpec {
    /// An attribute that a generated column cannot have.
    pub fn misused_if_generated(&self) -> Option<&'static str> {
        if self.default.is_some() {
            Some("DEFAULT")
        } else if self.on_update_now {
            Some("ON UPDATE")
        } else if self.auto_increment {
            Some("AUTO_INCREMENT")
        } else {
            None
        }
    }

    /// Takes out what `REFERENCES` beside the column says: a foreign key of the table.
    pub fn foreign_key(&mut self) -> Option<ForeignKeySpec> {
        let references = self.references.take()?;
        Some(ForeignKeySpec { name: None, index: None, columns: vec![self.name.clone()], references })
    }
}

/// What follows DEFAULT.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultSpec {
    /// A literal, or the current time.
    Value(Expr),
    /// In parentheses.
    Expr(Expr),
}

/// `GENERATED ALWAYS AS (…) [VIRTUAL | STORED]`
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedSpec {
    pub expr: Expr,
    pub stored: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CheckSpec {
    /// After CONSTRAINT.
    pub name: Option<Ident>,
    /// The column that it stands beside: it may use no other.
    pub column: Option<Ident>,
    pub condition: Expr,
    pub enforced: bool,
}

/// What ALGORITHM and LOCK ask for: `DEFAULT`, or one of MySQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlterHow {
    pub algorithm: &'static str,
    pub lock: &'static str,
}

impl Default for AlterHow {
    fn default() -> Self {
        Self { algorithm: "DEFAULT", lock: "DEFAULT" }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSpecKind {
    Primary,
    Unique,
    Secondary,
    Fulltext,
    Spatial,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec {
    pub kind: IndexSpecKind,
    pub name: Option<Ident>,
    pub parts: Vec<IndexPartSpec>,
    pub comment: Option<String>,
    pub invisible: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IndexPartSpec {
    Column {
        name: Ident,
        prefix_len: Option<u32>,
        descending: bool,
    },
    /// A functional key part.
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKeySpec {
    /// After CONSTRAINT.
    pub name: Option<Ident>,
    /// After FOREIGN KEY: for the index that is made if there is none.
    pub index: Option<Ident>,
    pub columns: Vec<Ident>,
    pub references: Reference,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub table: ObjectName,
    /// None: the parent's primary key.
    pub columns: Vec<Ident>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    AddColumn {
        column: ColumnSpec,
        position: ColumnPosition,
    },
    AddIndex(IndexSpec),
    AddForeignKey(ForeignKeySpec),
    AddCheck(CheckSpec),
    DropCheck(Ident),
    SetVisible {
        column: Ident,
        visible: bool,
    },
    SetIndexVisible {
        index: Ident,
        visible: bool,
    },
    /// `ALTER CHECK`, and of a constraint of any kind `ALTER CONSTRAINT`.
    EnforceCheck {
        name: Ident,
        enforced: bool,
        is_check: bool,
    },
    DropColumn(Ident),
    DropIndex(Ident),
    DropPrimaryKey,
    DropForeignKey(Ident),
    DropConstraint(Ident),
    ModifyColumn {
        column: ColumnSpec,
        position: ColumnPosition,
    },
    ChangeColumn {
        old: Ident,
        column: ColumnSpec,
        position: ColumnPosition,
    },
    RenameColumn {
        from: Ident,
        to: Ident,
    },
    RenameIndex {
        from: Ident,
        to: Ident,
    },
    RenameTable(ObjectName),
    SetDefault {
        column: Ident,
        default: Option<DefaultSpec>,
    },
    ConvertCharset {
        charset: String,
        collation: Option<String>,
    },
    /// ENABLE KEYS, DISABLE KEYS, FORCE, ORDER BY: nothing to do here.
    Nothing,
    /// ALGORITHM and LOCK
    How(AlterHow),
    Options(TableOptions),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnPosition {
    Last,
    First,
    After(Ident),
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
    /// MASTER STATUS, BINARY LOG STATUS, BINARY LOGS, REPLICA STATUS, PROCEDURE STATUS,
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
        )
    }

    /// Whether LIKE may follow.
    pub fn has_pattern(&self) -> bool {
        self.has_filter() && !matches!(self, Self::Indexes { .. })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum PrepareSource {
    Text(String),
    UserVariable(String),
}

/// `'name'@'host'`; no host means `%`.
#[derive(Clone, Debug, PartialEq)]
pub enum UserName {
    Named { name: String, host: String },
    CurrentUser,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UserSpec {
    pub user: UserName,
    pub plugin: Option<String>,
    /// `IDENTIFIED BY '…'`
    pub password: Option<String>,
    /// `IDENTIFIED WITH plugin AS '…'`: the stored form.
    pub auth_string: Option<Vec<u8>>,
    /// `REPLACE '…'`
    pub current: Option<String>,
    /// RETAIN CURRENT PASSWORD
    pub retains: bool,
    /// DISCARD OLD PASSWORD
    pub discards: bool,
}

impl UserSpec {
    /// One that says nothing but a name.
    pub fn new(user: UserName) -> Self {
        Self {
            user,
            plugin: None,
            password: None,
            auth_string: None,
            current: None,
            retains: false,
            discards: false,
        }
    }

    /// Whether it gives another password, or another plugin.
    pub fn identifies(&self) -> bool {
        self.password.is_some() || self.plugin.is_some() || self.auth_string.is_some()
    }
}

/// What CREATE USER and ALTER USER say of all their accounts. In rules, the inner `None` is DEFAULT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOptions {
    /// ACCOUNT LOCK, ACCOUNT UNLOCK
    pub locked: Option<bool>,
    pub tls: Option<TlsRequirement>,
    pub expire: Option<PasswordExpiry>,
    pub history: Option<Option<u32>>,
    pub reuse_days: Option<Option<u32>>,
    pub require_current: Option<Option<bool>>,
    pub failed_attempts: Option<u16>,
    /// The inner `None` is UNBOUNDED.
    pub lock_days: Option<Option<u16>>,
}

/// `REQUIRE …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsRequirement {
    None,
    Ssl,
    X509,
    /// What is not said is empty.
    Specified {
        subject: String,
        issuer: String,
        cipher: String,
    },
}

/// `PASSWORD EXPIRE …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordExpiry {
    Now,
    Default,
    /// 0 is NEVER.
    Days(u32),
}

/// Roles in SET ROLE and SET DEFAULT ROLE.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleSet {
    None,
    All,
    Default,
    AllExcept(Vec<UserName>),
    List(Vec<UserName>),
}

/// What REVOKE does where there is nothing to revoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevokeHow {
    pub if_exists: bool,
    /// IGNORE UNKNOWN USER
    pub ignore_unknown: bool,
}

/// A privilege in GRANT or REVOKE.
#[derive(Clone, Debug, PartialEq)]
pub enum PrivilegeSpec {
    /// ALL [PRIVILEGES]
    All,
    /// USAGE, or a privilege's name in upper case.
    Named(String),
    OnColumns {
        name: String,
        columns: Vec<Ident>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum GrantTarget {
    /// `*.*`
    All,
    /// `*`
    CurrentDatabase,
    /// A pattern, as in LIKE.
    Database(String),
    Table(ObjectName),
    Procedure(ObjectName),
}
