//! A sample of a table's rows, for planning: how selective a condition is, and how many values an expression has, is
//! best asked of the data.
//!
//! About [`SAMPLE_ROWS`] rows from at most [`MAX_SEGMENTS`] segments, hot and cold in proportion, newest versions whether
//! committed or not: good enough to estimate, and never to answer, from. Hot rows are copied; values of cold rows are
//! decoded when a column is first asked for. A table keeps its sample until it is out of date.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use arrow::array::ArrayRef;
use avocet_base::SegmentNo;
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::{ColdSegment, HotSegment, SegmentState};
use avocet_types::ColumnBuilder;

use crate::error::Result;
use crate::table::TableHandle;

const SAMPLE_ROWS: usize = 2048;
const MAX_SEGMENTS: usize = 64;
/// Rows taken from one page: neighbours are alike, and tell less than strangers.
const ROWS_PER_PAGE: usize = 4;
const LIFETIME: Duration = Duration::from_secs(60);

/// Sampled rows of one table.
pub struct TableSample {
    hot: Vec<RowBuf>,
    /// Rows of column blocks, by their place in the block.
    cold: Vec<(SegmentNo, Vec<usize>)>,
    columns: Vec<OnceLock<ArrayRef>>,
    /// Of the whole table when the sample was taken.
    table_rows: u64,
    taken: Instant,
}

/// Where a table keeps its sample.
#[derive(Default)]
pub(crate) struct SampleCache(ArcSwapOption<TableSample>);

impl TableHandle {
    /// The table's sample, taken anew if the table has changed much.
    pub fn sample(&self) -> Arc<TableSample> {
        if let Some(sample) = self.sample.0.load_full()
            && sample.is_current(self.row_count())
        {
            return sample;
        }
        let sample = Arc::new(TableSample::take(self));
        self.sample.0.store(Some(sample.clone()));
        sample
    }
}

impl TableSample {
    fn is_current(&self, rows: u64) -> bool {
        rows.abs_diff(self.table_rows) <= self.table_rows / 10 && self.taken.elapsed() < LIFETIME
    }

    fn take(table: &TableHandle) -> Self {
        let used: Vec<_> = table.relation.used_segments().collect();
        let mut random = Random(u64::from(table.id().0) ^ table.row_count());
        let chosen: Vec<_> = random.spread(used.len(), MAX_SEGMENTS).map(|at| &used[at]).collect();
        let quota = SAMPLE_ROWS.div_ceil(chosen.len().max(1));
        let mut sample = Self {
            hot: Vec::new(),
            cold: Vec::new(),
            columns: table.def.columns.iter().map(|_| OnceLock::new()).collect(),
            table_rows: table.row_count(),
            taken: Instant::now(),
        };
        for (number, state) in chosen {
            match &**state {
                SegmentState::Empty => {}
                SegmentState::Hot(hot) => sample.take_hot(table, hot, quota, &mut random),
                SegmentState::Cold(cold) => {
                    let rows = cold_rows(cold, quota, &mut random);
                    sample.cold.push((*number, rows));
                }
            }
        }
        sample
    }

    fn take_hot(&mut self, table: &TableHandle, hot: &HotSegment, quota: usize, random: &mut Random) {
        let pages: Vec<_> = hot.pages().map(|(_, page)| page).collect();
        // A segment that is being filled counts for as much as it holds.
        let quota = (quota * pages.len()).div_ceil(table.relation.pages_per_segment());
        let wanted = quota.div_ceil(ROWS_PER_PAGE);
        let per_page = if pages.len() < wanted { quota.div_ceil(pages.len().max(1)) } else { ROWS_PER_PAGE };
        for at in random.spread(pages.len(), wanted) {
            let body = pages[at].body.read();
            let slots = body.slot_count(&table.layout);
            for slot in random.spread(slots, per_page).filter(|slot| body.is_live(*slot)) {
                let mut copy = RowBuf::default();
                body.in_place(&table.layout, slot).to_image(&mut copy.image);
                self.hot.push(copy);
            }
        }
    }

    pub fn rows(&self) -> usize {
        self.hot.len() + self.cold.iter().map(|(_, rows)| rows.len()).sum::<usize>()
    }

    /// A column's values, in the Arrow type of its SQL type; the rows are the same and in the same order for all columns.
    /// Rows that have left their block since are NULL.
    pub fn column(&self, table: &TableHandle, column: usize) -> Result<ArrayRef> {
        if let Some(done) = self.columns[column].get() {
            return Ok(done.clone());
        }
        let made = self.decode(table, column)?;
        Ok(self.columns[column].get_or_init(|| made).clone())
    }

    fn decode(&self, table: &TableHandle, column: usize) -> Result<ArrayRef> {
        let mut builder = ColumnBuilder::new(&table.def.columns[column].ty, self.rows());
        for row in &self.hot {
            builder.append_row(&row.row(&table.layout), column);
        }
        let mut buf = RowBuf::default();
        for (number, wanted) in &self.cold {
            let state = table.relation.segment(*number).state_owned();
            let SegmentState::Cold(cold) = &*state else {
                wanted.iter().for_each(|_| builder.append_null());
                continue;
            };
            let rows = cold.block.meta().rows();
            let columns = [(column, cold.block.column(column)?)];
            for &row in wanted {
                if row >= rows {
                    builder.append_null();
                    continue;
                }
                avocet_storage::rows::partial_image(&table.layout, &columns, row, &mut buf.image)?;
                builder.append_row(&buf.row(&table.layout), column);
            }
        }
        Ok(builder.finish())
    }
}

/// Places of rows in a block that are not deleted.
fn cold_rows(cold: &ColdSegment, quota: usize, random: &mut Random) -> Vec<usize> {
    let meta = cold.block.meta();
    let deletes = cold.deletes.body.read();
    let kept = |row: &usize| !deletes.is_deleted(meta.ordinals.ordinal_of(*row));
    random.spread(meta.rows(), quota).filter(kept).collect()
}

/// SplitMix64: the choice needs to be fair, not secret.
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as usize % bound.max(1)
    }

    /// At most `wanted` numbers below `count`, ascending: one from each of as many equal parts.
    fn spread(&mut self, count: usize, wanted: usize) -> impl Iterator<Item = usize> + use<> {
        let parts = wanted.min(count);
        let places: Vec<_> = (0..parts)
            .map(|part| {
                let (start, end) = (part * count / parts, (part + 1) * count / parts);
                start + self.below(end - start)
            })
            .collect();
        places.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_over_the_whole_range() {
        let mut random = Random(7);
        assert_eq!(random.spread(0, 10).count(), 0);
        assert_eq!(random.spread(3, 10).collect::<Vec<_>>(), [0, 1, 2]);
        let places: Vec<_> = random.spread(1000, 10).collect();
        for (part, place) in places.iter().enumerate() {
            assert!((part * 100..part * 100 + 100).contains(place));
        }
    }
}
