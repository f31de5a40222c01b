//! Optimizer hints: what MAX_EXECUTION_TIME and SET_VAR do, and what MySQL warns of.

use std::time::{Duration, Instant};

use super::client::{Client, check};

#[test]
fn max_execution_time_ends_the_statement_and_no_other() {
    let mut client = Client::new();
    client.run("SET cte_max_recursion_depth = 100000000");
    let numbers = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 50000000)";
    let ended = client.run(&format!("{numbers} SELECT /*+ MAX_EXECUTION_TIME(50) */ COUNT(*) FROM r"));
    assert!(ended.contains("ERROR 3024"), "{ended}");
    client.check("SELECT @@max_execution_time", "0");
    client.check("SELECT /*+ MAX_EXECUTION_TIME(0) */ 1", "1");
}

/// A function may take long over one text, and a row is soon there.
#[test]
fn time_ends_functions_over_long_texts() {
    let mut client = Client::new();
    client.run("CREATE TABLE n (i INT PRIMARY KEY); CREATE TABLE t (id INT PRIMARY KEY, s LONGTEXT)");
    client.run("INSERT INTO n WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 200) SELECT i FROM r");
    client.run("INSERT INTO t VALUES (1, REPEAT('abc<a>x</a>,', 500000))");
    client.run("SET max_execution_time = 100");
    for call in ["INSTR(s, 'zq')", "LOWER(s)", "CRC32(s)", "CAST(s AS DATETIME)", "MD5(s)", "s + 0"] {
        let begin = Instant::now();
        let ended = client.run(&format!("SELECT COUNT(*) FROM t, n WHERE LENGTH({call}) + i = -1"));
        assert!(ended.contains("ERROR 3024"), "{call}: {ended}");
        assert!(begin.elapsed() < Duration::from_secs(3), "{call}: {:?}", begin.elapsed());
    }
}

#[test]
fn what_hints_did_not_set_stays_as_the_statement_left_it() {
    check(&[
        ("CREATE TABLE n (id INT AUTO_INCREMENT KEY, b INT)", "ok 0"),
        ("SET insert_id = 50", "ok 0"),
        ("INSERT /*+ SET_VAR(foreign_key_checks = 0) */ INTO n (b) VALUES (1)", "ok 1 id 50"),
        ("SELECT @@foreign_key_checks", "1"),
        ("INSERT INTO n (b) VALUES (3)", "ok 1 id 51"),
        ("SET insert_id = 70", "ok 0"),
        ("INSERT /*+ SET_VAR(insert_id = 60) */ INTO n (b) VALUES (4)", "ok 1 id 60"),
        ("SELECT @@insert_id", "70"),
    ]);
}

#[test]
fn set_var_lasts_for_its_statement() {
    check(&[
        ("SELECT /*+ SET_VAR(div_precision_increment = 1) */ 1 / 3; SELECT 1 / 3", "0.3\n0.3333"),
        ("SELECT (SELECT /*+ SET_VAR(div_precision_increment = 2) */ 1) / 3", "0.33"),
        ("CREATE TABLE t (id INT AUTO_INCREMENT KEY, a INT)", "ok 0"),
        (
            "INSERT /*+ SET_VAR(auto_increment_increment = 5) */ INTO t (a) VALUES (1), (2)",
            "ok 2 id 1 (Records: 2  Duplicates: 0  Warnings: 0)",
        ),
        ("SELECT id FROM t; SELECT @@auto_increment_increment", "1\n6\n1"),
        ("SELECT /*+ SET_VAR(sql_select_limit = 1) */ id FROM t ORDER BY id", "1"),
        (
            "PREPARE s FROM 'SELECT /*+ SET_VAR(div_precision_increment = 1) */ 1 / ?'; SET @x = 3; EXECUTE s USING @x",
            "ok 0 (Statement prepared)\nok 0\n0.3",
        ),
        ("SELECT 1 / 3", "0.3333"),
    ]);
}

#[test]
fn a_point_plan_is_used_with_hints_too() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 10), (2, 20)");
    for _ in 0..2 {
        client.check("SELECT /*+ SET_VAR(sql_select_limit = 1) */ a FROM t WHERE id = 2", "20");
        client.check("SELECT /*+ MAX_EXECUTION_TIME(1000) */ a FROM t WHERE id = 1", "10");
        client.check(
            "UPDATE /*+ SET_VAR(foreign_key_checks = OFF) */ t SET a = a + 1 WHERE id = 2",
            "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)",
        );
        client.check("UPDATE t SET a = 20 WHERE id = 2", "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)");
    }
}

#[test]
fn what_is_no_hint_is_warned_of() {
    let duplicated = "is ignored as conflicting/duplicated";
    for (hint, warning) in [
        ("NOSUCH(t)", "1064|Optimizer hint syntax error near 'NOSUCH(t) */ 1' at line 1".to_owned()),
        ("BKA(t) x", "1064|Optimizer hint syntax error near 'x */ 1' at line 1".to_owned()),
        ("MAX_EXECUTION_TIME()", "1064|Optimizer hint syntax error near ') */ 1' at line 1".to_owned()),
        (
            "MAX_EXECUTION_TIME(9) MAX_EXECUTION_TIME(5)",
            format!("3126|Hint MAX_EXECUTION_TIME(5) {duplicated}"),
        ),
        ("SET_VAR(nosuch = 1)", "3128|Unresolved name 'nosuch' for SET_VAR hint".to_owned()),
        (
            "SET_VAR(autocommit = 0)",
            "3637|Variable 'autocommit' cannot be set using SET_VAR hint.".to_owned(),
        ),
        (
            "SET_VAR(max_execution_time = x)",
            "1232|Incorrect argument type to variable 'max_execution_time'".to_owned(),
        ),
        (
            "SET_VAR(max_error_count = 5M)",
            "1292|Truncated incorrect max_error_count value: '5242880'".to_owned(),
        ),
        (
            "SET_VAR(max_error_count=7) SET_VAR(max_error_count=8)",
            format!("3126|Hint SET_VAR(max_error_count=8)  {duplicated}"),
        ),
        ("RESOURCE_GROUP(x)", "3651|Resource Group 'x' does not exist.".to_owned()),
    ] {
        let mut client = Client::new();
        client.check(&format!("SELECT /*+ {hint} */ 1"), "1");
        client.check("SHOW WARNINGS", &format!("Warning|{warning}"));
    }
}

#[test]
fn only_a_select_that_stands_alone_has_a_time_limit() {
    let message = "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only";
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT)");
    for sql in [
        "SELECT (SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1)",
        "INSERT /*+ MAX_EXECUTION_TIME(1000) */ INTO t VALUES (1)",
        "INSERT INTO t SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1",
        "SELECT 1 UNION ALL SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1",
        "WITH x AS (SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1) SELECT 1 FROM x",
        "UPDATE /*+ MAX_EXECUTION_TIME(1000) */ t SET id = 2",
    ] {
        client.run(sql);
        client.check("SHOW WARNINGS", &format!("Warning|3125|{message}"));
    }
    for sql in [
        "SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1 UNION SELECT 1",
        "(SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1) UNION SELECT 1",
        "WITH x AS (SELECT 1) SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1 FROM x",
        "SELECT 1 /*+ NOSUCH */",
        "SELECT /* BKA */ 1",
    ] {
        client.run(sql);
        client.check("SHOW WARNINGS", "");
    }
}
