//! TPC-H: `bench/run tpch` and `bench/run load`. The 22 queries on the same Parquet files; every answer is compared with the
//! right one, value by value.

pub mod answers;
pub mod data;
pub mod queries;
pub mod schema;

use clap::Args;

use crate::analytics::Rows;
use crate::analytics::compare::compare;
use crate::analytics::contenders::{self, Data, Loaded, Outcome, Wrong};
use crate::cache::Scratch;
use crate::contest::Contender;
use crate::error::Result;
use crate::options::Common;
use crate::report::Report;
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

/// Starts and loads whoever takes part.
fn contenders(options: &Options, scratch: &Scratch) -> Result<Vec<Loaded>> {
    let data = Data {
        database: DATABASE,
        files: &data::files(options.sf)?,
        tables: schema::create(options.keys),
        keyed_tables: schema::create(true),
        inserts: options.inserts,
        session: "",
    };
    contenders::load(&options.common, &data, scratch)
}

/// `bench/run tpch`.
pub fn command(options: &Options) -> Result<()> {
    let right = answers::right(options.sf)?;
    let scratch = Scratch::new("tpch")?;
    let mut contenders = contenders(options, &scratch)?;
    let chosen = |number: usize| options.queries.is_empty() || options.queries.contains(&number);
    let mut outcomes = Vec::new();
    for query in QUERIES.iter().filter(|query| chosen(query.number)) {
        for contender in &mut contenders {
            outcomes.push(Outcome::of(contender, query.number, query.sql, options.runs));
        }
    }
    let wrong = judge(&outcomes, &right);
    contenders::publish("tpch", &options.common, &contenders, &outcomes, &wrong)
}

/// Compares every answer with the right one.
fn judge(outcomes: &[Outcome], right: &[Rows]) -> Wrong {
    let mut wrong = Vec::new();
    for outcome in outcomes {
        let at = outcome.query - 1;
        let verdict = match &outcome.rows {
            Ok(rows) => compare(&right[at], rows, QUERIES[at].sorted_by),
            Err(e) => Err(e.clone()),
        };
        if let Err(why) = verdict {
            wrong.push((outcome.contender, outcome.query, why));
        }
    }
    wrong
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
