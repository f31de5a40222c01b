//! CREATE VIEW, ALTER VIEW and DROP VIEW.

use avocet_channel::blocking::blocking;
use avocet_engine::{EngineError, Privileges, TableHandle};
use avocet_sql::bind::{bind_query, bind_with_notes, parse_view};
use avocet_sql::parse::ast::{ObjectName, Query, QueryBody, SelectItem};
use avocet_sql::parse::statement::{CreateView, CreateViewHow};
use avocet_sql::plan::{self, BoundQuery, ColumnInfo, From, can_merge};
use avocet_sql::print::{self, Names, Style};
use avocet_sql::qualify::{check_name as check_column, qualify};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::schema::TableDef;
use avocet_types::{ColumnDef, SqlType, ViewAlgorithm, ViewCheck, ViewDef};

use super::{check_name, columns};
use crate::api::AccountName;
use crate::binary_log::tell_as;
use crate::info_schema;
use crate::privileges::needs_one_of;
use crate::run::{Outcome, Text};
use crate::select::tables_of;
use crate::state::{Level, Session};
use crate::variables::find;
use crate::view::View;

impl Session {
    pub(super) fn create_view(&mut self, create: &CreateView, text: &Text<'_>) -> Result<Outcome, SqlError> {
        let (database, name) = self.full_name(&create.name)?;
        check_name(&name, ErrorCode::WRONG_TABLE_NAME)?;
        let catalog = self.stored_catalog();
        if catalog.database(&database).is_none() {
            return Err(ErrorCode::BAD_DB_ERROR.with(&[&database]));
        }
        let old = catalog.view(&database, &name);
        let exists = ErrorCode::TABLE_EXISTS_ERROR.with(&[&name]);
        let no_view = || ErrorCode::WRONG_OBJECT.with(&[&database, &name, &"VIEW"]);
        let is_table = catalog.table(&database, &name).is_some();
        match create.how {
            CreateViewHow::OrReplace | CreateViewHow::Alter if is_table => return Err(no_view()),
            CreateViewHow::Alter if old.is_none() => {
                return Err(ErrorCode::NO_SUCH_TABLE.with(&[&database, &name]));
            }
            _ => {}
        }
        // What is wrong with the query is said first.
        let def = self.view_def(create, (&database, &name), old.map(|old| &**old), text)?;
        match create.how {
            CreateViewHow::Create if is_table || old.is_some() => return Err(exists),
            CreateViewHow::IfNotExists if is_table || old.is_some() => {
                self.note(&exists);
                return Ok(Outcome::ok());
            }
            _ => {}
        }
        let replaces = matches!(create.how, CreateViewHow::OrReplace | CreateViewHow::Alter);
        let wait = self.ddl_wait();
        if self.logs_definitions()
            && let Some(view) = def.view.as_deref()
        {
            // With what it does not say: the definer, and the columns.
            let text = self.create_view_text(&def, view)?;
            let how = if replaces { "CREATE OR REPLACE ALGORITHM" } else { "CREATE ALGORITHM" };
            tell_as(None, self.settings.sql_mode, vec![text.replacen("CREATE ALGORITHM", how, 1)]);
        }
        let created = blocking(|| self.shared.engine.create_view(def, replaces, wait));
        match created {
            // Somebody was faster.
            Err(error @ EngineError::TableExists(_)) if create.how == CreateViewHow::IfNotExists => {
                self.note(&error.into());
            }
            other => other?,
        }
        Ok(Outcome::ok())
    }

