//! What a view is beside its columns: the query that it stands for, and under whose rights and settings that was written.

use avocet_base::codec::{Malformed, Put, Reader};

use crate::expr::SqlMode;
use crate::sql_type::Collation;

const WHAT: &str = "view definition";

/// The part of a definition that makes a table a view. Its columns are those of the query as it was when the view was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewDef {
    /// The query in its canonical text: names with their databases, no `*`.
    pub select: String,
    /// The column list, if the statement had one.
    pub names: Vec<String>,
    pub algorithm: ViewAlgorithm,
    /// User and host.
    pub definer: (String, String),
    pub security: ViewSecurity,
    pub check: ViewCheck,
    /// Whether its rows are rows of stored tables, as far as could be told when it was made.
    pub is_updatable: bool,
    /// As the session had them: they say what the text means.
    pub sql_mode: SqlMode,
    pub client_charset: String,
    pub connection_collation: Collation,
    pub created_us: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewAlgorithm {
    #[default]
    Undefined,
    Merge,
    /// The view's rows are made before the query around it: it is no way to the rows of tables.
    TempTable,
}

/// Whose privileges count for what the view reads and changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewSecurity {
    #[default]
    Definer,
    Invoker,
}

/// Which conditions a row has to meet that is written through the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewCheck {
    #[default]
    None,
    /// Its own, and those that views below it ask for themselves.
    Local,
    /// Its own, and those of all views below it.
    Cascaded,
}

impl ViewAlgorithm {
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Undefined => "UNDEFINED",
            Self::Merge => "MERGE",
            Self::TempTable => "TEMPTABLE",
        }
    }
}

impl ViewSecurity {
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Definer => "DEFINER",
            Self::Invoker => "INVOKER",
        }
    }
}

impl ViewCheck {
    pub const fn sql(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Local => "LOCAL",
            Self::Cascaded => "CASCADED",
        }
    }
}

impl ViewDef {
    /// ```text
    ///  select │ names │ algorithm u8 │ definer: user │ host │ security u8 │ check u8 │ updatable u8 │ SQL mode u64
    ///  │ client's charset │ connection's collation u16 │ created u64 (microseconds since 1970)
    /// ```
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.put_str(&self.select);
        to.put_varint(self.names.len() as u64);
        self.names.iter().for_each(|name| to.put_str(name));
        to.put_u8(self.algorithm as u8);
        to.put_str(&self.definer.0);
        to.put_str(&self.definer.1);
        to.put_u8(self.security as u8);
        to.put_u8(self.check as u8);
        to.put_u8(self.is_updatable.into());
        to.put_u64(self.sql_mode.0.into());
        to.put_str(&self.client_charset);
        to.put_u16(self.connection_collation.0);
        to.put_u64(self.created_us as u64);
    }

    pub fn decode(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let select = from.str(WHAT)?.to_owned();
        let mut names = Vec::new();
        for _ in 0..from.varint(WHAT)? {
            names.push(from.str(WHAT)?.to_owned());
        }
        let algorithm = match from.u8(WHAT)? {
            0 => ViewAlgorithm::Undefined,
            1 => ViewAlgorithm::Merge,
            2 => ViewAlgorithm::TempTable,
            _ => return Err(from.malformed(WHAT)),
        };
        let definer = (from.str(WHAT)?.to_owned(), from.str(WHAT)?.to_owned());
        let security = match from.u8(WHAT)? {
            0 => ViewSecurity::Definer,
            1 => ViewSecurity::Invoker,
            _ => return Err(from.malformed(WHAT)),
        };
        let check = match from.u8(WHAT)? {
            0 => ViewCheck::None,
            1 => ViewCheck::Local,
            2 => ViewCheck::Cascaded,
            _ => return Err(from.malformed(WHAT)),
        };
        let is_updatable = match from.u8(WHAT)? {
            0 => false,
            1 => true,
            _ => return Err(from.malformed(WHAT)),
        };
        let sql_mode = from.u64(WHAT)?.try_into().map(SqlMode).map_err(|_| from.malformed(WHAT))?;
        Ok(Self {
            select,
            names,
            algorithm,
            definer,
            security,
            check,
            is_updatable,
            sql_mode,
            client_charset: from.str(WHAT)?.to_owned(),
            connection_collation: Collation(from.u16(WHAT)?),
            created_us: from.u64(WHAT)? as i64,
        })
    }
}
