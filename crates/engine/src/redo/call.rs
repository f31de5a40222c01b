//! Call records: a transaction as the procedure and the arguments that it came of, with what the call took from outside.
//!
//! ```text
//!  database │ procedure │ arguments: count varint, values
//!   │ row ids: runs varint, of each table varint │ first varint │ count varint      given to rows in the order of inserts
//!   │ values given: count varint, varints                                            times, AUTO_INCREMENT values
//!   │ crc u32: CRC-32C of the operations that a transaction record would hold
//!
//!  value   0 NULL │ 1 integer: zigzag varint │ 2 unsigned: varint │ 3 decimal: scale u8, zigzag varint │ 4 any: as in a default
//! ```
//!
//! A call that runs again is given the same row ids and values, and must come to the same operations: rows that later
//! records name are where they were, and a procedure that does not do again what it did is found out.

use avocet_base::checksum::crc32c;
use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::{RowId, TableId};
use avocet_types::{Datum, Decimal, Value};

const WHAT: &str = "call record";

/// What a call took from outside, in the order in which it asked.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Inputs {
    runs: Vec<Run>,
    values: Vec<u64>,
    /// When they are taken again: the next of the values.
    next: usize,
}

/// Consecutive row ids of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    table: TableId,
    first: u64,
    count: u64,
}

impl Inputs {
    /// A row got this id.
    pub fn note_row(&mut self, table: TableId, id: RowId) {
        match self.runs.iter_mut().rev().find(|run| run.table == table) {
            Some(run) if run.first + run.count == id.0 => run.count += 1,
            _ => self.runs.push(Run { table, first: id.0, count: 1 }),
        }
    }

    pub fn note_value(&mut self, value: u64) {
        self.values.push(value);
    }

    /// The id that the next row of a table had.
    pub fn take_row(&mut self, table: TableId) -> Option<RowId> {
        let run = self.runs.iter_mut().find(|run| run.table == table && run.count > 0)?;
        let id = RowId(run.first);
        run.first += 1;
        run.count -= 1;
        Some(id)
    }

    pub fn take_value(&mut self) -> Option<u64> {
        let value = self.values.get(self.next).copied()?;
        self.next += 1;
        Some(value)
    }

    /// Whether all was taken.
    pub fn is_spent(&self) -> bool {
        self.next == self.values.len() && self.runs.iter().all(|run| run.count == 0)
    }

    fn put(&self, to: &mut Vec<u8>) {
        to.put_varint(self.runs.len() as u64);
        for run in &self.runs {
            to.put_varint(run.table.0.into());
            to.put_varint(run.first);
            to.put_varint(run.count);
        }
        to.put_varint(self.values.len() as u64);
        self.values.iter().for_each(|&value| to.put_varint(value));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut inputs = Self::default();
        for _ in 0..reader.varint(WHAT)? {
            let table = super::table_id(reader, WHAT)?;
            let (first, count) = (reader.varint(WHAT)?, reader.varint(WHAT)?);
            if count == 0 || first.checked_add(count).is_none() {
                return Err(reader.malformed(WHAT));
            }
            inputs.runs.push(Run { table, first, count });
        }
        for _ in 0..reader.varint(WHAT)? {
            inputs.values.push(reader.varint(WHAT)?);
        }
        Ok(inputs)
    }
}

/// What is known of a record when its call begins.
pub(crate) fn put_head(database: &str, procedure: &str, arguments: &[Value], to: &mut Vec<u8>) {
    to.put_str(database);
    to.put_str(procedure);
    to.put_varint(arguments.len() as u64);
    arguments.iter().for_each(|argument| put_value(argument, to));
}

/// A logged call.
#[derive(Debug)]
pub(crate) struct CallRecord {
    pub database: String,
    pub procedure: String,
    pub arguments: Vec<Value>,
    pub inputs: Inputs,
    pub crc: u32,
}

