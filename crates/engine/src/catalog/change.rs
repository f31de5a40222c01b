//! Changes of the catalog, as the redo log and checkpoints hold them. Tags are never reused.

use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::{IndexId, TableId};
use avocet_types::{CheckDef, Collation, ForeignKeyDef, IndexDef, KeptKeyDef, TableDef, ViewDef};

use super::{Catalog, DatabaseDef, UserDef};
use crate::table::TableHandle;

const WHAT: &str = "catalog change";

/// One change of the catalog, as logged.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    PutDatabase(DatabaseDef),
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
    PutUser(Box<UserDef>),
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
        /// How many rows the new one has at this point of the log; recovery counts them. Old logs do not say.
        rows: Option<u64>,
        /// Those of the new table.
        foreign_keys: Vec<ForeignKeyDef>,
        /// Columns that foreign keys refer to, by their old names and their new ones.
        renamed: Vec<(String, String)>,
    },
    /// A table's columns change, and its rows stay where they are (`reshape.rs`). The definition has the table's id, or another
    /// if the rows get another layout; its foreign keys and indexes are those of before.
    Reshape {
        old: TableId,
        def: Box<TableDef>,
        /// How many rows the table has at this point of the log; recovery counts them.
        rows: u64,
        /// Columns that foreign keys refer to, by their old names and their new ones.
        renamed: Vec<(String, String)>,
    },
    AddForeignKey {
        table: TableId,
        key: ForeignKeyDef,
    },
    DropForeignKey {
        table: TableId,
        name: String,
    },
    /// All CHECK constraints that the table has from now on.
    SetChecks {
        table: TableId,
        checks: Vec<CheckDef>,
    },
    /// What of a definition says nothing about how its rows are kept.
    SetKept {
        table: TableId,
        partitioning: Option<String>,
        kept_keys: Vec<KeptKeyDef>,
    },
    /// When the table was altered.
    SetCreated {
        table: TableId,
        at_us: i64,
    },
    /// Whether plans may use an index.
    ShowIndex {
        table: TableId,
        index: IndexId,
        visible: bool,
    },
    /// From now on, rows may have no parents.
    Unenforce {
        table: TableId,
        name: String,
    },
    /// The next generated AUTO_INCREMENT value is at least this one.
    AutoIncrement {
        table: TableId,
        next: u64,
    },
    /// It is this one, which is greater than those that the rows have.
    SetAutoIncrement {
        table: TableId,
        next: u64,
    },
    /// A table that was filled under no name gets one, with so many rows in it.
    PublishTable {
        table: TableId,
        database: String,
        name: String,
        rows: u64,
    },
    /// A definition with a view's query.
    CreateView(Box<TableDef>),
    /// All of them or none, in this order: what one statement changes.
    Several(Vec<Change>),
}

impl Change {
    /// Whether it is about a table that is being filled under no name.
    pub fn is_of_unfinished(&self, catalog: &Catalog) -> bool {
        match self {
            Self::CreateTable(def) => TableHandle::is_database_of_unfinished(&def.database),
            Self::DropTable(id) => catalog.table_by_id(*id).is_some_and(|table| table.is_unfinished()),
            Self::Several(changes) => changes.iter().any(|change| change.is_of_unfinished(catalog)),
            _ => false,
        }
    }

    /// The table that gets its name by it.
    pub fn published(&self) -> Option<TableId> {
        match self {
            Self::PublishTable { table, .. } => Some(*table),
            Self::Several(changes) => changes.iter().find_map(Self::published),
            _ => None,
        }
    }

    /// Whether it says how many rows a table has.
    pub fn counts_rows(&self) -> bool {
        match self {
            Self::ReplaceTable { rows, .. } => rows.is_some(),
            Self::PublishTable { .. } | Self::Reshape { .. } => true,
            Self::Several(changes) => changes.iter().any(Self::counts_rows),
            _ => false,
        }
    }