    /// The definition that a statement asks for; what it does not say is as in `old`.
    fn view_def(
        &mut self,
        create: &CreateView,
        (database, name): (&str, &str),
        old: Option<&TableHandle>,
        text: &Text<'_>,
    ) -> Result<TableDef, SqlError> {
        let old = old.and_then(|old| old.def.view.as_deref()).filter(|_| create.how == CreateViewHow::Alter);
        let definer = self.definer(create, old)?;
        let mut query = (*create.query).clone();
        let (bound, notes) =
            bind_with_notes(&query, text.source, &View { defines_view: true, ..self.view() })?;
        self.refuse_view_of_temporary(&tables_of(&bound))?;
        if bound.views.iter().any(|view| view.database == database && view.name == name) {
            // It would read itself.
            return Err(ErrorCode::NO_SUCH_TABLE.with(&[&database, &name]));
        }
        qualify(&mut query, &notes, text.source, !create.columns.is_empty())?;
        let charset = self.settings.connection_collation.info().charset;
        let names = Names::Qualified { left_out: None };
        let style = Style { names, strings: None, charset, quote: '`' };
        let select = print::query(&query, text.source, style);
        let names = names_of(create, &query, &bound)?;
        let mut algorithm = create.algorithm.or(old.map(|old| old.algorithm)).unwrap_or_default();
        let merges = can_merge(&bound.body);
        if algorithm == ViewAlgorithm::Merge && !plan::shows_rows(&bound.body) {
            let warning = ErrorCode::WARN_VIEW_MERGE.with(&[]);
            self.warn(Level::Warning, warning.errno, warning.message);
            algorithm = ViewAlgorithm::Undefined;
        }
        let is_updatable = merges && algorithm != ViewAlgorithm::TempTable && has_changeable_rows(&bound);
        if create.check != ViewCheck::None && !is_updatable {
            return Err(ErrorCode::VIEW_NONUPD_CHECK.with(&[&database, &name]));
        }
        let view = ViewDef {
            select,
            names: create.columns.iter().map(|column| column.name.clone()).collect(),
            algorithm,
            definer,
            security: create.security.or(old.map(|old| old.security)).unwrap_or_default(),
            check: create.check,
            is_updatable,
            sql_mode: self.settings.sql_mode,
            client_charset: find("character_set_client").map(|at| self.shown_variable(at))?,
            connection_collation: self.settings.connection_collation,
            created_us: self.now_us(),
        };
        let mut def = TableDef::new(database, name, Vec::new(), Vec::new());
        def.view = Some(Box::new(view));
        def.columns = self.columns_of_text(&def, &bound)?;
        def.columns.iter_mut().zip(&names).for_each(|(column, name)| column.name.clone_from(name));
        Ok(def)
    }

    /// The columns of the text that is kept, which must mean what was written. As in MySQL, a string may come to have its
    /// character set's own collation, and a literal the type of what it is printed as: `.5` is `0.5`, `b'1'` is `0x01`.
    fn columns_of_text(&self, def: &TableDef, bound: &BoundQuery) -> Result<Vec<ColumnDef>, SqlError> {
        let Some(view) = def.view.as_deref() else { return Ok(Vec::new()) };
        let query = parse_view(def, view)?;
        let again =
            bind_query(&query, view.select.as_bytes(), &View { defines_view: true, ..self.view() }, &[])?;
        let is_exact = |ty: &SqlType| ty.is_integer() || matches!(ty, SqlType::Decimal { .. });
        let is_same = |(one, other): (&ColumnInfo, &ColumnInfo)| {
            let both = |is: &dyn Fn(&SqlType) -> bool| is(&one.ty) && is(&other.ty);
            let is_kin = || both(&is_exact) || both(&SqlType::is_bytes);
            one.nullable == other.nullable && (one.ty.to_string() == other.ty.to_string() || is_kin())
        };
        if again.output().count() != bound.output().count()
            || !again.output().zip(bound.output()).all(is_same)
        {
            let why = format!("the view's text would mean something else: {}", view.select);
            return Err(ErrorCode::UNKNOWN_ERROR.because(why));
        }
        Ok(columns::of_view(&again))
    }

    fn definer(&mut self, create: &CreateView, old: Option<&ViewDef>) -> Result<(String, String), SqlError> {
        let own = (self.info.account.user.clone(), self.info.account.host.clone());
        let given = create.definer.as_ref().map(|user| self.account_name(user));
        // A view that is altered keeps its definer, whose rights the new text would have.
        let definer = given.clone().or_else(|| old.map(|old| old.definer.clone())).unwrap_or(own.clone());
        if definer != own && !self.access().global().intersects(Privileges::SUPER) {
            return Err(needs_one_of(Privileges::SUPER));
        }
        // Who reads the view would have its rights.
        if definer != own
            && !self.access().global().intersects(Privileges::SYSTEM_USER)
            && self.is_system_user(&AccountName { user: definer.0.clone(), host: definer.1.clone() })
        {
            return Err(needs_one_of(Privileges::SYSTEM_USER));
        }
        if given.is_some() && self.stored_catalog().user(&definer.0, &definer.1).is_none() {
            self.note(&ErrorCode::NO_SUCH_USER.with(&[&definer.0, &definer.1]));
        }
        Ok(definer)
    }

