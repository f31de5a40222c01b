//! How long statements took: exact sums, and percentiles from a histogram whose steps are 3 %.

use std::collections::BTreeMap;
use std::time::Duration;

/// Steps within a doubling.
const STEPS: u32 = 32;

#[derive(Clone, Debug, Default)]
pub struct Times {
    pub count: u64,
    pub total: Duration,
    /// By step, those that took so long: the most that there are is a few hundred.
    steps: BTreeMap<u32, u64>,
}

fn step(us: u64) -> u32 {
    match us {
        0..64 => us as u32,
        _ => {
            let doubling = us.ilog2() - 5;
            doubling * STEPS + (us >> doubling) as u32
        }
    }
}

/// The least that a step holds.
fn value(step: u32) -> u64 {
    match step {
        0..64 => u64::from(step),
        _ => {
            let doubling = step / STEPS - 1;
            u64::from(step - doubling * STEPS) << doubling
        }
    }
}

impl Times {
    pub fn add(&mut self, took: Duration) {
        self.count += 1;
        self.total += took;
        *self.steps.entry(step(u64::try_from(took.as_micros()).unwrap_or(u64::MAX))).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total += other.total;
        other.steps.iter().for_each(|(step, count)| *self.steps.entry(*step).or_default() += count);
    }

    /// What so much of the statements took at most, in milliseconds; 0 if there is none.
    pub fn percentile_ms(&self, part: f64) -> f64 {
        let wanted = (self.count as f64 * part).ceil().max(1.0) as u64;
        let mut before = 0;
        for (step, count) in &self.steps {
            before += count;
            if before >= wanted {
                return value(*step) as f64 / 1e3;
            }
        }
        0.0
    }

    pub fn total_ms(&self) -> f64 {
        self.total.as_secs_f64() * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_step() {
        for us in [0, 1, 63, 64, 65, 1000, 123_456, 9_999_999] {
            let low = value(step(us));
            assert!(low <= us && us - low <= us / 32, "{us} became {low}");
        }
        let mut times = Times::default();
        (1..=100).for_each(|ms| times.add(Duration::from_millis(ms)));
        assert!((times.percentile_ms(0.5) - 50.0).abs() < 2.0, "{}", times.percentile_ms(0.5));
        assert!((times.percentile_ms(0.99) - 99.0).abs() < 4.0);
        assert_eq!(times.total_ms(), 5050.0);
    }
}
