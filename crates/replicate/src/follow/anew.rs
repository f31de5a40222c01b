//! Everything copied anew: the source's log goes on without what is between the position here and it, or another server has the source's
//! address and lacks what is in force here.

use std::time::Duration;

use avocet_engine::Engine;
use avocet_types::Collation;

use super::{CLEARING_WAIT, Follower};
use crate::binlog::SessionOfQuery;
use crate::error::Result;
use crate::patterns::Patterns;
use crate::source::{self, Connection, quoted};
use crate::state::{State, TableName, TableState};

/// How long a server that has taken the source's place may take to apply what it got from that one.
const CATCH_UP: Duration = Duration::from_secs(10);

impl Follower {
    /// Another server has the source's address. It may lack transactions that the one before has sent and then lost: rows here that
    /// they have changed would stay as they are, and nobody says so, as a MySQL looks for its own transactions alone when a stream begins.
    pub(super) fn go_over_to(&mut self, conn: &mut Connection, identity: String) -> Result<()> {
        tracing::warn!(from = self.state.source, to = identity, "another server is followed now");
        const WHY: &str = "the source is another server";
        // Places in the logs of one server mean nothing in another's.
        if self.state.place.is_some() {
            self.begin_anew(WHY)?;
        } else if let Some(lacking) = source::lacking(conn, &self.state.executed, CATCH_UP)? {
            let why = format!("{WHY}, and lacks transactions that are in force here: {lacking}");
            tracing::warn!(lacking = %lacking, "the new source lacks transactions; everything is copied again");
            self.begin_anew(&why)?;
        } else {
            self.recopy_unfinished(WHY);
        }
        self.state.source = identity;
        Ok(())
    }

    /// The transactions between the position and the source's logs are lost: everything is copied at a new position.
    pub(super) fn begin_anew(&mut self, why: &str) -> Result<()> {
        let mut conn = source::connect(&self.opts)?;
        let (executed, place) = source::beginning(&mut conn)?;
        let mut state = State { source: source::identity(&mut conn)?, executed, place, ..State::default() };
        let here = wanted_here(&self.engine, &self.patterns);
        let mut there = Vec::new();
        for (name, _) in source::tables(&mut conn, &self.patterns.of_all_channels())? {
            if self.claim(&name)? {
                there.push(name);
            }
        }
        for name in here.into_iter().chain(there) {
            self.copies.cancel(&name);
            state.tables.insert(name, TableState::Waiting { why: why.to_owned() });
        }
        self.redefine_databases(&source::database_collations(&mut conn)?)?;
        self.state = state;
        self.withhold_all();
        self.commit()
    }

    /// Databases get the defaults that they have at the source by now: what has changed them is in no log that will come.
    fn redefine_databases(&mut self, there: &[(String, Collation)]) -> Result<()> {
        for (name, collation) in there {
            let here = self.engine.catalog().database(name).map(|database| database.collation);
            if here.is_none_or(|here| here == *collation)
                || !self.patterns.has_database(name)
                || !self.claim_database(name)?
            {
                continue;
            }
            let alter = format!("ALTER DATABASE {} COLLATE {}", quoted(name), collation.name());
            if let Err(error) = self.definitions.run(None, &SessionOfQuery::default(), &alter, CLEARING_WAIT)
            {
                // Tables are copied with collations of their own; one that is made later in this database may be set aside.
                tracing::warn!(
                    database = name,
                    error = error.message,
                    "its default collation stays as it was"
                );
            }
        }
        Ok(())
    }
}

/// Tables and views that are here of those that are followed. What the source has no more goes when it is looked for there.
fn wanted_here(engine: &Engine, patterns: &Patterns) -> Vec<TableName> {
    let catalog = engine.catalog();
    let here = catalog.tables().chain(catalog.views()).map(|table| &table.def);
    here.filter(|def| patterns.has_table(&def.database, &def.name))
        .map(|def| TableName { database: def.database.clone(), table: def.name.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use avocet_types::{
        ColumnDef, SqlMode, SqlType, TableDef, ViewAlgorithm, ViewCheck, ViewDef, ViewSecurity,
    };

    use super::super::tests::stage;
    use super::*;

    fn view(name: &str) -> TableDef {
        let view = ViewDef {
            select: "select 1 AS `a`".into(),
            names: Vec::new(),
            algorithm: ViewAlgorithm::Undefined,
            definer: ("root".into(), "localhost".into()),
            security: ViewSecurity::Definer,
            check: ViewCheck::Local,
            is_updatable: false,
            sql_mode: SqlMode::DEFAULT,
            client_charset: "utf8mb4".into(),
            connection_collation: Collation::DEFAULT,
            created_us: 1,
        };
        let def = TableDef::new("d", name, vec![ColumnDef::new("a", SqlType::BIGINT)], vec![]);
        TableDef { view: Some(Box::new(view)), ..def }
    }

    #[test]
    fn views_are_looked_for_at_the_source_too() {
        let stage = stage();
        let engine = &stage.follower.engine;
        engine.create_view(view("v"), false, Duration::ZERO).expect("a new one");
        let names: Vec<String> =
            wanted_here(engine, &Patterns::default()).iter().map(|name| name.table.clone()).collect();
        assert!(names.contains(&"v".to_owned()) && names.contains(&"t".to_owned()), "{names:?}");
    }

    #[test]
    fn databases_get_their_defaults_again() {
        let mut stage = stage();
        let bin = Collation::by_name("utf8mb4_bin").expect("there is one");
        let there = [("d".to_owned(), bin), ("elsewhere".to_owned(), bin)];
        stage.follower.redefine_databases(&there).expect("it is run");
        assert_eq!(stage.has_run(), ["ALTER DATABASE `d` COLLATE utf8mb4_bin"]);
        let there = [("d".to_owned(), Collation::DEFAULT)];
        stage.follower.redefine_databases(&there).expect("nothing is");
        assert!(stage.has_run().is_empty());
    }
}
