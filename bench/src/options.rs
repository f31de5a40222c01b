//! The options that workloads share.

use std::path::PathBuf;
use std::time::Duration;

use avocet_engine::Compression;
use clap::{Args, ValueEnum};

use crate::oltp::driver::Plan;
use crate::rival::{Rival, Way};
use crate::tpcc::call_sql::Style;
use crate::tpcc::calls::Logging;
use crate::tpcc::schema::Scale;

/// Who runs, how often, and where the figures go.
#[derive(Args, Clone)]
pub struct Common {
    /// Who is measured beside Avocet
    #[arg(long, value_enum, default_value = "none")]
    pub rival: Rival,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How clients of either side connect
    #[arg(long, value_enum, default_value = "tcp")]
    pub through: Way,
    /// Rounds, alternating between Avocet and the rival; the median counts
    #[arg(long, default_value_t = 1)]
    pub rounds: u32,
    /// Measure the rival alone
    #[arg(long)]
    pub without_avocet: bool,
    /// An option passed on to `avocet serve`; may be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub serve_option: Vec<String>,
}

/// How many terminals run, and how long.
#[derive(Args, Clone)]
pub struct Pace {
    #[arg(long, default_value_t = 4)]
    pub terminals: usize,
    /// Measured time of a round
    #[arg(long, default_value_t = 30.0)]
    pub seconds: f64,
    /// Time before it that is not counted
    #[arg(long, default_value_t = 3.0)]
    pub warm_up: f64,
    /// Transactions that begin in a second, by all terminals, whether or not those before are done; latencies are then
    /// counted from when each was due. Without it each terminal begins the next when one is done
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
}

impl Pace {
    pub fn plan(&self, round: u64) -> Plan {
        Plan {
            terminals: self.terminals,
            warm_up: Duration::from_secs_f64(self.warm_up),
            measure: Duration::from_secs_f64(self.seconds),
            seed: 4_711 + 1_000 * round,
            rate: self.rate,
        }
    }
}

/// Size and length of a TPC-C run.
#[derive(Args, Clone)]
pub struct Oltp {
    #[arg(long, default_value_t = 2)]
    pub warehouses: i64,
    #[command(flatten)]
    pub pace: Pace,
    /// A few thousand rows for each warehouse instead of half a million: for smoke tests
    #[arg(long)]
    pub tiny: bool,
}

impl Oltp {
    pub fn scale(&self) -> Scale {
        if self.tiny { Scale::tiny(self.warehouses) } else { Scale::full(self.warehouses) }
    }

    pub fn plan(&self, round: u64) -> Plan {
        self.pace.plan(round)
    }
}

/// Which part of `bench/run tpcc` runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TpccPart {
    /// Terminals that send statements
    Protocol,
    /// One worker that calls native procedures
    Inproc,
}

/// What of TPC-C runs, and on which data.
#[derive(Args, Clone)]
pub struct TpccParts {
    /// Run this part alone
    #[arg(long, value_enum)]
    pub only: Option<TpccPart>,
    /// With `--only inproc`: the folder of a loaded database; loaded and kept if it is not there yet
    #[arg(long, value_name = "DIR")]
    pub on: Option<PathBuf>,
    /// What terminals send over the protocol. `sets` leaves the run in process out: its figures are those of `rows`
    #[arg(long, value_enum, default_value_t, conflicts_with = "procedures")]
    pub style: Style,
    /// Over the protocol, Avocet's terminals call native procedures, logged so, instead of sending statements
    #[arg(long, value_enum)]
    pub procedures: Option<Logging>,
    /// How the log of the run in process is compressed: lz4 or none
    #[arg(long, default_value_t)]
    pub log_compression: Compression,
}

impl TpccParts {
    pub fn runs(&self, part: TpccPart) -> bool {
        let has_part = self.style == Style::Rows || part == TpccPart::Protocol;
        has_part && self.only.is_none_or(|only| only == part)
    }
}
