//! Loading Parquet files: by `avocet load` straight into cold blocks, by multi-row INSERTs into the row stores,
//! by CREATE TABLE AS into DuckDB.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use mysql::Conn;
use mysql::prelude::Queryable;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::cache;
use crate::error::{IoContext, Result};
use crate::insert::{Inserter, quote};
use crate::progress;
use crate::rival::Server;

/// A table's name, and the Parquet file with its rows.
pub type Table = (String, PathBuf);

/// Makes a database anew, with these empty tables.
pub fn create(server: &Server, database: &str, tables: &[String]) -> Result<()> {
    let mut conn = Conn::new(server.options())?;
    conn.query_drop(format!("DROP DATABASE IF EXISTS {database}"))?;
    conn.query_drop(format!("CREATE DATABASE {database}"))?;
    conn.query_drop(format!("USE {database}"))?;
    tables.iter().try_for_each(|statement| Ok(conn.query_drop(statement)?))
}

/// Loads Avocet's tables while its server is down, as a user would fill a new database; returns the time of the loads.
pub fn by_avocet_load(
    server: &mut Server,
    binary: &Path,
    database: &str,
    files: &[Table],
) -> Result<Duration> {
    server.stop()?;
    let begin = Instant::now();
    for (table, file) in files {
        let mut load = Command::new(binary);
        load.arg("load")
            .arg(file)
            .args(["--table", &format!("{database}.{table}")])
            .arg("--data")
            .arg(server.data());
        cache::run(&mut load)?;
    }
    let took = begin.elapsed();
    server.start_again()?;
    Ok(took)
}

/// Loads over the MySQL protocol with two connections.
pub fn by_inserts(server: &Server, database: &str, files: &[Table]) -> Result<Duration> {
    let begin = Instant::now();
    let mut pieces = Vec::new();
    let mut total = 0;
    for (table, path) in files {
        let reader = ParquetRecordBatchReaderBuilder::try_new(open(path)?)?;
        total += reader.metadata().file_metadata().num_rows() as u64;
        pieces.extend((0..reader.metadata().num_row_groups()).map(|group| (table.as_str(), path, group)));
    }
    let queue = Mutex::new(pieces.into_iter());
    let done = AtomicU64::new(0);
    let worker = || -> Result<()> {
        let mut conn = Conn::new(server.options().db_name(Some(database)))?;
        loop {
            let piece = queue.lock().expect("no worker panics holding the queue").next();
            let Some((table, path, group)) = piece else { return Ok(()) };
            insert_row_group(&mut conn, table, path, group, &done)?;
        }
    };
    progress::rows(&format!("loading {}", server.name()), total, &done, || {
        std::thread::scope(|threads| {
            let running = [threads.spawn(worker), threads.spawn(worker)];
            running.into_iter().try_for_each(|thread| thread.join().expect("a loader does not panic"))
        })
    })?;
    Ok(begin.elapsed())
}

fn open(path: &Path) -> Result<File> {
    File::open(path).context(|| format!("opening {}", path.display()))
}

fn insert_row_group(conn: &mut Conn, table: &str, path: &Path, group: usize, done: &AtomicU64) -> Result<()> {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(open(path)?)?.with_row_groups(vec![group]).build()?;
    let mut insert = Inserter::new(conn, table);
    for batch in reader {
        insert_batch(&mut insert, &batch?)?;
        done.fetch_add(insert.take_count(), Ordering::Relaxed);
    }
    insert.finish()
}

fn insert_batch(insert: &mut Inserter<'_>, batch: &RecordBatch) -> Result<()> {
    let format = FormatOptions::default();
    let mut columns = Vec::new();
    for array in batch.columns() {
        let numeric = array.data_type().is_numeric();
        columns.push((numeric, ArrayFormatter::try_new(array.as_ref(), &format)?));
    }
    for row in 0..batch.num_rows() {
        insert.row(|sql| {
            for (at, (numeric, column)) in columns.iter().enumerate() {
                if at > 0 {
                    sql.push(',');
                }
                let text = column.value(row).to_string();
                if *numeric { sql.push_str(&text) } else { quote(sql, &text) }
            }
        })?;
    }
    Ok(())
}
