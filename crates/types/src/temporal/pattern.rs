//! DATE_FORMAT, TIME_FORMAT and STR_TO_DATE (manual, "DATE_FORMAT").

use std::io::Write as _;

use super::calendar::week_and_year;
use super::{
    Civil, Clock, DAY, Locale, MAX_TIME, WeekMode, ZeroDates, date_of, day_of_week, day_of_year,
    is_zero_date, time_of, weekday,
};

/// DATE_FORMAT(datetime, pattern), appended. Names of a zero date's month and weekday give NULL in MySQL: `false`, and then
/// nothing of use was appended. Ends behind `most` bytes: a pattern's letters stand for names of weekdays and months.
pub fn date_format(datetime: i64, pattern: &str, locale: &Locale, most: usize, to: &mut Vec<u8>) -> bool {
    let days = date_of(datetime);
    let date = Civil::from_days(days);
    let clock = Clock::from_micros(time_of(datetime));
    let is_zero = is_zero_date(days);
    let mut valid = true;
    each_specifier(pattern, most, to, |specifier, to| {
        if is_zero && matches!(specifier, 'a' | 'b' | 'M' | 'W' | 'w') {
            valid = false;
            return;
        }
        if !write_date_part(specifier, days, date, locale, to) && !write_clock_part(specifier, clock, to) {
            push_char(specifier, to);
        }
    });
    valid
}

/// TIME_FORMAT(time, pattern), appended; of a time with a date, that shows in some specifiers. Other ones of dates give NULL in MySQL:
/// `false`, and then nothing of use was appended.
pub fn time_format(
    time: i64,
    date: Option<i32>,
    pattern: &str,
    locale: &Locale,
    most: usize,
    to: &mut Vec<u8>,
) -> bool {
    let clock = Clock::from_micros(time);
    let date = date.map(|days| (days, Civil::from_days(days)));
    let mut valid = true;
    if time < 0 {
        to.push(b'-');
    }
    each_specifier(pattern, most, to, |specifier, to| {
        if write_clock_part(specifier, clock, to) {
            return;
        }
        if let Some((days, civil)) = date
            && (matches!(specifier, 'c' | 'e' | 'd' | 'm' | 'y' | 'Y')
                || matches!(specifier, 'b' | 'M') && civil.month > 0)
        {
            write_date_part(specifier, days, civil, locale, to);
            return;
        }
        match specifier {
            'c' | 'e' => to.push(b'0'),
            'd' | 'm' | 'y' => to.extend_from_slice(b"00"),
            'Y' => to.extend_from_slice(b"0000"),
            'a' | 'b' | 'D' | 'j' | 'M' | 'U' | 'u' | 'V' | 'v' | 'W' | 'w' | 'X' | 'x' => valid = false,
            other => push_char(other, to),
        }
    });
    valid
}

fn each_specifier(pattern: &str, most: usize, to: &mut Vec<u8>, mut write: impl FnMut(char, &mut Vec<u8>)) {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next().filter(|_| to.len() <= most) {
        match (c, if c == '%' { chars.next() } else { None }) {
            ('%', Some(specifier)) => write(specifier, to),
            (plain, _) => push_char(plain, to),
        }
    }
}

