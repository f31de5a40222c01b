//! The cache of encoded columns, bounded in bytes: S3-FIFO (Yang et al., SOSP 2023) in shards.
//!
//! ```text
//!           ┌─────────────┐ asked for again  ┌──────────────────────────┐
//!  new ────▶│ small (10 %)│─────────────────▶│ main (90 %)              │──┐ asked for since: once more
//!           └──────┬──────┘                  └───▲──────────────┬───────┘◀─┘
//!                  │ not asked for               │ remembered   ▼ out
//!                  └─▶ ghost (keys only) ────────┘
//! ```
//!
//! A scan that touches everything once flows through the small queue and leaves the main one alone.
//!
//! Whoever reads a block has a *slot* for each of its columns, which holds the column as long as the cache does: what is
//! there is found without the cache's locks, and without counting a reference. A read of one row of a block takes each of
//! its columns. Those larger than a shard stay until one of another block comes: who goes through a block row by row
//! would load them for each row.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use avocet_base::BlockId;
use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::cold::EncodedColumn;
use crate::error::Result;

const SHARDS: usize = 16;
/// Asked-for counts stop here.
const MAX_USES: u8 = 3;
/// So many keys that were removed do no harm in a queue.
const FEW_REMOVED: usize = 64;
/// Keys that the ghost queue remembers per shard.
const GHOSTS: usize = 4096;

type Key = (BlockId, u16);

/// A cache of encoded columns.
pub struct BlockCache {
    shards: Box<[Mutex<Shard>]>,
    overflow: Mutex<Overflow>,
    hasher: FixedState,
    misses: AtomicU64,
}

/// Where a block's reader finds one of its columns, if the cache holds it.
#[derive(Default)]
pub struct Slot {
    column: ArcSwapOption<EncodedColumn>,
    /// How often it was asked for, up to `MAX_USES`.
    uses: AtomicU8,
}

impl Slot {
    /// For each column of a block.
    pub fn for_columns(count: usize) -> Arc<[Slot]> {
        (0..count).map(|_| Slot::default()).collect()
    }

    /// Shows the column, if it is there. Does not count as a use.
    pub fn peek(&self, show: impl FnOnce(&EncodedColumn)) {
        if let Some(column) = &*self.column.load() {
            show(column);
        }
    }

    fn hit(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        // Written only while it still counts: what is asked for all the time is read by many.
        if uses < MAX_USES {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    fn was_used(&self) -> bool {
        self.uses.load(Ordering::Relaxed) > 0
    }
}

/// A column that was asked for; it stays readable when the cache lets go of it.
pub struct CachedColumn(Guard<Option<Arc<EncodedColumn>>>);

impl CachedColumn {
    /// One that no cache holds.
    pub(crate) fn made_up(column: Arc<EncodedColumn>) -> Self {
        Self(Guard::from_inner(Some(column)))
    }

    /// For use beyond the moment.
    pub fn to_owned(&self) -> Arc<EncodedColumn> {
        Arc::clone(self)
    }
}

impl Deref for CachedColumn {
    type Target = Arc<EncodedColumn>;

    fn deref(&self) -> &Arc<EncodedColumn> {
        self.0.as_ref().expect("made only of columns that are there")
    }
}

/// What the cache did and holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStats {
    pub misses: u64,
    pub entries: usize,
    pub size_bytes: usize,
}

struct Entry {
    /// Of the reader that loaded it; the key has the number.
    slots: Arc<[Slot]>,
    size: usize,
    in_main: bool,
}

impl Entry {
    fn slot(&self, key: &Key) -> &Slot {
        &self.slots[usize::from(key.1)]
    }
}

struct Shard {
    capacity: usize,
    small_size: usize,
    main_size: usize,
    entries: HashMap<Key, Entry, FixedState>,
    /// Queues may name keys that were removed or are in the other queue; these are skipped, and go when they are most.
    small: VecDeque<Key>,
    main: VecDeque<Key>,
    ghosts: VecDeque<Key>,
    remembered: HashSet<Key, FixedState>,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let shard = || {
            Mutex::new(Shard {
                capacity: capacity / SHARDS,
                small_size: 0,
                main_size: 0,
                entries: HashMap::default(),
                small: VecDeque::new(),
                main: VecDeque::new(),
                ghosts: VecDeque::new(),
                remembered: HashSet::default(),
            })
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            overflow: Mutex::default(),
            hasher: FixedState::default(),
            misses: AtomicU64::new(0),
        }
    }

