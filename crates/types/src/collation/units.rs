//! The units of strings, one after the other.
//!
//! A unit is up to three bytes in a `u32`, left-aligned below the top byte: `byte0 << 16 | byte1 << 8 | byte2`. All
//! units of a level are prefix-free and order as their bytes do.

use super::coded::{CodedWeights, absent};
use super::names::{General, Version};
use super::tables::{CharMap, Tables, tables, uca520};
use super::tailoring::Tailoring;
use super::uca1400::uca1400;
use super::weights::{COMMONEST, Rules, Weigher};

/// The table that a UCA collation is made from, and what it changes there.
pub(super) struct Uca {
    pub version: Version,
    pub tailoring: Option<&'static Tailoring>,
    /// By level; a fourth level is the tailoring's own.
    base: &'static [CharMap],
}

impl Uca {
    pub fn new(version: Version, tailoring: Option<u8>) -> Self {
        let base = match version {
            Version::V400 => std::slice::from_ref(&tables().uca4),
            Version::V520 => std::slice::from_ref(&uca520().weights),
            Version::V900 => &tables().uca9,
            Version::V1400 => &uca1400().weights,
        };
        Self { version, tailoring: tailoring.map(Tailoring::get), base }
    }

    /// Weights of a character, if they stand in a table.
    pub fn get(&self, c: u32, level: usize) -> Option<&'static [u16]> {
        self.tailoring
            .and_then(|tailoring| tailoring.characters[level].get(c))
            .or_else(|| self.base.get(level)?.get(c))
    }

    /// The byte's one weight of the first level, if it has that and stands in no sequence.
    pub fn ascii_weight(&self, byte: u8) -> Option<u16> {
        let Some(&[weight]) = self.get(byte.into(), 0) else { return None };
        let in_sequence = self.tailoring.is_some_and(|tailoring| match self.version {
            Version::V1400 => !tailoring.is_plain_in_ascii(byte.into(), weight),
            // Fewer would do, but keys of stored rows are made by this.
            _ => tailoring.is_member(byte.into()),
        });
        (!in_sequence).then_some(weight)
    }

    /// The part of a text that weighs the same in all strings that begin like it, character by character.
    pub fn settled<'s>(&self, text: &'s str) -> &'s str {
        match self.tailoring {
            Some(t) => &text[..t.settled(text, |c| self.get(c.into(), 0).unwrap_or(&[]).to_vec())],
            None => text,
        }
    }

    /// Weights of a character that stands in no table.
    fn implicit(&self, c: u32, level: usize) -> Pending<'static> {
        match (self.version, level) {
            (Version::V400, _) if c > 0xffff => Pending::Weights(&[0xfffd]),
            (Version::V400 | Version::V520, _) => computed(&implicit_older(c)),
            (Version::V1400, 0) => computed(&implicit_1400(c)),
            (Version::V900, 2) if let (0xd700.., Some((_, len))) = (c, hangul(c)) => {
                Pending::Weights(&[3; 3][..len])
            }
            (Version::V900, _) if let Some((jamos, len)) = hangul(c) => {
                let mut weights = Computed::default();
                jamos[..len].iter().for_each(|jamo| weights.push(self.get(*jamo, level).unwrap_or(&[])));
                Pending::Computed(weights)
            }
            (Version::V900, 0) => {
                let [lead, rest] = implicit_0900(c);
                let moved = self.tailoring.and_then(|t| t.leads.iter().find(|(from, _)| *from == lead));
                computed(&[moved.map_or(lead, |(_, to)| *to), rest])
            }
            (Version::V900 | Version::V1400, 1) => Pending::Weights(&[0x20]),
            (Version::V900 | Version::V1400, 2) => Pending::Weights(&[2]),
            (Version::V900 | Version::V1400, _) => Pending::Weights(&[]),
        }
    }
}

