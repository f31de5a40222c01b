//! `make demo`: what a user should see of Avocet. CH-benCHmark's tables are loaded, transactions and analytics run side by side,
//! the answers are shown to be right and fresh, the server is killed in mid-load, comes back, and has lost nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::cache;
use crate::ch;
use crate::ch::queries::QUERIES;
use crate::ch::streams::{Answers, Load};
use crate::contest::median;
use crate::crash;
use crate::error::{Error, IoContext, Result};
use crate::finding;
use crate::oltp::driver::Books as _;
use crate::options::Oltp;
use crate::report::{Table, number};
use crate::rival::avocet::{self, Avocet};
use crate::rival::mariadb::MariaDb;
use crate::rival::mysql9::Mysql9;
use crate::rival::{Launch, Server};
use crate::tpcc;
use crate::tpcc::check::{self, Baseline};
use crate::tpcc::driver::{Books, Run};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Who {
    Avocet,
    Mariadb,
    Mysql,
}

#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    oltp: Oltp,
    /// Analytical streams
    #[arg(long, default_value_t = 1)]
    streams: usize,
    /// Where the data go; what is there is removed first. By default a folder in the cache
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Go on serving after the end, until interrupted
    #[arg(long)]
    serve: bool,
    /// Whom to show
    #[arg(long, value_enum, default_value = "avocet", hide = true)]
    server: Who,
}

/// `bench/run demo`.
pub fn command(options: &Options) -> Result<()> {
    let folder = options.data.clone().unwrap_or_else(|| cache::root().join("demo"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context(|| format!("removing {}", folder.display()))?;
    }
    let launch: Box<dyn Launch> = match options.server {
        Who::Avocet => Box::new(Avocet::find(&[])?),
        Who::Mariadb => Box::new(MariaDb::fetch()?),
        Who::Mysql => Box::new(Mysql9::fetch()?),
    };
    let mut server = Server::start(launch, &folder)?;
    println!("{} serves {} at 127.0.0.1:{}", server.name(), server.data().display(), server.port());
    let began = Instant::now();
    ch::load(&server, options.oltp.scale())?;
    println!("loaded {} warehouses in {:.1?}", options.oltp.warehouses, began.elapsed());

    let held = Show { options, server: &mut server }.run()?;
    how_to_connect(&server);
    if !held {
        return Err(Error::Check("not everything held".into()));
    }
    println!("\nEverything held.");
    if options.serve {
        println!("Serving until interrupted.");
        loop {
            std::thread::park();
        }
    }
    Ok(())
}

struct Show<'a> {
    options: &'a Options,
    server: &'a mut Server,
}

impl Show<'_> {
    /// The three acts; false if a check failed.
    fn run(&mut self) -> Result<bool> {
        let before = Baseline::take(&tpcc::options(self.server))?;
        let mut books = Books::default();
        let mut held = self.side_by_side(&mut books)?;
        held &= self.checks("after the run", &books, before, 0)?;
        let oltp = &self.options.oltp;
        let moment = Duration::from_secs_f64((oltp.pace.seconds / 6.0).clamp(1.0, 5.0));
        let killed = crash::kill_in_mid_load(self.server, oltp.scale(), oltp.plan(7), moment)?;
        println!("\nkilled with SIGKILL after {} more transactions", killed.run.transactions());
        println!("it answers again after {:.2?}", killed.back_after);
        books.add(killed.run.books);
        let in_doubt = self.options.oltp.pace.terminals as u64;
        held &= self.checks("after the kill", &books, before, in_doubt)?;
        Ok(held)
    }

    fn side_by_side(&mut self, books: &mut Books) -> Result<bool> {
        let scale = self.options.oltp.scale();
        let plan = self.options.oltp.plan(0);
        let (load, streams) = (Load::Queries(&QUERIES), self.options.streams);
        let at_most = (plan.measure * 10).max(Duration::from_secs(60));
        let (run, answers) = ch::mixed(self.server, scale, plan, load, streams, at_most)?;
        show_run(&run, &answers);
        books.add(run.books);
        Ok(answers.stale == 0)
    }

    fn checks(&self, when: &str, books: &Books, before: Baseline, in_doubt: u64) -> Result<bool> {
        let connection = tpcc::options(self.server);
        let conditions = check::conditions(&connection, &self.options.oltp.scale())?;
        let held = finding::print(&format!("\nTPC-C's consistency conditions {when}:"), &conditions);
        let kept = check::books(&connection, books, before, in_doubt)?;
        Ok(finding::print(&format!("what was acknowledged {when}:"), &kept) && held)
    }
}

fn show_run(run: &Run, answers: &Answers) {
    println!("\n{:.0} transactions a second beside the queries:\n", run.per_second());
    println!("{}\n", tpcc::latency_table(std::iter::once(run)));
    let mut table = Table::new(&["query", "runs", "median ms", "worst ms"]);
    for (number_of_query, runs) in (1..).zip(&answers.seconds) {
        let worst = runs.iter().copied().reduce(f64::max);
        let millis = |seconds: Option<f64>| number(seconds.map(|s| s * 1_000.0));
        let cells = [runs.len().to_string(), millis(median(runs.iter().copied())), millis(worst)];
        table.row([vec![format!("Q{number_of_query}")], cells.to_vec()].concat());
    }
    println!("{}\n", table.text());
    println!(
        "a query saw the database as it was {} ms before it began (median; p99 {} ms); {} answers lacked something \
         acknowledged before",
        number(Some(answers.age.millis(0.5))),
        number(Some(answers.age.millis(0.99))),
        answers.stale
    );
}

fn how_to_connect(server: &Server) {
    let binary = avocet::binary().map_or_else(|_| "avocet".into(), |path| path.display().to_string());
    println!("\nThe data are in {}. To look around:", server.data().display());
    println!("  {binary} serve --data {} --listen 127.0.0.1:3307", server.data().display());
    println!("  mysql -h 127.0.0.1 -P 3307 -u root {}", tpcc::DATABASE);
}
