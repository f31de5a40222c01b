//! Statements of the log: definitions, which are barriers, and what else is not a row event.
//!
//! A definition commits by itself, before the position that has it. Between the two the state says that it is pending, and what its
//! tables and databases were before. So after a crash it is known whether it was done: those of tables that are followed are changed by
//! nobody else.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use avocet_engine::Engine;
use avocet_sql::facts::{StatementClass, StatementFacts, TableUse};
use avocet_sql::parse::outline::first_words;
use avocet_sql::parse::{self, StatementKind};
use avocet_types::collation::Charset;
use avocet_types::{Collation, SqlMode, SqlType};

use super::defaults::Defaults;
use super::names::{folded, has_other_case, with_folded_databases};
use super::words::{XaId, before_rows, by_words, gives_other_values};
use super::zone::depends_on_zone;
use super::{DEFINITION_WAIT, Follower, Open};
use crate::binlog::{Bytes, Query, Shape, sql_mode_bits};
use crate::error::{ReplicateError, Result, is_busy};
use crate::source::{Flavor, mariadb};
use crate::state::{Pending, TableName};

/// What a statement of the log asks for.
pub enum Asked {
    /// Nothing that is kept here: accounts, routines, triggers, events, maintenance.
    Nothing,
    /// A change of definitions of these tables and databases; tables that are only looked at.
    Definition {
        tables: Vec<TableName>,
        databases: Vec<String>,
        looked_at: Vec<TableName>,
    },
    /// A database that was dropped, if there was one, and made anew.
    Replaced(String),
    /// Rows, by a statement: not by row events. It may call stored functions, which change others.
    Rows {
        tables: Vec<TableName>,
        calls_unknown: bool,
    },
    /// A table that a query fills, by a statement: its rows are not in the log.
    Filled {
        table: TableName,
        calls_unknown: bool,
    },
    /// A trigger, of which there are none here.
    Trigger,
    NotUnderstood(String),
}

/// What a definition is about.
struct Defined {
    tables: Vec<TableName>,
    databases: Vec<String>,
    looked_at: Vec<TableName>,
    /// Why it may mean something else here.
    unlike: Option<String>,
}

impl Follower {
    pub(super) fn query(&mut self, query: Query) -> Result<()> {
        let word = first_words(&query.text);
        match word.as_str() {
            "BEGIN" | "START TRANSACTION" => {
                self.goes_on();
                return Ok(());
            }
            "COMMIT" => return self.end_transaction(),
            "ROLLBACK" => {
                self.set_touched_aside("a transaction that has changed it was rolled back in the log");
                return self.end_transaction();
            }
            _ if word.starts_with("ROLLBACK TO") => {
                self.set_touched_aside(
                    "a transaction that has changed it was rolled back in part in the log",
                );
                return Ok(());
            }
            _ if word.starts_with("SAVEPOINT") => return Ok(()),
            _ if word.starts_with("XA ") => return self.xa(&word, &query),
            _ => {}
        }
        if self.run.open.is_none() {
            return Err(ReplicateError::damaged("a statement stands outside of a transaction"));
        }
        let mut query = query;
        let mut text = text_of(&query)?;
        let mut unlike = None;
        if self.flavor == Flavor::MariaDb {
            if self.shape() == Shape::Undecided {
                return self.end_transaction();
            }
            (text, unlike) = mariadb::spoken(&text, &mut query.session, self.version);
        }
        let mode = query.session.sql_mode.map_or(SqlMode::DEFAULT, sql_mode);
        let mut asked = asked(&text, &query.database, mode, self.flavor);
        if self.folds_names {
            query.database = folded(&query.database);
            asked = asked.with_folded_names();
            if let Asked::Definition { tables, databases, .. } = &asked {
                text = with_folded_databases(&text, mode, databases);
                if !tables.is_empty() && has_other_case(&text, mode, |name| self.is_named(name, tables)) {
                    unlike.get_or_insert("it names tables in another case than the source keeps".into());
                }
            }
        }
        match asked {
            Asked::Nothing => self.end_statement(),
            Asked::Replaced(database) if !self.claim_database(&database)? => self.end_statement(),
            Asked::Replaced(database) => {
                let catalog = self.engine.catalog();
                let tables = catalog.tables().chain(catalog.views());
                let tables = tables.filter(|table| table.def.database == database);
                let mut names: BTreeSet<String> = tables.map(|table| table.def.name.clone()).collect();
                let waiting = self.state.tables.keys().filter(|name| name.database == database);
                names.extend(waiting.map(|name| name.table.clone()));
                for table in names {
                    let name = TableName { database: database.clone(), table };
                    self.set_aside(&name, "the source has made its database anew");
                }
                self.end_statement()
            }
            Asked::Definition { tables, databases, looked_at } => {
                let defined = Defined { tables, databases, looked_at, unlike };
                self.define(&query, &text, mode, &defined)
            }
            Asked::Trigger => {
                self.may_have_triggers = true;
                self.end_statement()
            }
            Asked::Filled { table, calls_unknown } => {
                if self.patterns.names_table(&table.database, &table.table) && self.claim(&table)? {
                    self.set_aside_unseen(&table, "it was made by a query whose rows are not in the log");
                }
                if calls_unknown {
                    self.rows_are_unlogged(&[], true)?;
                }
                self.end_statement()
            }
            Asked::Rows { tables, calls_unknown } => {
                self.rows_are_unlogged(&tables, calls_unknown)?;
                self.end_statement()
            }
            Asked::NotUnderstood(why) => Err(ReplicateError::Refused(format!(
                "a statement of the source's log is not understood ({why}), so nobody knows which tables it changes: {text}"
            ))),
        }
    }

