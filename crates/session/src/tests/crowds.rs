//! Many connections that want one row: they wait without a thread for each, and go on one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_channel::Interruption;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;

use super::Client;
use super::client::Printer;
use crate::Session;
use crate::api::SqlSession;

/// More than tokio starts threads for blocking work by default.
const CROWD: usize = 1_000;

fn client() -> Client {
    let mut client = Client::new();
    let runtime = Builder::new_multi_thread().worker_threads(1).max_blocking_threads(16).enable_all().build();
    client.runtime = Arc::new(runtime.expect("a runtime"));
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT, UNIQUE (k)); INSERT INTO t VALUES (1, 10, 0), (2, 20, 0);
         CREATE TABLE u LIKE t; INSERT INTO u SELECT * FROM t;
         CREATE TABLE c (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id))",
    );
    client
}

fn begin(client: &Client, sql: &str) -> JoinHandle<(String, Session)> {
    let mut session = client.database.session(Some("test")).expect("a session");
    let sql = sql.to_owned();
    client.runtime.spawn(async move {
        let mut printer = Printer::default();
        let result = session.execute(&sql, &mut printer).await;
        (printer.end(result), session)
    })
}

fn threads() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).expect("it is there");
    line.trim().parse().expect("a number")
}

/// Waits until so many wait for rows.
fn until_waiting(client: &Client, form: &str, count: usize) {
    let end = Instant::now() + Duration::from_secs(10);
    while client.database.engine().sleeping_waiters() < count {
        assert!(Instant::now() < end, "{form}: {} wait", client.database.engine().sleeping_waiters());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn thousands_wait_for_a_row_without_threads() {
    let forms = [
        ("UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE t SET v = v WHERE id = 1", CROWD),
        ("UPDATE t SET v = v + 1 WHERE k = 10", "DELETE FROM t WHERE id = 2", 0),
        (
            "INSERT INTO t VALUES (1, 10, 1) ON DUPLICATE KEY UPDATE v = v + 1",
            "UPDATE t SET v = 0 WHERE id = 1",
            CROWD,
        ),
        (
            "INSERT INTO t VALUES (5, 50, 1) ON DUPLICATE KEY UPDATE v = v + 1",
            "INSERT INTO t VALUES (5, 50, 0)",
            CROWD,
        ),
        ("INSERT IGNORE INTO t VALUES (6, 60, 0)", "INSERT INTO t VALUES (6, 60, 0)", CROWD),
        ("REPLACE INTO u VALUES (1, 10, 7)", "UPDATE u SET v = 0 WHERE id = 1", CROWD),
        ("SELECT v FROM t WHERE id = 1 FOR UPDATE", "UPDATE t SET v = 3 WHERE id = 1", CROWD),
        ("SELECT v FROM t WHERE id = 1 FOR SHARE", "UPDATE t SET v = 3 WHERE id = 1", CROWD),
        ("INSERT INTO c VALUES (1, 2)", "UPDATE t SET id = 2 WHERE id = 2", 0),
    ];
    for (form, held, waiting) in forms {
        let mut holder = client();
        holder.run("BEGIN");
        let said = holder.run(held);
        assert!(!said.contains("ERROR"), "{held}: {said}");
        let before = threads();
        let crowd: Vec<_> = (0..CROWD).map(|_| begin(&holder, form)).collect();
        until_waiting(&holder, form, waiting);
        assert!(threads() <= before + 20, "{form}: {} threads", threads());
        let begun = Instant::now();
        holder.on_the_thread("COMMIT");
        for task in crowd {
            let (said, _) = holder.runtime.block_on(task).expect("no panic");
            let is_late = form.contains("INTO c") && said.contains("ERROR 1062");
            assert!(!said.contains("ERROR") || is_late, "{form}: {said}");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{form}: {:?}", begun.elapsed());
        if form.contains("v + 1 WHERE") {
            holder.check("SELECT v FROM t WHERE k = 10", &CROWD.to_string());
        }
        if form.contains("(5") {
            holder.check("SELECT v FROM t WHERE id = 5", &CROWD.to_string());
        }
        assert_eq!(holder.database.engine().sleeping_waiters(), 0);
    }
}

#[test]
fn waits_without_a_thread_end_on_kill_time_out_and_when_dropped() {
    let mut holder = client();
    holder.run("BEGIN; UPDATE t SET v = 1 WHERE id = 1");
    for form in [
        "UPDATE t SET v = 2 WHERE id = 1",
        "INSERT INTO t VALUES (3, 30, 3), (1, 10, 1)",
        "DELETE FROM t WHERE k = 10",
    ] {
        let mut killed = holder.another();
        let interrupt = killed.session.info.interrupt.clone();
        let said = std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                interrupt.raise(Interruption::Statement);
            });
            killed.run(form)
        });
        // The key is the same before and after what the holder did: no reason to wait for it.
        let is_taken = form.starts_with("INSERT") && said.contains("ERROR 1062");
        assert!(said.contains("ERROR 1317") || is_taken, "{form}: {said}");
        killed.session.info.interrupt.begin_statement();
        killed.check("SELECT COUNT(*) FROM t", "2");
        killed.run("SET innodb_lock_wait_timeout = 1");
        let begun = Instant::now();
        let said = killed.run(form);
        assert!(said.contains("ERROR 1205") || is_taken, "{form}: {said}");
        assert!(is_taken || (900..3_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
        // The client goes away.
        let task = begin(&holder, form);
        std::thread::sleep(Duration::from_millis(20));
        task.abort();
        let _ = holder.runtime.block_on(task);
        assert_eq!(holder.database.engine().sleeping_waiters(), 0, "{form}");
    }
    holder.run("ROLLBACK");
    holder.check("SELECT v FROM t WHERE id = 1", "0");
}

#[test]
fn a_deadlock_of_waits_without_threads_is_found() {
    let mut first = client();
    let mut second = first.another();
    for (a, b) in [
        ("UPDATE t SET v = v + 1 WHERE id = 2", "UPDATE t SET v = v + 1 WHERE id = 1"),
        (
            "SELECT * FROM t WHERE id = 2 FOR SHARE",
            "INSERT INTO t VALUES (7, 70, 0) ON DUPLICATE KEY UPDATE v = 7",
        ),
        ("DELETE FROM t WHERE k = 20", "SELECT * FROM t WHERE k = 10 FOR UPDATE"),
    ] {
        first.run("BEGIN; UPDATE t SET v = v + 10 WHERE id = 1");
        second.run("BEGIN; UPDATE t SET v = v + 10 WHERE id = 2");
        let is_insert = b.starts_with("INSERT");
        if is_insert {
            first.run("INSERT INTO t VALUES (7, 70, 1)");
        }
        let waits = first.runtime.clone();
        let (one, other) = std::thread::scope(|threads| {
            let one = threads.spawn(|| first.run(a));
            std::thread::sleep(Duration::from_millis(30));
            let other = second.run(b);
            let _ = second.run("ROLLBACK");
            (one.join().expect("no panic"), other)
        });
        drop(waits);
        assert!(one.contains("ERROR 1213") != other.contains("ERROR 1213"), "{a} / {b}: {one} / {other}");
        first.run("ROLLBACK");
    }
}

#[test]
fn a_statement_that_fails_when_it_begins_anew_fails() {
    let mut holder = client();
    for (held, sql, answer) in [
        ("DELETE FROM t WHERE id = 2", "INSERT INTO c VALUES (1, 2)", "ERROR 1452"),
        ("DELETE FROM t WHERE id = 2", "UPDATE t SET v = 1 WHERE id = 2", "ok 0"),
        ("UPDATE t SET id = 3 WHERE id = 2", "INSERT INTO c VALUES (1, 2)", "ERROR 1452"),
        ("INSERT INTO t VALUES (9, 90, 0)", "INSERT INTO t VALUES (9, 91, 0)", "ERROR 1062"),
        ("INSERT INTO t VALUES (9, 90, 0)", "UPDATE t SET k = 90 WHERE id = 2", "ERROR 1062"),
    ] {
        holder.run("BEGIN");
        holder.run(held);
        let task = begin(&holder, sql);
        until_waiting(&holder, sql, 1);
        holder.run("COMMIT");
        let (said, _) = holder.runtime.block_on(task).expect("no panic");
        assert!(said.starts_with(answer), "{held} / {sql}: {said}");
        holder.run("DELETE FROM c; DELETE FROM t WHERE id > 1; INSERT INTO t VALUES (2, 20, 0)");
    }
}
