//! How an answer is compared with the right one. Stricter than TPC-H's clause 2.1.3.5 asks: text, dates and integers are equal; decimals
//! agree in every place that both sides show.

use super::{Cell, Rows};

/// Compares an answer with the right one; says what is different first.
pub fn compare(right: &Rows, answer: &Rows, sorted_by: &[usize]) -> std::result::Result<(), String> {
    if right.len() != answer.len() {
        return Err(format!("{} rows instead of {}", answer.len(), right.len()));
    }
    let mut begin = 0;
    while begin < right.len() {
        let same_place = |row: &Vec<Cell>| sorted_by.iter().all(|c| row[*c] == right[begin][*c]);
        let ties = if sorted_by.is_empty() {
            1
        } else {
            right[begin..].iter().take_while(|r| same_place(r)).count()
        };
        match_ties(&right[begin..begin + ties], &answer[begin..begin + ties], OF_ADDITIONS)
            .map_err(|e| format!("row {}: {e}", begin + 1))?;
        begin += ties;
    }
    Ok(())
}

/// What doubles may differ by, of their value: the order of additions.
const OF_ADDITIONS: f64 = 1e-12;
/// The same where quotients of DECIMAL, which end four places behind the dividend's, are divided and multiplied again.
const OF_QUOTIENTS: f64 = 1e-6;

/// The same for an answer whose rows may come in any order, and whose numbers may come of quotients.
pub fn compare_unordered(right: &Rows, answer: &Rows) -> std::result::Result<(), String> {
    match right.len() == answer.len() {
        true => match_ties(right, answer, OF_QUOTIENTS),
        false => Err(format!("{} rows instead of {}", answer.len(), right.len())),
    }
}

/// Rows that are equal in the sorted columns may come in any order: each must have its own equal.
fn match_ties(right: &[Vec<Cell>], answer: &[Vec<Cell>], slack: f64) -> std::result::Result<(), String> {
    let mut left: Vec<&Vec<Cell>> = right.iter().collect();
    for row in answer {
        match left.iter().position(|candidate| same_row(candidate, row, slack)) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => return Err(format!("{row:?} instead of {:?}", left[0])),
        }
    }
    Ok(())
}

fn same_row(a: &[Cell], b: &[Cell], slack: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_cell(a.as_deref(), b.as_deref(), slack))
}

fn same_cell(a: Option<&str>, b: Option<&str>, slack: f64) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
    if a == b || a.trim_end() == b.trim_end() {
        return true;
    }
    let decimal = |text: &str| text.contains('.') && text.parse::<f64>().is_ok();
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if decimal(a) || decimal(b) => {
            let places = places(a).min(places(b)).max(2);
            (x - y).abs() <= 10f64.powi(-places) + slack * x.abs()
        }
        _ => false,
    }
}

fn places(text: &str) -> i32 {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Rows {
        let row = |line: &str| line.split('|').map(|cell| Some(cell.to_owned())).collect();
        text.lines().map(row).collect()
    }

    #[test]
    fn decimals_agree_in_the_places_that_both_show() {
        assert!(same_cell(Some("25.575154611454693"), Some("25.575155"), OF_ADDITIONS));
        assert!(!same_cell(Some("25.575154611454693"), Some("25.575255"), OF_ADDITIONS));
        assert!(same_cell(Some("4"), Some("4.00"), OF_ADDITIONS));
        assert!(!same_cell(Some("4"), Some("5"), OF_ADDITIONS));
        assert!(!same_cell(None, Some("0"), OF_ADDITIONS));
        assert!(!same_cell(Some("1996-01-01"), Some("1996-01-02"), OF_ADDITIONS));
    }

    #[test]
    fn without_an_order_any_row_may_change_places() {
        let right = rows("a|1\nb|1\nc|2");
        assert!(compare_unordered(&right, &rows("c|2\na|1\nb|1")).is_ok());
        assert!(compare_unordered(&right, &rows("c|2\na|1\na|1")).is_err());
    }

    #[test]
    fn only_ties_may_change_places() {
        let right = rows("a|1\nb|1\nc|2");
        assert!(compare(&right, &rows("b|1\na|1\nc|2"), &[1]).is_ok());
        assert!(compare(&right, &rows("c|2\na|1\nb|1"), &[1]).is_err());
        assert!(compare(&right, &rows("a|1\na|1\nc|2"), &[1]).is_err());
        assert!(compare(&right, &rows("a|1\nb|1"), &[1]).is_err());
    }
}
