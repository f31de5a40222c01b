//! Statements of each long or wide form, at `n` terms and at four times as many: what they take grows with their length, and
//! deadlines and KILL end them whatever they are at.

use std::fmt::Write;
use std::time::{Duration, Instant};

use avocet_channel::Interruption;

use super::Client;

/// Beyond a linear growth: tests run beside each other.
const SLACK: u32 = 3;
/// A shorter statement is taken to need so much at least: it may run on a plan that is kept, which the longer one has not, and
/// the machine may be busy.
const LITTLE: Duration = Duration::from_millis(100);
/// After KILL or its deadline a statement ends within this time.
const SOON: Duration = Duration::from_secs(1);

fn joined(separator: &str, count: usize, term: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for n in 0..count {
        write!(text, "{}{}", if n == 0 { "" } else { separator }, term(n)).expect("to a string");
    }
    text
}

/// A form, how many terms its shorter statement has, and the statement of so many.
type Form = (&'static str, usize, fn(usize) -> String);

/// Subqueries make queries of their own, and are fewer than terms.
const FORMS: &[Form] = &[
    ("OR", 2_000, |n| on_t(joined(" OR ", n, |i| format!("(a = {i} AND b = {})", i + 1)))),
    ("AND", 2_000, |n| on_t(joined(" AND ", n, |i| format!("a + b <> {}", i + 1000)))),
    ("IN", 5_000, |n| on_t(format!("a IN ({})", joined(",", n, |i| i.to_string())))),
    ("IN of keys", 5_000, |n| on_t(format!("id IN ({})", joined(",", n, |i| (i * 3).to_string())))),
    ("IN of columns", 1_000, |n| on_t(format!("a IN ({})", joined(",", n, |i| format!("b + {i}"))))),
    ("rows in a list", 1_000, |n| on_t(format!("(a, b) IN ({})", joined(",", n, |i| format!("({i}, 1)"))))),
    ("XOR", 1_000, |n| on_t(joined(" XOR ", n, |i| format!("a = {i}")))),
    ("LIKE", 500, |n| on_t(joined(" OR ", n, |i| format!("s LIKE '%y{i}%'")))),
    ("a sum", 1_000, |n| of_t(format!("MAX({})", joined(" + ", n, |_| "a".into())))),
    ("bits", 1_000, |n| of_t(format!("MAX({})", joined(" | ", n, |_| "a".into())))),
    ("intervals", 1_000, |n| of_t(format!("MAX(d{})", " + INTERVAL 1 SECOND".repeat(n)))),
    ("equal to equal", 1_000, |n| on_t(joined(" = ", n, |_| "a".into()))),
    ("CASE", 1_000, |n| of_t(format!("SUM(CASE a {} END)", joined(" ", n, |i| format!("WHEN {i} THEN 1"))))),
    ("GREATEST", 1_000, |n| of_t(format!("MAX(GREATEST({}))", joined(",", n, |i| format!("a + {i}"))))),
    ("CONCAT", 500, |n| of_t(format!("MAX(CONCAT({}))", joined(",", n, |i| format!("a + {i}"))))),
    ("COALESCE", 500, |n| {
        of_t(format!("MAX(COALESCE({}, 1))", joined(",", n, |i| format!("NULLIF(a, a) + {i}"))))
    }),
    ("HAVING", 1_000, |n| {
        format!("SELECT a FROM t GROUP BY a HAVING {}", joined(" OR ", n, |i| format!("SUM(b) = {i}")))
    }),
    ("a select list", 500, |n| of_t(joined(",", n, |i| format!("a + {i}")))),
    ("sums", 250, |n| of_t(joined(",", n, |i| format!("SUM(a + {i})")))),
    ("sums of groups", 250, |n| of_t(joined(",", n, |i| format!("AVG(a + {i})"))) + " GROUP BY b"),
    ("COUNT(DISTINCT)", 100, |n| of_t(joined(",", n, |i| format!("COUNT(DISTINCT a + {i})")))),
    ("functions of a window", 400, |n| {
        of_t(joined(",", n, |i| format!("SUM(a + {i}) OVER w"))) + " WINDOW w AS (ORDER BY id)"
    }),
    ("windows", 25, |n| of_t(joined(",", n, |i| format!("RANK() OVER (ORDER BY a + {i})")))),
    ("GROUP BY", 100, |n| of_t("COUNT(*)".into()) + " GROUP BY " + &joined(",", n, |i| format!("a + {i}"))),
    ("ORDER BY", 100, |n| of_t("id".into()) + " ORDER BY " + &joined(",", n, |i| format!("a + {i}"))),
    ("DISTINCT", 100, |n| format!("SELECT DISTINCT {} FROM t", joined(",", n, |i| format!("a + {i}")))),
    ("ON", 250, |n| {
        format!(
            "SELECT COUNT(*) FROM t JOIN u ON {}",
            joined(" AND ", n, |i| format!("t.a + {i} = u.a + {i}"))
        )
    }),
    ("UNION", 250, |n| joined(" UNION ALL ", n, |i| format!("SELECT {i}"))),
    ("UNION of tables", 25, |n| joined(" UNION ALL ", n, |i| format!("SELECT MAX(a) FROM t WHERE b <> {i}"))),
    ("rows of VALUES", 2_000, |n| {
        format!("SELECT COUNT(*) FROM (VALUES {}) AS v", joined(",", n, |i| format!("ROW({i}, 1)")))
    }),
    ("EXISTS or EXISTS", 12, |n| {
        on_t(joined(" OR ", n, |i| format!("EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.a = {i})")))
    }),
];

fn on_t(condition: String) -> String {
    format!("SELECT COUNT(*) FROM t WHERE {condition}")
}

fn of_t(items: String) -> String {
    format!("SELECT {items} FROM t")
}

/// Too many rows for a point plan, and few enough to take no time.
fn filled() -> Client {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT, s VARCHAR(20), d DATETIME);
         INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299)
             SELECT i, i % 50, i % 7, CONCAT('x', i), '2024-02-29' FROM n;
         CREATE TABLE u LIKE t; INSERT INTO u SELECT * FROM t",
    );
    client
}

