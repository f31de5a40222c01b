//! Defaults that are expressions, generated columns and CHECK constraints hold for every row, whichever way it came.

use avocet_engine::{EngineError, TxnOptions};

use super::{Client, check};

avocet_engine::row! {
    struct Item {
        id: i64,
        amount: i64,
    }
}

const TABLE: &str = "CREATE TABLE t (id BIGINT PRIMARY KEY, amount BIGINT NOT NULL, \
    half BIGINT AS (amount DIV 2), label VARCHAR(20) DEFAULT (CONCAT('n', id)), \
    quarter BIGINT AS (half DIV 2) STORED NOT NULL, KEY (half), CONSTRAINT small CHECK (quarter < 1000))";

/// What no row may show.
const WRONG: &str = "SELECT COUNT(*) FROM t WHERE NOT (half <=> amount DIV 2) OR NOT (quarter <=> half DIV 2) OR quarter >= 1000 \
    OR half NOT IN (SELECT half FROM t FORCE INDEX (half) WHERE half >= 0)";

#[test]
fn rows_from_rust_obey_definitions() {
    let mut client = Client::new();
    assert_eq!(client.run(TABLE), "ok 0\n");
    let engine = client.database.engine().clone();
    let items = engine.table::<Item>("test", "t").expect("opens");
    let refused = |error: EngineError| match error {
        EngineError::Signal { errno, .. } => errno,
        other => panic!("{other}"),
    };
    let mut txn = engine.begin(TxnOptions::default());
    items.insert(&mut txn, &Item { id: 1, amount: 40 }).expect("inserted");
    items.put(&mut txn, &Item { id: 2, amount: 50 }).expect("put");
    items.put(&mut txn, &Item { id: 2, amount: 60 }).expect("put");
    assert!(items.update(&mut txn, 1, |item| item.amount += 8).expect("updated"));
    assert_eq!(refused(items.insert(&mut txn, &Item { id: 3, amount: 4000 }).expect_err("too large")), 3819);
    assert_eq!(refused(items.put(&mut txn, &Item { id: 2, amount: 4000 }).expect_err("too large")), 3819);
    assert_eq!(refused(items.update(&mut txn, 1, |item| item.amount = 4000).expect_err("too large")), 3819);
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(client.run("SELECT * FROM t ORDER BY id"), "1|48|24|n1|12\n2|60|30|n2|15\n");
    assert_eq!(client.run("SELECT id FROM t WHERE half = 30"), "2\n");
    assert_eq!(client.run(WRONG), "0\n");
}

/// Statements of every kind, drawn at random, over rows in pages and in blocks.
#[test]
fn no_statement_leaves_a_wrong_row() {
    let mut client = Client::new();
    assert_eq!(client.run(TABLE), "ok 0\n");
    client.run("SET SESSION cte_max_recursion_depth = 100000");
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let many = "INSERT IGNORE INTO t (id, amount) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) \
        SELECT i, i % 4100 FROM n";
    assert!(client.run(many).starts_with("ok "), "{}", client.run(many));
    assert_eq!(client.run(WRONG), "0\n");
    let (mut refused, mut done) = (0, 0);
    for round in 0..300 {
        if round % 100 == 50 {
            client.database.engine().freeze_all().expect("frozen");
        }
        let (a, b) = (random(12_100), random(4_400));
        let statement = match random(9) {
            0 => format!("INSERT INTO t (id, amount) VALUES ({a}, {b})"),
            1 => format!("REPLACE INTO t (id, amount, label) VALUES ({a}, {b}, DEFAULT)"),
            2 => format!(
                "INSERT INTO t (id, amount) VALUES ({a}, 1) ON DUPLICATE KEY UPDATE amount = {b}, label = DEFAULT"
            ),
            3 => format!("UPDATE t SET amount = {b} WHERE id = {a}"),
            4 => format!("UPDATE t SET amount = amount + 1 WHERE half = {}", b / 2),
            5 => format!("UPDATE IGNORE t SET amount = amount + 50 WHERE id BETWEEN {a} AND {a} + 30"),
            6 => format!("UPDATE t x JOIN t y ON x.id = y.id + 1 SET x.amount = y.half WHERE y.id = {a}"),
            7 => format!("INSERT INTO t (id, amount) SELECT id + 12000, half FROM t WHERE id = {a}"),
            _ => format!("DELETE FROM t WHERE half = {}", b / 2),
        };
        let answer = client.run(&statement);
        match answer.starts_with("ERROR") {
            true => {
                let expected = ["ERROR 3819", "ERROR 1062"].iter().any(|error| answer.starts_with(error));
                assert!(expected, "{statement}: {answer}");
                refused += 1;
            }
            false => done += 1,
        }
    }
    assert!(refused > 10 && done > 100, "{refused} were refused, {done} done");
    assert_eq!(client.run(WRONG), "0\n");
    assert_eq!(client.run("SELECT COUNT(*) FROM t WHERE label IS NULL OR label NOT LIKE 'n%'"), "0\n");
    assert_eq!(client.run("ALTER TABLE t ADD CHECK (half <= amount)").split(' ').next(), Some("ok"));
}

#[test]
fn a_statement_that_is_refused_leaves_no_trace() {
    check(&[
        ("CREATE TABLE t (a INT, b INT AS (a + 1), CHECK (b < 5))", "ok 0"),
        ("INSERT INTO t (a) VALUES (1), (2), (9)", "ERROR 3819: Check constraint 't_chk_1' is violated."),
        ("SELECT COUNT(*) FROM t", "0"),
        (
            "ALTER TABLE t ADD CHECK (a < (SELECT 1))",
            "ERROR 3815: An expression of a check constraint 't_chk_2' contains disallowed function.",
        ),
        (
            "CREATE TABLE u (a INT, CONSTRAINT t_chk_1 CHECK (a > 0))",
            "ERROR 3822: Duplicate check constraint name 't_chk_1'.",
        ),
        ("DROP TABLE t", "ok 0"),
        ("CREATE TABLE u (a INT, CONSTRAINT t_chk_1 CHECK (a > 0))", "ok 0"),
    ]);
}
