//! What must hold of a partitioning: by itself, and with its table.

use std::collections::HashSet;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Function as SqlFunction;
use avocet_types::names;
use avocet_types::{IndexKind, SqlType, TableDef};

use super::{Bound, Function, MOST_COLUMNS, MOST_PARTITIONS, Part, Partitioning, check_kept_values, keys_of};
use crate::bind::unsupported;
use crate::kept::rules::bind_expr;
use crate::parse::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::parse::grow_stack;
use crate::parse::statement::{PartitionBy, PartitionMethod, PartitionSpec, PartitionValues, PartitionedBy};

fn wrong_shape(message: &str) -> SqlError {
    ErrorCode::PARSE_ERROR.because(message)
}

/// How many partitions there are, and of which engine.
pub(super) fn check_shape(spec: &PartitionBy) -> Result<(), SqlError> {
    if spec.count == Some(0) {
        return Err(ErrorCode::NO_PARTS_ERROR.with(&[&"partitions"]));
    }
    if spec.sub.as_ref().is_some_and(|sub| sub.count == Some(0)) {
        return Err(ErrorCode::NO_PARTS_ERROR.with(&[&"subpartitions"]));
    }
    let is_bounded = matches!(spec.function.method, PartitionMethod::Range | PartitionMethod::List);
    let has_subs = spec.parts.iter().any(|part| !part.subs.is_empty());
    if spec.sub.is_some() && !is_bounded || has_subs && spec.sub.is_none() {
        return Err(ErrorCode::SUBPARTITION_ERROR.with(&[]));
    }
    if is_bounded && spec.parts.is_empty() {
        let name = if spec.function.method == PartitionMethod::Range { "RANGE" } else { "LIST" };
        return Err(ErrorCode::PARTITIONS_MUST_BE_DEFINED_ERROR.with(&[&name]));
    }
    if spec.count.is_some_and(|count| !spec.parts.is_empty() && count != spec.parts.len() as u64) {
        return Err(wrong_shape("Wrong number of partitions defined, mismatch with previous setting"));
    }
    let subs = spec.sub.as_ref().and_then(|sub| sub.count).map(|count| count as usize);
    let subs = subs.or_else(|| spec.parts.first().map(|part| part.subs.len()));
    if has_subs && spec.parts.iter().any(|part| Some(part.subs.len()) != subs) {
        return Err(wrong_shape("Wrong number of subpartitions defined, mismatch with previous setting"));
    }
    check_engines(&spec.parts)
}

/// Error 1497 unless all partitions, or none, name InnoDB.
fn check_engines(parts: &[PartitionSpec]) -> Result<(), SqlError> {
    let engines = parts.iter().flat_map(|part| match part.subs.is_empty() {
        true => vec![&part.options.engine],
        false => part.subs.iter().map(|(_, options)| &options.engine).collect(),
    });
    let engines: Vec<_> = engines.collect();
    let is_innodb = |engine: &str| engine.eq_ignore_ascii_case("InnoDB");
    let named = engines.iter().filter(|engine| engine.as_deref().is_some_and(is_innodb)).count();
    let others = engines.iter().any(|engine| engine.as_deref().is_some_and(|engine| !is_innodb(engine)));
    match others || named != 0 && named != engines.len() {
        true => Err(ErrorCode::MIX_HANDLER_ERROR.with(&[])),
        false => Ok(()),
    }
}

