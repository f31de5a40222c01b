//! Files as batches of columns, whatever their format.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use avocet_types::{Collation, IntWidth, LobSize, SqlType};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::delimited::{Delimited, Format};
use crate::Failure;

/// Rows of a file: one array per column, each with the type that its values are read as.
pub struct Batch {
    pub columns: Vec<(ArrayRef, SqlType)>,
    pub rows: usize,
}

/// A file that is being read.
pub struct Source {
    /// Column names, where the file has them.
    pub names: Option<Vec<String>>,
    /// What progress is counted in: bytes, or rows for Parquet.
    pub total: u64,
    reader: Reader,
    rows_read: u64,
}

enum Reader {
    Delimited(Box<Delimited>),
    Parquet(ParquetRecordBatchReader),
}

/// Texts of any length: what delimited files are made of.
const TEXT: SqlType = SqlType::Text { size: LobSize::Long, collation: Collation::DEFAULT };

impl Source {
    /// Opens a file by its name's ending. `header`: the first line of a delimited file holds column names.
    pub fn open(path: &Path, header: bool) -> Result<Self, Failure> {
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet")) {
            return Self::open_parquet(path);
        }
        let format = Format::of(path).ok_or("not a .csv, .tsv, .tbl or .parquet file")?;
        let total = std::fs::metadata(path)?.len();
        let mut file = Delimited::open(path, format)?;
        let names = header.then(|| file.header()).transpose()?;
        Ok(Self { names, total, reader: Reader::Delimited(Box::new(file)), rows_read: 0 })
    }

    fn open_parquet(path: &Path) -> Result<Self, Failure> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
        let names = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let total = u64::try_from(builder.metadata().file_metadata().num_rows())?;
        let reader = builder.with_batch_size(8192).build()?;
        Ok(Self { names: Some(names), total, reader: Reader::Parquet(reader), rows_read: 0 })
    }

    /// How far the file has been read, of `total`.
    pub fn position(&self) -> u64 {
        match &self.reader {
            Reader::Delimited(file) => file.bytes_read,
            Reader::Parquet(_) => self.rows_read,
        }
    }

    /// The next rows; `None` at the end.
    pub fn batch(&mut self) -> Result<Option<Batch>, Failure> {
        let columns: Option<Vec<(ArrayRef, SqlType)>> = match &mut self.reader {
            Reader::Delimited(file) => {
                file.batch()?.map(|columns| columns.into_iter().map(|column| (column, TEXT)).collect())
            }
            Reader::Parquet(reader) => match reader.next().transpose()? {
                Some(batch) => Some(batch.columns().iter().map(plain).collect::<Result<_, _>>()?),
                None => None,
            },
        };
        let Some(columns) = columns else { return Ok(None) };
        let rows = columns.first().map_or(0, |(array, _)| array.len());
        self.rows_read += rows as u64;
        Ok(Some(Batch { columns, rows }))
    }
}

/// An array in the one form that its SQL type has.
fn plain(array: &ArrayRef) -> Result<(ArrayRef, SqlType), Failure> {
    let ty = sql_type(array.data_type())
        .ok_or_else(|| format!("columns of type {} can not be loaded", array.data_type()))?;
    let wanted = ty.arrow_type();
    if *array.data_type() == wanted {
        return Ok((Arc::clone(array), ty));
    }
    Ok((cast(array, &wanted)?, ty))
}

/// The SQL type that holds all values of an Arrow type.
fn sql_type(data_type: &DataType) -> Option<SqlType> {
    let int = |width, unsigned| Some(SqlType::Int { width, unsigned });
    match data_type {
        DataType::Null => Some(SqlType::Null),
        DataType::Boolean => Some(SqlType::Bool),
        DataType::Int8 => int(IntWidth::W8, false),
        DataType::Int16 => int(IntWidth::W16, false),
        DataType::Int32 => int(IntWidth::W32, false),
        DataType::Int64 => int(IntWidth::W64, false),
        DataType::UInt8 => int(IntWidth::W8, true),
        DataType::UInt16 => int(IntWidth::W16, true),
        DataType::UInt32 => int(IntWidth::W32, true),
        DataType::UInt64 => int(IntWidth::W64, true),
        DataType::Float32 => Some(SqlType::FLOAT),
        DataType::Float64 => Some(SqlType::DOUBLE),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => {
            Some(SqlType::Decimal { precision: *p, scale: u8::try_from(*s).ok()?, unsigned: false })
        }
        DataType::Date32 | DataType::Date64 => Some(SqlType::Date),
        DataType::Timestamp(TimeUnit::Second, _) => Some(SqlType::DateTime { fsp: 0 }),
        DataType::Timestamp(TimeUnit::Millisecond, _) => Some(SqlType::DateTime { fsp: 3 }),
        DataType::Timestamp(_, _) => Some(SqlType::DateTime { fsp: 6 }),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(TEXT),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(SqlType::Blob { size: LobSize::Long })
        }
        DataType::Dictionary(_, values) => sql_type(values),
        _ => None,
    }
}
