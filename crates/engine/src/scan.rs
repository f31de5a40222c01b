//! Scans for analytics: a snapshot of a table as Arrow batches, cold blocks and hot pages alike.
//!
//! A scan is cut into morsels, one per segment; threads take them in any order. Predicates are checked against
//! a block's metadata first, then in the encoded domain, and only the rows that are left are decoded. Rows of
//! hot pages are gathered column by column under the page's latch.
//!
//! Invariant: what a morsel yields depends on the snapshot alone, not on whether its segment is frozen or
//! compacted before, during or after the scan.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use avocet_base::{RowId, SegmentNo};
use avocet_storage::cold::{Bitmap, ColdValue, ColumnPredicate, Selection};
use avocet_storage::hot::{PageBody, RowBuf, SlotRead};
use avocet_storage::relation::{ColdSegment, HotSegment, SegmentState};
use avocet_storage::{Snapshot, TxnState};
use avocet_types::row::Storage;
use avocet_types::{ColumnBuilder, RowRef};

use crate::error::{EngineError, Result};
use crate::snapshots::SnapshotGuard;
use crate::table::TableHandle;

/// Rows per batch, at most.
pub const BATCH_ROWS: usize = 8192;

#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    /// Positions of the columns wanted, in output order.
    pub columns: Vec<usize>,
    /// All must hold; applied exactly.
    pub predicates: Vec<(usize, ColumnPredicate)>,
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
}

