//! Statements on which Avocet is known to differ from MySQL, listed in `tests/slt/differences.txt`: one a line, file and
//! statement. A run fails on a difference that is not listed, and on a listed one that is gone, so the list is exact
//! and can only be shortened by making Avocet right.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::runner::Failure;
use crate::error::{IoContext, Result};

#[derive(Default)]
pub struct Differences {
    listed: BTreeSet<String>,
    seen: BTreeSet<String>,
}

fn entry(file: &Path, sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    format!("{}: {}", file.display(), words.join(" "))
}

impl Differences {
    pub fn read(path: &Path) -> Result<Differences> {
        let mut differences = Differences::default();
        if path.is_file() {
            differences.add(path)?;
        }
        Ok(differences)
    }

    /// Those of another list, too.
    pub fn add(&mut self, path: &Path) -> Result<()> {
        let text = fs::read_to_string(path).context(|| format!("reading {}", path.display()))?;
        let listed = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        self.listed.extend(listed.map(str::to_owned));
        Ok(())
    }

    /// Whether a failure is a known difference; it is remembered either way.
    pub fn is_known(&mut self, file: &Path, failure: &Failure) -> bool {
        let entry = entry(file, &failure.sql);
        let known = self.listed.contains(&entry);
        self.seen.insert(entry);
        known
    }

    /// Listed differences in these files that were not seen.
    pub fn gone(&self, files: &[std::path::PathBuf]) -> Vec<&str> {
        let of_files =
            |entry: &&String| files.iter().any(|f| entry.starts_with(&format!("{}: ", f.display())));
        self.listed.difference(&self.seen).filter(of_files).map(String::as_str).collect()
    }

    /// How many known differences were seen.
    pub fn known(&self) -> usize {
        self.listed.intersection(&self.seen).count()
    }

    /// Writes the list anew from what was seen.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = String::from(
            "# Statements on which Avocet still differs from MySQL. `bench/run slt --update-differences` writes this list;\n\
             # a run fails if it is not exact.\n",
        );
        for entry in &self.seen {
            text.push_str(entry);
            text.push('\n');
        }
        fs::write(path, text).context(|| format!("writing {}", path.display()))
    }
}
