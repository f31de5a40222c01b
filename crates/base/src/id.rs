//! Every id is a type of its own, so that a row id can not be passed where a log position is meant.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($repr:ty), $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    )*};
}

ids! {
    /// A table, unique for the life of the data directory; never reused, also not after DROP or TRUNCATE.
    TableId(u32), "table#";
    /// An index of some table, unique for the life of the data directory.
    IndexId(u32), "index#";
    /// A database (schema).
    DatabaseId(u32), "db#";
    /// A column's position in its table, from 0.
    ColumnNo(u16), "column#";
    /// A row's stable place in its relation: segment in the high 48 bits, ordinal in the low 16.
    RowId(u64), "row#";
    /// A run of 65,536 row ids: `RowId >> 16`.
    SegmentNo(u64), "segment#";
    /// A column block in the block store, unique for the life of the data directory.
    BlockId(u64), "block#";
    /// A commit timestamp. A snapshot is one of these; 0 is before everything.
    Timestamp(u64), "ts#";
    /// A running transaction.
    TxnId(u64), "txn#";
    /// A position in the redo log: bytes since its beginning.
    Lsn(u64), "lsn#";
}

impl TableId {
    /// Ids of temporary tables, which no log and no checkpoint knows; they may be given out again. (Those of tables that are not
    /// stored at all come behind them.)
    pub const TEMPORARY: std::ops::Range<u32> = 1 << 31..3 << 30;

    pub const fn is_temporary(self) -> bool {
        Self::TEMPORARY.start <= self.0 && self.0 < Self::TEMPORARY.end
    }
}

impl RowId {
    /// Rows per segment.
    pub const PER_SEGMENT: u64 = 1 << 16;

    pub const fn new(segment: SegmentNo, ordinal: u16) -> Self {
        Self(segment.0 << 16 | ordinal as u64)
    }

    pub const fn segment(self) -> SegmentNo {
        SegmentNo(self.0 >> 16)
    }

    pub const fn ordinal(self) -> u16 {
        self.0 as u16
    }
}

impl Timestamp {
    pub const MIN: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX >> 1);
}
