//! The texts of definitions as replicas are told them: without what decides only how a change is made, which other servers may refuse,
//! without comments for later versions, which a replica of such a version would run, with the marks of versioned comments that begin
//! before or end behind what was parsed, and with the account's name where the statement
//! has CURRENT_USER.

use std::borrow::Cow;

use avocet_types::expr::SqlMode;

use super::lexer::{Op, Raw, Scanner};
use super::statement::StatementKind;
use crate::parse::ast::Span;

/// What another server needs of a statement's text, which was parsed in this mode; `account` is the name and host of who runs it.
pub fn text_told(kind: &StatementKind, text: &str, mode: SqlMode, account: (&str, &str)) -> String {
    let text = &*with_whole_comments(text, mode);
    match kind {
        StatementKind::AlterTable { .. }
        | StatementKind::CreateIndex { .. }
        | StatementKind::DropIndex { .. } => without_how(text, mode),
        StatementKind::Grant { .. }
        | StatementKind::Revoke { .. }
        | StatementKind::RevokeAll { .. }
        | StatementKind::GrantRoles { .. }
        | StatementKind::RevokeRoles { .. }
        | StatementKind::SetDefaultRole { .. }
        | StatementKind::RenameUser(_)
        | StatementKind::DropUser { .. } => with_account(text, mode, account),
        _ => text.to_owned(),
    }
}

/// A statement begins and ends with tokens: where these stand in versioned comments, it gets the comments' marks again. Without
/// `/*!90700 … */`, which was passed over here. (A MySQL leaves such a comment without its `!`.)
fn with_whole_comments(text: &str, mode: SqlMode) -> Cow<'_, str> {
    if !text.contains("/*!") && !text.contains("*/") {
        return Cow::Borrowed(text);
    }
    let mut scanner = Scanner::new(text.as_bytes(), mode);
    // Outside of comments, nothing else has these two operators side by side.
    let mut begun_before = 0;
    let mut last = None;
    loop {
        let (raw, span) = scanner.token();
        match raw {
            Raw::End | Raw::Invalid => break,
            Raw::Op(Op::Slash) if last == Some((Raw::Op(Op::Star), span.start)) => begun_before += 1,
            _ => {}
        }
        last = Some((raw, span.end));
    }
    let mut told = "/*! ".repeat(begun_before);
    let mut from = 0;
    for comment in &scanner.later {
        told.push_str(&text[from..comment.start as usize]);
        told.push(' ');
        from = comment.end as usize;
    }
    told.push_str(&text[from..]);
    told.truncate(told.trim_end().len());
    for _ in text.matches("/*!") {
        if !ends_within_comment(&told, mode) {
            break;
        }
        told.push_str(" */");
    }
    Cow::Owned(told)
}

/// Of a text that was parsed, but for its end.
fn ends_within_comment(text: &str, mode: SqlMode) -> bool {
    let mut scanner = Scanner::new(text.as_bytes(), mode);
    loop {
        match scanner.token().0 {
            Raw::End => return false,
            Raw::Invalid => return true,
            _ => {}
        }
    }
}

struct Tokens<'t> {
    text: &'t str,
    all: Vec<(Raw, Span)>,
}

impl<'t> Tokens<'t> {
    fn of(text: &'t str, mode: SqlMode) -> Self {
        let mut scanner = Scanner::new(text.as_bytes(), mode);
        let all = std::iter::from_fn(|| Some(scanner.token()).filter(|(raw, _)| *raw != Raw::End));
        Self { text, all: all.collect() }
    }

    fn is(&self, at: usize, words: &[&str]) -> bool {
        let Some((Raw::Word, span)) = self.all.get(at) else { return false };
        let word = &self.text[span.start as usize..span.end as usize];
        words.iter().any(|one| word.eq_ignore_ascii_case(one))
    }

