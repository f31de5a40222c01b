//! The queue of one row, without rows: requests are made by hand.

use std::sync::Arc;
use std::time::Duration;

use avocet_base::{RowId, TableId, Timestamp, TxnId};
use avocet_storage::TxnState;

use super::*;
use crate::error::EngineError;

const ROW: RowKey = RowKey { table: TableId(1), row: RowId(7) };
const OTHER: RowKey = RowKey { table: TableId(1), row: RowId(8) };

fn txn(id: u64) -> Arc<TxnState> {
    Arc::new(TxnState::new(TxnId(id)))
}

/// One transaction with its place in a queue.
struct Asker {
    txn: Arc<TxnState>,
    place: Option<Arc<Waiter>>,
    weight: u64,
}

impl Asker {
    fn new(id: u64) -> Self {
        Self { txn: txn(id), place: None, weight: 0 }
    }

    fn ask(&mut self, locks: &RowLocks, key: RowKey, mode: LockMode, holder: Option<&Asker>) -> Answer {
        let holder = holder.map(|h| &h.txn);
        let request = Request { key, mode, txn: &self.txn, holder, weight: self.weight, patient: true };
        locks.request(&request, &mut self.place)
    }

    fn woken(&self, within: Duration) -> Result<(), EngineError> {
        let hook: WaitHook = Arc::new(|wait| wait());
        let place = self.place.as_ref().expect("it waits");
        place.park(&Patience { timeout: within, hook, interrupted: &|| false })
    }

    fn is_asleep(&self) -> bool {
        matches!(self.woken(Duration::ZERO), Err(EngineError::LockWaitTimeout))
    }
}

fn end(locks: &RowLocks, asker: &Asker) {
    asker.txn.commit(Timestamp(9));
    locks.wake_waiters_of(&asker.txn);
}

#[test]
fn waiters_are_served_in_their_order() {
    let locks = RowLocks::default();
    let (holder, mut first, mut second) = (Asker::new(1), Asker::new(2), Asker::new(3));
    assert!(!locks.may_be_contended(&ROW));
    assert_eq!(first.ask(&locks, ROW, LockMode::Exclusive, Some(&holder)), Answer::Queued);
    assert_eq!(second.ask(&locks, ROW, LockMode::Exclusive, Some(&holder)), Answer::Queued);
    let is_named = |of: &Asker| {
        let named = locks.named_holder(&ROW).expect("there are waiters");
        named.is_some_and(|named| Arc::ptr_eq(&named, &of.txn))
    };
    assert!(is_named(&holder));
    end(&locks, &holder);
    assert!(first.woken(Duration::ZERO).is_ok() && second.is_asleep());
    // The second may not pass the first, even if it asks before.
    assert_eq!(second.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Queued);
    assert_eq!(first.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Granted);
    assert!(second.is_asleep() && is_named(&first));
    end(&locks, &first);
    assert!(second.woken(Duration::ZERO).is_ok());
    assert_eq!(second.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Granted);
    assert!(!locks.may_be_contended(&ROW), "nothing is left behind");
}

#[test]
fn newcomers_pass_a_waking_waiter_only_so_often() {
    let locks = RowLocks::default();
    let (holder, mut first) = (Asker::new(1), Asker::new(2));
    first.ask(&locks, ROW, LockMode::Exclusive, Some(&holder));
    end(&locks, &holder);
    let mut passed = 0;
    loop {
        let mut newcomer = Asker::new(100 + passed);
        match newcomer.ask(&locks, ROW, LockMode::Exclusive, None) {
            Answer::Granted => end(&locks, &newcomer),
            Answer::Queued => break,
            other => panic!("{other:?}"),
        }
        passed += 1;
    }
    assert_eq!(passed, u64::from(queue::MAX_PASSES));
    assert_eq!(first.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Granted);
}

