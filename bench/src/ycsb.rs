//! YCSB: `bench/run ycsb`. The six core workloads of the Yahoo! Cloud Serving Benchmark on one table of a key and ten fields
//! of 100 characters.
//!
//! | workload | operations | keys |
//! |---|---|---|
//! | A | 50 % read, 50 % update | scrambled Zipfian |
//! | B | 95 % read, 5 % update | scrambled Zipfian |
//! | C | read | scrambled Zipfian |
//! | D | 95 % read, 5 % insert | latest |
//! | E | 95 % scan of 1 to 100 rows, 5 % insert | scrambled Zipfian |
//! | F | 50 % read, 50 % read-modify-write | scrambled Zipfian |
//!
//! Every field says what it is (`field`), so every value that is read is checked, and after each run the whole table is
//! compared with what was written. Read-modify-write is a transaction with a locking read, so that none may be lost.

mod check;
mod field;
mod keys;
mod load;
mod terminal;
mod zipf;

use std::sync::Arc;

use clap::{Args, ValueEnum};
use mysql::OptsBuilder;

use crate::contest::Contest;
use crate::error::Result;
use crate::finding::Finding;
use crate::oltp::driver::Plan;
use crate::oltp::{self, Workload};
use crate::options::{Common, Pace};
use crate::report::Report;
use crate::rival::Server;
use check::Table;
use terminal::{Books, YcsbTerminal};

const DATABASE: &str = "ycsb";

/// Which of the core workloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Letter {
    A,
    B,
    C,
    D,
    E,
    F,
}

impl Letter {
    fn name(self) -> &'static str {
        match self {
            Letter::A => "ycsb.a",
            Letter::B => "ycsb.b",
            Letter::C => "ycsb.c",
            Letter::D => "ycsb.d",
            Letter::E => "ycsb.e",
            Letter::F => "ycsb.f",
        }
    }
}

#[derive(Args, Clone)]
pub struct Options {
    /// Rows loaded
    #[arg(long, default_value_t = 100_000)]
    records: u64,
    /// Which workloads run, in this order on the same data
    #[arg(long, value_enum, value_delimiter = ',', default_value = "a,b,c,f,d,e")]
    workloads: Vec<Letter>,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    common: Common,
}

/// Connection options with YCSB's database in use.
fn options(server: &Server) -> OptsBuilder {
    server.options().db_name(Some(DATABASE))
}

impl Workload for Letter {
    type Terminal = YcsbTerminal;
    type State = Table;

    fn name(&self) -> &str {
        Letter::name(*self)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &terminal::KINDS
    }

    fn connect(&self, server: &Server, table: &Table, plan: &Plan) -> Result<Vec<YcsbTerminal>> {
        let keys = Arc::new(keys::KeySpace::new(table.rows()));
        let writers = table.writers();
        let one = |n: usize| {
            let (seed, writer) = (plan.seed + n as u64, writers + n as u64);
            YcsbTerminal::connect(options(server), *self, keys.clone(), seed, writer)
        };
        (0..plan.terminals).map(one).collect()
    }

    fn check(&self, server: &Server, table: &mut Table, books: Books) -> Result<Vec<Finding>> {
        table.check(&options(server), books)
    }
}

/// `bench/run ycsb`.
pub fn command(options: &Options) -> Result<()> {
    let contest = Contest::start(&options.common)?;
    let mut tables = Vec::new();
    for server in contest.servers() {
        load::load(server, options.records)?;
        tables.push(Table::loaded(options.records));
    }
    let mut report = Report::new("ycsb", options.common.rival);
    let mut holds = true;
    for letter in &options.workloads {
        holds &= oltp::rounds(letter, &contest, &mut tables, &options.pace, &options.common, &mut report)?;
    }
    report.publish(options.common.json.as_deref())?;
    oltp::verdict(holds)
}
