//! Collations: how strings compare, sort, hash, match and change case.
//!
//! Every collation turns a string into *units*, one per character or so, whose byte order is the
//! collation's order:
//!
//! | collations | unit |
//! |---|---|
//! | `binary`, `*_bin` of Unicode | a byte of UTF-8 |
//! | `*_general_ci` of Unicode | the character's weight, 1–3 bytes |
//! | those of `latin1`, `cp1251`, `gbk` and the like | the rank of the character's weight, 1 or 3 bytes |
//! | `*_unicode_ci`, `*_unicode_520_ci` and those of languages | primary weights of UCA 4.0.0 or 5.2.0, 1 or 3 bytes |
//! | `utf8mb4_0900_*`, `utf8mb4_*_0900_*` | weights of UCA 9.0.0, 1 or 3 bytes, level after level |
//! | MariaDB's `utf8mb4_uca1400_*`, `utf8mb3_uca1400_*` | the same of UCA 14.0.0 |
//!
//! An ASCII character is one unit of one byte, found by a table of 256 (`Codes`), so comparing, hashing
//! and making keys of ASCII strings is one look-up a byte. In the UCA collations the code 2k+2 stands for the
//! k-th weight that ASCII has, and 2k+3, followed by the weight, for weights between that and the next.
//! A character that has no such byte (not ASCII, ignored by the collation, or one that can weigh together with others, as
//! Czech `ch`) is 0 in the table, and goes the long way. In UCA 14.0.0 an `l` has one though it weighs together with `·`: whoever finds
//! a 0 behind it goes back to it (`Tailoring::boundary`).
//!
//! PAD SPACE collations compare as if the shorter string were continued with spaces, NO PAD ones do not.
//!
//! - `names`: the collations that there are; `mariadb`: those that only MariaDB has; `by_id`: both, by their ids
//! - `charset`: their character sets; `cases`: upper and lower case
//! - `coding`: tables of those that are not Unicode; `coded`: what their characters weigh
//! - `tables`: weights and case mappings, read from `data/collations.bin`; `uca1400`: those of UCA 14.0.0;
//!   `tailoring`: what languages change in them
//! - `units`: units of characters; `weights`: by which rules; `keys`: keys made of them
//! - `like`: LIKE; `weight_string`: what WEIGHT_STRING() shows

mod by_id;
mod cases;
mod charset;
mod coded;
mod coding;
mod keys;
mod like;
mod mariadb;
mod names;
mod tables;
mod tailoring;
mod uca1400;
mod units;
mod weight_string;
mod weights;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::Hasher;

pub use charset::Charset;
pub(crate) use keys::{bytes_key, bytes_key_len};
pub use like::LikePattern;
pub use mariadb::collations_of_mariadb;
pub use names::{CollationInfo, collations};
use units::Units;
use weights::Rules;

pub use crate::sql_type::Collation;

impl Collation {
    /// By its name, or by the one that it had when `utf8` was the name of utf8mb3. Those that only MariaDB has are known, too, for the
    /// definitions of its dumps and logs.
    pub fn by_name(name: &str) -> Option<Self> {
        let old = name.get(..5).filter(|prefix| prefix.eq_ignore_ascii_case("utf8_"));
        let renamed = old.map(|_| format!("utf8mb3_{}", &name[5..]));
        let name = renamed.as_deref().unwrap_or(name);
        let all = collations().iter().chain(collations_of_mariadb());
        all.into_iter().find(|c| c.name.eq_ignore_ascii_case(name)).map(|c| Self(c.id))
    }

    /// Whether only MariaDB has it, and MySQL not.
    pub fn is_of_mariadb(self) -> bool {
        self.info().is_of_mariadb()
    }

