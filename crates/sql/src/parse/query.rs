//! Query expressions: SELECT, set operations, VALUES, TABLE, WITH, and what goes into FROM.

use avocet_types::error::ErrorCode;

use crate::parse::ast::*;
use crate::parse::deprecated::Deprecated;
use crate::parse::error::{ParseError, ParseResult};
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::refused;
use crate::parse::statement::SelectInto;

/// Words that are no reserved ones but end a table reference rather than being its alias.
const NO_ALIAS: &[&str] =
    &["LEFT", "RIGHT", "INNER", "CROSS", "NATURAL", "JOIN", "STRAIGHT_JOIN", "ON", "USING", "SET"];

/// Queries that may stand within one another, as in MySQL.
const MOST_NESTED: u32 = 64;

impl Parser<'_> {
    /// Whether a query in parentheses is here, as opposed to an expression in parentheses.
    pub(super) fn at_parenthesized_query(&self) -> bool {
        let mut ahead = 0;
        while *self.peek_ahead(ahead) == TokenKind::Op(Op::LParen) {
            ahead += 1;
        }
        ahead > 0 && (self.at_query_word(ahead) && (ahead == 1 || self.closes_as_query(ahead)))
    }

    fn at_query_word(&self, ahead: usize) -> bool {
        ["SELECT", "WITH", "TABLE"].iter().any(|k| self.is_word_ahead(ahead, k))
            || (self.is_word_ahead(ahead, "VALUES") && self.is_word_ahead(ahead + 1, "ROW"))
    }

    /// For `((SELECT …` with `depth` parentheses: whether the outermost holds a query, so that what follows each inner
    /// one is nothing or a query's tail, not an operator.
    fn closes_as_query(&self, depth: usize) -> bool {
        let mut open = depth;
        let mut ahead = depth;
        while open > 1 {
            match self.peek_ahead(ahead) {
                TokenKind::Op(Op::LParen) => open += 1,
                TokenKind::Op(Op::RParen) => {
                    open -= 1;
                    let tail = ["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "FOR", "LOCK"];
                    let closes = *self.peek_ahead(ahead + 1) == TokenKind::Op(Op::RParen)
                        || tail.iter().any(|k| self.is_word_ahead(ahead + 1, k));
                    if open < depth && !closes {
                        return false;
                    }
                }
                TokenKind::End => return false,
                _ => {}
            }
            ahead += 1;
        }
        true
    }

    pub(super) fn parenthesized_query(&mut self) -> ParseResult<Query> {
        self.expect_op(Op::LParen)?;
        let query = self.query()?;
        self.expect_op(Op::RParen)?;
        Ok(query)
    }

    pub(super) fn query(&mut self) -> ParseResult<Query> {
        if self.queries == MOST_NESTED {
            return Err(refused(ErrorCode::TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT.with(&[])));
        }
        self.queries += 1;
        let query = self.nested(Self::query_here);
        self.queries -= 1;
        query
    }

    fn query_here(&mut self) -> ParseResult<Query> {
        let start = self.span();
        let with = self.optional_with()?;
        self.query_after_with(with, start)
    }

    pub(super) fn query_after_with(&mut self, with: Option<With>, start: Span) -> ParseResult<Query> {
        let body = self.set_operation(0)?;
        let order_by = self.optional_order_by()?;
        let limit = self.optional_limit()?;
        self.optional_into()?;
        let mut locks = Vec::new();
        while let Some(lock) = self.optional_lock()? {
            locks.push(lock);
        }
        self.optional_into()?;
        Ok(Query { with, body, order_by, limit, locks, span: self.span_from(start) })
    }

    pub(super) fn optional_with(&mut self) -> ParseResult<Option<With>> {
        if !self.eat("WITH") {
            return Ok(None);
        }
        let recursive = self.eat("RECURSIVE");
        let ctes = self.comma_separated(Self::cte)?;
        Ok(Some(With { recursive, ctes }))
    }

    fn cte(&mut self) -> ParseResult<Cte> {
        let name = self.ident()?;
        let columns = if self.is_op(Op::LParen) { self.parenthesized_idents()? } else { Vec::new() };
        self.expect("AS")?;
        Ok(Cte { name, columns, query: self.parenthesized_query()? })
    }

    /// Set operators from left to right; INTERSECT binds tighter than UNION and EXCEPT.
    fn set_operation(&mut self, min: u8) -> ParseResult<QueryBody> {
        self.apart(|parser| parser.set_operation_here(min))
    }

    fn set_operation_here(&mut self, min: u8) -> ParseResult<QueryBody> {
        let mut left = self.apart(Self::query_primary)?;
        loop {
            let (op, power) = match () {
                () if self.is_word("UNION") => (SetOperator::Union, 0),
                () if self.is_word("EXCEPT") || self.is_word("MINUS") => (SetOperator::Except, 0),
                () if self.is_word("INTERSECT") => (SetOperator::Intersect, 1),
                () => break,
            };
            if power < min {
                break;
            }
            // Only the last block may have it, and it goes for all.
            if self.queries == 1 && self.into.is_some() {
                return Err(misplaced_into());
            }
            self.advance();
            let all = self.eat("ALL");
            if !all {
                self.eat("DISTINCT");
            }
            let right = self.set_operation(power + 1)?;
            self.taller()?;
            left = QueryBody::SetOperation { op, all, left: Box::new(left), right: Box::new(right) };
        }
        Ok(left)
    }

    fn query_primary(&mut self) -> ParseResult<QueryBody> {
        if self.is_op(Op::LParen) {
            return Ok(QueryBody::Parenthesized(Box::new(self.parenthesized_query()?)));
        }
        match self.eat_any(&["SELECT", "VALUES", "TABLE"]) {
            Some("SELECT") => Ok(QueryBody::Select(Box::new(self.select()?))),
            Some("VALUES") => Ok(QueryBody::Values(self.comma_separated(Self::values_row)?)),
            Some(_) => Ok(QueryBody::Table(self.object_name()?)),
            None => Err(self.error()),
        }
    }

    fn values_row(&mut self) -> ParseResult<Vec<Expr>> {
        self.expect("ROW")?;
        self.parenthesized_exprs()
    }

    fn select(&mut self) -> ParseResult<Select> {
        let mut select = Select::default();
        self.select_options(&mut select)?;
        select.items = self.comma_separated(Self::select_item)?;
        self.optional_into()?;
        if self.eat("FROM") && !self.eat("DUAL") {
            select.from = self.table_refs()?;
        }
        select.filter = if self.eat("WHERE") { Some(self.expr()?) } else { None };
        if self.eat_all(&["GROUP", "BY"]) {
            select.group_by = self.expr_list()?;
            // The old `GROUP BY a ASC` is gone; WITH ROLLUP is not.
            select.rollup = self.eat_all(&["WITH", "ROLLUP"]);
        }
        select.having = if self.eat("HAVING") { Some(self.expr()?) } else { None };
        if self.eat("WINDOW") {
            select.windows = self.comma_separated(|p| {
                let name = p.ident()?;
                p.expect("AS")?;
                Ok((name, p.window_spec()?))
            })?;
        }
        Ok(select)
    }

    /// `INTO` variables or a file, in each of its places; once, and not in subqueries.
    fn optional_into(&mut self) -> ParseResult<()> {
        if !self.is_word("INTO") {
            return Ok(());
        }
        if self.queries > 1 {
            return Err(misplaced_into());
        }
        if self.into.is_some() {
            return Err(refused(ErrorCode::MULTIPLE_INTO_CLAUSES.with(&[])));
        }
        self.advance();
        self.into = Some(if self.eat("OUTFILE") {
            let file = self.string()?;
            let has_charset = self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]);
            let charset = if has_charset { Some(self.charset_name()?) } else { None };
            SelectInto::Outfile { file, charset, format: self.delimited_format()? }
        } else if self.eat("DUMPFILE") {
            SelectInto::Dumpfile(self.string()?)
        } else {
            SelectInto::Variables(self.comma_separated(|p| match p.is_op(Op::At) {
                true => p.assigned_variable_name(),
                // Of stored programs, which there are not.
                false => Err(refused(ErrorCode::SP_UNDECLARED_VAR.with(&[&p.ident()?.name]))),
            })?)
        });
        Ok(())
    }

    /// Those that are not kept ask for a way to run the query, not for other rows.
    fn select_options(&mut self, select: &mut Select) -> ParseResult<()> {
        const OPTIONS: &[&str] = &[
            "ALL",
            "DISTINCT",
            "DISTINCTROW",
            "HIGH_PRIORITY",
            "STRAIGHT_JOIN",
            "SQL_SMALL_RESULT",
            "SQL_BIG_RESULT",
            "SQL_BUFFER_RESULT",
            "SQL_NO_CACHE",
            "SQL_CALC_FOUND_ROWS",
        ];
        let mut all = false;
        while let Some(option) = self.eat_any(OPTIONS) {
            match option {
                "ALL" => all = true,
                "DISTINCT" | "DISTINCTROW" => select.distinct = true,
                "STRAIGHT_JOIN" => select.straight_join = true,
                "SQL_NO_CACHE" => self.deprecated(Deprecated::SqlNoCache),
                "SQL_CALC_FOUND_ROWS" if !select.calc_found_rows => {
                    select.calc_found_rows = true;
                    self.deprecated(Deprecated::SqlCalcFoundRows);
                    let here = self.position();
                    let (first, last) = self.calc_found_rows.unwrap_or((here, here));
                    self.calc_found_rows = Some((first.min(here), last.max(here)));
                }
                _ => {}
            }
        }
        if all && select.distinct {
            return Err(refused(ErrorCode::WRONG_USAGE.with(&[&"ALL", &"DISTINCT"])));
        }
        Ok(())
    }

    fn select_item(&mut self) -> ParseResult<SelectItem> {
        let start = self.span();
        if self.eat_op(Op::Star) {
            return Ok(SelectItem::Wildcard { database: None, table: None, span: start });
        }
        if let Some(wildcard) = self.qualified_wildcard()? {
            return Ok(wildcard);
        }
        let expr = self.expr()?;
        Ok(SelectItem::Expr { expr, alias: self.optional_alias()? })
    }

    /// `t.*` or `db.t.*`
    fn qualified_wildcard(&mut self) -> ParseResult<Option<SelectItem>> {
        let dot = TokenKind::Op(Op::Dot);
        let star = TokenKind::Op(Op::Star);
        if !self.is_ident() || *self.peek_ahead(1) != dot {
            return Ok(None);
        }
        let start = self.span();
        if *self.peek_ahead(2) == star {
            let table = Some(self.ident()?);
            self.advance();
            self.advance();
            return Ok(Some(SelectItem::Wildcard { database: None, table, span: self.span_from(start) }));
        }
        if *self.peek_ahead(3) == dot && *self.peek_ahead(4) == star {
            let database = Some(self.ident()?);
            self.advance();
            let table = Some(self.any_ident()?);
            self.advance();
            self.advance();
            return Ok(Some(SelectItem::Wildcard { database, table, span: self.span_from(start) }));
        }
        Ok(None)
    }

    pub(super) fn optional_order_by(&mut self) -> ParseResult<Vec<OrderItem>> {
        if !self.eat_all(&["ORDER", "BY"]) {
            return Ok(Vec::new());
        }
        self.comma_separated(|p| {
            let expr = p.expr()?;
            let descending = p.eat_any(&["ASC", "DESC"]) == Some("DESC");
            Ok(OrderItem { expr, descending })
        })
    }

    pub(super) fn optional_limit(&mut self) -> ParseResult<Option<Limit>> {
        if !self.eat("LIMIT") {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.eat_op(Op::Comma) {
            return Ok(Some(Limit { offset: Some(first), count: self.limit_value()? }));
        }
        let offset = if self.eat("OFFSET") { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { offset, count: first }))
    }

    /// MySQL takes numbers and parameters only.
    fn limit_value(&mut self) -> ParseResult<Expr> {
        match self.peek() {
            TokenKind::Integer(_) => self.primary(),
            TokenKind::Param => {
                self.limit_params.push(self.params);
                self.primary()
            }
            _ => Err(self.error()),
        }
    }

    /// LIMIT of UPDATE and DELETE: a number of rows, without an offset.
    pub(super) fn optional_count(&mut self) -> ParseResult<Option<Limit>> {
        if !self.eat("LIMIT") {
            return Ok(None);
        }
        Ok(Some(Limit { offset: None, count: self.limit_value()? }))
    }

    /// `FOR UPDATE | SHARE [OF …] [NOWAIT | SKIP LOCKED]` or `LOCK IN SHARE MODE`
    fn optional_lock(&mut self) -> ParseResult<Option<LockClause>> {
        if self.eat_all(&["LOCK", "IN", "SHARE", "MODE"]) {
            return Ok(Some(LockClause { exclusive: false, of: Vec::new(), wait: LockWait::Wait }));
        }
        let exclusive = self.is_words(&["FOR", "UPDATE"]);
        if !exclusive && !self.is_words(&["FOR", "SHARE"]) {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let of = if self.eat("OF") { self.comma_separated(Self::object_name)? } else { Vec::new() };
        let wait = if self.eat("NOWAIT") {
            LockWait::NoWait
        } else if self.eat_all(&["SKIP", "LOCKED"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        };
        Ok(Some(LockClause { exclusive, of, wait }))
    }

    /// Comma-separated table references with joins.
    pub(super) fn table_refs(&mut self) -> ParseResult<Vec<TableRef>> {
        self.comma_separated(Self::table_ref)
    }

    pub(super) fn table_ref(&mut self) -> ParseResult<TableRef> {
        self.nested(Self::joined_table)
    }

    /// `a JOIN b JOIN c ON … ON …`: a condition is of the last join that has none yet. What has none in the end is a cross join,
    /// which binds closer than the joins behind it that have one: `a JOIN b JOIN c ON …` is `(a JOIN b) JOIN c ON …`.
    fn joined_table(&mut self) -> ParseResult<TableRef> {
        let mut sides = vec![Side::of(self.table_factor()?)];
        // Joins between a side and the next one.
        let mut open: Vec<JoinKind> = Vec::new();
        let mut chain = 0;
        while let Some((kind, natural)) = self.join_operator()? {
            self.deeper(1)?;
            chain += 1;
            let right = self.table_factor()?;
            if natural {
                close(&mut sides, Side::of(right), kind, JoinCondition::Natural);
            } else {
                sides.push(Side::of(right));
                open.push(kind);
            }
            while let Some(kind) = open.pop_if(|_| self.at_join_condition()) {
                let condition = self.join_condition()?;
                if let Some(right) = sides.pop() {
                    close(&mut sides, right, kind, condition);
                }
            }
        }
        self.shallower(chain);
        while let Some(kind) = open.pop() {
            if kind != JoinKind::Inner {
                return Err(self.error());
            }
            if let (Some(right), Some(left)) = (sides.pop(), sides.pop()) {
                sides.push(right.crossed(left));
            }
        }
        sides.pop().map(Side::table).ok_or_else(|| self.error())
    }

    fn at_join_condition(&self) -> bool {
        self.is_any_word(&["ON", "USING"])
    }

    /// The kind of a join, and whether it is natural.
    fn join_operator(&mut self) -> ParseResult<Option<(JoinKind, bool)>> {
        if self.eat("STRAIGHT_JOIN") {
            return Ok(Some((JoinKind::Inner, false)));
        }
        let natural = self.eat("NATURAL");
        let kind = match self.eat_any(&["INNER", "CROSS", "LEFT", "RIGHT"]) {
            Some("LEFT") => JoinKind::Left,
            Some("RIGHT") => JoinKind::Right,
            Some(_) => JoinKind::Inner,
            None if self.is_word("JOIN") => JoinKind::Inner,
            None if natural => return Err(self.error()),
            None => return Ok(None),
        };
        if kind != JoinKind::Inner {
            self.eat("OUTER");
        }
        self.expect("JOIN")?;
        Ok(Some((kind, natural)))
    }

    fn join_condition(&mut self) -> ParseResult<JoinCondition> {
        if self.eat("ON") {
            return Ok(JoinCondition::On(self.expr()?));
        }
        if self.eat("USING") {
            return Ok(JoinCondition::Using(self.parenthesized_idents()?));
        }
        Err(self.error())
    }

    fn table_factor(&mut self) -> ParseResult<TableRef> {
        let start = self.span();
        if self.is_word("JSON_TABLE") {
            return self.json_table();
        }
        let lateral = self.eat("LATERAL");
        if lateral || self.at_parenthesized_query() {
            let query = Box::new(self.parenthesized_query()?);
            let alias = self.table_alias()?;
            let columns = if self.is_op(Op::LParen) { self.parenthesized_idents()? } else { Vec::new() };
            return Ok(TableRef::Derived { query, alias, columns, lateral, span: self.span_from(start) });
        }
        if self.eat_op(Op::LParen) {
            return self.parenthesized_tables();
        }
        // ODBC's `{oj a LEFT JOIN b ON …}`.
        if self.eat_op(Op::LBrace) {
            self.expect("OJ")?;
            let table = self.table_ref()?;
            self.expect_op(Op::RBrace)?;
            return Ok(table);
        }
        let name = self.object_name()?;
        let mut hints: Vec<IndexHint> = self.partition_selection()?.into_iter().collect();
        let alias = self.table_alias()?;
        hints.extend(self.index_hints()?);
        Ok(TableRef::Table { name, alias, hints })
    }

    /// `(t1, t2 JOIN …)`: a comma inside is a join.
    fn parenthesized_tables(&mut self) -> ParseResult<TableRef> {
        let mut tables = self.table_refs()?.into_iter();
        self.expect_op(Op::RParen)?;
        let first = tables.next().ok_or_else(|| self.error())?;
        Ok(tables.fold(first, |left, right| {
            let condition = JoinCondition::None;
            TableRef::Join(Box::new(Join { kind: JoinKind::Inner, left, right, condition }))
        }))
    }

    pub(super) fn table_alias(&mut self) -> ParseResult<Option<Ident>> {
        if self.eat("AS") {
            return self.alias().map(Some);
        }
        if self.is_ident() && !(self.word_upper().is_some() && self.is_any_word(NO_ALIAS)) {
            return self.ident().map(Some);
        }
        Ok(None)
    }

    /// `PARTITION (p, …)`, if it is there.
    pub(super) fn partition_selection(&mut self) -> ParseResult<Option<IndexHint>> {
        if !self.is_word("PARTITION") {
            return Ok(None);
        }
        self.advance();
        Ok(Some(IndexHint { kind: IndexHintKind::Partition, indexes: self.parenthesized_idents()? }))
    }

    fn index_hints(&mut self) -> ParseResult<Vec<IndexHint>> {
        let mut hints = Vec::new();
        loop {
            let follows = self.is_word_ahead(1, "INDEX") || self.is_word_ahead(1, "KEY");
            let kind = match self.word_upper().as_deref() {
                Some("USE") if follows => IndexHintKind::Use,
                Some("IGNORE") if follows => IndexHintKind::Ignore,
                Some("FORCE") if follows => IndexHintKind::Force,
                _ => return Ok(hints),
            };
            self.advance();
            self.advance();
            if self.eat("FOR") && !self.eat("JOIN") && !self.eat_all(&["ORDER", "BY"]) {
                self.expect_all(&["GROUP", "BY"])?;
            }
            self.expect_op(Op::LParen)?;
            // `USE INDEX ()` is none.
            let none = kind == IndexHintKind::Use && self.is_op(Op::RParen);
            let indexes = if none { Vec::new() } else { self.comma_separated(Self::index_name)? };
            self.expect_op(Op::RParen)?;
            let is_mixed = |other: &IndexHint| {
                matches!(
                    (other.kind, kind),
                    (IndexHintKind::Use, IndexHintKind::Force) | (IndexHintKind::Force, IndexHintKind::Use)
                )
            };
            if hints.iter().any(is_mixed) {
                return Err(refused(ErrorCode::WRONG_USAGE.with(&[&"USE INDEX", &"FORCE INDEX"])));
            }
            hints.push(IndexHint { kind, indexes });
        }
    }

    /// PRIMARY is reserved, and an index's name.
    fn index_name(&mut self) -> ParseResult<Ident> {
        if self.is_word("PRIMARY") { self.any_ident() } else { self.ident() }
    }
}

fn misplaced_into() -> ParseError {
    refused(ErrorCode::MISPLACED_INTO.with(&[]))
}

/// A side of joins that are being read: a table, and what it was joined with here, one after the other. What stands in parentheses
/// is one table.
struct Side {
    first: TableRef,
    joins: Vec<(JoinKind, TableRef, JoinCondition)>,
}

impl Side {
    fn of(first: TableRef) -> Self {
        Self { first, joins: Vec::new() }
    }

    /// Its first table is joined with `left` before it is with others.
    fn crossed(self, mut left: Self) -> Self {
        left.joins.push((JoinKind::Inner, self.first, JoinCondition::None));
        left.joins.extend(self.joins);
        left
    }

    fn table(self) -> TableRef {
        self.joins.into_iter().fold(self.first, |left, (kind, right, condition)| {
            TableRef::Join(Box::new(Join { kind, left, right, condition }))
        })
    }
}

/// Joins the last side with one behind it.
fn close(sides: &mut [Side], right: Side, kind: JoinKind, condition: JoinCondition) {
    if let Some(left) = sides.last_mut() {
        left.joins.push((kind, right.table(), condition));
    }
}
