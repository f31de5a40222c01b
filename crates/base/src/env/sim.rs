//! A simulated disk and clock, for crash tests.
//!
//! [`SimDisk`] is a file system in memory that knows what is *durable* and what is merely written, as the
//! contract of [`Disk`] has it. A test runs real code on it, then asks for a disk that could be there after power loss:
//!
//! ```
//! use std::path::Path;
//! use avocet_base::env::{Disk, SimDisk};
//!
//! # fn main() -> std::io::Result<()> {
//! let disk = SimDisk::new();
//! let dir = Path::new("/db");
//! disk.create_dir_all(dir)?;
//! let file = disk.create(&dir.join("a"))?;
//! file.write_at(b"kept", 0)?;
//! file.sync_data()?;
//! disk.sync_dir(dir)?;
//! file.write_at(b"lost", 0)?;
//!
//! let after = disk.crash(0); // seed 0: everything unsynced is lost
//! let mut buf = [0; 4];
//! after.open(&dir.join("a"), false)?.read_at(&mut buf, 0)?;
//! assert_eq!(&buf, b"kept");
//! # Ok(())
//! # }
//! ```
//!
//! To try power loss at every sync point: run once to count ([`SimDisk::syncs`]), then for each `n` run on a new disk
//! with [`SimDisk::cut_at_sync`]`(n)`: the n-th sync does not take effect, every call from there on fails, and
//! [`SimDisk::crash`] of several seeds gives the disks to recover from. The same seed always gives the same disk.
//!
//! A process that is killed on a machine that goes on is another matter: see [`SimDisk::kill`].
//!
//! What the model promises, and what it takes away:
//! 1. Synced bytes and lengths of a file stay, under the names that were made durable by a sync of their directory.
//! 2. A sector (512 bytes, aligned) of a file holds, after power loss, what it held at the last sync or after any
//!    one write since then; each sector on its own. With some seeds a sector is torn, too: its first bytes are those of
//!    the write that came next.
//! 3. A length is as it was at the last sync or after any change since. Bytes whose write was lost read as zeros.
//! 4. Of the creations, renames and removals in a directory since its sync, the first few are kept, in order.
//! 5. A *failed* sync may have lost the data for good, although reads still see it: those sectors become durable only if
//!    they are written once more.
//! 6. Directories themselves are durable as soon as they are created.

mod file;
mod world;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use self::file::SimFile;
use self::world::World;
use super::{Clock, DirectoryLock, Disk, DiskFile, Env};

/// The unit of tearing, in bytes.
pub const SECTOR: usize = 512;

/// A kind of call that can be counted and told to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskOp {
    Create,
    Open,
    Rename,
    Remove,
    Read,
    Write,
    /// Of a file's data.
    Sync,
    SyncDir,
    /// `allocate` and `set_size`.
    Resize,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// EIO. A write that fails so has written its first half; a sync may have lost the data (rule 5).
    Io,
    /// ENOSPC.
    NoSpace,
}

impl DiskError {
    fn to_io(self) -> io::Error {
        let errno = match self {
            Self::Io => rustix::io::Errno::IO,
            Self::NoSpace => rustix::io::Errno::NOSPC,
        };
        errno.into()
    }
}

