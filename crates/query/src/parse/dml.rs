//! INSERT, REPLACE, UPDATE, DELETE.

use crate::parse::ast::*;
use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::statement::*;

impl Parser<'_> {
    /// After INSERT or REPLACE.
    pub(super) fn insert(&mut self, replace: bool) -> ParseResult<Insert> {
        let ignore = self.dml_modifiers();
        self.eat("INTO");
        let table = self.object_name()?;
        if self.eat("PARTITION") {
            self.parenthesized_idents()?;
        }
        let mut insert = Insert {
            replace,
            ignore,
            table,
            columns: None,
            source: InsertSource::Values(Vec::new()),
            row_alias: None,
            on_duplicate: Vec::new(),
        };
        if self.eat("SET") {
            let assignments = self.comma_separated(Self::assignment)?;
            let (columns, row) = assignments.into_iter().map(|a| (a.column, a.value)).unzip();
            insert.columns = Some(columns);
            insert.source = InsertSource::Values(vec![row]);
        } else {
            insert.columns = self.optional_column_list()?;
            insert.source = self.insert_source()?;
        }
        if !replace && matches!(insert.source, InsertSource::Values(_)) && self.eat("AS") {
            let name = self.ident()?;
            let columns = if self.is_op(Op::LParen) { self.parenthesized_idents()? } else { Vec::new() };
            insert.row_alias = Some((name, columns));
        }
        if !replace && self.eat_all(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            insert.on_duplicate = self.comma_separated(Self::assignment)?;
        }
        Ok(insert)
    }

    /// LOW_PRIORITY, DELAYED, HIGH_PRIORITY, QUICK: no effect here. Whether IGNORE was among them.
    fn dml_modifiers(&mut self) -> bool {
        let mut ignore = false;
        while let Some(word) = self.eat_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE"])
        {
            ignore |= word == "IGNORE";
        }
        ignore
    }

    /// `(a, b)` or `()`, unless it begins a query.
    fn optional_column_list(&mut self) -> ParseResult<Option<Vec<Ident>>> {
        if !self.is_op(Op::LParen) || self.at_parenthesized_query() {
            return Ok(None);
        }
        self.advance();
        if self.eat_op(Op::RParen) {
            return Ok(Some(Vec::new()));
        }
        let columns = self.comma_separated(|p| {
            // `t.a` is `a`.
            let mut name = p.any_ident()?;
            while p.eat_op(Op::Dot) {
                name = p.any_ident()?;
            }
            Ok(name)
        })?;
        self.expect_op(Op::RParen)?;
        Ok(Some(columns))
    }

    fn insert_source(&mut self) -> ParseResult<InsertSource> {
        let row_list = self.is_any_word(&["VALUES", "VALUE"]) && !self.is_word_ahead(1, "ROW");
        if row_list {
            self.advance();
            return Ok(InsertSource::Values(self.comma_separated(Self::insert_row)?));
        }
        if self.is_words(&["VALUES", "ROW"]) {
            self.advance();
            return Ok(InsertSource::Values(self.comma_separated(|p| {
                p.expect("ROW")?;
                p.insert_row()
            })?));
        }
        Ok(InsertSource::Query(Box::new(self.query()?)))
    }

    /// `(a, b)`; `()` gives every column its default.
    fn insert_row(&mut self) -> ParseResult<Vec<Expr>> {
        self.expect_op(Op::LParen)?;
        if self.eat_op(Op::RParen) {
            return Ok(Vec::new());
        }
        let row = self.expr_list()?;
        self.expect_op(Op::RParen)?;
        Ok(row)
    }

    /// `[[db.]table.]column = value`
    fn assignment(&mut self) -> ParseResult<Assignment> {
        let mut names = vec![self.ident()?];
        while self.eat_op(Op::Dot) && names.len() < 3 {
            names.push(self.any_ident()?);
        }
        if !self.eat_op(Op::Eq) {
            self.expect_op(Op::Assign)?;
        }
        let value = self.expr()?;
        let mut names = names.into_iter().rev();
        let column = names.next().ok_or_else(|| self.error())?;
        let table = names.next().map(|name| ObjectName { database: names.next(), name });
        Ok(Assignment { table, column, value })
    }

    /// After UPDATE.
    pub(super) fn update(&mut self, with: Option<With>) -> ParseResult<Update> {
        let ignore = self.dml_modifiers();
        let tables = self.table_refs()?;
        self.expect("SET")?;
        let assignments = self.comma_separated(Self::assignment)?;
        let filter = if self.eat("WHERE") { Some(self.expr()?) } else { None };
        let order_by = self.optional_order_by()?;
        let limit = self.optional_limit()?;
        Ok(Update { with, ignore, tables, assignments, filter, order_by, limit })
    }

    /// After DELETE.
    pub(super) fn delete(&mut self, with: Option<With>) -> ParseResult<Delete> {
        let ignore = self.dml_modifiers();
        let mut delete = Delete {
            with,
            ignore,
            targets: Vec::new(),
            from: Vec::new(),
            filter: None,
            order_by: Vec::new(),
            limit: None,
        };
        if self.eat("FROM") {
            if self.at_delete_targets() {
                delete.targets = self.comma_separated(Self::delete_target)?;
                self.expect("USING")?;
            }
        } else {
            delete.targets = self.comma_separated(Self::delete_target)?;
            self.expect("FROM")?;
        }
        delete.from = self.table_refs()?;
        delete.filter = if self.eat("WHERE") { Some(self.expr()?) } else { None };
        if delete.targets.is_empty() {
            delete.order_by = self.optional_order_by()?;
            delete.limit = self.optional_limit()?;
        }
        Ok(delete)
    }

    /// Whether `DELETE FROM t1, t2 USING …` is here: names and commas up to USING.
    fn at_delete_targets(&self) -> bool {
        for ahead in 0.. {
            if self.is_word_ahead(ahead, "USING") {
                return true;
            }
            match self.peek_ahead(ahead) {
                TokenKind::Word | TokenKind::QuotedIdent(_) => {
                    if ["WHERE", "AS", "JOIN", "ORDER", "LIMIT", "ON"]
                        .iter()
                        .any(|k| self.is_word_ahead(ahead, k))
                    {
                        return false;
                    }
                }
                TokenKind::Op(Op::Dot | Op::Comma | Op::Star) => {}
                _ => return false,
            }
        }
        false
    }

    /// `t`, `t.*`, `db.t`, `db.t.*`
    fn delete_target(&mut self) -> ParseResult<ObjectName> {
        let first = self.ident()?;
        let mut name = ObjectName { database: None, name: first };
        while self.eat_op(Op::Dot) {
            if self.eat_op(Op::Star) {
                break;
            }
            name = ObjectName { database: Some(name.name), name: self.any_ident()? };
        }
        Ok(name)
    }
}
