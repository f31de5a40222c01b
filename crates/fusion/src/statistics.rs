//! The engine's statistics in the binder's form.

use avocet_engine::{ColdType, ColdValue, PathStats, TableHandle};
use avocet_sql::bind::{ColumnStatistics, PathStatistics, TableStatistics};
use avocet_types::json::shred::Kind;
use avocet_types::{Datum, SqlType, Value};

/// The engine's statistics in the binder's form.
pub fn statistics_of(table: &TableHandle) -> TableStatistics {
    let stats = table.stats();
    let rows = stats.rows;
    let column = |(at, column): (usize, avocet_engine::ColumnStats)| {
        let ty = &table.def.columns[at].ty;
        ColumnStatistics {
            min: column.min.and_then(|v| value_of(&v, ty)),
            max: column.max.and_then(|v| value_of(&v, ty)),
            nulls: column.null_fraction.map(|share| (share * rows as f64) as u64),
            distinct: column.distinct,
        }
    };
    let paths = stats.paths.iter().filter_map(path_statistics_of).collect();
    TableStatistics {
        rows,
        most_rows: stats.most_rows,
        columns: stats.columns.into_iter().enumerate().map(column).collect(),
        paths,
    }
}

fn path_statistics_of(path: &PathStats) -> Option<PathStatistics> {
    let kind = match path.ty {
        ColdType::Int64 => Kind::Int,
        ColdType::UInt64 => Kind::UInt,
        ColdType::Float64 => Kind::Double,
        ColdType::Int8 => Kind::Bool,
        ColdType::Utf8 => Kind::String,
        _ => return None,
    };
    let magnitude = |bound: &ColdValue<'_>| bound.as_integer()?.to_i128().map(|v| v.unsigned_abs() as f64);
    let greatest = match &path.bounds {
        None => Some(0.0),
        Some(bounds) => magnitude(&bounds.min).zip(magnitude(&bounds.max)).map(|(a, b)| a.max(b)),
    };
    Some(PathStatistics { column: path.column, names: path.names.clone(), kind, greatest })
}

/// A value of a column block as a datum; `None` where blocks keep only part of it.
fn value_of(value: &ColdValue<'_>, ty: &SqlType) -> Option<Value> {
    use avocet_types::Decimal;
    Some(match (value, ty) {
        (ColdValue::Int(v), SqlType::Date) => Datum::Date(i32::try_from(*v).ok()?),
        (ColdValue::Int(v), SqlType::DateTime { .. } | SqlType::Timestamp { .. }) => Datum::DateTime(*v),
        (ColdValue::Int(v), SqlType::Time { .. }) => Datum::Time(*v),
        (ColdValue::Int(v), SqlType::Decimal { scale, .. }) => {
            Datum::Decimal(Decimal::new(i128::from(*v), *scale))
        }
        (ColdValue::Int(v), _) => Datum::Int(*v),
        (ColdValue::UInt(v), _) => Datum::UInt(*v),
        (ColdValue::Int128(v), SqlType::Decimal { scale, .. }) => Datum::Decimal(Decimal::new(*v, *scale)),
        _ => return None,
    })
}
