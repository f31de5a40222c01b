//! A node of the tree: its memory, its layout, and who may look at it and change it.
//!
//! A node is nothing but a power-of-two array of 64-bit atomic words, so that readers may race with a writer
//! without undefined behaviour: they load words (relaxed) and validate the node's version afterwards.
//!
//! ```text
//!  word 0      1      2      3       4     5       8…15    16…                                        capacity
//! ┌───────┬──────┬──────┬───────┬─────┬───────┬───┬───────┬──────────────────┬─────────┬──────────────────────┐
//! │ latch │ meta │ info │ lower │ run │ upper │ – │ hints │ slots, ascending │  free   │ heap, grows downwards│
//! └───────┴──────┴──────┴───────┴─────┴───────┴───┴───────┴──────────────────┴─────────┴──────────────────────┘
//!  meta    16 dead words of the heap │ 16 prefix length │ 16 heap start │ 16 number of slots
//!  info    class (log2 of the capacity in words), level (0 = leaf); never changes
//!  lower   32 offset of the lower fence in the heap │ 32 length
//!  upper   the same of the upper fence; all ones if there is none
//!  hints   32 first bits of the heads of slots 0, d, 2d … 15d, where d = number of slots / 16: one cache line
//!          that narrows a search to a sixteenth
//!  run     32 length of the run │ 32 position after the latest insert
//!  slot    40 head: first 5 bytes after the prefix │ 15 offset in the heap │ 9 length after the prefix, or all ones
//!  entry   in the heap: (inner nodes: child pointer,) (all ones in the slot: the length,) the bytes after the head,
//!          8 to a word
//! ```
//!
//! Bytes are packed into words big-endian and padded with zeros, so that comparing words as integers, then
//! lengths, is comparing byte strings.
//!
//! Invariants:
//! 1. All keys of a node lie in `[lower fence, upper fence)` and share the fences' common prefix, which the
//!    entries leave out. A missing upper fence is +∞; the empty lower fence is −∞.
//! 2. An inner entry is the lower fence of its child; entry 0 repeats the node's own lower fence. An inner
//!    node has at least one entry.
//! 3. Every offset read from a node is masked with `capacity − 1` before use: a torn read gives a wrong word
//!    of the same node, never a word elsewhere. No pointer read from a node is followed before validation.
//! 4. A `Node<'g>` is alive for `'g`, the lifetime of an epoch pin taken before its pointer was read: nodes
//!    are unlinked under their parent's latch first, and freed by the epoch later.

use std::alloc::{Layout, handle_alloc_error};
use std::hint::select_unpredictable;
use std::ops::Deref;
use std::slice;

use super::atomics::{AtomicU64, Ordering};
use super::latch::{Latch, Restart, Version};
use super::memory::{
    Guard, MAX_CLASS, MAX_KEY_LEN, MIN_CLASS, alloc_zeroed, dealloc, with_exposed_provenance,
};

/// Bytes of a key (after the prefix) that live in the slot.
pub const HEAD_LEN: usize = 5;

/// Words before the first slot.
pub const HEADER_WORDS: usize = 16;

const LATCH: usize = 0;
const META: usize = 1;
const INFO: usize = 2;
const LOWER: usize = 3;
const RUN: usize = 4;
const UPPER: usize = 5;
const HINTS: usize = 8;

/// Parts into which hints, two to a word, divide the slots: a hint is the first four bytes of a part's first head.
const PARTS: usize = 16;

/// Bits of a slot that have the entry's length.
const LEN_BITS: u32 = 9;

/// An entry of so many bytes after the prefix, or more, has its length in the heap: what is left of the slot reaches every word
/// of the largest node.
pub const LONG: usize = (1 << LEN_BITS) - 1;

/// What lengths in the heap are masked with.
const LEN_MASK: usize = (MAX_KEY_LEN + 1).next_power_of_two() - 1;

const ALIGN: usize = 64;

/// The counts of a node, in one word so that they are read as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    pub count: usize,
    /// First used word of the heap.
    pub heap: usize,
    pub prefix: usize,
    /// Words of the heap that no slot refers to.
    pub dead: usize,
}

