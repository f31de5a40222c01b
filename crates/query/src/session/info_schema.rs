//! `information_schema`: the catalog as tables.

mod tables;

use std::sync::{Arc, OnceLock};

use avocet_base::TableId;
use avocet_types::Value;
use avocet_types::schema::TableDef;

use super::output::Rowset;
use super::state::Session;
use crate::error::{ErrorCode, SqlError};

pub(super) use tables::status_of;

/// The name of the schema, in MySQL's way of writing it.
pub(super) const NAME: &str = "information_schema";

pub(super) fn is_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case(NAME)
}

/// A table of the schema: its shape, and what fills it.
struct Virtual {
    def: Arc<TableDef>,
    fill: fn(&Session, &mut Rowset),
}

/// Ids of these tables count down from here, away from the engine's.
const LAST_ID: u32 = u32::MAX;

fn all() -> &'static [Virtual] {
    static ALL: OnceLock<Vec<Virtual>> = OnceLock::new();
    ALL.get_or_init(|| {
        let shapes = tables::TABLES.iter().enumerate();
        shapes
            .map(|(at, (shape, fill))| {
                let mut def = shape().table_def();
                def.id = TableId(LAST_ID - at as u32);
                Virtual { def: Arc::new(def), fill: *fill }
            })
            .collect()
    })
}

fn find(name: &str) -> Option<&'static Virtual> {
    all().iter().find(|table| table.def.name.eq_ignore_ascii_case(name))
}

/// The definition of a table of the schema.
pub(super) fn table(name: &str) -> Option<Arc<TableDef>> {
    find(name).map(|table| table.def.clone())
}

/// The names of its tables.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    all().iter().map(|table| table.def.name.as_str())
}

impl Session {
    /// The rows of a table of the schema, as of now.
    pub(super) fn info_schema_rows(&self, name: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        let table = find(name).ok_or_else(|| ErrorCode::UNKNOWN_TABLE.with(&[&name, &NAME]))?;
        let columns = table.def.columns.iter().map(|column| (column.name.clone(), column.ty)).collect();
        let mut rows = Rowset { name: NAME, columns, rows: Vec::new() };
        (table.fill)(self, &mut rows);
        Ok(rows.rows)
    }
}
