//! The rules of a collation: what its characters weigh, how they are found by byte, and the keys and hashes made of that.

use std::hash::Hasher;
use std::sync::OnceLock;

use super::coded::CodedWeights;
use super::keys::{bytes_key, bytes_key_len, padded_end, padded_key, push_unit, units_end};
use super::mariadb;
use super::names::{AI_CI, CollationInfo, Family, General, IDS, Levels};
use super::tailoring::Tailoring;
use super::units::{Uca, Units};

/// Byte by byte, an ASCII character's unit; 0 for bytes that have none.
type Codes = [u8; 256];

/// The byte that is the unit of the commonest secondary and tertiary weights.
pub(super) const COMMONEST: u8 = 2;

/// What the units of a collation are made from.
pub(super) enum Weigher {
    Bytes,
    Coded(CodedWeights),
    General(General),
    Uca(Uca),
}

pub(super) struct Rules {
    pub weigher: Weigher,
    pub codes: Codes,
    /// The code of a space.
    pub space: u8,
    pub padded: bool,
    /// Whether strings are padded behind the first level at least.
    pads_rest: bool,
    pub levels: Levels,
    tells_case: bool,
    /// ASCII's weights in order, where weights are those of a table.
    ascii_weights: Vec<u16>,
}

/// By the id of a collation; made when it is first used.
static RULES: [OnceLock<Box<Rules>>; IDS] = [const { OnceLock::new() }; IDS];

static RULES_OF_MARIADB: [OnceLock<Box<Rules>>; mariadb::COUNT] = [const { OnceLock::new() }; mariadb::COUNT];

#[inline]
pub(super) fn rules(id: u16) -> &'static Rules {
    let cell = RULES
        .get(usize::from(id))
        .unwrap_or_else(|| mariadb::position(id).map_or(&RULES[255], |position| &RULES_OF_MARIADB[position]));
    cell.get_or_init(|| Box::new(Rules::new(super::by_id::info(id))))
}

impl Rules {
    fn new(info: &CollationInfo) -> Self {
        let (weigher, levels) = match info.family {
            Family::Bytes | Family::PaddedBytes => (Weigher::Bytes, AI_CI),
            Family::Coded | Family::CodedBinary => (Weigher::Coded(CodedWeights::new(info)), AI_CI),
            Family::General(variant) => (Weigher::General(variant), AI_CI),
            Family::Uca { version, levels, tailoring } => {
                (Weigher::Uca(Uca::new(version, tailoring)), levels)
            }
        };
        let mut codes = [0; 256];
        let mut ascii_weights = Vec::new();
        let ascii_weight = |byte: u8| match &weigher {
            Weigher::Uca(uca) => uca.ascii_weight(byte),
            Weigher::Coded(coded) => coded.ascii_weight(byte),
            Weigher::Bytes | Weigher::General(_) => None,
        };
        ascii_weights.extend((0..128).filter_map(ascii_weight));
        ascii_weights.sort_unstable();
        ascii_weights.dedup();
        for byte in 0..128u8 {
            codes[usize::from(byte)] = match &weigher {
                Weigher::Uca(_) | Weigher::Coded(_) => {
                    let weight = ascii_weight(byte);
                    let rank = weight.and_then(|weight| ascii_weights.binary_search(&weight).ok());
                    rank.map_or(0, |rank| 2 * rank as u8 + 2)
                }
                Weigher::General(General::Lower) => byte.to_ascii_lowercase(),
                _ => byte.to_ascii_uppercase(),
            };
        }
        Self {
            weigher,
            codes,
            space: codes[usize::from(b' ')],
            padded: info.pad_space,
            // MariaDB's NO PAD collations, too: without that, an accent that they ignore would count by its tertiary weight.
            pads_rest: info.pad_space || info.is_of_mariadb(),
            levels,
            tells_case: levels.contains(&2),
            ascii_weights,
        }
    }

    /// Whether units come from the table; else they are the bytes themselves.
    #[inline]
    pub fn is_table(&self) -> bool {
        !matches!(self.weigher, Weigher::Bytes)
    }

