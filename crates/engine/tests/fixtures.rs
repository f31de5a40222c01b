//! Data directories of earlier formats: each must open, check clean and have the rows that it had.
//!
//! ```text
//!  tests/fixtures/<name>/data        the directory, as a process left it that was killed
//!  tests/fixtures/<name>/rows.txt    what its tables hold
//! ```
//! A change of the format adds a directory: `AVOCET_WRITE_FIXTURE=<name>` makes this test write one.

use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use avocet_engine::*;
use avocet_types::*;

fn fixtures() -> PathBuf {
    // Asked when the test runs: one target folder serves clones in several places.
    let of_crate = std::env::var_os("CARGO_MANIFEST_DIR");
    PathBuf::from(of_crate.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())).join("tests/fixtures")
}

fn options(data: &Path) -> EngineOptions {
    EngineOptions {
        log_segment_bytes: 16 << 10,
        rows_per_segment: RowsPerSegment::new(64),
        background: false,
        ..EngineOptions::new(data)
    }
}

fn types() -> Vec<(&'static str, SqlType)> {
    let collation = Collation::UTF8MB4_BIN;
    vec![
        ("id", SqlType::BIGINT),
        ("small", SqlType::Int { width: IntWidth::W16, unsigned: true }),
        ("price", SqlType::Decimal { precision: 12, scale: 2, unsigned: false }),
        ("large", SqlType::Decimal { precision: 50, scale: 10, unsigned: false }),
        ("ratio", SqlType::DOUBLE),
        ("name", SqlType::VarChar { len: 60, collation }),
        ("bytes", SqlType::VarBinary { len: 30 }),
        ("day", SqlType::Date),
        ("at", SqlType::DateTime { fsp: 6 }),
        ("span", SqlType::Time { fsp: 0 }),
    ]
}

fn definition(name: &str) -> TableDef {
    let column = |(n, (name, ty)): (usize, (&str, SqlType))| match n {
        0 => ColumnDef::new(name, ty),
        _ => ColumnDef::new(name, ty).nullable(),
    };
    let columns = types().into_iter().enumerate().map(column).collect();
    let by_name = IndexDef::new("by_name", IndexKind::Unique, &[5]);
    let by_name = IndexDef { comment: "no two of a name".into(), ..by_name };
    TableDef::new(
        "d",
        name,
        columns,
        vec![IndexDef::primary(&[0]), IndexDef::secondary("by_small", &[1]), by_name],
    )
}

/// With expressions of every kind, and a constraint that the log changes behind the checkpoint.
fn computed_definition(name: &str) -> TableDef {
    let def = definition(name);
    let check = |condition: &str, enforced| CheckDef {
        name: format!("{name}_chk_{enforced}"),
        condition: condition.into(),
        enforced,
    };
    let mut columns = def.columns.clone();
    columns[1].default = Some(DefaultValue::Expr("(`id` % 40)".into()));
    columns[4].generated = Some(GeneratedDef { expr: "(`id` / 8)".into(), stored: false, index: None });
    columns[8].generated =
        Some(GeneratedDef { expr: "cast(`day` as datetime)".into(), stored: true, index: None });
    let checks = vec![check("(`small` < 40)", true), check("(`name` <> _utf8mb4'')", false)];
    let mut stated = stated::StatedOptions::default();
    stated.set(stated::StatedOption::MaxRows, Some(1000));
    TableDef { columns, checks, created_us: Some(1_700_000_000_000_000), stated, ..def }
}

fn values(id: i64) -> Vec<Value> {
    let of = |n: i64, value: Value| if (id + n) % 11 == 0 { Datum::Null } else { value };
    let large = format!("{}.5", i128::from(id) * 1_000_000_007_000_000_009).parse().expect("a number");
    vec![
        Datum::Int(id),
        of(1, Datum::UInt((id % 40) as u64)),
        of(2, Datum::Decimal(format!("{}.{:02}", id * 3, id % 100).parse().expect("a number"))),
        of(3, Datum::Decimal(large)),
        of(4, Datum::Double(id as f64 / 8.0)),
        Datum::Str(format!("náme {id} {}", "x".repeat((id % 30) as usize)).into()),
        of(5, Datum::Bytes(vec![id as u8; (id % 20) as usize].into())),
        of(6, Datum::Date(19_000 + id as i32)),
        of(7, Datum::DateTime(1_600_000_000_000_000 + id * 1_000_003)),
        of(8, Datum::Time(id * 1_000_000)),
    ]
}

