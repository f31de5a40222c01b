//! The right answers of TPC-H, and how an answer is compared with them.
//!
//! For scale factor 1 they are those that DuckDB's TPC-H extension carries, except where they show or search text columns: the
//! extension's own generator fills these otherwise than dbgen does. For these queries, and at other scale factors, what DuckDB
//! answers on the same Parquet files is right; it is computed once and kept.
//!
//! Stricter than clause 2.1.3.5 asks: text, dates and integers are equal; decimals agree in every place that both sides show.

use std::fs;
use std::process::Command;

use super::data;
use super::queries::QUERIES;
use crate::cache;
use crate::error::{IoContext, Result};
use crate::rival::duckdb::{DuckDb, python_with};

pub type Cell = Option<String>;
pub type Rows = Vec<Vec<Cell>>;

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

/// Compares an answer with the right one; says what is different first.
pub fn compare(right: &Rows, answer: &Rows, sorted_by: &[usize]) -> std::result::Result<(), String> {
    if right.len() != answer.len() {
        return Err(format!("{} rows instead of {}", answer.len(), right.len()));
    }
    let mut begin = 0;
    while begin < right.len() {
        let same_place = |row: &Vec<Cell>| sorted_by.iter().all(|c| row[*c] == right[begin][*c]);
        let ties = if sorted_by.is_empty() {
            1
        } else {
            right[begin..].iter().take_while(|r| same_place(r)).count()
        };
        match_ties(&right[begin..begin + ties], &answer[begin..begin + ties])
            .map_err(|e| format!("row {}: {e}", begin + 1))?;
        begin += ties;
    }
    Ok(())
}

/// Rows that are equal in the sorted columns may come in any order: each must have its own equal.
fn match_ties(right: &[Vec<Cell>], answer: &[Vec<Cell>]) -> std::result::Result<(), String> {
    let mut left: Vec<&Vec<Cell>> = right.iter().collect();
    for row in answer {
        match left.iter().position(|candidate| same_row(candidate, row)) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => return Err(format!("{row:?} instead of {:?}", left[0])),
        }
    }
    Ok(())
}

fn same_row(a: &[Cell], b: &[Cell]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_cell(a.as_deref(), b.as_deref()))
}

fn same_cell(a: Option<&str>, b: Option<&str>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
    if a == b || a.trim_end() == b.trim_end() {
        return true;
    }
    let decimal = |text: &str| text.contains('.') && text.parse::<f64>().is_ok();
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if decimal(a) || decimal(b) => {
            let places = places(a).min(places(b)).max(2);
            (x - y).abs() <= 10f64.powi(-places) + 1e-12 * x.abs()
        }
        _ => false,
    }
}

fn places(text: &str) -> i32 {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Rows {
        parse(&format!("head\n{text}"))
    }

    #[test]
    fn decimals_agree_in_the_places_that_both_show() {
        assert!(same_cell(Some("25.575154611454693"), Some("25.575155")));
        assert!(!same_cell(Some("25.575154611454693"), Some("25.575255")));
        assert!(same_cell(Some("4"), Some("4.00")));
        assert!(!same_cell(Some("4"), Some("5")));
        assert!(!same_cell(None, Some("0")));
        assert!(!same_cell(Some("1996-01-01"), Some("1996-01-02")));
    }

    #[test]
    fn only_ties_may_change_places() {
        let right = rows("a|1\nb|1\nc|2");
        assert!(compare(&right, &rows("b|1\na|1\nc|2"), &[1]).is_ok());
        assert!(compare(&right, &rows("c|2\na|1\nb|1"), &[1]).is_err());
        assert!(compare(&right, &rows("a|1\na|1\nc|2"), &[1]).is_err());
        assert!(compare(&right, &rows("a|1\nb|1"), &[1]).is_err());
    }
}
