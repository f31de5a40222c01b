//! Column definitions: what a client is told of a result's columns.

use avocet_channel::{OutputColumn, ResultsCharset, Status};
use avocet_types::{Collation, IntWidth, LobSize, Members, SqlType};
use mysql_common::constants::{ColumnFlags, ColumnType};

use super::{PacketBuf, charset};

/// "The number of fractional digits is not fixed."
const NOT_FIXED: u8 = 31;
const UTF8MB4_BYTES: u32 = 4;
/// Characters of a FLOAT or DOUBLE that is computed.
const REAL_LENGTH: u32 = 23;

/// Type, length, character set and decimals: what follows from a column's type alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireType {
    pub code: ColumnType,
    /// Display width for numbers and temporals, bytes for strings.
    pub length: u32,
    pub collation: Collation,
    pub decimals: u8,
    pub flags: ColumnFlags,
    /// What is said of a text in other character sets than utf8mb4.
    text: Option<TextLength>,
}

/// The length of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextLength {
    /// How many characters it has at most.
    chars: u32,
    /// In bytes of its own character set.
    own: u32,
    collation: Collation,
}

impl WireType {
    pub fn of(ty: &SqlType) -> Self {
        match *ty {
            SqlType::Null => Self::number(ColumnType::MYSQL_TYPE_NULL, 0, 0, false),
            SqlType::Bool => Self::number(ColumnType::MYSQL_TYPE_TINY, 1, 0, false),
            SqlType::Int { width, unsigned } => {
                let (code, length) = integer(width, unsigned);
                Self::number(code, length, 0, unsigned)
            }
            SqlType::Decimal { precision, scale, unsigned } => {
                let length = u32::from(precision) + u32::from(scale > 0) + u32::from(!unsigned);
                Self::number(ColumnType::MYSQL_TYPE_NEWDECIMAL, length, scale, unsigned)
            }
            SqlType::Float(real) => {
                let (length, decimals) = real.digits.unwrap_or((12, NOT_FIXED));
                Self::number(ColumnType::MYSQL_TYPE_FLOAT, length.into(), decimals, real.unsigned)
            }
            SqlType::Double(real) => {
                let (length, decimals) = real.digits.unwrap_or((22, NOT_FIXED));
                Self::number(ColumnType::MYSQL_TYPE_DOUBLE, length.into(), decimals, real.unsigned)
            }
            SqlType::Char { len, collation } => Self::string(ColumnType::MYSQL_TYPE_STRING, len, collation),
            SqlType::VarChar { len, collation } => {
                Self::string(ColumnType::MYSQL_TYPE_VAR_STRING, len, collation)
            }
            SqlType::Text { size, collation } => {
                let bytes = lob_length(size);
                let chars = bytes / collation.info().charset.min_len();
                let text = Self::string(ColumnType::MYSQL_TYPE_BLOB, chars, collation);
                Self {
                    flags: text.flags | ColumnFlags::BLOB_FLAG,
                    text: Some(TextLength { chars, own: bytes, collation }),
                    ..text
                }
            }
            SqlType::Binary { len } => Self::binary(ColumnType::MYSQL_TYPE_STRING, len),
            SqlType::VarBinary { len } => Self::binary(ColumnType::MYSQL_TYPE_VAR_STRING, len),
            SqlType::Blob { size } => {
                let mut blob = Self::binary(ColumnType::MYSQL_TYPE_BLOB, lob_length(size));
                blob.flags |= ColumnFlags::BLOB_FLAG;
                blob
            }
            SqlType::Json => {
                let mut json = Self::binary(ColumnType::MYSQL_TYPE_JSON, u32::MAX);
                json.flags |= ColumnFlags::BLOB_FLAG;
                json
            }
            SqlType::Geometry { .. } => {
                let mut geometry = Self::binary(ColumnType::MYSQL_TYPE_GEOMETRY, u32::MAX);
                geometry.flags |= ColumnFlags::BLOB_FLAG;
                geometry
            }
            SqlType::Date => Self::temporal(ColumnType::MYSQL_TYPE_DATE, 10, 0),
            SqlType::DateTime { fsp } => Self::temporal(ColumnType::MYSQL_TYPE_DATETIME, 19, fsp),
            SqlType::Timestamp { fsp } => Self::temporal(ColumnType::MYSQL_TYPE_TIMESTAMP, 19, fsp),
            SqlType::Time { fsp } => Self::temporal(ColumnType::MYSQL_TYPE_TIME, 10, fsp),
            SqlType::Year => {
                let mut year = Self::number(ColumnType::MYSQL_TYPE_YEAR, 4, 0, true);
                year.flags |= ColumnFlags::ZEROFILL_FLAG;
                year
            }
            SqlType::Enum(members) => Self::members(members, members.longest(), ColumnFlags::ENUM_FLAG),
            SqlType::Set(members) => Self::members(members, members.joined_len(), ColumnFlags::SET_FLAG),
            SqlType::Bit { len } => Self {
                flags: ColumnFlags::UNSIGNED_FLAG,
                ..Self::binary(ColumnType::MYSQL_TYPE_BIT, len.into())
            },
        }
    }