fn push_char(c: char, to: &mut Vec<u8>) {
    to.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends a number of at least `width` digits.
fn pad(v: u32, width: usize, to: &mut Vec<u8>) {
    write!(to, "{v:0width$}").expect("writing to a Vec does not fail");
}

fn write_date_part(specifier: char, days: i32, date: Civil, locale: &Locale, to: &mut Vec<u8>) -> bool {
    let week_of = |mode: i64| week_and_year(days, WeekMode::new(mode));
    match specifier {
        'a' => to.extend_from_slice(locale.short_day_name(days).as_bytes()),
        'b' => to.extend_from_slice(locale.short_month_name(date.month).as_bytes()),
        'c' => pad(date.month, 1, to),
        'D' => {
            pad(date.day, 1, to);
            to.extend_from_slice(ordinal_suffix(date.day));
        }
        'd' => pad(date.day, 2, to),
        'e' => pad(date.day, 1, to),
        'j' => pad(day_of_year(days), 3, to),
        'M' => to.extend_from_slice(locale.month_name(date.month).as_bytes()),
        'm' => pad(date.month, 2, to),
        'U' => pad(week_of(0).0, 2, to),
        'u' => pad(week_of(1).0, 2, to),
        'V' => pad(week_of(2).0, 2, to),
        'v' => pad(week_of(3).0, 2, to),
        'W' => to.extend_from_slice(locale.day_name(days).as_bytes()),
        'w' => pad(day_of_week(days) - 1, 1, to),
        'X' => pad(week_of(2).1 as u32, 4, to),
        'x' => pad(week_of(3).1 as u32, 4, to),
        'Y' => pad(date.year as u32, 4, to),
        'y' => pad(date.year as u32 % 100, 2, to),
        _ => return false,
    }
    true
}

fn write_clock_part(specifier: char, clock: Clock, to: &mut Vec<u8>) -> bool {
    let twelve = (clock.hour % 24 + 11) % 12 + 1;
    let half: &[u8] = if clock.hour % 24 < 12 { b"AM" } else { b"PM" };
    match specifier {
        'f' => pad(clock.micro, 6, to),
        'H' => pad(clock.hour, 2, to),
        'h' | 'I' => pad(twelve, 2, to),
        'i' => pad(clock.minute, 2, to),
        'k' => pad(clock.hour, 1, to),
        'l' => pad(twelve, 1, to),
        'p' => to.extend_from_slice(half),
        'r' => {
            write_clock(twelve, clock, to);
            to.push(b' ');
            to.extend_from_slice(half);
        }
        'S' | 's' => pad(clock.second, 2, to),
        'T' => write_clock(clock.hour, clock, to),
        _ => return false,
    }
    true
}

fn write_clock(hour: u32, clock: Clock, to: &mut Vec<u8>) {
    pad(hour, 2, to);
    to.push(b':');
    pad(clock.minute, 2, to);
    to.push(b':');
    pad(clock.second, 2, to);
}

fn ordinal_suffix(day: u32) -> &'static [u8] {
    match (day, day % 10) {
        (11..=13, _) => b"th",
        (_, 1) => b"st",
        (_, 2) => b"nd",
        (_, 3) => b"rd",
        _ => b"th",
    }
}

/// What STR_TO_DATE gives: by the specifiers in its pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrToDate {
    Date(i32),
    DateTime(i64),
    Time(i64),
}

/// Which of the three a pattern gives, and whether with microseconds. The value is of that kind, zero.
pub fn str_to_date_kind(pattern: &str) -> (StrToDate, bool) {
    let (mut date, mut time, mut micros) = (false, false, false);
    each_specifier(pattern, usize::MAX, &mut Vec::new(), |specifier, _| match specifier {
        'f' => (time, micros) = (true, true),
        'H' | 'I' | 'S' | 'T' | 'h' | 'i' | 'k' | 'l' | 'r' | 's' => time = true,
        // In MySQL, too, a day of the month alone is no part of a date.
        'D' | 'd' | 'e' | 'p' | '.' | '@' | '#' | '%' => {}
        _ => date = true,
    });
    let kind = match (date, time) {
        (true, true) => StrToDate::DateTime(0),
        (false, true) => StrToDate::Time(0),
        _ => StrToDate::Date(0),
    };
    (kind, micros)
}

#[derive(Default)]
struct Scanned {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    micro: u32,
    /// `%p`: after noon.
    pm: Option<bool>,
    twelve_hours: bool,
    day_of_year: Option<u32>,
    week: Option<u32>,
    week_year: Option<u32>,
    /// `%X`, not `%x`: of weeks that begin on Sundays.
    of_sundays: bool,
    /// 1 is Monday, 7 is Sunday.
    weekday: Option<u32>,
    week_mode: i64,
    /// Bytes that were left where the text did not match `%T` or `%r`.
    time_left: Option<usize>,
}

/// A text that does not match a pattern, or is no date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Bytes of the text before what does not match `%T` or `%r`, if it is that.
    pub before_time: Option<usize>,
}

/// STR_TO_DATE(text, pattern). The flag says that text is left.
pub fn str_to_date(text: &str, pattern: &str, zeros: ZeroDates) -> Result<(StrToDate, bool), Mismatch> {
    let mut scanned = Scanned::default();
    let rest = scan(text.as_bytes(), pattern.as_bytes(), &mut scanned);
    let read = rest.and_then(|rest| value_of(&scanned, rest, pattern, zeros));
    read.ok_or(Mismatch { before_time: scanned.time_left.map(|left| text.len() - left) })
}

