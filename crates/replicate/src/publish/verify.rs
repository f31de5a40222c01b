//! `avocet check`: whether the files of a binary log are whole.

use std::io;
use std::path::Path;

use avocet_base::env::read_file;
use avocet_base::{Env, Timestamp};

use super::events::{MAGIC, xid_of};
use super::files::{Events, Mark, check_index, index_names};

/// What was looked at, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Verified {
    pub files: u64,
    pub events: u64,
    /// Of the last transaction.
    pub last: Timestamp,
    pub findings: Vec<String>,
}

/// Looks at the log that a folder has; `None` if it has none.
///
/// # Errors
/// A folder that cannot be looked at; damage is in the answer.
pub fn verify(env: &Env, folder: &Path) -> io::Result<Option<Verified>> {
    let Some(index) = read_file(&*env.disk, &folder.join("binlog.index"))? else { return Ok(None) };
    let mut found = Verified::default();
    let names = index_names(&index);
    let mark = match read_file(&*env.disk, &folder.join("binlog.mark"))?.map(|bytes| Mark::decode(&bytes)) {
        Some(Some(mark)) => mark,
        _ => {
            found.findings.push("binlog.mark does not say how far the binary log is on disk".to_owned());
            Mark::default()
        }
    };
    if let Err(wrong) = check_index(&env.disk.list(folder)?, &names, !names.is_empty()) {
        found.findings.push(wrong.to_string());
    }
    for name in &names {
        // What is behind the mark is written again, or is the end that a crash left.
        let known = (mark.file == *name).then_some(mark.position);
        match file(env, &folder.join(name), known, &mut found) {
            Ok(None) => found.files += 1,
            Ok(Some(at)) => found.findings.push(format!("{name}: damaged at byte {at}")),
            Err(error) => found.findings.push(format!("{name}: {error}")),
        }
    }
    Ok(Some(found))
}

/// Reads a file's events, of which all before `known` have to be whole, or all; where the first one is that is not.
fn file(env: &Env, path: &Path, known: Option<u64>, found: &mut Verified) -> io::Result<Option<u64>> {
    let file = env.disk.open(path, false)?;
    let end = file.size()?;
    let mut magic = [0; MAGIC.len()];
    if end < MAGIC.len() as u64 {
        return Ok(Some(0));
    }
    file.read_at(&mut magic, 0)?;
    if magic[..] != MAGIC[..] {
        return Ok(Some(0));
    }
    let mut events = Events::new(&*file, MAGIC.len() as u64, end);
    while let Some(event) = events.next()? {
        if let Some(ts) = xid_of(event) {
            found.last = found.last.max(Timestamp(ts));
        }
        found.events += 1;
    }
    Ok((events.at < known.unwrap_or(end)).then_some(events.at))
}
