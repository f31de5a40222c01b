//! MIN and MAX of strings over the frame of a window, in the order of a collation. Of strings that are equal, the first.

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
    signature: Signature,
}

impl ExtremeString {
    pub fn create(smallest: bool) -> Arc<AggregateUDF> {
        let exact = TypeSignature::Exact(vec![DataType::Utf8View, DataType::BinaryView]);
        let signature = Signature::new(exact, Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { smallest, signature }))
    }

    fn accumulate(&self, slides: bool) -> Box<dyn Accumulator> {
        Box::new(Candidates { smallest: self.smallest, slides, rows: VecDeque::new(), met: 0, gone: 0 })
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
        Ok(DataType::Utf8View)
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
    text: Box<str>,
}

/// Rows of the frame that are the extreme, or will be when those before them have left it: each is less extreme than the
/// one before, or equal to it.
#[derive(Debug)]
struct Candidates {
    smallest: bool,
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

    fn meet(&mut self, number: u64, key: &[u8], text: &str) {
        while self.rows.back().is_some_and(|last| self.beats(key, last)) {
            self.rows.pop_back();
        }
        if self.slides || self.rows.is_empty() {
            self.rows.push_back(Candidate { number, key: key.into(), text: text.into() });
        }
    }
}

impl Accumulator for Candidates {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (texts, keys) = (values[0].as_string_view(), values[1].as_binary_view());
        for row in 0..texts.len() {
            if texts.is_valid(row) {
                self.meet(self.met + row as u64, keys.value(row), texts.value(row));
            }
        }
        self.met += texts.len() as u64;
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
        Ok(ScalarValue::Utf8View(self.rows.front().map(|first| first.text.to_string())))
    }

    fn size(&self) -> usize {
        let texts: usize = self.rows.iter().map(|row| row.key.len() + row.text.len()).sum();
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
            let udaf = ExtremeString { smallest, signature: Signature::nullary(Volatility::Immutable) };
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
