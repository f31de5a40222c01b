//! Segment files before and after their use, and which are in use now.
//!
//! A spare is `spare.<n>`: allocated, of any content. Stale frames in a recycled one are harmless, since a
//! frame's checksum covers its place. A spare becomes a segment in this order, each step durable before the next:
//! header written → renamed to the LSN → first group written.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avocet_base::env::DiskFile;
use avocet_base::{Env, Lsn};

use crate::error::{Error, Result};
use crate::segment::{HEADER_BLOCK, OpenSegment, SegmentHeader, segment_path};
use crate::sync::Mutex;

pub(crate) const SPARE_PREFIX: &str = "spare.";
/// New segments are filled in steps of this.
const FILL_STEP: usize = 1 << 20;

/// An allocated file that is not part of the log yet.
pub(crate) struct Spare {
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// Bytes for frames.
    pub room: u64,
}

impl Spare {
    /// Creates and allocates a file, durably except for its name. Leaves none behind on an error.
    pub fn create(env: &Env, dir: &Path, no: u64, room: u64, prefill: bool) -> Result<Self> {
        let path = dir.join(format!("{SPARE_PREFIX}{no}"));
        let file = env.disk.create(&path).map_err(Error::io("create", &path))?;
        let spare = Self { path, file, room };
        match spare.allocate(prefill) {
            Ok(()) => Ok(spare),
            Err(e) => {
                // The first error is the one to tell; what stays behind is removed at the next open.
                let _ = env.disk.remove(&spare.path);
                Err(e)
            }
        }
    }

    fn allocate(&self, prefill: bool) -> Result<()> {
        let size = HEADER_BLOCK + self.room;
        self.file.allocate(size).map_err(Error::io("allocate", &self.path))?;
        let zeros = vec![0; FILL_STEP.min(size as usize)];
        let mut at = 0;
        while prefill && at < size {
            let step = (zeros.len() as u64).min(size - at);
            self.file.write_at(&zeros[..step as usize], at).map_err(Error::io("fill", &self.path))?;
            at += step;
        }
        self.file.sync_data().map_err(Error::io("sync", &self.path))
    }

    /// Makes it the segment that `header` describes.
    pub fn install(self, env: &Env, dir: &Path, header: SegmentHeader) -> Result<OpenSegment> {
        let path = segment_path(dir, header.start);
        self.file.write_at(&header.encode(), 0).map_err(Error::io("write", &self.path))?;
        self.file.sync_data().map_err(Error::io("sync", &self.path))?;
        env.disk.rename(&self.path, &path).map_err(Error::io("rename", &self.path))?;
        env.disk.sync_dir(dir).map_err(Error::io("sync", dir))?;
        Ok(OpenSegment { header, path, file: self.file, len: header.room })
    }
}

/// The spares that are ready, and what the segment maker is to do. Part of the writer's intake.
#[derive(Default)]
pub(crate) struct Spares {
    pub ready: Vec<Spare>,
    /// Room that an appender waits for, 0 if none does.
    wanted: u64,
    /// Why the last wanted one could not be made.
    failed: Option<Error>,
    /// After a failure none is made in advance, until something changes.
    pub gave_up: bool,
    next_no: u64,
}

impl Spares {
    /// Takes over the spares of an earlier run that are whole, and removes the others.
    pub fn adopt(env: &Env, dir: &Path, room: u64) -> Result<Self> {
        let mut spares = Self::default();
        for name in env.disk.list(dir).map_err(Error::io("list", dir))? {
            let Some(no) = name.strip_prefix(SPARE_PREFIX) else { continue };
            let path = dir.join(&name);
            spares.next_no = spares.next_no.max(no.parse::<u64>().map_or(0, |no| no.saturating_add(1)));
            let file = env.disk.open(&path, true).map_err(Error::io("open", &path))?;
            let size = file.size().map_err(Error::io("read the size of", &path))?;
            let spare = Spare { path, file, room };
            // A crash may have come between the allocation and its sync.
            if size == HEADER_BLOCK + room && spare.allocate(false).is_ok() {
                spares.ready.push(spare);
            } else {
                env.disk.remove(&spare.path).map_err(Error::io("remove", &spare.path))?;
            }
        }
        Ok(spares)
    }

