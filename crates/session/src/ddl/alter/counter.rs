//! `ALTER TABLE … AUTO_INCREMENT = n`: it may lower the counter, down to what the rows leave free.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_engine::{ScanRequest, TableHandle};
use avocet_types::error::SqlError;
use avocet_types::{Datum, datum_at};

use crate::state::Session;

impl Session {
    /// The next number of a table that is held alone, if `wanted` is asked for.
    pub(super) fn next_number_of(
        &mut self,
        table: &Arc<TableHandle>,
        wanted: Option<u64>,
    ) -> Result<Option<u64>, SqlError> {
        let (Some(wanted), Some(column)) = (wanted, table.def.auto_increment_column()) else {
            return Ok(wanted);
        };
        if wanted >= table.next_auto_increment() {
            return Ok(Some(wanted));
        }
        let ty = table.def.columns[column].ty;
        let mut txn = self.shared.engine.begin(self.ddl_options());
        let request = ScanRequest { columns: vec![column], ..ScanRequest::default() };
        let scan = txn.newest_reader().scan(table, request);
        let mut next = wanted;
        for morsel in 0..scan.morsels() {
            self.info.interrupt.check()?;
            let _ = scan.read(morsel, &mut |batch| {
                for row in 0..batch.num_rows() {
                    let used = match datum_at(batch.column(0).as_ref(), row, &ty) {
                        Datum::Int(used) => u64::try_from(used).unwrap_or(0),
                        Datum::UInt(used) => used,
                        Datum::Float(used) => used as u64,
                        Datum::Double(used) => used as u64,
                        _ => continue,
                    };
                    next = next.max(used.saturating_add(1));
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(Some(next))
    }
}
