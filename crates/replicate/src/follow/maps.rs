//! The TABLE_MAPs of a stream, by the numbers that row events name tables by.

use super::{Mapped, Run};
use crate::binlog::TableMap;
use crate::error::Result;
use crate::source::Flavor;
use crate::state::TableName;

/// Of more, those of transactions before are forgotten.
const MOST: usize = 4096;

impl Run {
    /// Takes up a map. The same one as before leaves what is known of its table.
    pub(super) fn map_table(
        &mut self,
        body: &[u8],
        flavor: Flavor,
        wants: impl Fn(&str, &str) -> bool,
    ) -> Result<()> {
        let map = TableMap::read(body, flavor, wants)?;
        if self.maps.get(&map.table_id).is_some_and(|known| known.body == body) {
            return Ok(());
        }
        let name = TableName { database: map.database.clone(), table: map.table.clone() };
        self.maps.insert(map.table_id, Mapped { body: body.to_vec(), map, name, target: None });
        Ok(())
    }

    /// Keeps the maps few; between transactions, since a statement's row events come behind the maps of all of its tables.
    pub(super) fn forget_maps(&mut self) {
        if self.maps.len() >= MOST {
            self.maps.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a table `d.t` with one INT.
    fn map(id: u64) -> Vec<u8> {
        let mut body = id.to_le_bytes()[..6].to_vec();
        body.extend_from_slice(&[1, 0]);
        body.extend_from_slice(b"\x01d\0\x01t\0");
        body.extend_from_slice(&[1, crate::binlog::column::LONG, 0, 0]);
        body
    }

    fn read(run: &mut Run, id: u64) {
        run.map_table(&map(id), Flavor::MySql, |_, _| true).expect("a map");
    }

    #[test]
    fn maps_of_one_transaction_are_kept_however_many_there_are() {
        let mut run = Run::default();
        for id in 0..MOST as u64 + 10 {
            read(&mut run, id);
        }
        // The next transaction begins.
        assert!(run.maps.contains_key(&0) && run.maps.len() == MOST + 10);
        run.forget_maps();
        assert!(run.maps.is_empty());
        read(&mut run, 7);
        run.forget_maps();
        assert!(run.maps.contains_key(&7));
    }
}