/// The units of a string on one level.
#[derive(Clone)]
pub(super) struct Units<'s> {
    rules: &'static Rules,
    tables: &'static Tables,
    chars: std::str::Chars<'s>,
    level: usize,
    /// Weights of the current character that are still to come.
    pending: Pending<'static>,
}

#[derive(Clone)]
enum Pending<'s> {
    Weights(&'s [u16]),
    Computed(Computed),
}

/// Weights that stand in no table.
#[derive(Clone, Default)]
struct Computed {
    /// At most three characters of two weights, each with another before it.
    weights: [u16; 12],
    at: u8,
    len: u8,
}

impl Computed {
    fn push(&mut self, weights: &[u16]) {
        let start = usize::from(self.len);
        self.weights[start..start + weights.len()].copy_from_slice(weights);
        self.len += weights.len() as u8;
    }
}

fn computed(weights: &[u16]) -> Pending<'static> {
    let mut computed = Computed::default();
    computed.push(weights);
    Pending::Computed(computed)
}

impl<'s> Units<'s> {
    pub fn new(rules: &'static Rules, s: &'s str, level: usize) -> Self {
        Self { rules, tables: tables(), chars: s.chars(), level, pending: Pending::Weights(&[]) }
    }

    fn next_pending(&mut self) -> Option<u16> {
        match &mut self.pending {
            Pending::Weights(weights) => {
                let (first, rest) = weights.split_first()?;
                *weights = rest;
                Some(*first)
            }
            Pending::Computed(Computed { weights, at, len }) => {
                let weight = weights[..usize::from(*len)].get(usize::from(*at))?;
                *at += 1;
                Some(*weight)
            }
        }
    }

    fn unit(&self, weight: u16) -> u32 {
        match self.level {
            0 => self.rules.primary_unit(weight),
            // The commonest secondary weight in one byte, the others before and behind it.
            1 if weight == 0x20 => u32::from(COMMONEST) << 16,
            1 => (1 + 2 * u32::from(weight > 0x20)) << 16 | u32::from(weight),
            _ => character_unit(weight.into()),
        }
    }

    fn load(&mut self, uca: &'static Uca, c: char) {
        if let Some(tailoring) = uca.tailoring {
            let rest = self.chars.as_str();
            if let Some((weights, taken)) = tailoring.sequence(c, rest, self.level) {
                self.pending = Pending::Weights(weights);
                self.chars = rest[taken..].chars();
                return;
            }
        }
        let c = u32::from(c);
        self.pending = match uca.get(c, self.level) {
            Some(weights) => Pending::Weights(weights),
            None => uca.implicit(c, self.level),
        };
    }

    /// The next rank of a collation of a coded character set.
    pub fn next_rank(&mut self, coded: &'static CodedWeights) -> Option<u16> {
        loop {
            if let Some(rank) = self.next_pending() {
                return Some(rank);
            }
            let c = u32::from(self.chars.next()?);
            self.pending = match coded.get(c) {
                Some(ranks) => Pending::Weights(ranks),
                None => computed(&absent(c)),
            };
        }
    }

    /// The next weight of a UCA collation.
    pub fn next_weight(&mut self, uca: &'static Uca) -> Option<u16> {
        loop {
            if let Some(weight) = self.next_pending() {
                return match uca.tailoring {
                    Some(t) if self.level == 2 => {
                        Some(t.cases.get(usize::from(weight)).copied().unwrap_or(weight))
                    }
                    _ => Some(weight),
                };
            }
            let c = self.chars.next()?;
            self.load(uca, c);
        }
    }
}

impl Iterator for Units<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match &self.rules.weigher {
            Weigher::Uca(uca) => loop {
                // A zero is shown by WEIGHT_STRING, but orders nothing: strings that agree so far have it at the same place.
                match self.next_weight(uca)? {
                    0 => {}
                    weight => return Some(self.unit(weight)),
                }
            },
            Weigher::Bytes => self.chars.next().map(|c| character_unit(c.into())),
            Weigher::Coded(coded) => self.next_rank(coded).map(|rank| self.rules.primary_unit(rank)),
            Weigher::General(variant) => {
                self.chars.next().map(|c| character_unit(general(self.tables, c, *variant)))
            }
        }
    }
}

