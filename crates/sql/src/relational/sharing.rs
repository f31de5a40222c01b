//! Which common table expressions are evaluated once for all who read them.
//!
//! Those that could give each reader other rows (random functions, LIMIT), and those that give few rows for much work.
//! Joins and filters are better planned for each reader.

use std::collections::{HashMap, HashSet};

use crate::plan::walk::{for_each_expr_mut, for_each_query, for_each_select};
use crate::plan::{CteBody, CteId, From, QueryExpr};

/// How common table expressions are read.
pub(super) struct Sharing {
    /// By how many references, those of their own recursion not counted.
    reads: HashMap<CteId, usize>,
    shared: HashSet<CteId>,
}

impl Sharing {
    pub fn of(query: &QueryExpr) -> Self {
        let reads = reads(query);
        let mut shared = HashSet::new();
        if reads.values().any(|&reads| reads > 1) {
            for_each_query(query, &mut |query| {
                for cte in &query.ctes {
                    let is_worth = match &cte.body {
                        CteBody::Plain(body) => is_worth_sharing(body, &shared),
                        CteBody::Recursive { .. } => true,
                    };
                    if is_worth {
                        shared.insert(cte.id);
                    }
                }
            });
        }
        // Those that are read once, too, count for what they are read by.
        shared.retain(|id| reads.get(id).is_some_and(|&reads| reads > 1));
        Self { reads, shared }
    }

    pub fn is_read(&self, cte: CteId) -> bool {
        self.reads.get(&cte).is_some_and(|&reads| reads > 0)
    }

    pub fn is_shared(&self, cte: CteId) -> bool {
        self.shared.contains(&cte)
    }
}

fn reads(query: &QueryExpr) -> HashMap<CteId, usize> {
    let mut reads = HashMap::new();
    for_each_select(query, &mut |select| count_reads(&select.from, &mut reads));
    // A recursion reads itself.
    for_each_query(query, &mut |query| {
        for cte in &query.ctes {
            let CteBody::Recursive { step, .. } = &cte.body else { continue };
            let mut within = HashMap::new();
            for_each_select(step, &mut |select| count_reads(&select.from, &mut within));
            if let (Some(all), Some(own)) = (reads.get_mut(&cte.id), within.get(&cte.id)) {
                *all -= own;
            }
        }
    });
    reads
}

fn count_reads(from: &From, reads: &mut HashMap<CteId, usize>) {
    match from {
        From::Dual | From::Table(_) | From::Derived(_) => {}
        From::Cte(reference) => *reads.entry(reference.cte).or_default() += 1,
        From::Join(join) => {
            count_reads(&join.left, reads);
            count_reads(&join.right, reads);
        }
    }
}

fn is_worth_sharing(body: &QueryExpr, shared: &HashSet<CteId>) -> bool {
    let mut is_worth = false;
    for_each_query(body, &mut |query| is_worth |= query.limit.is_some());
    for_each_select(body, &mut |select| {
        let mut reads = HashMap::new();
        count_reads(&select.from, &mut reads);
        is_worth |= select.aggregation.is_some()
            || select.distinct
            || !select.windows.is_empty()
            || reads.keys().any(|id| shared.contains(id));
    });
    for_each_expr_mut(&mut body.clone(), &mut |expr| is_worth |= expr.is_volatile());
    is_worth
}
