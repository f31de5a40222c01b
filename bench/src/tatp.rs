//! TATP: `bench/run tatp`. The register of a telephone network's subscribers under the seven transactions of TATP's
//! description (version 1.0), 80 % of them reads of one or a few rows.
//!
//! Two of the transactions fail for a part of their random inputs (the row is not there, or is there already): such an
//! attempt is an answer, counted like any other, as the description has it.

mod check;
mod load;
mod terminal;

use clap::Args;
use mysql::OptsBuilder;

use crate::contest::Contest;
use crate::error::Result;
use crate::finding::Finding;
use crate::oltp::driver::Plan;
use crate::oltp::{self, Workload};
use crate::options::{Common, Pace};
use crate::report::Report;
use crate::rival::Server;
use terminal::{Books, TatpTerminal};

const DATABASE: &str = "tatp";

#[derive(Args, Clone)]
pub struct Options {
    /// Subscribers; the other tables have two and a half rows for each, and more
    #[arg(long, default_value_t = 100_000)]
    subscribers: i64,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    common: Common,
}

/// TATP on so many subscribers.
pub struct Tatp {
    pub subscribers: i64,
}

impl Tatp {
    /// Loads a server and says what is there.
    pub fn load(&self, server: &Server) -> Result<check::Counts> {
        load::load(server, self.subscribers)?;
        check::Counts::take(&options(server))
    }
}

/// Connection options with TATP's database in use.
fn options(server: &Server) -> OptsBuilder {
    server.options().db_name(Some(DATABASE))
}

impl Workload for Tatp {
    type Terminal = TatpTerminal;
    type State = check::Counts;

    fn name(&self) -> &str {
        "tatp"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &terminal::KINDS
    }

    fn connect(&self, server: &Server, _: &check::Counts, plan: &Plan) -> Result<Vec<TatpTerminal>> {
        let one = |n: usize| TatpTerminal::connect(options(server), self.subscribers, plan.seed + n as u64);
        (0..plan.terminals).map(one).collect()
    }

    fn check(&self, server: &Server, before: &mut check::Counts, books: Books) -> Result<Vec<Finding>> {
        check::check(&options(server), before, &books)
    }
}

/// `bench/run tatp`.
pub fn command(options: &Options) -> Result<()> {
    let contest = Contest::start(&options.common)?;
    let tatp = Tatp { subscribers: options.subscribers };
    let mut states = contest.servers().map(|server| tatp.load(server)).collect::<Result<Vec<_>>>()?;
    let mut report = Report::new("tatp", options.common.rival);
    let holds = oltp::rounds(&tatp, &contest, &mut states, &options.pace, &options.common, &mut report)?;
    report.publish(options.common.json.as_deref())?;
    oltp::verdict(holds)
}
