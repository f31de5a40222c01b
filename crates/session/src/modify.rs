//! UPDATE and DELETE: on a plan that is made for the statement alone if none is kept of it. If it has none, a query finds the
//! rows (`joined.rs`).

mod joined;

use avocet_engine::{EngineError, StatementMark};
use avocet_point::{self as point, PointPlan, Refusal, Verb};
use avocet_sql::parse::statement::{Delete, Update};
use avocet_types::Datum;
use avocet_types::error::{ErrorCode, SqlError};

use super::assigned::not_assigning;
use super::counters::Counter;
use super::point::is_read_as;
use super::run::{Done, Outcome, Text};
use super::select::MAX_REBINDS;
use super::state::{Level, Session};

/// The rows that a change looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Finds {
    /// It adds rows.
    Nothing,
    /// No more than its LIMIT.
    Some,
    All,
}

impl Finds {
    fn of(is_limited: bool) -> Self {
        if is_limited { Self::Some } else { Self::All }
    }
}

impl Session {
    pub(super) async fn update(&mut self, update: &Update, text: &Text<'_>) -> Result<Outcome, SqlError> {
        self.set_storing(!update.ignore);
        self.set_ignoring(update.ignore);
        let mark = self.begin_statement()?;
        let compile = |session: &Self| {
            let (view, catalog) = (session.view(), session.catalog());
            point::compile_update(update, text.source, &view, &catalog, &text.types)
        };
        let result = match self.change_once(&compile, Finds::of(update.limit.is_some()), mark, text).await {
            Ok(None) => self.update_joined(update, text).await,
            Ok(Some(done)) => Ok(done),
            Err(error) => Err(error),
        };
        self.end_statement(mark, result).await.map(Outcome::Done)
    }

    pub(super) async fn delete(&mut self, delete: &Delete, text: &Text<'_>) -> Result<Outcome, SqlError> {
        self.set_storing(!delete.ignore);
        self.set_ignoring(delete.ignore);
        let mark = self.begin_statement()?;
        let compile = |session: &Self| {
            let (view, catalog) = (session.view(), session.catalog());
            point::compile_delete(delete, text.source, &view, &catalog, &text.types)
        };
        let result = match self.change_once(&compile, Finds::of(delete.limit.is_some()), mark, text).await {
            Ok(None) => self.delete_joined(delete, text).await,
            Ok(Some(done)) => Ok(done),
            Err(error) => Err(error),
        };
        self.end_statement(mark, result).await.map(Outcome::Done)
    }

    /// Runs a change on a plan that is made for this run alone; `None` if a query is to find its rows, or another piece of code is
    /// to take it, and nothing happened yet. A change that `finds` no rows has nothing to do with how rows are found.
    pub(super) async fn change_once(
        &mut self,
        compile: &(dyn Fn(&Self) -> Result<PointPlan, Refusal> + Sync),
        finds: Finds,
        mark: StatementMark,
        text: &Text<'_>,
    ) -> Result<Option<Done>, SqlError> {
        let is_guarded = self.settings.safe_updates && finds == Finds::All;
        let may_run = self.settings.point_path || self.assigns || finds == Finds::Nothing;
        if !may_run && !is_guarded {
            return Ok(None);
        }
        for _ in 0..MAX_REBINDS {
            let plan = match compile(self) {
                Ok(plan) => plan,
                Err(Refusal::NotPoint(_)) if is_guarded => {
                    return Err(ErrorCode::UPDATE_WITHOUT_KEY_IN_SAFE_MODE.with(&[]));
                }
                Err(Refusal::NotPoint(reason)) if self.assigns && finds != Finds::Nothing => {
                    return Err(not_assigning(reason));
                }
                Err(Refusal::NotPoint(_)) => return Ok(None),
                Err(Refusal::Error(error)) => return Err(error),
            };
            self.check_safe_plan(&plan, text.params)?;
            let zeros = self.settings.sql_mode.zero_dates();
            let reads_as_dates =
                plan.dates().iter().all(|(at, read_as)| is_read_as(&text.params[*at], *read_as, zeros));
            if !may_run || !reads_as_dates {
                return Ok(None);
            }
            let mut nothing = self.collected();
            if let point::Outcome::Changed(changes) =
                self.execute_in_turn(&plan, text.params, mark, &mut nothing).await?
            {
                return Ok(Some(self.done(&plan, changes)));
            }
            if plan.is_current(&self.catalog()) {
                return Ok(None);
            }
        }
        Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]))
    }

    /// IGNORE makes a warning of an error that concerns one row.
    pub(super) fn ignore_row(&mut self, error: EngineError) {
        let error = SqlError::from(error);
        self.warn(Level::Warning, error.errno, error.message);
    }

    /// Under `sql_safe_updates`, fails unless keys lead to the rows that an UPDATE or DELETE changes, or a LIMIT bounds them.
    pub(super) fn check_safe_plan(&self, plan: &PointPlan, params: &[Datum<'_>]) -> Result<(), SqlError> {
        let is_bounded = || plan.is_limited() || plan.changes_by_keys(params, &self.context);
        match self.settings.safe_updates
            && matches!(plan.verb(), Verb::Update | Verb::Delete)
            && !is_bounded()
        {
            true => Err(ErrorCode::UPDATE_WITHOUT_KEY_IN_SAFE_MODE.with(&[])),
            false => Ok(()),
        }
    }
}
