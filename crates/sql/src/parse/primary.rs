//! Primary expressions: literals, names, variables, calls, and the functions with a syntax of their own.

use avocet_types::Collation;
use avocet_types::collation::Charset;
use avocet_types::error::ErrorCode;
use avocet_types::expr::SqlMode;
use avocet_types::names;

use crate::parse::arities::{MANY, arity};
use crate::parse::ast::*;
use crate::parse::deprecated::Deprecated;
use crate::parse::error::{ParseError, ParseResult};
use crate::parse::keywords::is_reserved;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::{refused, unserved};
use crate::parse::windows::{AGGREGATES, WINDOW_FUNCTIONS};

/// How many characters the name of a user variable has at most.
const MOST_OF_USER_VARIABLE: usize = 64;

/// Reserved words that are functions when a parenthesis follows.
const RESERVED_FUNCTIONS: &[&str] = &[
    "CHAR",
    "CURRENT_USER",
    "DATABASE",
    "FORMAT",
    "IF",
    "INSERT",
    "INTERVAL",
    "LEFT",
    "MOD",
    "REPEAT",
    "REPLACE",
    "RIGHT",
    "SCHEMA",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
];

/// Variables that tell of the statement before.
const CONDITION_COUNTS: [&str; 2] = ["warning_count", "error_count"];

