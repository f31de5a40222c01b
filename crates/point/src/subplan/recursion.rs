//! Recursive common table expressions: the seed's rows, and round by round what the step makes of the rows of the round before.

use avocet_engine::Txn;
use avocet_sql::plan::CteId;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::RowProgram;
use avocet_types::{Collation, Value};

use super::{Gathered, SubPlan, SubScratch};
use crate::run::count;
use crate::scope::JoinedRow;
use crate::{Bounds, Run};

/// On the analytical path, beginning and ending a round takes as long as going through so many rows here.
const ROWS_OF_ROUND: u64 = 32;

#[derive(Debug)]
pub struct Recursion {
    pub cte: CteId,
    pub seed: Box<SubPlan>,
    pub step: Box<SubPlan>,
    /// Rows that are there already are left out, and lead to no others.
    pub distinct: bool,
    pub collations: Box<[Collation]>,
    /// The recursion ends when there are enough rows.
    pub limit: Option<RowProgram>,
    pub offset: Option<RowProgram>,
}

/// The rows of the round before, for the step; around it are those of recursions that enclose this one.
#[derive(Clone, Copy)]
pub struct WorkTable<'w> {
    cte: CteId,
    rows: &'w [Value],
    around: Option<&'w WorkTable<'w>>,
}

impl<'w> WorkTable<'w> {
    fn find(&'w self, cte: CteId) -> Option<&'w [Value]> {
        if self.cte == cte { Some(self.rows) } else { self.around?.find(cte) }
    }
}

impl Recursion {
    /// What EXPLAIN shows.
    pub fn parts(&self) -> [&SubPlan; 2] {
        [&self.seed, &self.step]
    }

    pub(super) fn gather(
        &self,
        row: &JoinedRow<'_>,
        txn: &mut Txn,
        run: Run<'_>,
        gathered: &mut Gathered,
        [seeds, steps]: &mut [SubScratch; 2],
    ) -> Result<(), SqlError> {
        let Run { params, ctx, bounds, .. } = run;
        let offset = count(self.offset.as_ref(), params, ctx)?.unwrap_or(0);
        let most = count(self.limit.as_ref(), params, ctx)?.map_or(u64::MAX, |n| n.saturating_add(offset));
        let is_enough = |gathered: &Gathered| gathered.rows as u64 >= most;
        self.seed.gather(row, txn, run, seeds)?;
        let mut round = std::mem::take(&mut seeds.gathered.values);
        self.accept(&mut round, gathered, bounds);
        let mut rounds = 0;
        while !round.is_empty() && !is_enough(gathered) {
            rounds += 1;
            if rounds > ctx.cte_max_recursion_depth {
                return Err(ErrorCode::CTE_MAX_RECURSION_DEPTH.with(&[&rounds]));
            }
            bounds.allow_more(ROWS_OF_ROUND);
            let table = WorkTable { cte: self.cte, rows: &round, around: run.work_table };
            self.step.gather(row, txn, Run { work_table: Some(&table), ..run }, steps)?;
            let mut next = std::mem::take(&mut steps.gathered.values);
            self.accept(&mut next, gathered, bounds);
            round = next;
        }
        gathered.keep_some(offset as usize, most, self.collations.len());
        Ok(())
    }

    /// Adds a round's rows to the others, and leaves those of it that go on.
    fn accept(&self, round: &mut Vec<Value>, gathered: &mut Gathered, bounds: &Bounds<'_>) {
        let width = self.collations.len();
        if self.distinct {
            let rows = std::mem::take(round);
            let mut rows = rows.into_iter();
            loop {
                let row: Vec<Value> = rows.by_ref().take(width).collect();
                if row.is_empty() {
                    break;
                }
                if gathered.insert_key(row.iter().zip(&self.collations), bounds) {
                    round.extend(row);
                }
            }
        }
        gathered.extend(round, width, bounds);
    }
}

/// Copies the rows of the round before.
pub(super) fn gather_work_table(cte: CteId, run: Run<'_>, width: usize, gathered: &mut Gathered) {
    let rows = run.work_table.and_then(|table| table.find(cte));
    gathered.extend(rows.expect("a step runs within its recursion"), width, run.bounds);
}
