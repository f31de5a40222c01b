//! EXPLAIN and EXPLAIN ANALYZE.

use std::sync::Arc;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_point::{self as point, Measurements, PointPlan, Refusal, Verb};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast;
use avocet_sql::parse::statement::{Statement, StatementKind};
use avocet_sql::relational;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Warning;
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, SqlType};

use super::output::{COUNT, LONG_TEXT, Rowset, optional, text, varchar};
use super::point::{ReadAt, With};
use super::run::{Outcome, Text};
use super::select::BoundNow;
use super::state::Session;
use avocet_sql::explain::{self, Block, Measured, Step};

/// ER_YES: the note under which EXPLAIN says more of a statement.
const NOTE: u16 = 1003;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Traditional,
    Tree,
    Json,
}

impl Session {
    pub(super) async fn explain(
        &mut self,
        statement: &Statement,
        analyze: bool,
        format: Option<&str>,
        source: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let form = match format {
            None if analyze => Form::Tree,
            Some("TRADITIONAL" | "TRADITIONAL_STRICT") if analyze => {
                return Err(unsupported("EXPLAIN ANALYZE with TRADITIONAL format"));
            }
            None | Some("TRADITIONAL" | "TRADITIONAL_STRICT") => Form::Traditional,
            Some("TREE") => Form::Tree,
            Some("JSON") => Form::Json,
            Some(unknown) => return Err(ErrorCode::UNKNOWN_EXPLAIN_FORMAT.with(&[&unknown])),
        };
        let (step, note) = self.explained(&statement.kind, analyze, source).await?;
        self.context.push_warning(Warning { errno: NOTE, message: note, note: true });
        let rows = match form {
            Form::Traditional => table(&explain::rows(&step)),
            Form::Tree => whole(explain::tree(&step)),
            Form::Json => whole(explain::json(&step)),
        };
        self.send(&rows, sink)
    }

    /// How a statement would be run, or was; and which way it takes, in words.
    async fn explained(
        &mut self,
        statement: &StatementKind,
        analyze: bool,
        text: &Text<'_>,
    ) -> Result<(Step, String), SqlError> {
        use StatementKind as S;
        let query = match statement {
            S::Query(query) => Some(query),
            S::Insert(_) | S::Update(_) | S::Delete(_) if analyze => {
                return Err(unsupported("EXPLAIN ANALYZE on this statement"));
            }
            S::Insert(_) | S::Update(_) | S::Delete(_) => None,
            _ => return Err(unsupported("EXPLAIN of this statement")),
        };
        let bound = query.map(|query| self.bind_now(query, text)).transpose()?;
        let compiled = match &bound {
            Some(bound) => self.plan_once(&bound.query, self.settings.select_limit),
            None => {
                let source = std::str::from_utf8(text.source).unwrap_or_default();
                self.compile_point(statement, source, &text.types, &[])
            }
        };
        let note = match compiled {
            Ok(plan) if self.settings.point_path => {
                let note = format!("Point plan: {}", plan.describe());
                if let Some(step) = self.point_steps(&plan, bound.as_ref(), analyze, text).await? {
                    return Ok((step, note));
                }
                note
            }
            Ok(_) => "Not a point plan: settings of the session ask for more".to_owned(),
            Err(Refusal::NotPoint(reason)) => format!("Not a point plan: {reason}"),
            Err(Refusal::Error(error)) => return Err(error),
        };
        let step = match query.zip(bound) {
            Some((query, bound)) => self.query_steps(query, bound, analyze, text).await?,
            None => general_change(statement),
        };
        Ok((step, note))
    }

