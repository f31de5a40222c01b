//! Constant folding.
//!
//! [`Expr::fold`] evaluates what has one value for ever, when a plan is made. [`Expr::fold_for_statement`] evaluates also
//! parameters, NOW() and what else is constant within one statement: for plans that serve one statement only.
//! What raises an error or a warning is left as it is, so that it raises it when it is evaluated, and only then.

use crate::datum::{Datum, Value};
use crate::expr::context::{EvalContext, SqlMode};
use crate::expr::identity::same_value;
use crate::expr::program::eval::is_true;
use crate::expr::program::{NoRow, RowProgram};
use crate::expr::{Expr, ExprKind, Function};
use crate::temporal::TimeZone;

impl Expr {
    /// Folds what is constant for ever.
    pub fn fold(self) -> Self {
        folded(self, &Expr::is_immutable, &evaluate_for_ever).0
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

/// The value, if sessions agree on it: texts may say moments (`2024-01-01 12:00:00+02:00`), and have more digits of a second than
/// there is room for.
fn evaluate_for_ever(expr: &Expr) -> Option<Value> {
    let value = evaluate(expr, &[], &EvalContext::new(0, 0))?;
    let mut reads_time = expr.ty.is_temporal() || matches!(expr.kind, ExprKind::UnitCall { .. });
    expr.for_each_child(&mut |operand| {
        reads_time |=
            operand.ty.is_temporal() || matches!(expr.kind, ExprKind::Call(..)) && is_short_text(operand);
    });
    if !reads_time {
        return Some(value);
    }
    let mut elsewhere = EvalContext::new(ANOTHER_TIME, 0);
    elsewhere.time_zone = TimeZone::parse("-11:30").ok()?;
    elsewhere.sql_mode = SqlMode::DEFAULT.with(SqlMode::TIME_TRUNCATE_FRACTIONAL);
    evaluate(expr, &[], &elsewhere).filter(|other| same_value(&value, other))
}

/// Microseconds since 1970, of another day.
const ANOTHER_TIME: i64 = 1_234_567_890_123_456;

/// Whether it is a text that may say a time.
fn is_short_text(expr: &Expr) -> bool {
    const LONGEST: usize = 64;
    match expr.as_literal() {
        Some(Datum::Str(text)) => text.len() <= LONGEST,
        Some(Datum::Bytes(bytes)) => bytes.len() <= LONGEST,
        _ => false,
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
