//! What is to be done to the newest version of a row, and how it is locked for that.

use std::ops::ControlFlow;

use avocet_storage::hot::delta;
use avocet_types::{Datum, RowLayout, RowRef};

use crate::entries::changes_keys;
use crate::locks::LockMode;
use crate::table::{IndexHandle, TableHandle};

/// What to do about a row that somebody else holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    Wait,
    /// Fail with [`EngineError::LockNotAvailable`].
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

/// How a read locks the rows that it finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowLock {
    pub exclusive: bool,
    pub wait: LockWait,
}

impl RowLock {
    /// As a statement locks the rows that it is going to change.
    pub const FOR_UPDATE: Self = Self { exclusive: true, wait: LockWait::Wait };
}

/// What is done with the newest version of a row, once nobody else holds it.
pub(crate) enum Action<'a, 'c> {
    /// The row is copied to the buffer of old images.
    Share,
    Lock,
    /// As [`Self::Share`] or [`Self::Lock`], if the row has the key of the entry that led to it: one that others have changed
    /// since is none of those that the statement reads, and is not held for it.
    LockFitting {
        exclusive: bool,
        fits: &'a mut dyn FnMut(&RowRef<'_>) -> bool,
    },
    Delete,
    /// Hot rows are changed in place; of a cold row, this is the delete of its old place. The row as it was is
    /// copied if index keys change.
    Update(&'a [u8]),
    /// Locked, deleted or updated, as somebody says who is shown the row.
    Modify(&'a mut Modify<'c>),
}

impl Action<'_, '_> {
    pub fn mode(&self) -> LockMode {
        match self {
            Self::Share | Self::LockFitting { exclusive: false, .. } => LockMode::Shared,
            Self::LockFitting { .. } | Self::Lock | Self::Delete | Self::Update(_) | Self::Modify(_) => {
                LockMode::Exclusive
            }
        }
    }

    pub fn is_misled(&mut self, newest: &RowRef<'_>) -> bool {
        match self {
            Self::Modify(modify) => modify.is_misled(newest),
            Self::LockFitting { fits, .. } => !fits(newest),
            Self::Share | Self::Lock | Self::Delete | Self::Update(_) => false,
        }
    }

    /// What is to be done to the row; nothing, if whoever is shown it does not want it.
    pub fn decide(&mut self, table: &TableHandle, row: RowRef<'_>) -> Option<RowOp<'_>> {
        Some(match self {
            // Whether it fits was looked at under the same latch.
            Self::Share | Self::LockFitting { exclusive: false, .. } => RowOp::Share,
            Self::Lock | Self::LockFitting { .. } => RowOp::Lock { copy: true },
            Self::Delete => RowOp::Delete { copy: table.is_parent() },
            Self::Update(after) => RowOp::Update { after, changes_keys: changes_keys(table, after) },
            Self::Modify(modify) => return modify.decide(table, row),
        })
    }
}

/// Where the row was when the action took place.
#[derive(PartialEq)]
pub(crate) enum Found {
    Nowhere,
    /// Deleted since the snapshot: perhaps a row with its key is in another place now, since it was changed in a column
    /// block, or deleted and inserted again.
    Gone,
    InPlace,
    /// An update has deleted it there: it goes to another place.
    Relocated,
    /// Held by somebody else, and not waited for.
    Busy,
}

/// What is to become of a row that is shown for a change. It stays locked as it is if nothing is said.
pub struct RowChange<'l> {
    pub(crate) layout: &'l RowLayout,
    pub(crate) after: Vec<u8>,
    pub(crate) deleted: bool,
    pub(crate) unwanted: bool,
}

impl RowChange<'_> {
    /// A column gets a value of its type; each column at most once.
    pub fn set(&mut self, column: usize, value: &Datum<'_>) {
        delta::push_datum(self.layout, column, value, &mut self.after);
    }

    /// The row is deleted, whatever else was said.
    pub fn delete(&mut self) {
        self.deleted = true;
    }

    /// The row is not wanted: at READ COMMITTED it is not locked.
    pub fn leave(&mut self) {
        self.unwanted = true;
    }
}

