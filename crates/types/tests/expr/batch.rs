//! Row-wise, vector-wise and folded evaluation agree, on generated expressions and data.

use std::sync::LazyLock;

use arrow::array::ArrayRef;
use avocet_types::arrow_map::{ColumnBuilder, datum_at};
use avocet_types::expr::{
    ArithOp, BatchProgram, CastTarget, CompareOp, EvalContext, Expr, Function, IntervalUnit, IsTest,
    RowProgram, Typer, UnitFunction,
};
use avocet_types::{Collation, Datum, Decimal, EvalError, IntWidth, Members, SqlType, json};
use proptest::prelude::*;

static COLUMNS: LazyLock<[SqlType; 17]> = LazyLock::new(|| {
    [
        SqlType::BIGINT,
        SqlType::INT,
        SqlType::BIGINT_UNSIGNED,
        SqlType::Int { width: IntWidth::W8, unsigned: false },
        SqlType::Decimal { precision: 15, scale: 2, unsigned: false },
        SqlType::Decimal { precision: 30, scale: 5, unsigned: false },
        SqlType::DOUBLE,
        SqlType::VarChar { len: 24, collation: Collation::DEFAULT },
        SqlType::VarChar { len: 24, collation: Collation::UTF8MB4_0900_BIN },
        SqlType::Date,
        SqlType::DateTime { fsp: 6 },
        SqlType::Enum(members(&["b", "A", "ß", "12"], Collation::DEFAULT)),
        SqlType::Enum(members(&["b", "B", "a"], Collation::UTF8MB4_BIN)),
        SqlType::Set(members(&["a", "B", "ab"], Collation::DEFAULT)),
        SqlType::Bit { len: 1 },
        SqlType::Bit { len: 20 },
        SqlType::Json,
    ]
});

fn members(names: &[&str], collation: Collation) -> Members {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Members::new(names, collation).expect("distinct names")
}

type Row = Vec<Datum<'static>>;

const DOCUMENTS: [&str; 16] = [
    "null",
    "true",
    "0",
    "1",
    "-7",
    "18446744073709551615",
    "1.5",
    "1e300",
    r#""a""#,
    r#""1.5""#,
    r#""2024-02-03""#,
    "[]",
    "[1, 2]",
    r#"[{"a": 1}, "b"]"#,
    "{}",
    r#"{"a": [1, 2], "b": "x"}"#,
];
const PATHS: [&str; 8] = ["$", "$.a", "$[0]", "$.a[last]", "$**.a", "$.*", "$[*]", "$[0 to 1].a"];

fn document(text: &str) -> Datum<'static> {
    let json = json::parse(text).expect("a document");
    Datum::Bytes(json.encode().expect("it is small").into())
}

fn value(ty: SqlType) -> BoxedStrategy<Datum<'static>> {
    let some = match ty {
        _ if let Some(max) = ty.coded_max() => (0..=max).prop_map(Datum::UInt).boxed(),
        SqlType::Int { unsigned: true, .. } => {
            prop_oneof![Just(0), Just(u64::MAX), 0..20u64].prop_map(Datum::UInt).boxed()
        }
        SqlType::Int { width: IntWidth::W8, .. } => (-128..128i64).prop_map(Datum::Int).boxed(),
        SqlType::Int { width: IntWidth::W32, .. } => any::<i32>().prop_map(|v| Datum::Int(v.into())).boxed(),
        SqlType::Int { .. } => {
            prop_oneof![Just(i64::MIN), Just(i64::MAX), -9..9i64, any::<i64>()].prop_map(Datum::Int).boxed()
        }
        SqlType::Decimal { precision, scale, .. } => {
            let max = 10i128.pow(precision.into()) - 1;
            let of = move |v| Datum::Decimal(Decimal::new(v, scale));
            prop_oneof![Just(0), -1000..1000i128, -max..=max].prop_map(of).boxed()
        }
        SqlType::Double(_) => prop_oneof![
            Just(0.0),
            Just(-0.0),
            -9.0..9.0f64,
            any::<f32>().prop_filter_map("finite", |v| { v.is_finite().then_some(f64::from(v)) })
        ]
        .prop_map(Datum::Double)
        .boxed(),
        SqlType::Json => {
            let some = (0..DOCUMENTS.len()).prop_map(|at| document(DOCUMENTS[at]));
            let of = |v: u64| Datum::Bytes(json::Json::UInt(v).encode().expect("it is small").into());
            prop_oneof![4 => some, 1 => any::<u64>().prop_map(of)].boxed()
        }
        SqlType::Date => (0..30_000i32).prop_map(Datum::Date).boxed(),
        SqlType::DateTime { .. } => (0..3_000_000_000_000_000i64).prop_map(Datum::DateTime).boxed(),
        _ => prop_oneof![
            "[abAB %_]{0,4}",
            "[0-9]{1,3}",
            "[äßa1.]{0,5}",
            "2024-0[1-9]-[0-3][0-9]",
            (0..DOCUMENTS.len()).prop_map(|at| DOCUMENTS[at].to_owned())
        ]
        .prop_map(|s| Datum::Str(s.into()))
        .boxed(),
    };
    prop_oneof![1 => Just(Datum::Null), 5 => some].boxed()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = COLUMNS.iter().map(|ty| value(*ty)).collect::<Vec<_>>();
    prop::collection::vec(row, 1..20)
}

