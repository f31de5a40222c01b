//! Weights and cases of every character, and of texts with sequences, against checksums of what MySQL answers
//! (`data/expected.py` made them).

use std::cmp::Ordering;

use super::tests::{hash, key, named};
use super::*;
use std::fmt::Write;

/// SUM(CRC32(CONCAT(n, ':', HEX(…)))).
fn checksum(answers: impl Iterator<Item = (usize, Vec<u8>)>) -> u64 {
    let mut sum = 0;
    let mut line = String::new();
    for (n, bytes) in answers {
        line.clear();
        write!(line, "{n}:").expect("a String takes all");
        bytes.iter().for_each(|byte| write!(line, "{byte:02X}").expect("a String takes all"));
        let mut crc = flate2::Crc::new();
        crc.update(line.as_bytes());
        sum += u64::from(crc.sum());
    }
    sum
}

fn samples() -> Vec<String> {
    let lines = include_str!("testdata/samples.txt").split_terminator('\n');
    lines.map(|line| line.replace("\\0", "\0").replace("\\\\", "\\")).collect()
}

fn weights(collation: Collation, s: &str) -> Vec<u8> {
    let mut weights = Vec::new();
    collation.weight_string(s, &mut weights);
    weights
}

/// UPPER and LOWER under collations of later UCA versions know characters that came after these versions, too.
const NEWER_CASES: [[u64; 2]; 2] =
    [[2387276662052387, 2387221539953792], [2387269093081413, 2387214376994372]];

#[test]
fn weights_and_cases_are_mysqls() {
    let samples = samples();
    let mut wrong = Vec::new();
    for line in include_str!("testdata/weights.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, wanted @ ..] = &fields[..] else { panic!("{line}") };
        let c = named(name);
        let last = if c.info().charset == Charset::Utf8mb3 { '\u{ffff}' } else { char::MAX };
        let all = || ('\0'..=last).map(|c| (c as usize, c));
        let single = |c: char| c.encode_utf8(&mut [0; 4]).to_owned();
        let has = |s: &str| String::from_utf8(c.info().charset.encode(s)).expect("UTF-8");
        // What is longer in its other case MySQL cuts off.
        let case = |ch: char, changed: Cow<'_, str>| {
            let cut = changed.len() > ch.len_utf8() && !name.contains("turkish");
            if cut { None } else { Some(changed.as_bytes().to_vec()) }
        };
        let sums = [
            checksum(all().map(|(n, ch)| (n, weights(c, &single(ch))))),
            checksum(samples.iter().enumerate().map(|(n, s)| (n, weights(c, &has(s))))),
            checksum(all().filter_map(|(n, ch)| Some((n, case(ch, c.upper(&single(ch)))?)))),
            checksum(all().filter_map(|(n, ch)| Some((n, case(ch, c.lower(&single(ch)))?)))),
        ];
        let wanted: Vec<u64> = wanted.iter().map(|sum| sum.parse().expect("a number")).collect();
        let same_cases = sums[2..] == wanted[2..] || NEWER_CASES.contains(&[sums[2], sums[3]]);
        // Of some strings of several characters the level that tells the kinds of kana apart is another one.
        let same_samples = sums[1] == wanted[1] || *name == "utf8mb4_ja_0900_as_cs_ks";
        if sums[0] != wanted[0] || !same_samples || !same_cases {
            wrong.push(format!("{name}: {sums:?}, not {wanted:?}"));
        }
    }
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
    for info in distinct() {
        let c = Collation(info.id);
        for s in &samples {
            for end in s.char_indices().map(|(at, _)| at) {
                let start = &s[..end];
                let mut prefix = Vec::new();
                c.sort_key_prefix(start, &mut prefix);
                assert!(key(c, s).starts_with(&prefix), "{}: {start:?} {s:?}", info.name);
                let changed = format!("{}{}", c.upper(start), &s[end..]);
                if LikePattern::new(&format!("{start}%"), None, c).matches(&changed)
                    && !start.contains(['%', '_'])
                {
                    assert!(key(c, &changed).starts_with(&prefix), "{}: {start:?} {changed:?}", info.name);
                }
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02X}").expect("a String takes all");
        text
    })
}

fn sum_of_lines(lines: impl Iterator<Item = String>) -> u64 {
    lines
        .map(|line| {
            let mut crc = flate2::Crc::new();
            crc.update(line.as_bytes());
            u64::from(crc.sum())
        })
        .sum()
}

/// Every character has MySQL's code, but some codes that MySQL does not know, or knows otherwise, are read as characters.
const HAVE_OTHER_CODES: [&str; 8] = ["big5", "cp932", "eucjpms", "euckr", "gb2312", "gbk", "sjis", "ujis"];

#[test]
fn character_sets_have_mysqls_codes_and_weights() {
    let codes = codes();
    let mut wrong = Vec::new();
    for line in include_str!("testdata/charsets.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let wanted: Vec<u64> = fields[1..].iter().map(|sum| sum.parse().expect("a number")).collect();
        let single = |c: char| c.encode_utf8(&mut [0; 4]).to_owned();
        if let Some(charset) = Charset::by_name(fields[0]) {
            let encoded =
                ('\0'..=char::MAX).map(|c| format!("{}:{}", c as u32, hex(&charset.encode(&single(c)))));
            let encoded = sum_of_lines(encoded);
            let decoded = codes.iter().filter_map(|code| {
                // What ASCII has not is `?` as well.
                let text = charset.decode(code).ok().filter(|_| !charset.is_unicode())?;
                let is_one = **code == *b"?" || !text.contains('?');
                is_one.then(|| format!("{}:{}", hex(code), hex(text.as_bytes())))
            });
            let decoded = sum_of_lines(decoded);
            let same_codes = decoded == wanted[1] || HAVE_OTHER_CODES.contains(&fields[0]);
            if encoded != wanted[0] || !same_codes {
                wrong.push(format!("{line}: {encoded}, {decoded}"));
            }
            continue;
        }
        let c = named(fields[0]);
        let charset = c.info().charset;
        let all =
            || ('\0'..='\u{ffff}').map(|ch| (ch as u32, charset.fitted(single(ch).into()).into_owned()));
        let sums = [
            sum_of_lines(all().map(|(n, s)| format!("{n}:{}", hex(&weights(c, &s))))),
            sum_of_lines(all().map(|(n, s)| format!("{n}:{}", hex(c.upper(&s).as_bytes())))),
            sum_of_lines(all().map(|(n, s)| format!("{n}:{}", hex(c.lower(&s).as_bytes())))),
        ];
        if sums[..] != wanted[..] {
            wrong.push(format!("{line}: {sums:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
