//! Time zones of fixed offset. Named zones need the zone database, which is not there: they are refused by name,
//! but for `UTC`. `SYSTEM` is UTC.

use std::fmt;

use thiserror::Error;

use super::{HOUR, MINUTE};

/// An offset from UTC, between −13:59 and +14:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TimeZone {
    minutes: i16,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("Unknown or incorrect time zone: '{0}'")]
pub struct UnknownZone(pub String);

impl TimeZone {
    pub const UTC: Self = Self { minutes: 0 };

    pub fn parse(name: &str) -> Result<Self, UnknownZone> {
        if name.eq_ignore_ascii_case("SYSTEM") || name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::UTC);
        }
        parse_offset(name.as_bytes()).ok_or_else(|| UnknownZone(name.to_owned()))
    }

    /// Local time minus UTC, in microseconds.
    #[inline]
    pub const fn offset(self) -> i64 {
        self.minutes as i64 * MINUTE
    }

    /// Local time of a moment in UTC.
    #[inline]
    pub const fn to_local(self, utc: i64) -> i64 {
        utc + self.offset()
    }

    #[inline]
    pub const fn to_utc(self, local: i64) -> i64 {
        local - self.offset()
    }
}

/// `±H:MM` or `±HH:MM`.
pub(super) fn parse_offset(text: &[u8]) -> Option<TimeZone> {
    let (negative, rest) = match text.split_first()? {
        (b'+', rest) => (false, rest),
        (b'-', rest) => (true, rest),
        _ => return None,
    };
    let colon = rest.iter().position(|&b| b == b':')?;
    let (hours, minutes) = (digits(&rest[..colon], 1, 2)?, digits(&rest[colon + 1..], 2, 2)?);
    let total = hours * 60 + minutes;
    let max = if negative { 13 * 60 + 59 } else { 14 * 60 };
    let valid = minutes < 60 && total <= max;
    valid.then_some(TimeZone { minutes: if negative { -total } else { total } })
}

fn digits(text: &[u8], min: usize, max: usize) -> Option<i16> {
    let valid = (min..=max).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    valid.then(|| text.iter().fold(0, |v, b| v * 10 + i16::from(b - b'0')))
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.minutes < 0 { '-' } else { '+' };
        let magnitude = i64::from(self.minutes).abs() * MINUTE;
        write!(f, "{sign}{:02}:{:02}", magnitude / HOUR, magnitude % HOUR / MINUTE)
    }
}
