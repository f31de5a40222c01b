//! The pace as a model: time passes as the work and the pauses say.

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const RATE: u64 = 64 * MIB;

/// Writes steps at a disk's speed and pauses as told; returns when each step ended, and its bytes.
fn write_steps(steps: &[u64], disk: u64, urgency: impl Fn(Duration) -> f64) -> Vec<(Duration, u64)> {
    let mut now = Duration::from_secs(1000);
    let mut meter = Meter::default();
    let mut ends = Vec::new();
    for &bytes in steps {
        now += Duration::from_secs_f64(bytes as f64 / disk as f64);
        ends.push((now, bytes));
        now += meter.charge(now, cost(bytes, Duration::ZERO, RATE, urgency(now)));
    }
    ends
}

proptest! {
    /// Invariant 1, for every span between two steps.
    #[test]
    fn no_span_of_time_has_more_than_the_rate_and_a_burst(
        steps in prop::collection::vec(1..4 * MIB, 2..60),
        disk in 16 * MIB..4096 * MIB,
    ) {
        let ends = write_steps(&steps, disk, |_| 0.0);
        for first in 0..ends.len() {
            let mut bytes = 0;
            for last in first + 1..ends.len() {
                bytes += ends[last].1;
                let span = (ends[last].0 - ends[first].0).as_secs_f64();
                // The last step is written before it is paid for.
                let most = RATE as f64 * (span + BURST.as_secs_f64()) + ends[last].1 as f64;
                prop_assert!(bytes as f64 <= most + 1.0, "{bytes} in {span} s");
            }
        }
    }

    /// Whatever the load: as long as the disk itself keeps up, the log stays below twice what begins a checkpoint, and what
    /// is logged while the unpaced rest of the checkpoint is written.
    #[test]
    fn the_log_stays_bounded(
        log_rate in MIB..512 * MIB,
        size in MIB..4096 * MIB,
        disk in 256 * MIB..4096 * MIB,
    ) {
        let target = 512 * MIB;
        let (mut now, mut meter, mut written) = (Duration::from_secs(1000), Meter::default(), 0);
        let begin = now;
        let log = |now: Duration| target + (log_rate as f64 * (now - begin).as_secs_f64()) as u64;
        while written < size {
            let step = (MIB / 2).min(size - written);
            now += Duration::from_secs_f64(step as f64 / disk as f64);
            written += step;
            now += meter.charge(now, cost(step, Duration::ZERO, RATE, log_urgency(log(now), target)));
        }
        let at_disk_speed = size as f64 / disk as f64;
        let most = 2.0 * target as f64 + log_rate as f64 * (at_disk_speed + 1.0);
        prop_assert!((log(now) as f64) < most, "{} of {most}", log(now));
    }
}

#[test]
fn idle_times_are_not_saved_up() {
    let mut meter = Meter::default();
    let hour = Duration::from_secs(3600);
    let second = Duration::from_secs(1);
    assert_eq!(meter.charge(hour, second), second - BURST);
    assert_eq!(meter.charge(2 * hour, second), second - BURST);
}

#[test]
fn the_longer_of_writing_and_computing_counts() {
    let cpu = Duration::from_millis(10);
    assert_eq!(cost(RATE, cpu, RATE, 0.0), Duration::from_secs(1));
    assert_eq!(cost(0, cpu, RATE, 0.0), Duration::from_millis(40));
    assert_eq!(cost(RATE, cpu, RATE, 0.5), Duration::from_millis(500));
    assert_eq!(cost(RATE, cpu, RATE, 1.0), Duration::ZERO);
}

#[test]
fn a_long_log_makes_it_urgent() {
    let urgency = |log| log_urgency(log, 100);
    assert_eq!(
        (urgency(0), urgency(100), urgency(150), urgency(200), urgency(900)),
        (0.0, 0.0, 0.5, 1.0, 1.0)
    );
}