fn timed(client: &mut Client, sql: &str) -> (Duration, String) {
    let begin = Instant::now();
    let answer = client.run(sql);
    (begin.elapsed(), answer)
}

#[test]
fn planning_and_evaluation_grow_with_the_length() {
    let mut client = filled();
    for (what, count, form) in FORMS {
        let (few, many) = (form(*count), form(4 * count));
        // What is begun once is begun before.
        client.run(&form(4));
        // Other work on the machine makes one or the other look slow, but not always the longer one.
        let mut attempts = (0..10).map(|_| {
            let (short, answer) = timed(&mut client, &few);
            assert!(!answer.starts_with("ERROR"), "{what}: {answer}");
            let (long, answer) = timed(&mut client, &many);
            assert!(!answer.starts_with("ERROR"), "{what}: {answer}");
            (short, long)
        });
        let is_linear = |(short, long): &(Duration, Duration)| *long < 4 * SLACK * (*short).max(LITTLE);
        let last = attempts.find(is_linear);
        assert!(last.is_some(), "{what}: {:?}", (timed(&mut client, &few).0, timed(&mut client, &many).0));
    }
}

#[test]
fn deadlines_and_kill_end_planning_and_evaluation() {
    let mut client = filled();
    for (what, count, form) in FORMS {
        let sql = form(4 * count);
        let deadline = Duration::from_millis(20);
        client.run("SET max_execution_time = 20");
        let (took, answer) = timed(&mut client, &sql);
        assert!(took < deadline + SOON, "{what}: {took:?}");
        let answer = &answer[..answer.len().min(100)];
        assert!(!answer.starts_with("ERROR") || answer.starts_with("ERROR 3024"), "{what}: {answer}");
        client.run("SET max_execution_time = 0");
        let interrupt = client.session.info.interrupt.clone();
        let late = std::thread::scope(|threads| {
            let killed = threads.spawn(|| {
                std::thread::sleep(deadline);
                interrupt.raise(Interruption::Statement);
                Instant::now()
            });
            client.run(&sql);
            Instant::now().saturating_duration_since(killed.join().expect("it does not panic"))
        });
        client.session.info.interrupt.begin_statement();
        assert!(late < SOON, "{what}: {late:?} after KILL");
        client.check("SELECT COUNT(*) FROM t", "300");
    }
}

