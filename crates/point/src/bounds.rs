//! What bounds a running plan: KILL, a deadline, the query's memory, and how many rows are gone through one by one.
//!
//! Who visits rows calls [`Bounds::row`] for each, who keeps something calls [`Bounds::hold`]: both are a subtraction or
//! two. Everything else is looked at every [`ROWS_IN_PLACE`] rows, and at once when more memory is needed.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Instant;

use avocet_channel::blocking::ROWS_IN_PLACE;
use avocet_channel::{Cancellation, Interrupt};
use avocet_engine::MemoryBudget;
use avocet_types::Datum;
use avocet_types::error::{ErrorCode, SqlError};

/// A query that visits so many rows was estimated wrongly: the analytical path is better at them.
pub const MOST_ROWS: u64 = 160_000;
/// A query that tries for the first rows in order whether they match visits so many.
pub const MOST_TRIED: u64 = 4_000;
/// So many bytes need not be asked for.
pub const FREE_BYTES: usize = 64 << 10;

/// A value of so many bytes counts while its row is made; it stands in the row's packet, too, whose memory grows by doubling.
pub const LARGE: usize = 1 << 20;
const COPIES_OF_LARGE: usize = 3;

/// The bytes that a value takes which a row has made, if it is a large one.
#[inline]
pub fn bytes_of_large(value: &Datum<'_>) -> usize {
    let len = match value {
        Datum::Str(Cow::Owned(text)) => text.len(),
        Datum::Bytes(Cow::Owned(bytes)) => bytes.len(),
        _ => 0,
    };
    if len < LARGE { 0 } else { len * COPIES_OF_LARGE }
}

/// What a key in a hash table takes beside its bytes, about.
pub const KEY_BYTES: usize = 32;

