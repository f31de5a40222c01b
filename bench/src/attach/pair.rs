//! A real MySQL or MariaDB, an Avocet that follows it, and the front through which clients reach both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::error::{Error, Result};
use crate::rival::mariadb::MariaDb;
use crate::rival::mariadb11::MariaDb11;
use crate::rival::mysql9::Mysql9;
use crate::rival::server::{self, free_port};
use crate::rival::{Endpoint, Launch, Server, avocet};

/// Who is followed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, ValueEnum)]
pub enum Source {
    /// MySQL 9.7
    #[default]
    Mysql,
    /// MySQL 9.7 as it is installed: without GTIDs, and without the names of columns in its log
    MysqlPlain,
    /// MySQL 9.7 whose InnoDB enforces foreign keys, as all did before 9.6: what they change is not in the log
    MysqlNativeKeys,
    /// MariaDB 10.11
    Mariadb,
    /// MariaDB 11, whose texts have collations of a later Unicode unless they say otherwise
    Mariadb11,
}

impl Source {
    pub fn is_mariadb(self) -> bool {
        matches!(self, Self::Mariadb | Self::Mariadb11)
    }

    /// What asks it for all that it has committed.
    fn executed(self) -> &'static str {
        match self {
            Self::Mysql | Self::MysqlPlain | Self::MysqlNativeKeys => "SELECT @@GLOBAL.gtid_executed",
            Self::Mariadb | Self::Mariadb11 => "SELECT @@GLOBAL.gtid_binlog_pos",
        }
    }
}

/// What a source has to have, beside what all rivals get. Commits need not survive a power cut here, but a kill.
pub const MARIADB: [&str; 7] = [
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
    "--log-bin-compress-min-len=10",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
];
const MYSQL: [&str; 7] = [
    "--log-bin=binlog",
    "--server-id=1",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--binlog-row-metadata=FULL",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
];

/// A transaction is sent, and becomes visible some milliseconds later.
const MYSQL_PLAIN: [&str; 4] = [
    "--log-bin=binlog",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--binlog-group-commit-sync-delay=5000",
];

/// And one whose commits wait for Avocet (`--serve-option=--semi-sync`); a server that is killed holds them up for as long.
const SEMI_SYNC: [&str; 3] = [
    "--plugin-load-add=semisync_source.so",
    "--rpl-semi-sync-source-enabled=ON",
    "--rpl-semi-sync-source-timeout=1000",
];

/// How long everything may take until it is the source's.
const SETTLE_LIMIT: Duration = Duration::from_secs(180);

/// `avocet attach` to a port of this machine.
pub struct Attach {
    binary: PathBuf,
    source: u16,
    front: Option<u16>,
    options: Vec<String>,
}

impl Launch for Attach {
    fn name(&self) -> &'static str {
        "avocet attach"
    }

    fn initialize(&self, _data: &Path) -> Result<()> {
        Ok(())
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let mut server = Command::new(&self.binary);
        server
            .arg("attach")
            .arg(format!("mysql://root@127.0.0.1:{}/", self.source))
            .arg("--data")
            .arg(data)
            .args(["--listen", &format!("127.0.0.1:{}", at.port)])
            .args(&self.options);
        if let Some(front) = self.front {
            server.args(["--front", &format!("127.0.0.1:{front}")]);
        }
        server
    }
}

/// A source, and who follows it.
pub struct Pair {
    pub kind: Source,
    pub source: Server,
    pub replica: Server,
    /// Others that follow the source, on which the front's queries can run as well.
    pub peers: Vec<Server>,
    /// The port of the front, if there is one.
    pub front: Option<u16>,
}

/// A server that can be followed.
pub fn source(kind: Source, folder: &Path) -> Result<Server> {
    source_with(kind, folder, &[])
}

fn source_with(kind: Source, folder: &Path, more: &[&str]) -> Result<Server> {
    let launch: Box<dyn Launch> = match kind {
        Source::Mysql => Box::new(Mysql9::fetch()?.with(&MYSQL).with(more)),
        Source::MysqlNativeKeys => {
            Box::new(Mysql9::fetch()?.with(&MYSQL).with(&["--innodb-native-foreign-keys=ON"]).with(more))
        }
        Source::MysqlPlain => Box::new(Mysql9::fetch()?.with(&MYSQL_PLAIN).with(more)),
        Source::Mariadb => Box::new(MariaDb::fetch()?.with(&MARIADB)),
        Source::Mariadb11 => Box::new(MariaDb11::fetch()?.with(&MARIADB)),
    };
    Server::start(launch, &folder.join("source"))
}

impl Pair {
    /// Starts both; `before` fills the source before it is followed.
    pub fn start(
        kind: Source,
        folder: &Path,
        options: &[String],
        before: impl FnOnce(&Server) -> Result<()>,
    ) -> Result<Self> {
        Self::start_with_peers(kind, folder, options, 0, before)
    }

    /// As [`Self::start`], with so many others that follow the source.
    pub fn start_with_peers(
        kind: Source,
        folder: &Path,
        options: &[String],
        peers: u64,
        before: impl FnOnce(&Server) -> Result<()>,
    ) -> Result<Self> {
        let more = if options.iter().any(|option| option == "--semi-sync") { &SEMI_SYNC[..] } else { &[] };
        let source = source_with(kind, folder, more)?;
        before(&source)?;
        Self::attach_with_peers(kind, source, folder, options, peers)
    }

