//! What a statement may leave behind in its session on the source, as far as its text tells.
//!
//! What is not known counts: a session is asked once too often what it is like, and never once too few.

use avocet_sql::facts::{SessionState, StatementClass, StatementFacts};
use avocet_sql::parse::ast::{ExprKind, VariableScope};
use avocet_sql::parse::outline::Outline;
use avocet_sql::parse::statement::{SetItem, StatementKind};

/// What a statement may leave behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Variables, the default database, roles.
    pub settings: bool,
    /// `SET timestamp`: to a moment (`true`), or to what the clock says.
    pub clock: Option<bool>,
    /// FOUND_ROWS() tells of it from now on.
    pub finds_rows: bool,
    /// Rows or definitions that others see.
    pub writes: bool,
    /// The end of a transaction, perhaps: what was written in it is seen by others then.
    pub commits: bool,
    /// The next transaction is of another isolation level than the session's.
    pub next_level: bool,
    /// LOCK TABLES (`true`) or UNLOCK TABLES.
    pub table_locks: Option<bool>,
    /// The name of a temporary table that it may have made.
    pub temporary: Option<String>,
    /// KILL of the connection with this number; with `true`, of its statement alone.
    pub kills: Option<(u32, bool)>,
}

impl Effects {
    /// Of a statement of which nothing is known.
    pub fn unknown() -> Self {
        Self {
            settings: true,
            finds_rows: true,
            writes: true,
            commits: true,
            next_level: true,
            ..Self::default()
        }
    }

    /// Of a statement with a syntax tree.
    pub fn of(kind: &StatementKind, facts: &StatementFacts) -> Self {
        use SessionState as S;
        use StatementClass as C;
        let writes = !facts.writes.is_empty()
            || matches!(facts.class, C::Definition | C::Account | C::Call | C::Refused);
        let mut effects = Self {
            settings: match facts.class {
                C::Query | C::Change | C::Information | C::Transaction | C::Empty => false,
                C::Definition => facts.changes.contains(S::DATABASE),
                C::Session | C::Account | C::Administration | C::Call | C::Refused => true,
            },
            clock: facts.changes.contains(S::CLOCK).then_some(true),
            finds_rows: facts.class == C::Query || facts.class == C::Call,
            writes,
            commits: writes || matches!(facts.class, C::Transaction | C::Session),
            // What a procedure or a prepared statement sets is not in the text.
            next_level: matches!(facts.class, C::Call | C::Refused),
            ..Self::default()
        };
        if facts.calls_unknown {
            effects.settings = true;
            effects.writes = true;
        }
        match kind {
            StatementKind::LockTables(_) | StatementKind::FlushWithReadLock(_) => {
                effects.table_locks = Some(true)
            }
            StatementKind::Set(items) => {
                effects.next_level |= items.iter().any(is_of_next_transaction);
                effects.clock = items.iter().filter_map(sets_clock).next_back();
            }
            StatementKind::UnlockTables => effects.table_locks = Some(false),
            StatementKind::CreateTable(create) if create.temporary => {
                effects.temporary = Some(create.name.name.name.to_lowercase());
            }
            StatementKind::CreateTableLike { name, temporary: true, .. } => {
                effects.temporary = Some(name.name.name.to_lowercase());
            }
            StatementKind::Kill { connection, query_only } => {
                if let ExprKind::Integer(number) = &connection.kind {
                    effects.kills = u32::try_from(*number).ok().map(|number| (number, *query_only));
                }
            }
            _ => {}
        }
        effects
    }

    /// Of a statement of which there are the tokens alone.
    pub fn of_outline(outline: &Outline) -> Self {
        let is = |words: &[&str]| words.contains(&outline.first.as_str());
        let calls = outline.calls_unknown;
        let asks = is(&["SELECT", "TABLE", "VALUES", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"]);
        let changes_rows = is(&["INSERT", "REPLACE", "UPDATE", "DELETE"]);
        Self {
            settings: !(asks || changes_rows) || calls || outline.has_into && asks,
            finds_rows: asks || is(&["WITH", "CALL", "EXECUTE"]),
            clock: (is(&["SET"]) && outline.names_clock).then_some(true),
            // WITH may stand before a change.
            writes: !asks || calls,
            commits: !asks || calls,
            next_level: is(&["CALL", "EXECUTE"]) || outline.names_isolation && !(asks || changes_rows),
            table_locks: is(&["LOCK"]).then_some(true),
            temporary: None,
            kills: None,
        }
    }

    /// What statements leave behind together is what each may.
    pub fn add(&mut self, each: Self) {
        self.settings |= each.settings;
        self.clock = each.clock.or(self.clock);
        self.finds_rows |= each.finds_rows;
        self.writes |= each.writes;
        self.commits |= each.commits;
        self.next_level |= each.next_level;
        self.table_locks = each.table_locks.or(self.table_locks);
        self.temporary = each.temporary.or(self.temporary.take());
        self.kills = each.kills.or(self.kills);
    }
}

/// SET TRANSACTION, and `@@transaction_isolation` without a scope, are about the next transaction alone; `SET transaction_isolation`
/// without `@@` is about the session.
fn is_of_next_transaction(item: &SetItem) -> bool {
    match item {
        SetItem::Transaction { scope, .. } => *scope == VariableScope::Default,
        SetItem::Variable { scope, name, .. } => {
            *scope == VariableScope::Default
                && matches!(name.as_str(), "transaction_isolation" | "tx_isolation")
        }
        _ => false,
    }
}

/// Whether an item sets the clock to a moment; `None` if it is about something else.
fn sets_clock(item: &SetItem) -> Option<bool> {
    let SetItem::Variable { scope: VariableScope::Default | VariableScope::Session, name, value } = item
    else {
        return None;
    };
    // DEFAULT and 0 let it go on.
    let is_let_go = value.as_ref().is_none_or(|value| matches!(value.kind, ExprKind::Integer(0)));
    (name == "timestamp").then_some(!is_let_go)
}
