//! Sorted input: building a tree bottom-up, and adding runs of entries to a living one.

use super::latch::{Restart, Version};
use super::memory::{Guard, MAX_KEY_LEN, MIN_CLASS, pin};
use super::node::{Draft, HEADER_WORDS, Node, common_prefix, heap_words};
use super::restructure::{class_of, separator};
use super::search::Seek;
use super::tree::{BTree, retry};

/// After so many entries a bulk insert lets go of its pin, so that retired nodes can be freed.
const PIN_ENTRIES: usize = 256;

/// A node takes so many entries, however long they are, before it counts as full.
const MIN_ENTRIES: usize = 5;

/// Keys of one node to be, back to back, with what they point to.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    children: Vec<u64>,
    /// Heap and slot words for a prefix of `prefix` bytes.
    words: usize,
    prefix: usize,
}

impl Batch {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.children.clear();
        self.words = 0;
    }
}

/// Builds the nodes of one level, left to right.
struct LevelBuilder {
    level: u32,
    /// Words that a node is filled to.
    budget: usize,
    batch: Batch,
    /// Lower fence of the node to come.
    lower: Vec<u8>,
    /// The nodes built, with their lower fences: the entries of the level above.
    done: Vec<(Vec<u8>, Node<'static>)>,
    bytes: u64,
    entries: u64,
}

impl LevelBuilder {
    fn new(level: u32, fill: f32) -> Self {
        let words = (1usize << MIN_CLASS) - HEADER_WORDS;
        LevelBuilder {
            level,
            budget: (words as f32 * fill.clamp(0.1, 1.0)) as usize,
            batch: Batch::default(),
            lower: Vec::new(),
            done: Vec::new(),
            bytes: 0,
            entries: 0,
        }
    }

    fn words(&self, len: usize, prefix: usize) -> usize {
        1 + usize::from(self.level > 0) + heap_words(len.saturating_sub(prefix))
    }

    fn words_in(&self, range: std::ops::Range<usize>, prefix: usize) -> usize {
        range.map(|i| self.words(self.batch.key(i).len(), prefix)).sum()
    }

    fn push(&mut self, key: &[u8], child: u64) {
        // If the node were closed before `key`, the fences would have this much in common. It only shrinks.
        let prefix = common_prefix(&self.lower, key);
        if self.batch.len() == 0 || prefix != self.batch.prefix {
            self.batch.words = self.words_in(0..self.batch.len(), prefix);
            self.batch.prefix = prefix;
        }
        let words = self.words(key.len(), prefix);
        let fences = self.lower.len().div_ceil(8) + key.len().div_ceil(8);
        if self.batch.len() >= MIN_ENTRIES && fences + self.batch.words + words > self.budget {
            let last = self.batch.key(self.batch.len() - 1);
            let upper = if self.level == 0 { separator(last, key) } else { key.to_vec() };
            self.close(0..self.batch.len(), Some(&upper));
            self.batch.clear();
            self.batch.prefix = common_prefix(&self.lower, key);
            self.batch.words = 0;
        }
        self.batch.words += self.words(key.len(), self.batch.prefix);
        self.batch.bytes.extend_from_slice(key);
        self.batch.ends.push(self.batch.bytes.len());
        self.batch.children.push(child);
        self.entries += 1;
    }

    /// Makes a node of a range of the batch; two or more, if a prefix that turned out shorter than thought
    /// makes the entries too long for one.
    fn close(&mut self, range: std::ops::Range<usize>, upper: Option<&[u8]>) {
        let prefix = upper.map_or(0, |upper| common_prefix(&self.lower, upper));
        let fences = self.lower.len().div_ceil(8) + upper.map_or(0, |upper| upper.len().div_ceil(8));
        let words = HEADER_WORDS + fences + self.words_in(range.clone(), prefix);
        let middle = range.start + range.len() / 2;
        if words > 1 << MIN_CLASS && range.len() > MIN_ENTRIES {
            let (left, right) = (self.batch.key(middle - 1), self.batch.key(middle));
            let between = if self.level == 0 { separator(left, right) } else { right.to_vec() };
            self.close(range.start..middle, Some(&between));
            self.close(middle..range.end, upper);
            return;
        }
        let class = class_of(words).expect("five keys of any size fit the largest node");
        let mut draft = Draft::new(self.level, class, &self.lower, upper);
        for i in range {
            assert!(draft.push(self.batch.key(i), self.batch.children[i]), "the words were counted");
        }
        self.bytes += draft.node().bytes();
        let lower = std::mem::replace(&mut self.lower, upper.unwrap_or_default().to_vec());
        self.done.push((lower, draft.publish()));
    }

