//! Changes that meet keys which other transactions have given, taken or left since the snapshot: every form of change, at
//! every level, on plans and without them. Each ends at once, and as its level has it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use avocet_channel::Interruption;

use super::anomalies::{Actor, LEVELS, Level};
use super::client::Client;

/// `t (id PRIMARY KEY, u UNIQUE, v)` holds (1, 1, 10), (2, 2, 20); the statement is about key 5, which is new, or about key 1.
const FORMS: &[&str] = &[
    "INSERT INTO t VALUES (#, #, 0)",
    "INSERT IGNORE INTO t VALUES (#, #, 0)",
    "REPLACE INTO t VALUES (#, #, 0)",
    "INSERT INTO t VALUES (#, #, 0) ON DUPLICATE KEY UPDATE v = v + 1",
    "INSERT INTO t VALUES (90, #, 0) ON DUPLICATE KEY UPDATE v = v + 1",
    "REPLACE INTO t VALUES (90, #, 0)",
    "INSERT INTO t SELECT #, #, 0 FROM one ON DUPLICATE KEY UPDATE v = v + 1",
    "INSERT INTO t VALUES (#, #, 0), (91, 91, 0) ON DUPLICATE KEY UPDATE v = v + 1",
    "REPLACE INTO t SELECT #, #, 0 FROM one",
    "UPDATE t SET id = # WHERE id = 2",
    "UPDATE t SET u = # WHERE id = 2",
    "UPDATE IGNORE t SET u = # WHERE id = 2",
    "UPDATE t JOIN one ON one.n = 1 SET t.u = # WHERE t.id = 2",
    "UPDATE t SET v = v + 1 WHERE u = #",
    "DELETE FROM t WHERE id = #",
];

/// What another transaction commits meanwhile, and the key that the statement is about.
const MEANWHILE: &[(&str, &str)] = &[
    ("INSERT INTO t VALUES (5, 5, 50)", "5"),
    ("UPDATE t SET id = 5, u = 5 WHERE id = 1", "5"),
    ("UPDATE t SET u = 5 WHERE id = 1", "5"),
    ("UPDATE t SET v = v + 1 WHERE id = 1", "1"),
    ("UPDATE t SET id = 6, u = 6 WHERE id = 1", "1"),
    ("DELETE FROM t WHERE id = 1", "1"),
    ("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 1, 11)", "1"),
    ("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (7, 1, 11)", "1"),
];

/// 1062 is a duplicate; strictly, 1020 or 1213 for what has changed since the snapshot.
fn allowed(level: Level, answer: &str) -> bool {
    let errno = answer.strip_prefix("ERROR ").and_then(|rest| rest.split(':').next());
    let of_snapshot = match level {
        Level::Strict => "1020",
        Level::Serializable => "1213",
        Level::ReadUncommitted | Level::ReadCommitted | Level::RepeatableRead => "1062",
    };
    errno.is_none_or(|errno| errno == "1062" || errno == of_snapshot)
}

fn set_up(client: &mut Client) {
    client.run("CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, v INT); CREATE TABLE one (n INT)");
    client.run("INSERT INTO one VALUES (1)");
}

fn fill(client: &mut Client) {
    client.run("DELETE FROM t");
    client.run("INSERT INTO t VALUES (1, 1, 10), (2, 2, 20)");
}

fn check(level: Level, setting: &str) {
    let mut other = Client::new();
    set_up(&mut other);
    let one = Actor::new(other.another());
    one.run(level.set());
    one.run(setting);
    one.run("SET innodb_lock_wait_timeout = 5");
    for (meanwhile, key) in MEANWHILE {
        for form in FORMS {
            let statement = form.replace('#', key);
            let what = format!("{level:?} {setting}: {statement} after {meanwhile}");
            for ending in ["COMMIT", "ROLLBACK"] {
                fill(&mut other);
                one.run("BEGIN");
                one.run("SELECT * FROM t");
                other.run("BEGIN");
                other.run(meanwhile);
                other.run(ending);
                // `answer` waits for a minute at most: a statement that does not end fails here.
                let answer = one.run(&statement);
                assert!(allowed(level, &answer), "{what}, {ending}: {answer}");
                if ending == "ROLLBACK" {
                    let of_snapshot = answer.contains("1020") || answer.contains("1213");
                    assert!(!of_snapshot, "{what}: nothing has changed, {answer}");
                }
                let committed = one.run("COMMIT");
                assert!(allowed(level, &committed), "{what}, {ending}: COMMIT: {committed}");
            }
        }
    }
}

