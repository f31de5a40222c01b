//! FORMAT=TREE: a line for each step, those that it reads from below it.

use std::fmt::Write;

use super::{Estimate, Measured, Step};

pub fn tree(step: &Step) -> String {
    let mut out = String::new();
    write_step(&mut out, step, 0);
    out
}

fn write_step(out: &mut String, step: &Step, depth: usize) {
    let _ = write!(out, "{:indent$}-> {}", "", step.what, indent = depth * 4);
    if let Some(Estimate { cost, rows, .. }) = step.estimate {
        let _ = write!(out, "  (cost={} rows={})", short(cost), short(rows));
    }
    if let Some(Measured { rows, loops, first_ms, all_ms, memory }) = step.actual {
        let (first, all) = (time(first_ms), time(all_ms));
        let _ = write!(out, " (actual time={first}..{all} rows={} loops={loops}", short(rows));
        if let Some(memory) = memory.filter(|memory| *memory > 0) {
            let _ = write!(out, " memory={memory}");
        }
        out.push(')');
    }
    out.push('\n');
    for input in &step.inputs {
        write_step(out, input, depth + 1);
    }
}

/// Three digits at least, and no more behind the point than it takes for these.
pub(super) fn short(number: f64) -> String {
    match number {
        n if n >= 99.95 || n.fract() == 0.0 => format!("{n:.0}"),
        n if n >= 9.995 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

/// Milliseconds.
fn time(ms: f64) -> String {
    if ms >= 99.95 { format!("{ms:.0}") } else { format!("{ms:.4}").chars().take(6).collect() }
}
