//! INSERT, REPLACE, UPDATE, DELETE.

use avocet_types::error::ErrorCode;

use crate::parse::ast::*;
use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::refused;
use crate::parse::statement::*;

impl Parser<'_> {
    /// After INSERT or REPLACE.
    pub(super) fn insert(&mut self, replace: bool) -> ParseResult<Insert> {
        // How soon it is to be run: no effect here.
        let priorities = ["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"];
        self.eat_any(if replace { &priorities[..2] } else { &priorities });
        let ignore = !replace && self.eat("IGNORE");
        self.eat("INTO");
        let table = self.object_name()?;
        self.no_partitions(&table, if replace { "REPLACE" } else { "INSERT" })?;
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
            let qualified = |a: &Assignment| (a.table.clone(), a.column.clone());
            assignments.iter().try_for_each(|a| is_own_column(&insert.table, qualified(a)).map(drop))?;
            let (columns, row) = assignments.into_iter().map(|a| (a.column, a.value)).unzip();
            insert.columns = Some(columns);
            insert.source = InsertSource::Values(vec![row]);
        } else {
            insert.columns = self.optional_column_list(&insert.table)?;
            insert.source = self.insert_source()?;
        }
        if !replace && matches!(insert.source, InsertSource::Values(_)) && self.eat("AS") {
            let name = self.ident()?;
            let columns = if self.is_op(Op::LParen) { self.parenthesized_idents()? } else { Vec::new() };
            insert.row_alias = Some((name, columns));
        }
        if !replace && self.eat_all(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            self.in_upsert = true;
            insert.on_duplicate = self.comma_separated(Self::assignment)?;
            self.in_upsert = false;
        }
        Ok(insert)
    }

    /// `(a, b)` or `()`, unless it begins a query. Names may be qualified by the table that is inserted into.
    fn optional_column_list(&mut self, table: &ObjectName) -> ParseResult<Option<Vec<Ident>>> {
        if !self.is_op(Op::LParen) || self.at_parenthesized_query() {
            return Ok(None);
        }
        self.advance();
        if self.eat_op(Op::RParen) {
            return Ok(Some(Vec::new()));
        }
        let columns = self.comma_separated(|p| is_own_column(table, p.column_name()?))?;
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
    pub(super) fn assignment(&mut self) -> ParseResult<Assignment> {
        let (table, column) = self.column_name()?;
        if !self.eat_op(Op::Eq) {
            self.expect_op(Op::Assign)?;
        }
        Ok(Assignment { table, column, value: self.expr()? })
    }

    /// `[[db.]table.]column`
    pub(super) fn column_name(&mut self) -> ParseResult<(Option<ObjectName>, Ident)> {
        let mut names = vec![self.ident()?];
        while names.len() < 3 && self.eat_op(Op::Dot) {
            names.push(self.any_ident()?);
        }
        let mut names = names.into_iter().rev();
        let column = names.next().ok_or_else(|| self.error())?;
        let table = names.next().map(|name| ObjectName { database: names.next(), name });
        Ok((table, column))
    }

    /// After UPDATE.
    pub(super) fn update(&mut self, with: Option<With>) -> ParseResult<Update> {
        self.eat("LOW_PRIORITY");
        let ignore = self.eat("IGNORE");
        let tables = self.table_refs()?;
        self.expect("SET")?;
        let assignments = self.comma_separated(Self::assignment)?;
        let filter = if self.eat("WHERE") { Some(self.expr()?) } else { None };
        let order_by = self.optional_order_by()?;
        let limit = self.optional_count()?;
        Ok(Update { with, ignore, tables, assignments, filter, order_by, limit })
    }

    /// After DELETE.
    pub(super) fn delete(&mut self, with: Option<With>) -> ParseResult<Delete> {
        let mut ignore = false;
        while let Some(word) = self.eat_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
            ignore |= word == "IGNORE";
        }
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
        let is_selection = |hint: &IndexHint| hint.kind == IndexHintKind::Partition;
        let mut is_plain =
            matches!(&delete.from[..], [TableRef::Table { hints, .. }] if hints.iter().all(is_selection));
        // Behind the alias, too.
        if let Some(selection) = self.partition_selection()? {
            match &mut delete.from[..] {
                [TableRef::Table { hints, .. }] if hints.is_empty() => hints.push(selection),
                _ => is_plain = false,
            }
        }
        if delete.targets.is_empty() && !is_plain {
            return Err(self.error());
        }
        delete.filter = if self.eat("WHERE") { Some(self.expr()?) } else { None };
        if delete.targets.is_empty() {
            delete.order_by = self.optional_order_by()?;
            delete.limit = self.optional_count()?;
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
        if !self.eat_op(Op::Dot) || self.eat_op(Op::Star) {
            return Ok(ObjectName { database: None, name: first });
        }
        let name = self.any_ident()?;
        if self.eat_op(Op::Dot) {
            self.expect_op(Op::Star)?;
        }
        Ok(ObjectName { database: Some(first), name })
    }
}

/// The column of a statement that inserts; error 1054 if its name says that it is another table's.
pub(super) fn is_own_column(
    table: &ObjectName,
    (of, column): (Option<ObjectName>, Ident),
) -> ParseResult<Ident> {
    let Some(of) = of else { return Ok(column) };
    let same_database = match (&of.database, &table.database) {
        (Some(of), Some(own)) => of.name == own.name,
        // What the current database is, the parser does not know.
        _ => true,
    };
    if same_database && of.name.name == table.name.name {
        return Ok(column);
    }
    let database = of.database.map(|name| format!("{}.", name.name)).unwrap_or_default();
    let name = format!("{database}{}.{}", of.name.name, column.name);
    Err(refused(ErrorCode::BAD_FIELD_ERROR.with(&[&name, &"field list"])))
}
