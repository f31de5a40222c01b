//! The real operating system.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Clock, DirectoryLock, Disk, DiskFile};

/// The file system of this machine. What is made is for the process's own user alone: it holds everybody's rows.
pub struct OsDisk;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

impl Disk for OsDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
        Ok(Arc::new(OsFile(file)))
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OsFile(OpenOptions::new().read(true).write(write).open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut names = entries
            .map(|e| Ok(e?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // The parent of a relative name of one part is the working directory.
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        File::open(dir)?.sync_all()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn lock(&self, dir: &Path, name: Option<&str>) -> io::Result<Box<dyn DirectoryLock>> {
        let directory = File::open(dir)?;
        lock(&directory)?;
        let file = match name {
            Some(name) => {
                let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
                let file = options.open(dir.join(name))?;
                lock(&file)?;
                Some(file)
            }
            None => None,
        };
        Ok(Box::new(OsLock { held: vec![(dir.to_path_buf(), directory)], _file: file }))
    }
}

fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
}

struct OsLock {
    /// The directory, then files and directories in it.
    held: Vec<(PathBuf, File)>,
    /// For servers that know of no other lock.
    _file: Option<File>,
}

impl DirectoryLock for OsLock {
    fn hold(&mut self, name: &str) -> io::Result<()> {
        let path = self.held[0].0.join(name);
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        lock(&file)?;
        self.held.push((path, file));
        Ok(())
    }

    fn watch(&mut self, name: &str) -> io::Result<()> {
        let path = self.held[0].0.join(name);
        let directory = File::open(&path)?;
        self.held.push((path, directory));
        Ok(())
    }

    fn is_in_place(&self) -> io::Result<bool> {
        for (path, file) in &self.held {
            if !leads_to(path, file)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(e) => Err(e),
    }
}

struct OsFile(File);

impl DiskFile for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, size) {
            Ok(()) => Ok(()),
            // A file system without fallocate loses only the early error on a full disk.
            Err(rustix::io::Errno::OPNOTSUPP) if self.size()? < size => self.set_size(size),
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        leads_to(path, &self.0)
    }
}

/// The clock of this machine.
pub struct OsClock {
    start: Instant,
}

impl OsClock {
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for OsClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for OsClock {
    fn wall_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}
