//! Statements by their words, where the parser does not take them or a word is all that is asked for.

use super::statements::Asked;
use crate::source::Flavor;
use crate::state::TableName;

/// A statement that the parser does not take: those about what is not kept here are passed over, those of tables name them in fixed
/// places.
pub fn by_words(text: &str, default: &str, flavor: Flavor, why: &str) -> Asked {
    const NOT_KEPT: [&str; 15] = [
        "PROCEDURE",
        "FUNCTION",
        "TRIGGER",
        "EVENT",
        "SERVER",
        "TABLESPACE",
        "LOGFILE",
        "UNDO",
        "RESOURCE",
        "SPATIAL",
        "USER",
        "ROLE",
        "INSTANCE",
        "LIBRARY",
        "PACKAGE",
    ];
    const MAINTENANCE: [&str; 14] = [
        "ANALYZE",
        "OPTIMIZE",
        "REPAIR",
        "CHECK",
        "FLUSH",
        "GRANT",
        "REVOKE",
        "SET",
        "INSTALL",
        "UNINSTALL",
        "RESET",
        "CACHE",
        "IMPORT",
        "BINLOG",
    ];
    const KINDS: [&str; 6] = ["TABLE", "VIEW", "INDEX", "SEQUENCE", "DATABASE", "SCHEMA"];
    let words = Words::of(text, default);
    let not_understood = || Asked::NotUnderstood(why.to_owned());
    let Some(first) = words.upper.first() else { return Asked::Nothing };
    if MAINTENANCE.contains(&first.as_str()) {
        return Asked::Nothing;
    }
    if !matches!(first.as_str(), "CREATE" | "ALTER" | "DROP" | "RENAME") {
        return not_understood();
    }
    // What is defined comes first; DEFINER = … and other clauses may stand before it.
    let begin = words.behind_definer();
    let is_kind = |word: &String| KINDS.contains(&word.as_str()) || NOT_KEPT.contains(&word.as_str());
    let Some(kind) = words.upper[begin..].iter().position(is_kind) else { return not_understood() };
    let kind = begin + kind;
    let mut at = kind + 1;
    match words.upper[kind].as_str() {
        "TABLE" | "VIEW" | "SEQUENCE" => {}
        "INDEX" => match words.find(at, "ON") {
            Some(on) => at = on + 1,
            None => return not_understood(),
        },
        // What such a database has is made when a table in it is copied.
        "DATABASE" | "SCHEMA" if flavor == Flavor::MariaDb && first != "DROP" => {
            let is_replaced = words.find(0, "REPLACE").is_some_and(|replace| replace < kind);
            return match (is_replaced, words.name(words.behind_if(at))) {
                (false, _) => Asked::Nothing,
                (true, Some((name, _))) => Asked::Replaced(name.table),
                (true, None) => not_understood(),
            };
        }
        "DATABASE" | "SCHEMA" => return not_understood(),
        "TRIGGER" => return Asked::Trigger,
        _ => return Asked::Nothing,
    }
    let Some((name, next)) = words.name(words.behind_if(at)) else { return not_understood() };
    // No row changes.
    const MAINTAINED: [&str; 5] = ["ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "REBUILD"];
    if words.is(next + 1, "PARTITION") && MAINTAINED.iter().any(|word| words.is(next, word)) {
        return Asked::Nothing;
    }
    let mut tables = vec![name];
    let more = match first.as_str() {
        "DROP" if words.upper[kind] == "INDEX" => Some(Vec::new()),
        "DROP" => words.listed(next),
        "RENAME" => words.renamed(next),
        _ => Some(words.others(next)),
    };
    match more {
        Some(more) => {
            tables.extend(more);
            Asked::Definition { tables, databases: Vec::new(), looked_at: Vec::new() }
        }
        None => not_understood(),
    }
}

/// The words of a statement, and names without their quotes.
struct Words<'d> {
    tokens: Vec<String>,
    upper: Vec<String>,
    default: &'d str,
}

