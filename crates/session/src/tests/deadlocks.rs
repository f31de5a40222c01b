//! Eight sessions change few rows by every form of statement that locks: a deadlock is found at once, and no wait ends by its
//! time-out. (`engine/tests/deadlocks.rs` does the same beneath SQL, for longer.)

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Client;

const SESSIONS: u64 = 8;
const TRANSACTIONS: u64 = 60;
const FOUND_WITHIN: Duration = Duration::from_millis(100);

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end
    }
}

/// A statement of a form, on some rows.
fn statement(form: usize, random: &mut Random) -> String {
    let (i, j, k) = (random.below(24), random.below(48), random.below(48));
    match form {
        0 => format!("UPDATE u SET a = a + 1 WHERE a BETWEEN {j} AND {j} + 5 ORDER BY a DESC"),
        1 => format!("UPDATE u SET a = a - 1 WHERE a BETWEEN {j} AND {j} + 5 ORDER BY a"),
        2 => format!("INSERT INTO u VALUES ({i}, {j}, 1) ON DUPLICATE KEY UPDATE a = {k}, b = b + 1"),
        3 => format!("REPLACE INTO u VALUES ({i}, {j}, 2), ({k}, {k}, 3)"),
        4 => format!("INSERT IGNORE INTO u VALUES ({i}, {j}, 4), ({k}, {i}, 5)"),
        5 => format!("DELETE FROM u WHERE b = {}", random.below(6)),
        6 => format!("UPDATE u SET b = b + 1 WHERE id IN ({i}, {k}, {j})"),
        7 => format!("UPDATE u JOIN p ON p.id = u.b SET u.a = u.a + 50, p.n = p.n + 1 WHERE u.id < {i}"),
        8 => {
            format!("INSERT INTO u SELECT id + {i}, a + {k}, b FROM u WHERE id < 5 ORDER BY id DESC LIMIT 2")
        }
        9 => format!("SELECT COUNT(*) FROM (SELECT 1 FROM u WHERE a > {j} LIMIT 3 FOR UPDATE) AS x"),
        10 => format!("SELECT id FROM u WHERE b = {} FOR SHARE", random.below(6)),
        11 => format!("INSERT INTO c VALUES ({j}, {}) ON DUPLICATE KEY UPDATE p = {}", i % 6, k % 6),
        12 => format!("UPDATE p SET id = {} WHERE id = {}", j % 8, k % 8),
        13 => format!("DELETE FROM p WHERE id = {}", k % 8),
        _ => format!("INSERT IGNORE INTO p VALUES ({}, 0)", k % 8),
    }
}

const FORMS: std::ops::Range<usize> = 0..15;

/// One session's transactions: whatever fails but for a deadlock is ignored, as clients do.
fn work(client: &mut Client, forms: &[usize], seed: u64, progress: &AtomicU64) {
    let mut random = Random(seed);
    for _ in 0..TRANSACTIONS {
        client.run("BEGIN");
        for _ in 0..1 + random.below(4) {
            let form = forms[random.below(forms.len() as u64) as usize];
            let sql = statement(form, &mut random);
            let answer = client.run(&sql);
            progress.fetch_add(1, Ordering::Relaxed);
            assert!(!answer.contains("ERROR 1205"), "{sql}: {answer}");
            if ["1213", "1020"].iter().any(|errno| answer.contains(&format!("ERROR {errno}"))) {
                break;
            }
        }
        client.run(if random.below(6) == 0 { "ROLLBACK" } else { "COMMIT" });
        progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends the process if something has panicked: the others might wait for long.
struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

fn run(forms: &[usize], level: &str) {
    let mut client = Client::new();
    client.run(
        "CREATE TABLE u (id INT PRIMARY KEY, a INT UNIQUE, b INT, KEY (b));
         CREATE TABLE p (id INT PRIMARY KEY, n INT);
         CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
         INSERT INTO u WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 23)
             SELECT i, 2 * i, i % 6 FROM n;
         INSERT INTO p VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)",
    );
    let (progress, running) = (AtomicU64::new(0), AtomicU64::new(SESSIONS));
    let ended = AtomicBool::new(false);
    thread::scope(|threads| {
        let (progress, running, ended) = (&progress, &running, &ended);
        let engine = client.database.engine().clone();
        for n in 0..SESSIONS {
            let mut own = client.another();
            threads.spawn(move || {
                let _end = EndOnPanic;
                own.run(&format!("SET innodb_lock_wait_timeout = 600, {level}"));
                work(&mut own, forms, n, progress);
                if running.fetch_sub(1, Ordering::Relaxed) == 1 {
                    ended.store(true, Ordering::Relaxed);
                }
            });
        }
        threads.spawn(move || {
            let _end = EndOnPanic;
            let mut since = (Instant::now(), 0);
            while !ended.load(Ordering::Relaxed) {
                thread::park_timeout(Duration::from_millis(2));
                let now = progress.load(Ordering::Relaxed);
                let all_sleep = engine.sleeping_waiters() as u64 >= running.load(Ordering::Relaxed).max(1);
                if now != since.1 || !all_sleep {
                    since = (Instant::now(), now);
                }
                assert!(since.0.elapsed() < FOUND_WITHIN, "{forms:?} at {level}: all sessions wait");
            }
        });
    });
}

const LEVELS: [&str; 4] = [
    "transaction_isolation = 'READ-COMMITTED'",
    "transaction_isolation = 'REPEATABLE-READ'",
    "transaction_isolation = 'REPEATABLE-READ', innodb_snapshot_isolation = ON",
    "transaction_isolation = 'SERIALIZABLE'",
];

#[test]
fn deadlocks_of_each_form_are_found() {
    for level in &LEVELS[..2] {
        for forms in [&[0][..], &[0, 1], &[2], &[3], &[6, 7], &[11, 12, 13, 14]] {
            run(forms, level);
        }
    }
}

#[test]
fn deadlocks_of_all_forms_together_are_found() {
    let all: Vec<usize> = FORMS.collect();
    for level in LEVELS {
        // At strict levels, what an upsert makes of rows that its snapshot does not have has tests of its own.
        let strict = [2, 3];
        let forms: Vec<usize> = all
            .iter()
            .copied()
            .filter(|form| LEVELS[..2].contains(&level) || !strict.contains(form))
            .collect();
        run(&forms, level);
    }
}
