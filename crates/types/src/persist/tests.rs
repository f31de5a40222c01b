use avocet_base::{IndexId, TableId};
use proptest::prelude::*;

use super::definitions::*;
use super::*;
use crate::schema::{
    CheckDef, ColumnDef, DefaultValue, ForeignKeyDef, GeneratedDef, IndexDef, IndexKind, IndexPart,
    KeptKeyDef, KeptKeyKind, ReferentialAction, TableDef,
};
use crate::stated::{StatedOption, StatedOptions};
use crate::stored::{StoredColumn, StoredColumns};

fn members(names: &[&str]) -> Members {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Members::new(names, Collation::UTF8MB4_BIN).expect("distinct names")
}

fn table() -> TableDef {
    let column = |name: &str, ty, default| ColumnDef {
        name: name.into(),
        ty,
        nullable: default,
        default: default.then(|| DefaultValue::Const(Datum::Decimal(Decimal::new(-150, 2)))),
        on_update_now: !default,
        auto_increment: false,
        generated: None,
        invisible: false,
        collation_named: false,
        zerofill: None,
        comment: "ä".into(),
    };
    let collation = Collation::UTF8MB4_BIN;
    let types = [
        SqlType::Null,
        SqlType::Bool,
        SqlType::Int { width: IntWidth::W24, unsigned: true },
        SqlType::Decimal { precision: 65, scale: 30, unsigned: false },
        SqlType::FLOAT,
        SqlType::DOUBLE,
        SqlType::Float(RealFormat { unsigned: true, digits: None }),
        SqlType::Double(RealFormat { unsigned: false, digits: Some((10, 3)) }),
        SqlType::Char { len: 255, collation },
        SqlType::VarChar { len: 20, collation },
        SqlType::Text { size: LobSize::Long, collation },
        SqlType::Binary { len: 16 },
        SqlType::VarBinary { len: 300 },
        SqlType::Blob { size: LobSize::Tiny },
        SqlType::Date,
        SqlType::DateTime { fsp: 6 },
        SqlType::Timestamp { fsp: 3 },
        SqlType::Time { fsp: 0 },
        SqlType::Year,
        SqlType::Enum(members(&["a", "ü"])),
        SqlType::Set(members(&["x", "y", "z"])),
        SqlType::Bit { len: 64 },
        SqlType::Json,
        SqlType::GEOMETRY,
        SqlType::Geometry { ty: GeometryType::Point, srid: Some(4326) },
    ];
    TableDef {
        view: None,
        created_us: None,
        stated: StatedOptions::default(),
        stored: None,
        id: TableId(7),
        database: "d".into(),
        name: "t".into(),
        columns: types.iter().enumerate().map(|(i, ty)| column("c", *ty, i % 2 == 0)).collect(),
        indexes: vec![IndexDef {
            id: IndexId(9),
            name: "PRIMARY".into(),
            kind: IndexKind::Primary,
            parts: vec![
                IndexPart { column: 2, descending: false, prefix_len: None },
                IndexPart { column: 7, descending: true, prefix_len: Some(10) },
            ],
            generated: true,
            invisible: true,
            comment: String::new(),
        }],
        default_collation: collation,
        comment: String::new(),
        foreign_keys: vec![ForeignKeyDef {
            name: "t_ibfk_1".into(),
            columns: vec![3, 1],
            parent_database: "e".into(),
            parent_table: "p".into(),
            parent_columns: vec!["a".into(), "b".into()],
            on_delete: ReferentialAction::Cascade,
            on_update: ReferentialAction::SetNull,
        }],
        kept_keys: Vec::new(),
        partitioning: None,
        checks: vec![CheckDef { name: "t_chk_1".into(), condition: "(`c` > 0)".into(), enforced: false }],
    }
}

