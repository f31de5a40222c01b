//! The bound algebra as a tree, as it stands: tables joined in the order of FROM, all conditions above them, every
//! subquery an [`Apply`] below the node that uses its answer.
//!
//! Two things are decided here, as the tree's form follows from them: a scalar subquery that uses nothing of the blocks
//! around it is evaluated once before its block ([`Operator::Once`]), and a common table expression is evaluated once or
//! planned for each of its readers (`sharing`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use avocet_types::Datum;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr, ExprKind};

use super::naming::renamed;
use super::sharing::Sharing;
use super::tree::columns_of;
use super::{
    Apply, ApplyKind, Environment, Join, JoinKind, Node, Operator, Recursive, RowRange, Scan, SetOperation,
};
use crate::bind::unsupported;
use crate::parse::ast::SetOperator;
use crate::plan::walk;
use crate::plan::{
    self, Aggregation, BoundQuery, ColumnId, ColumnTable, Cte, CteBody, CteId, CteRef, From, Limit,
    Projected, QueryBody, QueryExpr, Select, SortKey, Subquery, SubqueryKind, TableScan,
};

/// What a set operation combines: of a chain of UNIONs all, where their order makes no difference. A UNION DISTINCT is one over
/// those before it, too.
fn sides_of(set: &plan::SetOperation) -> Vec<&QueryExpr> {
    let (mut left, mut sides) = (&set.left, vec![&set.right]);
    while let Some(inner) = union_of(left).filter(|inner| set.op == inner.op && (inner.all || !set.all)) {
        sides.push(&inner.right);
        left = &inner.left;
    }
    sides.push(left);
    sides.reverse();
    sides
}

/// The UNION that a query is, and no more.
fn union_of(query: &QueryExpr) -> Option<&plan::SetOperation> {
    let QueryBody::SetOperation(set) = &query.body else { return None };
    let is_plain = query.order_by.is_empty() && query.limit.is_none() && query.ctes.is_empty();
    (set.op == SetOperator::Union && is_plain && query.outputs == set.columns).then_some(set)
}

pub(super) fn build(
    query: &BoundQuery,
    environment: Environment<'_>,
) -> Result<(Node, ColumnTable), SqlError> {
    let mut builder = Builder {
        columns: &query.columns,
        environment,
        sharing: Sharing::of(&query.body),
        ctes: HashMap::new(),
        outer: HashSet::new(),
        in_step: false,
        depth: 0,
    };
    let root = builder.query_expr(&query.body)?;
    Ok((root, query.columns.clone()))
}

struct Builder<'b> {
    columns: &'b ColumnTable,
    environment: Environment<'b>,
    sharing: Sharing,
    ctes: HashMap<CteId, Source>,
    /// Columns of the blocks around the one at hand.
    outer: HashSet<ColumnId>,
    /// The step of a recursion is at hand: what it defines has other rows each time.
    in_step: bool,
    /// How many subqueries the block at hand stands in.
    depth: usize,
}

/// What is evaluated once is planned with what is around it, twice as often with each level: deeper subqueries are applied.
const MOST_NESTED: usize = 4;

/// What references to a common table expression read.
#[derive(Clone)]
enum Source {
    /// A plan for each.
    Inline {
        plan: Node,
        columns: Vec<ColumnId>,
    },
    Shared(Vec<ColumnId>),
    WorkTable(Vec<ColumnId>),
}

/// Subqueries of a block that are not in its tree yet.
#[derive(Default)]
struct Pending<'q> {
    answers: BTreeMap<ColumnId, &'q Subquery>,
    /// Those that are evaluated before the block.
    before: Vec<(ColumnId, Node)>,
}

impl Pending<'_> {
    fn uses(&self, expr: &Expr) -> bool {
        !self.answers.is_empty() && columns_of(expr).any(|id| self.answers.contains_key(&id))
    }

    /// The columns that an expression uses, and those that the answers in it are made of.
    fn columns_of(&self, expr: &Expr, to: &mut BTreeSet<ColumnId>) {
        columns_of(expr).for_each(|id| self.columns_for(id, to));
    }

    fn columns_for(&self, id: ColumnId, to: &mut BTreeSet<ColumnId>) {
        let Some(subquery) = self.answers.get(&id) else {
            to.insert(id);
            return;
        };
        subquery.outer.iter().for_each(|id| self.columns_for(*id, to));
        needles_of(&subquery.kind).iter().for_each(|needle| self.columns_of(needle, to));
    }
}

