//! A follower without a source: events as they come from a log, and what becomes of tables.

use std::sync::mpsc::{Receiver, channel};

use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use avocet_base::env::SimDisk;
use avocet_engine::EngineOptions;
use avocet_types::error::ErrorCode;
use avocet_types::{Collation, ColumnBuilder, ColumnDef, Datum, IndexDef, LobSize, SqlType, TableDef};
use mysql::OptsBuilder;

use super::statements::definition_fingerprint;
use super::*;
use crate::binlog::column;
use crate::copy::{FromCopy, What};
use crate::gtid::DomainGtid;
use crate::inbox::Inbox;
use crate::state::Pending;

/// What definitions were run, and the error with which all end.
#[derive(Clone, Default)]
struct Script {
    run: Arc<Mutex<Vec<String>>>,
    error: Arc<Mutex<Option<u16>>>,
}

impl Definitions for Script {
    fn run(
        &mut self,
        _: Option<&str>,
        _: &SessionOfQuery,
        sql: &str,
        lock_wait: Duration,
    ) -> Result<(), SqlError> {
        assert!(lock_wait <= DEFINITION_WAIT);
        self.run.lock().push(sql.to_owned());
        let Some(errno) = *self.error.lock() else { return Ok(()) };
        let mut error = ErrorCode::UNKNOWN_ERROR.because("it was told to fail");
        error.errno = errno;
        Err(error)
    }
}

pub(super) struct Stage {
    pub follower: Follower,
    script: Script,
    told: Receiver<Announcement>,
    transactions: u64,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.follower.inbox.stop();
    }
}

fn name(table: &str) -> TableName {
    TableName { database: "d".into(), table: table.into() }
}

/// Follows `d.t` and `d.u`, each of an `id BIGINT` and a `b VARBINARY(2000)`, and `d.stamps`, which has a TIMESTAMP.
pub(super) fn stage() -> Stage {
    stage_with(|_| {})
}

fn stage_with(change: impl FnOnce(&mut EngineOptions)) -> Stage {
    let disk = SimDisk::default();
    let mut options = EngineOptions { env: disk.env(), background: false, ..EngineOptions::new("/data") };
    change(&mut options);
    let engine = Engine::open(options).expect("it opens");
    engine.create_database("d", Collation::DEFAULT).expect("a new one");
    let second = |ty| vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("b", ty)];
    for (table, ty) in [
        ("t", SqlType::VarBinary { len: 2000 }),
        ("u", SqlType::VarBinary { len: 2000 }),
        ("stamps", SqlType::Timestamp { fsp: 0 }),
        ("blobs", SqlType::Blob { size: LobSize::Long }),
    ] {
        let mut def = TableDef::new("d", table, second(ty), vec![IndexDef::primary(&[0])]);
        def.columns[0].auto_increment = true;
        engine.create_table(def).expect("a new one");
    }
    let (inbox, watch, status) = (Arc::<Inbox>::default(), Arc::<Watch>::default(), Arc::<Status>::default());
    // Nobody listens there.
    let opts: Opts = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(1).into();
    let copies = Copies::start(opts.clone(), 1, inbox.clone(), watch.clone(), status.clone());
    let script = Script::default();
    let (announce, told) = channel();
    let follower = Follower {
        applier: engine.applier(SOURCE, 1),
        engine,
        definitions: Box::new(script.clone()),
        opts,
        flavor: Flavor::MySql,
        version: 90_700,
        can_log_cascades: true,
        logs_cascades: true,
        may_have_triggers: false,
        folds_names: false,
        is_in_utc: true,
        number: SOURCE,
        server_id: 7,
        patterns: Patterns::default(),
        inbox,
        watch,
        copies,
        status,
        state: State { source: "a".into(), ..State::default() },
        announce,
        withholdings: Arc::default(),
        tries_refused: false,
        retry_after: Duration::from_millis(100),
        semi_sync: false,
        run: Run::default(),
    };
    Stage { follower, script, told, transactions: 0 }
}

