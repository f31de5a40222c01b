//! Definitions that depend on the time zone of the source's machine (`time_zone = SYSTEM`), which has no name that is known here.

use avocet_sql::parse::ast::ExprKind;
use avocet_sql::parse::outline::{LexemeKind, lexemes};
use avocet_sql::parse::statement::{AlterAction, ColumnSpec, DefaultSpec};
use avocet_sql::parse::{self, StatementKind};
use avocet_types::SqlMode;

/// Functions that give a local time, or read one.
const OF_TIME: [&str; 10] = [
    "NOW",
    "CURRENT_TIMESTAMP",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "CURDATE",
    "CURTIME",
    "UNIX_TIMESTAMP",
    "FROM_UNIXTIME",
];

/// Whether a definition gives rows or defaults other values in another time zone. `is_timestamp`: whether a column of its tables is a
/// TIMESTAMP, or any of them. What the parser does not take is not run here.
pub fn depends_on_zone(text: &str, mode: SqlMode, is_timestamp: impl Fn(Option<&str>) -> bool) -> bool {
    let Ok(statements) = parse::parse(text.as_bytes(), mode) else { return false };
    let [statement] = &statements[..] else { return false };
    let asks_time = || {
        let lexemes = lexemes(text, mode);
        let mut words = lexemes.iter().filter(|lexeme| lexeme.kind == LexemeKind::Word);
        words.any(|word| OF_TIME.iter().any(|name| word.text.eq_ignore_ascii_case(name)))
    };
    match &statement.kind {
        // Its defaults alone: it has no rows.
        StatementKind::CreateTable(create) => create.columns.iter().any(has_local_default),
        StatementKind::AlterTable { actions, .. } => actions.iter().any(|action| match action {
            AlterAction::AddColumn { column, .. } => {
                has_local_default(column)
                    || has_default_of_now(column)
                    || matches!(column.default, Some(DefaultSpec::Expr(_))) && asks_time()
                    || column.generated.is_some() && (is_timestamp(None) || asks_time())
            }
            AlterAction::ModifyColumn { column, .. } => converts(column, &column.name.name, &is_timestamp),
            AlterAction::ChangeColumn { old, column, .. } => converts(column, &old.name, &is_timestamp),
            AlterAction::SetDefault { column, default: Some(default) } => {
                is_timestamp(Some(&column.name)) && is_local(default)
            }
            _ => false,
        }),
        _ => false,
    }
}

/// Whether a column is made of local times, or local times of it.
fn converts(column: &ColumnSpec, was: &str, is_timestamp: &impl Fn(Option<&str>) -> bool) -> bool {
    let is_one = column.ty.name == "TIMESTAMP";
    is_one != is_timestamp(Some(was))
        || has_local_default(column)
        || column.generated.is_some() && is_timestamp(None)
}

/// The default of a TIMESTAMP is kept as the moment that its local time is.
fn has_local_default(column: &ColumnSpec) -> bool {
    column.ty.name == "TIMESTAMP" && column.default.as_ref().is_some_and(is_local)
}

fn is_local(default: &DefaultSpec) -> bool {
    match default {
        DefaultSpec::Value(value) => {
            matches!(value.kind, ExprKind::String { .. } | ExprKind::Temporal { .. } | ExprKind::Integer(_))
        }
        DefaultSpec::Expr(_) => true,
    }
}

/// Of a type without a zone.
fn has_default_of_now(column: &ColumnSpec) -> bool {
    column.ty.name != "TIMESTAMP"
        && matches!(&column.default, Some(DefaultSpec::Value(value)) if matches!(value.kind, ExprKind::Function { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_that_read_the_clock_or_a_timestamp_are_told() {
        // A table with a TIMESTAMP `ts` and a DATETIME `dt`.
        let is_timestamp =
            |column: Option<&str>| column.is_none_or(|column| column.eq_ignore_ascii_case("ts"));
        for (text, wanted) in [
            ("ALTER TABLE t ADD c DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", true),
            ("ALTER TABLE t ADD c DATETIME(3) DEFAULT NOW(3)", true),
            ("ALTER TABLE t ADD c DATE DEFAULT (CURDATE())", true),
            ("ALTER TABLE t ADD c INT DEFAULT (UNIX_TIMESTAMP())", true),
            ("ALTER TABLE t ADD c TIMESTAMP DEFAULT '2020-01-01 00:00:00'", true),
            ("ALTER TABLE t ADD c TIMESTAMP DEFAULT CURRENT_TIMESTAMP", false),
            ("ALTER TABLE t ADD c TIMESTAMP NULL", false),
            ("ALTER TABLE t ADD c DATETIME DEFAULT '2020-01-01'", false),
            ("ALTER TABLE t ADD c JSON DEFAULT (JSON_ARRAY())", false),
            ("ALTER TABLE t ADD c VARCHAR(30) AS (ts) STORED", true),
            ("ALTER TABLE t MODIFY ts DATETIME", true),
            ("ALTER TABLE t MODIFY ts TIMESTAMP(3) NULL", false),
            ("ALTER TABLE t CHANGE TS x VARCHAR(30)", true),
            ("ALTER TABLE t MODIFY dt TIMESTAMP", true),
            ("ALTER TABLE t MODIFY dt DATETIME DEFAULT NOW()", false),
            ("ALTER TABLE t ALTER ts SET DEFAULT '2020-01-01'", true),
            ("ALTER TABLE t ADD INDEX (ts), DROP COLUMN dt", false),
            ("CREATE TABLE t (a TIMESTAMP DEFAULT '2020-01-01', b INT)", true),
            ("CREATE TABLE t (a TIMESTAMP DEFAULT NOW(), b DATETIME DEFAULT NOW())", false),
            ("TRUNCATE TABLE t", false),
        ] {
            assert_eq!(depends_on_zone(text, SqlMode::DEFAULT, is_timestamp), wanted, "{text}");
        }
    }
}
