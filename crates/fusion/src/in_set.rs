//! Membership in a long list of constants, as a function that has them as one array.
//!
//! DataFusion's own list has an expression for each constant, which every pass over a plan visits, clones and compares: to
//! plan one of a hundred thousand took most of a second. The rows are looked up as it does it.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    self as df, ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, InListExpr};

#[derive(Debug)]
pub struct InSetUdf {
    members: ArrayRef,
    negated: bool,
    /// Over a row of the argument alone.
    test: InListExpr,
    schema: SchemaRef,
    /// Of the members, for whoever compares plans or names expressions.
    hash: u64,
    signature: Signature,
}

impl PartialEq for InSetUdf {
    fn eq(&self, other: &Self) -> bool {
        self.negated == other.negated
            && self.hash == other.hash
            && (Arc::ptr_eq(&self.members, &other.members) || *self.members == *other.members)
    }
}

impl Eq for InSetUdf {}

impl Hash for InSetUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.negated.hash(state);
        self.hash.hash(state);
    }
}

impl InSetUdf {
    /// `value [NOT] IN (members)`; both have one type.
    pub fn call(
        value: df::Expr,
        ty: &DataType,
        members: Vec<ScalarValue>,
        negated: bool,
    ) -> Result<df::Expr> {
        let hash = foldhash::fast::FixedState::default().hash_one(&members);
        let members = ScalarValue::iter_to_array(members)?;
        let schema = Arc::new(Schema::new(vec![Field::new("value", ty.clone(), true)]));
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("value", 0));
        let test = InListExpr::try_new_from_array(column, members.clone(), negated, &schema)?;
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
        let udf = Self { members, negated, test, schema, hash, signature };
        Ok(ScalarUDF::new_from_impl(udf).call(vec![value]))
    }
}

impl ScalarUDFImpl for InSetUdf {
    fn name(&self) -> &str {
        "in_set"
    }

    fn schema_name(&self, args: &[df::Expr]) -> Result<String> {
        let operator = if self.negated { "NOT IN" } else { "IN" };
        let value = args.first().map(ToString::to_string).unwrap_or_default();
        Ok(format!("{value} {operator} (…)#{:x}", self.hash))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = matches!(args.args[0], ColumnarValue::Scalar(_));
        let rows = if is_constant { 1 } else { args.number_rows };
        let batch = RecordBatch::try_new(self.schema.clone(), vec![args.args[0].to_array(rows)?])?;
        let found = self.test.evaluate(&batch)?.into_array(rows)?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
            false => ColumnarValue::Array(found),
        })
    }
}
