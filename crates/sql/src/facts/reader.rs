//! What queries and expressions read.

use avocet_types::Function;
use avocet_types::expr::Volatility;

use super::{ColumnUse, Part, SessionState, StatementFacts, is_own};
use crate::parse::ast::*;

/// Walks syntax trees and collects their facts. Common table expressions in scope are no tables.
pub(super) struct Reader<'f, 'q> {
    facts: &'f mut StatementFacts,
    ctes: Vec<&'q str>,
    /// How many queries the current one stands in.
    depth: u32,
}

impl<'f, 'q> Reader<'f, 'q> {
    pub fn new(facts: &'f mut StatementFacts) -> Self {
        Self { facts, ctes: Vec::new(), depth: 0 }
    }

    pub fn query(&mut self, query: &'q Query) {
        let before = self.ctes.len();
        query.with.iter().for_each(|with| self.with(with));
        self.facts.locks_rows |= !query.locks.is_empty();
        self.facts.picks |= self.depth > 0 && query.limit.is_some();
        self.depth += 1;
        self.body(&query.body);
        query.order_by.iter().for_each(|item| self.expr(&item.expr));
        self.limit(query.limit.as_ref());
        self.depth -= 1;
        self.ctes.truncate(before);
    }

    /// Brings common table expressions into scope until the reader ends.
    pub fn with(&mut self, with: &'q With) {
        if with.recursive {
            self.part(Part::Recursive);
        }
        for cte in &with.ctes {
            if with.recursive {
                self.ctes.push(&cte.name.name);
            }
            self.query(&cte.query);
            self.ctes.push(&cte.name.name);
        }
    }

    pub fn limit(&mut self, limit: Option<&'q Limit>) {
        if let Some(limit) = limit {
            self.expr(&limit.count);
            limit.offset.iter().for_each(|offset| self.expr(offset));
        }
    }

    fn body(&mut self, body: &'q QueryBody) {
        match body {
            QueryBody::Select(select) => self.select(select),
            QueryBody::SetOperation { op: _, all: _, left, right } => {
                self.body(left);
                self.body(right);
            }
            QueryBody::JsonTable(table) => {
                self.part(Part::JsonTable);
                self.expr(&table.document);
            }
            QueryBody::Values(rows) => rows.iter().flatten().for_each(|value| self.expr(value)),
            QueryBody::Table(name) => {
                self.table(name, None);
                self.column(None, None, None);
            }
            QueryBody::Parenthesized(query) => self.query(query),
        }
    }

    fn select(&mut self, select: &'q Select) {
        select.from.iter().for_each(|table| self.tables(table));
        for item in &select.items {
            match item {
                SelectItem::Wildcard { database, table, span: _ } => {
                    self.column(database.as_ref(), table.as_ref(), None);
                }
                SelectItem::Expr { expr, alias: _ } => self.item(expr),
            }
        }
        select.filter.iter().chain(&select.group_by).chain(&select.having).for_each(|expr| self.expr(expr));
        select.windows.iter().for_each(|(_, window)| self.window(window));
        if select.rollup {
            self.part(Part::Rollup);
        }
        if select.calc_found_rows {
            self.part(Part::FoundRows);
        }
    }

