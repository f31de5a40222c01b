//! Evaluating batch nodes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Int64Array, UInt32Array, new_null_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::boolean;
use arrow::compute::{filter, take};
use arrow::datatypes::DataType;

use crate::arrow_map::{ColumnBuilder, datum_at};
use crate::datum::{Datum, Value};
use crate::expr::IsTest;
use crate::expr::batch::{BatchNode, BatchOp, RowStep, Rows, Vector, kernels};
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::program::eval::is_true;
use crate::expr::program::{Env, RowSource, reborrow};
use crate::sql_type::SqlType;

/// Arrow's kernels fail only on mistakes of their caller.
pub(super) fn kernel_error(error: arrow::error::ArrowError) -> EvalError {
    EvalError::NotSupported(format!("an operation on arrays ({error})"))
}

/// A row of operands.
struct OperandRow<'v> {
    operands: &'v [Vector],
    types: &'v [SqlType],
    row: usize,
}

impl<'v> RowSource<'v> for OperandRow<'v> {
    #[inline]
    fn datum(&self, column: usize) -> Datum<'v> {
        match &self.operands[column] {
            Vector::Const(value) => reborrow(value),
            Vector::Array(array) => datum_at(&**array, self.row, &self.types[column]),
        }
    }
}

impl Vector {
    pub(super) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Const(value) => value.is_null(),
            Self::Array(array) => array.is_null(row),
        }
    }

    /// As an array of so many values.
    pub(super) fn into_array(self, ty: &SqlType, len: usize) -> ArrayRef {
        match self {
            Self::Array(array) => array,
            Self::Const(Datum::Null) => new_null_array(&ty.arrow_type(), len),
            Self::Const(value) => {
                let one = one_value(&value, ty);
                let zeros = UInt32Array::from(vec![0; len]);
                take(&one, &zeros, None).unwrap_or(one)
            }
        }
    }
}

/// An array with one value.
pub(super) fn one_value(value: &Value, ty: &SqlType) -> ArrayRef {
    let mut builder = ColumnBuilder::new(ty, 1);
    builder.append(value);
    builder.finish()
}

impl BatchNode {
    pub(super) fn array(&self, rows: Rows<'_>) -> EvalResult<ArrayRef> {
        Ok(self.vector(rows)?.into_array(&self.ty, rows.len))
    }

    pub(super) fn vector(&self, rows: Rows<'_>) -> EvalResult<Vector> {
        match &self.op {
            BatchOp::Column(index) => Ok(Vector::Array(rows.columns[*index].clone())),
            BatchOp::Const(value) => Ok(Vector::Const(value.clone())),
            BatchOp::Arith { op, sides, rows: step } => {
                let operands = [sides[0].vector(rows)?, sides[1].vector(rows)?];
                let types = [sides[0].ty, sides[1].ty];
                match kernels::arith(*op, &operands, &types, &self.ty, rows.len) {
                    Some(array) => Ok(Vector::Array(array)),
                    None => step.run(&operands, &self.ty, rows),
                }
            }
            BatchOp::Relabel(inner) => inner.vector(rows),
            BatchOp::ArrowCast(inner) => {
                let array = inner.array(rows)?;
                arrow::compute::cast(&array, &self.ty.arrow_type()).map(Vector::Array).map_err(kernel_error)
            }
            BatchOp::Rows { args, rows: step, strict } => {
                let operands = operands(args, *strict, rows)?;
                step.run(&operands, &self.ty, rows)
            }
            BatchOp::Case { branches, otherwise } => self.case(branches, otherwise.as_deref(), rows),
            BatchOp::Coalesce(args) => self.coalesce(args, rows),
            _ => {
                let truth = self.truth(rows)?;
                let values = truth.values().iter().map(i64::from).collect::<Vec<_>>();
                Ok(Vector::Array(Arc::new(Int64Array::new(values.into(), truth.nulls().cloned()))))
            }
        }
    }

