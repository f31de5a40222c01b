use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use mysql::{BinlogRequest, Opts, OptsBuilder};
use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::packets::HandshakePacket;
use mysql_common::proto::MySerialize;

use super::transport::framed;
use super::*;
use crate::binlog::kind;

const SILENCE: Duration = Duration::from_secs(20);

fn place(offset: u64) -> LogPlace {
    LogPlace { file: "binlog.000007".into(), offset }
}

/// What a stub of a source has read: a packet with its number.
fn read_packet(from: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 4];
    from.read_exact(&mut head).expect("a packet");
    let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    from.read_exact(&mut payload).expect("a whole packet");
    (head[3], payload)
}

/// An event without a checksum that ends at a place, as a semi-synchronous stream sends it.
fn sent(number: u8, is_awaited: bool, event_kind: u8, end: u32, body: &[u8]) -> Vec<u8> {
    let mut payload = vec![0, 0xef, is_awaited.into()];
    payload.extend_from_slice(&[0; 4]);
    payload.push(event_kind);
    payload.extend_from_slice(&1u32.to_le_bytes());
    payload.extend_from_slice(&(19 + body.len() as u32).to_le_bytes());
    payload.extend_from_slice(&end.to_le_bytes());
    payload.extend_from_slice(&[0; 2]);
    payload.extend_from_slice(body);
    framed(number, &payload)
}

fn acknowledged((number, payload): (u8, Vec<u8>)) -> LogPlace {
    assert_eq!((number, payload[0]), (0, 0xef));
    let offset = u64::from_le_bytes(payload[1..9].try_into().expect("eight bytes"));
    LogPlace { file: String::from_utf8_lossy(&payload[9..]).into_owned(), offset }
}

/// Greets, signs in whoever comes, answers OK to statements, and streams; returns the statements.
fn source(
    listener: TcpListener,
    stream: impl FnOnce(&mut TcpStream) + Send + 'static,
) -> JoinHandle<Vec<String>> {
    const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        let capabilities = CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_PLUGIN_AUTH;
        let greeting = HandshakePacket::new(
            10,
            &b"9.7.4"[..],
            1,
            *b"abcdefgh",
            Some(&b"ijklmnopqrst\0"[..]),
            capabilities,
            45,
            StatusFlags::empty(),
            Some(&b"mysql_native_password"[..]),
        );
        let mut payload = Vec::new();
        greeting.serialize(&mut payload);
        peer.write_all(&framed(0, &payload)).expect("a greeting");
        read_packet(&mut peer);
        peer.write_all(&framed(2, &OK)).expect("an answer");
        let mut statements = Vec::new();
        loop {
            let (number, command) = read_packet(&mut peer);
            assert_eq!(number, 0);
            match command[0] {
                18 | 30 => break,
                3 => statements.push(String::from_utf8_lossy(&command[1..]).into_owned()),
                _ => {}
            }
            peer.write_all(&framed(1, &OK)).expect("an answer");
        }
        stream(&mut peer);
        statements
    })
}

fn listen() -> (TcpListener, Opts) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let opts = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port).user(Some("repl"));
    (listener, opts.pass(Some("secret")).into())
}

#[test]
fn what_is_durable_is_told_and_nothing_else() {
    let (listener, opts) = listen();
    let (told, wait) = std::sync::mpsc::channel();
    let source = source(listener, move |peer| {
        peer.write_all(&sent(1, false, kind::ROTATE, 0, b"\x04\0\0\0\0\0\0\0binlog.000007")).expect("sent");
        peer.write_all(&sent(2, true, kind::XID, 200, &[1; 8])).expect("sent");
        // Behind an event that it waits for, a source numbers its packets anew.
        peer.write_all(&sent(1, true, kind::XID, 300, &[2; 8])).expect("sent");
        peer.write_all(&sent(1, false, kind::HEARTBEAT, 300, b"binlog.000007")).expect("sent");
        told.send(acknowledged(read_packet(peer))).expect("the test waits");
        told.send(acknowledged(read_packet(peer))).expect("the test waits");
    });
    let acks = Acks::default();
    let mut link = Link::connect(&opts, SILENCE).expect("a connection");
    link.run(announcement(Flavor::MySql)).expect("OK");
    link.dump(&BinlogRequest::new(7), &acks).expect("a stream");
    let mut next = || {
        let (event, is_awaited) = link.next().expect("an event").expect("more");
        (event.header().event_type_raw(), event.header().log_pos(), is_awaited)
    };
    assert_eq!(next(), (kind::ROTATE, 0, false));
    assert_eq!(next(), (kind::XID, 200, true));
    acks.asked(place(200));
    assert_eq!(next(), (kind::XID, 300, true));
    acks.asked(place(300));
    assert_eq!(next(), (kind::HEARTBEAT, 300, false));
    // Not what it waits for.
    acks.durable(&place(199));
    acks.durable(&place(250));
    assert_eq!(wait.recv(), Ok(place(200)));
    acks.durable(&place(300));
    assert_eq!(wait.recv(), Ok(place(300)));
    let statements = source.join().expect("the source");
    assert_eq!(statements, ["SET @rpl_semi_sync_replica = 1, @rpl_semi_sync_slave = 1"]);
}

#[test]
fn one_answer_is_for_all_before_it_and_none_follows_a_commit_that_failed() {
    let (listener, opts) = listen();
    let (told, wait) = std::sync::mpsc::channel();
    let source = source(listener, move |peer| {
        told.send(acknowledged(read_packet(peer))).expect("the test waits");
        let mut rest = Vec::new();
        // Until the other side closes.
        peer.read_to_end(&mut rest).expect("an end");
        assert!(rest.is_empty());
    });
    let acks = Acks::default();
    let mut link = Link::connect(&opts, SILENCE).expect("a connection");
    // What is durable may be known before the source is seen to wait for it.
    acks.durable(&place(250));
    link.dump(&BinlogRequest::new(7), &acks).expect("a stream");
    (0..2 * MOST_ASKED as u64).for_each(|at| acks.asked(place(300 + at)));
    acks.durable(&place(299));
    acks.durable(&place(1 << 20));
    assert_eq!(wait.recv(), Ok(place(300 + 2 * MOST_ASKED as u64 - 1)));
    acks.lose();
    acks.asked(place(1 << 21));
    acks.durable(&place(1 << 22));
    drop((link, acks));
    source.join().expect("the source");
}

#[test]
fn events_without_their_head_and_refusals_end_a_stream() {
    for (packet, wanted) in [
        (framed(1, b"\0no head"), "Unexpected packet"),
        (framed(1, b"\xff\xd4\x04#HY000Could not find first log file"), "Could not find first log file"),
        (framed(1, b"\0\xef"), "Unexpected packet"),
    ] {
        let (listener, opts) = listen();
        let source = source(listener, move |peer| peer.write_all(&packet).expect("sent"));
        let mut link = Link::connect(&opts, SILENCE).expect("a connection");
        link.dump(&BinlogRequest::new(7), &Acks::default()).expect("a stream");
        let error = link.next().expect_err("no event");
        assert!(format!("{error:?}").contains(wanted), "{error:?}");
        source.join().expect("the source");
    }
}