fn leaf() -> BoxedStrategy<Expr> {
    let column = (0..COLUMNS.len()).prop_map(|i| Expr::column(i, COLUMNS[i], true));
    let literal = (0..COLUMNS.len())
        .prop_flat_map(|i| value(COLUMNS[i]).prop_map(move |v| Expr::literal(v, COLUMNS[i])));
    let small = (-5..5i64).prop_map(Expr::int);
    prop_oneof![5 => column, 1 => literal, 2 => small].boxed()
}

/// An expression of what it gets, by number; `None` where MySQL does not allow it.
fn combine(choice: u32, a: Expr, b: Expr, c: Expr) -> Option<Expr> {
    let t = Typer::default();
    let ops = [ArithOp::Add, ArithOp::Sub, ArithOp::Mul, ArithOp::Div, ArithOp::IntDiv, ArithOp::Mod];
    let compares = [
        CompareOp::Eq,
        CompareOp::NullSafeEq,
        CompareOp::Ne,
        CompareOp::Lt,
        CompareOp::Le,
        CompareOp::Gt,
        CompareOp::Ge,
    ];
    let unary = [
        Function::Abs,
        Function::Ceil,
        Function::Round,
        Function::Length,
        Function::Upper,
        Function::Hex,
        Function::Year,
        Function::LastDay,
        Function::Hour,
        Function::Sqrt,
        Function::Trim,
        Function::Reverse,
    ];
    let n = choice as usize / 18;
    let made: Result<Expr, EvalError> = match choice % 18 {
        0 | 1 => t.arith(ops[n % ops.len()], a, b),
        2 | 3 => t.compare(compares[n % compares.len()], a, b),
        4 => Ok(t.and(vec![a, b, c])),
        5 => Ok(t.or(vec![a, b, c])),
        6 => Ok(t.not(a)),
        7 => t.case(None, vec![(a, b)], Some(c)),
        8 => t.coalesce(vec![a, b, c]),
        9 => t.between(a, b, c, n.is_multiple_of(2)),
        10 => t.in_list(a, vec![b, c, Expr::int(1)], n.is_multiple_of(2)),
        11 => {
            let tests = [IsTest::Null, IsTest::True, IsTest::False, IsTest::Unknown];
            Ok(t.is(a, tests[n % 4], n % 8 < 4))
        }
        12 => t.call(unary[n % unary.len()], vec![a]),
        13 => match n % 4 {
            0 => t.call(Function::Concat, vec![a, b]),
            1 => t.call(Function::Greatest, vec![a, b, c]),
            2 => t.call(Function::Left, vec![a, b]),
            _ => t.call(Function::If, vec![a, b, c]),
        },
        14 => match n % 7 {
            0 => t.cast(a, CastTarget::Signed),
            1 => t.cast(a, CastTarget::Unsigned),
            2 => t.cast(a, CastTarget::Decimal(Some((20, 3)))),
            3 => t.cast(a, CastTarget::Char(Some(3), None)),
            4 => t.cast(a, CastTarget::Date),
            5 => t.cast(a, CastTarget::Json),
            _ => t.cast(a, CastTarget::Double),
        },
        16 | 17 => json_call(n, a, b, c),
        _ => match n % 3 {
            0 => t.like(a, t.string("%a_"), Some('\\'), false),
            1 => t.unit_call(UnitFunction::DateAdd, IntervalUnit::Month, vec![a, b]),
            _ => Ok(t.negate(a)),
        },
    };
    made.ok()
}

