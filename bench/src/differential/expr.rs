//! Random expressions over what a query reads, from tables of templates: one for each kind of result.
//!
//! In a template `{n}` stands for a number, `{s}` a text, `{b}` bytes, `{t}` a date or moment, `{d}` a time, `{c}` a condition,
//! `{a}` anything of these, `{i}` a small whole number, `{I}` one from 0, `{f}` a date format, `{p}` a pattern of LIKE, `{r}` one of
//! REGEXP, `{u}` a unit, `{U}` a unit of two parts, `{o}` a comparison, `{C}` a collation.

use super::schema::{self, Kind, Source, pick};
use super::tree::Tree;
use crate::random::Random;

const NUMBERS: &[&str] = &[
    "({n} + {n})",
    "({n} - {n})",
    "({n} * {n})",
    "({n} / {n})",
    "({n} DIV {n})",
    "({n} % {n})",
    "({n} + {n})",
    "({n} - {n})",
    "({n} * {n})",
    "(-{n})",
    "({n} + {s})",
    "({n} * {t})",
    "({d} + {n})",
    "({n} & {n})",
    "({n} | {n})",
    "({n} ^ {n})",
    "({n} << {I})",
    "({n} >> {I})",
    "(~{n})",
    "CAST({a} AS SIGNED)",
    "CAST({a} AS UNSIGNED)",
    "CAST({a} AS DECIMAL(10,2))",
    "CAST({a} AS DECIMAL(5,0))",
    "CAST({a} AS DECIMAL(30,10))",
    "CAST({a} AS DOUBLE)",
    "CAST({a} AS FLOAT)",
    "CAST({n} AS YEAR)",
    "IF({c}, {n}, {n})",
    "CASE WHEN {c} THEN {n} ELSE {n} END",
    "CASE {a} WHEN {a} THEN {n} WHEN {a} THEN {n} END",
    "CASE {n} WHEN {n} THEN {n} ELSE {n} END",
    "IFNULL({n}, {n})",
    "NULLIF({n}, {n})",
    "COALESCE({n}, {n}, {n})",
    "GREATEST({n}, {n})",
    "LEAST({n}, {n}, {n})",
    "INTERVAL({n}, {n}, {n})",
    "ABS({n})",
    "SIGN({n})",
    "FLOOR({n})",
    "CEILING({n})",
    "ROUND({n})",
    "ROUND({n}, {i})",
    "ROUND({n}, {n})",
    "TRUNCATE({n}, {i})",
    "MOD({n}, {n})",
    "POW({n}, {i})",
    "SQRT({n})",
    "EXP({i})",
    "LN({n})",
    "LOG({n})",
    "LOG(2, {n})",
    "LOG2({n})",
    "LOG10({n})",
    "SIN({n})",
    "COS({n})",
    "TAN({n})",
    "COT({n})",
    "ASIN({n})",
    "ACOS({n})",
    "ATAN({n})",
    "ATAN2({n}, {n})",
    "DEGREES({n})",
    "RADIANS({n})",
    "CRC32({s})",
    "BIT_COUNT({n})",
    "LENGTH({s})",
    "LENGTH({a})",
    "CHAR_LENGTH({s})",
    "BIT_LENGTH({s})",
    "ASCII({s})",
    "ORD({s})",
    "INSTR({s}, {s})",
    "LOCATE({s}, {s})",
    "LOCATE({s}, {s}, {i})",
    "STRCMP({s}, {s})",
    "FIELD({s}, {s}, {s})",
    "FIELD({n}, {n}, {n})",
    "FIELD({a}, {a}, {a})",
    "FIND_IN_SET({s}, {s})",
    "YEAR({t})",
    "QUARTER({t})",
    "MONTH({t})",
    "DAYOFMONTH({t})",
    "DAYOFWEEK({t})",
    "DAYOFYEAR({t})",
    "WEEK({t})",
    "WEEK({t}, {I})",
    "WEEKOFYEAR({t})",
    "YEARWEEK({t})",
    "YEARWEEK({t}, {I})",
    "WEEKDAY({t})",
    "HOUR({d})",
    "MINUTE({d})",
    "SECOND({t})",
    "MICROSECOND({t})",
    "HOUR({t})",
    "TO_DAYS({t})",
    "TO_SECONDS({t})",
    "TIME_TO_SEC({d})",
    "DATEDIFF({t}, {t})",
    "TIMESTAMPDIFF({u}, {t}, {t})",
    "EXTRACT({u} FROM {t})",
    "EXTRACT({U} FROM {t})",
    "UNIX_TIMESTAMP({t})",
    "PERIOD_ADD(202402, {i})",
    "PERIOD_DIFF(202402, 199912)",
    "YEAR({s})",
    "MONTH({s})",
    "TO_DAYS({s})",
    "({c} + {n})",
    "REGEXP_INSTR({s}, {r})",
    "ISNULL({a})",
    "({t} + 0)",
    "({d} + 0)",
    "({b} + 0)",
    "({n} XOR {n})",
];

