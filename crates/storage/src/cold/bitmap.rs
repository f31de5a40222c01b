//! A fixed-length set of row numbers, 64 to a word: what predicates narrow and scans gather by.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};

/// Bits `0..len`; bits past the end are always zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    pub fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    pub fn ones(len: usize) -> Self {
        let mut all = Self { words: vec![u64::MAX; len.div_ceil(64)], len };
        all.trim();
        all
    }

    pub fn from_boolean_buffer(bits: &BooleanBuffer) -> Self {
        let mut words: Vec<u64> = bits.bit_chunks().iter_padded().collect();
        words.truncate(bits.len().div_ceil(64));
        Self { words, len: bits.len() }
    }

    pub fn to_boolean_buffer(&self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_slice_ref(&self.words), 0, self.len)
    }

    pub fn to_null_buffer(&self) -> NullBuffer {
        NullBuffer::new(self.to_boolean_buffer())
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The 64-bit words, lowest row in the lowest bit.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Writable words. The caller keeps bits past the end zero.
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    pub fn get(&self, row: usize) -> bool {
        assert!(row < self.len, "row {row} of {}", self.len);
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    pub fn set(&mut self, row: usize) {
        assert!(row < self.len, "row {row} of {}", self.len);
        self.words[row / 64] |= 1 << (row % 64);
    }

    pub fn clear(&mut self, row: usize) {
        assert!(row < self.len, "row {row} of {}", self.len);
        self.words[row / 64] &= !(1 << (row % 64));
    }

    pub fn clear_all(&mut self) {
        self.words.fill(0);
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    pub fn any(&self) -> bool {
        self.words.iter().any(|&w| w != 0)
    }

    pub fn intersect(&mut self, other: &Self) {
        assert_eq!(self.len, other.len);
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= b;
        }
    }

    pub fn subtract(&mut self, other: &Self) {
        assert_eq!(self.len, other.len);
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= !b;
        }
    }

    /// The rows in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    at * 64 + bit
                })
            })
        })
    }

    /// The rows in the set as a list.
    pub fn to_rows(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.count());
        for (at, &word) in self.words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                rows.push((at * 64) as u32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        rows
    }

    fn trim(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_odd_length_have_no_bits_past_the_end() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let all = Bitmap::ones(len);
            assert_eq!(all.count(), len);
            assert_eq!(all.to_rows(), (0..len as u32).collect::<Vec<_>>());
            assert_eq!(Bitmap::from_boolean_buffer(&all.to_boolean_buffer()), all);
            assert!(!Bitmap::zeros(len).any());
        }
    }

    #[test]
    fn algebra_agrees_with_membership() {
        let mut a = Bitmap::zeros(130);
        let mut b = Bitmap::zeros(130);
        for row in 0..130 {
            if row % 2 == 0 {
                a.set(row);
            }
            if row % 3 == 0 {
                b.set(row);
            }
        }
        let mut both = a.clone();
        both.intersect(&b);
        a.subtract(&b);
        for row in 0..130 {
            assert_eq!(both.get(row), row % 6 == 0);
            assert_eq!(a.get(row), row % 2 == 0 && row % 3 != 0);
        }
        assert_eq!(both.iter().map(|r| r as u32).collect::<Vec<_>>(), both.to_rows());
    }
}
