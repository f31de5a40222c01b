//! Result types of arithmetic. MySQL 8.4 Reference Manual, 14.6.1 "Arithmetic Operators", 14.24 "Precision Math".

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::expr::context::SqlMode;
use crate::expr::error::EvalResult;
use crate::expr::typing::{Typer, ValueClass, refuse_geometries};
use crate::expr::{ArithOp, Expr, ExprKind};
use crate::sql_type::{IntWidth, RealFormat, SqlType};
use crate::text::fixed_decimals;

/// Digits before and after the point that values of a numeric expression can have, and whether all are ≥ 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    pub int: u8,
    pub scale: u8,
    pub unsigned: bool,
}

impl Digits {
    /// Of an expression: literals count their own digits, others those of their type.
    pub fn of(expr: &Expr) -> Self {
        match expr.as_literal() {
            Some(Datum::Int(v)) => Self { int: digit_count(v.unsigned_abs()), scale: 0, unsigned: false },
            Some(Datum::UInt(v)) => Self { int: digit_count(*v), scale: 0, unsigned: true },
            _ => Self::of_type(&expr.ty),
        }
    }

    pub fn of_type(ty: &SqlType) -> Self {
        let (int, scale, unsigned) = match *ty {
            SqlType::Null => (0, 0, false),
            // A column of BOOL holds any TINYINT.
            SqlType::Bool => (3, 0, false),
            SqlType::Int { width, unsigned } => (int_digits(width, unsigned), 0, unsigned),
            SqlType::Year => (4, 0, true),
            SqlType::Enum(_) => (5, 0, true),
            SqlType::Set(_) => (20, 0, true),
            // As many digits as bits, as MySQL counts them.
            SqlType::Bit { len } => (len.min(20), 0, true),
            SqlType::Decimal { precision, scale, unsigned } => (precision - scale, scale, unsigned),
            SqlType::Date => (8, 0, false),
            SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => (14, fsp, false),
            SqlType::Time { fsp } => (7, fsp, false),
            _ => (Decimal::MAX_PRECISION - Decimal::MAX_SCALE, Decimal::MAX_SCALE, false),
        };
        Self { int, scale, unsigned }
    }

    pub fn precision(self) -> u8 {
        self.int + self.scale
    }

    /// The decimal type with these digits, cut to 65 digits at the cost of the integer part.
    pub fn decimal(self) -> SqlType {
        decimal(u32::from(self.int) + u32::from(self.scale), self.scale.into(), self.unsigned)
    }

    /// The digits that hold values of both.
    pub fn union(self, other: Self) -> Self {
        Self {
            int: self.int.max(other.int),
            scale: self.scale.max(other.scale),
            unsigned: self.unsigned && other.unsigned,
        }
    }
}

/// A decimal type with at most 65 digits, 30 of them after the point, and at least one.
pub(crate) fn decimal(precision: u32, scale: u32, unsigned: bool) -> SqlType {
    let scale = scale.min(Decimal::MAX_SCALE.into()) as u8;
    let precision = precision.clamp(u32::from(scale).max(1), Decimal::MAX_PRECISION.into()) as u8;
    SqlType::Decimal { precision, scale, unsigned }
}

fn digit_count(v: u64) -> u8 {
    v.checked_ilog10().unwrap_or(0) as u8 + 1
}

/// Decimal digits of the largest value.
pub(crate) fn int_digits(width: IntWidth, unsigned: bool) -> u8 {
    match (width, unsigned) {
        (IntWidth::W8, _) => 3,
        (IntWidth::W16, _) => 5,
        (IntWidth::W24, false) => 7,
        (IntWidth::W24, true) => 8,
        (IntWidth::W32, _) => 10,
        (IntWidth::W64, false) => 19,
        (IntWidth::W64, true) => 20,
    }
}

/// The type of an expression as a number: strings are doubles, dates numbers such as 20240229.
pub(crate) fn numeric_type(expr: &Expr) -> SqlType {
    match expr.ty {
        ty @ (SqlType::Bool | SqlType::Int { .. } | SqlType::Year | SqlType::Decimal { .. }) => ty,
        // The type of a parameter is not known yet.
        SqlType::Null if matches!(expr.kind, ExprKind::Param(_)) => SqlType::BIGINT,
        SqlType::Null => SqlType::DOUBLE,
        SqlType::Bit { .. } => SqlType::BIGINT_UNSIGNED,
        SqlType::Date => SqlType::BIGINT,
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } | SqlType::Time { fsp } => match fsp {
            0 => SqlType::BIGINT,
            _ => Digits::of_type(&expr.ty).decimal(),
        },
        _ => hybrid_number(expr).map_or(SqlType::DOUBLE, |number| number.ty),
    }
}

