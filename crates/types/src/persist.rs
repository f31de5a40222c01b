//! Bytes of types, values and table definitions, as the catalog keeps them in the log and in checkpoints.
//!
//! A table definition begins with a version, so that later releases read what this one wrote. Everything else is inside one and
//! has none. Enums are a tag byte and their fields; tags are never reused.
//!
//! ```text
//!  table    version u8 = 1 to 11 │ id u32 │ database │ name │ columns │ indexes │ collation u16 │ comment
//!           from version 2: │ foreign keys, from version 3: │ checks,
//!           from version 4: │ fulltext and spatial keys │ partitioning: text, empty if there is none
//!           from version 7: │ where blocks have the columns: list of position varint, value │ width u16
//!           (from version 8: behind a u8, 0 if blocks have them as they are)
//!           from version 11: │ u8, 1 if it is known when it was made or last altered: │ microseconds since 1970: i64
//!           │ options of files: list of option u8, value varint
//!  type     tag u8 │ what the type has: of ENUM and SET collation u16 │ names
//!  column   name │ type │ flags u8 (1 nullable, 2 on update now, 4 auto_increment, 8 generated,
//!           16 invisible, 32 hidden, 64 collation named: version 6,
//!           128 zerofill: version 8) │ default │ comment
//!           if generated (version 3): │ expression: text │ stored u8, if hidden (version 5): │ index: text
//!           if zerofill: │ characters u8
//!  default  0 none │ 1 value │ 2 now │ 3 expression: text (version 3)
//!           │ 4 dropped (version 9)
//!  index    id u32 │ name │ kind u8 (128 added: made for a foreign key, 64: invisible,
//!           32 with a comment: version 10) │ parts │ if it has one: comment
//!  part     column varint │ descending u8 │ prefix length + 1, or 0: varint
//!  foreign  name │ child's columns: list of varint │ parent's database │ table │ columns: list
//!           │ on delete u8 │ on update u8 (0 no action, 1 restrict, 2 cascade, 3 set null, 4 set default)
//!  fulltext name │ columns: list of varint │ parser: text, empty if there is none; of a SPATIAL key a zero byte;
//!           if there is a comment, a byte 1 and the comment at the end of this text
//!  check    name │ condition: text │ enforced u8
//! ```
//!
//! A table without foreign keys is written as version 1, which every release reads, and one without expressions as version 2 at
//! most.

mod definitions;
#[cfg(test)]
mod tests;

use arrow::datatypes::i256;
use avocet_base::codec::{Malformed, Put, Reader};

use crate::datum::{Datum, Value};
use crate::decimal::Decimal;
use crate::geometry::GeometryType;
use crate::members::{MAX_ENUM, MAX_SET, Members};
use crate::sql_type::{Collation, IntWidth, LobSize, RealFormat, SqlType};

/// More columns or indexes than a table can have: longer lists are damage.
const MAX_ITEMS: u64 = 1 << 16;