    /// What a query shows: a quotient or an average is as precise as it is shown, and a part of its own where more is computed from it.
    fn item(&mut self, expr: &'q Expr) {
        match &expr.kind {
            ExprKind::Binary { op: BinaryOp::Div, left, right } if self.depth == 1 => {
                self.operands(left, right);
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Aggregate(call) if self.depth == 1 && call.name == "AVG" => self.aggregate(call),
            _ => self.expr(expr),
        }
    }

    fn tables(&mut self, table: &'q TableRef) {
        match table {
            TableRef::Table { name, alias, hints: _ } => self.table(name, alias.as_ref()),
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::Join(join) => {
                self.tables(&join.left);
                self.tables(&join.right);
                self.condition(&join.condition);
            }
        }
    }

    /// The tables of an UPDATE. Which of several it changes, the tables before the assigned columns tell, if these all have one;
    /// names of columns alone do not.
    pub fn changed_tables(&mut self, table: &'q TableRef, assigned: Option<&[&Ident]>) {
        match table {
            TableRef::Table { name, alias, hints: _ } => {
                self.table(name, alias.as_ref());
                let called = alias.as_ref().unwrap_or(&name.name);
                let is_meant = |target: &&Ident| target.name == called.name;
                if !self.is_cte(name) && assigned.is_none_or(|tables| tables.iter().any(is_meant)) {
                    self.facts.writes_as(name, alias.as_ref());
                }
            }
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::Join(join) => {
                self.changed_tables(&join.left, assigned);
                self.changed_tables(&join.right, assigned);
                self.condition(&join.condition);
            }
        }
    }

    /// The tables of a DELETE, and which of them are its targets (all, if it names none).
    pub fn deleted_tables(&mut self, table: &'q TableRef, targets: &[ObjectName]) {
        match table {
            TableRef::Table { name, alias, hints: _ } => {
                self.table(name, alias.as_ref());
                let called = alias.as_ref().unwrap_or(&name.name);
                let is_meant = |target: &ObjectName| target.name.name == called.name;
                if targets.is_empty() || targets.iter().any(is_meant) {
                    self.facts.writes_as(name, alias.as_ref());
                }
            }
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::Join(join) => {
                self.deleted_tables(&join.left, targets);
                self.deleted_tables(&join.right, targets);
                self.condition(&join.condition);
            }
        }
    }

    fn condition(&mut self, condition: &'q JoinCondition) {
        match condition {
            JoinCondition::On(expr) => self.expr(expr),
            JoinCondition::Using(names) => names.iter().for_each(|name| self.column(None, None, Some(name))),
            JoinCondition::None => {}
            // All columns that the tables have in common.
            JoinCondition::Natural => self.column(None, None, None),
        }
    }

    fn is_cte(&self, name: &ObjectName) -> bool {
        name.database.is_none() && self.ctes.iter().any(|cte| **cte == *name.name.name)
    }

    fn table(&mut self, name: &'q ObjectName, alias: Option<&Ident>) {
        if !self.is_cte(name) {
            self.facts.reads_as(name, alias);
        }
    }

    fn column(&mut self, database: Option<&Ident>, table: Option<&Ident>, column: Option<&Ident>) {
        let owned = |ident: Option<&Ident>| ident.map(|ident| ident.name.clone());
        let used = ColumnUse { database: owned(database), table: owned(table), column: owned(column) };
        if !self.facts.columns.contains(&used) {
            self.facts.columns.push(used);
        }
    }

    fn part(&mut self, part: Part) {
        if !self.facts.parts.contains(&part) {
            self.facts.parts.push(part);
        }
    }

    fn window(&mut self, window: &'q WindowSpec) {
        window.partition_by.iter().for_each(|expr| self.expr(expr));
        window.order_by.iter().for_each(|item| self.expr(&item.expr));
        if window.frame.is_some() {
            self.part(Part::Frame);
        }
        let bounds = window.frame.iter().flat_map(|frame| [&frame.start, &frame.end]);
        for bound in bounds {
            match bound {
                FrameBound::Preceding(expr, _) | FrameBound::Following(expr, _) => self.expr(expr),
                FrameBound::UnboundedPreceding | FrameBound::CurrentRow | FrameBound::UnboundedFollowing => {}
            }
        }
    }

    fn over(&mut self, over: &'q WindowRef) {
        match over {
            WindowRef::Named(_) => {}
            WindowRef::Inline(window) => self.window(window),
        }
    }

    /// Expressions nest as deep as the parser lets them, which is what its stack allows.
    pub fn expr(&mut self, expr: &'q Expr) {
        use ExprKind as K;
        use SessionState as S;
        if let Some(part) = part_of(&expr.kind) {
            self.part(part);
        }
        match &expr.kind {
            K::Null
            | K::Bool(_)
            | K::Integer(_)
            | K::Decimal(_)
            | K::Float(_)
            | K::String { .. }
            | K::Bytes(_)
            | K::Hybrid { .. }
            | K::Temporal { .. }
            | K::Param(_)
            | K::Unsupported(_) => {}
            K::SystemVariable { name, .. } => {
                self.facts.names_own_variable |= is_own(name);
                self.facts.needs.add(match name.as_str() {
                    "warning_count" | "error_count" => S::CONDITIONS,
                    "last_insert_id" | "identity" => S::LAST_INSERT_ID,
                    _ => S::VARIABLES,
                });
            }
            K::UserVariable { .. } => self.facts.needs.add(S::USER_VARIABLES),
            K::AssignVariable { name: _, value } => {
                self.facts.changes.add(S::USER_VARIABLES);
                self.expr(value);
            }
            K::Default => self.column(None, None, None),
            K::InsertedValue { database, table, column }
            | K::DefaultOf { database, table, column }
            | K::Column { database, table, column } => {
                self.column(database.as_ref(), table.as_ref(), Some(column));
            }
            K::Unary { expr, .. }
            | K::Is { expr, .. }
            | K::Cast { expr, .. }
            | K::ConvertUsing { expr, .. }
            | K::Collate { expr, .. }
            | K::Extract { expr, .. } => self.expr(expr),
            K::Binary { op, left, right } => {
                if op.is_arithmetic() {
                    self.operands(left, right);
                }
                self.expr(left);
                self.expr(right);
            }
            K::And(parts) | K::Or(parts) | K::Row(parts) => parts.iter().for_each(|part| self.expr(part)),
            K::InList { expr, list, .. } => {
                self.expr(expr);
                list.iter().for_each(|item| self.expr(item));
            }
            K::InSubquery { expr, query, .. } | K::Quantified { left: expr, query, .. } => {
                self.expr(expr);
                self.query(query);
            }
            K::Between { expr, low, high, .. } => {
                [expr, low, high].into_iter().for_each(|part| self.expr(part))
            }
            K::Like { expr, pattern, escape, .. } => {
                [Some(expr), Some(pattern), escape.as_ref()]
                    .into_iter()
                    .flatten()
                    .for_each(|part| self.expr(part));
            }
            K::Regexp { expr, pattern, .. } => {
                self.expr(expr);
                self.expr(pattern);
            }
            K::Case { operand, branches, otherwise } => {
                operand.iter().for_each(|operand| self.expr(operand));
                branches.iter().flat_map(|(when, then)| [when, then]).for_each(|part| self.expr(part));
                otherwise.iter().for_each(|otherwise| self.expr(otherwise));
            }
            K::Function { name, args } => {
                self.function(name, args);
                args.iter().for_each(|arg| self.expr(arg));
            }
            K::Aggregate(call) => self.aggregate(call),
            K::Window(call) => {
                self.facts.picks |=
                    !matches!(call.name.as_str(), "RANK" | "DENSE_RANK" | "PERCENT_RANK" | "CUME_DIST");
                call.args.iter().for_each(|arg| self.expr(arg));
                self.over(&call.over);
            }
            K::DateArithmetic { expr, amount, .. } => {
                self.expr(expr);
                self.expr(amount);
            }
            K::TimestampDiff { from, to, .. } => {
                self.expr(from);
                self.expr(to);
            }
            K::JsonValue(call) => {
                self.expr(&call.document);
                self.expr(&call.path);
            }
            K::Trim { what, expr, .. } => {
                what.iter().for_each(|what| self.expr(what));
                self.expr(expr);
            }
            K::Subquery(query) | K::Exists(query) => self.query(query),
        }
    }

    /// Of two parameters nothing is known.
    fn operands(&mut self, left: &Expr, right: &Expr) {
        match (param_of(left), param_of(right)) {
            (Some(one), None) | (None, Some(one)) => self.facts.numeric_params.push(one),
            _ => {}
        }
    }

    fn aggregate(&mut self, call: &'q AggregateCall) {
        self.facts.picks |= picks_rows(call);
        call.args.iter().for_each(|arg| self.expr(arg));
        call.order_by.iter().for_each(|item| self.expr(&item.expr));
        call.over.iter().for_each(|over| self.over(over));
    }

    fn function(&mut self, name: &str, args: &[Expr]) {
        use Function as F;
        use SessionState as S;
        // What is unknown here, the binder refuses, or it is somebody's function of which nothing is known.
        if name.eq_ignore_ascii_case("GROUPING") {
            return;
        }
        let Some(function) = F::lookup(name) else {
            self.facts.calls_unknown = true;
            self.facts.deterministic = false;
            return;
        };
        self.part(Part::Function(function));
        if let (F::Round | F::Truncate | F::Mod, [number, rest @ ..]) = (function, args)
            && rest.iter().all(|arg| param_of(arg).is_none())
        {
            self.facts.numeric_params.extend(param_of(number));
        }
        let args = args.len();
        let (needs, changes) = match function {
            F::Now | F::CurDate | F::CurTime => (S::CLOCK | S::TIME_ZONE, S::NOTHING),
            F::UtcTimestamp | F::UtcDate | F::UtcTime => (S::CLOCK, S::NOTHING),
            F::UnixTimestamp if args == 0 => (S::CLOCK, S::NOTHING),
            F::UnixTimestamp | F::FromUnixTime => (S::TIME_ZONE, S::NOTHING),
            F::Database => (S::DATABASE, S::NOTHING),
            F::User | F::CurrentUser | F::CurrentRole | F::ConnectionId | F::PsCurrentThreadId => {
                (S::IDENTITY, S::NOTHING)
            }
            F::LastInsertId if args == 0 => (S::LAST_INSERT_ID, S::NOTHING),
            F::LastInsertId | F::SetLastInsertId => (S::NOTHING, S::LAST_INSERT_ID),
            F::RowCount => (S::ROW_COUNT, S::NOTHING),
            F::FoundRows => (S::FOUND_ROWS, S::NOTHING),
            F::GetLock | F::ReleaseLock | F::ReleaseAllLocks => (S::NAMED_LOCKS, S::NAMED_LOCKS),
            F::IsFreeLock | F::IsUsedLock => (S::NAMED_LOCKS, S::NOTHING),
            _ => (S::NOTHING, S::NOTHING),
        };
        self.facts.needs.add(needs);
        self.facts.changes.add(changes);
        self.facts.asks_version |= matches!(function, F::Version | F::IcuVersion);
        self.facts.waits |= matches!(function, F::Sleep | F::WaitForExecutedGtidSet | F::SourcePosWait);
        self.facts.deterministic &=
            function.info().volatility != Volatility::Volatile && function != F::Sysdate;
    }
}

/// The parameter that an operand is, perhaps with a sign.
fn param_of(expr: &Expr) -> Option<u32> {
    match &expr.kind {
        ExprKind::Param(index) => Some(*index),
        ExprKind::Unary { op: UnaryOp::Minus | UnaryOp::Plus, expr } => param_of(expr),
        _ => None,
    }
}

/// What the topmost of an expression is a matter of the dialect for; functions are looked up by [`Reader::function`].
fn part_of(kind: &ExprKind) -> Option<Part> {
    use ExprKind as K;
    Some(match kind {
        K::String { charset: Some(_), .. } | K::Bytes(_) => Part::Introducer,
        K::Hybrid { .. } => Part::BinaryLiteral,
        K::Temporal { .. } => Part::TemporalLiteral,
        K::Unary { op: UnaryOp::BitNot, .. } => Part::BitNot,
        K::Binary { op, .. } => return Part::of_operator(*op),
        K::Row(_) => Part::Row,
        K::Regexp { .. } => Part::Regexp,
        K::Cast { target, .. } => Part::Cast(*target),
        K::ConvertUsing { .. } => Part::ConvertUsing,
        K::Collate { .. } => Part::Collate,
        K::Aggregate(call) => return Part::of_aggregate(call),
        K::Window(call) => match call.name.as_str() {
            "PERCENT_RANK" | "CUME_DIST" => Part::Share,
            _ => Part::Window,
        },
        K::DateArithmetic { .. } => Part::DateArithmetic,
        K::Extract { unit, .. } => Part::Extract(*unit),
        K::TimestampDiff { .. } => Part::TimestampDiff,
        K::JsonValue(_) => Part::JsonValue,
        _ => return None,
    })
}

/// Whether an aggregate's value may depend on the order of its rows.
fn picks_rows(call: &AggregateCall) -> bool {
    let is_cumulative = |over: &WindowRef| match over {
        WindowRef::Named(_) => true,
        WindowRef::Inline(window) => window.frame.as_ref().is_some_and(|frame| frame.unit == FrameUnit::Rows),
    };
    let of_order =
        matches!(call.name.as_str(), "GROUP_CONCAT" | "JSON_ARRAYAGG" | "JSON_OBJECTAGG" | "ANY_VALUE");
    of_order || call.over.as_ref().is_some_and(is_cumulative)
}
