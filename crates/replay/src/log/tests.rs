use std::io::{BufReader, Cursor};

use super::*;

/// What MySQL 9.7 and MariaDB 10.11 wrote when the same script ran on each.
const MYSQL_GENERAL: &str = include_str!("../../testdata/mysql-9.7-general.log");
const MYSQL_SLOW: &str = include_str!("../../testdata/mysql-9.7-slow.log");
const MYSQL_GENERAL_CSV: &str = include_str!("../../testdata/mysql-9.7-general_log.csv");
const MYSQL_SLOW_CSV: &str = include_str!("../../testdata/mysql-9.7-slow_log.csv");
const MARIADB_GENERAL: &str = include_str!("../../testdata/mariadb-10.11-general.log");
const MARIADB_SLOW: &str = include_str!("../../testdata/mariadb-10.11-slow.log");
const MARIADB_SLOW_CSV: &str = include_str!("../../testdata/mariadb-10.11-slow_log.csv");

fn read(text: &str) -> (Format, Vec<Event>, Malformed) {
    let format = Format::detect(&text.as_bytes()[..text.len().min(HEAD)]).expect("a log");
    let mut reader = reader(format, Box::new(BufReader::new(Cursor::new(text.as_bytes().to_vec()))));
    let mut events = Vec::new();
    while let Some(event) = reader.next().expect("it can be read") {
        events.push(event);
    }
    (format, events, reader.malformed().clone())
}

fn statements(events: &[Event], session: u64) -> Vec<&str> {
    let of_session = events.iter().filter(|event| event.session == session);
    of_session
        .filter_map(|event| match &event.action {
            Action::Statement(text) => Some(std::str::from_utf8(text).expect("UTF-8")),
            _ => None,
        })
        .collect()
}

const MULTI_LINE: &str = "SELECT id,\n  name -- of the item; it is shown\nFROM item\n\nWHERE name = 'pad; x'\n   OR name = 'a\n# Time: no header\nb'";
/// MariaDB's client leaves comments out.
const WITHOUT_COMMENT: &str =
    "SELECT id,\n  name \nFROM item\n\nWHERE name = 'pad; x'\n   OR name = 'a\n# Time: no header\nb'";
const PREPARED: [&str; 2] = [
    "SELECT name, price FROM item WHERE id >= 1 AND name <> 'it\\'s'",
    "SELECT name, price FROM item WHERE id >= 3 AND name <> 'it\\'s'",
];

#[test]
fn general_logs_have_sessions_and_texts() {
    for (text, format, session, multi_line) in [
        (MYSQL_GENERAL, Format::General, 10, MULTI_LINE),
        (MYSQL_GENERAL_CSV, Format::GeneralCsv, 10, MULTI_LINE),
        (MARIADB_GENERAL, Format::General, 6, WITHOUT_COMMENT),
    ] {
        let (found, events, malformed) = read(text);
        assert_eq!((found, malformed.count), (format, 0), "{malformed:?}");
        let connect = events.iter().find(|event| event.session == session).expect("it is there");
        assert_eq!(connect.action, Action::Connect(Some("shop".into())));
        let all = statements(&events, session);
        assert!(all.contains(&multi_line), "{all:?}");
        assert!(all.contains(&"SELECT COUNT(*) FROM item WHERE id > 2"), "{all:?}");
        assert!(all.contains(&"SELECT SLEEP(0), 'tab\tand \\\\ \"quote\"'"), "{all:?}");
        let prepared = statements(&events, session + 1);
        assert!(PREPARED.iter().all(|wanted| prepared.contains(wanted)), "{prepared:?}");
        assert!(events.iter().any(|event| event.session == session && event.action == Action::Quit));
    }
    let (_, events, _) = read(MARIADB_GENERAL);
    assert!(events.iter().any(|event| event.action == Action::Database("mysql".into())));
    assert_eq!(events[1].at_us, Some(1_795_700_281_000_000), "of the line before");
}