    fn number(code: ColumnType, length: u32, decimals: u8, unsigned: bool) -> Self {
        // NUM_FLAG is the client's own: it sets it by the type.
        let mut flags = ColumnFlags::empty();
        flags.set(ColumnFlags::UNSIGNED_FLAG, unsigned);
        Self { code, length, collation: Collation::BINARY, decimals, flags, text: None }
    }

    /// Clients get text in a collation of their own, but are told of one that compares bytes.
    fn string(code: ColumnType, chars: u32, collation: Collation) -> Self {
        let length = chars.saturating_mul(UTF8MB4_BYTES);
        let mut flags = ColumnFlags::empty();
        flags.set(ColumnFlags::BINARY_FLAG, collation.is_binary());
        let own = chars.saturating_mul(collation.info().charset.max_len());
        let text = Some(TextLength { chars, own, collation });
        Self { code, length, collation: Collation::DEFAULT, decimals: 0, flags, text }
    }

    /// As the value of an expression: numbers are binary, texts have no fixed number of decimals and are no BLOBs, documents are
    /// texts.
    fn computed(mut self) -> Self {
        self.flags -= ColumnFlags::BLOB_FLAG | ColumnFlags::ZEROFILL_FLAG;
        match self.code {
            ColumnType::MYSQL_TYPE_STRING | ColumnType::MYSQL_TYPE_VAR_STRING => self.decimals = NOT_FIXED,
            // A digit more than a column has.
            ColumnType::MYSQL_TYPE_LONGLONG => self.length = 21,
            ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_DOUBLE if self.decimals == NOT_FIXED => {
                self.length = REAL_LENGTH;
            }
            ColumnType::MYSQL_TYPE_BLOB => {
                (self.code, self.decimals) = (ColumnType::MYSQL_TYPE_LONG_BLOB, NOT_FIXED);
                if let Some(text) = &mut self.text {
                    // Whole characters.
                    let charset = text.collation.info().charset;
                    text.own -= text.own % charset.max_len();
                    text.chars = text.own / charset.min_len();
                    self.length = text.chars.saturating_mul(UTF8MB4_BYTES);
                }
            }
            ColumnType::MYSQL_TYPE_JSON => {
                (self.collation, self.decimals) = (Collation::DEFAULT, NOT_FIXED);
                self.length = u32::MAX - 3;
                let chars = u32::MAX / UTF8MB4_BYTES;
                self.text = Some(TextLength { chars, own: u32::MAX, collation: Collation::UTF8MB4_BIN });
                self.flags |= ColumnFlags::BINARY_FLAG;
            }
            _ => {}
        }
        if self.collation == Collation::BINARY {
            self.flags |= ColumnFlags::BINARY_FLAG;
        }
        self
    }

