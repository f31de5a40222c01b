//! Metadata locks: transactions that use a table hold it shared until they end; DDL holds it exclusive. LOCK TABLES holds it
//! as DDL does (WRITE), or beside those who only read (READ), beyond transactions (`table_locks.rs`).
//!
//! ```text
//!  transaction ──waits for──▶ DDL that has the table, or waits for it      (newcomers queue behind DDL)
//!  DDL ──────────waits for──▶ transactions that use one of its tables
//!  first change ─waits for──▶ whoever has the table READ, or waits for that
//!  READ ─────────waits for──▶ transactions that have changed the table; DDL that has it, not DDL that waits
//! ```
//!
//! Whoever holds some of these locks while it waits for another one, and is no transaction, takes them in the order of the
//! tables' ids: these are in no circle with each other.
//!
//! Whoever uses a table without conflict only counts up a number; nobody knows who it is. Everybody in a cycle waits, so it is
//! enough that those who wait say what they hold ([`MetadataWaits`]): whoever begins to wait looks for a way back to itself.
//! The victim is a transaction, which can be begun anew, never the DDL, as in MySQL (Reference Manual, 10.11.4 "Metadata
//! Locking"). Cycles that lead over row locks as well are not looked for, as MySQL does not: they end when the first wait in
//! them does, one for a row after `innodb_lock_wait_timeout`, one for a definition after `lock_wait_timeout`.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{EngineError, Result};

/// How often a waiter asks whether it was interrupted, or chosen as a victim.
const ASK_EVERY: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    shared: u32,
    exclusive: bool,
    /// DDL that waits; newcomers queue behind it, so that it gets its turn.
    waiting: u32,
    /// Those who have it READ.
    readers: u32,
    /// One of these wants to have it alone.
    upgrades: bool,
}

#[derive(Default)]
pub(crate) struct MetadataLock {
    state: Mutex<State>,
    changed: Condvar,
    /// Transactions that have changed the table, or are about to. These add themselves before they look at `no_writers`, and
    /// who wants it READ adds itself there before it looks at this: one of them sees the other.
    writers: AtomicU32,
    /// Those who have it READ, or wait for that.
    no_writers: AtomicU32,
}

impl State {
    /// Whether DDL has it, or is to have it next.
    fn is_taken(&self) -> bool {
        self.exclusive || self.waiting > 0
    }

    fn is_in_use(&self) -> bool {
        self.exclusive || self.shared > 0 || self.readers > 0
    }
}

/// How long somebody waits, and what ends it before.
pub(crate) struct Patience<'p> {
    pub deadline: Instant,
    pub interrupted: &'p dyn Fn() -> bool,
}

impl MetadataLock {
    pub fn new() -> Self {
        Self::default()
    }

    /// By its place in memory, for as long as somebody has it.
    fn id(self: &Arc<Self>) -> LockId {
        LockId(Arc::as_ptr(self) as usize)
    }

    /// False if DDL has the lock, or waits for it.
    pub fn try_lock_shared(&self) -> bool {
        let mut state = self.state.lock();
        let free = !state.is_taken();
        state.shared += u32::from(free);
        free
    }

    /// For whoever has the table by LOCK TABLES.
    pub fn lock_shared_as_holder(&self) {
        self.state.lock().shared += 1;
    }

    /// A transaction that holds the table is about to change it for the first time. False if it must wait.
    #[inline]
    pub fn try_begin_write(&self) -> bool {
        self.try_begin_write_beside(0)
    }

    /// As [`Self::try_begin_write`], for whoever has it READ itself, `own` times.
    #[inline]
    pub fn try_begin_write_beside(&self, own: u32) -> bool {
        self.writers.fetch_add(1, SeqCst);
        if self.no_writers.load(SeqCst) <= own {
            return true;
        }
        self.end_write();
        false
    }

    /// For whoever has the table WRITE.
    pub fn begin_write_as_holder(&self) {
        self.writers.fetch_add(1, SeqCst);
    }

    #[inline]
    pub fn end_write(&self) {
        self.writers.fetch_sub(1, SeqCst);
        if self.no_writers.load(SeqCst) > 0 {
            self.tell();
        }
    }

    /// Wakes those who look at what the mutex does not guard: none of them is between its look and its wait.
    #[cold]
    fn tell(&self) {
        drop(self.state.lock());
        self.changed.notify_all();
    }

    pub fn unlock_read(&self) {
        self.state.lock().readers -= 1;
        // Whoever wants it alone looks at the readers, others at this.
        self.no_writers.fetch_sub(1, SeqCst);
        self.tell();
    }

