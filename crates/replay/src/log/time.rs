//! Times as logs write them.

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that leap days come last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Digits alone: no sign, no blank.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Microseconds of `HH:MM:SS[.ffffff]`, the hours with one digit or more.
fn clock_us(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':').map(|part| number(part.trim_start()));
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || minutes > 59 || seconds > 60 {
        return None;
    }
    let fraction = match fraction {
        "" => 0,
        digits => number(format!("{digits:0<6}").get(..6)?)?,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction)
}

/// `YYYY-MM-DDTHH:MM:SS.ffffff` with `Z` or an offset, the same with a blank, or MariaDB's `YYMMDD HH:MM:SS`: microseconds since 1970.
pub(crate) fn date_time(text: &str) -> Option<i64> {
    if !text.is_ascii() || text.len() < 14 {
        return None;
    }
    const DAY: i64 = 86_400_000_000;
    if text.as_bytes()[4] != b'-' {
        let (date, clock) = (text.get(..6)?, text.get(7..)?);
        let date = (number(&date[..2])?, number(&date[2..4])?, number(&date[4..])?);
        return (text.as_bytes()[6] == b' ')
            .then(|| Some(days(2000 + date.0, date.1, date.2) * DAY + clock_us(clock)?))
            .flatten();
    }
    let is_split = matches!(text.as_bytes()[10], b'T' | b' ') && text.as_bytes()[7] == b'-';
    let date = (number(&text[..4])?, number(&text[5..7])?, number(&text[8..10])?);
    let rest = &text[11..];
    let zone = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let offset_us = match &rest[zone..] {
        "" | "Z" => 0,
        offset => {
            let us = clock_us(&format!("{}:00", offset.get(1..)?))?;
            if offset.starts_with('-') { -us } else { us }
        }
    };
    is_split
        .then(|| Some(days(date.0, date.1, date.2) * DAY + clock_us(&rest[..zone])? - offset_us))
        .flatten()
}

/// Microseconds of a duration such as `0.009421` (seconds) or `00:00:00.009421`.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    match text.contains(':') {
        true => clock_us(text),
        false => text.parse::<f64>().ok().filter(|s| (0.0..1e9).contains(s)).map(|s| (s * 1e6) as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_logs_are_the_same_moment() {
        let moment = Some(1_795_700_281_351_495);
        assert_eq!(date_time("2026-11-26T13:38:01.351495Z"), moment);
        assert_eq!(date_time("2026-11-26T15:38:01.351495+02:00"), moment);
        assert_eq!(date_time("2026-11-26 13:38:01.351495"), moment);
        assert_eq!(date_time("261126 13:38:01"), Some(1_795_700_281_000_000));
        assert_eq!(date_time("261126  3:38:01"), Some(1_795_664_281_000_000));
        for text in ["", "2026-11-26T13:38", "now", "2026/11/26 13:38:01", "261126-13:38:01"] {
            assert_eq!(date_time(text), None, "{text}");
        }
    }

    #[test]
    fn durations_have_two_forms() {
        assert_eq!(seconds("0.009421"), Some(9_421));
        assert_eq!(seconds("00:01:00.5"), Some(60_500_000));
        assert_eq!(seconds("-1"), None);
    }
}
