//! Statements cut, spliced and shuffled from the SQL test files: a session answers each with rows or an error, never
//! with a panic, and goes on.
//!
//! `AVOCET_FUZZ_CASES` says how many, `AVOCET_FUZZ_SEED` where to begin; a failing case prints its seed and statement.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::Client;

#[path = "../../../../fuzz/seeded.rs"]
mod seeded;
#[path = "../../../../fuzz/targets/sql.rs"]
mod target;

use seeded::random::Random;

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the test files are there") {
        let path = entry.expect("listed").path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|e| e == "slt") {
            all.push(path);
        }
    }
}

/// The statements of all SQL test files.
fn corpus() -> Vec<String> {
    let mut paths = Vec::new();
    files(&super::grammar::root().join("tests/slt"), &mut paths);
    paths.sort();
    let mut statements = Vec::new();
    for path in paths {
        let text = fs::read_to_string(path).expect("readable");
        for part in text.split("\n\n") {
            let lines = part.lines().skip_while(|l| !l.starts_with("statement") && !l.starts_with("query"));
            let sql: Vec<&str> = lines.skip(1).take_while(|line| *line != "----").collect();
            statements.push(sql.join(" "));
        }
    }
    statements.retain(|sql| !sql.trim().is_empty() && !sql.to_ascii_uppercase().contains("SLEEP"));
    statements
}

/// Words, numbers, strings and single other characters.
fn tokens(sql: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut quote = None;
    for c in sql.chars() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let joins = quote.is_some() || tokens.last().is_some_and(|t| t.ends_with(word) && word(c));
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"' | '`') => quote = Some(c),
            _ => {}
        }
        match tokens.last_mut() {
            Some(last) if joins => last.push(c),
            _ => tokens.push(c.to_string()),
        }
    }
    tokens
}

const EXTREMES: [&str; 16] = [
    "NULL",
    "-1",
    "0",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "''",
    "'\\0'",
    "x'ff'",
    "0.0000000001",
    "'9999-12-31 23:59:59.999999'",
    "(SELECT 1)",
    "*",
    "DISTINCT",
    "99999999999999999999999999999999999999.9",
    "-128",
];

fn mutate(tokens: &mut Vec<String>, other: &[String], random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(tokens.len() + 1);
        let from = random.below(other.len() + 1);
        let some = other[from..].iter().take(1 + random.below(6)).cloned();
        match random.below(6) {
            0 if at < tokens.len() => drop(tokens.remove(at)),
            1 if at < tokens.len() => tokens[at] = EXTREMES[random.below(EXTREMES.len())].to_owned(),
            2 if at < tokens.len() => {
                let place = random.below(tokens.len());
                tokens.swap(at, place);
            }
            3 => drop(tokens.splice(at..at, some)),
            4 => tokens.truncate(at),
            _ if at < tokens.len() => tokens.insert(at, tokens[at].clone()),
            _ => {}
        }
    }
}

#[test]
fn no_statement_brings_a_session_down() {
    let corpus = corpus();
    let split: Vec<Vec<String>> = corpus.iter().map(|sql| tokens(sql)).collect();
    let first = std::env::var("AVOCET_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut client = Client::new();
    for seed in first..first + seeded::cases(1500) {
        // Each file's statements build on those before: go through them in order, mutating some.
        let mut random = Random(seed);
        let at = (seed as usize * 7 + random.below(3)) % split.len();
        let mut statement = split[at].clone();
        if seed % 3 != 0 {
            mutate(&mut statement, &split[random.below(split.len())], &mut random);
        }
        let sql = statement.concat();
        if sql.to_ascii_uppercase().contains("SLEEP") {
            continue;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| {
            client.run("SET max_execution_time = 300, cte_max_recursion_depth = 100");
            client.run(&sql)
        }));
        match answer {
            Err(_) => panic!("seed {seed} panicked: {sql}"),
            Ok(text) => assert!(!text.contains("panicked"), "seed {seed}: {sql}\n{text}"),
        }
        if seed % 50 == 0 {
            client.run("ROLLBACK; CREATE DATABASE IF NOT EXISTS test; USE test");
        }
    }
    client.run("SET sql_select_limit = DEFAULT");
    assert_eq!(client.run("SELECT 1 + 1"), "2\n");
}

/// The target of `fuzz/`: statements whose bytes were changed, not their words.
#[test]
fn no_bytes_bring_a_session_down() {
    let corpus: Vec<Vec<u8>> = corpus().into_iter().map(String::into_bytes).collect();
    seeded::keep("sql", &corpus);
    seeded::fuzz_mutated(target::run, &corpus, seeded::cases(600));
}