    pub fn unlock_shared(&self) {
        let mut state = self.state.lock();
        state.shared -= 1;
        if state.shared == 0 && state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// False if anybody uses the table.
    pub fn try_lock_exclusive(&self) -> bool {
        let mut state = self.state.lock();
        let free = !state.is_in_use();
        state.exclusive |= free;
        free
    }

    pub fn unlock_exclusive(&self) {
        self.state.lock().exclusive = false;
        self.changed.notify_all();
    }

    /// Has newcomers queue.
    fn announce(&self) {
        self.state.lock().waiting += 1;
    }

    fn withdraw(&self) {
        self.state.lock().waiting -= 1;
        // Those who stood behind it.
        self.changed.notify_all();
    }

    /// Waits until `stands` does not hold any more.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        patience: &Patience<'_>,
        wait: &Wait,
        stands: impl Fn(&State) -> bool,
    ) -> Result<()> {
        while stands(state) {
            let now = Instant::now();
            if wait.victim.load(Ordering::Relaxed) {
                return Err(EngineError::Deadlock);
            }
            if now >= patience.deadline {
                return Err(EngineError::LockWaitTimeout);
            }
            if (patience.interrupted)() {
                return Err(EngineError::Interrupted);
            }
            self.changed.wait_until(state, patience.deadline.min(now + ASK_EVERY));
        }
        Ok(())
    }
}

/// What a transaction holds while it waits.
pub(crate) struct Held<'h> {
    pub lock: &'h Arc<MetadataLock>,
    pub has_written: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LockId(usize);

/// Somebody who waits.
struct Wait {
    /// What a transaction holds; what DDL or LOCK TABLES holds and wants, all at once.
    locks: Vec<LockId>,
    /// Of these, what a transaction has changed.
    written: Vec<LockId>,
    wants: Wanted,
    victim: AtomicBool,
}

enum Wanted {
    /// A transaction wants to use a table, or to change it.
    Use(LockId),
    /// Nobody else is to use these tables.
    Alone(Vec<LockId>),
    /// No transaction is to have changed the table.
    Read(LockId),
}

/// Who waits for metadata locks of an engine.
#[derive(Default)]
pub(crate) struct MetadataWaits(Mutex<Vec<Arc<Wait>>>);

/// A wait that is over when this is dropped.
struct Registered<'w> {
    waits: &'w MetadataWaits,
    wait: Arc<Wait>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.waits.0.lock().retain(|wait| !Arc::ptr_eq(wait, &self.wait));
    }
}

