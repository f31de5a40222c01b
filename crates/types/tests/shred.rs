//! What is made of columns of paths is what is made of the documents, and what a scan makes of a value is what the expressions
//! make of it that it stands for.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::UInt8Type;
use avocet_types::expr::{BatchProgram, CompareOp, Function, IsTest, OnJsonProblem};
use avocet_types::json::shred::{
    ChosenPath, Form, Kind, MOST_PATHS, PathTest, Shredded, Target, choose, extract, mark,
};
use avocet_types::json::{Json, Map, Node, opaque, parse};
use avocet_types::{Collation, Datum, Decimal, EvalContext, Expr, ExprKind, SqlType, Typer};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,3}",
        1 => "[a-c ]{0,3} ",
        1 => Just("x".repeat(600)),
        1 => "[0-9]{1,3}",
        1 => Just("\"quoted\" \u{1}\\ ☃".to_owned()),
        1 => Just("null".to_owned()),
    ]
}

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        4 => (-300i64..300).prop_map(Json::Int),
        2 => any::<i64>().prop_map(Json::Int),
        1 => (-4i64..4).prop_map(|v| Json::Int((1 << 53) + v)),
        1 => any::<u64>().prop_map(Json::UInt),
        2 => (-100_000i64..100_000).prop_map(|v| Json::Double(v as f64 / 100.0)),
        1 => any::<f64>().prop_filter("of JSON", |v| v.is_finite()).prop_map(Json::Double),
        1 => (0..5usize).prop_map(|i| Json::Double([0.0, -0.0, 1e15, 0.5, 1e300][i])),
        1 => (-1000i64..1000).prop_map(|v| Json::Decimal(Decimal::new(v.into(), 1))),
        4 => text().prop_map(Json::String),
        1 => Just(Json::Date(19_000)),
        1 => Just(Json::Opaque { kind: opaque::BLOB, bytes: vec![1, 2] }),
        1 => Just(Json::Array(vec![Json::Int(1)])),
    ]
}

/// Of one kind mostly, so that there are columns.
fn column(kind: usize) -> BoxedStrategy<Json> {
    match kind {
        0 => (-300i64..300).prop_map(Json::Int).boxed(),
        1 => any::<i64>().prop_map(Json::Int).boxed(),
        2 => (-100_000i64..100_000).prop_map(|v| Json::Double(v as f64 / 100.0)).boxed(),
        3 => text().prop_map(Json::String).boxed(),
        4 => any::<bool>().prop_map(Json::Bool).boxed(),
        5 => any::<u64>().prop_map(Json::UInt).boxed(),
        _ => "[a-c]{0,3}".prop_map(Json::String).boxed(),
    }
}

const NAMES: [&str; 4] = ["a", "b", "odd \"name\"", ""];

/// Documents, NULL among them, that mostly have `a` and `b.c` of a kind each.
fn documents() -> impl Strategy<Value = Vec<Option<Json>>> {
    ((0..7usize), (0..7usize), 0..12u32).prop_flat_map(|(first, second, mixed)| {
        let of = move |kind| prop_oneof![20 => column(kind), mixed => scalar()];
        let member = move || {
            let inner = proptest::option::weighted(0.9, of(second));
            (proptest::option::weighted(0.9, of(first)), inner, proptest::option::weighted(0.3, scalar()))
        };
        let document = member().prop_map(|(a, c, odd)| {
            let mut members = Vec::new();
            members.extend(a.map(|a| ("a".to_owned(), a)));
            let inner = c.map(|c| ("c".to_owned(), c)).into_iter().collect();
            members.push(("b".to_owned(), Json::Object(Map::from_members(inner))));
            members.extend(odd.map(|odd| (NAMES[2].to_owned(), odd)));
            Json::Object(Map::from_members(members))
        });
        let any = prop_oneof![30 => document, 1 => scalar()];
        proptest::collection::vec(proptest::option::weighted(0.95, any), 1..120)
    })
}

fn array(documents: &[Option<Json>]) -> BinaryViewArray {
    documents.iter().map(|d| d.as_ref().map(|d| d.encode().expect("small"))).collect()
}

fn forms() -> Vec<Form> {
    let decimal = |precision, scale| Target::Decimal { precision, scale };
    let targets =
        [Target::Int, Target::Double, Target::String, decimal(10, 2), decimal(38, 10), decimal(3, 0)];
    let of_targets = targets.into_iter().flat_map(|target| [Form::Value(target), Form::Rest(target)]);
    [Form::Text, Form::Document].into_iter().chain(of_targets).collect()
}

