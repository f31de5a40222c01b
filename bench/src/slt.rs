//! SQL test files: `bench/run slt`. Runs `tests/slt/**/*.slt` against Avocet, or against a real MySQL or MariaDB, and records what
//! these answer.

mod differences;
mod file;
pub mod render;
mod runner;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::attach::MARIADB;
use crate::cache::Scratch;
use crate::error::{Error, IoContext, Result};
use crate::rival::avocet::Avocet;
use crate::rival::front::Front;
use crate::rival::mariadb::MariaDb;
use crate::rival::mysql9::Mysql9;
use crate::rival::{Launch, Server};
use differences::Differences;
use runner::{Failure, Mode};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    Avocet,
    Mysql,
    Mariadb,
    /// Avocet before a MySQL that it follows
    Front,
    /// Avocet before a MariaDB that it follows: answers are compared with those of another MariaDB
    FrontMariadb,
}

#[derive(Args, Clone)]
pub struct Options {
    /// Files, or folders of files
    #[arg(default_value = "tests/slt")]
    paths: Vec<PathBuf>,
    /// Who runs them
    #[arg(long, value_enum, default_value = "avocet")]
    target: Target,
    /// Write what a real MySQL answers into the files
    #[arg(long)]
    record: bool,
    /// Kill and restart the server after every statement
    #[arg(long)]
    restart: bool,
    /// Send queries as prepared statements
    #[arg(long)]
    binary: bool,
    /// Compare rows only, not the types of the columns
    #[arg(long)]
    ignore_types: bool,
    /// The list of known differences (Avocet only)
    #[arg(long, default_value = "tests/slt/differences.txt")]
    differences: PathBuf,
    /// A list of those that this way to run the files has beside them
    #[arg(long, conflicts_with = "update_differences")]
    more_differences: Option<PathBuf>,
    /// Write that list anew
    #[arg(long)]
    update_differences: bool,
    /// Show at most so many failures of a file
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// An option passed on to `avocet serve`; may be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    serve_option: Vec<String>,
    /// Run this before the files, such as `SET GLOBAL avocet_point_path = OFF`
    #[arg(long, value_name = "SQL")]
    setup: Option<String>,
}

/// What a MySQL has to have to be followed.
const SOURCE: [&str; 5] = [
    "--log-bin=binlog",
    "--server-id=1",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--binlog-row-metadata=FULL",
];

/// `bench/run slt`.
pub fn command(options: &Options) -> Result<()> {
    let scratch = Scratch::new("slt")?;
    // It lives as long as what stands before it.
    let mut source = None;
    let mut oracle = None;
    let launch: Box<dyn Launch> = match options.target {
        _ if options.record => Box::new(Mysql9::fetch()?.with_zones()?),
        Target::Avocet => Box::new(Avocet::find(&watched(&options.serve_option))?),
        Target::Mysql => Box::new(Mysql9::fetch()?.with_zones()?),
        Target::Mariadb => Box::new(MariaDb::fetch()?),
        Target::Front => {
            let mysql = Box::new(Mysql9::fetch()?.with_zones()?.with(&SOURCE));
            let before = source.insert(Server::start(mysql, &scratch.path().join("source"))?);
            Box::new(Front::before(before.port(), &options.serve_option)?)
        }
        Target::FrontMariadb => {
            let mariadb = Box::new(MariaDb::fetch()?.with(&MARIADB));
            let before = source.insert(Server::start(mariadb, &scratch.path().join("source"))?);
            oracle = Some(Server::start(Box::new(MariaDb::fetch()?), &scratch.path().join("oracle"))?);
            Box::new(Front::before(before.port(), &options.serve_option)?)
        }
    };
    let mut files = Vec::new();
    for path in &options.paths {
        find(path, &mut files)?;
    }
    files.sort();
    let mut server = Server::start(launch, scratch.path())?;
    match options.record {
        true => record(&mut server, &files),
        false => check(&mut server, oracle.as_mut(), &files, options),
    }
}

fn record(server: &mut Server, files: &[PathBuf]) -> Result<()> {
    for path in files {
        let recorded = runner::record(server, &read(path)?)
            .map_err(|e| Error::Check(format!("{}: {e}", path.display())))?;
        fs::write(path, file::write(&recorded)).context(|| format!("writing {}", path.display()))?;
    }
    println!("recorded {} files from {}", files.len(), server.name());
    Ok(())
}

