//! What a statement's text alone says about where it can run, and what it leaves behind in its session.
//!
//! Statements that differ in literals alone have one shape, which is kept by their digest.

use std::collections::HashMap;
use std::sync::Arc;

use avocet_channel::blocking::{TEXT_IN_PLACE, blocking_if};
use avocet_session::api::Route;
use avocet_sql::facts::{Part, SessionState, StatementClass, StatementFacts, TableUse};
use avocet_sql::parse::ast::{ExprKind, VariableScope};
use avocet_sql::parse::digest::Digest;
use avocet_sql::parse::hints::HintValue;
use avocet_sql::parse::statement::{SetItem, ShowKind, Statement, StatementKind};
use avocet_sql::parse::{self, is_tall, on_stack_for};
use avocet_types::expr::SqlMode;
use parking_lot::RwLock;

use super::dialect::first_foreign;

/// Where a statement can run, as far as its text tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On either server, if these tables are followed.
    Either(Candidate),
    /// Where the statement before it ran: it asks for that one's warnings or numbers, and for nothing else.
    WithLast,
    /// Here: it is about what no MySQL has.
    Here,
    /// On the source, and why.
    Source(&'static str),
}

/// A query that reads tables, and no more of its session than every query does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub tables: Vec<(Option<String>, String)>,
    /// What of it a MariaDB would answer otherwise.
    pub foreign: Option<Part>,
    /// The place that a hint asks for: `SET_VAR(avocet_route = here)`.
    pub route: Option<Route>,
}

/// What a statement may leave behind in its session on the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Variables, the default database, roles.
    pub settings: bool,
    /// `SET timestamp`.
    pub clock: bool,
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
    pub temporary: Temporary,
    /// KILL of the connection with this number; with `true`, of its statement alone.
    pub kills: Option<(u32, bool)>,
}

/// Temporary tables that a statement may have made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Temporary {
    #[default]
    None,
    Named(String),
    Unknown,
}

/// The source explains a text with its conditions, several times over.
const MOST_EXPLAINED: usize = 256 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub place: Place,
    pub effects: Effects,
    /// It asks for ROW_COUNT() or warnings of the statement before.
    pub asks_last: bool,
    /// It asks for FOUND_ROWS() of the query before.
    pub asks_found_rows: bool,
}

impl Shape {
    fn source(why: &'static str, effects: Effects) -> Self {
        Self { place: Place::Source(why), effects, asks_last: false, asks_found_rows: false }
    }

    /// The shape of a whole text.
    pub fn of(text: &str, mode: SqlMode) -> Self {
        let mut shape = Self::of_text(text, mode);
        // GET DIAGNOSTICS, which nobody here parses.
        shape.asks_last |= first_word(text).is_some_and(|word| word.eq_ignore_ascii_case("get"));
        // Which of them are read depends on the reader's version.
        if matches!(shape.place, Place::Either(_)) && (text.contains("/*!") || text.contains("/*M!")) {
            shape.place = Place::Source("it has a comment for some versions alone");
        }
        if matches!(shape.place, Place::Either(_)) && text.len() > MOST_EXPLAINED {
            shape.place = Place::Source("it is very long");
        }
        shape
    }

    fn of_text(text: &str, mode: SqlMode) -> Self {
        let is_long = text.len() > TEXT_IN_PLACE;
        blocking_if(is_long, || match parse::parse(text.as_bytes(), mode) {
            Err(_) => Self::of_unknown(text),
            Ok(statements) => {
                let height = statements.iter().map(|statement| statement.height).max().unwrap_or_default();
                match height > 0 && is_tall(height) {
                    true => on_stack_for(height, || Self::of_statements(statements)),
                    false => Self::of_statements(statements),
                }
            }
        })
    }

    fn of_statements(statements: Vec<Statement>) -> Self {
        if let [statement] = &*statements {
            return Self::of_statement(statement);
        }
        // What they leave behind together is what each may.
        let mut effects = Effects::default();
        for shape in statements.iter().map(Self::of_statement) {
            let each = shape.effects;
            effects.settings |= each.settings;
            effects.clock |= each.clock;
            effects.finds_rows |= each.finds_rows;
            effects.writes |= each.writes;
            effects.commits |= each.commits;
            effects.next_level |= each.next_level;
            effects.table_locks = each.table_locks.or(effects.table_locks);
            if each.temporary != Temporary::None {
                effects.temporary = Temporary::Unknown;
            }
            effects.kills = each.kills.or(effects.kills);
        }
        Self::source("several statements in one text", effects)
    }