impl Builder<'_> {
    fn fold(&self, expr: &Expr) -> Expr {
        expr.clone().fold_for_statement(self.environment.params, self.environment.context)
    }

    fn fold_all(&self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.fold(expr)).collect()
    }

    fn conjuncts(&self, condition: Option<&Expr>) -> Vec<Expr> {
        condition.map(|condition| self.fold(condition).into_conjuncts()).unwrap_or_default()
    }

    /// The conjuncts of a condition that drops rows: what always holds is none.
    fn filters(&self, condition: Option<&Expr>) -> Vec<Expr> {
        let mut conjuncts = self.conjuncts(condition);
        conjuncts.retain(|conjunct| !is_true(conjunct));
        conjuncts
    }

    fn query_expr(&mut self, query: &QueryExpr) -> Result<Node, SqlError> {
        self.environment.checkpoint.check()?;
        let mut evaluated = Vec::new();
        for cte in &query.ctes {
            if self.sharing.is_read(cte.id) {
                evaluated.extend(self.cte(cte)?.map(|body| (cte, body)));
            }
        }
        let mut pending = Pending::default();
        let mut late = Vec::new();
        let mut node = match &query.body {
            QueryBody::Select(select) => {
                // Of rows that a LIMIT takes from an order, only these are computed that it takes.
                let order = query.limit.as_ref().map_or(&[][..], |_| &query.order_by);
                let node;
                (node, late) = self.select(select, order, &mut pending)?;
                node
            }
            QueryBody::SetOperation(set) => self.set_operation(set)?,
            QueryBody::Values(values) => {
                let rows = values.rows.iter().map(|row| self.fold_all(row)).collect();
                Node::new(Operator::Values(rows), values.columns.clone())
            }
            QueryBody::JsonTable(table) => {
                let (document, level) = (self.fold(&table.document), table.level.clone());
                let columns = table.columns.clone();
                Node::new(Operator::JsonTable { document, level, columns: columns.clone() }, columns)
            }
            QueryBody::Nested(inner) => self.query_expr(inner)?,
        };
        node = self.ordered(node, query)?;
        if !late.is_empty() {
            node = self.computed_late(node, late, &query.order_by, &mut pending)?;
        }
        node = node.with_outputs(&query.outputs);
        for (id, query) in pending.before.into_iter().rev() {
            node = once(id, query, node);
        }
        for (cte, body) in evaluated.into_iter().rev() {
            let outputs = node.outputs.clone();
            let (cte, name, body) = (cte.id, cte.name.clone(), Box::new(body));
            node = Node::new(Operator::With { cte, name, body, input: Box::new(node) }, outputs);
        }
        Ok(node)
    }

    fn ordered(&self, node: Node, query: &QueryExpr) -> Result<Node, SqlError> {
        let range = query.limit.as_ref().map(|limit| self.range(limit)).transpose()?;
        let outputs = node.outputs.clone();
        let input = Box::new(node);
        Ok(match (query.order_by.is_empty(), range) {
            (true, None) => *input,
            (true, Some(range)) => Node::new(Operator::Limit { input, range }, outputs),
            (false, range) => {
                Node::new(Operator::Sort { input, keys: query.order_by.clone(), range }, outputs)
            }
        })
    }

    /// Rows in order with what is computed of them at last.
    fn computed_late<'q>(
        &mut self,
        node: Node,
        late: Vec<Projected>,
        keys: &[SortKey],
        pending: &mut Pending<'q>,
    ) -> Result<Node, SqlError> {
        let given = node.outputs.clone();
        let has_answers = late.iter().any(|item| pending.uses(&item.expr));
        let node = self.answered(node, late.iter().map(|item| &item.expr), pending)?;
        let node = node.projected(late, &given);
        if !has_answers {
            return Ok(node);
        }
        // Joins may have put the rows in another order.
        let (outputs, keys) = (node.outputs.clone(), keys.to_vec());
        Ok(Node::new(Operator::Sort { input: Box::new(node), keys, range: None }, outputs))
    }

    fn range(&self, limit: &Limit) -> Result<RowRange, SqlError> {
        let count = |expr: &Expr| match self.fold(expr).kind {
            ExprKind::Literal(Datum::UInt(v)) => Ok(v),
            ExprKind::Literal(Datum::Int(v)) if v >= 0 => Ok(v as u64),
            _ => Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"LIMIT"])),
        };
        Ok(RowRange {
            skip: limit.offset.as_ref().map(count).transpose()?.unwrap_or(0),
            fetch: count(&limit.count)?,
        })
    }

    /// Makes the expression known; gives what is to be evaluated before the query, if it is evaluated once.
    fn cte(&mut self, cte: &Cte) -> Result<Option<Node>, SqlError> {
        let (body, columns) = match &cte.body {
            CteBody::Plain(body) => (self.query_expr(body)?, body.outputs.clone()),
            CteBody::Recursive { seed, step, distinct, limit } => {
                let seed = self.query_expr(seed)?;
                self.ctes.insert(cte.id, Source::WorkTable(cte.columns.clone()));
                let in_step = std::mem::replace(&mut self.in_step, true);
                let step = self.query_expr(step);
                self.in_step = in_step;
                let range = limit.as_ref().map(|limit| self.range(limit)).transpose()?;
                let (id, name, distinct) = (cte.id, cte.name.clone(), *distinct);
                let recursive = Recursive { cte: id, name, seed, step: step?, distinct, range };
                let node = Node::new(Operator::Recursive(Box::new(recursive)), cte.columns.clone());
                (node, cte.columns.clone())
            }
        };
        // What is defined in a recursion's step has other rows each time.
        if !self.in_step && self.sharing.is_shared(cte.id) {
            self.ctes.insert(cte.id, Source::Shared(columns));
            return Ok(Some(body));
        }
        self.ctes.insert(cte.id, Source::Inline { plan: body, columns });
        Ok(None)
    }

    fn cte_ref(&mut self, reference: &CteRef) -> Result<Node, SqlError> {
        let source = self.ctes.get(&reference.cte).cloned();
        let source = source.ok_or_else(|| unsupported("a reference to this common table expression"))?;
        let (cte, alias, outputs) = (reference.cte, reference.alias.clone(), reference.columns.clone());
        Ok(match source {
            Source::Inline { plan, columns } => {
                let items = columns.iter().zip(&outputs);
                let items = items.map(|(from, to)| renamed(self.columns, *from, *to)).collect();
                plan.projected(items, &[])
            }
            Source::Shared(columns) => Node::new(Operator::Shared { cte, alias, columns }, outputs),
            Source::WorkTable(columns) => Node::new(Operator::WorkTable { cte, alias, columns }, outputs),
        })
    }

    fn set_operation(&mut self, set: &plan::SetOperation) -> Result<Node, SqlError> {
        let sides = sides_of(set);
        let mut inputs = Vec::with_capacity(sides.len());
        for side in sides {
            inputs.push(self.query_expr(side)?);
        }
        let operation = SetOperation { op: set.op, all: set.all, inputs };
        Ok(Node::new(Operator::SetOperation(Box::new(operation)), set.columns.clone()))
    }

    /// The block's rows; and what can be computed of those alone that are the first by `order`, whose columns are there then.
    fn select<'q>(
        &mut self,
        select: &'q Select,
        order: &[SortKey],
        pending: &mut Pending<'q>,
    ) -> Result<(Node, Vec<Projected>), SqlError> {
        for subquery in &select.subqueries {
            let is_fixed = subquery.outer.iter().all(|id| self.outer.contains(id));
            match subquery.kind {
                SubqueryKind::Scalar
                    if is_fixed && self.depth < MOST_NESTED && !walk::is_volatile(&subquery.query) =>
                {
                    pending.before.push((subquery.id, self.inner(&subquery.query, &[])?));
                }
                _ => drop(pending.answers.insert(subquery.id, subquery)),
            }
        }
        let mut node = self.filtered_from(&select.from, select.filter.as_ref(), pending)?;
        if let Some(aggregation) = &select.aggregation {
            node = self.aggregate(node, aggregation, pending)?;
        }
        let having = self.conjuncts(select.having.as_ref());
        node = self.answered(node, &having, pending)?.filtered(having);
        if !select.windows.is_empty() {
            let mut functions = select.windows.clone();
            for function in &mut functions {
                walk::visit_window(function, &mut |expr| *expr = self.fold(expr));
            }
            let exprs = functions.iter().flat_map(|w| {
                w.args.iter().chain(&w.partition_by).chain(w.order_by.iter().map(|(expr, _)| expr))
            });
            node = self.answered(node, exprs, pending)?;
            let ids = functions.iter().map(|function| function.id);
            let outputs = node.outputs.iter().copied().chain(ids).collect();
            node = Node::new(Operator::Window { input: Box::new(node), functions }, outputs);
        }
        let fold = |item: &Projected| Projected { id: item.id, expr: self.fold(&item.expr) };
        let is_late = |item: &Projected| {
            !order.is_empty()
                && !select.distinct
                && !order.iter().any(|key| key.column == item.id)
                && (item.expr.can_fail() || pending.uses(&item.expr))
        };
        let (late, items): (Vec<_>, Vec<_>) = select.projection.iter().map(fold).partition(is_late);
        node = self.answered(node, items.iter().map(|item| &item.expr), pending)?;
        let mut passed = BTreeSet::new();
        late.iter().for_each(|item| pending.columns_of(&item.expr, &mut passed));
        let passed: Vec<_> = passed.into_iter().filter(|id| node.outputs.contains(id)).collect();
        node = node.projected(items, &passed);
        if select.distinct {
            let outputs = node.outputs.clone();
            node = Node::new(Operator::Distinct { input: Box::new(node) }, outputs);
        }
        Ok((node, late))
    }

    fn aggregate<'q>(
        &mut self,
        node: Node,
        aggregation: &Aggregation,
        pending: &mut Pending<'q>,
    ) -> Result<Node, SqlError> {
        let mut aggregation = aggregation.clone();
        aggregation.keys.iter_mut().for_each(|key| key.expr = self.fold(&key.expr));
        for aggregate in &mut aggregation.aggregates {
            aggregate.args = self.fold_all(&aggregate.args);
            aggregate.order_by.iter_mut().for_each(|(expr, _)| *expr = self.fold(expr));
        }
        let args = aggregation.aggregates.iter();
        let args = args.flat_map(|a| a.args.iter().chain(a.order_by.iter().map(|(expr, _)| expr)));
        let exprs = aggregation.keys.iter().map(|key| &key.expr).chain(args);
        let input = Box::new(self.answered(node, exprs, pending)?);
        let keys = aggregation.keys.iter().map(|key| key.id);
        let outputs = keys.chain(aggregation.aggregates.iter().map(|a| a.id)).collect();
        Ok(Node::new(Operator::Aggregate { input, aggregation }, outputs))
    }

    /// The rows of FROM for which WHERE holds.
    fn filtered_from<'q>(
        &mut self,
        from: &From,
        filter: Option<&Expr>,
        pending: &mut Pending<'q>,
    ) -> Result<Node, SqlError> {
        let (mut parts, mut on) = (Vec::new(), Vec::new());
        flatten(from, &mut parts, &mut on);
        let conjuncts = on.into_iter().chain(filter).flat_map(|condition| self.filters(Some(condition)));
        let conjuncts: Vec<_> = conjuncts.flat_map(common_factors).collect();
        let (plain_parts, laterals): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| outer_of(part).is_empty());
        let mut joined: Option<Node> = None;
        for part in plain_parts {
            let part = self.relation(part, pending)?;
            joined = Some(match joined {
                None => part,
                Some(left) => join(JoinKind::Inner, left, part, Vec::new()),
            });
        }
        let node = joined.unwrap_or_else(Node::one_row);
        let (answered, plain): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(|c| pending.uses(c));
        let of_laterals: HashSet<_> = laterals.iter().flat_map(|part| columns_in(part)).collect();
        let (late, plain): (Vec<_>, Vec<_>) =
            plain.into_iter().partition(|c| columns_of(c).any(|id| of_laterals.contains(&id)));
        let mut node = filtered_below(node, plain);
        for part in laterals {
            node = self.lateral(node, part, None, pending)?;
        }
        node = node.filtered(late);
        Ok(self.answered(node, &answered, pending)?.filtered(answered))
    }

    /// One part of FROM that is no inner join.
    fn relation<'q>(&mut self, from: &From, pending: &mut Pending<'q>) -> Result<Node, SqlError> {
        match from {
            From::Dual => Ok(Node::one_row()),
            From::Table(scan) => Ok(scan_of(scan)),
            From::Derived(derived) => self.query_expr(&derived.query),
            From::Cte(reference) => self.cte_ref(reference),
            From::Join(join) => self.outer_join(join, pending),
        }
    }

    fn outer_join<'q>(&mut self, join: &plan::Join, pending: &mut Pending<'q>) -> Result<Node, SqlError> {
        let left = self.filtered_from(&join.left, None, pending)?;
        if !outer_of(&join.right).is_empty() {
            return self.lateral(left, &join.right, Some(join.on.as_ref()), pending);
        }
        let right = self.filtered_from(&join.right, None, pending)?;
        let on = self.conjuncts(join.on.as_ref());
        let (left, right) = self.answered_sides(left, right, &on, pending)?;
        Ok(self::join(JoinKind::Left, left, right, on))
    }

    /// Both sides of an outer join with the answers that its condition uses.
    fn answered_sides<'q>(
        &mut self,
        mut left: Node,
        mut right: Node,
        on: &[Expr],
        pending: &mut Pending<'q>,
    ) -> Result<(Node, Node), SqlError> {
        let used: BTreeSet<_> = on.iter().flat_map(columns_of).collect();
        for id in used {
            let Some(subquery) = pending.answers.get(&id) else { continue };
            let mut needed = subquery.outer.clone();
            needed.extend(needles_of(&subquery.kind).iter().flat_map(columns_of));
            if needed.iter().all(|id| !right.outputs.contains(id)) {
                left = self.answer(left, id, pending)?;
            } else if needed.iter().all(|id| !left.outputs.contains(id)) {
                right = self.answer(right, id, pending)?;
            } else {
                return Err(unsupported("a subquery of both sides in the ON of an outer join"));
            }
        }
        Ok((left, right))
    }

    /// A LATERAL table, or a join with one in it, beside the rows that it refers to. `on` is the condition of a left join.
    fn lateral<'q>(
        &mut self,
        input: Node,
        part: &From,
        on: Option<Option<&Expr>>,
        pending: &mut Pending<'q>,
    ) -> Result<Node, SqlError> {
        let conditions = self.filters(on.flatten());
        let mut outer = outer_of(part);
        conditions.iter().for_each(|condition| pending.columns_of(condition, &mut outer));
        let own = columns_in(part);
        let outer: Vec<_> = outer.into_iter().filter(|id| !own.contains(id)).collect();
        let query = self.within(&outer, |builder| {
            let node = match part {
                From::Join(join) if join.kind == plan::JoinKind::Inner => {
                    builder.filtered_from(part, None, pending)?
                }
                part => builder.relation(part, pending)?,
            };
            // The conditions alone use the answers.
            let own = node.outputs.clone();
            Ok(builder.answered(node, &conditions, pending)?.filtered(conditions).with_outputs(&own))
        })?;
        let outputs = input.outputs.iter().chain(&query.outputs).copied().collect();
        let kind = ApplyKind::Rows { outer: on.is_some() };
        let id = *query.outputs.first().ok_or_else(|| unsupported("a LATERAL table without columns"))?;
        let apply = Apply { kind, input, query, outer, needles: Vec::new(), id };
        Ok(Node::new(Operator::Apply(Box::new(apply)), outputs))
    }

    /// A query that has some columns from outside.
    fn inner(&mut self, query: &QueryExpr, outer: &[ColumnId]) -> Result<Node, SqlError> {
        self.within(outer, |builder| builder.query_expr(query))
    }

    fn within(
        &mut self,
        outer: &[ColumnId],
        build: impl FnOnce(&mut Self) -> Result<Node, SqlError>,
    ) -> Result<Node, SqlError> {
        let mut within = self.outer.clone();
        within.extend(outer);
        let around = std::mem::replace(&mut self.outer, within);
        self.depth += 1;
        let node = build(self);
        self.depth -= 1;
        self.outer = around;
        node
    }

    /// The node with the answers of the subqueries that the expressions use.
    fn answered<'q, 'e>(
        &mut self,
        mut node: Node,
        exprs: impl IntoIterator<Item = &'e Expr>,
        pending: &mut Pending<'q>,
    ) -> Result<Node, SqlError> {
        if pending.answers.is_empty() {
            return Ok(node);
        }
        let used: BTreeSet<_> = exprs.into_iter().flat_map(columns_of).collect();
        for id in used {
            node = self.answer(node, id, pending)?;
        }
        Ok(node)
    }

    /// The node with the answer `id`, if that is one and is not there yet.
    fn answer<'q>(
        &mut self,
        mut node: Node,
        id: ColumnId,
        pending: &mut Pending<'q>,
    ) -> Result<Node, SqlError> {
        let Some(subquery) = pending.answers.remove(&id) else { return Ok(node) };
        // Answers of which this one is made come first.
        for outer in &subquery.outer {
            node = self.answer(node, *outer, pending)?;
        }
        let kind = match &subquery.kind {
            SubqueryKind::Scalar => ApplyKind::Scalar,
            SubqueryKind::Exists { negated } => ApplyKind::Exists { negated: *negated },
            SubqueryKind::In { negated, .. } => ApplyKind::In { negated: *negated },
            SubqueryKind::Quantified { op, all, .. } => ApplyKind::Quantified { op: *op, all: *all },
        };
        let needles = self.fold_all(needles_of(&subquery.kind));
        let input = self.answered(node, &needles, pending)?;
        let query = self.inner(&subquery.query, &subquery.outer)?;
        let outputs = input.outputs.iter().copied().chain([id]).collect();
        let outer = subquery.outer.clone();
        let apply = Apply { kind, input, query, outer, needles, id };
        Ok(Node::new(Operator::Apply(Box::new(apply)), outputs))
    }
}

