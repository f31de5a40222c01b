//! Expressions against the results of a real MySQL (`cases.txt`, made by `record.py`).

mod batch;
mod bind;

use std::fmt::Write as _;

use avocet_types::expr::{CastTarget, EvalContext, Expr, RowProgram, Typer};
use avocet_types::{Datum, EvalError};

/// 2024-03-15 10:20:30.123456 UTC, the `timestamp` that the recorder sets.
const NOW_MICROS: i64 = 1_710_498_030_123_456;

fn evaluate(expr: &Expr) -> Result<(Datum<'static>, Vec<(u16, String)>), EvalError> {
    let ctx = EvalContext::new(NOW_MICROS, 1);
    let program = RowProgram::compile(expr)?;
    let value = program.eval_const(&[], &ctx)?.into_owned();
    let warnings = ctx.take_warnings().into_iter().map(|w| (w.errno, w.message)).collect();
    Ok((value, warnings))
}

/// What the mysql client would show, then the numbers of errors or warnings.
fn answer(sql: &str) -> String {
    let bound = match bind::bind(sql) {
        Ok(bound) => bound,
        Err(error) => return format!("ERROR {}", error.errno()),
    };
    let text = |expr: &Expr| -> Result<String, EvalError> {
        let (value, warnings) = evaluate(expr)?;
        assert!(expr.nullable || !value.is_null(), "{sql} is NULL, but {expr} cannot be");
        let mut shown = match value {
            Datum::Null => "NULL".to_owned(),
            Datum::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Datum::Str(text) => text.into_owned(),
            value => {
                let literal = Expr::literal(value, expr.ty);
                let shown = Typer::default().cast(literal, CastTarget::Char(Some(2000), None))?;
                match evaluate(&shown)?.0 {
                    Datum::Str(text) => text.into_owned(),
                    other => panic!("{other:?} is no text"),
                }
            }
        };
        for (errno, _) in warnings {
            write!(shown, " !{errno}").expect("a String takes all");
        }
        Ok(shown)
    };
    // The text of an error may name the expression, and so differ.
    let or_error =
        |shown: Result<String, EvalError>| shown.unwrap_or_else(|e| format!("ERROR {}", e.errno()));
    let plain = or_error(text(&bound));
    let folded = or_error(text(&bound.fold()));
    assert_eq!(plain, folded, "folding changes {sql}");
    plain
}

#[test]
fn results_are_those_of_mysql() {
    let mut wrong = String::new();
    let (mut count, mut failures) = (0, 0);
    for line in include_str!("cases.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (sql, wanted) = line.split_once(" => ").expect("a case is `expression => result`");
        let found = std::panic::catch_unwind(|| answer(sql)).unwrap_or_else(|_| "PANIC".to_owned());
        count += 1;
        if found != wanted {
            failures += 1;
            writeln!(wrong, "{sql}\n   MySQL  {wanted}\n   Avocet {found}").expect("a String takes all");
        }
    }
    assert!(failures == 0, "{failures} of {count} differ\n{wrong}");
}
