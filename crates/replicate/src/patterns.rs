//! Which databases and tables are followed: `db`, `db.table`, with `*` for any part of a name; and where several sources are followed,
//! whose a database is.

use std::fmt::Debug;
use std::sync::Arc;

/// What is included, less what is excluded, and less what other channels follow. Nothing included means all.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
    /// `None` if there can be one channel only.
    pub channel: Option<Channel>,
}

/// One of several sources of this server.
#[derive(Clone, Debug)]
pub struct Channel {
    pub number: u32,
    pub claims: Arc<dyn Claims>,
}

/// Which channel follows a database. A database is of one channel, and stays so.
pub trait Claims: Debug + Send + Sync {
    /// The name of the channel that follows it, if that is another than this.
    fn other(&self, database: &str, channel: u32) -> Option<String>;

    /// Makes a database this channel's, durably, unless it is another's; the name of that.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn claim(&self, database: &str, channel: u32) -> Result<Option<String>, String>;
}

/// Names of a database and a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    database: String,
    /// `None` for all.
    table: Option<String>,
}

/// Databases of the server's own, which are not followed.
pub const SYSTEM: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];

impl Patterns {
    pub fn has_table(&self, database: &str, table: &str) -> bool {
        self.names_table(database, table) && self.other(database).is_none()
    }

    /// Whether some table of it may be followed.
    pub fn has_database(&self, database: &str) -> bool {
        self.names_database(database) && self.other(database).is_none()
    }

    /// The channel that follows a database, if that is another.
    pub fn other(&self, database: &str) -> Option<String> {
        self.channel.as_ref().and_then(|channel| channel.claims.other(database, channel.number))
    }

    /// Makes a database this channel's, unless it is another's; the name of that.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn claim(&self, database: &str) -> Result<Option<String>, String> {
        self.channel.as_ref().map_or(Ok(None), |channel| channel.claims.claim(database, channel.number))
    }

    /// What is named, whoever follows it.
    pub fn of_all_channels(&self) -> Self {
        Self { channel: None, ..self.clone() }
    }

    /// Whether it is wanted, whoever follows it.
    pub fn names_table(&self, database: &str, table: &str) -> bool {
        let matches = |of: &[Pattern]| of.iter().any(|pattern| pattern.has(database, table));
        self.names_database(database)
            && (self.include.is_empty() || matches(&self.include))
            && !matches(&self.exclude)
    }

    /// As [`Self::names_table`], of some table of it.
    pub fn names_database(&self, database: &str) -> bool {
        let is_included = self.include.iter().any(|pattern| is_like(database, &pattern.database));
        let is_excluded = self
            .exclude
            .iter()
            .any(|pattern| pattern.table.is_none() && is_like(database, &pattern.database));
        !SYSTEM.iter().any(|system| system.eq_ignore_ascii_case(database))
            && (self.include.is_empty() || is_included)
            && !is_excluded
    }
}

impl Pattern {
    pub fn has(&self, database: &str, table: &str) -> bool {
        is_like(database, &self.database) && self.table.as_ref().is_none_or(|like| is_like(table, like))
    }
}

impl std::str::FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (database, table) = match text.split_once('.') {
            Some((database, table)) => (database, Some(table)),
            None => (text, None),
        };
        if database.is_empty() || table.is_some_and(str::is_empty) {
            return Err(format!("'{text}' is not a database or database.table"));
        }
        Ok(Self { database: database.to_owned(), table: table.map(str::to_owned) })
    }
}

/// `*` stands for any characters.
fn is_like(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        for (name, pattern, wanted) in [
            ("shop", "shop", true),
            ("shop", "sho", false),
            ("shop", "s*p", true),
            ("shop", "*", true),
            ("shop", "*o*", true),
            ("shop", "*x*", false),
            ("ab", "ab*ab", false),
            ("abab", "a*b*b", true),
        ] {
            assert_eq!(is_like(name, pattern), wanted, "{name} {pattern}");
        }
    }

    #[test]
    fn what_is_excluded_is_not_included() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a pattern")).collect();
        let patterns = Patterns {
            include: list(&["shop", "log.a*"]),
            exclude: list(&["shop.tmp_*", "other"]),
            channel: None,
        };
        assert!(patterns.has_table("shop", "t") && patterns.has_table("log", "abc"));
        assert!(!patterns.has_table("shop", "tmp_1") && !patterns.has_table("log", "b"));
        assert!(!patterns.has_table("other", "t") && !patterns.has_database("other"));
        assert!(!Patterns::default().has_table("mysql", "user"));
        assert!(Patterns::default().has_table("x", "user"));
    }
}
