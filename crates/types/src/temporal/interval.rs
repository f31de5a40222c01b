//! INTERVAL units: reading their values, adding them, EXTRACT.

use super::{
    Civil, Clock, DAY, HOUR, MAX_DATETIME, MAX_TIME, MIN_DATETIME, MINUTE, SECOND, WeekMode, date_of,
    days_in_month, time_of, week,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

/// An amount of time: whole months, and days and microseconds, all of one sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    pub months: i64,
    pub days: i64,
    pub micros: i64,
}

const NAMES: [(&str, Unit); 20] = [
    ("MICROSECOND", Unit::Microsecond),
    ("SECOND", Unit::Second),
    ("MINUTE", Unit::Minute),
    ("HOUR", Unit::Hour),
    ("DAY", Unit::Day),
    ("WEEK", Unit::Week),
    ("MONTH", Unit::Month),
    ("QUARTER", Unit::Quarter),
    ("YEAR", Unit::Year),
    ("SECOND_MICROSECOND", Unit::SecondMicrosecond),
    ("MINUTE_MICROSECOND", Unit::MinuteMicrosecond),
    ("MINUTE_SECOND", Unit::MinuteSecond),
    ("HOUR_MICROSECOND", Unit::HourMicrosecond),
    ("HOUR_SECOND", Unit::HourSecond),
    ("HOUR_MINUTE", Unit::HourMinute),
    ("DAY_MICROSECOND", Unit::DayMicrosecond),
    ("DAY_SECOND", Unit::DaySecond),
    ("DAY_MINUTE", Unit::DayMinute),
    ("DAY_HOUR", Unit::DayHour),
    ("YEAR_MONTH", Unit::YearMonth),
];

impl Unit {
    /// By its SQL name, also with the prefix `SQL_TSI_`.
    pub fn parse(name: &str) -> Option<Self> {
        let upper = name.to_ascii_uppercase();
        let name = upper.strip_prefix("SQL_TSI_").unwrap_or(&upper);
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, unit)| *unit)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Whether adding it to a DATE leaves a DATE.
    pub const fn is_whole_days(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month | Self::Quarter | Self::Year | Self::YearMonth)
    }

    pub const fn has_micros(self) -> bool {
        matches!(
            self,
            Self::Microsecond
                | Self::SecondMicrosecond
                | Self::MinuteMicrosecond
                | Self::HourMicrosecond
                | Self::DayMicrosecond
        )
    }

    /// Whether its value is a text of several numbers.
    pub fn is_compound(self) -> bool {
        !self.compound_parts().is_empty()
    }

    /// What the numbers of a compound unit's text count.
    fn compound_parts(self) -> &'static [Self] {
        const ALL: [Unit; 5] = [Unit::Day, Unit::Hour, Unit::Minute, Unit::Second, Unit::Microsecond];
        match self {
            Self::YearMonth => &[Unit::Year, Unit::Month],
            Self::DayHour => &ALL[..2],
            Self::DayMinute => &ALL[..3],
            Self::DaySecond => &ALL[..4],
            Self::DayMicrosecond => &ALL,
            Self::HourMinute => &ALL[1..3],
            Self::HourSecond => &ALL[1..4],
            Self::HourMicrosecond => &ALL[1..],
            Self::MinuteSecond => &ALL[2..4],
            Self::MinuteMicrosecond => &ALL[2..],
            Self::SecondMicrosecond => &ALL[3..],
            _ => &[],
        }
    }

    /// EXTRACT(unit FROM a DATETIME).
    pub fn extract(self, datetime: i64) -> i64 {
        let Civil { year, month, day } = Civil::from_days(date_of(datetime));
        match self {
            Self::Year => year.into(),
            Self::Quarter => i64::from(month.div_ceil(3)),
            Self::Month => month.into(),
            Self::YearMonth => i64::from(year) * 100 + i64::from(month),
            Self::Week => week(date_of(datetime), WeekMode::new(0)).into(),
            Self::Day => day.into(),
            _ => self.extract_clock(time_of(datetime), day.into()),
        }
    }

    /// EXTRACT(unit FROM a TIME): hours run past 23, days are 0, dates have no meaning.
    pub fn extract_time(self, time: i64) -> i64 {
        let value = self.extract_clock(time.abs(), 0);
        if time < 0 { -value } else { value }
    }

    /// Of a time of day, behind a day of the month where the unit has one.
    pub fn extract_clock(self, micros: i64, day: i64) -> i64 {
        let Clock { hour, minute, second, micro } = Clock::from_micros(micros);
        let (hour, minute) = (i64::from(hour), i64::from(minute));
        let (second, micro) = (i64::from(second), i64::from(micro));
        match self {
            Self::Hour => hour,
            Self::Minute => minute,
            Self::Second => second,
            Self::Microsecond => micro,
            Self::DayHour => day * 100 + hour,
            Self::DayMinute => (day * 100 + hour) * 100 + minute,
            Self::DaySecond => ((day * 100 + hour) * 100 + minute) * 100 + second,
            Self::DayMicrosecond => (((day * 100 + hour) * 100 + minute) * 100 + second) * SECOND + micro,
            Self::HourMinute => hour * 100 + minute,
            Self::HourSecond => (hour * 100 + minute) * 100 + second,
            Self::HourMicrosecond => ((hour * 100 + minute) * 100 + second) * SECOND + micro,
            Self::MinuteSecond => minute * 100 + second,
            Self::MinuteMicrosecond => (minute * 100 + second) * SECOND + micro,
            Self::SecondMicrosecond => second * SECOND + micro,
            _ => 0,
        }
    }
}

