//! The protocol as a real client library speaks it.

mod support;

use mysql::prelude::Queryable;
use mysql::{Conn, Error, Value};
use std::sync::atomic::Ordering;
use support::TestServer;

fn number(error: &Error) -> u16 {
    match error {
        Error::MySqlError(e) => e.code,
        other => panic!("not an error of the server: {other}"),
    }
}

#[test]
fn text_results_and_statuses_arrive() {
    let server = TestServer::start();
    let mut conn = server.connect();
    assert_eq!(conn.query_first::<i64, _>("SELECT 1").expect("a row"), Some(1));
    conn.query_drop("INSERT").expect("ok");
    assert_eq!((conn.affected_rows(), conn.last_insert_id()), (2, 41));
    assert_eq!(conn.info_str(), "Records: 2  Duplicates: 0  Warnings: 0");
    let error = conn.query_drop("NONSENSE").expect_err("an error");
    assert_eq!(number(&error), 1064);
    assert!(conn.ping().is_ok());
}

#[test]
fn a_panic_ends_its_statement_alone() {
    let server = TestServer::start();
    let mut conn = server.connect();
    for when in ["NOW", "LATER", "ROWS"] {
        conn.query_drop("BEGIN").expect("ok");
        let text = conn.query::<i64, _>(format!("SELECT PANIC {when}")).expect_err("an error");
        assert_eq!(number(&text), 1815, "{when}");
        let binary = conn.exec::<i64, _, _>(format!("SELECT PANIC {when}"), ()).expect_err("an error");
        assert_eq!(number(&binary), 1815, "{when}");
        assert_eq!(conn.query_first::<i64, _>("SELECT 1").expect("a row"), Some(1), "{when}");
    }
}

#[test]
fn every_type_reads_the_same_in_both_protocols() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let text: mysql::Row = conn.query_first("SELECT TYPES").expect("a row").expect("one");
    let binary: mysql::Row = conn.exec_first("SELECT TYPES", ()).expect("a row").expect("one");
    assert_eq!(text.len(), 17);
    let shown: Vec<String> = text.unwrap().iter().map(|v| v.as_sql(true)).collect();
    assert_eq!(
        shown,
        [
            "'-8'",
            "'200'",
            "'-300'",
            "'70000'",
            "'-70000'",
            "'-9223372036854775808'",
            "'18446744073709551615'",
            "'1.5'",
            "'0.1'",
            "'-12.05'",
            "'gr\u{fc}n'",
            "0x00FF27",
            "'2024-02-29'",
            "'2023-11-14 22:13:20.123456'",
            "'-25:01:01'",
            "'2024'",
            "NULL"
        ]
    );
    let values = binary.unwrap();
    assert_eq!(values[0], Value::Int(-8));
    assert_eq!(values[6], Value::UInt(u64::MAX));
    assert_eq!(values[7], Value::Float(1.5));
    assert_eq!(values[9], Value::Bytes(b"-12.05".to_vec()));
    assert_eq!(values[12], Value::Date(2024, 2, 29, 0, 0, 0, 0));
    assert_eq!(values[13], Value::Date(2023, 11, 14, 22, 13, 20, 123_456));
    assert_eq!(values[14], Value::Time(true, 1, 1, 1, 1, 0));
    assert_eq!(values[16], Value::NULL);
}

#[test]
fn parameters_arrive_as_they_were_bound() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let statement = conn.prep("ECHO ?").expect("prepared");
    let mut echo =
        |value: Value| -> String { conn.exec_first(&statement, (value,)).expect("a row").expect("one") };
    assert_eq!(echo(Value::Int(-5)), "Int(-5)");
    assert_eq!(echo(Value::UInt(u64::MAX)), "UInt(18446744073709551615)");
    assert_eq!(echo(Value::Double(0.5)), "Double(0.5)");
    assert_eq!(echo(Value::Bytes(b"abc".to_vec())), "Str(\"abc\")");
    assert_eq!(echo(Value::Bytes(vec![0xFF])), "Bytes([255])");
    assert_eq!(echo(Value::NULL), "Null");
    assert_eq!(echo(Value::Date(2024, 2, 29, 0, 0, 0, 0)), "DateTime(1709164800000000)");
    assert_eq!(echo(Value::Date(1970, 1, 1, 0, 0, 1, 5)), "DateTime(1000005)");
    assert_eq!(echo(Value::Time(true, 1, 0, 0, 0, 0)), "Time(-86400000000)");
}

