//! What parses, how it binds, and what is refused with which text.

use super::*;
use crate::parse::ast::*;

/// An expression with all its parentheses written out.
fn shape(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Integer(v) => v.to_string(),
        ExprKind::Decimal(v) => v.clone(),
        ExprKind::String { value, .. } => format!("'{value}'"),
        ExprKind::Column { table, column, .. } => match table {
            Some(table) => format!("{}.{}", table.name, column.name),
            None => column.name.clone(),
        },
        ExprKind::Param(n) => format!("?{n}"),
        ExprKind::Unary { op, expr } => format!("{op:?}({})", shape(expr)),
        ExprKind::Binary { op, left, right } => format!("({} {op:?} {})", shape(left), shape(right)),
        ExprKind::And(list) => format!("({})", list.iter().map(shape).collect::<Vec<_>>().join(" And ")),
        ExprKind::Or(list) => format!("({})", list.iter().map(shape).collect::<Vec<_>>().join(" Or ")),
        ExprKind::Is { expr, test, negated } => {
            format!("{}.is{}{test:?}", shape(expr), if *negated { "Not" } else { "" })
        }
        ExprKind::Between { expr, low, high, .. } => {
            format!("{}.between({}, {})", shape(expr), shape(low), shape(high))
        }
        ExprKind::Like { expr, pattern, .. } => format!("{}.like({})", shape(expr), shape(pattern)),
        ExprKind::InList { expr, list, .. } => {
            format!("{}.in({})", shape(expr), list.iter().map(shape).collect::<Vec<_>>().join(", "))
        }
        ExprKind::DateArithmetic { expr, amount, unit, subtract } => {
            format!(
                "{}.{}({}, {})",
                shape(expr),
                if *subtract { "minus" } else { "plus" },
                shape(amount),
                unit.name()
            )
        }
        ExprKind::Function { name, args } => {
            format!("{name}({})", args.iter().map(shape).collect::<Vec<_>>().join(", "))
        }
        ExprKind::Collate { expr, collation } => format!("{}.collate({collation})", shape(expr)),
        ExprKind::Cast { expr, target } => format!("{}.cast({target:?})", shape(expr)),
        other => format!("{other:?}"),
    }
}

fn check(source: &str, expected: &str) {
    let expr = parse_expr(source.as_bytes(), SqlMode::DEFAULT).unwrap_or_else(|e| panic!("{source}: {e}"));
    assert_eq!(shape(&expr), expected, "{source}");
}

#[test]
fn operators_bind_as_in_mysql() {
    check("1 + 2 * 3", "(1 Add (2 Mul 3))");
    check("a DIV b + c", "((a IntDiv b) Add c)");
    check("a MOD b * c", "((a Mod b) Mul c)");
    check("10 - 3 - 2", "((10 Sub 3) Sub 2)");
    check("-2 ^ 2", "(Minus(2) BitXor 2)");
    check("a | b & c << d + e", "(a BitOr (b BitAnd (c ShiftLeft (d Add e))))");
    check("NOT a = b", "Not((a Eq b))");
    check("!a = b", "(Not(a) Eq b)");
    check("a = b = c", "((a Eq b) Eq c)");
    check("a OR b AND c XOR d", "(a Or ((b And c) Xor d))");
    check("a || b && c", "(a Or (b And c))");
    check("a AND b AND c", "(a And b And c)");
    check("a BETWEEN 1 AND 2 AND c", "(a.between(1, 2) And c)");
    check("a IS NOT NULL = b", "(a.isNotNull Eq b)");
    check("a = b IS TRUE", "(a Eq b).isTrue");
    check("a LIKE 'x' AND b IN (1, 2)", "(a.like('x') And b.in(1, 2))");
    check("a < 3 + INTERVAL 1 DAY", "(a Lt 3.plus(1, DAY))");
    check(
        "INTERVAL 2 HOUR + d - INTERVAL '1:1' MINUTE_SECOND",
        "d.plus(2, HOUR).minus('1:1', MINUTE_SECOND)",
    );
    check("BINARY a = 'x' COLLATE utf8mb4_bin", "(a.cast(Binary(None)) Eq 'x'.collate(utf8mb4_bin))");
    check("mod(a, b) % 3", "(mod(a, b) Mod 3)");
    check("interval(1, 2, 3)", "interval(1, 2, 3)");
    check("'a' 'b'", "'ab'");
    check("current_date", "CURDATE()");
    check("now() > a.b", "(now() Gt a.b)");
    check("substring(a from 2 for 3)", "SUBSTRING(a, 2, 3)");
    check("? + ?", "(?0 Add ?1)");
    check("((1))", "1");
}