impl Meta {
    #[inline]
    fn unpack(word: u64) -> Self {
        let field = |shift: u32| (word >> shift & 0xffff) as usize;
        Meta { count: field(0), heap: field(16), prefix: field(32), dead: field(48) }
    }

    fn pack(self) -> u64 {
        self.count as u64 | (self.heap as u64) << 16 | (self.prefix as u64) << 32 | (self.dead as u64) << 48
    }

    /// Words between the slots and the heap.
    pub fn free(self) -> usize {
        self.heap.saturating_sub(HEADER_WORDS + self.count)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

impl Slot {
    pub fn new(head: u64, offset: usize, len: usize) -> Self {
        debug_assert!(head >> 40 == 0 && offset < 1 << (24 - LEN_BITS) && len <= MAX_KEY_LEN);
        Slot(head << 24 | (offset as u64) << LEN_BITS | len.min(LONG) as u64)
    }

    #[inline]
    pub fn head(self) -> u64 {
        self.0 >> 24
    }

    #[inline]
    pub fn offset(self) -> usize {
        (self.0 >> LEN_BITS & 0x7fff) as usize
    }

    /// Bytes of the key after the prefix, those in the head included; [`LONG`] if the heap has the length.
    #[inline]
    fn short_len(self) -> usize {
        self.0 as usize & LONG
    }
}

/// Where a fence lies in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    pub offset: usize,
    pub len: usize,
}

/// Both fences; `None` is +∞.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fences {
    pub lower: Fence,
    pub upper: Option<Fence>,
}

impl Fence {
    fn unpack(word: u64) -> Self {
        Fence { offset: (word >> 32) as usize, len: (word & 0xffff_ffff) as usize }
    }

    fn pack(self) -> u64 {
        (self.offset as u64) << 32 | self.len as u64
    }
}

/// A node that lives at least as long as `'g`; whoever reads it must validate its version.
#[derive(Clone, Copy)]
pub struct Node<'g> {
    words: &'g [AtomicU64],
}

impl<'g> Node<'g> {
    /// # Safety
    /// `raw` was published as a child or root pointer, and the node is not freed during `'g`.
    #[inline]
    unsafe fn from_raw(raw: u64) -> Self {
        let base = with_exposed_provenance::<AtomicU64>(raw as usize);
        // SAFETY: the caller vouches for a living node, which has at least HEADER_WORDS words; the info word
        // was written before the node was published and never changes.
        let info = unsafe { (*base.add(INFO)).load(Ordering::Relaxed) };
        // SAFETY: the node was allocated with 2^class words, all initialised, and lives during 'g.
        let words = unsafe { slice::from_raw_parts(base, 1 << (info & 0xff)) };
        Node { words }
    }

    /// The pointer as it stands in a parent.
    pub fn raw(self) -> u64 {
        self.words.as_ptr().expose_provenance() as u64
    }

