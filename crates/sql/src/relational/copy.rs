//! A second plan of the same rows, beside the first in one tree: with columns of its own.

use std::collections::HashMap;

use avocet_types::expr::Expr;

use super::{JoinKind, Node, Operator};
use crate::plan::walk::{column_of, replace};
use crate::plan::{ColumnId, ColumnTable};

impl Node {
    /// A copy whose columns have new ids, and which these are. `None` for what is not copied: what is evaluated once for several
    /// readers, or row by row.
    pub(super) fn copy(&self, columns: &mut ColumnTable) -> Option<(Node, HashMap<ColumnId, ColumnId>)> {
        let mut made = Vec::new();
        let mut is_copied = true;
        self.for_each_node(&mut |node| is_copied &= node.makes(&mut made));
        if !is_copied {
            return None;
        }
        let ids: HashMap<ColumnId, ColumnId> =
            made.into_iter().map(|id| (id, columns.add(columns[id].clone()))).collect();
        let mut copy = self.clone();
        copy.rename(&ids);
        Some((copy, ids))
    }

    /// Adds the columns that the node itself makes; whether it can be copied.
    fn makes(&self, to: &mut Vec<ColumnId>) -> bool {
        match &self.operator {
            Operator::Scan(scan) => to.extend(scan.table.columns.iter().map(|(_, id)| *id)),
            Operator::Project { items, .. } => to.extend(items.iter().map(|item| item.id)),
            Operator::Aggregate { aggregation, .. } => {
                to.extend(aggregation.keys.iter().map(|key| key.id));
                to.extend(aggregation.aggregates.iter().map(|aggregate| aggregate.id));
            }
            Operator::Join(join) => {
                if let JoinKind::Mark(id) = join.kind {
                    to.push(id);
                }
            }
            Operator::Values(_) => to.extend(&self.outputs),
            Operator::OneRow
            | Operator::Filter { .. }
            | Operator::Distinct { .. }
            | Operator::Sort { .. }
            | Operator::Limit { .. } => {}
            Operator::JsonTable { .. }
            | Operator::Window { .. }
            | Operator::SetOperation(_)
            | Operator::Apply(_)
            | Operator::Once { .. }
            | Operator::With { .. }
            | Operator::Shared { .. }
            | Operator::Recursive(_)
            | Operator::WorkTable { .. } => return false,
        }
        true
    }

    fn rename(&mut self, ids: &HashMap<ColumnId, ColumnId>) {
        let new = |id: &mut ColumnId| *id = ids.get(id).copied().unwrap_or(*id);
        match &mut self.operator {
            Operator::Scan(scan) => scan.table.columns.iter_mut().for_each(|(_, id)| new(id)),
            Operator::Project { items, .. } => items.iter_mut().for_each(|item| new(&mut item.id)),
            Operator::Aggregate { aggregation, .. } => {
                aggregation.keys.iter_mut().for_each(|key| new(&mut key.id));
                aggregation.aggregates.iter_mut().for_each(|aggregate| new(&mut aggregate.id));
            }
            Operator::Join(join) => {
                if let JoinKind::Mark(id) = &mut join.kind {
                    new(id);
                }
            }
            Operator::Sort { keys, .. } => keys.iter_mut().for_each(|key| new(&mut key.column)),
            _ => {}
        }
        self.outputs.iter_mut().for_each(new);
        self.for_each_expr_mut(&mut |expr| {
            replace(expr, &mut |part| {
                let id = ids.get(&column_of(part)?)?;
                Some(Expr::column(id.index(), part.ty, part.nullable))
            });
        });
        self.inputs_mut().into_iter().for_each(|input| input.rename(ids));
    }
}
