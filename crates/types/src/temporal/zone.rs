//! Time zones: offsets, and names of the zone database (`chrono-tz`), which stands for the tables that MySQL has to be given. `SYSTEM` is
//! UTC.
//!
//! As in MySQL, a local time that comes twice means the first, one that is left out the moment at which the clock goes on, and the
//! rules end with 2037: afterwards the last offset holds.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use chrono::{DateTime, Offset, TimeZone as _};
use chrono_tz::{TZ_VARIANTS, Tz};
use thiserror::Error;

use super::{HOUR, MINUTE, SECOND, ZERO_DATETIME};

/// The last second of 2037, UTC.
const LAST_RULE: i64 = 2_145_916_799;
/// No name of a zone is longer.
const LONGEST_NAME: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeZone(Rule);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rule {
    /// Minutes that local time is before UTC, from −13:59 to +14:00.
    Offset(i16),
    Named(Tz),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("Unknown or incorrect time zone: '{0}'")]
pub struct UnknownZone(pub String);

impl Default for TimeZone {
    fn default() -> Self {
        Self::UTC
    }
}

impl TimeZone {
    pub const UTC: Self = Self(Rule::Offset(0));

    pub fn parse(name: &str) -> Result<Self, UnknownZone> {
        if name.eq_ignore_ascii_case("SYSTEM") || name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::UTC);
        }
        parse_offset(name.as_bytes()).or_else(|| named(name)).ok_or_else(|| UnknownZone(name.to_owned()))
    }

    /// Whether its offset changes with time, or may have.
    pub fn is_named(self) -> bool {
        matches!(self.0, Rule::Named(_))
    }

    /// What tells it from all others.
    pub fn id(self) -> i32 {
        match self.0 {
            Rule::Offset(minutes) => minutes.into(),
            Rule::Named(zone) => (1 << 16) + zone as i32,
        }
    }

    /// Local time of a moment in UTC. The zero TIMESTAMP is the same everywhere.
    #[inline]
    pub fn to_local(self, utc: i64) -> i64 {
        if utc == ZERO_DATETIME {
            return utc;
        }
        match self.0 {
            Rule::Offset(minutes) => utc + i64::from(minutes) * MINUTE,
            Rule::Named(zone) => utc + offset_at(zone, utc.div_euclid(SECOND)) * SECOND,
        }
    }

    /// The moment of a local time: the first of two, the end of a gap for one in it.
    #[inline]
    pub fn to_utc(self, local: i64) -> i64 {
        self.moment_of(local).unwrap_or_else(|gap_end| gap_end)
    }

    /// As [`Self::to_utc`], but `Err` for a local time that the clock leaves out.
    #[inline]
    pub fn moment_of(self, local: i64) -> Result<i64, i64> {
        if local == ZERO_DATETIME {
            return Ok(local);
        }
        match self.0 {
            Rule::Offset(minutes) => Ok(local - i64::from(minutes) * MINUTE),
            Rule::Named(zone) => named_moment(zone, local),
        }
    }
}

/// Seconds that local time is before UTC at a moment in seconds.
fn offset_at(zone: Tz, utc: i64) -> i64 {
    let known = DateTime::from_timestamp(utc.min(LAST_RULE), 0).unwrap_or_default();
    zone.offset_from_utc_datetime(&known.naive_utc()).fix().local_minus_utc().into()
}

fn named_moment(zone: Tz, local: i64) -> Result<i64, i64> {
    const DAY: i64 = 24 * 60 * 60;
    let (seconds, fraction) = (local.div_euclid(SECOND), local.rem_euclid(SECOND));
    let whole = |utc: i64| utc * SECOND + fraction;
    // The clock goes the offset before, or the one after, if it is changed on these days.
    let (before, after) = (offset_at(zone, seconds - DAY), offset_at(zone, seconds + DAY));
    let fits = |offset: i64| offset_at(zone, seconds - offset) == offset;
    if fits(before) {
        return Ok(whole(seconds - before));
    }
    if fits(after) {
        return Ok(whole(seconds - after));
    }
    // In a gap: the clock is changed between the two moments that the time would be.
    let (mut early, mut late) = (seconds - before.max(after), seconds - before.min(after));
    while late - early > 1 {
        let middle = early + (late - early) / 2;
        match offset_at(zone, middle) == before {
            true => early = middle,
            false => late = middle,
        }
    }
    Err(whole(late))
}

