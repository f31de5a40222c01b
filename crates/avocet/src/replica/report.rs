//! How far copies are, for whoever reads the log.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use avocet_replicate::{Phase, Status};

/// Says every few seconds how far copies are, until the replication has ended.
pub fn start(status: Arc<Status>) -> Option<JoinHandle<()>> {
    let run = move || report(&status);
    let spawned = std::thread::Builder::new().name("replica-report".into()).spawn(run);
    spawned.inspect_err(|error| tracing::warn!(%error, "copies will not be reported")).ok()
}

fn report(status: &Status) {
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
