//! MySQL's syntax: text to statements.
//!
//! ```text
//!  bytes ─lexer─▶ tokens ─parser─▶ Statement ─┬─ Query, Insert, …  (expressions with spans)
//!                                             └─ Set, Show, CreateTable, …
//! ```
//!
//! The parser is our own because MySQL's grammar is part of what Avocet promises: which operator binds how, the text of
//! an unaliased column's name, versioned comments, what is reserved, and what error 1064 quotes
//! (docs/decisions has the comparison with sqlparser).

mod accounts;
mod admin;
mod arities;
pub mod ast;
mod ddl;
pub mod deprecated;
mod diagnostics;
pub mod digest;
pub mod digest_text;
mod dml;
pub mod error;
mod expr;
pub mod hints;
mod json_table;
mod keywords;
mod lexer;
mod load;
mod maintain;
pub mod outline;
mod parser;
mod primary;
mod query;
mod refuse;
mod replica;
pub mod statement;
mod told;
mod walk;
mod windows;

#[cfg(test)]
mod tests;

use avocet_types::collation::Charset;
use avocet_types::expr::SqlMode;

pub use error::{ParseError, ParseResult};
pub use keywords::{all_keywords, is_keyword, is_reserved};
pub(crate) use lexer::without_version_comments;
pub use parser::{grow_stack, is_tall, on_stack_for};
pub use statement::{Statement, StatementKind};
pub use told::text_told;

use crate::parse::ast::Expr;
use crate::parse::lexer::Op;
use crate::parse::parser::{MAX_DEPTH, Parser};
use avocet_types::error::ErrorCode;

/// Parses all statements of `source`, which are separated by semicolons. Empty ones between semicolons are left out;
/// text without any statement gives a single [`StatementKind::Empty`], or [`StatementKind::Comment`] if it holds comments.
pub fn parse(source: &[u8], mode: SqlMode) -> ParseResult<Vec<Statement>> {
    parse_of_client(source, mode, None)
}

/// As [`parse`], of a text that was converted from a client's character set.
///
/// # Errors
/// As [`parse`].
pub fn parse_of_client(source: &[u8], mode: SqlMode, client: Option<Charset>) -> ParseResult<Vec<Statement>> {
    let (statements, error) = Parser::new(source, mode).of_client(client).statements();
    error.map_or(Ok(statements), Err)
}

/// As [`parse`], of a text to be run: what stands before a syntax error is run, and the statement with the error is one that is
/// [refused](StatementKind::Refused).
///
/// # Errors
/// If the first statement has one.
pub fn parse_up_to_error(
    source: &[u8],
    mode: SqlMode,
    client: Option<Charset>,
) -> ParseResult<Vec<Statement>> {
    let mut parser = Parser::new(source, mode).of_client(client);
    let (mut statements, error) = parser.statements();
    match error {
        Some(error) if statements.is_empty() => return Err(error),
        Some(error) => {
            let span = ast::Span { start: parser.statement_start(), end: source.len() as u32 };
            let kind = StatementKind::Refused(Box::new(error.into()));
            statements.push(Statement::without_params(kind, span));
        }
        None => {}
    }
    Ok(statements)
}

/// Parses an expression that stands alone: a default value kept as text, a test's input.
pub fn parse_expr(source: &[u8], mode: SqlMode) -> ParseResult<Expr> {
    let mut parser = Parser::new(source, mode);
    let expr = parser.expr()?;
    // It is kept, and walked wherever it is used.
    if parser.height > MAX_DEPTH {
        return Err(parser.too_deep());
    }
    if parser.at_end() { Ok(expr) } else { Err(parser.error()) }
}

/// Parses what follows PARTITION BY, kept as text.
pub fn parse_partition_by(source: &[u8], mode: SqlMode) -> ParseResult<statement::PartitionBy> {
    let mut parser = Parser::new(source, mode);
    let by = parser.partition_by()?;
    if parser.height > MAX_DEPTH {
        return Err(parser.too_deep());
    }
    if parser.at_end() { Ok(by) } else { Err(parser.error()) }
}