    /// The steps of a point plan. `None` if it was run and left the query to the other path.
    async fn point_steps(
        &mut self,
        plan: &PointPlan,
        query: Option<&BoundNow>,
        analyze: bool,
        text: &Text<'_>,
    ) -> Result<Option<Step>, SqlError> {
        if !analyze {
            return Ok(Some(plan.steps(None)));
        }
        if plan.verb() != Verb::Select || plan.locks() {
            return Err(unsupported("EXPLAIN ANALYZE of a statement that locks rows"));
        }
        let mut rows = Counted::default();
        let own_rows = query.map_or(Ok(Vec::new()), |bound| self.own_rows_of(&bound.query, text.params))?;
        let mark = self.begin_query(plan.tables().next().is_some())?;
        let begin = Instant::now();
        let measurements = Measurements::default();
        let with = With { given: &own_rows, measurements: Some(&measurements) };
        let result = self.execute_plan(plan, text.params, ReadAt::Snapshot, with, &mut rows);
        let all_ms = begin.elapsed().as_secs_f64() * 1e3;
        let first_ms = rows.first.map_or(all_ms, |first| (first - begin).as_secs_f64() * 1e3);
        match self.end_query(mark, result).await? {
            point::Outcome::Declined => Ok(None),
            _ => {
                let rows = rows.rows as f64;
                let mut step = plan.steps(Some(&measurements));
                step.actual = Some(Measured { rows, loops: 1, first_ms, all_ms, memory: None });
                Ok(Some(step))
            }
        }
    }

    /// The steps of a query that has no point plan.
    async fn query_steps(
        &mut self,
        query: &ast::Query,
        bound: BoundNow,
        analyze: bool,
        text: &Text<'_>,
    ) -> Result<Step, SqlError> {
        let mark = self.begin_query(bound.reads_tables())?;
        let result = async {
            let (bound, tables) = self.hold_bound(bound, query, text)?;
            if analyze && bound.locks {
                return Err(unsupported("EXPLAIN ANALYZE of a statement that locks rows"));
            }
            let readers = self.txn().reader();
            let (plan, measurements) =
                self.plan_analytics(readers.into(), Arc::new(bound), tables, text, analyze).await?;
            let measured = measurements.map(|measurements| measurements.measured()).unwrap_or_default();
            Ok(relational::steps(&plan, &measured))
        }
        .await;
        self.end_query(mark, result).await
    }
}

/// A statement that changes rows which are found by a query of its own.
fn general_change(statement: &StatementKind) -> Step {
    let (what, block) = match statement {
        StatementKind::Insert(_) => ("Insert", Block::Insert),
        StatementKind::Delete(_) => ("Delete", Block::Delete),
        _ => ("Update", Block::Update),
    };
    Step { block: Some(block), ..Step::new(format!("{what} of rows that a query finds")) }
}

fn whole(plan: String) -> Rowset {
    let mut rows = Rowset::new("", &[("EXPLAIN", LONG_TEXT)]);
    rows.push(vec![text(plan)]);
    rows
}

fn table(rows: &[explain::Row]) -> Rowset {
    let columns = [
        ("id", COUNT),
        ("select_type", varchar(19)),
        ("table", varchar(64)),
        ("partitions", varchar(1024)),
        ("type", varchar(11)),
        ("possible_keys", varchar(4096)),
        ("key", varchar(64)),
        ("key_len", varchar(4096)),
        ("ref", varchar(4096)),
        ("rows", COUNT),
        ("filtered", SqlType::DOUBLE),
        ("Extra", varchar(255)),
    ];
    let mut table = Rowset::new("", &columns);
    for row in rows {
        let count = |count: Option<u64>| count.map_or(Datum::Null, Datum::UInt);
        // Two digits behind the point.
        let filtered =
            row.filtered.map_or(Datum::Null, |share| Datum::Double((share * 100.0).round() / 100.0));
        table.push(vec![
            count(row.id),
            text(row.select_type),
            optional(row.table.clone()),
            Datum::Null,
            optional(row.kind),
            optional(row.possible_keys.clone()),
            optional(row.key.clone()),
            optional(row.key_len.clone()),
            optional(row.refs.clone()),
            count(row.rows),
            filtered,
            optional(row.extra.clone()),
        ]);
    }
    table
}

/// Counts the rows of a query that is run to be measured.
#[derive(Default)]
struct Counted {
    rows: u64,
    first: Option<Instant>,
}

impl Counted {
    fn count(&mut self, rows: u64) {
        self.rows += rows;
        self.first.get_or_insert_with(Instant::now);
    }
}

impl ResultSink for Counted {
    fn columns(&mut self, _: &[OutputColumn], _: TimeZone) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, _: &[Datum<'_>]) -> Result<(), SinkError> {
        self.count(1);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        self.count((batch.num_rows() - from) as u64);
        Ok(batch.num_rows())
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
