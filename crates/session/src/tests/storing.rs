//! INSERT, REPLACE, UPDATE, DELETE: what is stored, converted, refused and counted.

use super::{Client, check};

const T: &str = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT NOT NULL, b VARCHAR(5), c DECIMAL(6,2) DEFAULT 1.5)";

#[test]
fn rows_are_inserted_with_defaults_and_generated_ids() {
    check(&[
        (T, "ok 0"),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x'), (2, DEFAULT)",
            "ok 2 id 1 (Records: 2  Duplicates: 0  Warnings: 0)",
        ),
        ("INSERT INTO t SET a = 1 + 2, id = 10", "ok 1 id 10"),
        ("INSERT INTO t VALUES (NULL, 4, 'y', -2.345)", "ok 1 id 11"),
        ("SHOW WARNINGS", "Note|1265|Data truncated for column 'c' at row 1"),
        ("SELECT LAST_INSERT_ID()", "11"),
        (
            "SELECT * FROM t WHERE id > 0 ORDER BY id",
            "1|1|x|1.50\n2|2|NULL|1.50\n10|3|NULL|1.50\n11|4|y|-2.35",
        ),
    ]);
}

#[test]
fn what_does_not_fit_is_refused_in_strict_mode() {
    check(&[
        (T, "ok 0"),
        ("INSERT INTO t (b) VALUES ('x')", "ERROR 1364: Field 'a' doesn't have a default value"),
        ("INSERT INTO t (a) VALUES (NULL)", "ERROR 1048: Column 'a' cannot be null"),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'toolong')",
            "ERROR 1406: Data too long for column 'b' at row 2",
        ),
        ("INSERT INTO t (a) VALUES (3000000000)", "ERROR 1264: Out of range value for column 'a' at row 1"),
        (
            "INSERT INTO t (a) VALUES ('z')",
            "ERROR 1366: Incorrect integer value: 'z' for column 'a' at row 1",
        ),
        ("INSERT INTO t (a) VALUES (1, 2)", "ERROR 1136: Column count doesn't match value count at row 1"),
        ("INSERT INTO t (a, a) VALUES (1, 2)", "ERROR 1110: Column 'a' specified twice"),
        ("INSERT INTO t (x) VALUES (1)", "ERROR 1054: Unknown column 'x' in 'field list'"),
        ("SELECT COUNT(*) FROM t", "0"),
        ("SET sql_mode = ''", "ok 0"),
        ("INSERT INTO t (id, a, b) VALUES (50, 3000000000, 'toolong')", "ok 1 id 50"),
        ("SELECT id, a, b FROM t WHERE id = 50", "50|2147483647|toolo"),
    ]);
}

#[test]
fn duplicates_fail_are_ignored_replaced_or_updated() {
    check(&[
        ("CREATE TABLE k (id INT PRIMARY KEY, u INT UNIQUE, n INT)", "ok 0"),
        ("INSERT INTO k VALUES (1, 10, 0), (2, 20, 0)", "ok 2 (Records: 2  Duplicates: 0  Warnings: 0)"),
        (
            "INSERT INTO k VALUES (3, 30, 0), (1, 40, 0)",
            "ERROR 1062: Duplicate entry '1' for key 'k.PRIMARY'",
        ),
        (
            "INSERT IGNORE INTO k VALUES (3, 30, 0), (1, 40, 0)",
            "ok 1 (Records: 2  Duplicates: 1  Warnings: 1)",
        ),
        ("REPLACE INTO k VALUES (1, 20, 7)", "ok 3"),
        ("INSERT INTO k VALUES (1, 99, 5) ON DUPLICATE KEY UPDATE n = n + VALUES(n), u = u + 1", "ok 2"),
        ("INSERT INTO k VALUES (1, 99, 6) AS new ON DUPLICATE KEY UPDATE n = new.n", "ok 2"),
        ("SELECT * FROM k WHERE id > 0 ORDER BY id", "1|21|6\n3|30|0"),
    ]);
}

#[test]
fn rows_are_updated_and_deleted() {
    check(&[
        ("CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT, KEY (a))", "ok 0"),
        (
            "INSERT INTO u VALUES (1,1,1),(2,2,2),(3,3,3),(4,4,4)",
            "ok 4 (Records: 4  Duplicates: 0  Warnings: 0)",
        ),
        ("UPDATE u SET a = a + 1, b = a WHERE id = 2", "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)"),
        ("UPDATE u SET a = a + 1 WHERE a >= 3", "ok 3 (Rows matched: 3  Changed: 3  Warnings: 0)"),
        ("UPDATE u SET b = b WHERE b < 3", "ok 0 (Rows matched: 1  Changed: 0  Warnings: 0)"),
        ("UPDATE u SET b = 0 ORDER BY id DESC LIMIT 1", "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)"),
        ("SELECT * FROM u WHERE id > 0 ORDER BY id", "1|1|1\n2|4|3\n3|4|3\n4|5|0"),
        ("DELETE FROM u WHERE a = 4 ORDER BY id LIMIT 1", "ok 1"),
        ("UPDATE u SET id = 1 WHERE id = 4", "ERROR 1062: Duplicate entry '1' for key 'u.PRIMARY'"),
        ("DELETE FROM u", "ok 3"),
        (
            "INSERT INTO u VALUES (1,1,1),(2,2,2); UPDATE u JOIN u AS v ON v.id = u.id + 1 SET u.a = v.b + 5",
            "ok 2 (Records: 2  Duplicates: 0  Warnings: 0)\nok 1 (Rows matched: 1  Changed: 1  Warnings: 0)",
        ),
        ("SELECT id, a FROM u ORDER BY id", "1|7\n2|2"),
        ("DELETE v FROM u, u AS v WHERE u.id = 1 AND v.id > u.id", "ok 1"),
        (
            "DELETE FROM u WHERE id IN (SELECT id FROM u)",
            "ERROR 1093: You can't specify target table 'u' for update in FROM clause",
        ),
    ]);
}

#[test]
fn large_inserts_and_selects_go_through_batches() {
    let mut client = Client::new();
    client.check("CREATE TABLE big (id INT PRIMARY KEY, s VARCHAR(20), KEY (s))", "ok 0");
    let rows: Vec<String> = (0..12_000).map(|n| format!("({n}, 'v{}')", n % 100)).collect();
    let sql = format!("INSERT INTO big VALUES {}", rows.join(","));
    client.check(&sql, "ok 12000 (Records: 12000  Duplicates: 0  Warnings: 0)");
    client.check("SELECT COUNT(*), MIN(id), MAX(id) FROM big", "12000|0|11999");
    client.check("SELECT s FROM big WHERE id = 11999", "v99");
    client.check("CREATE TABLE copy LIKE big", "ok 0");
    client
        .check("INSERT INTO copy SELECT * FROM big", "ok 12000 (Records: 12000  Duplicates: 0  Warnings: 0)");
    client.check("DELETE FROM copy WHERE s = 'v7'", "ok 120");
    client.check("SELECT COUNT(*) FROM copy", "11880");
}
