//! Scans for analytics: a snapshot of a table as Arrow batches, cold blocks and hot pages alike.
//!
//! A scan is cut into morsels, one per segment; threads take them in any order. Predicates are checked against
//! a block's metadata first, then in the encoded domain, and only the rows that are left are decoded. Rows of
//! hot pages are gathered column by column under the page's latch, a batch when it is asked for and a part of a page at a
//! time, so that neither writers nor the memory budget see a segment being copied at once.
//!
//! Invariants:
//! 1. What a morsel yields depends on the snapshot alone, not on whether its segment is frozen or
//!    compacted before, during or after the scan. The pages of a segment that is frozen meanwhile stay as they were.
//! 2. Rows that the scan's own transaction inserts after the scan began are not in it.

mod paths;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use avocet_base::{RowId, SegmentNo};
use avocet_storage::cold::{Bitmap, ColdValue, ColumnPredicate};
use avocet_storage::hot::{PageBody, RowBuf, SlotRead};
use avocet_storage::relation::{ColdSegment, HotSegment, SegmentState};
use avocet_storage::{Snapshot, TxnState};
use avocet_types::row::Storage;
use avocet_types::{ColumnBuilder, RowRef};

use paths::{Chosen, Decoder, Source};
pub use paths::{PathColumn, PathCondition};

use crate::error::{EngineError, Result};
use crate::snapshots::SnapshotGuard;
use crate::table::TableHandle;

/// Rows per batch, at most.
pub const BATCH_ROWS: usize = 8192;
/// Bytes of a batch of hot rows, about: those of a block are as wide, and whoever asks knows how wide after the first batch.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes that are copied under a page's latch, about.
const LATCHED_BYTES: usize = 256 << 10;

#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    /// Positions of the columns wanted, in output order. Behind the table's columns are those of `paths`.
    pub columns: Vec<usize>,
    /// All must hold; applied exactly.
    pub predicates: Vec<(usize, ColumnPredicate)>,
    /// Columns that are made of values at paths into documents.
    pub paths: Vec<PathColumn>,
    /// All must allow a row; applied exactly, behind the predicates.
    pub path_conditions: Vec<PathCondition>,
    /// Adds the row id as a last column, `UInt64`.
    pub with_row_id: bool,
}

/// A scan at a snapshot, which it keeps in use.
pub struct TableScan {
    table: Arc<TableHandle>,
    request: ScanRequest,
    schema: SchemaRef,
    snapshot: SnapshotGuard,
    own: Arc<TxnState>,
    segments: u64,
    /// Hot rows from this id on came later.
    rows_before: u64,
}

