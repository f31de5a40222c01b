//! The stores under one set of rules; the local one also on a failing disk; the cache against its promises.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{ArrayRef, Int64Array};
use avocet_base::env::{DirectoryLock, Disk, DiskFile, OsDisk};
use avocet_base::{BlockId, Env};

use super::*;
use crate::cold::{ColdType, EncodedColumn, encode_column};
use crate::error::StorageErrorKind;

fn exercise(store: &dyn BlobStore) {
    assert_eq!(store.list("").unwrap(), []);
    store.put("a/one", b"hello").unwrap();
    store.put("a/b/two", b"").unwrap();
    store.put("c", &[7; 100_000]).unwrap();
    assert_eq!(&store.get("a/one").unwrap()[..], b"hello");
    assert_eq!(&store.get_range("a/one", 1..4).unwrap()[..], b"ell");
    assert!(store.get_range("a/one", 2..2).unwrap().is_empty());
    assert!(store.get_range("a/one", 3..9).is_err());
    assert_eq!(store.size("c").unwrap(), 100_000);
    assert_eq!(store.get("a/b/two").unwrap().len(), 0);
    let names = |prefix| store.list(prefix).unwrap().into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(names(""), ["a/b/two", "a/one", "c"]);
    assert_eq!(names("a/"), ["a/b/two", "a/one"]);
    assert_eq!(store.list("a/o").unwrap(), [("a/one".to_owned(), 5)]);
    store.put("a/one", b"again").unwrap();
    assert_eq!(&store.get("a/one").unwrap()[..], b"again");
    assert!(!store.put_new("a/one", b"other").unwrap());
    assert_eq!(store.find("a/one").unwrap().as_deref(), Some(&b"again"[..]));
    store.delete("a/one").unwrap();
    store.delete("a/one").unwrap();
    assert_eq!(store.find("a/one").unwrap(), None);
    assert!(store.put_new("new", b"one").unwrap() && !store.put_new("new", b"two").unwrap());
    assert_eq!(&store.get("new").unwrap()[..], b"one");
    store.delete("new").unwrap();
    assert!(store.get("a/one").is_err() && store.size("a/one").is_err());
    for bad in ["", "/a", "a//b", "../up", "a/.hidden", "a b"] {
        assert_eq!(store.put(bad, b"").unwrap_err().kind(), StorageErrorKind::Unsupported, "{bad:?}");
    }
}

#[test]
fn stores_keep_the_rules() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("deep/er");
    let url = root.to_str().unwrap();
    exercise(&*open_store(&Env::os(), url).unwrap());
    assert_eq!(open_store(&Env::os(), &format!("file://{url}")).unwrap().list("").unwrap().len(), 2);
    exercise(&*open_store(&Env::os(), "memory:///some/prefix").unwrap());
    assert!(open_store(&Env::os(), "gopher://x").is_err());
}

#[test]
fn steps_make_the_same_object() {
    let dir = tempfile::tempdir().unwrap();
    let local = open_store(&Env::os(), dir.path().to_str().unwrap()).unwrap();
    let remote = open_store(&Env::os(), "memory:///").unwrap();
    for (store, steps) in [(local, vec![512 << 10, 512 << 10, 1000]), (remote, vec![(1 << 20) + 1000])] {
        let bytes: Vec<u8> = (0..(1 << 20) + 1000).map(|i| (i % 251) as u8).collect();
        let mut written = Vec::new();
        store.put_in_steps("x", &bytes, &mut |step| written.push(step)).unwrap();
        assert_eq!(written, steps);
        assert_eq!(&store.get("x").unwrap()[..], &bytes[..]);
        store.put_in_steps("empty", b"", &mut |_| {}).unwrap();
        assert_eq!(store.size("empty").unwrap(), 0);
    }
}

#[test]
fn object_stores_serve_threads_of_another_runtime() {
    let store = open_store(&Env::os(), "memory:///").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        store.put("x", b"1").unwrap();
        assert_eq!(&store.get("x").unwrap()[..], b"1");
        drop(store);
    });
}

/// A disk on which the n-th operation that changes something fails.
struct Failing {
    left: AtomicUsize,
    full: AtomicBool,
}

impl Failing {
    fn step(&self) -> io::Result<()> {
        let failed =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err();
        if !failed {
            return Ok(());
        }
        let full = self.full.load(Ordering::SeqCst);
        Err(if full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other }.into())
    }
}

struct FailingDisk(Arc<Failing>);
struct FailingFile(Arc<Failing>, Arc<dyn DiskFile>);

impl Disk for FailingDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.0.step()?;
        Ok(Arc::new(FailingFile(self.0.clone(), OsDisk.create(path)?)))
    }
    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        OsDisk.open(path, write)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.step()?;
        OsDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        OsDisk.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.step()?;
        OsDisk.create_dir_all(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.step()?;
        OsDisk.sync_dir(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        OsDisk.exists(path)
    }
    fn lock(&self, dir: &Path, name: Option<&str>) -> io::Result<Box<dyn DirectoryLock>> {
        OsDisk.lock(dir, name)
    }
}

impl DiskFile for FailingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.1.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.step()?;
        self.1.write_at(buf, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.step()?;
        self.1.sync_data()
    }
    fn size(&self) -> io::Result<u64> {
        self.1.size()
    }
    fn set_size(&self, size: u64) -> io::Result<()> {
        self.1.set_size(size)
    }
    fn allocate(&self, size: u64) -> io::Result<()> {
        self.0.step()?;
        self.1.allocate(size)
    }
}

