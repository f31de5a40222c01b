//! What a MariaDB says in another way than a MySQL: statements and definitions in their text, sessions in their settings, and which
//! of its commits are visible.
//!
//! A text is changed in its parts outside of quotes alone. What cannot be said here stays as it is, and its table is left out by name.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use avocet_types::Collation;
use mysql::prelude::Queryable;

use super::{Connection, quoted};
use crate::binlog::SessionOfQuery;
use crate::error::Result;
use crate::state::{LogPlace, TableName};

/// Waits until statements see all that the log has before a place. A consistent snapshot says how much of the log it has.
pub fn await_place(conn: &mut Connection, place: &LogPlace, deadline: Instant) -> Result<bool> {
    let mut pause = Duration::from_millis(1);
    loop {
        conn.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let rows: Vec<(String, String)> = conn.query("SHOW STATUS LIKE 'binlog_snapshot_%'")?;
        conn.query_drop("COMMIT")?;
        let value = |name: &str| {
            let row = rows.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
            row.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let offset = value("binlog_snapshot_position").parse().unwrap_or_default();
        let seen = LogPlace { file: value("binlog_snapshot_file"), offset };
        if seen.reaches(place) {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// A column's name, its type, the whole of that, its collation, and the id of that.
type ColumnThere = (String, String, String, Option<String>, Option<u16>);

/// Why a table cannot be followed, if its definition says so by what only a MariaDB has.
pub fn obstacle(conn: &mut Connection, name: &TableName) -> Result<Option<String>> {
    let table: Option<(String, Option<String>)> = conn.exec_first(
        "SELECT CAST(TABLE_TYPE AS CHAR), CAST(TABLE_COLLATION AS CHAR) FROM information_schema.TABLES
         WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
        (&name.database, &name.table),
    )?;
    match table {
        Some((kind, _)) if kind == "SEQUENCE" => {
            return Ok(Some("it is a sequence, which is not kept here".into()));
        }
        Some((kind, _)) if kind == "SYSTEM VERSIONED" => {
            return Ok(Some("it is system-versioned, and its history is not kept here".into()));
        }
        Some((_, Some(collation))) if !is_known(&collation) => {
            return Ok(Some(format!("it has the default collation {collation}, which is not known here")));
        }
        _ => {}
    }
    let columns: Vec<ColumnThere> = conn.exec(
        "SELECT CAST(c.COLUMN_NAME AS CHAR), CAST(c.DATA_TYPE AS CHAR), CAST(c.COLUMN_TYPE AS CHAR), CAST(c.COLLATION_NAME AS CHAR), k.ID
         FROM information_schema.COLUMNS AS c
         LEFT JOIN information_schema.COLLATIONS AS k ON k.COLLATION_NAME = c.COLLATION_NAME
         WHERE c.TABLE_SCHEMA = ? AND c.TABLE_NAME = ? ORDER BY c.ORDINAL_POSITION",
        (&name.database, &name.table),
    )?;
    Ok(columns.into_iter().find_map(|(column, kind, ty, collation, id)| {
        column_obstacle(&kind, &ty, collation.as_deref().map(|name| (name, id)))
            .map(|why| format!("column '{column}' {why}"))
    }))
}

/// Why a column cannot be followed: its type, the whole of that, and its collation with the id that it has there.
fn column_obstacle(kind: &str, ty: &str, collation: Option<(&str, Option<u16>)>) -> Option<String> {
    const UNKNOWN: [&str; 4] = ["uuid", "inet4", "inet6", "vector"];
    if UNKNOWN.contains(&kind) {
        return Some(format!("is of type {kind}, which is not kept here"));
    }
    // What it says behind a type is no text of a member: these types have none.
    if !matches!(kind, "enum" | "set") && ty.contains("/*M!100301 COMPRESSED*/") {
        return Some("is compressed, and the log has it so".into());
    }
    if matches!(kind, "datetime" | "timestamp" | "time") && ty.contains("/* mariadb-5.3 */") {
        return Some(
            "is kept in a format of before MariaDB 10.1: ALTER TABLE … FORCE with mysql56_temporal_format = ON mends it"
                .into(),
        );
    }
    let (collation, id) = collation?;
    // Those that are named once for all character sets have no id in that list.
    let own = Collation::by_name(collation).map(|own| own.0);
    match is_known(collation) && (own == id || id.is_none()) {
        true => None,
        false => Some(format!("has the collation {collation}, which is not known here")),
    }
}

/// Whether a collation of this name has the same order here. From 11.4.5 on a MariaDB takes names of MySQL 8 for its own collations
/// of a later Unicode, and lists them under MySQL's ids.
pub(super) fn is_known(collation: &str) -> bool {
    let is_alias = collation.contains("_0900_") && collation != "utf8mb4_0900_bin";
    !is_alias && Collation::by_name(collation).is_some()
}

/// What makes a database like the source's, as far as that is known here.
pub fn database(conn: &mut Connection, name: &str) -> Result<String> {
    let row: Option<(String, String)> = conn.exec_first(
        "SELECT CAST(DEFAULT_CHARACTER_SET_NAME AS CHAR), CAST(DEFAULT_COLLATION_NAME AS CHAR) FROM information_schema.SCHEMATA
         WHERE SCHEMA_NAME = ?",
        (name,),
    )?;
    let known = row.filter(|(_, collation)| is_known(collation));
    let defaults = known.map(|(charset, collation)| format!(" CHARACTER SET {charset} COLLATE {collation}"));
    Ok(format!("CREATE DATABASE IF NOT EXISTS {}{}", quoted(name), defaults.unwrap_or_default()))
}

/// A statement of the log as it is said here, and its session as it is here; or why it may mean something else.
pub fn spoken(text: &str, session: &mut SessionOfQuery, version: u32) -> (String, Option<String>) {
    const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
    let has_escapes = session.sql_mode.is_none_or(|mode| mode & NO_BACKSLASH_ESCAPES == 0);
    let text = executable(text, has_escapes, version);
    let mut unlike = session_here(session, &text);
    let text = match without_set_statement(&text, has_escapes) {
        Some(rest) => {
            unlike.get_or_insert("it ran under SET STATEMENT".into());
            rest
        }
        None => text,
    };
    (text, unlike)
}

/// Bits of sql_mode that mean something else here, or nothing.
mod mode {
    pub const ORACLE: u64 = 1 << 9;
    pub const EMPTY_STRING_IS_NULL: u64 = 1 << 32;
    pub const TIME_ROUND_FRACTIONAL: u64 = 1 << 34;
    /// MySQL's.
    pub const TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 32;
    /// Those that are the same on both sides.
    pub const COMMON: u64 = 0xef | 1 << 19 | 0xfc0_0000 | 1 << 20 | 1 << 21 | 1 << 29 | 1 << 30 | 1 << 31;
}

/// utf8mb4_general_ci, which a MariaDB takes for utf8mb4 where nothing else is said.
const DEFAULT_OF_UTF8MB4: u16 = 45;
/// utf8mb3_general_ci
const DEFAULT_OF_UTF8MB3: u16 = 33;

/// Whether a statement may name another Unicode character set than utf8mb4.
fn names_other_charset(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let has_utf8 = text.match_indices("utf8").any(|(at, _)| !text[at..].starts_with("utf8mb4"));
    has_utf8 || ["ucs2", "utf16", "utf32"].iter().any(|name| text.contains(name))
}

/// Makes a session's settings those that mean the same here; returns why there are none.
fn session_here(session: &mut SessionOfQuery, text: &str) -> Option<String> {
    let stands_for = |default: u16| {
        let others = session.charset_collations.iter();
        others.filter(|(of, _)| *of == default).map(|(_, collation)| *collation).next()
    };
    let is_other = stands_for(DEFAULT_OF_UTF8MB3).is_some_and(|collation| collation != DEFAULT_OF_UTF8MB3);
    session.utf8mb4_collation = Some(stands_for(DEFAULT_OF_UTF8MB4).unwrap_or(DEFAULT_OF_UTF8MB4));
    let bits = session.sql_mode.unwrap_or_default();
    if let Some(bits) = &mut session.sql_mode {
        let rounds = *bits & mode::TIME_ROUND_FRACTIONAL != 0;
        *bits = *bits & mode::COMMON | if rounds { 0 } else { mode::TIME_TRUNCATE_FRACTIONAL };
    }
    let is_unknown = |id: &u16| Collation(*id).info().id != *id || !is_known(Collation(*id).name());
    if bits & (mode::ORACLE | mode::EMPTY_STRING_IS_NULL) != 0 {
        return Some("it ran under sql_mode ORACLE or EMPTY_STRING_IS_NULL".into());
    }
    if session.collations.iter().flatten().chain(&session.utf8mb4_collation).any(is_unknown) {
        return Some("it ran in a session whose collation is not known here".into());
    }
    if is_other && names_other_charset(text) {
        return Some("it names a character set whose default is another one at the source".into());
    }
    session.has_unknown.then(|| "it ran in a session with a setting that is not known here".into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    /// In single or double quotes.
    Text,
    /// In backquotes.
    Name,
    Comment,
    Sign,
}

/// The parts of a statement, which together are all of it.
fn parts(text: &str, has_escapes: bool) -> Vec<(Kind, &str)> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, len) = match first {
            '\'' | '"' => (Kind::Text, quoted_len(rest, first, has_escapes)),
            '`' => (Kind::Name, quoted_len(rest, first, false)),
            '/' if rest.starts_with("/*") => {
                (Kind::Comment, rest[2..].find("*/").map_or(rest.len(), |end| end + 4))
            }
            '#' => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
            '-' if rest.starts_with("--") && rest[2..].chars().next().is_none_or(char::is_whitespace) => {
                (Kind::Comment, rest.find('\n').unwrap_or(rest.len()))
            }
            c if c.is_whitespace() => (Kind::Space, run_of(rest, char::is_whitespace)),
            c if is_word(c) => (Kind::Word, run_of(rest, is_word)),
            c => (Kind::Sign, c.len_utf8()),
        };
        let (part, behind) = rest.split_at(len);
        all.push((kind, part));
        rest = behind;
    }
    all
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

fn run_of(text: &str, belongs: fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// The length of a quoted part with its quotes; a quote in it is doubled, or escaped.
fn quoted_len(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if has_escapes => drop(chars.next()),
            c if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() => {
                return at + quote.len_utf8();
            }
            _ => {}
        }
    }
    text.len()
}

/// A statement without `/*! … */` and `/*M! … */`: what a MariaDB of this version runs of them stands as it is.
fn executable(text: &str, has_escapes: bool, version: u32) -> String {
    if !text.contains("/*!") && !text.contains("/*M!") {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_open = false;
    while !rest.is_empty() {
        if is_open && let Some(behind) = rest.strip_prefix("*/") {
            (is_open, rest) = (false, behind);
            plain.push(' ');
            continue;
        }
        let begins = rest.strip_prefix("/*!").map(|body| (body, false));
        let begins = begins.or_else(|| rest.strip_prefix("/*M!").map(|body| (body, true)));
        if let Some((body, is_own)) = begins {
            let digits = run_of(body, |c| c.is_ascii_digit()).min(6);
            let wanted = if digits >= 5 { body[..digits].parse().unwrap_or(u32::MAX) } else { 0 };
            let body = if digits >= 5 { &body[digits..] } else { body };
            // Those of MySQL 5.7 and later are not meant for it.
            let is_mysqls = !is_own && (50_700..100_000).contains(&wanted);
            if wanted <= version && !is_mysqls {
                (is_open, rest) = (true, body);
            } else {
                rest = body.find("*/").map_or("", |end| &body[end + 2..]);
            }
            plain.push(' ');
            continue;
        }
        // One part at a time: what a quote holds is not looked at.
        let first = rest.chars().next().unwrap_or_default();
        let len = match first {
            '\'' | '"' => quoted_len(rest, first, has_escapes),
            '`' => quoted_len(rest, first, false),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            c if is_word(c) => run_of(rest, is_word),
            c => c.len_utf8(),
        };
        plain.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    plain
}

/// The statement behind `SET STATEMENT variable = value, … FOR`.
fn without_set_statement(text: &str, has_escapes: bool) -> Option<String> {
    let parts = parts(text, has_escapes);
    let mut words =
        parts.iter().enumerate().filter(|(_, (kind, _))| !matches!(kind, Kind::Space | Kind::Comment));
    let is = |part: Option<(usize, &(Kind, &str))>, word: &str| {
        part.is_some_and(|(_, (kind, text))| *kind == Kind::Word && text.eq_ignore_ascii_case(word))
    };
    if !is(words.next(), "SET") || !is(words.next(), "STATEMENT") {
        return None;
    }
    let at = words.find(|(_, (kind, text))| *kind == Kind::Word && text.eq_ignore_ascii_case("FOR"))?.0;
    Some(parts[at + 1..].iter().map(|(_, text)| *text).collect::<String>().trim_start().to_owned())
}

/// SHOW CREATE TABLE as it is said here. Left out is what no answer depends on: how the table is stored, its partitions and its next
/// AUTO_INCREMENT value.
pub fn definition_here(text: &str) -> String {
    let parts = parts(text, true);
    let mut here = String::with_capacity(text.len());
    let mut body = Body::default();
    let mut at = 0;
    while at < parts.len() {
        let (kind, part) = parts[at];
        at += 1;
        body.note(kind, part);
        if kind == Kind::Sign && part == ")" && body.depth == 0 {
            here.push(')');
            break;
        }
        if kind != Kind::Word {
            here.push_str(part);
            continue;
        }
        match part {
            "IGNORED" if body.depth == 1 => here.push_str("INVISIBLE"),
            "DEFAULT" if body.depth == 1 => {
                let len = default_len(&parts[at..]);
                let value: String = parts[at..at + len].iter().map(|(_, text)| *text).collect();
                let value = value.trim();
                match DefaultHere::of(value, body.is_lob) {
                    DefaultHere::Plain => _ = write!(here, "DEFAULT {value}"),
                    DefaultHere::Expression => _ = write!(here, "DEFAULT ({value})"),
                    // The next number of a sequence, which nobody asks for here.
                    DefaultHere::Number => {}
                }
                at += len;
            }
            _ => here.push_str(part),
        }
    }
    here.push_str(" ENGINE=InnoDB");
    here.push_str(&options_here(&parts[at..]));
    here
}

/// Where in the list of columns and keys a definition is.
#[derive(Default)]
struct Body {
    depth: usize,
    /// Parts since the column or key began.
    count: usize,
    /// The column is of a type whose default has to stand in parentheses.
    is_lob: bool,
}

impl Body {
    fn note(&mut self, kind: Kind, part: &str) {
        match (kind, part) {
            (Kind::Space, _) => return,
            (Kind::Sign, "(") => self.depth += 1,
            (Kind::Sign, ")") => self.depth = self.depth.saturating_sub(1),
            (Kind::Sign, ",") if self.depth == 1 => (self.count, self.is_lob) = (0, false),
            _ => {}
        }
        if self.depth == 1 && !matches!(part, "(" | ",") {
            self.count += 1;
            // A name, and its type.
            if self.count == 2 && kind == Kind::Word {
                self.is_lob = part.ends_with("text") || part.ends_with("blob");
            }
        }
    }
}

enum DefaultHere {
    Plain,
    Expression,
    Number,
}

impl DefaultHere {
    fn of(value: &str, is_lob: bool) -> Self {
        const OF_TIME: [&str; 3] = ["current_timestamp", "localtimestamp", "now"];
        let word = &value[..run_of(value, is_word)];
        let is_call = value[word.len()..].starts_with('(') && !word.is_empty();
        match () {
            () if is_call && ["nextval", "lastval", "setval"].contains(&word) => Self::Number,
            () if value == "NULL" || value.starts_with('(') => Self::Plain,
            () if is_call && OF_TIME.contains(&word) => Self::Plain,
            () if is_call || is_lob => Self::Expression,
            () => Self::Plain,
        }
    }
}

/// How many parts a default has: one value with its sign or introducer, or a call with all that is in it.
fn default_len(parts: &[(Kind, &str)]) -> usize {
    let (mut depth, mut has_value) = (0usize, false);
    for (at, (kind, part)) in parts.iter().enumerate() {
        match (kind, *part) {
            (Kind::Space, _) if depth == 0 && has_value => return at,
            (Kind::Sign, "," | ")") if depth == 0 => return at,
            (Kind::Sign, "(") => depth += 1,
            (Kind::Sign, ")") => depth = depth.saturating_sub(1),
            _ => {}
        }
        has_value |= *kind != Kind::Space;
    }
    parts.len()
}

/// Of a table's options those that answers depend on.
fn options_here(parts: &[(Kind, &str)]) -> String {
    let mut here = String::new();
    let tokens: Vec<&(Kind, &str)> = parts.iter().filter(|(kind, _)| *kind != Kind::Space).collect();
    let mut at = 0;
    while let Some((kind, part)) = tokens.get(at) {
        let value = tokens.get(at + 2).filter(|_| tokens.get(at + 1).is_some_and(|(_, sign)| *sign == "="));
        let Some((_, value)) = value else {
            // The partitions are last.
            if part.eq_ignore_ascii_case("PARTITION") {
                break;
            }
            at += 1;
            continue;
        };
        if *kind == Kind::Word && matches!(*part, "CHARSET" | "COLLATE" | "COMMENT") {
            let _ = write!(here, " {part}={value}");
        }
        at += 3;
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_it_runs_are_statements() {
        for (text, wanted) in [
            ("SELECT 1", "SELECT 1"),
            ("CREATE /*M!100301 OR REPLACE */ TABLE t (a INT)", "CREATE   OR REPLACE   TABLE t (a INT)"),
            ("CREATE TABLE t (a INT /*!80023 INVISIBLE */)", "CREATE TABLE t (a INT  )"),
            ("CREATE TABLE t (a INT /*!100301 INVISIBLE*/)", "CREATE TABLE t (a INT  INVISIBLE )"),
            ("/*!40101 SET a = '*/' */ x", " SET a = '*/'   x"),
            ("/*M!110000 x */y", " y"),
            ("a '/*! b */' /* c */ `/*!d*/`/*!e*/", "a '/*! b */' /* c */ `/*!d*/` e "),
            ("/*! a", " a"),
            ("/*!99999", " "),
        ] {
            let plain = executable(text, true, 101_119);
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(squeezed(&plain), squeezed(wanted), "{text}");
        }
    }

    #[test]
    fn set_statement_is_told_from_its_statement() {
        let rest = |text| without_set_statement(text, true);
        assert_eq!(
            rest("/* x */ SET STATEMENT a='FOR',b=1 FOR ALTER TABLE t ADD b INT").as_deref(),
            Some("ALTER TABLE t ADD b INT")
        );
        assert_eq!(rest("SET PASSWORD FOR u = 'x'"), None);
        assert_eq!(rest("ALTER TABLE t ADD b INT"), None);
    }

    #[test]
    fn settings_become_those_of_a_mysql() {
        let mut session = SessionOfQuery {
            sql_mode: Some(0x5420_0000 | 1 << 28),
            collations: Some([33, 45, 8]),
            ..SessionOfQuery::default()
        };
        assert_eq!(session_here(&mut session, ""), None);
        assert_eq!(
            session.sql_mode_names(),
            "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,TIME_TRUNCATE_FRACTIONAL"
        );
        session.sql_mode = Some(1 << 34);
        assert_eq!(session_here(&mut session, ""), None);
        assert_eq!(session.sql_mode_names(), "");
        for (sql_mode, collation) in [(1 << 9, 33), (1 << 32, 33), (0, 608), (0, 255), (0, 2472)] {
            let mut session = SessionOfQuery {
                sql_mode: Some(sql_mode),
                collations: Some([33, 45, collation]),
                ..SessionOfQuery::default()
            };
            assert!(session_here(&mut session, "").is_some(), "{sql_mode} {collation}");
        }
        for (charset_collations, text, is_unlike) in [
            (vec![(33, 2056)], "create table t (a int) charset utf8mb4", false),
            (vec![(33, 2056)], "create table t (a int) charset UTF8", true),
            (vec![(33, 2056)], "create table t (a int) charset utf16", true),
            (vec![(33, 33)], "create table t (a int) charset utf8mb3", false),
            (vec![(45, 2304)], "create table t (a int) charset utf8mb4", false),
            (vec![(45, 2472)], "create table t (a int) charset utf8mb4", true),
        ] {
            let mut session = SessionOfQuery {
                charset_collations: charset_collations.clone(),
                collations: Some([33, 45, 2304]),
                ..SessionOfQuery::default()
            };
            assert_eq!(
                session_here(&mut session, text).is_some(),
                is_unlike,
                "{charset_collations:?} {text}"
            );
        }
    }

    #[test]
    fn definitions_are_said_as_a_mysql_would() {
        let text = "CREATE TABLE `t,(` (
  `id` int(11) NOT NULL DEFAULT nextval(`r`.`s`),
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '{}' CHECK (json_valid(`j`)),
  `DEFAULT x` text DEFAULT concat('a)',uuid()) COMMENT 'DEFAULT now() IGNORED',
  `d` datetime(3) DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),
  `e` int(11) DEFAULT (`id` + 1),
  `f` varchar(9) DEFAULT 'it''s',
  `b` blob DEFAULT NULL,
  `n` int(11) DEFAULT -5 COMMENT 'x',
  `o` tinytext DEFAULT 5,
  `c` date DEFAULT curdate(),
  `inv` int(11) INVISIBLE DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `k` (`f`) IGNORED
) ENGINE=Aria AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci PAGE_CHECKSUM=1 COMMENT='a=b) x' `PAGE_COMPRESSED`=1
 PARTITION BY HASH (`id`)
PARTITIONS 4";
        let wanted = "CREATE TABLE `t,(` (
  `id` int(11) NOT NULL ,
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT ('{}') CHECK (json_valid(`j`)),
  `DEFAULT x` text DEFAULT (concat('a)',uuid())) COMMENT 'DEFAULT now() IGNORED',
  `d` datetime(3) DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),
  `e` int(11) DEFAULT (`id` + 1),
  `f` varchar(9) DEFAULT 'it''s',
  `b` blob DEFAULT NULL,
  `n` int(11) DEFAULT -5 COMMENT 'x',
  `o` tinytext DEFAULT (5),
  `c` date DEFAULT (curdate()),
  `inv` int(11) INVISIBLE DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `k` (`f`) INVISIBLE
) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci COMMENT='a=b) x'";
        assert_eq!(definition_here(text), wanted);
    }

    #[test]
    fn columns_that_only_a_mariadb_has_are_named() {
        let why = |kind, ty, collation: Option<(&str, u16)>| {
            column_obstacle(kind, ty, collation.map(|(name, id)| (name, Some(id)))).is_some()
        };
        assert!(why("uuid", "uuid", None) && why("inet6", "inet6", None));
        assert!(why("varchar", "varchar(9) /*M!100301 COMPRESSED*/", Some(("latin1_swedish_ci", 8))));
        assert!(why("datetime", "datetime /* mariadb-5.3 */", None));
        assert!(why("varchar", "varchar(9)", Some(("utf8mb4_croatian_ci", 608))));
        assert!(why("varchar", "varchar(9)", Some(("utf8mb4_nopad_bin", 1070))));
        assert!(column_obstacle("varchar", "varchar(9)", Some(("utf8mb4_uca1400_ai_ci", None))).is_none());
        assert!(why("varchar", "varchar(9)", Some(("utf8mb4_0900_ai_ci", 255))));
        assert!(!why("varchar", "varchar(9)", Some(("utf8mb4_general_ci", 45))));
        assert!(!why("datetime", "datetime(6)", None) && !why("int", "int(11)", None));
    }

    proptest::proptest! {
        /// Parts are all of a text, and nothing that it has brings one down.
        #[test]
        fn parts_are_the_whole(text in "[a-z'\"`\\\\/*!M0-9#\n (),=é-]{0,60}") {
            for has_escapes in [false, true] {
                let whole: String = parts(&text, has_escapes).iter().map(|(_, part)| *part).collect();
                proptest::prop_assert_eq!(&whole, &text);
                executable(&text, has_escapes, 101_119);
                without_set_statement(&text, has_escapes);
            }
            definition_here(&text);
        }
    }
}