/// What led to a row: a row that has not this key is not the one that is looked for.
pub(crate) struct Candidate<'c> {
    pub index: &'c IndexHandle,
    pub key: &'c [u8],
    /// Not an entry of the index, only a hint.
    pub by_hint: bool,
    pub own_key: &'c mut Vec<u8>,
}

impl Candidate<'_> {
    pub fn fits(&mut self, row: &RowRef<'_>) -> bool {
        self.index.keys.has_key(row, self.key, self.own_key)
    }
}

/// Somebody who is shown the newest version of a row and says what becomes of it.
pub(crate) struct Modify<'c> {
    pub candidate: Candidate<'c>,
    /// A row that is not wanted is not locked.
    pub lets_go: bool,
    pub ask: &'c mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
    pub change: RowChange<'c>,
}

/// What is done to a row.
#[derive(Clone, Copy)]
pub(crate) enum RowOp<'a> {
    Share,
    Lock { copy: bool },
    Delete { copy: bool },
    Update { after: &'a [u8], changes_keys: bool },
}

impl RowOp<'_> {
    /// Whether it makes another row of it, or none.
    pub fn changes(self) -> bool {
        matches!(self, Self::Delete { .. } | Self::Update { .. })
    }

    /// Whether the row as it was is needed afterwards.
    pub fn wants_old(self) -> bool {
        match self {
            Self::Share => true,
            Self::Lock { copy } | Self::Delete { copy } => copy,
            Self::Update { changes_keys, .. } => changes_keys,
        }
    }
}

impl Modify<'_> {
    /// Whether a hint led to a row that is not the one: nothing is to be done with it.
    pub fn is_misled(&mut self, newest: &RowRef<'_>) -> bool {
        self.candidate.by_hint && !self.candidate.fits(newest)
    }

    /// Shows the row; nothing is to be done if it has another key than the entry that led here, or is not wanted.
    pub fn decide(&mut self, table: &TableHandle, row: RowRef<'_>) -> Option<RowOp<'_>> {
        // A hint was looked at under the same latch.
        if !self.candidate.by_hint && !self.candidate.fits(&row) {
            return None;
        }
        self.change.unwanted = false;
        (self.ask)(row, &mut self.change);
        if self.lets_go && self.change.unwanted {
            return None;
        }
        Some(self.op(table))
    }

    fn op(&self, table: &TableHandle) -> RowOp<'_> {
        let after = &self.change.after[..];
        match self.change.deleted {
            true => RowOp::Delete { copy: table.is_parent() },
            false if after.is_empty() => RowOp::Lock { copy: false },
            false => RowOp::Update { after, changes_keys: changes_keys(table, after) },
        }
    }
}

/// What a statement makes of a row that it is shown locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowVerdict {
    Wanted,
    /// READ COMMITTED lets go of it.
    Unwanted,
    /// Wanted, and no other after it.
    Last,
}

impl RowVerdict {
    pub fn flow(self) -> ControlFlow<()> {
        match self {
            Self::Wanted | Self::Unwanted => ControlFlow::Continue(()),
            Self::Last => ControlFlow::Break(()),
        }
    }
}

impl From<ControlFlow<()>> for RowVerdict {
    fn from(flow: ControlFlow<()>) -> Self {
        if flow.is_break() { Self::Last } else { Self::Wanted }
    }
}

/// What came of locking a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriedLock {
    Locked,
    /// There is no such row any more.
    Gone,
    /// Somebody else holds it, and it is not waited for.
    Busy,
}

/// How rows are locked.
pub struct LockHow<'h> {
    pub lock: RowLock,
    /// At READ COMMITTED, a row that somebody else holds is waited for only if this holds for it as it was last committed.
    pub first_look: Option<&'h mut dyn FnMut(RowRef<'_>) -> bool>,
}

impl LockHow<'_> {
    /// Waits for every row as the lock says.
    pub fn all(lock: RowLock) -> Self {
        Self { lock, first_look: None }
    }
}
