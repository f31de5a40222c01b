//! What evaluating costs, row-wise and vector-wise: `cargo run --release -p avocet-types --example expr`.

use std::hint::black_box;
use std::time::Instant;

use arrow::array::ArrayRef;
use avocet_types::arrow_map::ColumnBuilder;
use avocet_types::expr::{ArithOp, BatchProgram, CompareOp, EvalContext, Expr, Function, RowProgram, Typer};
use avocet_types::{Collation, Datum, Decimal, EvalError, RowLayout, SqlType};

const ROWS: usize = 8192;
const ROUNDS: usize = 200;

fn main() -> Result<(), EvalError> {
    let t = Typer::default();
    let decimal = SqlType::Decimal { precision: 12, scale: 2, unsigned: false };
    let text = SqlType::VarChar { len: 16, collation: Collation::DEFAULT };
    let types = [SqlType::INT, SqlType::INT, decimal, decimal, text, SqlType::Date];
    let column = |i: usize| Expr::column(i, types[i], false);
    let one_minus = t.arith(ArithOp::Sub, Expr::int(1), column(3))?;
    let cases = [
        ("int = const", t.compare(CompareOp::Eq, column(0), Expr::int(77))?),
        (
            "int = const AND int < const",
            t.and(vec![
                t.compare(CompareOp::Gt, column(0), Expr::int(7))?,
                t.compare(CompareOp::Lt, column(1), Expr::int(90))?,
            ]),
        ),
        ("int + const", t.arith(ArithOp::Add, column(0), Expr::int(1))?),
        ("decimal + decimal", t.arith(ArithOp::Add, column(2), column(3))?),
        ("decimal * (1 - decimal)", t.arith(ArithOp::Mul, column(2), one_minus)?),
        ("varchar = const, ai_ci", t.compare(CompareOp::Eq, column(4), t.string("name 77"))?),
        ("varchar LIKE 'n%7'", t.like(column(4), t.string("n%7"), Some('\\'), false)?),
        ("YEAR(date)", t.call(Function::Year, vec![column(5)])?),
    ];
    let rows: Vec<Vec<Datum<'static>>> = (0..ROWS as i64)
        .map(|i| {
            vec![
                Datum::Int(i % 100),
                Datum::Int(i * 7 % 100),
                Datum::Decimal(Decimal::new((i * 37).into(), 2)),
                Datum::Decimal(Decimal::new((i % 10).into(), 2)),
                Datum::Str(format!("Name {}", i % 100).into()),
                Datum::Date((i % 10_000) as i32),
            ]
        })
        .collect();
    let layout = RowLayout::new(&types);
    let images: Vec<Vec<u8>> = rows
        .iter()
        .map(|row| {
            let mut image = Vec::new();
            layout.encode(row, &mut image);
            image
        })
        .collect();
    let columns: Vec<ArrayRef> = types
        .iter()
        .enumerate()
        .map(|(i, ty)| {
            let mut builder = ColumnBuilder::new(ty, ROWS);
            rows.iter().for_each(|row| builder.append(&row[i]));
            builder.finish()
        })
        .collect();
    let ctx = EvalContext::new(0, 0);
    println!("{:<30} {:>12} {:>12}", "ns per row", "row-wise", "vector-wise");
    for (name, expr) in cases {
        let expr = expr.fold();
        let (by_row, by_batch) = (RowProgram::compile(&expr)?, BatchProgram::compile(&expr)?);
        let views: Vec<_> = images.iter().map(|image| layout.view(image).expect("just encoded")).collect();
        let started = Instant::now();
        for _ in 0..ROUNDS {
            for view in &views {
                if expr.is_truth() {
                    black_box(by_row.matches(view, &[], &ctx)?);
                } else {
                    black_box(by_row.eval(view, &[], &ctx)?);
                }
            }
        }
        let row_ns = started.elapsed().as_nanos() as f64 / (ROUNDS * ROWS) as f64;
        let started = Instant::now();
        for _ in 0..ROUNDS {
            if expr.is_truth() {
                black_box(by_batch.matches(&columns, ROWS, &ctx)?);
            } else {
                black_box(by_batch.eval(&columns, ROWS, &ctx)?);
            }
        }
        let batch_ns = started.elapsed().as_nanos() as f64 / (ROUNDS * ROWS) as f64;
        println!("{name:<30} {row_ns:>12.1} {batch_ns:>12.2}");
    }
    Ok(())
}
