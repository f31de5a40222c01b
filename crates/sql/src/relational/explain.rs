//! A plan as EXPLAIN's steps, in MySQL's words.

use std::collections::HashMap;

use avocet_types::expr::Expr;

use super::naming::{name, sql};
use super::{Apply, ApplyKind, Join, JoinKind, Node, NodeId, Operator, Plan, RowRange, RowsFrom, Scan};
use crate::explain::{Access, Block, Estimate, Note, Step};
use crate::parse::ast::SetOperator;
use crate::plan::{Aggregate, CteId, WindowFunction};

pub use crate::explain::Measured;

/// What it costs to pass a row on, in MySQL's unit: a tenth of reading a page.
const ROW_COST: f64 = 0.1;

/// The plan's steps, with what its nodes did if it was run.
pub fn steps(plan: &Plan, actual: &HashMap<NodeId, Measured>) -> Step {
    Printer { plan, actual, bodies: HashMap::new() }.node(&plan.root).0
}

struct Printer<'p> {
    plan: &'p Plan,
    actual: &'p HashMap<NodeId, Measured>,
    /// What is evaluated once, until its first reader shows it.
    bodies: HashMap<CteId, &'p Node>,
}

impl<'p> Printer<'p> {
    /// The steps of a node, and what they cost.
    fn node(&mut self, node: &'p Node) -> (Step, f64) {
        match &node.operator {
            // Neither takes a step of its own.
            Operator::Project { input, .. } => self.node(input),
            Operator::With { cte, body, input, .. } => {
                self.bodies.insert(*cte, body);
                self.node(input)
            }
            Operator::Once { query, input, .. } => {
                let (mut step, cost) = self.node(input);
                let (once, more) = self.node(query);
                let mut once = Step::over("Subquery (run only once)", once);
                once.block = Some(Block::Subquery);
                step.inputs.push(once);
                (step, cost + more)
            }
            Operator::Scan(scan) => self.scan(node, scan),
            _ => self.step(node),
        }
    }

    fn step(&mut self, node: &'p Node) -> (Step, f64) {
        let (mut cost, mut inputs) = (0.0, Vec::new());
        for input in node.inputs() {
            let (step, more) = self.node(input);
            inputs.push(step);
            cost += more;
        }
        let mut step = self.described(node, inputs);
        if let Operator::Shared { cte, .. } = &node.operator
            && let Some(body) = self.bodies.remove(cte)
        {
            let (body, more) = self.node(body);
            step.inputs.push(Step { block: Some(Block::Derived), ..Step::over("Materialize", body) });
            cost += more;
        }
        cost += own_cost(node);
        step.estimate = Some(estimate(node, cost));
        step.actual = self.actual.get(&node.id).copied();
        (step, cost)
    }

