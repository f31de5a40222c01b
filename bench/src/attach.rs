//! `bench/run attach`: Avocet follows a real MySQL 9.7 while random definitions and changes run on it and either server is killed;
//! at quiet points every table is compared by value. And how fast tables are copied, and missed changes are made up for.

mod compare;
mod schema;
mod speed;
mod writes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::options::Common;
use crate::random::Random;
use crate::report::Report;
use crate::rival::mysql9::Mysql9;
use crate::rival::{Endpoint, Launch, Rival, Server, avocet};
use crate::value::now_micros;
use schema::Table;

#[derive(Args, Clone)]
pub struct Options {
    /// The longest time that changes run between two comparisons
    #[arg(long, default_value_t = 1.5, value_name = "SECONDS")]
    lives: f64,
    /// Sessions that change rows
    #[arg(long, default_value_t = 2)]
    writers: u64,
    /// Repeat an earlier run's statements; how they meet is up to the servers
    #[arg(long)]
    seed: Option<u64>,
    /// Changes that the replica makes up for, to be timed; 0 to leave that out
    #[arg(long, default_value_t = 200_000)]
    changes: u64,
    /// Data that is copied, to be timed; 0 to leave that out
    #[arg(long, default_value_t = 128, value_name = "MIB")]
    copy_mib: u64,
    /// `--rounds` says how often all tables are compared, after random definitions, changes and perhaps a kill
    #[command(flatten)]
    common: Common,
}

/// What a source has to have, beside what all rivals get. Commits need not survive a power cut here, but a kill.
const SOURCE: [&str; 8] = [
    "--log-bin=binlog",
    "--server-id=1",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--binlog-row-metadata=FULL",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-buffer-pool-size=512M",
];

/// How long everything may take until it is the source's.
const SETTLE_LIMIT: Duration = Duration::from_secs(180);

/// `avocet attach` to a port of this machine.
pub struct Attach {
    binary: PathBuf,
    source: u16,
    options: Vec<String>,
}

impl Launch for Attach {
    fn name(&self) -> &'static str {
        "avocet attach"
    }

    fn initialize(&self, _data: &Path) -> Result<()> {
        Ok(())
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let mut server = Command::new(&self.binary);
        server
            .arg("attach")
            .arg(format!("mysql://root@127.0.0.1:{}/", self.source))
            .arg("--data")
            .arg(data)
            .args(["--listen", &format!("127.0.0.1:{}", at.port)])
            .args(&self.options);
        server
    }
}

/// A source, and who follows it.
pub struct Pair {
    pub source: Server,
    pub replica: Server,
}

impl Pair {
    fn start(folder: &Path, options: &[String], before: impl FnOnce(&Server) -> Result<()>) -> Result<Self> {
        let source = Server::start(Box::new(Mysql9::fetch()?.with(&SOURCE)), &folder.join("source"))?;
        before(&source)?;
        let attach = Attach { binary: avocet::binary()?, source: source.port(), options: options.to_vec() };
        let replica = Server::start(Box::new(attach), &folder.join("replica"))?;
        Ok(Self { source, replica })
    }

