//! What each statement needs, told from its text.

use avocet_engine::Privileges;

use super::tables::{ReadColumn, Reader};
use crate::parse::ast::{Ident, ObjectName, TableRef, VariableScope, With};
use crate::parse::statement::*;
use crate::session::api::AccountName;

/// One thing that an account must be allowed for a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) enum Need {
    /// Any of these, for the whole server.
    Server {
        any: Privileges,
    },
    /// To read and write files of the server.
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
    /// Any of these on a table; `said` is what is denied otherwise.
    AnyOnTable {
        database: String,
        table: String,
        any: Privileges,
        said: &'static str,
    },
    /// To read or change a column of a table that something may be done with.
    Column {
        database: String,
        table: String,
        column: String,
        privilege: Privileges,
    },
    /// To read a column that is named without a table: if none of the `inner` tables has it, of each of the others that has.
    FreeColumn {
        column: String,
        inner: Vec<(String, String)>,
        others: Vec<(String, String)>,
    },
    Routine {
        database: String,
        routine: String,
    },
}

/// The needs of a statement, while they are collected.
pub(super) struct Needs {
    current: Option<String>,
    list: Vec<Need>,
}

/// The needs of a statement. Who has no default database is told so by the statement itself.
pub(super) fn of(kind: &StatementKind, current: Option<&str>, account: &AccountName) -> Vec<Need> {
    let mut needs = Needs { current: current.map(str::to_owned), list: Vec::new() };
    needs.statement(kind, account);
    needs.list
}

