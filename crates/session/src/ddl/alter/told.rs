//! What ALTER TABLE tells of the rows: as many as MySQL copies, where it would copy the table (MySQL Reference Manual, 17.12.1
//! "Online DDL Operations"), and none where it changes the table in place, whatever has to be done here.

use avocet_sql::parse::statement::{AlterAction, PartitionChange, Unneeded};
use avocet_types::error::ErrorCode;
use avocet_types::schema::{ColumnDef, TableDef};
use avocet_types::{IntWidth, SqlType};

use super::Draft;
use crate::ddl::how;
use crate::state::{Level, Session};

/// 1031
const ILLEGAL_HA: ErrorCode = ErrorCode {
    errno: 1031,
    sqlstate: *b"HY000",
    text: "Table storage engine for '{}' doesn't have this option",
};

impl Session {
    /// Whether MySQL copies the rows.
    pub(super) fn counts_rows(&self, draft: &Draft, old: &TableDef, actions: &[AlterAction]) -> bool {
        let is_strict = self.settings.sql_mode.is_strict();
        let new = &draft.def;
        let column = |(at, (column, source)): (usize, (&ColumnDef, &Option<usize>))| match source {
            None => column.is_computed() && !column.is_virtual(),
            Some(source) => {
                let before = &old.columns[*source];
                let in_key = || old.indexes.iter().any(|i| i.parts.iter().any(|part| part.column == *source));
                before.generated != column.generated
                    || !changes_in_place(&before.ty, &column.ty, &in_key)
                    || before.nullable && !column.nullable && !is_strict && !is_in_primary(new, at)
            }
        };
        // What partitions take in place is verified, too.
        let partitions = actions.iter().any(|action| matches!(action, AlterAction::Partitions(_)));
        draft.verifies && !partitions
            || how::asks_for_copy(actions)
            || actions.iter().any(copies)
            || !draft.added_keys.is_empty() && self.settings.foreign_key_checks
            || old.primary_key().is_some() && new.primary_key().is_none()
            || new.own_columns().iter().zip(&draft.sources).enumerate().any(column)
    }

    /// Warns of what is asked for and does nothing.
    pub(super) fn warn_of_unneeded(&mut self, def: &TableDef, what: Unneeded) {
        let (level, error) = match what {
            Unneeded::Keys => (Level::Note, ILLEGAL_HA.with(&[&def.name])),
            Unneeded::OrderBy if def.shown_primary_key().is_some() => {
                let name = &def.name;
                let text = format!(
                    "ORDER BY ignored as there is a user-defined clustered index in the table '{name}'"
                );
                (Level::Warning, ErrorCode::UNKNOWN_ERROR.because(text))
            }
            _ => return,
        };
        self.warn(level, error.errno, error.message);
    }
}

/// Whether a statement says nothing of records: it does nothing that could take rows.
pub(super) fn tells_nothing(actions: &[AlterAction]) -> bool {
    let is_nothing = |action: &AlterAction| match action {
        AlterAction::RenameTable(_) | AlterAction::Unneeded(Unneeded::Keys) => true,
        AlterAction::Partitions(change) => matches!(change, PartitionChange::Truncate(_)),
        AlterAction::How(how) => how.algorithm != "COPY",
        _ => false,
    };
    actions.iter().all(is_nothing)
}

fn copies(action: &AlterAction) -> bool {
    match action {
        AlterAction::Unneeded(what) => *what == Unneeded::OrderBy,
        AlterAction::Partitions(change) => matches!(change, PartitionChange::By(_) | PartitionChange::Remove),
        _ => false,
    }
}

fn is_in_primary(def: &TableDef, column: usize) -> bool {
    def.primary_key().is_some_and(|key| key.parts.iter().any(|part| part.column == column))
}

/// Whether values of the one type are those of the other in InnoDB's files. A collation orders the keys of a column that has some.
fn changes_in_place(old: &SqlType, new: &SqlType, in_key: &dyn Fn() -> bool) -> bool {
    let by_collation = |a: avocet_types::Collation, b: avocet_types::Collation| {
        a == b || a.info().charset == b.info().charset && !in_key()
    };
    // The length of a value takes one byte, or two.
    let grows = |from: u64, to: u64| to >= from && (to < 256) == (from < 256);
    match (*old, *new) {
        _ if old == new => true,
        (SqlType::VarChar { len, collation }, SqlType::VarChar { len: to, collation: other }) => {
            let bytes = |len: u32| u64::from(len) * u64::from(collation.info().charset.max_len());
            grows(bytes(len), bytes(to)) && by_collation(collation, other)
        }
        (SqlType::VarBinary { len }, SqlType::VarBinary { len: to }) => grows(len.into(), to.into()),
        (SqlType::Char { len, collation }, SqlType::Char { len: to, collation: other }) => {
            len == to && by_collation(collation, other)
        }
        (SqlType::Text { size, collation }, SqlType::Text { size: to, collation: other }) => {
            size == to && by_collation(collation, other)
        }
        (SqlType::Text { size, .. }, SqlType::Blob { size: to }) => size == to,
        // Members that are added at the end leave the numbers of the others, whatever their character set.
        (SqlType::Enum(from), SqlType::Enum(to)) | (SqlType::Set(from), SqlType::Set(to)) => {
            to.names().starts_with(from.names())
                && avocet_types::row::Storage::of(old) == avocet_types::row::Storage::of(new)
        }
        (SqlType::Bool, SqlType::Int { width: IntWidth::W8, unsigned: false })
        | (SqlType::Int { width: IntWidth::W8, unsigned: false }, SqlType::Bool) => true,
        _ => false,
    }
}
