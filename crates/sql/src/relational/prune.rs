//! Columns that nobody above needs are not passed on, nor made.

use std::collections::HashSet;

use super::tree::columns_of;
use super::{Node, Operator};
use crate::plan::ColumnId;

/// Leaves in the tree what it takes to give these columns.
pub(super) fn prune(root: &mut Node, outputs: &[ColumnId]) {
    node(root, &outputs.iter().copied().collect());
}

fn node(node: &mut Node, needed: &HashSet<ColumnId>) {
    // Of these all columns count, by their places or since rows are told apart by them.
    let is_whole = matches!(
        node.operator,
        Operator::Values(_)
            | Operator::Distinct { .. }
            | Operator::SetOperation(_)
            | Operator::Recursive(_)
            | Operator::WorkTable { .. }
    );
    if is_whole {
        for input in node.inputs_mut() {
            let all = input.outputs.iter().copied().collect();
            self::node(input, &all);
        }
        return;
    }
    match &mut node.operator {
        Operator::Project { items, .. } => items.retain(|item| needed.contains(&item.id)),
        Operator::Aggregate { aggregation, .. } => {
            aggregation.aggregates.retain(|aggregate| needed.contains(&aggregate.id));
        }
        Operator::Window { functions, .. } => {
            functions.retain(|function| needed.contains(&function.id));
        }
        Operator::Shared { columns, .. } => {
            let kept = columns.iter().zip(&node.outputs).filter(|(_, id)| needed.contains(id));
            *columns = kept.map(|(column, _)| *column).collect();
        }
        _ => {}
    }
    node.outputs.retain(|id| needed.contains(id));
    let mut below: HashSet<ColumnId> = node.outputs.iter().copied().collect();
    node.for_each_expr(&mut |expr| below.extend(columns_of(expr)));
    match &mut node.operator {
        Operator::Scan(scan) => {
            scan.table.columns.retain(|(_, id)| below.contains(id));
            scan.paths.columns.retain(|path| below.contains(&path.id));
        }
        Operator::Sort { keys, .. } => below.extend(keys.iter().map(|key| key.column)),
        Operator::Apply(apply) => {
            below.extend(&apply.outer);
            whole(&mut apply.query);
        }
        Operator::Once { query, .. } => whole(query),
        Operator::With { body, .. } => whole(body),
        _ => {}
    }
    match &mut node.operator {
        Operator::Apply(apply) => self::node(&mut apply.input, &below),
        Operator::Once { input, .. } | Operator::With { input, .. } => self::node(input, &below),
        _ => node.inputs_mut().into_iter().for_each(|input| self::node(input, &below)),
    }
}

fn whole(query: &mut Node) {
    let all = query.outputs.iter().copied().collect();
    node(query, &all);
}
