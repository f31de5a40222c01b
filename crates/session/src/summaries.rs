//! Statements that differ in their values alone, counted and timed together: `performance_schema.events_statements_summary_by_digest`.
//!
//! A cached plan points to its summary, so a statement that has one pays for two readings of the clock and some counters; other
//! statements look theirs up by their text. As in MySQL, a statement whose text says nothing new to a full table counts in a row
//! without digest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use avocet_base::stripe::{self, STRIPES, Striped};
use avocet_engine::MemoryBudget;
use avocet_sql::parse::digest_text::digest_text;
use avocet_types::expr::SqlMode;
use parking_lot::RwLock;

use crate::digest::MOST_TEXT;

/// MySQL's `performance_schema_digests_size`, by default.
const MOST_SUMMARIES: usize = 10_000;
/// The part of the memory limit that they take at most. As cached plans, they are counted with the rest of the process.
const SHARE_OF_MEMORY: usize = 128;
/// What a summary takes besides its texts, about: two threads have run it.
const SUMMARY_BYTES: usize = 1280;
/// Each is twice as wide as the one before the last, from a microsecond on.
const BUCKETS: usize = 64;
/// Texts whose summaries a session finds at once, of at most so many bytes: COMMIT, SET and their like.
const RECENT: usize = 8;
const MOST_RECENT_TEXT: usize = 256;

/// What statements of one digest came to. Times are in nanoseconds, moments in microseconds since 1970.
pub(super) struct Summary {
    pub schema: Option<String>,
    /// `None` for all that found no room.
    pub text: Option<String>,
    /// The first statement that was seen, if it can be shown.
    pub sample: Option<String>,
    pub first_seen: i64,
    /// Of the threads that have run one: those of a statement that runs on all cores do not wait for each other's counters.
    stripes: [OnceLock<Box<Striped<Stripe>>>; STRIPES],
}

struct Stripe {
    count: AtomicU64,
    total: AtomicU64,
    least: AtomicU64,
    most: AtomicU64,
    errors: AtomicU64,
    warnings: AtomicU64,
    affected: AtomicU64,
    sent: AtomicU64,
    last_seen: AtomicI64,
    times: [AtomicU32; BUCKETS],
}

/// What all statements of a digest came to until now.
pub(super) struct Totals {
    pub count: u64,
    pub total: u64,
    pub least: u64,
    pub most: u64,
    pub errors: u64,
    pub warnings: u64,
    pub affected: u64,
    pub sent: u64,
    pub last_seen: i64,
    times: [u64; BUCKETS],
}

/// What one statement came to.
pub(super) struct Came {
    pub took: Duration,
    pub at_us: i64,
    pub failed: bool,
    pub warnings: u64,
    pub affected: u64,
    pub sent: u64,
}

/// The bucket of a time: two for each power of two of microseconds.
fn bucket(took: Duration) -> usize {
    let us = (took.as_micros() as u64).max(1);
    let power = us.ilog2() as usize;
    let half = if power == 0 { 0 } else { (us >> (power - 1) & 1) as usize };
    (2 * power + half).min(BUCKETS - 1)
}

/// The time above all of a bucket.
fn end_of(bucket: usize) -> Duration {
    let power = 1_u64 << (bucket / 2);
    let us = if bucket.is_multiple_of(2) { power + power.div_ceil(2) } else { power * 2 };
    Duration::from_micros(us)
}

impl Stripe {
    fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            total: AtomicU64::new(0),
            least: AtomicU64::new(u64::MAX),
            most: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            warnings: AtomicU64::new(0),
            affected: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            last_seen: AtomicI64::new(i64::MIN),
            times: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }

    fn note(&self, came: &Came) {
        let nanos = came.took.as_nanos() as u64;
        self.count.fetch_add(1, Relaxed);
        self.total.fetch_add(nanos, Relaxed);
        // Most do not change these.
        if nanos < self.least.load(Relaxed) {
            self.least.fetch_min(nanos, Relaxed);
        }
        if nanos > self.most.load(Relaxed) {
            self.most.fetch_max(nanos, Relaxed);
        }
        self.last_seen.store(came.at_us, Relaxed);
        self.times[bucket(came.took)].fetch_add(1, Relaxed);
        for (counter, more) in [
            (&self.errors, u64::from(came.failed)),
            (&self.warnings, came.warnings),
            (&self.affected, came.affected),
            (&self.sent, came.sent),
        ] {
            if more > 0 {
                counter.fetch_add(more, Relaxed);
            }
        }
    }
}

impl Summary {
    fn new(schema: Option<&str>, text: Option<String>, sample: Option<String>, at_us: i64) -> Self {
        let stripes = [const { OnceLock::new() }; STRIPES];
        Self { schema: schema.map(str::to_owned), text, sample, first_seen: at_us, stripes }
    }

    pub fn note(&self, came: &Came) {
        self.stripes[stripe::own()].get_or_init(|| Box::new(Striped(Stripe::new()))).0.note(came);
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            count: 0,
            total: 0,
            least: u64::MAX,
            most: 0,
            errors: 0,
            warnings: 0,
            affected: 0,
            sent: 0,
            last_seen: self.first_seen,
            times: [0; BUCKETS],
        };
        for Striped(stripe) in self.stripes.iter().filter_map(OnceLock::get).map(|stripe| &**stripe) {
            totals.count += stripe.count.load(Relaxed);
            totals.total += stripe.total.load(Relaxed);
            totals.least = totals.least.min(stripe.least.load(Relaxed));
            totals.most = totals.most.max(stripe.most.load(Relaxed));
            totals.errors += stripe.errors.load(Relaxed);
            totals.warnings += stripe.warnings.load(Relaxed);
            totals.affected += stripe.affected.load(Relaxed);
            totals.sent += stripe.sent.load(Relaxed);
            totals.last_seen = totals.last_seen.max(stripe.last_seen.load(Relaxed));
            for (total, time) in totals.times.iter_mut().zip(&stripe.times) {
                *total += u64::from(time.load(Relaxed));
            }
        }
        totals
    }
}

