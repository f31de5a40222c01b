//! Replacing nodes: what happens when a node has no room, or hardly any entries.
//!
//! ```text
//!  make_room   enough dead words      ──▶ compact: the same entries in a fresh node
//!              six entries or more    ──▶ split in two (the parent takes a separator: it may need room first)
//!              fewer, so large ones   ──▶ grow: the same entries in a larger node
//!  shrink      sparse or empty        ──▶ merge with the right or left sibling under the same parent
//!              root with one child    ──▶ that child becomes the root
//! ```
//!
//! Where to split: in the middle of the used words; but where inserts come in ascending order (a key that
//! counts up, be it at the end of the tree or within one district of one warehouse), at the place of the insert,
//! so that the left node stays full and is not touched again. Separators between leaves are the shortest that
//! tell both sides apart.
//!
//! A merge is refused if the result would be too full. An empty leaf is taken in by any sibling, unless the
//! sibling's entries, which get longer when the common prefix gets shorter, no longer fit the largest node; it
//! then stays where it is, and takes inserts as any other.

use std::ops::Range;

use super::latch::{Latch, Restart, Version};
use super::memory::{Guard, MAX_CLASS, MIN_CLASS};
use super::node::{Draft, HEADER_WORDS, Locked, Node, common_prefix, heap_words};
use super::search::Seek;
use super::tree::{BTree, Parent, Path, retry};

/// From this number of entries on, a full node is split, not grown.
const SPLIT_ENTRIES: usize = 6;

/// The last leaf of a tree grows up to this class while its entries would not fill an ordinary node.
const LAST_CLASS: u32 = if MIN_CLASS + 3 < MAX_CLASS { MIN_CLASS + 3 } else { MAX_CLASS };

/// Inserts in a row at ascending positions that count as a pattern.
const RUN_LENGTH: usize = 4;

/// The parent of a node, latched.
enum LockedParent<'g> {
    Root(LockedRoot<'g>),
    Inner(Locked<'g>, usize),
}

/// The root pointer, latched; dropping it unlocks.
struct LockedRoot<'g>(Latch<'g>);

impl<'g> LockedRoot<'g> {
    fn lock(latch: Latch<'g>, version: Version) -> Result<Self, Restart> {
        latch.try_lock(version).map(|()| LockedRoot(latch))
    }
}

impl Drop for LockedRoot<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl BTree {
    /// Sees to it that the node of `level` on the way to `key` has `words` free words, or brings it closer to
    /// that. The caller starts over in any case.
    pub(super) fn make_room(
        &self,
        key: &[u8],
        level: u32,
        words: usize,
        guard: &Guard,
    ) -> Result<(), Restart> {
        let path = self.descend(Seek::At(key), level, guard)?;
        if path.node.level() != level {
            return Ok(());
        }
        let (parent, node) = self.lock(&path)?;
        let meta = node.meta();
        if meta.free() >= words {
            return Ok(());
        }
        let all = 0..meta.count;
        let used = node.capacity() - meta.free();
        if meta.dead >= words.max(used / 4) || meta.count < SPLIT_ENTRIES {
            let (lower, upper) = fence_bytes(*node);
            let draft = combine(level, &lower, upper.as_deref(), &[(*node, all)], words)
                .expect("the largest node seats eight keys of any size");
            self.replace_node(parent, node, draft, guard);
            return Ok(());
        }
        match split_point(*node, key) {
            Some(point) => self.split(parent, node, point, key, words, guard),
            None => {
                let (lower, upper) = fence_bytes(*node);
                let reserve = node.capacity();
                let draft = combine(level, &lower, upper.as_deref(), &[(*node, all)], reserve)
                    .expect("only a node that can still grow is not split");
                self.replace_node(parent, node, draft, guard);
                Ok(())
            }
        }
    }

