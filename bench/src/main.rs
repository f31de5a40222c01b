//! Workload drivers, rivals and the SQL-file runner. Everything here reaches Avocet as any client does, over the MySQL
//! protocol, and reaches MySQL and MariaDB with the same code; DuckDB stands beside it for analytics.
//!
//! `bench/run` builds this program and Avocet, and starts it.

mod cache;
mod contest;
mod error;
mod insert;
mod options;
mod progress;
mod report;
mod rival;
mod tpcc;
mod value;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Result;
use options::{Common, Oltp};

#[derive(Parser)]
#[command(name = "bench/run", about = "Measures Avocet beside its rivals, and checks what it answers")]
struct Cli {
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
        common: Common,
    },
}

fn run(workload: Workload) -> Result<()> {
    match workload {
        Workload::Tpcc { oltp, common } => tpcc::command(&oltp, &common),
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
