//! Weekdays, week numbers, day numbers and differences.

use super::{Civil, MAX_DATE, MIN_DATE, SECOND, Unit, date_of, days_in_month, is_leap_year, is_zero_date};

/// Day numbers of MySQL (TO_DAYS) minus days since 1970-01-01.
const TO_DAYS: i64 = 719_528;

/// WEEKDAY(): 0 is Monday.
pub const fn weekday(days: i32) -> u32 {
    (days + 3).rem_euclid(7) as u32
}

/// DAYOFWEEK(): 1 is Sunday.
pub const fn day_of_week(days: i32) -> u32 {
    (days + 4).rem_euclid(7) as u32 + 1
}

/// DAYOFYEAR(): from 1; 0 of the zero date.
pub const fn day_of_year(days: i32) -> u32 {
    if is_zero_date(days) {
        return 0;
    }
    let year = Civil::from_days(days).year;
    (days - Civil::new(year, 1, 1).to_days()) as u32 + 1
}

/// MAKEDATE(): a year and a day of it, from 1. `None` outside the calendar.
pub fn date_from_day_of_year(year: i64, day: i64) -> Option<i32> {
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    let year = i32::try_from(year).ok().filter(|y| (0..=9999).contains(y))?;
    let days = i64::from(Civil::new(year, 1, 1).to_days()).checked_add(day.checked_sub(1)?)?;
    (day > 0 && days <= MAX_DATE.into()).then_some(days as i32)
}

pub fn last_day(days: i32) -> i32 {
    let date = Civil::from_days(days);
    Civil { day: days_in_month(date.year, date.month), ..date }.to_days()
}

/// TO_DAYS().
pub const fn to_days(days: i32) -> i64 {
    days as i64 + TO_DAYS
}

/// FROM_DAYS(); `None` for what is no date.
pub fn from_days(n: i64) -> Option<i32> {
    let days = i32::try_from(n.checked_sub(TO_DAYS)?).ok()?;
    (MIN_DATE..=MAX_DATE).contains(&days).then_some(days)
}

/// TO_SECONDS().
pub const fn to_seconds(datetime: i64) -> i64 {
    datetime.div_euclid(SECOND) + TO_DAYS * 86_400
}

/// The argument `mode` of WEEK(): what day weeks begin with, whether they are counted from 0, and whether week 1 is
/// the first with four days or the first that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeekMode {
    monday_first: bool,
    from_one: bool,
    whole_first: bool,
}

impl WeekMode {
    pub const fn new(mode: i64) -> Self {
        let monday_first = mode & 1 != 0;
        let whole_first = (mode & 4 != 0) == monday_first;
        Self { monday_first, from_one: mode & 2 != 0, whole_first }
    }
}

/// WEEK(): the number of the week, 0–53.
pub fn week(days: i32, mode: WeekMode) -> u32 {
    week_and_year(days, mode).0
}

/// WEEKOFYEAR(): ISO 8601.
pub fn week_of_year(days: i32) -> u32 {
    week(days, WeekMode::new(3))
}

/// YEARWEEK(): the year that the week belongs to, times 100, and the week.
pub fn year_week(days: i32, mode: WeekMode) -> u32 {
    let (week, year) = week_and_year(days, WeekMode { from_one: true, ..mode });
    year as u32 * 100 + week
}

/// The week and the year that it belongs to.
///
/// MySQL has weeks for the zero date only where it asks for no day (DATE_FORMAT, EXTRACT): its unsigned numbers run over
/// (`calc_week`), but where weeks begin with Mondays and are counted from 1.
pub(super) fn week_and_year(days: i32, mode: WeekMode) -> (u32, i32) {
    if is_zero_date(days) {
        let is_iso = mode.monday_first && mode.from_one;
        return if is_iso { (1, 1) } else { (u32::MAX / 7 + 1, 0) };
    }
    let date = Civil::from_days(days);
    let mut year = date.year;
    let mut first = Civil::new(year, 1, 1).to_days();
    let offset = |day: i32| if mode.monday_first { weekday(day) } else { day_of_week(day) - 1 } as i32;
    let mut first_offset = offset(first);
    let mut from_one = mode.from_one;
    let late = |offset: i32| if mode.whole_first { offset != 0 } else { offset >= 4 };
    if date.month == 1 && date.day as i32 <= 7 - first_offset {
        if !from_one && late(first_offset) {
            return (0, year);
        }
        if late(first_offset) {
            // The last week of the year before.
            from_one = true;
            year -= 1;
            let length = 365 + i32::from(is_leap_year(year));
            first -= length;
            first_offset = (first_offset + 53 * 7 - length) % 7;
        } else {
            return (1, year);
        }
    }
    let since =
        if late(first_offset) { days - (first + 7 - first_offset) } else { days - (first - first_offset) };
    if from_one && since >= 52 * 7 {
        let next = (first_offset + 365 + i32::from(is_leap_year(year))) % 7;
        if !late(next) {
            return (1, year + 1);
        }
    }
    (since as u32 / 7 + 1, year)
}

/// PERIOD_ADD(): a period `YYYYMM` or `YYMM` and months.
///
/// Any number whose last two digits are a month is a period, and wraps where it is added to, as MySQL's integers of 64 bits do.
pub fn period_add(period: i64, months: i64) -> i64 {
    if period == 0 { 0 } else { period_of(months_of(period).wrapping_add(months)) }
}

/// PERIOD_DIFF(), in months.
pub fn period_diff(a: i64, b: i64) -> i64 {
    months_of(a) - months_of(b)
}

fn months_of(period: i64) -> i64 {
    if period == 0 {
        return 0;
    }
    let year = match period / 100 {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    year * 12 + period % 100 - 1
}

fn period_of(months: i64) -> i64 {
    if months == 0 {
        return 0;
    }
    let months = months as u64;
    let year = match months / 12 {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    year.wrapping_mul(100).wrapping_add(months % 12 + 1) as i64
}

/// TIMESTAMPDIFF(unit, a, b): whole units from `a` to `b`.
pub fn timestamp_diff(unit: Unit, a: i64, b: i64) -> i64 {
    let micros = b - a;
    match unit {
        Unit::Year => whole_months(a, b) / 12,
        Unit::Quarter => whole_months(a, b) / 3,
        Unit::Month => whole_months(a, b),
        Unit::Week => micros / (7 * super::DAY),
        Unit::Day => micros / super::DAY,
        Unit::Hour => micros / super::HOUR,
        Unit::Minute => micros / super::MINUTE,
        Unit::Second => micros / SECOND,
        _ => micros,
    }
}

fn whole_months(a: i64, b: i64) -> i64 {
    if b < a {
        return -whole_months(b, a);
    }
    let (from, to) = (Civil::from_days(date_of(a)), Civil::from_days(date_of(b)));
    let months = i64::from(to.year - from.year) * 12 + i64::from(to.month) - i64::from(from.month);
    let short = (to.day, super::time_of(b)) < (from.day, super::time_of(a));
    months - i64::from(short)
}
