//! The texts of dates and times, appended to a buffer.

use super::{Civil, Clock, date_of, time_of};
use crate::number::write_u64;

#[inline]
fn two(to: &mut [u8], v: u32) {
    to[0] = b'0' + (v / 10) as u8;
    to[1] = b'0' + (v % 10) as u8;
}

#[inline]
fn four(to: &mut [u8], v: u32) {
    two(&mut to[..2], v / 100);
    two(&mut to[2..], v % 100);
}

/// `YYYY-MM-DD`.
pub fn write_date(days: i32, to: &mut Vec<u8>) {
    let Civil { year, month, day } = Civil::from_days(days);
    let mut text = *b"0000-00-00";
    four(&mut text[..4], year as u32);
    two(&mut text[5..7], month);
    two(&mut text[8..], day);
    to.extend_from_slice(&text);
}

/// `YYYY-MM-DD hh:mm:ss`, and `fsp` digits of the fraction.
pub fn write_datetime(micros: i64, fsp: u8, to: &mut Vec<u8>) {
    write_date(date_of(micros), to);
    let Clock { hour, minute, second, micro } = Clock::from_micros(time_of(micros));
    let mut text = *b" 00:00:00";
    two(&mut text[1..3], hour);
    two(&mut text[4..6], minute);
    two(&mut text[7..], second);
    to.extend_from_slice(&text);
    write_fraction(micro, fsp, to);
}

/// `[-]hh:mm:ss` and `fsp` digits of the fraction. Hours have as many digits as they need: warnings show times that are none.
pub fn write_time(micros: i64, fsp: u8, to: &mut Vec<u8>) {
    let Clock { hour, minute, second, micro } = Clock::from_micros(micros);
    if micros < 0 {
        to.push(b'-');
    }
    if hour >= 100 {
        write_u64((hour / 100).into(), to);
    }
    let mut text = *b"00:00:00";
    two(&mut text[..2], hour % 100);
    two(&mut text[3..5], minute);
    two(&mut text[6..], second);
    to.extend_from_slice(&text);
    write_fraction(micro, fsp, to);
}

/// `YYYY`. A column has no years below 1901 but the zero year, so that others are those of YEAR(), which has no zeros before them.
pub fn write_year(year: u64, to: &mut Vec<u8>) {
    if (1..1000).contains(&year) {
        to.extend_from_slice(year.to_string().as_bytes());
        return;
    }
    let mut text = [0; 4];
    four(&mut text, year.min(9999) as u32);
    to.extend_from_slice(&text);
}

fn write_fraction(micro: u32, fsp: u8, to: &mut Vec<u8>) {
    if fsp == 0 {
        return;
    }
    let mut text = *b".000000";
    two(&mut text[1..3], micro / 10_000);
    two(&mut text[3..5], micro / 100 % 100);
    two(&mut text[5..], micro % 100);
    to.extend_from_slice(&text[..1 + usize::from(fsp.min(6))]);
}
