//! What single rows mean to a table: the index entries that they need, and their keys as text.

use avocet_base::RowId;
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::pin;
use avocet_storage::rows::RowLatch;
use avocet_storage::version::StaleEntry;
use avocet_types::RowRef;

use crate::error::{EngineError, Result};
use crate::table::TableHandle;

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
pub(crate) fn remove_stale(table: &TableHandle, row: &RowLatch<'_>, id: RowId, stale: &StaleEntry) -> bool {
    // The index may have been dropped since.
    let index = table.indexes.iter().position(|index| index.def.id == stale.index);
    index.is_none_or(|index| remove_unless_needed(table, row, id, index, &stale.entry))
}

/// Removes an index entry, unless some version of the row that still counts has its key; whether it did. Under the
/// row's latch, so that nobody puts the key back between look and removal.
pub(crate) fn remove_unless_needed(
    table: &TableHandle,
    row: &RowLatch<'_>,
    id: RowId,
    index: usize,
    entry: &[u8],
) -> bool {
    // A row of a block keeps its keys.
    if row.is_immutable() {
        return false;
    }
    let index = &table.indexes[index];
    let mut own = Vec::with_capacity(entry.len());
    let has_key = |version: &RowRef<'_>| {
        own.clear();
        index.entry(version, id, &mut own);
        own == entry
    };
    let needed = row.any_version(&RowBuf::default(), |_| true, has_key);
    if !needed {
        index.tree.remove(entry);
    }
    !needed
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

/// The newest version of a row, deleted or not, where no transaction uses the table. False if there never was one.
fn newest_image(table: &TableHandle, id: RowId, buf: &mut RowBuf) -> bool {
    let pinned = pin();
    let Some(row) = table.relation.glance(id, &pinned) else { return false };
    row.keep_row(buf);
    matches!(row.release(buf), Ok(true))
}

/// Whether a part of the row's key is NULL.
pub(crate) fn newest_has_null(table: &TableHandle, index: usize, id: RowId) -> bool {
    let mut buf = RowBuf::default();
    newest_image(table, id, &mut buf) && table.indexes[index].has_null(&buf.row(&table.layout))
}

pub(crate) fn newest_key_text(table: &TableHandle, index: usize, id: RowId) -> String {
    let mut buf = RowBuf::default();
    match newest_image(table, id, &mut buf) {
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
