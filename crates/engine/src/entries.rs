//! Rows and index entries: which entries a row needs, which rows an entry may lead to, and keys as text.

use std::ops::ControlFlow;

use avocet_base::RowId;
use avocet_storage::Undo;
use avocet_storage::hot::{RowBuf, delta};
use avocet_storage::index::{Direction, Lookup, MAX_KEY_LEN, ScanScratch};
use avocet_storage::relation::pin;
use avocet_storage::rows::RowLatch;
use avocet_storage::version::StaleEntry;
use avocet_types::text::visible;
use avocet_types::{Datum, RowRef, SqlType};

use crate::buffers::ReadScratch;
use crate::error::{EngineError, Result, malformed};
use crate::keys::KeyRange;
use crate::table::{IndexHandle, TableHandle, split_entry};

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
    // Who sees a version from before the index was made does not read the index, and nobody would take its entry out again.
    let counts = |undo: &Undo| undo.txn.committed_at().is_none_or(|ts| index.is_readable_before(ts));
    let needed = row.any_version(&RowBuf::default(), counts, has_key);
    if !needed {
        index.tree.remove(entry);
    }
    !needed
}

/// Goes through the rows that a unique index may have under a whole key, until `visit` takes one, which it may only if that
/// has the key. Whether it took one. `visit` is also told whether a mere hint led to the row.
pub(crate) fn each_with_key(
    index: &IndexHandle,
    key: &[u8],
    scan: &mut ScanScratch,
    visit: &mut dyn FnMut(RowId, bool) -> Result<bool>,
) -> Result<bool> {
    let hint = index.hints.get(key);
    if let Some(id) = hint
        && visit(id, true)?
    {
        return Ok(true);
    }
    match index.tree.lookup(key) {
        Lookup::Nothing => return Ok(false),
        Lookup::One(id) => {
            let id = RowId(u64::from_be_bytes(id));
            if !visit(id, false)? {
                return Ok(false);
            }
            index.hints.note(key, id, || index.tree.len());
            return Ok(true);
        }
        Lookup::Unclear => {}
    }
    let mut outcome = Ok(false);
    index.tree.prefix_scan(key, scan, &mut |entry| {
        outcome = visit(split_entry(entry).1, false);
        if matches!(outcome, Ok(false)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome
}

/// Whether the row has the key of this entry. Always to be asked: the entry may be one of another version of the row, or
/// have been collected, with that version, since it was read from the index.
pub(crate) fn entry_is_of(index: &IndexHandle, row: &RowRef<'_>, entry: &[u8], own: &mut Vec<u8>) -> bool {
    index.keys.has_key(row, split_entry(entry).0, own)
}

/// Whether an index takes an entry of so many bytes, its row id included.
///
/// # Errors
/// `KeyTooLong`.
pub(crate) fn check_entry_len(len: usize) -> Result<()> {
    match len > MAX_KEY_LEN {
        true => Err(EngineError::KeyTooLong { len: len - 8, max: MAX_KEY_LEN - 8 }),
        false => Ok(()),
    }
}

/// The columns that a delta changes; it was made for this table.
pub(crate) fn changed_columns<'a>(
    table: &'a TableHandle,
    after: &'a [u8],
) -> impl Iterator<Item = usize> + 'a {
    delta::own_entries(&table.layout, after).filter_map(|entry| Some(entry.ok()?.column))
}

/// Whether an update may change the key of an index.
pub(crate) fn changes_keys(table: &TableHandle, after: &[u8]) -> bool {
    changed_columns(table, after).any(|column| table.is_key_column(column))
}

/// An entry that an update in place makes another one.
pub(crate) struct Moved<'m> {
    /// Position of the index.
    pub index: usize,
    pub before: Vec<u8>,
    pub now: &'m [u8],
    /// As it is now.
    pub row: &'m RowRef<'m>,
}

