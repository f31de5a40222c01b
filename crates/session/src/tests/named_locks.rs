//! Locks by name, where they are waited for.

use avocet_channel::Interruption;

use super::Client;

/// Runs a text on a thread of its own.
fn beside(mut client: Client, sql: &'static str) -> std::thread::JoinHandle<(Client, String)> {
    std::thread::spawn(move || {
        let answer = client.run(sql);
        (client, answer)
    })
}

fn until_somebody_waits(client: &Client, waiters: usize) {
    while client.database.0.locks.waiters() < waiters {
        std::thread::yield_now();
    }
}

#[test]
fn waiters_get_a_lock_in_the_order_in_which_they_came() {
    let mut first = Client::new();
    first.check("SELECT GET_LOCK('a', 0)", "1");
    let second = beside(first.another(), "SELECT GET_LOCK('a', 60)");
    until_somebody_waits(&first, 1);
    let third = beside(first.another(), "SELECT GET_LOCK('A', -1)");
    until_somebody_waits(&first, 2);
    first.check("SELECT RELEASE_LOCK('a')", "1");
    let (mut second, answer) = second.join().expect("it ends");
    assert_eq!(answer, "1\n");
    // It is the third's, who waits, before it is anybody's.
    second.check("SELECT RELEASE_LOCK('a')", "1");
    let (third, answer) = third.join().expect("it ends");
    assert_eq!(answer, "1\n");
    first.check("SELECT GET_LOCK('a', 0)", "0");
    // The end of a connection gives back its locks.
    drop(third);
    first.check("SELECT GET_LOCK('a', 0)", "1");
}

#[test]
fn a_circle_is_refused_at_once() {
    let mut first = Client::new();
    let mut second = first.another();
    first.check("SELECT GET_LOCK('a', 0)", "1");
    second.check("SELECT GET_LOCK('b', 0)", "1");
    let waiting = beside(second, "SELECT GET_LOCK('a', -1)");
    until_somebody_waits(&first, 1);
    let answer = first.run("SELECT GET_LOCK('b', -1)");
    assert!(answer.starts_with("ERROR 3058: Deadlock found"), "{answer}");
    first.check("SELECT RELEASE_ALL_LOCKS()", "1");
    assert_eq!(waiting.join().expect("it ends").1, "1\n");
}

#[test]
fn kill_ends_waits_and_sleep() {
    let mut first = Client::new();
    first.check("SELECT GET_LOCK('a', 0)", "1");
    let interrupted = "ERROR 1317: Query execution was interrupted\n";
    for sql in ["SELECT GET_LOCK('a', -1)", "SELECT SLEEP(100)", "SELECT SLEEP(1e18)", "SELECT SLEEP(1e300)"]
    {
        let other = first.another();
        let interrupt = other.session.info.interrupt.clone();
        let waiting = beside(other, sql);
        // Raised before the wait begins, it ends it all the same.
        interrupt.raise(Interruption::Statement);
        let answer = waiting.join().expect("it ends").1;
        assert!(answer == interrupted || (sql.contains("SLEEP") && answer == "1\n"), "{sql}: {answer}");
    }
    // What goes on after a SLEEP that was interrupted is interrupted, too.
    for sql in ["SELECT SLEEP(100) FROM (SELECT 1 UNION ALL SELECT 2) d", "SELECT SLEEP(100), SLEEP(100)"] {
        let other = first.another();
        let interrupt = other.session.info.interrupt.clone();
        let waiting = beside(other, sql);
        std::thread::sleep(std::time::Duration::from_millis(50));
        interrupt.raise(Interruption::Statement);
        // The first of two rows may be on its way already.
        let answer = waiting.join().expect("it ends").1;
        assert!(answer.ends_with(interrupted), "{sql}: {answer}");
    }
}