/// What stands within itself is written twice in plans: each level may not double them.
#[test]
fn nesting_does_not_double_plans() {
    let mut client = filled();
    let nested = |level: &dyn Fn(&str, usize) -> String| {
        let expr = (0..40).fold("a".to_owned(), |inner, at| level(&inner, at));
        format!("SELECT MAX({expr}) AS m FROM t GROUP BY b ORDER BY m LIMIT 1")
    };
    let begin = Instant::now();
    for sql in [
        nested(&|x, i| format!("IFNULL({x}, {i})")),
        nested(&|x, i| format!("COALESCE({x}, b, {i})")),
        nested(&|x, i| format!("(({x}) BETWEEN 0 AND {i})")),
        nested(&|x, i| format!("IF({x}, {i}, b)")),
        nested(&|x, i| format!("GREATEST({x}, {i})")),
        nested(&|x, i| format!("({x} IN ({i}, b))")),
        nested(&|x, _| format!("({x} IS NULL)")),
        nested(&|x, _| format!("({x} <=> b)")),
    ] {
        let answer = client.run(&sql);
        assert!(!answer.starts_with("ERROR"), "{sql}: {answer}");
    }
    // These are bounded: MySQL evaluates the last one 2^40 times.
    for sql in [
        nested(&|x, i| format!("CASE {x} WHEN {i} THEN 1 WHEN 2 THEN {i} END")),
        nested(&|x, i| format!("((({x}), b) < ({i}, 2))")),
        nested(&|x, i| format!("((({x}), b) IN (({i}, 2), (3, 4)))")),
        nested(&|x, i| format!("NULLIF({x}, {i})")),
    ] {
        assert!(client.run(&sql).starts_with("ERROR 1436"), "{sql}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn chains_of_thousands_are_answered() {
    let mut client = filled();
    let ones = |n: usize| format!("SELECT {}", joined(" + ", n, |_| "1".into()));
    client.check(&ones(9_000), "9000");
    client.check(&format!("SELECT MAX({}) FROM t", joined(" + ", 9_000, |_| "a".into())), "441000");
    client.check(&format!("SELECT {} FROM t WHERE id = 7", joined(" + ", 9_000, |_| "a".into())), "63000");
    client.check(&format!("SELECT 1{}", " | 2 & 3".repeat(4_000)), "3");
    client.check(
        &format!("SELECT COUNT(*) FROM t WHERE {}", joined(" XOR ", 4_001, |_| "a < 10".into())),
        "60",
    );
    client.check(
        &format!("UPDATE t SET b = {} WHERE id = 1", joined(" + ", 4_000, |_| "1".into())),
        "ok 1 (Rows matched: 1  Changed: 1  Warnings: 0)",
    );
    client.check(&format!("PREPARE p FROM '{}'", ones(4_000)), "ok 0 (Statement prepared)");
    client.check("EXECUTE p", "4000");
    client.check(
        &format!("SELECT COUNT(*) FROM ({}) AS x", joined(" UNION ALL ", 4_000, |i| format!("SELECT {i}"))),
        "4000",
    );
    client.check(
        &format!("SELECT COUNT(*) FROM ({}) AS x", joined(" UNION ", 4_000, |i| format!("SELECT {}", i % 9))),
        "9",
    );
    client.check(
        &format!("{} UNION SELECT 1 UNION ALL SELECT 1", joined(" UNION ALL ", 100, |_| "SELECT 1".into())),
        "1\n1",
    );
    assert!(client.run(&ones(20_000)).starts_with("ERROR 1436: The statement is too deep"));
    let windows = |n| joined(", ", n, |i| format!("RANK() OVER (ORDER BY a + {i})"));
    assert!(
        client
            .run(&format!("SELECT {} FROM t", windows(128)))
            .starts_with("ERROR 4086: Too many windows in SELECT: 128.")
    );
}