    /// Of what the parser does not know: routines, events, partitions and the like, or no SQL at all.
    fn of_unknown(text: &str) -> Self {
        let first = first_word(text);
        let is = |word: &str| first.is_some_and(|first| first.eq_ignore_ascii_case(word));
        let reads = is("select") || is("with") || is("show") || is("explain") || is("describe") || is("desc");
        let effects = Effects {
            settings: true,
            finds_rows: reads || is("call"),
            clock: is("set"),
            writes: !reads,
            commits: !reads,
            next_level: is("set"),
            table_locks: is("lock").then_some(true),
            temporary: match reads || is("insert") || is("update") || is("delete") || is("replace") {
                true => Temporary::None,
                false => Temporary::Unknown,
            },
            kills: None,
        };
        Self::source("it is not in Avocet's grammar", effects)
    }

    fn of_statement(statement: &Statement) -> Self {
        let facts = StatementFacts::of(statement);
        let effects = effects(&statement.kind, &facts);
        if is_own(&statement.kind, &facts) {
            let effects = Effects::default();
            return Self { place: Place::Here, effects, asks_last: false, asks_found_rows: false };
        }
        use SessionState as S;
        let of_last = S::ROW_COUNT | S::CONDITIONS;
        let shows_conditions = matches!(
            &statement.kind,
            StatementKind::Show(show) if matches!(
                show.kind,
                ShowKind::Warnings { .. } | ShowKind::Errors { .. } | ShowKind::CountWarnings | ShowKind::CountErrors
            )
        );
        let is_query = matches!(statement.kind, StatementKind::Query(_));
        let asks_last =
            shows_conditions || facts.class != StatementClass::Information && facts.needs.intersects(of_last);
        let asks_found_rows = facts.needs.contains(S::FOUND_ROWS);
        let asks_nothing_else =
            facts.reads.is_empty() && facts.needs.without(of_last | S::FOUND_ROWS).is_empty();
        if shows_conditions || is_query && (asks_last || asks_found_rows) && asks_nothing_else {
            return Self { place: Place::WithLast, effects, asks_last, asks_found_rows };
        }
        let place = match why_source(&facts, is_query) {
            Some(why) => Place::Source(why),
            None => {
                let name = |table: &TableUse| (table.database.clone(), table.table.clone());
                Place::Either(Candidate {
                    tables: facts.reads.iter().map(name).collect(),
                    foreign: first_foreign(&facts.parts),
                    route: hinted_route(statement),
                })
            }
        };
        Self { place, effects, asks_last, asks_found_rows }
    }

    /// Whether what it asks of statements before is known here, or at the source, alone.
    pub fn asks_here(&self, last_ran_here: bool, last_query_ran_here: bool) -> bool {
        self.asks_last && last_ran_here || self.asks_found_rows && last_query_ran_here
    }
}

fn is_own_table(table: &TableUse) -> bool {
    table.database.as_deref() == Some("avocet")
}

/// Whether a statement is about what no MySQL has, and nothing else: nobody asks the source whether it is permitted.
fn is_own(kind: &StatementKind, facts: &StatementFacts) -> bool {
    use SessionState as S;
    match kind {
        // Global variables are for accounts of this server's own.
        StatementKind::Set(items) => facts.reads.is_empty() && facts.needs.is_empty() && items.iter().all(|item| {
            matches!(item, SetItem::Variable { scope: VariableScope::Default | VariableScope::Session, name, .. } if name.starts_with("avocet_"))
        }),
        StatementKind::Query(_) => {
            let of_settings = S::VARIABLES | S::DATABASE | S::CLOCK | S::TIME_ZONE | S::SQL_MODE;
            (facts.names_own_variable || !facts.reads.is_empty())
                && facts.reads.iter().all(is_own_table)
                && facts.reads_only()
                && facts.deterministic
                && facts.needs.without(of_settings).is_empty()
        }
        _ => false,
    }
}