    /// Whether a table or a database has this name, or is about to have it.
    fn is_named(&self, name: &str, tables: &[TableName]) -> bool {
        let is = |own: &TableName| own.table == name || own.database == name;
        let catalog = self.engine.catalog();
        tables.iter().chain(self.state.tables.keys()).any(is)
            || catalog.tables().chain(catalog.views()).any(|table| table.def.name == name)
            || catalog.databases().any(|database| database.name == name)
    }

    /// How the open transaction goes on.
    fn shape(&self) -> Shape {
        self.run.open.as_ref().map_or(Shape::Spoken, |open| open.shape)
    }

    /// The open transaction has more than one statement.
    fn goes_on(&mut self) {
        if let Some(open) = &mut self.run.open {
            open.has_begun = true;
        }
    }

    /// Whether COMMIT, XID or what else ends the open transaction is still to come behind its statement.
    fn is_in_group(&self) -> bool {
        self.shape() == Shape::Group || self.run.open.as_ref().is_some_and(|open| open.has_begun)
    }

    /// A statement that ends its transaction, unless that has said that it goes on.
    fn end_statement(&mut self) -> Result<()> {
        if self.is_in_group() { Ok(()) } else { self.end_transaction() }
    }

    fn define(&mut self, query: &Query, text: &str, mode: SqlMode, defined: &Defined) -> Result<()> {
        let Defined { tables, databases, looked_at, unlike } = defined;
        // CREATE TABLE … SELECT writes its rows behind its definition, in one transaction, whether anybody here wants them or not.
        let has_rows = before_rows(text, mode).is_some() || self.is_in_group();
        for name in tables.iter().filter(|name| self.patterns.names_table(&name.database, &name.table)) {
            self.claim(name)?;
        }
        for database in databases {
            self.claim_database(database)?;
        }
        let wanted = |name: &&TableName| self.patterns.has_table(&name.database, &name.table);
        let named: BTreeSet<TableName> = tables.iter().filter(wanted).cloned().collect();
        let are_all_wanted = named.len() == tables.iter().collect::<BTreeSet<_>>().len();
        let databases_wanted = databases.iter().any(|name| self.patterns.has_database(name));
        if named.is_empty() && !databases_wanted {
            return if has_rows { Ok(()) } else { self.end_transaction() };
        }
        // What has the name of another channel's table is another table at this source.
        let is_followed = |name: &TableName| {
            !self.state.tables.contains_key(name) && self.patterns.other(&name.database).is_none()
        };
        let is_exact = named.iter().all(is_followed) && looked_at.iter().all(is_followed) && are_all_wanted;
        if !is_exact {
            named.iter().for_each(|name| self.set_aside(name, "the source has redefined it"));
            return if has_rows { Ok(()) } else { self.end_transaction() };
        }
        // Nobody may see it without its rows.
        if has_rows {
            named.iter().for_each(|name| self.set_aside(name, "it was made with rows"));
            return Ok(());
        }
        if query.error != 0 {
            let why = format!(
                "a statement about it has failed with error {} at the source, perhaps in part",
                query.error
            );
            named.iter().for_each(|name| self.set_aside(name, &why));
            return self.end_transaction();
        }
        let unlike = unlike
            .as_deref()
            .or_else(|| gives_other_values(text, mode, self.flavor))
            .or_else(|| self.is_of_other_zone(query, text, mode, &named))
            .or_else(|| self.has_other_defaults(query, text, mode, &named));
        if let Some(why) = unlike.filter(|_| !named.is_empty()) {
            named.iter().for_each(|name| self.set_aside(name, why));
            return self.end_transaction();
        }
        let gtid = self.run.open.as_ref().map(Open::id).unwrap_or_default();
        let now = definition_fingerprint(&self.engine, &named, databases);
        let begun = self.state.pending.take().filter(|pending| pending.gtid == gtid);
        if begun.as_ref().is_none_or(|pending| pending.before == now) {
            self.state.pending = Some(Pending { gtid, before: now });
            self.commit()?;
            let database = Some(query.database.as_str()).filter(|name| !name.is_empty());
            // A setting that is refused here sets tables aside, which a database alone cannot be.
            let of_database = named.is_empty().then(|| query.session.of_database());
            let session = of_database.as_ref().unwrap_or(&query.session);
            let done = self.definitions.run(database, session, text, DEFINITION_WAIT);
            self.state.pending = None;
            self.forget_databases(databases);
            if let Err(error) = done {
                // A database that is there was made for a copy, as it is at the source; one that is not never had a table here.
                let is_done = named.is_empty() && matches!(error.errno, 1007 | 1008 | 1049);
                // One with defaults that are not known here is made for a copy, without them.
                let is_made_later =
                    self.flavor == Flavor::MariaDb && !first_words(text.as_bytes()).starts_with("DROP");
                let is_done = is_done || is_made_later;
                if named.is_empty() && !is_done && is_busy(&error) {
                    return Err(error.into());
                }
                if named.is_empty() && !is_done {
                    return Err(ReplicateError::Refused(format!(
                        "error {}: {}, of {text}",
                        error.errno, error.message
                    )));
                }
                named.iter().for_each(|name| self.set_aside(name, &error.message));
            }
            self.look_at_parents(named.iter().cloned());
        } else if named.len() > 1 {
            // Perhaps a part of it.
            named
                .iter()
                .for_each(|name| self.set_aside(name, "it was being redefined when the server ended"));
        }
        self.run.maps.clear();
        self.run.group.is_changed = true;
        self.end_transaction()
    }

