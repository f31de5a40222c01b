//! How many distinct values the first columns of an index have, as SHOW INDEX tells: counted where the index is small, else estimated
//! by bounded work.
//!
//! Entries are in order, so each distinct prefix but the first is one boundary between two neighbours. Large indexes are asked in
//! two ways: few distinct prefixes are counted by jumping from each to the next, at most [`MAX_JUMPS`] of them; of many, the share
//! of boundaries among the neighbours in [`LEAVES`] leaves is scaled to all entries. NULLs are one value, as InnoDB has it
//! (`innodb_stats_method = nulls_equal`).

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use avocet_storage::index::{Direction, ScanScratch};
use avocet_types::key::successor;

use crate::sample::Random;
use crate::table::{IndexHandle, TableHandle};

/// Entries that are counted one by one: some 0.5 ms.
const MAX_COUNTED: u64 = 16_384;
/// An index of so many is counted each time that it is asked for.
const MAX_COUNTED_ANEW: u64 = 1024;
const MAX_JUMPS: u64 = 256;
const LEAVES: usize = 64;
const LIFETIME: Duration = Duration::from_secs(60);

/// Distinct prefixes of one, two, … columns.
struct Distinct {
    counts: Box<[u64]>,
    /// Of the index when they were counted.
    entries: u64,
    taken: Instant,
}

/// Where an index keeps them.
#[derive(Default)]
pub(crate) struct DistinctCache(ArcSwapOption<Distinct>);

impl TableHandle {
    /// By column of the index, how many distinct values the columns up to it have, about.
    pub fn cardinality(&self, index: &IndexHandle) -> Box<[u64]> {
        let rows = self.row_count();
        let mut counts: Box<[u64]> =
            index.distinct().counts.iter().map(|count| (*count).clamp(rows.min(1), rows)).collect();
        let is_null = |column: usize| self.def.columns[column].nullable;
        if index.def.kind.is_unique()
            && !index.def.parts.iter().any(|part| is_null(part.column))
            && let Some(last) = counts.last_mut()
        {
            *last = rows;
        }
        counts
    }

    /// ANALYZE TABLE: what was counted is counted anew.
    pub fn analyze(&self) {
        self.indexes.iter().for_each(|index| index.distinct.0.store(None));
    }
}

impl IndexHandle {
    fn distinct(&self) -> Arc<Distinct> {
        let entries = self.entries();
        if let Some(known) = self.distinct.0.load_full()
            && entries > MAX_COUNTED_ANEW
            && entries.abs_diff(known.entries) <= entries / 10
            && known.taken.elapsed() < LIFETIME
        {
            return known;
        }
        let counts = if entries <= MAX_COUNTED { self.counted() } else { self.estimated(entries) };
        let known = Arc::new(Distinct { counts, entries, taken: Instant::now() });
        self.distinct.0.store(Some(known.clone()));
        known
    }

