//! What becomes of a recorded statement: it is replayed, it changes the session alone, or it is counted and left alone.
//!
//! Only what reads alone is replayed, told from the statement's facts ([`StatementFacts`]), never from how its text looks. What the
//! parser does not read is no read for sure; whether the source reads it, the worker asks.

use avocet_sql::facts::{ColumnUse, SessionState as S, StatementClass as C, StatementFacts};
use avocet_sql::parse::ast::{
    Expr, ExprKind, Limit, OrderItem, Query, QueryBody, Select, SelectItem, VariableScope,
};
use avocet_sql::parse::statement::{PrepareSource, SetItem, Show, ShowKind, Statement, StatementKind as K};
use avocet_sql::parse::{self, on_stack_for};
use avocet_types::error::SqlError;
use avocet_types::expr::SqlMode;

/// What is done with a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Replay(Box<Shape>),
    /// It changes the session, and reads nothing but that.
    Session(Vec<Setting>),
    /// `EXECUTE name`
    Execute(String),
    /// It is counted under this.
    Skip(&'static str),
    /// Not replayed, and later statements may look for what it leaves in the session.
    SkipLeaving(&'static str, Left),
    /// The parser here does not read it.
    Unread(SqlError),
}

/// What a session lacks since a statement of it was not replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    UserVariables,
    /// A temporary table of this name, in lower case.
    Temporary(String),
}

/// A part of the session's state, by what it replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    Database(String),
    /// A variable, and the statement that sets it.
    Variable {
        name: String,
        sets_clock: Option<bool>,
        mode: Option<SqlMode>,
    },
    Prepare {
        name: String,
        text: Option<String>,
    },
    Deallocate(String),
    /// What has to do with transactions is set by the same statement: the replay's own settings are to be restored.
    Mixed,
}

/// By what the rows of an answer are ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Of an output column, from 0.
    At(usize),
    /// An output column's name, in lower case.
    Named(String),
}

/// A LIMIT of the statement itself: its bounds, and where they stand in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub count: (u64, usize, usize),
    pub offset: Option<(u64, usize, usize)>,
}

/// The catalog that a statement reads, if it is not the user's own tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Catalog {
    #[default]
    None,
    /// `information_schema`, and SHOW of what is there: names and types should be the same.
    Definitions,
    /// Rows or columns that are about a server itself: its sizes, times, threads.
    Server,
}

/// What decides about how answers to a statement are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The leading keys of ORDER BY that are output columns.
    pub order: Vec<Key>,
    pub limit: Option<Bounds>,
    /// It has a LIMIT whose bounds are no literals.
    pub odd_limit: bool,
    /// Which of equal texts, or which rows, it gives is left open in part.
    pub picks: bool,
    pub groups: bool,
    pub deterministic: bool,
    pub clock: bool,
    /// It reads variables, or who the session is.
    pub reads_server: bool,
    pub needs_user_variables: bool,
    pub catalog: Catalog,
    /// Tables without a database that it reads, in lower case.
    pub tables: Vec<String>,
}

/// Decides about a statement's text.
pub fn decide(text: &str, mode: SqlMode, log_has_executions: bool) -> Decision {
    // A server writes PREPARE without its text, and each execution with it.
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    if log_has_executions && word.eq_ignore_ascii_case("PREPARE") {
        return Decision::Skip("PREPARE, whose executions are in the log");
    }
    let statements = match parse::parse(text.as_bytes(), mode) {
        Ok(statements) => statements,
        Err(error) => return Decision::Unread(error.into()),
    };
    match statements.as_slice() {
        [statement] if statement.params > 0 => {
            Decision::Skip("statements with parameters whose values are not in the log")
        }
        [statement] => {
            on_stack_for(statement.height, || of_statement(statement, text, mode, log_has_executions))
        }
        _ => Decision::Skip("several statements in one"),
    }
}

/// Decides about the text of a statement that is prepared by name: its parameters have values when it is executed.
pub fn decide_prepared(text: &str, mode: SqlMode) -> Decision {
    match parse::parse(text.as_bytes(), mode).as_deref() {
        Ok([statement]) => on_stack_for(statement.height, || of_statement(statement, text, mode, false)),
        Ok(_) => Decision::Skip("several statements in one"),
        Err(error) => Decision::Unread(error.clone().into()),
    }
}

