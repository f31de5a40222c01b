//! Whether two answers to a statement are the same, as far as its text says what its answer is.
//!
//! Rows are compared as multisets, and in order by the columns that ORDER BY names. Approximate numbers are equal within a relative
//! tolerance. Where the text leaves the answer open (LIMIT without an order, chance, which of equal texts), a difference is no
//! difference: it is said that it cannot be compared, and why.

mod rows;
#[cfg(test)]
mod tests;

use avocet_types::Collation;

use crate::answer::{Answer, Column, Row};
use crate::decide::{Bounds, Catalog, Key, Shape};

use rows::Matcher;

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Same,
    Different(Difference),
    /// Avocet refuses it, and says why; the source answers it.
    Unsupported(String),
    /// Why nothing follows from it that the answers differ.
    Incomparable(&'static str),
    /// They differ in rows that are equal in ORDER BY to the first or last of a LIMIT: whether others are, too, is to be seen.
    Ties(Difference),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Of what: columns, types, count, rows, order, error, warnings.
    pub of: &'static str,
    /// The first that differs, on either side.
    pub detail: String,
}

fn different(of: &'static str, detail: String) -> Verdict {
    Verdict::Different(Difference { of, detail })
}

/// How answers are compared.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Relative, of DOUBLE; of FLOAT never less than its own precision.
    pub tolerance: f64,
    pub compares_types: bool,
    pub compares_warnings: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { tolerance: 1e-12, compares_types: true, compares_warnings: true }
    }
}

/// Syntax and features that are not there, and privileges of the replay's account: no wrong answers.
fn is_refusal(code: u16) -> bool {
    matches!(
        code,
        1044 | 1045 | 1064 | 1142 | 1143 | 1193 | 1227 | 1235 | 1286 | 1305 | 1370 | 1572 | 3554 | 3814
    )
}

pub fn judge(source: &Answer, avocet: &Answer, shape: &Shape, rules: &Rules) -> Verdict {
    if source.killed || avocet.killed {
        return Verdict::Incomparable(match (source.killed, avocet.killed) {
            (true, true) => "neither side answered in time",
            (true, false) => "the source did not answer in time",
            _ => "Avocet did not answer in time",
        });
    }
    match (&source.error, &avocet.error) {
        (Some((there, _)), Some((here, _))) if there == here => return Verdict::Same,
        (None, Some((code, message))) if is_refusal(*code) => {
            return Verdict::Unsupported(format!("{code}: {message}"));
        }
        (None, Some(_)) if shape.catalog == Catalog::Server => {
            return Verdict::Incomparable("what a server says about itself");
        }
        (None, None) => {}
        (there, here) => {
            let shown = |error: &Option<(u16, String)>| match error {
                Some((code, message)) => format!("error {code} ({message})"),
                None => "an answer".into(),
            };
            return different("error", format!("{} at the source, {} at Avocet", shown(there), shown(here)));
        }
    }
    if let Some(difference) = columns(&source.columns, &avocet.columns, rules) {
        return match shape.catalog {
            Catalog::Server => Verdict::Incomparable("what a server says about itself"),
            _ if shape.reads_server => Verdict::Incomparable("variables of a server, and who is connected"),
            _ => difference,
        };
    }
    let matcher = Matcher::new(&source.columns, rules.tolerance);
    match rows_differ(source, avocet, shape, &matcher) {
        None => {}
        Some(found) => return excused(found, source, avocet, shape, &matcher),
    }
    if rules.compares_warnings && source.warnings != avocet.warnings {
        let detail = format!("{} at the source, {} at Avocet", source.warnings, avocet.warnings);
        return different("warnings", detail);
    }
    Verdict::Same
}

fn columns(there: &[Column], here: &[Column], rules: &Rules) -> Option<Verdict> {
    if there.len() != here.len() {
        return Some(different(
            "columns",
            format!("{} at the source, {} at Avocet", there.len(), here.len()),
        ));
    }
    for (at, (there, here)) in there.iter().zip(here).enumerate() {
        if there.name != here.name {
            let detail = format!(
                "column {} is called `{}` at the source, `{}` at Avocet",
                at + 1,
                there.name,
                here.name
            );
            return Some(different("columns", detail));
        }
        let is_same = (there.kind, there.unsigned, there.text) == (here.kind, here.unsigned, here.text);
        if rules.compares_types && !is_same {
            let detail =
                format!("`{}` is {} at the source, {} at Avocet", there.name, there.shown(), here.shown());
            return Some(different("types", detail));
        }
    }
    None
}

