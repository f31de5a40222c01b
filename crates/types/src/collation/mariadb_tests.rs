//! MariaDB's collations of UCA 14.0.0, against what MariaDB 11.8 answers (`data/expected_uca1400.py` made the files).

use std::sync::Mutex;

use super::mysql_tests::{check_prefix_keys, checksum, last_of, lines, push_number, sum_of_characters};
use super::order_tests::on_all_cores;
use super::tests::{all_collations, hash, key, named};
use super::*;

fn samples() -> Vec<String> {
    lines(include_str!("testdata/uca1400_samples.txt"))
}

/// The sum over the samples, of what they have.
fn sum_of_samples(texts: &[String], answer: impl Fn(usize, &mut Vec<u8>)) -> u64 {
    checksum(0..texts.len(), |n, text, bytes| {
        push_number(n as u32, text);
        answer(n, bytes);
    })
}

/// The number of each text in the order of all, equal ones having the same; comparisons, keys and hashes agree on it.
fn ranks(c: Collation, texts: &[String]) -> Vec<u32> {
    let keys: Vec<Vec<u8>> = texts.iter().map(|s| key(c, s)).collect();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by(|a, b| c.compare(&texts[*a], &texts[*b]));
    let (mut ranks, mut rank) = (vec![0; texts.len()], 0);
    for pair in order.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let is_less = c.compare(&texts[a], &texts[b]).is_lt();
        let of = || format!("{}: {:?} {:?}", c.name(), texts[a], texts[b]);
        assert_eq!(keys[a] < keys[b], is_less, "keys, {}", of());
        assert!(is_less || (keys[a] == keys[b] && hash(c, &texts[a]) == hash(c, &texts[b])), "{}", of());
        rank += u32::from(is_less);
        ranks[b] = rank;
    }
    ranks
}

