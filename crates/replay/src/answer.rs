//! What a server has answered, in bounded memory.
//!
//! Rows are kept up to [`KEPT_BYTES`]. Of larger results there are sums that do not depend on the order of rows: of a hash of each row
//! without its approximate numbers, and of these numbers, column by column; and a hash in order of the columns that ORDER BY may name.

use std::hash::{BuildHasher, Hash, Hasher};
use std::time::Duration;

use foldhash::quality::FixedState;
use mysql::consts::{ColumnFlags, ColumnType};

/// What is kept of a result for comparing it row by row.
pub const KEPT_BYTES: usize = 16 << 20;

pub type Row = Vec<Option<Vec<u8>>>;

/// A column of a result, as its metadata says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: ColumnType,
    pub unsigned: bool,
    /// Text, not bytes.
    pub text: bool,
}

impl Column {
    pub fn of(column: &mysql::Column) -> Self {
        const BINARY: u16 = 63;
        Self {
            name: column.name_str().into_owned(),
            kind: column.column_type(),
            unsigned: column.flags().contains(ColumnFlags::UNSIGNED_FLAG),
            text: column.character_set() != BINARY,
        }
    }

    pub fn is_approximate(&self) -> bool {
        matches!(self.kind, ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_DOUBLE)
    }

    /// As in SQL, for people.
    pub fn shown(&self) -> String {
        let kind = format!("{:?}", self.kind);
        let kind = kind.trim_start_matches("MYSQL_TYPE_");
        format!(
            "{kind}{}{}",
            if self.unsigned { " UNSIGNED" } else { "" },
            if self.text { "" } else { " (binary)" }
        )
    }
}

/// Sums over rows that their order does not change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of two hashes of each row, without approximate numbers.
    pub exact: [u64; 2],
    /// By column: the numbers' sum and the sum of their magnitudes. Zero for other columns.
    pub approximate: Vec<(f64, f64)>,
    /// By column: a hash of its values in their order.
    pub in_order: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub rows: u64,
    /// The first rows; all of them if there are as many as `rows`.
    pub kept: Vec<Row>,
    pub kept_bytes: usize,
    pub sums: Sums,
    pub warnings: u16,
    /// The number and text of an error.
    pub error: Option<(u16, String)>,
    /// From the statement's sending to its last row.
    pub took: Duration,
    /// The replay has ended it.
    pub killed: bool,
}

fn hash_of(seed: u64, value: &impl Hash) -> u64 {
    FixedState::with_seed(seed).hash_one(value)
}

impl Answer {
    /// The columns are known.
    pub fn begin(&mut self) {
        self.sums.approximate = vec![(0.0, 0.0); self.columns.len()];
        self.sums.in_order = vec![0; self.columns.len()];
    }

    pub fn add(&mut self, row: impl Iterator<Item = Option<Vec<u8>>>) {
        let row: Row = row.collect();
        self.rows += 1;
        let mut hashers = [FixedState::with_seed(1).build_hasher(), FixedState::with_seed(2).build_hasher()];
        for (at, (value, column)) in row.iter().zip(&self.columns).enumerate() {
            if column.is_approximate() {
                let number = value.as_deref().map_or(0.0, number);
                let (sum, size) = &mut self.sums.approximate[at];
                *sum += number;
                *size += number.abs();
                value.is_none().hash(&mut hashers[0]);
                value.is_none().hash(&mut hashers[1]);
            } else {
                hashers.iter_mut().for_each(|hasher| value.hash(hasher));
            }
            let before = self.sums.in_order[at];
            self.sums.in_order[at] = hash_of(before, value);
        }
        for (sum, hasher) in self.sums.exact.iter_mut().zip(hashers) {
            *sum = sum.wrapping_add(hasher.finish());
        }
        let bytes: usize = row.iter().map(|value| 32 + value.as_ref().map_or(0, Vec::len)).sum();
        if self.is_whole_before_last() && self.kept_bytes + bytes <= KEPT_BYTES {
            self.kept_bytes += bytes;
            self.kept.push(row);
        }
    }

    fn is_whole_before_last(&self) -> bool {
        self.kept.len() as u64 + 1 == self.rows
    }

    /// Whether all rows are kept.
    pub fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.rows
    }

    /// Equal for equal answers, whatever the order of their rows and the last digits of approximate numbers.
    pub fn fingerprint(&self) -> (u64, [u64; 2], Option<u16>, u16) {
        (self.rows, self.sums.exact, self.error.as_ref().map(|(code, _)| *code), self.warnings)
    }
}

/// An approximate number as a server writes it.
pub fn number(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}
