//! PROMOTE REPLICA: while writers go on, promotions fail, are killed, and succeed; then the old source follows the new primary.
//!
//! Each writer inserts rows with ascending numbers, at the source, at Avocet or through the front, wherever it is let, and notes which
//! were acknowledged. In the end both servers have every acknowledged row, and the same rows in all.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::pair::Source;
use super::{Options, Pair, back, compare, connect, pair};
use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rival::Server;

/// Both servers take no writes.
const READ_ONLY: u16 = 1290;
/// So many promotions of a round may be cut short.
const MOST_ATTEMPTS: u32 = 12;

const SCHEMA: [&str; 10] = [
    "CREATE DATABASE r",
    "CREATE TABLE r.notes (id BIGINT AUTO_INCREMENT PRIMARY KEY, writer INT NOT NULL, n BIGINT NOT NULL, v VARCHAR(40), UNIQUE (writer, n))",
    "CREATE TABLE r.sums (writer INT PRIMARY KEY, last BIGINT NOT NULL, sum DECIMAL(30, 2) NOT NULL)",
    // Its counter is far ahead of its rows.
    "CREATE TABLE r.ahead (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT = 5000",
    "INSERT INTO r.ahead (v) VALUES (1), (2), (3)",
    "DELETE FROM r.ahead WHERE v > 1",
    "CREATE PROCEDURE r.nothing() SELECT 1",
    "CREATE USER 'app'@'%' IDENTIFIED BY 'the app''s password'",
    "GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON r.* TO 'app'@'%'",
    "CREATE USER 'other'@'localhost' IDENTIFIED BY 'another' REQUIRE SSL",
];

/// `--promote`: so many rounds, each with servers of its own.
pub fn rounds(options: &Options, seed: u64, rounds: u64) -> Result<()> {
    let mut random = Random::new(seed);
    for round in 1..=rounds {
        let what = one(options, &mut random, round)
            .map_err(|error| Error::Check(format!("promotion {round} with seed {seed}: {error}")))?;
        println!("promotion, round {round}: {what}");
    }
    Ok(())
}

fn one(options: &Options, random: &mut Random, round: u64) -> Result<String> {
    let folder = Scratch::new(&format!("promote{round}"))?;
    let mut serve = options.common.serve_option.clone();
    serve.extend(["--log-bin", "--checkpoint-log-mib=4"].map(String::from));
    let writers = options.writers.max(2);
    let mut pair = Pair::start(Source::Mysql, folder.path(), &serve, |source| {
        let mut conn = connect(source)?;
        SCHEMA.iter().try_for_each(|sql| conn.query_drop(sql))?;
        (0..writers).try_for_each(|id| conn.query_drop(format!("INSERT INTO r.sums VALUES ({id}, 0, 0)")))?;
        Ok(())
    })?;
    pair.settle()?;
    let places = vec![pair::options(&pair.source), pair::options(&pair.replica), pair.front_options()];
    let (stop, noted) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let seeds: Vec<u64> = (0..writers).map(|_| random.bits()).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = seeds
            .into_iter()
            .zip(0..)
            .map(|(seed, id)| {
                let (places, stop, noted) = (places.clone(), &stop, &noted);
                scope.spawn(move || {
                    let mut writer = Writer { id, next: 0, acknowledged: Vec::new(), refused: 0 };
                    let outcome = writer.write(&places, seed, stop);
                    noted.lock().map_err(|_| Error::Setup("a writer has panicked".into()))?.push(writer);
                    outcome
                })
            })
            .collect();
        let outcome = attempts(&mut pair, random).and_then(|what| {
            std::thread::sleep(Duration::from_millis(300));
            follow_back(&mut pair, random)?;
            std::thread::sleep(Duration::from_millis(300));
            Ok(what)
        });
        stop.store(true, Ordering::SeqCst);
        let ends: Vec<Result<()>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Error::Setup("a writer has panicked".into()))))
            .collect();
        let what = outcome?;
        ends.into_iter().collect::<Result<()>>()?;
        Ok::<String, Error>(what)
    })
    .and_then(|what| {
        let noted = noted.into_inner().map_err(|_| Error::Setup("a writer has panicked".into()))?;
        back::settle(&pair.replica, &pair.source, round)?;
        let compared = compare::both(&pair.replica, &pair.source, "r")?;
        let (mut acknowledged, mut refused) = (0, 0);
        for writer in &noted {
            let rows: Vec<i64> = connect(&pair.replica)?
                .query(format!("SELECT n FROM r.notes WHERE writer = {}", writer.id))?;
            let rows: BTreeSet<i64> = rows.into_iter().collect();
            if let Some(lost) = writer.acknowledged.iter().find(|n| !rows.contains(n)) {
                return Err(Error::Check(format!("row {lost} of writer {} was acknowledged, and is lost", writer.id)));
            }
            acknowledged += writer.acknowledged.len();
            refused += writer.refused;
        }
        end(&mut pair)?;
        Ok(format!(
            "{what}; {acknowledged} rows acknowledged and there, {refused} refused; the old source follows: {compared}"
        ))
    })
}

