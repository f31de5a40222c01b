//! The environment: disk, clock and threads, behind traits.
//!
//! Code above `base` never calls `std::fs`, `SystemTime::now` or `thread::spawn` on a path that decides
//! what is durable or visible; it goes through [`Env`]. Tests pass a simulated disk that cuts, tears and
//! drops unsynced writes.

mod os;
pub mod sim;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use os::{OsClock, OsDisk};
pub use sim::{DiskError, DiskOp, SimClock, SimDisk};

/// What the engine needs of the world around it. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
}

impl Env {
    /// The real machine.
    pub fn os() -> Self {
        Self { disk: Arc::new(OsDisk), clock: Arc::new(OsClock::new()) }
    }
}

/// Wall-clock and monotonic time.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    fn wall_us(&self) -> i64;
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
}

/// A file system, as far as a database needs one. Paths are absolute or relative to the process.
///
/// Durability contract: bytes written are durable after [`DiskFile::sync_data`]; a created, renamed or
/// removed name is durable after [`Disk::sync_dir`] of its parent.
pub trait Disk: Send + Sync {
    /// Creates a new file for reading and writing; `AlreadyExists` if there is one.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file, for writing too if `write`.
    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames, replacing `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names of the entries directly in `dir`, sorted; empty if there is no such directory.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Takes an exclusive advisory lock on a directory, and on the file `name` in it (created if missing) if one is given, for
    /// as long as the guard lives; `WouldBlock` if another process or handle holds either. The directory's own lock stays
    /// whatever becomes of the file.
    fn lock(&self, dir: &Path, name: Option<&str>) -> io::Result<Box<dyn DirectoryLock>>;
}

/// A directory that nobody else may use.
pub trait DirectoryLock: Send + Sync {
    /// Locks a file in it, too, which goes with the contents if they are moved elsewhere; `WouldBlock` if somebody else has it.
    fn hold(&mut self, name: &str) -> io::Result<()>;
    /// From now on [`Self::is_in_place`] looks after a directory in it, too.
    fn watch(&mut self, name: &str) -> io::Result<()>;
    /// Whether the paths still lead to the directory and to what is held or watched: not so once they were moved, or others
    /// put in their place.
    fn is_in_place(&self) -> io::Result<bool>;
}

/// Puts a file with these contents in the place of the one that has the path, if there is one: whenever the machine stops,
/// one of the two is there, whole.
pub fn replace_file(disk: &dyn Disk, path: &Path, contents: &[u8]) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    // Of an attempt that the machine's end has cut off.
    if disk.exists(new)? {
        disk.remove(new)?;
    }
    let file = disk.create(new)?;
    file.write_at(contents, 0)?;
    file.sync_data()?;
    disk.rename(new, path)?;
    disk.sync_dir(parent)
}

/// The contents of a small file; `None` if there is none.
pub fn read_file(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    if !disk.exists(path)? {
        return Ok(None);
    }
    let file = disk.open(path, false)?;
    let mut contents = vec![0; file.size()? as usize];
    file.read_at(&mut contents, 0)?;
    Ok(Some(contents))
}

/// An open file. Reads and writes are positioned and whole: short ones are errors.
pub trait DiskFile: Send + Sync {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the contents and the length durable (fdatasync).
    fn sync_data(&self) -> io::Result<()>;
    /// Length in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros).
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Reserves space so that later writes below `size` cannot run out of it; extends the file with zeros.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Whether the path leads to this file: not so once it was removed, moved or replaced. On a disk that nobody else
    /// changes it always does.
    fn is_at(&self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }
}
