//! Statements and DDL that wait for each other over tables' definitions.

use std::time::{Duration, Instant};

use super::Client;
use super::anomalies::Actor;

/// Runs a statement that will wait, in its own thread.
fn waits(actor: &Actor, sql: &str) {
    assert_eq!(actor.begin_waiting(sql), None, "{sql} waits");
}

#[test]
fn transactions_that_wait_for_ddl_in_a_circle_lose_one() {
    let mut setup = Client::new();
    setup.run("CREATE TABLE a (id INT PRIMARY KEY); CREATE TABLE b (id INT PRIMARY KEY); INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)");
    let [one, two, alter_a, alter_b] = [(); 4].map(|()| Actor::new(setup.another()));
    one.run("BEGIN; SELECT * FROM a");
    two.run("BEGIN; SELECT * FROM b");
    waits(&alter_b, "ALTER TABLE b ADD COLUMN x INT");
    waits(&alter_a, "ALTER TABLE a ADD COLUMN x INT");
    waits(&one, "SELECT * FROM b");
    let begun = Instant::now();
    // The one that closes the circle is rolled back, and so lets one ALTER after the other go on.
    let answer = two.run("SELECT * FROM a");
    assert!(answer.contains("ERROR 1213"), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(alter_b.answer().starts_with("ok 0"));
    let answer = one.answer();
    assert!(answer.contains("ERROR 1412") || answer.contains('1'), "{answer}");
    one.run("ROLLBACK");
    assert!(alter_a.answer().starts_with("ok 0"));
}

#[test]
fn statements_behind_ddl_do_not_wait_as_for_rows() {
    let mut setup = Client::new();
    setup.run("CREATE TABLE a (id INT PRIMARY KEY); INSERT INTO a VALUES (1)");
    let [holder, alter, reader, hasty] = [(); 4].map(|()| Actor::new(setup.another()));
    holder.run("BEGIN; SELECT * FROM a");
    waits(&alter, "ALTER TABLE a ADD COLUMN x INT");
    reader.run("SET innodb_lock_wait_timeout = 1");
    waits(&reader, "SELECT id FROM a");
    let begun = Instant::now();
    hasty.run("SET lock_wait_timeout = 1");
    let answer = hasty.run("SELECT id FROM a");
    assert!(answer.contains("ERROR 1205"), "{answer}");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    holder.run("COMMIT");
    assert!(alter.answer().starts_with("ok 0"));
    assert_eq!(reader.answer(), "1");
}

#[test]
fn a_backup_keeps_others_definitions_waiting() {
    let mut setup = Client::new();
    setup.run("CREATE TABLE a (id INT PRIMARY KEY)");
    let [one, two, other] = [(); 3].map(|()| Actor::new(setup.another()));
    one.run("LOCK INSTANCE FOR BACKUP");
    two.run("LOCK INSTANCE FOR BACKUP; LOCK INSTANCE FOR BACKUP");
    assert!(other.run("INSERT INTO a VALUES (1)").starts_with("ok 1"));
    assert!(other.run("CREATE TEMPORARY TABLE t (id INT)").starts_with("ok 0"));
    for definition in
        ["CREATE TABLE b (id INT)", "ALTER TABLE a ADD COLUMN x INT", "CREATE USER u", "DROP TABLE a"]
    {
        other.run("SET lock_wait_timeout = 1");
        let answer = other.run(definition);
        assert!(answer.contains("ERROR 1205"), "{definition}: {answer}");
    }
    // It waits for the other's backup, not for its own.
    waits(&one, "CREATE TABLE b (id INT)");
    two.run("UNLOCK INSTANCE");
    assert!(one.answer().starts_with("ok 0"));
    // One UNLOCK is enough, however often it was locked.
    other.run("SET lock_wait_timeout = 60");
    waits(&other, "DROP TABLE b");
    one.run("UNLOCK INSTANCE");
    assert!(other.answer().starts_with("ok 0"));
    two.run("UNLOCK INSTANCE");
    // A backup waits for definitions that are being changed, and ends with its session.
    two.run("LOCK INSTANCE FOR BACKUP");
    waits(&other, "DROP TABLE a");
    drop(two);
    assert!(other.answer().starts_with("ok 0"));
}
