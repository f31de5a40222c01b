//! KILL QUERY in the middle of changes: they end soon, with error 1317, and leave nothing.

use std::time::{Duration, Instant};

use avocet_channel::Interruption;

use super::Client;

/// A table of 100,000 rows, one without any, and one of ten.
fn filled() -> Client {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE ten (n INT PRIMARY KEY); INSERT INTO ten VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
         CREATE TABLE big (id INT PRIMARY KEY, a INT, s VARCHAR(40), KEY (a));
         INSERT INTO big SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n, a.n, REPEAT('x', 30)
             FROM ten a, ten b, ten c, ten d, ten e;
         CREATE TABLE parent (id INT PRIMARY KEY); INSERT INTO parent VALUES (1);
         CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE);
         INSERT INTO child SELECT id, 1 FROM big WHERE id < 30000;
         CREATE TABLE vacant LIKE big; CREATE VIEW vacant_view AS SELECT * FROM vacant WHERE id >= 0 WITH CHECK OPTION;
         CREATE VIEW big_view AS SELECT * FROM big WHERE a >= 0; CREATE TABLE two (id INT PRIMARY KEY, v INT); INSERT INTO two VALUES (1, 1), (2, 2)",
    );
    client
}

const CHANGES: [&str; 22] = [
    "INSERT INTO vacant SELECT * FROM big",
    "REPLACE INTO vacant SELECT * FROM big",
    "INSERT IGNORE INTO vacant SELECT * FROM big",
    "INSERT INTO vacant SELECT * FROM big ON DUPLICATE KEY UPDATE a = 1",
    "LOAD DATA LOCAL INFILE 'rows:100000' INTO TABLE vacant (id, s)",
    "LOAD DATA LOCAL INFILE 'rows:100000' REPLACE INTO TABLE big (id, s)",
    "CREATE TABLE made SELECT * FROM big",
    "UPDATE big SET a = a + 1",
    "UPDATE big SET a = a + 1 ORDER BY s, id",
    "UPDATE big JOIN ten ON ten.n = big.a SET big.a = 100",
    "DELETE FROM big WHERE a >= 0",
    "DELETE big FROM big JOIN ten ON ten.n = big.a",
    "ALTER TABLE big ADD COLUMN z INT FIRST",
    "ALTER TABLE big ADD INDEX (s, a)",
    "CREATE UNIQUE INDEX u ON big (s, id)",
    "ALTER TABLE big ADD FOREIGN KEY (a) REFERENCES ten (n)",
    "DELETE FROM parent WHERE id = 1",
    "INSERT INTO vacant_view SELECT * FROM big",
    "UPDATE big_view SET a = a + 1",
    "DELETE FROM big_view",
    "UPDATE two SET v = v + SLEEP(5) + 10",
    "INSERT INTO two SELECT 5, SLEEP(5)",
];

#[test]
fn killed_changes_end_soon_and_leave_nothing() {
    let mut client = filled();
    let mut other = client.another();
    let state =
        "SELECT COUNT(*), SUM(a) FROM big; SELECT COUNT(*) FROM vacant; SELECT SUM(v) FROM two; SHOW TABLES;
        SELECT COUNT(*) FROM parent; SELECT COUNT(*) FROM child;
        SELECT COUNT(*) FROM information_schema.referential_constraints;
        SELECT COUNT(*) FROM information_schema.statistics WHERE table_name = 'big'";
    let before = other.run(state);
    for change in CHANGES {
        for after in [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(60)] {
            for explicit in [false, true] {
                client.run(if explicit { "BEGIN; SELECT 1" } else { "SELECT 1" });
                let interrupt = client.session.info.interrupt.clone();
                let (answer, late) = std::thread::scope(|threads| {
                    let killed = threads.spawn(|| {
                        std::thread::sleep(after);
                        interrupt.raise(Interruption::Statement);
                        Instant::now()
                    });
                    let answer = client.run(change);
                    let end = Instant::now();
                    (answer, end.saturating_duration_since(killed.join().expect("it does not panic")))
                });
                client.session.info.interrupt.begin_statement();
                // Small ones may be done before: then they are taken back here.
                let done = !answer.contains("ERROR 1317");
                assert!(!done || !change.contains("SLEEP"), "{change} after {after:?}: {answer}");
                assert!(late < Duration::from_secs(4), "{change} after {after:?} took {late:?} more");
                client.run("ROLLBACK");
                if done {
                    client = filled();
                    other = client.another();
                }
                assert_eq!(other.run(state), before, "{change} after {after:?}: {answer}");
            }
        }
    }
}

