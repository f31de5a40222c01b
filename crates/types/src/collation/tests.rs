use std::hash::{DefaultHasher, Hasher};

use proptest::prelude::*;

use super::*;

pub(super) fn named(name: &str) -> Collation {
    Collation::by_name(name).unwrap_or_else(|| panic!("{name}"))
}

/// MySQL's collations, and of MariaDB's those of the root; of each language those that tell least and most apart.
pub(super) fn all_collations() -> impl Iterator<Item = &'static CollationInfo> {
    let mariadbs = collations_of_mariadb().iter();
    collations().iter().chain(mariadbs.filter(|info| {
        let (language, variant) = (info.id % 256 / 8, info.id % 8);
        language == 0 || (info.charset == Charset::Utf8mb4 && [0, 7].contains(&variant))
    }))
}

pub(super) fn key(collation: Collation, s: &str) -> Vec<u8> {
    let mut key = Vec::new();
    collation.sort_key(s, &mut key);
    key
}

pub(super) fn hash(collation: Collation, s: &str) -> u64 {
    let mut state = DefaultHasher::new();
    collation.hash(s, &mut state);
    state.finish()
}

#[track_caller]
fn check(collation: &str, a: &str, b: &str, wanted: Ordering) {
    let c = named(collation);
    assert_eq!(c.compare(a, b), wanted, "{collation}: {a:?} {b:?}");
    assert_eq!(c.compare(b, a), wanted.reverse(), "{collation}: {b:?} {a:?}");
    assert_eq!(key(c, a).cmp(&key(c, b)), wanted, "{collation}: keys of {a:?} {b:?}");
}

/// Results of MySQL 9.7.
#[test]
fn strings_compare_as_in_mysql() {
    use Ordering::{Equal, Greater, Less};
    for (collation, a, b, wanted) in [
        ("utf8mb4_0900_ai_ci", "a", "A", Equal),
        ("utf8mb4_0900_ai_ci", "a", "ä", Equal),
        ("utf8mb4_0900_ai_ci", "ß", "ss", Equal),
        ("utf8mb4_0900_ai_ci", "æ", "ae", Equal),
        ("utf8mb4_0900_ai_ci", "a", "a ", Less),
        ("utf8mb4_0900_ai_ci", "a", "a\0", Equal),
        ("utf8mb4_0900_ai_ci", "a", "b", Less),
        ("utf8mb4_0900_ai_ci", "_", "a", Less),
        ("utf8mb4_0900_ai_ci", "9", "a", Less),
        ("utf8mb4_0900_ai_ci", "й", "и", Greater),
        ("utf8mb4_0900_ai_ci", "я", "ё", Greater),
        ("utf8mb4_0900_ai_ci", "Ω", "ω", Equal),
        ("utf8mb4_0900_ai_ci", "한", "가", Greater),
        ("utf8mb4_0900_ai_ci", "中", "丁", Greater),
        ("utf8mb4_0900_ai_ci", "🍣", "🍺", Less),
        ("utf8mb4_0900_as_ci", "a", "ä", Less),
        ("utf8mb4_0900_as_ci", "a", "A", Equal),
        ("utf8mb4_0900_as_cs", "a", "A", Less),
        ("utf8mb4_0900_as_cs", "aB", "Aa", Greater),
        ("utf8mb4_0900_bin", "a", "B", Greater),
        ("utf8mb4_0900_bin", "a", "a ", Less),
        ("utf8mb4_bin", "a", "a ", Equal),
        ("utf8mb4_bin", "a\t", "a", Less),
        ("utf8mb4_bin", "a  b", "a b", Less),
        ("utf8mb4_bin", "a  \t", "a \t", Greater),
        ("utf8mb4_general_ci", "ß", "s", Equal),
        ("utf8mb4_general_ci", "ß", "ss", Less),
        ("utf8mb4_general_ci", "a", "A  ", Equal),
        ("utf8mb4_general_ci", "é", "E", Equal),
        ("utf8mb4_general_ci", "🍣", "🍺", Equal),
        ("utf8mb4_unicode_ci", "ß", "ss ", Equal),
        ("utf8mb4_unicode_ci", "a\t", "a", Less),
        ("latin1_swedish_ci", "ä", "z", Greater),
        ("latin1_swedish_ci", "ü", "y", Equal),
        ("latin1_swedish_ci", "Å", "å", Equal),
        ("ascii_general_ci", "a", "A ", Equal),
        ("binary", "a", "A", Greater),
    ] {
        check(collation, a, b, wanted);
    }
}