    fn lock<'g>(&'g self, path: &Path<'g>) -> Result<(LockedParent<'g>, Locked<'g>), Restart> {
        let parent = match path.parent {
            Parent::Root => LockedParent::Root(LockedRoot::lock(self.root.latch(), path.parent_version)?),
            Parent::Inner(node, index) => LockedParent::Inner(node.try_lock(path.parent_version)?, index),
        };
        Ok((parent, path.node.try_lock(path.version)?))
    }

    fn replace_node(&self, parent: LockedParent<'_>, old: Locked<'_>, new: Draft, guard: &Guard) {
        let new = self.link(new);
        match &parent {
            LockedParent::Root(_) => self.root.store(new),
            LockedParent::Inner(inner, index) => inner.set_child(*index, new),
        }
        self.unlink(old, guard);
    }

    /// Puts nodes that were built elsewhere in place of the only one, which has no entries and which nobody else changes.
    pub(super) fn take_root(&self, root: Node<'static>, bytes: u64, guard: &Guard) {
        retry(|| {
            let path = self.descend(Seek::At(&[]), 0, guard)?;
            let (parent, leaf) = self.lock(&path)?;
            let alone = matches!(parent, LockedParent::Root(_)) && leaf.meta().count == 0;
            assert!(alone, "only an empty tree is filled");
            self.root.store(root);
            self.add_bytes(bytes);
            self.unlink(leaf, guard);
            Ok(())
        });
    }

    fn link<'g>(&self, draft: Draft) -> Node<'g> {
        self.add_bytes(draft.node().bytes());
        draft.publish()
    }

    fn unlink(&self, node: Locked<'_>, guard: &Guard) {
        self.sub_bytes(node.bytes());
        node.retire(guard);
    }

    fn split(
        &self,
        parent: LockedParent<'_>,
        node: Locked<'_>,
        point: (usize, Vec<u8>),
        key: &[u8],
        words: usize,
        guard: &Guard,
    ) -> Result<(), Restart> {
        let level = node.level();
        let (separator, left, right) = halves(*node, point, key, words)
            .or_else(|| halves(*node, middle_point(*node), key, words))
            .expect("half of a node leaves room for fences and a key of any size");
        if let LockedParent::Inner(inner, _) = &parent {
            let meta = inner.meta();
            let needed = 2 + heap_words(separator.len() - meta.prefix);
            if meta.free() < needed {
                drop(node);
                drop(parent);
                return self.make_room(key, level + 1, needed, guard);
            }
        }
        match &parent {
            LockedParent::Root(_) => {
                let mut root = Draft::new(level + 1, class_for(&[&separator]), &[], None);
                let room = "a new root has room for two children";
                assert!(root.push(&[], self.link(left).raw()), "{room}");
                assert!(root.push(&separator, self.link(right).raw()), "{room}");
                let root = self.link(root);
                self.root.store(root);
            }
            LockedParent::Inner(inner, index) => {
                let right = self.link(right);
                assert!(inner.insert_at(index + 1, &separator, right.raw()), "room was checked above");
                inner.set_child(*index, self.link(left));
            }
        }
        self.unlink(node, guard);
        Ok(())
    }

    /// Whether a node that has just lost an entry should look for a sibling to merge with. Only at some
    /// counts, so that a node whose siblings are full does not ask each time.
    pub(super) fn worth_shrinking(node: Node<'_>) -> bool {
        let meta = node.meta();
        let live = node.capacity() - meta.free() - meta.dead;
        meta.count <= node.child_words() || (live < node.capacity() / 4 && meta.count.is_multiple_of(8))
    }

    /// Merges the node of `level` on the way to `key` with a sibling if both fit one node, and goes on with
    /// the parent if that became sparse.
    pub(super) fn shrink(&self, key: &[u8], level: u32, guard: &Guard) {
        let mut above = level;
        while retry(|| self.try_shrink(key, above, guard)) {
            above += 1;
        }
        // An only child has siblings once its parent has been merged.
        if above > level {
            retry(|| self.try_shrink(key, level, guard));
        }
    }

    /// True if the parent should be shrunk as well.
    fn try_shrink(&self, key: &[u8], level: u32, guard: &Guard) -> Result<bool, Restart> {
        let path = self.descend(Seek::At(key), level, guard)?;
        if path.node.level() != level || !Self::worth_shrinking(path.node) {
            return path.node.validate(path.version).map(|()| false);
        }
        let (parent, node) = self.lock(&path)?;
        let (inner, index) = match parent {
            LockedParent::Root(root) => {
                self.lower_root(root, node, guard)?;
                return Ok(false);
            }
            LockedParent::Inner(inner, index) => (inner, index),
        };
        let node = match self.merge_right(&inner, index, node, guard)? {
            None => return Ok(self.parent_sparse(&inner)),
            Some(node) => node,
        };
        if index > 0 {
            let left = inner.child_locked(index - 1);
            let left = left.try_lock(left.read()?)?;
            if self.merge(&inner, index - 1, left, node, guard).is_none() {
                return Ok(self.parent_sparse(&inner));
            }
        }
        Ok(inner.meta().count == 1)
    }

    fn parent_sparse(&self, inner: &Locked<'_>) -> bool {
        Self::worth_shrinking(**inner)
    }

    /// Merges with the right sibling; gives the node back if there is none or it is too full.
    fn merge_right<'g>(
        &self,
        inner: &Locked<'g>,
        index: usize,
        node: Locked<'g>,
        guard: &Guard,
    ) -> Result<Option<Locked<'g>>, Restart> {
        if index + 1 >= inner.meta().count {
            return Ok(Some(node));
        }
        let right = inner.child_locked(index + 1);
        let right = right.try_lock(right.read()?)?;
        Ok(self.merge(inner, index, node, right, guard).map(|(left, _)| left))
    }

    /// Makes one node of the children at `index` and `index + 1`, or gives them back.
    fn merge<'g>(
        &self,
        inner: &Locked<'g>,
        index: usize,
        left: Locked<'g>,
        right: Locked<'g>,
        guard: &Guard,
    ) -> Option<(Locked<'g>, Locked<'g>)> {
        let (lower, _) = fence_bytes(*left);
        let (_, upper) = fence_bytes(*right);
        let (left_count, right_count) = (left.meta().count, right.meta().count);
        let parts = [(*left, 0..left_count), (*right, 0..right_count)];
        let words = words_of(&lower, upper.as_deref(), &parts);
        let one_is_empty = left_count == 0 || right_count == 0;
        if !one_is_empty && words > left.capacity().min(right.capacity()) * 3 / 4 {
            return Some((left, right));
        }
        let Some(draft) = combine(left.level(), &lower, upper.as_deref(), &parts, 0) else {
            return Some((left, right));
        };
        inner.remove_at(index + 1);
        inner.set_child(index, self.link(draft));
        self.unlink(left, guard);
        self.unlink(right, guard);
        None
    }

    /// Replaces a root that has one child by the child.
    fn lower_root(&self, parent: LockedRoot<'_>, root: Locked<'_>, guard: &Guard) -> Result<(), Restart> {
        if root.is_leaf() || root.meta().count != 1 {
            return Ok(());
        }
        self.root.store(root.child_locked(0));
        self.unlink(root, guard);
        drop(parent);
        Ok(())
    }
}

