//! MySQL's literal forms of dates and times (manual, "Date and Time Literals").
//!
//! Texts are read as the server does: fields split by any punctuation, or run together in groups of two with a
//! year of four digits where 8 or at least 14 digits are given; two-digit years below 70 are of this century. What
//! follows a valid value is ignored and reported (`truncated`). A value is refused if any field is out of range
//! or the calendar does not have it.

use super::zone::parse_offset;
use super::{
    Civil, Clock, DAY, MAX_DATETIME, MAX_TIME, TimeZone, ZERO_DATETIME, ZeroDates, days_in_month,
    has_zero_date,
};

/// A text or number as a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Microseconds: of a DATETIME since 1970-01-01, or of a TIME.
    pub micros: i64,
    /// Digits of the fraction that were given, at most 6.
    pub fsp: u8,
    pub has_date: bool,
    pub has_time: bool,
    /// Something follows the value.
    pub truncated: bool,
    /// A TIME was out of range and is now the largest of its sign.
    pub clipped: bool,
    /// The moment, if an offset says it: a local time may come twice.
    pub utc: Option<i64>,
}

/// Why a text or number is no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotADate {
    /// Its parts are read, but the calendar has no such day, or it is a zero date that is refused.
    OutOfRange,
    /// It does not have the parts of a date.
    Malformed,
    /// Rounding its fraction leads beyond the year 9999.
    RoundedOver,
}

/// A date and time with only `fsp` digits of fraction: halves become the later one, before 1970 too.
#[inline]
pub const fn round_datetime(micros: i64, fsp: u8) -> i64 {
    let unit = fsp_unit(fsp);
    (micros + unit / 2).div_euclid(unit) * unit
}

/// A TIME with only `fsp` digits of fraction, rounded half away from zero.
#[inline]
pub const fn round_to_fsp(micros: i64, fsp: u8) -> i64 {
    let unit = fsp_unit(fsp);
    if unit == 1 {
        return micros;
    }
    let half = if micros < 0 { -unit / 2 } else { unit / 2 };
    (micros + half) / unit * unit
}

/// What becomes of digits of a fraction that there is no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExcessDigits {
    #[default]
    Round,
    /// TIME_TRUNCATE_FRACTIONAL
    Drop,
}

impl ExcessDigits {
    /// A date and time with only `fsp` digits of fraction.
    #[inline]
    pub const fn datetime(self, micros: i64, fsp: u8) -> i64 {
        match self {
            Self::Round => round_datetime(micros, fsp),
            Self::Drop => truncate_to_fsp(micros, fsp),
        }
    }

    /// A TIME with only `fsp` digits of fraction.
    #[inline]
    pub const fn time(self, micros: i64, fsp: u8) -> i64 {
        match self {
            Self::Round => round_to_fsp(micros, fsp),
            Self::Drop => micros / fsp_unit(fsp) * fsp_unit(fsp),
        }
    }
}

/// The value with only `fsp` digits of fraction, cut toward zero.
#[inline]
pub const fn truncate_to_fsp(micros: i64, fsp: u8) -> i64 {
    micros - micros.rem_euclid(fsp_unit(fsp))
}

const fn fsp_unit(fsp: u8) -> i64 {
    const UNITS: [i64; 7] = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    UNITS[if fsp > 6 { 6 } else { fsp as usize }]
}

/// More hours than any TIME has.
const MAX_HOURS: u64 = 10_000;

fn digit_run(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn space_run(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |v, b| v.saturating_mul(10).saturating_add(u64::from(b - b'0')))
}

/// The digits after a point: microseconds rounded from the seventh digit, digits given, bytes read.
fn fraction(text: &[u8]) -> (i64, u8, usize) {
    let len = digit_run(text);
    let given = len.min(6);
    let mut micros = number(&text[..given]) as i64 * fsp_unit(given as u8);
    if text[given..len].first().is_some_and(|&digit| digit >= b'5') {
        micros += 1;
    }
    (micros, given as u8, len)
}

/// The fields of a date and time in a text.
#[derive(Default)]
struct Fields {
    /// Year, month, day, hour, minute, second.
    values: [u64; 6],
    count: usize,
    year_digits: usize,
    micros: i64,
    fsp: u8,
    /// Bytes read.
    end: usize,
    /// Punctuation or spaces stand between fields.
    is_delimited: bool,
    has_space: bool,
}