/// What the functions may be made of, as far as their syntax tells.
pub(super) fn check_functions(spec: &PartitionBy) -> Result<(), SqlError> {
    let functions = [Some(&spec.function), spec.sub.as_ref().map(|sub| &sub.function)];
    for function in functions.into_iter().flatten() {
        match &function.of {
            PartitionedBy::Expr(expr) => {
                check_tree(&mut expr.clone())?;
            }
            PartitionedBy::Columns(names) => {
                if names.len() > MOST_COLUMNS {
                    let what = "list of partition fields";
                    return Err(ErrorCode::TOO_MANY_PARTITION_FUNC_FIELDS_ERROR.with(&[&what]));
                }
                for (at, name) in names.iter().enumerate() {
                    if names[..at].iter().any(|other| names::eq(&other.name, &name.name)) {
                        return Err(ErrorCode::SAME_NAME_PARTITION_FIELD.with(&[&name.name]));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Functions that a partitioning function may use (MySQL 8.4 Reference Manual, 26.6.3).
const ALLOWED: &[SqlFunction] = &[
    SqlFunction::Abs,
    SqlFunction::Ceil,
    SqlFunction::Floor,
    SqlFunction::DateDiff,
    SqlFunction::DayOfMonth,
    SqlFunction::DayOfWeek,
    SqlFunction::DayOfYear,
    SqlFunction::Hour,
    SqlFunction::Microsecond,
    SqlFunction::Minute,
    SqlFunction::Mod,
    SqlFunction::Month,
    SqlFunction::Quarter,
    SqlFunction::Second,
    SqlFunction::TimeToSec,
    SqlFunction::ToDays,
    SqlFunction::ToSeconds,
    SqlFunction::UnixTimestamp,
    SqlFunction::WeekDay,
    SqlFunction::Year,
    SqlFunction::YearWeek,
];

/// Those whose value is another one each time, or in each session.
const CHANGING: &[SqlFunction] = &[
    SqlFunction::Now,
    SqlFunction::CurDate,
    SqlFunction::CurTime,
    SqlFunction::UtcTimestamp,
    SqlFunction::UtcDate,
    SqlFunction::UtcTime,
    SqlFunction::Sysdate,
    SqlFunction::Rand,
    SqlFunction::Uuid,
    SqlFunction::ConnectionId,
    SqlFunction::User,
    SqlFunction::CurrentUser,
    SqlFunction::Database,
];

fn check_tree(expr: &mut Expr) -> Result<(), SqlError> {
    let not_allowed = || Err(ErrorCode::PARTITION_FUNCTION_IS_NOT_ALLOWED.with(&[]));
    // MySQL's parser says so.
    let changing = || Err(wrong_shape(ErrorCode::WRONG_EXPR_IN_PARTITION_FUNC_ERROR.text));
    match &expr.kind {
        ExprKind::Column { .. }
        | ExprKind::Integer(_)
        | ExprKind::Decimal(_)
        | ExprKind::String { .. }
        | ExprKind::Temporal { .. }
        | ExprKind::Extract { .. } => {}
        ExprKind::Unary { op: UnaryOp::Minus | UnaryOp::Plus, .. } => {}
        ExprKind::Binary {
            op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::IntDiv | BinaryOp::Mod,
            ..
        } => {}
        ExprKind::Function { name, .. } => match SqlFunction::lookup(name) {
            Some(function) if ALLOWED.contains(&function) => {}
            Some(function) if CHANGING.contains(&function) => return changing(),
            _ => return not_allowed(),
        },
        ExprKind::Subquery(_) | ExprKind::Exists(_) => {
            return Err(wrong_shape(ErrorCode::PARTITION_FUNCTION_IS_NOT_ALLOWED.text));
        }
        ExprKind::UserVariable { .. } | ExprKind::SystemVariable { .. } => return changing(),
        _ => return not_allowed(),
    }
    grow_stack(|| expr.children_mut().into_iter().try_for_each(check_tree))
}

/// Whether a partition's values are of its kind.
pub(super) fn check_values(function: &Function, spec: &PartitionSpec) -> Result<(), SqlError> {
    let wrong =
        |only: &str, values: &str| Err(ErrorCode::PARTITION_WRONG_VALUES_ERROR.with(&[&only, &values]));
    let width = if function.expr.is_some() { 1 } else { function.columns.len() };
    let tuples: Vec<usize> = match (&spec.values, function.method) {
        (PartitionValues::None, PartitionMethod::Range) => {
            return Err(wrong_shape(
                "Syntax error: RANGE PARTITIONING requires definition of VALUES LESS THAN for each partition",
            ));
        }
        (PartitionValues::None, PartitionMethod::List) => {
            return Err(wrong_shape(
                "Syntax error: LIST PARTITIONING requires definition of VALUES IN for each partition",
            ));
        }
        (PartitionValues::None, _) => Vec::new(),
        (PartitionValues::In(tuples), PartitionMethod::List) => tuples.iter().map(Vec::len).collect(),
        (PartitionValues::In(_), _) => return wrong("LIST", "IN"),
        (PartitionValues::LessThan(values), PartitionMethod::Range) => vec![values.len()],
        (PartitionValues::LessThanMax, PartitionMethod::Range) => vec![1],
        _ => return wrong("RANGE", "LESS THAN"),
    };
    let inconsistent = ErrorCode::PARTITION_COLUMN_LIST_ERROR;
    match tuples.iter().find(|tuple| **tuple != width) {
        None => Ok(()),
        Some(tuple) if *tuple < width => Err(wrong_shape(inconsistent.text)),
        Some(_) => Err(inconsistent.with(&[])),
    }
}

/// Whether a table may be partitioned as its definition says.
pub fn check(table: &TableDef) -> Result<(), SqlError> {
    let Some(text) = &table.partitioning else { return Ok(()) };
    let partitioning = super::read(text)?;
    let (parts, subs) = partitioning.counts();
    if parts.saturating_mul(subs.max(1)) > MOST_PARTITIONS {
        return Err(ErrorCode::TOO_MANY_PARTITIONS_ERROR.with(&[]));
    }
    check_names(&partitioning)?;
    check_function(&partitioning.function, table)?;
    if let Some(sub) = &partitioning.sub {
        check_function(&sub.function, table)?;
    }
    check_kept_values(text, &partitioning, table)?;
    match partitioning.function.method {
        PartitionMethod::Range => check_ranges(&partitioning, table)?,
        PartitionMethod::List => check_lists(&partitioning, table)?,
        _ => {}
    }
    if table.columns.iter().any(|column| column.ty.is_geometry()) {
        return Err(ErrorCode::CHECK_NOT_IMPLEMENTED.with(&[&"GEOMETRY"]));
    }
    if !table.kept_keys.is_empty() {
        return Err(ErrorCode::TABLE_CANT_HANDLE_FT.with(&[]));
    }
    check_domain(&partitioning, table)?;
    if !table.foreign_keys.is_empty() {
        return Err(ErrorCode::FOREIGN_KEY_ON_PARTITIONED.with(&[]));
    }
    let columns = partitioning.columns(table)?;
    for index in table.indexes.iter().filter(|index| index.kind.is_unique()) {
        let is_whole = |column: &usize| {
            index.parts.iter().any(|part| part.column == *column && part.prefix_len.is_none())
        };
        if !columns.iter().all(is_whole) {
            let what = if index.kind == IndexKind::Primary { "PRIMARY KEY" } else { "UNIQUE INDEX" };
            return Err(ErrorCode::UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF.with(&[&what]));
        }
    }
    Ok(())
}

/// Error 1563 for values that a function which is never negative cannot have.
fn check_domain(partitioning: &Partitioning, table: &TableDef) -> Result<(), SqlError> {
    let Some(expr) = partitioning.function.expr.as_ref().filter(|_| partitioning.function.is_bounded())
    else {
        return Ok(());
    };
    let bound = bind_expr(expr, &std::sync::Arc::new(table.clone()), false)?;
    let is_negative = |value: &String| value.starts_with('-');
    let has_negative = partitioning.parts.iter().any(|part| match &part.bound {
        Bound::None => false,
        Bound::LessThan(values) => values.iter().flatten().any(is_negative),
        Bound::In(tuples) => tuples.iter().flatten().any(is_negative),
    });
    match has_negative && bound.ty.is_unsigned() {
        true => Err(ErrorCode::PARTITION_CONST_DOMAIN_ERROR.with(&[])),
        false => Ok(()),
    }
}

fn check_names(partitioning: &Partitioning) -> Result<(), SqlError> {
    let mut names = HashSet::new();
    for part in partitioning.all_parts() {
        let subs = partitioning.subs_of(&part).into_iter().map(|(name, _)| name);
        for name in std::iter::once(part.name.clone()).chain(subs) {
            check_name(&name)?;
            if !names.insert(names::fold_unaccented(&name).into_owned()) {
                return Err(ErrorCode::SAME_NAME_PARTITION.with(&[&name]));
            }
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), SqlError> {
    match name.chars().count() > 64 {
        true => Err(ErrorCode::TOO_LONG_IDENT.with(&[&name])),
        false => Ok(()),
    }
}

/// The types of columns, and that of the function.
pub(super) fn check_function(function: &Function, table: &TableDef) -> Result<(), SqlError> {
    let columns = function.columns(table)?;
    let type_not_allowed = |column: usize| {
        Err(ErrorCode::FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD.with(&[&table.columns[column].name]))
    };
    let Some(expr) = &function.expr else {
        for column in columns {
            let ty = &table.columns[column].ty;
            match ty {
                SqlType::Text { .. } | SqlType::Blob { .. } | SqlType::Json => {
                    return Err(ErrorCode::BLOB_FIELD_IN_PART_FUNC_ERROR.with(&[]));
                }
                SqlType::Int { .. }
                | SqlType::Bool
                | SqlType::Date
                | SqlType::DateTime { .. }
                | SqlType::Time { .. }
                | SqlType::Char { .. }
                | SqlType::VarChar { .. }
                | SqlType::Binary { .. }
                | SqlType::VarBinary { .. } => {}
                _ if function.method == PartitionMethod::Key => {}
                _ => return type_not_allowed(column),
            }
        }
        return Ok(());
    };
    let tree = crate::kept::parse(expr)?;
    let names = crate::kept::column_names(&tree);
    if names.is_empty() {
        return Err(ErrorCode::WRONG_EXPR_IN_PARTITION_FUNC_ERROR.with(&[]));
    }
    if let Some(name) = names.iter().find(|name| table.column(name).is_none()) {
        return Err(ErrorCode::BAD_FIELD_ERROR.with(&[name, &"partition function"]));
    }
    if let ExprKind::Column { .. } = &tree.kind {
        let column = columns[0];
        let is_integer = matches!(
            table.columns[column].ty,
            SqlType::Int { .. } | SqlType::Bool | SqlType::Year | SqlType::Bit { .. }
        );
        return if is_integer { Ok(()) } else { type_not_allowed(column) };
    }
    check_times(&mut tree.clone(), table)?;
    let bound = bind_expr(expr, &std::sync::Arc::new(table.clone()), false)?;
    match bound.ty {
        SqlType::Int { .. } | SqlType::Bool | SqlType::Year => Ok(()),
        _ => Err(ErrorCode::PARTITION_FUNC_NOT_ALLOWED_ERROR.with(&[&"PARTITION"])),
    }
}

/// TIMESTAMPs are read in the session's time zone, by all functions but UNIX_TIMESTAMP, which takes nothing else.
fn check_times(expr: &mut Expr, table: &TableDef) -> Result<(), SqlError> {
    let wrong = || Err(ErrorCode::WRONG_EXPR_IN_PARTITION_FUNC_ERROR.with(&[]));
    let is_timestamp = |expr: &Expr| match &expr.kind {
        ExprKind::Column { column, .. } => {
            let column = table.column(&column.name);
            column.is_some_and(|at| matches!(table.columns[at].ty, SqlType::Timestamp { .. }))
        }
        _ => false,
    };
    if let ExprKind::Function { name, args, .. } = &expr.kind
        && SqlFunction::lookup(name) == Some(SqlFunction::UnixTimestamp)
    {
        return if matches!(&args[..], [arg] if is_timestamp(arg)) { Ok(()) } else { wrong() };
    }
    if is_timestamp(expr) {
        return wrong();
    }
    grow_stack(|| expr.children_mut().into_iter().try_for_each(|child| check_times(child, table)))
}

fn check_ranges(partitioning: &Partitioning, table: &TableDef) -> Result<(), SqlError> {
    let not_increasing = || Err(ErrorCode::RANGE_NOT_INCREASING_ERROR.with(&[]));
    let function = &partitioning.function;
    let columns = if function.expr.is_none() { function.columns(table)? } else { Vec::new() };
    let last = partitioning.parts.len().saturating_sub(1);
    let mut numbers: Option<i128> = None;
    let mut before: Option<Keys> = None;
    for (at, part) in partitioning.parts.iter().enumerate() {
        let Bound::LessThan(values) = &part.bound else { return not_increasing() };
        if function.expr.is_none() {
            let keys = keys_of(values, &columns, table)?;
            if before.as_ref().is_some_and(|before| !is_less(before, &keys)) {
                return not_increasing();
            }
            before = Some(keys);
            continue;
        }
        let Some(Some(value)) = values.first() else {
            match at == last {
                true => continue,
                false => return Err(ErrorCode::PARTITION_MAXVALUE_ERROR.with(&[])),
            }
        };
        let value = value.parse::<i128>().ok();
        if numbers.is_some() && numbers >= value {
            return not_increasing();
        }
        numbers = value;
    }
    Ok(())
}

/// Whether a RANGE partition ends where another does, or behind it. Both are well-formed.
pub fn reaches(
    partitioning: &Partitioning,
    table: &TableDef,
    end: &Part,
    other: &Part,
) -> Result<bool, SqlError> {
    if end.bound == other.bound {
        return Ok(true);
    }
    let is_max =
        |part: &Part| matches!(&part.bound, Bound::LessThan(values) if values.iter().all(Option::is_none));
    if is_max(other) || is_max(end) {
        return Ok(is_max(end));
    }
    let both = Partitioning { parts: vec![other.clone(), end.clone()], ..partitioning.clone() };
    match check_ranges(&both, table) {
        Ok(()) => Ok(true),
        Err(error) if error.errno == ErrorCode::RANGE_NOT_INCREASING_ERROR.errno => Ok(false),
        Err(error) => Err(error),
    }
}

type Keys = Vec<Option<Vec<u8>>>;

/// `None` is more than all keys.
fn is_less(a: &[Option<Vec<u8>>], b: &[Option<Vec<u8>>]) -> bool {
    for (a, b) in a.iter().zip(b) {
        match (a, b) {
            (None, None) => {}
            (None, Some(_)) => return false,
            (Some(_), None) => return true,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return a < b,
        }
    }
    false
}

fn check_lists(partitioning: &Partitioning, table: &TableDef) -> Result<(), SqlError> {
    let function = &partitioning.function;
    let columns = if function.expr.is_none() { function.columns(table)? } else { Vec::new() };
    let mut seen = HashSet::new();
    for part in &partitioning.parts {
        let Bound::In(tuples) = &part.bound else {
            return Err(unsupported("a list partition without values"));
        };
        for tuple in tuples {
            let key = match function.expr {
                Some(_) => vec![Some(tuple[0].clone().into_bytes())],
                None => {
                    let tuple: Vec<_> = tuple.iter().cloned().map(Some).collect();
                    keys_of(&tuple, &columns, table)?
                }
            };
            if !seen.insert(key) {
                return Err(ErrorCode::MULTIPLE_DEF_CONST_IN_LIST_PART_ERROR.with(&[]));
            }
        }
    }
    Ok(())
}