    /// Its line in the table; an id that is not there is taken for the default collation.
    pub fn info(self) -> &'static CollationInfo {
        by_id::info(self.0)
    }

    pub fn name(self) -> &'static str {
        self.info().name
    }

    #[inline]
    fn rules(self) -> &'static Rules {
        weights::rules(self.0)
    }

    /// Whether equal strings have equal bytes, trailing spaces apart.
    pub fn is_binary(self) -> bool {
        self != Self::JSON && self.info().is_bin()
    }

    /// Whether equality is equality of bytes.
    pub fn is_exact(self) -> bool {
        self != Self::JSON && self.info().family == names::Family::Bytes
    }

    /// Whether trailing spaces count.
    pub fn is_padded(self) -> bool {
        self.rules().padded
    }

    #[inline]
    pub fn compare(self, a: &str, b: &str) -> Ordering {
        self.rules().compare(a, b)
    }

    #[inline]
    pub fn equal(self, a: &str, b: &str) -> bool {
        a == b || (!self.is_exact() && self.compare(a, b).is_eq())
    }

    /// Appends bytes that order as the strings do, and of which none is the beginning of another.
    #[inline]
    pub fn sort_key(self, s: &str, to: &mut Vec<u8>) {
        self.rules().sort_key(s, to);
    }

    /// The length of a sort key, at the beginning of what `byte` gives; `None` if it has no end.
    pub(crate) fn sort_key_len(self, byte: &impl Fn(usize) -> Option<u8>) -> Option<usize> {
        self.rules().sort_key_len(byte)
    }

    /// Appends bytes that the sort keys of all strings that begin as `s` have in common: a bound for LIKE 's%'.
    pub fn sort_key_prefix(self, s: &str, to: &mut Vec<u8>) {
        self.rules().sort_key_prefix(s, to);
    }

    /// Feeds a hasher so that equal strings hash alike.
    pub fn hash<H: Hasher>(self, s: &str, state: &mut H) {
        self.rules().hash(s, state);
    }

    pub fn upper(self, s: &str) -> Cow<'_, str> {
        self.map_case(s, u8::is_ascii_lowercase, u8::to_ascii_uppercase, true)
    }

    pub fn lower(self, s: &str) -> Cow<'_, str> {
        self.map_case(s, u8::is_ascii_uppercase, u8::to_ascii_lowercase, false)
    }

    fn map_case<'s>(
        self,
        s: &'s str,
        changes: fn(&u8) -> bool,
        ascii: fn(&u8) -> u8,
        upper: bool,
    ) -> Cow<'s, str> {
        if s.is_ascii() && cases::keeps_ascii_case(self.info().case_rules()) {
            if !s.bytes().any(|b| changes(&b)) {
                return Cow::Borrowed(s);
            }
            return Cow::Owned(s.bytes().map(|b| char::from(ascii(&b))).collect());
        }
        let rules = self.info().case_rules();
        Cow::Owned(s.chars().map(|c| cases::case(rules, c, upper)).collect())
    }

    /// The collation of an expression of two operands that are equally explicit: `None` if they cannot be mixed.
    /// A `_bin` collation wins over another of its character set; Unicode wins over the rest.
    pub fn merge(self, other: Self) -> Option<Self> {
        let (a, b) = (self.info(), other.info());
        match (self == other, a.charset == b.charset) {
            (true, _) => Some(self),
            (_, true) if a.is_bin() != b.is_bin() => Some(if a.is_bin() { self } else { other }),
            (_, true) => None,
            _ if a.charset == Charset::Binary => Some(self),
            _ if b.charset == Charset::Binary => Some(other),
            _ if a.charset.rank() != b.charset.rank() => {
                Some(if a.charset.rank() > b.charset.rank() { self } else { other })
            }
            // Of the two that hold all the others, the first.
            _ if a.charset.rank() == Charset::Utf8mb4.rank() => Some(self),
            _ => None,
        }
    }
}

/// The letter that stands for a character in the general collations: `a` for `Ä` of names, in upper case.
pub(crate) fn general_letter(c: char) -> char {
    char::from_u32(units::general(tables::tables(), c, names::General::Usual)).unwrap_or(c)
}

