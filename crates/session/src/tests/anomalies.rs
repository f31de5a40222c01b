//! Which anomalies each isolation level lets through (Adya 1999; the schedules are those of Kleppmann's Hermitage).

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::Client;

/// What has not answered by then waits for a lock.
const WAITS_AFTER: Duration = Duration::from_millis(250);

/// A session on a thread of its own, so that it can wait while others go on.
pub(super) struct Actor {
    statements: Sender<String>,
    answers: Receiver<String>,
}

impl Actor {
    pub fn new(mut client: Client) -> Self {
        let (statements, asked) = channel::<String>();
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            while let Ok(sql) = asked.recv() {
                if answer.send(client.run(&sql)).is_err() {
                    return;
                }
            }
        });
        Self { statements, answers }
    }

    fn start(&self, sql: &str) {
        self.statements.send(sql.to_owned()).expect("the session runs");
    }

    /// The answer, one line of it a row; what ended before `WAITS_AFTER` or a minute later.
    pub fn answer(&self) -> String {
        let answer = self.answers.recv_timeout(Duration::from_secs(60)).expect("an answer");
        answer.trim().replace('\n', " ")
    }

    pub fn run(&self, sql: &str) -> String {
        self.start(sql);
        self.answer()
    }

    /// Starts a statement that may have to wait; false if it has ended.
    pub fn begin_waiting(&self, sql: &str) -> Option<String> {
        self.start(sql);
        match self.answers.recv_timeout(WAITS_AFTER) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the session ended"),
        }
    }

    fn read(&self, id: i32) -> String {
        self.run(&format!("SELECT value FROM test WHERE id = {id}"))
    }

    fn write(&self, id: i32, value: i32) -> bool {
        is_ok(&self.run(&format!("UPDATE test SET value = {value} WHERE id = {id}")))
    }

    fn commit(&self) -> bool {
        is_ok(&self.run("COMMIT"))
    }
}