/// Statements that wait, and for what: a row, a table's definition, DDL that waits itself, a lock by name, time.
const WAITS: [(&str, &str); 33] = [
    ("row", "UPDATE two SET v = 7 WHERE id = 1"),
    ("row", "UPDATE two SET v = 7"),
    ("row", "UPDATE two SET id = 9 WHERE v = 1"),
    ("row", "DELETE FROM two WHERE id = 1"),
    ("row", "DELETE FROM two ORDER BY v LIMIT 1"),
    ("row", "UPDATE two JOIN ten ON ten.n = two.id SET v = 7"),
    ("row", "DELETE two FROM two JOIN ten ON ten.n = two.id"),
    ("row", "INSERT INTO two VALUES (7, 7), (1, 1) ON DUPLICATE KEY UPDATE v = 3"),
    ("row", "REPLACE INTO two VALUES (7, 7), (1, 1)"),
    ("row", "INSERT INTO two SELECT n, n FROM ten WHERE n BETWEEN 5 AND 7"),
    ("row", "INSERT INTO two VALUES (5, 5)"),
    ("row", "SELECT * FROM two FOR UPDATE"),
    ("row", "SELECT * FROM two WHERE id = 1 FOR SHARE"),
    ("row", "SELECT COUNT(*) FROM two JOIN ten ON ten.n = two.v FOR UPDATE"),
    ("definition", "ALTER TABLE two ADD COLUMN z INT"),
    ("definition", "ALTER TABLE two COMMENT = 'x'"),
    ("definition", "LOCK TABLES ten READ, two WRITE"),
    ("definition", "CREATE INDEX i ON two (v)"),
    ("definition", "DROP TABLE two"),
    ("definition", "TRUNCATE two"),
    ("definition", "RENAME TABLE two TO three"),
    ("definition", "DROP DATABASE test"),
    ("behind", "SELECT * FROM two"),
    ("behind", "SELECT COUNT(*), SUM(v) FROM two GROUP BY v + 1 WITH ROLLUP"),
    ("behind", "UPDATE two SET v = 7 WHERE id = 2"),
    ("behind", "INSERT INTO two VALUES (8, 8)"),
    ("behind", "INSERT INTO vacant SELECT id, v, 'x' FROM two"),
    ("behind", "CREATE TABLE made SELECT * FROM two"),
    ("behind", "SELECT * FROM two WHERE id = 2 FOR UPDATE"),
    ("name", "SELECT GET_LOCK('name', 100)"),
    ("name", "UPDATE two SET v = GET_LOCK('name', 100) WHERE id = 2"),
    ("time", "SELECT SLEEP(100) FROM ten"),
    ("time", "UPDATE two SET v = SLEEP(100) WHERE id = 2"),
];

/// Whether DDL stands before whoever wants to use `two` now.
fn is_blocked(probe: &mut Client) -> bool {
    let interrupt = probe.session.info.interrupt.clone();
    let answer = std::thread::scope(|threads| {
        threads.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            interrupt.raise(Interruption::Statement);
        });
        probe.run("SELECT id FROM two WHERE id = 2")
    });
    interrupt.begin_statement();
    answer.contains("ERROR 1317")
}

#[test]
fn waits_end_when_they_are_killed_and_leave_nothing() {
    let mut client = filled();
    let mut other = client.another();
    let mut ddl = client.another();
    let mut probe = client.another();
    let state = "SELECT * FROM two; SELECT COUNT(*) FROM vacant; SHOW TABLES;
        SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'two'";
    let before = client.run(state);
    for (wait, sql) in WAITS {
        for explicit in [false, true] {
            client.run(if explicit { "BEGIN; SELECT 1" } else { "SELECT 1" });
            other.run("BEGIN; UPDATE two SET v = v + 1 WHERE id = 1; INSERT INTO two VALUES (5, 5); SELECT GET_LOCK('name', 1)");
            let stop_ddl = ddl.session.info.interrupt.clone();
            let interrupt = client.session.info.interrupt.clone();
            let (answer, late) = std::thread::scope(|threads| {
                if wait == "behind" {
                    threads.spawn(|| ddl.run("ALTER TABLE two ADD COLUMN later INT"));
                    while !is_blocked(&mut probe) {}
                }
                let killed = threads.spawn(|| {
                    std::thread::sleep(Duration::from_millis(60));
                    interrupt.raise(Interruption::Statement);
                    Instant::now()
                });
                let answer = client.run(sql);
                let end = Instant::now();
                stop_ddl.raise(Interruption::Statement);
                (answer, end.saturating_duration_since(killed.join().expect("it does not panic")))
            });
            client.session.info.interrupt.begin_statement();
            stop_ddl.begin_statement();
            assert!(answer.ends_with("ERROR 1317: Query execution was interrupted\n"), "{sql}: {answer}");
            assert!(late < Duration::from_secs(1), "{sql} took {late:?} more");
            client.run("ROLLBACK");
            other.run("ROLLBACK; DO RELEASE_ALL_LOCKS()");
            assert_eq!(other.run(state), before, "{sql}");
        }
    }
}

