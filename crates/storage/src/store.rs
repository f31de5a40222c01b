//! The block store: immutable objects by name, in a local directory or an object store, and the cache of
//! encoded columns in front of it.
//!
//! Invariants:
//! 1. When [`BlobStore::put`] returns, the object is there whole and survives a crash. If it fails or the
//!    process dies, the object is there whole or not at all (or the one there was), and a crash may decide otherwise. What
//!    is there when a store is opened survives crashes from then on.
//! 2. Objects are never changed, so what was read once may be cached for ever.
//! 3. The cache is lossy: it may forget anything at any time, and what it loads is verified by checksum.

mod cache;
mod local;
mod object;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use avocet_base::Env;
use bytes::Bytes;

use crate::error::{Result, StorageError};

pub use cache::{BlockCache, CacheStats, CachedColumn, Slot};
pub use local::LocalStore;
pub use object::ObjectBlobs;

/// Objects by name. Names are `/`-separated; calls block.
pub trait BlobStore: Send + Sync {
    /// Stores an object; durable and atomic when it returns.
    fn put(&self, key: &str, bytes: &[u8]) -> Result<()>;
    /// As [`Self::put`], but gently: a disk gets it in durable steps, and `written` is called with the bytes of each. One sync
    /// of it all would keep the log's waiting for as long as that takes.
    fn put_in_steps(&self, key: &str, bytes: &[u8], written: &mut dyn FnMut(u64)) -> Result<()> {
        self.put(key, bytes)?;
        written(bytes.len() as u64);
        Ok(())
    }
    /// Bytes `range` of an object; fails if it is shorter.
    fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes>;
    /// A whole object.
    fn get(&self, key: &str) -> Result<Bytes>;
    /// A whole object, if it is there.
    fn find(&self, key: &str) -> Result<Option<Bytes>> {
        match self.get(key) {
            Err(StorageError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }
    /// Stores an object unless there is one of its name; whether it did. Of several that do so at once one succeeds. In a
    /// local store, whoever calls this holds the [directory](local_root) locked.
    fn put_new(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        if self.find(key)?.is_some() {
            return Ok(false);
        }
        self.put(key, bytes).map(|()| true)
    }
    /// Length of an object in bytes.
    fn size(&self, key: &str) -> Result<u64>;
    /// Names and lengths of the objects whose names begin with `prefix`, sorted.
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>>;
    /// Removes an object; no error if there is none. After a crash it may be there again.
    fn delete(&self, key: &str) -> Result<()>;
}

/// Opens a store by URL: a path or `file://` is a local directory; `s3://` and `memory://` are object stores,
/// with options (credentials, region, endpoint…) from environment variables.
pub fn open_store(env: &Env, url: &str) -> Result<Arc<dyn BlobStore>> {
    match local_root(url) {
        Some(root) => Ok(Arc::new(LocalStore::open(env.disk.clone(), root)?)),
        None => Ok(Arc::new(ObjectBlobs::open(url)?)),
    }
}

/// The directory of a store that is one.
pub fn local_root(url: &str) -> Option<PathBuf> {
    match url.split_once("://") {
        None => Some(PathBuf::from(url)),
        Some(("file", path)) => Some(PathBuf::from(path)),
        Some(_) => None,
    }
}

/// Fails unless the key is a relative name of plain components.
fn check_key(key: &str) -> Result<()> {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    if key.split('/').all(plain) {
        Ok(())
    } else {
        Err(StorageError::Unsupported(format!("{key:?} is no name for an object")))
    }
}