#[test]
fn changes_of_keys_that_others_have_changed_end_as_their_level_has_it() {
    for level in LEVELS {
        check(level, "SET avocet_point_path = ON");
        check(level, "SET avocet_point_path = OFF");
    }
}

/// While the other transaction is open the statement waits for it, and then goes on.
#[test]
fn upserts_wait_for_the_transaction_that_has_their_key() {
    for level in LEVELS {
        for ending in ["COMMIT", "ROLLBACK"] {
            let mut other = Client::new();
            set_up(&mut other);
            let one = Actor::new(other.another());
            one.run(level.set());
            for form in &FORMS[2..9] {
                fill(&mut other);
                one.run("BEGIN");
                one.run("SELECT * FROM t");
                other.run("BEGIN; INSERT INTO t VALUES (5, 5, 50)");
                let statement = form.replace('#', "5");
                let early = one.begin_waiting(&statement);
                assert!(early.is_none(), "{level:?}: {statement} does not wait: {early:?}");
                other.run(ending);
                let answer = one.answer();
                assert!(allowed(level, &answer), "{level:?}: {statement}, {ending}: {answer}");
                one.run("ROLLBACK");
            }
        }
    }
}

/// A transaction at a strict level has met a row that is newer than its snapshot, without an error, before it runs these:
/// they find their rows at the snapshot, lock them, and must not look for newer ones for ever.
#[test]
fn statements_that_find_and_lock_end_after_newer_rows_were_met() {
    let changes = [
        "UPDATE t JOIN s ON s.id = t.id SET t.v = t.v + 1, s.w = s.w + 1",
        "UPDATE t SET v = v + 1 WHERE id IN (SELECT id FROM s)",
        "DELETE t FROM t JOIN s ON s.id = t.id",
        "UPDATE t JOIN (SELECT id, ROW_NUMBER() OVER (ORDER BY w) AS n FROM s) x ON x.id = t.id SET t.v = x.n",
        "SELECT v, COUNT(*) FROM t GROUP BY v FOR UPDATE",
        "SELECT t.v FROM t LEFT JOIN s ON s.w = t.v ORDER BY s.id, t.id LIMIT 1 FOR UPDATE",
        "INSERT INTO s SELECT id + 100, v FROM t",
    ];
    let meetings = ["INSERT IGNORE INTO t VALUES (7, 1)", "INSERT IGNORE INTO t VALUES (8, 0), (7, 1)"];
    for level in [
        "transaction_isolation = 'READ-COMMITTED'",
        "transaction_isolation = 'REPEATABLE-READ'",
        "transaction_isolation = 'REPEATABLE-READ', innodb_snapshot_isolation = ON",
        "transaction_isolation = 'SERIALIZABLE'",
    ] {
        for meeting in meetings {
            for change in changes {
                let mut client = Client::new();
                client.run(
                    "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2);
                     CREATE TABLE s (id INT PRIMARY KEY, w INT); INSERT INTO s VALUES (1, 1), (2, 2)",
                );
                let mut other = client.another();
                client.run(&format!("SET max_execution_time = 5000, {level}; BEGIN; SELECT * FROM t"));
                other.run("INSERT INTO t VALUES (7, 7)");
                client.run(meeting);
                let interrupt = client.session.info.interrupt.clone();
                let (done, ended) = channel::<()>();
                let answer = std::thread::scope(|scope| {
                    scope.spawn(move || {
                        if ended.recv_timeout(Duration::from_secs(10)) == Err(RecvTimeoutError::Timeout) {
                            interrupt.raise(Interruption::Statement);
                        }
                    });
                    let answer = client.run(change);
                    drop(done);
                    answer
                });
                assert!(!answer.contains("ERROR 1317"), "{level}: {meeting}, {change}: {answer}");
                client.run("COMMIT");
            }
        }
    }
}

