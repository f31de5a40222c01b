//! DataFusion functions that do what its own do not: anything that `types` defines, evaluated by its batch programs, and the
//! sort keys of collations.

use std::any::Any;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, StringViewArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, SortField};
use avocet_types::error::SqlError;
use avocet_types::expr::{BatchProgram, EvalContext, Expr};
use avocet_types::{Collation, SqlType, json};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::results::ResultBytes;

/// An expression of more parts has no text in its name, which plans ask for again and again.
const MOST_NAMED: usize = 256;

/// An expression of ours as a function of its columns.
#[derive(Debug)]
pub struct EvalUdf {
    /// Column `i` is argument `i`.
    expr: Expr,
    args: Vec<SqlType>,
    /// Gives a BOOLEAN instead of 1 and 0.
    truth: bool,
    program: BatchProgram,
    context: Arc<EvalContext>,
    results: Arc<ResultBytes>,
    /// Of the expression, which may be long: plans are hashed and compared by every pass over them.
    hash: u64,
    signature: Signature,
}

impl PartialEq for EvalUdf {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.hash == other.hash
                && self.truth == other.truth
                && self.args == other.args
                && self.expr == other.expr)
    }
}

impl Eq for EvalUdf {}

impl Hash for EvalUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
        self.truth.hash(state);
    }
}

impl EvalUdf {
    pub fn create(
        expr: Expr,
        args: Vec<SqlType>,
        truth: bool,
        shown: &dyn Fn(usize) -> String,
        context: Arc<EvalContext>,
        results: Arc<ResultBytes>,
    ) -> Result<ScalarUDF, SqlError> {
        let program = BatchProgram::compile_named(&expr, shown)?;
        let volatility = if expr.is_volatile() { Volatility::Volatile } else { Volatility::Stable };
        let signature = match args.len() {
            0 => TypeSignature::Nullary,
            n => TypeSignature::Any(n),
        };
        let signature = Signature::new(signature, volatility);
        let hash = foldhash::fast::FixedState::default().hash_one((&expr, &args));
        Ok(ScalarUDF::new_from_impl(Self { expr, args, truth, program, context, results, hash, signature }))
    }

    fn evaluate(&self, arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let results = &self.results;
        let keeps = &mut |done, bytes| results.admit(done, bytes);
        let result = self.program.eval_in_parts(arrays, rows, &self.context, results.part(), keeps);
        let result = result.map_err(external)?.ok_or_else(|| results.refusal())?;
        if !self.truth {
            return Ok(result);
        }
        // Arrow's comparisons tell the two zeros apart.
        if let Some(numbers) = result.as_primitive_opt::<Float64Type>() {
            return Ok(Arc::new(BooleanArray::from_unary(numbers, |number| number != 0.0)));
        }
        if let Some(numbers) = result.as_primitive_opt::<Float32Type>() {
            return Ok(Arc::new(BooleanArray::from_unary(numbers, |number| number != 0.0)));
        }
        let zero = ScalarValue::new_zero(result.data_type())?.to_scalar()?;
        Ok(Arc::new(arrow::compute::kernels::cmp::neq(&result, &zero)?))
    }
}

/// An error of ours on its way through DataFusion.
pub fn external(error: impl Into<SqlError>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}

impl ScalarUDFImpl for EvalUdf {
    fn name(&self) -> &str {
        "eval"
    }

    fn schema_name(&self, args: &[datafusion::logical_expr::Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(ToString::to_string).collect();
        // Names stand for expressions, but conversions are not seen in their text.
        let hash = foldhash::fast::FixedState::default().hash_one(self);
        let mut parts = 0;
        let is_long = self.expr.any(&mut |_| {
            parts += 1;
            parts > MOST_NAMED
        });
        if is_long {
            return Ok(format!("eval({})#{hash:x}", names.join(", ")));
        }
        let sql = self.expr.sql(|index| names.get(index).cloned().unwrap_or_default());
        Ok(format!("{sql}#{hash:x}"))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(if self.truth { DataType::Boolean } else { self.expr.ty.arrow_type() })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant =
            args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_))) && !self.expr.is_volatile();
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|a| a.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let result = self.evaluate(&arrays, rows)?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

/// The one argument of a function: as an array, and whether it is one value for all rows. What is made of that is made once.
fn argument(args: &ScalarFunctionArgs) -> Result<(ArrayRef, bool)> {
    let is_constant = matches!(args.args[0], ColumnarValue::Scalar(_));
    let rows = if is_constant { 1 } else { args.number_rows };
    Ok((args.args[0].to_array(rows)?, is_constant))
}

/// What a function has made of its argument.
fn made_of(is_constant: bool, made: ArrayRef) -> Result<ColumnarValue> {
    Ok(match is_constant {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
        false => ColumnarValue::Array(made),
    })
}

/// Bytes that compare, group and join as strings do under a collation, or as documents.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SortKeyUdf {
    collation: Collation,
    signature: Signature,
}

impl SortKeyUdf {
    pub fn create(collation: Collation) -> ScalarUDF {
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { collation, signature })
    }
}

