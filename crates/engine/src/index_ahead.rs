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
use avocet_types::{IndexDef, IndexKind, IndexPart};
use hashbrown::HashSet;
use parking_lot::Mutex;

use crate::entries;
use crate::error::Result;
use crate::index_build::{Building, FILL, SortedEntries, push_entries, sorted_runs};
use crate::memory::{Held, MemoryBudget};
use crate::stop::Stop;
use crate::table::TableHandle;
use crate::touched::{MOST_NOTED, NOTED_BYTES, TouchedRows};

/// Indexes that are filled, but for what has changed meanwhile, and which nobody knows yet.
pub struct IndexesAhead<'e> {
    /// As it was when they were begun.
    table: Arc<TableHandle>,
    segments: HashSet<SegmentNo>,
    built: Vec<Built>,
    /// What the entries and the trees take.
    held: Mutex<Held<'e>>,
    /// Ends when this is dropped.
    watch: Watch,
}

struct Built {
    name: String,
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
        let mut handle = self.table.with_indexes((*self.table.def).clone(), self.table.indexes.clone());
        for gone in gone_indexes(&self.table.def.indexes, indexes) {
            handle = handle.dropping_index(gone.id);
        }
        for index in added_indexes(&self.table.def.indexes, indexes) {
            handle = handle.adding_index(index.clone(), &|_, _| None);
        }
        for at in (0..handle.indexes.len()).filter(|&at| !self.table.has_tree_of(&handle, at)) {
            let known = |number: &SegmentNo| self.segments.contains(number);
            let segments = self.table.relation.used_segments().filter(|(number, _)| known(number)).collect();
            let mut runs = sorted_runs(&Building::new(&handle, at, segments), &self.held, stop)?;
            let goes_on = |(n, _): &(usize, _)| n % Stop::EVERY != 0 || !stop.is_raised();
            let entries =
                SortedEntries::merged(&runs).enumerate().take_while(goes_on).map(|(_, entry)| entry);
            let index = &handle.indexes[at];
            index.tree.bulk_fill(entries, FILL);
            stop.check()?;
            runs.iter_mut().for_each(SortedEntries::sort_as_pushed);
            let (name, parts) = (index.def.name.clone(), index.parts.clone());
            self.built.push(Built { name, parts, tree: index.tree.clone(), runs });
        }
        Ok(())
    }

    /// The table is held alone again: what was touched. `None` if it is not the table any more that it was, or too much was.
    pub(crate) fn settle(&self, table: &Arc<TableHandle>) -> Option<Meanwhile> {
        let is_same =
            Arc::ptr_eq(&self.table.relation, &table.relation) && Arc::ptr_eq(&self.table.def, &table.def);
        is_same.then(|| self.watch.0.end())?.map(|touched| Meanwhile { touched })
    }

    /// The tree of an index, if one of these parts was built.
    pub(crate) fn tree(&self, index: &IndexDef, parts: &[IndexPart]) -> Option<Arc<BTree>> {
        let is_it = |built: &&Built| built.name == index.name && *built.parts == *parts;
        Some(self.built.iter().find(is_it)?.tree.clone())
    }

    /// Brings the index at `index` of `handle` to what the rows are now. False if its tree was not built here.
    ///
    /// # Errors
    /// `KeyTooLong`; `Interrupted`; what reading rows fails with.
    pub(crate) fn catch_up(
        &self,
        handle: &TableHandle,
        index: usize,
        meanwhile: &Meanwhile,
        stop: &Stop,
    ) -> Result<bool> {
        let index_handle = &handle.indexes[index];
        let is_its = |built: &&Built| Arc::ptr_eq(&built.tree, &index_handle.tree);
        let Some(built) = self.built.iter().find(is_its) else { return Ok(false) };
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
                entries::check_entry_len(entry.len())?;
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
        late.check_lengths()?;
        for (n, entry) in late.sorted().enumerate() {
            if n % Stop::EVERY == 0 {
                stop.check()?;
            }
            built.tree.insert(entry);
        }
        Ok(true)
    }
}

/// The indexes of a table that another definition of it does not have.
pub(crate) fn gone_indexes<'d>(
    old: &'d [IndexDef],
    new: &'d [IndexDef],
) -> impl Iterator<Item = &'d IndexDef> {
    old.iter().filter(|index| new.iter().all(|kept| kept.id != index.id))
}

/// The indexes that a table's new definition has more than it had, which have no ids yet: the primary key first, since the
/// entries of others end with it.
pub(crate) fn added_indexes<'d>(old: &[IndexDef], new: &'d [IndexDef]) -> Vec<&'d IndexDef> {
    let is_new = |index: &&IndexDef| old.iter().all(|known| known.id != index.id);
    let mut added: Vec<&IndexDef> = new.iter().filter(is_new).collect();
    added.sort_by_key(|index| index.kind != IndexKind::Primary);
    added
}