#[test]
fn sharers_go_together_and_newcomers_do_not_pass_a_writer() {
    let locks = RowLocks::default();
    let (mut a, mut b, mut writer, mut late) = (Asker::new(1), Asker::new(2), Asker::new(3), Asker::new(4));
    assert_eq!(a.ask(&locks, ROW, LockMode::Shared, None), Answer::Granted);
    assert_eq!(a.ask(&locks, ROW, LockMode::Shared, None), Answer::Shared);
    assert_eq!(b.ask(&locks, ROW, LockMode::Shared, None), Answer::Granted);
    assert_eq!(writer.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Queued);
    assert_eq!(late.ask(&locks, ROW, LockMode::Shared, None), Answer::Queued);
    locks.unshare(&a.txn, &[ROW]);
    assert!(writer.is_asleep(), "the other still shares it");
    locks.unshare(&b.txn, &[ROW]);
    assert!(writer.woken(Duration::ZERO).is_ok() && late.is_asleep());
    assert_eq!(writer.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Granted);
    end(&locks, &writer);
    assert!(late.woken(Duration::ZERO).is_ok());
}

#[test]
fn the_only_sharer_may_become_exclusive_before_those_who_wait_for_it() {
    let locks = RowLocks::default();
    let (mut sharer, mut writer) = (Asker::new(1), Asker::new(2));
    sharer.ask(&locks, ROW, LockMode::Shared, None);
    assert_eq!(writer.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Queued);
    assert_eq!(sharer.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Granted);
}

#[test]
fn of_a_deadlock_the_cheaper_one_is_the_victim() {
    for (weights, victim) in [([5, 1], 1), ([1, 5], 0), ([3, 3], 1)] {
        let locks = RowLocks::default();
        let (mut a, mut b) = (Asker::new(1), Asker::new(2));
        (a.weight, b.weight) = (weights[0], weights[1]);
        a.ask(&locks, ROW, LockMode::Exclusive, Some(&b));
        locks.break_deadlocks(a.place.as_ref().expect("waits"), false);
        b.ask(&locks, OTHER, LockMode::Exclusive, Some(&a));
        locks.break_deadlocks(b.place.as_ref().expect("waits"), false);
        let lost = [&a, &b].map(|asker| asker.place.as_ref().expect("waits").is_victim());
        assert_eq!(lost, [victim == 0, victim == 1], "{weights:?}");
        let victim = [&a, &b][victim];
        assert!(matches!(victim.woken(Duration::from_secs(5)), Err(EngineError::Deadlock)));
    }
}

#[test]
fn two_sharers_that_both_want_more_are_a_deadlock() {
    let locks = RowLocks::default();
    let (mut a, mut b) = (Asker::new(1), Asker::new(2));
    for asker in [&mut a, &mut b] {
        asker.ask(&locks, ROW, LockMode::Shared, None);
    }
    a.ask(&locks, ROW, LockMode::Exclusive, None);
    locks.break_deadlocks(a.place.as_ref().expect("waits"), true);
    b.ask(&locks, ROW, LockMode::Exclusive, None);
    locks.break_deadlocks(b.place.as_ref().expect("waits"), true);
    assert!(b.place.as_ref().expect("waits").is_victim());
}

/// What a statement's rollback once hid: the row is still held, and the one behind in its queue is in the circle.
#[test]
fn a_circle_through_somebody_behind_in_the_queue_is_found() {
    let locks = RowLocks::default();
    let (holder, mut front, mut behind) = (Asker::new(1), Asker::new(2), Asker::new(3));
    front.ask(&locks, ROW, LockMode::Exclusive, Some(&holder));
    behind.ask(&locks, ROW, LockMode::Exclusive, Some(&holder));
    // It takes back another version of the same row, and of another one.
    locks.wake_watchers(&ROW);
    locks.give_back(&OTHER, &holder.txn);
    assert!(front.is_asleep() && behind.is_asleep());
    let mut holder = holder;
    holder.weight = 5;
    holder.ask(&locks, OTHER, LockMode::Exclusive, Some(&behind));
    locks.break_deadlocks(holder.place.as_ref().expect("waits"), false);
    let lost = [&holder, &front, &behind].map(|asker| asker.place.as_ref().expect("waits").is_victim());
    assert_eq!(lost, [false, false, true]);
}

