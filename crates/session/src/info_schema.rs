//! `information_schema`: the catalog as tables; `mysql`: accounts, as MySQL's grant tables show them; and what is asked for of
//! `performance_schema`; `avocet`: what only this server has to tell.

mod accounts;
mod digests;
mod grants;
mod own;
mod partitions;
mod performance;
mod rare;
mod tables;
mod views;

use std::sync::{Arc, OnceLock};

use avocet_base::TableId;
use avocet_types::Value;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;

use super::output::Rowset;
use super::state::Session;

pub(super) use tables::status_of;
pub(super) use views::type_of;

/// The name of the schema, in MySQL's way of writing it.
pub(super) const NAME: &str = "information_schema";

pub(super) fn is_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case(NAME)
}

/// The schema of the grant tables, which are views of the catalog's accounts.
const MYSQL: &str = "mysql";

const PERFORMANCE: &str = "performance_schema";

/// What no MySQL has. SHOW DATABASES does not list it: clients take what that lists for their own.
const OWN: &str = "avocet";

/// Those whose tables are filled when they are read, as far as they are listed.
pub(super) const SCHEMAS: [&str; 3] = [NAME, MYSQL, PERFORMANCE];

/// Whether a schema's tables are the server's own.
pub(super) fn is_virtual(name: &str) -> bool {
    is_open(name) || name == MYSQL
}

/// Whether everybody may read a schema's tables.
pub(super) fn is_open(name: &str) -> bool {
    is_schema(name) || name == PERFORMANCE || name == OWN
}

/// Whether it is the table of statements by digest, the only one that TRUNCATE TABLE begins anew.
pub(super) fn is_digest_summary(schema: &str, name: &str) -> bool {
    schema == PERFORMANCE && name == digests::NAME
}

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
        let mut views: Vec<_> = tables::TABLES
            .iter()
            .chain(grants::TABLES)
            .chain(rare::TABLES)
            .chain(partitions::TABLES)
            .chain(views::TABLES)
            .map(|table| (NAME, table))
            .collect();
        // In alphabetical order, as SHOW TABLES lists them.
        views.sort_by_key(|(_, (shape, _))| shape().name);
        let of = |schema, tables: &'static [tables::Entry]| tables.iter().map(move |table| (schema, table));
        let shapes = views
            .into_iter()
            .chain(of(MYSQL, accounts::TABLES))
            .chain(of(PERFORMANCE, digests::TABLES))
            .chain(of(PERFORMANCE, performance::TABLES))
            .chain(of(OWN, own::TABLES));
        shapes
            .enumerate()
            .map(|(at, (schema, (shape, fill)))| {
                let mut def = shape().table_def();
                def.id = TableId(LAST_ID - at as u32);
                schema.clone_into(&mut def.database);
                Virtual { def: Arc::new(def), fill: *fill }
            })
            .collect()
    })
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

/// The names of a schema's tables.
pub(super) fn names(schema: &str) -> impl Iterator<Item = &'static str> {
    of(schema).map(|table| table.def.name.as_str())
}

impl Session {
    /// The rows of a table of a schema, as of now.
    pub(super) fn virtual_rows(&self, schema: &str, name: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        let table = find(schema, name).ok_or_else(|| ErrorCode::UNKNOWN_TABLE.with(&[&name, &schema]))?;
        let columns = table.def.columns.iter().map(|column| (column.name.clone(), column.ty)).collect();
        let mut rows = Rowset { name: NAME, columns, rows: Vec::new() };
        (table.fill)(self, &mut rows);
        Ok(rows.rows)
    }
}
