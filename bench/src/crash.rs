//! `bench/run crash`: the server is killed with SIGKILL at random moments while terminals and a query stream run, started again,
//! and checked, for as many rounds as wanted. Nothing acknowledged may be missing, nothing may be there by half.

use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;

use crate::ch;
use crate::ch::queries::QUERIES;
use crate::ch::streams::{self, Load, Shared};
use crate::contest::Contest;
use crate::error::{Error, Result};
use crate::finding::{self, Finding};
use crate::oltp::driver::Books as _;
use crate::options::{Common, Oltp};
use crate::progress;
use crate::random::Random;
use crate::rival::Server;
use crate::tpcc;
use crate::tpcc::check::{self, Baseline};
use crate::tpcc::driver::{self, Books, Control, Plan, Run, Watch};
use crate::tpcc::schema::Scale;
use crate::tpcc::sql::SqlOps;
use crate::value::now_micros;

#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    pub oltp: Oltp,
    /// How often the server is killed
    #[arg(long, default_value_t = 50)]
    pub kills: u32,
    /// The longest time that it lives
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    pub lives: f64,
    /// Repeat the moments of an earlier run
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub common: Common,
}

/// What a killed server left behind.
pub struct Killed {
    pub run: Run,
    pub back_after: Duration,
}

/// Runs terminals and a stream, kills the server at `moment`, and starts it again.
pub fn kill_in_mid_load(server: &mut Server, scale: Scale, plan: Plan, moment: Duration) -> Result<Killed> {
    let connection = tpcc::options(server);
    let plan = Plan { warm_up: Duration::ZERO, measure: moment * 2, ..plan };
    let (control, shared) = (Control::default(), Shared::default());
    let bar = progress::Live::new("until it is killed", moment);
    let mut killed = Ok(());
    let run = std::thread::scope(|threads| {
        // The stream's connection breaks with the server: that is what it is here for.
        threads.spawn(|| {
            streams::stream(connection.clone(), Load::Queries(&QUERIES), plan.seed, &shared).is_ok()
        });
        let connect = || SqlOps::connect(connection.clone());
        let run = driver::run(plan, scale, &control, connect, |elapsed| {
            bar.show(elapsed, control.done.load(Ordering::Relaxed), Duration::ZERO);
            if elapsed < moment {
                return Watch::GoOn;
            }
            killed = server.kill();
            Watch::EndNow
        });
        shared.stop.store(true, Ordering::Relaxed);
        run
    });
    drop(bar);
    killed?;
    let (run, errors) = run?;
    // A terminal may only have failed by losing its connection.
    if let Some(e) = errors.into_iter().find(|e| !e.is_disconnect()) {
        return Err(e);
    }
    let back_after = server.start_again()?;
    Ok(Killed { run, back_after })
}

/// `bench/run crash`.
pub fn command(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| now_micros() as u64);
    println!("seed {seed}");
    let mut contest = Contest::start(&options.common)?;
    for (_, server) in contest.each_mut() {
        ch::load(server, options.oltp.scale())?;
        kill_often(server, options, seed)?;
    }
    Ok(())
}

fn kill_often(server: &mut Server, options: &Options, seed: u64) -> Result<()> {
    let scale = options.oltp.scale();
    let mut random = Random::new(seed);
    let mut books = Books::default();
    for round in 1..=options.kills {
        let connection = tpcc::options(server);
        let before = Baseline::take(&connection)?;
        let moment = Duration::from_micros(random.uniform(20_000, (options.lives * 1e6) as i64) as u64);
        let plan = Plan { seed: seed.wrapping_add(u64::from(round)), ..options.oltp.plan(0) };
        let killed = kill_in_mid_load(server, scale, plan, moment)?;
        books.add(killed.run.books);
        let mut findings = check::books(&connection, &books, before, options.oltp.pace.terminals as u64)?;
        findings.extend(check::conditions(&connection, &scale)?);
        let broken: Vec<Finding> = findings.into_iter().filter(|finding| finding.broken.is_some()).collect();
        println!(
            "{} round {round}: killed after {moment:.2?}, back after {:.2?}, {} orders known, {} broken",
            server.name(),
            killed.back_after,
            books.orders.len(),
            broken.len()
        );
        if !broken.is_empty() {
            finding::print("broken", &broken);
            return Err(Error::Check(format!("round {round} with seed {seed} lost something")));
        }
        // Payments are counted from the state that was just found right; orders and deliveries stay in the books.
        (books.payments, books.paid) = (0, 0);
    }
    Ok(())
}