/// What a hexadecimal or bit literal is as a number.
pub(crate) fn hybrid_number(expr: &Expr) -> Option<Expr> {
    let Some(Datum::Bytes(bytes)) = expr.as_literal().filter(|_| expr.ty.is_bytes()) else { return None };
    let significant = bytes.iter().position(|b| *b != 0).map_or(&[][..], |first| &bytes[first..]);
    if significant.len() > 8 {
        return None;
    }
    let value = significant.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    Some(match (expr.ty, i64::try_from(value)) {
        (SqlType::Binary { .. }, Ok(value)) => Expr::int(value),
        _ => Expr::literal(Datum::UInt(value), SqlType::BIGINT_UNSIGNED),
    })
}

/// How many digits after the point values of a numeric type are shown with, if that does not depend on the value.
pub(crate) fn shown_decimals(ty: &SqlType) -> Option<u8> {
    match ty {
        SqlType::Bool | SqlType::Int { .. } | SqlType::Year => Some(0),
        SqlType::Decimal { scale, .. } => Some(*scale),
        _ => fixed_decimals(ty),
    }
}

/// A DOUBLE that is shown as values of a FLOAT or DOUBLE type are.
pub fn as_double(ty: &SqlType) -> SqlType {
    fixed_decimals(ty).map_or(SqlType::DOUBLE, |decimals| SqlType::Double(RealFormat::shown_with(decimals)))
}

impl Typer {
    /// `left op right`.
    pub fn arith(&self, op: ArithOp, left: Expr, right: Expr) -> EvalResult<Expr> {
        refuse_geometries(&[&left, &right], op.symbol())?;
        self.check_operands([&left, &right])?;
        let operand =
            |expr: Expr| if op == ArithOp::IntDiv { self.dividend(expr) } else { self.number(expr) };
        let (left, right) = (operand(left), operand(right));
        let (l, r) = (ValueClass::of(&left.ty), ValueClass::of(&right.ty));
        let double = l == ValueClass::Double || r == ValueClass::Double;
        let int = l == ValueClass::Int && r == ValueClass::Int;
        let ty = match op {
            ArithOp::IntDiv => {
                let unsigned = left.ty.is_unsigned() || right.ty.is_unsigned();
                SqlType::Int { width: IntWidth::W64, unsigned }
            }
            _ if double => self.real_type(op, &left.ty, &right.ty),
            ArithOp::Div => self.quotient_type(&left, &right),
            _ if int => self.int_type(op, &left, &right),
            _ => decimal_type(op, &left, &right),
        };
        // DIV works on decimals wherever an operand is not an integer.
        let operand = match (op, &ty) {
            (ArithOp::IntDiv, _) if int => ValueClass::Int,
            (ArithOp::IntDiv, _) => ValueClass::Decimal,
            (_, SqlType::Double(_)) => ValueClass::Double,
            (_, SqlType::Decimal { .. }) => ValueClass::Decimal,
            _ => ValueClass::Int,
        };
        let (left, right) = (self.to_number_class(left, operand), self.to_number_class(right, operand));
        let may_divide_by_zero = matches!(op, ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod);
        let nullable = left.nullable || right.nullable || may_divide_by_zero;
        Ok(Expr::new(ExprKind::Arith { op, left: Box::new(left), right: Box::new(right) }, ty, nullable))
    }

    /// An operand of DIV: texts are the exact numbers that they are.
    fn dividend(&self, expr: Expr) -> Expr {
        let is_text = expr.ty.is_string() || expr.ty.is_bytes();
        if !is_text || hybrid_number(&expr).is_some() {
            return self.number(expr);
        }
        let ty = Digits::of_type(&expr.ty).decimal();
        self.convert(expr, ty)
    }

    /// A hexadecimal or bit literal as the functions of one number take it; operators of two take it as an integer.
    pub(crate) fn hybrid_as_double(&self, expr: Expr) -> Expr {
        match hybrid_number(&expr) {
            Some(number) => self.convert(number, SqlType::DOUBLE),
            None => expr,
        }
    }

    /// Where CASE, IF or COALESCE choose among byte strings, a hexadecimal or bit literal that they choose is still a number.
    pub(super) fn hybrid_chosen(&self, expr: Expr) -> Expr {
        let is_hybrid = |expr: &Expr| hybrid_number(expr).is_some();
        let to_double = |expr: Expr| {
            let number = hybrid_number(&expr).unwrap_or(expr);
            self.convert(number, SqlType::DOUBLE)
        };
        let kind = match expr.kind {
            ExprKind::Case { branches, otherwise }
                if branches.iter().map(|(_, then)| then).chain(otherwise.as_deref()).any(is_hybrid) =>
            {
                let branches = branches.into_iter().map(|(when, then)| (when, to_double(then)));
                let otherwise = otherwise.map(|otherwise| Box::new(to_double(*otherwise)));
                ExprKind::Case { branches: branches.collect(), otherwise }
            }
            ExprKind::Coalesce(parts) if parts.iter().any(is_hybrid) => {
                ExprKind::Coalesce(parts.into_iter().map(to_double).collect())
            }
            kind => return Expr { kind, ..expr },
        };
        Expr::new(kind, SqlType::DOUBLE, expr.nullable)
    }

