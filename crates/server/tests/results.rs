//! Large results, and clients that take them slowly or not at all: what a connection buffers stays bounded and is counted,
//! the first rows leave early, and KILL and time-outs end the statement, whichever executor makes the rows.

#[path = "support/database.rs"]
mod database;
mod support;

use std::io::Write;
use std::time::{Duration, Instant};

use avocet_channel::Interruption;
use avocet_session::api::Connections;
use database::DatabaseServer;
use mysql::prelude::Queryable;
use support::raw::{Raw, error_of};

const MIB: usize = 1 << 20;
/// What a connection may buffer: the sink, one row, and what a vector has in reserve.
const MOST_BUFFERED: usize = 512 * 1024;
const MULTI_STATEMENTS: u32 = 0x0001_0000;
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(20);

const DIGITS: &str = "INSERT INTO test.d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)";
/// 150,000 rows of 1,000 bytes.
const BIG: &str = "INSERT INTO test.big SELECT n, CONCAT(n, REPEAT('x', 1000)) FROM
    (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n + 10000 * f.n + 100000 * g.n AS n
     FROM test.d a, test.d b, test.d c, test.d e, test.d f, test.d g WHERE g.n < 2) x WHERE n < 150000";
/// 2,000 of 4,000 rows have one key.
const SKEWED: &str = "INSERT INTO test.t SELECT n, IF(n < 2000, 0, n), REPEAT('x', 300) FROM
    (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n AS n FROM test.d a, test.d b, test.d c, test.d e WHERE e.n < 4) x";

/// A statement of more than a hundred MB for each way in which rows are made.
const LARGE: [(&str, &str); 3] = [
    ("a query", "SELECT * FROM big"),
    // Four million rows, of which statistics know nothing.
    ("a compiled plan", "SELECT c.s FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k WHERE a.id = 1"),
    ("a locking read", "SELECT * FROM big FOR UPDATE"),
];

fn filled(memory_limit: usize) -> DatabaseServer {
    let server = DatabaseServer::start(memory_limit);
    server.run(&[
        "CREATE DATABASE test",
        "CREATE TABLE test.d (n INT PRIMARY KEY)",
        DIGITS,
        "CREATE TABLE test.big (id INT PRIMARY KEY, s VARCHAR(1100))",
        BIG,
        "CREATE TABLE test.t (id INT PRIMARY KEY, k INT, s VARCHAR(400), KEY (k))",
        SKEWED,
    ]);
    server
}

/// A client that reads no more than it is told to.
struct Slow {
    raw: Raw,
    id: u32,
}

/// What a reply ended with.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Rows(usize),
    Error(u16),
    Closed,
}

impl Slow {
    fn connect(server: &DatabaseServer, settings: &[&str]) -> Self {
        Self::connect_with(server, 0, settings)
    }

    fn connect_with(server: &DatabaseServer, capabilities: u32, settings: &[&str]) -> Self {
        let before: Vec<u32> = server.registry.list().iter().map(|row| row.id).collect();
        let mut raw = Raw::sign_in_with(server.address, capabilities);
        let list = server.registry.list();
        let id = list.iter().map(|row| row.id).find(|id| !before.contains(id)).expect("it is there");
        for sql in ["USE test"].iter().chain(settings) {
            assert_eq!(raw.command(&query(sql))[0], 0, "{sql}");
        }
        Self { raw, id }
    }

    /// Sends a query and reads its first row.
    fn first_row(&mut self, sql: &str) {
        self.raw.send(0, &query(sql));
        let count = self.raw.read().expect("columns").1;
        assert!(count.len() == 1 && count[0] > 0, "{:?}", error_of(&count));
        // Their definitions, the end of those, a row.
        for _ in 0..count[0] + 2 {
            self.raw.read().expect("a packet");
        }
    }

    /// Reads to the end of the reply whose first row was read.
    fn read_rest(&mut self) -> End {
        for rows in 1.. {
            match self.raw.read() {
                None => return End::Closed,
                Some((_, end)) if end[0] == 0xFE && end.len() < 9 => return End::Rows(rows),
                Some((_, packet)) => {
                    if let Some((number, _)) = error_of(&packet) {
                        return End::Error(number);
                    }
                }
            }
        }
        unreachable!("rows end")
    }

    /// Whether its statement waits for it.
    fn holds_up(&self, server: &DatabaseServer) -> bool {
        server.registry.list().iter().any(|row| row.id == self.id && row.state == "Sending to client")
    }
}

