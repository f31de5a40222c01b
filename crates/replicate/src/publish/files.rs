//! The log's files: `binlog.index` names them, `binlog.mark` says how far they are known to be on disk.
//!
//! ```text
//!  binlog.000001                    binlog.000002 (current)
//!  FORMAT │ PREVIOUS │ … │ ROTATE   FORMAT │ PREVIOUS │ transactions … │ being written
//!                                               mark: synced ▲       end ▲ readers may have what is before
//! ```
//!
//! To begin anew: the mark says so │ the index is emptied │ the files are removed │ the first file │ the index │ the mark. Until the index
//! is empty, whoever comes back after a crash goes on with the old files, which have said how far they go; from then on, with the new.
//!
//! A file is whole on disk before the index names it. Behind the mark, an event that is not whole is the end that a crash left, and
//! is written again; before it, it is damage.
//!
//! Nothing follows ROTATE in a file: replicas go on with the next one there. They are sent it when the index names that file; after a
//! crash in between, the next file begins when the log is opened.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use avocet_base::Env;
use avocet_base::env::{DiskFile, read_file, replace_file};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::events::{
    Author, CHECKSUM, EventHead, HEADER, MAGIC, crc32, gtids_of, number_of, transaction_bytes_of, xid_of,
};
use super::{Base, BinlogOptions};
use crate::binlog::kind;
use crate::gtid::{GtidSet, Origin};

/// A file, as SHOW BINARY LOGS has it.
#[derive(Clone, Debug)]
pub struct LogFile {
    pub name: String,
    pub bytes: u64,
}

pub(super) struct FileEntry {
    pub name: String,
    pub bytes: u64,
    /// What is in the files before it.
    pub previous: GtidSet,
    /// When it was begun, in seconds since 1970.
    pub begun: u32,
}

/// What a request to begin anew comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    Done,
    /// So many read the log.
    InUse(usize),
    /// It was stopped, or nothing is written any more.
    Stopped,
}

/// What a purge has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The last file, which is written to.
    Active(String),
    /// A file that is read, and what is behind it.
    InUse {
        file: String,
        readers: usize,
        /// Files that were deleted, of those that were to be.
        purged: usize,
        of: usize,
    },
}

/// What readers may see.
pub(super) struct State {
    pub files: Vec<FileEntry>,
    pub current: String,
    /// Where the last whole transaction ends in it.
    pub end: u64,
    /// The number of the last transaction.
    pub last: u64,
    /// What was in force here of another server before the first transaction.
    base: GtidSet,
    /// The number of the first file of a log that is to begin anew.
    wants_reset: Option<u64>,
    is_resetting: bool,
    resets: u64,
    waiting: Vec<Waker>,
    /// Which file each reader is in.
    readers: BTreeMap<u64, String>,
    next_reader: u64,
    /// Whoever asks for a new file waits until the current one is another.
    pub wants_next: bool,
    has_ended: bool,
}

impl State {
    /// What is in no file any more.
    pub fn purged(&self) -> GtidSet {
        self.files.first().map(|first| first.previous.clone()).unwrap_or_default()
    }
}

/// In the mark in the place of a file's name, before there is a file.
pub(super) const NO_FILE: &str = "-";
/// The same while the log is begun anew: once the index is empty, what files there are were before that. The position is the number of
/// the first file to come.
pub(super) const RESET: &str = "=";

pub(super) struct Files {
    pub env: Env,
    pub options: BinlogOptions,
    pub author: Author,
    pub origin: Origin,
    state: Mutex<State>,
    moved: Condvar,
}

/// How far the files are on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub file: String,
    pub position: u64,
    /// The timestamp and the number of the last transaction before.
    pub ts: u64,
    pub number: u64,
}

impl Mark {
    /// One sector holds it, which the disk writes whole.
    const LEN: usize = 128;

