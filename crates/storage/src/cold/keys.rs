//! Sets of integers, as joins have them of their keys: for scans that want no rows with others.

use std::fmt;
use std::ops::RangeInclusive;

use foldhash::HashSet;

use super::bitpack::gather_bits;
use super::types::ColdType;
use super::words::SIGN;

/// A bitmap may take so many bits for each of its members: a hash table takes more.
const BITS_PER_KEY: u64 = 256;
/// So large a bitmap is always worth while: it stays in the processor's cache.
const SMALL_BITS: u64 = 1 << 18;
/// So large a bitmap for keys that are expected, at most.
const EXPECTED_BITS: u64 = 1 << 26;
/// So many keys are a list first, since a bitmap may be large.
const FEW_KEYS: usize = if cfg!(test) { 20 } else { 4096 };
/// So many keys without a bitmap, at most.
const MOST_OTHERS: usize = 1 << 17;
/// A look for a member between two bounds goes over so many words at most.
const LOOKED_AT: usize = 64;

/// A set of a column's words: its integers, those of `UInt64` with the highest bit inverted.
#[derive(PartialEq, Eq)]
pub struct KeySet {
    /// The smallest member and the largest.
    low: i64,
    high: i64,
    count: usize,
    is_u64: bool,
    members: Members,
}

#[derive(PartialEq, Eq)]
enum Members {
    Bits(Bits),
    Table(HashSet<i64>),
}

/// A bit for each integer from `origin` on.
#[derive(PartialEq, Eq)]
struct Bits {
    origin: i64,
    words: Box<[u64]>,
}

impl Bits {
    /// For the integers between two.
    fn between(low: i64, high: i64) -> Self {
        let words = Self::size(&(low..=high)) / size_of::<u64>();
        Self { origin: low, words: vec![0; words].into() }
    }

    /// What the bits of a range take, in bytes.
    fn size(range: &RangeInclusive<i64>) -> usize {
        (range.end().wrapping_sub(*range.start()) as u64 as usize / 64 + 1) * size_of::<u64>()
    }

    /// Where the bit of an integer is, which may be behind the last.
    #[inline(always)]
    fn place(&self, of: i64) -> (usize, u64) {
        let at = of.wrapping_sub(self.origin) as u64;
        ((at / 64) as usize, at % 64)
    }

    #[inline(always)]
    fn has(&self, key: i64) -> bool {
        let (at, bit) = self.place(key);
        self.words.get(at).is_some_and(|word| word >> bit & 1 == 1)
    }

    fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.words.iter().enumerate().flat_map(move |(at, word)| {
            let in_word = (0..64).filter(move |bit| word >> bit & 1 == 1);
            in_word.map(move |bit| self.origin.wrapping_add((at * 64 + bit) as i64))
        })
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({} of {}..={})", self.count, self.low, self.high)
    }
}

impl KeySet {
    fn empty(is_u64: bool) -> Self {
        let members = Members::Bits(Bits { origin: 0, words: Box::default() });
        Self { low: 0, high: -1, count: 0, is_u64, members }
    }

    /// The set of some words; `is_u64`: of a column of `UInt64`.
    pub fn of_words(words: &[i64], is_u64: bool) -> Self {
        let (Some(&low), Some(&high)) = (words.iter().min(), words.iter().max()) else {
            return Self::empty(is_u64);
        };
        let span = high.wrapping_sub(low) as u64;
        let most = (words.len() as u64).saturating_mul(BITS_PER_KEY).max(SMALL_BITS);
        let (members, count) = if span < most {
            let mut bits = Bits::between(low, high);
            for word in words {
                let (at, bit) = bits.place(*word);
                bits.words[at] |= 1 << bit;
            }
            let count = bits.words.iter().map(|word| word.count_ones() as usize).sum();
            (Members::Bits(bits), count)
        } else {
            let table: HashSet<i64> = words.iter().copied().collect();
            let count = table.len();
            (Members::Table(table), count)
        };
        Self { low, high, count, is_u64, members }
    }