fn needles_of(kind: &SubqueryKind) -> &[Expr] {
    match kind {
        SubqueryKind::In { needles, .. } => needles,
        SubqueryKind::Quantified { left, .. } => std::slice::from_ref(left),
        SubqueryKind::Scalar | SubqueryKind::Exists { .. } => &[],
    }
}

fn scan_of(scan: &TableScan) -> Node {
    let outputs = scan.columns.iter().map(|(_, id)| *id).collect();
    let scan = Scan {
        table: scan.clone(),
        predicates: Vec::new(),
        rows: 1.0,
        statistics: None,
        paths: Box::default(),
    };
    Node::new(Operator::Scan(scan), outputs)
}

pub(super) fn join(kind: JoinKind, left: Node, right: Node, residual: Vec<Expr>) -> Node {
    let mut outputs = left.outputs.clone();
    if kind.gives_right() {
        outputs.extend(&right.outputs);
    }
    Node::new(Operator::Join(Box::new(Join { kind, left, right, keys: Vec::new(), residual })), outputs)
}

pub(super) fn once(id: ColumnId, query: Node, input: Node) -> Node {
    let (outputs, rows) = (input.outputs.clone(), input.rows);
    let operator = Operator::Once { id, query: Box::new(query), input: Box::new(input) };
    Node { rows, ..Node::new(operator, outputs) }
}

