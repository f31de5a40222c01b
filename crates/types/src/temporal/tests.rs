use proptest::prelude::*;

use super::*;

fn datetime(text: &str) -> Option<String> {
    let parsed = parse_datetime(text.as_bytes(), TimeZone::UTC, ZeroDates::REFUSED)?;
    Some(shown(parsed.micros, parsed.fsp))
}

fn shown(micros: i64, fsp: u8) -> String {
    let mut to = Vec::new();
    write_datetime(micros, fsp, &mut to);
    String::from_utf8(to).expect("ASCII")
}

fn micros(text: &str) -> i64 {
    parse_datetime(text.as_bytes(), TimeZone::UTC, ZeroDates::REFUSED)
        .unwrap_or_else(|| panic!("{text}"))
        .micros
}

fn days(text: &str) -> i32 {
    date_of(micros(text))
}

fn time(text: &str) -> Option<String> {
    let parsed = parse_time(text.as_bytes(), TimeZone::UTC)?;
    let mut to = Vec::new();
    write_time(parsed.micros, parsed.fsp, &mut to);
    Some(String::from_utf8(to).expect("ASCII"))
}

/// Results of MySQL 9.7.
#[test]
fn dates_are_read_in_all_forms() {
    for (text, wanted) in [
        ("1-2-3", Some("0001-02-03 00:00:00")),
        ("99-1-1", Some("1999-01-01 00:00:00")),
        ("123-1-1", Some("0123-01-01 00:00:00")),
        ("20200101T101112", Some("2020-01-01 10:11:12")),
        ("20200101T10:11", None),
        ("20200101 10:11:12", None),
        ("2020.01.01 10/11/12", Some("2020-01-01 10:11:12")),
        ("2020-1-1 1:2:3", Some("2020-01-01 01:02:03")),
        ("2020-01-01abc", Some("2020-01-01 00:00:00")),
        ("2020-01-01T10", Some("2020-01-01 10:00:00")),
        ("2020-01-01 10 11", None),
        ("2020--01--01", Some("2020-01-01 00:00:00")),
        ("2020-01-001", Some("2020-01-01 00:00:00")),
        ("200101", Some("2020-01-01 00:00:00")),
        ("700101", Some("1970-01-01 00:00:00")),
        ("691231", Some("2069-12-31 00:00:00")),
        ("2001", None),
        ("20200230", None),
        ("0000-00-00", None),
        ("2020-00-10", None),
        ("0000-01-01", Some("0000-01-01 00:00:00")),
        ("0000-02-29", None),
        ("2020-01-01 10:11:12+05:30", Some("2020-01-01 04:41:12")),
        ("2020-01-01 10:11:12.5+05:30", Some("2020-01-01 04:41:12.5")),
        ("2020-01-01 10:11+05:30", Some("2020-01-01 10:11:05")),
        ("2020-01-01 10:11:12 +05:30", Some("2020-01-01 10:11:12")),
        ("2020-01-01 24:00:00", None),
        ("2020 01 01", None),
        ("12345-1-1", None),
        ("20200101101112.5", Some("2020-01-01 10:11:12.5")),
        ("200101101112", Some("2020-01-01 10:11:12")),
        ("99991231235959", Some("9999-12-31 23:59:59")),
        ("2020010110", None),
        ("  2020-01-01  ", Some("2020-01-01 00:00:00")),
        ("2020-01-01 10:11:12.9999995", Some("2020-01-01 10:11:13.000000")),
    ] {
        assert_eq!(datetime(text).as_deref(), wanted, "{text}");
    }
}

