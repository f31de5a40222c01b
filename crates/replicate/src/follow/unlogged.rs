//! Statements that the log has in place of their rows (`binlog_format`): which tables may have changed by them.
//!
//! The text names some of them. Others are behind a view, follow their parents by CASCADE, or are changed by triggers and stored
//! functions, of which there are none here: then everything that is followed may have changed.

use std::collections::BTreeSet;

use avocet_sql::bind::{names_in, parse_view};

use super::Follower;
use crate::error::Result;
use crate::source;
use crate::state::{TableName, TableState};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Table,
    /// A view, and what it reads.
    View(Vec<TableName>),
    /// Nobody knows.
    Unknown,
}

/// What changes of these names lead to; `None` for anything. `kind_of`: what a name is. `children_of`: the tables whose rows change with
/// those of a table.
fn reach(
    names: &[TableName],
    mut kind_of: impl FnMut(&TableName) -> Result<Named>,
    children_of: impl Fn(&TableName) -> Vec<TableName>,
) -> Result<Option<BTreeSet<TableName>>> {
    let (mut ahead, mut seen, mut reached) = (names.to_vec(), BTreeSet::new(), BTreeSet::new());
    while let Some(name) = ahead.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        match kind_of(&name)? {
            Named::Table => {
                ahead.extend(children_of(&name));
                reached.insert(name);
            }
            Named::View(of) => ahead.extend(of),
            Named::Unknown => return Ok(None),
        }
    }
    Ok(Some(reached))
}

impl Follower {
    /// A statement has changed rows which the log does not have. `names`: those that its text changes; with `calls_unknown`, it calls
    /// stored functions.
    pub(super) fn rows_are_unlogged(&mut self, names: &[TableName], calls_unknown: bool) -> Result<()> {
        const WHY: &str =
            "a session of the source has written a statement instead of its rows (binlog_format)";
        let reached = match calls_unknown || self.may_have_triggers {
            true => None,
            false => reach(names, |name| self.kind_of(name), |name| self.cascading_children(name))?,
        };
        match reached {
            None => self.set_all_aside(WHY),
            Some(reached) => reached.iter().for_each(|name| {
                if self.patterns.has_table(&name.database, &name.table) {
                    self.set_aside_unseen(name, WHY);
                }
            }),
        }
        Ok(())
    }

    /// Nobody knows which rows have changed.
    pub(super) fn set_all_aside(&mut self, why: &str) {
        for name in self.all_followed() {
            if self.patterns.has_table(&name.database, &name.table) {
                self.set_aside_unseen(&name, why);
            }
        }
    }

    fn kind_of(&self, name: &TableName) -> Result<Named> {
        let catalog = self.engine.catalog();
        if let Some(view) = catalog.view(&name.database, &name.table) {
            let query = view.def.view.as_deref().and_then(|of| parse_view(&view.def, of).ok());
            let named =
                |query| names_in(&query).into_iter().map(|(database, table)| TableName { database, table });
            return Ok(query.map_or(Named::Unknown, |query| Named::View(named(query).collect())));
        }
        if catalog.table(&name.database, &name.table).is_some() {
            return Ok(Named::Table);
        }
        // A table that is left out, or a view: of what it reads, something may be followed.
        match source::is_table(&mut source::connect(&self.opts)?, name)? {
            true => Ok(Named::Table),
            false => Ok(Named::Unknown),
        }
    }

    /// All tables that are here or wait to be, but for those that cannot be followed.
    fn all_followed(&self) -> BTreeSet<TableName> {
        let catalog = self.engine.catalog();
        let here = catalog
            .tables()
            .map(|table| TableName { database: table.def.database.clone(), table: table.def.name.clone() });
        let is_refused =
            |name: &TableName| matches!(self.state.tables.get(name), Some(TableState::Refused { .. }));
        here.chain(self.state.tables.keys().cloned()).filter(|name| !is_refused(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> TableName {
        TableName { database: "d".into(), table: table.into() }
    }

    /// `v` is a view of `w` and `u`, `w` one of `t`; `c` is a child of `t`, and `g` of `c`, and `c` of `g`.
    fn reached(names: &[&str]) -> Option<String> {
        let kind_of = |name: &TableName| {
            Ok(match name.table.as_str() {
                "v" => Named::View(vec![self::name("w"), self::name("u")]),
                "w" => Named::View(vec![self::name("t")]),
                "x" => Named::Unknown,
                _ => Named::Table,
            })
        };
        let children_of = |parent: &TableName| match parent.table.as_str() {
            "t" | "g" => vec![name("c")],
            "c" => vec![name("g")],
            _ => Vec::new(),
        };
        let names: Vec<TableName> = names.iter().copied().map(name).collect();
        let reached = reach(&names, kind_of, children_of).expect("nobody is asked")?;
        Some(reached.iter().map(|name| name.table.as_str()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn views_and_children_are_followed_to_their_tables() {
        assert_eq!(reached(&["a"]).as_deref(), Some("a"));
        assert_eq!(reached(&["v"]).as_deref(), Some("c g t u"));
        assert_eq!(reached(&["g", "a"]).as_deref(), Some("a c g"));
        assert_eq!(reached(&[]).as_deref(), Some(""));
    }

    #[test]
    fn a_name_that_nobody_knows_may_be_anything() {
        assert_eq!(reached(&["a", "x"]), None);
    }
}
