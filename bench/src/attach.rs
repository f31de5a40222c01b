//! `bench/run attach`: Avocet follows a real MySQL 9.7 or MariaDB and stands before it. Rounds of random definitions and changes with kills of
//! either server: at quiet points every table is compared by value, and sessions through the front check what they see all the time.
//! Then what the front costs and gains, and how fast tables are copied and missed changes are made up for.

mod back;
mod channels;
mod compare;
pub mod demo;
mod edges;
mod families;
mod freshness;
mod pair;
mod point_reads;
mod promote;
mod relay;
mod replay;
mod rounds;
mod schema;
mod session;
mod speed;
mod statements;
mod tpch;
mod transfers;
mod writes;

use clap::Args;
use mysql::prelude::Queryable;

use crate::cache::Scratch;
use crate::error::Result;
use crate::options::Common;
use crate::report::Report;
use crate::rival::Rival;
use crate::value::now_micros;
pub use pair::MARIADB;
use pair::{Pair, Source, connect};

#[derive(Args, Clone)]
pub struct Options {
    /// Who is followed; all but the first have rounds alone
    #[arg(long, value_enum, default_value_t)]
    source: Source,
    /// The longest time that changes run between two comparisons
    #[arg(long, default_value_t = 1.5, value_name = "SECONDS")]
    lives: f64,
    /// Sessions that change rows
    #[arg(long, default_value_t = 2)]
    writers: u64,
    /// How many rounds of a hundred kill a server: the source in one of four cases
    #[arg(long, default_value_t = 40, value_name = "PERCENT")]
    kills: i64,
    /// Rounds of the way back: a MySQL follows an Avocet, by its binary log, and every table is compared; 0 to leave that out
    #[arg(long, default_value_t = 0, value_name = "ROUNDS")]
    back: u64,
    /// Rounds of a server that follows by CHANGE REPLICATION SOURCE and START REPLICA; 0 to leave that out
    #[arg(long, default_value_t = 0, value_name = "ROUNDS")]
    by_statement: u64,
    /// Rounds of a server that follows two sources, each from a channel; 0 to leave that out
    #[arg(long, default_value_t = 0, value_name = "ROUNDS")]
    channels: u64,
    /// Others that follow the source in the rounds, on which the front's queries run as well
    #[arg(long, default_value_t = 0)]
    peers: u64,
    /// Statements in place of rows, XA, modes and time zones of sessions, and readers that hold up copies
    #[arg(long)]
    edges: bool,
    /// Replay recorded queries on both while rows change: no answer differs
    #[arg(long)]
    replay: bool,
    /// Rounds of PROMOTE REPLICA, with writers, promotions that fail, and kills in the middle of it; then the old source follows, and
    /// every table is compared; 0 to leave that out
    #[arg(long, default_value_t = 0, value_name = "ROUNDS")]
    promote: u64,
    /// Repeat an earlier run's statements; how they meet is up to the servers
    #[arg(long)]
    seed: Option<u64>,
    /// Changes that the replica makes up for, to be timed; 0 to leave that out
    #[arg(long, default_value_t = 200_000)]
    changes: u64,
    /// Data that is copied, to be timed; 0 to leave that out
    #[arg(long, default_value_t = 128, value_name = "MIB")]
    copy_mib: u64,
    /// How long point reads of each form are measured through the front and a relay; 0 to leave that out
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    read_seconds: f64,
    /// How long waits for the latest data are measured; 0 to leave that out
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    wait_seconds: f64,
    /// Transactions that writers try to reach at the source meanwhile
    #[arg(long, default_value_t = 5_000.0, value_name = "PER_SECOND")]
    write_rate: f64,
    /// Scale factor of TPC-H through the front; 0 to leave that out
    #[arg(long, default_value_t = 0.1)]
    tpch_sf: f64,
    /// How often each of its queries runs; the first run is not counted, of the others the median is
    #[arg(long, default_value_t = 3)]
    tpch_runs: usize,
    /// `--rounds` says how often all tables are compared, after random definitions, changes and perhaps a kill; `--rival mysql` has
    /// MySQL's own replica make up for the same changes
    #[command(flatten)]
    common: Common,
}

/// `bench/run attach`.
pub fn command(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| now_micros() as u64);
    println!("seed {seed}");
    if options.common.rounds > 0 {
        rounds::run(options, seed)?;
    }
    if options.edges && !options.source.is_mariadb() {
        edges::run(options)?;
    }
    if options.source != Source::Mysql {
        return Ok(());
    }
    if options.back > 0 {
        back::run(options, seed, options.back)?;
    }
    if options.by_statement > 0 {
        statements::run(options, seed, options.by_statement)?;
    }
    if options.channels > 0 {
        channels::run(options, seed, options.channels)?;
    }
    if options.replay {
        replay::run(options, seed)?;
    }
    if options.promote > 0 {
        promote::rounds(options, seed, options.promote)?;
    }
    let mut report = Report::new("attach", Rival::Mysql);
    if options.read_seconds > 0.0 || options.wait_seconds > 0.0 || options.tpch_sf > 0.0 {
        front(options, &mut report)?;
    }
    if options.copy_mib > 0 || options.changes > 0 {
        speed::measure(options, &mut report)?;
    }
    match report.figures.is_empty() {
        true => Ok(()),
        false => report.publish(options.common.json.as_deref()),
    }
}

/// What the front costs and gains.
fn front(options: &Options, report: &mut Report) -> Result<()> {
    let folder = Scratch::new("attach-front")?;
    let pair = Pair::start(Source::Mysql, folder.path(), &options.common.serve_option, |source| {
        let mut conn = connect(source)?;
        conn.query_drop("CREATE DATABASE r")?;
        // Common table expressions ask for a default database.
        conn.query_drop("USE r")?;
        point_reads::load(&mut conn)?;
        freshness::load(&mut conn)?;
        if options.tpch_sf > 0.0 { tpch::load(source, options.tpch_sf) } else { Ok(()) }
    })?;
    pair.settle()?;
    if options.read_seconds > 0.0 {
        point_reads::measure(&pair, options.read_seconds, report)?;
    }
    if options.wait_seconds > 0.0 {
        freshness::measure(&pair, options.wait_seconds, options.write_rate, report)?;
    }
    if options.tpch_sf > 0.0 {
        tpch::measure(&pair, options.tpch_runs, report)?;
    }
    Ok(())
}
