//! The query of an Apply with values for its outer columns.

use avocet_types::Value;
use avocet_types::expr::{EvalContext, Expr, ExprKind};

use super::{Node, Operator};
use crate::plan::ColumnId;
use crate::plan::walk::{column_of, replace};

impl Node {
    /// Puts values in the place of columns, everywhere in the tree.
    pub fn substitute(&mut self, value: &dyn Fn(ColumnId) -> Option<Expr>, context: &EvalContext) {
        self.for_each_expr_mut(&mut |expr| {
            let uses = |part: &Expr| column_of(part).is_some_and(|id| value(id).is_some());
            if !expr.any(&mut |part| uses(part)) {
                return;
            }
            let mut changed = std::mem::replace(expr, Expr::null());
            replace(&mut changed, &mut |part| column_of(part).and_then(value));
            *expr = changed.fold_for_statement(&[] as &[Value], context);
        });
        if let Operator::Apply(apply) = &mut self.operator {
            apply.outer.retain(|id| value(*id).is_none());
        }
        self.flatten_conditions();
        for input in self.inputs_mut() {
            input.substitute(value, context);
        }
    }

    /// What folding has made one condition of several is several again.
    fn flatten_conditions(&mut self) {
        let conditions = match &mut self.operator {
            Operator::Filter { conditions, .. } => conditions,
            Operator::Scan(scan) => &mut scan.predicates,
            Operator::Join(join) => &mut join.residual,
            _ => return,
        };
        if conditions.iter().any(|condition| matches!(condition.kind, ExprKind::And(_))) {
            *conditions = std::mem::take(conditions).into_iter().flat_map(Expr::into_conjuncts).collect();
        }
    }
}
