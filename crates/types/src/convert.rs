//! Turning values into other types: storing into columns, and CAST.
//!
//! Both clip or cut what does not fit and say what happened. `store` makes that an error in strict mode, as INSERT and
//! UPDATE do; `cast` always goes on with a warning, and with NULL where no temporal can be made.
//!
//! - `problem`: what can be wrong with a value, with MySQL's numbers and texts
//! - `store`: values into columns
//! - `coded`: values into and out of ENUM, SET and BIT
//! - `cast`: CAST and CONVERT

mod cast;
mod coded;
mod problem;
mod store;

use std::borrow::Cow;

pub use cast::cast;
pub use problem::{CastWarning, StoreError};
pub use store::{Stored, store, store_column};

use crate::datum::Datum;
use crate::sql_type::SqlType;
use crate::temporal::{
    self, DAY, ExcessDigits, MAX_DATETIME, NotADate, Parsed, TimeZone, ZeroDates, datetime_from_number,
    datetime_to_number, has_zero_date, parse_time, round_to_fsp, time_from_number, time_of, time_to_number,
};
use crate::text::to_text;

/// What conversions depend on besides the value.
#[derive(Clone, Copy, Debug)]
pub struct ConvertContext {
    /// Whether storing refuses what does not fit (STRICT_TRANS_TABLES).
    pub strict: bool,
    /// The session's, for TIMESTAMPs.
    pub zone: TimeZone,
    /// The statement's date in that zone: a TIME becomes a DATETIME of that day.
    pub today: i32,
    pub excess_digits: ExcessDigits,
    pub zero_dates: ZeroDates,
}

impl ConvertContext {
    pub const STRICT_UTC: Self = Self {
        strict: true,
        zone: TimeZone::UTC,
        today: 0,
        excess_digits: ExcessDigits::Round,
        zero_dates: ZeroDates::REFUSED,
    };
}

/// A value read as a temporal.
#[derive(Clone, Copy, Debug)]
struct Read {
    micros: i64,
    /// A text has something behind the value.
    truncated: bool,
    clipped: bool,
    /// A DATE that was made from a value with a time of day.
    had_time: bool,
    /// A TIME that was made from a text with a date.
    had_date: bool,
    /// The moment, where more than local time is known of it.
    utc: Option<i64>,
}

impl Read {
    fn new(micros: i64) -> Self {
        Self { micros, truncated: false, clipped: false, had_time: false, had_date: false, utc: None }
    }
}

/// The DATETIME that a value is worth, in local time, with `fsp` digits.
fn read_datetime(
    value: &Datum<'_>,
    from: &SqlType,
    fsp: u8,
    context: &ConvertContext,
) -> Result<Read, NotADate> {
    let of_text = |text: &[u8]| {
        let parsed = temporal::read_datetime(text, context.zone, context.zero_dates)?;
        let Parsed { truncated, utc, .. } = parsed;
        // A zero date's time of zero is no part that is lost.
        let had_time = parsed.has_time && (!has_zero_date(parsed.micros) || time_of(parsed.micros) != 0);
        Ok(Read { truncated, had_time, utc, ..Read::new(parsed.micros) })
    };
    let read = match value {
        Datum::Date(days) => Read::new(i64::from(*days) * DAY),
        Datum::DateTime(micros) => {
            let is_utc = matches!(from, SqlType::Timestamp { .. });
            let utc = is_utc.then_some(*micros);
            let micros = if is_utc { context.zone.to_local(*micros) } else { *micros };
            Read { had_time: time_of(micros) != 0, utc, ..Read::new(micros) }
        }
        Datum::Time(micros) => Read { had_time: true, ..Read::new(i64::from(context.today) * DAY + micros) },
        Datum::Str(text) => of_text(text.as_bytes())?,
        Datum::Bytes(text) => of_text(text)?,
        number => {
            let (whole, fraction) = seconds_and_micros(number).ok_or(NotADate::OutOfRange)?;
            let Some((micros, has_time)) = datetime_from_number(whole, context.zero_dates) else {
                return Err(if whole > 0 { NotADate::Malformed } else { NotADate::OutOfRange });
            };
            if fraction < 0 || (!has_time && fraction != 0) {
                return Err(NotADate::OutOfRange);
            }
            Read { had_time: has_time, ..Read::new(micros + fraction) }
        }
    };
    let micros = context.excess_digits.datetime(read.micros, fsp);
    let utc = read.utc.map(|utc| context.excess_digits.datetime(utc, fsp));
    let stays = has_zero_date(read.micros) == has_zero_date(micros) && context.zero_dates.allow(micros);
    match micros <= MAX_DATETIME {
        true if stays => Ok(Read { micros, utc, ..read }),
        true => Err(NotADate::OutOfRange),
        false => Err(NotADate::RoundedOver),
    }
}

