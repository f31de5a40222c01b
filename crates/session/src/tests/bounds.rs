//! What ends a point plan, or hands its statement on: KILL, max_execution_time, memory, and more rows than were thought.

use std::time::{Duration, Instant};

use avocet_channel::Interruption;

use super::Client;

/// A table in which 2,000 rows of 4,000 have one key.
fn skewed() -> Client {
    let mut client = Client::new();
    client.check(
        "CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
        "ok 0\nok 10 (Records: 10  Duplicates: 0  Warnings: 0)",
    );
    client.check("CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(400), KEY (k))", "ok 0");
    let all = "INSERT INTO t SELECT n, IF(n < 2000, 0, n), REPEAT('x', 300) FROM
               (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * e.n AS n FROM d a, d b, d c, d e WHERE e.n < 4) x";
    client.check(all, "ok 4000 (Records: 4000  Duplicates: 0  Warnings: 0)");
    client
}

/// Four million rows; a call that differs from row to row is not begun anew on another path.
const LONG: &str = "SELECT COUNT(RAND()) FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k WHERE a.id = 1";

fn is_point_plan(client: &mut Client, sql: &str) {
    client.run(&format!("EXPLAIN {sql}"));
    let how = client.run("SHOW WARNINGS");
    assert!(how.starts_with("Note|1003|Point plan"), "{how}");
}

#[test]
fn kill_ends_a_point_plan() {
    let mut client = skewed();
    is_point_plan(&mut client, LONG);
    // Nothing looks before the plan does, which would go on for a second.
    client.session.info.interrupt.raise(Interruption::Statement);
    client.check(LONG, "ERROR 1317: Query execution was interrupted");
    client.session.info.interrupt.begin_statement();
    client.check("SELECT COUNT(*) FROM t WHERE k = 0", "2000");
}

#[test]
fn a_point_plan_keeps_its_time() {
    let mut client = skewed();
    is_point_plan(&mut client, LONG);
    client.check("SET max_execution_time = 20", "ok 0");
    let begin = Instant::now();
    client.check(
        LONG,
        "ERROR 3024: Query execution was interrupted, maximum statement execution time exceeded",
    );
    assert!(begin.elapsed() >= Duration::from_millis(20));
    client.check("SELECT COUNT(*) FROM t WHERE k = 0", "2000");
}

#[test]
fn a_point_plan_keeps_its_memory_or_hands_its_query_on() {
    let mut client = skewed();
    client.check("SET query_memory_limit = 200000", "ok 0");
    // 600,000 bytes of texts that differ; elsewhere it needs more than there is, too.
    let random = "SELECT b.s, RAND() FROM t a JOIN t b ON a.k = b.k WHERE a.id = 1 ORDER BY 2";
    is_point_plan(&mut client, random);
    let answer = client.run(random);
    assert!(answer.starts_with("ERROR 1041: Query exceeded its memory limit"), "{answer}");
    // Of this there is not so much when it is gone through in batches.
    let distinct =
        "SELECT COUNT(DISTINCT c.id) FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.id = c.id WHERE a.id = 1";
    is_point_plan(&mut client, distinct);
    client.check(distinct, "2000");
    let update = "UPDATE t SET s = 'y' WHERE k = 0";
    is_point_plan(&mut client, update);
    let answer = client.run(update);
    assert!(answer.starts_with("ERROR 1041: Query exceeded its memory limit"), "{answer}");
    client.check("SET query_memory_limit = 0", "ok 0");
    client.check(update, "ok 2000 (Rows matched: 2000  Changed: 2000  Warnings: 0)");
    assert_eq!(client.database.engine().memory().in_use().queries, 0, "all is given back");
}

#[test]
fn a_query_of_more_rows_than_were_thought_goes_on_elsewhere() {
    let mut client = skewed();
    let skewed = "SELECT COUNT(*), 1 / (MAX(c.id) - MAX(b.id)) FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k WHERE a.id = 1";
    is_point_plan(&mut client, skewed);
    let analytic = |client: &mut Client| client.run("SHOW STATUS LIKE 'Avocet_analytic_queries'");
    let before = analytic(&mut client);
    client.check(skewed, "4000000|NULL");
    client.check("SHOW WARNINGS", "Warning|1365|Division by 0");
    assert_ne!(analytic(&mut client), before);
    // So it is where no plan is kept.
    client.check("SET @id = 1", "ok 0");
    client.check(&skewed.replace("a.id = 1", "a.id = @id"), "4000000|NULL");
    client.check("SHOW WARNINGS", "Warning|1365|Division by 0");
    // What was sent can not be taken back.
    let before = analytic(&mut client);
    let many = "SELECT 1 FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k WHERE a.id = 1 AND c.id < 500";
    is_point_plan(&mut client, many);
    assert_eq!(client.run(many).lines().count(), 1_000_000);
    assert_eq!(analytic(&mut client), before);
}

