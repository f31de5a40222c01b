//! `bench/run point_update`: updates of single rows by primary key, in a large table with a secondary index whose column they
//! change. First as many as the terminals get done: the peak. Then a share of that (half) at even intervals, whether or not
//! those before are done: latencies from the moment when each was due. Then the same again while the server is busy behind
//! the scenes: another table has just been loaded, and is checkpointed and frozen meanwhile.
//!
//! Every update adds one to its row's counter, so that none may be lost, and the index must lead to every row afterwards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, Statement};

use crate::contest::{Contender, Contest, median};
use crate::error::{Error, Result};
use crate::finding::{self, Finding};
use crate::insert::{self, Inserter};
use crate::oltp::driver::{self, Latency, Plan, Terminal};
use crate::oltp::{self, Measured};
use crate::options::{Common, Pace};
use crate::progress;
use crate::random::Random;
use crate::report::{Report, Table, number};
use crate::rival::Server;
use crate::value::int;

const DATABASE: &str = "points";
const ROWS_OF_A_PIECE: i64 = 10_000;
/// Values of the indexed column: each has some rows.
const PLACES: i64 = 1_000_000;
/// Rows of the other table that one statement inserts, and the length of their text.
const ROWS_OF_BALLAST: i64 = 10_000;
const BALLAST_TEXT: i64 = 160;
/// The log that begins a checkpoint: less than what the other table takes.
const CHECKPOINT_LOG_MIB: u64 = 128;
/// Background work is over when it writes nothing for so long; what takes longer than the other is not waited for.
const QUIET: Duration = Duration::from_secs(3);
const MOST_WAITING: Duration = Duration::from_secs(60);
/// Terminals at a rate for each at the peak: a slow update must not keep others from beginning.
const MORE_AT_A_RATE: usize = 4;

#[derive(Args, Clone)]
pub struct Options {
    #[arg(long, default_value_t = 10_000_000)]
    rows: i64,
    /// The share of the peak at which latencies are taken
    #[arg(long, default_value_t = 0.5)]
    share: f64,
    /// Rows that are loaded before latencies are taken beside background work; 0 for leaving that out
    #[arg(long, default_value_t = 2_000_000, value_name = "ROWS")]
    ballast: i64,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    common: Common,
}

/// How many updates were acknowledged.
#[derive(Default, Clone, Copy)]
struct Books(u64);

impl driver::Books for Books {
    fn add(&mut self, other: Books) {
        self.0 += other.0;
    }
}

struct Updater {
    conn: Conn,
    update: Statement,
    random: Random,
    rows: i64,
    drawn: (i64, i64),
    done: u64,
}

impl Updater {
    fn connect(options: OptsBuilder, rows: i64, seed: u64) -> Result<Updater> {
        let mut conn = Conn::new(options)?;
        let update = conn.prep("UPDATE points SET place = ?, counter = counter + 1 WHERE id = ?")?;
        Ok(Updater { conn, update, random: Random::new(seed), rows, drawn: (0, 0), done: 0 })
    }
}

impl Terminal for Updater {
    type Error = Error;
    type Books = Books;

    fn draw(&mut self) -> usize {
        self.drawn = (self.random.uniform(1, PLACES), self.random.uniform(1, self.rows));
        0
    }