fn of_statement(statement: &Statement, text: &str, mode: SqlMode, log_has_executions: bool) -> Decision {
    let facts = StatementFacts::of(statement);
    match &statement.kind {
        K::Empty | K::Comment => Decision::Skip("nothing but comments"),
        K::Query(query) => of_query(query, &facts, text, mode),
        K::Show(show) => of_show(show),
        K::Describe { .. } => Decision::Replay(Box::new(definitions())),
        K::Explain { .. } => Decision::Skip("EXPLAIN: plans differ"),
        K::Use(name) => Decision::Session(vec![Setting::Database(name.name.clone())]),
        K::Set(items) => of_set(items, &facts),
        K::Prepare { .. } | K::Deallocate(_) | K::Execute { .. } if log_has_executions => {
            Decision::Skip("PREPARE, EXECUTE, DEALLOCATE, whose executions are in the log")
        }
        K::Prepare { name, source } => {
            let text = match source {
                PrepareSource::Text(text) => Some(text.clone()),
                PrepareSource::UserVariable(_) => None,
            };
            Decision::Session(vec![Setting::Prepare { name: name.name.to_lowercase(), text }])
        }
        K::Deallocate(name) => Decision::Session(vec![Setting::Deallocate(name.name.to_lowercase())]),
        K::Execute { name, .. } => Decision::Execute(name.name.to_lowercase()),
        K::SelectInto { .. } if facts.changes.contains(S::USER_VARIABLES) => {
            Decision::SkipLeaving("SELECT … INTO", Left::UserVariables)
        }
        K::SelectInto { .. } => Decision::Skip("SELECT … INTO"),
        K::CreateTable(create) if create.temporary => {
            let left = Left::Temporary(create.name.name.name.to_lowercase());
            Decision::SkipLeaving("definitions of temporary tables", left)
        }
        K::CreateTableLike { name, temporary: true, .. } => {
            let left = Left::Temporary(name.name.name.to_lowercase());
            Decision::SkipLeaving("definitions of temporary tables", left)
        }
        K::Do(_) => Decision::Skip("DO"),
        K::Refused(error) | K::RefusedPartitions { error, .. } => Decision::Unread((**error).clone()),
        _ => Decision::Skip(match facts.class {
            C::Change => "changes of rows",
            C::Definition => "definitions",
            C::Transaction => "transactions and table locks",
            C::Account => "accounts and privileges",
            C::Call => "CALL",
            C::Information => "CHECKSUM TABLE",
            C::Administration => "administration",
            C::Empty | C::Query | C::Session | C::Refused => "other statements that are no reads",
        }),
    }
}

fn of_query(query: &Query, facts: &StatementFacts, text: &str, mode: SqlMode) -> Decision {
    if facts.locks_rows {
        return Decision::Skip("locking reads");
    }
    if facts.calls_unknown {
        return Decision::Skip("calls of functions that are not MySQL's own");
    }
    if facts.waits || facts.changes.intersects(S::NAMED_LOCKS | S::LAST_INSERT_ID) {
        return Decision::Skip("functions with an effect: SLEEP, GET_LOCK, LAST_INSERT_ID(n)");
    }
    if facts.changes.contains(S::USER_VARIABLES) {
        return Decision::SkipLeaving("SELECT @variable := …", Left::UserVariables);
    }
    if !facts.reads_only() {
        return Decision::Skip("other statements that are no reads");
    }
    let of_before = S::LAST_INSERT_ID | S::ROW_COUNT | S::FOUND_ROWS | S::CONDITIONS | S::NAMED_LOCKS;
    if facts.needs.intersects(of_before) {
        return Decision::Skip("what asks about the statement before: FOUND_ROWS(), LAST_INSERT_ID()");
    }
    let mut shape = Shape {
        picks: facts.picks,
        deterministic: facts.deterministic,
        clock: facts.needs.contains(S::CLOCK),
        reads_server: facts.asks_version || facts.needs.intersects(S::VARIABLES | S::IDENTITY),
        needs_user_variables: facts.needs.contains(S::USER_VARIABLES),
        catalog: catalog_of(facts),
        ..Shape::default()
    };
    let unqualified = facts.reads.iter().filter(|table| table.database.is_none());
    shape.tables = unqualified.map(|table| table.table.to_lowercase()).collect();
    order_and_limit(query, text, &mut shape);
    let select = query.first_select();
    shape.groups = select.is_none_or(|select| select.distinct || !select.group_by.is_empty())
        || matches!(query.body, QueryBody::SetOperation { .. })
        || facts.picks;
    // Without the mode, columns that are not grouped by are of any row.
    shape.picks |= shape.groups && !mode.has(SqlMode::ONLY_FULL_GROUP_BY);
    Decision::Replay(Box::new(shape))
}

