//! `bench/run isolation`: random schedules of concurrent transactions, step by step on Avocet and on MySQL 9.7.
//!
//! Each step is a statement of one session. It is sent to both servers, and all sessions are let come to rest: each has
//! answered or waits for a row (`stage.rs`). Who waits, rows, counts and error numbers must be the same on both, and at the
//! end what the tables hold. Where docs/transactions.md names a difference, `judge.rs` knows how to tell it, and why.
//!
//! A difference is made as small as it gets before it is shown; `--seed` with the seed that is printed repeats it alone.

mod innodb;
mod judge;
mod schedule;
mod sql;
mod stage;

use std::collections::{BTreeMap, VecDeque};

use clap::{Args, ValueEnum};

use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::rival::Server;
use crate::rival::avocet::Avocet;
use crate::rival::mysql9::Mysql9;
use judge::{Excuse, Judge, Verdict};
use schedule::{Level, Schedule, Step};
use stage::{Kind, Stage};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Levels {
    Rc,
    Rr,
    Mixed,
    /// REPEATABLE READ, with long readers that also write: what they see
    Views,
}

#[derive(Args, Clone)]
pub struct Options {
    /// The first schedule; those after it have the seeds that follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many schedules
    #[arg(long, default_value_t = 500)]
    cases: u64,
    /// How the sessions are isolated
    #[arg(long, value_enum, default_value = "mixed")]
    levels: Levels,
    /// Show every step and what it came to
    #[arg(long)]
    verbose: bool,
    /// Stop after so many differences
    #[arg(long, default_value_t = 5)]
    stop_after: usize,
    /// An option passed on to `avocet serve`; may be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    serve_option: Vec<String>,
}

/// What a schedule came to.
enum Outcome {
    /// The same to the end.
    Same,
    Excused(Excuse),
    Different(String),
}

/// `bench/run isolation`.
pub fn command(options: &Options) -> Result<()> {
    let scratch = Scratch::new("isolation")?;
    let start = |launch, folder: &str| Server::start(launch, &scratch.path().join(folder));
    let mysql = Mysql9::fetch()?.with(&[
        // As MySQL is by default. Without it, an UPDATE to a row's own values may make a version that is then seen.
        "--log-bin=binlog",
        "--server-id=1",
        "--sync-binlog=0",
        "--performance-schema=ON",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-buffer-pool-size=64M",
    ]);
    let mysql = start(Box::new(mysql), "mysql")?;
    let mut serve = options.serve_option.clone();
    serve.push("--durability=os".into());
    let avocet = start(Box::new(Avocet::find(&serve)?), "avocet")?;
    let mut both = Both {
        avocet: Stage::new(&avocet, Kind::Avocet)?,
        mysql: Stage::new(&mysql, Kind::Mysql)?,
        verbose: options.verbose,
    };
    both.run_all(options)
}

struct Both<'s> {
    avocet: Stage<'s>,
    mysql: Stage<'s>,
    verbose: bool,
}

