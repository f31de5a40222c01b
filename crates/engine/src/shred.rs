//! Blocks of a table's rows, with columns of paths into its documents.
//!
//! Which paths have one is decided for each block by a sample of its documents (`types::json::shred`). The documents stay
//! as they are. Columns of paths are made one after the other, so that one at a time is in memory before it is encoded, and they
//! end where they would take more than the documents do.

use arrow::array::{ArrayRef, AsArray, Int8Array};
use avocet_storage::cold::{
    Block, ColdType, EncodedBlock, EncodedChunk, EncodedPath, Ordinals, assemble_with_paths, encode_block,
    encode_column, encode_uncounted,
};
use avocet_types::SqlType;
use avocet_types::json::shred::{self, ChosenPath, Kind};

use crate::columns::cold_types;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// Encodes rows of all columns, in table order.
pub(crate) fn encode_rows(
    table: &TableHandle,
    columns: &[ArrayRef],
    ordinals: Ordinals,
) -> Result<EncodedBlock> {
    let types = cold_types(&table.def)?;
    let is_json = |column: usize| table.def.columns[column].ty == SqlType::Json;
    if !(0..columns.len()).any(is_json) && table.def.stored.is_none() {
        return Ok(encode_block(&types, columns, ordinals)?);
    }
    let chunks = types.iter().zip(columns).map(|(ty, array)| encode_column(*ty, array));
    let chunks = chunks.collect::<avocet_storage::Result<Vec<_>>>()?;
    let mut paths = Vec::new();
    for column in (0..columns.len()).filter(|column| is_json(*column)) {
        let room = chunks[column].meta.len as usize;
        shred_column(table.def.stored_position(column), &columns[column], room, &mut paths)?;
    }
    Ok(assemble_with_paths(in_positions(table, chunks, ordinals.len())?, paths, ordinals)?)
}

/// The chunks of a table's columns in the positions that blocks have them in. Columns that were dropped are NULL.
fn in_positions(table: &TableHandle, chunks: Vec<EncodedChunk>, rows: usize) -> Result<Vec<EncodedChunk>> {
    if table.def.stored.is_none() {
        return Ok(chunks);
    }
    let mut placed: Vec<Option<EncodedChunk>> = (0..table.def.stored_width()).map(|_| None).collect();
    for (column, chunk) in chunks.into_iter().enumerate() {
        placed[table.def.stored_position(column)] = Some(chunk);
    }
    let dropped = || Ok(encode_uncounted(ColdType::Int8, &Int8Array::new_null(rows))?);
    placed.into_iter().map(|chunk| chunk.map_or_else(dropped, Ok)).collect()
}

/// Adds columns of the paths into a column of documents, of so many bytes at most.
fn shred_column(column: usize, documents: &ArrayRef, room: usize, to: &mut Vec<EncodedPath>) -> Result<()> {
    let (documents, mut taken) = (documents.as_binary_view(), 0);
    let Ok(column) = u16::try_from(column) else { return Ok(()) };
    for path in shred::choose(documents) {
        let Some(shredded) = shred::extract(documents, &path) else { continue };
        let encoded = |array: &ArrayRef| encode_uncounted(ColdType::from_arrow(array.data_type())?, array);
        let values = encoded(&shredded.values)?;
        let marks = shredded.marks.as_ref().map(encoded).transpose()?;
        taken += values.bytes.len() + marks.as_ref().map_or(0, |marks| marks.bytes.len());
        if taken > room {
            break;
        }
        to.push(EncodedPath { column, names: path.names, values, marks });
    }
    Ok(())
}

/// Reads everything of a block, and compares columns of paths with the documents.
pub(crate) fn verify(block: &Block) -> Result<()> {
    block.verify()?;
    let meta = block.meta();
    for (number, path) in meta.paths.iter().enumerate() {
        let wrong = || {
            EngineError::corrupt(
                "a column of a path",
                format!("{:?} is not what the documents have", path.names),
            )
        };
        let kind = match path.values.ty {
            ColdType::Int8 => Kind::Bool,
            ColdType::Int64 => Kind::Int,
            ColdType::UInt64 => Kind::UInt,
            ColdType::Float64 => Kind::Double,
            ColdType::Utf8 => Kind::String,
            _ => return Err(wrong()),
        };
        let documents = block.column(path.column.into())?.decode()?;
        let documents = documents.as_binary_view_opt().ok_or_else(wrong)?;
        let chunk = meta.path_chunk(number);
        let values = block.column(chunk)?.decode()?;
        let marks = path.marks.as_ref().map(|_| block.column(chunk + 1)?.decode()).transpose()?;
        let chosen = ChosenPath { names: path.names.clone(), kind };
        let expected = shred::extract(documents, &chosen).ok_or_else(wrong)?;
        if expected.values != values || expected.marks != marks {
            return Err(wrong());
        }
    }
    Ok(())
}
