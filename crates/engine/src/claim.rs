//! Whose a data directory and a block store are.
//!
//! ```text
//!  DIR/avocet   Avocet data directory, format 1
//!               store <id>            the store that belongs to it; followed by `claiming` until the store says so, too
//!               log begun             the directory holds a log, and always will
//!  store/owner  Avocet store
//!               id <id>
//!               session <id>          of the engine that opened it last; in object stores, where nothing can be locked
//! ```
//!
//! Invariants:
//! 1. One engine at a time holds a data directory and a local store: they, and the mark, are locked.
//! 2. A store belongs to one data directory. Objects that a catalog does not know are deleted, so an engine with another's
//!    store would delete all of it.
//! 3. A directory that had a log once is not opened without one: its commits would be forgotten.
//!
//! The mark says a store's id before the store does, so that a crash between the two is no claim of somebody else.

use std::path::{Path, PathBuf};

use avocet_base::Env;
use avocet_base::env::{DirectoryLock, Disk};
use avocet_storage::store::{BlobStore, local_root};

use crate::engine::EngineOptions;
use crate::error::{EngineError, Result};

const MARKER: &str = "avocet";
const LOCK: &str = "lock";
const FORMAT: &str = "Avocet data directory, format 1";
const FORMATS: &str = "Avocet data directory, format ";
/// Longer ones are none of ours.
const LONGEST_MARKER: u64 = 4096;
const OWNER: &str = "owner";
const OWNER_HEAD: &str = "Avocet store";

/// What the mark says besides the format. Lines are added, never changed: one without its end was being added in a crash, and
/// says nothing.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Marker {
    store: Option<String>,
    /// The store says so, too.
    claimed: bool,
    log_begun: bool,
}

impl Marker {
    /// The lines that say what this does.
    fn lines(&self) -> Vec<String> {
        let store = self.store.iter().map(|id| format!("store {id} claiming\n"));
        let claimed = self.store.iter().filter(|_| self.claimed).map(|id| format!("store {id}\n"));
        let log = self.log_begun.then(|| "log begun\n".to_owned());
        store.chain(claimed).chain(log).collect()
    }

    /// What a mark says, and how many of its bytes say so.
    fn decode(bytes: &[u8]) -> Result<(Self, u64), String> {
        let text = String::from_utf8_lossy(bytes);
        let mut marker = Self::default();
        let mut whole = 0;
        for line in text.split_inclusive('\n') {
            let Some(said) = line.strip_suffix('\n').filter(|said| !said.contains('\0')) else { break };
            match said.split(' ').collect::<Vec<_>>()[..] {
                _ if whole == 0 && said == FORMAT => {}
                _ if whole == 0 && said.starts_with(FORMATS) => {
                    return Err(format!("it says {said:?}, and this program knows {FORMAT:?}"));
                }
                _ if whole == 0 => break,
                ["store", id] => (marker.store, marker.claimed) = (Some(id.into()), true),
                ["store", id, "claiming"] => marker.store = Some(id.into()),
                ["log", "begun"] => marker.log_begun = true,
                _ => return Err(format!("it has the unknown line {said:?}")),
            }
            whole += line.len() as u64;
        }
        Ok((marker, whole))
    }
}