fn tests() -> Vec<PathTest> {
    let document = |json: Json| json.encode().expect("small").into_boxed_slice();
    let mut tests = Vec::new();
    for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge] {
        tests.extend(["a", "b ", "12", "null"].map(|text| PathTest::Text(op, text.into())));
        let documents =
            [Json::Int(7), Json::Double(7.5), Json::String("b".into()), Json::Bool(true), Json::Null];
        tests.extend(documents.map(|json| PathTest::Document(op, document(json))));
        tests.push(PathTest::Value(Target::Int, op, Datum::Int(7)));
        tests.extend([7.0, 7.5, 1e17].map(|v| PathTest::Value(Target::Double, op, Datum::Double(v))));
        let decimal = Target::Decimal { precision: 10, scale: 2 };
        tests.extend(
            [Decimal::new(75, 1), Decimal::new(7555, 3)]
                .map(|v| PathTest::Value(decimal, op, Datum::Decimal(v))),
        );
    }
    tests
}

fn others(documents: &ArrayRef, shredded: &Shredded) -> Option<ArrayRef> {
    let marks = shredded.marks.as_ref()?.as_primitive::<UInt8Type>();
    let rows =
        marks.values().iter().enumerate().filter(|(_, m)| **m == mark::OTHER).map(|(row, _)| row as u32);
    Some(take(documents, &UInt32Array::from_iter_values(rows), None).expect("rows"))
}

proptest! {
    #[test]
    fn columns_of_paths_are_as_good_as_documents(documents in documents()) {
        let documents = array(&documents);
        let whole: ArrayRef = Arc::new(documents.clone());
        for path in choose(&documents) {
            let Some(shredded) = extract(&documents, &path) else { continue };
            let Shredded { values, marks } = &shredded;
            let others = others(&whole, &shredded);
            for form in forms() {
                let of_values = form.of_values(values, marks.as_ref(), others.as_ref(), &path.names);
                let of_documents = form.of_documents(&whole, &path.names);
                prop_assert_eq!(&of_values, &of_documents, "{:?} of {:?}", form, path);
                if marks.is_none() && form.is_nothing_of(values.data_type()) {
                    prop_assert_eq!(&form.nothing(values.len()), &of_documents);
                }
            }
            for test in tests() {
                let (mut of_values, mut of_documents) = (Vec::new(), Vec::new());
                test.of_values(values, marks.as_ref(), others.as_ref(), &path.names, &mut |row| of_values.push(row));
                test.of_documents(&whole, &path.names, &mut |row| of_documents.push(row));
                prop_assert_eq!(of_values, of_documents, "{:?} of {:?}", test, path);
            }
        }
    }

    /// `CASE WHEN rest IS NULL THEN value ELSE f(rest) END` is `f` of the value.
    #[test]
    fn forms_are_what_expressions_make_of_documents(documents in documents()) {
        let whole: ArrayRef = Arc::new(array(&documents));
        let names: Box<[Box<str>]> = ["a".into()].into();
        let typer = Typer::default();
        let document = Expr::column(0, SqlType::Json, true);
        let path = Expr::literal(Datum::Str("$.a".into()), SqlType::VarChar { len: 3, collation: Collation::DEFAULT });
        let root = Expr::literal(Datum::Str("$".into()), SqlType::VarChar { len: 1, collation: Collation::DEFAULT });
        let call = |function, args| Expr::new(ExprKind::Call(function, args), SqlType::Json, true);
        let extracted = call(Function::JsonExtract, vec![document.clone(), path.clone()]);
        let unquoted = |of: Expr| Expr { ty: SqlType::JSON_TEXT, ..call(Function::JsonUnquote, vec![of]) };
        let same = |form: Form, expr: &Expr| -> Result<(), TestCaseError> {
            let context = EvalContext::new(0, 1);
            let array = BatchProgram::compile(expr).unwrap().eval(std::slice::from_ref(&whole), whole.len(), &context).unwrap();
            prop_assert_eq!(&form.of_documents(&whole, &names), &array);
            Ok(())
        };
        same(Form::Document, &extracted)?;
        same(Form::Text, &unquoted(extracted.clone()))?;
        let decimal = |precision, scale| Target::Decimal { precision, scale };
        for target in [Target::Int, Target::Double, decimal(10, 2), decimal(38, 10), decimal(3, 0), Target::String] {
            let ty = match target {
                Target::String => Typer::JSON_VALUE_TYPE,
                target => target.sql_type(),
            };
            let cast = |of: Expr| Expr::new(ExprKind::Cast(Box::new(of)), ty, true);
            let value_of = |document: Expr, path: &Expr| {
                typer.json_value(document, path.clone(), ty, OnJsonProblem::Null, OnJsonProblem::Null).unwrap()
            };
            let rest = Expr::column(2, SqlType::Json, true);
            let value = Expr::column(1, ty, true);
            let mut pairs = vec![(value_of(document.clone(), &path), value_of(rest.clone(), &root))];
            if target != Target::String {
                pairs.push((cast(extracted.clone()), cast(rest.clone())));
                pairs.push((cast(unquoted(extracted.clone())), cast(unquoted(rest.clone()))));
            }
            if target == Target::Double {
                let convert = |of: Expr| Expr::new(ExprKind::Convert(Box::new(of)), ty, true);
                pairs.push((convert(extracted.clone()), convert(rest.clone())));
                pairs.push((convert(unquoted(extracted.clone())), convert(unquoted(rest.clone()))));
            }
            let columns = [
                whole.clone(),
                Form::Value(target).of_documents(&whole, &names),
                Form::Rest(target).of_documents(&whole, &names),
            ];
            for (of_document, of_rest) in pairs {
                let kind = ExprKind::Is { expr: Box::new(rest.clone()), test: IsTest::Null, negated: false };
                let branches = vec![(Expr::truth(kind, false), value.clone())];
                let case = ExprKind::Case { branches, otherwise: Some(Box::new(of_rest)) };
                let eval = |expr: &Expr| {
                    let context = EvalContext::new(0, 1);
                    let array = BatchProgram::compile(expr).unwrap().eval(&columns, whole.len(), &context).unwrap();
                    (array, context.take_warnings())
                };
                let (by_document, warnings) = eval(&of_document);
                let (by_case, others) = eval(&Expr::new(case, ty, true));
                prop_assert_eq!(&by_document, &by_case, "{:?}", of_document);
                prop_assert_eq!(format!("{warnings:?}"), format!("{others:?}"), "{:?}", of_document);
            }
        }
    }
}

