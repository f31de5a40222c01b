//! ALTER TABLE … CONVERT TO CHARACTER SET: of columns and of the table's default. Columns keep as many characters as they take
//! (MySQL Reference Manual, ALTER TABLE, "Changing the Character Set").

use avocet_types::convert::{ConvertContext, store};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::recode;
use avocet_types::schema::{ColumnDef, DefaultValue, IndexKind, MAX_KEY_BYTES, TableDef};
use avocet_types::{Collation, Datum, LobSize, Members, SqlType};

use super::super::columns::member_error;
use super::super::row_size::MAX_ROW_BYTES;
use super::Draft;
use crate::settings::collation_of;
use crate::state::{Level, Session};

impl Session {
    pub(super) fn convert_charset(
        &mut self,
        draft: &mut Draft,
        charset: &str,
        collation: Option<&str>,
    ) -> Result<(), SqlError> {
        let utf8mb4 = self.settings.utf8mb4_collation;
        let Some(to) = collation_of(Some(charset), collation, utf8mb4)? else { return Ok(()) };
        draft.copies = true;
        draft.def.default_collation = to;
        // What hidden ones become follows from the others.
        for column in draft.def.columns.iter_mut().filter(|column| !column.is_hidden()) {
            let ty = self.converted_type(column, to)?;
            convert_default(column, &ty)?;
            column.ty = ty;
        }
        check_unique(&draft.def)
    }

    fn converted_type(&mut self, column: &ColumnDef, to: Collation) -> Result<SqlType, SqlError> {
        let is_binary = to == Collation::BINARY;
        Ok(match column.ty {
            // Names that are bytes stay these.
            SqlType::Enum(members) | SqlType::Set(members) if members.collation() == Collation::BINARY => {
                column.ty
            }
            SqlType::Enum(members) => SqlType::Enum(under_collation(members, to, &column.name, "ENUM")?),
            SqlType::Set(members) => SqlType::Set(under_collation(members, to, &column.name, "SET")?),
            SqlType::Char { len, .. } if is_binary => SqlType::Binary { len },
            SqlType::Char { len, .. } => SqlType::Char { len, collation: to },
            SqlType::VarChar { len, .. } if is_binary => SqlType::VarBinary { len },
            SqlType::VarChar { len, .. } if u64::from(len) <= most_chars(to) => {
                SqlType::VarChar { len, collation: to }
            }
            SqlType::VarChar { len, .. } => self.text_for(column, len, to)?,
            SqlType::Text { size: LobSize::Long, .. } if is_binary => SqlType::Blob { size: LobSize::Long },
            SqlType::Text { size: LobSize::Long, .. } => SqlType::Text { size: LobSize::Long, collation: to },
            SqlType::Text { size, collation } => {
                let size = LobSize::for_bytes(size.max_bytes() / max_len(collation) * max_len(to));
                match is_binary {
                    true => SqlType::Blob { size },
                    false => SqlType::Text { size, collation: to },
                }
            }
            ty => ty,
        })
    }

    /// The TEXT that a VARCHAR becomes for which the character set leaves no room in a row. In strict mode it stays one, and is refused,
    /// as one with a constant default is.
    fn text_for(&mut self, column: &ColumnDef, len: u32, to: Collation) -> Result<SqlType, SqlError> {
        let name = &column.name;
        let has_constant = matches!(column.default, Some(DefaultValue::Const(_)));
        if self.settings.sql_mode.is_strict() || has_constant {
            return Err(ErrorCode::TOO_BIG_FIELDLENGTH.with(&[name, &most_chars(to)]));
        }
        self.warn(Level::Note, 1246, format!("Converting column '{name}' from VARCHAR to TEXT"));
        Ok(SqlType::Text { size: LobSize::for_bytes(u64::from(len) * max_len(to)), collation: to })
    }
}

fn max_len(collation: Collation) -> u64 {
    collation.info().charset.max_len().into()
}

/// Characters of a VARCHAR at most.
fn most_chars(collation: Collation) -> u64 {
    MAX_ROW_BYTES / max_len(collation)
}

/// A constant default comes to be one of the new type. As MySQL has it, what the character set has not is an error of the text
/// in CHAR, ENUM and SET.
fn convert_default(column: &mut ColumnDef, to: &SqlType) -> Result<(), SqlError> {
    let Some(DefaultValue::Const(value)) = &mut column.default else { return Ok(()) };
    let from = column.ty;
    let text = match (from, &value) {
        (SqlType::Char { .. }, Datum::Str(text)) => Some(text.to_string()),
        (SqlType::Enum(members), Datum::UInt(number)) => Some(members.name(*number).to_owned()),
        (SqlType::Set(members), Datum::UInt(bits)) => Some(members.joined(*bits).into_owned()),
        _ => None,
    };
    let collations = from.declared_collation().zip(to.declared_collation());
    if let Some((text, (from, to))) = text.zip(collations) {
        let of = |collation| SqlType::VarChar { len: 0, collation };
        recode(Datum::Str(text.into()), &of(from), &of(to))?;
    }
    if let Datum::Str(_) = value {
        let stored = store(value.clone(), &from, to, &ConvertContext::STRICT_UTC);
        let stored = stored.map_err(|_| ErrorCode::INVALID_DEFAULT.with(&[&column.name]))?;
        *value = stored.value.into_owned();
    }
    Ok(())
}

/// Error 3886 for unique keys that become too long; that other keys do is for the checks of all definitions.
fn check_unique(def: &TableDef) -> Result<(), SqlError> {
    for index in def.indexes.iter().filter(|index| index.kind != IndexKind::Secondary) {
        for part in &index.parts {
            let column = &def.columns[part.column];
            let is_string = matches!(column.ty, SqlType::Char { .. } | SqlType::VarChar { .. });
            if is_string && part.max_bytes(&column.ty) > MAX_KEY_BYTES {
                let names: [&dyn std::fmt::Display; 4] =
                    [&column.name, &def.name, &index.name, &MAX_KEY_BYTES];
                return Err(ErrorCode::TOO_LONG_KEY_AFTER_CONVERSION.with(&names));
            }
        }
    }
    Ok(())
}

/// The same members in another character set.
fn under_collation(members: Members, to: Collation, column: &str, kind: &str) -> Result<Members, SqlError> {
    members.with_collation(to).map_err(|error| member_error(error, column, kind))
}
