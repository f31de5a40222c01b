//! `GROUP_CONCAT([DISTINCT] … ORDER BY … SEPARATOR …)` up to `group_concat_max_len` bytes.
//!
//! Arguments: the text, then what tells texts apart (with DISTINCT), then the keys of ORDER BY.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, SortField};
use avocet_types::expr::{EvalContext, Warning};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};

/// How values are put together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concat {
    pub separator: Arc<str>,
    pub distinct: bool,
    /// For each key of ORDER BY.
    pub descending: Vec<bool>,
    /// In bytes.
    pub most: usize,
}

#[derive(Debug)]
pub struct GroupConcat {
    how: Concat,
    context: Arc<EvalContext>,
    signature: Signature,
}

impl PartialEq for GroupConcat {
    fn eq(&self, other: &Self) -> bool {
        self.how == other.how
    }
}

impl Eq for GroupConcat {}

impl std::hash::Hash for GroupConcat {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.how.hash(state);
    }
}

impl GroupConcat {
    pub fn create(how: Concat, context: Arc<EvalContext>) -> Arc<AggregateUDF> {
        let args = 1 + usize::from(how.distinct) + how.descending.len();
        let signature = Signature::new(TypeSignature::Any(args), Volatility::Stable);
        Arc::new(AggregateUDF::new_from_impl(Self { how, context, signature }))
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
        let keys = args.expr_fields.iter().skip(first_key).zip(&self.how.descending);
        let keys = keys.map(|(field, descending)| {
            let options = SortOptions { descending: *descending, nulls_first: !descending };
            SortField::new_with_options(field.data_type().clone(), options)
        });
        Ok(Box::new(Texts {
            order: RowConverter::new(keys.collect())?,
            how: self.how.clone(),
            context: self.context.clone(),
            entries: Vec::new(),
            seen: HashSet::new(),
            bytes: 0,
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

#[derive(Debug)]
struct Entry {
    order: Box<[u8]>,
    /// Equal for equal texts; empty without DISTINCT.
    key: Box<[u8]>,
    text: Box<str>,
}

impl Entry {
    /// Two lengths, and the parts.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.order.len() + self.key.len() + self.text.len());
        bytes.extend((self.order.len() as u32).to_le_bytes());
        bytes.extend((self.key.len() as u32).to_le_bytes());
        bytes.extend(&self.order);
        bytes.extend(&self.key);
        bytes.extend(self.text.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (order, rest) = bytes.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_first_chunk::<4>()?;
        let (order, rest) = rest.split_at_checked(u32::from_le_bytes(*order) as usize)?;
        let (key, text) = rest.split_at_checked(u32::from_le_bytes(*key) as usize)?;
        let text = std::str::from_utf8(text).ok()?;
        Some(Self { order: order.into(), key: key.into(), text: text.into() })
    }
}

#[derive(Debug)]
struct Texts {
    how: Concat,
    context: Arc<EvalContext>,
    order: RowConverter,
    entries: Vec<Entry>,
    seen: HashSet<Box<[u8]>>,
    bytes: usize,
}

impl Texts {
    fn add(&mut self, entry: Entry) {
        if self.how.distinct && !self.seen.insert(entry.key.clone()) {
            return;
        }
        self.bytes += entry.order.len() + 2 * entry.key.len() + entry.text.len();
        self.entries.push(entry);
    }

    /// Cuts to the limit, at a character; tells whether it had to.
    fn cut(&self, text: &mut String) -> bool {
        if text.len() <= self.how.most {
            return false;
        }
        let end = (0..=self.how.most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        true
    }
}

impl Accumulator for Texts {
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
            self.add(Entry {
                order: order.as_ref().map(|rows| rows.row(row).as_ref().into()).unwrap_or_default(),
                key: keys.map(|keys| keys.value(row).into()).unwrap_or_default(),
                text: texts.value(row).into(),
            });
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            for bytes in list.as_binary::<i32>().iter().flatten() {
                let broken = || DataFusionError::Internal("an entry of GROUP_CONCAT".into());
                self.add(Entry::decode(bytes).ok_or_else(broken)?);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut builder = BinaryBuilder::new();
        self.entries.iter().for_each(|entry| builder.append_value(entry.encode()));
        let list = datafusion::common::utils::SingleRowListArrayBuilder::new(Arc::new(builder.finish()));
        Ok(vec![list.build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.entries.is_empty() {
            return Ok(ScalarValue::Utf8View(None));
        }
        if !self.how.descending.is_empty() {
            self.entries.sort_by(|a, b| a.order.cmp(&b.order));
        }
        let mut result = String::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if at > 0 {
                result.push_str(&self.how.separator);
            }
            result.push_str(&entry.text);
            if self.cut(&mut result) {
                let message = format!("Row {} was cut by GROUP_CONCAT()", at + 1);
                self.context.push_warning(Warning { errno: 1260, message, note: false });
                break;
            }
        }
        Ok(ScalarValue::Utf8View(Some(result)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes + self.entries.capacity() * size_of::<Entry>()
    }
}
