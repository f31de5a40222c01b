//! Versioned delete vectors: which rows of a column block are gone, and for whom.
//!
//! Invariants:
//! 1. `settled` holds the ordinals that are deleted for every snapshot; it is shared, and copied when it
//!    changes while a scan holds it.
//! 2. Chains hold only deletes, locks and marks of who hides a row from itself. An ordinal in `settled` is deleted
//!    whatever its chain says.
//! 3. A closed vector never changes again; who finds one looks the segment up anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use roaring::RoaringBitmap;

use crate::version::{self, Change, Snapshot, TxnState, Undo, truncate_chain};

/// A delete vector and its latch.
pub struct DeleteVector {
    pub body: RwLock<Deletes>,
}

#[derive(Default)]
pub struct Deletes {
    settled: Arc<RoaringBitmap>,
    chains: BTreeMap<u16, Arc<Undo>>,
    /// Changed since a checkpoint last wrote it.
    pub dirty: bool,
    pub closed: bool,
}

impl DeleteVector {
    pub fn new(deletes: Deletes) -> Self {
        Self { body: RwLock::new(deletes) }
    }
}

impl Deletes {
    pub fn settled(settled: RoaringBitmap) -> Self {
        Self { settled: Arc::new(settled), ..Self::default() }
    }

    /// The deletes of a new block: a checkpoint has to write them.
    pub fn fresh() -> Self {
        Self { dirty: true, ..Self::default() }
    }

    pub fn fresh_with(settled: RoaringBitmap) -> Self {
        Self { dirty: true, ..Self::settled(settled) }
    }

    /// The ordinals deleted for every snapshot.
    pub fn all_settled(&self) -> &Arc<RoaringBitmap> {
        &self.settled
    }

    /// Those that nobody has a version of either.
    pub fn settled_for_good(&self) -> RoaringBitmap {
        let mut settled = (*self.settled).clone();
        for ordinal in self.chains.keys() {
            settled.remove(u32::from(*ordinal));
        }
        settled
    }

    pub fn has_versions(&self) -> bool {
        !self.chains.is_empty()
    }

    pub fn chain(&self, ordinal: u16) -> Option<&Arc<Undo>> {
        self.chains.get(&ordinal)
    }

    /// Has the chains of a vector whose block was rewritten. They stay in the other one too, for readers that found the
    /// segment before it was replaced.
    pub fn share_chains_of(&mut self, other: &Self) {
        self.chains = other.chains.clone();
    }

    /// Whether the newest version is a delete (by anyone).
    pub fn is_deleted(&self, ordinal: u16) -> bool {
        self.settled.contains(ordinal.into()) || self.chains.get(&ordinal).is_some_and(newest_is_delete)
    }

    pub fn is_deleted_for(&self, ordinal: u16, snapshot: &Snapshot<'_>) -> bool {
        self.settled.contains(ordinal.into())
            || self.chains.get(&ordinal).is_some_and(|head| deleted_for(head, snapshot))
    }

    /// What a scan at `snapshot` must leave out.
    pub fn deleted_for(&self, snapshot: &Snapshot<'_>) -> Arc<RoaringBitmap> {
        let mut all: Option<RoaringBitmap> = None;
        for (&ordinal, head) in &self.chains {
            if deleted_for(head, snapshot) {
                all.get_or_insert_with(|| (*self.settled).clone()).insert(ordinal.into());
            }
        }
        all.map_or_else(|| self.settled.clone(), Arc::new)
    }

    /// The ordinals whose newest version is a delete (by anyone).
    pub fn newest(&self) -> RoaringBitmap {
        let mut all = (*self.settled).clone();
        let pending = self.chains.iter().filter(|(_, head)| newest_is_delete(head));
        all.extend(pending.map(|(&ordinal, _)| u32::from(ordinal)));
        all
    }

    /// Rows that are gone in the newest version.
    pub fn newest_count(&self) -> u64 {
        let pending = |(ordinal, head): &(&u16, &Arc<Undo>)| {
            !self.settled.contains(u32::from(**ordinal)) && newest_is_delete(head)
        };
        self.settled.len() + self.chains.iter().filter(pending).count() as u64
    }

    pub fn delete(&mut self, ordinal: u16, txn: &Arc<TxnState>) -> Arc<Undo> {
        assert!(!self.is_deleted(ordinal), "a row is deleted once");
        self.dirty = true;
        self.push(ordinal, txn, Change::Delete)
    }

    /// See [`version::mask`].
    pub fn mask(&self, ordinal: u16, snapshot: &Snapshot<'_>) -> Option<Arc<Undo>> {
        version::mask(self.chain(ordinal)?, snapshot)
    }

    pub fn lock(&mut self, ordinal: u16, txn: &Arc<TxnState>) -> Arc<Undo> {
        self.push(ordinal, txn, Change::Lock)
    }

