//! Sessions of the source with settings that are seldom used, and statements that the log has in place of their rows: after each every
//! table is compared.
//!
//! With `TZ=Europe/Berlin` in the environment, the source's machine has another time zone than what is kept here.

use std::io::Write;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};

use super::pair::Source;
use super::{Options, Pair, compare, connect};
use crate::cache::Scratch;
use crate::error::{Error, Result};

/// What one session does.
type Session = (&'static str, &'static [&'static str]);

const BEFORE: [&str; 9] = [
    "CREATE DATABASE r",
    "CREATE TABLE r.t (id INT PRIMARY KEY, a VARCHAR(40))",
    "CREATE TABLE r.u (id INT PRIMARY KEY, a VARCHAR(40))",
    "CREATE TABLE r.times (id INT PRIMARY KEY, ts TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP)",
    "CREATE TABLE r.parts (id INT PRIMARY KEY, a VARCHAR(40)) PARTITION BY RANGE (id)
     (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (1000))",
    "CREATE TABLE r.other (id INT PRIMARY KEY, a VARCHAR(40))",
    "INSERT INTO r.t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO r.times (id) VALUES (1), (2), (3)",
    "INSERT INTO r.parts VALUES (1, 'in'), (2, 'in'), (500, 'stays')",
];

/// Not where transactions have GTIDs.
const TEMPORARY: Session = (
    "statements and a temporary table in a transaction",
    &[
        "SET binlog_format = STATEMENT",
        "BEGIN",
        "INSERT INTO r.t VALUES (10, UUID())",
        "CREATE TEMPORARY TABLE r.x (a INT)",
        "INSERT INTO r.u VALUES (10, UUID())",
        "DROP TEMPORARY TABLE r.x",
        "COMMIT",
    ],
);

const SESSIONS: [Session; 6] = [
    (
        "INSERT with partitions, as a statement",
        &["SET binlog_format = STATEMENT", "INSERT INTO r.parts PARTITION (p0) VALUES (3, UUID())"],
    ),
    (
        "LOAD DATA as a statement",
        &["SET binlog_format = STATEMENT", "LOAD DATA LOCAL INFILE 'rows' INTO TABLE r.t"],
    ),
    (
        "comments before what is not served here",
        &[
            "-- it's\nCREATE TRIGGER r.g BEFORE INSERT ON r.u FOR EACH ROW SET @x = 1",
            "# rotate\nDROP TRIGGER IF EXISTS r.g",
            "-- x\nDROP PROCEDURE IF EXISTS r.p",
        ],
    ),
    (
        "names in double quotes",
        &[
            "SET sql_mode = 'ANSI_QUOTES'",
            "ALTER TABLE r.\"parts\" EXCHANGE PARTITION \"p0\" WITH TABLE r.\"other\"",
        ],
    ),
    (
        "columns that the source numbers",
        &[
            "ALTER TABLE r.u DROP PRIMARY KEY, ADD n SERIAL, ADD PRIMARY KEY (id)",
            "ALTER TABLE r.t -- it's\n ADD n INT NOT NULL AUTO_INCREMENT UNIQUE",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "ALTER TABLE r.other COMMENT 'c:\\', ADD n INT NOT NULL AUTO_INCREMENT UNIQUE",
        ],
    ),
    (
        "the time zone of the source's machine",
        &[
            "SET time_zone = SYSTEM",
            "ALTER TABLE r.times ADD dt DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP",
            "ALTER TABLE r.times ADD l TIMESTAMP NOT NULL DEFAULT '2024-07-01 12:00:00'",
            "ALTER TABLE r.times MODIFY ts DATETIME",
        ],
    ),
];

/// `--edges`.
pub fn run(options: &Options) -> Result<()> {
    let folder = Scratch::new("edges")?;
    // Prepared before anybody follows, and ended behind that.
    let mut prepared = None;
    let mut pair = Pair::start(options.source, folder.path(), &options.common.serve_option, |source| {
        let mut conn = connect(source)?;
        run_all(&mut conn, &["SET GLOBAL local_infile = ON"])?;
        run_all(&mut conn, &BEFORE)?;
        run_all(
            &mut conn,
            &[
                "XA START '1', '11'",
                "INSERT INTO r.u VALUES (1, 'xa')",
                "XA END '1', '11'",
                "XA PREPARE '1', '11'",
            ],
        )?;
        prepared = Some(conn);
        Ok(())
    })?;
    check(&pair, "before")?;
    if let Some(mut conn) = prepared {
        conn.query_drop("XA COMMIT '1', '11'")?;
    }
    check(&pair, "an XA transaction that was prepared before")?;
    let is_plain = options.source == Source::MysqlPlain;
    if is_plain {
        connect(&pair.source)?.query_drop("SET GLOBAL enforce_gtid_consistency = OFF")?;
    }
    for (what, statements) in Some(TEMPORARY).filter(|_| is_plain).into_iter().chain(SESSIONS) {
        let mut conn = connect(&pair.source)?;
        conn.set_local_infile_handler(Some(LocalInfileHandler::new(|_, file| {
            file.write_all(b"70\tloaded\n")
        })));
        run_all(&mut conn, statements).map_err(|error| Error::Check(format!("{what}: {error}")))?;
        check(&pair, what)?;
    }
    read_idly(&mut pair)
}

fn run_all(conn: &mut Conn, statements: &[&str]) -> Result<()> {
    statements.iter().try_for_each(|statement| {
        conn.query_drop(statement).map_err(|error| Error::Check(format!("{statement}: {error}")))
    })
}

fn check(pair: &Pair, what: &str) -> Result<()> {
    let compared = pair.settle().and_then(|()| compare::all(pair, "r"));
    let compared = compared.map_err(|error| Error::Check(format!("{what}: {error}")))?;
    println!("{what}: {compared}");
    Ok(())
}

/// A transaction at the replica keeps a table that is to be copied again; the others go on.
fn read_idly(pair: &mut Pair) -> Result<()> {
    const WHAT: &str = "an idle reader";
    let mut reader = connect(&pair.replica)?;
    run_all(&mut reader, &["BEGIN", "SELECT * FROM r.t"])?;
    let mut source = connect(&pair.source)?;
    run_all(&mut source, &["SET binlog_format = STATEMENT", "UPDATE r.t SET a = UUID() WHERE id = 1"])?;
    run_all(&mut connect(&pair.source)?, &["INSERT INTO r.other (id, a) VALUES (900, 'goes on')"])?;
    let begin = Instant::now();
    let mut replica = connect(&pair.replica)?;
    loop {
        // It may be copied again as well, and cannot be read meanwhile.
        let seen = replica.query_first::<i64, _>("SELECT COUNT(*) FROM r.other WHERE id = 900");
        if matches!(seen, Ok(Some(1))) && begin.elapsed() > Duration::from_secs(5) {
            break;
        }
        if begin.elapsed() > Duration::from_secs(60) {
            return Err(Error::Check(format!("{WHAT}: another table does not go on")));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    reader.query_drop("COMMIT")?;
    check(pair, WHAT)
}
