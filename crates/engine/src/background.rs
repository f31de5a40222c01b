//! Background threads: one collects old versions, one freezes, compacts and checkpoints, one looks after memory.
//!
//! Memory has a thread of its own, since writers may have to wait for it: no checkpoint comes before it. What fails is
//! reported, and ends neither the other work of a round nor that on other tables.
//!
//! While transactions commit, they collect: on the processor that has the versions in its cache, and a little each. The
//! collecting thread sees to what stays behind.

mod relief;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::engine::{Engine, FreezePolicy};
use crate::pace::{Pacer, Pacing, log_urgency};
use crate::signals::Signals;

/// Commits that are older than this by the clock are collected in the background.
const COLLECT_EVERY: Duration = Duration::from_millis(50);
const MAINTAIN_EVERY: Duration = Duration::from_millis(1000);

pub(crate) fn start(engine: &Arc<Engine>) {
    let mut threads = engine.signals.threads.lock();
    let signals = engine.signals.clone();
    threads.push(spawn("avocet-collect", signals.clone(), Arc::downgrade(engine), COLLECT_EVERY, |engine| {
        engine.collector().collect_stragglers(engine.pipeline.last_logged());
        // Here, as maintenance takes its time.
        engine.check_directory();
    }));
    let engine_of_relief = Arc::downgrade(engine);
    threads.push(start_thread("avocet-memory", {
        let signals = signals.clone();
        move || {
            let _end = StopOnPanic { thread: "avocet-memory", engine: engine_of_relief.clone() };
            relieve(&signals, &engine_of_relief);
        }
    }));
    threads.push(spawn("avocet-maintain", signals.clone(), Arc::downgrade(engine), MAINTAIN_EVERY, maintain));
}

/// Without one of these threads memory and the log grow without a bound: better that nobody writes any more, and is told why.
struct StopOnPanic {
    thread: &'static str,
    engine: Weak<Engine>,
}

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(engine) = self.engine.upgrade()
        {
            engine.health.stop_for(format!("its thread {} has panicked", self.thread));
        }
    }
}

fn spawn(
    name: &'static str,
    signals: Arc<Signals>,
    engine: Weak<Engine>,
    every: Duration,
    work: impl Fn(&Arc<Engine>) + Send + 'static,
) -> std::thread::JoinHandle<()> {
    // The engine is held for the work alone: two threads that held it while they wait would never both let go of it.
    let run = move || {
        let _end = StopOnPanic { thread: name, engine: engine.clone() };
        loop {
            let mut ending = signals.ending.lock();
            if !*ending {
                signals.wake.wait_for(&mut ending, every);
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
fn relieve(signals: &Signals, engine: &Weak<Engine>) {
    loop {
        let mut ending = signals.ending.lock();
        if !*ending && !signals.relief_wanted.swap(false, Relaxed) {
            signals.relief.wait_for(&mut ending, MAINTAIN_EVERY);
        }
        if *ending {
            return;
        }
        drop(ending);
        signals.relief_wanted.store(false, Relaxed);
        let Some(engine) = engine.upgrade() else { return };
        if engine.health.check().is_ok() {
            engine.watch_memory();
        }
    }
}

fn maintain(engine: &Arc<Engine>) {
    if engine.health.check().is_err() {
        return;
    }
    engine.collector().free_version_vectors();
    if engine.options.freeze != FreezePolicy::Never {
        engine.freezer().freeze_cool(&mut pacer(engine));
    }
    if engine.log_since_checkpoint() >= engine.options.checkpoint_log_bytes
        && let Err(e) = engine.checkpointer().checkpoint(pacer(engine))
    {
        engine.health.note_background_error(&e);
    }
}

/// The pace of the calling thread's work, for which it alone holds the engine if nobody else does.
fn pacer(engine: &Arc<Engine>) -> Pacer<'_> {
    let urgency = || {
        // Nobody but this thread holds the engine, which ends when the work does.
        let deserted = Arc::strong_count(engine) == 1;
        if engine.signals.is_ending() || deserted || engine.memory.is_short() {
            return 1.0;
        }
        log_urgency(engine.log_since_checkpoint(), engine.options.checkpoint_log_bytes)
    };
    Pacer::background(Pacing {
        counters: &engine.pace,
        bytes_per_second: engine.options.background_bytes_per_second,
        clock: &*engine.options.env.clock,
        signals: &engine.signals,
        urgency: Box::new(urgency),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use avocet_base::Env;
    use avocet_base::env::sim::SimDisk;

    use super::*;
    use crate::engine::EngineOptions;

    #[test]
    fn a_thread_that_panics_stops_the_engine() {
        let env = Env { disk: Arc::new(SimDisk::new()), ..Env::os() };
        let options = EngineOptions { env, background: false, ..EngineOptions::new("/data") };
        let engine = Engine::open(options).expect("it opens");
        let every = Duration::from_millis(1);
        let thread = spawn("avocet-maintain", engine.signals.clone(), Arc::downgrade(&engine), every, |_| {
            panic!("a test's")
        });
        assert!(thread.join().is_err());
        let since = Instant::now();
        while engine.health.check().is_ok() {
            assert!(since.elapsed() < Duration::from_secs(10));
        }
        assert!(engine.health.check().is_err_and(|error| error.to_string().contains("avocet-maintain")));
    }
}
