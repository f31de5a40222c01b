//! Expressions that look into documents by a constant path of names: what they are, and what of them a scan can do.

use std::sync::Arc;

use avocet_types::expr::{CompareOp, Expr, ExprKind, Function, IsTest};
use avocet_types::json::shred::{Form, MOST_NAMES, PathTest, Target};
use avocet_types::json::{Leg, Path};
use avocet_types::{Collation, Datum, SqlType, Value};

use crate::plan::ColumnId;
use crate::plan::walk::column_of;

/// A path into a column of documents.
pub(super) struct Access {
    pub documents: ColumnId,
    pub names: Arc<[Box<str>]>,
}

impl Access {
    /// JSON_EXTRACT, and JSON_UNQUOTE of it, of a column that is among `seen`.
    pub fn of(expr: &Expr, seen: &[ColumnId]) -> Option<(Self, Form)> {
        match &expr.kind {
            ExprKind::Call(Function::JsonExtract, args) => match &args[..] {
                [documents, path] => Some((Self::new(documents, path, seen)?, Form::Document)),
                _ => None,
            },
            ExprKind::Call(Function::JsonUnquote, args) => match Self::of(args.first()?, seen)? {
                (access, Form::Document) => Some((access, Form::Text)),
                _ => None,
            },
            _ => None,
        }
    }

    fn new(documents: &Expr, path: &Expr, seen: &[ColumnId]) -> Option<Self> {
        let documents = column_of(documents).filter(|id| seen.contains(id))?;
        let Datum::Str(path) = path.as_literal()? else { return None };
        let legs = Path::parse(path).ok()?.legs;
        let name = |leg: Leg| match leg {
            Leg::Member(name) => Some(name.into_boxed_str()),
            _ => None,
        };
        let names: Arc<[Box<str>]> = legs.into_iter().map(name).collect::<Option<_>>()?;
        (1..=MOST_NAMES).contains(&names.len()).then_some(Self { documents, names })
    }
}

/// A conversion of a value at a path.
pub(super) struct Conversion {
    pub access: Access,
    pub target: Target,
    /// The same conversion of the value as a document.
    pub of: Box<dyn Fn(Expr) -> Expr>,
}

impl Conversion {
    pub fn of(expr: &Expr, seen: &[ColumnId]) -> Option<Self> {
        let (kind, ty) = (&expr.kind, expr.ty);
        match kind {
            ExprKind::Cast(inner) | ExprKind::Convert(inner) => {
                let target = target_of(&ty).filter(|target| *target != Target::String)?;
                let (access, form) = Access::of(inner, seen)?;
                let is_cast = matches!(kind, ExprKind::Cast(_));
                let of = move |document: Expr| {
                    let inner = Box::new(match form {
                        Form::Text => unquoted(document),
                        _ => document,
                    });
                    Expr::new(
                        if is_cast { ExprKind::Cast(inner) } else { ExprKind::Convert(inner) },
                        ty,
                        true,
                    )
                };
                Some(Self { access, target, of: Box::new(of) })
            }
            // A path that leads nowhere gives NULL, as the columns do.
            ExprKind::Call(Function::JsonValue, args) if args.get(2).is_some_and(is_zero) => {
                let target = target_of(&ty)?;
                let access = Access::new(&args[0], &args[1], seen)?;
                let path = Expr::literal(Datum::Str("$".into()), args[1].ty);
                let others = args[2..].to_vec();
                let of = move |document: Expr| {
                    let args = [document, path.clone()].into_iter().chain(others.iter().cloned()).collect();
                    Expr::new(ExprKind::Call(Function::JsonValue, args), ty, true)
                };
                Some(Self { access, target, of: Box::new(of) })
            }
            _ => None,
        }
    }
}

fn unquoted(document: Expr) -> Expr {
    Expr::new(ExprKind::Call(Function::JsonUnquote, vec![document]), SqlType::JSON_TEXT, true)
}

fn is_zero(expr: &Expr) -> bool {
    matches!(expr.as_literal(), Some(Datum::Int(0)))
}