#[test]
fn like_matches_character_by_character() {
    for (text, pattern, collation, wanted) in [
        ("ß", "ss", "utf8mb4_0900_ai_ci", false),
        ("ä", "A", "utf8mb4_0900_ai_ci", true),
        ("ä", "A", "utf8mb4_0900_as_ci", false),
        ("a", "A", "utf8mb4_0900_as_cs", false),
        ("a\0b", "ab", "utf8mb4_0900_ai_ci", false),
        ("a_c", "a\\_c", "utf8mb4_bin", true),
        ("abc", "a\\_c", "utf8mb4_bin", false),
        ("a", "a ", "utf8mb4_general_ci", false),
        ("", "%", "utf8mb4_bin", true),
        ("", "_%", "utf8mb4_bin", false),
        ("abcabd", "%ab_", "utf8mb4_bin", true),
        ("abcabd", "%abc", "utf8mb4_bin", false),
        ("special handled requests", "%SPECIAL%requests%", "utf8mb4_0900_ai_ci", true),
        ("requests special", "%special%requests%", "utf8mb4_0900_ai_ci", false),
        ("aa", "a%a", "utf8mb4_0900_ai_ci", true),
        ("a", "a%a", "utf8mb4_0900_ai_ci", false),
        ("äöü", "__Ü", "utf8mb4_0900_ai_ci", true),
        ("100%", "100\\%", "utf8mb4_0900_ai_ci", true),
    ] {
        let like = LikePattern::new(pattern, Some('\\'), named(collation));
        assert_eq!(like.matches(text), wanted, "{text} LIKE {pattern} ({collation})");
    }
    let prefixed = LikePattern::new("ab\\%c%", Some('\\'), Collation::DEFAULT);
    assert_eq!((prefixed.prefix(), prefixed.is_prefix_only(), prefixed.is_plain()), ("ab%c", true, false));
}

#[test]
fn case_is_mapped_one_to_one() {
    let c = Collation::DEFAULT;
    assert_eq!(c.upper("straße Ñandú я"), "STRAßE ÑANDÚ Я");
    assert_eq!(c.lower("ÀÉÎ X"), "àéî x");
    assert!(matches!(c.upper("ABC 1"), Cow::Borrowed(_)));
    // Letters whose other case takes more bytes, and those of Deseret, which UCA 4.0.0 had not yet.
    for (name, upper, lower) in [
        ("utf8mb4_0900_ai_ci", "AⱯBC\u{10400}", "ⱥⱦ\u{10428}"),
        ("utf8mb4_unicode_520_ci", "AⱯBC\u{10400}", "ⱥⱦ\u{10428}"),
        ("utf8mb4_unicode_ci", "AɐBC\u{10428}", "ȺȾ\u{10400}"),
    ] {
        let c = named(name);
        assert_eq!(c.upper("aɐbc\u{10428}"), upper, "{name}");
        assert_eq!(c.lower("ȺȾ\u{10400}"), lower, "{name}");
    }
}

#[test]
fn ids_and_names_are_mysqls() {
    assert_eq!(Collation::DEFAULT.name(), "utf8mb4_0900_ai_ci");
    assert_eq!(named("utf8mb3_general_ci").0, 33);
    assert_eq!(Charset::Utf8mb4.default_collation(), Collation::DEFAULT);
    assert!(named("utf8mb4_bin").is_padded() && !named("utf8mb4_0900_bin").is_padded());
    for info in all_collations() {
        assert_eq!(Collation(info.id).info().name, info.name);
        assert_eq!(Collation(info.id).info().pad_space, Collation(info.id).is_padded(), "{}", info.name);
    }
}