/// The columns that ORDER BY names, as far as the answer has them.
fn ordering(shape: &Shape, columns: &[Column]) -> Vec<usize> {
    let place = |key: &Key| match key {
        Key::At(at) => (*at < columns.len()).then_some(*at),
        Key::Named(name) => {
            let mut of_name = (0..columns.len()).filter(|at| columns[*at].name.to_lowercase() == *name);
            of_name.next().filter(|_| of_name.next().is_none())
        }
    };
    shape.order.iter().map_while(place).collect()
}

/// In what the rows differ.
fn rows_differ(source: &Answer, avocet: &Answer, shape: &Shape, matcher: &Matcher<'_>) -> Option<Difference> {
    if source.rows != avocet.rows {
        let mut detail = format!("{} rows at the source, {} at Avocet", source.rows, avocet.rows);
        if source.is_whole() && avocet.is_whole() {
            detail.push_str(
                &matcher.unmatched(&source.kept, &avocet.kept).map(|d| format!("; {d}")).unwrap_or_default(),
            );
        }
        return Some(Difference { of: "count", detail });
    }
    let keys = ordering(shape, &source.columns);
    if !source.is_whole() || !avocet.is_whole() {
        return large_differ(source, avocet, &keys, matcher);
    }
    matcher.first_in_order(&source.kept, &avocet.kept)?;
    if let Some(detail) = matcher.unmatched(&source.kept, &avocet.kept) {
        return Some(Difference { of: "rows", detail });
    }
    let at = matcher.first_out_of_order(&source.kept, &avocet.kept, &keys)?;
    let detail = matcher.shown_at(&source.kept, &avocet.kept, at);
    Some(Difference { of: "order", detail })
}

/// By sums, and by the rows that were kept.
fn large_differ(
    source: &Answer,
    avocet: &Answer,
    keys: &[usize],
    matcher: &Matcher<'_>,
) -> Option<Difference> {
    let approximate = source.sums.approximate.iter().zip(&avocet.sums.approximate);
    let mut sums = approximate.map(|(there, here)| {
        let size = there.1.max(here.1);
        (there.0 - here.0).abs() <= size * matcher.tolerance.max(1e-9) || there.0.is_nan() && here.0.is_nan()
    });
    if source.sums.exact != avocet.sums.exact || !sums.all(|same| same) {
        let kept = source.kept.len().min(avocet.kept.len());
        let detail = match matcher.first_in_order(&source.kept[..kept], &avocet.kept[..kept]) {
            Some(at) if !keys.is_empty() => matcher.shown_at(&source.kept, &avocet.kept, at),
            _ => format!("sums over all {} rows differ: too many rows to tell which", source.rows),
        };
        return Some(Difference { of: "rows", detail });
    }
    // Equal texts may be equal in other bytes, and approximate numbers in other digits: neither is in the hashes.
    let exact = |at: &&usize| !source.columns[**at].text && !source.columns[**at].is_approximate();
    let mut in_order = keys.iter().take_while(exact);
    let at = in_order.find(|at| source.sums.in_order[**at] != avocet.sums.in_order[**at])?;
    let detail = format!("`{}` comes in another order", source.columns[*at].name);
    Some(Difference { of: "order", detail })
}

/// What is made of a difference in rows, by what the statement leaves open.
/// Whether a row of the catalog is about a server's own tables.
fn is_of_server(row: &Row) -> bool {
    const OWN: [&[u8]; 5] = [b"mysql", b"sys", b"performance_schema", b"information_schema", b"avocet"];
    row.iter().flatten().any(|value| OWN.iter().any(|name| value.eq_ignore_ascii_case(name)))
}