impl<'d> Words<'d> {
    fn of(text: &str, default: &'d str) -> Self {
        let tokens = tokens(text);
        let upper = tokens.iter().map(|token| token.to_ascii_uppercase()).collect();
        Self { tokens, upper, default }
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.upper.get(at).is_some_and(|own| own == word)
    }

    fn find(&self, from: usize, word: &str) -> Option<usize> {
        (from..self.upper.len()).find(|at| self.is(*at, word))
    }

    /// Behind `DEFINER = user@host`: the account may be named like anything.
    fn behind_definer(&self) -> usize {
        match self.find(0, "DEFINER") {
            Some(at) if self.is(at + 1, "=") && self.is(at + 3, "@") => at + 5,
            Some(at) if self.is(at + 1, "=") => at + 3,
            _ => 0,
        }
        .min(self.upper.len())
    }

    /// Behind `IF [NOT] EXISTS`.
    fn behind_if(&self, at: usize) -> usize {
        match self.is(at, "IF") {
            true => self.find(at, "EXISTS").map_or(at, |exists| exists + 1),
            false => at,
        }
    }

    /// A table's name, and what comes behind it.
    fn name(&self, at: usize) -> Option<(TableName, usize)> {
        let first = self.tokens.get(at)?;
        Some(match self.tokens.get(at + 2) {
            Some(table) if self.is(at + 1, ".") => {
                (TableName { database: first.clone(), table: table.clone() }, at + 3)
            }
            _ => (TableName { database: self.default.to_owned(), table: first.clone() }, at + 1),
        })
    }

    /// Further names, with commas.
    fn listed(&self, mut at: usize) -> Option<Vec<TableName>> {
        let mut names = Vec::new();
        while self.is(at, ",") {
            let (name, next) = self.name(at + 1)?;
            names.push(name);
            at = next;
        }
        Some(names)
    }

    /// `[WAIT n] TO b, c TO d`.
    fn renamed(&self, mut at: usize) -> Option<Vec<TableName>> {
        let mut names = Vec::new();
        loop {
            at = match (self.is(at, "WAIT"), self.is(at, "NOWAIT")) {
                (true, _) => at + 2,
                (_, true) => at + 1,
                _ => at,
            };
            if !self.is(at, "TO") {
                return None;
            }
            let (to, next) = self.name(at + 1)?;
            names.push(to);
            if !self.is(next, ",") {
                return Some(names);
            }
            let (from, next) = self.name(next + 1)?;
            names.push(from);
            at = next;
        }
    }

    /// Other tables that the actions of a definition are about: RENAME [TO] t, EXCHANGE PARTITION p WITH TABLE t, CONVERT TABLE t TO
    /// PARTITION. One too many is looked for at the source, and is not there.
    fn others(&self, from: usize) -> Vec<TableName> {
        let mut names = Vec::new();
        for at in from..self.upper.len() {
            let name = match self.upper[at].as_str() {
                "RENAME" if ["COLUMN", "INDEX", "KEY"].iter().any(|part| self.is(at + 1, part)) => None,
                "RENAME" if self.is(at + 1, "TO") || self.is(at + 1, "AS") || self.is(at + 1, "=") => {
                    self.name(at + 2)
                }
                "RENAME" | "TABLE" => self.name(at + 1),
                _ => None,
            };
            names.extend(name.map(|(name, _)| name));
        }
        names
    }
}