/// Functions of the current time that need no parentheses, and the names under which they are known further on.
const NILADIC: &[(&str, &str)] = &[
    ("CURRENT_DATE", "CURDATE"),
    ("CURRENT_TIME", "CURTIME"),
    ("CURRENT_TIMESTAMP", "NOW"),
    ("CURRENT_USER", "CURRENT_USER"),
    ("LOCALTIME", "NOW"),
    ("LOCALTIMESTAMP", "NOW"),
    ("UTC_DATE", "UTC_DATE"),
    ("UTC_TIME", "UTC_TIME"),
    ("UTC_TIMESTAMP", "UTC_TIMESTAMP"),
];

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> ParseResult<Expr> {
        let start = self.span();
        let kind = match self.peek() {
            TokenKind::Integer(value) => self.literal(ExprKind::Integer(*value)),
            TokenKind::Decimal => self.literal(ExprKind::Decimal(self.source_text())),
            TokenKind::Float(value) => self.literal(ExprKind::Float(*value)),
            TokenKind::Bytes(bytes) => self.literal(ExprKind::Hybrid { bytes: bytes.clone(), bits: false }),
            TokenKind::Bits(bytes) => self.literal(ExprKind::Hybrid { bytes: bytes.clone(), bits: true }),
            TokenKind::String(_) if self.source_text().starts_with(['n', 'N']) => {
                let literal = self.introduced_text(Charset::Utf8mb3)?;
                self.deprecated(Deprecated::National);
                literal
            }
            TokenKind::String(_) => ExprKind::String { value: self.string()?, charset: None },
            TokenKind::Param => {
                self.params += 1;
                self.literal(ExprKind::Param(self.params - 1))
            }
            TokenKind::Op(Op::LParen) => self.parenthesized()?,
            TokenKind::Op(Op::At) => self.user_variable()?,
            TokenKind::Op(Op::AtAt) => self.system_variable()?,
            TokenKind::Op(Op::LBrace) => self.odbc_escape()?,
            TokenKind::Word => self.word_expr()?,
            TokenKind::QuotedIdent(_) => self.name_or_call()?,
            _ => return Err(self.error()),
        };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    fn literal(&mut self, kind: ExprKind) -> ExprKind {
        self.advance();
        kind
    }

    /// `(e)`, `(a, b)`, `(SELECT …)`. The span of `(e)` is that of the parentheses.
    fn parenthesized(&mut self) -> ParseResult<ExprKind> {
        if self.at_parenthesized_query() {
            return Ok(ExprKind::Subquery(Box::new(self.parenthesized_query()?)));
        }
        let mut list = self.parenthesized_exprs()?;
        Ok(if list.len() == 1 { list.swap_remove(0).kind } else { ExprKind::Row(list) })
    }

    /// `@name` or `@name := value`
    fn user_variable(&mut self) -> ParseResult<ExprKind> {
        let start = self.position();
        let name = self.user_variable_name()?;
        if !self.is_op(Op::Assign) {
            return Ok(ExprKind::UserVariable { name, among: self.assigned.clone() });
        }
        self.rewind(start);
        let name = self.assigned_variable_name()?;
        self.advance();
        self.assigns.push(name.clone());
        let value = self.boxed_expr()?;
        self.deprecated(Deprecated::AssignedVariable);
        Ok(ExprKind::AssignVariable { name, value })
    }

    /// `@name`, in the form in which names of user variables are compared.
    pub(super) fn user_variable_name(&mut self) -> ParseResult<String> {
        let at = self.span();
        self.expect_op(Op::At)?;
        if self.span().start != at.end {
            return Err(self.error());
        }
        Ok(names::fold_unaccented(&self.name()?).into_owned())
    }

    /// `@name` to which something is assigned. Longer names can be read, and are NULL.
    pub(super) fn assigned_variable_name(&mut self) -> ParseResult<String> {
        let name = self.user_variable_name()?;
        match name.chars().count() > MOST_OF_USER_VARIABLE {
            true => Err(refused(ErrorCode::ILLEGAL_USER_VAR.with(&[&name]))),
            false => Ok(name),
        }
    }

    fn system_variable(&mut self) -> ParseResult<ExprKind> {
        self.expect_op(Op::AtAt)?;
        let scope = match self.eat_scope() {
            Some(scope) => {
                self.expect_op(Op::Dot)?;
                scope
            }
            None => VariableScope::Default,
        };
        let name = self.variable_name()?;
        self.reads_counts |= CONDITION_COUNTS.iter().any(|count| count.eq_ignore_ascii_case(&name));
        let unreadable = match scope {
            VariableScope::Persist => "persist",
            VariableScope::PersistOnly => "persist_only",
            _ => return Ok(ExprKind::SystemVariable { scope, name }),
        };
        let name = format!("{unreadable}.{name}");
        Err(refused(ErrorCode::UNKNOWN_SYSTEM_VARIABLE.with(&[&name])))
    }

    /// GLOBAL, SESSION, LOCAL or PERSIST, where it is a scope and not a name.
    pub(super) fn eat_scope(&mut self) -> Option<VariableScope> {
        Some(match self.eat_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"])? {
            "GLOBAL" => VariableScope::Global,
            "PERSIST" => VariableScope::Persist,
            "PERSIST_ONLY" => VariableScope::PersistOnly,
            _ => VariableScope::Session,
        })
    }

    /// `name` or `component.name`, in lower case.
    pub(super) fn variable_name(&mut self) -> ParseResult<String> {
        let mut name = self.any_ident()?.name.to_lowercase();
        while self.eat_op(Op::Dot) {
            name.push('.');
            name.push_str(&self.any_ident()?.name.to_lowercase());
        }
        Ok(name)
    }

    /// `{d '…'}`, `{t '…'}`, `{ts '…'}`; any other `{x e}` is `e`.
    fn odbc_escape(&mut self) -> ParseResult<ExprKind> {
        self.expect_op(Op::LBrace)?;
        let kind = match self.word_upper().as_deref() {
            Some("D") => Some(TemporalKind::Date),
            Some("T") => Some(TemporalKind::Time),
            Some("TS") => Some(TemporalKind::Timestamp),
            _ => None,
        };
        self.any_ident()?;
        let is_string = matches!(self.peek(), TokenKind::String(_));
        let expr = match kind {
            Some(kind) if is_string => ExprKind::Temporal { kind, text: self.string()? },
            _ => self.expr()?.kind,
        };
        self.expect_op(Op::RBrace)?;
        Ok(expr)
    }

    fn word_expr(&mut self) -> ParseResult<ExprKind> {
        let word = self.word_upper().unwrap_or_default();
        let next_is_string = matches!(self.peek_ahead(1), TokenKind::String(_));
        let next_is_literal =
            next_is_string || matches!(self.peek_ahead(1), TokenKind::Bytes(_) | TokenKind::Bits(_));
        let next_is_paren = *self.peek_ahead(1) == TokenKind::Op(Op::LParen);
        let next_is_dot = *self.peek_ahead(1) == TokenKind::Op(Op::Dot);
        if next_is_dot && !is_reserved(word.as_bytes()) {
            return self.name_or_call();
        }
        match word.as_str() {
            "NULL" => return Ok(self.literal(ExprKind::Null)),
            "TRUE" => return Ok(self.literal(ExprKind::Bool(true))),
            "FALSE" => return Ok(self.literal(ExprKind::Bool(false))),
            "DATE" if next_is_string => return self.temporal(TemporalKind::Date),
            "TIME" if next_is_string => return self.temporal(TemporalKind::Time),
            "TIMESTAMP" if next_is_string => return self.temporal(TemporalKind::Timestamp),
            "CASE" => return self.case(),
            "EXISTS" => {
                self.advance();
                return Ok(ExprKind::Exists(Box::new(self.parenthesized_query()?)));
            }
            "DEFAULT" => return self.default_value(),
            "ROW" if next_is_paren => {
                self.advance();
                return Ok(ExprKind::Row(self.call_args_within(2, MANY)?));
            }
            "MATCH" => return self.match_against(),
            _ if word.starts_with('_') && next_is_literal => {
                if let Some(literal) = self.introduced_string(&word)? {
                    return Ok(literal);
                }
            }
            _ => {}
        }
        if !next_is_paren && let Some((_, function)) = NILADIC.iter().find(|(name, _)| *name == word) {
            self.advance();
            return Ok(ExprKind::Function { name: (*function).into(), args: Vec::new() });
        }
        if next_is_paren {
            return self.call(&word);
        }
        self.name_or_call()
    }

    fn temporal(&mut self, kind: TemporalKind) -> ParseResult<ExprKind> {
        self.advance();
        Ok(ExprKind::Temporal { kind, text: self.string()? })
    }

    /// `_charset'…'`; None if it is no charset, and the word is a column's name.
    fn introduced_string(&mut self, word: &str) -> ParseResult<Option<ExprKind>> {
        let charset = word[1..].to_lowercase();
        if let Some(charset) = Charset::by_name(&charset) {
            self.advance();
            let literal = self.introduced_text(charset)?;
            if let Some(deprecated) = Deprecated::of_charset(&word[1..]) {
                self.deprecated(deprecated);
            }
            return Ok(Some(literal));
        }
        match charset.as_str() {
            // MySQL has these, too.
            "gb18030" | "tis620" => Err(ParseError::UnknownCharset(charset)),
            _ => Ok(None),
        }
    }

    /// A literal behind the name of its character set. Only hexadecimal and bit literals are refused if they are no text of
    /// it.
    fn introduced_text(&mut self, charset: Charset) -> ParseResult<ExprKind> {
        let (bytes, is_string) = match self.peek() {
            TokenKind::Bytes(bytes) | TokenKind::Bits(bytes) => (bytes.clone(), false),
            _ => (self.string_bytes()?, true),
        };
        let sent = match self.client {
            Some(client) if is_string => Some(client.encode(&self.text(&bytes)?)),
            _ => None,
        };
        // What is no text of UTF-8 is taken as the text that the client sees.
        let is_utf8 = matches!(charset, Charset::Utf8mb3 | Charset::Utf8mb4);
        let bytes = sent.filter(|sent| !is_utf8 || std::str::from_utf8(sent).is_ok()).unwrap_or(bytes);
        if !is_string {
            self.advance();
        }
        if charset == Charset::Binary {
            return Ok(ExprKind::Bytes(bytes));
        }
        let value = match charset.decode(&bytes) {
            Ok(value) => value,
            Err(_) if is_string && charset == Charset::Utf8mb3 => {
                let replaced =
                    |c: char| if charset.has(c) { String::from(c) } else { "?".repeat(c.len_utf8()) };
                self.text(&bytes)?.chars().map(replaced).collect()
            }
            Err(at) => {
                let shown = bytes[at..].iter().take(3).map(|byte| format!("{byte:02X}")).collect();
                return Err(ParseError::InvalidText { charset: charset.name(), shown });
            }
        };
        Ok(ExprKind::String { value, charset: Some(charset) })
    }

    fn name_or_call(&mut self) -> ParseResult<ExprKind> {
        let first = self.ident()?;
        if !self.eat_op(Op::Dot) {
            return Ok(ExprKind::Column { database: None, table: None, column: first });
        }
        let second = self.any_ident()?;
        if self.is_op(Op::LParen) {
            // A stored function's call: known by nobody, so that it is refused by its name.
            let name = format!("{}.{}", first.name, second.name);
            return Ok(ExprKind::Function { name, args: self.call_args()? });
        }
        if !self.eat_op(Op::Dot) {
            return Ok(ExprKind::Column { database: None, table: Some(first), column: second });
        }
        let third = self.any_ident()?;
        Ok(ExprKind::Column { database: Some(first), table: Some(second), column: third })
    }

    /// `DEFAULT` or `DEFAULT(column)`
    fn default_value(&mut self) -> ParseResult<ExprKind> {
        self.advance();
        if !self.eat_op(Op::LParen) {
            return Ok(ExprKind::Default);
        }
        let (database, table, column) = self.argument_column()?;
        self.expect_op(Op::RParen)?;
        Ok(ExprKind::DefaultOf { database, table, column })
    }

    fn match_against(&mut self) -> ParseResult<ExprKind> {
        self.advance();
        self.parenthesized_exprs()?;
        self.expect("AGAINST")?;
        let mut depth = 0;
        loop {
            match self.peek() {
                TokenKind::Op(Op::LParen) => depth += 1,
                TokenKind::Op(Op::RParen) => depth -= 1,
                TokenKind::End | TokenKind::Invalid => return Err(self.error()),
                _ if depth == 0 => return Err(self.error()),
                _ => {}
            }
            self.advance();
            if depth == 0 {
                return Ok(ExprKind::Unsupported("MATCH ... AGAINST"));
            }
        }
    }

    fn case(&mut self) -> ParseResult<ExprKind> {
        self.advance();
        let operand = if self.is_word("WHEN") { None } else { Some(self.boxed_expr()?) };
        let mut branches = Vec::new();
        while self.eat("WHEN") {
            let when = self.expr()?;
            self.expect("THEN")?;
            branches.push((when, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.error());
        }
        let otherwise = if self.eat("ELSE") { Some(self.boxed_expr()?) } else { None };
        self.expect("END")?;
        Ok(ExprKind::Case { operand, branches, otherwise })
    }

    /// `name(…)`; the cursor is on the name.
    fn call(&mut self, name: &str) -> ParseResult<ExprKind> {
        if AGGREGATES.contains(&name) {
            return self.aggregate(name);
        }
        if WINDOW_FUNCTIONS.contains(&name) {
            return self.window_call(name);
        }
        if let Some(kind) = self.special_call(name)? {
            return Ok(kind);
        }
        let reserved = is_reserved(name.as_bytes());
        if reserved && !RESERVED_FUNCTIONS.contains(&name) && name != "GROUPING" {
            return Err(self.error());
        }
        let written = self.source_text();
        self.advance();
        let args = match arity(name) {
            Some((least, most)) => self.call_args_within(least, most)?,
            None => self.call_args()?,
        };
        if name == "FOUND_ROWS" {
            self.deprecated(Deprecated::FoundRows);
        }
        let canonical =
            NILADIC.iter().find(|(n, _)| *n == name).map(|(_, canonical)| (*canonical).to_owned());
        Ok(ExprKind::Function { name: canonical.unwrap_or(written), args })
    }

    pub(super) fn call_args(&mut self) -> ParseResult<Vec<Expr>> {
        self.expect_op(Op::LParen)?;
        if self.eat_op(Op::RParen) {
            return Ok(Vec::new());
        }
        let args = self.expr_list()?;
        self.expect_op(Op::RParen)?;
        Ok(args)
    }

    /// The arguments of a function that the grammar knows: 1064 where there are too few or too many.
    pub(super) fn call_args_within(&mut self, least: usize, most: usize) -> ParseResult<Vec<Expr>> {
        self.expect_op(Op::LParen)?;
        let args = match most == 0 || least == 0 && self.is_op(Op::RParen) {
            true => Vec::new(),
            false => self.args_within(least, most)?,
        };
        self.expect_op(Op::RParen)?;
        Ok(args)
    }

    /// One expression at least, `least` and no more than `most`.
    pub(super) fn args_within(&mut self, least: usize, most: usize) -> ParseResult<Vec<Expr>> {
        let mut args = vec![self.expr()?];
        while args.len() < most && self.eat_op(Op::Comma) {
            args.push(self.expr()?);
        }
        if args.len() < least { Err(self.error()) } else { Ok(args) }
    }

    /// Functions whose arguments are not a plain list.
    fn special_call(&mut self, name: &str) -> ParseResult<Option<ExprKind>> {
        let parse: fn(&mut Self) -> ParseResult<ExprKind> = match name {
            "CAST" => Self::cast,
            "CONVERT" => Self::convert,
            "EXTRACT" => Self::extract,
            "TRIM" => Self::trim,
            "SUBSTRING" | "SUBSTR" | "MID" => Self::substring,
            "POSITION" => Self::position_in,
            "DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE" => {
                let subtract = name.ends_with("SUB") || name.starts_with("SUB");
                return self.date_arithmetic(subtract, name.ends_with("DATE")).map(Some);
            }
            "TIMESTAMPADD" => Self::timestamp_add,
            "TIMESTAMPDIFF" => Self::timestamp_diff,
            "GET_FORMAT" => Self::get_format,
            "JSON_VALUE" => Self::json_value,
            "CHAR" => Self::char_function,
            "WEIGHT_STRING" => Self::weight_string,
            "VALUES" => Self::inserted_value,
            _ => return Ok(None),
        };
        self.advance();
        self.expect_op(Op::LParen)?;
        let kind = parse(self)?;
        self.expect_op(Op::RParen)?;
        Ok(Some(kind))
    }

    fn cast(&mut self) -> ParseResult<ExprKind> {
        let expr = self.boxed_expr()?;
        self.expect("AS")?;
        let cast = self.cast_to(expr)?;
        match self.eat("ARRAY") {
            true => Err(unserved("CAST(... AS ... ARRAY): multi-valued indexes")),
            false => Ok(cast),
        }
    }

    fn convert(&mut self) -> ParseResult<ExprKind> {
        let expr = self.boxed_expr()?;
        if self.eat("USING") {
            return Ok(ExprKind::ConvertUsing { expr, charset: self.charset_name()? });
        }
        self.expect_op(Op::Comma)?;
        self.cast_to(expr)
    }

    fn cast_to(&mut self, expr: Box<Expr>) -> ParseResult<ExprKind> {
        Ok(ExprKind::Cast { expr, target: self.cast_target()? })
    }

    fn cast_target(&mut self) -> ParseResult<CastTarget> {
        let word = self.word_upper().ok_or_else(|| self.error())?;
        self.advance();
        Ok(match word.as_str() {
            "BINARY" => CastTarget::Binary(self.optional_len()?),
            "CHAR" | "CHARACTER" => return self.char_target(),
            "NCHAR" => {
                let target = self.char_target()?;
                self.deprecated(Deprecated::National);
                return Ok(target);
            }
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal_target()?,
            "DATETIME" | "TIMESTAMP" => CastTarget::DateTime(self.optional_len()?.unwrap_or(0)),
            "TIME" => CastTarget::Time(self.optional_len()?.unwrap_or(0)),
            "FLOAT" if self.optional_len()?.unwrap_or(0) > 24 => CastTarget::Double,
            "FLOAT" => CastTarget::Float,
            "SIGNED" | "UNSIGNED" => {
                let _ = self.eat("INTEGER") || self.eat("INT");
                if word == "SIGNED" { CastTarget::Signed } else { CastTarget::Unsigned }
            }
            "DOUBLE" => {
                self.eat("PRECISION");
                CastTarget::Double
            }
            "REAL" if self.mode.has(SqlMode::REAL_AS_FLOAT) => CastTarget::Float,
            "REAL" => CastTarget::Double,
            "DATE" => CastTarget::Date,
            "YEAR" => CastTarget::Year,
            "JSON" => CastTarget::Json,
            _ => {
                self.rewind(self.position() - 1);
                return Err(self.error());
            }
        })
    }

    fn char_target(&mut self) -> ParseResult<CastTarget> {
        let len = self.optional_len()?;
        let mut is_binary = self.binary_attribute();
        let charset = if self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]) {
            let name = self.charset_name()?;
            Some(Charset::by_name(&name).ok_or(ParseError::UnknownCharset(name))?)
        } else {
            self.charset_attribute()
        };
        is_binary |= self.binary_attribute();
        let collation = match (charset, is_binary) {
            (None, false) => None,
            (None, true) => Some(Collation::UTF8MB4_BIN),
            (Some(Charset::Binary), _) => return Ok(CastTarget::Binary(len)),
            (Some(charset), false) => Some(charset.default_collation()),
            (Some(charset), true) => Collation::by_name(&format!("{}_bin", charset.name())),
        };
        Ok(CastTarget::Char(len, collation))
    }

    fn decimal_target(&mut self) -> ParseResult<CastTarget> {
        if !self.eat_op(Op::LParen) {
            return Ok(CastTarget::Decimal(None));
        }
        let precision = self.unsigned()?;
        let scale = if self.eat_op(Op::Comma) { self.unsigned()? } else { 0 };
        self.expect_op(Op::RParen)?;
        Ok(CastTarget::Decimal(Some((precision, scale))))
    }

    /// `JSON_VALUE(document, 'path' [RETURNING type] [… ON EMPTY] [… ON ERROR])`
    fn json_value(&mut self) -> ParseResult<ExprKind> {
        let document = self.boxed_expr()?;
        self.expect_op(Op::Comma)?;
        let path = self.text_literal()?;
        let returning = if self.eat("RETURNING") { Some(self.cast_target()?) } else { None };
        let (on_empty, on_error) = self.on_json_problems()?;
        Ok(ExprKind::JsonValue(Box::new(JsonValueCall { document, path, returning, on_empty, on_error })))
    }

    /// `{NULL | ERROR | DEFAULT literal} ON EMPTY`, and the same ON ERROR.
    pub(super) fn on_json_problems(&mut self) -> ParseResult<(OnJsonProblem, OnJsonProblem)> {
        let (mut on_empty, mut on_error) = (OnJsonProblem::Null, OnJsonProblem::Null);
        let mut next = 0;
        while next < 2 {
            let answer = match self.word_upper().as_deref() {
                Some("NULL") => {
                    self.advance();
                    OnJsonProblem::Null
                }
                Some("ERROR") => {
                    self.advance();
                    OnJsonProblem::Error
                }
                Some("DEFAULT") => {
                    self.advance();
                    OnJsonProblem::Default(self.signed_literal()?)
                }
                _ => break,
            };
            self.expect("ON")?;
            if next == 0 && self.eat("EMPTY") {
                (on_empty, next) = (answer, 1);
            } else {
                self.expect("ERROR")?;
                (on_error, next) = (answer, 2);
            }
        }
        Ok((on_empty, on_error))
    }

    fn signed_literal(&mut self) -> ParseResult<Expr> {
        let literal = self.simple_expr()?;
        let value = match &literal.kind {
            ExprKind::Unary { op: UnaryOp::Minus | UnaryOp::Plus, expr } => &expr.kind,
            kind => kind,
        };
        match value {
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Integer(_)
            | ExprKind::Decimal(_)
            | ExprKind::Float(_)
            | ExprKind::String { .. }
            | ExprKind::Bytes(_)
            | ExprKind::Hybrid { .. }
            | ExprKind::Temporal { .. } => Ok(literal),
            _ => Err(self.error()),
        }
    }

    /// A string, as an expression.
    pub(super) fn string_literal(&mut self) -> ParseResult<Box<Expr>> {
        match self.peek() {
            TokenKind::String(_) => Ok(Box::new(self.primary()?)),
            _ => Err(self.error()),
        }
    }

    /// A string, with an introducer or without.
    fn text_literal(&mut self) -> ParseResult<Box<Expr>> {
        let wrong = self.error();
        match self.primary()? {
            literal if matches!(literal.kind, ExprKind::String { .. }) => Ok(Box::new(literal)),
            _ => Err(wrong),
        }
    }

    fn optional_len(&mut self) -> ParseResult<Option<u64>> {
        if !self.eat_op(Op::LParen) {
            return Ok(None);
        }
        let len = self.unsigned()?;
        self.expect_op(Op::RParen)?;
        Ok(Some(len))
    }

    fn extract(&mut self) -> ParseResult<ExprKind> {
        let unit = self.interval_unit()?;
        self.expect("FROM")?;
        Ok(ExprKind::Extract { unit, expr: self.boxed_expr()? })
    }

    fn trim(&mut self) -> ParseResult<ExprKind> {
        let side = match self.eat_any(&["BOTH", "LEADING", "TRAILING"]) {
            Some("LEADING") => TrimSide::Leading,
            Some("TRAILING") => TrimSide::Trailing,
            Some(_) => TrimSide::Both,
            None => {
                let first = self.boxed_expr()?;
                if !self.eat("FROM") {
                    return Ok(ExprKind::Trim { side: TrimSide::Both, what: None, expr: first });
                }
                let expr = self.boxed_expr()?;
                return Ok(ExprKind::Trim { side: TrimSide::Both, what: Some(first), expr });
            }
        };
        let what = if self.is_word("FROM") { None } else { Some(self.boxed_expr()?) };
        self.expect("FROM")?;
        Ok(ExprKind::Trim { side, what, expr: self.boxed_expr()? })
    }

    /// `SUBSTRING(s, p[, n])` or `SUBSTRING(s FROM p [FOR n])`
    fn substring(&mut self) -> ParseResult<ExprKind> {
        let mut args = vec![self.expr()?];
        if !self.eat("FROM") {
            self.expect_op(Op::Comma)?;
        }
        args.push(self.expr()?);
        if self.eat("FOR") || self.eat_op(Op::Comma) {
            args.push(self.expr()?);
        }
        Ok(ExprKind::Function { name: "SUBSTRING".into(), args })
    }

    /// `POSITION(a IN b)` is `LOCATE(a, b)`.
    fn position_in(&mut self) -> ParseResult<ExprKind> {
        let what = self.nested(|p| p.simple_expr())?;
        self.expect("IN")?;
        Ok(ExprKind::Function { name: "LOCATE".into(), args: vec![what, self.expr()?] })
    }

    /// `DATE_ADD(d, INTERVAL n unit)`; ADDDATE and SUBDATE also take plain days.
    fn date_arithmetic(&mut self, subtract: bool, takes_days: bool) -> ParseResult<ExprKind> {
        self.advance();
        self.expect_op(Op::LParen)?;
        let expr = self.boxed_expr()?;
        self.expect_op(Op::Comma)?;
        let (amount, unit) = match takes_days && !self.is_word("INTERVAL") {
            true => (self.boxed_expr()?, IntervalUnit::Day),
            false => self.interval()?,
        };
        self.expect_op(Op::RParen)?;
        Ok(ExprKind::DateArithmetic { expr, amount, unit, subtract })
    }

    fn timestamp_add(&mut self) -> ParseResult<ExprKind> {
        let unit = self.interval_unit()?;
        self.expect_op(Op::Comma)?;
        let amount = self.boxed_expr()?;
        self.expect_op(Op::Comma)?;
        let expr = self.boxed_expr()?;
        Ok(ExprKind::DateArithmetic { expr, amount, unit, subtract: false })
    }

    fn timestamp_diff(&mut self) -> ParseResult<ExprKind> {
        let unit = self.interval_unit()?;
        self.expect_op(Op::Comma)?;
        let from = self.boxed_expr()?;
        self.expect_op(Op::Comma)?;
        Ok(ExprKind::TimestampDiff { unit, from, to: self.boxed_expr()? })
    }

    /// `GET_FORMAT(DATE, 'EUR')`: the first argument becomes a string.
    fn get_format(&mut self) -> ParseResult<ExprKind> {
        let span = self.span();
        let kind = self.eat_any(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]).ok_or_else(|| self.error())?;
        self.expect_op(Op::Comma)?;
        let kind = Expr { kind: ExprKind::String { value: kind.into(), charset: None }, span };
        Ok(ExprKind::Function { name: "GET_FORMAT".into(), args: vec![kind, self.expr()?] })
    }

    /// `CHAR(n, … [USING charset])`
    fn char_function(&mut self) -> ParseResult<ExprKind> {
        let args = self.expr_list()?;
        let call = ExprKind::Function { name: "CHAR".into(), args };
        if !self.eat("USING") {
            return Ok(call);
        }
        let span = self.last_span();
        Ok(ExprKind::ConvertUsing {
            expr: Box::new(Expr { kind: call, span }),
            charset: self.charset_name()?,
        })
    }

    fn weight_string(&mut self) -> ParseResult<ExprKind> {
        let expr = self.expr()?;
        let span = expr.span;
        let mut args = vec![expr];
        if self.eat("AS") {
            let is_char = self.eat("CHAR");
            if !is_char {
                self.expect("BINARY")?;
            }
            self.expect_op(Op::LParen)?;
            let len = self.unsigned()?;
            self.expect_op(Op::RParen)?;
            if is_char {
                args.push(Expr { kind: ExprKind::Integer(len), span });
            } else if let Some(expr) = args.pop() {
                let target = CastTarget::Binary(Some(len));
                args.push(Expr { kind: ExprKind::Cast { expr: Box::new(expr), target }, span });
            }
        }
        Ok(ExprKind::Function { name: "WEIGHT_STRING".into(), args })
    }

    fn inserted_value(&mut self) -> ParseResult<ExprKind> {
        let (database, table, column) = self.argument_column()?;
        self.deprecated(match (self.in_upsert, self.queries) {
            (true, 0) => Deprecated::InsertedValue,
            (true, _) => Deprecated::InsertedValueOfSubquery,
            (false, _) => Deprecated::ValuesFunction,
        });
        Ok(ExprKind::InsertedValue { database, table, column })
    }

    /// A column's name, qualified or not: that of its database, of its table, its own.
    fn argument_column(&mut self) -> ParseResult<(Option<Ident>, Option<Ident>, Ident)> {
        let (mut database, mut table, mut column) = (None, None, self.ident()?);
        while database.is_none() && self.eat_op(Op::Dot) {
            database = table.replace(std::mem::replace(&mut column, self.any_ident()?));
        }
        Ok((database, table, column))
    }
}
