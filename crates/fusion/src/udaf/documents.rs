//! JSON_ARRAYAGG and JSON_OBJECTAGG, over groups and over the frames of windows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use avocet_types::accumulate::documents::{Documents, Gathered};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::udf::external;

#[derive(Debug, PartialEq, Eq, Hash)]
pub struct GatherDocuments {
    gathered: Gathered,
    signature: Signature,
}

impl GatherDocuments {
    pub fn create(gathered: Gathered) -> Arc<AggregateUDF> {
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Stable);
        Arc::new(AggregateUDF::new_from_impl(Self { gathered, signature }))
    }
}

impl AggregateUDFImpl for GatherDocuments {
    fn name(&self) -> &str {
        match self.gathered {
            Gathered::Array => "json_arrayagg",
            Gathered::Object => "json_objectagg",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Group(Documents::new(self.gathered))))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "document"), DataType::BinaryView, true))])
    }
}

/// Arguments are never NULL: each is an array of one element, or an object of one member.
#[derive(Debug)]
struct Group(Documents);

impl Accumulator for Group {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let documents = cast(&values[0], &DataType::BinaryView)?;
        for document in documents.as_binary_view().iter().flatten() {
            self.0.add(document);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract(values[0].len() - values[0].null_count());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::BinaryView(self.0.together().map_err(external)?))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.bytes()
    }
}
