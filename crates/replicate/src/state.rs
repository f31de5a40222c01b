//! What is in force here of a source: its transactions, and the tables that are not followed yet or not any more.
//!
//! It is the position of the engine's [`Origin`](avocet_engine::Origin), and so becomes durable with the rows that it speaks of, or not at all.
//! Tables that are followed exactly are the rule and are not listed.
//!
//! ```text
//!  version u8 = 1 or 2 │ source's UUID │ GTIDs as text │ [2: log file, offset u64] │ [pending definition: GTID, fingerprint, tables] │
//!  tables: count, { database, name, state u8, … } │ prepared XA transactions: count, { id, tables }
//! ```
//!
//! ```text
//!             ┌──────────── set aside: a reason ◀──────────┐
//!             ▼                                            │
//!  Waiting ──made──▶ Copying ──last rows──▶ CatchingUp ──▶ (followed)
//!     └──cannot be──▶ Refused
//! ```

use std::collections::BTreeMap;

use avocet_base::codec::{Malformed, Put, Reader};
use mysql::Value;

use crate::gtid::GtidSet;

/// A table by its names at the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    pub database: String,
    pub table: String,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// What is in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// `server_uuid` of the source.
    pub source: String,
    pub executed: GtidSet,
    /// Of a MySQL that gives its transactions no identifiers: all before this place in its log is in force, and `executed` is empty.
    pub place: Option<LogPlace>,
    /// A definition that is about to be changed, or has just been.
    pub pending: Option<Pending>,
    pub tables: BTreeMap<TableName, TableState>,
    /// Tables that XA transactions have changed which are prepared and not ended, by their ids.
    pub prepared: BTreeMap<Vec<u8>, Vec<TableName>>,
}

/// A change of definitions that commits before its position does.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Names the transaction: its GTID, or its place.
    pub gtid: String,
    /// Of what it is about, before it.
    pub before: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableState {
    /// It is to be copied, and why.
    Waiting { why: String },
    /// Its definition is here, and its rows up to a key.
    Copying {
        /// SHOW CREATE TABLE, without what changes by itself.
        definition: String,
        /// The key of the last row that is here, in the order of the key's columns.
        after: Option<Vec<Value>>,
    },
    /// All rows are here; some may be newer than the position, until that reaches this place in the log.
    CatchingUp { until: LogPlace },
    /// It cannot be followed, and why.
    Refused { why: String },
}

/// A place in the source's logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    pub file: String,
    pub offset: u64,
}

impl LogPlace {
    /// Whether it is not before the other. Files are numbered; a longer number is a higher one.
    pub fn reaches(&self, other: &Self) -> bool {
        let number = |file: &str| file.rsplit('.').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        (number(&self.file), self.offset) >= (number(&other.file), other.offset)
    }

    /// The name that all files of its log have, and this one's number; `None` for what is no file of a log.
    fn numbered(&self) -> Option<(&str, u64)> {
        let (name, number) = self.file.rsplit_once('.')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        Some((name, number.parse().ok().filter(|_| is_number)?))
    }

    /// Whether it is a file of a log.
    pub fn is_in_a_log(&self) -> bool {
        self.numbered().is_some()
    }

    /// Whether both are in files of one name but for their numbers.
    pub fn is_in_log_of(&self, other: &Self) -> bool {
        let log = |place: &Self| place.numbered().map(|(name, _)| name.to_owned());
        log(self).is_some() && log(self) == log(other)
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.put_bytes(self.file.as_bytes());
        to.put_u64(self.offset);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { file: text(from)?, offset: from.u64("a place in a log")? })
    }
}

impl std::fmt::Display for LogPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

