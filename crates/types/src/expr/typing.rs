//! MySQL's type rules: from operands to a typed expression with every conversion written down.
//!
//! A [`Typer`] holds what the rules depend on in a session. Its methods build expressions; what they are given must
//! itself come from a `Typer` or be a column, parameter or literal. Errors are those that MySQL reports when it resolves a
//! statement: illegal mixes of collations, wrong numbers of arguments, too large precisions.

pub mod aggregate;
mod arith;
mod call;
mod cast;
mod coded;
pub mod collation;
mod compare;
mod dialect;
mod gather;
mod json;
mod moments;
pub(crate) mod results;
pub mod returns;
mod spatial;
mod variables;

pub use arith::as_double;
pub use cast::CastTarget;
pub use dialect::Dialect;
pub use json::OnJsonProblem;
pub use spatial::refuse_geometries;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::datum::Datum;
use crate::expr::context::SqlMode;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::{Expr, ExprKind, Function, IsTest};
use crate::sql_type::{Collation, SqlType};
use crate::temporal::Locale;
use gather::{Gather, gathered};

/// The session settings that types depend on.
#[derive(Clone, Debug)]
pub struct Typer {
    /// The collation of string literals and of strings made from numbers.
    pub connection_collation: Collation,
    /// Of literals that are said to be in utf8mb4, and no more: `default_collation_for_utf8mb4`.
    pub utf8mb4_collation: Collation,
    pub dialect: Dialect,
    pub div_precision_increment: u8,
    pub sql_mode: SqlMode,
    /// `lc_time_names`
    pub locale: &'static Locale,
    /// Columns that show literals and the like: other strings' collations win over theirs.
    pub coercible_columns: BTreeSet<usize>,
    /// Columns whose collation was given by COLLATE where it is compared.
    pub explicit_columns: BTreeSet<usize>,
    /// Columns that show integers which are written there: these have as many digits as they have.
    pub written_integers: BTreeMap<usize, Expr>,
    /// Columns of tables whose numbers have texts of their own, with the characters that these have at least: those of ZEROFILL, and
    /// DOUBLE.
    pub zero_filled: BTreeMap<usize, u8>,
    /// Parts of expressions that were copied.
    pub copied: Cell<usize>,
}

/// Parts of expressions that are written several times: CASE's operand once for each WHEN, NULLIF's first argument twice, and
/// so twice as often with each level of these.
const MOST_COPIED: usize = 1 << 17;

impl Default for Typer {
    fn default() -> Self {
        Self {
            connection_collation: Collation::DEFAULT,
            utf8mb4_collation: Collation::DEFAULT,
            dialect: Dialect::MySql,
            div_precision_increment: 4,
            sql_mode: SqlMode::DEFAULT,
            locale: Locale::english(),
            coercible_columns: BTreeSet::new(),
            explicit_columns: BTreeSet::new(),
            written_integers: BTreeMap::new(),
            zero_filled: BTreeMap::new(),
            copied: Cell::new(0),
        }
    }
}

/// How values of a type compare: operands of one class compare without conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueClass {
    Null,
    /// Signed and unsigned integers together.
    Int,
    Decimal,
    /// FLOAT and DOUBLE.
    Double,
    Text,
    Bytes,
    Date,
    DateTime,
    /// In UTC.
    Timestamp,
    Time,
    Json,
}

impl ValueClass {
    pub const fn of(ty: &SqlType) -> Self {
        match ty {
            SqlType::Null => Self::Null,
            SqlType::Bool | SqlType::Int { .. } | SqlType::Year => Self::Int,
            // Evaluated as the integers that they are: names and bytes are conversions.
            SqlType::Enum(_) | SqlType::Set(_) | SqlType::Bit { .. } => Self::Int,
            SqlType::Decimal { .. } => Self::Decimal,
            SqlType::Float(_) | SqlType::Double(_) => Self::Double,
            SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } => Self::Text,
            SqlType::Binary { .. }
            | SqlType::VarBinary { .. }
            | SqlType::Blob { .. }
            | SqlType::Geometry { .. } => Self::Bytes,
            SqlType::Date => Self::Date,
            SqlType::DateTime { .. } => Self::DateTime,
            SqlType::Timestamp { .. } => Self::Timestamp,
            SqlType::Time { .. } => Self::Time,
            SqlType::Json => Self::Json,
        }
    }
}

