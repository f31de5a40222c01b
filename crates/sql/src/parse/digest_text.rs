//! A statement's text without its values, as MySQL shows it of digests: keywords in upper case, names in backquotes, `?` for values.
//!
//! ```text
//!  select c from t where id in (1, 2) and name = 'x'
//!  SELECT `c` FROM `t` WHERE `id` IN (...) AND NAME = ?
//! ```
//!
//! MySQL 8.4 Reference Manual, 29.10 "Performance Schema Statement Digests and Sampling". Words that are keywords anywhere are shown
//! as keywords everywhere, as there.

use avocet_types::collation::Charset;
use avocet_types::expr::SqlMode;

use super::keywords::is_keyword;
use super::lexer::{Op, Raw, Scanner};

/// What is shown of a token, or of several that stand for values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// From and to, in the text.
    Text(usize, usize),
    Value,
    /// `?, ...`
    Values,
    /// `(?)` and `(...)`, and lists of them.
    Row,
    RowOfMany,
    Rows,
    RowsOfMany,
}

/// Functions whose names are keywords where a parenthesis follows at once.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "ADDDATE", "BIT_AND", "BIT_OR", "BIT_XOR", "CAST", "COUNT", "CURDATE", "CURTIME", "DATE_ADD", "DATE_SUB", "EXTRACT",
    "GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_OBJECTAGG", "MAX", "MID", "MIN", "NOW", "POSITION", "SESSION_USER", "STD", "STDDEV",
    "STDDEV_POP", "STDDEV_SAMP", "SUBDATE", "SUBSTR", "SUBSTRING", "SUM", "SYSDATE", "SYSTEM_USER", "TRIM", "VARIANCE", "VAR_POP",
    "VAR_SAMP",
];

/// Words that MySQL's lexer does not tell from others, and shows as these.
#[rustfmt::skip]
const SYNONYMS: &[(&str, &str)] = &[
    ("ANY", "SOME"), ("BIGINT", "INT8"), ("CHAR", "CHARACTER"), ("COLUMNS", "FIELDS"), ("CURRENT_DATE", "CURDATE"),
    ("CURRENT_TIME", "CURTIME"), ("CURRENT_TIMESTAMP", "NOW"), ("DATABASE", "SCHEMA"), ("DATABASES", "SCHEMAS"),
    ("DAY", "SQL_TSI_DAY"), ("DEC", "DECIMAL"), ("DESCRIBE", "EXPLAIN"), ("DISTINCT", "DISTINCTROW"), ("DOUBLE", "FLOAT8"),
    ("FLOAT", "FLOAT4"), ("HOUR", "SQL_TSI_HOUR"), ("INT", "INTEGER"), ("INT1", "TINYINT"), ("INT2", "SMALLINT"),
    ("INT3", "MIDDLEINT"), ("INT4", "INTEGER"), ("IO_THREAD", "RELAY_THREAD"), ("LOCALTIME", "NOW"),
    ("LOCALTIMESTAMP", "NOW"), ("MEDIUMINT", "MIDDLEINT"), ("MID", "SUBSTRING"), ("MINUTE", "SQL_TSI_MINUTE"),
    ("MONTH", "SQL_TSI_MONTH"), ("QUARTER", "SQL_TSI_QUARTER"), ("REGEXP", "RLIKE"), ("SECOND", "SQL_TSI_SECOND"),
    ("SESSION_USER", "SYSTEM_USER"), ("SQL_TSI_WEEK", "WEEK"), ("SQL_TSI_YEAR", "YEAR"), ("STD", "STDDEV_POP"),
    ("STDDEV", "STDDEV_POP"), ("SUBSTR", "SUBSTRING"), ("USER", "SYSTEM_USER"), ("VARCHAR", "VARCHARACTER"),
    ("VARIANCE", "VAR_POP"),
];

/// The character set of a literal.
const INTRODUCER: &str = "(_charset)";

