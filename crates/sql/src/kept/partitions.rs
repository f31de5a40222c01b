//! Partitioned tables: what `PARTITION BY` says, checked and in the form in which the catalog keeps it.
//!
//! ```text
//!  PARTITION BY … ─parse─▶ tree ─ resolve, check ─▶ Partitioning ─ text ─▶ catalog, SHOW CREATE TABLE
//!                                                       ▲   └─ conditions ─▶ RowRules, SELECT … PARTITION
//!                                                       └────── read ──────── catalog
//! ```
//!
//! A partition is a condition over its rows, which all stand in one relation (decision 65).

mod checks;
mod conditions;

use avocet_types::collation::Charset;
use avocet_types::convert::{ConvertContext, store_column};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalContext, RowProgram, SqlMode, recode};
use avocet_types::key::KeyLayout;
use avocet_types::names;
use avocet_types::schema::IndexPart;
use avocet_types::temporal::ZeroDates;
use avocet_types::{ColumnDef, Datum, IndexKind, SqlType, TableDef, Value};

use crate::bind::{Clause, TableBinder};
use crate::parse::ast::Expr;
use crate::parse::statement::{
    PartitionBy, PartitionFunction, PartitionMethod, PartitionOptions, PartitionSpec, PartitionValues,
    PartitionedBy,
};
use crate::parse::{ParseError, parse_partition_by};

pub use checks::{check, reaches};
pub use conditions::{condition_of, taken};

/// Partitions and subpartitions of one table at most.
const MOST_PARTITIONS: u64 = 8192;
/// Columns of a partitioning function at most.
const MOST_COLUMNS: usize = 16;

/// How a table is partitioned.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    pub function: Function,
    /// Of HASH and KEY: how many there are, where they have no definitions but default names; 0 if nothing was said of it.
    pub count: u64,
    pub sub: Option<Sub>,
    /// Empty if `count` says all.
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sub {
    pub function: Function,
    /// 0 if nothing was said of it.
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub method: PartitionMethod,
    pub linear: bool,
    pub old_algorithm: bool,
    /// In canonical form; `None` where there are columns.
    pub expr: Option<String>,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub name: String,
    pub bound: Bound,
    pub options: PartitionOptions,
    pub subs: Vec<(String, PartitionOptions)>,
}

/// Values as SHOW CREATE TABLE has them.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    None,
    /// A tuple; `None` is MAXVALUE.
    LessThan(Vec<Option<String>>),
    In(Vec<Vec<String>>),
}

impl Function {
    /// `RANGE`, `LIST COLUMNS`, `LINEAR HASH`, …: as information_schema has it.
    pub fn name(&self) -> String {
        let method = match self.method {
            PartitionMethod::Range => "RANGE",
            PartitionMethod::List => "LIST",
            PartitionMethod::Hash => "HASH",
            PartitionMethod::Key => "KEY",
        };
        match (self.linear, self.is_bounded() && self.expr.is_none()) {
            (true, _) => format!("LINEAR {method}"),
            (false, true) => format!("{method} COLUMNS"),
            (false, false) => method.to_owned(),
        }
    }

    /// Whether partitions have values: RANGE and LIST.
    pub fn is_bounded(&self) -> bool {
        matches!(self.method, PartitionMethod::Range | PartitionMethod::List)
    }

    /// The columns that it is of. KEY () is of those of a key.
    pub fn columns(&self, table: &TableDef) -> Result<Vec<usize>, SqlError> {
        if let Some(expr) = &self.expr {
            return Ok(super::columns_of(expr, table)?.into_iter().collect());
        }
        if self.columns.is_empty() {
            let unique = table.indexes.iter().filter(|index| index.kind == IndexKind::Unique);
            let never_null = |index: &&avocet_types::IndexDef| {
                index.parts.iter().all(|part| !table.columns[part.column].nullable)
            };
            let key = table.primary_key().or_else(|| unique.into_iter().find(never_null));
            let key = key.ok_or_else(|| ErrorCode::FIELD_NOT_FOUND_PART_ERROR.with(&[]))?;
            return Ok(key.parts.iter().map(|part| part.column).collect());
        }
        let known =
            |name: &String| table.column(name).ok_or_else(|| ErrorCode::FIELD_NOT_FOUND_PART_ERROR.with(&[]));
        self.columns.iter().map(known).collect()
    }
}

