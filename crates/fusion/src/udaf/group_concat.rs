//! `GROUP_CONCAT([DISTINCT] … ORDER BY … SEPARATOR …)`.
//!
//! Arguments: the text, then what tells texts apart (with DISTINCT), then the keys of ORDER BY.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, SortField};
use avocet_types::accumulate::texts::{Concat, Entry, Texts};
#[cfg(test)]
use avocet_types::collation::Charset;
use avocet_types::expr::EvalContext;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};

#[derive(Debug)]
pub struct GroupConcat {
    how: Concat,
    /// For each key of ORDER BY.
    descending: Vec<bool>,
    context: Arc<EvalContext>,
    signature: Signature,
}

impl PartialEq for GroupConcat {
    fn eq(&self, other: &Self) -> bool {
        self.how == other.how && self.descending == other.descending
    }
}

impl Eq for GroupConcat {}

impl std::hash::Hash for GroupConcat {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.how.hash(state);
        self.descending.hash(state);
    }
}

impl GroupConcat {
    pub fn create(how: Concat, descending: Vec<bool>, context: Arc<EvalContext>) -> Arc<AggregateUDF> {
        let args = 1 + usize::from(how.distinct) + descending.len();
        let signature = Signature::new(TypeSignature::Any(args), Volatility::Stable);
        Arc::new(AggregateUDF::new_from_impl(Self { how, descending, context, signature }))
    }
}

