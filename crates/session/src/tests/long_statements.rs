//! Statements that are long, or deep: each ends with an answer or an error, in little time, and ends nothing else.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::Client;

/// So many terms, in statements of some hundred kilobytes.
const MANY: usize = 20_000;
/// As for users: 10,000 terms are planned in 0.2 s. Tests run beside each other, and on slower machines.
const SOON: Duration = Duration::from_secs(20);

fn joined(separator: &str, count: usize, term: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for n in 0..count {
        write!(text, "{}{}", if n == 0 { "" } else { separator }, term(n)).expect("to a string");
    }
    text
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Statements of so many terms, and what is to be answered, if it is an answer and not a limit.
fn long(count: usize) -> Vec<(&'static str, String, Option<&'static str>)> {
    let terms = |separator: &str, term: fn(usize) -> String| joined(separator, count, term);
    let on_t = |test: String| format!("SELECT COUNT(*) FROM t WHERE {test}");
    vec![
        ("OR of equalities", on_t(terms(" OR ", |n| format!("v = {n}"))), Some("100")),
        ("AND of inequalities", on_t(terms(" AND ", |n| format!("v <> {}", n + 5))), Some("72")),
        ("OR of many columns", on_t(terms(" OR ", |n| format!("(v = {n} AND s = 'x{n}')"))), Some("7")),
        ("AND of many forms", on_t(terms(" AND ", |n| format!("v + {n} <> 3 - id"))), Some("98")),
        ("OR of LIKE", on_t(terms(" OR ", |n| format!("s LIKE '%y{n}%'"))), Some("0")),
        (
            "rows in a list",
            on_t(format!("(id, v) IN ({})", terms(", ", |n| format!("({n}, {})", n % 7)))),
            Some("100"),
        ),
        (
            "rows not in a list",
            on_t(format!("(v, s) NOT IN ({})", terms(", ", |n| format!("({}, 'x{n}')", n % 7)))),
            Some("0"),
        ),
        ("a list", on_t(format!("v IN ({})", terms(", ", |n| n.to_string()))), Some("100")),
        ("BETWEEN", on_t(terms(" OR ", |n| format!("id BETWEEN {} AND {}", 2 * n, 2 * n + 1))), Some("100")),
        (
            "HAVING",
            format!(
                "SELECT COUNT(*) FROM (SELECT v FROM t GROUP BY v HAVING {}) AS x",
                terms(" OR ", |n| format!("COUNT(*) = {n}"))
            ),
            Some("7"),
        ),
        (
            "ON",
            format!(
                "SELECT COUNT(*) FROM t a JOIN t b ON a.id = b.id AND ({})",
                terms(" OR ", |n| format!("a.v + b.v = {n}"))
            ),
            Some("100"),
        ),
        (
            "catalog tables",
            format!(
                "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 't' AND ({})",
                terms(" OR ", |n| format!("table_rows = {n}"))
            ),
            Some("1"),
        ),
        (
            "CASE",
            format!("SELECT SUM(CASE v {} END) FROM t", terms(" ", |n| format!("WHEN {n} THEN 1"))),
            Some("100"),
        ),
        (
            "rows of VALUES",
            format!("SELECT COUNT(*) FROM (VALUES {}) AS x", terms(", ", |n| format!("ROW({n})"))),
            Some("20000"),
        ),
        (
            "UPDATE",
            format!("UPDATE t SET v = v WHERE {}", terms(" OR ", |n| format!("id = {n} AND v >= 0"))),
            Some("ok 0 (Rows matched: 100  Changed: 0  Warnings: 0)"),
        ),
        (
            "DELETE",
            format!("DELETE FROM t WHERE {}", terms(" OR ", |n| format!("v = {}", n + 100))),
            Some("ok 0"),
        ),
        ("XOR", on_t(terms(" XOR ", |n| format!("v = {n}"))), None),
        ("a sum", format!("SELECT {}", terms(" + ", |_| "1".into())), None),
        ("UNION", terms(" UNION ALL ", |_| "SELECT 1".into()), None),
        ("joins", format!("SELECT 1 FROM {}", terms(" JOIN ", |n| format!("t t{n}"))), None),
        ("a select list", format!("SELECT {} FROM t", terms(", ", |n| format!("v + {n}"))), None),
        ("ORDER BY", format!("SELECT v FROM t ORDER BY {}", terms(", ", |n| format!("v + {n}"))), None),
        ("GROUP BY", format!("SELECT 1 FROM t GROUP BY {}", terms(", ", |n| format!("v + {n}"))), None),
        (
            "a chain of common table expressions",
            format!(
                "WITH c0 AS (SELECT 1 AS a), {} SELECT 1",
                joined(", ", count, |n| format!("c{} AS (SELECT a FROM c{n})", n + 1))
            ),
            None,
        ),
    ]
}

/// Statements of such a depth.
fn deep(depth: usize) -> Vec<String> {
    let names = joined("", depth, |n| format!(") AS a{n}"));
    vec![
        format!("SELECT {}", nested("(", "1", ")", depth)),
        format!("SELECT {}", nested("NOT ", "1", "", depth)),
        format!("SELECT {}", nested("- ", "1", "", depth)),
        format!("SELECT {}", nested("CONCAT(", "'a'", ")", depth)),
        format!("SELECT {} FROM t", nested("CONCAT(", "s", ")", depth)),
        format!("SELECT {} FROM t", nested("CASE WHEN v THEN ", "1", " END", depth)),
        format!("SELECT {}", nested("(SELECT ", "1", ")", depth)),
        format!("SELECT COUNT(*) FROM t WHERE {}", nested("v IN (SELECT v FROM t WHERE ", "1", ")", depth)),
        format!("SELECT COUNT(*) FROM t WHERE {}", nested("(v = 1 OR v + 1 = 2 AND ", "1", ")", depth)),
        format!("SELECT COUNT(*) FROM {}t{names}", "(SELECT * FROM ".repeat(depth)),
        format!("SELECT COUNT(*) FROM {}", nested("(", "t", ")", depth)),
        nested("(", "SELECT 1", ")", depth),
        joined(" UNION ", depth, |n| format!("SELECT {n}")),
        format!("SELECT {} FROM t", joined(" + ", depth, |_| "v".into())),
        format!("UPDATE t SET v = {} WHERE id = 1", joined(" + ", depth, |_| "v".into())),
        format!("INSERT INTO t VALUES (1, {}, '')", nested("ABS(", "1", ")", depth)),
        format!("SELECT COUNT(*) FROM t WHERE v {}", "BETWEEN 1 AND 2 ".repeat(depth)),
    ]
}

fn filled() -> Client {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(20));
         INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
             SELECT i, i % 7, CONCAT('x', i) FROM n",
    );
    client
}

