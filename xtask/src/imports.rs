//! Imports within a crate: no circle of more than three files, and none that runs upwards between folders.
//!
//! Reads `use` declarations and paths in the code as text; a name that a module passes on (`pub use`) counts as an import of the
//! file that defines it. Tests are left out: they may reach for anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// So many files may import each other in a circle: a type, its parts and what is made of them.
const LARGEST_CIRCLE: usize = 3;

/// The folders (or files) of a crate's `src`, from the ground up. None imports from one that stands after it; what is not
/// named here is free.
const FLOORS: &[(&str, &[&str])] = &[("sql", &["parse", "plan", "bind"])];

/// A file of a crate: its module path, and what it says.
struct Module {
    file: PathBuf,
    /// Whole paths of what it imports, from the crate's root.
    imports: Vec<Vec<String>>,
    /// Names that it has from elsewhere.
    aliases: BTreeMap<String, Vec<String>>,
}

type Modules = BTreeMap<Vec<String>, Module>;

/// What is wrong in any crate under `crates/`.
pub fn findings() -> Vec<String> {
    let mut found = Vec::new();
    let Ok(crates) = fs::read_dir("crates") else { return vec!["crates/: it cannot be read".into()] };
    let mut names: Vec<_> = crates.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let name = name.to_string_lossy().into_owned();
        let modules = modules_of(&Path::new("crates").join(&name).join("src"));
        let edges = edges(&modules);
        circles(&modules, &edges, &mut found);
        floors(&name, &edges, &mut found);
    }
    found
}

fn modules_of(src: &Path) -> Modules {
    let mut modules = Modules::new();
    let mut pending = vec![src.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            if name == "tests" || name == "testing" {
                continue;
            }
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let module = module_path(src, &path);
                let text = fs::read_to_string(&path).unwrap_or_default();
                let (imports, aliases) = imports_of(&text, &module);
                modules.insert(module, Module { file: path, imports, aliases });
            }
        }
    }
    modules
}

fn module_path(src: &Path, file: &Path) -> Vec<String> {
    let inner = file.strip_prefix(src).unwrap_or(file).with_extension("");
    let mut parts: Vec<_> = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The text without comments, strings' contents and unit tests.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let line = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn imports_of(text: &str, module: &[String]) -> (Vec<Vec<String>>, BTreeMap<String, Vec<String>>) {
    let code = code_of(text);
    let (mut imports, mut aliases) = (Vec::new(), BTreeMap::new());
    let mut rest = code.as_str();
    while let Some(at) = rest.find("use ") {
        let is_word = rest[..at].chars().next_back().is_none_or(|c| c.is_whitespace());
        let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
        if is_word {
            for path in expand(&rest[at + 4..end]) {
                let (path, name) = match path.split_once(" as ") {
                    Some((path, name)) => (path.trim().to_owned(), name.trim().to_owned()),
                    None => (path.clone(), path.rsplit("::").next().unwrap_or_default().to_owned()),
                };
                if let Some(whole) = absolute(&path, module) {
                    aliases.insert(name, whole.clone());
                    imports.push(whole);
                }
            }
        }
        rest = &rest[at + 4..];
    }
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let path: String =
                code[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            let begins =
                code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"_:".contains(c));
            if begins && let Some(whole) = absolute(path.trim_end_matches(':'), module) {
                imports.push(whole);
            }
        }
    }
    (imports, aliases)
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else { return vec![tree.to_owned()] };
    let (prefix, inner) = (&tree[..open], tree[open + 1..].trim_end().trim_end_matches('}'));
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let whole = |part: &str| match part {
        "self" => prefix.trim_end_matches("::").to_owned(),
        part => format!("{prefix}{part}"),
    };
    let closed = |part: &&str| part.matches('{').count().saturating_sub(part.matches('}').count());
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(|part| expand(&whole(&format!("{part}{}", "}".repeat(closed(&part)))))).collect()
}

/// A path from the crate's root; `None` for other crates'.
fn absolute(path: &str, module: &[String]) -> Option<Vec<String>> {
    let mut parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    let mut base = match *parts.first()? {
        "crate" => Vec::new(),
        "super" => module[..module.len().saturating_sub(1)].to_vec(),
        "self" => module.to_vec(),
        _ => return None,
    };
    parts.remove(0);
    while parts.first() == Some(&"super") {
        base.pop();
        parts.remove(0);
    }
    base.extend(parts.into_iter().map(str::to_owned));
    Some(base)
}

/// The module that defines what a path names.
fn definer(modules: &Modules, path: &[String], depth: usize) -> Option<Vec<String>> {
    let known = (0..=path.len()).rev().find(|n| modules.contains_key(&path[..*n]))?;
    let module = &path[..known];
    if let Some(name) = path.get(known)
        && depth < 8
        && let Some(alias) = modules[module].aliases.get(name)
        && alias.as_slice() != path
    {
        let mut whole = alias.clone();
        whole.extend_from_slice(&path[known + 1..]);
        return definer(modules, &whole, depth + 1);
    }
    Some(module.to_vec())
}

fn edges(modules: &Modules) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let of = |(path, module): (&Vec<String>, &Module)| {
        let targets = module.imports.iter().filter_map(|import| definer(modules, import, 0));
        (path.clone(), targets.filter(|target| target != path).collect())
    };
    modules.iter().map(of).collect()
}

/// Sets of files of which each leads to each other.
fn circles(modules: &Modules, edges: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>, found: &mut Vec<String>) {
    let reach = |from: &Vec<String>| {
        let (mut seen, mut pending) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = pending.pop() {
            for next in &edges[&at] {
                if seen.insert(next.clone()) {
                    pending.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = modules.keys().map(|path| (path, reach(path))).collect();
    let mut told = BTreeSet::new();
    for path in modules.keys() {
        let circle: Vec<_> = reached[path].iter().filter(|other| reached[other].contains(path)).collect();
        if circle.len() > LARGEST_CIRCLE && told.insert(circle[0]) {
            let files: Vec<_> = circle.iter().map(|m| modules[*m].file.display().to_string()).collect();
            found.push(format!(
                "these {} files import each other in a circle: {}",
                files.len(),
                files.join(", ")
            ));
            for from in &circle {
                let within = edges[*from].iter().filter(|to| circle.contains(to)).map(|to| to.join("::"));
                found.push(format!("    {} → {}", from.join("::"), within.collect::<Vec<_>>().join(", ")));
            }
        }
    }
}

fn floors(name: &str, edges: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>, found: &mut Vec<String>) {
    let Some((_, floors)) = FLOORS.iter().find(|(krate, _)| *krate == name) else { return };
    let floor = |path: &[String]| floors.iter().position(|room| path.first().is_some_and(|p| p == room));
    for (from, targets) in edges {
        for to in targets {
            if let (Some(low), Some(high)) = (floor(from), floor(to))
                && low < high
            {
                let (from, to) = (from.join("::"), to.join("::"));
                found.push(format!("crate {name}: {from} imports {to}, which stands above it"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_trees_are_expanded() {
        assert_eq!(expand("a::{b, c::{d, e as f}, self}"), ["a::b", "a::c::d", "a::c::e as f", "a"]);
    }

    #[test]
    fn paths_are_seen_from_the_root() {
        let module = ["a".to_owned(), "b".to_owned()];
        assert_eq!(absolute("super::c::D", &module), Some(vec!["a".into(), "c".into(), "D".into()]));
        assert_eq!(absolute("super::super::D", &module), Some(vec!["D".into()]));
        assert_eq!(absolute("std::fmt", &module), None);
    }
}
