//! Images of rows that stand in column blocks.

use std::sync::Arc;

use avocet_types::RowLayout;
use avocet_types::row::Storage;

use crate::cold::{Block, ColdValue, EncodedColumn};
use crate::error::Result;

/// Replaces `image` by the row that the block has at `ordinal`. False if it has none there.
pub fn cold_image(layout: &RowLayout, block: &Block, ordinal: u16, image: &mut Vec<u8>) -> Result<bool> {
    let Some(row) = block.meta().ordinals.row_of(ordinal) else { return Ok(false) };
    start_image(layout, image);
    for column in 0..layout.fields.len() {
        let encoded = block.peek_column(column)?;
        put_column(layout, column, &encoded, row, image)?;
    }
    Ok(true)
}

/// The same, with only these columns; the others are zero.
pub fn cold_columns(
    layout: &RowLayout,
    block: &Block,
    ordinal: u16,
    columns: &[usize],
    image: &mut Vec<u8>,
) -> Result<bool> {
    let Some(row) = block.meta().ordinals.row_of(ordinal) else { return Ok(false) };
    start_image(layout, image);
    for &column in columns {
        put_column(layout, column, &*block.peek_column(column)?, row, image)?;
    }
    Ok(true)
}

/// Replaces `image` by a row that has only the given columns of a block's row; the others are zero.
pub fn partial_image(
    layout: &RowLayout,
    columns: &[(usize, Arc<EncodedColumn>)],
    row: usize,
    image: &mut Vec<u8>,
) -> Result<()> {
    start_image(layout, image);
    columns.iter().try_for_each(|(column, encoded)| put_column(layout, *column, encoded, row, image))
}

fn start_image(layout: &RowLayout, image: &mut Vec<u8>) {
    image.clear();
    image.resize(layout.fixed_size, 0);
}

fn put_column(
    layout: &RowLayout,
    column: usize,
    encoded: &EncodedColumn,
    row: usize,
    image: &mut Vec<u8>,
) -> Result<()> {
    match encoded.value_at(row)? {
        Some(value) => put_value(layout, column, &value, image),
        None => layout.put_stored(image, 0, column, None),
    }
    Ok(())
}

/// Sets one column of an image to a value from a block.
fn put_value(layout: &RowLayout, column: usize, value: &ColdValue<'_>, image: &mut Vec<u8>) {
    let field = &layout.fields[column];
    let size = field.storage.size();
    match value {
        ColdValue::Int(v) => layout.put_stored(image, 0, column, Some(&v.to_le_bytes()[..size])),
        ColdValue::UInt(v) => layout.put_stored(image, 0, column, Some(&v.to_le_bytes()[..size])),
        ColdValue::Int128(v) => match field.storage {
            // Narrower decimals are kept in fewer bytes; little-endian two's complement is cut at the front.
            Storage::Dec64 | Storage::Dec128 => {
                layout.put_stored(image, 0, column, Some(&v.to_le_bytes()[..size]));
            }
            other => unreachable!("a decimal in a {other:?} column"),
        },
        ColdValue::Int256(v) => layout.put_stored(image, 0, column, Some(&v.to_le_bytes())),
        ColdValue::F32(v) => layout.put_stored(image, 0, column, Some(&v.to_le_bytes())),
        ColdValue::F64(v) => layout.put_stored(image, 0, column, Some(&v.to_le_bytes())),
        ColdValue::Bytes(v) => layout.put_stored(image, 0, column, Some(v)),
    }
}