/// Columns of `information_schema` that are about storage and times.
const VOLATILE: [&str; 21] = [
    "engine",
    "version",
    "row_format",
    "table_rows",
    "avg_row_length",
    "data_length",
    "max_data_length",
    "index_length",
    "data_free",
    "auto_increment",
    "create_time",
    "update_time",
    "check_time",
    "checksum",
    "cardinality",
    "create_options",
    "last_altered",
    "created",
    "time",
    "state",
    "id",
];
/// Its tables that are about names and types.
const DEFINING: [&str; 14] = [
    "schemata",
    "tables",
    "columns",
    "statistics",
    "key_column_usage",
    "table_constraints",
    "referential_constraints",
    "check_constraints",
    "views",
    "partitions",
    "collations",
    "character_sets",
    "collation_character_set_applicability",
    "keywords",
];

fn catalog_of(facts: &StatementFacts) -> Catalog {
    let mut found = Catalog::None;
    let volatile = |column: &ColumnUse| match &column.column {
        None => true,
        Some(name) => VOLATILE.iter().any(|known| name.eq_ignore_ascii_case(known)),
    };
    for table in &facts.reads {
        let database = table.database.as_deref().unwrap_or_default().to_ascii_lowercase();
        match database.as_str() {
            "information_schema" => {
                let defining = DEFINING.iter().any(|known| table.table.eq_ignore_ascii_case(known));
                if !defining || facts.columns.iter().any(volatile) {
                    return Catalog::Server;
                }
                found = Catalog::Definitions;
            }
            "mysql" | "performance_schema" | "sys" => return Catalog::Server,
            _ => {}
        }
    }
    found
}

fn definitions() -> Shape {
    Shape { deterministic: true, catalog: Catalog::Definitions, ..Shape::default() }
}

fn of_show(show: &Show) -> Decision {
    let shape = match &show.kind {
        ShowKind::Tables { .. }
        | ShowKind::Columns { .. }
        | ShowKind::CreateTable(_)
        | ShowKind::CreateView(_)
        | ShowKind::CreateDatabase { .. } => definitions(),
        // With databases that are no replicas' and numbers that are estimates.
        ShowKind::Databases
        | ShowKind::TableStatus { .. }
        | ShowKind::Indexes { .. }
        | ShowKind::Charset
        | ShowKind::Collation
        | ShowKind::Triggers { .. }
        | ShowKind::Events { .. } => Shape { catalog: Catalog::Server, ..definitions() },
        _ => return Decision::Skip("SHOW of the server's own state"),
    };
    Decision::Replay(Box::new(shape))
}

fn of_set(items: &[SetItem], facts: &StatementFacts) -> Decision {
    if facts.class != C::Session {
        return Decision::Skip("SET of global variables");
    }
    if facts.locks_rows || facts.calls_unknown || facts.waits || !facts.writes.is_empty() {
        return Decision::Skip("other statements that are no reads");
    }
    let mut settings = Vec::new();
    for item in items {
        let setting = match item {
            SetItem::UserVariable { name, .. } => {
                Setting::Variable { name: format!("@{}", name.to_lowercase()), sets_clock: None, mode: None }
            }
            SetItem::Names { .. } | SetItem::CharacterSet(_) => {
                Setting::Variable { name: "names".into(), sets_clock: None, mode: None }
            }
            SetItem::Transaction { .. } => continue,
            SetItem::Variable { scope, name, value } => match (scope, name.as_str()) {
                (VariableScope::Global | VariableScope::Persist | VariableScope::PersistOnly, _) => {
                    return Decision::Skip("SET of global variables");
                }
                // Replayed reads are each for themselves.
                (
                    _,
                    "autocommit"
                    | "transaction_isolation"
                    | "tx_isolation"
                    | "transaction_read_only"
                    | "tx_read_only"
                    | "completion_type",
                ) => continue,
                // What writes, or hides it, is not of reads.
                (
                    _,
                    "sql_log_bin"
                    | "gtid_next"
                    | "pseudo_thread_id"
                    | "pseudo_replica_mode"
                    | "pseudo_slave_mode"
                    | "sql_log_off"
                    | "binlog_format"
                    | "insert_id"
                    | "last_insert_id"
                    | "identity",
                ) => continue,
                (_, "timestamp") => {
                    let is_own =
                        !matches!(value.as_ref().map(|v| &v.kind), None | Some(ExprKind::Integer(0)));
                    Setting::Variable { name: name.clone(), sets_clock: Some(is_own), mode: None }
                }
                (_, "sql_mode") => Setting::Variable {
                    name: name.clone(),
                    sets_clock: None,
                    mode: value.as_ref().and_then(mode_of),
                },
                _ => Setting::Variable { name: name.clone(), sets_clock: None, mode: None },
            },
        };
        settings.push(setting);
    }
    if settings.is_empty() {
        return Decision::Skip("SET of what has to do with transactions and writes");
    }
    if settings.len() < items.len() {
        settings.push(Setting::Mixed);
    }
    Decision::Session(settings)
}