fn parsed(texts: &[&str]) -> BinaryViewArray {
    texts.iter().map(|text| Some(parse(text).unwrap().encode().unwrap())).collect()
}

#[test]
fn paths_that_many_documents_have_of_one_kind_are_chosen() {
    let documents = parsed(&[
        r#"{"id": 1, "name": "x", "at": {"lat": 1.5, "deep": {"er": {"still": {"more": 1}}}}, "tags": [1], "mixed": 1}"#,
        r#"{"id": 2, "name": null, "at": {"lat": 2.5, "deep": {"er": {"still": 3}}}, "tags": [], "mixed": "one"}"#,
    ]);
    let chosen: Vec<_> =
        choose(&documents).into_iter().map(|path| (path.names.join("."), path.kind)).collect();
    assert!(chosen.contains(&("id".into(), Kind::Int)));
    assert!(chosen.contains(&("name".into(), Kind::String)));
    assert!(chosen.contains(&("at.lat".into(), Kind::Double)));
    // Arrays, values of several kinds, and what lies deeper than four names.
    assert_eq!(chosen.len(), 3, "{chosen:?}");
}

#[test]
fn how_many_paths_are_chosen_is_bounded() {
    let members: Vec<_> = (0..3000).map(|i| format!(r#""m{i}": {i}"#)).collect();
    let document = format!("{{{}}}", members.join(", "));
    assert_eq!(choose(&parsed(&[&document])).len(), MOST_PATHS);
}

#[test]
fn a_null_is_no_missing_member() {
    let documents = parsed(&[r#"{"a": 1}"#, r#"{"a": null}"#, "{}", r#"[{"a": 1}]"#, "1"]);
    let path = ChosenPath { names: ["a".into()].into(), kind: Kind::Int };
    let Shredded { values, marks } = extract(&documents, &path).unwrap();
    assert_eq!(values.null_count(), 4);
    let marks = marks.unwrap();
    assert_eq!(marks.as_primitive::<UInt8Type>().values(), &[0, mark::NULL, 0, 0, 0]);
    let documents = Form::Document.of_values(&values, Some(&marks), None, &path.names);
    assert!(Node::new(documents.as_binary_view().value(1)).is_null());
    assert!(documents.is_null(2));
}
