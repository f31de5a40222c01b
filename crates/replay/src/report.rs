//! What a replay has found: by digest how often, how long on either side and with which verdicts, and each difference with what it
//! takes to see it again.

mod print;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::{Value, json};

use crate::judge::Verdict;
use crate::log::Malformed;
use crate::times::Times;

/// Digests that are told apart, differences that are kept, and those of one digest.
const DIGESTS: usize = 20_000;
const DIFFERENCES: usize = 2_000;
const DIFFERENCES_EACH: u64 = 3;
/// Bytes of a statement that is kept.
const STATEMENT: usize = 1 << 20;
/// Reasons that are told apart.
const REASONS: usize = 500;
const OTHERS: &str = "(all other statements)";

/// Statements with the same digest.
#[derive(Clone, Debug, Default)]
pub struct OfDigest {
    pub same: u64,
    pub different: u64,
    pub unsupported: u64,
    pub incomparable: u64,
    /// Of the first run of each.
    pub source: Times,
    pub avocet: Times,
    /// The best run of each, in total.
    pub source_best: Duration,
    pub avocet_best: Duration,
}

impl OfDigest {
    pub fn count(&self) -> u64 {
        self.same + self.different + self.unsupported + self.incomparable
    }

    /// How many times as long the source takes; 0 if nothing was timed.
    pub fn times_faster(&self) -> f64 {
        match self.avocet.total.as_secs_f64() {
            0.0 => 0.0,
            avocet => self.source.total.as_secs_f64() / avocet,
        }
    }
}

/// An answer that differs, and how to see it again.
#[derive(Clone, Debug)]
pub struct Found {
    pub digest: String,
    pub of: String,
    pub detail: String,
    pub line: u64,
    pub database: Option<String>,
    /// What the session has set before.
    pub setup: Vec<String>,
    pub statement: String,
}

impl Found {
    /// Statements for a client at either side.
    pub fn reproduction(&self) -> String {
        let database = self.database.iter().map(|name| format!("USE `{}`;\n", name.replace('`', "``")));
        let setup = self.setup.iter().map(|text| format!("{text};\n"));
        database.chain(setup).chain([format!("{};\n", self.statement)]).collect()
    }
}

/// How long a replayed statement took: the first run, and the best.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    pub source: (Duration, Duration),
    pub avocet: (Duration, Duration),
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub events: u64,
    pub statements: u64,
    pub sessions: u64,
    pub digests: HashMap<String, OfDigest>,
    /// What is not replayed, by kind.
    pub skipped: BTreeMap<String, u64>,
    pub incomparable: BTreeMap<String, u64>,
    pub unsupported: BTreeMap<String, u64>,
    pub differences: Vec<Found>,
    pub malformed: Malformed,
    /// What whoever reads it has to know about the two servers.
    pub notes: Vec<String>,
    /// Why it ended before the log did.
    pub cut_short: Option<String>,
    pub took: Duration,
}

fn count(counts: &mut BTreeMap<String, u64>, what: &str) {
    let what = if counts.len() < REASONS || counts.contains_key(what) { what } else { OTHERS };
    *counts.entry(what.to_owned()).or_default() += 1;
}

impl Report {
    pub fn skip(&mut self, kind: &str) {
        self.statements += 1;
        count(&mut self.skipped, kind);
    }

    /// Counts a statement that was replayed, or that one side cannot run at all.
    pub fn add(&mut self, mut found: Found, took: Option<Took>, verdict: &Verdict) {
        self.statements += 1;
        let is_known = self.digests.len() < DIGESTS || self.digests.contains_key(&found.digest);
        let key = if is_known { found.digest.clone() } else { OTHERS.to_owned() };
        let of_digest = self.digests.entry(key).or_default();
        if let Some(took) = took {
            of_digest.source.add(took.source.0);
            of_digest.avocet.add(took.avocet.0);
            of_digest.source_best += took.source.1;
            of_digest.avocet_best += took.avocet.1;
        }
        match verdict {
            Verdict::Same => of_digest.same += 1,
            Verdict::Incomparable(why) => {
                of_digest.incomparable += 1;
                count(&mut self.incomparable, why);
            }
            Verdict::Unsupported(why) => {
                of_digest.unsupported += 1;
                count(&mut self.unsupported, why);
            }
            Verdict::Different(difference) | Verdict::Ties(difference) => {
                of_digest.different += 1;
                if of_digest.different <= DIFFERENCES_EACH && self.differences.len() < DIFFERENCES {
                    found.of = difference.of.to_owned();
                    found.detail.clone_from(&difference.detail);
                    if found.statement.len() > STATEMENT {
                        found.statement = format!("-- too long to keep: line {} of the log", found.line);
                    }
                    self.differences.push(found);
                }
            }
        }
    }

    pub fn total(&self) -> OfDigest {
        let mut total = OfDigest::default();
        for of in self.digests.values() {
            total.same += of.same;
            total.different += of.different;
            total.unsupported += of.unsupported;
            total.incomparable += of.incomparable;
            total.source.merge(&of.source);
            total.avocet.merge(&of.avocet);
            total.source_best += of.source_best;
            total.avocet_best += of.avocet_best;
        }
        total
    }

    /// Digests by the source's time, the most first.
    pub fn sorted(&self) -> Vec<(&String, &OfDigest)> {
        let mut all: Vec<_> = self.digests.iter().collect();
        all.sort_by(|(a, x), (b, y)| y.source.total.cmp(&x.source.total).then(a.cmp(b)));
        all
    }

    pub fn json(&self, tolerance: f64) -> Value {
        let times = |times: &Times, best: Duration| {
            json!({
                "total_ms": times.total_ms(), "median_ms": times.percentile_ms(0.5),
                "p99_ms": times.percentile_ms(0.99), "best_total_ms": best.as_secs_f64() * 1e3,
            })
        };
        let of = |of: &OfDigest| {
            json!({
                "count": of.count(), "same": of.same, "different": of.different,
                "unsupported": of.unsupported, "not_comparable": of.incomparable,
                "source": times(&of.source, of.source_best), "avocet": times(&of.avocet, of.avocet_best),
                "times_faster": of.times_faster(),
            })
        };
        let digests = self.sorted().into_iter().map(|(digest, each)| {
            let mut value = of(each);
            value["digest"] = json!(digest);
            value
        });
        let differences = self.differences.iter().map(|found| {
            json!({
                "digest": found.digest, "of": found.of, "detail": found.detail, "line": found.line,
                "statement": found.statement, "reproduce": found.reproduction(),
            })
        });
        let malformed = self
            .malformed
            .first
            .iter()
            .map(|(line, what, text)| json!({"line": line, "what": what, "text": text}));
        json!({
            "events": self.events, "statements": self.statements, "sessions": self.sessions,
            "seconds": self.took.as_secs_f64(), "cut_short": self.cut_short, "notes": self.notes,
            "tolerance": tolerance, "total": of(&self.total()),
            "digests": digests.collect::<Vec<_>>(), "differences": differences.collect::<Vec<_>>(),
            "not_replayed": self.skipped, "not_comparable": self.incomparable, "unsupported": self.unsupported,
            "malformed": {"count": self.malformed.count, "first": malformed.collect::<Vec<_>>()},
        })
    }
}