const TEXTS: &[&str] = &[
    "CONCAT({a}, {s})",
    "CONCAT({s}, {n})",
    "CONCAT({n})",
    "CONCAT_WS(',', {s}, {a}, {s})",
    "CONCAT_WS({s}, {s}, {s})",
    "UPPER({s})",
    "LOWER({s})",
    "TRIM({s})",
    "LTRIM({s})",
    "RTRIM({s})",
    "TRIM(LEADING 'a' FROM {s})",
    "TRIM(BOTH {s} FROM {s})",
    "TRIM(TRAILING 'b' FROM {s})",
    "REVERSE({s})",
    "HEX({s})",
    "HEX({n})",
    "HEX({b})",
    "HEX({a})",
    "QUOTE({s})",
    "SUBSTRING({s}, {i})",
    "SUBSTRING({s}, {i}, {i})",
    "SUBSTRING({s}, {n}, {i})",
    "LEFT({s}, {i})",
    "RIGHT({s}, {i})",
    "REPEAT({s}, {i})",
    "SPACE({i})",
    "LPAD({s}, {i}, {s})",
    "RPAD({s}, {i}, 'xy')",
    "LPAD({n}, 8, '0')",
    "REPLACE({s}, {s}, {s})",
    "REPLACE({s}, 'a', 'Zz')",
    "CAST({a} AS CHAR)",
    "CAST({a} AS CHAR(3))",
    "CAST({n} AS CHAR)",
    "CONVERT({s} USING utf8mb4)",
    "({s} COLLATE {C})",
    "DATE_FORMAT({t}, {f})",
    "TIME_FORMAT({d}, '%H %k %h %I %l %i %s %f %p %r %T')",
    "IF({c}, {s}, {s})",
    "IF({c}, {s}, {n})",
    "CASE WHEN {c} THEN {s} ELSE {s} END",
    "CASE WHEN {c} THEN {s} WHEN {c} THEN {a} END",
    "CASE {s} WHEN {s} THEN {s} ELSE {s} END",
    "COALESCE({s}, {s})",
    "COALESCE({a}, {s})",
    "IFNULL({s}, {s})",
    "IFNULL({a}, {a})",
    "NULLIF({s}, {s})",
    "NULLIF({a}, {a})",
    "GREATEST({s}, {s})",
    "LEAST({s}, {s}, {s})",
    "GREATEST({s}, {n})",
    "ELT({i}, {s}, {s})",
    "DAYNAME({t})",
    "MONTHNAME({t})",
    "FORMAT({n}, {I})",
    "BIN({n})",
    "OCT({n})",
    "CONV({s}, 16, 10)",
    "CONV({n}, 10, 16)",
    "CONV({s}, 36, {i})",
    "SUBSTRING_INDEX({s}, {s}, {i})",
    "SUBSTRING_INDEX({s}, 'a', {i})",
    "INSERT({s}, {i}, {i}, {s})",
    "SHA2({s}, 256)",
    "TO_BASE64({s})",
    "REGEXP_SUBSTR({s}, {r})",
    "REGEXP_REPLACE({s}, {r}, 'X')",
    "FROM_UNIXTIME({n}, '%Y-%m-%d')",
    "CHAR({i} USING utf8mb4)",
    "COLLATION({s})",
    "CHARSET({a})",
    "CONCAT({t}, {d})",
    "CONCAT({b}, {s})",
    "(SELECT {s})",
];

