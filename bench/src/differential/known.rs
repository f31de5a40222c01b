//! Differences that COMPAT.md lists, told by the statement and what came of it. Each names the line there.

use super::stage::{Cell, Outcome};

pub struct Known {
    /// How its line in COMPAT.md begins.
    pub line: &'static str,
    is: fn(&Case<'_>) -> bool,
}

/// What a difference is told by.
struct Case<'c> {
    sql: &'c str,
    ours: &'c Outcome,
    theirs: &'c Outcome,
}

/// The line of COMPAT.md that a difference stands on.
pub fn known(sql: &str, ours: &Outcome, theirs: &Outcome) -> Option<&'static Known> {
    let case = Case { sql, ours, theirs };
    KNOWN.iter().find(|known| (known.is)(&case))
}

static KNOWN: [Known; 7] = [
    Known {
        line: "a DECIMAL that CASE or IF chooses",
        is: |case| case.names(&["CASE ", "IF("]) && case.same_rows_as(without_last_zeros),
    },
    Known {
        line: "YEAR() and CAST AS YEAR, of the year 0",
        is: |case| case.names(&["AS YEAR", "YEAR("]) && case.same_rows_as(|text| text.replace("0000", "0")),
    },
    Known {
        line: "an error of an operand beside NULL",
        is: |case| match (case.ours, case.theirs) {
            (Outcome::Error { code: 1690 | 3854, .. }, Outcome::Rows { rows, .. }) => has_null(rows),
            (Outcome::Rows { rows, .. }, Outcome::Error { code: 1690 | 3854, .. }) => has_null(rows),
            _ => false,
        },
    },
    Known {
        line: "NULLIF of a constant beside a date",
        is: |case| case.names(&["NULLIF("]) && case.differs_only_where(is_null_or_same_digits),
    },
    Known {
        line: "a list of IN with texts and dates",
        is: |case| {
            case.names(&[" IN ("])
                && case.names(&["DATE'", "TIMESTAMP'", "TIME'"])
                && case.differs_only_where(are_truths)
        },
    },
    Known {
        line: "collations of regular expressions",
        is: |case| {
            let is_of_pattern = |outcome: &Outcome| matches!(outcome, Outcome::Error { code: 1267 | 3995, message } if message.contains("regexp"));
            case.names(&["REGEXP", "RLIKE"]) && (is_of_pattern(case.ours) != is_of_pattern(case.theirs))
        },
    },
    Known {
        line: "an INTERVAL beyond BIGINT",
        is: |case| case.names(&["INTERVAL 18446744073709551615"]) && case.both_give_rows(),
    },
];

impl Case<'_> {
    fn names(&self, any: &[&str]) -> bool {
        any.iter().any(|word| self.sql.contains(word))
    }

    fn both_give_rows(&self) -> bool {
        matches!((self.ours, self.theirs), (Outcome::Rows { .. }, Outcome::Rows { .. }))
    }

    /// Whether the same number of rows stands in the same order, and `may` holds for each two texts that differ.
    fn differs_only_where(&self, may: fn(ours: &str, theirs: &str) -> bool) -> bool {
        let (Outcome::Rows { rows: ours, .. }, Outcome::Rows { rows: theirs, .. }) = (self.ours, self.theirs)
        else {
            return false;
        };
        let may_differ = |pair: (&Cell, &Cell)| match pair {
            (Cell::Text(ours), Cell::Text(theirs)) => ours == theirs || may(ours, theirs),
            (ours, theirs) => in_form(ours, str::to_owned) == in_form(theirs, str::to_owned),
        };
        let may_row = |(ours, theirs): (&Vec<Cell>, &Vec<Cell>)| {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(may_differ)
        };
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(may_row)
    }

    /// Whether the rows are the same when each text is brought to one form.
    fn same_rows_as(&self, form: fn(&str) -> String) -> bool {
        let (Outcome::Rows { rows: a, .. }, Outcome::Rows { rows: b, .. }) = (self.ours, self.theirs) else {
            return false;
        };
        let formed = |rows: &[Vec<Cell>]| {
            let row = |row: &Vec<Cell>| row.iter().map(|cell| in_form(cell, form)).collect();
            let mut rows: Vec<Vec<String>> = rows.iter().map(row).collect();
            rows.sort();
            rows
        };
        formed(a) == formed(b)
    }
}

fn in_form(cell: &Cell, form: fn(&str) -> String) -> String {
    match cell {
        Cell::Text(text) => form(text),
        Cell::Float(float) => format!("{float:.7e}"),
    }
}

/// `20240131` beside `2024-01-31`.
fn is_null_or_same_digits(ours: &str, theirs: &str) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<_>>();
    theirs == "NULL" || (ours != "NULL" && digits(ours) == digits(theirs))
}

fn are_truths(ours: &str, theirs: &str) -> bool {
    [ours, theirs].iter().all(|text| matches!(*text, "0" | "1" | "NULL"))
}

fn has_null(rows: &[Vec<Cell>]) -> bool {
    rows.iter().flatten().any(|cell| matches!(cell, Cell::Text(text) if text == "NULL"))
}

/// `1.500` as `1.5`, within texts, too.
fn without_last_zeros(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('.') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let fraction = rest[at + 1..at + 1 + digits].trim_end_matches('0');
        out.push_str(&rest[..at]);
        if !fraction.is_empty() {
            out.push('.');
            out.push_str(fraction);
        }
        rest = &rest[at + 1 + digits..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_line() {
        let compat = include_str!("../../../COMPAT.md");
        for Known { line, .. } in &KNOWN {
            assert!(compat.contains(&format!("| {line}")), "COMPAT.md has no line {line:?}");
        }
    }

    #[test]
    fn decimals_are_the_same_whatever_their_scale() {
        assert_eq!(without_last_zeros("1.500 and 2.00, 3."), "1.5 and 2, 3");
    }
}
