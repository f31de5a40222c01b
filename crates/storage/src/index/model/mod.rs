//! The tree under shuttle: its files are compiled a second time here, over words at each of whose uses another thread may
//! go on, nodes of a few entries, and memory that knows what is freed. Threads do what they like to a few keys and scan both
//! ways; what they saw must have an order that explains it, and what is left must be a tree.
//!
//! Words are as if sequentially consistent; that the latch's orderings suffice is what `latch_model` shows.
//!
//! A rule of the latch or of reclamation is broken on purpose, one at a time, and must be missed.

#![allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "the files are those of the tree, and the model uses a part"
)]

mod atomics;
#[path = "../bulk.rs"]
mod bulk;
#[path = "../check.rs"]
mod check;
pub mod explore;
mod history;
mod latch;
#[allow(unsafe_code)]
mod memory;
#[path = "../node.rs"]
#[allow(unsafe_code)]
mod node;
#[path = "../point.rs"]
mod point;
#[path = "../restructure.rs"]
mod restructure;
#[path = "../scan.rs"]
mod scan;
#[path = "../search.rs"]
mod search;
#[path = "../latch.rs"]
mod sound_latch;
#[path = "../tree.rs"]
mod tree;

use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use self::explore::{below, explore, schedules_until_failure};
use self::history::{Event, Op, is_explained};
use self::point::Lookup;
use self::scan::{Direction, ScanScratch};
use self::tree::BTree;

/// A rule that the model breaks, to see whether it notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// What was read is one state of the node.
    Validate,
    /// A lock is taken on what was validated.
    LockWhatWasSeen,
    /// A change begins a version that there never was.
    BeginVersions,
    /// Nodes are freed when nobody can see them any more.
    WaitForPins,
}

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

fn breaks(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}

const KEYS: usize = 40;
/// Keys next to each other that threads change; the others stay.
const CHANGING: usize = 14;
/// Entries that a key may have.
const IDS: u8 = 3;
const STEPS: usize = 5;

/// Keys of three lengths, none the beginning of another, with prefixes in common.
fn key(n: usize) -> Vec<u8> {
    let mut key = vec![b'a' + (n / 8) as u8];
    key.resize(1 + [0, 4, 11][n % 3], b'x');
    key.extend([1 + (n % 8) as u8, 0]);
    key
}

fn entry(n: usize, id: u8) -> Vec<u8> {
    [key(n), u64::from(id).to_be_bytes().to_vec()].concat()
}

/// The entries of a key before anything is done, as bits.
fn before(n: usize) -> u8 {
    [0b010, 0b001, 0b101, 0][n % 4]
}

/// What all entries are, in the order of a tree.
fn all_entries() -> Vec<(Vec<u8>, usize, u8)> {
    let mut all: Vec<_> = (0..KEYS).flat_map(|n| (0..IDS).map(move |id| (entry(n, id), n, id))).collect();
    all.sort();
    all
}

fn loaded_tree() -> BTree {
    let there = all_entries().into_iter().filter(|&(_, n, id)| before(n) & 1 << id != 0);
    let entries: Vec<_> = there.map(|(entry, ..)| entry).collect();
    if below(2) == 0 {
        return BTree::bulk_build(entries.iter(), 0.9);
    }
    let tree = BTree::new();
    let from = below(entries.len());
    entries[from..].iter().chain(&entries[..from]).for_each(|entry| assert!(tree.insert(entry)));
    tree
}

/// One of the threads, and what it has done so far.
struct Worker {
    thread: usize,
    tree: Arc<BTree>,
    /// The first of the keys that change.
    first: usize,
    events: Vec<Event>,
}

impl Worker {
    fn note(&mut self, key: usize, began: u64, op: Op) {
        self.events.push(Event { thread: self.thread, key, op, began, ended: atomics::now() });
    }

    /// A step at random; runs of keys, so that nodes get full and empty.
    fn step(&mut self) {
        let from = below(CHANGING);
        let run = self.first + from..self.first + CHANGING.min(from + 1 + below(6));
        let id = below(IDS.into()) as u8;
        match below(12) {
            0 => run.for_each(|n| self.insert(n, id)),
            1..4 => run.for_each(|n| (0..IDS).for_each(|id| self.insert(n, id))),
            4 => run.for_each(|n| self.remove(n, id)),
            5 | 6 => run.for_each(|n| (0..IDS).for_each(|id| self.remove(n, id))),
            7 => run.for_each(|n| self.claim(n, id)),
            8 => run.for_each(|n| self.look_up(n)),
            9 => self.insert_sorted(run, id),
            10 => self.scan(Direction::Ascending),
            _ => self.scan(Direction::Descending),
        }
    }

    fn insert(&mut self, n: usize, id: u8) {
        self.point(n, |tree| Op::Insert(id, tree.insert(&entry(n, id))));
    }

    fn remove(&mut self, n: usize, id: u8) {
        self.point(n, |tree| Op::Remove(id, tree.remove(&entry(n, id))));
    }

    fn point(&mut self, n: usize, act: impl Fn(&BTree) -> Op) {
        let began = atomics::now();
        let op = act(&self.tree);
        self.note(n, began, op);
    }

    fn claim(&mut self, n: usize, id: u8) {
        let began = atomics::now();
        if self.tree.insert_alone(&entry(n, id), key(n).len()) {
            self.note(n, began, Op::Alone(id));
        }
    }

