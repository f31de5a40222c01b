//! UPDATE and DELETE whose rows a query finds: of several tables, with subqueries, and of much of a large table.
//!
//! The query runs at the newest snapshot and gives row ids. These rows are locked; if one of them has changed since that
//! snapshot, the query runs again at a newer one, at which the rows locked so far are as they will stay. So the rows that
//! change in the end are just those for which the condition holds in their newest versions.

use std::sync::Arc;

use avocet_engine::{RowLock, TableHandle};
use avocet_point::{Changer, Changes, Refusal, Rows, Verb};
use avocet_sql::bind::{Modification, ModifySpec, bind_modification};
use avocet_sql::parse::statement::{Delete, Update};
use avocet_types::error::{ErrorCode, SqlError};

use super::{Counter, Done, Session, Text};
use crate::locking::RowLocks;
use crate::select::MAX_REBINDS;

impl Session {
    pub(super) async fn delete_joined(&mut self, delete: &Delete, text: &Text<'_>) -> Result<Done, SqlError> {
        self.shared.counters.add(Counter::Delete);
        let changes = self.modify_joined(delete.into(), Verb::Delete, delete.ignore, text).await?;
        Ok(Done { affected_rows: changes.changed, ..Done::default() })
    }

    pub(super) async fn update_joined(&mut self, update: &Update, text: &Text<'_>) -> Result<Done, SqlError> {
        self.shared.counters.add(Counter::Update);
        let Changes { matched, changed, .. } =
            self.modify_joined(update.into(), Verb::Update, update.ignore, text).await?;
        let warnings = self.condition_count() + self.context.warning_count();
        Ok(Done {
            affected_rows: if self.info.found_rows { matched } else { changed },
            tells_chosen: true,
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
            ..Done::default()
        })
    }

    async fn modify_joined(
        &mut self,
        spec: ModifySpec<'_>,
        verb: Verb,
        ignore: bool,
        text: &Text<'_>,
    ) -> Result<Changes, SqlError> {
        let (bound, tables) = self.bind_held(spec, text)?;
        let changer = Changer::compile(&bound, verb, ignore, &self.catalog()).map_err(Refusal::into_error)?;
        let rows = self.locked_rows(&bound, &changer, &tables, text).await?;
        self.with_run(text.params, |txn, run, _| changer.apply(&rows, txn, run))
    }

    /// Binds the statement and holds its tables till the end of the transaction.
    fn bind_held(
        &mut self,
        spec: ModifySpec<'_>,
        text: &Text<'_>,
    ) -> Result<(Modification, Vec<Arc<TableHandle>>), SqlError> {
        for _ in 0..MAX_REBINDS {
            let view = self.view();
            let catalog = view.catalog.clone();
            let bound = bind_modification(spec, text.source, &view, &text.types)?;
            for target in &bound.targets {
                self.refuse_own_tables(&target.database)?;
            }
            if let Some(tables) = self.hold_tables_of(&bound.query, &catalog)? {
                return Ok((bound, tables));
            }
        }
        Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]))
    }

    /// The combinations of rows that match, with all target rows locked.
    async fn locked_rows(
        &mut self,
        bound: &Modification,
        changer: &Changer,
        tables: &[Arc<TableHandle>],
        text: &Text<'_>,
    ) -> Result<Rows, SqlError> {
        let mut query = bound.query.clone();
        // Of subqueries with FOR UPDATE or FOR SHARE.
        let mut locks = RowLocks::of(&mut query)?;
        // Whether there are rows of theirs or not.
        for table in tables.iter().filter(|table| bound.targets.iter().any(|of| of.id == table.id())) {
            self.txn().use_to_lock(table, RowLock::FOR_UPDATE)?;
        }
        let begin = self.txn().mark();
        let mut is_first = true;
        loop {
            let reader = self.txn().newest_reader();
            let ts = reader.ts();
            let mut found = self.collected();
            let as_read = self.lock_round(&mut locks, &reader.clone().into(), tables, text).await?;
            let query = locks.applied_to(query.clone());
            self.analyze_at(reader.clone().into(), query.into(), tables.to_vec(), text, &mut found, u64::MAX)
                .await?;
            let mut rows = Rows::default();
            let all_there = self.with_run(text.params, |txn, run, _| {
                let mut gather = changer.gather(&mut rows, run.bounds);
                found.for_each(&mut |row| {
                    run.bounds.row()?;
                    let row: Vec<_> = row.into_iter().map(|(value, _)| value).collect();
                    gather.push(&row);
                    Ok(())
                })?;
                changer.lock(&rows, txn, run)
            })?;
            // Kept till here: old versions tell what has changed.
            drop(reader);
            let is_done = as_read && all_there && !self.txn().has_met_newer(ts);
            if is_done || self.txn().is_strict() {
                // Rows that others changed meanwhile may not match any more.
                if !is_first {
                    let mut wanted = changer.wanted(&rows);
                    wanted.extend(locks.wanted());
                    self.txn().let_go_of(begin, &|table, row| wanted.contains(&(table, row)));
                }
                return Ok(rows);
            }
            is_first = false;
            self.info.interrupt.check()?;
        }
    }
}