/// What a value takes.
pub fn bytes_of(value: &Datum<'_>) -> usize {
    let beside = match value {
        Datum::Str(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Datum<'_>>() + beside
}

/// The bounds of one run. Its counts are atomic only because sinks, which see it, may be sent to other threads.
pub struct Bounds<'b> {
    interrupt: &'b Interrupt,
    deadline: Option<Instant>,
    is_query: bool,
    memory: &'b MemoryBudget,
    /// What the run may hold, in bytes.
    memory_limit: usize,
    held: AtomicUsize,
    /// Of the budget, and what needs none.
    reserved: AtomicUsize,
    /// Rows until the next look, and those before the last one.
    rows_left: AtomicUsize,
    rows: AtomicU64,
    /// How many rows are visited before another path is better.
    most_rows: AtomicU64,
    /// Another path can still take the statement.
    may_decline: AtomicBool,
    has_declined: AtomicBool,
    /// The client has been told something.
    has_sent: AtomicBool,
}

impl<'b> Bounds<'b> {
    /// Of a statement that changes rows. It may hold `memory_limit` bytes even where the server has no memory left, for it may
    /// be what makes room.
    pub fn new(interrupt: &'b Interrupt, memory: &'b MemoryBudget, memory_limit: Option<usize>) -> Self {
        Self {
            interrupt,
            deadline: None,
            is_query: false,
            memory,
            memory_limit: memory_limit.unwrap_or(memory.limit() / 2),
            held: AtomicUsize::new(0),
            reserved: AtomicUsize::new(FREE_BYTES),
            rows_left: AtomicUsize::new(ROWS_IN_PLACE),
            rows: AtomicU64::new(0),
            most_rows: AtomicU64::new(MOST_ROWS),
            may_decline: AtomicBool::new(false),
            has_declined: AtomicBool::new(false),
            has_sent: AtomicBool::new(false),
        }
    }

    /// Of one that does not, and has to end by some time.
    #[must_use]
    pub fn of_query(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self.is_query = true;
        self
    }

    /// Counts a row that is visited or changed.
    #[inline]
    pub fn row(&self) -> Result<(), SqlError> {
        let left = self.rows_left.load(Relaxed) - 1;
        self.rows_left.store(left, Relaxed);
        if left == 0 { self.look() } else { Ok(()) }
    }

    /// Whether the last row counted was one at which it looked at everything else.
    #[inline]
    pub fn has_looked(&self) -> bool {
        self.rows_left.load(Relaxed) == ROWS_IN_PLACE
    }

    /// What ends the run's waits for its client.
    pub fn cancellation(&self) -> Cancellation<'b> {
        Cancellation { interrupt: self.interrupt, deadline: self.deadline }
    }

    /// Looks for who wants it to end.
    pub fn check(&self) -> Result<(), SqlError> {
        self.interrupt.check()
    }

    /// Counts bytes that are kept. If they are too many, the next row fails.
    #[inline]
    pub fn hold(&self, bytes: usize) {
        let held = self.held.load(Relaxed) + bytes;
        self.held.store(held, Relaxed);
        if held > self.reserved.load(Relaxed) {
            self.rows_left.store(1, Relaxed);
        }
    }

    /// Counts the bytes of a large value that the row at hand holds; fails at once if they are too many.
    #[cold]
    pub fn hold_large(&self, bytes: usize) -> Result<(), SqlError> {
        self.check()?;
        self.held.store(self.held.load(Relaxed) + bytes, Relaxed);
        match self.held.load(Relaxed) <= self.reserved.load(Relaxed) || self.reserve() {
            true => Ok(()),
            false => Err(self.too_much()),
        }
    }

    fn too_much(&self) -> SqlError {
        let (held, most) = (self.held.load(Relaxed), self.memory_limit);
        let now = self.memory.in_use();
        ErrorCode::OUT_OF_RESOURCES.because(format!(
            "Query exceeded its memory limit: it has {held} of {most} bytes at most, and all queries have {} of the server's {}",
            now.queries, now.limit
        ))
    }

    /// Counts bytes that were held and are no more.
    #[inline]
    pub fn let_go(&self, bytes: usize) {
        self.held.store(self.held.load(Relaxed) - bytes, Relaxed);
    }

    pub fn holds_something(&self) -> bool {
        self.held.load(Relaxed) > 0
    }

    /// Whether more was held than is worth keeping.
    pub fn held_much(&self) -> bool {
        self.reserved.load(Relaxed) > FREE_BYTES
    }

    /// From now on, too many rows or too little memory are reasons to leave the statement to another path.
    pub fn allow_declining(&self) {
        self.may_decline.store(true, Relaxed);
    }

    /// As `allow_declining`, sooner.
    pub fn only_try(&self) {
        self.most_rows.store(MOST_TRIED, Relaxed);
    }

    /// So many rows more may be visited before another path is better: that one has other costs beside.
    pub fn allow_more(&self, rows: u64) {
        self.most_rows.store(self.most_rows.load(Relaxed).saturating_add(rows), Relaxed);
    }

    /// Leaves the statement to another path, if one can still take it.
    #[cold]
    pub fn decline(&self) -> Result<(), SqlError> {
        if !self.may_decline.load(Relaxed) {
            return Ok(());
        }
        self.has_declined.store(true, Relaxed);
        Err(ErrorCode::OUT_OF_RESOURCES.because("another path is to take the statement".to_owned()))
    }

    /// Something was sent.
    #[inline]
    pub fn forbid_declining(&self) {
        self.may_decline.store(false, Relaxed);
    }

    /// The client is told something: the statement cannot begin anew.
    #[inline]
    pub fn note_sent(&self) {
        self.has_sent.store(true, Relaxed);
        self.forbid_declining();
    }

    pub fn has_sent(&self) -> bool {
        self.has_sent.load(Relaxed)
    }

    /// Whether the error that ended the run stands for this.
    pub fn has_declined(&self) -> bool {
        self.has_declined.load(Relaxed)
    }

    #[cold]
    fn look(&self) -> Result<(), SqlError> {
        self.rows_left.store(ROWS_IN_PLACE, Relaxed);
        self.rows.store(self.rows.load(Relaxed) + ROWS_IN_PLACE as u64, Relaxed);
        self.interrupt.check()?;
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(ErrorCode::QUERY_TIMEOUT.with(&[]));
        }
        let fits = self.held.load(Relaxed) <= self.reserved.load(Relaxed) || self.reserve();
        if !fits || self.rows.load(Relaxed) > self.most_rows.load(Relaxed) {
            self.decline()?;
        }
        match fits {
            true => Ok(()),
            false => Err(self.too_much()),
        }
    }

    /// Takes from the budget what is held, and half as much again if there is as much; false if there is too little.
    fn reserve(&self) -> bool {
        let (held, reserved) = (self.held.load(Relaxed), self.reserved.load(Relaxed));
        let ample = (held + held / 2).min(self.memory_limit);
        let mut steps =
            [ample, held].into_iter().filter(|wanted| (held..=self.memory_limit).contains(wanted));
        let got = steps.find(|wanted| !self.is_query || self.memory.reserve(wanted - reserved));
        if let Some(wanted) = got.filter(|_| !self.is_query) {
            self.memory.take(wanted - reserved);
        }
        if let Some(got) = got {
            self.reserved.store(got, Relaxed);
        }
        got.is_some()
    }
}

impl Drop for Bounds<'_> {
    fn drop(&mut self) {
        let reserved = self.reserved.load(Relaxed) - FREE_BYTES;
        if reserved > 0 {
            self.memory.release(reserved);
        }
    }
}
