//! The block: chunks of all columns, the metadata as a footer, and a reader over a block store.
//!
//! Byte layout: docs/data_file.md.

use std::sync::Arc;

use arrow::array::ArrayRef;
use avocet_base::BlockId;
use avocet_base::checksum::crc32c;
use avocet_base::codec::{Put, Reader};

use super::column::EncodedColumn;
use super::columns_view::ChunkSource;
use super::encode::{EncodedChunk, encode_column};
use super::meta::{BlockMeta, PathColumn, WITH_ID, WITHOUT_PATHS};
use super::ordinals::Ordinals;
use super::types::ColdType;
use crate::error::{Result, StorageError};
use crate::store::{BlobStore, BlockCache, CachedColumn, Slot};

const MAGIC: [u8; 8] = *b"AVOCBLK\x01";
const HEADER: usize = 16;
const TRAILER: usize = 24;
/// Bytes of the block's id, at the end of the footer.
const ID: usize = 8;
/// Newest version of the format; readers refuse newer ones.
pub const FORMAT_VERSION: u32 = WITH_ID;
/// A footer is usually read in one request of this size.
const TAIL_GUESS: u64 = 32 << 10;

/// A block as it goes to the store, once it is [sealed](Self::seal).
#[derive(Debug)]
pub struct EncodedBlock {
    pub bytes: Vec<u8>,
    pub meta: BlockMeta,
}

impl EncodedBlock {
    /// Says in the block which one it is: nobody else's is read in its place. Until then it is that of no id.
    pub fn seal(&mut self, id: BlockId) {
        let trailer = self.bytes.len() - TRAILER;
        self.bytes[trailer - ID..trailer].copy_from_slice(&id.0.to_le_bytes());
        let len = u32::from_le_bytes(self.bytes[trailer..trailer + 4].try_into().expect("four bytes"));
        let crc = crc32c(&self.bytes[trailer - len as usize..trailer + 8]);
        self.bytes[trailer + 8..trailer + 12].copy_from_slice(&crc.to_le_bytes());
    }
}

/// A column of the values at a path into another column, with its chunks.
#[derive(Debug)]
pub struct EncodedPath {
    pub column: u16,
    pub names: Box<[Box<str>]>,
    pub values: EncodedChunk,
    pub marks: Option<EncodedChunk>,
}

/// Encodes a block, one column after the other. To use more threads, call [`encode_column`] for each column
/// and [`assemble`] with the chunks.
pub fn encode_block(types: &[ColdType], columns: &[ArrayRef], ordinals: Ordinals) -> Result<EncodedBlock> {
    if types.len() != columns.len() || columns.iter().any(|c| c.len() != ordinals.len()) {
        return Err(StorageError::Unsupported("columns of a block that differ in number or length".into()));
    }
    let chunks =
        types.iter().zip(columns).map(|(ty, array)| encode_column(*ty, array)).collect::<Result<_>>()?;
    assemble(chunks, ordinals)
}

/// Puts the chunks of columns together to a block.
pub fn assemble(chunks: Vec<EncodedChunk>, ordinals: Ordinals) -> Result<EncodedBlock> {
    assemble_with_paths(chunks, Vec::new(), ordinals)
}

/// The same, with columns of paths into columns.
pub fn assemble_with_paths(
    chunks: Vec<EncodedChunk>,
    paths: Vec<EncodedPath>,
    ordinals: Ordinals,
) -> Result<EncodedBlock> {
    if chunks.len() + 2 * paths.len() > usize::from(u16::MAX) {
        return Err(StorageError::Unsupported(format!("{} columns in a block", chunks.len())));
    }
    let of_path =
        |path: &EncodedPath| path.values.bytes.len() + path.marks.as_ref().map_or(0, |m| m.bytes.len());
    let data_len =
        chunks.iter().map(|c| c.bytes.len()).sum::<usize>() + paths.iter().map(of_path).sum::<usize>();
    let mut bytes = Vec::with_capacity(HEADER + data_len + (chunks.len() + paths.len()) * 1024);
    bytes.extend_from_slice(&MAGIC);
    bytes.put_u32(FORMAT_VERSION);
    bytes.put_u32(0);
    let mut place = |mut chunk: EncodedChunk| {
        chunk.meta.offset = (bytes.len() - HEADER) as u64;
        bytes.extend_from_slice(&chunk.bytes);
        chunk.meta
    };
    let columns = chunks.into_iter().map(&mut place).collect();
    let paths = paths.into_iter().map(|path| PathColumn {
        column: path.column,
        names: path.names,
        values: place(path.values),
        marks: path.marks.map(&mut place),
    });
    let paths = paths.collect();
    let meta = BlockMeta { ordinals, columns, paths, data_len: data_len as u64 };
    let from = bytes.len();
    bytes.extend_from_slice(&meta.to_bytes());
    bytes.put_u64(0);
    let footer_len = (bytes.len() - from) as u32;
    bytes.put_u32(footer_len);
    bytes.put_u32(FORMAT_VERSION);
    bytes.put_u32(0);
    bytes.put_u32(0);
    bytes.extend_from_slice(&MAGIC);
    let mut block = EncodedBlock { bytes, meta };
    block.seal(BlockId(0));
    Ok(block)
}