    /// ENUM and SET are announced as CHARs, with a flag.
    fn members(members: Members, chars: u32, flag: ColumnFlags) -> Self {
        let ty = match members.collation() {
            Collation::BINARY => {
                Self::binary(ColumnType::MYSQL_TYPE_STRING, chars.saturating_mul(UTF8MB4_BYTES))
            }
            collation => Self::string(ColumnType::MYSQL_TYPE_STRING, chars, collation),
        };
        Self { flags: ty.flags | flag, ..ty }
    }

    /// As a client is told of it that gets text in another character set or collation.
    fn for_client(mut self, status: &Status) -> Self {
        if self.collation != Collation::DEFAULT {
            return self;
        }
        if let Some(text) = self.text {
            match status.results {
                ResultsCharset::Utf8mb4 => {}
                ResultsCharset::Of(charset) => {
                    self.collation = charset.default_collation();
                    self.length = text.chars.saturating_mul(charset.max_len());
                }
                ResultsCharset::Own => (self.collation, self.length) = (text.collation, text.own),
                ResultsCharset::OwnAsBytes => (self.collation, self.length) = (Collation::BINARY, text.chars),
            }
        }
        if let Some(collation) = status.results_collation {
            self.collation = collation;
        }
        self
    }

    fn binary(code: ColumnType, length: u32) -> Self {
        let flags = ColumnFlags::BINARY_FLAG;
        Self { code, length, collation: Collation::BINARY, decimals: 0, flags, text: None }
    }

    fn temporal(code: ColumnType, length: u32, fsp: u8) -> Self {
        let mut wire = Self::binary(code, length + if fsp > 0 { 1 + u32::from(fsp) } else { 0 });
        wire.decimals = fsp;
        wire
    }
}

fn integer(width: IntWidth, unsigned: bool) -> (ColumnType, u32) {
    let (code, signed_length) = match width {
        IntWidth::W8 => (ColumnType::MYSQL_TYPE_TINY, 4),
        IntWidth::W16 => (ColumnType::MYSQL_TYPE_SHORT, 6),
        IntWidth::W24 => (ColumnType::MYSQL_TYPE_INT24, 9),
        IntWidth::W32 => (ColumnType::MYSQL_TYPE_LONG, 11),
        IntWidth::W64 => (ColumnType::MYSQL_TYPE_LONGLONG, 20),
    };
    let same_either_way = matches!(width, IntWidth::W64);
    // MEDIUMINT UNSIGNED is eight digits wide, as is −8388608 with its sign less one.
    (code, if unsigned && !same_either_way { signed_length - 1 } else { signed_length })
}

fn lob_length(size: LobSize) -> u32 {
    u32::try_from(size.max_bytes()).unwrap_or(u32::MAX)
}

/// Writes a column definition packet. `default` is there only in answers to COM_FIELD_LIST.
pub fn definition(out: &mut PacketBuf, column: &OutputColumn, default: bool, status: &Status) {
    let results = status.results;
    let wire = WireType::of(&column.ty);
    let mut wire = if column.flags.computed { wire.computed() } else { wire }.for_client(status);
    if let Some(width) = column.flags.zerofill {
        wire.length = width.into();
    }
    out.begin();
    out.lenenc_bytes(b"def");
    for name in [&column.schema, &column.table, &column.org_table, &column.name, &column.org_name] {
        out.lenenc_bytes(&charset::encode(name, results));
    }
    out.put_u8(0x0C);
    out.put_u16(wire.collation.0);
    out.put_u32(wire.length);
    out.put_u8(wire.code as u8);
    out.put_u16((wire.flags | stated_flags(column)).bits());
    out.put_u8(wire.decimals);
    out.put(&[0, 0]);
    if default {
        out.put_u8(0xFB);
    }
    out.end();
}

/// Writes how many columns there are, and their definitions.
pub fn definitions(out: &mut PacketBuf, columns: &[OutputColumn], status: &Status) {
    out.begin();
    out.lenenc_int(columns.len() as u64);
    out.end();
    columns.iter().for_each(|column| definition(out, column, false, status));
}

