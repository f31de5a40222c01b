//! Deltas: the values of some columns of a row. Before-images in undo records and after-images in the
//! redo log are the same form.
//!
//! ```text
//!  entry:  column u16 │ null u8 │ fixed width: the stored bytes
//!                               │ variable:    len u32 │ bytes        entries follow each other
//! ```

use avocet_base::codec::{Malformed, Put, Reader};
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

/// Reads a delta entry by entry; malformed bytes and columns that the layout does not have are errors.
pub fn entries<'a>(
    layout: &'a RowLayout,
    delta: &'a [u8],
) -> impl Iterator<Item = Result<Entry<'a>, Malformed>> {
    let mut reader = Reader::new(delta);
    std::iter::from_fn(move || (!reader.is_empty()).then(|| next_entry(layout, &mut reader)))
}

fn next_entry<'a>(layout: &RowLayout, reader: &mut Reader<'a>) -> Result<Entry<'a>, Malformed> {
    const WHAT: &str = "row delta";
    let column = usize::from(reader.u16(WHAT)?);
    let field = layout.fields.get(column).ok_or_else(|| reader.malformed(WHAT))?;
    let bytes = match reader.u8(WHAT)? {
        1 => None,
        0 if field.storage.is_var() => {
            let len = reader.u32(WHAT)? as usize;
            let bytes = reader.take(len, WHAT)?;
            if field.storage == Storage::Str && std::str::from_utf8(bytes).is_err() {
                return Err(reader.malformed(WHAT));
            }
            Some(bytes)
        }
        0 => Some(reader.take(field.storage.size(), WHAT)?),
        _ => return Err(reader.malformed(WHAT)),
    };
    Ok(Entry { column, bytes })
}

/// Appends the entries of those columns that are not in `columns` yet, and notes them there.
pub fn copy_missing(
    layout: &RowLayout,
    from: &[u8],
    columns: &mut Vec<usize>,
    to: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let mut reader = Reader::new(from);
    while !reader.is_empty() {
        let at = reader.position();
        let column = next_entry(layout, &mut reader)?.column;
        if !columns.contains(&column) {
            columns.push(column);
            to.extend_from_slice(&from[at..reader.position()]);
        }
    }
    Ok(())
}

/// Applies a delta to a row image.
pub fn apply_to_image(layout: &RowLayout, delta: &[u8], image: &mut Vec<u8>) -> Result<(), Malformed> {
    for entry in entries(layout, delta) {
        let entry = entry?;
        layout.put_stored(image, 0, entry.column, entry.bytes);
    }
    Ok(())
}
