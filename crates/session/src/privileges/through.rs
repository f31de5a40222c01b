//! What is needed beyond a view: by its definer, or by whoever uses it, on the tables that it is made of.
//!
//! ```text
//!  statement ─▶ needs on view v ─▶ v's text ─▶ needs on its tables ─▶ held by the definer of v (or the invoker)?
//! ```
//!
//! They follow from the texts of the statement and of the views, and are kept with plans as other needs are: a plan is made
//! anew when one of its views changes. Whatever is missing there is the view's error (1356), which tells nothing of its tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use avocet_engine::{AccountId, Catalog, Privileges, TableHandle};
use avocet_sql::bind::{invalid_view, parse_view};
use avocet_sql::facts::StatementFacts;
use avocet_sql::parse::ast::{ExprKind, Query, QueryBody, SelectItem, TableRef};
use avocet_sql::parse::statement::{ShowKind, StatementKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::{ViewAlgorithm, ViewSecurity};

use super::Names;
use super::access::Access;
use super::needs::{self, Need, Through};
use crate::api::AccountName;
use crate::state::Session;

/// Privileges that a view asks for again of its tables.
const CHANGES: [Privileges; 3] = [Privileges::INSERT, Privileges::UPDATE, Privileges::DELETE];

/// The needs behind the views that a statement uses. It names what is in `catalog`, and they what is in `stored`.
pub(super) fn needs_through_views(
    catalog: &Catalog,
    stored: &Catalog,
    kind: &StatementKind,
    needs: &[Need],
) -> Vec<Need> {
    if !catalog.has_views() || !uses_rows(kind) {
        return Vec::new();
    }
    let (mut found, mut explained) = (Vec::new(), Vec::new());
    for (database, name, uses) in uses_of_views(catalog, needs) {
        if matches!(kind, StatementKind::Explain { .. }) {
            explained.push(Need::Explained { database: database.to_owned(), table: name.to_owned() });
        }
        let top = (database.to_owned(), name.to_owned());
        let named = columns_named_in(kind);
        let mut open = BTreeSet::new();
        let view = Use { name: (database, name), uses: &uses, named: named.as_ref() };
        expand(stored, view, None, &top, &mut open, &mut found);
    }
    explained.extend(found.into_iter().map(|through| Need::Through(Arc::new(through))));
    explained
}

/// Whether a statement does more with the views that it names than to define, drop or show them.
fn uses_rows(kind: &StatementKind) -> bool {
    use StatementKind as S;
    match kind {
        S::Query(_)
        | S::SelectInto { .. }
        | S::Insert(_)
        | S::LoadData(_)
        | S::Update(_)
        | S::Delete(_)
        | S::Do(_)
        | S::Set(_)
        | S::Call { .. } => true,
        S::Explain { statement, .. } => uses_rows(&statement.kind),
        S::CreateTable(create) => create.query.is_some(),
        S::Show(show) => matches!(show.kind, ShowKind::Columns { .. }),
        _ => false,
    }
}

/// A view that is used.
#[derive(Clone, Copy)]
struct Use<'u> {
    name: (&'u str, &'u str),
    uses: &'u Uses,
    /// Names of columns in what uses it, in lower case; `None` for all columns.
    named: Option<&'u BTreeSet<String>>,
}

fn columns_named_in(kind: &StatementKind) -> Option<BTreeSet<String>> {
    let columns = StatementFacts::of_kind(kind).columns;
    columns.into_iter().map(|column| column.column.map(|name| names::fold(&name).into_owned())).collect()
}

/// Of a view that is part of the query around it, what nobody asks for is not read.
fn leave_out_unnamed(query: &mut Query, view: &TableHandle, named: &BTreeSet<String>) {
    let QueryBody::Select(select) = &mut query.body else { return };
    if select.distinct || !select.group_by.is_empty() || query.limit.is_some() {
        return;
    }
    let mut names = view.def.columns.iter().map(|column| names::fold(&column.name));
    select.items.retain(|item| {
        let is_named = names.next().is_none_or(|name| named.contains(&*name));
        let is_plain = matches!(item, SelectItem::Expr { expr, .. } if !expr.has_aggregate());
        is_named || !is_plain
    });
}

