//! Random histories of SQL transactions, in which lists grow by every form of statement that changes rows; judged as
//! `engine/tests/histories.rs` judges those of the engine.
//!
//! A list is a row's text. It is found by its primary key or by a unique one, keys are changed and changed back, rows are
//! replaced, deleted and inserted again, children refer to them.

#[path = "../../../engine/tests/histories/checker.rs"]
mod checker;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use avocet_engine::typed::NewTable;
use avocet_engine::{
    Direction, EngineError, FreezePolicy, KeyRange, Procedure, Procedures, ReadScratch, RowLock,
};
use avocet_types::{Datum, SqlType};

use super::Client;
use super::deadlocks::Random;
use checker::{Anomaly, Key, Op, Transaction, Value, anomalies};

const SESSIONS: u64 = 4;
const TRANSACTIONS: usize = 120;
const KEYS: u64 = 5;

const LEVELS: [(&str, &[Anomaly]); 4] = [
    (
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        &[Anomaly::GSingle, Anomaly::GNonadjacent, Anomaly::G2],
    ),
    (
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        &[Anomaly::GSingle, Anomaly::GNonadjacent, Anomaly::G2],
    ),
    ("SET innodb_snapshot_isolation = ON", &[Anomaly::G2]),
    ("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", &[]),
];

/// `test.append(key, value)`: beneath SQL, in one call.
fn procedures() -> Procedures {
    let append = Procedure::new("test", "append", |call| {
        let table = call.txn.engine().catalog().table("test", "lists").cloned();
        let table = table.ok_or_else(|| EngineError::NoSuchTable("test".into(), "lists".into()))?;
        call.txn.use_table(&table)?;
        let (key, value) = (&call.arguments[0], &call.arguments[1]);
        let mut bytes = Vec::new();
        let index = table.indexes()[0].clone();
        assert!(index.keys.encode_parts(0, std::slice::from_ref(key), &mut bytes));
        let mut found = None;
        let mut scratch = ReadScratch::default();
        let (range, lock) = (KeyRange::prefix(&bytes), RowLock::FOR_UPDATE);
        call.txn.lock_scan(
            &table,
            &index,
            &range,
            Direction::Ascending,
            lock,
            &mut scratch,
            &mut |id, row| {
                found = Some((id, row.get(1).into_owned()));
                ControlFlow::Break(())
            },
        )?;
        let Datum::Str(value) = value else { panic!("a text") };
        match found {
            None => {
                let Datum::Int(id) = key else { panic!("a number") };
                call.txn.insert(&table, &[key.clone(), Datum::str(value), Datum::Int(10 * id)])?;
            }
            Some((id, list)) => {
                let Datum::Str(list) = list else { panic!("a list is text") };
                let longer = format!("{list},{value}");
                call.txn.update(&table, id, &[(1, Datum::str(&longer))])?;
            }
        }
        call.reply.affected_rows = 1;
        Ok(())
    });
    Procedures::default().with(append.takes("id", SqlType::BIGINT).takes("value", NewTable::text(20)))
}

/// What ends a statement, or more.
enum Failed {
    /// It is taken back alone.
    Statement,
    Transaction,
}

struct Worker<'h> {
    client: Client,
    random: Random,
    next: &'h AtomicI64,
    ops: Vec<Op>,
}