impl Fields {
    /// All six, if no month, day, hour, minute or second is larger than there are. `is_all`: nothing follows them.
    fn checked(&self, is_all: bool) -> Result<[u32; 6], NotADate> {
        let values = self.values.map(|v| v as u32);
        let [_, month, day, hour, minute, second] = values;
        let is_clock = hour < 24 && minute < 60 && second < 60;
        if self.count < 3 || month > 12 || day > 31 || !is_clock {
            // Zeros alone are a zero date that is out of range.
            let is_zero = self.values == [0; 6];
            return Err(if is_zero && is_all { NotADate::OutOfRange } else { NotADate::Malformed });
        }
        Ok(values)
    }
}

/// Reads a DATE or DATETIME. An offset behind it (`+02:00`) is taken to mean local time elsewhere, and
/// converted to `zone`.
pub fn parse_datetime(text: &[u8], zone: TimeZone, zeros: ZeroDates) -> Option<Parsed> {
    read_datetime(text, zone, zeros).ok()
}

/// As [`parse_datetime`], and says why a text is no date.
pub fn read_datetime(text: &[u8], zone: TimeZone, zeros: ZeroDates) -> Result<Parsed, NotADate> {
    let start = space_run(text);
    let text = &text[start..];
    let fields = fields_of(text).ok_or(NotADate::Malformed)?;
    let (mut rest, mut utc) = (&text[fields.end..], None);
    let mut micros = datetime_of(&fields, zeros, space_run(rest) == rest.len())?;
    if fields.count == 6
        && let Some(offset) = offset_suffix(rest)
    {
        let moment = offset.to_utc(micros);
        // Zero dates are of no place.
        let is_zero = has_zero_date(micros);
        micros = zone.to_local(moment);
        (rest, utc) = (&[], Some(moment));
        if is_zero || has_zero_date(micros) {
            return Err(NotADate::OutOfRange);
        }
    }
    if micros > MAX_DATETIME {
        return Err(NotADate::OutOfRange);
    }
    Ok(Parsed {
        micros,
        fsp: fields.fsp,
        has_date: true,
        has_time: fields.count > 3,
        truncated: space_run(rest) < rest.len(),
        clipped: false,
        utc,
    })
}

/// The date of a text whose month or day is zero, or both: `2024-00-10`. Not the zero date, which is one for itself.
pub fn parse_partial_date(text: &[u8]) -> Option<Civil> {
    parse_partial_datetime(text).map(|(day, _)| day)
}

/// The same with its time of day, in microseconds.
pub fn parse_partial_datetime(text: &[u8]) -> Option<(Civil, i64)> {
    let text = &text[space_run(text)..];
    let fields = fields_of(text)?;
    let rest = &text[fields.end..];
    let [year, month, day, hour, minute, second] = fields.checked(space_run(rest) == rest.len()).ok()?;
    let is_partial = (month == 0 || day == 0) && (year, month, day) != (0, 0, 0);
    let year = if fields.year_digits == 2 { full_year(year) } else { year };
    let clock = Clock::new(hour, minute, second, 0).to_micros() + fields.micros;
    (is_partial && year <= 9999).then(|| (Civil::new(year as i32, month, day), clock))
}

/// As [`parse_datetime`], in microseconds; a day that its month does not have (`2024-02-30`, `2024-00-01`) counts from the month's
/// first.
pub fn count_datetime(text: &[u8], zone: TimeZone) -> Option<i64> {
    match read_datetime(text, zone, ZeroDates::ALLOWED) {
        Ok(parsed) => return Some(parsed.micros),
        Err(NotADate::OutOfRange) => {}
        Err(_) => return None,
    }
    let fields = fields_of(&text[space_run(text)..])?;
    let [year, month, day, hour, minute, second] = fields.checked(true).ok()?;
    let year = if fields.year_digits == 2 { full_year(year) } else { year };
    let first = Civil::checked(year as i32, month.max(1), 1)?;
    let days = i64::from(day) - 1 - if month == 0 { 31 } else { 0 };
    let clock = Clock::new(hour, minute, second, 0).to_micros() + fields.micros;
    Some(first.to_micros() + days * DAY + clock)
}

/// The fields of a text that begins with a digit; `None` if they cannot be those of a date.
fn fields_of(text: &[u8]) -> Option<Fields> {
    if !text.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let run = text.iter().take_while(|b| b.is_ascii_digit() || **b == b'T').count();
    match text.get(run) {
        None | Some(b'.') => Some(run_together(text, run)),
        Some(_) => delimited(text),
    }
}

/// An offset must be all that is left, in the form `±hh:mm`.
fn offset_suffix(rest: &[u8]) -> Option<TimeZone> {
    let rest = rest.trim_ascii_end();
    if rest.len() == 6 && rest != b"-00:00" { parse_offset(rest) } else { None }
}