/// Words, names without their quotes, and signs; texts and comments are left out.
fn tokens(text: &str) -> Vec<String> {
    const ENOUGH: usize = 4096;
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if tokens.len() >= ENOUGH {
            break;
        }
        match c {
            '`' => {
                let mut name = String::new();
                while let Some((_, c)) = chars.next() {
                    if c == '`' && chars.next_if(|(_, next)| *next == '`').is_none() {
                        break;
                    }
                    name.push(c);
                }
                tokens.push(name);
            }
            '\'' | '"' => {
                while let Some((_, inner)) = chars.next() {
                    match inner {
                        '\\' => drop(chars.next()),
                        inner if inner == c => break,
                        _ => {}
                    }
                }
            }
            '/' if text[at..].starts_with("/*") && !text[at..].starts_with("/*!") => {
                let end = text[at..].find("*/").map_or(text.len(), |end| at + end + 2);
                while chars.next_if(|(next, _)| *next < end).is_some() {}
            }
            c if c.is_alphanumeric() || c == '_' || c == '$' => {
                let mut word = String::from(c);
                while let Some((_, c)) = chars.next_if(|(_, c)| c.is_alphanumeric() || *c == '_' || *c == '$')
                {
                    word.push(c);
                }
                tokens.push(word);
            }
            c if c.is_whitespace() => {}
            c => tokens.push(c.to_string()),
        }
    }
    tokens
}

/// The bytes of `XA COMMIT X'…',X'…',n`.
pub fn xa_id(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut id = Vec::new();
    for part in text.split("X'").skip(1) {
        let digits = part.split('\'').next()?;
        for pair in digits.as_bytes().chunks(2) {
            id.push(u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?);
        }
    }
    Some(id)
}

/// Whether a definition would give rows other values here than at the source, or a table another type.
pub fn gives_other_values(text: &str, flavor: Flavor) -> Option<&'static str> {
    const RANDOM: [&str; 8] =
        ["RAND", "UUID", "UUID_SHORT", "RANDOM_BYTES", "SYSDATE", "SYS_GUID", "UUID_V4", "UUID_V7"];
    let tokens: Vec<String> = tokens(text).iter().map(|token| token.to_ascii_uppercase()).collect();
    let is_mariadb = flavor == Flavor::MariaDb;
    let has = |words: &[&str]| tokens.iter().any(|token| words.contains(&token.as_str()));
    if is_mariadb && has(&["JSON"]) {
        return Some("JSON is a text at the source, and its definition says as what");
    }
    if tokens.first().is_none_or(|first| first != "ALTER") {
        return None;
    }
    if is_mariadb && has(&["MODIFY", "CHANGE", "CONVERT"]) {
        return Some("the source may have converted its values in a way of its own");
    }
    if is_mariadb && has(&["NEXTVAL", "NEXT", "LASTVAL", "PREVIOUS"]) {
        return Some("the source may have numbered its rows by a sequence");
    }
    let is_called = |at: usize| tokens.get(at + 1).is_some_and(|next| next == "(");
    let numbers = |at: usize| {
        let next = tokens.get(at + 1).map(String::as_str);
        !matches!(next, Some("=")) && next.is_none_or(|next| !next.starts_with(|c: char| c.is_ascii_digit()))
    };
    for (at, token) in tokens.iter().enumerate() {
        if RANDOM.contains(&token.as_str()) && is_called(at) {
            return Some("the source has given its rows random values");
        }
        if token == "AUTO_INCREMENT" && numbers(at) {
            return Some("the source may have numbered its rows");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_xa_transactions_are_read() {
        assert_eq!(xa_id(b"XA COMMIT X'6162',X'63',1"), Some(b"abc".to_vec()));
    }

    #[test]
    fn values_that_only_the_source_knows_are_noticed() {
        for (text, mysql, mariadb) in [
            ("ALTER TABLE t ADD a INT DEFAULT 1", false, false),
            ("ALTER TABLE t ADD a CHAR(36) DEFAULT (UUID())", true, true),
            ("ALTER TABLE t ADD a INT AUTO_INCREMENT KEY", true, true),
            ("ALTER TABLE t AUTO_INCREMENT = 5", false, false),
            ("ALTER TABLE t MODIFY a DATETIME", false, true),
            ("ALTER TABLE t ADD a INT DEFAULT nextval(s)", false, true),
            ("CREATE TABLE t (a JSON)", false, true),
        ] {
            for (flavor, wanted) in [(Flavor::MySql, mysql), (Flavor::MariaDb, mariadb)] {
                assert_eq!(gives_other_values(text, flavor).is_some(), wanted, "{flavor:?} {text}");
            }
        }
    }
}
