//! What each statement needs, told from its text.

use std::sync::Arc;

use avocet_engine::{AccountId, Privileges};
use avocet_sql::parse::ast::{Ident, ObjectName, TableRef, VariableScope, With};
use avocet_sql::parse::statement::*;

use super::reader::Reader;
use super::reads::{Reads, Rows};
use crate::api::AccountName;
use crate::{schemas, variables};

/// One thing that an account must be allowed for a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Any of these, for the whole server.
    Server {
        any: Privileges,
    },
    /// To read files of the server.
    File,
    /// All of these on all of a database.
    Database {
        database: String,
        all: Privileges,
    },
    /// Anything at all in a database.
    Use {
        database: String,
    },
    Table {
        database: String,
        table: String,
        all: Privileges,
    },
    /// Each of these on a table or on some of its columns; which columns, other needs tell.
    Columns {
        database: String,
        table: String,
        all: Privileges,
    },
    /// Any of these on a table, or on some of its columns; `said` is what is denied otherwise.
    AnyOnTable {
        database: String,
        table: String,
        any: Privileges,
        said: &'static str,
    },
    /// SELECT on the table's database, or anything at all on the table or on some of its columns by itself: to see which columns
    /// there are.
    Listed {
        database: String,
        table: String,
    },
    /// Anything at all on a table as a whole, to see its definition.
    Definition {
        database: String,
        table: String,
    },
    /// To change a column of a table that something may be done with; without a name, all of them.
    Column {
        database: String,
        table: String,
        column: Option<String>,
        privilege: Privileges,
    },
    /// To read these columns.
    Reads(Reads),
    /// EXECUTE or ALTER ROUTINE.
    Routine {
        database: String,
        routine: String,
        privilege: Privileges,
    },
    /// To be told how a view's tables are read.
    Explained {
        database: String,
        table: String,
    },
    /// What somebody needs for what a view does.
    Through(Arc<Through>),
}

impl Need {
    /// Whether its table is a stored one, even where a temporary table has the same name: what is created, the name that a
    /// table is given, and a foreign key's parent.
    pub(super) fn is_of_stored(&self) -> bool {
        match self {
            Self::Table { all, .. } => all.intersects(Privileges::CREATE | Privileges::CREATE_VIEW),
            Self::AnyOnTable { any, .. } => *any == Privileges::REFERENCES,
            Self::Column { privilege, .. } => *privilege == Privileges::REFERENCES,
            _ => false,
        }
    }

    /// The one table that it is about.
    pub(super) fn table(&self) -> Option<(&str, &str)> {
        match self {
            Self::Table { database, table, .. }
            | Self::Columns { database, table, .. }
            | Self::AnyOnTable { database, table, .. }
            | Self::Listed { database, table }
            | Self::Definition { database, table }
            | Self::Column { database, table, .. }
            | Self::Explained { database, table } => Some((database, table)),
            Self::Server { .. }
            | Self::File
            | Self::Database { .. }
            | Self::Use { .. }
            | Self::Reads(_)
            | Self::Routine { .. }
            | Self::Through(_) => None,
        }
    }
}

/// A view that a statement uses, and what it needs of the tables that it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Through {
    /// Database and name of the view that the statement names.
    pub view: (String, String),
    /// The definer; `None` for whoever runs the statement.
    pub account: Option<AccountId>,
    pub needs: Vec<Need>,
}

/// The needs of a statement, while they are collected.
pub(super) struct Needs {
    current: Option<String>,
    list: Vec<Need>,
    pub(super) reads: Reads,
}

/// The block of the table that a statement changes.
const STATEMENT: usize = 0;

/// The needs of a statement. Who has no default database is told so by the statement itself.
pub(super) fn of(kind: &StatementKind, current: Option<&str>, account: &AccountName) -> Vec<Need> {
    let current = current.map(str::to_owned);
    let mut needs = Needs { current, list: Vec::new(), reads: Reads::default() };
    needs.reads.block(None);
    needs.statement(kind, account);
    if !needs.reads.is_empty() {
        needs.list.push(Need::Reads(needs.reads));
    }
    needs.list
}

