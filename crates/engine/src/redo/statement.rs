//! The statement that a change of the catalog came of, behind the change in its record: for change capture, which tells
//! others of statements where it tells of no rows.
//!
//! ```text
//!  version u8 = 1 │ microseconds i64 │ database: 0, or 1 and a string │ sql_mode u64 │ 4 collations u16 │ time zone │
//!  flags u8 │ increment u16 │ offset u16 │ count varint │ texts                      strings: length varint, UTF-8
//! ```

use avocet_base::codec::{Malformed, Put, Reader};

const VERSION: u8 = 1;
const FOREIGN_KEY_CHECKS: u8 = 1;
const UNIQUE_CHECKS: u8 = 2;
const NAMES_DATABASE: u8 = 4;
const WHAT: &str = "statement of a catalog change";

/// What a session ran, and what of its settings decides what that means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// When it began: microseconds since 1970, UTC.
    pub wall_us: i64,
    pub database: Option<String>,
    /// The text says which database it is: that may not be there, so nobody is to go there first.
    pub names_database: bool,
    /// The bits of MySQL's `sql_mode`.
    pub sql_mode: u64,
    /// Ids of collations: of the texts, of the connection, of the server.
    pub collations: [u16; 3],
    /// `default_collation_for_utf8mb4`
    pub utf8mb4_collation: u16,
    pub time_zone: String,
    pub foreign_key_checks: bool,
    pub unique_checks: bool,
    /// Increment and offset.
    pub auto_increment: (u16, u16),
    /// Mostly one. Several come to the same, one after the other.
    pub texts: Vec<String>,
}

impl Statement {
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.put_u8(VERSION);
        to.put_u64(self.wall_us as u64);
        to.put_u8(self.database.is_some().into());
        self.database.iter().for_each(|name| to.put_str(name));
        to.put_u64(self.sql_mode);
        self.collations.iter().for_each(|id| to.put_u16(*id));
        to.put_u16(self.utf8mb4_collation);
        to.put_str(&self.time_zone);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        to.put_u8(
            flag(self.foreign_key_checks, FOREIGN_KEY_CHECKS)
                | flag(self.unique_checks, UNIQUE_CHECKS)
                | flag(self.names_database, NAMES_DATABASE),
        );
        to.put_u16(self.auto_increment.0);
        to.put_u16(self.auto_increment.1);
        to.put_varint(self.texts.len() as u64);
        self.texts.iter().for_each(|text| to.put_str(text));
    }

    /// What is left of a record behind its change.
    pub(super) fn decode_rest(reader: &mut Reader<'_>) -> Result<Option<Self>, Malformed> {
        if reader.is_empty() {
            return Ok(None);
        }
        if reader.u8(WHAT)? != VERSION {
            return Err(reader.malformed(WHAT));
        }
        let mut statement = Self { wall_us: reader.u64(WHAT)? as i64, ..Self::default() };
        if reader.u8(WHAT)? != 0 {
            statement.database = Some(reader.str(WHAT)?.to_owned());
        }
        statement.sql_mode = reader.u64(WHAT)?;
        for id in &mut statement.collations {
            *id = reader.u16(WHAT)?;
        }
        statement.utf8mb4_collation = reader.u16(WHAT)?;
        statement.time_zone = reader.str(WHAT)?.to_owned();
        let flags = reader.u8(WHAT)?;
        statement.foreign_key_checks = flags & FOREIGN_KEY_CHECKS != 0;
        statement.unique_checks = flags & UNIQUE_CHECKS != 0;
        statement.names_database = flags & NAMES_DATABASE != 0;
        statement.auto_increment = (reader.u16(WHAT)?, reader.u16(WHAT)?);
        for _ in 0..reader.varint(WHAT)? {
            statement.texts.push(reader.str(WHAT)?.to_owned());
        }
        match reader.is_empty() {
            true => Ok(Some(statement)),
            false => Err(reader.malformed(WHAT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_round_trip() {
        let statement = Statement {
            wall_us: -5,
            database: Some("d".into()),
            names_database: true,
            sql_mode: 1 << 32,
            collations: [255, 8, 255],
            utf8mb4_collation: 255,
            time_zone: "SYSTEM".into(),
            foreign_key_checks: true,
            unique_checks: false,
            auto_increment: (1, 2),
            texts: vec!["CREATE TABLE t (a INT)".into(), "DROP TABLE u".into()],
        };
        let mut bytes = Vec::new();
        statement.encode(&mut bytes);
        assert_eq!(Statement::decode_rest(&mut Reader::new(&bytes)), Ok(Some(statement)));
        assert_eq!(Statement::decode_rest(&mut Reader::new(&[])), Ok(None));
        for cut in 1..bytes.len() {
            assert!(Statement::decode_rest(&mut Reader::new(&bytes[..cut])).is_err(), "cut at {cut}");
        }
    }
}
