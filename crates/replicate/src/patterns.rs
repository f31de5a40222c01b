//! Which databases and tables are followed: `db`, `db.table`, with `*` for any part of a name.

/// What is included, less what is excluded. Nothing included means all.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
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
        let matches = |of: &[Pattern]| of.iter().any(|pattern| pattern.has(database, table));
        self.has_database(database)
            && (self.include.is_empty() || matches(&self.include))
            && !matches(&self.exclude)
    }

    /// Whether some table of it may be followed.
    pub fn has_database(&self, database: &str) -> bool {
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
        let patterns =
            Patterns { include: list(&["shop", "log.a*"]), exclude: list(&["shop.tmp_*", "other"]) };
        assert!(patterns.has_table("shop", "t") && patterns.has_table("log", "abc"));
        assert!(!patterns.has_table("shop", "tmp_1") && !patterns.has_table("log", "b"));
        assert!(!patterns.has_table("other", "t") && !patterns.has_database("other"));
        assert!(!Patterns::default().has_table("mysql", "user"));
        assert!(Patterns::default().has_table("x", "user"));
    }
}
