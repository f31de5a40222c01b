//! sysbench's OLTP workloads: `bench/run sysbench`. Debian's sysbench runs as it is, against Avocet and the rival in turn;
//! ours is only to start the servers, to read its result and to add the CPU time that the server spent.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use mysql::prelude::Queryable;

use crate::cache;
use crate::contest::{Contender, Contest, median};
use crate::error::{Error, Result};
use crate::options::Common;
use crate::report::Report;
use crate::rival::Server;
use crate::rival::packages::{self, Suite};

const DATABASE: &str = "sbtest";
/// sysbench and the libraries that a minimal Debian lacks.
const PACKAGES: [&str; 8] = [
    "libaio1",
    "libaio1t64",
    "libldap-2.5-0",
    "libluajit-5.1-2",
    "libluajit-5.1-common",
    "libmariadb3",
    "libpq5",
    "sysbench",
];

#[derive(Args, Clone)]
pub struct Options {
    /// Workloads of sysbench, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "oltp_point_select,oltp_read_write,oltp_update_index,oltp_write_only,select_random_points,\
                         select_random_ranges,oltp_insert,oltp_delete"
    )]
    tests: Vec<String>,
    /// Numbers of client threads
    #[arg(long, value_delimiter = ',', default_value = "1,8,64")]
    threads: Vec<usize>,
    #[arg(long, default_value_t = 1)]
    tables: usize,
    /// Rows of each table
    #[arg(long, default_value_t = 100_000)]
    table_size: usize,
    /// Measured time of each run
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Send texts instead of executing prepared statements
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    common: Common,
}

/// One run's result.
struct Run {
    transactions: f64,
    seconds: f64,
    cpu: Duration,
}

/// How sysbench is started.
struct Program {
    binary: PathBuf,
    /// Where it was unpacked, if the machine has none.
    root: Option<PathBuf>,
}

impl Program {
    fn find() -> Result<Self> {
        let installed = PathBuf::from("/usr/bin/sysbench");
        if installed.exists() {
            return Ok(Self { binary: installed, root: None });
        }
        let root = cache::folder("sysbench", |dir| packages::unpack(Suite::OfThisMachine, &PACKAGES, dir))?;
        Ok(Self { binary: root.join("usr/bin/sysbench"), root: Some(root) })
    }

    fn command(&self, test: &str, server: &Server, options: &Options) -> Command {
        let mut command = Command::new(&self.binary);
        match &self.root {
            None => command.arg(test),
            Some(root) => {
                let scripts = root.join("usr/share/sysbench");
                let libraries = root.join("usr/lib/x86_64-linux-gnu");
                command
                    .env("LD_LIBRARY_PATH", &libraries)
                    // Where its client library looks for ways to authenticate.
                    .env("MARIADB_PLUGIN_DIR", libraries.join("libmariadb3/plugin"))
                    .env("LUA_PATH", format!("{}/?.lua", scripts.display()))
                    .arg(scripts.join(format!("{test}.lua")))
            }
        };
        command
            .args(["--db-driver=mysql", "--mysql-user=root"])
            .args(match server.socket() {
                Some(path) => [format!("--mysql-socket={}", path.display()), "--mysql-host=localhost".into()],
                None => [format!("--mysql-port={}", server.port()), "--mysql-host=127.0.0.1".into()],
            })
            .arg(format!("--mysql-db={DATABASE}"))
            .arg(format!("--tables={}", options.tables))
            .arg(format!("--table-size={}", options.table_size));
        command
    }

    fn prepare(&self, server: &Server, options: &Options) -> Result<()> {
        let mut conn = mysql::Conn::new(server.options())?;
        conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
        cache::run(self.command("oltp_read_write", server, options).arg("prepare")).map(drop)
    }

    fn run(&self, test: &str, threads: usize, server: &Server, options: &Options) -> Result<Run> {
        let mut command = self.command(test, server, options);
        command.arg(format!("--threads={threads}")).arg(format!("--time={}", options.seconds));
        if options.text {
            command.arg("--db-ps-mode=disable");
        }
        let before = server.cpu_time()?;
        let printed = cache::run(command.arg("run"))?;
        let cpu = server.cpu_time()?.saturating_sub(before);
        let figure = |name: &str| {
            figure(&printed, name)
                .ok_or_else(|| Error::Check(format!("sysbench printed no {name}\n{printed}")))
        };
        Ok(Run { transactions: figure("transactions:")?, seconds: figure("total time:")?, cpu })
    }
}

/// The number behind a label in what sysbench prints.
fn figure(printed: &str, label: &str) -> Option<f64> {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(label))?;
    line.split_whitespace().next()?.trim_end_matches('s').parse().ok()
}

/// `bench/run sysbench`.
pub fn command(options: &Options) -> Result<()> {
    let program = Program::find()?;
    let contest = Contest::start(&options.common)?;
    for server in contest.servers() {
        program.prepare(server, options)?;
    }
    let mut report = Report::new("sysbench", options.common.rival);
    for test in &options.tests {
        for &threads in &options.threads {
            let mut runs: Vec<(Contender, Run)> = Vec::new();
            for _ in 0..options.common.rounds {
                for (contender, server) in contest.each() {
                    let run = program.run(test, threads, server, options)?;
                    eprintln!(
                        "{test}, {threads} threads: {} {:.0} tx/s",
                        server.name(),
                        run.transactions / run.seconds
                    );
                    runs.push((contender, run));
                }
            }
            let middle = |who: Contender, figure: fn(&Run) -> f64| {
                median(runs.iter().filter(|(c, _)| *c == who).map(|(_, run)| figure(run)))
            };
            let mut add = |name: &str, unit, figure: fn(&Run) -> f64| {
                let (avocet, rival) = (middle(Contender::Avocet, figure), middle(Contender::Rival, figure));
                report.add(format!("sysbench.{test}.{threads}.{name}"), unit, avocet, rival);
            };
            add("tx_per_s", "tx/s", |run| run.transactions / run.seconds);
            add("server_cpu_us_per_tx", "us", |run| run.cpu.as_secs_f64() * 1e6 / run.transactions.max(1.0));
        }
    }
    report.publish(options.common.json.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_sysbench_prints() {
        let printed =
            "    transactions:                        3519   (879.62 per sec.)\n  total time:  4.0002s\n";
        assert_eq!(figure(printed, "transactions:"), Some(3519.0));
        assert_eq!(figure(printed, "total time:"), Some(4.0002));
        assert_eq!(figure(printed, "queries:"), None);
    }
}
