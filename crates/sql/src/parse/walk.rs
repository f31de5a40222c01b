//! Walking syntax trees of expressions.

use crate::parse::ast::{Expr, ExprKind};

impl Expr {
    /// The direct operands; what is inside of subqueries, aggregates and window calls are none.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        use ExprKind as K;
        match &mut self.kind {
            K::Unary { expr, .. }
            | K::Is { expr, .. }
            | K::Cast { expr, .. }
            | K::ConvertUsing { expr, .. }
            | K::Collate { expr, .. }
            | K::Extract { expr, .. }
            | K::InSubquery { expr, .. }
            | K::Quantified { left: expr, .. }
            | K::AssignVariable { value: expr, .. } => vec![expr],
            K::Binary { left, right, .. } => vec![left, right],
            K::Regexp { expr, pattern, .. } => vec![expr, pattern],
            K::DateArithmetic { expr, amount, .. } => vec![expr, amount],
            K::TimestampDiff { from, to, .. } => vec![from, to],
            K::Between { expr, low, high, .. } => vec![expr, low, high],
            K::And(parts) | K::Or(parts) | K::Row(parts) | K::Function { args: parts, .. } => {
                parts.iter_mut().collect()
            }
            K::InList { expr, list, .. } => std::iter::once(&mut **expr).chain(list).collect(),
            K::Like { expr, pattern, escape, .. } => {
                [&mut **expr, &mut **pattern].into_iter().chain(escape.as_deref_mut()).collect()
            }
            K::Trim { what, expr, .. } => std::iter::once(&mut **expr).chain(what.as_deref_mut()).collect(),
            K::Case { operand, branches, otherwise } => {
                let pairs = branches.iter_mut().flat_map(|(when, then)| [when, then]);
                operand.as_deref_mut().into_iter().chain(pairs).chain(otherwise.as_deref_mut()).collect()
            }
            // Defaults are literals.
            K::JsonValue(call) => vec![&mut call.document, &mut call.path],
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
            | K::Column { .. }
            | K::SystemVariable { .. }
            | K::UserVariable { .. }
            | K::Default
            | K::DefaultOf { .. }
            | K::Aggregate(_)
            | K::Window(_)
            | K::Subquery(_)
            | K::Exists(_)
            | K::InsertedValue { .. }
            | K::Unsupported(_) => Vec::new(),
        }
    }

    /// Whether an aggregate of the query that it stands in is part of it.
    pub fn has_aggregate(&self) -> bool {
        fn found(expr: &mut Expr) -> bool {
            matches!(expr.kind, ExprKind::Aggregate(_)) || expr.children_mut().into_iter().any(found)
        }
        found(&mut self.clone())
    }

    /// The table that a column in it is named with, if one is.
    pub fn named_table(&self) -> Option<String> {
        fn found(expr: &mut Expr) -> Option<String> {
            match &expr.kind {
                ExprKind::Column { table, .. } => table.as_ref().map(|table| table.name.clone()),
                _ => expr.children_mut().into_iter().find_map(found),
            }
        }
        found(&mut self.clone())
    }

    /// Whether a subquery stands in it.
    pub fn has_subquery(&self) -> bool {
        fn found(expr: &mut Expr) -> bool {
            matches!(
                expr.kind,
                ExprKind::Subquery(_)
                    | ExprKind::Exists(_)
                    | ExprKind::InSubquery { .. }
                    | ExprKind::Quantified { .. }
            ) || expr.children_mut().into_iter().any(found)
        }
        match self.kind {
            // The usual case in VALUES, which must not cost a copy.
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Integer(_)
            | ExprKind::Decimal(_)
            | ExprKind::Float(_)
            | ExprKind::String { .. }
            | ExprKind::Param(_) => false,
            _ => found(&mut self.clone()),
        }
    }
}
