//! The plan as a tree: making nodes, and going through them.

use avocet_types::expr::Expr;

use super::{Cardinality, JoinKind, MOST_ROWS, Node, NodeId, Operator, RowsFrom};
use crate::plan::walk::visit_window;
use crate::plan::{ColumnId, Projected};

impl Cardinality {
    pub fn new(rows: f64, source: RowsFrom) -> Self {
        Self { rows: rows.max(1.0), source }
    }

    /// Nothing is estimated yet.
    pub(super) const UNKNOWN: Self = Self { rows: 1.0, source: RowsFrom::Rule };

    /// So many times as many, by a rule of thumb.
    pub(super) fn by_rule(self, factor: f64) -> Self {
        Self::new(self.rows * factor, RowsFrom::Rule)
    }
}

impl Node {
    pub(super) fn new(operator: Operator, outputs: Vec<ColumnId>) -> Self {
        Self { id: NodeId::default(), operator, outputs, rows: Cardinality::UNKNOWN, most_rows: MOST_ROWS }
    }

    pub(super) fn one_row() -> Self {
        Self::new(Operator::OneRow, Vec::new())
    }

    /// The rows for which the conditions hold.
    pub(super) fn filtered(self, conditions: Vec<Expr>) -> Self {
        if conditions.is_empty() {
            return self;
        }
        let (outputs, rows) = (self.outputs.clone(), self.rows);
        Self { rows, ..Self::new(Operator::Filter { input: Box::new(self), conditions }, outputs) }
    }

    /// The items, and these columns of the node.
    pub(super) fn projected(self, items: Vec<Projected>, passed: &[ColumnId]) -> Self {
        let outputs = passed.iter().copied().chain(items.iter().map(|item| item.id)).collect();
        let rows = self.rows;
        Self { rows, ..Self::new(Operator::Project { input: Box::new(self), items }, outputs) }
    }

    /// Exactly these columns.
    pub(super) fn with_outputs(self, outputs: &[ColumnId]) -> Self {
        if self.outputs == outputs { self } else { self.projected(Vec::new(), outputs) }
    }

    /// In the order in which they are evaluated.
    pub fn inputs(&self) -> Vec<&Node> {
        match &self.operator {
            Operator::OneRow
            | Operator::Scan(_)
            | Operator::Values(_)
            | Operator::JsonTable { .. }
            | Operator::Shared { .. }
            | Operator::WorkTable { .. } => Vec::new(),
            Operator::Filter { input, .. }
            | Operator::Project { input, .. }
            | Operator::Aggregate { input, .. }
            | Operator::Distinct { input }
            | Operator::Window { input, .. }
            | Operator::Sort { input, .. }
            | Operator::Limit { input, .. } => vec![input],
            Operator::Join(join) => vec![&join.left, &join.right],
            Operator::SetOperation(set) => set.inputs.iter().collect(),
            Operator::Apply(apply) => vec![&apply.input, &apply.query],
            Operator::Once { query, input, .. } => vec![query, input],
            Operator::With { body, input, .. } => vec![body, input],
            Operator::Recursive(recursive) => vec![&recursive.seed, &recursive.step],
        }
    }

    /// In the order in which they are evaluated.
    pub(super) fn inputs_mut(&mut self) -> Vec<&mut Node> {
        match &mut self.operator {
            Operator::OneRow
            | Operator::Scan(_)
            | Operator::Values(_)
            | Operator::JsonTable { .. }
            | Operator::Shared { .. }
            | Operator::WorkTable { .. } => Vec::new(),
            Operator::Filter { input, .. }
            | Operator::Project { input, .. }
            | Operator::Aggregate { input, .. }
            | Operator::Distinct { input }
            | Operator::Window { input, .. }
            | Operator::Sort { input, .. }
            | Operator::Limit { input, .. } => vec![input],
            Operator::Join(join) => vec![&mut join.left, &mut join.right],
            Operator::SetOperation(set) => set.inputs.iter_mut().collect(),
            Operator::Apply(apply) => vec![&mut apply.input, &mut apply.query],
            Operator::Once { query, input, .. } => vec![query, input],
            Operator::With { body, input, .. } => vec![body, input],
            Operator::Recursive(recursive) => vec![&mut recursive.seed, &mut recursive.step],
        }
    }