fn query(sql: &str) -> Vec<u8> {
    [b"\x03", sql.as_bytes()].concat()
}

#[test]
fn first_rows_leave_early_and_a_slow_client_holds_its_statement_up() {
    let server = filled(512 * MIB);
    for (what, sql) in LARGE {
        let how: String = server
            .connect()
            .query_first(format!("EXPLAIN FORMAT=TREE {sql}"))
            .expect("explained")
            .expect("a row");
        assert_eq!(how.starts_with("-> Point plan"), what != "a query", "{what}: {how}");
        server.within(LATER, "the end of it", || server.registry.count() == 0);
        let mut slow = Slow::connect(&server, &[]);
        let begin = Instant::now();
        slow.first_row(sql);
        let first = begin.elapsed();
        assert!(first < SOON, "{what}: the first row took {first:?}");
        server.within(LATER, what, || slow.holds_up(&server));
        let buffered = server.buffered();
        assert!((1..=MOST_BUFFERED).contains(&buffered), "{what}: {buffered} bytes are buffered");
        // So are the batches that wait before it.
        let waiting = server.database.engine().memory().in_use().queries;
        let expected = if what == "a query" { 1..=4 * MIB } else { 0..=4 * MIB };
        assert!(expected.contains(&waiting), "{what}: {waiting} bytes wait");
        // Others go on, on the same thread, too.
        assert_eq!(server.connect().query_first::<i64, _>("SELECT 1").expect("served"), Some(1));
        if what != "a compiled plan" {
            assert_eq!(slow.read_rest(), End::Rows(150_000), "{what}");
        }
        drop(slow);
        server.within(LATER, "the end of it", || server.registry.count() == 0);
        server.within(SOON, "all is given back", || server.buffered() == 0);
    }
}

#[test]
fn rows_that_do_not_fill_the_buffer_leave_early_too() {
    let server = filled(512 * MIB);
    // 2,000 short rows come first; then four million combinations are looked at in vain.
    let sql = "SELECT c.id FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k
               WHERE a.id = 1 AND (b.id = 0 OR b.id + c.id < 0)";
    let how: String = server
        .connect()
        .query_first(format!("EXPLAIN FORMAT=TREE {sql}"))
        .expect("explained")
        .expect("a row");
    assert!(how.starts_with("-> Point plan"), "{how}");
    let mut client = Slow::connect(&server, &[]);
    let begin = Instant::now();
    client.first_row(sql);
    let first = begin.elapsed();
    assert_eq!(client.read_rest(), End::Rows(2000));
    assert!(first * 4 < begin.elapsed(), "the first row took {first:?} of {:?}", begin.elapsed());
}

#[test]
fn kill_ends_a_statement_that_waits_for_its_client() {
    let server = filled(512 * MIB);
    for (what, sql) in LARGE {
        let mut slow = Slow::connect(&server, &["BEGIN"]);
        slow.first_row(sql);
        server.within(LATER, what, || slow.holds_up(&server));
        server.registry.kill(slow.id, Interruption::Statement).expect("there");
        assert_eq!(slow.read_rest(), End::Error(1317), "{what}");
        assert_eq!(slow.raw.command(&query("ROLLBACK"))[0], 0, "{what}: the connection goes on");
        slow.first_row(sql);
        server.within(LATER, what, || slow.holds_up(&server));
        server.registry.kill(slow.id, Interruption::Connection).expect("there");
        server.within(SOON, what, || server.registry.count() == 0);
        server.within(SOON, "all is given back", || server.buffered() == 0);
        // Its locks are gone as well.
        server.connect().query_drop("SELECT * FROM big WHERE id = 1 FOR UPDATE NOWAIT").expect("free");
        server.within(LATER, "the end of it", || server.registry.count() == 0);
    }
}

#[test]
fn the_write_timeout_ends_a_statement_whose_client_takes_nothing() {
    let server = filled(512 * MIB);
    for (what, sql) in LARGE {
        let mut slow = Slow::connect(&server, &["SET net_write_timeout = 1"]);
        slow.first_row(sql);
        server.within(Duration::from_secs(5), what, || server.registry.count() == 0);
        server.within(SOON, "all is given back", || server.buffered() == 0);
        assert_eq!(slow.read_rest(), End::Closed, "{what}");
    }
}