impl State {
    /// Whether every table that is followed is here as it is at the source.
    pub fn is_whole(&self) -> bool {
        let is_left_out = |state: &TableState| matches!(state, TableState::Refused { .. });
        self.prepared.is_empty() && self.tables.values().all(is_left_out)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        // Positions with GTIDs are as they were before there were others.
        to.put_u8(if self.place.is_some() { 2 } else { 1 });
        to.put_bytes(self.source.as_bytes());
        to.put_bytes(self.executed.to_string().as_bytes());
        if let Some(place) = &self.place {
            place.encode(&mut to);
        }
        match &self.pending {
            None => to.put_u8(0),
            Some(pending) => {
                to.put_u8(1);
                to.put_bytes(pending.gtid.as_bytes());
                to.put_u64(pending.before);
            }
        }
        to.put_varint(self.tables.len() as u64);
        for (name, state) in &self.tables {
            put_name(name, &mut to);
            state.encode(&mut to);
        }
        to.put_varint(self.prepared.len() as u64);
        for (id, tables) in &self.prepared {
            to.put_bytes(id);
            to.put_varint(tables.len() as u64);
            tables.iter().for_each(|name| put_name(name, &mut to));
        }
        to
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "position of a source";
        let mut from = Reader::new(bytes);
        let version = from.u8(WHAT)?;
        if !(1..=2).contains(&version) {
            return Err(from.malformed("version of a position"));
        }
        let source = text(&mut from)?;
        let executed = text(&mut from)?.parse().map_err(|_| from.malformed("GTIDs"))?;
        let place = if version == 2 { Some(LogPlace::decode(&mut from)?) } else { None };
        let pending = match from.u8(WHAT)? {
            0 => None,
            _ => Some(Pending { gtid: text(&mut from)?, before: from.u64(WHAT)? }),
        };
        let mut tables = BTreeMap::new();
        for _ in 0..from.varint(WHAT)? {
            let name = read_name(&mut from)?;
            tables.insert(name, TableState::decode(&mut from)?);
        }
        let mut prepared = BTreeMap::new();
        for _ in 0..from.varint(WHAT)? {
            let id = from.bytes(WHAT)?.to_vec();
            let count = from.varint(WHAT)?;
            let names = (0..count).map(|_| read_name(&mut from)).collect::<Result<_, _>>()?;
            prepared.insert(id, names);
        }
        Ok(Self { source, executed, place, pending, tables, prepared })
    }
}

fn text(from: &mut Reader<'_>) -> Result<String, Malformed> {
    let bytes = from.bytes("text")?.to_vec();
    String::from_utf8(bytes).map_err(|_| from.malformed("text"))
}

fn put_name(name: &TableName, to: &mut Vec<u8>) {
    to.put_bytes(name.database.as_bytes());
    to.put_bytes(name.table.as_bytes());
}

fn read_name(from: &mut Reader<'_>) -> Result<TableName, Malformed> {
    Ok(TableName { database: text(from)?, table: text(from)? })
}

impl TableState {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Waiting { why } => {
                to.put_u8(0);
                to.put_bytes(why.as_bytes());
            }
            Self::Copying { definition, after } => {
                to.put_u8(1);
                to.put_bytes(definition.as_bytes());
                let values = after.as_deref().unwrap_or_default();
                to.put_varint(values.len() as u64);
                values.iter().for_each(|value| put_value(value, to));
            }
            Self::CatchingUp { until } => {
                to.put_u8(2);
                until.encode(to);
            }
            Self::Refused { why } => {
                to.put_u8(3);
                to.put_bytes(why.as_bytes());
            }
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "state of a table";
        Ok(match from.u8(WHAT)? {
            0 => Self::Waiting { why: text(from)? },
            1 => {
                let definition = text(from)?;
                let count = from.varint(WHAT)?;
                let values = (0..count).map(|_| read_value(from)).collect::<Result<Vec<_>, _>>()?;
                Self::Copying { definition, after: (count > 0).then_some(values) }
            }
            2 => Self::CatchingUp { until: LogPlace::decode(from)? },
            3 => Self::Refused { why: text(from)? },
            _ => return Err(from.malformed(WHAT)),
        })
    }
}