/// `YYYYMMDD`, `YYMMDD`, `YYYYMMDDhhmmss`, `YYMMDDhhmmss`, and a fraction.
fn run_together(text: &[u8], run: usize) -> Fields {
    let year_digits = if run == 4 || run == 8 || run >= 14 { 4 } else { 2 };
    let mut fields = Fields { year_digits, ..Fields::default() };
    while fields.count < 6 {
        let width = if fields.count == 0 { year_digits } else { 2 };
        let len = digit_run(&text[fields.end..]).min(width);
        if len == 0 {
            break;
        }
        fields.values[fields.count] = number(&text[fields.end..fields.end + len]);
        fields.count += 1;
        fields.end += len;
        if fields.count == 3 && text.get(fields.end) == Some(&b'T') {
            fields.end += 1;
        } else if fields.count < 6 {
            // Punctuation is passed over here too, so that `2020.01.01` is a date.
            let (next, spaced) = delimiters(text, fields.end);
            fields.is_delimited |= next > fields.end;
            fields.has_space |= spaced;
            if next == text.len() || (spaced && fields.count != 3) {
                break;
            }
            fields.end = next;
        }
    }
    if fields.count == 6 && text.get(fields.end) == Some(&b'.') {
        let (micros, fsp, len) = fraction(&text[fields.end + 1..]);
        (fields.micros, fields.fsp) = (micros, fsp);
        fields.end += 1 + len;
    }
    fields
}

/// Fields with punctuation between them; between day and hour also spaces or a `T`.
fn delimited(text: &[u8]) -> Option<Fields> {
    let mut fields = Fields::default();
    let mut at = 0;
    loop {
        let len = digit_run(&text[at..]);
        if len == 0 {
            break;
        }
        let value = number(&text[at..at + len]);
        if value > 999_999 {
            return None;
        }
        if fields.count == 0 {
            fields.year_digits = len;
        }
        fields.values[fields.count] = value;
        fields.count += 1;
        at += len;
        fields.end = at;
        if fields.count == 6 {
            break;
        }
        if fields.count == 3 && text.get(at) == Some(&b'T') {
            at += 1;
            continue;
        }
        let (next, spaced) = delimiters(text, at);
        fields.is_delimited |= next > at;
        fields.has_space |= spaced;
        if spaced && fields.count != 3 {
            // A space may stand between day and hour alone.
            if next < text.len() {
                return None;
            }
            break;
        }
        if next == at {
            break;
        }
        at = next;
    }
    if fields.count == 6 && text.get(at) == Some(&b'.') {
        let (micros, fsp, len) = fraction(&text[at + 1..]);
        (fields.micros, fields.fsp) = (micros, fsp);
        fields.end = at + 1 + len;
    }
    Some(fields)
}

/// The end of the punctuation and spaces at `at`, and whether there are spaces.
fn delimiters(text: &[u8], mut at: usize) -> (usize, bool) {
    let mut spaced = false;
    while let Some(byte) = text.get(at).filter(|b| b.is_ascii_punctuation() || b.is_ascii_whitespace()) {
        spaced |= byte.is_ascii_whitespace();
        at += 1;
    }
    (at, spaced)
}

/// `is_all`: nothing follows the fields.
fn datetime_of(fields: &Fields, zeros: ZeroDates, is_all: bool) -> Result<i64, NotADate> {
    let [year, month, day, hour, minute, second] = fields.checked(is_all)?;
    let zero = fields.values == [0; 6];
    let year = if fields.year_digits == 2 && !zero { full_year(year) } else { year };
    let date = Civil::checked_or_zero(year as i32, month, day).ok_or(NotADate::OutOfRange)?;
    let micros = date.to_micros() + Clock::new(hour, minute, second, 0).to_micros() + fields.micros;
    if zeros.allow(micros) { Ok(micros) } else { Err(NotADate::OutOfRange) }
}

const fn full_year(two_digits: u32) -> u32 {
    if two_digits < 70 { two_digits + 2000 } else { two_digits + 1900 }
}