    pub fn attach(kind: Source, source: Server, folder: &Path, options: &[String]) -> Result<Self> {
        Self::attach_with_peers(kind, source, folder, options, 0)
    }

    fn attach_with_peers(
        kind: Source,
        source: Server,
        folder: &Path,
        options: &[String],
        peers: u64,
    ) -> Result<Self> {
        let binary = avocet::binary()?;
        let front = Some(free_port()?);
        let start = |front, options, name: &str| {
            let attach = Attach { binary: binary.clone(), source: source.port(), front, options };
            Server::start(Box::new(attach), &folder.join(name))
        };
        let peers = (1..=peers).map(|number| start(None, options.to_vec(), &format!("peer{number}")));
        let peers = peers.collect::<Result<Vec<_>>>()?;
        let named = peers
            .iter()
            .flat_map(|peer| ["--peer".to_owned(), format!("mysql://root@127.0.0.1:{}/", peer.port())]);
        let replica = start(front, options.iter().cloned().chain(named).collect(), "replica")?;
        let pair = Self { kind, source, replica, peers, front };
        pair.wait_for_front()?;
        Ok(pair)
    }

    fn wait_for_front(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            match Conn::new(self.front_options()) {
                Ok(_) => return Ok(()),
                Err(error) if begin.elapsed() > Duration::from_secs(10) => {
                    return Err(Error::Check(format!("the front does not answer: {error}")));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// How clients connect that come through the front; where there is none, the source itself.
    pub fn front_options(&self) -> OptsBuilder {
        server::options(self.front.unwrap_or_else(|| self.source.port()))
    }

    /// Waits until all that the source has committed is visible here, and every table that can be followed is.
    pub fn settle(&self) -> Result<()> {
        let begin = Instant::now();
        let executed: Option<String> = connect(&self.source)?.query_first(self.kind.executed())?;
        let executed = executed.unwrap_or_default();
        let mut replica = connect(&self.replica)?;
        let end = self.log_end()?;
        loop {
            let mut waited: Option<i64> =
                replica.exec_first("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 1)", (&executed,))?;
            let row: Option<mysql::Row> = replica.query_first("SHOW REPLICA STATUS")?;
            let row = row.ok_or_else(|| Error::Check("SHOW REPLICA STATUS is empty".into()))?;
            let text = |name: &str| row.get::<String, _>(name).unwrap_or_default();
            if let Some((file, position)) = &end {
                let (there, at) = (text("Relay_Source_Log_File"), row.get::<u64, _>("Exec_Source_Log_Pos"));
                waited = Some(i64::from((&there, at.unwrap_or(0)) < (file, *position)));
                std::thread::sleep(Duration::from_millis(20));
            }
            // While the source is away, the status tells of that alone.
            let tables: Vec<String> = replica.query("SELECT state FROM avocet.replica_tables")?;
            let tables = tables.join("; ");
            let unfinished = ["waiting to be copied", "being copied", "the stream is not there yet"];
            let is_unfinished = unfinished.iter().any(|state| tables.contains(state));
            // What is equal already may be so before the source is there again.
            if waited == Some(0) && !is_unfinished && text("Replica_IO_Running") == "Yes" {
                return Ok(());
            }
            if text("Replica_SQL_Running") != "Yes" || begin.elapsed() > SETTLE_LIMIT {
                return Err(Error::Check(format!(
                    "the replica does not get there: {} / {}",
                    text("Last_IO_Error"),
                    tables
                )));
            }
            if waited == Some(0) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Pair {
    /// Where the source's log ends, if nothing else tells what it has committed.
    fn log_end(&self) -> Result<Option<(String, u64)>> {
        if self.kind != Source::MysqlPlain {
            return Ok(None);
        }
        let row: Option<mysql::Row> = connect(&self.source)?.query_first("SHOW BINARY LOG STATUS")?;
        let place = row.and_then(|row| Some((row.get("File")?, row.get("Position")?)));
        place.map(Some).ok_or_else(|| Error::Check("the source has no binary log".into()))
    }

    /// How far both are, for whoever looks for the cause of a difference.
    pub fn positions(&self) -> Result<String> {
        let executed = |server: &Server, kind: Source| -> Result<String> {
            Ok(connect(server)?.query_first(kind.executed())?.unwrap_or_default())
        };
        let row: Option<mysql::Row> = connect(&self.replica)?.query_first("SHOW REPLICA STATUS")?;
        let tables: String = row.and_then(|row| row.get("Last_SQL_Error")).unwrap_or_default();
        Ok(format!(
            "executed at the source: {}; here: {}; tables: {tables}",
            executed(&self.source, self.kind)?,
            executed(&self.replica, Source::Mysql)?
        ))
    }
}

pub fn connect(server: &Server) -> Result<Conn> {
    Ok(Conn::new(options(server))?)
}

pub fn options(server: &Server) -> OptsBuilder {
    // A definition that waits for a writer's transaction would wait for the end of the round, which waits for it; and a change may
    // wait for what was prepared before a kill.
    const INIT: &str =
        "SET NAMES utf8mb4, time_zone = '+00:00', lock_wait_timeout = 2, innodb_lock_wait_timeout = 2";
    let init = vec![INIT.to_owned()];
    server.options().init(init).stmt_cache_size(32)
}