impl SqlType {
    pub fn encode(&self, to: &mut Vec<u8>) {
        let collated = |to: &mut Vec<u8>, tag: u8, len: u32, collation: Collation| {
            to.put_u8(tag);
            to.put_varint(len.into());
            to.put_u16(collation.0);
        };
        let listed = |to: &mut Vec<u8>, tag: u8, members: Members| {
            to.put_u8(tag);
            to.put_u16(members.collation().0);
            put_list(members.names(), to, |name, to| to.put_str(name));
        };
        // Without (M,D), M is 0.
        let formatted = |to: &mut Vec<u8>, tag: u8, real: RealFormat| {
            let (digits, decimals) = real.digits.unwrap_or_default();
            to.extend_from_slice(&[tag, real.unsigned.into(), digits, decimals]);
        };
        match *self {
            Self::Null => to.put_u8(0),
            Self::Bool => to.put_u8(1),
            Self::Int { width, unsigned } => to.extend_from_slice(&[2, width as u8, unsigned.into()]),
            Self::Decimal { precision, scale, unsigned } => {
                to.extend_from_slice(&[3, precision, scale, unsigned.into()]);
            }
            Self::Float(RealFormat::PLAIN) => to.put_u8(4),
            Self::Double(RealFormat::PLAIN) => to.put_u8(5),
            Self::Float(real) => formatted(to, 23, real),
            Self::Double(real) => formatted(to, 24, real),
            Self::Char { len, collation } => collated(to, 6, len, collation),
            Self::VarChar { len, collation } => collated(to, 7, len, collation),
            Self::Text { size, collation } => collated(to, 8, size as u32, collation),
            Self::Binary { len } => {
                to.put_u8(9);
                to.put_varint(len.into());
            }
            Self::VarBinary { len } => {
                to.put_u8(10);
                to.put_varint(len.into());
            }
            Self::Blob { size } => to.extend_from_slice(&[11, size as u8]),
            Self::Date => to.put_u8(12),
            Self::DateTime { fsp } => to.extend_from_slice(&[13, fsp]),
            Self::Timestamp { fsp } => to.extend_from_slice(&[14, fsp]),
            Self::Time { fsp } => to.extend_from_slice(&[15, fsp]),
            Self::Year => to.put_u8(16),
            Self::Enum(members) => listed(to, 20, members),
            Self::Set(members) => listed(to, 21, members),
            Self::Bit { len } => to.extend_from_slice(&[22, len]),
            Self::Json => to.put_u8(17),
            Self::Geometry { ty, srid } => {
                to.extend_from_slice(&[25, ty as u8, srid.is_some().into()]);
                to.put_u32(srid.unwrap_or_default());
            }
        }
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "SQL type";
        let len = |from: &mut Reader<'_>| {
            let len = from.varint(WHAT)?;
            u32::try_from(len).map_err(|_| from.malformed(WHAT))
        };
        let collation = |from: &mut Reader<'_>| from.u16(WHAT).map(Collation);
        let size = |from: &mut Reader<'_>| {
            let sizes = [LobSize::Tiny, LobSize::Normal, LobSize::Medium, LobSize::Long];
            let tag = from.varint(WHAT)?;
            sizes.get(tag as usize).copied().ok_or(from.malformed(WHAT))
        };
        let fsp = |from: &mut Reader<'_>| match from.u8(WHAT)? {
            fsp @ 0..=6 => Ok(fsp),
            _ => Err(from.malformed(WHAT)),
        };
        Ok(match from.u8(WHAT)? {
            0 => Self::Null,
            1 => Self::Bool,
            2 => {
                let widths = [IntWidth::W8, IntWidth::W16, IntWidth::W24, IntWidth::W32, IntWidth::W64];
                let width = usize::from(from.u8(WHAT)?);
                let width = widths.get(width).copied().ok_or(from.malformed(WHAT))?;
                Self::Int { width, unsigned: flag(from)? }
            }
            3 => {
                let (precision, scale) = (from.u8(WHAT)?, from.u8(WHAT)?);
                let valid = (1..=Decimal::MAX_PRECISION).contains(&precision)
                    && scale <= precision.min(Decimal::MAX_SCALE);
                if !valid {
                    return Err(from.malformed(WHAT));
                }
                Self::Decimal { precision, scale, unsigned: flag(from)? }
            }
            4 => Self::FLOAT,
            5 => Self::DOUBLE,
            tag @ (23 | 24) => {
                let unsigned = flag(from)?;
                let (digits, decimals) = (from.u8(WHAT)?, from.u8(WHAT)?);
                if decimals > digits {
                    return Err(from.malformed(WHAT));
                }
                let real = RealFormat { unsigned, digits: (digits > 0).then_some((digits, decimals)) };
                if tag == 23 { Self::Float(real) } else { Self::Double(real) }
            }
            6 => Self::Char { len: len(from)?, collation: collation(from)? },
            7 => Self::VarChar { len: len(from)?, collation: collation(from)? },
            8 => Self::Text { size: size(from)?, collation: collation(from)? },
            9 => Self::Binary { len: len(from)? },
            10 => Self::VarBinary { len: len(from)? },
            11 => Self::Blob { size: size(from)? },
            12 => Self::Date,
            13 => Self::DateTime { fsp: fsp(from)? },
            14 => Self::Timestamp { fsp: fsp(from)? },
            15 => Self::Time { fsp: fsp(from)? },
            16 => Self::Year,
            20 => Self::Enum(members(from, MAX_ENUM)?),
            21 => Self::Set(members(from, MAX_SET)?),
            22 => match from.u8(WHAT)? {
                len @ 1..=64 => Self::Bit { len },
                _ => return Err(from.malformed(WHAT)),
            },
            17 => Self::Json,
            25 => {
                let ty = GeometryType::of_code(from.u8(WHAT)?.into()).ok_or(from.malformed(WHAT))?;
                let has_srid = flag(from)?;
                let srid = from.u32(WHAT)?;
                Self::Geometry { ty, srid: has_srid.then_some(srid) }
            }
            _ => return Err(from.malformed(WHAT)),
        })
    }
}