fn value_of(scanned: &Scanned, rest: &[u8], pattern: &str, zeros: ZeroDates) -> Option<(StrToDate, bool)> {
    let (kind, _) = str_to_date_kind(pattern);
    let left = !rest.trim_ascii().is_empty();
    let mut hour = scanned.hour;
    if scanned.twelve_hours {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if scanned.pm == Some(true) { 12 } else { 0 };
    }
    if scanned.minute > 59 || scanned.second > 59 {
        return None;
    }
    let clock = Clock::new(hour, scanned.minute, scanned.second, scanned.micro).to_micros();
    let value = match kind {
        StrToDate::Time(_) if hour < 24 && scanned.day.unwrap_or(0) == 0 => {
            StrToDate::Time(clock.min(MAX_TIME))
        }
        StrToDate::Time(_) => return None,
        StrToDate::Date(_) => StrToDate::Date(scanned.date()?),
        StrToDate::DateTime(_) if clock < DAY => {
            StrToDate::DateTime(i64::from(scanned.date()?) * DAY + clock)
        }
        StrToDate::DateTime(_) => return None,
    };
    let midnight = |days| i64::from(days) * DAY;
    let allowed = match value {
        StrToDate::Date(days) => zeros.allow(midnight(days)),
        StrToDate::DateTime(at) => zeros.allow(at),
        StrToDate::Time(_) => true,
    };
    allowed.then_some((value, left))
}

impl Scanned {
    fn date(&self) -> Option<i32> {
        if let (Some(day), Some(year)) = (self.day_of_year.filter(|d| *d > 0), self.year) {
            let days = Civil::new(year as i32, 1, 1).to_days() + day as i32 - 1;
            return (days <= super::MAX_DATE).then_some(days);
        }
        if let (Some(week), Some(weekday_wanted)) = (self.week, self.weekday) {
            return self.date_of_week(week, weekday_wanted);
        }
        if (self.year, self.month, self.day) == (None, None, None) {
            return Some(Civil::ZERO.to_days());
        }
        Some(Civil::checked_or_zero(self.year? as i32, self.month?, self.day?)?.to_days())
    }

    /// A date by year, week and weekday: `%X%V%W`, `%x%v%W`, `%Y%U%W`, `%Y%u%W`.
    fn date_of_week(&self, week: u32, wanted: u32) -> Option<i32> {
        let strict = self.week_mode & 2 != 0;
        let sunday_first = self.week_mode & 1 == 0;
        // %V needs %X, and %v needs %x, which %U and %u do not take.
        let year = match (strict, self.week_year) {
            (true, Some(year)) if self.of_sundays == sunday_first => year,
            (false, None) => self.year?,
            _ => return None,
        };
        if week > 53 || (strict && week == 0) {
            return None;
        }
        let first = Civil::new(year as i32, 1, 1).to_days();
        let (first_weekday, week) = (weekday(first) as i32, week as i32);
        let days = if sunday_first {
            let first_weekday = (first_weekday + 1) % 7;
            let lead = if first_weekday == 0 { 0 } else { 7 };
            first + lead - first_weekday + (week - 1) * 7 + wanted as i32 % 7
        } else {
            let lead = if first_weekday <= 3 { 0 } else { 7 };
            first + lead - first_weekday + (week - 1) * 7 + wanted as i32 - 1
        };
        (super::MIN_DATE..=super::MAX_DATE).contains(&days).then_some(days)
    }
}

/// Reads the text by the pattern; gives what is left.
fn scan<'t>(mut rest: &'t [u8], pattern: &[u8], to: &mut Scanned) -> Option<&'t [u8]> {
    let mut pattern = pattern.iter().copied();
    while let Some(byte) = pattern.next() {
        if byte.is_ascii_whitespace() {
            rest = rest.trim_ascii_start();
            continue;
        }
        // Spaces may stand before each part, also before a plain character.
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        let specifier = if byte == b'%' { pattern.next() } else { None };
        match specifier {
            Some(b'%') | None => rest = rest.strip_prefix(&[byte])?,
            Some(specifier) => rest = scan_one(rest, specifier, to)?,
        }
    }
    Some(rest)
}

/// At most `max` digits, at least one.
fn scan_number(text: &[u8], max: usize) -> Option<(u32, &[u8])> {
    let len = text.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
    let value = text[..len].iter().fold(0, |v, b| v * 10 + u32::from(b - b'0'));
    (len > 0).then(|| (value, &text[len..]))
}

/// One of twelve or seven names, or letters that but one of them begins with; counts from 1.
fn scan_name(
    text: &[u8],
    names: impl Iterator<Item = &'static str>,
    len: Option<usize>,
) -> Option<(u32, &[u8])> {
    // Letters as in latin1, whatever the text's character set.
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic() || **byte >= 0xc0;
    let (word, rest) = text.split_at(text.iter().take_while(is_letter).count());
    let mut beginning = Vec::new();
    for (name, position) in names.zip(1..) {
        let name = &name.as_bytes()[..len.unwrap_or(name.len())];
        if name.eq_ignore_ascii_case(word) {
            return Some((position, rest));
        }
        if name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            beginning.push(position);
        }
    }
    match beginning[..] {
        [only] => Some((only, rest)),
        _ => None,
    }
}