#[test]
fn long_statements_are_answered_soon() {
    let mut client = filled();
    for (what, sql, wanted) in long(MANY) {
        let begin = Instant::now();
        let answer = client.run(&sql);
        let short = &answer[..answer.len().min(200)];
        assert!(begin.elapsed() < SOON, "{what}: {:?}, {short}", begin.elapsed());
        match wanted {
            Some(wanted) => assert_eq!(short.trim_end(), wanted, "{what}"),
            None => assert!(answer.starts_with("ERROR 1"), "{what}: {short}"),
        }
        client.check("SELECT COUNT(*) FROM t", "100");
    }
}

#[test]
fn long_statements_are_prepared_and_explained() {
    let mut client = filled();
    for (what, sql, wanted) in long(2_000) {
        let explained = client.run(&format!("EXPLAIN {sql}"));
        assert!(!explained.contains("panicked"), "{what}: {explained}");
        client.run(&format!("PREPARE p FROM '{}'", sql.replace('\'', "''")));
        let answer = client.run("EXECUTE p");
        if wanted.is_some_and(|wanted| !wanted.starts_with("20000") && !wanted.starts_with("ok")) {
            assert_eq!(Some(answer.trim_end()), wanted, "{what}");
        }
    }
}

#[test]
fn deep_statements_end_with_an_answer_or_an_error() {
    // As the server's threads have it, and DataFusion's.
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(|| {
        let mut client = filled();
        for depth in [20, 60, 140, 280, 400, 20_000] {
            for sql in deep(depth) {
                let begin = Instant::now();
                let answer = client.run(&sql);
                let shown = &sql[..sql.len().min(60)];
                assert!(begin.elapsed() < SOON, "{shown} {depth}: {:?}", begin.elapsed());
                assert!(!answer.contains("panicked"), "{shown} {depth}: {answer}");
                assert!(depth < 20_000 || answer.starts_with("ERROR "), "{shown} {depth}: {answer}");
            }
        }
    });
    thread.expect("a thread").join().expect("it passes");
}

/// `NOT EXISTS` within one another, of which the innermost uses columns of all around it.
fn nested_not_exists(depth: usize) -> String {
    let equals = |n| format!("t{depth}.id = t{n}.v");
    let mut query = format!("SELECT 1 FROM f t{depth} WHERE {}", joined(" AND ", depth, equals));
    for level in (1..depth).rev() {
        query = format!("SELECT 1 FROM f t{level} WHERE NOT EXISTS ({query})");
    }
    format!("SELECT COUNT(*) FROM f t0 WHERE NOT EXISTS ({query})")
}