/// What [`definitions`] writes, for [`PacketBuf::put_packets`].
pub fn encoded(columns: &[OutputColumn], results_collation: Option<Collation>) -> Box<[u8]> {
    let mut out = PacketBuf::default();
    definitions(&mut out, columns, &Status { results_collation, ..Status::default() });
    out.bytes().into()
}

/// A definition for a `?`. Of types only integers are told: drivers send these as unsigned or not by it. The others are left open.
pub fn parameter(out: &mut PacketBuf, ty: &SqlType) {
    let (code, length, mut flags) = match ty {
        SqlType::Bool | SqlType::Int { .. } => {
            (ColumnType::MYSQL_TYPE_LONGLONG, 21, ColumnFlags::BINARY_FLAG)
        }
        _ => (ColumnType::MYSQL_TYPE_VAR_STRING, 0, ColumnFlags::BINARY_FLAG),
    };
    flags.set(ColumnFlags::UNSIGNED_FLAG, ty.is_unsigned() && code == ColumnType::MYSQL_TYPE_LONGLONG);
    out.begin();
    out.lenenc_bytes(b"def");
    out.put(&[0, 0, 0]);
    out.lenenc_bytes(b"?");
    out.put_u8(0);
    out.put_u8(0x0C);
    out.put_u16(Collation::BINARY.0);
    out.put_u32(length);
    out.put_u8(code as u8);
    out.put_u16(flags.bits());
    out.put(&[0, 0, 0]);
    out.end();
}

fn stated_flags(column: &OutputColumn) -> ColumnFlags {
    let stated = column.flags;
    let mut flags = ColumnFlags::empty();
    flags.set(ColumnFlags::NOT_NULL_FLAG, stated.not_null);
    flags.set(ColumnFlags::PRI_KEY_FLAG, stated.primary_key);
    flags.set(ColumnFlags::UNIQUE_KEY_FLAG, stated.unique_key);
    flags.set(ColumnFlags::MULTIPLE_KEY_FLAG, stated.multiple_key);
    flags.set(ColumnFlags::AUTO_INCREMENT_FLAG, stated.auto_increment);
    flags.set(ColumnFlags::NO_DEFAULT_VALUE_FLAG, stated.no_default);
    flags.set(ColumnFlags::TIMESTAMP_FLAG, stated.timestamp_now);
    flags.set(ColumnFlags::ON_UPDATE_NOW_FLAG, stated.on_update_now);
    flags.set(ColumnFlags::ZEROFILL_FLAG, stated.zerofill.is_some());
    let in_key = stated.primary_key || stated.unique_key || stated.multiple_key || stated.later_part;
    flags.set(ColumnFlags::PART_KEY_FLAG, in_key);
    flags
}

#[cfg(test)]
mod tests {
    use avocet_types::collation::Charset;

    use super::*;

    /// As MySQL 9.7 tells them.
    #[test]
    fn texts_are_announced_in_the_character_set_that_the_client_gets() {
        let named = |name| Collation::by_name(name).expect("a collation");
        let told = |ty: SqlType, computed: bool, results| {
            let wire = WireType::of(&ty);
            let wire = if computed { wire.computed() } else { wire };
            let wire = wire.for_client(&Status { results, ..Status::default() });
            (wire.collation.0, wire.length)
        };
        let all = |ty: SqlType, computed| {
            let of = ResultsCharset::Of;
            let results = [
                ResultsCharset::Utf8mb4,
                of(Charset::Latin1),
                of(Charset::Utf16),
                ResultsCharset::Own,
                ResultsCharset::OwnAsBytes,
            ];
            results.map(|results| told(ty, computed, results))
        };
        let (latin1, utf16) = (named("latin1_swedish_ci"), named("utf16_general_ci"));
        let text = |size, collation| SqlType::Text { size, collation };
        let varchar = SqlType::VarChar { len: 10, collation: latin1 };
        assert_eq!(all(varchar, false), [(255, 40), (8, 10), (54, 40), (8, 10), (63, 10)]);
        let char = SqlType::Char { len: 5, collation: utf16 };
        assert_eq!(all(char, false), [(255, 20), (8, 5), (54, 20), (54, 20), (63, 5)]);
        let of_utf16 = text(LobSize::Medium, utf16);
        let halves = 16_777_215 / 2;
        let told = [(255, halves * 4), (8, halves), (54, halves * 4), (54, 16_777_215), (63, halves)];
        assert_eq!(all(of_utf16, false), told);
        const MOST: u32 = u32::MAX;
        let long = text(LobSize::Long, latin1);
        assert_eq!(all(long, false), [(255, MOST), (8, MOST), (54, MOST), (8, MOST), (63, MOST)]);
        let long = text(LobSize::Long, Collation::DEFAULT);
        let told = [(255, MOST), (8, MOST - 3), (54, MOST), (255, MOST - 3), (63, MOST - 3)];
        assert_eq!(all(long, true), told);
        let quarter = MOST / 4;
        let told = [(255, MOST - 3), (8, quarter), (54, MOST - 3), (46, MOST), (63, quarter)];
        assert_eq!(all(SqlType::Json, true), told);
        assert_eq!(all(SqlType::Json, false), [(63, MOST); 5]);
        assert_eq!(all(SqlType::INT, false), [(63, 11); 5]);
        let members = Members::new(vec!["ä".into(), "b".into()], latin1).expect("distinct names");
        assert_eq!(all(SqlType::Enum(members), false), [(255, 4), (8, 1), (54, 4), (8, 1), (63, 1)]);
    }

