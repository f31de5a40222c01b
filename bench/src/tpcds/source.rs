//! Where TPC-DS comes from: its generator and the texts of its queries are in DuckDB's package of version 1.1, the last that carries
//! them inside. The data are generated once for each scale factor and kept in the cache.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::analytics::load::Table;
use crate::cache;
use crate::error::{IoContext, Result};
use crate::rival::duckdb::python_with;

/// Writes a Parquet file for each table, and the rest as JSON.
const GENERATE: &str = "
import json, sys
import duckdb
scale, folder = sys.argv[1:]
connection = duckdb.connect()
connection.execute('SET enable_progress_bar = false')
connection.execute(f'CALL dsdgen(sf = {scale})')
tables = []
for (name,) in connection.execute('SHOW TABLES').fetchall():
    connection.execute(f\"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)\")
    columns = connection.execute(f'DESCRIBE {name}').fetchall()
    tables.append({'name': name, 'columns': [{'name': column[0], 'type': column[1]} for column in columns]})
queries = connection.execute('SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr').fetchall()
queries = [{'number': number, 'sql': text} for number, text in queries]
json.dump({'tables': tables, 'queries': queries}, open(f'{folder}/kit.json', 'w'))
";

/// Tables, data and queries at one scale factor.
pub struct Kit {
    tables: Vec<TableText>,
    pub files: Vec<Table>,
    /// In the order of their numbers, in DuckDB's dialect.
    pub queries: Vec<Query>,
}

#[derive(Deserialize)]
pub struct Query {
    pub number: usize,
    pub sql: String,
}

#[derive(Deserialize)]
struct TableText {
    name: String,
    columns: Vec<Column>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    ty: String,
}

#[derive(Deserialize)]
struct Texts {
    tables: Vec<TableText>,
    queries: Vec<Query>,
}

impl Kit {
    pub fn of(scale: f64) -> Result<Self> {
        let folder = cache::folder(&format!("tpcds-sf{scale}"), |dir| {
            eprintln!("generating TPC-DS data at scale factor {scale}");
            let python = python_with("venv-tpcds", &["duckdb==1.1.3"])?;
            cache::run(Command::new(python).args(["-c", GENERATE, &scale.to_string()]).arg(dir)).map(drop)
        })?;
        let text = fs::read_to_string(folder.join("kit.json")).context(|| "reading kit.json".into())?;
        let Texts { tables, mut queries } = serde_json::from_str(&text)?;
        // A word of DuckDB's own by now.
        queries.iter_mut().for_each(|query| query.sql = query.sql.replace(") AT,", ") am,"));
        let file = |table: &TableText| -> (String, PathBuf) {
            (table.name.clone(), folder.join(format!("{}.parquet", table.name)))
        };
        Ok(Self { files: tables.iter().map(file).collect(), tables, queries })
    }

    /// The statements that make the tables, in MySQL's dialect. Text compares by its bytes, as in DuckDB.
    pub fn create(&self, keys: bool) -> Vec<String> {
        self.tables.iter().map(|table| table.create(keys)).collect()
    }
}

impl TableText {
    /// The tables of facts have no key of one column, and row stores answer without as well.
    fn is_dimension(&self) -> bool {
        !["_sales", "_returns", "inventory"].iter().any(|end| self.name.ends_with(end))
    }

    fn create(&self, keys: bool) -> String {
        let column = |column: &Column| {
            let ty = match column.ty.as_str() {
                // The longest is 200 characters long.
                "VARCHAR" => "VARCHAR(200)",
                ty => ty,
            };
            format!("{} {ty}", column.name)
        };
        let mut columns: Vec<String> = self.columns.iter().map(column).collect();
        if let Some(first) = self.columns.first().filter(|_| keys && self.is_dimension()) {
            columns.push(format!("PRIMARY KEY ({})", first.name));
        }
        let columns = columns.join(", ");
        format!("CREATE TABLE {} ({columns}) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin", self.name)
    }
}
