//! Rows that keep no memory but their own.
//!
//! What sorts and joins give shares the texts of what they read: a few rows may keep many batches, and each batch of rows counts all of
//! them again. Under a small limit that is what fails a query, so texts are copied where rows leave such an operator.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatchOptions};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::pass::{Pass, PassExec};

/// Of texts that are shared, how many bytes there are and how many of them are the array's own.
fn shared_bytes(array: &ArrayRef) -> Option<(usize, usize)> {
    let (buffers, own) = match array.data_type() {
        DataType::Utf8View => {
            let array = array.as_string_view();
            (array.data_buffers(), array.total_buffer_bytes_used())
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            (array.data_buffers(), array.total_buffer_bytes_used())
        }
        _ => return None,
    };
    Some((buffers.iter().map(|buffer| buffer.capacity()).sum(), own))
}

/// What rows take, without what they share with others.
pub(super) fn own_bytes(batch: &RecordBatch) -> usize {
    let bytes = |array: &ArrayRef| {
        let all = array.get_array_memory_size();
        shared_bytes(array).map_or(all, |(shared, own)| all.saturating_sub(shared) + own)
    };
    batch.columns().iter().map(bytes).sum()
}

/// Texts with bytes of their own, where these are fewer than so many parts of what they share: a text that stands in many rows would
/// have them in each.
pub(super) fn owned(array: &ArrayRef, parts: usize) -> ArrayRef {
    match shared_bytes(array) {
        Some((shared, own)) if shared / parts > own => match array.data_type() {
            DataType::Utf8View => Arc::new(array.as_string_view().gc()),
            _ => Arc::new(array.as_binary_view().gc()),
        },
        _ => array.clone(),
    }
}

/// The same rows; those that keep twice as much as they need are copied.
fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| owned(column, 2)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

/// Its input's rows, compacted.
#[derive(Debug)]
pub(super) struct Compact;

impl Compact {
    pub fn rows_of(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        PassExec::plan(Self, input)
    }
}

impl Pass for Compact {
    const NAME: &'static str = "CompactExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = input.execute(partition, context)?.map(|batch| compact(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(input.schema(), rows)))
    }

    fn renewed(&self) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;
    use datafusion::common::ScalarValue;

    use super::*;

    #[test]
    fn rows_keep_their_own_texts() {
        let texts = StringViewArray::from_iter_values((0..1000).map(|n| format!("the text of row {n:04}")));
        let batch = RecordBatch::try_from_iter([("s", Arc::new(texts) as ArrayRef)]).expect("one column");
        let shared = |batch: &RecordBatch| shared_bytes(batch.column(0)).expect("texts").0;
        let few = batch.slice(100, 10);
        assert_eq!(shared(&few), shared(&batch));
        assert!(own_bytes(&few) < own_bytes(&batch) / 2);
        let few = compact(&few).expect("compacted");
        assert!(shared(&few) < shared(&batch) / 2);
        assert_eq!(few.column(0).as_string_view().value(9), "the text of row 0109");
    }

    #[test]
    fn a_text_of_many_rows_stays_one() {
        let long = ScalarValue::Utf8View(Some("z".repeat(10_000)));
        let texts = long.to_array_of_size(1000).expect("an array");
        let batch = RecordBatch::try_from_iter([("s", texts)]).expect("one column");
        let part = crate::scan::copied(&batch, 0..500).expect("copied");
        let bytes = part.column(0).get_array_memory_size();
        assert!(bytes < 100_000, "{bytes}");
    }
}
