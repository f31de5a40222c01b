//! Column blocks: bytes as a whole object, as a footer and a chunk behind their checksums, and as a delete vector.

use std::path::PathBuf;
use std::sync::Arc;

use avocet_base::BlockId;
use avocet_base::env::sim::SimDisk;
use avocet_storage::cold::{Block, BlockMeta, EncodedColumn, block_key, decode_deletes};
use avocet_storage::store::{BlobStore, BlockCache, LocalStore};

/// Bytes behind a footer, at the end of which is the block's id.
const TRAILER: usize = 24;

/// An object; or the length of a footer (u16), the footer, and the chunk of any of its columns.
pub fn run(data: &[u8]) {
    object(data);
    let _ = decode_deletes(data);
    let Some((len, rest)) = data.split_first_chunk::<2>() else { return };
    let (footer, chunk) = rest.split_at(usize::from(u16::from_le_bytes(*len)).min(rest.len()));
    let versions = 1..=avocet_storage::cold::FORMAT_VERSION;
    let Some(meta) = versions.flat_map(|version| BlockMeta::from_bytes(footer, version)).next() else {
        return;
    };
    for column in (0..meta.chunks()).filter_map(|number| meta.chunk(number)) {
        if let Ok(array) = EncodedColumn::parse(column, meta.rows(), chunk).and_then(|c| c.decode()) {
            assert_eq!(array.len(), meta.rows(), "a value for each row");
        }
    }
}

/// As the block that it says it is.
fn object(data: &[u8]) {
    let said = data.split_last_chunk::<TRAILER>().and_then(|(before, _)| before.split_last_chunk());
    let id = said.map_or(BlockId(1), |(_, id)| BlockId(u64::from_le_bytes(*id)));
    let store = LocalStore::open(Arc::new(SimDisk::new()), PathBuf::from("/store")).expect("opened");
    store.put(&block_key(id), data).expect("written");
    if let Ok(block) = Block::open(Arc::new(store), Arc::new(BlockCache::new(1 << 20)), id) {
        let _ = block.verify();
    }
}