    fn is_op(&self, at: usize, op: Op) -> bool {
        self.all.get(at).is_some_and(|(raw, _)| *raw == Raw::Op(op))
    }

    /// The text with these runs of tokens replaced; they are in order.
    fn replaced(&self, runs: &[(usize, usize)], by: &str) -> String {
        let mut told = String::with_capacity(self.text.len());
        let mut from = 0;
        for (first, last) in runs {
            told.push_str(&self.text[from..self.all[*first].1.start as usize]);
            told.push_str(by);
            from = self.all[*last].1.end as usize;
        }
        told.push_str(&self.text[from..]);
        told.trim_end().to_owned()
    }
}

/// Words behind which a name stands.
const BEFORE_NAMES: [&str; 17] = [
    "ADD",
    "AFTER",
    "ALTER",
    "BY",
    "CHANGE",
    "CHECK",
    "COLUMN",
    "CONSTRAINT",
    "DROP",
    "FROM",
    "INDEX",
    "KEY",
    "MODIFY",
    "ON",
    "RENAME",
    "TABLE",
    "TO",
];

/// Without ALGORITHM and LOCK.
fn without_how(text: &str, mode: SqlMode) -> String {
    let tokens = Tokens::of(text, mode);
    let mut dropped = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.all.len() {
        depth += i32::from(tokens.is_op(at, Op::LParen)) - i32::from(tokens.is_op(at, Op::RParen));
        let value = at + 1 + usize::from(tokens.is_op(at + 1, Op::Eq));
        let is_how = (tokens.is(at, &["ALGORITHM"])
            && tokens.is(value, &["DEFAULT", "INSTANT", "INPLACE", "COPY"]))
            || (tokens.is(at, &["LOCK"]) && tokens.is(value, &["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"]));
        if depth != 0 || !is_how || at == 0 || tokens.is(at - 1, &BEFORE_NAMES) {
            at += 1;
            continue;
        }
        // With the comma before it, or, of the first action, the one behind it.
        let first = if tokens.is_op(at - 1, Op::Comma) { at - 1 } else { at };
        let last = value + usize::from(first == at && tokens.is_op(value + 1, Op::Comma));
        dropped.push((first, last));
        at = last + 1;
    }
    tokens.replaced(&dropped, "")
}

