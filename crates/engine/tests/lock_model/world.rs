//! Rows with versions and latches, and transactions that use the lock table as the engine does.

use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::SimClock;
use avocet_base::{RowId, TableId, Timestamp, TxnId};
use avocet_storage::TxnState;

use crate::error::Result;
use crate::explore::below;
use crate::locks::{Answer, LockMode, Patience, Request, RowKey, RowLocks, Waiter};
use crate::sync::{self, Mutex};
use crate::{Rule, breaks};

pub struct World {
    locks: RowLocks,
    rows: Vec<Mutex<Row>>,
}

/// Under its latch.
#[derive(Default)]
struct Row {
    /// Whose versions there are, the newest last.
    versions: Vec<Arc<TxnState>>,
    /// Who shares it, by the model's own books.
    sharers: Vec<TxnId>,
}

impl Row {
    fn holder(&self) -> Option<&Arc<TxnState>> {
        self.versions.last().filter(|txn| txn.is_running())
    }
}

fn key(row: usize) -> RowKey {
    RowKey { table: TableId(1), row: RowId(row as u64) }
}

impl World {
    pub fn new(rows: usize) -> Arc<Self> {
        sync::begin(Arc::new(SimClock::default()));
        let rows = (0..rows).map(|_| Mutex::new(Row::default())).collect();
        Arc::new(Self { locks: RowLocks::default(), rows })
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The entry of a row that somebody waits for names its holder.
    pub fn look(&self) {
        for (n, row) in self.rows.iter().enumerate() {
            let row = row.lock();
            let Some(named) = self.locks.named_holder(&key(n)) else { continue };
            // It may end between the two.
            let is_same = match (row.holder(), &named) {
                (None, None) => true,
                (Some(holder), None) => !holder.is_running(),
                (None, Some(named)) => !named.is_running(),
                (Some(holder), Some(named)) => Arc::ptr_eq(holder, named),
            };
            assert!(is_same, "the entry of row {n} names {:?}", named.map(|txn| txn.id()));
        }
    }

    /// Ends the schedule: nothing is left behind.
    pub fn finish(&self) {
        assert_eq!(self.locks.sleepers(), 0);
        assert!((0..self.rows()).all(|n| !self.locks.may_be_contended(&key(n))), "an entry is left");
        sync::end();
    }
}

/// A transaction as the engine has it (`txn/newest.rs`).
pub struct Txn {
    world: Arc<World>,
    state: Arc<TxnState>,
    undo: Vec<usize>,
    shared: Vec<RowKey>,
}

#[derive(Clone, Copy)]
pub struct Mark {
    undo: usize,
    shared: usize,
}

impl Txn {
    pub fn begin(world: &Arc<World>, id: u64) -> Self {
        let state = Arc::new(TxnState::new(TxnId(id)));
        Self { world: world.clone(), state, undo: Vec::new(), shared: Vec::new() }
    }

    pub fn mark(&self) -> Mark {
        Mark { undo: self.undo.len(), shared: self.shared.len() }
    }

    /// Gets a row, or waits until nobody has it.
    pub fn ask(&mut self, row: usize, mode: LockMode) -> Result<()> {
        let mut place = None;
        let outcome = self.in_turn(row, mode, &mut place);
        if let Some(place) = place {
            self.world.locks.leave(&place);
        }
        outcome
    }

    fn in_turn(&mut self, row: usize, mode: LockMode, place: &mut Option<Arc<Waiter>>) -> Result<()> {
        loop {
            match self.attempt(row, mode, place) {
                Answer::Granted | Answer::Shared | Answer::Busy => return Ok(()),
                Answer::Again => shuttle::thread::yield_now(),
                Answer::Queued => {
                    let waiter = place.as_ref().expect("it stands in the queue");
                    if !breaks(Rule::Search) {
                        self.world.locks.break_deadlocks(waiter, !self.shared.is_empty());
                    }
                    waiter.park(&Patience {
                        timeout: Duration::from_secs(3600),
                        hook: Arc::new(|wait| wait()),
                        interrupted: &|| false,
                    })?;
                }
            }
        }
    }

