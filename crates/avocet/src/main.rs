//! The `avocet` program: `serve` a data directory, `attach` to a MySQL and `promote` it to take that one's place, `sql` on one,
//! `load` files, `replay` recorded queries, `check` what is stored.
//!
//! Each command is a module with its arguments and a `run` that returns a readable error. Everything that a
//! command does is done by the crates below; here are only arguments, terminals and files.
#![deny(unsafe_code)]

mod accounts;
mod attach;
mod binary_log;
mod check;
mod connect;
mod load;
mod open_files;
mod promote;
mod replay;
mod replica;
mod serve;
mod sql;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A thread of the allocator's gives freed pages back after two seconds, those of idle threads, too: what it keeps counts against
/// `--memory-limit`.
// SAFETY: the allocator reads a C string of this name when the process starts, and nobody else has the name.
#[allow(unsafe_code)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_OPTIONS: &[u8; 60] = b"background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0\0";

/// A MySQL-compatible database for transactions and analytics on one copy of the data.
#[derive(Parser)]
#[command(version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a data directory over the MySQL protocol
    Serve(serve::OwnArgs),
    /// Follow a MySQL server: copy its tables, keep them current, and serve them
    Attach(attach::Args),
    /// Have a server take the place of the one that it follows
    Promote(promote::Args),
    /// Run SQL: interactively, from -e, or from standard input
    Sql(sql::Args),
    /// Load CSV, TBL or Parquet files into a table
    Load(load::Args),
    /// Run recorded queries on a MySQL and on the Avocet that follows it, and compare answers and times
    Replay(replay::Args),
    /// Verify every page, block, index and log record of a data directory
    Check(check::Args),
}

/// What a command failed of, for people.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Attach(args) => attach::run(args),
        Command::Promote(args) => promote::run(args),
        Command::Sql(args) => sql::run(args),
        Command::Load(args) => load::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Check(args) => check::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("avocet: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// What `clap` itself asks only in builds with debug assertions.
    #[test]
    fn the_command_line_makes_sense() {
        super::Cli::command().debug_assert();
    }
}