/// The names of all zones that have one, in their order.
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    TZ_VARIANTS.iter().map(|zone| zone.name())
}

fn named(name: &str) -> Option<TimeZone> {
    static ZONES: LazyLock<HashMap<String, Tz>> =
        LazyLock::new(|| TZ_VARIANTS.iter().map(|zone| (zone.name().to_ascii_lowercase(), *zone)).collect());
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let zone = ZONES.get(std::str::from_utf8(lower).ok()?)?;
    Some(TimeZone(Rule::Named(*zone)))
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
    valid.then_some(TimeZone(Rule::Offset(if negative { -total } else { total })))
}

fn digits(text: &[u8], min: usize, max: usize) -> Option<i16> {
    let valid = (min..=max).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    valid.then(|| text.iter().fold(0, |v, b| v * 10 + i16::from(b - b'0')))
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = match self.0 {
            Rule::Named(zone) => return f.write_str(zone.name()),
            Rule::Offset(minutes) => minutes,
        };
        let sign = if minutes < 0 { '-' } else { '+' };
        let magnitude = i64::from(minutes).abs() * MINUTE;
        write!(f, "{sign}{:02}:{:02}", magnitude / HOUR, magnitude % HOUR / MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{ZeroDates, parse_datetime};

    fn at(text: &str) -> i64 {
        parse_datetime(text.as_bytes(), TimeZone::UTC, ZeroDates::REFUSED).expect(text).micros
    }

    #[test]
    fn names_are_found_in_any_case() {
        for (name, shown) in [("europe/BERLIN", "Europe/Berlin"), ("met", "MET"), ("gmt", "GMT")] {
            assert_eq!(TimeZone::parse(name).map(|zone| zone.to_string()), Ok(shown.to_owned()));
        }
        for name in ["Nowhere", "Europe/Berlin ", "", "+14:01", &"x".repeat(1000)] {
            assert!(TimeZone::parse(name).is_err(), "{name}");
        }
        let longest = TZ_VARIANTS.iter().map(|zone| zone.name().len()).max();
        assert!(longest < Some(LONGEST_NAME), "{longest:?}");
    }

    /// MySQL 9.7's answers: CONVERT_TZ(local, 'Europe/Berlin', 'UTC').
    #[test]
    fn local_times_that_come_twice_or_never() {
        let zone = TimeZone::parse("Europe/Berlin").expect("there is one");
        for (local, utc, is_there) in [
            ("2024-03-31 01:59:59", "2024-03-31 00:59:59", true),
            ("2024-03-31 02:00:00", "2024-03-31 01:00:00", false),
            ("2024-03-31 02:59:59.5", "2024-03-31 01:00:00.5", false),
            ("2024-03-31 03:00:00", "2024-03-31 01:00:00", true),
            ("2024-10-27 01:59:59", "2024-10-26 23:59:59", true),
            ("2024-10-27 02:00:00", "2024-10-27 00:00:00", true),
            ("2024-10-27 02:59:59.9", "2024-10-27 00:59:59.9", true),
            ("2024-10-27 03:00:00", "2024-10-27 02:00:00", true),
            ("2037-07-01 12:00:00", "2037-07-01 10:00:00", true),
            ("2038-07-01 12:00:00", "2038-07-01 11:00:00", true),
            ("2099-07-01 12:00:00", "2099-07-01 11:00:00", true),
        ] {
            let moment = zone.moment_of(at(local));
            assert_eq!((moment.unwrap_or_else(|gap| gap), moment.is_ok()), (at(utc), is_there), "{local}");
        }
        assert_eq!(zone.to_local(at("2024-10-27 01:00:00")), at("2024-10-27 02:00:00"));
        assert_eq!(zone.to_local(at("2038-07-01 12:00:00")), at("2038-07-01 13:00:00"));
    }

    /// Every moment has one local time, and that time means it, or one before it at which the clock stood the same.
    #[test]
    fn moments_and_local_times_agree() {
        for zone in TZ_VARIANTS {
            let zone = TimeZone(Rule::Named(zone));
            for step in 0..4_000 {
                let utc = step * (17 * HOUR + 13 * MINUTE + 7 * SECOND) * 5;
                let local = zone.to_local(utc);
                let moment = zone.moment_of(local).expect("the time was there");
                assert!(moment <= utc && zone.to_local(moment) == local, "{zone} {utc}");
            }
        }
    }
}
