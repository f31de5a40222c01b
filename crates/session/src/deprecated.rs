//! Warnings of what MySQL is going to give up: of syntax once where a statement is run, or where it is prepared; of variables and
//! their values where they are set.

use avocet_sql::parse::deprecated::Deprecated;
use avocet_types::{Collation, Datum, Value};

use super::state::{Level, Session};
use super::variables::{Kind, Variable};

/// Variables that shall not be set any more.
const READ_ONLY_SOON: [&str; 3] =
    ["character_set_database", "collation_database", "default_collation_for_utf8mb4"];

impl Session {
    pub(super) fn warn_of_deprecated(&mut self) {
        for at in 0..self.deprecated.len() {
            let (errno, message) = self.deprecated[at].warning();
            self.warn(Level::Warning, errno, message);
        }
    }

    /// For SET of a variable, to a value or its default.
    pub(super) fn warn_of_value(&mut self, variable: &Variable, given: Option<&Value>) {
        let deprecated = match (variable.kind, given) {
            (Kind::Charset | Kind::NullableCharset, Some(Datum::Str(name))) => Deprecated::of_charset(name),
            (Kind::Charset | Kind::NullableCharset, Some(number)) => collation_numbered(number)
                .and_then(|named| Deprecated::of_charset(named.info().charset.name())),
            (Kind::Collation, Some(Datum::Str(name))) => Deprecated::of_collation(name),
            (Kind::Collation, Some(number)) => {
                collation_numbered(number).and_then(|named| Deprecated::of_collation(named.name()))
            }
            _ => None,
        };
        if let Some((errno, message)) = deprecated.map(Deprecated::warning) {
            self.warn(Level::Warning, errno, message);
        }
        if READ_ONLY_SOON.contains(&variable.name) {
            let name = variable.name;
            let message =
                format!("Updating '{name}' is deprecated. It will be made read-only in a future release.");
            self.warn(Level::Warning, 1681, message);
        }
    }
}

fn collation_numbered(number: &Value) -> Option<Collation> {
    match number {
        Datum::Int(id) => u16::try_from(*id).ok().map(Collation),
        Datum::UInt(id) => u16::try_from(*id).ok().map(Collation),
        _ => None,
    }
}
