//! Values as text, as MySQL prints them: the cells of the text protocol.

use std::io::Write;

use arrow::datatypes::i256;
use avocet_types::{Datum, Decimal, SqlType};

use super::PacketBuf;

/// Writes a cell of a text row.
#[inline]
pub fn cell(out: &mut PacketBuf, value: &Datum<'_>, ty: &SqlType) {
    match value {
        Datum::Null => out.put_u8(0xFB),
        Datum::Str(text) => out.lenenc_bytes(text.as_bytes()),
        Datum::Bytes(bytes) => out.lenenc_bytes(bytes),
        _ => out.lenenc_short(|buf| scalar(buf, value, ty)),
    }
}

/// Appends a value's text; nothing for NULL. `ty` decides about fractional digits.
pub fn scalar(buf: &mut Vec<u8>, value: &Datum<'_>, ty: &SqlType) {
    match value {
        Datum::Null => {}
        Datum::Int(v) => int(buf, *v),
        Datum::UInt(v) if matches!(ty, SqlType::Year) => padded(buf, *v, 4),
        Datum::UInt(v) => uint(buf, *v),
        Datum::Float(v) => float(buf, *v),
        Datum::Double(v) => double(buf, *v),
        Datum::Decimal(v) => decimal(buf, v),
        Datum::Str(text) => buf.extend_from_slice(text.as_bytes()),
        Datum::Bytes(bytes) => buf.extend_from_slice(bytes),
        Datum::Date(days) => date(buf, *days),
        Datum::DateTime(micros) => datetime(buf, *micros, fractional_digits(ty)),
        Datum::Time(micros) => time(buf, *micros, fractional_digits(ty)),
    }
}

/// Fractional digits of a temporal type.
pub fn fractional_digits(ty: &SqlType) -> u8 {
    match ty {
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } | SqlType::Time { fsp } => *fsp,
        _ => 0,
    }
}

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

pub fn uint(buf: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    buf.extend_from_slice(&digits[at..]);
}

pub fn int(buf: &mut Vec<u8>, value: i64) {
    if value < 0 {
        buf.push(b'-');
    }
    uint(buf, value.unsigned_abs());
}

/// With zeros in front, up to `width` digits; wider values are written in full.
fn padded(buf: &mut Vec<u8>, value: u64, width: u32) {
    for place in (1..width).rev() {
        if value >= 10u64.pow(place) {
            break;
        }
        buf.push(b'0');
    }
    uint(buf, value);
}

pub fn decimal(buf: &mut Vec<u8>, value: &Decimal) {
    let scale = usize::from(value.scale());
    match value.as_i128() {
        Some(small) => {
            if small < 0 {
                buf.push(b'-');
            }
            match u64::try_from(small.unsigned_abs()) {
                Ok(narrow) => point(buf, scale, |buf| uint(buf, narrow)),
                Err(_) => point(buf, scale, |buf| {
                    let _ = write!(buf, "{}", small.unsigned_abs());
                }),
            }
        }
        None => wide_decimal(buf, value.as_i256(), scale),
    }
}

fn wide_decimal(buf: &mut Vec<u8>, value: i256, scale: usize) {
    let text = value.to_string();
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if digits.len() < text.len() {
        buf.push(b'-');
    }
    point(buf, scale, |buf| buf.extend_from_slice(digits.as_bytes()));
}

/// Has the digits written and puts the decimal point `scale` digits from their end.
fn point(buf: &mut Vec<u8>, scale: usize, digits: impl FnOnce(&mut Vec<u8>)) {
    let start = buf.len();
    digits(buf);
    if scale == 0 {
        return;
    }
    let missing = (scale + 1).saturating_sub(buf.len() - start);
    if missing > 0 {
        buf.splice(start..start, std::iter::repeat_n(b'0', missing));
    }
    buf.insert(buf.len() - scale, b'.');
}

pub fn date(buf: &mut Vec<u8>, days: i32) {
    let (year, month, day) = civil(i64::from(days));
    if year < 0 {
        buf.push(b'-');
    }
    padded(buf, year.unsigned_abs(), 4);
    buf.push(b'-');
    two(buf, month);
    buf.push(b'-');
    two(buf, day);
}

pub fn datetime(buf: &mut Vec<u8>, micros: i64, fsp: u8) {
    let days = micros.div_euclid(MICROS_PER_DAY);
    date(buf, i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX }));
    buf.push(b' ');
    let rest = micros.rem_euclid(MICROS_PER_DAY) as u64;
    clock(buf, rest, fsp);
}

pub fn time(buf: &mut Vec<u8>, micros: i64, fsp: u8) {
    if micros < 0 {
        buf.push(b'-');
    }
    clock(buf, micros.unsigned_abs(), fsp);
}

/// `HH:MM:SS[.ffffff]`, with more than two digits of hours where there are.
fn clock(buf: &mut Vec<u8>, micros: u64, fsp: u8) {
    let per_second = MICROS_PER_SECOND as u64;
    let seconds = micros / per_second;
    let hours = seconds / 3600;
    if hours < 100 {
        two(buf, hours as u32)
    } else {
        uint(buf, hours)
    }
    buf.push(b':');
    two(buf, (seconds / 60 % 60) as u32);
    buf.push(b':');
    two(buf, (seconds % 60) as u32);
    if fsp > 0 {
        let digits = u32::from(fsp.min(6));
        buf.push(b'.');
        padded(buf, micros % per_second / 10u64.pow(6 - digits), digits);
    }
}