impl AggregateUDFImpl for GroupConcat {
    fn name(&self) -> &str {
        "group_concat"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let first_key = 1 + usize::from(self.how.distinct);
        let keys = args.expr_fields.iter().skip(first_key).zip(&self.descending);
        let keys = keys.map(|(field, descending)| {
            let options = SortOptions { descending: *descending, nulls_first: !descending };
            SortField::new_with_options(field.data_type().clone(), options)
        });
        Ok(Box::new(Group {
            order: RowConverter::new(keys.collect())?,
            how: self.how.clone(),
            context: self.context.clone(),
            texts: Texts::default(),
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(args.name, "entries");
        Ok(vec![Arc::new(Field::new_list(name, Field::new_list_field(DataType::Binary, true), true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Two lengths, and the parts.
fn encode(entry: &Entry<Box<[u8]>>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + entry.order.len() + entry.key.len() + entry.text.len());
    bytes.extend((entry.order.len() as u32).to_le_bytes());
    bytes.extend((entry.key.len() as u32).to_le_bytes());
    bytes.extend(&entry.order);
    bytes.extend(&entry.key);
    bytes.extend(entry.text.as_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Entry<Box<[u8]>>> {
    let (order, rest) = bytes.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_first_chunk::<4>()?;
    let (order, rest) = rest.split_at_checked(u32::from_le_bytes(*order) as usize)?;
    let (key, text) = rest.split_at_checked(u32::from_le_bytes(*key) as usize)?;
    let text = std::str::from_utf8(text).ok()?;
    Some(Entry { order: order.into(), key: key.into(), text: text.into() })
}

/// The texts of one group, with their keys in Arrow's row format.
#[derive(Debug)]
struct Group {
    how: Concat,
    context: Arc<EvalContext>,
    order: RowConverter,
    texts: Texts<Box<[u8]>>,
}

impl Accumulator for Group {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let texts = cast(&values[0], &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        let keys = match self.how.distinct {
            true => Some(cast(&values[1], &DataType::Binary)?),
            false => None,
        };
        let keys: Option<&BinaryArray> = keys.as_ref().map(|keys| keys.as_binary());
        let order = &values[1 + usize::from(self.how.distinct)..];
        let order = match order.is_empty() {
            true => None,
            false => Some(self.order.convert_columns(order)?),
        };
        for row in (0..texts.len()).filter(|row| texts.is_valid(*row)) {
            let entry = Entry {
                order: order.as_ref().map(|rows| rows.row(row).as_ref().into()).unwrap_or_default(),
                key: keys.map(|keys| keys.value(row).into()).unwrap_or_default(),
                text: self.how.shown_part(texts.value(row)).into(),
            };
            self.texts.add(&self.how, entry);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            for bytes in list.as_binary::<i32>().iter().flatten() {
                let broken = || DataFusionError::Internal("an entry of GROUP_CONCAT".into());
                self.texts.add(&self.how, decode(bytes).ok_or_else(broken)?);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut builder = BinaryBuilder::new();
        self.texts.entries().iter().for_each(|entry| builder.append_value(encode(entry)));
        let list = datafusion::common::utils::SingleRowListArrayBuilder::new(Arc::new(builder.finish()));
        Ok(vec![list.build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8View(self.texts.concatenated(&self.how, &self.context)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.texts.bytes()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryViewArray, Int64Array, StringViewArray};

    use super::*;

    fn group(how: &Concat, descending: &[bool]) -> Group {
        let keys = descending.iter().map(|descending| {
            let options = SortOptions { descending: *descending, nulls_first: !descending };
            SortField::new_with_options(DataType::Int64, options)
        });
        Group {
            order: RowConverter::new(keys.collect()).expect("integers have an order"),
            how: how.clone(),
            context: Arc::new(EvalContext::new(0, 0)),
            texts: Texts::default(),
        }
    }

    /// Texts, each with its number's remainder for a key of ORDER BY.
    fn batch(how: &Concat, numbers: std::ops::Range<i64>) -> Vec<ArrayRef> {
        let text = |n: i64| format!("text {}", n % 700);
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(numbers.clone().map(text)));
        let keys: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(numbers.clone().map(text)));
        let order: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.map(|n| n * 7919 % 1013)));
        let mut columns = vec![texts];
        columns.extend(how.distinct.then_some(keys));
        columns.extend(how.ordered.then_some(order));
        columns
    }

    /// What is let go of would not have been shown, and takes no memory.
    #[test]
    fn the_result_is_that_of_all_texts() {
        for (distinct, descending, most) in [
            (false, vec![], 100),
            (true, vec![], 100),
            (false, vec![false], 100),
            (false, vec![true], 2_000),
            (true, vec![true], 100),
            (true, vec![false], 2_000),
        ] {
            let ordered = !descending.is_empty();
            let how = Concat {
                separator: "; ".into(),
                distinct,
                ordered,
                order_follows_text: false,
                most,
                charset: Charset::Utf8mb4,
            };
            let group = |how: &Concat| group(how, &descending);
            let (mut some, mut all) = (group(&how), group(&Concat { most: usize::MAX, ..how.clone() }));
            for part in 0..100 {
                let batch = batch(&how, part * 100..part * 100 + 100);
                some.update_batch(&batch).expect("updated");
                all.update_batch(&batch).expect("updated");
            }
            assert!(some.texts.entries().len() <= 700 && shown(&some) <= 3 * most + 100, "{how:?}");
            let mut merged = group(&how);
            let state = some.state().expect("a state")[0].to_array().expect("an array");
            merged.update_batch(&batch(&how, 0..0)).expect("nothing");
            merged.merge_batch(&[state]).expect("merged");
            let whole = all.evaluate().expect("evaluated");
            let ScalarValue::Utf8View(Some(whole)) = whole else { panic!("{whole}") };
            let shown = ScalarValue::Utf8View(Some(whole[..most].to_owned()));
            assert_eq!(merged.evaluate().expect("evaluated"), shown, "{how:?}");
            assert_eq!(some.evaluate().expect("evaluated"), shown, "{how:?}");
        }
    }

    /// Bytes of the texts that are kept, with separators.
    fn shown(group: &Group) -> usize {
        let texts: Vec<&str> = group.texts.entries().iter().map(|entry| &*entry.text).collect();
        texts.join(&group.how.separator).len()
    }
}