/// A few rows are few at each level: none of them is a plan of its own.
#[test]
fn nested_subqueries_of_few_rows_are_answered_soon() {
    let mut client = filled();
    client.run("CREATE TABLE f (id INT PRIMARY KEY, v INT); INSERT INTO f VALUES (1, 1), (2, 2), (3, 3)");
    for (depth, wanted) in [(6, "0"), (8, "0"), (9, "3")] {
        let begin = Instant::now();
        client.check(&nested_not_exists(depth), wanted);
        assert!(begin.elapsed() < SOON, "{depth}: {:?}", begin.elapsed());
    }
}

/// Ways to ask a subquery multiply with each level, but not without end.
#[test]
fn nested_memberships_are_planned_soon() {
    let mut client = filled();
    for shape in ["id IN", "id NOT IN", "v = 1 OR id IN"] {
        let mut query = "SELECT MAX(v) FROM t GROUP BY s".to_owned();
        for level in 0..15 {
            query = format!("SELECT v FROM t t{level} WHERE {shape} ({query})");
        }
        let begin = Instant::now();
        let answer = client.run(&query);
        assert!(begin.elapsed() < SOON, "{shape}: {:?}", begin.elapsed());
        assert!(!answer.starts_with("ERROR"), "{shape}: {answer}");
    }
}

/// Constants are put in order once: rows times constants would be more than a billion comparisons here.
#[test]
fn many_rows_are_looked_up_in_long_lists() {
    let mut client = filled();
    client.run(
        "CREATE TABLE rows_ (id INT, s VARCHAR(20), x DOUBLE);
         INSERT INTO rows_ SELECT a.id * 100 + b.id, CONCAT('x', a.id * 100 + b.id), a.id * 100 + b.id FROM t a, t b;
         INSERT INTO rows_ SELECT id + 10000, CONCAT(s, 'y'), x + 10000 FROM rows_",
    );
    let list = |term: fn(usize) -> String| joined(", ", 60_000, term);
    for (test, wanted) in [
        (format!("s IN ({})", list(|n| format!("'X{n}'"))), "10000"),
        (format!("CAST(s AS BINARY) NOT IN ({})", list(|n| format!("'x{n}'"))), "10000"),
        (format!("x IN ({})", list(|n| format!("{n}e0"))), "20000"),
        (format!("(id, s) IN ({})", list(|n| format!("({n}, 'x{n}')"))), "10000"),
    ] {
        let begin = Instant::now();
        client.check(&format!("SELECT COUNT(*) FROM rows_ WHERE {test}"), wanted);
        assert!(begin.elapsed() < SOON, "{}: {:?}", &test[..20], begin.elapsed());
    }
}

#[test]
fn many_columns_are_dropped_at_once() {
    let mut client = Client::new();
    client.run(&format!(
        "CREATE TABLE wide (id INT PRIMARY KEY, {})",
        joined(", ", 3_000, |n| format!("c{n} INT"))
    ));
    let begin = Instant::now();
    client.run(&format!("ALTER TABLE wide {}", joined(", ", 3_000, |n| format!("DROP COLUMN c{n}"))));
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    client.check("SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'wide'", "1");
}

/// A deadline and KILL end what takes long to plan.
#[test]
fn planning_obeys_deadlines() {
    let mut client = filled();
    client.run("SET max_execution_time = 100");
    let order = joined(", ", 1_500, |n| format!("v + {n}"));
    let begin = Instant::now();
    let answer = client.run(&format!("SELECT v, ROW_NUMBER() OVER () FROM t ORDER BY {order}"));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(
        answer.starts_with("ERROR 3024") || begin.elapsed() < Duration::from_millis(200),
        "{}",
        &answer[..60]
    );
}

