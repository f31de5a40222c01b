//! What redo records say. See docs/log.md for the frame around them.
//!
//! ```text
//!  transaction record (kind 1), tag = commit timestamp: operations, one after the other
//!    1 insert   table varint │ row u64 │ image bytes
//!    2 update   table varint │ row u64 │ delta bytes
//!    3 delete   table varint │ row u64
//!    4 block    table varint │ segment u64 │ block u64        rows that were loaded straight to a column block
//!    6 before   table varint │ row u64 │ image bytes          for change capture: the row that the next operation changes
//!    7 moves    table varint │ row u64 │ image bytes          the same; a delete and an insert follow, which are one update
//!    8 stamp    0 varint │ microseconds u64                   for change capture, and last: when it was committed
//!  catalog record (kind 2): one catalog change (`catalog::Change`), and the statement that it came of (`redo/statement.rs`)
//!  segment record (kind 3): table varint │ segment u64 │ block u64 (0: the segment is empty now)
//!  call record (kind 4), tag = commit timestamp: a transaction, as a call of a procedure (`redo/call.rs`)
//!  applied record (kind 5), tag = commit timestamp: where it comes from (`redo/origin.rs`), then operations
//! ```
//!
//! A segment record says that the rows of a segment have moved to another representation: frozen, compacted
//! or emptied. It changes no row.

pub(crate) mod apply;
mod call;
mod origin;
pub(crate) mod replay;
mod statement;

use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::{BlockId, RowId, SegmentNo, TableId};

pub use origin::Origin;
pub use statement::Statement;

pub(crate) use call::{CallRecord, Inputs, put_head};

pub(crate) const KIND_TXN: u8 = 1;
pub(crate) const KIND_CATALOG: u8 = 2;
pub(crate) const KIND_SEGMENT: u8 = 3;
pub(crate) const KIND_CALL: u8 = 4;
pub(crate) const KIND_APPLIED: u8 = 5;

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
/// As written before the number of rows was in it.
const UNCOUNTED_BLOCK: u8 = 4;
const BLOCK: u8 = 5;
const BEFORE: u8 = 6;
const MOVES: u8 = 7;
const STAMP: u8 = 8;

/// One change of a committed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op<'a> {
    Insert {
        table: TableId,
        row: RowId,
        image: &'a [u8],
    },
    Update {
        table: TableId,
        row: RowId,
        delta: &'a [u8],
    },
    Delete {
        table: TableId,
        row: RowId,
    },
    /// A loaded block with so many rows, unless the log is of a release that did not say.
    Block {
        table: TableId,
        segment: SegmentNo,
        block: BlockId,
        rows: Option<u32>,
    },
    /// The row as it was before the next operation; before the next two, a delete and an insert, if they move it. Changes
    /// nothing: see [`crate::ChangeStream`].
    Before {
        table: TableId,
        row: RowId,
        image: &'a [u8],
        moves: bool,
    },
    /// When the transaction was committed, in microseconds since 1970; 0 if its changes are to be told to nobody. Changes nothing.
    Stamp {
        wall_us: u64,
    },
}

/// A segment's rows are in `block` from now on (`None`: it has none left).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentChange {
    pub table: TableId,
    pub segment: SegmentNo,
    pub block: Option<BlockId>,
}

impl Op<'_> {
    /// What it takes beside its bytes, about.
    const HEAD_BYTES: usize = 16;

    pub fn table(&self) -> TableId {
        match *self {
            Self::Insert { table, .. }
            | Self::Update { table, .. }
            | Self::Delete { table, .. }
            | Self::Block { table, .. }
            | Self::Before { table, .. } => table,
            Self::Stamp { .. } => TableId(0),
        }
    }

    /// Bytes that its encoding takes, about; at least one.
    pub fn size_hint(&self) -> usize {
        Self::HEAD_BYTES
            + match self {
                Self::Insert { image, .. } | Self::Before { image, .. } => image.len(),
                Self::Update { delta, .. } => delta.len(),
                Self::Delete { .. } | Self::Block { .. } | Self::Stamp { .. } => 0,
            }
    }

    pub fn encode(&self, to: &mut Vec<u8>) {
        let mut head = |op: u8, table: TableId, place: u64| {
            to.put_u8(op);
            to.put_varint(table.0.into());
            to.put_u64(place);
        };
        match *self {
            Self::Insert { table, row, image } => {
                head(INSERT, table, row.0);
                to.put_bytes(image);
            }
            Self::Update { table, row, delta } => {
                head(UPDATE, table, row.0);
                to.put_bytes(delta);
            }
            Self::Delete { table, row } => head(DELETE, table, row.0),
            Self::Block { table, segment, block, rows } => {
                head(if rows.is_some() { BLOCK } else { UNCOUNTED_BLOCK }, table, segment.0);
                to.put_u64(block.0);
                rows.iter().for_each(|&rows| to.put_varint(rows.into()));
            }
            Self::Before { table, row, image, moves } => {
                head(if moves { MOVES } else { BEFORE }, table, row.0);
                to.put_bytes(image);
            }
            Self::Stamp { wall_us } => head(STAMP, TableId(0), wall_us),
        }
    }
}

