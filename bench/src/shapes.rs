//! Statement shapes as applications send them: `bench/run shapes`. Each is asked of Avocet and of the rival in turn, as text and
//! prepared, with the same values; answers are compared, and the median times set in relation.

mod data;
mod script;

use std::time::{Duration, Instant};

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Row};

use crate::contest::{Contender, Contest, geomean, median};
use crate::error::{Error, Result};
use crate::oltp;
use crate::options::Common;
use crate::report::Report;
use data::Scale;
use script::{Drawn, Shape};

/// Runs of a shape before those that count.
const WARM_UP: u64 = 3;
/// A shape that takes long is measured so often at least.
const LEAST_RUNS: usize = 3;
/// From so many rows on, the marks are to be met: no shape takes more than so many times as long as the rival's, and the geometric
/// mean of all is at most the other.
const FULL_SIZE: i64 = 1_000_000;
const WORST_RATIO: f64 = 1.2;
const MEAN_RATIO: f64 = 0.5;

#[derive(Args, Clone)]
pub struct Options {
    /// Rows of the largest table
    #[arg(long, default_value_t = 1_000_000)]
    rows: i64,
    /// Runs of each shape in a round
    #[arg(long, default_value_t = 30)]
    runs: u64,
    /// Time after which no further run of a shape begins in a round
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only shapes whose names contain this
    #[arg(long, default_value = "")]
    only: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Text,
    Prepared,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Text => "text",
            Way::Prepared => "prepared",
        }
    }
}

fn all() -> Vec<Shape> {
    let reads = [
        include_str!("../queries/shapes/reads.sql"),
        include_str!("../queries/shapes/pages.sql"),
        include_str!("../queries/shapes/reports.sql"),
        include_str!("../queries/shapes/frameworks.sql"),
    ];
    let mut shapes: Vec<_> = reads.iter().flat_map(|text| script::parse(text, true)).collect();
    shapes.extend(script::parse(include_str!("../queries/shapes/writes.sql"), false));
    shapes
}

/// One run: how long it took, and the rows that came as text.
fn run(conn: &mut Conn, shape: &Shape, way: Way, scale: Scale, seed: u64) -> Result<(Duration, Vec<String>)> {
    let mut drawn = Drawn::new(scale, seed);
    let mut took = Duration::ZERO;
    let mut answer = Vec::new();
    for statement in &shape.statements {
        let values = statement.values(&mut drawn)?;
        let is_prepared = way == Way::Prepared && !values.is_empty();
        let sql = if is_prepared { statement.prepared() } else { statement.text(&values) };
        let prepared = is_prepared.then(|| conn.prep(&sql)).transpose()?;
        let begin = Instant::now();
        let rows: Vec<Row> = match &prepared {
            Some(prepared) => conn.exec(prepared, Params::Positional(values))?,
            None => conn.query(&sql)?,
        };
        took += begin.elapsed();
        answer.extend(rows.into_iter().map(|row| {
            let values = row.unwrap();
            values.iter().map(|value| value.as_sql(false)).collect::<Vec<_>>().join(" ")
        }));
    }
    answer.sort_unstable();
    Ok((took, answer))
}

/// The times of a round in microseconds, and the answers of its first run. The same round has the same values everywhere.
fn round(
    conn: &mut Conn,
    shape: &Shape,
    way: Way,
    scale: Scale,
    round: u64,
    options: &Options,
) -> Result<(Vec<f64>, Vec<String>)> {
    let seed = |number: u64| (round << 32) + number;
    let (_, answer) = run(conn, shape, way, scale, seed(0))?;
    for number in 1..WARM_UP {
        run(conn, shape, way, scale, seed(number))?;
    }
    let begin = Instant::now();
    let mut times = Vec::new();
    for number in WARM_UP..WARM_UP + options.runs {
        if times.len() >= LEAST_RUNS && begin.elapsed().as_secs_f64() > options.seconds {
            break;
        }
        times.push(run(conn, shape, way, scale, seed(number))?.0.as_secs_f64() * 1e6);
    }
    Ok((times, answer))
}

/// `bench/run shapes`.
pub fn command(options: &Options) -> Result<()> {
    let scale = Scale { orders: options.rows };
    let contest = Contest::start(&options.common)?;
    contest.servers().try_for_each(|server| data::load(server, scale))?;
    let connect = |(contender, server)| Ok::<_, Error>((contender, Conn::new(data::options(server))?));
    let mut conns: Vec<(Contender, Conn)> = contest.each().map(connect).collect::<Result<_>>()?;
    let mut report = Report::new("shapes", options.common.rival);
    let mut ratios = Vec::new();
    let mut slower = Vec::new();
    let mut holds = true;
    for shape in all().iter().filter(|shape| shape.name.contains(&options.only)) {
        for way in [Way::Text, Way::Prepared] {
            let mut times: Vec<(Contender, Vec<f64>)> = Vec::new();
            for number in 0..u64::from(options.common.rounds) {
                let mut answers: Vec<Vec<String>> = Vec::new();
                for (contender, conn) in &mut conns {
                    match round(conn, shape, way, scale, number, options) {
                        Ok((took, answer)) => {
                            times.push((*contender, took));
                            answers.push(answer);
                        }
                        Err(error) => {
                            eprintln!("{} {}: {contender:?} fails: {error}", shape.name, way.name());
                            conn.query_drop("ROLLBACK")?;
                            holds = false;
                        }
                    }
                }
                if shape.is_read && answers.windows(2).any(|pair| pair[0] != pair[1]) {
                    eprintln!("{} {}: the answers differ", shape.name, way.name());
                    holds = false;
                }
            }
            let middle = |who| median(times.iter().filter(|(c, _)| *c == who).flat_map(|(_, t)| t.clone()));
            let (avocet, rival) = (middle(Contender::Avocet), middle(Contender::Rival));
            let ratio = avocet.zip(rival).map(|(avocet, rival)| avocet / rival);
            if let Some(ratio) = ratio.filter(|ratio| *ratio > WORST_RATIO) {
                slower.push(format!("{} {}: {ratio:.2}", shape.name, way.name()));
            }
            ratios.extend(ratio);
            report.add(format!("shapes.{}.{}_us", shape.name, way.name()), "us", avocet, rival);
        }
    }
    // As ratios of avocet to the rival, which is 1 by itself.
    let one = (!ratios.is_empty()).then_some(1.0);
    report.add("shapes.geomean", "ratio", geomean(&ratios), one);
    report.add("shapes.worst", "ratio", ratios.iter().copied().reduce(f64::max), one);
    report.publish(options.common.json.as_deref())?;
    if options.rows >= FULL_SIZE {
        let mean = geomean(&ratios).filter(|mean| *mean > MEAN_RATIO && options.only.is_empty());
        for missed in slower.iter().chain(&mean.map(|mean| format!("geometric mean: {mean:.2}"))) {
            eprintln!("a mark is missed: {missed}");
            holds = false;
        }
    }
    oltp::verdict(holds)
}