    /// The word of an integer of a `UInt64` column.
    pub fn word_of_u64(value: u64) -> i64 {
        (value ^ SIGN) as i64
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What it takes, in bytes, about.
    pub fn bytes(&self) -> usize {
        match &self.members {
            Members::Bits(bits) => size_of_val(&*bits.words),
            Members::Table(table) => table.capacity() * (size_of::<i64>() + 1),
        }
    }

    #[inline]
    pub fn contains(&self, word: i64) -> bool {
        match &self.members {
            Members::Bits(bits) => bits.has(word),
            Members::Table(table) => table.contains(&word),
        }
    }

    /// Whether an integer of a signed column is a member.
    pub(crate) fn contains_int(&self, value: i64) -> bool {
        !self.is_u64 && self.contains(value)
    }

    /// As [`Self::contains_int`], of an unsigned one.
    pub(crate) fn contains_uint(&self, value: u64) -> bool {
        match self.is_u64 {
            true => self.contains(Self::word_of_u64(value)),
            false => i64::try_from(value).is_ok_and(|value| self.contains(value)),
        }
    }

    /// Whether its members are words of such columns.
    pub(crate) fn fits(&self, ty: ColdType) -> bool {
        self.is_u64 == (ty == ColdType::UInt64)
    }

    /// Which of 64 words are members, the first in the lowest bit.
    pub(crate) fn among(&self, words: &[i64; 64]) -> u64 {
        let flags = match &self.members {
            Members::Bits(bits) => words.map(|word| u8::from(bits.has(word))),
            Members::Table(table) => words.map(|word| u8::from(table.contains(&word))),
        };
        gather_bits(&flags)
    }

    /// The answer for all words between the bounds, if it is one answer and quickly found.
    pub(crate) fn on_bounds(&self, min: i64, max: i64) -> Option<bool> {
        if self.count == 0 || max < self.low || self.high < min {
            return Some(false);
        }
        if min == max {
            return Some(self.contains(min));
        }
        let Members::Bits(bits) = &self.members else { return None };
        let ((first, from), (last, to)) = (bits.place(min.max(self.low)), bits.place(max.min(self.high)));
        if last - first >= LOOKED_AT {
            return None;
        }
        let found = (first..=last).any(|at| {
            let mut word = bits.words[at];
            if at == first {
                word &= u64::MAX << from;
            }
            if at == last {
                word &= u64::MAX >> (63 - to);
            }
            word != 0
        });
        if found { None } else { Some(false) }
    }
}

/// Gathers a [`KeySet`] of at most so many members. When there are more than a few, those that are to be expected are in a bitmap.
pub struct KeySetBuilder {
    is_u64: bool,
    most: usize,
    expected: Option<RangeInclusive<i64>>,
    bits: Option<Bits>,
    /// In the bitmap.
    count: usize,
    /// Beside the bitmap, with repetitions.
    others: Vec<i64>,
}

impl KeySetBuilder {
    /// The words of most keys are expected to lie in `expected`.
    pub fn new(expected: Option<RangeInclusive<i64>>, most: usize, is_u64: bool) -> Self {
        let span = |range: &RangeInclusive<i64>| range.end().wrapping_sub(*range.start()) as u64;
        let expected = expected.filter(|range| !range.is_empty() && span(range) < EXPECTED_BITS);
        Self { is_u64, most, expected, bits: None, count: 0, others: Vec::new() }
    }

    /// What it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let bits = self.bits.as_ref().map_or(0, |bits| size_of_val(&*bits.words));
        bits + self.others.capacity() * size_of::<i64>()
    }

    /// What it takes at most with so many words more, in bytes.
    pub fn bytes_with(&self, more: usize) -> usize {
        let begins_bits = self.bits.is_none() && self.others.len() + more >= FEW_KEYS;
        let bits = self.expected.as_ref().filter(|_| begins_bits).map_or(0, Bits::size);
        // A list grows to twice what it holds.
        self.bytes() + bits + 2 * more.min(MOST_OTHERS) * size_of::<i64>()
    }

    /// Adds words; whether there are not too many now.
    #[must_use]
    pub fn add(&mut self, mut words: impl Iterator<Item = i64>) -> bool {
        if self.bits.is_none() {
            let most = if self.expected.is_some() { FEW_KEYS } else { MOST_OTHERS + 1 };
            let room = most.saturating_sub(self.others.len());
            self.others.extend(words.by_ref().take(room));
            if self.others.len() < most {
                return true;
            }
            self.begin_bits();
        }
        for word in words {
            self.add_word(word);
            if self.others.len() > MOST_OTHERS {
                return false;
            }
        }
        self.fits()
    }

    fn begin_bits(&mut self) {
        let Some(expected) = &self.expected else { return };
        self.bits = Some(Bits::between(*expected.start(), *expected.end()));
        std::mem::take(&mut self.others).into_iter().for_each(|word| self.add_word(word));
    }

    #[inline]
    fn add_word(&mut self, word: i64) {
        if let Some(bits) = &mut self.bits {
            let (at, bit) = bits.place(word);
            if let Some(there) = bits.words.get_mut(at) {
                self.count += usize::from(*there >> bit & 1 == 0);
                *there |= 1 << bit;
                return;
            }
        }
        self.others.push(word);
    }

    /// Adds all of another builder that expects the same; whether there are not too many now.
    #[must_use]
    pub fn merge(&mut self, other: Self) -> bool {
        match (&mut self.bits, other.bits) {
            (Some(bits), Some(others)) => {
                bits.words.iter_mut().zip(&others.words).for_each(|(word, other)| *word |= other);
                self.count = bits.words.iter().map(|word| word.count_ones() as usize).sum();
            }
            (None, Some(bits)) => {
                (self.bits, self.count) = (Some(bits), other.count);
                std::mem::take(&mut self.others).into_iter().for_each(|word| self.add_word(word));
            }
            (_, None) => {}
        }
        self.add(other.others.into_iter())
    }