    /// Makes a database this channel's; false if it is another's.
    pub(super) fn claim_database(&self, database: &str) -> Result<bool> {
        if !self.patterns.names_database(database) {
            return Ok(true);
        }
        let other = self.patterns.claim(database).map_err(ReplicateError::Refused)?;
        if let Some(other) = &other {
            tracing::warn!(
                database,
                channel = other,
                "it is followed from another channel, and left out of this one"
            );
        }
        Ok(other.is_none())
    }

    /// Tables of databases that are gone are not awaited.
    fn forget_databases(&mut self, databases: &[String]) {
        let catalog = self.engine.catalog();
        let is_gone = |name: &&TableName| {
            databases.contains(&name.database) && catalog.database(&name.database).is_none()
        };
        let gone: Vec<TableName> = self.state.tables.keys().filter(is_gone).cloned().collect();
        for name in gone {
            self.copies.cancel(&name);
            self.state.tables.remove(&name);
            self.changed(&name);
        }
    }

    /// What the open transaction has changed cannot be told from what others in this commit have: such changes stay in InnoDB
    /// tables' logs only if other engines' tables were changed, too.
    fn set_touched_aside(&mut self, why: &str) -> BTreeSet<TableName> {
        let touched = std::mem::take(&mut self.run.touched);
        touched.iter().for_each(|name| self.set_aside_unseen(name, why));
        touched
    }

