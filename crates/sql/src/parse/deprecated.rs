//! Syntax that MySQL is going to give up, of which a statement's warnings tell, once for each place in its text.

use avocet_types::Collation;
use avocet_types::collation::Charset;
use avocet_types::error::ErrorCode;

use super::error::{ParseError, ParseResult};
use super::parser::Parser;

/// A use of deprecated syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deprecated {
    /// `&&`
    DoubleAmpersand,
    /// `||` where it is OR
    DoublePipe,
    /// `!`
    Bang,
    /// `BINARY expr`
    BinaryOperator,
    /// `CHAR(…) BINARY`
    BinaryAttribute,
    Ascii,
    Unicode,
    National,
    /// The character set `utf8`
    Utf8,
    /// `utf8mb3` and others by their names
    CharsetName(Charset),
    /// A collation of these that a definition or SET names
    CollationName(Collation),
    DisplayWidth,
    Zerofill,
    /// UNSIGNED of a DECIMAL, FLOAT or DOUBLE
    UnsignedFraction,
    /// `FLOAT(7,3)`
    FloatDigits,
    /// `YEAR(4)`
    YearWidth,
    SqlNoCache,
    SqlCalcFoundRows,
    /// `@a := …`
    AssignedVariable,
    /// FOUND_ROWS()
    FoundRows,
    /// VALUES() behind ON DUPLICATE KEY UPDATE
    InsertedValue,
    /// VALUES() in a subquery there
    InsertedValueOfSubquery,
    /// VALUES() elsewhere
    ValuesFunction,
}

const OLD_CHARSETS: [Charset; 6] =
    [Charset::Utf8mb3, Charset::Ucs2, Charset::Macroman, Charset::Macce, Charset::Dec8, Charset::Hp8];

const GOES: &str = "is deprecated and will be removed in a future release.";

impl Deprecated {
    /// The number and text of its warning.
    pub fn warning(self) -> (u16, String) {
        let instead =
            |what: &str, advice: &str| (1287, format!("'{what}' {GOES} Please use {advice} instead"));
        let gone = |what: &str| (1681, format!("{what} {GOES}"));
        match self {
            Self::DoubleAmpersand => instead("&&", "AND"),
            Self::DoublePipe => instead("|| as a synonym for OR", "OR"),
            Self::Bang => instead("!", "NOT"),
            Self::BinaryOperator => instead("BINARY expr", "CAST"),
            Self::BinaryAttribute => {
                instead("BINARY as attribute of a type", "a CHARACTER SET clause with _bin collation")
            }
            Self::Ascii => instead("ASCII", "CHARACTER SET charset_name"),
            Self::Unicode => instead("UNICODE", "CHARACTER SET charset_name"),
            Self::National => {
                let text = "NATIONAL/NCHAR/NVARCHAR implies the character set UTF8MB3, which will be replaced by UTF8MB4 in a \
                    future release. Please consider using CHAR(x) CHARACTER SET UTF8MB4 in order to be unambiguous.";
                (3720, text.into())
            }
            Self::Utf8 => {
                let text = "'utf8' is currently an alias for the character set UTF8MB3, but will be an alias for UTF8MB4 in a \
                    future release. Please consider using UTF8MB4 in order to be unambiguous.";
                (3719, text.into())
            }
            Self::CharsetName(charset) => instead(charset.name(), "utf8mb4"),
            Self::CollationName(collation) => {
                let charset = collation.info().charset;
                let (errno, old, new) = match charset {
                    Charset::Utf8mb3 => (3778, "UTF8MB3", "UTF8MB4"),
                    _ => (4079, charset.name(), "utf8mb4"),
                };
                let advice = format!("Please consider using {new} with an appropriate collation instead.");
                let of = format!("is a collation of the deprecated character set {old}. {advice}");
                (errno, format!("'{}' {of}", collation.name()))
            }
            Self::DisplayWidth => gone("Integer display width"),
            Self::Zerofill => {
                let advice = "Use the LPAD function to zero-pad numbers, or store the formatted numbers in a CHAR column.";
                (1681, format!("The ZEROFILL attribute {GOES} {advice}"))
            }
            Self::UnsignedFraction => {
                let text = "UNSIGNED for decimal and floating point data types is deprecated and support for it will be removed \
                    in a future release.";
                (1681, text.into())
            }
            Self::FloatDigits => gone("Specifying number of digits for floating point data types"),
            Self::YearWidth => instead("YEAR(4)", "YEAR"),
            Self::SqlNoCache => gone("'SQL_NO_CACHE'"),
            Self::SqlCalcFoundRows => {
                (1287, format!("SQL_CALC_FOUND_ROWS {GOES} Consider using two separate queries instead."))
            }
            Self::AssignedVariable => {
                let advice = "'SET variable=expression, ...', or 'SELECT expression(s) INTO variables(s)'";
                (
                    1287,
                    format!(
                        "Setting user variables within expressions {GOES} Consider alternatives: {advice}."
                    ),
                )
            }
            Self::FoundRows => (1287, format!("FOUND_ROWS() {GOES} Consider using COUNT(*) instead.")),
            Self::ValuesFunction => gone("'VALUES function'"),
            Self::InsertedValueOfSubquery => {
                let text = "It always returns NULL in this context. If you meant to access a value from the VALUES clause of the \
                    INSERT statement, consider using an alias (INSERT INTO ... VALUES (...) AS alias) and reference alias.col \
                    instead of VALUES(col) in the ON DUPLICATE KEY UPDATE clause.";
                (1287, format!("The VALUES function {GOES} {text}"))
            }
            Self::InsertedValue => instead(
                "VALUES function",
                "an alias (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in the ON DUPLICATE KEY UPDATE clause \
                 with alias.col",
            ),
        }
    }

