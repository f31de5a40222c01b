//! Types of columns, with their attributes.

use avocet_types::collation::Charset;
use avocet_types::expr::SqlMode;

use crate::parse::ast::TypeSpec;
use crate::parse::deprecated::Deprecated;
use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;

/// Whether a word begins a column's type; those that are not served are refused by name later.
fn is_type(word: &str) -> bool {
    const TYPES: &[&str] = &[
        "BIGINT",
        "BINARY",
        "BIT",
        "BLOB",
        "BOOL",
        "BOOLEAN",
        "CHAR",
        "CHARACTER",
        "DATE",
        "DATETIME",
        "DEC",
        "DECIMAL",
        "DOUBLE",
        "ENUM",
        "FIXED",
        "FLOAT",
        "FLOAT4",
        "FLOAT8",
        "GEOMCOLLECTION",
        "GEOMETRY",
        "GEOMETRYCOLLECTION",
        "INT",
        "INT1",
        "INT2",
        "INT3",
        "INT4",
        "INT8",
        "INTEGER",
        "JSON",
        "LINESTRING",
        "LONG",
        "LONGBLOB",
        "LONGTEXT",
        "MEDIUMBLOB",
        "MEDIUMINT",
        "MEDIUMTEXT",
        "MIDDLEINT",
        "MULTILINESTRING",
        "MULTIPOINT",
        "MULTIPOLYGON",
        "NATIONAL",
        "NCHAR",
        "NUMERIC",
        "NVARCHAR",
        "POINT",
        "POLYGON",
        "REAL",
        "SERIAL",
        "SET",
        "SMALLINT",
        "TEXT",
        "TIME",
        "TIMESTAMP",
        "TINYBLOB",
        "TINYINT",
        "TINYTEXT",
        "VARBINARY",
        "VARCHAR",
        "VARCHARACTER",
        "VECTOR",
        "YEAR",
    ];
    TYPES.binary_search(&word).is_ok()
}

impl Parser<'_> {
    pub(in crate::parse) fn type_spec(&mut self) -> ParseResult<TypeSpec> {
        let start = self.span();
        let mut name = self.word_upper().filter(|word| is_type(word)).ok_or_else(|| self.error())?;
        self.advance();
        match name.as_str() {
            "REAL" if self.mode.has(SqlMode::REAL_AS_FLOAT) => name = "FLOAT".into(),
            "DOUBLE" | "FLOAT8" | "REAL" => {
                self.eat("PRECISION");
                name = "DOUBLE".into();
            }
            "LONG" if self.eat("VARBINARY") => name = "MEDIUMBLOB".into(),
            "LONG" => {
                self.eat("VARCHAR");
                name = "MEDIUMTEXT".into();
            }
            "CHARACTER" | "CHAR" if self.eat("VARYING") => name = "VARCHAR".into(),
            "NATIONAL" => {
                let varying = self.eat("VARCHAR") || {
                    self.eat_any(&["CHAR", "CHARACTER"]).ok_or_else(|| self.error())?;
                    self.eat("VARYING")
                };
                name = if varying { "NVARCHAR".into() } else { "NCHAR".into() };
            }
            "NCHAR" if self.eat("VARCHAR") || self.eat("VARYING") => name = "NVARCHAR".into(),
            _ => {}
        }
        let is_national = matches!(name.as_str(), "NCHAR" | "NVARCHAR");
        let mut ty = TypeSpec {
            name,
            args: Vec::new(),
            values: Vec::new(),
            unsigned: false,
            zerofill: false,
            charset: is_national.then(|| "utf8mb3".into()),
            collation: None,
            binary: false,
            span: start,
        };
        if ty.has_members() {
            self.expect_op(Op::LParen)?;
            ty.values = self.comma_separated(Self::member)?;
            self.expect_op(Op::RParen)?;
        } else if ty.may_have_args() && self.eat_op(Op::LParen) {
            ty.args = self.comma_separated(Self::unsigned)?;
            self.expect_op(Op::RParen)?;
        }
        if ty.name == "DOUBLE" && ty.args.len() == 1 {
            return Err(self.error());
        }
        self.type_attributes(&mut ty)?;
        if is_national {
            self.deprecated(Deprecated::National);
        }
        ty.span = self.span_from(start);
        Ok(ty)
    }

    /// A member of an ENUM or SET: a string, or its bytes.
    fn member(&mut self) -> ParseResult<String> {
        match self.peek() {
            TokenKind::Bytes(bytes) | TokenKind::Bits(bytes) => {
                let text = self.text(bytes)?;
                self.advance();
                Ok(text)
            }
            _ => self.string(),
        }
    }

    /// Each kind of type takes attributes of its own; others end the type.
    fn type_attributes(&mut self, ty: &mut TypeSpec) -> ParseResult<()> {
        if ty.is_number() {
            return self.number_attributes(ty);
        }
        if ty.is_text() { self.text_attributes(ty) } else { Ok(()) }
    }

    fn number_attributes(&mut self, ty: &mut TypeSpec) -> ParseResult<()> {
        while let Some(word) = self.eat_any(&["SIGNED", "UNSIGNED", "ZEROFILL"]) {
            match word {
                "UNSIGNED" => ty.unsigned = true,
                "ZEROFILL" => (ty.unsigned, ty.zerofill) = (true, true),
                _ => {}
            }
        }
        self.deprecated_number(ty);
        Ok(())
    }

    fn deprecated_number(&mut self, ty: &TypeSpec) {
        if ty.zerofill {
            self.deprecated(Deprecated::Zerofill);
        }
        let is_approximate = ty.is_approximate();
        match &*ty.args {
            [_] if ty.name == "YEAR" => self.deprecated(Deprecated::YearWidth),
            [_, _] if is_approximate => self.deprecated(Deprecated::FloatDigits),
            [_] if ty.is_integer() => self.deprecated(Deprecated::DisplayWidth),
            _ => {}
        }
        if ty.unsigned && !ty.is_integer() && ty.name != "YEAR" {
            self.deprecated(Deprecated::UnsignedFraction);
        }
    }

    fn text_attributes(&mut self, ty: &mut TypeSpec) -> ParseResult<()> {
        loop {
            if self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]) || self.eat_all(&["CHAR", "SET"]) {
                ty.charset = Some(self.charset_name()?);
            } else if self.binary_attribute() {
                ty.binary = true;
            } else if let Some(charset) = self.charset_attribute() {
                ty.charset = Some(charset.name().into());
            } else {
                return Ok(());
            }
        }
    }

    /// BINARY as an attribute of a type of text.
    pub(in crate::parse) fn binary_attribute(&mut self) -> bool {
        let is_given = self.eat("BINARY");
        if is_given {
            self.deprecated(Deprecated::BinaryAttribute);
        }
        is_given
    }

    /// A character set's old name as an attribute of a type of text.
    pub(in crate::parse) fn charset_attribute(&mut self) -> Option<Charset> {
        match self.eat_any(&["ASCII", "UNICODE", "BYTE"])? {
            "ASCII" => {
                self.deprecated(Deprecated::Ascii);
                Some(Charset::Latin1)
            }
            "UNICODE" => {
                self.deprecated(Deprecated::Unicode);
                Some(Charset::Ucs2)
            }
            _ => Some(Charset::Binary),
        }
    }
}
