//! A server that follows two MySQLs, a channel for each, while both change and any of the three is killed; after each round every table
//! of both is compared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use super::pair::Source;
use super::schema::{self, Table};
use super::statements::expect;
use super::{Options, Pair, back, compare, connect, pair};
use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rival::Server;
use crate::rival::avocet::Avocet;

/// Of the second source.
const CHANNEL: &str = "second";

/// `--channels`: so many rounds.
pub fn run(options: &Options, seed: u64, rounds: u64) -> Result<()> {
    let folder = Scratch::new("channels")?;
    let mut random = Random::new(seed);
    let source = pair::source(Source::Mysql, &made(&folder, "one")?)?;
    let mut second = pair::source(Source::Mysql, &made(&folder, "two")?)?;
    let replica =
        Server::start(Box::new(Avocet::find(&options.common.serve_option)?), &folder.path().join("replica"))?;
    let mut tables: Vec<Table> = Vec::new();
    let mut conn = connect(&source)?;
    conn.query_drop("CREATE DATABASE r")?;
    for _ in 0..3 {
        schema::create(&mut conn, &mut random, &mut tables)?;
    }
    let mut conn = connect(&second)?;
    // A database of that name is the first source's here.
    for sql in [
        "CREATE DATABASE r",
        "CREATE TABLE r.not_wanted (a INT PRIMARY KEY)",
        "CREATE DATABASE s",
        "CREATE TABLE s.moved (id INT AUTO_INCREMENT PRIMARY KEY, v BIGINT, t VARCHAR(40), KEY (v))",
    ] {
        conn.query_drop(sql)?;
    }
    begin(&mut connect(&replica)?, source.port(), second.port())?;
    let mut pair = Pair { kind: Source::Mysql, source, replica, peers: Vec::new(), front: None };
    for round in 1..=rounds {
        let in_round = |error| Error::Check(format!("round {round} of channels with seed {seed}: {error}"));
        let lives = Duration::from_secs_f64(options.lives);
        let (stop, of_second) = (AtomicBool::new(false), random.bits());
        let Pair { source, replica, .. } = &mut pair;
        let what = std::thread::scope(|scope| {
            let writer = scope.spawn(|| write(&mut second, of_second, options.kills, &stop));
            let what = back::changes(options, source, replica, &mut random, &mut tables, lives);
            stop.store(true, Ordering::SeqCst);
            let changes =
                writer.join().unwrap_or_else(|_| Err(Error::Setup("a session has panicked".into())));
            Ok(format!("{}; {}", what?, changes?))
        });
        let what = what.map_err(in_round)?;
        commands(&mut connect(&pair.replica)?).map_err(in_round)?;
        pair.settle().map_err(in_round)?;
        settle(&second, &pair.replica).map_err(in_round)?;
        let first = compare::all(&pair, "r").map_err(in_round)?;
        let other = compare::both(&second, &pair.replica, "s").map_err(in_round)?;
        println!("channels, round {round}: {what}; {first}; {other}");
    }
    end(&mut connect(&pair.replica)?)
}

fn made(folder: &Scratch, name: &str) -> Result<std::path::PathBuf> {
    let path = folder.path().join(name);
    std::fs::create_dir_all(&path).map_err(|error| Error::Setup(error.to_string()))?;
    Ok(path)
}

/// Names both sources, and what is not served.
fn begin(conn: &mut Conn, port: u16, second: u16) -> Result<()> {
    let source = |port| {
        format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', SOURCE_SSL = 1, \
             SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1"
        )
    };
    conn.query_drop(source(port))?;
    conn.query_drop("START REPLICA")?;
    expect(conn, "START REPLICA FOR CHANNEL 'second'", "3074")?;
    expect(conn, &format!("{} FOR CHANNEL '{}'", source(second), "x".repeat(65)), "3076")?;
    conn.query_drop(format!("{} FOR CHANNEL 'Second'", source(second)))?;
    expect(conn, "CHANGE REPLICATION SOURCE TO SOURCE_CONNECT_RETRY = 2", "3079")?;
    conn.query_drop("START REPLICA")?;
    expect(conn, "SHOW RELAYLOG EVENTS", "3079")?;
    expect(conn, "SELECT SOURCE_POS_WAIT('binlog.000001', 4, 1)", "3079")?;
    expect(conn, "PROMOTE REPLICA CHECK", "cannot take the place")?;
    expect(conn, "SHOW REPLICA STATUS FOR CHANNEL 'third'", "3074")?;
    let row: Option<mysql::Row> = conn.query_first(format!("SHOW REPLICA STATUS FOR CHANNEL '{CHANNEL}'"))?;
    match row.and_then(|row| row.get::<u16, _>("Source_Port")) {
        Some(port) if port == second => Ok(()),
        port => Err(Error::Check(format!("the channel's source is at port {port:?}, not {second}"))),
    }
}