impl Totals {
    /// An upper bound of the `q` quantile of its times, exact to a factor of 1.5; none above the longest.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (q * self.times.iter().sum::<u64>() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let at = self.times.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        let most = Duration::from_nanos(self.most);
        at.map_or(Duration::ZERO, |at| end_of(at).min(most))
    }
}

type Key = (Option<String>, String);

/// All that there are.
#[derive(Default)]
pub(super) struct Summaries {
    by_digest: RwLock<HashMap<Key, Arc<Summary>>>,
    /// Of those that found no room.
    rest: RwLock<Option<Arc<Summary>>>,
    bytes: AtomicUsize,
    /// Grows when all are forgotten: what is pointed to from elsewhere is no longer there.
    generation: AtomicU64,
}

impl Summaries {
    /// The summary of a text's digest in a default database.
    pub fn of(
        &self,
        memory: &MemoryBudget,
        schema: Option<&str>,
        text: &[u8],
        mode: SqlMode,
        shows_values: bool,
        at_us: i64,
    ) -> Arc<Summary> {
        let key = (schema.map(str::to_owned), digest_text(text, mode, MOST_TEXT));
        if let Some(found) = self.by_digest.read().get(&key) {
            return found.clone();
        }
        let mut by_digest = self.by_digest.write();
        if let Some(found) = by_digest.get(&key) {
            return found.clone();
        }
        let sample = shows_values.then(|| {
            let cut = &text[..text.len().min(MOST_TEXT)];
            String::from_utf8_lossy(cut).into_owned()
        });
        let bytes = SUMMARY_BYTES + 2 * key.1.len() + sample.as_ref().map_or(0, String::len);
        let fits = self.bytes.load(Relaxed) + bytes <= memory.limit() / SHARE_OF_MEMORY;
        if by_digest.len() >= MOST_SUMMARIES || !fits {
            let mut rest = self.rest.write();
            return rest.get_or_insert_with(|| Arc::new(Summary::new(None, None, None, at_us))).clone();
        }
        self.bytes.fetch_add(bytes, Relaxed);
        let summary = Arc::new(Summary::new(schema, Some(key.1.clone()), sample, at_us));
        by_digest.insert(key, summary.clone());
        summary
    }

    pub fn list(&self) -> Vec<Arc<Summary>> {
        let mut list: Vec<_> = self.by_digest.read().values().cloned().collect();
        list.extend(self.rest.read().clone());
        list
    }

    /// TRUNCATE TABLE of the summary.
    pub fn forget(&self) {
        let mut by_digest = self.by_digest.write();
        by_digest.clear();
        *self.rest.write() = None;
        self.generation.fetch_add(1, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }
}

/// Where a plan's statements are counted, as of a generation of all summaries.
#[derive(Default)]
pub(super) struct OfPlan(pub ArcSwapOption<(u64, Arc<Summary>)>);

/// Summaries of short texts that a session has run last.
#[derive(Default)]
pub(super) struct RecentSummaries {
    generation: u64,
    of: Vec<(Box<[u8]>, Arc<Summary>)>,
    next: usize,
}

impl RecentSummaries {
    pub fn get(&mut self, generation: u64, schema: Option<&str>, text: &[u8]) -> Option<Arc<Summary>> {
        if self.generation != generation {
            self.of.clear();
            self.generation = generation;
        }
        let is_of = |(known, summary): &&(Box<[u8]>, Arc<Summary>)| {
            **known == *text && summary.schema.as_deref() == schema
        };
        self.of.iter().find(is_of).map(|(_, summary)| summary.clone())
    }

    pub fn put(&mut self, text: &[u8], summary: &Arc<Summary>) {
        if text.len() > MOST_RECENT_TEXT {
            return;
        }
        let entry = (text.into(), summary.clone());
        match self.of.len() {
            RECENT => self.of[self.next % RECENT] = entry,
            _ => self.of.push(entry),
        }
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_times() {
        let mut last = Duration::ZERO;
        for at in 0..BUCKETS - 1 {
            assert!(end_of(at) > last || at == 1, "{at}");
            last = end_of(at);
            let just_below = end_of(at) - Duration::from_micros(1);
            assert!(bucket(just_below) <= at && bucket(end_of(at)) > at.min(BUCKETS - 2) || at < 2, "{at}");
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_bound_the_times() {
        let summary = Arc::new(Summary::new(None, None, None, 0));
        for ms in 1..=100 {
            let took = Duration::from_millis(ms);
            summary.note(&Came { took, at_us: 0, failed: false, warnings: 0, affected: 0, sent: 1 });
        }
        std::thread::spawn({
            let summary = summary.clone();
            move || {
                let took = Duration::from_micros(100);
                summary.note(&Came { took, at_us: 7, failed: true, warnings: 2, affected: 0, sent: 0 });
            }
        })
        .join()
        .expect("no panic");
        let totals = summary.totals();
        let median = totals.quantile(0.5).as_millis();
        assert!((50..=75).contains(&median), "{median}");
        assert_eq!(totals.quantile(1.0), Duration::from_millis(100));
        assert_eq!((totals.least, totals.most), (100_000, 100_000_000));
        assert_eq!((totals.count, totals.errors, totals.warnings, totals.sent), (101, 1, 2, 100));
        assert_eq!(totals.last_seen, 7);
    }
}