    /// The values as conditions.
    pub(super) fn truth(&self, rows: Rows<'_>) -> EvalResult<BooleanArray> {
        match &self.op {
            BatchOp::Compare { op, by, sides } => {
                let operands = [sides[0].vector(rows)?, sides[1].vector(rows)?];
                kernels::compare(*op, by, &operands, &[sides[0].ty, sides[1].ty], rows.len)
            }
            BatchOp::Between { by, parts, negated } => {
                use crate::expr::CompareOp;
                let [value, low, high] =
                    [parts[0].vector(rows)?, parts[1].vector(rows)?, parts[2].vector(rows)?];
                let at_least = kernels::compare(
                    CompareOp::Ge,
                    by,
                    &[value.clone(), low],
                    &[parts[0].ty, parts[1].ty],
                    rows.len,
                )?;
                let at_most = kernels::compare(
                    CompareOp::Le,
                    by,
                    &[value, high],
                    &[parts[0].ty, parts[2].ty],
                    rows.len,
                )?;
                let inside = boolean::and_kleene(&at_least, &at_most).map_err(kernel_error)?;
                negate_if(*negated, inside)
            }
            BatchOp::And(parts) => junction(parts, false, rows),
            BatchOp::Or(parts) => junction(parts, true, rows),
            BatchOp::Not(inner) => negate_if(true, inner.truth(rows)?),
            BatchOp::Is { inner, test, negated } => {
                let found = match test {
                    IsTest::Null => {
                        let operand = inner.vector(rows)?;
                        BooleanArray::from_iter((0..rows.len).map(|row| Some(operand.is_null(row))))
                    }
                    IsTest::Unknown => boolean::is_null(&inner.truth(rows)?).map_err(kernel_error)?,
                    IsTest::True => with_nulls_as(false, &inner.truth(rows)?),
                    IsTest::False => with_nulls_as(false, &negate_if(true, inner.truth(rows)?)?),
                };
                negate_if(*negated, found)
            }
            BatchOp::Like { inner, pattern, negated } => {
                let operand = inner.vector(rows)?;
                let row = |row| pattern.matches_datum(&operand_datum(&operand, row, &inner.ty), rows.ctx);
                negate_if(*negated, (0..rows.len).map(row).collect::<EvalResult<_>>()?)
            }
            BatchOp::Relabel(inner) => inner.truth(rows),
            BatchOp::Const(value) => Ok(constant_truth(is_true(value), rows.len)),
            _ => self.vector(rows)?.truth(&self.ty, rows.len),
        }
    }

    /// Evaluates for the chosen rows only; the others are NULL.
    fn vector_for(&self, chosen: &BooleanArray, rows: Rows<'_>) -> EvalResult<Vector> {
        let count = chosen.true_count();
        if count == rows.len || !self.can_fail {
            return self.vector(rows);
        }
        if count == 0 {
            return Ok(Vector::Const(Datum::Null));
        }
        let mut columns = rows.columns.to_vec();
        for &index in &*self.columns {
            columns[index] = filter(&columns[index], chosen).map_err(kernel_error)?;
        }
        let result = self.vector(Rows { columns: &columns, len: count, ..rows })?;
        let Vector::Array(array) = result else { return Ok(result) };
        let mut next = 0;
        let places: UInt32Array = chosen
            .values()
            .iter()
            .map(|chosen| {
                let place = chosen.then_some(next);
                next += u32::from(chosen);
                place
            })
            .collect();
        take(&array, &places, None).map(Vector::Array).map_err(kernel_error)
    }

    /// As `vector_for`, of a condition.
    fn truth_for(&self, chosen: &BooleanArray, rows: Rows<'_>) -> EvalResult<BooleanArray> {
        match self.can_fail && chosen.true_count() < rows.len {
            true => self.vector_for(chosen, rows)?.truth(&self.ty, rows.len),
            false => self.truth(rows),
        }
    }

    fn case(
        &self,
        branches: &[(BatchNode, BatchNode)],
        otherwise: Option<&BatchNode>,
        rows: Rows<'_>,
    ) -> EvalResult<Vector> {
        let mut open = constant_truth(Some(true), rows.len);
        let mut picks = Picks::new(rows.len);
        for (when, then) in branches {
            rows.made.go_on(rows.len, rows.ctx)?;
            let condition = when.truth_for(&open, rows)?;
            let taken = boolean::and(&open, &with_nulls_as(false, &condition)).map_err(kernel_error)?;
            picks.add(&taken, then.vector_for(&taken, rows)?.into_array(&self.ty, rows.len));
            open = boolean::and_not(&open, &taken).map_err(kernel_error)?;
            if !open.has_true() {
                break;
            }
        }
        if let Some(otherwise) = otherwise {
            picks.add(&open, otherwise.vector_for(&open, rows)?.into_array(&self.ty, rows.len));
        }
        picks.finish(&self.ty)
    }

    fn coalesce(&self, args: &[BatchNode], rows: Rows<'_>) -> EvalResult<Vector> {
        let mut open = constant_truth(Some(true), rows.len);
        let mut picks = Picks::new(rows.len);
        for arg in args {
            rows.made.go_on(rows.len, rows.ctx)?;
            let array = arg.vector_for(&open, rows)?.into_array(&self.ty, rows.len);
            let there = boolean::is_not_null(&array).map_err(kernel_error)?;
            let taken = boolean::and(&open, &there).map_err(kernel_error)?;
            picks.add(&taken, array);
            open = boolean::and_not(&open, &taken).map_err(kernel_error)?;
            if open.true_count() == 0 {
                break;
            }
        }
        picks.finish(&self.ty)
    }
}

/// Operands of a row-wise step. A strict one has no use for what stands behind a NULL.
fn operands(args: &[BatchNode], strict: bool, rows: Rows<'_>) -> EvalResult<Vec<Vector>> {
    let mut done: Vec<Vector> = Vec::with_capacity(args.len());
    // Rows without a NULL so far.
    let mut open = BooleanBuffer::new_set(rows.len);
    for arg in args {
        rows.made.go_on(rows.len, rows.ctx)?;
        let operand = match strict && arg.can_fail {
            true => arg.vector_for(&BooleanArray::new(open.clone(), None), rows)?,
            false => arg.vector(rows)?,
        };
        match &operand {
            Vector::Const(value) if value.is_null() => open = BooleanBuffer::new_unset(rows.len),
            Vector::Array(array) => {
                if let Some(nulls) = array.logical_nulls().filter(|_| strict) {
                    open = &open & nulls.inner();
                }
            }
            Vector::Const(_) => {}
        }
        done.push(operand);
    }
    Ok(done)
}

