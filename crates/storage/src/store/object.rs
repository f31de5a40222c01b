//! Objects in an object store (S3 and its like), behind blocking calls.
//!
//! The client is asynchronous; it runs on two threads of its own, so callers may be on any thread, also on
//! one of another runtime.

use std::io;
use std::ops::Range;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use tokio::runtime::Runtime;
use url::Url;

use super::{BlobStore, check_key};
use crate::error::{Result, StorageError};

/// A block store in an object store.
pub struct ObjectBlobs {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// `None` only while being dropped.
    runtime: Option<Runtime>,
}

impl ObjectBlobs {
    /// Opens a store by URL (`s3://bucket/prefix`, `memory:///`); options come from environment variables
    /// (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT`…).
    pub fn open(url: &str) -> Result<Self> {
        let parsed = Url::parse(url).map_err(|e| StorageError::Unsupported(format!("{url}: {e}")))?;
        let (store, prefix) =
            object_store::parse_url_opts(&parsed, std::env::vars()).map_err(|e| failure("open", url, e))?;
        Self::new(store.into(), prefix)
    }

    /// A store of objects under `prefix`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("object-store")
            .enable_all()
            .build()
            .map_err(|e| StorageError::io("start the object store's threads", e))?;
        Ok(Self { store, prefix, runtime: Some(runtime) })
    }

    fn path(&self, key: &str) -> Result<Path> {
        check_key(key)?;
        Ok(self.prefix.parts().chain(Path::from(key).parts()).map(|p| p.as_ref().to_owned()).collect())
    }

    /// Runs a request on the store's own threads and waits for its answer.
    fn wait<T, F>(&self, verb: &str, key: &str, request: impl FnOnce(Arc<dyn ObjectStore>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let (done, answer) = mpsc::sync_channel(1);
        let request = request(self.store.clone());
        let runtime = self.runtime.as_ref().expect("the runtime lives as long as the store");
        runtime.spawn(async move {
            // The receiver waits for just this message.
            let _ = done.send(request.await);
        });
        match answer.recv() {
            Ok(answer) => answer.map_err(|e| failure(verb, key, e)),
            Err(_) => {
                Err(StorageError::io(format!("{verb} {key}"), io::Error::other("the request was aborted")))
            }
        }
    }
}

impl Drop for ObjectBlobs {
    fn drop(&mut self) {
        // Not the plain drop, which may not happen on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn failure(verb: &str, key: &str, e: object_store::Error) -> StorageError {
    let kind = match &e {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        _ => io::ErrorKind::Other,
    };
    StorageError::io(format!("{verb} {key}"), io::Error::new(kind, e))
}

impl BlobStore for ObjectBlobs {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(key)?;
        let payload = PutPayload::from_bytes(Bytes::copy_from_slice(bytes));
        self.wait("put", key, |store| async move { store.put(&path, payload).await.map(drop) })
    }

    fn put_new(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let path = self.path(key)?;
        let payload = PutPayload::from_bytes(Bytes::copy_from_slice(bytes));
        self.wait("put", key, |store| async move {
            match store.put_opts(&path, payload, PutMode::Create.into()).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                Err(e) => Err(e),
            }
        })
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let path = self.path(key)?;
        let wanted = range.end - range.start;
        let bytes = self.wait("get", key, |store| async move { store.get_range(&path, range).await })?;
        if bytes.len() as u64 == wanted {
            return Ok(bytes);
        }
        Err(StorageError::io(format!("get {key}"), io::ErrorKind::UnexpectedEof.into()))
    }

    fn get(&self, key: &str) -> Result<Bytes> {
        let path = self.path(key)?;
        self.wait("get", key, |store| async move { store.get(&path).await?.bytes().await })
    }

    fn size(&self, key: &str) -> Result<u64> {
        let path = self.path(key)?;
        self.wait("head", key, |store| async move { Ok(store.head(&path).await?.size) })
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let root = self.prefix.clone();
        let objects = self.wait("list", prefix, |store| async move {
            store.list(Some(&root)).try_collect::<Vec<_>>().await
        })?;
        let skip = self.prefix.parts().count();
        let mut keys: Vec<(String, u64)> = objects
            .into_iter()
            .map(|o| (o.location.parts().skip(skip).collect::<Path>().to_string(), o.size))
            .filter(|(key, _)| key.starts_with(prefix))
            .collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        self.wait("delete", key, |store| async move {
            match store.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                other => other,
            }
        })
    }
}