impl Partitioning {
    /// How many there are, and how many subpartitions each has.
    pub fn counts(&self) -> (u64, u64) {
        let parts = if self.parts.is_empty() { self.count.max(1) } else { self.parts.len() as u64 };
        let subs = self.parts.first().map_or(0, |part| part.subs.len() as u64);
        let subs = self.sub.as_ref().map_or(0, |sub| if subs > 0 { subs } else { sub.count.max(1) });
        (parts, subs)
    }

    /// All partitions, those with default names, too.
    pub fn all_parts(&self) -> Vec<Part> {
        if !self.parts.is_empty() {
            return self.parts.clone();
        }
        let part = |at| Part {
            name: format!("p{at}"),
            bound: Bound::None,
            options: PartitionOptions::default(),
            subs: Vec::new(),
        };
        (0..self.counts().0).map(part).collect()
    }

    /// The names of a partition's subpartitions, those with default names, too.
    pub fn subs_of(&self, part: &Part) -> Vec<(String, PartitionOptions)> {
        match part.subs.is_empty() {
            false => part.subs.clone(),
            true => (0..self.counts().1)
                .map(|at| (format!("{}sp{at}", part.name), PartitionOptions::default()))
                .collect(),
        }
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.all_parts().iter().position(|part| names::eq(&part.name, name))
    }

    /// The columns of the partitioning functions.
    pub fn columns(&self, table: &TableDef) -> Result<Vec<usize>, SqlError> {
        let mut columns = self.function.columns(table)?;
        if let Some(sub) = &self.sub {
            columns.extend(sub.function.columns(table)?);
        }
        Ok(columns)
    }

    /// What the catalog keeps: as in SHOW CREATE TABLE, with all names in backticks.
    pub fn kept_text(&self) -> String {
        self.text(&|name| format!("`{}`", name.replace('`', "``")), '`', false)
    }

    /// What follows `PARTITION BY`. `name` puts a name into quotes, if it has to; names in expressions are in `quote`. In a
    /// versioned comment, what older servers do not know is in one of its own.
    pub fn text(&self, name: &dyn Fn(&str) -> String, quote: char, in_comment: bool) -> String {
        let mut text = function_text(&self.function, name, quote, in_comment);
        if self.parts.is_empty() && self.count > 0 {
            text.push_str(&format!("\nPARTITIONS {}", self.count));
        }
        if let Some(sub) = &self.sub {
            text.push_str("\nSUBPARTITION BY ");
            text.push_str(&function_text(&sub.function, name, quote, in_comment));
            if sub.count > 0 {
                text.push_str(&format!("\nSUBPARTITIONS {}", sub.count));
            }
        }
        if !self.parts.is_empty() {
            let has_columns = self.function.expr.is_none();
            let part = |part| part_text(part, has_columns, name);
            let parts: Vec<String> = self.parts.iter().map(part).collect();
            text.push_str(&format!("\n({})", parts.join(",\n ")));
        }
        text
    }
}

/// The columns that a table's partitions are made by.
pub fn columns_of(table: &TableDef) -> Result<Vec<usize>, SqlError> {
    table.partitioning.as_ref().map_or_else(|| Ok(Vec::new()), |text| read(text)?.columns(table))
}

/// Those of them that it names: KEY () is made by the primary key, whatever its columns are called.
pub fn named_columns_of(table: &TableDef) -> Result<Vec<usize>, SqlError> {
    let Some(text) = &table.partitioning else { return Ok(Vec::new()) };
    let Partitioning { function, sub, .. } = read(text)?;
    let functions = std::iter::once(&function).chain(sub.as_ref().map(|sub| &sub.function));
    let named = functions.filter(|function| function.expr.is_some() || !function.columns.is_empty());
    Ok(named.map(|function| function.columns(table)).collect::<Result<Vec<_>, _>>()?.concat())
}

fn function_text(
    function: &Function,
    name: &dyn Fn(&str) -> String,
    quote: char,
    in_comment: bool,
) -> String {
    let columns = || function.columns.iter().map(|column| name(column)).collect::<Vec<_>>().join(",");
    let method = function.name();
    match &function.expr {
        Some(expr) => format!("{method} ({})", requoted(expr, quote)),
        None if function.is_bounded() => {
            let (method, _) = method.split_once(' ').unwrap_or((&method, ""));
            format!("{method}  COLUMNS({})", columns())
        }
        None => {
            let algorithm = match (function.old_algorithm, in_comment) {
                (false, _) => "",
                (true, true) => "*/ /*!50611 ALGORITHM = 1 */ /*!50100 ",
                (true, false) => "ALGORITHM = 1 ",
            };
            format!("{method} {algorithm}({})", columns())
        }
    }
}