impl TableScan {
    pub(crate) fn new(
        table: Arc<TableHandle>,
        request: ScanRequest,
        snapshot: SnapshotGuard,
        own: Arc<TxnState>,
    ) -> Self {
        let field = |&c: &usize| match table.def.columns.get(c) {
            Some(column) => Field::new(&column.name, column.ty.arrow_type(), column.nullable),
            None => {
                let path = &request.paths[c - table.def.columns.len()];
                Field::new("_path", path.form.sql_type().arrow_type(), true)
            }
        };
        let mut fields: Vec<Field> = request.columns.iter().map(field).collect();
        if request.with_row_id {
            fields.push(Field::new("_row_id", DataType::UInt64, false));
        }
        // Rows inserted after the snapshot may open further segments; it does not see them.
        let (segments, rows_before) = (table.relation.segments(), table.relation.rows_before());
        let schema = Arc::new(Schema::new(fields));
        Self { schema, table, request, snapshot, own, segments, rows_before }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn table(&self) -> &Arc<TableHandle> {
        &self.table
    }

    /// How many morsels there are.
    pub fn morsels(&self) -> usize {
        self.segments as usize
    }

    /// Passes the rows of a morsel on in batches, until told to stop.
    pub fn read(
        &self,
        morsel: usize,
        sink: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut morsel = self.open(morsel)?;
        while let Some(batch) = morsel.next(self, BATCH_ROWS)? {
            if sink(batch).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Begins to read a morsel. Rows of a column block are found now, and decoded when they are asked for, as rows of hot
    /// pages are gathered.
    pub fn open(&self, morsel: usize) -> Result<Morsel> {
        self.open_narrowed(morsel, &Arc::default())
    }

    /// As [`Self::open`], of the rows for which these predicates hold as well.
    pub fn open_narrowed(&self, morsel: usize, narrowed: &Arc<[(usize, ColumnPredicate)]>) -> Result<Morsel> {
        let number = SegmentNo(morsel as u64);
        let state = self.table.relation.segment(number).state_owned();
        let rows = match &*state {
            SegmentState::Empty => Rows::None,
            SegmentState::Hot(_) => Rows::Hot(state, Place::default()),
            SegmentState::Cold(cold) => match self.find(cold, narrowed)? {
                None => Rows::None,
                Some(found) => Rows::Encoded(state, found),
            },
        };
        Ok(Morsel { number, narrowed: narrowed.clone(), rows })
    }

    /// What stands at a position behind the table's columns.
    fn path(&self, column: usize) -> Option<&PathColumn> {
        column.checked_sub(self.table.def.columns.len()).map(|path| &self.request.paths[path])
    }

    fn view(&self) -> Snapshot<'_> {
        Snapshot { ts: self.snapshot.ts(), own: Some(&self.own) }
    }

    fn batch(&self, mut columns: Vec<ArrayRef>, ids: Option<Vec<u64>>, rows: usize) -> Result<RecordBatch> {
        if let Some(ids) = ids {
            columns.push(Arc::new(UInt64Array::from(ids)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| EngineError::corrupt(format!("table {}", self.table.def.name), e))
    }

    /// The rows of a block that the scan sees and wants; `None` if there are none, by what is known of the block.
    fn find(&self, cold: &ColdSegment, narrowed: &[(usize, ColumnPredicate)]) -> Result<Option<Found>> {
        let view = self.view();
        let meta = cold.block.meta();
        let predicates = || self.request.predicates.iter().chain(narrowed);
        let may_match = predicates().all(|(column, p)| meta.may_match(*column, p));
        let may_match = may_match && self.request.path_conditions.iter().all(|c| c.may_match(meta));
        if !cold.is_visible(&view) || !may_match {
            return Ok(None);
        }
        let rows = meta.rows();
        let deleted = cold.deletes.body.read().deleted_for(&view);
        let mut selected: Option<Bitmap> = None;
        if !deleted.is_empty() {
            let bitmap = selected.get_or_insert_with(|| Bitmap::ones(rows));
            for ordinal in deleted.iter() {
                if let Some(row) = meta.ordinals.row_of(ordinal as u16) {
                    bitmap.clear(row);
                }
            }
        }
        for (column, predicate) in predicates() {
            let bitmap = selected.get_or_insert_with(|| Bitmap::ones(rows));
            if !bitmap.any() {
                break;
            }
            cold.block.column(*column)?.filter(predicate, bitmap)?;
        }
        for condition in &self.request.path_conditions {
            let bitmap = selected.get_or_insert_with(|| Bitmap::ones(rows));
            if !bitmap.any() {
                break;
            }
            condition.filter(&cold.block, bitmap)?;
        }
        let width = self.table.def.columns.len();
        let encoded = self.request.columns.iter().map(|&c| match c.checked_sub(width) {
            None => Ok(Source::Column(c, cold.block.column(c)?)),
            Some(path) => self.request.paths[path].source(&cold.block),
        });
        let encoded = encoded.collect::<Result<Vec<_>>>()?;
        let chosen = selected.filter(|bitmap| bitmap.count() < rows).map(|bitmap| bitmap.to_rows());
        let rows = chosen.as_ref().map_or(rows, Vec::len);
        Ok(Some(Found { encoded, chosen, rows, next: 0 }))
    }

    /// Decodes the next rows of a block, so many at most.
    fn decode(
        &self,
        number: SegmentNo,
        cold: &ColdSegment,
        found: &mut Found,
        most_rows: usize,
    ) -> Result<Option<RecordBatch>> {
        let start = found.next;
        let len = most_rows.min(found.rows - start);
        if len == 0 {
            return Ok(None);
        }
        found.next += len;
        let ordinals = &cold.block.meta().ordinals;
        let id_of = |row: usize| RowId::new(number, ordinals.ordinal_of(row)).0;
        let (chosen, ids): (_, Option<Vec<u64>>) = match &found.chosen {
            None => {
                let ids = self.request.with_row_id.then(|| (start..start + len).map(id_of).collect());
                (Chosen::Range(start, len), ids)
            }
            Some(chosen) => {
                let chosen = &chosen[start..start + len];
                let ids =
                    self.request.with_row_id.then(|| chosen.iter().map(|&r| id_of(r as usize)).collect());
                (Chosen::Rows(chosen), ids)
            }
        };
        let mut decoder = Decoder::new(chosen);
        let columns =
            found.encoded.iter().map(|source| source.decode(&mut decoder)).collect::<Result<_>>()?;
        self.batch(columns, ids, len).map(Some)
    }

    /// Gathers the next rows of a hot segment, so many at most.
    fn gather(
        &self,
        number: SegmentNo,
        hot: &HotSegment,
        place: &mut Place,
        narrowed: &[(usize, ColumnPredicate)],
        most_rows: usize,
    ) -> Result<Option<RecordBatch>> {
        let relation = &self.table.relation;
        let mut gather = Gather::new(self, narrowed, most_rows.clamp(1, BATCH_ROWS));
        while place.page < relation.pages_per_segment() && gather.has_room() {
            place.slot = match hot.page(place.page) {
                Some(page) => gather.slots(self, number, *place, &page.body.read()),
                None => relation.slots_per_page(),
            };
            if place.slot >= relation.slots_per_page() {
                *place = Place { page: place.page + 1, slot: 0 };
            }
        }
        if gather.rows > 0 { gather.finish(self).map(Some) } else { Ok(None) }
    }
}

/// A morsel that is being read.
pub struct Morsel {
    number: SegmentNo,
    /// What must hold besides the scan's predicates.
    narrowed: Arc<[(usize, ColumnPredicate)]>,
    rows: Rows,
}

enum Rows {
    None,
    /// Of the segment's pages, from a place on.
    Hot(Arc<SegmentState>, Place),
    /// Of the segment's column block. Columns stay in memory as they are encoded, whatever becomes of the segment.
    Encoded(Arc<SegmentState>, Found),
}

/// Page and slot that come next.
#[derive(Clone, Copy, Default)]
struct Place {
    page: usize,
    slot: usize,
}

/// Rows of a column block that a scan wants.
struct Found {
    encoded: Vec<Source>,
    /// `None` for all.
    chosen: Option<Vec<u32>>,
    /// How many there are, and how many of them were decoded.
    rows: usize,
    next: usize,
}

impl Morsel {
    /// The next rows, about so many at most; `scan` is the one that opened it.
    pub fn next(&mut self, scan: &TableScan, most_rows: usize) -> Result<Option<RecordBatch>> {
        match &mut self.rows {
            Rows::Hot(state, place) => match &**state {
                SegmentState::Hot(hot) => scan.gather(self.number, hot, place, &self.narrowed, most_rows),
                SegmentState::Empty | SegmentState::Cold(_) => Ok(None),
            },
            Rows::Encoded(state, found) => match &**state {
                SegmentState::Cold(cold) => scan.decode(self.number, cold, found, most_rows),
                SegmentState::Empty | SegmentState::Hot(_) => Ok(None),
            },
            Rows::None => Ok(None),
        }
    }
}

/// Rows of hot pages on their way to a batch.
struct Gather<'n> {
    narrowed: &'n [(usize, ColumnPredicate)],
    columns: Vec<ColumnBuilder>,
    ids: Option<Vec<u64>>,
    rows: usize,
    most_rows: usize,
    /// Of the rows, about.
    bytes: usize,
    slots: Vec<usize>,
    rebuilt: RowBuf,
}

impl<'n> Gather<'n> {
    fn new(scan: &TableScan, narrowed: &'n [(usize, ColumnPredicate)], most_rows: usize) -> Self {
        let ty = |c: usize| match scan.table.def.columns.get(c) {
            Some(column) => column.ty,
            None => scan.request.paths[c - scan.table.def.columns.len()].form.sql_type(),
        };
        let columns = &scan.request.columns;
        Self {
            narrowed,
            columns: columns.iter().map(|&c| ColumnBuilder::new(&ty(c), most_rows)).collect(),
            ids: scan.request.with_row_id.then(|| Vec::with_capacity(most_rows)),
            rows: 0,
            most_rows,
            bytes: 0,
            slots: Vec::new(),
            rebuilt: RowBuf::default(),
        }
    }

    fn has_room(&self) -> bool {
        self.rows < self.most_rows && self.bytes < BATCH_BYTES
    }

    /// Takes rows of a page from a slot on, as many as may be copied under its latch. Returns the slot that comes next.
    fn slots(&mut self, scan: &TableScan, number: SegmentNo, from: Place, body: &PageBody) -> usize {
        let layout = &scan.table.layout;
        let relation = &scan.table.relation;
        let id = |slot: usize| RowId::new(number, relation.ordinal(from.page, slot)).0;
        // Deleted rows have bytes, too, as long as somebody sees them.
        let row_bytes = body.bytes() / body.live_count().max(relation.slots_per_page() / 8).max(1);
        let most = (LATCHED_BYTES / row_bytes.max(1)).clamp(1, self.most_rows - self.rows);
        let (mut taken, mut next) = (0, relation.slots_per_page());
        self.slots.clear();
        let plain = !body.has_versions();
        let view = scan.view();
        'page: for (w, &live) in body.live_words().iter().enumerate().skip(from.slot / 64) {
            let mut word = if plain { live } else { u64::MAX };
            if w == from.slot / 64 {
                word &= u64::MAX << (from.slot % 64);
            }
            while word != 0 {
                let slot = w * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                if slot >= relation.slots_per_page() || id(slot) >= scan.rows_before {
                    break 'page;
                }
                if taken == most {
                    next = slot;
                    break 'page;
                }
                let seen =
                    if plain { SlotRead::InPlace } else { body.read(layout, slot, &view, &mut self.rebuilt) };
                match seen {
                    SlotRead::Absent => {}
                    SlotRead::InPlace if self.matches(scan, &body.in_place(layout, slot)) => {
                        self.slots.push(slot);
                        taken += 1;
                    }
                    SlotRead::Rebuilt if self.matches(scan, &self.rebuilt.row(layout)) => {
                        let row = self.rebuilt.row(layout);
                        for (builder, &column) in self.columns.iter_mut().zip(&scan.request.columns) {
                            match scan.path(column) {
                                None => builder.append_row(&row, column),
                                Some(path) => path.append(&row, builder),
                            }
                        }
                        self.ids.iter_mut().for_each(|ids| ids.push(id(slot)));
                        taken += 1;
                    }
                    SlotRead::InPlace | SlotRead::Rebuilt => {}
                }
            }
        }
        for (builder, &column) in self.columns.iter_mut().zip(&scan.request.columns) {
            let rows = self.slots.iter().map(|&slot| body.in_place(layout, slot));
            match scan.path(column) {
                None => builder.append_rows(rows, column),
                Some(path) => rows.for_each(|row| path.append(&row, builder)),
            }
        }
        if let Some(ids) = &mut self.ids {
            ids.extend(self.slots.iter().map(|&slot| id(slot)));
        }
        self.rows += taken;
        self.bytes += taken * row_bytes;
        next
    }

    fn matches(&self, scan: &TableScan, row: &RowRef<'_>) -> bool {
        row_matches(&scan.request.predicates, row)
            && row_matches(self.narrowed, row)
            && scan.request.path_conditions.iter().all(|c| c.allows(row))
    }

    fn finish(mut self, scan: &TableScan) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        scan.batch(columns, self.ids, self.rows)
    }
}

/// Whether a row satisfies all predicates.
pub(crate) fn row_matches(predicates: &[(usize, ColumnPredicate)], row: &RowRef<'_>) -> bool {
    predicates.iter().all(|(column, predicate)| match predicate {
        ColumnPredicate::IsNull => row.is_null(*column),
        ColumnPredicate::IsNotNull => !row.is_null(*column),
        _ => !row.is_null(*column) && predicate.matches(&stored_value(row, *column)),
    })
}

/// A column's value in the form that predicates take.
fn stored_value<'a>(row: &RowRef<'a>, column: usize) -> ColdValue<'a> {
    match row.layout().fields[column].storage {
        Storage::I8 => ColdValue::Int(i8::from_le_bytes(row.raw(column)).into()),
        Storage::I16 => ColdValue::Int(i16::from_le_bytes(row.raw(column)).into()),
        Storage::I32 | Storage::Date => ColdValue::Int(i32::from_le_bytes(row.raw(column)).into()),
        Storage::I64 | Storage::Micros | Storage::Time => ColdValue::Int(i64::from_le_bytes(row.raw(column))),
        Storage::U8 => ColdValue::UInt(u8::from_le_bytes(row.raw(column)).into()),
        Storage::U16 => ColdValue::UInt(u16::from_le_bytes(row.raw(column)).into()),
        Storage::U32 => ColdValue::UInt(u32::from_le_bytes(row.raw(column)).into()),
        Storage::U64 => ColdValue::UInt(u64::from_le_bytes(row.raw(column))),
        Storage::F32 => ColdValue::F32(f32::from_le_bytes(row.raw(column))),
        Storage::F64 => ColdValue::F64(f64::from_le_bytes(row.raw(column))),
        Storage::Dec64 => ColdValue::Int128(i64::from_le_bytes(row.raw(column)).into()),
        Storage::Dec128 => ColdValue::Int128(i128::from_le_bytes(row.raw(column))),
        Storage::Dec256 => ColdValue::Int256(arrow::datatypes::i256::from_le_bytes(row.raw(column))),
        Storage::Str | Storage::Bytes => ColdValue::Bytes(row.var_bytes(column).into()),
    }
}
