//! Definitions whose columns get other defaults here than at the source: TIMESTAMPs where `explicit_defaults_for_timestamp` is OFF, which
//! there is no such thing as here, and a MariaDB's defaults of TEXT and BLOB.

use avocet_sql::parse::ast::ExprKind;
use avocet_sql::parse::statement::{AlterAction, ColumnSpec, DefaultSpec};
use avocet_sql::parse::{self, StatementKind};
use avocet_types::SqlMode;

use crate::source::Flavor;

/// The source, and what a definition's session says of `explicit_defaults_for_timestamp` there.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    pub flavor: Flavor,
    pub are_explicit: Option<bool>,
}

impl Defaults {
    /// Why columns of a definition get other defaults than at the source, and rows that are there other values. `is_lob`: whether a column
    /// of its tables is a TEXT or BLOB. What the parser does not take is not run here.
    pub fn unlike(self, text: &str, mode: SqlMode, is_lob: impl Fn(&str) -> bool) -> Option<&'static str> {
        let statements = parse::parse(text.as_bytes(), mode).ok()?;
        let [statement] = &statements[..] else { return None };
        match &statement.kind {
            StatementKind::CreateTable(create) => create.columns.iter().find_map(|column| self.of(column)),
            StatementKind::AlterTable { actions, .. } => actions.iter().find_map(|action| match action {
                AlterAction::AddColumn { column, .. }
                | AlterAction::ModifyColumn { column, .. }
                | AlterAction::ChangeColumn { column, .. } => self.of(column),
                AlterAction::SetDefault { column, default: Some(default) } => {
                    self.of_lob(is_lob(&column.name), Some(default))
                }
                _ => None,
            }),
            _ => None,
        }
    }

    fn of(self, column: &ColumnSpec) -> Option<&'static str> {
        if column.ty.name == "TIMESTAMP" {
            return self.of_timestamp(column);
        }
        let name = column.ty.name.as_str();
        self.of_lob(
            name.ends_with("TEXT") || name.ends_with("BLOB") || name.starts_with("LONG"),
            column.default.as_ref(),
        )
    }

    /// Without the setting, a TIMESTAMP is NOT NULL unless NULL is said, and has a default of its own: the current time, also ON UPDATE,
    /// if it is the table's first, and else zeros. A MariaDB's log does not say which it is, and OFF is the default before 10.10.
    fn of_timestamp(self, column: &ColumnSpec) -> Option<&'static str> {
        let may_be_implicit = match self.flavor {
            Flavor::MySql => self.are_explicit == Some(false),
            Flavor::MariaDb => true,
        };
        let is_whole = match column.nullable {
            Some(true) => true,
            Some(false) => column.default.is_some(),
            None => column.generated.is_some(),
        };
        (may_be_implicit && !is_whole)
            .then_some("the source may give its TIMESTAMP a default: explicit_defaults_for_timestamp")
    }

    /// Here such a default has to be an expression; out of strict mode an empty text is dropped with a warning, as by a MySQL.
    fn of_lob(self, is_lob: bool, default: Option<&DefaultSpec>) -> Option<&'static str> {
        let is_lost = self.flavor == Flavor::MariaDb
            && is_lob
            && matches!(default, Some(DefaultSpec::Value(value)) if !matches!(value.kind, ExprKind::Null));
        is_lost.then_some("the source has given its TEXT or BLOB a default")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_unlike(text: &str, flavor: Flavor, are_explicit: Option<bool>) -> bool {
        let is_lob = |column: &str| column == "note";
        Defaults { flavor, are_explicit }.unlike(text, SqlMode::DEFAULT, is_lob).is_some()
    }

    #[test]
    fn timestamps_have_defaults_of_their_own_where_these_are_not_explicit() {
        for (text, wanted) in [
            ("ALTER TABLE t ADD COLUMN updated TIMESTAMP", true),
            ("ALTER TABLE t ADD COLUMN updated TIMESTAMP(3) NOT NULL", true),
            ("ALTER TABLE t ADD a TIMESTAMP DEFAULT CURRENT_TIMESTAMP", true),
            ("ALTER TABLE t MODIFY a TIMESTAMP", true),
            ("ALTER TABLE t CHANGE a b TIMESTAMP NOT NULL ON UPDATE CURRENT_TIMESTAMP", true),
            ("CREATE TABLE t (id INT PRIMARY KEY, made TIMESTAMP NOT NULL)", true),
            ("ALTER TABLE t ADD a TIMESTAMP NULL", false),
            ("ALTER TABLE t ADD a TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP", false),
            ("ALTER TABLE t ADD a TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", false),
            ("ALTER TABLE t ADD a DATETIME", false),
            ("ALTER TABLE t ADD a INT COMMENT 'TIMESTAMP'", false),
            ("DROP TABLE t", false),
        ] {
            assert_eq!(is_unlike(text, Flavor::MySql, Some(false)), wanted, "{text}");
            assert_eq!(is_unlike(text, Flavor::MariaDb, None), wanted, "{text}");
            assert!(!is_unlike(text, Flavor::MySql, Some(true)), "{text}");
            assert!(!is_unlike(text, Flavor::MySql, None), "{text}");
        }
    }

    #[test]
    fn texts_of_a_mariadb_have_defaults() {
        for (text, wanted) in [
            ("ALTER TABLE t ADD COLUMN note TEXT DEFAULT ''", true),
            ("ALTER TABLE t ADD COLUMN note LONGBLOB NOT NULL DEFAULT 'x'", true),
            ("CREATE TABLE t (id INT PRIMARY KEY, note MEDIUMTEXT DEFAULT '')", true),
            ("ALTER TABLE t ALTER COLUMN note SET DEFAULT ''", true),
            ("ALTER TABLE t ALTER COLUMN other SET DEFAULT ''", false),
            ("ALTER TABLE t ADD COLUMN note TEXT", false),
            ("ALTER TABLE t ADD COLUMN note TEXT DEFAULT NULL", false),
            ("ALTER TABLE t ADD COLUMN note VARCHAR(9) DEFAULT '', ADD more TEXT", false),
        ] {
            assert_eq!(is_unlike(text, Flavor::MariaDb, None), wanted, "{text}");
            assert!(!is_unlike(text, Flavor::MySql, Some(true)), "{text}");
        }
    }
}