    /// Waits until all that the source has committed is visible here, and every table that can be followed is.
    pub fn settle(&self) -> Result<()> {
        let begin = Instant::now();
        let executed: Option<String> = connect(&self.source)?.query_first("SELECT @@GLOBAL.gtid_executed")?;
        let executed = executed.unwrap_or_default();
        let mut replica = connect(&self.replica)?;
        loop {
            let waited: Option<i64> =
                replica.exec_first("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 1)", (&executed,))?;
            let row: Option<mysql::Row> = replica.query_first("SHOW REPLICA STATUS")?;
            let row = row.ok_or_else(|| Error::Check("SHOW REPLICA STATUS is empty".into()))?;
            let text = |name: &str| row.get::<String, _>(name).unwrap_or_default();
            let tables = text("Last_SQL_Error");
            let unfinished = ["waiting to be copied", "being copied", "the stream is not there yet"];
            let is_unfinished = unfinished.iter().any(|state| tables.contains(state));
            if waited == Some(0) && !is_unfinished {
                return Ok(());
            }
            if text("Replica_SQL_Running") != "Yes" || begin.elapsed() > SETTLE_LIMIT {
                return Err(Error::Check(format!(
                    "the replica does not get there: {} / {}",
                    text("Last_IO_Error"),
                    tables
                )));
            }
            if waited == Some(0) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

pub fn connect(server: &Server) -> Result<Conn> {
    Ok(Conn::new(options(server))?)
}

fn options(server: &Server) -> OptsBuilder {
    // A definition that waits for a writer's transaction would wait for the end of the round, which waits for it.
    let init = ["SET NAMES utf8mb4, time_zone = '+00:00', lock_wait_timeout = 2"].map(String::from).to_vec();
    server.options().init(init).stmt_cache_size(32)
}

/// `bench/run attach`.
pub fn command(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| now_micros() as u64);
    println!("seed {seed}");
    if options.common.rounds > 0 {
        rounds(options, seed)?;
    }
    let mut report = Report::new("attach", Rival::None);
    if options.copy_mib > 0 || options.changes > 0 {
        speed::measure(options, &mut report)?;
    }
    report.publish(options.common.json.as_deref())
}

fn rounds(options: &Options, seed: u64) -> Result<()> {
    let folder = Scratch::new("attach")?;
    let mut random = Random::new(seed);
    let mut tables: Vec<Table> = Vec::new();
    let mut pair = Pair::start(folder.path(), &options.common.serve_option, |source| {
        let mut conn = connect(source)?;
        conn.query_drop("CREATE DATABASE r")?;
        for _ in 0..5 {
            schema::create(&mut conn, &mut random, &mut tables)?;
        }
        let mut writer = writes::Writer::new(random.bits());
        (0..40).try_for_each(|_| writer.step(&mut conn, &tables).map(drop))
    })?;
    for round in 1..=options.common.rounds {
        let lives = Duration::from_micros(random.uniform(50_000, (options.lives * 1e6) as i64) as u64);
        let what = run_round(&mut pair, options, &mut random, &mut tables, lives)?;
        pair.settle().map_err(|error| in_round(round, seed, error))?;
        let compared = compare::all(&pair).map_err(|error| in_round(round, seed, error))?;
        println!("round {round}: {lives:.2?}, {what}; {compared}");
    }
    Ok(())
}

fn in_round(round: u32, seed: u64, error: Error) -> Error {
    Error::Check(format!("round {round} with seed {seed}: {error}"))
}

/// Changes, definitions, and perhaps a kill.
fn run_round(
    pair: &mut Pair,
    options: &Options,
    random: &mut Random,
    tables: &mut Vec<Table>,
    lives: Duration,
) -> Result<String> {
    let stop = AtomicBool::new(false);
    let known = tables.clone();
    let seeds: Vec<u64> = (0..options.writers).map(|_| random.bits()).collect();
    let connection = self::options(&pair.source);
    let mut what = String::from("no kill");
    let mut outcome: Result<()> = Ok(());
    let written = std::thread::scope(|scope| {
        let writers: Vec<_> = seeds
            .iter()
            .map(|&seed| {
                let (connection, known, stop) = (connection.clone(), &known, &stop);
                scope.spawn(move || writes::write(connection, seed, known, stop))
            })
            .collect();
        let begin = Instant::now();
        outcome = (|| {
            let kill_at = lives.mul_f64(random.unit());
            let kills = random.uniform(0, 9);
            let mut is_killed = false;
            while begin.elapsed() < lives {
                if !is_killed && kills < 4 && begin.elapsed() >= kill_at {
                    is_killed = true;
                    let (server, name) = match kills {
                        0 => (&mut pair.source, "source killed"),
                        _ => (&mut pair.replica, "replica killed"),
                    };
                    server.kill()?;
                    server.start_again()?;
                    what = name.into();
                }
                if random.percent(30) {
                    schema::define(&mut connect(&pair.source)?, random, tables)?;
                }
                std::thread::sleep(Duration::from_millis(random.uniform(1, 120) as u64));
            }
            Ok(())
        })();
        stop.store(true, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().unwrap_or(Ok(0))).collect::<Vec<_>>()
    });
    outcome?;
    let statements = written.into_iter().sum::<Result<u64>>()?;
    Ok(format!("{what}, {statements} statements"))
}
