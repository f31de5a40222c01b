//! CREATE, DROP and TRUNCATE of databases, tables and indexes; what changes them is in `ddl/alter.rs`.

mod alter;
mod partitions;
mod table_options;
mod types;
mod views;

use avocet_types::ReferentialAction;
use avocet_types::error::ErrorCode;

use crate::parse::ast::*;
use crate::parse::error::ParseResult;
use crate::parse::lexer::Op;
use crate::parse::parser::Parser;
use crate::parse::refuse::{refused, unserved};
use crate::parse::statement::*;

/// What stands in the parentheses of CREATE TABLE.
#[derive(Default)]
struct TableParts {
    columns: Vec<ColumnSpec>,
    indexes: Vec<IndexSpec>,
    foreign_keys: Vec<ForeignKeySpec>,
    checks: Vec<CheckSpec>,
}

/// What stands behind an index's columns.
#[derive(Default)]
struct IndexOptions {
    is_rtree: bool,
    comment: Option<String>,
    invisible: bool,
    parser: Option<String>,
}

/// The kind of a key that is USING RTREE: a SPATIAL one.
fn kind_of(kind: IndexSpecKind, is_rtree: bool) -> ParseResult<IndexSpecKind> {
    match kind {
        IndexSpecKind::Secondary if is_rtree => Ok(IndexSpecKind::Spatial),
        _ if is_rtree => Err(unserved("USING RTREE")),
        kind => Ok(kind),
    }
}

/// Whether DEFAULT takes it without parentheses.
fn is_plain_default(value: &Expr, source: &[u8]) -> bool {
    match &value.kind {
        ExprKind::Unary { op: UnaryOp::Minus | UnaryOp::Plus, expr } => {
            let is_number =
                matches!(expr.kind, ExprKind::Integer(_) | ExprKind::Decimal(_) | ExprKind::Float(_));
            is_number && !expr.span.bytes(source).starts_with(b"(")
        }
        ExprKind::Function { name, .. } => {
            ["NOW", "LOCALTIME", "LOCALTIMESTAMP"].iter().any(|known| name.eq_ignore_ascii_case(known))
        }
        kind => matches!(
            kind,
            ExprKind::Null
                | ExprKind::Bool(_)
                | ExprKind::Integer(_)
                | ExprKind::Decimal(_)
                | ExprKind::Float(_)
                | ExprKind::String { .. }
                | ExprKind::Bytes(_)
                | ExprKind::Hybrid { .. }
                | ExprKind::Temporal { .. }
        ),
    }
}

