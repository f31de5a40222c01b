//! What a statement's text alone says about where it can run, and what it leaves behind in its session.
//!
//! Long texts are not parsed, but for queries that may run here: a syntax tree takes many times the memory of its text, and the tokens
//! tell as much as is needed of a change of rows.

use avocet_channel::blocking::{TEXT_IN_PLACE, blocking_if};
use avocet_session::api::Route;
use avocet_sql::facts::{Part, SessionState, StatementClass, StatementFacts, TableUse};
use avocet_sql::parse::ast::VariableScope;
use avocet_sql::parse::digest::MAX_TEXT;
use avocet_sql::parse::hints::HintValue;
use avocet_sql::parse::outline::{Outline, first_words, has_more, outlines};
use avocet_sql::parse::statement::{SetItem, ShowKind, Statement, StatementKind};
use avocet_sql::parse::{self, is_tall, on_stack_for};
use avocet_types::expr::SqlMode;

use super::dialect::first_foreign;
use super::effects::Effects;

/// Where a statement can run, as far as its text tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On either server, if these tables are followed.
    Either(Candidate),
    /// Where the statement before it ran: it asks for that one's warnings or numbers, and for nothing else.
    WithLast,
    /// Here: it is about what no MySQL has. `as_there`: in a session like the one on the source, which is asked for that.
    Here { as_there: bool },
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