impl Rules {
    fn compare(&'static self, a: &str, b: &str) -> Ordering {
        let (x, y) = (a.as_bytes(), b.as_bytes());
        let common = common_prefix(x, y);
        if !self.is_table() {
            return self.compare_bytes(x, y, common);
        }
        let min = x.len().min(y.len());
        let mut at = common;
        while at < min {
            let (u, v) = (self.codes[usize::from(x[at])], self.codes[usize::from(y[at])]);
            if u == 0 || v == 0 {
                return self.compare_slow(a, b, at);
            }
            if u != v {
                return u.cmp(&v);
            }
            at += 1;
        }
        let longer = if x.len() > min { x } else { y };
        for &byte in &longer[min..] {
            let code = self.codes[usize::from(byte)];
            if code == 0 {
                return self.compare_slow(a, b, at);
            }
            if !self.padded || code != self.space {
                let less = self.padded && code < self.space;
                return if (longer.len() == x.len()) != less { Ordering::Greater } else { Ordering::Less };
            }
        }
        self.compare_levels(a, b)
    }

    fn compare_bytes(&'static self, x: &[u8], y: &[u8], common: usize) -> Ordering {
        match (&x[common..], &y[common..]) {
            ([u, ..], [v, ..]) => u.cmp(v),
            (x, y) if !self.padded => x.len().cmp(&y.len()),
            (x, []) => order_against_spaces(x),
            (_, y) => order_against_spaces(y).reverse(),
        }
    }

    /// Compares the first level from a byte on which both strings agree so far, and then the others.
    #[cold]
    fn compare_slow(&'static self, a: &str, b: &str, at: usize) -> Ordering {
        let mut at = (0..=at).rev().find(|&i| a.is_char_boundary(i) && b.is_char_boundary(i)).unwrap_or(0);
        if let Some(tailoring) = self.tailoring() {
            // Before `at` are the same characters, or those of ASCII.
            at = tailoring.boundary(a, b, at);
        }
        self.compare_units(&a[at..], &b[at..], 0).then_with(|| self.compare_levels(a, b))
    }

    fn compare_units(&'static self, a: &str, b: &str, level: usize) -> Ordering {
        let (mut x, mut y) = (Units::new(self, a, level), Units::new(self, b, level));
        loop {
            return match (x.next(), y.next()) {
                (Some(u), Some(v)) if u == v => continue,
                (Some(u), Some(v)) => u.cmp(&v),
                (None, None) => Ordering::Equal,
                (Some(u), None) => self.tail_order(u, x, level),
                (None, Some(v)) => self.tail_order(v, y, level).reverse(),
            };
        }
    }

    /// How units that only one string has compare with nothing.
    fn tail_order(&'static self, first: u32, rest: Units<'_>, level: usize) -> Ordering {
        if !self.pads(level) {
            return Ordering::Greater;
        }
        let space = self.space_unit(level);
        std::iter::once(first).chain(rest).find(|u| *u != space).map_or(Ordering::Equal, |u| u.cmp(&space))
    }

    /// The other levels of strings whose first levels are equal.
    #[inline]
    fn compare_levels(&'static self, a: &str, b: &str) -> Ordering {
        if self.levels.len() == 1 || a == b {
            return Ordering::Equal;
        }
        self.levels[1..]
            .iter()
            .map(|level| self.compare_units(a, b, *level))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

/// How bytes compare with as many spaces.
fn order_against_spaces(bytes: &[u8]) -> Ordering {
    bytes.iter().find(|b| **b != b' ').map_or(Ordering::Equal, |b| b.cmp(&b' '))
}

/// Bytes at the start that are the same in both.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (x, y) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    for (i, (u, v)) in x.iter().zip(y).enumerate() {
        let difference = u64::from_le_bytes(*u) ^ u64::from_le_bytes(*v);
        if difference != 0 {
            return i * 8 + difference.trailing_zeros() as usize / 8;
        }
    }
    let start = x.len().min(y.len()) * 8;
    start + a[start..].iter().zip(&b[start..]).take_while(|(u, v)| u == v).count()
}

#[cfg(test)]
mod mariadb_tests;
#[cfg(test)]
mod mysql_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
