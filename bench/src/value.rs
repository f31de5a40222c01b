//! Small conversions between the drivers' exact integers (cents, microseconds) and what the MySQL protocol carries.

use mysql::{Row, Value};

use crate::error::{Error, Result};

/// Microseconds since 1970, now.
pub fn now_micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("the clock is past 1970").as_micros() as i64
}

/// Year, month, day of a number of days since 1970 (Howard Hinnant's `civil_from_days`).
pub fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A DATETIME parameter, to the second.
pub fn datetime(micros: i64) -> Value {
    let seconds = micros.div_euclid(1_000_000);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    Value::Date(
        year as u16,
        month as u8,
        day as u8,
        (of_day / 3_600) as u8,
        (of_day / 60 % 60) as u8,
        (of_day % 60) as u8,
        0,
    )
}

/// A DATETIME literal without quotes, to the second.
pub fn datetime_text(micros: i64) -> String {
    let seconds = micros.div_euclid(1_000_000);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

/// A decimal number of `digits` places from its integer of units in the last place.
pub fn decimal_text(units: i64, digits: usize) -> String {
    let scale = 10_i64.pow(digits as u32);
    let sign = if units < 0 { "-" } else { "" };
    let (whole, fraction) = (units.unsigned_abs() / scale as u64, units.unsigned_abs() % scale as u64);
    format!("{sign}{whole}.{fraction:0digits$}")
}

/// A DECIMAL parameter of two places.
pub fn cents(units: i64) -> Value {
    Value::Bytes(decimal_text(units, 2).into_bytes())
}

/// Reads a decimal text as units in place `digits`, cutting what lies behind.
fn parse_decimal(text: &str, digits: usize) -> Option<i64> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut units: i64 = whole.parse().ok()?;
    for place in 0..digits {
        let digit =
            fraction.as_bytes().get(place).map_or(Some(0), |b| b.is_ascii_digit().then(|| b - b'0'))?;
        units = units.checked_mul(10)?.checked_add(i64::from(digit))?;
    }
    Some(if negative { -units } else { units })
}

fn unexpected(row: &Row, column: usize, wanted: &str) -> Error {
    Error::Check(format!("column {column} is {:?}, not {wanted}", row.as_ref(column)))
}

/// A column as an integer, whether it came as text, integer or decimal without a fraction.
pub fn int(row: &Row, column: usize) -> Result<i64> {
    let value = match row.as_ref(column) {
        Some(Value::Int(i)) => Some(*i),
        Some(Value::UInt(u)) => i64::try_from(*u).ok(),
        Some(Value::Bytes(b)) => std::str::from_utf8(b).ok().and_then(|t| parse_decimal(t, 0)),
        _ => None,
    };
    value.ok_or_else(|| unexpected(row, column, "an integer"))
}

/// A DECIMAL column as units of its place `digits`; NULL (an empty sum) is none.
pub fn units(row: &Row, column: usize, digits: usize) -> Result<Option<i64>> {
    let value = match row.as_ref(column) {
        Some(Value::NULL) => return Ok(None),
        Some(Value::Bytes(b)) => std::str::from_utf8(b).ok().and_then(|t| parse_decimal(t, digits)),
        Some(Value::Int(i)) => i.checked_mul(10_i64.pow(digits as u32)),
        _ => None,
    };
    value.map(Some).ok_or_else(|| unexpected(row, column, "a decimal"))
}

/// A column as text.
pub fn text(row: &Row, column: usize) -> Result<String> {
    match row.as_ref(column) {
        Some(Value::Bytes(b)) => Ok(String::from_utf8_lossy(b).into_owned()),
        _ => Err(unexpected(row, column, "text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_days() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
    }

    #[test]
    fn decimals_there_and_back() {
        for units in [0, 1, -1, 99, 100, -12_345, 1_234_567_890] {
            assert_eq!(parse_decimal(&decimal_text(units, 2), 2), Some(units));
        }
        assert_eq!(decimal_text(-5, 2), "-0.05");
        assert_eq!(parse_decimal("0.07", 4), Some(700));
        assert_eq!(parse_decimal("1.x", 2), None);
    }

    #[test]
    fn datetime_of_a_microsecond_before_1970() {
        assert_eq!(datetime_text(-1), "1969-12-31 23:59:59");
    }
}