impl Worker<'_> {
    /// Rows, or how many were changed.
    fn run(&mut self, sql: &str) -> Result<String, Failed> {
        let answer = self.client.run(sql);
        let Some(error) = answer.lines().find_map(|line| line.strip_prefix("ERROR ")) else {
            return Ok(answer);
        };
        match error.split(':').next() {
            // A duplicate, a parent or a child that is in the way.
            Some("1062" | "1451" | "1452") => Err(Failed::Statement),
            Some("1213" | "1020") => Err(Failed::Transaction),
            _ => panic!("{sql}: {answer}"),
        }
    }

    fn changed(&mut self, sql: &str) -> Result<bool, Failed> {
        self.run(sql).map(|answer| answer.lines().last().is_some_and(|done| !done.starts_with("ok 0")))
    }

    fn key(&mut self) -> Key {
        self.random.below(KEYS) as Key
    }

    fn value(&self) -> Value {
        self.next.fetch_add(1, Relaxed)
    }

    /// WHERE, by one key or the other.
    fn lists(&mut self, key: Key) -> String {
        match self.random.below(3) {
            0 => format!("u = {}", 10 * key),
            1 => format!("id IN ({key}, -1)"),
            _ => format!("id = {key}"),
        }
    }

    /// Plain reads. All of one statement are of one moment.
    fn read(&mut self) -> Result<(), Failed> {
        let key = self.key();
        let by = self.lists(key);
        let all = "SELECT id, list FROM lists ORDER BY id";
        let (sql, keys) = match self.random.below(5) {
            0 => (all.to_owned(), (0..KEYS as Key).collect()),
            // Rows and groups, in the analytical executor.
            1 => (
                "SELECT id, MAX(list) FROM lists GROUP BY id, u + 0 WITH ROLLUP HAVING GROUPING(u + 0) = 0"
                    .into(),
                (0..KEYS as Key).collect(),
            ),
            2 => (
                format!(
                    "SELECT x.id, l.list FROM numbers AS x JOIN lists AS l ON l.id = x.id WHERE x.id = {key}"
                ),
                vec![key],
            ),
            _ => (format!("SELECT id, list FROM lists WHERE {by}"), vec![key]),
        };
        let answer = self.run(&sql)?;
        let mut lists: BTreeMap<Key, Vec<Value>> = answer.lines().map(list).collect();
        // A key that is being changed is seen by nobody else.
        self.ops.extend(keys.into_iter().map(|key| Op::Read(key, lists.remove(&key).unwrap_or_default())));
        assert!(lists.is_empty(), "{sql}: {answer}");
        Ok(())
    }

    fn appended(&mut self, key: Key, value: Value, done: bool) {
        if done {
            self.ops.push(Op::Append(key, value));
        }
    }

    /// One statement, or several that are one change; if one of several fails, the transaction cannot go on.
    fn append(&mut self) -> Result<(), Failed> {
        let (key, value) = (self.key(), self.value());
        let by = self.lists(key);
        let u = 10 * key;
        let longer = format!("CONCAT(list, ',{value}')");
        let sql = match self.random.below(17) {
            0 => format!(
                "INSERT INTO lists VALUES ({key}, '{value}', {u}) ON DUPLICATE KEY UPDATE list = {longer}"
            ),
            1 => format!(
                "INSERT INTO lists SELECT id, '{value}', 10 * id FROM numbers WHERE id = {key} ON DUPLICATE KEY UPDATE list = {longer}"
            ),
            // Another primary key: the unique one is the duplicate, if there is one.
            2 => format!(
                "INSERT INTO lists (id, list, u) SELECT {key}, '{value}', {u} FROM numbers AS x WHERE x.id < 1 ON DUPLICATE KEY UPDATE lists.list = CONCAT(lists.list, ',', VALUES(list))"
            ),
            3 => format!("INSERT INTO lists VALUES ({key}, '{value}', {u})"),
            4 => format!("INSERT IGNORE INTO lists VALUES ({key}, '{value}', {u})"),
            5 | 6 => format!("UPDATE lists SET list = {longer} WHERE {by}"),
            7 => format!(
                "UPDATE lists AS l JOIN numbers AS x ON x.id = l.id SET l.list = CONCAT(l.list, ',{value}') WHERE x.id = {key}"
            ),
            8 => format!(
                "UPDATE lists SET list = {longer} WHERE id = (SELECT MAX(id) FROM numbers WHERE id = {key}) ORDER BY id LIMIT 1"
            ),
            9 => format!("CALL append({key}, '{value}')"),
            10 => return self.two_at_once(),
            11 => return self.replace(key, value),
            12 => return self.again(key, value),
            13 => return self.renamed(key, value),
            14 => return self.child(key),
            15 => format!(
                "UPDATE lists SET list = IF(id = {key}, {longer}, list) WHERE id BETWEEN {key} AND {key} + 1"
            ),
            _ => format!("UPDATE lists SET list = {longer}, u = u + 0 WHERE u = {u} AND list <> ''"),
        };
        let done = self.changed(&sql)?;
        self.appended(key, value, done);
        Ok(())
    }

    fn two_at_once(&mut self) -> Result<(), Failed> {
        let (a, b) = (self.key(), self.key());
        let (v, w) = (self.value(), self.value());
        let rows = format!("({a}, '{v}', {}), ({b}, '{w}', {})", 10 * a, 10 * b);
        self.run(&format!(
            "INSERT INTO lists VALUES {rows} AS new ON DUPLICATE KEY UPDATE list = CONCAT(lists.list, ',', new.list)"
        ))?;
        self.ops.extend([Op::Append(a, v), Op::Append(b, w)]);
        Ok(())
    }

    /// What a list holds, locked; `None` if it is not there.
    fn locked(&mut self, key: Key) -> Result<Option<String>, Failed> {
        let by = self.lists(key);
        let answer = self.run(&format!("SELECT list FROM lists WHERE {by} FOR UPDATE"))?;
        Ok(answer.lines().next().map(str::to_owned))
    }

    /// Several statements, of which none may fail once the row is locked.
    fn together(&mut self, statements: &[String]) -> Result<(), Failed> {
        for sql in statements {
            match self.run(sql) {
                Err(Failed::Statement) => panic!("{sql}: of a row that is locked"),
                done => done.map(drop)?,
            }
        }
        Ok(())
    }

    fn replace(&mut self, key: Key, value: Value) -> Result<(), Failed> {
        let Some(list) = self.locked(key)? else { return Ok(()) };
        let row = format!("{key}, '{list},{value}', {}", 10 * key);
        let replace = match self.random.below(2) {
            0 => format!("REPLACE INTO lists VALUES ({row})"),
            _ => format!("REPLACE INTO lists SELECT {row} FROM numbers WHERE id = 0"),
        };
        self.together(&[replace])?;
        self.appended(key, value, true);
        Ok(())
    }

    fn again(&mut self, key: Key, value: Value) -> Result<(), Failed> {
        let Some(list) = self.locked(key)? else { return Ok(()) };
        self.together(&[
            format!("DELETE FROM lists WHERE id = {key}"),
            format!("INSERT INTO lists VALUES ({key}, '{list},{value}', {})", 10 * key),
        ])?;
        self.appended(key, value, true);
        Ok(())
    }

    fn renamed(&mut self, key: Key, value: Value) -> Result<(), Failed> {
        if self.locked(key)?.is_none() {
            return Ok(());
        }
        let away = 100 + key;
        self.together(&[
            format!("UPDATE lists SET id = {away}, list = CONCAT(list, ',{value}') WHERE id = {key}"),
            format!("UPDATE lists SET id = {key} WHERE u = {}", 10 * key),
        ])?;
        self.appended(key, value, true);
        Ok(())
    }

    /// A child, which shares its parent's row.
    fn child(&mut self, key: Key) -> Result<(), Failed> {
        let sql = match self.random.below(3) {
            0 => format!("DELETE FROM children WHERE list = {key}"),
            1 => format!("INSERT IGNORE INTO children (list) VALUES ({key}), ({})", key + 1),
            _ => format!("INSERT INTO children (list) VALUES ({key})"),
        };
        self.run(&sql).map(drop)
    }

    fn transaction(&mut self) -> Transaction {
        let alone = self.random.below(5) == 0;
        let reads_only = self.random.below(4) == 0;
        let committed = self.statements(alone, reads_only).is_ok();
        Transaction { ops: std::mem::take(&mut self.ops), committed }
    }

    fn statements(&mut self, alone: bool, reads_only: bool) -> Result<(), ()> {
        if alone {
            // A statement that is a transaction: forms of several are not.
            let reads = reads_only || self.random.below(2) == 0;
            return self.read_or(reads).map_err(drop);
        }
        self.client.run("BEGIN");
        for _ in 0..=self.random.below(4) {
            let reads = reads_only || self.random.below(2) == 0;
            let before = self.ops.len();
            match if reads { self.read() } else { self.append() } {
                Ok(()) => {}
                Err(Failed::Statement) if self.random.below(2) == 0 => self.ops.truncate(before),
                Err(_) => {
                    self.client.run("ROLLBACK");
                    return Err(());
                }
            }
            if self.random.below(2) == 0 {
                std::thread::yield_now();
            }
        }
        if self.random.below(10) == 0 {
            self.client.run("ROLLBACK");
            return Err(());
        }
        self.run("COMMIT").map(drop).map_err(drop)
    }

    fn read_or(&mut self, reads: bool) -> Result<(), Failed> {
        if reads {
            return self.read();
        }
        let (key, value) = (self.key(), self.value());
        let done = self.changed(&format!(
            "INSERT INTO lists VALUES ({key}, '{value}', {}) ON DUPLICATE KEY UPDATE list = CONCAT(list, ',{value}')",
            10 * key
        ))?;
        self.appended(key, value, done);
        Ok(())
    }
}

