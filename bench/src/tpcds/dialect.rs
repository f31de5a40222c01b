//! TPC-DS's queries from DuckDB's dialect into MySQL's.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Names in double quotes, and strings that `||` joins.
pub const SESSION: &str = "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES,PIPES_AS_CONCAT')";

/// Those with a FULL OUTER JOIN, which MySQL does not have.
const WRITTEN_ANEW: [(usize, &str); 2] =
    [(51, include_str!("../../queries/tpcds/q51.sql")), (97, include_str!("../../queries/tpcds/q97.sql"))];

/// What is written otherwise, in this order.
static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        // MySQL has no words for where NULLs come: without DESC they are first, and where there is DESC no row is NULL or no LIMIT
        // makes the order matter.
        (r"(?i)\s+NULLS\s+FIRST", ""),
        (r"(?i)\bROLLUP\s*\(([^()]*)\)", "$1 WITH ROLLUP"),
        (r"(?i)\bINTERVAL\s+(\d+)\s+days?\b", "INTERVAL $1 DAY"),
        (r"(?i)::date\b", ""),
        // Q49 names a derived table in capitals and uses the name in small letters; MySQL compares names of tables byte by byte.
        (r"\) (AS )?CATALOG\b", ") ${1}catalog"),
    ];
    rules.map(|(pattern, with)| (Regex::new(pattern).expect("the pattern is right"), with)).to_vec()
});

/// The type's name at the end of a CAST.
static CAST_TO_INTEGER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\bAS\s+(int|integer|bigint)\s*\)").expect("the pattern is right"));

/// A query in MySQL's dialect.
pub fn mysql(number: usize, sql: &str) -> String {
    if let Some((_, written)) = WRITTEN_ANEW.iter().find(|(anew, _)| *anew == number) {
        return (*written).to_owned();
    }
    let sql = sql.trim().trim_end_matches(';').to_owned();
    let sql = RULES.iter().fold(sql, |sql, (rule, with)| rule.replace_all(&sql, *with).into_owned());
    CAST_TO_INTEGER.replace_all(&sql, |_: &Captures<'_>| "AS SIGNED)").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_mysql_does_not_have() {
        assert_eq!(
            mysql(
                1,
                "SELECT a, CAST(b / 2 AS integer) FROM t GROUP BY ROLLUP (a , b) ORDER BY a NULLS FIRST, b DESC NULLS FIRST;"
            ),
            "SELECT a, CAST(b / 2 AS SIGNED) FROM t GROUP BY a , b WITH ROLLUP ORDER BY a, b DESC"
        );
        assert_eq!(mysql(1, "d + INTERVAL 30 days, e::date"), "d + INTERVAL 30 DAY, e");
        assert_eq!(
            mysql(1, "FROM (SELECT 1 AS a) CATALOG WHERE catalog.a"),
            "FROM (SELECT 1 AS a) catalog WHERE catalog.a"
        );
        assert_eq!(mysql(1, "FROM (SELECT 1 AS a) AS CATALOG"), "FROM (SELECT 1 AS a) AS catalog");
    }
}