/// Rows without columns that a join keeps take no memory, however many they are.
#[test]
fn rows_that_are_only_counted_are_a_number() {
    let mut client = Client::new();
    client.run("CREATE TABLE ten (n INT PRIMARY KEY); INSERT INTO ten VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)");
    let of = |count| format!("SELECT COUNT(*) FROM {}", joined(", ", count, |n| format!("ten t{n}")));
    client.check(&of(5), "100000");
    client.check(
        "SELECT COUNT(*) FROM ten a LEFT JOIN (ten b CROSS JOIN ten c) ON a.n > 4 AND RAND() < 2",
        "505",
    );
    client.run("SET max_execution_time = 300");
    let begin = Instant::now();
    assert!(client.run(&of(30)).starts_with("ERROR 3024"));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn readings_of_common_table_expressions_are_bounded() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2)");
    let chain = |levels: usize| {
        let ctes = joined(", ", levels, |n| match n {
            0 => "c0 AS (SELECT id AS a FROM t)".into(),
            n => format!("c{n} AS (SELECT a + 1 AS a FROM c{})", n - 1),
        });
        format!("WITH {ctes} SELECT a FROM c{}", levels - 1)
    };
    client.check(&chain(63), "63\n64");
    let high = "ERROR 1473: Too high level of nesting for select";
    for sql in [
        chain(64),
        chain(1_000),
        format!("EXPLAIN {}", chain(1_000)),
        format!("INSERT INTO t SELECT a, a FROM ({}) d", chain(64)),
    ] {
        client.check(&sql, high);
    }
    // Each WITH is short, but stands on the one within it.
    let within = |depth: usize| {
        (0..depth).fold("SELECT id AS a FROM t".to_owned(), |inner, n| {
            format!("WITH x{n} AS ({inner}), y{n} AS (SELECT a FROM x{n}), z{n} AS (SELECT a FROM y{n}) SELECT a FROM z{n}")
    })
    };
    client.check(&within(10), "1\n2");
    client.check(&within(40), high);
    // Twice as many readings with each.
    let doubled = |levels: usize| {
        let ctes = joined(", ", levels, |n| match n {
            0 => "c0 AS (SELECT id AS a FROM t)".into(),
            n => format!("c{n} AS (SELECT l.a FROM c{m} l JOIN c{m} r ON l.a = r.a)", m = n - 1),
        });
        format!("WITH {ctes} SELECT COUNT(*) FROM c{}", levels - 1)
    };
    client.check(&doubled(6), "2");
    assert!(client.run(&doubled(40)).starts_with("ERROR 1436"), "{}", client.run(&doubled(40)));
    // What nobody reads is not in the plan.
    client.check(&doubled(12).replace("FROM c11", "FROM c0"), "2");
    client.check("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3), s AS (SELECT n FROM r) SELECT * FROM s JOIN r USING (n) ORDER BY n", "1\n2\n3");
}

/// Each view is short, but stands on the one within it.
#[test]
fn expressions_of_views_within_each_other_are_bounded() {
    // As the server's threads have it.
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(|| {
        let mut client = Client::new();
        client.run("CREATE TABLE n (id INT PRIMARY KEY, v INT); INSERT INTO n VALUES (1, 1)");
        let source = |n: usize, name: &str| if n == 1 { "n".into() } else { format!("{name}{}", n - 1) };
        let mut made = Vec::new();
        for n in 1..=58 {
            let terms = " + 1".repeat(200);
            let column = if n == 1 { "v" } else { "x" };
            made.push(client.run(&format!(
                "CREATE VIEW tall{n} AS SELECT id, {column}{terms} AS x FROM {}",
                source(n, "tall")
            )));
        }
        client.check("SELECT x FROM tall2 WHERE x > 0 ORDER BY x + 1", "401");
        for n in 1..=40 {
            let sum = if n == 1 { "v + v" } else { "(x + x) % 1000" };
            client.run(&format!("CREATE VIEW wide{n} AS SELECT id, {sum} AS x FROM {}", source(n, "wide")));
        }
        client.check("SELECT x FROM wide10", "24");
        // The first that goes too far is not read, nor is one made of it.
        assert!(made[..3].iter().all(|answer| answer.starts_with("ok")), "{made:?}");
        assert!(made.iter().any(|answer| answer.starts_with("ERROR 1436")), "{made:?}");
        for sql in [
            "SELECT x FROM wide40",
            "CREATE VIEW w AS SELECT x + 1 AS x FROM wide39",
            "UPDATE wide40 SET id = 2 WHERE x = 1",
            "DELETE FROM wide40 WHERE x = 1",
        ] {
            let answer = client.run(sql);
            assert!(answer.starts_with("ERROR 1"), "{sql}: {answer}");
        }
        client.check("SELECT id FROM n", "1");
    });
    thread.expect("a thread").join().expect("it passes");
}

#[test]
fn rows_that_are_ordered_have_few_columns() {
    let mut client = filled();
    let test = |count| {
        format!(
            "SELECT COUNT(*) FROM t WHERE ({}) <= ({})",
            joined(", ", count, |_| "v".into()),
            joined(", ", count, |_| "1".into())
        )
    };
    let begin = Instant::now();
    client.check(&test(256), "30");
    assert!(client.run(&test(257)).starts_with("ERROR 1235"));
    assert!(client.run(&test(3_000)).starts_with("ERROR 1235"));
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}