    #[test]
    fn types_are_announced_as_mysql_does() {
        let varchar = WireType::of(&SqlType::VarChar { len: 10, collation: Collation::UTF8MB4_BIN });
        assert_eq!((varchar.code as u8, varchar.length, varchar.collation.0), (253, 40, 255));
        let decimal = WireType::of(&SqlType::Decimal { precision: 12, scale: 2, unsigned: false });
        assert_eq!((decimal.code as u8, decimal.length, decimal.decimals), (246, 14, 2));
        assert_eq!(decimal.collation, Collation::BINARY);
        let medium = WireType::of(&SqlType::Int { width: IntWidth::W24, unsigned: true });
        assert_eq!((medium.length, medium.flags.contains(ColumnFlags::UNSIGNED_FLAG)), (8, true));
        let datetime = WireType::of(&SqlType::DateTime { fsp: 6 });
        assert_eq!((datetime.length, datetime.decimals), (26, 6));
        let long = WireType::of(&SqlType::Text { size: LobSize::Long, collation: Collation::DEFAULT });
        assert_eq!(long.length, u32::MAX);
        let members =
            Members::new(vec!["a".into(), "bc".into()], Collation::DEFAULT).expect("distinct names");
        let wire = WireType::of(&SqlType::Enum(members));
        assert_eq!((wire.code as u8, wire.length, wire.flags), (254, 8, ColumnFlags::ENUM_FLAG));
        let wire = WireType::of(&SqlType::Set(members));
        assert_eq!((wire.code as u8, wire.length, wire.flags), (254, 16, ColumnFlags::SET_FLAG));
        let wire = WireType::of(&SqlType::Bit { len: 10 });
        assert_eq!((wire.code as u8, wire.length, wire.flags), (16, 10, ColumnFlags::UNSIGNED_FLAG));
        let computed = WireType::of(&SqlType::INT).computed();
        assert_eq!((computed.flags, computed.decimals), (ColumnFlags::BINARY_FLAG, 0));
        let computed = WireType::of(&SqlType::VarChar { len: 3, collation: Collation::DEFAULT }).computed();
        assert_eq!((computed.flags, computed.decimals), (ColumnFlags::empty(), NOT_FIXED));
        let of_handshake = Status { results_collation: Some(Collation(224)), ..Status::default() };
        assert_eq!(computed.for_client(&of_handshake).collation, Collation(224));
        let real = WireType::of(&SqlType::DOUBLE);
        assert_eq!((real.length, real.computed().length), (22, 23));
        let document = WireType::of(&SqlType::Json).computed();
        assert_eq!((document.collation, document.flags), (Collation::DEFAULT, ColumnFlags::BINARY_FLAG));
    }
}