    fn attempt(&mut self, row: usize, mode: LockMode, place: &mut Option<Arc<Waiter>>) -> Answer {
        let world = self.world.clone();
        let mut body = world.rows[row].lock();
        let is_own = body.holder().is_some_and(|holder| Arc::ptr_eq(holder, &self.state));
        let holder = body.holder().filter(|_| !is_own);
        let is_free = holder.is_none() && mode == LockMode::Exclusive;
        if !is_own && (!is_free || world.locks.may_be_contended(&key(row))) {
            let weight = (self.undo.len() + self.shared.len()) as u64;
            let patient = place.is_some() || below(8) > 0;
            let request = Request { key: key(row), mode, txn: &self.state, holder, weight, patient };
            let answer = world.locks.request(&request, place);
            match answer {
                Answer::Granted => {}
                Answer::Shared | Answer::Queued | Answer::Again | Answer::Busy => return answer,
            }
        }
        match mode {
            LockMode::Watch => {}
            LockMode::Shared if is_own => {}
            LockMode::Shared => {
                self.shared.push(key(row));
                body.sharers.push(self.state.id());
            }
            LockMode::Exclusive if !is_own && below(6) == 0 => {
                // It has another key by now, say.
                if !breaks(Rule::Decline) {
                    world.locks.give_back(&key(row), &self.state);
                }
            }
            LockMode::Exclusive => {
                let others = body.sharers.iter().filter(|id| **id != self.state.id());
                assert_eq!(others.count(), 0, "row {row} is shared by others");
                body.versions.push(self.state.clone());
                self.undo.push(row);
            }
        }
        Answer::Granted
    }

    pub fn roll_back_to(&mut self, mark: Mark) {
        while self.undo.len() > mark.undo {
            let row = self.undo.pop().expect("longer than the mark");
            self.take_back(row);
        }
        self.unshare(mark.shared);
    }

    fn take_back(&self, row: usize) {
        let locks = &self.world.locks;
        let mut body = self.world.rows[row].lock();
        let version = body.versions.pop().expect("it has a version there");
        assert!(Arc::ptr_eq(&version, &self.state), "row {row} has a version of somebody else on top");
        if !self.state.is_waited_for() || breaks(Rule::GiveBack) {
            return;
        }
        let still_holds = body.holder().is_some_and(|holder| Arc::ptr_eq(holder, &self.state));
        if breaks(Rule::GiveBackLatched) {
            drop(body);
        }
        match still_holds && !breaks(Rule::HoldOn) {
            true => locks.wake_watchers(&key(row)),
            false => locks.give_back(&key(row), &self.state),
        }
    }

    fn unshare(&mut self, from: usize) {
        for key in &self.shared[from..] {
            let mut body = self.world.rows[key.row.0 as usize].lock();
            let at = body.sharers.iter().position(|id| *id == self.state.id());
            body.sharers.swap_remove(at.expect("it shares the row"));
        }
        self.world.locks.unshare(&self.state, &self.shared[from..]);
        self.shared.truncate(from);
    }

    pub fn end(mut self, commit: bool) {
        if breaks(Rule::EndFirst) && self.state.is_waited_for() {
            let keys = self.undo.clone();
            keys.iter().for_each(|row| self.world.locks.give_back(&key(*row), &self.state));
        }
        if commit {
            self.state.commit(Timestamp(self.state.id().0));
        } else {
            self.roll_back_to(Mark { undo: 0, shared: 0 });
            self.state.abort();
        }
        if self.state.is_waited_for() && !breaks(Rule::EndFirst) {
            self.world.locks.wake_waiters_of(&self.state);
        }
        self.unshare(0);
    }
}
