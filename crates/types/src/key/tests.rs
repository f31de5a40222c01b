use avocet_base::{IndexId, TableId};
use proptest::prelude::*;

use super::*;
use crate::compare::sort_order;
use crate::row::RowLayout;
use crate::schema::{ColumnDef, IndexDef, IndexKind, IndexPart};
use crate::sql_type::{IntWidth, LobSize};
use crate::{Decimal, Value};

fn table(
    types: &[SqlType],
    nullable: bool,
    descending: bool,
    prefix_len: Option<u32>,
) -> (TableDef, KeyLayout) {
    let column = |ty: &SqlType| ColumnDef {
        name: "c".into(),
        ty: *ty,
        nullable,
        default: None,
        on_update_now: false,
        auto_increment: false,
        generated: None,
        invisible: false,
        collation_named: false,
        zerofill: None,
        comment: String::new(),
    };
    let part = |column| IndexPart { column, descending, prefix_len };
    let index = IndexDef {
        id: IndexId(1),
        name: "i".into(),
        kind: IndexKind::Secondary,
        parts: (0..types.len()).map(part).collect(),
        generated: false,
        invisible: false,
        comment: String::new(),
    };
    let table = TableDef {
        id: TableId(1),
        database: "d".into(),
        name: "t".into(),
        columns: types.iter().map(column).collect(),
        indexes: vec![],
        default_collation: Collation::DEFAULT,
        comment: String::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        kept_keys: Vec::new(),
        partitioning: None,
        view: None,
        created_us: None,
        stated: Default::default(),
        stored: None,
    };
    let layout = KeyLayout::new(&table, &index.parts);
    (table, layout)
}

fn key(layout: &KeyLayout, values: &[Value]) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(layout.encode_prefix(values, &mut key), "{values:?}");
    key
}

fn members(count: usize) -> crate::Members {
    let names = (0..count).map(|n| format!("m{n}")).collect();
    crate::Members::new(names, Collation::DEFAULT).expect("distinct names")
}

fn types() -> impl Strategy<Value = SqlType> {
    let widths = [IntWidth::W8, IntWidth::W16, IntWidth::W24, IntWidth::W32, IntWidth::W64];
    let strings =
        crate::collation::collations().iter().filter(|c| c.name != "binary").map(|c| Collation(c.id));
    prop_oneof![
        (proptest::sample::select(widths.to_vec()), any::<bool>())
            .prop_map(|(width, unsigned)| SqlType::Int { width, unsigned }),
        proptest::sample::select(vec![(9, 2), (18, 0), (30, 10), (65, 30)])
            .prop_map(|(precision, scale)| SqlType::Decimal { precision, scale, unsigned: false }),
        proptest::sample::select(strings.collect::<Vec<_>>())
            .prop_map(|collation| SqlType::VarChar { len: 20, collation }),
        Just(SqlType::Blob { size: LobSize::Normal }),
        proptest::sample::select(vec![3, 300]).prop_map(|count| SqlType::Enum(members(count))),
        proptest::sample::select(vec![3, 20, 64]).prop_map(|count| SqlType::Set(members(count))),
        (1..=64u8).prop_map(|len| SqlType::Bit { len }),
        Just(SqlType::FLOAT),
        Just(SqlType::DOUBLE),
        Just(SqlType::Date),
        Just(SqlType::DateTime { fsp: 6 }),
        Just(SqlType::Time { fsp: 6 }),
    ]
}