    fn counted(&self) -> Box<[u64]> {
        let mut boundaries = Boundaries::new(self);
        let mut left = 2 * MAX_COUNTED;
        let mut scratch = ScanScratch::new();
        let ascending = Direction::Ascending;
        self.tree.scan(Bound::Unbounded, Bound::Unbounded, ascending, &mut scratch, &mut |entry| {
            boundaries.see(entry);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        boundaries.counts.iter().map(|count| count + 1).collect()
    }

    fn estimated(&self, entries: u64) -> Box<[u64]> {
        let (mut boundaries, mut scratch) = (Boundaries::new(self), ScanScratch::new());
        let mut random = Random::new(u64::from(self.def.id.0) ^ entries);
        for _ in 0..LEAVES {
            boundaries.last.clear();
            self.tree.visit_leaf(&mut |count| random.below(count), &mut scratch, &mut |entry| {
                boundaries.see(entry);
            });
            // Leaves are divided where little tells their entries apart: the neighbour in the next one counts as well.
            let last = boundaries.last.clone();
            let (behind, ascending) = (Bound::Excluded(&last[..]), Direction::Ascending);
            self.tree.scan(behind, Bound::Unbounded, ascending, &mut scratch, &mut |entry| {
                boundaries.see(entry);
                ControlFlow::Break(())
            });
        }
        let Boundaries { counts, pairs, .. } = boundaries;
        let share = |count: u64| count as f64 / pairs.max(1) as f64;
        let mut least = 1;
        let mut jumps = true;
        let estimates = counts.iter().enumerate().map(|(part, count)| {
            let exact = if jumps { self.jumped(part, &mut scratch) } else { None };
            // Where these are too many to be counted, those with more columns are.
            jumps = exact.is_some();
            let by_share = || (1.0 + share(*count) * (entries - 1) as f64).max(MAX_JUMPS as f64) as u64;
            least = exact.unwrap_or_else(by_share).max(least);
            least
        });
        estimates.collect()
    }

    /// The distinct values of the columns up to `part`, if these are not many.
    fn jumped(&self, part: usize, scratch: &mut ScanScratch) -> Option<u64> {
        let (mut from, mut ends) = (Vec::new(), Vec::new());
        for count in 0..=MAX_JUMPS {
            let (mut found, mut is_key) = (false, true);
            let lower = Bound::Included(&from[..]);
            let mut next = Vec::new();
            self.tree.scan(lower, Bound::Unbounded, Direction::Ascending, scratch, &mut |entry| {
                found = true;
                is_key = self.keys.ends(entry, part + 1, &mut ends);
                next.extend_from_slice(&entry[..ends.last().copied().unwrap_or(0)]);
                ControlFlow::Break(())
            });
            if !is_key {
                return None;
            }
            if !found || !successor(&mut next) {
                return Some(count + u64::from(found));
            }
            from = next;
        }
        None
    }
}

/// Counts, by part, where an entry differs from the one before it up to that part.
struct Boundaries<'i> {
    index: &'i IndexHandle,
    counts: Vec<u64>,
    /// Neighbours compared.
    pairs: u64,
    last: Vec<u8>,
    ends: Vec<usize>,
}

impl<'i> Boundaries<'i> {
    fn new(index: &'i IndexHandle) -> Self {
        let counts = vec![0; index.def.parts.len()];
        Self { index, counts, pairs: 0, last: Vec::new(), ends: Vec::new() }
    }

    fn see(&mut self, entry: &[u8]) {
        if !self.last.is_empty() && self.index.keys.ends(entry, self.counts.len(), &mut self.ends) {
            let common = entry.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
            self.pairs += 1;
            for (count, end) in self.counts.iter_mut().zip(&self.ends) {
                *count += u64::from(common < *end);
            }
        }
        self.last.clear();
        self.last.extend_from_slice(entry);
    }
}

#[cfg(test)]
mod tests {
    use avocet_types::schema::{ColumnDef, IndexDef, TableDef};
    use avocet_types::{Collation, Datum, SqlType};

    use super::*;

    fn index() -> IndexHandle {
        let text = SqlType::VarChar { len: 20, collation: Collation::DEFAULT };
        let columns = vec![ColumnDef::new("a", text).nullable(), ColumnDef::new("b", SqlType::INT)];
        let mut def = IndexDef::secondary("i", &[0, 1]);
        def.parts[1].descending = true;
        IndexHandle::new(&TableDef::new("d", "t", columns, vec![def.clone()]), def)
    }

    fn fill(index: &IndexHandle, rows: u64, texts: u64, numbers: u64) {
        for row in 0..rows {
            let text = format!("x{}", row % texts);
            let text = if row % texts == 0 { Datum::Null } else { Datum::str(&text) };
            let mut entry = Vec::new();
            assert!(
                index.keys.encode_prefix(&[text, Datum::Int((row / texts % numbers) as i64)], &mut entry)
            );
            entry.extend_from_slice(&row.to_be_bytes());
            index.tree.insert(&entry);
        }
    }

    #[test]
    fn small_indexes_and_few_values_are_counted() {
        let small = index();
        assert_eq!(*small.counted(), [1, 1]);
        fill(&small, 1000, 7, 13);
        assert_eq!(*small.distinct().counts, [7, 91]);
        let large = index();
        fill(&large, 40_000, 100, 2);
        assert_eq!(*large.distinct().counts, [100, 200]);
    }

    #[test]
    fn many_values_are_estimated() {
        let index = index();
        fill(&index, 200_000, 20_000, 10);
        let counts = index.distinct().counts.clone();
        assert!((15_000..25_000).contains(&counts[0]), "{counts:?}");
        assert!((190_000..=200_000).contains(&counts[1]), "{counts:?}");
    }

    /// Whose leaves begin with new values more often than others do.
    #[test]
    fn values_of_as_many_entries_as_a_leaf_has_are_estimated() {
        let index = index();
        fill(&index, 300_000, 1500, 1);
        let counts = index.distinct().counts.clone();
        assert!((750..3000).contains(&counts[0]), "{counts:?}");
    }
}
