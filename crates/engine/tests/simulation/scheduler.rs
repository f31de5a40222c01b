//! A scheduler of threads by seed: one runs at a time, and at every pause the seed says who goes on.
//!
//! ```text
//!  actor ── pause() ────────────────▶ ready ──┐
//!        ── waits for a row (hook) ─▶ blocked │   when all who were woken are ready again:
//!              woken ───────────────▶ ready ──┴──▶ check, then one of those that are ready runs
//! ```
//!
//! Actors pause between operations, and where the engine writes a block or a checkpoint (`Pausing`). A wait for a row goes
//! through the engine's wait hook. The engine says how many waiters sleep; when as many actors are blocked, nobody is
//! on the way any more, so the choice does not depend on how fast threads are, and a seed gives the same schedule again.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::{DirectoryLock, Disk, DiskFile, SimDisk};
use avocet_engine::WaitHook;
use parking_lot::{Condvar, Mutex};

use crate::orders::Random;

thread_local! {
    static ACTOR: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Ready,
    Blocked,
    Done,
}

struct State {
    random: Random,
    actors: Vec<Status>,
    running: Option<usize>,
    /// An actor has panicked, or all wait.
    failed: bool,
    /// Who ran, step by step.
    schedule: Vec<usize>,
}

type Sleepers = Box<dyn Fn() -> usize + Send + Sync>;
type Check = Box<dyn Fn(usize) + Send + Sync>;

pub struct Scheduler {
    state: Mutex<State>,
    /// Somebody may run.
    turn: Condvar,
    /// Nobody runs.
    idle: Condvar,
    sleepers: Sleepers,
    /// Waits until all that is logged is visible.
    settle: Box<dyn Fn() + Send + Sync>,
    /// Called at every step, while nobody runs.
    check: Check,
}

/// How an actor ends when another has failed.
struct Ended;

impl Scheduler {
    /// `sleepers` says how many of those that wait in the engine have not been woken.
    pub fn new(
        seed: u64,
        sleepers: Sleepers,
        settle: Box<dyn Fn() + Send + Sync>,
        check: Check,
    ) -> Arc<Self> {
        let state = State {
            random: Random(seed),
            actors: Vec::new(),
            running: None,
            failed: false,
            schedule: Vec::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            turn: Condvar::new(),
            idle: Condvar::new(),
            sleepers,
            settle,
            check,
        })
    }

    /// Runs the actors to their ends; the schedule.
    pub fn run(self: &Arc<Self>, actors: Vec<Box<dyn FnOnce() + Send + '_>>) -> Vec<usize> {
        self.state.lock().actors = vec![Status::Ready; actors.len()];
        std::thread::scope(|threads| {
            for (me, work) in actors.into_iter().enumerate() {
                let scheduler = self.clone();
                threads.spawn(move || scheduler.act(me, work));
            }
            while self.hand_on() {}
        });
        let state = self.state.lock();
        assert!(!state.failed, "an actor failed");
        state.schedule.clone()
    }

    fn act(self: Arc<Self>, me: usize, work: Box<dyn FnOnce() + Send + '_>) {
        ACTOR.set(Some((self.clone(), me)));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.wait_for_turn(me);
            work();
        }));
        ACTOR.set(None);
        self.state.lock().failed |= outcome.is_err();
        self.leave(me, Status::Done);
    }

    fn wait_for_turn(&self, me: usize) {
        let mut state = self.state.lock();
        while state.running != Some(me) && !state.failed {
            self.turn.wait(&mut state);
        }
        if state.failed {
            drop(state);
            std::panic::resume_unwind(Box::new(Ended));
        }
    }

    /// Chooses who runs next, once nobody runs and nobody is on the way. False at the end.
    fn hand_on(&self) -> bool {
        let mut state = self.state.lock();
        while state.running.is_some() && !state.failed {
            self.idle.wait(&mut state);
        }
        let of = |state: &State, status| -> Vec<usize> {
            (0..state.actors.len()).filter(|&actor| state.actors[actor] == status).collect()
        };
        // Who was woken becomes ready by itself.
        while of(&state, Status::Blocked).len() != (self.sleepers)() && !state.failed {
            parking_lot::MutexGuard::unlocked(&mut state, std::thread::yield_now);
        }
        let (ready, blocked) = (of(&state, Status::Ready), of(&state, Status::Blocked));
        if ready.is_empty() && !blocked.is_empty() && !state.failed {
            eprintln!("actors {blocked:?} wait for each other");
            state.failed = true;
        }
        let goes_on = !state.failed && !ready.is_empty();
        if goes_on {
            let next = ready[state.random.below(ready.len() as i64) as usize];
            state.running = Some(next);
            state.schedule.push(next);
        }
        self.turn.notify_all();
        goes_on
    }

    fn leave(&self, me: usize, status: Status) {
        let mut state = self.state.lock();
        state.actors[me] = status;
        if state.running == Some(me) {
            state.running = None;
        }
        self.idle.notify_all();
    }

    /// As nobody's actor: this wait is none of the schedule's.
    fn settle(&self) {
        let me = ACTOR.take();
        (self.settle)();
        ACTOR.set(me);
    }

    fn pause(&self, me: usize) {
        self.settle();
        let step = self.state.lock().schedule.len();
        (self.check)(step);
        self.leave(me, Status::Ready);
        self.wait_for_turn(me);
    }

    fn block(&self, me: usize, wait: &mut dyn FnMut()) {
        self.settle();
        self.leave(me, Status::Blocked);
        wait();
        self.state.lock().actors[me] = Status::Ready;
        self.wait_for_turn(me);
    }

    /// For the engine: waits of actors are scheduled, those of others are as they are.
    pub fn wait_hook() -> WaitHook {
        Arc::new(|wait| match ACTOR.with_borrow(Clone::clone) {
            Some((scheduler, me)) => scheduler.block(me, wait),
            None => wait(),
        })
    }
}