    fn attempt(&mut self) -> Result<()> {
        self.conn.exec_drop(&self.update, self.drawn)?;
        match self.conn.affected_rows() {
            1 => {
                self.done += 1;
                Ok(())
            }
            n => Err(Error::Check(format!("an update of row {} changed {n} rows", self.drawn.1))),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(self.conn.query_drop("ROLLBACK")?)
    }

    fn into_books(self) -> Books {
        Books(self.done)
    }
}

/// One contender's two runs of a round.
struct Round {
    contender: Contender,
    peak: Measured<Books>,
    at_rate: Measured<Books>,
    /// Beside background work, and the MiB that this wrote meanwhile (Avocet's, which tells).
    busy: Option<(Measured<Books>, f64)>,
}

impl Round {
    fn updates(&self) -> u64 {
        let busy = self.busy.as_ref().map_or(0, |(measured, _)| measured.run.books.0);
        self.peak.run.books.0 + self.at_rate.run.books.0 + busy
    }
}

/// Connection options with the database in use.
fn options(server: &Server) -> OptsBuilder {
    server.options().db_name(Some(DATABASE))
}

fn load(server: &Server, rows: i64) -> Result<()> {
    let mut conn = Conn::new(server.options())?;
    conn.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    conn.query_drop(format!("USE {DATABASE}"))?;
    conn.query_drop(
        "CREATE TABLE points (id INT PRIMARY KEY, place INT NOT NULL, counter INT NOT NULL,
         note VARCHAR(40) NOT NULL, KEY by_place (place))",
    )?;
    let done = AtomicU64::new(0);
    let pieces = (1..=rows).step_by(ROWS_OF_A_PIECE as usize);
    progress::rows(&format!("loading {}", server.name()), rows as u64, &done, || {
        insert::in_pieces(&options(server), 2, pieces, |conn, first| {
            let mut random = Random::new(first as u64);
            let mut inserter = Inserter::new(conn, "points");
            for id in first..=rows.min(first + ROWS_OF_A_PIECE - 1) {
                let (place, note) = (random.uniform(1, PLACES), random.alphanumeric(20, 40));
                inserter.row(|sql| sql.push_str(&format!("{id},{place},0,'{note}'")))?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            inserter.finish()
        })
    })
}

fn run(server: &Server, options: &Options, label: &str, plan: Plan) -> Result<Measured<Books>> {
    let connect =
        |n: usize| Updater::connect(self::options(server), options.rows, plan.seed + 7_919 * n as u64);
    let terminals = (0..plan.terminals).map(connect).collect::<Result<Vec<_>>>()?;
    oltp::measure(server, label, 1, terminals, plan)
}

/// Loads another table, so that there is something to checkpoint and freeze.
fn load_ballast(server: &Server, rows: i64) -> Result<()> {
    let mut conn = Conn::new(options(server))?;
    conn.query_drop("DROP TABLE IF EXISTS ballast")?;
    conn.query_drop("CREATE TABLE ballast (id INT PRIMARY KEY, note VARCHAR(200) NOT NULL)")?;
    let pieces = (1..=rows).step_by(ROWS_OF_BALLAST as usize);
    insert::in_pieces(&options(server), 2, pieces, |conn, first| {
        let mut random = Random::new(first as u64);
        let mut inserter = Inserter::new(conn, "ballast");
        for id in first..=rows.min(first + ROWS_OF_BALLAST - 1) {
            let note = random.alphanumeric(BALLAST_TEXT, BALLAST_TEXT);
            inserter.row(|sql| sql.push_str(&format!("{id},'{note}'")))?;
        }
        inserter.finish()
    })
}

/// MiB that Avocet's background work has written so far; others do not tell.
fn background_mib(server: &Server) -> Result<f64> {
    let mut conn = Conn::new(options(server))?;
    let row: Option<(String, String)> =
        conn.query_first("SHOW GLOBAL STATUS LIKE 'Avocet_background_written_bytes'")?;
    Ok(row.and_then(|(_, bytes)| bytes.parse::<f64>().ok()).unwrap_or(0.0) / 1048576.0)
}

/// Waits until nothing is written in the background.
fn settle(server: &Server) -> Result<()> {
    let begin = Instant::now();
    let (mut last, mut since) = (background_mib(server)?, Instant::now());
    while since.elapsed() < QUIET && begin.elapsed() < MOST_WAITING {
        std::thread::sleep(QUIET / 10);
        let now = background_mib(server)?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(())
}

/// Latencies at a rate beside what follows the loading of another table.
fn run_busy(server: &Server, options: &Options, plan: Plan) -> Result<(Measured<Books>, f64)> {
    load_ballast(server, options.ballast)?;
    let before = background_mib(server)?;
    let measured = run(server, options, "beside background work", plan)?;
    Ok((measured, background_mib(server)? - before))
}

/// The runs of one round.
fn round(server: &Server, contender: Contender, options: &Options, number: u32) -> Result<Round> {
    let plan = options.pace.plan(3 * u64::from(number));
    settle(server)?;
    let peak = run(server, options, "as many as can be", plan)?;
    let rate = peak.run.per_second() * options.share;
    eprintln!("{}: {:.0} updates/s at most, now {rate:.0}", server.name(), peak.run.per_second());
    let terminals = plan.terminals * MORE_AT_A_RATE;
    let plan = Plan { terminals, seed: plan.seed + 1_000, rate: Some(rate), ..plan };
    settle(server)?;
    let at_rate = run(server, options, "at a rate", plan)?;
    let plan = Plan { seed: plan.seed + 1_000, ..plan };
    let busy = (options.ballast > 0).then(|| run_busy(server, options, plan)).transpose()?;
    Ok(Round { contender, peak, at_rate, busy })
}

/// All that was acknowledged is there, and the index leads to every row.
fn check(server: &Server, rows: i64, updates: u64) -> Result<Vec<Finding>> {
    let mut conn = Conn::new(options(server))?;
    let mut two = |sql: &str| -> Result<(i64, i64)> {
        let row: Option<Row> = conn.query_first(sql)?;
        let row = row.ok_or_else(|| Error::Check(format!("no row from {sql}")))?;
        Ok((int(&row, 0)?, int(&row, 1)?))
    };
    let (there, counted) = two("SELECT COUNT(*), SUM(counter) FROM points")?;
    let (indexed, _) = two(&format!("SELECT COUNT(*), 0 FROM points WHERE place BETWEEN 1 AND {PLACES}"))?;
    Ok(vec![
        Finding::new(format!("{updates} updates are counted"), counted == updates as i64, || {
            format!("{counted} are")
        }),
        Finding::new(
            format!("{rows} rows are there, by key and by place"),
            there == rows && indexed == rows,
            || format!("{there} and {indexed} are"),
        ),
    ])
}

/// `bench/run point_update`.
pub fn command(options: &Options) -> Result<()> {
    let mut common = options.common.clone();
    common.serve_option.insert(0, format!("--checkpoint-log-mib={CHECKPOINT_LOG_MIB}"));
    let contest = Contest::start(&common)?;
    contest.servers().try_for_each(|server| load(server, options.rows))?;
    let mut updates = vec![0; contest.servers().count()];
    let mut rounds = Vec::new();
    let mut holds = true;
    for number in 0..options.common.rounds {
        for ((contender, server), updates) in contest.each().zip(&mut updates) {
            let round = round(server, contender, options, number)?;
            *updates += round.updates();
            let title = format!("point_update: checks, {}", server.name());
            holds &= finding::print(&title, &check(server, options.rows, *updates)?);
            rounds.push(round);
        }
    }
    println!("\n{}", table(&rounds).text());
    report(&rounds, &options.common).publish(options.common.json.as_deref())?;
    oltp::verdict(holds)
}

fn report(rounds: &[Round], common: &Common) -> Report {
    let mut report = Report::new("point_update", common.rival);
    let mut add = |name: &'static str, unit, figure: fn(&Round) -> f64| {
        let middle = |who| median(rounds.iter().filter(|r| r.contender == who).map(figure));
        report.add(name, unit, middle(Contender::Avocet), middle(Contender::Rival));
    };
    add("point_update.peak_per_s", "1/s", |r| r.peak.run.per_second());
    add("point_update.peak_p99_ms", "ms", |r| r.peak.run.latency[0].millis(0.99));
    add("point_update.server_cpu_us", "us", |r| r.peak.cpu_us_per_transaction());
    add("point_update.rate_per_s", "1/s", |r| r.at_rate.run.per_second());
    add("point_update.p50_ms", "ms", |r| r.at_rate.run.latency[0].millis(0.5));
    add("point_update.p99_ms", "ms", |r| r.at_rate.run.latency[0].millis(0.99));
    add("point_update.p999_ms", "ms", |r| r.at_rate.run.latency[0].millis(0.999));
    add("point_update.max_ms", "ms", |r| r.at_rate.run.latency[0].max_millis());
    if rounds.iter().all(|round| round.busy.is_some()) {
        let p99 = |measured: &Measured<Books>| measured.run.latency[0].millis(0.99);
        let mut add_busy =
            |name: &'static str, unit, figure: &dyn Fn(&Round, &Measured<Books>, f64) -> f64| {
                let of = |r: &Round| r.busy.as_ref().map_or(f64::NAN, |(m, mib)| figure(r, m, *mib));
                let middle = |who| median(rounds.iter().filter(|r| r.contender == who).map(of));
                report.add(name, unit, middle(Contender::Avocet), middle(Contender::Rival));
            };
        add_busy("point_update.busy_p99_ms", "ms", &|_, busy, _| p99(busy));
        add_busy("point_update.busy_p99_growth", "x", &|round, busy, _| p99(busy) / p99(&round.at_rate));
        add_busy("point_update.background_mib", "MiB", &|_, _, mib| mib);
    }
    report
}

/// The latencies of each run.
fn table(rounds: &[Round]) -> Table {
    let mut table = Table::new(&["run", "updates/s", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"]);
    for round in rounds {
        let busy = round.busy.iter().map(|(measured, _)| ("beside background work", measured));
        let runs = [("peak", &round.peak), ("at a rate", &round.at_rate)];
        for (how, measured) in runs.into_iter().chain(busy) {
            let latency: &Latency = &measured.run.latency[0];
            let mut cells = vec![format!("{:?}, {how}", round.contender)];
            cells.push(number(Some(measured.run.per_second())));
            cells.extend([0.5, 0.9, 0.99, 0.999].map(|q| number(Some(latency.millis(q)))));
            cells.push(number(Some(latency.max_millis())));
            table.row(cells);
        }
    }
    table
}
