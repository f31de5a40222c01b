//! Versions: who changed a row, when it counts, and how it was before.
//!
//! ```text
//!  hot slot / cold ordinal ──▶ Undo (newest) ──▶ Undo ──▶ Undo (oldest that anyone may need)
//!                               │ txn              each says how to get from the state after it
//!                               ▼                  to the state before it
//!                            TxnState: running | committed at a timestamp | aborted
//! ```
//!
//! Invariants:
//! 1. A transaction's state word changes exactly once, from running; all its versions change with it.
//! 2. The newest version is in place; a chain is read and changed only under the latch of the page (or
//!    delete vector) that holds its head.
//! 3. A lock shows nothing to whoever holds it: the version that it sees is that of its snapshot.
//! 4. Rollback removes a transaction's undo records before its state becomes aborted, so nobody meets an
//!    aborted version.

mod merge;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use avocet_base::{IndexId, Timestamp, TxnId};
use parking_lot::{Mutex, MutexGuard};

pub use merge::Merged;

const RUNNING: u64 = u64::MAX;
const ABORTED: u64 = u64::MAX - 1;

/// The one word that says what became of a transaction, shared by all its versions.
pub struct TxnState {
    id: TxnId,
    word: AtomicU64,
    /// Somebody waits for a row that it holds.
    waited_for: AtomicBool,
}

impl TxnState {
    pub fn new(id: TxnId) -> Self {
        Self { id, word: AtomicU64::new(RUNNING), waited_for: AtomicBool::new(false) }
    }

    pub fn id(&self) -> TxnId {
        self.id
    }

    pub fn is_running(&self) -> bool {
        self.word.load(Ordering::SeqCst) == RUNNING
    }

    /// When it committed, if it did.
    #[inline]
    pub fn committed_at(&self) -> Option<Timestamp> {
        let word = self.word.load(Ordering::Acquire);
        (word < ABORTED).then_some(Timestamp(word))
    }

    /// All versions of this transaction become committed at `ts`, at once. Who waits for it is still to be woken.
    pub fn commit(&self, ts: Timestamp) {
        self.finish(ts.0);
    }

    /// Its versions are gone already. Who waits for it is still to be woken.
    pub fn abort(&self) {
        self.finish(ABORTED);
    }

    fn finish(&self, word: u64) {
        let before = self.word.swap(word, Ordering::SeqCst);
        assert_eq!(before, RUNNING, "a transaction ends once");
    }

    /// Somebody is about to wait for it: marks that first, then looks whether it still runs. In this order, and
    /// since the transaction ends first and then looks at the mark, one of the two sees the other.
    pub fn note_waiter(&self) -> bool {
        self.waited_for.store(true, Ordering::SeqCst);
        self.is_running()
    }

    /// Whether anybody ever waited for it.
    pub fn is_waited_for(&self) -> bool {
        self.waited_for.load(Ordering::SeqCst)
    }
}

/// What a reader may see: everything committed at or before `ts`, and what it wrote itself.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    pub ts: Timestamp,
    pub own: Option<&'a Arc<TxnState>>,
}

impl<'a> Snapshot<'a> {
    pub fn at(ts: Timestamp) -> Self {
        Self { ts, own: None }
    }

    #[inline]
    pub fn sees(&self, txn: &Arc<TxnState>) -> bool {
        match txn.committed_at() {
            Some(ts) => ts <= self.ts,
            None => self.own.is_some_and(|own| Arc::ptr_eq(own, txn)),
        }
    }

    /// Whether a version that it sees is a lock of its own: what others had committed before that, it may not see.
    #[inline]
    pub fn has_locked(&self, seen: &Undo) -> bool {
        seen.txn.is_running() && seen.is_lock()
    }
}

/// What a version did, and so how to undo it.
#[derive(Debug)]
pub enum Change {
    /// The row did not exist before.
    Insert,
    /// These columns had these values before (see [`crate::hot::delta`]).
    Update { before: Box<[u8]> },
    /// The row existed before, as it still stands in place.
    Delete,
    /// Nothing: the row is locked by the transaction.
    Lock,
    /// Nothing for anybody else; the transaction, while it runs, does not see the row as its snapshot has it (see [`mask`]).
    Mask,
}

/// An index entry that was right before a change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaleEntry {
    pub index: IndexId,
    pub entry: Box<[u8]>,
}

/// One version of one row.
pub struct Undo {
    pub txn: Arc<TxnState>,
    /// Changed under the latch of its chain.
    link: Mutex<Link>,
    /// It says nothing any more: every snapshot sees it, or a newer version stands for it. In the first case it may hang on
    /// below a newer version until that is collected too. Changed under the latch of its chain.
    settled: AtomicBool,
}

/// What a version says, and the next older one.
pub struct Link {
    pub change: Change,
    older: Option<Arc<Undo>>,
    /// Entries that only this version and older ones need.
    pub stale: Vec<StaleEntry>,
}