impl Typer {
    /// A number as what it is a text of: of a column, the text that this gives it, with its zeros.
    pub fn with_zeros(&self, expr: Expr) -> Expr {
        let ExprKind::Column(index) = expr.kind else { return expr };
        let Some(width) = self.zero_filled.get(&index) else { return expr };
        let width = Expr::int((*width).into());
        match self.call(Function::ZeroFilled, vec![expr.clone(), width]) {
            Ok(text) => text,
            Err(_) => expr,
        }
    }

    /// A string literal: `?` stands for what the connection's character set has not.
    pub fn string(&self, text: impl Into<String>) -> Expr {
        let text = self.connection_collation.info().charset.fitted(text.into().into());
        self.introduced(text, self.connection_collation)
    }

    /// A string literal with a character set of its own: `_latin1'…'`.
    pub fn introduced(&self, text: impl Into<String>, collation: Collation) -> Expr {
        let text = text.into();
        let len = text.chars().count() as u32;
        Expr::literal(Datum::Str(text.into()), SqlType::VarChar { len, collation })
    }

    /// A byte string literal: `_binary'…'`.
    pub fn bytes(&self, bytes: impl Into<Vec<u8>>) -> Expr {
        let literal = self.hybrid(bytes, false);
        let ty = literal.ty;
        // Hides the literal from where a hexadecimal one would count as a number.
        Expr::new(ExprKind::Convert(Box::new(literal)), ty, false)
    }

    /// `x'4D'` or (with `bits`) `b'1001'`: bytes, but a number where one is asked for. Bit literals are of a type of fixed
    /// length, as the numbers that they give are signed and those of hexadecimal ones are not.
    pub fn hybrid(&self, bytes: impl Into<Vec<u8>>, bits: bool) -> Expr {
        let bytes = bytes.into();
        let len = bytes.len() as u32;
        let ty = if bits { SqlType::Binary { len } } else { SqlType::VarBinary { len } };
        Expr::literal(Datum::Bytes(bytes.into()), ty)
    }

    pub fn and(&self, parts: Vec<Expr>) -> Expr {
        self.junction(parts, ExprKind::And, Gather::Unequal, |kind| match kind {
            ExprKind::And(parts) => Ok(parts),
            other => Err(other),
        })
    }

    pub fn or(&self, parts: Vec<Expr>) -> Expr {
        self.junction(parts, ExprKind::Or, Gather::Equal, |kind| match kind {
            ExprKind::Or(parts) => Ok(parts),
            other => Err(other),
        })
    }

