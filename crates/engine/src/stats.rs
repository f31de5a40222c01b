//! Statistics of a table, for planning: from the metadata of its column blocks, scaled to all rows.

use avocet_storage::cold::{BlockMeta, Bounds, ColdType, ColdValue, DistinctSketch};
use avocet_storage::relation::SegmentState;

use crate::table::TableHandle;

#[derive(Clone, Debug, Default)]
pub struct TableStats {
    /// Committed ones, about: those of transactions that run, or that an older snapshot still sees, are not counted.
    pub rows: u64,
    /// No snapshot from before sees more rows: there are not more places for them.
    pub most_rows: u64,
    /// One per column; empty for a column of which nothing is known.
    pub columns: Vec<ColumnStats>,
    /// Rows that are in column blocks.
    pub cold_rows: u64,
    /// Paths into documents at which every row has a value of one type or none; only if all rows are accounted for.
    pub paths: Vec<PathStats>,
}

/// What is known of the values at a path.
#[derive(Clone, Debug)]
pub struct PathStats {
    /// The position of the documents.
    pub column: usize,
    pub names: Box<[Box<str>]>,
    pub ty: ColdType,
    /// `None` if no row has a value.
    pub bounds: Option<Bounds>,
}

#[derive(Clone, Debug, Default)]
pub struct ColumnStats {
    /// Least and greatest value, in the form of column blocks; only if all rows are accounted for.
    pub min: Option<ColdValue<'static>>,
    pub max: Option<ColdValue<'static>>,
    /// Share of NULLs, 0 to 1.
    pub null_fraction: Option<f64>,
    /// Distinct values, estimated.
    pub distinct: Option<u64>,
}

impl TableHandle {
    pub fn stats(&self) -> TableStats {
        let columns = self.def.columns.len();
        let mut cold_rows = 0u64;
        let mut nulls = vec![0u64; columns];
        let mut bounds: Vec<Option<Bounds>> = vec![None; columns];
        let mut sketches: Vec<Vec<DistinctSketch>> = vec![Vec::new(); columns];
        let mut paths: Option<Vec<PathStats>> = None;
        let mut any_hot = false;
        let mut most_rows = 0;
        for (_, state) in self.relation.used_segments() {
            let cold = match &*state {
                SegmentState::Cold(cold) => cold,
                SegmentState::Hot(hot) => {
                    let pages = hot.pages().count();
                    any_hot |= pages > 0;
                    most_rows += (pages * self.relation.slots_per_page()) as u64;
                    continue;
                }
                SegmentState::Empty => continue,
            };
            let block_rows = cold.block.meta().rows() as u64;
            cold_rows += block_rows;
            most_rows += block_rows;
            match &mut paths {
                None => paths = Some(paths_of(cold.block.meta())),
                Some(paths) => paths.retain_mut(|path| path.goes_on(cold.block.meta())),
            }
            for (c, meta) in cold.block.meta().columns.iter().enumerate() {
                nulls[c] += u64::from(meta.nulls);
                merge_bounds(&mut bounds[c], meta.bounds.as_ref());
                sketches[c].extend(meta.distinct.sketch());
            }
        }
        let rows = self.row_count();
        let column = |c: usize| {
            let distinct = (!sketches[c].is_empty()).then(|| {
                let seen = DistinctSketch::union(&sketches[c]).estimate().round().max(1.0);
                // A column that is nearly unique where it was looked at is taken to be so everywhere.
                let scale = if seen >= 0.9 * cold_rows as f64 { rows as f64 / cold_rows as f64 } else { 1.0 };
                (seen * scale.max(1.0)).min(rows.max(1) as f64) as u64
            });
            let known = bounds[c].as_ref().filter(|_| !any_hot);
            ColumnStats {
                min: known.filter(|b| b.min_exact).map(|b| b.min.clone()),
                max: known.filter(|b| b.max_exact).map(|b| b.max.clone()),
                null_fraction: (cold_rows > 0).then(|| nulls[c] as f64 / cold_rows as f64),
                distinct,
            }
        };
        let paths = paths.filter(|_| !any_hot).unwrap_or_default();
        TableStats { rows, most_rows, cold_rows, columns: (0..columns).map(column).collect(), paths }
    }
}

/// The paths of a block whose column is all that there is of them.
fn paths_of(meta: &BlockMeta) -> Vec<PathStats> {
    let whole = meta.paths.iter().filter(|path| path.marks.is_none());
    let stats = whole.map(|path| PathStats {
        column: path.column.into(),
        names: path.names.clone(),
        ty: path.values.ty,
        bounds: path.values.bounds.clone(),
    });
    stats.collect()
}

impl PathStats {
    /// Whether it is so in another block, too, whose bounds are added.
    fn goes_on(&mut self, meta: &BlockMeta) -> bool {
        let is_it = |path: &&avocet_storage::cold::PathColumn| {
            usize::from(path.column) == self.column && path.names == self.names
        };
        let Some(path) = meta.paths.iter().find(is_it) else { return false };
        if path.marks.is_some() || path.values.ty != self.ty {
            return false;
        }
        merge_bounds(&mut self.bounds, path.values.bounds.as_ref());
        true
    }
}

/// So many segments are looked at for the size of rows.
const SEGMENTS_FOR_SIZE: usize = 4;

impl TableHandle {
    /// What a row takes, about, by some of the table's segments: of column blocks compressed, of hot pages as it is.
    pub fn row_bytes(&self) -> usize {
        let step = (self.relation.segments() as usize / SEGMENTS_FOR_SIZE).max(1);
        let (mut bytes, mut rows) = (0, 0);
        for (_, state) in self.relation.used_segments().step_by(step).take(SEGMENTS_FOR_SIZE) {
            match &*state {
                SegmentState::Cold(cold) => {
                    bytes += cold.block.meta().data_len as usize;
                    rows += cold.block.meta().rows();
                }
                SegmentState::Hot(hot) => {
                    for (_, page) in hot.pages() {
                        let page = page.body.read();
                        bytes += page.live_count() * self.layout.fixed_size + page.heap_bytes();
                        rows += page.live_count();
                    }
                }
                SegmentState::Empty => {}
            }
        }
        bytes / rows.max(1)
    }
}

fn merge_bounds(all: &mut Option<Bounds>, one: Option<&Bounds>) {
    let Some(one) = one else { return };
    match all {
        None => *all = Some(one.clone()),
        Some(all) => {
            if one.min.compare(&all.min).is_some_and(std::cmp::Ordering::is_lt) {
                (all.min, all.min_exact) = (one.min.clone(), one.min_exact);
            }
            if one.max.compare(&all.max).is_some_and(std::cmp::Ordering::is_gt) {
                (all.max, all.max_exact) = (one.max.clone(), one.max_exact);
            }
        }
    }
}