#[test]
fn times_are_read_in_all_forms() {
    for (text, wanted) in [
        ("10:11", Some("10:11:00")),
        ("1 10", Some("34:00:00")),
        ("1 10:11", Some("34:11:00")),
        ("1 2 3", Some("26:00:00")),
        ("101112", Some("10:11:12")),
        ("1112", Some("00:11:12")),
        ("12", Some("00:00:12")),
        ("-10:11:12.5", Some("-10:11:12.5")),
        ("10:11:12.9999999", Some("10:11:13.000000")),
        ("839:00:00", Some("838:59:59")),
        ("10:61:00", None),
        ("1 1:1:1.1", Some("25:01:01.1")),
        ("abc", None),
        ("", None),
        ("10:11:12abc", Some("10:11:12")),
        ("2020-01-01 10:11:12", Some("10:11:12")),
        ("20200101101112", Some("10:11:12")),
        ("35 00:00:00", Some("838:59:59")),
        ("106112", None),
        ("10.5", Some("00:00:10.5")),
        ("10:11.5", Some("10:11:00.5")),
        ("::12", None),
        (":10:11", Some("00:10:11")),
        (".5", Some("00:00:00.5")),
        ("1e3", None),
        ("10:11:12:13", Some("10:11:12")),
        ("10 : 11", Some("00:00:10")),
        ("654:05:17.00", Some("654:05:17.00")),
        ("12:10:11.000012", Some("12:10:11.000012")),
        ("2020-01-02T10:11:12", Some("00:20:20")),
    ] {
        assert_eq!(time(text).as_deref(), wanted, "{text}");
    }
}

#[test]
fn numbers_are_dates_and_times() {
    let date = |n| datetime_from_number(n, ZeroDates::REFUSED).map(|(m, _)| shown(m, 0));
    assert_eq!(date(127).as_deref(), Some("2000-01-27 00:00:00"));
    assert_eq!(date(20_200_101_101_112).as_deref(), Some("2020-01-01 10:11:12"));
    assert_eq!((date(0), date(300), date(99_999)), (None, None, None));
    assert_eq!(time_from_number(101_112).map(|p| p.micros), Some(36_672 * SECOND));
    assert_eq!(time_from_number(106_112), None);
    assert_eq!(datetime_to_number(micros("2020-01-02 03:04:05")), 20_200_102_030_405);
    assert_eq!(
        (year_from_number(69), year_from_number(70), year_from_number(1900)),
        (Some(2069), Some(1970), None)
    );
}

#[test]
fn intervals_are_added() {
    for (from, unit, value, wanted) in [
        ("2020-01-31", Unit::Month, "1", Some("2020-02-29 00:00:00")),
        ("2020-02-29", Unit::Year, "1", Some("2021-02-28 00:00:00")),
        ("2020-01-31", Unit::Quarter, "-1", Some("2019-10-31 00:00:00")),
        ("2020-01-01", Unit::Second, "-1", Some("2019-12-31 23:59:59")),
        ("2020-01-01", Unit::Week, "1", Some("2020-01-08 00:00:00")),
        ("9999-12-31", Unit::Day, "1", None),
        ("0000-01-01", Unit::Day, "-1", None),
        ("0000-03-01", Unit::Day, "-1", Some("0000-02-28 00:00:00")),
    ] {
        let interval = Interval::of(unit, value.parse().expect("a number"));
        assert_eq!(
            add_interval(micros(from), interval).map(|m| shown(m, 0)).as_deref(),
            wanted,
            "{from} {value}"
        );
    }
    for (unit, text, wanted) in [
        (Unit::DaySecond, "1 1:1:1", DAY + HOUR + MINUTE + SECOND),
        (Unit::MinuteSecond, "-1:10", -(MINUTE + 10 * SECOND)),
        (Unit::DayHour, "5", 5 * HOUR),
        (Unit::SecondMicrosecond, "1.5", SECOND + 500_000),
        (Unit::DayMicrosecond, "1.000005", SECOND + 5),
    ] {
        let interval = Interval::parse(unit, text.as_bytes()).expect("valid");
        assert_eq!(interval.days * DAY + interval.micros, wanted, "{text}");
    }
    assert_eq!(Interval::parse(Unit::YearMonth, b"1-2").map(|i| i.months), Some(14));
    assert_eq!(Interval::parse(Unit::DayHour, b"1 2 3"), None);
}

#[test]
fn parts_are_extracted() {
    let at = micros("2019-07-02 01:02:03.000123");
    for (unit, wanted) in [
        (Unit::Year, 2019),
        (Unit::Quarter, 3),
        (Unit::YearMonth, 201_907),
        (Unit::DayMinute, 20_102),
        (Unit::DayMicrosecond, 2_010_203_000_123),
        (Unit::Microsecond, 123),
        (Unit::Week, 26),
    ] {
        assert_eq!(unit.extract(at), wanted, "{}", unit.name());
    }
    assert_eq!(Unit::parse("sql_tsi_day"), Some(Unit::Day));
}