fn texts() -> impl Strategy<Value = String> {
    let chars = prop_oneof![
        8 => proptest::char::range(' ', '~'),
        2 => Just(' '),
        1 => proptest::char::range('\0', '\u{1f}'),
        2 => proptest::char::range('\u{80}', '\u{5ff}'),
        1 => any::<char>(),
    ];
    proptest::collection::vec(chars, 0..12).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn keys_order_as_strings_compare(a in texts(), b in texts(), cut in 0usize..12, tail in texts()) {
        // Often with a common beginning.
        let shared: String = a.chars().take(cut).chain(tail.chars()).collect();
        for info in all_collations() {
            let c = Collation(info.id);
            for other in [&b, &shared] {
                let order = c.compare(&a, other);
                prop_assert_eq!(key(c, &a).cmp(&key(c, other)), order, "{} {:?} {:?}", info.name, a, other);
                prop_assert_eq!(c.compare(other, &a), order.reverse());
                if order.is_eq() {
                    prop_assert_eq!(hash(c, &a), hash(c, other), "{} {:?} {:?}", info.name, a, other);
                } else {
                    let (x, y) = (key(c, &a), key(c, other));
                    prop_assert!(!x.starts_with(&y) && !y.starts_with(&x));
                }
            }
            let like = LikePattern::new(&a, None, c);
            prop_assert!(a.contains(['%', '_']) || like.matches(&a));
            let mut prefix = Vec::new();
            c.sort_key_prefix(&a, &mut prefix);
            let longer = format!("{a}{b}");
            prop_assert!(key(c, &longer).starts_with(&prefix), "{} {:?}", info.name, longer);
        }

    }

    #[test]
    fn like_agrees_with_a_model(text in "[abAB%_]{0,8}", pattern in "[abA%_]{0,6}") {
        fn model(text: &[u8], pattern: &[u8]) -> bool {
            match (pattern.split_first(), text.split_first()) {
                (None, _) => text.is_empty(),
                (Some((b'%', rest)), _) => (0..=text.len()).any(|n| model(&text[n..], rest)),
                (Some((b'_', rest)), Some((_, after))) => model(after, rest),
                (Some((c, rest)), Some((t, after))) => c.eq_ignore_ascii_case(t) && model(after, rest),
                (Some(_), None) => false,
            }
        }
        let like = LikePattern::new(&pattern, Some('\\'), Collation::DEFAULT);
        prop_assert_eq!(like.matches(&text), model(text.as_bytes(), pattern.as_bytes()));
    }
}

/// Long texts are looked for in one pass; so that each place is tried, each is tried by itself here.
#[test]
fn long_texts_are_found_where_they_first_stand() {
    let mut state = 1u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let alphabet = ['a', 'A', 'b', 'ä', '日'];
    for collation in ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci", "latin1_swedish_ci"] {
        let collation = named(collation);
        for _ in 0..300 {
            let letters = 2 + next(alphabet.len() - 1);
            let text: String = (0..next(200)).map(|_| alphabet[next(letters)]).collect();
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let from = starts.get(next(starts.len().max(1))).copied().unwrap_or(0);
            let wanted: String = match next(2) {
                0 => text[from..].chars().take(17 + next(30)).map(|c| c.to_ascii_uppercase()).collect(),
                _ => (0..17 + next(10)).map(|_| alphabet[next(2)]).collect(),
            };
            let count = wanted.chars().count();
            let is_here = |at: &usize| {
                let mut behind = text[*at..].chars();
                wanted.chars().all(|c| {
                    behind.next().is_some_and(|d| {
                        LikePattern::new(&c.to_string(), None, collation).matches(&d.to_string())
                    })
                })
            };
            // Nothing at all is found at the end, too.
            let first = starts.iter().copied().chain([text.len()]).find(is_here);
            let found = collation.find(&text, &wanted, 0);
            assert_eq!(found.map(|(start, _)| start), first, "{wanted} in {text}");
            if let Some((start, end)) = found {
                assert_eq!(text[start..end].chars().count(), count);
            }
            let like = LikePattern::new(&format!("%{wanted}%"), None, collation);
            assert_eq!(like.matches(&text), first.is_some(), "{wanted} in {text}");
        }
    }
}
