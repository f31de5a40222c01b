//! Functional indexes: which statements read by them, and that they lead to what a scan finds. MySQL 9.7's plans are named beside
//! those that differ.

use super::Client;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), a INT, b INT NOT NULL, j JSON, dt DATETIME, \
    g INT AS (a + 7), gs VARCHAR(40) AS (UPPER(name)), KEY k ((LOWER(name))), KEY ka ((a + 1)), KEY kd ((DATE(dt))), \
    KEY kj ((CAST(j->>'$.n' AS CHAR(30)))), KEY kjb ((CAST(j->>'$.m' AS CHAR(30)) COLLATE utf8mb4_bin)), \
    KEY ku ((CAST(j->>'$.u' AS UNSIGNED))), KEY kc ((CONCAT(name, 'x'))), KEY kab ((a * b), id), KEY kg (g), KEY kgs (gs), \
    KEY kdt ((dt + INTERVAL 1 DAY)), KEY kl ((a > 3)))";

const ROWS: &str = "INSERT INTO t (id, name, a, b, j, dt) WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 500) \
    SELECT n, CONCAT('Name', n), n, n % 10, JSON_OBJECT('n', CONCAT('n', n), 'm', CONCAT('m', n), 'u', n), \
    DATE'2020-01-01' + INTERVAL n HOUR FROM r";

fn filled() -> Client {
    let mut client = Client::new();
    assert_eq!(client.run(TABLE), "ok 0\n");
    assert!(client.run(ROWS).starts_with("ok 500"));
    client
}

/// The `key` of each table in a plan.
fn keys(client: &mut Client, statement: &str) -> String {
    let plan = client.run(&format!("EXPLAIN FORMAT=TRADITIONAL {statement}"));
    let key = |line: &str| line.split('|').nth(6).unwrap_or(line).to_owned();
    plan.lines().map(key).collect::<Vec<_>>().join(" ")
}

#[test]
fn conditions_find_indexes_by_their_expressions() {
    let mut client = filled();
    for (condition, key) in [
        ("lower(name) = 'name7'", "k"),
        ("lower(name) IN ('name7', 'name8')", "k"),
        ("lower(name) BETWEEN 'name7' AND 'name71'", "k"),
        ("LOWER(t.name) = LOWER('Name7')", "k"),
        ("lcase(name) = 'name7'", "k"),
        ("lower(name) COLLATE utf8mb4_bin = 'name7'", "NULL"),
        ("upper(name) = 'NAME7'", "kgs"),
        ("a + 1 = 8", "ka"),
        ("8 = a + 1", "ka"),
        ("1 + a = 8", "NULL"),
        ("a + 1.0 = 8", "NULL"),
        ("a + 1 > 495", "ka"),
        ("a + 1 IN (8, 9)", "ka"),
        ("a + 1 + 1 = 8", "NULL"),
        ("ABS(a + 1) = 8", "NULL"),
        ("DATE(dt) = '2020-01-05'", "kd"),
        ("DATE(dt) = DATE'2020-01-05'", "kd"),
        ("CAST(j->>'$.n' AS CHAR(30)) = 'n7'", "kj"),
        ("CAST(j->>'$.n' AS CHAR(31)) = 'n7'", "NULL"),
        ("CAST(j->>'$.x' AS CHAR(30)) = 'n7'", "NULL"),
        ("j->>'$.n' = 'n7'", "NULL"),
        ("j->>'$.m' = 'm7'", "kjb"),
        ("CAST(j->>'$.m' AS CHAR(30)) = 'm7'", "NULL"),
        ("CAST(j->>'$.m' AS CHAR(30)) COLLATE utf8mb4_bin = 'm7'", "kjb"),
        ("CAST(j->>'$.u' AS UNSIGNED) = 7", "ku"),
        // MySQL: ku, though '-1' is not what it is as UNSIGNED.
        ("j->>'$.u' = 7", "NULL"),
        ("CONCAT(name, 'x') = 'name7x'", "kc"),
        ("CONCAT(name, 'y') = 'name7x'", "NULL"),
        ("a * b = 49", "kab"),
        ("a * b = 49 AND id > 3", "kab"),
        ("a + 7 = 50", "kg"),
        ("g = 50", "kg"),
        ("dt + INTERVAL 1 DAY = '2020-01-03 01:00:00'", "kdt"),
        ("dt + INTERVAL 2 DAY = '2020-01-03 01:00:00'", "NULL"),
        ("DATE_ADD(dt, INTERVAL 1 DAY) = '2020-01-03 01:00:00'", "kdt"),
        ("a > 3", "NULL"),
        // MySQL: a scan.
        ("a + 1 <=> 8", "ka"),
        ("a + 1 IS NULL", "ka"),
    ] {
        let found = keys(&mut client, &format!("SELECT id FROM t WHERE {condition}"));
        assert_eq!(found, key, "{condition}");
    }
}