/// The operations of a transaction record.
pub fn ops(payload: &[u8]) -> impl Iterator<Item = Result<Op<'_>, Malformed>> {
    let mut reader = Reader::new(payload);
    std::iter::from_fn(move || (!reader.is_empty()).then(|| next_op(&mut reader)))
}

/// The operations of a transaction record, each with its bytes.
pub fn ops_with_bytes(payload: &[u8]) -> impl Iterator<Item = Result<(Op<'_>, &[u8]), Malformed>> {
    let mut reader = Reader::new(payload);
    std::iter::from_fn(move || {
        (!reader.is_empty()).then(|| {
            let start = reader.position();
            next_op(&mut reader).map(|op| (op, &payload[start..reader.position()]))
        })
    })
}

fn next_op<'a>(reader: &mut Reader<'a>) -> Result<Op<'a>, Malformed> {
    const WHAT: &str = "redo operation";
    let op = reader.u8(WHAT)?;
    let table = table_id(reader, WHAT)?;
    let place = reader.u64(WHAT)?;
    Ok(match op {
        INSERT => Op::Insert { table, row: RowId(place), image: reader.bytes(WHAT)? },
        UPDATE => Op::Update { table, row: RowId(place), delta: reader.bytes(WHAT)? },
        DELETE => Op::Delete { table, row: RowId(place) },
        BEFORE | MOVES => {
            Op::Before { table, row: RowId(place), image: reader.bytes(WHAT)?, moves: op == MOVES }
        }
        STAMP => Op::Stamp { wall_us: place },
        UNCOUNTED_BLOCK | BLOCK => {
            let block = BlockId(reader.u64(WHAT)?);
            let rows = match op == BLOCK {
                true => Some(u32::try_from(reader.varint(WHAT)?).map_err(|_| reader.malformed(WHAT))?),
                false => None,
            };
            Op::Block { table, segment: SegmentNo(place), block, rows }
        }
        _ => return Err(reader.malformed(WHAT)),
    })
}

fn table_id(reader: &mut Reader<'_>, what: &'static str) -> Result<TableId, Malformed> {
    let id = reader.varint(what)?;
    u32::try_from(id).map(TableId).map_err(|_| reader.malformed(what))
}

impl SegmentChange {
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(24);
        to.put_varint(self.table.0.into());
        to.put_u64(self.segment.0);
        to.put_u64(self.block.map_or(0, |b| b.0));
        to
    }

    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "segment record";
        let mut reader = Reader::new(payload);
        let table = table_id(&mut reader, WHAT)?;
        let segment = SegmentNo(reader.u64(WHAT)?);
        let block = reader.u64(WHAT)?;
        reader.finish(WHAT)?;
        Ok(Self { table, segment, block: (block != 0).then_some(BlockId(block)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip() {
        let (table, row) = (TableId(300), RowId(1 << 40));
        let all = [
            Op::Insert { table, row, image: b"image" },
            Op::Update { table, row, delta: b"" },
            Op::Delete { table, row },
            Op::Block { table, segment: SegmentNo(9), block: BlockId(77), rows: Some(1000) },
            Op::Block { table, segment: SegmentNo(9), block: BlockId(77), rows: None },
            Op::Before { table, row, image: b"image", moves: false },
            Op::Before { table, row, image: b"image", moves: true },
            Op::Stamp { wall_us: 1 << 50 },
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|op| op.encode(&mut bytes));
        let back: Result<Vec<_>, _> = ops(&bytes).collect();
        assert_eq!(back.as_deref(), Ok(&all[..]));
        for cut in 1..bytes.len() {
            let _ = ops(&bytes[..cut]).collect::<Result<Vec<_>, _>>();
        }
        let change = SegmentChange { table, segment: SegmentNo(3), block: None };
        assert_eq!(SegmentChange::decode(&change.encode()), Ok(change));
    }
}