    fn encode(&self) -> Vec<u8> {
        let text = format!("{} {} {} {}", self.file, self.position, self.ts, self.number);
        let mut line = format!("{text} {:08x}\n", crc32(text.as_bytes())).into_bytes();
        line.resize(Self::LEN, b' ');
        line
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.trim();
        let (text, checksum) = text.rsplit_once(' ')?;
        if u32::from_str_radix(checksum, 16).ok()? != crc32(text.as_bytes()) {
            return None;
        }
        let mut words = text.split(' ');
        let file = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some(Self { file, position: number()?, ts: number()?, number: number()? })
    }
}

/// Where the writer goes on.
pub(super) struct Resumed {
    pub files: Arc<Files>,
    /// The last file and where its last whole transaction ends; none in an empty folder.
    pub open: Option<(Arc<dyn DiskFile>, u64)>,
    /// That file ends in ROTATE: the next one has to begin.
    pub is_rotated: bool,
    pub mark: Mark,
    pub sequence: u64,
}

pub(super) fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The server's own id: made once, and kept beside the data.
fn server_uuid(env: &Env, path: &Path) -> io::Result<[u8; 16]> {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let wrong = || damaged(format!("{} has no server-uuid", path.display()));
    if let Some(text) = read_file(&*env.disk, path)? {
        let text = String::from_utf8_lossy(&text).into_owned();
        let uuid = text
            .lines()
            .find_map(|line| line.split_once('=').filter(|(name, _)| name.trim() == "server-uuid"));
        return uuid.and_then(|(_, uuid)| crate::gtid::uuid(uuid.trim())).ok_or_else(wrong);
    }
    let random = || RandomState::new().build_hasher().finish();
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&random().to_be_bytes());
    uuid[8..].copy_from_slice(&random().to_be_bytes());
    // As RFC 9562 marks random ones.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    let origin = Origin { uuid, tag: String::new() };
    replace_file(&*env.disk, path, format!("[auto]\nserver-uuid={origin}\n").as_bytes())?;
    Ok(uuid)
}

