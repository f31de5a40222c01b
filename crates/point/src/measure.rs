//! What the parts of a plan do in a run, for EXPLAIN ANALYZE. A run that is not measured counts rows in registers, and keeps
//! nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use avocet_sql::explain::Measured;
use parking_lot::Mutex;

use super::select::{Level, Select};

/// The measurements of one run. A plan stays where it is while it runs, so its parts are known by their addresses.
#[derive(Default)]
pub struct Measurements {
    levels: Mutex<HashMap<usize, LevelTally>>,
    selects: Mutex<HashMap<usize, Tally>>,
}

fn address_of<T>(part: &T) -> usize {
    std::ptr::from_ref(part).addr()
}

/// Of a part that was run several times the sums.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    loops: u64,
    rows: u64,
    first: Duration,
    all: Duration,
    /// At its highest, in bytes.
    memory: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct LevelTally {
    visited: Tally,
    /// Those that pass the tests, and rows of NULLs of an outer join.
    joined: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.loops += other.loops;
        self.rows += other.rows;
        self.first += other.first;
        self.all += other.all;
        self.memory = self.memory.max(other.memory);
    }

    /// By run.
    fn measured(self) -> Measured {
        let loops = self.loops.max(1) as f64;
        let ms = |time: Duration| time.as_secs_f64() * 1e3 / loops;
        let memory = (self.memory > 0).then_some(self.memory as u64);
        let (first_ms, all_ms) = (ms(self.first), ms(self.all));
        Measured { rows: self.rows as f64 / loops, loops: self.loops, first_ms, all_ms, memory }
    }
}

impl Measurements {
    /// What reading the level's rows came to.
    pub(crate) fn of_level(&self, level: &Level) -> Option<Measured> {
        self.levels.lock().get(&address_of(level)).map(|tally| tally.visited.measured())
    }

    /// The same of its rows that pass the tests.
    pub(crate) fn of_tests(&self, level: &Level) -> Option<Measured> {
        let tally = *self.levels.lock().get(&address_of(level))?;
        Some(Tally { rows: tally.joined, ..tally.visited }.measured())
    }

    /// Rows of the level's join with those before it, in all runs.
    pub(crate) fn joined(&self, level: &Level) -> u64 {
        self.levels.lock().get(&address_of(level)).map_or(0, |tally| tally.joined)
    }

    pub(crate) fn of_select(&self, select: &Select) -> Option<Measured> {
        self.selects.lock().get(&address_of(select)).map(|tally| tally.measured())
    }

    /// A run of a query that gave so many rows, and held so many bytes for it.
    pub(crate) fn note_select(&self, select: &Select, begin: Instant, rows: u64, memory: usize) {
        let all = begin.elapsed();
        let run = Tally { loops: 1, rows, first: all, all, memory };
        self.selects.lock().entry(address_of(select)).or_default().add(run);
    }
}

/// The visit of a level's rows for one row of the levels before.
pub(crate) struct Visit<'m> {
    to: Option<&'m Measurements>,
    visited: u64,
    joined: u64,
    begin: Option<Instant>,
    first: Option<Duration>,
    /// Of it, what others took of the time.
    others: Duration,
}

impl<'m> Visit<'m> {
    #[inline]
    pub fn begin(to: Option<&'m Measurements>) -> Self {
        let begin = to.map(|_| Instant::now());
        Self { to, visited: 0, joined: 0, begin, first: None, others: Duration::ZERO }
    }

    /// A row is looked at.
    #[inline]
    pub fn row(&mut self) {
        self.visited += 1;
        if self.visited == 1 {
            self.first = self.begin.map(|begin| begin.elapsed() - self.others);
        }
    }

    /// A row passes the tests, or is of NULLs.
    #[inline]
    pub fn joined(&mut self) {
        self.joined += 1;
    }

    /// Does what is not part of the visit.
    #[inline]
    pub fn aside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        if self.to.is_none() {
            return work();
        }
        let begin = Instant::now();
        let result = work();
        self.others += begin.elapsed();
        result
    }

    #[inline]
    pub fn end(self, level: &Level) {
        if let (Some(to), Some(begin)) = (self.to, self.begin) {
            let all = begin.elapsed() - self.others;
            let first = self.first.unwrap_or(all);
            let visited = Tally { loops: 1, rows: self.visited, first, all, memory: 0 };
            let mut levels = to.levels.lock();
            let tally = levels.entry(address_of(level)).or_default();
            tally.visited.add(visited);
            tally.joined += self.joined;
        }
    }
}