/// With the account's name for CURRENT_USER.
fn with_account(text: &str, mode: SqlMode, (user, host): (&str, &str)) -> String {
    let tokens = Tokens::of(text, mode);
    let found = (0..tokens.all.len()).filter(|at| tokens.is(*at, &["CURRENT_USER"]));
    let with_parentheses = |at: usize| {
        let has_them = tokens.is_op(at + 1, Op::LParen) && tokens.is_op(at + 2, Op::RParen);
        (at, if has_them { at + 2 } else { at })
    };
    let found: Vec<_> = found.map(with_parentheses).collect();
    // In backquotes there are no escapes, whatever the mode.
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    tokens.replaced(&found, &format!("{}@{}", quoted(user), quoted(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_change_is_made_is_not_told() {
        for (text, told) in [
            ("alter table g drop index ix, algorithm=instant", "alter table g drop index ix"),
            ("ALTER TABLE g ALGORITHM=INPLACE, ADD c INT, LOCK=NONE", "ALTER TABLE g  ADD c INT"),
            ("create index i2 on h(a) algorithm=copy lock=none", "create index i2 on h(a)"),
            ("DROP INDEX i ON h LOCK DEFAULT ALGORITHM INSTANT", "DROP INDEX i ON h"),
            ("ALTER TABLE t CHANGE algorithm copy INT", "ALTER TABLE t CHANGE algorithm copy INT"),
            ("ALTER TABLE t RENAME COLUMN x TO lock, LOCK=NONE", "ALTER TABLE t RENAME COLUMN x TO lock"),
            (
                "ALTER TABLE t ADD c VARCHAR(9) DEFAULT ', LOCK=NONE' COMMENT \"algorithm=copy\"",
                "ALTER TABLE t ADD c VARCHAR(9) DEFAULT ', LOCK=NONE' COMMENT \"algorithm=copy\"",
            ),
            ("ALTER TABLE t ADD INDEX (a) /* LOCK=NONE */", "ALTER TABLE t ADD INDEX (a) /* LOCK=NONE */"),
        ] {
            assert_eq!(without_how(text, SqlMode::DEFAULT).replace(" ,", ","), told, "{text}");
        }
    }

    #[test]
    fn versioned_comments_are_told_whole_or_not_at_all() {
        for (text, told) in [
            ("CREATE TABLE t (a INT) /*!50100 COMMENT 'x'", "CREATE TABLE t (a INT) /*!50100 COMMENT 'x' */"),
            (
                "CREATE TABLE t (a INT) /*!50100 COMMENT 'x' */",
                "CREATE TABLE t (a INT) /*!50100 COMMENT 'x' */",
            ),
            ("CREATE */ TABLE t (a INT)", "/*! CREATE */ TABLE t (a INT)"),
            (
                "CREATE */ TABLE t (a INT) /*!50100 COMMENT 'x'",
                "/*! CREATE */ TABLE t (a INT) /*!50100 COMMENT 'x' */",
            ),
            ("DROP TABLE t /*!50000 , u /*!50001 , v", "DROP TABLE t /*!50000 , u /*!50001 , v */ */"),
            (
                "CREATE TABLE t (a INT, b INT AS (a*/* c */2))",
                "CREATE TABLE t (a INT, b INT AS (a*/* c */2))",
            ),
            ("CREATE TABLE t (a INT) /* no */", "CREATE TABLE t (a INT) /* no */"),
            ("CREATE TABLE t (a INT COMMENT '/*!') -- */", "CREATE TABLE t (a INT COMMENT '/*!') -- */"),
            // Of later versions.
            ("CREATE TABLE t (a INT /*!90500 , b INT */)", "CREATE TABLE t (a INT  )"),
            ("CREATE TABLE t (a INT /*!80400 , b INT */)", "CREATE TABLE t (a INT /*!80400 , b INT */)"),
            (
                "CREATE TABLE t (a INT /*!50000 , b INT /*!99999 , c /* d */ INT */ */)",
                "CREATE TABLE t (a INT /*!50000 , b INT   */)",
            ),
            ("DROP TABLE t /*!99999 , u */", "DROP TABLE t"),
            ("DROP TABLE `/*!99999 t */`", "DROP TABLE `/*!99999 t */`"),
        ] {
            assert_eq!(with_whole_comments(text, SqlMode::DEFAULT), told, "{text}");
        }
    }

    #[test]
    fn literals_end_as_the_mode_says() {
        let mode = SqlMode::DEFAULT.with(SqlMode::NO_BACKSLASH_ESCAPES);
        let text =
            r"ALTER TABLE t ADD c CHAR(2) DEFAULT '\\', ADD d CHAR(30) DEFAULT ', LOCK=NONE', LOCK=NONE";
        assert_eq!(without_how(text, mode), text.strip_suffix(", LOCK=NONE").expect("it ends so"));
    }

    #[test]
    fn an_account_is_told_by_its_name() {
        for (text, told) in [
            ("grant select on q.* to current_user()", "grant select on q.* to `o``x`@`%`"),
            ("GRANT r TO CURRENT_USER, b@c", "GRANT r TO `o``x`@`%`, b@c"),
            ("DROP USER `current_user`, 'current_user'", "DROP USER `current_user`, 'current_user'"),
            ("REVOKE ALL ON *.* FROM current_user ( )", "REVOKE ALL ON *.* FROM `o``x`@`%`"),
        ] {
            assert_eq!(with_account(text, SqlMode::DEFAULT, ("o`x", "%")), told, "{text}");
        }
    }
}
