//! Transactions: visibility, rollback of statements and transactions, locks.

use super::{Client, check};

#[test]
fn transactions_commit_and_roll_back() {
    check(&[
        ("CREATE TABLE t (id INT PRIMARY KEY)", "ok 0"),
        ("BEGIN; INSERT INTO t VALUES (1); ROLLBACK", "ok 0\nok 1\nok 0"),
        ("SELECT COUNT(*) FROM t", "0"),
        ("START TRANSACTION; INSERT INTO t VALUES (1); COMMIT", "ok 0\nok 1\nok 0"),
        ("BEGIN; INSERT INTO t VALUES (2)", "ok 0\nok 1"),
        ("INSERT INTO t VALUES (3), (1)", "ERROR 1062: Duplicate entry '1' for key 't.PRIMARY'"),
        ("COMMIT; SELECT id FROM t ORDER BY id", "ok 0\n1\n2"),
        (
            "SET autocommit = 0; INSERT INTO t VALUES (9); ROLLBACK; SET autocommit = 1",
            "ok 0\nok 1\nok 0\nok 0",
        ),
        ("BEGIN; INSERT INTO t VALUES (4); CREATE TABLE other (a INT); ROLLBACK", "ok 0\nok 1\nok 0\nok 0"),
        ("SELECT COUNT(*) FROM t", "3"),
        (
            "START TRANSACTION READ ONLY; DELETE FROM t",
            "ok 0\nERROR 1792: Cannot execute statement in a READ ONLY transaction.",
        ),
        ("ROLLBACK", "ok 0"),
        ("SAVEPOINT s; ROLLBACK TO s", "ok 0\nERROR 1305: SAVEPOINT s does not exist"),
    ]);
}

#[test]
fn repeatable_reads_repeat_and_locking_reads_are_current() {
    let mut one = Client::new();
    one.check("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10)", "ok 0\nok 1");
    let mut two = one.another();
    one.check("BEGIN; SELECT v FROM t WHERE id = 1", "ok 0\n10");
    two.check("UPDATE t SET v = 20", "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)");
    two.check("INSERT INTO t VALUES (2, 5)", "ok 1");
    one.check("SELECT SUM(v) FROM t", "10");
    one.check("SELECT v FROM t WHERE id = 1 FOR UPDATE", "20");
    one.check("UPDATE t SET v = v + 1", "ok 2 (Rows matched: 2  Changed: 2  Warnings: 0)");
    one.check("COMMIT; SELECT id, v FROM t ORDER BY id", "ok 0\n1|21\n2|6");
    one.check(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN; SELECT COUNT(*) FROM t",
        "ok 0\nok 0\n2",
    );
    two.check("DELETE FROM t WHERE id = 2", "ok 1");
    one.check("SELECT COUNT(*) FROM t", "1");
}

#[test]
fn waits_for_locks_end() {
    let mut one = Client::new();
    one.check(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 0), (2, 0)",
        "ok 0\nok 2 (Records: 2  Duplicates: 0  Warnings: 0)",
    );
    let mut two = one.another();
    one.check(
        "BEGIN; UPDATE t SET v = 1 WHERE id = 1",
        "ok 0\nok 1 (Rows matched: 1  Changed: 1  Warnings: 0)",
    );
    two.check("SET innodb_lock_wait_timeout = 1; BEGIN; INSERT INTO t VALUES (3, 3)", "ok 0\nok 0\nok 1");
    two.check(
        "UPDATE t SET v = 2 WHERE id = 1",
        "ERROR 1205: Lock wait timeout exceeded; try restarting transaction",
    );
    one.check("COMMIT", "ok 0");
    two.check("COMMIT; SELECT COUNT(*) FROM t", "ok 0\n3");
}
