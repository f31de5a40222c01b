//! Where the queries of a front ran, and why: counted for as long as the server runs, and the last ones one by one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_base::histogram::{AtomicHistogram, Histogram};
use avocet_base::stripe::{self, STRIPES, Striped};
use parking_lot::Mutex;

/// A query for which a place was chosen.
#[derive(Clone, Debug, Default)]
pub struct Routed {
    /// Counts on.
    pub id: u64,
    /// When it had come, in microseconds since 1970.
    pub at_us: i64,
    /// Connection, as the source numbers it.
    pub thread: u32,
    pub user: String,
    pub database: Option<String>,
    /// As much of it as is kept.
    pub text: String,
    /// It ran here; on the source otherwise.
    pub ran_here: bool,
    pub why: String,
    /// What the source's optimizer thinks of it; `None` if it was not asked.
    pub cost: Option<f64>,
    /// The freshness that the session asks for.
    pub freshness: String,
    /// For how long it waited for that, in microseconds.
    pub waited_us: u64,
    /// From its arrival to its last row, in microseconds.
    pub took_us: u64,
}

/// How many statements went where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoutedTotals {
    /// Answered here.
    pub here: u64,
    /// Passed on, whatever they are.
    pub source: u64,
    /// Of those: queries that were to run here, and could not.
    pub fallbacks: u64,
    /// Of those: since the data here did not become fresh in time.
    pub late: u64,
    /// Microseconds that queries have waited for freshness.
    pub waited_us: u64,
}

#[derive(Debug, Default)]
pub struct Journal {
    last: Mutex<VecDeque<Routed>>,
    next: AtomicU64,
    here: AtomicU64,
    /// Of all statements that are passed on.
    source: [Striped<AtomicU64>; STRIPES],
    fallbacks: AtomicU64,
    late: AtomicU64,
    waited_us: AtomicU64,
    waits: AtomicHistogram,
    times_here: AtomicHistogram,
}

impl Journal {
    /// So many are kept one by one.
    const KEPT: usize = 1000;
    /// Bytes that are kept of a text.
    pub const TEXT: usize = 1024;

    /// A statement was passed on, and that needs no further word.
    pub fn count_passed_on(&self) {
        self.source[stripe::own()].0.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes where a query ran. `fell_back`: it was to run here; `was_late`: and could not since the data was not fresh.
    pub fn note(&self, mut routed: Routed, fell_back: bool, was_late: bool) {
        match routed.ran_here {
            true => drop(self.here.fetch_add(1, Ordering::Relaxed)),
            false => self.count_passed_on(),
        }
        self.fallbacks.fetch_add(fell_back.into(), Ordering::Relaxed);
        self.late.fetch_add(was_late.into(), Ordering::Relaxed);
        self.waited_us.fetch_add(routed.waited_us, Ordering::Relaxed);
        if routed.ran_here || was_late {
            self.waits.count(routed.waited_us);
        }
        if routed.ran_here {
            self.times_here.count(routed.took_us);
        }
        routed.id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = self.last.lock();
        if last.len() >= Self::KEPT {
            last.pop_front();
        }
        last.push_back(routed);
    }

    pub fn totals(&self) -> RoutedTotals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RoutedTotals {
            here: read(&self.here),
            source: self.source.iter().map(|stripe| read(&stripe.0)).sum(),
            fallbacks: read(&self.fallbacks),
            late: read(&self.late),
            waited_us: read(&self.waited_us),
        }
    }

    /// Microseconds that queries which were to run here have waited for freshness, those that did not wait too.
    pub fn waits(&self) -> Histogram {
        self.waits.load()
    }

    /// Microseconds that queries took which ran here, from their arrival to their last row.
    pub fn times_here(&self) -> Histogram {
        self.times_here.load()
    }

    /// The last ones, oldest first.
    pub fn last(&self) -> Vec<Routed> {
        self.last.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_kept_and_all_are_counted() {
        let journal = Journal::default();
        for at in 0..Journal::KEPT as u64 + 5 {
            let routed = Routed { ran_here: at % 2 == 0, waited_us: 2, ..Routed::default() };
            journal.note(routed, at == 1, at == 1);
        }
        journal.count_passed_on();
        let last = journal.last();
        assert_eq!((last.len(), last[0].id, last[Journal::KEPT - 1].id), (Journal::KEPT, 6, 1005));
        let totals = journal.totals();
        assert_eq!((totals.here, totals.source, totals.fallbacks, totals.late), (503, 503, 1, 1));
        assert_eq!(totals.waited_us, 2010);
    }
}