/// Visits the entries that an update in place makes others. `old` is the row as it was.
///
/// # Errors
/// What the visit fails with; `Corrupt` if the delta is none of the table's.
pub(crate) fn each_moved(
    table: &TableHandle,
    id: RowId,
    after: &[u8],
    old: &RowBuf,
    visit: &mut dyn FnMut(Moved<'_>) -> Result<()>,
) -> Result<()> {
    let mut new = RowBuf { image: old.image.clone() };
    delta::apply_to_image(&table.layout, after, &mut new.image).map_err(malformed("row delta"))?;
    let (old, new) = (old.row(&table.layout), new.row(&table.layout));
    for (n, index) in table.indexes.iter().enumerate() {
        if !changed_columns(table, after).any(|column| index.uses(column)) {
            continue;
        }
        let (mut before, mut now) = (Vec::new(), Vec::new());
        index.entry(&old, id, &mut before);
        index.entry(&new, id, &mut now);
        if before != now {
            visit(Moved { index: n, before, now: &now, row: &new })?;
        }
    }
    Ok(())
}

impl IndexHandle {
    /// Whether more than so many entries are in a range, those of old versions included.
    pub fn has_more_than(&self, many: usize, range: &KeyRange, scratch: &mut ReadScratch) -> bool {
        self.count_up_to(many + 1, range, scratch) > many
    }

    /// How many entries are in a range, those of old versions included; no more than `most` are counted.
    pub fn count_up_to(&self, most: usize, range: &KeyRange, scratch: &mut ReadScratch) -> usize {
        let mut met = 0;
        let (lower, upper) = range.bounds();
        self.tree.scan(lower, upper, Direction::Ascending, &mut scratch.scan, &mut |_| {
            met += 1;
            if met >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        met
    }
}

/// So much of a key's value is printed, so that the key's name behind it is not cut off.
const MAX_KEY_TEXT: usize = 64;

/// The value of a key as MySQL prints it in error 1062: its beginning, bytes that are no ASCII in hexadecimal.
pub(crate) fn key_text(table: &TableHandle, index: usize, row: &RowRef<'_>) -> String {
    let mut text = Vec::new();
    for (n, part) in table.indexes[index].def.parts.iter().enumerate() {
        if n > 0 {
            text.push(b'-');
        }
        let ty = &table.def.columns[part.column].ty;
        let value = row.get(part.column);
        let value = match (&value, part.prefix_len) {
            (Datum::Str(whole), Some(len)) => {
                let end = whole.char_indices().nth(len as usize).map_or(whole.len(), |(end, _)| end);
                Datum::Str(whole[..end].into())
            }
            (Datum::Bytes(whole), Some(len)) => Datum::Bytes(whole[..whole.len().min(len as usize)].into()),
            _ => value,
        };
        let at = text.len();
        avocet_types::text::write_text(&value, ty, avocet_types::temporal::TimeZone::UTC, &mut text);
        if ty.is_bytes() || matches!(ty, SqlType::Bit { .. }) {
            let bytes = text.split_off(at);
            // What a BINARY is filled up with says nothing.
            let end = match ty {
                SqlType::Binary { .. } => {
                    bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1).min(bytes.len())
                }
                _ => bytes.len(),
            };
            text.extend(visible(&bytes[..end.min(MAX_KEY_TEXT)]).into_bytes());
        }
    }
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let end = (0..=text.len().min(MAX_KEY_TEXT)).rfind(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}

/// The newest version of a row, deleted or not, where no transaction uses the table. False if there never was one.
fn newest_image(table: &TableHandle, id: RowId, buf: &mut RowBuf) -> bool {
    let pinned = pin();
    let Some(row) = table.relation.glance(id, &pinned) else { return false };
    row.keep_row(buf);
    matches!(row.release(buf), Ok(true))
}

/// Whether a row is there, with this key in its newest version.
pub(crate) fn live_has_key(table: &TableHandle, index: usize, id: RowId, key: &[u8]) -> bool {
    let (mut buf, mut entry) = (RowBuf::default(), Vec::new());
    // One that cannot be read may have it.
    match table.relation.newest_row(id, &mut buf) {
        Ok(false) => return false,
        Ok(true) => {}
        Err(_) => return true,
    }
    table.indexes[index].entry(&buf.row(&table.layout), id, &mut entry);
    split_entry(&entry).0 == key
}

/// Whether the newest version of a row, be it deleted, has a NULL in its key.
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

/// The bytes that a row may have, those of its long values included: a change of it is one part of a record, and a page holds it.
/// (MySQL's limit of 65,535 is one on definitions, and counts no BLOBs.)
pub(crate) const MAX_IMAGE_BYTES: usize = 64 << 20;

/// Whether a row may have so many bytes, as an image.
///
/// # Errors
/// `RowTooLarge`.
pub(crate) fn check_row_len(len: usize) -> Result<()> {
    if len > MAX_IMAGE_BYTES {
        return Err(EngineError::RowTooLarge { len, max: MAX_IMAGE_BYTES });
    }
    Ok(())
}