/// Weeks of the manual's examples and the edges of years.
#[test]
fn weeks_are_counted_in_all_modes() {
    for (date, modes) in [
        ("2008-02-20", [7, 8, 7, 8, 8, 7, 8, 7]),
        ("2008-12-31", [52, 53, 52, 1, 53, 52, 53, 52]),
        ("2000-01-01", [0, 0, 52, 52, 0, 0, 52, 52]),
        ("1987-01-01", [0, 1, 52, 1, 0, 0, 53, 52]),
        ("2016-01-03", [1, 0, 1, 53, 1, 0, 1, 52]),
        ("2012-12-31", [53, 53, 53, 1, 53, 53, 1, 53]),
    ] {
        let got: Vec<_> = (0..8).map(|mode| week(days(date), WeekMode::new(mode))).collect();
        assert_eq!(got, modes, "{date}");
    }
    assert_eq!(year_week(days("1987-01-01"), WeekMode::new(0)), 198_652);
    assert_eq!(week_of_year(days("2008-02-20")), 8);
}

#[test]
fn calendar_functions() {
    assert_eq!((day_of_week(days("2007-02-03")), weekday(days("2007-02-03"))), (7, 5));
    assert_eq!(day_of_year(days("2007-02-03")), 34);
    assert_eq!((to_days(days("2007-10-07")), from_days(733_321)), (733_321, Some(days("2007-10-07"))));
    assert_eq!((to_days(days("0000-01-01")), to_days(days("0000-03-01"))), (1, 60));
    assert_eq!(to_seconds(micros("2009-11-29 13:43:32")), 63_426_721_412);
    assert_eq!(last_day(days("2003-02-05")), days("2003-02-28"));
    assert_eq!(date_from_day_of_year(2011, 365), Some(days("2011-12-31")));
    assert_eq!(date_from_day_of_year(2011, 0), None);
    assert_eq!((period_add(200_801, 2), period_diff(200_802, 200_703)), (200_803, 11));
    for (unit, a, b, wanted) in [
        (Unit::Month, "2003-02-01", "2003-05-01", 3),
        (Unit::Year, "2002-05-01", "2001-01-01", -1),
        (Unit::Minute, "2003-02-01", "2003-05-01 12:05:55", 128_885),
        (Unit::Month, "2020-01-31", "2020-02-29", 0),
        (Unit::Month, "2020-01-15 10:00:00", "2020-02-15 09:59:59", 0),
    ] {
        assert_eq!(timestamp_diff(unit, micros(a), micros(b)), wanted, "{a} {b}");
    }
}

#[test]
fn patterns_format_and_parse() {
    let format = |at: &str, pattern: &str| {
        let mut to = Vec::new();
        date_format(micros(at), pattern, Locale::english(), usize::MAX, &mut to);
        String::from_utf8(to).expect("UTF-8")
    };
    for (at, pattern, wanted) in [
        ("2009-10-04 22:23:00", "%W %M %Y", "Sunday October 2009"),
        ("2007-10-04 22:23:00", "%H:%i:%s", "22:23:00"),
        ("1900-10-04 22:23:00", "%D %y %a %d %m %b %j", "4th 00 Thu 04 10 Oct 277"),
        ("1997-10-04 22:23:00", "%H %k %I %r %T %S %w", "22 22 10 10:23:00 PM 22:23:00 00 6"),
        ("1999-01-01", "%X %V", "1998 52"),
        ("2006-06-01", "%d%%%q€%", "01%q€%"),
    ] {
        assert_eq!(format(at, pattern), wanted, "{pattern}");
    }
    for (text, pattern, wanted) in [
        ("01,5,2013", "%d,%m,%Y", Some(StrToDate::Date(days("2013-05-01")))),
        ("May 1, 2013", "%M %d,%Y", Some(StrToDate::Date(days("2013-05-01")))),
        ("a09:30:17", "a%h:%i:%s", Some(StrToDate::Time(34_217 * SECOND))),
        ("a09:30:17", "%h:%i:%s", None),
        ("2013-02-30", "%Y-%m-%d", None),
        ("200442 Monday", "%X%V %W", Some(StrToDate::Date(days("2004-10-18")))),
        (
            "2020-01-02 10:11 PM",
            "%Y-%m-%d %h:%i %p",
            Some(StrToDate::DateTime(micros("2020-01-02 22:11:00"))),
        ),
        ("12 AM", "%h %p", Some(StrToDate::Time(0))),
        ("Sept 3 2024", "%M %d %Y", Some(StrToDate::Date(days("2024-09-03")))),
        ("Ju 3 2024", "%M %d %Y", None),
        ("February 3 2024", "%b %d %Y", None),
        ("10:11", "%T", Some(StrToDate::Time(10 * HOUR + 11 * MINUTE))),
        ("10:11x", "%T", None),
        ("0 10:11", "%d %H:%i", Some(StrToDate::Time(10 * HOUR + 11 * MINUTE))),
        ("5 10:11", "%d %H:%i", None),
    ] {
        assert_eq!(
            str_to_date(text, pattern, ZeroDates::REFUSED).ok().map(|(value, _)| value),
            wanted,
            "{text}"
        );
    }
}

