//! SET PERSIST: values of global variables that outlive the server, in `mysqld-auto.cnf` in the data directory.
//!
//! ```text
//!  {"Version": 2, "mysql_dynamic_variables": {"max_connections": {"Value": "500",
//!      "Metadata": {"Host": "localhost", "User": "root", "Timestamp": 1795668540800730}}}}
//! ```
//!
//! Invariants:
//! 1. The file has all that statements were told is persisted: a new one is written whole, synced, and then takes its place.
//! 2. Names that are not known stay in it: another version's.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use avocet_base::env::{Env, read_file, replace_file};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::json::{self, Json, Map, Node};
use parking_lot::Mutex;

use super::api::AccountName;

const FILE: &str = "mysqld-auto.cnf";
const VARIABLES_KEY: &str = "mysql_dynamic_variables";

pub(super) struct Persisted {
    env: Env,
    path: PathBuf,
    values: Mutex<BTreeMap<String, Entry>>,
}

/// A variable's value, and who set it when.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    value: String,
    by: AccountName,
    /// Microseconds since 1970.
    at_us: i64,
}

impl Persisted {
    /// Reads what is persisted in a data directory.
    pub fn open(env: &Env, data: &Path) -> Result<Self, SqlError> {
        let path = data.join(FILE);
        let wrong = |why: &dyn Display| wrong(&path, why);
        let values = match read_file(&*env.disk, &path).map_err(|error| wrong(&error))? {
            None => BTreeMap::new(),
            Some(bytes) => {
                let text = String::from_utf8(bytes).map_err(|error| wrong(&error))?;
                let document = json::parse(&text).map_err(|error| wrong(&error))?;
                entries_of(&document).ok_or_else(|| wrong(&"it is no list of persisted variables"))?
            }
        };
        Ok(Self { env: env.clone(), path, values: Mutex::new(values) })
    }

    /// An error of the file.
    pub fn wrong(&self, why: &dyn Display) -> SqlError {
        wrong(&self.path, why)
    }

    pub fn has(&self, name: &str) -> bool {
        self.values.lock().contains_key(name)
    }

    /// All, by their names.
    pub fn list(&self) -> Vec<(String, String)> {
        let values = self.values.lock();
        values.iter().map(|(name, entry)| (name.clone(), entry.value.clone())).collect()
    }

    pub fn put(&self, name: &str, value: String, by: &AccountName) -> Result<(), SqlError> {
        let entry = Entry { value, by: by.clone(), at_us: self.env.clock.wall_us() };
        self.change(|values| drop(values.insert(name.to_owned(), entry)))
    }

    pub fn remove(&self, name: &str) -> Result<(), SqlError> {
        self.change(|values| drop(values.remove(name)))
    }

    pub fn clear(&self) -> Result<(), SqlError> {
        self.change(BTreeMap::clear)
    }

    /// What is not in the file did not happen.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Entry>)) -> Result<(), SqlError> {
        let mut values = self.values.lock();
        let mut changed = values.clone();
        change(&mut changed);
        if changed == *values {
            return Ok(());
        }
        replace_file(&*self.env.disk, &self.path, text_of(&changed)?.as_bytes())
            .map_err(|error| self.wrong(&error))?;
        *values = changed;
        Ok(())
    }
}

fn wrong(path: &Path, why: &dyn Display) -> SqlError {
    ErrorCode::UNKNOWN_ERROR.because(format!("{}: {why}", path.display()))
}

fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Json::Object(Map::from_members(members))
}

fn text_of(values: &BTreeMap<String, Entry>) -> Result<String, SqlError> {
    let member = |(name, entry): (&String, &Entry)| {
        let (host, user) = (text(&entry.by.host), text(&entry.by.user));
        let metadata = object([("Host", host), ("User", user), ("Timestamp", Json::Int(entry.at_us))]);
        (name.clone(), object([("Value", text(&entry.value)), ("Metadata", metadata)]))
    };
    let members = Json::Object(Map::from_members(values.iter().map(member).collect()));
    let document = object([("Version", Json::Int(2)), (VARIABLES_KEY, members)]);
    let encoded = document.encode().map_err(|error| ErrorCode::UNKNOWN_ERROR.because(error.to_string()))?;
    let mut written = Vec::new();
    json::write(Node::new(&encoded), &mut written);
    Ok(String::from_utf8_lossy(&written).into_owned())
}

/// `None` for a document of another form.
fn entries_of(document: &Json) -> Option<BTreeMap<String, Entry>> {
    let Json::Object(root) = document else { return None };
    let Some((_, listed)) = root.iter().find(|(name, _)| *name == VARIABLES_KEY) else {
        return Some(BTreeMap::new());
    };
    let Json::Object(listed) = listed else { return None };
    listed.iter().map(|(name, member)| Some((name.to_owned(), entry_of(member)?))).collect()
}

fn entry_of(json: &Json) -> Option<Entry> {
    let mut entry = Entry {
        value: String::new(),
        by: AccountName { user: String::new(), host: String::new() },
        at_us: 0,
    };
    let mut has_value = false;
    let Json::Object(members) = json else { return None };
    for (name, member) in members.iter() {
        match (name, member) {
            ("Value", Json::String(value)) => (entry.value, has_value) = (value.clone(), true),
            ("Metadata", Json::Object(metadata)) => {
                for (name, member) in metadata.iter() {
                    match (name, member) {
                        ("User", Json::String(user)) => entry.by.user.clone_from(user),
                        ("Host", Json::String(host)) => entry.by.host.clone_from(host),
                        ("Timestamp", Json::Int(at)) => entry.at_us = *at,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    has_value.then_some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use avocet_base::env::SimDisk;
    use std::sync::Arc;

    fn root() -> AccountName {
        AccountName { user: "root".into(), host: "localhost".into() }
    }

    #[test]
    fn what_was_said_to_be_persisted_is_there_after_a_crash() {
        let disk = SimDisk::new();
        let data = Path::new("/data");
        disk.env().disk.create_dir_all(data).expect("a directory");
        let persisted = Persisted::open(&disk.env(), data).expect("none yet");
        persisted.put("long_query_time", "1.500000".into(), &root()).expect("written");
        persisted.put("a_later_version's", "\"quoted\"".into(), &root()).expect("written");
        persisted.put("max_connections", "7".into(), &root()).expect("written");
        persisted.remove("max_connections").expect("written");
        for seed in 0..8 {
            let after = Persisted::open(&disk.crash(seed).env(), data).expect("whole");
            let listed = after.list();
            let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["a_later_version's", "long_query_time"]);
            assert_eq!(listed[0].1, "\"quoted\"");
        }
    }

    #[test]
    fn nothing_is_persisted_that_cannot_be_written() {
        let disk = SimDisk::new();
        let data = Path::new("/data");
        disk.env().disk.create_dir_all(data).expect("a directory");
        let persisted = Arc::new(Persisted::open(&disk.env(), data).expect("none yet"));
        disk.set_capacity(Some(0));
        assert!(persisted.put("max_connections", "7".into(), &root()).is_err());
        assert!(persisted.list().is_empty());
    }
}
