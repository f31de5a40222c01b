//! Databases, tables and indexes.

use std::io;

use avocet_base::Timestamp;
use avocet_engine::{ChangeSink, Statement, TableHandle};
use avocet_types::RowRef;

use super::{Client, check};

#[test]
fn databases_come_and_go() {
    check(&[
        ("CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "ok 1"),
        ("CREATE DATABASE d", "ERROR 1007: Can't create database 'd'; database exists"),
        (
            "CREATE DATABASE IF NOT EXISTS d; SHOW WARNINGS",
            "ok 1\nNote|1007|Can't create database 'd'; database exists",
        ),
        ("SHOW DATABASES", "d\ninformation_schema\nmysql\nperformance_schema\nsys\ntest"),
        ("CREATE TABLE d.t (s VARCHAR(3)); DROP DATABASE d", "ok 0\nok 1"),
        ("USE d", "ERROR 1049: Unknown database 'd'"),
        ("DROP DATABASE d", "ERROR 1008: Can't drop database 'd'; database doesn't exist"),
    ]);
}

#[test]
fn tables_are_shown_as_they_were_made() {
    check(&[
        (
            "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, n DECIMAL(10,2) NOT NULL DEFAULT '0', \
             s VARCHAR(20) COLLATE utf8mb4_bin DEFAULT 'a''b', x TEXT, d DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), \
             b BOOL, PRIMARY KEY (id), UNIQUE KEY n (n, s), KEY (x(10) DESC)) ENGINE=InnoDB COMMENT='c'",
            "ok 0",
        ),
        (
            "SHOW CREATE TABLE t",
            "t|CREATE TABLE `t` (
             `id` bigint unsigned NOT NULL AUTO_INCREMENT,
             `n` decimal(10,2) NOT NULL DEFAULT '0.00',
             `s` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'a''b',
             `x` text,
             `d` datetime(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
             `b` tinyint(1) DEFAULT NULL,
             PRIMARY KEY (`id`),
             UNIQUE KEY `n` (`n`,`s`),
             KEY `x` (`x`(10) DESC)
             ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='c'",
        ),
        ("SHOW COLUMNS FROM t LIKE 'n'", "n|decimal(10,2)|NO|MUL|0.00|"),
        ("DESCRIBE t id", "id|bigint unsigned|NO|PRI|NULL|auto_increment"),
        ("CREATE TABLE c LIKE t; SHOW TABLES", "ok 0\nc\nt"),
        ("CREATE TABLE s AS SELECT 1 AS one, 'x' AS two", "ok 1 (Records: 1  Duplicates: 0  Warnings: 0)"),
        ("SELECT * FROM s", "1|x"),
        ("TRUNCATE TABLE s; SELECT COUNT(*) FROM s", "ok 0\n0"),
        ("DROP TABLE s, nope", "ERROR 1051: Unknown table 'test.nope'"),
        ("DROP TABLE IF EXISTS nope; SHOW WARNINGS", "ok 0\nNote|1051|Unknown table 'test.nope'"),
    ]);
}

#[test]
fn bad_definitions_are_refused() {
    check(&[
        ("CREATE TABLE t (a INT, A INT)", "ERROR 1060: Duplicate column name 'A'"),
        ("CREATE TABLE t (a INT DEFAULT 'x')", "ERROR 1067: Invalid default value for 'a'"),
        (
            "CREATE TABLE t (a INT AUTO_INCREMENT)",
            "ERROR 1075: Incorrect table definition; there can be only one auto column and it must be defined as a key",
        ),
        (
            "CREATE TABLE t (a TEXT, KEY (a))",
            "ERROR 1170: BLOB/TEXT column 'a' used in key specification without a key length",
        ),
        ("CREATE TABLE t (a INT, KEY (b))", "ERROR 1072: Key column 'b' doesn't exist in table"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "ERROR 1068: Multiple primary key defined"),
        ("CREATE TABLE t (a VECTOR)", "ERROR 1235: This version of Avocet doesn't yet support 'type VECTOR'"),
        (
            "CREATE TABLE t (a INT, CHECK (a + 1))",
            "ERROR 3812: An expression of non-boolean type specified to a check constraint 't_chk_1'.",
        ),
        ("CREATE TABLE t (a INT) ENGINE=Foo", "ERROR 1286: Unknown storage engine 'Foo'"),
        (
            "CREATE TABLE t (a INT, b INT UNIQUE) PARTITION BY HASH (a)",
            "ERROR 1503: A UNIQUE INDEX must include all columns in the table's partitioning function (prefixed columns are not considered).",
        ),
    ]);
}

#[test]
fn columns_are_altered() {
    let done = "ok 0 (Records: 0  Duplicates: 0  Warnings: 0)";
    check(&[
        (
            "CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b)); INSERT INTO t VALUES (1, 10), (2, 20)",
            "ok 0\nok 2 (Records: 2  Duplicates: 0  Warnings: 0)",
        ),
        ("ALTER TABLE t ADD COLUMN c VARCHAR(5) NOT NULL DEFAULT 'x' FIRST, DROP COLUMN b", done),
        ("SELECT * FROM t ORDER BY a", "x|1\nx|2"),
        ("ALTER TABLE t CHANGE a id INT NOT NULL, RENAME TO u", done),
        ("SELECT id FROM u WHERE id = 2", "2"),
        ("ALTER TABLE u MODIFY c INT", "ERROR 1366: Incorrect integer value: 'x' for column 'c' at row 1"),
        ("SELECT c FROM u ORDER BY id", "x\nx"),
        ("SHOW TABLES", "u"),
        ("RENAME TABLE u TO v, nope TO w", "ERROR 1146: Table 'test.nope' doesn't exist"),
        ("SHOW TABLES", "u"),
    ]);
}

#[test]
fn indexes_are_added_and_dropped() {
    check(&[
        (
            "CREATE TABLE t (a INT NOT NULL, b INT); INSERT INTO t VALUES (1, 1), (2, 1)",
            "ok 0\nok 2 (Records: 2  Duplicates: 0  Warnings: 0)",
        ),
        ("CREATE UNIQUE INDEX u ON t (b)", "ERROR 1062: Duplicate entry '1' for key 't.u'"),
        ("CREATE INDEX i ON t (b, a)", "ok 0 (Records: 0  Duplicates: 0  Warnings: 0)"),
        ("CREATE INDEX i ON t (a)", "ERROR 1061: Duplicate key name 'i'"),
        (
            "ALTER TABLE t ADD PRIMARY KEY (a), ADD UNIQUE k (a, b)",
            "ok 0 (Records: 0  Duplicates: 0  Warnings: 0)",
        ),
        ("SELECT a FROM t WHERE b = 1 AND a > 1", "2"),
        (
            "DROP INDEX i ON t; ALTER TABLE t DROP KEY k",
            "ok 0 (Records: 0  Duplicates: 0  Warnings: 0)\nok 0 (Records: 0  Duplicates: 0  Warnings: 0)",
        ),
        ("DROP INDEX nope ON t", "ERROR 1091: Can't DROP 'nope'; check that column/key exists"),
    ]);
}

/// Of a table that is large enough for its indexes to be filled while others go on with it: the entries of an index end in the primary
/// key's columns, and so depend on what becomes of that in the same statement.
#[test]
fn indexes_that_come_with_another_primary_key_have_entries() {
    const KEYS: [&str; 2] = ["", ", PRIMARY KEY (id)"];
    const CHANGES: [(usize, &str); 12] = [
        (0, "ADD PRIMARY KEY (id), ADD KEY (a)"),
        (0, "ADD KEY (a), ADD PRIMARY KEY (id)"),
        (0, "ADD KEY (a), ADD KEY ab (a, b), ADD PRIMARY KEY (id), ADD UNIQUE KEY u (id, a)"),
        (0, "ADD PRIMARY KEY (b, id), ADD KEY (a DESC), ADD KEY p (c(3)), ALGORITHM = INPLACE"),
        (0, "ADD PRIMARY KEY (id), ADD KEY (a), RENAME TO r"),
        (0, "ADD KEY (a), ADD KEY (c)"),
        (1, "DROP PRIMARY KEY, ADD KEY (a)"),
        (1, "ADD KEY (a), DROP PRIMARY KEY"),
        (1, "DROP PRIMARY KEY, ADD PRIMARY KEY (b, id), ADD KEY (a)"),
        (1, "ADD KEY (a), ADD UNIQUE KEY (id)"),
        (1, "DROP KEY old, ADD KEY (a), DROP PRIMARY KEY"),
        (1, "DROP KEY old, ADD PRIMARY KEY (id), DROP PRIMARY KEY, ADD KEY (a)"),
    ];
    let mut client = Client::new();
    client.run(
        "CREATE TABLE n (n INT); INSERT INTO n VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
         CREATE TABLE hundreds AS SELECT a.n * 10 + b.n AS n FROM n a, n b",
    );
    for (at, change) in CHANGES {
        client.run(&format!(
            "DROP TABLE IF EXISTS t, r;
             CREATE TABLE t (id INT NOT NULL, a INT, b INT NOT NULL, c VARCHAR(20), KEY old (b){});
             INSERT INTO t SELECT x.n * 1000 + y.n * 10 + z.n, y.n, z.n, CONCAT('c', y.n) FROM hundreds x, hundreds y, n z WHERE x.n < 25",
            KEYS[at]
        ));
        let altered = client.run(&format!("ALTER TABLE t {change}"));
        assert!(altered.starts_with("ok "), "{change}: {altered}");
        let name = if change.contains("RENAME") { "r" } else { "t" };
        let answers = client.run(&format!(
            "SELECT COUNT(*) FROM {name} WHERE a = 5; SELECT COUNT(*), MIN(id), MAX(id) FROM {name} WHERE a BETWEEN 7 AND 8;
             UPDATE {name} SET c = 'x' WHERE a = 6; DELETE FROM {name} WHERE a = 3 AND id < 10000; CHECK TABLE {name}"
        ));
        assert_eq!(
            answers,
            format!(
                "250\n500|70|24089\nok 250 (Rows matched: 250  Changed: 250  Warnings: 0)\nok 100\ntest.{name}|check|status|OK\n"
            ),
            "{change}"
        );
    }
}

#[test]
fn a_copy_that_nobody_asked_for_is_refused() {
    let mut setup = Client::new();
    let [mut old, mut alter] = [setup.another(), setup.another()];
    setup.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE u (id INT); INSERT INTO t VALUES (1, 1)",
    );
    // Its snapshot needs the row's older version, while nobody holds the table.
    old.run("START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT * FROM u");
    setup.run("UPDATE t SET v = 2");
    for (how, instead) in [
        ("ALGORITHM = INSTANT", "ALGORITHM=INSTANT is not supported for this operation. Try ALGORITHM=COPY."),
        ("ALGORITHM = INPLACE", "ALGORITHM=INPLACE is not supported for this operation. Try ALGORITHM=COPY."),
        ("LOCK = NONE", "LOCK=NONE is not supported for this operation. Try LOCK=EXCLUSIVE."),
    ] {
        let answer = alter.run(&format!("ALTER TABLE t ADD COLUMN w INT, {how}"));
        assert_eq!(answer.trim_end(), format!("ERROR 1845: {instead}"));
    }
    assert!(alter.run("ALTER TABLE t ADD COLUMN w INT").starts_with("ok "));
    old.run("COMMIT");
    assert!(alter.run("ALTER TABLE t ADD COLUMN x INT, ALGORITHM = INSTANT").starts_with("ok 0"));
    alter.check("SELECT * FROM t", "1|2|NULL|NULL");
}

#[test]
fn rows_that_only_old_snapshots_see_are_no_duplicates() {
    let mut client = Client::new();
    let mut old = client.another();
    client.run(
        "CREATE TABLE u (id INT); CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT); \
         INSERT INTO t VALUES (1, 1, 1), (3, 3, 3), (4, 4, 4)",
    );
    client.database.engine().freeze_all().expect("frozen");
    old.run("START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT * FROM u");
    client.run(
        "UPDATE t SET b = 7 WHERE id = 4; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (2, 1, 1); \
         UPDATE t SET a = 5 WHERE id = 3; INSERT INTO t VALUES (6, 3, 9)",
    );
    assert!(client.run("CREATE UNIQUE INDEX a ON t (a)").starts_with("ok 0"));
    client.check("SELECT id FROM t WHERE a < 4 ORDER BY a", "2\n6");
    assert!(client.run("INSERT INTO t VALUES (7, 5, 0)").starts_with("ERROR 1062"));
    client.run(
        "INSERT INTO t VALUES (8, 8, 0); UPDATE t SET a = 9 WHERE id = 8; INSERT INTO t VALUES (9, 10, 0)",
    );
    old.run("COMMIT");
    assert!(client.run("CREATE UNIQUE INDEX a2 ON t (a)").starts_with("ok 0"));
}

#[test]
fn rows_are_numbered_in_an_order_that_replicas_know() {
    let mut client = Client::with(|options| options.capture_changes = true);
    let run = |client: &mut Client, sql: &str| {
        let said = client.run(sql);
        assert!(!said.contains("ERROR"), "{sql}: {said}");
    };
    let refused = "ERROR 1235: This version of Avocet doesn't yet support 'numbers by ALTER TABLE for rows without a primary key, or of \
                   partitions, in a binary log': a replica may number them otherwise; INSERT … SELECT into a table that has the column, or \
                   SET sql_log_bin = OFF";
    run(&mut client, "CREATE TABLE k (k INT PRIMARY KEY, v INT); INSERT INTO k VALUES (3, 30)");
    run(&mut client, "INSERT INTO k VALUES (1, 10), (2, 20)");
    run(&mut client, "ALTER TABLE k DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY");
    client.check("SELECT k, id FROM k ORDER BY id", "1|1\n2|2\n3|3");
    let add = "ADD id INT AUTO_INCREMENT PRIMARY KEY";
    // One row has one order.
    run(&mut client, "CREATE TABLE t (a INT); INSERT INTO t VALUES (7)");
    run(&mut client, &format!("ALTER TABLE t {add}"));
    client.check("SELECT * FROM t", "7|1");
    run(&mut client, "CREATE TABLE u (a INT UNIQUE, b INT); INSERT INTO u VALUES (2, 0), (1, 5)");
    client.check(&format!("ALTER TABLE u {add}"), refused);
    client.check("SELECT * FROM u ORDER BY a", "1|5\n2|0");
    client.check("ALTER TABLE u MODIFY b INT AUTO_INCREMENT PRIMARY KEY", refused);
    // Rows that have their numbers keep them.
    run(&mut client, "ALTER TABLE u MODIFY a INT AUTO_INCREMENT PRIMARY KEY");
    run(&mut client, "CREATE TABLE p (a INT PRIMARY KEY, b INT) PARTITION BY HASH (a) PARTITIONS 2");
    run(&mut client, "INSERT INTO p VALUES (1, 0), (2, 0)");
    client.check("ALTER TABLE p MODIFY b INT AUTO_INCREMENT, ADD KEY (b)", refused);
    // Nobody else runs these.
    run(&mut client, "CREATE TEMPORARY TABLE m (a INT); INSERT INTO m VALUES (1), (2)");
    run(&mut client, &format!("ALTER TABLE m {add}"));
    run(&mut client, "DROP TABLE u; CREATE TABLE u (a INT); INSERT INTO u VALUES (2), (1)");
    run(&mut client, &format!("SET sql_log_bin = OFF; ALTER TABLE u {add}"));
}

/// The statements of the binary log, each with its text.
#[derive(Default)]
struct Statements(Vec<(String, Statement)>);

impl Statements {
    /// All that a client's engine has to tell.
    fn of(client: &Client) -> Self {
        let mut stream = client.database.engine().change_stream().expect("a log").expect("a stream");
        let mut told = Self::default();
        while stream.next(&mut told).expect("read") {}
        told
    }
}

impl ChangeSink for Statements {
    fn wants(&self, _ts: Timestamp) -> bool {
        true
    }

    fn begin(&mut self, _wall_us: i64) -> io::Result<()> {
        Ok(())
    }

    fn insert(&mut self, _table: &TableHandle, _row: RowRef<'_>) -> io::Result<()> {
        Ok(())
    }

    fn update(&mut self, _table: &TableHandle, _before: RowRef<'_>, _after: RowRef<'_>) -> io::Result<()> {
        Ok(())
    }

    fn delete(&mut self, _table: &TableHandle, _row: RowRef<'_>) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _ts: Timestamp) -> io::Result<()> {
        Ok(())
    }

    fn statement(&mut self, _ts: Timestamp, statement: &Statement, _is_all: bool) -> io::Result<()> {
        self.0.extend(statement.texts.iter().map(|text| (text.clone(), statement.clone())));
        Ok(())
    }
}

#[test]
fn replicas_number_rows_as_they_are_numbered_here() {
    let mut client = Client::with(|options| options.capture_changes = true);
    client.run("CREATE TABLE k (k INT PRIMARY KEY); INSERT INTO k VALUES (3), (1), (2)");
    client.run("SET auto_increment_increment = 10, auto_increment_offset = 5");
    client.run("ALTER TABLE k ADD id INT AUTO_INCREMENT UNIQUE; ALTER TABLE k ADD v INT");
    client.check("SELECT * FROM k ORDER BY k", "1|1|NULL\n2|2|NULL\n3|3|NULL");
    let told = Statements::of(&client);
    let steps = |words: &str| {
        told.0.iter().find(|(text, _)| text.contains(words)).map(|(_, statement)| statement.auto_increment)
    };
    assert_eq!(steps("ADD id"), Some((1, 1)), "{:?}", told.0);
    assert_eq!(steps("ADD v"), Some((10, 5)), "{:?}", told.0);
}

#[test]
fn definitions_are_told_as_they_were_run() {
    const ANSI_QUOTES: u64 = 1 << 2;
    const NO_ZERO_DATE: u64 = 1 << 24;
    let mut client = Client::with(|options| options.capture_changes = true);
    for sql in [
        "CREATE USER w; ALTER USER w ACCOUNT LOCK",
        // Each EXECUTE is shorter, or stands elsewhere, than what it runs.
        "PREPARE p FROM 'CREATE TABLE a (a INT, b INT) COMMENT ''all of it'''",
        "EXECUTE p",
        "PREPARE q FROM 'ALTER TABLE a ADD c INT, ADD d INT'",
        "SET @x = 1; EXECUTE q",
        // As dumps have them: what stands in comments of versions is part of the statement, from its first token to its last.
        "CREATE TABLE b (a INT) /*!50100 COMMENT 'x' */ ; /*!50001 CREATE */ TABLE c (a INT /*!90700 , b INT */);",
        // Read once, in the mode of then.
        "SET sql_mode = 'ANSI_QUOTES,NO_ZERO_DATE'; PREPARE r FROM 'CREATE TABLE \"e\" (a INT)'; SET sql_mode = 'NO_ZERO_DATE'",
        "EXECUTE r",
        // Printed with escapes, whatever the mode.
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'",
        "CREATE VIEW v AS SELECT 'a\\b' AS x",
    ] {
        let said = client.run(sql);
        assert!(!said.contains("ERROR"), "{sql}: {said}");
    }
    let told = Statements::of(&client).0;
    let texts: Vec<&str> = told.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(
        texts[texts.len() - 6..texts.len() - 1],
        [
            "CREATE TABLE a (a INT, b INT) COMMENT 'all of it'",
            "ALTER TABLE a ADD c INT, ADD d INT",
            "CREATE TABLE b (a INT) /*!50100 COMMENT 'x' */",
            "/*! CREATE */ TABLE c (a INT  )",
            "CREATE TABLE \"e\" (a INT)",
        ]
    );
    // A MySQL that is told of no password takes it for one that has expired.
    let locked = texts.iter().find(|text| text.starts_with("ALTER USER")).expect("it is told");
    assert!(
        locked.starts_with("ALTER USER `w`@`%` IDENTIFIED WITH 'caching_sha2_password' AS '' "),
        "{locked}"
    );
    let [.., (_, read_before), (view, printed)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(read_before.sql_mode, ANSI_QUOTES | NO_ZERO_DATE);
    assert!(view.ends_with(r#"VIEW "v" AS select 'a\\b' AS "x""#), "{view}");
    assert_eq!(printed.sql_mode, ANSI_QUOTES);
}

#[test]
fn many_rows_are_numbered_by_their_key() {
    let mut client = Client::new();
    client.run("CREATE TABLE k (k INT PRIMARY KEY, s VARCHAR(20))");
    client.run(
        "INSERT INTO k WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
         SELECT /*+ SET_VAR(cte_max_recursion_depth = 20000) */ 30000 - n, CONCAT('s', n) FROM n",
    );
    client.check("SELECT COUNT(*) FROM k", "20000");
    client.run("ALTER TABLE k ADD id INT AUTO_INCREMENT UNIQUE");
    client.check(
        "SELECT COUNT(*), MIN(k - id), MAX(k - id), SUM(s <> CONCAT('s', 30000 - k)) FROM k",
        "20000|9999|9999|0",
    );
}
