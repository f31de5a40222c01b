//! Random statements over two small tables.
//!
//! Every statement says by a hint which index it goes along: how many rows a range has decides that in MySQL, and with
//! it which rows are locked.

use super::schedule::{Statement, Traits};
use crate::random::Random;

/// A table with a primary key, a unique and a plain secondary index and a column without any, and a second one that
/// refers to it.
pub fn setup(random: &mut Random) -> Vec<String> {
    let mut rows = Vec::new();
    for id in 1..=9 {
        if random.percent(55) {
            let unique = if random.percent(20) { "NULL".into() } else { (id * 10).to_string() };
            rows.push(format!("({id}, {unique}, {}, {})", small(random), random.uniform(0, 3)));
        }
    }
    if rows.is_empty() {
        rows.push("(1, 10, 1, 1)".into());
    }
    vec![
        "DROP TABLE IF EXISTS t, s".into(),
        "CREATE TABLE t (id INT PRIMARY KEY, u INT, k INT, v INT NOT NULL, UNIQUE KEY u (u), KEY k (k))"
            .into(),
        "CREATE TABLE s (id INT PRIMARY KEY, t INT NOT NULL, w INT NOT NULL, KEY t (t))".into(),
        format!("INSERT INTO t VALUES {}", rows.join(", ")),
        "INSERT INTO s VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 3, 0), (5, 5, 0)".into(),
    ]
}

/// A value of the plain secondary index.
fn small(random: &mut Random) -> String {
    if random.percent(15) { "NULL".into() } else { random.uniform(1, 3).to_string() }
}

fn id(random: &mut Random) -> i64 {
    random.uniform(1, 10)
}

fn unique(random: &mut Random) -> String {
    if random.percent(15) { "NULL".into() } else { (10 * id(random)).to_string() }
}

/// A WHERE, the index that it goes along, and whether that leads to more rows than match.
struct Condition {
    sql: String,
    index: Option<&'static str>,
    scans: bool,
    range: Option<(&'static str, i64)>,
}

impl Condition {
    fn new(index: &'static str, sql: String) -> Condition {
        Condition { sql: format!(" WHERE {sql}"), index: Some(index), scans: false, range: None }
    }

    fn range(index: &'static str, low: i64, high: i64) -> Condition {
        let column = if index == "PRIMARY" { "id" } else { index };
        let range = Some((index, high));
        Condition { range, ..Condition::new(index, format!("{column} BETWEEN {low} AND {high}")) }
    }

    fn traits(&self) -> Traits {
        let looks_beyond = self.range.is_some() || self.scans && !self.sql.is_empty();
        Traits { scans: self.scans, range: self.range, along: self.index, looks_beyond, ..Traits::default() }
    }