/// Arguments of a call, and of the calls around it, are there at once: 3 GB by the first of these before they were counted.
#[test]
fn arguments_of_calls_are_counted() {
    let mut client = Client::new();
    let large = "REPEAT('x', 60000000)";
    client.check(&format!("SELECT LENGTH(CONCAT({}))", [large; 50].join(", ")), "NULL");
    let warnings = client.run("SHOW WARNINGS");
    assert!(warnings.contains("Result of concat() was larger than max_allowed_packet"), "{warnings}");
    let answer = client.run(&format!("SELECT LENGTH(ELT(50, {}))", [large; 50].join(", ")));
    assert!(answer.contains("ERROR 1041"), "{answer}");
    let nested = format!("{}'y'{}", format!("ELT(2, {large}, ").repeat(30), ")".repeat(30));
    let answer = client.run(&format!("SELECT LENGTH({nested})"));
    assert!(answer.contains("ERROR 1041"), "{answer}");
    client.check(&format!("SELECT LENGTH(ELT(3, {}))", [large; 3].join(", ")), "60000000");
}

/// A call that makes twice of what it gets, within itself, is what memory could be filled with by one statement.
#[test]
fn values_that_functions_make_fit_a_packet() {
    let nested = |function: &str, inner: &str, times: usize| {
        format!("{}{inner}{}", format!("{function}(").repeat(times), ")".repeat(times))
    };
    let mut client = Client::new();
    for (function, inner, times) in
        [("HEX", "'a'", 40), ("TO_BASE64", "REPEAT('a', 100)", 60), ("JSON_QUOTE", "'\"'", 30)]
    {
        client.check(&format!("SELECT LENGTH({})", nested(function, inner, times)), "NULL");
        let warned = format!(
            "Warning 1301 Result of {}() was larger than max_allowed_packet (67108864) - truncated",
            function.to_lowercase()
        );
        let warnings = client.run("SHOW WARNINGS").replace('|', " ");
        assert!(warnings.contains(&warned), "{function}: {warnings}");
    }
    // What becomes NULL is a text again.
    client.run(&format!("SELECT LENGTH({})", nested("QUOTE", "'\\''", 40)));
    let warnings = client.run("SHOW WARNINGS");
    assert!(warnings.contains("Result of quote() was larger than max_allowed_packet"), "{warnings}");
    client.run("CREATE TABLE t (a VARCHAR(10))");
    client.run("INSERT INTO t VALUES ('a')");
    client.check(&format!("SELECT LENGTH({}) FROM t", nested("HEX", "a", 40)), "NULL");
    client.check("SELECT LENGTH(REGEXP_REPLACE(REPEAT(a, 1000000), 'a', REPEAT('b', 1000))) FROM t", "NULL");
    client.check(
        "SELECT LENGTH(REGEXP_REPLACE(REPEAT(a, 1000000), '(a+)', REPEAT('$1', 100000))) FROM t",
        "NULL",
    );
}

/// A pattern with `_` in a long segment is looked for anew at each place of a text: it asks whether to go on.
#[test]
fn long_patterns_end_at_their_deadline() {
    let mut client = Client::new();
    client.run("CREATE TABLE l (id INT PRIMARY KEY, s VARCHAR(20)); INSERT INTO l VALUES (1, 'a'), (2, 'A')");
    client.run("SET max_execution_time = 200");
    let pattern = "CONCAT('%', REPEAT('a', 100000), '_b%')";
    for text in ["CONCAT(s, REPEAT('a', 2000000))", "CAST(CONCAT(s, REPEAT('a', 2000000)) AS BINARY)"] {
        let begin = std::time::Instant::now();
        let answer = client.run(&format!("SELECT COUNT(*) FROM l WHERE {text} LIKE {pattern}"));
        assert!(answer.starts_with("ERROR 3024"), "{text}: {answer}");
        assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{text}: {:?}", begin.elapsed());
    }
}