    fn push(&mut self, ordinal: u16, txn: &Arc<TxnState>, change: Change) -> Arc<Undo> {
        assert!(!self.closed, "a closed delete vector does not change");
        let undo = Undo::new(txn, change, self.chains.remove(&ordinal));
        self.chains.insert(ordinal, undo.clone());
        undo
    }

    /// Deletes for everyone, without a version: recovery. False if the row was gone already.
    pub fn erase(&mut self, ordinal: u16) -> bool {
        self.dirty = true;
        Arc::make_mut(&mut self.settled).insert(ordinal.into())
    }

    pub fn undo(&mut self, ordinal: u16, undo: &Arc<Undo>) {
        if undo.is_mask() {
            return version::unmask(self.chain(ordinal).expect("a mark is never the head"), undo);
        }
        self.drop_head(ordinal, undo);
    }

    fn drop_head(&mut self, ordinal: u16, undo: &Arc<Undo>) {
        let head = self.chains.remove(&ordinal).expect("the undo record is on this ordinal");
        assert!(Arc::ptr_eq(&head, undo), "versions are undone newest first");
        if let Some(older) = head.older_in_use() {
            self.chains.insert(ordinal, older);
        }
    }

    /// Drops a lock of a transaction that has committed, which says nothing to anybody. False if it is not the newest
    /// version: then a newer one will take it in.
    pub fn drop_lock(&mut self, ordinal: u16, lock: &Arc<Undo>) -> bool {
        let is_head = self.chain(ordinal).is_some_and(|head| Arc::ptr_eq(head, lock));
        if is_head {
            lock.settle();
            self.drop_head(ordinal, lock);
        }
        is_head
    }

    /// Drops a committed version that every snapshot sees. True if the row is now gone for everyone, also if somebody
    /// has put a lock or a delete of their own on top of it since.
    pub fn collect(&mut self, ordinal: u16, undo: &Arc<Undo>) -> bool {
        let Some(head) = self.chains.remove(&ordinal) else { return false };
        let mut chain = Some(head);
        truncate_chain(&mut chain, undo);
        if let Some(head) = chain {
            self.chains.insert(ordinal, head);
        }
        undo.is_delete() && Arc::make_mut(&mut self.settled).insert(ordinal.into())
    }
}

/// The newest change that is not a lock decides.
fn newest_is_delete(head: &Arc<Undo>) -> bool {
    let mut at = Some(head.clone());
    while let Some(undo) = at {
        let link = undo.link();
        match link.change {
            Change::Lock | Change::Mask => at = link.older(),
            Change::Delete => return true,
            Change::Insert | Change::Update { .. } => unreachable!("cold rows are only deleted or locked"),
        }
    }
    false
}

fn deleted_for(head: &Arc<Undo>, snapshot: &Snapshot<'_>) -> bool {
    let mut at = Some(head.clone());
    while let Some(undo) = at {
        let link = undo.link();
        if matches!(link.change, Change::Delete | Change::Mask) && snapshot.sees(&undo.txn) {
            return true;
        }
        at = link.older();
    }
    false
}

#[cfg(test)]
mod tests {
    use avocet_base::{Timestamp, TxnId};

    use super::*;

    #[test]
    fn a_delete_counts_from_its_commit_on() {
        let mut deletes = Deletes::settled(RoaringBitmap::from_iter([5]));
        let txn = Arc::new(TxnState::new(TxnId(1)));
        let lock = deletes.lock(7, &txn);
        let undo = deletes.delete(7, &txn);
        let before = Snapshot::at(Timestamp(9));
        let after = Snapshot::at(Timestamp(10));
        assert!(deletes.is_deleted(7) && !deletes.is_deleted_for(7, &after));
        txn.commit(Timestamp(10));
        assert!(deletes.is_deleted_for(7, &after) && !deletes.is_deleted_for(7, &before));
        assert_eq!(deletes.deleted_for(&after).len(), 2);
        assert_eq!(deletes.deleted_for(&before).len(), 1);
        assert!(!deletes.collect(7, &lock));
        assert!(deletes.collect(7, &undo));
        assert_eq!(deletes.all_settled().len(), 2);
    }

    #[test]
    fn a_deleted_row_is_hidden_from_one_transaction_alone() {
        let mut deletes = Deletes::default();
        let (first, second) = (Arc::new(TxnState::new(TxnId(1))), Arc::new(TxnState::new(TxnId(2))));
        deletes.delete(7, &first);
        first.commit(Timestamp(10));
        let old = Snapshot { ts: Timestamp(9), own: Some(&second) };
        assert!(!deletes.is_deleted_for(7, &old));
        let mark = deletes.mask(7, &old).expect("the row has changed since");
        assert!(deletes.is_deleted_for(7, &old) && !deletes.is_deleted_for(7, &Snapshot::at(Timestamp(9))));
        assert!(deletes.mask(7, &old).is_none(), "once is enough");
        deletes.undo(7, &mark);
        assert!(!deletes.is_deleted_for(7, &old));
    }
}
