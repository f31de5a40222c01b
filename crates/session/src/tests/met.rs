//! What a session has met of others' commits it sees from then on. A commit gives its locks back once it is logged, and is visible
//! once it is durable: whoever has met it in between waits for that before the next snapshot.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use avocet_base::env::sim::SimDisk;

use super::Client;

/// Each with what another session commits, what meets that (and leaves nothing of its own), the query, and its rows.
const FORMS: &[(&str, &[&str], &str, &str)] = &[
    (
        "INSERT INTO r VALUES (2, 0, 'b')",
        &["INSERT INTO r VALUES (2, 9, 'x')"],
        "SELECT id FROM r WHERE id = 2",
        "2",
    ),
    (
        "INSERT INTO r VALUES (2, 0, 'b')",
        &["INSERT INTO r VALUES (3, 9, 'b')"],
        "SELECT id FROM r WHERE e = 'b'",
        "2",
    ),
    (
        "INSERT INTO r VALUES (2, 0, 'b')",
        &["INSERT IGNORE INTO r VALUES (2, 9, 'x')"],
        "SELECT COUNT(*) FROM r",
        "2",
    ),
    (
        "INSERT INTO r VALUES (2, 0, 'b')",
        &["INSERT IGNORE INTO r SELECT id + 1, 9, 'x' FROM r WHERE id = 1"],
        "SELECT COUNT(*) FROM r",
        "2",
    ),
    (
        "INSERT INTO r VALUES (2, 0, 'b')",
        &["INSERT INTO r VALUES (2, 9, 'x') ON DUPLICATE KEY UPDATE v = v"],
        "SELECT COUNT(*) FROM r",
        "2",
    ),
    (
        "INSERT INTO r VALUES (2, 0, 'b')",
        &["BEGIN", "INSERT INTO r VALUES (2, 9, 'x')", "ROLLBACK"],
        "SELECT COUNT(*) FROM r",
        "2",
    ),
    (
        "INSERT INTO r VALUES (2, 0, 'b')",
        &["BEGIN", "INSERT INTO r VALUES (2, 9, 'x')"],
        "SELECT COUNT(*) FROM r",
        "2",
    ),
    ("UPDATE r SET v = 5", &["UPDATE r SET v = v + 1 WHERE id = 1 AND v < 5"], "SELECT v FROM r", "5"),
    ("UPDATE r SET v = 5", &["UPDATE r SET v = v + 1 WHERE v < 5"], "SELECT v FROM r", "5"),
    ("UPDATE r SET v = 5", &["DELETE FROM r WHERE v < 5"], "SELECT v FROM r", "5"),
    ("UPDATE r SET v = 5", &["DELETE FROM r WHERE e = 'a' AND v < 5"], "SELECT v FROM r", "5"),
    (
        "UPDATE r SET v = 5",
        &["UPDATE r, s SET r.v = 6 WHERE s.id = r.id AND r.v < 5"],
        "SELECT v FROM r",
        "5",
    ),
    ("UPDATE r SET v = 5", &["SELECT id FROM r WHERE id = 1 FOR UPDATE"], "SELECT v FROM r", "5"),
    ("UPDATE r SET v = 5", &["SELECT id FROM r FOR SHARE"], "SELECT v FROM r", "5"),
    ("UPDATE r SET v = 5", &["BEGIN", "SELECT id FROM r WHERE id = 1 FOR UPDATE"], "SELECT v FROM r", "5"),
    ("UPDATE r SET v = 5", &["UPDATE r SET v = 5 WHERE id = 1"], "SELECT v FROM r", "5"),
    ("DELETE FROM r", &["UPDATE r SET v = 7 WHERE id = 1"], "SELECT COUNT(*) FROM r", "0"),
    ("DELETE FROM r", &["DELETE FROM r WHERE id = 1"], "SELECT COUNT(*) FROM r", "0"),
    ("DELETE FROM r", &["SELECT * FROM r WHERE e = 'a' FOR UPDATE"], "SELECT COUNT(*) FROM r", "0"),
];

#[test]
fn what_a_session_has_met_it_sees() {
    let disk = SimDisk::new();
    let mut other = Client::with(|options| options.env.disk = Arc::new(disk.clone()));
    other.run("CREATE TABLE r (id INT PRIMARY KEY, v INT, e VARCHAR(5), UNIQUE KEY (e)); CREATE TABLE s (id INT PRIMARY KEY)");
    other.run("INSERT INTO s VALUES (1)");
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        for point_path in ["ON", "OFF"] {
            for (change, meeting, query, expected) in FORMS {
                other.run("DELETE FROM r; INSERT INTO r VALUES (1, 0, 'a')");
                let mut session = other.another();
                session.run(&format!("SET transaction_isolation = '{}'", level.replace(' ', "-")));
                session.run(&format!("SET avocet_point_path = {point_path}"));
                disk.hold_syncs(Path::new("/data/log"));
                let mut writer = other.another();
                let engine = other.database.engine().clone();
                let logged = engine.last_commit();
                let committing = thread::spawn(move || writer.run(change));
                // It is logged, and not durable.
                let begin = Instant::now();
                while engine.last_commit() == logged {
                    assert!(begin.elapsed() < Duration::from_secs(30), "it is logged soon: {change}");
                    thread::sleep(Duration::from_millis(1));
                }
                let released = disk.clone();
                let release = thread::spawn(move || {
                    thread::sleep(Duration::from_millis(25));
                    released.release_syncs();
                });
                let met: Vec<String> = meeting.iter().map(|statement| session.run(statement)).collect();
                let got = session.run(query);
                assert_eq!(got.trim(), *expected, "{level}, {point_path}: {change}; {meeting:?}: {met:?}");
                committing.join().expect("it ends");
                release.join().expect("it ends");
            }
        }
    }
}
