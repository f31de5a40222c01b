//! Whether a row that somebody holds is worth waiting for, by the index entry that led to it.
//!
//! An entry stays after the key of its row has changed, until nobody needs the version that it belongs to. Whoever holds the
//! row may leave it as the newest version has it, as one of those that it made before (ROLLBACK TO), or as it was last
//! committed. If none of these has the entry's key, the entry leads to nothing, whatever becomes of its holder: to wait
//! would be for nothing, and could close a circle that is none. InnoDB, whose locks are the entries', does not wait either.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::pin;
use avocet_storage::{TxnState, Undo};
use avocet_types::RowRef;

use super::core::Txn;
use crate::error::Result;
use crate::table::TableHandle;

impl Txn {
    /// Whether a row that somebody else holds is to be waited for. Strictly it always is: if it has changed since the
    /// snapshot, that is a conflict, whatever it is now; unless only a hint led to it, which keys of one hash share.
    pub(super) fn is_worth_waiting(
        &self,
        table: &TableHandle,
        id: RowId,
        by_hint: bool,
        fits: &mut dyn FnMut(&RowRef<'_>) -> bool,
        buf: &mut RowBuf,
    ) -> Result<bool> {
        let is_conflict = self.is_strict() && !self.view.relaxed && !by_hint;
        Ok(is_conflict || may_fit(table, id, self.state(), fits, buf)?)
    }
}

/// Asks of each version of a row that somebody else may leave whether it fits, until one does.
fn may_fit(
    table: &TableHandle,
    id: RowId,
    own: &Arc<TxnState>,
    fits: &mut dyn FnMut(&RowRef<'_>) -> bool,
    buf: &mut RowBuf,
) -> Result<bool> {
    let pinned = pin();
    let Some(row) = table.relation.glance(id, &pinned) else { return Ok(false) };
    // There is one version in each place of a block.
    if row.is_immutable() {
        return Ok(row.show(buf, fits)?.unwrap_or(false));
    }
    // From the newest version back through all that the holder has made, to the one that was last committed.
    let holder = row.holder(own);
    let is_holders = |undo: &Undo| holder.is_some_and(|holder| Arc::ptr_eq(&undo.txn, holder));
    Ok(row.any_version(buf, is_holders, fits))
}
