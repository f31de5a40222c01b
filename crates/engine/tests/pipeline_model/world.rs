//! One log with its pipeline on a disk that can lose power, and what has to hold at any moment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use avocet_base::env::{SimClock, SimDisk};
use avocet_base::{Env, Lsn, Timestamp, TxnId};
use avocet_storage::TxnState;

use crate::commit::{CommitTicket, Pipeline};
use crate::disk::SlowDisk;
use crate::error::Error;
use crate::explore::below;
use crate::options::{Durability, LogOptions};
use crate::reader::LogReader;
use crate::snapshots::Snapshots;
use crate::writer::LogWriter;
use crate::{Rule, breaks, segment, sync};

const DIR: &str = "/log";
const KIND: u8 = 1;

/// How a log is set up.
#[derive(Clone, Copy)]
pub struct Setup {
    pub segment_size: u64,
    pub max_pending: usize,
}

impl Default for Setup {
    /// Room for some records each: segments end and appenders wait.
    fn default() -> Self {
        Self { segment_size: 8 << 10, max_pending: 3 << 10 }
    }
}

pub struct World {
    pub disk: SimDisk,
    pub log: Arc<LogWriter>,
    pub pipeline: Pipeline,
    pub snapshots: Arc<Snapshots>,
    notes: parking_lot::Mutex<Notes>,
}

/// What everybody knows: there is one processor, so it needs no care.
#[derive(Default)]
struct Notes {
    /// Those that the log has accepted, from timestamp 1 on.
    commits: Vec<Commit>,
    /// Up to here the log may be given up.
    given_up: Timestamp,
    seen: Timestamp,
}

struct Commit {
    state: Arc<TxnState>,
    durability: Durability,
    acknowledged: bool,
}

