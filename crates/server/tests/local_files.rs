//! LOAD DATA LOCAL on the wire: files of all sizes, statements that fail meanwhile, clients that pause, break the rules or go.

mod support;

use std::io::Write;

use avocet_channel::Interruption;
use avocet_session::api::Connections;
use mysql::LocalInfileHandler;
use mysql::prelude::Queryable;
use support::TestServer;
use support::raw::{Raw, error_of};

const LOCAL_FILES: u32 = 0x80;
const MULTI_STATEMENTS: u32 = 0x0001_0000;

/// Signs in, and is asked for a file.
fn asked(server: &TestServer, sql: &str) -> Raw {
    let mut raw = Raw::sign_in_with(server.address, LOCAL_FILES | MULTI_STATEMENTS);
    let request = raw.command(&[b"\x03", sql.as_bytes()].concat());
    assert_eq!(request, [b"\xFB", sql.split([' ', ';']).nth(1).unwrap_or_default().as_bytes()].concat());
    raw
}

/// How many bytes an OK packet says that the file had.
fn counted(packet: &[u8]) -> u64 {
    match packet {
        [0, 0xFC, a, b, ..] => u64::from(u16::from_le_bytes([*a, *b])),
        [0, 0xFD, a, b, c, ..] => u64::from(u32::from_le_bytes([*a, *b, *c, 0])),
        [0, 0xFE, rest @ ..] => u64::from_le_bytes(rest[..8].try_into().expect("eight bytes")),
        [0, short, ..] => u64::from(*short),
        other => panic!("not OK: {other:?}"),
    }
}

#[test]
fn files_arrive_whatever_the_size_of_their_packets() {
    let server = TestServer::start();
    let full = (1 << 24) - 1;
    for sizes in [vec![], vec![1], vec![1000; 300], vec![70_000, 1, 65_536], vec![full, 0], vec![full, 5]] {
        let mut raw = asked(&server, "LOAD file");
        let mut sequence = 2_u8;
        for size in sizes.iter().copied().chain([0]) {
            raw.send(sequence, &vec![b'x'; size]);
            sequence = sequence.wrapping_add(1);
        }
        let (reply, packet) = raw.read().expect("a reply");
        assert_eq!((reply, counted(&packet)), (sequence, sizes.iter().sum::<usize>() as u64));
        assert_eq!(raw.command(b"\x0E")[0], 0, "the connection goes on");
    }
}

#[test]
fn a_statement_that_failed_is_told_of_behind_the_file() {
    let server = TestServer::start();
    let mut raw = asked(&server, "LOAD fails");
    (2..200).for_each(|sequence| raw.send(sequence, &[b'x'; 50_000]));
    raw.send(200, b"");
    let (sequence, packet) = raw.read().expect("a reply");
    assert_eq!((sequence, error_of(&packet).map(|(number, _)| number)), (201, Some(1105)));
    assert_eq!(raw.command(b"\x0E")[0], 0);
}

#[test]
fn what_follows_a_file_is_the_next_result_or_command() {
    let server = TestServer::start();
    let mut raw = asked(&server, "LOAD a; SELECT 1");
    // The file and the next command in one piece.
    let bytes = [&b"\x03\0\0\x02abc\0\0\0\x03"[..], b"\x01\0\0\0\x0E"].concat();
    raw.stream.write_all(&bytes).expect("a server that reads");
    let (_, packet) = raw.read().expect("a reply");
    assert_eq!(counted(&packet), 3);
    let rest: Vec<_> = (0..5).map(|_| raw.read().expect("the rows").1).collect();
    assert_eq!(rest[3], b"\x011");
    let (sequence, pong) = raw.read().expect("the reply to the ping");
    assert_eq!((sequence, pong[0]), (1, 0));
}

#[test]
fn clients_that_give_no_files_are_not_asked() {
    let server = TestServer::start();
    let mut raw = Raw::sign_in(server.address);
    let reply = raw.command(b"\x03LOAD file");
    assert_eq!(error_of(&reply).map(|(number, _)| number), Some(3948));
    // One that has sent its next command would take that for the file.
    let mut raw = Raw::sign_in_with(server.address, LOCAL_FILES);
    let bytes = b"\x0A\0\0\0\x03LOAD file\x01\0\0\0\x0E";
    raw.stream.write_all(bytes).expect("a server that reads");
    assert_eq!(error_of(&raw.read().expect("a reply").1).map(|(number, _)| number), Some(1156));
    assert_eq!(raw.read().expect("the reply to the ping").1[0], 0);
}

#[test]
fn clients_that_pause_break_the_order_or_go_are_let_go() {
    let server = TestServer::start();
    let mut silent = asked(&server, "LOAD file");
    silent.send(2, b"abc");
    assert!(silent.is_closed(), "it paused for too long");
    let mut confused = asked(&server, "LOAD file");
    confused.send(7, b"abc");
    assert!(confused.is_closed());
    let mut gone = asked(&server, "LOAD file");
    gone.send(2, b"abc");
    drop(gone);
    server.until("the end of their sessions", || {
        server.log.open.load(std::sync::atomic::Ordering::SeqCst) == 0
    });
}

#[test]
fn a_kill_is_met_between_packets() {
    let server = TestServer::start();
    let mut raw = asked(&server, "LOAD file");
    raw.send(2, b"abc");
    let id = server.registry.list()[0].id;
    server.registry.kill(id, Interruption::Statement).expect("it is there");
    raw.send(3, b"def");
    raw.send(4, b"");
    assert_eq!(error_of(&raw.read().expect("a reply").1).map(|(number, _)| number), Some(1317));
    assert_eq!(raw.command(b"\x0E")[0], 0);
    let mut raw = asked(&server, "LOAD file");
    raw.send(2, b"abc");
    let id = server.registry.list().iter().map(|row| row.id).max().expect("one");
    server.registry.kill(id, Interruption::Connection).expect("it is there");
    // It may be told, or just hung up on.
    while raw.read().is_some() {}
}

#[test]
fn a_library_sends_a_file() {
    let server = TestServer::start();
    let handler = LocalInfileHandler::new(|name, file| {
        assert_eq!(name, b"file");
        (0..100).try_for_each(|_| file.write_all(&[b'x'; 10_000]))
    });
    let mut conn = mysql::Conn::new(server.opts().local_infile_handler(Some(handler))).expect("a connection");
    conn.query_drop("LOAD file").expect("ok");
    assert_eq!(conn.affected_rows(), 1_000_000);
    assert_eq!(conn.query_first::<i64, _>("SELECT 1").expect("a row"), Some(1));
}