fn table(engine: &Engine, name: &str) -> Arc<TableHandle> {
    engine.catalog().table("d", name).expect("is there").clone()
}

fn commit(engine: &Arc<Engine>, work: impl FnOnce(&mut Txn)) {
    let mut txn = engine.begin(TxnOptions::default());
    work(&mut txn);
    txn.commit().expect("logged").wait().expect("durable");
}

fn insert(engine: &Arc<Engine>, name: &str, ids: std::ops::Range<i64>) {
    let table = table(engine, name);
    commit(engine, |txn| {
        ids.for_each(|id| {
            txn.insert(&table, &values(id)).expect("inserted");
        });
    });
}

fn load(engine: &Arc<Engine>, name: &str, ids: std::ops::Range<i64>) {
    let table = table(engine, name);
    let mut builders: Vec<_> = types().iter().map(|(_, ty)| ColumnBuilder::new(ty, 100)).collect();
    ids.for_each(|id| {
        builders.iter_mut().zip(&values(id)).for_each(|(builder, value)| builder.append(value))
    });
    let arrays: Vec<ArrayRef> = builders.iter_mut().map(ColumnBuilder::finish).collect();
    let fields: Vec<_> = types().iter().map(|(name, ty)| Field::new(*name, ty.arrow_type(), true)).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("of the types");
    commit(engine, |txn| {
        let mut bulk = txn.bulk_insert(&table).expect("begun");
        bulk.push(txn, &batch).expect("loaded");
        bulk.finish(txn).expect("loaded");
    });
}

/// The rows with ids for which `wanted` holds.
fn rows(engine: &Arc<Engine>, name: &str, wanted: impl Fn(i64) -> bool) -> Vec<RowId> {
    let (table, mut txn) = (table(engine, name), engine.begin(TxnOptions::default()));
    let mut found = Vec::new();
    txn.table_rows(&table, ReadMode::Snapshot, &mut |row, values| {
        if let Datum::Int(id) = values.get(0)
            && wanted(id)
        {
            found.push(row);
        }
        ControlFlow::Continue(())
    })
    .expect("read");
    found
}

fn delete(engine: &Arc<Engine>, name: &str, wanted: impl Fn(i64) -> bool) {
    let (found, table) = (rows(engine, name, wanted), table(engine, name));
    commit(engine, |txn| found.iter().for_each(|&row| assert!(txn.delete(&table, row).expect("deleted"))));
}

fn update(engine: &Arc<Engine>, name: &str, wanted: impl Fn(i64) -> bool) {
    let (found, table) = (rows(engine, name, wanted), table(engine, name));
    let changes = [(4, Datum::Double(-1.5)), (6, Datum::Bytes((&b"changed"[..]).into()))];
    commit(engine, |txn| {
        found.iter().for_each(|&row| assert!(txn.update(&table, row, &changes).expect("updated").is_some()));
    });
}

/// Blocks, deletes, pages, a catalog of several kinds of definitions; then a log with the same behind the checkpoint.
fn write(data: &Path) {
    let engine = Engine::open(options(data)).expect("opens");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    for name in ["a", "b", "gone"] {
        engine.create_table(definition(name)).expect("created");
        insert(&engine, name, 0..90);
    }
    engine.create_table(computed_definition("computed")).expect("created");
    insert(&engine, "computed", 0..20);
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    load(&engine, "a", 1000..1100);
    delete(&engine, "a", |id| (5..15).contains(&id) || (1020..1025).contains(&id));
    update(&engine, "a", |id| id % 13 == 0);
    insert(&engine, "a", 100..150);
    engine.drop_index("d", "b", "by_small", std::time::Duration::ZERO).expect("dropped");
    engine.drop_table("d", "gone", std::time::Duration::ZERO).expect("dropped");
    engine.put_user(UserDef::new("ann", "10.%")).expect("put");
    engine.checkpoint().expect("written");
    let alteration = engine.alter("d", "computed", &[], None, std::time::Duration::ZERO).expect("held");
    let mut def = (*alteration.table().def).clone();
    def.checks.remove(0);
    let (foreign, rest) = (NewForeignKeys::unchanged(&def), AlterRest::default());
    alteration.change_in_place(&engine, &def, foreign, rest, None).expect("changed");
    engine.create_table(computed_definition("later")).expect("created");
    insert(&engine, "b", 200..230);
    delete(&engine, "b", |id| id % 7 == 0);
    delete(&engine, "a", |id| id % 17 == 0);
    update(&engine, "a", |id| id % 19 == 0);
    load(&engine, "b", 3000..3070);
    engine.rename_table(("d", "b"), ("d", "c"), true, std::time::Duration::ZERO).expect("renamed");
    engine.collect_all_garbage();
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    insert(&engine, "c", 400..410);
}

