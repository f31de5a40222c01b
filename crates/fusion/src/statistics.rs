//! The engine's statistics in the binder's form.

use avocet_engine::{ColdValue, TableHandle};
use avocet_sql::bind::{ColumnStatistics, TableStatistics};
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
    TableStatistics { rows, columns: stats.columns.into_iter().enumerate().map(column).collect() }
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
