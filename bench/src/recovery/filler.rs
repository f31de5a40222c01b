//! Writes a long log quickly: a process of its own (this program, started anew) runs TPC-C on the engine's API, tells what is
//! durable when the log is long enough, and goes on until it is killed, so that the kill still comes in mid-load.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{Filled, Options as RecoveryOptions};
use crate::error::{Error, IoContext, Result};
use crate::options::Oltp;
use crate::rival::Server;
use crate::tpcc::calls::Logging;
use crate::tpcc::driver::{self, Books, Plan, Watch};
use crate::tpcc::procedures::{self, Caller};

/// What the process says when all that its books tell of is durable, and when it is in the midst of further work.
const FILLED: &str = "filled";
const GOES_ON: &str = "goes on";

#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    oltp: Oltp,
    #[arg(long)]
    log_mib: u64,
    #[arg(long)]
    data: PathBuf,
    /// Where the books go
    #[arg(long)]
    books: PathBuf,
}

/// What the filler tells about its run.
#[derive(Serialize, Deserialize)]
struct Told {
    transactions: u64,
    log_bytes: u64,
    micros: u64,
    books: Books,
}

/// The process that fills: never returns unless something fails.
pub fn command(options: &Options) -> Result<()> {
    let engine = procedures::open(&options.data, |options| options.checkpoint_log_bytes = u64::MAX)?;
    let scale = options.oltp.scale();
    let plan = Plan { warm_up: Duration::ZERO, measure: Duration::from_secs(3600), ..options.oltp.plan(0) };
    let before = engine.log_stats().bytes;
    let run = procedures::fill(&engine, scale, plan, options.log_mib << 20)?;
    let told = Told {
        transactions: run.transactions(),
        log_bytes: engine.log_stats().bytes - before,
        micros: run.elapsed.as_micros() as u64,
        books: run.books,
    };
    fs::write(&options.books, serde_json::to_vec(&told)?)
        .context(|| format!("writing {}", options.books.display()))?;
    println!("{FILLED}");
    let filled = engine.log_stats().bytes;
    let mut has_told = false;
    let watch = |_| {
        if !has_told && engine.log_stats().bytes > filled {
            println!("{GOES_ON}");
            has_told = true;
        }
        Watch::EndInTime
    };
    let further = Plan { seed: plan.seed + 99, ..plan };
    driver::run(further, scale, &driver::Control::default(), || Caller::new(&engine, Logging::Rows), watch)?;
    Err(Error::Setup("nobody killed the filler".into()))
}

/// Has the log of a server's data filled, and kills who did it in mid-work. The server is stopped then.
pub fn fill(server: &mut Server, options: &RecoveryOptions) -> Result<Filled> {
    server.stop()?;
    let oltp = &options.oltp;
    let books = server.data().with_extension("books");
    let own = std::env::current_exe().context(|| "finding this program".into())?;
    let mut child = Command::new(own)
        .arg("fill-log")
        .args(["--warehouses", &oltp.warehouses.to_string(), "--terminals", &oltp.pace.terminals.to_string()])
        .args(oltp.tiny.then_some("--tiny"))
        .args(["--log-mib", &options.log_mib.to_string()])
        .arg("--data")
        .arg(server.data())
        .arg("--books")
        .arg(&books)
        .stdout(Stdio::piped())
        .spawn()
        .context(|| "starting the filler".into())?;
    let out = child.stdout.take().expect("its output was piped");
    let lines: std::io::Result<Vec<String>> = BufReader::new(out).lines().take(2).collect();
    child.kill().context(|| "killing the filler".into())?;
    child.wait().context(|| "waiting for the filler".into())?;
    if lines.context(|| "listening to the filler".into())? != [FILLED, GOES_ON] {
        return Err(Error::Setup("the filler failed".into()));
    }
    let text = fs::read(&books).context(|| format!("reading {}", books.display()))?;
    let told: Told = serde_json::from_slice(&text)?;
    Ok(Filled {
        transactions: told.transactions,
        log_bytes: told.log_bytes,
        took: Duration::from_micros(told.micros),
        books: told.books,
        in_doubt: 1 << 40,
    })
}