#[test]
fn several_statements_give_several_results() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let mut results = conn.query_iter("SELECT 1; INSERT; SELECT ID").expect("results");
    let mut rows = Vec::new();
    while let Some(set) = results.iter() {
        rows.push(set.count());
    }
    assert_eq!(rows, [1, 0, 1]);
}

#[test]
fn an_error_after_a_first_result_ends_the_text() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let mut results = conn.query_iter("SELECT 1; NONSENSE; SELECT 1").expect("the first result");
    assert_eq!(results.iter().expect("a set").count(), 1);
    let mut failed = false;
    while let Some(set) = results.iter() {
        for row in set {
            failed |= row.is_err();
        }
    }
    drop(results);
    let _ = failed;
    assert_eq!(conn.query_first::<i64, _>("SELECT 1").expect("in step again"), Some(1));
}

#[test]
fn large_results_stream_in_order() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let mut expected = 0i64;
    for row in conn.query_iter("SELECT NUMBERS 100000").expect("rows") {
        let (n, text): (i64, String) = mysql::from_row(row.expect("a row"));
        assert_eq!(n, expected);
        assert!(text.starts_with(&format!("row {n} ")));
        expected += 1;
    }
    assert_eq!(expected, 100_000);
}

#[test]
fn payloads_over_16_mb_pass_both_ways() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let length = (1 << 24) + 12_345;
    let text: String = conn.query_first(format!("SELECT LONG {length}")).expect("a row").expect("one");
    assert_eq!(text.len(), length);
    for length in [0xFF_FFFF - 15, 0xFF_FFFF - 14, 0xFF_FFFF - 13, length] {
        let literal = "q".repeat(length);
        let seen: i64 = conn.query_first(format!("SELECT LENGTH {literal}")).expect("a row").expect("one");
        assert_eq!(seen, length as i64);
    }
    let seen: String = conn.exec_first("ECHO ?", ("p".repeat(length),)).expect("a row").expect("one");
    assert_eq!(seen, format!("Str of {length}"));
}

#[test]
fn packets_over_the_limit_are_refused() {
    let server = TestServer::start();
    let mut earlier = server.connect();
    server.max_allowed_packet.store(1 << 20, Ordering::SeqCst);
    let mut conn = server.connect();
    let error = conn.query_first::<String, _>("SELECT LONG 2000000").expect_err("too long a row");
    assert_eq!(number(&error), 1153);
    assert_eq!(conn.query_first::<i64, _>("SELECT 1").expect("in step"), Some(1));
    let mut raw = support::raw::Raw::sign_in(server.address);
    raw.send(0, &vec![3; 1 << 20]);
    assert!(!matches!(support::raw::error_of(&raw.read().expect("a reply").1), Some((1153, _))));
    raw.send(0, &vec![3; (1 << 20) + 1]);
    let reply = raw.read().expect("an error").1;
    assert!(matches!(support::raw::error_of(&reply), Some((1153, _))));
    raw.stream.shutdown(std::net::Shutdown::Write).expect("a connection");
    assert!(raw.is_closed());
    let (sent, too_long) = ("q".repeat(1_500_000), 2_000_000);
    let length = |conn: &mut Conn| conn.query_first::<i64, _>(format!("SELECT LENGTH {sent}"));
    // What the limit was when it signed in holds for a connection, until it becomes another user.
    assert_eq!(length(&mut earlier).expect("a row"), Some(1_500_000));
    let text = earlier.query_first::<String, _>(format!("SELECT LONG {too_long}")).expect("a row");
    assert_eq!(text.map(|text| text.len()), Some(too_long));
    earlier.change_user(Default::default()).expect("the same user");
    let error =
        earlier.query_first::<String, _>(format!("SELECT LONG {too_long}")).expect_err("too long a row");
    assert_eq!(number(&error), 1153);
    server.max_allowed_packet.store(64 << 20, Ordering::SeqCst);
    assert_eq!(length(&mut server.connect()).expect("a row"), Some(1_500_000));
}

