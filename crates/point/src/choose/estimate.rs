//! How many rows a way is taken to visit, as it grows with the table.

/// More rows than this are for the analytical path.
pub const MANY_ROWS: f64 = 20_000.0;
/// In a table of so many rows it matters little which way leads to them.
pub const SMALL_TABLE: f64 = 1_000.0;
/// Reading a table of so many rows one after the other takes no longer than the analytical path does to begin: a fixed millisecond, and
/// more where other threads want the processors.
pub const READ_WHOLE: f64 = 4_000.0;
/// Tables are taken to have at least so many rows when ways are compared: they will have.
pub const LIKELY_ROWS: f64 = 10_000.0;
/// Rows that are equal in the first columns of a wanted order.
pub const LIKELY_EQUALS: f64 = 8.0;
/// What a range leaves of the rows, where nothing is known: with one bound, with two.
pub const OPEN_RANGE: f64 = 1.0 / 3.0;
pub const CLOSED_RANGE: f64 = 1.0 / 20.0;
/// What is left where single values are left out.
pub const NEARLY_ALL: f64 = 0.99;

/// Estimated rows: `factor · rows^power`.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub factor: f64,
    pub power: f64,
}

impl Estimate {
    pub const ONE: Self = Self { factor: 1.0, power: 0.0 };

    pub fn rows(self, table: f64) -> f64 {
        (self.factor * table.powf(self.power)).min(table).max(0.0)
    }

    /// That of several ways together: right for a table of the likely size, growing as the way that grows fastest.
    pub fn sum<'w>(ways: impl Iterator<Item = &'w Self> + Clone) -> Self {
        let power = ways.clone().map(|way| way.power).fold(0.0, f64::max);
        let rows: f64 = ways.map(|way| way.factor * LIKELY_ROWS.powf(way.power)).sum();
        Self { factor: rows / LIKELY_ROWS.powf(power), power }
    }

    /// That of what is in both of two: less than the lesser.
    pub fn both(self, other: Self) -> Self {
        let least = if self.likely() <= other.likely() { self } else { other };
        Self { factor: least.factor / 2.0, ..least }
    }

    /// That of a part of `all`.
    pub fn within(self, all: Self) -> Self {
        if self.likely() < all.likely() { self } else { Self { factor: all.factor * 0.99, ..all } }
    }

    fn likely(self) -> f64 {
        self.rows(LIKELY_ROWS)
    }

    /// Up to how many rows of the table the estimate is few.
    pub fn row_limit(self) -> u64 {
        if self.power == 0.0 {
            return if self.factor <= MANY_ROWS { u64::MAX } else { 0 };
        }
        let most = if self.power >= 1.0 && self.factor > 0.1 { SMALL_TABLE } else { MANY_ROWS };
        (most / self.factor).powf(1.0 / self.power).max(READ_WHOLE) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_of_a_large_table_are_few() {
        let order_lines = Estimate { factor: CLOSED_RANGE, power: 0.5 };
        assert!(order_lines.row_limit() > 100_000_000);
        let half = Estimate { factor: OPEN_RANGE, power: 1.0 };
        assert!(half.row_limit() < 10_000);
    }
}
