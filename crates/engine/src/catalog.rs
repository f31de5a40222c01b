//! The catalog: databases, tables and accounts. A catalog value is immutable; DDL publishes a new one.
//!
//! Every change is a [`Change`], which is also what the redo log and (as a list that builds the whole
//! catalog) the checkpoint hold: one way to apply, one codec.

use std::collections::BTreeMap;
use std::sync::Arc;

use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::{IndexId, TableId};
use avocet_types::{Collation, IndexDef, TableDef};
use hashbrown::HashMap;

use crate::table::{IndexHandle, TableHandle};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseDef {
    pub name: String,
    pub collation: Collation,
}

/// An account: MySQL's `'name'@'host'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDef {
    pub name: String,
    pub host: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// What the plugin keeps of the password; empty for no password.
    pub auth: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct Catalog {
    version: u64,
    databases: BTreeMap<String, DatabaseDef>,
    tables: BTreeMap<String, BTreeMap<String, Arc<TableHandle>>>,
    by_id: HashMap<TableId, Arc<TableHandle>>,
    users: BTreeMap<(String, String), UserDef>,
    next_id: u32,
}

/// One change of the catalog, as logged.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    CreateDatabase(DatabaseDef),
    /// With all its tables.
    DropDatabase(String),
    CreateTable(Box<TableDef>),
    DropTable(TableId),
    /// The rows are gone; the definition (with its new id) stays.
    TruncateTable {
        old: TableId,
        new: TableId,
    },
    CreateIndex {
        table: TableId,
        index: IndexDef,
    },
    DropIndex {
        table: TableId,
        index: IndexId,
    },
    PutUser(UserDef),
    DropUser {
        name: String,
        host: String,
    },
    RenameTable {
        table: TableId,
        database: String,
        name: String,
    },
    /// A table takes another one's name, which is dropped.
    ReplaceTable {
        old: TableId,
        new: TableId,
    },
}

impl Catalog {
    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn databases(&self) -> impl Iterator<Item = &DatabaseDef> {
        self.databases.values()
    }

    pub fn database(&self, name: &str) -> Option<&DatabaseDef> {
        self.databases.get(name)
    }

    pub fn table(&self, database: &str, name: &str) -> Option<&Arc<TableHandle>> {
        self.tables.get(database)?.get(name)
    }

    /// Sorted by name.
    pub fn tables_in(&self, database: &str) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.tables.get(database).into_iter().flat_map(BTreeMap::values)
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.tables.values().flat_map(BTreeMap::values)
    }

    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<TableHandle>> {
        self.by_id.get(&id)
    }

    pub fn users(&self) -> impl Iterator<Item = &UserDef> {
        self.users.values()
    }

    pub fn user(&self, name: &str, host: &str) -> Option<&UserDef> {
        self.users.get(&(name.to_owned(), host.to_owned()))
    }

    /// An id for a new table or index.
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.max(1)
    }

    pub(crate) fn note_id(&mut self, used: u32) {
        self.next_id = self.next_id.max(used.saturating_add(1));
    }

    /// Applies a change that was checked before it was logged.
    pub(crate) fn apply(&mut self, change: &Change) {
        self.version += 1;
        match change {
            Change::CreateDatabase(def) => {
                self.tables.entry(def.name.clone()).or_default();
                self.databases.insert(def.name.clone(), def.clone());
            }
            Change::DropDatabase(name) => {
                self.databases.remove(name);
                for table in self.tables.remove(name).unwrap_or_default().into_values() {
                    self.by_id.remove(&table.id());
                }
            }
            Change::CreateTable(def) => {
                self.note_id(def.id.0);
                def.indexes.iter().for_each(|i| self.note_id(i.id.0));
                self.publish(TableHandle::new((**def).clone()));
            }
            Change::DropTable(id) => drop(self.remove(*id)),
            Change::RenameTable { table, database, name } => {
                if let Some(handle) = self.remove(*table) {
                    self.publish(handle.renamed(database, name));
                }
            }
            Change::ReplaceTable { old, new } => {
                if let (Some(old), Some(new)) = (self.remove(*old), self.remove(*new)) {
                    self.publish(new.renamed(&old.def.database, &old.def.name));
                }
            }
            Change::TruncateTable { old, new } => {
                self.note_id(new.0);
                if let Some(table) = self.by_id.remove(old) {
                    let mut def = (*table.def).clone();
                    def.id = *new;
                    self.publish(TableHandle::new(def));
                }
            }
            Change::CreateIndex { table, index } => {
                self.note_id(index.id.0);
                if let Some(handle) = self.by_id.get(table).cloned() {
                    self.publish(handle.adding_index(index.clone()));
                }
            }
            Change::DropIndex { table, index } => {
                if let Some(handle) = self.by_id.get(table).cloned() {
                    self.publish(handle.dropping_index(*index));
                }
            }
            Change::PutUser(user) => {
                self.users.insert((user.name.clone(), user.host.clone()), user.clone());
            }
            Change::DropUser { name, host } => {
                self.users.remove(&(name.clone(), host.clone()));
            }
        }
    }

    fn remove(&mut self, id: TableId) -> Option<Arc<TableHandle>> {
        let table = self.by_id.remove(&id)?;
        if let Some(tables) = self.tables.get_mut(&table.def.database) {
            tables.remove(&table.def.name);
        }
        Some(table)
    }

    /// Publishes a handle under its definition's name and id.
    pub(crate) fn publish(&mut self, handle: TableHandle) {
        let handle = Arc::new(handle);
        self.by_id.insert(handle.id(), handle.clone());
        let tables = self.tables.entry(handle.def.database.clone()).or_default();
        tables.insert(handle.def.name.clone(), handle);
        self.version += 1;
    }

    /// The changes that build this catalog from nothing.
    pub(crate) fn as_changes(&self) -> Vec<Change> {
        let databases = self.databases.values().cloned().map(Change::CreateDatabase);
        let tables = self.tables().map(|t| Change::CreateTable(Box::new((*t.def).clone())));
        let users = self.users.values().cloned().map(Change::PutUser);
        databases.chain(tables).chain(users).collect()
    }
}

