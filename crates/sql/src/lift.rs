//! Lifting literals: a statement's syntax tree with parameters in place of those literals that a plan need not know.
//!
//! A literal is lifted only where its value decides nothing but which rows are met or what is stored: beside a
//! comparison or in an IN list of WHERE and ON, as a pattern of LIKE there, as a stored value, in plain arithmetic, CONCAT and
//! date arithmetic in these places, and as an OFFSET. All others stay (are *pinned*): they may name a column, give a type its length or scale, be a position of ORDER BY or an argument that has to be
//! constant, or make the planner choose otherwise. So do parts of what conditions compare, where indexes are on expressions.

use crate::parse::ast::{
    BinaryOp, Expr, ExprKind, Join, JoinCondition, Limit, Query, QueryBody, SelectItem, TableRef, UnaryOp,
};
use crate::parse::digest::Slot;
use crate::parse::statement::{Assignment, InsertSource, StatementKind};

/// Puts parameters, numbered as the slots, where literals can be lifted. For each slot: whether a parameter stands there
/// now that was lifted or, where the text has a `?`, could have been. `by_expression` if the statement's tables have indexes on
/// expressions, which only their literals tell.
pub fn lift(statement: &mut StatementKind, slots: &[Slot], by_expression: bool) -> Vec<bool> {
    let mut lifter = Lifter { slots, by_expression, lifted: vec![false; slots.len()] };
    match statement {
        StatementKind::Query(query) => lifter.query(query),
        StatementKind::Insert(insert) => {
            match &mut insert.source {
                InsertSource::Values(rows) => rows.iter_mut().flatten().for_each(|value| lifter.value(value)),
                InsertSource::Query(query) => {
                    lifter.stored(query);
                    lifter.query(query);
                }
            }
            lifter.assignments(&mut insert.on_duplicate);
        }
        StatementKind::Update(update) => {
            update.tables.iter_mut().for_each(|table| lifter.table(table));
            lifter.assignments(&mut update.assignments);
            update.filter.iter_mut().for_each(|filter| lifter.condition(filter));
        }
        StatementKind::Delete(delete) => {
            delete.from.iter_mut().for_each(|table| lifter.table(table));
            delete.filter.iter_mut().for_each(|filter| lifter.condition(filter));
        }
        _ => {}
    }
    lifter.lifted
}

struct Lifter<'s> {
    slots: &'s [Slot],
    by_expression: bool,
    lifted: Vec<bool>,
}

