//! Distinct-count sketches of columns: small, mergeable over the blocks of a table.

use datasketches::hll::{HllSketch, HllType, HllUnion};

use crate::error::{Result, StorageError};

/// 1,024 registers: a standard error of 3 % in about half a kilobyte.
const LG_K: u8 = 10;

/// A HyperLogLog sketch of the values of a column, or none where nobody will ask.
#[derive(Debug, Clone)]
pub struct DistinctSketch(Option<HllSketch>);

impl DistinctSketch {
    pub fn new() -> Self {
        Self(Some(HllSketch::new(LG_K, HllType::Hll4).expect("the register count is in range")))
    }

    /// Counts nothing, and has no bytes.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub fn insert_word(&mut self, word: i64) {
        if let Some(sketch) = &mut self.0 {
            sketch.update(word);
        }
    }

    pub fn insert_bytes(&mut self, bytes: &[u8]) {
        if let Some(sketch) = &mut self.0 {
            sketch.update(bytes);
        }
    }

    /// The number of distinct values inserted, about.
    pub fn estimate(&self) -> f64 {
        self.0.as_ref().map_or(0.0, |sketch| sketch.estimate())
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.as_ref().map_or_else(Vec::new, |sketch| sketch.serialize())
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        HllSketch::deserialize(bytes)
            .map(|sketch| Self(Some(sketch)))
            .map_err(|e| StorageError::corrupt("distinct sketch", e))
    }

    /// The sketch of all the values of all the sketches.
    pub fn union<'a>(sketches: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut union = HllUnion::new(LG_K).expect("the register count is in range");
        for sketch in sketches {
            sketch.0.iter().for_each(|sketch| union.update(sketch));
        }
        Self(Some(union.to_sketch(HllType::Hll4)))
    }
}

impl Default for DistinctSketch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketches_merge_and_persist() {
        let mut parts = Vec::new();
        for part in 0..4 {
            let mut sketch = DistinctSketch::new();
            for v in part * 5_000..part * 5_000 + 10_000 {
                sketch.insert_word(v);
            }
            parts.push(DistinctSketch::from_bytes(&sketch.to_bytes()).unwrap());
        }
        let estimate = DistinctSketch::union(&parts).estimate();
        assert!((22_000.0..28_000.0).contains(&estimate), "{estimate}");
    }
}
