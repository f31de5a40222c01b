//! TPC-DS: `bench/run tpcds`. The 99 queries with the specification's validation parameters on the same Parquet files; every answer is
//! compared with DuckDB's, value by value.

pub mod dialect;
pub mod source;

use std::fs;

use clap::Args;

use crate::analytics::Rows;
use crate::analytics::compare::compare_unordered;
use crate::analytics::contenders::{self, Data, Outcome};
use crate::cache::{self, Scratch};
use crate::error::{IoContext, Result};
use crate::options::Common;
use crate::rival::duckdb::DuckDb;
use source::Kit;

const DATABASE: &str = "tpcds";

#[derive(Args, Clone)]
pub struct Options {
    /// Scale factor
    #[arg(long, default_value_t = 1.0)]
    pub sf: f64,
    /// How often each query runs; the first run is not counted if there are others, of which the median is
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Run these queries only
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<usize>,
    #[command(flatten)]
    pub common: Common,
}

/// What DuckDB answers on the same files; computed once and kept.
fn right(scale: f64, kit: &Kit) -> Result<Vec<Rows>> {
    let folder = cache::folder(&format!("tpcds-answers-sf{scale}"), |dir| {
        let scratch = Scratch::new("answers")?;
        let mut duck = DuckDb::start(scratch.path())?;
        duck.load(&kit.files)?;
        let answers = kit.queries.iter().map(|query| Ok(duck.query(&query.sql)?.rows));
        let answers = answers.collect::<Result<Vec<Rows>>>()?;
        fs::write(dir.join("answers.json"), serde_json::to_string(&answers)?)
            .context(|| "keeping answers".into())
    })?;
    let text = fs::read_to_string(folder.join("answers.json")).context(|| "reading answers".into())?;
    Ok(serde_json::from_str(&text)?)
}

/// `bench/run tpcds`.
pub fn command(options: &Options) -> Result<()> {
    let kit = Kit::of(options.sf)?;
    let right = right(options.sf, &kit)?;
    let scratch = Scratch::new("tpcds")?;
    let data = Data {
        database: DATABASE,
        files: &kit.files,
        tables: kit.create(false),
        keyed_tables: kit.create(true),
        inserts: false,
        session: dialect::SESSION,
    };
    let mut contenders = contenders::load(&options.common, &data, &scratch)?;
    let mut outcomes = Vec::new();
    let mut wrong = Vec::new();
    for (text, right) in kit.queries.iter().zip(&right) {
        if !options.queries.is_empty() && !options.queries.contains(&text.number) {
            continue;
        }
        for contender in &mut contenders {
            let sql = match contender.name {
                "duckdb" => text.sql.clone(),
                _ => dialect::mysql(text.number, &text.sql),
            };
            let outcome = Outcome::of(contender, text.number, &sql, options.runs);
            // Which columns an ORDER BY fixes is not known here: rows may come in any order.
            if let Err(why) = outcome.rows.clone().and_then(|rows| compare_unordered(right, &rows)) {
                wrong.push((outcome.contender, text.number, why));
            }
            outcomes.push(outcome);
        }
    }
    contenders::publish("tpcds", &options.common, &contenders, &outcomes, &wrong)
}
