//! A file of the simulated disk: its bytes now, its durable bytes, and every state its sectors had in between.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::DiskFile;
use super::world::World;
use super::{DiskOp, SECTOR};

/// What a choice is made from at power loss: which of a number of states since the last sync is kept.
pub(super) trait Fate {
    /// How many of the changes with these serial numbers (ascending) took effect.
    fn kept(&mut self, serials: &mut dyn ExactSizeIterator<Item = u64>) -> usize;
    /// How many of a sector's bytes the write after the last that took effect has changed all the same.
    fn torn(&mut self, len: usize) -> usize;
}

/// The contents of a sector after the write with this serial number.
type SectorState = (u64, Box<[u8]>);

/// State of a file, shared by all names and handles.
#[derive(Default, Clone)]
pub(super) struct Inode {
    pub now: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last sync: their contents after each write, with its serial number.
    sectors: BTreeMap<usize, Vec<SectorState>>,
    /// Lengths since the last sync.
    sizes: Vec<(u64, usize)>,
}

impl Inode {
    pub fn write(&mut self, serial: u64, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if bytes.is_empty() {
            return;
        }
        if end > self.now.len() {
            self.resize(serial, end);
        }
        self.now[offset..end].copy_from_slice(bytes);
        for sector in offset / SECTOR..=(end - 1) / SECTOR {
            let content = sector_of(&self.now, sector).into();
            self.sectors.entry(sector).or_default().push((serial, content));
        }
    }

    pub fn resize(&mut self, serial: u64, size: usize) {
        self.sizes.push((serial, size));
        let cut = size < self.now.len();
        self.now.resize(size, 0);
        if cut {
            // What was cut off must not come back when the file grows again.
            self.sectors.split_off(&size.div_ceil(SECTOR));
            let sector = size / SECTOR;
            let content = sector_of(&self.now, sector).into();
            self.sectors.entry(sector).or_default().push((serial, content));
        }
    }

    pub fn sync(&mut self) {
        self.settle_size();
        for &sector in self.sectors.keys() {
            put_sector(&mut self.durable, sector, sector_of(&self.now, sector));
        }
        self.forget();
    }

    /// The changes count as written back, but were not.
    pub fn fail_sync(&mut self) {
        self.settle_size();
        self.forget();
    }

    fn settle_size(&mut self) {
        let smallest = self.sizes.iter().map(|&(_, size)| size).min();
        self.durable.truncate(smallest.unwrap_or(self.durable.len()));
        self.durable.resize(self.now.len(), 0);
    }

    fn forget(&mut self) {
        self.sectors.clear();
        self.sizes.clear();
    }

    pub fn crash(&self, fate: &mut dyn Fate) -> Self {
        let mut after = self.durable.clone();
        let kept = fate.kept(&mut self.sizes.iter().map(|&(serial, _)| serial));
        // The smallest length on the way there decides what of the durable bytes is left.
        let on_the_way = self.sizes[..kept].iter().map(|&(_, size)| size);
        after.truncate(on_the_way.min().unwrap_or(after.len()));
        let size = kept.checked_sub(1).map_or(self.durable.len(), |last| self.sizes[last].1);
        after.resize(size, 0);
        for (&sector, states) in &self.sectors {
            let kept = fate.kept(&mut states.iter().map(|&(serial, _)| serial));
            if let Some(last) = kept.checked_sub(1) {
                put_sector(&mut after, sector, &states[last].1);
            }
            if let Some((_, next)) = states.get(kept) {
                let torn = fate.torn(next.len());
                put_sector(&mut after, sector, &next[..torn]);
            }
        }
        Self::durably(after)
    }

    /// Serial number of the oldest change that is not durable.
    pub fn first_pending_serial(&self) -> Option<u64> {
        let in_sectors = self.sectors.values().filter_map(|states| states.first()).map(|&(serial, _)| serial);
        in_sectors.chain(self.sizes.first().map(|&(serial, _)| serial)).min()
    }

    pub fn durably(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), durable: bytes, ..Self::default() }
    }
}

fn sector_of(bytes: &[u8], sector: usize) -> &[u8] {
    let from = (sector * SECTOR).min(bytes.len());
    &bytes[from..(from + SECTOR).min(bytes.len())]
}

/// Overwrites as much of the sector as the file has.
fn put_sector(bytes: &mut [u8], sector: usize, content: &[u8]) {
    let from = (sector * SECTOR).min(bytes.len());
    let len = content.len().min(bytes.len() - from);
    bytes[from..from + len].copy_from_slice(&content[..len]);
}

/// A handle.
pub(super) struct SimFile {
    pub world: Arc<Mutex<World>>,
    pub inode: u64,
    /// Under which it was opened.
    pub path: Arc<Path>,
    pub writable: bool,
}

impl SimFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(rustix::io::Errno::BADF.into()) }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut world = self.world.lock();
        world.begin(DiskOp::Read, &self.path)?;
        let now = &world.inode(self.inode).now;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = now.get(from..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut world = self.world.lock();
        let offset = offset as usize;
        if let Err(e) = world.begin(DiskOp::Write, &self.path) {
            if !world.cut {
                world.write(self.inode, &buf[..buf.len() / 2], offset);
            }
            return Err(e);
        }
        world.reserve(self.inode, offset + buf.len())?;
        world.write(self.inode, buf, offset);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut world = self.world.lock();
        let released = world.released.clone();
        while world.held.as_ref().is_some_and(|held| self.path.starts_with(held)) {
            released.wait(&mut world);
        }
        let begun = world.begin(DiskOp::Sync, &self.path);
        let cut = world.cut;
        let inode = world.inode(self.inode);
        match &begun {
            Ok(()) => inode.sync(),
            Err(_) if !cut => inode.fail_sync(),
            Err(_) => {}
        }
        begun
    }

    fn size(&self) -> io::Result<u64> {
        let mut world = self.world.lock();
        world.check_power()?;
        Ok(world.inode(self.inode).now.len() as u64)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut world = self.world.lock();
        world.begin(DiskOp::Resize, &self.path)?;
        world.reserve(self.inode, size as usize)?;
        world.resize(self.inode, size as usize);
        Ok(())
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut world = self.world.lock();
        world.begin(DiskOp::Resize, &self.path)?;
        world.reserve(self.inode, size as usize)?;
        if world.inode(self.inode).now.len() < size as usize {
            world.resize(self.inode, size as usize);
        }
        Ok(())
    }
}
