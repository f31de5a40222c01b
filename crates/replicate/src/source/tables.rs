//! The tables of a source, and their definitions.

use avocet_types::Collation;
use mysql::prelude::Queryable;

use super::{Connection, Flavor, log_filters, mariadb, variable};
use crate::error::Result;
use crate::patterns::Patterns;
use crate::state::TableName;

/// A table's definition, in the source's words.
#[derive(Clone, Debug)]
pub struct Definition {
    /// SHOW CREATE TABLE, without the next AUTO_INCREMENT value; of a MariaDB as it is said here.
    pub text: String,
    pub is_view: bool,
    /// SHOW CREATE DATABASE, or what means the same.
    pub database: String,
    /// Why its rows cannot be followed, and what would help.
    pub obstacle: Option<(String, String)>,
}

/// A name in backquotes.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// All tables and views (true) that the patterns name.
pub fn tables(conn: &mut Connection, patterns: &Patterns) -> Result<Vec<(TableName, bool)>> {
    let rows: Vec<(String, String, String)> = conn.query(
        "SELECT CAST(TABLE_SCHEMA AS CHAR), CAST(TABLE_NAME AS CHAR), CAST(TABLE_TYPE AS CHAR) FROM information_schema.TABLES
         WHERE TABLE_TYPE IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED', 'SEQUENCE') ORDER BY TABLE_SCHEMA, TABLE_NAME",
    )?;
    let wanted = rows.into_iter().filter(|(database, table, _)| patterns.has_table(database, table));
    Ok(wanted.map(|(database, table, kind)| (TableName { database, table }, kind == "VIEW")).collect())
}

/// The databases and their default collations, but for those that are not known here.
pub fn database_collations(conn: &mut Connection) -> Result<Vec<(String, Collation)>> {
    let rows: Vec<(String, String)> = conn.query(
        "SELECT CAST(SCHEMA_NAME AS CHAR), CAST(DEFAULT_COLLATION_NAME AS CHAR) FROM information_schema.SCHEMATA",
    )?;
    let flavor = conn.flavor;
    let known = rows.into_iter().filter(|(_, name)| flavor == Flavor::MySql || mariadb::is_known(name));
    Ok(known.filter_map(|(database, name)| Some((database, Collation::by_name(&name)?))).collect())
}

/// Whether a name is one of a table, and not of a view or of nothing.
///
/// # Errors
/// If the source cannot be asked.
pub fn is_table(conn: &mut Connection, name: &TableName) -> Result<bool> {
    let kind: Option<String> = conn.exec_first(
        "SELECT CAST(TABLE_TYPE AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
        (&name.database, &name.table),
    )?;
    Ok(kind.is_some_and(|kind| !kind.ends_with("VIEW")))
}

/// Whether there are triggers, or some that this account does not see: they are shown to those who have the privilege TRIGGER.
///
/// # Errors
/// If the source cannot be asked.
pub fn may_have_triggers(conn: &mut Connection) -> Result<bool> {
    let row: Option<(u64, u64)> = conn.query_first(
        "SELECT (SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA <> 'sys'),
                (SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER'
                 AND GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), ''''))",
    )?;
    Ok(row.is_none_or(|(triggers, sees_all)| triggers > 0 || sees_all == 0))
}

/// A table as it is now; `None` if there is none.
pub fn definition(conn: &mut Connection, name: &TableName) -> Result<Option<Definition>> {
    let statement = format!("SHOW CREATE TABLE {}.{}", quoted(&name.database), quoted(&name.table));
    let row: Option<mysql::Row> = match conn.query_first(statement) {
        Ok(row) => row,
        // No such database, no such table, a view whose tables are gone.
        Err(mysql::Error::MySqlError(error)) if matches!(error.code, 1049 | 1146 | 1356) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(row) = row else { return Ok(None) };
    let is_view = row.columns_ref().first().is_some_and(|column| column.name_ref() == b"View");
    let text: String = row.get(1).unwrap_or_default();
    let text = match conn.flavor {
        Flavor::MariaDb if !is_view => mariadb::definition_here(&text),
        _ => without_next_value(&text),
    };
    let obstacle = match log_filters(conn)?.obstacle(&name.database) {
        None if !is_view => obstacle(conn, name)?,
        unlogged => unlogged,
    };
    let database = match conn.flavor {
        Flavor::MySql => {
            let row: Option<(String, String)> =
                conn.query_first(format!("SHOW CREATE DATABASE {}", quoted(&name.database)))?;
            row.map(|(_, text)| text).unwrap_or_default()
        }
        Flavor::MariaDb => mariadb::database(conn, &name.database)?,
    };
    Ok(Some(Definition { text, is_view, database, obstacle }))
}

/// The options of the table stand in the last line that begins with a parenthesis, and names cannot look like this one.
fn without_next_value(text: &str) -> String {
    let Some(options) = text.rfind("\n) ENGINE=") else { return text.to_owned() };
    let (body, options) = text.split_at(options);
    let mut kept = String::from(body);
    let mut words = options.split(' ').peekable();
    let mut is_first = true;
    while let Some(word) = words.next() {
        // A comment comes after it, and may hold anything.
        if let Some(value) = word.strip_prefix("AUTO_INCREMENT=")
            && value.bytes().all(|byte| byte.is_ascii_digit())
        {
            for word in words {
                kept.push(' ');
                kept.push_str(word);
            }
            return kept;
        }
        if !is_first {
            kept.push(' ');
        }
        is_first = false;
        kept.push_str(word);
    }
    kept
}

fn obstacle(conn: &mut Connection, name: &TableName) -> Result<Option<(String, String)>> {
    if conn.flavor == Flavor::MariaDb
        && let Some(why) = mariadb::obstacle(conn, name)?
    {
        return Ok(Some((why, "leave it out with --exclude, or let it be named here".into())));
    }
    if !has_key(conn, name)? {
        return Ok(Some((
            "it has neither a primary key nor a unique key without NULLs, so that its rows cannot be told apart".into(),
            format!(
                "ALTER TABLE {}.{} ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY",
                quoted(&name.database),
                quoted(&name.table)
            ),
        )));
    }
    Ok(None)
}

fn has_key(conn: &mut Connection, name: &TableName) -> Result<bool> {
    let keys: Option<u64> = conn.exec_first(
        "SELECT COUNT(*) FROM (SELECT INDEX_NAME FROM information_schema.STATISTICS
         WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0
         GROUP BY INDEX_NAME HAVING SUM(NULLABLE = 'YES' OR SUB_PART IS NOT NULL OR COLUMN_NAME IS NULL) = 0
             OR INDEX_NAME = 'PRIMARY') AS k",
        (&name.database, &name.table),
    )?;
    Ok(keys.unwrap_or(0) > 0)
}

/// Since MySQL 9.6 foreign keys are enforced above InnoDB, and what they change is logged.
pub fn logs_cascades(conn: &mut Connection) -> Result<bool> {
    Ok(variable(conn, "innodb_native_foreign_keys")?.is_some_and(|value| value == "OFF"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_compared_without_the_next_value() {
        let text = "CREATE TABLE `t` (\n  `AUTO_INCREMENT=5 ` int,\n) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=x COMMENT='AUTO_INCREMENT=9 '";
        let kept = without_next_value(text);
        assert!(kept.contains("`AUTO_INCREMENT=5 `") && kept.contains("'AUTO_INCREMENT=9 '"), "{kept}");
        assert!(!kept.contains("17"), "{kept}");
        assert_eq!(without_next_value(&kept.replace("=9", "=x")), kept.replace("=9", "=x"));
    }
}