impl Needs {
    fn statement(&mut self, kind: &StatementKind, account: &AccountName) {
        use StatementKind as S;
        match kind {
            S::Query(query) => {
                Reader::new(self, STATEMENT).query(query);
            }
            S::SelectInto { query, into } => {
                match &**into {
                    SelectInto::Variables(_) => {}
                    SelectInto::Outfile { .. } | SelectInto::Dumpfile(_) => self.server(Privileges::FILE),
                }
                Reader::new(self, STATEMENT).query(query);
            }
            S::Insert(insert) => self.insert(insert),
            S::LoadData(load) => self.load(load),
            S::Update(update) => self.update(update),
            S::Delete(delete) => self.delete(delete),
            S::CreateTable(create) => self.create_table(create),
            S::CreateTableLike { name, like, if_not_exists: _, temporary } => {
                self.creation(name, *temporary, Privileges::NONE);
                self.table(like, Privileges::SELECT);
            }
            S::DropTable { names, if_exists: _, temporary } => {
                // Temporary tables are the session's own.
                if !*temporary {
                    names.iter().for_each(|name| self.table(name, Privileges::DROP));
                }
            }
            S::CreateView(create) => {
                let more = match create.how {
                    CreateViewHow::Create | CreateViewHow::IfNotExists => Privileges::NONE,
                    CreateViewHow::OrReplace | CreateViewHow::Alter => Privileges::DROP,
                };
                self.table(&create.name, Privileges::CREATE_VIEW | more);
                Reader::new(self, STATEMENT).query(&create.query);
            }
            S::DropView { names, if_exists: _ } => {
                names.iter().for_each(|name| self.table(name, Privileges::DROP));
            }
            S::AlterTable { name, actions } => self.alter_table(name, actions),
            S::RenameTable(pairs) => pairs.iter().for_each(|(from, to)| {
                self.table(from, Privileges::ALTER | Privileges::DROP);
                self.table(to, Privileges::CREATE | Privileges::INSERT);
            }),
            // Who sees everybody's statements forgets them for everybody.
            S::TruncateTable(name)
                if self
                    .database_of(name)
                    .is_some_and(|schema| schemas::is_forgotten(&schema, &name.name.name)) =>
            {
                self.server(Privileges::DROP);
            }
            S::TruncateTable(name) => self.table(name, Privileges::DROP),
            S::CreateIndex { table, .. } | S::DropIndex { table, .. } => self.table(table, Privileges::INDEX),
            S::CreateDatabase { name, .. } => self.database(Some(name), Privileges::CREATE),
            S::AlterDatabase { name, .. } => self.database(name.as_ref(), Privileges::ALTER),
            S::DropDatabase { name, .. } => self.database(Some(name), Privileges::DROP),
            S::Use(name) => self.use_database(Some(name)),
            S::Set(items) => items.iter().for_each(|item| self.set(item)),
            S::Show(show) => self.show(show),
            S::Describe { table, column: _ } => self.listed(table),
            S::Explain { statement, .. } => self.statement(&statement.kind, account),
            S::LockTables(tables) => {
                for (name, ..) in tables {
                    self.database(name.database.as_ref(), Privileges::LOCK_TABLES);
                    self.table(name, Privileges::SELECT);
                }
            }
            S::FlushWithReadLock(names) => {
                self.server(Privileges::RELOAD | Privileges::FLUSH_TABLES);
                for name in names {
                    self.database(name.database.as_ref(), Privileges::LOCK_TABLES);
                    self.table(name, Privileges::SELECT);
                }
            }
            // There is no BACKUP_ADMIN.
            S::LockInstance | S::UnlockInstance => self.server(Privileges::SUPER),
            S::GetDiagnostics(asked) => {
                if let GetDiagnostics::Condition { number, .. } = &**asked {
                    Reader::new(self, STATEMENT).expr(number);
                }
            }
            // There is no BINLOG_ADMIN.
            S::PurgeLogs(purge) => {
                self.server(Privileges::SUPER);
                if let PurgeLogs::Before(moment) = purge {
                    Reader::new(self, STATEMENT).expr(moment);
                }
            }
            S::Kill { connection, .. } => Reader::new(self, STATEMENT).expr(connection),
            S::CreateUser { .. } | S::DropUser { .. } | S::RenameUser(_) | S::RevokeAll { .. } => {
                self.server(Privileges::CREATE_USER);
            }
            S::CreateRole { .. } => self.server(Privileges::CREATE_ROLE | Privileges::CREATE_USER),
            S::DropRole { .. } => self.server(Privileges::DROP_ROLE | Privileges::CREATE_USER),
            S::AlterUser { users, if_exists: _, options } => {
                let only_password = **options == AccountOptions::default();
                let own = |spec: &UserSpec| only_password && is_own(&spec.user, account);
                if !users.iter().all(own) {
                    self.server(Privileges::CREATE_USER);
                } else if users.iter().any(|spec| spec.retains || spec.discards) {
                    self.server(Privileges::APPLICATION_PASSWORD_ADMIN | Privileges::CREATE_USER);
                }
            }
            S::SetPassword { user, retains, .. } => {
                // As if the grant tables were changed.
                if user.as_ref().is_some_and(|user| !is_own(user, account)) {
                    self.list.push(Need::Database { database: "mysql".into(), all: Privileges::UPDATE });
                } else if *retains {
                    self.server(Privileges::APPLICATION_PASSWORD_ADMIN | Privileges::CREATE_USER);
                }
            }
            S::SetDefaultRole { users, .. } => {
                if !users.iter().all(|user| is_own(user, account)) {
                    self.server(Privileges::CREATE_USER);
                }
            }
            S::Flush(what) => {
                let one = match what.as_slice() {
                    ["PRIVILEGES"] => Privileges::FLUSH_PRIVILEGES,
                    ["STATUS"] => Privileges::FLUSH_STATUS,
                    ["TABLES" | "TABLE", ..] => Privileges::FLUSH_TABLES,
                    ["USER_RESOURCES"] => Privileges::FLUSH_USER_RESOURCES,
                    _ => Privileges::NONE,
                };
                self.server(Privileges::RELOAD | one);
            }
            S::ResetLogs { .. } => self.server(Privileges::RELOAD | Privileges::FLUSH_TABLES),
            S::Do(exprs) => Reader::new(self, STATEMENT).exprs(exprs),
            S::DropProgram { kind, name, .. } => match kind {
                ProgramKind::Procedure | ProgramKind::Function => {
                    if let Some(database) = self.database_of(name) {
                        let routine = name.name.name.clone();
                        self.list.push(Need::Routine { database, routine, privilege: Privileges::ALTER_ROUTINE });
                    }
                }
                ProgramKind::Trigger => {}
                ProgramKind::Event => self.database(name.database.as_ref(), Privileges::EVENT),
            },
            S::Call { name, arguments } => {
                if let Some(database) = self.database_of(name) {
                    let routine = name.name.name.clone();
                    self.list.push(Need::Routine { database, routine, privilege: Privileges::EXECUTE });
                }
                Reader::new(self, STATEMENT).exprs(arguments);
            }
            S::Analyze(names) | S::Optimize(names) | S::Repair(names) => {
                names.iter().for_each(|name| self.table(name, Privileges::SELECT | Privileges::INSERT));
            }
            // Its answer has values of rows.
            S::CheckReplication { .. } => self.server(Privileges::SUPER),
            S::ChangeSource(_) | S::StartReplica { .. } | S::StopReplica { .. } | S::PromoteReplica(_) => {
                self.server(Privileges::SUPER);
            }
            S::ResetReplica { first_log: Some(_), .. } => {
                self.server(Privileges::RELOAD | Privileges::FLUSH_TABLES);
            }
            S::ResetReplica { .. } => self.server(Privileges::RELOAD),
            S::Check { tables, .. } => {
                tables.iter().for_each(|name| self.listed(name));
            }
            S::Checksum { tables, .. } => {
                tables.iter().for_each(|name| self.table(name, Privileges::SELECT));
            }
            // These look at what they grant, and on what, or at what the account was granted.
            S::Grant { .. }
            | S::Revoke { .. }
            | S::GrantRoles { .. }
            | S::RevokeRoles { .. }
            | S::SetRole(_) => {}
            // What is prepared is checked when it runs.
            S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => {}
            S::Empty
            | S::Comment
            | S::Begin { .. }
            | S::Commit(_)
            | S::Rollback(_)
            | S::Savepoint(_)
            | S::RollbackTo(_)
            | S::ReleaseSavepoint(_)
            | S::UnlockTables
            | S::Help(_)
            // Whether it needs any depends on what is persisted.
            | S::ResetPersist { .. }
            | S::Unsupported(_)
            | S::Refused(_) => {}
            S::RefusedPartitions { table, .. } => self.table(table, Privileges::INSERT),
        }
    }