impl Needs {
    fn statement(&mut self, kind: &StatementKind, account: &AccountName) {
        use StatementKind as S;
        match kind {
            S::Query(query) => Reader::new(self).query(query),
            S::SelectInto { query, into } => {
                match &**into {
                    SelectInto::Variables(_) => {}
                    SelectInto::Outfile { .. } | SelectInto::Dumpfile(_) => self.list.push(Need::File),
                }
                Reader::new(self).query(query);
            }
            S::Insert(insert) => self.insert(insert),
            S::LoadData(load) => self.load(load),
            S::Update(update) => self.update(update),
            S::Delete(delete) => self.delete(delete),
            S::CreateTable(create) => self.create_table(create),
            S::CreateTableLike { name, like, if_not_exists: _, temporary } => {
                self.creation(name, *temporary, Privileges::NONE);
                self.read(like);
            }
            S::DropTable { names, if_exists: _, temporary } => {
                // Temporary tables are the session's own.
                if !*temporary {
                    names.iter().for_each(|name| self.table(name, Privileges::DROP));
                }
            }
            S::DropView { names, if_exists: _ } => {
                names.iter().for_each(|name| self.table(name, Privileges::DROP));
            }
            S::AlterTable { name, actions } => self.alter_table(name, actions),
            S::RenameTable(pairs) => pairs.iter().for_each(|(from, to)| {
                self.table(from, Privileges::ALTER | Privileges::DROP);
                self.table(to, Privileges::CREATE | Privileges::INSERT);
            }),
            S::TruncateTable(name) => self.table(name, Privileges::DROP),
            S::CreateIndex { table, .. } | S::DropIndex { table, .. } => self.table(table, Privileges::INDEX),
            S::CreateDatabase { name, .. } => self.database(Some(name), Privileges::CREATE),
            S::AlterDatabase { name, .. } => self.database(name.as_ref(), Privileges::ALTER),
            S::DropDatabase { name, .. } => self.database(Some(name), Privileges::DROP),
            S::Use(name) => self.use_database(Some(name)),
            S::Set(items) => items.iter().for_each(|item| self.set(item)),
            S::Show(show) => self.show(show),
            S::Describe { table, column: _ } => self.any_on_table(table, Privileges::OF_TABLES, "SELECT"),
            S::Explain { statement, .. } => self.statement(&statement.kind, account),
            S::LockTables(tables) => {
                for (name, ..) in tables {
                    self.database(name.database.as_ref(), Privileges::LOCK_TABLES);
                    self.table(name, Privileges::SELECT);
                }
            }
            S::Kill { connection, .. } => Reader::new(self).expr(connection),
            S::CreateUser { .. } | S::DropUser { .. } | S::RevokeAll { .. } => {
                self.server(Privileges::CREATE_USER);
            }
            S::AlterUser { users, if_exists: _, options } => {
                let only_password = options.locked.is_none();
                let own = |spec: &UserSpec| only_password && is_own(&spec.user, account);
                if !users.iter().all(own) {
                    self.server(Privileges::CREATE_USER);
                }
            }
            S::SetPassword { user, password: _ } => {
                // As if the grant tables were changed.
                if user.as_ref().is_some_and(|user| !is_own(user, account)) {
                    self.list.push(Need::Database { database: "mysql".into(), all: Privileges::UPDATE });
                }
            }
            S::Flush(_) => self.server(Privileges::RELOAD),
            S::Do(exprs) => Reader::new(self).exprs(exprs),
            S::Call { name, arguments } => {
                if let Some(database) = self.database_of(name) {
                    self.list.push(Need::Routine { database, routine: name.name.name.clone() });
                }
                Reader::new(self).exprs(arguments);
            }
            S::Analyze(names) | S::Optimize(names) => {
                names.iter().for_each(|name| self.table(name, Privileges::SELECT | Privileges::INSERT));
            }
            S::Check(names) => {
                names.iter().for_each(|name| self.any_on_table(name, Privileges::OF_TABLES, "SELECT"));
            }
            // These look at what they grant, and on what.
            S::Grant { .. } | S::Revoke { .. } => {}
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
            | S::Unsupported(_)
            | S::Refused(_) => {}
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

    /// A table that a query reads.
    pub(super) fn read(&mut self, name: &ObjectName) {
        self.table(name, Privileges::SELECT);
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
        self.table(&insert.table, all);
        let mut reader = Reader::new(self);
        match &insert.source {
            InsertSource::Values(rows) => reader.exprs(rows.iter().flatten()),
            InsertSource::Query(query) => reader.query(query),
        }
        // Columns of a query's tables may be meant, which need the same privilege.
        reader.columns.clear();
        reader.exprs(insert.on_duplicate.iter().map(|assignment| &assignment.value));
        let columns = std::mem::take(&mut reader.columns);
        self.columns(&insert.table, &columns);
    }

    fn load(&mut self, load: &LoadData) {
        if !load.local {
            self.list.push(Need::File);
        }
        let replaces = match load.on_duplicate {
            OnDuplicateKey::Replace => Privileges::DELETE,
            OnDuplicateKey::Fail | OnDuplicateKey::Ignore => Privileges::NONE,
        };
        self.table(&load.table, Privileges::INSERT | replaces);
        let mut reader = Reader::new(self);
        reader.exprs(load.assignments.iter().map(|assignment| &assignment.value));
        let columns = std::mem::take(&mut reader.columns);
        self.columns(&load.table, &columns);
    }

    /// To read columns of the only table around.
    fn columns(&mut self, name: &ObjectName, columns: &[ReadColumn<'_>]) {
        for read in columns {
            match read.table.is_none() && !read.inner.is_empty() {
                true => self.free_column(read, &[(name, &name.name.name)]),
                false => self.column(name, read.column, Privileges::SELECT),
            }
        }
    }

    fn free_column(&mut self, read: &ReadColumn<'_>, others: &[(&ObjectName, &str)]) {
        let full = |name: &ObjectName| Some((self.database_of(name)?, name.name.name.clone()));
        let inner = read.inner.iter().filter_map(|name| full(name)).collect();
        let others = others.iter().filter_map(|(name, _)| full(name)).collect();
        self.list.push(Need::FreeColumn { column: read.column.name.clone(), inner, others });
    }

    fn column(&mut self, name: &ObjectName, column: &Ident, privilege: Privileges) {
        if let Some(database) = self.database_of(name) {
            let (table, column) = (name.name.name.clone(), column.name.clone());
            self.list.push(Need::Column { database, table, column, privilege });
        }
    }

    fn update(&mut self, update: &Update) {
        if let [TableRef::Table { name, .. }] = update.tables.as_slice() {
            self.table(name, Privileges::UPDATE);
            let mut reader = Reader::new(self);
            update.with.iter().for_each(|with| reader.with(with));
            reader.exprs(update.assignments.iter().map(|assignment| &assignment.value));
            reader.exprs(&update.filter);
            reader.exprs(update.order_by.iter().map(|item| &item.expr));
            reader.limit(update.limit.as_ref());
            let columns = std::mem::take(&mut reader.columns);
            return self.columns(name, &columns);
        }
        // Of several tables something is needed of each; what, the columns tell.
        let mut tables = Vec::new();
        update.tables.iter().for_each(|table| stored(table, update.with.as_ref(), &mut tables));
        for (name, _) in &tables {
            self.any_on_table(name, Privileges::SELECT | Privileges::UPDATE, "UPDATE");
        }
        let mut reader = Reader::new(self);
        update.with.iter().for_each(|with| reader.with(with));
        update.tables.iter().for_each(|table| reader.table_ref_of_columns(table));
        reader.exprs(update.assignments.iter().map(|assignment| &assignment.value));
        reader.exprs(&update.filter);
        let columns = std::mem::take(&mut reader.columns);
        let is_called = |table: Option<&Ident>, called: &str| {
            table.is_none_or(|table| table.name.eq_ignore_ascii_case(called))
        };
        for (name, called) in &tables {
            for assignment in &update.assignments {
                if is_called(assignment.table.as_ref().map(|of| &of.name), called) {
                    self.column(name, &assignment.column, Privileges::UPDATE);
                }
            }
        }
        for read in &columns {
            if read.table.is_none() {
                self.free_column(read, &tables);
                continue;
            }
            for (name, _) in tables.iter().filter(|(_, called)| is_called(read.table, called)) {
                self.column(name, read.column, Privileges::SELECT);
            }
        }
    }

    fn delete(&mut self, delete: &Delete) {
        if let ([], [TableRef::Table { name, .. }]) = (delete.targets.as_slice(), delete.from.as_slice()) {
            self.table(name, Privileges::DELETE);
            let mut reader = Reader::new(self);
            delete.with.iter().for_each(|with| reader.with(with));
            reader.exprs(&delete.filter);
            reader.exprs(delete.order_by.iter().map(|item| &item.expr));
            reader.limit(delete.limit.as_ref());
            let columns = std::mem::take(&mut reader.columns);
            return self.columns(name, &columns);
        }
        for target in &delete.targets {
            let mut meant = Vec::new();
            delete.from.iter().for_each(|table| named(table, target, &mut meant));
            if meant.is_empty() {
                meant.push(target);
            }
            meant.into_iter().for_each(|name| self.table(name, Privileges::DELETE));
        }
        let mut reader = Reader::new(self);
        delete.with.iter().for_each(|with| reader.with(with));
        delete.from.iter().for_each(|table| reader.table_ref(table, None));
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
            Reader::new(self).query(query);
        }
    }

    /// A foreign key of a table: its parent is in the table's database if it does not say where.
    fn reference(&mut self, child: &ObjectName, reference: &Reference) {
        let mut parent = reference.table.clone();
        if parent.database.is_none() {
            parent.database.clone_from(&child.database);
        }
        self.any_on_table(&parent, Privileges::REFERENCES, "REFERENCES");
    }

    fn alter_table(&mut self, name: &ObjectName, actions: &[AlterAction]) {
        let renames = actions.iter().any(|action| matches!(action, AlterAction::RenameTable(_)));
        let more = if renames { Privileges::DROP } else { Privileges::NONE };
        self.table(name, Privileges::ALTER | more);
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
                | AlterAction::RenameColumn { .. }
                | AlterAction::RenameIndex { .. }
                | AlterAction::SetDefault { .. }
                | AlterAction::ConvertCharset { .. }
                | AlterAction::Nothing
                | AlterAction::How(_)
                | AlterAction::Options(_) => {}
            }
        }
    }

