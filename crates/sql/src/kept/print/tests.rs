//! Against what MySQL 9.7 prints of these in information_schema.

use avocet_types::collation::Charset;
use avocet_types::expr::SqlMode;

use super::canonical;
use crate::parse::parse_expr;

/// Lines of an expression, a tab and what MySQL makes of it.
const PRINTED: &str = include_str!("printed.txt");

#[test]
fn expressions_print_as_mysql_prints_them() {
    let mut lines = 0;
    for line in PRINTED.lines() {
        let (written, printed) = line.split_once('\t').expect("two columns");
        let expr = parse_expr(written.as_bytes(), SqlMode::DEFAULT).expect(written);
        let text = canonical(&expr, written.as_bytes(), Charset::Utf8mb4);
        assert_eq!(text, printed, "{written}");
        // What is kept is read again, and prints the same.
        let again = parse_expr(text.as_bytes(), SqlMode::DEFAULT).expect(&text);
        assert_eq!(canonical(&again, text.as_bytes(), Charset::Utf8mb4), printed, "{written}, again");
        lines += 1;
    }
    assert!(lines > 150, "{lines} lines");
}