/// The mode that a literal names; `None` for what only the source knows: DEFAULT, expressions and numbers.
fn mode_of(value: &Expr) -> Option<SqlMode> {
    match &value.kind {
        ExprKind::String { value, .. } => Some(mode_named(value)),
        _ => None,
    }
}

/// The flags of a value of `sql_mode` that change how text is read.
pub fn mode_named(names: &str) -> SqlMode {
    let mut mode = SqlMode(0);
    for flag in names.split(',') {
        mode = match flag.trim().to_ascii_uppercase().as_str() {
            // The others are a MariaDB's.
            "ANSI" | "DB2" | "MAXDB" | "MSSQL" | "ORACLE" | "POSTGRESQL" => {
                mode.with(SqlMode::ANSI_QUOTES).with(SqlMode::PIPES_AS_CONCAT).with(SqlMode::IGNORE_SPACE)
            }
            "ANSI_QUOTES" => mode.with(SqlMode::ANSI_QUOTES),
            "PIPES_AS_CONCAT" => mode.with(SqlMode::PIPES_AS_CONCAT),
            "NO_BACKSLASH_ESCAPES" => mode.with(SqlMode::NO_BACKSLASH_ESCAPES),
            "HIGH_NOT_PRECEDENCE" => mode.with(SqlMode::HIGH_NOT_PRECEDENCE),
            "IGNORE_SPACE" => mode.with(SqlMode::IGNORE_SPACE),
            "ONLY_FULL_GROUP_BY" => mode.with(SqlMode::ONLY_FULL_GROUP_BY),
            _ => mode,
        };
    }
    mode
}

/// The ORDER BY and LIMIT that hold of all of a query: those of the innermost parentheses around it.
fn order_and_limit(query: &Query, text: &str, shape: &mut Shape) {
    if let (QueryBody::Parenthesized(inner), [], None) =
        (&query.body, query.order_by.as_slice(), &query.limit)
    {
        return order_and_limit(inner, text, shape);
    }
    let select = match &query.body {
        QueryBody::Select(select) => Some(&**select),
        _ => None,
    };
    let keys = query.order_by.iter().map_while(|item| key_of(item, select, text));
    shape.order = keys.collect();
    if let Some(limit) = &query.limit {
        shape.limit = bounds_of(limit);
        shape.odd_limit = shape.limit.is_none();
    }
}

fn bounds_of(limit: &Limit) -> Option<Bounds> {
    let literal = |expr: &Expr| match expr.kind {
        ExprKind::Integer(value) => Some((value, expr.span.start as usize, expr.span.end as usize)),
        _ => None,
    };
    let offset = match &limit.offset {
        Some(offset) => Some(literal(offset)?),
        None => None,
    };
    Some(Bounds { count: literal(&limit.count)?, offset })
}

