//! Figures: Avocet's and the rival's side by side, as a table for people and as JSON for scripts.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::error::{IoContext, Result};
use crate::rival::Rival;

/// One measured quantity. Names and units are fixed: scripts compare them over releases.
#[derive(Serialize, Clone)]
pub struct Figure {
    pub name: Cow<'static, str>,
    pub unit: &'static str,
    pub avocet: Option<f64>,
    pub rival: Option<f64>,
    /// avocet / rival.
    pub ratio: Option<f64>,
}

impl Figure {
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        avocet: Option<f64>,
        rival: Option<f64>,
    ) -> Figure {
        let ratio = avocet.zip(rival).filter(|(_, r)| *r != 0.0).map(|(a, r)| a / r);
        Figure { name: name.into(), unit, avocet, rival, ratio }
    }
}

/// What a benchmark found.
#[derive(Serialize)]
pub struct Report {
    pub workload: &'static str,
    pub rival: &'static str,
    pub figures: Vec<Figure>,
}

impl Report {
    pub fn new(workload: &'static str, rival: Rival) -> Report {
        Report { workload, rival: rival.name(), figures: Vec::new() }
    }

    pub fn add(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        avocet: Option<f64>,
        rival: Option<f64>,
    ) {
        self.figures.push(Figure::new(name, unit, avocet, rival));
    }

    /// Prints the table and writes the JSON if asked.
    pub fn publish(&self, json: Option<&Path>) -> Result<()> {
        let mut table = Table::new(&["figure", "unit", "avocet", self.rival, "ratio"]);
        for f in &self.figures {
            table.row(vec![
                f.name.to_string(),
                f.unit.into(),
                number(f.avocet),
                number(f.rival),
                number(f.ratio),
            ]);
        }
        println!("\n{}", table.text());
        match json {
            Some(path) => {
                let text = serde_json::to_string_pretty(self)? + "\n";
                fs::write(path, text).context(|| format!("writing {}", path.display()))
            }
            None => Ok(()),
        }
    }
}

/// Four significant digits, or all digits of a large number; a dash for what was not measured.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(v) if v.abs() >= 1_000.0 || v == 0.0 || v.fract() == 0.0 => format!("{v:.0}"),
        Some(v) => {
            let digits = (3 - v.abs().log10().floor() as i32).clamp(0, 6) as usize;
            format!("{v:.digits$}")
        }
    }
}

/// Columns of text: the first to the left, the others to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(|s| (*s).to_owned()).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    pub fn text(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate();
            let cell = |(column, (text, width)): (usize, (&String, &usize))| {
                if column == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
            };
            lines.push(cells.map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned());
            if number == 0 {
                lines.push("-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)));
            }
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_avocet_over_rival() {
        assert_eq!(Figure::new("x", "s", Some(3.0), Some(2.0)).ratio, Some(1.5));
        assert_eq!(Figure::new("x", "s", Some(3.0), Some(0.0)).ratio, None);
        assert_eq!(Figure::new("x", "s", None, Some(1.0)).ratio, None);
    }

    #[test]
    fn numbers_keep_four_digits() {
        assert_eq!(number(Some(12_345.6)), "12346");
        assert_eq!(number(Some(1.23456)), "1.235");
        assert_eq!(number(Some(0.0123456)), "0.01235");
        assert_eq!(number(None), "-");
    }
}
