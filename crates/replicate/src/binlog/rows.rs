//! The rows of a row event.
//!
//! ```text
//!  table id u48 │ flags u16 │ extra data (version 2) │ columns packed │ present before │ [present after] │ rows …
//!  row: nulls of those present │ values of those present that are not NULL
//! ```
//!
//! A PARTIAL_UPDATE event has options and a bitmap of its documents before each row's after-image.

use avocet_types::Datum;

use super::bytes::{Bytes, bit};
use super::codec::{ColumnCodec, ReadError, TableCodec, document};
use super::{json_diff, kind};
use crate::error::{ReplicateError, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Insert,
    Update,
    Delete,
}

/// The values of a row by column; `None` for what the event does not have.
pub type Image<'a> = Vec<Option<Datum<'a>>>;

pub struct RowsEvent<'a> {
    pub table_id: u64,
    pub change: Change,
    /// The session had `foreign_key_checks` on.
    pub checks_foreign_keys: bool,
    is_partial: bool,
    columns: usize,
    before: &'a [u8],
    after: &'a [u8],
    rows: Bytes<'a>,
}

/// A flag.
const NO_FOREIGN_KEY_CHECKS: u16 = 1 << 1;
const EXTRA_LENGTH: usize = 2;
const PARTIAL_JSON: u64 = 1;
/// More than MySQL's tables have.
const MOST_COLUMNS: usize = 1 << 13;

impl<'a> RowsEvent<'a> {
    /// Of an event of some kind, without its header.
    pub fn read(event_kind: u8, event: &'a [u8]) -> Result<Self> {
        let change = match event_kind {
            kind::WRITE_ROWS | kind::WRITE_ROWS_V1 => Change::Insert,
            kind::DELETE_ROWS | kind::DELETE_ROWS_V1 => Change::Delete,
            _ => Change::Update,
        };
        let mut rows = Bytes::new(event, "a row event");
        let table_id = rows.little(6)?;
        let checks_foreign_keys = rows.u16()? & NO_FOREIGN_KEY_CHECKS == 0;
        let has_extra =
            !matches!(event_kind, kind::WRITE_ROWS_V1 | kind::UPDATE_ROWS_V1 | kind::DELETE_ROWS_V1);
        if has_extra {
            let len = usize::from(rows.u16()?);
            rows.take(len.saturating_sub(EXTRA_LENGTH))?;
        }
        // More than there are bytes behind it, where an image has few of them.
        let columns = usize::try_from(rows.packed()?).unwrap_or(usize::MAX).min(MOST_COLUMNS);
        let before = rows.take(columns.div_ceil(8))?;
        let after = if change == Change::Update { rows.take(columns.div_ceil(8))? } else { before };
        let is_partial = event_kind == kind::PARTIAL_UPDATE_ROWS;
        Ok(Self { table_id, change, checks_foreign_keys, is_partial, columns, before, after, rows })
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn check(&self, codec: &TableCodec) -> Result<()> {
        match self.columns == codec.columns.len() {
            true => Ok(()),
            false => Err(ReplicateError::damaged("a row event and its table have different columns")),
        }
    }

    /// Reads the next row: as it was, of an update; as it was or is, of others.
    pub fn first_image(&mut self, codec: &TableCodec, image: &mut Image<'a>) -> Result<(), ReadError> {
        read_image(&mut self.rows, codec, self.before, None, &[], image)
    }

    /// Reads the row as it is after an update.
    pub fn after_image(
        &mut self,
        codec: &TableCodec,
        before: &Image<'a>,
        image: &mut Image<'a>,
    ) -> Result<(), ReadError> {
        let mut partial = None;
        if self.is_partial {
            let options = self.rows.packed()?;
            if options & PARTIAL_JSON != 0 {
                partial = Some(self.rows.take(codec.documents.div_ceil(8))?);
            }
        }
        read_image(&mut self.rows, codec, self.after, partial, before, image)
    }
}

fn read_image<'a>(
    rows: &mut Bytes<'a>,
    codec: &TableCodec,
    present: &[u8],
    partial: Option<&[u8]>,
    before: &[Option<Datum<'a>>],
    image: &mut Image<'a>,
) -> Result<(), ReadError> {
    let count = (0..codec.columns.len()).filter(|at| bit(present, *at)).count();
    let nulls = rows.take(count.div_ceil(8))?;
    image.clear();
    let (mut seen, mut documents) = (0, 0);
    // The whole row is read even if one of its values is unfit, so that the next one is found.
    let mut unfit = None;
    for (at, column) in codec.columns.iter().enumerate() {
        let is_document = matches!(column, ColumnCodec::Document { .. });
        let is_partial = is_document && partial.is_some_and(|partial| bit(partial, documents));
        documents += usize::from(is_document);
        if !bit(present, at) {
            image.push(None);
            continue;
        }
        let is_null = bit(nulls, seen);
        seen += 1;
        let value = match (is_null, is_partial) {
            (true, _) => Ok(Datum::Null),
            (false, true) => patched(rows, before.get(at).and_then(Option::as_ref)),
            (false, false) => column.read(rows),
        };
        match value {
            Ok(value) => image.push(Some(value)),
            Err(ReadError::Unfit(why)) => {
                unfit.get_or_insert(why);
                image.push(None);
            }
            Err(damaged) => return Err(damaged),
        }
    }
    unfit.map_or(Ok(()), |why| Err(ReadError::Unfit(why)))
}

fn patched<'a>(rows: &mut Bytes<'a>, before: Option<&Datum<'a>>) -> Result<Datum<'a>, ReadError> {
    let len = rows.u32()? as usize;
    let diffs = rows.take(len)?;
    match before {
        Some(Datum::Bytes(before)) => Ok(Datum::Bytes(document(&json_diff::apply(before, diffs)?)?.into())),
        _ => {
            Err(ReadError::Unfit("a document was changed in part, and what it was is not in the log".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::kind;

    /// With `binlog_row_image = MINIMAL`, a table may have more columns than its row has bytes.
    #[test]
    fn a_minimal_image_is_shorter_than_its_table_is_wide() {
        let mut event = vec![7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 9, 0b1, 0];
        // No nulls, and the key.
        event.extend_from_slice(&[0, 42]);
        let mut rows = RowsEvent::read(kind::DELETE_ROWS, &event).expect("an event");
        let columns = vec![ColumnCodec::Int { bytes: 1, unsigned: false }; 9];
        let codec = TableCodec { columns, documents: 0 };
        rows.check(&codec).expect("nine columns");
        let mut image = Image::new();
        rows.first_image(&codec, &mut image).expect("a row");
        assert!(rows.is_empty() && image.len() == 9 && image[1..].iter().all(Option::is_none));
        assert!(image[0].as_ref().is_some_and(|key| key.is_same(&Datum::Int(42))));
        for cut in 0..event.len() {
            let read = RowsEvent::read(kind::DELETE_ROWS, &event[..cut]);
            let row = read.map(|mut rows| (rows.is_empty(), rows.first_image(&codec, &mut image).is_err()));
            assert!(matches!(row, Err(_) | Ok((true, _) | (_, true))), "cut at {cut}");
        }
    }
}