    fn database_of(&self, name: &ObjectName) -> Option<String> {
        name.database.as_ref().map(|database| database.name.clone()).or_else(|| self.current.clone())
    }

    fn server(&mut self, any: Privileges) {
        self.list.push(Need::Server { any });
    }

    fn database(&mut self, name: Option<&Ident>, all: Privileges) {
        if let Some(database) = name.map(|name| name.name.clone()).or_else(|| self.current.clone()) {
            self.list.push(Need::Database { database, all });
        }
    }

    fn use_database(&mut self, name: Option<&Ident>) {
        if let Some(database) = name.map(|name| name.name.clone()).or_else(|| self.current.clone()) {
            self.list.push(Need::Use { database });
        }
    }

    fn table(&mut self, name: &ObjectName, all: Privileges) {
        if let Some(database) = self.database_of(name) {
            self.list.push(Need::Table { database, table: name.name.name.clone(), all });
        }
    }

    fn any_on_table(&mut self, name: &ObjectName, any: Privileges, said: &'static str) {
        if let Some(database) = self.database_of(name) {
            self.list.push(Need::AnyOnTable { database, table: name.name.name.clone(), any, said });
        }
    }

    fn listed(&mut self, name: &ObjectName) {
        if let Some(database) = self.database_of(name) {
            self.list.push(Need::Listed { database, table: name.name.name.clone() });
        }
    }