#[test]
fn a_failing_disk_leaves_the_old_object_or_the_new_one() {
    for full in [false, true] {
        for steps in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let ok = LocalStore::open(Arc::new(OsDisk), dir.path().into()).unwrap();
            ok.put("dir/x", b"old").unwrap();
            let failing =
                Arc::new(Failing { left: AtomicUsize::new(usize::MAX), full: AtomicBool::new(full) });
            let store = LocalStore::open(Arc::new(FailingDisk(failing.clone())), dir.path().into()).unwrap();
            failing.left.store(steps, Ordering::SeqCst);
            let result = store.put("dir/x", b"new").and_then(|()| store.put("other/y", b"more"));
            failing.left.store(usize::MAX, Ordering::SeqCst);
            let found = store.get("dir/x").unwrap();
            assert!(&found[..] == b"old" || &found[..] == b"new");
            match result {
                Ok(()) => assert_eq!(&store.get("other/y").unwrap()[..], b"more"),
                Err(e) => {
                    let kind = if full { StorageErrorKind::NoSpace } else { StorageErrorKind::Io };
                    assert_eq!(e.kind(), kind, "{e}");
                }
            }
            for (key, _) in store.list("").unwrap() {
                assert!(["dir/x", "other/y"].contains(&&key[..]), "{key} is debris");
            }
            assert!(OsDisk.list(&dir.path().join("dir")).unwrap().iter().all(|name| name == "x.blob"));
        }
    }
}

#[test]
fn what_a_crash_left_unfinished_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let open = || LocalStore::open(Arc::new(OsDisk), dir.path().into()).unwrap();
    open().put("a/x", b"1").unwrap();
    OsDisk.create(&dir.path().join("a/y.0.tmp")).unwrap();
    let store = open();
    assert_eq!(store.list("").unwrap().len(), 1);
    assert_eq!(OsDisk.list(&dir.path().join("a")).unwrap(), ["x.blob"]);
    store.put("a/y", b"2").unwrap();
}

fn column(rows: usize) -> EncodedColumn {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|i| i * i % 251)));
    let chunk = encode_column(ColdType::Int64, &values).unwrap();
    EncodedColumn::parse(&chunk.meta, rows, &chunk.bytes).unwrap()
}

/// Blocks come and go where all that is in use fits: nobody is evicted, and the queues are no longer than what is there.
#[test]
fn columns_of_blocks_that_are_gone_leave_the_queues() {
    let cache = BlockCache::new(1 << 30);
    let get = |block: u64, slots: &Arc<[Slot]>| {
        cache.get_or_load(BlockId(block), slots, 0, || Ok(column(10))).unwrap();
    };
    let stays = Slot::for_columns(1);
    get(0, &stays);
    for block in 1..20_000 {
        get(block, &Slot::for_columns(1));
        cache.remove_block(BlockId(block), 1);
    }
    assert_eq!(cache.stats().entries, 1);
    assert!(cache.queued() < 2_000, "{} keys for one column", cache.queued());
    // Its place in the queue is kept.
    let misses = cache.stats().misses;
    get(0, &stays);
    assert_eq!(cache.stats().misses, misses);
    cache.set_capacity(0);
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn the_cache_stays_within_its_bytes_and_keeps_what_is_used_beside_a_scan() {
    let one = column(2000).size();
    let cache = BlockCache::new(one * 16 * 16);
    let readers = RefCell::new(HashMap::new());
    let get = |block: u64| {
        let mut loaded = false;
        let slots = readers.borrow_mut().entry(block).or_insert_with(|| Slot::for_columns(1)).clone();
        let load = || {
            loaded = true;
            Ok(column(2000))
        };
        cache.get_or_load(BlockId(block), &slots, 0, load).unwrap();
        loaded
    };
    let (mut hot_misses, mut cold) = (0, 1000);
    for round in 0..200 {
        for hot in 0..40 {
            hot_misses += usize::from(get(hot) && round > 10);
        }
        for _ in 0..100 {
            get(cold);
            cold += 1;
        }
        assert!(cache.stats().size_bytes <= one * 16 * 16);
    }
    assert!(hot_misses < 200, "{hot_misses} of 7600 hot accesses missed");
    let stats = cache.stats();
    assert!(stats.misses > 20_000 && stats.entries > 100);
    for block in 0..cold {
        cache.remove_block(BlockId(block), 1);
    }
    assert_eq!((cache.stats().entries, cache.stats().size_bytes), (0, 0));
    assert!(get(0));
}

#[test]
fn a_failed_load_is_not_kept_and_giants_stay_for_their_block_alone() {
    let cache = BlockCache::new(16 * 1000);
    let fail = || Err(StorageError::corrupt("x", "y"));
    let slots = Slot::for_columns(1);
    assert!(cache.get_or_load(BlockId(1), &slots, 0, fail).is_err());
    let (first, second) = (Slot::for_columns(2), Slot::for_columns(1));
    let loads = std::cell::Cell::new(0);
    let get = |block, slots: &Arc<[Slot]>, column_number| {
        let load = || {
            loads.set(loads.get() + 1);
            Ok(column(60_000))
        };
        cache.get_or_load(BlockId(block), slots, column_number, load).unwrap();
        loads.get()
    };
    for _ in 0..3 {
        assert_eq!(get(1, &first, 0).max(get(1, &first, 1)), 2, "a row after the other of one block");
    }
    assert_eq!(cache.stats().entries, 2);
    assert_eq!(get(2, &second, 0), 3);
    assert_eq!(cache.stats().entries, 1);
    assert_eq!(get(1, &first, 0), 4, "another block's took its place");
    cache.remove_block(BlockId(1), 2);
    assert_eq!(cache.stats().entries, 0);
    assert_eq!(get(1, &first, 0), 5);
    cache.set_capacity(16 * 1000);
    assert_eq!(cache.stats().entries, 0, "what is over the bound goes at once");
}