fn json_call(n: usize, a: Expr, b: Expr, c: Expr) -> Result<Expr, EvalError> {
    use Function as F;
    let t = Typer::default();
    let unary = [
        F::JsonType,
        F::JsonDepth,
        F::JsonLength,
        F::JsonKeys,
        F::JsonValid,
        F::JsonPretty,
        F::JsonStorageSize,
        F::JsonUnquote,
        F::JsonQuote,
    ];
    let binary = [
        F::JsonContains,
        F::JsonOverlaps,
        F::JsonMemberOf,
        F::JsonMergePatch,
        F::JsonMergePreserve,
        F::JsonArray,
        F::JsonSchemaValid,
        F::JsonSchemaReport,
    ];
    let path = t.string(PATHS[n / 9 % PATHS.len()]);
    match n % 9 {
        0 | 1 => t.call(unary[n / 9 % unary.len()], vec![a]),
        2 | 3 => t.call(binary[n / 9 % binary.len()], vec![a, b]),
        4 | 5 => t.call(F::JsonExtract, vec![a, path]),
        6 => t.call([F::JsonSet, F::JsonArrayAppend, F::JsonReplace][n / 9 % 3], vec![a, path, b]),
        7 => t.call(F::JsonObject, vec![t.string("k"), a, b, c]),
        _ => t.call(F::JsonSearch, vec![a, t.string("all"), b]),
    }
}

fn expression() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(4, 40, 3, |inner| {
        (any::<u32>(), inner.clone(), inner.clone(), inner)
            .prop_map(|(choice, a, b, c)| combine(choice, a.clone(), b, c).unwrap_or(a))
            .boxed()
    })
}

fn context() -> EvalContext {
    EvalContext::new(1_710_498_030_123_456, 1)
}

fn shown(value: &Datum<'_>) -> String {
    format!("{value:?}")
}

fn by_rows(expr: &Expr, rows: &[Row]) -> Result<(Vec<String>, u64), u16> {
    let program = RowProgram::compile(expr).map_err(|e| e.errno())?;
    let ctx = context();
    let values = rows
        .iter()
        .map(|row| program.eval(&&row[..], &[], &ctx).map(|v| shown(&v)).map_err(|e| e.errno()))
        .collect::<Result<_, _>>()?;
    Ok((values, ctx.warning_count()))
}

fn by_batch(expr: &Expr, columns: &[ArrayRef], len: usize) -> Result<(Vec<String>, u64), u16> {
    let program = BatchProgram::compile(expr).map_err(|e| e.errno())?;
    let ctx = context();
    let array = program.eval(columns, len, &ctx).map_err(|e| e.errno())?;
    assert_eq!(array.data_type(), &expr.ty.arrow_type(), "{expr}");
    assert_eq!(array.len(), len, "{expr}");
    let mut done = 0;
    let keeps = &mut |rows: usize, _: usize| {
        assert!(rows > done || len == 0, "parts follow each other");
        done = rows;
        true
    };
    let parts = program.eval_in_parts(columns, len, &context(), 16, keeps).map_err(|e| e.errno())?;
    let parts = parts.expect("all are kept");
    assert_eq!((done, parts.len()), (len, len));
    let same = (0..len)
        .all(|row| shown(&datum_at(&parts, row, &expr.ty)) == shown(&datum_at(&array, row, &expr.ty)));
    assert!(same, "{expr} in parts");
    let matched = program.matches(columns, len, &context()).map_err(|e| e.errno())?;
    let values = (0..len).map(|row| shown(&datum_at(&array, row, &expr.ty))).collect();
    assert_eq!(matched.len(), len);
    Ok((values, ctx.warning_count()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_and_batches_agree(expr in expression(), rows in rows()) {
        let columns: Vec<ArrayRef> = COLUMNS.iter().enumerate().map(|(i, ty)| {
            let mut builder = ColumnBuilder::new(ty, rows.len());
            rows.iter().for_each(|row| builder.append(&row[i]));
            builder.finish()
        }).collect();
        let expected = by_rows(&expr, &rows);
        let batch = by_batch(&expr, &columns, rows.len());
        // With an error somewhere, which row's comes first does not matter.
        match (&expected, &batch) {
            (Ok((a, warned_a)), Ok((b, warned_b))) => {
                prop_assert_eq!(a, b, "{}", &expr);
                // Constant operands are evaluated once, and so warn once.
                prop_assert_eq!(*warned_a > 0, *warned_b > 0, "warnings of {}", &expr);
            }
            (a, b) => prop_assert_eq!(a.is_err(), b.is_err(), "{} {:?} {:?}", &expr, a, b),
        }
        let folded = by_rows(&expr.clone().fold(), &rows);
        match (&expected, &folded) {
            (Ok((a, _)), Ok((b, _))) => prop_assert_eq!(a, b, "folded {}", &expr),
            (a, b) => prop_assert_eq!(a.is_err(), b.is_err(), "folded {}", &expr),
        }
        if let Ok((values, _)) = &expected {
            prop_assert!(expr.nullable || values.iter().all(|v| v != "Null"), "{} is NULL", &expr);
        }
    }
}
