//! `avocet load`: files into a table, through a server or straight into a data directory.
//!
//! Each file is one transaction: it is loaded whole, or not at all.

mod computed;
mod delimited;
mod embedded;
mod remote;
mod source;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::{Failure, connect};
use source::{Batch, Source};

#[derive(clap::Args)]
pub struct Args {
    /// .csv, .tsv, .tbl ('|'-separated) or .parquet files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The table to load into
    #[arg(long, value_name = "DB.TABLE")]
    table: TableName,
    /// The first line of .csv, .tsv and .tbl files holds column names
    #[arg(long)]
    header: bool,
    #[command(flatten)]
    target: connect::Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub database: String,
    pub table: String,
}

impl FromStr for TableName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => {
                Ok(Self { database: database.to_owned(), table: table.to_owned() })
            }
            _ => Err("give the table as DB.TABLE".to_owned()),
        }
    }
}

/// Where rows are loaded to.
trait Target {
    /// The table's column names.
    fn columns(&self) -> Vec<String>;
    fn begin(&mut self) -> Result<(), Failure>;
    /// Adds rows. `places` says for each column of the table which of the batch it is.
    fn push(&mut self, batch: &Batch, places: &[Option<usize>]) -> Result<(), Failure>;
    /// Commits what was added since `begin`.
    fn finish(&mut self) -> Result<(), Failure>;
    fn close(&mut self) -> Result<(), Failure>;
}

pub fn run(args: Args) -> Result<(), Failure> {
    let mut target: Box<dyn Target> = match &args.target.data {
        Some(data) => Box::new(embedded::Embedded::open(data, &args.table)?),
        None => Box::new(remote::Remote::open(args.target.connect(None)?, &args.table)?),
    };
    for file in &args.files {
        let started = Instant::now();
        let rows = load(&mut *target, file, args.header)
            .map_err(|error| format!("{}: {error}; nothing of this file was loaded", file.display()))?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{}: {rows} rows in {seconds:.2} s ({:.0} rows/s)", file.display(), rows as f64 / seconds);
    }
    target.close()
}

fn load(target: &mut dyn Target, file: &Path, header: bool) -> Result<u64, Failure> {
    let mut source = Source::open(file, header)?;
    let bar = progress_bar(file, source.total);
    let columns = target.columns();
    let mut places = None;
    let mut rows = 0;
    target.begin()?;
    while let Some(batch) = source.batch()? {
        let places = match &mut places {
            Some(places) => places,
            None => places.insert(place(&columns, source.names.as_deref(), batch.columns.len())?),
        };
        target.push(&batch, places)?;
        rows += batch.rows as u64;
        bar.set_position(source.position());
    }
    target.finish()?;
    bar.finish_and_clear();
    Ok(rows)
}

fn progress_bar(file: &Path, total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent}% {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style).with_message(name)
}

/// Which column of the file each column of the table is: by name, or by position if the file has no names.
fn place(table: &[String], file: Option<&[String]>, count: usize) -> Result<Vec<Option<usize>>, Failure> {
    let Some(names) = file else {
        if count != table.len() {
            return Err(format!("{count} columns, but the table has {}", table.len()).into());
        }
        return Ok((0..count).map(Some).collect());
    };
    if let Some(unknown) =
        names.iter().find(|name| !table.iter().any(|column| column.eq_ignore_ascii_case(name)))
    {
        return Err(format!("the table has no column '{unknown}'").into());
    }
    Ok(table.iter().map(|column| names.iter().position(|name| name.eq_ignore_ascii_case(column))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn columns_are_placed_by_name_or_by_position() {
        let table = strings(&["id", "name", "note"]);
        let by_name = place(&table, Some(&strings(&["NAME", "id"])), 2).expect("known names");
        assert_eq!(by_name, [Some(1), Some(0), None]);
        assert_eq!(place(&table, None, 3).expect("all"), [Some(0), Some(1), Some(2)]);
        assert!(place(&table, None, 2).is_err());
        assert!(place(&table, Some(&strings(&["other"])), 1).is_err());
    }

    #[test]
    fn a_table_is_named_with_its_database() {
        assert!("shop.t".parse::<TableName>().is_ok());
        assert!("t".parse::<TableName>().is_err());
    }
}
