//! CHECK constraints: of CREATE TABLE and ALTER TABLE.

use std::sync::Arc;

use avocet_engine::{ScanRequest, TableHandle};
use avocet_sql::kept;
use avocet_sql::kept::allowed::Place;
use avocet_sql::parse::statement::CheckSpec;
use avocet_sql::print::is_condition;
use avocet_types::Value;
use avocet_types::arrow_map::datum_at;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::schema::{CheckDef, ForeignKeyDef, ReferentialAction, TableDef};

use super::check_length;
use crate::run::Text;
use crate::state::Session;

/// Between a table's name and a number, in names that are made up.
const GENERATED: &str = "_chk_";

impl Session {
    /// Adds a check to the definition of a table; its name.
    pub(super) fn add_check(
        &self,
        def: &mut TableDef,
        spec: &CheckSpec,
        text: &Text<'_>,
    ) -> Result<String, SqlError> {
        let name = match &spec.name {
            Some(name) => {
                check_length(&name.name)?;
                name.name.clone()
            }
            None => free_name(def),
        };
        if position_of(def, &name).is_some() {
            return Err(ErrorCode::CHECK_CONSTRAINT_DUP_NAME.with(&[&name]));
        }
        Place::Check(&name).check(&spec.condition)?;
        if !is_condition(&spec.condition) {
            return Err(ErrorCode::NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT.with(&[&name]));
        }
        for column in kept::column_names(&spec.condition) {
            let at = def
                .column(&column)
                .ok_or_else(|| ErrorCode::CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN.with(&[&name, &column]))?;
            if spec.column.as_ref().is_some_and(|own| !names::eq(&own.name, &column)) {
                return Err(ErrorCode::COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN.with(&[&name]));
            }
            if def.columns[at].auto_increment {
                return Err(ErrorCode::CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN.with(&[&name]));
            }
        }
        let condition = self.kept_text(&spec.condition, text);
        def.checks.push(CheckDef { name: name.clone(), condition, enforced: spec.enforced });
        Ok(name)
    }

    /// An expression's canonical text.
    pub(super) fn kept_text(&self, expr: &avocet_sql::parse::ast::Expr, text: &Text<'_>) -> String {
        kept::canonical(expr, text.source, self.settings.connection_collation.info().charset)
    }

    /// Error 3819 if a row of a table that nobody changes violates one of the checks of `def`, a definition that differs in
    /// these alone.
    pub(super) fn verify_checks(&mut self, table: &Arc<TableHandle>, def: &TableDef) -> Result<(), SqlError> {
        let rules = kept::compile(def)?;
        let columns: Vec<usize> = (0..table.def.columns.len()).collect();
        let mut txn = self.shared.engine.begin(self.ddl_options());
        let scan = txn.newest_reader().scan(table, ScanRequest { columns, ..ScanRequest::default() });
        let mut violated = None;
        for morsel in 0..scan.morsels() {
            let _ = scan.read(morsel, &mut |batch| {
                for row in 0..batch.num_rows() {
                    let value = |(at, column): (usize, &avocet_types::ColumnDef)| {
                        datum_at(batch.column(at).as_ref(), row, &column.ty).into_owned()
                    };
                    let values: Vec<Value> = table.def.columns.iter().enumerate().map(value).collect();
                    // An expression may take long for each row.
                    let checked = self.info.interrupt.check();
                    if let Err(error) = checked.and_then(|()| rules.check(&&values[..], &self.context)) {
                        violated = Some(error);
                        return std::ops::ControlFlow::Break(());
                    }
                }
                std::ops::ControlFlow::Continue(())
            })?;
            if let Some(error) = violated {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// 1054 for a column that a check of ALTER TABLE names and the table has not.
pub(super) fn check_columns(def: &TableDef, spec: &CheckSpec) -> Result<(), SqlError> {
    let names = kept::column_names(&spec.condition);
    let Some(unknown) = names.iter().find(|name| def.column(name).is_none()) else { return Ok(()) };
    let name = spec.name.as_ref().map_or_else(|| free_name(def), |name| name.name.clone());
    Err(ErrorCode::BAD_FIELD_ERROR.with(&[unknown, &format!("check constraint {name} expression")]))
}

pub(super) fn position_of(def: &TableDef, name: &str) -> Option<usize> {
    def.checks.iter().position(|check| names::eq(&check.name, name))
}

/// The table's name with the number after the highest one.
fn free_name(def: &TableDef) -> String {
    let prefix = format!("{}{GENERATED}", def.name);
    let numbers = def.checks.iter().filter_map(|check| check.name.strip_prefix(&prefix)?.parse::<u32>().ok());
    format!("{prefix}{}", numbers.max().unwrap_or(0).saturating_add(1))
}

/// The checks of a table that is made like another one: all of them get new names, in the order of the old ones.
pub(super) fn like(model: &TableDef, name: &str) -> Vec<CheckDef> {
    let mut checks = model.checks.clone();
    checks.sort_by_cached_key(|check| names::fold(&check.name).into_owned());
    for (at, check) in checks.iter_mut().enumerate() {
        check.name = format!("{name}{GENERATED}{}", at + 1);
    }
    checks
}

/// Error 3823 if a foreign key changes what a check depends on: nobody would look.
pub(super) fn check_referential_actions(def: &TableDef) -> Result<(), SqlError> {
    use ReferentialAction as A;
    let changes = |key: &&ForeignKeyDef| {
        matches!(key.on_update, A::Cascade | A::SetNull | A::SetDefault)
            || matches!(key.on_delete, A::SetNull | A::SetDefault)
    };
    for check in &def.checks {
        let used = kept::columns_of(&check.condition, def)?;
        for key in def.foreign_keys.iter().filter(changes) {
            if let Some(column) = key.columns.iter().find(|column| used.contains(column)) {
                return Err(ErrorCode::CHECK_CONSTRAINT_CLAUSE_USING_FK_REFER_ACTION_COLUMN.with(&[
                    &def.columns[*column].name,
                    &check.name,
                    &key.name,
                ]));
            }
        }
    }
    Ok(())
}

/// Error 3959 if a check uses the column. A check that uses no other goes with it, if `drops`.
pub(super) fn let_go_of_column(def: &mut TableDef, column: usize, drops: bool) -> Result<(), SqlError> {
    let mut kept_checks = Vec::with_capacity(def.checks.len());
    for check in &def.checks {
        let used = kept::columns_of(&check.condition, def)?;
        if !used.contains(&column) {
            kept_checks.push(check.clone());
        } else if !drops || used.len() > 1 {
            let name = &def.columns[column].name;
            return Err(ErrorCode::DEPENDENT_BY_CHECK_CONSTRAINT.with(&[&check.name, name]));
        }
    }
    def.checks = kept_checks;
    Ok(())
}
