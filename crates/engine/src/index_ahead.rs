//! Building indexes while others go on with the table.
//!
//! ```text
//!  alone      ─ watch the table, take its segments ─┐
//!  with others: the entries of these segments' rows are sorted and fill a tree; transactions that end note the rows that they
//!               have touched
//!  alone again ─ of rows that were touched the entries are replaced by those that they have now; new segments are added
//! ```
//!
//! So others wait for as long as there are changes to catch up with, and not for the rows that there are.
//!
//! Invariants:
//! 1. Whoever changes a row ends before the table is held again, and has noted the row by then. So what is not noted
//!    was the same all the while, however it was read.
//! 2. Row ids are given out once: a row that came meanwhile is in a new segment, or is noted.

use std::sync::Arc;

use avocet_base::{RowId, SegmentNo};
use avocet_storage::hot::RowBuf;
use avocet_storage::index::BTree;
use avocet_types::{IndexDef, IndexPart};
use hashbrown::HashSet;
use parking_lot::Mutex;

use crate::block_rows::SortedEntries;
use crate::error::Result;
use crate::index_build::{Building, FILL, push_entries, sorted_runs};
use crate::memory::{Held, MemoryBudget};
use crate::stop::Stop;
use crate::table::TableHandle;
use crate::touched::{MOST_NOTED, NOTED_BYTES, TouchedRows};

/// Indexes that are filled, but for what has changed meanwhile, and which nobody knows yet.
pub struct IndexesAhead<'e> {
    /// As it was when they were begun.
    table: Arc<TableHandle>,
    segments: HashSet<SegmentNo>,
    /// In the order of their definitions.
    built: Vec<Built>,
    /// What the entries and the trees take.
    held: Mutex<Held<'e>>,
    /// Ends when this is dropped.
    watch: Watch,
}

struct Built {
    /// What its entries are ordered by.
    parts: Box<[IndexPart]>,
    tree: Arc<BTree>,
    /// The entries in it, each run in the order of their rows.
    runs: Vec<SortedEntries>,
}

impl Built {
    fn entry_of(&self, id: RowId) -> Option<&[u8]> {
        self.runs.iter().find_map(|run| run.entry_of(id))
    }
}

struct Watch(Arc<TouchedRows>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What has become of the rows while indexes were built.
pub(crate) struct Meanwhile {
    touched: HashSet<RowId>,
}

impl<'e> IndexesAhead<'e> {
    /// Watches a table, which its caller holds alone. `None` if somebody does so already, or there is no memory for it.
    pub(crate) fn begin(table: &Arc<TableHandle>, memory: &'e MemoryBudget) -> Option<Self> {
        let mut held = memory.hold_nothing();
        if !held.try_grow(MOST_NOTED * NOTED_BYTES) || !table.touched.begin() {
            return None;
        }
        let segments = table.relation.used_segments().map(|(number, _)| number).collect();
        let watch = Watch(table.touched.clone());
        Some(Self { table: table.clone(), segments, built: Vec::new(), held: Mutex::new(held), watch })
    }

    /// Fills the indexes that the table does not have yet, of all that it is to have; others may use the table.
    pub(crate) fn build(&mut self, indexes: &[IndexDef], stop: &Stop) -> Result<()> {
        let old = &self.table.def.indexes;
        // As they will be made: the parts of one follow from those that are there before it.
        let mut handle = self.table.with_indexes((*self.table.def).clone(), self.table.indexes.clone());
        for gone in old.iter().filter(|index| indexes.iter().all(|kept| kept.id != index.id)) {
            handle = handle.dropping_index(gone.id);
        }
        for index in indexes.iter().filter(|index| old.iter().all(|known| known.id != index.id)) {
            handle = handle.adding_index(index.clone(), None);
            let at = handle.indexes.iter().position(|i| i.def.id == index.id && i.def.name == index.name);
            let at = at.expect("just added");
            let known = |number: &SegmentNo| self.segments.contains(number);
            let segments = self.table.relation.used_segments().filter(|(number, _)| known(number)).collect();
            let mut runs = sorted_runs(&Building::new(&handle, at, segments), &self.held, stop)?;
            let goes_on = |(n, _): &(usize, _)| n % Stop::EVERY != 0 || !stop.is_raised();
            let entries =
                SortedEntries::merged(&runs).enumerate().take_while(goes_on).map(|(_, entry)| entry);
            let tree = handle.indexes[at].tree.clone();
            tree.bulk_fill(entries, FILL);
            stop.check()?;
            runs.iter_mut().for_each(SortedEntries::sort_as_pushed);
            self.built.push(Built { parts: handle.indexes[at].parts.clone(), tree, runs });
        }
        Ok(())
    }

    /// The table is held alone again: what was touched. `None` if it is not the table any more that it was, or too much was.
    pub(crate) fn settle(&self, table: &Arc<TableHandle>) -> Option<Meanwhile> {
        let is_same =
            Arc::ptr_eq(&self.table.relation, &table.relation) && Arc::ptr_eq(&self.table.def, &table.def);
        is_same.then(|| self.watch.0.end())?.map(|touched| Meanwhile { touched })
    }

    /// The tree of the `number`th index, if that has these parts.
    pub(crate) fn tree(&self, number: usize, parts: &[IndexPart]) -> Option<Arc<BTree>> {
        let built = self.built.get(number).filter(|built| *built.parts == *parts)?;
        Some(built.tree.clone())
    }

    /// Brings the `number`th index, which is the one at `index` of `handle`, to what the rows are now.
    pub(crate) fn catch_up(
        &self,
        number: usize,
        handle: &TableHandle,
        index: usize,
        meanwhile: &Meanwhile,
        stop: &Stop,
    ) -> Result<()> {
        let (built, index_handle) = (&self.built[number], &handle.indexes[index]);
        let (mut buf, mut entry) = (RowBuf::default(), Vec::new());
        for (n, id) in meanwhile.touched.iter().enumerate() {
            if n % Stop::EVERY == 0 {
                stop.check()?;
            }
            if !self.segments.contains(&id.segment()) {
                continue;
            }
            if let Some(before) = built.entry_of(*id) {
                built.tree.remove(before);
            }
            if handle.relation.newest_row(*id, &mut buf)? {
                entry.clear();
                index_handle.entry(&buf.row(&handle.layout), *id, &mut entry);
                built.tree.insert(&entry);
            }
        }
        let mut late = SortedEntries::default();
        for (number, state) in handle.relation.used_segments() {
            stop.check()?;
            if !self.segments.contains(&number) {
                push_entries(handle, index, number, &state, &mut late)?;
            }
        }
        for (n, entry) in late.sorted().enumerate() {
            if n % Stop::EVERY == 0 {
                stop.check()?;
            }
            built.tree.insert(entry);
        }
        Ok(())
    }
}
