//! Statements by their words, where the parser does not take them or a word is all that is asked for.

use std::borrow::Cow;

use avocet_sql::parse::outline::{Lexeme, LexemeKind, first_words, lexemes};
use avocet_types::SqlMode;

use super::statements::Asked;
use crate::source::Flavor;
use crate::state::TableName;

/// A statement that the parser does not take: those about what is not kept here are passed over, those of tables name them in fixed
/// places, and those that change rows may change any.
pub fn by_words(text: &str, default: &str, mode: SqlMode, flavor: Flavor, why: &str) -> Asked {
    /// The log has them in place of rows.
    const CHANGES: [&str; 11] =
        ["INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "SELECT", "TABLE", "VALUES", "CALL", "DO"];
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
    let not_understood = || Asked::NotUnderstood(why.to_owned());
    // They may be long.
    if first_words(text.as_bytes()).split(' ').next().is_some_and(|first| CHANGES.contains(&first)) {
        return Asked::Rows { tables: Vec::new(), calls_unknown: true };
    }
    let words = Words::of(text, default, mode);
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
    tokens: Vec<Lexeme>,
    /// In upper case; names in quotes and literals are none.
    upper: Vec<String>,
    default: &'d str,
}

impl<'d> Words<'d> {
    fn of(text: &str, default: &'d str, mode: SqlMode) -> Self {
        let tokens = lexemes(text, mode);
        let upper = tokens.iter().map(|token| match token.kind {
            LexemeKind::Word | LexemeKind::Sign => token.text.to_ascii_uppercase(),
            LexemeKind::Name | LexemeKind::Literal => String::new(),
        });
        Self { upper: upper.collect(), tokens, default }
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
        let is_name = |token: &&Lexeme| matches!(token.kind, LexemeKind::Word | LexemeKind::Name);
        let first = self.tokens.get(at).filter(is_name)?.text.clone();
        Some(match self.tokens.get(at + 2).filter(is_name) {
            Some(table) if self.is(at + 1, ".") => {
                (TableName { database: first, table: table.text.clone() }, at + 3)
            }
            _ => (TableName { database: self.default.to_owned(), table: first }, at + 1),
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

/// What an XA transaction is known by: its format, and the two parts of its identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XaId<'a> {
    pub format: u32,
    pub global: Cow<'a, [u8]>,
    pub branch: Cow<'a, [u8]>,
}

impl XaId<'_> {
    /// Of `XA COMMIT X'…',X'…',n`, as the log has it.
    pub fn read(text: &str) -> Option<XaId<'static>> {
        let mut parts = text.split("X'");
        parts.next()?;
        let (global, branch) = (parts.next()?, parts.next()?);
        let (branch, format) = branch.split_once('\'')?;
        let format = format.strip_prefix(',')?;
        let format = format.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        let global = bytes_of_hex(global.split('\'').next()?)?;
        Some(XaId { format, global: global.into(), branch: bytes_of_hex(branch)?.into() })
    }

    /// One key for each transaction.
    pub fn key(&self) -> Vec<u8> {
        let mut key = self.format.to_le_bytes().to_vec();
        key.extend_from_slice(&(self.global.len() as u32).to_le_bytes());
        key.extend_from_slice(&self.global);
        key.extend_from_slice(&self.branch);
        key
    }
}

fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.as_bytes().chunks(2).map(pair).collect()
}

/// What a table is made by whose rows follow in the same transaction: CREATE TABLE … SELECT is in a MySQL's log (8.0.21 and later) as
/// its definition with START TRANSACTION behind it.
pub fn before_rows(text: &str, mode: SqlMode) -> Option<&str> {
    if !first_words(text.as_bytes()).starts_with("CREATE ") {
        return None;
    }
    let words = Words::of(text, "", mode);
    let start = words.upper.len().checked_sub(2)?;
    let is_so = words.is(1, "TABLE") && words.is(start, "START") && words.is(start + 1, "TRANSACTION");
    text.get(..words.tokens[start].span.start as usize).filter(|_| is_so)
}

/// Whether a definition would give rows other values here than at the source, or a table another type.
pub fn gives_other_values(text: &str, mode: SqlMode, flavor: Flavor) -> Option<&'static str> {
    const RANDOM: [&str; 8] =
        ["RAND", "UUID", "UUID_SHORT", "RANDOM_BYTES", "SYSDATE", "SYS_GUID", "UUID_V4", "UUID_V7"];
    /// What defaults may ask a session for, or its server.
    const OF_SESSION: [&str; 13] = [
        "CONNECTION_ID",
        "USER",
        "SESSION_USER",
        "SYSTEM_USER",
        "DATABASE",
        "SCHEMA",
        "VERSION",
        "ICU_VERSION",
        "LAST_INSERT_ID",
        "FOUND_ROWS",
        "ROW_COUNT",
        "PS_CURRENT_THREAD_ID",
        "LOAD_FILE",
    ];
    let words = Words::of(text, "", mode);
    let is_mariadb = flavor == Flavor::MariaDb;
    let has = |of: &[&str]| words.upper.iter().any(|word| of.contains(&word.as_str()));
    if is_mariadb && has(&["JSON"]) {
        return Some("JSON is a text at the source, and its definition says as what");
    }
    if !words.is(0, "ALTER") {
        return None;
    }
    if is_mariadb && has(&["MODIFY", "CHANGE", "CONVERT"]) {
        return Some("the source may have converted its values in a way of its own");
    }
    if is_mariadb && has(&["NEXTVAL", "NEXT", "LASTVAL", "PREVIOUS"]) {
        return Some("the source may have numbered its rows by a sequence");
    }
    if has(&["CURRENT_USER", "CURRENT_ROLE"]) {
        return Some("the source has given its rows values of the session");
    }
    let is_number =
        |at: usize| words.upper.get(at).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
    for (at, word) in words.upper.iter().enumerate() {
        let is_called = words.is(at + 1, "(");
        match word.as_str() {
            word if RANDOM.contains(&word) && is_called => {
                return Some("the source has given its rows random values");
            }
            word if OF_SESSION.contains(&word) && is_called => {
                return Some("the source has given its rows values of the session");
            }
            "AUTO_INCREMENT" if !words.is(at + 1, "=") && !is_number(at + 1) => {
                return Some("the source may have numbered its rows");
            }
            // A type, and DEFAULT VALUE behind one.
            "SERIAL" => return Some("the source may have numbered its rows"),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_xa_transactions_are_read() {
        let id = |format, global: &'static [u8], branch: &'static [u8]| XaId {
            format,
            global: global.into(),
            branch: branch.into(),
        };
        assert_eq!(XaId::read("XA COMMIT X'6162',X'63',1"), Some(id(1, b"ab", b"c")));
        assert_eq!(XaId::read("XA ROLLBACK X'61',X'',4294967295 "), Some(id(u32::MAX, b"a", b"")));
        for cut in ["XA COMMIT", "XA COMMIT X'61'", "XA COMMIT X'61',X'62'", "XA COMMIT X'6g',X'',1"] {
            assert_eq!(XaId::read(cut), None, "{cut}");
        }
        let keys = [id(1, b"1", b"11"), id(1, b"11", b"1"), id(1, b"111", b""), id(2, b"1", b"11")];
        let keys: std::collections::BTreeSet<Vec<u8>> = keys.iter().map(XaId::key).collect();
        assert_eq!(keys.len(), 4);
    }

    #[test]
    fn comments_begin_no_transaction() {
        let of = |text| before_rows(text, SqlMode::DEFAULT);
        assert_eq!(of("CREATE TABLE t (a INT) START TRANSACTION"), Some("CREATE TABLE t (a INT) "));
        assert_eq!(
            of("CREATE TABLE t (a INT) start /* x */ transaction -- y"),
            Some("CREATE TABLE t (a INT) ")
        );
        for text in [
            "CREATE TABLE t (a INT) -- START TRANSACTION",
            "CREATE TABLE t (a INT) # START TRANSACTION",
            "CREATE TABLE t (a INT) /* START TRANSACTION",
            "CREATE TABLE t (a INT) COMMENT 'START TRANSACTION'",
            "CREATE VIEW v AS SELECT a START TRANSACTION",
            "DROP TABLE t START TRANSACTION",
            "START TRANSACTION",
            "CREATE",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
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
            ("ALTER TABLE t ADD a SERIAL", true, true),
            ("ALTER TABLE t ADD a BIGINT NOT NULL SERIAL DEFAULT VALUE", true, true),
            ("ALTER TABLE t ADD `serial` INT", false, false),
            ("ALTER TABLE t -- it's\n ADD a INT AUTO_INCREMENT KEY", true, true),
            ("ALTER TABLE t # it's\n ADD a INT AUTO_INCREMENT KEY", true, true),
            ("ALTER TABLE t COMMENT 'AUTO_INCREMENT SERIAL uuid()'", false, false),
            ("/* x */ ALTER TABLE t ADD a CHAR(36) DEFAULT (UUID())", true, true),
            ("ALTER TABLE t ADD a INT DEFAULT (CONNECTION_ID())", true, true),
            ("ALTER TABLE t ADD a CHAR(99) DEFAULT (CURRENT_USER())", true, true),
        ] {
            for (flavor, wanted) in [(Flavor::MySql, mysql), (Flavor::MariaDb, mariadb)] {
                let told = gives_other_values(text, SqlMode::DEFAULT, flavor);
                assert_eq!(told.is_some(), wanted, "{flavor:?} {text}");
            }
        }
        let escapes = SqlMode::DEFAULT.with(SqlMode::NO_BACKSLASH_ESCAPES);
        let text = r"ALTER TABLE t COMMENT 'c:\', ADD a INT AUTO_INCREMENT KEY";
        assert!(gives_other_values(text, escapes, Flavor::MySql).is_some());
    }
}