/// A kept expression with names in other quotes.
fn requoted(expr: &str, quote: char) -> String {
    match super::parse(expr) {
        Ok(tree) if quote != '`' => {
            let names = crate::print::Names::Bare;
            let strings = Some(Charset::Utf8mb4);
            let style = crate::print::Style { names, strings, charset: Charset::Utf8mb4, quote };
            crate::print::expr(&tree, expr.as_bytes(), style)
        }
        _ => expr.to_owned(),
    }
}

fn part_text(part: &Part, has_columns: bool, name: &dyn Fn(&str) -> String) -> String {
    let mut text = format!("PARTITION {}", name(&part.name));
    match &part.bound {
        Bound::None => {}
        Bound::LessThan(values) if !has_columns && values[..] == [None] => {
            text.push_str(" VALUES LESS THAN MAXVALUE");
        }
        bound => text.push_str(&format!(" VALUES {}", bound.text())),
    }
    let subs: Vec<String> = part
        .subs
        .iter()
        .map(|(sub, options)| format!("SUBPARTITION {}{}", name(sub), options_text(options)))
        .collect();
    match subs.is_empty() {
        true => text.push_str(&options_text(&part.options)),
        false => text.push_str(&format!("\n ({})", subs.join(",\n  "))),
    }
    text
}

fn options_text(options: &PartitionOptions) -> String {
    let mut text = String::new();
    if let Some(rows) = options.max_rows {
        text.push_str(&format!(" MAX_ROWS = {rows}"));
    }
    if let Some(rows) = options.min_rows {
        text.push_str(&format!(" MIN_ROWS = {rows}"));
    }
    if let Some(comment) = &options.comment {
        let comment = comment.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
        text.push_str(&format!(" COMMENT = '{comment}'"));
    }
    text.push_str(" ENGINE = InnoDB");
    text
}

impl Bound {
    /// After VALUES.
    fn text(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::LessThan(_) => format!("LESS THAN ({})", self.values()),
            Self::In(_) => format!("IN ({})", self.values()),
        }
    }

    /// The values alone: information_schema's PARTITION_DESCRIPTION.
    pub fn values(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::LessThan(values) => {
                let shown = values.iter().map(|value| value.as_deref().unwrap_or("MAXVALUE"));
                shown.collect::<Vec<_>>().join(",")
            }
            Self::In(tuples) => {
                let tuple = |tuple: &Vec<String>| match &tuple[..] {
                    [one] => one.clone(),
                    _ => format!("({})", tuple.join(",")),
                };
                tuples.iter().map(tuple).collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// What the catalog has kept.
///
/// # Errors
/// The text comes from damaged bytes, or from a release that knows more.
pub fn read(text: &str) -> Result<Partitioning, SqlError> {
    let (spec, source) = (parsed(text)?, source_of(text));
    let slice = |expr: &Expr| expr.span.text(source.text).into_owned();
    let bound = |values: &PartitionValues| match values {
        PartitionValues::None => Bound::None,
        PartitionValues::LessThanMax => Bound::LessThan(vec![None]),
        PartitionValues::LessThan(values) => {
            Bound::LessThan(values.iter().map(|value| value.as_ref().map(slice)).collect())
        }
        PartitionValues::In(tuples) => {
            Bound::In(tuples.iter().map(|tuple| tuple.iter().map(slice).collect()).collect())
        }
    };
    let part = |spec: &PartitionSpec| Part { bound: bound(&spec.values), ..part_of(spec) };
    Ok(Partitioning { parts: spec.parts.iter().map(part).collect(), ..head_of(&spec, source) })
}

fn parsed(text: &str) -> Result<PartitionBy, SqlError> {
    parse_partition_by(text.as_bytes(), SqlMode::DEFAULT).map_err(|error| {
        let why = match error {
            ParseError::Refused(error) => return *error,
            other => format!("{other:?}"),
        };
        ErrorCode::UNKNOWN_ERROR.because(format!("the partitioning {text} does not parse: {why}"))
    })
}

fn source_of(text: &str) -> Source<'_> {
    Source { text: text.as_bytes(), charset: Charset::Utf8mb4 }
}

/// Values that were of the types of their columns may not be of those that the columns have come to.
fn check_kept_values(text: &str, partitioning: &Partitioning, table: &TableDef) -> Result<(), SqlError> {
    resolve_parts(partitioning, &parsed(text)?.parts, table, source_of(text)).map(drop)
}

/// Where expressions come from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    pub text: &'s [u8],
    /// Of its strings.
    pub charset: Charset,
}

