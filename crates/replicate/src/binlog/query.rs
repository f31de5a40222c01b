//! QUERY: a statement, and what of its session decides what it means.

use super::bytes::Bytes;
use crate::error::Result;

#[derive(Debug, Default)]
pub struct Query {
    /// The default database, or none.
    pub database: String,
    pub text: Vec<u8>,
    /// The error that it ended with at the source, or 0.
    pub error: u16,
    pub session: SessionOfQuery,
}

/// The settings of the session at the source.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SessionOfQuery {
    pub sql_mode: Option<u64>,
    pub time_zone: Option<String>,
    /// Ids of collations: character_set_client, collation_connection, collation_server.
    pub collations: Option<[u16; 3]>,
    pub database_collation: Option<u16>,
    /// Increment and offset.
    pub auto_increment: Option<(u16, u16)>,
    /// `default_collation_for_utf8mb4`
    pub utf8mb4_collation: Option<u16>,
    /// Of a MariaDB, `character_set_collations`: the default collations of character sets, and those that stand for them.
    pub charset_collations: Vec<(u16, u16)>,
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// When the statement began: microseconds since 1970, UTC.
    pub began_us: Option<i64>,
    /// There is a variable that is not known, which hides those behind it.
    pub has_unknown: bool,
}

/// MySQL's bits of sql_mode that change how a statement reads.
pub mod sql_mode_bits {
    pub const PIPES_AS_CONCAT: u64 = 1 << 1;
    pub const ANSI_QUOTES: u64 = 1 << 2;
    pub const IGNORE_SPACE: u64 = 1 << 3;
    pub const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
    pub const HIGH_NOT_PRECEDENCE: u64 = 1 << 29;
    pub const READING: u64 =
        PIPES_AS_CONCAT | ANSI_QUOTES | IGNORE_SPACE | NO_BACKSLASH_ESCAPES | HIGH_NOT_PRECEDENCE;
}

/// The names of MySQL's bits of sql_mode, but for those that stand for others.
const SQL_MODES: [(u64, &str); 19] = [
    (1 << 0, "REAL_AS_FLOAT"),
    (sql_mode_bits::PIPES_AS_CONCAT, "PIPES_AS_CONCAT"),
    (sql_mode_bits::ANSI_QUOTES, "ANSI_QUOTES"),
    (sql_mode_bits::IGNORE_SPACE, "IGNORE_SPACE"),
    (1 << 5, "ONLY_FULL_GROUP_BY"),
    (1 << 6, "NO_UNSIGNED_SUBTRACTION"),
    (1 << 7, "NO_DIR_IN_CREATE"),
    (1 << 19, "NO_AUTO_VALUE_ON_ZERO"),
    (sql_mode_bits::NO_BACKSLASH_ESCAPES, "NO_BACKSLASH_ESCAPES"),
    (1 << 21, "STRICT_TRANS_TABLES"),
    (1 << 22, "STRICT_ALL_TABLES"),
    (1 << 23, "NO_ZERO_IN_DATE"),
    (1 << 24, "NO_ZERO_DATE"),
    (1 << 25, "ALLOW_INVALID_DATES"),
    (1 << 26, "ERROR_FOR_DIVISION_BY_ZERO"),
    (sql_mode_bits::HIGH_NOT_PRECEDENCE, "HIGH_NOT_PRECEDENCE"),
    (1 << 30, "NO_ENGINE_SUBSTITUTION"),
    (1 << 31, "PAD_CHAR_TO_FULL_LENGTH"),
    (1 << 32, "TIME_TRUNCATE_FRACTIONAL"),
];

impl SessionOfQuery {
    /// What of it decides about a statement that is about databases, which have neither columns nor rows: how it reads, and collations.
    pub fn of_database(&self) -> Self {
        Self {
            sql_mode: self.sql_mode.map(|bits| bits & sql_mode_bits::READING),
            time_zone: None,
            auto_increment: None,
            began_us: None,
            ..self.clone()
        }
    }

    /// The value of `sql_mode`, as SET takes it.
    pub fn sql_mode_names(&self) -> String {
        let bits = self.sql_mode.unwrap_or(0);
        let names = SQL_MODES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name);
        names.collect::<Vec<_>>().join(",")
    }
}

impl Query {
    /// Of an event whose header has this time, in seconds.
    pub fn read(event: &[u8], began: u32) -> Result<Self> {
        Self::read_behind(event, began, 0)
    }

