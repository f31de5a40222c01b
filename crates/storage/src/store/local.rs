//! Objects as files under a directory.
//!
//! `put` writes a temporary file beside the final one, syncs it, renames it and syncs the directory. Objects
//! are named `*.blob` and temporary files `*.tmp`, so a directory listing tells them from directories, and
//! what a crash left behind is not taken for an object; opening the store removes it.
//!
//! A process that was killed may leave names that are not durable yet. Whoever opens the store decides by what it finds what
//! may be deleted, so opening makes all names durable: otherwise power loss could bring back an older state without what
//! that needs.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_base::env::{Disk, DiskFile};
use bytes::Bytes;
use parking_lot::Mutex;

use super::{BlobStore, check_key};
use crate::error::{Result, StorageError};

const OBJECT: &str = ".blob";
const TEMPORARY: &str = ".tmp";
/// What a gentle write makes durable at a time: a disk of the common kind is done with it in a millisecond or two.
const STEP: usize = 512 << 10;

/// A block store in a local directory.
pub struct LocalStore {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// Directories known to exist durably.
    dirs: Mutex<HashSet<PathBuf>>,
    next_temporary: AtomicU64,
}

impl LocalStore {
    /// Opens the store in `root`, which is created if missing, removes what a crash left unfinished and makes what it
    /// finds durable.
    pub fn open(disk: Arc<dyn Disk>, root: PathBuf) -> Result<Self> {
        let store = Self { disk, root, dirs: Mutex::default(), next_temporary: AtomicU64::new(0) };
        store.ensure_dir(&store.root)?;
        store.settle(&store.root)?;
        Ok(store)
    }

    fn settle(&self, dir: &Path) -> Result<()> {
        for name in self.disk.list(dir).map_err(|e| io_error("list", dir, e))? {
            let path = dir.join(&name);
            if name.ends_with(TEMPORARY) {
                self.disk.remove(&path).map_err(|e| io_error("remove", &path, e))?;
            } else if !name.ends_with(OBJECT) {
                self.settle(&path)?;
            }
        }
        self.disk.sync_dir(dir).map_err(|e| io_error("sync", dir, e))
    }

    fn path(&self, key: &str) -> Result<PathBuf> {
        check_key(key)?;
        Ok(self.root.join(format!("{key}{OBJECT}")))
    }

    fn open_object(&self, key: &str) -> Result<(PathBuf, Arc<dyn DiskFile>)> {
        let path = self.path(key)?;
        let file = self.disk.open(&path, false).map_err(|e| io_error("open", &path, e))?;
        Ok((path, file))
    }

    /// Makes a directory and its parents exist durably.
    fn ensure_dir(&self, dir: &Path) -> Result<()> {
        if self.dirs.lock().contains(dir) {
            return Ok(());
        }
        self.disk.create_dir_all(dir).map_err(|e| io_error("create", dir, e))?;
        let mut parent = dir.parent().filter(|p| !p.as_os_str().is_empty());
        while let Some(p) = parent {
            self.disk.sync_dir(p).map_err(|e| io_error("sync", p, e))?;
            if !p.starts_with(&self.root) {
                break;
            }
            parent = p.parent().filter(|p| !p.as_os_str().is_empty());
        }
        self.dirs.lock().insert(dir.to_path_buf());
        Ok(())
    }

    fn write_temporary(
        &self,
        path: &Path,
        bytes: &[u8],
        step: usize,
        written: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        let file = self.disk.create(path)?;
        if bytes.is_empty() {
            return file.sync_data();
        }
        file.allocate(bytes.len() as u64)?;
        let mut at = 0;
        for part in bytes.chunks(step) {
            file.write_at(part, at)?;
            file.sync_data()?;
            at += part.len() as u64;
            written(part.len() as u64);
        }
        Ok(())
    }

    /// Writes an object, in synced steps of at most so many bytes.
    fn write(&self, key: &str, bytes: &[u8], step: usize, written: &mut dyn FnMut(u64)) -> Result<()> {
        let path = self.path(key)?;
        let dir = path.parent().expect("an object's path has the root before it");
        self.ensure_dir(dir)?;
        let serial = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{serial}{TEMPORARY}"));
        let outcome = self
            .write_temporary(&temporary, bytes, step, written)
            .and_then(|()| self.disk.rename(&temporary, &path))
            .map_err(|e| io_error("write", &path, e));
        if let Err(e) = outcome {
            // The first error is the one to report; what can not be removed now goes at the next start.
            let _ = self.disk.remove(&temporary);
            return Err(e);
        }
        self.disk.sync_dir(dir).map_err(|e| io_error("sync", dir, e))
    }

    /// Adds the keys of the objects in a directory, whose own key is `prefix`, and of those below it.
    fn keys_in(&self, dir: &Path, prefix: &str, keys: &mut Vec<String>) -> Result<()> {
        for name in self.disk.list(dir).map_err(|e| io_error("list", dir, e))? {
            match name.strip_suffix(OBJECT) {
                Some(name) => keys.push(format!("{prefix}{name}")),
                None if name.ends_with(TEMPORARY) => {}
                None => self.keys_in(&dir.join(&name), &format!("{prefix}{name}/"), keys)?,
            }
        }
        Ok(())
    }
}

fn io_error(verb: &str, path: &Path, e: io::Error) -> StorageError {
    StorageError::io(format!("{verb} {}", path.display()), e)
}

impl BlobStore for LocalStore {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        self.write(key, bytes, usize::MAX, &mut |_| {})
    }

    fn put_in_steps(&self, key: &str, bytes: &[u8], written: &mut dyn FnMut(u64)) -> Result<()> {
        self.write(key, bytes, STEP, written)
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        let (path, file) = self.open_object(key)?;
        let mut bytes = vec![0; range.end.saturating_sub(range.start) as usize];
        file.read_at(&mut bytes, range.start).map_err(|e| io_error("read", &path, e))?;
        Ok(bytes.into())
    }

    fn get(&self, key: &str) -> Result<Bytes> {
        let (path, file) = self.open_object(key)?;
        let size = file.size().map_err(|e| io_error("read", &path, e))?;
        let mut bytes = vec![0; size as usize];
        file.read_at(&mut bytes, 0).map_err(|e| io_error("read", &path, e))?;
        Ok(bytes.into())
    }

    fn size(&self, key: &str) -> Result<u64> {
        let (path, file) = self.open_object(key)?;
        file.size().map_err(|e| io_error("read", &path, e))
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let mut keys = Vec::new();
        self.keys_in(&self.root, "", &mut keys)?;
        keys.retain(|key| key.starts_with(prefix));
        keys.sort_unstable();
        keys.into_iter().map(|key| self.size(&key).map(|size| (key, size))).collect()
    }

    fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        match self.disk.remove(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, e)),
            _ => Ok(()),
        }
    }
}
