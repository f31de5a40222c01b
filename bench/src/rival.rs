//! The databases that Avocet is measured against and checked by: fetched, started and stopped without root, in scratch folders.
//!
//! All of them sync every commit: a rival that may lose the last second is not measured at all.

pub mod avocet;

pub mod duckdb;
pub mod front;
pub mod mariadb;
pub mod mariadb11;
pub mod mysql9;
pub mod packages;
pub mod server;

use clap::ValueEnum;

pub use server::{Endpoint, Launch, Server, Way};

use crate::error::{Error, Result};

/// What both InnoDB servers get: durable commits, and memory that holds the working set of the small scales measured here.
const INNODB: [&str; 5] = [
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=1536M",
    "--max-allowed-packet=64M",
    "--table-open-cache=512",
    "--max-connections=10100",
];

/// Who stands beside Avocet in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Rival {
    Mariadb,
    Mysql,
    Duckdb,
    /// Another Avocet, which AVOCET_EARLIER_BIN names
    Earlier,
    None,
}

impl Rival {
    pub fn name(self) -> &'static str {
        match self {
            Rival::Mariadb => "mariadb",
            Rival::Mysql => "mysql",
            Rival::Duckdb => "duckdb",
            Rival::Earlier => "earlier",
            Rival::None => "none",
        }
    }

    /// The launcher of a rival that speaks the MySQL protocol; none for `none`.
    pub fn launch(self) -> Result<Option<Box<dyn Launch>>> {
        match self {
            Rival::Mariadb => Ok(Some(Box::new(mariadb::MariaDb::fetch()?))),
            Rival::Mysql => Ok(Some(Box::new(mysql9::Mysql9::fetch()?))),
            Rival::Duckdb => {
                Err(Error::Setup("DuckDB is no rival for transactions; take mariadb or mysql".into()))
            }
            Rival::Earlier => Ok(Some(Box::new(avocet::Avocet::earlier()?))),
            Rival::None => Ok(None),
        }
    }
}