impl ScalarUDFImpl for SortKeyUdf {
    fn name(&self) -> &str {
        "sort_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (array, is_constant) = argument(&args)?;
        let mut key = Vec::new();
        if self.collation == Collation::JSON {
            let documents = arrow::compute::cast(&array, &DataType::BinaryView)?;
            let mut out = BinaryViewBuilder::with_capacity(documents.len());
            for document in documents.as_binary_view() {
                key.clear();
                out.append_option(document.map(|document| {
                    json::sort_key(json::Node::new(document), &mut key);
                    &key
                }));
            }
            return made_of(is_constant, Arc::new(out.finish()));
        }
        let strings = array
            .as_string_view_opt()
            .ok_or_else(|| DataFusionError::Internal(format!("sort_key of {:?}", array.data_type())))?;
        let mut out = BinaryViewBuilder::with_capacity(strings.len());
        for value in strings {
            match value {
                None => out.append_null(),
                Some(text) => {
                    key.clear();
                    self.collation.sort_key(text, &mut key);
                    out.append_value(&key);
                }
            }
        }
        made_of(is_constant, Arc::new(out.finish()))
    }
}

/// The string without trailing spaces: what counts for equality under the PAD SPACE collations that compare bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TrimmedUdf {
    signature: Signature,
}

impl TrimmedUdf {
    pub fn create() -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            signature: Signature::new(TypeSignature::Any(1), Volatility::Immutable),
        })
    }
}

impl ScalarUDFImpl for TrimmedUdf {
    fn name(&self) -> &str {
        "trimmed"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (array, is_constant) = argument(&args)?;
        let strings = array
            .as_string_view_opt()
            .ok_or_else(|| DataFusionError::Internal(format!("trimmed of {:?}", array.data_type())))?;
        // Hardly any value ends with a space: then the array is its own key.
        if !strings.iter().flatten().any(|text| text.ends_with(' ')) {
            return made_of(is_constant, array);
        }
        let trimmed: StringViewArray =
            strings.iter().map(|text| text.map(|t| t.trim_end_matches(' '))).collect();
        made_of(is_constant, Arc::new(trimmed))
    }
}

/// A value in another type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ConvertedUdf {
    to: DataType,
    signature: Signature,
}

impl ConvertedUdf {
    pub fn create(to: DataType) -> ScalarUDF {
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { to, signature })
    }
}

impl ScalarUDFImpl for ConvertedUdf {
    fn name(&self) -> &str {
        "converted"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args[0].cast_to(&self.to, None)
    }
}

/// Several values as one, by which rows are sorted or told apart as by all of them: never NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OrderKeyUdf {
    /// By value: whether the largest comes first.
    descending: Box<[bool]>,
    signature: Signature,
}

impl OrderKeyUdf {
    pub fn create(descending: Vec<bool>) -> ScalarUDF {
        let signature = Signature::new(TypeSignature::Any(descending.len()), Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { descending: descending.into(), signature })
    }
}

impl ScalarUDFImpl for OrderKeyUdf {
    fn name(&self) -> &str {
        "order_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args.args.iter().map(|a| a.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        // NULL is the least value.
        let fields = columns.iter().zip(&self.descending).map(|(column, &descending)| {
            let options = SortOptions { descending, nulls_first: !descending };
            SortField::new_with_options(column.data_type().clone(), options)
        });
        let rows = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
        let mut out = BinaryViewBuilder::with_capacity(args.number_rows);
        rows.iter().for_each(|row| out.append_value(row.as_ref()));
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }
}

/// Several values as one: bytes that are equal exactly if all of them are; NULL if one of them is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct RowKeyUdf {
    signature: Signature,
}

impl RowKeyUdf {
    pub fn create(args: usize) -> ScalarUDF {
        let signature = Signature::new(TypeSignature::Any(args), Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { signature })
    }
}

impl ScalarUDFImpl for RowKeyUdf {
    fn name(&self) -> &str {
        "row_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args.args.iter().map(|a| a.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
        let rows = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
        let mut out = BinaryViewBuilder::with_capacity(args.number_rows);
        // An array of NULLs alone has no other sign of them.
        let nulls: Vec<_> = columns.iter().filter_map(|column| column.logical_nulls()).collect();
        for row in 0..args.number_rows {
            match nulls.iter().any(|nulls| nulls.is_null(row)) {
                true => out.append_null(),
                false => out.append_value(rows.row(row).as_ref()),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }
}

/// Whether the error, or one that it wraps, is one of ours.
pub fn sql_error_of(error: &DataFusionError) -> Option<SqlError> {
    match error {
        DataFusionError::External(inner) => {
            let inner: &(dyn std::error::Error + 'static) = inner.as_ref();
            inner.downcast_ref::<SqlError>().cloned()
        }
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            arrow::error::ArrowError::ExternalError(inner) => {
                let inner: &(dyn std::error::Error + 'static) = inner.as_ref();
                inner
                    .downcast_ref::<SqlError>()
                    .cloned()
                    .or_else(|| inner.downcast_ref::<DataFusionError>().and_then(sql_error_of))
            }
            _ => None,
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => sql_error_of(inner),
        DataFusionError::Shared(inner) => sql_error_of(inner),
        _ => None,
    }
}

const _: fn() = || {
    fn shared<T: Any + Send + Sync>() {}
    shared::<EvalUdf>();
};
