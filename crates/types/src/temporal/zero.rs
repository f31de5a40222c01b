//! The zero date.

use super::{DAY, MIN_DATE, MIN_DATETIME};

/// `0000-00-00`
pub const ZERO_DATE: i32 = MIN_DATE - 1;
/// `0000-00-00 00:00:00`, of DATETIME and of TIMESTAMP, in every time zone.
pub const ZERO_DATETIME: i64 = ZERO_DATE as i64 * DAY;

/// Whether a DATE is the zero date.
#[inline]
pub const fn is_zero_date(days: i32) -> bool {
    days < MIN_DATE
}

/// Whether a DATETIME is of the zero date, at whatever time of day.
#[inline]
pub const fn has_zero_date(micros: i64) -> bool {
    micros < MIN_DATETIME
}

/// Where texts and numbers become dates: whether the zero date is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ZeroDates {
    /// `0000-00-00`, and with a time of zero: unless NO_ZERO_DATE is in force.
    pub alone: bool,
    /// `0000-00-00 10:00:00`: unless NO_ZERO_IN_DATE is in force.
    pub with_time: bool,
}

impl ZeroDates {
    pub const REFUSED: Self = Self { alone: false, with_time: false };
    pub const ALLOWED: Self = Self { alone: true, with_time: true };

    /// Whether a DATETIME is a value: all that are no zero dates are.
    #[inline]
    pub const fn allow(self, micros: i64) -> bool {
        !has_zero_date(micros) || if micros == ZERO_DATETIME { self.alone } else { self.with_time }
    }
}
