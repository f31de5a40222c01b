//! Running a scenario under many schedules. (The commit pipeline's model uses this file, too.)
//!
//! Half of the schedules choose at random at every step; half are by probabilistic concurrency testing, which goes on
//! with one thread and changes at few moments. The seed gives a schedule and everything random in a scenario.
//!
//! `AVOCET_MODEL_SCALE` multiplies the number of schedules; `AVOCET_MODEL_SEED` says where to begin.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

/// Schedules of one seed.
const PER_SEED: usize = 10;

/// Runs a scenario under about so many schedules; a failure names its seed.
pub fn explore(schedules: usize, scenario: impl Fn() + Clone + Send + Sync + 'static) {
    let first = from_environment("AVOCET_MODEL_SEED", 1);
    let seeds = (schedules / PER_SEED).max(2) as u64 * from_environment("AVOCET_MODEL_SCALE", 1);
    for seed in first..first + seeds {
        if let Err(panic) = run(seed, scenario.clone()) {
            eprintln!("AVOCET_MODEL_SEED={seed} is the seed that failed");
            resume_unwind(panic);
        }
    }
}

/// How many schedules at most it takes to see a scenario fail: for rules that are broken on purpose.
pub fn schedules_until_failure(
    most: usize,
    scenario: impl Fn() + Clone + Send + Sync + 'static,
) -> Option<usize> {
    let mut seeds = 1..=(most / PER_SEED) as u64;
    seeds.find(|&seed| run(seed, scenario.clone()).is_err()).map(|seed| seed as usize * PER_SEED)
}

fn run(seed: u64, scenario: impl Fn() + Send + Sync + 'static) -> std::thread::Result<()> {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(3_000_000);
    config.stack_size = 256 << 10;
    config.silence_warnings = true;
    let run = || match seed % 2 {
        0 => Runner::new(RandomScheduler::new_from_seed(seed, PER_SEED), config).run(scenario),
        _ => {
            let changes = 2 + (seed / 2 % 4) as usize;
            Runner::new(PctScheduler::new_from_seed(seed, changes, PER_SEED), config).run(scenario)
        }
    };
    catch_unwind(AssertUnwindSafe(run)).map(drop)
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// A number below `end`, by the seed.
pub fn below(end: usize) -> usize {
    thread_rng().gen_range(0..end)
}
