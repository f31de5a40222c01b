//! TABLE_MAP: which table the row events that follow are about, and what its columns are. Everything that
//! `binlog_row_metadata = FULL` writes is read, so that it can be compared with the table here.

use super::bytes::{Bytes, bit};
use crate::error::{ReplicateError, Result};
use crate::source::Flavor;

/// MySQL's numbers of column types, as they stand in binary logs.
pub mod column {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const YEAR: u8 = 13;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    /// MariaDB's.
    pub const BLOB_COMPRESSED: u8 = 140;
    pub const VARCHAR_COMPRESSED: u8 = 141;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
    pub const VECTOR: u8 = 242;
}

#[derive(Debug, Default)]
pub struct TableMap {
    pub table_id: u64,
    pub database: String,
    pub table: String,
    pub columns: Vec<MappedColumn>,
    /// Columns of the primary key, in its order, with the length of a prefix in characters, or 0. `None` if nothing says it.
    pub primary_key: Option<Vec<(usize, u64)>>,
    /// Names, members and keys are there: `binlog_row_metadata` was FULL.
    pub is_full: bool,
    /// Why what the log says of the columns cannot be told.
    pub unread: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct MappedColumn {
    /// ENUM and SET are told from STRING.
    pub ty: u8,
    /// As the type has it: a length, precision and scale, digits of a fraction.
    pub meta: u16,
    pub nullable: bool,
    pub unsigned: bool,
    /// MySQL's id of its collation, of a column of characters or members.
    pub collation: Option<u16>,
    pub name: Option<String>,
    /// Of ENUM and SET, in the column's character set.
    pub members: Vec<Vec<u8>>,
}

impl MappedColumn {
    /// Whether the log has a collation of it among those of characters. A MariaDB gives one to geometries, too.
    fn is_character(&self, flavor: Flavor) -> bool {
        use column::*;
        match self.ty {
            VARCHAR | VAR_STRING | STRING | 249..=BLOB => true,
            GEOMETRY | BLOB_COMPRESSED | VARCHAR_COMPRESSED => flavor == Flavor::MariaDb,
            _ => false,
        }
    }

    fn is_coded(&self) -> bool {
        matches!(self.ty, column::ENUM | column::SET)
    }

    fn is_numeric(&self) -> bool {
        use column::*;
        matches!(self.ty, TINY | SHORT | INT24 | LONG | LONGLONG | NEWDECIMAL | FLOAT | DOUBLE | YEAR)
    }
}

fn name(bytes: &mut Bytes<'_>) -> Result<String> {
    let len = bytes.u8()?.into();
    let name = bytes.take(len)?;
    bytes.u8()?;
    String::from_utf8(name.to_vec()).map_err(|_| ReplicateError::damaged("a table's name is not UTF-8"))
}

impl TableMap {
    /// Of a source's log. `wants`: whether anybody here wants a table; of others nothing is read but their names.
    pub fn read(event: &[u8], flavor: Flavor, wants: impl Fn(&str, &str) -> bool) -> Result<Self> {
        let mut bytes = Bytes::new(event, "a TABLE_MAP event");
        let table_id = bytes.little(6)?;
        bytes.u16()?;
        let (database, table) = (name(&mut bytes)?, name(&mut bytes)?);
        if !wants(&database, &table) {
            return Ok(Self { table_id, database, table, ..Self::default() });
        }
        let count = bytes.packed_len()?;
        let types = bytes.take(count)?;
        let mut meta = Bytes::new(bytes.packed_bytes()?, "the columns of a TABLE_MAP event");
        let nulls = bytes.take(count.div_ceil(8))?;
        let columns = types.iter().enumerate().map(|(at, ty)| {
            let (ty, meta) = read_meta(*ty, &mut meta)?;
            Ok(MappedColumn { ty, meta, nullable: bit(nulls, at), ..MappedColumn::default() })
        });
        let columns = columns.collect::<Result<_>>()?;
        let mut map = Self { table_id, database, table, columns, ..Self::default() };
        // The event is whole. What does not fit its columns is about this table alone.
        while !bytes.is_empty() {
            let field = bytes.u8()?;
            let value = Bytes::new(bytes.packed_bytes()?, "metadata of a TABLE_MAP event");
            if let Err(error) = map.optional(field, value, flavor) {
                map.unread = Some(error.to_string());
                break;
            }
        }
        Ok(map)
    }