fn hinted_route(statement: &Statement) -> Option<Route> {
    let variables = &statement.hints.as_ref()?.variables;
    let (_, value) = variables.iter().find(|(name, _)| name == "avocet_route")?;
    match value {
        HintValue::Text(place) => place.parse().ok(),
        HintValue::Number(_) | HintValue::Decimal(_) => None,
    }
}

/// The first word of a text that does not begin with a comment.
fn first_word(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty())
}

/// Why a statement is the source's whatever it costs; `None` if it is not.
fn why_source(facts: &StatementFacts, is_query: bool) -> Option<&'static str> {
    use SessionState as S;
    let needs = |state| facts.needs.intersects(state);
    Some(match () {
        () if facts.class == StatementClass::Change => "it changes rows",
        () if !is_query => "it is no query",
        () if facts.locks_rows => "it locks rows",
        () if !facts.reads_only() => "it changes its session",
        () if facts.reads.is_empty() => "it reads no tables",
        () if facts.reads.iter().any(is_own_table) => "it reads tables of Avocet's own and others",
        () if needs(S::USER_VARIABLES) => "it reads user variables",
        () if needs(S::VARIABLES) => "it reads system variables",
        () if needs(S::LAST_INSERT_ID) => "it reads LAST_INSERT_ID()",
        () if needs(S::FOUND_ROWS | S::ROW_COUNT | S::CONDITIONS) => "it asks for the statement before",
        () if needs(S::NAMED_LOCKS) => "it asks for locks",
        () if needs(S::IDENTITY) => "it asks who is connected",
        () if !facts.deterministic => "it calls functions that do not give the same twice",
        () => return None,
    })
}

fn effects(kind: &StatementKind, facts: &StatementFacts) -> Effects {
    use SessionState as S;
    use StatementClass as C;
    let writes =
        !facts.writes.is_empty() || matches!(facts.class, C::Definition | C::Account | C::Call | C::Refused);
    let mut effects = Effects {
        settings: match facts.class {
            C::Query | C::Change | C::Information | C::Transaction | C::Empty => false,
            C::Definition => facts.changes.contains(S::DATABASE),
            C::Session | C::Account | C::Administration | C::Call | C::Refused => true,
        },
        clock: facts.changes.contains(S::CLOCK),
        finds_rows: facts.class == C::Query || facts.class == C::Call,
        writes,
        commits: writes || matches!(facts.class, C::Transaction | C::Session),
        ..Effects::default()
    };
    if facts.calls_unknown {
        effects.settings = true;
        effects.writes = true;
        effects.temporary = Temporary::Unknown;
    }
    match kind {
        StatementKind::LockTables(_) | StatementKind::FlushWithReadLock(_) => {
            effects.table_locks = Some(true)
        }
        StatementKind::Set(items) => {
            let is_next =
                |item: &SetItem| matches!(item, SetItem::Transaction { scope: VariableScope::Default, .. });
            effects.next_level = items.iter().any(is_next);
        }
        StatementKind::UnlockTables => effects.table_locks = Some(false),
        StatementKind::CreateTable(create) if create.temporary => {
            effects.temporary = Temporary::Named(create.name.name.name.to_lowercase());
        }
        StatementKind::CreateTableLike { name, temporary: true, .. } => {
            effects.temporary = Temporary::Named(name.name.name.to_lowercase());
        }
        // ALTER TABLE … RENAME of a temporary table gives it a name that nobody has seen.
        StatementKind::AlterTable { .. } | StatementKind::RenameTable(_) => {
            effects.temporary = Temporary::Unknown
        }
        StatementKind::Kill { connection, query_only } => {
            if let ExprKind::Integer(number) = &connection.kind {
                effects.kills = u32::try_from(*number).ok().map(|number| (number, *query_only));
            }
        }
        _ if matches!(facts.class, C::Call | C::Refused) => effects.temporary = Temporary::Unknown,
        _ => {}
    }
    effects
}

