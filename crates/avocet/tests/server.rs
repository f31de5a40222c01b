//! The program as users run it: killed and started again, on an object store, twice on one directory, and with clients
//! that vanish.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, OptsBuilder};
use support::{ACCESS_KEY, BUCKET, S3};

/// A server process, killed when dropped.
struct Served {
    child: Child,
    port: u16,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port()
}

fn command(data: &Path, port: u16, arguments: &[&str], s3: Option<SocketAddr>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_avocet"));
    command.arg("serve").arg("--data").arg(data).arg(format!("--listen=127.0.0.1:{port}"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    if let Some(address) = s3 {
        command.env("AWS_ENDPOINT", format!("http://{address}")).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", "secret");
        command.env("AWS_REGION", "us-east-1");
    }
    command
}

fn options(port: u16) -> OptsBuilder {
    OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false)
}

fn within<T>(seconds: u64, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(seconds), "waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn serve(data: &Path, arguments: &[&str], s3: Option<SocketAddr>) -> Served {
    let port = free_port();
    let mut child = command(data, port, arguments, s3).spawn().expect("it starts");
    // Nobody reads on: its messages must not fill the pipe.
    let mut messages = child.stderr.take().expect("piped");
    std::thread::spawn(move || std::io::copy(&mut messages, &mut std::io::sink()));
    let mut served = Served { child, port };
    within(60, "the server", || {
        assert!(served.child.try_wait().expect("a child").is_none(), "the server ended");
        Conn::new(options(port)).ok()
    });
    served
}

impl Served {
    fn connect(&self) -> Conn {
        Conn::new(options(self.port)).expect("it answers")
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

/// Starts a server that is to fail; what it says.
fn refused(data: &Path, arguments: &[&str], s3: Option<SocketAddr>) -> String {
    let mut child = command(data, free_port(), arguments, s3).spawn().expect("it starts");
    let mut text = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
    assert!(!child.wait().expect("ended").success(), "it was to fail");
    text
}

#[test]
fn a_second_server_on_a_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = serve(dir.path(), &[], None);
    let said = refused(dir.path(), &[], None);
    assert!(said.contains("in use by another server"), "{said}");
    first.connect().query_drop("SELECT 1").expect("the first goes on");
    first.kill();
    serve(dir.path(), &[], None);
}

#[test]
fn a_client_that_vanishes_in_mid_transaction_is_rolled_back() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = serve(dir.path(), &[], None);
    let mut watcher = server.connect();
    watcher.query_drop("CREATE DATABASE d").expect("made");
    watcher.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, v INT)").expect("made");
    watcher.query_drop("INSERT INTO d.t VALUES (1, 1)").expect("inserted");
    let mut vanishing = server.connect();
    vanishing.query_drop("BEGIN").expect("begun");
    vanishing.query_drop("UPDATE d.t SET v = 2 WHERE id = 1").expect("updated");
    vanishing.query_drop("INSERT INTO d.t VALUES (2, 2)").expect("inserted");
    drop(vanishing);
    // The row is locked until the server notices; then the update goes through, on the old value.
    watcher.query_drop("UPDATE d.t SET v = v + 10 WHERE id = 1").expect("the lock is gone");
    let rows: Vec<(i32, i32)> = watcher.query("SELECT id, v FROM d.t ORDER BY id").expect("rows");
    assert_eq!(rows, [(1, 11)]);
}

#[test]
fn a_client_that_vanishes_in_mid_file_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = serve(dir.path(), &[], None);
    let mut watcher = server.connect();
    watcher.query_drop("CREATE DATABASE d").expect("made");
    watcher.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(30))").expect("made");
    for rows in [10, 200_000] {
        let mut vanishing = server.connect();
        // The library sends no end of a file that it fails to read, and closes the connection.
        vanishing.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, file| {
            (0..rows).try_for_each(|row| writeln!(file, "{row}\tthe text of row {row}"))?;
            file.flush()?;
            Err(std::io::ErrorKind::Other.into())
        })));
        let load = "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE d.t";
        vanishing.query_drop(load).expect_err("its file failed");
        drop(vanishing);
        // A key of the file is free once the server has noticed, at the latest when the wait for the lock ends.
        watcher.query_drop("INSERT INTO d.t VALUES (7, 'mine')").expect("the lock is gone");
        let count: Option<i64> = watcher.query_first("SELECT COUNT(*) FROM d.t").expect("a row");
        assert_eq!(count, Some(1), "of {rows} rows");
        watcher.query_drop("DELETE FROM d.t").expect("deleted");
    }
}