impl Files {
    pub fn open(env: Env, options: BinlogOptions) -> io::Result<Resumed> {
        let disk = env.disk.clone();
        disk.create_dir_all(&options.folder)?;
        let parent = options.folder.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let had_log = disk.exists(&parent.join("auto.cnf"))?;
        let origin = Origin { uuid: server_uuid(&env, &parent.join("auto.cnf"))?, tag: String::new() };
        let index = read_file(&*disk, &options.folder.join("binlog.index"))?.unwrap_or_default();
        let names = index_names(&index);
        let mark = options.folder.join("binlog.mark");
        let mark = read_file(&*disk, &mark).map_err(|error| of_file("binlog.mark", &error))?;
        let decoded = mark.as_deref().and_then(Mark::decode);
        let reset = decoded.as_ref().filter(|mark| mark.file == RESET && names.is_empty());
        if reset.is_some() {
            remove_files(&env, &options.folder)?;
        }
        let is_none = |mark: &Mark| mark.file == NO_FILE || mark.file == RESET;
        let has_begun = mark.is_some() && !decoded.as_ref().is_some_and(is_none);
        let before_first = reset.map(|mark| name_of(mark.position.saturating_sub(1)));
        let there = disk.list(&options.folder)?;
        check_index(&there, &names, has_begun)?;
        remove_purged(&env, &options.folder, &there, &names);
        if had_log && names.is_empty() && mark.is_none() {
            tracing::warn!(
                "this server (auto.cnf) may have had a binary log, and none is in {}: a new one begins, and replicas have to be set up anew",
                options.folder.display()
            );
        }
        let mark = decoded.unwrap_or_default();
        let mut files = Vec::with_capacity(names.len());
        for name in &names {
            files.push(read_entry(&env, &options.folder, name)?);
        }
        let author = Author { server_id: options.server_id, version: options.version.clone() };
        let (base, mark) = match files.last() {
            Some(last) => (last.previous.without(&origin), mark),
            None if before_first.is_some() => (GtidSet::default(), mark),
            None => {
                let Base { executed, ts, lacks_some } = options.base.clone();
                (executed, Mark { ts: ts.0, number: lacks_some.into(), ..mark })
            }
        };
        let (mut open, mut resumed, mut sequence, mut is_rotated) = (None, mark.clone(), 0, false);
        if let Some(last) = files.last_mut() {
            let file = disk.open(&options.folder.join(&last.name), true)?;
            let known = if mark.file == last.name { mark.position } else { 0 };
            let before = last.previous.dense_up_to(&origin);
            let end = scan(&*file, &last.name, known, &mut resumed, before)?;
            if end < last.bytes {
                tracing::warn!(
                    "{}: the last {} bytes are not a whole transaction; they are written again",
                    last.name,
                    last.bytes - end
                );
                file.set_size(end)?;
                last.bytes = end;
            }
            // The mark will say that it is on disk: a process that was killed has left it in the page cache.
            file.sync_data()?;
            resumed.file.clone_from(&last.name);
            resumed.position = end;
            sequence = resumed.number - before;
            is_rotated = ends_in_rotate(&*file, &last.name, end)?;
            open = Some((file, end));
        }
        let state = State {
            current: files.last().map(|last| last.name.clone()).or(before_first).unwrap_or_default(),
            end: open.as_ref().map_or(0, |(_, end)| *end),
            files,
            last: resumed.number,
            base,
            wants_reset: None,
            is_resetting: false,
            resets: 0,
            waiting: Vec::new(),
            readers: BTreeMap::new(),
            next_reader: 0,
            wants_next: false,
            has_ended: false,
        };
        let (state, moved) = (Mutex::new(state), Condvar::new());
        let files = Self { env, options, author, origin, state, moved };
        Ok(Resumed { files: Arc::new(files), open, is_rotated, mark: resumed, sequence })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.options.folder.join(name)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub fn uuid_text(&self) -> String {
        self.origin.to_string()
    }

    fn set_of(&self, base: &GtidSet, last: u64) -> GtidSet {
        let mut set = base.clone();
        if last > 0 {
            set.add_range(&self.origin, 1, last);
        }
        set
    }

    pub fn executed(&self) -> GtidSet {
        self.executed_in(&self.state())
    }

    pub fn executed_in(&self, state: &State) -> GtidSet {
        self.set_of(&state.base, state.last)
    }

    pub fn purged(&self) -> GtidSet {
        self.state().purged()
    }

    pub fn list(&self) -> Vec<LogFile> {
        let state = self.state();
        let bytes = |file: &FileEntry| if file.name == state.current { state.end } else { file.bytes };
        state.files.iter().map(|file| LogFile { name: file.name.clone(), bytes: bytes(file) }).collect()
    }

    /// Readers may have all before this.
    pub fn publish(&self, end: u64, last: u64) {
        let mut state = self.state();
        (state.end, state.last) = (end, last);
        self.wake(state);
    }

    /// There will not be more.
    pub fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        self.wake(state);
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.moved.notify_all();
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Makes the next file, which then is the current one; the one before ends here.
    pub fn begin_file(&self, number: u64, now: u32, ended: u64) -> io::Result<(Arc<dyn DiskFile>, u64)> {
        let last = self.state().current.clone();
        let name = next_name(&last);
        let path = self.path(&name);
        let disk = &*self.env.disk;
        // Of an attempt that no index knows of.
        if disk.exists(&path)? {
            disk.remove(&path)?;
        }
        let previous = self.set_of(&self.state().base, number);
        let mut head = MAGIC.to_vec();
        self.author.format_description(&mut head, now, 4);
        let at = head.len() as u64;
        self.author.previous_gtids(&mut head, now, at, &previous);
        let file = disk.create(&path)?;
        file.write_at(&head, 0)?;
        file.sync_data()?;
        disk.sync_dir(&self.options.folder)?;
        let mut state = self.state();
        let bytes = head.len() as u64;
        state.files.push(FileEntry { name: name.clone(), bytes, previous, begun: now });
        if let Err(error) = self.write_index(&state.files) {
            state.files.pop();
            return Err(error);
        }
        if let Some(before) = state.files.len().checked_sub(2) {
            state.files[before].bytes = ended;
        }
        (state.current, state.end, state.wants_next) = (name, bytes, false);
        self.wake(state);
        Ok((file, bytes))
    }

    fn write_index(&self, files: &[FileEntry]) -> io::Result<()> {
        let lines: String = files.iter().map(|file| format!("./{}\n", file.name)).collect();
        replace_file(&*self.env.disk, &self.path("binlog.index"), lines.as_bytes())
    }

    /// Says that all before the mark is on disk.
    pub fn put_mark(&self, mark: &Mark) -> io::Result<()> {
        let path = self.path("binlog.mark");
        if !self.env.disk.exists(&path)? {
            return replace_file(&*self.env.disk, &path, &mark.encode());
        }
        let file = self.env.disk.open(&path, true)?;
        file.write_at(&mark.encode(), 0)?;
        file.sync_data()
    }

    pub fn purge_to(&self, name: &str) -> Option<io::Result<Option<Kept>>> {
        let state = self.state();
        let at = state.files.iter().position(|file| file.name == name)?;
        Some(self.purge(state, at, at))
    }

    /// The last transaction of a file was before the next one began.
    pub fn purge_before(&self, seconds: u64) -> io::Result<Option<Kept>> {
        let now = self.env.clock.wall_us().div_euclid(1_000_000).max(0) as u64;
        let state = self.state();
        let count = state.files.windows(2).take_while(|pair| u64::from(pair[1].begun) <= seconds).count();
        let is_all = count + 1 == state.files.len();
        let active = state.current.clone();
        // As MySQL counts: the last file was to be deleted, too, if nothing can be written to it before that moment.
        let kept = self.purge(state, count, count + usize::from(is_all && now <= seconds))?;
        Ok(kept.or(is_all.then_some(Kept::Active(active))))
    }

    /// Deletes the files whose transactions are older than the options have it. What fails is tried again with the next file.
    pub fn expire(&self, now: u32) {
        let expire = self.options.expire_seconds;
        if expire > 0
            && let Err(error) = self.purge_before(u64::from(now).saturating_sub(expire))
        {
            tracing::warn!("files of the binary log that have expired cannot be deleted: {error}");
        }
    }

    /// Deletes so many files, but none that is read, and none behind that. `of`: how many there were to be deleted.
    fn purge(&self, mut state: MutexGuard<'_, State>, count: usize, of: usize) -> io::Result<Option<Kept>> {
        let readers = |name: &str| state.readers.values().filter(|read| *read == name).count();
        let purged = state.files[..count].iter().take_while(|file| readers(&file.name) == 0).count();
        let kept = (purged < count).then(|| {
            let file = state.files[purged].name.clone();
            Kept::InUse { readers: readers(&file), file, purged, of }
        });
        if purged > 0 {
            self.write_index(&state.files[purged..])?;
            let gone: Vec<FileEntry> = state.files.drain(..purged).collect();
            drop(state);
            // No index names them any more: what cannot be removed now is removed when the log is opened.
            let mut failure = None;
            for FileEntry { name, .. } in gone {
                if let Err(error) = remove_if_there(&self.env, &self.path(&name)) {
                    failure = failure.or(Some(of_file(&name, &error)));
                }
            }
            failure.map_or(Ok(()), Err)?;
        }
        Ok(kept)
    }

    pub fn wait_for(&self, set: &GtidSet, at_most: Duration, stop: &dyn Fn() -> bool) -> bool {
        const LOOK: Duration = Duration::from_millis(50);
        let until = Instant::now().checked_add(at_most);
        let mut state = self.state.lock();
        loop {
            if self.set_of(&state.base, state.last).contains_all(set) {
                return true;
            }
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || stop() {
                return false;
            }
            self.moved.wait_for(&mut state, left.min(LOOK));
        }
    }

    /// The writer begins another file when it is between two transactions.
    pub fn rotate(&self, stop: &dyn Fn() -> bool) -> bool {
        const LOOK: Duration = Duration::from_millis(50);
        let mut state = self.state.lock();
        let current = state.current.clone();
        state.wants_next = true;
        while state.current == current {
            if state.has_ended || stop() {
                return false;
            }
            self.moved.wait_for(&mut state, LOOK);
        }
        true
    }

    /// The log begins anew, with a file of this number, when all is told that is durable; but not while somebody reads it.
    pub fn reset(&self, first: u64, stop: &dyn Fn() -> bool) -> Reset {
        const LOOK: Duration = Duration::from_millis(50);
        let mut state = self.state.lock();
        // One after the other: who gives up takes no other's request along.
        while state.wants_reset.is_some() {
            if state.has_ended || stop() {
                return Reset::Stopped;
            }
            self.moved.wait_for(&mut state, LOOK);
        }
        if !state.readers.is_empty() {
            return Reset::InUse(state.readers.len());
        }
        let before = state.resets;
        state.wants_reset = Some(first);
        while state.resets == before {
            if state.has_ended || (stop() && !state.is_resetting) {
                state.wants_reset = None;
                return Reset::Stopped;
            }
            self.moved.wait_for(&mut state, LOOK);
        }
        Reset::Done
    }

    /// The number of the first file, if somebody waits for the log to begin anew; nobody begins to read it from now on.
    pub fn begin_reset(&self) -> Option<u64> {
        let mut state = self.state();
        state.is_resetting = state.wants_reset.is_some();
        state.wants_reset
    }

    /// Removes all files, and makes the first one of a log without transactions. The mark must say so.
    pub fn begin_anew(&self, first: u64, now: u32) -> io::Result<(Arc<dyn DiskFile>, u64)> {
        {
            let mut state = self.state();
            self.write_index(&[])?;
            state.files.clear();
            (state.base, state.last) = (GtidSet::default(), 0);
            state.current = name_of(first.saturating_sub(1));
        }
        remove_files(&self.env, &self.options.folder)?;
        self.begin_file(0, now, 0)
    }

    /// The log has begun anew.
    pub fn end_reset(&self) {
        let mut state = self.state();
        (state.wants_reset, state.is_resetting) = (None, false);
        state.resets += 1;
        self.wake(state);
    }

    /// Wakes when there is more than this, or never will be. True if there is already.
    pub fn wake_beyond(&self, file: &str, position: u64, waker: &Waker) -> bool {
        let mut state = self.state();
        if state.current != file || state.end > position || state.has_ended {
            return true;
        }
        state.waiting.retain(|other| !other.will_wake(waker));
        state.waiting.push(waker.clone());
        false
    }

    pub fn has_ended(&self) -> bool {
        self.state().has_ended
    }
}

/// Somebody who reads a file: it is not purged meanwhile.
pub(super) struct Reading {
    files: Arc<Files>,
    id: u64,
}

impl Reading {
    /// Begins with a file that was chosen under this lock, so that nobody has purged it since. `None` if the log is about to begin anew.
    pub fn begin(files: &Arc<Files>, state: &mut State, file: &str) -> Option<Self> {
        if state.wants_reset.is_some() {
            return None;
        }
        let id = state.next_reader;
        state.next_reader += 1;
        state.readers.insert(id, file.to_owned());
        Some(Self { files: files.clone(), id })
    }

