//! ENUM, SET and BIT: types whose values are integers that stand for strings.
//!
//! As an operand of what takes numbers they are the integers that they are. Where a string is asked for, ENUM and SET are their
//! members' names under their collation, and BIT is its bytes; that is written down as a conversion. Where both would do, MySQL
//! decides by the other operands:
//!
//! | beside | ENUM, SET | BIT |
//! |---|---|---|
//! | numbers | the integer | the integer |
//! | strings, dates | the name | the integer |
//! | the same type | the integer, in comparisons | the integer |
//!
//! A comparison of an ENUM or SET with a constant string is one of integers: the string is looked up among the members, once.

use crate::datum::Datum;
use crate::expr::typing::aggregate::{bytes_type, string_type, text_len};
use crate::expr::typing::collation::Agreement;
use crate::expr::typing::{Typer, ValueClass, collation};
use crate::expr::{Expr, ExprKind, Function};
use crate::members::MAX_SET;
use crate::sql_type::{Collation, SqlType};

/// The type of a coded type's values as strings.
pub(crate) fn decoded_type(ty: &SqlType) -> Option<SqlType> {
    let len = text_len(ty);
    Some(match ty.members().map(|members| members.collation()) {
        Some(Collation::BINARY) => bytes_type(len * 4),
        Some(collation) => string_type(len, collation),
        None if ty.is_coded() => bytes_type(len),
        None => return None,
    })
}

impl Typer {
    /// ENUM and SET as their names, BIT as its bytes; others as they are.
    pub fn decoded(&self, expr: Expr) -> Expr {
        match decoded_type(&expr.ty) {
            Some(ty) => self.convert(expr, ty),
            None => expr,
        }
    }

    /// ENUM and SET as their names; others as they are.
    pub fn with_names(&self, expr: Expr) -> Expr {
        if expr.ty.members().is_some() { self.decoded(expr) } else { expr }
    }

    /// Operands that are to be compared: ENUM and SET stay integers beside numbers and among their own type.
    pub(super) fn coded_operands(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let mut coded = exprs.iter().filter(|expr| expr.ty.members().is_some()).map(|expr| expr.ty);
        let Some(first) = coded.next() else { return exprs };
        let is_other = |expr: &&Expr| expr.ty.members().is_none() && expr.ty != SqlType::Null;
        let mut others = exprs.iter().filter(is_other).map(|expr| ValueClass::of(&expr.ty)).peekable();
        let stays = match others.peek() {
            Some(_) => others
                .all(|class| matches!(class, ValueClass::Int | ValueClass::Decimal | ValueClass::Double)),
            None => coded.all(|ty| ty == first),
        };
        if stays { exprs } else { exprs.into_iter().map(|expr| self.with_names(expr)).collect() }
    }

    /// Operands of which one is to be the greater: ENUM and SET among themselves are in the order of their names, not of their
    /// definition.
    pub(super) fn ordered_operands(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let is_coded = |expr: &Expr| expr.ty.members().is_some() || expr.ty == SqlType::Null;
        match exprs.iter().all(is_coded) {
            true => exprs.into_iter().map(|expr| self.with_names(expr)).collect(),
            false => exprs,
        }
    }

    /// Constant strings beside one ENUM or SET, as the numbers that they are equal to. As they are where the comparison is made
    /// under another collation, or by more than equality with one value.
    pub(super) fn constants_as_numbers(&self, exprs: Vec<Expr>, operation: &str) -> Vec<Expr> {
        let mut coded = exprs.iter().filter(|expr| expr.ty.members().is_some());
        let (Some(one), None) = (coded.next(), coded.next()) else { return exprs };
        let ty = one.ty;
        let Some(members) = ty.members() else { return exprs };
        let is_text = |expr: &Expr| ValueClass::of(&expr.ty) == ValueClass::Text && expr.is_constant();
        let unambiguous = match ty {
            SqlType::Set(_) => members.count() < MAX_SET,
            // The error value is the empty string too.
            _ => members.number("").is_none(),
        };
        if !unambiguous || one.is_constant() || !exprs.iter().any(is_text) {
            return exprs;
        }
        let texts = exprs.iter().filter(|expr| is_text(expr)).cloned();
        let together: Vec<Expr> = texts.chain(std::iter::once(self.decoded(one.clone()))).collect();
        let agreed = collation::aggregate(&together, self, operation, Agreement::Compared);
        if agreed.is_ok_and(|agreed| agreed.collation != members.collation()) {
            return exprs;
        }
        exprs.into_iter().map(|expr| if is_text(&expr) { number_equal_to(expr, ty) } else { expr }).collect()
    }

    /// Alternatives of one result: of several, ENUM and SET are strings, and so is BIT beside strings.
    pub(super) fn coded_alternatives(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let mut known = exprs.iter().filter(|expr| expr.ty != SqlType::Null);
        let is_one = known.next().is_some() && known.next().is_none();
        if is_one || !exprs.iter().any(|expr| expr.ty.is_coded()) {
            return exprs;
        }
        let is_text = |expr: &Expr| {
            let class = ValueClass::of(&expr.ty);
            matches!(class, ValueClass::Text | ValueClass::Bytes) || expr.ty.members().is_some()
        };
        match exprs.iter().any(is_text) {
            true => exprs.into_iter().map(|expr| self.decoded(expr)).collect(),
            false => exprs,
        }
    }

    /// BITs that a function chooses between, and shows as numbers.
    pub(super) fn bits_as_numbers(&self, exprs: Vec<Expr>) -> Vec<Expr> {
        let is_bits = |expr: &Expr| matches!(expr.ty, SqlType::Bit { .. } | SqlType::Null);
        if !exprs.iter().all(is_bits) || exprs.iter().all(|expr| expr.ty == SqlType::Null) {
            return exprs;
        }
        exprs.into_iter().map(|expr| self.convert(expr, SqlType::BIGINT_UNSIGNED)).collect()
    }
}

/// What of an ENUM or SET a string is equal to.
fn number_equal_to(text: Expr, ty: SqlType) -> Expr {
    let nullable = text.nullable;
    let of_type = Expr::literal(Datum::UInt(0), ty);
    let call = ExprKind::Call(Function::MemberNumber, vec![text, of_type]);
    Expr::new(call, SqlType::BIGINT_UNSIGNED, nullable).fold()
}