    /// Why a definition means something else in a session of UTC than at the source.
    fn is_of_other_zone(
        &self,
        query: &Query,
        text: &str,
        mode: SqlMode,
        named: &BTreeSet<TableName>,
    ) -> Option<&'static str> {
        let zone = query.session.time_zone.as_deref();
        if self.is_in_utc || zone.is_some_and(|zone| !zone.eq_ignore_ascii_case("SYSTEM")) {
            return None;
        }
        let is_timestamp = |column: Option<&str>| {
            self.has_column(named, column, |ty| matches!(ty, SqlType::Timestamp { .. }))
        };
        depends_on_zone(text, mode, is_timestamp)
            .then_some("the source has defined it in its machine's time zone, which is not UTC")
    }

    /// Why columns get other defaults here.
    fn has_other_defaults(
        &self,
        query: &Query,
        text: &str,
        mode: SqlMode,
        named: &BTreeSet<TableName>,
    ) -> Option<&'static str> {
        let is_lob = |column: &str| {
            self.has_column(named, Some(column), |ty| {
                matches!(ty, SqlType::Text { .. } | SqlType::Blob { .. })
            })
        };
        let are_explicit = query.session.explicit_defaults_for_timestamp;
        Defaults { flavor: self.flavor, are_explicit }.unlike(text, mode, is_lob)
    }

    /// Whether one of these tables has a column of that name, or any, of such a type.
    fn has_column(
        &self,
        named: &BTreeSet<TableName>,
        column: Option<&str>,
        is_such: impl Fn(&SqlType) -> bool,
    ) -> bool {
        let catalog = self.engine.catalog();
        let tables = named.iter().filter_map(|name| catalog.table(&name.database, &name.table));
        let mut columns = tables.flat_map(|table| table.def.own_columns());
        columns
            .any(|own| is_such(&own.ty) && column.is_none_or(|column| own.name.eq_ignore_ascii_case(column)))
    }

    /// An XA transaction has been prepared: its rows are not in force, and nobody knows whether they will be.
    pub(super) fn xa_prepare(&mut self, body: &[u8]) -> Result<()> {
        let mut bytes = Bytes::new(body, "an XA_PREPARE event");
        let is_one_phase = bytes.u8()? == 1;
        if is_one_phase {
            return self.end_transaction();
        }
        let format = bytes.u32()?;
        let (global, branch) = (bytes.u32()? as usize, bytes.u32()? as usize);
        let id = XaId { format, global: bytes.take(global)?.into(), branch: bytes.take(branch)?.into() };
        let touched =
            self.set_touched_aside("an XA transaction that has changed it is prepared, and not ended");
        self.state.prepared.insert(id.key(), touched.into_iter().collect());
        self.end_transaction()
    }

    fn xa(&mut self, word: &str, query: &Query) -> Result<()> {
        match word {
            _ if word.starts_with("XA START")
                || word.starts_with("XA BEGIN")
                || word.starts_with("XA END") =>
            {
                // What it has changed is asked for when it is prepared.
                self.goes_on();
                Ok(())
            }
            _ => {
                let id = std::str::from_utf8(&query.text).ok().and_then(XaId::read);
                match id.and_then(|id| self.state.prepared.remove(&id.key())) {
                    Some(names) => names.iter().for_each(|name| {
                        self.set_aside_unseen(name, "an XA transaction that has changed it has ended");
                    }),
                    // It was prepared before the position here: its rows stand in what is not read any more.
                    None if word.starts_with("XA COMMIT") => self.set_all_aside(
                        "an XA transaction that was prepared before it was followed has been committed",
                    ),
                    None => {}
                }
                self.end_transaction()
            }
        }
    }
}

/// Of what a definition is about: others are made and dropped by copies meanwhile.
pub(super) fn definition_fingerprint(
    engine: &Engine,
    tables: &BTreeSet<TableName>,
    databases: &[String],
) -> u64 {
    let catalog = engine.catalog();
    let mut hasher = DefaultHasher::new();
    for name in tables {
        let table = catalog.table(&name.database, &name.table);
        let table = table.or_else(|| catalog.view(&name.database, &name.table));
        table.map(|table| format!("{:?}", table.def)).hash(&mut hasher);
    }
    for name in databases {
        catalog.database(name).map(|database| format!("{database:?}")).hash(&mut hasher);
    }
    hasher.finish()
}