#[test]
fn sql_mode_changes_the_grammar() {
    let concat = parse_expr(b"a || b", SqlMode::PIPES_AS_CONCAT).unwrap();
    assert_eq!(shape(&concat), "(a Concat b)");
    let quoted = parse_expr(b"\"a\" + 'b'", SqlMode::ANSI_QUOTES).unwrap();
    assert_eq!(shape(&quoted), "(a Add 'b')");
    let not = parse_expr(b"NOT a = b", SqlMode::HIGH_NOT_PRECEDENCE).unwrap();
    assert_eq!(shape(&not), "(Not(a) Eq b)");
}

/// Statements that clients send and that must parse.
const ACCEPTED: &[&str] = &[
    "SELECT 1",
    "select 1;",
    "SELECT * FROM t WHERE a = 1 FOR UPDATE",
    "SELECT a b, c AS 'd' FROM t LOCK IN SHARE MODE",
    "SELECT * FROM t, u FOR SHARE OF t SKIP LOCKED",
    "SELECT DISTINCT SQL_CALC_FOUND_ROWS a, count(*) FROM db.t AS x GROUP BY a WITH ROLLUP HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 5, 10",
    "SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (y) NATURAL JOIN d",
    "SELECT * FROM a LEFT JOIN (b CROSS JOIN c) ON a.x = b.x",
    "SELECT * FROM a JOIN b JOIN c ON b.x = c.x ON a.x = b.x",
    "SELECT * FROM a STRAIGHT_JOIN b FORCE INDEX (i) WHERE a.x = b.x",
    "SELECT * FROM (SELECT 1 AS x UNION ALL SELECT 2) d (y)",
    "(SELECT 1) UNION (SELECT 2) ORDER BY 1 LIMIT 1",
    "((SELECT 1) UNION SELECT 2) EXCEPT SELECT 3",
    "SELECT (SELECT 1) + 1, ((SELECT 2)), (((SELECT 1) + 1) * 2)",
    "SELECT 1 IN (SELECT 2), 1 = ANY (SELECT 3), (1, 2) IN ((1, 2), (3, 4)), EXISTS (SELECT 1)",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "SELECT row_number() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING), sum(x) OVER w FROM t WINDOW w AS (ORDER BY c)",
    "SELECT lag(a, 1, 0) IGNORE NULLS OVER (ORDER BY b) FROM t",
    "VALUES ROW(1, 2), ROW(3, 4)",
    "TABLE t ORDER BY a LIMIT 3",
    "SELECT @@session.auto_increment_increment AS x, @@version_comment LIMIT 1",
    "SELECT @a := 1, @`b c`, @'d'",
    "SELECT CAST(a AS SIGNED INTEGER), CONVERT(a, CHAR(10) CHARACTER SET utf8mb4), CONVERT(a USING utf8mb4)",
    "SELECT trim(BOTH 'x' FROM a), extract(YEAR_MONTH FROM b), position('a' IN b), char(65 USING utf8mb4)",
    "SELECT _utf8mb4'x' COLLATE utf8mb4_bin, N'y', X'4D', 0x4D, b'01', DATE '2020-01-01', {ts '2020-01-01 00:00:00'}",
    "SELECT group_concat(DISTINCT a ORDER BY b DESC SEPARATOR '; ') FROM t",
    "SELECT date_add(a, INTERVAL 1 DAY), adddate(a, 3), timestampdiff(MONTH, a, b), a + INTERVAL b + 1 HOUR_MINUTE FROM t",
    "SELECT t.*, db.u.* FROM t JOIN db.u",
    "SELECT a -> '$.x', left(b, 2), if(c, 1, 0), value, date FROM t",
    "/*!40101 SET NAMES utf8mb4 */",
    "/* ApplicationName=x */ SHOW VARIABLES LIKE 'a%'",
    "INSERT INTO t VALUES (1, DEFAULT, NULL), (2, 3, 4)",
    "INSERT IGNORE t (a, b) SELECT a, b FROM u ON DUPLICATE KEY UPDATE a = VALUES(a) + 1, t.b = 2",
    "INSERT INTO t SET a = 1, b = DEFAULT(b)",
    "INSERT INTO t (a) VALUES (1) AS new ON DUPLICATE KEY UPDATE a = new.a",
    "INSERT INTO t () VALUES ()",
    "REPLACE INTO t VALUES ROW(1), ROW(2)",
    "UPDATE t SET a = a + 1, b = 'x' WHERE c = 1 ORDER BY d LIMIT 3",
    "UPDATE t JOIN u ON t.a = u.a SET t.b = u.b WHERE u.c",
    "DELETE FROM t WHERE a = 1 LIMIT 1",
    "DELETE t FROM t JOIN u USING (a)",
    "DELETE FROM t, u USING t JOIN u USING (a) WHERE t.b",
    "CREATE TABLE IF NOT EXISTS `db`.`t` (`id` int unsigned NOT NULL AUTO_INCREMENT, a varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'x' COMMENT 'c', b decimal(12,2) DEFAULT '0.00', c datetime(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), d double precision, e enum('a','b'), PRIMARY KEY (`id`), UNIQUE KEY u (a(5), b DESC), KEY (c) USING BTREE, CONSTRAINT f FOREIGN KEY (a) REFERENCES u (b) ON DELETE CASCADE) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
    "CREATE TABLE t LIKE u",
    "CREATE TABLE t AS SELECT * FROM u",
    "CREATE TABLE t (a int) PARTITION BY HASH (a) PARTITIONS 4",
    "CREATE UNIQUE INDEX i ON t (a, b DESC)",
    "DROP INDEX i ON t",
    "DROP TABLE IF EXISTS a, b.c",
    "ALTER TABLE t ADD COLUMN a int NOT NULL AFTER b, ADD INDEX (a), DROP COLUMN c, MODIFY d bigint, RENAME TO u, ALGORITHM=INPLACE",
    "ALTER TABLE t ADD CONSTRAINT PRIMARY KEY (a), ENGINE=InnoDB",
    "CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4",
    "TRUNCATE t",
    "USE d",
    "SET autocommit = ON, @x = 1, @@session.sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET GLOBAL max_connections = 10, character_set_results = NULL, sql_select_limit = DEFAULT",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
    "SET sql_mode=(SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')), time_zone='+00:00', NAMES utf8mb4",
    "START TRANSACTION /*!40108 WITH CONSISTENT SNAPSHOT */",
    "START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT",
    "COMMIT AND NO CHAIN",
    "ROLLBACK TO SAVEPOINT a",
    "SHOW FULL TABLES FROM d WHERE Table_type = 'BASE TABLE'",
    "SHOW FULL COLUMNS FROM t FROM d LIKE '%'",
    "SHOW INDEX FROM t",
    "SHOW CREATE TABLE d.t",
    "SHOW GLOBAL STATUS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW BINARY LOG STATUS",
    "SHOW BINLOG EVENTS",
    "SHOW BINLOG EVENTS IN 'binlog.000001' FROM 4 LIMIT 2, 10",
    "SHOW BINLOG EVENTS LIMIT 1 OFFSET 2",
    "SHOW RELAYLOG EVENTS IN 'relay.1' FROM 4 LIMIT 1 FOR CHANNEL ''",
    "SHOW REPLICA STATUS",
    "SHOW REPLICA STATUS FOR CHANNEL 'c'",
    "START REPLICA FOR CHANNEL 'c'",
    "STOP REPLICA IO_THREAD, SQL_THREAD FOR CHANNEL 'c'",
    "RESET REPLICA ALL FOR CHANNEL 'c'",
    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'h' FOR CHANNEL 'c'",
    "SHOW ENGINE INNODB STATUS",
    "SHOW GRANTS FOR CURRENT_USER",
    "DESCRIBE t 'a%'",
    "EXPLAIN FORMAT=TREE SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "PREPARE s FROM 'SELECT ?'",
    "EXECUTE s USING @a, @b",
    "DEALLOCATE PREPARE s",
    "KILL QUERY 12",
    "DO sleep(1), 2",
    "CREATE USER IF NOT EXISTS 'u'@'h' IDENTIFIED BY 'p', v@localhost IDENTIFIED WITH caching_sha2_password BY 'q'",
    "ALTER USER root@localhost IDENTIFIED BY 'x'",
    "DROP USER 'u'@'%'",
    "GRANT ALL PRIVILEGES ON *.* TO 'u'@'h' WITH GRANT OPTION",
    "FLUSH TABLES WITH READ LOCK",
    "LOCK TABLES t READ, u AS v WRITE",
    "UNLOCK TABLES",
    "CALL p(1)",
    "LOAD DATA INFILE 'x' INTO TABLE t",
    "XA START 'x'",
    "ANALYZE TABLE t",
];