/// What is about one channel, or about all.
fn commands(conn: &mut Conn) -> Result<()> {
    conn.query_drop(format!("STOP REPLICA FOR CHANNEL '{CHANNEL}'"))?;
    expect(conn, &format!("STOP REPLICA FOR CHANNEL '{CHANNEL}'"), "channel 'second' are already stopped")?;
    expect(conn, "STOP REPLICA", "channel 'second' are already stopped")?;
    expect(conn, "STOP REPLICA", "channel '' are already stopped")?;
    conn.query_drop("START REPLICA FOR CHANNEL ''")?;
    expect(conn, "START REPLICA", "channel '' are already runn")?;
    expect(conn, "RESET REPLICA ALL", "3081")
}

/// Changes rows and definitions of the second source until it is told to stop, and perhaps kills it.
fn write(server: &mut Server, seed: u64, kills: i64, stop: &AtomicBool) -> Result<String> {
    let mut random = Random::new(seed);
    let (mut changes, mut added) = (0, 0);
    let kill_after = random.percent(kills).then(|| random.uniform(5, 100));
    let mut conn = connect(server)?;
    while !stop.load(Ordering::SeqCst) {
        if kill_after == Some(changes) {
            server.kill()?;
            server.start_again()?;
            conn = connect(server)?;
        }
        changes += 1;
        let (id, v) = (random.uniform(1, 400), random.uniform(0, 1000));
        let sql = match random.uniform(0, 40) {
            0..20 => format!("INSERT INTO s.moved (v, t) VALUES ({v}, 'ä{id}'), ({id}, NULL)"),
            20..32 => format!("UPDATE s.moved SET v = v + {v} WHERE id % 50 = {}", id % 50),
            32..39 => format!("DELETE FROM s.moved WHERE id % 70 = {}", id % 70),
            _ => {
                added += 1;
                format!("ALTER TABLE s.moved ADD COLUMN c{} INT DEFAULT {v}", random.uniform(0, 9999))
            }
        };
        match conn.query_drop(sql) {
            // A column of that name is there.
            Err(mysql::Error::MySqlError(error)) if error.code == 1060 => {}
            other => other?,
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let killed = if kill_after.is_some_and(|at| at < changes) { ", and it was killed" } else { "" };
    Ok(format!("{changes} changes at the second source, {added} of definitions{killed}"))
}

/// Waits until all of the second source is visible, by the union of both sources' transactions.
fn settle(second: &Server, replica: &Server) -> Result<()> {
    let executed: Option<String> = connect(second)?.query_first("SELECT @@GLOBAL.gtid_executed")?;
    let executed = executed.unwrap_or_default();
    let mut conn = connect(replica)?;
    let begin = Instant::now();
    loop {
        let waited: Option<i64> = conn.exec_first("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 1)", (&executed,))?;
        let states: Vec<(String, String)> =
            conn.query("SELECT table_name, state FROM avocet.replica_tables WHERE channel = 'second'")?;
        let is_told = matches!(&states[..], [(table, why)]
            if table == "not_wanted" && why.contains("its database is followed from channel ''"));
        if waited == Some(0) && is_told {
            return Ok(());
        }
        if begin.elapsed() > Duration::from_secs(120) {
            let here: Option<String> = conn.query_first("SELECT @@GLOBAL.gtid_executed")?;
            return Err(Error::Check(format!(
                "the second source has {executed}, and {here:?} is here; {states:?}"
            )));
        }
    }
}

/// One is forgotten, and what came of it stays.
fn end(conn: &mut Conn) -> Result<()> {
    let count = "SELECT COUNT(*) FROM s.moved";
    let before: Option<i64> = conn.query_first(count)?;
    conn.query_drop(format!("STOP REPLICA FOR CHANNEL '{CHANNEL}'"))?;
    conn.query_drop(format!("RESET REPLICA ALL FOR CHANNEL '{CHANNEL}'"))?;
    expect(conn, &format!("START REPLICA FOR CHANNEL '{CHANNEL}'"), "3074")?;
    let channels: Vec<String> = conn.query("SELECT channel FROM avocet.replication")?;
    let after: Option<i64> = conn.query_first(count)?;
    match channels == [""] && before == after {
        true => Ok(()),
        false => {
            Err(Error::Check(format!("channels {channels:?} are left, {before:?} rows and now {after:?}")))
        }
    }
}