/// Shapes by digest. When there are too many, all are forgotten: they are made anew in microseconds.
#[derive(Default)]
pub struct Shapes {
    kept: RwLock<HashMap<Box<[u8]>, Arc<Shape>>>,
}

impl Shapes {
    const MOST: usize = 4096;
    /// Digests that are longer are not kept, so that all together are a few MiB at most.
    const LONGEST: usize = 2048;

    /// The shape of a text, whose digest is read as well if it has one.
    pub fn of(&self, text: &str, mode: SqlMode, digest: &mut Digest) -> (Arc<Shape>, bool) {
        let has_digest =
            digest.read(text.as_bytes(), mode) && !digest.hinted && digest.text.len() <= Self::LONGEST;
        if !has_digest {
            return (Arc::new(Shape::of(text, mode)), false);
        }
        // The same tokens mean something else under another mode.
        digest.text.extend_from_slice(&mode.0.to_le_bytes());
        if let Some(shape) = self.kept.read().get(&*digest.text) {
            return (shape.clone(), true);
        }
        let shape = Arc::new(Shape::of(text, mode));
        let mut kept = self.kept.write();
        if kept.len() >= Self::MOST {
            kept.clear();
        }
        kept.insert(digest.text.as_slice().into(), shape.clone());
        (shape, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Shape {
        Shape::of(text, SqlMode::DEFAULT)
    }

    fn is_candidate(text: &str) -> bool {
        matches!(of(text).place, Place::Either(_))
    }

    #[test]
    fn queries_of_tables_may_run_on_either() {
        for text in [
            "SELECT * FROM t",
            "select count(*) from a.t join b using (x) where d > now() - interval 1 day",
            "WITH c AS (SELECT 1 FROM t) SELECT * FROM c",
            "(SELECT a FROM t) UNION SELECT b FROM u ORDER BY 1",
            "TABLE t",
            "/* a dashboard */ SELECT SUM(x) FROM t;",
        ] {
            assert!(is_candidate(text), "{text}");
        }
        let Place::Either(candidate) =
            of("SELECT * FROM a.t WHERE x < NOW() AND y IN (SELECT z FROM u)").place
        else {
            panic!("it is a candidate")
        };
        assert_eq!(candidate.tables, [(Some("a".into()), "t".into()), (None, "u".into())]);
    }

    #[test]
    fn what_is_of_the_session_or_changes_something_is_the_sources() {
        for text in [
            "SELECT 1",
            "SELECT @a, x FROM t",
            "SELECT x FROM t WHERE x = @@wait_timeout",
            "SELECT x FROM t WHERE x = LAST_INSERT_ID()",
            "SELECT CONNECTION_ID(), x FROM t",
            "SELECT RAND(), x FROM t",
            "SELECT my_function(x) FROM t",
            "SELECT COUNT(*) FROM t /*!90704 , u */",
            "SELECT COUNT(*) FROM t /*!99999 /* */ UNION ALL SELECT a FROM u -- */",
            "SELECT x FROM t FOR UPDATE",
            "SELECT x FROM t LOCK IN SHARE MODE",
            "SELECT x INTO @y FROM t",
            "SELECT GET_LOCK('a', 1) FROM t",
            "INSERT INTO t SELECT * FROM u",
            "UPDATE t SET a = 1",
            "SELECT 1 FROM t; SELECT 2 FROM t",
            "BEGIN",
            "CALL p()",
            "CREATE PROCEDURE p() SELECT 1",
            "nonsense",
            "",
            "EXPLAIN SELECT * FROM t",
            "SHOW TABLES",
            "DO 1",
        ] {
            assert!(matches!(of(text).place, Place::Source(_)), "{text}: {:?}", of(text).place);
        }
    }

    #[test]
    fn what_asks_for_the_statement_before_goes_where_that_ran() {
        for text in [
            "SHOW WARNINGS",
            "SHOW COUNT(*) WARNINGS",
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT(), @@warning_count",
        ] {
            assert_eq!(of(text).place, Place::WithLast, "{text}");
        }
        let mixed = of("SELECT FOUND_ROWS(), @a");
        assert!(matches!(mixed.place, Place::Source(_)) && mixed.asks_found_rows);
        assert!(of("INSERT INTO t VALUES (FOUND_ROWS())").asks_found_rows);
        assert!(of("SET @n = ROW_COUNT()").asks_last && of("GET DIAGNOSTICS @n = NUMBER").asks_last);
        assert!(!of("SHOW TABLES").asks_last);
    }

    #[test]
    fn what_is_the_servers_own_is_not_for_clients_of_the_source() {
        for text in [
            "SET GLOBAL avocet_route = 'here'",
            "SET PERSIST avocet_route = 'here'",
            "SET avocet_route = 'here', GLOBAL avocet_route = 'here'",
            "SET avocet_route = 'here', sql_mode = ''",
            "SELECT @@avocet_route, a FROM t",
            "SELECT @@avocet_route FROM mysql.user",
            "SELECT @@avocet_route, LOAD_FILE('/etc/passwd')",
            "SELECT * FROM avocet.routed_queries JOIN t",
            "SELECT @@avocet_route INTO OUTFILE '/tmp/x'",
            "SET avocet_route = (SELECT a FROM t)",
            "SELECT GET_LOCK('a', 1), @@avocet_route",
        ] {
            assert!(matches!(of(text).place, Place::Source(_)), "{text}");
        }
    }

    #[test]
    fn avocets_own_variables_stay_here() {
        for text in [
            "SET avocet_route = 'here'",
            "SELECT @@avocet_freshness",
            "SET SESSION avocet_freshness = 'bounded(5)'",
            "SELECT * FROM avocet.routed_queries",
        ] {
            assert_eq!(of(text).place, Place::Here, "{text}");
        }
    }

    #[test]
    fn effects_on_the_session_are_told() {
        let effects = |text: &str| of(text).effects;
        for text in [
            "SET @a = my_function()",
            "SET sql_mode = ''",
            "USE a",
            "SET NAMES latin1",
            "CALL p()",
            "EXECUTE s",
            "SET ROLE r",
            "DROP DATABASE d",
            "garbage",
        ] {
            assert!(effects(text).settings, "{text}");
        }
        for text in
            ["SELECT 1", "INSERT INTO t VALUES (1)", "COMMIT", "CREATE TABLE t (a INT)", "SHOW TABLES"]
        {
            assert!(!effects(text).settings, "{text}");
        }
        assert!(effects("SET timestamp = 7").clock);
        assert_eq!(effects("LOCK TABLES t READ").table_locks, Some(true));
        assert_eq!(effects("UNLOCK TABLES").table_locks, Some(false));
        assert_eq!(effects("CREATE TEMPORARY TABLE X (a INT)").temporary, Temporary::Named("x".into()));
        assert_eq!(effects("CREATE TEMPORARY TABLE x LIKE y").temporary, Temporary::Named("x".into()));
        for text in ["CALL p()", "EXECUTE s", "CREATE TEMPORARY gibberish"] {
            assert_eq!(effects(text).temporary, Temporary::Unknown, "{text}");
        }
        assert_eq!(effects("KILL QUERY 12").kills, Some((12, true)));
        assert_eq!(effects("KILL 12").kills, Some((12, false)));
        assert!(effects("COMMIT").commits && !effects("COMMIT").writes);
        assert!(effects("DELETE FROM t").writes && !effects("SELECT * FROM t").writes);
        assert!(effects("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").next_level);
        assert!(!effects("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE").next_level);
    }

    #[test]
    fn one_shape_serves_all_literals() {
        let (shapes, mut digest) = (Shapes::default(), Digest::default());
        let (first, _) = shapes.of("SELECT a FROM t WHERE b = 1", SqlMode::DEFAULT, &mut digest);
        let (second, _) = shapes.of("SELECT a FROM t WHERE b = 22", SqlMode::DEFAULT, &mut digest);
        assert!(Arc::ptr_eq(&first, &second));
        let (hinted, has_digest) =
            shapes.of("SELECT /*+ SET_VAR(avocet_route = 'here') */ a FROM t", SqlMode::DEFAULT, &mut digest);
        let Place::Either(candidate) = &hinted.place else { panic!("it is a candidate") };
        assert!(!has_digest && candidate.route == Some(Route::Here));
    }
}