#[test]
fn weights_cases_and_orders_are_mariadbs() {
    let samples = samples();
    let file: Vec<Vec<&str>> =
        include_str!("testdata/uca1400.tsv").lines().map(|line| line.split('\t').collect()).collect();
    let names: Vec<String> = file.iter().map(|fields| fields[..2].join(" ")).collect();
    let own = collations_of_mariadb().iter().map(|info| format!("{} {}", info.name, info.id));
    assert_eq!(names, own.collect::<Vec<_>>());
    let wrong = Mutex::new(Vec::new());
    on_all_cores(&file, |fields| {
        let [name, _, wanted @ ..] = &fields[..] else { panic!("{fields:?}") };
        if wanted.is_empty() {
            return;
        }
        let c = named(name);
        let charset = c.info().charset;
        let texts: Vec<String> = samples.iter().map(|s| charset.fitted(s.into()).into_owned()).collect();
        let ranks = ranks(c, &texts);
        let mut sums = vec![
            sum_of_samples(&texts, |n, to| c.weight_string(&texts[n], to)),
            sum_of_samples(&texts, |n, to| push_number(ranks[n], to)),
        ];
        let last = last_of(charset);
        if wanted.len() > 2 {
            sums.push(sum_of_characters(last, |s, to| c.weight_string(s, to)));
        }
        if wanted.len() > 3 {
            sums.extend([
                sum_of_characters(last, |s, to| to.extend_from_slice(c.upper(s).as_bytes())),
                sum_of_characters(last, |s, to| to.extend_from_slice(c.lower(s).as_bytes())),
            ]);
        }
        let wanted: Vec<u64> = wanted.iter().map(|sum| sum.parse().expect("a number")).collect();
        if sums != wanted {
            wrong.lock().expect("no check panics").push(format!("{name}: {sums:?}, not {wanted:?}"));
        }
    });
    let wrong = wrong.into_inner().expect("no check panics");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn prefix_keys_begin_the_keys_of_what_like_finds() {
    let samples: Vec<String> = samples().into_iter().step_by(5).collect();
    let own: Vec<_> = all_collations().filter(|info| info.is_of_mariadb()).collect();
    on_all_cores(&own, |info| check_prefix_keys(Collation(info.id), &samples));
}

#[test]
fn names_are_mariadbs_alone() {
    for info in collations_of_mariadb() {
        let c = Collation(info.id);
        assert!(c.is_of_mariadb() && c.name() == info.name);
        assert_eq!(Collation::by_name(info.name), Some(c));
    }
    assert!(!collations().iter().any(|info| info.is_of_mariadb()));
    for (name, id) in [
        ("utf8mb3_uca1400_ai_ci", 2048),
        ("utf8mb4_uca1400_ai_ci", 2304),
        ("utf8mb4_uca1400_ai_cs", 2305),
        ("utf8mb4_uca1400_as_ci", 2306),
        ("utf8mb4_uca1400_nopad_as_cs", 2311),
        ("utf8mb4_uca1400_german2_ai_ci", 2464),
        ("utf8mb4_uca1400_croatian_nopad_as_cs", 2503),
    ] {
        assert_eq!(named(name).0, id, "{name}");
    }
    let gaps = [2047, 2216, 2231, 2248, 2303, 2472, 2487, 2504, u16::MAX];
    assert_eq!(gaps.map(|id| Collation(id).name()), ["utf8mb4_0900_ai_ci"; 9]);
}

#[track_caller]
fn check(a: &str, b: &str, orders: [Ordering; 8]) {
    for (variant, wanted) in VARIANTS.iter().zip(orders) {
        let c = named(&format!("utf8mb4_uca1400_{variant}"));
        assert_eq!(c.compare(a, b), wanted, "{variant}: {a:?} {b:?}");
        assert_eq!(c.compare(b, a), wanted.reverse(), "{variant}: {b:?} {a:?}");
        assert_eq!(key(c, a).cmp(&key(c, b)), wanted, "{variant}: keys of {a:?} {b:?}");
    }
}

const VARIANTS: [&str; 8] =
    ["ai_ci", "ai_cs", "as_ci", "as_cs", "nopad_ai_ci", "nopad_ai_cs", "nopad_as_ci", "nopad_as_cs"];

#[test]
fn strings_compare_as_in_mariadb() {
    // In the order of `VARIANTS`.
    for (a, b, orders) in [
        ("a", "A", "=<=<=<=<"),
        ("a", "á", "==<<==<<"),
        ("á", "A", "=<>>=<>>"),
        ("a", "a ", "====<<<<"),
        ("é", "é ", "====<<<<"),
        ("A", "a ", "=>=><<<<"),
        ("a", "a\t", ">>>><<<<"),
        ("a\0", "a", "========"),
        ("ß", "ss", "=>>>=>>>"),
        ("l·", "ŀ", "========"),
        ("l·", "l", "==>>==>>"),
        ("L·a", "lb", "<<<<<<<<"),
        ("heL·", "hel", "=>>>=>>>"),
        ("й", "и\u{306}", "========"),
        ("เก", "ก", ">>>>>>>>"),
        ("가", "ᄀ\u{1161}", ">>>>>>>>"),
        ("가", "中", ">>>>>>>>"),
        ("ა", "Ა", "=<=<=<=<"),
        ("🍣", "🍺", "<<<<<<<<"),
        ("\u{301}", " ", "==>><<<<"),
        ("a\u{301}b", "ab", "==>>==>>"),
        ("a\u{301}A", "aA", "=<>>=<>>"),
        ("\u{301}", "", "==>>==>>"),
        ("ab", "a\u{301}B", "=<<<=<<<"),
    ] {
        let order = |sign: u8| match sign {
            b'<' => Ordering::Less,
            b'=' => Ordering::Equal,
            _ => Ordering::Greater,
        };
        check(a, b, std::array::from_fn(|variant| order(orders.as_bytes()[variant])));
    }
}

#[test]
fn like_knows_no_sequences() {
    for (text, pattern, wanted) in [
        ("ß", "ss", [false; 4]),
        ("é", "E", [true, false, false, false]),
        ("E", "e", [true, false, true, false]),
        ("é", "e", [true, false, false, false]),
        ("ŀ", "l·", [false; 4]),
        ("l·", "l_", [true; 4]),
        ("й", "и\u{306}", [false; 4]),
        ("и\u{306}", "__", [true; 4]),
        ("a ", "a", [false; 4]),
        ("เก", "เ%", [true; 4]),
        ("l·x", "L%", [true, false, true, false]),
        ("ა", "Ა", [true, false, true, false]),
        ("a\0", "a", [false; 4]),
        ("\u{301}", "%\u{300}", [true, true, false, false]),
        ("hel·lo", "%L%·lo", [true, false, true, false]),
    ] {
        for (variant, wanted) in VARIANTS.iter().zip(wanted.iter().cycle()) {
            let like = LikePattern::new(pattern, Some('\\'), named(&format!("utf8mb4_uca1400_{variant}")));
            assert_eq!(like.matches(text), *wanted, "{text:?} LIKE {pattern:?} ({variant})");
        }
    }
}

#[test]
fn an_l_is_on_the_fast_path() {
    for variant in VARIANTS {
        let rules = named(&format!("utf8mb4_uca1400_{variant}")).rules();
        assert!((b' '..0x7f).all(|byte| rules.codes[usize::from(byte)] != 0), "{variant}");
    }
}
