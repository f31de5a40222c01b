//! CHECK constraints: their names are unique within a database, as those of foreign keys are.

use avocet_base::TableId;
use avocet_types::names;
use avocet_types::{CheckDef, TableDef};

use crate::catalog::Catalog;
use crate::error::{EngineError, Result};

/// Between a table's name and a number, in names that are made up.
const GENERATED: &str = "_chk_";

/// Whether the checks of a definition may have their names in this database. The table itself, if it is there, is `own`.
pub(super) fn check_names(
    catalog: &Catalog,
    checks: &[CheckDef],
    database: &str,
    own: Option<TableId>,
) -> Result<()> {
    let same = |a: &CheckDef, b: &CheckDef| names::eq(&a.name, &b.name);
    for (at, check) in checks.iter().enumerate() {
        let others = catalog.tables_in(database).filter(|table| Some(table.id()) != own);
        let mut others = others.flat_map(|table| &table.def.checks).chain(&checks[..at]);
        if others.any(|other| same(other, check)) {
            return Err(EngineError::DuplicateCheck(check.name.clone()));
        }
    }
    Ok(())
}

/// The checks of a table under its new name: names that were made of the table's name follow it.
pub(crate) fn renamed(def: &TableDef, name: &str) -> Vec<CheckDef> {
    let prefix = format!("{}{GENERATED}", def.name);
    let mut checks = def.checks.clone();
    for check in &mut checks {
        if let Some(number) = check.name.strip_prefix(&prefix) {
            check.name = format!("{name}{GENERATED}{number}");
        }
    }
    checks
}