#[test]
fn zones_are_offsets() {
    let zone = TimeZone::parse("-03:30").expect("valid");
    assert_eq!((zone.to_utc(0), zone.to_string().as_str()), (210 * MINUTE, "-03:30"));
    assert_eq!(TimeZone::parse("SYSTEM"), Ok(TimeZone::UTC));
    for name in ["+14:01", "-14:00", "+1", "+01:60"] {
        assert!(TimeZone::parse(name).is_err(), "{name}");
    }
}

#[test]
fn every_day_of_the_calendar_round_trips() {
    let mut expected = Civil::new(0, 1, 1);
    for days in MIN_DATE..=MAX_DATE {
        assert_eq!(Civil::from_days(days), expected);
        assert_eq!(expected.to_days(), days);
        expected.day += 1;
        if expected.day > days_in_month(expected.year, expected.month) {
            expected = Civil::new(expected.year, expected.month + 1, 1);
        }
        if expected.month > 12 {
            expected = Civil::new(expected.year + 1, 1, 1);
        }
    }
    assert_eq!(expected, Civil::new(10_000, 1, 1));
}

#[test]
fn times_that_are_none_are_shown_in_full() {
    for (hours, text) in
        [(1000, "1000:00:00"), (-87_840, "-87840:00:00"), (2_562_047_788, "2562047788:00:00")]
    {
        let mut to = Vec::new();
        write_time(hours * HOUR, 0, &mut to);
        assert_eq!(String::from_utf8(to).as_deref(), Ok(text));
    }
}

proptest! {
    #[test]
    fn texts_round_trip(at in MIN_DATETIME..=MAX_DATETIME, time in -MAX_TIME..=MAX_TIME, fsp in 0u8..=6) {
        let (at, time) = (truncate_to_fsp(at, fsp), round_to_fsp(time, fsp));
        let parsed = parse_datetime(shown(at, fsp).as_bytes(), TimeZone::UTC, ZeroDates::REFUSED).expect("valid");
        prop_assert_eq!((parsed.micros, parsed.fsp, parsed.truncated), (at, fsp, false));
        let mut text = Vec::new();
        write_time(time, fsp, &mut text);
        let parsed = parse_time(&text, TimeZone::UTC).expect("valid");
        prop_assert_eq!((parsed.micros, parsed.fsp), (time, fsp));
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "[0-9:. T+-]{0,24}", pattern in "[%a-zA-Z :]{0,10}") {
        let _ = parse_datetime(text.as_bytes(), TimeZone::UTC, ZeroDates::ALLOWED);
        let _ = parse_time(text.as_bytes(), TimeZone::UTC);
        let _ = str_to_date(&text, &pattern, ZeroDates::ALLOWED);
        let _ = Interval::parse(Unit::DayMicrosecond, text.as_bytes());
    }
}

