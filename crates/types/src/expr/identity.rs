//! Equality and hashing of expressions by structure, for plan caches and for finding an expression of GROUP BY again in
//! SELECT. Doubles compare by their bits, decimals with their scale.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use crate::datum::Datum;
use crate::expr::{Expr, ExprKind};

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.ty == other.ty && self.nullable == other.nullable && self.kind == other.kind
    }
}

impl Eq for Expr {}

impl PartialEq for ExprKind {
    fn eq(&self, other: &Self) -> bool {
        if !same_head(self, other) {
            return false;
        }
        // Those that there are thousands of, compared with each other, need no lists.
        match (self, other) {
            (Self::Column(_) | Self::Param(_) | Self::Literal(_), _) => return true,
            (Self::Arith { left, right, .. }, Self::Arith { left: a, right: b, .. })
            | (Self::Compare { left, right, .. }, Self::Compare { left: a, right: b, .. })
            | (Self::Xor(left, right), Self::Xor(a, b)) => return right == b && left == a,
            (Self::Convert(inner), Self::Convert(other)) => return inner == other,
            (Self::Call(_, ours), Self::Call(_, theirs)) => return ours == theirs,
            _ => {}
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        self.for_each_child(&mut |operand| ours.push(operand));
        other.for_each_child(&mut |operand| theirs.push(operand));
        ours == theirs
    }
}

impl Eq for ExprKind {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ty.hash(state);
        discriminant(&self.kind).hash(state);
        match &self.kind {
            ExprKind::Column(index) | ExprKind::Param(index) => index.hash(state),
            ExprKind::Literal(value) => hash_value(value, state),
            ExprKind::Arith { op, .. } => op.hash(state),
            ExprKind::Compare { op, .. } => op.hash(state),
            ExprKind::Is { test, negated, .. } => (test, negated).hash(state),
            ExprKind::Between { negated, .. } | ExprKind::InList { negated, .. } => negated.hash(state),
            ExprKind::Like { escape, negated, .. } => (escape, negated).hash(state),
            ExprKind::Call(function, _) => function.hash(state),
            ExprKind::UnitCall { function, unit, .. } => (function, unit).hash(state),
            _ => {}
        }
        self.for_each_child(&mut |child| child.hash(state));
    }
}

/// Whether two kinds are equal but for their operands.
fn same_head(a: &ExprKind, b: &ExprKind) -> bool {
    match (a, b) {
        (ExprKind::Column(a), ExprKind::Column(b)) | (ExprKind::Param(a), ExprKind::Param(b)) => a == b,
        (ExprKind::Literal(a), ExprKind::Literal(b)) => same_value(a, b),
        (ExprKind::Arith { op: a, .. }, ExprKind::Arith { op: b, .. }) => a == b,
        (ExprKind::Compare { op: a, .. }, ExprKind::Compare { op: b, .. }) => a == b,
        (ExprKind::Is { test: a, negated: x, .. }, ExprKind::Is { test: b, negated: y, .. }) => {
            a == b && x == y
        }
        (ExprKind::Between { negated: a, .. }, ExprKind::Between { negated: b, .. })
        | (ExprKind::InList { negated: a, .. }, ExprKind::InList { negated: b, .. }) => a == b,
        (ExprKind::Like { escape: a, negated: x, .. }, ExprKind::Like { escape: b, negated: y, .. }) => {
            a == b && x == y
        }
        (ExprKind::Case { branches: a, otherwise: x }, ExprKind::Case { branches: b, otherwise: y }) => {
            a.len() == b.len() && x.is_some() == y.is_some()
        }
        (ExprKind::Call(a, _), ExprKind::Call(b, _)) => a == b,
        (
            ExprKind::UnitCall { function: a, unit: x, .. },
            ExprKind::UnitCall { function: b, unit: y, .. },
        ) => a == b && x == y,
        (a, b) => discriminant(a) == discriminant(b),
    }
}

/// Identity, not SQL equality: same variant, same bits.
pub(crate) fn same_value(a: &Datum<'_>, b: &Datum<'_>) -> bool {
    match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Int(a), Datum::Int(b))
        | (Datum::DateTime(a), Datum::DateTime(b))
        | (Datum::Time(a), Datum::Time(b)) => a == b,
        (Datum::UInt(a), Datum::UInt(b)) => a == b,
        (Datum::Float(a), Datum::Float(b)) => a.to_bits() == b.to_bits(),
        (Datum::Double(a), Datum::Double(b)) => a.to_bits() == b.to_bits(),
        (Datum::Decimal(a), Datum::Decimal(b)) => a.scale() == b.scale() && a.as_i256() == b.as_i256(),
        (Datum::Str(a), Datum::Str(b)) => a == b,
        (Datum::Bytes(a), Datum::Bytes(b)) => a == b,
        (Datum::Date(a), Datum::Date(b)) => a == b,
        _ => false,
    }
}

fn hash_value<H: Hasher>(value: &Datum<'_>, state: &mut H) {
    discriminant(value).hash(state);
    match value {
        Datum::Null => {}
        Datum::Int(v) | Datum::DateTime(v) | Datum::Time(v) => v.hash(state),
        Datum::UInt(v) => v.hash(state),
        Datum::Float(v) => v.to_bits().hash(state),
        Datum::Double(v) => v.to_bits().hash(state),
        Datum::Decimal(v) => (v.scale(), v.as_i256()).hash(state),
        Datum::Str(v) => v.hash(state),
        Datum::Bytes(v) => v.hash(state),
        Datum::Date(v) => v.hash(state),
    }
}
