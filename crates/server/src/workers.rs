//! The threads that connections live on: one for each processor, each with a runtime, an event queue and connections of its own.
//!
//! A statement of the point path takes a few microseconds, less than waking another thread. Among threads that share their
//! work, every batch of commands that arrives, and every group of commits that gets durable, would wake another thread to
//! steal from the first; here, whoever is woken finds all of its own work and does it. The price: connections do not move,
//! so two busy ones may share a thread while another has none. New ones go where the fewest are.
//!
//! `docs/decisions/0009-connections-stay-on-a-thread.md` has the figures.
//!
//! A statement that blocks (for a row lock, say) hands its thread's other connections to a spare thread meanwhile
//! (`block_in_place`), which is why these are runtimes of one worker rather than of the current thread; queries run on
//! threads of their own.
//!
//! Every worker has a heart, a task that notes the time. Where it stands still, a statement holds the thread: the watchdog says
//! which, and new connections go to other workers, or to a new one if none is left.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::runtime::{Builder, Runtime};

use crate::registry::Registry;

/// The stack of a thread: statements are bound and planned there, as deep as the parser lets them be. Of what it does not use,
/// nothing but addresses is taken.
const STACK: usize = 16 << 20;

/// Each connection may block a thread of its own, however many there may be (`max_connections` is 100,000 at most). Threads come
/// when they are needed and go after ten idle seconds.
const MOST_BLOCKED: usize = 100_512;

const BEAT: Duration = Duration::from_millis(50);
/// A worker whose heart stands still for so long gets no new connections.
const SLOW: Duration = Duration::from_millis(250);
/// After so long, the statement that holds it is named.
const HELD: Duration = Duration::from_secs(1);
const WATCH_EVERY: Duration = Duration::from_millis(200);
/// So many workers may come to those that there were, for connections that would find all of them held.
const MOST_SPARES: usize = 16;

/// One thread and its connections.
struct Worker {
    runtime: Runtime,
    life: Arc<Life>,
}

/// What others see of a worker.
#[derive(Default)]
struct Life {
    connections: AtomicUsize,
    /// When its heart beat last, in milliseconds since the workers were started.
    beat_ms: AtomicU64,
    /// The connection that runs on its thread, or ran last; 0 if none does.
    runs: AtomicU32,
}

/// All of them; the threads end when this is dropped.
pub(crate) struct Workers {
    all: RwLock<Vec<Worker>>,
    began: Instant,
    most: usize,
    stop: Arc<AtomicBool>,
}

/// A connection's place on a worker.
struct Place(Arc<Life>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Worker {
    fn start(number: usize, began: Instant) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(MOST_BLOCKED)
            .thread_name(format!("avocet-conn-{number}"))
            .thread_stack_size(STACK)
            .enable_all()
            .build()?;
        let life = Arc::new(Life::default());
        life.beat(began);
        let heart = life.clone();
        runtime.spawn(async move {
            loop {
                heart.beat(began);
                tokio::time::sleep(BEAT).await;
            }
        });
        Ok(Self { runtime, life })
    }
}

impl Life {
    fn beat(&self, began: Instant) {
        self.beat_ms.store(began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// For how long its heart has stood still.
    fn silence(&self, began: Instant) -> Duration {
        let beat = Duration::from_millis(self.beat_ms.load(Ordering::Relaxed));
        began.elapsed().saturating_sub(beat)
    }
}

impl Workers {
    /// Starts so many threads, at least one.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let (count, began) = (count.max(1), Instant::now());
        let all: Vec<_> = (0..count).map(|number| Worker::start(number, began)).collect::<io::Result<_>>()?;
        Ok(Self { all: RwLock::new(all), began, most: count + MOST_SPARES, stop: Arc::default() })
    }

    /// Starts the watchdog. `fatal_after`: a statement that holds its thread for so long ends the process (for tests).
    pub(crate) fn watch(
        self: &Arc<Self>,
        registry: Arc<Registry>,
        fatal_after: Option<Duration>,
    ) -> io::Result<()> {
        let (workers, stop) = (Arc::downgrade(self), self.stop.clone());
        let watch = move || {
            let mut held = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(WATCH_EVERY);
                let Some(workers) = workers.upgrade() else { return };
                workers.look(&registry, &mut held, fatal_after);
            }
        };
        thread::Builder::new().name("avocet-watchdog".into()).spawn(watch).map(drop)
    }

