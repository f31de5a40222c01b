//! Which ordinals of its segment a block's rows have: row ↔ ordinal in both directions.

use avocet_base::codec::{Malformed, Put, Reader};
use roaring::RoaringBitmap;

use crate::error::{Result, StorageError};

/// The most rows that a block holds.
pub const MAX_ROWS: usize = 1 << 16;

/// Rows of a block, in ordinal order, to ordinals of its segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ordinals {
    /// Row `i` has ordinal `i`; the number of rows.
    Dense(u32),
    /// Some ordinals hold no row.
    Sparse(Box<SparseOrdinals>),
}

/// The ordinals present, as a bit set with a rank directory: both directions in constant or near-constant time.
#[derive(Clone, PartialEq, Eq)]
pub struct SparseOrdinals {
    words: [u64; MAX_ROWS / 64],
    /// Rows before each word.
    ranks: [u32; MAX_ROWS / 64],
    len: u32,
}

impl Ordinals {
    /// From ascending ordinals, one per row.
    pub fn from_sorted(ordinals: &[u16]) -> Result<Self> {
        if !ordinals.is_sorted_by(|a, b| a < b) {
            return Err(StorageError::Unsupported("ordinals of a block must ascend".into()));
        }
        let dense = ordinals.last().is_none_or(|&last| usize::from(last) + 1 == ordinals.len());
        if dense {
            return Ok(Self::Dense(ordinals.len() as u32));
        }
        Ok(Self::from_set(ordinals.iter().map(|&o| usize::from(o))))
    }

    fn from_set(ordinals: impl Iterator<Item = usize>) -> Self {
        let mut words = [0u64; MAX_ROWS / 64];
        for ordinal in ordinals {
            words[ordinal / 64] |= 1 << (ordinal % 64);
        }
        let mut ranks = [0; MAX_ROWS / 64];
        let mut len = 0;
        for (rank, word) in ranks.iter_mut().zip(&words) {
            *rank = len;
            len += word.count_ones();
        }
        Self::Sparse(Box::new(SparseOrdinals { words, ranks, len }))
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Dense(n) => *n as usize,
            Self::Sparse(s) => s.len as usize,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this ordinal, if there is one.
    pub fn row_of(&self, ordinal: u16) -> Option<usize> {
        let at = usize::from(ordinal);
        match self {
            Self::Dense(n) => (at < *n as usize).then_some(at),
            Self::Sparse(s) => {
                let (word, bit) = (s.words[at / 64], at % 64);
                (word >> bit & 1 == 1)
                    .then(|| s.ranks[at / 64] as usize + (word & ((1 << bit) - 1)).count_ones() as usize)
            }
        }
    }

    /// The first row whose ordinal is at least this; `len()` if there is none.
    pub fn lower_bound(&self, ordinal: u16) -> usize {
        let at = usize::from(ordinal);
        match self {
            Self::Dense(n) => at.min(*n as usize),
            Self::Sparse(s) => {
                let below = s.words[at / 64] & ((1 << (at % 64)) - 1);
                s.ranks[at / 64] as usize + below.count_ones() as usize
            }
        }
    }

    /// The ordinal of a row.
    pub fn ordinal_of(&self, row: usize) -> u16 {
        assert!(row < self.len(), "row {row} of {}", self.len());
        match self {
            Self::Dense(_) => row as u16,
            Self::Sparse(s) => {
                let at = s.ranks.partition_point(|&rank| rank as usize <= row) - 1;
                let mut word = s.words[at];
                for _ in 0..row - s.ranks[at] as usize {
                    word &= word - 1;
                }
                (at * 64) as u16 + word.trailing_zeros() as u16
            }
        }
    }

    /// The ordinals of all rows, ascending.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u16> + '_> {
        match self {
            Self::Dense(n) => Box::new((0..*n).map(|o| o as u16)),
            Self::Sparse(s) => Box::new(s.iter()),
        }
    }

    pub(crate) fn put(&self, buf: &mut Vec<u8>) {
        match self {
            Self::Dense(n) => {
                buf.put_u8(0);
                buf.put_u32(*n);
            }
            Self::Sparse(s) => {
                buf.put_u8(1);
                let mut set = RoaringBitmap::from_sorted_iter(s.iter().map(u32::from))
                    .expect("ordinals of a bit set ascend");
                set.optimize();
                let mut raw = Vec::with_capacity(set.serialized_size());
                set.serialize_into(&mut raw).expect("writing to memory does not fail");
                buf.put_bytes(&raw);
            }
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "ordinal map";
        match r.u8(WHAT)? {
            0 => {
                let n = r.u32(WHAT)?;
                if n as usize > MAX_ROWS {
                    return Err(r.malformed(WHAT));
                }
                Ok(Self::Dense(n))
            }
            1 => {
                let raw = r.bytes(WHAT)?;
                let set = RoaringBitmap::deserialize_from(raw).map_err(|_| r.malformed(WHAT))?;
                if set.max().is_some_and(|max| max as usize >= MAX_ROWS) {
                    return Err(r.malformed(WHAT));
                }
                Ok(Self::from_set(set.iter().map(|o| o as usize)))
            }
            _ => Err(r.malformed(WHAT)),
        }
    }
}

impl std::fmt::Debug for SparseOrdinals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseOrdinals").field("len", &self.len).finish_non_exhaustive()
    }
}

impl SparseOrdinals {
    fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    (at * 64) as u16 + bit as u16
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &[u16]) {
        let ordinals = Ordinals::from_sorted(list).unwrap();
        let mut buf = Vec::new();
        ordinals.put(&mut buf);
        let back = Ordinals::read(&mut Reader::new(&buf)).unwrap();
        assert_eq!(back, ordinals);
        assert_eq!(back.len(), list.len());
        assert_eq!(back.iter().collect::<Vec<_>>(), list);
        let mut next = 0;
        for ordinal in 0..=u16::MAX {
            assert_eq!(back.lower_bound(ordinal), next);
            let hit = list.get(next) == Some(&ordinal);
            assert_eq!(back.row_of(ordinal), hit.then_some(next));
            if hit {
                assert_eq!(back.ordinal_of(next), ordinal);
                next += 1;
            }
        }
    }

    #[test]
    fn both_directions_agree() {
        check(&[]);
        check(&[0]);
        check(&[65535]);
        check(&(0..=u16::MAX).collect::<Vec<_>>());
        check(&(0..=u16::MAX).filter(|o| o % 7 == 3).collect::<Vec<_>>());
        check(&(0..1000).chain(3000..64000).collect::<Vec<_>>());
    }

    #[test]
    fn unsorted_ordinals_are_refused() {
        assert!(Ordinals::from_sorted(&[3, 3]).is_err());
        assert!(Ordinals::from_sorted(&[3, 2]).is_err());
    }
}