/// The time of day of a text that is a date and a time, whether or not the calendar has the date (`str_to_datetime` with
/// `TIME_DATETIME_ONLY`); `None` if it is no such text.
fn time_of_datetime(text: &[u8], zone: TimeZone) -> Result<Option<Parsed>, NotADate> {
    let Some(fields) = fields_of(text) else { return Ok(None) };
    // Fields without a space between them are a time, even if they would do as a date: `654:05:17.00`.
    if fields.is_delimited && !fields.has_space || fields.has_space && fields.count < 3 {
        return Ok(None);
    }
    let mut rest = &text[fields.end..];
    let [year, month, day, hour, minute, second] = fields.checked(space_run(rest) == rest.len())?;
    if fields.count == 3 || year > 9999 {
        return Err(NotADate::Malformed);
    }
    let mut micros = Clock::new(hour, minute, second, 0).to_micros() + fields.micros;
    let mut utc = None;
    if fields.count == 6
        && let Some(offset) = offset_suffix(rest)
    {
        let last = days_in_month(year as i32, month);
        let date = Civil::checked(year as i32, month, day.min(last)).ok_or(NotADate::OutOfRange)?;
        let moment = offset.to_utc(date.to_micros() + micros);
        micros = super::time_of(zone.to_local(moment));
        (rest, utc) = (&[], Some(moment));
    }
    Ok(Some(Parsed {
        micros,
        fsp: fields.fsp,
        // The zero date is no part that is lost.
        has_date: (year, month, day) != (0, 0, 0),
        has_time: true,
        truncated: space_run(rest) < rest.len(),
        clipped: false,
        utc,
    }))
}

/// Texts that are shorter are no date and time (`str_to_time`).
const SHORTEST_DATETIME: usize = 12;

/// Reads a TIME: `[D ]hh:mm[:ss][.f]`, `hhmmss`, `mmss`, `ss`, or the time of a full DATETIME.
pub fn parse_time(text: &[u8], zone: TimeZone) -> Option<Parsed> {
    let text = &text[space_run(text)..];
    let negative = text.first() == Some(&b'-');
    let text = &text[usize::from(negative)..];
    let without_blanks = text.trim_ascii_end();
    if without_blanks.len() >= SHORTEST_DATETIME
        && let Some(time) = time_of_datetime(without_blanks, zone).transpose()
    {
        return time.ok().filter(|_| !negative);
    }
    let (hours, minutes, seconds, mut at) = clock_fields(text)?;
    let (mut micros, mut fsp) = (0, 0);
    if text.get(at) == Some(&b'.') && text.get(at + 1).is_none_or(u8::is_ascii_digit) {
        let digits = &text[at + 1..];
        let len = digit_run(digits);
        // Of more digits than nine, none rounds up what is before it.
        let counted = if len > 9 { &digits[..6] } else { digits };
        (micros, fsp, _) = fraction(counted);
        at += 1 + len;
    }
    if hours.max(minutes).max(seconds) > u64::from(u32::MAX) {
        return None;
    }
    // `10:11:12e3` and the like are no times.
    if matches!(text.get(at..), Some([b'e' | b'E', next, ..]) if next.is_ascii_digit() || b"+-".contains(next))
    {
        return None;
    }
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let micros =
        hours.min(MAX_HOURS) as i64 * super::HOUR + (minutes * 60 + seconds) as i64 * super::SECOND + micros;
    let rest = &text[at..];
    let clipped = micros > MAX_TIME;
    let micros = micros.min(MAX_TIME);
    Some(Parsed {
        micros: if negative { -micros } else { micros },
        fsp,
        has_date: false,
        has_time: true,
        truncated: space_run(rest) < rest.len(),
        clipped,
        utc: None,
    })
}

/// Hours (days included), minutes, seconds, and where the text goes on.
fn clock_fields(text: &[u8]) -> Option<(u64, u64, u64, usize)> {
    let run = digit_run(text);
    let first = number(&text[..run]);
    let after = run + space_run(&text[run..]);
    let digit_at = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    // A single character behind a space is not enough for hours.
    if after > run && digit_at(after) && text.len() > after + 1 {
        let (fields, end) = colon_fields(text, after, 3);
        let days = first.saturating_mul(24);
        return Some((days.saturating_add(fields[0]), fields[1], fields[2], end));
    }
    if text.get(after) == Some(&b':') && digit_at(after + 1) {
        let (fields, end) = colon_fields(text, after + 1, 2);
        return Some((first, fields[0], fields[1], end));
    }
    let is_number = run > 0 || matches!(text, [b'.'] | [b'.', b'0'..=b'9', ..]);
    let fits = first <= u64::from(u32::MAX);
    (is_number && fits).then_some((first / 10_000, first / 100 % 100, first % 100, after))
}

/// Up to `max` numbers with colons between them.
fn colon_fields(text: &[u8], mut at: usize, max: usize) -> ([u64; 3], usize) {
    let mut fields = [0; 3];
    for field in fields.iter_mut().take(max) {
        let len = digit_run(&text[at..]);
        *field = number(&text[at..at + len]);
        at += len;
        if text.get(at) != Some(&b':') || !text.get(at + 1).is_some_and(u8::is_ascii_digit) {
            return (fields, at);
        }
        at += 1;
    }
    // The last field was followed by a colon and a digit, which belong to nothing.
    (fields, at - 1)
}

