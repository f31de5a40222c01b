//! Bad bytes, clients that vanish, KILL and shutdown.

mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use avocet_channel::Interruption;
use avocet_session::api::Connections;
use mysql::prelude::Queryable;
use proptest::prelude::*;
use support::TestServer;
use support::raw::{Raw, error_of};

fn error_number(payload: &[u8]) -> Option<u16> {
    error_of(payload).map(|(number, _)| number)
}

#[test]
fn malformed_commands_are_answered_and_the_connection_goes_on() {
    let server = TestServer::start();
    let mut raw = Raw::sign_in(server.address);
    assert_eq!(error_number(&raw.command(&[])), Some(1835));
    assert_eq!(error_number(&raw.command(&[0x17, 1])), Some(1835), "a short COM_STMT_EXECUTE");
    assert_eq!(error_number(&raw.command(&[0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0])), Some(1243));
    assert_eq!(error_number(&raw.command(&[0x1C, 9, 0, 0, 0, 1, 0, 0, 0])), Some(1243));
    assert_eq!(error_number(&raw.command(&[0x0C, 9, 0, 0, 0])), Some(1094), "COM_PROCESS_KILL");
    assert_eq!(error_number(&raw.command(&[0x77])), Some(1047));
    assert_eq!(error_number(&raw.command(b"\x03SELECT \xFF")), Some(1300));
    assert_eq!(raw.command(&[0x0E])[0], 0, "COM_PING");
    assert_eq!(raw.command(&[0x0D])[0], 0xFE, "COM_DEBUG");
    assert!(raw.command(&[0x09]).starts_with(b"Uptime: "));
}

#[test]
fn a_wrong_sequence_id_ends_the_connection() {
    let server = TestServer::start();
    let mut raw = Raw::sign_in(server.address);
    raw.send(3, &[0x0E]);
    assert_eq!(error_number(&raw.read().expect("an error").1), Some(1156));
    assert!(raw.is_closed());
}

#[test]
fn field_list_answers_with_definitions() {
    let server = TestServer::start();
    let mut raw = Raw::sign_in(server.address);
    let definition = raw.command(b"\x04t\0");
    assert!(definition.starts_with(b"\x03def"));
    assert_eq!(raw.read().expect("the end").1[0], 0xFE);
    assert_eq!(error_number(&raw.command(b"\x04nowhere\0")), Some(1146));
}

#[test]
fn cursors_hand_rows_out_bit_by_bit() {
    let server = TestServer::start();
    let mut raw = Raw::sign_in(server.address);
    assert_eq!(raw.command(b"\x16SELECT NUMBERS 5")[0], 0);
    raw.read();
    raw.read();
    assert_eq!(raw.command(&[0x17, 1, 0, 0, 0, 1, 1, 0, 0, 0]), [2]);
    raw.read();
    raw.read();
    assert_eq!(raw.read().expect("no rows yet").1, [0xFE, 0, 0, 0x42, 0]);
    let mut fetch = |count: u8| {
        raw.send(0, &[0x1C, 1, 0, 0, 0, count, 0, 0, 0]);
        let mut rows = 0;
        loop {
            match raw.read().expect("a packet").1 {
                end if end[0] == 0xFE => return (rows, u16::from_le_bytes([end[3], end[4]]) & !2),
                row => {
                    assert_eq!(row[0], 0);
                    rows += 1;
                }
            }
        }
    };
    assert_eq!(fetch(3), (3, 0x40));
    assert_eq!(fetch(3), (2, 0x80));
    assert_eq!(error_number(&raw.command(&[0x1C, 1, 0, 0, 0, 1, 0, 0, 0])), Some(1421));
}

#[test]
fn long_data_is_joined() {
    let server = TestServer::start();
    let mut raw = Raw::sign_in(server.address);
    raw.command(b"\x16ECHO ?");
    for _ in 0..4 {
        raw.read();
    }
    for piece in [b"ab", b"cd"] {
        raw.send(0, &[&[0x18, 1, 0, 0, 0, 0, 0], &piece[..]].concat());
    }
    raw.send(0, &[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 253, 0]);
    let row = (0..4).filter_map(|_| raw.read()).last().expect("a row").1;
    assert!(row.ends_with(b"Str(\"abcd\")"), "{row:?}");
}

