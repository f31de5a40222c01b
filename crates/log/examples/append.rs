//! How fast the log is on this machine's disk: records per second, bytes per second, latency of durability.
//!
//! `cargo run --release -p avocet-log --example append [DIR [SECONDS]]`
//!
//! *waiting*: each thread appends a record and waits until it is durable, as a client's commit does.
//! *pipelined*: each thread only appends; the log thread and the limit on pending bytes set the pace.
//! The raw line is the rival: a loop of write and fdatasync on a preallocated file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use avocet_base::{Env, Lsn};
use avocet_log::{LogOptions, LogReader, LogWriter, Record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().unwrap_or_else(|| "/tmp/avocet-log-bench".into()));
    let seconds = args.next().map_or(Ok(3.0), |s| s.parse())?;
    let time = Duration::from_secs_f64(seconds);
    for zeroed in [false, true] {
        raw(&dir, time, zeroed)?;
    }
    println!(
        "{:<34} {:>10} {:>8} {:>9} {:>10} {:>10}",
        "", "records/s", "MB/s", "rec/group", "sync p50", "sync p99"
    );
    for prefill in [false, true] {
        for (threads, waiting) in [(1, true), (4, true), (16, true), (64, true), (1, false), (2, false)] {
            run(&dir, Case { threads, waiting, payload: 400, prefill }, time)?;
        }
        run(&dir, Case { threads: 1, waiting: false, payload: 16 << 10, prefill }, time)?;
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Write and fdatasync of 4 KiB, one after the other.
fn raw(dir: &Path, time: Duration, zeroed: bool) -> Result<(), Box<dyn std::error::Error>> {
    let disk = Env::os().disk;
    disk.create_dir_all(dir)?;
    let path = dir.join("raw");
    let file = disk.create(&path)?;
    let size = 64u64 << 20;
    file.allocate(size)?;
    if zeroed {
        (0..size >> 20).try_for_each(|mib| file.write_at(&vec![0; 1 << 20], mib << 20))?;
    }
    file.sync_data()?;
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < time {
        file.write_at(&[1; 4096], n * 4096 % size)?;
        file.sync_data()?;
        n += 1;
    }
    let state = if zeroed { "zero-filled" } else { "allocated" };
    println!("raw write + fdatasync, {state}: {:.0}/s", n as f64 / began.elapsed().as_secs_f64());
    disk.remove(&path)?;
    Ok(())
}

struct Case {
    threads: usize,
    waiting: bool,
    payload: usize,
    prefill: bool,
}

fn run(dir: &Path, case: Case, time: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let dir = dir.join("log");
    let options = LogOptions { prefill: case.prefill, ..LogOptions::new(&dir) };
    let writer = LogWriter::open(Env::os(), options, Lsn(0))?;
    let payload = vec![0x5a; case.payload];
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..case.threads {
            scope.spawn(|| append_until(&writer, &payload, began + time, case.waiting));
        }
        // A checkpoint gives up what is more than 256 MiB old.
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(50));
            let keep = Lsn(writer.durable_lsn().0.saturating_sub(256 << 20));
            writer.truncate_before(keep).expect("the disk works");
        }
    });
    writer.flush()?;
    let took = began.elapsed().as_secs_f64();
    let stats = writer.stats();
    println!(
        "{:>2} threads, {:<9} {:>5} B{:<9} {:>10.0} {:>8.1} {:>9.1} {:>8}us {:>8}us",
        case.threads,
        if case.waiting { "waiting" } else { "pipelined" },
        case.payload,
        if case.prefill { ", filled" } else { "" },
        stats.records as f64 / took,
        stats.bytes as f64 / took / 1e6,
        stats.records as f64 / stats.groups as f64,
        stats.sync_us.quantile(0.5),
        stats.sync_us.quantile(0.99),
    );
    let from = writer.first_lsn();
    writer.close()?;
    read_back(&dir, from, case.payload)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn append_until(writer: &LogWriter, payload: &[u8], end: Instant, wait: bool) {
    let mut tag = 0;
    while tag % 64 != 0 || Instant::now() < end {
        let lsn = writer.append_record(&Record::new(1, payload), tag).expect("the disk works");
        if wait {
            writer.wait_durable(lsn).expect("the disk works");
        }
        tag += 1;
    }
}

fn read_back(dir: &Path, from: Lsn, payload: usize) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut reader = LogReader::open(Env::os(), dir, from)?;
    let mut bytes = 0u64;
    while let Some(record) = reader.next_record()? {
        assert_eq!(record.payload.len(), payload);
        bytes += record.payload.len() as u64;
    }
    if bytes > 100 << 20 {
        println!(
            "   read back {} MB at {:.0} MB/s",
            bytes / 1_000_000,
            bytes as f64 / began.elapsed().as_secs_f64() / 1e6
        );
    }
    Ok(())
}