    fn columns(&mut self, name: &ObjectName, all: Privileges) {
        if let Some(database) = self.database_of(name) {
            self.list.push(Need::Columns { database, table: name.name.name.clone(), all });
        }
    }

    /// A table that a query reads.
    pub(super) fn read(&mut self, name: &ObjectName) {
        self.columns(name, Privileges::SELECT);
    }

    /// A table that columns in a block can be of.
    pub(super) fn source(&mut self, block: usize, name: &ObjectName, called: &str) {
        if let Some(database) = self.database_of(name) {
            let rows = match schemas::is_open(&database) {
                // Everybody may read it.
                true => Rows::Derived(None),
                false => Rows::Stored { database, table: name.name.name.clone() },
            };
            self.reads.source(block, called, rows);
        }
    }

    /// A table whose rows a query locks as if to change them.
    pub(super) fn lock_rows(&mut self, name: &ObjectName) {
        let any = Privileges::UPDATE | Privileges::DELETE | Privileges::LOCK_TABLES;
        self.any_on_table(name, any, "SELECT, with locking clause");
    }

    fn insert(&mut self, insert: &Insert) {
        let mut all = Privileges::INSERT;
        if insert.replace {
            all |= Privileges::DELETE;
        }
        if !insert.on_duplicate.is_empty() {
            all |= Privileges::UPDATE;
        }
        self.columns(&insert.table, all);
        self.inserted(&insert.table, insert.columns.as_deref());
        for assignment in &insert.on_duplicate {
            self.column(&insert.table, Some(&assignment.column), Privileges::UPDATE);
        }
        let mut reader = Reader::new(self, STATEMENT);
        let first = match &insert.source {
            // They see no columns but those that they give.
            InsertSource::Values(rows) => {
                reader.exprs(rows.iter().flatten());
                None
            }
            InsertSource::Query(query) => Some(reader.query(query)),
        };
        if !insert.on_duplicate.is_empty() {
            let block = self.reads.block(None);
            self.source(block, &insert.table, &insert.table.name.name);
            first.into_iter().for_each(|first| self.reads.share(first, block));
            let values = insert.on_duplicate.iter().map(|assignment| &assignment.value);
            Reader::new(self, block).exprs(values);
        }
    }

    /// Columns that get values: these, or all.
    fn inserted(&mut self, table: &ObjectName, columns: Option<&[Ident]>) {
        match columns {
            Some(columns) if !columns.is_empty() => {
                columns.iter().for_each(|column| self.column(table, Some(column), Privileges::INSERT));
            }
            _ => self.column(table, None, Privileges::INSERT),
        }
    }

