//! Numbers in texts: MySQL reads the longest numeric prefix of a string, and prints doubles in the shortest
//! form that reads back, with an exponent only for what is very large or very small.

mod width;

use std::array;
use std::io::Write as _;
use std::sync::LazyLock;

pub use width::write_f64_within;

/// The powers of ten that a double has room for.
static POWERS_OF_TEN: LazyLock<[f64; f64::MAX_10_EXP as usize + 1]> =
    LazyLock::new(|| array::from_fn(|exponent| format!("1e{exponent}").parse().expect("a number")));

/// 10 to the power of `exponent`, infinite beyond 308: the double that is nearest, which `powi` misses beyond 22.
pub fn power_of_ten(exponent: u32) -> f64 {
    POWERS_OF_TEN.get(exponent as usize).copied().unwrap_or(f64::INFINITY)
}

/// A number read from the start of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefix<T> {
    pub value: T,
    /// Something other than spaces follows, or nothing is there: MySQL's "Truncated incorrect … value".
    pub truncated: bool,
    /// No digit was found; the value is 0.
    pub empty: bool,
    /// Out of range: the value is the nearest.
    pub overflow: bool,
}

/// Bytes of the number at the start of `text`: sign, digits with a point, exponent. 0 if there is none.
fn float_len(text: &[u8]) -> usize {
    let digits = |at: usize| text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'-' | b'+')));
        let exponent = text.get(at + 1 + sign..).map_or(0, |_| digits(at + 1 + sign));
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    at
}

/// Whether anything but spaces is left.
fn leaves_rest(rest: &[u8]) -> bool {
    !rest.trim_ascii().is_empty()
}

/// The DOUBLE that a text is worth.
pub fn parse_f64(text: &[u8]) -> Prefix<f64> {
    let text = text.trim_ascii_start();
    let len = float_len(text);
    let number = std::str::from_utf8(&text[..len]).expect("digits are ASCII");
    let value: f64 = number.parse().unwrap_or(0.0);
    let overflow = value.is_infinite();
    Prefix {
        value: if overflow { f64::MAX.copysign(value) } else { value },
        truncated: len == 0 || leaves_rest(&text[len..]),
        empty: len == 0,
        overflow,
    }
}

/// The integer that a text is worth to CAST(… AS SIGNED/UNSIGNED): sign and digits only, no point, no exponent.
/// The value holds the range of both types.
pub fn parse_int(text: &[u8]) -> Prefix<i128> {
    let text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    let start = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[start..].iter().take_while(|b| b.is_ascii_digit()).count();
    let magnitude = text[start..start + digits]
        .iter()
        .fold(0i128, |v, b| v.saturating_mul(10).saturating_add(i128::from(b - b'0')));
    let value = if negative { -magnitude } else { magnitude };
    let clamped = value.clamp(i64::MIN.into(), u64::MAX.into());
    Prefix {
        value: clamped,
        truncated: digits == 0 || leaves_rest(&text[start + digits..]),
        empty: digits == 0,
        overflow: clamped != value,
    }
}

/// Digits that MySQL shows of a FLOAT.
const FLOAT_DIGITS: usize = 6;
/// Numbers below 10^15 and from 10^-15 on print without an exponent, greater ones if they have digits after the point;
const HAS_POINT: std::ops::RangeInclusive<i32> = -14..=15;
/// in strings if they are no longer than this then,
const MAX_FIXED_LEN: i32 = 22;
/// of columns than this,
const MAX_FIXED_LEN_OF_COLUMN: i32 = 24;
/// coordinates than this,
const MAX_FIXED_LEN_OF_COORDINATE: i32 = 25;
/// and FLOATs than this.
const MAX_FIXED_LEN_OF_FLOAT: i32 = 12;

/// Appends a DOUBLE as MySQL prints it in strings.
pub fn write_f64(v: f64, to: &mut Vec<u8>) {
    write_scientific(shortest(v).bytes(), MAX_FIXED_LEN, to);
}

/// Appends a DOUBLE of a column as MySQL prints it in strings.
pub fn write_f64_of_column(v: f64, to: &mut Vec<u8>) {
    write_scientific(shortest(v).bytes(), MAX_FIXED_LEN_OF_COLUMN, to);
}

/// Appends a DOUBLE as MySQL prints coordinates in well-known text.
pub fn write_coordinate(v: f64, to: &mut Vec<u8>) {
    write_scientific(shortest(v).bytes(), MAX_FIXED_LEN_OF_COORDINATE, to);
}

