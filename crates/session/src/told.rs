//! The texts of definitions as replicas are told them: without what decides only how a change is made, which other servers may refuse, and
//! with the account's name where the statement has CURRENT_USER.

use avocet_sql::parse::statement::StatementKind;

/// What another server needs of a statement's text; `user` and `host` are of the account that runs it.
pub(super) fn text_told(kind: &StatementKind, text: &str, user: &str, host: &str) -> String {
    match kind {
        StatementKind::AlterTable { .. }
        | StatementKind::CreateIndex { .. }
        | StatementKind::DropIndex { .. } => without_how(text),
        StatementKind::Grant { .. }
        | StatementKind::Revoke { .. }
        | StatementKind::RevokeAll { .. }
        | StatementKind::GrantRoles { .. }
        | StatementKind::RevokeRoles { .. }
        | StatementKind::SetDefaultRole { .. }
        | StatementKind::RenameUser(_)
        | StatementKind::DropUser { .. } => with_account(text, user, host),
        _ => text.to_owned(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Word,
    Quoted,
    Sign,
}

/// The parts of a statement that was parsed: all of it.
fn parts(text: &str) -> Vec<(Kind, &str)> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
        let (kind, len) = match first {
            '\'' | '"' | '`' => (Kind::Quoted, quoted_len(rest, first)),
            '/' if rest.starts_with("/*") && !rest.starts_with("/*!") => {
                (Kind::Blank, rest.find("*/").map_or(rest.len(), |end| end + 2))
            }
            '#' => (Kind::Blank, rest.find('\n').unwrap_or(rest.len())),
            '-' if rest.starts_with("--") && rest[2..].starts_with([' ', '\t', '\n']) => {
                (Kind::Blank, rest.find('\n').unwrap_or(rest.len()))
            }
            c if c.is_whitespace() => {
                (Kind::Blank, rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()))
            }
            c if is_word(c) => (Kind::Word, rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
            c => (Kind::Sign, c.len_utf8()),
        };
        let (part, behind) = rest.split_at(len);
        all.push((kind, part));
        rest = behind;
    }
    all
}

fn quoted_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote != '`' => escaped = true,
            // A doubled quote is the end of one text and the beginning of another.
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Words behind which a name stands.
const BEFORE_NAMES: [&str; 17] = [
    "ADD",
    "AFTER",
    "ALTER",
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
    "BY",
];

/// Without ALGORITHM and LOCK.
fn without_how(text: &str) -> String {
    let parts = parts(text);
    let solid: Vec<usize> = (0..parts.len()).filter(|at| parts[*at].0 != Kind::Blank).collect();
    let word = |at: usize| {
        solid.get(at).map(|at| parts[*at]).filter(|(kind, _)| *kind == Kind::Word).map(|(_, word)| word)
    };
    let is = |at: usize, wanted: &[&str]| {
        word(at).is_some_and(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
    };
    let sign = |at: usize| solid.get(at).map_or("", |at| parts[*at].1);
    let mut dropped = vec![false; parts.len()];
    let mut depth = 0;
    let mut at = 0;
    while at < solid.len() {
        depth += i32::from(sign(at) == "(") - i32::from(sign(at) == ")");
        let value = at + 1 + usize::from(sign(at + 1) == "=");
        let is_how = (is(at, &["ALGORITHM"]) && is(value, &["DEFAULT", "INSTANT", "INPLACE", "COPY"]))
            || (is(at, &["LOCK"]) && is(value, &["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"]));
        if depth != 0 || !is_how || at == 0 || is(at - 1, &BEFORE_NAMES) {
            at += 1;
            continue;
        }
        // With the comma before it, or, of the first action, the one behind it.
        let from = if sign(at - 1) == "," { at - 1 } else { at };
        let to = if from == at && sign(value + 1) == "," { value + 1 } else { value };
        (from..=to).for_each(|at| dropped[solid[at]] = true);
        at = to + 1;
    }
    let kept = parts.iter().zip(dropped).filter(|(_, dropped)| !dropped);
    kept.map(|((_, part), _)| *part).collect::<String>().trim_end().to_owned()
}

/// With the account's name for CURRENT_USER.
fn with_account(text: &str, user: &str, host: &str) -> String {
    let parts = parts(text);
    let quoted = |name: &str| format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"));
    let mut told = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((kind, part)) = parts.get(at) {
        at += 1;
        if *kind != Kind::Word || !part.eq_ignore_ascii_case("CURRENT_USER") {
            told.push_str(part);
            continue;
        }
        told.push_str(&format!("{}@{}", quoted(user), quoted(host)));
        let mut solid = (at..parts.len()).filter(|at| parts[*at].0 != Kind::Blank);
        if let (Some(open), Some(close)) = (solid.next(), solid.next())
            && (parts[open].1, parts[close].1) == ("(", ")")
        {
            at = close + 1;
        }
    }
    told
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
            assert_eq!(without_how(text).replace(" ,", ","), told, "{text}");
        }
    }

    #[test]
    fn an_account_is_told_by_its_name() {
        for (text, told) in [
            ("grant select on q.* to current_user()", "grant select on q.* to 'o''x'@'%'"),
            ("GRANT r TO CURRENT_USER, b@c", "GRANT r TO 'o''x'@'%', b@c"),
            ("DROP USER `current_user`, 'current_user'", "DROP USER `current_user`, 'current_user'"),
            ("REVOKE ALL ON *.* FROM current_user ( )", "REVOKE ALL ON *.* FROM 'o''x'@'%'"),
        ] {
            assert_eq!(with_account(text, "o'x", "%"), told, "{text}");
        }
    }
}