impl Interval {
    /// `n` of a simple unit (of a compound one: of its last part). Saturates: what is out of range here is far
    /// out of range of every date.
    pub fn of(unit: Unit, n: i64) -> Self {
        let last = unit.compound_parts().last().copied().unwrap_or(unit);
        let mut interval = Self::default();
        interval.count(last, n);
        interval
    }

    /// Seconds with a fraction, as `INTERVAL 1.5 SECOND` has them.
    pub fn of_seconds(micros: i64) -> Self {
        Self { micros, ..Self::default() }
    }

    /// The value of a compound unit: numbers with anything between them, the rightmost ones if there are too few. A
    /// sign in front holds for all. `None` for more numbers than the unit has.
    pub fn parse(unit: Unit, text: &[u8]) -> Option<Self> {
        let parts = unit.compound_parts();
        let start = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let negative = text.get(start) == Some(&b'-');
        let mut values = [0i64; 5];
        let (mut found, mut last_len) = (0, 0);
        let mut rest = &text[start + usize::from(negative)..];
        while let Some(at) = rest.iter().position(u8::is_ascii_digit) {
            if found == parts.len() {
                return None;
            }
            rest = &rest[at..];
            last_len = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            for digit in &rest[..last_len] {
                values[found] = values[found].saturating_mul(10).saturating_add(i64::from(digit - b'0'));
            }
            found += 1;
            rest = &rest[last_len..];
        }
        // Microseconds are a fraction: `1.5` is one second and 500,000.
        if parts.last() == Some(&Unit::Microsecond) && found > 0 && last_len < 6 {
            values[found - 1] = values[found - 1].saturating_mul(10i64.pow(6 - last_len as u32));
        }
        let mut interval = Self::default();
        for (part, value) in parts[parts.len() - found..].iter().zip(values) {
            interval.count(*part, value);
        }
        Some(if negative { -interval } else { interval })
    }

    fn count(&mut self, unit: Unit, n: i64) {
        let add = |to: &mut i64, scale: i64| *to = to.saturating_add(n.saturating_mul(scale));
        match unit {
            Unit::Year => add(&mut self.months, 12),
            Unit::Quarter => add(&mut self.months, 3),
            Unit::Month => add(&mut self.months, 1),
            Unit::Week => add(&mut self.days, 7),
            Unit::Day => add(&mut self.days, 1),
            Unit::Hour => add(&mut self.micros, HOUR),
            Unit::Minute => add(&mut self.micros, MINUTE),
            Unit::Second => add(&mut self.micros, SECOND),
            _ => add(&mut self.micros, 1),
        }
    }
}

impl std::ops::Neg for Interval {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            months: self.months.saturating_neg(),
            days: self.days.saturating_neg(),
            micros: self.micros.saturating_neg(),
        }
    }
}

/// A DATETIME plus an interval; `None` outside the years 0–9999. A day that the new month does not have
/// becomes its last.
pub fn add_interval(datetime: i64, interval: Interval) -> Option<i64> {
    let mut result = datetime;
    if interval.months != 0 {
        let date = Civil::from_days(date_of(datetime));
        let months = (i64::from(date.year) * 12 + i64::from(date.month) - 1).checked_add(interval.months)?;
        if !(0..10_000 * 12).contains(&months) {
            return None;
        }
        let (year, month) = ((months / 12) as i32, (months % 12) as u32 + 1);
        let day = date.day.min(days_in_month(year, month));
        result = Civil { year, month, day }.to_micros() + time_of(datetime);
    }
    result = result.checked_add(interval.days.checked_mul(DAY)?)?.checked_add(interval.micros)?;
    (MIN_DATETIME..=MAX_DATETIME).contains(&result).then_some(result)
}

/// A TIME plus an interval of days or less; `None` out of the range of TIME.
pub fn add_interval_to_time(time: i64, interval: Interval) -> Option<i64> {
    if interval.months != 0 {
        return None;
    }
    let result = time.checked_add(interval.days.checked_mul(DAY)?)?.checked_add(interval.micros)?;
    (-MAX_TIME..=MAX_TIME).contains(&result).then_some(result)
}
