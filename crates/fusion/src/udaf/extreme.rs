//! MIN and MAX of strings and documents over the frame of a window, in the order of a collation. Of strings that are equal, the first.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};

/// Its arguments are the string and its sort key.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ExtremeString {
    smallest: bool,
    /// Strings, or the bytes of documents.
    ty: DataType,
    signature: Signature,
}

impl ExtremeString {
    pub fn create(smallest: bool, ty: DataType) -> Arc<AggregateUDF> {
        let exact = TypeSignature::Exact(vec![ty.clone(), DataType::BinaryView]);
        let signature = Signature::new(exact, Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { smallest, ty, signature }))
    }

    fn accumulate(&self, slides: bool) -> Box<dyn Accumulator> {
        let ty = self.ty.clone();
        Box::new(Candidates { smallest: self.smallest, ty, slides, rows: VecDeque::new(), met: 0, gone: 0 })
    }
}

impl AggregateUDFImpl for ExtremeString {
    fn name(&self) -> &str {
        if self.smallest { "min_string" } else { "max_string" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.ty.clone())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(self.accumulate(false))
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(self.accumulate(true))
    }
}

#[derive(Debug)]
struct Candidate {
    /// How many rows were met before.
    number: u64,
    key: Box<[u8]>,
    value: Box<[u8]>,
}

/// Rows of the frame that are the extreme, or will be when those before them have left it: each is less extreme than the
/// one before, or equal to it.
#[derive(Debug)]
struct Candidates {
    smallest: bool,
    ty: DataType,
    /// Rows leave the frame, too; if not, only the first candidate matters.
    slides: bool,
    rows: VecDeque<Candidate>,
    met: u64,
    gone: u64,
}

impl Candidates {
    fn beats(&self, key: &[u8], other: &Candidate) -> bool {
        if self.smallest { *key < *other.key } else { *key > *other.key }
    }

    fn meet(&mut self, number: u64, key: &[u8], value: &[u8]) {
        while self.rows.back().is_some_and(|last| self.beats(key, last)) {
            self.rows.pop_back();
        }
        if self.slides || self.rows.is_empty() {
            self.rows.push_back(Candidate { number, key: key.into(), value: value.into() });
        }
    }
}

impl Accumulator for Candidates {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (array, keys) = (&values[0], values[1].as_binary_view());
        for row in 0..array.len() {
            if array.is_valid(row) {
                let value = match self.ty {
                    DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
                    _ => array.as_binary_view().value(row),
                };
                self.meet(self.met + row as u64, keys.value(row), value);
            }
        }
        self.met += array.len() as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.gone += values[0].len() as u64;
        while self.rows.front().is_some_and(|first| first.number < self.gone) {
            self.rows.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        exec_err!("windows are not merged")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.rows.front().map(|first| first.value.to_vec());
        Ok(match self.ty {
            DataType::Utf8View => {
                ScalarValue::Utf8View(value.and_then(|value| String::from_utf8(value).ok()))
            }
            _ => ScalarValue::BinaryView(value),
        })
    }

    fn size(&self) -> usize {
        let texts: usize = self.rows.iter().map(|row| row.key.len() + row.value.len()).sum();
        size_of_val(self) + self.rows.capacity() * size_of::<Candidate>() + texts
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryViewArray, StringViewArray};

    use super::*;

    fn batch(texts: &[Option<&str>]) -> Vec<ArrayRef> {
        let keys = texts.iter().map(|text| text.map(str::to_lowercase));
        let keys: Vec<Option<Vec<u8>>> = keys.map(|key| key.map(String::into_bytes)).collect();
        vec![
            Arc::new(texts.iter().copied().collect::<StringViewArray>()),
            Arc::new(keys.iter().map(|key| key.as_deref()).collect::<BinaryViewArray>()),
        ]
    }

    /// Slides a frame of three rows over strings, beside a search of each frame.
    #[test]
    fn frames_slide() {
        let texts =
            [Some("b"), None, Some("B"), Some("a"), Some("C"), Some("c"), None, None, None, Some("A")];
        for smallest in [true, false] {
            let ty = DataType::Utf8View;
            let udaf = ExtremeString { smallest, ty, signature: Signature::nullary(Volatility::Immutable) };
            let mut accumulator = udaf.accumulate(true);
            for end in 0..texts.len() {
                accumulator.update_batch(&batch(&texts[end..=end])).expect("updated");
                let start = end.saturating_sub(2);
                if end > 2 {
                    accumulator.retract_batch(&batch(&texts[start - 1..start])).expect("retracted");
                }
                let mut wanted: Option<&str> = None;
                for text in texts[start..=end].iter().flatten() {
                    let (new, old) = (text.to_lowercase(), wanted.map(str::to_lowercase));
                    if old.is_none_or(|old| if smallest { new < old } else { new > old }) {
                        wanted = Some(text);
                    }
                }
                let got = accumulator.evaluate().expect("evaluated");
                assert_eq!(got, ScalarValue::Utf8View(wanted.map(Into::into)), "{smallest} {end}");
            }
        }
    }
}