    fn described(&self, node: &Node, mut inputs: Vec<Step>) -> Step {
        let read = |what: String, table: &str| Step { access: Some(read(table, node)), ..Step::new(what) };
        let over = |what: String, inputs: Vec<Step>| Step { inputs, ..Step::new(what) };
        match &node.operator {
            Operator::JsonTable { .. } => Step::new("Materialize table function"),
            Operator::OneRow | Operator::Values(_) => Step::new("Rows fetched before execution"),
            Operator::Filter { conditions, .. } => {
                over(format!("Filter: {}", self.conjunction(conditions)), inputs)
            }
            Operator::Join(join) => self.join(join, inputs),
            Operator::Aggregate { aggregation, .. } => {
                let calls: Vec<_> = aggregation.aggregates.iter().map(|a| self.call(a)).collect();
                let calls = calls.join(", ");
                if aggregation.keys.is_empty() {
                    return over(format!("Aggregate: {calls}"), inputs);
                }
                let keys = self.list(aggregation.keys.iter().map(|key| &key.expr));
                let rollup = if aggregation.rollup { " with rollup" } else { "" };
                let what = match calls.is_empty() {
                    true => format!("Group by {keys}{rollup}"),
                    false => format!("Group by {keys}{rollup}: {calls}"),
                };
                over(what, inputs).with_note(Note::Temporary)
            }
            Operator::Distinct { .. } => over("Deduplicate".into(), inputs).with_note(Note::Temporary),
            Operator::Window { functions, .. } => {
                let calls: Vec<_> = functions.iter().map(|function| self.window(function)).collect();
                let what = format!("Window aggregate: {}", calls.join(", "));
                over(what, inputs).with_note(Note::Filesort)
            }
            Operator::Sort { keys, range, .. } => {
                let keys = keys.iter().map(|key| {
                    format!("{}{}", self.name(key.column), if key.descending { " DESC" } else { "" })
                });
                let mut what = format!("Sort: {}", keys.collect::<Vec<_>>().join(", "));
                if let Some(range) = range {
                    let rows = range.fetch.saturating_add(range.skip);
                    what += &format!(", limit input to {rows} row(s) per chunk");
                }
                let sort = over(what, inputs).with_note(Note::Filesort);
                match range {
                    Some(range) if range.skip > 0 => Step::over(limit(range), sort),
                    _ => sort,
                }
            }
            Operator::Limit { range, .. } => over(limit(range), inputs),
            Operator::SetOperation(set) => {
                let what = match (set.op, set.all) {
                    (SetOperator::Union, true) => "Append",
                    (SetOperator::Union, false) => "Union materialize with deduplication",
                    (SetOperator::Except, true) => "Except all materialize",
                    (SetOperator::Except, false) => "Except materialize with deduplication",
                    (SetOperator::Intersect, true) => "Intersect all materialize",
                    (SetOperator::Intersect, false) => "Intersect materialize with deduplication",
                };
                for right in inputs.iter_mut().skip(1) {
                    right.block = Some(Block::Union);
                }
                over(what.into(), inputs)
            }
            Operator::Apply(apply) => self.apply(apply, inputs),
            Operator::Shared { alias, .. } => read(format!("Table scan on {alias}"), alias),
            Operator::WorkTable { alias, .. } => read(format!("Scan new records on {alias}"), alias),
            Operator::Recursive(recursive) => {
                if let Some(step) = inputs.pop() {
                    inputs.push(Step {
                        block: Some(Block::Union),
                        ..Step::over("Repeat until convergence", step)
                    });
                }
                over(format!("Materialize recursive CTE {}", recursive.name), inputs)
            }
            Operator::Scan(_) | Operator::Project { .. } | Operator::Once { .. } | Operator::With { .. } => {
                over(String::new(), inputs)
            }
        }
    }

    fn scan(&self, node: &Node, scan: &Scan) -> (Step, f64) {
        let alias = &*scan.table.alias;
        let cost = scan.rows * ROW_COST;
        let condition = (!scan.predicates.is_empty()).then(|| self.conjunction(&scan.predicates));
        let filtered = 100.0 * node.rows.rows / scan.rows.max(1.0);
        let (table, rows) = (alias.to_owned(), scan.rows);
        let access = Access { table, rows, filtered, condition: condition.clone(), ..Access::default() };
        let mut step = Step { access: Some(access), ..Step::new(format!("Table scan on {alias}")) };
        step.estimate = Some(Estimate { rows: scan.rows, ..estimate(node, cost) });
        if let Some(condition) = condition {
            step = Step::over(format!("Filter: {condition}"), step);
            step.estimate = Some(estimate(node, cost));
        }
        step.actual = self.actual.get(&node.id).copied();
        (step, cost)
    }

    fn join(&self, join: &Join, inputs: Vec<Step>) -> Step {
        let what = match join.kind {
            JoinKind::Inner => "Inner hash join",
            JoinKind::Left | JoinKind::Single => "Left hash join",
            JoinKind::Semi => "Hash semijoin",
            JoinKind::Anti { .. } => "Hash antijoin",
            JoinKind::Mark(_) => "Hash mark join",
        };
        let keys: Vec<_> = join.keys.iter().map(|key| self.sql(&key.clone().into_expr())).collect();
        let mut what = match keys.is_empty() {
            true => format!("{what} (no condition)"),
            false => format!("{what} {}", keys.join(", ")),
        };
        if !join.residual.is_empty() {
            what += &format!(", extra conditions: {}", self.conjunction(&join.residual));
        }
        let mut inputs = inputs.into_iter();
        let (left, right) = (inputs.next().unwrap_or_default(), inputs.next().unwrap_or_default());
        // The rows of one side go past a table of the other's.
        let (mut rows, table) = if join.kind == JoinKind::Inner { (right, left) } else { (left, right) };
        let mut hash = Step::over("Hash", table);
        mark_joined(&mut hash);
        if rows.what.is_empty() {
            rows = Step::new("Rows fetched before execution");
        }
        Step { inputs: vec![rows, hash], ..Step::new(what) }
    }