impl Stage {
    fn begin(&mut self) {
        self.transactions += 1;
        let gtid = Gtid::InDomain(0, DomainGtid { server: 1, sequence: self.transactions });
        let place = LogPlace { file: "log.000001".into(), offset: self.transactions * 100 };
        assert!(self.follower.run.open.is_none(), "the transaction before has ended");
        self.follower.run.open =
            Some(Open { gtid: Some(gtid), place, committed_us: 1, shape: Shape::Spoken, has_begun: false });
        self.follower.run.touched.clear();
    }

    /// A QUERY event in a session of these modes.
    fn query(&mut self, text: &str, sql_mode: u64) -> Result<()> {
        let mut body = vec![0; 8];
        body.extend_from_slice(&[1, 0, 0, 9, 0, 1]);
        body.extend_from_slice(&sql_mode.to_le_bytes());
        body.extend_from_slice(b"d\0");
        body.extend_from_slice(text.as_bytes());
        self.follower.event(kind::QUERY, 1_700_000_000, &body)
    }

    /// A transaction of these statements.
    fn transaction(&mut self, statements: &[&str]) {
        self.begin();
        for text in statements {
            self.query(text, 0).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        assert!(self.follower.run.open.is_none(), "{statements:?} end it");
    }

    /// Rows of so many bytes each, inserted into a table.
    fn insert(&mut self, table: &str, ids: std::ops::Range<i64>, bytes: usize) -> Result<()> {
        let mut map = vec![9, 0, 0, 0, 0, 0, 1, 0, 1, b'd', 0, table.len() as u8];
        map.extend_from_slice(table.as_bytes());
        map.extend_from_slice(&[0, 2, column::LONGLONG, column::VARCHAR, 2]);
        map.extend_from_slice(&2000_u16.to_le_bytes());
        map.push(0);
        self.follower.event(kind::TABLE_MAP, 0, &map)?;
        let mut rows = vec![9, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 0xff];
        for id in ids {
            rows.push(0);
            rows.extend_from_slice(&id.to_le_bytes());
            rows.extend_from_slice(&(bytes as u16).to_le_bytes());
            rows.extend(std::iter::repeat_n(id as u8, bytes));
        }
        self.follower.event(kind::WRITE_ROWS, 0, &rows)
    }

    fn aside(&self) -> Vec<&str> {
        let waits = |state: &TableState| matches!(state, TableState::Waiting { .. });
        let tables = self.follower.state.tables.iter().filter(|(_, state)| waits(state));
        tables.map(|(name, _)| name.table.as_str()).collect()
    }

    pub(super) fn has_run(&self) -> Vec<String> {
        std::mem::take(&mut *self.script.run.lock())
    }
}

const ALL: [&str; 4] = ["blobs", "stamps", "t", "u"];

/// Should this server be written to one day.
#[test]
fn generated_values_go_on_behind_those_of_the_source() {
    let mut stage = stage();
    stage.begin();
    stage.query("BEGIN", 0).expect("a transaction");
    stage.insert("t", 3..9, 2).expect("rows");
    let table = stage.follower.engine.catalog().table("d", "t").expect("it is there").clone();
    assert_eq!(table.next_auto_increment(), 9);
}

#[test]
fn what_is_passed_over_within_a_transaction_does_not_end_it() {
    let mut stage = stage();
    stage.transaction(&[
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "CREATE TEMPORARY TABLE x (a INT)",
        "INSERT INTO u VALUES (2)",
        "COMMIT",
    ]);
    assert_eq!(stage.aside(), ["t", "u"]);
    // A comment is none of its words.
    stage.transaction(&["DROP TABLE u -- START TRANSACTION"]);
    stage.transaction(&["CREATE TABLE v (a INT) # START TRANSACTION"]);
    // Alone, it is a transaction.
    stage.transaction(&["CREATE TEMPORARY TABLE x (a INT)"]);
    stage.transaction(&["-- rotate\nDROP TRIGGER IF EXISTS g"]);
}

#[test]
fn statements_that_are_not_served_here_set_tables_aside() {
    let mut one = stage();
    one.transaction(&["BEGIN", "INSERT INTO t PARTITION (p0) VALUES (1, 2)", "COMMIT"]);
    assert_eq!(one.aside(), ["t"]);
    let mut load = vec![0; 8];
    load.extend_from_slice(&[1, 0, 0, 0, 0]);
    load.extend_from_slice(&[0; 13]);
    load.extend_from_slice(b"d\0LOAD DATA INFILE 'x' INTO TABLE `u` FIELDS TERMINATED BY ',' (`id`, `b`)");
    one.begin();
    one.query("BEGIN", 0).expect("it begins");
    for kind in [kind::BEGIN_LOAD_QUERY, kind::APPEND_BLOCK, kind::DELETE_FILE] {
        one.follower.event(kind, 0, &[0; 8]).expect("it is passed over");
    }
    one.follower.event(kind::EXECUTE_LOAD_QUERY, 0, &load).expect("it is understood");
    one.query("COMMIT", 0).expect("it ends");
    assert_eq!(one.aside(), ["t", "u"]);
    // Of what nobody can read, all tables may have changed.
    let mut all = stage();
    all.transaction(&["BEGIN", "UPDATE t SET b = whatever OF (1)", "COMMIT"]);
    assert_eq!(all.aside(), ALL);
}

#[test]
fn xa_transactions_of_before_the_position_set_all_aside_when_they_commit() {
    let mut stage = stage();
    stage.transaction(&["XA ROLLBACK X'31',X'31',1"]);
    assert!(stage.aside().is_empty());
    stage.transaction(&["XA COMMIT X'31',X'31',1"]);
    assert_eq!(stage.aside(), ALL);
}

#[test]
fn xa_transactions_are_told_apart_by_both_parts_of_their_identifiers() {
    let mut stage = stage();
    for (table, global, branch) in [("t", &b"1"[..], &b"11"[..]), ("u", b"11", b"1")] {
        stage.begin();
        stage.query("XA START X'31',X'3131',1", 0).expect("it begins");
        stage.insert(table, 1..2, 3).expect("a row");
        stage.query("XA END X'31',X'3131',1", 0).expect("it goes on");
        let mut body = vec![0, 1, 0, 0, 0];
        body.extend_from_slice(&(global.len() as u32).to_le_bytes());
        body.extend_from_slice(&(branch.len() as u32).to_le_bytes());
        body.extend_from_slice(global);
        body.extend_from_slice(branch);
        stage.follower.event(kind::XA_PREPARE, 0, &body).expect("it is prepared");
        for cut in 1..body.len() {
            assert!(stage.follower.event(kind::XA_PREPARE, 0, &body[..cut]).is_err(), "cut at {cut}");
        }
    }
    assert_eq!(stage.follower.state.prepared.len(), 2);
    stage.transaction(&["XA COMMIT X'31',X'3131',1"]);
    let left: Vec<_> = stage.follower.state.prepared.values().flatten().collect();
    assert_eq!(left, [&name("u")]);
    stage.transaction(&["XA COMMIT X'3131',X'31',1"]);
    assert!(stage.follower.state.prepared.is_empty() && stage.aside() == ["t", "u"]);
}

#[test]
fn statements_of_a_prepared_transaction_hold_their_tables() {
    let mut stage = stage();
    stage.begin();
    for text in ["XA START X'31',X'',1", "INSERT INTO t VALUES (1, 2)", "XA END X'31',X'',1"] {
        stage.query(text, 0).expect("it goes on");
    }
    let body = [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, b'1'];
    stage.follower.event(kind::XA_PREPARE, 0, &body).expect("it is prepared");
    let held: Vec<_> = stage.follower.state.prepared.values().flatten().collect();
    assert_eq!(held, [&name("t")]);
}

#[test]
fn names_in_double_quotes_are_names_under_ansi_quotes() {
    const ANSI_QUOTES: u64 = 1 << 2;
    let mut stage = stage();
    // It is not served here.
    *stage.script.error.lock() = Some(1235);
    stage.begin();
    let text = "ALTER TABLE \"t\" EXCHANGE PARTITION p WITH TABLE \"u\"";
    stage.query(text, ANSI_QUOTES).expect("it is understood");
    assert_eq!(stage.aside(), ["t", "u"]);
}

#[test]
fn names_of_a_source_that_folds_them_are_folded() {
    let mut stage = stage();
    stage.follower.folds_names = true;
    stage.transaction(&["TRUNCATE TABLE T"]);
    assert_eq!((stage.aside(), stage.has_run().len()), (vec!["t"], 0));
    stage.transaction(&["ALTER TABLE u ADD someName INT COMMENT 'U'"]);
    assert_eq!((stage.aside(), stage.has_run().len()), (vec!["t"], 1));
    stage.transaction(&["BEGIN", "INSERT INTO D.U VALUES (1)", "COMMIT"]);
    assert_eq!(stage.aside(), ["t", "u"]);
    stage.transaction(&["DROP DATABASE D"]);
    assert_eq!(stage.has_run(), ["DROP DATABASE `d`"]);
}

#[test]
fn definitions_in_the_zone_of_the_sources_machine_are_not_run_in_utc() {
    const TEXT: &str = "ALTER TABLE t ADD c DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP";
    let mut stage = stage();
    stage.transaction(&[TEXT]);
    assert_eq!((stage.aside(), stage.has_run().len()), (vec![], 1));
    stage.follower.is_in_utc = false;
    stage.transaction(&["ALTER TABLE stamps ADD c INT"]);
    assert_eq!((stage.aside(), stage.has_run().len()), (vec![], 1));
    stage.transaction(&[TEXT]);
    stage.transaction(&["ALTER TABLE stamps MODIFY b DATETIME"]);
    assert_eq!((stage.aside(), stage.has_run().len()), (vec!["stamps", "t"], 0));
}

#[test]
fn a_pending_definition_is_run_although_others_were_made_meanwhile() {
    const TEXT: &str = "TRUNCATE TABLE t";
    let mut stage = stage();
    let tables = BTreeSet::from([name("t")]);
    let before = definition_fingerprint(&stage.follower.engine, &tables, &[]);
    stage.follower.state.pending = Some(Pending { gtid: "0-1-1".into(), before });
    let def = TableDef::new("d", "x", vec![ColumnDef::new("id", SqlType::BIGINT)], vec![]);
    stage.follower.engine.create_table(def).expect("a new one");
    stage.transaction(&[TEXT]);
    assert_eq!(stage.has_run(), [TEXT]);
    // One that was done before the server ended is not done again.
    stage.follower.state.pending = Some(Pending { gtid: "0-1-2".into(), before });
    stage.follower.engine.drop_table("d", "t", Duration::ZERO).expect("it is there");
    stage.transaction(&[TEXT]);
    assert!(stage.has_run().is_empty());
}

#[test]
fn a_transaction_that_has_no_room_sets_its_tables_aside() {
    let mut stage = stage_with(|options| options.max_redo_bytes = 64 << 10);
    stage.begin();
    stage.query("BEGIN", 0).expect("it begins");
    let refused = stage.insert("t", 0..200, 2000).expect_err("it is too large");
    assert!(matches!(refused, ReplicateError::TooLarge(_)) && refused.after() == After::Retry, "{refused}");
    // It is read once more.
    stage.follower.applier.take_back();
    stage.follower.run.open = None;
    stage.transactions -= 1;
    stage.begin();
    stage.query("BEGIN", 0).expect("it begins");
    stage.insert("t", 0..200, 2000).expect("it is passed over");
    stage.query("COMMIT", 0).expect("it ends");
    assert_eq!(stage.aside(), ["t"]);
    stage.begin();
    stage.insert("u", 0..2, 2000).expect("there is room");
    stage.query("COMMIT", 0).expect("it ends");
    assert_eq!(stage.aside(), ["t"]);
    stage.follower.publish().expect("it goes on");
}

/// A message of a copy that is live.
fn copied(stage: &mut Stage, table: &str, what: What) -> Result<()> {
    stage.follower.copies.add(&name(table), None);
    let job = (1..=u64::MAX).find(|job| stage.follower.copies.is_live(&name(table), *job));
    let job = job.expect("it was added");
    stage.follower.copied(FromCopy { job, name: name(table), what })
}

fn is_refused(stage: &Stage, table: &str) -> bool {
    matches!(stage.follower.state.tables.get(&name(table)), Some(TableState::Refused { .. }))
}

#[test]
fn a_row_that_is_too_large_leaves_its_table_out() {
    let mut stage = stage();
    stage
        .follower
        .state
        .tables
        .insert(name("blobs"), TableState::Copying { definition: String::new(), after: None });
    let large = vec![7; 65 << 20];
    let columns = [
        (SqlType::BIGINT, [Datum::Int(1), Datum::Int(2)]),
        (SqlType::Blob { size: LobSize::Long }, [Datum::bytes(b"x"), Datum::bytes(&large)]),
    ];
    let fields = columns.iter().map(|(ty, _)| Field::new("c", ty.arrow_type(), false));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(ty, values)| {
        let mut builder = ColumnBuilder::new(ty, 2);
        values.iter().for_each(|value| builder.append(value));
        builder.finish()
    });
    let batch = RecordBatch::try_new(schema, arrays.collect());
    let (mark, _) = stage.follower.watch.begin(&name("blobs"));
    let rows = What::Rows { mark, batch: batch.expect("columns of one length"), last: vec![] };
    copied(&mut stage, "blobs", rows).expect("the others go on");
    assert!(is_refused(&stage, "blobs"));
    assert_eq!(stage.has_run(), ["TRUNCATE TABLE `d`.`blobs`"]);
}