const BYTES: &[&str] = &[
    "CAST({s} AS BINARY)",
    "CAST({s} AS BINARY(4))",
    "CAST({n} AS BINARY)",
    "UNHEX({s})",
    "UNHEX(HEX({b}))",
    "FROM_BASE64({s})",
    "FROM_BASE64(TO_BASE64({b}))",
    "CONCAT({b}, {b})",
    "LEFT({b}, {i})",
    "SUBSTRING({b}, {i}, {i})",
    "COALESCE({b}, {b})",
    "IF({c}, {b}, {b})",
    "CHAR({i}, {i})",
    "LPAD({b}, {i}, {b})",
    "REVERSE({b})",
    "REPLACE({b}, {b}, {b})",
    "UPPER({b})",
    "({b} & {b})",
    "({b} | {b})",
    "(~{b})",
    "TRIM({b})",
    "GREATEST({b}, {b})",
    "BINARY {s}",
    "CONVERT({s} USING binary)",
];

const MOMENTS: &[&str] = &[
    "DATE_ADD({t}, INTERVAL {i} {u})",
    "DATE_SUB({t}, INTERVAL {n} {u})",
    "({t} + INTERVAL {i} {u})",
    "({t} - INTERVAL {i} {u})",
    "DATE_ADD({t}, INTERVAL {s} {U})",
    "DATE_ADD({t}, INTERVAL '1 2:3' {U})",
    "DATE_SUB({t}, INTERVAL '1.5' SECOND)",
    "DATE({t})",
    "DATE({s})",
    "LAST_DAY({t})",
    "CAST({t} AS DATE)",
    "CAST({t} AS DATETIME)",
    "CAST({t} AS DATETIME(3))",
    "CAST({s} AS DATE)",
    "CAST({s} AS DATETIME)",
    "CAST({n} AS DATE)",
    "CAST({n} AS DATETIME(1))",
    "TIMESTAMP({t})",
    "TIMESTAMP({t}, {d})",
    "COALESCE({t}, {t})",
    "IFNULL({t}, {t})",
    "NULLIF({t}, {t})",
    "IF({c}, {t}, {t})",
    "CASE WHEN {c} THEN {t} ELSE {t} END",
    "GREATEST({t}, {t})",
    "LEAST({t}, {t})",
    "STR_TO_DATE('2024-03-04 05:06:07', {f})",
    "STR_TO_DATE({s}, {f})",
    "STR_TO_DATE('04/03/2024', '%d/%m/%Y')",
    "STR_TO_DATE(DATE_FORMAT({t}, {f}), {f})",
    "FROM_UNIXTIME({n})",
    "MAKEDATE(2024, {n})",
    "FROM_DAYS({n})",
    "ADDDATE({t}, {i})",
    "SUBDATE({t}, {i})",
    "CONVERT_TZ({t}, '+00:00', '-05:30')",
    "ADDTIME({t}, {d})",
    "SUBTIME({t}, {d})",
];

const DURATIONS: &[&str] = &[
    "TIME({t})",
    "TIME({d})",
    "TIME({s})",
    "CAST({d} AS TIME)",
    "CAST({s} AS TIME(2))",
    "CAST({n} AS TIME)",
    "TIMEDIFF({t}, {t})",
    "TIMEDIFF({d}, {d})",
    "ADDTIME({d}, {d})",
    "SUBTIME({d}, {d})",
    "SEC_TO_TIME({n})",
    "MAKETIME({i}, {I}, {I})",
    "COALESCE({d}, {d})",
    "IF({c}, {d}, {d})",
    "GREATEST({d}, {d})",
    "LEAST({d}, {d})",
    "DATE_ADD({d}, INTERVAL {i} {u})",
    "STR_TO_DATE('05:06:07', '%H:%i:%s')",
];