    #[inline]
    fn at(self, index: usize) -> &'g AtomicU64 {
        // SAFETY: the length is a power of two, at least HEADER_WORDS, so the masked index is below it.
        unsafe { self.words.get_unchecked(index & (self.words.len() - 1)) }
    }

    /// A word of the header. Its address does not depend on the size of the node, so the processor can fetch all
    /// of the header at once.
    #[inline]
    fn header<const INDEX: usize>(self) -> &'g AtomicU64 {
        const { assert!(INDEX < HEADER_WORDS) };
        // SAFETY: every node has at least HEADER_WORDS words.
        unsafe { self.words.get_unchecked(INDEX) }
    }

    #[inline]
    pub fn word(self, index: usize) -> u64 {
        self.at(index).load(Ordering::Relaxed)
    }

    #[inline]
    fn set_word(self, index: usize, word: u64) {
        self.at(index).store(word, Ordering::Relaxed);
    }

    #[inline]
    fn latch(self) -> Latch<'g> {
        Latch(self.header::<LATCH>())
    }

    #[inline]
    pub fn read(self) -> Result<Version, Restart> {
        self.latch().read()
    }

    #[inline]
    pub fn validate(self, version: Version) -> Result<(), Restart> {
        self.latch().validate(version)
    }

    #[inline]
    pub fn try_lock(self, version: Version) -> Result<Locked<'g>, Restart> {
        self.latch().try_lock(version).map(|()| Locked { node: self })
    }

    #[inline]
    pub fn meta(self) -> Meta {
        Meta::unpack(self.header::<META>().load(Ordering::Relaxed))
    }

    /// Words of the node, header included.
    pub fn capacity(self) -> usize {
        self.words.len()
    }

    pub fn bytes(self) -> u64 {
        self.words.len() as u64 * 8
    }

    #[inline]
    pub fn level(self) -> u32 {
        (self.header::<INFO>().load(Ordering::Relaxed) >> 8 & 0xff) as u32
    }

    #[inline]
    pub fn is_leaf(self) -> bool {
        self.level() == 0
    }

    /// Words that stand before the key bytes of an entry: the child pointer of inner nodes.
    #[inline]
    pub fn child_words(self) -> usize {
        usize::from(!self.is_leaf())
    }

    #[inline]
    pub fn slot(self, index: usize) -> Slot {
        Slot(self.word(HEADER_WORDS + index))
    }

    /// Bytes of an entry's key after the prefix, those in the head included, and where in the heap those behind the head are.
    #[inline]
    pub fn extent(self, slot: Slot) -> (usize, usize) {
        self.extent_behind(slot, self.child_words())
    }

    /// The same in a leaf.
    #[inline]
    pub fn leaf_extent(self, slot: Slot) -> (usize, usize) {
        self.extent_behind(slot, 0)
    }

    #[inline]
    fn extent_behind(self, slot: Slot, child_words: usize) -> (usize, usize) {
        let (len, at) = (slot.short_len(), slot.offset() + child_words);
        // Masked, since a torn read may give any word: see invariant 3.
        if len < LONG { (len, at) } else { (self.word(at) as usize & LEN_MASK, at + 1) }
    }

    /// Bytes of an entry's key after the prefix.
    #[inline]
    pub fn suffix_len(self, slot: Slot) -> usize {
        self.extent(slot).0
    }

    /// Heap words of the entry behind `slot`.
    pub fn entry_heap_words(self, slot: Slot) -> usize {
        self.child_words() + heap_words(self.suffix_len(slot))
    }

    #[inline]
    pub fn fences(self) -> Fences {
        let upper = self.header::<UPPER>().load(Ordering::Relaxed);
        Fences {
            lower: Fence::unpack(self.header::<LOWER>().load(Ordering::Relaxed)),
            upper: (upper != u64::MAX).then(|| Fence::unpack(upper)),
        }
    }

    /// Position at which an ascending run of inserts would go on, and the length of the run so far.
    pub fn run(self) -> (usize, usize) {
        let word = self.word(RUN);
        ((word & 0xffff_ffff) as usize, (word >> 32) as usize)
    }

    #[inline]
    fn child_raw(self, index: usize) -> u64 {
        self.word(self.slot(index).offset())
    }

    /// The child at `index`, if the node still is in `version`.
    #[inline]
    pub fn child(self, index: usize, version: Version) -> Result<Node<'g>, Restart> {
        debug_assert!(!self.is_leaf());
        let raw = self.child_raw(index);
        self.validate(version)?;
        // SAFETY: validation shows that `raw` was a child of this node when the version was read, at which
        // time the caller's pin (whose lifetime is 'g) stood; nodes are freed an epoch after unlinking.
        Ok(unsafe { Node::from_raw(raw) })
    }

    /// The part of the slots in which those with this head lie, and the first one behind them.
    #[inline]
    pub fn hinted_range(self, count: usize, head: u64) -> (usize, usize) {
        let distance = count / PARTS;
        if distance < 2 {
            return (0, count);
        }
        let head = head >> 8;
        let mut below = 0;
        for step in [8, 4, 2, 1] {
            below = select_unpredictable(self.hint(below + step) < head, below + step, below);
        }
        let mut behind = below + 1;
        while behind < PARTS && self.hint(behind) == head {
            behind += 1;
        }
        let begin = below * distance;
        let end = if behind == PARTS { count } else { behind * distance };
        self.prefetch(HEADER_WORDS + (begin + end) / 2);
        self.prefetch(HEADER_WORDS + begin);
        self.prefetch(HEADER_WORDS + end);
        (begin, end)
    }

    /// Head of the slot at which part `part` of the slots begins; from 1 on.
    #[inline]
    fn hint(self, part: usize) -> u64 {
        debug_assert!(part < PARTS);
        // SAFETY: the hints are within the header, which every node has.
        let pair = unsafe { self.words.get_unchecked(HINTS + part / 2) }.load(Ordering::Relaxed);
        pair >> (32 * (part & 1)) & 0xffff_ffff
    }

    /// Has the cache line of a word fetched while something else is done.
    #[inline]
    fn prefetch(self, index: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: prefetching has no effect that the program could see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(self.at(index)).cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = index;
    }

    /// Renews the hints after the slots from `pos` on have moved and there are `count` instead of `before`.
    fn renew_hints(self, pos: usize, before: usize, count: usize) {
        let distance = count / PARTS;
        if distance < 2 {
            return;
        }
        // Hints that stand for slots before `pos` stay right, unless the distance has changed.
        let first = if before / PARTS == distance { pos.div_ceil(distance) / 2 } else { 0 };
        for i in first..PARTS / 2 {
            let hint = |part| self.slot(part * distance).head() >> 8;
            self.set_word(HINTS + i, hint(2 * i) | hint(2 * i + 1) << 32);
        }
    }

    /// Where the heap began when the node held no entries yet: below the fences.
    fn heap_base(self) -> usize {
        let mut base = self.words.len();
        let fences = self.fences();
        base -= fences.lower.len.div_ceil(8);
        base - fences.upper.map_or(0, |upper| upper.len.div_ceil(8))
    }

    /// Packs `bytes` from `offset` on.
    fn set_bytes(self, offset: usize, bytes: &[u8]) {
        for i in 0..bytes.len().div_ceil(8) {
            self.set_word(offset + i, be_word(bytes, i * 8));
        }
    }

    /// Puts an entry in at `pos`; false if there is no room. Only for nodes that the caller owns.
    fn put(self, pos: usize, key: &[u8], child: u64) -> bool {
        let mut meta = self.meta();
        let suffix = &key[meta.prefix..];
        let child_words = self.child_words();
        let words = child_words + heap_words(suffix.len());
        if meta.free() < words + 1 {
            return false;
        }
        meta.heap -= words;
        if child_words == 1 {
            self.set_word(meta.heap, child);
        }
        let mut behind = meta.heap + child_words;
        if suffix.len() >= LONG {
            self.set_word(behind, suffix.len() as u64);
            behind += 1;
        }
        if suffix.len() > HEAD_LEN {
            self.set_bytes(behind, &suffix[HEAD_LEN..]);
        }
        for i in (pos..meta.count).rev() {
            self.set_word(HEADER_WORDS + i + 1, self.word(HEADER_WORDS + i));
        }
        let offset = if words == 0 { 0 } else { meta.heap };
        self.set_word(HEADER_WORDS + pos, Slot::new(head_of(suffix), offset, suffix.len()).0);
        meta.count += 1;
        self.set_word(META, meta.pack());
        self.renew_hints(pos, meta.count - 1, meta.count);
        true
    }
}