    /// Views of those names, all or none; tables are none.
    pub(super) fn drop_views(&mut self, names: &[ObjectName], if_exists: bool) -> Result<Outcome, SqlError> {
        self.refuse_twice(names)?;
        let catalog = self.stored_catalog();
        let (mut missing, mut found) = (Vec::new(), Vec::new());
        for name in names {
            let (database, view) = self.full_name(name)?;
            if catalog.view(&database, &view).is_some() {
                found.push((database, view));
            } else if catalog.table(&database, &view).is_some() {
                let error = ErrorCode::WRONG_OBJECT.with(&[&database, &view, &"VIEW"]);
                if !if_exists {
                    return Err(error);
                }
                missing.push(error);
            } else {
                missing.push(ErrorCode::BAD_TABLE_ERROR.with(&[&format!("{database}.{view}")]));
            }
        }
        if !if_exists && !missing.is_empty() {
            let of = |name: &ObjectName| self.full_name(name);
            let all = names.iter().map(of).collect::<Result<Vec<_>, _>>()?;
            let unknown = all.iter().filter(|name| !found.contains(name));
            let unknown: Vec<_> = unknown.map(|(database, view)| format!("{database}.{view}")).collect();
            return Err(ErrorCode::BAD_TABLE_ERROR.with(&[&unknown.join(",")]));
        }
        let wait = self.ddl_wait();
        blocking(|| self.shared.engine.drop_views(&found, wait))?;
        missing.iter().for_each(|error| self.note(error));
        Ok(Outcome::ok())
    }

    /// 1347 if the name is a view's, where a table is asked for.
    pub(crate) fn refuse_view(&self, database: &str, name: &str) -> Result<(), SqlError> {
        match self.stored_catalog().view(database, name) {
            // A temporary table hides it.
            Some(_) if self.temporary.has(database, name) => Ok(()),
            Some(_) => Err(ErrorCode::WRONG_OBJECT.with(&[&database, &name, &"BASE TABLE"])),
            None => Ok(()),
        }
    }
}

/// The names of a view's columns: those that are given, or those of its query.
fn names_of(create: &CreateView, query: &Query, bound: &BoundQuery) -> Result<Vec<String>, SqlError> {
    let names: Vec<String> = match create.columns.is_empty() {
        false if create.columns.len() != bound.body.outputs.len() => {
            return Err(ErrorCode::VIEW_WRONG_LIST.with(&[]));
        }
        false => create.columns.iter().map(|column| column.name.clone()).collect(),
        true => match first_items(query) {
            Some(items) => items.iter().filter_map(alias).collect(),
            None => bound.output().map(|column| column.name.to_string()).collect(),
        },
    };
    for (at, name) in names.iter().enumerate() {
        check_column(name)?;
        if names[..at].iter().any(|other| names::eq(other, name)) {
            return Err(ErrorCode::DUP_FIELDNAME.with(&[name]));
        }
    }
    Ok(names)
}

fn alias(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::Expr { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        SelectItem::Wildcard { .. } => None,
    }
}

/// The items of the block that names the columns; `None` for VALUES.
fn first_items(query: &Query) -> Option<&[SelectItem]> {
    let mut body = &query.body;
    loop {
        match body {
            QueryBody::Select(select) => return Some(&select.items),
            QueryBody::SetOperation { left, .. } => body = left,
            QueryBody::Parenthesized(query) => body = &query.body,
            QueryBody::Values(_) | QueryBody::JsonTable(_) | QueryBody::Table(_) => return None,
        }
    }
}

/// Whether rows of a view that is merged are rows of stored tables that can be changed: it shows a column of one, joins none
/// outwards, and no subquery of its condition reads what would change.
fn has_changeable_rows(bound: &BoundQuery) -> bool {
    let plan::QueryBody::Select(select) = &bound.body.body else { return false };
    let mut changeable = Vec::new();
    if !changeable_columns(&select.from, &mut changeable) {
        return false;
    }
    let shown = select.projection.iter().any(|item| {
        plan::walk::changeable_column(&item.expr)
            .is_some_and(|id| changeable.iter().any(|(own, _)| *own == id))
    });
    let reads_itself = |subquery: &plan::Subquery| {
        changeable.iter().any(|(_, table)| avocet_sql::bind::reads_directly(&subquery.query, table, None))
    };
    shown && !select.subqueries.iter().any(reads_itself)
}

type Changeable<'f> = Vec<(plan::ColumnId, &'f TableDef)>;

/// False if an outer join is in the way.
fn changeable_columns<'f>(from: &'f From, to: &mut Changeable<'f>) -> bool {
    match from {
        From::Table(scan) if info_schema::is_virtual(&scan.table.database) => true,
        From::Table(scan) => {
            to.extend(scan.columns.iter().map(|(_, id)| (*id, &*scan.table)));
            true
        }
        From::Join(join) => {
            join.kind == plan::JoinKind::Inner
                && changeable_columns(&join.left, to)
                && changeable_columns(&join.right, to)
        }
        From::Dual | From::Cte(_) | From::Derived(_) => true,
    }
}
