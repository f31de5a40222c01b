//! Doubles that are too large for a DOUBLE: aggregates of DataFusion's may give them, and tell nobody.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use avocet_types::accumulate::moments::nearest_finite;
use avocet_types::expr::EvalError;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::udf::external;

/// What becomes of a value that is infinite, or no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Otherwise {
    /// The nearest DOUBLE.
    Nearest,
    /// Error 1690 of this function.
    Refused(&'static str),
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Finite {
    otherwise: Otherwise,
    signature: Signature,
}

impl Finite {
    pub fn create(otherwise: Otherwise) -> ScalarUDF {
        let signature = Signature::new(TypeSignature::Exact(vec![DataType::Float64]), Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { otherwise, signature })
    }

    fn checked(&self, array: ArrayRef) -> Result<ArrayRef> {
        let values: &Float64Array = array.as_primitive::<Float64Type>();
        // What is NULL may hide anything, which costs no more than a second look.
        if values.values().iter().all(|value| value.is_finite()) {
            return Ok(array);
        }
        match self.otherwise {
            Otherwise::Nearest => Ok(Arc::new(values.unary::<_, Float64Type>(nearest_finite))),
            Otherwise::Refused(function) => match values.iter().flatten().all(f64::is_finite) {
                true => Ok(array),
                false => {
                    Err(external(EvalError::OutOfRange { kind: "DOUBLE", expr: format!("{function}()") }))
                }
            },
        }
    }
}

impl ScalarUDFImpl for Finite {
    fn name(&self) -> &str {
        match self.otherwise {
            Otherwise::Nearest => "nearest_finite",
            Otherwise::Refused(_) => "finite",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &args.args[0] {
            ColumnarValue::Array(array) => ColumnarValue::Array(self.checked(array.clone())?),
            ColumnarValue::Scalar(scalar) => {
                let checked = self.checked(scalar.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&checked, 0)?)
            }
        })
    }
}
