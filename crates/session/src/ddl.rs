//! Changes of databases, tables and indexes. Each is a durable transaction of its own, after what is open was committed.

pub(crate) mod alter;
mod checks;
mod columns;
mod comments;
mod finished;
mod foreign_keys;
mod functional;
mod generated;
mod how;
mod indexes;
mod kept_keys;
mod partitions;
mod programs;
mod row_size;
mod temporary;
mod views;
mod zero_dates;

pub(crate) use columns::of_view as columns_of_view;
pub(crate) use columns::type_of;

use avocet_base::TableId;
use avocet_channel::blocking::blocking;
use avocet_engine::{DdlWait, Durability, EngineError, Isolation, TxnOptions};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::{Ident, ObjectName, Query};
use avocet_sql::parse::statement::{AlterAction, CreateTable, StatementKind, TableOptions};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::{IndexKind, TableDef};

use super::binary_log::tell_as;
use super::engines;
use super::info_schema;
use super::run::{Done, Outcome, Text};
use super::settings::collation_of;
use super::show::{Quotes, create_table as create_table_text};
use super::state::{Level, Session};

/// MySQL's limit for names of databases, tables, columns and indexes, in characters.
const MAX_NAME_LEN: usize = 64;

impl Session {
    pub(super) async fn ddl(&mut self, kind: &StatementKind, text: &Text<'_>) -> Result<Outcome, SqlError> {
        use StatementKind as S;
        match kind {
            S::CreateDatabase { name, if_not_exists, charset, collation } => {
                self.create_database(name, *if_not_exists, charset.as_deref(), collation.as_deref())
            }
            S::DropDatabase { name, if_exists } => self.drop_database(name, *if_exists),
            S::DropProgram { kind, name, if_exists } => self.drop_program(*kind, name, *if_exists),
            S::CreateTable(create) => self.create_table(create, text).await,
            S::CreateTableLike { name, like, if_not_exists, temporary } => {
                self.create_table_like(name, like, *if_not_exists, *temporary)
            }
            S::DropTable { names, if_exists, temporary } => self.drop_tables(names, *if_exists, *temporary),
            S::CreateView(create) => self.create_view(create, text),
            S::DropView { names, if_exists } => self.drop_views(names, *if_exists),
            S::TruncateTable(name) => {
                let schema = name.database.as_ref().map(|schema| &*schema.name).or(self.database.as_deref());
                if schema.is_some_and(|schema| info_schema::is_digest_summary(schema, &name.name.name)) {
                    self.shared.summaries.forget();
                    return Ok(Outcome::ok());
                }
                if schema.is_some_and(|schema| self.forgets(schema, &name.name.name)) {
                    return Ok(Outcome::ok());
                }
                let (database, name) = self.full_name(name)?;
                if self.temporary.has(&database, &name) {
                    self.truncate_temporary(&database, &name)?;
                    return Ok(Outcome::ok());
                }
                let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
                blocking(|| self.shared.engine.truncate_table(&database, &name, checks, wait))?;
                Ok(Outcome::ok())
            }
            S::CreateIndex { table, index, how } => {
                let actions = [AlterAction::AddIndex(index.clone()), AlterAction::How(*how)];
                self.alter_table(table, &actions, text).await
            }
            S::DropIndex { table, name: index, how } => {
                let actions = [AlterAction::DropIndex(index.clone()), AlterAction::How(*how)];
                self.alter_table(table, &actions, text).await
            }
            S::AlterTable { name, actions } => self.alter_table(name, actions, text).await,
            S::AlterDatabase { name, charset, collation } => {
                self.alter_database(name.as_ref(), charset.as_deref(), collation.as_deref())
            }
            S::RenameTable(pairs) => self.rename_tables(pairs),
            _ => Err(unsupported("this statement")),
        }
    }

    /// How DDL waits for others that use its tables.
    pub(super) fn ddl_wait(&self) -> DdlWait {
        DdlWait {
            timeout: self.settings.metadata_lock_timeout,
            interrupted: Some(self.stop.clone()),
            own: self.locked.as_ref().map(|locked| locked.locks.clone()),
        }
    }

    /// Of the transaction that fills a table for DDL.
    fn ddl_options(&self) -> TxnOptions {
        TxnOptions {
            isolation: Isolation::ReadCommitted,
            lock_wait_timeout: self.settings.lock_wait_timeout,
            metadata_lock_timeout: self.settings.metadata_lock_timeout,
            durability: Some(Durability::Sync),
            ..TxnOptions::default()
        }
    }