    fn load(&mut self, load: &LoadData) {
        if !load.local {
            self.list.push(Need::File);
        }
        let replaces = match load.on_duplicate {
            OnDuplicateKey::Replace => Privileges::DELETE,
            OnDuplicateKey::Fail | OnDuplicateKey::Ignore => Privileges::NONE,
        };
        self.columns(&load.table, Privileges::INSERT | replaces);
        match &load.targets {
            None => self.inserted(&load.table, None),
            Some(targets) => {
                for target in targets {
                    if let LoadTarget::Column(column) = target {
                        self.column(&load.table, Some(column), Privileges::INSERT);
                    }
                }
            }
        }
        for assignment in &load.assignments {
            self.column(&load.table, Some(&assignment.column), Privileges::INSERT);
        }
        self.source(STATEMENT, &load.table, &load.table.name.name);
        Reader::new(self, STATEMENT).exprs(load.assignments.iter().map(|assignment| &assignment.value));
    }

    fn column(&mut self, name: &ObjectName, column: Option<&Ident>, privilege: Privileges) {
        if let Some(database) = self.database_of(name) {
            let (table, column) = (name.name.name.clone(), column.map(|column| column.name.clone()));
            self.list.push(Need::Column { database, table, column, privilege });
        }
    }

    fn update(&mut self, update: &Update) {
        if let [TableRef::Table { name, alias, .. }] = update.tables.as_slice() {
            self.columns(name, Privileges::UPDATE);
            for assignment in &update.assignments {
                self.column(name, Some(&assignment.column), Privileges::UPDATE);
            }
            self.source(STATEMENT, name, &alias.as_ref().unwrap_or(&name.name).name);
            let mut reader = Reader::new(self, STATEMENT);
            update.with.iter().for_each(|with| reader.with(with));
            reader.exprs(update.assignments.iter().map(|assignment| &assignment.value));
            reader.exprs(&update.filter);
            reader.exprs(update.order_by.iter().map(|item| &item.expr));
            reader.limit(update.limit.as_ref());
            return;
        }
        // Of several tables something is needed of each; what, the columns tell.
        let mut tables = Vec::new();
        update.tables.iter().for_each(|table| stored(table, update.with.as_ref(), &mut tables));
        for (name, called) in &tables {
            self.any_on_table(name, Privileges::SELECT | Privileges::UPDATE, "UPDATE");
            self.source(STATEMENT, name, called);
        }
        let is_called = |table: Option<&Ident>, called: &str| table.is_none_or(|table| table.name == called);
        for (name, called) in &tables {
            for assignment in &update.assignments {
                if is_called(assignment.table.as_ref().map(|of| &of.name), called) {
                    self.column(name, Some(&assignment.column), Privileges::UPDATE);
                }
            }
        }
        let mut reader = Reader::new(self, STATEMENT);
        update.with.iter().for_each(|with| reader.with(with));
        update.tables.iter().for_each(|table| reader.derived_tables(table));
        update.tables.iter().for_each(|table| reader.conditions(table));
        reader.exprs(update.assignments.iter().map(|assignment| &assignment.value));
        reader.exprs(&update.filter);
    }

    fn delete(&mut self, delete: &Delete) {
        if let ([], [TableRef::Table { name, alias, .. }]) =
            (delete.targets.as_slice(), delete.from.as_slice())
        {
            self.table(name, Privileges::DELETE);
            self.source(STATEMENT, name, &alias.as_ref().unwrap_or(&name.name).name);
            let mut reader = Reader::new(self, STATEMENT);
            delete.with.iter().for_each(|with| reader.with(with));
            reader.exprs(&delete.filter);
            reader.exprs(delete.order_by.iter().map(|item| &item.expr));
            reader.limit(delete.limit.as_ref());
            return;
        }
        for target in &delete.targets {
            let mut meant = Vec::new();
            delete.from.iter().for_each(|table| named(table, target, &mut meant));
            if meant.is_empty() {
                meant.push(target);
            }
            meant.into_iter().for_each(|name| self.table(name, Privileges::DELETE));
        }
        let mut reader = Reader::new(self, STATEMENT);
        delete.with.iter().for_each(|with| reader.with(with));
        delete.from.iter().for_each(|table| reader.table_ref(table, &[]));
        delete.from.iter().for_each(|table| reader.conditions(table));
        reader.exprs(&delete.filter);
    }

