//! Blocks as a table has them whose columns have changed since they were written.
//!
//! A block is immutable. What a table calls its columns is one *position* after the other in a block that ends before those
//! that were added later: these have one value for all of its rows, which is made up when the block is opened. Whoever
//! reads a [`Block`] sees the table's columns in the table's order, each with its metadata, wherever they come from.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use parking_lot::Mutex;

use super::block::Block;
use super::column::EncodedColumn;
use super::encode::encode_column;
use super::meta::{BlockMeta, ColumnMeta, PathColumn};
use super::types::ColdType;
use crate::error::{Result, StorageError};

/// So many made-up columns are kept; those of blocks with other numbers of rows are made each time.
const MOST_KEPT: usize = 64;

/// How a table sees blocks.
pub struct ColumnsView {
    columns: Box<[ViewColumn]>,
    /// Made-up columns by number and rows of the block: nearly all blocks have as many.
    constants: Mutex<HashMap<(usize, usize), Constant>>,
}

/// A column of a table.
pub struct ViewColumn {
    /// Where blocks have it that were written since it was added.
    pub position: usize,
    pub ty: ColdType,
    /// One value: that of all rows of older blocks.
    pub before: ArrayRef,
}

/// A column with one value.
#[derive(Clone)]
struct Constant {
    meta: ColumnMeta,
    column: Arc<EncodedColumn>,
}

/// Where a chunk is that a reader asks for by its number.
#[derive(Clone)]
pub(super) enum ChunkSource {
    /// The block's chunk of this number.
    Block(u16),
    MadeUp(Arc<EncodedColumn>),
}

impl ColumnsView {
    pub fn new(columns: Vec<ViewColumn>) -> Self {
        Self { columns: columns.into(), constants: Mutex::default() }
    }

    /// The block with the table's columns. It must be one as it was written.
    pub fn of(&self, block: &Block) -> Result<Block> {
        let written = block.meta();
        let rows = written.rows();
        let (mut columns, mut sources) = (Vec::with_capacity(self.columns.len()), Vec::new());
        for (number, column) in self.columns.iter().enumerate() {
            let (meta, source) = match written.columns.get(column.position) {
                Some(meta) => (meta.clone(), ChunkSource::Block(column.position as u16)),
                None => {
                    let constant = self.constant(number, rows)?;
                    (constant.meta, ChunkSource::MadeUp(constant.column))
                }
            };
            if meta.ty != column.ty {
                let why = format!("column {number} is {:?}, the table has {:?}", meta.ty, column.ty);
                return Err(StorageError::corrupt("a block", why));
            }
            columns.push(meta);
            sources.push(source);
        }
        let mut paths = Vec::new();
        for (number, path) in written.paths.iter().enumerate() {
            let is_own = |column: &ViewColumn| column.position == usize::from(path.column);
            let Some(column) = self.columns.iter().position(is_own) else { continue };
            let chunk = written.path_chunk(number) as u16;
            paths.push(PathColumn { column: column as u16, ..path.clone() });
            sources.extend([ChunkSource::Block(chunk), ChunkSource::Block(chunk + 1)]);
        }
        let meta = BlockMeta {
            ordinals: written.ordinals.clone(),
            columns: columns.into(),
            paths: paths.into(),
            data_len: written.data_len,
        };
        Ok(block.seen_as(meta, sources))
    }

    fn constant(&self, number: usize, rows: usize) -> Result<Constant> {
        if let Some(made) = self.constants.lock().get(&(number, rows)) {
            return Ok(made.clone());
        }
        let ViewColumn { ty, before, .. } = &self.columns[number];
        let all = take(before, &UInt32Array::from(vec![0; rows]), None)
            .map_err(|e| StorageError::corrupt("the value of a new column", e.to_string()))?;
        let chunk = encode_column(*ty, &all)?;
        let column = Arc::new(EncodedColumn::parse(&chunk.meta, rows, &chunk.bytes)?);
        let made = Constant { meta: chunk.meta, column };
        let mut kept = self.constants.lock();
        if kept.len() < MOST_KEPT {
            kept.insert((number, rows), made.clone());
        }
        Ok(made)
    }
}