#[test]
fn a_client_that_vanishes_takes_its_session_along() {
    let server = TestServer::start();
    let mut idle = Raw::sign_in(server.address);
    idle.command(b"\x03BEGIN");
    let mut busy = Raw::sign_in(server.address);
    busy.send(0, b"\x03SELECT FOREVER");
    let mut full = Raw::sign_in(server.address);
    full.send(0, b"\x03SELECT NUMBERS 10000000");
    server.until("three sessions", || server.log.open.load(Ordering::SeqCst) == 3);
    drop((idle, busy, full));
    server.until("their end", || server.log.open.load(Ordering::SeqCst) == 0);
    server.until("free places", || server.registry.count() == 0);
}

#[test]
fn a_client_that_vanishes_from_a_socket_does_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("mysqld.sock");
    let server = TestServer::with(|options| options.sockets.push(socket.clone()));
    let mut busy = Raw::sign_in_through(&socket);
    busy.send(0, b"\x03SELECT FOREVER");
    let mut full = Raw::sign_in_through(&socket);
    full.send(0, b"\x03SELECT NUMBERS 10000000");
    server.until("two sessions", || server.log.open.load(Ordering::SeqCst) == 2);
    drop((busy, full));
    server.until("their end", || server.log.open.load(Ordering::SeqCst) == 0);
    server.until("free places", || server.registry.count() == 0);
}

#[test]
fn kill_ends_a_statement_or_a_connection() {
    let server = TestServer::start();
    let mut conn = server.connect();
    let id: u32 = conn.query_first("SELECT ID").expect("a row").expect("one");
    let registry = server.registry.clone();
    // Told apart by a blank, so that the end of the first is not missed.
    let running = |text: &str| registry.list().iter().any(|row| row.info.as_deref() == Some(text));
    let client = std::thread::spawn(move || {
        let error = conn.query_drop("SELECT FOREVER").expect_err("killed").to_string();
        assert!(error.contains("1317"), "{error}");
        assert_eq!(conn.query_first::<i64, _>("SELECT 1").expect("still there"), Some(1));
        conn.query_drop("SELECT  FOREVER").expect_err("killed again");
        assert!(conn.ping().is_err());
    });
    server.until("the statement", || running("SELECT FOREVER"));
    registry.kill(id, Interruption::Statement).expect("there");
    server.until("the second statement", || running("SELECT  FOREVER"));
    registry.kill(id, Interruption::Connection).expect("there");
    client.join().expect("the client's checks");
    server.until("the connection's end", || registry.count() == 0);
}

#[test]
fn idle_connections_end_after_the_wait_timeout() {
    let server = TestServer::start();
    server.timeouts.lock().expect("no panic").idle = Duration::from_secs(1);
    let mut raw = Raw::sign_in(server.address);
    let (sequence, error) = raw.read().expect("an error");
    assert_eq!((sequence, error_number(&error)), (1, Some(4031)), "as a reply to what comes next");
    assert!(raw.is_closed());
}