/// A value of a key, as the protocol has it.
fn put_value(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::NULL => to.put_u8(0),
        Value::Bytes(bytes) => {
            to.put_u8(1);
            to.put_bytes(bytes);
        }
        Value::Int(v) => {
            to.put_u8(2);
            to.put_u64(*v as u64);
        }
        Value::UInt(v) => {
            to.put_u8(3);
            to.put_u64(*v);
        }
        Value::Float(v) => {
            to.put_u8(4);
            to.put_u64(v.to_bits().into());
        }
        Value::Double(v) => {
            to.put_u8(5);
            to.put_u64(v.to_bits());
        }
        Value::Date(year, month, day, hour, minute, second, micros) => {
            to.put_u8(6);
            to.put_varint((*year).into());
            [*month, *day, *hour, *minute, *second].iter().for_each(|part| to.put_u8(*part));
            to.put_varint((*micros).into());
        }
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            to.put_u8(7);
            to.put_u8((*negative).into());
            to.put_varint((*days).into());
            [*hours, *minutes, *seconds].iter().for_each(|part| to.put_u8(*part));
            to.put_varint((*micros).into());
        }
    }
}

fn read_value(from: &mut Reader<'_>) -> Result<Value, Malformed> {
    const WHAT: &str = "value of a key";
    Ok(match from.u8(WHAT)? {
        0 => Value::NULL,
        1 => Value::Bytes(from.bytes(WHAT)?.to_vec()),
        2 => Value::Int(from.u64(WHAT)? as i64),
        3 => Value::UInt(from.u64(WHAT)?),
        4 => Value::Float(f32::from_bits(from.u64(WHAT)? as u32)),
        5 => Value::Double(f64::from_bits(from.u64(WHAT)?)),
        6 => Value::Date(
            from.varint(WHAT)? as u16,
            from.u8(WHAT)?,
            from.u8(WHAT)?,
            from.u8(WHAT)?,
            from.u8(WHAT)?,
            from.u8(WHAT)?,
            from.varint(WHAT)? as u32,
        ),
        7 => Value::Time(
            from.u8(WHAT)? != 0,
            from.varint(WHAT)? as u32,
            from.u8(WHAT)?,
            from.u8(WHAT)?,
            from.u8(WHAT)?,
            from.varint(WHAT)? as u32,
        ),
        _ => return Err(from.malformed(WHAT)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip_and_cuts_are_refused() {
        let name = |table: &str| TableName { database: "d".into(), table: table.into() };
        let key = vec![
            Value::Bytes(b"\xff\0".to_vec()),
            Value::Int(-4),
            Value::UInt(u64::MAX),
            Value::Float(1.5),
            Value::Double(-0.25),
            Value::Date(2026, 11, 25, 1, 2, 3, 4),
            Value::Time(true, 34, 1, 2, 3, 999_999),
        ];
        let until = LogPlace { file: "binlog.000007".into(), offset: 1 << 33 };
        let state = State {
            source: "3e11fa47-71ca-11e1-9e33-c80aa9429562".into(),
            executed: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:tag:2".parse().expect("a set"),
            place: None,
            pending: Some(Pending { gtid: "g".into(), before: 7 }),
            tables: BTreeMap::from([
                (name("a"), TableState::Waiting { why: "new".into() }),
                (name("b"), TableState::Copying { definition: "CREATE".into(), after: Some(key) }),
                (name("c"), TableState::Copying { definition: String::new(), after: None }),
                (name("d"), TableState::CatchingUp { until }),
                (name("e"), TableState::Refused { why: "no key".into() }),
            ]),
            prepared: BTreeMap::from([(b"xid".to_vec(), vec![name("a"), name("b")])]),
        };
        let place = Some(LogPlace { file: "mysql-bin.000123".into(), offset: 157 });
        for state in [State { executed: GtidSet::default(), place, ..state.clone() }, state] {
            let bytes = state.encode();
            assert_eq!(State::decode(&bytes), Ok(state));
            for cut in 0..bytes.len() {
                assert!(State::decode(&bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn places_are_ordered_by_the_number_of_the_file() {
        let place = |file: &str, offset| LogPlace { file: file.into(), offset };
        assert!(place("binlog.000010", 4).reaches(&place("binlog.000009", 900)));
        assert!(place("binlog.1000000", 4).reaches(&place("binlog.999999", 4)));
        assert!(place("binlog.000009", 900).reaches(&place("binlog.000009", 900)));
        assert!(!place("binlog.000009", 899).reaches(&place("binlog.000009", 900)));
    }
}