/// Appends a FLOAT as MySQL prints it in strings: six digits.
pub fn write_f32(v: f32, to: &mut Vec<u8>) {
    write_scientific(six_digits(v).bytes(), MAX_FIXED_LEN_OF_FLOAT, to);
}

/// Appends a DOUBLE as MySQL sends it to clients: without an exponent however long it is.
pub fn write_f64_result(v: f64, to: &mut Vec<u8>) {
    write_scientific(shortest(v).bytes(), i32::MAX, to);
}

/// Appends a FLOAT as MySQL sends it to clients.
pub fn write_f32_result(v: f32, to: &mut Vec<u8>) {
    write_scientific(six_digits(v).bytes(), i32::MAX, to);
}

fn shortest(v: f64) -> Stack {
    let mut text = Stack::default();
    write!(text, "{v:e}").expect("a double's shortest form has at most 24 bytes");
    text
}

fn six_digits(v: f32) -> Stack {
    let mut text = Stack::default();
    write!(text, "{:.*e}", FLOAT_DIGITS - 1, f64::from(v)).expect("six digits and an exponent fit");
    text
}

/// Appends a DOUBLE with a fixed number of digits after the point, as ROUND(v, n) and the like print.
/// What the shortest form has no digits for are zeros.
pub fn write_f64_fixed(v: f64, decimals: u8, to: &mut Vec<u8>) {
    if !v.is_finite() {
        to.push(b'0');
        return;
    }
    let shortest = format!("{v}");
    let fraction = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let decimals = usize::from(decimals);
    if fraction > decimals {
        write!(to, "{v:.decimals$}").expect("writing to a Vec does not fail");
        return;
    }
    to.extend_from_slice(shortest.as_bytes());
    if decimals > 0 {
        if fraction == 0 {
            to.push(b'.');
        }
        to.resize(to.len() + decimals - fraction, b'0');
    }
}

#[derive(Default)]
struct Stack {
    bytes: [u8; 32],
    len: usize,
}

