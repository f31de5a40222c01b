//! Typed tables: what is stored is what was given, and what does not fit is refused.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::sim::SimDisk;
use avocet_engine::typed::{Date, DateTime, NewTable, Table, Time};
use avocet_engine::types::{Collation, Datum, Decimal, IntWidth, LobSize, SqlType, Value};
use avocet_engine::*;

row! {
    #[derive(Debug, Clone, PartialEq)]
    struct Item { id: Option<u64>, kind: i32, name: String, price: Decimal, note: Option<String> }
}

row! {
    #[derive(Debug, PartialEq)]
    struct Stamp { id: u64, made: DateTime }
}

const PRICE: SqlType = SqlType::Decimal { precision: 8, scale: 2, unsigned: false };

fn engine() -> Arc<Engine> {
    let disk = SimDisk::new();
    let options = EngineOptions { env: disk.env(), background: false, ..EngineOptions::new("/data") };
    let engine = Engine::open(options).expect("opened");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    NewTable::new("d", "items")
        .auto_increment("id", SqlType::BIGINT_UNSIGNED)
        .column("kind", SqlType::Int { width: IntWidth::W32, unsigned: false })
        .column("name", NewTable::text(20))
        .column("price", PRICE)
        .nullable("note", NewTable::text(50))
        .created_at("made", SqlType::DateTime { fsp: 3 })
        .primary_key(&["id"])
        .unique("name", &["name"])
        .index("kind", &["kind", "price"])
        .create(&engine)
        .expect("created");
    engine
}

fn item(kind: i32, name: &str, cents: i128) -> Item {
    Item { id: None, kind, name: name.into(), price: Decimal::new(cents, 2), note: None }
}

/// Three items: 1 apple, 2 pear, 3 nut.
fn filled() -> (Arc<Engine>, Table<Item>) {
    let engine = engine();
    let items = engine.table::<Item>("d", "items").expect("it fits");
    let mut txn = engine.begin(TxnOptions::default());
    for (n, row) in [item(1, "apple", 120), item(1, "pear", 90), item(2, "nut", 5)].iter().enumerate() {
        assert_eq!(items.insert(&mut txn, row).expect("inserted"), Some(n as u64 + 1));
    }
    txn.commit().expect("logged").wait().expect("durable");
    (engine, items)
}

fn begin(engine: &Arc<Engine>) -> Txn {
    engine.begin(TxnOptions::default())
}

#[test]
fn rows_are_found_by_every_key() {
    let (engine, items) = filled();
    let mut txn = begin(&engine);
    let apple = Item { id: Some(1), ..item(1, "apple", 120) };
    assert_eq!(items.get(&mut txn, 1).expect("read"), Some(apple.clone()));
    assert_eq!(items.get(&mut txn, 9_u64).expect("read"), None);
    assert_eq!(items.index("name").get(&mut txn, "APPLE").expect("read"), Some(apple), "case does not count");
    let mut names = Vec::new();
    let mut note = |row: Item| {
        names.push(row.name);
        ControlFlow::Continue(())
    };
    let kind = items.index("kind");
    kind.scan(&mut txn, 1..=1, Direction::Ascending, &mut note).expect("scanned");
    kind.scan(&mut txn, (1, Decimal::new(1, 0)).., Direction::Descending, &mut note).expect("scanned");
    items.scan(&mut txn, 2..3, &mut note).expect("scanned");
    items.primary().scan_all(&mut txn, Direction::Descending, &mut note).expect("scanned");
    let expected = ["pear", "apple", "nut", "apple", "pear", "nut", "pear", "apple"];
    assert_eq!(names, expected);
}

