//! The commit pipeline under shuttle: the log writer with its threads, and the engine's pipeline and snapshots, are
//! compiled a second time here, over shuttle's threads, on a simulated disk. Threads commit, wait, look and truncate while
//! the disk is slow, fails, fills up or loses power; at any moment what is visible and what was acknowledged must be where
//! it was promised to be, and nobody waits for ever (shuttle fails a schedule in which all do).
//!
//! A rule is broken on purpose, one at a time, and must be missed. `AVOCET_MODEL_SCALE` asks for more schedules.

#![allow(dead_code, reason = "the model uses a part of the log")]
#![allow(
    clippy::useless_conversion,
    clippy::needless_question_mark,
    reason = "the pipeline's error is the log's here"
)]

// The pipeline calls the log by its crate's name.
extern crate self as avocet_log;

#[path = "../../src/commit.rs"]
mod commit;
mod disk;
#[path = "../../../log/src/error.rs"]
mod error;
#[path = "../../../storage/src/index/model/explore.rs"]
mod explore;
#[path = "../../../log/src/follower.rs"]
mod follower;
#[path = "../../../log/src/frame.rs"]
mod frame;
#[path = "../../../log/src/intake.rs"]
mod intake;
#[path = "../../../log/src/maker.rs"]
mod maker;
#[path = "../../../log/src/options.rs"]
mod options;
#[path = "../../../log/src/packed.rs"]
mod packed;
#[path = "../../../log/src/pool.rs"]
mod pool;
#[path = "../../../log/src/reader.rs"]
mod reader;
#[path = "../../../log/src/repair.rs"]
mod repair;
#[path = "../../../log/src/segment.rs"]
mod segment;
#[path = "../../../log/src/slots.rs"]
mod slots;
#[path = "../../src/snapshots.rs"]
mod snapshots;
#[path = "../../../log/src/stats.rs"]
mod stats;
mod sync;
#[path = "../../../log/src/thread.rs"]
mod thread;
#[path = "../../../log/src/wait.rs"]
mod wait;
mod world;
#[path = "../../../log/src/writer.rs"]
mod writer;

/// Serializable transactions have a test of their own.
mod serial {
    pub struct Serial;

    impl Serial {
        pub fn enter(&self, _last: avocet_base::Timestamp) {}
    }
}

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::{DiskError, DiskOp};
pub use error::{Error, ErrorKind};
use explore::{below, explore, schedules_until_failure};
pub use frame::{MAX_KIND, Record};
pub use options::Durability;
pub use reader::LogReader;
pub use wait::Durable;
use world::{Setup, World};
pub use writer::LogWriter;

/// A rule that the model breaks, to see whether it notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// What was synced is on disk.
    SyncBeforeTelling,
    /// A transaction's state is set before its record can become durable.
    CommitBeforeLogged,
    /// Snapshots have only what is durable, or written if that was all it asked for.
    ShowWhatIsDurable,
    /// What asks for a sync is synced.
    SyncWhatAsks,
    /// Who has work for a thread wakes it.
    WakeOne,
    /// Who makes room, or ends it all, wakes those who wait.
    WakeAll,
}

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

pub fn breaks(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}

fn some_durability() -> Durability {
    match below(5) {
        0 | 1 => Durability::Sync,
        2 => Durability::Group(Duration::from_millis(below(3) as u64)),
        _ => Durability::Os,
    }
}

/// Waits for a ticket in one of the ways there are.
fn wait(world: &World, ticket: commit::CommitTicket, durability: Durability) -> Result<(), Error> {
    match below(4) {
        0 => shuttle::future::block_on(ticket),
        1 => {
            let ts = ticket.timestamp();
            drop(ticket);
            world.pipeline.all_so_far(ts, durability).wait()
        }
        _ => ticket.wait(),
    }
}

