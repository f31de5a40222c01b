//! Queries: constants, single rows by index, and analytics.

use avocet_types::Datum;

use super::{Client, check};

#[test]
fn queries_without_tables_are_answered() {
    check(&[
        ("SELECT 1 + 1, 'a', NULL", "2|a|NULL"),
        ("SELECT 1 WHERE 1 = 0", ""),
        ("SELECT DATABASE(), @@autocommit", "test|1"),
        ("SELECT @x", "NULL"),
        ("SET @x = 5, @y = (SELECT 7)", "ok 0"),
        ("SELECT @x + @y", "12"),
        (
            "SELECT",
            "ERROR 1064: You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '' at line 1",
        ),
        ("", "ERROR 1065: Query was empty"),
    ]);
}

#[test]
fn tables_are_joined_grouped_and_read_by_index() {
    check(&[
        ("CREATE TABLE a (id INT PRIMARY KEY, g INT, v DECIMAL(8,2))", "ok 0"),
        ("INSERT INTO a VALUES (1,1,1.5),(2,1,2.5),(3,2,4)", "ok 3 (Records: 3  Duplicates: 0  Warnings: 0)"),
        ("SELECT g, SUM(v), COUNT(*) FROM a GROUP BY g ORDER BY g", "1|4.00|2\n2|4.00|1"),
        ("SELECT x.id, y.id FROM a x JOIN a y ON x.g = y.g AND x.id < y.id", "1|2"),
        ("SELECT v FROM a WHERE id = 2", "2.50"),
        ("SELECT id FROM a WHERE id BETWEEN 2 AND 9 ORDER BY v DESC LIMIT 1", "3"),
        ("SELECT id FROM a ORDER BY id LIMIT 1, 1", "2"),
        ("SELECT id FROM a WHERE v > (SELECT AVG(v) FROM a)", "3"),
        ("SELECT * FROM missing", "ERROR 1146: Table 'test.missing' doesn't exist"),
        ("SELECT nope FROM a", "ERROR 1054: Unknown column 'nope' in 'field list'"),
    ]);
}

#[test]
fn prepared_statements_run_again_and_again() {
    let mut client = Client::new();
    client.check("CREATE TABLE p (id INT PRIMARY KEY, s VARCHAR(10))", "ok 0");
    let insert = client.prepare("INSERT INTO p VALUES (?, ?)");
    for id in 1..4 {
        let params = [Datum::Int(id), Datum::Str(format!("s{id}").into())];
        assert_eq!(client.execute(insert, &params), "ok 1\n");
    }
    let select = client.prepare("SELECT s FROM p WHERE id = ?");
    assert_eq!(client.execute(select, &[Datum::Int(2)]), "s2\n");
    assert_eq!(client.execute(select, &[Datum::Str("3".into())]), "s3\n");
    assert_eq!(client.execute(select, &[Datum::Null]), "");
    client.check("CREATE INDEX s ON p (s)", "ok 0 (Records: 0  Duplicates: 0  Warnings: 0)");
    assert_eq!(client.execute(select, &[Datum::Int(1)]), "s1\n");
    client.check("PREPARE q FROM 'SELECT id FROM p WHERE s = ?'", "ok 0 (Statement prepared)");
    client.check("SET @s = 's2'; EXECUTE q USING @s", "ok 0\n2");
    client.check("DEALLOCATE PREPARE q", "ok 0");
    client.check("EXECUTE q", "ERROR 1243: Unknown prepared statement handler (q) given to EXECUTE");
}

#[test]
fn the_catalog_is_read_as_tables() {
    check(&[
        ("CREATE TABLE i (id INT PRIMARY KEY, s VARCHAR(10) NOT NULL, UNIQUE (s))", "ok 0"),
        (
            "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'test'",
            "i|BASE TABLE",
        ),
        (
            "SELECT column_name, data_type, column_key FROM information_schema.columns WHERE table_schema = 'test' ORDER BY ordinal_position",
            "id|int|PRI\ns|varchar|UNI",
        ),
        ("SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'test'", "2"),
        (
            "SELECT CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS ORDER BY 1",
            "PRIMARY KEY\nUNIQUE",
        ),
    ]);
}

/// More rows than a batch has, with something left to compute behind the sort: nothing may spread them again.
#[test]
fn large_results_come_in_order() {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
    );
    client.run("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(40))");
    client.run(
        "INSERT INTO t SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n + 10000 * f.n, MD5(a.n + 7 * f.n) \
         FROM d a, d b, d c, d e, d f",
    );
    for sql in [
        "SELECT MIN(id), COUNT(*), SUM(id) FROM t GROUP BY id DIV 3 ORDER BY 1",
        "SELECT id, CONCAT(s, id) FROM t ORDER BY id",
        "SELECT -id, AVG(id) FROM t GROUP BY id ORDER BY -id DESC",
    ] {
        for _ in 0..3 {
            let answer = client.run(sql);
            let first = |line: &str| {
                let text = line.trim().split('|').next().expect("a value");
                text.parse::<i64>().expect("a number").abs()
            };
            let ids: Vec<i64> = answer.lines().map(first).collect();
            assert!(ids.len() > 30_000, "{sql}: {} rows", ids.len());
            assert!(ids.is_sorted(), "{sql} came out of order");
        }
    }
}

/// Some clients know of no types but text: what they send as the number of rows is read as one.
#[test]
fn the_values_of_limit_parameters() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    let wrong = "ERROR 1210: Incorrect arguments to mysqld_stmt_execute";
    let negative = "ERROR 1690: unsigned integer value is out of range in 'mysqld_stmt_execute'";
    let text = |text: &'static str| Datum::str(text).into_owned();
    for sql in [
        "SELECT id FROM t ORDER BY id LIMIT ?",
        "SELECT id FROM t UNION ALL SELECT id + 10 FROM t ORDER BY id LIMIT ?",
        "SELECT id, COUNT(*) FROM t GROUP BY id ORDER BY id LIMIT ?",
        "UPDATE t SET id = id ORDER BY id LIMIT ?",
    ] {
        let statement = client.prepare(sql);
        for (value, expected) in [
            (Datum::Int(2), Ok(2)),
            (Datum::UInt(1), Ok(1)),
            (Datum::Null, Ok(0)),
            (text("2"), Ok(2)),
            (text(" +1x"), Ok(1)),
            (text("x"), Ok(0)),
            (text("-1"), Ok(3)),
            (Datum::Bytes(b"2".to_vec().into()), Ok(2)),
            (Datum::Double(2.0), Err(wrong)),
            (Datum::Decimal(avocet_types::Decimal::from(2_i64)), Err(wrong)),
            (Datum::Int(-1), Err(negative)),
        ] {
            let answer = client.execute(statement, std::slice::from_ref(&value));
            match expected {
                Err(error) => assert_eq!(answer.trim_end(), error, "{sql}: {value:?}"),
                Ok(_) if sql.starts_with("UPDATE") => assert!(answer.starts_with("ok 0"), "{answer}"),
                Ok(rows) => assert_eq!(answer.lines().count().min(3), rows, "{sql}: {value:?}: {answer}"),
            }
        }
    }
}
