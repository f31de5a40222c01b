//! What the tokens of a text say of its statements, without a syntax tree: for texts that are long, and for those that are not in the
//! grammar.
//!
//! An outline errs to the safe side: what may be a call of a stored function, or the name of a variable, counts as one.

use avocet_types::Function;
use avocet_types::expr::SqlMode;

use super::ast::Span;
use super::keywords::is_reserved;
use super::lexer::{Op, Raw, Scanner, unquoted_ident};

/// A token of a text that is not in the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexeme {
    pub kind: LexemeKind,
    /// As it stands there; a name without its quotes, a literal in quotes as nothing.
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexemeKind {
    /// A keyword, a name without quotes, or a number.
    Word,
    /// A name in quotes, which is no keyword.
    Name,
    /// In quotes, and no name.
    Literal,
    /// An operator, or what no token begins with.
    Sign,
}

/// All tokens of a text, without comments, as a session of this mode reads them.
pub fn lexemes(source: &str, mode: SqlMode) -> Vec<Lexeme> {
    let mut scanner = Scanner::new(source.as_bytes(), mode);
    let mut all = Vec::new();
    loop {
        let (raw, span) = scanner.token();
        let bytes = span.bytes(source.as_bytes());
        let (kind, text) = match raw {
            Raw::End => return all,
            Raw::Word | Raw::Integer | Raw::Decimal | Raw::Float => {
                (LexemeKind::Word, String::from_utf8_lossy(bytes).into_owned())
            }
            Raw::QuotedIdent => {
                (LexemeKind::Name, String::from_utf8_lossy(&unquoted_ident(bytes)).into_owned())
            }
            Raw::String | Raw::Hex | Raw::Bits => (LexemeKind::Literal, String::new()),
            Raw::Param | Raw::Op(_) | Raw::Invalid => {
                (LexemeKind::Sign, String::from_utf8_lossy(bytes).into_owned())
            }
        };
        all.push(Lexeme { kind, text, span });
    }
}

/// One statement of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Its first word, in upper case, behind comments and parentheses; empty if it begins with something else.
    pub first: String,
    /// It may call a function that is none of MySQL's own.
    pub calls_unknown: bool,
    /// It calls FOUND_ROWS().
    pub asks_found_rows: bool,
    /// It calls ROW_COUNT(), or reads how many conditions the statement before it had.
    pub asks_conditions: bool,
    /// It has the word INTO.
    pub has_into: bool,
    /// It has the name of the variable `timestamp`.
    pub names_clock: bool,
    /// It has the name of a variable of the transaction's isolation level.
    pub names_isolation: bool,
}

/// The statements of a text; none for one without any token.
pub fn outlines(source: &[u8], mode: SqlMode) -> Vec<Outline> {
    let mut scanner = Scanner::new(source, mode);
    let mut all = Vec::new();
    while let Some(outline) = Outline::read(&mut scanner, source) {
        all.push(outline);
    }
    all
}

/// The first words of a text, two at most, in upper case and with one blank between them: behind comments and parentheses, and up to
/// the first token that is none.
pub fn first_words(source: &[u8]) -> String {
    let mut scanner = Scanner::new(source, SqlMode::DEFAULT);
    let mut words = String::new();
    for _ in 0..2 {
        let (mut raw, mut span) = scanner.token();
        while raw == Raw::Op(Op::LParen) && words.is_empty() {
            (raw, span) = scanner.token();
        }
        if raw != Raw::Word {
            break;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&upper(span.bytes(source)));
    }
    words
}

/// Whether something other than blanks stands behind the semicolon that ends the first statement: another statement, or a comment,
/// which MySQL takes for an empty statement and gives a result of its own where clients may send several.
pub fn has_more(source: &[u8], mode: SqlMode) -> bool {
    if !source.contains(&b';') {
        return false;
    }
    let mut scanner = Scanner::new(source, mode);
    loop {
        match scanner.token() {
            (Raw::End, _) => return false,
            (Raw::Op(Op::Semicolon), span) => return !is_blank(&source[span.end as usize..]),
            _ => {}
        }
    }
}

