//! The way back: a real MySQL follows an Avocet by its binary log, while random definitions and changes run on it and both are
//! killed; in the end every table is compared, and MySQL's own tool reads the files.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::pair::Source;
use super::schema::{self, Table};
use super::{Options, compare, connect, pair, writes};
use crate::cache::{self, Scratch};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rival::Server;
use crate::rival::avocet::Avocet;
use crate::rival::mysql9::Mysql9;

const SETTLE_LIMIT: Duration = Duration::from_secs(60);
/// How often the replica is asked whether it has come so far.
const LOOK: Duration = Duration::from_millis(10);

const REPLICA: [&str; 6] = [
    "--server-id=2",
    "--log-bin=binlog",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--skip-replica-start=OFF",
    "--replica-net-timeout=10",
];

/// Row events in all forms that random changes do not have.
const FIXED: [&str; 26] = [
    "CREATE TABLE r.p (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE r.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES r.p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO r.p VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO r.c VALUES (10, 1), (11, 1), (20, 2), (30, 3)",
    "DELETE FROM r.p WHERE id = 1",
    "UPDATE r.p SET id = 22 WHERE id = 2",
    "CREATE TABLE r.many (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(30) DEFAULT 'b', g INT AS (a * 2), s INT AS (a + 1) STORED)",
    "INSERT INTO r.many (a) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n",
    "INSERT INTO r.many (a) SELECT x.a + y.a FROM r.many x JOIN r.many y WHERE y.id <= 90",
    "UPDATE r.many SET b = 'changed' WHERE id % 7 = 0",
    "DELETE FROM r.many WHERE id % 11 = 0",
    "CREATE TABLE r.copy AS SELECT id, b FROM r.many WHERE id < 5000",
    "CREATE TABLE r.nokey (a INT, b JSON, c BIT(9), d SET('x','y','z'), e ENUM('k','l'), f DECIMAL(40,20))",
    r#"INSERT INTO r.nokey VALUES (1, '{"a": [1, 2.5, null, "ü"]}', 257, 'x,z', 'l', -1.5), (1, NULL, 0, '', 'k', 12345678901234567890.123)"#,
    "INSERT INTO r.nokey SELECT * FROM r.nokey",
    "UPDATE r.nokey SET a = a + 1 WHERE e = 'l'",
    "DELETE FROM r.nokey WHERE e = 'k' LIMIT 1",
    "CREATE TABLE r.places (id INT PRIMARY KEY, g GEOMETRY, v VARCHAR(9) CHARACTER SET latin1, p POINT NOT NULL SRID 4326, SPATIAL KEY (p))",
    "INSERT INTO r.places SELECT 1, ST_GeomFromText('LINESTRING(0 0,1 1)'), 'é', ST_GeomFromText('POINT(1 2)', 4326) UNION ALL SELECT 2, NULL, NULL, ST_GeomFromText('POINT(-1 -2)', 4326)",
    "UPDATE r.places SET g = p WHERE id = 2",
    "CREATE TABLE r.gone AS SELECT 1 AS a",
    "TRUNCATE TABLE r.gone",
    "CREATE TEMPORARY TABLE r.tmp (a INT)",
    "CREATE VIEW r.w AS SELECT id FROM r.many",
    "CREATE USER 'reader'@'%' IDENTIFIED BY 'a password'",
    "CREATE USER IF NOT EXISTS 'known'@'%' IDENTIFIED BY 'a password'",
];

