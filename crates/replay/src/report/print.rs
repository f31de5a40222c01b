//! The report for people.

use std::fmt;

use super::{OfDigest, Report};

/// Digests and differences that are printed; a file has all.
const DIGESTS: usize = 25;
const DIFFERENCES: usize = 20;
const WIDTH: usize = 90;

fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn line(of: &OfDigest) -> String {
    format!(
        "{:>7} {:>9.1} {:>8.2} {:>8.2} {:>9.1} {:>8.2} {:>8.2} {:>7.2} {:>7} {:>6} {:>6} {:>6}",
        of.count(),
        of.source.total_ms(),
        of.source.percentile_ms(0.5),
        of.source.percentile_ms(0.99),
        of.avocet.total_ms(),
        of.avocet.percentile_ms(0.5),
        of.avocet.percentile_ms(0.99),
        of.times_faster(),
        of.same,
        of.different,
        of.unsupported,
        of.incomparable,
    )
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        writeln!(
            f,
            "{:>7} {:>9} {:>8} {:>8} {:>9} {:>8} {:>8} {:>7} {:>7} {:>6} {:>6} {:>6}",
            "count",
            "source ms",
            "median",
            "p99",
            "Avocet ms",
            "median",
            "p99",
            "faster",
            "same",
            "differ",
            "unsup.",
            "n.comp"
        )?;
        let sorted = self.sorted();
        for (digest, of) in sorted.iter().take(DIGESTS) {
            writeln!(f, "{}  {}", line(of), cut(digest, WIDTH))?;
        }
        if sorted.len() > DIGESTS {
            writeln!(f, "        … and {} more digests (--json FILE has all)", sorted.len() - DIGESTS)?;
        }
        writeln!(f, "{}  all {} digests", line(&total), sorted.len())?;
        for (what, counts) in [
            ("not replayed", &self.skipped),
            ("not comparable", &self.incomparable),
            ("unsupported by Avocet", &self.unsupported),
        ] {
            if !counts.is_empty() {
                writeln!(f, "\n{what}:")?;
                counts.iter().try_for_each(|(why, count)| writeln!(f, "{count:>9}  {}", cut(why, 200)))?;
            }
        }
        if self.malformed.count > 0 {
            writeln!(f, "\n{} malformed lines of the log:", self.malformed.count)?;
            for (line, what, text) in &self.malformed.first {
                writeln!(f, "  line {line}: {what}: {text}")?;
            }
        }
        for (number, found) in self.differences.iter().take(DIFFERENCES).enumerate() {
            writeln!(
                f,
                "\ndifference {}, of {} (line {} of the log): {}",
                number + 1,
                found.of,
                found.line,
                found.detail
            )?;
            found.reproduction().lines().try_for_each(|line| writeln!(f, "    {}", cut(line, 400)))?;
        }
        if self.differences.len() > DIFFERENCES {
            writeln!(f, "\n… and {} more differences (--json FILE)", self.differences.len() - DIFFERENCES)?;
        }
        writeln!(f)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        if let Some(why) = &self.cut_short {
            writeln!(f, "the log was not replayed to its end: {why}")?;
        }
        writeln!(
            f,
            "{} events of {} sessions, {} statements, {} replayed in {:.1} s: {} same, {} different, {} unsupported, {} not comparable; \
             {} not replayed, {} malformed lines",
            self.events,
            self.sessions,
            self.statements,
            total.count(),
            self.took.as_secs_f64(),
            total.same,
            total.different,
            total.unsupported,
            total.incomparable,
            self.skipped.values().sum::<u64>(),
            self.malformed.count
        )
    }
}
