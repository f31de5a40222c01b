//! What sessions through the front must see whatever is changed, defined and killed meanwhile: money that is moved between rows
//! keeps its sum in every snapshot, and a session finds what it has written itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::session::{Routed, Session};
use crate::error::{Error, Result};
use crate::random::Random;

/// Accounts, and what all of them have together.
const ACCOUNTS: i64 = 40;
const MONEY: i64 = 1_000 * ACCOUNTS;
/// How long a client tries to connect: a server that was killed is back sooner.
const RECONNECT_LIMIT: Duration = Duration::from_secs(60);
/// Queries between two looks at where they ran.
const BATCH: usize = 20;

/// What a session has asked.
#[derive(Default)]
pub struct Seen {
    /// Answers that were checked.
    pub answers: u64,
    /// Of those: known to have come from Avocet.
    pub here: u64,
    /// And from another Avocet than the one with the front.
    pub of_peers: u64,
    /// Connections that were lost and made anew.
    pub lost: u64,
    /// Why the others ran on the source, as far as that is known.
    pub elsewhere: BTreeMap<String, u64>,
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        self.answers += other.answers;
        self.here += other.here;
        self.of_peers += other.of_peers;
        self.lost += other.lost;
        for (why, count) in other.elsewhere {
            *self.elsewhere.entry(why).or_default() += count;
        }
    }

    fn count(&mut self, queries: Vec<Routed>) {
        for query in queries {
            match query.here {
                true => {
                    self.here += 1;
                    self.of_peers += u64::from(query.why.contains("; on the peer "));
                }
                false => *self.elsewhere.entry(query.why).or_default() += 1,
            }
        }
    }
}

/// Makes the tables, with a row of notes for each of so many sessions.
pub fn load(conn: &mut Conn, sessions: u64) -> Result<()> {
    conn.query_drop("CREATE TABLE r.money (id INT PRIMARY KEY, balance BIGINT NOT NULL)")?;
    conn.query_drop("CREATE TABLE r.notes (id INT PRIMARY KEY, n BIGINT NOT NULL)")?;
    let accounts = (1..=ACCOUNTS).map(|id| format!("({id}, {})", MONEY / ACCOUNTS));
    conn.query_drop(format!("INSERT INTO r.money VALUES {}", accounts.collect::<Vec<_>>().join(", ")))?;
    (0..sessions).try_for_each(|id| Ok(conn.query_drop(format!("INSERT INTO r.notes VALUES ({id}, 0)"))?))
}

/// The connection is gone, or the front has lost the one behind it: both come back.
fn is_gone(error: &Error) -> bool {
    error.is_disconnect() || matches!(error.errno(), Some(2002 | 2003 | 2006 | 2013))
}

