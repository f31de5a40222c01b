//! Who takes part in a benchmark of analytical queries, with its data loaded: Avocet by `avocet load`, the row stores by INSERTs, DuckDB
//! into native tables. All get the same queries in turn, so that they meet the same machine.

use std::time::Duration;

use super::load::{self, Table};
use super::{Analyst, Rows};
use crate::cache::{self, Scratch};
use crate::contest::{Contender, geomean, median};
use crate::error::{Error, Result};
use crate::options::Common;
use crate::report::{self, Report, number};
use crate::rival::avocet::Avocet;
use crate::rival::duckdb::DuckDb;
use crate::rival::{Launch, Rival, Server};

/// What is loaded.
pub struct Data<'a> {
    pub database: &'a str,
    pub files: &'a [Table],
    /// What makes Avocet's tables.
    pub tables: Vec<String>,
    /// What makes a row store's tables: these have keys.
    pub keyed_tables: Vec<String>,
    /// Avocet gets INSERTs, too.
    pub inserts: bool,
    /// What a session says first to a server behind the MySQL protocol.
    pub session: &'a str,
}

/// A contender with its data loaded.
pub struct Loaded {
    pub contender: Contender,
    pub name: &'static str,
    /// None for DuckDB, which is a process of its own inside `analyst`.
    server: Option<Server>,
    pub analyst: Analyst,
    pub load: Duration,
    pub bytes: u64,
}

impl Loaded {
    pub fn peak_rss(&self) -> Result<u64> {
        match (&self.server, &self.analyst) {
            (Some(server), _) => server.peak_rss(),
            (None, Analyst::DuckDb(duck)) => duck.peak_rss(),
            (None, Analyst::Mysql(_)) => Err(Error::Setup("a connection has no process".into())),
        }
    }
}

/// Starts and loads whoever takes part, one after the other.
pub fn load(common: &Common, data: &Data<'_>, scratch: &Scratch) -> Result<Vec<Loaded>> {
    let mut all = Vec::new();
    if !common.without_avocet {
        let launch = Avocet::find(&common.serve_option)?;
        all.push(load_avocet(Contender::Avocet, launch, data, scratch)?);
    }
    match common.rival {
        Rival::None => {}
        Rival::Duckdb => all.push(load_duckdb(data, scratch)?),
        Rival::Earlier => all.push(load_avocet(Contender::Rival, Avocet::earlier()?, data, scratch)?),
        rival => all.push(load_row_store(rival, data, scratch)?),
    }
    Ok(all)
}

fn load_avocet(who: Contender, launch: Avocet, data: &Data<'_>, scratch: &Scratch) -> Result<Loaded> {
    let folder = scratch.path().join(launch.name());
    let binary = launch.binary().to_owned();
    let mut server = Server::start(Box::new(launch), &folder)?;
    load::create(&server, data.database, &data.tables)?;
    let took = if data.inserts {
        load::by_inserts(&server, data.database, data.files)?
    } else {
        load::by_avocet_load(&mut server, &binary, data.database, data.files)?
    };
    loaded(who, data, server, took)
}

fn load_row_store(rival: Rival, data: &Data<'_>, scratch: &Scratch) -> Result<Loaded> {
    let launch = rival.launch()?.ok_or_else(|| Error::Setup("there is no rival to load".into()))?;
    let server = Server::start(launch, &scratch.path().join("rival"))?;
    load::create(&server, data.database, &data.keyed_tables)?;
    let took = load::by_inserts(&server, data.database, data.files)?;
    let mut loaded = loaded(Contender::Rival, data, server, took)?;
    for (table, _) in data.files {
        loaded.analyst.query(&format!("ANALYZE TABLE {table}"))?;
    }
    Ok(loaded)
}

fn loaded(contender: Contender, data: &Data<'_>, server: Server, load: Duration) -> Result<Loaded> {
    let bytes = cache::bytes_below(server.data())?;
    let mut analyst = Analyst::connect(server.options().db_name(Some(data.database)))?;
    if !data.session.is_empty() {
        analyst.query(data.session)?;
    }
    server.reset_peak_rss()?;
    Ok(Loaded { contender, name: server.name(), server: Some(server), analyst, load, bytes })
}