/// The text of the first `max` bytes or so of a statement; `...` ends one that is longer.
pub fn digest_text(source: &[u8], mode: SqlMode, max: usize) -> String {
    let mut text = Text { text: String::with_capacity(source.len().min(max)), shown: Vec::new() };
    let mut scanner = Scanner::new(source, mode);
    loop {
        let (raw, span) = scanner.token();
        if text.text.len() >= max {
            if raw != Raw::End {
                text.text.push_str(" ...");
            }
            break;
        }
        match raw {
            Raw::End | Raw::Invalid => break,
            Raw::Word => {
                text.word(&String::from_utf8_lossy(span.bytes(source)), source.get(span.end as usize))
            }
            Raw::QuotedIdent => {
                let quoted = String::from_utf8_lossy(span.bytes(source)).into_owned();
                // In double quotes it is the same name.
                let inner = quoted.trim_matches('"').trim_matches('`');
                text.name(inner);
            }
            Raw::Op(op) => text.operator(op, span.bytes(source)),
            Raw::Param => text.value(false),
            Raw::String | Raw::Hex | Raw::Bits => text.value(false),
            Raw::Integer | Raw::Decimal | Raw::Float => text.value(true),
        }
    }
    text.text
}

fn is_introducer(word: &str) -> bool {
    word.strip_prefix('_').is_some_and(|charset| Charset::by_name(charset).is_some())
}

struct Text {
    text: String,
    shown: Vec<Shown>,
}

impl Text {
    fn push(&mut self, shown: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let from = self.text.len();
        self.text.push_str(shown);
        self.shown.push(Shown::Text(from, self.text.len()));
    }

    fn word(&mut self, word: &str, next: Option<&u8>) {
        if self.ends_with("@") {
            return self.join("?");
        }
        if word.eq_ignore_ascii_case("NULL") && !self.ends_with("IS") && !self.ends_with("NOT") {
            return self.value(false);
        }
        let upper = word.to_uppercase();
        let is_function = next == Some(&b'(') && FUNCTIONS.contains(&&*upper);
        match (is_keyword(word.as_bytes()) || is_function) && !self.ends_with(".") {
            true => {
                let shown = SYNONYMS.iter().find(|(of, _)| *of == upper).map_or(&*upper, |(_, shown)| shown);
                match self.ends_with("@@") {
                    true => self.join(shown),
                    false => self.push(shown),
                }
            }
            false if is_introducer(word) && !self.ends_with(".") => self.push(INTRODUCER),
            false => self.name(word),
        }
    }

    fn name(&mut self, name: &str) {
        let quoted = format!("`{name}`");
        match self.text_back(0) {
            Some("@" | "@@") => self.join(&quoted),
            _ => self.push(&quoted),
        }
    }

    /// Adds to the last token, which is a text.
    fn join(&mut self, shown: &str) {
        self.text.push_str(shown);
        if let Some(Shown::Text(_, to)) = self.shown.last_mut() {
            *to = self.text.len();
        }
    }

    fn ends_with(&self, shown: &str) -> bool {
        self.text_back(0) == Some(shown)
    }

    /// The text of the token before so many others; `None` for values and at the beginning.
    fn text_back(&self, back: usize) -> Option<&str> {
        match self.back(back)? {
            Shown::Text(from, to) => Some(&self.text[from..to]),
            _ => None,
        }
    }

    fn back(&self, back: usize) -> Option<Shown> {
        let at = self.shown.len().checked_sub(back + 1)?;
        Some(self.shown[at])
    }

    /// Takes the last tokens away again.
    fn pop(&mut self, count: usize) {
        for _ in 0..count {
            let length = match self.shown.pop() {
                Some(Shown::Text(from, _)) => from,
                Some(values) => self.text.len() - values.text().len(),
                None => 0,
            };
            self.text.truncate(length);
            if self.text.ends_with(' ') {
                self.text.pop();
            }
        }
    }

    fn values(&mut self, shown: Shown) {
        self.push(shown.text());
        self.shown.pop();
        self.shown.push(shown);
    }

    fn value(&mut self, is_number: bool) {
        while is_number && matches!(self.text_back(0), Some("-" | "+")) && self.begins_operand(1) {
            self.pop(1);
        }
        if self.text_back(0) == Some(",") && matches!(self.back(1), Some(Shown::Value | Shown::Values)) {
            self.pop(2);
            return self.values(Shown::Values);
        }
        self.values(Shown::Value);
    }

