//! Background threads: one collects old versions, one freezes, compacts and checkpoints, one looks after memory.
//!
//! Memory has a thread of its own, since writers may have to wait for it: no checkpoint comes before it. What fails is
//! reported, and ends neither the other work of a round nor that on other tables.
//!
//! While transactions commit, they collect: on the processor that has the versions in its cache, and a little each. The
//! collecting thread sees to what stays behind.

use std::sync::atomic::Ordering::Relaxed;
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
    let engine_of_relief = Arc::downgrade(engine);
    threads.push(start_thread("avocet-memory", {
        let house = house.clone();
        move || relieve(&house, &engine_of_relief)
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
    start_thread(name, run)
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::Builder::new().name(name.into()).spawn(run).expect("the system can start a thread")
}

/// Frees memory, each second and when writers ask for it.
fn relieve(house: &Housekeeping, engine: &Weak<Engine>) {
    loop {
        let mut ending = house.ending.lock();
        if !*ending && !house.relief_wanted.swap(false, Relaxed) {
            house.relief.wait_for(&mut ending, MAINTAIN_EVERY);
        }
        if *ending {
            return;
        }
        drop(ending);
        house.relief_wanted.store(false, Relaxed);
        let Some(engine) = engine.upgrade() else { return };
        if engine.check_running().is_ok() {
            engine.watch_memory();
        }
    }
}

impl Housekeeping {
    /// Has memory looked after at once.
    pub fn ask_for_relief(&self) {
        if !self.relief_wanted.swap(true, Relaxed) {
            let _ending = self.ending.lock();
            self.relief.notify_one();
        }
    }
}

fn maintain(engine: &Arc<Engine>) {
    if engine.check_running().is_err() {
        return;
    }
    engine.free_version_vectors();
    if engine.options.freeze != FreezePolicy::Never {
        engine.freeze_cool_segments(&mut Pacer::background(engine));
    }
    if engine.log_since_checkpoint() >= engine.options.checkpoint_log_bytes
        && let Err(e) = engine.checkpoint_at(Pacer::background(engine))
    {
        engine.note_maintenance_error(&e);
    }
}

/// Ends the threads and waits for them.
pub(crate) fn end(engine: &Engine) {
    *engine.housekeeping().ending.lock() = true;
    engine.housekeeping().wake.notify_all();
    engine.housekeeping().relief.notify_all();
    let this = std::thread::current().id();
    for thread in engine.housekeeping().threads.lock().drain(..) {
        // The last reference may be dropped by one of the threads itself.
        if thread.thread().id() != this {
            let _ = thread.join();
        }
    }
}
