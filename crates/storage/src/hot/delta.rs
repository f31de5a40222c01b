//! Deltas: the values of some columns of a row. Before-images in undo records and after-images in the
//! redo log are the same form.
//!
//! ```text
//!  entry:  column u16 │ null u8 │ fixed width: the stored bytes
//!                               │ variable:    len u32 │ bytes        entries follow each other
//! ```

use avocet_base::codec::{Malformed, Put};
use avocet_types::row::Storage;
use avocet_types::{Datum, RowLayout, RowRef};

/// One column's value in a delta, as stored.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub column: usize,
    /// `None` for NULL; else the stored bytes (fixed width) or the value itself (variable length).
    pub bytes: Option<&'a [u8]>,
}

/// Appends the value that `row` has in `column`.
pub fn push_column(row: &RowRef<'_>, column: usize, delta: &mut Vec<u8>) {
    delta.put_u16(column as u16);
    if row.is_null(column) {
        delta.put_u8(1);
        return;
    }
    delta.put_u8(0);
    let field = &row.layout().fields[column];
    if field.storage.is_var() {
        let bytes = row.var_bytes(column);
        delta.put_u32(bytes.len() as u32);
        delta.extend_from_slice(bytes);
    } else {
        let at = field.offset as usize;
        delta.extend_from_slice(&row.fixed()[at..at + field.storage.size()]);
    }
}

/// Appends a new value for `column`.
pub fn push_datum(layout: &RowLayout, column: usize, datum: &Datum<'_>, delta: &mut Vec<u8>) {
    delta.put_u16(column as u16);
    delta.put_u8(u8::from(datum.is_null()));
    match datum {
        Datum::Null => {}
        Datum::Str(s) => {
            delta.put_u32(s.len() as u32);
            delta.extend_from_slice(s.as_bytes());
        }
        Datum::Bytes(b) => {
            delta.put_u32(b.len() as u32);
            delta.extend_from_slice(b);
        }
        fixed => layout.put_fixed(column, fixed, delta),
    }
}

/// Whether strings are looked at when a delta is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// From a disk: what is no UTF-8 is malformed.
    Unknown,
    /// From this process's own rows.
    Valid,
}

/// Reads a delta entry by entry; malformed bytes and columns that the layout does not have are errors.
pub fn entries<'a>(
    layout: &'a RowLayout,
    delta: &'a [u8],
) -> impl Iterator<Item = Result<Entry<'a>, Malformed>> {
    read(layout, delta, Text::Unknown)
}

/// As [`entries`], of a delta that was made from values or from a row.
pub fn own_entries<'a>(
    layout: &'a RowLayout,
    delta: &'a [u8],
) -> impl Iterator<Item = Result<Entry<'a>, Malformed>> {
    read(layout, delta, Text::Valid)
}

#[inline]
fn read<'a>(
    layout: &'a RowLayout,
    delta: &'a [u8],
    text: Text,
) -> impl Iterator<Item = Result<Entry<'a>, Malformed>> {
    let mut rest = delta;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = delta.len() - rest.len();
        match split_entry(layout, rest, text) {
            Some((entry, behind)) => {
                rest = behind;
                Some(Ok(entry))
            }
            None => {
                rest = &[];
                Some(Err(malformed(at)))
            }
        }
    })
}

#[cold]
fn malformed(at: usize) -> Malformed {
    Malformed { what: "row delta", at }
}

/// The first entry, and what is behind it.
#[inline]
fn split_entry<'a>(layout: &RowLayout, delta: &'a [u8], text: Text) -> Option<(Entry<'a>, &'a [u8])> {
    let (&[low, high, null], rest) = delta.split_first_chunk()?;
    let column = usize::from(u16::from_le_bytes([low, high]));
    let storage = layout.fields.get(column)?.storage;
    let (bytes, rest) = match null {
        1 => (None, rest),
        0 if storage.is_var() => {
            let (len, rest) = rest.split_first_chunk()?;
            let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            if text == Text::Unknown && storage == Storage::Str && std::str::from_utf8(bytes).is_err() {
                return None;
            }
            (Some(bytes), rest)
        }
        0 => rest.split_at_checked(storage.size()).map(|(bytes, rest)| (Some(bytes), rest))?,
        _ => return None,
    };
    Some((Entry { column, bytes }, rest))
}

/// Appends the entries of those columns that are not in `columns` yet, and notes them there.
pub fn copy_missing(
    layout: &RowLayout,
    from: &[u8],
    columns: &mut Vec<usize>,
    to: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let mut rest = from;
    while !rest.is_empty() {
        let (entry, behind) =
            split_entry(layout, rest, Text::Valid).ok_or_else(|| malformed(from.len() - rest.len()))?;
        if !columns.contains(&entry.column) {
            columns.push(entry.column);
            to.extend_from_slice(&rest[..rest.len() - behind.len()]);
        }
        rest = behind;
    }
    Ok(())
}

/// Applies a delta of this process's own to a row image. However many are applied one after the other, as along a chain of
/// versions, the image takes about what the row does.
pub fn apply_to_image(layout: &RowLayout, delta: &[u8], image: &mut Vec<u8>) -> Result<(), Malformed> {
    for entry in own_entries(layout, delta) {
        let entry = entry?;
        layout.replace_stored(image, entry.column, entry.bytes);
    }
    layout.compact(image);
    Ok(())
}