#[test]
fn rows_are_put_changed_and_deleted() {
    let (engine, items) = filled();
    let mut txn = begin(&engine);
    items
        .put(&mut txn, &Item { id: Some(2), note: Some("ripe".into()), ..item(3, "pear", 95) })
        .expect("put");
    items.put(&mut txn, &Item { id: Some(9), ..item(3, "fig", 30) }).expect("put");
    items.put(&mut txn, &item(4, "plum", 31)).expect("put");
    assert!(items.update(&mut txn, 1, |row| row.kind = 7).expect("updated"));
    assert!(
        !items.update(&mut txn, 99, |_| unreachable!("there is no such row")).expect("nothing to update")
    );
    assert!(items.delete(&mut txn, 3).expect("deleted"));
    assert!(!items.delete(&mut txn, 3).expect("nothing to delete"));
    txn.commit().expect("logged").wait().expect("durable");
    let mut txn = begin(&engine);
    let mut all = Vec::new();
    let mut note = |row: Item| {
        all.push(format!("{} {} {} {:?}", row.id.unwrap_or(0), row.kind, row.name, row.note));
        ControlFlow::Continue(())
    };
    items.scan(&mut txn, 1.., &mut note).expect("scanned");
    assert_eq!(all, ["1 7 apple None", "2 3 pear Some(\"ripe\")", "9 3 fig None", "10 4 plum None"]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (engine, items) = filled();
    let mut txn = begin(&engine);
    let mut error = |row: &Item| items.insert(&mut txn, row).expect_err("refused").to_string();
    assert_eq!(error(&item(1, "apple", 1)), "duplicate entry 'apple' for key 'items.name'");
    assert_eq!(error(&item(1, &"x".repeat(21), 1)), "Data too long for column 'name' at row 1");
    let exact = Item { price: Decimal::new(1_234, 3), ..item(1, "x", 0) };
    assert_eq!(error(&exact), "Data truncated for column 'price' at row 1", "nothing is rounded");
    assert_eq!(error(&item(1, "x", 100_000_000)), "Out of range value for column 'price' at row 1");
    assert!(items.get(&mut txn, -1).is_err(), "no key of the table");
    assert!(items.index("nope").get(&mut txn, 1).is_err());
    assert!(matches!(items.index("kind").get(&mut txn, (1, 2, 3)), Err(EngineError::WrongShape { .. })));
}

#[test]
fn structs_must_fit_their_tables() {
    row! { struct Narrow { id: u32 } }
    row! { struct Unknown { nope: i64 } }
    row! { struct NotNull { note: String } }
    let engine = engine();
    let why = |result: Result<()>| result.expect_err("refused").to_string();
    let wrong = "items: column id is of another type, or may be NULL";
    assert_eq!(why(engine.table::<Narrow>("d", "items").map(drop)), wrong);
    assert_eq!(why(engine.table::<Unknown>("d", "items").map(drop)), "items: it has no column nope");
    assert!(engine.table::<NotNull>("d", "items").is_err());
    assert!(matches!(engine.table::<Item>("d", "other"), Err(EngineError::NoSuchTable(..))));
}

#[test]
fn defaults_fill_what_a_struct_leaves_out() {
    let (engine, _) = filled();
    let stamps = engine.table::<Stamp>("d", "items").expect("it fits");
    let mut txn = begin(&engine);
    let made = stamps.get(&mut txn, 1).expect("read").expect("there").made;
    assert!(made.0 >= avocet_base::env::sim::SimClock::EPOCH_US - 1000 && made.0 % 1000 == 0, "{made:?}");
    let missing = stamps.insert(&mut txn, &Stamp { id: 50, made });
    assert_eq!(missing.expect_err("refused").to_string(), "Field 'kind' doesn't have a default value");
}

#[test]
fn a_table_that_ddl_has_changed_is_found_again() {
    let (engine, items) = filled();
    engine.drop_index("d", "items", "name", Duration::from_secs(1)).expect("dropped");
    let mut txn = begin(&engine);
    items.insert(&mut txn, &item(5, "apple", 1)).expect("the name may come twice now");
    txn.commit().expect("logged").wait().expect("durable");
    engine.drop_table("d", "items", Duration::from_secs(1)).expect("dropped");
    let gone = items.get(&mut begin(&engine), 1);
    assert!(matches!(gone, Err(EngineError::NoSuchTable(..))));
}

#[test]
fn values_of_all_types_come_back() {
    row! {
        #[derive(Debug, Clone, PartialEq)]
        struct All {
            id: i8, yes: bool, small: u16, float: f32, double: f64, bytes: Vec<u8>, text: String, day: Date, time: Time,
            at: DateTime, none: Option<i64>
        }
    }
    let engine = engine();
    let utf8 = Collation::UTF8MB4_BIN;
    NewTable::new("d", "all")
        .column("id", SqlType::Int { width: IntWidth::W8, unsigned: false })
        .column("yes", SqlType::Bool)
        .column("small", SqlType::Int { width: IntWidth::W16, unsigned: true })
        .column("float", SqlType::FLOAT)
        .column("double", SqlType::DOUBLE)
        .column("bytes", SqlType::Blob { size: LobSize::Normal })
        .column("text", SqlType::Text { size: LobSize::Normal, collation: utf8 })
        .column("day", SqlType::Date)
        .column("time", SqlType::Time { fsp: 6 })
        .column("at", SqlType::Timestamp { fsp: 6 })
        .nullable("none", SqlType::BIGINT)
        .primary_key(&["id"])
        .create(&engine)
        .expect("created");
    let all = engine.table::<All>("d", "all").expect("it fits");
    let row = All {
        id: -128,
        yes: true,
        small: u16::MAX,
        float: 1.5,
        double: -2.25,
        bytes: vec![0, 255],
        text: "Grüße".into(),
        day: Date(20_000),
        time: Time(-3_600_000_001),
        at: DateTime(1_700_000_000_123_456),
        none: None,
    };
    let mut txn = begin(&engine);
    all.insert(&mut txn, &row).expect("inserted");
    assert_eq!(all.get(&mut txn, -128_i8).expect("read"), Some(row.clone()));
    row! { struct Any { id: Value, none: Value } }
    let any = engine.table::<Any>("d", "all").expect("it fits");
    let found = any.get(&mut txn, -128).expect("read").expect("there");
    assert!(matches!((found.id, found.none), (Datum::Int(-128), Datum::Null)));
}