const CONDITIONS: &[&str] = &[
    "({c} AND {c})",
    "({c} OR {c})",
    "({c} XOR {c})",
    "(NOT {c})",
    "({n} {o} {n})",
    "({n} {o} {n})",
    "({n} {o} {n})",
    "({s} {o} {s})",
    "({s} {o} {s})",
    "({t} {o} {t})",
    "({t} {o} {t})",
    "({d} {o} {d})",
    "({b} {o} {b})",
    "({a} {o} {a})",
    "({a} {o} {a})",
    "({n} {o} {s})",
    "({t} {o} {s})",
    "({t} {o} {n})",
    "({d} {o} {t})",
    "({d} {o} {s})",
    "({a} IS NULL)",
    "({a} IS NOT NULL)",
    "({n} BETWEEN {n} AND {n})",
    "({s} BETWEEN {s} AND {s})",
    "({t} BETWEEN {t} AND {t})",
    "({a} NOT BETWEEN {a} AND {a})",
    "({n} IN ({n}, {n}, {n}))",
    "({n} NOT IN ({n}, {n}))",
    "({s} IN ({s}, {s}))",
    "({t} IN ({t}, {t}))",
    "({a} IN ({a}, {a}))",
    "({s} LIKE {p})",
    "({s} NOT LIKE {p})",
    "({n} LIKE {p})",
    "({s} LIKE {s})",
    "({s} REGEXP {r})",
    "({c} IS TRUE)",
    "({c} IS NOT FALSE)",
    "({c} IS UNKNOWN)",
    "(({n}, {s}) = ({n}, {s}))",
    "(({n}, {n}) > ({n}, {n}))",
    "(({n}, {s}) IN (({n}, {s}), ({n}, {s})))",
    "{n}",
    "{s}",
];

const FORMATS: &[&str] = &[
    "'%Y-%m-%d'",
    "'%W %M %e %y'",
    "'%H:%i:%s.%f'",
    "'%j %U %u %V %v %X %x'",
    "'%D %b %a %c %h %I %k %l %p %r %T %w %%'",
    "'%Y-%m-%d %H:%i:%s'",
    "'%d/%m/%Y'",
    "'%x%v'",
];
const PATTERNS: &[&str] = &[
    "'a%'",
    "'%b%'",
    "'_b%'",
    "'%'",
    "'x\\\\_y'",
    "''",
    "'A_c%'",
    "'12%'",
    "'%\\\\%'",
    "'_'",
    "'%2024%'",
    "'é%'",
];
const REGEXPS: &[&str] = &["'a'", "'^[a-c]'", "'[0-9]+'", "'b$'", "'.'", "'(a|1)'", "'^$'", "'x.y'"];
const UNITS: &[&str] =
    &["MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"];
const PAIRS: &[&str] = &[
    "DAY_HOUR",
    "HOUR_MINUTE",
    "MINUTE_SECOND",
    "YEAR_MONTH",
    "DAY_SECOND",
    "SECOND_MICROSECOND",
    "DAY_MICROSECOND",
];
const COLLATIONS: &[&str] =
    &["utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci", "utf8mb4_0900_bin"];
const COMPARISONS: &[&str] = &["=", "<>", "<", "<=", ">", ">=", "<=>"];
const LITERALS: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "3",
    "10",
    "1.5",
    "-0.5",
    "0.25",
    "1e2",
    "18446744073709551615",
    "9223372036854775807",
    "-9223372036854775808",
    "-7",
    "123.456",
    "NULL",
    "TRUE",
    "'12'",
    "99999999999999999999",
    "1e-3",
    "0x1F",
    "20240229",
    "'-3.5'",
];
const MOMENT_LITERALS: &[&str] = &[
    "'2024-02-29'",
    "DATE'2023-12-31'",
    "TIMESTAMP'2020-02-29 23:59:59.5'",
    "'2024-01-31 10:00:00'",
    "20240131",
    "NULL",
    "DATE'0999-01-01'",
    "'2024-02-30'",
    "TIMESTAMP'9999-12-31 23:59:59'",
];
const DURATION_LITERALS: &[&str] =
    &["'10:11:12'", "TIME'-00:00:01.5'", "'1 02:03'", "101112", "NULL", "TIME'838:59:59'"];