impl CallRecord {
    /// The end of a record that began with [`put_head`], when it is known what the call did.
    pub fn put_tail(inputs: &Inputs, operations: &[u8], to: &mut Vec<u8>) {
        inputs.put(to);
        to.put_u32(crc32c(operations));
    }

    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let database = reader.str(WHAT)?.to_owned();
        let procedure = reader.str(WHAT)?.to_owned();
        let mut arguments = Vec::new();
        for _ in 0..reader.varint(WHAT)? {
            arguments.push(read_value(&mut reader)?);
        }
        let inputs = Inputs::read(&mut reader)?;
        let crc = reader.u32(WHAT)?;
        reader.finish(WHAT)?;
        Ok(Self { database, procedure, arguments, inputs, crc })
    }

    /// Whether these are the operations that the call came to when it was logged.
    pub fn came_to(crc: u32, operations: &[u8]) -> bool {
        crc == crc32c(operations)
    }
}

fn put_value(value: &Value, to: &mut Vec<u8>) {
    match value {
        Datum::Null => to.put_u8(0),
        Datum::Int(v) => {
            to.put_u8(1);
            to.put_varint(zigzag(*v));
        }
        Datum::UInt(v) => {
            to.put_u8(2);
            to.put_varint(*v);
        }
        Datum::Decimal(v) if narrow(v).is_some() => {
            to.put_u8(3);
            to.put_u8(v.scale());
            to.put_varint(zigzag(narrow(v).unwrap_or_default()));
        }
        other => {
            to.put_u8(4);
            other.encode(to);
        }
    }
}

fn read_value(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    Ok(match reader.u8(WHAT)? {
        0 => Datum::Null,
        1 => Datum::Int(unzigzag(reader.varint(WHAT)?)),
        2 => Datum::UInt(reader.varint(WHAT)?),
        3 => {
            let scale = reader.u8(WHAT)?;
            if scale > Decimal::MAX_SCALE {
                return Err(reader.malformed(WHAT));
            }
            Datum::Decimal(Decimal::new(unzigzag(reader.varint(WHAT)?).into(), scale))
        }
        4 => Datum::decode(reader)?,
        _ => return Err(reader.malformed(WHAT)),
    })
}

fn narrow(decimal: &Decimal) -> Option<i64> {
    decimal.as_i128().and_then(|v| i64::try_from(v).ok())
}

fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Vec<Value>, Inputs) {
        let arguments = vec![
            Datum::Null,
            Datum::Int(i64::MIN),
            Datum::Int(-1),
            Datum::UInt(u64::MAX),
            Datum::Decimal(Decimal::new(-12_345, 2)),
            Datum::Decimal(Decimal::new(i128::MAX / 2, 4)),
            Datum::Str("Grüße".into()),
            Datum::Bytes(vec![0, 255].into()),
            Datum::DateTime(-1),
        ];
        let mut inputs = Inputs::default();
        for id in [70_000, 70_001, 70_002, 90_000] {
            inputs.note_row(TableId(3), RowId(id));
            inputs.note_row(TableId(4), RowId(id + 5));
        }
        inputs.note_value(u64::MAX);
        (arguments, inputs)
    }

    #[test]
    fn records_round_trip_and_cuts_are_refused() {
        let (arguments, inputs) = sample();
        let mut bytes = Vec::new();
        put_head("d", "p", &arguments, &mut bytes);
        CallRecord::put_tail(&inputs, b"operations", &mut bytes);
        let back = CallRecord::decode(&bytes).expect("whole");
        assert_eq!((back.database.as_str(), back.procedure.as_str()), ("d", "p"));
        assert_eq!(format!("{:?}", back.arguments), format!("{arguments:?}"));
        assert_eq!(back.inputs, inputs);
        assert!(CallRecord::came_to(back.crc, b"operations") && !CallRecord::came_to(back.crc, b"others"));
        for cut in 0..bytes.len() {
            assert!(CallRecord::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn what_was_taken_is_given_again_in_order() {
        let (_, mut inputs) = sample();
        assert_eq!(inputs.runs.len(), 4, "consecutive ids are one run");
        for id in [70_000, 70_001, 70_002, 90_000] {
            assert_eq!(inputs.take_row(TableId(3)), Some(RowId(id)));
        }
        assert_eq!(inputs.take_row(TableId(3)), None);
        assert!(!inputs.is_spent());
        assert_eq!(inputs.take_value(), Some(u64::MAX));
        assert_eq!(inputs.take_value(), None);
        assert_eq!((0..4).map_while(|_| inputs.take_row(TableId(4))).count(), 4);
        assert!(inputs.is_spent());
    }
}
