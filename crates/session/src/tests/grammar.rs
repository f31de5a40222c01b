//! Every optional clause of the grammar is honoured, refused, or without effect and listed: `tests/grammar/README.md` has
//! the form of the files, and what each verdict means.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::client::Client;
use crate::variables;

/// What every statement finds.
const FIXTURE: &str = "DROP DATABASE IF EXISTS g; DROP DATABASE IF EXISTS n; CREATE DATABASE g; USE g; \
    CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), KEY ka (a)); \
    INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y'), (3, 20, NULL); \
    CREATE TABLE u (id INT PRIMARY KEY, t_id INT, c VARCHAR(20)); \
    INSERT INTO u VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 2, 'three'); \
    DROP USER IF EXISTS n, s; CREATE USER s";

#[derive(Debug)]
enum Verdict {
    Honoured {
        by: Option<String>,
    },
    /// A file that shows it.
    HonouredIn(String),
    Refused(u16),
    NoEffect(String),
    Noise,
}

/// One clause in its statement.
struct Case {
    place: String,
    without: String,
    clause: String,
    with: String,
    verdict: Verdict,
}

pub(super) fn root() -> PathBuf {
    // Asked when the test runs: one target folder serves clones in several places.
    let of_crate = std::env::var_os("CARGO_MANIFEST_DIR");
    PathBuf::from(of_crate.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())).join("../..")
}

fn verdict(text: &str) -> Option<Verdict> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some(match (word, rest) {
        ("honoured", "") => Verdict::Honoured { by: None },
        ("honoured", rest) if rest.starts_with("by ") => Verdict::Honoured { by: Some(rest[3..].into()) },
        ("honoured", rest) if rest.starts_with("in ") => Verdict::HonouredIn(rest[3..].into()),
        ("refused", errno) => Verdict::Refused(errno.parse().ok()?),
        ("no", rest) => Verdict::NoEffect(rest.strip_prefix("effect ")?.into()),
        ("noise", "") => Verdict::Noise,
        _ => return None,
    })
}

/// The cases of one file.
fn read(path: &Path, cases: &mut Vec<Case>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("the file is there");
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{name}:{}", number + 1);
        let (sql, told) = line.split_once("::").unwrap_or_else(|| panic!("{place}: no verdict"));
        let (head, rest) = sql.split_once('[').unwrap_or_else(|| panic!("{place}: no clause"));
        let (clauses, tail) = rest.split_once(']').unwrap_or_else(|| panic!("{place}: no clause"));
        let place = |clause: &str| format!("{place}: {}", clause.trim());
        for clause in clauses.split('|') {
            cases.push(Case {
                place: place(clause),
                without: format!("{head}{tail}").trim().to_owned(),
                clause: clause.to_owned(),
                with: format!("{head}{clause}{tail}").trim().to_owned(),
                verdict: verdict(told.trim()).unwrap_or_else(|| panic!("{}: {told}", place(clause))),
            });
        }
    }
}

fn cases() -> Vec<Case> {
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("tests/grammar"))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    files.iter().for_each(|file| read(file, &mut cases));
    assert!(cases.len() > 400, "{} cases", cases.len());
    cases
}

/// What can be seen of a statement: its answer and its warnings, but that syntax is deprecated, and then the tables.
struct Seen {
    answer: String,
    after: String,
}

impl Seen {
    fn error(&self) -> Option<u16> {
        let line = self.answer.lines().find_map(|line| line.strip_prefix("ERROR "))?;
        line.split(':').next()?.parse().ok()
    }
}

fn run(client: &Client, sql: &str, probe: Option<&str>) -> Seen {
    let mut client = client.another();
    let fixture = client.run(FIXTURE);
    assert!(!fixture.contains("ERROR"), "{fixture}");
    let mut answer = client.run(sql);
    let warnings = client.run("SHOW WARNINGS");
    let told = warnings.split_inclusive('\n').filter(|line| !line.contains(" is deprecated and "));
    answer.extend(told);
    let mut after = String::new();
    for probe in probe.into_iter().chain(["SELECT * FROM g.t ORDER BY id", "SELECT * FROM g.u ORDER BY id"]) {
        after.push_str(&client.run(probe));
    }
    Seen { answer, after }
}