    /// Database and name of a table; the server's own may not be changed.
    fn full_name(&self, name: &ObjectName) -> Result<(String, String), SqlError> {
        let database = match &name.database {
            Some(database) => database.name.clone(),
            None => self.current_database()?.to_owned(),
        };
        if info_schema::is_virtual(&database) {
            let user = &self.info.account;
            return Err(ErrorCode::DBACCESS_DENIED_ERROR.with(&[&user.user, &user.host, &database]));
        }
        Ok((database, name.name.name.clone()))
    }

    fn create_database(
        &mut self,
        name: &Ident,
        if_not_exists: bool,
        charset: Option<&str>,
        collation: Option<&str>,
    ) -> Result<Outcome, SqlError> {
        check_name(&name.name, ErrorCode::WRONG_DB_NAME)?;
        let server = self.settings.server_collation;
        let collation = collation_of(charset, collation, self.settings.utf8mb4_collation)?.unwrap_or(server);
        let created = match info_schema::is_virtual(&name.name) {
            true if info_schema::is_open(&name.name) => Err(EngineError::DatabaseExists(name.name.clone())),
            true => return Err(ErrorCode::NO_SYSTEM_SCHEMA_ACCESS.with(&[&name.name])),
            false => blocking(|| self.shared.engine.create_database(&name.name, collation)),
        };
        match created {
            Err(error @ EngineError::DatabaseExists(_)) if if_not_exists => self.note(&error.into()),
            other => other?,
        }
        Ok(Outcome::Done(Done { affected_rows: 1, ..Done::default() }))
    }

    fn alter_database(
        &mut self,
        name: Option<&Ident>,
        charset: Option<&str>,
        collation: Option<&str>,
    ) -> Result<Outcome, SqlError> {
        let name = match name {
            Some(name) => name.name.clone(),
            None => self.current_database()?.to_owned(),
        };
        check_name(&name, ErrorCode::WRONG_DB_NAME)?;
        if info_schema::is_open(&name) {
            return Err(self.database_denied(&name));
        }
        if info_schema::is_virtual(&name) {
            return Err(ErrorCode::NO_SYSTEM_SCHEMA_ACCESS.with(&[&name]));
        }
        if let Some(collation) = collation_of(charset, collation, self.settings.utf8mb4_collation)? {
            let altered = blocking(|| self.shared.engine.alter_database(&name, collation));
            altered.map_err(|error| match error {
                EngineError::NoSuchDatabase(name) => ErrorCode::NO_SUCH_DB.with(&[&name]),
                other => other.into(),
            })?;
            if self.database.as_deref() == Some(&name) {
                self.change_database(&name)?;
            }
        } else if self.catalog().database(&name).is_none() {
            return Err(ErrorCode::NO_SUCH_DB.with(&[&name]));
        }
        Ok(Outcome::Done(Done { affected_rows: 1, ..Done::default() }))
    }

    fn drop_database(&mut self, name: &Ident, if_exists: bool) -> Result<Outcome, SqlError> {
        if info_schema::is_virtual(&name.name) && !info_schema::is_open(&name.name) {
            return Err(ErrorCode::NO_SYSTEM_SCHEMA_ACCESS.with(&[&name.name]));
        }
        if info_schema::is_open(&name.name) {
            let user = &self.info.account;
            return Err(ErrorCode::DBACCESS_DENIED_ERROR.with(&[&user.user, &user.host, &name.name]));
        }
        let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
        let dropped = blocking(|| self.shared.engine.drop_database(&name.name, checks, wait));
        let tables = match dropped {
            Ok(tables) => tables,
            Err(EngineError::NoSuchDatabase(_)) => {
                let missing = ErrorCode::DB_DROP_EXISTS.with(&[&name.name]);
                if !if_exists {
                    return Err(missing);
                }
                self.note(&missing);
                0
            }
            Err(error) => return Err(error.into()),
        };
        if self.database.as_deref() == Some(&name.name) {
            self.leave_database();
        }
        Ok(Outcome::Done(Done { affected_rows: tables as u64, ..Done::default() }))
    }

