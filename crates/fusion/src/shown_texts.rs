//! How many rows go through window functions at a time.
//!
//! What a function gives for a row has bytes of its own, even where it shows one text for all of them: FIRST_VALUE of a text of
//! four megabytes takes four gigabytes for a thousand rows, and no operator counts them. So rows go in so few at a time that
//! what is shown of them stays a share of the query's memory. How long texts get is known from what was read; documents grow
//! by what goes into them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::functions_window::lead_lag::WindowShift;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr,
};
use datafusion::physical_plan::WindowExpr;
use datafusion::physical_plan::windows::WindowUDFExpr;

use crate::udaf::GatherDocuments;

/// Of a query's memory, what functions may show of the rows that go in at once.
const SHARE: usize = 32;
const LEAST: usize = 64 << 10;

/// What functions may show of some rows, in bytes.
pub(super) fn most_of(limit: usize) -> usize {
    (limit / SHARE).max(LEAST)
}

/// A function that shows texts.
#[derive(Debug)]
pub(super) struct Shown {
    /// Its place among the functions of its operator.
    function: usize,
    of: Arc<dyn PhysicalExpr>,
    /// A document, in which all texts of the frame are.
    gathers: bool,
}

/// Those of some functions that may show a text more than once.
pub(super) fn shown_by(functions: &[Arc<dyn WindowExpr>]) -> Vec<Shown> {
    let of = |(function, expr): (usize, &Arc<dyn WindowExpr>)| {
        let is_text = matches!(expr.field().ok()?.data_type(), DataType::Utf8View | DataType::BinaryView);
        let of = expr.expressions().first().filter(|_| is_text && !is_shift(expr))?.clone();
        Some(Shown { function, of, gathers: gathers(expr) })
    };
    functions.iter().enumerate().filter_map(of).collect()
}

/// LAG and LEAD show each text once.
fn is_shift(expr: &Arc<dyn WindowExpr>) -> bool {
    let standard = expr.as_any().downcast_ref::<StandardWindowExpr>();
    let function = standard.and_then(|expr| expr.get_standard_func_expr().as_any().downcast_ref());
    function.is_some_and(|function: &WindowUDFExpr| function.fun().inner().is::<WindowShift>())
}

fn gathers(expr: &Arc<dyn WindowExpr>) -> bool {
    let plain = expr.as_any().downcast_ref::<PlainAggregateWindowExpr>().map(|e| e.get_aggregate_expr());
    let sliding =
        || expr.as_any().downcast_ref::<SlidingAggregateWindowExpr>().map(|e| e.get_aggregate_expr());
    plain.or_else(sliding).is_some_and(|aggregate| aggregate.fun().inner().is::<GatherDocuments>())
}

/// The lengths of a column's texts, in bytes.
fn lengths(column: &ArrayRef) -> Vec<usize> {
    let views = match column.data_type() {
        DataType::Utf8View => column.as_string_view().views(),
        DataType::BinaryView => column.as_binary_view().views(),
        _ => return vec![0; column.len()],
    };
    // A view begins with the length.
    views.iter().map(|view| *view as u32 as usize).collect()
}

fn lengths_of(shown: &[Shown], batch: &RecordBatch) -> Result<Vec<Vec<usize>>> {
    let of = |shown: &Shown| Ok(lengths(&shown.of.evaluate(batch)?.into_array(batch.num_rows())?));
    shown.iter().map(of).collect()
}

/// What functions make of a whole partition, about.
pub(super) fn bytes_of(shown: &[Shown], partition: &RecordBatch) -> Result<usize> {
    let rows = partition.num_rows();
    let of = |(shown, lengths): (&Shown, Vec<usize>)| match shown.gathers {
        // Frames that end with the partition are half of it on average.
        true => lengths.iter().sum::<usize>() / 2,
        false => lengths.into_iter().max().unwrap_or(0),
    };
    let of_row: usize = shown.iter().zip(lengths_of(shown, partition)?).map(of).sum();
    Ok(rows.saturating_mul(of_row))
}

/// How long what is shown has become, by function.
#[derive(Debug)]
pub(super) struct Longest(Vec<usize>);

impl Longest {
    pub fn new(shown: &[Shown]) -> Self {
        Self(vec![0; shown.len()])
    }

    /// Rows have come out with their results, which stand behind so many columns.
    pub fn note(&mut self, shown: &[Shown], columns: usize, batch: &RecordBatch) {
        for (shown, longest) in shown.iter().zip(&mut self.0).filter(|(shown, _)| shown.gathers) {
            let results = lengths(batch.column(columns + shown.function));
            *longest = results.into_iter().max().unwrap_or(0);
        }
    }

    /// How many of a batch's rows from one on may go in, of which functions then show so many bytes at most.
    fn take(&mut self, gathers: &[bool], lengths: &[Vec<usize>], from: usize, most: usize) -> usize {
        let mut longest = self.0.clone();
        let rows = lengths.first().map_or(0, Vec::len);
        let mut taken = 0usize;
        for row in from..rows {
            for ((longest, gathers), lengths) in longest.iter_mut().zip(gathers).zip(lengths) {
                *longest = if *gathers { *longest + lengths[row] } else { (*longest).max(lengths[row]) };
            }
            let of_row: usize = longest.iter().sum();
            if taken > 0 && (taken + 1).saturating_mul(of_row) > most {
                break;
            }
            taken += 1;
            // What documents have become is seen when they come out.
            let texts = self.0.iter_mut().zip(&longest).zip(gathers).filter(|(_, gathers)| !**gathers);
            texts.for_each(|((kept, longest), _)| *kept = *longest);
        }
        taken
    }
}

/// A batch on its way in.
pub(super) struct Pieces {
    batch: RecordBatch,
    lengths: Vec<Vec<usize>>,
    gathers: Vec<bool>,
    next: usize,
}

impl Pieces {
    pub fn of(shown: &[Shown], batch: RecordBatch) -> Result<Self> {
        let lengths = lengths_of(shown, &batch)?;
        Ok(Self { lengths, batch, gathers: shown.iter().map(|shown| shown.gathers).collect(), next: 0 })
    }

    /// The rows that go in next; `None` if all have.
    pub fn next(&mut self, longest: &mut Longest, most: usize) -> Option<RecordBatch> {
        let from = self.next;
        if self.gathers.is_empty() {
            self.next = self.batch.num_rows();
        } else {
            self.next += longest.take(&self.gathers, &self.lengths, from, most);
        }
        (self.next > from).then(|| self.batch.slice(from, self.next - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shown_for_few_rows_at_a_time() {
        let mut longest = Longest(vec![0]);
        let lengths = [[vec![10; 99], vec![1000], vec![10; 100]].concat()];
        assert_eq!(longest.take(&[false], &lengths, 0, 10_000), 99, "up to the long one, which all may show");
        assert_eq!(longest.take(&[false], &lengths, 99, 10_000), 10);
        assert_eq!(longest.take(&[false], &lengths, 109, 10_000), 10, "it stays in the frame");
        assert_eq!(longest.take(&[false], &lengths, 190, 10_000), 10);
        assert_eq!(longest.take(&[false], &lengths, 199, 100), 1, "one row always goes in");
    }

    #[test]
    fn documents_grow_by_their_texts() {
        let mut longest = Longest(vec![0]);
        let lengths = [vec![10; 100]];
        assert_eq!(longest.take(&[true], &lengths, 0, 1_000), 10, "ten rows, of 100 bytes at most");
        longest.0[0] = 400;
        assert_eq!(longest.take(&[true], &lengths, 10, 1_000), 2);
    }
}
