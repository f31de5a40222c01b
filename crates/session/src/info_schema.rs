//! `information_schema`: the catalog as tables; `mysql`: accounts, as MySQL's grant tables show them; and what is asked for of
//! `performance_schema`; `avocet`: what only this server has to tell.

mod accounts;
mod clients;
mod collations;
mod digests;
mod grants;
mod innodb;
mod only;
mod own;
mod partitions;
mod performance;
mod rare;
mod shapes;
mod statements;
mod sys;
mod system;
mod tables;
mod views;

use std::sync::{Arc, OnceLock};

use avocet_base::TableId;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;
use avocet_types::{Collation, Value};

use super::output::{Only, Rowset};
use super::schemas::{MYSQL, OWN, PERFORMANCE, SYS};
use super::state::Session;

pub(super) use super::schemas::{NAME, SCHEMAS, is_digest_summary, is_open, is_schema, is_virtual};
pub(super) use only::only_of;
pub(super) use tables::{UINT, status_of};
pub(super) use views::type_of;

/// A table of a schema: its shape, and what fills it.
struct Virtual {
    def: Arc<TableDef>,
    fill: fn(&Session, &mut Rowset),
}

/// Ids of these tables count down from here, away from the engine's.
const LAST_ID: u32 = u32::MAX;

fn all() -> &'static [Virtual] {
    static ALL: OnceLock<Vec<Virtual>> = OnceLock::new();
    ALL.get_or_init(|| {
        let views = tables::TABLES
            .iter()
            .chain(grants::TABLES)
            .chain(rare::TABLES)
            .chain(partitions::TABLES)
            .chain(views::TABLES);
        let of = |schema, tables: &'static [tables::Entry]| tables.iter().map(move |table| (schema, table));
        let listed = views
            .map(|table| (NAME, table))
            .chain(of(MYSQL, accounts::TABLES))
            .chain(of(PERFORMANCE, digests::TABLES))
            .chain(of(PERFORMANCE, performance::TABLES))
            .chain(of(OWN, own::TABLES));
        let mut all: Vec<_> = listed.map(|(schema, (shape, fill))| (schema, shape(), *fill)).collect();
        all.extend(shapes::all());
        // In alphabetical order, as SHOW TABLES lists them.
        all.sort_by(|(a_schema, a, _), (b_schema, b, _)| (a_schema, a.name).cmp(&(b_schema, b.name)));
        all.into_iter()
            .enumerate()
            .map(|(at, (schema, shape, fill))| {
                let mut def = shape.table_def();
                def.id = TableId(LAST_ID - at as u32);
                schema.clone_into(&mut def.database);
                if schema == NAME {
                    collations::apply(&mut def);
                }
                Virtual { def: Arc::new(def), fill }
            })
            .collect()
    })
}

/// `BASE TABLE`, `VIEW` or `SYSTEM VIEW`, as MySQL calls such a table.
fn kind_of(table: &TableDef) -> &'static str {
    match table.database.as_str() {
        NAME => "SYSTEM VIEW",
        SYS if table.name != "sys_config" => "VIEW",
        _ => "BASE TABLE",
    }
}

/// The tables of a schema.
fn of(schema: &str) -> impl Iterator<Item = &'static Virtual> {
    all().iter().filter(move |table| table.def.database.eq_ignore_ascii_case(schema))
}

fn find(schema: &str, name: &str) -> Option<&'static Virtual> {
    // Names of tables on disk are case-sensitive, and MySQL's grant tables are.
    let ignores_case = is_schema(schema);
    of(schema).find(|Virtual { def, .. }| match ignores_case {
        true => def.name.eq_ignore_ascii_case(name),
        false => def.name == name,
    })
}

/// The definition of a table of a schema.
pub(super) fn table(schema: &str, name: &str) -> Option<Arc<TableDef>> {
    find(schema, name).map(|table| table.def.clone())
}

/// The tables' definitions.
pub(super) fn tables_of(schema: &str) -> impl Iterator<Item = &'static TableDef> {
    of(schema).map(|table| &*table.def)
}

/// The name of a schema, as it is written, and its collation.
pub(super) fn database(name: &str) -> Option<(&'static str, Collation)> {
    let name = SCHEMAS.into_iter().find(|schema| match is_schema(schema) {
        true => schema.eq_ignore_ascii_case(name),
        false => *schema == name,
    })?;
    Some((name, collation_of(name)))
}

fn collation_of(schema: &str) -> Collation {
    if is_schema(schema) { Collation(33) } else { Collation::DEFAULT }
}

/// The names of a schema's tables.
pub(super) fn names(schema: &str) -> impl Iterator<Item = &'static str> {
    of(schema).map(|table| table.def.name.as_str())
}

impl Session {
    /// Whether TRUNCATE TABLE of a table of performance_schema succeeds: it keeps nothing.
    pub(super) fn forgets(&self, schema: &str, name: &str) -> bool {
        super::schemas::is_forgotten(schema, name) && table(schema, name).is_some()
    }

    /// The rows of a table of a schema, as of now.
    pub(super) fn virtual_rows(
        &self,
        schema: &str,
        name: &str,
        only: Only,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let table = find(schema, name).ok_or_else(|| ErrorCode::UNKNOWN_TABLE.with(&[&name, &schema]))?;
        let columns = table.def.columns.iter().map(|column| (column.name.clone(), column.ty)).collect();
        let mut rows = Rowset { name: NAME, columns, rows: Vec::new(), only };
        (table.fill)(self, &mut rows);
        Ok(rows.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_is_there_once() {
        let mut names: Vec<_> = all().iter().map(|table| (&table.def.database, &table.def.name)).collect();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