/// A weight that is like a code point, in the form of UTF-8 (and so of at most 16 bits).
fn character_unit(weight: u32) -> u32 {
    match weight {
        0..0x80 => weight << 16,
        _ => (0x80 | weight >> 16) << 16 | weight & 0xffff,
    }
}

pub(super) fn general(tables: &Tables, c: char, variant: General) -> u32 {
    let code = u32::from(c);
    match variant {
        _ if code > 0xffff => 0xfffd,
        General::Mysql500 if c == 'ß' => code,
        General::Lower => tables.cases_older.map(c, false).into(),
        General::Usual | General::Mysql500 => tables.general.get(code).map_or(code, |w| u32::from(w[0])),
    }
}

/// Unified ideographs, extensions, and the rest (UTS #10, "Implicit Weights").
fn implicit_0900(c: u32) -> [u16; 2] {
    let base = match c {
        0x17000..=0x18aff => return [0xfb00, (c - 0x17000) as u16 | 0x8000],
        0x4e00..=0x9fd5
        | 0xfa0e..=0xfa0f
        | 0xfa11
        | 0xfa13..=0xfa14
        | 0xfa1f
        | 0xfa21
        | 0xfa23..=0xfa24
        | 0xfa27..=0xfa29 => 0xfb40,
        0x3400..=0x4db5 | 0x20000..=0x2a6d6 | 0x2a700..=0x2b734 | 0x2b740..=0x2b81d | 0x2b820..=0x2cea1 => {
            0xfb80
        }
        _ => 0xfbc0,
    };
    [base + (c >> 15) as u16, (c & 0x7fff) as u16 | 0x8000]
}

/// The same for UCA 14.0.0. MariaDB computes a pair for syllables of Hangul as well.
fn implicit_1400(c: u32) -> [u16; 2] {
    let in_block = |base: u16, first: u32| [base, (c - first) as u16 | 0x8000];
    let base = match c {
        0x17000..=0x18aff | 0x18d00..=0x18d7f => return in_block(0xfb00, 0x17000),
        0x1b170..=0x1b2ff => return in_block(0xfb01, 0x1b170),
        0x18b00..=0x18cff => return in_block(0xfb02, 0x18b00),
        0x4e00..=0x9fff => 0xfb40,
        0x3400..=0x4dbf
        | 0x20000..=0x2a6df
        | 0x2a700..=0x2b738
        | 0x2b740..=0x2b81d
        | 0x2b820..=0x2cea1
        | 0x2ceb0..=0x2ebe0
        | 0x30000..=0x3134a => 0xfb80,
        _ => 0xfbc0,
    };
    [base + (c >> 15) as u16, (c & 0x7fff) as u16 | 0x8000]
}

/// The same for UCA 4.0.0 and, as MySQL has it, for 5.2.0.
fn implicit_older(c: u32) -> [u16; 2] {
    let base = match c {
        0x4e00..=0x9fa5 => 0xfb40,
        0x3400..=0x4db5 => 0xfb80,
        _ => 0xfbc0,
    };
    [base + (c >> 15) as u16, (c & 0x7fff) as u16 | 0x8000]
}

/// The two or three letters of a Hangul syllable. As MySQL has it, the rest of their last column counts as syllables, and from
/// U+D700 on all have their letters' weights of the third level from elsewhere.
fn hangul(c: u32) -> Option<([u32; 3], usize)> {
    let index = c.checked_sub(0xac00).filter(|_| c < 0xd7b0)?;
    let tail = index % 28;
    Some(([0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11a7 + tail], if tail == 0 { 2 } else { 3 }))
}
