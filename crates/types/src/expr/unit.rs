//! Interval units.

/// The unit of an INTERVAL, of EXTRACT and of TIMESTAMPDIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalUnit {
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

impl IntervalUnit {
    const NAMES: [(Self, &'static str); 20] = [
        (Self::Microsecond, "MICROSECOND"),
        (Self::Second, "SECOND"),
        (Self::Minute, "MINUTE"),
        (Self::Hour, "HOUR"),
        (Self::Day, "DAY"),
        (Self::Week, "WEEK"),
        (Self::Month, "MONTH"),
        (Self::Quarter, "QUARTER"),
        (Self::Year, "YEAR"),
        (Self::SecondMicrosecond, "SECOND_MICROSECOND"),
        (Self::MinuteMicrosecond, "MINUTE_MICROSECOND"),
        (Self::MinuteSecond, "MINUTE_SECOND"),
        (Self::HourMicrosecond, "HOUR_MICROSECOND"),
        (Self::HourSecond, "HOUR_SECOND"),
        (Self::HourMinute, "HOUR_MINUTE"),
        (Self::DayMicrosecond, "DAY_MICROSECOND"),
        (Self::DaySecond, "DAY_SECOND"),
        (Self::DayMinute, "DAY_MINUTE"),
        (Self::DayHour, "DAY_HOUR"),
        (Self::YearMonth, "YEAR_MONTH"),
    ];

    /// A unit by its name (also `SQL_TSI_DAY` and the like), in any case.
    pub fn parse(name: &str) -> Option<Self> {
        let name = match name.get(..8) {
            Some(prefix) if prefix.eq_ignore_ascii_case("SQL_TSI_") => &name[8..],
            _ => name,
        };
        Self::NAMES.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(unit, _)| *unit)
    }

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(unit, _)| *unit == self).expect("every unit is in the list").1
    }

    /// Whether adding such an interval to a DATE can give a time of day.
    pub fn has_time_part(self) -> bool {
        !matches!(self, Self::Day | Self::Week | Self::Month | Self::Quarter | Self::Year | Self::YearMonth)
    }

    /// Whether adding such an interval to a TIME needs a date.
    pub fn has_date_part(self) -> bool {
        matches!(self, Self::Month | Self::Quarter | Self::Year | Self::YearMonth)
    }

    pub fn has_microseconds(self) -> bool {
        matches!(
            self,
            Self::Microsecond
                | Self::SecondMicrosecond
                | Self::MinuteMicrosecond
                | Self::HourMicrosecond
                | Self::DayMicrosecond
        )
    }

    /// Whether an amount of it has several parts, as in `'1:30' MINUTE_SECOND`.
    pub fn is_compound(self) -> bool {
        self.name().contains('_')
    }

    /// Whether EXTRACT of it looks at the time of day alone.
    pub fn is_of_time(self) -> bool {
        self.has_time_part() && !self.name().starts_with("DAY")
    }
}
