//! `avocet attach`: a data directory that follows a MySQL server, and is served meanwhile, perhaps in that one's place.

mod front;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use avocet_replicate::gtid::GtidSet;
use avocet_replicate::source::{self, check};
use avocet_replicate::{
    Attachment, Checker, Compared, Config, Definitions, Pattern, Patterns, Phase, Rows, SessionOfQuery,
    Snapshot, Status, TableName, Verdict,
};
use avocet_session::Database;
use avocet_session::replication::{CheckedTable, LeftOut, ReplicaStatus, Replication};
use avocet_types::error::SqlError;
use avocet_types::{Collation, Value};
use mysql::Opts;

use crate::{Failure, serve};

use front::FrontSource;

#[derive(clap::Args)]
pub struct Args {
    /// The server, as mysql://user:password@host:port/
    #[arg(value_name = "URL")]
    source: String,
    /// Say whether the server can be followed, and what it lacks, and end
    #[arg(long)]
    check: bool,
    /// Follow this database or database.table alone; * stands for any part of a name; may be given several times
    #[arg(long, value_name = "DB[.TABLE]")]
    include: Vec<Pattern>,
    /// Leave this out; may be given several times
    #[arg(long, value_name = "DB[.TABLE]")]
    exclude: Vec<Pattern>,
    /// The number by which the server knows this replica, which no other may have; made from the data directory's path if not given
    #[arg(long, value_name = "N")]
    server_id: Option<u32>,
    /// Stand before the server here: clients sign in with its accounts, analytical queries are answered from the copy, and all
    /// else goes to the server
    #[arg(long, value_name = "ADDRESS:PORT")]
    front: Option<SocketAddr>,
    /// Queries that the server's optimizer puts lower stay there (variable avocet_route_cost)
    #[arg(long, value_name = "COST", requires = "front")]
    route_cost: Option<u64>,
    /// Tables that are copied at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    copy_threads: usize,
    #[command(flatten)]
    serve: serve::Args,
}

pub fn run(args: Args) -> Result<(), Failure> {
    serve::log_to_stderr();
    let opts = Opts::from_url(&args.source).map_err(|error| format!("{}: {error}", args.source))?;
    let patterns = Patterns { include: args.include.clone(), exclude: args.exclude.clone() };
    if args.check {
        let report = check(&mut connect(&opts)?, &patterns)?;
        print!("{report}");
        return match report.is_fatal() {
            true => Err("the server cannot be followed as it is".into()),
            false => Ok(()),
        };
    }
    let before = |following: &Following| {
        let front = args.front?;
        Some(serve::Front { listen: front, source: following.source.clone() })
    };
    serve::run_with(
        &args.serve,
        None,
        |database| begin(&args, opts, patterns, database),
        before,
        Following::end,
    )
}

fn connect(opts: &Opts) -> Result<mysql::Conn, Failure> {
    let host = opts.get_ip_or_hostname();
    source::connect(opts).map_err(|error| format!("{host}:{}: {error}", opts.get_tcp_port()).into())
}

/// What runs beside the server.
struct Following {
    attachment: Attachment,
    source: Arc<FrontSource>,
    threads: Vec<JoinHandle<()>>,
}

impl Following {
    fn end(self) {
        self.source.probe.stop();
        self.attachment.stop();
        for reporter in self.threads {
            // It has nothing to lose.
            let _ = reporter.join();
        }
    }
}

fn begin(args: &Args, opts: Opts, patterns: Patterns, database: &Database) -> Result<Following, Failure> {
    let engine = database.engine();
    let is_new = !Attachment::has_begun(engine);
    match connect(&opts).and_then(|mut conn| Ok(check(&mut conn, &patterns)?)) {
        Ok(report) if report.is_fatal() => {
            return Err(format!("the server cannot be followed as it is\n{report}").into());
        }
        Ok(report) => report.to_string().lines().for_each(|line| tracing::info!("{line}")),
        Err(error) if is_new => return Err(error),
        // What is here is served, and the server awaited.
        Err(error) => tracing::warn!(%error, "the server does not answer yet"),
    }
    database.set_option("super_read_only", "ON")?;
    if let Some(cost) = args.route_cost {
        database.set_option("avocet_route_cost", &cost.to_string())?;
    }
    let told = database.clone();
    let source = Arc::new(FrontSource::new(&opts, patterns.clone()));
    let config = Config {
        server_id: args.server_id.unwrap_or_else(|| server_id(engine.options().data.display().to_string())),
        source: opts.clone(),
        patterns,
        copy_threads: args.copy_threads,
        workers: 1,
        on_visible: Box::new(move |executed: &GtidSet| {
            // It is a variable that there is.
            let _ = told.set_option("gtid_executed", &executed.to_string());
        }),
    };
    let definitions = SqlDefinitions { database: database.clone() };
    let attachment = Attachment::start(engine, config, Box::new(definitions))?;
    let status = attachment.status().clone();
    let told = Told { status: status.clone(), checker: attachment.checker(), database: database.clone() };
    database.follow(Arc::new(told));
    source.follow(status.clone());
    let mut threads = vec![source.probe.start(opts)?];
    let report = move || report_progress(&status);
    threads.extend(std::thread::Builder::new().name("replica-report".into()).spawn(report));
    Ok(Following { attachment, source, threads })
}

/// Distinct for each data directory of a machine, and most probably of all.
fn server_id(path: impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    std::fs::read_to_string("/etc/machine-id").unwrap_or_default().hash(&mut hasher);
    path.hash(&mut hasher);
    (hasher.finish() as u32).max(1 << 16)
}