impl Lifter<'_> {
    fn query(&mut self, query: &mut Query) {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.ctes) {
            self.query(&mut cte.query);
        }
        self.body(&mut query.body);
        if let Some(Limit { offset: Some(offset), .. }) = &mut query.limit {
            self.literal(offset);
        }
    }

    fn body(&mut self, body: &mut QueryBody) {
        match body {
            QueryBody::Select(select) => {
                select.from.iter_mut().for_each(|table| self.table(table));
                select.filter.iter_mut().for_each(|filter| self.condition(filter));
                // Without a name of its own a column is called by its text.
                for item in &mut select.items {
                    if let SelectItem::Expr { expr, alias: Some(_) } = item
                        && let ExprKind::Subquery(query) | ExprKind::Exists(query) = &mut expr.kind
                    {
                        self.query(query);
                    }
                }
            }
            QueryBody::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            QueryBody::Parenthesized(query) => self.query(query),
            QueryBody::Values(_) | QueryBody::JsonTable(_) | QueryBody::Table(_) => {}
        }
    }

    /// What is stored of a query's rows; nothing else knows its columns by what they are.
    fn stored(&mut self, query: &mut Query) {
        let QueryBody::Select(select) = &mut query.body else { return };
        if select.distinct
            || !select.group_by.is_empty()
            || select.having.is_some()
            || !query.order_by.is_empty()
        {
            return;
        }
        for item in &mut select.items {
            if let SelectItem::Expr { expr, alias: None } = item {
                self.value(expr);
            }
        }
    }

    fn table(&mut self, table: &mut TableRef) {
        match table {
            TableRef::Table { .. } => {}
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::Join(join) => {
                let Join { left, right, condition, .. } = &mut **join;
                self.table(left);
                self.table(right);
                if let JoinCondition::On(on) = condition {
                    self.condition(on);
                }
            }
        }
    }

    fn assignments(&mut self, assignments: &mut [Assignment]) {
        assignments.iter_mut().for_each(|assignment| self.value(&mut assignment.value));
    }

    /// An expression of which only the truth matters.
    fn condition(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::And(parts) | ExprKind::Or(parts) => {
                parts.iter_mut().for_each(|part| self.condition(part))
            }
            ExprKind::Unary { op: UnaryOp::Not, expr } => self.condition(expr),
            ExprKind::Exists(query)
            | ExprKind::InSubquery { query, .. }
            | ExprKind::Quantified { query, .. } => self.query(query),
            // Of constants alone the planner makes a constant.
            ExprKind::Binary { op, left, right }
                if op.is_comparison() && (has_no_constant(left) || has_no_constant(right)) =>
            {
                self.operand(left);
                self.operand(right);
            }
            ExprKind::Between { expr, low, high, .. } if !is_constant(expr) => {
                self.operand(expr);
                self.operand(low);
                self.operand(high);
            }
            ExprKind::InList { expr, list, .. } if has_no_constant(expr) => {
                self.operand(expr);
                list.iter_mut().for_each(|item| self.operand(item));
            }
            ExprKind::Like { expr, pattern, .. } if has_no_constant(expr) => {
                self.value(expr);
                self.value(pattern);
            }
            _ => {}
        }
    }

    /// An operand of a comparison.
    fn operand(&mut self, expr: &mut Expr) {
        let is_constant = is_constant(expr);
        match &mut expr.kind {
            ExprKind::Row(parts) if self.by_expression => {
                parts.iter_mut().for_each(|part| self.operand(part))
            }
            ExprKind::Binary { .. } | ExprKind::Function { .. } | ExprKind::DateArithmetic { .. }
                if self.by_expression && !is_constant => {}
            _ => self.value(expr),
        }
    }

    /// What is compared, or what a column is to hold.
    fn value(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Binary { op: BinaryOp::Add | BinaryOp::Sub, left, right } => {
                self.number(left);
                self.number(right);
            }
            ExprKind::Unary { op: UnaryOp::Minus, .. } => self.number(expr),
            ExprKind::Function { name, args } if name.eq_ignore_ascii_case("concat") => {
                args.iter_mut().for_each(|arg| self.text(arg));
            }
            ExprKind::Function { name, args } if is_of_text(name) => {
                args.iter_mut().take(1).for_each(|arg| self.text(arg));
            }
            // A number of other types gives the result its fraction.
            ExprKind::DateArithmetic { expr, amount, .. } => {
                self.text(expr);
                if matches!(amount.kind, ExprKind::Integer(_) | ExprKind::Param(_)) {
                    self.literal(amount);
                }
            }
            ExprKind::Subquery(query) => self.query(query),
            ExprKind::Row(parts) => parts.iter_mut().for_each(|part| self.value(part)),
            _ => self.literal(expr),
        }
    }

    /// A part of a text, or a date.
    fn text(&mut self, expr: &mut Expr) {
        match &expr.kind {
            ExprKind::String { .. } | ExprKind::Param(_) => self.literal(expr),
            ExprKind::Function { .. } | ExprKind::DateArithmetic { .. } => self.value(expr),
            _ => {}
        }
    }

    /// An operand of arithmetic.
    fn number(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Integer(_) | ExprKind::Decimal(_) | ExprKind::Param(_) => self.literal(expr),
            // The least BIGINT is written with one that is too large.
            ExprKind::Unary { op: UnaryOp::Minus, expr } => match &expr.kind {
                ExprKind::Integer(value) if *value > i64::MAX as u64 => {}
                _ => self.number(expr),
            },
            ExprKind::Binary { op: BinaryOp::Add | BinaryOp::Sub, left, right } => {
                self.number(left);
                self.number(right);
            }
            _ => {}
        }
    }

    fn literal(&mut self, expr: &mut Expr) {
        if !is_literal(expr) {
            return;
        }
        // A literal of several tokens ('a' 'b', _utf8'a') is none of the slots.
        let Ok(at) = self.slots.binary_search_by_key(&expr.span.start, |slot| slot.span.start) else {
            return;
        };
        if self.slots[at].span != expr.span {
            return;
        }
        self.lifted[at] = true;
        if !matches!(expr.kind, ExprKind::Param(_)) {
            expr.kind = ExprKind::Param(at as u32);
        }
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Integer(_)
            | ExprKind::Decimal(_)
            | ExprKind::Float(_)
            | ExprKind::String { charset: None, .. }
            | ExprKind::Param(_)
    )
}