/// Whether there is nothing to be read but what MySQL cuts off the end of a text.
pub(super) fn is_blank(rest: &[u8]) -> bool {
    rest.iter().all(|byte| matches!(byte, b';' | b' ' | b'\t'..=b'\r'))
}

fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

impl Outline {
    /// Reads up to the next semicolon; `None` at the end of the text.
    fn read(scanner: &mut Scanner<'_>, source: &[u8]) -> Option<Self> {
        let (mut raw, mut span) = scanner.token();
        while matches!(raw, Raw::Op(Op::LParen | Op::Semicolon)) {
            (raw, span) = scanner.token();
        }
        if raw == Raw::End {
            return None;
        }
        let mut outline = Self::default();
        if raw == Raw::Word {
            outline.first = upper(span.bytes(source));
        }
        // What stands in front of the rows of an INSERT are names: of its table and its columns.
        let mut is_named = matches!(outline.first.as_str(), "INSERT" | "REPLACE");
        let mut before = [(raw, span); 2];
        loop {
            (raw, span) = scanner.token();
            match raw {
                Raw::End | Raw::Op(Op::Semicolon) => return Some(outline),
                Raw::Op(Op::LParen) if !is_named => outline.call(before, source),
                Raw::Word => {
                    let word = span.bytes(source);
                    let is = |known: &[&str]| {
                        known.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
                    };
                    is_named &= !is(&["VALUES", "VALUE", "SELECT", "SET", "WITH", "TABLE"]);
                    outline.word(word, before[1].0, &is);
                }
                Raw::QuotedIdent => {
                    let name = &source
                        [span.start as usize + 1..(span.end as usize).max(span.start as usize + 2) - 1];
                    let is = |known: &[&str]| {
                        known.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
                    };
                    outline.variable(&is);
                }
                _ => {}
            }
            before = [before[1], (raw, span)];
        }
    }

    fn word(&mut self, word: &[u8], before: Raw, is: &dyn Fn(&[&str]) -> bool) {
        // Most are values and names of columns.
        if word.len() < 4 {
            return;
        }
        self.has_into |= is(&["INTO"]);
        let may_be_variable = matches!(before, Raw::Op(Op::AtAt | Op::Dot));
        self.asks_conditions |= may_be_variable && is(&["WARNING_COUNT", "ERROR_COUNT"]);
        self.variable(is);
    }

    fn variable(&mut self, is: &dyn Fn(&[&str]) -> bool) {
        self.names_clock |= is(&["TIMESTAMP"]);
        self.names_isolation |= is(&[
            "ISOLATION",
            "TRANSACTION_ISOLATION",
            "TX_ISOLATION",
            "TRANSACTION_READ_ONLY",
            "TX_READ_ONLY",
        ]);
    }

