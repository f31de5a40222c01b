//! What queries bind to: the names and types of their outputs, and the errors that MySQL gives.

use avocet_types::error::SqlError;
use avocet_types::expr::SqlMode;
use avocet_types::{Collation, SqlType};

use crate::bind::bind_query;
use crate::parse::{self, StatementKind};
use crate::plan::{BoundQuery, From, QueryBody};
use crate::testing::Memory;

fn catalog() -> Memory {
    let mut memory = Memory::default();
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), d DECIMAL(10,2) NOT NULL, day DATE)",
        "CREATE TABLE u (id INT PRIMARY KEY, t_id INT NOT NULL, a BIGINT, x DOUBLE)",
    ] {
        memory.create(sql, Collation::DEFAULT, Vec::new());
    }
    memory
}

fn bind(sql: &str) -> Result<BoundQuery, SqlError> {
    let statements = parse::parse(sql.as_bytes(), SqlMode::DEFAULT)?;
    let query = match &statements[0].kind {
        StatementKind::Query(query) => query,
        StatementKind::Refused(error) => return Err((**error).clone()),
        _ => panic!("{sql}: no query"),
    };
    bind_query(query, sql.as_bytes(), &catalog(), &[])
}

fn type_name(ty: &SqlType) -> String {
    match *ty {
        SqlType::Int { unsigned, .. } if *ty == SqlType::BIGINT || unsigned => {
            if unsigned {
                "bigint unsigned".into()
            } else {
                "bigint".into()
            }
        }
        SqlType::Int { .. } => "int".into(),
        SqlType::Decimal { precision, scale, .. } => format!("decimal({precision},{scale})"),
        SqlType::VarChar { len, .. } => format!("varchar({len})"),
        SqlType::DateTime { fsp } => format!("datetime({fsp})"),
        real @ (SqlType::Float(_) | SqlType::Double(_)) => real.to_string(),
        other => format!("{other:?}").split(' ').next().unwrap_or_default().to_lowercase(),
    }
}

