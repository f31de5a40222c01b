//! SET, SHOW, transactions, sessions, accounts, prepared statements, maintenance.

use crate::parse::ast::*;
use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::unserved;
use crate::parse::statement::*;

impl Parser<'_> {
    /// After SET.
    pub(super) fn set(&mut self) -> ParseResult<StatementKind> {
        if self.eat("PASSWORD") {
            return self.set_password();
        }
        if let Some(item) = self.set_transaction()? {
            return Ok(StatementKind::Set(vec![item]));
        }
        if let Some(role) = self.set_role()? {
            return Ok(role);
        }
        if self.is_words(&["RESOURCE", "GROUP"]) {
            return self.unsupported("SET");
        }
        Ok(StatementKind::Set(self.comma_separated(Self::set_item)?))
    }

    /// `SET PASSWORD [FOR user] = 'password' [REPLACE 'current'] [RETAIN CURRENT PASSWORD]`
    fn set_password(&mut self) -> ParseResult<StatementKind> {
        let user = if self.eat("FOR") { Some(self.user_name()?) } else { None };
        if self.eat("TO") {
            return Err(unserved("random passwords"));
        }
        self.expect_op(Op::Eq)?;
        let password = self.string()?;
        let (current, retains) = (self.replaced()?, self.retain()?);
        Ok(StatementKind::SetPassword { user, password, current, retains })
    }

    fn set_transaction(&mut self) -> ParseResult<Option<SetItem>> {
        let restart = self.position();
        let scope = self.eat_scope().unwrap_or(VariableScope::Default);
        if !self.eat("TRANSACTION") {
            self.rewind(restart);
            return Ok(None);
        }
        let (mut isolation, mut read_only) = (None, None);
        self.comma_separated(|p| {
            if isolation.is_none() && p.eat_all(&["ISOLATION", "LEVEL"]) {
                isolation = Some(p.isolation_level()?);
            } else if read_only.is_none() {
                read_only = Some(p.access_mode()?);
            } else {
                return Err(p.error());
            }
            Ok(())
        })?;
        Ok(Some(SetItem::Transaction { scope, isolation, read_only }))
    }

    fn isolation_level(&mut self) -> ParseResult<IsolationLevel> {
        if self.eat_all(&["READ", "UNCOMMITTED"]) {
            Ok(IsolationLevel::ReadUncommitted)
        } else if self.eat_all(&["READ", "COMMITTED"]) {
            Ok(IsolationLevel::ReadCommitted)
        } else if self.eat_all(&["REPEATABLE", "READ"]) {
            Ok(IsolationLevel::RepeatableRead)
        } else if self.eat("SERIALIZABLE") {
            Ok(IsolationLevel::Serializable)
        } else {
            Err(self.error())
        }
    }

    /// READ ONLY (true) or READ WRITE.
    fn access_mode(&mut self) -> ParseResult<bool> {
        self.expect("READ")?;
        match self.eat_any(&["ONLY", "WRITE"]) {
            Some(word) => Ok(word == "ONLY"),
            None => Err(self.error()),
        }
    }

    fn set_item(&mut self) -> ParseResult<SetItem> {
        if self.is_op(Op::At) {
            let name = self.assigned_variable_name()?;
            self.assignment_operator()?;
            return Ok(SetItem::UserVariable { name, value: self.expr()? });
        }
        if self.eat("NAMES") {
            if self.eat("DEFAULT") {
                return Ok(SetItem::Names { charset: None, collation: None });
            }
            let charset = Some(self.charset_name()?);
            let collation = if self.eat("COLLATE") { Some(self.collation_name()?) } else { None };
            return Ok(SetItem::Names { charset, collation });
        }
        if self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]) {
            let charset = if self.eat("DEFAULT") { None } else { Some(self.name()?) };
            return Ok(SetItem::CharacterSet(charset));
        }
        let scope = self.set_scope()?;
        let name = self.variable_name()?;
        self.assignment_operator()?;
        let value = if self.eat("DEFAULT") { None } else { Some(self.set_value()?) };
        Ok(SetItem::Variable { scope, name, value })
    }

    /// After RESET.
    pub(super) fn reset_persist(&mut self) -> ParseResult<StatementKind> {
        self.expect("PERSIST")?;
        if self.at_statement_end() {
            return Ok(StatementKind::ResetPersist { name: None, if_exists: false });
        }
        let if_exists = self.eat_all(&["IF", "EXISTS"]);
        Ok(StatementKind::ResetPersist { name: Some(self.variable_name()?), if_exists })
    }

    fn set_scope(&mut self) -> ParseResult<VariableScope> {
        if self.eat_op(Op::AtAt) {
            let Some(scope) = self.eat_scope() else { return Ok(VariableScope::Default) };
            self.expect_op(Op::Dot)?;
            return Ok(scope);
        }
        // `SET global = 1` would name a variable; nobody has one of that name.
        Ok(self.eat_scope().unwrap_or(VariableScope::Session))
    }

    fn assignment_operator(&mut self) -> ParseResult<()> {
        if self.eat_op(Op::Assign) { Ok(()) } else { self.expect_op(Op::Eq) }
    }

    /// Besides expressions, the bare words ON, ALL, BINARY and names such as `utf8mb4`, which stand for strings.
    fn set_value(&mut self) -> ParseResult<Expr> {
        let span = self.span();
        let bare = self.is_any_word(&["ON", "ALL", "BINARY", "ROW", "SYSTEM"])
            && (matches!(self.peek_ahead(1), TokenKind::End | TokenKind::Op(Op::Comma | Op::Semicolon)));
        if bare {
            let value = self.source_text();
            self.advance();
            return Ok(Expr { kind: ExprKind::String { value, charset: None }, span });
        }
        let expr = self.expr()?;
        Ok(match expr.kind {
            ExprKind::Column { database: None, table: None, column } => {
                Expr { kind: ExprKind::String { value: column.name, charset: None }, span: expr.span }
            }
            _ => expr,
        })
    }

    /// After SHOW.
    pub(super) fn show(&mut self) -> ParseResult<StatementKind> {
        let kind = self.show_kind()?;
        let filter = if kind.has_pattern() && self.eat("LIKE") {
            ShowFilter::Like(self.string()?)
        } else if kind.has_filter() && self.eat("WHERE") {
            ShowFilter::Where(self.expr()?)
        } else {
            ShowFilter::None
        };
        Ok(StatementKind::Show(Box::new(Show { kind, filter })))
    }

    fn show_kind(&mut self) -> ParseResult<ShowKind> {
        if let Some(scope) = self.show_scope() {
            let variables = self.eat("VARIABLES");
            if !variables {
                self.expect("STATUS")?;
            }
            return Ok(if variables { ShowKind::Variables(scope) } else { ShowKind::Status(scope) });
        }
        if self.eat("CREATE") {
            return self.show_create();
        }
        if self.is_word("EXTENDED") {
            return Err(unserved("SHOW EXTENDED"));
        }
        let full = self.eat("FULL");
        match self.word_upper().as_deref() {
            Some("TABLES") => {
                self.advance();
                Ok(ShowKind::Tables { database: self.in_database()?, full })
            }
            Some("COLUMNS" | "FIELDS") => {
                self.advance();
                Ok(ShowKind::Columns { table: self.in_table()?, full })
            }
            Some("PROCESSLIST") => {
                self.advance();
                Ok(ShowKind::Processlist { full })
            }
            _ if full => Err(self.error()),
            _ => self.show_other(),
        }
    }

    fn show_scope(&mut self) -> Option<VariableScope> {
        if self.is_any_word(&["VARIABLES", "STATUS"]) {
            return Some(VariableScope::Session);
        }
        let scoped = self.is_word_ahead(1, "VARIABLES") || self.is_word_ahead(1, "STATUS");
        if scoped { self.eat_scope() } else { None }
    }

    fn show_create(&mut self) -> ParseResult<ShowKind> {
        if self.eat("TABLE") {
            return Ok(ShowKind::CreateTable(self.object_name()?));
        }
        if self.eat("VIEW") {
            return Ok(ShowKind::CreateView(self.object_name()?));
        }
        if self.eat("DATABASE") || self.eat("SCHEMA") {
            let if_not_exists = self.eat_all(&["IF", "NOT", "EXISTS"]);
            return Ok(ShowKind::CreateDatabase { name: self.ident()?, if_not_exists });
        }
        if self.eat("USER") {
            let user = if self.at_statement_end() { None } else { Some(self.user_name()?) };
            return Ok(ShowKind::CreateUser(user));
        }
        Ok(ShowKind::Other(format!("CREATE {}", self.rest_of_show())))
    }

    fn show_other(&mut self) -> ParseResult<ShowKind> {
        let word = self.word_upper().ok_or_else(|| self.error())?;
        let simple = match word.as_str() {
            "DATABASES" | "SCHEMAS" => Some(ShowKind::Databases),
            "ENGINES" => Some(ShowKind::Engines),
            "CHARSET" => Some(ShowKind::Charset),
            "COLLATION" => Some(ShowKind::Collation),
            "PLUGINS" => Some(ShowKind::Plugins),
            "PRIVILEGES" => Some(ShowKind::Privileges),
            _ => None,
        };
        if let Some(kind) = simple {
            self.advance();
            return Ok(kind);
        }
        match word.as_str() {
            "CHARACTER" => self.expect_all(&["CHARACTER", "SET"]).map(|()| ShowKind::Charset),
            "STORAGE" => self.expect_all(&["STORAGE", "ENGINES"]).map(|()| ShowKind::Engines),
            "TABLE" => {
                self.expect_all(&["TABLE", "STATUS"])?;
                Ok(ShowKind::TableStatus { database: self.in_database()? })
            }
            "INDEX" | "INDEXES" | "KEYS" => {
                self.advance();
                Ok(ShowKind::Indexes { table: self.in_table()? })
            }
            "EVENTS" => {
                self.advance();
                Ok(ShowKind::Events { database: self.in_database()? })
            }
            "TRIGGERS" => {
                self.advance();
                Ok(ShowKind::Triggers { database: self.in_database()? })
            }
            "WARNINGS" => {
                self.advance();
                Ok(ShowKind::Warnings { limit: self.optional_limit()? })
            }
            "ERRORS" => {
                self.advance();
                Ok(ShowKind::Errors { limit: self.optional_limit()? })
            }
            "COUNT" => self.show_count(),
            "BINLOG" | "RELAYLOG" => self.show_log_events(word == "RELAYLOG"),
            "GRANTS" => {
                self.advance();
                let user = if self.eat("FOR") { Some(self.user_name()?) } else { None };
                let using = if user.is_some() && self.eat("USING") {
                    self.comma_separated(Self::user_name)?
                } else {
                    Vec::new()
                };
                Ok(ShowKind::Grants { user, using })
            }
            "REPLICA" if self.eat_all(&["REPLICA", "STATUS"]) => {
                Ok(ShowKind::ReplicaStatus { channel: self.channel()? })
            }
            _ => Ok(ShowKind::Other(self.rest_of_show())),
        }
    }

    /// `BINLOG EVENTS …`, `RELAYLOG EVENTS … [FOR CHANNEL 'name']`
    fn show_log_events(&mut self, is_relay: bool) -> ParseResult<ShowKind> {
        self.advance();
        self.expect("EVENTS")?;
        let file = if self.eat("IN") { Some(self.string()?) } else { None };
        let from = if self.eat("FROM") { Some(self.unsigned()?) } else { None };
        let limit = self.optional_limit()?;
        let channel = if is_relay { self.channel()? } else { None };
        Ok(ShowKind::LogEvents(Box::new(LogEvents { is_relay, channel, file, from, limit })))
    }

    /// `COUNT(*) WARNINGS | ERRORS`
    fn show_count(&mut self) -> ParseResult<ShowKind> {
        self.expect("COUNT")?;
        self.expect_op(Op::LParen)?;
        self.expect_op(Op::Star)?;
        self.expect_op(Op::RParen)?;
        match self.eat_any(&["WARNINGS", "ERRORS"]) {
            Some("WARNINGS") => Ok(ShowKind::CountWarnings),
            Some(_) => Ok(ShowKind::CountErrors),
            None => Err(self.error()),
        }
    }

    /// The words up to the statement's end, LIKE or WHERE, in upper case.
    fn rest_of_show(&mut self) -> String {
        let mut words = Vec::new();
        while !self.at_statement_end() && !self.is_any_word(&["LIKE", "WHERE"]) {
            words.push(self.source_text().to_uppercase());
            self.advance();
        }
        words.join(" ")
    }

    fn in_database(&mut self) -> ParseResult<Option<Ident>> {
        if self.eat("FROM") || self.eat("IN") { self.ident().map(Some) } else { Ok(None) }
    }

    /// `FROM t [FROM db]`
    fn in_table(&mut self) -> ParseResult<ObjectName> {
        if !self.eat("IN") {
            self.expect("FROM")?;
        }
        let mut table = self.object_name()?;
        if let Some(database) = self.in_database()? {
            table.database = Some(database);
        }
        Ok(table)
    }

    /// After EXPLAIN, DESCRIBE or DESC.
    pub(super) fn explain(&mut self) -> ParseResult<StatementKind> {
        let analyze = self.eat("ANALYZE");
        self.no_explain_target()?;
        let format = if self.eat("FORMAT") {
            self.expect_op(Op::Eq)?;
            Some(self.name()?.to_uppercase())
        } else {
            None
        };
        self.no_explain_target()?;
        const EXPLAINABLE: &[&str] =
            &["SELECT", "WITH", "TABLE", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"];
        if self.is_any_word(EXPLAINABLE) || self.is_op(Op::LParen) {
            let start = self.span();
            let kind = self.statement_kind()?;
            let span = self.span_from(start);
            let statement =
                Box::new(Statement { params: self.params, ..Statement::without_params(kind, span) });
            return Ok(StatementKind::Explain { statement, analyze, format });
        }
        let table = self.object_name()?;
        let column = if self.at_statement_end() { None } else { Some(self.name()?) };
        Ok(StatementKind::Describe { table, column })
    }

    /// EXPLAIN of another connection's statement, in another schema, or into a variable.
    fn no_explain_target(&self) -> ParseResult<()> {
        const UNSERVED: &[&[&str]] =
            &[&["FOR", "CONNECTION"], &["FOR", "SCHEMA"], &["FOR", "DATABASE"], &["INTO"]];
        match UNSERVED.iter().find(|words| self.is_words(words)) {
            Some(words) => Err(unserved(format_args!("EXPLAIN {}", words.join(" ")))),
            None => Ok(()),
        }
    }

    /// After CALL; a procedure without parameters needs no parentheses.
    pub(super) fn call_statement(&mut self) -> ParseResult<StatementKind> {
        let name = self.object_name()?;
        let mut arguments = Vec::new();
        if self.eat_op(Op::LParen) && !self.eat_op(Op::RParen) {
            arguments = self.expr_list()?;
            self.expect_op(Op::RParen)?;
        }
        Ok(StatementKind::Call { name, arguments })
    }

    /// After `START TRANSACTION`.
    pub(super) fn start_transaction(&mut self) -> ParseResult<StatementKind> {
        let (mut read_only, mut consistent_snapshot) = (None, false);
        if !self.at_statement_end() {
            self.comma_separated(|p| {
                if p.eat_all(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
                    consistent_snapshot = true;
                } else {
                    let first = read_only.is_none();
                    read_only = Some(p.access_mode()?);
                    if !first {
                        return Err(p.error());
                    }
                }
                Ok(())
            })?;
        }
        Ok(StatementKind::Begin { read_only, consistent_snapshot })
    }

    /// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`
    pub(super) fn transaction_end(&mut self) -> ParseResult<Completion> {
        self.eat("WORK");
        let mut completion = Completion::default();
        if self.eat("AND") {
            completion.chain = Some(!self.eat("NO"));
            self.expect("CHAIN")?;
        }
        let restart = self.position();
        if self.eat("NO") {
            self.expect("RELEASE")?;
            completion.release = Some(false);
        } else if self.eat("RELEASE") {
            // Nothing can follow a connection that ends.
            if completion.chain == Some(true) {
                self.rewind(restart);
                return Err(self.error());
            }
            completion.release = Some(true);
        }
        Ok(completion)
    }

    /// After ROLLBACK.
    pub(super) fn rollback(&mut self) -> ParseResult<StatementKind> {
        let restart = self.position();
        self.eat("WORK");
        if self.eat("TO") {
            self.eat("SAVEPOINT");
            return Ok(StatementKind::RollbackTo(self.ident()?));
        }
        self.rewind(restart);
        Ok(StatementKind::Rollback(self.transaction_end()?))
    }

    /// After LOCK.
    pub(super) fn lock_tables(&mut self) -> ParseResult<StatementKind> {
        if self.is_word("INSTANCE") {
            return self.unsupported("LOCK");
        }
        if !self.eat("TABLES") {
            self.expect("TABLE")?;
        }
        let tables = self.comma_separated(|p| {
            let name = p.object_name()?;
            let alias =
                if p.is_any_word(&["READ", "WRITE", "LOW_PRIORITY"]) { None } else { p.optional_alias()? };
            let write = match p.eat_any(&["READ", "WRITE"]) {
                Some(word) => word == "WRITE",
                None => return Err(p.error()),
            };
            p.eat("LOCAL");
            Ok((name, alias, write))
        })?;
        Ok(StatementKind::LockTables(tables))
    }

    /// After PREPARE.
    pub(super) fn prepare(&mut self) -> ParseResult<StatementKind> {
        let name = self.ident()?;
        self.expect("FROM")?;
        let source = if self.is_op(Op::At) {
            PrepareSource::UserVariable(self.user_variable_name()?)
        } else {
            PrepareSource::Text(self.string()?)
        };
        Ok(StatementKind::Prepare { name, source })
    }

    /// After EXECUTE.
    pub(super) fn execute(&mut self) -> ParseResult<StatementKind> {
        let name = self.ident()?;
        let using =
            if self.eat("USING") { self.comma_separated(Self::user_variable_name)? } else { Vec::new() };
        Ok(StatementKind::Execute { name, using })
    }

    /// After KILL.
    pub(super) fn kill(&mut self) -> ParseResult<StatementKind> {
        let query_only = self.eat_any(&["CONNECTION", "QUERY"]) == Some("QUERY");
        Ok(StatementKind::Kill { connection: self.expr()?, query_only })
    }
}
