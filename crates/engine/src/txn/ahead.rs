//! Looking ahead: rows whose keys are known before they are needed.
//!
//! A lookup in a table larger than the processor's caches waits for memory some four times, one after the other: for the
//! hint, for the page, for the slot and its versions, for its strings. Lookups of different keys do not depend on each other. So a
//! transaction that knows which keys it is going to look up can have them all wait together:
//!
//! ```text
//!  key 1   hint ────▶ page ────▶ slot ────▶            key 1   hint ────▶ page ────▶ slot ────▶
//!  key 2                                   hint ────▶   key 2    hint ────▶ page ────▶ slot ────▶
//!          one after the other                                   ahead, step by step
//! ```
//!
//! Nothing is read for the transaction here, so nothing can be read wrongly: the lookups that follow only find their
//! memory near.

use avocet_base::RowId;
use avocet_storage::relation::pin;

use super::core::Txn;
use crate::table::{IndexHandle, TableHandle};

/// What will be read of the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ahead {
    /// Columns of fixed width alone.
    Numbers,
    /// Strings, too.
    Rows,
}

/// Keys of one unique index, and memory that is used again and again.
#[derive(Default)]
pub struct KeyList {
    keys: Vec<u8>,
    ends: Vec<usize>,
    places: Vec<RowId>,
}

impl KeyList {
    pub fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
    }

    /// Adds a key, whose bytes `encode` appends.
    pub fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.keys);
        self.ends.push(self.keys.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.keys[start..end])
    }
}

impl Txn {
    /// These keys will be looked up soon, by whatever read or change. A few dozen at a time: more would be gone from the
    /// caches before their turn.
    pub fn look_ahead(&self, table: &TableHandle, index: &IndexHandle, keys: &mut KeyList, what: Ahead) {
        let _pinned = pin();
        keys.iter().for_each(|key| index.hints.prefetch(key));
        let mut places = std::mem::take(&mut keys.places);
        places.clear();
        places.extend(keys.iter().filter_map(|key| index.hints.get(key)));
        places.iter().for_each(|&id| table.relation.prefetch_row(id));
        places.iter().for_each(|&id| table.relation.prefetch_slot(id));
        if what == Ahead::Rows {
            places.iter().for_each(|&id| table.relation.prefetch_strings(id));
        }
        keys.places = places;
    }
}