    /// The use of a character set by its name, if that is deprecated.
    pub fn of_charset(name: &str) -> Option<Self> {
        let charset = Charset::by_name(name).filter(|charset| OLD_CHARSETS.contains(charset))?;
        let is_alias = name.eq_ignore_ascii_case("utf8");
        Some(if is_alias { Self::Utf8 } else { Self::CharsetName(charset) })
    }

    /// The use of a collation by its name, if that is deprecated.
    pub fn of_collation(name: &str) -> Option<Self> {
        let collation = Collation::by_name(name)?;
        OLD_CHARSETS.contains(&collation.info().charset).then_some(Self::CollationName(collation))
    }

    /// MySQL meets it when it resolves the statement, not when it parses it.
    fn is_of_resolver(self) -> bool {
        matches!(
            self,
            Self::FoundRows | Self::InsertedValue | Self::InsertedValueOfSubquery | Self::ValuesFunction
        )
    }
}

/// What a statement has of it so far, with the token behind each: what is read once more is not noted twice.
#[derive(Default)]
pub(super) struct Noted(Vec<(usize, Deprecated)>);

impl Noted {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn rewind(&mut self, position: usize) {
        while self.0.last().is_some_and(|(at, _)| *at > position) {
            self.0.pop();
        }
    }

    /// In the order of MySQL's warnings.
    pub fn take(&mut self) -> Box<[Deprecated]> {
        self.0.sort_by_key(|(_, deprecated)| deprecated.is_of_resolver());
        self.0.drain(..).map(|(_, deprecated)| deprecated).collect()
    }
}

impl Parser<'_> {
    /// Notes a use of deprecated syntax that ends before the cursor.
    pub(super) fn deprecated(&mut self, deprecated: Deprecated) {
        self.deprecations.0.push((self.position(), deprecated));
    }

    /// The name of a character set.
    pub(super) fn charset_name(&mut self) -> ParseResult<String> {
        let name = self.name()?;
        if let Some(deprecated) = Deprecated::of_charset(&name) {
            self.deprecated(deprecated);
        }
        match Charset::by_name(&name) {
            Some(_) => Ok(name),
            None => Err(ParseError::Refused(Box::new(ErrorCode::UNKNOWN_CHARACTER_SET.with(&[&name])))),
        }
    }

    /// The name of a collation that a definition or SET gives. Whether there is one is asked before what the statement names.
    pub(super) fn collation_name(&mut self) -> ParseResult<String> {
        let name = self.name()?;
        if let Some(deprecated) = Deprecated::of_collation(&name) {
            self.deprecated(deprecated);
        }
        known_collation(name)
    }
}

/// Error 1273 if there is no such collation.
pub(super) fn known_collation(name: String) -> ParseResult<String> {
    match Collation::by_name(&name) {
        Some(_) => Ok(name),
        None => Err(ParseError::Refused(Box::new(ErrorCode::UNKNOWN_COLLATION.with(&[&name])))),
    }
}
