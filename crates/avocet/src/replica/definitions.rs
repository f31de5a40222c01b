//! Definitions of a source as SQL here.

use std::time::Duration;

use avocet_replicate::{Definitions, SessionOfQuery};
use avocet_session::Database;
use avocet_types::Collation;
use avocet_types::error::SqlError;

/// Definitions as SQL, each in a session like the one at the source.
pub struct SqlDefinitions {
    pub database: Database,
}

impl Definitions for SqlDefinitions {
    fn run(
        &mut self,
        default: Option<&str>,
        like: &SessionOfQuery,
        sql: &str,
        lock_wait: Duration,
    ) -> Result<(), SqlError> {
        let mut connection = self.database.connect_to_apply()?;
        let mut settings = vec![
            "foreign_key_checks = 0".to_owned(),
            "unique_checks = 0".to_owned(),
            format!("lock_wait_timeout = {}", lock_wait.as_secs().max(1)),
            format!("sql_mode = '{}'", like.sql_mode_names()),
        ];
        // Definitions of copies are said in UTC, and so are those whose zone does not matter.
        let zone = like.time_zone.as_deref().filter(|zone| !zone.eq_ignore_ascii_case("SYSTEM"));
        settings.push(format!("time_zone = '{}'", zone.unwrap_or("+00:00").replace('\'', "''")));
        if let Some([_, connection, server]) = like.collations {
            settings.push(format!("collation_connection = {}", Collation(connection).name()));
            settings.push(format!("collation_server = {}", Collation(server).name()));
        }
        if let Some(collation) = like.utf8mb4_collation {
            settings.push(format!("default_collation_for_utf8mb4 = {}", Collation(collation).name()));
        }
        if let Some((increment, offset)) = like.auto_increment {
            settings
                .push(format!("auto_increment_increment = {increment}, auto_increment_offset = {offset}"));
        }
        if let Some(began) = like.began_us {
            settings.push(format!("timestamp = {}.{:06}", began / 1_000_000, began % 1_000_000));
        }
        connection.query(&format!("SET SESSION {}", settings.join(", ")))?;
        if let Some(default) = default {
            // The statement may be about to make the database.
            let exists = self.database.engine().catalog().database(default).is_some();
            if exists {
                connection.query(&format!("USE `{}`", default.replace('`', "``")))?;
            }
        }
        connection.query(sql).map(drop)
    }
}