    /// Whether what comes behind the token before so many others is an operand, so that a sign there is one's own.
    fn begins_operand(&self, back: usize) -> bool {
        match self.back(back) {
            None => true,
            Some(Shown::Text(from, to)) => {
                let text = &self.text[from..to];
                text != ")" && !text.starts_with('`')
            }
            Some(_) => false,
        }
    }

    fn operator(&mut self, op: Op, text: &[u8]) {
        if op == Op::Semicolon {
            return self.push(";");
        }
        // Both are one token.
        let shown = if op == Op::Ne { "!=".into() } else { String::from_utf8_lossy(text) };
        self.push(&shown);
        if op != Op::RParen || self.text_back(2) != Some("(") {
            return;
        }
        let (one, many) = match self.back(1) {
            // A list of one is a list.
            Some(Shown::Value) if self.text_back(3) == Some("IN") => (Shown::RowOfMany, Shown::RowsOfMany),
            Some(Shown::Value) => (Shown::Row, Shown::Rows),
            Some(Shown::Values) => (Shown::RowOfMany, Shown::RowsOfMany),
            _ => return,
        };
        self.pop(3);
        let is_next =
            self.text_back(0) == Some(",") && self.back(1).is_some_and(|shown| shown == one || shown == many);
        if is_next {
            self.pop(2);
        }
        self.values(if is_next { many } else { one });
    }
}

impl Shown {
    /// Of values.
    fn text(self) -> &'static str {
        match self {
            Self::Text(..) => "",
            Self::Value => "?",
            Self::Values => "?, ...",
            Self::Row => "(?)",
            Self::RowOfMany => "(...)",
            Self::Rows => "(?) /* , ... */",
            Self::RowsOfMany => "(...) /* , ... */",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MySQL 9.7's STATEMENT_DIGEST_TEXT has them.
    #[test]
    fn values_are_left_out() {
        for (sql, wanted) in [
            ("select c from t where id=7", "SELECT `c` FROM `t` WHERE `id` = ?"),
            (
                "SELECT * FROM t WHERE a IN (1,2,3) AND b IN (4)",
                "SELECT * FROM `t` WHERE `a` IN (...) AND `b` IN (...)",
            ),
            (
                "insert into t(a,b) values (1,'x'),(2,'y')",
                "INSERT INTO `t` ( `a` , `b` ) VALUES (...) /* , ... */",
            ),
            ("insert into t values (1),(2),(3)", "INSERT INTO `t` VALUES (?) /* , ... */"),
            ("select -1, a - 1, -a, +5", "SELECT ? , `a` - ? , - `a` , ?"),
            ("select a is null, null, b is not null", "SELECT `a` IS NULL , ? , `b` IS NOT NULL"),
            ("select @a, @`b`, @@sql_mode, @@global.x", "SELECT @? , @`b` , @@`sql_mode` , @@GLOBAL . `x`"),
            ("select count(*), count from t", "SELECT COUNT ( * ) , `count` FROM `t`"),
            (
                "create table t (a int, b varchar(10))",
                "CREATE TABLE `t` ( `a` INTEGER , `b` VARCHARACTER (?) )",
            ),
            ("select t.a, `t`.`b` from t limit 10", "SELECT `t` . `a` , `t` . `b` FROM `t` LIMIT ?"),
        ] {
            assert_eq!(digest_text(sql.as_bytes(), SqlMode::DEFAULT, 1024), wanted, "{sql}");
        }
    }

    #[test]
    fn what_is_too_long_ends_in_points() {
        let long = format!("SELECT {} FROM t", vec!["a"; 1000].join(" + "));
        let text = digest_text(long.as_bytes(), SqlMode::DEFAULT, 100);
        assert!(text.len() < 120 && text.ends_with(" ..."), "{text}");
        assert_eq!(digest_text(b"SELECT 'x", SqlMode::DEFAULT, 100), "SELECT");
        assert_eq!(digest_text(b"", SqlMode::DEFAULT, 100), "");
    }
}
