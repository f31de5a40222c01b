//! The binary log of `avocet serve --log-bin`, as sessions and replicas' connections see it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use avocet_replicate::gtid::GtidSet;
use avocet_replicate::publish::{BinaryLog, BinlogOptions, Dump, From, Log, Step, decode_gtids};
use avocet_session::Database;
use avocet_session::api::DumpFrom;
use avocet_session::binary_log::{BinaryLog as Told, BinaryLogDump, BinaryLogStatus, DumpStep};

use crate::Failure;

#[derive(clap::Args)]
pub struct Args {
    /// Keep a binary log, so that MySQL replicas and tools of change capture can follow this server (variable log_bin)
    #[arg(long)]
    pub log_bin: bool,
    /// By which replicas know this server; all of a topology have different ones (variable server_id)
    #[arg(long, value_name = "N", default_value_t = 1)]
    server_id: u32,
    /// Bytes of a file of the binary log, about, such as 1G (variable max_binlog_size)
    #[arg(long, value_name = "BYTES", value_parser = crate::serve::bytes, default_value = "1G")]
    max_binlog_size: usize,
    /// Seconds for which files of the binary log are kept; 0 for ever (variable binlog_expire_logs_seconds)
    #[arg(long, value_name = "SECONDS", default_value_t = 2_592_000)]
    binlog_expire_logs_seconds: u64,
}

/// Starts the binary log, if there is to be one.
pub fn start(args: &Args, data: &std::path::Path, database: &Database) -> Result<Option<BinaryLog>, Failure> {
    database.set_option("server_id", &args.server_id.to_string())?;
    let folder: PathBuf = data.join("binlog");
    if !args.log_bin {
        if folder.is_dir() {
            tracing::warn!("without --log-bin, what is committed now will never be in the binary log");
        }
        return Ok(None);
    }
    let options = BinlogOptions {
        folder: folder.clone(),
        server_id: args.server_id,
        version: database.option("version")?,
        max_file_bytes: args.max_binlog_size as u64,
        expire_seconds: args.binlog_expire_logs_seconds,
    };
    let binary_log = BinaryLog::start(database.engine(), options)?;
    let log = binary_log.log();
    for (name, value) in [
        ("log_bin", "ON".to_owned()),
        ("log_bin_basename", folder.join("binlog").display().to_string()),
        ("gtid_mode", "ON".to_owned()),
        ("enforce_gtid_consistency", "ON".to_owned()),
        ("server_uuid", log.server_uuid()),
        ("max_binlog_size", args.max_binlog_size.to_string()),
        ("binlog_expire_logs_seconds", args.binlog_expire_logs_seconds.to_string()),
    ] {
        database.set_option(name, &value)?;
    }
    database.log_to(Arc::new(Shown(log)));
    Ok(Some(binary_log))
}

struct Shown(Log);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Shown").field(&self.0.position()).finish()
    }
}

impl Told for Shown {
    fn status(&self) -> BinaryLogStatus {
        let (file, position) = self.0.position();
        BinaryLogStatus {
            file,
            position,
            executed: self.0.executed().to_string(),
            purged: self.0.purged().to_string(),
        }
    }

    fn files(&self) -> Vec<(String, u64)> {
        self.0.files().into_iter().map(|file| (file.name, file.bytes)).collect()
    }

    fn wait_for(&self, set: &str, at_most: Duration, stop: &dyn Fn() -> bool) -> Option<bool> {
        let wanted: GtidSet = set.parse().ok()?;
        Some(self.0.wait_for(&wanted, at_most, stop))
    }

    fn dump(&self, from: DumpFrom, begins_without_checksum: bool) -> Result<Box<dyn BinaryLogDump>, String> {
        let from = match from {
            DumpFrom::Gtids(set) => From::Gtids(decode_gtids(&set).ok_or("the set of GTIDs cannot be read")?),
            DumpFrom::Position(file, position) => From::Position(file, position),
        };
        let dump = self.0.dump(from, begins_without_checksum).map_err(|error| error.to_string())?;
        Ok(Box::new(Dumped(dump)))
    }
}

struct Dumped(Dump);

impl BinaryLogDump for Dumped {
    fn next(&mut self, to: &mut Vec<u8>) -> io::Result<DumpStep> {
        Ok(match self.0.next(to)? {
            Step::Event => DumpStep::Event,
            Step::Skipped => DumpStep::Skipped,
            Step::End => DumpStep::End,
        })
    }

    fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_more(cx)
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    fn buffered(&self) -> usize {
        self.0.buffered()
    }

    fn heartbeat(&self, to: &mut Vec<u8>) {
        self.0.heartbeat(to);
    }
}
