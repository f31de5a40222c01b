//! Plans run over an engine on a simulated disk: TPC-C's statements, what DML does, and random queries whose answers
//! must not depend on the indexes that there are.

mod bounds;
mod random;
mod tpcc;

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use avocet_base::env::sim::SimDisk;
use avocet_base::{Env, IndexId, TableId};
use avocet_channel::{Interrupt, OkReply, SinkError, Status};
use avocet_engine::{Engine, EngineOptions, TxnOptions};
use avocet_sql::bind::{CatalogView, TableStatistics, bind_query};
use avocet_sql::parse::ast::TypeSpec;
use avocet_sql::parse::ast::VariableScope;
use avocet_sql::parse::statement::{DefaultSpec, IndexSpecKind};
use avocet_sql::parse::{StatementKind, parse};
use avocet_types::convert::store;
use avocet_types::error::ErrorCode;
use avocet_types::expr::{EvalContext, Expr, SqlMode, Typer};
use avocet_types::temporal::TimeZone;
use avocet_types::text::to_text;
use avocet_types::{
    Collation, ColumnDef, Datum, DefaultValue, IndexDef, IndexKind, IndexPart, IntWidth, SqlType, TableDef,
};

use super::*;

struct World {
    engine: Arc<Engine>,
    scratch: PointScratch,
    now: i64,
}

struct View(Arc<Catalog>);

impl CatalogView for View {
    fn current_database(&self) -> Option<&str> {
        Some("d")
    }

    fn has_database(&self, name: &str) -> bool {
        self.0.database(name).is_some()
    }

    fn table(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.0.table(database, name).map(|t| t.def.clone())
    }

    fn statistics(&self, _: &TableDef) -> Option<Arc<TableStatistics>> {
        None
    }

    fn typer(&self) -> Typer {
        Typer::default()
    }

    fn system_variable(&self, _: VariableScope, name: &str) -> Result<Expr, SqlError> {
        Err(ErrorCode::UNKNOWN_SYSTEM_VARIABLE.with(&[&name]))
    }

    fn user_variable(&self, _: &str) -> Expr {
        Expr::null()
    }

    fn collation(&self, name: &str) -> Option<Collation> {
        Collation::by_name(name)
    }
}

/// Keeps rows as text.
#[derive(Default)]
struct Rows {
    types: Vec<SqlType>,
    rows: Vec<String>,
}

impl ResultSink for Rows {
    fn columns(&mut self, columns: &[OutputColumn], _: TimeZone) -> Result<(), SinkError> {
        self.types = columns.iter().map(|c| c.ty).collect();
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        let shown = row.iter().zip(&self.types).map(|(value, ty)| {
            to_text(value, ty, TimeZone::UTC).map_or_else(|| "NULL".to_owned(), |text| text.into_owned())
        });
        self.rows.push(shown.collect::<Vec<_>>().join(" "));
        Ok(())
    }