impl MetadataWaits {
    /// Locks a table for a transaction that holds others; it waits for DDL.
    ///
    /// # Errors
    /// `Deadlock` if the DDL waits for this transaction; `LockWaitTimeout`, `Interrupted`.
    pub fn lock_shared<'h>(
        &self,
        lock: &Arc<MetadataLock>,
        holds: impl Iterator<Item = Held<'h>>,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let registered = self.register_transaction(lock, holds);
        let mut state = lock.state.lock();
        lock.wait(&mut state, patience, &registered.wait, State::is_taken)?;
        state.shared += 1;
        Ok(())
    }

    /// Waits until a transaction that holds the table may change it, and counts it as one that does.
    ///
    /// # Errors
    /// `Deadlock`, `LockWaitTimeout`, `Interrupted`.
    pub fn begin_write<'h>(
        &self,
        lock: &Arc<MetadataLock>,
        holds: impl Iterator<Item = Held<'h>>,
        patience: &Patience<'_>,
    ) -> Result<()> {
        self.begin_write_beside(0, lock, holds, patience)
    }

    /// As [`Self::begin_write`], for whoever has it READ itself, `own` times.
    ///
    /// # Errors
    /// `Deadlock`, `LockWaitTimeout`, `Interrupted`.
    pub fn begin_write_beside<'h>(
        &self,
        own: u32,
        lock: &Arc<MetadataLock>,
        holds: impl Iterator<Item = Held<'h>>,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let registered = self.register_transaction(lock, holds);
        while !lock.try_begin_write_beside(own) {
            let mut state = lock.state.lock();
            lock.wait(&mut state, patience, &registered.wait, |_| lock.no_writers.load(SeqCst) > own)?;
        }
        Ok(())
    }

    /// Locks a table READ for LOCK TABLES, which holds some of `all` already and wants the others.
    ///
    /// # Errors
    /// `LockWaitTimeout`, `Interrupted`.
    pub fn lock_read(
        &self,
        lock: &Arc<MetadataLock>,
        all: &[Arc<MetadataLock>],
        patience: &Patience<'_>,
    ) -> Result<()> {
        let registered = self.register(ids_of(all), Vec::new(), Wanted::Read(lock.id()));
        lock.no_writers.fetch_add(1, SeqCst);
        let mut state = lock.state.lock();
        let stands = |state: &State| state.exclusive || state.upgrades || lock.writers.load(SeqCst) > 0;
        let outcome = lock.wait(&mut state, patience, &registered.wait, stands);
        match outcome {
            Ok(()) => state.readers += 1,
            Err(_) => {
                drop(state);
                lock.no_writers.fetch_sub(1, SeqCst);
                lock.tell();
            }
        }
        outcome
    }

    /// Locks tables for DDL: transactions that come now queue behind it, those that are there are waited for. `all` are these and
    /// what else it holds.
    ///
    /// # Errors
    /// `LockWaitTimeout`, `Interrupted`. Nothing is locked then.
    pub fn lock_exclusive(
        &self,
        locks: &[Arc<MetadataLock>],
        all: &[Arc<MetadataLock>],
        patience: &Patience<'_>,
    ) -> Result<()> {
        let registered = self.register(ids_of(all), Vec::new(), Wanted::Alone(ids_of(locks)));
        locks.iter().for_each(|lock| lock.announce());
        let mut taken = 0;
        let outcome = locks.iter().try_for_each(|lock| {
            let mut state = lock.state.lock();
            lock.wait(&mut state, patience, &registered.wait, State::is_in_use)?;
            state.exclusive = true;
            taken += 1;
            Ok(())
        });
        if outcome.is_err() {
            locks[..taken].iter().for_each(|lock| lock.unlock_exclusive());
        }
        locks.iter().for_each(|lock| lock.withdraw());
        outcome
    }

    /// Whoever has a table READ has it alone, too, until `unlock_exclusive`.
    ///
    /// # Errors
    /// `Deadlock` if another one wants the same; `LockWaitTimeout`, `Interrupted`.
    pub fn upgrade(&self, lock: &Arc<MetadataLock>, patience: &Patience<'_>) -> Result<()> {
        let registered = self.register(vec![lock.id()], Vec::new(), Wanted::Alone(vec![lock.id()]));
        let mut state = lock.state.lock();
        if state.upgrades {
            return Err(EngineError::Deadlock);
        }
        state.upgrades = true;
        // Newcomers queue.
        state.waiting += 1;
        let outcome = lock.wait(&mut state, patience, &registered.wait, |state| {
            state.exclusive || state.shared > 0 || state.readers > 1
        });
        state.upgrades = false;
        state.exclusive |= outcome.is_ok();
        drop(state);
        lock.withdraw();
        outcome
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn register_transaction<'h>(
        &self,
        wanted: &Arc<MetadataLock>,
        holds: impl Iterator<Item = Held<'h>>,
    ) -> Registered<'_> {
        let (mut locks, mut written) = (Vec::new(), Vec::new());
        for held in holds {
            locks.push(held.lock.id());
            if held.has_written {
                written.push(held.lock.id());
            }
        }
        self.register(locks, written, Wanted::Use(wanted.id()))
    }

    fn register(&self, locks: Vec<LockId>, written: Vec<LockId>, wants: Wanted) -> Registered<'_> {
        let wait = Arc::new(Wait { locks, written, wants, victim: AtomicBool::new(false) });
        let mut waits = self.0.lock();
        waits.push(wait.clone());
        // Nobody waits for a transaction that holds nothing.
        if !wait.locks.is_empty() {
            break_cycles(&waits, &wait);
        }
        drop(waits);
        Registered { waits: self, wait }
    }
}

/// Chooses a victim for each cycle that `start` has closed.
fn break_cycles(waits: &[Arc<Wait>], start: &Arc<Wait>) {
    while let Some(victim) = cycle(waits, start) {
        victim.victim.store(true, Ordering::Relaxed);
    }
}

/// A transaction of a cycle through `start`: `start` itself, if it is one.
fn cycle<'w>(waits: &'w [Arc<Wait>], start: &'w Arc<Wait>) -> Option<&'w Arc<Wait>> {
    let mut reached = HashSet::new();
    let mut frontier = VecDeque::from([start]);
    while let Some(from) = frontier.pop_front() {
        if from.victim.load(Ordering::Relaxed) {
            continue;
        }
        for to in waits.iter().filter(|to| from.waits_for(to) && !to.victim.load(Ordering::Relaxed)) {
            if Arc::ptr_eq(to, start) {
                return Some(if start.is_transaction() { start } else { from });
            }
            if reached.insert(Arc::as_ptr(to)) {
                frontier.push_back(to);
            }
        }
    }
    None
}

