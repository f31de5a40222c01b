//! How many arguments functions take that are rules of MySQL's grammar: any other number is error 1064, and not 1582.

pub(super) const MANY: usize = usize::MAX;

/// Functions that are rules of MySQL's grammar (`sql_yacc.yy`), and how many arguments these take. Others count theirs when they are
/// bound, and answer 1582.
const ARITIES: &[(&[&str], usize, usize)] = &[
    (
        &[
            "CURDATE",
            "CURRENT_DATE",
            "CURRENT_USER",
            "DATABASE",
            "ROW_COUNT",
            "SCHEMA",
            "SESSION_USER",
            "SYSTEM_USER",
            "USER",
            "UTC_DATE",
        ],
        0,
        0,
    ),
    (
        &[
            "CURRENT_TIME",
            "CURRENT_TIMESTAMP",
            "CURTIME",
            "LOCALTIME",
            "LOCALTIMESTAMP",
            "NOW",
            "SYSDATE",
            "UTC_TIME",
            "UTC_TIMESTAMP",
        ],
        0,
        1,
    ),
    (
        &[
            "ASCII",
            "CHARSET",
            "COLLATION",
            "DATE",
            "DAY",
            "HOUR",
            "MICROSECOND",
            "MINUTE",
            "MONTH",
            "QUARTER",
            "REVERSE",
            "SECOND",
            "TIME",
            "YEAR",
        ],
        1,
        1,
    ),
    (&["LOG", "TIMESTAMP", "WEEK"], 1, 2),
    (
        &["COALESCE", "GROUPING", "LINESTRING", "MULTILINESTRING", "MULTIPOINT", "MULTIPOLYGON", "POLYGON"],
        1,
        MANY,
    ),
    (&["LEFT", "MOD", "POINT", "REPEAT", "RIGHT", "TRUNCATE"], 2, 2),
    (&["FORMAT"], 2, 3),
    (&["IF", "REPLACE"], 3, 3),
    (&["INSERT"], 4, 4),
];

/// The least and the most arguments of a function, if it is such a rule.
pub(super) fn arity(name: &str) -> Option<(usize, usize)> {
    let rule = ARITIES.iter().find(|(names, ..)| names.contains(&name));
    rule.map(|(_, least, most)| (*least, *most))
}