fn target_of(ty: &SqlType) -> Option<Target> {
    Some(match *ty {
        SqlType::BIGINT => Target::Int,
        SqlType::DOUBLE => Target::Double,
        SqlType::Decimal { precision: precision @ ..=38, scale, unsigned: false } => {
            Target::Decimal { precision, scale }
        }
        // Strings of the target are no longer than JSON_VALUE's.
        SqlType::VarChar { len: 512.., .. } => Target::String,
        _ => return None,
    })
}

pub(super) fn is_null(expr: Expr) -> Expr {
    let kind = ExprKind::Is { expr: Box::new(expr), test: IsTest::Null, negated: false };
    Expr::truth(kind, false)
}

/// A condition of which a scan tests all, or what concerns values of the target.
pub(super) struct Tested {
    pub access: Access,
    pub tests: Vec<PathTest>,
    pub residual: Option<Residual>,
}

/// The condition for values that the tests say nothing of.
pub(super) struct Residual {
    pub target: Target,
    /// For the value as a document.
    pub condition: Box<dyn Fn(Expr) -> Expr>,
}

impl Tested {
    /// Comparisons with literals, and BETWEEN.
    pub fn of(condition: &Expr, seen: &[ColumnId]) -> Option<Self> {
        match &condition.kind {
            ExprKind::Compare { op, left, right } if *op != CompareOp::NullSafeEq => {
                match (left.as_literal(), right.as_literal()) {
                    (None, Some(_)) => Self::new(condition, left, &[(*op, right)], seen),
                    (Some(_), None) => Self::new(condition, right, &[(op.flipped(), left)], seen),
                    _ => None,
                }
            }
            ExprKind::Between { expr, low, high, negated: false } => {
                Self::new(condition, expr, &[(CompareOp::Ge, low), (CompareOp::Le, high)], seen)
            }
            _ => None,
        }
    }

    /// All of the comparisons of `value` with literals.
    fn new(condition: &Expr, value: &Expr, all: &[(CompareOp, &Expr)], seen: &[ColumnId]) -> Option<Self> {
        if let Some((access, form)) = Access::of(value, seen) {
            let test = |(op, constant): &(CompareOp, &Expr)| match (form, constant.as_literal()?) {
                (Form::Text, Datum::Str(text)) => {
                    let is_by_bytes = |expr: &Expr| expr.ty.collation() == Some(Collation::UTF8MB4_BIN);
                    (is_by_bytes(value) && is_by_bytes(constant))
                        .then(|| PathTest::Text(*op, (&**text).into()))
                }
                (Form::Document, Datum::Bytes(bytes)) if constant.ty == SqlType::Json => {
                    Some(PathTest::Document(*op, (&**bytes).into()))
                }
                _ => None,
            };
            let tests = all.iter().map(test).collect::<Option<_>>()?;
            return Some(Self { access, tests, residual: None });
        }
        let Conversion { access, target, of } = Conversion::of(value, seen)?;
        let test = |(op, constant): &(CompareOp, &Expr)| {
            Some(PathTest::Value(target, *op, constant_of(target, constant.as_literal()?)?))
        };
        let tests = all.iter().map(test).collect::<Option<_>>()?;
        let (condition, value) = (condition.clone(), value.clone());
        let condition = move |document: Expr| {
            let mut condition = condition.clone();
            condition.for_each_child_mut(&mut |child| {
                if *child == value {
                    *child = of(document.clone());
                }
            });
            condition
        };
        Some(Self { access, tests, residual: Some(Residual { target, condition: Box::new(condition) }) })
    }
}

/// A literal that values of the target compare with.
fn constant_of(target: Target, literal: &Value) -> Option<Value> {
    Some(match (target, literal) {
        (Target::Int, Datum::Int(v)) => Datum::Int(*v),
        (Target::Int, Datum::UInt(v)) => Datum::Int(i64::try_from(*v).ok()?),
        (Target::Double, Datum::Double(v)) => Datum::Double(*v),
        (Target::Decimal { .. }, Datum::Decimal(v)) => Datum::Decimal(v.clone()),
        _ => return None,
    })
}
