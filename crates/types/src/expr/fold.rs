//! Constant folding.
//!
//! [`Expr::fold`] evaluates what has one value for ever, when a plan is made. [`Expr::fold_for_statement`] evaluates also
//! parameters, NOW() and what else is constant within one statement: for plans that serve one statement only.
//! What raises an error or a warning is left as it is, so that it raises it when it is evaluated, and only then.

use crate::datum::{Datum, Value};
use crate::expr::context::EvalContext;
use crate::expr::program::eval::is_true;
use crate::expr::program::{NoRow, RowProgram};
use crate::expr::{Expr, ExprKind, Function};

impl Expr {
    /// Folds what is constant for ever.
    pub fn fold(self) -> Self {
        folded(self, &Expr::is_immutable, &|expr| evaluate(expr, &[], &EvalContext::new(0, 0))).0
    }

    /// Folds what is constant for one statement with these parameters.
    pub fn fold_for_statement(self, params: &[Datum<'_>], ctx: &EvalContext) -> Self {
        folded(self, &Expr::is_steady, &|expr| evaluate(expr, params, &ctx.quiet())).0
    }

    /// Replaces parameters by their values.
    pub fn bind_params(self, params: &[Datum<'_>]) -> Self {
        self.transform(&mut |expr| match expr.kind {
            ExprKind::Param(index) => Expr::literal(params[index].clone().into_owned(), expr.ty),
            _ => expr,
        })
    }
}

/// The value, unless it comes with an error or a warning.
fn evaluate(expr: &Expr, params: &[Datum<'_>], ctx: &EvalContext) -> Option<Value> {
    let program = RowProgram::compile(expr).ok()?;
    let value = program.eval(&NoRow, params, ctx).ok()?.into_owned();
    (ctx.warning_count() == 0).then_some(value)
}

/// The expression, folded from below, and whether it is constant: `stays` tells it of a part whose operands are.
fn folded(
    mut expr: Expr,
    stays: &dyn Fn(&Expr) -> bool,
    evaluate: &dyn Fn(&Expr) -> Option<Value>,
) -> (Expr, bool) {
    if matches!(expr.kind, ExprKind::Call(Function::Benchmark, _)) {
        // What a constant costs is what is asked for.
        return (expr, false);
    }
    let mut constant = true;
    expr.for_each_child_mut(&mut |child| {
        let taken = std::mem::replace(child, Expr::null());
        let (folded, is_constant) = folded(taken, stays, evaluate);
        *child = folded;
        constant &= is_constant;
    });
    constant &= stays(&expr);
    let expr = fold_node(expr, constant, evaluate);
    constant |= matches!(expr.kind, ExprKind::Literal(_));
    (expr, constant)
}

/// One step, its operands being folded already.
fn fold_node(expr: Expr, foldable: bool, evaluate: &dyn Fn(&Expr) -> Option<Value>) -> Expr {
    // An explicit collation is more than a value.
    if matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Collate(_)) {
        return expr;
    }
    if foldable && let Some(value) = evaluate(&expr) {
        let is_exact =
            matches!(expr.kind, ExprKind::Call(Function::ExactInteger | Function::ExactDecimal, _));
        let ty = match &value {
            Datum::Decimal(number) if is_exact => number.own_type(),
            _ => expr.ty,
        };
        return Expr { nullable: value.is_null(), ty, kind: ExprKind::Literal(value) };
    }
    match expr.kind {
        ExprKind::And(parts) => fold_junction(parts, true),
        ExprKind::Or(parts) => fold_junction(parts, false),
        ExprKind::Case { branches, otherwise } => fold_case(branches, otherwise, expr.ty, expr.nullable),
        kind => Expr { kind, ..expr },
    }
}

/// AND (`neutral` is true) and OR: drops what is neutral; what decides, alone is the result if nothing before it can fail.
fn fold_junction(parts: Vec<Expr>, neutral: bool) -> Expr {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part.as_literal().map(is_true) {
            Some(Some(truth)) if truth == neutral => {}
            Some(Some(_)) if kept.iter().all(|part: &Expr| !part.can_fail()) => return Expr::bool(!neutral),
            _ => kept.push(part),
        }
    }
    match (kept.len(), kept.first()) {
        (0, _) => Expr::bool(neutral),
        (1, Some(only)) if only.is_truth() => kept.swap_remove(0),
        _ => {
            let nullable = kept.iter().any(|part| part.nullable);
            Expr::truth(if neutral { ExprKind::And(kept) } else { ExprKind::Or(kept) }, nullable)
        }
    }
}

/// Drops branches that are never taken, and those after one that always is.
fn fold_case(
    branches: Vec<(Expr, Expr)>,
    mut otherwise: Option<Box<Expr>>,
    ty: crate::SqlType,
    nullable: bool,
) -> Expr {
    let mut kept = Vec::with_capacity(branches.len());
    for (when, then) in branches {
        match when.as_literal().map(is_true) {
            Some(Some(true)) => {
                otherwise = Some(Box::new(then));
                break;
            }
            Some(_) => {}
            None => kept.push((when, then)),
        }
    }
    match (kept.is_empty(), otherwise) {
        (true, Some(otherwise)) if otherwise.ty == ty => *otherwise,
        // A CASE without branches is none.
        (true, Some(otherwise)) => Expr::new(ExprKind::Convert(otherwise), ty, nullable),
        (true, None) => Expr::literal(Datum::Null, ty),
        (_, otherwise) => Expr::new(ExprKind::Case { branches: kept, otherwise }, ty, nullable),
    }
}
