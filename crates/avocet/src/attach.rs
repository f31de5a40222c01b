//! `avocet attach`: a data directory that follows a MySQL or MariaDB server, and is served meanwhile, perhaps in a MySQL's place.

mod front;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use avocet_replicate::source::{self, check};
use avocet_replicate::{Attachment, Pattern, Patterns};
use avocet_server::{PeerAccount, Source};
use avocet_session::Database;
use mysql::Opts;

use crate::binary_log::OwnLog;
use crate::replica::promoted::Promoted;
use crate::replica::tls::{SslMode, Tls};
use crate::replica::{self, Channels, Replica, patient, place};
use crate::{Failure, binary_log, serve};

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
    /// The number by which the server knows this replica, and replicas of this one know it, which no other may have; made from the data
    /// directory's path if not given (variable server_id)
    #[arg(long, value_name = "N")]
    server_id: Option<u32>,
    /// Stand before the server here: clients sign in with its accounts, analytical queries are answered from the copy, and all
    /// else goes to the server
    #[arg(long, value_name = "ADDRESS:PORT")]
    front: Option<SocketAddr>,
    /// Queries that the server's optimizer puts lower stay there (variable avocet_route_cost)
    #[arg(long, value_name = "COST", requires = "front")]
    route_cost: Option<u64>,
    /// Another Avocet that is attached to the same server, as mysql://user:password@host:port/ with the address of its --listen and an
    /// account that may read everything there: queries of the front run wherever fewer do, and go on when one is away; may be given
    /// several times
    #[arg(long, value_name = "URL", requires = "front", value_parser = peer)]
    peer: Vec<PeerAccount>,
    /// When connections to the server, and to peers, use TLS
    #[arg(long, value_enum, default_value_t)]
    source_ssl_mode: SslMode,
    /// Certificates (PEM) of the authorities that sign the server's certificate, and those of peers, for verify-identity
    #[arg(long, value_name = "FILE", required_if_eq("source_ssl_mode", "verify-identity"))]
    source_ssl_ca: Option<PathBuf>,
    /// Semi-synchronous: the server's commits wait until they are durable here, as long as it waits for its replicas at all
    /// (variable rpl_semi_sync_replica_enabled)
    #[arg(long)]
    semi_sync: bool,
    /// Tables that are copied at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    copy_threads: usize,
    #[command(flatten)]
    serve: serve::Args,
    #[command(flatten)]
    binary_log: binary_log::Args,
}

pub fn run(args: Args) -> Result<(), Failure> {
    serve::log_to_stderr();
    let opts = Opts::from_url(&args.source).map_err(|error| format!("{}: {error}", args.source))?;
    let tls = Tls { mode: args.source_ssl_mode, authorities: args.source_ssl_ca.clone() };
    let opts = tls.secure(opts)?;
    let patterns = Patterns { include: args.include.clone(), exclude: args.exclude.clone(), channel: None };
    if args.check {
        let report = check(&mut connect(&opts)?, &patterns)?;
        print!("{report}");
        return match report.is_fatal() {
            true => Err("the server cannot be followed as it is".into()),
            false => Ok(()),
        };
    }
    let before = |following: &Option<Following>| {
        let source = following.as_ref().map(|following| following.source.clone() as Arc<dyn Source>);
        Some(serve::Front { listen: args.front?, source })
    };
    let server_id = args.server_id.unwrap_or_else(|| replica::server_id(args.serve.data()));
    serve::run_with(
        &args.serve,
        serve::Log { args: &args.binary_log, server_id },
        |_| Ok(true),
        |database, log| match Promoted::open(database)? {
            None => begin(&args, opts, tls, patterns, database, log).map(Some),
            Some(promoted) if promoted.source != place(&opts) => Err(promoted.refuses_source().into()),
            // Whoever starts it again as it was started before is served, not led back to the old source.
            Some(promoted) => {
                tracing::warn!("{promoted}; avocet serve --data DIR starts it, too");
                database.follow(Channels::of(Replica::in_its_place(database.clone(), promoted)?));
                Ok(None)
            }
        },
        before,
        |following| following.into_iter().for_each(Following::end),
    )
}

fn peer(url: &str) -> Result<PeerAccount, String> {
    let opts = Opts::from_url(url).map_err(|error| error.to_string())?;
    Ok(PeerAccount {
        host: opts.get_ip_or_hostname().into_owned(),
        port: opts.get_tcp_port(),
        user: opts.get_user().unwrap_or_default().to_owned(),
        password: opts.get_pass().unwrap_or_default().to_owned(),
    })
}

fn connect(opts: &Opts) -> Result<source::Connection, Failure> {
    source::connect(opts).map_err(|error| format!("{}: {error}", place(opts)).into())
}

/// What runs beside the server.
struct Following {
    replica: Arc<Replica>,
    source: Arc<FrontSource>,
    probe: JoinHandle<()>,
}

impl Following {
    fn end(self) {
        self.source.probe.stop();
        self.replica.end();
        // It has nothing to lose.
        let _ = self.probe.join();
    }
}

fn begin(
    args: &Args,
    opts: Opts,
    tls: Tls,
    patterns: Patterns,
    database: &Database,
    log: Option<Arc<OwnLog>>,
) -> Result<Following, Failure> {
    let engine = database.engine();
    let is_new = !Attachment::has_begun(engine, avocet_replicate::SOURCE);
    let connected = match is_new {
        true => connect(&opts),
        false => connect(&patient(&opts)),
    };
    match connected.and_then(|mut conn| Ok(check(&mut conn, &patterns)?)) {
        Ok(report) if report.is_fatal() => {
            return Err(format!("the server cannot be followed as it is\n{report}").into());
        }
        Ok(report) => report.to_string().lines().for_each(|line| tracing::info!("{line}")),
        Err(error) if is_new => return Err(error),
        // What is here is served, and the server awaited.
        Err(error) => tracing::warn!(%error, "the server does not answer yet"),
    }
    if args.semi_sync {
        database.set_option("rpl_semi_sync_replica_enabled", "ON")?;
    }
    if let Some(cost) = args.route_cost {
        database.set_option("avocet_route_cost", &cost.to_string())?;
    }
    let mut followed = replica::Source::new(opts.clone());
    followed.tls = tls.clone();
    followed.patterns = patterns.clone();
    followed.copy_threads = args.copy_threads;
    followed.server_id = args.server_id;
    let replica = Replica::of(database.clone(), followed, log);
    let source =
        Arc::new(FrontSource::new(&opts, &tls, args.peer.clone(), patterns, replica.status().clone()));
    replica.begin()?;
    database.follow(Channels::of(replica.clone()));
    let replaced = source.clone();
    replica.when_promoted(move || replaced.be_replaced());
    let probe = source.probe.start(opts)?;
    Ok(Following { replica, source, probe })
}