fn excused(
    found: Difference,
    source: &Answer,
    avocet: &Answer,
    shape: &Shape,
    matcher: &Matcher<'_>,
) -> Verdict {
    if !shape.deterministic {
        return Verdict::Incomparable("functions of chance, or of the moment: RAND(), UUID(), SYSDATE()");
    }
    if shape.reads_server {
        return Verdict::Incomparable("variables of a server, and who is connected");
    }
    if shape.catalog == Catalog::Server {
        return Verdict::Incomparable("what a server says about itself");
    }
    if shape.picks {
        return Verdict::Incomparable(
            "the text leaves open which rows: LIMIT within, GROUP_CONCAT or a window without a total order",
        );
    }
    if shape.catalog == Catalog::Definitions && source.is_whole() && avocet.is_whole() {
        let of_users = |answer: &Answer| -> Vec<Row> {
            answer.kept.iter().filter(|row| !is_of_server(row)).cloned().collect()
        };
        if matcher.unmatched(&of_users(source), &of_users(avocet)).is_none() {
            return Verdict::Incomparable("tables of the servers themselves");
        }
    }
    if found.of == "count" {
        return match shape.odd_limit && shape.order.is_empty() {
            true => Verdict::Incomparable("LIMIT of a variable"),
            false => Verdict::Different(found),
        };
    }
    let is_whole = source.is_whole() && avocet.is_whole();
    if shape.groups && is_whole && matcher.folded().unmatched(&source.kept, &avocet.kept).is_none() {
        return Verdict::Incomparable("which of several equal texts stands for a group");
    }
    if found.of != "rows" || shape.limit.is_none() && !shape.odd_limit {
        return Verdict::Different(found);
    }
    let Some(bounds) = shape.limit.filter(|_| is_whole) else {
        return Verdict::Incomparable("LIMIT, and too many rows to see ties");
    };
    // Fewer rows than it allows: all are there.
    if source.rows < bounds.count.0 && bounds.offset.is_none_or(|offset| offset.0 == 0) {
        return Verdict::Different(found);
    }
    let keys = ordering(shape, &source.columns);
    if keys.is_empty() {
        return Verdict::Incomparable("LIMIT without an order that the answer shows");
    }
    match inner_rows_differ(source, avocet, &keys, bounds, matcher) {
        Some(detail) => Verdict::Different(Difference { of: "rows", detail }),
        None => Verdict::Ties(found),
    }
}

/// Compares without the rows that are equal in ORDER BY to the first or last of a LIMIT.
fn inner_rows_differ(
    source: &Answer,
    avocet: &Answer,
    keys: &[usize],
    bounds: Bounds,
    matcher: &Matcher<'_>,
) -> Option<String> {
    let inner = |answer: &Answer| -> Vec<Row> {
        let (Some(first), Some(last)) = (answer.kept.first(), answer.kept.last()) else { return Vec::new() };
        let skips_first = bounds.offset.is_some_and(|offset| offset.0 > 0);
        let is_inner = |row: &&Row| {
            !(matcher.has_keys_of(row, last, keys) || skips_first && matcher.has_keys_of(row, first, keys))
        };
        answer.kept.iter().filter(is_inner).cloned().collect()
    };
    // The keys themselves are not left open.
    if let Some(at) = matcher.first_out_of_order(&source.kept, &avocet.kept, keys) {
        return Some(matcher.shown_at(&source.kept, &avocet.kept, at));
    }
    matcher.unmatched(&inner(source), &inner(avocet))
}

/// The text with bounds one wider at each end, so that its answer shows whether ties go beyond.
pub fn widened(text: &str, bounds: Bounds) -> String {
    let mut text = text.to_owned();
    let before = bounds.offset.filter(|offset| offset.0 > 0);
    let count = bounds.count.0.saturating_add(1 + u64::from(before.is_some()));
    let mut changes = vec![(bounds.count.1, bounds.count.2, count)];
    changes.extend(before.map(|(value, start, end)| (start, end, value - 1)));
    changes.sort_by_key(|change| std::cmp::Reverse(change.0));
    for (start, end, value) in changes {
        text.replace_range(start..end, &value.to_string());
    }
    text
}

/// Whether ties of a LIMIT go beyond its bounds, by the answer to the [`widened`] text.
pub fn has_ties_beyond(wide: &Answer, shape: &Shape, bounds: Bounds, rules: &Rules) -> bool {
    let matcher = Matcher::new(&wide.columns, rules.tolerance);
    let keys = ordering(shape, &wide.columns);
    let same = |a: Option<&Row>, b: Option<&Row>| match (a, b) {
        (Some(a), Some(b)) => matcher.has_keys_of(a, b, &keys),
        _ => false,
    };
    let (rows, first) = (&wide.kept, usize::from(bounds.offset.is_some_and(|offset| offset.0 > 0)));
    let count = usize::try_from(bounds.count.0).unwrap_or(usize::MAX);
    let end = first.saturating_add(count);
    let last = end.checked_sub(1).and_then(|last| rows.get(last));
    !wide.is_whole() || first > 0 && same(rows.first(), rows.get(1)) || same(last, rows.get(end))
}

/// Texts are equal if they are in MySQL's default collation.
fn folds() -> Option<Collation> {
    Collation::by_name("utf8mb4_0900_ai_ci")
}