    fn optional(&mut self, field: u8, mut value: Bytes<'_>, flavor: Flavor) -> Result<()> {
        match field {
            1 => {
                let bits = value.rest();
                let numeric = self.columns.iter_mut().filter(|column| column.is_numeric());
                for (at, column) in numeric.enumerate() {
                    column.unsigned = bits.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
                }
            }
            2 => default_collations(self.columns.iter_mut().filter(|c| c.is_character(flavor)), &mut value)?,
            3 => collations(self.columns.iter_mut().filter(|c| c.is_character(flavor)), &mut value)?,
            10 => default_collations(self.columns.iter_mut().filter(|c| c.is_coded()), &mut value)?,
            11 => collations(self.columns.iter_mut().filter(|c| c.is_coded()), &mut value)?,
            4 => {
                for column in &mut self.columns {
                    let name = value.packed_bytes()?.to_vec();
                    column.name = String::from_utf8(name).ok();
                }
                self.is_full = true;
            }
            5 | 6 => {
                let ty = if field == 5 { column::SET } else { column::ENUM };
                for column in self.columns.iter_mut().filter(|column| column.ty == ty) {
                    for _ in 0..value.packed()? {
                        column.members.push(value.packed_bytes()?.to_vec());
                    }
                }
            }
            8 => {
                let mut key = Vec::new();
                while !value.is_empty() {
                    key.push((value.packed()? as usize, 0));
                }
                self.primary_key = Some(key);
            }
            9 => {
                let mut key = Vec::new();
                while !value.is_empty() {
                    key.push((value.packed()? as usize, value.packed()?));
                }
                self.primary_key = Some(key);
            }
            // Geometry types, visibility, dimensions of vectors.
            _ => {}
        }
        Ok(())
    }
}

/// Reads what a type has of metadata; ENUM and SET stand as STRING, with their own type in it.
fn read_meta(ty: u8, meta: &mut Bytes<'_>) -> Result<(u8, u16)> {
    use column::*;
    Ok(match ty {
        FLOAT | DOUBLE | TIMESTAMP2 | DATETIME2 | TIME2 | JSON | 249..=BLOB | GEOMETRY | VECTOR => {
            (ty, meta.u8()?.into())
        }
        BLOB_COMPRESSED => (ty, meta.u8()?.into()),
        VARCHAR | VARCHAR_COMPRESSED => (ty, meta.u16()?),
        BIT => {
            let (bits, whole) = (meta.u8()?, meta.u8()?);
            (ty, u16::from(whole) * 8 + u16::from(bits))
        }
        // Precision in the upper byte, scale in the lower.
        NEWDECIMAL => (ty, u16::from_be_bytes(meta.array()?)),
        ENUM | SET | VAR_STRING => (ty, meta.u16()?),
        STRING => {
            let (high, low) = (meta.u8()?, meta.u8()?);
            match high {
                ENUM | SET => (high, low.into()),
                _ => (ty, u16::from(low) | (u16::from(high & 0x30) ^ 0x30) << 4),
            }
        }
        _ => (ty, 0),
    })
}

fn default_collations<'c>(
    columns: impl Iterator<Item = &'c mut MappedColumn>,
    value: &mut Bytes<'_>,
) -> Result<()> {
    let default = value.packed()? as u16;
    let mut columns: Vec<_> = columns.collect();
    columns.iter_mut().for_each(|column| column.collation = Some(default));
    while !value.is_empty() {
        let (at, collation) = (value.packed()? as usize, value.packed()? as u16);
        let column = columns.get_mut(at);
        column.ok_or_else(|| ReplicateError::damaged("a collation of no column"))?.collation =
            Some(collation);
    }
    Ok(())
}

fn collations<'c>(columns: impl Iterator<Item = &'c mut MappedColumn>, value: &mut Bytes<'_>) -> Result<()> {
    for column in columns {
        column.collation = Some(value.packed()? as u16);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TABLE_MAP of `d.t` with these types, their metadata and optional fields.
    fn event(types: &[u8], meta: &[u8], optional: &[u8]) -> Vec<u8> {
        let mut event = vec![7, 0, 0, 0, 0, 0, 1, 0];
        event.extend_from_slice(b"\x01d\0\x01t\0");
        event.push(types.len() as u8);
        event.extend_from_slice(types);
        event.push(meta.len() as u8);
        event.extend_from_slice(meta);
        event.push(0xff);
        event.extend_from_slice(optional);
        event
    }

    fn collations(map: &TableMap) -> Vec<Option<u16>> {
        map.columns.iter().map(|column| column.collation).collect()
    }

    /// Of a MariaDB: INT, VARCHAR(9), VARCHAR(9), POINT, whose default is that of the texts, and the geometry's is binary.
    #[test]
    fn geometries_of_a_mariadb_have_collations() {
        use column::*;
        let types = [LONG, VARCHAR, VARCHAR, GEOMETRY];
        let event = event(&types, &[9, 0, 9, 0, 4], &[2, 3, 8, 2, 63]);
        let map = TableMap::read(&event, Flavor::MariaDb, |_, _| true).expect("a map");
        assert_eq!(map.unread, None);
        assert_eq!(collations(&map), [None, Some(8), Some(8), Some(63)]);
        // A MySQL does not count them: such a field is not of these columns. The stream goes on all the same.
        let map = TableMap::read(&event, Flavor::MySql, |_, _| true).expect("a map");
        assert!(map.unread.is_some());
    }

    #[test]
    fn compressed_columns_of_a_mariadb_are_read_over() {
        use column::*;
        let types = [BLOB_COMPRESSED, VARCHAR_COMPRESSED, VARCHAR];
        let event = event(&types, &[2, 10, 0, 9, 0], &[3, 3, 63, 8, 33]);
        let map = TableMap::read(&event, Flavor::MariaDb, |_, _| true).expect("a map");
        assert_eq!((map.columns[2].meta, collations(&map)), (9, vec![Some(63), Some(8), Some(33)]));
    }

    #[test]
    fn of_tables_that_nobody_wants_the_name_is_read() {
        let event = event(&[column::VARCHAR], &[], &[2, 9]);
        assert!(TableMap::read(&event, Flavor::MySql, |_, _| true).is_err());
        let map = TableMap::read(&event, Flavor::MySql, |database, table| (database, table) != ("d", "t"));
        assert_eq!(map.expect("a map").table, "t");
    }
}
