//! Rows of column blocks as a table has them: their index entries, what they use of AUTO_INCREMENT.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use avocet_base::{RowId, SegmentNo};
use avocet_storage::hot::RowBuf;
use avocet_storage::index::MAX_KEY_LEN;
use avocet_storage::relation::{ColdSegment, SegmentState};

use crate::error::{EngineError, Result};
use crate::table::{TableHandle, split_entry};

/// Many index entries, to be sorted.
#[derive(Default)]
pub(crate) struct SortedEntries {
    /// The entries' bytes, in pieces that do not move: of very many, none is copied while they come, and none is there twice.
    chunks: Vec<Vec<u8>>,
    places: Vec<Place>,
}

/// Bytes of the first piece, and of those after it, at least.
const FIRST_CHUNK: usize = 64 << 10;
const CHUNK: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Place {
    /// The first sixteen bytes of the entry as a big-endian number, which is nearly always enough to compare by.
    head: u128,
    chunk: u32,
    start: u32,
    len: u32,
}

impl Place {
    fn entry<'e>(&self, chunks: &'e [Vec<u8>]) -> &'e [u8] {
        &chunks[self.chunk as usize][self.start as usize..][..self.len as usize]
    }
}

impl SortedEntries {
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let is_full = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() < MAX_KEY_LEN;
        if self.chunks.last().is_none_or(is_full) {
            self.chunks.push(Vec::with_capacity(if self.chunks.is_empty() { FIRST_CHUNK } else { CHUNK }));
        }
        let chunk = self.chunks.len() - 1;
        let bytes = &mut self.chunks[chunk];
        let start = bytes.len();
        write(bytes);
        let entry = &bytes[start..];
        let mut head = [0; 16];
        let known = entry.len().min(16);
        head[..known].copy_from_slice(&entry[..known]);
        let (chunk, start, len) = (chunk as u32, start as u32, entry.len() as u32);
        self.places.push(Place { head: u128::from_be_bytes(head), chunk, start, len });
    }

    /// What they take.
    pub fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        chunks + self.places.capacity() * size_of::<Place>()
    }

    pub fn sort(&mut self) {
        let Self { chunks, places } = self;
        places
            .sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| a.entry(chunks).cmp(b.entry(chunks))));
    }

    /// The entries in ascending order.
    pub fn sorted(&mut self) -> impl Iterator<Item = &[u8]> {
        self.sort();
        self.iter().map(|(_, entry)| entry)
    }

    /// Puts them back in the order in which they came.
    pub fn sort_as_pushed(&mut self) {
        self.places.sort_unstable_by_key(|place| (place.chunk, place.start));
    }

    /// The entry of a row, if they came in the order of their rows and are in it.
    pub fn entry_of(&self, id: RowId) -> Option<&[u8]> {
        let entry = |place: &Place| place.entry(&self.chunks);
        let at = self.places.binary_search_by_key(&id, |place| split_entry(entry(place)).1).ok()?;
        Some(entry(&self.places[at]))
    }

    fn iter(&self) -> impl Iterator<Item = (u128, &[u8])> {
        self.places.iter().map(|place| (place.head, place.entry(&self.chunks)))
    }

    /// The entries of several runs, each of which is sorted, in ascending order.
    pub fn merged(runs: &[Self]) -> impl Iterator<Item = &[u8]> {
        let mut rests: Vec<_> = runs.iter().map(Self::iter).collect();
        let firsts =
            rests.iter_mut().enumerate().filter_map(|(run, rest)| Some(Reverse((rest.next()?, run))));
        let mut heap: BinaryHeap<_> = firsts.collect();
        std::iter::from_fn(move || {
            let mut least = heap.peek_mut()?;
            let Reverse(((_, entry), run)) = *least;
            match rests[run].next() {
                Some(next) => *least = Reverse((next, run)),
                None => drop(PeekMut::pop(least)),
            }
            Some(entry)
        })
    }
}

/// Visits the index entries of all rows of a block that are not deleted for everyone, each with whether its
/// key has a NULL in it.
pub(crate) fn block_entries(
    table: &TableHandle,
    index: usize,
    segment: SegmentNo,
    cold: &ColdSegment,
    visit: &mut dyn FnMut(&[u8], bool),
) -> Result<()> {
    let handle = &table.indexes[index];
    let ordinals = &cold.block.meta().ordinals;
    let deleted = cold.deletes.body.read().all_settled().clone();
    let columns = handle
        .parts
        .iter()
        .map(|part| Ok((part.column, cold.block.column(part.column)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut buf = RowBuf::default();
    let mut entry = Vec::new();
    for row in 0..ordinals.len() {
        let ordinal = ordinals.ordinal_of(row);
        if deleted.contains(ordinal.into()) {
            continue;
        }
        avocet_storage::rows::partial_image(&table.layout, &columns, row, &mut buf.image)?;
        let image = buf.row(&table.layout);
        entry.clear();
        handle.entry(&image, RowId::new(segment, ordinal), &mut entry);
        visit(&entry, handle.has_null(&image));
    }
    Ok(())
}

/// Takes the index entries of a block that is given up out again.
pub(crate) fn remove_entries(table: &TableHandle, segment: SegmentNo) {
    let state = table.relation.segment(segment).state_owned();
    let SegmentState::Cold(cold) = &*state else { return };
    for (n, index) in table.indexes.iter().enumerate() {
        // If the block can not be read, entries too many stay; they lead to an empty segment, which is harmless.
        let _ = block_entries(table, n, segment, cold, &mut |entry, _| {
            index.tree.remove(entry);
        });
    }
}

/// Later generated AUTO_INCREMENT values are greater than those in a block.
pub(crate) fn note_auto_increment(table: &TableHandle, segment: SegmentNo) -> Result<()> {
    let Some(column) = table.def.auto_increment_column() else { return Ok(()) };
    let state = table.relation.segment(segment).state_owned();
    let SegmentState::Cold(cold) = &*state else { return Ok(()) };
    let bounds = cold.block.meta().columns[column].bounds.as_ref();
    let greatest = bounds.and_then(|bounds| bounds.max.as_integer()?.to_i128());
    if let Some(used) = greatest.and_then(|v| u64::try_from(v).ok()) {
        table.note_auto_increment(used);
    }
    Ok(())
}

/// The rows of arrays at some positions, for blocks that are rewritten.
pub(crate) fn take_rows(array: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    take(array, rows, None).map_err(|e| EngineError::corrupt("a column", e))
}
