//! The tree: descent, point operations, counters.

use std::sync::atomic::{AtomicU64, Ordering};

use super::latch::{Backoff, Restart, Version};
use super::memory::{Guard, MAX_KEY_LEN, MIN_CLASS, pin};
use super::node::{Draft, Node, Root, heap_words};
use super::search::Seek;

/// An ordered set of byte strings for many readers and writers.
///
/// Operations are linearizable one by one. A scan is not one moment in time: it shows every entry that was
/// there from its beginning to its end, none that was not there at any time in between, and those that
/// came or went meanwhile or not.
pub struct BTree {
    pub(super) root: Root,
    count: Counter,
    bytes: AtomicU64,
}

/// A node as a descent found it, with the way in.
pub(super) struct Path<'g> {
    pub parent: Parent<'g>,
    pub parent_version: Version,
    pub node: Node<'g>,
    pub version: Version,
}

#[derive(Clone, Copy)]
pub(super) enum Parent<'g> {
    Root,
    Inner(Node<'g>, usize),
}

impl Default for BTree {
    fn default() -> Self {
        BTree::new()
    }
}

impl BTree {
    pub fn new() -> Self {
        let root = Draft::new(0, MIN_CLASS, &[], None).publish();
        BTree::with_root(root, 0, root.bytes())
    }

    /// A tree over a root built elsewhere, with the entries and bytes below it.
    pub(super) fn with_root(root: Node<'static>, entries: u64, bytes: u64) -> Self {
        let tree = BTree { root: Root::new(root), count: Counter::default(), bytes: AtomicU64::new(bytes) };
        tree.count.add(0, entries);
        tree
    }

    /// Entries in the tree.
    pub fn len(&self) -> u64 {
        self.count.sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the tree's nodes. Nodes that are retired but not yet freed are not counted.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        let guard = pin();
        retry(|| {
            let path = self.descend(Seek::At(key), 0, &guard)?;
            let (_, found) = path.node.lower_bound(key);
            path.node.validate(path.version)?;
            Ok(found)
        })
    }

    /// Adds an entry; false if it was there.
    ///
    /// # Panics
    /// If the key is longer than [`MAX_KEY_LEN`].
    pub fn insert(&self, key: &[u8]) -> bool {
        assert!(key.len() <= MAX_KEY_LEN, "index entries have at most {MAX_KEY_LEN} bytes");
        let guard = pin();
        loop {
            match retry(|| self.try_insert(key, &guard)) {
                Attempt::Done(added) => return added,
                Attempt::Again => {}
            }
        }
    }

    /// Takes an entry out; false if it was not there.
    pub fn remove(&self, key: &[u8]) -> bool {
        let guard = pin();
        let (removed, sparse) = retry(|| self.try_remove(key, &guard));
        if sparse {
            self.shrink(key, 0, &guard);
        }
        removed
    }

    fn try_insert(&self, key: &[u8], guard: &Guard) -> Result<Attempt, Restart> {
        let path = self.descend(Seek::At(key), 0, guard)?;
        let (pos, found) = path.node.lower_bound(key);
        if found {
            path.node.validate(path.version)?;
            return Ok(Attempt::Done(false));
        }
        let leaf = path.node.try_lock(path.version)?;
        if leaf.insert_at(pos, key, 0) {
            drop(leaf);
            self.count_added(path.node, 1);
            return Ok(Attempt::Done(true));
        }
        let words = 1 + heap_words(key.len() - leaf.meta().prefix);
        drop(leaf);
        self.make_room(key, 0, words, guard)?;
        Ok(Attempt::Again)
    }

    /// Whether the entry was there, and whether its leaf has become sparse enough to be merged.
    fn try_remove(&self, key: &[u8], guard: &Guard) -> Result<(bool, bool), Restart> {
        let path = self.descend(Seek::At(key), 0, guard)?;
        let (pos, found) = path.node.lower_bound(key);
        if !found {
            path.node.validate(path.version)?;
            return Ok((false, false));
        }
        let leaf = path.node.try_lock(path.version)?;
        leaf.remove_at(pos);
        let sparse = Self::worth_shrinking(*leaf) && !matches!(path.parent, Parent::Root);
        drop(leaf);
        self.count.add(path.node.raw(), u64::MAX);
        Ok((true, sparse))
    }

    /// Goes down to the node of `level` that `seek` asks for, or to the root if that is lower.
    #[inline]
    pub(super) fn descend<'g>(
        &'g self,
        seek: Seek<'_>,
        level: u32,
        guard: &'g Guard,
    ) -> Result<Path<'g>, Restart> {
        let (node, parent_version) = self.root.load(guard)?;
        let version = node.read()?;
        self.root.latch().validate(parent_version)?;
        let mut path = Path { parent: Parent::Root, parent_version, node, version };
        while path.node.level() > level {
            let index = path.node.child_index(seek);
            let child = path.node.child(index, path.version)?;
            let version = child.read()?;
            // The child may have been split or merged between following the pointer and taking its version;
            // that changes the parent first.
            path.node.validate(path.version)?;
            path = Path {
                parent: Parent::Inner(path.node, index),
                parent_version: path.version,
                node: child,
                version,
            };
        }
        Ok(path)
    }

    /// Goes down to a leaf by the children that `pick` chooses, of as many as it is told.
    pub(super) fn descend_by<'g>(
        &'g self,
        pick: &mut dyn FnMut(usize) -> usize,
        guard: &'g Guard,
    ) -> Result<(Node<'g>, Version), Restart> {
        let (mut node, root_version) = self.root.load(guard)?;
        let mut version = node.read()?;
        self.root.latch().validate(root_version)?;
        while !node.is_leaf() {
            let count = node.meta().count.max(1);
            let child = node.child(pick(count).min(count - 1), version)?;
            let child_version = child.read()?;
            node.validate(version)?;
            (node, version) = (child, child_version);
        }
        Ok((node, version))
    }

    #[inline]
    pub(super) fn count_added(&self, node: Node<'_>, entries: u64) {
        self.count.add(node.raw(), entries);
    }

    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn sub_bytes(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

enum Attempt {
    Done(bool),
    /// There was no room; there is now, or the tree has changed.
    Again,
}

/// Repeats an optimistic attempt until it goes through.
#[inline]
pub(super) fn retry<T>(mut attempt: impl FnMut() -> Result<T, Restart>) -> T {
    if let Ok(value) = attempt() {
        return value;
    }
    let mut backoff = Backoff::new();
    loop {
        backoff.wait();
        if let Ok(value) = attempt() {
            return value;
        }
    }
}

/// A count that writers on different nodes add to without sharing a cache line.
#[derive(Default)]
struct Counter {
    stripes: [Stripe; 8],
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

impl Counter {
    /// Adds (modulo 2^64, so that −1 is `u64::MAX`), on the stripe that the node's address gives.
    #[inline]
    fn add(&self, address: u64, entries: u64) {
        let stripe = address >> 12 & 7;
        self.stripes[stripe as usize].0.fetch_add(entries, Ordering::Relaxed);
    }

    fn sum(&self) -> u64 {
        self.stripes.iter().fold(0, |sum, stripe| sum.wrapping_add(stripe.0.load(Ordering::Relaxed)))
    }
}
