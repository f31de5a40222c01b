//! Whether two outcomes are the same, and if they are not, whether COMPAT.md says so.
//!
//! Only these are let pass:
//!
//! 1. Avocet refuses something by name (1235): COMPAT.md lists what.
//! 2. Avocet has no decimals of more than 76 digits while it computes (1690).
//! 3. An error of a value (out of range, not a date) on one side alone, in a statement whose plan decides which values are
//!    computed at all, or in which order: MySQL evaluates constants early, and what a LIMIT or an empty join leaves out never.
//! 4. MySQL keeps dates with a month or day of zero that are not `0000-00-00`.
//! 5. MySQL's connection breaks: that says nothing about Avocet.
//! 6. What [`known`](super::known) tells from the statement, with the line of COMPAT.md that it stands on.

use std::fmt::Write;

use super::select::Query;
use super::stage::{Cell, Meta, Outcome};

/// What kind of difference there is; a difference stays of its kind while it is made smaller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// The connection broke, or the server did.
    Lost,
    /// Other rows.
    Rows,
    /// An error on one side alone, or another number.
    Error,
    /// Other counts of a statement that changes something.
    Counts,
    /// Another type of a column.
    Type,
    /// Another name, length, scale or nullability.
    Metadata,
    Warnings,
}

#[derive(Clone, Debug)]
pub struct Difference {
    pub class: Class,
    /// The numbers of the errors, 0 for none.
    codes: (u16, u16),
    pub text: String,
}

impl Difference {
    /// Whether a smaller statement still shows the same.
    pub fn is_like(&self, other: &Difference) -> bool {
        (self.class, self.codes) == (other.class, other.codes)
    }
}

/// What is compared beside rows, errors, counts and types.
#[derive(Clone, Copy, Default)]
pub struct Strictness {
    pub metadata: bool,
    pub warnings: bool,
}

fn differs(class: Class, ours: &str, theirs: &str) -> Option<Difference> {
    Some(Difference { class, codes: (0, 0), text: format!("  avocet {ours}\n  mysql  {theirs}") })
}

fn code(outcome: &Outcome) -> u16 {
    match outcome {
        Outcome::Error { code, .. } => *code,
        _ => 0,
    }
}

/// Why the servers may differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Excuse {
    Refused,
    WideDecimal,
    ErrorByPlan,
    PartialDate,
    /// A line of COMPAT.md.
    Listed(&'static str),
}

impl Excuse {
    pub fn text(self) -> &'static str {
        match self {
            Excuse::Refused => "Avocet refuses something by name (1235)",
            Excuse::WideDecimal => "a decimal of more than 76 digits (1690)",
            Excuse::PartialDate => "a date with a month or day of zero",
            Excuse::Listed(line) => line,
            Excuse::ErrorByPlan => "an error of a value that the other's plan does not compute",
        }
    }
}

/// MySQL's numbers of errors that a value makes, not the statement: out of range, bytes that are no text, not a date,
/// binary operands of different lengths.
const OF_VALUES: &[u16] = &[1690, 3854, 1525, 3513, 1242, 1292];

fn has_partial_date(outcome: &Outcome) -> bool {
    let is_partial = |text: &str| match text.as_bytes() {
        [a, b, c, d, b'-', m1, m2, b'-', d1, d2, ..] => {
            let digits = [a, b, c, d, m1, m2, d1, d2];
            let zero = (m1, m2) == (&b'0', &b'0') || (d1, d2) == (&b'0', &b'0');
            zero && digits.iter().all(|digit| digit.is_ascii_digit())
                && digits.iter().any(|digit| **digit != b'0')
        }
        _ => false,
    };
    let is_date = |cell: &Cell| matches!(cell, Cell::Text(text) if is_partial(text));
    matches!(outcome, Outcome::Rows { rows, .. } if rows.iter().flatten().any(is_date))
}

/// Whether a difference is one of those that are known.
pub fn excuse(ours: &Outcome, theirs: &Outcome, is_simple: bool) -> Option<Excuse> {
    if has_partial_date(theirs) {
        return Some(Excuse::PartialDate);
    }
    match (ours, theirs) {
        (Outcome::Error { code: 1235, .. }, _) => Some(Excuse::Refused),
        (Outcome::Error { code: 1690, message }, Outcome::Rows { .. }) if message.contains("DECIMAL") => {
            Some(Excuse::WideDecimal)
        }
        (Outcome::Error { code, .. }, Outcome::Rows { .. } | Outcome::Done { .. })
        | (Outcome::Rows { .. } | Outcome::Done { .. }, Outcome::Error { code, .. })
            if !is_simple && OF_VALUES.contains(code) =>
        {
            Some(Excuse::ErrorByPlan)
        }
        (Outcome::Error { code: a, .. }, Outcome::Error { code: b, .. })
            if OF_VALUES.contains(a) && OF_VALUES.contains(b) =>
        {
            Some(Excuse::ErrorByPlan)
        }
        _ => None,
    }
}

