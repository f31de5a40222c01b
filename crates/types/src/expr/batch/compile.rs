//! From an `Expr` to batch nodes.

use std::collections::BTreeMap;

use crate::datum::Datum;
use crate::expr::batch::{BatchNode, BatchOp, RowStep};
use crate::expr::coerce::is_identity;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::function::{Function, Nulls};
use crate::expr::program::compare::Comparer;
use crate::expr::program::compile as rows;
use crate::expr::program::members::RowMembers;
use crate::expr::program::pattern::Pattern;
use crate::expr::typing::ValueClass;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::sql_type::SqlType;

type Names<'n> = &'n dyn Fn(usize) -> String;

fn boxed(expr: &Expr, names: Names<'_>) -> EvalResult<Box<BatchNode>> {
    compile(expr, names).map(Box::new)
}

fn list(exprs: &[Expr], names: Names<'_>) -> EvalResult<Box<[BatchNode]>> {
    exprs.iter().map(|expr| compile(expr, names)).collect()
}

pub(super) fn compile(expr: &Expr, names: Names<'_>) -> EvalResult<BatchNode> {
    let op = match &expr.kind {
        ExprKind::Column(index) => BatchOp::Column(*index),
        ExprKind::Param(_) => return Err(EvalError::NotSupported("unbound parameter in a batch".to_owned())),
        ExprKind::Literal(value) => BatchOp::Const(value.clone()),
        ExprKind::Arith { op, left, right } => BatchOp::Arith {
            op: *op,
            sides: Box::new([compile(left, names)?, compile(right, names)?]),
            rows: row_step(expr, names)?,
        },
        ExprKind::Compare { op, left, right } => BatchOp::Compare {
            op: *op,
            by: Comparer::of_all(&[left.ty, right.ty]),
            sides: Box::new([compile(left, names)?, compile(right, names)?]),
        },
        ExprKind::Between { expr, low, high, negated } => BatchOp::Between {
            by: Comparer::of_all(&[expr.ty, low.ty, high.ty]),
            parts: Box::new([compile(expr, names)?, compile(low, names)?, compile(high, names)?]),
            negated: *negated,
        },
        ExprKind::And(parts) => BatchOp::And(list(parts, names)?),
        ExprKind::Or(parts) if RowMembers::of(parts).is_some() => whole_by_rows(expr, names)?,
        ExprKind::Or(parts) => BatchOp::Or(list(parts, names)?),
        ExprKind::Not(inner) => BatchOp::Not(boxed(inner, names)?),
        ExprKind::Is { expr, test, negated } => {
            BatchOp::Is { inner: boxed(expr, names)?, test: *test, negated: *negated }
        }
        ExprKind::Like { expr: inner, pattern, escape, negated } => match pattern.as_literal() {
            Some(text @ (Datum::Str(_) | Datum::Bytes(_))) => BatchOp::Like {
                pattern: Pattern::new(text, *escape, inner.ty.collation()),
                inner: boxed(inner, names)?,
                negated: *negated,
            },
            _ => by_rows(expr, names)?,
        },
        ExprKind::Case { branches, otherwise } => BatchOp::Case {
            branches: branches
                .iter()
                .map(|(when, then)| Ok((compile(when, names)?, compile(then, names)?)))
                .collect::<EvalResult<_>>()?,
            otherwise: otherwise.as_ref().map(|otherwise| boxed(otherwise, names)).transpose()?,
        },
        // A later element must not fail where an earlier one is the value.
        ExprKind::InList { expr: tested, list, negated } if list.iter().skip(1).any(Expr::can_fail) => {
            match is_small(tested) && !tested.is_volatile() {
                true => return compile(&in_list_as_or(tested, list, *negated), names),
                false => whole_by_rows(expr, names)?,
            }
        }
        ExprKind::Coalesce(args) => BatchOp::Coalesce(list(args, names)?),
        ExprKind::Convert(inner) | ExprKind::Collate(inner) if same_array(inner, &expr.ty) => {
            BatchOp::Relabel(boxed(inner, names)?)
        }
        ExprKind::Convert(inner) if arrow_casts(&inner.ty, &expr.ty) => {
            BatchOp::ArrowCast(boxed(inner, names)?)
        }
        // What they evaluate is evaluated more than once, or stands for a value of the row.
        ExprKind::Call(Function::Benchmark | Function::Let, _) => whole_by_rows(expr, names)?,
        _ => by_rows(expr, names)?,
    };
    // Of its operands both are known: trees may be tall.
    let (mut columns, mut can_fail) = (Vec::new(), expr.fails_itself());
    if let BatchOp::Column(index) = op {
        columns.push(index);
    }
    op.for_each_operand(&mut |operand| {
        columns.extend_from_slice(&operand.columns);
        can_fail |= operand.can_fail;
    });
    columns.sort_unstable();
    columns.dedup();
    Ok(BatchNode { op, ty: expr.ty, can_fail, columns: columns.into() })
}