#[test]
fn statements_that_clients_send() {
    for sql in ACCEPTED {
        let statements = parse(sql.as_bytes(), SqlMode::DEFAULT).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(statements.len(), 1, "{sql}");
    }
}

#[test]
fn errors_quote_the_source() {
    let error = |sql: &str| parse(sql.as_bytes(), SqlMode::DEFAULT).unwrap_err().to_string();
    assert_eq!(
        error("SELECT 1\nFORM t"),
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for \
         the right syntax to use near 't' at line 2"
    );
    assert!(error("SELECT").ends_with("near '' at line 1"));
    assert!(error("SELEC 1").ends_with("near 'SELEC 1' at line 1"));
    assert!(error("SELECT 'open").ends_with("near ''open' at line 1"));
    assert!(error("SELECT a FROM t WHERE").ends_with("near '' at line 1"));
    assert!(error("SELECT 1 2").ends_with("near '2' at line 1"));
    assert!(error("SELECT * FROM select").ends_with("near 'select' at line 1"));
}

/// Each was read twice, and what stands in it four times.
#[test]
fn joins_with_later_conditions_are_read_once() {
    let mut condition = "1".to_owned();
    for _ in 0..30 {
        condition = format!("EXISTS (SELECT 1 FROM a JOIN b JOIN c ON {condition})");
    }
    parse(format!("SELECT 1 FROM a JOIN b JOIN c ON {condition}").as_bytes(), SqlMode::DEFAULT).unwrap();
}

