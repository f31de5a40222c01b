//! `bench/run memory`: much data in little memory. Wide rows in small transactions, many small tables, a large INSERT … SELECT,
//! LOAD DATA and REPLACE … SELECT, a transaction that is too large, which must be refused by name, and single statements that
//! lock, change or index many rows (`memory/statements.rs`); the data is many times the server's memory limit.
//!
//! Nothing of it may fail or be lost, and the most that the server's process ever took must stay near the limit.

mod statements;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::contest::Contest;
use crate::error::{Error, Result};
use crate::insert;
use crate::options::Common;
use crate::random::Random;
use crate::report::Report;
use crate::rival::{Rival, Server};

#[derive(Args, Clone)]
pub struct Options {
    /// The server's `--memory-limit`
    #[arg(long, default_value_t = 512, value_name = "MIB")]
    limit_mib: u64,
    /// Bytes of rows of 10 KB, inserted ten to a transaction
    #[arg(long, default_value_t = 10.0, value_name = "GIB")]
    wide_gib: f64,
    /// Tables of a few rows
    #[arg(long, default_value_t = 10_000)]
    tables: u64,
    /// Bytes of those wide rows that one INSERT … SELECT copies, one REPLACE … SELECT, and one LOAD DATA brings
    #[arg(long, default_value_t = 5.0, value_name = "GIB")]
    select_gib: f64,
    /// Rows that one statement locks for reading; two thirds of as many are indexed, a sixth changed
    #[arg(long, default_value_t = 3_000_000)]
    rows: u64,
    #[arg(long, default_value_t = 4)]
    terminals: usize,
    /// The most that the process may take, as a multiple of the limit
    #[arg(long, default_value_t = 1.15)]
    most: f64,
    #[command(flatten)]
    common: Common,
}

const DATABASE: &str = "memory";
const WIDE_BYTES: usize = 10_000;
const ROWS_OF_A_TRANSACTION: u64 = 10;
const TRANSACTIONS_OF_A_PIECE: u64 = 100;
const ROWS_OF_A_TABLE: u64 = 20;
/// Rows of the transaction that is too large: not so many are taken.
const TOO_MANY: u64 = 10_000_000;

/// The error of a transaction that needs too much memory.
const TRANS_CACHE_FULL: u16 = 1197;

/// `bench/run memory`.
pub fn command(options: &Options) -> Result<()> {
    let mut common = options.common.clone();
    common.rival = Rival::None;
    common.serve_option.push(format!("--memory-limit={}M", options.limit_mib));
    let contest = Contest::start(&common)?;
    let server = contest.servers().next().ok_or_else(|| Error::Setup("there is no Avocet".into()))?;
    let mut report = Report::new("memory", common.rival);
    let mut run = Run { server, options, report: &mut report, over: Vec::new() };
    let mut conn = Conn::new(server.options())?;
    conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    let rows = (options.wide_gib * (1 << 30) as f64) as u64 / WIDE_BYTES as u64;
    let rows = rows.next_multiple_of(ROWS_OF_A_TRANSACTION * TRANSACTIONS_OF_A_PIECE);
    run.part("wide", || wide(server, options.terminals, rows))?;
    run.part("tables", || tables(server, options.terminals, options.tables))?;
    let copied = ((options.select_gib * (1 << 30) as f64) as u64 / WIDE_BYTES as u64).min(rows);
    run.part("select", || select(server, copied))?;
    run.part("refused", || refused(server))?;
    conn.query_drop(format!("DROP TABLE {DATABASE}.copy"))?;
    run.part("load", || statements::load(server, copied))?;
    conn.query_drop(format!("DROP TABLE {DATABASE}.loaded"))?;
    run.part("replace", || statements::replace(server, copied))?;
    run.part("shared", || statements::shared(server, options.rows))?;
    run.part("indexed", || statements::indexed(server, options.rows / 3 * 2))?;
    run.part("changed", || statements::changed(server, options.rows / 6))?;
    run.given_back()?;
    let over = run.over;
    report.publish(common.json.as_deref())?;
    match over.is_empty() {
        true => Ok(()),
        false => {
            Err(Error::Check(format!("more than {} times the limit was taken by {over:?}", options.most)))
        }
    }
}

struct Run<'r> {
    server: &'r Server,
    options: &'r Options,
    report: &'r mut Report,
    over: Vec<String>,
}

impl Run<'_> {
    /// One kind of load, of so many bytes: how fast it is, and the most that the server took.
    fn part(&mut self, name: &str, load: impl FnOnce() -> Result<u64>) -> Result<()> {
        self.server.reset_peak_rss()?;
        let begin = Instant::now();
        let bytes = load()?;
        let took = begin.elapsed().as_secs_f64();
        let rss = self.server.peak_rss()? as f64 / (self.options.limit_mib << 20) as f64;
        println!(
            "{name}: {:.2} GiB in {took:.1} s, RSS {rss:.3} of the limit",
            bytes as f64 / (1 << 30) as f64
        );
        self.report.add(format!("memory.{name}_rss"), "x", Some(rss), None);
        self.report.add(format!("memory.{name}_rate"), "MB/s", Some(bytes as f64 / 1e6 / took), None);
        if rss > self.options.most {
            self.over.push(name.to_owned());
        }
        Ok(())
    }
}