fn two(buf: &mut Vec<u8>, value: u32) {
    buf.push(b'0' + (value / 10 % 10) as u8);
    buf.push(b'0' + (value % 10) as u8);
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar
/// (the era-of-400-years method of H. Hinnant, "chrono-compatible low-level date algorithms").
pub fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days from 1970-01-01 to a date; the inverse of [`civil`].
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = i64::from(if month > 2 { month - 3 } else { month + 9 });
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The shortest digits that read back as the same double, in MySQL's choice of notation.
pub fn double(buf: &mut Vec<u8>, value: f64) {
    if value == 0.0 {
        buf.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    } else if value.is_finite() {
        notation(buf, &format!("{value:e}"));
    }
}

/// MySQL shows a FLOAT's first six significant digits.
pub fn float(buf: &mut Vec<u8>, value: f32) {
    if value == 0.0 {
        buf.extend_from_slice(if value.is_sign_negative() { b"-0" } else { b"0" });
    } else if value.is_finite() {
        notation(buf, &format!("{value:.5e}"));
    }
}

/// Turns `d.ddde±x` into plain digits while the exponent is moderate, as my_gcvt does: from 1e-15 to below 1e15.
fn notation(buf: &mut Vec<u8>, scientific: &str) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if mantissa.starts_with('-') {
        buf.push(b'-');
    }
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    let len = digits.len() as i32;
    if !(-15..15).contains(&exponent) {
        buf.push(digits[0]);
        if len > 1 {
            buf.push(b'.');
            buf.extend_from_slice(&digits[1..]);
        }
        buf.push(b'e');
        int(buf, i64::from(exponent));
    } else if exponent < 0 {
        buf.extend_from_slice(b"0.");
        buf.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        buf.extend_from_slice(&digits);
    } else if exponent + 1 >= len {
        buf.extend_from_slice(&digits);
        buf.extend(std::iter::repeat_n(b'0', (exponent + 1 - len) as usize));
    } else {
        let whole = (exponent + 1) as usize;
        buf.extend_from_slice(&digits[..whole]);
        buf.push(b'.');
        buf.extend_from_slice(&digits[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: Datum<'_>, ty: SqlType) -> String {
        let mut buf = Vec::new();
        scalar(&mut buf, &value, &ty);
        String::from_utf8(buf).expect("ascii")
    }

    fn dec(unscaled: i128, scale: u8) -> String {
        text(Datum::Decimal(Decimal::new(unscaled, scale)), SqlType::Null)
    }

    #[test]
    fn numbers_look_as_in_mysql() {
        assert_eq!(text(Datum::Int(i64::MIN), SqlType::BIGINT), "-9223372036854775808");
        assert_eq!(text(Datum::UInt(u64::MAX), SqlType::BIGINT_UNSIGNED), "18446744073709551615");
        assert_eq!(text(Datum::UInt(0), SqlType::Year), "0000");
        assert_eq!(dec(-5, 2), "-0.05");
        assert_eq!(dec(12345, 2), "123.45");
        assert_eq!(dec(0, 3), "0.000");
        assert_eq!(dec(7, 0), "7");
        assert_eq!(dec(i128::MAX, 30), "170141183.460469231731687303715884105727");
        let wide = i256::from_i128(i128::MAX).wrapping_mul(i256::from_i128(-100));
        assert_eq!(
            text(Datum::Decimal(Decimal::from_i256(wide, 2)), SqlType::Null),
            "-170141183460469231731687303715884105727.00"
        );
    }

    #[test]
    fn doubles_change_to_scientific_notation_where_mysql_does() {
        for (value, expected) in [
            (0.1, "0.1"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (-1.5e-7, "-0.00000015"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (123_456.789, "123456.789"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e17"),
            (0.0, "0"),
        ] {
            assert_eq!(text(Datum::Double(value), SqlType::Double), expected);
        }
        assert_eq!(text(Datum::Float(16_777_216.0), SqlType::Float), "16777200");
        assert_eq!(text(Datum::Float(0.1), SqlType::Float), "0.1");
    }

    #[test]
    fn temporals_have_their_fractional_digits() {
        assert_eq!(text(Datum::Date(0), SqlType::Date), "1970-01-01");
        assert_eq!(text(Datum::Date(-719_528), SqlType::Date), "0000-01-01");
        assert_eq!(text(Datum::Date(2_932_896), SqlType::Date), "9999-12-31");
        let moment = Datum::DateTime(1_700_000_000_123_456);
        assert_eq!(text(moment.clone(), SqlType::DateTime { fsp: 0 }), "2023-11-14 22:13:20");
        assert_eq!(text(moment.clone(), SqlType::DateTime { fsp: 3 }), "2023-11-14 22:13:20.123");
        assert_eq!(text(moment, SqlType::Timestamp { fsp: 6 }), "2023-11-14 22:13:20.123456");
        let time = Datum::Time(-(838 * 3600 + 59 * 60 + 59) * 1_000_000);
        assert_eq!(text(time, SqlType::Time { fsp: 0 }), "-838:59:59");
        assert_eq!(text(Datum::Time(5_001_000), SqlType::Time { fsp: 6 }), "00:00:05.001000");
    }

    proptest! {
        #[test]
        fn days_and_dates_are_inverse(days in -1_000_000i64..4_000_000) {
            let (year, month, day) = civil(days);
            prop_assert_eq!(days_from_civil(year, month, day), days);
            prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }

        #[test]
        fn doubles_read_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            prop_assert_eq!(text(Datum::Double(value), SqlType::Double).parse::<f64>(), Ok(value));
        }
    }
}