/// Forty schemas, of which each asks twice for the next: more checks than anybody lives to see.
#[test]
fn a_schema_that_asks_for_ever_more_ends_with_its_deadline() {
    let mut client = Client::new();
    let next = |n: usize| format!(r##"{{"$ref": "#/definitions/d{n}"}}"##);
    let definitions: Vec<String> =
        (0..40).map(|n| format!(r#""d{n}": {{"anyOf": [{0}, {0}]}}"#, next(n + 1))).collect();
    let schema = format!(
        r##"{{"$ref": "#/definitions/d0", "definitions": {{{}, "d40": {{"type": "string"}}}}}}"##,
        definitions.join(", ")
    );
    client.run("CREATE TABLE s (id INT PRIMARY KEY, d JSON); INSERT INTO s VALUES (1, '1'), (2, '2')");
    client.run("SET max_execution_time = 50");
    for query in [
        format!("SELECT JSON_SCHEMA_VALID('{schema}', '1')"),
        format!("SELECT COUNT(*) FROM s WHERE JSON_SCHEMA_VALID('{schema}', d)"),
        format!("SELECT MAX(JSON_SCHEMA_VALIDATION_REPORT('{schema}', d)) FROM s GROUP BY id WITH ROLLUP"),
    ] {
        let begin = Instant::now();
        let answer = client.run(&query);
        assert!(answer.starts_with("ERROR 3024"), "{answer}");
        assert!(begin.elapsed() < Duration::from_secs(1), "{query}: {:?}", begin.elapsed());
    }
    client.check("SELECT JSON_SCHEMA_VALID('{\"pattern\": \"(?=a)\"}', '\"a\"')", "ERROR 1235: This version of Avocet doesn't yet support 'the regular expression '(?=a)' of a JSON Schema'");
}

/// Joins that go through all pairs of rows and find none.
const FRUITLESS: [&str; 5] = [
    "SELECT COUNT(*) FROM big a JOIN big b ON a.a + b.a = -1",
    "SELECT COUNT(*) FROM big a JOIN big b ON a.a = b.a AND a.id + b.id = -1",
    "SELECT COUNT(b.id) FROM big a LEFT JOIN big b ON a.id + b.id = -1",
    "SELECT COUNT(*) FROM big a WHERE NOT EXISTS (SELECT 1 FROM big b WHERE b.id + a.id = -1)",
    "SELECT COUNT(*) FROM big a, big b WHERE CONCAT(a.s, b.s) = 'y'",
];

#[test]
fn fruitless_joins_end_and_keep_nobody_waiting() {
    let mut client = filled();
    let mut other = client.another();
    let answer = |client: &mut Client| {
        let began = Instant::now();
        assert_eq!(client.run("SELECT s, COUNT(*), SUM(a) FROM big GROUP BY s").lines().count(), 1);
        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
    };
    for join in FRUITLESS {
        let interrupt = client.session.info.interrupt.clone();
        std::thread::scope(|threads| {
            let running = threads.spawn(|| {
                let answer = client.run(join);
                (answer, Instant::now())
            });
            std::thread::sleep(Duration::from_millis(300));
            // As many as there are threads, and one more.
            let more: Vec<_> = (0..2).map(|_| other.another()).collect();
            let interrupts: Vec<_> =
                more.iter().map(|client| client.session.info.interrupt.clone()).collect();
            let run = |mut client: Client| threads.spawn(move || client.run(join));
            let others: Vec<_> = more.into_iter().map(run).collect();
            std::thread::sleep(Duration::from_millis(300));
            answer(&mut other);
            interrupt.raise(Interruption::Statement);
            let killed = Instant::now();
            let (answered, end) = running.join().expect("it does not panic");
            assert!(answered.contains("ERROR 1317"), "{join}: {answered}");
            assert!(end.saturating_duration_since(killed) < Duration::from_secs(4), "{join}");
            interrupts.iter().for_each(|interrupt| interrupt.raise(Interruption::Statement));
            for other in others {
                assert!(other.join().expect("it does not panic").contains("ERROR 1317"), "{join}");
            }
        });
        client.session.info.interrupt.begin_statement();
        answer(&mut other);
        let limited = format!("SET max_execution_time = 200; {join}");
        assert!(client.run(&limited).contains("ERROR 3024"), "{join}");
        client.run("SET max_execution_time = 0");
    }
}
