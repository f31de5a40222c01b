//! Units of characters, and the keys and hashes made of them.
//!
//! A unit is up to three bytes in a `u32`, left-aligned below the top byte: `byte0 << 16 | byte1 << 8 | byte2`. All
//! units of a level are prefix-free and order as their bytes do.
//!
//! Keys end in a byte below every unit (NO PAD), or, where strings are padded with spaces, tell at each run of
//! spaces what the run ends with, so that the end of a string sorts as endless spaces:
//!
//! ```text
//!  space  1 n     n spaces, then something smaller than a space   (more spaces: larger)
//!  space  2       the end, trailing spaces included
//!  space  3 ~n    n spaces, then something larger                 (more spaces: smaller)
//! ```

use std::hash::Hasher;
use std::sync::LazyLock;

use super::names::Family;
use super::tables::{CharMap, Tables, latin1_byte, swedish_weight, tables};

/// Byte by byte, an ASCII character's unit; 0 for bytes that have none.
type Codes = [u8; 256];

pub(super) struct Rules {
    pub family: Family,
    pub codes: Codes,
    /// The code of a space.
    pub space: u8,
    pub padded: bool,
    pub levels: usize,
    /// UCA only: ASCII's weights in order.
    ascii_weights: Vec<u16>,
}

static RULES: LazyLock<[Rules; 9]> = LazyLock::new(|| {
    [
        Family::Bytes,
        Family::PaddedBytes,
        Family::Ascii,
        Family::Latin1Swedish,
        Family::General,
        Family::Uca4,
        Family::Uca9Primary,
        Family::Uca9Secondary,
        Family::Uca9Tertiary,
    ]
    .map(Rules::new)
});

#[inline]
pub(super) fn rules(family: Family) -> &'static Rules {
    &RULES[family as usize]
}

impl Rules {
    fn new(family: Family) -> Self {
        let uca = match family {
            Family::Uca4 => Some(&tables().uca4),
            Family::Uca9Primary | Family::Uca9Secondary | Family::Uca9Tertiary => Some(&tables().uca9[0]),
            _ => None,
        };
        let ascii_weights = uca.map_or(Vec::new(), ascii_weights);
        let mut codes = [0; 256];
        for byte in 0..128u8 {
            codes[usize::from(byte)] = match uca {
                // Several weights or none: no single code.
                Some(map) => match map.get(byte.into()) {
                    Some([weight]) => {
                        let rank = ascii_weights.iter().position(|w| w == weight);
                        rank.map_or(0, |rank| 2 * rank as u8 + 2)
                    }
                    _ => 0,
                },
                None => byte.to_ascii_uppercase(),
            };
        }
        let levels = match family {
            Family::Uca9Secondary => 2,
            Family::Uca9Tertiary => 3,
            _ => 1,
        };
        let padded = matches!(
            family,
            Family::PaddedBytes | Family::Ascii | Family::Latin1Swedish | Family::General | Family::Uca4
        );
        Self { family, codes, space: codes[usize::from(b' ')], padded, levels, ascii_weights }
    }

    /// Whether units come from the table; else they are the bytes themselves.
    #[inline]
    pub fn is_table(&self) -> bool {
        !matches!(self.family, Family::Bytes | Family::PaddedBytes)
    }

    pub fn space_unit(&self) -> u32 {
        u32::from(self.space) << 16
    }

    /// The unit of a UCA weight of the first level.
    fn primary_unit(&self, weight: u16) -> u32 {
        match self.ascii_weights.binary_search(&weight) {
            Ok(rank) => (2 * rank as u32 + 2) << 16,
            Err(rank) => (2 * rank as u32 + 1) << 16 | u32::from(weight),
        }
    }

    pub fn sort_key(&self, s: &str, to: &mut Vec<u8>) {
        to.reserve(s.len() + 2);
        match self.family {
            Family::Bytes => bytes_key(s.as_bytes(), to),
            Family::PaddedBytes => {
                padded_key(s.bytes().map(|b| u32::from(b) << 16), u32::from(b' ') << 16, to)
            }
            _ if self.padded => padded_key(Units::new(self, s, 0), self.space_unit(), to),
            _ => {
                self.primary_key(s, to);
                for level in 1..self.levels {
                    to.push(0);
                    Units::new(self, s, level).for_each(|unit| push_unit(unit, to));
                }
                to.push(0);
            }
        }
    }