/// The source explains a text with its conditions, several times over.
const MOST_EXPLAINED: usize = 256 * 1024;
const SEVERAL: &str = "several statements in one text";

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
        let long = if text.len() > MAX_TEXT { Self::of_long(text, mode) } else { None };
        let mut shape = long.unwrap_or_else(|| Self::of_text(text, mode));
        // Which of them are read depends on the reader's version.
        let has_versions = has_version_comment(text);
        shape.effects.settings |= has_versions;
        if matches!(shape.place, Place::Either(_)) {
            let why = match () {
                () if has_versions => Some("it has a comment for some versions alone"),
                () if has_more(text.as_bytes(), mode) => Some(SEVERAL),
                () => None,
            };
            shape.place = why.map_or(shape.place, Place::Source);
        }
        shape
    }

    /// The shape of a text that is not worth a syntax tree: a change of rows, or too long for the source to explain it. `None` if it is
    /// none.
    fn of_long(text: &str, mode: SqlMode) -> Option<Self> {
        let words = first_words(text.as_bytes());
        let first = words.split(' ').next().unwrap_or_default();
        let changes_rows = matches!(first, "INSERT" | "REPLACE" | "UPDATE" | "DELETE");
        if !changes_rows && text.len() <= MOST_EXPLAINED {
            return None;
        }
        let outlines = blocking_if(text.len() > TEXT_IN_PLACE, || outlines(text.as_bytes(), mode));
        let why = match outlines.len() {
            0 | 1 if changes_rows => "it changes rows",
            0 | 1 => "it is very long",
            _ => SEVERAL,
        };
        Some(Self::of_outlines(&outlines, why))
    }

    fn of_outlines(outlines: &[Outline], why: &'static str) -> Self {
        let mut effects = Effects::default();
        outlines.iter().for_each(|outline| effects.add(Effects::of_outline(outline)));
        // Those behind it ask for what is in the text itself.
        let first = outlines.first();
        Self {
            asks_last: first.is_some_and(|first| first.asks_conditions || first.first == "GET"),
            asks_found_rows: first.is_some_and(|first| first.asks_found_rows),
            ..Self::source(why, effects)
        }
    }

    fn of_text(text: &str, mode: SqlMode) -> Self {
        let is_long = text.len() > TEXT_IN_PLACE;
        blocking_if(is_long, || match parse::parse(text.as_bytes(), mode) {
            Err(_) => Self::of_unknown(text, mode),
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
        let mut effects = Effects::default();
        let mut shapes =
            statements.iter().map(Self::of_statement).inspect(|shape| effects.add(shape.effects.clone()));
        // Those behind it ask for what is in the text itself.
        let first = shapes.next();
        shapes.for_each(drop);
        let (asks_last, asks_found_rows) =
            first.map_or((false, false), |first| (first.asks_last, first.asks_found_rows));
        Self { asks_last, asks_found_rows, ..Self::source(SEVERAL, effects) }
    }

    /// Of what the parser does not know: routines, events, partitions and the like, or no SQL at all.
    fn of_unknown(text: &str, mode: SqlMode) -> Self {
        const WHY: &str = "it is not in Avocet's grammar";
        let mut shape = Self::of_outlines(&outlines(text.as_bytes(), mode), WHY);
        shape.effects.settings = true;
        shape
    }

    fn of_statement(statement: &Statement) -> Self {
        let facts = StatementFacts::of(statement);
        let effects = Effects::of(&statement.kind, &facts);
        let is_query = matches!(statement.kind, StatementKind::Query(_));
        if is_own(&statement.kind, &facts) {
            let effects = Effects { finds_rows: is_query, ..Effects::default() };
            // Constants mean the same in any session, and the question for its settings would be the last query of the one there.
            let place = Place::Here { as_there: is_query };
            return Self { place, effects, asks_last: false, asks_found_rows: false };
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

    /// Whether it asks for what one server knows of the last statement, and another of the last query.
    pub fn asks_several(&self, are_one: bool) -> bool {
        self.asks_last && self.asks_found_rows && !are_one
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

/// Whether a text has comments that some servers read, and some versions of them.
pub(super) fn has_version_comment(text: &str) -> bool {
    // Most texts have no comment at all.
    text.contains("/*") && (text.contains("/*!") || text.contains("/*M!"))
}

/// Why a statement is the source's whatever it costs; `None` if it is not.
fn why_source(facts: &StatementFacts, is_query: bool) -> Option<&'static str> {
    Some(match () {
        () if facts.class == StatementClass::Change => "it changes rows",
        () if !is_query => "it is no query",
        () if facts.locks_rows => "it locks rows",
        () if !facts.reads_only() => "it changes its session",
        () if facts.reads.is_empty() => "it reads no tables",
        () if facts.reads.iter().any(is_own_table) => "it reads tables of Avocet's own and others",
        () => return facts.why_of_session(),
    })
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
            assert!(matches!(of(text).place, Place::Here { .. }), "{text}");
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
        assert_eq!(effects("SET timestamp = 7").clock, Some(true));
        for text in
            ["SET timestamp = DEFAULT", "SET @@session.timestamp = 0", "SET timestamp = 7, timestamp = 0"]
        {
            assert_eq!(effects(text).clock, Some(false), "{text}");
        }
        assert_eq!(effects("SET GLOBAL x = 7").clock, None);
        assert_eq!(effects("LOCK TABLES t READ").table_locks, Some(true));
        assert_eq!(effects("UNLOCK TABLES").table_locks, Some(false));
        for text in ["CREATE TEMPORARY TABLE X (a INT)", "CREATE TEMPORARY TABLE x LIKE y"] {
            assert_eq!(effects(text).temporary.as_deref(), Some("x"), "{text}");
        }
        assert_eq!(effects("KILL QUERY 12").kills, Some((12, true)));
        assert_eq!(effects("KILL 12").kills, Some((12, false)));
        assert!(effects("COMMIT").commits && !effects("COMMIT").writes);
        assert!(effects("DELETE FROM t").writes && !effects("SELECT * FROM t").writes);
        for text in [
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET @@transaction_isolation = 'SERIALIZABLE'",
            "SET a = 1, @@tx_isolation = 'SERIALIZABLE'",
            "CALL p()",
            "EXECUTE s",
            "SET STATEMENT tx_isolation = 'SERIALIZABLE' FOR SELECT 1",
        ] {
            assert!(effects(text).next_level, "{text}");
        }
        for text in [
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET @@session.transaction_isolation = 'SERIALIZABLE'",
            "SET transaction_isolation = 'SERIALIZABLE'",
            "SELECT @@transaction_isolation",
        ] {
            assert!(!effects(text).next_level, "{text}");
        }
    }

    #[test]
    fn words_in_comments_are_no_words_of_the_statement() {
        let last = of("/* get user */ UPDATE t SET a = 1");
        assert!(!last.asks_last && last.effects.writes);
        // MariaDB's syntax, which is not in the grammar.
        let unknown = of("/* select job */ UPDATE t SET a = 1 RETURNING WHATEVER b");
        assert!(unknown.effects.writes && unknown.effects.settings);
        assert!(of("/* c */ GET DIAGNOSTICS WHATEVER").asks_last);
        assert!(of("WITH c AS (SELECT 1) DELETE FROM t WHATEVER x").effects.writes);
    }

    #[test]
    fn each_statement_of_a_text_without_a_tree_counts() {
        let effects =
            of("SELECT WHATEVER FROM WHERE; LOCK TABLES t READ; SET timestamp = 5; CALL p()").effects;
        assert!(effects.table_locks == Some(true) && effects.clock == Some(true) && effects.next_level);
        let effects = of("CREATE PROCEDURE p() BEGIN SET a = 1; SELECT 1; END").effects;
        assert!(effects.clock.is_none() && !effects.next_level && effects.writes);
    }

    #[test]
    fn several_results_are_the_sources_to_give() {
        for text in ["SELECT a FROM t; -- done", "SELECT a FROM t; /* done */", "SELECT a FROM t; # done"] {
            assert_eq!(of(text).place, Place::Source(SEVERAL), "{text}");
        }
        assert!(is_candidate("SELECT a FROM t; \n") && is_candidate("SELECT ';' FROM t -- done"));
    }

    #[test]
    fn what_the_server_is_the_source_says() {
        for text in [
            "SELECT VERSION(), a FROM t",
            "SELECT ICU_VERSION(), a FROM t",
            "SELECT PS_CURRENT_THREAD_ID(), a FROM t",
            "SELECT CURRENT_ROLE(), a FROM t",
        ] {
            assert!(matches!(of(text).place, Place::Source(_)), "{text}");
        }
    }

    #[test]
    fn long_changes_are_told_by_their_tokens() {
        let rows = "(1, NOW(), 'text; FOUND_ROWS()'),".repeat(600);
        let insert = format!("/* bulk */ INSERT INTO t (a, b, c) VALUES {rows} (2, NULL, '')");
        assert_eq!(of(&insert), of("INSERT INTO t VALUES (1)"));
        let calls = of(&insert.replace("NULL", "my_function(1)"));
        assert!(calls.effects.settings && calls.effects.writes);
        assert!(of(&insert.replace("NULL", "FOUND_ROWS()")).asks_found_rows);
        let several =
            of(&format!("{insert}; SET @@transaction_isolation = 'SERIALIZABLE'; SELECT ROW_COUNT()"));
        assert!(several.effects.next_level && several.effects.settings && !several.asks_last);
        let several = of("SELECT ROW_COUNT(); SELECT FOUND_ROWS()");
        assert!(several.asks_last && !several.asks_found_rows);
        // A query may run here, and is parsed.
        assert!(is_candidate(&format!("SELECT a FROM t WHERE b IN (1{})", ", 2".repeat(10_000))));
        let very_long = of(&format!("SELECT a FROM t WHERE b IN (1{})", ", 2".repeat(100_000)));
        assert_eq!(very_long, Shape::source("it is very long", of("SELECT a FROM t").effects));
    }
}
