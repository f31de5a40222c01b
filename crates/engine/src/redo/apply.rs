//! Applying single redo operations to a state that nobody else looks at yet.

use avocet_base::{BlockId, RowId, SegmentNo, TableId};
use avocet_storage::relation::{ColdSegment, Deletes, HotSegment, Relation, SegmentState};
use avocet_types::RowRef;

use super::{Op, SegmentChange};
use crate::blocks::Blocks;
use crate::catalog::Catalog;
use crate::error::{EngineError, Result, malformed};
use crate::table::TableHandle;

/// Segments that a table may have had beyond those that the log accounts for: those of rows and loads that were taken back. So
/// many may be passed in one step; damage must not make us allocate without bound.
pub(crate) const MOST_UNLOGGED_SEGMENTS: u64 = 1 << 20;

/// Applies operations as a catalog understands them.
pub(crate) struct Applier<'a> {
    pub catalog: &'a Catalog,
    pub blocks: &'a Blocks,
}

impl Applier<'_> {
    pub fn table(&self, id: TableId) -> Result<&TableHandle> {
        let table = self.catalog.table_by_id(id);
        table.map(|t| &**t).ok_or_else(|| EngineError::corrupt(id.to_string(), "there is no such table"))
    }

    pub fn op(&self, op: Op<'_>) -> Result<()> {
        match op {
            Op::Insert { table, row, image } => insert(self.table(table)?, row, image),
            Op::Update { table, row, delta } => update(self.table(table)?, row, delta),
            Op::Delete { table, row } => delete(self.table(table)?, row),
            Op::Before { .. } | Op::Stamp { .. } => Ok(()),
            Op::Block { table, segment, block, rows } => self.load(self.table(table)?, segment, block, rows),
        }
    }

    fn load(&self, table: &TableHandle, segment: SegmentNo, block: BlockId, rows: Option<u32>) -> Result<()> {
        reach(&table.relation, segment)?;
        if !matches!(&*table.relation.segment(segment).state(), SegmentState::Empty) {
            return Err(EngineError::corrupt(format!("{} {segment}", table.id()), "it is in use already"));
        }
        let block = table.view(self.blocks.open(block)?)?;
        if let Some(rows) = rows {
            check_moved(table, segment, rows.into(), block.meta().rows() as u64)?;
        }
        let cold = ColdSegment::new(block, None, Deletes::fresh());
        table.relation.segment(segment).replace(SegmentState::Cold(cold));
        crate::block_rows::note_auto_increment(table, segment)
    }

    pub fn segment(&self, change: &SegmentChange) -> Result<()> {
        let table = self.table(change.table)?;
        reach(&table.relation, change.segment)?;
        let segment = table.relation.segment(change.segment);
        let before = segment.state_owned();
        let after = match (change.block, &*before) {
            // The checkpoint may have caught the segment when it had moved already, perhaps more than once: block ids ascend.
            // What the later block does not have was gone for the checkpoint's snapshot.
            (Some(block), SegmentState::Cold(cold)) if cold.block.id() >= block => return Ok(()),
            (Some(_), SegmentState::Empty) => return Ok(()),
            (None, _) => SegmentState::Empty,
            (Some(block), _) => {
                let settled = match &*before {
                    SegmentState::Cold(cold) => (**cold.deletes.body.read().all_settled()).clone(),
                    SegmentState::Hot(_) | SegmentState::Empty => Default::default(),
                };
                let block = table.view(self.blocks.open(block)?)?;
                let still: Vec<u32> =
                    settled.iter().filter(|&o| block.meta().ordinals.row_of(o as u16).is_some()).collect();
                let deletes = Deletes::fresh_with(still.into_iter().collect());
                SegmentState::Cold(ColdSegment::new(block, None, deletes))
            }
        };
        check_moved(table, change.segment, before.count_rows(), after.count_rows())?;
        segment.replace(after);
        Ok(())
    }
}

/// Rows that move to another place are as many there.
fn check_moved(table: &TableHandle, segment: SegmentNo, from: u64, to: u64) -> Result<()> {
    if from == to {
        return Ok(());
    }
    let why = format!("its block has {to} rows of the {from} that were put there");
    Err(EngineError::corrupt(format!("{} {segment}", table.name()), why))
}