impl BatchOp {
    fn for_each_operand(&self, visit: &mut dyn FnMut(&BatchNode)) {
        match self {
            Self::Column(_) | Self::Const(_) => {}
            Self::Arith { sides, .. } | Self::Compare { sides, .. } => sides.iter().for_each(visit),
            Self::Between { parts, .. } => parts.iter().for_each(visit),
            Self::And(parts) | Self::Or(parts) | Self::Coalesce(parts) => parts.iter().for_each(visit),
            Self::Rows { args, .. } => args.iter().for_each(visit),
            Self::Not(inner) | Self::ArrowCast(inner) | Self::Relabel(inner) => visit(inner),
            Self::Is { inner, .. } | Self::Like { inner, .. } => visit(inner),
            Self::Case { branches, otherwise } => {
                for (when, then) in branches {
                    visit(when);
                    visit(then);
                }
                otherwise.iter().for_each(|otherwise| visit(otherwise));
            }
        }
    }
}

fn same_array(inner: &Expr, to: &SqlType) -> bool {
    is_identity(&inner.ty, to) && inner.ty.arrow_type() == to.arrow_type()
}

/// Widening, in which nothing can be lost or reported.
fn arrow_casts(from: &SqlType, to: &SqlType) -> bool {
    match (ValueClass::of(from), ValueClass::of(to)) {
        (ValueClass::Int, ValueClass::Int) => is_identity(from, to),
        (ValueClass::Int, ValueClass::Double) => {
            matches!(to, SqlType::Double(_)) && from.coded_max() != Some(u64::MAX)
        }
        (ValueClass::Date, ValueClass::DateTime) => true,
        // Not to a fixed number of decimals.
        (ValueClass::Double, ValueClass::Double) => {
            matches!(to, SqlType::Double(real) if real.digits.is_none())
        }
        _ => false,
    }
}

fn by_rows(expr: &Expr, names: Names<'_>) -> EvalResult<BatchOp> {
    let mut args = Vec::new();
    let mut failure = None;
    expr.for_each_child(&mut |child| match compile(child, names) {
        Ok(node) if !stays_inside(expr, child) => args.push(node),
        Ok(_) => {}
        Err(error) => failure = Some(error),
    });
    match failure {
        Some(error) => Err(error),
        None => {
            let strict = is_strict(&expr.kind);
            Ok(BatchOp::Rows { args: args.into(), rows: row_step(expr, names)?, strict })
        }
    }
}

/// What may stand once for each element of a list.
fn is_small(expr: &Expr) -> bool {
    const MOST_PARTS: usize = 16;
    let mut parts = 0;
    !expr.any(&mut |_| {
        parts += 1;
        parts > MOST_PARTS
    })
}