    /// Calls `visit` with each expression of this node.
    pub(super) fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.operator {
            Operator::Scan(scan) => scan.predicates.iter().for_each(visit),
            Operator::Values(rows) => rows.iter().flatten().for_each(visit),
            Operator::JsonTable { document, .. } => visit(document),
            Operator::Filter { conditions, .. } => conditions.iter().for_each(visit),
            Operator::Project { items, .. } => items.iter().for_each(|item| visit(&item.expr)),
            Operator::Join(join) => {
                for key in &join.keys {
                    visit(&key.left);
                    visit(&key.right);
                }
                join.residual.iter().for_each(visit);
            }
            Operator::Aggregate { aggregation, .. } => {
                aggregation.keys.iter().for_each(|key| visit(&key.expr));
                for aggregate in &aggregation.aggregates {
                    aggregate.args.iter().for_each(&mut *visit);
                    aggregate.order_by.iter().for_each(|(expr, _)| visit(expr));
                }
            }
            Operator::Window { functions, .. } => {
                for function in functions {
                    visit_window(&mut function.clone(), &mut |expr| visit(expr));
                }
            }
            Operator::Apply(apply) => apply.needles.iter().for_each(visit),
            _ => {}
        }
    }

    /// The same, to be changed in place.
    pub(super) fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.operator {
            Operator::Scan(scan) => scan.predicates.iter_mut().for_each(visit),
            Operator::Values(rows) => rows.iter_mut().flatten().for_each(visit),
            Operator::JsonTable { document, .. } => visit(document),
            Operator::Filter { conditions, .. } => conditions.iter_mut().for_each(visit),
            Operator::Project { items, .. } => items.iter_mut().for_each(|item| visit(&mut item.expr)),
            Operator::Join(join) => {
                for key in &mut join.keys {
                    visit(&mut key.left);
                    visit(&mut key.right);
                }
                join.residual.iter_mut().for_each(visit);
            }
            Operator::Aggregate { aggregation, .. } => {
                aggregation.keys.iter_mut().for_each(|key| visit(&mut key.expr));
                for aggregate in &mut aggregation.aggregates {
                    aggregate.args.iter_mut().for_each(&mut *visit);
                    aggregate.order_by.iter_mut().for_each(|(expr, _)| visit(expr));
                }
            }
            Operator::Window { functions, .. } => {
                functions.iter_mut().for_each(|function| visit_window(function, visit));
            }
            Operator::Apply(apply) => apply.needles.iter_mut().for_each(visit),
            _ => {}
        }
    }

    /// Whether something in it is random, so that its rows are others each time it is run.
    pub fn is_volatile(&self) -> bool {
        let mut found = false;
        self.for_each_node(&mut |node| node.for_each_expr(&mut |expr| found |= expr.is_volatile()));
        found
    }

    /// Calls `visit` with each node of the tree, inputs first.
    pub(super) fn for_each_node<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        for input in self.inputs() {
            input.for_each_node(visit);
        }
        visit(self);
    }
}

impl JoinKind {
    /// Whether the right side's columns are among the join's.
    pub fn gives_right(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Single)
    }
}

/// Numbers the nodes from the root down.
pub(super) fn number(root: &mut Node) {
    fn number_from(node: &mut Node, next: &mut u32) {
        node.id = NodeId(*next);
        *next += 1;
        for input in node.inputs_mut() {
            number_from(input, next);
        }
    }
    number_from(root, &mut 0);
}

/// The columns that an expression uses.
pub(super) fn columns_of(expr: &Expr) -> impl Iterator<Item = ColumnId> + use<> {
    expr.columns().into_iter().map(|column| ColumnId(column as u32))
}
