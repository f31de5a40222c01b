//! Looking at and rebuilding expression trees.

use crate::expr::function::Volatility;
use crate::expr::typing::rounds_datetime;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::sql_type::SqlType;

impl ExprKind {
    /// Calls `visit` with each direct operand, in order of evaluation.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match self {
            ExprKind::Column(_) | ExprKind::Param(_) | ExprKind::Literal(_) => {}
            ExprKind::Arith { left, right, .. }
            | ExprKind::Compare { left, right, .. }
            | ExprKind::Xor(left, right) => {
                visit(left);
                visit(right);
            }
            ExprKind::Negate(inner)
            | ExprKind::Not(inner)
            | ExprKind::Is { expr: inner, .. }
            | ExprKind::Cast(inner)
            | ExprKind::Convert(inner)
            | ExprKind::Collate(inner) => visit(inner),
            ExprKind::And(parts)
            | ExprKind::Or(parts)
            | ExprKind::Coalesce(parts)
            | ExprKind::Call(_, parts)
            | ExprKind::UnitCall { args: parts, .. } => parts.iter().for_each(visit),
            ExprKind::Between { expr, low, high, .. } => {
                visit(expr);
                visit(low);
                visit(high);
            }
            ExprKind::InList { expr, list, .. } => {
                visit(expr);
                list.iter().for_each(visit);
            }
            ExprKind::Like { expr, pattern, .. } => {
                visit(expr);
                visit(pattern);
            }
            ExprKind::Case { branches, otherwise } => {
                for (when, then) in branches {
                    visit(when);
                    visit(then);
                }
                otherwise.iter().for_each(|otherwise| visit(otherwise));
            }
        }
    }

    /// Calls `visit` with each direct operand, to be changed in place. Its type must stay the same.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            ExprKind::Column(_) | ExprKind::Param(_) | ExprKind::Literal(_) => {}
            ExprKind::Arith { left, right, .. }
            | ExprKind::Compare { left, right, .. }
            | ExprKind::Xor(left, right) => {
                visit(left);
                visit(right);
            }
            ExprKind::Negate(inner)
            | ExprKind::Not(inner)
            | ExprKind::Is { expr: inner, .. }
            | ExprKind::Cast(inner)
            | ExprKind::Convert(inner)
            | ExprKind::Collate(inner) => visit(inner),
            ExprKind::And(parts)
            | ExprKind::Or(parts)
            | ExprKind::Coalesce(parts)
            | ExprKind::Call(_, parts)
            | ExprKind::UnitCall { args: parts, .. } => parts.iter_mut().for_each(visit),
            ExprKind::Between { expr, low, high, .. } => {
                visit(expr);
                visit(low);
                visit(high);
            }
            ExprKind::InList { expr, list, .. } => {
                visit(expr);
                list.iter_mut().for_each(visit);
            }
            ExprKind::Like { expr, pattern, .. } => {
                visit(expr);
                visit(pattern);
            }
            ExprKind::Case { branches, otherwise } => {
                for (when, then) in branches {
                    visit(when);
                    visit(then);
                }
                otherwise.iter_mut().for_each(|otherwise| visit(otherwise));
            }
        }
    }
}

