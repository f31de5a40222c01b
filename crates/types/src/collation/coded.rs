//! Weights of collations whose character set has a table: each character has one weight, or a few, of one to three bytes.
//! Their ranks among all weights of the collation stand for them.

use super::coding::{Coding, Weights};
use super::names::CollationInfo;
use super::tables::CharMap;

pub(super) struct CodedWeights {
    ranks: CharMap,
    /// By rank.
    weights: Vec<Weights>,
}

impl CodedWeights {
    pub fn new(info: &CollationInfo) -> Self {
        let coding = Coding::get(info.charset);
        // Where characters have one byte, each byte is a weight of its own.
        let parts = |weights: Weights| match info.charset.max_len() {
            1 => weights.bytes().iter().map(|byte| Weights::new((*byte).into(), 1)).collect(),
            _ => vec![weights],
        };
        let found: Vec<(char, Vec<Weights>)> =
            coding.weights(info.id).map(|(c, weights)| (c, parts(weights))).collect();
        let mut weights: Vec<Weights> = found.iter().flat_map(|(_, parts)| parts.iter().copied()).collect();
        weights.sort_unstable_by(|a, b| a.bytes().cmp(b.bytes()));
        weights.dedup();
        let mut ranks = CharMap::default();
        let rank = |of: &Weights| weights.partition_point(|w| w.bytes() < of.bytes()) as u16;
        for (c, parts) in &found {
            ranks.insert((*c).into(), &parts.iter().map(rank).collect::<Vec<_>>());
        }
        Self { ranks, weights }
    }

    /// Ranks of a character's weights; `None` if the character set has not this character.
    #[inline]
    pub fn get(&self, c: u32) -> Option<&[u16]> {
        self.ranks.get(c)
    }

    /// The byte's rank if it can have a code. The first and the last byte of ASCII have none: 126 codes are as many as there are.
    pub fn ascii_weight(&self, byte: u8) -> Option<u16> {
        match self.get(byte.into()) {
            Some(&[rank]) if (1..127).contains(&byte) => Some(rank),
            _ => None,
        }
    }

    pub fn bytes(&self, rank: u16) -> &[u8] {
        self.weights.get(usize::from(rank)).map_or(&[], Weights::bytes)
    }
}
