//! The integrity check: walks the whole tree and compares everything that must agree.

use super::latch::Restart;
use super::memory::pin;
use super::node::{HEADER_WORDS, Node, common_prefix, head_of};
use super::tree::BTree;

/// What a walk has added up.
#[derive(Default)]
struct Totals {
    entries: u64,
    bytes: u64,
}

impl BTree {
    /// Checks every invariant of the tree: order, fences, prefixes, heads, levels, words, counters. Says where
    /// the first violation is. Meant for a tree that nobody changes meanwhile: a writer at work may look like
    /// damage.
    pub fn check(&self) -> Result<(), String> {
        let guard = pin();
        let (root, _) = self.root.load(&guard).map_err(changed)?;
        let mut totals = Totals::default();
        check_node(root, root.level(), &[], None, &mut totals)?;
        if totals.entries != self.len() {
            return Err(format!("{} entries in the leaves, {} counted", totals.entries, self.len()));
        }
        if totals.bytes != self.bytes() {
            return Err(format!("{} bytes in nodes, {} counted", totals.bytes, self.bytes()));
        }
        Ok(())
    }
}

fn changed(_: Restart) -> String {
    "the tree was changed during the check".to_owned()
}

fn check_node(
    node: Node<'_>,
    level: u32,
    lower: &[u8],
    upper: Option<&[u8]>,
    totals: &mut Totals,
) -> Result<(), String> {
    let at = |what: String| format!("node of level {level} from {lower:02x?}: {what}");
    let version = node.read().map_err(changed)?;
    if node.level() != level {
        return Err(at(format!("has level {}", node.level())));
    }
    let (mut own_lower, mut own_upper) = (Vec::new(), Vec::new());
    node.read_lower_fence(&mut own_lower);
    node.read_upper_fence(&mut own_upper);
    let own_upper = node.fences().upper.map(|_| own_upper);
    if own_lower != lower || own_upper.as_deref() != upper {
        return Err(at(format!("fences {own_lower:02x?} to {own_upper:02x?}, parent says to {upper:02x?}")));
    }
    let meta = node.meta();
    if meta.prefix != upper.map_or(0, |upper| common_prefix(lower, upper)) {
        return Err(at(format!("prefix of {} bytes does not match the fences", meta.prefix)));
    }
    if meta.heap < HEADER_WORDS + meta.count || meta.heap > node.capacity() {
        return Err(at(format!("{} slots and a heap from word {} overlap", meta.count, meta.heap)));
    }
    let keys = check_entries(node, lower, upper).map_err(at)?;
    check_hints(node).map_err(at)?;
    check_heap(node).map_err(at)?;
    totals.bytes += node.bytes();
    if level == 0 {
        totals.entries += keys.len() as u64;
        return node.validate(version).map_err(changed);
    }
    if keys.first().is_none_or(|first| first != lower) {
        return Err(at("the first child does not begin at the lower fence".to_owned()));
    }
    for (i, key) in keys.iter().enumerate() {
        let child = node.child(i, version).map_err(changed)?;
        let end = keys.get(i + 1).map(Vec::as_slice).or(upper);
        check_node(child, level - 1, key, end, totals)?;
    }
    node.validate(version).map_err(changed)
}

/// The keys of a node, if they ascend, lie between the fences and have the heads that they should.
fn check_entries(node: Node<'_>, lower: &[u8], upper: Option<&[u8]>) -> Result<Vec<Vec<u8>>, String> {
    let meta = node.meta();
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(meta.count);
    for i in 0..meta.count {
        let mut key = Vec::new();
        node.read_key(i, &mut key);
        if node.slot(i).head() != head_of(&key[meta.prefix..]) {
            return Err(format!("head of entry {i} has bytes behind its end"));
        }
        if key.as_slice() < lower || upper.is_some_and(|upper| key.as_slice() >= upper) {
            return Err(format!("entry {i} {key:02x?} lies outside the fences"));
        }
        if keys.last().is_some_and(|last| *last >= key) {
            return Err(format!("entry {i} {key:02x?} is not above the one before"));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// A search by hints finds each entry's slot.
fn check_hints(node: Node<'_>) -> Result<(), String> {
    let count = node.meta().count;
    let missed = (0..count).find(|&i| {
        let (begin, end) = node.hinted_range(count, node.slot(i).head());
        i < begin || i >= end
    });
    missed.map_or(Ok(()), |i| Err(format!("the hints lead past entry {i}")))
}

/// Entries and fences share no word of the heap, and together with the dead words fill it.
fn check_heap(node: Node<'_>) -> Result<(), String> {
    let meta = node.meta();
    let fences = node.fences();
    let fence_parts = [Some(fences.lower), fences.upper].into_iter().flatten();
    let slot_parts = (0..meta.count).map(|i| {
        let slot = node.slot(i);
        (slot.offset(), node.entry_heap_words(slot))
    });
    let mut parts: Vec<(usize, usize)> = fence_parts
        .map(|fence| (fence.offset, fence.len.div_ceil(8)))
        .chain(slot_parts)
        .filter(|&(_, words)| words > 0)
        .collect();
    parts.sort_unstable();
    let mut end = meta.heap;
    let mut live = 0;
    for (offset, words) in parts {
        if offset < end || offset + words > node.capacity() {
            return Err(format!("words {offset}+{words} of the heap belong to something else"));
        }
        end = offset + words;
        live += words;
    }
    if meta.heap + live + meta.dead != node.capacity() {
        return Err(format!("{live} live and {} dead words do not fill the heap", meta.dead));
    }
    Ok(())
}
