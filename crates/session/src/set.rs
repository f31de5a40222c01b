//! SET in all its forms, DO, KILL.

use avocet_channel::Interruption;
use avocet_channel::blocking::blocking;
use avocet_engine::Privileges;
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::{self, VariableScope};
use avocet_sql::parse::statement::{IsolationLevel, SetItem};
use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::RowProgram;
use avocet_types::{Collation, Datum, SqlType, Value};

use super::privileges::Need;
use super::run::{Outcome, Text};
use super::select::Purpose;
use super::settings::collation_of;
use super::sql_mode;
use super::state::{Characteristics, Level, Session};
use super::variables::{Effect, Kind, Scope, VARIABLES, find, int, known};

/// What an item of a SET does, after it was found to be right.
enum Change<'i> {
    Variable {
        scope: VariableScope,
        name: &'i str,
        position: usize,
        /// `None` for the server's value at the time when it is set.
        value: Option<Value>,
    },
    UserVariable {
        name: &'i str,
        value: (Value, SqlType),
    },
    Charsets {
        client: Charset,
        /// `None` for that of the database.
        connection: Option<Collation>,
    },
    Transaction {
        scope: VariableScope,
        of: Characteristics,
    },
}

impl Session {
    /// MySQL evaluates and checks all of a SET before it changes anything: a later item does not see an earlier one's value, and
    /// an error leaves everything as it was.
    pub(super) async fn set(&mut self, items: &[SetItem], text: &Text<'_>) -> Result<Outcome, SqlError> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(match item {
                SetItem::Variable { value: Some(value), .. } | SetItem::UserVariable { value, .. } => {
                    Some(self.value_of(value, text).await?)
                }
                _ => None,
            });
        }
        let mut checked = Vec::with_capacity(items.len());
        for (item, value) in items.iter().zip(values) {
            checked.push(self.check_item(item, value)?);
        }
        for change in checked {
            self.apply(change).await?;
        }
        for item in items {
            if let SetItem::Variable { scope: VariableScope::Persist, name, .. } = item {
                let position = find(name)?;
                self.persist(position, &self.variables.globals.get(position))?;
            }
        }
        Ok(Outcome::ok())
    }

    fn check_item<'i>(
        &mut self,
        item: &'i SetItem,
        value: Option<(Value, SqlType)>,
    ) -> Result<Change<'i>, SqlError> {
        match item {
            SetItem::Variable { scope, name, .. } => self.check_variable(*scope, name, value),
            SetItem::UserVariable { name, .. } => {
                Ok(Change::UserVariable { name, value: value.unwrap_or((Datum::Null, SqlType::Null)) })
            }
            SetItem::Names { charset, collation } => {
                self.check_names(charset.as_deref(), collation.as_deref())
            }
            SetItem::CharacterSet(charset) => self.check_character_set(charset.as_deref()),
            SetItem::Transaction { scope, isolation, read_only } => {
                let of = Characteristics { level: *isolation, read_only: *read_only };
                match scope {
                    VariableScope::Default => self.check_no_transaction()?,
                    VariableScope::Persist | VariableScope::PersistOnly => {
                        return Err(ErrorCode::CANNOT_PERSIST_TRANSACTION_ISOLATION.with(&[]));
                    }
                    VariableScope::Global | VariableScope::Session => {}
                }
                Ok(Change::Transaction { scope: *scope, of })
            }
        }
    }

    async fn apply(&mut self, change: Change<'_>) -> Result<(), SqlError> {
        match change {
            Change::Variable { scope, name, position, value } => {
                self.set_variable(scope, name, position, value).await
            }
            Change::UserVariable { name, value } => {
                self.user_variables.insert(name.to_owned(), value, self.settings.time_zone)
            }
            Change::Charsets { client, connection } => {
                let of_database = || match self.variables.own.by_name("collation_database") {
                    Datum::Str(name) => Collation::by_name(name).unwrap_or(Collation::DEFAULT),
                    _ => Collation::DEFAULT,
                };
                let connection = connection.unwrap_or_else(of_database);
                self.put_charsets(client, connection);
                Ok(())
            }
            Change::Transaction { scope, of } => {
                self.set_transaction(scope, of);
                Ok(())
            }
        }
    }

    /// The value of an expression on its own; it may hold subqueries.
    pub(super) async fn value_of(
        &mut self,
        expr: &ast::Expr,
        text: &Text<'_>,
    ) -> Result<(Value, SqlType), SqlError> {
        let query = ast::Query::select_of([expr.clone()]);
        let bound = self.bind_now(&query, text)?;
        if let avocet_sql::plan::QueryBody::Select(select) = &bound.query.body.body
            && select.subqueries.is_empty()
            && select.aggregation.is_none()
            && let [projected] = select.projection.as_slice()
        {
            let program = RowProgram::compile(&projected.expr)?;
            let value = program.eval_const(text.params, &self.context)?.into_owned();
            return Ok((value, *program.ty()));
        }
        let mut rows = self.collected();
        let mark = self.begin_query(bound.reads_tables())?;
        let result = async {
            let (bound, tables) = self.hold_bound(bound, &query, text)?;
            self.run_bound(bound, tables, text, &mut rows, Purpose::Value).await
        }
        .await;
        self.end_query(mark, result).await?;
        let mut value = (Datum::Null, SqlType::Null);
        rows.for_each(&mut |mut row| {
            value = row.swap_remove(0);
            Ok(())
        })?;
        Ok(value)
    }

    fn check_variable<'i>(
        &mut self,
        scope: VariableScope,
        name: &'i str,
        value: Option<(Value, SqlType)>,
    ) -> Result<Change<'i>, SqlError> {
        let position = find(name)?;
        let variable = &VARIABLES[position];
        variable.check_set(scope, self.is_on_behalf())?;
        let global =
            matches!(scope, VariableScope::Global | VariableScope::Persist | VariableScope::PersistOnly);
        let is_default = value.is_none();
        let value = match value {
            Some((given, _)) => {
                let (value, clipped) = variable.accept(&given)?;
                variable.check_value(&value)?;
                if let (Kind::Roles, Datum::Str(roles)) = (variable.kind, &value) {
                    self.check_may_be_mandatory(roles)?;
                }
                if let (Kind::SqlMode, Datum::Str(modes)) = (variable.kind, &value)
                    && sql_mode::is_strict_in_part(sql_mode::flags(modes))
                {
                    let error = ErrorCode::SQL_MODE_MERGED.with(&[]);
                    self.warn(Level::Warning, error.errno, error.message);
                }
                self.warn_of_value(variable, Some(&given));
                if let ("timestamp", Datum::Double(seconds @ ..0.0)) = (variable.name, &value) {
                    let message = format!("Truncated incorrect {name} value: '{seconds}'");
                    self.warn(Level::Warning, 1292, message);
                }
                if clipped {
                    let given = match given {
                        Datum::UInt(given) => i128::from(given),
                        Datum::Int(given) => i128::from(given),
                        _ => 0,
                    };
                    let message = format!("Truncated incorrect {name} value: '{given}'");
                    self.warn(Level::Warning, 1292, message);
                }
                Some(value)
            }
            None if global || variable.scope == Scope::Session => {
                Some(variable.parse_text(variable.default)?)
            }
            None => None,
        };
        if is_default {
            self.warn_of_value(variable, None);
        }
        if scope == VariableScope::Default && is_characteristic(name) {
            self.check_no_transaction()?;
        }
        Ok(Change::Variable { scope, name, position, value })
    }

    async fn set_variable(
        &mut self,
        scope: VariableScope,
        name: &str,
        position: usize,
        value: Option<Value>,
    ) -> Result<(), SqlError> {
        let value = value.unwrap_or_else(|| self.variables.globals.get(position));
        match scope {
            VariableScope::PersistOnly => return self.persist(position, &value),
            // What it is when all is set is persisted.
            VariableScope::Global | VariableScope::Persist => {
                self.variables.globals.put(position, value);
                return Ok(());
            }
            VariableScope::Session | VariableScope::Default => {}
        }
        // `SET @@name` without a scope is about the next transaction, unlike `SET name` (Manual, 15.3.7).
        if scope == VariableScope::Default
            && let Some(of) = characteristic(name, &value)
        {
            self.set_next_transaction(of);
            return Ok(());
        }
        if let Some(of) = characteristic(name, &value) {
            self.forget_next(of);
        }
        self.put_session_variable(position, value).await
    }

    fn persist(&self, position: usize, value: &Value) -> Result<(), SqlError> {
        let variable = &VARIABLES[position];
        blocking(|| self.shared.persisted.put(variable.name, variable.show(value), &self.info.account))
    }

    /// RESET PERSIST: what a variable has now stays.
    pub(super) fn reset_persist(&mut self, name: Option<&str>, if_exists: bool) -> Result<Outcome, SqlError> {
        let shared = self.shared.clone();
        let persisted = &shared.persisted;
        let Some(name) = name else {
            if !persisted.list().is_empty() {
                self.check_may_reset()?;
            }
            blocking(|| persisted.clear())?;
            return Ok(Outcome::ok());
        };
        let name = name.to_lowercase();
        if persisted.has(&name) {
            self.check_may_reset()?;
            blocking(|| persisted.remove(&name))?;
            return Ok(Outcome::ok());
        }
        let missing = ErrorCode::VAR_DOES_NOT_EXIST.with(&[&name]);
        if !if_exists {
            return Err(missing);
        }
        self.warn(Level::Warning, missing.errno, missing.message);
        Ok(Outcome::ok())
    }

    fn check_may_reset(&mut self) -> Result<(), SqlError> {
        let any = Privileges::SUPER | Privileges::SYSTEM_VARIABLES_ADMIN;
        self.check_needs(&[Need::Server { any }])
    }

    /// Gives a session variable a value, with all that follows from it.
    async fn put_session_variable(&mut self, position: usize, value: Value) -> Result<(), SqlError> {
        let variable = &VARIABLES[position];
        let turns_on = variable.name == "autocommit" && matches!(value, Datum::Int(1));
        if turns_on && !self.settings.autocommit {
            self.commit().await?;
        }
        if let Effect::InsertId = variable.acting().effect {
            self.last_insert_id = int(&value);
        }
        self.variables.own.put_with_others(position, value);
        if variable.name == "character_set_results" {
            self.results_collation = None;
        }
        self.refresh();
        self.note_changed(position);
        Ok(())
    }

    /// Remembers a change that the client wants to be told of.
    fn note_changed(&mut self, position: usize) {
        let name = VARIABLES[position].name;
        let tracked = self.settings.tracked.iter().any(|tracked| tracked == name || tracked == "*");
        if tracked && !self.changed_variables.contains(&position) {
            self.changed_variables.push(position);
        }
    }

    /// A variable's value as clients are told of it.
    pub(super) fn shown_variable(&self, position: usize) -> String {
        VARIABLES[position].show(self.variables.own.get(position))
    }

    fn check_names(
        &self,
        charset: Option<&str>,
        collation: Option<&str>,
    ) -> Result<Change<'static>, SqlError> {
        let collation = match charset {
            None => Collation::DEFAULT,
            Some(charset) => collation_of(Some(charset), collation, self.settings.utf8mb4_collation)?
                .unwrap_or(Collation::DEFAULT),
        };
        Ok(Change::Charsets { client: client_charset(collation)?, connection: Some(collation) })
    }

    /// SET CHARACTER SET: unlike SET NAMES, it leaves the literals of statements to the database's collation.
    fn check_character_set(&self, charset: Option<&str>) -> Result<Change<'static>, SqlError> {
        let of_client =
            collation_of(charset, None, self.settings.utf8mb4_collation)?.unwrap_or(Collation::DEFAULT);
        Ok(Change::Charsets { client: client_charset(of_client)?, connection: None })
    }

    /// What the client sends and gets is in `client`; literals compare as `connection` says.
    fn put_charsets(&mut self, client: Charset, connection: Collation) {
        let text = |s: &str| Value::Str(s.to_owned().into());
        let info = connection.info();
        let own = &mut self.variables.own;
        own.put_by_name("character_set_client", text(client.name()));
        own.put_by_name("character_set_results", text(client.name()));
        self.results_collation = None;
        own.put_by_name("character_set_connection", text(info.charset.name()));
        own.put_by_name("collation_connection", text(info.name));
        self.refresh();
        ["character_set_client", "character_set_connection", "character_set_results"]
            .into_iter()
            .for_each(|name| self.note_changed(known(name)));
    }

    /// SET TRANSACTION: for all later sessions, for all later transactions of this one, or for the next one alone.
    fn set_transaction(&mut self, scope: VariableScope, of: Characteristics) {
        let Characteristics { level, read_only } = of;
        if scope == VariableScope::Default {
            return self.set_next_transaction(of);
        }
        let mut put = |name: &'static str, value: Value| match scope {
            VariableScope::Session => self.variables.own.put_by_name(name, value),
            _ => self.variables.globals.put(known(name), value),
        };
        if let Some(level) = level {
            put("transaction_isolation", Datum::Str(level_name(level).into()));
            put("tx_isolation", Datum::Str(level_name(level).into()));
        }
        if let Some(read_only) = read_only {
            put("transaction_read_only", Datum::Int(read_only.into()));
            put("tx_read_only", Datum::Int(read_only.into()));
        }
        if scope == VariableScope::Session {
            self.forget_next(of);
        }
        self.refresh();
    }

    /// What is set for all transactions goes for the next one, too, whatever was set for that one alone.
    fn forget_next(&mut self, of: Characteristics) {
        if !self.in_transaction() {
            self.next.level = self.next.level.filter(|_| of.level.is_none());
            self.next.read_only = self.next.read_only.filter(|_| of.read_only.is_none());
        }
    }

    fn set_next_transaction(&mut self, of: Characteristics) {
        self.next.level = of.level.or(self.next.level);
        self.next.read_only = of.read_only.or(self.next.read_only);
    }

    /// 1568 where something is set for the next transaction alone, and one is running.
    fn check_no_transaction(&self) -> Result<(), SqlError> {
        match self.in_transaction() {
            true => Err(ErrorCode::CANT_CHANGE_TX_CHARACTERISTICS.with(&[])),
            false => Ok(()),
        }
    }

    /// DO: evaluates and forgets.
    pub(super) async fn evaluate_only(
        &mut self,
        exprs: &[ast::Expr],
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        for expr in exprs {
            self.value_of(expr, text).await?;
        }
        Ok(Outcome::ok())
    }

    /// The value of an expression without tables.
    pub(super) fn constant(&self, expr: &ast::Expr, text: &Text<'_>) -> Result<Value, SqlError> {
        let bound = self.bind_types(&ast::Query::select_of([expr.clone()]), text.source, &text.types)?;
        match &bound.body.body {
            avocet_sql::plan::QueryBody::Select(select) if select.subqueries.is_empty() => {
                let program = RowProgram::compile(&select.projection[0].expr)?;
                Ok(program.eval_const(text.params, &self.context)?.into_owned())
            }
            _ => Err(unsupported("subqueries here")),
        }
    }

    pub(super) fn kill(
        &mut self,
        connection: &ast::Expr,
        query_only: bool,
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        let id = match self.constant(connection, text)? {
            Datum::Int(v) => u32::try_from(v).ok(),
            Datum::UInt(v) => u32::try_from(v).ok(),
            _ => None,
        };
        let id = id.ok_or_else(|| ErrorCode::NO_SUCH_THREAD.with(&[&0]))?;
        let what = if query_only { Interruption::Statement } else { Interruption::Connection };
        self.kill_by_id(id, what)?;
        Ok(Outcome::ok())
    }

    pub(super) fn kill_by_id(&mut self, id: u32, what: Interruption) -> Result<(), SqlError> {
        if id == self.info.connection_id {
            self.info.interrupt.raise(what);
            return Err(ErrorCode::QUERY_INTERRUPTED.with(&[]));
        }
        self.check_may_kill(id)?;
        self.info.connections.kill(id, what)
    }
}