    fn batch(&mut self, _: &RecordBatch, _: usize) -> Result<usize, SinkError> {
        unreachable!("plans send rows")
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

fn type_of(spec: &TypeSpec) -> SqlType {
    let collation = match spec.collation.as_deref() {
        Some(name) => Collation::by_name(name).expect("known"),
        None => Collation::UTF8MB4_BIN,
    };
    let arg = |n: usize, default: u64| spec.args.get(n).copied().unwrap_or(default);
    match spec.name.as_str() {
        "INT" => SqlType::Int { width: IntWidth::W32, unsigned: spec.unsigned },
        "TINYINT" => SqlType::Int { width: IntWidth::W8, unsigned: spec.unsigned },
        "BIGINT" => SqlType::Int { width: IntWidth::W64, unsigned: spec.unsigned },
        "VARCHAR" => SqlType::VarChar { len: arg(0, 1) as u32, collation },
        "CHAR" => SqlType::Char { len: arg(0, 1) as u32, collation },
        "DECIMAL" => {
            SqlType::Decimal { precision: arg(0, 10) as u8, scale: arg(1, 0) as u8, unsigned: false }
        }
        "DOUBLE" => SqlType::DOUBLE,
        "FLOAT" => SqlType::FLOAT,
        "DATE" => SqlType::Date,
        "DATETIME" => SqlType::DateTime { fsp: arg(0, 0) as u8 },
        "TIMESTAMP" => SqlType::Timestamp { fsp: arg(0, 0) as u8 },
        other => panic!("no type {other} in tests"),
    }
}

fn default_value(spec: &DefaultSpec) -> &avocet_sql::parse::ast::ExprKind {
    match spec {
        DefaultSpec::Value(value) => &value.kind,
        DefaultSpec::Expr(expr) => panic!("no {expr:?} as a default in tests"),
    }
}

/// A definition from CREATE TABLE, as far as the tests need it.
fn table_of(sql: &str) -> TableDef {
    let statement = parse(sql.as_bytes(), SqlMode::DEFAULT).expect("parses").remove(0);
    let StatementKind::CreateTable(create) = statement.kind else { panic!("CREATE TABLE wanted") };
    let columns: Vec<ColumnDef> = create
        .columns
        .iter()
        .map(|c| ColumnDef {
            name: c.name.name.clone(),
            ty: type_of(&c.ty),
            nullable: c.nullable.unwrap_or(true) && !c.primary_key,
            default: c.default.as_ref().map(|d| match default_value(d) {
                avocet_sql::parse::ast::ExprKind::Integer(v) => {
                    let context = ConvertContext::STRICT_UTC;
                    let value = store(Datum::Int(*v as i64), &SqlType::BIGINT, &type_of(&c.ty), &context);
                    DefaultValue::Const(value.expect("fits").value)
                }
                avocet_sql::parse::ast::ExprKind::Null => DefaultValue::Const(Datum::Null),
                _ => DefaultValue::Now,
            }),
            on_update_now: c.on_update_now,
            auto_increment: c.auto_increment,
            generated: None,
            invisible: false,
            collation_named: false,
            zerofill: None,
            comment: String::new(),
        })
        .collect();
    let column = |name: &str| columns.iter().position(|c| c.name == name).expect("a column");
    let mut indexes: Vec<IndexDef> = create
        .indexes
        .iter()
        .map(|spec| {
            let (kind, name) = match spec.kind {
                IndexSpecKind::Primary => (IndexKind::Primary, "PRIMARY".to_owned()),
                IndexSpecKind::Unique => (IndexKind::Unique, "u".to_owned()),
                _ => (IndexKind::Secondary, "k".to_owned()),
            };
            let parts = spec.parts.iter().map(|part| match part {
                avocet_sql::parse::statement::IndexPartSpec::Column { name, prefix_len, descending } => {
                    IndexPart { column: column(&name.name), descending: *descending, prefix_len: *prefix_len }
                }
                other => panic!("{other:?}"),
            });
            IndexDef {
                id: IndexId(0),
                name,
                kind,
                parts: parts.collect(),
                generated: false,
                invisible: false,
                comment: String::new(),
            }
        })
        .collect();
    for (n, spec) in create.columns.iter().enumerate().filter(|(_, c)| c.primary_key) {
        let _ = spec;
        let parts = vec![IndexPart { column: n, descending: false, prefix_len: None }];
        indexes.push(IndexDef {
            id: IndexId(0),
            name: "PRIMARY".into(),
            kind: IndexKind::Primary,
            parts,
            generated: false,
            invisible: false,
            comment: String::new(),
        });
    }
    TableDef {
        id: TableId(0),
        database: "d".into(),
        name: create.name.name.name.clone(),
        columns,
        indexes,
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
    }
}

impl World {
    fn new(tables: &[&str]) -> Self {
        let env = Env { disk: Arc::new(SimDisk::new()), ..Env::os() };
        let options = EngineOptions {
            env,
            background: false,
            log_segment_bytes: 1 << 20,
            ..EngineOptions::new("/data")
        };
        let engine = Engine::open(options).expect("opened");
        engine.create_database("d", Collation::DEFAULT).expect("created");
        for sql in tables {
            engine.create_table(table_of(sql)).expect("created");
        }
        Self { engine, scratch: PointScratch::default(), now: 1_600_000_000_000_000 }
    }

    fn compile(&self, sql: &str) -> Result<PointPlan, Refusal> {
        let source = sql.as_bytes();
        let statement = parse(source, SqlMode::DEFAULT).expect("parses").remove(0);
        let catalog = self.engine.catalog();
        let view = View(catalog.clone());
        match &statement.kind {
            StatementKind::Query(query) => {
                let bound = bind_query(query, source, &view, &[])?;
                let columns = bound.output().map(|c| OutputColumn::expression(&c.name, c.ty)).collect();
                compile_query(&bound, columns, &catalog, &[])
            }
            StatementKind::Insert(insert) => compile_insert(insert, source, &view, &catalog, &[]),
            StatementKind::Update(update) => compile_update(update, source, &view, &catalog, &[]),
            StatementKind::Delete(delete) => compile_delete(delete, source, &view, &catalog, &[]),
            other => panic!("{other:?}"),
        }
    }

    fn try_execute(
        &mut self,
        plan: &PointPlan,
        params: &[Datum<'_>],
    ) -> Result<(Outcome, Vec<String>), SqlError> {
        let mut txn = self.engine.begin(TxnOptions::default());
        let mut ctx = EvalContext::new(self.now, 7);
        ctx.storing = plan.is_write();
        let mut sink = Rows::default();
        let mark = txn.begin_statement();
        let interrupt = Interrupt::default();
        let bounds = Bounds::new(&interrupt, self.engine.memory(), None);
        let run =
            Run { params, ctx: &ctx, bounds: &bounds, work_table: None, given: &[], measurements: None };
        match plan.execute(&mut txn, run, &mut self.scratch, &mut sink) {
            Ok(outcome) => {
                txn.commit().expect("logged").wait().expect("durable");
                Ok((outcome, sink.rows))
            }
            Err(error) => {
                txn.rollback_statement(mark);
                Err(error)
            }
        }
    }

    fn plan(&self, sql: &str) -> PointPlan {
        self.compile(sql).unwrap_or_else(|refusal| panic!("{sql}: {refusal:?}"))
    }

    /// The rows of a query.
    fn query(&mut self, sql: &str, params: &[Datum<'_>]) -> Vec<String> {
        let plan = self.plan(sql);
        let (outcome, rows) = self.try_execute(&plan, params).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(outcome, Outcome::Rows(rows.len() as u64), "{sql}");
        rows
    }

    /// What a statement changed.
    fn change(&mut self, sql: &str, params: &[Datum<'_>]) -> Result<Changes, SqlError> {
        let plan = match self.compile(sql) {
            Ok(plan) => plan,
            Err(Refusal::Error(error)) => return Err(error),
            Err(refusal) => panic!("{sql}: {refusal:?}"),
        };
        match self.try_execute(&plan, params)? {
            (Outcome::Changed(changes), _) => Ok(changes),
            other => panic!("{sql}: {other:?}"),
        }
    }

    fn refused(&self, sql: &str) -> String {
        match self.compile(sql) {
            Err(Refusal::NotPoint(reason)) => reason.to_string(),
            other => panic!("{sql}: {other:?}"),
        }
    }
}

fn accounts() -> World {
    let mut world = World::new(&["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, \
         b VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, c DECIMAL(6,2) NOT NULL DEFAULT 0, at TIMESTAMP ON UPDATE \
         CURRENT_TIMESTAMP, KEY (a, b), UNIQUE KEY (b))"]);
    let inserted = world.change(
        "INSERT INTO t (a, b, c) VALUES (1, 'one', 1.5), (1, 'Uno', 2), (2, 'two', 2.25), (NULL, NULL, 4), (3, NULL, 5)",
        &[],
    );
    assert_eq!(
        inserted.expect("inserted"),
        Changes { matched: 5, changed: 5, last_insert_id: 1, last_number: 5, ..Changes::default() }
    );
    world
}

#[test]
fn rows_are_found_by_keys_ranges_and_lists() {
    let mut w = accounts();
    assert_eq!(w.query("SELECT b, c FROM t WHERE id = ?", &[Datum::Int(2)]), ["Uno 2.00"]);
    assert_eq!(w.query("SELECT id FROM t WHERE id = 99999999999", &[]), [""; 0]);
    assert_eq!(w.query("SELECT id FROM t WHERE b = 'ONE'", &[]), ["1"]);
    assert_eq!(w.query("SELECT id FROM t WHERE b LIKE 'u%'", &[]), ["2"]);
    assert_eq!(w.query("SELECT id FROM t WHERE a IN (2, 1, 2, 7) ORDER BY a, b", &[]), ["1", "2", "3"]);
    assert_eq!(w.query("SELECT id FROM t WHERE a IN (1, 2) ORDER BY a DESC, b DESC", &[]), ["3", "2", "1"]);
    assert_eq!(w.query("SELECT id FROM t WHERE a > 1.5 ORDER BY id", &[]), ["3", "5"]);
    assert_eq!(
        w.query("SELECT id FROM t WHERE a BETWEEN 1 AND 2 AND c > 1.5 ORDER BY c DESC", &[]),
        ["3", "2"]
    );
    assert_eq!(w.query("SELECT id FROM t WHERE a <=> NULL", &[]), ["4"]);
    assert_eq!(w.query("SELECT id FROM t WHERE a IS NULL", &[]), ["4"]);
    assert_eq!(w.query("SELECT id FROM t WHERE a = NULL", &[]), [""; 0]);
    assert_eq!(w.query("SELECT id FROM t WHERE id = '3'", &[]), ["3"]);
    assert_eq!(w.query("SELECT id + 1 FROM t WHERE id < 3 ORDER BY id DESC LIMIT 1", &[]), ["3"]);
    assert_eq!(w.query("SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 1", &[]), ["2", "3"]);
    assert_eq!(w.query("SELECT DISTINCT a FROM t WHERE id > 0 ORDER BY a", &[]), ["NULL", "1", "2", "3"]);
    assert_eq!(w.query("SELECT 1 + 1, 'x'", &[]), ["2 x"]);
}

#[test]
fn an_or_of_several_indexes_reads_along_each_of_them() {
    let mut w = accounts();
    let described = |w: &World, sql: &str| w.compile(sql).expect("a plan").describe();
    let either = "SELECT id FROM t WHERE a = 1 OR b = 'uno' OR b LIKE 'tw%' OR id = 5";
    assert_eq!(
        described(&w, either),
        "t by k (1 equal) or by u (any of 2) or by PRIMARY, one row, if they are few"
    );
    let mut ids = w.query(either, &[]);
    ids.sort();
    assert_eq!(ids, ["1", "2", "3", "5"], "each once");
    assert_eq!(
        described(&w, "UPDATE t SET c = 7 WHERE a = 1 OR b = 'two'"),
        "t by k (1 equal) or by u, one row"
    );
    let changed = w.change("UPDATE t SET c = c + 1, a = 1 WHERE a = 1 OR b = 'two'", &[]).expect("changed");
    assert_eq!((changed.matched, changed.changed), (3, 3));
    assert_eq!(w.query("SELECT id FROM t WHERE (a = 1 OR b = 'two') AND c > 3 ORDER BY id DESC", &[]), ["3"]);
    // One index that serves another condition is better than two.
    assert_eq!(
        described(&w, "SELECT 1 FROM t WHERE id = 1 AND (a = 1 OR b = 'two')"),
        "t by PRIMARY, one row"
    );
    // A side that no index serves asks for all rows.
    assert_eq!(described(&w, "SELECT 1 FROM t WHERE a = 1 OR b = 'two' OR c = 1"), "t, all rows");
}

#[test]
fn a_pattern_is_known_when_the_statement_runs() {
    let mut w = accounts();
    let sql = "SELECT id FROM t WHERE b LIKE ? ORDER BY id";
    assert_eq!(w.compile(sql).expect("a plan").describe(), "t by u (range), if they are few");
    let mut like = |pattern: Datum<'static>| w.query(sql, &[pattern]);
    assert_eq!(like(Datum::str("U%")), ["2"]);
    assert_eq!(like(Datum::str("%o")), ["2", "3"]);
    assert_eq!(like(Datum::str("t\\%%")), [""; 0]);
    assert_eq!(like(Datum::str("")), [""; 0]);
    assert_eq!(like(Datum::Null), [""; 0]);
    let open = w.compile("SELECT id FROM t WHERE b LIKE '%o'").expect("a plan");
    assert_eq!(open.describe(), "t, all rows");
}

#[test]
fn a_page_in_the_order_of_an_index_and_then_a_key_ends_behind_equal_rows() {
    let mut w = World::new(&["CREATE TABLE p (id INT PRIMARY KEY, s INT, d INT, c INT, KEY (s, d))"]);
    // Ids descend where the index ascends, so that equal rows are met in another order than the wanted one.
    let rows: Vec<_> = (0..3_000).map(|n| format!("({}, {}, {}, 0)", 9_000 - n, n % 2, n / 6)).collect();
    for rows in rows.chunks(500) {
        w.change(&format!("INSERT INTO p VALUES {}", rows.join(", ")), &[]).expect("inserted");
    }
    let sql = "SELECT id FROM p WHERE s = 1 ORDER BY d DESC, id LIMIT 2 OFFSET 2";
    let plan = w.compile(sql).expect("a plan");
    assert_eq!(plan.describe(), "p by k (1 equal)");
    assert!(!plan.is_measured(), "few rows are read");
    assert_eq!(w.query(sql, &[]), ["6005", "6007"]);
    assert_eq!(
        w.query("SELECT id FROM p WHERE s = 1 ORDER BY d, id DESC LIMIT 4", &[]),
        ["8999", "8997", "8995", "8993"]
    );
    assert_eq!(
        w.query("SELECT DISTINCT s, d FROM p WHERE s = 0 ORDER BY d, s LIMIT 2 OFFSET 1", &[]),
        ["0 1", "0 2"]
    );
}

#[test]
fn a_page_of_rows_that_no_index_tells_is_looked_for_in_its_order() {
    let mut w = World::new(&["CREATE TABLE p (id INT PRIMARY KEY, gone INT, rare INT)"]);
    let rows: Vec<_> = (0..9_000).map(|n| format!("({n}, IF({n} % 10 = 0, 1, NULL), {n})")).collect();
    for rows in rows.chunks(500) {
        w.change(&format!("INSERT INTO p VALUES {}", rows.join(", ")), &[]).expect("inserted");
    }
    let page = "SELECT id FROM p WHERE gone IS NULL ORDER BY id DESC LIMIT 3 OFFSET 9";
    let plan = w.compile(page).expect("a plan");
    assert_eq!(plan.describe(), "p along PRIMARY, if soon enough match");
    assert_eq!(w.query(page, &[]), ["8989", "8988", "8987"]);
    // It ends with the last row wanted, and does not look for one behind it.
    assert_eq!(w.query("SELECT id FROM p WHERE rare < 2 ORDER BY id LIMIT 2", &[]), ["0", "1"]);
    let far = w.compile("SELECT id FROM p WHERE rare > 8990 ORDER BY id LIMIT 2").expect("a plan");
    assert_eq!(w.try_execute(&far, &[]).expect("no error").0, Outcome::Declined);
    assert_eq!(w.query("SELECT id FROM p WHERE rare > 2990 ORDER BY id LIMIT 1", &[]), ["2991"]);
    // Ranges come before what is only in order.
    let after =
        "SELECT id FROM p WHERE (id > 8000 OR id = 7000 AND rare > 5) AND gone IS NULL ORDER BY id LIMIT 2";
    assert_eq!(w.compile(after).expect("a plan").describe(), "p by PRIMARY (any of 2), if soon enough match");
    assert_eq!(w.query(after, &[]), ["8001", "8002"]);
}

#[test]
fn aggregates_are_over_all_rows() {
    let mut w = accounts();
    let all =
        "SELECT COUNT(*), COUNT(a), SUM(c), AVG(a), MIN(b), MAX(c), COUNT(DISTINCT a) FROM t WHERE id > 0";
    assert_eq!(w.query(all, &[]), ["5 4 14.75 1.7500 one 5.00 3"]);
    assert_eq!(w.query("SELECT MAX(id), MIN(id) FROM t WHERE id < 0", &[]), ["NULL NULL"]);
    assert_eq!(w.query("SELECT MAX(id) FROM t", &[]), ["5"]);
    assert_eq!(w.query("SELECT MIN(a) FROM t", &[]), ["1"]);
    assert_eq!(w.query("SELECT MAX(b) FROM t WHERE a = 1", &[]), ["Uno"]);
    assert_eq!(w.query("SELECT SUM(c) FROM t WHERE id > 9 HAVING COUNT(*) > 0", &[]), [""; 0]);
}

#[test]
fn tables_are_joined_along_indexes() {
    let mut w = accounts();
    let joined = "SELECT x.id, y.id FROM t x JOIN t y ON y.a = x.a WHERE x.id = ? ORDER BY y.id";
    assert_eq!(w.query(joined, &[Datum::Int(1)]), ["1 1", "1 2"]);
    let three =
        "SELECT z.b FROM t x, t y, t z WHERE x.b = 'uno' AND y.a = x.a AND z.id = y.id AND z.id < x.id";
    assert_eq!(w.query(three, &[]), ["one"]);
    let locked = "SELECT y.id FROM t x, t y WHERE x.id = 2 AND y.id = x.id + 1 FOR UPDATE";
    assert_eq!(w.query(locked, &[]), ["3"]);
}

#[test]
fn many_tables_are_joined_along_indexes() {
    let mut w = accounts();
    for count in [8, 9, 10, 20, 31] {
        for join in ["JOIN", "LEFT JOIN"] {
            let joins: Vec<String> =
                (1..count).map(|n| format!("{join} t t{n} ON t{n}.id = t{}.id", n - 1)).collect();
            let joins = joins.join(" ");
            let last = count - 1;
            let sql = format!("SELECT t0.b, t{last}.b, t8.id + t{last}.id FROM t t0 {joins} WHERE t0.id = ?")
                .replace("t8", if count > 8 { "t8" } else { "t7" });
            assert_eq!(w.query(&sql, &[Datum::Int(1)]), ["one one 2"], "{sql}");
            // The last table leads.
            let sql = format!("SELECT t0.b, t{last}.b FROM t t0 {joins} WHERE t{last}.id = ? AND t0.id > 0");
            assert_eq!(w.query(&sql, &[Datum::Int(1)]), ["one one"], "{sql}");
        }
    }
}

#[test]
fn updates_say_what_they_matched_and_changed() {
    let mut w = accounts();
    let changes = |matched, changed| Changes { matched, changed, ..Changes::default() };
    assert_eq!(
        w.change("UPDATE t SET c = c + ? WHERE a = 1", &[Datum::Decimal(avocet_types::Decimal::ZERO)])
            .unwrap(),
        changes(2, 0)
    );
    assert_eq!(w.change("UPDATE t SET a = a + 1, c = a WHERE id = 3", &[]).unwrap(), changes(1, 1));
    assert_eq!(w.query("SELECT a, c, at FROM t WHERE id = 3", &[]), ["3 3.00 2020-09-13 12:26:40"]);
    assert_eq!(w.change("UPDATE t SET a = 9 WHERE c > 1.9", &[]).unwrap(), changes(4, 4));
    assert_eq!(w.query("SELECT COUNT(*) FROM t WHERE a = 9", &[]), ["4"]);
    // Keys that move ahead of the scan are not met again.
    assert_eq!(
        w.change("UPDATE t SET id = id + 10 WHERE id > 0 ORDER BY id DESC", &[]).unwrap(),
        changes(5, 5)
    );
    assert_eq!(w.change("UPDATE t SET b = 'One' WHERE id = 12", &[]).unwrap_err().errno, 1062);
    assert_eq!(w.change("UPDATE t SET c = 123456 WHERE id = 12", &[]).unwrap_err().errno, 1264);
    assert_eq!(w.change("UPDATE t SET c = NULL WHERE id = 12", &[]).unwrap_err().errno, 1048);
    assert_eq!(w.change("UPDATE t SET nope = 1 WHERE id = 12", &[]).unwrap_err().errno, 1054);
}

#[test]
fn deletes_and_inserts_follow_mysqls_rules() {
    let mut w = accounts();
    assert_eq!(w.change("DELETE FROM t WHERE id > 1 ORDER BY id LIMIT 2", &[]).unwrap().changed, 2);
    assert_eq!(w.query("SELECT id FROM t ORDER BY id LIMIT 9", &[]), ["1", "4", "5"]);
    assert_eq!(
        w.change("INSERT INTO t (id, b) VALUES (0, 'x'), (50, 'y'), (NULL, 'z')", &[])
            .unwrap()
            .last_insert_id,
        6
    );
    assert_eq!(
        w.query("SELECT id, a, c FROM t WHERE b IN ('x', 'y', 'z')", &[]),
        ["6 NULL 0.00", "50 NULL 0.00", "51 NULL 0.00"]
    );
    assert_eq!(
        w.change("INSERT INTO t (id) VALUES (1)", &[]).unwrap_err().message,
        "Duplicate entry '1' for key 't.PRIMARY'"
    );
    assert_eq!(w.change("INSERT INTO t (id, a) VALUES (70, 5), (71)", &[]).unwrap_err().errno, 1136);
    assert_eq!(w.change("INSERT INTO t (id, c) VALUES (70, NULL)", &[]).unwrap_err().errno, 1048);
    assert_eq!(w.change("INSERT INTO t (id, a, c) VALUES (80, 3, a * 2)", &[]).unwrap().changed, 1);
    assert_eq!(w.query("SELECT c FROM t WHERE id = 80", &[]), ["6.00"]);
    assert_eq!(w.change("DELETE FROM t", &[]).unwrap().changed, 7);
}

#[test]
fn what_is_not_for_the_point_path_says_why() {
    let w = accounts();
    assert_eq!(
        w.refused("SELECT SUM(a) OVER (ORDER BY a RANGE 1 PRECEDING) FROM t"),
        "a RANGE with a distance"
    );
    assert_eq!(w.refused("SELECT LAG(a, ?) OVER (ORDER BY a) FROM t"), "LAG or LEAD by what is no number");
    let several = "SELECT * FROM t x LEFT JOIN (t y JOIN t z ON y.id = z.id) ON x.a = y.a";
    assert_eq!(w.refused(several), "an outer join of several tables");
    let locks = "INSERT INTO t SELECT * FROM t FOR UPDATE";
    assert_eq!(w.refused(locks), "INSERT … SELECT that locks rows");
    let several = "INSERT INTO t (id) VALUES ((SELECT 1)), (2)";
    assert_eq!(w.refused(several), "subqueries in VALUES of several rows");
}

#[test]
fn a_plan_that_was_outgrown_declines() {
    let mut w = World::new(&["CREATE TABLE t (id INT PRIMARY KEY, a INT)"]);
    let (scan, few) =
        (w.plan("SELECT SUM(a) FROM t"), w.plan("SELECT SUM(a) FROM t WHERE id BETWEEN ? AND ?"));
    let mut txn = w.engine.begin(TxnOptions::default());
    let table = w.engine.catalog().table("d", "t").expect("there").clone();
    for id in 0..5000 {
        txn.insert(&table, &[Datum::Int(id), Datum::Int(1)]).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(w.try_execute(&scan, &[]).expect("ran").0, Outcome::Declined);
    let ten = [Datum::Int(10), Datum::Int(19)];
    assert_eq!(w.try_execute(&few, &ten).expect("ran").1, ["10"]);
    assert_eq!(w.refused("SELECT SUM(a) FROM t WHERE a = 1"), "no index leads to few rows");
    // Of a range with one bound nothing is known before it is measured.
    for id in 5000..13_000 {
        w.change(&format!("INSERT INTO t VALUES ({id}, 1)"), &[]).expect("inserted");
    }
    let open = w.plan("SELECT SUM(a) FROM t WHERE id < ?");
    assert_eq!(open.describe(), "t by PRIMARY (range), if they are few");
    assert_eq!(w.try_execute(&open, &[Datum::Int(12_000)]).expect("ran").0, Outcome::Declined);
    assert_eq!(w.try_execute(&open, &[Datum::Int(10)]).expect("ran").1, ["10"]);
}