/// Row by row, with no operands but the columns.
fn whole_by_rows(expr: &Expr, names: Names<'_>) -> EvalResult<BatchOp> {
    let mut columns = BTreeMap::new();
    expr.any(&mut |part| {
        if let ExprKind::Column(index) = part.kind {
            columns.insert(index, part.clone());
        }
        false
    });
    let places: Vec<usize> = columns.keys().copied().collect();
    let place = |index: usize| places.binary_search(&index).unwrap_or(usize::MAX);
    let over = expr.clone().map_columns(&mut |index| place(index));
    let node = rows::compile(&over, &|index| names(places[index]))?;
    let types = columns.values().map(|column| column.ty).collect();
    let args = columns.values().map(|column| compile(column, names)).collect::<EvalResult<_>>()?;
    Ok(BatchOp::Rows { args, rows: RowStep { node, types, volatile: expr.is_volatile() }, strict: false })
}

fn is_strict(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::Call(function, _) => matches!(function.info().nulls, Nulls::Strict | Nulls::Partial),
        ExprKind::UnitCall { .. } => true,
        _ => false,
    }
}

/// IN, one comparison after the other.
fn in_list_as_or(expr: &Expr, list: &[Expr], negated: bool) -> Expr {
    let one = |item: &Expr| {
        let (left, right) = (Box::new(expr.clone()), Box::new(item.clone()));
        Expr::truth(ExprKind::Compare { op: CompareOp::Eq, left, right }, true)
    };
    let any = Expr::truth(ExprKind::Or(list.iter().map(one).collect()), true);
    if negated { Expr::truth(ExprKind::Not(Box::new(any)), true) } else { any }
}

/// Literals are compiled into the row-wise node, so that it can prepare for them; not a NULL that ends a strict call.
fn stays_inside(expr: &Expr, child: &Expr) -> bool {
    child.as_literal().is_some_and(|value| !(value.is_null() && is_strict(&expr.kind)))
}

/// The expression with other operands. Those that it has are not copied where trees may be tall.
fn with_operands(expr: &Expr, make: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
    let mut boxed = |operand: &Expr| Box::new(make(operand));
    let kind = match &expr.kind {
        ExprKind::Arith { op, left, right } => {
            ExprKind::Arith { op: *op, left: boxed(left), right: boxed(right) }
        }
        ExprKind::Compare { op, left, right } => {
            ExprKind::Compare { op: *op, left: boxed(left), right: boxed(right) }
        }
        ExprKind::Xor(left, right) => ExprKind::Xor(boxed(left), boxed(right)),
        ExprKind::Convert(inner) => ExprKind::Convert(boxed(inner)),
        ExprKind::Cast(inner) => ExprKind::Cast(boxed(inner)),
        ExprKind::Call(function, args) => ExprKind::Call(*function, args.iter().map(make).collect()),
        ExprKind::UnitCall { function, unit, args } => {
            ExprKind::UnitCall { function: *function, unit: *unit, args: args.iter().map(make).collect() }
        }
        _ => {
            let mut expr = expr.clone();
            expr.for_each_child_mut(&mut |child| *child = make(child));
            return expr;
        }
    };
    Expr::new(kind, expr.ty, expr.nullable)
}

/// The expression with its operands, but for literals, as columns 0, 1….
fn row_step(expr: &Expr, names: Names<'_>) -> EvalResult<RowStep> {
    let (mut types, mut texts) = (Vec::new(), Vec::new());
    let keep_literals = !matches!(expr.kind, ExprKind::Arith { .. });
    let shallow = with_operands(expr, &mut |child| {
        if keep_literals && stays_inside(expr, child) {
            return child.clone();
        }
        texts.push(rows::text(child, names));
        types.push(child.ty);
        Expr::column(types.len() - 1, child.ty, child.nullable)
    });
    let node = rows::compile(&shallow, &|index| texts[index].clone().into())?;
    Ok(RowStep { node, types: types.into(), volatile: shallow.is_volatile() })
}