/// Whether a variable says something of transactions, and is about the next one where no scope is named.
fn is_characteristic(name: &str) -> bool {
    matches!(name, "transaction_isolation" | "tx_isolation" | "transaction_read_only" | "tx_read_only")
}

/// What a value of a variable says of a transaction.
fn characteristic(name: &str, value: &Value) -> Option<Characteristics> {
    let mut of = Characteristics::default();
    match (name, value) {
        ("transaction_isolation" | "tx_isolation", Datum::Str(text)) => {
            let levels = [
                IsolationLevel::ReadUncommitted,
                IsolationLevel::ReadCommitted,
                IsolationLevel::RepeatableRead,
                IsolationLevel::Serializable,
            ];
            of.level = levels.into_iter().find(|level| level_name(*level) == &**text);
        }
        ("transaction_read_only" | "tx_read_only", Datum::Int(on)) => of.read_only = Some(*on == 1),
        _ => return None,
    }
    Some(of)
}

/// The character set that a client asks for with a collation; error 1231 if statements cannot be read in it.
fn client_charset(collation: Collation) -> Result<Charset, SqlError> {
    match collation.info().charset {
        charset if charset.is_for_clients() => Ok(charset),
        charset => Err(ErrorCode::WRONG_VALUE_FOR_VAR.with(&[&"character_set_client", &charset.name()])),
    }
}

fn level_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "READ-UNCOMMITTED",
        IsolationLevel::ReadCommitted => "READ-COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE-READ",
        IsolationLevel::Serializable => "SERIALIZABLE",
    }
}