    fn finish(mut self) -> (Vec<(Vec<u8>, Node<'static>)>, u64) {
        self.close(0..self.batch.len(), None);
        (self.done, self.bytes)
    }
}

/// Nodes that hang on no tree yet.
struct Built {
    root: Node<'static>,
    entries: u64,
    bytes: u64,
}

fn build(sorted: impl Iterator<Item = impl AsRef<[u8]>>, fill: f32) -> Built {
    let mut leaves = LevelBuilder::new(0, fill);
    let mut last: Option<Vec<u8>> = None;
    for key in sorted {
        let key = key.as_ref();
        assert!(key.len() <= MAX_KEY_LEN, "index entries have at most {MAX_KEY_LEN} bytes");
        if let Some(last) = &last {
            assert!(last.as_slice() <= key, "the input of bulk_build ascends");
            if last == key {
                continue;
            }
        }
        leaves.push(key, 0);
        let last = last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
    }
    let entries = leaves.entries;
    let (mut nodes, mut bytes) = leaves.finish();
    let mut level = 0;
    while nodes.len() > 1 {
        level += 1;
        let mut inner = LevelBuilder::new(level, fill);
        for (key, child) in &nodes {
            inner.push(key, child.raw());
        }
        let (above, above_bytes) = inner.finish();
        nodes = above;
        bytes += above_bytes;
    }
    Built { root: nodes[0].1, entries, bytes }
}

impl BTree {
    /// Builds a tree from ascending entries (equal neighbours count once) in linear time. `fill` is the part
    /// of each node that is used, for inserts to come.
    ///
    /// # Panics
    /// If the input is not in order, or an entry is longer than [`MAX_KEY_LEN`].
    pub fn bulk_build(sorted: impl Iterator<Item = impl AsRef<[u8]>>, fill: f32) -> Self {
        let built = build(sorted, fill);
        BTree::with_root(built.root, built.entries, built.bytes)
    }

    /// The same for a tree that is there already, is empty, and is changed by nobody else meanwhile.
    ///
    /// # Panics
    /// As [`BTree::bulk_build`], and if the tree is not empty.
    pub fn bulk_fill(&self, sorted: impl Iterator<Item = impl AsRef<[u8]>>, fill: f32) {
        let built = build(sorted, fill);
        self.take_root(built.root, built.bytes, &pin());
        self.count_added(built.root, built.entries);
    }

    /// Adds ascending entries, going down anew only when one belongs to another leaf than the one before.
    /// Input out of order costs time, no more. Returns how many were new.
    pub fn bulk_insert_sorted(&self, sorted: impl Iterator<Item = impl AsRef<[u8]>>) -> u64 {
        let mut guard = pin();
        let mut added = 0;
        let mut sorted = sorted.peekable();
        let mut fence = Vec::new();
        while sorted.peek().is_some() {
            guard.repin();
            let mut place = None;
            let mut last = Vec::new();
            for key in sorted.by_ref().take(PIN_ENTRIES) {
                let key = key.as_ref();
                if key < last.as_slice() {
                    place = None;
                }
                added += u64::from(self.insert_near(key, &mut place, &mut fence, &guard));
                last.clear();
                last.extend_from_slice(key);
            }
        }
        added
    }

    /// Inserts into the leaf of the entry before if it belongs there and nobody has touched that leaf.
    fn insert_near<'g>(
        &'g self,
        key: &[u8],
        place: &mut Option<(Node<'g>, Version)>,
        fence: &mut Vec<u8>,
        guard: &'g Guard,
    ) -> bool {
        assert!(key.len() <= MAX_KEY_LEN, "index entries have at most {MAX_KEY_LEN} bytes");
        if let Some((leaf, version)) = *place
            && (leaf.fences().upper.is_none() || key < fence.as_slice())
            && let Ok(Some((added, version))) = self.insert_at_leaf(leaf, version, key)
        {
            *place = Some((leaf, version));
            return added;
        }
        *place = None;
        let added = self.insert(key);
        let found = retry(|| {
            let path = self.descend(Seek::At(key), 0, guard)?;
            path.node.read_upper_fence(fence);
            path.node.validate(path.version).map(|()| (path.node, path.version))
        });
        *place = Some(found);
        added
    }

    /// None if the leaf has no room.
    fn insert_at_leaf(
        &self,
        leaf: Node<'_>,
        version: Version,
        key: &[u8],
    ) -> Result<Option<(bool, Version)>, Restart> {
        let (pos, found) = leaf.lower_bound(key);
        if found {
            return leaf.validate(version).map(|()| Some((false, version)));
        }
        let locked = leaf.try_lock(version)?;
        if !locked.insert_at(pos, key, 0) {
            return Ok(None);
        }
        let version = locked.unlock();
        self.count_added(leaf, 1);
        Ok(Some((true, version)))
    }
}