fn value(ty: SqlType) -> BoxedStrategy<Value> {
    let some = match ty {
        SqlType::Int { .. } | SqlType::Enum(_) | SqlType::Set(_) | SqlType::Bit { .. } => {
            let (min, max) = ty.int_range().expect("an integer type");
            let unsigned = ty.is_unsigned();
            prop_oneof![min..=max, (-3i128..3).prop_map(move |v| v.max(min))]
                .prop_map(move |v| if unsigned { Datum::UInt(v as u64) } else { Datum::Int(v as i64) })
                .boxed()
        }
        SqlType::Decimal { precision, scale, .. } => {
            let max = crate::decimal::POW10[usize::from(precision.min(37))];
            (-max + 1..max).prop_map(move |v| Datum::Decimal(Decimal::new(v, scale))).boxed()
        }
        SqlType::VarChar { .. } => "[a-cA-C ÄßЖя\t\0]{0,6}".prop_map(|s| Datum::Str(s.into())).boxed(),
        SqlType::Blob { .. } => {
            proptest::collection::vec(prop_oneof![Just(0u8), Just(255u8), any::<u8>()], 0..5)
                .prop_map(|b| Datum::Bytes(b.into()))
                .boxed()
        }
        SqlType::Float(_) => any::<i16>().prop_map(|v| Datum::Float(f32::from(v) / 8.0)).boxed(),
        SqlType::Double(_) => {
            (proptest::num::f64::NORMAL | proptest::num::f64::ZERO).prop_map(Datum::Double).boxed()
        }
        SqlType::Date => (-1000..1000i32).prop_map(Datum::Date).boxed(),
        SqlType::DateTime { .. } => any::<i32>().prop_map(|v| Datum::DateTime(v.into())).boxed(),
        _ => any::<i32>().prop_map(|v| Datum::Time(v.into())).boxed(),
    };
    prop_oneof![1 => Just(Datum::Null), 9 => some].boxed()
}

fn rows() -> impl Strategy<Value = (Vec<SqlType>, Vec<Value>, Vec<Value>)> {
    proptest::collection::vec(types(), 1..4).prop_flat_map(|types| {
        let row = || types.iter().map(|ty| value(*ty)).collect::<Vec<_>>();
        (Just(types.clone()), row(), row())
    })
}

proptest! {
    #[test]
    fn key_order_is_value_order((types, a, b) in rows(), shared in 0usize..3, descending in any::<bool>()) {
        // Often with equal first columns.
        let mut b = b;
        let shared = shared.min(types.len());
        b[..shared].clone_from_slice(&a[..shared]);
        let (_, layout) = table(&types, true, descending, None);
        let collation = |ty: &SqlType| ty.collation().unwrap_or(Collation::BINARY);
        let order = (0..types.len())
            .map(|i| sort_order(&a[i], &b[i], collation(&types[i])))
            .find(|o| o.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal);
        let wanted = if descending { order.reverse() } else { order };
        prop_assert_eq!(key(&layout, &a).cmp(&key(&layout, &b)), wanted);
        for (x, y) in [(&a, &b), (&b, &a)] {
            let mut ends = Vec::new();
            let lens: Vec<_> = (1..=x.len()).map(|parts| key(&layout, &x[..parts]).len()).collect();
            prop_assert!(layout.ends(&[&key(&layout, x)[..], &[0, 2, 0xff]].concat(), x.len(), &mut ends));
            prop_assert_eq!(&ends, &lens);
            let (x, y) = (key(&layout, x), key(&layout, y));
            prop_assert!(x == y || !x.starts_with(&y));
        }
    }

    #[test]
    fn rows_and_values_have_the_same_keys((types, row, _) in rows(), prefix in proptest::option::of(1u32..4)) {
        let (_, layout) = table(&types, true, false, prefix);
        let rows = RowLayout::new(&types);
        let mut image = Vec::new();
        rows.encode(&row, &mut image);
        let view = rows.view(&image).expect("valid");
        let mut of_row = Vec::new();
        layout.encode_row(&view, &mut of_row);
        prop_assert_eq!(of_row, key(&layout, &row));
        prop_assert_eq!(layout.has_null(&view), row.iter().any(Datum::is_null));
    }

    #[test]
    fn a_row_has_its_own_key_and_no_other((types, row, other) in rows(), descending in any::<bool>(), nullable in any::<bool>()) {
        prop_assume!(nullable || !row.iter().any(Datum::is_null));
        let (_, layout) = table(&types, nullable, descending, None);
        let rows = RowLayout::new(&types);
        let mut image = Vec::new();
        rows.encode(&row, &mut image);
        let view = rows.view(&image).expect("valid");
        let own = key(&layout, &row);
        let has = |key: &[u8]| layout.has_key(&view, key, &mut Vec::new());
        prop_assert!(has(&own));
        prop_assert!(!has(&own[..own.len() - 1]) && !has(&[&own[..], &[0]].concat()));
        let mut others = Vec::new();
        if layout.encode_prefix(&other, &mut others) {
            prop_assert_eq!(has(&others), others == own);
        }
    }

    #[test]
    fn a_successor_is_after_all_that_begin_with_the_key(prefix in proptest::collection::vec(any::<u8>(), 0..4), tail in proptest::collection::vec(any::<u8>(), 0..4)) {
        let mut next = prefix.clone();
        if successor(&mut next) {
            let longer = [&prefix[..], &tail].concat();
            prop_assert!(longer < next && prefix < next);
        } else {
            prop_assert!(prefix.iter().all(|b| *b == 0xff));
        }
    }
}