    fn creation(&mut self, name: &ObjectName, temporary: bool, more: Privileges) {
        if temporary {
            self.database(name.database.as_ref(), Privileges::CREATE_TEMPORARY_TABLES);
        } else {
            self.table(name, Privileges::CREATE | more);
        }
    }

    fn create_table(&mut self, create: &CreateTable) {
        let more = if create.query.is_some() { Privileges::INSERT } else { Privileges::NONE };
        self.creation(&create.name, create.temporary, more);
        let of_columns = create.columns.iter().filter_map(|column| column.references.as_ref());
        let of_keys = create.foreign_keys.iter().map(|key| &key.references);
        of_columns.chain(of_keys).for_each(|reference| self.reference(&create.name, reference));
        if let Some(query) = &create.query {
            Reader::new(self, STATEMENT).query(query);
        }
    }

    /// A foreign key of a table: its parent is in the table's database if it does not say where.
    fn reference(&mut self, child: &ObjectName, reference: &Reference) {
        let mut parent = reference.table.clone();
        if parent.database.is_none() {
            parent.database.clone_from(&child.database);
        }
        self.any_on_table(&parent, Privileges::REFERENCES, "REFERENCES");
        for column in &reference.columns {
            self.column(&parent, Some(column), Privileges::REFERENCES);
        }
    }

    fn alter_table(&mut self, name: &ObjectName, actions: &[AlterAction]) {
        let needed = |action: &AlterAction| match action {
            AlterAction::RenameTable(_) | AlterAction::Partitions(PartitionChange::Drop(_)) => {
                Privileges::ALTER | Privileges::DROP
            }
            // As TRUNCATE TABLE.
            AlterAction::Partitions(PartitionChange::Truncate(_)) => Privileges::DROP,
            _ => Privileges::ALTER,
        };
        let needed = actions.iter().map(needed).reduce(|a, b| a | b);
        self.table(name, needed.unwrap_or(Privileges::ALTER));
        for action in actions {
            match action {
                AlterAction::RenameTable(to) => {
                    let mut to = to.clone();
                    if to.database.is_none() {
                        to.database.clone_from(&name.database);
                    }
                    self.table(&to, Privileges::CREATE | Privileges::INSERT);
                }
                AlterAction::AddForeignKey(key) => self.reference(name, &key.references),
                AlterAction::AddColumn { column, .. }
                | AlterAction::ModifyColumn { column, .. }
                | AlterAction::ChangeColumn { column, .. } => {
                    column.references.iter().for_each(|reference| self.reference(name, reference));
                }
                AlterAction::AddIndex(_)
                | AlterAction::AddCheck(_)
                | AlterAction::DropColumn(_)
                | AlterAction::DropIndex(_)
                | AlterAction::DropPrimaryKey
                | AlterAction::DropForeignKey(_)
                | AlterAction::DropConstraint(_)
                | AlterAction::DropCheck(_)
                | AlterAction::SetVisible { .. }
                | AlterAction::SetIndexVisible { .. }
                | AlterAction::EnforceCheck { .. }
                | AlterAction::RenameColumn { .. }
                | AlterAction::RenameIndex { .. }
                | AlterAction::SetDefault { .. }
                | AlterAction::ConvertCharset { .. }
                | AlterAction::Unneeded(_)
                | AlterAction::How(_)
                | AlterAction::Partitions(_)
                | AlterAction::Options(_) => {}
            }
        }
    }

    fn set(&mut self, item: &SetItem) {
        let scope = match item {
            SetItem::Variable { scope, name, value } => {
                Reader::new(self, STATEMENT).exprs(value);
                let is_of_session = matches!(scope, VariableScope::Session | VariableScope::Default);
                if is_of_session && variables::is_restricted(name) {
                    let admin = Privileges::SYSTEM_VARIABLES_ADMIN | Privileges::SESSION_VARIABLES_ADMIN;
                    self.server(Privileges::SUPER | admin);
                }
                // What such roles hold, everybody may make active.
                if name == variables::MANDATORY_ROLES && !is_of_session {
                    self.server(Privileges::ROLE_ADMIN);
                }
                *scope
            }
            SetItem::UserVariable { value, .. } => {
                Reader::new(self, STATEMENT).expr(value);
                VariableScope::Session
            }
            SetItem::Transaction { scope, .. } => *scope,
            SetItem::Names { .. } | SetItem::CharacterSet(_) => VariableScope::Session,
        };
        match scope {
            VariableScope::Global | VariableScope::Persist | VariableScope::PersistOnly => {
                self.server(Privileges::SUPER | Privileges::SYSTEM_VARIABLES_ADMIN);
            }
            VariableScope::Session | VariableScope::Default => {}
        }
    }