/// Splits inner joins into their parts and conditions.
fn flatten<'f>(from: &'f From, parts: &mut Vec<&'f From>, conditions: &mut Vec<&'f Expr>) {
    match from {
        From::Join(join) if join.kind == plan::JoinKind::Inner => {
            flatten(&join.left, parts, conditions);
            flatten(&join.right, parts, conditions);
            conditions.extend(&join.on);
        }
        other => parts.push(other),
    }
}

/// What a part uses of those before it: LATERAL tables do, also within joins.
fn outer_of(part: &From) -> BTreeSet<ColumnId> {
    match part {
        From::Derived(derived) => derived.outer.iter().copied().collect(),
        From::Join(join) => {
            let mut outer = outer_of(&join.left);
            outer.extend(outer_of(&join.right));
            if !outer.is_empty() {
                let own = columns_in(part);
                outer.retain(|id| !own.contains(id));
            }
            outer
        }
        From::Dual | From::Table(_) | From::Cte(_) => BTreeSet::new(),
    }
}

/// The columns that a part gives.
fn columns_in(part: &From) -> HashSet<ColumnId> {
    match part {
        From::Dual => HashSet::new(),
        From::Table(scan) => scan.columns.iter().map(|(_, id)| *id).collect(),
        From::Derived(derived) => derived.query.outputs.iter().copied().collect(),
        From::Cte(reference) => reference.columns.iter().copied().collect(),
        From::Join(join) => columns_in(&join.left).into_iter().chain(columns_in(&join.right)).collect(),
    }
}

