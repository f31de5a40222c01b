//! Rows that a statement looked at, locked, and did not want; and keys that it did not touch.

use super::Client;
use super::anomalies::{Actor, Level, is_ok};

const TABLES: &str = "CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, k INT, v INT, KEY (k));
    INSERT INTO t VALUES (1, 10, 1, 0), (2, 20, 1, 1), (3, 30, 2, 0), (4, 40, 2, 1);
    CREATE TABLE s (id INT PRIMARY KEY, t INT, w INT, KEY (t));
    INSERT INTO s VALUES (1, 1, 0), (2, 1, 1), (3, 3, 0), (4, 3, 1)";

/// Each with the rows of `t` and of `s` that nobody else may lock at READ COMMITTED and at REPEATABLE READ.
const STATEMENTS: [(&str, &str, &str); 14] = [
    ("SELECT * FROM t WHERE id = 1 AND v = 5 FOR UPDATE", "", "t1"),
    ("SELECT * FROM t WHERE u = 20 AND v = 5 FOR SHARE", "", "t2"),
    ("SELECT * FROM t WHERE k = 1 AND v = 1 FOR UPDATE", "t2", "t1 t2"),
    ("SELECT * FROM t WHERE k = 1 AND v = 1 FOR SHARE", "t2", "t1 t2"),
    ("SELECT * FROM t WHERE id BETWEEN 2 AND 3 AND v = 0 ORDER BY v FOR UPDATE", "t3", "t2 t3"),
    ("SELECT COUNT(*) FROM t WHERE k IN (1, 2) AND v = 1 FOR UPDATE", "t2 t4", "t1 t2 t3 t4"),
    ("UPDATE t SET v = 7 WHERE id = 1 AND v = 5", "", "t1"),
    ("UPDATE t SET v = 7 WHERE k = 2 AND v = 0", "t3", "t3 t4"),
    ("UPDATE IGNORE t SET v = 7 WHERE k = 2 AND v = 0", "t3", "t3 t4"),
    ("UPDATE t SET v = 7 WHERE k = 2 AND v >= 0 ORDER BY v LIMIT 1", "t3 t4", "t3 t4"),
    ("DELETE FROM t WHERE id BETWEEN 1 AND 3 AND v = 1", "t2", "t1 t2 t3"),
    ("DELETE FROM t WHERE u > 10 AND v = 0 LIMIT 1", "t3", "t2 t3"),
    ("SELECT * FROM t JOIN s ON s.t = t.id WHERE t.id = 1 AND s.w = 1 FOR UPDATE", "t1 s2", "t1 s1 s2"),
    ("UPDATE t JOIN s ON s.t = t.id SET t.v = 7 WHERE s.w = 1 AND t.k = 2", "t3", "t3"),
];

const WAITS: &str = "ERROR 1205: Lock wait timeout exceeded; try restarting transaction";

/// The rows that others hold.
fn held(client: &mut Client) -> String {
    let mut held = Vec::new();
    for table in ["t", "s"] {
        let free = client.run(&format!("SELECT id FROM {table} FOR UPDATE SKIP LOCKED"));
        let is_free = |id: &i32| free.lines().any(|line| line == id.to_string());
        held.extend((1..=4).filter(|id| !is_free(id)).map(|id| format!("{table}{id}")));
    }
    held.join(" ")
}

#[test]
fn read_committed_holds_only_rows_that_match() {
    let mut one = Client::new();
    let mut two = one.another();
    two.run(TABLES);
    for (sql, at_read_committed, at_repeatable_read) in STATEMENTS {
        for (level, expected) in
            [(Level::ReadCommitted, at_read_committed), (Level::RepeatableRead, at_repeatable_read)]
        {
            one.run(level.set());
            one.run("BEGIN");
            let answer = one.run(sql);
            assert!(is_ok(&answer), "{sql}: {answer}");
            assert_eq!(held(&mut two), expected, "{sql} at {level:?}");
            one.run("ROLLBACK");
            assert_eq!(held(&mut two), "");
        }
    }
}

#[test]
fn what_was_held_before_stays_held() {
    let mut one = Client::new();
    let mut two = one.another();
    two.run(TABLES);
    one.run(Level::ReadCommitted.set());
    one.run("BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE; SELECT * FROM t WHERE id = 2 FOR SHARE");
    one.run("UPDATE t SET v = 8 WHERE id = 3");
    for sql in [
        "SELECT * FROM t WHERE id > 0 AND v = 5 FOR UPDATE",
        "UPDATE t SET k = 5 WHERE v = 5",
        "DELETE FROM t WHERE k < 9 AND v = 5",
        "UPDATE t SET k = 5 WHERE id = 1 AND v = 5",
    ] {
        assert!(is_ok(&one.run(sql)));
        assert_eq!(held(&mut two), "t1 t2 t3", "after {sql}");
    }
    // What was shared is still shared, and no more.
    two.check("SELECT v FROM t WHERE id = 2 FOR SHARE NOWAIT", "1");
    assert!(!is_ok(&two.run("SELECT v FROM t WHERE id = 1 FOR SHARE NOWAIT")));
}