/// The fences of a latched node.
pub(super) fn fence_bytes(node: Node<'_>) -> (Vec<u8>, Option<Vec<u8>>) {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    node.read_lower_fence(&mut lower);
    node.read_upper_fence(&mut upper);
    (lower, node.fences().upper.map(|_| upper))
}

/// The shortest string above `left` and not above `right`.
pub(super) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    debug_assert!(left < right);
    right[..common_prefix(left, right) + 1].to_vec()
}

/// Where to divide a full node into which `key` is to go: entries from the position on go right. None if the
/// node should grow instead.
fn split_point(node: Node<'_>, key: &[u8]) -> Option<(usize, Vec<u8>)> {
    let count = node.meta().count;
    let mut right = Vec::new();
    if !node.is_leaf() {
        let append = node.child_index(Seek::At(key)) + 1 == count && ascending(node, count);
        if !append {
            return Some(middle_point(node));
        }
        node.read_key(count - 1, &mut right);
        return Some((count - 1, right));
    }
    let (pos, found) = node.lower_bound(key);
    if pos == count && ascending(node, count) {
        return append_point(node, key);
    }
    if !found && pos > count / 2 && pos < count && ascending(node, pos) {
        node.read_key(pos, &mut right);
        return Some((pos, separator(key, &right)));
    }
    Some(middle_point(node))
}

/// Divides a node into halves.
fn middle_point(node: Node<'_>) -> (usize, Vec<u8>) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let pos = middle(node);
    node.read_key(pos - 1, &mut left);
    node.read_key(pos, &mut right);
    (pos, if node.is_leaf() { separator(&left, &right) } else { right })
}

/// The two nodes that a node divided at a point gives, if each fits a node, and that for `key` with `words` to
/// spare.
fn halves(
    node: Node<'_>,
    point: (usize, Vec<u8>),
    key: &[u8],
    words: usize,
) -> Option<(Vec<u8>, Draft, Draft)> {
    let (pos, separator) = point;
    let (lower, upper) = fence_bytes(node);
    let (left_spare, right_spare) = if key < separator.as_slice() { (words, 0) } else { (0, words) };
    let left = combine(node.level(), &lower, Some(&separator), &[(node, 0..pos)], left_spare)?;
    let all = node.meta().count;
    let right = combine(node.level(), &separator, upper.as_deref(), &[(node, pos..all)], right_spare)?;
    Some((separator, left, right))
}