/// `--back`: so many rounds.
pub fn run(options: &Options, seed: u64, rounds: u64) -> Result<()> {
    let folder = Scratch::new("back")?;
    let mut random = Random::new(seed);
    let mut serve = options.common.serve_option.clone();
    serve.extend(
        ["--log-bin", "--server-id=1", "--max-binlog-size=2M", "--checkpoint-log-mib=4"].map(String::from),
    );
    let mut source = Server::start(Box::new(Avocet::find(&serve)?), &folder.path().join("source"))?;
    let mut replica =
        Server::start(Box::new(Mysql9::fetch()?.with(&REPLICA)), &folder.path().join("replica"))?;
    let mut tables: Vec<Table> = Vec::new();
    let mut conn = connect(&source)?;
    conn.query_drop("CREATE DATABASE r")?;
    for sql in FIXED {
        conn.query_drop(sql).map_err(|error| Error::Check(format!("{sql}: {error}")))?;
    }
    conn.query_drop("START TRANSACTION")?;
    conn.query_drop("INSERT INTO r.p VALUES (100, 1)")?;
    conn.query_drop("SAVEPOINT s")?;
    conn.query_drop("INSERT INTO r.p VALUES (101, 1)")?;
    conn.query_drop("ROLLBACK TO s")?;
    conn.query_drop("COMMIT")?;
    for _ in 0..5 {
        schema::create(&mut conn, &mut random, &mut tables)?;
    }
    // An account that the replica has already.
    let mut own = connect(&replica)?;
    own.query_drop("SET sql_log_bin = 0")?;
    own.query_drop("CREATE USER 'known'@'%'")?;
    connect(&replica)?.query_drop(format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = 'root', \
         SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 1000, GET_SOURCE_PUBLIC_KEY = 1",
        source.port()
    ))?;
    connect(&replica)?.query_drop("START REPLICA")?;
    let mut bytes = 0;
    for round in 1..=rounds {
        let in_round =
            |error| Error::Check(format!("round {round} of the way back with seed {seed}: {error}"));
        let lives = Duration::from_secs_f64(options.lives);
        let what =
            changes(options, &mut source, &mut replica, &mut random, &mut tables, lives).map_err(in_round)?;
        settle(&source, &replica, round).map_err(in_round)?;
        let compared = compare::both(&source, &replica, "r").map_err(in_round)?;
        bytes += read_files(&source.data().join("binlog")).map_err(in_round)?;
        // The replica has all that is deleted.
        purge(&source).map_err(in_round)?;
        println!("way back, round {round}: {what}; {compared}");
    }
    let users: Option<String> = connect(&replica)?.query_first("SHOW CREATE USER 'reader'@'%'")?;
    if users.is_none() {
        return Err(Error::Check("the replica lacks an account".into()));
    }
    println!("mysqlbinlog has read {bytes} bytes of the binary log, and verified every checksum");
    Ok(())
}

/// Random changes and definitions on the source, a kill of it and a restart of the replica.
pub fn changes(
    options: &Options,
    source: &mut Server,
    replica: &mut Server,
    random: &mut Random,
    tables: &mut Vec<Table>,
    lives: Duration,
) -> Result<String> {
    let stop = AtomicBool::new(false);
    let (at, known) = (pair::options(source), tables.clone());
    let seeds: Vec<u64> = (0..options.writers).map(|_| random.bits()).collect();
    std::thread::scope(|scope| {
        let writers: Vec<_> = seeds
            .into_iter()
            .map(|seed| {
                let (at, known, stop) = (at.clone(), &known, &stop);
                scope.spawn(move || writes::write(Source::Mysql, at, seed, known, stop))
            })
            .collect();
        let outcome = (|| {
            let begin = Instant::now();
            let (mut kill, mut restart) =
                (random.percent(options.kills.max(50)), random.percent(options.kills.max(50)));
            let mut what = String::new();
            while begin.elapsed() < lives {
                if kill && begin.elapsed() > lives.mul_f64(0.4) {
                    kill = false;
                    source.kill()?;
                    source.start_again()?;
                    what.push_str("source killed, ");
                }
                if restart && begin.elapsed() > lives.mul_f64(0.6) {
                    restart = false;
                    replica.kill()?;
                    replica.start_again()?;
                    what.push_str("replica killed, ");
                }
                if random.percent(5) {
                    connect(source)?.query_drop("FLUSH BINARY LOGS")?;
                }
                if random.percent(30) {
                    schema::define(&mut connect(source)?, random, tables)?;
                }
                std::thread::sleep(Duration::from_millis(random.uniform(1, 100) as u64));
            }
            Ok(what)
        })();
        stop.store(true, Ordering::SeqCst);
        let mut statements = 0;
        for writer in writers {
            statements +=
                writer.join().unwrap_or_else(|_| Err(Error::Setup("a session has panicked".into())))?;
        }
        outcome.map(|what| format!("{what}{statements} statements"))
    })
}

