//! KILL QUERY in the middle of changes: they end soon, with error 1317, and leave nothing.

use std::time::{Duration, Instant};

use super::Client;
use crate::session::api::Interruption;

/// A table of 100,000 rows, one without any, and one of ten.
fn filled() -> Client {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE ten (n INT PRIMARY KEY); INSERT INTO ten VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
         CREATE TABLE big (id INT PRIMARY KEY, a INT, s VARCHAR(40), KEY (a));
         INSERT INTO big SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n, a.n, REPEAT('x', 30)
             FROM ten a, ten b, ten c, ten d, ten e;
         CREATE TABLE vacant LIKE big; CREATE TABLE two (id INT PRIMARY KEY, v INT); INSERT INTO two VALUES (1, 1), (2, 2)",
    );
    client
}

const CHANGES: [&str; 16] = [
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
    "UPDATE two SET v = v + SLEEP(5) + 10",
    "INSERT INTO two SELECT 5, SLEEP(5)",
];

#[test]
fn killed_changes_end_soon_and_leave_nothing() {
    let mut client = filled();
    let mut other = client.another();
    let state =
        "SELECT COUNT(*), SUM(a) FROM big; SELECT COUNT(*) FROM vacant; SELECT SUM(v) FROM two; SHOW TABLES;
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
