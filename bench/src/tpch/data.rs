//! TPC-H's data as Parquet files, generated once for each scale factor and kept in the cache.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::record_batch::RecordBatchReader;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tpchgen::generators::*;
use tpchgen_arrow::*;

use crate::analytics::load::Table;
use crate::cache;
use crate::error::{IoContext, Result};

pub const TABLES: [&str; 8] =
    ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// The folder with a Parquet file for each table.
pub fn folder(scale: f64) -> Result<PathBuf> {
    cache::folder(&format!("tpch-sf{scale}"), |dir| {
        eprintln!("generating TPC-H data at scale factor {scale}");
        write(dir, "region", RegionArrow::new(RegionGenerator::new(scale, 1, 1)))?;
        write(dir, "nation", NationArrow::new(NationGenerator::new(scale, 1, 1)))?;
        write(dir, "supplier", SupplierArrow::new(SupplierGenerator::new(scale, 1, 1)))?;
        write(dir, "customer", CustomerArrow::new(CustomerGenerator::new(scale, 1, 1)))?;
        write(dir, "part", PartArrow::new(PartGenerator::new(scale, 1, 1)))?;
        write(dir, "partsupp", PartSuppArrow::new(PartSuppGenerator::new(scale, 1, 1)))?;
        write(dir, "orders", OrderArrow::new(OrderGenerator::new(scale, 1, 1)))?;
        write(dir, "lineitem", LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)))
    })
}

/// The tables with their files.
pub fn files(scale: f64) -> Result<Vec<Table>> {
    let folder = folder(scale)?;
    Ok(TABLES.iter().map(|table| ((*table).to_owned(), folder.join(format!("{table}.parquet")))).collect())
}

fn write(dir: &Path, table: &str, batches: impl RecordBatchReader) -> Result<()> {
    let path = dir.join(format!("{table}.parquet"));
    let file = File::create(&path).context(|| format!("creating {}", path.display()))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(131_072))
        .build();
    let mut writer = ArrowWriter::try_new(file, batches.schema(), Some(properties))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}
