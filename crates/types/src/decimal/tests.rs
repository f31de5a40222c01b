use std::hash::{BuildHasher, RandomState};

use super::*;

fn dec(text: &str) -> Decimal {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[track_caller]
fn check(got: Result<Option<Decimal>, Overflow>, wanted: &str) {
    assert_eq!(got.map(|d| d.map(|d| d.to_string())), Ok(Some(wanted.to_owned())));
}

/// Results of MySQL 9.7.
#[test]
fn division_gives_mysqls_digits() {
    for (a, b, wanted) in [
        ("1", "3", "0.3333"),
        ("2", "3", "0.6667"),
        ("-2", "3", "-0.6667"),
        ("1.23", "7", "0.175714"),
        ("1.23456789", "7", "0.176366841429"),
        ("1.0", "3", "0.33333"),
        ("2.00000", "3", "0.666666666"),
        ("2.000000", "3", "0.6666666667"),
        ("2.0000", "3", "0.66666667"),
        ("2.00000", "3.1", "0.645161290"),
        ("2.00000000000000", "3", "0.666666666666666666"),
        ("2.00000", "3.12345678901", "0.640316206"),
        ("20000000000000000000000000.00000", "3", "6666666666666666666666666.666666666"),
        (
            "1.000000000000000000000000001",
            "3.0000000000000000000000000001",
            "0.333333333333333333333333333656",
        ),
        (
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "3",
            "33333333333333333333333333333333333.333333333333333333333333333333",
        ),
        ("1", "0.000000000000000000000000000003", "333333333333333333333333333333.3333"),
    ] {
        let (a, b) = (dec(a), dec(b));
        check(a.div(&b, (a.scale() + 4).min(Decimal::MAX_SCALE)), wanted);
    }
    assert_eq!(dec("5").div(&dec("0.00"), 4), Ok(None));
    // Of another `div_precision_increment`: words of nine digits are computed, none of them with 0.
    for (a, b, increment, wanted) in [
        ("1", "202", 2, "0.00"),
        ("2", "3", 2, "0.67"),
        ("49996", "100000", 0, "0"),
        ("2", "3", 9, "0.666666666"),
        ("2.00000", "3", 9, "0.66666666666667"),
        ("2", "3", 30, "0.666666666666666666666666666667"),
        (
            "1",
            "0.000000000000000000000000000003",
            30,
            "333333333333333333333333333333.333333333333333333333333333333",
        ),
    ] {
        check(dec(a).div(&dec(b), dec(a).scale() + increment), wanted);
    }
}

#[test]
fn products_keep_thirty_digits() {
    for (a, b, wanted) in [
        ("1.5", "-2.25", "-3.375"),
        ("0.1234567890123456789012345678", "0.1234567890", "0.015241578751714678875171467876"),
        ("0.00000000000000000005", "0.000000000005", "0.000000000000000000000000000000"),
        ("0.00000000000000000005", "0.00000000001", "0.000000000000000000000000000001"),
        (
            "123456789012345678901234567890123456789012345.0001",
            "12345678901.0001",
            "1524157875294937022208393702220839370222083928641946314.12460001",
        ),
    ] {
        check(dec(a).mul(&dec(b)).map(Some), wanted);
    }
    let nines = Decimal::max_of(65, 0, false);
    assert_eq!(nines.mul(&nines), Err(Overflow));
    check(nines.mul(&dec("10")).map(Some), &format!("{}0", "9".repeat(65)));
    check(nines.add(&dec("1")).map(Some), &format!("1{}", "0".repeat(65)));
}

#[test]
fn remainders_have_the_dividends_sign() {
    for (a, b, wanted) in
        [("1.5", "0.4", "0.3"), ("-7", "3", "-1"), ("10.5", "3.25", "0.75"), ("-10.5", "3", "-1.5")]
    {
        check(Ok(dec(a).rem(&dec(b))), wanted);
    }
    check(dec("5").int_div(&dec("2.3")), "2");
}

#[test]
fn rounding_is_half_away_from_zero() {
    for (value, digits, rounded, cut) in [
        ("-2.5", 0, "-3", "-2"),
        ("2.5", 0, "3", "2"),
        ("2.4999", 0, "2", "2"),
        ("-2.55", 1, "-2.6", "-2.5"),
        ("125", -1, "130", "120"),
        ("125", -4, "0", "0"),
        ("5555", -4, "10000", "0"),
        ("1.5", 3, "1.5", "1.5"),
        ("0.999999999999999999999999999999", 0, "1", "0"),
    ] {
        assert_eq!(dec(value).round(digits).to_string(), rounded, "round {value} {digits}");
        assert_eq!(dec(value).truncate(digits).to_string(), cut, "truncate {value} {digits}");
    }
    assert_eq!((dec("-1.2").ceil().to_string(), dec("-1.2").floor().to_string()), ("-1".into(), "-2".into()));
    assert_eq!((dec("1.2").ceil().to_string(), dec("1.2").floor().to_string()), ("2".into(), "1".into()));
}

#[test]
fn texts_are_read_as_prefixes() {
    for (text, value, consumed, status) in [
        ("  -12.50abc", "-12.50", 8, ParseStatus::Exact),
        ("1e3", "1000", 3, ParseStatus::Exact),
        ("1.5e-3x", "0.0015", 6, ParseStatus::Exact),
        ("1e", "1", 1, ParseStatus::Exact),
        (".5", "0.5", 2, ParseStatus::Exact),
        ("5.", "5", 2, ParseStatus::Exact),
        ("abc", "0", 0, ParseStatus::NotANumber),
        ("", "0", 0, ParseStatus::NotANumber),
        ("-", "0", 0, ParseStatus::NotANumber),
        ("0.00000000000000000000000000000015", "0.000000000000000000000000000000", 34, ParseStatus::Rounded),
        ("1e-400", "0.000000000000000000000000000000", 6, ParseStatus::Rounded),
    ] {
        let got = Decimal::parse_prefix(text.as_bytes());
        assert_eq!(
            (got.value.to_string().as_str(), got.consumed, got.status),
            (value, consumed, status),
            "{text}"
        );
    }
    let many = "9".repeat(70);
    assert_eq!(Decimal::parse_prefix(many.as_bytes()).status, ParseStatus::Overflow);
    assert_eq!(Decimal::parse_prefix(b"1e100").value, Decimal::max_of(65, 0, false));
}

#[test]
fn equal_values_hash_alike_whatever_their_scale() {
    let hasher = RandomState::new();
    for (a, b) in [("1", "1.000"), ("-0.50", "-0.5"), ("0", "0.000"), ("100", "100.0")] {
        assert_eq!(dec(a), dec(b));
        assert_eq!(hasher.hash_one(dec(a)), hasher.hash_one(dec(b)), "{a} {b}");
    }
    assert!(dec("1.5") > dec("1.49999999999999999999"));
    assert!(Decimal::max_of(65, 0, true) < Decimal::max_of(65, 30, true));
}

#[test]
fn doubles_convert_by_their_shortest_text() {
    for (v, wanted) in
        [(0.1, "0.1"), (1e20, "100000000000000000000"), (-1.5e-7, "-0.00000015"), (123.456, "123.456")]
    {
        assert_eq!(Decimal::from_f64(v).map(|d| d.to_string()), Ok(wanted.to_owned()));
        assert_eq!(dec(wanted).to_f64(), v);
    }
    assert_eq!(Decimal::from_f64(1e80), Err(Overflow));
}

mod model {
    use proptest::prelude::*;

    use super::*;

    fn decimals() -> impl Strategy<Value = Decimal> {
        let unscaled = prop_oneof![
            any::<i64>().prop_map(|v| i256::from_i128(v.into())),
            (any::<i128>(), 0u32..28).prop_map(|(v, shift)| {
                i256::from_i128(v / 2).checked_mul(pow10_256(shift % 26).expect("small")).expect("fits")
            }),
            (-50i128..50).prop_map(i256::from_i128),
        ];
        (unscaled, 0u8..=30).prop_map(|(v, scale)| Decimal::from_i256(v, scale))
    }

    proptest! {
        #[test]
        fn text_round_trips(d in decimals()) {
            let mut text = Vec::new();
            d.write(&mut text);
            let text = String::from_utf8(text).expect("ASCII");
            prop_assert_eq!(text.clone(), d.to_string());
            let parsed = Decimal::parse_prefix(text.as_bytes());
            if parsed.status == ParseStatus::Exact {
                prop_assert_eq!(parsed.value.as_i256(), d.as_i256());
                prop_assert_eq!(parsed.value.scale(), d.scale());
            }
        }

        #[test]
        fn arithmetic_agrees_with_itself(a in decimals(), b in decimals()) {
            let sum = a.add(&b).expect("sums of 66 digits fit");
            if sum.scale() == a.scale().max(b.scale()) {
                prop_assert_eq!(sum.sub(&b).expect("fits"), a.clone());
            }
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&b), a.neg().cmp(&b.neg()).reverse());
            if let (Ok(Some(whole)), Some(rest)) = (a.int_div(&b), a.rem(&b))
                && let Ok(product) = whole.mul(&b)
                && product.scale() == b.scale()
                && let Ok(back) = product.add(&rest)
                && back.scale() == a.scale().max(b.scale())
            {
                prop_assert_eq!(back, a);
            }
        }

        #[test]
        fn small_arithmetic_agrees_with_i128(a in any::<i64>(), b in any::<i64>(), s in 0u8..10, t in 0u8..10) {
            let (x, y) = (Decimal::new(a.into(), s), Decimal::new(b.into(), t));
            let (p, q) = (i128::from(a) * POW10[usize::from(t)], i128::from(b) * POW10[usize::from(s)]);
            prop_assert_eq!(x.cmp(&y), p.cmp(&q));
            let common = POW10[usize::from(s.min(t))];
            prop_assert_eq!(x.add(&y).expect("fits").as_i128(), Some((p + q) / common));
            prop_assert_eq!(x.mul(&y).expect("fits").as_i128(), Some(i128::from(a) * i128::from(b)));
        }
    }
}

#[test]
fn powers_beyond_256_bits_are_refused() {
    let mut power = i256::ONE;
    for n in 0..=76 {
        assert_eq!(pow10_256(n), Some(power), "10^{n}");
        power = power.checked_mul(i256::from_i128(10)).unwrap_or_default();
    }
    for n in [77, 78, 1_000_000, u32::MAX] {
        assert_eq!(pow10_256(n), None, "10^{n}");
    }
}