/// What is done with a view.
#[derive(Clone, Debug, Default)]
struct Uses {
    /// Its rows, or what columns it has.
    reads: bool,
    changes: Vec<Privileges>,
    /// Columns that get values, with the privilege for that.
    columns: BTreeSet<(String, usize)>,
}

/// The views among what is needed, each once.
fn uses_of_views<'n>(catalog: &Catalog, needs: &'n [Need]) -> Vec<(&'n str, &'n str, Uses)> {
    let mut all: Vec<(&str, &str, Uses)> = Vec::new();
    for need in needs {
        let (database, table) = match need {
            Need::Table { database, table, .. }
            | Need::Columns { database, table, .. }
            | Need::AnyOnTable { database, table, .. }
            | Need::Listed { database, table }
            | Need::Column { database, table, .. } => (database.as_str(), table.as_str()),
            _ => continue,
        };
        let Some(view) = catalog.view(database, table) else { continue };
        let at = all.iter().position(|(d, t, _)| (*d, *t) == (database, table)).unwrap_or_else(|| {
            all.push((database, table, Uses::default()));
            all.len() - 1
        });
        let uses = &mut all[at].2;
        match need {
            Need::Table { all, .. } | Need::Columns { all, .. } => {
                uses.reads |= all.contains(Privileges::SELECT);
                for change in CHANGES {
                    if all.contains(change) && !uses.changes.contains(&change) {
                        uses.changes.push(change);
                    }
                }
            }
            Need::Column { column, privilege, .. } => {
                let Some(which) = CHANGES.iter().position(|change| change == privilege) else { continue };
                let named = column.iter().map(String::as_str);
                let all = view.def.columns.iter().map(|column| &*column.name).filter(|_| column.is_none());
                uses.columns.extend(named.chain(all).map(|name| (names::fold(name).into_owned(), which)));
            }
            _ => uses.reads = true,
        }
    }
    all
}

/// Adds what a view needs, and what the views need that it reads. `invoker`: whose rights those are that its user has.
fn expand(
    catalog: &Catalog,
    Use { name: (database, name), uses, named }: Use<'_>,
    invoker: Option<&AccountId>,
    top: &(String, String),
    open: &mut BTreeSet<(String, String)>,
    to: &mut Vec<Through>,
) {
    let Some(handle) = catalog.view(database, name) else { return };
    let Some(view) = handle.def.view.as_deref() else { return };
    // What refers to itself is refused when it is bound.
    if !open.insert((database.to_owned(), name.to_owned())) {
        return;
    }
    let account = match view.security {
        ViewSecurity::Definer => Some(&view.definer),
        ViewSecurity::Invoker => invoker,
    };
    if let Ok(mut query) = parse_view(&handle.def, view) {
        let changes = needs_of_changes(&query, handle, uses);
        // What is inserted asks for no more than the columns that it has values for.
        let is_passed_through =
            !uses.reads && uses.changes == [Privileges::INSERT] && names_columns_alone(&query);
        if view.algorithm != ViewAlgorithm::TempTable
            && let Some(named) = named
        {
            leave_out_unnamed(&mut query, handle, named);
        }
        let nobody = AccountName { user: String::new(), host: String::new() };
        let kind = StatementKind::Query(Box::new(query));
        let named = columns_named_in(&kind);
        let mut needs = match is_passed_through {
            true => Vec::new(),
            false => needs::of(&kind, None, &nobody),
        };
        needs.extend(changes);
        let below: Vec<_> = uses_of_views(catalog, &needs)
            .into_iter()
            .map(|(database, name, uses)| (database.to_owned(), name.to_owned(), uses))
            .collect();
        to.push(Through { view: top.clone(), account: account.cloned(), needs });
        for (database, name, uses) in &below {
            let view = Use { name: (database, name), uses, named: named.as_ref() };
            expand(catalog, view, account, top, open, to);
        }
    }
    open.remove(&(database.to_owned(), name.to_owned()));
}