/// The statement's text; its session has said in which character set.
fn text_of(query: &Query) -> Result<String> {
    let collation = query.session.collations.map(|[client, ..]| Collation(client));
    let charset = collation.map_or(Charset::Utf8mb4, |collation| collation.info().charset);
    // Names and comments of all character sets are possible in statements of UTF-8 clients alone.
    let charset = if charset == Charset::Utf8mb3 { Charset::Utf8mb4 } else { charset };
    // Some clients send a NUL behind a statement.
    let end = query.text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    charset.decode(&query.text[..end]).map_err(|_| {
        ReplicateError::Refused(format!(
            "a statement of the source's log is not {}: {}",
            charset.name(),
            String::from_utf8_lossy(&query.text)
        ))
    })
}

/// The modes that change how a statement reads.
fn sql_mode(bits: u64) -> SqlMode {
    let mut mode = SqlMode::DEFAULT;
    for (bit, flag) in [
        (sql_mode_bits::PIPES_AS_CONCAT, SqlMode::PIPES_AS_CONCAT),
        (sql_mode_bits::ANSI_QUOTES, SqlMode::ANSI_QUOTES),
        (sql_mode_bits::IGNORE_SPACE, SqlMode::IGNORE_SPACE),
        (sql_mode_bits::NO_BACKSLASH_ESCAPES, SqlMode::NO_BACKSLASH_ESCAPES),
        (sql_mode_bits::HIGH_NOT_PRECEDENCE, SqlMode::HIGH_NOT_PRECEDENCE),
    ] {
        if bits & bit != 0 {
            mode = mode.with(flag);
        }
    }
    mode
}

