//! What WEIGHT_STRING() shows: the weights of a string as MySQL compares them.

use super::Collation;
use super::names::{Family, Version};
use super::tables::tables;
use super::units::{Units, general};
use super::weights::Weigher;

impl Collation {
    /// Bytes that [`Self::weight_string`] makes of a character at most, as MySQL reckons; a few characters have more.
    pub fn most_weight_bytes(self) -> usize {
        /// Weights of a character on one level.
        const WEIGHTS: usize = 8;
        let rules = self.rules();
        match &rules.weigher {
            Weigher::Uca(uca) if matches!(uca.version, Version::V400 | Version::V520) => {
                WEIGHTS * self.info().charset.max_len() as usize
            }
            Weigher::Uca(_) => 2 * WEIGHTS * rules.levels.len(),
            Weigher::Bytes | Weigher::General(_) | Weigher::Coded(_) => 4,
        }
    }

    /// Appends the weights of all levels, as MySQL writes them. Not the keys of this server: see `sort_key`.
    pub fn weight_string(self, s: &str, to: &mut Vec<u8>) {
        let rules = self.rules();
        let info = self.info();
        match &rules.weigher {
            Weigher::Uca(uca) => {
                for &level in rules.levels {
                    let start = to.len();
                    let mut units = Units::new(rules, s, level);
                    while let Some(weight) = units.next_weight(uca) {
                        to.extend_from_slice(&weight.to_be_bytes());
                    }
                    // The fourth level is not there in strings without kana, or whose kana have no weight there.
                    if level == 3 && to[start..].iter().all(|byte| *byte == 0) {
                        to.truncate(start);
                    } else if level > 0 && uca.version != Version::V1400 {
                        to.splice(start..start, [0, 0]);
                    }
                }
            }
            Weigher::Bytes if info.family == Family::PaddedBytes && info.charset.max_len() > 1 => {
                let skip = if info.charset.max_len() > 3 { 1 } else { 2 };
                s.chars().for_each(|c| to.extend_from_slice(&u32::from(c).to_be_bytes()[skip..]));
            }
            Weigher::Bytes => to.extend_from_slice(s.as_bytes()),
            Weigher::General(variant) => {
                for c in s.chars() {
                    let weight = general(tables(), c, *variant);
                    to.extend_from_slice(&(weight as u16).to_be_bytes());
                }
            }
            Weigher::Coded(coded) => {
                let mut units = Units::new(rules, s, 0);
                while let Some(rank) = units.next_rank(coded) {
                    to.extend_from_slice(coded.bytes(rank));
                }
            }
        }
    }
}
