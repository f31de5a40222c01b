//! Options of tables that say how a file-based engine is to keep them. Nothing here obeys them; they are kept so that SHOW CREATE TABLE
//! gives a definition back, and a dump comes out as it went in.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// In the order of SHOW CREATE TABLE. The numbers are written into definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StatedOption {
    MinRows = 1,
    MaxRows = 2,
    AvgRowLength = 3,
    PackKeys = 4,
    StatsPersistent = 5,
    StatsAutoRecalc = 6,
    StatsSamplePages = 7,
    Checksum = 8,
    DelayKeyWrite = 9,
    RowFormat = 10,
    KeyBlockSize = 11,
}

/// The values of ROW_FORMAT, from 1.
const ROW_FORMATS: [&str; 4] = ["DYNAMIC", "COMPRESSED", "REDUNDANT", "COMPACT"];

impl StatedOption {
    const ALL: [Self; 11] = [
        Self::MinRows,
        Self::MaxRows,
        Self::AvgRowLength,
        Self::PackKeys,
        Self::StatsPersistent,
        Self::StatsAutoRecalc,
        Self::StatsSamplePages,
        Self::Checksum,
        Self::DelayKeyWrite,
        Self::RowFormat,
        Self::KeyBlockSize,
    ];

    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|option| *option as u8 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::MinRows => "MIN_ROWS",
            Self::MaxRows => "MAX_ROWS",
            Self::AvgRowLength => "AVG_ROW_LENGTH",
            Self::PackKeys => "PACK_KEYS",
            Self::StatsPersistent => "STATS_PERSISTENT",
            Self::StatsAutoRecalc => "STATS_AUTO_RECALC",
            Self::StatsSamplePages => "STATS_SAMPLE_PAGES",
            Self::Checksum => "CHECKSUM",
            Self::DelayKeyWrite => "DELAY_KEY_WRITE",
            Self::RowFormat => "ROW_FORMAT",
            Self::KeyBlockSize => "KEY_BLOCK_SIZE",
        }
    }

    /// Whether 0 is a value of its own, and not what a table has that says nothing.
    const fn has_zero(self) -> bool {
        matches!(self, Self::PackKeys | Self::StatsPersistent | Self::StatsAutoRecalc)
    }

    /// The number of a value of ROW_FORMAT; none for the default, and for formats that InnoDB does not have.
    pub fn row_format(word: &str) -> Option<u64> {
        ROW_FORMATS.iter().position(|known| known.eq_ignore_ascii_case(word)).map(|at| at as u64 + 1)
    }
}

/// Those that a table's definition states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedOptions(BTreeMap<StatedOption, u64>);

impl StatedOptions {
    /// `None` is DEFAULT.
    pub fn set(&mut self, option: StatedOption, value: Option<u64>) {
        match value.filter(|value| *value > 0 || option.has_zero()) {
            Some(value) => drop(self.0.insert(option, value)),
            None => drop(self.0.remove(&option)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (StatedOption, u64)> {
        self.0.iter().map(|(option, value)| (*option, *value))
    }

    fn value(&self, option: StatedOption) -> Option<u64> {
        self.0.get(&option).copied()
    }

    /// As `TABLES.ROW_FORMAT` has it.
    pub fn row_format(&self) -> &'static str {
        match (self.value(StatedOption::RowFormat), self.value(StatedOption::KeyBlockSize)) {
            (Some(2), _) | (None, Some(_)) => "Compressed",
            (Some(3), _) => "Redundant",
            (Some(4), _) => "Compact",
            _ => "Dynamic",
        }
    }

    /// As `TABLES.CREATE_OPTIONS` has them.
    pub fn create_options(&self) -> String {
        use StatedOption as O;
        const ORDER: [StatedOption; 11] = [
            O::MaxRows,
            O::MinRows,
            O::AvgRowLength,
            O::RowFormat,
            O::KeyBlockSize,
            O::StatsSamplePages,
            O::StatsAutoRecalc,
            O::StatsPersistent,
            O::PackKeys,
            O::Checksum,
            O::DelayKeyWrite,
        ];
        let shown = ORDER.into_iter().filter_map(|option| {
            let name = match option {
                O::KeyBlockSize => option.name().to_owned(),
                _ => option.name().to_lowercase(),
            };
            Some(format!("{name}={}", Shown(option, self.value(option)?)))
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

/// As SHOW CREATE TABLE has them, with a space before each.
impl Display for StatedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (option, value) in self.iter() {
            write!(f, " {}={}", option.name(), Shown(option, value))?;
        }
        Ok(())
    }
}

struct Shown(StatedOption, u64);

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self(StatedOption::RowFormat, value) => {
                usize::try_from(*value).ok().and_then(|value| ROW_FORMATS.get(value.checked_sub(1)?))
            }
            _ => None,
        };
        match word {
            Some(word) => f.write_str(word),
            None => write!(f, "{}", self.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_shown_in_their_orders() {
        let mut options = StatedOptions::default();
        options.set(StatedOption::RowFormat, StatedOption::row_format("compact"));
        options.set(StatedOption::MaxRows, Some(10));
        options.set(StatedOption::MinRows, Some(5));
        options.set(StatedOption::PackKeys, Some(0));
        options.set(StatedOption::Checksum, Some(0));
        assert_eq!(options.to_string(), " MIN_ROWS=5 MAX_ROWS=10 PACK_KEYS=0 ROW_FORMAT=COMPACT");
        assert_eq!(options.create_options(), "max_rows=10 min_rows=5 row_format=COMPACT pack_keys=0");
        assert_eq!(options.row_format(), "Compact");
        for option in StatedOption::ALL {
            assert_eq!(StatedOption::of_number(option as u8), Some(option));
            options.set(option, None);
        }
        assert!(options.is_empty());
    }
}