    /// Whether two characters are the same to LIKE.
    pub fn same_char(&self, a: char, b: char) -> bool {
        if a == b {
            return true;
        }
        if !self.is_table() {
            return false;
        }
        if a.is_ascii() && b.is_ascii() && self.levels < 3 {
            let (u, v) = (self.codes[a as usize], self.codes[b as usize]);
            if u != 0 && v != 0 {
                return u == v;
            }
        }
        let (mut x, mut y) = ([0; 4], [0; 4]);
        let (x, y) = (&*a.encode_utf8(&mut x), &*b.encode_utf8(&mut y));
        (0..self.levels).all(|level| Units::new(self, x, level).eq(Units::new(self, y, level)))
    }

    fn primary_key(&self, s: &str, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend(s.bytes().map(|b| self.codes[usize::from(b)]));
        if let Some(at) = to[start..].iter().position(|code| *code == 0) {
            to.truncate(start + at);
            // Every byte before `at` is ASCII, so a character starts here.
            Units::new(self, &s[at..], 0).for_each(|unit| push_unit(unit, to));
        }
    }

    /// Appends the bytes that keys of all strings that begin with `s` begin with, or at least some of them.
    pub fn sort_key_prefix(&self, s: &str, to: &mut Vec<u8>) {
        let s = if self.padded { s.trim_end_matches(' ') } else { s };
        match self.family {
            Family::Bytes => {
                bytes_key(s.as_bytes(), to);
                to.truncate(to.len() - 2);
            }
            _ if self.padded => {
                let start = to.len();
                self.sort_key(s, to);
                // Without the end: a space and the byte that says so.
                let end = to.len() - 2;
                to.truncate(end.max(start));
            }
            _ => self.primary_key(s, to),
        }
    }

    pub fn hash<H: Hasher>(&self, s: &str, state: &mut H) {
        let s = if self.padded { s.trim_end_matches(' ') } else { s };
        if !self.is_table() {
            state.write(s.as_bytes());
            state.write_u8(0xff);
            return;
        }
        if s.bytes().any(|b| self.codes[usize::from(b)] == 0) {
            self.hash_slow(s, state);
            return;
        }
        hash_codes(s.bytes().map(|b| self.codes[usize::from(b)]), state);
    }

