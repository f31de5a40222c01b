//! TPC-H on a MySQL that is followed: its 22 queries through the front and on the source itself, with the same answers.

use std::time::Duration;

use mysql::prelude::Queryable;

use super::Pair;
use super::session::Session;
use crate::analytics::compare::compare;
use crate::analytics::{Analyst, ask, load};
use crate::contest::{geomean, median};
use crate::error::{Error, Result};
use crate::report::{Report, Table, number};
use crate::rival::Server;
use crate::tpch::queries::{QUERIES, Query};
use crate::tpch::{DATABASE, data, schema};

/// From here on the front has a query run on Avocet by itself.
const ROUTE_COST: f64 = 10_000.0;

/// Fills the source.
pub fn load(source: &Server, scale: f64) -> Result<()> {
    load::create(source, DATABASE, &schema::create(true))?;
    load::by_inserts(source, DATABASE, &data::files(scale)?)?;
    let mut conn = super::connect(source)?;
    data::TABLES
        .iter()
        .try_for_each(|table| Ok(conn.query_drop(format!("ANALYZE TABLE {DATABASE}.{table}"))?))
}

/// Medians of the runs but for the first, in seconds.
struct Times {
    front: f64,
    source: f64,
}

/// Adds `attach.tpch_times_faster`: how many times as long the source takes for all of them.
pub fn measure(pair: &Pair, runs: usize, report: &mut Report) -> Result<()> {
    let options = pair.front_options().db_name(Some(DATABASE));
    let settings =
        "avocet_route = 'here', avocet_freshness_timeout = 60000, avocet_freshness_fallback = 'error'";
    let mut front = Session::open(options, settings)?;
    let mut source = Analyst::connect(pair.source.options().db_name(Some(DATABASE)))?;
    let mut table =
        Table::new(&["query", "front s", "source s", "times faster", "source's cost", "by itself"]);
    let mut all: Vec<Times> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for query in &QUERIES {
        let (times, cost) = match run(&mut front, &mut source, query, runs)? {
            Ok(done) => done,
            Err(why) => {
                wrong.push(format!("Q{}: {why}", query.number));
                continue;
            }
        };
        let by_itself = if cost >= ROUTE_COST { "avocet" } else { "source" };
        table.row(vec![
            format!("Q{}", query.number),
            number(Some(times.front)),
            number(Some(times.source)),
            number(Some(times.source / times.front)),
            number(Some(cost.round())),
            by_itself.into(),
        ]);
        all.push(times);
    }
    println!("\n{}", table.text());
    wrong.iter().for_each(|why| println!("{why}"));
    if !wrong.is_empty() {
        return Err(Error::Check(format!("{} of TPC-H's queries are not as they should be", wrong.len())));
    }
    let total = |of: fn(&Times) -> f64| all.iter().map(of).sum::<f64>();
    let (front, source) = (total(|t| t.front), total(|t| t.source));
    let ratios: Vec<f64> = all.iter().map(|t| t.source / t.front).collect();
    report.add("attach.tpch_times_faster", "times", Some(source / front), None);
    report.add("attach.tpch_times_faster_geomean", "times", geomean(&ratios), None);
    report.add("attach.tpch_total_s", "s", Some(front), Some(source));
    Ok(())
}

/// One query on both in turn; the source's cost of it. The inner error says what is wrong with the answer, or that it did not run here.
fn run(
    front: &mut Session,
    source: &mut Analyst,
    query: &Query,
    runs: usize,
) -> Result<std::result::Result<(Times, f64), String>> {
    let mut times: [Vec<Duration>; 2] = Default::default();
    let mut cost = 0.0;
    for _ in 0..runs.max(1) {
        let (took, there) = source.query(query.sql)?;
        times[1].push(took);
        let (took, here) = match ask(&mut front.conn, query.sql) {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error.to_string())),
        };
        times[0].push(took);
        let routed = front.last_routed()?;
        if !routed.here {
            return Ok(Err(format!("it ran on the source: {}", routed.why)));
        }
        cost = routed.cost.unwrap_or_default();
        if let Err(why) = compare(&there, &here, query.sorted_by) {
            return Ok(Err(why));
        }
    }
    let [front, source] = times.map(|times| {
        let hot = if times.len() > 1 { &times[1..] } else { &times[..] };
        median(hot.iter().map(Duration::as_secs_f64)).unwrap_or(f64::NAN)
    });
    Ok(Ok((Times { front, source }, cost)))
}
