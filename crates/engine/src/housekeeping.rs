//! Background threads: one collects old versions, one freezes, compacts and checkpoints.
//!
//! While transactions commit, they collect: on the processor that has the versions in its cache, and a little each. The
//! collecting thread sees to what stays behind.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::engine::{Engine, FreezePolicy, Housekeeping};
use crate::pace::Pacer;

/// Commits that are older than this by the clock are collected in the background.
const COLLECT_EVERY: Duration = Duration::from_millis(50);
const MAINTAIN_EVERY: Duration = Duration::from_millis(1000);

pub(crate) fn start(engine: &Arc<Engine>) {
    let mut threads = engine.housekeeping().threads.lock();
    let house = engine.housekeeping();
    threads.push(spawn("avocet-collect", house.clone(), Arc::downgrade(engine), COLLECT_EVERY, |engine| {
        engine.collect_stragglers();
        // Here, as maintenance takes its time.
        if let Err(e) = engine.check_directory() {
            engine.stop(&e);
        }
    }));
    threads.push(spawn("avocet-maintain", house.clone(), Arc::downgrade(engine), MAINTAIN_EVERY, maintain));
}

fn spawn(
    name: &str,
    house: Arc<Housekeeping>,
    engine: Weak<Engine>,
    every: Duration,
    work: impl Fn(&Arc<Engine>) + Send + 'static,
) -> std::thread::JoinHandle<()> {
    // The engine is held for the work alone: two threads that held it while they wait would never both let go of it.
    let run = move || {
        loop {
            let mut ending = house.ending.lock();
            if !*ending {
                house.wake.wait_for(&mut ending, every);
            }
            if *ending {
                return;
            }
            drop(ending);
            let Some(engine) = engine.upgrade() else { return };
            work(&engine);
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(run).expect("the system can start a thread")
}

fn maintain(engine: &Arc<Engine>) {
    if engine.check_running().is_err() {
        return;
    }
    engine.free_version_vectors();
    let outcome = (|| {
        engine.watch_memory()?;
        if engine.options.freeze != FreezePolicy::Never {
            engine.freeze_cool_segments(&mut Pacer::background(engine))?;
        }
        if engine.log_since_checkpoint() >= engine.options.checkpoint_log_bytes {
            engine.checkpoint_at(Pacer::background(engine))?;
        }
        Ok(())
    })();
    if let Err(e) = outcome {
        engine.note_maintenance_error(&e);
    }
}

/// Ends the threads and waits for them.
pub(crate) fn end(engine: &Engine) {
    *engine.housekeeping().ending.lock() = true;
    engine.housekeeping().wake.notify_all();
    let this = std::thread::current().id();
    for thread in engine.housekeeping().threads.lock().drain(..) {
        // The last reference may be dropped by one of the threads itself.
        if thread.thread().id() != this {
            let _ = thread.join();
        }
    }
}