impl Expr {
    /// Calls `visit` with each direct operand, in order of evaluation.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        self.kind.for_each_child(visit);
    }

    /// Calls `visit` with each direct operand, to be changed in place. Its type must stay the same.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.kind.for_each_child_mut(visit);
    }

    /// Whether `test` holds for this expression or one below it.
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if test(self) {
            return true;
        }
        let mut found = false;
        self.for_each_child(&mut |child| found = found || child.any(test));
        found
    }

    /// The positions of the columns that it reads, ascending, each once.
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.any(&mut |expr| {
            if let ExprKind::Column(index) = expr.kind {
                columns.push(index);
            }
            false
        });
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Gives each column its new position.
    pub fn map_columns(mut self, map: &mut dyn FnMut(usize) -> usize) -> Self {
        self.map_columns_in_place(map);
        self
    }

    fn map_columns_in_place(&mut self, map: &mut dyn FnMut(usize) -> usize) {
        if let ExprKind::Column(index) = &mut self.kind {
            *index = map(*index);
        }
        self.for_each_child_mut(&mut |child| child.map_columns_in_place(map));
    }

    /// Rebuilds the tree from below: `change` sees each expression after its operands.
    pub fn transform(mut self, change: &mut dyn FnMut(Expr) -> Expr) -> Self {
        self.for_each_child_mut(&mut |child| {
            let taken = std::mem::replace(child, Expr::null());
            *child = taken.transform(change);
        });
        change(self)
    }

    /// Whether it has one value for a whole statement: no columns, nothing random. Parameters, NOW() and the like count.
    pub fn is_constant(&self) -> bool {
        !self.any(&mut |expr| !expr.is_steady())
    }

    /// As [`Self::is_constant`], whatever its operands are.
    pub(crate) fn is_steady(&self) -> bool {
        match &self.kind {
            ExprKind::Column(_) => false,
            ExprKind::Call(function, _) => function.volatility() != Volatility::Volatile,
            _ => true,
        }
    }

    /// Whether it has one value for ever, if its operands have: no column, no parameter, nothing of the session.
    pub(crate) fn is_immutable(&self) -> bool {
        match &self.kind {
            ExprKind::Column(_) | ExprKind::Param(_) => false,
            ExprKind::Call(function, _) => function.volatility() == Volatility::Immutable,
            // A time gets the statement's date, a timestamp the session's time zone.
            ExprKind::Convert(inner) | ExprKind::Cast(inner) => {
                use crate::expr::ValueClass as C;
                let (from, to) = (C::of(&inner.ty), C::of(&self.ty));
                from == to
                    || !(from == C::Timestamp || to == C::Timestamp || from == C::Time && to != C::Text)
            }
            _ => true,
        }
    }

    /// Whether it has one value for ever: no columns, no parameters, nothing of the session.
    pub fn is_immutable_constant(&self) -> bool {
        !self.any(&mut |expr| !expr.is_immutable())
    }

    /// Whether it is random: to be evaluated once for each row, and never twice.
    pub fn is_volatile(&self) -> bool {
        self.any(&mut |expr| match &expr.kind {
            ExprKind::Call(function, _) => function.volatility() == Volatility::Volatile,
            _ => false,
        })
    }

    /// Whether evaluating it can raise an error or a warning, or is costly or random: then it must not be evaluated for
    /// rows that do not need it.
    pub fn can_fail(&self) -> bool {
        self.any(&mut |expr| expr.fails_itself())
    }

    /// As [`Self::can_fail`], whatever its operands do.
    pub(crate) fn fails_itself(&self) -> bool {
        match &self.kind {
            ExprKind::Arith { .. }
            | ExprKind::Negate(_)
            | ExprKind::Cast(_)
            | ExprKind::Call(..)
            | ExprKind::UnitCall { .. } => true,
            ExprKind::Convert(inner) => {
                inner.ty.is_string()
                    || inner.ty.is_bytes()
                    // Its bytes may be no text.
                    || matches!(inner.ty, SqlType::Bit { .. }) && self.ty.is_string()
                    // It may be no number, or too much for a document.
                    || inner.ty == SqlType::Json
                    || self.ty == SqlType::Json
                    || self.ty.is_temporal() && !inner.ty.is_temporal()
                    || rounds_datetime(&inner.ty, &self.ty)
            }
            _ => false,
        }
    }

    /// Splits at the top-level ANDs.
    pub fn into_conjuncts(self) -> Vec<Expr> {
        match self.kind {
            ExprKind::And(parts) => parts.into_iter().flat_map(Expr::into_conjuncts).collect(),
            _ => vec![self],
        }
    }

    /// A comparison with the column on its left: `(column, op, other side)`. For index look-ups and zone maps.
    pub fn as_column_comparison(&self) -> Option<(usize, CompareOp, &Expr)> {
        let ExprKind::Compare { op, left, right } = &self.kind else {
            return None;
        };
        match (&left.kind, &right.kind) {
            (ExprKind::Column(column), _) if right.is_constant() => Some((*column, *op, right)),
            (_, ExprKind::Column(column)) if left.is_constant() => Some((*column, op.flipped(), left)),
            _ => None,
        }
    }
}
