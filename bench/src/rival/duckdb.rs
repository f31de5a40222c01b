//! DuckDB, the rival for analytics and loading: the PyPI package in a virtual environment of its own, driven through a small
//! Python process with native tables and all cores.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::server::peak_rss;
use crate::analytics::load::Table;
use crate::cache;
use crate::error::{Error, IoContext, Result};

const DRIVER: &str = include_str!("duckdb_driver.py");

/// Makes a Python environment in the cache with these packages; returns its interpreter.
pub fn python_with(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let environment = cache::folder(name, |dir| {
        let make = || cache::run(Command::new("python3").args(["-m", "venv"]).arg(dir));
        if make().is_err() {
            cache::run(Command::new("apt-get").args(["update", "-qq"]))?;
            cache::run(Command::new("apt-get").args(["install", "-y", "-qq", "python3-venv"]))?;
            make()?;
        }
        let mut pip = Command::new(dir.join("bin/python"));
        cache::run(
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages),
        )
        .map(drop)
    })?;
    Ok(environment.join("bin/python"))
}

/// A DuckDB process with one database file open.
pub struct DuckDb {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    file: PathBuf,
}

/// What one request gave.
#[derive(Deserialize)]
pub struct Answer {
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    pub rows: Vec<Vec<Option<String>>>,
    error: Option<String>,
}

impl Answer {
    pub fn took(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

impl DuckDb {
    /// Opens (and makes) a database file in `folder`.
    pub fn start(folder: &Path) -> Result<DuckDb> {
        let python = python_with("venv", &["duckdb==2.0.0"])?;
        std::fs::create_dir_all(folder).context(|| format!("creating {}", folder.display()))?;
        let file = folder.join("duck.db");
        let mut child = Command::new(python)
            .args(["-c", DRIVER])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context(|| "starting DuckDB".into())?;
        let requests = child.stdin.take().expect("stdin is piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(DuckDb { child, requests, answers, file })
    }

    /// Loads Parquet files into native tables and checkpoints.
    pub fn load(&mut self, tables: &[Table]) -> Result<Duration> {
        let files: serde_json::Map<String, serde_json::Value> =
            tables.iter().map(|(table, file)| (table.clone(), json!(file))).collect();
        Ok(self.ask(&json!({ "load": files }))?.took())
    }

    pub fn query(&mut self, sql: &str) -> Result<Answer> {
        self.ask(&json!({ "query": sql }))
    }

    pub fn bytes_on_disk(&self) -> Result<u64> {
        cache::bytes_below(&self.file)
    }

    /// The largest resident set of the process, in bytes.
    pub fn peak_rss(&self) -> Result<u64> {
        peak_rss(self.child.id())
    }

    fn ask(&mut self, request: &serde_json::Value) -> Result<Answer> {
        writeln!(self.requests, "{request}").context(|| "asking DuckDB".into())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).context(|| "reading from DuckDB".into())?;
        if line.is_empty() {
            return Err(Error::Setup("DuckDB ended unexpectedly".into()));
        }
        let answer: Answer = serde_json::from_str(&line)?;
        match answer.error {
            Some(error) => Err(Error::Setup(format!("DuckDB: {error}"))),
            None => Ok(answer),
        }
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        // The child may have ended by itself: then both calls have nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