    /// Whether it must be made after every row that was logged before it: it counts rows, or it lowers a number that rows raise.
    pub fn follows_rows(&self) -> bool {
        match self {
            Self::SetAutoIncrement { .. } => true,
            Self::Several(changes) => changes.iter().any(Self::follows_rows),
            other => other.counts_rows(),
        }
    }

    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::PutDatabase(def) => {
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
                to.put_u8(21);
                user.encode(to);
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
            Self::ReplaceTable { old, new, rows, foreign_keys, renamed } => {
                // The first form is the one that every release reads.
                let is_plain = foreign_keys.is_empty() && renamed.is_empty();
                to.put_u8(match rows {
                    Some(_) => 18,
                    None if is_plain => 11,
                    None => 15,
                });
                to.put_u32(old.0);
                to.put_u32(new.0);
                if let Some(rows) = rows {
                    to.put_varint(*rows);
                }
                if rows.is_some() || !is_plain {
                    to.put_varint(foreign_keys.len() as u64);
                    foreign_keys.iter().for_each(|key| key.encode(to));
                    put_renamed(renamed, to);
                }
            }
            Self::Reshape { old, def, rows, renamed } => {
                to.put_u8(33);
                to.put_u32(old.0);
                def.encode(to);
                to.put_varint(*rows);
                put_renamed(renamed, to);
            }
            Self::AddForeignKey { table, key } => {
                to.put_u8(12);
                to.put_u32(table.0);
                key.encode(to);
            }
            Self::DropForeignKey { table, name } => {
                to.put_u8(13);
                to.put_u32(table.0);
                to.put_str(name);
            }
            Self::Unenforce { table, name } => {
                to.put_u8(14);
                to.put_u32(table.0);
                to.put_str(name);
            }
            Self::SetChecks { table, checks } => {
                to.put_u8(30);
                to.put_u32(table.0);
                to.put_varint(checks.len() as u64);
                checks.iter().for_each(|check| check.encode(to));
            }
            Self::SetKept { table, partitioning, kept_keys } => {
                to.put_u8(32);
                to.put_u32(table.0);
                to.put_str(partitioning.as_deref().unwrap_or_default());
                to.put_varint(kept_keys.len() as u64);
                kept_keys.iter().for_each(|key| key.encode(to));
            }
            Self::SetCreated { table, at_us } => {
                to.put_u8(34);
                to.put_u32(table.0);
                to.put_i64(*at_us);
            }
            Self::ShowIndex { table, index, visible } => {
                to.put_u8(31);
                to.put_u32(table.0);
                to.put_u32(index.0);
                to.put_u8((*visible).into());
            }
            Self::SetAutoIncrement { table, next } => {
                to.put_u8(35);
                to.put_u32(table.0);
                to.put_varint(*next);
            }
            Self::AutoIncrement { table, next } => {
                to.put_u8(16);
                to.put_u32(table.0);
                to.put_varint(*next);
            }
            Self::Several(changes) => {
                to.put_u8(17);
                to.put_varint(changes.len() as u64);
                for change in changes {
                    let mut bytes = Vec::new();
                    change.encode(&mut bytes);
                    to.put_bytes(&bytes);
                }
            }
            Self::CreateView(def) => {
                to.put_u8(40);
                def.encode(to);
                def.view.as_deref().expect("it is a view's").encode(to);
            }
            Self::PublishTable { table, database, name, rows } => {
                to.put_u8(19);
                to.put_u32(table.0);
                to.put_str(database);
                to.put_str(name);
                to.put_varint(*rows);
            }
        }
    }

    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match reader.u8(WHAT)? {
            17 => {
                let mut changes = Vec::new();
                for _ in 0..reader.varint(WHAT)? {
                    let mut one = Reader::new(reader.bytes(WHAT)?);
                    let tag = one.u8(WHAT)?;
                    changes.push(Self::decode_one(tag, &mut one)?);
                    one.finish(WHAT)?;
                }
                Ok(Self::Several(changes))
            }
            tag => Self::decode_one(tag, reader),
        }
    }

    /// Any but `Several`, which does not nest.
    fn decode_one(tag: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let string = |reader: &mut Reader<'_>| reader.str(WHAT).map(str::to_owned);
        Ok(match tag {
            1 => Self::PutDatabase(DatabaseDef {
                name: string(reader)?,
                collation: Collation(reader.u16(WHAT)?),
            }),
            2 => Self::DropDatabase(string(reader)?),
            3 => Self::CreateTable(Box::new(TableDef::decode(reader)?)),
            4 => Self::DropTable(TableId(reader.u32(WHAT)?)),
            5 => Self::TruncateTable { old: TableId(reader.u32(WHAT)?), new: TableId(reader.u32(WHAT)?) },
            6 => Self::CreateIndex { table: TableId(reader.u32(WHAT)?), index: IndexDef::decode(reader)? },
            7 => Self::DropIndex { table: TableId(reader.u32(WHAT)?), index: IndexId(reader.u32(WHAT)?) },
            // As 0.1 wrote it.
            8 => Self::PutUser(Box::new(UserDef::decode_0_1(reader)?)),
            20 => Self::PutUser(Box::new(UserDef::decode_with_grants(reader)?)),
            21 => Self::PutUser(Box::new(UserDef::decode(reader)?)),
            9 => Self::DropUser { name: string(reader)?, host: string(reader)? },
            10 => Self::RenameTable {
                table: TableId(reader.u32(WHAT)?),
                database: string(reader)?,
                name: string(reader)?,
            },
            11 => Self::ReplaceTable {
                old: TableId(reader.u32(WHAT)?),
                new: TableId(reader.u32(WHAT)?),
                rows: None,
                foreign_keys: Vec::new(),
                renamed: Vec::new(),
            },
            12 => {
                Self::AddForeignKey { table: TableId(reader.u32(WHAT)?), key: ForeignKeyDef::decode(reader)? }
            }
            13 => Self::DropForeignKey { table: TableId(reader.u32(WHAT)?), name: string(reader)? },
            14 => Self::Unenforce { table: TableId(reader.u32(WHAT)?), name: string(reader)? },
            16 => Self::AutoIncrement { table: TableId(reader.u32(WHAT)?), next: reader.varint(WHAT)? },
            19 => Self::PublishTable {
                table: TableId(reader.u32(WHAT)?),
                database: string(reader)?,
                name: string(reader)?,
                rows: reader.varint(WHAT)?,
            },
            30 => {
                let table = TableId(reader.u32(WHAT)?);
                let mut checks = Vec::new();
                for _ in 0..reader.varint(WHAT)? {
                    checks.push(CheckDef::decode(reader)?);
                }
                Self::SetChecks { table, checks }
            }
            32 => {
                let table = TableId(reader.u32(WHAT)?);
                let partitioning = Some(string(reader)?).filter(|text| !text.is_empty());
                let mut kept_keys = Vec::new();
                for _ in 0..reader.varint(WHAT)? {
                    kept_keys.push(KeptKeyDef::decode(reader)?);
                }
                Self::SetKept { table, partitioning, kept_keys }
            }
            35 => Self::SetAutoIncrement { table: TableId(reader.u32(WHAT)?), next: reader.varint(WHAT)? },
            34 => Self::SetCreated { table: TableId(reader.u32(WHAT)?), at_us: reader.i64(WHAT)? },
            33 => Self::Reshape {
                old: TableId(reader.u32(WHAT)?),
                def: Box::new(TableDef::decode(reader)?),
                rows: reader.varint(WHAT)?,
                renamed: renamed(reader)?,
            },
            31 => Self::ShowIndex {
                table: TableId(reader.u32(WHAT)?),
                index: IndexId(reader.u32(WHAT)?),
                visible: reader.u8(WHAT)? != 0,
            },
            40 => {
                let mut def = TableDef::decode(reader)?;
                def.view = Some(Box::new(ViewDef::decode(reader)?));
                Self::CreateView(Box::new(def))
            }
            15 | 18 => {
                let (old, new) = (TableId(reader.u32(WHAT)?), TableId(reader.u32(WHAT)?));
                let rows = if tag == 18 { Some(reader.varint(WHAT)?) } else { None };
                let mut foreign_keys = Vec::new();
                for _ in 0..reader.varint(WHAT)? {
                    foreign_keys.push(ForeignKeyDef::decode(reader)?);
                }
                Self::ReplaceTable { old, new, rows, foreign_keys, renamed: renamed(reader)? }
            }
            _ => return Err(reader.malformed(WHAT)),
        })
    }
}

