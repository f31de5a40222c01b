//! Dates and times within documents, in MySQL's packed form: bit fields of the calendar's parts, so that they order as integers.
//!
//! ```text
//!  DATE, DATETIME   year·13 + month │ day 5 │ hour 5 │ minute 6 │ second 6 │ microsecond 24
//!  TIME             hour │ minute 6 │ second 6 │ microsecond 24; negated as a whole
//! ```

use crate::temporal::{Civil, Clock, date_of, time_of};

const MICRO_BITS: u32 = 24;

fn pack_clock(clock: Clock) -> i64 {
    i64::from(clock.hour << 12 | clock.minute << 6 | clock.second) << MICRO_BITS | i64::from(clock.micro)
}

fn pack_day(day: Civil) -> i64 {
    (i64::from(day.year) * 13 + i64::from(day.month)) << 5 | i64::from(day.day)
}

pub fn pack_date(days: i32) -> i64 {
    pack_day(Civil::from_days(days)) << 17 << MICRO_BITS
}

pub fn pack_datetime(micros: i64) -> i64 {
    pack_date(date_of(micros)) | pack_clock(Clock::from_micros(time_of(micros)))
}

pub fn pack_time(micros: i64) -> i64 {
    let packed = pack_clock(Clock::from_micros(micros));
    if micros < 0 { -packed } else { packed }
}

/// Microseconds since 1970; `None` for what no calendar has, such as dates whose month alone is zero.
pub fn unpack_datetime(packed: i64) -> Option<i64> {
    let whole = packed >> MICRO_BITS;
    let (day, clock) = (whole >> 17, whole & ((1 << 17) - 1));
    let months = day >> 5;
    let civil =
        Civil::checked_or_zero(i32::try_from(months / 13).ok()?, (months % 13) as u32, (day & 31) as u32)?;
    let clock = unpack_clock(clock, packed).filter(|clock| clock.hour < 24)?;
    (packed >= 0).then(|| civil.to_micros() + clock.to_micros())
}

/// Days since 1970; as [`unpack_datetime`], at midnight.
pub fn unpack_date(packed: i64) -> Option<i32> {
    unpack_datetime(packed).filter(|micros| time_of(*micros) == 0).map(date_of)
}

pub fn unpack_time(packed: i64) -> Option<i64> {
    let magnitude = packed.checked_abs()?;
    let micros = unpack_clock(magnitude >> MICRO_BITS, magnitude)?.to_micros();
    Some(if packed < 0 { -micros } else { micros })
}

fn unpack_clock(whole: i64, packed: i64) -> Option<Clock> {
    let clock = Clock::new(
        u32::try_from(whole >> 12).ok()?,
        (whole >> 6 & 63) as u32,
        (whole & 63) as u32,
        (packed & ((1 << MICRO_BITS) - 1)) as u32,
    );
    let is_one = clock.hour <= 838 && clock.minute < 60 && clock.second < 60 && clock.micro < 1_000_000;
    is_one.then_some(clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{ZERO_DATE, ZERO_DATETIME};

    #[test]
    fn what_mysql_writes_is_read() {
        // 2020-02-03 04:05:06.7, as MySQL 9.7 has it in a document of its log.
        let datetime = i64::from_le_bytes([0x60, 0xAE, 0x0A, 0x46, 0x41, 0x86, 0xA5, 0x19]);
        let micros = Civil::new(2020, 2, 3).to_micros() + Clock::new(4, 5, 6, 700_000).to_micros();
        assert_eq!(unpack_datetime(datetime), Some(micros));
        assert_eq!(pack_datetime(micros), datetime);
    }

    #[test]
    fn packed_forms_come_back_and_order() {
        let days =
            [Civil::new(0, 1, 1), Civil::new(1000, 12, 31), Civil::new(1970, 1, 1), Civil::new(9999, 12, 31)];
        let packed: Vec<i64> = days.iter().map(|day| pack_date(day.to_days())).collect();
        assert!(packed.is_sorted());
        for (day, packed) in days.iter().zip(packed) {
            assert_eq!(unpack_date(packed), Some(day.to_days()));
        }
        for micros in [0, 1, -1, 3_020_399_999_999, -3_020_399_999_999, -43_993_560_000] {
            assert_eq!(unpack_time(pack_time(micros)), Some(micros));
        }
        for micros in [0, -1, 999_999, 86_399_999_999, 253_402_300_799_999_999] {
            assert_eq!(unpack_datetime(pack_datetime(micros)), Some(micros));
        }
    }

    #[test]
    fn what_no_calendar_has_is_none() {
        // Second 63; the first day of no month.
        for packed in [-1, i64::MIN, i64::MAX, 63 << 24, 1 << 41] {
            assert_eq!(unpack_datetime(packed), None, "{packed}");
        }
        assert_eq!((unpack_datetime(0), unpack_date(0)), (Some(ZERO_DATETIME), Some(ZERO_DATE)));
        assert_eq!((pack_datetime(ZERO_DATETIME), pack_date(ZERO_DATE)), (0, 0));
        assert_eq!(
            (unpack_time(i64::MIN), unpack_time(63 << 24), unpack_time(0xFF_FFFF)),
            (None, None, None)
        );
        let noon = pack_datetime(Clock::new(12, 0, 0, 0).to_micros());
        assert_eq!(unpack_date(noon), None);
    }
}
