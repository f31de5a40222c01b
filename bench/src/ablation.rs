//! `bench/run ablation`: what each part of the store brings to transactions. TPC-C's procedures, the transactional part of
//! CH-benCHmark, are called in process on four versions of the store, as Colibri's paper has them:
//!
//! | version | rows | found by | an update |
//! |---|---|---|---|
//! | column store | column blocks, right after the commit | scans | moves the row |
//! | + secondary indexes | the same | B+-trees | moves the row |
//! | + row store | hot pages | B+-trees | moves the row |
//! | + in-place updates | hot pages | B+-trees | changes the row where it is: Avocet |
//!
//! `docs/decisions/0008-ablation.md` says how each is made of the others. Each version runs on a copy of the same loaded
//! data, and TPC-C's consistency conditions are checked after it.

mod scans;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use avocet_engine::{Engine, EngineError, FreezePolicy};
use clap::Args;

use crate::cache::Scratch;
use crate::contest::median;
use crate::error::{Error, IoContext, Result};
use crate::finding;
use crate::oltp;
use crate::oltp::driver::{self, Control, Plan, Terminal, Watch};
use crate::options::{Common, Oltp};
use crate::report::{Report, Table, number};
use crate::rival::avocet::Avocet;
use crate::rival::{Rival, Server};
use crate::tpcc;
use crate::tpcc::calls::Logging;
use crate::tpcc::check;
use crate::tpcc::driver::{Runner, TpccTerminal, terminals};
use crate::tpcc::procedures::{self, Caller};
use crate::tpcc::transactions::Kind;
use scans::ScanOps;

/// Bytes for the loaded data, a copy, and what a run adds.
const ROOM: u64 = 6 << 30;

#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    oltp: Oltp,
    /// Numbers of clients, each calling one procedure after the other
    #[arg(long, value_delimiter = ',', default_value = "1,8")]
    clients: Vec<usize>,
    /// Avocet is measured alone, whatever rival is named
    #[command(flatten)]
    common: Common,
}

/// How much of the store there is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Columns,
    Indexes,
    Rows,
    InPlace,
}

impl Version {
    const ALL: [Version; 4] = [Version::Columns, Version::Indexes, Version::Rows, Version::InPlace];

    fn name(self) -> &'static str {
        match self {
            Version::Columns => "column store",
            Version::Indexes => "+ secondary indexes",
            Version::Rows => "+ row store",
            Version::InPlace => "+ in-place updates",
        }
    }

    fn slug(self) -> &'static str {
        match self {
            Version::Columns => "column_store",
            Version::Indexes => "secondary_indexes",
            Version::Rows => "row_store",
            Version::InPlace => "in_place_updates",
        }
    }

    /// Opens a copy of the data, changed into this version.
    fn open(self, data: &Path) -> Result<Arc<Engine>> {
        let engine = procedures::open(data, |options| {
            options.updates_move_rows = self < Version::InPlace;
            // The column stores freeze by themselves, after each commit; the others keep their pages for the time of a run.
            options.freeze = FreezePolicy::Never;
        })?;
        if self < Version::Rows {
            engine.freeze_all()?;
        }
        if self == Version::Columns {
            drop_indexes(&engine)?;
        }
        Ok(engine)
    }

    /// Runs clients on it; transactions in a second.
    fn measure(self, engine: &Arc<Engine>, oltp: &Oltp, plan: Plan) -> Result<f64> {
        let scale = oltp.scale();
        match self {
            Version::Columns => {
                let clients = terminals(&plan, scale, || ScanOps::new(engine))?;
                run(plan, clients.into_iter().map(|inner| Columnar { inner, engine }).collect())
            }
            Version::Indexes => {
                let clients = terminals(&plan, scale, || Caller::new(engine, Logging::Rows))?;
                run(plan, clients.into_iter().map(|inner| Columnar { inner, engine }).collect())
            }
            Version::Rows | Version::InPlace => {
                run(plan, terminals(&plan, scale, || Caller::new(engine, Logging::Rows))?)
            }
        }
    }
}

/// A client of a store without row pages: what it has inserted is in column blocks before it goes on.
struct Columnar<'e, R> {
    inner: TpccTerminal<R>,
    engine: &'e Arc<Engine>,
}