/// A file system in memory that can lose power. Clones are handles to the same disk.
#[derive(Clone, Default)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// An environment with this disk and a new [`SimClock`].
    pub fn env(&self) -> Env {
        Env { disk: Arc::new(self.clone()), clock: Arc::new(SimClock::default()) }
    }

    /// A disk that may be there if power is lost now; this one is left as it is. Seed 0 keeps nothing that is not
    /// synced, seed 1 keeps everything, seeds from 2 on choose: even ones keep what happened up to some
    /// moment, odd ones decide for each sector, length and directory; 3, 7, 11, … tear sectors, too.
    pub fn crash(&self, seed: u64) -> Self {
        Self { world: Arc::new(Mutex::new(self.world.lock().crash(seed))) }
    }

    /// The disk as the next process finds it if this one is killed now while the machine goes on: everything
    /// written is there, locks are free, and no more than before is durable. Planned failures are forgotten.
    pub fn kill(&self) -> Self {
        Self { world: Arc::new(Mutex::new(self.world.lock().kill())) }
    }

    /// Sync points so far: syncs of files and of directories that were begun.
    pub fn syncs(&self) -> u64 {
        self.world.lock().syncs
    }

    /// Calls of one kind so far, failed ones included.
    pub fn count(&self, op: DiskOp) -> u64 {
        self.world.lock().count(op)
    }

    /// The paths of all calls of one kind so far: of a rename the old name, of a file that under which it was opened.
    pub fn calls(&self, op: DiskOp) -> Vec<Arc<Path>> {
        self.world.lock().calls(op).to_vec()
    }

    /// Loses power at the `n`-th sync point of this disk (from 1): that sync does not take effect, and
    /// every call from then on fails.
    pub fn cut_at_sync(&self, n: u64) {
        self.world.lock().cut_at_sync = Some(n);
    }

    /// Loses power now: every call from here on fails.
    pub fn cut(&self) {
        self.world.lock().cut = true;
    }

    /// Whether power was lost.
    pub fn is_cut(&self) -> bool {
        self.world.lock().cut
    }

    /// Lets the `n`-th call of a kind from now (1 is the next) fail, once.
    pub fn fail(&self, op: DiskOp, n: u64, error: DiskError) {
        self.world.lock().plan_failure(op, n, error);
    }

    /// Lets syncs of files below a path wait, as a slow disk would, until they are released.
    pub fn hold_syncs(&self, below: &Path) {
        self.world.lock().held = Some(below.to_path_buf());
    }

    /// Lets go of the syncs that wait.
    pub fn release_syncs(&self) {
        let mut world = self.world.lock();
        world.held = None;
        world.released.notify_all();
    }

    /// Lets files take up no more than `bytes` together; what would need more fails with ENOSPC.
    /// `None` lifts the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.world.lock().capacity = bytes;
    }

    /// Bytes that the files take up: the sum of their lengths.
    pub fn used(&self) -> u64 {
        self.world.lock().used()
    }

    /// The bytes of a file as reads see them.
    pub fn contents(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.world.lock().contents(path).map(<[u8]>::to_vec)
    }

    /// Replaces a file's bytes, durably: what bit rot, a stray tool or a cut file leave behind.
    pub fn tamper(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.world.lock().tamper(path, change)
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world.lock().create(path)?;
        Ok(Arc::new(SimFile { world: self.world.clone(), inode, path: path.into(), writable: true }))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world.lock().open(path)?;
        Ok(Arc::new(SimFile { world: self.world.clone(), inode, path: path.into(), writable: write }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.world.lock().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.world.lock().remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.world.lock().list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.world.lock().create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.world.lock().sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.world.lock().exists(path)
    }

    fn lock(&self, dir: &Path, name: Option<&str>) -> io::Result<Box<dyn DirectoryLock>> {
        let path = name.map_or_else(|| dir.to_path_buf(), |name| dir.join(name));
        let mut world = self.world.lock();
        if name.is_some() && !world.exists(&path)? {
            world.create(&path)?;
        }
        world.lock_path(&path)?;
        drop(world);
        Ok(Box::new(LockGuard { world: self.world.clone(), path }))
    }
}

struct LockGuard {
    world: Arc<Mutex<World>>,
    path: std::path::PathBuf,
}

impl DirectoryLock for LockGuard {
    fn hold(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn watch(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.world.lock().unlock_path(&self.path);
    }
}

/// A clock that goes on by a microsecond whenever it is read, and further when told.
#[derive(Default)]
pub struct SimClock {
    now_us: AtomicU64,
}

impl SimClock {
    /// The wall clock when [`SimClock`] is new: 2026-01-01 00:00:00 UTC, in microseconds since 1970.
    pub const EPOCH_US: i64 = 1_767_225_600_000_000;

    pub fn advance(&self, by: Duration) {
        self.now_us.fetch_add(by.as_micros() as u64, Ordering::Relaxed);
    }

    fn tick(&self) -> u64 {
        self.now_us.fetch_add(1, Ordering::Relaxed)
    }
}

impl Clock for SimClock {
    fn wall_us(&self) -> i64 {
        Self::EPOCH_US + self.tick() as i64
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.tick())
    }
}

#[cfg(test)]
mod tests;