/// Whether a function makes a value of its first argument, a text, of which no more than that matters.
fn is_of_text(name: &str) -> bool {
    const OF_TEXT: [&str; 11] = [
        "upper",
        "ucase",
        "lower",
        "lcase",
        "unhex",
        "uuid_to_bin",
        "md5",
        "sha1",
        "sha2",
        "inet_aton",
        "inet6_aton",
    ];
    OF_TEXT.iter().any(|of| name.eq_ignore_ascii_case(of))
}

/// Whether an expression has no columns, as far as can be seen at once.
fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Unary { expr, .. } => is_constant(expr),
        ExprKind::Binary { left, right, .. } => is_constant(left) && is_constant(right),
        ExprKind::Null | ExprKind::Bool(_) | ExprKind::Bytes(_) | ExprKind::Temporal { .. } => true,
        _ => is_literal(expr),
    }
}

/// Whether neither an expression nor a part of it, if it is a row constructor, is constant: what it is compared with is not
/// a comparison of constants in any place.
fn has_no_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Row(parts) => parts.iter().all(has_no_constant),
        _ => !is_constant(expr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::digest::Digest;
    use crate::parse::parse;
    use avocet_types::expr::SqlMode;

    /// The statement's text with a `?` for each lifted literal.
    fn lifted(source: &str) -> String {
        lifted_for(source, false)
    }

    fn lifted_for(source: &str, by_expression: bool) -> String {
        let mut digest = Digest::default();
        assert!(digest.read(source.as_bytes(), SqlMode::DEFAULT), "{source}");
        let mut statement = parse(source.as_bytes(), SqlMode::DEFAULT).expect("parses").swap_remove(0);
        let which = lift(&mut statement.kind, &digest.slots, by_expression);
        let (mut text, mut from) = (String::new(), 0);
        for (slot, _) in digest.slots.iter().zip(which).filter(|(_, lifted)| *lifted) {
            text.push_str(&source[from..slot.span.start as usize]);
            text.push('?');
            from = slot.span.end as usize;
        }
        text + &source[from..]
    }

    #[test]
    fn literals_of_compared_expressions_stay_where_these_have_indexes() {
        let source = "SELECT a FROM t WHERE a + 1 = 5 AND (b - 2, c) = (3, 4) AND CONCAT(c, 'x') IN ('y', 'z') AND d < 6";
        let expected =
            "SELECT a FROM t WHERE a + 1 = ? AND (b - 2, c) = (?, ?) AND CONCAT(c, 'x') IN (?, ?) AND d < ?";
        assert_eq!(lifted_for(source, true), expected);
    }

    #[test]
    fn only_literals_that_decide_nothing_are_lifted() {
        for (source, expected) in [
            (
                "SELECT a FROM t WHERE a = LOWER('X') AND b = UUID_TO_BIN('y', 1) AND SHA2(c, 256) = SHA2('z', 256) AND LEFT('u', 1) = d",
                "SELECT a FROM t WHERE a = LOWER(?) AND b = UUID_TO_BIN(?, 1) AND SHA2(c, 256) = SHA2(?, 256) AND LEFT('u', 1) = d",
            ),
            (
                "SELECT a, 1, a + 1 FROM t JOIN u ON t.a = u.a AND u.b > 5 WHERE (a = 1 OR b <> 'x') AND c IN (1, -2.5)",
                "SELECT a, 1, a + 1 FROM t JOIN u ON t.a = u.a AND u.b > ? WHERE (a = ? OR b <> ?) AND c IN (?, -?)",
            ),
            (
                "SELECT a FROM t WHERE a BETWEEN 1 AND 2 + 3 AND b LIKE 'x%' AND ROUND(c, 2) = 1 AND 1 = 1 ORDER BY 1 LIMIT 5, 9",
                "SELECT a FROM t WHERE a BETWEEN ? AND ? + ? AND b LIKE ? AND ROUND(c, 2) = ? AND 1 = 1 ORDER BY 1 LIMIT ?, 9",
            ),
            (
                "SELECT a 'x' FROM t WHERE b = 'y' 'z' AND c = _utf8'w' AND d = DATE '2020-01-01'",
                "SELECT a 'x' FROM t WHERE b = 'y' 'z' AND c = _utf8'w' AND d = DATE '2020-01-01'",
            ),
            (
                "INSERT INTO t VALUES (1, 'a', NOW() - INTERVAL 1 DAY), (-9223372036854775808, -2, CONCAT('a', 'b'))",
                "INSERT INTO t VALUES (?, ?, NOW() - INTERVAL ? DAY), (-9223372036854775808, -?, CONCAT(?, ?))",
            ),
            (
                "SELECT a FROM t WHERE b LIKE CONCAT('x', '%', 1) AND 'x' LIKE 'y' AND c < '2020-01-01' + INTERVAL 1 DAY AND c > d - INTERVAL '1.5' SECOND",
                "SELECT a FROM t WHERE b LIKE CONCAT(?, ?, 1) AND 'x' LIKE 'y' AND c < ? + INTERVAL ? DAY AND c > d - INTERVAL '1.5' SECOND",
            ),
            (
                "UPDATE t SET a = a + 1, b = CONCAT(b, 'x'), c = 1.5 WHERE a = 3 LIMIT 1",
                "UPDATE t SET a = a + ?, b = CONCAT(b, ?), c = ? WHERE a = ? LIMIT 1",
            ),
            (
                "SELECT a FROM t WHERE (a, b) IN ((1, 'x'), (2, 'y')) AND (a, b) > (1, 'z') AND (a, 1) = (2, 1) AND (1, 2) < (a, b)",
                "SELECT a FROM t WHERE (a, b) IN ((?, ?), (?, ?)) AND (a, b) > (?, ?) AND (a, 1) = (2, 1) AND (?, ?) < (a, b)",
            ),
            (
                "DELETE FROM t WHERE NOT a = 3 AND EXISTS (SELECT 1 FROM u WHERE a = 1)",
                "DELETE FROM t WHERE NOT a = ? AND EXISTS (SELECT 1 FROM u WHERE a = ?)",
            ),
            (
                "SELECT EXISTS(SELECT 1 FROM u WHERE a = 1) AS e FROM u WHERE a > ALL (SELECT 1 FROM u WHERE b = 2)",
                "SELECT EXISTS(SELECT 1 FROM u WHERE a = ?) AS e FROM u WHERE a > ALL (SELECT 1 FROM u WHERE b = ?)",
            ),
            (
                "SELECT (SELECT 1 FROM u WHERE a = 1), (SELECT 2 FROM u WHERE a = 2) AS x FROM (SELECT a FROM u WHERE a < 3) d
                 WHERE a IN (SELECT a + 1 FROM u WHERE a > 4) AND a = (SELECT 5 FROM u WHERE b = 6)",
                "SELECT (SELECT 1 FROM u WHERE a = 1), (SELECT 2 FROM u WHERE a = ?) AS x FROM (SELECT a FROM u WHERE a < ?) d
                 WHERE a IN (SELECT a + 1 FROM u WHERE a > ?) AND a = (SELECT 5 FROM u WHERE b = ?)",
            ),
        ] {
            assert_eq!(lifted(source), expected);
        }
    }
}