    /// `held`: of each worker, the connection that was found to hold it.
    fn look(&self, registry: &Registry, held: &mut Vec<Option<u32>>, fatal_after: Option<Duration>) {
        let all = self.all.read();
        held.resize(all.len(), None);
        for (worker, held) in all.iter().zip(held) {
            let silence = worker.life.silence(self.began);
            if silence < HELD {
                if let Some(connection) = held.take() {
                    registry.note_released_thread(connection);
                }
                continue;
            }
            let connection = worker.life.runs.load(Ordering::Relaxed);
            if held.is_none() {
                *held = Some(connection);
                let (statement, seconds) = registry.note_held_thread(connection).unwrap_or_default();
                tracing::warn!(connection, seconds, statement, "holds its thread: other connections wait");
            }
            if fatal_after.is_some_and(|limit| silence >= limit) {
                tracing::error!(connection, ?silence, "has held its thread for too long");
                std::process::abort();
            }
        }
    }

    /// Runs a connection to its end on the thread that has the fewest, of those that nobody holds.
    pub(crate) fn spawn(&self, id: u32, connection: impl Future<Output = ()> + Send + 'static) {
        let all = self.all.read();
        let connections = |worker: &&Worker| worker.life.connections.load(Ordering::Relaxed);
        let free = all.iter().filter(|worker| worker.life.silence(self.began) < SLOW).min_by_key(connections);
        if let Some(worker) = free {
            return worker.run(id, connection);
        }
        let is_held = all.iter().all(|worker| worker.life.silence(self.began) >= HELD);
        let count = all.len();
        if !is_held || count >= self.most {
            let idlest = all.iter().min_by_key(connections);
            return idlest.expect("there is at least one worker").run(id, connection);
        }
        drop(all);
        match Worker::start(count, self.began) {
            Ok(worker) => {
                worker.run(id, connection);
                self.all.write().push(worker);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot start another thread for connections");
                self.all.read()[0].run(id, connection);
            }
        }
    }
}

impl Worker {
    fn run(&self, id: u32, connection: impl Future<Output = ()> + Send + 'static) {
        let life = self.life.clone();
        life.connections.fetch_add(1, Ordering::Relaxed);
        let place = Place(life.clone());
        self.runtime.spawn(async move {
            // Given up when the future ends or is dropped.
            let _place = place;
            let mut connection = pin!(connection);
            poll_fn(|cx| {
                life.runs.store(id, Ordering::Relaxed);
                let polled = connection.as_mut().poll(cx);
                life.runs.store(0, Ordering::Relaxed);
                polled
            })
            .await;
        });
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A runtime that is merely dropped waits for its threads, which an async function must not.
        self.all.get_mut().drain(..).for_each(|worker| worker.runtime.shutdown_background());
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::sync::oneshot;

    use super::*;

    /// Starts a connection; the thread that it runs on, and what ends it.
    fn connect(workers: &Workers) -> (thread::ThreadId, oneshot::Sender<()>) {
        let (end, ended) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        workers.spawn(1, async move {
            tell.send(thread::current().id()).expect("the test listens");
            let _ = ended.await;
        });
        (told.recv().expect("it runs"), end)
    }

    #[test]
    fn connections_spread_over_the_threads_and_places_are_given_up() {
        let workers = Workers::start(2).expect("threads");
        let (first, end_first) = connect(&workers);
        let (second, _second) = connect(&workers);
        assert_ne!(first, second);
        let (_, _third) = connect(&workers);
        drop(end_first);
        let left = || -> usize {
            workers.all.read().iter().map(|w| w.life.connections.load(Ordering::Relaxed)).sum()
        };
        while left() > 2 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_held_thread_is_noticed_and_new_connections_go_elsewhere() {
        let workers = Arc::new(Workers::start(1).expect("threads"));
        let registry = Arc::new(Registry::default());
        workers.watch(registry.clone(), None).expect("a watchdog");
        let entry = registry.enter("a:1".into()).expect("room");
        let id = entry.id;
        entry.begin(crate::registry::Activity::Query, b"SELECT busy");
        let (release, released) = std::sync::mpsc::channel::<()>();
        workers.spawn(id, async move {
            // Not handed over: that is what is wrong here.
            let _ = released.recv();
            drop(entry);
        });
        let until = |what: &str, condition: &dyn Fn() -> bool| {
            let end = Instant::now() + Duration::from_secs(20);
            while !condition() {
                assert!(Instant::now() < end, "{what}");
                thread::sleep(Duration::from_millis(5));
            }
        };
        let is_named = || {
            use avocet_session::api::Connections;
            registry.list().iter().any(|row| row.id == id && row.state == "holding its thread")
        };
        until("it is named", &is_named);
        assert_eq!(avocet_session::api::Connections::held_threads(&*registry), 1);
        let (tell, told) = std::sync::mpsc::channel();
        workers.spawn(7, async move { tell.send(()).expect("the test listens") });
        told.recv_timeout(Duration::from_secs(10)).expect("it runs on another thread");
        release.send(()).expect("it waits");
        until("it goes on", &|| registry.count() == 0);
    }
}