/// Connections stay on their threads: whatever shares the large statement's must not wait for its end.
/// As mydumper and myloader do: what is read in the bytes of the columns goes into another table as it is.
#[test]
fn texts_come_and_go_in_the_bytes_of_their_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = serve(folder.path(), &[], None);
    let mut conn = Conn::new(options(served.port)).expect("a connection");
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "SET NAMES utf8mb4",
        "CREATE TABLE a (id INT PRIMARY KEY, l VARCHAR(10) CHARACTER SET latin1, u VARCHAR(10) CHARACTER SET utf16, m TEXT,
         e ENUM('ä', 'b') CHARACTER SET latin1, s SET('ä', 'b') CHARACTER SET latin1, j JSON, d DECIMAL(5,2))",
        "CREATE TABLE b LIKE a",
        // In latin1, `Ã¤` has the bytes that `ä` has in UTF-8.
        "INSERT INTO a VALUES (1, 'äé', 'äé', 'äé', 'ä', 'ä,b', '[\"ä\"]', 1.5), (2, 'Ã¤', 'a', 'Ã¤', 'b', '', '1', -2)",
    ] {
        conn.query_drop(sql).expect(sql);
    }
    let bytes = |text: &[u8]| mysql::Value::Bytes(text.to_vec());
    let expected = |json: &[u8]| {
        [
            bytes(b"\xE4\xE9"),
            bytes(b"\0\xE4\0\xE9"),
            bytes("äé".as_bytes()),
            bytes(b"\xE4"),
            bytes(b"\xE4,b"),
            bytes(json),
            bytes(b"1.50"),
        ]
    };
    const COLUMNS: &str = "SELECT l, u, m, e, s, j, d FROM a WHERE id = ";
    for settings in ["SET NAMES binary", "SET NAMES utf8mb4, character_set_results = NULL"] {
        conn.query_drop(settings).expect(settings);
        let row: mysql::Row = conn.query_first(format!("{COLUMNS}1")).expect(settings).expect("a row");
        assert_eq!(row.unwrap(), expected("[\"ä\"]".as_bytes()), "{settings}");
        let row: mysql::Row = conn.exec_first(format!("{COLUMNS}?"), (1,)).expect(settings).expect("a row");
        assert_eq!(row.unwrap(), expected("[\"ä\"]".as_bytes()), "{settings}, prepared");
    }
    conn.query_drop("SET NAMES latin1").expect("latin1");
    let row: mysql::Row = conn.query_first(format!("{COLUMNS}1")).expect("a query").expect("a row");
    let mut of_latin1 = expected(b"[\"\xE4\"]");
    (of_latin1[1], of_latin1[2]) = (bytes(b"\xE4\xE9"), bytes(b"\xE4\xE9"));
    assert_eq!(row.unwrap(), of_latin1);

    // And back, as text and as parameters.
    for prepared in [false, true] {
        conn.query_drop("SET NAMES binary").expect("binary");
        conn.query_drop("DELETE FROM b").expect("empty");
        type Row = (u32, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);
        let rows: Vec<Row> = conn.query("SELECT id, l, u, m, e, s FROM a").expect("rows");
        for (id, l, u, m, e, s) in rows {
            if prepared {
                let sql = "INSERT INTO b (id, l, u, m, e, s) VALUES (?, ?, ?, ?, ?, ?)";
                conn.exec_drop(sql, (id, l, u, m, e, s)).expect("an insert");
                continue;
            }
            let mut sql = format!("INSERT INTO b (id, l, u, m, e, s) VALUES ({id}");
            for text in [l, u, m, e, s] {
                // As they are where the client can send them so.
                match String::from_utf8(text) {
                    Ok(text) => sql += &format!(", '{}'", text.replace('\0', "\\0")),
                    Err(error) => {
                        let bytes = error.into_bytes();
                        let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                        sql += &format!(", x'{hexadecimal}'");
                    }
                }
            }
            sql.push(')');
            conn.query_drop(sql).expect("an insert");
        }
        conn.query_drop("SET NAMES utf8mb4").expect("utf8mb4");
        let differing: Option<u32> = conn
            .query_first(
                "SELECT COUNT(*) FROM a JOIN b USING (id) WHERE HEX(a.l) <> HEX(b.l) OR HEX(a.u) <> HEX(b.u) OR HEX(a.m) <> HEX(b.m)
                 OR a.e <> b.e OR a.s <> b.s",
            )
            .expect("a count");
        assert_eq!(differing, Some(0), "prepared: {prepared}");
    }
}