    fn show(&mut self, show: &Show) {
        match &show.filter {
            ShowFilter::Where(expr) => Reader::new(self, STATEMENT).expr(expr),
            ShowFilter::None | ShowFilter::Like(_) => {}
        }
        match &show.kind {
            ShowKind::Tables { database, full: _ } | ShowKind::TableStatus { database } => {
                self.use_database(database.as_ref());
            }
            ShowKind::Columns { table, full: _ } | ShowKind::Indexes { table } => {
                self.listed(table);
            }
            ShowKind::CreateTable(name) | ShowKind::CreateView(name) => {
                if let Some(database) = self.database_of(name) {
                    self.list.push(Need::Definition { database, table: name.name.name.clone() });
                }
            }
            ShowKind::CreateDatabase { name, .. } => self.use_database(Some(name)),
            ShowKind::Events { database } => self.database(database.as_ref(), Privileges::EVENT),
            ShowKind::Triggers { database } => self.use_database(database.as_ref()),
            // The account's own are shown to everybody.
            ShowKind::Grants { .. } | ShowKind::CreateUser(_) => {}
            // They list what the account may see.
            ShowKind::Databases | ShowKind::Processlist { .. } => {}
            ShowKind::ReplicaStatus { .. } => {
                self.server(Privileges::SUPER | Privileges::REPLICATION_CLIENT);
            }
            ShowKind::LogEvents(_) => self.server(Privileges::REPLICATION_SLAVE),
            ShowKind::Other(words) => match words.as_str() {
                "MASTER STATUS" | "BINARY LOG STATUS" | "BINARY LOGS" | "MASTER LOGS" | "SLAVE STATUS" => {
                    self.server(Privileges::SUPER | Privileges::REPLICATION_CLIENT);
                }
                "REPLICAS" => self.server(Privileges::REPLICATION_SLAVE),
                _ => {}
            },
            ShowKind::Variables(_)
            | ShowKind::Status(_)
            | ShowKind::Warnings { .. }
            | ShowKind::Errors { .. }
            | ShowKind::CountWarnings
            | ShowKind::CountErrors
            | ShowKind::Engines
            | ShowKind::Charset
            | ShowKind::Collation
            | ShowKind::Plugins
            | ShowKind::Privileges => {}
        }
    }
}

/// Whether a name in a statement means the session's own account.
pub(super) fn is_own(user: &UserName, account: &AccountName) -> bool {
    match user {
        UserName::CurrentUser => true,
        UserName::Named { name, host } => *name == account.user && *host == account.host,
    }
}

/// The stored tables of a join, and what they are called in it.
fn stored<'t>(table: &'t TableRef, with: Option<&With>, to: &mut Vec<(&'t ObjectName, &'t str)>) {
    match table {
        TableRef::Table { name, alias, .. } => {
            let called = alias.as_ref().unwrap_or(&name.name);
            let is_cte = |with: &With| {
                name.database.is_none() && with.ctes.iter().any(|cte| cte.name.name == name.name.name)
            };
            if !with.is_some_and(is_cte) {
                to.push((name, &called.name));
            }
        }
        TableRef::Derived { .. } => {}
        TableRef::Join(join) => {
            stored(&join.left, with, to);
            stored(&join.right, with, to);
        }
    }
}

/// The tables of a join that a target of DELETE can mean.
fn named<'t>(table: &'t TableRef, target: &ObjectName, to: &mut Vec<&'t ObjectName>) {
    match table {
        TableRef::Table { name, alias, .. } => {
            let called = alias.as_ref().unwrap_or(&name.name);
            if called.name == target.name.name {
                to.push(name);
            }
        }
        TableRef::Derived { .. } => {}
        TableRef::Join(join) => {
            named(&join.left, target, to);
            named(&join.right, target, to);
        }
    }
}
