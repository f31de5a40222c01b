//! ANALYZE, OPTIMIZE, REPAIR, CHECK and CHECKSUM TABLE.

use std::sync::Arc;

use avocet_channel::blocking::blocking;
use avocet_channel::{Cancellation, ResultSink};
use avocet_engine::{BATCH_ROWS, ScanRequest, TableHandle};
use avocet_sql::bind::CatalogView;
use avocet_sql::parse::ast::ObjectName;
use avocet_types::checksum::TableChecksum;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Datum, SqlType, datum_at};

use super::info_schema;
use super::output::{LONG_TEXT, Rowset, text, varchar};
use super::run::Outcome;
use super::schemas;
use super::select::MAX_REBINDS;
use super::state::{Level, Session};

/// What InnoDB says, and programs look for.
const RECREATED: &str = "Table does not support optimize, doing recreate + analyze instead";
const NO_REPAIR: &str = "The storage engine for the table doesn't support repair";

/// What is found out of each table.
struct Answers {
    op: &'static str,
    rows: Rowset,
}

impl Answers {
    fn of(op: &'static str) -> Self {
        let columns = [
            ("Table", varchar(128)),
            ("Op", varchar(10)),
            ("Msg_type", varchar(10)),
            ("Msg_text", LONG_TEXT),
        ];
        Self { op, rows: Rowset::new("", &columns) }
    }

    fn push(&mut self, table: &str, kind: &str, said: impl Into<String>) {
        self.rows.push(vec![text(table), text(self.op), text(kind), text(said)]);
    }
}

impl Session {
    /// ANALYZE and OPTIMIZE TABLE: but for what indexes remember of their distinct values, statistics are always fresh, and storage
    /// tidies up by itself, so there is nothing to do but to say which tables there are. REPAIR TABLE is of storage without a log, as MyISAM's is.
    pub(super) fn maintain(
        &mut self,
        what: &'static str,
        tables: &[ObjectName],
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let mut answers = Answers::of(what);
        for name in tables {
            let (database, ..) = self.named(name)?;
            if schemas::is_schema(&database) {
                return Err(self.database_denied(&database));
            }
        }
        for name in tables {
            let (database, table, full) = self.named(name)?;
            let checked = self
                .check_is_locked(&database, &table)
                .and_then(|()| self.refuse_view(&database, &table))
                .and_then(|()| self.shown_table(name));
            if let Ok(def) = &checked
                && let Some(handle) = self.catalog().table_by_id(def.id)
            {
                handle.analyze();
            }
            match checked.map(drop) {
                Ok(()) if what == "repair" => answers.push(&full, "note", NO_REPAIR),
                Ok(()) => {
                    if what == "optimize" {
                        answers.push(&full, "note", RECREATED);
                    }
                    answers.push(&full, "status", "OK");
                }
                Err(error) => {
                    let is_corrupt = error.is(ErrorCode::BAD_DB_ERROR);
                    answers.push(&full, "Error", error.message);
                    match is_corrupt {
                        true => answers.push(&full, "error", "Corrupt"),
                        false => answers.push(&full, "status", "Operation failed"),
                    }
                }
            }
        }
        self.send(&answers.rows, sink)
    }

    /// CHECK TABLE: whether rows and indexes agree, and whether views can be used.
    pub(super) async fn check_tables(
        &mut self,
        tables: &[ObjectName],
        for_upgrade: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        self.refuse_twice(tables)?;
        let mut answers = Answers::of("check");
        for name in tables {
            let mark = self.begin_statement()?;
            let checked = self.check_one(name, for_upgrade, &mut answers);
            self.end_statement(mark, checked).await?;
        }
        self.send(&answers.rows, sink)
    }

    fn check_one(
        &mut self,
        name: &ObjectName,
        for_upgrade: bool,
        answers: &mut Answers,
    ) -> Result<(), SqlError> {
        let (database, table, full) = self.named(name)?;
        let is_view = self.catalog().view(&database, &table).is_some();
        let checked = self.check_is_locked(&database, &table);
        let checked = checked.and_then(|()| self.shown_table(name).map(drop));
        let held = checked.and_then(|()| match is_view || info_schema::is_virtual(&database) {
            true => Ok(None),
            false => self.hold_table(&database, &table).map(Some),
        });
        match held {
            Ok(Some(_)) if for_upgrade => answers.push(&full, "status", "Table is already up to date"),
            Ok(Some(table)) => {
                let findings = blocking(|| self.txn().check_table(&table))?;
                match findings.is_empty() {
                    true => answers.push(&full, "status", "OK"),
                    false => {
                        findings.into_iter().for_each(|finding| answers.push(&full, "warning", finding));
                        answers.push(&full, "error", "Corrupt");
                    }
                }
            }
            Ok(None) => answers.push(&full, "status", "OK"),
            Err(error) if ends_statement(&error) => return Err(error),
            Err(error) => {
                let is_corrupt = is_view || error.is(ErrorCode::BAD_DB_ERROR);
                answers.push(&full, "Error", error.message);
                match is_corrupt {
                    true => answers.push(&full, "error", "Corrupt"),
                    false => answers.push(&full, "status", "Operation failed"),
                }
            }
        }
        Ok(())
    }