/// `(a AND b) OR (a AND c)` is `a AND (b OR c)`: what all alternatives share can join or filter by itself, and what is left of them may
/// not refer to another query any more.
fn is_true(condition: &Expr) -> bool {
    matches!(condition.as_literal(), Some(Datum::Int(truth)) if *truth != 0)
}

/// The node with conditions, which stand below LATERAL tables where they are about what those are beside: how these are evaluated
/// follows from how many rows that has.
fn filtered_below(mut node: Node, conditions: Vec<Expr>) -> Node {
    let above = conditions.into_iter().filter_map(|condition| sink(&mut node, condition)).collect();
    node.filtered(above)
}

/// Puts a condition on what a LATERAL table stands beside, through joins that keep that one's rows as they are; gives it back if it is
/// about something else.
fn sink(node: &mut Node, condition: Expr) -> Option<Expr> {
    let gives = |node: &Node| columns_of(&condition).any(|id| node.outputs.contains(&id));
    match &mut node.operator {
        Operator::Apply(apply) if matches!(apply.kind, ApplyKind::Rows { .. }) => {
            if condition.is_volatile() || !gives(&apply.input) || gives(&apply.query) {
                return Some(condition);
            }
            if let Some(condition) = sink(&mut apply.input, condition) {
                let input = std::mem::replace(&mut apply.input, Node::one_row());
                apply.input = input.filtered(vec![condition]);
            }
            None
        }
        Operator::Join(join) => match (join.kind, gives(&join.left), gives(&join.right)) {
            (JoinKind::Inner | JoinKind::Left, true, false) => sink(&mut join.left, condition),
            (JoinKind::Inner, false, true) => sink(&mut join.right, condition),
            _ => Some(condition),
        },
        _ => Some(condition),
    }
}

fn common_factors(expr: Expr) -> Vec<Expr> {
    let ExprKind::Or(alternatives) = &expr.kind else { return vec![expr] };
    let split: Vec<Vec<Expr>> = alternatives.iter().map(|a| a.clone().into_conjuncts()).collect();
    let Some((first, others)) = split.split_first() else { return vec![expr] };
    let mut factors: Vec<_> =
        first.iter().filter(|c| !c.is_volatile() && others.iter().all(|o| o.contains(c))).cloned().collect();
    if factors.is_empty() {
        return vec![expr];
    }
    let rest = split.into_iter().zip(alternatives).map(|(mut conjuncts, alternative)| {
        conjuncts.retain(|conjunct| !factors.contains(conjunct));
        match conjuncts.len() {
            0 | 1 => conjuncts.pop(),
            _ => Some(Expr { kind: ExprKind::And(conjuncts), ..alternative.clone() }),
        }
    });
    // An alternative that is the shared part alone holds whenever that does.
    if let Some(rest) = rest.collect::<Option<Vec<Expr>>>() {
        factors.push(Expr { kind: ExprKind::Or(rest), ..expr });
    }
    factors
}