/// From which array each row takes its value.
struct Picks {
    arrays: Vec<ArrayRef>,
    from: Vec<(usize, usize)>,
}

impl Picks {
    fn new(len: usize) -> Self {
        // Array 0 will be a NULL, for rows that nothing is picked for.
        Self { arrays: Vec::new(), from: vec![(0, 0); len] }
    }

    fn add(&mut self, taken: &BooleanArray, array: ArrayRef) {
        self.arrays.push(array);
        let source = self.arrays.len();
        for row in taken.values().set_indices() {
            self.from[row] = (source, row);
        }
    }

    fn finish(self, ty: &SqlType) -> EvalResult<Vector> {
        let null = new_null_array(&ty.arrow_type(), 1);
        let arrays: Vec<&dyn Array> =
            std::iter::once(&*null).chain(self.arrays.iter().map(|array| &**array)).collect();
        arrow::compute::interleave(&arrays, &self.from).map(Vector::Array).map_err(kernel_error)
    }
}

/// AND (`decisive` is false) and OR (true): a part that can fail is evaluated where nothing before it decides.
fn junction(parts: &[BatchNode], decisive: bool, rows: Rows<'_>) -> EvalResult<BooleanArray> {
    let mut result = constant_truth(Some(!decisive), rows.len);
    for part in parts {
        rows.made.go_on(rows.len, rows.ctx)?;
        let undecided = if decisive { negate_if(true, result.clone())? } else { result.clone() };
        let truth = part.truth_for(&with_nulls_as(true, &undecided), rows)?;
        result = match decisive {
            false => boolean::and_kleene(&result, &truth),
            true => boolean::or_kleene(&result, &truth),
        }
        .map_err(kernel_error)?;
    }
    Ok(result)
}

fn constant_truth(truth: Option<bool>, len: usize) -> BooleanArray {
    match truth {
        Some(truth) => {
            let mut bits = BooleanBufferBuilder::new(len);
            bits.append_n(len, truth);
            BooleanArray::new(bits.finish(), None)
        }
        None => BooleanArray::new_null(len),
    }
}

pub(super) fn negate_if(negated: bool, truth: BooleanArray) -> EvalResult<BooleanArray> {
    if negated { boolean::not(&truth).map_err(kernel_error) } else { Ok(truth) }
}

fn with_nulls_as(value: bool, truth: &BooleanArray) -> BooleanArray {
    match truth.nulls() {
        None => truth.clone(),
        Some(nulls) if value => BooleanArray::new(truth.values() | &!nulls.inner(), None),
        Some(nulls) => BooleanArray::new(truth.values() & nulls.inner(), None),
    }
}

/// One operand's value.
pub(super) fn operand_datum<'v>(operand: &'v Vector, row: usize, ty: &SqlType) -> Datum<'v> {
    match operand {
        Vector::Const(value) => reborrow(value),
        Vector::Array(array) => datum_at(&**array, row, ty),
    }
}

impl Vector {
    /// Numbers as conditions: true if not zero.
    fn truth(&self, ty: &SqlType, len: usize) -> EvalResult<BooleanArray> {
        match self {
            Self::Const(value) => Ok(constant_truth(is_true(value), len)),
            Self::Array(array) => {
                if let DataType::Int64 = array.data_type() {
                    let numbers = array.as_primitive::<arrow::datatypes::Int64Type>();
                    let values = numbers.values().iter().map(|v| *v != 0).collect::<Vec<_>>();
                    return Ok(BooleanArray::new(values.into(), numbers.nulls().cloned()));
                }
                Ok((0..len).map(|row| is_true(&datum_at(&**array, row, ty))).collect())
            }
        }
    }
}

impl RowStep {
    /// Evaluates the node for each row of operands.
    fn run(&self, operands: &[Vector], ty: &SqlType, rows: Rows<'_>) -> EvalResult<Vector> {
        let constant = !self.volatile && operands.iter().all(|operand| matches!(operand, Vector::Const(_)));
        let count = if constant { 1.min(rows.len) } else { rows.len };
        let mut builder = ColumnBuilder::new(ty, count);
        for row in 0..count {
            rows.made.go_on(operands.len() + 1, rows.ctx)?;
            let source = OperandRow { operands, types: &self.types, row };
            let value = self.node.eval(&Env { row: &source, params: &[], ctx: rows.ctx, value: None })?;
            if constant {
                return Ok(Vector::Const(value.into_owned()));
            }
            rows.made.add(&value)?;
            builder.append(&value);
        }
        Ok(Vector::Array(builder.finish()))
    }
}
