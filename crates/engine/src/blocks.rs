//! Block ids and the life of block objects.
//!
//! A block's object is written before anything refers to it, and deleted only when nothing can refer to it any
//! more: neither a table, nor the newest checkpoint, nor the log that recovery would replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_base::BlockId;
use avocet_storage::cold::{Block, EncodedBlock, block_key};
use avocet_storage::relation::free_replaced;
use avocet_storage::store::{BlobStore, BlockCache};
use hashbrown::HashSet;
use parking_lot::Mutex;

use crate::error::Result;
use crate::index_build::in_parallel_requests;

pub(crate) struct Blocks {
    pub store: Arc<dyn BlobStore>,
    pub cache: Arc<BlockCache>,
    next: AtomicU64,
    /// No table uses them any more; the newest checkpoint, the log or a running scan may.
    retired: Mutex<Vec<Arc<Block>>>,
}

impl Blocks {
    pub fn new(store: Arc<dyn BlobStore>, cache_bytes: usize) -> Self {
        Self {
            store,
            cache: Arc::new(BlockCache::new(cache_bytes)),
            next: AtomicU64::new(1),
            retired: Mutex::default(),
        }
    }

    /// The id that the next block gets: for checkpoints.
    pub fn next_id(&self) -> BlockId {
        BlockId(self.next.load(Ordering::Relaxed))
    }

    /// Recovery: ids up to this one were given out.
    pub fn note_id(&self, used: BlockId) {
        self.next.fetch_max(used.0 + 1, Ordering::Relaxed);
    }

    /// Stores a block durably and opens it.
    pub fn write(&self, mut block: EncodedBlock) -> Result<Arc<Block>> {
        let id = self.take_id();
        block.seal(id);
        self.store.put(&block_key(id), &block.bytes)?;
        Ok(self.opened(id, block))
    }

    /// As [`Self::write`], a step after the other: see [`BlobStore::put_in_steps`].
    pub fn write_in_steps(
        &self,
        mut block: EncodedBlock,
        written: &mut dyn FnMut(u64),
    ) -> Result<Arc<Block>> {
        let id = self.take_id();
        block.seal(id);
        self.store.put_in_steps(&block_key(id), &block.bytes, written)?;
        Ok(self.opened(id, block))
    }

    fn take_id(&self) -> BlockId {
        BlockId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn opened(&self, id: BlockId, block: EncodedBlock) -> Arc<Block> {
        Arc::new(Block::with_meta(self.store.clone(), self.cache.clone(), id, Arc::new(block.meta)))
    }

    pub fn open(&self, id: BlockId) -> Result<Arc<Block>> {
        self.note_id(id);
        Ok(Arc::new(Block::open(self.store.clone(), self.cache.clone(), id)?))
    }

    /// Nothing ever referred to the block.
    pub fn discard(&self, id: BlockId) {
        // If this fails, the object is an orphan, which the next start removes.
        let _ = self.store.delete(&block_key(id));
    }

    /// No table uses the block any more.
    pub fn retire(&self, block: &Arc<Block>) {
        self.retired.lock().push(block.clone());
    }

    /// What was retired until now, for [`Self::delete_retired`] once a checkpoint that began after this call is complete.
    pub fn take_retired(&self) -> Vec<Arc<Block>> {
        std::mem::take(&mut *self.retired.lock())
    }

    /// Deletes blocks, but for those that a scan still reads: they are retired again.
    pub fn delete_retired(&self, retired: Vec<Arc<Block>>) {
        free_replaced();
        for block in retired {
            if Arc::strong_count(&block) > 1 || block.is_shared() {
                self.retire(&block);
                continue;
            }
            self.cache.remove_block(block.id(), block.written_chunks());
            // An orphan that stays is removed at the next start.
            let _ = self.store.delete(&block_key(block.id()));
        }
    }

    /// Recovery: deletes the objects of blocks that nothing refers to. Those that only the log names (later
    /// records made them free) are still needed if recovery starts over; they go with the next checkpoint.
    pub fn delete_orphans(&self, in_use: &HashSet<BlockId>, named_in_log: &HashSet<BlockId>) -> Result<()> {
        let id_of = |key: &str| key.strip_prefix("blocks/").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let there = self.store.list("blocks/")?.into_iter().map(|(key, _)| (id_of(&key).map(BlockId), key));
        let free: Vec<_> = there.filter(|(id, _)| id.is_none_or(|id| !in_use.contains(&id))).collect();
        in_parallel_requests(free.len(), |n| match &free[n] {
            (Some(id), _) if named_in_log.contains(id) => {
                self.retire(&self.open(*id)?);
                Ok(())
            }
            (_, key) => Ok(self.store.delete(key)?),
        })
    }
}