/// Runs `session` again on a fresh connection whenever one is lost, until told to stop.
fn again(stop: &AtomicBool, mut session: impl FnMut() -> Result<()>) -> Result<u64> {
    let (mut lost, mut since) = (0, None::<Instant>);
    while !stop.load(Ordering::SeqCst) {
        let begin = Instant::now();
        match session() {
            Ok(()) => {}
            Err(error) if is_gone(&error) => {
                lost += 1;
                // A session that has lived shows that the servers are back.
                let is_back = begin.elapsed() > Duration::from_millis(500);
                let since = since.get_or_insert(begin);
                match is_back {
                    true => *since = Instant::now(),
                    false if since.elapsed() > RECONNECT_LIMIT => return Err(error),
                    false => {}
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(lost)
}

/// Moves money between accounts; returns how often.
pub fn transfer(options: OptsBuilder, seed: u64, stop: &AtomicBool) -> Result<u64> {
    let (mut random, mut done) = (Random::new(seed), 0);
    again(stop, || {
        let mut conn = Conn::new(options.clone())?;
        while !stop.load(Ordering::SeqCst) {
            match move_some(&mut conn, &mut random) {
                Ok(()) => done += 1,
                // A deadlock, or a wait for a lock that took too long.
                Err(error) if matches!(error.errno(), Some(1205 | 1213)) => conn.query_drop("ROLLBACK")?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?;
    Ok(done)
}

fn move_some(conn: &mut Conn, random: &mut Random) -> Result<()> {
    let (from, to) = (random.uniform(1, ACCOUNTS), random.uniform(1, ACCOUNTS));
    let amount = random.uniform(1, 50);
    match random.uniform(0, 3) {
        0 => conn.query_drop(format!(
            "UPDATE r.money SET balance = balance + CASE id WHEN {from} THEN -{amount} ELSE {amount} END
             WHERE id IN ({from}, {to}) AND {from} <> {to}"
        ))?,
        1 => {
            // A row is replaced by one that has the same.
            conn.query_drop("START TRANSACTION")?;
            let balance: Option<i64> =
                conn.query_first(format!("SELECT balance FROM r.money WHERE id = {from} FOR UPDATE"))?;
            let balance = balance.ok_or_else(|| Error::Check(format!("account {from} is gone")))?;
            conn.query_drop(format!("DELETE FROM r.money WHERE id = {from}"))?;
            conn.query_drop(format!("INSERT INTO r.money VALUES ({from}, {balance})"))?;
            conn.query_drop("COMMIT")?;
        }
        _ => {
            conn.query_drop("START TRANSACTION")?;
            for (id, change) in [(from, -amount), (to, amount)] {
                conn.exec_drop("UPDATE r.money SET balance = balance + ? WHERE id = ?", (change, id))?;
            }
            conn.query_drop(if random.percent(90) { "COMMIT" } else { "ROLLBACK" })?;
        }
    }
    Ok(())
}

/// Asks for the sum of all accounts through the front.
pub fn sum(front: OptsBuilder, seed: u64, stop: &AtomicBool) -> Result<Seen> {
    let (mut random, mut seen) = (Random::new(seed), Seen::default());
    seen.lost = again(stop, || {
        let mut session = Session::open(front.clone(), "avocet_route = 'here'")?;
        while !stop.load(Ordering::SeqCst) {
            let freshness = ["latest", "session", "bounded(50)", "any"][random.uniform(0, 3) as usize];
            session.conn.query_drop(format!("SET avocet_freshness = '{freshness}'"))?;
            if random.percent(30) {
                in_one_transaction(&mut session.conn, &mut random)?;
                seen.answers += 2;
            }
            for _ in 0..random.uniform(1, BATCH as i64) {
                let (sum, count) = all_money(&mut session.conn, &mut random)?;
                if (sum, count) != (MONEY, ACCOUNTS) {
                    let ran = session.last_routed()?;
                    return Err(Error::Check(format!(
                        "{count} accounts have {sum} instead of {MONEY} with freshness {freshness}: {ran:?}"
                    )));
                }
                seen.answers += 1;
            }
            seen.count(session.routed()?);
        }
        Ok(())
    })?;
    Ok(seen)
}

/// Has queries that take long run at once, until some of them have run on a peer.
pub fn long_at_once(front: &OptsBuilder) -> Result<Seen> {
    const LONG: &str =
        "SELECT CAST(SUM(a.balance) AS SIGNED) FROM r.money a JOIN r.money b JOIN r.money c JOIN r.money d
                        WHERE b.balance + c.balance + d.balance > -1000000";
    let one = || -> Result<Seen> {
        let mut session = Session::open(front.clone(), "avocet_route = 'here'")?;
        let mut seen = Seen::default();
        seen.answers += 1;
        let sum: Option<i64> = session.conn.query_first(LONG)?;
        if sum != Some(MONEY * ACCOUNTS.pow(3)) {
            return Err(Error::Check(format!("a query at a peer's side gives {sum:?}")));
        }
        seen.count(session.routed()?);
        Ok(seen)
    };
    // A peer that was killed rests for a second after the last attempt to reach it.
    let begin = Instant::now();
    let mut all = Seen::default();
    while all.of_peers == 0 && begin.elapsed() < Duration::from_secs(30) {
        std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..3).map(|_| scope.spawn(one)).collect();
            for session in sessions {
                all.add(
                    session.join().unwrap_or_else(|_| Err(Error::Setup("a session has panicked".into())))?,
                );
            }
            Ok::<(), Error>(())
        })?;
    }
    Ok(all)
}

/// Asks Avocet itself for all the money, until told to stop. While the table is copied anew, there is no answer.
pub fn sum_of_copy(copy: OptsBuilder, stop: &AtomicBool) -> Result<Seen> {
    let mut seen = Seen::default();
    seen.lost = again(stop, || {
        let mut conn = Conn::new(copy.clone())?;
        while !stop.load(Ordering::SeqCst) {
            let row: Result<Option<(i64, i64)>> = conn
                .query_first("SELECT CAST(SUM(balance) AS SIGNED), COUNT(*) FROM r.money")
                .map_err(Error::from);
            match row {
                Ok(Some(all)) if all == (MONEY, ACCOUNTS) => {
                    seen.answers += 1;
                }
                Ok(other) => {
                    return Err(Error::Check(format!("the accounts have {other:?} instead of {MONEY}")));
                }
                // It is withheld, or not here yet.
                Err(error) if matches!(error.errno(), Some(1049 | 1105 | 1146)) => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    })?;
    Ok(seen)
}

/// Two looks at all accounts in a transaction: each finds the sum, and a snapshot stays what it is.
fn in_one_transaction(conn: &mut Conn, random: &mut Random) -> Result<()> {
    let is_snapshot = random.percent(50);
    let level = if is_snapshot { "REPEATABLE READ" } else { "READ COMMITTED" };
    conn.query_drop(format!("SET TRANSACTION ISOLATION LEVEL {level}"))?;
    conn.query_drop(if random.percent(50) { "START TRANSACTION READ ONLY" } else { "BEGIN" })?;
    let mut look = || -> Result<Vec<(i64, i64)>> {
        let rows: Vec<(i64, i64)> = conn.query("SELECT id, balance FROM r.money ORDER BY id")?;
        let sum: i64 = rows.iter().map(|(_, balance)| balance).sum();
        match (sum, rows.len() as i64) == (MONEY, ACCOUNTS) {
            true => Ok(rows),
            false => {
                Err(Error::Check(format!("{} accounts have {sum} in a {level} transaction", rows.len())))
            }
        }
    };
    let (first, second) = (look()?, look()?);
    if is_snapshot && first != second {
        return Err(Error::Check("a REPEATABLE READ transaction sees two states".into()));
    }
    Ok(conn.query_drop("COMMIT")?)
}

fn all_money(conn: &mut Conn, random: &mut Random) -> Result<(i64, i64)> {
    let none = || Error::Check("a sum has no row".into());
    const SUM: &str = "SELECT CAST(SUM(balance) AS SIGNED), COUNT(*) FROM r.money";
    match random.uniform(0, 3) {
        0 => conn.exec_first(SUM, ())?.ok_or_else(none),
        1 => {
            let halves: Vec<(i64, i64)> =
                conn.query("SELECT CAST(SUM(balance) AS SIGNED), COUNT(*) FROM r.money GROUP BY id % 2")?;
            Ok(halves.into_iter().fold((0, 0), |all, half| (all.0 + half.0, all.1 + half.1)))
        }
        2 => {
            let sql = "SELECT CAST(SUM(a.balance) AS SIGNED), COUNT(b.balance) FROM r.money a JOIN r.money b USING (id)";
            conn.query_first(sql)?.ok_or_else(none)
        }
        _ => conn.query_first(SUM)?.ok_or_else(none),
    }
}

/// What a session that writes knows of its row.
#[derive(Clone, Copy, Default)]
pub struct Noted {
    acknowledged: i64,
    attempted: i64,
}

/// Writes a row of its own through the front, and looks for it by queries that are to run on Avocet.
pub fn note(front: OptsBuilder, id: u64, seed: u64, noted: &mut Noted, stop: &AtomicBool) -> Result<Seen> {
    let (mut random, mut seen) = (Random::new(seed), Seen::default());
    seen.lost = again(stop, || {
        // The one before may have been lost while a change was on its way.
        let is_latest = random.percent(50);
        let freshness = if is_latest { "latest" } else { "session" };
        let settings = format!("avocet_route = 'here', avocet_freshness = '{freshness}'");
        let mut session = Session::open(front.clone(), &settings)?;
        // A session that has written nothing yet need not see what another has.
        let mut least = if is_latest { noted.acknowledged } else { 0 };
        while !stop.load(Ordering::SeqCst) {
            for _ in 0..BATCH {
                if random.percent(60) {
                    noted.attempted += 1;
                    write(&mut session.conn, id, noted.attempted, &mut random)?;
                    (noted.acknowledged, least) = (noted.attempted, noted.attempted);
                }
                let found = look(&mut session.conn, id, &mut random)?;
                if found.is_none_or(|n| !(least..=noted.attempted).contains(&n)) {
                    let ran = session.last_routed()?;
                    return Err(Error::Check(format!(
                        "a session with freshness {freshness} sees {found:?} of its row {id}, not {least} to {}: {ran:?}",
                        noted.attempted
                    )));
                }
                seen.answers += 1;
            }
            seen.count(session.routed()?);
        }
        Ok(())
    })?;
    Ok(seen)
}

fn write(conn: &mut Conn, id: u64, n: i64, random: &mut Random) -> Result<()> {
    match random.uniform(0, 4) {
        0 => conn.query_drop(format!("UPDATE r.notes SET n = {n} WHERE id = {id}"))?,
        1 => conn.exec_drop("UPDATE r.notes SET n = ? WHERE id = ?", (n, id))?,
        2 => conn
            .exec_drop("INSERT INTO r.notes VALUES (?, ?) ON DUPLICATE KEY UPDATE n = VALUES(n)", (id, n))?,
        3 => {
            conn.query_drop("SET autocommit = 0")?;
            conn.query_drop(format!("DELETE FROM r.notes WHERE id = {id}"))?;
            conn.query_drop(format!("INSERT INTO r.notes VALUES ({id}, {n})"))?;
            // Which commits.
            conn.query_drop("SET autocommit = 1")?;
        }
        _ => {
            let level = if random.percent(50) { "REPEATABLE READ" } else { "READ COMMITTED" };
            conn.query_drop(format!("SET TRANSACTION ISOLATION LEVEL {level}"))?;
            conn.query_drop("BEGIN")?;
            if random.percent(50) {
                look(conn, id, random)?;
            }
            conn.query_drop(format!("UPDATE r.notes SET n = {n} WHERE id = {id}"))?;
            // It has not been committed, but is this session's own.
            let found = look(conn, id, random)?;
            if found != Some(n) {
                return Err(Error::Check(format!(
                    "a {level} transaction sees {found:?} where it has put {n}"
                )));
            }
            conn.query_drop("COMMIT")?;
        }
    }
    Ok(())
}

fn look(conn: &mut Conn, id: u64, random: &mut Random) -> Result<Option<i64>> {
    Ok(match random.uniform(0, 2) {
        0 => conn.query_first(format!("SELECT n FROM r.notes WHERE id = {id}"))?,
        1 => conn.exec_first("SELECT n FROM r.notes WHERE id = ?", (id,))?,
        _ => conn
            .query_first::<Option<i64>, _>(format!("SELECT MAX(n) FROM r.notes WHERE id + 0 = {id}"))?
            .flatten(),
    })
}