#[test]
fn statements_are_split() {
    let source = b"SELECT 1; ; SET @a = 'x;y' ;SELECT ?, ?;";
    let statements = parse(source, SqlMode::DEFAULT).unwrap();
    let texts: Vec<_> = statements.iter().map(|s| s.span.text(source).into_owned()).collect();
    assert_eq!(texts, ["SELECT 1", "SET @a = 'x;y'", "SELECT ?, ?"]);
    assert_eq!(statements[2].params, 2);
    assert_eq!(parse(b" -- nothing\n", SqlMode::DEFAULT).unwrap()[0].kind, StatementKind::Comment);
    assert_eq!(parse(b" ;\n", SqlMode::DEFAULT).unwrap()[0].kind, StatementKind::Empty);
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("(", ")"), ("-(", ")"), ("NOT ", ""), ("f(", ")"), ("! ", "")] {
        let sql = format!("SELECT {}1{}", open.repeat(50_000), close.repeat(50_000));
        let error = parse(sql.as_bytes(), SqlMode::DEFAULT).unwrap_err();
        assert!(matches!(error, ParseError::TooDeep { .. }), "{open}: {error}");
    }
    let chain = format!("SELECT 1{}", " + 1".repeat(50_000));
    assert!(matches!(parse(chain.as_bytes(), SqlMode::DEFAULT), Err(ParseError::TooDeep { .. })));
    let wide = format!("SELECT 1{}", " OR 1".repeat(50_000));
    assert!(parse(wide.as_bytes(), SqlMode::DEFAULT).is_ok(), "long chains of OR are no deep trees");
    // Chains within chains add up.
    let within = (0..100).fold("1".to_owned(), |inner, _| format!("({inner}){}", " + 1".repeat(200)));
    let within = format!("SELECT {within}");
    assert!(matches!(parse(within.as_bytes(), SqlMode::DEFAULT), Err(ParseError::TooDeep { .. })));
}

#[test]
fn heights_are_those_of_trees() {
    let height = |sql: &str| parse(sql.as_bytes(), SqlMode::DEFAULT).unwrap()[0].height;
    for (link, links) in [(" + a", 900), (" | a * a", 901), (" XOR a = a", 901), (" = a", 900)] {
        assert_eq!(height(&format!("SELECT a{}", link.repeat(900))), links, "{link}");
        assert_eq!(height(&format!("SELECT a{}", format!(", a{link}").repeat(900))), links - 899, "{link}");
        assert_eq!(
            height(&format!("SELECT a{}", format!(" OR (a{link})").repeat(900))),
            links - 899,
            "{link}"
        );
    }
    assert_eq!(height(&format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(900))), 901);
    let table = format!("CREATE TABLE t (a INT AS (1{}))", " + 1".repeat(900));
    assert!(matches!(parse(table.as_bytes(), SqlMode::DEFAULT), Err(ParseError::TooDeep { .. })));
}

#[test]
fn any_cut_of_a_statement_ends() {
    for sql in ACCEPTED {
        for end in 0..sql.len() {
            let _ = parse(&sql.as_bytes()[..end], SqlMode::DEFAULT);
        }
    }
}
