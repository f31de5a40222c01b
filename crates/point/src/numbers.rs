//! The AUTO_INCREMENT values that a statement generates.

use avocet_engine::TableHandle;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalContext, SqlMode};
use avocet_types::{Datum, SqlType};

/// The AUTO_INCREMENT values of one statement. They are reserved for several rows at once; what is not used is lost.
#[derive(Default)]
pub struct Generated {
    next: u64,
    left: u64,
    /// How often numbers were reserved.
    reservations: u32,
    /// How many rows are expected to come, this one included, since the last time that none was.
    expected: u64,
    /// The row's that is being inserted.
    own: Option<u64>,
    /// The first one of a row that was inserted.
    first: u64,
}

impl Generated {
    /// The first number of a row that was inserted; 0 if there is none.
    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn reservations(&self) -> u32 {
        self.reservations
    }

    pub fn begin_row(&mut self) {
        self.own = None;
    }

    /// Whether the row's number was generated.
    pub fn is_numbered(&self) -> bool {
        self.own.is_some()
    }

    /// The row was not inserted: the next one takes its number.
    pub fn give_back(&mut self) {
        if let Some(own) = self.own.take() {
            self.next = own;
            self.left += 1;
        }
    }

    pub fn note_inserted(&mut self) {
        if self.first == 0 {
            self.first = self.own.unwrap_or(0);
        }
    }

    fn note_explicit(&mut self, table: &TableHandle, value: u64) {
        table.note_auto_increment(value);
        // Later numbers are greater than explicit ones: what was reserved below is not used.
        if value >= self.next {
            let passed = value.saturating_add(1) - self.next;
            self.left = self.left.saturating_sub(passed);
            self.next = value.saturating_add(1);
        }
    }

    /// Gives a row its AUTO_INCREMENT value, or notes the one that it has. If there is none left, one is reserved for each row that
    /// is expected. As InnoDB counts them, these are `rows` when the first one is asked for, less those that came since.
    pub fn number(
        &mut self,
        table: &TableHandle,
        column: usize,
        value: &mut Datum<'_>,
        rows: u64,
        ctx: &EvalContext,
    ) -> Result<(), SqlError> {
        let zero_asks = !ctx.sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        let mut numbered = Ok(());
        match *value {
            Datum::Int(v) if v != 0 || !zero_asks => self.note_explicit(table, v.max(0) as u64),
            Datum::UInt(v) if v != 0 || !zero_asks => self.note_explicit(table, v),
            Datum::Null | Datum::Int(_) | Datum::UInt(_) => {
                let ty = &table.def.columns[column].ty;
                numbered = self.generate(table, ty, rows).map(|next| {
                    *value = if ty.is_unsigned() { Datum::UInt(next) } else { Datum::Int(next as i64) };
                });
            }
            _ => {}
        }
        self.expected = self.expected.saturating_sub(1);
        numbered
    }

    /// The next number, reserved for `rows` if there is none left.
    fn generate(&mut self, table: &TableHandle, ty: &SqlType, rows: u64) -> Result<u64, SqlError> {
        if self.left == 0 {
            if self.expected == 0 {
                self.expected = rows;
            }
            self.next = table.reserve_auto_increment(self.expected);
            self.left = self.expected;
            self.reservations += 1;
        }
        let next = within_range(self.next, ty, self.first == 0)?;
        self.next += 1;
        self.left -= 1;
        self.own = Some(next);
        Ok(next)
    }
}

/// A number as a column of a type can have it. InnoDB's counter does not leave the type: behind the largest value a statement's
/// first row gets that one once more.
pub fn within_range(number: u64, ty: &SqlType, is_first: bool) -> Result<u64, SqlError> {
    let most = ty.int_range().map_or(i64::MAX as u64, |(_, most)| most as u64);
    match number {
        _ if number <= most && number < u64::MAX => Ok(number),
        _ if is_first && most < u64::MAX => Ok(most),
        _ => Err(ErrorCode::AUTOINC_READ_FAILED.with(&[])),
    }
}