#[test]
fn read_committed_updates_pass_over_held_rows_that_do_not_match() {
    let mut one = Client::new();
    let mut two = one.another();
    two.run(TABLES);
    two.run(Level::ReadCommitted.set());
    two.run("SET innodb_lock_wait_timeout = 1");
    one.run("BEGIN; UPDATE t SET v = 9 WHERE id = 1; INSERT INTO t VALUES (5, 50, 1, 1)");
    one.run("SELECT * FROM t WHERE id = 4 FOR SHARE; DELETE FROM t WHERE id = 3");
    let count = |n| format!("ok {n} (Rows matched: {n}  Changed: {n}  Warnings: 0)");
    // As they were last committed: 1 has 0, 3 has 0 and 4 has 1; there is no 5.
    for (sql, answer) in [
        ("UPDATE t SET v = 3 WHERE id < 3 AND v = 1", count(1)),
        ("UPDATE t SET v = 4 WHERE id > 0 AND v = 3", count(1)),
        ("UPDATE t SET v = 5 WHERE v = 4", count(1)),
        ("UPDATE t SET v = 6 WHERE v = 5", count(1)),
        ("UPDATE t SET v = 6 WHERE v = 9", count(0)),
        ("UPDATE t SET v = 7 WHERE id > 0 AND v = 0", WAITS.to_owned()),
        ("UPDATE t SET v = 7 WHERE v = 1", WAITS.to_owned()),
        // Single rows are waited for, and so are those of another index.
        ("UPDATE t SET v = 7 WHERE id = 1 AND v = 5", WAITS.to_owned()),
        ("UPDATE t SET v = 7 WHERE k = 1 AND v = 5", WAITS.to_owned()),
        ("DELETE FROM t WHERE id < 2 AND v = 5", WAITS.to_owned()),
    ] {
        assert_eq!(two.run(sql).trim(), answer, "{sql}");
    }
    two.run(Level::RepeatableRead.set());
    assert_eq!(two.run("UPDATE t SET v = 4 WHERE id > 0 AND v = 3").trim(), WAITS);
}

#[test]
fn rows_of_a_join_that_changed_while_it_waited_are_let_go() {
    let mut one = Client::new();
    one.run(TABLES);
    let mut three = one.another();
    let two = Actor::new(one.another());
    two.run(Level::ReadCommitted.set());
    two.run("BEGIN");
    one.run("BEGIN; UPDATE t SET k = 5 WHERE id = 3; UPDATE t SET v = 2 WHERE id = 4");
    let join = "UPDATE t JOIN s ON s.w = t.v SET t.u = t.u + 1 WHERE t.k IN (2, 4)";
    assert!(two.begin_waiting(join).is_none());
    one.run("UPDATE t SET k = 4 WHERE id = 2; COMMIT");
    assert!(two.answer().starts_with("ok 1 "));
    assert_eq!(held(&mut three), "t2");
}

#[test]
fn a_secondary_key_that_its_holder_leaves_alone_is_taken_at_once() {
    let mut one = Client::new();
    let mut two = one.another();
    two.run(TABLES);
    two.run("SET innodb_lock_wait_timeout = 1");
    let duplicate = "ERROR 1062: Duplicate entry '10' for key 't.u'";
    one.run("BEGIN; UPDATE t SET v = 9 WHERE id = 1; SELECT * FROM t WHERE id = 2 FOR UPDATE");
    for (sql, answer) in [
        ("INSERT INTO t VALUES (9, 10, 1, 1)", duplicate),
        ("UPDATE t SET u = 10 WHERE id = 3", duplicate),
        ("INSERT IGNORE INTO t VALUES (9, 20, 1, 1)", "ok 0"),
        ("INSERT INTO t VALUES (1, 90, 1, 1)", WAITS),
        ("REPLACE INTO t VALUES (9, 10, 1, 1)", WAITS),
    ] {
        assert_eq!(two.run(sql).trim(), answer, "{sql}");
    }
    one.run("UPDATE t SET u = 15 WHERE id = 1");
    for sql in ["INSERT INTO t VALUES (9, 10, 1, 1)", "INSERT INTO t VALUES (9, 15, 1, 1)"] {
        assert_eq!(two.run(sql).trim(), WAITS, "{sql}");
    }
}