/// Divides a leaf that grows at its end, so that the left part fills an ordinary node. With an upper fence the
/// left part gets a longer prefix than the last leaf of the tree can have, and so shorter entries: the last leaf
/// therefore grows until its entries will fill a node.
fn append_point(node: Node<'_>, key: &[u8]) -> Option<(usize, Vec<u8>)> {
    let count = node.meta().count;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    node.read_key(count - 1, &mut left);
    let end = separator(&left, key);
    let (lower, _) = fence_bytes(node);
    let ordinary = 1 << MIN_CLASS;
    let filled = words_of(&lower, Some(&end), &[(node, 0..count)]);
    if filled <= ordinary {
        let grows = filled < ordinary * 3 / 4 && node.capacity() < 1 << LAST_CLASS;
        return (!grows).then_some((count, end));
    }
    // The greatest part that fits.
    let (mut fits, mut too_many) = (1, count);
    while too_many - fits > 1 {
        let pos = (fits + too_many) / 2;
        if words_of(&lower, Some(&end), &[(node, 0..pos)]) <= ordinary { fits = pos } else { too_many = pos }
    }
    node.read_key(fits - 1, &mut left);
    node.read_key(fits, &mut right);
    Some((fits, separator(&left, &right)))
}

/// Whether the latest inserts went to ascending positions and the next one, at `pos`, goes on so. At the end
/// of the tree, being the last is enough: there several writers may append side by side.
fn ascending(node: Node<'_>, pos: usize) -> bool {
    let (next, length) = node.run();
    let at_the_end = node.fences().upper.is_none() && pos == node.meta().count;
    at_the_end || (pos == next && length >= RUN_LENGTH)
}

/// The position with half of the words on either side; both sides get an entry.
fn middle(node: Node<'_>) -> usize {
    let count = node.meta().count;
    let words = |i| 1 + node.entry_heap_words(node.slot(i));
    let total: usize = (0..count).map(words).sum();
    let mut seen = 0;
    let pos = (0..count).take_while(|&i| {
        seen += words(i);
        seen <= total / 2
    });
    pos.count().clamp(1, count - 1)
}

/// Words that a node with these fences and entries takes.
fn words_of(lower: &[u8], upper: Option<&[u8]>, parts: &[(Node<'_>, Range<usize>)]) -> usize {
    let prefix = upper.map_or(0, |upper| common_prefix(lower, upper));
    let fences = lower.len().div_ceil(8) + upper.map_or(0, |upper| upper.len().div_ceil(8));
    let entries: usize = parts
        .iter()
        .map(|(node, range)| {
            let (old, child) = (node.meta().prefix, node.child_words());
            range
                .clone()
                .map(|i| 1 + child + heap_words(node.suffix_len(node.slot(i)) + old - prefix))
                .sum::<usize>()
        })
        .sum();
    HEADER_WORDS + fences + entries
}

/// The smallest class that holds as many words.
pub(super) fn class_of(words: usize) -> Option<u32> {
    (MIN_CLASS..=MAX_CLASS).find(|class| words <= 1 << class)
}

/// The class of a new root over these separators.
fn class_for(separators: &[&[u8]]) -> u32 {
    let words: usize = separators.iter().map(|s| 2 + heap_words(s.len())).sum();
    class_of(HEADER_WORDS + 2 + words).expect("a root of two children fits any class")
}

/// Builds a node from the entries of others (of its level, between its fences, in order), with room for
/// `reserve` more words. None if no class of node holds them.
fn combine(
    level: u32,
    lower: &[u8],
    upper: Option<&[u8]>,
    parts: &[(Node<'_>, Range<usize>)],
    reserve: usize,
) -> Option<Draft> {
    let class = class_of(words_of(lower, upper, parts) + reserve)?;
    let mut draft = Draft::new(level, class, lower, upper);
    let prefix = draft.node().meta().prefix;
    let mut key = Vec::new();
    for (node, range) in parts {
        let same_prefix = node.meta().prefix == prefix;
        for i in range.clone() {
            let fits = if same_prefix {
                draft.push_copy(*node, i)
            } else {
                let child = if level == 0 { 0 } else { node.word(node.slot(i).offset()) };
                node.read_key(i, &mut key);
                draft.push(&key, child)
            };
            assert!(fits, "the words were counted");
        }
    }
    Some(draft)
}