/// The members of an ENUM or SET: their collation and names.
fn members(from: &mut Reader<'_>, most: usize) -> Result<Members, Malformed> {
    const WHAT: &str = "members";
    let collation = Collation(from.u16(WHAT)?);
    let names = list(from, |from| Ok(from.str(WHAT)?.to_owned()))?;
    if names.is_empty() || names.len() > most {
        return Err(from.malformed(WHAT));
    }
    Members::of_stored(names, collation).map_err(|_| from.malformed(WHAT))
}

fn flag(from: &mut Reader<'_>) -> Result<bool, Malformed> {
    match from.u8("flag")? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(from.malformed("flag")),
    }
}

impl Datum<'_> {
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Null => to.put_u8(0),
            Self::Int(v) => {
                to.put_u8(1);
                to.put_i64(*v);
            }
            Self::UInt(v) => {
                to.put_u8(2);
                to.put_u64(*v);
            }
            Self::Float(v) => {
                to.put_u8(3);
                to.put_u32(v.to_bits());
            }
            Self::Double(v) => {
                to.put_u8(4);
                to.put_f64(*v);
            }
            Self::Decimal(v) => {
                to.extend_from_slice(&[5, v.scale()]);
                to.extend_from_slice(&v.as_i256().to_le_bytes());
            }
            Self::Str(v) => {
                to.put_u8(6);
                to.put_str(v);
            }
            Self::Bytes(v) => {
                to.put_u8(7);
                to.put_bytes(v);
            }
            Self::Date(v) => {
                to.put_u8(8);
                to.put_u32(*v as u32);
            }
            Self::DateTime(v) => {
                to.put_u8(9);
                to.put_i64(*v);
            }
            Self::Time(v) => {
                to.put_u8(10);
                to.put_i64(*v);
            }
        }
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Value, Malformed> {
        const WHAT: &str = "value";
        Ok(match from.u8(WHAT)? {
            0 => Datum::Null,
            1 => Datum::Int(from.i64(WHAT)?),
            2 => Datum::UInt(from.u64(WHAT)?),
            3 => Datum::Float(f32::from_bits(from.u32(WHAT)?)),
            4 => Datum::Double(from.f64(WHAT)?),
            5 => {
                let scale = from.u8(WHAT)?;
                let raw = from.take(32, WHAT)?;
                if scale > Decimal::MAX_SCALE {
                    return Err(from.malformed(WHAT));
                }
                let unscaled =
                    i256::from_le_bytes(raw.try_into().expect("take returns the length asked for"));
                Datum::Decimal(Decimal::from_i256(unscaled, scale))
            }
            6 => Datum::Str(from.str(WHAT)?.to_owned().into()),
            7 => Datum::Bytes(from.bytes(WHAT)?.to_owned().into()),
            8 => Datum::Date(from.u32(WHAT)? as i32),
            9 => Datum::DateTime(from.i64(WHAT)?),
            10 => Datum::Time(from.i64(WHAT)?),
            _ => return Err(from.malformed(WHAT)),
        })
    }
}

/// A list: its length and its items.
fn put_list<T>(items: &[T], to: &mut Vec<u8>, mut put: impl FnMut(&T, &mut Vec<u8>)) {
    to.put_varint(items.len() as u64);
    items.iter().for_each(|item| put(item, to));
}

fn list<T>(
    from: &mut Reader<'_>,
    mut item: impl FnMut(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = from.varint("list")?;
    if count > MAX_ITEMS {
        return Err(from.malformed("list"));
    }
    (0..count).map(|_| item(from)).collect()
}
