//! Index entries in order: collected in pieces of memory that do not move, sorted, and merged with other runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use avocet_base::RowId;
use avocet_storage::index::MAX_KEY_LEN;

use crate::entries;
use crate::error::Result;
use crate::table::split_entry;

/// Many index entries, to be sorted.
#[derive(Default)]
pub(crate) struct SortedEntries {
    /// The entries' bytes, in pieces that do not move: of very many, none is copied while they come, and none is there twice.
    chunks: Vec<Vec<u8>>,
    places: Vec<Place>,
    /// Bytes of the longest.
    longest: usize,
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
        self.longest = self.longest.max(entry.len());
        let (chunk, start, len) = (chunk as u32, start as u32, entry.len() as u32);
        self.places.push(Place { head: u128::from_be_bytes(head), chunk, start, len });
    }

    /// Whether a tree takes all of them.
    ///
    /// # Errors
    /// `KeyTooLong`.
    pub fn check_lengths(&self) -> Result<()> {
        entries::check_entry_len(self.longest)
    }

    /// What they take.
    pub fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        chunks + self.places.capacity() * size_of::<Place>()
    }

    pub fn sort(&mut self) {
        let Self { chunks, places, .. } = self;
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