#[test]
fn slow_logs_have_databases_and_clocks() {
    for (text, format, session, multi_line) in [
        (MYSQL_SLOW, Format::Slow, 10, MULTI_LINE),
        (MYSQL_SLOW_CSV, Format::SlowCsv, 10, MULTI_LINE),
        (MARIADB_SLOW, Format::Slow, 6, WITHOUT_COMMENT),
        (MARIADB_SLOW_CSV, Format::SlowCsv, 6, WITHOUT_COMMENT),
    ] {
        let (found, events, malformed) = read(text);
        assert_eq!((found, malformed.count), (format, 0), "{malformed:?}");
        let all = statements(&events, session);
        assert!(all.contains(&multi_line), "{all:?}");
        assert!(all.contains(&"SELECT NOW(), id FROM item WHERE id = 1"), "{all:?}");
        let prepared = statements(&events, session + 1);
        assert!(PREPARED.iter().all(|wanted| prepared.contains(wanted)), "{prepared:?}");
        let of_session = |event: &&Event| event.session == session;
        let read = events.iter().filter(of_session).find(|event| match &event.action {
            Action::Statement(text) => text.starts_with(b"SELECT \"name\""),
            _ => false,
        });
        assert_eq!(read.and_then(|event| event.database.as_deref()), Some("shop"));
        assert_eq!(read.and_then(|event| event.clock), Some(1_795_700_281));
    }
}

#[test]
fn what_belongs_to_nothing_is_counted() {
    let cut = format!("half of a line\n{MYSQL_GENERAL}");
    let (format, events, malformed) = read(&cut);
    assert_eq!((format, events.len()), (Format::General, read(MYSQL_GENERAL).1.len()));
    assert_eq!(malformed.count, 1);
    assert_eq!(malformed.first[0].2, "half of a line");

    let at = MYSQL_SLOW.rfind("select @@version_comment limit 1;").expect("it is there");
    let (_, events, malformed) = read(&MYSQL_SLOW[..at + 12]);
    assert_eq!((events.len() + 1, malformed.count), (read(MYSQL_SLOW).1.len(), 1), "cut within a statement");

    let rows = "\"2026-11-26 13:38:01.351495\",\"a\",9,1,\"Query\",\"SELECT 1\"\nno row\n\"2026-11-26 13:38:01\",\"a\",9,1,\"Query\",\"SELECT";
    let (format, events, malformed) = read(rows);
    assert_eq!((format, events.len(), malformed.count), (Format::GeneralCsv, 1, 2));
}

#[test]
fn plain_statements_end_where_the_client_says() {
    let text = "SELECT ';', \"a;b\" -- ; no\n;\n\nSELECT /* ; */ `c;d`\\G\nDELIMITER //\nSELECT 1; //\ndelimiter ;\nSELECT 'it\\'s;'\n";
    let (format, events, malformed) = read(text);
    assert_eq!((format, malformed.count), (Format::Plain, 0));
    let all = statements(&events, 0);
    assert_eq!(all, ["SELECT ';', \"a;b\" -- ; no", "SELECT /* ; */ `c;d`", "SELECT 1;", "SELECT 'it\\'s;'"]);
    assert_eq!(events.iter().map(|event| event.line).collect::<Vec<_>>(), [1, 4, 6, 8]);
    let (_, events, malformed) = read("SELECT 1; SELECT 'open");
    assert_eq!((events.len(), malformed.count), (1, 1));
}

#[test]
fn what_is_no_log_is_refused() {
    let refused = |head: &[u8]| Format::detect(head).expect_err("it is none");
    assert!(refused(b"\xfebin\x01").contains("binary log"));
    assert!(refused(b"\x1f\x8b\x08").contains("compressed"));
    assert!(refused(b"SELECT\0").contains("binary file"));
    assert!(refused(b" \n\n").contains("empty"));
    let banner: String = MYSQL_GENERAL.lines().take(3).map(|line| format!("{line}\n")).collect();
    assert!(refused(banner.as_bytes()).contains("nothing"));
    let missing = Log::open(Path::new("/no/such/log")).err().expect("there is none");
    assert!(missing.to_string().contains("/no/such/log"), "{missing}");
}