/// Whether it is after noon.
fn scan_half(text: &[u8]) -> Option<(bool, &[u8])> {
    let (half, rest) = text.split_at_checked(2)?;
    match [half[0].to_ascii_uppercase(), half[1].to_ascii_uppercase()] {
        [b'A', b'M'] => Some((false, rest)),
        [b'P', b'M'] => Some((true, rest)),
        _ => None,
    }
}

fn scan_one<'t>(text: &'t [u8], specifier: u8, to: &mut Scanned) -> Option<&'t [u8]> {
    // As MySQL reads them, whatever the locale.
    let months = || (1..=12).map(|month| Locale::english().month_name(month));
    // 1970-01-05 was a Monday.
    let weekdays = || (4..11).map(|days| Locale::english().day_name(days));
    let rest = match specifier {
        b'Y' | b'y' => {
            let (year, rest) = scan_number(text, if specifier == b'Y' { 4 } else { 2 })?;
            to.year = Some(two_digit_year(year, text.len() - rest.len()));
            rest
        }
        b'm' | b'c' => store(&mut to.month, scan_number(text, 2)?),
        b'M' => store(&mut to.month, scan_name(text, months(), None)?),
        b'b' => store(&mut to.month, scan_name(text, months(), Some(3))?),
        b'd' | b'e' => store(&mut to.day, scan_number(text, 2)?),
        b'D' => {
            let rest = store(&mut to.day, scan_number(text, 2)?);
            rest.get(2..).unwrap_or(&[])
        }
        b'h' | b'I' | b'l' => {
            to.twelve_hours = true;
            set(&mut to.hour, scan_number(text, 2)?)
        }
        b'H' | b'k' => set(&mut to.hour, scan_number(text, 2)?),
        b'i' => set(&mut to.minute, scan_number(text, 2)?),
        b's' | b'S' => set(&mut to.second, scan_number(text, 2)?),
        b'f' => {
            let (value, rest) = scan_number(text, 6)?;
            to.micro = value * 10u32.pow(6 - (text.len() - rest.len()) as u32);
            rest
        }
        // Behind an hour of twelve alone.
        b'p' if !to.twelve_hours => return None,
        b'p' => {
            let (is_pm, rest) = scan_half(text)?;
            to.pm = Some(is_pm);
            rest
        }
        b'W' => store(&mut to.weekday, scan_name(text, weekdays(), None)?),
        b'a' => store(&mut to.weekday, scan_name(text, weekdays(), Some(3))?),
        b'w' => {
            let (day, rest) = scan_number(text, 1)?;
            let days_of_week = [7, 1, 2, 3, 4, 5, 6];
            to.weekday = Some(*days_of_week.get(day as usize)?);
            rest
        }
        b'j' => store(&mut to.day_of_year, scan_number(text, 3)?),
        b'V' | b'U' | b'v' | b'u' => {
            to.week_mode = [b'U', b'u', b'V', b'v'].iter().position(|s| *s == specifier)? as i64;
            store(&mut to.week, scan_number(text, 2)?)
        }
        b'X' | b'x' => {
            to.of_sundays = specifier == b'X';
            store(&mut to.week_year, scan_number(text, 4)?)
        }
        // A text may end before they do.
        b'r' => scan_time(text, b"%I:%i:%S %p", to)?,
        b'T' => scan_time(text, b"%H:%i:%S", to)?,
        b'.' => skip(text, u8::is_ascii_punctuation),
        b'@' => skip(text, u8::is_ascii_alphabetic),
        b'#' => skip(text, u8::is_ascii_digit),
        _ => return None,
    };
    Some(rest)
}

fn scan_time<'t>(text: &'t [u8], pattern: &[u8], to: &mut Scanned) -> Option<&'t [u8]> {
    let rest = scan(text, pattern, to).filter(|_| !to.twelve_hours || (1..=12).contains(&to.hour));
    if rest.is_none() {
        to.time_left = Some(text.len());
    }
    rest
}

fn store<'t>(field: &mut Option<u32>, (value, rest): (u32, &'t [u8])) -> &'t [u8] {
    *field = Some(value);
    rest
}

fn set<'t>(field: &mut u32, (value, rest): (u32, &'t [u8])) -> &'t [u8] {
    *field = value;
    rest
}

fn skip(text: &[u8], class: fn(&u8) -> bool) -> &[u8] {
    &text[text.iter().take_while(|b| class(b)).count()..]
}

fn two_digit_year(year: u32, digits: usize) -> u32 {
    match (digits, year) {
        (3.., _) => year,
        (_, 0..70) => year + 2000,
        _ => year + 1900,
    }
}