/// `oracle`: who says what is right, if not the files do.
fn check(
    server: &mut Server,
    mut oracle: Option<&mut Server>,
    files: &[PathBuf],
    options: &Options,
) -> Result<()> {
    if let Some(setup) = &options.setup {
        mysql::prelude::Queryable::query_drop(&mut mysql::Conn::new(server.options())?, setup)?;
    }
    let mode = Mode { binary: options.binary, restart: options.restart };
    let mut differences = match options.target {
        Target::Avocet | Target::Front => Differences::read(&options.differences)?,
        Target::Mysql | Target::Mariadb | Target::FrontMariadb => Differences::default(),
    };
    if let Some(more) = &options.more_differences {
        differences.add(more)?;
    }
    let (mut statements, mut failed) = (0, 0);
    for path in files {
        let mut parsed = read(path)?;
        if let Some(oracle) = &mut oracle {
            let name = oracle.name();
            parsed.items.retain(|item| !matches!(item, file::Item::Record(record) if !record.runs_on(name)));
            parsed = runner::record(oracle, &parsed)?;
        }
        let (ran, failures) = match runner::check(server, &parsed, mode, !options.ignore_types) {
            Ok(outcome) => outcome,
            Err(e) => {
                println!("FAILED  {}: {e}", path.display());
                failed += 1;
                continue;
            }
        };
        statements += ran;
        let all = failures.len();
        let failures: Vec<_> =
            failures.into_iter().filter(|failure| !differences.is_known(path, failure)).collect();
        failed += failures.len();
        let verdict = if failures.is_empty() { "ok    " } else { "FAILED" };
        println!("{verdict}  {} ({} of {ran})", path.display(), ran - all);
        failures.iter().take(options.show).for_each(|failure| show(path, failure));
    }
    let known = differences.known();
    println!(
        "{} files, {statements} statements, {known} known differences, {failed} failures on {}",
        files.len(),
        server.name()
    );
    if matches!(options.target, Target::Front | Target::FrontMariadb) {
        println!("{} queries ran on Avocet", ran_on_avocet(server)?);
    }
    if options.update_differences {
        return differences.write(&options.differences);
    }
    let gone = differences.gone(files);
    gone.iter().for_each(|entry| println!("no difference any more, take it off the list: {entry}"));
    failed += gone.len();
    if failed == 0 { Ok(()) } else { Err(Error::Check(format!("{failed} SQL tests failed"))) }
}

/// How many queries a front has had run on Avocet; none is an error.
fn ran_on_avocet(server: &Server) -> Result<u64> {
    const COUNT: &str = "SELECT CAST(value AS UNSIGNED) FROM avocet.metrics \
        WHERE name = 'avocet_routed_total' AND labels LIKE '%avocet%'";
    let mut conn = mysql::Conn::new(server.options())?;
    let count: Option<u64> = mysql::prelude::Queryable::query_first(&mut conn, COUNT)?;
    match count.unwrap_or_default() {
        0 => Err(Error::Check("no query ran on Avocet".into())),
        count => Ok(count),
    }
}

fn show(path: &Path, failure: &Failure) {
    let indent = |text: &str| text.replace('\n', "\n        ");
    println!("    {}:{}: {}", path.display(), failure.line, indent(&failure.sql));
    println!("      expected {}", indent(&failure.expected));
    println!("      got      {}", indent(&failure.actual));
}

fn read(path: &Path) -> Result<file::TestFile> {
    let text = fs::read_to_string(path).context(|| format!("reading {}", path.display()))?;
    file::parse(&text).map_err(|message| Error::File { path: path.to_owned(), message })
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).context(|| format!("listing {}", path.display()))? {
        let path = entry.context(|| "listing test files".into())?.path();
        if path.is_dir() || path.extension().is_some_and(|e| e == "slt") {
            find(&path, files)?;
        }
    }
    Ok(())
}

/// Options of a server that ends when a statement holds up other connections.
fn watched(options: &[String]) -> Vec<String> {
    let mut options = options.to_vec();
    options.push("--fail-when-held=10".to_owned());
    options
}
