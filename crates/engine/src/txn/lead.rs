//! Whether a row that somebody holds is worth waiting for, by the index entry that led to it.
//!
//! An entry stays after the key of its row has changed, until nobody needs the version that it belongs to. Whoever holds the
//! row may leave it as the newest version has it, as one of those that it made before (ROLLBACK TO), or as it was last
//! committed. If none of these has the entry's key, the entry leads to nothing, whatever becomes of its holder: to wait
//! would be for nothing, and could close a circle that is none. InnoDB, whose locks are the entries', does not wait either.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_storage::TxnState;
use avocet_storage::hot::{PageBody, RowBuf, delta};
use avocet_storage::relation::SegmentState;
use avocet_storage::version::{Change, running_other};
use avocet_types::{RowLayout, RowRef};

use super::Txn;
use crate::error::{Result, malformed};
use crate::rows;
use crate::table::TableHandle;

impl Txn {
    /// Whether a row that somebody else holds is to be waited for. Strictly it always is: if it has changed since the
    /// snapshot, that is a conflict, whatever it is now.
    pub(super) fn is_worth_waiting(
        &self,
        table: &TableHandle,
        id: RowId,
        fits: &mut dyn FnMut(&RowRef<'_>) -> bool,
        buf: &mut RowBuf,
    ) -> Result<bool> {
        Ok(self.is_strict() && !self.relaxed || may_fit(table, id, self.state(), fits, buf)?)
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
    let state = table.relation.segment(id.segment()).state_owned();
    match &*state {
        SegmentState::Empty => Ok(false),
        SegmentState::Hot(hot) => {
            let Some((page, slot)) = table.relation.page_of(hot, id.ordinal()) else { return Ok(false) };
            let body = page.body.read();
            // The strings of a slot that nobody uses are gone.
            if !body.is_live(slot) && body.chain(slot).is_none() {
                return Ok(false);
            }
            Ok(fits(&body.in_place(&table.layout, slot))
                || an_older_fits(&body, &table.layout, slot, own, fits, buf)?)
        }
        // There is one version in each place.
        SegmentState::Cold(cold) => {
            Ok(rows::cold_image(table, cold, id.ordinal(), &mut buf.image)? && fits(&buf.row(&table.layout)))
        }
    }
}

/// Goes back from the newest version through all that the holder has made, to the one that was last committed.
fn an_older_fits(
    body: &PageBody,
    layout: &RowLayout,
    slot: usize,
    own: &Arc<TxnState>,
    fits: &mut dyn FnMut(&RowRef<'_>) -> bool,
    buf: &mut RowBuf,
) -> Result<bool> {
    let head = body.chain(slot);
    let Some(holder) = running_other(head, own) else { return Ok(false) };
    buf.image.clear();
    body.in_place(layout, slot).to_image(&mut buf.image);
    let mut next = head.cloned();
    while let Some(undo) = next.filter(|undo| Arc::ptr_eq(&undo.txn, holder)) {
        let link = undo.link();
        match &link.change {
            Change::Insert => return Ok(false),
            Change::Update { before } => {
                delta::apply_to_image(layout, before, &mut buf.image).map_err(malformed("row delta"))?;
                if fits(&buf.row(layout)) {
                    return Ok(true);
                }
            }
            Change::Delete | Change::Lock | Change::Hide => {}
        }
        next = link.older();
    }
    Ok(false)
}