impl Wait {
    fn is_transaction(&self) -> bool {
        matches!(self.wants, Wanted::Use(_))
    }

    fn waits_for(&self, other: &Self) -> bool {
        if self.is_transaction() == other.is_transaction() {
            return false;
        }
        match &self.wants {
            Wanted::Use(wanted) => other.locks.contains(wanted),
            Wanted::Alone(wanted) => wanted.iter().any(|lock| other.locks.contains(lock)),
            Wanted::Read(wanted) => other.written.contains(wanted),
        }
    }
}

fn ids_of(locks: &[Arc<MetadataLock>]) -> Vec<LockId> {
    locks.iter().map(MetadataLock::id).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    const NEVER: &dyn Fn() -> bool = &|| false;

    fn patience(time: Duration) -> Patience<'static> {
        Patience { deadline: Instant::now() + time, interrupted: NEVER }
    }

    fn used(lock: &Arc<MetadataLock>) -> Held<'_> {
        Held { lock, has_written: false }
    }

    fn changed(lock: &Arc<MetadataLock>) -> Held<'_> {
        Held { lock, has_written: true }
    }

    #[test]
    fn transactions_and_ddl_in_a_cycle_lose_a_transaction() {
        let waits = MetadataWaits::default();
        let (a, b) = (&Arc::new(MetadataLock::new()), &Arc::new(MetadataLock::new()));
        let long = Duration::from_secs(30);
        assert!(a.try_lock_shared() && b.try_lock_shared());
        let begun = Barrier::new(2);
        let ddl = |lock: &Arc<MetadataLock>| {
            let outcome =
                waits.lock_exclusive(std::slice::from_ref(lock), std::slice::from_ref(lock), &patience(long));
            outcome.map(|()| lock.unlock_exclusive())
        };
        let transaction = |held: &Arc<MetadataLock>, wanted: &Arc<MetadataLock>| {
            begun.wait();
            let outcome = waits.lock_shared(wanted, [used(held)].into_iter(), &patience(long));
            held.unlock_shared();
            if outcome.is_ok() {
                wanted.unlock_shared();
            }
            outcome
        };
        let is_announced = |lock: &MetadataLock| lock.state.lock().waiting > 0;
        thread::scope(|scope| {
            let changes = [a, b].map(|lock| {
                scope.spawn({
                    let ddl = &ddl;
                    move || ddl(lock)
                })
            });
            while !is_announced(a) || !is_announced(b) {
                thread::yield_now();
            }
            let users = [(a, b), (b, a)].map(|(held, wanted)| {
                scope.spawn({
                    let transaction = &transaction;
                    move || transaction(held, wanted)
                })
            });
            let mut outcomes = users.map(|user| user.join().expect("no panic"));
            outcomes.sort_by_key(|outcome| outcome.is_ok());
            assert!(matches!(outcomes, [Err(EngineError::Deadlock), Ok(())]), "{outcomes:?}");
            for change in changes {
                change.join().expect("no panic").expect("the tables are free");
            }
        });
    }

    #[test]
    fn who_reads_alone_and_who_writes_keep_each_other_out() {
        let waits = MetadataWaits::default();
        let lock = &Arc::new(MetadataLock::new());
        let (inside, long) = (AtomicU32::new(0), Duration::from_secs(30));
        const WRITER: u32 = 1 << 16;
        thread::scope(|scope| {
            for number in 0..4 {
                let (waits, inside) = (&waits, &inside);
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        if number < 2 {
                            if !lock.try_begin_write() {
                                waits.begin_write(lock, [].into_iter(), &patience(long)).expect("its turn");
                            }
                            assert_eq!(inside.fetch_add(WRITER, SeqCst) % WRITER, 0, "somebody reads alone");
                            inside.fetch_sub(WRITER, SeqCst);
                            lock.end_write();
                        } else {
                            waits
                                .lock_read(lock, std::slice::from_ref(lock), &patience(long))
                                .expect("its turn");
                            assert!(inside.fetch_add(1, SeqCst) < WRITER, "somebody writes");
                            inside.fetch_sub(1, SeqCst);
                            lock.unlock_read();
                        }
                    }
                });
            }
        });
        assert!(lock.try_lock_exclusive(), "nothing is left");
    }

    #[test]
    fn one_of_those_who_read_can_have_it_alone() {
        let waits = MetadataWaits::default();
        let lock = &Arc::new(MetadataLock::new());
        let (all, long) = (std::slice::from_ref(lock), Duration::from_secs(30));
        let read = || waits.lock_read(lock, all, &patience(long)).expect("nobody writes");
        read();
        read();
        thread::scope(|scope| {
            let upgraded = scope.spawn(|| waits.upgrade(lock, &patience(long)));
            while !lock.state.lock().upgrades {
                thread::yield_now();
            }
            let second = waits.upgrade(lock, &patience(long));
            assert!(matches!(second, Err(EngineError::Deadlock)), "{second:?}");
            lock.unlock_read();
            upgraded.join().expect("no panic").expect("the other one has gone");
        });
        assert!(!lock.try_lock_shared(), "one has it alone");
        lock.unlock_exclusive();
        assert!(lock.try_lock_shared() && !lock.try_begin_write(), "it is still read");
    }

    #[test]
    fn a_writer_in_a_circle_with_lock_tables_is_a_deadlocks_victim() {
        let waits = MetadataWaits::default();
        let (a, b) = (&Arc::new(MetadataLock::new()), &Arc::new(MetadataLock::new()));
        let all = [a.clone(), b.clone()];
        assert!(b.try_lock_shared() && b.try_begin_write() && a.try_lock_shared());
        thread::scope(|scope| {
            let locks = scope.spawn(|| {
                all.iter()
                    .try_for_each(|lock| waits.lock_read(lock, &all, &patience(Duration::from_secs(30))))
            });
            while b.no_writers.load(SeqCst) == 0 {
                thread::yield_now();
            }
            let outcome =
                waits.begin_write(a, [changed(b), used(a)].into_iter(), &patience(Duration::from_secs(30)));
            assert!(matches!(outcome, Err(EngineError::Deadlock)), "{outcome:?}");
            b.end_write();
            locks.join().expect("no panic").expect("nobody writes");
        });
    }

    #[test]
    fn who_stands_behind_a_waiting_reader_is_in_no_circle() {
        let waits = MetadataWaits::default();
        let lock = &Arc::new(MetadataLock::new());
        let long = Duration::from_secs(30);
        // One has changed the table, another uses it and is about to.
        assert!(lock.try_lock_shared() && lock.try_begin_write() && lock.try_lock_shared());
        thread::scope(|scope| {
            let reader = scope.spawn(|| waits.lock_read(lock, std::slice::from_ref(lock), &patience(long)));
            while lock.no_writers.load(SeqCst) == 0 {
                thread::yield_now();
            }
            let writer = scope.spawn(|| waits.begin_write(lock, [used(lock)].into_iter(), &patience(long)));
            while waits.0.lock().len() < 2 {
                thread::yield_now();
            }
            lock.end_write();
            reader.join().expect("no panic").expect("nobody writes");
            lock.unlock_read();
            writer.join().expect("no panic").expect("it is no deadlock");
        });
    }

    #[test]
    fn ddl_of_several_tables_gets_them_under_load() {
        let waits = MetadataWaits::default();
        let locks = [Arc::new(MetadataLock::new()), Arc::new(MetadataLock::new())];
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        for lock in &locks {
                            let held = lock.try_lock_shared()
                                || waits
                                    .lock_shared(lock, [].into_iter(), &patience(Duration::from_secs(30)))
                                    .is_ok();
                            assert!(held);
                            thread::sleep(Duration::from_millis(2));
                            lock.unlock_shared();
                        }
                    }
                });
            }
            let outcome = waits.lock_exclusive(&locks, &locks, &patience(Duration::from_secs(20)));
            locks.iter().for_each(|lock| lock.unlock_exclusive());
            stop.store(true, Ordering::Relaxed);
            outcome.expect("newcomers queue behind it");
        });
    }

    #[test]
    fn who_gives_up_leaves_nothing_behind() {
        let waits = MetadataWaits::default();
        let locks = [Arc::new(MetadataLock::new()), Arc::new(MetadataLock::new())];
        assert!(locks[1].try_lock_shared());
        let outcome = waits.lock_exclusive(&locks, &locks, &patience(Duration::from_millis(1)));
        assert!(matches!(outcome, Err(EngineError::LockWaitTimeout)));
        assert!(locks[0].try_lock_exclusive());
        assert!(locks[1].try_lock_shared());
        assert!(waits.is_empty());
    }
}