    #[cold]
    fn hash_slow<H: Hasher>(&self, s: &str, state: &mut H) {
        let mut units: Vec<u32> = Units::new(self, s, 0).collect();
        while self.padded && units.last() == Some(&self.space_unit()) {
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

fn ascii_weights(map: &CharMap) -> Vec<u16> {
    let mut weights: Vec<u16> = (0..128)
        .filter_map(|c| match map.get(c) {
            Some([weight]) => Some(*weight),
            _ => None,
        })
        .collect();
    weights.sort_unstable();
    weights.dedup();
    weights
}

/// Units of one, two or three bytes; bytes after the first are never needed if zero, but for weights.
#[inline]
fn push_unit(unit: u32, to: &mut Vec<u8>) {
    let [_, first, second, third] = unit.to_be_bytes();
    to.push(first);
    if second != 0 || third != 0 {
        to.extend_from_slice(&[second, third]);
    }
}

/// Bytes with an escape for zero, and an end below all of them.
pub(crate) fn bytes_key(mut bytes: &[u8], to: &mut Vec<u8>) {
    while let Some(zero) = bytes.iter().position(|b| *b == 0) {
        to.extend_from_slice(&bytes[..zero]);
        to.extend_from_slice(&[0, 0xff]);
        bytes = &bytes[zero + 1..];
    }
    to.extend_from_slice(bytes);
    to.extend_from_slice(&[0, 0]);
}

fn padded_key(units: impl Iterator<Item = u32>, space: u32, to: &mut Vec<u8>) {
    let mut spaces = 0usize;
    for unit in units {
        if unit == space {
            spaces += 1;
            continue;
        }
        if spaces > 0 {
            push_run(unit < space, spaces, (space >> 16) as u8, to);
            spaces = 0;
        }
        push_unit(unit, to);
    }
    to.extend_from_slice(&[(space >> 16) as u8, 2]);
}

fn push_run(smaller: bool, mut spaces: usize, space: u8, to: &mut Vec<u8>) {
    let flip = if smaller { 0 } else { 0xff };
    to.extend_from_slice(&[space, if smaller { 1 } else { 3 }]);
    while spaces >= 255 {
        to.push(255 ^ flip);
        spaces -= 255;
    }
    to.push(spaces as u8 ^ flip);
}

/// The units of a string on one level.
#[derive(Clone)]
pub(super) struct Units<'s> {
    rules: &'s Rules,
    tables: &'static Tables,
    chars: std::str::Chars<'s>,
    level: usize,
    /// Weights of the current character that are still to come.
    pending: Pending<'s>,
}

#[derive(Clone)]
enum Pending<'s> {
    Weights(&'s [u16]),
    /// At most three characters of two weights each.
    Implicit {
        weights: [u16; 6],
        at: usize,
        len: usize,
    },
}

impl<'s> Units<'s> {
    pub fn new(rules: &'s Rules, s: &'s str, level: usize) -> Self {
        Self { rules, tables: tables(), chars: s.chars(), level, pending: Pending::Weights(&[]) }
    }

    fn next_pending(&mut self) -> Option<u16> {
        match &mut self.pending {
            Pending::Weights(weights) => {
                let (first, rest) = weights.split_first()?;
                *weights = rest;
                Some(*first)
            }
            Pending::Implicit { weights, at, len } => {
                let weight = weights[..*len].get(*at)?;
                *at += 1;
                Some(*weight)
            }
        }
    }

    fn unit(&self, weight: u16) -> u32 {
        match self.level {
            0 => self.rules.primary_unit(weight),
            // The commonest secondary weight in one byte, larger ones behind it.
            1 if weight == 0x20 => 1 << 16,
            1 => 2 << 16 | u32::from(weight),
            _ => u32::from(weight) << 16,
        }
    }

    fn load(&mut self, c: char) {
        let c = u32::from(c);
        self.pending = if self.rules.family == Family::Uca4 {
            match self.tables.uca4.get(c) {
                Some(weights) => Pending::Weights(weights),
                None if c > 0xffff => Pending::Weights(&[0xfffd]),
                None => implicit(&implicit_uca4(c)),
            }
        } else {
            match self.tables.uca9[self.level].get(c) {
                Some(weights) => Pending::Weights(weights),
                None => self.implicit_uca9(c),
            }
        };
    }

    fn implicit_uca9(&self, c: u32) -> Pending<'s> {
        let Some((jamos, len)) = hangul(c) else {
            return match self.level {
                0 => implicit(&implicit_uca9(c)),
                1 => Pending::Weights(&[0x20]),
                _ => Pending::Weights(&[2]),
            };
        };
        let mut weights = [0; 6];
        let mut at = 0;
        for jamo in &jamos[..len] {
            for weight in self.tables.uca9[self.level].get(*jamo).unwrap_or(&[]) {
                weights[at] = *weight;
                at += 1;
            }
        }
        Pending::Implicit { weights, at: 0, len: at }
    }
}

fn implicit(pair: &[u16; 2]) -> Pending<'static> {
    let mut weights = [0; 6];
    weights[..2].copy_from_slice(pair);
    Pending::Implicit { weights, at: 0, len: 2 }
}

impl Iterator for Units<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            if let Some(weight) = self.next_pending() {
                return Some(self.unit(weight));
            }
            let c = self.chars.next()?;
            match self.rules.family {
                Family::Ascii => return Some(character_unit(u32::from(c.to_ascii_uppercase()))),
                Family::Latin1Swedish => return Some(character_unit(swedish(c))),
                Family::General => return Some(character_unit(general(self.tables, c))),
                Family::Bytes | Family::PaddedBytes => return Some(character_unit(c.into())),
                _ => self.load(c),
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

fn swedish(c: char) -> u32 {
    latin1_byte(c).map_or(0xffff, |byte| u32::from(swedish_weight(byte)))
}

fn general(tables: &Tables, c: char) -> u32 {
    let c = u32::from(c);
    if c > 0xffff { 0xfffd } else { tables.general.get(c).map_or(c, |w| u32::from(w[0])) }
}

/// Unified ideographs, extensions, and the rest (UTS #10, "Implicit Weights").
fn implicit_uca9(c: u32) -> [u16; 2] {
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

fn implicit_uca4(c: u32) -> [u16; 2] {
    let base = match c {
        0x4e00..=0x9fa5 => 0xfb40,
        0x3400..=0x4db5 => 0xfb80,
        _ => 0xfbc0,
    };
    [base + (c >> 15) as u16, (c & 0x7fff) as u16 | 0x8000]
}

/// The two or three letters of a Hangul syllable.
fn hangul(c: u32) -> Option<([u32; 3], usize)> {
    let index = c.checked_sub(0xac00).filter(|i| *i < 11_172)?;
    let tail = index % 28;
    Some(([0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11a7 + tail], if tail == 0 { 2 } else { 3 }))
}
