//! Keys: a value, or a tuple of values for the first so many columns of an index.

use std::ops::{Bound, RangeBounds};

use avocet_types::{Datum, Decimal, Value};

use super::field::{Date, DateTime, Time};
use crate::error::{EngineError, Result};
use crate::keys::KeyRange;
use crate::table::{IndexHandle, TableHandle};
use crate::values::exactly;

/// A value of one column of a key.
pub trait KeyPart {
    fn datum(&self) -> Datum<'_>;
}

/// Values of an index's first columns, in their order.
pub trait Key {
    fn parts(&self) -> Vec<Datum<'_>>;
}

macro_rules! parts {
    ($($ty:ty, $value:ident => $datum:expr;)*) => { $(
        impl KeyPart for $ty {
            fn datum(&self) -> Datum<'_> {
                let $value = self;
                $datum
            }
        }

        impl Key for $ty {
            fn parts(&self) -> Vec<Datum<'_>> {
                vec![self.datum()]
            }
        }
    )* };
}

parts! {
    i8, v => Datum::Int((*v).into());
    i16, v => Datum::Int((*v).into());
    i32, v => Datum::Int((*v).into());
    i64, v => Datum::Int(*v);
    u8, v => Datum::UInt((*v).into());
    u16, v => Datum::UInt((*v).into());
    u32, v => Datum::UInt((*v).into());
    u64, v => Datum::UInt(*v);
    bool, v => Datum::Int((*v).into());
    Decimal, v => Datum::Decimal(v.clone());
    &str, v => Datum::str(v);
    String, v => Datum::str(v);
    &[u8], v => Datum::bytes(v);
    Vec<u8>, v => Datum::bytes(v);
    Date, v => Datum::Date(v.0);
    DateTime, v => Datum::DateTime(v.0);
    Time, v => Datum::Time(v.0);
    Value, v => v.clone();
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => { $(
        impl<$($name: KeyPart),+> Key for ($($name,)+) {
            #[allow(non_snake_case, reason = "a variable for each type")]
            fn parts(&self) -> Vec<Datum<'_>> {
                let ($($name,)+) = self;
                vec![$($name.datum()),+]
            }
        }
    )* };
}

tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

/// The bytes that entries of an index with this key, or with this beginning of a key, begin with.
pub(super) fn encode(table: &TableHandle, index: &IndexHandle, key: &impl Key) -> Result<Vec<u8>> {
    let parts = key.parts();
    let wrong = |why: String| EngineError::WrongShape { table: table.def.name.clone(), why };
    if parts.len() > index.def.parts.len() {
        return Err(wrong(format!("index {} has only {} columns", index.def.name, index.def.parts.len())));
    }
    let column = |at: usize| &table.def.columns[index.def.parts[at].column];
    let values: Vec<_> =
        parts.into_iter().enumerate().map(|(at, v)| exactly(v, column(at))).collect::<Result<_>>()?;
    let mut bytes = Vec::new();
    match index.keys.encode_prefix(&values, &mut bytes) {
        true => Ok(bytes),
        false => Err(wrong(format!("a key of index {} is of other types", index.def.name))),
    }
}

/// The entries of an index in a range of keys.
pub(super) fn range<K: Key>(
    table: &TableHandle,
    index: &IndexHandle,
    keys: &impl RangeBounds<K>,
) -> Result<KeyRange> {
    let bound = |bound: Bound<&K>| {
        Ok::<_, EngineError>(match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(key) => Bound::Included(encode(table, index, key)?),
            Bound::Excluded(key) => Bound::Excluded(encode(table, index, key)?),
        })
    };
    let (lower, upper) = (bound(keys.start_bound())?, bound(keys.end_bound())?);
    Ok(KeyRange::new(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice)))
}