/// Functions that wait, and waits for rows, end with the statement's time.
/// Whoever evaluates the statement may be a thread that goes on for a while: neither the session nor one that is gone gets the lock then.
#[test]
fn what_was_killed_takes_no_lock_later() {
    for sql in [
        "SELECT GET_LOCK('a', 20)",
        "SET avocet_point_path = OFF; SELECT GET_LOCK('a', 20)",
        "WITH w AS (SELECT GET_LOCK('a', 20) g) SELECT * FROM w, w x",
        "SET max_execution_time = 100; WITH w AS (SELECT GET_LOCK('a', 20) g) SELECT * FROM w, w x",
    ] {
        for ends in [false, true] {
            let mut first = Client::new();
            first.check("SELECT GET_LOCK('a', 0)", "1");
            let other = first.another();
            let interrupt = other.session.info.interrupt.clone();
            let waiting = beside(other, sql);
            until_somebody_waits(&first, 1);
            if !sql.contains("max_execution_time") {
                interrupt.raise(if ends { Interruption::Connection } else { Interruption::Statement });
                first.check("SELECT RELEASE_LOCK('a')", "1");
            }
            let (mut other, answer) = waiting.join().expect("it ends");
            assert!(answer.contains("ERROR"), "{sql}: {answer}");
            if sql.contains("max_execution_time") {
                first.check("SELECT RELEASE_LOCK('a')", "1");
            }
            if ends {
                drop(other);
            } else {
                other.session.info.interrupt.begin_statement();
                other.check("SELECT 1", "1");
            }
            // Who had still waited for it would have it now, or get it first.
            first.check("SELECT GET_LOCK('a', 5)", "1");
        }
    }
}

#[test]
fn the_time_limit_ends_waits() {
    let mut holder = Client::new();
    holder.run("CREATE TABLE t (id INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    holder.run("CREATE TABLE o (id INT PRIMARY KEY); INSERT INTO o VALUES (1)");
    holder.run("SELECT GET_LOCK('L', 0); BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE");
    let mut client = holder.another();
    client.run("SET max_execution_time = 100, innodb_lock_wait_timeout = 100");
    let begin = std::time::Instant::now();
    let over = "ERROR 3024: Query execution was interrupted, maximum statement execution time exceeded";
    for (sql, answer) in [
        ("SELECT SLEEP(100)", "1"),
        ("SELECT SLEEP(100), SLEEP(1e10)", "1|1"),
        ("SELECT SLEEP(100) + 1", "2"),
        ("SELECT 1 WHERE SLEEP(100)", over),
        ("SELECT MAX(SLEEP(100))", over),
        ("SELECT SLEEP(100) FROM o", over),
        ("SELECT SLEEP(100) FROM t", over),
        ("SELECT * FROM (SELECT SLEEP(100)) d", over),
        ("WITH w AS (SELECT SLEEP(100) AS a) SELECT * FROM w", over),
        ("SELECT SLEEP(100) UNION SELECT 1", over),
        ("SELECT id FROM t ORDER BY SLEEP(100)", over),
        ("SELECT GET_LOCK('L', 100)", over),
        ("SELECT GET_LOCK('L', -1) FROM o", over),
        ("SELECT * FROM t WHERE id = 1 FOR UPDATE", over),
        ("SELECT * FROM t FOR SHARE", over),
        ("SELECT /*+ MAX_EXECUTION_TIME(50) */ SLEEP(100)", "1"),
        ("SELECT /*+ MAX_EXECUTION_TIME(0) */ SLEEP(100)", "1"),
        ("SET max_execution_time = 100", "ok 0"),
        // It is for queries alone.
        ("DO SLEEP(0.2)", "ok 0"),
        ("INSERT INTO o SELECT SLEEP(0.2) + 5", "ok 1 (Records: 1  Duplicates: 0  Warnings: 0)"),
        ("SET innodb_lock_wait_timeout = 1", "ok 0"),
        (
            "UPDATE t SET b = 5 WHERE id = 1",
            "ERROR 1205: Lock wait timeout exceeded; try restarting transaction",
        ),
        ("SELECT GET_LOCK('M', 100)", "1"),
    ] {
        let got = client.run(sql);
        assert!(got.trim_end().ends_with(answer), "{sql}: {got}");
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(30), "nothing waits for long");
}
