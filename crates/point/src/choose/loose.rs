//! Loose scans: of each group of an index's first columns only the first entry is read, or the last, and then the next group is
//! looked for. For `GROUP BY a` with MIN or MAX of the next column, and for `SELECT DISTINCT a`. MIN and MAX of one column
//! without GROUP BY are both ends of a range.

use super::{Choice, Condition, Draft, Expr, Refusal, SMALL_TABLE, Scope, Test, Wish, conditions};

/// What is read of the groups of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loose {
    /// A group is of so many of the first columns; 0: every range is one.
    pub parts: usize,
    /// The entry with the greatest value of the next column is read.
    pub last: bool,
    /// So is the one with the least.
    pub first: bool,
}

/// What a statement wants of groups, in columns of its only table.
pub struct Grouped {
    pub keys: Vec<usize>,
    /// MIN, and MAX (`true`), of columns.
    pub extremes: Vec<(usize, bool)>,
}

/// The index along which the ends of the groups are read; `None` if none serves, or if it is better to read all rows.
pub fn choose_loose(scope: &Scope, conjuncts: &[Expr], grouped: &Grouped) -> Result<Option<Choice>, Refusal> {
    let handle = scope.tables[0].stored().expect("groups are of a stored table");
    let rows = handle.row_count() as f64;
    if rows <= SMALL_TABLE {
        return Ok(None);
    }
    let found = conditions(scope, 0, 0, conjuncts.iter().enumerate());
    let groups = grouped.keys.len();
    let ends = |draft: Draft<'_>, parts: usize| {
        let (first, last) = (
            grouped.extremes.iter().any(|(_, is_max)| !is_max),
            grouped.extremes.iter().any(|(_, is_max)| *is_max),
        );
        let mut choice = draft.finish(scope, handle, rows)?;
        choice.access.loose = Some(Loose { parts, first, last });
        choice.access.row_limit = u64::MAX;
        // The draft was made without an order in mind, and groups are always met upwards: who wants an order sorts them.
        (choice.gives_order, choice.order_prefix) = (false, 0);
        Ok(Some(choice))
    };
    for (n, index) in super::visible_indexes(handle) {
        let parts = &index.parts;
        let is_whole = |at: usize| parts[at].prefix_len.is_none() && !parts[at].descending;
        let leads = groups <= parts.len()
            && (0..groups).all(|at| is_whole(at) && grouped.keys.contains(&parts[at].column));
        let is_next = |(column, is_max): &(usize, bool)| {
            // NULLs come first, and are no least value.
            let has_end = *is_max || !handle.def.columns[*column].nullable;
            groups < parts.len() && is_whole(groups) && parts[groups].column == *column && has_end
        };
        let mut draft = Draft::of(handle, n, index, &found, usize::MAX, &Wish::default());
        let serves_all =
            found.len() == conjuncts.len() && found.iter().all(|c: &Condition<'_>| draft.serves(c));
        if !serves_all {
            continue;
        }
        if groups == 0 {
            let at = draft.eq.len();
            let is_it =
                |(column, _): &(usize, bool)| parts.get(at).is_some_and(|part| part.column == *column);
            let has_one_value = draft.eq.iter().all(|condition| !matches!(condition.test, Test::In(_)));
            if at < parts.len() && is_whole(at) && has_one_value && grouped.extremes.iter().all(is_it) {
                draft.not_null = true;
                return ends(draft, 0);
            }
            continue;
        }
        if !leads || !grouped.extremes.iter().all(is_next) || draft.has_range() || draft.eq.len() > groups {
            continue;
        }
        return ends(draft, groups);
    }
    Ok(None)
}
