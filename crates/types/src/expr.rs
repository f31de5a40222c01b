//! Typed scalar expressions, and the one implementation of what they mean.
//!
//! ```text
//!  SQL syntax ──binder──▶ Typer ──▶ Expr ──┬─▶ RowProgram::eval   (point path: a row at a time)
//!             names       MySQL's          ├─▶ BatchProgram::eval (analytics: Arrow arrays)
//!             resolved    type rules       └─▶ fold, display, walk (planning, EXPLAIN)
//! ```
//!
//! The binder resolves names and hands operands to the [`Typer`], which applies MySQL's rules for result types,
//! comparison types and collations, and writes every implicit conversion down as a [`ExprKind::Convert`] node. What comes
//! out is explicit: nobody downstream has to know a promotion rule again.
//!
//! Invariants:
//! 1. `ty` and `nullable` are right: evaluating gives NULL (only if `nullable`) or the `Datum` variant that `ty` uses.
//! 2. Both sides of a comparison, and all alternatives of IN, BETWEEN, CASE and COALESCE, have the same value class
//!    (`ValueClass`), so they compare without conversion. Integers may differ in width and sign, decimals in scale,
//!    strings in length.
//! 3. TIMESTAMPs are in UTC only in columns, parameters and comparisons among themselves; every function sees DATETIMEs
//!    in the session's time zone.
//! 4. Subqueries, aggregates and windows never occur: the binder puts columns in their place.

mod assigned;
pub mod batch;
mod block_mode;
pub(crate) mod coerce;
pub mod context;
mod created;
mod display;
pub mod error;
mod fold;
pub(crate) mod func;
pub mod function;
mod identity;
pub mod program;
mod raises;
pub mod regexp;
mod seeded;
pub mod typing;
mod walk;

pub use crate::temporal::{TimeZone, Unit as IntervalUnit};
pub use assigned::AssignedVariables;
pub use batch::BatchProgram;
pub use block_mode::BlockMode;
pub use coerce::recode;
pub use context::{EvalContext, Host, SessionInfo, SqlMode, StatementDigest, Warning};
pub use error::{EvalError, EvalResult};
pub use func::interval::interval_of;
pub use func::units::shown_pico_time;
pub use function::{Function, Volatility};
pub use program::{RowProgram, RowSource};
pub use typing::{CastTarget, Dialect, OnJsonProblem, Typer, ValueClass, refuse_geometries};

use crate::datum::{Datum, Value};
use crate::sql_type::SqlType;

/// A scalar expression over the columns of one input row and the parameters of a prepared statement.
///
/// Equality and hash are by structure (not by value: `1` and `1.0` differ), as plan caches need them.
#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: SqlType,
    pub nullable: bool,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A column of the input row, by position.
    Column(usize),
    /// A parameter of a prepared statement, by position. Its type is that of the value given, so a plan is for one
    /// combination of parameter types.
    Param(usize),
    Literal(Value),
    Arith {
        op: ArithOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Negate(Box<Expr>),
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    /// IS [NOT] NULL / TRUE / FALSE / UNKNOWN; never NULL.
    Is {
        expr: Box<Expr>,
        test: IsTest,
        negated: bool,
    },
    Between {
        expr: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    InList {
        expr: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    /// `escape` is `None` where escaping is off (ESCAPE '', NO_BACKSLASH_ESCAPES).
    Like {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<char>,
        negated: bool,
    },
    /// CASE WHEN; the form with an operand, IF and NULLIF are written as this.
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// COALESCE and IFNULL.
    Coalesce(Vec<Expr>),
    /// An explicit CAST to the expression's type.
    Cast(Box<Expr>),
    /// An implicit conversion to the expression's type.
    Convert(Box<Expr>),
    /// COLLATE: the same value under the collation of the expression's type.
    Collate(Box<Expr>),
    Call(Function, Vec<Expr>),
    /// A function that takes an interval unit.
    UnitCall {
        function: UnitFunction,
        unit: IntervalUnit,
        args: Vec<Expr>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithOp {
    Add,
    Sub,
    Mul,
    /// `/`
    Div,
    /// DIV
    IntDiv,
    /// `%`, MOD
    Mod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    Eq,
    /// `<=>`
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsTest {
    Null,
    True,
    False,
    /// The same as `Null`, on a truth value.
    Unknown,
}

/// Functions that take an interval unit beside their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitFunction {
    /// `DATE_ADD(date, INTERVAL amount unit)`, `date + INTERVAL …`, ADDDATE; arguments: date, amount.
    DateAdd,
    /// `DATE_SUB(date, INTERVAL amount unit)`, `date - INTERVAL …`, SUBDATE; arguments: date, amount.
    DateSub,
    /// `EXTRACT(unit FROM date)`; argument: date.
    Extract,
    /// `TIMESTAMPADD(unit, amount, date)`; arguments: date, amount.
    TimestampAdd,
    /// `TIMESTAMPDIFF(unit, from, to)`; arguments: from, to.
    TimestampDiff,
}

impl CompareOp {
    /// The operator with its sides exchanged.
    pub const fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Eq | Self::NullSafeEq | Self::Ne => self,
        }
    }

    /// The operator that holds where this one does not (both are NULL together). `<=>` has none.
    pub const fn negated(self) -> Option<Self> {
        match self {
            Self::Eq => Some(Self::Ne),
            Self::Ne => Some(Self::Eq),
            Self::Lt => Some(Self::Ge),
            Self::Le => Some(Self::Gt),
            Self::Gt => Some(Self::Le),
            Self::Ge => Some(Self::Lt),
            Self::NullSafeEq => None,
        }
    }

    /// Whether the operator holds for operands in this order.
    #[inline]
    pub const fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq | Self::NullSafeEq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::Le => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Ge => ordering.is_ge(),
        }
    }
}

impl Expr {
    pub fn new(kind: ExprKind, ty: SqlType, nullable: bool) -> Self {
        Self { kind, ty, nullable }
    }

    pub fn column(index: usize, ty: SqlType, nullable: bool) -> Self {
        Self::new(ExprKind::Column(index), ty, nullable)
    }

    /// A parameter whose value will be of type `ty`, or NULL.
    pub fn param(index: usize, ty: SqlType) -> Self {
        Self::new(ExprKind::Param(index), ty, true)
    }

    /// A value of type `ty`.
    pub fn literal(value: Value, ty: SqlType) -> Self {
        let nullable = value.is_null();
        Self::new(ExprKind::Literal(value), ty, nullable)
    }

    pub fn null() -> Self {
        Self::literal(Datum::Null, SqlType::Null)
    }

    pub fn int(value: i64) -> Self {
        Self::literal(Datum::Int(value), SqlType::BIGINT)
    }

    pub fn bool(value: bool) -> Self {
        Self::int(value.into())
    }

    /// A result that is 1, 0 or NULL.
    pub fn truth(kind: ExprKind, nullable: bool) -> Self {
        Self::new(kind, SqlType::BIGINT, nullable)
    }

    pub fn as_literal(&self) -> Option<&Value> {
        match &self.kind {
            ExprKind::Literal(value) => Some(value),
            // A user variable, whose collation alone is not a literal's.
            ExprKind::Cast(inner) if inner.ty == self.ty && self.ty.is_string() => inner.as_literal(),
            _ => None,
        }
    }

    pub fn is_null_literal(&self) -> bool {
        self.as_literal().is_some_and(Datum::is_null)
    }
}
