//! Which changes of a table's columns leave its rows where they are.

use avocet_types::schema::{ColumnDef, DefaultValue, IndexDef, TableDef};
use avocet_types::stored::keeps_values;

use super::Draft;

/// Whether the rows of `old` are those of the draft as well, with one value in each new column.
pub(super) fn keeps_rows(draft: &Draft, old: &TableDef) -> bool {
    let new = &draft.def;
    let is_old = |index: &&IndexDef| old.indexes.iter().any(|old| old.id == index.id);
    let is_in_key =
        |at| new.indexes.iter().filter(is_old).any(|index| index.parts.iter().any(|p| p.column == at));
    let column = |(at, (column, source)): (usize, (&ColumnDef, &Option<usize>))| match source {
        None => has_one_value(column),
        Some(source) => {
            let before = &old.columns[*source];
            // Keys of columns that may be NULL are others.
            keeps_column(before, column) && (before.nullable == column.nullable || !is_in_key(at))
        }
    };
    let columns = new.columns.iter().zip(&draft.sources);
    draft.left_out.is_none()
        && !draft.verifies
        && draft.added_keys.is_empty()
        && new.foreign_keys.len() == old.foreign_keys.len()
        && new.checks == old.checks
        && (&new.partitioning, new.kept_keys.len()) == (&old.partitioning, old.kept_keys.len())
        && keeps_indexes(draft, old)
        && columns.enumerate().all(column)
}

/// Whether all rows that there are have the same value in a new column.
fn has_one_value(column: &ColumnDef) -> bool {
    let is_computed = column.generated.is_some() || matches!(column.default, Some(DefaultValue::Expr(_)));
    !is_computed && !column.auto_increment
}

/// Whether a column's values are what they were.
fn keeps_column(before: &ColumnDef, column: &ColumnDef) -> bool {
    before.generated == column.generated
        && before.auto_increment == column.auto_increment
        && (column.nullable || !before.nullable)
        && keeps_values(&before.ty, &column.ty)
}

/// Whether indexes that were there, but for their names and whether plans may use them, are what they were.
fn keeps_indexes(draft: &Draft, old: &TableDef) -> bool {
    let kept = |new: &IndexDef| {
        let Some(old) = old.indexes.iter().find(|old| old.id == new.id) else { return true };
        let mut parts = new.parts.iter().zip(&old.parts);
        (new.kind, new.parts.len()) == (old.kind, old.parts.len())
            && parts.all(|(new, old)| {
                draft.sources[new.column] == Some(old.column)
                    && (new.descending, new.prefix_len) == (old.descending, old.prefix_len)
            })
    };
    draft.def.indexes.iter().all(kept)
}
