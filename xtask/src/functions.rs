//! `cargo xtask functions` prints the table of functions for COMPAT.md, made from where functions are declared.

use std::collections::BTreeSet;
use std::fs;

/// Scalar functions, in sections; aggregate functions; window functions.
const SCALAR: &str = "crates/types/src/expr/function.rs";
const AGGREGATE: &str = "crates/sql/src/bind/aggregate.rs";
const WINDOW: &str = "crates/sql/src/bind/window.rs";
const PAGE: &str = "COMPAT.md";
const BEGIN: &str = "<!-- functions: cargo xtask functions -->\n";
const END: &str = "<!-- end of functions -->\n";

/// The words in quotation marks that are names of functions.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &&str| {
        !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b" _".contains(&b))
    };
    text.split('"').skip(1).step_by(2).filter(is_name)
}

/// Sections are the comments in the list of functions.
fn scalar() -> Result<Vec<(String, BTreeSet<String>)>, String> {
    let text = fs::read_to_string(SCALAR).map_err(|e| format!("{SCALAR}: {e}"))?;
    let list = text.split("\nfunctions! {\n").nth(1).and_then(|rest| rest.split("\n}\n").next());
    let list = list.ok_or_else(|| format!("{SCALAR}: it has no list of functions"))?;
    let mut sections: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in list.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix("// ") {
            sections.push((title.trim_end_matches('.').to_owned(), BTreeSet::new()));
        } else if let (Some((head, _)), Some((_, names))) = (line.split_once(']'), sections.last_mut()) {
            names.extend(quoted(head).map(str::to_owned));
        }
    }
    Ok(sections)
}

/// Names that stand before `=>` and one of the words.
fn matched(file: &str, makes: &str) -> Result<BTreeSet<String>, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let arms = text.lines().filter_map(|line| line.split_once("=>")).filter(|(_, made)| made.contains(makes));
    Ok(arms.flat_map(|(names, _)| quoted(names).map(str::to_owned).collect::<Vec<_>>()).collect())
}

/// The table as the page has it.
pub fn table() -> Result<String, String> {
    let mut sections = scalar()?;
    sections.push(("Aggregates".into(), matched(AGGREGATE, "AggregateFunction::")?));
    sections.push(("Windows".into(), matched(WINDOW, "WindowKind::")?));
    let mut table = String::from("| | |\n|---|---|\n");
    for (title, names) in sections.iter().filter(|(_, names)| !names.is_empty()) {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        table.push_str(&format!("| {title} | {} |\n", names.join(", ")));
    }
    Ok(table)
}

/// Whether the page has the table as it is now.
pub fn findings() -> Vec<String> {
    let page = fs::read_to_string(PAGE).unwrap_or_default();
    let shown = page.split(BEGIN).nth(1).and_then(|rest| rest.split(END).next());
    match table() {
        Err(problem) => vec![problem],
        Ok(table) if shown == Some(table.as_str()) => Vec::new(),
        Ok(_) => vec![format!("{PAGE}: its table of functions is not what `cargo xtask functions` prints")],
    }
}
