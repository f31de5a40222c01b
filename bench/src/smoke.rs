//! `bench/run smoke`: every workload on a small input, with all its checks. Part of `make test`.

use std::time::Instant;

use clap::{Args, Parser};

use crate::error::{Error, Result};
use crate::{Cli, run};

#[derive(Args, Clone)]
pub struct Options {
    /// Options for every workload, as `--rival mariadb`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    common: Vec<String>,
}

const WORKLOADS: [&str; 23] = [
    "tpcc --tiny --terminals 2 --seconds 2 --warm-up 0.5",
    "tpcc --tiny --terminals 2 --seconds 1 --warm-up 0.2 --only protocol --procedures calls",
    "tpcc --tiny --terminals 2 --seconds 1 --warm-up 0.2 --style sets",
    "tatp --subscribers 500 --terminals 2 --seconds 1 --warm-up 0.2",
    "ycsb --records 500 --terminals 2 --seconds 0.5 --warm-up 0.1",
    "smallbank --customers 500 --hot 20 --terminals 2 --seconds 1 --warm-up 0.2",
    "connections --connections 200 --subscribers 500 --terminals 4 --seconds 1 --warm-up 0.2",
    "point_update --rows 2000 --ballast 20000 --terminals 2 --seconds 0.5 --warm-up 0.1",
    "ablation --tiny --warehouses 1 --clients 1,2 --seconds 0.5 --warm-up 0.1",
    "shapes --rows 2000 --runs 3",
    "json --rows 5000 --runs 2",
    "alter --rows 30000 --rate 500 --alone 0.5",
    "ch --tiny --terminals 2 --seconds 2 --warm-up 0.5",
    "tpch --sf 0.01 --runs 1",
    "tpcds --sf 0.01 --runs 1",
    "load --sf 0.01",
    "memory --limit-mib 256 --wide-gib 0.1 --tables 40 --select-gib 0.05 --rows 30000 --terminals 2 --most 6",
    "recovery --tiny --terminals 2 --log-mib 4 --at-most 20",
    "crash --tiny --terminals 2 --kills 3 --lives 1.5",
    "attach --rounds 2 --kills 100 --lives 0.8 --back 2 --by-statement 1 --channels 2 --promote 1 --replay --read-seconds 0.3 --wait-seconds 0.5 --write-rate 500 --tpch-sf 0.01 --tpch-runs 1 --copy-mib 1 --changes 1000",
    "attach --peers 1 --rounds 2 --kills 100 --lives 0.8 --read-seconds 0 --wait-seconds 0 --tpch-sf 0 --copy-mib 0 --changes 0",
    "attach --source mariadb --rounds 2 --kills 100 --lives 0.8",
    "attach --source mysql-plain --rounds 2 --kills 100 --lives 0.8",
];

/// `bench/run smoke`.
pub fn command(options: &Options) -> Result<()> {
    let mut failed = Vec::new();
    for workload in WORKLOADS {
        println!("\n=== {workload}");
        let begin = Instant::now();
        let words = std::iter::once("bench/run").chain(workload.split(' '));
        let words = words.chain(options.common.iter().map(String::as_str));
        let cli = Cli::try_parse_from(words).map_err(|e| Error::Setup(e.to_string()))?;
        match run(cli.workload) {
            Ok(()) => println!("=== ok in {:.1?}", begin.elapsed()),
            Err(e) => {
                println!("=== FAILED: {e}");
                failed.push(workload);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Error::Check(format!("{failed:?} failed"))) }
}