    fn set(&mut self, item: &SetItem) {
        let scope = match item {
            SetItem::Variable { scope, value, .. } => {
                Reader::new(self).exprs(value);
                *scope
            }
            SetItem::UserVariable { value, .. } => {
                Reader::new(self).expr(value);
                VariableScope::Session
            }
            SetItem::Transaction { scope, .. } => *scope,
            SetItem::Names { .. } | SetItem::CharacterSet(_) => VariableScope::Session,
        };
        match scope {
            VariableScope::Global | VariableScope::Persist => {
                self.server(Privileges::SUPER | Privileges::SYSTEM_VARIABLES_ADMIN);
            }
            VariableScope::Session | VariableScope::Default => {}
        }
    }

    fn show(&mut self, show: &Show) {
        match &show.filter {
            ShowFilter::Where(expr) => Reader::new(self).expr(expr),
            ShowFilter::None | ShowFilter::Like(_) => {}
        }
        match &show.kind {
            ShowKind::Tables { database, full: _ } | ShowKind::TableStatus { database } => {
                self.use_database(database.as_ref());
            }
            ShowKind::Columns { table, full: _ } | ShowKind::Indexes { table } => {
                self.any_on_table(table, Privileges::OF_TABLES, "SELECT");
            }
            ShowKind::CreateTable(table) => self.any_on_table(table, Privileges::OF_TABLES, "SHOW"),
            ShowKind::CreateDatabase { name, .. } => self.use_database(Some(name)),
            // The account's own are shown to everybody.
            ShowKind::Grants(_) | ShowKind::CreateUser(_) => {}
            // They list what the account may see.
            ShowKind::Databases | ShowKind::Processlist { .. } => {}
            ShowKind::Other(words) => match words.as_str() {
                "MASTER STATUS" | "BINARY LOG STATUS" | "REPLICA STATUS" | "SLAVE STATUS" => {
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
                name.database.is_none()
                    && with.ctes.iter().any(|cte| cte.name.name.eq_ignore_ascii_case(&name.name.name))
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
            if called.name.eq_ignore_ascii_case(&target.name.name) {
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