/// All rows of all tables by their keys, along the primary key, and how many each index has.
fn contents(engine: &Arc<Engine>) -> String {
    let mut text = String::new();
    let catalog = engine.catalog();
    let mut tables: Vec<_> = catalog.tables().collect();
    tables.sort_by(|a, b| a.def.name.cmp(&b.def.name));
    for table in tables {
        let txn = engine.begin(TxnOptions::default());
        writeln!(text, "{}: {} rows", table.def.name, table.row_count()).expect("grows");
        for column in table.def.columns.iter().filter(|column| column.is_computed()) {
            let (name, default, from) = (&column.name, &column.default, &column.generated);
            writeln!(text, "  {name}: {default:?}, {from:?}").expect("grows");
        }
        for check in &table.def.checks {
            writeln!(text, "  {check:?}").expect("grows");
        }
        for index in table.indexes() {
            writeln!(text, "  {}: {} entries", index.def.name, index.entries()).expect("grows");
        }
        let (index, mut scratch) = (&table.indexes()[0], ReadScratch::default());
        let visit = &mut |_, row: RowRef<'_>| {
            let values: Vec<_> = (0..table.def.columns.len()).map(|c| format!("{:?}", row.get(c))).collect();
            writeln!(text, "  {}", values.join(", ")).expect("grows");
            ControlFlow::Continue(())
        };
        txn.index_scan(table, index, &KeyRange::all(), Direction::Ascending, &mut scratch, visit)
            .expect("read");
    }
    let accounts: Vec<_> = catalog.users().map(|user| format!("{}@{}", user.name, user.host)).collect();
    writeln!(text, "accounts: {}", accounts.join(", ")).expect("grows");
    text
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("is there") {
        let entry = entry.expect("listed");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("known").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("copied")),
        }
    }
}

fn write_fixture(name: &str) {
    let made = tempfile::tempdir().expect("made");
    let (data, to) = (made.path().join("data"), fixtures().join(name));
    write(&data);
    fs::create_dir_all(&to).expect("made");
    copy(&data, &to.join("data"));
    let engine = Engine::open(options(&data)).expect("opens");
    fs::write(to.join("rows.txt"), contents(&engine)).expect("written");
}

#[test]
fn directories_of_all_formats_open_and_hold_what_they_held() {
    if let Ok(name) = std::env::var("AVOCET_WRITE_FIXTURE") {
        write_fixture(&name);
    }
    let mut seen = 0;
    for fixture in fs::read_dir(fixtures()).expect("is there") {
        let fixture = fixture.expect("listed").path();
        let name = fixture.file_name().expect("a name").to_string_lossy().into_owned();
        let rows = fs::read_to_string(fixture.join("rows.txt")).expect("is there");
        let scratch = tempfile::tempdir().expect("made");
        let data = scratch.path().join("data");
        copy(&fixture.join("data"), &data);
        // As it is; then after this release has written it all anew, twice, so that what it has read is not all there is.
        for again in 0..3 {
            let report = check(options(&data)).expect("can be looked at");
            assert_eq!(report.findings, Vec::<String>::new(), "{name}, {again}");
            let engine = Engine::open(options(&data)).expect("opens");
            assert_eq!(contents(&engine), rows, "{name}, {again}");
            engine.checkpoint().expect("written");
            engine.freeze_all().expect("frozen");
            engine.checkpoint().expect("written");
        }
        seen += 1;
    }
    assert!(seen >= 2, "{seen} directories");
}
