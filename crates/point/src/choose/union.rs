//! ORs whose sides lead to rows by different indexes: `a = 1 OR b = 2` with an index on each. The rows of all of them
//! together are read, each once.

use avocet_engine::TableHandle;
use avocet_sql::ranges::{Alternatives, Side};

use super::estimate::{Estimate, LIKELY_ROWS};
use super::{Access, Choice, Draft, Wish, serve_or};
use crate::Refusal;
use crate::keys::KeyTerms;
use crate::scope::Scope;

/// An OR each of whose sides has an index that serves it.
pub struct Union<'c> {
    or: &'c Alternatives<'c>,
    sides: Vec<Draft<'c>>,
    pub estimate: Estimate,
}

impl<'c> Union<'c> {
    /// `None` if a side has no index, or if one index serves all of them.
    pub fn of(handle: &'c TableHandle, or: &'c Alternatives<'c>, rows: f64, wish: &Wish<'_>) -> Option<Self> {
        let each = Wish { must: wish.must, ..Wish::default() };
        let best_of = |side: &'c Side<'c>| {
            super::visible_indexes(handle)
                .map(|(n, index)| Draft::of(handle, n, index, &side.conditions, usize::MAX, &each))
                .filter(Draft::has_terms)
                .reduce(|best, draft| if draft.beats(&best, rows) { draft } else { best })
        };
        let sides = or.sides.iter().map(best_of).collect::<Option<Vec<_>>>()?;
        let is_several = sides.iter().any(|side| side.index != sides[0].index);
        let estimate = Estimate::sum(sides.iter().map(|side| &side.estimate));
        is_several.then_some(Self { or, sides, estimate })
    }

    /// What it is compared by: as `Draft::beats`, in a table that has at least the likely rows.
    pub fn rows(&self, table: f64) -> f64 {
        self.estimate.rows(table.max(LIKELY_ROWS))
    }

    /// As `Draft::is_unsure`, of any of them.
    pub fn is_unsure(&self, rows: f64) -> bool {
        self.sides.iter().any(|side| side.is_unsure(rows))
    }

    /// An access for each index, with the terms of its sides.
    pub fn finish(&self, scope: &Scope, handle: &TableHandle) -> Result<Choice, Refusal> {
        let mut by_index: Vec<(usize, Vec<KeyTerms>)> = Vec::new();
        for side in &self.sides {
            let terms = side.terms(scope, handle)?;
            match by_index.iter_mut().find(|(index, _)| *index == side.index) {
                Some((_, all)) => all.push(terms),
                None => by_index.push((side.index, vec![terms])),
            }
        }
        let parts = by_index.into_iter().map(|(index, mut sides)| {
            let terms = match sides.len() {
                1 => sides.remove(0),
                _ => KeyTerms { any_of: sides.into(), ..KeyTerms::default() },
            };
            Access { index: Some(index), terms, ..Access::default() }
        });
        let access =
            Access { union: parts.collect(), row_limit: self.estimate.row_limit(), ..Access::default() };
        let served = if serve_or(self.or, &self.sides) { vec![self.or.at] } else { Vec::new() };
        let estimate = self.rows(handle.row_count() as f64);
        Ok(Choice { access, served, estimate, ..Choice::default() })
    }
}