/// Commits a few times, as long as the log does. The disk may refuse a record for want of room.
fn commit_some(world: &World, times: usize) -> Result<(), Error> {
    for _ in 0..times {
        let durability = some_durability();
        let ticket = match world.commit(below(1500), durability) {
            Ok(ticket) => ticket,
            Err(error) if error.kind() == ErrorKind::NoSpace && !matches!(error, Error::Stopped(_)) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        if below(4) > 0 {
            let ts = ticket.timestamp();
            let waited = wait(world, ticket, durability);
            assert!(
                !matches!(waited, Err(Error::Closed)),
                "what was accepted is written before the log closes"
            );
            waited?;
            world.acknowledge(ts);
        }
    }
    Ok(())
}

/// Threads that commit beside one that looks; what became of each that committed.
fn run_threads(world: &Arc<World>, beside: impl FnOnce(&World) + Send + 'static) -> Vec<Result<(), Error>> {
    let committers: Vec<_> = (0..1 + below(3))
        .map(|_| {
            let world = world.clone();
            shuttle::thread::spawn(move || commit_some(&world, 1 + below(3)))
        })
        .collect();
    let looker = {
        let world = world.clone();
        shuttle::thread::spawn(move || {
            for _ in 0..4 {
                world.look();
                shuttle::thread::yield_now();
            }
            beside(&world);
        })
    };
    let outcomes = committers.into_iter().map(|thread| thread.join().expect("no panics")).collect();
    looker.join().expect("no panics");
    outcomes
}

/// Nothing fails: all that is accepted is acknowledged, and all of it visible in the end.
fn commits_come_through() {
    let world = World::new(Setup::default());
    let outcomes = run_threads(&world, World::lose_power);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    world.log.flush().expect("nothing fails");
    world.look();
    assert_eq!(world.snapshots.visible().0, world.accepted(), "all that was logged is visible");
    world.finish().expect("nothing fails");
}

#[test]
fn what_is_acknowledged_is_kept_and_visible() {
    explore(10_000, commits_come_through);
}

/// Segments are given up while others are filled and new ones made.
#[test]
fn truncation_takes_nothing_that_is_needed() {
    explore(6_000, || {
        let world = World::new(Setup { max_pending: 2 << 10, ..Setup::default() });
        let outcomes = run_threads(&world, |world| {
            world.truncate().expect("nothing fails");
            world.lose_power();
            world.truncate().expect("nothing fails");
        });
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        world.log.flush().expect("nothing fails");
        assert_eq!(world.snapshots.visible().0, world.accepted());
        world.finish().expect("nothing fails");
    });
}

/// After a call of the disk has failed, everybody hears of it, and nothing that was acknowledged is lost.
#[test]
fn a_failed_disk_ends_all_waiting() {
    explore(10_000, || {
        // Hardly two records fit: somebody always waits for room.
        let world = World::new(Setup { max_pending: 1 << 10, ..Setup::default() });
        let op = [DiskOp::Write, DiskOp::Sync, DiskOp::SyncDir, DiskOp::Rename, DiskOp::Create][below(5)];
        world.disk.fail(op, 1 + below(6) as u64, DiskError::Io);
        let outcomes = run_threads(&world, World::lose_power);
        let failed = outcomes.iter().any(Result::is_err);
        if world.log.failure().is_some() {
            assert!(world.commit(10, Durability::Sync).is_err(), "nothing is accepted after a failure");
        } else if !failed {
            let _ = world.log.flush();
        }
        world.look();
        let _ = world.finish();
    });
}

/// A disk without room refuses records; when the log is truncated there is room again.
#[test]
fn a_full_disk_refuses_and_goes_on() {
    explore(6_000, || {
        let world = World::new(Setup::default());
        world.disk.set_capacity(Some((8 << 10) * (1 + below(3) as u64)));
        let outcomes =
            run_threads(&world, |world| world.truncate().expect("nothing fails but for want of room"));
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        world.log.flush().expect("what was accepted has its room");
        assert_eq!(world.snapshots.visible().0, world.accepted());
        world.finish().expect("a full disk does not stop the log");
    });
}

/// Closing writes what was accepted; who comes later is refused.
#[test]
fn a_closed_log_has_all_that_it_accepted() {
    explore(6_000, || {
        let world = World::new(Setup::default());
        let outcomes = run_threads(&world, |world| world.log.close().expect("nothing fails"));
        let closed = |outcome: &Result<(), Error>| matches!(outcome, Ok(()) | Err(Error::Closed));
        assert!(outcomes.iter().all(closed), "{outcomes:?}");
        assert!(matches!(world.commit(10, Durability::Sync), Err(Error::Closed)));
        assert_eq!(world.snapshots.visible().0, world.accepted(), "what was accepted was written");
        world.finish().expect("nothing fails");
    });
}

#[test]
fn every_broken_rule_is_missed() {
    use Rule::*;
    for rule in [SyncBeforeTelling, CommitBeforeLogged, ShowWhatIsDurable, SyncWhatAsks, WakeOne, WakeAll] {
        let needed = schedules_until_failure(20_000, move || {
            BROKEN.set(Some(rule));
            commits_come_through();
        });
        BROKEN.set(None);
        sync::end();
        assert!(needed.is_some(), "nobody misses {rule:?}");
        eprintln!("{rule:?}: missed within {} schedules", needed.unwrap_or_default());
    }
}
