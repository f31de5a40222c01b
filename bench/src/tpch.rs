//! TPC-H: `bench/run tpch` and `bench/run load`. The 22 queries on the same Parquet files; every answer is compared with the
//! right one, value by value.

pub mod answers;
pub mod data;
pub mod load;
pub mod queries;
pub mod schema;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::analytics::Analyst;
use crate::cache::{self, Scratch};
use crate::contest::{Contender, geomean, median};
use crate::error::{Error, Result};
use crate::options::Common;
use crate::report::{Report, Table, number};
use crate::rival::avocet::Avocet;
use crate::rival::duckdb::DuckDb;
use crate::rival::{Rival, Server};
use answers::Rows;
use queries::QUERIES;

pub const DATABASE: &str = "tpch";

#[derive(Args, Clone)]
pub struct Options {
    /// Scale factor
    #[arg(long, default_value_t = 1.0)]
    pub sf: f64,
    /// How often each query runs; the first run is not counted, of the others the median is
    #[arg(long, default_value_t = 4)]
    pub runs: usize,
    /// Run these queries only
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<usize>,
    /// Give Avocet's tables primary and foreign keys too
    #[arg(long)]
    pub keys: bool,
    /// Load Avocet by INSERT statements over a connection
    #[arg(long)]
    pub inserts: bool,
    #[command(flatten)]
    pub common: Common,
}

/// A contender with its data loaded.
struct Loaded {
    contender: Contender,
    name: &'static str,
    /// None for DuckDB, which is a process of its own inside `analyst`.
    server: Option<Server>,
    analyst: Analyst,
    load: Duration,
    bytes: u64,
}

impl Loaded {
    fn peak_rss(&self) -> Result<u64> {
        match (&self.server, &self.analyst) {
            (Some(server), _) => server.peak_rss(),
            (None, Analyst::DuckDb(duck)) => duck.peak_rss(),
            (None, Analyst::Mysql(_)) => Err(Error::Setup("a connection has no process".into())),
        }
    }
}

/// Starts and loads whoever takes part, one after the other.
fn contenders(options: &Options, scratch: &Scratch) -> Result<Vec<Loaded>> {
    let files = data::files(options.sf)?;
    let mut all = Vec::new();
    if !options.common.without_avocet {
        all.push(load_avocet(options, &files, scratch)?);
    }
    match options.common.rival {
        Rival::None => {}
        Rival::Duckdb => all.push(load_duckdb(&files, scratch)?),
        rival => all.push(load_row_store(rival, &files, scratch)?),
    }
    Ok(all)
}