/// A line of a key and its list.
fn list(line: &str) -> (Key, Vec<Value>) {
    let (key, list) = line.split_once('|').expect("two columns");
    (key.parse().expect("a key"), list.split(',').map(|value| value.parse().expect("a number")).collect())
}

fn history(level: &str, freeze: FreezePolicy, seed: u64) -> (Vec<Transaction>, BTreeMap<Key, Vec<Value>>) {
    let mut client = Client::with(|options| {
        options.procedures = procedures();
        options.freeze = freeze;
    });
    let created = client.run(
        "CREATE TABLE lists (id BIGINT PRIMARY KEY, list VARCHAR(12000) COLLATE utf8mb4_bin NOT NULL, u BIGINT NOT NULL, UNIQUE (u));
         CREATE TABLE children (id INT AUTO_INCREMENT PRIMARY KEY, list BIGINT, FOREIGN KEY (list) REFERENCES lists (id) ON DELETE CASCADE ON UPDATE CASCADE);
         CREATE TABLE numbers (id BIGINT PRIMARY KEY); INSERT INTO numbers VALUES (0), (1), (2), (3), (4), (5), (6)",
    );
    assert!(!created.contains("ERROR"), "{created}");
    let next = AtomicI64::new(1);
    let history = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let mut client = client.another();
            let (next, history) = (&next, &history);
            scope.spawn(move || {
                client.run(level);
                let random = Random::new(seed * 1000 + session);
                let mut worker = Worker { client, random, next, ops: Vec::new() };
                for _ in 0..TRANSACTIONS {
                    let done = worker.transaction();
                    history.lock().expect("no panics").push(done);
                }
            });
        }
    });
    let lists = client.run("SELECT id, list FROM lists ORDER BY id").lines().map(list).collect();
    (history.into_inner().expect("no panics"), lists)
}

#[test]
fn every_form_of_change_keeps_its_level() {
    let seeds = std::env::var("AVOCET_HISTORIES").map_or(4, |seeds| seeds.parse().expect("a number"));
    for (level, allowed) in LEVELS {
        let allowed: BTreeSet<Anomaly> = allowed.iter().copied().collect();
        let freezes = [FreezePolicy::Never, FreezePolicy::Always].into_iter().cycle();
        for (seed, freeze) in (1..=seeds).zip(freezes) {
            let (history, lists) = history(level, freeze, seed);
            let committed = history.iter().filter(|txn| txn.committed).count();
            assert!(committed > history.len() / 10, "{level}: {committed} of {} committed", history.len());
            let found = anomalies(&history, &lists);
            assert!(found.is_subset(&allowed), "{level}, seed {seed}, {freeze:?}: {found:?}");
        }
    }
}