    async fn create_table(&mut self, create: &CreateTable, text: &Text<'_>) -> Result<Outcome, SqlError> {
        if create.columns.is_empty() && create.query.is_none() {
            return Err(ErrorCode::TABLE_MUST_HAVE_A_VISIBLE_COLUMN.with(&[]));
        }
        refuse_unserved(create)?;
        let (database, name) = self.full_name(&create.name)?;
        if create.temporary {
            check_name(&name, ErrorCode::WRONG_TABLE_NAME)?;
            return Box::pin(self.create_temporary(create, (database, name), text)).await;
        }
        if self.exists_already(&database, &name, create.if_not_exists)? {
            return Ok(Outcome::ok());
        }
        if let Some(query) = &create.query {
            return self.create_table_of(create, query, database, name, text).await;
        }
        let def = self.table_def(create, database, name, Vec::new(), text)?;
        self.check_primary_key(&def)?;
        let auto_increment = create.options.auto_increment;
        let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
        let engine = self.shared.engine.clone();
        self.warn_of_kept_keys(&def, None);
        blocking(|| engine.create_table_with(def, auto_increment, checks, wait))?;
        Ok(Outcome::ok())
    }

    /// CREATE TABLE … SELECT: the new table is filled as the query's rows come, and published when they are all there.
    async fn create_table_of(
        &mut self,
        create: &CreateTable,
        query: &Query,
        database: String,
        name: String,
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        let auto_increment = create.options.auto_increment;
        let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
        let engine = self.shared.engine.clone();
        let mark = self.begin_statement()?;
        let result = async {
            let (bound, tables) = self.bind_and_hold(query, text)?;
            let columns = columns::of_query(&bound);
            let selected = columns.len();
            let def = self.table_def(create, database, name, columns, text)?;
            self.check_primary_key(&def)?;
            self.check_zero_defaults(&def)?;
            let mut rows = self.begin_filling(bound, tables, text).await?;
            let first = def.own_columns().len() - selected.min(def.own_columns().len());
            blocking(|| {
                let filled = engine.create_unfinished(def.clone())?;
                let next = auto_increment.unwrap_or(1);
                filled.table().note_auto_increment(next.saturating_sub(1));
                let stored = filled.fill(self.ddl_options(), self.stop.clone(), |txn| {
                    self.fill(txn, filled.table(), first, &mut rows)
                })?;
                Ok::<_, SqlError>((def, filled, stored))
            })
        }
        .await;
        let (def, filled, stored) = self.end_statement(mark, result).await?;
        let columns::Filled { rows: inserted, first_generated: last_insert_id } = stored;
        // The query's transaction held its tables, which foreign keys may refer to.
        self.commit().await?;
        if self.logs_definitions() {
            let quotes = Quotes::of(self.settings.sql_mode);
            tell_as(
                Some(&def.database),
                self.settings.sql_mode,
                vec![create_table_text(&def, auto_increment.unwrap_or(1), quotes, self.settings.time_zone)],
            );
        }
        blocking(|| {
            self.info.interrupt.check()?;
            Ok::<_, SqlError>(filled.publish(&def, inserted, auto_increment, checks, wait)?)
        })?;
        let info = format!("Records: {inserted}  Duplicates: 0  Warnings: {}", self.condition_count());
        Ok(Outcome::Done(Done {
            affected_rows: inserted,
            last_insert_id,
            tells_chosen: true,
            info,
            ..Done::default()
        }))
    }

    /// Error 3750 for a table without a primary key, where sessions ask for that.
    fn check_primary_key(&self, def: &TableDef) -> Result<(), SqlError> {
        let has_key = def.indexes.iter().any(|index| index.kind == IndexKind::Primary);
        match has_key || !self.settings.require_primary_key {
            true => Ok(()),
            false => Err(ErrorCode::TABLE_WITHOUT_PK.with(&[])),
        }
    }

    /// True if the table is there and that is fine; an error if it is not fine.
    fn exists_already(&mut self, database: &str, name: &str, if_not_exists: bool) -> Result<bool, SqlError> {
        let catalog = self.stored_catalog();
        if catalog.database(database).is_none() {
            return Err(ErrorCode::BAD_DB_ERROR.with(&[&database]));
        }
        if catalog.relation(database, name).is_none() {
            return Ok(false);
        }
        let exists = ErrorCode::TABLE_EXISTS_ERROR.with(&[&name]);
        if !if_not_exists {
            return Err(exists);
        }
        self.note(&exists);
        Ok(true)
    }