    /// `-expr`.
    pub fn negate(&self, expr: Expr) -> Expr {
        let expr = match expr.ty.is_temporal() {
            true => self.convert(expr, SqlType::DOUBLE),
            false => self.number(self.hybrid_as_double(expr)),
        };
        match expr.as_literal() {
            Some(Datum::Int(v)) if *v != i64::MIN => return Expr::literal(Datum::Int(-v), SqlType::BIGINT),
            Some(Datum::UInt(v)) if *v <= 1 << 63 => {
                return Expr::literal(Datum::Int((*v as i64).wrapping_neg()), SqlType::BIGINT);
            }
            // The magnitude of the least BIGINT and what is beyond are decimals.
            Some(Datum::Int(v)) => return decimal_literal(-i128::from(*v)),
            Some(Datum::UInt(v)) => return decimal_literal(-i128::from(*v)),
            _ => {}
        }
        let ty = match expr.ty {
            SqlType::Decimal { precision, scale, .. } => {
                SqlType::Decimal { precision, scale, unsigned: false }
            }
            SqlType::Float(_) | SqlType::Double(_) => as_double(&expr.ty),
            _ => SqlType::BIGINT,
        };
        let nullable = expr.nullable;
        Expr::new(ExprKind::Negate(Box::new(expr)), ty, nullable)
    }

    /// An operand of arithmetic, as a number.
    pub fn number(&self, expr: Expr) -> Expr {
        let ty = numeric_type(&expr);
        match (expr.ty, ty) {
            // The machine takes FLOATs where it takes DOUBLEs.
            (SqlType::Float(_) | SqlType::Double(_), _) => expr,
            (from, to) if from == to => expr,
            _ => self.convert(expr, ty),
        }
    }

    /// A number as an operand of an operation on integers, decimals or doubles.
    pub(crate) fn to_number_class(&self, expr: Expr, class: ValueClass) -> Expr {
        if ValueClass::of(&expr.ty) == class {
            return expr;
        }
        let ty = match class {
            ValueClass::Decimal => Digits::of(&expr).decimal(),
            ValueClass::Double => SqlType::DOUBLE,
            _ => SqlType::BIGINT,
        };
        self.convert(expr, ty)
    }

    /// Where each side has a fixed number of digits after the point, as FLOAT(M,D) has, the result is shown with as many as
    /// the side that has more; a quotient with `div_precision_increment` more than that.
    fn real_type(&self, op: ArithOp, left: &SqlType, right: &SqlType) -> SqlType {
        let (Some(l), Some(r)) = (shown_decimals(left), shown_decimals(right)) else {
            return SqlType::DOUBLE;
        };
        let more = if op == ArithOp::Div { self.div_precision_increment } else { 0 };
        SqlType::Double(RealFormat::shown_with(l.max(r).saturating_add(more)))
    }

    fn int_type(&self, op: ArithOp, left: &Expr, right: &Expr) -> SqlType {
        let unsigned = match op {
            ArithOp::Mod => left.ty.is_unsigned(),
            ArithOp::Sub if self.sql_mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION) => false,
            _ => left.ty.is_unsigned() || right.ty.is_unsigned(),
        };
        SqlType::Int { width: IntWidth::W64, unsigned }
    }

    /// `/` keeps the dividend's scale and adds `div_precision_increment` digits.
    fn quotient_type(&self, left: &Expr, right: &Expr) -> SqlType {
        let (l, r) = (Digits::of(left), Digits::of(right));
        let more = u32::from(self.div_precision_increment);
        decimal(
            u32::from(l.precision()) + u32::from(r.scale) + more,
            u32::from(l.scale) + more,
            l.unsigned && r.unsigned,
        )
    }
}

fn decimal_literal(value: i128) -> Expr {
    let precision = u32::from(digit_count(value.unsigned_abs() as u64));
    Expr::literal(Datum::Decimal(Decimal::new(value, 0)), decimal(precision, 0, false))
}

fn decimal_type(op: ArithOp, left: &Expr, right: &Expr) -> SqlType {
    let (l, r) = (Digits::of(left), Digits::of(right));
    // A difference can be negative even of unsigned decimals.
    let unsigned = l.unsigned && r.unsigned && op != ArithOp::Sub;
    match op {
        ArithOp::Mul => decimal(
            u32::from(l.precision()) + u32::from(r.precision()),
            u32::from(l.scale) + u32::from(r.scale),
            unsigned,
        ),
        ArithOp::Mod => {
            decimal(l.precision().max(r.precision()).into(), l.scale.max(r.scale).into(), l.unsigned)
        }
        _ => {
            let scale = u32::from(l.scale.max(r.scale));
            decimal(u32::from(l.int.max(r.int)) + 1 + scale, scale, unsigned)
        }
    }
}