#[test]
fn a_table_that_the_account_may_not_read_is_left_out_in_the_end() {
    let mut stage = stage();
    for attempt in 1.. {
        let error = mysql::error::MySqlError {
            state: "42000".into(),
            message: "SELECT command denied".into(),
            code: 1143,
        };
        let error = ReplicateError::Source(mysql::Error::MySqlError(error));
        copied(&mut stage, "t", What::Failed(error)).expect("the others go on");
        if is_refused(&stage, "t") {
            assert!(attempt > 2, "it may have been mended at once");
            break;
        }
        assert!(attempt < 20 && stage.aside() == ["t"]);
    }
}

#[test]
fn a_reader_here_postpones_the_copy() {
    let mut stage = stage();
    *stage.script.error.lock() = Some(1205);
    let (answer, made) = std::sync::mpsc::sync_channel(1);
    let database = "CREATE DATABASE d".to_owned();
    let definition =
        crate::source::Definition { text: "CREATE".into(), is_view: false, database, obstacle: None };
    let make = What::Make { definition: Some(definition), answer };
    copied(&mut stage, "t", make).expect("the others go on");
    assert!(made.recv().expect("an answer").is_none());
    assert_eq!(stage.aside(), ["t"]);
    assert!(stage.follower.run.resting[&name("t")] > Instant::now());
}

#[test]
fn the_end_of_a_stream_takes_its_place_back() {
    let mut stage = stage();
    let inbox = stage.follower.inbox.clone();
    std::thread::scope(|scope| {
        let follower = &mut stage.follower;
        scope.spawn(move || follower.follow());
        let told = stage.told.recv_timeout(Duration::from_secs(60));
        inbox.stop();
        assert!(matches!(told, Ok(Announcement::NoPlace)));
    });
}