    fn hint(&self) -> String {
        self.index.map_or_else(String::new, |index| format!("/*+ INDEX(t {index}) */ "))
    }
}

/// Bounds of a range; were they the same, MySQL would look a single key up.
fn pair(random: &mut Random) -> (i64, i64) {
    let low = random.uniform(1, 9);
    (low, random.uniform(low + 1, 10))
}

fn condition(random: &mut Random) -> Condition {
    let mut condition = match random.uniform(1, 16) {
        1..=4 => Condition::new("PRIMARY", format!("id = {}", id(random))),
        5 => Condition::new("PRIMARY", format!("id IN ({}, {})", id(random), id(random))),
        6 | 7 => {
            let (low, high) = pair(random);
            Condition::range("PRIMARY", low, high)
        }
        8 => Condition::new("PRIMARY", format!("id > {}", id(random))),
        9 | 10 => Condition::new("u", format!("u = {}", 10 * id(random))),
        11 => {
            let (low, high) = pair(random);
            Condition::range("u", 10 * low, 10 * high)
        }
        12 => Condition::new("k", "k IS NULL".into()),
        13 | 14 => Condition::new("k", format!("k = {}", random.uniform(1, 3))),
        15 => {
            let sql = format!(" WHERE v = {}", random.uniform(0, 3));
            return Condition { sql, index: None, scans: true, range: None };
        }
        _ => return Condition { sql: String::new(), index: None, scans: true, range: None },
    };
    if random.percent(25) {
        condition.sql += &format!(" AND v = {}", random.uniform(0, 3));
    }
    condition
}

/// ORDER BY the primary key and LIMIT, now and then. InnoDB's secondary keys end in the primary key, so that rows of one such
/// key come in that order, and no more of them are locked than are wanted.
fn limit(random: &mut Random, condition: &Condition) -> String {
    if condition.index != Some("k") && random.percent(15) {
        format!(" ORDER BY id LIMIT {}", random.uniform(1, 2))
    } else {
        String::new()
    }
}

fn lock(random: &mut Random) -> (&'static str, bool) {
    match random.uniform(1, 20) {
        1..=9 => (" FOR UPDATE", false),
        10..=15 => (" FOR SHARE", false),
        16 => (" FOR UPDATE NOWAIT", true),
        17 => (" FOR SHARE NOWAIT", true),
        18 | 19 => (" FOR UPDATE SKIP LOCKED", true),
        _ => (" FOR SHARE SKIP LOCKED", true),
    }
}

pub fn statement(random: &mut Random) -> Statement {
    match random.uniform(1, 100) {
        1..=14 => {
            let condition = condition(random);
            plain(format!(
                "SELECT {}* FROM t{}{}",
                condition.hint(),
                condition.sql,
                limit(random, &condition)
            ))
        }
        15..=34 => {
            let (condition, (lock, shows_locks)) = (condition(random), lock(random));
            let sql = format!(
                "SELECT {}* FROM t{}{}{lock}",
                condition.hint(),
                condition.sql,
                limit(random, &condition)
            );
            Statement { sql, traits: Traits { shows_locks, locks: true, ..condition.traits() } }
        }
        35..=39 => joined(random),
        40..=54 => insert(random),
        55..=60 => Statement {
            sql: format!("REPLACE INTO t VALUES {}", rows(random)),
            traits: Traits { inserts: true, ..Traits::default() },
        },
        61..=85 => {
            let condition = condition(random);
            let (hint, set) = (condition.hint(), assignment(random));
            let sql = format!("UPDATE {hint}t SET {set}{}{}", condition.sql, limit(random, &condition));
            Statement { sql, traits: condition.traits() }
        }
        86..=97 => {
            let condition = condition(random);
            let sql =
                format!("DELETE {}FROM t{}{}", condition.hint(), condition.sql, limit(random, &condition));
            Statement { sql, traits: condition.traits() }
        }
        _ => plain(format!("UPDATE s SET w = w + 1 WHERE id = {}", random.uniform(1, 5))),
    }
}

/// A read that locks nothing: rows, along each index and by none, and what analytics makes of them.
pub fn view(random: &mut Random) -> Statement {
    plain(match random.uniform(1, 9) {
        1 | 2 => "SELECT * FROM t ORDER BY id, v".into(),
        3 => format!("SELECT * FROM t WHERE id = {}", id(random)),
        4 => format!("SELECT * FROM t WHERE u = {}", 10 * id(random)),
        5 => "SELECT id, k FROM t FORCE INDEX (k) WHERE k > 0 ORDER BY k, id".into(),
        6 => "SELECT COUNT(*), SUM(v), MIN(u), MAX(id) FROM t".into(),
        7 => "SELECT k, COUNT(*), SUM(id * 100 + v) FROM t GROUP BY k ORDER BY k".into(),
        8 => "SELECT s.id, t.id, t.v FROM s JOIN t ON t.id = s.t ORDER BY s.id, t.id, t.v".into(),
        _ => "SELECT COUNT(*), SUM(w) FROM s".into(),
    })
}

/// A change of rows, or a lock on them, by whole keys.
pub fn change_by_key(random: &mut Random) -> Statement {
    let condition = match random.uniform(1, 5) {
        1 => Condition::new("u", format!("u = {}", 10 * id(random))),
        _ => Condition::new("PRIMARY", format!("id = {}", id(random))),
    };
    let (sql, hint) = (&condition.sql, condition.hint());
    match random.uniform(1, 10) {
        1 => Statement {
            sql: format!("SELECT {hint}* FROM t{sql} FOR UPDATE"),
            traits: Traits { locks: true, ..condition.traits() },
        },
        2 | 3 => Statement { sql: format!("DELETE {hint}FROM t{sql}"), traits: condition.traits() },
        4..=6 => Statement {
            sql: format!("UPDATE {hint}t SET {}{sql}", assignment(random)),
            traits: condition.traits(),
        },
        7 => Statement {
            sql: format!("REPLACE INTO t VALUES {}", rows(random)),
            traits: Traits { inserts: true, ..Traits::default() },
        },
        8 | 9 => insert(random),
        _ => plain(format!("UPDATE s SET w = w + 1 WHERE id = {}", random.uniform(1, 5))),
    }
}

fn plain(sql: String) -> Statement {
    Statement { sql, traits: Traits::default() }
}

/// Rows of both tables, found by a key of the first.
fn joined(random: &mut Random) -> Statement {
    let (lock, shows_locks) = lock(random);
    let of = match random.uniform(1, 3) {
        1 => " OF t",
        2 => " OF s",
        _ => "",
    };
    // OF stands between the strength and the patience.
    let strength = if lock.starts_with(" FOR UPDATE") { " FOR UPDATE" } else { " FOR SHARE" };
    let sql = format!(
        "SELECT * FROM t JOIN s ON s.t = t.id WHERE t.id = {}{strength}{of}{}",
        random.uniform(1, 5),
        &lock[strength.len()..]
    );
    Statement { sql, traits: Traits { shows_locks, locks: true, ..Traits::default() } }
}

fn rows(random: &mut Random) -> String {
    let row = |random: &mut Random| {
        format!("({}, {}, {}, {})", id(random), unique(random), small(random), random.uniform(0, 3))
    };
    let count = if random.percent(25) { 2 } else { 1 };
    (0..count).map(|_| row(random)).collect::<Vec<_>>().join(", ")
}

fn insert(random: &mut Random) -> Statement {
    let rows = rows(random);
    let sql = match random.uniform(1, 10) {
        1..=5 => format!("INSERT INTO t VALUES {rows}"),
        6 | 7 => format!("INSERT IGNORE INTO t VALUES {rows}"),
        8 | 9 => format!("INSERT INTO t VALUES {rows} ON DUPLICATE KEY UPDATE v = v + 10"),
        _ => format!("INSERT INTO t VALUES {rows} ON DUPLICATE KEY UPDATE k = {}", small(random)),
    };
    let ignores = sql.starts_with("INSERT IGNORE");
    Statement { sql, traits: Traits { inserts: true, ignores, ..Traits::default() } }
}

fn assignment(random: &mut Random) -> String {
    match random.uniform(1, 10) {
        1..=4 => "v = v + 1".into(),
        5 => format!("v = {}", random.uniform(0, 3)),
        6 | 7 => format!("k = {}", small(random)),
        8 => format!("u = {}", unique(random)),
        9 => format!("id = {}", id(random)),
        _ => format!("k = {}, v = v + 1", small(random)),
    }
}