/// A node under its write latch; dropping it unlocks.
pub struct Locked<'g> {
    node: Node<'g>,
}

impl<'g> Deref for Locked<'g> {
    type Target = Node<'g>;

    #[inline]
    fn deref(&self) -> &Node<'g> {
        &self.node
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.node.latch().unlock();
    }
}

impl<'g> Locked<'g> {
    /// Unlocks, and says which version that begins.
    pub fn unlock(self) -> Version {
        let latch = self.node.latch();
        std::mem::forget(self);
        latch.unlock()
    }

    /// Puts an entry in at `pos`, the place that its order gives; false if there is no room.
    pub fn insert_at(&self, pos: usize, key: &[u8], child: u64) -> bool {
        if !self.node.put(pos, key, child) {
            return false;
        }
        let (next, run) = self.node.run();
        let run = if pos == next { run + 1 } else { 0 };
        self.node.set_word(RUN, (pos as u64 + 1) | (run as u64) << 32);
        true
    }

    pub fn remove_at(&self, pos: usize) {
        let node = self.node;
        let mut meta = node.meta();
        let words = node.entry_heap_words(node.slot(pos));
        for i in pos + 1..meta.count {
            node.set_word(HEADER_WORDS + i - 1, node.word(HEADER_WORDS + i));
        }
        meta.count -= 1;
        meta.dead += words;
        if meta.count == 0 {
            meta.dead = 0;
            meta.heap = node.heap_base();
        }
        node.set_word(META, meta.pack());
        node.renew_hints(pos, meta.count + 1, meta.count);
        let (next, run) = node.run();
        if pos < next {
            node.set_word(RUN, (next as u64 - 1) | (run as u64) << 32);
        }
    }