fn head_of(spec: &PartitionBy, source: Source<'_>) -> Partitioning {
    let function = |function: &PartitionFunction| {
        let (expr, columns) = match &function.of {
            PartitionedBy::Expr(expr) => {
                (Some(super::canonical(expr, source.text, source.charset)), Vec::new())
            }
            PartitionedBy::Columns(names) => (None, names.iter().map(|name| name.name.clone()).collect()),
        };
        let PartitionFunction { method, linear, old_algorithm, .. } = *function;
        Function { method, linear, old_algorithm, expr, columns }
    };
    let sub =
        spec.sub.as_ref().map(|sub| Sub { function: function(&sub.function), count: sub.count.unwrap_or(0) });
    Partitioning {
        function: function(&spec.function),
        count: if spec.parts.is_empty() { spec.count.unwrap_or(0) } else { 0 },
        sub,
        parts: Vec::new(),
    }
}

fn part_of(spec: &PartitionSpec) -> Part {
    Part {
        name: spec.name.name.clone(),
        bound: Bound::None,
        options: spec.options.clone(),
        subs: spec.subs.iter().map(|(name, options)| (name.name.clone(), options.clone())).collect(),
    }
}

/// What a statement asks for, for a table. Its values are evaluated; whether all is right together, [`check`] says.
pub fn resolve(spec: &PartitionBy, table: &TableDef, source: Source<'_>) -> Result<Partitioning, SqlError> {
    checks::check_shape(spec)?;
    checks::check_functions(spec)?;
    let mut partitioning = head_of(spec, source);
    // Of an expression, MySQL looks at the values first.
    if partitioning.function.expr.is_none() {
        checks::check_function(&partitioning.function, table)?;
    }
    partitioning.parts = resolve_parts(&partitioning, &spec.parts, table, source)?;
    Ok(partitioning)
}

/// Partitions that are defined for a table of this partitioning.
pub fn resolve_parts(
    partitioning: &Partitioning,
    specs: &[PartitionSpec],
    table: &TableDef,
    source: Source<'_>,
) -> Result<Vec<Part>, SqlError> {
    let function = &partitioning.function;
    let columns: Vec<&ColumnDef> = match function.expr {
        Some(_) => Vec::new(),
        None if function.is_bounded() => {
            function.columns(table)?.into_iter().map(|at| &table.columns[at]).collect()
        }
        None => Vec::new(),
    };
    let mut parts = Vec::with_capacity(specs.len());
    for spec in specs {
        checks::check_values(function, spec)?;
        let value = |expr: &Expr, at: usize| -> Result<String, SqlError> {
            literal(expr, source, columns.get(at).copied(), &spec.name.name)
        };
        let bound = match &spec.values {
            PartitionValues::None => Bound::None,
            PartitionValues::LessThanMax => Bound::LessThan(vec![None]),
            PartitionValues::LessThan(values) => {
                let mut bounds = Vec::with_capacity(values.len());
                for (at, expr) in values.iter().enumerate() {
                    let bound = expr.as_ref().map(|expr| value(expr, at)).transpose()?;
                    if bound.as_deref() == Some("NULL") {
                        return Err(ErrorCode::NULL_IN_VALUES_LESS_THAN.with(&[]));
                    }
                    bounds.push(bound);
                }
                Bound::LessThan(bounds)
            }
            PartitionValues::In(tuples) => {
                let mut list = Vec::with_capacity(tuples.len());
                for tuple in tuples {
                    let values = tuple.iter().enumerate().map(|(at, expr)| value(expr, at));
                    list.push(values.collect::<Result<Vec<_>, _>>()?);
                }
                // Of integers MySQL keeps NULL apart from the others.
                if function.expr.is_some() {
                    list.sort_by_key(|tuple| tuple[0] != "NULL");
                }
                Bound::In(list)
            }
        };
        parts.push(Part { bound, ..part_of(spec) });
    }
    Ok(parts)
}