    /// Of an EXECUTE_LOAD_QUERY event: LOAD DATA, whose rows stand in events before it.
    pub fn read_load(event: &[u8], began: u32) -> Result<Self> {
        /// The file's number, where its name stands in the text, and what becomes of duplicates.
        const FILE: usize = 4 + 4 + 4 + 1;
        Self::read_behind(event, began, FILE)
    }

    /// `more`: bytes of the fixed part that only this kind of event has.
    fn read_behind(event: &[u8], began: u32, more: usize) -> Result<Self> {
        let mut bytes = Bytes::new(event, "a QUERY event");
        bytes.take(8)?;
        let database = usize::from(bytes.u8()?);
        let error = bytes.u16()?;
        let variables = usize::from(bytes.u16()?);
        bytes.take(more)?;
        let variables = bytes.take(variables)?;
        let database = String::from_utf8_lossy(bytes.take(database)?).into_owned();
        bytes.u8()?;
        let text = bytes.rest().to_vec();
        // A variable that is not known hides those after it: what they are about has its default then.
        let session = session(Bytes::new(variables, "the variables of a QUERY event"), began)?;
        Ok(Self { database, text, error, session })
    }
}

fn session(mut bytes: Bytes<'_>, began: u32) -> Result<SessionOfQuery> {
    let began_us = i64::from(began) * 1_000_000;
    let mut session = SessionOfQuery { began_us: Some(began_us), ..SessionOfQuery::default() };
    while !bytes.is_empty() {
        match bytes.u8()? {
            // flags2
            0 => drop(bytes.u32()?),
            1 => session.sql_mode = Some(bytes.u64()?),
            // A catalog, with and without a final zero.
            2 => {
                let len = usize::from(bytes.u8()?);
                bytes.take(len + 1)?;
            }
            6 => {
                let len = usize::from(bytes.u8()?);
                bytes.take(len)?;
            }
            3 => session.auto_increment = Some((bytes.u16()?, bytes.u16()?)),
            4 => session.collations = Some([bytes.u16()?, bytes.u16()?, bytes.u16()?]),
            5 => {
                let len = usize::from(bytes.u8()?);
                session.time_zone = Some(String::from_utf8_lossy(bytes.take(len)?).into_owned());
            }
            // lc_time_names
            7 => drop(bytes.u16()?),
            8 => session.database_collation = Some(bytes.u16()?),
            // Tables of a multi-table update
            9 => drop(bytes.u64()?),
            // master_data_written
            10 => drop(bytes.u32()?),
            // The invoker: user and host
            11 => {
                for _ in 0..2 {
                    let len = usize::from(bytes.u8()?);
                    bytes.take(len)?;
                }
            }
            // Databases that were changed
            12 => {
                let count = bytes.u8()?;
                let names = if count == 254 { 0 } else { count };
                for _ in 0..names {
                    while bytes.u8()? != 0 {}
                }
            }
            // microseconds; 128 in MariaDB
            13 | 128 => session.began_us = Some(began_us + bytes.little(3)? as i64),
            16 => session.explicit_defaults_for_timestamp = Some(bytes.u8()? != 0),
            // The transaction of a DDL
            17 => drop(bytes.u64()?),
            18 => session.utf8mb4_collation = Some(bytes.u16()?),
            // sql_require_primary_key, default_table_encryption
            19 | 20 => drop(bytes.u8()?),
            131 => {
                for _ in 0..bytes.u8()? {
                    session.charset_collations.push((bytes.u16()?, bytes.u16()?));
                }
            }
            // MariaDB: the transaction of a DDL
            129 => drop(bytes.u64()?),
            // The transaction's flags, and of an ALTER that ends the number of its beginning
            130 => {
                const ENDS_ALTER: u8 = 4 | 8;
                if bytes.u8()? & ENDS_ALTER != 0 {
                    bytes.u64()?;
                }
            }
            _ => {
                session.has_unknown = true;
                break;
            }
        }
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_needs_no_modes_of_values() {
        let session = SessionOfQuery {
            sql_mode: Some(1 << 25 | 1 << 31 | sql_mode_bits::ANSI_QUOTES),
            time_zone: Some("Nowhere/Land".into()),
            collations: Some([8, 8, 8]),
            ..SessionOfQuery::default()
        };
        assert_eq!(session.sql_mode_names(), "ANSI_QUOTES,ALLOW_INVALID_DATES,PAD_CHAR_TO_FULL_LENGTH");
        let of_database = session.of_database();
        assert_eq!(of_database.sql_mode_names(), "ANSI_QUOTES");
        assert_eq!((of_database.time_zone, of_database.collations), (None, Some([8, 8, 8])));
    }
}
