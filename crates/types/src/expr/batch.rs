//! Expressions made ready to be evaluated on Arrow arrays.
//!
//! A [`BatchProgram`] has a fast kernel for what analytics is made of: comparing, logic, arithmetic, CASE, LIKE. All else is
//! evaluated value by value with the row-wise node of the same expression over the arrays of its operands, so there is
//! one definition of what an expression means. A kernel that meets an overflow gives up, and the row-wise node then
//! reports it (or finds that a wider type holds the result).
//!
//! Conditions are `BooleanArray`s inside; a condition used as a value is an `Int64Array`.
//!
//! Invariants:
//! 1. Operands that can raise an error or a warning are evaluated only for the rows that need them: of AND and OR behind the
//!    first, of CASE and COALESCE all but the first. Those rows are gathered, evaluated and scattered back.
//! 2. Arrays have the Arrow type of their expression's `SqlType`.

mod compile;
mod eval;
mod kernels;

use arrow::array::{Array as _, ArrayRef, BooleanArray};

use crate::datum::Value;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::program::compare::Comparer;
use crate::expr::program::pattern::Pattern;
use crate::expr::program::{Node, RowProgram};
use crate::expr::{ArithOp, CompareOp, Expr, IsTest};
use crate::sql_type::SqlType;

/// A compiled expression over columns.
#[derive(Debug)]
pub struct BatchProgram {
    root: BatchNode,
}

#[derive(Debug)]
pub(crate) struct BatchNode {
    op: BatchOp,
    ty: SqlType,
    /// May raise an error or a warning.
    can_fail: bool,
    /// The columns that it reads.
    columns: Box<[usize]>,
}

#[derive(Debug)]
pub(crate) enum BatchOp {
    Column(usize),
    Const(Value),
    /// `rows` is the same on two columns, for what the kernels leave.
    Arith {
        op: ArithOp,
        sides: Box<[BatchNode; 2]>,
        rows: RowStep,
    },
    Compare {
        op: CompareOp,
        by: Comparer,
        sides: Box<[BatchNode; 2]>,
    },
    Between {
        by: Comparer,
        parts: Box<[BatchNode; 3]>,
        negated: bool,
    },
    And(Box<[BatchNode]>),
    Or(Box<[BatchNode]>),
    Not(Box<BatchNode>),
    Is {
        inner: Box<BatchNode>,
        test: IsTest,
        negated: bool,
    },
    Like {
        inner: Box<BatchNode>,
        pattern: Pattern,
        negated: bool,
    },
    Case {
        branches: Box<[(BatchNode, BatchNode)]>,
        otherwise: Option<Box<BatchNode>>,
    },
    Coalesce(Box<[BatchNode]>),
    /// A conversion that Arrow's cast makes in the same way.
    ArrowCast(Box<BatchNode>),
    /// The same array under another name for its type.
    Relabel(Box<BatchNode>),
    /// `strict`: operands behind a NULL are not evaluated.
    Rows {
        args: Box<[BatchNode]>,
        rows: RowStep,
        strict: bool,
    },
}

/// A row-wise node whose columns are the operands.
#[derive(Debug)]
pub(crate) struct RowStep {
    node: Node,
    types: Box<[SqlType]>,
    /// Gives another value for each row even where all operands are constant.
    volatile: bool,
}

/// The rows that an evaluation is for.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'b> {
    columns: &'b [ArrayRef],
    len: usize,
    ctx: &'b EvalContext,
}

/// An operand: values, or one value for all rows.
#[derive(Clone, Debug)]
pub(crate) enum Vector {
    Array(ArrayRef),
    Const(Value),
}

impl BatchProgram {
    /// The expression must have no parameters: see `Expr::bind_params` and `Expr::fold_for_statement`.
    pub fn compile(expr: &Expr) -> EvalResult<Self> {
        Self::compile_named(expr, &|index| format!("#{index}"))
    }

    /// `column_name` gives the names that error texts use.
    pub fn compile_named(expr: &Expr, column_name: &dyn Fn(usize) -> String) -> EvalResult<Self> {
        // Checks what only compiling finds, such as regular expressions in branches that no row takes.
        RowProgram::compile_named(expr, column_name)?;
        Ok(Self { root: compile::compile(expr, column_name)? })
    }

    /// The values for rows `0..rows` of the columns.
    pub fn eval(&self, columns: &[ArrayRef], rows: usize, ctx: &EvalContext) -> EvalResult<ArrayRef> {
        self.root.array(Rows { columns, len: rows, ctx })
    }

    /// Which rows a condition is true for: neither false nor NULL. Without nulls, as a filter takes it.
    pub fn matches(&self, columns: &[ArrayRef], rows: usize, ctx: &EvalContext) -> EvalResult<BooleanArray> {
        let truth = self.root.truth(Rows { columns, len: rows, ctx })?;
        Ok(match truth.nulls() {
            None => truth,
            Some(nulls) => BooleanArray::new(truth.values() & nulls.inner(), None),
        })
    }
}
