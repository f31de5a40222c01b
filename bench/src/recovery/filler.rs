//! Writes a long log quickly: a process of its own (this program, started anew) runs TPC-C on the engine's API, tells what is
//! durable when the log is long enough, and goes on until it is killed, so that the kill still comes in mid-load.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use avocet_engine::{Engine, EngineOptions};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{Filled, Options as RecoveryOptions};
use crate::error::{Error, IoContext, Result};
use crate::options::Oltp;
use crate::rival::Server;
use crate::tpcc::driver::{Books, Plan};
use crate::tpcc::procedures;

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
    let mut engine_options = EngineOptions::new(&options.data);
    engine_options.checkpoint_log_bytes = u64::MAX;
    let engine = Engine::open(engine_options)?;
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
    println!("filled");
    procedures::measure(&engine, scale, Plan { seed: plan.seed + 99, ..plan })?;
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
        .args(["--warehouses", &oltp.warehouses.to_string(), "--terminals", &oltp.terminals.to_string()])
        .args(oltp.tiny.then_some("--tiny"))
        .args(["--log-mib", &options.log_mib.to_string()])
        .arg("--data")
        .arg(server.data())
        .arg("--books")
        .arg(&books)
        .stdout(Stdio::piped())
        .spawn()
        .context(|| "starting the filler".into())?;
    let mut line = String::new();
    let out = child.stdout.take().expect("its output was piped");
    let read = BufReader::new(out).read_line(&mut line);
    // A moment later it is in the middle of further work.
    std::thread::sleep(Duration::from_millis(50));
    child.kill().context(|| "killing the filler".into())?;
    child.wait().context(|| "waiting for the filler".into())?;
    read.context(|| "listening to the filler".into())?;
    if line.trim() != "filled" {
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
