//! Comparisons, keys and hashes agree in every collation: for characters inside and outside of its character set, and where it begins
//! and ends.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::keys::push_unit;
use super::tests::{all_collations, hash, key};
use super::*;

/// Checks each of the items, on all cores.
pub(super) fn on_all_cores<T: Sync>(items: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                    check(item);
                }
            });
        }
    });
}

/// Bounds of Unicode's blocks and planes, of the forms of UTF-8, of what is assigned, and of halves of implicit weights; also
/// characters whose last 16 bits are zeros, a space, or what another has.
const BOUNDS: [u32; 46] = [
    0x0, 0x1, 0x8, 0x9, 0x1f, 0x20, 0x21, 0x25, 0x3f, 0x41, 0x61, 0x69, 0x7e, 0x7f, 0x80, 0xa0, 0xdf, 0xfe,
    0xff, 0x100, 0x108, 0x131, 0x307, 0x378, 0x7ff, 0x800, 0x10fd, 0x1e9e, 0x30fc, 0x4e00, 0x7fff, 0x8000,
    0xac01, 0xd7ff, 0xe000, 0xf8ff, 0xfffd, 0xffff, 0x1_0000, 0x1_0020, 0x1_0041, 0x1_ffff, 0x2_0000,
    0x2_8000, 0x10_0000, 0x10_ffff,
];

/// All characters of a small character set, of others those where they begin and end; and some that it has not.
fn edges(charset: Charset) -> Vec<char> {
    let mut chars: Vec<char> = BOUNDS.iter().filter_map(|c| char::from_u32(*c)).collect();
    if !charset.is_unicode() && charset != Charset::Binary {
        let is_edge = |(before, c): &(char, char)| charset.has(*before) != charset.has(*c);
        let bounds: Vec<(char, char)> =
            ('\0'..='\u{fffe}').zip('\u{1}'..='\u{ffff}').filter(is_edge).collect();
        chars.extend(bounds.iter().step_by(bounds.len() / 24 + 1).flat_map(|(before, c)| [before, c]));
        let bytes = (0..=255).filter_map(|byte| charset.decode(&[byte]).ok());
        chars.extend(bytes.filter_map(|text| text.chars().next()));
    }
    chars.sort_unstable();
    chars.dedup();
    chars
}

/// Alone, behind and before others, and doubled.
fn frames(c: char) -> [String; 7] {
    let ends = [("", ""), ("a", ""), ("", "a"), ("", " "), (" ", ""), ("", "\0")];
    let [alone, behind, before, ends @ ..] = ends.map(|(start, end)| format!("{start}{c}{end}"));
    let [padded, indented, ended] = ends;
    [alone, behind, before, padded, indented, ended, format!("{c}{c}")]
}

struct Sample {
    text: String,
    key: Vec<u8>,
    hash: u64,
}

impl Sample {
    fn new(c: Collation, text: String) -> Self {
        let (key, hash) = (key(c, &text), hash(c, &text));
        Self { text, key, hash }
    }
}

#[track_caller]
fn agree(c: Collation, a: &Sample, b: &Sample) -> Ordering {
    let order = c.compare(&a.text, &b.text);
    let of = || format!("{}: {:?} {:?}", c.name(), a.text, b.text);
    assert_eq!(a.key.cmp(&b.key), order, "keys, {}", of());
    assert_eq!(c.compare(&b.text, &a.text), order.reverse(), "{}", of());
    assert_eq!(c.equal(&a.text, &b.text), order.is_eq(), "{}", of());
    if order.is_eq() {
        assert_eq!(a.hash, b.hash, "hashes, {}", of());
    } else {
        assert!(!a.key.starts_with(&b.key) && !b.key.starts_with(&a.key), "beginnings of keys, {}", of());
    }
    order
}

#[test]
fn every_collation_is_an_order_that_its_keys_and_hashes_have() {
    on_all_cores(&all_collations().collect::<Vec<_>>(), |info| {
        let c = Collation(info.id);
        let samples: Vec<[Sample; 7]> =
            edges(info.charset).into_iter().map(|ch| frames(ch).map(|text| Sample::new(c, text))).collect();
        for (i, framed) in samples.iter().enumerate() {
            for other in &samples[..=i] {
                for (a, b) in framed.iter().zip(other) {
                    agree(c, a, b);
                }
            }
        }
        // A key ends where its last byte stands, whatever follows.
        for sample in samples.iter().flatten() {
            let behind = [&sample.key[..], &[0, 0xff, 2]].concat();
            let len = c.sort_key_len(&|at| behind.get(at).copied());
            assert_eq!(len, Some(sample.key.len()), "{}: {:?}", info.name, sample.text);
        }
        // In the order of their keys none is greater than one that stands behind it.
        let ends = ["", " ", "  ", "\0", " \0", "a", "a "].map(|text| Sample::new(c, text.to_owned()));
        let mut all: Vec<&Sample> = samples.iter().flatten().chain(&ends).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        for distance in [1, 2, 3, 7, 61, 400] {
            for (a, b) in all.iter().zip(all.iter().skip(distance)) {
                assert!(agree(c, a, b).is_le(), "{}: {:?} {:?}", info.name, a.text, b.text);
            }
        }
    });
}

#[test]
fn units_order_as_their_bytes() {
    let bytes = |unit: u32| {
        let mut bytes = Vec::new();
        push_unit(unit, &mut bytes);
        bytes
    };
    on_all_cores(&all_collations().collect::<Vec<_>>(), |info| {
        let rules = Collation(info.id).rules();
        if rules.is_table() {
            let mut units: Vec<u32> = (1..=u16::MAX).map(|weight| rules.primary_unit(weight)).collect();
            assert!(units.is_sorted(), "{}", info.name);
            units.dedup();
            assert_eq!(units.len(), usize::from(u16::MAX), "{}", info.name);
            for pair in units.windows(2) {
                let (a, b) = (bytes(pair[0]), bytes(pair[1]));
                assert!(a < b && !b.starts_with(&a), "{}: {a:?} {b:?}", info.name);
            }
        }
    });
}

#[test]
fn codes_are_the_units_of_ascii() {
    for info in all_collations() {
        let rules = Collation(info.id).rules();
        for byte in (0..128u8).filter(|byte| rules.is_table() && rules.codes[usize::from(*byte)] != 0) {
            let (text, code) = (char::from(byte).to_string(), u32::from(rules.codes[usize::from(byte)]));
            assert!(Units::new(rules, &text, 0).eq([code << 16]), "{}: {text:?}", info.name);
        }
    }
}