    /// The two tokens before a parenthesis: whether it holds arguments, and of what.
    fn call(&mut self, [qualifier, name]: [(Raw, Span); 2], source: &[u8]) {
        let is_qualified = qualifier.0 == Raw::Op(Op::Dot);
        match name.0 {
            Raw::QuotedIdent => self.calls_unknown = true,
            Raw::Word => {
                let word = name.1.bytes(source);
                self.asks_found_rows |= word.eq_ignore_ascii_case(b"FOUND_ROWS");
                self.asks_conditions |= word.eq_ignore_ascii_case(b"ROW_COUNT");
                let is_known = !is_qualified
                    && (is_reserved(word)
                        || std::str::from_utf8(word).is_ok_and(|word| Function::lookup(word).is_some()));
                self.calls_unknown |= !is_known;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Outline {
        let mut all = outlines(text.as_bytes(), SqlMode::DEFAULT);
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0)
    }

    #[test]
    fn tokens_are_those_of_the_sessions_mode() {
        let told = |text: &str, mode: SqlMode| {
            let told = lexemes(text, mode).into_iter().map(|lexeme| match lexeme.kind {
                LexemeKind::Word => lexeme.text,
                LexemeKind::Name => format!("<{}>", lexeme.text),
                LexemeKind::Literal => "'".into(),
                LexemeKind::Sign => format!("({})", lexeme.text),
            });
            told.collect::<Vec<_>>().join(" ")
        };
        let plain = SqlMode::DEFAULT;
        assert_eq!(told("-- it's\nDROP TRIGGER `a``b` # x", plain), "DROP TRIGGER <a`b>");
        assert_eq!(told("/* ' */ a /*!50100 b */ 'c''d' e", plain), "a b ' e");
        assert_eq!(told("a \"t\" 5", plain), "a ' 5");
        assert_eq!(told("a \"t\"\"\"", SqlMode::DEFAULT.with(SqlMode::ANSI_QUOTES)), "a <t\">");
        assert_eq!(told(r"'c:\' x", SqlMode::DEFAULT.with(SqlMode::NO_BACKSLASH_ESCAPES)), "' x");
        assert_eq!(told("`a`@'%'=b.c", plain), "<a> (@) ' (=) b (.) c");
        assert_eq!(told("x 'open", plain), "x ('open)");
    }

    #[test]
    fn first_words_stand_behind_comments() {
        for (text, words) in [
            ("select 1", "SELECT"),
            ("  /* get user */ Update t SET a = 1", "UPDATE T"),
            ("-- select\n# with\n((select a", "SELECT A"),
            ("/*!50003 CREATE*/ /*!50017 DEFINER=a@b*/ /*!50003 TRIGGER x", "CREATE DEFINER"),
            ("/*!999999 DROP */ CALL p()", "CALL P"),
            ("ROLLBACK  TO\t`x`", "ROLLBACK TO"),
            ("XA COMMIT X'61',X'',1", "XA COMMIT"),
            ("'text'", ""),
            ("/* open", ""),
            ("", ""),
        ] {
            assert_eq!(first_words(text.as_bytes()), words, "{text}");
        }
    }

    #[test]
    fn statements_are_told_apart() {
        let firsts = |text: &str| {
            let all = outlines(text.as_bytes(), SqlMode::DEFAULT);
            all.into_iter().map(|outline| outline.first).collect::<Vec<_>>()
        };
        assert_eq!(
            firsts("insert into t values (';'); /* x; */ (select 1) ;; SET a = 1;"),
            ["INSERT", "SELECT", "SET"]
        );
        assert_eq!(firsts(" ; -- nothing"), [""; 0]);
    }

    #[test]
    fn what_calls_unknown_functions_is_noticed() {
        for (text, calls) in [
            ("INSERT INTO t (a, b) VALUES (1, NOW()), (ROW_COUNT(), IF(1, 2, 3))", false),
            ("INSERT INTO d.t PARTITION (p) (a) SELECT f(a) FROM u", true),
            ("INSERT INTO t VALUES (d.concat(1))", true),
            ("INSERT INTO t VALUES (`f`(1))", true),
            ("UPDATE t SET a = (b + 1) * (2) WHERE c IN (1, 2) AND (d)", false),
            ("DELETE FROM t WHERE a = my_function(b)", true),
        ] {
            assert_eq!(one(text).calls_unknown, calls, "{text}");
        }
    }

    #[test]
    fn names_of_the_session_are_noticed() {
        assert!(one("INSERT INTO t VALUES (FOUND_ROWS())").asks_found_rows);
        assert!(!one("INSERT INTO t (found_rows) VALUES (1)").asks_found_rows);
        assert!(one("INSERT INTO t VALUES (ROW_COUNT())").asks_conditions);
        assert!(one("INSERT INTO t VALUES (@@session.warning_count)").asks_conditions);
        assert!(!one("INSERT INTO t SELECT warning_count FROM u").asks_conditions);
        assert!(one("SELECT a INTO @b").has_into && one("SET @@timestamp = 5").names_clock);
        assert!(one("SET `timestamp` = 5").names_clock);
        assert!(one("SET @@transaction_isolation = 'SERIALIZABLE'").names_isolation);
    }

    #[test]
    fn a_comment_behind_a_semicolon_is_more() {
        for (text, more) in [
            ("SELECT 1", false),
            ("SELECT ';' -- a;b", false),
            ("SELECT 1; ", false),
            ("SELECT 1;;\n", false),
            ("SELECT 1; -- c", true),
            ("SELECT 1; /* c */", true),
            ("SELECT 1; SELECT 2", true),
        ] {
            assert_eq!(has_more(text.as_bytes(), SqlMode::DEFAULT), more, "{text}");
        }
    }
}