/// A number as a DATETIME: `YYYYMMDDhhmmss`, `YYMMDDhhmmss`, `YYYYMMDD`, `YYMMDD`, or 0 as the zero date. Says too whether it
/// has a time.
pub fn datetime_from_number(n: i64, zeros: ZeroDates) -> Option<(i64, bool)> {
    if n == 0 && zeros.alone {
        return Some((ZERO_DATETIME, false));
    }
    let (full, has_time) = digits_of_datetime(n)?;
    let day = date_of_digits(full)?;
    let clock = full % 1_000_000;
    let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
    let valid = hour < 24 && minute < 60 && second < 60;
    valid.then(|| {
        let clock = Clock::new(hour as u32, minute as u32, second as u32, 0);
        (day.to_micros() + clock.to_micros(), has_time)
    })
}

/// The day of the same number, whether what is behind it is a time or not.
pub fn date_from_number(n: i64) -> Option<i32> {
    let (full, _) = digits_of_datetime(n)?;
    Some(super::date_of(date_of_digits(full)?.to_micros()))
}

fn date_of_digits(full: i64) -> Option<Civil> {
    let date = full / 1_000_000;
    Civil::checked((date / 10_000) as i32, (date / 100 % 100) as u32, (date % 100) as u32)
}

/// `YYYYMMDDhhmmss` of a number that may have fewer digits, and whether it has a time.
fn digits_of_datetime(n: i64) -> Option<(i64, bool)> {
    Some(match n {
        101..=691_231 => ((n + 20_000_000) * 1_000_000, false),
        700_101..=991_231 => ((n + 19_000_000) * 1_000_000, false),
        // Years below 1000 have no more than seven digits.
        1_000_101..=99_991_231 => (n * 1_000_000, false),
        101_000_000..=691_231_235_959 => (n + 20_000_000_000_000, true),
        700_101_000_000..=991_231_235_959 => (n + 19_000_000_000_000, true),
        10_000_101_000_000..=99_991_231_235_959 => (n, true),
        _ => return None,
    })
}

/// A number as a TIME: `hhmmss`, or the time of a DATETIME's number. Clipped to the range of TIME; `None` if
/// minutes or seconds are past 59.
pub fn time_from_number(n: i64) -> Option<Parsed> {
    let parsed = |micros, clipped| Parsed {
        micros,
        fsp: 0,
        has_date: false,
        has_time: true,
        truncated: false,
        clipped,
        utc: None,
    };
    let magnitude = n.unsigned_abs();
    if magnitude > 8_385_959 {
        if n >= 10_000_000_000
            && let Some((micros, _)) = datetime_from_number(n, ZeroDates::REFUSED)
        {
            return Some(parsed(super::time_of(micros), false));
        }
        return Some(parsed(if n < 0 { -MAX_TIME } else { MAX_TIME }, true));
    }
    let (hour, minute, second) =
        ((magnitude / 10_000) as u32, (magnitude / 100 % 100) as u32, (magnitude % 100) as u32);
    if minute > 59 || second > 59 {
        return None;
    }
    let micros = Clock::new(hour, minute, second, 0).to_micros();
    Some(parsed(if n < 0 { -micros } else { micros }, false))
}

/// A YEAR: 1901–2155 and 0 as they are, 1–69 as 2001–2069, 70–99 as 1970–1999.
pub fn year_from_number(n: i64) -> Option<u64> {
    match n {
        0 | 1901..=2155 => Some(n as u64),
        1..=99 => Some(full_year(n as u32).into()),
        _ => None,
    }
}

/// A DATETIME as the number `YYYYMMDDhhmmss`, without its fraction.
pub fn datetime_to_number(micros: i64) -> i64 {
    let Civil { year, month, day } = Civil::from_days(super::date_of(micros));
    let date = i64::from(year) * 10_000 + i64::from(month) * 100 + i64::from(day);
    date * 1_000_000 + time_to_number(micros.rem_euclid(DAY))
}

/// A TIME as the number `hhmmss`, without its fraction.
pub fn time_to_number(micros: i64) -> i64 {
    let Clock { hour, minute, second, .. } = Clock::from_micros(micros);
    let n = i64::from(hour) * 10_000 + i64::from(minute) * 100 + i64::from(second);
    if micros < 0 { -n } else { n }
}