#[test]
fn the_time_for_a_statement_includes_its_clients() {
    let server = filled(512 * MIB);
    for (what, sql) in LARGE {
        let mut slow = Slow::connect(&server, &["SET max_execution_time = 2000"]);
        slow.first_row(sql);
        server.within(LATER, what, || slow.holds_up(&server));
        std::thread::sleep(Duration::from_millis(2100));
        assert_eq!(slow.read_rest(), End::Error(3024), "{what}");
    }
}

#[test]
fn a_client_that_goes_takes_its_statement_along() {
    let server = filled(512 * MIB);
    for (what, sql) in LARGE {
        let mut slow = Slow::connect(&server, &[]);
        slow.first_row(sql);
        server.within(LATER, what, || slow.holds_up(&server));
        drop(slow);
        server.within(Duration::from_secs(3), what, || server.registry.count() == 0);
        server.within(SOON, "all is given back", || server.buffered() == 0);
    }
}

#[test]
fn replies_of_many_statements_hold_them_up_too() {
    let server = filled(512 * MIB);
    let mut slow = Slow::connect_with(&server, MULTI_STATEMENTS, &[]);
    // Sockets take 36 MB where the system lets them.
    let text = "SELECT s FROM t LIMIT 12; ".repeat(40_000);
    slow.first_row(&text);
    server.within(LATER, "they wait", || slow.holds_up(&server));
    let buffered = server.buffered();
    // The text, and what its statements are counted as once they are parsed.
    assert!(buffered <= MOST_BUFFERED + 6 * text.len(), "{buffered} bytes are buffered");
}

/// COM_STMT_PREPARE; the statement's id.
fn prepare(raw: &mut Raw, sql: &str, columns: usize) -> [u8; 4] {
    let reply = raw.command(&[b"\x16", sql.as_bytes()].concat());
    assert_eq!(reply[0], 0, "{:?}", error_of(&reply));
    for _ in 0..columns + 1 {
        raw.read().expect("a definition, or their end");
    }
    reply[1..5].try_into().expect("four bytes")
}

/// COM_STMT_EXECUTE with a cursor.
fn open_cursor(raw: &mut Raw, id: [u8; 4], columns: usize) {
    raw.send(0, &[b"\x17", &id[..], &[1, 1, 0, 0, 0]].concat());
    for _ in 0..columns + 2 {
        let packet = raw.read().expect("columns, without rows").1;
        assert!(error_of(&packet).is_none(), "{:?}", error_of(&packet));
    }
}

/// COM_STMT_FETCH; how many rows came, and whether they were the last.
fn fetch(raw: &mut Raw, id: [u8; 4], count: u32) -> (u32, bool) {
    raw.send(0, &[b"\x1C", &id[..], &count.to_le_bytes()].concat());
    for rows in 0.. {
        let packet = raw.read().expect("a row").1;
        assert!(error_of(&packet).is_none(), "{:?}", error_of(&packet));
        if packet[0] == 0xFE && packet.len() < 9 {
            return (rows, packet[3] & 0x80 != 0);
        }
    }
    unreachable!("rows end")
}

#[test]
fn rows_of_a_cursor_wait_outside_of_memory() {
    let server = filled(512 * MIB);
    let mut slow = Slow::connect(&server, &[]);
    let raw = &mut slow.raw;
    let (id, other) = (prepare(raw, "SELECT * FROM big", 2), prepare(raw, "SELECT n FROM d", 1));
    open_cursor(raw, id, 2);
    assert!(server.buffered() <= MOST_BUFFERED, "{} bytes are buffered", server.buffered());
    assert_eq!(fetch(raw, id, 1000), (1000, false));
    // Statements and cursors go on beside each other.
    open_cursor(raw, other, 1);
    assert_eq!(fetch(raw, other, 3), (3, false));
    assert_eq!(fetch(raw, id, 500), (500, false));
    assert!(server.buffered() <= MOST_BUFFERED, "{} bytes are buffered", server.buffered());
    // All that are left at once.
    assert_eq!(fetch(raw, id, u32::MAX), (148_500, true));
    assert_eq!(fetch(raw, other, 100), (7, true));
    server.within(SOON, "all is given back", || server.buffered() == 0);
    // A client that does not take what it asked for.
    open_cursor(raw, id, 2);
    raw.send(0, &[b"\x1C", &id[..], &u32::MAX.to_le_bytes()].concat());
    server.within(LATER, "it waits", || slow.holds_up(&server));
    assert!(server.buffered() <= MOST_BUFFERED, "{} bytes are buffered", server.buffered());
    server.registry.kill(slow.id, Interruption::Connection).expect("there");
    server.within(SOON, "its end", || server.registry.count() == 0);
    server.within(SOON, "all is given back", || server.buffered() == 0);
}