impl Link {
    /// Bytes that it holds beside itself: of the before-image, and of index entries.
    pub fn bytes(&self) -> usize {
        let before = if let Change::Update { before } = &self.change { before.len() } else { 0 };
        before + self.stale.iter().map(|stale| stale.entry.len()).sum::<usize>()
    }

    pub fn older(&self) -> Option<Arc<Undo>> {
        self.older.clone()
    }
}

impl Undo {
    pub fn new(txn: &Arc<TxnState>, change: Change, older: Option<Arc<Undo>>) -> Arc<Self> {
        let link = Mutex::new(Link { change, older, stale: Vec::new() });
        Arc::new(Self { txn: txn.clone(), link, settled: AtomicBool::new(false) })
    }

    /// What it says. At most one version of a chain is looked at at a time.
    pub fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock()
    }

    pub fn older(&self) -> Option<Arc<Undo>> {
        self.link.lock().older()
    }

    /// What stays of the chain when this version, its head, is taken back.
    pub fn older_in_use(&self) -> Option<Arc<Undo>> {
        self.older().filter(|older| !older.is_settled())
    }

    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    pub fn is_lock(&self) -> bool {
        matches!(self.link.lock().change, Change::Lock)
    }

    pub fn is_delete(&self) -> bool {
        matches!(self.link.lock().change, Change::Delete)
    }

    /// It says nothing any more. Under the latch of its chain.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    pub fn is_mask(&self) -> bool {
        matches!(self.link.lock().change, Change::Mask)
    }

    /// Forgets everything older than this version.
    fn cut(&self) {
        let older = self.link.lock().older.take();
        drop(older);
    }
}

impl Drop for Undo {
    /// Chains can be long; dropping them link by link keeps the stack flat.
    fn drop(&mut self) {
        let mut next = self.link.get_mut().older.take();
        while let Some(undo) = next {
            next = match Arc::try_unwrap(undo) {
                Ok(mut alone) => alone.link.get_mut().older.take(),
                Err(_) => None,
            };
        }
    }
}

/// Takes a version that no snapshot can need any more, and all older ones, from a chain. Versions newer than it stay.
///
/// A version under a newer one is only marked, and goes when the newer one does (or is taken back): looking for it from
/// the head would cost the square of the length of a chain, and the chains of hot rows are long.
pub fn collect_version(head: &mut Option<Arc<Undo>>, gone: &Arc<Undo>) {
    gone.settle();
    gone.cut();
    if head.as_ref().is_some_and(|head| Arc::ptr_eq(head, gone)) {
        *head = None;
    }
}

/// Like [`collect_version`], but unhooks the version at once: for those who look at all versions in a chain.
pub fn truncate_chain(head: &mut Option<Arc<Undo>>, gone: &Arc<Undo>) {
    collect_version(head, gone);
    let mut at = head.clone();
    while let Some(undo) = at {
        at = undo.older();
        if at.as_ref().is_some_and(|older| Arc::ptr_eq(older, gone)) {
            undo.cut();
            return;
        }
    }
}

/// Hides the version of a row that `snapshot` has from the transaction whose snapshot it is. Under the latch of the chain.
///
/// It sees another row in this one's place: one that it has inserted with its primary key, say, after others had deleted it.
/// `None` if the row is as the snapshot has it, or hidden already.
///
/// The mark stands right below a version that others have committed since. So it is never the head of a chain, the version
/// above it is never taken back, and it stays above what the snapshot has, which keeps all these versions.
pub fn mask(head: &Arc<Undo>, snapshot: &Snapshot<'_>) -> Option<Arc<Undo>> {
    let own = snapshot.own?;
    let mut above = None;
    let mut next = Some(head.clone());
    while let Some(undo) = next {
        let link = undo.link();
        next = link.older();
        match link.change {
            Change::Mask if Arc::ptr_eq(&undo.txn, own) => return None,
            Change::Mask | Change::Lock => {}
            Change::Insert | Change::Update { .. } | Change::Delete => {
                let is_unseen = undo.txn.committed_at().is_some_and(|at| at > snapshot.ts);
                if is_unseen && above.is_none() {
                    above = Some(undo.clone());
                }
            }
        }
    }
    let above = above?;
    let mut link = above.link();
    let mark = Undo::new(own, Change::Mask, link.older.take());
    link.older = Some(mark.clone());
    drop(link);
    Some(mark)
}

/// Takes a mark of [`mask`] back. Under the latch of the chain.
pub fn unmask(head: &Arc<Undo>, mark: &Arc<Undo>) {
    let mut next = Some(head.clone());
    while let Some(undo) = next {
        next = undo.older();
        if next.as_ref().is_some_and(|older| Arc::ptr_eq(older, mark)) {
            let below = mark.older();
            undo.link().older = below;
            return;
        }
    }
    unreachable!("what is above a mark stays as long as the transaction's snapshot");
}

/// Whom a writer has to wait for before it may put a version on this chain.
pub fn running_other<'c>(head: Option<&'c Arc<Undo>>, own: &Arc<TxnState>) -> Option<&'c Arc<TxnState>> {
    head.map(|undo| &undo.txn).filter(|txn| !Arc::ptr_eq(txn, own) && txn.is_running())
}