/// Says every few seconds how far copies are, as long as there are any.
fn report_progress(status: &Status) {
    const EVERY: Duration = Duration::from_secs(5);
    let mut last = 0;
    let mut waited = Duration::ZERO;
    while status.snapshot().phase != Phase::Stopped {
        const LOOK: Duration = Duration::from_millis(100);
        std::thread::sleep(LOOK);
        waited += LOOK;
        if waited < EVERY {
            continue;
        }
        waited = Duration::ZERO;
        let bytes = status.copied_bytes();
        let rate = (bytes - last) as f64 / EVERY.as_secs_f64() / 1e6;
        last = bytes;
        for copy in status.copies() {
            let seconds = copy.since.elapsed().as_secs_f64();
            let left = copy.of_about.saturating_sub(copy.rows);
            let seconds_left = left as f64 / (copy.rows as f64 / seconds).max(1.0);
            tracing::info!(
                "copying {}: {} of about {} rows, {:.1} MB, about {seconds_left:.0} s left ({rate:.1} MB/s in all)",
                copy.name,
                copy.rows,
                copy.of_about.max(copy.rows),
                copy.bytes as f64 / 1e6,
            );
        }
    }
}

/// Definitions as SQL, each in a session like the one at the source.
struct SqlDefinitions {
    database: Database,
}

impl Definitions for SqlDefinitions {
    fn run(&mut self, default: Option<&str>, like: &SessionOfQuery, sql: &str) -> Result<(), SqlError> {
        let mut connection = self.database.connect_to_apply()?;
        let mut settings = vec![
            "foreign_key_checks = 0".to_owned(),
            "unique_checks = 0".to_owned(),
            format!("sql_mode = '{}'", like.sql_mode_names()),
        ];
        if let Some(zone) = &like.time_zone {
            settings.push(format!("time_zone = '{}'", zone.replace('\'', "''")));
        }
        if let Some([_, connection, server]) = like.collations {
            settings.push(format!("collation_connection = {}", Collation(connection).name()));
            settings.push(format!("collation_server = {}", Collation(server).name()));
        }
        if let Some(collation) = like.utf8mb4_collation {
            settings.push(format!("default_collation_for_utf8mb4 = {}", Collation(collation).name()));
        }
        if let Some((increment, offset)) = like.auto_increment {
            settings
                .push(format!("auto_increment_increment = {increment}, auto_increment_offset = {offset}"));
        }
        if let Some(began) = like.began_us {
            settings.push(format!("timestamp = {}.{:06}", began / 1_000_000, began % 1_000_000));
        }
        connection.query(&format!("SET SESSION {}", settings.join(", ")))?;
        if let Some(default) = default {
            // The statement may be about to make the database.
            let exists = self.database.engine().catalog().database(default).is_some();
            if exists {
                connection.query(&format!("USE `{}`", default.replace('`', "``")))?;
            }
        }
        connection.query(sql).map(drop)
    }
}

/// The replication, as sessions see it.
struct Told {
    status: Arc<Status>,
    checker: Checker,
    database: Database,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Rows of this server, by SQL.
struct RowsHere(avocet_session::Connection);

impl Rows for RowsHere {
    fn read(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>, SqlError> {
        Ok(self.0.query_with(sql, parameters)?.rows)
    }
}

impl Replication for Told {
    fn status(&self) -> ReplicaStatus {
        let Snapshot { phase, source: (host, port, user), place, executed, last_error, tables, .. } =
            self.status.snapshot();
        let shown = self.status.snapshot();
        ReplicaStatus {
            source_host: host,
            source_port: port,
            source_user: user,
            source_uuid: shown.source_uuid,
            state: match phase {
                Phase::Connecting => "Connecting to source",
                Phase::Following => "Waiting for source to send event",
                Phase::Halted | Phase::Stopped => "",
            }
            .into(),
            reads: match phase {
                Phase::Connecting => "Connecting",
                Phase::Following => "Yes",
                Phase::Halted | Phase::Stopped => "No",
            },
            applies: matches!(phase, Phase::Connecting | Phase::Following),
            log_file: place.file,
            log_position: place.offset,
            last_error,
            left_out: tables
                .into_iter()
                .map(|(name, state)| LeftOut { database: name.database, table: name.table, state })
                .collect(),
            seconds_behind: shown.seconds_behind,
            executed: executed.to_string(),
        }
    }

    fn wait_for(&self, set: &str, at_most: Duration, stop: &dyn Fn() -> bool) -> Option<bool> {
        let wanted: GtidSet = set.parse().ok()?;
        Some(self.status.wait_for(&wanted, at_most, stop))
    }

    fn check(
        &self,
        tables: &[(String, String)],
        repairs: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<CheckedTable>, String> {
        let name = |(database, table): &(String, String)| TableName {
            database: database.clone(),
            table: table.clone(),
        };
        let names: Vec<TableName> = tables.iter().map(name).collect();
        let mut here = self.database.connect_to_apply().map_err(|error| error.message)?;
        here.query("SET SESSION time_zone = '+00:00', sql_mode = ''").map_err(|error| error.message)?;
        let compared = self.checker.check(&names, repairs, &mut RowsHere(here), stop);
        let compared = compared.map_err(|error| error.to_string())?;
        Ok(compared
            .into_iter()
            .map(|Compared { name, rows, verdict }| {
                let (verdict, detail) = match verdict {
                    Verdict::Equal => ("equal", String::new()),
                    Verdict::Different(row) => ("different", row),
                    Verdict::Unknown(why) => ("unknown", why),
                };
                CheckedTable { database: name.database, table: name.table, rows, verdict, detail }
            })
            .collect())
    }
}