fn files(conn: &mut Conn) -> Result<Vec<String>> {
    Ok(conn.query_map("SHOW BINARY LOGS", |(name, _, _): (String, u64, String)| name)?)
}

/// Begins a file of the binary log, and deletes those before.
fn purge(source: &Server) -> Result<()> {
    let mut conn = connect(source)?;
    let before = files(&mut conn)?;
    conn.query_drop("FLUSH LOGS")?;
    let after = files(&mut conn)?;
    let last = match after.split_last() {
        Some((last, others)) if others == before => last.clone(),
        _ => return Err(Error::Check(format!("FLUSH LOGS has made {after:?} of {before:?}"))),
    };
    conn.query_drop("PURGE BINARY LOGS BEFORE '2001-01-01'")?;
    // A file that the replica still reads stays until it has come to the last one.
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        conn.query_drop(format!("PURGE BINARY LOGS TO '{last}'"))?;
        if files(&mut conn)?.len() == 1 || Instant::now() > until {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    match conn.query_drop(format!("PURGE BINARY LOGS TO '{}'", before[0])) {
        Err(mysql::Error::MySqlError(error)) if error.code == 1373 => {}
        other => return Err(Error::Check(format!("a file that is gone can be named: {other:?}"))),
    }
    let left = files(&mut conn)?;
    let (purged, executed): (String, String) =
        conn.query_first("SELECT @@gtid_purged, @@gtid_executed")?.unwrap_or_default();
    if left != [last] || purged.is_empty() || purged != executed {
        return Err(Error::Check(format!("after PURGE {left:?} are left, {purged} of {executed} purged")));
    }
    Ok(())
}

/// Waits until the replica has all that the source has committed: the last of it is a database that is made for this.
pub fn settle(source: &Server, replica: &Server, round: u64) -> Result<()> {
    let begin = Instant::now();
    let marker = format!("marker{round}");
    connect(source)?.query_drop(format!("CREATE DATABASE {marker}"))?;
    let mut here = connect(replica)?;
    loop {
        let found: Option<u8> =
            here.exec_first("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", (&marker,))?;
        if found.is_some() {
            return Ok(());
        }
        let row: Option<Row> = here.query_first("SHOW REPLICA STATUS")?;
        let row = row.ok_or_else(|| Error::Check("SHOW REPLICA STATUS is empty".into()))?;
        let text = |name: &str| row.get::<String, _>(name).unwrap_or_default();
        if text("Replica_SQL_Running") != "Yes" || begin.elapsed() > SETTLE_LIMIT {
            let workers: Vec<String> = here.query(
                "SELECT CAST(LAST_ERROR_MESSAGE AS CHAR) FROM performance_schema.replication_applier_status_by_worker",
            )?;
            return Err(Error::Check(format!(
                "the replica does not get as far as {marker}: it has {}; {} / {} / {workers:?}",
                text("Executed_Gtid_Set"),
                text("Last_IO_Error"),
                text("Last_SQL_Error")
            )));
        }
        std::thread::sleep(LOOK);
    }
}

/// Has MySQL's own tool read all files; returns how many bytes these have.
fn read_files(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mysql = Mysql9::fetch()?;
    let index = std::fs::read_to_string(folder.join("binlog.index"))
        .map_err(|error| Error::Check(format!("binlog.index: {error}")))?;
    for name in index.lines() {
        let path = folder.join(name.trim_start_matches("./"));
        bytes += std::fs::metadata(&path).map_or(0, |data| data.len());
        let mut tool = mysql.tool("usr/bin/mysqlbinlog");
        tool.args(["--no-defaults", "--verify-binlog-checksum", "--base64-output=decode-rows"]).arg(&path);
        cache::run(&mut tool)?;
    }
    Ok(bytes)
}
