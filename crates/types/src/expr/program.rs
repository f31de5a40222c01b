//! Expressions made ready to be evaluated a row at a time: the point path, and the one definition of every function that
//! the vector-wise path falls back to.
//!
//! A [`RowProgram`] is a tree of [`Node`]s in which everything that can be decided before the first row is: operand
//! classes, result types, comparison rules, constant patterns. Conditions and signed integers are evaluated without
//! making a `Datum`; nothing allocates for numbers or for comparing strings.

pub(crate) mod arith;
pub(crate) mod compare;
pub(crate) mod compile;
pub(crate) mod eval;
pub(crate) mod members;
pub(crate) mod pattern;

use std::cmp::Ordering;

use crate::datum::{Datum, Value};
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::program::compare::Comparer;
use crate::expr::program::members::{Members, RowMembers};
use crate::expr::program::pattern::Pattern;
use crate::expr::{ArithOp, CompareOp, Expr, Function, IntervalUnit, IsTest, UnitFunction};
use crate::row::RowRef;
use crate::sql_type::SqlType;

/// Where the columns of an expression come from.
pub trait RowSource<'a> {
    fn datum(&self, column: usize) -> Datum<'a>;

    /// A column that holds signed integers.
    #[inline]
    fn int(&self, column: usize) -> Option<i64> {
        match self.datum(column) {
            Datum::Int(v) => Some(v),
            _ => None,
        }
    }

    #[inline]
    fn is_null(&self, column: usize) -> bool {
        self.datum(column).is_null()
    }
}

impl<'a> RowSource<'a> for RowRef<'a> {
    #[inline]
    fn datum(&self, column: usize) -> Datum<'a> {
        self.get(column)
    }

    #[inline]
    fn is_null(&self, column: usize) -> bool {
        RowRef::is_null(self, column)
    }
}

/// A row of values.
impl<'a> RowSource<'a> for &'a [Datum<'a>] {
    #[inline]
    fn datum(&self, column: usize) -> Datum<'a> {
        reborrow(&self[column])
    }

    #[inline]
    fn int(&self, column: usize) -> Option<i64> {
        match self[column] {
            Datum::Int(v) => Some(v),
            _ => None,
        }
    }
}

/// No columns at all.
pub struct NoRow;

impl<'a> RowSource<'a> for NoRow {
    fn datum(&self, column: usize) -> Datum<'a> {
        unreachable!("column {column} of an expression without columns")
    }
}

/// The same value, borrowing the bytes that the other one owns.
#[inline]
pub fn reborrow<'a>(value: &'a Datum<'_>) -> Datum<'a> {
    match value {
        Datum::Null => Datum::Null,
        Datum::Int(v) => Datum::Int(*v),
        Datum::UInt(v) => Datum::UInt(*v),
        Datum::Float(v) => Datum::Float(*v),
        Datum::Double(v) => Datum::Double(*v),
        Datum::Decimal(v) => Datum::Decimal(v.clone()),
        Datum::Str(v) => Datum::str(v),
        Datum::Bytes(v) => Datum::bytes(v),
        Datum::Date(v) => Datum::Date(*v),
        Datum::DateTime(v) => Datum::DateTime(*v),
        Datum::Time(v) => Datum::Time(*v),
    }
}

/// A compiled expression.
#[derive(Debug)]
pub struct RowProgram {
    root: Node,
    ty: SqlType,
    /// What it reads of a row, ascending.
    columns: Box<[usize]>,
}

/// What one evaluation works with.
pub(crate) struct Env<'e, 'a, R> {
    pub row: &'e R,
    pub params: &'a [Datum<'a>],
    pub ctx: &'e EvalContext,
    /// What [`Node::LetValue`] is, within a [`Node::Let`].
    pub value: Option<&'e Datum<'a>>,
}

/// One step of a program.
#[derive(Debug)]
pub(crate) enum Node {
    Column(usize),
    Param(usize),
    Const(Value),
    /// On integers; `signed` says that both operands and the result are signed.
    IntArith {
        op: ArithOp,
        signed: bool,
        unsigned_result: bool,
        sides: Box<[Node; 2]>,
        text: Box<str>,
    },
    DecimalArith {
        op: ArithOp,
        scale: u8,
        sides: Box<[Node; 2]>,
        text: Box<str>,
    },
    DoubleArith {
        op: ArithOp,
        sides: Box<[Node; 2]>,
        text: Box<str>,
    },
    Negate {
        inner: Box<Node>,
        text: Box<str>,
    },
    /// Both sides are signed integers.
    CompareInt {
        op: CompareOp,
        sides: Box<[Node; 2]>,
    },
    Compare {
        op: CompareOp,
        by: Comparer,
        sides: Box<[Node; 2]>,
    },
    And(Box<[Node]>),
    Or(Box<[Node]>),
    Xor(Box<[Node; 2]>),
    Not(Box<Node>),
    Is {
        inner: Box<Node>,
        test: IsTest,
        negated: bool,
    },
    Between {
        by: Comparer,
        parts: Box<[Node; 3]>,
        negated: bool,
    },
    /// An integer among constants, sorted.
    InInts {
        inner: Box<Node>,
        list: Box<[i64]>,
        has_null: bool,
        negated: bool,
    },
    /// Any value among many constants.
    InMembers {
        inner: Box<Node>,
        members: Box<Members>,
        has_null: bool,
        negated: bool,
    },
    /// A row among many rows of constants.
    InRows {
        row: Box<[Node]>,
        members: Box<RowMembers>,
    },
    InList {
        by: Comparer,
        inner: Box<Node>,
        list: Box<[Node]>,
        negated: bool,
    },
    /// `pattern` is compiled beforehand where it is constant.
    Like {
        inner: Box<Node>,
        pattern: LikePattern,
        negated: bool,
    },
    Case {
        branches: Box<[(Node, Node)]>,
        otherwise: Option<Box<Node>>,
    },
    Coalesce(Box<[Node]>),
    Convert {
        inner: Box<Node>,
        from: SqlType,
        to: SqlType,
    },
    /// A constant text in another character set, which must have all its characters.
    Recode {
        inner: Box<Node>,
        from: SqlType,
        to: SqlType,
    },
    Cast {
        inner: Box<Node>,
        from: SqlType,
        to: SqlType,
    },
    /// Of what is beyond the range of FLOAT, an error.
    CastFloat {
        inner: Box<Node>,
        from: SqlType,
        to: SqlType,
        text: Box<str>,
    },
    Call(Box<CallNode>),
    UnitCall(Box<UnitCallNode>),
    /// Evaluates `value` once, for all places where `body` has it.
    Let {
        value: Box<Node>,
        body: Box<Node>,
    },
    LetValue,
    /// Evaluates so many times, and forgets what comes out.
    Benchmark {
        count: Box<Node>,
        expr: Box<Node>,
    },
}