/// Makes expressions over some sources.
pub struct Maker<'r> {
    pub random: &'r mut Random,
    pub sources: Vec<Source>,
}

impl Maker<'_> {
    /// An expression of this kind, of so many levels at most.
    pub fn of(&mut self, kind: Kind, depth: u32) -> Tree {
        if depth == 0 || self.random.percent(20) {
            return self.leaf(kind);
        }
        let templates = match kind {
            Kind::Number => NUMBERS,
            Kind::Text => TEXTS,
            Kind::Bytes => BYTES,
            Kind::Moment => MOMENTS,
            Kind::Time => DURATIONS,
        };
        let template = pick(self.random, templates);
        self.fill(template, depth)
    }

    pub fn condition(&mut self, depth: u32) -> Tree {
        // The first four are made of conditions, the last two are none: at the bottom comparisons remain.
        let (first, last) = if depth == 0 { (4, CONDITIONS.len() - 2) } else { (0, CONDITIONS.len()) };
        let template = pick(self.random, &CONDITIONS[first..last]);
        self.fill(template, depth.max(1))
    }

    pub fn any(&mut self, depth: u32) -> Tree {
        let kind = match self.random.uniform(1, 20) {
            1..=7 => Kind::Number,
            8..=12 => Kind::Text,
            13..=16 => Kind::Moment,
            17 | 18 => Kind::Time,
            _ => Kind::Bytes,
        };
        self.of(kind, depth)
    }

    /// A column of the sources.
    pub fn column(&mut self) -> (Tree, Kind) {
        let at = self.random.uniform(0, self.sources.len() as i64 - 1) as usize;
        self.sources[at].any_column(self.random)
    }

    pub fn column_of(&mut self, kind: Kind) -> Option<Tree> {
        if self.sources.is_empty() {
            return None;
        }
        let at = self.random.uniform(0, self.sources.len() as i64 - 1) as usize;
        self.sources[at].column(self.random, kind)
    }

    fn leaf(&mut self, kind: Kind) -> Tree {
        if self.random.percent(70)
            && let Some(column) = self.column_of(kind)
        {
            return column;
        }
        Tree::leaf(match kind {
            Kind::Number => pick(self.random, LITERALS),
            Kind::Text if self.random.percent(8) => "NULL",
            Kind::Text => pick(self.random, schema::WORDS),
            Kind::Bytes => pick(self.random, schema::BYTES),
            Kind::Moment => pick(self.random, MOMENT_LITERALS),
            Kind::Time => pick(self.random, DURATION_LITERALS),
        })
    }

    /// A template with its holes filled.
    pub fn fill(&mut self, template: &str, depth: u32) -> Tree {
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            pieces.push(Tree::text(before));
            let (hole, after) = after.split_once('}').expect("templates close their holes");
            pieces.push(self.hole(hole, depth.saturating_sub(1)));
            rest = after;
        }
        pieces.push(Tree::text(rest));
        Tree::expr(pieces)
    }

    fn hole(&mut self, hole: &str, depth: u32) -> Tree {
        match hole {
            "n" => self.of(Kind::Number, depth),
            "s" => self.of(Kind::Text, depth),
            "b" => self.of(Kind::Bytes, depth),
            "t" => self.of(Kind::Moment, depth),
            "d" => self.of(Kind::Time, depth),
            "c" => self.condition(depth),
            "a" => self.any(depth),
            "i" => Tree::text(self.random.uniform(-2, 9).to_string()),
            "I" => Tree::text(self.random.uniform(0, 7).to_string()),
            "f" => Tree::text(pick(self.random, FORMATS)),
            "p" => Tree::text(pick(self.random, PATTERNS)),
            "r" => Tree::text(pick(self.random, REGEXPS)),
            "u" => Tree::text(pick(self.random, UNITS)),
            "U" => Tree::text(pick(self.random, PAIRS)),
            "C" => Tree::text(pick(self.random, COLLATIONS)),
            "o" => Tree::text(pick(self.random, COMPARISONS)),
            other => unreachable!("no hole {other} in a template"),
        }
    }
}