/// Checks a segment number from the log before memory is spent on it.
pub(crate) fn reach(relation: &Relation, segment: SegmentNo) -> Result<()> {
    if segment.0 > relation.segments() + MOST_UNLOGGED_SEGMENTS {
        return Err(EngineError::corrupt(segment.to_string(), "it is far beyond the table's end"));
    }
    relation.note_segment(segment);
    Ok(())
}

fn missing(table: &TableHandle, row: RowId) -> EngineError {
    EngineError::corrupt(format!("{} {row}", table.id()), "there is no such row")
}

fn insert(table: &TableHandle, row: RowId, image: &[u8]) -> Result<()> {
    let view = table.layout.view(image).map_err(malformed("row image"))?;
    reach(&table.relation, row.segment())?;
    table.relation.open_hot(row.segment());
    let state = table.relation.segment(row.segment()).state();
    let taken = || EngineError::corrupt(format!("{} {row}", table.id()), "its place is taken");
    let SegmentState::Hot(hot) = &*state else { return Err(taken()) };
    let (page, slot) = table.relation.place(row.ordinal());
    let mut body = table.relation.page_or_new(hot, page).body.write();
    if body.is_live(slot) {
        return Err(taken());
    }
    body.place(&table.layout, slot, image);
    drop(body);
    table.relation.note_rows_before(row.0 + 1);
    note_used(table, &view);
    Ok(())
}

/// Later generated AUTO_INCREMENT values are greater than a row's, also if it has become this row by an update.
pub(crate) fn note_used(table: &TableHandle, row: &RowRef<'_>) {
    if let Some(column) = table.def.auto_increment_column() {
        table.note_stored_number(&row.get(column));
    }
}

/// Later generated AUTO_INCREMENT values are greater than a row's.
pub(crate) fn note_auto_increment(table: &TableHandle, image: &[u8]) -> Result<()> {
    note_used(table, &table.layout.view(image).map_err(malformed("row image"))?);
    Ok(())
}

/// Makes the place of a row that is to be inserted again; nothing may be there.
pub(crate) fn open_place(table: &TableHandle, row: RowId) -> Result<()> {
    reach(&table.relation, row.segment())?;
    table.relation.note_rows_before(row.0 + 1);
    table.relation.open_hot(row.segment());
    let state = table.relation.segment(row.segment()).state();
    let (page, slot) = table.relation.place(row.ordinal());
    let free = |hot: &HotSegment| {
        let body = table.relation.page_or_new(hot, page).body.read();
        !body.is_live(slot) && body.chain(slot).is_none()
    };
    match &*state {
        SegmentState::Hot(hot) if free(hot) => Ok(()),
        _ => Err(EngineError::corrupt(format!("{} {row}", table.id()), "its place is taken")),
    }
}

/// Whether the table has got as far as the segment of a row, which must be there.
fn check_reached(table: &TableHandle, row: RowId) -> Result<()> {
    if row.segment().0 < table.relation.segments() { Ok(()) } else { Err(missing(table, row)) }
}

fn update(table: &TableHandle, row: RowId, delta: &[u8]) -> Result<()> {
    check_reached(table, row)?;
    let state = table.relation.segment(row.segment()).state();
    let SegmentState::Hot(hot) = &*state else { return Err(missing(table, row)) };
    let (page, slot) = table.relation.place(row.ordinal());
    let page = hot.page(page).ok_or_else(|| missing(table, row))?;
    let mut body = page.body.write();
    if !body.is_live(slot) {
        return Err(missing(table, row));
    }
    body.apply(&table.layout, slot, delta).map_err(malformed("row delta"))?;
    note_used(table, &body.in_place(&table.layout, slot));
    Ok(())
}

fn delete(table: &TableHandle, row: RowId) -> Result<()> {
    check_reached(table, row)?;
    let state = table.relation.segment(row.segment()).state();
    let (page, slot) = table.relation.place(row.ordinal());
    let was = match &*state {
        SegmentState::Empty => false,
        SegmentState::Hot(hot) => hot.page(page).is_some_and(|p| p.body.write().erase(&table.layout, slot)),
        SegmentState::Cold(cold) => {
            cold.block.meta().ordinals.row_of(row.ordinal()).is_some()
                && cold.deletes.body.write().erase(row.ordinal())
        }
    };
    if was { Ok(()) } else { Err(missing(table, row)) }
}