impl Parser<'_> {
    pub(super) fn if_not_exists(&mut self) -> bool {
        self.eat_all(&["IF", "NOT", "EXISTS"])
    }

    pub(super) fn if_exists(&mut self) -> bool {
        self.eat_all(&["IF", "EXISTS"])
    }

    /// After CREATE.
    pub(super) fn create(&mut self) -> ParseResult<StatementKind> {
        let temporary = self.eat("TEMPORARY");
        if self.eat("TABLE") {
            return self.create_table(temporary);
        }
        if self.eat("DATABASE") || self.eat("SCHEMA") {
            let if_not_exists = self.if_not_exists();
            let name = self.ident()?;
            let (charset, collation) = self.database_options()?;
            return Ok(StatementKind::CreateDatabase { name, if_not_exists, charset, collation });
        }
        if self.eat("USER") {
            return self.create_user();
        }
        if self.eat("ROLE") {
            return self.create_role();
        }
        if self.is_words(&["SPATIAL", "REFERENCE"]) {
            return self.unsupported("CREATE");
        }
        let kind = match self.eat_any(&["UNIQUE", "FULLTEXT", "SPATIAL"]) {
            Some("UNIQUE") => IndexSpecKind::Unique,
            Some("FULLTEXT") => IndexSpecKind::Fulltext,
            Some(_) => IndexSpecKind::Spatial,
            None => IndexSpecKind::Secondary,
        };
        if self.eat("INDEX") {
            return self.create_index(kind);
        }
        if !temporary && let Some(view) = self.create_view()? {
            return Ok(view);
        }
        let words = [
            "OR",
            "DEFINER",
            "PROCEDURE",
            "FUNCTION",
            "TRIGGER",
            "EVENT",
            "SERVER",
            "TABLESPACE",
            "LOGFILE",
            "AGGREGATE",
            "RESOURCE",
            "UNDO",
            "SPATIAL",
        ];
        if self.is_any_word(&words) { self.unsupported("CREATE") } else { Err(self.error()) }
    }

    fn create_index(&mut self, kind: IndexSpecKind) -> ParseResult<StatementKind> {
        let name = Some(self.ident()?);
        let is_rtree = self.index_type()?;
        self.expect("ON")?;
        let table = self.object_name()?;
        let parts = self.index_parts()?;
        let options = self.index_options(kind)?;
        let kind = kind_of(kind, is_rtree || options.is_rtree)?;
        let IndexOptions { comment, invisible, parser, .. } = options;
        let how = self.alter_options()?;
        let index = IndexSpec { kind, name, parts, comment, invisible, parser };
        Ok(StatementKind::CreateIndex { table, index, how })
    }

    fn database_options(&mut self) -> ParseResult<(Option<String>, Option<String>)> {
        let (mut charset, mut collation) = (None, None);
        loop {
            let default = self.eat("DEFAULT");
            if self.is_words(&["READ", "ONLY"]) {
                return Err(unserved("READ ONLY"));
            }
            if self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]) {
                self.eat_op(Op::Eq);
                self.charset_option(&mut charset)?;
            } else if self.eat("COLLATE") {
                self.eat_op(Op::Eq);
                collation = Some(self.collation_name()?);
            } else if self.eat("ENCRYPTION") {
                self.eat_op(Op::Eq);
                self.no_encryption()?;
            } else if default {
                return Err(self.error());
            } else {
                return Ok((charset, collation));
            }
        }
    }

    /// The name of a character set, which may be said again, but not be another one (1302).
    fn charset_option(&mut self, charset: &mut Option<String>) -> ParseResult<()> {
        let name = self.charset_name()?;
        if let Some(before) = charset.as_ref().filter(|before| !before.eq_ignore_ascii_case(&name)) {
            let said = |name: &str| format!("CHARACTER SET {name}");
            let error = ErrorCode::CONFLICTING_DECLARATIONS.with(&[&said(before), &said(&name)]);
            return Err(refused(error));
        }
        *charset = Some(name);
        Ok(())
    }

    fn create_table(&mut self, temporary: bool) -> ParseResult<StatementKind> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        if self.eat("LIKE") {
            let like = self.object_name()?;
            return Ok(StatementKind::CreateTableLike { name, like, if_not_exists, temporary });
        }
        let mut parts = TableParts::default();
        if self.is_op(Op::LParen) && !self.at_parenthesized_query() {
            self.advance();
            if self.eat("LIKE") {
                let like = self.object_name()?;
                self.expect_op(Op::RParen)?;
                return Ok(StatementKind::CreateTableLike { name, like, if_not_exists, temporary });
            }
            self.comma_separated(|p| p.table_element(&mut parts))?;
            self.expect_op(Op::RParen)?;
        }
        let mut options = TableOptions::default();
        while self.table_option(&mut options)? {
            self.eat_op(Op::Comma);
        }
        let partitions = self.optional_partition_by()?;
        if let Some(word) = self.eat_any(&["IGNORE", "REPLACE"]) {
            return Err(unserved(format_args!("CREATE TABLE ... {word} SELECT")));
        }
        let has_query =
            self.eat("AS") || self.is_any_word(&["SELECT", "WITH", "TABLE"]) || self.at_parenthesized_query();
        let query = if has_query { Some(Box::new(self.query()?)) } else { None };
        let TableParts { columns, indexes, foreign_keys, checks } = parts;
        Ok(StatementKind::CreateTable(Box::new(CreateTable {
            name,
            if_not_exists,
            temporary,
            columns,
            indexes,
            foreign_keys,
            checks,
            options,
            partitions,
            query,
        })))
    }

    fn table_element(&mut self, parts: &mut TableParts) -> ParseResult<()> {
        let constraint = if self.eat("CONSTRAINT") {
            let named = self.is_ident();
            Some(if named { Some(self.ident()?) } else { None })
        } else {
            None
        };
        if self.eat("FOREIGN") {
            let behind = parts.indexes.len();
            parts.foreign_keys.push(ForeignKeySpec { behind, ..self.foreign_key(constraint.flatten())? });
        } else if self.eat("CHECK") {
            parts.checks.push(self.check(constraint.flatten(), None)?);
        } else if let Some(kind) = self.index_kind() {
            parts.indexes.push(self.index_spec(kind, constraint.flatten())?);
        } else if constraint.is_some() {
            return Err(self.error());
        } else {
            let mut column = self.column_spec()?;
            let behind = parts.indexes.len();
            parts.foreign_keys.extend(column.foreign_key().map(|key| ForeignKeySpec { behind, ..key }));
            parts.checks.append(&mut column.checks);
            parts.columns.push(column);
        }
        Ok(())
    }

    /// After CHECK.
    fn check(&mut self, name: Option<Ident>, column: Option<Ident>) -> ParseResult<CheckSpec> {
        self.expect_op(Op::LParen)?;
        let condition = self.expr()?;
        self.expect_op(Op::RParen)?;
        let enforced = !self.eat_all(&["NOT", "ENFORCED"]);
        if enforced {
            self.eat("ENFORCED");
        }
        Ok(CheckSpec { name, column, condition, enforced })
    }

    /// `PRIMARY KEY`, `UNIQUE [KEY]`, `KEY`, `INDEX`, `FULLTEXT [KEY]`, `SPATIAL [KEY]`
    fn index_kind(&mut self) -> Option<IndexSpecKind> {
        let kind = match self.eat_any(&["PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "KEY", "INDEX"])? {
            "PRIMARY" => IndexSpecKind::Primary,
            "UNIQUE" => IndexSpecKind::Unique,
            "FULLTEXT" => IndexSpecKind::Fulltext,
            "SPATIAL" => IndexSpecKind::Spatial,
            _ => return Some(IndexSpecKind::Secondary),
        };
        let _ = self.eat("KEY") || self.eat("INDEX");
        Some(kind)
    }

    /// After the words that name its kind.
    fn index_spec(&mut self, kind: IndexSpecKind, constraint: Option<Ident>) -> ParseResult<IndexSpec> {
        let own_name = if self.is_ident() && !self.is_word("USING") { Some(self.ident()?) } else { None };
        let is_rtree = self.index_type()?;
        let parts = self.index_parts()?;
        let options = self.index_options(kind)?;
        let kind = kind_of(kind, is_rtree || options.is_rtree)?;
        let IndexOptions { comment, invisible, parser, .. } = options;
        Ok(IndexSpec { kind, name: own_name.or(constraint), parts, comment, invisible, parser })
    }

    /// `USING BTREE | HASH | RTREE`: what has entries is a B+-tree. Whether it says RTREE.
    fn index_type(&mut self) -> ParseResult<bool> {
        if !(self.eat("USING") || self.eat("TYPE")) {
            return Ok(false);
        }
        let ty = self.eat_any(&["BTREE", "HASH", "RTREE"]).ok_or_else(|| self.error())?;
        Ok(ty == "RTREE")
    }

    fn index_parts(&mut self) -> ParseResult<Vec<IndexPartSpec>> {
        self.expect_op(Op::LParen)?;
        let parts = self.comma_separated(|p| {
            if p.is_op(Op::LParen) {
                p.advance();
                let expr = p.expr()?;
                p.expect_op(Op::RParen)?;
                let descending = p.eat_any(&["ASC", "DESC"]) == Some("DESC");
                return Ok(IndexPartSpec::Expr { expr, descending });
            }
            let name = p.ident()?;
            let prefix_len = p.optional_number()?.map(|len| u32::try_from(len).unwrap_or(u32::MAX));
            let descending = p.eat_any(&["ASC", "DESC"]) == Some("DESC");
            Ok(IndexPartSpec::Column { name, prefix_len, descending })
        })?;
        self.expect_op(Op::RParen)?;
        Ok(parts)
    }

    fn optional_number(&mut self) -> ParseResult<Option<u64>> {
        if !self.eat_op(Op::LParen) {
            return Ok(None);
        }
        let number = self.unsigned()?;
        self.expect_op(Op::RParen)?;
        Ok(Some(number))
    }

    fn index_options(&mut self, kind: IndexSpecKind) -> ParseResult<IndexOptions> {
        let mut options = IndexOptions::default();
        loop {
            if self.eat("COMMENT") {
                options.comment = Some(self.string()?);
            } else if self.eat("KEY_BLOCK_SIZE") {
                self.eat_op(Op::Eq);
                self.unsigned()?;
            } else if !matches!(kind, IndexSpecKind::Fulltext | IndexSpecKind::Spatial)
                && self.is_any_word(&["USING", "TYPE"])
            {
                options.is_rtree = self.index_type()?;
            } else if kind == IndexSpecKind::Fulltext && self.eat_all(&["WITH", "PARSER"]) {
                options.parser = Some(self.ident()?.name);
            } else if let Some(word) = self.eat_any(&["VISIBLE", "INVISIBLE"]) {
                options.invisible = word == "INVISIBLE";
            } else if self.is_any_word(&["ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"]) {
                return Err(unserved("ENGINE_ATTRIBUTE"));
            } else {
                return Ok(options);
            }
        }
    }

    /// After FOREIGN.
    fn foreign_key(&mut self, name: Option<Ident>) -> ParseResult<ForeignKeySpec> {
        self.expect("KEY")?;
        let index = if self.is_ident() { Some(self.ident()?) } else { None };
        let columns = self.parenthesized_idents()?;
        self.expect("REFERENCES")?;
        Ok(ForeignKeySpec { name, index, columns, references: self.reference()?, behind: 0 })
    }

    /// After REFERENCES. MATCH says nothing: every key is of MATCH SIMPLE.
    fn reference(&mut self) -> ParseResult<Reference> {
        let table = self.object_name()?;
        let columns = if self.is_op(Op::LParen) { self.parenthesized_idents()? } else { Vec::new() };
        if self.eat("MATCH") {
            self.eat_any(&["FULL", "PARTIAL", "SIMPLE"]).ok_or_else(|| self.error())?;
        }
        let (mut on_delete, mut on_update) = (None, None);
        while self.is_word("ON") {
            self.advance();
            let event = self.eat_any(&["DELETE", "UPDATE"]).ok_or_else(|| self.error())?;
            let action = if event == "DELETE" { &mut on_delete } else { &mut on_update };
            if action.is_some() {
                return Err(self.error());
            }
            *action = Some(self.referential_action()?);
        }
        let (on_delete, on_update) = (on_delete.unwrap_or_default(), on_update.unwrap_or_default());
        Ok(Reference { table, columns, on_delete, on_update })
    }

    fn referential_action(&mut self) -> ParseResult<ReferentialAction> {
        if self.eat("RESTRICT") {
            Ok(ReferentialAction::Restrict)
        } else if self.eat("CASCADE") {
            Ok(ReferentialAction::Cascade)
        } else if self.eat_all(&["NO", "ACTION"]) {
            Ok(ReferentialAction::NoAction)
        } else {
            self.expect("SET")?;
            match self.eat_any(&["NULL", "DEFAULT"]) {
                Some("NULL") => Ok(ReferentialAction::SetNull),
                Some(_) => Ok(ReferentialAction::SetDefault),
                None => Err(self.error()),
            }
        }
    }

    fn column_spec(&mut self) -> ParseResult<ColumnSpec> {
        let name = self.ident()?;
        let ty = self.type_spec()?;
        let mut column = ColumnSpec {
            name,
            ty,
            nullable: None,
            default: None,
            on_update_now: false,
            auto_increment: false,
            primary_key: false,
            unique: false,
            comment: None,
            references: None,
            checks: Vec::new(),
            generated: None,
            invisible: false,
            srid: None,
        };
        if column.ty.name == "SERIAL" {
            column.nullable = Some(false);
            column.auto_increment = true;
            column.unique = true;
        }
        while self.eat("COLLATE") {
            column.ty.collation = Some(self.collation_name()?);
        }
        column.generated = self.generated()?;
        while self.column_attribute(&mut column)? {}
        match column.misused_if_generated().filter(|_| column.generated.is_some()) {
            Some(what) => Err(refused(ErrorCode::WRONG_USAGE.with(&[&what, &"generated column"]))),
            None => Ok(column),
        }
    }

    /// `[GENERATED ALWAYS] AS (expr) [VIRTUAL | STORED]`, if it is there.
    fn generated(&mut self) -> ParseResult<Option<GeneratedSpec>> {
        if self.eat("GENERATED") {
            self.expect_all(&["ALWAYS", "AS"])?;
        } else if !self.eat("AS") {
            return Ok(None);
        }
        self.expect_op(Op::LParen)?;
        let expr = self.expr()?;
        self.expect_op(Op::RParen)?;
        let stored = self.eat_any(&["VIRTUAL", "STORED"]) == Some("STORED");
        Ok(Some(GeneratedSpec { expr, stored }))
    }

    /// One attribute; false if there is none.
    fn column_attribute(&mut self, column: &mut ColumnSpec) -> ParseResult<bool> {
        if self.eat_all(&["NOT", "NULL"]) {
            column.nullable = Some(false);
        } else if self.eat("NULL") {
            column.nullable = Some(true);
        } else if self.eat("DEFAULT") {
            let (default, collation) = self.default_spec()?;
            if collation.is_some() {
                column.ty.collation = collation;
            }
            let has_expr = |spec: &DefaultSpec| matches!(spec, DefaultSpec::Expr(_));
            if column.default.as_ref().is_some_and(|before| has_expr(before) || has_expr(&default)) {
                return Err(refused(ErrorCode::INVALID_DEFAULT.with(&[&column.name.name])));
            }
            column.default = Some(default);
        } else if self.eat_all(&["ON", "UPDATE"]) {
            self.on_update(column)?;
        } else if self.eat("AUTO_INCREMENT") {
            column.auto_increment = true;
        } else if self.eat("UNIQUE") {
            self.eat("KEY");
            column.unique = true;
        } else if self.eat_all(&["PRIMARY", "KEY"]) || self.eat("KEY") {
            column.primary_key = true;
        } else if self.eat("COMMENT") {
            column.comment = Some(self.string()?);
        } else if self.eat("COLLATE") {
            column.ty.collation = Some(self.collation_name()?);
        } else if self.eat("SRID") {
            let srid = self.unsigned()?;
            let out_of_range = || refused(ErrorCode::DATA_OUT_OF_RANGE.with(&[&"SRID", &"SRID"]));
            column.srid = Some(u32::try_from(srid).map_err(|_| out_of_range())?);
        } else if self.eat("REFERENCES") {
            column.references = Some(self.reference()?);
        } else if self.is_any_word(&["CONSTRAINT", "CHECK"]) {
            let named = self.eat("CONSTRAINT") && !self.is_word("CHECK");
            let name = if named { Some(self.ident()?) } else { None };
            self.expect("CHECK")?;
            column.checks.push(self.check(name, Some(column.name.clone()))?);
        } else if self.eat("COLUMN_FORMAT") {
            self.eat_any(&["FIXED", "DYNAMIC", "DEFAULT"]).ok_or_else(|| self.error())?;
        } else if self.eat("STORAGE") {
            self.eat_any(&["DISK", "MEMORY", "DEFAULT"]).ok_or_else(|| self.error())?;
        } else if self.eat_all(&["SERIAL", "DEFAULT", "VALUE"]) {
            column.nullable = Some(false);
            column.auto_increment = true;
            column.unique = true;
        } else {
            self.no_hidden_attributes()?;
            let Some(word) = self.eat_any(&["VISIBLE", "INVISIBLE"]) else { return Ok(false) };
            column.invisible = word == "INVISIBLE";
        }
        Ok(true)
    }

    /// Attributes that would be missed if they were dropped.
    fn no_hidden_attributes(&self) -> ParseResult<()> {
        const UNSERVED: &[&str] = &["ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "AUTO_RANDOM"];
        match UNSERVED.iter().find(|word| self.is_word(word)) {
            Some(word) => Err(unserved(word)),
            None => Ok(()),
        }
    }

    /// After ON UPDATE: the current time, of the column's own precision.
    fn on_update(&mut self, column: &mut ColumnSpec) -> ParseResult<()> {
        let start = self.position();
        let now = self.simple_expr()?;
        let ExprKind::Function { name, args } = &now.kind else {
            self.rewind(start);
            return Err(self.error());
        };
        if !["NOW", "LOCALTIME", "LOCALTIMESTAMP"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
            self.rewind(start);
            return Err(self.error());
        }
        let precision = match args.first().map(|arg| &arg.kind) {
            None => 0,
            Some(ExprKind::Integer(precision)) => *precision,
            Some(_) => return Err(self.error()),
        };
        if precision != column.ty.args.first().copied().unwrap_or(0) {
            return Err(refused(ErrorCode::INVALID_ON_UPDATE.with(&[&column.name.name])));
        }
        column.on_update_now = true;
        Ok(())
    }

    /// After DEFAULT: a literal, the current time, or any expression in parentheses; and the collation of the column if one follows,
    /// which an expression takes for its own.
    fn default_spec(&mut self) -> ParseResult<(DefaultSpec, Option<String>)> {
        if self.eat_op(Op::LParen) {
            let expr = self.expr()?;
            self.expect_op(Op::RParen)?;
            return Ok((DefaultSpec::Expr(expr), None));
        }
        let start = self.position();
        let mut value = self.simple_expr()?;
        let mut collation = None;
        if let ExprKind::Collate { expr, collation: of_column } = value.kind {
            (value, collation) = (*expr, Some(of_column));
        }
        if is_plain_default(&value, self.source) {
            return Ok((DefaultSpec::Value(value), collation));
        }
        self.rewind(start);
        Err(self.error())
    }

    /// After DROP.
    pub(super) fn drop(&mut self) -> ParseResult<StatementKind> {
        let temporary = self.eat("TEMPORARY");
        if self.eat("TABLE") || self.eat("TABLES") {
            let if_exists = self.if_exists();
            let names = self.comma_separated(Self::object_name)?;
            self.eat_any(&["RESTRICT", "CASCADE"]);
            return Ok(StatementKind::DropTable { names, if_exists, temporary });
        }
        if self.eat("DATABASE") || self.eat("SCHEMA") {
            let if_exists = self.if_exists();
            return Ok(StatementKind::DropDatabase { name: self.ident()?, if_exists });
        }
        if self.eat("INDEX") {
            let name = self.any_ident()?;
            self.expect("ON")?;
            let table = self.object_name()?;
            let how = self.alter_options()?;
            return Ok(StatementKind::DropIndex { table, name, how });
        }
        if self.eat("VIEW") {
            let if_exists = self.if_exists();
            let names = self.comma_separated(Self::object_name)?;
            self.eat_any(&["RESTRICT", "CASCADE"]);
            return Ok(StatementKind::DropView { names, if_exists });
        }
        if self.eat("USER") {
            let if_exists = self.if_exists();
            return Ok(StatementKind::DropUser { users: self.comma_separated(Self::user_name)?, if_exists });
        }
        if self.eat("ROLE") {
            return self.drop_role();
        }
        if self.is_word("PREPARE") {
            self.advance();
            return Ok(StatementKind::Deallocate(self.ident()?));
        }
        let program = match self.eat_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]) {
            Some("PROCEDURE") => Some(ProgramKind::Procedure),
            Some("FUNCTION") => Some(ProgramKind::Function),
            Some("TRIGGER") => Some(ProgramKind::Trigger),
            Some(_) => Some(ProgramKind::Event),
            None => None,
        };
        if let Some(kind) = program {
            let if_exists = self.if_exists();
            return Ok(StatementKind::DropProgram { kind, name: self.object_name()?, if_exists });
        }
        let words = ["SERVER", "SPATIAL", "TABLESPACE", "LOGFILE", "RESOURCE", "UNDO"];
        if self.is_any_word(&words) { self.unsupported("DROP") } else { Err(self.error()) }
    }

    /// `ALGORITHM = …` and `LOCK = …` at the end of CREATE INDEX and DROP INDEX.
    fn alter_options(&mut self) -> ParseResult<AlterHow> {
        let mut how = AlterHow::default();
        while self.alter_option_of(&mut how)? {}
        Ok(how)
    }

    /// One of the two; false if there is none.
    fn alter_option_of(&mut self, how: &mut AlterHow) -> ParseResult<bool> {
        let Some(option) = self.eat_any(&["ALGORITHM", "LOCK"]) else { return Ok(false) };
        self.eat_op(Op::Eq);
        let value = self.name()?.to_uppercase();
        match option {
            "ALGORITHM" => {
                let known = ["DEFAULT", "COPY", "INPLACE", "INSTANT"].into_iter().find(|name| *name == value);
                how.algorithm =
                    known.ok_or_else(|| refused(ErrorCode::UNKNOWN_ALTER_ALGORITHM.with(&[&value])))?;
            }
            _ => {
                let known =
                    ["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"].into_iter().find(|name| *name == value);
                how.lock = known.ok_or_else(|| refused(ErrorCode::UNKNOWN_ALTER_LOCK.with(&[&value])))?;
            }
        }
        Ok(true)
    }
}