    /// Goes on to another file.
    pub fn go_on(&self, state: &mut State, file: &str) {
        state.readers.insert(self.id, file.to_owned());
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.files.state().readers.remove(&self.id);
    }
}

pub(super) fn next_name(last: &str) -> String {
    let number: u64 = last.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
    name_of(number + 1)
}

fn name_of(number: u64) -> String {
    format!("binlog.{number:06}")
}

fn remove_if_there(env: &Env, path: &Path) -> io::Result<()> {
    match env.disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes the files before the first that is named: a purge has let them go, and was cut short or failed.
fn remove_purged(env: &Env, folder: &Path, there: &[String], named: &[String]) {
    let Some(first) = named.first().and_then(|name| number_in(name)) else { return };
    for name in there.iter().filter(|name| number_in(name).is_some_and(|number| number < first)) {
        match env.disk.remove(&folder.join(name)) {
            Ok(()) => tracing::info!("{name} was purged from the binary log, and is removed now"),
            Err(error) => tracing::warn!("{name} was purged from the binary log, and stays: {error}"),
        }
    }
}

fn remove_files(env: &Env, folder: &Path) -> io::Result<()> {
    let names = env.disk.list(folder)?;
    let mut files = names.iter().filter(|name| number_in(name).is_some());
    files.try_for_each(|name| env.disk.remove(&folder.join(name)))?;
    env.disk.sync_dir(folder)
}

/// Reads events one after the other.
pub(super) struct Events<'f> {
    file: &'f dyn DiskFile,
    pub at: u64,
    end: u64,
    window: Vec<u8>,
    window_at: u64,
}

const WINDOW: u64 = 256 << 10;

impl<'f> Events<'f> {
    pub fn new(file: &'f dyn DiskFile, at: u64, end: u64) -> Self {
        Self { file, at, end, window: Vec::new(), window_at: 0 }
    }