pub(super) fn is_ok(answer: &str) -> bool {
    !answer.contains("ERROR")
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Level {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Strict,
    Serializable,
}

pub(super) const LEVELS: [Level; 5] =
    [Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Strict, Level::Serializable];

impl Level {
    /// The statement that a session begins with.
    pub fn set(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            Self::ReadCommitted => "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            Self::RepeatableRead => "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            Self::Strict => "SET innodb_snapshot_isolation = ON",
            Self::Serializable => "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        }
    }
}

/// Three sessions in transactions of a level, over `test` with (1, 10) and (2, 20); and one to look at the end.
struct Stage {
    one: Actor,
    two: Actor,
    three: Actor,
    after: Client,
}

impl Stage {
    fn new(level: Level) -> Self {
        let mut after = Client::new();
        after.run(
            "CREATE TABLE test (id INT PRIMARY KEY, value INT); INSERT INTO test VALUES (1, 10), (2, 20)",
        );
        let set = level.set();
        let actor = |client: &Client| {
            let actor = Actor::new(client.another());
            assert!(is_ok(&actor.run(set)) && is_ok(&actor.run("BEGIN")));
            actor
        };
        let (one, two, three) = (actor(&after), actor(&after), actor(&after));
        Self { one, two, three, after }
    }

    fn values(&mut self) -> String {
        self.after.run("SELECT value FROM test ORDER BY id").trim().replace('\n', " ")
    }
}

fn g0(mut s: Stage) -> bool {
    s.one.write(1, 11);
    assert!(
        s.two.begin_waiting("UPDATE test SET value = 12 WHERE id = 1").is_none(),
        "writers wait for writers"
    );
    s.one.write(2, 21);
    s.one.commit();
    let both = is_ok(&s.two.answer()) && s.two.write(2, 22) && s.two.commit();
    s.values() != if both { "12 22" } else { "11 21" }
}

fn g1a(s: Stage) -> bool {
    s.one.write(1, 101);
    let first = s.two.read(1);
    s.one.run("ROLLBACK");
    first == "101" || s.two.read(1) == "101"
}

fn g1b(s: Stage) -> bool {
    s.one.write(1, 101);
    let first = s.two.read(1);
    s.one.write(1, 11);
    s.one.commit();
    first == "101" || s.two.read(1) == "101"
}

fn g1c(s: Stage) -> bool {
    s.one.write(1, 11);
    s.two.write(2, 22);
    let seen = (s.one.read(2), s.two.read(1));
    let committed = s.one.commit() && s.two.commit();
    committed && seen == ("22".into(), "11".into())
}

/// Observed transaction vanishes: what was seen of a transaction is not seen any more.
fn otv(s: Stage) -> bool {
    s.one.write(1, 11);
    s.one.write(2, 19);
    assert!(s.two.begin_waiting("UPDATE test SET value = 12 WHERE id = 1").is_none());
    s.one.commit();
    s.two.answer();
    let first = s.three.read(1);
    s.two.write(2, 18);
    let second = s.three.read(2);
    s.two.commit();
    let (third, fourth) = (s.three.read(2), s.three.read(1));
    let vanishes = (second == "18" && first == "11") || (third == "18" && fourth == "11");
    vanishes || (first == "12" && fourth != "12") || (third == "18" && fourth != "12")
}

/// Predicate-many-preceders: rows appear among those that were looked for.
fn pmp(s: Stage) -> bool {
    assert_eq!(s.one.run("SELECT id FROM test WHERE value = 30"), "");
    s.two.run("INSERT INTO test VALUES (3, 30)");
    s.two.commit();
    !s.one.run("SELECT id FROM test WHERE value % 3 = 0").is_empty()
}

/// Lost update.
fn p4(s: Stage) -> bool {
    assert_eq!((s.one.read(1), s.two.read(1)), ("10".into(), "10".into()));
    s.one.write(1, 11);
    assert!(s.two.begin_waiting("UPDATE test SET value = 11 WHERE id = 1").is_none());
    s.one.commit();
    is_ok(&s.two.answer()) && s.two.commit()
}

fn g_single(s: Stage) -> bool {
    assert_eq!(s.one.read(1), "10");
    s.two.write(1, 12);
    s.two.write(2, 18);
    s.two.commit();
    s.one.read(2) == "18" && s.one.commit()
}

/// As `g_single`, by a write that depends on what was read.
fn g_single_write(s: Stage) -> bool {
    assert_eq!(s.one.read(1), "10");
    s.two.write(1, 12);
    s.two.write(2, 18);
    s.two.commit();
    s.one.write(2, 20) && s.one.commit()
}

/// Write skew.
fn g2_item(s: Stage) -> bool {
    for actor in [&s.one, &s.two] {
        assert_eq!(actor.run("SELECT value FROM test WHERE id IN (1, 2) ORDER BY id"), "10 20");
    }
    let wrote = s.one.write(1, 11) && s.two.write(2, 21);
    let (one, two) = (s.one.commit(), s.two.commit());
    wrote && one && two
}

/// Write skew by rows that are not there yet, found by whole-table scans.
fn g2(s: Stage) -> bool {
    for actor in [&s.one, &s.two] {
        assert_eq!(actor.run("SELECT id FROM test WHERE value % 3 = 0"), "");
    }
    s.one.run("INSERT INTO test VALUES (3, 30)");
    s.two.run("INSERT INTO test VALUES (4, 42)");
    let (one, two) = (s.one.commit(), s.two.commit());
    one && two
}

/// The same, found by aggregation on the analytical path.
fn g2_analytics(s: Stage) -> bool {
    for actor in [&s.one, &s.two] {
        assert_eq!(actor.run("SELECT SUM(a.value) FROM test a JOIN test b ON a.value = b.value"), "30");
    }
    s.one.run("INSERT INTO test VALUES (3, 30)");
    s.two.run("INSERT INTO test VALUES (4, 42)");
    let (one, two) = (s.one.commit(), s.two.commit());
    one && two
}

/// A reader shows that two writers were not one after the other (Fekete, O'Neil, O'Neil 2004).
fn read_only(s: Stage) -> bool {
    assert_eq!((s.two.read(1), s.two.read(2)), ("10".into(), "20".into()));
    s.one.write(2, 40);
    s.one.commit();
    let seen = (s.three.read(1), s.three.read(2));
    let read = s.three.commit();
    let wrote = s.two.write(1, -11) && s.two.commit();
    read && wrote && seen == ("10".into(), "40".into())
}

type Anomaly = (&'static str, fn(Stage) -> bool, &'static [Level]);

#[test]
fn every_level_lets_through_what_it_says() {
    use Level::{ReadCommitted, ReadUncommitted, RepeatableRead, Strict};
    // READ UNCOMMITTED is served as READ COMMITTED.
    const WEAK: &[Level] = &[ReadUncommitted, ReadCommitted];
    const NOT_STRICT: &[Level] = &[ReadUncommitted, ReadCommitted, RepeatableRead];
    const NOT_SERIAL: &[Level] = &[ReadUncommitted, ReadCommitted, RepeatableRead, Strict];
    let table: [Anomaly; 13] = [
        ("G0", g0, &[]),
        ("G1a", g1a, &[]),
        ("G1b", g1b, &[]),
        ("G1c", g1c, &[]),
        ("OTV", otv, &[]),
        ("PMP", pmp, WEAK),
        ("P4", p4, NOT_STRICT),
        ("G-single", g_single, WEAK),
        ("G-single, by a write", g_single_write, NOT_STRICT),
        ("G2-item", g2_item, NOT_SERIAL),
        ("G2", g2, NOT_SERIAL),
        ("G2, by analytics", g2_analytics, NOT_SERIAL),
        ("read-only", read_only, NOT_SERIAL),
    ];
    for (name, happens, at) in table {
        for level in LEVELS {
            assert_eq!(happens(Stage::new(level)), at.contains(&level), "{name} at {level:?}");
        }
    }
}

#[test]
fn strictly_a_changed_row_is_an_error_unless_nothing_was_read() {
    let s = Stage::new(Level::Strict);
    s.one.read(1);
    s.two.write(2, 21);
    s.two.commit();
    let error = s.one.run("UPDATE test SET value = value + 1 WHERE id = 2");
    assert_eq!(error, "ERROR 1020: Record has changed since last read in table 'test'");
    // The whole transaction was rolled back; the next statement is one of its own.
    assert!(s.one.write(2, 22));
    // A statement that waited, but had read nothing before, acts on what it finds then.
    s.one.run("BEGIN");
    s.one.write(2, 30);
    assert!(s.three.begin_waiting("UPDATE test SET value = value + 1 WHERE id = 2").is_none());
    s.one.commit();
    assert!(is_ok(&s.three.answer()) && s.three.commit());
    assert_eq!(s.two.read(2), "31");
}

/// Rows that others have deleted, or moved to another key, since the snapshot: their keys have changed hands.
#[test]
fn a_row_is_not_put_beside_the_one_of_the_snapshot() {
    let gone = ["DELETE FROM test WHERE id = 2", "UPDATE test SET id = 3 WHERE id = 2"];
    for gone in gone {
        let s = Stage::new(Level::Strict);
        s.one.read(1);
        s.two.run(gone);
        s.two.commit();
        let error = s.one.run("INSERT INTO test VALUES (2, 22)");
        assert_eq!(error, "ERROR 1020: Record has changed since last read in table 'test'");
        assert!(is_ok(&s.one.run("INSERT INTO test VALUES (2, 23)")), "a transaction of its own");
        assert_eq!(s.one.read(2), "23");
        // Nothing was read before: the statement moves on.
        s.two.run("BEGIN");
        s.two.run("DELETE FROM test WHERE id = 2");
        s.two.commit();
        assert!(is_ok(&s.three.run("INSERT INTO test VALUES (2, 24)")));
        assert_eq!(s.three.read(2), "24");
        for level in [Level::RepeatableRead, Level::Serializable] {
            let s = Stage::new(level);
            s.one.read(1);
            s.two.run(gone);
            s.two.commit();
            assert!(is_ok(&s.one.run("INSERT INTO test VALUES (2, 22)")), "{level:?}");
            assert_eq!(s.one.read(2), "22", "{level:?}");
            let count = s.one.run("SELECT COUNT(*) FROM test WHERE id = 2");
            assert_eq!(count.trim(), "1", "{level:?}");
        }
    }
}

/// A row whose key its holder left while the INSERT waited: the next statement moves on to a newer snapshot, and the versions that
/// the older one kept are collected before the transaction ends.
#[test]
fn a_row_put_in_anothers_place_stands_when_the_snapshot_moves_on() {
    for level in LEVELS {
        let mut s = Stage::new(level);
        s.three.commit();
        s.two.run("DELETE FROM test WHERE id = 2");
        assert!(s.one.begin_waiting("INSERT INTO test VALUES (2, 22)").is_none(), "{level:?}");
        s.two.commit();
        assert!(is_ok(&s.one.answer()), "{level:?}");
        assert!(is_ok(&s.one.run("INSERT INTO test VALUES (3, 33)")), "{level:?}");
        for value in 0..20 {
            s.after.run(&format!("UPDATE test SET value = {value} WHERE id = 1"));
        }
        assert_eq!(s.one.read(2), "22", "{level:?}");
        assert_eq!(s.one.run("SELECT COUNT(*) FROM test").trim(), "3", "{level:?}");
        assert!(s.one.commit(), "{level:?}");
        assert_eq!(s.values(), "19 22 33", "{level:?}");
    }
}

#[test]
fn statements_that_are_transactions_begin_anew_by_themselves() {
    for level in [Level::Strict, Level::Serializable] {
        let s = Stage::new(level);
        for actor in [&s.one, &s.two, &s.three] {
            actor.run("COMMIT");
        }
        for actor in [&s.one, &s.two, &s.three] {
            for _ in 0..20 {
                actor.start("UPDATE test SET value = value + 1 WHERE id = 1");
            }
        }
        for actor in [&s.one, &s.two, &s.three] {
            for _ in 0..20 {
                let answer = actor.answer();
                assert!(is_ok(&answer), "{level:?}: {answer}");
            }
        }
        assert_eq!(s.one.read(1), "70", "{level:?}");
    }
}
