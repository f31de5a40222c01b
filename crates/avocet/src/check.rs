//! `avocet check`: verifies what a data directory holds, while no server uses it.

use std::path::PathBuf;

use avocet_engine::EngineOptions;
use avocet_replicate::publish::{ahead, verify};

use crate::Failure;

#[derive(clap::Args)]
pub struct Args {
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The object store that holds the blocks and checkpoints, if they are not in the data directory
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    if !args.data.is_dir() {
        return Err(format!("{} is not a directory", args.data.display()).into());
    }
    let folder = args.data.join("binlog");
    let mut options = EngineOptions::new(args.data);
    let env = options.env.clone();
    options.store_url = args.store;
    let mut report = avocet_engine::check(options)?;
    println!(
        "{} tables, {} rows, {} blocks, {} page images, {} index entries, {} log records",
        report.tables, report.rows, report.blocks, report.images, report.index_entries, report.log_records
    );
    if let Some(log) = verify(&env, &folder)? {
        println!("{} files and {} events of the binary log", log.files, log.events);
        report.findings.extend(log.findings);
        if report.is_clean() && log.last > report.last_commit {
            report.findings.push(ahead(&folder.display().to_string(), log.last, report.last_commit));
        }
    }
    report.notes.iter().for_each(|note| println!("note: {note}"));
    if report.is_clean() {
        println!("no damage found");
        return Ok(());
    }
    report.findings.iter().for_each(|finding| println!("DAMAGE: {finding}"));
    Err(format!("{} findings", report.findings.len()).into())
}