/// MySQL 9.7's OK packets: what was generated, else the number of the last row; LAST_INSERT_ID() knows only the former.
#[test]
fn clients_are_told_of_explicit_numbers() {
    for point_path in ["ON", "OFF"] {
        let mut client = Client::new();
        client.run(&format!("SET avocet_point_path = {point_path}"));
        client.run(
            "CREATE TABLE ai (id INT AUTO_INCREMENT PRIMARY KEY, v INT);
             CREATE TABLE na (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(5));
             CREATE TABLE oc (id INT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b INT);
             INSERT INTO oc VALUES (1, 1, 1), (2, 2, 2); CREATE TABLE plain (id INT PRIMARY KEY)",
        );
        for (sql, told) in [
            ("INSERT INTO ai VALUES (7, 1)", "ok 1 id 7"),
            ("INSERT INTO ai VALUES (20, 1), (30, 2)", "ok 2 id 30"),
            ("INSERT INTO ai VALUES (7, 1) ON DUPLICATE KEY UPDATE v = 9", "ok 2 id 7"),
            ("INSERT INTO ai VALUES (7, 1) ON DUPLICATE KEY UPDATE v = 9", "ok 0"),
            ("REPLACE INTO ai VALUES (7, 3)", "ok 2 id 7"),
            ("INSERT INTO ai SELECT 50, 1", "ok 1 id 50"),
            ("INSERT IGNORE INTO ai VALUES (50, 2)", "ok 0"),
            ("INSERT INTO oc (a, b) VALUES (2, 5) ON DUPLICATE KEY UPDATE b = b + 10", "ok 2 id 2"),
            ("INSERT INTO na VALUES (-1, 'x')", "ok 1 id 18446744073709551615"),
            ("INSERT INTO plain VALUES (5)", "ok 1"),
            ("UPDATE ai SET v = 4 WHERE id = 7", "ok 1"),
        ] {
            let answer = client.run(sql);
            assert_eq!(answer.trim().split(" (").next(), Some(told), "{sql}");
        }
        assert_eq!(client.run("SELECT LAST_INSERT_ID()"), "0\n");
        assert_eq!(client.run("INSERT INTO ai (v) VALUES (1)").trim(), "ok 1 id 51");
        assert_eq!(client.run("SELECT LAST_INSERT_ID()"), "51\n");
    }
}

/// What a statement's subqueries give is what there is when the row is changed, not what there was when the statement began and
/// had to wait for it: "add a line, and sum the lines up".
#[test]
fn subqueries_of_upserts_see_what_was_waited_for() {
    let levels = ["READ-COMMITTED", "REPEATABLE-READ"];
    let forms = [
        "INSERT INTO o VALUES (1, 0) ON DUPLICATE KEY UPDATE total = (SELECT SUM(q) FROM l WHERE l.oid = o.id)",
        "INSERT INTO o VALUES (1, (SELECT SUM(q) FROM l WHERE l.oid = 1)) ON DUPLICATE KEY UPDATE total = VALUES(total)",
        "INSERT INTO o SELECT 1, 0 ON DUPLICATE KEY UPDATE total = (SELECT SUM(q) FROM l WHERE l.oid = o.id)",
        "REPLACE INTO o VALUES (1, (SELECT SUM(q) FROM l WHERE l.oid = 1))",
        "REPLACE INTO o SET id = 1, total = (SELECT SUM(q) FROM l WHERE l.oid = 1)",
        "REPLACE INTO o VALUES (7, (SELECT COUNT(*) FROM l)), (1, (SELECT SUM(q) FROM l WHERE l.oid = 1))",
        "UPDATE o SET total = (SELECT SUM(q) FROM l WHERE l.oid = o.id) WHERE id = 1",
    ];
    for level in levels {
        for point_path in ["ON", "OFF"] {
            for form in forms {
                let mut other = Client::new();
                other.run(
                    "CREATE TABLE o (id INT PRIMARY KEY, total INT); INSERT INTO o VALUES (1, 0);
                     CREATE TABLE l (id INT AUTO_INCREMENT PRIMARY KEY, oid INT, q INT, KEY (oid))",
                );
                let one = Actor::new(other.another());
                one.run(&format!("SET transaction_isolation = '{level}', avocet_point_path = {point_path}"));
                other.run("BEGIN; INSERT INTO l (oid, q) VALUES (1, 5); UPDATE o SET total = 5 WHERE id = 1");
                one.run("BEGIN; INSERT INTO l (oid, q) VALUES (1, 7)");
                let early = one.begin_waiting(form);
                assert!(early.is_none(), "{level} {point_path}: {form} does not wait: {early:?}");
                other.run("COMMIT");
                let answer = one.answer();
                assert!(!answer.contains("ERROR"), "{level} {point_path}: {form}: {answer}");
                one.run("COMMIT");
                let what = format!("{level} {point_path}: {form}: {answer}");
                assert_eq!(other.run("SELECT total FROM o WHERE id = 1").trim(), "12", "{what}");
            }
        }
    }
}