#[test]
fn a_value_of_the_wrong_type_is_an_error_and_not_garbage() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let error = conn.exec_first::<Value, _, _>("SELECT MISMATCH", ()).expect_err("a mismatch");
    assert_eq!(number(&error), 1105);
    assert_eq!(conn.query_first::<i64, _>("SELECT 1").expect("in step"), Some(1));
}

#[test]
fn out_parameters_go_to_clients_that_know_them() {
    const PS_MULTI_RESULTS: u32 = 1 << 18;
    const MORE_AND_OUT: u16 = 0x0008 | 0x1000;
    let server = TestServer::start();
    for knows in [false, true] {
        let capabilities = if knows { PS_MULTI_RESULTS } else { 0 };
        let mut raw = support::raw::Raw::sign_in_with(server.address, capabilities);
        let prepared = raw.command(b"\x16CALL OUT");
        assert_eq!(prepared[0], 0, "{prepared:?}");
        // What it announces is of no interest here: one column and the end of its columns.
        let columns = u16::from_le_bytes([prepared[5], prepared[6]]);
        (0..columns + u16::from(columns > 0)).for_each(|_| drop(raw.read()));
        let mut execute = vec![0x17];
        execute.extend_from_slice(&prepared[1..5]);
        execute.extend_from_slice(&[0, 1, 0, 0, 0]);
        let mut reply = raw.command(&execute);
        if knows {
            let flags = |eof: &[u8]| u16::from_le_bytes([eof[3], eof[4]]) & MORE_AND_OUT;
            assert_eq!(reply, [1], "a result set of one column");
            raw.read().expect("its definition");
            let end_of_columns = raw.read().expect("their end").1;
            assert_eq!(flags(&end_of_columns), MORE_AND_OUT);
            let row = raw.read().expect("a row").1;
            assert_eq!(row, [0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
            let end = raw.read().expect("the end").1;
            assert_eq!(flags(&end), MORE_AND_OUT);
            reply = raw.read().expect("the call's own result").1;
        }
        assert_eq!(reply[0], 0, "not OK: {reply:?}");
    }
}

#[test]
fn the_default_database_is_checked() {
    let server = TestServer::start();
    let mut conn = server.connect();
    assert!(conn.select_db("shop").is_ok());
    assert_eq!(number(&conn.select_db("nowhere").expect_err("unknown")), 1049);
    let error = Conn::new(server.opts().db_name(Some("nowhere"))).expect_err("unknown");
    assert_eq!(number(&error), 1049);
    assert!(Conn::new(server.opts().db_name(Some("shop"))).is_ok());
}

#[test]
fn reset_and_change_user_start_afresh() {
    let server = TestServer::start();
    let mut conn = server.connect();
    conn.query_drop("BEGIN").expect("ok");
    let statement = conn.prep("ECHO ?").expect("prepared");
    conn.reset().expect("reset");
    let error = conn.exec_drop(&statement, (1,)).expect_err("statements are gone");
    assert_eq!(number(&error), 1243);
    let options =
        mysql::ChangeUserOpts::new().with_user(Some("native".into())).with_pass(Some("secret".into()));
    conn.change_user(options).expect("the other user");
    assert_eq!(conn.query_first::<String, _>("SELECT USER").expect("a row").as_deref(), Some("native@%"));
    let options =
        mysql::ChangeUserOpts::new().with_user(Some("native".into())).with_pass(Some("wrong".into()));
    assert!(conn.change_user(options).is_err());
    server.until("the session's end", || server.log.open.load(std::sync::atomic::Ordering::SeqCst) == 0);
}