/// The TIME that a value is worth, with `fsp` digits; `None` if it is none.
fn read_time(value: &Datum<'_>, from: &SqlType, fsp: u8, context: &ConvertContext) -> Option<Read> {
    let of_text = |text: &[u8]| {
        let parsed = parse_time(text, context.zone)?;
        let (truncated, clipped, had_date) = (parsed.truncated, parsed.clipped, parsed.has_date);
        Some(Read { truncated, clipped, had_date, ..Read::new(parsed.micros) })
    };
    let read = match value {
        Datum::Time(micros) => Read::new(*micros),
        Datum::Date(_) => Read::new(0),
        Datum::DateTime(_) => {
            let zeros = ConvertContext { zero_dates: ZeroDates::ALLOWED, ..*context };
            // Its time of day is rounded, and not the date with it: to 24:00:00 at the most.
            let datetime = read_datetime(value, from, 6, &zeros).ok()?;
            Read { truncated: false, ..Read::new(time_of(datetime.micros)) }
        }
        Datum::Str(text) => of_text(text.as_bytes())?,
        Datum::Bytes(text) => of_text(text)?,
        number => {
            let (whole, fraction) = seconds_and_micros(number)?;
            let parsed = time_from_number(whole)?;
            let fraction = if parsed.clipped { 0 } else { fraction };
            Read { clipped: parsed.clipped, ..Read::new(parsed.micros + fraction) }
        }
    };
    let limit = crate::temporal::MAX_TIME;
    let micros = context.excess_digits.time(read.micros, fsp);
    let clipped = read.clipped || micros.abs() > limit;
    Some(Read { micros: micros.clamp(-limit, limit), clipped, ..read })
}

/// A number's integer part, and its fraction in microseconds.
fn seconds_and_micros(number: &Datum<'_>) -> Option<(i64, i64)> {
    match number {
        Datum::Int(v) => Some((*v, 0)),
        Datum::UInt(v) => Some((i64::try_from(*v).ok()?, 0)),
        other => crate::compare::decimal(other).whole_and_micros(),
    }
}

/// A temporal as an integer: `YYYYMMDD`, `YYYYMMDDhhmmss`, `hhmmss`, rounded to seconds.
fn temporal_to_integer(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> Option<i64> {
    match value {
        Datum::Date(days) => Some(datetime_to_number(i64::from(*days) * DAY) / 1_000_000),
        Datum::DateTime(micros) => {
            let zeros = ConvertContext { zero_dates: ZeroDates::ALLOWED, ..*context };
            let read = read_datetime(value, from, 0, &zeros);
            Some(datetime_to_number(read.map_or(*micros, |r| r.micros)))
        }
        Datum::Time(micros) => Some(time_to_number(round_to_fsp(*micros, 0))),
        _ => None,
    }
}

/// The text of a value, for strings to store and messages to show.
fn text_of<'v>(value: &'v Datum<'_>, from: &SqlType, context: &ConvertContext) -> Cow<'v, str> {
    match value {
        Datum::Bytes(bytes) => String::from_utf8_lossy(bytes),
        _ => to_text(value, from, context.zone).unwrap_or_default(),
    }
}

/// Where the character after the first `max` begins; `None` if there are no more.
fn char_limit(s: &str, max: usize) -> Option<usize> {
    if s.len() <= max { None } else { s.char_indices().nth(max).map(|(at, _)| at) }
}

/// The largest length up to `max` at which a string can be cut.
fn byte_limit(s: &str, max: usize) -> usize {
    (0..=max.min(s.len())).rev().find(|&at| s.is_char_boundary(at)).unwrap_or(0)
}

/// A double as an integer, rounded half to even and clipped.
fn round_double(v: f64) -> i128 {
    v.round_ties_even() as i128
}

#[cfg(test)]
mod tests;
