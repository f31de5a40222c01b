//! The tree against a model, alone and with threads.

mod points;

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;

use super::node::{LONG, Locked};
use super::search::Seek;
use super::{BTree, Direction, MAX_KEY_LEN, ScanScratch};

type Model = BTreeSet<Vec<u8>>;

fn collect(tree: &BTree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    tree.scan(lower, upper, direction, &mut ScanScratch::new(), &mut |key| {
        out.push(key.to_vec());
        ControlFlow::Continue(())
    });
    out
}

fn all(tree: &BTree) -> Vec<Vec<u8>> {
    collect(tree, Bound::Unbounded, Bound::Unbounded, Direction::Ascending)
}

fn prefixed(tree: &BTree, prefix: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    tree.prefix_scan(prefix, &mut ScanScratch::new(), &mut |key| {
        out.push(key.to_vec());
        ControlFlow::Continue(())
    });
    out
}

#[track_caller]
fn assert_same(tree: &BTree, model: &Model) {
    tree.check().unwrap();
    assert_eq!(tree.len(), model.len() as u64);
    assert!(all(tree).iter().eq(model.iter()), "the tree and the model hold different entries");
}

fn number(n: u64) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

/// A permutation of the numbers below `n`, for a prime `n`.
fn shuffled(n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |i| i * 7_919 % n)
}

/// Keys that collide in heads, prefixes, zero bytes and lengths.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(0xff), any::<u8>()];
    prop_oneof![
        4 => prop::collection::vec(byte.clone(), 0..12),
        3 => (0u64..400).prop_map(number),
        2 => (0u64..100, 0usize..40).prop_map(|(n, zeros)| {
            let mut key = b"one long prefix that a great many of the keys share ".to_vec();
            key.extend_from_slice(&n.to_be_bytes());
            key.resize(key.len() + zeros, 0);
            key
        }),
        1 => (any::<u8>(), lengths(), byte).prop_map(|(fill, len, last)| {
            let mut key = vec![fill & 1; len];
            key[len - 1] = last;
            key
        }),
    ]
}

/// Long keys, and those around the length that a slot does not hold any more.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![
        2 => 100usize..4_000,
        2 => LONG - 12..LONG + 12,
        1 => 100..=MAX_KEY_LEN,
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>),
    Remove(Vec<u8>),
    RemoveNth(usize),
    InsertRun(Vec<u8>, u8),
    RemoveRange(Vec<u8>, Vec<u8>),
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>, usize),
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        2 => key().prop_map(Bound::Included),
        2 => key().prop_map(Bound::Excluded),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => key().prop_map(Step::Insert),
        3 => key().prop_map(Step::Remove),
        4 => any::<usize>().prop_map(Step::RemoveNth),
        2 => (key(), any::<u8>()).prop_map(|(key, n)| Step::InsertRun(key, n)),
        1 => (key(), key()).prop_map(|(a, b)| Step::RemoveRange(a, b)),
        2 => (bound(), bound()).prop_map(|(a, b)| Step::Scan(a, b)),
        2 => (key(), 0usize..60).prop_map(|(key, len)| Step::Prefix(key, len)),
    ]
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn in_bounds(key: &[u8], lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => key >= bound.as_slice(),
        Bound::Excluded(bound) => key > bound.as_slice(),
    };
    let below = match upper {
        Bound::Unbounded => true,
        Bound::Included(bound) => key <= bound.as_slice(),
        Bound::Excluded(bound) => key < bound.as_slice(),
    };
    above && below
}