/// What a footer says: of a block of an older version, not which one it is.
type Footer = (BlockMeta, Option<BlockId>);

/// Reads the footer at the end of `tail`, the last bytes of a block of `size` bytes. `Ok(Err(n))`: the last
/// `n` bytes are needed.
fn read_footer(tail: &[u8], size: u64) -> Result<std::result::Result<Footer, u64>> {
    const WHAT: &str = "block trailer";
    let bad = |why: &str| StorageError::corrupt(WHAT, why);
    if size < (HEADER + TRAILER) as u64 || tail.len() < TRAILER {
        return Err(bad("the block is too short"));
    }
    let (rest, trailer) = tail.split_at(tail.len() - TRAILER);
    let mut r = Reader::new(trailer);
    let (len, version, crc, zero) = (r.u32(WHAT)?, r.u32(WHAT)?, r.u32(WHAT)?, r.u32(WHAT)?);
    if r.take(8, WHAT)? != MAGIC {
        return Err(bad("no magic number: not a block, or cut short"));
    }
    if !(WITHOUT_PATHS..=FORMAT_VERSION).contains(&version) {
        return Err(bad(&format!("format version {version}, this program reads up to {FORMAT_VERSION}")));
    }
    let whole = u64::from(len) + TRAILER as u64;
    if zero != 0 || whole + HEADER as u64 > size {
        return Err(bad("the footer does not fit the block"));
    }
    let Some(from) = rest.len().checked_sub(len as usize) else { return Ok(Err(whole)) };
    if crc32c(&tail[from..tail.len() - TRAILER + 8]) != crc {
        return Err(StorageError::corrupt("block footer", "checksum mismatch"));
    }
    let footer = &rest[from..];
    let (footer, id) = match version {
        ..WITH_ID => (footer, None),
        _ => {
            let (footer, id) = footer.split_last_chunk().ok_or_else(|| bad("the footer is too short"))?;
            (footer, Some(BlockId(u64::from_le_bytes(*id))))
        }
    };
    let meta = BlockMeta::from_bytes(footer, version)?;
    if meta.data_len + HEADER as u64 + whole != size {
        return Err(bad("the length of the block is not what the footer says"));
    }
    Ok(Ok((meta, id)))
}

/// Name of a block's object in the store.
pub fn block_key(id: BlockId) -> String {
    format!("blocks/{:016x}", id.0)
}

/// A reader of one block. Cheap to clone; columns come through the cache.
#[derive(Clone)]
pub struct Block {
    id: BlockId,
    key: Arc<str>,
    meta: Arc<BlockMeta>,
    store: Arc<dyn BlobStore>,
    cache: Arc<BlockCache>,
    /// Of the chunks that were written, in the cache.
    slots: Arc<[Slot]>,
    /// By number of a chunk in `meta`: where it is, if that is not the chunk of the same number.
    sources: Option<Arc<[ChunkSource]>>,
    /// The metadata as written, if `meta` is not.
    written: Option<Arc<BlockMeta>>,
}

impl Block {
    /// Opens a block by its footer, which has to say that it is this one.
    pub fn open(store: Arc<dyn BlobStore>, cache: Arc<BlockCache>, id: BlockId) -> Result<Self> {
        let key = block_key(id);
        let size = store.size(&key)?;
        let read_tail = |n: u64| store.get_range(&key, size.saturating_sub(n)..size);
        let (meta, said) = match read_footer(&read_tail(TAIL_GUESS)?, size).map_err(|e| e.within(&key))? {
            Ok(footer) => footer,
            Err(needed) => read_footer(&read_tail(needed)?, size)
                .map_err(|e| e.within(&key))?
                .map_err(|_| StorageError::corrupt(key.clone(), "the footer changed while it was read"))?,
        };
        if let Some(other) = said.filter(|said| *said != id) {
            return Err(StorageError::corrupt(key, format!("it is {other}, in the place of {id}")));
        }
        Ok(Self::with_meta(store, cache, id, Arc::new(meta)))
    }