/// How our outcome differs from theirs.
pub fn compare(ours: &Outcome, theirs: &Outcome, step: &Query, strict: Strictness) -> Option<Difference> {
    match (ours, theirs) {
        (_, Outcome::Lost(_)) => None,
        (Outcome::Lost(how), _) => differs(Class::Lost, how, &describe(theirs)),
        (Outcome::Error { code: a, .. }, Outcome::Error { code: b, .. }) if a == b => None,
        (Outcome::Rows { rows: r, .. }, Outcome::Rows { rows: s, .. }) if step.is_warnings => {
            compare_warnings(r, s)
        }
        (
            Outcome::Rows { columns: c, rows: r, warnings: w },
            Outcome::Rows { columns: d, rows: s, warnings: v },
        ) => compare_rows(r, s, step.is_ordered).or_else(|| compare_columns(c, d, strict)).or_else(|| {
            if strict.warnings && w != v {
                return differs(Class::Warnings, &format!("{w} warnings"), &format!("{v} warnings"));
            }
            None
        }),
        (
            Outcome::Done { affected: a, insert_id: i, warnings: w, info: s },
            Outcome::Done { affected: b, insert_id: j, warnings: v, info: t },
        ) => {
            if (a, i) != (b, j) {
                return differs(Class::Counts, &describe(ours), &describe(theirs));
            }
            if (w, s) != (v, t) {
                return differs(Class::Warnings, &describe(ours), &describe(theirs));
            }
            None
        }
        _ => {
            let difference = differs(Class::Error, &describe(ours), &describe(theirs));
            difference.map(|difference| Difference { codes: (code(ours), code(theirs)), ..difference })
        }
    }
}

/// By level and number; of texts there are too many.
fn compare_warnings(ours: &[Vec<Cell>], theirs: &[Vec<Cell>]) -> Option<Difference> {
    let numbers = |rows: &[Vec<Cell>]| rows.iter().map(|row| row[..2].to_vec()).collect::<Vec<_>>();
    compare_rows(&numbers(ours), &numbers(theirs), false)?;
    differs(Class::Warnings, &lines(ours, theirs), &lines(theirs, ours))
}

fn compare_rows(ours: &[Vec<Cell>], theirs: &[Vec<Cell>], is_ordered: bool) -> Option<Difference> {
    let (mut ours, mut theirs) = (ours.to_vec(), theirs.to_vec());
    if !is_ordered {
        ours.sort_by_cached_key(|row| key(row));
        theirs.sort_by_cached_key(|row| key(row));
    }
    let same =
        |(a, b): (&Vec<Cell>, &Vec<Cell>)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b));
    if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(same) {
        return None;
    }
    differs(Class::Rows, &lines(&ours, &theirs), &lines(&theirs, &ours))
}

/// Floating point rounded, so that what agrees comes in one order on both sides.
fn key(row: &[Cell]) -> Vec<String> {
    let text = |cell: &Cell| match cell {
        Cell::Float(float) if *float != 0.0 => format!("{float:.7e}"),
        other => other.to_string(),
    };
    row.iter().map(text).collect()
}

/// The first rows that are not among the others.
fn lines(rows: &[Vec<Cell>], others: &[Vec<Cell>]) -> String {
    let others: Vec<Vec<String>> = others.iter().map(|row| key(row)).collect();
    let mut text = format!("{} rows", rows.len());
    let all = rows.len() <= 3;
    for row in rows.iter().filter(|row| all || !others.contains(&key(row))).take(3) {
        let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
        let _ = write!(text, "\n           {}", cells.join(" | "));
    }
    text
}

fn compare_columns(ours: &[Meta], theirs: &[Meta], strict: Strictness) -> Option<Difference> {
    for (a, b) in ours.iter().zip(theirs) {
        if a.letter != b.letter {
            return differs(Class::Type, &format!("{a:?}"), &format!("{b:?}"));
        }
        if strict.metadata && a != b {
            return differs(Class::Metadata, &format!("{a:?}"), &format!("{b:?}"));
        }
    }
    None
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rows { rows, .. } => lines(rows, &[]),
        Outcome::Done { affected, insert_id, warnings, info } => {
            format!("{affected} affected, last id {insert_id}, {warnings} warnings, {info:?}")
        }
        Outcome::Error { code, message } => format!("error {code}: {message}"),
        Outcome::Lost(how) => how.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    fn rows(cells: &[&[Cell]]) -> Outcome {
        let rows = cells.iter().map(|row| row.to_vec()).collect();
        Outcome::Rows { columns: Vec::new(), rows, warnings: 0 }
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.into())
    }

    #[test]
    fn rows_may_come_in_any_order_unless_the_query_has_one() {
        let (a, b) = (rows(&[&[text("1")], &[text("2")]]), rows(&[&[text("2")], &[text("1")]]));
        let query = Query::plain(Tree::text("SELECT"));
        assert!(compare(&a, &b, &query, Strictness::default()).is_none());
        let ordered = Query { is_ordered: true, ..query };
        assert!(compare(&a, &b, &ordered, Strictness::default()).is_some());
    }

    #[test]
    fn the_last_digits_of_floating_point_do_not_matter() {
        let (a, b) = (rows(&[&[Cell::Float(0.1 + 0.2)]]), rows(&[&[Cell::Float(0.3)]]));
        let query = Query::plain(Tree::text("SELECT"));
        assert!(compare(&a, &b, &query, Strictness::default()).is_none());
        let c = rows(&[&[Cell::Float(0.31)]]);
        assert!(compare(&a, &c, &query, Strictness::default()).is_some());
    }

    #[test]
    fn a_difference_stays_of_its_kind() {
        let error = |code| Outcome::Error { code, message: String::new() };
        let query = Query::plain(Tree::text("SELECT"));
        let found =
            |a: &Outcome, b: &Outcome| compare(a, b, &query, Strictness::default()).expect("they differ");
        let first = found(&error(1267), &rows(&[]));
        assert!(first.is_like(&found(&error(1267), &rows(&[&[text("x")]]))));
        assert!(!first.is_like(&found(&error(1054), &rows(&[]))));
    }
}