/// Results of MySQL 9.7.
#[test]
fn zero_dates_are_read_where_they_are_let_in() {
    let timed = ZeroDates { alone: false, with_time: true };
    for (text, all, with_time) in [
        ("0000-00-00", Some("0000-00-00 00:00:00"), None),
        ("00-00-00", Some("0000-00-00 00:00:00"), None),
        ("000000", Some("0000-00-00 00:00:00"), None),
        ("00000000000000", Some("0000-00-00 00:00:00"), None),
        ("0000-00-00 00:00:00.000", Some("0000-00-00 00:00:00.000"), None),
        ("0000-00-00 10:00:00", Some("0000-00-00 10:00:00"), Some("0000-00-00 10:00:00")),
        ("0000-00-00 24:00:00", None, None),
        ("0000-00-00 00:00:00+01:00", None, None),
        ("0000-00-01", None, None),
        ("0000-01-00", None, None),
        ("2024-00-00", None, None),
        ("0", None, None),
        ("", None, None),
    ] {
        let read = |zeros| {
            let parsed = parse_datetime(text.as_bytes(), TimeZone::UTC, zeros);
            parsed.map(|parsed| shown(parsed.micros, parsed.fsp))
        };
        assert_eq!(read(ZeroDates::ALLOWED).as_deref(), all, "{text}");
        assert_eq!(read(timed).as_deref(), with_time, "{text}");
        assert_eq!(read(ZeroDates::REFUSED), None, "{text}");
    }
    let number = |zeros| datetime_from_number(0, zeros).map(|(micros, _)| micros);
    assert_eq!((number(ZeroDates::ALLOWED), number(timed)), (Some(ZERO_DATETIME), None));
}

#[test]
fn why_a_text_is_no_date() {
    use NotADate::{Malformed, OutOfRange};
    for (text, reason) in [
        ("0000-00-00", OutOfRange),
        ("0", OutOfRange),
        ("2020-02-31", OutOfRange),
        ("2020-00-00", OutOfRange),
        ("", Malformed),
        ("abc", Malformed),
        ("0000-00-00 x", OutOfRange),
        ("0x", Malformed),
        ("2020-13-01", Malformed),
        ("2020-01-32", Malformed),
        ("2020-01-01 25:00:00", Malformed),
        ("2020-01", Malformed),
    ] {
        let read = read_datetime(text.as_bytes(), TimeZone::UTC, ZeroDates::REFUSED);
        assert_eq!(read.err(), Some(reason), "{text}");
    }
}

#[test]
fn the_zero_date_is_below_all_others_and_has_no_parts() {
    assert_eq!(i64::from(ZERO_DATE) * DAY, ZERO_DATETIME);
    assert_eq!((date_of(ZERO_DATETIME), date_of(ZERO_DATETIME + DAY - 1)), (ZERO_DATE, ZERO_DATE));
    assert_eq!((ZERO_DATE + 1, to_days(ZERO_DATE), from_days(0)), (MIN_DATE, 0, None));
    assert_eq!(Civil::from_days(ZERO_DATE), Civil::ZERO);
    assert_eq!((Civil::ZERO.to_days(), Civil::ZERO.to_micros()), (ZERO_DATE, ZERO_DATETIME));
    assert_eq!((datetime_to_number(ZERO_DATETIME), datetime_to_number(ZERO_DATETIME + HOUR)), (0, 10_000));
    for zone in ["+00:00", "+14:00", "-13:59", "Europe/Berlin"] {
        let zone = TimeZone::parse(zone).expect("there is one");
        assert_eq!(zone.to_local(ZERO_DATETIME), ZERO_DATETIME);
        assert_eq!(zone.moment_of(ZERO_DATETIME), Ok(ZERO_DATETIME));
    }
    let formatted = |pattern: &str| {
        let mut to = Vec::new();
        date_format(ZERO_DATETIME, pattern, Locale::english(), usize::MAX, &mut to)
            .then(|| String::from_utf8(to).expect("ASCII"))
    };
    assert_eq!(formatted("%Y %c %D %j %v %x").as_deref(), Some("0000 0 0th 000 01 0001"));
    assert_eq!(formatted("%U").as_deref(), Some("613566757"));
    for pattern in ["%M", "%b", "%W", "%a", "%w"] {
        assert_eq!(formatted(pattern), None, "{pattern}");
    }
}