impl<R: Runner<Error = EngineError>> Terminal for Columnar<'_, R> {
    type Error = EngineError;
    type Books = tpcc::driver::Books;

    fn draw(&mut self) -> usize {
        self.inner.draw()
    }

    fn attempt(&mut self) -> std::result::Result<(), EngineError> {
        self.inner.attempt()?;
        // Only what every new snapshot sees can be frozen. What others are still changing they will freeze themselves.
        self.engine.wait_until_visible();
        self.engine.freeze_all().map(drop)
    }

    fn rollback(&mut self) -> std::result::Result<(), EngineError> {
        self.inner.rollback()
    }

    fn into_books(self) -> tpcc::driver::Books {
        self.inner.into_books()
    }
}

fn run<T: Terminal<Error = EngineError> + Send>(plan: Plan, clients: Vec<T>) -> Result<f64> {
    let watch = |_| Watch::EndInTime;
    let (run, errors) = driver::run(plan, Kind::ALL.len(), clients, &Control::default(), watch);
    match errors.into_iter().next() {
        Some(e) => Err(e.into()),
        None => Ok(run.per_second()),
    }
}

fn drop_indexes(engine: &Engine) -> Result<()> {
    let catalog = engine.catalog();
    let tables: Vec<_> = catalog.tables().filter(|table| table.def.database == tpcc::DATABASE).collect();
    for table in tables {
        for index in &table.def.indexes {
            engine.drop_index(tpcc::DATABASE, &table.def.name, &index.name, Duration::from_secs(10))?;
        }
    }
    Ok(())
}

/// `bench/run ablation`.
pub fn command(options: &Options) -> Result<()> {
    let scratch = Scratch::in_memory("ablation", ROOM)?;
    let loaded = scratch.path().join("loaded");
    let mut server = Server::start(Box::new(Avocet::find(&options.common.serve_option)?), &loaded)?;
    tpcc::load(&server, options.oltp.scale())?;
    server.stop()?;
    let mut report = Report::new("ablation", Rival::None);
    let clients: Vec<String> = options.clients.iter().map(|n| format!("{n} clients, tx/s")).collect();
    let head: Vec<&str> = std::iter::once("store").chain(clients.iter().map(String::as_str)).collect();
    let mut table = Table::new(&head);
    let mut holds = true;
    let mut before: Option<Vec<f64>> = None;
    for version in Version::ALL {
        let mut rates = Vec::new();
        for &clients in &options.clients {
            let (rate, held) = measured(version, clients, options, &loaded, &scratch.path().join("copy"))?;
            eprintln!("{}, {clients} clients: {rate:.1} tx/s", version.name());
            report.add(format!("ablation.{}.{clients}.tx_per_s", version.slug()), "tx/s", Some(rate), None);
            holds &= held;
            rates.push(rate);
        }
        let cells = rates.iter().map(|rate| number(Some(*rate)));
        table.row(std::iter::once(version.name().to_owned()).chain(cells).collect());
        let slower = |before: Vec<f64>| before.iter().zip(&rates).any(|(less, more)| more <= less);
        if before.replace(rates.clone()).is_some_and(slower) {
            println!("note: {} is not faster than the store without it", version.name());
        }
    }
    println!("\n{}", table.text());
    report.publish(options.common.json.as_deref())?;
    oltp::verdict(holds)
}

/// The median rate of a version over the rounds, each on a copy of the loaded data; whether TPC-C's conditions hold.
fn measured(
    version: Version,
    clients: usize,
    options: &Options,
    loaded: &Path,
    folder: &Path,
) -> Result<(f64, bool)> {
    let mut rates = Vec::new();
    let mut holds = true;
    for round in 0..options.common.rounds {
        copy(loaded, folder)?;
        let plan = Plan { terminals: clients, ..options.oltp.plan(u64::from(round)) };
        let engine = version.open(&folder.join("data"))?;
        rates.push(version.measure(&engine, &options.oltp, plan)?);
        engine.shutdown()?;
        drop(engine);
        let server = Server::start(Box::new(Avocet::find(&options.common.serve_option)?), folder)?;
        let findings = check::conditions(&tpcc::options(&server), &options.oltp.scale())?;
        let label = format!("consistency conditions, {}, {clients} clients", version.name());
        holds &= finding::print(&label, &findings);
        drop(server);
        fs::remove_dir_all(folder).context(|| format!("removing {}", folder.display()))?;
    }
    let rate = median(rates.into_iter()).ok_or_else(|| Error::Setup("--rounds is 0".into()))?;
    Ok((rate, holds))
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).context(|| format!("creating {}", to.display()))?;
    for entry in fs::read_dir(from).context(|| format!("listing {}", from.display()))? {
        let path = entry.context(|| format!("listing {}", from.display()))?.path();
        let target = to.join(path.file_name().expect("an entry of a folder has a name"));
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).context(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(())
}