fn asked(text: &str, default: &str, mode: SqlMode, flavor: Flavor) -> Asked {
    // What only this form has is not for the parser.
    let definition = before_rows(text, mode).unwrap_or(text);
    let statements = match parse::parse(definition.as_bytes(), mode) {
        Ok(statements) => statements,
        Err(error) => return by_words(text, default, mode, flavor, &error.to_string()),
    };
    let [statement] = &statements[..] else {
        // The bodies of routines have them.
        return by_words(text, default, mode, flavor, "several statements in one");
    };
    let facts = StatementFacts::of(statement);
    let name = |used: &TableUse| TableName {
        database: used.database.clone().unwrap_or_else(|| default.to_owned()),
        table: used.table.clone(),
    };
    let tables: Vec<TableName> = facts.writes.iter().map(name).collect();
    match &statement.kind {
        StatementKind::Empty | StatementKind::Comment => Asked::Nothing,
        StatementKind::Unsupported(_) => by_words(text, default, mode, flavor, "it is not served here"),
        StatementKind::Refused(error) => by_words(text, default, mode, flavor, &error.message),
        StatementKind::RefusedPartitions { .. } => Asked::Rows { tables, calls_unknown: facts.calls_unknown },
        // They are not copied.
        StatementKind::DropProgram { .. }
        | StatementKind::DropTable { temporary: true, .. }
        | StatementKind::CreateTableLike { temporary: true, .. } => Asked::Nothing,
        StatementKind::CreateTable(create) if create.temporary => match facts.calls_unknown {
            true => Asked::Rows { tables: Vec::new(), calls_unknown: true },
            false => Asked::Nothing,
        },
        // Where its rows are row events, the log has no query.
        StatementKind::CreateTable(create) if create.query.is_some() => {
            let database = create.name.database.as_ref().map_or(default, |database| database.name.as_str());
            let table = TableName { database: database.to_owned(), table: create.name.name.name.clone() };
            Asked::Filled { table, calls_unknown: facts.calls_unknown }
        }
        StatementKind::CreateDatabase { name, .. } | StatementKind::DropDatabase { name, .. } => {
            Asked::Definition { tables, databases: vec![name.name.clone()], looked_at: Vec::new() }
        }
        StatementKind::AlterDatabase { name, .. } => {
            let database = name.as_ref().map_or_else(|| default.to_owned(), |name| name.name.clone());
            Asked::Definition { tables, databases: vec![database], looked_at: Vec::new() }
        }
        StatementKind::CreateTableLike { like, .. } => {
            let database = like.database.as_ref().map_or(default, |database| database.name.as_str());
            let looked_at = vec![TableName { database: database.to_owned(), table: like.name.name.clone() }];
            Asked::Definition { tables, databases: Vec::new(), looked_at }
        }
        // The new name stands among the actions.
        StatementKind::AlterTable { actions, .. } => {
            let mut tables = tables;
            for action in actions {
                if let parse::statement::AlterAction::RenameTable(to) = action {
                    let database = to.database.as_ref().map_or(default, |database| database.name.as_str());
                    tables.push(TableName { database: database.to_owned(), table: to.name.name.clone() });
                }
            }
            Asked::Definition { tables, databases: Vec::new(), looked_at: Vec::new() }
        }
        _ => match facts.class {
            StatementClass::Definition => {
                Asked::Definition { tables, databases: Vec::new(), looked_at: Vec::new() }
            }
            StatementClass::Change => Asked::Rows { tables, calls_unknown: facts.calls_unknown },
            // A stored function that changes rows, by itself.
            StatementClass::Query if facts.calls_unknown => {
                Asked::Rows { tables: Vec::new(), calls_unknown: true }
            }
            StatementClass::Account
            | StatementClass::Administration
            | StatementClass::Session
            | StatementClass::Information
            | StatementClass::Empty => Asked::Nothing,
            class => Asked::NotUnderstood(format!("a statement of class {class:?}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        of_flavor(text, Flavor::MySql)
    }

    fn of_flavor(text: &str, flavor: Flavor) -> String {
        let names = |names: &[TableName]| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        match asked(text, "d", SqlMode::DEFAULT, flavor) {
            Asked::Nothing => "nothing".into(),
            Asked::Definition { tables, databases, looked_at } => {
                format!("define {} [{}] {}", names(&tables), databases.join(" "), names(&looked_at))
                    .trim_end()
                    .into()
            }
            Asked::Replaced(database) => format!("replace {database}"),
            Asked::Rows { tables, calls_unknown } => {
                format!("rows {}{}", names(&tables), if calls_unknown { " and more" } else { "" })
            }
            Asked::Filled { table, calls_unknown } => {
                format!("filled {table}{}", if calls_unknown { " and more" } else { "" })
            }
            Asked::Trigger => "trigger".into(),
            Asked::NotUnderstood(_) => "?".into(),
        }
    }

    #[test]
    fn statements_say_which_tables_they_are_about() {
        for (text, wanted) in [
            ("CREATE TABLE t (a int primary key)", "define d.t []"),
            ("CREATE TABLE t (a int) PARTITION BY HASH (a)", "define d.t []"),
            ("ALTER TABLE t DROP PARTITION p", "define d.t []"),
            ("ALTER TABLE t TRUNCATE PARTITION ALL", "define d.t []"),
            ("ALTER TABLE x.t ANALYZE PARTITION p", "nothing"),
            ("ALTER TABLE t REPAIR PARTITION ALL", "nothing"),
            ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE x.u WITHOUT VALIDATION", "define d.t x.u []"),
            ("CREATE PROCEDURE p() BEGIN UPDATE t SET a = 1; DELETE FROM u; END", "nothing"),
            (
                "CREATE DEFINER=`a`@`%` TRIGGER r BEFORE INSERT ON t FOR EACH ROW BEGIN SET @a = 1; SET NEW.b = 2; END",
                "trigger",
            ),
            ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t", "nothing"),
            ("CREATE TABLE x.t LIKE u", "define x.t [] d.u"),
            ("CREATE TABLE t (a int) START TRANSACTION", "define d.t []"),
            ("CREATE TABLE t (a int) # START TRANSACTION", "define d.t []"),
            ("ALTER TABLE t ADD b int, RENAME TO x.u", "define d.t x.u []"),
            ("RENAME TABLE a TO b, c TO x.d", "define d.a d.b d.c x.d []"),
            ("DROP TABLE `a`,`x`.`b` /* generated by server */", "define d.a x.b []"),
            ("DROP TEMPORARY TABLE IF EXISTS a", "nothing"),
            ("TRUNCATE TABLE a", "define d.a []"),
            ("CREATE DATABASE x", "define  [x]"),
            ("INSERT INTO t SELECT * FROM u", "rows d.t"),
            ("UPDATE t JOIN u ON t.a = u.a SET t.b = 1", "rows d.t"),
            ("INSERT INTO t VALUES (f(1))", "rows d.t and more"),
            ("SELECT `d`.`f`(1)", "rows  and more"),
            ("DO f(1)", "rows  and more"),
            ("CREATE TABLE x.t SELECT UUID() AS a FROM u", "filled x.t"),
            ("CREATE TABLE IF NOT EXISTS t (a int) SELECT f(a) AS a FROM u", "filled d.t and more"),
            ("CREATE TEMPORARY TABLE t SELECT a FROM u", "nothing"),
            ("CREATE TEMPORARY TABLE t SELECT f(a) FROM u", "rows  and more"),
            ("CREATE USER u", "nothing"),
            ("GRANT ALL ON *.* TO u", "nothing"),
            (
                "CREATE DEFINER=`root`@`localhost` TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET new.a = 1",
                "trigger",
            ),
            ("CREATE DEFINER=`root`@`localhost` PROCEDURE p() BEGIN SELECT 1; SELECT 2; END", "nothing"),
            ("ANALYZE TABLE t", "nothing"),
            ("ALTER TABLE t PARTITION BY HASH(a) PARTITIONS 4", "define d.t []"),
            ("CREATE TABLE `x`.`odd``name` (a geometry not null)", "define x.odd`name []"),
            ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "define d.t d.u []"),
            (
                "CREATE DEFINER=`user`@`%` SQL SECURITY DEFINER VIEW v AS SELECT WHATEVER FROM",
                "define d.v []",
            ),
            ("# x\nDROP PROCEDURE p", "nothing"),
            ("/* it's */ DROP FUNCTION IF EXISTS f", "nothing"),
            ("-- it's\nALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "define d.t d.u []"),
            ("CREATE DEFINER=root@'localhost' VIEW v AS SELECT WHATEVER FROM", "define d.v []"),
            ("INSERT INTO t PARTITION (p0) VALUES (1)", "rows d.t"),
            ("LOAD DATA INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b)", "rows d.t"),
            ("UPDATE t SET a = 1 WHATEVER", "rows  and more"),
            ("CREATE DATABASE x WHATEVER = 'y'", "?"),
            ("WHATEVER t", "?"),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }

    #[test]
    fn statements_of_a_mariadb_say_so_too() {
        for (text, wanted) in [
            ("CREATE OR REPLACE TABLE t (a int primary key)", "define d.t []"),
            ("CREATE TABLE IF NOT EXISTS x.t (a uuid primary key default uuid())", "define x.t []"),
            ("ALTER ONLINE TABLE t WAIT 5 ADD COLUMN IF NOT EXISTS b int", "define d.t []"),
            ("ALTER TABLE IF EXISTS t RENAME COLUMN IF EXISTS a TO b", "define d.t []"),
            ("ALTER TABLE t ADD COLUMN IF NOT EXISTS b int, RENAME TO x.u", "define d.t x.u []"),
            ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", "define d.t d.u []"),
            ("CREATE INDEX IF NOT EXISTS i ON x.t (a)", "define x.t []"),
            ("DROP INDEX IF EXISTS i ON t", "define d.t []"),
            ("RENAME TABLE IF EXISTS a WAIT 3 TO b, c TO x.d", "define d.a d.b d.c x.d []"),
            ("DROP TABLE IF EXISTS a, `x`.`b` WAIT 5", "define d.a x.b []"),
            ("CREATE SEQUENCE s START WITH 5", "define d.s []"),
            ("CREATE OR REPLACE SEQUENCE x.s", "define x.s []"),
            ("DROP SEQUENCE IF EXISTS `d`.`s`,`x`.`r` /* generated by server */", "define d.s x.r []"),
            ("CREATE OR REPLACE PACKAGE p AS PROCEDURE q(); END", "nothing"),
            ("CREATE OR REPLACE DATABASE x", "replace x"),
            ("CREATE DATABASE x COMMENT 'y'", "nothing"),
            ("ALTER DATABASE x COMMENT 'y'", "nothing"),
        ] {
            assert_eq!(of_flavor(text, Flavor::MariaDb), wanted, "{text}");
        }
    }
}