    fn look_up(&mut self, n: usize) {
        let began = atomics::now();
        match self.tree.lookup(&key(n)) {
            Lookup::One(tail) => {
                let id = u64::from_be_bytes(tail);
                assert!(id < IDS.into(), "entry {id} of key {n} was never there");
                self.note(n, began, Op::Only(id as u8));
            }
            Lookup::Nothing => self.note(n, began, Op::Nothing),
            Lookup::Unclear => {}
        }
    }

    fn insert_sorted(&mut self, run: std::ops::Range<usize>, id: u8) {
        let began = atomics::now();
        let mut entries: Vec<_> = run.clone().map(|n| entry(n, id)).collect();
        entries.sort();
        self.tree.bulk_insert_sorted(entries.iter());
        run.for_each(|n| self.note(n, began, Op::Put(id)));
    }

    /// A scan between bounds at random saw, or did not see, each entry at some moment.
    fn scan(&mut self, direction: Direction) {
        let all = all_entries();
        let from = below(all.len());
        let to = from + below(all.len() - from);
        let (lower, upper) = (Bound::Included(all[from].0.as_slice()), Bound::Excluded(all[to].0.as_slice()));
        let began = atomics::now();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        self.tree.scan(lower, upper, direction, &mut ScanScratch::new(), &mut |entry| {
            seen.push(entry.to_vec());
            ControlFlow::Continue(())
        });
        if direction == Direction::Descending {
            seen.reverse();
        }
        assert!(seen.is_sorted_by(|a, b| a < b), "a scan in order");
        let mut seen = seen.into_iter().peekable();
        for (entry, n, id) in &all[from..to] {
            let was_seen = seen.next_if_eq(entry).is_some();
            self.note(*n, began, Op::Read(*id, was_seen));
        }
        assert_eq!(seen.next(), None, "an entry that was never there, or outside the bounds");
    }
}

/// Threads at work on one tree. Returns how many nodes came to be while they were.
fn work(threads: usize) -> u64 {
    memory::begin();
    let tree = Arc::new(loaded_tree());
    let first = below(KEYS - CHANGING);
    let nodes = memory::nodes();
    let events = Arc::new(Mutex::new(Vec::new()));
    let spawn = |thread| {
        let mut worker = Worker { thread, tree: tree.clone(), first, events: Vec::new() };
        let events = events.clone();
        shuttle::thread::spawn(move || {
            (0..STEPS).for_each(|_| worker.step());
            events.lock().unwrap().append(&mut worker.events);
        })
    };
    let handles: Vec<_> = (0..threads).map(spawn).collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    let made = memory::nodes() - nodes;

    tree.check().unwrap();
    let mut last = Worker { thread: threads, tree: tree.clone(), first, events: Vec::new() };
    last.scan_all();
    let mut events = std::mem::take(&mut *events.lock().unwrap());
    events.append(&mut last.events);
    assert_explained(&events);
    drop((last, tree));
    memory::end();
    made
}

impl Worker {
    /// What is there in the end, by every way of looking.
    fn scan_all(&mut self) {
        let began = atomics::now();
        let mut count = 0;
        for (entry, n, id) in all_entries() {
            let there = self.tree.contains(&entry);
            count += u64::from(there);
            self.note(n, began, Op::Read(id, there));
        }
        assert_eq!(self.tree.len(), count);
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut scanned = 0;
            self.tree.scan(
                Bound::Unbounded,
                Bound::Unbounded,
                direction,
                &mut ScanScratch::new(),
                &mut |_| {
                    scanned += 1;
                    ControlFlow::Continue(())
                },
            );
            assert_eq!(scanned, count);
        }
    }
}

fn assert_explained(events: &[Event]) {
    for n in 0..KEYS {
        let mut of_key: Vec<Event> = events.iter().filter(|event| event.key == n).cloned().collect();
        of_key.sort_by_key(|event| event.began);
        if !is_explained(&of_key, before(n)) {
            of_key.iter().for_each(|event| eprintln!("{event:?}"));
            panic!("nothing explains what happened to key {n}, which had entries {:?}", before(n));
        }
    }
}

#[test]
fn whatever_threads_see_has_an_explanation() {
    let made = Arc::new(AtomicU64::new(0));
    let schedules = Arc::new(AtomicU64::new(0));
    let counters = (made.clone(), schedules.clone());
    explore(2_000, move || {
        counters.0.fetch_add(work(2 + below(3)), Ordering::Relaxed);
        counters.1.fetch_add(1, Ordering::Relaxed);
    });
    let (made, schedules) = (made.load(Ordering::Relaxed), schedules.load(Ordering::Relaxed));
    assert!(made > 3 * schedules, "{made} nodes in {schedules} schedules: too few splits and merges");
}

#[test]
fn every_broken_rule_is_missed() {
    for rule in [Rule::Validate, Rule::LockWhatWasSeen, Rule::BeginVersions, Rule::WaitForPins] {
        let needed = schedules_until_failure(5_000, move || {
            BROKEN.set(Some(rule));
            work(3);
        });
        BROKEN.set(None);
        assert!(needed.is_some(), "nobody misses {rule:?}");
        eprintln!("{rule:?}: missed within {} schedules", needed.unwrap_or_default());
    }
}