    /// AND or OR of truth values, with nested ones of the same kind spliced in and comparisons with constants gathered.
    fn junction(
        &self,
        parts: Vec<Expr>,
        make: fn(Vec<Expr>) -> ExprKind,
        gather: Gather,
        take: fn(ExprKind) -> Result<Vec<Expr>, ExprKind>,
    ) -> Expr {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match take(part.kind) {
                Ok(inner) => flat.extend(inner),
                Err(kind) => flat.push(self.condition(Expr::new(kind, part.ty, part.nullable))),
            }
        }
        let mut flat = gathered(flat, gather);
        if flat.len() == 1 && flat[0].is_truth() {
            return flat.swap_remove(0);
        }
        let nullable = flat.iter().any(|part| part.nullable);
        Expr::truth(make(flat), nullable)
    }

    pub fn xor(&self, left: Expr, right: Expr) -> Expr {
        let (left, right) = (self.condition(left), self.condition(right));
        let nullable = left.nullable || right.nullable;
        Expr::truth(ExprKind::Xor(Box::new(left), Box::new(right)), nullable)
    }

    /// NOT; pushed into comparisons and tests, where that is the same.
    pub fn not(&self, expr: Expr) -> Expr {
        let Expr { kind, ty, nullable } = self.condition(expr);
        let kind = match kind {
            ExprKind::Not(inner) if inner.is_truth() => return *inner,
            ExprKind::Compare { op, left, right } if op.negated().is_some() => {
                let op = op.negated().expect("just tested");
                ExprKind::Compare { op, left, right }
            }
            ExprKind::Is { expr, test, negated } => ExprKind::Is { expr, test, negated: !negated },
            ExprKind::Between { expr, low, high, negated } => {
                ExprKind::Between { expr, low, high, negated: !negated }
            }
            ExprKind::InList { expr, list, negated } => ExprKind::InList { expr, list, negated: !negated },
            ExprKind::Like { expr, pattern, escape, negated } => {
                ExprKind::Like { expr, pattern, escape, negated: !negated }
            }
            kind => ExprKind::Not(Box::new(Expr::new(kind, ty, nullable))),
        };
        Expr::truth(kind, nullable)
    }

    /// IS [NOT] NULL / TRUE / FALSE / UNKNOWN.
    pub fn is(&self, expr: Expr, test: IsTest, negated: bool) -> Expr {
        let expr = if test == IsTest::Null { expr } else { self.condition(expr) };
        Expr::truth(ExprKind::Is { expr: Box::new(expr), test, negated }, false)
    }

    /// An operand that is written once more.
    fn copy(&self, expr: &Expr) -> EvalResult<Expr> {
        let mut parts = 0;
        expr.any(&mut |_| {
            parts += 1;
            false
        });
        self.copied.set(self.copied.get() + parts);
        if self.copied.get() > MOST_COPIED {
            return Err(EvalError::TooDeep("operands that stand for many"));
        }
        Ok(expr.clone())
    }

    /// CASE, with or without an operand.
    pub fn case(
        &self,
        operand: Option<Expr>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Expr>,
    ) -> EvalResult<Expr> {
        let (operand, branches) = match operand {
            Some(operand) => self.case_by_explicit(operand, branches)?,
            None => (None, branches),
        };
        if let Some(operand) = operand.as_ref().filter(|operand| operand.is_volatile()) {
            return self.once(operand, |value| self.case_of(Some(value), branches, otherwise));
        }
        self.case_of(operand, branches, otherwise)
    }

    /// What has one value for each row, although it stands in several places and would have another one in each.
    fn once(&self, expr: &Expr, within: impl FnOnce(Expr) -> EvalResult<Expr>) -> EvalResult<Expr> {
        let value = Expr::new(ExprKind::Call(Function::LetValue, Vec::new()), expr.ty, expr.nullable);
        let body = within(value)?;
        let (ty, nullable) = (body.ty, body.nullable);
        Ok(Expr::new(ExprKind::Call(Function::Let, vec![expr.clone(), body]), ty, nullable))
    }

    fn case_of(
        &self,
        operand: Option<Expr>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Expr>,
    ) -> EvalResult<Expr> {
        let mut conditions = Vec::with_capacity(branches.len());
        let mut results = Vec::with_capacity(branches.len() + 1);
        for (when, then) in branches {
            conditions.push(match &operand {
                Some(operand) => self.compare_case(self.copy(operand)?, when)?,
                // Where a document is asked whether it is 0, CASE and IF ask its number.
                None if when.ty == SqlType::Json => self.convert(when, SqlType::DOUBLE),
                None => self.condition(when),
            });
            results.push(then);
        }
        let has_else = otherwise.is_some();
        results.extend(otherwise);
        let mut results = self.unify(self.with_texts(results, "case")?, "case")?;
        let ty = results[0].ty;
        let otherwise = if has_else { results.pop().map(Box::new) } else { None };
        let nullable = results.iter().any(|r| r.nullable)
            || otherwise.as_ref().is_none_or(|otherwise| otherwise.nullable);
        let branches = conditions.into_iter().zip(results).collect();
        Ok(Expr::new(ExprKind::Case { branches, otherwise }, ty, nullable))
    }

    /// CASE's operand and what it is compared with, under the collation that one of them has by COLLATE.
    #[allow(clippy::type_complexity, reason = "the parts of a CASE")]
    fn case_by_explicit(
        &self,
        operand: Expr,
        branches: Vec<(Expr, Expr)>,
    ) -> EvalResult<(Option<Expr>, Vec<(Expr, Expr)>)> {
        let compared = || std::iter::once(&operand).chain(branches.iter().map(|(when, _)| when));
        let is_explicit =
            |expr: &Expr| expr.derivation(self).coercibility == collation::Coercibility::Explicit;
        if !compared().all(|expr| expr.ty.is_string()) || !compared().any(is_explicit) {
            return Ok((Some(operand), branches));
        }
        let to = collation::aggregate(compared(), self, "case", collation::Agreement::Compared)?.collation;
        let operand = self.under_collation(operand, to);
        let branches = branches.into_iter().map(|(when, then)| (self.under_collation(when, to), then));
        Ok((Some(operand), branches.collect()))
    }

    /// COALESCE; IFNULL with two.
    pub fn coalesce(&self, args: Vec<Expr>) -> EvalResult<Expr> {
        let args = self.unify(self.with_texts(self.bits_as_numbers(args), "coalesce")?, "coalesce")?;
        let ty = args[0].ty;
        let nullable = args.iter().all(|arg| arg.nullable);
        Ok(Expr::new(ExprKind::Coalesce(args), ty, nullable))
    }

    /// Numbers of columns among alternatives that are texts together, as what they are texts of.
    fn with_texts(&self, exprs: Vec<Expr>, operation: &str) -> EvalResult<Vec<Expr>> {
        let has_own = |expr: &Expr| matches!(expr.kind, ExprKind::Column(index) if self.zero_filled.contains_key(&index));
        if !exprs.iter().any(has_own) {
            return Ok(exprs);
        }
        let ty = self.common_type(&self.coded_alternatives(exprs.clone()), operation)?;
        Ok(match ty.is_string() || ty.is_bytes() {
            true => exprs.into_iter().map(|expr| self.with_zeros(expr)).collect(),
            false => exprs,
        })
    }

    /// Converts expressions to the type that CASE, UNION and their like give them together.
    pub fn unify(&self, exprs: Vec<Expr>, operation: &str) -> EvalResult<Vec<Expr>> {
        let exprs = self.coded_alternatives(exprs);
        self.check_alternatives(&exprs)?;
        let ty = self.common_type(&exprs, operation)?;
        Ok(exprs.into_iter().map(|expr| self.convert(expr, ty)).collect())
    }

    /// An operand of AND, OR, NOT, WHEN, WHERE, ON or HAVING: something that is true if it is not zero. Strings become
    /// doubles and dates numbers; numbers stay what they are.
    pub fn condition(&self, expr: Expr) -> Expr {
        match ValueClass::of(&expr.ty) {
            ValueClass::Null | ValueClass::Int | ValueClass::Decimal | ValueClass::Double => expr,
            ValueClass::Text | ValueClass::Bytes => self.convert(self.hybrid_chosen(expr), SqlType::DOUBLE),
            // Whether it is another document than 0.
            ValueClass::Json => {
                let nullable = expr.nullable;
                Expr::new(ExprKind::Call(Function::JsonIsTrue, vec![expr]), SqlType::BIGINT, nullable)
            }
            ValueClass::Date | ValueClass::DateTime | ValueClass::Timestamp | ValueClass::Time => {
                let ty = arith::numeric_type(&expr);
                self.convert(expr, ty)
            }
        }
    }

    /// A value that is assigned to a column of this type: hexadecimal and bit literals are numbers where numbers are kept.
    pub fn assigned(expr: Expr, to: &SqlType) -> Expr {
        let keeps_numbers = to.members().is_none()
            && !matches!(to, SqlType::Bit { .. })
            && matches!(ValueClass::of(to), ValueClass::Int | ValueClass::Decimal | ValueClass::Double);
        match keeps_numbers.then(|| arith::hybrid_number(&expr)).flatten() {
            Some(number) => number,
            None => expr,
        }
    }

    /// A value as a column of this type keeps it: an error in strict mode if it does not fit.
    pub fn stored(&self, expr: Expr, to: SqlType, column: &str) -> Expr {
        if fits(&expr.ty, &to) {
            return self.convert(expr, to);
        }
        let name = self.string(column);
        Expr::new(ExprKind::Call(Function::Stored, vec![expr, name]), to, true)
    }

    /// A column that shows a literal, in a character set that may lack some of it: that is the error that it is for the literal.
    pub(crate) fn recoded(&self, expr: &Expr, to: SqlType) -> Option<Expr> {
        let ExprKind::Column(index) = expr.kind else { return None };
        if !self.coercible_columns.contains(&index) || expr.ty.text_stays(&to) {
            return None;
        }
        let call = ExprKind::Call(Function::Recoded, vec![expr.clone()]);
        Some(Expr::new(call, to, expr.nullable))
    }

    /// A YEAR that is computed is no year where a date or time is asked for, but the number that it is.
    pub(crate) fn computed_year(&self, expr: Expr) -> Expr {
        match (expr.ty, &expr.kind) {
            (SqlType::Year, ExprKind::Call(..) | ExprKind::Cast(_)) => self.convert(expr, SqlType::BIGINT),
            _ => expr,
        }
    }

    /// Wraps an expression in an implicit conversion, if it needs one. Lengths, widths and scales alone need none
    /// unless values would look different.
    pub fn convert(&self, expr: Expr, to: SqlType) -> Expr {
        // NULL has no type of its own that a value could be brought to.
        if to == SqlType::Null {
            return expr;
        }
        if let Some(number) = arith::hybrid_number(&expr)
            && matches!(ValueClass::of(&to), ValueClass::Int | ValueClass::Decimal | ValueClass::Double)
        {
            let unsigned = number.ty.is_unsigned();
            let to = if to == SqlType::BIGINT && unsigned { SqlType::BIGINT_UNSIGNED } else { to };
            return self.convert(number, to);
        }
        let mut expr = match ValueClass::of(&to) {
            ValueClass::Int | ValueClass::Decimal | ValueClass::Double => self.moment_as_number(expr),
            _ => expr,
        };
        if to.is_temporal() {
            expr = self.computed_year(expr);
        }
        // A date or time is read from a name.
        if expr.ty.members().is_some() && to.is_temporal() {
            return self.convert(self.decoded(expr), to);
        }
        if !needs_conversion(&expr.ty, &to) {
            // A value of the narrower type is one of the wider type as it is. What has its meaning from its type keeps it.
            return match expr.kind {
                ExprKind::Column(_) | ExprKind::Param(_) | ExprKind::Cast(_) | ExprKind::Convert(_)
                    if expr.ty != to =>
                {
                    let nullable = expr.nullable;
                    Expr::new(ExprKind::Convert(Box::new(expr)), to, nullable)
                }
                kind => Expr { kind, ty: to, nullable: expr.nullable },
            };
        }
        if expr.is_null_literal() {
            return Expr::literal(Datum::Null, to);
        }
        if let Some(recoded) = self.recoded(&expr, to) {
            return recoded;
        }
        // Strings that are no dates become NULL.
        let can_fail = to.is_temporal() && (!expr.ty.is_temporal() || rounds_datetime(&expr.ty, &to));
        let nullable = expr.nullable || can_fail;
        Expr::new(ExprKind::Convert(Box::new(expr)), to, nullable)
    }
}