/// Names by twos: old and new.
fn put_renamed(renamed: &[(String, String)], to: &mut Vec<u8>) {
    to.put_varint(renamed.len() as u64);
    renamed.iter().flat_map(|(from, into)| [from, into]).for_each(|name| to.put_str(name));
}

fn renamed(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>, Malformed> {
    let mut renamed = Vec::new();
    for _ in 0..reader.varint(WHAT)? {
        renamed.push((reader.str(WHAT)?.to_owned(), reader.str(WHAT)?.to_owned()));
    }
    Ok(renamed)
}

#[cfg(test)]
pub(super) mod tests {
    use avocet_types::{
        ColumnDef, ReferentialAction, SqlMode, SqlType, ViewAlgorithm, ViewCheck, ViewSecurity,
    };

    use super::super::{GrantScope, LoginRules, PasswordRules, Privileges, TlsRule};
    use super::*;

    pub fn key(parent: &str) -> ForeignKeyDef {
        ForeignKeyDef {
            name: "k".into(),
            columns: vec![0],
            parent_database: "d".into(),
            parent_table: parent.into(),
            parent_columns: vec!["id".into()],
            on_delete: ReferentialAction::Cascade,
            on_update: ReferentialAction::NoAction,
        }
    }

    pub fn view() -> TableDef {
        let view = ViewDef {
            select: "select `d`.`t`.`a` AS `a` from `d`.`t`".into(),
            names: vec!["a".into()],
            algorithm: ViewAlgorithm::Merge,
            definer: ("ann".into(), "10.%".into()),
            security: ViewSecurity::Invoker,
            check: ViewCheck::Cascaded,
            is_updatable: true,
            sql_mode: SqlMode(5),
            client_charset: "latin1".into(),
            connection_collation: Collation::DEFAULT,
            created_us: 77,
        };
        let column = ColumnDef::new("a", SqlType::BIGINT);
        let def = TableDef::new("d", "v", vec![column], vec![]);
        TableDef { id: TableId(9), view: Some(Box::new(view)), ..def }
    }

    fn reshaped() -> TableDef {
        let column = ColumnDef::new("a", SqlType::BIGINT);
        let mut def = TableDef::new("d", "t", vec![column], vec![]);
        let stored = avocet_types::StoredColumn { position: 2, before: avocet_types::Datum::Int(-1) };
        def.stored = Some(Box::new(avocet_types::StoredColumns { columns: vec![stored], width: 4 }));
        def
    }

    #[test]
    fn changes_round_trip() {
        let (old, new) = (TableId(3), TableId(4));
        let mut user = UserDef { locked: true, auth: b"x".to_vec(), ..UserDef::new("ann", "10.%") };
        user.grant(GrantScope::Global, Privileges::CREATE_USER | Privileges::DROP_ROLE);
        user.grant(GrantScope::Database("d%".into()), Privileges::OF_DATABASES);
        user.grant(GrantScope::Table { database: "d".into(), table: "t".into() }, Privileges::SELECT);
        let (database, table) = ("d".to_owned(), "t".to_owned());
        user.grant(GrantScope::Column { database, table, column: "c".into() }, Privileges::UPDATE);
        user.grant(
            GrantScope::Procedure { database: "d".into(), procedure: "p".into() },
            Privileges::OF_ROUTINES,
        );
        user.retained = Some(b"y".to_vec());
        user.password = PasswordRules {
            expired: true,
            changed_at: -5,
            lifetime_days: Some(0),
            history: Some(7),
            reuse_days: None,
            require_current: Some(true),
            past: vec![(9, b"z".to_vec())],
        };
        let tls = TlsRule::Certified { subject: "/CN=a".into(), issuer: String::new(), cipher: "c".into() };
        user.login = LoginRules { tls, failed_attempts: 3, lock_days: None, set_at: -9 };
        user.restrict("d", Privileges::DROP);
        user.roles.insert(("r".into(), "%".into()), true);
        user.default_roles.insert(("r".into(), "%".into()));
        let renamed = vec![("a".to_owned(), "b".to_owned())];
        for change in [
            Change::AddForeignKey { table: old, key: key("p") },
            Change::DropForeignKey { table: old, name: "k".into() },
            Change::Unenforce { table: old, name: "k".into() },
            Change::ShowIndex { table: old, index: IndexId(9), visible: true },
            Change::SetKept {
                table: old,
                partitioning: Some("HASH (`a`)".into()),
                kept_keys: vec![KeptKeyDef {
                    name: "f".into(),
                    columns: vec![1],
                    kind: avocet_types::KeptKeyKind::Spatial,
                    comment: "of c".into(),
                }],
            },
            Change::SetKept { table: old, partitioning: None, kept_keys: vec![] },
            Change::SetCreated { table: old, at_us: 1_700_000_000_123_456 },
            Change::SetChecks {
                table: old,
                checks: vec![CheckDef { name: "c".into(), condition: "(`a` > 0)".into(), enforced: true }],
            },
            Change::Reshape { old, def: Box::new(reshaped()), rows: 12, renamed: renamed.clone() },
            Change::ReplaceTable { old, new, rows: None, foreign_keys: vec![key("p")], renamed },
            Change::ReplaceTable { old, new, rows: None, foreign_keys: vec![], renamed: vec![] },
            Change::ReplaceTable { old, new, rows: Some(300), foreign_keys: vec![], renamed: vec![] },
            Change::PublishTable { table: new, database: "d".into(), name: "t".into(), rows: 7 },
            Change::PutUser(Box::new(user)),
            Change::CreateView(Box::new(view())),
            Change::Several(vec![
                Change::DropTable(old),
                Change::AutoIncrement { table: new, next: 1000 },
                Change::SetAutoIncrement { table: new, next: 7 },
                Change::RenameTable { table: new, database: "d".into(), name: "t".into() },
            ]),
        ] {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            let back = Change::decode(&mut reader).expect("valid");
            assert!(reader.is_empty());
            assert_eq!(format!("{back:?}"), format!("{change:?}"));
            for cut in 0..bytes.len() {
                assert!(Change::decode(&mut Reader::new(&bytes[..cut])).is_err());
            }
        }
    }
}
