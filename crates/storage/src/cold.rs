//! Cold storage: immutable column blocks of up to 65,536 rows, one per segment.
//!
//! Input and output are Arrow arrays; nothing here knows of SQL. The path of a column:
//!
//! ```text
//!  Arrow array ──encode──▶ chunk (bytes + ColumnMeta) ──assemble──▶ block ──put──▶ store
//!                                                                                    │
//!  Arrow array ◀─decode─── EncodedColumn ◀──verify, parse── chunk ◀────get_range─────┘
//!    bitmap    ◀─filter──┘       └── kept in the BlockCache
//! ```
//!
//! Invariants:
//! 1. A block is immutable, and every byte of it that is used is covered by a CRC-32C checked on load.
//! 2. No bytes make a reader panic: what does not fit together is [`StorageError::Corrupt`](crate::StorageError).
//! 3. Metadata never lies: bounds and null counts are exact unless marked inexact, so pruning is safe.
//! 4. Every value is reachable on its own, in time that does not grow with the block.

mod arrays;
mod bitmap;
#[allow(unsafe_code)]
mod bitpack;
mod block;
mod column;
mod columns_view;
mod deletes;
mod encode;
mod fixed;
mod fsst;
mod keys;
mod meta;
mod ordinals;
mod predicate;
mod sections;
mod sketch;
mod strings;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod views;
mod words;

pub use bitmap::Bitmap;
pub use block::{
    Block, EncodedBlock, EncodedPath, FORMAT_VERSION, assemble, assemble_with_paths, block_key, encode_block,
};
pub use column::{EncodedColumn, Selection};
pub use columns_view::{ColumnsView, ViewColumn};
pub use deletes::{decode_deletes, encode_deletes};
pub use encode::{EncodedChunk, encode_column, encode_uncounted};
pub use keys::{KeySet, KeySetBuilder};
pub use meta::{BlockMeta, Bounds, ColumnMeta, Distinct, Encoding, PathColumn};
pub use ordinals::{MAX_ROWS, Ordinals};
pub use predicate::{ColumnPredicate, CompareOp};
pub use sketch::DistinctSketch;
pub use types::ColdType;
pub use value::ColdValue;
