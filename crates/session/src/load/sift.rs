//! Which rows of a block have a key that is there already, or that another of them has. The others can go to a column block
//! although these have to go one by one.
//!
//! Rows change places by that: the others are inserted first. Nobody can tell, as these have no key in common with the
//! others, unless what becomes of a row changes a key or touches rows that refer to it: then nothing is sifted.
//!
//! A key counts as there as long as the index has an entry for it, so a row may be taken for one of these in vain. The
//! other way round, a key that somebody inserts meanwhile is found by the check of the block.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use avocet_engine::{IndexHandle, ReadScratch, TableHandle};
use avocet_types::arrow_map::datum_at;
use avocet_types::error::{ErrorCode, SqlError};

use crate::insert::Inserter;
use crate::state::Session;

/// For each row, in order, whether it has to go by itself.
pub(super) struct Sifted {
    conflicts: Vec<bool>,
    count: usize,
}

/// Whether the order of rows that have no key in common can be told.
pub(super) fn may_sift(table: &TableHandle, inserter: &Inserter<'_>) -> bool {
    let unique = || unique_indexes(table);
    let whole = unique().all(|index| index.def.parts.iter().all(|part| part.prefix_len.is_none()));
    let is_key = |column: usize| unique().any(|index| index.def.parts.iter().any(|p| p.column == column));
    whole && !(table.is_parent() && table.is_child()) && !inserter.updated_columns().any(is_key)
}

fn unique_indexes(table: &TableHandle) -> impl Iterator<Item = &Arc<IndexHandle>> {
    table.indexes().iter().filter(|index| index.def.kind.is_unique())
}

impl Sifted {
    pub fn of(session: &Session, table: &TableHandle, batches: &[RecordBatch]) -> Result<Self, SqlError> {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let mut conflicts = vec![false; rows];
        let mut scratch = ReadScratch::default();
        for index in unique_indexes(table) {
            // Keys stand for themselves by their hashes: of two that have the same one, both go by themselves.
            let (hasher, mut seen) = (RandomState::new(), HashMap::with_capacity(rows));
            let (mut key, mut at) = (Vec::new(), 0);
            for batch in batches {
                session.info.interrupt.check()?;
                for row in 0..batch.num_rows() {
                    if encode(index, table, batch, row, &mut key) {
                        match seen.entry(hasher.hash_one(&key)) {
                            Entry::Occupied(first) => {
                                conflicts[*first.get()] = true;
                                conflicts[at] = true;
                            }
                            Entry::Vacant(none) => drop(none.insert(at)),
                        }
                        conflicts[at] |= index.may_have_key(&key, &mut scratch);
                    }
                    at += 1;
                }
            }
        }
        let count = conflicts.iter().filter(|&&conflicts| conflicts).count();
        Ok(Self { conflicts, count })
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether what is left is worth a block.
    pub fn leaves_most(&self) -> bool {
        self.count <= self.conflicts.len() / 2
    }

    /// The rows that go to a block, and those that go one by one.
    pub fn split(&self, batches: &[RecordBatch]) -> Result<(Vec<RecordBatch>, Vec<RecordBatch>), SqlError> {
        let mut from = 0;
        let (mut others, mut these) = (Vec::new(), Vec::new());
        for batch in batches {
            let part = &self.conflicts[from..from + batch.num_rows()];
            from += batch.num_rows();
            let take = |wanted: bool, to: &mut Vec<RecordBatch>| {
                let mask: BooleanArray = part.iter().map(|&conflicts| Some(conflicts == wanted)).collect();
                let taken = filter_record_batch(batch, &mask)
                    .map_err(|error| ErrorCode::UNKNOWN_ERROR.because(error.to_string()))?;
                to.extend(Some(taken).filter(|taken| taken.num_rows() > 0));
                Ok::<(), SqlError>(())
            };
            take(false, &mut others)?;
            take(true, &mut these)?;
        }
        Ok((others, these))
    }
}

/// The key of a row; false if it has a NULL in it, and so equals no other.
fn encode(
    index: &IndexHandle,
    table: &TableHandle,
    batch: &RecordBatch,
    row: usize,
    key: &mut Vec<u8>,
) -> bool {
    key.clear();
    index.def.parts.iter().enumerate().all(|(n, part)| {
        let column = part.column;
        let value = datum_at(batch.column(column).as_ref(), row, &table.def.columns[column].ty);
        !value.is_null() && index.keys.encode_parts(n, &[value], key)
    })
}