#[test]
fn tables_round_trip() {
    let with = TableDef { checks: Vec::new(), ..table() };
    let without = TableDef { foreign_keys: Vec::new(), ..with.clone() };
    let mut computed = without.clone();
    computed.columns[3].default = Some(DefaultValue::Expr("uuid()".into()));
    let mut generated = without.clone();
    let from = GeneratedDef { expr: "(`a` + 1)".into(), stored: true, index: None };
    generated.columns[4].generated = Some(from.clone());
    let mut functional = without.clone();
    let last = functional.columns.last_mut().expect("there are columns");
    last.generated = Some(GeneratedDef { index: Some("k".into()), ..from });
    let mut invisible = without.clone();
    invisible.columns[4].invisible = true;
    let fulltext = KeptKeyDef {
        name: "f".into(),
        columns: vec![9, 8],
        kind: KeptKeyKind::Fulltext { parser: Some("ngram".into()) },
        comment: String::new(),
    };
    let searched = TableDef { kept_keys: vec![fulltext], ..without.clone() };
    let partitioned = TableDef { partitioning: Some("HASH (`c`)".into()), ..table() };
    let mut changed = partitioned.clone();
    let columns = (0..changed.columns.len() as u16).rev();
    let columns = columns.map(|at| StoredColumn { position: at + 3, before: Datum::Int(at.into()) });
    let width = changed.columns.len() as u16 + 3;
    changed.stored = Some(Box::new(StoredColumns { columns: columns.collect(), width }));
    let mut filled = without.clone();
    filled.columns[3].zerofill = Some(5);
    let mut filled_and_changed = changed.clone();
    filled_and_changed.columns[3].zerofill = Some(20);
    let mut dropped = filled.clone();
    dropped.columns[2].default = Some(DefaultValue::Dropped);
    let mut commented = searched.clone();
    commented.indexes[0].comment = "of the table".into();
    commented.kept_keys[0].comment = "of words".into();
    let dated = TableDef { created_us: Some(1_700_000_000_000_000), ..commented.clone() };
    let dated_and_changed = TableDef { created_us: Some(-1), ..changed.clone() };
    let mut stated = without.clone();
    stated.stated.set(StatedOption::RowFormat, Some(4));
    stated.stated.set(StatedOption::PackKeys, Some(0));
    let versions = [
        (stated, WITH_TIMES),
        (dated, WITH_TIMES),
        (dated_and_changed, WITH_TIMES),
        (commented, WITH_KEY_COMMENTS),
        (dropped, WITH_DROPPED_DEFAULTS),
        (filled, WITH_ZEROFILL),
        (filled_and_changed, WITH_ZEROFILL),
        (changed, WITH_STORED_COLUMNS),
        (functional, WITH_HIDDEN_COLUMNS),
        (searched, WITH_PARTITIONS),
        (partitioned, WITH_PARTITIONS),
        (table(), WITH_EXPRESSIONS),
        (computed, WITH_EXPRESSIONS),
        (generated, WITH_EXPRESSIONS),
        (invisible, WITH_EXPRESSIONS),
        (with, WITH_FOREIGN_KEYS),
        (without, PLAIN),
    ];
    for (table, version) in versions {
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        assert_eq!(bytes[0], version);
        let mut from = Reader::new(&bytes);
        let back = TableDef::decode(&mut from).expect("valid");
        assert!(from.is_empty());
        assert_eq!(format!("{back:?}"), format!("{table:?}"));
    }
}

#[test]
fn values_round_trip() {
    for value in [
        Datum::Null,
        Datum::Int(-1),
        Datum::UInt(u64::MAX),
        Datum::Float(0.5),
        Datum::Double(-1e300),
        Datum::Decimal(Decimal::max_of(65, 30, true)),
        Datum::str("ü"),
        Datum::bytes(&[0, 255]),
        Datum::Date(-1),
        Datum::DateTime(i64::MIN),
        Datum::Time(1),
    ] {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        let back = Datum::decode(&mut Reader::new(&bytes)).expect("valid");
        assert_eq!(format!("{back:?}"), format!("{value:?}"));
    }
}

proptest! {
    #[test]
    fn damaged_definitions_never_panic(at in 0usize..1000, byte in any::<u8>(), len in 0usize..1000) {
        let mut bytes = Vec::new();
        table().encode(&mut bytes);
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(len.max(at + 1));
        let _ = TableDef::decode(&mut Reader::new(&bytes));
    }
}
