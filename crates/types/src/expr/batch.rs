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

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;

use crate::datum::{Datum, Value};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::program::compare::Comparer;
use crate::expr::program::pattern::Pattern;
use crate::expr::program::{Node, RowProgram};
use crate::expr::{ArithOp, CompareOp, Expr, ExprKind, IsTest};
use crate::sql_type::SqlType;

/// A compiled expression over columns.
#[derive(Debug)]
pub struct BatchProgram {
    root: BatchNode,
    /// What it makes of a row, strings or documents, may be larger than the row.
    makes_strings: bool,
    /// Gives other values when it is evaluated again.
    is_volatile: bool,
    /// How many rows [`Self::eval_in_parts`] evaluates at once, as it has turned out.
    part: AtomicUsize,
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
    made: &'b Made,
}

/// What an evaluation has done so far.
pub(crate) struct Made {
    /// Of strings, those in between too.
    bytes: Cell<usize>,
    most: usize,
    /// Values since it was last asked whether to go on.
    values: Cell<usize>,
}

/// Values that are evaluated before it is asked again whether to go on: about a millisecond.
const VALUES_BETWEEN_CHECKS: usize = 1 << 14;

impl Made {
    fn at_most(most: usize) -> Self {
        Self { bytes: Cell::new(0), most, values: Cell::new(0) }
    }

    /// So many values come next: ends if the statement is to.
    #[inline]
    fn go_on(&self, values: usize, ctx: &EvalContext) -> EvalResult<()> {
        self.values.set(self.values.get() + values);
        if self.values.get() < VALUES_BETWEEN_CHECKS {
            return Ok(());
        }
        self.values.set(0);
        ctx.check()
    }

    #[inline]
    fn add(&self, value: &Datum<'_>) -> EvalResult<()> {
        let len = match value {
            Datum::Str(text) => text.len(),
            Datum::Bytes(bytes) => bytes.len(),
            _ => return Ok(()),
        };
        self.bytes.set(self.bytes.get() + len);
        if self.bytes.get() <= self.most { Ok(()) } else { Err(EvalError::TooManyBytes) }
    }
}

/// Rows that are evaluated at once next are at most so many times as many as they were.
const PART_GROWTH: usize = 8;
/// A part is given up for a smaller one when it makes so many times what it should.
const PART_GIVEN_UP: usize = 4;

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
        let makes_strings = expr.any(&mut |part| {
            let is_operand = matches!(part.kind, ExprKind::Column(_) | ExprKind::Literal(_));
            (part.ty.is_string() || part.ty == SqlType::Json) && !is_operand
        });
        let root = compile::compile(expr, column_name)?;
        Ok(Self { root, makes_strings, is_volatile: expr.is_volatile(), part: AtomicUsize::new(1) })
    }

    /// The values for rows `0..rows` of the columns.
    pub fn eval(&self, columns: &[ArrayRef], rows: usize, ctx: &EvalContext) -> EvalResult<ArrayRef> {
        self.root.array(Rows { columns, len: rows, ctx, made: &Made::at_most(usize::MAX) })
    }

    /// As [`Self::eval`], in parts that make about `most` bytes of strings each, but of one row at least. `keeps` is told how many
    /// rows are done and what their values take, and says whether to go on; `None` if not.
    ///
    /// Parts grow as what was met allows. One that turns out to make much more is begun anew with fewer rows, and may then
    /// repeat warnings; what is random is never evaluated twice.
    pub fn eval_in_parts(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        ctx: &EvalContext,
        most: usize,
        keeps: &mut dyn FnMut(usize, usize) -> bool,
    ) -> EvalResult<Option<ArrayRef>> {
        if !self.makes_strings || rows <= 1 {
            let all = self.eval(columns, rows, ctx)?;
            return Ok(keeps(rows, string_bytes(&all)).then_some(all));
        }
        let mut parts: Vec<ArrayRef> = Vec::new();
        let (mut done, mut bytes) = (0, 0);
        while done < rows {
            let len = self.part.load(Ordering::Relaxed).clamp(1, rows - done);
            let columns: Vec<ArrayRef> = columns.iter().map(|column| column.slice(done, len)).collect();
            let bounded = len > 1 && !self.is_volatile;
            let made = Made::at_most(if bounded { most.saturating_mul(PART_GIVEN_UP) } else { usize::MAX });
            let part = match self.root.array(Rows { columns: &columns, len, ctx, made: &made }) {
                Err(EvalError::TooManyBytes) => {
                    self.part.store(len / PART_GROWTH, Ordering::Relaxed);
                    continue;
                }
                part => part?,
            };
            let fit = most / (made.bytes.get() / len).max(1);
            self.part.store(fit.clamp(1, len * PART_GROWTH), Ordering::Relaxed);
            done += len;
            bytes += string_bytes(&part);
            if !keeps(done, bytes) {
                return Ok(None);
            }
            parts.push(part);
        }
        if let [all] = &parts[..] {
            return Ok(Some(all.clone()));
        }
        let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
        arrow::compute::concat(&parts).map(Some).map_err(eval::kernel_error)
    }

    /// Which rows a condition is true for: neither false nor NULL. Without nulls, as a filter takes it.
    pub fn matches(&self, columns: &[ArrayRef], rows: usize, ctx: &EvalContext) -> EvalResult<BooleanArray> {
        let made = Made::at_most(usize::MAX);
        let truth = self.root.truth(Rows { columns, len: rows, ctx, made: &made })?;
        Ok(match truth.nulls() {
            None => truth,
            Some(nulls) => BooleanArray::new(truth.values() & nulls.inner(), None),
        })
    }
}

/// What the strings of an array take, if they are many bytes each.
fn string_bytes(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    }
}