/// One who shares a row waits for whoever wants it exclusively before it, and so for those who share it now.
#[test]
fn a_circle_through_a_queue_of_sharers_is_found() {
    let locks = RowLocks::default();
    let (mut sharer, mut writer, mut late) = (Asker::new(1), Asker::new(2), Asker::new(3));
    sharer.ask(&locks, ROW, LockMode::Shared, None);
    writer.ask(&locks, ROW, LockMode::Exclusive, None);
    assert_eq!(late.ask(&locks, ROW, LockMode::Shared, None), Answer::Queued);
    sharer.weight = 9;
    sharer.ask(&locks, OTHER, LockMode::Exclusive, Some(&late));
    locks.break_deadlocks(sharer.place.as_ref().expect("waits"), true);
    let lost = [&sharer, &writer, &late].map(|asker| asker.place.as_ref().expect("waits").is_victim());
    assert_eq!(lost, [false, false, true]);
}

/// A search goes along edges that lead out of a row, once: not from each of those who wait to each before it.
#[test]
fn a_long_queue_is_searched_in_no_time() {
    const WAITERS: u64 = 20_000;
    let locks = RowLocks::default();
    let holder = Asker::new(1);
    let mut waiters: Vec<_> = (0..WAITERS).map(|n| Asker::new(100 + n)).collect();
    let begin = std::time::Instant::now();
    for waiter in &mut waiters {
        // Somebody waits for each of them.
        waiter.txn.note_waiter();
        waiter.ask(&locks, ROW, LockMode::Exclusive, Some(&holder));
        locks.break_deadlocks(waiter.place.as_ref().expect("waits"), false);
    }
    end(&locks, &holder);
    for waiter in &mut waiters {
        assert_eq!(waiter.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Granted);
        end(&locks, waiter);
    }
    // The square of that would take minutes.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(!locks.may_be_contended(&ROW));
}

#[test]
fn a_waiter_that_left_closes_no_circle() {
    let locks = RowLocks::default();
    let (mut a, mut b) = (Asker::new(1), Asker::new(2));
    a.ask(&locks, ROW, LockMode::Exclusive, Some(&b));
    locks.leave(&a.place.take().expect("waits"));
    b.ask(&locks, OTHER, LockMode::Exclusive, Some(&a));
    let place = b.place.as_ref().expect("waits");
    locks.break_deadlocks(place, false);
    assert!(!place.is_victim());
}

#[test]
fn who_ends_before_he_is_waited_for_is_asked_again() {
    let locks = RowLocks::default();
    let (holder, mut asker) = (Asker::new(1), Asker::new(2));
    holder.txn.commit(Timestamp(3));
    assert_eq!(asker.ask(&locks, ROW, LockMode::Exclusive, Some(&holder)), Answer::Again);
    assert_eq!(asker.ask(&locks, ROW, LockMode::Exclusive, None), Answer::Granted);
    assert!(locks.graph.lock().waited_for.is_empty() && locks.graph.lock().waiting.is_empty());
}

/// A statement that shared many rows must not leave the memory of their entries behind.
#[test]
fn stripes_give_back_what_they_do_not_use() {
    let locks = RowLocks::default();
    let mut sharer = Asker::new(1);
    let keys: Vec<RowKey> = (0..100_000).map(|row| RowKey { table: TableId(1), row: RowId(row) }).collect();
    for key in &keys {
        assert_eq!(sharer.ask(&locks, *key, LockMode::Shared, None), Answer::Granted);
    }
    assert!(locks.capacity() >= keys.len());
    locks.unshare(&sharer.txn, &keys);
    assert!(locks.capacity() <= STRIPES * KEPT_CAPACITY, "{} entries", locks.capacity());
}
