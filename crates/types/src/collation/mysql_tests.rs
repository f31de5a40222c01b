//! Weights and cases of every character, and of texts with sequences, against checksums of what MySQL answers
//! (`data/expected.py` made them).

use std::cmp::Ordering;
use std::sync::Mutex;

use super::names::CaseRules;
use super::order_tests::on_all_cores;
use super::tests::{hash, key, named};
use super::*;

fn push_hex(bytes: &[u8], to: &mut Vec<u8>) {
    let digit = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble)];
    to.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

/// SUM(CRC32(CONCAT(…, ':', HEX(…)))): `line` writes what stands before the colon to the first, the bytes to the second.
pub(super) fn checksum<T>(
    items: impl Iterator<Item = T>,
    line: impl Fn(T, &mut Vec<u8>, &mut Vec<u8>),
) -> u64 {
    let (mut text, mut bytes) = (Vec::new(), Vec::new());
    let sums = items.map(|item| {
        text.clear();
        bytes.clear();
        line(item, &mut text, &mut bytes);
        text.push(b':');
        push_hex(&bytes, &mut text);
        let mut crc = flate2::Crc::new();
        crc.update(&text);
        u64::from(crc.sum())
    });
    sums.sum()
}

pub(super) fn push_number(mut number: u32, to: &mut Vec<u8>) {
    let start = to.len();
    loop {
        to.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    to[start..].reverse();
}

/// The sum over all characters to the last, of what they have.
pub(super) fn sum_of_characters(last: char, answer: impl Fn(&str, &mut Vec<u8>)) -> u64 {
    checksum('\0'..=last, |c, text, bytes| {
        push_number(c.into(), text);
        answer(c.encode_utf8(&mut [0; 4]), bytes);
    })
}

fn samples() -> Vec<String> {
    lines(include_str!("testdata/samples.txt"))
}

pub(super) fn lines(file: &str) -> Vec<String> {
    let lines = file.split_terminator('\n');
    lines.map(|line| line.replace("\\0", "\0").replace("\\\\", "\\")).collect()
}

fn weights(collation: Collation, s: &str) -> Vec<u8> {
    let mut weights = Vec::new();
    collation.weight_string(s, &mut weights);
    weights
}

/// The last character that stands in the file for a character set.
pub(super) fn last_of(charset: Charset) -> char {
    if charset == Charset::Utf8mb3 { '\u{ffff}' } else { char::MAX }
}

/// The sums of UPPER and LOWER for each set of rules and each last character among collations: others have the same.
fn case_sums(of: &[Collation]) -> Vec<(CaseRules, char, [u64; 2])> {
    let mut distinct: Vec<(CaseRules, char, Collation)> = Vec::new();
    for c in of {
        let (rules, last) = (c.info().case_rules(), last_of(c.info().charset));
        if !distinct.iter().any(|(other, end, _)| (*other, *end) == (rules, last)) {
            distinct.push((rules, last, *c));
        }
    }
    let sums = Mutex::new(Vec::new());
    on_all_cores(&distinct, |(rules, last, c)| {
        let upper = sum_of_characters(*last, |s, to| to.extend_from_slice(c.upper(s).as_bytes()));
        let lower = sum_of_characters(*last, |s, to| to.extend_from_slice(c.lower(s).as_bytes()));
        sums.lock().expect("no check panics").push((*rules, *last, [upper, lower]));
    });
    sums.into_inner().expect("no check panics")
}

#[test]
fn weights_and_cases_are_mysqls() {
    let samples = samples();
    let file: Vec<Vec<&str>> =
        include_str!("testdata/weights.tsv").lines().map(|line| line.split('\t').collect()).collect();
    let cases = case_sums(&file.iter().map(|fields| named(fields[0])).collect::<Vec<_>>());
    let wrong = Mutex::new(Vec::new());
    on_all_cores(&file, |fields| {
        let [name, wanted @ ..] = &fields[..] else { panic!("{fields:?}") };
        let c = named(name);
        let (rules, last) = (c.info().case_rules(), last_of(c.info().charset));
        let case = cases.iter().find(|(other, end, _)| (*other, *end) == (rules, last));
        let [upper, lower] = case.expect("one for each line").2;
        let sums = [
            sum_of_characters(last, |s, to| c.weight_string(s, to)),
            checksum((0..).zip(&samples), |(n, s), text, to| {
                push_number(n, text);
                c.weight_string(&c.info().charset.fitted(s.into()), to);
            }),
            upper,
            lower,
        ];
        let wanted: Vec<u64> = wanted.iter().map(|sum| sum.parse().expect("a number")).collect();
        if sums[..] != wanted[..] {
            wrong.lock().expect("no check panics").push(format!("{name}: {sums:?}, not {wanted:?}"));
        }
    });
    let wrong = wrong.into_inner().expect("no check panics");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Collations without those of other Unicode character sets, which weigh as theirs.
fn distinct() -> impl Iterator<Item = &'static CollationInfo> {
    collations().iter().filter(|info| !info.charset.is_unicode() || info.charset == Charset::Utf8mb4)
}

/// The order of weights, a string continued with spaces where the collation pads.
fn order_of_weights(c: Collation, a: &str, b: &str) -> Ordering {
    if !c.is_padded() {
        return weights(c, a).cmp(&weights(c, b));
    }
    let longest = a.chars().count().max(b.chars().count()) * 8 + 8;
    let padded = |s: &str| weights(c, &format!("{s}{}", " ".repeat(longest)));
    let (x, y) = (padded(a), padded(b));
    let len = x.len().min(y.len());
    x[..len].cmp(&y[..len])
}

#[test]
fn samples_compare_as_their_weights() {
    for info in distinct() {
        let c = Collation(info.id);
        let fitted = |s: String| info.charset.fitted(s.into()).into_owned();
        let samples: Vec<String> = samples().into_iter().map(fitted).collect();
        for (i, a) in samples.iter().enumerate() {
            for b in samples.iter().skip(i % 193).step_by(193).chain(samples.get(i + 1)) {
                let wanted = order_of_weights(c, a, b);
                assert_eq!(c.compare(a, b), wanted, "{}: {a:?} {b:?}", info.name);
                assert_eq!(key(c, a).cmp(&key(c, b)), wanted, "{}: keys of {a:?} {b:?}", info.name);
                if wanted.is_eq() {
                    assert_eq!(hash(c, a), hash(c, b), "{}: hashes of {a:?} {b:?}", info.name);
                }
            }
        }
    }
}

#[test]
fn prefix_keys_begin_the_keys_of_what_like_finds() {
    let samples = samples();
    distinct().for_each(|info| check_prefix_keys(Collation(info.id), &samples));
}

pub(super) fn check_prefix_keys(c: Collation, samples: &[String]) {
    for s in samples {
        for end in s.char_indices().map(|(at, _)| at) {
            let start = &s[..end];
            let mut prefix = Vec::new();
            c.sort_key_prefix(start, &mut prefix);
            assert!(key(c, s).starts_with(&prefix), "{}: {start:?} {s:?}", c.name());
            let changed = format!("{}{}", c.upper(start), &s[end..]);
            if LikePattern::new(&format!("{start}%"), None, c).matches(&changed)
                && !start.contains(['%', '_'])
            {
                assert!(key(c, &changed).starts_with(&prefix), "{}: {start:?} {changed:?}", c.name());
            }
        }
    }
}

/// Codes of one to three bytes, as `data/expected_charsets.py` lists them.
fn codes() -> Vec<Vec<u8>> {
    let mut codes: Vec<Vec<u8>> = (0..=255).map(|a| vec![a]).collect();
    codes.extend((0x80..=255).flat_map(|a| (0x40..=255).map(move |b| vec![a, b])));
    codes.extend((0xa1..255).flat_map(|a| (0xa1..255).map(move |b| vec![0x8f, a, b])));
    codes
}

#[test]
fn character_sets_have_mysqls_codes_and_weights() {
    let codes = codes();
    let lines: Vec<&str> = include_str!("testdata/charsets.tsv").lines().collect();
    let wrong = Mutex::new(Vec::new());
    on_all_cores(&lines, |line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let wanted: Vec<u64> = fields[1..].iter().map(|sum| sum.parse().expect("a number")).collect();
        let sums = match Charset::by_name(fields[0]) {
            Some(charset) => code_sums(charset, &codes).to_vec(),
            None => coded_sums(named(fields[0])).to_vec(),
        };
        if sums != wanted {
            wrong.lock().expect("no check panics").push(format!("{line}: {sums:?}"));
        }
    });
    let wrong = wrong.into_inner().expect("no check panics");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The sums of all characters' codes and of all codes' characters.
fn code_sums(charset: Charset, codes: &[Vec<u8>]) -> [u64; 2] {
    let decoded = codes.iter().filter_map(|code| {
        let text = charset.decode(code).ok().filter(|_| !charset.is_unicode())?;
        // What a character set of one byte has not is `?` as well.
        (**code == *b"?" || !text.contains('?')).then_some((code, text))
    });
    [
        sum_of_characters(char::MAX, |s, to| to.extend_from_slice(&charset.encode(s))),
        checksum(decoded, |(code, decoded), text, bytes| {
            push_hex(code, text);
            bytes.extend_from_slice(decoded.as_bytes());
        }),
    ]
}

/// The sums of weights and cases.
fn coded_sums(c: Collation) -> [u64; 3] {
    let sum = |answer: &dyn Fn(&str, &mut Vec<u8>)| {
        sum_of_characters('\u{ffff}', |s, to| answer(&c.info().charset.fitted(s.into()), to))
    };
    [
        sum(&|s, to| c.weight_string(s, to)),
        sum(&|s, to| to.extend_from_slice(c.upper(s).as_bytes())),
        sum(&|s, to| to.extend_from_slice(c.lower(s).as_bytes())),
    ]
}