    /// Whether there is one with room for a frame of `len` bytes.
    pub fn fits(&self, len: u64) -> bool {
        self.ready.iter().any(|spare| spare.room >= len)
    }

    /// A spare with room for a frame of `len` bytes.
    pub fn take(&mut self, len: u64) -> Option<Spare> {
        let i = self.ready.iter().position(|spare| spare.room >= len)?;
        self.gave_up = false;
        Some(self.ready.swap_remove(i))
    }

    /// Asks for a spare with room for `len` bytes; returns why it could not be made, unless that is
    /// from before the asking (`first`).
    pub fn ask(&mut self, len: u64, first: bool) -> Option<Error> {
        let failed = self.failed.take().filter(|_| !first);
        if failed.is_none() {
            self.wanted = self.wanted.max(len);
        }
        failed
    }

    pub fn take_no(&mut self) -> u64 {
        self.next_no += 1;
        self.next_no - 1
    }

    /// Room of the spare to be made next, if one is to be made.
    pub fn due(&self, room: u64) -> Option<u64> {
        let in_advance = self.ready.is_empty() && !self.gave_up;
        (self.wanted > 0 || in_advance).then_some(room.max(self.wanted.next_multiple_of(HEADER_BLOCK)))
    }

    pub fn made(&mut self, result: Result<Spare>) {
        self.wanted = 0;
        self.gave_up = result.is_err();
        match result {
            Ok(spare) => self.ready.push(spare),
            Err(reason) => self.failed = Some(reason),
        }
    }
}

/// Starts of the segments in use, ascending; the last is being written.
pub(crate) struct Segments {
    pub starts: Mutex<VecDeque<Lsn>>,
    /// Held by whoever truncates.
    pub truncating: Mutex<()>,
    /// The one being written, and its path.
    written: Mutex<(PathBuf, Arc<dyn DiskFile>)>,
}

impl Segments {
    /// The last of `starts` is `written`.
    pub fn new(starts: Vec<Lsn>, written: &OpenSegment) -> Self {
        let written = Mutex::new((written.path.clone(), written.file.clone()));
        Self { starts: Mutex::new(starts.into()), truncating: Mutex::new(()), written }
    }

    /// A segment begins, and is the one that is written from now on.
    pub fn push(&self, segment: &OpenSegment) {
        // First, so that the one before cannot be given up while it is looked at as the one that is written.
        *self.written.lock() = (segment.path.clone(), segment.file.clone());
        self.starts.lock().push_back(segment.header.start);
    }

    /// Whether all segments are where they belong.
    pub fn are_in_place(&self, env: &Env, dir: &Path) -> Result<bool> {
        {
            let written = self.written.lock();
            let (path, file) = &*written;
            if !file.is_at(path).map_err(Error::io("look for", path))? {
                return Ok(false);
            }
        }
        let starts: Vec<Lsn> = self.starts.lock().iter().copied().collect();
        for start in starts {
            let path = segment_path(dir, start);
            let is_there = || env.disk.exists(&path).map_err(Error::io("look for", &path));
            if is_there()? {
                continue;
            }
            // Unless it has just been given up.
            let _nobody_truncates = self.truncating.lock();
            if self.starts.lock().contains(&start) && !is_there()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn first(&self) -> Lsn {
        *self.starts.lock().front().expect("the segment being written stays")
    }

    /// The oldest segment, if all of it lies before `lsn`.
    pub fn oldest_before(&self, lsn: Lsn) -> Option<Lsn> {
        let starts = self.starts.lock();
        starts.get(1).is_some_and(|&next| next <= lsn).then(|| starts[0])
    }
}