/// A constant's value as SHOW CREATE TABLE has it: of the partitioning function an integer, of a column what it takes.
fn literal(
    expr: &Expr,
    source: Source<'_>,
    column: Option<&ColumnDef>,
    part: &str,
) -> Result<String, SqlError> {
    let value = constant(expr, source)?;
    let Some(column) = column else {
        return match value {
            Datum::Null => Ok("NULL".into()),
            Datum::Int(value) => Ok(value.to_string()),
            Datum::UInt(value) => Ok(value.to_string()),
            _ => Err(ErrorCode::VALUES_IS_NOT_INT_TYPE_ERROR.with(&[&part])),
        };
    };
    let is_integer =
        matches!(column.ty, SqlType::Int { .. } | SqlType::Bool | SqlType::Year | SqlType::Bit { .. });
    let wrong = || ErrorCode::WRONG_TYPE_COLUMN_VALUE_ERROR.with(&[]);
    let text = match &value {
        Datum::Null => return Ok("NULL".into()),
        Datum::Int(value) if is_integer => value.to_string(),
        Datum::UInt(value) if is_integer => value.to_string(),
        Datum::Str(text) if !is_integer => string(text),
        Datum::Bytes(bytes) if !is_integer => string(std::str::from_utf8(bytes).map_err(|_| wrong())?),
        Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_) if !is_integer => {
            let mut text = Vec::new();
            let ty = type_of(expr, source)?;
            avocet_types::text::write_text(&value, &ty, avocet_types::expr::TimeZone::UTC, &mut text);
            string(&String::from_utf8_lossy(&text))
        }
        _ => return Err(wrong()),
    };
    if let Datum::Str(_) = value {
        recode(value, &type_of(expr, source)?, &column.ty)?;
    }
    converted(&text, column).map_err(|_| wrong())?;
    Ok(text)
}

fn string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A kept value as its column has it.
fn converted(text: &str, column: &ColumnDef) -> Result<Value, SqlError> {
    let expr = super::parse(text)?;
    let source = Source { text: text.as_bytes(), charset: Charset::Utf8mb4 };
    let value = constant(&expr, source)?;
    let ty = type_of(&expr, source)?;
    let nullable = ColumnDef { nullable: true, ..column.clone() };
    let convert = ConvertContext { zero_dates: ZeroDates::ALLOWED, ..ConvertContext::STRICT_UTC };
    let stored = store_column(value, &ty, &nullable, &convert)
        .map_err(|problem| avocet_types::error::store_error(&problem, &column.name, 1))?;
    Ok(stored.value.into_owned())
}

/// Keys by which tuples of values of these columns are compared; `None` is MAXVALUE.
fn keys_of(
    tuple: &[Option<String>],
    columns: &[usize],
    table: &TableDef,
) -> Result<Vec<Option<Vec<u8>>>, SqlError> {
    let key = |(text, column): (&Option<String>, &usize)| {
        let Some(text) = text else { return Ok(None) };
        let value = converted(text, &table.columns[*column])?;
        let mut alone = table.clone();
        alone.columns[*column].nullable = true;
        let layout =
            KeyLayout::new(&alone, &[IndexPart { column: *column, descending: false, prefix_len: None }]);
        let mut key = Vec::new();
        match layout.encode_prefix(&[value], &mut key) {
            true => Ok(Some(key)),
            false => Err(ErrorCode::WRONG_TYPE_COLUMN_VALUE_ERROR.with(&[])),
        }
    };
    tuple.iter().zip(columns).map(key).collect()
}

fn program(expr: &Expr, source: Source<'_>) -> Result<RowProgram, SqlError> {
    let none = std::sync::Arc::new(TableDef::new("", "", Vec::new(), Vec::new()));
    let bound = TableBinder::new(source.text, &super::rules::Nothing, &[], &none, None)
        .expr(expr, Clause::Select)
        .map_err(|error| match super::column_names(expr).first() {
            Some(name) if error.is(ErrorCode::BAD_FIELD_ERROR) => {
                ErrorCode::BAD_FIELD_ERROR.with(&[name, &"partition function"])
            }
            _ => error,
        })?;
    Ok(RowProgram::compile_named(&bound.fold(), &|_| String::new())?)
}

fn constant(expr: &Expr, source: Source<'_>) -> Result<Value, SqlError> {
    let program = program(expr, source)?;
    let none: &[Value] = &[];
    Ok(program.eval(&none, &[], &EvalContext::new(0, 0))?.into_owned())
}

fn type_of(expr: &Expr, source: Source<'_>) -> Result<SqlType, SqlError> {
    Ok(*program(expr, source)?.ty())
}
