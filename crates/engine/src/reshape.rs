//! Other columns under the same rows: what ALTER TABLE does to a table without writing its blocks again.
//!
//! A table whose columns change gets another relation with the same row ids. Its column segments are the old one's blocks, seen
//! with the new columns (`types::stored`, `storage::cold::ColumnsView`), and its hot rows are copied page by page to the new
//! layout. Index entries lead to row ids, and stay. A change of names and defaults alone keeps the relation.
//!
//! Invariants:
//! 1. Nobody uses the table, and no row has versions besides its newest: what is collected later would not know where the row
//!    went. (What a snapshot from before would see, it may not see: error 1412.)
//! 2. What comes out depends on the rows and the definition alone, so the log has only the definition: recovery does the same.

use std::sync::Arc;

use avocet_base::SegmentNo;
use avocet_storage::relation::{ColdSegment, Deletes, HotSegment, Relation, SegmentState};
use avocet_types::row::Storage;
use avocet_types::{Datum, IndexDef, RowLayout, RowRef, TableDef};

use crate::catalog::renew_indexes;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// By column of the new definition: where it was in the old one, if it was there.
fn sources(old: &TableDef, new: &TableDef) -> Vec<Option<usize>> {
    let was_at = |position| (0..old.columns.len()).find(|at| old.stored_position(*at) == position);
    (0..new.columns.len()).map(|at| was_at(new.stored_position(at))).collect()
}

impl TableHandle {
    /// The same rows under a definition that was made of the table's by [`TableDef::stored_after`], whose indexes are among the
    /// table's, on the same columns; those whose entries become others begin anew, without any. `stop` is asked from time to time.
    pub(crate) fn reshaped(&self, def: TableDef, stop: &dyn Fn() -> Result<()>) -> Result<Self> {
        let sources = sources(&self.def, &def);
        let misfit = |why: &str| EngineError::corrupt(self.name(), format!("its new definition: {why}"));
        let storage = |def: &TableDef, at: usize| Storage::of(&def.columns[at].ty);
        let fits = |(at, source): (usize, &Option<usize>)| {
            source.is_none_or(|source| storage(&self.def, source) == storage(&def, at))
        };
        if !sources.iter().enumerate().all(fits) {
            return Err(misfit("a column has another type"));
        }
        let moved = |column: usize| sources.iter().position(|source| *source == Some(column));
        let index = |new: &IndexDef| {
            let old = self.indexes.iter().find(|old| old.def.id == new.id)?;
            old.moved(&def, new.clone(), &moved).map(Arc::new)
        };
        let indexes = def.indexes.iter().map(index).collect::<Option<Vec<_>>>();
        let mut indexes = indexes.ok_or_else(|| misfit("an index is new, or on a column that is gone"))?;
        // The primary key may have become another one, or too long to be a part of others.
        renew_indexes(&def, &mut indexes, &|_, _| None);
        let in_place = |(at, source): (usize, &Option<usize>)| *source == Some(at);
        let is_same = sources.len() == self.def.columns.len() && sources.iter().enumerate().all(in_place);
        if is_same {
            return Ok(self.with_indexes(def, indexes));
        }
        let new = self.with_relation(def, indexes);
        new.take_rows(self, &sources, stop)?;
        Ok(new)
    }

    fn take_rows(&self, old: &Self, sources: &[Option<usize>], stop: &dyn Fn() -> Result<()>) -> Result<()> {
        let (from, to) = (&old.relation, &self.relation);
        if let Some(last) = from.segments().checked_sub(1) {
            to.note_segment(SegmentNo(last));
        }
        to.note_rows_before(from.rows_before());
        let stored = self.def.stored.as_ref();
        let before = |at: usize| match (sources[at], stored) {
            (None, Some(stored)) => stored.columns[at].before.clone(),
            _ => Datum::Null,
        };
        let before: Vec<Datum<'_>> = (0..sources.len()).map(before).collect();
        let mut rows = NewRows { layout: &self.layout, sources, empty: Vec::new(), image: Vec::new() };
        self.layout.encode(&before, &mut rows.empty);
        for (number, state) in from.used_segments() {
            stop()?;
            match &*state {
                SegmentState::Empty => {}
                SegmentState::Hot(hot) => rows.copy(from, number, hot, to),
                SegmentState::Cold(cold) => {
                    let written = cold.block.as_written();
                    let gone = (**cold.deletes.body.read().all_settled()).clone();
                    let segment =
                        ColdSegment::new(self.view(Arc::new(written))?, None, Deletes::fresh_with(gone));
                    to.segment(number).replace(SegmentState::Cold(segment));
                }
            }
        }
        Ok(())
    }
}

/// Makes rows of a new layout.
struct NewRows<'t> {
    layout: &'t RowLayout,
    sources: &'t [Option<usize>],
    /// A row with the values of the new columns, and NULL in the others.
    empty: Vec<u8>,
    image: Vec<u8>,
}

impl NewRows<'_> {
    /// Copies the rows of a hot segment.
    fn copy(&mut self, from: &Relation, number: SegmentNo, hot: &HotSegment, to: &Relation) {
        to.open_hot(number);
        let state = to.segment(number).state_owned();
        let SegmentState::Hot(new) = &*state else { unreachable!("it was empty until now") };
        for (number, page) in hot.pages() {
            let body = page.body.read();
            for slot in (0..from.slots_per_page()).filter(|slot| body.is_live(*slot)) {
                self.make(&body.in_place(&from.layout, slot));
                let (page, slot) = to.place(from.ordinal(number, slot));
                to.page_or_new(new, page).body.write().place(self.layout, slot, &self.image);
            }
        }
    }

    fn make(&mut self, row: &RowRef<'_>) {
        self.image.clear();
        self.image.extend_from_slice(&self.empty);
        for (at, source) in self.sources.iter().enumerate() {
            if let Some(source) = source {
                self.layout.put_stored(&mut self.image, 0, at, row.stored(*source));
            }
        }
    }
}
