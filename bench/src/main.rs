//! Workload drivers, rivals and the SQL-file runner. Everything here reaches Avocet as any client does, over the MySQL
//! protocol, and reaches MySQL and MariaDB with the same code; DuckDB stands beside it for analytics. Only native procedures
//! need Avocet as a library: in process, or in a server of this program's own (`serve`).
//!
//! `bench/run` builds this program and Avocet, and starts it.

mod ablation;
mod alter;
mod analytics;
mod attach;
mod cache;
mod ch;
mod connections;
mod contest;
mod crash;
mod demo;
mod differential;
mod error;
mod finding;
mod insert;
mod isolation;
mod json;
mod memory;
mod oltp;
mod options;
mod point_update;
mod progress;
mod random;
mod recovery;
mod report;
mod rival;
mod serve;
mod shapes;
mod slt;
mod smallbank;
mod smoke;
mod soak;
mod sysbench;
mod tatp;
mod tpcc;
mod tpcds;
mod tpch;
mod value;
mod ycsb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Result;
use options::{Common, Oltp, TpccParts};

/// The allocator of the server, so that what runs in process runs as it does there.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
#[command(name = "bench/run", about = "Measures Avocet beside its rivals, and checks what it answers")]
pub struct Cli {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// TPC-C: transactions over the MySQL protocol
    Tpcc {
        #[command(flatten)]
        oltp: Oltp,
        #[command(flatten)]
        parts: TpccParts,
        #[command(flatten)]
        common: Common,
    },
    /// TATP: the seven transactions of a telephone network's register
    Tatp(tatp::Options),
    /// YCSB's workloads A to F
    Ycsb(ycsb::Options),
    /// SmallBank: six transactions on savings and checking accounts
    Smallbank(smallbank::Options),
    /// Updates of single rows by key: the peak, and latencies at half of it
    #[command(name = "point_update")]
    PointUpdate(point_update::Options),
    /// What each part of the store brings: TPC-C's procedures on four versions of it
    Ablation(ablation::Options),
    /// What thousands of idle connections cost the few that work
    Connections(connections::Options),
    /// CH-benCHmark: TPC-C beside analytical queries on the same data
    Ch(ch::Options),
    /// TPC-H: 22 queries, every answer checked
    Tpch(tpch::Options),
    /// TPC-DS: 99 queries, every answer checked
    Tpcds(tpcds::Options),
    /// Time and space of loading TPC-H's tables
    Load(tpch::Options),
    /// Time from a kill to the first answer, with a long log
    Recovery(recovery::Options),
    /// The server of `tpcc --procedures`
    #[command(hide = true)]
    ServeProcedures(serve::Options),
    /// The process that `recovery` has killed
    #[command(hide = true)]
    FillLog(recovery::FillerOptions),
    /// Load, transactions beside analytics, a kill, and nothing lost
    Demo(demo::Options),
    /// A MySQL with running writes, followed: analytical queries through the front on fresh data, and everything compared
    DemoAttach(attach::demo::Options),
    /// SIGKILL at random moments under load, again and again
    Crash(crash::Options),
    /// Much data in little memory: what the process takes beside its limit
    Memory(memory::Options),
    /// Transactions, queries, DDL and kills for an hour: what must stay flat
    Soak(soak::Options),
    /// Small inputs of every workload, so that none of them rots
    Smoke(smoke::Options),
    /// sysbench's OLTP workloads
    Sysbench(sysbench::Options),
    /// Statements as applications send them, each beside the rival's time
    Shapes(shapes::Options),
    /// Changes of a large table's definition, and what others get done meanwhile
    Alter(alter::Options),
    /// Values in JSON documents beside plain columns of the same values
    Json(json::Options),
    /// Following a MySQL under random definitions, changes and kills; every table compared, and how fast it is
    Attach(attach::Options),
    /// The SQL test files, against Avocet or a real MySQL
    Slt(slt::Options),
    /// Random schedules of concurrent transactions, step by step on Avocet and on MySQL
    Isolation(isolation::Options),
    /// Random statements, answered by Avocet and by MySQL
    Random(differential::Options),
}

fn run(workload: Workload) -> Result<()> {
    match workload {
        Workload::Tpcc { oltp, parts, common } => tpcc::command(&oltp, &parts, &common),
        Workload::Tatp(options) => tatp::command(&options),
        Workload::Ycsb(options) => ycsb::command(&options),
        Workload::Smallbank(options) => smallbank::command(&options),
        Workload::PointUpdate(options) => point_update::command(&options),
        Workload::Ablation(options) => ablation::command(&options),
        Workload::Connections(options) => connections::command(&options),
        Workload::Ch(options) => ch::command(&options),
        Workload::Tpch(options) => tpch::command(&options),
        Workload::Tpcds(options) => tpcds::command(&options),
        Workload::Recovery(options) => recovery::command(&options),
        Workload::ServeProcedures(options) => serve::command(&options),
        Workload::FillLog(options) => recovery::filler_command(&options),
        Workload::Demo(options) => demo::command(&options),
        Workload::DemoAttach(options) => attach::demo::command(&options),
        Workload::Crash(options) => crash::command(&options),
        Workload::Memory(options) => memory::command(&options),
        Workload::Soak(options) => soak::command(&options),
        Workload::Smoke(options) => smoke::command(&options),
        Workload::Sysbench(options) => sysbench::command(&options),
        Workload::Shapes(options) => shapes::command(&options),
        Workload::Alter(options) => alter::command(&options),
        Workload::Json(options) => json::command(&options),
        Workload::Attach(options) => attach::command(&options),
        Workload::Slt(options) => slt::command(&options),
        Workload::Isolation(options) => isolation::command(&options),
        Workload::Random(options) => differential::command(&options),
        Workload::Load(options) => tpch::load_command(&options),
    }
}

fn main() -> ExitCode {
    match run(Cli::parse().workload) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench: {e}");
            ExitCode::FAILURE
        }
    }
}
