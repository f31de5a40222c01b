//! The simulated disk, slow: while a call is on its way, other threads go on.

use std::io;
use std::path::Path;
use std::sync::Arc;

use avocet_base::env::{DirectoryLock, Disk, DiskFile, SimDisk};
use shuttle::thread::yield_now;

use crate::{Rule, breaks};

pub struct SlowDisk(pub SimDisk);

struct SlowFile(Arc<dyn DiskFile>);

/// Others go on before a call takes effect, and before it returns.
fn slowly<T>(call: impl FnOnce() -> T) -> T {
    yield_now();
    let result = call();
    yield_now();
    result
}

impl Disk for SlowDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        slowly(|| self.0.create(path)).map(|file| Arc::new(SlowFile(file)) as Arc<dyn DiskFile>)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        self.0.open(path, write).map(|file| Arc::new(SlowFile(file)) as Arc<dyn DiskFile>)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        slowly(|| self.0.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        slowly(|| self.0.remove(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        slowly(|| self.0.sync_dir(dir))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn lock(&self, dir: &Path, name: Option<&str>) -> io::Result<Box<dyn DirectoryLock>> {
        self.0.lock(dir, name)
    }
}

impl DiskFile for SlowFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        slowly(|| self.0.write_at(buf, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        slowly(|| if breaks(Rule::SyncBeforeTelling) { Ok(()) } else { self.0.sync_data() })
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_size(size)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        slowly(|| self.0.allocate(size))
    }
}