/// What changes through a view need of its tables: of a view of one table all of it, of a join what is said of columns.
fn needs_of_changes(query: &Query, view: &TableHandle, uses: &Uses) -> Vec<Need> {
    let QueryBody::Select(select) = &query.body else { return Vec::new() };
    let mut needs = Vec::new();
    for (column, which) in &uses.columns {
        let Some(at) = view.def.column(column) else { continue };
        let Some(SelectItem::Expr { expr, .. }) = select.items.get(at) else { continue };
        let ExprKind::Column { table: Some(table), column, .. } = &expr.kind else { continue };
        let Some((database, table)) = stored(&select.from, &table.name) else { continue };
        let (column, privilege) = (Some(column.name.clone()), CHANGES[*which]);
        needs.push(Need::Columns { database: database.clone(), table: table.clone(), all: privilege });
        needs.push(Need::Column { database, table, column, privilege });
    }
    if let [TableRef::Table { name, .. }] = &select.from[..]
        && let Some(database) = &name.database
    {
        for change in &uses.changes {
            let (database, table) = (database.name.clone(), name.name.name.clone());
            needs.push(match *change {
                Privileges::DELETE => Need::Table { database, table, all: *change },
                _ => Need::Columns { database, table, all: *change },
            });
        }
    }
    needs
}

/// Whether a view is nothing but columns of one table, without a condition.
fn names_columns_alone(query: &Query) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    let is_column = |item: &SelectItem| matches!(item, SelectItem::Expr { expr, .. } if matches!(expr.kind, ExprKind::Column { .. }));
    matches!(&select.from[..], [TableRef::Table { .. }])
        && select.filter.is_none()
        && select.items.iter().all(is_column)
}

/// The table that has a name in a FROM.
fn stored(from: &[TableRef], called: &str) -> Option<(String, String)> {
    from.iter().find_map(|table| match table {
        TableRef::Table { name, alias, .. } => {
            let own = alias.as_ref().unwrap_or(&name.name);
            let database = name.database.as_ref().filter(|_| own.name == called)?;
            Some((database.name.clone(), name.name.name.clone()))
        }
        TableRef::Derived { .. } => None,
        TableRef::Join(join) => stored(std::slice::from_ref(&join.left), called)
            .or_else(|| stored(std::slice::from_ref(&join.right), called)),
    })
}

impl Session {
    /// Fails if the definer of a view, or who uses it, lacks what the view needs.
    pub(super) fn check_through(&mut self, need: &Need) -> Result<(), SqlError> {
        let Need::Through(through) = need else { return Ok(()) };
        let Some((user, host)) = &through.account else {
            if self.access.unrestricted {
                return Ok(());
            }
            return self.check_all(&self.access, through);
        };
        let version = self.shared.engine.catalog_version();
        let id = (user.clone(), host.clone());
        let known = self.definers.get(&id).filter(|access| !access.is_stale(version)).cloned();
        let access = match known {
            Some(access) => access,
            None => {
                let catalog = self.catalog();
                let Some(account) = catalog.user(user, host) else {
                    return Err(ErrorCode::NO_SUCH_USER.with(&[user, host]));
                };
                let roles: Vec<AccountId> = account.default_roles.iter().cloned().collect();
                let name = AccountName { user: user.clone(), host: host.clone() };
                let mandatory = self.shared.globals.settings().mandatory_roles.clone();
                let access = Arc::new(Access::of_account(&catalog, &name, &roles, &mandatory));
                self.definers.insert(id, access.clone());
                access
            }
        };
        if access.unrestricted { Ok(()) } else { self.check_all(&access, through) }
    }

    fn check_all(&self, access: &Access, through: &Through) -> Result<(), SqlError> {
        let (database, name) = &through.view;
        let missing = through.needs.iter().any(|need| self.check_need(access, need, Names::OfViews).is_err());
        match (missing, self.stored_catalog().view(database, name)) {
            (true, Some(view)) => Err(invalid_view(&view.def)),
            _ => Ok(()),
        }
    }
}