fn apply(tree: &BTree, model: &mut Model, step: Step) {
    match step {
        Step::Insert(key) => assert_eq!(tree.insert(&key), model.insert(key)),
        Step::Remove(key) => assert_eq!(tree.remove(&key), model.remove(&key)),
        Step::RemoveNth(n) => {
            if let Some(key) = model.iter().nth(n % model.len().max(1)).cloned() {
                assert!(tree.contains(&key));
                assert!(tree.remove(&key));
                assert!(!tree.contains(&key));
                model.remove(&key);
            }
        }
        Step::InsertRun(mut key, n) => {
            key.truncate(MAX_KEY_LEN - 1);
            for i in 0..n {
                let key = [key.as_slice(), &[i]].concat();
                assert_eq!(tree.insert(&key), model.insert(key));
            }
        }
        Step::RemoveRange(a, b) => {
            let (lower, upper) = if a <= b { (a, b) } else { (b, a) };
            for key in model.range(lower.clone()..upper.clone()) {
                assert!(tree.remove(key));
            }
            model.retain(|key| *key < lower || *key >= upper);
        }
        Step::Scan(lower, upper) => {
            let expected: Vec<_> =
                model.iter().filter(|key| in_bounds(key, &lower, &upper)).cloned().collect();
            let mut got = collect(tree, as_slice(&lower), as_slice(&upper), Direction::Ascending);
            assert_eq!(got, expected);
            got = collect(tree, as_slice(&lower), as_slice(&upper), Direction::Descending);
            got.reverse();
            assert_eq!(got, expected);
        }
        Step::Prefix(mut key, len) => {
            key.truncate(len);
            let expected: Vec<_> = model.iter().filter(|entry| entry.starts_with(&key)).cloned().collect();
            assert_eq!(prefixed(tree, &key), expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 32 }))]

    #[test]
    fn behaves_like_a_sorted_set(steps in prop::collection::vec(step(), 0..if cfg!(miri) { 30 } else { 600 })) {
        let tree = BTree::new();
        let mut model = Model::new();
        for step in steps {
            apply(&tree, &mut model, step);
        }
        assert_same(&tree, &model);
        for key in std::mem::take(&mut model) {
            assert!(tree.remove(&key));
        }
        assert_same(&tree, &model);
    }

    #[test]
    fn bulk_build_equals_inserts(keys in prop::collection::btree_set(key(), 0..800), fill in 0.3f32..1.0) {
        let tree = BTree::bulk_build(keys.iter(), fill);
        assert_same(&tree, &keys);
        let mut model = keys.clone();
        for n in 0..300 {
            assert_eq!(tree.insert(&number(n)), model.insert(number(n)));
        }
        assert_same(&tree, &model);
        let filled = BTree::new();
        filled.bulk_fill(keys.iter(), fill);
        assert_same(&filled, &keys);
        model = keys.clone();
        for n in 0..300 {
            assert_eq!(filled.insert(&number(n)), model.insert(number(n)));
        }
        assert_same(&filled, &model);
        let other = BTree::new();
        assert_eq!(other.bulk_insert_sorted(keys.iter().take(keys.len() / 2)), keys.len() as u64 / 2);
        assert_eq!(other.bulk_insert_sorted(keys.iter()), (keys.len() - keys.len() / 2) as u64);
        assert_same(&other, &keys);
    }
}

#[test]
fn takes_keys_in_any_order() {
    let n = if cfg!(miri) { 401 } else { 20_011 };
    let orders: [Box<dyn Iterator<Item = u64>>; 3] =
        [Box::new(0..n), Box::new((0..n).rev()), Box::new(shuffled(n))];
    for order in orders {
        let tree = BTree::new();
        for i in order {
            assert!(tree.insert(&number(i)));
        }
        assert_same(&tree, &(0..n).map(number).collect());
        for i in shuffled(n) {
            assert!(tree.remove(&number(i)));
        }
        assert_same(&tree, &Model::new());
        assert_eq!(tree.bytes(), BTree::new().bytes(), "an emptied tree is one leaf again");
    }
}

#[test]
fn ascending_inserts_leave_full_leaves() {
    let n = 100_000;
    let appended = BTree::new();
    (0..n).for_each(|i| assert!(appended.insert(&number(i))));
    let full = BTree::bulk_build((0..n).map(number), 1.0);
    assert!(appended.bytes() < full.bytes() * 11 / 10, "{} and {}", appended.bytes(), full.bytes());

    let districts = BTree::new();
    let key = |i: u64| [number(i % 10), number(i / 10)].concat();
    (0..n).for_each(|i| assert!(districts.insert(&key(i))));
    assert_same(&districts, &(0..n).map(key).collect());
    assert!(districts.bytes() < full.bytes() * 5 / 4, "{} and {}", districts.bytes(), full.bytes());
}

#[test]
fn keys_of_the_greatest_length() {
    let n = if cfg!(miri) { 20 } else { 211 };
    let key = |i: u64, filler: u8| {
        let mut key = vec![filler; MAX_KEY_LEN];
        key[MAX_KEY_LEN - 8..].copy_from_slice(&i.to_be_bytes());
        key
    };
    let scattered = |i: u64| [number(i), vec![1; MAX_KEY_LEN - 8]].concat();
    let tree = BTree::new();
    let mut model = Model::new();
    for i in shuffled(n) {
        for key in [key(i, 0), key(i, 9), scattered(i), number(i)] {
            assert_eq!(tree.insert(&key), model.insert(key));
        }
    }
    assert_same(&tree, &model);
    let bulk = BTree::bulk_build(model.iter(), 0.9);
    assert_same(&bulk, &model);
    for key in model.iter().filter(|key| key.len() > 8) {
        assert!(tree.remove(key) && bulk.remove(key));
    }
    model.retain(|key| key.len() == 8);
    assert_same(&tree, &model);
    assert_same(&bulk, &model);
}

#[test]
fn a_queue_does_not_grow() {
    let tree = BTree::new();
    let depth = 900;
    let key = |district: u64, order: u64| [number(district), number(order), number(order * 10)].concat();
    let mut most = 0;
    for order in 0..if cfg!(miri) { 1_000 } else { 15_000 } {
        for district in 0..3 {
            assert!(tree.insert(&key(district, order)));
            if order >= depth {
                assert!(tree.remove(&key(district, order - depth)));
            }
        }
        most = most.max(tree.bytes());
    }
    tree.check().unwrap();
    assert_eq!(tree.len(), 3 * depth);
    assert!(most < 300_000, "{most} bytes for {} entries", 3 * depth);
}