#[test]
fn a_statement_of_many_rows_holds_up_nobody() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = serve(dir.path(), &[], None);
    let mut conn = server.connect();
    conn.query_drop("CREATE DATABASE d").expect("made");
    conn.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, s VARCHAR(20))").expect("made");
    let rows: Vec<String> = (0..6000).map(|n| format!("({n}, REPEAT('{}', 4))", n % 10)).collect();
    let insert = format!("INSERT INTO d.t VALUES {}", rows.join(","));
    // Enough that some share its thread, wherever it is.
    let others = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 1;
    let connections: Vec<Conn> = (0..others).map(|_| server.connect()).collect();
    let (running, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let ask = |mut conn: Conn| {
        let mut answered = 0;
        while !ended.load(Ordering::SeqCst) {
            let counts = running.load(Ordering::SeqCst);
            conn.query_drop("DO 0").expect("answered");
            answered += u64::from(counts && !ended.load(Ordering::SeqCst));
        }
        answered
    };
    let answers: Vec<u64> = std::thread::scope(|threads| {
        let asking: Vec<_> = connections.into_iter().map(|conn| threads.spawn(|| ask(conn))).collect();
        running.store(true, Ordering::SeqCst);
        let inserted = conn.query_drop(&insert);
        ended.store(true, Ordering::SeqCst);
        inserted.expect("inserted");
        asking.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    // The first may have waited for the text to be parsed.
    assert!(answers.iter().all(|&count| count > 2), "{answers:?}");
}

#[test]
fn blocks_and_checkpoints_live_in_an_object_store() {
    let (s3, address) = S3::start();
    let dir = tempfile::tempdir().expect("a folder");
    let url = format!("--store=s3://{BUCKET}/db");
    let arguments = [url.as_str(), "--freeze=always", "--checkpoint-log-mib=1"];
    let server = serve(dir.path(), &arguments, Some(address));
    let mut conn = server.connect();
    conn.query_drop("CREATE DATABASE d").expect("made");
    conn.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, s TEXT)").expect("made");
    for chunk in 0..40 {
        let rows: Vec<String> =
            (0..50).map(|n| format!("({}, REPEAT('{chunk}', 400))", chunk * 50 + n)).collect();
        conn.query_drop(format!("INSERT INTO d.t VALUES {}", rows.join(","))).expect("inserted");
    }
    let has = |what: &str| s3.keys().iter().any(|key| key.starts_with(what)).then_some(());
    within(60, "a checkpoint in the object store", || has("db/checkpoints/"));
    within(60, "a block in the object store", || has("db/blocks/"));
    conn.query_drop("INSERT INTO d.t VALUES (5000, 'after the checkpoint')").expect("inserted");
    server.kill();
    assert!(!dir.path().join("store").exists(), "nothing of the store is local");

    let server = serve(dir.path(), &arguments, Some(address));
    let found: Option<(i64, i64, i64)> =
        server.connect().query_first("SELECT COUNT(*), MAX(id), SUM(LENGTH(s)) FROM d.t").expect("a row");
    let text: i64 = (0..40).map(|chunk: i64| 50 * 400 * chunk.to_string().len() as i64).sum();
    assert_eq!(found, Some((2001, 5000, text + 20)));
    server.kill();

    let keys = s3.keys();
    let other = tempfile::tempdir().expect("a folder");
    let said = refused(other.path(), &arguments, Some(address));
    assert!(said.contains("belongs to another data directory"), "{said}");
    assert_eq!(s3.keys(), keys, "nothing is deleted");

    s3.deny(true);
    let said = refused(dir.path(), &arguments, Some(address));
    assert!(said.contains("cannot open") && said.contains("get owner"), "{said}");
}

/// Position, kind, end and info of each event.
type ShownEvent = (u64, String, u64, String);

fn log_events(conn: &mut Conn, rest: &str) -> Result<Vec<ShownEvent>, u16> {
    type Event = (String, u64, String, u32, u64, String);
    let rows: mysql::Result<Vec<Event>> = conn.query(format!("SHOW BINLOG EVENTS {rest}"));
    match rows {
        Ok(rows) => Ok(rows.into_iter().map(|(_, at, kind, _, end, info)| (at, kind, end, info)).collect()),
        Err(mysql::Error::MySqlError(error)) => Err(error.code),
        Err(error) => panic!("{rest}: {error}"),
    }
}

fn errno(outcome: mysql::Result<()>) -> u16 {
    match outcome {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_binary_log_is_shown_and_begins_anew() {
    let data = tempfile::tempdir().expect("a directory");
    let arguments = ["--log-bin", "--server-id=7"];
    let served = serve(data.path(), &arguments, None);
    let mut conn = Conn::new(options(served.port)).expect("a connection");
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1), (2)",
        "CREATE USER follower",
        "CREATE USER nobody",
        "GRANT REPLICATION SLAVE ON *.* TO follower",
        // All before it is in the first file when it ends.
        "FLUSH BINARY LOGS",
    ] {
        conn.query_drop(statement).expect(statement);
    }
    let uuid: String = conn.query_first("SELECT @@server_uuid").expect("rows").expect("a row");
    let all = log_events(&mut conn, "").expect("events");
    let infos: Vec<_> = all.iter().map(|(_, kind, _, info)| (kind.as_str(), info.as_str())).collect();
    let gtid = |number: u32| format!("SET @@SESSION.GTID_NEXT= '{uuid}:{number}'");
    assert!(infos[0].1.ends_with(", Binlog ver: 4"), "{infos:?}");
    assert_eq!(infos[1..3], [("Previous_gtids", ""), ("Gtid", gtid(1).as_str())]);
    assert!(infos[3].1.starts_with("CREATE DATABASE d /* xid="), "{infos:?}");
    let begin = infos.iter().position(|event| *event == ("Query", "BEGIN")).expect("a transaction");
    assert_eq!(infos[begin - 1], ("Gtid", gtid(3).as_str()));
    assert!(infos[begin + 1].0 == "Table_map" && infos[begin + 1].1.ends_with(" (d.t)"), "{infos:?}");
    assert!(infos[begin + 2].0 == "Write_rows" && infos[begin + 2].1.contains(" flags: STMT_END_F"));
    assert!(infos[begin + 3].0 == "Xid" && infos[begin + 3].1.starts_with("COMMIT /* xid="));
    assert_eq!(infos.last(), Some(&("Rotate", "binlog.000002;pos=4")));
    assert!(all.windows(2).all(|pair| pair[0].2 == pair[1].0), "each begins where the last one ends");
    let from = all[begin].0;
    assert_eq!(
        log_events(&mut conn, &format!("FROM {from} LIMIT 1, 2")),
        Ok(all[begin + 1..begin + 3].to_vec())
    );
    assert_eq!(log_events(&mut conn, "IN './binlog.000001' LIMIT 0"), Ok(all.clone()));
    for wrong in ["IN 'binlog.000009'".to_owned(), format!("FROM {}", from + 1)] {
        assert_eq!(log_events(&mut conn, &wrong), Err(1220), "{wrong}");
    }
    let none: Vec<mysql::Row> = conn.query("SHOW RELAYLOG EVENTS").expect("no rows");
    assert!(none.is_empty());
    for (user, outcome) in [("follower", Ok(1)), ("nobody", Err(1227))] {
        let mut other = Conn::new(options(served.port).user(Some(user))).expect("a connection");
        assert_eq!(log_events(&mut other, "LIMIT 1").map(|events| events.len()), outcome);
    }

    let mut follower = Conn::new(options(served.port).user(Some("follower"))).expect("a connection");
    follower.query_drop("SET @source_heartbeat_period = 100000000").expect("set");
    let request = mysql::BinlogRequest::new(8).with_filename(&b"binlog.000002"[..]).with_pos(4u32);
    let mut stream = follower.get_binlog_stream(request).expect("a stream");
    stream.next().expect("an event").expect("whole");
    assert_eq!(errno(conn.query_drop("RESET BINARY LOGS AND GTIDS")), 1105, "it is read");
    let status: Vec<(String, u16, String)> = {
        conn.query_drop("PURGE BINARY LOGS BEFORE '2037-01-01'").expect("purged");
        conn.query("SHOW WARNINGS").expect("rows")
    };
    let told = "file ./binlog.000002 was not purged because it is the active log file.";
    assert_eq!(status, [("Warning".to_owned(), 1868, told.to_owned())]);
    drop(stream);
    assert_eq!(errno(conn.query_drop("RESET BINARY LOGS AND GTIDS TO 0")), 3567);
    // The connection of whoever has gone is noticed with the next heartbeat.
    within(20, "the log to begin anew", || conn.query_drop("RESET BINARY LOGS AND GTIDS TO 5").ok());
    let executed = |conn: &mut Conn| -> (String, String) {
        conn.query_first("SELECT @@gtid_executed, @@gtid_purged").expect("rows").expect("a row")
    };
    assert_eq!(executed(&mut conn), (String::new(), String::new()));
    conn.query_drop("INSERT INTO d.t VALUES (3)").expect("inserted");
    let waited: Option<i64> =
        conn.query_first(format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{uuid}:1', 20)")).expect("rows");
    assert_eq!(waited, Some(0));
    drop(conn);
    drop(served);
    // What a crash has left goes on as it was.
    let served = serve(data.path(), &arguments, None);
    let mut conn = Conn::new(options(served.port)).expect("a connection");
    assert_eq!(executed(&mut conn), (format!("{uuid}:1"), String::new()));
    let files: Vec<(String, u64, String)> = conn.query("SHOW BINARY LOGS").expect("rows");
    assert_eq!(files.iter().map(|file| file.0.as_str()).collect::<Vec<_>>(), ["binlog.000005"]);
    let kinds: Vec<String> =
        log_events(&mut conn, "").expect("events").into_iter().map(|event| event.1).collect();
    assert_eq!(kinds, ["Format_desc", "Previous_gtids", "Gtid", "Query", "Table_map", "Write_rows", "Xid"]);
}

/// A dump and a replica that begins with it have to meet, and so do a client and the replica that it waits for.
#[test]
fn who_asks_for_the_binary_logs_place_finds_all_that_is_committed() {
    let data = tempfile::tempdir().expect("a directory");
    let served = serve(data.path(), &["--log-bin", "--server-id=7", "--durability=os"], None);
    let mut conn = Conn::new(options(served.port)).expect("a connection");
    conn.query_drop("CREATE DATABASE d").expect("made");
    // What only a later version runs is not told to replicas of that version.
    conn.query_drop("CREATE TABLE d.t (a INT PRIMARY KEY /*!90700 , b INT */)").expect("made");
    let uuid: String = conn.query_first("SELECT @@server_uuid").expect("rows").expect("a row");
    for number in 3..60 {
        conn.query_drop(format!("INSERT INTO d.t VALUES ({number})")).expect("inserted");
        let wanted = format!("{uuid}:1-{number}");
        if number % 2 == 0 {
            let executed: Option<String> = conn.query_first("SELECT @@GLOBAL.gtid_executed").expect("rows");
            assert_eq!(executed, Some(wanted));
        } else {
            let mut row: mysql::Row =
                conn.query_first("SHOW BINARY LOG STATUS").expect("rows").expect("a row");
            assert_eq!(row.take::<String, _>("Executed_Gtid_Set"), Some(wanted));
        }
    }
    conn.query_drop("FLUSH TABLES WITH READ LOCK").expect("locked");
    let all = log_events(&mut conn, "").expect("events");
    assert_eq!(all.iter().filter(|(_, kind, ..)| kind == "Gtid").count(), 59);
    let definition = all.iter().find(|(.., info)| info.contains("CREATE TABLE")).expect("it is told");
    assert!(definition.3.starts_with("CREATE TABLE d.t (a INT PRIMARY KEY  ) /* xid="), "{definition:?}");
}