impl Run<'_> {
    /// What the server takes when all this is over and nothing runs.
    fn given_back(&mut self) -> Result<()> {
        let limit = (self.options.limit_mib << 20) as f64;
        let rss = statements::given_back(self.server, limit as u64)? as f64 / limit;
        println!("given back: RSS {rss:.3} of the limit");
        self.report.add("memory.given_back_rss".to_owned(), "x", Some(rss), None);
        if rss > self.options.most {
            self.over.push("given back".to_owned());
        }
        Ok(())
    }
}

fn connect(options: &OptsBuilder) -> OptsBuilder {
    options.clone().db_name(Some(DATABASE))
}

/// A text of hexadecimal words: about half of it stays when it is compressed.
fn text(random: &mut Random, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.push_str(&format!("{:x} ", random.uniform(0, i64::MAX)));
    }
    text.truncate(bytes);
    text
}

fn count(conn: &mut Conn, table: &str) -> Result<u64> {
    let rows: Option<u64> = conn.query_first(format!("SELECT COUNT(*) FROM {table}"))?;
    Ok(rows.unwrap_or(0))
}

fn expect_rows(conn: &mut Conn, table: &str, expected: u64) -> Result<()> {
    match count(conn, table)? {
        found if found == expected => Ok(()),
        found => Err(Error::Check(format!("{table} has {found} rows, not {expected}"))),
    }
}

fn wide(server: &Server, terminals: usize, rows: u64) -> Result<u64> {
    let options = connect(&server.options());
    let mut conn = Conn::new(options.clone())?;
    conn.query_drop("CREATE TABLE wide (id BIGINT PRIMARY KEY, body VARCHAR(12000))")?;
    let pieces = (0..rows).step_by((ROWS_OF_A_TRANSACTION * TRANSACTIONS_OF_A_PIECE) as usize);
    insert::in_pieces(&options, terminals, pieces, |conn, first| {
        let mut random = Random::new(first);
        let statement = conn.prep("INSERT INTO wide VALUES (?, ?)")?;
        for transaction in 0..TRANSACTIONS_OF_A_PIECE {
            conn.query_drop("BEGIN")?;
            for row in 0..ROWS_OF_A_TRANSACTION {
                let id = first + transaction * ROWS_OF_A_TRANSACTION + row;
                conn.exec_drop(&statement, (id, text(&mut random, WIDE_BYTES)))?;
            }
            conn.query_drop("COMMIT")?;
        }
        Ok(())
    })?;
    expect_rows(&mut conn, "wide", rows)?;
    Ok(rows * WIDE_BYTES as u64)
}

fn tables(server: &Server, terminals: usize, tables: u64) -> Result<u64> {
    let options = connect(&server.options());
    let bytes = AtomicU64::new(0);
    insert::in_pieces(&options, terminals, 0..tables, |conn, table| {
        let mut random = Random::new(table);
        conn.query_drop(format!(
            "CREATE TABLE small_{table} (id INT PRIMARY KEY, code INT, body VARCHAR(4000), KEY (code))"
        ))?;
        let mut sql = format!("INSERT INTO small_{table} VALUES ");
        for row in 0..ROWS_OF_A_TABLE {
            let comma = if row > 0 { "," } else { "" };
            sql.push_str(&format!("{comma}({row}, {}, '{}')", row % 7, text(&mut random, 1000)));
        }
        bytes.fetch_add(sql.len() as u64, Ordering::Relaxed);
        Ok(conn.query_drop(sql)?)
    })?;
    let mut conn = Conn::new(options)?;
    for table in (0..tables).step_by(37) {
        expect_rows(&mut conn, &format!("small_{table}"), ROWS_OF_A_TABLE)?;
    }
    Ok(bytes.into_inner())
}

fn select(server: &Server, rows: u64) -> Result<u64> {
    let mut conn = Conn::new(connect(&server.options()))?;
    conn.query_drop("CREATE TABLE copy (id BIGINT PRIMARY KEY, body VARCHAR(12000))")?;
    conn.query_drop(format!("INSERT INTO copy SELECT * FROM wide WHERE id < {rows}"))?;
    expect_rows(&mut conn, "copy", rows)?;
    Ok(rows * WIDE_BYTES as u64)
}

/// A transaction that inserts row by row until it is refused, and is then rolled back.
fn refused(server: &Server) -> Result<u64> {
    let mut conn = Conn::new(connect(&server.options()))?;
    let before = count(&mut conn, "copy")?;
    let mut random = Random::new(1);
    let statement = conn.prep("INSERT INTO copy VALUES (?, ?)")?;
    conn.query_drop("BEGIN")?;
    let mut bytes = 0;
    for row in 0..TOO_MANY {
        match conn.exec_drop(&statement, (1_000_000_000 + row, text(&mut random, WIDE_BYTES))) {
            Ok(()) => bytes += WIDE_BYTES as u64,
            Err(mysql::Error::MySqlError(error)) if error.code == TRANS_CACHE_FULL => {
                conn.query_drop("ROLLBACK")?;
                expect_rows(&mut conn, "copy", before)?;
                conn.query_drop("INSERT INTO copy VALUES (1000000000, 'there is room')")?;
                expect_rows(&mut conn, "copy", before + 1)?;
                return Ok(bytes);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Check(format!("a transaction of {TOO_MANY} rows was not refused")))
}