    fn fits(&self) -> bool {
        self.count <= self.most && self.others.len() <= MOST_OTHERS
    }

    /// The set; `None` if there are too many members.
    pub fn finish(self) -> Option<KeySet> {
        let Self { is_u64, most, bits, count, mut others, .. } = self;
        let set = match bits {
            Some(bits) if others.is_empty() => {
                let (Some(low), Some(high)) = (bits.iter().next(), last_of(&bits)) else {
                    return Some(KeySet::empty(is_u64));
                };
                KeySet { low, high, count, is_u64, members: Members::Bits(bits) }
            }
            Some(_) if count > MOST_OTHERS => return None,
            Some(bits) => {
                others.extend(bits.iter());
                KeySet::of_words(&others, is_u64)
            }
            None => KeySet::of_words(&others, is_u64),
        };
        (set.len() <= most).then_some(set)
    }
}

fn last_of(bits: &Bits) -> Option<i64> {
    let at = bits.words.iter().rposition(|word| *word != 0)?;
    let bit = 63 - bits.words[at].leading_zeros() as usize;
    Some(bits.origin.wrapping_add((at * 64 + bit) as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(words: &[i64], asked: &[i64]) {
        let set = KeySet::of_words(words, false);
        for word in asked.iter().chain(words) {
            assert_eq!(set.contains(*word), words.contains(word), "{word}");
        }
        let mut block = [0; 64];
        for (at, word) in block.iter_mut().zip(asked.iter().cycle().take(64)) {
            *at = *word;
        }
        let among = set.among(&block);
        for (at, word) in block.iter().enumerate() {
            assert_eq!(among >> at & 1 == 1, set.contains(*word));
        }
        for (a, b) in asked.iter().zip(asked.iter().rev()) {
            let (min, max) = (*a.min(b), *a.max(b));
            let any = words.iter().any(|word| min <= *word && *word <= max);
            match set.on_bounds(min, max) {
                Some(true) => assert!(min == max && any),
                Some(false) => assert!(!any, "{min} to {max}"),
                None => {}
            }
        }
    }

    #[test]
    fn extremes_are_members_like_others() {
        let ends = [i64::MIN, -1, 0, 1, i64::MAX];
        check(&ends, &[i64::MIN + 1, i64::MAX - 1, 63, 64, -64]);
        check(&[i64::MIN], &ends);
        check(&[i64::MAX, i64::MAX - 70], &ends);
        check(&[7], &ends);
        let none = KeySet::of_words(&[], false);
        assert!(none.is_empty() && !none.contains(0) && none.on_bounds(i64::MIN, i64::MAX) == Some(false));
        let large = KeySet::of_words(&[KeySet::word_of_u64(u64::MAX), KeySet::word_of_u64(3)], true);
        assert!(large.contains_uint(u64::MAX) && large.contains_uint(3) && !large.contains_uint(4));
        assert!(!large.contains_int(3) && large.fits(ColdType::UInt64) && !large.fits(ColdType::Int64));
    }

    proptest! {
        #[test]
        fn members_are_found(
            words in prop::collection::vec(-5000i64..5000, 0..300),
            asked in prop::collection::vec(-6000i64..6000, 1..100),
            spread in prop::sample::select(vec![1i64, 1000, 1 << 40]),
        ) {
            let spread = |values: &[i64]| values.iter().map(|value| value * spread).collect::<Vec<_>>();
            check(&spread(&words), &spread(&asked));
        }

        #[test]
        fn built_sets_are_those_of_all_words(
            parts in prop::collection::vec(prop::collection::vec(-300i64..300, 0..40), 1..4),
            expected in prop::option::of((-400i64..100, -100i64..400)),
            most in 0usize..200,
        ) {
            let words = parts.concat();
            let all = KeySet::of_words(&words, false);
            let new = || KeySetBuilder::new(expected.map(|(low, high)| low..=high), most, false);
            let mut builder = new();
            let mut fits = true;
            for part in &parts {
                let mut other = new();
                fits &= other.add(part.iter().copied()) && builder.merge(other);
            }
            if !fits {
                prop_assert!(all.len() > most);
                return Ok(());
            }
            match builder.finish() {
                None => prop_assert!(all.len() > most),
                Some(set) => {
                    prop_assert!(all.len() <= most);
                    prop_assert_eq!((set.len(), set.low, set.high), (all.len(), all.low, all.high));
                    (-500..500).for_each(|word| assert_eq!(set.contains(word), all.contains(word)));
                    for low in (-500..500).step_by(61) {
                        for high in (low..500).step_by(37) {
                            let any = words.iter().any(|word| (low..=high).contains(word));
                            prop_assert!(set.on_bounds(low, high) != Some(false) || !any);
                        }
                    }
                }
            }
        }
    }
}