impl TableHandle {
    pub(crate) fn adding_index(&self, index: IndexDef) -> Self {
        let at = if index.kind == avocet_types::IndexKind::Primary { 0 } else { self.def.indexes.len() };
        let mut def = (*self.def).clone();
        def.indexes.insert(at, index.clone());
        let mut indexes = self.indexes.clone();
        indexes.insert(at, Arc::new(IndexHandle::new(&self.def, index)));
        self.with_indexes(def, indexes)
    }

    fn renamed(&self, database: &str, name: &str) -> Self {
        let mut def = (*self.def).clone();
        def.database = database.into();
        def.name = name.into();
        self.with_indexes(def, self.indexes.clone())
    }

    fn dropping_index(&self, index: IndexId) -> Self {
        let mut def = (*self.def).clone();
        def.indexes.retain(|i| i.id != index);
        let indexes = self.indexes.iter().filter(|i| i.def.id != index).cloned().collect();
        self.with_indexes(def, indexes)
    }
}

impl Change {
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::CreateDatabase(def) => {
                to.put_u8(1);
                to.put_str(&def.name);
                to.put_u16(def.collation.0);
            }
            Self::DropDatabase(name) => {
                to.put_u8(2);
                to.put_str(name);
            }
            Self::CreateTable(def) => {
                to.put_u8(3);
                def.encode(to);
            }
            Self::DropTable(id) => {
                to.put_u8(4);
                to.put_u32(id.0);
            }
            Self::TruncateTable { old, new } => {
                to.put_u8(5);
                to.put_u32(old.0);
                to.put_u32(new.0);
            }
            Self::CreateIndex { table, index } => {
                to.put_u8(6);
                to.put_u32(table.0);
                index.encode(to);
            }
            Self::DropIndex { table, index } => {
                to.put_u8(7);
                to.put_u32(table.0);
                to.put_u32(index.0);
            }
            Self::PutUser(user) => {
                to.put_u8(8);
                to.put_str(&user.name);
                to.put_str(&user.host);
                to.put_str(&user.plugin);
                to.put_bytes(&user.auth);
            }
            Self::DropUser { name, host } => {
                to.put_u8(9);
                to.put_str(name);
                to.put_str(host);
            }
            Self::RenameTable { table, database, name } => {
                to.put_u8(10);
                to.put_u32(table.0);
                to.put_str(database);
                to.put_str(name);
            }
            Self::ReplaceTable { old, new } => {
                to.put_u8(11);
                to.put_u32(old.0);
                to.put_u32(new.0);
            }
        }
    }

    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "catalog change";
        let string = |reader: &mut Reader<'_>| reader.str(WHAT).map(str::to_owned);
        Ok(match reader.u8(WHAT)? {
            1 => Self::CreateDatabase(DatabaseDef {
                name: string(reader)?,
                collation: Collation(reader.u16(WHAT)?),
            }),
            2 => Self::DropDatabase(string(reader)?),
            3 => Self::CreateTable(Box::new(TableDef::decode(reader)?)),
            4 => Self::DropTable(TableId(reader.u32(WHAT)?)),
            5 => Self::TruncateTable { old: TableId(reader.u32(WHAT)?), new: TableId(reader.u32(WHAT)?) },
            6 => Self::CreateIndex { table: TableId(reader.u32(WHAT)?), index: IndexDef::decode(reader)? },
            7 => Self::DropIndex { table: TableId(reader.u32(WHAT)?), index: IndexId(reader.u32(WHAT)?) },
            8 => Self::PutUser(UserDef {
                name: string(reader)?,
                host: string(reader)?,
                plugin: string(reader)?,
                auth: reader.bytes(WHAT)?.to_vec(),
            }),
            9 => Self::DropUser { name: string(reader)?, host: string(reader)? },
            10 => Self::RenameTable {
                table: TableId(reader.u32(WHAT)?),
                database: string(reader)?,
                name: string(reader)?,
            },
            11 => Self::ReplaceTable { old: TableId(reader.u32(WHAT)?), new: TableId(reader.u32(WHAT)?) },
            _ => return Err(reader.malformed(WHAT)),
        })
    }
}