#[test]
fn empty_and_nested_keys() {
    let keys: Model = [&b""[..], b"\0", b"\0\0", b"a", b"a\0", b"abcde", b"abcde\0", b"abcdef"]
        .map(<[u8]>::to_vec)
        .into_iter()
        .collect();
    let tree = BTree::new();
    for key in keys.iter().rev() {
        assert!(tree.insert(key));
        assert!(!tree.insert(key));
    }
    assert_same(&tree, &keys);
    assert_eq!(prefixed(&tree, b"abcde"), [&b"abcde"[..], b"abcde\0", b"abcdef"]);
    assert_eq!(prefixed(&tree, b""), all(&tree));
}

#[test]
fn a_visitor_stops_the_scan_and_may_change_the_tree() {
    let tree = BTree::new();
    (0..10_000).for_each(|i| assert!(tree.insert(&number(i))));
    let mut seen = Vec::new();
    tree.scan(
        Bound::Included(&number(500)),
        Bound::Unbounded,
        Direction::Descending,
        &mut ScanScratch::new(),
        &mut |key| {
            seen.push(key.to_vec());
            assert!(tree.remove(key));
            if seen.len() < 3_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    assert!(seen.into_iter().eq((7_000..10_000).rev().map(number)));
    assert_same(&tree, &(0..7_000).map(number).collect());
}

/// Writers churn their own residues while a scanner goes both ways: every scan ascends, and has all the keys that
/// nobody touches.
#[test]
fn writers_and_scanners() {
    let (n, rounds, writers) = if cfg!(miri) { (211, 1, 2) } else { (20_011, 3, 3) };
    let tree = BTree::new();
    let stays = |i: u64| i.is_multiple_of(10);
    let key = |i: u64| [b"all the keys share this much ".to_vec(), number(i)].concat();
    for i in (0..n).filter(|&i| stays(i)) {
        assert!(tree.insert(&key(i)));
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let scanner = scope.spawn(|| {
            let mut scans = 0;
            while !done.load(Ordering::Relaxed) || scans == 0 {
                for direction in [Direction::Ascending, Direction::Descending] {
                    let mut seen = collect(&tree, Bound::Unbounded, Bound::Unbounded, direction);
                    if direction == Direction::Descending {
                        seen.reverse();
                    }
                    assert!(seen.is_sorted_by(|a, b| a < b));
                    let seen: Model = seen.into_iter().collect();
                    assert!((0..n).filter(|&i| stays(i)).all(|i| seen.contains(&key(i))));
                }
                scans += 1;
            }
        });
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                let (tree, key) = (&tree, &key);
                scope.spawn(move || {
                    let mine = || shuffled(n).filter(move |&i| !stays(i) && i % writers == writer);
                    for _ in 0..rounds {
                        mine().for_each(|i| assert!(tree.insert(&key(i))));
                        mine().for_each(|i| assert!(tree.contains(&key(i))));
                        mine().for_each(|i| assert!(tree.remove(&key(i))));
                    }
                    mine().filter(|i| i % 4 == 1).for_each(|i| assert!(tree.insert(&key(i))));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Relaxed);
        scanner.join().unwrap();
    });
    assert_same(&tree, &(0..n).filter(|&i| stays(i) || i % 4 == 1).map(key).collect());
}

/// All threads want the same keys: each insert and each removal succeeds for exactly one of them.
#[test]
fn one_winner_per_key() {
    let n = if cfg!(miri) { 101 } else { 30_011 };
    let tree = BTree::new();
    for _ in 0..2 {
        let won = |act: fn(&BTree, &[u8]) -> bool| -> u64 {
            thread::scope(|scope| {
                let tree = &tree;
                let threads: Vec<_> = (0..3)
                    .map(|_| {
                        scope.spawn(move || shuffled(n).filter(|&i| act(tree, &number(i))).count() as u64)
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            })
        };
        assert_eq!(won(BTree::insert), n);
        assert_same(&tree, &(0..n).map(number).collect());
        assert_eq!(won(BTree::remove), n);
        assert_same(&tree, &Model::new());
    }
}

/// A tree of three levels, and a change to its leaf for 500 that no operation would make.
fn damaged(damage: impl Fn(&Locked<'_>)) -> Result<(), String> {
    let tree = BTree::bulk_build((0..200_000).map(number), 0.5);
    tree.check().unwrap();
    let guard = crossbeam_epoch::pin();
    let path = tree.descend(Seek::At(&number(500)), 0, &guard).unwrap();
    damage(&path.node.try_lock(path.version).unwrap());
    tree.check()
}

#[test]
fn check_finds_damage() {
    let out_of_place = damaged(|leaf| assert!(leaf.insert_at(0, &[number(500), vec![7]].concat(), 0)));
    assert!(out_of_place.unwrap_err().contains("is not above the one before"));
    let lost = damaged(|leaf| leaf.remove_at(3));
    assert!(lost.unwrap_err().contains("entries in the leaves"));
    let foreign = damaged(|leaf| {
        let end = leaf.meta().count;
        assert!(leaf.insert_at(end, &[number(500).split_at(6).0, &[0xff; 2]].concat(), 0));
    });
    assert!(foreign.unwrap_err().contains("outside the fences"));
}