impl Both<'_> {
    fn run_all(&mut self, options: &Options) -> Result<()> {
        let schedule = |seed| match options.levels {
            Levels::Rc => Schedule::random(seed, Some(Level::ReadCommitted)),
            Levels::Rr => Schedule::random(seed, Some(Level::RepeatableRead)),
            Levels::Mixed => Schedule::random(seed, None),
            Levels::Views => Schedule::views(seed),
        };
        let mut excused: BTreeMap<Excuse, u64> = BTreeMap::new();
        let (mut same, mut different, mut unsteady) = (0_u64, 0, 0_u64);
        for seed in options.seed..options.seed + options.cases {
            let schedule = schedule(seed);
            match self.run(&schedule)? {
                Outcome::Same => same += 1,
                Outcome::Excused(excuse) => *excused.entry(excuse).or_default() += 1,
                Outcome::Different(first) => {
                    let Some((schedule, how)) = self.shrink(schedule)? else {
                        println!("seed {seed}: not a second time: {first}");
                        unsteady += 1;
                        continue;
                    };
                    println!("seed {seed}: a difference\n{schedule}  {}\n", how.replace('\n', "\n  "));
                    different += 1;
                    if different >= options.stop_after {
                        break;
                    }
                }
            }
        }
        println!("{same} schedules the same to the end, {unsteady} differed once and not again");
        for (excuse, count) in excused {
            println!("{count} the same up to a known difference: {}", excuse.text());
        }
        match different {
            0 => Ok(()),
            n => Err(Error::Check(format!("{n} schedules ran otherwise than on {}", self.mysql.name()))),
        }
    }

    /// Leaves out whatever is not needed for a difference; `None` if there is none when it runs again.
    fn shrink(&mut self, schedule: Schedule) -> Result<Option<(Schedule, String)>> {
        let Outcome::Different(mut how) = self.run(&schedule)? else { return Ok(None) };
        let mut least = schedule;
        let mut chunk = (least.steps.len() / 2).max(1);
        loop {
            let mut at = 0;
            while at < least.steps.len() {
                let Some(fewer) = least.without(at, chunk) else { break };
                match self.run(&fewer)? {
                    Outcome::Different(found) => (least, how) = (fewer, found),
                    Outcome::Same | Outcome::Excused(_) => at += chunk,
                }
            }
            if chunk == 1 {
                return Ok(Some((least, how)));
            }
            chunk /= 2;
        }
    }

    fn run(&mut self, schedule: &Schedule) -> Result<Outcome> {
        for stage in [&mut self.avocet, &mut self.mysql] {
            stage.sessions(schedule.levels.len())?;
            stage.prepare(&schedule.setup)?;
        }
        let outcome = self.play(schedule)?;
        self.avocet.clear()?;
        self.mysql.clear()?;
        Ok(outcome)
    }

    fn play(&mut self, schedule: &Schedule) -> Result<Outcome> {
        let mut judge = Judge::new(schedule);
        for (session, level) in schedule.levels.iter().enumerate() {
            let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", level.name());
            self.avocet.step(session, &set)?;
            self.mysql.step(session, &set)?;
        }
        let mut left: VecDeque<Step> = schedule.steps.iter().cloned().collect();
        // A session that waits lets the others go before it. What is left in the end waits for transactions that a shrunk
        // schedule does not end, or `clear` finds it stuck.
        while let Some(at) = left.iter().position(|step| !self.avocet.waits(step.session)) {
            let Step { session, statement } = left.remove(at).expect("found there");
            let waited = self.avocet.waiting().to_vec();
            judge.begins(session, &statement.sql, statement.traits);
            let ours = self.avocet.step(session, &statement.sql)?;
            let theirs = self.mysql.step(session, &statement.sql)?;
            if self.verbose {
                println!(
                    "@{}  {}\n      avocet {ours:?}\n      mysql  {theirs:?}",
                    session + 1,
                    statement.sql
                );
            }
            let verdict = judge.compare((&ours, &mut self.avocet), (&theirs, &mut self.mysql), &waited)?;
            match verdict {
                Verdict::Same => {}
                Verdict::Excused(excuse) => return Ok(Outcome::Excused(excuse)),
                Verdict::Different(how) => {
                    let at = format!("at @{}  {}\n{how}", session + 1, statement.sql);
                    return Ok(Outcome::Different(at));
                }
            }
        }
        self.avocet.clear()?;
        self.mysql.clear()?;
        for table in ["t", "s"] {
            let sql = format!("SELECT * FROM {table}");
            let (ours, theirs) = (self.avocet.look(&sql)?, self.mysql.look(&sql)?);
            if ours != theirs {
                return Ok(Outcome::Different(format!("{table} holds\n  avocet {ours}\n  mysql  {theirs}")));
            }
        }
        Ok(Outcome::Same)
    }
}