#[test]
fn values_that_a_column_cannot_hold_have_no_key() {
    let (_, layout) = table(&[SqlType::Int { width: IntWidth::W8, unsigned: true }], false, false, None);
    let has_key = |value: Value| layout.encode_prefix(&[value], &mut Vec::new());
    assert!(has_key(Datum::Int(255)) && has_key(Datum::UInt(0)));
    assert!(!has_key(Datum::Int(256)) && !has_key(Datum::Int(-1)) && !has_key(Datum::Null));
    assert!(!has_key(Datum::str("1")));
    assert_eq!(key(&layout, &[Datum::Int(7)]), [7], "no null byte in a NOT NULL column");
    let (_, layout) =
        table(&[SqlType::Decimal { precision: 5, scale: 2, unsigned: false }], false, false, None);
    let decimal = |text: &str| Datum::Decimal(text.parse().expect("a decimal"));
    assert_eq!(key(&layout, &[decimal("1.5")]), key(&layout, &[decimal("1.500")]));
    assert!(!layout.encode_prefix(&[decimal("1.234")], &mut Vec::new()));
}

#[test]
fn integers_have_the_keys_of_their_values() {
    for (width, unsigned, descending) in [
        (IntWidth::W8, false, false),
        (IntWidth::W16, true, true),
        (IntWidth::W24, false, true),
        (IntWidth::W32, true, false),
        (IntWidth::W64, false, false),
        (IntWidth::W64, true, false),
    ] {
        for nullable in [false, true] {
            let (_, layout) = table(&[SqlType::Int { width, unsigned }], nullable, descending, None);
            for value in [0, 1, -1, 127, 255, 256, i64::from(i32::MAX) + 1, i64::MIN, i64::MAX] {
                let (mut plain, mut other) = (Vec::new(), Vec::new());
                let fits = layout.encode_integers(&[value], &mut plain);
                assert_eq!(fits, layout.encode_prefix(&[Datum::Int(value)], &mut other), "{value}");
                assert!(!fits || plain == other, "{value} as {width:?}");
            }
        }
    }
}

#[test]
fn like_prefixes_bound_their_strings() {
    let ty = SqlType::VarChar { len: 20, collation: Collation::DEFAULT };
    let (_, layout) = table(&[ty], true, false, None);
    let mut low = Vec::new();
    assert!(layout.encode_string_prefix(0, "ab", &mut low));
    let mut high = low.clone();
    assert!(successor(&mut high));
    for (text, inside) in [("ab", true), ("ABBA", true), ("aB\u{301}x", true), ("ac", false), ("a", false)] {
        let key = key(&layout, &[Datum::str(text).into_owned()]);
        assert_eq!((low.as_slice()..high.as_slice()).contains(&key.as_slice()), inside, "{text}");
    }
}

/// An ENUM's keys go by number, whatever the names.
#[test]
fn enums_order_by_number() {
    let names = vec!["z".to_owned(), "a".to_owned(), "m".to_owned()];
    let ty = SqlType::Enum(crate::Members::new(names, Collation::DEFAULT).expect("distinct names"));
    let (_, layout) = table(&[ty], true, false, None);
    let keys: Vec<_> = (0..4).map(|number| key(&layout, &[Datum::UInt(number)])).collect();
    assert!(keys.is_sorted() && key(&layout, &[Datum::Null]) < keys[0]);
    // What is none of its numbers has no key.
    assert!(!layout.encode_prefix(&[Datum::UInt(crate::members::NO_MEMBER)], &mut Vec::new()));
}
