//! Day numbers to year, month, day and back; microseconds to hours, minutes, seconds and back.

use super::{DAY, HOUR, MINUTE, SECOND, ZERO_DATE, is_zero_date};

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Civil {
    pub year: i32,
    pub month: u32,
    pub day: u32,
}

/// A time of day, or the magnitude of a TIME (hours up to 838).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Clock {
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub micro: u32,
}

/// Days from 0000-03-01 to 1970-01-01.
const SHIFT: i32 = 719_468;
/// Days in 400 years.
const ERA: i32 = 146_097;

impl Civil {
    /// Of the zero date.
    pub const ZERO: Self = Self::new(0, 0, 0);

    pub const fn new(year: i32, month: u32, day: u32) -> Self {
        Self { year, month, day }
    }

    /// The day, if the calendar has it and its year is one of 0..=9999.
    pub fn checked(year: i32, month: u32, day: u32) -> Option<Self> {
        let valid = (0..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        valid.then_some(Self { year, month, day })
    }

    /// The same, or the zero date.
    pub fn checked_or_zero(year: i32, month: u32, day: u32) -> Option<Self> {
        match (year, month, day) {
            (0, 0, 0) => Some(Self::ZERO),
            _ => Self::checked(year, month, day),
        }
    }

    /// Days since 1970-01-01. Years are counted from March, so that leap days end them.
    pub const fn to_days(self) -> i32 {
        if self.month == 0 {
            return ZERO_DATE;
        }
        self.proleptic_days() + (self.year == 0 && self.month <= 2) as i32
    }

    const fn proleptic_days(self) -> i32 {
        let year = self.year - (self.month <= 2) as i32;
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = (self.month as i32 + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day as i32 - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * ERA + day_of_era - SHIFT
    }

    /// The zero date has a year, month and day of zero.
    pub const fn from_days(days: i32) -> Self {
        if is_zero_date(days) {
            return Self::ZERO;
        }
        let days = days + SHIFT - (days < -SHIFT) as i32;
        let era = days.div_euclid(ERA);
        let day_of_era = days.rem_euclid(ERA);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + (month <= 2) as i32;
        Self { year, month: month as u32, day: day as u32 }
    }

    /// Midnight of the day, in microseconds since 1970-01-01.
    pub const fn to_micros(self) -> i64 {
        self.to_days() as i64 * DAY
    }
}

impl Clock {
    pub const fn new(hour: u32, minute: u32, second: u32, micro: u32) -> Self {
        Self { hour, minute, second, micro }
    }

    pub const fn to_micros(self) -> i64 {
        self.hour as i64 * HOUR
            + self.minute as i64 * MINUTE
            + self.second as i64 * SECOND
            + self.micro as i64
    }

    /// The fields of a duration's magnitude.
    pub const fn from_micros(micros: i64) -> Self {
        let micros = micros.unsigned_abs();
        let seconds = micros / SECOND as u64;
        Self {
            hour: (seconds / 3600) as u32,
            minute: (seconds / 60 % 60) as u32,
            second: (seconds % 60) as u32,
            micro: (micros % SECOND as u64) as u32,
        }
    }
}

/// The DATE of a DATETIME.
#[inline]
pub const fn date_of(datetime: i64) -> i32 {
    datetime.div_euclid(DAY) as i32
}

/// The time of day of a DATETIME, in microseconds.
#[inline]
pub const fn time_of(datetime: i64) -> i64 {
    datetime.rem_euclid(DAY)
}

/// MySQL's year 0 has no leap day.
pub const fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) && year != 0
}

pub const fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}