fn load_avocet(options: &Options, files: &[(&'static str, PathBuf)], scratch: &Scratch) -> Result<Loaded> {
    let launch = Box::new(Avocet::find(&options.common.serve_option)?);
    let mut server = Server::start(launch, &scratch.path().join("avocet"))?;
    load::create(&server, options.keys)?;
    let load = if options.inserts {
        load::by_inserts(&server, files)?
    } else {
        load::by_avocet_load(&mut server, files)?
    };
    loaded(Contender::Avocet, server, load)
}

fn load_row_store(rival: Rival, files: &[(&'static str, PathBuf)], scratch: &Scratch) -> Result<Loaded> {
    let launch = rival.launch()?.ok_or_else(|| Error::Setup("there is no rival to load".into()))?;
    let server = Server::start(launch, &scratch.path().join("rival"))?;
    load::create(&server, true)?;
    let load = load::by_inserts(&server, files)?;
    let mut loaded = loaded(Contender::Rival, server, load)?;
    for table in data::TABLES {
        loaded.analyst.query(&format!("ANALYZE TABLE {table}"))?;
    }
    Ok(loaded)
}

fn loaded(contender: Contender, server: Server, load: Duration) -> Result<Loaded> {
    let bytes = cache::bytes_below(server.data())?;
    let analyst = Analyst::connect(server.options().db_name(Some(DATABASE)))?;
    server.reset_peak_rss()?;
    Ok(Loaded { contender, name: server.name(), server: Some(server), analyst, load, bytes })
}

fn load_duckdb(files: &[(&'static str, PathBuf)], scratch: &Scratch) -> Result<Loaded> {
    let mut duck = DuckDb::start(&scratch.path().join("duckdb"))?;
    let load = duck.load(files)?;
    let bytes = duck.bytes_on_disk()?;
    let analyst = Analyst::DuckDb(Box::new(duck));
    Ok(Loaded { contender: Contender::Rival, name: "duckdb", server: None, analyst, load, bytes })
}

/// What one query gave a contender.
struct Outcome {
    contender: Contender,
    query: usize,
    /// Seconds of the hot runs' median.
    seconds: f64,
    rows: std::result::Result<Rows, String>,
}

/// Runs the queries on all contenders in turn: one query on one, then on the other, so that both meet the same machine.
fn run_queries(options: &Options, contenders: &mut [Loaded]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let chosen = |number: usize| options.queries.is_empty() || options.queries.contains(&number);
    for query in QUERIES.iter().filter(|query| chosen(query.number)) {
        for contender in contenders.iter_mut() {
            let (seconds, rows) = run_query(&mut contender.analyst, query.sql, options.runs);
            eprintln!("Q{:<2} {:8} {seconds:.3} s", query.number, contender.name);
            outcomes.push(Outcome { contender: contender.contender, query: query.number, seconds, rows });
        }
    }
    outcomes
}

fn run_query(analyst: &mut Analyst, sql: &str, runs: usize) -> (f64, std::result::Result<Rows, String>) {
    let mut times = Vec::new();
    let mut answer = Err("it was not run".to_owned());
    for _ in 0..runs.max(1) {
        match analyst.query(sql) {
            Ok((took, rows)) => {
                times.push(took.as_secs_f64());
                answer = Ok(rows);
            }
            Err(e) => return (f64::NAN, Err(e.to_string())),
        }
    }
    let hot = if times.len() > 1 { &times[1..] } else { &times[..] };
    (median(hot.iter().copied()).unwrap_or(f64::NAN), answer)
}

/// `bench/run tpch`.
pub fn command(options: &Options) -> Result<()> {
    let right = answers::right(options.sf)?;
    let scratch = Scratch::new("tpch")?;
    let mut contenders = contenders(options, &scratch)?;
    let outcomes = run_queries(options, &mut contenders);
    let wrong = judge(&outcomes, &right);
    print_queries(&outcomes);

    let mut report = Report::new("tpch", options.common.rival);
    let of = |who: Contender| outcomes.iter().filter(move |o| o.contender == who);
    let times = |who| of(who).map(|o| o.seconds).filter(|s| s.is_finite()).collect::<Vec<f64>>();
    let both =
        |figure: &dyn Fn(Contender) -> Option<f64>| (figure(Contender::Avocet), figure(Contender::Rival));
    let mut add = |name, unit, figure: &dyn Fn(Contender) -> Option<f64>| {
        let (avocet, rival) = both(figure);
        report.add(name, unit, avocet, rival);
    };
    add("tpch.total_s", "s", &|who| Some(times(who).iter().sum()).filter(|s| *s > 0.0));
    add("tpch.geomean_s", "s", &|who| geomean(&times(who)));
    add("tpch.right_answers", "queries", &|who| {
        let run = of(who).count();
        let failed = wrong.iter().filter(|(contender, _, _)| *contender == who).count();
        (run > 0).then(|| (run - failed) as f64)
    });
    let peak = |who| contenders.iter().find(|c| c.contender == who).and_then(|c| c.peak_rss().ok());
    add("tpch.peak_rss_bytes", "bytes", &|who| peak(who).map(|bytes| bytes as f64));
    report.publish(options.common.json.as_deref())?;
    for (contender, query, why) in &wrong {
        println!("{contender:?} Q{query} is wrong: {why}");
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Check(format!("{} wrong answers", wrong.len()))) }
}

/// Compares every answer with the right one.
fn judge(outcomes: &[Outcome], right: &[Rows]) -> Vec<(Contender, usize, String)> {
    let mut wrong = Vec::new();
    for outcome in outcomes {
        let at = outcome.query - 1;
        let verdict = match &outcome.rows {
            Ok(rows) => answers::compare(&right[at], rows, QUERIES[at].sorted_by),
            Err(e) => Err(e.clone()),
        };
        if let Err(why) = verdict {
            wrong.push((outcome.contender, outcome.query, why));
        }
    }
    wrong
}

fn print_queries(outcomes: &[Outcome]) {
    let mut table = Table::new(&["query", "avocet s", "rival s", "ratio"]);
    for query in &QUERIES {
        let time = |who| {
            let found = outcomes.iter().find(|o| o.query == query.number && o.contender == who);
            found.map(|o| o.seconds).filter(|s| s.is_finite())
        };
        let (avocet, rival) = (time(Contender::Avocet), time(Contender::Rival));
        let ratio = avocet.zip(rival).map(|(a, r)| a / r);
        table.row(vec![format!("Q{}", query.number), number(avocet), number(rival), number(ratio)]);
    }
    println!("{}", table.text());
}

/// `bench/run load`.
pub fn load_command(options: &Options) -> Result<()> {
    let scratch = Scratch::new("load")?;
    let contenders = contenders(options, &scratch)?;
    let mut report = Report::new("load", options.common.rival);
    let of = |who: Contender| contenders.iter().find(move |c| c.contender == who);
    let seconds = |who| of(who).map(|c| c.load.as_secs_f64());
    let bytes = |who| of(who).map(|c| c.bytes as f64);
    report.add("load.s", "s", seconds(Contender::Avocet), seconds(Contender::Rival));
    report.add("load.bytes_on_disk", "bytes", bytes(Contender::Avocet), bytes(Contender::Rival));
    report.publish(options.common.json.as_deref())
}