impl World {
    pub fn new(setup: Setup) -> Arc<Self> {
        let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::default()));
        sync::begin(clock.clone());
        let env = Env { disk: Arc::new(SlowDisk(disk.clone())), clock };
        let snapshots = Arc::new(Snapshots::new(Timestamp(0), Lsn(0)));
        let (durable, written) = (snapshots.clone(), snapshots.clone());
        let options = LogOptions {
            segment_size: setup.segment_size,
            max_pending: setup.max_pending,
            max_spares: 1,
            prefill: false,
            ..LogOptions::new(DIR)
        };
        let options = options
            .on_durable(move |lsn, tag| durable.advance(Timestamp(tag), lsn))
            .on_written(move |lsn, tag| written.advance(Timestamp(tag), lsn));
        let log = Arc::new(LogWriter::open(env, options, Lsn(0)).expect("a new log opens"));
        let pipeline = Pipeline::new(log.clone(), Timestamp(0));
        Arc::new(Self { disk, log, pipeline, snapshots, notes: Default::default() })
    }

    /// Commits a transaction of so many bytes as the engine does; the log may refuse it.
    pub fn commit(&self, len: usize, durability: Durability) -> Result<CommitTicket, Error> {
        let state = Arc::new(TxnState::new(TxnId(1)));
        let accepted = |ts: Timestamp| {
            let mut notes = self.notes.lock();
            notes.commits.push(Commit { state: state.clone(), durability, acknowledged: false });
            assert_eq!(notes.commits.len() as u64, ts.0, "each accepted commit has the next timestamp");
        };
        let early = (!breaks(Rule::CommitBeforeLogged)).then_some(&*state);
        let asked = if breaks(Rule::SyncWhatAsks) { Durability::Os } else { durability };
        let payload = vec![7; len];
        let logged = self.pipeline.log_if(KIND, &payload, early, asked, |_| Ok(true), accepted);
        match logged {
            Ok(ticket) => {
                let ticket = ticket.expect("it is always admitted");
                if breaks(Rule::CommitBeforeLogged) {
                    shuttle::thread::yield_now();
                    state.commit(ticket.timestamp());
                }
                if breaks(Rule::ShowWhatIsDurable) {
                    self.snapshots.advance(ticket.timestamp(), self.log.appended_lsn());
                }
                Ok(ticket)
            }
            Err(error) => {
                assert!(state.is_running(), "a refused commit leaves no trace");
                Err(error)
            }
        }
    }

    /// Its ticket was waited for: it must be visible, and have come as far as it asked for.
    pub fn acknowledge(&self, ts: Timestamp) {
        assert!(self.snapshots.visible() >= ts, "commit {ts:?} is acknowledged and not visible");
        self.notes.lock().commits[ts.0 as usize - 1].acknowledged = true;
        self.assert_kept();
    }

    /// Every acknowledged commit is on the disk that it asked for: as it would be after a power cut, or a kill.
    pub fn assert_kept(&self) {
        let notes = self.notes.lock();
        let (cut, killed) = (self.timestamps(&self.disk.crash(0)), self.timestamps(&self.disk.kill()));
        for (commit, ts) in notes.commits.iter().zip(1..) {
            let kept = if commit.durability == Durability::Os { &killed } else { &cut };
            let gone = ts <= notes.given_up.0;
            assert!(
                !commit.acknowledged || gone || kept.contains_key(&ts),
                "commit {ts} is acknowledged and lost"
            );
        }
    }

    /// What a reader relies on: a snapshot has all that committed up to its timestamp, and is on disk.
    pub fn look(&self) {
        let (snapshot, lsn) = self.snapshots.take_with_lsn();
        let (ts, killed) = (snapshot.ts(), self.timestamps(&self.disk.kill()));
        let cut = self.timestamps(&self.disk.crash(0));
        let mut notes = self.notes.lock();
        assert!(ts >= notes.seen, "snapshots go on");
        notes.seen = ts;
        assert!(ts.0 <= notes.commits.len() as u64, "nothing is visible that was not logged");
        for (commit, at) in notes.commits[..ts.0 as usize].iter().zip(1..) {
            assert_eq!(commit.state.committed_at(), Some(Timestamp(at)), "commit {at} is visible at {ts:?}");
            let kept = if commit.durability == Durability::Os { &killed } else { &cut };
            assert!(at <= notes.given_up.0 || kept.contains_key(&at), "commit {at} is visible and not kept");
        }
        if ts > notes.given_up {
            assert_eq!(killed.get(&ts.0), Some(&lsn), "the log up to {lsn} has commits up to {ts:?}");
        }
    }

    /// Power may be lost now: what any disk that is left holds is the log up to some commit, with all that was
    /// acknowledged.
    pub fn lose_power(&self) {
        let notes = self.notes.lock();
        let left = self.timestamps(&self.disk.crash(below(1 << 20) as u64));
        let last = left.keys().next_back().copied().unwrap_or(notes.given_up.0);
        let promised =
            |(commit, _): &(&Commit, u64)| commit.acknowledged && commit.durability != Durability::Os;
        let needed = notes.commits.iter().zip(1..).filter(promised).map(|(_, ts)| ts).max();
        assert!(needed.is_none_or(|ts| ts <= last), "{needed:?} was acknowledged, {last} is the last left");
    }

    /// Gives up what a checkpoint at the newest snapshot would hold.
    pub fn truncate(&self) -> Result<(), Error> {
        let (snapshot, lsn) = self.snapshots.take_with_lsn();
        // Writing the checkpoint takes its time.
        (0..below(30)).for_each(|_| shuttle::thread::yield_now());
        let mut notes = self.notes.lock();
        notes.given_up = notes.given_up.max(snapshot.ts());
        drop(notes);
        self.log.truncate_before(lsn)
    }

    /// How many commits the log has accepted.
    pub fn accepted(&self) -> u64 {
        self.notes.lock().commits.len() as u64
    }

    /// The timestamps in the log on a disk with the ends of their records, if these are one after the other.
    fn timestamps(&self, disk: &SimDisk) -> BTreeMap<u64, Lsn> {
        let env = disk.env();
        let mut found = BTreeMap::new();
        let Some(&first) = segment::list(&env, Path::new(DIR)).expect("a directory").first() else {
            return found;
        };
        let mut reader = LogReader::open(env, Path::new(DIR), first).expect("the log opens");
        while let Some(record) = reader.next_record().expect("only a tail is torn") {
            let last = found.keys().next_back().copied();
            assert!(last.is_none_or(|last| last + 1 == record.tag), "{} follows {last:?}", record.tag);
            found.insert(record.tag, record.end);
        }
        found
    }

    /// Ends the schedule: the log's threads come to an end, whatever happened.
    pub fn finish(&self) -> Result<(), Error> {
        let closed = self.log.close();
        self.assert_kept();
        sync::end();
        closed
    }
}
