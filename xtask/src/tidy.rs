//! Rules of the repository: the crate graph, file headers, words that must not stand anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which workspace crates each crate may use: the arrows of ARCHITECTURE.md, backwards and closed.
const MAY_USE: &[(&str, &[&str])] = &[
    ("avocet-base", &[]),
    ("avocet-types", &["avocet-base"]),
    ("avocet-log", &["avocet-base"]),
    ("avocet-storage", &["avocet-base", "avocet-types"]),
    ("avocet-engine", &["avocet-base", "avocet-types", "avocet-log", "avocet-storage"]),
    ("avocet-sql", &["avocet-base", "avocet-types"]),
    ("avocet-channel", &["avocet-types"]),
    ("avocet-tls", &[]),
    ("avocet-point", &["avocet-base", "avocet-types", "avocet-engine", "avocet-sql", "avocet-channel"]),
    ("avocet-replay", &["avocet-types", "avocet-sql"]),
    ("avocet-replicate", &["avocet-base", "avocet-types", "avocet-engine", "avocet-sql", "avocet-tls"]),
    ("avocet-fusion", &["avocet-base", "avocet-types", "avocet-engine", "avocet-sql"]),
    (
        "avocet-session",
        &[
            "avocet-base",
            "avocet-types",
            "avocet-engine",
            "avocet-sql",
            "avocet-channel",
            "avocet-point",
            "avocet-fusion",
        ],
    ),
    (
        "avocet-server",
        &[
            "avocet-base",
            "avocet-types",
            "avocet-engine",
            "avocet-channel",
            "avocet-sql",
            "avocet-session",
            "avocet-tls",
        ],
    ),
    (
        "avocet",
        &[
            "avocet-base",
            "avocet-types",
            "avocet-log",
            "avocet-storage",
            "avocet-engine",
            "avocet-channel",
            "avocet-replay",
            "avocet-replicate",
            "avocet-session",
            "avocet-server",
        ],
    ),
    (
        "avocet-bench",
        &[
            "avocet-base",
            "avocet-types",
            "avocet-engine",
            "avocet-channel",
            "avocet-session",
            "avocet-server",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that may name DataFusion.
const DATAFUSION_IN: &[&str] = &["avocet-fusion"];

pub fn run() -> Result<(), Vec<String>> {
    let mut findings = crate_graph();
    findings.extend(crate::imports::findings());
    findings.extend(crate::functions::findings());
    for file in tracked_files() {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        file_rules(&file, &text, &mut findings);
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

fn crate_graph() -> Vec<String> {
    let output = Command::new(env!("CARGO")).args(["metadata", "--format-version=1", "--no-deps"]).output();
    let parsed = output.ok().and_then(|o| serde_json::from_slice::<serde_json::Value>(&o.stdout).ok());
    let Some(metadata) = parsed else { return vec!["cargo metadata gave no answer".into()] };
    let allowed: BTreeMap<_, BTreeSet<_>> =
        MAY_USE.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(may_use) = allowed.get(name) else {
            findings.push(format!("crate {name}: it has no place in the crate graph (xtask/src/tidy.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let in_tests = dependency["kind"].as_str() == Some("dev");
            if allowed.contains_key(used) && !may_use.contains(used) && !in_tests {
                findings.push(format!("crate {name}: it must not use {used}"));
            }
            if used.starts_with("datafusion") && !DATAFUSION_IN.contains(&name) && !in_tests {
                findings.push(format!("crate {name}: DataFusion belongs in {DATAFUSION_IN:?} only"));
            }
        }
    }
    findings
}

fn tracked_files() -> Vec<PathBuf> {
    let output = Command::new("git").args(["ls-files"]).output();
    let listed = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    listed.lines().map(PathBuf::from).collect()
}

fn file_rules(file: &Path, text: &str, findings: &mut Vec<String>) {
    let name = file.display();
    let rust = file.extension().is_some_and(|e| e == "rs");
    let unit_tests = file.file_name().is_some_and(|n| n == "tests.rs");
    if rust && !unit_tests && !text.starts_with("//!") {
        findings.push(format!("{name}: it does not begin with a `//!` header"));
    }
    // Spelt in pieces, so that this file passes.
    let forbidden = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("npmjs", "."),
    ];
    for word in forbidden {
        if text.contains(word) && file.file_name().is_none_or(|n| n != "Cargo.lock") {
            findings.push(format!("{name}: it says {word:?}"));
        }
    }
}