/// Lets others run, if the calling thread is an actor.
pub fn pause() {
    if let Some((scheduler, me)) = ACTOR.with_borrow(Clone::clone) {
        scheduler.pause(me);
    }
}

/// A disk on which actors pause when they write what is not the log: the engine holds no latch then.
pub struct Pausing {
    pub disk: SimDisk,
    /// Syncs of the log take a while, and not always the same.
    pub slow_log: bool,
}

/// A file, and what happens before it is written or synced.
struct PausingFile {
    file: Arc<dyn DiskFile>,
    before_write: fn(),
    before_sync: fn(),
}

impl Pausing {
    fn wrap(&self, path: &Path, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        if path.starts_with("/data/store") {
            return Arc::new(PausingFile { file, before_write: pause, before_sync: pause });
        }
        match self.slow_log && path.starts_with("/data/log") {
            true => Arc::new(PausingFile { file, before_write: || {}, before_sync: dawdle }),
            false => file,
        }
    }
}

/// Takes up to a millisecond, by chance.
fn dawdle() {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is later than that");
    std::thread::sleep(Duration::from_micros(u64::from(now.subsec_nanos() / 7 % 1000)));
}

impl Disk for Pausing {
    fn create(&self, path: &Path) -> std::io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, self.disk.create(path)?))
    }

    fn open(&self, path: &Path, write: bool) -> std::io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, self.disk.open(path, write)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> std::io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, dir: &Path) -> std::io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> std::io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> std::io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> std::io::Result<bool> {
        self.disk.exists(path)
    }

    fn lock(&self, dir: &Path, name: Option<&str>) -> std::io::Result<Box<dyn DirectoryLock>> {
        self.disk.lock(dir, name)
    }
}

impl DiskFile for PausingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> std::io::Result<()> {
        (self.before_write)();
        self.file.write_at(buf, offset)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        (self.before_sync)();
        self.file.sync_data()
    }

    fn size(&self) -> std::io::Result<u64> {
        self.file.size()
    }

    fn set_size(&self, size: u64) -> std::io::Result<()> {
        self.file.set_size(size)
    }

    fn allocate(&self, size: u64) -> std::io::Result<()> {
        self.file.allocate(size)
    }
}