impl TableScan {
    pub(crate) fn new(
        table: Arc<TableHandle>,
        request: ScanRequest,
        snapshot: SnapshotGuard,
        own: Arc<TxnState>,
    ) -> Self {
        let field = |&c: &usize| {
            let column = &table.def.columns[c];
            Field::new(&column.name, column.ty.arrow_type(), column.nullable)
        };
        let mut fields: Vec<Field> = request.columns.iter().map(field).collect();
        if request.with_row_id {
            fields.push(Field::new("_row_id", DataType::UInt64, false));
        }
        // Rows inserted after the snapshot may open further segments; it does not see them.
        let segments = table.relation.segments();
        Self { schema: Arc::new(Schema::new(fields)), table, request, snapshot, own, segments }
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
        let number = SegmentNo(morsel as u64);
        let state = self.table.relation.segment(number).state_owned();
        match &*state {
            SegmentState::Empty => Ok(ControlFlow::Continue(())),
            SegmentState::Hot(hot) => self.read_hot(number, hot, sink),
            SegmentState::Cold(cold) => self.read_cold(number, cold, sink),
        }
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

    fn read_cold(
        &self,
        number: SegmentNo,
        cold: &ColdSegment,
        sink: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let view = self.view();
        let meta = cold.block.meta();
        let may_match = self.request.predicates.iter().all(|(column, p)| meta.may_match(*column, p));
        if !cold.is_visible(&view) || !may_match {
            return Ok(ControlFlow::Continue(()));
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
        for (column, predicate) in &self.request.predicates {
            let bitmap = selected.get_or_insert_with(|| Bitmap::ones(rows));
            if !bitmap.any() {
                break;
            }
            cold.block.column(*column)?.filter(predicate, bitmap)?;
        }
        let encoded =
            self.request.columns.iter().map(|&c| cold.block.column(c)).collect::<Result<Vec<_>, _>>()?;
        let id_of = |row: usize| RowId::new(number, meta.ordinals.ordinal_of(row)).0;
        match selected.filter(|bitmap| bitmap.count() < rows) {
            None => {
                for start in (0..rows).step_by(BATCH_ROWS) {
                    let len = BATCH_ROWS.min(rows - start);
                    let columns =
                        encoded.iter().map(|c| c.decode_range(start, len)).collect::<Result<Vec<_>, _>>()?;
                    let ids = self.request.with_row_id.then(|| (start..start + len).map(id_of).collect());
                    if sink(self.batch(columns, ids, len)?).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Some(bitmap) => {
                for chosen in bitmap.to_rows().chunks(BATCH_ROWS) {
                    let selection = || Selection::Rows(chosen);
                    let columns = encoded
                        .iter()
                        .map(|c| c.decode_selected(selection()))
                        .collect::<Result<Vec<_>, _>>()?;
                    let ids =
                        self.request.with_row_id.then(|| chosen.iter().map(|&r| id_of(r as usize)).collect());
                    if sink(self.batch(columns, ids, chosen.len())?).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_hot(
        &self,
        number: SegmentNo,
        hot: &HotSegment,
        sink: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut gather = Gather::new(self);
        for (n, page) in hot.pages() {
            gather.page(self, number, n, &page.body.read());
            if gather.rows >= BATCH_ROWS - self.table.relation.slots_per_page() {
                let full = std::mem::replace(&mut gather, Gather::new(self));
                if sink(full.finish(self)?).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        if gather.rows > 0 { Ok(sink(gather.finish(self)?)) } else { Ok(ControlFlow::Continue(())) }
    }
}

/// Rows of hot pages on their way to a batch.
struct Gather {
    columns: Vec<ColumnBuilder>,
    ids: Option<Vec<u64>>,
    rows: usize,
    slots: Vec<usize>,
    rebuilt: RowBuf,
}

impl Gather {
    fn new(scan: &TableScan) -> Self {
        let ty = |c: usize| &scan.table.def.columns[c].ty;
        let columns = &scan.request.columns;
        Self {
            columns: columns.iter().map(|&c| ColumnBuilder::new(ty(c), BATCH_ROWS)).collect(),
            ids: scan.request.with_row_id.then(|| Vec::with_capacity(BATCH_ROWS)),
            rows: 0,
            slots: Vec::new(),
            rebuilt: RowBuf::default(),
        }
    }

    fn page(&mut self, scan: &TableScan, number: SegmentNo, page: usize, body: &PageBody) {
        let layout = &scan.table.layout;
        let relation = &scan.table.relation;
        let id = |slot: usize| RowId::new(number, relation.ordinal(page, slot)).0;
        self.slots.clear();
        let plain = !body.has_versions();
        let view = scan.view();
        for (w, &live) in body.live_words().iter().enumerate() {
            let mut word = if plain { live } else { u64::MAX };
            while word != 0 {
                let slot = w * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                if slot >= relation.slots_per_page() {
                    break;
                }
                let seen =
                    if plain { SlotRead::InPlace } else { body.read(layout, slot, &view, &mut self.rebuilt) };
                match seen {
                    SlotRead::Absent => {}
                    SlotRead::InPlace if matches(scan, &body.in_place(layout, slot)) => self.slots.push(slot),
                    SlotRead::Rebuilt if matches(scan, &self.rebuilt.row(layout)) => {
                        let row = self.rebuilt.row(layout);
                        for (builder, &column) in self.columns.iter_mut().zip(&scan.request.columns) {
                            builder.append_row(&row, column);
                        }
                        self.ids.iter_mut().for_each(|ids| ids.push(id(slot)));
                        self.rows += 1;
                    }
                    SlotRead::InPlace | SlotRead::Rebuilt => {}
                }
            }
        }
        for (builder, &column) in self.columns.iter_mut().zip(&scan.request.columns) {
            builder.append_rows(self.slots.iter().map(|&slot| body.in_place(layout, slot)), column);
        }
        if let Some(ids) = &mut self.ids {
            ids.extend(self.slots.iter().map(|&slot| id(slot)));
        }
        self.rows += self.slots.len();
    }

    fn finish(mut self, scan: &TableScan) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        scan.batch(columns, self.ids, self.rows)
    }
}

fn matches(scan: &TableScan, row: &RowRef<'_>) -> bool {
    row_matches(&scan.request.predicates, row)
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