    fn create_table_like(
        &mut self,
        name: &ObjectName,
        like: &ObjectName,
        if_not_exists: bool,
        temporary: bool,
    ) -> Result<Outcome, SqlError> {
        let (like_database, like_name) = self.full_name(like)?;
        let (database, name) = self.full_name(name)?;
        check_name(&name, ErrorCode::WRONG_TABLE_NAME)?;
        let catalog = self.catalog();
        self.refuse_view(&like_database, &like_name)?;
        let Some(model) = catalog.table(&like_database, &like_name) else {
            return Err(ErrorCode::NO_SUCH_TABLE.with(&[&like_database, &like_name]));
        };
        if !temporary && self.exists_already(&database, &name, if_not_exists)? {
            return Ok(Outcome::ok());
        }
        let created_us = Some(self.now_us());
        let mut def = TableDef { id: TableId(0), database, name, created_us, ..(*model.def).clone() };
        // Foreign keys are not copied; their indexes are ordinary ones here.
        def.foreign_keys.clear();
        def.indexes.iter_mut().for_each(|index| index.generated = false);
        def.checks = checks::like(&def, &def.name);
        self.check_zero_defaults(&def)?;
        if temporary {
            if def.partitioning.is_some() {
                return Err(ErrorCode::PARTITION_NO_TEMPORARY.with(&[]));
            }
            return self.create_temporary_like(def, if_not_exists);
        }
        let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
        // The one that it is like may be there in this session alone.
        if self.logs_definitions() && self.temporary.has(&like_database, &like_name) {
            let quotes = Quotes::of(self.settings.sql_mode);
            let text = create_table_text(&def, 1, quotes, self.settings.time_zone);
            tell_as(Some(&def.database), self.settings.sql_mode, vec![text]);
        }
        blocking(|| self.shared.engine.create_table_with(def, None, checks, wait))?;
        Ok(Outcome::ok())
    }

    fn drop_tables(
        &mut self,
        names: &[ObjectName],
        if_exists: bool,
        temporary: bool,
    ) -> Result<Outcome, SqlError> {
        self.refuse_twice(names)?;
        let catalog = self.stored_catalog();
        let (mut missing, mut found) = (Vec::new(), Vec::new());
        for name in names {
            let (database, table) = self.full_name(name)?;
            let is_stored = || catalog.table(&database, &table).is_some() && !temporary;
            match self.temporary.has(&database, &table) || is_stored() {
                true => found.push((database, table)),
                false => missing.push(format!("{database}.{table}")),
            }
        }
        // All or none.
        if if_exists || missing.is_empty() {
            let (own, found): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|(database, name)| self.temporary.has(database, name));
            let (checks, wait) = (self.settings.foreign_key_checks, self.ddl_wait());
            if self.logs_definitions() {
                // Those that are there in this session alone are left out.
                let quotes = Quotes::of(self.settings.sql_mode);
                let quoted = |(database, name): &(String, String)| {
                    format!("{}.{}", quotes.quote(database), quotes.quote(name))
                };
                let names: Vec<_> = found.iter().map(quoted).collect();
                let text = format!("DROP TABLE IF EXISTS {}", names.join(","));
                tell_as(None, self.settings.sql_mode, vec![text]);
            }
            blocking(|| self.shared.engine.drop_tables(&found, checks, wait))?;
            // Nothing refuses these.
            self.drop_temporary(&own);
        }
        self.missing(missing, if_exists)
    }

    /// Tables that were to be dropped but are not there: error 1051, or notes.
    fn missing(&mut self, missing: Vec<String>, if_exists: bool) -> Result<Outcome, SqlError> {
        if !if_exists && !missing.is_empty() {
            return Err(ErrorCode::BAD_TABLE_ERROR.with(&[&missing.join(",")]));
        }
        for name in missing {
            let error = ErrorCode::BAD_TABLE_ERROR.with(&[&name]);
            self.warn(Level::Note, error.errno, error.message);
        }
        Ok(Outcome::ok())
    }
}

/// What of CREATE TABLE is parsed but not served.
fn refuse_unserved(create: &CreateTable) -> Result<(), SqlError> {
    check_name(&create.name.name.name, ErrorCode::WRONG_TABLE_NAME)?;
    if create.temporary && create.partitions.is_some() {
        return Err(ErrorCode::PARTITION_NO_TEMPORARY.with(&[]));
    }
    check_options(&create.options)
}

fn check_options(options: &TableOptions) -> Result<(), SqlError> {
    match &options.engine {
        Some(engine) if engines::engine_name(engine).is_none() => {
            Err(ErrorCode::UNKNOWN_STORAGE_ENGINE.with(&[engine]))
        }
        _ => Ok(()),
    }
}

/// Names must not be empty, too long, or end with a space.
fn check_name(name: &str, wrong: ErrorCode) -> Result<(), SqlError> {
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(wrong.with(&[&name]));
    }
    check_length(name)
}

/// All that MySQL asks of a constraint's name.
fn check_length(name: &str) -> Result<(), SqlError> {
    if name.chars().count() > MAX_NAME_LEN {
        return Err(ErrorCode::TOO_LONG_IDENT.with(&[&name]));
    }
    Ok(())
}
