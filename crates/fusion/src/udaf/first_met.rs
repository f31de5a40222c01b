//! The value of the first row of each group that was met: ANY_VALUE, columns that the grouping keys determine, and the
//! string that MySQL shows for a group of strings that differ in case.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_null_array};
use arrow::compute::{concat, interleave, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, TypeSignature,
    Volatility,
};

/// Pieces of values are put together when there are more than this many.
const MOST_PIECES: usize = 64;

#[derive(Debug, PartialEq, Eq, Hash)]
pub struct FirstMet {
    signature: Signature,
}

impl FirstMet {
    pub fn create() -> Arc<AggregateUDF> {
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { signature }))
    }
}

impl AggregateUDFImpl for FirstMet {
    fn name(&self) -> &str {
        "first_met"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(One { value, met: false }))
    }

    /// The value, and whether there was a row: its value may be NULL.
    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let value = args.return_field.as_ref().clone().with_name(format_state_name(args.name, "value"));
        let met = Field::new(format_state_name(args.name, "met"), DataType::Boolean, true);
        Ok(vec![Arc::new(value.with_nullable(true)), Arc::new(met)])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let pieces = vec![new_null_array(args.return_field.data_type(), 1)];
        Ok(Box::new(Many { pieces, places: Vec::new() }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Without groups.
#[derive(Debug)]
struct One {
    value: ScalarValue,
    met: bool,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if !self.met && !values[0].is_empty() {
            self.value = ScalarValue::try_from_array(&values[0], 0)?;
            self.met = true;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let met = states[1].as_boolean();
        let first = (0..met.len()).find(|row| met.is_valid(*row) && met.value(*row));
        match first {
            Some(row) if !self.met => {
                self.value = ScalarValue::try_from_array(&states[0], row)?;
                self.met = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Boolean(Some(self.met))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }
}

/// With groups: values stay in arrays, and each group knows its place there.
struct Many {
    /// The first holds one NULL, for groups of which no row was met.
    pieces: Vec<ArrayRef>,
    /// Piece and row of each group's value.
    places: Vec<(usize, usize)>,
}

const NOT_MET: (usize, usize) = (0, 0);

/// A few strings taken from a batch would keep all of the batch's bytes: they get bytes of their own.
fn compact(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

impl Many {
    fn take_first(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        total: usize,
        counts: impl Fn(usize) -> bool,
    ) -> Result<()> {
        self.places.resize(total.max(self.places.len()), NOT_MET);
        let mut rows = Vec::new();
        let piece = self.pieces.len();
        for (row, group) in groups.iter().enumerate() {
            if self.places[*group] == NOT_MET && counts(row) {
                self.places[*group] = (piece, rows.len());
                rows.push(row as u32);
            }
        }
        if !rows.is_empty() {
            self.pieces.push(compact(take(values, &UInt32Array::from(rows), None)?));
        }
        if self.pieces.len() > MOST_PIECES {
            self.put_together()?;
        }
        Ok(())
    }

    fn put_together(&mut self) -> Result<()> {
        let mut starts = Vec::with_capacity(self.pieces.len());
        let mut next = 0;
        for piece in &self.pieces[1..] {
            starts.push(next);
            next += piece.len();
        }
        let all: Vec<&dyn Array> = self.pieces[1..].iter().map(AsRef::as_ref).collect();
        let all = concat(&all)?;
        self.pieces.truncate(1);
        self.pieces.push(all);
        for (piece, row) in self.places.iter_mut().filter(|place| **place != NOT_MET) {
            *row += starts[*piece - 1];
            *piece = 1;
        }
        Ok(())
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<(ArrayRef, Vec<bool>)> {
        let places = emit_to.take_needed(&mut self.places);
        let pieces: Vec<&dyn Array> = self.pieces.iter().map(AsRef::as_ref).collect();
        let values = interleave(&pieces, &places)?;
        self.let_go()?;
        Ok((values, places.iter().map(|place| *place != NOT_MET).collect()))
    }

    /// An aggregate that emits groups, or spills them, counts on having their memory back: once half of the values are of groups that
    /// are gone, the others are copied.
    fn let_go(&mut self) -> Result<()> {
        let kept = self.places.iter().filter(|place| **place != NOT_MET).count();
        let rows: usize = self.pieces[1..].iter().map(|piece| piece.len()).sum();
        if 2 * kept > rows {
            return Ok(());
        }
        let pieces: Vec<&dyn Array> = self.pieces.iter().map(AsRef::as_ref).collect();
        let (met, places): (Vec<_>, Vec<_>) =
            self.places.iter().copied().enumerate().filter(|(_, place)| *place != NOT_MET).unzip();
        let values = compact(interleave(&pieces, &places)?);
        self.pieces.truncate(1);
        if kept > 0 {
            self.pieces.push(values);
        }
        for (row, group) in met.into_iter().enumerate() {
            self.places[group] = (1, row);
        }
        Ok(())
    }
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let counts = |row: usize| filter.is_none_or(|f| f.is_valid(row) && f.value(row));
        self.take_first(&values[0], groups, total, counts)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let met = states[1].as_boolean().clone();
        self.take_first(&states[0], groups, total, |row| met.is_valid(row) && met.value(row))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (values, met) = self.emit(emit_to)?;
        Ok(vec![values, Arc::new(BooleanArray::from(met))])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.emit(emit_to)?.0)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let met = match filter {
            Some(filter) => filter.clone(),
            None => BooleanArray::from(vec![true; values[0].len()]),
        };
        Ok(vec![values[0].clone(), Arc::new(met)])
    }

    fn size(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| piece.get_array_memory_size()).sum();
        pieces + self.places.capacity() * size_of::<(usize, usize)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringViewArray;

    #[test]
    fn groups_keep_their_first_value_over_many_batches() {
        let mut many = Many { pieces: vec![new_null_array(&DataType::Utf8View, 1)], places: Vec::new() };
        for batch in 0..200_usize {
            let names: ArrayRef =
                Arc::new(StringViewArray::from_iter_values([format!("v{batch}"), format!("w{batch}")]));
            many.update_batch(&[names], &[batch, 0], None, batch + 1).unwrap();
        }
        let first = many.evaluate(EmitTo::First(2)).unwrap();
        assert_eq!(first.as_string_view().iter().flatten().collect::<Vec<_>>(), ["v0", "v1"]);
        let rest = many.evaluate(EmitTo::All).unwrap();
        assert_eq!(rest.as_string_view().value(197), "v199");
    }

    #[test]
    fn what_is_emitted_takes_no_memory_any_more() {
        let mut many = Many { pieces: vec![new_null_array(&DataType::Utf8View, 1)], places: Vec::new() };
        let empty = many.size();
        let names: ArrayRef = Arc::new(StringViewArray::from_iter_values(["x".repeat(10_000)]));
        many.update_batch(std::slice::from_ref(&names), &[0], None, 1).unwrap();
        assert!(many.size() > 10_000);
        many.state(EmitTo::All).unwrap();
        assert_eq!(many.size(), empty);
        many.update_batch(&[names], &[0], None, 1).unwrap();
        assert_eq!(many.evaluate(EmitTo::All).unwrap().as_string_view().value(0).len(), 10_000);
    }

    /// Groups that are read in order go one after the other, and some always stay.
    #[test]
    fn groups_that_are_gone_leave_no_values() {
        let mut many = Many { pieces: vec![new_null_array(&DataType::Utf8View, 1)], places: Vec::new() };
        let mut largest = 0;
        for batch in 0..100 {
            let names = (0..10).map(|row| format!("{:0100}", batch * 10 + row));
            let names: ArrayRef = Arc::new(StringViewArray::from_iter_values(names));
            let stay = usize::from(batch > 0);
            let groups: Vec<usize> = (stay..stay + 10).collect();
            many.update_batch(&[names], &groups, None, stay + 10).unwrap();
            let gone = many.evaluate(EmitTo::First(stay + 9)).unwrap();
            let first = if batch == 0 { 0 } else { batch * 10 - 1 };
            assert_eq!(gone.as_string_view().value(0), format!("{first:0100}"));
            largest = largest.max(many.size());
        }
        assert!(largest < 20_000, "{largest}");
        let last = many.evaluate(EmitTo::All).unwrap();
        assert_eq!(last.as_string_view().value(0), format!("{:0100}", 999));
    }

    #[test]
    fn a_group_without_rows_is_null() {
        let mut many = Many { pieces: vec![new_null_array(&DataType::Utf8View, 1)], places: Vec::new() };
        let names: ArrayRef = Arc::new(StringViewArray::from_iter_values(["a"]));
        many.update_batch(&[names], &[1], None, 2).unwrap();
        assert!(many.evaluate(EmitTo::All).unwrap().is_null(0));
    }
}