#[test]
fn statements_find_indexes_by_their_expressions() {
    let mut client = filled();
    client.run("CREATE VIEW v AS SELECT id, a + 1 AS a1, name FROM t");
    for (statement, expected) in [
        ("SELECT id FROM t ORDER BY LOWER(name) LIMIT 3", "k"),
        ("SELECT id, LOWER(name) FROM t ORDER BY LOWER(name) DESC LIMIT 3", "k"),
        ("SELECT id FROM t WHERE a * b = 10 ORDER BY id LIMIT 3", "kab"),
        ("UPDATE t SET b = b WHERE LOWER(name) = 'name7'", "k"),
        ("DELETE FROM t WHERE a + 1 = 8", "ka"),
        ("SELECT id FROM v WHERE a1 = 8", "ka"),
        ("SELECT id FROM v WHERE LOWER(name) = 'name8'", "k"),
        ("SELECT u.id FROM t JOIN t u ON u.a + 1 = t.b AND LOWER(t.name) = 'name3'", "k ka"),
        ("SELECT u.id FROM t LEFT JOIN t u ON u.a + 1 = t.b WHERE t.id = 3", "PRIMARY ka"),
    ] {
        assert_eq!(keys(&mut client, statement), expected, "{statement}");
    }
    client.run("ALTER TABLE t ALTER INDEX ka INVISIBLE");
    assert_eq!(keys(&mut client, "SELECT id FROM t WHERE a + 1 = 8"), "NULL");
    client.run("ALTER TABLE t DROP INDEX k");
    assert_eq!(keys(&mut client, "SELECT id FROM t WHERE LOWER(name) = 'name7'"), "NULL");
    assert_eq!(client.run("SELECT id FROM t WHERE LOWER(name) = 'name7'"), "7\n");
}

/// Statements of every kind, drawn at random, over rows in pages and in blocks.
#[test]
fn indexes_lead_to_what_a_scan_finds() {
    let mut client = Client::new();
    let table = "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, s VARCHAR(20), KEY k ((v DIV 10)), UNIQUE KEY u ((id * 2), s), \
        KEY m ((v * 3) DESC, s, (LENGTH(s))))";
    assert_eq!(client.run(table), "ok 0\n");
    client.run("SET SESSION cte_max_recursion_depth = 10000");
    client.run(
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) SELECT i, i % 900, CONCAT('s', i) FROM n",
    );
    let mut state = 11_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..200 {
        if round % 80 == 40 {
            client.database.engine().freeze_all().expect("frozen");
        }
        let (a, b) = (random(6_100), random(900));
        let statement = match random(8) {
            0 => format!("INSERT IGNORE INTO t VALUES ({a}, {b}, 'new')"),
            1 => format!("REPLACE INTO t VALUES ({a}, {b}, NULL)"),
            2 => format!("INSERT INTO t VALUES ({a}, 1, 'x') ON DUPLICATE KEY UPDATE v = {b}, s = 'longer'"),
            3 => format!("UPDATE t SET v = {b} WHERE id = {a}"),
            4 => format!("UPDATE t SET v = v + 10 WHERE v DIV 10 = {} LIMIT 20", b / 10),
            5 => format!("BEGIN; UPDATE t SET v = 0, s = 'gone' WHERE id BETWEEN {a} AND {a} + 30; ROLLBACK"),
            6 => format!("UPDATE t x JOIN t y ON x.id = y.id + 1 SET x.v = y.v WHERE y.id = {a}"),
            _ => format!("DELETE FROM t WHERE v DIV 10 = {} LIMIT 3", b / 10),
        };
        let answer = client.run(&statement);
        assert!(!answer.contains("ERROR"), "{statement}: {answer}");
        let wanted = random(90);
        for (by_index, by_scan) in [
            (format!("v DIV 10 = {wanted}"), format!("v DIV 10 + 0 = {wanted}")),
            (format!("v * 3 = {}", wanted * 30), format!("v * 3 + 0 = {}", wanted * 30)),
        ] {
            let count = |condition: &str| format!("SELECT COUNT(*), SUM(id) FROM t WHERE {condition}");
            let (found, expected) = (client.run(&count(&by_index)), client.run(&count(&by_scan)));
            assert_eq!(found, expected, "{by_index} after {statement}");
        }
    }
    client.run("ALTER TABLE t DROP INDEX u, ADD UNIQUE KEY w ((id + 1))");
    assert!(client.run("INSERT INTO t SELECT id + 100000, v, s FROM t").starts_with("ok "));
    assert_eq!(
        client.run("SELECT COUNT(*) FROM t x JOIN t y ON x.id + 1 = y.id + 1 WHERE x.id <> y.id"),
        "0\n"
    );
}
