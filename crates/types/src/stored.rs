//! Where column blocks have the columns of a table whose definition has changed under them.
//!
//! Blocks are immutable, and ALTER TABLE does not write them again to add or drop a column. So a column has a *position* in
//! blocks, given out once, ascending: a block ends before the columns that were added after it was written, and has those that
//! were dropped since. New blocks have all positions, so that the number of a block's columns tells which they are.
//!
//! ```text
//!  a, b      ─ADD c─▶  a, b, c  ─DROP a─▶  b, c      positions of b, c: 1, 2; width 3
//!  [a b]               [a b c]             [- b c]   blocks that were written under each of them
//! ```

use std::collections::HashSet;

use crate::datum::{Datum, Value};
use crate::row::Storage;
use crate::schema::TableDef;
use crate::sql_type::SqlType;

/// Positions that no column of a table has any more, at most: what blocks carry for nothing, as MySQL bounds its row versions.
const MAX_DROPPED: usize = 64;

/// Where blocks have a table's columns.
#[derive(Clone, Debug)]
pub struct StoredColumns {
    /// By column of the table.
    pub columns: Vec<StoredColumn>,
    /// How many columns new blocks have. Those that no column of the table has are NULL there.
    pub width: u16,
}

/// Where blocks have a column.
#[derive(Clone, Debug)]
pub struct StoredColumn {
    pub position: u16,
    /// The value of the rows of blocks that end before the position.
    pub before: Value,
}

impl StoredColumns {
    /// Whether positions are given out once, and there are as many as columns.
    pub fn is_sound(&self, columns: usize) -> bool {
        let mut seen = HashSet::new();
        let mut positions = self.columns.iter().map(|column| column.position);
        self.columns.len() == columns && positions.all(|at| at < self.width && seen.insert(at))
    }
}

impl TableDef {
    /// How many columns the table's new blocks have.
    pub fn stored_width(&self) -> usize {
        self.stored.as_ref().map_or(self.columns.len(), |stored| stored.width.into())
    }

    /// The position of a column in blocks.
    pub fn stored_position(&self, column: usize) -> usize {
        self.stored.as_ref().map_or(column, |stored| stored.columns[column].position.into())
    }

    fn stored_before(&self, column: usize) -> Value {
        self.stored.as_ref().map_or(Datum::Null, |stored| stored.columns[column].before.clone())
    }

    /// Where blocks have the columns of this definition, which takes the place of `old`: `sources` says by column where it was in
    /// the old one, or what rows have in it that were there before. `None` if blocks would carry too much for nothing.
    pub fn stored_after(
        &self,
        old: &TableDef,
        sources: &[Result<usize, Value>],
    ) -> Option<Option<Box<StoredColumns>>> {
        let mut width = old.stored_width();
        let mut columns = Vec::with_capacity(sources.len());
        for source in sources {
            columns.push(match source {
                Ok(at) => {
                    StoredColumn { position: old.stored_position(*at) as u16, before: old.stored_before(*at) }
                }
                Err(before) => {
                    width += 1;
                    StoredColumn { position: u16::try_from(width - 1).ok()?, before: before.clone() }
                }
            });
        }
        let in_place = |(at, column): (usize, &StoredColumn)| usize::from(column.position) == at;
        let is_same = old.stored.is_none() && width == columns.len() && sources.iter().all(Result::is_ok);
        if is_same && columns.iter().enumerate().all(in_place) {
            return Some(None);
        }
        if width > columns.len() + MAX_DROPPED {
            return None;
        }
        Some(Some(Box::new(StoredColumns { columns, width: u16::try_from(width).ok()? })))
    }
}

/// Whether every value of one type is the same stored value of the other, and means the same there.
pub fn keeps_values(old: &SqlType, new: &SqlType) -> bool {
    match (*old, *new) {
        _ if old == new => true,
        (SqlType::VarChar { len, collation }, SqlType::VarChar { len: to, collation: other }) => {
            to >= len && collation == other
        }
        (SqlType::VarBinary { len }, SqlType::VarBinary { len: to }) => to >= len,
        // Members that are added at the end leave the numbers of the others.
        (SqlType::Enum(from), SqlType::Enum(to)) | (SqlType::Set(from), SqlType::Set(to)) => {
            from.collation() == to.collation()
                && to.names().starts_with(from.names())
                && Storage::of(old) == Storage::of(new)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ColumnDef;

    fn table(names: &[&str]) -> TableDef {
        let columns = names.iter().map(|name| ColumnDef::new(*name, SqlType::INT)).collect();
        TableDef::new("d", "t", columns, vec![])
    }

    fn positions(def: &TableDef) -> (Vec<u16>, u16) {
        let stored = def.stored.as_ref().expect("it has changed");
        (stored.columns.iter().map(|column| column.position).collect(), stored.width)
    }

    #[test]
    fn positions_are_given_out_once() {
        let ab = table(&["a", "b"]);
        let mut abc = table(&["a", "b", "c"]);
        abc.stored = abc.stored_after(&ab, &[Ok(0), Ok(1), Err(Datum::Int(7))]).expect("few");
        assert_eq!(positions(&abc), (vec![0, 1, 2], 3));
        let mut bc = table(&["b", "c"]);
        bc.stored = bc.stored_after(&abc, &[Ok(1), Ok(2)]).expect("few");
        assert_eq!(positions(&bc), (vec![1, 2], 3));
        let mut dbc = table(&["d", "b", "c"]);
        dbc.stored = dbc.stored_after(&bc, &[Err(Datum::Null), Ok(0), Ok(1)]).expect("few");
        assert_eq!(positions(&dbc), (vec![3, 1, 2], 4));
        assert!(matches!(dbc.stored_before(2), Datum::Int(7)), "what rows had before c stays");
        assert!(dbc.stored.as_ref().is_some_and(|stored| stored.is_sound(3)));
        // Names alone change nothing; the order does.
        assert!(ab.stored_after(&ab, &[Ok(0), Ok(1)]).expect("none").is_none());
        assert!(ab.stored_after(&ab, &[Ok(1), Ok(0)]).expect("none").is_some());
    }

    #[test]
    fn blocks_do_not_carry_dropped_columns_without_end() {
        let mut def = table(&["a", "b"]);
        let mut changes = 0;
        while let Some(stored) = def.stored_after(&def, &[Ok(0), Err(Datum::Null)]) {
            def.stored = stored;
            changes += 1;
        }
        assert_eq!(changes, MAX_DROPPED);
    }

    #[test]
    fn types_whose_values_stay() {
        let text = |len| SqlType::VarChar { len, collation: crate::Collation::DEFAULT };
        assert!(keeps_values(&text(10), &text(500)));
        assert!(!keeps_values(&text(10), &text(9)));
        let list = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            crate::Members::new(names, crate::Collation::DEFAULT).expect("distinct")
        };
        assert!(keeps_values(&SqlType::Enum(list(&["a", "b"])), &SqlType::Enum(list(&["a", "b", "c"]))));
        assert!(!keeps_values(&SqlType::Enum(list(&["a", "b"])), &SqlType::Enum(list(&["b", "a", "c"]))));
        assert!(!keeps_values(&SqlType::INT, &SqlType::BIGINT));
    }
}