#[test]
fn statements_that_store_a_querys_rows_take_them_as_they_come() {
    // A fifth of what the rows take.
    let server = filled(32 * MIB);
    let mut connection = server.connect();
    connection.query_drop("CREATE TABLE made SELECT * FROM big").expect("it streams");
    connection.query_drop("CREATE TABLE filled LIKE big").expect("made");
    connection.query_drop("INSERT INTO filled SELECT * FROM big").expect("it streams");
    for table in ["made", "filled"] {
        let count = format!("SELECT COUNT(*), SUM(LENGTH(s)) FROM {table}");
        let (rows, bytes): (u64, u64) = connection.query_first(count).expect("counted").expect("a row");
        assert_eq!((rows, bytes), (150_000, 150_788_890), "{table}");
    }
    assert_eq!(server.database.engine().memory().in_use().queries, 0, "all is given back");
}

#[test]
fn packets_that_clients_send_by_halves_are_counted_and_refused() {
    const LIMIT: usize = 128 * MIB;
    let server = DatabaseServer::start(LIMIT);
    let half: Vec<u8> = [&[0xFF, 0xFF, 0xFF, 0, 3][..], &vec![b'x'; 15 * MIB]].concat();
    let clients: Vec<_> = (0..40)
        .map(|_| {
            let mut raw = Raw::sign_in(server.address);
            let half = half.clone();
            std::thread::spawn(move || {
                // Who is refused may find the connection closed before all was sent.
                let sent = raw.stream.write_all(&half).is_ok();
                raw.stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
                let reply = raw.read().and_then(|(_, packet)| error_of(&packet));
                (raw, sent, reply)
            })
        })
        .collect();
    let clients: Vec<_> = clients.into_iter().map(|client| client.join().expect("no panic")).collect();
    let refused: Vec<_> = clients.iter().filter_map(|(_, _, reply)| reply.as_ref()).collect();
    for (number, text) in &refused {
        assert_eq!(*number, 1041, "{text}");
        assert!(text.contains("no memory for so large a packet"), "{text}");
    }
    let held = clients.iter().filter(|(_, sent, reply)| *sent && reply.is_none()).count();
    assert!(refused.len() >= 32 && held >= 4, "{} are refused and {held} are not", refused.len());
    let buffered = server.buffered();
    assert!((held * 14 * MIB..LIMIT).contains(&buffered), "{buffered} bytes of {held} clients");
    // There is always room for small ones.
    server.run(&["CREATE DATABASE test"]);
    assert_eq!(server.connect().query_first::<i64, _>("SELECT 1").expect("served"), Some(1));
    drop(clients);
    server.within(LATER, "their end", || server.registry.count() == 0);
    server.within(SOON, "all is given back", || server.buffered() == 0);
}

#[test]
fn what_large_packets_and_large_rows_took_is_given_back() {
    let server = DatabaseServer::start(512 * MIB);
    server.run(&["CREATE DATABASE test"]);
    let mut connection = server.connect();
    let text = "y".repeat(20 * MIB);
    let sql = format!("SELECT '{text}'");
    assert_eq!(
        connection.query_first::<String, _>(sql).expect("a row").map(|text| text.len()),
        Some(20 * MIB)
    );
    server.within(SOON, "all is given back", || server.buffered() == 0);
    let statement = connection.prep("SELECT LENGTH(?)").expect("prepared");
    let length: Option<usize> = connection.exec_first(&statement, (text,)).expect("a row");
    assert_eq!(length, Some(20 * MIB));
    server.within(SOON, "all is given back", || server.buffered() == 0);
}

#[test]
fn what_shows_warnings_has_none_of_its_own() {
    let server = DatabaseServer::start(512 * MIB);
    server.run(&["CREATE DATABASE test"]);
    let mut connection = server.connect();
    let mut warnings_of = |sql: &str| {
        connection.query_iter(sql).expect("answered").for_each(|row| drop(row.expect("a row")));
        connection.warnings()
    };
    assert_eq!(warnings_of("DROP TABLE IF EXISTS test.a, test.b"), 2);
    // Connectors ask again as long as there are some.
    for sql in ["SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT(*) WARNINGS", "SHOW COUNT(*) ERRORS"] {
        assert_eq!(warnings_of(sql), 0, "{sql}");
    }
}
