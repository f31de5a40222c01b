//! Small JSON documents in the data directory, each written whole, synced, and then put in the place of the one before.

use std::path::PathBuf;

use avocet_base::env::{Env, read_file, replace_file};
use avocet_session::Database;
use avocet_types::json::{self, Json, Map, Node};

/// A document's place.
pub struct Document {
    env: Env,
    path: PathBuf,
}

/// What a document has, by name.
pub struct Members(Vec<(String, Json)>);

impl Document {
    pub fn of(database: &Database, name: &str) -> Self {
        let options = database.engine().options();
        Self { env: options.env.clone(), path: options.data.join(name) }
    }

    fn wrong(&self, why: impl std::fmt::Display) -> String {
        format!("{}: {why}", self.path.display())
    }

    /// `None` if there is none.
    ///
    /// # Errors
    /// A file that cannot be read, or is no such document.
    pub fn read<T>(&self, of: impl FnOnce(&Members) -> Option<T>) -> Result<Option<T>, String> {
        let Some(bytes) = read_file(&*self.env.disk, &self.path).map_err(|error| self.wrong(error))? else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes).map_err(|error| self.wrong(error))?;
        let Json::Object(root) = json::parse(&text).map_err(|error| self.wrong(error))? else {
            return Err(self.wrong("it is no object"));
        };
        let members = root.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        let read = of(&Members(members)).ok_or_else(|| self.wrong("it is not as this server writes it"))?;
        Ok(Some(read))
    }

    /// When it returns, the document is on disk.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, members: Vec<(&str, Json)>) -> Result<(), String> {
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let document = Json::Object(Map::from_members(members));
        let encoded = document.encode().map_err(|error| self.wrong(error))?;
        let mut text = Vec::new();
        json::write(Node::new(&encoded), &mut text);
        replace_file(&*self.env.disk, &self.path, &text).map_err(|error| self.wrong(error))
    }

    /// # Errors
    /// A file that cannot be removed.
    pub fn remove(&self) -> Result<(), String> {
        let disk = &*self.env.disk;
        let remove = || {
            if !disk.exists(&self.path)? {
                return Ok(());
            }
            disk.remove(&self.path)?;
            self.path.parent().map_or(Ok(()), |folder| disk.sync_dir(folder))
        };
        remove().map_err(|error: std::io::Error| self.wrong(error))
    }
}

impl Members {
    fn get(&self, wanted: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Json::String(text) => Some(text.clone()),
            _ => None,
        }
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        match *self.get(name)? {
            Json::Int(number) => u64::try_from(number).ok(),
            Json::UInt(number) => Some(number),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match *self.get(name)? {
            Json::Bool(is_set) => Some(is_set),
            _ => None,
        }
    }
}
