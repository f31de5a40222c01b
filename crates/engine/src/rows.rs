//! Single rows, wherever they are: rows of column blocks as images, and the index entries that a row needs.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_storage::cold::{ColdValue, EncodedColumn};
use avocet_storage::hot::{PageBody, RowBuf, delta};
use avocet_storage::relation::{ColdSegment, SegmentState};
use avocet_storage::version::{Change, StaleEntry};
use avocet_types::row::Storage;
use avocet_types::{RowLayout, RowRef};

use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// Replaces `image` by the row that the block has at `ordinal`. False if it has none there.
pub(crate) fn cold_image(
    table: &TableHandle,
    cold: &ColdSegment,
    ordinal: u16,
    image: &mut Vec<u8>,
) -> Result<bool> {
    let Some(row) = cold.block.meta().ordinals.row_of(ordinal) else { return Ok(false) };
    start_image(&table.layout, image);
    for column in 0..table.layout.fields.len() {
        let encoded = cold.block.peek_column(column)?;
        put_column(&table.layout, column, &encoded, row, image)?;
    }
    Ok(true)
}

/// Replaces `image` by a row that has only the given columns of a block's row; the others are zero.
pub(crate) fn partial_image(
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
        Some(value) => put_cold(layout, column, &value, image),
        None => layout.put_stored(image, 0, column, None),
    }
    Ok(())
}

/// Sets one column of an image to a value from a block.
fn put_cold(layout: &RowLayout, column: usize, value: &ColdValue<'_>, image: &mut Vec<u8>) {
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

/// Removes all index entries of a row that is gone for everyone.
pub(crate) fn remove_entries(table: &TableHandle, row: &RowRef<'_>, id: RowId) {
    let mut entry = Vec::new();
    for index in &table.indexes {
        entry.clear();
        index.entry(row, id, &mut entry);
        index.tree.remove(&entry);
    }
}

/// Removes an entry that a version has left behind, unless some other version that still counts needs it; whether it is of no
/// use any more.
pub(crate) fn remove_stale(
    table: &TableHandle,
    body: &PageBody,
    slot: usize,
    id: RowId,
    stale: &StaleEntry,
) -> bool {
    // The index may have been dropped since.
    let index = table.indexes.iter().position(|index| index.def.id == stale.index);
    index.is_none_or(|index| remove_unless_needed(table, body, slot, id, index, &stale.entry))
}

/// Removes an index entry, unless some version of the row that still counts has its key; whether it did. Under the
/// page's latch, so that nobody puts the key back between look and removal.
pub(crate) fn remove_unless_needed(
    table: &TableHandle,
    body: &PageBody,
    slot: usize,
    id: RowId,
    index: usize,
    entry: &[u8],
) -> bool {
    let index = &table.indexes[index];
    let mut own = Vec::with_capacity(entry.len());
    let needed = any_version(body, &table.layout, slot, |row| {
        own.clear();
        index.entry(row, id, &mut own);
        own == entry
    });
    if !needed {
        index.tree.remove(entry);
    }
    !needed
}

/// Whether the predicate holds for the newest row in place or for any older version that is still kept.
fn any_version(
    body: &PageBody,
    layout: &RowLayout,
    slot: usize,
    mut holds: impl FnMut(&RowRef<'_>) -> bool,
) -> bool {
    let chain = body.chain(slot);
    if (body.is_live(slot) || chain.is_some()) && holds(&body.in_place(layout, slot)) {
        return true;
    }
    let mut next = chain.cloned();
    if next.is_none() {
        return false;
    }
    let mut buf = RowBuf::default();
    body.in_place(layout, slot).to_image(&mut buf.image);
    while let Some(undo) = next {
        let link = undo.link();
        if let Change::Update { before } = &link.change {
            delta::apply_to_image(layout, before, &mut buf.image)
                .expect("before-images are made by the page");
            if holds(&buf.row(layout)) {
                return true;
            }
        }
        next = link.older();
    }
    false
}

/// The value of a key as MySQL prints it in error 1062.
pub(crate) fn key_text(table: &TableHandle, index: usize, row: &RowRef<'_>) -> String {
    let mut text = Vec::new();
    for (n, part) in table.indexes[index].def.parts.iter().enumerate() {
        if n > 0 {
            text.push(b'-');
        }
        let ty = &table.def.columns[part.column].ty;
        avocet_types::text::write_text(
            &row.get(part.column),
            ty,
            avocet_types::temporal::TimeZone::UTC,
            &mut text,
        );
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The newest version of a row, hot or cold, where no transaction uses the table. False if there is none.
fn newest_image(table: &TableHandle, id: RowId, image: &mut Vec<u8>) -> bool {
    match &*table.relation.segment(id.segment()).state() {
        SegmentState::Empty => false,
        SegmentState::Hot(hot) => {
            let Some((page, slot)) = table.relation.page_of(hot, id.ordinal()) else { return false };
            image.clear();
            page.body.read().in_place(&table.layout, slot).to_image(image);
            true
        }
        SegmentState::Cold(cold) => matches!(cold_image(table, cold, id.ordinal(), image), Ok(true)),
    }
}

/// Whether a part of the row's key is NULL.
pub(crate) fn newest_has_null(table: &TableHandle, index: usize, id: RowId) -> bool {
    let mut buf = RowBuf::default();
    newest_image(table, id, &mut buf.image) && table.indexes[index].has_null(&buf.row(&table.layout))
}

pub(crate) fn newest_key_text(table: &TableHandle, index: usize, id: RowId) -> String {
    let mut buf = RowBuf::default();
    match newest_image(table, id, &mut buf.image) {
        true => key_text(table, index, &buf.row(&table.layout)),
        false => String::new(),
    }
}

/// MySQL's limit on the bytes of a row's fixed and inline part.
pub(crate) const MAX_ROW_BYTES: usize = 64 << 20;

pub(crate) fn check_row_size(image: &[u8]) -> Result<()> {
    if image.len() > MAX_ROW_BYTES {
        return Err(EngineError::RowTooLarge { len: image.len(), max: MAX_ROW_BYTES });
    }
    Ok(())
}
