//! What a session's statements add to the summaries by digest.

use std::sync::Arc;
use std::time::Instant;

use avocet_sql::parse::statement::StatementKind;
use avocet_types::error::SqlError;

use super::counters::Counter;
use super::plan_cache::CachedPlan;
use super::run::Text;
use super::state::Session;
use super::summaries::Came;

/// Statements with values that nobody else is to see have no sample.
fn shows_values(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Query(_)
            | StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_)
            | StatementKind::Call { .. }
    )
}

impl Session {
    /// When a statement begins, if it is to be summed up.
    #[inline]
    pub(super) fn begin_summary(&self) -> Option<Instant> {
        self.settings.sums_up.then(Instant::now)
    }

    /// Sums up a statement that ran on its plan.
    pub(super) fn sum_up_plan(&mut self, began: Instant, plan: &CachedPlan, source: &str, failed: bool) {
        let came = self.came(began, failed);
        let summaries = &self.shared.summaries;
        let generation = summaries.generation();
        if let Some(known) = &*plan.summary.0.load()
            && known.0 == generation
        {
            return known.1.note(&came);
        }
        let memory = self.shared.engine.memory();
        let (database, mode) = (self.database.as_deref(), self.settings.sql_mode);
        let summary = summaries.of(memory, database, source.as_bytes(), mode, true, came.at_us);
        summary.note(&came);
        plan.summary.0.store(Some(Arc::new((generation, summary))));
    }

    /// Sums up a statement that ran without one. `schema`: the default database in which it began.
    pub(super) fn sum_up(
        &mut self,
        began: Instant,
        schema: Option<&str>,
        kind: &StatementKind,
        text: &Text<'_>,
        result: &Result<(), SqlError>,
    ) {
        let source = match self.part_of_text {
            Some(span) => span.bytes(text.source),
            None => text.source,
        };
        let came = self.came(began, result.is_err());
        let shared = self.shared.clone();
        let generation = shared.summaries.generation();
        if let Some(summary) = self.recent_summaries.get(generation, schema, source) {
            return summary.note(&came);
        }
        let (memory, mode) = (shared.engine.memory(), self.settings.sql_mode);
        let summary = shared.summaries.of(memory, schema, source, mode, shows_values(kind), came.at_us);
        summary.note(&came);
        self.recent_summaries.put(source, &summary);
    }

    fn came(&self, began: Instant, failed: bool) -> Came {
        let (affected, sent) = match (failed, self.row_count) {
            (true, _) => (0, 0),
            (false, -1) => (0, self.found_rows),
            (false, changed) => (changed.max(0) as u64, 0),
        };
        let took = began.elapsed();
        if took >= self.settings.slow_after {
            self.shared.counters.add(Counter::SlowQueries);
        }
        // The clock was read when the statement began.
        let at_us = match self.settings.fixed_time {
            None => self.context.statement_time_micros.saturating_add(took.as_micros() as i64),
            Some(_) => self.shared.engine.options().env.clock.wall_us(),
        };
        Came { took, at_us, failed, warnings: self.condition_count() - u64::from(failed), affected, sent }
    }
}
