//! The simulated disk as a whole: names, planned failures, power.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Condvar;

use super::file::{Fate, Inode};
use super::{DiskError, DiskOp};

#[derive(Default)]
pub(super) struct World {
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    dirs: BTreeSet<PathBuf>,
    /// Changes of names that no sync of their directory covers yet, in order.
    pending: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// Number of the next change; orders changes of files and names alike.
    serial: u64,
    /// By kind: the path of every call so far.
    calls: HashMap<DiskOp, Vec<Arc<Path>>>,
    /// By kind and count: how that call fails.
    failures: HashMap<(DiskOp, u64), DiskError>,
    pub syncs: u64,
    pub cut_at_sync: Option<u64>,
    pub cut: bool,
    pub capacity: Option<u64>,
    /// Syncs of files below this path wait.
    pub held: Option<PathBuf>,
    /// Whoever holds syncs lets them go.
    pub released: Arc<Condvar>,
}

#[derive(Clone)]
struct NameChange {
    serial: u64,
    kind: NameChangeKind,
}

#[derive(Clone)]
enum NameChangeKind {
    Create(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl NameChange {
    /// The directory whose sync makes it durable; of a rename, that of the new name.
    fn dir(&self) -> &Path {
        let (NameChangeKind::Create(path, _)
        | NameChangeKind::Rename(_, path)
        | NameChangeKind::Remove(path)) = &self.kind;
        parent(path)
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match &self.kind {
            NameChangeKind::Create(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChangeKind::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            NameChangeKind::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn power_is_off() -> io::Error {
    io::Error::other("power is off (simulated)")
}

impl World {
    pub fn check_power(&self) -> io::Result<()> {
        if self.cut { Err(power_is_off()) } else { Ok(()) }
    }

    /// Counts a call, and fails if it is to fail.
    pub fn begin(&mut self, op: DiskOp, path: &Path) -> io::Result<()> {
        self.check_power()?;
        let calls = self.calls.entry(op).or_default();
        calls.push(path.into());
        let call = (op, calls.len() as u64);
        if matches!(op, DiskOp::Sync | DiskOp::SyncDir) {
            self.syncs += 1;
            if self.cut_at_sync == Some(self.syncs) {
                self.cut = true;
                return Err(power_is_off());
            }
        }
        self.failures.remove(&call).map_or(Ok(()), |error| Err(error.to_io()))
    }

    pub fn count(&self, op: DiskOp) -> u64 {
        self.calls(op).len() as u64
    }

    pub fn calls(&self, op: DiskOp) -> &[Arc<Path>] {
        self.calls.get(&op).map_or(&[], |calls| calls)
    }

    pub fn plan_failure(&mut self, op: DiskOp, n: u64, error: DiskError) {
        assert!(n > 0, "the next call is number 1");
        self.failures.insert((op, self.count(op) + n), error);
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub fn inode(&mut self, id: u64) -> &mut Inode {
        self.inodes.get_mut(&id).expect("inodes stay for the life of the disk")
    }

    pub fn write(&mut self, inode: u64, bytes: &[u8], offset: usize) {
        let serial = self.next_serial();
        self.inode(inode).write(serial, bytes, offset);
    }

    pub fn resize(&mut self, inode: u64, size: usize) {
        let serial = self.next_serial();
        self.inode(inode).resize(serial, size);
    }

    pub fn used(&self) -> u64 {
        self.names.values().map(|id| self.inodes[id].now.len() as u64).sum()
    }

    /// Fails if the disk has no room for the file to be `size` long.
    pub fn reserve(&mut self, inode: u64, size: usize) -> io::Result<()> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let more = size.saturating_sub(self.inode(inode).now.len()) as u64;
        if more > 0 && self.used() + more > capacity {
            return Err(DiskError::NoSpace.to_io());
        }
        Ok(())
    }

    pub fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.begin(DiskOp::Create, path)?;
        if self.names.contains_key(path) || self.dirs.contains(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_dir(parent(path))?;
        let inode = self.inodes.len() as u64;
        self.inodes.insert(inode, Inode::default());
        self.change(NameChangeKind::Create(path.to_path_buf(), inode));
        Ok(inode)
    }

    pub fn open(&mut self, path: &Path) -> io::Result<u64> {
        self.begin(DiskOp::Open, path)?;
        self.find(path)
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(DiskOp::Rename, from)?;
        self.find(from)?;
        self.check_dir(parent(to))?;
        if from != to {
            self.change(NameChangeKind::Rename(from.to_path_buf(), to.to_path_buf()));
        }
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.begin(DiskOp::Remove, path)?;
        self.find(path)?;
        self.change(NameChangeKind::Remove(path.to_path_buf()));
        Ok(())
    }

    pub fn list(&mut self, dir: &Path) -> io::Result<Vec<String>> {
        self.check_power()?;
        let entries = self.names.keys().chain(&self.dirs).filter(|path| path.parent() == Some(dir));
        let mut names: Vec<String> =
            entries.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
        names.sort_unstable();
        Ok(names)
    }

    pub fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        self.check_power()?;
        if dir.ancestors().any(|path| self.names.contains_key(path)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.dirs.extend(dir.ancestors().map(Path::to_path_buf));
        Ok(())
    }

    pub fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.begin(DiskOp::SyncDir, dir)?;
        self.check_dir(dir)?;
        let (synced, pending) = self.pending.drain(..).partition(|change| change.dir() == dir);
        self.pending = pending;
        let synced: Vec<NameChange> = synced;
        synced.iter().for_each(|change| change.apply(&mut self.durable_names));
        Ok(())
    }

    pub fn exists(&self, path: &Path) -> io::Result<bool> {
        self.check_power()?;
        Ok(self.names.contains_key(path) || self.dirs.contains(path))
    }

    /// A directory, or a file that is there.
    pub fn lock_path(&mut self, path: &Path) -> io::Result<()> {
        self.check_power()?;
        if self.locks.contains(path) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.locks.insert(path.to_path_buf());
        Ok(())
    }

    pub fn unlock_path(&mut self, path: &Path) {
        self.locks.remove(path);
    }

    pub fn contents(&self, path: &Path) -> io::Result<&[u8]> {
        Ok(&self.inodes[&self.find(path)?].now)
    }

    pub fn tamper(&mut self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let inode = self.find(path)?;
        let inode = self.inode(inode);
        let mut bytes = std::mem::take(&mut inode.now);
        change(&mut bytes);
        *inode = Inode::durably(bytes);
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn check_dir(&self, dir: &Path) -> io::Result<()> {
        if self.dirs.contains(dir) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn change(&mut self, kind: NameChangeKind) {
        let change = NameChange { serial: self.next_serial(), kind };
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    /// The disk after the process ended.
    pub fn kill(&self) -> Self {
        Self {
            inodes: self.inodes.clone(),
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            dirs: self.dirs.clone(),
            pending: self.pending.clone(),
            serial: self.serial,
            capacity: self.capacity,
            ..Self::default()
        }
    }

    /// The disk after power loss.
    pub fn crash(&self, seed: u64) -> Self {
        let mut fate: Box<dyn Fate> = match seed {
            0 => Box::new(UpTo(0)),
            1 => Box::new(UpTo(u64::MAX)),
            _ => {
                let mut random = SplitMix(seed);
                let moment = self
                    .first_pending_serial()
                    .map_or(0, |first| first + random.below(self.serial - first + 1));
                match seed % 4 {
                    0 | 2 => Box::new(UpTo(moment)),
                    1 => Box::new(Each { random, tears: false }),
                    _ => Box::new(Each { random, tears: true }),
                }
            }
        };
        let names = self.crash_names(&mut *fate);
        let kept: BTreeSet<u64> = names.values().copied().collect();
        // Numbers stay dense, since the next one is their count.
        let renumbered: HashMap<u64, u64> = kept.iter().copied().zip(0..).collect();
        let inodes = kept.iter().map(|old| (renumbered[old], self.inodes[old].crash(&mut *fate))).collect();
        let names: BTreeMap<PathBuf, u64> =
            names.into_iter().map(|(path, old)| (path, renumbered[&old])).collect();
        Self { inodes, durable_names: names.clone(), names, dirs: self.dirs.clone(), ..Self::default() }
    }

    fn crash_names(&self, fate: &mut dyn Fate) -> BTreeMap<PathBuf, u64> {
        let mut names = self.durable_names.clone();
        let dirs: BTreeSet<&Path> = self.pending.iter().map(NameChange::dir).collect();
        for dir in dirs {
            let changes: Vec<&NameChange> =
                self.pending.iter().filter(|change| change.dir() == dir).collect();
            let kept = fate.kept(&mut changes.iter().map(|change| change.serial));
            changes[..kept].iter().for_each(|change| change.apply(&mut names));
        }
        names
    }

    fn first_pending_serial(&self) -> Option<u64> {
        let in_files = self.inodes.values().filter_map(Inode::first_pending_serial);
        in_files.chain(self.pending.first().map(|change| change.serial)).min()
    }
}

/// Everything up to a serial number took effect.
struct UpTo(u64);

impl Fate for UpTo {
    fn kept(&mut self, serials: &mut dyn ExactSizeIterator<Item = u64>) -> usize {
        serials.take_while(|&serial| serial <= self.0).count()
    }

    fn torn(&mut self, _len: usize) -> usize {
        0
    }
}

/// Each choice stands alone.
struct Each {
    random: SplitMix,
    tears: bool,
}

impl Fate for Each {
    fn kept(&mut self, serials: &mut dyn ExactSizeIterator<Item = u64>) -> usize {
        self.random.below(serials.len() as u64 + 1) as usize
    }

    fn torn(&mut self, len: usize) -> usize {
        if self.tears { self.random.below(len as u64 + 1) as usize } else { 0 }
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
}
