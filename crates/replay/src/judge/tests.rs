use mysql::consts::ColumnType;

use super::*;
use crate::decide::{Decision, decide};
use avocet_types::expr::SqlMode;

/// An answer with an integer, a text and a double in each row.
fn answer(rows: &[(i64, &str, f64)]) -> Answer {
    let column = |name: &str, kind, text| Column { name: name.into(), kind, unsigned: false, text };
    let mut answer = Answer {
        columns: vec![
            column("id", ColumnType::MYSQL_TYPE_LONG, false),
            column("name", ColumnType::MYSQL_TYPE_VAR_STRING, true),
            column("x", ColumnType::MYSQL_TYPE_DOUBLE, false),
        ],
        ..Answer::default()
    };
    answer.begin();
    for (id, name, x) in rows {
        let values = [id.to_string(), (*name).to_owned(), x.to_string()];
        answer.add(values.into_iter().map(|value| Some(value.into_bytes())));
    }
    answer
}

fn verdict(sql: &str, source: &Answer, avocet: &Answer) -> Verdict {
    let Decision::Replay(shape) = decide(sql, SqlMode::DEFAULT, false) else { panic!("{sql}") };
    judge(source, avocet, &shape, &Rules::default())
}

fn of(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Different(difference) => difference.of,
        Verdict::Unsupported(_) => "unsupported",
        Verdict::Incomparable(_) => "incomparable",
        Verdict::Ties(_) => "ties",
    }
}

const A: (i64, &str, f64) = (1, "a", 0.5);
const B: (i64, &str, f64) = (2, "b", 1.5);
const C: (i64, &str, f64) = (3, "c", 2.5);

#[test]
fn rows_are_a_multiset_and_order_is_as_far_as_it_is_fixed() {
    let (ab, ba) = (answer(&[A, B]), answer(&[B, A]));
    assert_eq!(verdict("SELECT id, name, x FROM t", &ab, &ba), Verdict::Same);
    assert_eq!(of(&verdict("SELECT id, name, x FROM t ORDER BY id", &ab, &ba)), "order");
    assert_eq!(of(&verdict("SELECT * FROM t ORDER BY x", &ab, &ba)), "order");
    assert_eq!(
        verdict("SELECT id, name, x FROM t ORDER BY id * 2", &ab, &ba),
        Verdict::Same,
        "not in the answer"
    );
    assert_eq!(of(&verdict("SELECT * FROM t", &ab, &answer(&[A]))), "count");
    let twice = verdict("SELECT * FROM t", &answer(&[A, A, B]), &answer(&[A, B, B]));
    let Verdict::Different(difference) = twice else { panic!("{twice:?}") };
    assert!(difference.detail.contains("(1, \"a\", 0.5)") && difference.detail.contains("(2, \"b\", 1.5)"));
}

#[test]
fn ties_of_a_case_insensitive_order_may_come_either_way() {
    let (there, here) = (answer(&[(1, "x", 0.0), (2, "X", 0.0)]), answer(&[(2, "X", 0.0), (1, "x", 0.0)]));
    assert_eq!(verdict("SELECT * FROM t ORDER BY name", &there, &here), Verdict::Same);
}

#[test]
fn approximate_numbers_have_a_tolerance() {
    let near = answer(&[(1, "a", 0.5 + 1e-14), B]);
    assert_eq!(verdict("SELECT * FROM t", &answer(&[B, A]), &near), Verdict::Same);
    let far = answer(&[(1, "a", 0.5 + 1e-9), B]);
    assert_eq!(of(&verdict("SELECT * FROM t", &answer(&[A, B]), &far)), "rows");
    // Order by number is not order by partner.
    let (there, here) =
        (answer(&[(1, "a", 1.0), (1, "a", 1.0 + 1e-14)]), answer(&[(1, "a", 1.0 + 1e-14), (1, "a", 1.0)]));
    assert_eq!(verdict("SELECT * FROM t", &there, &here), Verdict::Same);
}