fn key_of(item: &OrderItem, select: Option<&Select>, text: &str) -> Option<Key> {
    let words = |expr: &Expr| -> String {
        let text = expr.span.text(text.as_bytes()).to_lowercase();
        text.split_whitespace().collect()
    };
    let items = select.map(|select| select.items.as_slice()).unwrap_or_default();
    let has_wildcard = items.iter().any(|item| matches!(item, SelectItem::Wildcard { .. }));
    match &item.expr.kind {
        ExprKind::Integer(at) if !has_wildcard => Some(Key::At(usize::try_from(*at).ok()?.checked_sub(1)?)),
        // An alias comes before a column of the same name.
        ExprKind::Column { table: None, column, .. } => Some(Key::Named(column.name.to_lowercase())),
        _ if has_wildcard => None,
        _ => {
            let wanted = words(&item.expr);
            let is_it =
                |item: &SelectItem| matches!(item, SelectItem::Expr { expr, .. } if words(expr) == wanted);
            items.iter().position(is_it).map(Key::At)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Decision {
        decide(text, SqlMode::DEFAULT, false)
    }

    fn shape(text: &str) -> Shape {
        match of(text) {
            Decision::Replay(shape) => *shape,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn only_reads_are_replayed() {
        for text in [
            "SELECT 1",
            "WITH c AS (SELECT 1) SELECT * FROM c",
            "TABLE t",
            "SHOW TABLES",
            "DESC t",
            "VALUES ROW(1)",
        ] {
            assert!(matches!(of(text), Decision::Replay(_)), "{text}");
        }
        for text in [
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            "SELECT a FROM (SELECT a FROM t FOR SHARE) x",
            "SELECT GET_LOCK('a', 1)",
            "SELECT SLEEP(1) FROM t",
            "SELECT own_function(a) FROM t",
            "SELECT LAST_INSERT_ID(5)",
            "SELECT FOUND_ROWS()",
            "SELECT a FROM t INTO OUTFILE '/tmp/a'",
            "INSERT INTO t VALUES (1)",
            "DO 1",
            "SHOW PROCESSLIST",
            "SET GLOBAL sort_buffer_size = 1",
            "SET autocommit = 0",
            "EXPLAIN SELECT 1",
        ] {
            assert!(matches!(of(text), Decision::Skip(_)), "{text}: {:?}", of(text));
        }
        assert!(matches!(of("SELECT a INTO @x FROM t"), Decision::SkipLeaving(_, Left::UserVariables)));
        assert!(matches!(of("SELECT @x := a FROM t"), Decision::SkipLeaving(_, Left::UserVariables)));
        let left = Left::Temporary("x".into());
        assert!(matches!(of("CREATE TEMPORARY TABLE X (a INT)"), Decision::SkipLeaving(_, l) if l == left));
        assert!(matches!(of("SELEC 1"), Decision::Unread(_)));
        assert!(matches!(of("/* FOR UPDATE */ SELECT 'SLEEP(1)'"), Decision::Replay(_)));
    }

    #[test]
    fn sessions_are_followed() {
        let Decision::Session(settings) = of("SET sql_mode = 'ansi_quotes', @a = 1") else { panic!() };
        assert!(
            matches!(&settings[0], Setting::Variable { mode: Some(mode), .. } if mode.has(SqlMode::ANSI_QUOTES))
        );
        assert!(matches!(&settings[1], Setting::Variable { name, .. } if name == "@a"));
        assert_eq!(of("USE shop"), Decision::Session(vec![Setting::Database("shop".into())]));
        let prepare = "PREPARE p FROM 'SELECT 1'";
        assert!(matches!(of(prepare), Decision::Session(_)));
        assert!(matches!(decide(prepare, SqlMode::DEFAULT, true), Decision::Skip(_)));
        assert!(matches!(decide("PREPARE p FROM ...", SqlMode::DEFAULT, true), Decision::Skip(_)));
        assert_eq!(of("EXECUTE p"), Decision::Execute("p".into()));
    }

    #[test]
    fn what_orders_rows_is_found_in_the_output() {
        let named = |name: &str| Key::Named(name.into());
        assert_eq!(shape("SELECT a, b FROM t ORDER BY B, 1").order, [named("b"), Key::At(0)]);
        assert_eq!(shape("SELECT a, SUM( x ) FROM t GROUP BY a ORDER BY sum(x) DESC").order, [Key::At(1)]);
        assert_eq!(shape("SELECT a FROM t ORDER BY a, b + 1, a").order, [named("a")]);
        assert_eq!(shape("SELECT t.a, u.b FROM t, u ORDER BY u.b").order, [Key::At(1)]);
        assert_eq!(shape("SELECT a AS b FROM t ORDER BY t.b").order, []);
        assert_eq!(shape("(SELECT a FROM t ORDER BY a LIMIT 2)").order, [named("a")]);
        let limit = shape("SELECT a FROM t LIMIT 3 OFFSET 5").limit.expect("it has one");
        assert_eq!((limit.count.0, limit.offset.map(|o| o.0)), (3, Some(5)));
        assert!(shape("SELECT a FROM t WHERE b < NOW()").clock);
        assert!(!shape("SELECT RAND()").deterministic);
    }

    #[test]
    fn catalogs_are_told_apart() {
        let catalog = |text| shape(text).catalog;
        assert_eq!(catalog("SELECT table_name FROM information_schema.tables"), Catalog::Definitions);
        assert_eq!(catalog("SELECT table_rows FROM information_schema.tables"), Catalog::Server);
        assert_eq!(catalog("SELECT user FROM mysql.user"), Catalog::Server);
        assert_eq!(catalog("SELECT a FROM t"), Catalog::None);
    }
}
