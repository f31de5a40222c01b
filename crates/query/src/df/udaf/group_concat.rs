//! `GROUP_CONCAT([DISTINCT] … ORDER BY … SEPARATOR …)` up to `group_concat_max_len` bytes.
//!
//! Arguments: the text, then what tells texts apart (with DISTINCT), then the keys of ORDER BY.
//!
//! Of a group, no more is kept than its result can show: texts behind `group_concat_max_len` are let go. With an order that is the
//! case for those that come after the ones that fill it, which are sorted when there are twice as many as that.

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
    /// Equal texts have equal keys of ORDER BY.
    pub order_follows_text: bool,
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
            seen_bytes: 0,
            bytes: 0,
            length: 0,
            bound: None,
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

/// With an order, entries are let go of when there are more than these.
const FEW_ENTRIES: usize = 64;
/// What an allocation takes besides its bytes, about.
const ALLOCATION: usize = 16;

#[derive(Debug)]
struct Texts {
    how: Concat,
    context: Arc<EvalContext>,
    order: RowConverter,
    entries: Vec<Entry>,
    /// Their keys, with DISTINCT.
    seen: HashSet<Box<[u8]>>,
    seen_bytes: usize,
    /// Of all entries' parts.
    bytes: usize,
    /// Of the entries' texts and the separators between them.
    length: usize,
    /// The entries fill the result: those with this order or a later one, which come later, are not shown.
    bound: Option<Box<[u8]>>,
}

impl Texts {
    fn add(&mut self, entry: Entry) {
        let is_behind = self.bound.as_ref().is_some_and(|bound| entry.order >= *bound);
        if is_behind && !self.remembers() {
            return;
        }
        if self.how.distinct {
            if !self.seen.insert(entry.key.clone()) {
                return;
            }
            self.seen_bytes += entry.key.len() + ALLOCATION;
        }
        if is_behind {
            return;
        }
        self.count(&entry);
        self.entries.push(entry);
        let is_ordered = !self.how.descending.is_empty();
        match is_ordered {
            false if self.length > self.how.most => self.bound = Some(Box::default()),
            true if self.length / 2 > self.how.most && self.entries.len() > FEW_ENTRIES => self.let_go(),
            _ => {}
        }
    }

    /// Whether a text that is not shown keeps an equal one, with another key of ORDER BY, from being shown.
    fn remembers(&self) -> bool {
        self.how.distinct && !self.how.order_follows_text && !self.how.descending.is_empty()
    }

    fn count(&mut self, entry: &Entry) {
        let parts = [entry.order.len(), entry.key.len(), entry.text.len()];
        self.bytes += parts.into_iter().sum::<usize>() + parts.len() * ALLOCATION;
        let separator = if self.entries.is_empty() { 0 } else { self.how.separator.len() };
        self.length += entry.text.len() + separator;
    }

    /// Sorts the entries and keeps the first, up to the one that is cut.
    fn let_go(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by(|a, b| a.order.cmp(&b.order));
        (self.bytes, self.length) = (0, 0);
        let remembers = self.remembers();
        for entry in entries {
            if self.length <= self.how.most {
                self.count(&entry);
                self.entries.push(entry);
            } else if !remembers && self.seen.remove(&entry.key) {
                self.seen_bytes -= entry.key.len() + ALLOCATION;
            }
        }
        self.bound = self.entries.last().map(|last| last.order.clone());
    }

    /// Cuts to the limit, at a character; tells whether it had to.
    fn cut(&self, text: &mut String) -> bool {
        if text.len() <= self.how.most {
            return false;
        }
        let end = text.floor_char_boundary(self.how.most);
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
                text: shown_part(texts.value(row), self.how.most).into(),
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
        let keys = self.seen.capacity() * (size_of::<Box<[u8]>>() + 1) + self.seen_bytes;
        size_of_val(self) + self.bytes + self.entries.capacity() * size_of::<Entry>() + keys
    }
}

/// As much of a text as can be shown, and some more if that is not all, so that it is cut.
fn shown_part(text: &str, most: usize) -> &str {
    &text[..text.ceil_char_boundary(most.saturating_add(1))]
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryViewArray, Int64Array, StringViewArray};

    use super::*;

    fn texts(how: &Concat) -> Texts {
        let keys = how.descending.iter().map(|descending| {
            let options = SortOptions { descending: *descending, nulls_first: !descending };
            SortField::new_with_options(DataType::Int64, options)
        });
        Texts {
            order: RowConverter::new(keys.collect()).expect("integers have an order"),
            how: how.clone(),
            context: Arc::new(EvalContext::new(0, 0)),
            entries: Vec::new(),
            seen: HashSet::new(),
            seen_bytes: 0,
            bytes: 0,
            length: 0,
            bound: None,
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
        columns.extend(how.descending.first().map(|_| order));
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
            let how =
                Concat { separator: "; ".into(), distinct, descending, order_follows_text: false, most };
            let (mut some, mut all) = (texts(&how), texts(&Concat { most: usize::MAX, ..how.clone() }));
            for part in 0..100 {
                let batch = batch(&how, part * 100..part * 100 + 100);
                some.update_batch(&batch).expect("updated");
                all.update_batch(&batch).expect("updated");
            }
            assert!(some.entries.len() <= 700 && some.length <= 3 * most + 100, "{how:?}");
            let mut merged = texts(&how);
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

    #[test]
    fn no_more_of_a_text_is_kept_than_is_shown() {
        assert_eq!(shown_part("äöü", 2), "äö");
        assert_eq!(shown_part("äöü", 3), "äö");
        assert_eq!(shown_part("äöü", 6), "äöü");
        assert_eq!(shown_part("", usize::MAX), "");
    }
}