/// Whether every value of one type is one of the other.
fn fits(from: &SqlType, to: &SqlType) -> bool {
    match (*from, *to) {
        (SqlType::Null, _) => true,
        (SqlType::Int { width: a, unsigned: x }, SqlType::Int { width: b, unsigned: y }) => {
            x == y && a.bits() <= b.bits()
        }
        (SqlType::Bool, SqlType::Int { .. }) | (SqlType::Float(_), SqlType::Double(_)) => true,
        (SqlType::VarChar { len: a, .. }, SqlType::VarChar { len: b, .. }) => a <= b,
        (a, b) => a == b,
    }
}

/// Whether a `Datum` of type `from` has to change to be one of type `to`.
fn needs_conversion(from: &SqlType, to: &SqlType) -> bool {
    match (from, to) {
        (SqlType::Null, _) => false,
        (SqlType::VarChar { len: a, collation: x }, SqlType::VarChar { len: b, collation: y }) => {
            a > b || x != y
        }
        (a, b) => a != b,
    }
}

impl Expr {
    /// Whether the value is 1, 0 or NULL by construction.
    pub fn is_truth(&self) -> bool {
        matches!(
            self.kind,
            ExprKind::Compare { .. }
                | ExprKind::And(_)
                | ExprKind::Or(_)
                | ExprKind::Xor(..)
                | ExprKind::Not(_)
                | ExprKind::Is { .. }
                | ExprKind::Between { .. }
                | ExprKind::InList { .. }
                | ExprKind::Like { .. }
        )
    }
}

/// Whether a date and time loses digits of its fraction: rounding may lead beyond the year 9999.
pub(crate) fn rounds_datetime(from: &SqlType, to: &SqlType) -> bool {
    let digits = |ty: &SqlType| match *ty {
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => Some(fsp),
        _ => None,
    };
    digits(from).zip(digits(to)).is_some_and(|(from, to)| to < from)
}
