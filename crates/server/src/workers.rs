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

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Runtime};

/// The stack of a thread: statements are bound and planned there, as deep as the parser lets them be. Of what it does not use,
/// nothing but addresses is taken.
const STACK: usize = 16 << 20;

/// One thread and how many connections it has.
struct Worker {
    runtime: Runtime,
    connections: Arc<AtomicUsize>,
}

/// All of them; the threads end when this is dropped.
pub(crate) struct Workers(Vec<Worker>);

/// A connection's place on a worker.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// Starts so many threads, at least one.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let worker = |number| {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name(format!("avocet-conn-{number}"))
                .thread_stack_size(STACK)
                .enable_all()
                .build()?;
            Ok(Worker { runtime, connections: Arc::default() })
        };
        (0..count.max(1)).map(worker).collect::<io::Result<_>>().map(Self)
    }

    /// Runs a connection to its end on the thread that has the fewest.
    pub(crate) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let idlest = self.0.iter().min_by_key(|worker| worker.connections.load(Ordering::Relaxed));
        let worker = idlest.expect("there is at least one worker");
        worker.connections.fetch_add(1, Ordering::Relaxed);
        let place = Place(worker.connections.clone());
        worker.runtime.spawn(async move {
            // Given up when the future ends or is dropped.
            let _place = place;
            connection.await;
        });
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // A runtime that is merely dropped waits for its threads, which an async function must not.
        self.0.drain(..).for_each(|worker| worker.runtime.shutdown_background());
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
        workers.spawn(async move {
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
        let left = || -> usize { workers.0.iter().map(|w| w.connections.load(Ordering::Relaxed)).sum() };
        while left() > 2 {
            thread::yield_now();
        }
    }
}