/// Makes the name of a directory durable, and those of the directories that it is in: they may have been made just now, or by a
/// process that was killed before it got here.
fn sync_name(disk: &dyn Disk, dir: &Path) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    for above in dir.ancestors().skip(1) {
        match disk.sync_dir(above).map_err(|e| (e.kind(), e)) {
            // Nobody has made anything in a directory that cannot be written to; and some file systems know no sync of one.
            Err((PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported, _)) => {}
            Err((_, e)) => return Err(e),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// A data directory and its store, held for one engine.
pub(crate) struct Claim {
    env: Env,
    data: PathBuf,
    store_url: String,
    locks: Vec<Box<dyn DirectoryLock>>,
    marker: Marker,
    /// Where the next line of the mark goes.
    marker_end: u64,
    /// What the store's owner is to say, if it can be somebody else from one moment to the next.
    owner: Option<String>,
}

impl Claim {
    /// Makes sure that the directory is ours alone: one of Avocet's (or empty), and no other server in it or in its store.
    pub fn of(options: &EngineOptions) -> Result<Self> {
        let env = options.env.clone();
        let (disk, data) = (&env.disk, &options.data);
        let name = data.display().to_string();
        let io = |e: std::io::Error| EngineError::io(name.clone(), &e);
        disk.create_dir_all(data).map_err(io)?;
        let names = disk.list(data).map_err(io)?;
        if !names.iter().any(|n| n == MARKER) && names.iter().any(|n| n != LOCK) {
            let why = format!("{name} is neither empty nor a data directory of Avocet");
            return Err(EngineError::NotADataDirectory(why));
        }
        let mut lock = disk.lock(data, Some(LOCK)).map_err(|e| in_use(&name, &e))?;
        let path = data.join(MARKER);
        if !names.iter().any(|n| n == MARKER) {
            sync_name(&**disk, data).map_err(io)?;
        }
        let (marker, mut marker_end) = match disk.exists(&path).map_err(io)? {
            true => {
                let file = disk.open(&path, true).map_err(io)?;
                // It may have been written by a process that was killed before it was durable: what is done on account of it
                // must not outlive it.
                file.sync_data().map_err(io)?;
                let mut bytes = vec![0; file.size().map_err(io)?.min(LONGEST_MARKER) as usize];
                file.read_at(&mut bytes, 0).map_err(io)?;
                Marker::decode(&bytes)
                    .map_err(|why| EngineError::NotADataDirectory(format!("{}: {why}", path.display())))?
            }
            false => {
                disk.create(&path).map_err(io)?;
                (Marker::default(), 0)
            }
        };
        if marker_end == 0 {
            let file = disk.open(&path, true).map_err(io)?;
            let format = format!("{FORMAT}\n");
            file.write_at(format.as_bytes(), 0).map_err(io)?;
            file.sync_data().map_err(io)?;
            marker_end = format.len() as u64;
        }
        lock.hold(MARKER).map_err(|e| in_use(&name, &e))?;
        // Its name, for the same reason.
        disk.sync_dir(data).map_err(io)?;
        let mut locks = vec![lock];
        let store_url = options.objects_url();
        if let Some(root) = local_root(&store_url) {
            let io = |e: std::io::Error| EngineError::io(store_url.clone(), &e);
            disk.create_dir_all(&root).map_err(io)?;
            if !marker.claimed {
                sync_name(&**disk, &root).map_err(io)?;
            }
            locks.push(disk.lock(&root, None).map_err(|e| in_use(&store_url, &e))?);
        }
        Ok(Self { env, data: options.data.clone(), store_url, locks, marker, marker_end, owner: None })
    }

    /// Fails if there was a log and is none.
    pub fn check_log(&self) -> Result<()> {
        let dir = self.data.join("log");
        if self.marker.log_begun && !avocet_log::has_log(&self.env, &dir)? {
            let (data, dir) = (self.data.display(), dir.display());
            let why =
                format!("{data} has lost its log: {dir} has no segment, and holds what was committed last");
            return Err(EngineError::NotADataDirectory(why));
        }
        Ok(())
    }

    /// Makes the store this directory's, if it is nobody's. One that has objects and no owner is taken only by a directory that
    /// has been in use since before stores had owners.
    pub fn take_store(&mut self, store: &dyn BlobStore) -> Result<()> {
        let refused = |why: String| Err(EngineError::NotADataDirectory(why));
        let (data, url) = (self.data.display().to_string(), self.store_url.clone());
        let is_new = !self.marker.log_begun && !avocet_log::has_log(&self.env, &self.data.join("log"))?;
        let there = match store.find(OWNER)? {
            Some(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let mut lines = text.lines();
                match (lines.next(), lines.next().and_then(|line| line.strip_prefix("id "))) {
                    (Some(OWNER_HEAD), Some(id)) => Some(id.to_owned()),
                    _ => {
                        return refused(format!(
                            "the store {url} has an object 'owner' that is not Avocet's"
                        ));
                    }
                }
            }
            None => None,
        };
        let ours = self.marker.store.clone();
        match (&there, &ours) {
            (Some(there), Some(ours)) if there == ours => {}
            (Some(_), _) => {
                return refused(format!("the store {url} belongs to another data directory than {data}"));
            }
            (None, Some(_)) if self.marker.claimed => {
                return refused(format!("{url} is not the store of {data}: it has no owner"));
            }
            (None, _) if is_new && !store.list("")?.is_empty() => {
                return refused(format!("the store {url} is not empty, and {data} is a new data directory"));
            }
            (None, _) => {}
        }
        let id = match ours {
            Some(id) => id,
            None => {
                let id = new_id(&self.env);
                self.note(|marker| marker.store = Some(id.clone()))?;
                id
            }
        };
        let mut text = format!("{OWNER_HEAD}\nid {id}\n");
        let is_local = local_root(&url).is_some();
        if !is_local {
            text += &format!("session {}\n", new_id(&self.env));
        }
        if there.is_none() && !store.put_new(OWNER, text.as_bytes())? {
            return refused(format!("the store {url} was claimed by another data directory than {data}"));
        }
        if !is_local {
            if there.is_some() {
                store.put(OWNER, text.as_bytes())?;
            }
            self.owner = Some(text);
        }
        Ok(())
    }

    /// The store is taken and the log is there: from now on it has to be.
    pub fn settle(&mut self) -> Result<()> {
        let name = self.data.display().to_string();
        let io = |e: std::io::Error| EngineError::io(name.clone(), &e);
        // The name of the log's directory, before the mark says that it is there.
        self.env.disk.sync_dir(&self.data).map_err(io)?;
        self.note(|marker| (marker.claimed, marker.log_begun) = (true, true))?;
        self.locks[0].watch("log").map_err(io)
    }

    fn note(&mut self, change: impl FnOnce(&mut Marker)) -> Result<()> {
        let mut marker = self.marker.clone();
        change(&mut marker);
        if marker == self.marker {
            return Ok(());
        }
        let path = self.data.join(MARKER);
        let io = |e: std::io::Error| EngineError::io(path.display().to_string(), &e);
        let said = self.marker.lines();
        let added: String = marker.lines().into_iter().filter(|line| !said.contains(line)).collect();
        let file = self.env.disk.open(&path, true).map_err(io)?;
        file.set_size(self.marker_end).map_err(io)?;
        file.write_at(added.as_bytes(), self.marker_end).map_err(io)?;
        file.sync_data().map_err(io)?;
        self.marker = marker;
        self.marker_end += added.len() as u64;
        Ok(())
    }

    /// Whether the data directory, its log's directory and a local store are still those that were locked. In what was moved
    /// nobody would find again what is written; where another was put in its place, another server may be.
    pub fn check_in_place(&self) -> Result<()> {
        for lock in &self.locks {
            match lock.is_in_place() {
                Ok(true) => {}
                Ok(false) => return Err(self.moved()),
                Err(e) => return Err(EngineError::io(self.data.display().to_string(), &e)),
            }
        }
        Ok(())
    }

    pub fn moved(&self) -> EngineError {
        let name = self.data.display();
        EngineError::NotADataDirectory(format!(
            "{name} or a part of it was moved or replaced while it was in use"
        ))
    }

    /// Whether the store has been opened by nobody else since.
    pub fn check_owner(&self, store: &dyn BlobStore) -> Result<()> {
        let Some(owner) = &self.owner else { return Ok(()) };
        if store.find(OWNER)?.as_deref() == Some(owner.as_bytes()) {
            return Ok(());
        }
        let url = &self.store_url;
        Err(EngineError::NotADataDirectory(format!("the store {url} was taken by another server")))
    }
}

fn in_use(name: &str, e: &std::io::Error) -> EngineError {
    match e.kind() {
        std::io::ErrorKind::WouldBlock => EngineError::InUse(name.into()),
        _ => EngineError::io(name, e),
    }
}

/// A number that no other has: from the clock, as two engines do not begin within the same nanosecond.
fn new_id(env: &Env) -> String {
    format!("{:016x}{:016x}", env.clock.wall_us(), env.clock.monotonic().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use avocet_base::env::sim::{DiskOp, SimDisk};
    use avocet_storage::store::ObjectBlobs;

    use super::*;

    /// A client of its own of an object store that honours conditional puts.
    fn objects(root: &std::path::Path) -> ObjectBlobs {
        ObjectBlobs::open(&format!("file://{}", root.display())).expect("opens")
    }

    /// A data directory whose store is an object store, where nothing can be locked.
    fn claim_of(disk: &SimDisk) -> Claim {
        let env = Env { clock: Env::os().clock, ..disk.env() };
        let options = EngineOptions {
            env,
            store_url: Some("s3://bucket/shared".into()),
            ..EngineOptions::new("/data")
        };
        Claim::of(&options).expect("the directory is its own")
    }

    /// What is durable of a directory is of no use before its name is, and the names above it.
    #[test]
    fn the_names_of_new_directories_are_durable_before_they_are_claimed() {
        let disk = SimDisk::new();
        let options = || EngineOptions {
            env: disk.env(),
            store_url: Some("/blobs/of/it".into()),
            ..EngineOptions::new("/var/lib/data")
        };
        let synced =
            || disk.calls(DiskOp::SyncDir).iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
        drop(Claim::of(&options()).expect("it is its own"));
        for above in ["/var/lib", "/var", "/", "/blobs/of", "/blobs"] {
            assert!(synced().iter().any(|path| path == above), "{above} is not among {:?}", synced());
        }
        // A relative one is in the directory of the process.
        let dir = tempfile::tempdir().expect("made");
        let data = dir.path().join("a/b/c");
        drop(Claim::of(&EngineOptions::new(data)).expect("it is its own"));
        sync_name(&*Env::os().disk, Path::new("target")).expect("synced");
    }

    /// Whoever comes first has it, and all others are told so, however close together they come.
    #[test]
    fn of_directories_that_want_one_object_store_one_gets_it() {
        const CLAIMANTS: usize = 6;
        for _ in 0..20 {
            let root = tempfile::tempdir().expect("made");
            let together = Barrier::new(CLAIMANTS);
            let outcomes: Vec<_> = std::thread::scope(|scope| {
                let claimants: Vec<_> = (0..CLAIMANTS)
                    .map(|_| {
                        scope.spawn(|| {
                            let (mut claim, store) = (claim_of(&SimDisk::new()), objects(root.path()));
                            together.wait();
                            let outcome = claim.take_store(&store);
                            (claim, outcome)
                        })
                    })
                    .collect();
                claimants.into_iter().map(|claimant| claimant.join().expect("ran")).collect()
            });
            let store = objects(root.path());
            let owner = String::from_utf8(store.get(OWNER).expect("is there").to_vec()).expect("text");
            let winners: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
            let [(winner, _)] = winners[..] else { panic!("{} have it", winners.len()) };
            let id = winner.marker.store.as_ref().expect("it has an id");
            assert_eq!(owner.lines().nth(1), Some(&*format!("id {id}")));
            winner.check_owner(&store).expect("it is its own");
            for (_, outcome) in outcomes.iter().filter(|(_, outcome)| outcome.is_err()) {
                // Which of the ways in which it met the other is chance.
                let refused = outcome.as_ref().expect_err("filtered");
                assert!(matches!(refused, EngineError::NotADataDirectory(_)), "{refused}");
                assert!(refused.to_string().contains("the store s3://bucket/shared"), "{refused}");
            }
        }
    }

    /// A copy of the directory is as good as the directory: the one that was there before writes no checkpoint any more.
    #[test]
    fn a_server_whose_object_store_was_taken_over_notices() {
        let root = tempfile::tempdir().expect("made");
        let (disk, store) = (SimDisk::new(), objects(root.path()));
        let mut first = claim_of(&disk);
        first.take_store(&store).expect("it is new");
        first.check_owner(&store).expect("it is its own");
        let mut second = claim_of(&disk.kill());
        second.take_store(&store).expect("its directory has the id");
        second.check_owner(&store).expect("it is its own");
        let taken = first.check_owner(&store).expect_err("it is another's");
        assert!(taken.to_string().contains("taken by another server"), "{taken}");
        let other = claim_of(&SimDisk::new()).take_store(&store).expect_err("it has an owner");
        assert!(other.to_string().contains("belongs to another data directory"), "{other}");
        assert!(!store.put_new(OWNER, b"mine").expect("answered"), "the store honours conditional puts");
        second.check_owner(&store).expect("nobody has changed it");
    }

    #[test]
    fn marks_are_read_as_they_were_written_wherever_they_end() {
        let id = || Some("00112233445566778899aabbccddeeff".to_owned());
        for store in [None, id()] {
            for (claimed, log_begun) in [(false, false), (false, true), (true, true)] {
                let marker = Marker { claimed: claimed && store.is_some(), store: store.clone(), log_begun };
                let text = format!("{FORMAT}\n{}", marker.lines().concat());
                assert_eq!(Marker::decode(text.as_bytes()), Ok((marker, text.len() as u64)));
                for cut in 0..text.len() {
                    let (_, whole) =
                        Marker::decode(&text.as_bytes()[..cut]).expect("what is not whole says nothing");
                    let last = text[..cut].rfind('\n').map_or(0, |at| at + 1);
                    assert_eq!(whole, last as u64);
                }
            }
        }
        assert_eq!(Marker::decode(&[0; 20]), Ok((Marker::default(), 0)));
        assert!(Marker::decode(b"Avocet data directory, format 2\n").is_err());
        assert!(Marker::decode(b"Avocet data directory, format 1\nlog lost\n").is_err());
    }
}
