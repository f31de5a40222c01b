//! The right answers of TPC-H.
//!
//! For scale factor 1 they are those that DuckDB's TPC-H extension carries, except where they show or search text columns: the
//! extension's own generator fills these otherwise than dbgen does. For these queries, and at other scale factors, what DuckDB
//! answers on the same Parquet files is right; it is computed once and kept.

use std::fs;
use std::process::Command;

use super::data;
use super::queries::QUERIES;
use crate::analytics::Rows;
use crate::cache;
use crate::error::{IoContext, Result};
use crate::rival::duckdb::{DuckDb, python_with};

/// Writes all answers as JSON: `[[number, scale factor, text], …]`.
const EXTRACT: &str = "
import glob, json, os, sys
import duckdb, duckdb_extension_tpch
folder = os.path.dirname(duckdb_extension_tpch.__file__)
extension = glob.glob(folder + '/extensions/*/tpch.duckdb_extension')[0]
connection = duckdb.connect()
connection.execute(f\"LOAD '{extension}'\")
rows = connection.execute('SELECT query_nr, scale_factor, answer FROM tpch_answers()').fetchall()
print(json.dumps(rows))
";

/// The queries whose answers depend on addresses and comments.
const BY_TEXT: [usize; 5] = [2, 10, 13, 15, 20];

/// The right answers by query number (index 0 is query 1).
pub fn right(scale: f64) -> Result<Vec<Rows>> {
    let mut answers = computed(scale)?;
    if scale == 1.0 {
        for (number, rows) in official()? {
            if !BY_TEXT.contains(&number) {
                answers[number - 1] = rows;
            }
        }
    }
    Ok(answers)
}

/// DuckDB's answers on our files.
fn computed(scale: f64) -> Result<Vec<Rows>> {
    let files = data::files(scale)?;
    let folder = cache::folder(&format!("tpch-answers-sf{scale}"), |dir| {
        let scratch = cache::Scratch::new("answers")?;
        let mut duck = DuckDb::start(scratch.path())?;
        duck.load(&files)?;
        let answers =
            QUERIES.iter().map(|query| Ok(duck.query(query.sql)?.rows)).collect::<Result<Vec<Rows>>>()?;
        fs::write(dir.join("answers.json"), serde_json::to_string(&answers)?)
            .context(|| "keeping answers".into())
    })?;
    let text = fs::read_to_string(folder.join("answers.json")).context(|| "reading answers".into())?;
    Ok(serde_json::from_str(&text)?)
}

/// The extension's answers for scale factor 1, with their query numbers.
fn official() -> Result<Vec<(usize, Rows)>> {
    let folder = cache::folder("tpch-answers", |dir| {
        let python = python_with("venv-tpch", &["duckdb-extension-tpch==1.5.5"])?;
        let text = cache::run(Command::new(python).args(["-c", EXTRACT]))?;
        fs::write(dir.join("answers.json"), text).context(|| "keeping answers".into())
    })?;
    let text = fs::read_to_string(folder.join("answers.json")).context(|| "reading answers".into())?;
    let all: Vec<(usize, f64, String)> = serde_json::from_str(&text)?;
    let of_scale_1 = all.into_iter().filter(|(_, scale, _)| *scale == 1.0);
    Ok(of_scale_1.map(|(number, _, text)| (number, parse(&text))).collect())
}

/// A header line, then rows with columns between bars.
fn parse(text: &str) -> Rows {
    let row = |line: &str| line.split('|').map(|cell| Some(cell.to_owned())).collect();
    text.lines().skip(1).map(row).collect()
}
