use super::*;
use crate::parse::parse;
use avocet_types::expr::SqlMode;

fn facts(sql: &str) -> StatementFacts {
    let statements = parse(sql.as_bytes(), SqlMode::DEFAULT).unwrap_or_else(|e| panic!("{sql}: {e}"));
    StatementFacts::of(&statements[0])
}

fn names(uses: &[TableUse]) -> String {
    let name = |t: &TableUse| match &t.database {
        Some(database) => format!("{database}.{}", t.table),
        None => t.table.clone(),
    };
    uses.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn tables_read_and_written() {
    let cases = [
        ("SELECT a FROM t", "t", ""),
        (
            "WITH c AS (SELECT * FROM d.t) SELECT * FROM c JOIN u ON c.a = u.a WHERE EXISTS (SELECT 1 FROM v)",
            "d.t u v",
            "",
        ),
        ("WITH RECURSIVE c AS (SELECT 1 AS n UNION SELECT n + 1 FROM c) SELECT * FROM c", "", ""),
        ("INSERT INTO t SELECT * FROM u", "u", "t"),
        ("REPLACE INTO t VALUES ((SELECT MAX(a) FROM u))", "u", "t"),
        ("UPDATE t JOIN (SELECT * FROM v) x ON t.a = x.a SET t.b = 1", "t v", "t"),
        ("DELETE x FROM t AS x JOIN u ON x.a = u.a", "t u", "t"),
        ("DELETE FROM t WHERE a IN (SELECT a FROM u)", "t u", "t"),
        ("CREATE TABLE t AS SELECT * FROM u", "u", "t"),
        ("RENAME TABLE a TO b, d.c TO d.e", "", "a b d.c d.e"),
        ("TRUNCATE t", "", "t"),
        ("SELECT a FROM t UNION (SELECT a FROM u ORDER BY (SELECT 1 FROM v))", "t u v", ""),
    ];
    for (sql, reads, writes) in cases {
        let facts = facts(sql);
        assert_eq!((names(&facts.reads).as_str(), names(&facts.writes).as_str()), (reads, writes), "{sql}");
    }
}

#[test]
fn what_is_a_pure_read() {
    let reads = [
        "SELECT a FROM t WHERE b = NOW() AND c = @x",
        "SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1",
        "SHOW TABLES",
        "EXPLAIN DELETE FROM t",
        "SELECT RAND()",
        "VALUES ROW(1)",
        "CHECKSUM TABLE t",
    ];
    let others = [
        "SELECT a FROM t FOR UPDATE",
        "SELECT a FROM (SELECT a FROM t FOR SHARE) x",
        "SELECT a INTO @x FROM t",
        "SELECT GET_LOCK('a', 1)",
        "SELECT LAST_INSERT_ID(5)",
        "SELECT @x := a FROM t",
        "SELECT a FROM t WHERE b IN (SELECT @x := 1)",
        "CHECK TABLE t",
        "RESET PERSIST",
        "EXPLAIN ANALYZE DELETE FROM t",
        "CALL p()",
        "DELETE FROM t",
        "SET @x = 1",
        "SELECT a FROM t INTO OUTFILE '/tmp/x'",
        "DO GET_LOCK('a', 1)",
    ];
    for sql in reads {
        assert!(facts(sql).reads_only(), "{sql}");
    }
    for sql in others {
        assert!(!facts(sql).reads_only(), "{sql}");
    }
}

#[test]
fn what_answers_depend_on() {
    use SessionState as S;
    let cases = [
        ("SELECT 1 + 1", true, S::NOTHING),
        ("SELECT NOW()", true, S::CLOCK | S::TIME_ZONE),
        ("SELECT CURRENT_TIMESTAMP, DATABASE()", true, S::CLOCK | S::TIME_ZONE | S::DATABASE),
        ("SELECT SYSDATE()", false, S::NOTHING),
        ("SELECT UUID(), RAND(3)", false, S::NOTHING),
        (
            "SELECT @x, LAST_INSERT_ID(), FOUND_ROWS()",
            true,
            S::USER_VARIABLES | S::LAST_INSERT_ID | S::FOUND_ROWS,
        ),
        ("SELECT @@wait_timeout", true, S::VARIABLES),
        ("SELECT a FROM d.t WHERE b = FROM_UNIXTIME(5)", true, S::TIME_ZONE),
        ("SELECT no_such_function(1)", false, S::NOTHING),
    ];
    for (sql, deterministic, needs) in cases {
        let facts = facts(sql);
        assert_eq!((facts.deterministic, facts.needs), (deterministic, needs), "{sql}");
    }
}

#[test]
fn what_sessions_are_left_with() {
    use SessionState as S;
    let cases = [
        ("SET time_zone = '+00:00', @x = 1", S::TIME_ZONE | S::USER_VARIABLES),
        ("SET autocommit = 0", S::TRANSACTION),
        ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", S::TRANSACTION),
        ("USE d", S::DATABASE),
        ("PREPARE p FROM @q", S::PREPARED),
        ("INSERT INTO t VALUES (1)", S::ROW_COUNT | S::LAST_INSERT_ID),
        ("LOCK TABLES t READ", S::TABLE_LOCKS | S::TRANSACTION),
        ("CREATE TEMPORARY TABLE t (a INT)", S::TEMPORARY_TABLES),
        ("SELECT 1", S::FOUND_ROWS),
        ("SELECT a FROM t ORDER BY @x := a", S::FOUND_ROWS | S::USER_VARIABLES),
        ("UPDATE t SET a = (@x := @x + 1)", S::ROW_COUNT | S::USER_VARIABLES),
    ];
    for (sql, changes) in cases {
        assert_eq!(facts(sql).changes, changes, "{sql}");
    }
    assert_eq!(facts("SET PERSIST max_connections = 5").class, StatementClass::Administration);
    assert_eq!(facts("SET GLOBAL max_connections = 5").class, StatementClass::Administration);
}

#[test]
fn columns_are_named_once() {
    let facts = facts("SELECT t.a, a, t.a, d.t.* FROM d.t WHERE b > 0 ORDER BY b");
    let shown = |c: &ColumnUse| {
        let parts = [&c.database, &c.table, &c.column];
        parts.into_iter().map(|part| part.as_deref().unwrap_or("*")).collect::<Vec<_>>().join(".")
    };
    let columns: Vec<_> = facts.columns.iter().map(shown).collect();
    assert_eq!(columns, ["*.t.a", "*.*.a", "d.t.*", "*.*.b"]);
}

#[test]
fn what_waits_and_what_picks_among_rows() {
    assert!(facts("SELECT a FROM t WHERE SLEEP(1) = 0").waits);
    assert!(!facts("SELECT a FROM t").waits);
    let picks = [
        "SELECT a FROM (SELECT a FROM t LIMIT 3) x",
        "SELECT GROUP_CONCAT(a) FROM t",
        "SELECT ROW_NUMBER() OVER (ORDER BY a) FROM t",
        "SELECT SUM(a) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING) FROM t",
        "(SELECT a FROM t LIMIT 1) UNION SELECT 2",
    ];
    for sql in picks {
        assert!(facts(sql).picks, "{sql}");
    }
    for sql in [
        "SELECT a FROM t LIMIT 3",
        "SELECT RANK() OVER (ORDER BY a) FROM t",
        "SELECT SUM(a) FROM t GROUP BY b",
    ] {
        assert!(!facts(sql).picks, "{sql}");
    }
}