    /// The child at `index`; this node's latch keeps it in place.
    pub fn child_locked(&self, index: usize) -> Node<'g> {
        assert!(!self.node.is_leaf() && index < self.node.meta().count, "an entry of an inner node");
        // SAFETY: under the latch the entry is whole, and the child is unlinked by nobody else.
        unsafe { Node::from_raw(self.node.child_raw(index)) }
    }

    pub fn set_child(&self, index: usize, child: Node<'_>) {
        self.node.set_word(self.node.slot(index).offset(), child.raw());
    }

    /// Takes the node out of life. It must have been unlinked from its parent, whose latch is still held.
    pub fn retire(self, guard: &Guard) {
        let node = self.node;
        std::mem::forget(self);
        node.latch().unlock_obsolete();
        let (raw, class) = (node.raw(), node.words.len().trailing_zeros());
        // SAFETY: no pointer to the node is left in the tree, so only threads pinned now can see it; it is
        // retired once, as the obsolete latch is never locked again.
        unsafe { guard.defer_unchecked(move || free(raw, class)) };
    }
}

/// A node that is being built and that nobody else knows yet.
pub struct Draft {
    node: Node<'static>,
}

impl Draft {
    /// An empty node of `2^class` words between its fences.
    pub fn new(level: u32, class: u32, lower: &[u8], upper: Option<&[u8]>) -> Self {
        assert!((MIN_CLASS..=MAX_CLASS).contains(&class), "a class of node");
        let layout = layout(class);
        // SAFETY: the layout has a size above zero.
        let base = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
        if base.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: just allocated with that many words, and zero is a valid AtomicU64; the node is freed by
        // Draft::drop or, once published, by the tree, and 'static does not leave this module.
        let node = Node { words: unsafe { slice::from_raw_parts(base, 1 << class) } };
        node.set_word(INFO, u64::from(class) | u64::from(level) << 8);
        let mut heap = 1 << class;
        let mut fence = |bytes: &[u8]| {
            heap -= bytes.len().div_ceil(8);
            node.set_bytes(heap, bytes);
            Fence { offset: heap & ((1 << class) - 1), len: bytes.len() }
        };
        node.set_word(LOWER, fence(lower).pack());
        node.set_word(UPPER, upper.map_or(u64::MAX, |upper| fence(upper).pack()));
        let prefix = upper.map_or(0, |upper| common_prefix(lower, upper));
        node.set_word(META, Meta { count: 0, heap, prefix, dead: 0 }.pack());
        Draft { node }
    }