    fn apply(&self, apply: &Apply, inputs: Vec<Step>) -> Step {
        let mut inputs = inputs.into_iter();
        let (input, query) = (inputs.next().unwrap_or_default(), inputs.next().unwrap_or_default());
        let needles = || self.list(&apply.needles);
        let not = |negated: bool| if negated { "not " } else { "" };
        let what = match apply.kind {
            ApplyKind::Scalar => "Apply scalar subquery".to_owned(),
            ApplyKind::Exists { negated } => format!("Apply {}exists(subquery)", not(negated)),
            ApplyKind::In { negated } => format!("Apply {} {}in (subquery)", needles(), not(negated)),
            ApplyKind::Quantified { op, all } => {
                format!("Apply {} {op:?} {}(subquery)", needles(), if all { "all" } else { "any" })
            }
            ApplyKind::Rows { outer: false } => "Nested loop inner join (lateral)".to_owned(),
            ApplyKind::Rows { outer: true } => "Nested loop left join (lateral)".to_owned(),
        };
        let (how, block) = match apply.outer.is_empty() {
            true => ("Subquery (run only once)", Block::Subquery),
            false => ("Subquery (dependent)", Block::DependentSubquery),
        };
        let query = Step { block: Some(block), ..Step::over(how, query) };
        Step { inputs: vec![input, query], ..Step::new(what) }
    }

    fn call(&self, aggregate: &Aggregate) -> String {
        let distinct = if aggregate.distinct { "distinct " } else { "" };
        let name = word(&format!("{:?}", aggregate.function));
        match aggregate.args.is_empty() {
            true => format!("{name}(0)"),
            false => format!("{name}({distinct}{})", self.list(&aggregate.args)),
        }
    }

    fn window(&self, function: &WindowFunction) -> String {
        use crate::plan::WindowKind;
        let name = match function.kind {
            WindowKind::Aggregate(function) => format!("{function:?}"),
            kind => format!("{kind:?}"),
        };
        let mut over = Vec::new();
        if !function.partition_by.is_empty() {
            over.push(format!("PARTITION BY {}", self.list(&function.partition_by)));
        }
        if !function.order_by.is_empty() {
            let keys = function.order_by.iter().map(|(expr, descending)| {
                format!("{}{}", self.sql(expr), if *descending { " DESC" } else { "" })
            });
            over.push(format!("ORDER BY {}", keys.collect::<Vec<_>>().join(",")));
        }
        format!("{}({}) OVER ({})", word(&name), self.list(&function.args), over.join(" "))
    }

    fn name(&self, id: crate::plan::ColumnId) -> String {
        name(&self.plan.columns, id)
    }

    fn sql(&self, expr: &Expr) -> String {
        sql(&self.plan.columns, expr)
    }

    fn list<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> String {
        exprs.into_iter().map(|expr| self.sql(expr)).collect::<Vec<_>>().join(", ")
    }

    fn conjunction(&self, conditions: &[Expr]) -> String {
        match conditions {
            [one] => self.sql(one),
            all => format!("({})", all.iter().map(|c| self.sql(c)).collect::<Vec<_>>().join(" and ")),
        }
    }
}

/// All tables of a side that is hashed say so.
fn mark_joined(step: &mut Step) {
    if let Some(access) = &mut step.access {
        access.notes.push(Note::HashJoin);
    }
    if step.block.is_none() {
        step.inputs.iter_mut().for_each(mark_joined);
    }
}

fn read(table: &str, node: &Node) -> Access {
    Access { table: table.to_owned(), rows: node.rows.rows, filtered: 100.0, ..Access::default() }
}

fn limit(range: &RowRange) -> String {
    match range.skip {
        0 => format!("Limit: {} row(s)", range.fetch),
        skip => format!("Limit/Offset: {}/{skip} row(s)", range.fetch),
    }
}

/// What a node does beside its inputs.
fn own_cost(node: &Node) -> f64 {
    let rows = node.rows.rows;
    let per_row = match &node.operator {
        Operator::Sort { input, .. } => input.rows.rows * input.rows.rows.log2().max(1.0) / 10.0,
        Operator::Join(join) => rows + join.left.rows.rows.min(join.right.rows.rows),
        Operator::Aggregate { input, .. } | Operator::Distinct { input } => input.rows.rows,
        // The query once more for each other row.
        Operator::Apply(apply) => apply.input.rows.rows * apply.query.rows.rows,
        _ => rows,
    };
    per_row * ROW_COST
}

fn estimate(node: &Node, cost: f64) -> Estimate {
    let from = match node.rows.source {
        RowsFrom::Statement => "statement",
        RowsFrom::Statistics => "statistics",
        RowsFrom::Sample => "sample",
        RowsFrom::Rule => "rule",
    };
    Estimate { cost, rows: node.rows.rows, from }
}

/// `RowNumber` as `row_number`.
fn word(camel: &str) -> String {
    let mut word = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}