    fn bytes(&mut self, len: u64) -> io::Result<Option<&[u8]>> {
        if self.at + len > self.end {
            return Ok(None);
        }
        let has = self.window_at <= self.at && self.at + len <= self.window_at + self.window.len() as u64;
        if !has {
            let take = len.max(WINDOW).min(self.end - self.at);
            self.window.resize(take as usize, 0);
            self.window_at = self.at;
            self.file.read_at(&mut self.window, self.at)?;
        }
        let from = (self.at - self.window_at) as usize;
        Ok(Some(&self.window[from..from + len as usize]))
    }

    /// The next event, if all of it is there and whole.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(head) = self.bytes(HEADER as u64)?.and_then(EventHead::read) else { return Ok(None) };
        let len = u64::from(head.len);
        if self.bytes(len)?.is_none() {
            return Ok(None);
        }
        let from = (self.at - self.window_at) as usize;
        let event = &self.window[from..from + len as usize];
        let (body, checksum) = event.split_at(event.len() - CHECKSUM);
        if crc32(body).to_le_bytes() != checksum {
            return Ok(None);
        }
        self.at += len;
        Ok(Some(event))
    }
}

fn of_file(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// The files that an index names.
pub(super) fn index_names(index: &[u8]) -> Vec<String> {
    let index = String::from_utf8_lossy(index).into_owned();
    let names = index.lines().map(|line| line.trim_start_matches("./").to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// The number of a file of the log.
fn number_in(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("binlog.")?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// The index names the files that there are, in their order: what it does not name would be written over, and its transactions' numbers
/// given out again. A file behind the last that nothing was written to yet is one that a crash left.
pub(super) fn check_index(there: &[String], named: &[String], has_begun: bool) -> io::Result<()> {
    const CURE: &str = "bring binlog.index back, or move the folder away to begin a new log (replicas then have to be set up anew)";
    let mut last = None;
    for name in named {
        let number = number_in(name);
        let Some(number) = number.filter(|number| last.is_none_or(|last| *number == last + 1)) else {
            return Err(damaged(format!(
                "binlog.index: {name:?} does not follow the file before it; {CURE}"
            )));
        };
        last = Some(number);
    }
    let next = last.map_or(1, |last| last + 1);
    if named.is_empty() && has_begun {
        return Err(damaged(format!(
            "binlog.index names no file, and binlog.mark says that there are some; {CURE}"
        )));
    }
    match there.iter().filter_map(|name| number_in(name)).find(|number| *number > next) {
        Some(number) => Err(damaged(format!("binlog.{number:06} is not in binlog.index; {CURE}"))),
        None => Ok(()),
    }
}

fn read_entry(env: &Env, folder: &Path, name: &str) -> io::Result<FileEntry> {
    let cut = || damaged(format!("{name} has no beginning of a binary log"));
    let file = env.disk.open(&folder.join(name), false).map_err(|error| of_file(name, &error))?;
    let bytes = file.size()?;
    let mut events = Events::new(&*file, 4, bytes);
    let head = events.next()?.and_then(EventHead::read).ok_or_else(cut)?;
    let previous = events.next()?.filter(|event| event[4] == kind::PREVIOUS_GTIDS).and_then(gtids_of);
    Ok(FileEntry { name: name.to_owned(), bytes, previous: previous.ok_or_else(cut)?, begun: head.time })
}

/// Finds the end of the last whole transaction of a file, of which all before `known` is on disk; and which transaction that is.
fn scan(file: &dyn DiskFile, name: &str, known: u64, mark: &mut Mark, before: u64) -> io::Result<u64> {
    let mut events = Events::new(file, known.max(4), file.size()?);
    let mut end = known;
    let mut number = if known > 0 { mark.number } else { before };
    mark.number = number;
    if known > file.size()? {
        return Err(damaged(format!("{name} ends before byte {known}, up to where it was on disk")));
    }
    while let Some(event) = events.next()? {
        let (kind, xid) = (event[4], xid_of(event));
        match kind {
            // It is written over when its transaction is whole; that may be lost although the transaction's end is there.
            kind::GTID if transaction_bytes_of(event).is_none_or(|bytes| bytes == 0) => break,
            kind::GTID => number = number_of(event).map_or(number, |(_, number)| number),
            // What is before the first transaction, and behind the last one.
            kind::FORMAT_DESCRIPTION | kind::PREVIOUS_GTIDS | kind::ROTATE => end = events.at,
            _ => {}
        }
        if let Some(xid) = xid {
            (mark.ts, mark.number, end) = (xid, number, events.at);
        }
    }
    Ok(end)
}

/// Whether the last event of a file that ends here is ROTATE, which is as long as the next file's name makes it.
fn ends_in_rotate(file: &dyn DiskFile, name: &str, end: u64) -> io::Result<bool> {
    let len = (HEADER + 8 + next_name(name).len() + CHECKSUM) as u64;
    let Some(at) = end.checked_sub(len).filter(|at| *at >= MAGIC.len() as u64) else { return Ok(false) };
    let mut events = Events::new(file, at, end);
    let kind = events.next()?.map(|event| event[4]);
    Ok(kind == Some(kind::ROTATE) && events.at == end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_round_trip_and_names_go_on() {
        let mark = Mark { file: "binlog.000007".into(), position: 9, ts: 1 << 40, number: 3 };
        assert_eq!(Mark::decode(&mark.encode()), Some(mark.clone()));
        let mut bytes = mark.encode();
        bytes[8] ^= 1;
        assert_eq!(Mark::decode(&bytes), None);
        assert_eq!(next_name(""), "binlog.000001");
        assert_eq!(next_name("binlog.000999"), "binlog.001000");
    }

    #[test]
    fn an_index_names_the_files_that_there_are() {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (one, two, three) = ("binlog.000001", "binlog.000002", "binlog.000003");
        let check = |there: &[&str], named: &[&str], has_mark| {
            check_index(&all(there), &all(named), has_mark).map_err(|error| error.to_string())
        };
        let fine = [
            (&[][..], &[][..], false),
            (&[one, two, "binlog.index"], &[one, two], true),
            // A crash between a file and the index, or between the index and the removal of a file.
            (&[one, two], &[one], true),
            (&[one], &[], false),
            (&[one, two, three], &[two, three], true),
        ];
        for (there, named, has_mark) in fine {
            assert_eq!(check(there, named, has_mark), Ok(()), "{there:?} {named:?}");
        }
        for (there, named, has_mark, what) in [
            (&[one, two, three][..], &[][..], false, two),
            (&[one], &[], true, "names no file"),
            (&[one, two, three], &[one], true, three),
            (&[one, two], &[one, one, two], true, "does not follow"),
            (&[one, two, three], &[one, three], true, "does not follow"),
            (&[one], &[one, "\0\u{1}"], true, "does not follow"),
        ] {
            let said = check(there, named, has_mark).expect_err("it is wrong");
            assert!(said.contains(what), "{there:?} {named:?}: {said}");
        }
    }
}
