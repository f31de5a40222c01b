//! Weights of collations whose character set has a table: each character has one weight, or a few, of one to three bytes.
//! Their ranks among all weights of the collation stand for them, from 1 on: a unit that is written in full must not end in zeros.

use super::coding::{Coding, Weights};
use super::names::CollationInfo;
use super::tables::CharMap;

pub(super) struct CodedWeights {
    ranks: CharMap,
    /// By rank, less one.
    weights: Vec<Weights>,
}

/// Ranks are below this.
const ABSENT: u16 = 0x8000;

/// What stands for the ranks of a character that the character set has not: behind all that it has, in the order of code
/// points. None of the three is a rank, and so none is taken for a space or for what another character begins with.
pub(super) fn absent(c: u32) -> [u16; 3] {
    [u16::MAX, 0xff00 | (c >> 15) as u16, ABSENT | c as u16]
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
        assert!(weights.len() < usize::from(ABSENT), "no character set has as many characters");
        let mut ranks = CharMap::default();
        let rank = |of: &Weights| weights.partition_point(|w| w.bytes() < of.bytes()) as u16 + 1;
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
        usize::from(rank).checked_sub(1).and_then(|at| self.weights.get(at)).map_or(&[], Weights::bytes)
    }
}
