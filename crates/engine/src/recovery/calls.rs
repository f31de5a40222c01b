//! Replaying a log that has calls of procedures, from the first one on: one record after the other.
//!
//! A procedure looks rows up by their keys and may read any of them, so it needs all that was logged before it, and the
//! indexes. So the engine is put together first, and each record is then applied to rows and indexes alike. That takes about
//! as long as the transactions took; whoever wants the parallel replay logs rows.
//!
//! Invariant: when a record is applied nobody holds a snapshot, and no version of a row is left of the record before.

use std::sync::Arc;

use avocet_base::{BlockId, RowId, Timestamp};
use avocet_log::{LogReader, LogRecord};
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::SegmentState;
use hashbrown::HashSet;

use crate::block_rows;
use crate::catalog::{Catalog, Change};
use crate::engine::Engine;
use crate::entries;
use crate::error::{EngineError, Result, malformed};
use crate::index_build::build_index;
use crate::procedure::calls::run_again;
use crate::redo::apply::Applier;
use crate::redo::replay::{at_record, check_reshaped, check_rows, decode_change};
use crate::redo::{self, CallRecord, Op, Origin, SegmentChange};
use crate::table::TableHandle;

/// Applies all records of `reader`. Returns the blocks that they refer to.
pub(super) fn replay(engine: &Arc<Engine>, mut reader: LogReader) -> Result<HashSet<BlockId>> {
    let mut named = HashSet::new();
    while let Some(record) = reader.next_record()? {
        let (ts, last) = (Timestamp(record.tag), engine.pipeline.last_logged());
        if ts.0 != last.0 + 1 {
            let wrong = EngineError::corrupt("its timestamp", format!("{ts} follows {last}"));
            return Err(at_record(record.start, wrong));
        }
        apply(engine, &record, &mut named).map_err(|e| at_record(record.start, e))?;
        engine.pipeline.resume_after(ts);
        engine.snapshots.advance(ts, record.end);
        engine.collect_all_garbage();
    }
    Ok(named)
}

fn apply(engine: &Arc<Engine>, record: &LogRecord<'_>, named: &mut HashSet<BlockId>) -> Result<()> {
    let catalog = engine.catalog();
    let applier = Applier { catalog: &catalog, blocks: &engine.blocks };
    match record.kind {
        redo::KIND_TXN => operations(&applier, record.payload, named),
        redo::KIND_APPLIED => {
            let (origin, rest) = Origin::split(record.payload).map_err(malformed("applied record"))?;
            let ts = Timestamp(record.tag);
            engine.origins.note(ts, origin, ts);
            operations(&applier, rest, named)
        }
        redo::KIND_CATALOG => catalog_change(engine, &decode_change(record.payload)?),
        redo::KIND_SEGMENT => {
            let change = SegmentChange::decode(record.payload).map_err(malformed("segment record"))?;
            named.extend(change.block);
            applier.segment(&change)
        }
        redo::KIND_CALL => {
            let call = CallRecord::decode(record.payload).map_err(malformed("call record"))?;
            run_again(engine, call, Timestamp(record.tag))
        }
        other => Err(EngineError::corrupt("its kind", format!("{other} is unknown"))),
    }
}

fn catalog_change(engine: &Engine, change: &Change) -> Result<()> {
    let before = engine.catalog();
    let mut catalog = (*before).clone();
    check_rows(&catalog, change)?;
    catalog.apply(change);
    check_reshaped(&catalog, change)?;
    build_new_indexes(&before, &catalog)?;
    catalog.relink();
    engine.catalog.store(Arc::new(catalog));
    Ok(())
}

/// Fills the indexes that a change has made, be it because it has made others: see [`TableHandle::adding_index`].
fn build_new_indexes(before: &Catalog, catalog: &Catalog) -> Result<()> {
    let is_in = |catalog: &Catalog, table: &Arc<TableHandle>| {
        catalog.table_by_id(table.id()).is_some_and(|of| Arc::ptr_eq(of, table))
    };
    let changed: Vec<_> = before.tables().filter(|table| !is_in(catalog, table)).collect();
    for table in catalog.tables().filter(|table| !is_in(before, table)) {
        for at in (0..table.indexes.len()).filter(|&at| !changed.iter().any(|old| old.has_tree_of(table, at)))
        {
            build_index(table, at)?;
        }
    }
    Ok(())
}

fn operations(applier: &Applier<'_>, payload: &[u8], named: &mut HashSet<BlockId>) -> Result<()> {
    redo::ops(payload).try_for_each(|op| {
        let op = op.map_err(malformed("redo operation"))?;
        if let Op::Block { block, .. } = op {
            named.insert(block);
        }
        operation(applier, op)
    })
}

/// Applies an operation to rows and indexes.
fn operation(applier: &Applier<'_>, op: Op<'_>) -> Result<()> {
    match op {
        Op::Before { .. } | Op::Stamp { .. } => Ok(()),
        Op::Block { table, segment, .. } => {
            applier.op(op)?;
            let table = applier.table(table)?;
            let state = table.relation.segment(segment).state_owned();
            let SegmentState::Cold(cold) = &*state else { unreachable!("the block was put there") };
            (0..table.indexes.len()).try_for_each(|n| {
                block_rows::block_entries(table, n, segment, cold, &mut |entry, _| {
                    table.indexes[n].tree.insert(entry);
                })
            })
        }
        Op::Insert { table, row, .. } | Op::Update { table, row, .. } | Op::Delete { table, row } => {
            let table = applier.table(table)?;
            for_each_entry(table, row, |n, entry| {
                table.indexes[n].tree.remove(entry);
            })?;
            applier.op(op)?;
            for_each_entry(table, row, |n, entry| {
                table.indexes[n].tree.insert(entry);
            })
        }
    }
}

/// Visits the index entries of a row as it is now; of none if it is not there.
fn for_each_entry(table: &TableHandle, id: RowId, mut visit: impl FnMut(usize, &[u8])) -> Result<()> {
    let mut buf = RowBuf::default();
    if table.indexes.is_empty() || !table.relation.newest_row(id, &mut buf)? {
        return Ok(());
    }
    let row = buf.row(&table.layout);
    let mut entry = Vec::new();
    for (n, index) in table.indexes.iter().enumerate() {
        entry.clear();
        index.entry(&row, id, &mut entry);
        entries::check_entry_len(entry.len())?;
        visit(n, &entry);
    }
    Ok(())
}