    pub fn node(&self) -> Node<'_> {
        self.node
    }

    /// Appends an entry; false if there is no room.
    pub fn push(&mut self, key: &[u8], child: u64) -> bool {
        self.node.put(self.node.meta().count, key, child)
    }

    /// Appends entry `index` of `source` as it is. Both have the same level and the same prefix.
    pub fn push_copy(&mut self, source: Node<'_>, index: usize) -> bool {
        let mut meta = self.node.meta();
        let slot = source.slot(index);
        let words = source.entry_heap_words(slot);
        if meta.free() < words + 1 {
            return false;
        }
        meta.heap -= words;
        for i in 0..words {
            self.node.set_word(meta.heap + i, source.word(slot.offset() + i));
        }
        let offset = if words == 0 { 0 } else { meta.heap };
        self.node.set_word(HEADER_WORDS + meta.count, Slot::new(slot.head(), offset, slot.short_len()).0);
        meta.count += 1;
        self.node.set_word(META, meta.pack());
        self.node.renew_hints(meta.count - 1, meta.count - 1, meta.count);
        true
    }

    /// Hands the node over to the tree, which must link it.
    pub fn publish<'g>(self) -> Node<'g> {
        let node = self.node;
        std::mem::forget(self);
        node
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // SAFETY: the draft is the only owner.
        unsafe { free(self.node.raw(), self.node.words.len().trailing_zeros()) };
    }
}

fn layout(class: u32) -> Layout {
    Layout::from_size_align(8 << class, ALIGN).expect("sizes are small powers of two")
}

/// # Safety
/// `raw` was allocated by [`Draft::new`] with this class, and nobody uses it any more.
unsafe fn free(raw: u64, class: u32) {
    let base = std::ptr::with_exposed_provenance_mut::<u8>(raw as usize);
    // SAFETY: the layout is the one that it was allocated with; the rest is the caller's promise.
    unsafe { dealloc(base, layout(class)) };
}

/// The pointer to the root, under a latch of its own. Owns the whole tree.
pub struct Root {
    latch: AtomicU64,
    raw: AtomicU64,
}

impl Root {
    /// Takes over a published node that hangs on no other, and all below it.
    pub fn new(root: Node<'static>) -> Self {
        Root { latch: AtomicU64::new(0), raw: AtomicU64::new(root.raw()) }
    }

    #[inline]
    pub fn latch(&self) -> Latch<'_> {
        Latch(&self.latch)
    }

    /// The root node and the version of the pointer to it.
    #[inline]
    pub fn load<'g>(&self, _guard: &'g Guard) -> Result<(Node<'g>, Version), Restart> {
        let version = self.latch().read()?;
        let raw = self.raw.load(Ordering::Relaxed);
        self.latch().validate(version)?;
        // SAFETY: validated, and pinned by the guard for 'g.
        Ok((unsafe { Node::from_raw(raw) }, version))
    }

    /// Only under the latch.
    pub fn store(&self, node: Node<'_>) {
        self.raw.store(node.raw(), Ordering::Relaxed);
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let mut pending = vec![self.raw.load(Ordering::Relaxed)];
        while let Some(raw) = pending.pop() {
            // SAFETY: exclusive access to the tree: no reader, no writer, every child word is whole.
            let node = unsafe { Node::from_raw(raw) };
            if !node.is_leaf() {
                pending.extend((0..node.meta().count).map(|i| node.child_raw(i)));
            }
            // SAFETY: each node hangs on one parent, and this was its last use.
            unsafe { free(raw, node.words.len().trailing_zeros()) };
        }
    }
}

/// Heap words for the key bytes of an entry with `len` bytes after the prefix.
#[inline]
pub fn heap_words(len: usize) -> usize {
    len.saturating_sub(HEAD_LEN).div_ceil(8) + usize::from(len >= LONG)
}

/// The first bytes of `suffix` as a number, zero-padded.
#[inline]
pub fn head_of(suffix: &[u8]) -> u64 {
    be_word(suffix, 0) >> 24
}

/// The eight bytes from `at` on as a big-endian number, zero-padded behind the end.
#[inline]
pub fn be_word(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        return u64::from_be_bytes(*word);
    }
    let rest = bytes.len().saturating_sub(at);
    if rest == 0 {
        return 0;
    }
    match bytes.last_chunk() {
        Some(word) => u64::from_be_bytes(*word) << (64 - 8 * rest as u32),
        None => {
            bytes[at..].iter().fold(0, |word, &byte| word << 8 | u64::from(byte)) << (64 - 8 * rest as u32)
        }
    }
}

/// Length of the longest common prefix.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
