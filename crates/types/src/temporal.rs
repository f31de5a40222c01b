//! Dates and times as MySQL has them.
//!
//! Values are plain integers: a DATE is days since 1970-01-01 (`i32`), a DATETIME microseconds since then
//! (`i64`), a TIME signed microseconds. Years run from 0 to 9999 in the proleptic Gregorian calendar, as MySQL
//! counts them: its year 0 has no 29 February, so January and February of that year are one day later here than
//! in the proleptic calendar.
//!
//! The zero date `0000-00-00` is the day before 0000-01-01, which is day 0 of MySQL's count, too. So it is below every other
//! date, its midnight is the zero DATETIME and TIMESTAMP, and order, equality, keys and statistics need not know it; only what
//! takes a value apart or adds to one does. A DATETIME of that day may have a time. Other dates with a month or day of zero have
//! no number, and are refused wherever they appear.
//!
//! - `zero`: the zero date, and where it is let in
//! - `civil`: numbers to calendar fields and back
//! - `parse`: MySQL's literal forms, texts and numbers
//! - `format`: the forms that values print in
//! - `interval`: INTERVAL units, adding, EXTRACT
//! - `calendar`: weekdays, week numbers, differences
//! - `locale`: names of months and days
//! - `pattern`: DATE_FORMAT, TIME_FORMAT, STR_TO_DATE
//! - `zone`: time zones of fixed offset

mod calendar;
mod civil;
mod format;
mod interval;
mod locale;
mod parse;
mod pattern;
mod zero;
mod zone;

pub use calendar::{
    WeekMode, date_from_day_of_year, day_of_week, day_of_year, from_days, last_day, period_add, period_diff,
    timestamp_diff, to_days, to_seconds, week, week_of_year, weekday, year_week,
};
pub use civil::{Civil, Clock, date_of, days_in_month, is_leap_year, time_of};
pub use format::{write_date, write_datetime, write_time, write_year};
pub use interval::{Interval, Unit, add_interval, add_interval_to_time};
pub use locale::Locale;
pub use parse::{
    ExcessDigits, NotADate, Parsed, count_datetime, date_from_number, datetime_from_number,
    datetime_to_number, parse_datetime, parse_partial_date, parse_partial_datetime, parse_time,
    read_datetime, round_datetime, round_to_fsp, time_from_number, time_to_number, truncate_to_fsp,
    year_from_number,
};
pub use pattern::{Mismatch, StrToDate, date_format, str_to_date, str_to_date_kind, time_format};
pub use zero::{ZERO_DATE, ZERO_DATETIME, ZeroDates, has_zero_date, is_zero_date};
pub use zone::{TimeZone, UnknownZone, zone_names};

/// Microseconds in a second, a minute, an hour and a day.
pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

/// 0000-01-01 and 9999-12-31.
pub const MIN_DATE: i32 = -719_527;
pub const MAX_DATE: i32 = 2_932_896;
/// 0000-01-01 00:00:00 and 9999-12-31 23:59:59.999999.
pub const MIN_DATETIME: i64 = MIN_DATE as i64 * DAY;
pub const MAX_DATETIME: i64 = (MAX_DATE as i64 + 1) * DAY - 1;
/// TIME values lie between −838:59:59 and 838:59:59.
pub const MAX_TIME: i64 = 838 * HOUR + 59 * MINUTE + 59 * SECOND;
/// TIMESTAMP values, in UTC: 1970-01-01 00:00:01 to 2038-01-19 03:14:07.999999.
pub const MIN_TIMESTAMP: i64 = SECOND;
pub const MAX_TIMESTAMP: i64 = (1 << 31) * SECOND - 1;

#[cfg(test)]
mod tests;
