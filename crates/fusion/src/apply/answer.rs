//! What a subquery answers, and three-valued membership in its rows.
//!
//! Keys are bytes that order and compare as their values do (Arrow's row format, over sort keys for strings), one piece
//! for each column, so that a NULL in one column leaves the others to be compared.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, SortField};
use avocet_sql::plan::Comparison;
use datafusion::common::{Result, ScalarValue};

/// A subquery's answer for one combination of outer values.
pub enum Answer {
    Value(ScalarValue),
    Exists(bool),
    Set(KeySet),
    Rows(Vec<RecordBatch>),
}

/// One piece for each column; `None` for NULL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(Vec<Option<Box<[u8]>>>);

impl Key {
    fn is_complete(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// Whether the two are equal, or would be with other values in the place of NULLs.
    fn may_equal(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a.is_none() || b.is_none() || a == b)
    }

    pub fn bytes(&self) -> usize {
        self.0.iter().flatten().map(|piece| piece.len() + 16).sum::<usize>() + 48
    }
}

/// Makes keys of columns of given types.
pub struct KeyMaker(Vec<RowConverter>);

impl KeyMaker {
    pub fn new(types: &[DataType]) -> Result<Self> {
        let converter = |ty: &DataType| RowConverter::new(vec![SortField::new(ty.clone())]);
        Ok(Self(types.iter().map(converter).collect::<std::result::Result<_, _>>()?))
    }

    /// The key of each row.
    pub fn keys(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Key>> {
        let mut keys = vec![Key(Vec::with_capacity(columns.len())); rows];
        for (converter, column) in self.0.iter().zip(columns) {
            let column = without_negative_zero(column);
            let pieces = converter.convert_columns(std::slice::from_ref(&column))?;
            for (row, key) in keys.iter_mut().enumerate() {
                let present = column.is_valid(row) && *column.data_type() != DataType::Null;
                key.0.push(present.then(|| pieces.row(row).as_ref().into()));
            }
        }
        Ok(keys)
    }
}

fn without_negative_zero(column: &ArrayRef) -> ArrayRef {
    if let Some(doubles) = column.as_primitive_opt::<Float64Type>() {
        return Arc::new(doubles.unary::<_, Float64Type>(|v| v + 0.0));
    }
    match column.as_primitive_opt::<Float32Type>() {
        Some(floats) => Arc::new(floats.unary::<_, Float32Type>(|v| v + 0.0)),
        None => column.clone(),
    }
}

/// The rows of a subquery, as a set.
#[derive(Default)]
pub struct KeySet {
    complete: HashSet<Key>,
    /// Rows with NULLs.
    partial: HashSet<Key>,
    /// Of the complete rows' first column.
    least: Option<Box<[u8]>>,
    greatest: Option<Box<[u8]>>,
    bytes: usize,
}

impl KeySet {
    pub fn add(&mut self, key: Key) {
        let bytes = key.bytes();
        if !key.is_complete() {
            self.bytes += if self.partial.insert(key) { bytes } else { 0 };
            return;
        }
        if let Some(Some(piece)) = key.0.first() {
            if self.least.as_ref().is_none_or(|least| piece < least) {
                self.least = Some(piece.clone());
            }
            if self.greatest.as_ref().is_none_or(|greatest| piece > greatest) {
                self.greatest = Some(piece.clone());
            }
        }
        if self.complete.insert(key) {
            self.bytes += bytes;
        }
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.partial.is_empty()
    }

    /// `needle IN (rows)`; `None` is NULL.
    pub fn contains(&self, needle: &Key) -> Option<bool> {
        if needle.is_complete() {
            if self.complete.contains(needle) {
                return Some(true);
            }
        } else if self.complete.iter().any(|row| row.may_equal(needle)) {
            return None;
        }
        let unknown = self.partial.iter().any(|row| row.may_equal(needle));
        if unknown { None } else { Some(false) }
    }

    /// `needle op ANY|ALL (rows)`; `None` is NULL.
    pub fn compare(&self, needle: &Key, op: Comparison, all: bool) -> Option<bool> {
        if self.is_empty() {
            return Some(all);
        }
        let Some(Some(needle)) = needle.0.first() else { return None };
        // ALL fails where the opposite holds for one row.
        let wanted = if all { op.opposite() } else { op };
        if self.some_row(needle, wanted) {
            return Some(!all);
        }
        if self.partial.is_empty() { Some(all) } else { None }
    }

    fn some_row(&self, needle: &[u8], op: Comparison) -> bool {
        let (Some(least), Some(greatest)) = (self.least.as_deref(), self.greatest.as_deref()) else {
            return false;
        };
        match op {
            Comparison::Eq => self.complete.contains(&Key(vec![Some(needle.into())])),
            Comparison::Ne => needle != least || needle != greatest,
            Comparison::Lt => needle < greatest,
            Comparison::Le => needle <= greatest,
            Comparison::Gt => needle > least,
            Comparison::Ge => needle >= least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;

    fn set(values: &[Option<i64>]) -> (KeyMaker, KeySet) {
        let maker = KeyMaker::new(&[DataType::Int64]).unwrap();
        let mut set = KeySet::default();
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        maker.keys(&[column], values.len()).unwrap().into_iter().for_each(|key| set.add(key));
        (maker, set)
    }

    fn key(maker: &KeyMaker, value: Option<i64>) -> Key {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
        maker.keys(&[column], 1).unwrap().remove(0)
    }

    #[test]
    fn membership_has_three_values() {
        let (maker, with_null) = set(&[Some(1), None]);
        assert_eq!(with_null.contains(&key(&maker, Some(1))), Some(true));
        assert_eq!(with_null.contains(&key(&maker, Some(2))), None);
        assert_eq!(with_null.contains(&key(&maker, None)), None);
        let (maker, empty) = set(&[]);
        assert_eq!(empty.contains(&key(&maker, None)), Some(false));
    }

    #[test]
    fn rows_match_in_part() {
        let maker = KeyMaker::new(&[DataType::Int64, DataType::Int64]).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(1), Some(2)])),
            Arc::new(Int64Array::from(vec![None, Some(5)])),
        ];
        let mut set = KeySet::default();
        maker.keys(&columns, 2).unwrap().into_iter().for_each(|key| set.add(key));
        let needle = |a, b| {
            let columns: Vec<ArrayRef> =
                vec![Arc::new(Int64Array::from(vec![a])), Arc::new(Int64Array::from(vec![b]))];
            maker.keys(&columns, 1).unwrap().remove(0)
        };
        assert_eq!(set.contains(&needle(Some(1), Some(7))), None);
        assert_eq!(set.contains(&needle(Some(3), Some(7))), Some(false));
        assert_eq!(set.contains(&needle(Some(2), Some(5))), Some(true));
        assert_eq!(set.contains(&needle(None, Some(5))), None);
    }

    #[test]
    fn quantifiers_go_by_the_extremes() {
        let (maker, numbers) = set(&[Some(3), Some(7)]);
        let compare = |value, op, all| numbers.compare(&key(&maker, Some(value)), op, all);
        assert_eq!(compare(4, Comparison::Gt, false), Some(true));
        assert_eq!(compare(4, Comparison::Gt, true), Some(false));
        assert_eq!(compare(8, Comparison::Gt, true), Some(true));
        assert_eq!(compare(3, Comparison::Ne, false), Some(true));
        let (maker, with_null) = set(&[Some(3), None]);
        assert_eq!(with_null.compare(&key(&maker, Some(5)), Comparison::Gt, true), None);
        assert_eq!(with_null.compare(&key(&maker, Some(2)), Comparison::Gt, true), Some(false));
    }
}