/// What is wrong with a case, if anything is.
fn judge(client: &Client, case: &Case) -> Result<(), String> {
    let probe = match &case.verdict {
        Verdict::Honoured { by } => by.as_deref(),
        _ => None,
    };
    if let Verdict::HonouredIn(file) = &case.verdict {
        let text = fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
        let is_there = text.to_uppercase().contains(&case.clause.trim().to_uppercase());
        return if is_there { Ok(()) } else { Err(format!("{file} does not have it")) };
    }
    let with = run(client, &case.with, probe);
    if let Verdict::Refused(errno) = case.verdict {
        if with.error() != Some(errno) {
            return Err(format!("answers {}", with.answer));
        }
        let nothing = run(client, "DO 1", None);
        if with.after != nothing.after {
            return Err(format!("is refused, and changes {}", with.after));
        }
        if case.without.is_empty() {
            return Ok(());
        }
    }
    // A clause that is a whole statement is compared with none.
    let without = run(client, if case.without.is_empty() { "DO 1" } else { &case.without }, probe);
    // What has no effect may be told of, and count the rows that were gone through.
    let tells = |seen: &Seen| match case.verdict {
        Verdict::NoEffect(_) if seen.answer.starts_with("ok ") => "ok".to_owned(),
        _ => seen.answer.clone(),
    };
    let same = with.after == without.after && (case.without.is_empty() || tells(&with) == tells(&without));
    match &case.verdict {
        Verdict::Honoured { .. } if with.error().is_some() => Err(format!("answers {}", with.answer)),
        Verdict::Honoured { .. } if same => Err(format!("changes nothing: {}{}", with.answer, with.after)),
        Verdict::Honoured { .. } => Ok(()),
        _ if without.error().is_some() => Err(format!("fails without it: {}", without.answer)),
        Verdict::NoEffect(_) | Verdict::Noise if with.error().is_some() => {
            Err(format!("answers {}", with.answer))
        }
        Verdict::NoEffect(_) | Verdict::Noise if !same => Err(format!(
            "answers {}{}\n  and without it {}{}",
            with.answer, with.after, without.answer, without.after
        )),
        _ => Ok(()),
    }
}

#[test]
fn every_clause_is_honoured_refused_or_listed() {
    let client = Client::new();
    let wrong: Vec<String> = cases()
        .iter()
        .filter_map(|case| {
            judge(&client, case).err().map(|why| format!("{}\n  {}\n  {why}", case.place, case.with))
        })
        .collect();
    assert!(wrong.is_empty(), "{} clauses:\n{}", wrong.len(), wrong.join("\n"));
}

/// What a section of COMPAT.md has in code type in the first column of its table.
fn listed(heading: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("COMPAT.md")).expect("the file is there");
    let section = text.split("\n## ").find(|section| section.lines().next() == Some(heading));
    let section = section.unwrap_or_else(|| panic!("COMPAT.md has a section {heading}"));
    let mut names = BTreeSet::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let first = row.split('|').nth(1).unwrap_or_default();
        names.extend(first.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    names
}

#[test]
fn what_has_no_effect_is_listed_and_nothing_else() {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for case in cases() {
        if let Verdict::NoEffect(names) = &case.verdict {
            names.split(", ").for_each(|name| drop(found.insert(name.to_owned(), case.place.clone())));
        }
    }
    let found: BTreeSet<String> = found.into_keys().collect();
    assert_eq!(found, listed("Clauses without effect"));
}

#[test]
fn every_variable_has_a_reader_or_is_listed() {
    let without = variables::VARIABLES.iter().filter(|variable| variable.is_without_effect());
    let without: BTreeSet<String> = without.map(|variable| variable.name.to_owned()).collect();
    assert_eq!(without, listed("Variables without effect"));
}