#[test]
fn a_limit_leaves_open_what_it_leaves_open() {
    let (ab, ac) = (answer(&[A, B]), answer(&[A, C]));
    assert_eq!(of(&verdict("SELECT * FROM t LIMIT 2", &ab, &ac)), "incomparable");
    assert_eq!(of(&verdict("SELECT * FROM t LIMIT 2", &ab, &answer(&[A]))), "count");
    assert_eq!(of(&verdict("SELECT * FROM t LIMIT 3", &ab, &ac)), "rows", "all are there");
    assert_eq!(of(&verdict("SELECT * FROM t ORDER BY id LIMIT 2", &ab, &ac)), "rows", "the keys differ");
    let tied = answer(&[A, (2, "z", 1.5)]);
    assert_eq!(of(&verdict("SELECT * FROM t ORDER BY id LIMIT 2", &ab, &tied)), "ties");
    let inner = answer(&[(1, "z", 0.5), B]);
    assert_eq!(
        of(&verdict("SELECT * FROM t ORDER BY id LIMIT 2", &ab, &inner)),
        "rows",
        "before the last key"
    );
    assert_eq!(of(&verdict("SELECT * FROM t ORDER BY id LIMIT 2 OFFSET 4", &ab, &inner)), "ties");
}

#[test]
fn ties_are_seen_one_row_further() {
    let sql = "SELECT * FROM t ORDER BY id LIMIT 5, 2";
    let Decision::Replay(shape) = decide(sql, SqlMode::DEFAULT, false) else { panic!() };
    let bounds = shape.limit.expect("it has one");
    assert_eq!(widened(sql, bounds), "SELECT * FROM t ORDER BY id LIMIT 4, 4");
    let rules = Rules::default();
    let ties = |rows: &[(i64, &str, f64)]| has_ties_beyond(&answer(rows), &shape, bounds, &rules);
    let id = |id| (id, "a", 0.0);
    assert!(!ties(&[id(1), id(2), id(3), id(4)]));
    assert!(ties(&[id(1), id(2), id(3), id(3)]));
    assert!(ties(&[id(2), id(2), id(3), id(4)]));
    assert!(!ties(&[id(1), id(2), id(3)]), "the last ones");
}

#[test]
fn errors_names_types_and_warnings_count() {
    let fine = answer(&[A]);
    let failed = |code| Answer { error: Some((code, "why".into())), ..Answer::default() };
    let sql = "SELECT * FROM t";
    assert_eq!(verdict(sql, &failed(1146), &failed(1146)), Verdict::Same);
    assert_eq!(of(&verdict(sql, &failed(1146), &failed(1054))), "error");
    assert_eq!(of(&verdict(sql, &fine, &failed(1235))), "unsupported");
    assert_eq!(of(&verdict(sql, &fine, &failed(1690))), "error");
    assert_eq!(of(&verdict(sql, &failed(1690), &fine)), "error");
    let mut other = answer(&[A]);
    other.columns[0].name = "ID".into();
    assert_eq!(of(&verdict(sql, &fine, &other)), "columns");
    let mut other = answer(&[A]);
    other.columns[0].kind = ColumnType::MYSQL_TYPE_LONGLONG;
    assert_eq!(of(&verdict(sql, &fine, &other)), "types");
    assert_eq!(of(&verdict(sql, &fine, &Answer { warnings: 1, ..answer(&[A]) })), "warnings");
    assert_eq!(of(&verdict("SELECT RAND(), 1, 2", &answer(&[A]), &answer(&[B]))), "incomparable");
}

#[test]
fn large_answers_are_compared_by_sums() {
    let rows: Vec<(i64, String, f64)> =
        (0..60_000).map(|id| (id, "x".repeat(300), id as f64 / 7.0)).collect();
    let of_rows = |rows: &[(i64, String, f64)]| {
        let rows: Vec<_> = rows.iter().map(|(id, name, x)| (*id, name.as_str(), *x)).collect();
        answer(&rows)
    };
    let source = of_rows(&rows);
    assert!(!source.is_whole());
    let mut reversed = rows.clone();
    reversed.reverse();
    assert_eq!(verdict("SELECT * FROM t", &source, &of_rows(&reversed)), Verdict::Same);
    assert_eq!(of(&verdict("SELECT * FROM t ORDER BY id", &source, &of_rows(&reversed))), "order");
    let mut changed = rows.clone();
    changed[59_999].1.push('y');
    assert_eq!(of(&verdict("SELECT * FROM t", &source, &of_rows(&changed))), "rows");
    let mut changed = rows;
    changed[59_999].2 += 10.0;
    assert_eq!(of(&verdict("SELECT * FROM t", &source, &of_rows(&changed))), "rows");
}

#[test]
fn any_of_equal_texts_may_stand_for_a_group() {
    let (there, here) = (answer(&[(1, "x", 0.0)]), answer(&[(1, "X", 0.0)]));
    assert_eq!(
        of(&verdict("SELECT COUNT(*), name, x FROM t GROUP BY name, x", &there, &here)),
        "incomparable"
    );
    assert_eq!(of(&verdict("SELECT id, name, x FROM t", &there, &here)), "rows");
}