    /// The tailoring of a UCA collation.
    pub fn tailoring(&self) -> Option<&'static Tailoring> {
        match &self.weigher {
            Weigher::Uca(uca) => uca.tailoring,
            _ => None,
        }
    }

    /// Whether on this level the shorter string is continued with spaces.
    pub fn pads(&self, level: usize) -> bool {
        if level == 0 { self.padded } else { self.pads_rest }
    }

    /// What strings are padded with on a level. Behind the first, a space has the commonest weights.
    pub fn space_unit(&self, level: usize) -> u32 {
        u32::from(if level == 0 { self.space } else { COMMONEST }) << 16
    }

    /// The unit of a table's weight of the first level, which is not 0.
    pub fn primary_unit(&self, weight: u16) -> u32 {
        match self.ascii_weights.binary_search(&weight) {
            Ok(rank) => (2 * rank as u32 + 2) << 16,
            Err(rank) => (2 * rank as u32 + 1) << 16 | u32::from(weight),
        }
    }

    pub fn sort_key(&'static self, s: &str, to: &mut Vec<u8>) {
        to.reserve(s.len() + 2);
        match self.weigher {
            Weigher::Bytes if !self.padded => bytes_key(s.as_bytes(), to),
            Weigher::Bytes => padded_key(s.bytes().map(|b| u32::from(b) << 16), u32::from(b' ') << 16, to),
            _ => {
                if self.padded {
                    self.padded_primary_key(s, to);
                } else {
                    self.primary_key(s, to);
                    to.push(0);
                }
                for &level in &self.levels[1..] {
                    let units = Units::new(self, s, level);
                    if self.pads(level) {
                        padded_key(units, self.space_unit(level), to);
                    } else {
                        units.for_each(|unit| push_unit(unit, to));
                        to.push(0);
                    }
                }
            }
        }
    }

    /// The length of the sort key at the beginning of what `byte` gives.
    pub fn sort_key_len(&self, byte: &impl Fn(usize) -> Option<u8>) -> Option<usize> {
        if !self.is_table() {
            return match self.padded {
                true => padded_end(byte, 0, b' ', |_| false),
                false => bytes_key_len(byte),
            };
        }
        self.levels.iter().try_fold(0, |at, &level| {
            // Units of ranks are odd where they have three bytes, those of characters begin with the highest bit.
            let has_tail = |first: u8| match (&self.weigher, level) {
                (Weigher::General(_), _) | (_, 2..) => first >= 0x80,
                _ => first % 2 == 1,
            };
            match self.pads(level) {
                true => padded_end(byte, at, (self.space_unit(level) >> 16) as u8, has_tail),
                false => units_end(byte, at, has_tail),
            }
        })
    }

    /// Whether two characters are the same to LIKE.
    pub fn same_char(&'static self, a: char, b: char) -> bool {
        if a == b {
            return true;
        }
        if !self.is_table() {
            return false;
        }
        if a.is_ascii() && b.is_ascii() && !self.tells_case {
            let (u, v) = (self.codes[a as usize], self.codes[b as usize]);
            if u != 0 && v != 0 {
                return u == v;
            }
        }
        let (mut x, mut y) = ([0; 4], [0; 4]);
        let (x, y) = (&*a.encode_utf8(&mut x), &*b.encode_utf8(&mut y));
        self.levels.iter().all(|&level| Units::new(self, x, level).eq(Units::new(self, y, level)))
    }

    fn primary_key(&'static self, s: &str, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend(s.bytes().map(|b| self.codes[usize::from(b)]));
        if let Some(at) = to[start..].iter().position(|code| *code == 0) {
            // Every byte before `at` is ASCII, so a character starts here.
            let at = self.tailoring().map_or(at, |tailoring| tailoring.boundary(s, s, at));
            to.truncate(start + at);
            Units::new(self, &s[at..], 0).for_each(|unit| push_unit(unit, to));
        }
    }

    fn padded_primary_key(&'static self, s: &str, to: &mut Vec<u8>) {
        let space = self.space_unit(0);
        if s.bytes().all(|b| self.codes[usize::from(b)] != 0) {
            padded_key(s.bytes().map(|b| u32::from(self.codes[usize::from(b)]) << 16), space, to);
        } else {
            padded_key(Units::new(self, s, 0), space, to);
        }
    }

    /// Appends the bytes that keys of all strings that begin with `s` begin with, or at least some of them.
    pub fn sort_key_prefix(&'static self, s: &str, to: &mut Vec<u8>) {
        let s = match &self.weigher {
            Weigher::Uca(uca) => uca.settled(s),
            _ => s,
        };
        let s = if self.padded { s.trim_end_matches(' ') } else { s };
        match self.weigher {
            Weigher::Bytes if !self.padded => {
                bytes_key(s.as_bytes(), to);
                to.truncate(to.len() - 2);
            }
            _ if self.padded => {
                let start = to.len();
                if self.is_table() {
                    self.padded_primary_key(s, to);
                } else {
                    self.sort_key(s, to);
                }
                // Without the end: a space and the byte that says so.
                let end = to.len() - 2;
                to.truncate(end.max(start));
            }
            _ => self.primary_key(s, to),
        }
    }

    pub fn hash<H: Hasher>(&'static self, s: &str, state: &mut H) {
        if !self.is_table() {
            let s = if self.padded { s.trim_end_matches(' ') } else { s };
            state.write(s.as_bytes());
            state.write_u8(0xff);
            return;
        }
        if s.bytes().any(|b| self.codes[usize::from(b)] == 0) {
            self.hash_slow(s, state);
            return;
        }
        let codes = s.bytes().map(|b| self.codes[usize::from(b)]);
        // Not only spaces weigh as a space does: in koi8u_general_ci, a grave accent, too.
        let spaces =
            if self.padded { codes.clone().rev().take_while(|code| *code == self.space).count() } else { 0 };
        hash_codes(codes.take(s.len() - spaces), state);
    }

    #[cold]
    fn hash_slow<H: Hasher>(&'static self, s: &str, state: &mut H) {
        let mut units: Vec<u32> = Units::new(self, s, 0).collect();
        while self.padded && units.last() == Some(&self.space_unit(0)) {
            units.pop();
        }
        let mut bytes = Vec::with_capacity(units.len());
        units.into_iter().for_each(|unit| push_unit(unit, &mut bytes));
        hash_codes(bytes.into_iter(), state);
    }
}

/// Feeds bytes in chunks whose bounds do not depend on where they come from.
fn hash_codes<H: Hasher>(codes: impl Iterator<Item = u8>, state: &mut H) {
    let (mut word, mut len) = (0u64, 0u64);
    for code in codes {
        word = word << 8 | u64::from(code);
        len += 1;
        if len % 8 == 0 {
            state.write_u64(word);
            word = 0;
        }
    }
    state.write_u64(word ^ len << 56);
}