/// Inserts rows wherever it is let.
struct Writer {
    id: u64,
    next: i64,
    acknowledged: Vec<i64>,
    /// Because a server was read-only.
    refused: u64,
}

impl Writer {
    fn write(&mut self, places: &[OptsBuilder], seed: u64, stop: &AtomicBool) -> Result<()> {
        let mut random = Random::new(seed);
        let mut at = random.uniform(0, 1) as usize * 2;
        let mut conn: Option<Conn> = None;
        while !stop.load(Ordering::SeqCst) {
            let alive = match conn.take() {
                Some(alive) => conn.insert(alive),
                None => match Conn::new(places[at].clone()) {
                    Ok(fresh) => conn.insert(fresh),
                    Err(_) => {
                        at = (at + 1) % places.len();
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                },
            };
            self.next += 1;
            match self.insert(alive, &mut random).map_err(Error::from) {
                Ok(()) => self.acknowledged.push(self.next),
                Err(error) if error.errno() == Some(READ_ONLY) => {
                    self.refused += 1;
                    conn = None;
                    at = (at + 1) % places.len();
                    std::thread::sleep(Duration::from_millis(2));
                }
                // A deadlock, or a definition that changes.
                Err(error) if matches!(error.errno(), Some(1205 | 1213 | 1412)) => {
                    alive.query_drop("ROLLBACK").map_err(Error::from).or_else(only_lost)?;
                }
                // Whether that row is there, nobody has said.
                Err(error)
                    if error.is_disconnect()
                        || matches!(error.errno(), Some(2002 | 2003 | 2006 | 2013 | 3024)) =>
                {
                    conn = None
                }
                // A table that was not copied yet when Avocet was killed.
                Err(error) if error.errno() == Some(1105) => {
                    conn = None;
                    at = 0;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn insert(&self, conn: &mut Conn, random: &mut Random) -> mysql::Result<()> {
        let (id, n) = (self.id, self.next);
        if random.percent(50) {
            return conn.exec_drop("INSERT INTO r.notes (writer, n, v) VALUES (?, ?, 'single')", (id, n));
        }
        conn.query_drop("START TRANSACTION")?;
        conn.exec_drop("INSERT INTO r.notes (writer, n, v) VALUES (?, ?, 'of two')", (id, n))?;
        conn.exec_drop("UPDATE r.sums SET last = ?, sum = sum + ? WHERE writer = ?", (n, n, id))?;
        if random.percent(20) {
            // So that some are open when writes stop.
            std::thread::sleep(Duration::from_millis(random.uniform(1, 30) as u64));
        }
        conn.query_drop("COMMIT")
    }
}

fn only_lost(error: Error) -> Result<()> {
    if error.is_disconnect() { Ok(()) } else { Err(error) }
}

/// Runs a statement to its end: it may fail behind its first rows.
fn run(conn: &mut Conn, sql: &str) -> Result<()> {
    let rows: Vec<mysql::Row> = conn.query(sql)?;
    drop(rows);
    Ok(())
}

/// Promotions until one succeeds.
fn attempts(pair: &mut Pair, random: &mut Random) -> Result<String> {
    fails(pair)?;
    let (mut kills, mut undone, mut source_kills, mut interrupted) = (0, 0, 0, 0);
    let mut slowest = Duration::ZERO;
    for _ in 0..MOST_ATTEMPTS {
        std::thread::sleep(Duration::from_millis(random.uniform(50, 400) as u64));
        let is_last = kills + source_kills + interrupted >= 4;
        let cut = if is_last { 3 } else { random.uniform(0, 3) };
        let rows = random.uniform(8, 20) as usize;
        let promoted = match cut {
            0 => {
                kills += 1;
                promote_until(pair, rows, |pair, _| pair.replica.kill())?;
                pair.replica.start_again()?;
                let promoted = is_promoted(pair)?;
                if !promoted && random.percent(50) {
                    // Either there is nothing to undo, or it is undone.
                    match run(&mut connect(&pair.replica)?, "PROMOTE REPLICA UNDO") {
                        Ok(()) => undone += 1,
                        Err(error) if error.to_string().contains("no promotion was cut short") => {}
                        Err(error) => return Err(error),
                    }
                    expect_read_only(&pair.source, false)?;
                }
                promoted
            }
            1 => {
                source_kills += 1;
                let outcome = promote_until(pair, rows, |pair, _| {
                    pair.source.kill()?;
                    pair.source.start_again().map(drop)
                })?;
                if outcome.is_none() {
                    // The connection to the source may have to be made anew before all is as it was.
                    await_writable(&pair.source)?;
                    pair.settle()?;
                }
                is_promoted(pair)?
            }
            2 => {
                interrupted += 1;
                let outcome = promote_until(pair, rows, |pair, connection| {
                    let killed = connect(&pair.replica)?.query_drop(format!("KILL QUERY {connection}"));
                    killed.map_err(Error::from)
                })?;
                if outcome.is_none() && !is_promoted(pair)? {
                    expect_read_only(&pair.source, false)?;
                }
                is_promoted(pair)?
            }
            _ => {
                // What is set aside meanwhile would stay behind.
                let took = promote_until(pair, 2, |pair, _| {
                    let repaired =
                        run(&mut connect(&pair.replica)?, "CHECK REPLICATION TABLE r.notes REPAIR");
                    match repaired {
                        Err(error) if error.to_string().contains("is about to take the place of") => Ok(()),
                        other => {
                            Err(Error::Check(format!("CHECK REPLICATION … REPAIR in a promotion: {other:?}")))
                        }
                    }
                })?;
                slowest =
                    took.ok_or_else(|| Error::Check("a promotion that nobody disturbed has failed".into()))?;
                true
            }
        };
        if promoted {
            expect_read_only(&pair.source, true)?;
            return Ok(format!(
                "{kills} kills of Avocet ({undone} undone), {source_kills} of the source, {interrupted} interruptions; then promoted{}",
                match slowest.is_zero() {
                    true => " all the same".into(),
                    false => format!(", without writes for {} ms", slowest.as_millis()),
                }
            ));
        }
    }
    Err(Error::Check(format!("{MOST_ATTEMPTS} promotions, and none has come to its end")))
}

/// Runs a promotion, and something else when it has said so many rows. For how long there were no writes, or `None` if it failed.
fn promote_until(
    pair: &mut Pair,
    rows: usize,
    then: impl FnOnce(&mut Pair, u32) -> Result<()>,
) -> Result<Option<Duration>> {
    let mut conn = connect(&pair.replica)?;
    let connection = conn.connection_id();
    let mut then = Some(then);
    let mut times: Vec<(String, u64)> = Vec::new();
    let outcome = (|| -> Result<()> {
        let mut result = conn.query_iter("PROMOTE REPLICA VERIFY = BOTH, ACCOUNTS = 1, TIMEOUT = 20")?;
        let Some(steps) = result.iter() else { return Ok(()) };
        for (at, step) in steps.enumerate() {
            let step = step.map_err(Error::from);
            let (name, _, milliseconds, _): (String, String, u64, String) = mysql::from_row(step?);
            times.push((name, milliseconds));
            if at + 1 == rows
                && let Some(then) = then.take()
            {
                then(pair, connection)?;
            }
        }
        Ok(())
    })();
    let at = |wanted: &str| times.iter().find(|(name, _)| name == wanted).map(|(_, at)| *at);
    match (outcome, at("become primary")) {
        (Ok(()), Some(end)) => {
            let before = times.iter().rev().find(|(name, _)| name == "verify before" || name == "check");
            Ok(Some(Duration::from_millis(end - before.map_or(0, |(_, at)| *at))))
        }
        (Ok(()), None) => Err(Error::Check(format!("a promotion ended after {:?}", times.last()))),
        // It was disturbed.
        (Err(_), _) if then.is_none() => Ok(None),
        (Err(error), _) => Err(error),
    }
}

fn is_promoted(pair: &Pair) -> Result<bool> {
    let row: Option<mysql::Row> = connect(&pair.replica)?.query_first("SHOW REPLICA STATUS")?;
    let promoted = row.is_none();
    let takes_writes: Option<u8> = connect(&pair.replica)?.query_first("SELECT @@GLOBAL.super_read_only")?;
    match takes_writes == Some(u8::from(!promoted)) {
        true => Ok(promoted),
        false => Err(Error::Check(format!("promoted: {promoted}, super_read_only: {takes_writes:?}"))),
    }
}

#[track_caller]
fn expect_read_only(source: &Server, expected: bool) -> Result<()> {
    let line = std::panic::Location::caller().line();
    let is: Option<u8> = connect(source)?.query_first("SELECT @@GLOBAL.super_read_only")?;
    match is == Some(expected.into()) {
        true => Ok(()),
        false => Err(Error::Check(format!("line {line}: the source has super_read_only = {is:?}"))),
    }
}

fn await_writable(source: &Server) -> Result<()> {
    let begin = Instant::now();
    while expect_read_only(source, false).is_err() {
        if begin.elapsed() > Duration::from_secs(30) {
            return expect_read_only(source, false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Promotions that cannot come to their end leave the source as it was.
fn fails(pair: &mut Pair) -> Result<()> {
    let mut here = connect(&pair.replica)?;
    let mut expect = |sql: &str, words: &str| -> Result<()> {
        let said = match run(&mut here, sql) {
            Ok(()) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        match said.contains(words) {
            true => expect_read_only(&pair.source, false),
            false => Err(Error::Check(format!("{sql}: {words} is expected, but it said: {said}"))),
        }
    };
    let mut there = connect(&pair.source)?;
    expect("PROMOTE REPLICA UNDO", "no promotion was cut short")?;
    expect(
        "PROMOTE REPLICA SOURCE_USER = 'app', SOURCE_PASSWORD = 'the app''s password'",
        "may not set super_read_only",
    )?;
    there.query_drop("CREATE TABLE r.nokey (a INT)")?;
    // It is followed as long as it has no row.
    there.query_drop("INSERT INTO r.nokey VALUES (1)")?;
    pair.settle()?;
    expect("PROMOTE REPLICA", "ALLOW_LEFT_OUT = ('r.nokey')")?;
    there.query_drop("DROP TABLE r.nokey")?;
    pair.settle()?;
    let mut xa = connect(&pair.source)?;
    xa.query_drop("XA START 'open'")?;
    xa.query_drop("INSERT INTO r.ahead (v) VALUES (9)")?;
    xa.query_drop("XA END 'open'")?;
    xa.query_drop("XA PREPARE 'open'")?;
    expect("PROMOTE REPLICA", "XA transactions are prepared")?;
    xa.query_drop("XA COMMIT 'open'")?;
    pair.settle()?;
    // The tables stay locked for longer than writes may be stopped.
    let mut holder = connect(&pair.source)?;
    holder.query_drop("LOCK TABLES r.ahead WRITE")?;
    expect("PROMOTE REPLICA TIMEOUT = 1, VERIFY = NONE", "did not end within 1 s")?;
    is_interrupted_at_once(pair, &mut there)?;
    holder.query_drop("UNLOCK TABLES")?;
    pair.settle()?;
    let found: Vec<(String, String, u64, String)> = here_check(pair)?;
    let has =
        |words: &str| found.iter().any(|(_, result, _, detail)| result == "note" && detail.contains(words));
    match has("routines stay behind: r.nothing") && has("accounts stay behind: 'app'@'%'") {
        true => expect_read_only(&pair.source, false),
        false => {
            Err(Error::Check(format!("PROMOTE REPLICA CHECK does not tell what stays behind: {found:?}")))
        }
    }
}

/// KILL QUERY ends a promotion that waits for statements at the source, well before its TIMEOUT.
fn is_interrupted_at_once(pair: &Pair, there: &mut Conn) -> Result<()> {
    const AT_ONCE: Duration = Duration::from_secs(15);
    let mut here = connect(&pair.replica)?;
    let connection = here.connection_id();
    std::thread::scope(|scope| {
        let promotion = scope.spawn(move || run(&mut here, "PROMOTE REPLICA TIMEOUT = 100, VERIFY = NONE"));
        let waits = "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'SET GLOBAL super_read_only%'";
        let begin = Instant::now();
        while there.query_first::<u64, _>(waits)? != Some(1) && begin.elapsed() < AT_ONCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        let killed = Instant::now();
        connect(&pair.replica)?.query_drop(format!("KILL QUERY {connection}"))?;
        let outcome = promotion.join().map_err(|_| Error::Setup("a promotion has panicked".into()))?;
        match outcome {
            Err(error) if error.errno() == Some(1317) && killed.elapsed() < AT_ONCE => Ok(()),
            outcome => Err(Error::Check(format!(
                "a promotion was interrupted, and {} s later: {outcome:?}",
                killed.elapsed().as_secs()
            ))),
        }
    })?;
    expect_read_only(&pair.source, false)
}

fn here_check(pair: &Pair) -> Result<Vec<(String, String, u64, String)>> {
    Ok(connect(&pair.replica)?.query("PROMOTE REPLICA CHECK")?)
}

/// The old source follows the new primary, while both are restarted.
fn follow_back(pair: &mut Pair, random: &mut Random) -> Result<()> {
    if random.percent(50) {
        pair.replica.kill()?;
        pair.replica.start_again()?;
        if !is_promoted(pair)? {
            return Err(Error::Check("a primary that was killed is a replica".into()));
        }
    }
    let mut there = connect(&pair.source)?;
    there.query_drop(format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = 'root', \
         SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 1000, GET_SOURCE_PUBLIC_KEY = 1",
        pair.replica.port()
    ))?;
    there.query_drop("START REPLICA")?;
    if random.percent(50) {
        // A MySQL that is killed while its applier begins leaves a file in its way, and does not begin again.
        std::thread::sleep(Duration::from_millis(random.uniform(200, 600) as u64));
        pair.source.kill()?;
        pair.source.start_again()?;
        // Over a restart it takes no writes either.
        expect_read_only(&pair.source, true)?;
        connect(&pair.source)?.query_drop("START REPLICA")?;
    }
    Ok(())
}

/// What else a promotion is to have brought.
fn end(pair: &mut Pair) -> Result<()> {
    let mut here = connect(&pair.replica)?;
    here.query_drop("INSERT INTO r.ahead (v) VALUES (4)")?;
    let id: Option<u64> = here.query_first("SELECT MAX(id) FROM r.ahead")?;
    if id.is_none_or(|id| id < 5003) {
        return Err(Error::Check(format!(
            "AUTO_INCREMENT goes on with {id:?}, which the source had given before"
        )));
    }
    for server in [pair::options(&pair.replica), pair.front_options()] {
        let app = server.user(Some("app")).pass(Some("the app's password"));
        let rows: Option<u64> = Conn::new(app)?.query_first("SELECT COUNT(*) FROM r.ahead")?;
        if rows.is_none_or(|rows| rows < 2) {
            return Err(Error::Check(format!("the account app finds {rows:?} rows")));
        }
    }
    for sql in ["START REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_PORT = 1", "PROMOTE REPLICA"] {
        match run(&mut here, sql) {
            Err(error) if error.to_string().contains("has taken the place of") => {}
            other => return Err(Error::Check(format!("{sql} on a primary: {other:?}"))),
        }
    }
    Ok(())
}