fn load_duckdb(data: &Data<'_>, scratch: &Scratch) -> Result<Loaded> {
    let mut duck = DuckDb::start(&scratch.path().join("duckdb"))?;
    let load = duck.load(data.files)?;
    let bytes = duck.bytes_on_disk()?;
    let analyst = Analyst::DuckDb(Box::new(duck));
    Ok(Loaded { contender: Contender::Rival, name: "duckdb", server: None, analyst, load, bytes })
}

/// What one query gave a contender.
pub struct Outcome {
    pub contender: Contender,
    pub query: usize,
    /// Seconds of the hot runs' median.
    pub seconds: f64,
    pub rows: std::result::Result<Rows, String>,
}

impl Outcome {
    /// Runs a query so often; the first run is not counted if there are others.
    pub fn of(loaded: &mut Loaded, query: usize, sql: &str, runs: usize) -> Self {
        let (seconds, rows) = run_query(&mut loaded.analyst, sql, runs);
        eprintln!("Q{query:<2} {:8} {seconds:.3} s", loaded.name);
        Self { contender: loaded.contender, query, seconds, rows }
    }
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

/// Answers that are wrong, and why.
pub type Wrong = Vec<(Contender, usize, String)>;

/// Prints and publishes what the queries of a benchmark gave.
///
/// # Errors
/// `Check` if an answer is wrong.
pub fn publish(
    family: &'static str,
    common: &Common,
    contenders: &[Loaded],
    outcomes: &[Outcome],
    wrong: &Wrong,
) -> Result<()> {
    print_queries(outcomes);
    let mut report = Report::new(family, common.rival);
    let of = |who: Contender| outcomes.iter().filter(move |o| o.contender == who);
    let times = |who| of(who).map(|o| o.seconds).filter(|s| s.is_finite()).collect::<Vec<f64>>();
    let both =
        |figure: &dyn Fn(Contender) -> Option<f64>| (figure(Contender::Avocet), figure(Contender::Rival));
    let mut add = |name: &str, unit, figure: &dyn Fn(Contender) -> Option<f64>| {
        let (avocet, rival) = both(figure);
        report.add(format!("{family}.{name}"), unit, avocet, rival);
    };
    add("total_s", "s", &|who| Some(times(who).iter().sum()).filter(|s| *s > 0.0));
    add("geomean_s", "s", &|who| geomean(&times(who)));
    add("right_answers", "queries", &|who| {
        let run = of(who).count();
        let failed = wrong.iter().filter(|(contender, _, _)| *contender == who).count();
        (run > 0).then(|| (run - failed) as f64)
    });
    let peak = |who| contenders.iter().find(|c| c.contender == who).and_then(|c| c.peak_rss().ok());
    add("peak_rss_bytes", "bytes", &|who| peak(who).map(|bytes| bytes as f64));
    report.publish(common.json.as_deref())?;
    for (contender, query, why) in wrong {
        println!("{contender:?} Q{query} is wrong: {why}");
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Check(format!("{} wrong answers", wrong.len()))) }
}

fn print_queries(outcomes: &[Outcome]) {
    let mut table = report::Table::new(&["query", "avocet s", "rival s", "ratio"]);
    let mut queries: Vec<usize> = outcomes.iter().map(|outcome| outcome.query).collect();
    queries.sort_unstable();
    queries.dedup();
    for query in queries {
        let time = |who| {
            let found = outcomes.iter().find(|o| o.query == query && o.contender == who);
            found.map(|o| o.seconds).filter(|s| s.is_finite())
        };
        let (avocet, rival) = (time(Contender::Avocet), time(Contender::Rival));
        let ratio = avocet.zip(rival).map(|(a, r)| a / r);
        table.row(vec![format!("Q{query}"), number(avocet), number(rival), number(ratio)]);
    }
    println!("{}", table.text());
}