#[test]
fn a_held_row_is_not_waited_for_by_a_key_that_it_had_before() {
    let mut one = Client::new();
    let (mut two, mut reader) = (one.another(), one.another());
    one.run(TABLES);
    two.run("SET innodb_lock_wait_timeout = 1");
    // As long as somebody reads the row as it was, its entries under the old keys stay.
    reader.run("BEGIN; SELECT * FROM t");
    one.run("UPDATE t SET id = 9, u = 90, k = 9 WHERE id = 1");
    let count = |n| format!("ok {n} (Rows matched: {n}  Changed: {n}  Warnings: 0)");
    for hold in [
        "UPDATE t SET v = 5 WHERE id = 9",
        "SELECT * FROM t WHERE id = 9 FOR UPDATE",
        "DELETE FROM t WHERE id = 9",
    ] {
        one.run("BEGIN");
        assert!(is_ok(&one.run(hold)));
        for level in [Level::ReadCommitted, Level::RepeatableRead] {
            two.run(level.set());
            for (sql, answer) in [
                ("SELECT id FROM t WHERE k = 1 FOR UPDATE", "2".to_owned()),
                ("SELECT id FROM t WHERE k IN (1, 2) FOR SHARE NOWAIT", "2\n3\n4".to_owned()),
                ("SELECT id FROM t WHERE id < 3 FOR UPDATE", "2".to_owned()),
                ("SELECT id FROM t WHERE u = 10 FOR UPDATE", String::new()),
                ("UPDATE t SET v = v + 1 WHERE k = 1", count(1)),
                ("UPDATE t SET v = v + 1 WHERE id = 1", count(0)),
                ("UPDATE t SET v = v + 1 WHERE u = 10", count(0)),
                ("DELETE FROM t WHERE u BETWEEN 5 AND 15", "ok 0".to_owned()),
            ] {
                assert_eq!(two.run(sql).trim(), answer, "{sql} at {level:?} beside {hold}");
            }
            assert!(!is_ok(&two.run("SELECT * FROM t WHERE k = 9 FOR UPDATE NOWAIT")));
        }
        one.run("ROLLBACK");
    }
}

#[test]
fn a_held_row_is_waited_for_by_each_key_that_its_holder_gave_it() {
    let mut one = Client::new();
    let mut two = one.another();
    one.run(TABLES);
    two.run("SET innodb_lock_wait_timeout = 1");
    // Found once, a unique key is known by a hint.
    for _ in 0..2 {
        two.run("UPDATE t SET v = v + 1 WHERE u = 20");
    }
    one.run("BEGIN; UPDATE t SET u = 25, k = 5 WHERE id = 2; UPDATE t SET u = 26, k = 6 WHERE id = 2");
    for key in ["u = 20", "u = 25", "u = 26", "k = 5", "k = 6", "u BETWEEN 19 AND 21", "k BETWEEN 1 AND 4"] {
        let sql = format!("SELECT id FROM t WHERE {key} FOR SHARE NOWAIT");
        assert!(!is_ok(&two.run(&sql)), "{sql}");
    }
    for key in ["u = 20", "u = 25", "k = 5"] {
        let sql = format!("UPDATE t SET v = 0 WHERE {key}");
        assert_eq!(two.run(&sql).trim(), WAITS, "{sql}");
    }
}

#[test]
fn a_scan_that_waited_meets_what_was_added_behind() {
    let mut one = Client::new();
    one.run(TABLES);
    let mut three = one.another();
    let two = Actor::new(one.another());
    for (scan, found) in [
        ("SELECT id FROM t WHERE k = 1 ORDER BY id FOR UPDATE", "1 2 9"),
        ("SELECT id FROM t WHERE id > 1 FOR UPDATE", "2 3 4 9"),
        ("SELECT id FROM t WHERE v < 2 FOR UPDATE", "1 2 3 4 9"),
    ] {
        one.run("BEGIN; SELECT id FROM t WHERE id = 2 FOR UPDATE");
        assert!(two.begin_waiting(scan).is_none());
        three.run("INSERT INTO t VALUES (9, 90, 1, 1)");
        one.run("COMMIT");
        assert_eq!(two.answer(), found, "{scan}");
        one.run("DELETE FROM t WHERE id = 9");
    }
}

#[test]
fn rows_of_a_table_are_locked_in_the_order_of_its_primary_key() {
    let mut one = Client::new();
    one.run(TABLES);
    let two = Actor::new(one.another());
    one.run("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 10, 1, 0)");
    one.run("BEGIN; SELECT id FROM t WHERE id = 1 FOR UPDATE");
    assert!(two.begin_waiting("DELETE FROM t WHERE v >= 0").is_none());
    // It waits for the first row, and holds none of those behind.
    one.check("SELECT COUNT(*) FROM t WHERE id > 1 FOR UPDATE NOWAIT; COMMIT", "3\nok 0");
    assert_eq!(two.answer(), "ok 4");
}