impl Stack {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl std::io::Write for Stack {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        let len = from.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + len].copy_from_slice(&from[..len]);
        self.len += len;
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Turns `d.ddde±x` into MySQL's form, with an exponent if it were longer than `most` without.
fn write_scientific(text: &[u8], most: i32, to: &mut Vec<u8>) {
    let Some(at) = text.iter().position(|b| *b == b'e') else {
        // What is infinite or no number, as sums may be, is shown as 0 (`my_gcvt`).
        to.push(b'0');
        return;
    };
    let (mantissa, exponent) = (&text[..at], &text[at + 1..]);
    let exponent: i32 = std::str::from_utf8(exponent).ok().and_then(|e| e.parse().ok()).unwrap_or(0);
    let negative = mantissa.first() == Some(&b'-');
    let mut digits = [0; 24];
    let mut len = 0;
    for digit in mantissa.iter().filter(|b| b.is_ascii_digit()) {
        digits[len] = *digit;
        len += 1;
    }
    while len > 1 && digits[len - 1] == b'0' {
        len -= 1;
    }
    if negative {
        to.push(b'-');
    }
    write_digits(&digits[..len], exponent + 1, most - i32::from(negative), to);
}

/// Appends `0.digits × 10^point`, with an exponent if it were longer than `room` without.
fn write_digits(digits: &[u8], point: i32, room: i32, to: &mut Vec<u8>) {
    if digits == b"0" {
        to.push(b'0');
    } else if has_point(digits, point) && fixed_len(digits, point) <= room {
        write_fixed(digits, point, to);
    } else {
        write_exponent(digits, point, to);
    }
}

/// Whether `0.digits × 10^point` is written without an exponent where there is room.
fn has_point(digits: &[u8], point: i32) -> bool {
    HAS_POINT.contains(&point) || (point > 0 && digits.len() as i32 > point)
}

/// The length of what [`write_fixed`] writes.
fn fixed_len(digits: &[u8], point: i32) -> i32 {
    let len = digits.len() as i32;
    match point {
        ..=0 => 2 - point + len,
        _ if point < len => len + 1,
        _ => point,
    }
}

fn write_exponent(digits: &[u8], point: i32, to: &mut Vec<u8>) {
    to.push(digits[0]);
    if digits.len() > 1 {
        to.push(b'.');
        to.extend_from_slice(&digits[1..]);
    }
    write!(to, "e{}", point - 1).expect("writing to a Vec does not fail");
}

fn write_fixed(digits: &[u8], point: i32, to: &mut Vec<u8>) {
    let zeros = |to: &mut Vec<u8>, n: usize| to.resize(to.len() + n, b'0');
    let whole = point.max(0) as usize;
    if point <= 0 {
        to.extend_from_slice(b"0.");
        zeros(to, -point as usize);
        to.extend_from_slice(digits);
    } else if whole >= digits.len() {
        to.extend_from_slice(digits);
        zeros(to, whole - digits.len());
    } else {
        to.extend_from_slice(&digits[..whole]);
        to.push(b'.');
        to.extend_from_slice(&digits[whole..]);
    }
}

/// Appends an integer.
pub fn write_i64(v: i64, to: &mut Vec<u8>) {
    if v < 0 {
        to.push(b'-');
    }
    write_u64(v.unsigned_abs(), to);
}

/// Appends an integer.
pub fn write_u64(mut v: u64, to: &mut Vec<u8>) {
    let mut text = [0; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (v % 10) as u8;
        v /= 10;
        if v == 0 {
            break;
        }
    }
    to.extend_from_slice(&text[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(v: f64) -> String {
        let mut text = Vec::new();
        write_f64(v, &mut text);
        String::from_utf8(text).expect("ASCII")
    }

    /// Results of MySQL 9.7.
    #[test]
    fn doubles_print_as_in_mysql() {
        for (v, wanted) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e15, "1e15"),
            (1e14, "100000000000000"),
            (1.2345678901234568e17, "1.2345678901234568e17"),
            (1e-5, "0.00001"),
            (1e-10, "0.0000000001"),
            (1.5e-15, "0.0000000000000015"),
            (1.234567890123456e-5, "0.00001234567890123456"),
            (1.2345678901234567e-5, "1.2345678901234568e-5"),
            (1.23456789012345e-7, "1.23456789012345e-7"),
            (-1.2345678901234567e-4, "-1.2345678901234567e-4"),
            (-1.23456789012345e-5, "-0.0000123456789012345"),
            (1e-16, "1e-16"),
            (123e20, "1.23e22"),
            (-1.5e300, "-1.5e300"),
            (0.1 + 0.2, "0.30000000000000004"),
            (123456.789e0, "123456.789"),
            (123456.789e0 * 1e10, "1.23456789e15"),
            (1099999999713614.1, "1099999999713614.1"),
            (1234567890123456.0, "1.234567890123456e15"),
        ] {
            assert_eq!(shown(v), wanted);
        }
        for (v, wanted) in [
            (-1.234567890123457e-10, "-0.0000000001234567890123457"),
            (0.00012345678901234567, "0.00012345678901234567"),
            (1.5e-16, "1.5e-16"),
        ] {
            let mut text = Vec::new();
            write_f64_result(v, &mut text);
            assert_eq!(String::from_utf8(text).expect("ASCII"), wanted);
        }
        for (v, in_strings, as_result) in
            [(1e14f32, "1e14", "100000000000000"), (-1.23456e-14, "-1.23456e-14", "-0.0000000000000123456")]
        {
            let (mut string, mut result) = (Vec::new(), Vec::new());
            write_f32(v, &mut string);
            write_f32_result(v, &mut result);
            assert_eq!((&string[..], &result[..]), (in_strings.as_bytes(), as_result.as_bytes()));
        }
        for (v, wanted) in [(0.1f32, "0.1"), (1234567890f32, "1234570000"), (1.5, "1.5"), (3.4e38, "3.4e38")]
        {
            let mut text = Vec::new();
            write_f32(v, &mut text);
            assert_eq!(String::from_utf8(text).expect("ASCII"), wanted);
        }
    }

    #[test]
    fn texts_are_read_as_prefixes() {
        for (text, value, truncated) in [
            ("12", 12.0, false),
            (" -1.5e2 ", -150.0, false),
            ("1e", 1.0, true),
            ("1.5.6", 1.5, true),
            (".5", 0.5, false),
            ("5.", 5.0, false),
            ("abc", 0.0, true),
            ("", 0.0, true),
            ("1e999", f64::MAX, false),
            ("inf", 0.0, true),
        ] {
            let got = parse_f64(text.as_bytes());
            assert_eq!((got.value, got.truncated), (value, truncated), "{text}");
        }
        for (text, value, truncated, overflow) in [
            ("12", 12, false, false),
            ("-1.9", -1, true, false),
            ("1e2", 1, true, false),
            ("18446744073709551616", u64::MAX.into(), false, true),
            ("-9223372036854775809", i64::MIN.into(), false, true),
        ] {
            let got = parse_int(text.as_bytes());
            assert_eq!((got.value, got.truncated, got.overflow), (value, truncated, overflow), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn doubles_read_back(v in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            proptest::prop_assert_eq!(parse_f64(shown(v).as_bytes()).value, v);
        }
    }
}
