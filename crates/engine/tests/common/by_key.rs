//! A row by the integer that is its primary key.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_base::RowId;
use avocet_engine::*;
use avocet_types::{Datum, RowRef};

/// Locks the row, and shows it if there is one.
pub fn lock_by_key(
    txn: &mut Txn,
    table: &Arc<TableHandle>,
    key: i64,
    see: &mut dyn FnMut(RowId, RowRef<'_>),
) -> Result<()> {
    let index = table.indexes()[0].clone();
    let mut bytes = Vec::new();
    assert!(index.keys.encode_prefix(&[Datum::Int(key)], &mut bytes));
    txn.lock_scan(
        table,
        &index,
        &KeyRange::prefix(&bytes),
        Direction::Ascending,
        RowLock::FOR_UPDATE,
        &mut ReadScratch::default(),
        &mut |id, row| {
            see(id, row);
            ControlFlow::Break(())
        },
    )
}

/// Locks the row and says where it is.
pub fn find(txn: &mut Txn, table: &Arc<TableHandle>, key: i64) -> Result<Option<RowId>> {
    let mut found = None;
    lock_by_key(txn, table, key, &mut |id, _| found = Some(id))?;
    Ok(found)
}