    /// A reader of a block whose metadata is at hand.
    pub fn with_meta(
        store: Arc<dyn BlobStore>,
        cache: Arc<BlockCache>,
        id: BlockId,
        meta: Arc<BlockMeta>,
    ) -> Self {
        let slots = Slot::for_columns(meta.chunks());
        Self { id, key: block_key(id).into(), meta, store, cache, slots, sources: None, written: None }
    }

    /// The same block with other columns; what was cached of it stays.
    pub(super) fn seen_as(&self, meta: BlockMeta, sources: Vec<ChunkSource>) -> Self {
        let (meta, written) = (Arc::new(meta), Some(self.meta.clone()));
        Self { meta, written, sources: Some(sources.into()), ..self.clone() }
    }

    /// The block with the columns that it was written with.
    pub fn as_written(&self) -> Self {
        match &self.written {
            None => self.clone(),
            Some(meta) => Self { meta: meta.clone(), written: None, sources: None, ..self.clone() },
        }
    }

    /// How many chunks were written, if all paths have marks.
    pub fn written_chunks(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are other readers of the block.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.key) > 1
    }

    pub fn id(&self) -> BlockId {
        self.id
    }

    pub fn meta(&self) -> &Arc<BlockMeta> {
        &self.meta
    }

    /// A column, or a chunk of a path's (see [`BlockMeta::chunk`]), in encoded form, from the cache or from the store. What comes from the store is verified.
    pub fn column(&self, column: usize) -> Result<Arc<EncodedColumn>> {
        Ok(self.peek_column(column)?.to_owned())
    }

    /// As [`Self::column`], for a short look: while such a look lasts, the column's memory stays.
    pub fn peek_column(&self, column: usize) -> Result<CachedColumn> {
        let chunk = match &self.sources {
            None => column,
            Some(sources) => match sources.get(column) {
                Some(ChunkSource::Block(chunk)) => usize::from(*chunk),
                Some(ChunkSource::MadeUp(made)) => return Ok(CachedColumn::made_up(made.clone())),
                None => return Err(self.no_column(column)),
            },
        };
        if chunk >= self.slots.len() {
            return Err(self.no_column(column));
        }
        self.cache.get_or_load(self.id, &self.slots, chunk as u16, || self.load(column))
    }

    /// A row's columns will be read soon, those that the cache holds.
    pub fn prefetch(&self, row: usize) {
        self.slots.iter().for_each(|slot| slot.peek(|column| column.prefetch(row)));
    }

    fn no_column(&self, column: usize) -> StorageError {
        StorageError::Unsupported(format!("column {column} of a block with {}", self.meta.chunks()))
    }

    /// A column from the store, past the cache. It must be one that was written.
    fn load(&self, column: usize) -> Result<EncodedColumn> {
        let meta = self.meta.chunk(column).ok_or_else(|| self.no_column(column))?;
        let from = HEADER as u64 + meta.offset;
        let bytes = self.store.get_range(&self.key, from..from + u64::from(meta.len))?;
        let within = |e: StorageError| e.within(&format!("{} column {column}", self.key));
        if bytes.len() != meta.len as usize || crc32c(&bytes) != meta.crc {
            return Err(within(StorageError::corrupt("chunk", "checksum mismatch")));
        }
        EncodedColumn::parse(meta, self.meta.rows(), &bytes).map_err(within)
    }

    /// Reads and decodes everything that was written, to find damage.
    pub fn verify(&self) -> Result<()> {
        let is_written = |column: &usize| {
            let made_up =
                |sources: &Arc<[ChunkSource]>| matches!(sources.get(*column), Some(ChunkSource::MadeUp(_)));
            self.meta.chunk(*column).is_some() && !self.sources.as_ref().is_some_and(made_up)
        };
        for column in (0..self.meta.chunks()).filter(is_written) {
            self.load(column)?.decode().map_err(|e| e.within(&format!("{} column {column}", self.key)))?;
        }
        Ok(())
    }
}
