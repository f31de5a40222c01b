//! Power loss at every sync point of a mixed workload (`workload/`), on a disk that drops, reorders and tears what was not
//! synced: afterwards every acknowledged change is there, no other is there in part, the check is clean, and all
//! indexes agree with the rows. Some of the recoveries are cut as well.
//!
//! `AVOCET_CRASH_CUTS` says how many disks to recover from; `AVOCET_CRASH_SEED` with which workload to begin. A failure
//! says which workload, cut and disk it was.

mod workload;

use std::sync::atomic::{AtomicU64, Ordering};

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use workload::{Outcome, Random, Run, State, Step, contents, options, steps};

/// Steps of a workload.
const STEPS: usize = 40;
/// Cuts of a workload that a short run tries.
const CUTS: u64 = 12;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// What becomes of what was not synced: nothing is kept, everything, the first of it, or each piece by chance, torn or not.
fn fates(random: &mut Random) -> [u64; 5] {
    let mut seed = || random.below(1 << 40) + 1;
    [0, 1, seed() * 2, seed() * 4 + 1, seed() * 4 + 3]
}

/// What may be there after some steps, or as much of them as there is power for: if there is none even for opening, what
/// was possible before.
fn run(disk: &SimDisk, state: State, before: &[State], steps: &[Step]) -> Vec<State> {
    let Ok(run) = Run::open(disk, state) else { return before.to_vec() };
    let Outcome { possible, .. } = run.run(steps);
    possible
}

/// Recovers from a disk. What is there is one of what may be there.
fn recovers(disk: &SimDisk, possible: &[State], what: &str) -> State {
    let report = check(options(&disk.kill())).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(report.findings, Vec::<String>::new(), "{what}");
    let engine = Engine::open(options(disk)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let there = contents(&engine).unwrap_or_else(|e| panic!("{what}: {e}"));
    if !possible.contains(&there) {
        let wanted = possible.first().expect("at least one");
        panic!("{what}: there is\n{there:?}\nand not one of {}, as\n{wanted:?}", possible.len());
    }
    there
}

/// The recovery and what follows it are cut, too.
fn recovers_again(disk: &SimDisk, possible: &[State], steps: &[Step], random: &mut Random, what: &str) {
    let there = recovers(&disk.kill(), possible, what);
    let again = disk.kill();
    again.cut_at_sync(1 + random.below(12));
    let after = run(&again, there, possible, steps);
    for fate in fates(random) {
        recovers(&again.crash(fate), &after, &format!("{what}, again, disk {fate}"));
    }
}

/// Some or all cuts of one workload; returns how many disks were recovered from.
fn cut_everywhere(seed: u64, most: u64) -> u64 {
    let script = steps(seed, STEPS, 0);
    let whole = SimDisk::new();
    let mut run_whole = Run::open(&whole, State::new()).expect("opens");
    for (n, step) in script.iter().enumerate() {
        assert!(run_whole.step(step).is_none(), "workload {seed}, step {n}: nothing stops it");
        run_whole.check(&format!("workload {seed} after step {n}, {step:?}"));
    }
    drop(run_whole);
    let mut random = Random(seed);
    let mut disks = 0;
    let stride = (whole.syncs() / most).max(1);
    let first = 1 + random.below(stride);
    for cut in (first..=whole.syncs()).step_by(stride as usize) {
        let disk = SimDisk::new();
        disk.cut_at_sync(cut);
        let possible = run(&disk, State::new(), &[State::new()], &script);
        let more = |fate| steps(fate, 10, 1 << 20).split_off(3);
        for fate in fates(&mut random) {
            let what = format!("workload {seed}, cut {cut}, disk {fate}");
            let after = disk.crash(fate);
            match random.below(5) {
                0 => recovers_again(&after, &possible, &more(fate), &mut random, &what),
                _ => drop(recovers(&after, &possible, &what)),
            }
            disks += 1;
        }
        // Only the process ended: the next one finds more than is durable, and then the power goes.
        if random.below(4) == 0 {
            let what = format!("workload {seed}, cut {cut}, killed");
            recovers_again(&disk.kill(), &possible, &more(cut), &mut random, &what);
            disks += 1;
        }
    }
    disks
}

#[test]
fn every_cut_leaves_what_was_acknowledged_and_nothing_in_part() {
    let wanted = from_environment("AVOCET_CRASH_CUTS", 400);
    let most = if wanted > 1000 { u64::MAX } else { CUTS };
    let next = AtomicU64::new(from_environment("AVOCET_CRASH_SEED", 1));
    let done = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < wanted {
                    let disks = cut_everywhere(next.fetch_add(1, Ordering::Relaxed), most);
                    done.fetch_add(disks, Ordering::Relaxed);
                }
            });
        }
    });
    println!("{} disks, the last workload was {}", done.into_inner(), next.into_inner() - 1);
}

/// The disk forgets nothing when only the process ends, at whatever sync it is.
#[test]
fn a_kill_at_any_sync_keeps_everything_that_was_written() {
    for seed in 500..504 {
        let script = steps(seed, STEPS, 0);
        let disk = SimDisk::new();
        disk.cut_at_sync(10 + seed % 40);
        let possible = run(&disk, State::new(), &[State::new()], &script);
        recovers(&disk.kill(), &possible, &format!("workload {seed}, killed"));
    }
}

/// A directory is made by several starts, each of which ends at some sync: a kill, which leaves what was written and not synced to
/// the next, and then power loss, which does not.
#[test]
fn first_starts_may_end_at_any_sync() {
    let opens = |disk: &SimDisk, what: &str| {
        Engine::open(options(disk)).unwrap_or_else(|e| panic!("{what}: {e}"));
    };
    let whole = SimDisk::new();
    opens(&whole, "nothing stops it");
    for killed in 1..=whole.syncs() {
        let first = SimDisk::new();
        first.cut_at_sync(killed);
        drop(Engine::open(options(&first)));
        for cut in 1..=whole.syncs() + 2 {
            let second = first.kill();
            second.cut_at_sync(cut);
            drop(Engine::open(options(&second)));
            for fate in [0, 1, 2 * cut, 4 * cut + 1, 4 * cut + 3] {
                opens(&second.crash(fate), &format!("killed at {killed}, cut at {cut}, disk {fate}"));
            }
        }
    }
}