impl Parser<'_> {
    /// All statements, or those before the first error.
    fn statements(&mut self) -> (Vec<Statement>, Option<ParseError>) {
        let mut statements = Vec::new();
        while !self.at_end() {
            match self.statement() {
                Ok(statement) if statement.kind == StatementKind::Empty => {}
                Ok(statement) => statements.push(statement),
                Err(error) => return (statements, Some(error)),
            }
        }
        if statements.is_empty() {
            let blank = self.source.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b';');
            let kind = if blank { StatementKind::Empty } else { StatementKind::Comment };
            statements.push(Statement::without_params(kind, ast::Span::default()));
        }
        (statements, None)
    }

    /// One statement and the semicolon after it.
    fn statement(&mut self) -> ParseResult<Statement> {
        self.begin_statement();
        self.params = 0;
        self.height = 0;
        self.limit_params.clear();
        self.calc_found_rows = None;
        self.into = None;
        self.assigns.clear();
        self.deprecations.clear();
        self.reads_counts = false;
        self.refused_partitions_of = None;
        self.assigned = ast::AssignedNames::default();
        let start = self.span();
        if self.eat_op(Op::Semicolon) {
            return Ok(Statement::without_params(StatementKind::Empty, start));
        }
        let kind = self.statement_kind().and_then(|kind| {
            self.found_rows_are_counted_at_the_top(&kind)?;
            self.with_into(kind)
        });
        let kind = match kind {
            Err(ParseError::Refused(error)) => {
                self.skip_statement();
                match self.refused_partitions_of.take() {
                    Some(table) => StatementKind::RefusedPartitions { table, error },
                    None => StatementKind::Refused(error),
                }
            }
            other => other?,
        };
        // What is kept is walked wherever it is used.
        if self.height > MAX_DEPTH && kind.is_kept() {
            return Err(self.too_deep());
        }
        self.restart_depth();
        let span = self.span_from(start);
        if !self.at_end() {
            self.expect_op(Op::Semicolon)?;
        }
        let hints = hints::read(self.source, self.mode, &self.hint_comments(span));
        let height = self.height;
        self.assigned.set(&self.assigns);
        Ok(Statement {
            kind,
            span,
            params: self.params,
            limit_params: self.limit_params(),
            hints,
            height,
            assigns: !self.assigns.is_empty(),
            deprecated: self.deprecations.take(),
            reads_counts: self.reads_counts,
        })
    }

    /// The parameters so far that are a LIMIT or an OFFSET.
    fn limit_params(&self) -> Vec<u32> {
        let mut params = self.limit_params.clone();
        params.sort_unstable();
        params.dedup();
        params
    }

    /// Refuses SQL_CALC_FOUND_ROWS elsewhere than in the block that begins a query.
    fn found_rows_are_counted_at_the_top(&self, kind: &StatementKind) -> ParseResult<()> {
        let StatementKind::Query(query) = kind else { return Ok(()) };
        let Some((first, last)) = self.calc_found_rows else { return Ok(()) };
        let at_the_top = query.first_select().is_some_and(|select| select.calc_found_rows);
        match at_the_top && first == last {
            true => Ok(()),
            false => Err(refuse::refused(ErrorCode::CANT_USE_OPTION_HERE.with(&[&"SQL_CALC_FOUND_ROWS"]))),
        }
    }

    /// A query with the INTO that was met in it.
    fn with_into(&mut self, kind: StatementKind) -> ParseResult<StatementKind> {
        Ok(match (self.into.take(), kind) {
            (None, kind) => kind,
            (Some(into), StatementKind::Query(query)) => {
                StatementKind::SelectInto { query, into: Box::new(into) }
            }
            (Some(_), _) => return Err(refuse::unserved("SELECT ... INTO here")),
        })
    }

    fn statement_kind(&mut self) -> ParseResult<StatementKind> {
        if self.is_op(Op::LParen) || self.is_any_word(&["SELECT", "VALUES", "TABLE"]) {
            return Ok(StatementKind::Query(Box::new(self.query()?)));
        }
        if self.is_word("WITH") {
            return self.statement_with();
        }
        let word = self.word_upper().ok_or_else(|| self.error())?;
        self.advance();
        let known = match word.as_str() {
            "INSERT" => StatementKind::Insert(Box::new(self.insert(false)?)),
            "REPLACE" => StatementKind::Insert(Box::new(self.insert(true)?)),
            "UPDATE" => StatementKind::Update(Box::new(self.update(None)?)),
            "DELETE" => StatementKind::Delete(Box::new(self.delete(None)?)),
            "CREATE" => self.create()?,
            "DROP" => self.drop()?,
            "ALTER" => self.alter()?,
            "RENAME" => self.rename()?,
            "TRUNCATE" => {
                self.eat("TABLE");
                StatementKind::TruncateTable(self.object_name()?)
            }
            "USE" => StatementKind::Use(self.ident()?),
            "SET" => self.set()?,
            "SHOW" => self.show()?,
            "EXPLAIN" | "DESCRIBE" | "DESC" => self.explain()?,
            "KILL" => self.kill()?,
            "DO" => StatementKind::Do(self.expr_list()?),
            "CALL" => self.call_statement()?,
            "PREPARE" => self.prepare()?,
            "EXECUTE" => self.execute()?,
            "DEALLOCATE" => {
                self.expect("PREPARE")?;
                StatementKind::Deallocate(self.ident()?)
            }
            "GRANT" => self.grant()?,
            "REVOKE" => self.revoke()?,
            "FLUSH" => self.flush()?,
            "ANALYZE" => StatementKind::Analyze(self.maintained_tables("ANALYZE")?),
            "CHECK" if self.eat("REPLICATION") => self.check_replication()?,
            "PROMOTE" if self.eat("REPLICA") => self.promote_replica()?,
            "CHECK" => self.check_tables()?,
            "CHECKSUM" => self.checksum_tables()?,
            "OPTIMIZE" => StatementKind::Optimize(self.maintained_tables("OPTIMIZE")?),
            _ => return self.transaction_statement(&word),
        };
        Ok(known)
    }

    fn transaction_statement(&mut self, word: &str) -> ParseResult<StatementKind> {
        Ok(match word {
            "BEGIN" => {
                self.eat("WORK");
                StatementKind::Begin { read_only: None, consistent_snapshot: false }
            }
            "START" if self.eat("TRANSACTION") => self.start_transaction()?,
            "COMMIT" => StatementKind::Commit(self.transaction_end()?),
            "ROLLBACK" => self.rollback()?,
            "SAVEPOINT" => StatementKind::Savepoint(self.ident()?),
            "RELEASE" => {
                self.expect("SAVEPOINT")?;
                StatementKind::ReleaseSavepoint(self.ident()?)
            }
            "LOCK" if self.eat("INSTANCE") => {
                self.expect_all(&["FOR", "BACKUP"])?;
                StatementKind::LockInstance
            }
            "LOCK" => self.lock_tables()?,
            "UNLOCK" if self.eat("INSTANCE") => StatementKind::UnlockInstance,
            "UNLOCK" => {
                if !self.eat("TABLES") {
                    self.expect("TABLE")?;
                }
                StatementKind::UnlockTables
            }
            "RESET" if self.is_word("PERSIST") => self.reset_persist()?,
            "CHANGE" if self.eat("REPLICATION") => self.change_replication()?,
            "START" if self.eat("REPLICA") => self.start_replica()?,
            "STOP" if self.eat("REPLICA") => self.stop_replica()?,
            "RESET" if self.is_word("REPLICA") || self.is_words(&["BINARY", "LOGS", "AND", "GTIDS"]) => {
                self.reset_of_replication()?
            }
            "PURGE" if self.eat_all(&["BINARY", "LOGS"]) => self.purge_logs()?,
            "LOAD" if self.eat("DATA") => StatementKind::LoadData(Box::new(self.load_data()?)),
            "GET" => self.get_diagnostics()?,
            "HELP" => StatementKind::Help(self.name()?),
            "REPAIR" => StatementKind::Repair(self.repaired_tables()?),
            "LOAD" | "XA" | "HANDLER" | "INSTALL" | "UNINSTALL" | "CHANGE" | "START" | "STOP" | "RESET"
            | "PURGE" | "BINLOG" | "CACHE" | "SIGNAL" | "RESIGNAL" | "IMPORT" | "CLONE" | "SHUTDOWN"
            | "RESTART" => self.unsupported(word)?,
            _ => {
                self.rewind(self.position() - 1);
                return Err(self.error());
            }
        })
    }

    /// `WITH … SELECT | UPDATE | DELETE`
    fn statement_with(&mut self) -> ParseResult<StatementKind> {
        let start = self.span();
        let with = self.optional_with()?;
        if self.eat("UPDATE") {
            return Ok(StatementKind::Update(Box::new(self.update(with)?)));
        }
        if self.eat("DELETE") {
            return Ok(StatementKind::Delete(Box::new(self.delete(with)?)));
        }
        Ok(StatementKind::Query(Box::new(self.query_after_with(with, start)?)))
    }

    /// A statement that is known but not served: its first words, and the rest skipped.
    fn unsupported(&mut self, first: &str) -> ParseResult<StatementKind> {
        let mut words = first.to_owned();
        if let Some(second) = self.word_upper() {
            words.push(' ');
            words.push_str(&second);
        }
        self.skip_statement();
        Ok(StatementKind::Unsupported(words))
    }

    fn skip_statement(&mut self) {
        while !self.at_statement_end() {
            self.advance();
        }
    }
}