#[derive(Debug)]
pub(crate) enum LikePattern {
    Const(Pattern),
    Varying { pattern: Box<Node>, escape: Option<char>, collation: Option<crate::sql_type::Collation> },
}

/// Computes a function of one row's arguments, which it may take out of the slice.
pub(crate) type RowFn =
    for<'x, 'a, 'c> fn(&'x mut [Datum<'a>], &'c CallInfo, &'c EvalContext) -> EvalResult<Datum<'a>>;

#[derive(Debug)]
pub(crate) struct CallNode {
    pub function: Function,
    pub run: RowFn,
    /// A NULL argument makes the result NULL without a call.
    pub strict: bool,
    pub args: Box<[Node]>,
    pub info: CallInfo,
}

#[derive(Debug)]
pub(crate) struct UnitCallNode {
    pub function: UnitFunction,
    pub unit: IntervalUnit,
    pub args: Box<[Node]>,
    pub info: CallInfo,
}

/// What a function knows about its call beside the values.
#[derive(Debug)]
pub struct CallInfo {
    pub ty: SqlType,
    pub arg_types: Box<[SqlType]>,
    /// The call as SQL, for errors.
    pub text: Box<str>,
    /// What was worked out once because an argument is constant.
    pub prepared: Prepared,
}

/// Work that a constant argument allows to be done once.
#[derive(Debug)]
pub enum Prepared {
    Nothing,
    /// RAND of a constant seed: one generator for all rows.
    Seed,
    Regex(Box<crate::expr::regexp::Matcher>),
    Xpath(Box<crate::xml::xpath::Xpath>),
    /// Of the arguments of a JSON function, those that are constant paths.
    Paths(Box<[Option<crate::json::Path>]>),
}

impl CallInfo {
    pub(crate) fn is_constant_seed(&self) -> bool {
        matches!(self.prepared, Prepared::Seed)
    }
}

impl RowProgram {
    /// Columns appear in error texts as `#0`, `#1`….
    pub fn compile(expr: &Expr) -> EvalResult<Self> {
        Self::compile_named(expr, &|index| format!("#{index}"))
    }

    /// `column_name` gives the names that error texts use.
    pub fn compile_named(expr: &Expr, column_name: &dyn Fn(usize) -> String) -> EvalResult<Self> {
        let root = compile::compile(expr, column_name)?;
        Ok(Self { root, ty: expr.ty, columns: expr.columns().into() })
    }

    /// The columns that it reads of a row, ascending.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The column whose values it gives as they are.
    pub fn as_column(&self) -> Option<usize> {
        if let Node::Column(index) = self.root { Some(index) } else { None }
    }

    /// The type of the values that it gives.
    pub fn ty(&self) -> &SqlType {
        &self.ty
    }

    /// Evaluates for one row. Strings in the result may borrow from the row, the parameters or the program.
    #[inline]
    pub fn eval<'a, R: RowSource<'a>>(
        &'a self,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
    ) -> EvalResult<Datum<'a>> {
        self.root.eval(&Env { row, params, ctx, value: None }).map_err(|error| error.with_params(params))
    }

    /// Whether a condition is true for one row: not false and not NULL.
    #[inline]
    pub fn matches<'a, R: RowSource<'a>>(
        &'a self,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
    ) -> EvalResult<bool> {
        let env = Env { row, params, ctx, value: None };
        let truth = self.root.truth(&env).map_err(|error| error.with_params(params))?;
        Ok(truth == Some(true))
    }

    /// The value of an expression without columns.
    pub fn eval_const<'a>(&'a self, params: &'a [Datum<'a>], ctx: &EvalContext) -> EvalResult<Datum<'a>> {
        self.eval(&NoRow, params, ctx)
    }
}

/// `op` on an ordering, where there is one.
#[inline]
pub(crate) fn decide(op: CompareOp, ordering: Option<Ordering>) -> Option<bool> {
    ordering.map(|ordering| op.holds(ordering))
}