    /// CHECKSUM TABLE: a number that is MySQL's for equal tables. QUICK asks for one that is kept beside the rows; there is none.
    pub(super) async fn checksum_tables(
        &mut self,
        tables: &[ObjectName],
        quick: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        self.refuse_twice(tables)?;
        let mut rows = Rowset::new("", &[("Table", varchar(384)), ("Checksum", SqlType::BIGINT)]);
        let mark = self.begin_statement()?;
        let summed = self.checksum_each(tables, quick, &mut rows);
        self.end_statement(mark, summed).await?;
        self.send(&rows, sink)
    }

    fn checksum_each(
        &mut self,
        tables: &[ObjectName],
        quick: bool,
        rows: &mut Rowset,
    ) -> Result<(), SqlError> {
        for name in tables {
            let (database, table, full) = self.named(name)?;
            let checked = self.check_is_locked(&database, &table);
            let checked = checked.and_then(|()| self.refuse_view(&database, &table));
            let checked = checked.and_then(|()| self.shown_table(name).map(drop));
            let held = checked.and_then(|()| match info_schema::is_virtual(&database) {
                true => Err(ErrorCode::WRONG_OBJECT.with(&[&database, &table, &"BASE TABLE"])),
                false => self.hold_table(&database, &table),
            });
            let sum = match held {
                Ok(_) if quick => Datum::Null,
                Ok(table) => Datum::Int(self.checksum_of(&table)?.into()),
                Err(error) if ends_statement(&error) => return Err(error),
                Err(error) => {
                    self.warn(Level::Error, error.errno, error.message);
                    Datum::Null
                }
            };
            rows.push(vec![text(full), sum]);
        }
        Ok(())
    }

    fn checksum_of(&mut self, table: &Arc<TableHandle>) -> Result<u32, SqlError> {
        let columns = table.def.own_columns();
        let request = ScanRequest { columns: (0..columns.len()).collect(), ..ScanRequest::default() };
        let scan = self.txn().reader().scan(table, request);
        let cancellation = Cancellation::after(&self.info.interrupt, None);
        let mut checksum = TableChecksum::new(&table.def);
        blocking(|| {
            for morsel in 0..scan.morsels() {
                let mut morsel = scan.open(morsel)?;
                while let Some(batch) = morsel.next(&scan, BATCH_ROWS)? {
                    cancellation.check()?;
                    for row in 0..batch.num_rows() {
                        checksum.add(|at| datum_at(batch.column(at).as_ref(), row, &columns[at].ty));
                    }
                }
            }
            Ok(checksum.sum())
        })
    }

    /// The database and the name of a table, and both as they are shown.
    fn named(&self, name: &ObjectName) -> Result<(String, String, String), SqlError> {
        let database = match &name.database {
            Some(database) => database.name.clone(),
            None => self.current_database()?.to_owned(),
        };
        let table = match info_schema::is_virtual(&database) {
            true => self.view().table(&database, &name.name.name).map(|def| def.name.clone()),
            false => None,
        };
        let table = table.unwrap_or_else(|| name.name.name.clone());
        let full = format!("{database}.{table}");
        Ok((database, table, full))
    }

    /// Error 1066 for a table that is named twice.
    /// 1066 if a table is named twice.
    pub(crate) fn refuse_twice(&self, tables: &[ObjectName]) -> Result<(), SqlError> {
        let mut seen = Vec::new();
        for name in tables {
            let (_, _, full) = self.named(name)?;
            if seen.contains(&full) {
                return Err(ErrorCode::NONUNIQ_TABLE.with(&[&name.name.name]));
            }
            seen.push(full);
        }
        Ok(())
    }

    /// A stored table, held till the end of the transaction.
    fn hold_table(&mut self, database: &str, name: &str) -> Result<Arc<TableHandle>, SqlError> {
        for _ in 0..MAX_REBINDS {
            let Some(table) = self.catalog().table(database, name).cloned() else {
                return Err(ErrorCode::NO_SUCH_TABLE.with(&[&database, &name]));
            };
            if self.hold(&table)? {
                return Ok(table);
            }
        }
        Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]))
    }
}

/// Whether an error is not of one table.
fn ends_statement(error: &SqlError) -> bool {
    [ErrorCode::QUERY_INTERRUPTED, ErrorCode::QUERY_TIMEOUT, ErrorCode::LOCK_DEADLOCK]
        .iter()
        .any(|code| error.is(*code))
}