    /// The column, loaded if it is not there. Loads run outside of the cache's locks; two callers may load
    /// the same column at the same time.
    pub fn get_or_load(
        &self,
        block: BlockId,
        slots: &Arc<[Slot]>,
        column: u16,
        load: impl FnOnce() -> Result<EncodedColumn>,
    ) -> Result<CachedColumn> {
        let slot = &slots[usize::from(column)];
        let found = slot.column.load();
        if found.is_some() {
            slot.hit();
            return Ok(CachedColumn(found));
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let loaded = Arc::new(load()?);
        let key = (block, column);
        let is_kept = self.shard(&key).lock().insert(key, slots, &loaded);
        if !is_kept {
            self.overflow.lock().put(key, slots, &loaded);
        }
        Ok(CachedColumn(Guard::from_inner(Some(loaded))))
    }

    /// Changes the bound; what is over it goes at once.
    pub fn set_capacity(&self, capacity: usize) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.capacity = capacity / SHARDS;
            while shard.small_size + shard.main_size > shard.capacity {
                shard.evict();
            }
        }
        self.overflow.lock().clear();
    }

    /// Forgets a block's columns `0..columns`, because it was deleted.
    pub fn remove_block(&self, block: BlockId, columns: usize) {
        self.overflow.lock().forget(block);
        for column in 0..columns {
            let key = (block, column as u16);
            let mut shard = self.shard(&key).lock();
            shard.remove(&key);
            shard.trim_queues();
        }
    }

    pub fn stats(&self) -> CacheStats {
        let (mut entries, mut size_bytes) = (0, 0);
        for shard in &self.shards {
            let shard = shard.lock();
            entries += shard.entries.len();
            size_bytes += shard.small_size + shard.main_size;
        }
        let overflow = self.overflow.lock();
        entries += overflow.columns.len();
        size_bytes += overflow.columns.iter().map(|(_, _, column)| column.size()).sum::<usize>();
        CacheStats { misses: self.misses.load(Ordering::Relaxed), entries, size_bytes }
    }

    /// Keys in the queues, those that are gone among them.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        let shards = self.shards.iter().map(|shard| shard.lock());
        shards.map(|shard| shard.small.len() + shard.main.len()).sum()
    }

    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }
}

/// Columns larger than a shard, of the one block that was asked for last.
#[derive(Default)]
struct Overflow {
    block: Option<BlockId>,
    columns: Vec<(u16, Arc<[Slot]>, Arc<EncodedColumn>)>,
}

impl Overflow {
    fn put(&mut self, (block, number): Key, slots: &Arc<[Slot]>, column: &Arc<EncodedColumn>) {
        if self.block != Some(block) {
            self.clear();
            self.block = Some(block);
        }
        let is_there = |(known, of, _): &(u16, Arc<[Slot]>, Arc<EncodedColumn>)| {
            *known == number && Arc::ptr_eq(of, slots)
        };
        if self.columns.iter().any(is_there) {
            return;
        }
        slots[usize::from(number)].column.store(Some(column.clone()));
        self.columns.push((number, slots.clone(), column.clone()));
    }

    fn forget(&mut self, block: BlockId) {
        if self.block == Some(block) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        for (number, slots, column) in self.columns.drain(..) {
            // Unless the column has found room meanwhile.
            slots[usize::from(number)].column.compare_and_swap(&column, None);
        }
        self.block = None;
    }
}

impl Shard {
    /// False if it is larger than all of the shard.
    fn insert(&mut self, key: Key, slots: &Arc<[Slot]>, column: &Arc<EncodedColumn>) -> bool {
        let size = column.size();
        if size > self.capacity {
            return false;
        }
        if self.entries.contains_key(&key) {
            return true;
        }
        let in_main = self.remembered.remove(&key);
        if in_main {
            self.main_size += size;
            self.main.push_back(key);
        } else {
            self.small_size += size;
            self.small.push_back(key);
        }
        let entry = Entry { slots: slots.clone(), size, in_main };
        entry.slot(&key).uses.store(0, Ordering::Relaxed);
        entry.slot(&key).column.store(Some(column.clone()));
        self.entries.insert(key, entry);
        while self.small_size + self.main_size > self.capacity {
            self.evict();
        }
        true
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            entry.slot(key).column.store(None);
            let queue_size = if entry.in_main { &mut self.main_size } else { &mut self.small_size };
            *queue_size -= entry.size;
        }
        self.remembered.remove(key);
    }

    /// Takes keys that were removed out of the queues, if they are most of what is in one: where everything fits, nothing
    /// else would ever take them out.
    fn trim_queues(&mut self) {
        let most = 2 * self.entries.len() + FEW_REMOVED;
        for (queue, is_main) in [(&mut self.small, false), (&mut self.main, true)] {
            if queue.len() > most {
                let mut seen: HashSet<Key, FixedState> = HashSet::default();
                let is_there =
                    |key: &Key| self.entries.get(key).is_some_and(|entry| entry.in_main == is_main);
                queue.retain(|key| is_there(key) && seen.insert(*key));
            }
        }
    }

    fn evict(&mut self) {
        if self.small_size * 10 > self.capacity || self.main_size == 0 {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    /// Moves what was asked for again from the small queue to the main one; drops the first that was not.
    fn evict_small(&mut self) {
        while let Some(key) = self.small.pop_front() {
            let Some(entry) = self.entries.get_mut(&key).filter(|e| !e.in_main) else { continue };
            if entry.slot(&key).was_used() {
                entry.slot(&key).uses.store(0, Ordering::Relaxed);
                entry.in_main = true;
                self.small_size -= entry.size;
                self.main_size += entry.size;
                self.main.push_back(key);
                continue;
            }
            self.remove(&key);
            self.remember(key);
            return;
        }
    }

    fn evict_main(&mut self) {
        while let Some(key) = self.main.pop_front() {
            let Some(entry) = self.entries.get(&key).filter(|e| e.in_main) else { continue };
            if entry.slot(&key).was_used() {
                // Who asks for it meanwhile may take this back: once more or less does not matter.
                entry.slot(&key).uses.fetch_sub(1, Ordering::Relaxed);
                self.main.push_back(key);
                continue;
            }
            self.remove(&key);
            return;
        }
    }

    fn remember(&mut self, key: Key) {
        if self.remembered.insert(key) {
            self.ghosts.push_back(key);
        }
        if self.ghosts.len() > GHOSTS
            && let Some(oldest) = self.ghosts.pop_front()
        {
            self.remembered.remove(&oldest);
        }
    }
}