#[test]
fn a_client_that_does_not_take_its_rows_is_ended_after_the_write_timeout() {
    let server = TestServer::start();
    server.timeouts.lock().expect("no panic").write = Duration::from_secs(1);
    let mut full = Raw::sign_in(server.address);
    full.send(0, b"\x03SELECT NUMBERS 10000000");
    server.until("its session", || server.log.open.load(Ordering::SeqCst) == 1);
    server.until("its end", || server.log.open.load(Ordering::SeqCst) == 0);
    // One that is slow, but takes some, goes on.
    let mut slow = Raw::sign_in(server.address);
    slow.send(0, b"\x03SELECT NUMBERS 300000");
    for read in 0.. {
        let (_, packet) = slow.read().expect("it is not ended");
        if packet[0] == 0xFE && packet.len() < 9 && read > 4 {
            break;
        }
        if read % 20_000 == 0 {
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}

#[test]
fn a_client_that_stops_in_a_packet_is_ended_after_the_read_timeout() {
    use std::io::Write;
    let server = TestServer::start();
    server.timeouts.lock().expect("no panic").read = Duration::from_secs(1);
    let mut half = Raw::sign_in(server.address);
    half.stream.write_all(&[9, 0, 0, 0, 3, b'S', b'E']).expect("sent");
    assert!(half.is_closed());
    // Between packets, the time is another.
    let mut idle = Raw::sign_in(server.address);
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(idle.command(&[0x0E])[0], 0, "COM_PING");
}

#[test]
fn a_client_that_vanishes_is_noticed_while_its_statement_blocks_the_thread() {
    let server = TestServer::with(|options| options.workers = 1);
    let mut blocked = Raw::sign_in(server.address);
    blocked.send(0, b"\x03SELECT BLOCKED");
    server.until("the statement", || server.registry.list().iter().any(|row| row.info.is_some()));
    drop(blocked);
    server.until("its end", || server.log.open.load(Ordering::SeqCst) == 0);
}

#[test]
fn a_client_that_sends_more_before_it_vanishes_is_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("mysqld.sock");
    let server = TestServer::with(|options| options.sockets.push(socket.clone()));
    let (mut tcp, mut unix) = (Raw::sign_in(server.address), Raw::sign_in_through(&socket));
    tcp.send(0, b"\x03SELECT FOREVER");
    unix.send(0, b"\x03SELECT FOREVER");
    let is_running = || server.registry.list().iter().filter(|row| row.info.is_some()).count() == 2;
    server.until("the statements", is_running);
    // COM_QUIT, which nobody reads while the statement runs.
    tcp.send(0, b"\x01");
    unix.send(0, b"\x01");
    drop((tcp, unix));
    server.until("their end", || server.log.open.load(Ordering::SeqCst) == 0);
}

#[test]
fn others_sign_in_and_kill_beside_a_statement_that_holds_the_only_thread() {
    let server = TestServer::with(|options| options.workers = 1);
    let mut blocked = Raw::sign_in(server.address);
    let id = server.registry.list()[0].id;
    blocked.send(0, b"\x03SELECT BLOCKED");
    let is_held = || server.registry.list().iter().any(|row| row.state == "holding its thread");
    server.until("it is noticed", is_held);
    let mut other = Raw::sign_in(server.address);
    assert_eq!(other.command(&[0x0E])[0], 0, "COM_PING");
    let kill = [&[0x0C], &id.to_le_bytes()[..]].concat();
    assert_eq!(other.command(&kill)[0], 0, "COM_PROCESS_KILL");
    assert!(blocked.is_closed());
}

#[test]
fn an_idle_connection_that_is_killed_just_ends() {
    let server = TestServer::start();
    let mut raw = Raw::sign_in(server.address);
    let id = server.registry.list()[0].id;
    server.registry.kill(id, Interruption::Connection).expect("there");
    assert!(raw.is_closed());
}

#[test]
fn shutdown_ends_all_connections() {
    let server = TestServer::start();
    let mut idle = Raw::sign_in(server.address);
    let mut busy = Raw::sign_in(server.address);
    busy.send(0, b"\x03SELECT FOREVER");
    let (address, log) = (server.address, server.log.clone());
    server.until("the statement", || server.registry.list().iter().any(|row| row.info.is_some()));
    server.stop();
    assert_eq!(log.open.load(Ordering::SeqCst), 0);
    assert_eq!(error_number(&idle.read().expect("an error").1), Some(1053));
    assert_eq!(error_number(&busy.read().expect("an error").1), Some(1317));
    assert!(std::net::TcpStream::connect(address).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn no_bytes_bring_the_server_down(
        before: Vec<u8>,
        commands in prop::collection::vec((0u8..0x20, prop::collection::vec(any::<u8>(), 0..40)), 0..30),
    ) {
        use std::io::Write;
        let server = TestServer::start();
        let (mut raw, _) = Raw::connect(server.address);
        let _ = raw.stream.write_all(&before);
        drop(raw);
        let mut raw = Raw::sign_in(server.address);
        for (code, rest) in commands {
            // COM_CHANGE_USER with such bytes may end the connection.
            let packet = [&[rest.len() as u8 + 1, 0, 0, 0, code], &rest[..]].concat();
            if raw.stream.write_all(&packet).is_err() {
                break;
            }
        }
        drop(raw);
        prop_assert_eq!(server.connect().query_first::<i64, _>("SELECT 1").expect("alive"), Some(1));
    }
}

#[path = "../../../fuzz/targets/packet.rs"]
mod packet;

/// Capabilities, and packets of all kinds.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let code = prop_oneof![Just(0x03u8), Just(0x11), Just(0x16), Just(0x17), Just(0x18), any::<u8>()];
    let bytes = || prop::collection::vec(any::<u8>(), 0..60);
    let small = || prop::collection::vec(0u8..4, 0..12);
    (any::<u32>(), code, small(), bytes()).prop_map(|(capabilities, code, small, bytes)| {
        [&capabilities.to_le_bytes()[..], &[code], &small, &bytes].concat()
    })
}

#[path = "../../../fuzz/seeded.rs"]
mod seeded;

#[test]
fn no_mutated_packet_makes_the_decoders_panic() {
    seeded::fuzz("packet", packet::run, &packet::examples(), seeded::cases(10_000));
}

proptest! {
    /// The target of `fuzz/`.
    #[test]
    fn no_packet_makes_the_decoders_panic(packet in packets()) {
        packet::run(&packet);
    }
}
