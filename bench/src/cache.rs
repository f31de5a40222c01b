//! Where things live that are fetched or generated: `~/.cache/avocet` (or `$AVOCET_CACHE`), never the repository.
//! What is expensive to make is made in a scratch folder and renamed into place, so that a folder that is there is whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, IoContext, Result};

/// The root of everything cached.
pub fn root() -> PathBuf {
    if let Some(dir) = std::env::var_os("AVOCET_CACHE") {
        return PathBuf::from(dir);
    }
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
    home.join(".cache/avocet")
}

/// Returns `root()/name`, having `make` fill a scratch folder that becomes it if it is not there yet.
pub fn folder(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let place = root().join(name);
    if place.exists() {
        return Ok(place);
    }
    let scratch = root().join(format!("{name}.making.{}", std::process::id()));
    fs::create_dir_all(&scratch).context(|| format!("creating {}", scratch.display()))?;
    let made = make(&scratch).and_then(|()| match fs::rename(&scratch, &place) {
        Err(_) if place.exists() => Ok(()),
        renamed => renamed.context(|| format!("renaming {}", scratch.display())),
    });
    if scratch.exists() {
        fs::remove_dir_all(&scratch).context(|| format!("removing {}", scratch.display()))?;
    }
    made.map(|()| place)
}

/// `$AVOCET_SCRATCH`.
fn wanted_base() -> Option<PathBuf> {
    std::env::var_os("AVOCET_SCRATCH").map(PathBuf::from)
}

/// A folder for data directories of one run, removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder under `$AVOCET_SCRATCH`, or beside the cache: a real disk, since `/tmp` may be memory.
    pub fn new(label: &str) -> Result<Scratch> {
        Scratch::below(&wanted_base().unwrap_or_else(|| root().join("scratch")), label)
    }

    /// A folder in memory, if there is room for `bytes`, so that no disk is measured; otherwise as [`Self::new`].
    pub fn in_memory(label: &str, bytes: u64) -> Result<Scratch> {
        let shared = Path::new("/dev/shm");
        let free = rustix::fs::statvfs(shared).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
        match wanted_base() {
            None if free >= bytes => Scratch::below(shared, label),
            _ => Scratch::new(label),
        }
    }

    fn below(base: &Path, label: &str) -> Result<Scratch> {
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("the clock is past 1970")
            .subsec_nanos();
        let dir = base.join(format!("{label}-{}-{nanos:09}", std::process::id()));
        fs::create_dir_all(&dir).context(|| format!("creating {}", dir.display()))?;
        Ok(Scratch(dir))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    /// `$AVOCET_KEEP` keeps the folder, for looking at what a failed check found.
    fn drop(&mut self) {
        if std::env::var_os("AVOCET_KEEP").is_some() {
            eprintln!("kept: {}", self.0.display());
            return;
        }
        if let Err(e) = fs::remove_dir_all(&self.0) {
            eprintln!("could not remove {}: {e}", self.0.display());
        }
    }
}

/// Bytes of all files below `path` (allocated blocks do not matter: a file's length is what the user sees).
pub fn bytes_below(path: &Path) -> Result<u64> {
    let meta = fs::symlink_metadata(path).context(|| format!("reading {}", path.display()))?;
    if !meta.is_dir() {
        return Ok(meta.len());
    }
    let entries = fs::read_dir(path).context(|| format!("listing {}", path.display()))?;
    let mut sum = 0;
    for entry in entries {
        sum += bytes_below(&entry.context(|| format!("listing {}", path.display()))?.path())?;
    }
    Ok(sum)
}

/// Runs a helper program to its end and returns what it printed; its errors become ours.
pub fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().context(|| format!("starting {program}"))?;
    if !output.status.success() {
        let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stdout));
        return Err(Error::Program { program, status: output.status.to_string(), output: text });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