/// `name type` of each output, with `?` after the type if it can be NULL.
fn outputs(sql: &str) -> String {
    let bound = bind(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let show = |c: &crate::plan::ColumnInfo| {
        format!("{} {}{}", c.name, type_name(&c.ty), if c.nullable { "?" } else { "" })
    };
    bound.output().map(show).collect::<Vec<_>>().join(", ")
}

#[test]
fn outputs_have_mysqls_names_and_types() {
    let cases = [
        ("SELECT * FROM t", "id int, a int?, b varchar(10)?, d decimal(10,2), day date?"),
        ("SELECT A, t.B, test.t.d AS x FROM t", "A int?, B varchar(10)?, x decimal(10,2)"),
        (
            "SELECT a+1, 'x', 1.50, COUNT( * ) FROM t GROUP BY a",
            "a+1 bigint?, x varchar(1), 1.50 decimal(3,2), COUNT( * ) bigint",
        ),
        (
            "SELECT SUM(a), AVG(a), SUM(d), AVG(d), MIN(b) FROM t",
            "SUM(a) decimal(32,0)?, AVG(a) decimal(14,4)?, SUM(d) decimal(32,2)?, AVG(d) decimal(14,6)?, MIN(b) varchar(10)?",
        ),
        (
            "SELECT SUM(x), STDDEV(a), BIT_AND(a), GROUP_CONCAT(b) FROM t JOIN u USING (id, a)",
            "SUM(x) double?, STDDEV(a) double?, BIT_AND(a) bigint unsigned, GROUP_CONCAT(b) text?",
        ),
        ("SELECT t.id, u.id FROM t LEFT JOIN u ON u.t_id = t.id", "id int, id int?"),
        (
            "SELECT * FROM t JOIN u USING (id) LIMIT 1",
            "id int, a int?, b varchar(10)?, d decimal(10,2), day date?, t_id int, a bigint?, x double?",
        ),
        ("SELECT * FROM (SELECT id AS k, d FROM t) s (m, n)", "m int, n decimal(10,2)"),
        ("SELECT a FROM t UNION SELECT 'x'", "a varchar(11)?"),
        ("SELECT id FROM t UNION ALL SELECT a FROM u", "id bigint?"),
        ("VALUES ROW(1.5, 'a'), ROW(2.5, NULL)", "column_0 decimal(2,1), column_1 varchar(1)?"),
        (
            "SELECT (SELECT MAX(id) FROM u), EXISTS (SELECT 1), a IN (SELECT a FROM u) FROM t",
            "(SELECT MAX(id) FROM u) int?, EXISTS (SELECT 1) bigint, a IN (SELECT a FROM u) bigint?",
        ),
        (
            "SELECT ROW_NUMBER() OVER (ORDER BY id) AS r, LAG(d) OVER (ORDER BY id) AS l FROM t",
            "r bigint unsigned, l decimal(10,2)?",
        ),
        ("WITH c (p) AS (SELECT d FROM t) SELECT p FROM c", "p decimal(10,2)"),
        ("SELECT @@version_comment", "@@version_comment varchar(6)"),
    ];
    for (sql, expected) in cases {
        assert_eq!(outputs(sql), expected, "{sql}");
    }
}

#[test]
fn names_that_fit_bind() {
    for sql in [
        "SELECT a AS z FROM t GROUP BY z HAVING z > 1 ORDER BY z",
        "SELECT id, b FROM t GROUP BY id",
        "SELECT t.b FROM t JOIN u ON u.t_id = t.id GROUP BY u.id",
        "SELECT b, COUNT(*) FROM t WHERE b = 'x' AND id = 3",
        "SELECT a + 1 FROM t GROUP BY a + 1 ORDER BY a + 1",
        "SELECT 2, a FROM t GROUP BY 2",
        "SELECT a FROM t ORDER BY b",
        "SELECT MAX(a) FROM t HAVING MAX(a) > 1 ORDER BY SUM(d)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id AND u.a > t.a)",
        "SELECT a, SUM(d) FROM t GROUP BY a HAVING SUM(d) > (SELECT COUNT(*) FROM u WHERE u.a = t.a)",
        "SELECT SUM(COUNT(*)) OVER (ORDER BY a) FROM t GROUP BY a",
        "SELECT s.m FROM t, LATERAL (SELECT MAX(u.a) AS m FROM u WHERE u.t_id = t.id) s",
        "SELECT 1 FROM t x, t y WHERE x.id = y.id",
        "SELECT * FROM t WHERE (id, a) IN ((1, 2), (3, 4)) AND (id, a) > (1, 2)",
    ] {
        if let Err(error) = bind(sql) {
            panic!("{sql}: {error}");
        }
    }
}

#[test]
fn errors_are_mysqls() {
    let cases = [
        ("SELECT z FROM t", "1054 Unknown column 'z' in 'field list'"),
        ("SELECT a FROM t WHERE t.z = 1", "1054 Unknown column 't.z' in 'where clause'"),
        ("SELECT a AS z FROM t WHERE z = 1", "1054 Unknown column 'z' in 'where clause'"),
        ("SELECT a FROM t ORDER BY 9", "1054 Unknown column '9' in 'order clause'"),
        ("SELECT a FROM t, u", "1052 Column 'a' in field list is ambiguous"),
        ("SELECT 1 FROM nothing", "1146 Table 'test.nothing' doesn't exist"),
        ("SELECT 1 FROM nowhere.t", "1049 Unknown database 'nowhere'"),
        ("SELECT 1 FROM t, t", "1066 Not unique table/alias: 't'"),
        ("SELECT 1 FROM (SELECT 1)", "1248 Every derived table must have its own alias"),
        ("SELECT * FROM (SELECT 1 AS a, 2 AS a) s", "1060 Duplicate column name 'a'"),
        ("SELECT x.* FROM t", "1051 Unknown table 'x'"),
        ("SELECT *", "1096 No tables used"),
        ("SELECT a FROM t WHERE SUM(a) > 1", "1111 Invalid use of group function"),
        ("SELECT SUM(SUM(a)) FROM t", "1111 Invalid use of group function"),
        ("SELECT id UNION SELECT 1, 2", "1054 Unknown column 'id' in 'field list'"),
        ("SELECT 1 UNION SELECT 1, 2", "1222 The used SELECT statements have a different number of columns"),
        ("SELECT (SELECT 1, 2)", "1241 Operand should contain 1 column(s)"),
        ("SELECT 1 IN (SELECT 1, 2)", "1241 Operand should contain 1 column(s)"),
        ("SELECT nope(1)", "1305 FUNCTION test.nope does not exist"),
        ("SELECT ABS()", "1582 Incorrect parameter count in the call to native function 'ABS'"),
        ("SELECT SUM(a) OVER w FROM t", "3579 Window name 'w' is not defined."),
        ("SELECT a COLLATE nope FROM t", "1273 Unknown collation: 'nope'"),
        ("SELECT 1 FROM t JOIN u USING (z)", "1054 Unknown column 'z' in 'on clause'"),
        ("SELECT 1 FROM u, t JOIN u v ON u.id = t.id", "1054 Unknown column 'u.id' in 'on clause'"),
    ];
    for (sql, expected) in cases {
        let error = bind(sql).expect_err(sql);
        assert_eq!(format!("{} {}", error.errno, error.message), expected, "{sql}");
    }
    for (sql, errno) in [
        ("SELECT a, b FROM t GROUP BY a", 1055),
        ("SELECT a, COUNT(*) FROM t", 1140),
        ("SELECT a FROM t GROUP BY a HAVING b > 1", 1054),
        ("SELECT DISTINCT a FROM t ORDER BY b", 3065),
        ("SELECT a, COUNT(*) c FROM t GROUP BY c", 1056),
        ("SELECT a, COUNT(*) FROM t GROUP BY a, b, a WITH ROLLUP", 1235),
    ] {
        assert_eq!(bind(sql).expect_err(sql).errno, errno, "{sql}");
    }
}

#[test]
fn parameters_take_their_types_from_the_context() {
    let bound =
        bind("SELECT a FROM t WHERE id = ? AND b LIKE ? AND d BETWEEN ? AND 5 LIMIT ?").expect("binds");
    let types: Vec<_> = bound.params.iter().map(type_name).collect();
    assert_eq!(types, ["int", "varchar(16383)", "decimal(10,2)", "bigint unsigned"]);
}

#[test]
fn scans_read_what_is_used() {
    let bound = bind("SELECT t.a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id)").expect("binds");
    let QueryBody::Select(select) = &bound.body.body else { panic!("no block") };
    let From::Table(scan) = &select.from else { panic!("no scan") };
    let used: Vec<_> = scan.columns.iter().map(|(position, _)| *position).collect();
    assert_eq!(used, [0, 1]);
    assert_eq!(select.subqueries[0].outer.len(), 1);
}

#[test]
fn a_select_list_has_no_more_columns_than_a_table() {
    let stars = |count: usize| format!("SELECT {} FROM t", vec!["t.*"; count].join(","));
    assert_eq!(bind(&stars(819)).map(|bound| bound.output().count()).ok(), Some(4_095));
    assert_eq!(bind(&stars(820)).map(|_| ()).map_err(|error| error.errno), Err(1117));
}
