//! Columns of CREATE TABLE: types, attributes, defaults.

use std::sync::Arc;

use avocet_base::TableId;
use avocet_engine::{TableHandle, Txn};
use avocet_point::rules_of;
use avocet_sql::bind::{Clause, TableBinder, unsupported};
use avocet_sql::kept::allowed::Place;
use avocet_sql::parse::ast::{Expr, TypeSpec};
use avocet_sql::parse::statement::{ColumnSpec, CreateTable, DefaultSpec};
use avocet_sql::plan::{BoundQuery, ColumnId, ColumnInfo, QueryBody};
use avocet_sql::qualify;
use avocet_types::convert::store;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr as BoundExpr, ExprKind as BoundKind, Function, RowProgram};
use avocet_types::geometry::{GeometryType, ReferenceSystem};
use avocet_types::members::{MAX_ENUM, MAX_SET, MembersError};
use avocet_types::names;
use avocet_types::schema::{ColumnDef, DefaultValue, TableDef};
use avocet_types::{Collation, Datum, Decimal, IntWidth, LobSize, Members, RealFormat, SqlType, Value};

use super::row_size::MAX_ROW_BYTES;
use super::{check_name, finished, indexes};
use crate::analytics::RunningQuery;
use crate::collect::{Collected, for_each_row};
use crate::run::Text;
use crate::select::Purpose;
use crate::settings::collation_of;
use crate::state::{Level, Session};

/// Of FLOAT(M,D) and DOUBLE(M,D).
const MOST_DIGITS_OF_REAL: u64 = 255;
const MOST_DECIMALS: u64 = 30;

/// MySQL's limits.
const MAX_FSP: u64 = 6;
/// Of a FLOAT or DOUBLE that an expression gives and that has a fixed number of digits after the point.
const DIGITS_OF_FLOAT: u8 = 12;
const DIGITS_OF_DOUBLE: u8 = 22;
/// Characters or bytes of a string that an expression gives and that is kept in the row.
const MOST_IN_ROW: u32 = 512;
/// Characters of a member of ENUM or SET.
const MAX_MEMBER_CHARS: usize = 255;

/// The columns that CREATE TABLE … AS SELECT makes of a query's outputs.
pub(crate) fn of_query(bound: &BoundQuery) -> Vec<ColumnDef> {
    let mut columns = of_view(bound);
    for (column, info) in columns.iter_mut().zip(bound.output()) {
        let stored = info.origin.as_ref().map(|origin| &origin.table.columns[origin.column]);
        if let Some(stored) = stored.filter(|_| !is_direct(info)) {
            column.default = default_through(stored, info);
            column.on_update_now = false;
        }
        // What a derived table or a view computed with YEAR() is any year.
        if stored.is_none() && column.ty == SqlType::Year && info.label.is_some() {
            column.ty = SqlType::Int { width: IntWidth::W32, unsigned: true };
        }
    }
    columns
}

/// The columns of a view, with what is said of those of its tables.
pub(crate) fn of_view(bound: &BoundQuery) -> Vec<ColumnDef> {
    let is_union = matches!(bound.body.body, QueryBody::SetOperation(_));
    let ints = created_as_ints(bound);
    let varying = created_as_varying(bound);
    let column = |(id, info): (&ColumnId, &ColumnInfo)| {
        let computed = match info.ty {
            SqlType::Binary { len } if varying.contains(id) => {
                computed_type(SqlType::VarBinary { len }, is_union)
            }
            SqlType::Int { width: IntWidth::W64, unsigned } if ints.contains(id) => {
                SqlType::Int { width: IntWidth::W32, unsigned }
            }
            ty => computed_type(ty, is_union),
        };
        let stored = info.origin.as_ref().map(|origin| &origin.table.columns[origin.column]);
        ColumnDef {
            name: info.name.to_string(),
            ty: match info.ty {
                SqlType::Null => SqlType::VarBinary { len: 0 },
                ty if stored.is_some() => ty,
                _ => computed,
            },
            nullable: info.nullable,
            default: match stored {
                Some(column) => default_of(column),
                None => computed_default(&computed).filter(|_| !info.nullable),
            },
            on_update_now: stored.is_some_and(|column| column.on_update_now),
            auto_increment: false,
            generated: None,
            invisible: false,
            collation_named: stored.is_some_and(|column| column.collation_named),
            zerofill: stored.and_then(|column| column.zerofill),
            comment: stored.map(|column| column.comment.clone()).unwrap_or_default(),
        }
    };
    bound.body.outputs.iter().zip(bound.output()).map(column).collect()
}

/// The outputs of a plain query that are CAST AS BINARY(n) and bit literals: values of that length, but of columns of any.
fn created_as_varying(bound: &BoundQuery) -> Vec<ColumnId> {
    let QueryBody::Select(select) = &bound.body.body else { return Vec::new() };
    let is_written = |expr: &BoundExpr| matches!(expr.kind, BoundKind::Cast(_) | BoundKind::Literal(_));
    select.projection.iter().filter(|item| is_written(&item.expr)).map(|item| item.id).collect()
}

/// The outputs of a plain query whose columns are INTs, though they are computed as BIGINTs.
fn created_as_ints(bound: &BoundQuery) -> Vec<ColumnId> {
    let QueryBody::Select(select) = &bound.body.body else { return Vec::new() };
    select.projection.iter().filter(|item| item.expr.is_created_as_int()).map(|item| item.id).collect()
}

/// How many characters the numbers of a column of ZEROFILL are shown with, at least.
fn zerofill_of(spec: &TypeSpec, ty: &SqlType) -> Option<u8> {
    if !spec.zerofill {
        return None;
    }
    Some(match *ty {
        SqlType::Int { width, .. } => match spec.args.first() {
            Some(given @ 1..=255) => *given as u8,
            _ => match width {
                IntWidth::W8 => 3,
                IntWidth::W16 => 5,
                IntWidth::W24 => 8,
                IntWidth::W32 => 10,
                IntWidth::W64 => 20,
            },
        },
        SqlType::Decimal { precision, scale, .. } => precision + u8::from(scale > 0),
        SqlType::Float(real) => real.digits.map_or(12, |(digits, _)| digits),
        SqlType::Double(real) => real.digits.map_or(22, |(digits, _)| digits),
        _ => return None,
    })
}

/// Whether it is a column of a table that the query itself names.
fn is_direct(info: &ColumnInfo) -> bool {
    let (Some(label), Some(origin)) = (&info.label, &info.origin) else { return true };
    // Rows that were gathered for windows.
    label.org_table.is_none() && !label.keeps_keys && label.table == origin.alias
}

/// The default of a column that came through a view or a derived table: constants if its rows are gathered; if it is merged, what a
/// computed column has.
fn default_through(column: &ColumnDef, info: &ColumnInfo) -> Option<DefaultValue> {
    let is_merged = info.label.as_ref().is_some_and(|label| label.keeps_keys);
    match &column.default {
        Some(DefaultValue::Now) => None,
        Some(DefaultValue::Const(_)) if is_merged => match column.ty {
            _ if info.nullable => None,
            SqlType::Enum(_) => Some(DefaultValue::Const(Value::UInt(1))),
            ty => computed_default(&ty),
        },
        _ => default_of(column),
    }
}

/// What a column of a new table has for a default that holds another column's values: instead of numbers of its own, 0.
fn default_of(column: &ColumnDef) -> Option<DefaultValue> {
    let zero = || match column.ty.is_unsigned() {
        true => Value::UInt(0),
        false => Value::Int(0),
    };
    match &column.default {
        None if column.auto_increment => Some(DefaultValue::Const(zero())),
        default => default.clone(),
    }
}

/// The type of a column that holds what an expression gives: what may have more than 512 characters is a TEXT or BLOB, which
/// takes no room in the row (`CONVERT_IF_BIGGER_TO_BLOB`), and what may be longer than a BLOB is a LONG one, but for unions.
fn computed_type(ty: SqlType, is_union: bool) -> SqlType {
    let size = |bytes: u64| match LobSize::for_bytes(bytes) {
        LobSize::Tiny => LobSize::Normal,
        LobSize::Medium if !is_union => LobSize::Long,
        size => size,
    };
    match ty {
        SqlType::Char { len, collation } | SqlType::VarChar { len, collation } if len > MOST_IN_ROW => {
            SqlType::Text { size: size(u64::from(len) * 4), collation }
        }
        SqlType::Binary { len } | SqlType::VarBinary { len } if len > MOST_IN_ROW => {
            SqlType::Blob { size: size(len.into()) }
        }
        SqlType::Text { size: LobSize::Medium, collation } if !is_union => {
            SqlType::Text { size: LobSize::Long, collation }
        }
        SqlType::Blob { size: LobSize::Medium } if !is_union => SqlType::Blob { size: LobSize::Long },
        SqlType::Double(RealFormat { unsigned, digits: Some((u8::MAX, decimals)) }) => {
            SqlType::Double(RealFormat { unsigned, digits: Some((DIGITS_OF_DOUBLE.max(decimals), decimals)) })
        }
        SqlType::Float(RealFormat { unsigned, digits: Some((u8::MAX, decimals)) }) => {
            SqlType::Float(RealFormat { unsigned, digits: Some((DIGITS_OF_FLOAT.max(decimals), decimals)) })
        }
        ty => ty,
    }
}

/// What a column of a new table has for a default that holds what an expression gives, which is never NULL.
fn computed_default(ty: &SqlType) -> Option<DefaultValue> {
    let value = match *ty {
        SqlType::Int { unsigned: true, .. } => Value::UInt(0),
        SqlType::Bool | SqlType::Int { .. } => Value::Int(0),
        SqlType::Decimal { scale, .. } => Value::Decimal(Decimal::new(0, scale)),
        SqlType::Float(_) => Value::Float(0.0),
        SqlType::Double(_) => Value::Double(0.0),
        SqlType::Char { .. } | SqlType::VarChar { .. } => Value::str(""),
        SqlType::Binary { .. } | SqlType::VarBinary { .. } => Value::bytes(&[]),
        SqlType::Time { .. } => Value::Time(0),
        _ => return None,
    };
    Some(DefaultValue::Const(value))
}

impl Session {
    /// The definition that a CREATE TABLE asks for. Columns of its query follow its own, unless they are of one name.
    pub(crate) fn table_def(
        &mut self,
        create: &CreateTable,
        database: String,
        name: String,
        of_query: Vec<ColumnDef>,
        text: &Text<'_>,
    ) -> Result<TableDef, SqlError> {
        let inherited = self.catalog().database(&database).map_or(Collation::DEFAULT, |d| d.collation);
        let options = &create.options;
        let collation = collation_of(
            options.charset.as_deref(),
            options.collation.as_deref(),
            self.settings.utf8mb4_collation,
        )?
        .unwrap_or(inherited);
        let mut def = TableDef {
            id: TableId(0),
            database,
            name,
            columns: Vec::with_capacity(create.columns.len() + of_query.len()),
            indexes: Vec::new(),
            default_collation: collation,
            comment: options.comment.clone().unwrap_or_default(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            kept_keys: Vec::new(),
            partitioning: None,
            view: None,
            created_us: Some(self.now_us()),
            stated: options.stated(),
            stored: None,
        };
        let redefined = |name: &str| of_query.iter().any(|c| names::eq(&c.name, name));
        let own = create.columns.iter().filter(|spec| !redefined(&spec.name.name));
        for spec in own {
            let column = self.column_def(spec, collation, text)?;
            push_column(&mut def, column)?;
        }
        for column in of_query {
            qualify::check_name(&column.name)?;
            let spec = create.columns.iter().find(|spec| names::eq(&spec.name.name, &column.name));
            let column = match spec {
                Some(spec) if spec.generated.is_some() => {
                    return Err(
                        ErrorCode::NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN.with(&[&column.name, &def.name])
                    );
                }
                Some(spec) => self.column_def(spec, collation, text)?,
                None => column,
            };
            push_column(&mut def, column)?;
        }
        if def.columns.is_empty() {
            return Err(ErrorCode::TABLE_MUST_HAVE_COLUMNS.with(&[]));
        }
        indexes::define(&mut def, create, &|expr| self.kept_text(expr, text))?;
        for spec in &create.checks {
            self.add_check(&mut def, spec, text)?;
        }
        self.define_foreign_keys(&mut def, create)?;
        indexes::check_auto(&def)?;
        if let Some(by) = &create.partitions {
            self.partition(&mut def, by, text)?;
        }
        finished::check(&def)?;
        self.check_comments(&mut def)?;
        self.warn_of_duplicate_indexes(&def);
        Ok(def)
    }

    pub(super) fn column_def(
        &mut self,
        spec: &ColumnSpec,
        collation: Collation,
        text: &Text<'_>,
    ) -> Result<ColumnDef, SqlError> {
        let name = &spec.name.name;
        check_name(name, ErrorCode::WRONG_COLUMN_NAME)?;
        let ty = self.type_of(&spec.ty, name, collation)?;
        let ty = with_srid(ty, spec.srid)?;
        let nullable = spec.nullable.unwrap_or(true) && !spec.primary_key && !spec.auto_increment;
        if spec.primary_key && spec.nullable == Some(true) {
            return Err(ErrorCode::PRIMARY_CANT_HAVE_NULL.with(&[]));
        }
        if spec.auto_increment {
            let countable = matches!(ty, SqlType::Bool | SqlType::Int { .. });
            if !countable {
                return Err(ErrorCode::WRONG_FIELD_SPEC.with(&[name]));
            }
            if spec.default.is_some() {
                return Err(ErrorCode::INVALID_DEFAULT.with(&[name]));
            }
        }
        if spec.on_update_now && !matches!(ty, SqlType::DateTime { .. } | SqlType::Timestamp { .. }) {
            return Err(ErrorCode::INVALID_ON_UPDATE.with(&[name]));
        }
        let mut column = ColumnDef {
            name: name.clone(),
            ty,
            nullable,
            default: None,
            on_update_now: spec.on_update_now,
            auto_increment: spec.auto_increment,
            generated: self.generated_def(spec, text)?,
            invisible: spec.invisible,
            collation_named: names_collation(&spec.ty, &ty),
            zerofill: zerofill_of(&spec.ty, &ty),
            comment: spec.comment.clone().unwrap_or_default(),
        };
        if let Some(default) = &spec.default {
            column.default = self.column_default(&column, default, text)?;
        }
        Ok(column)
    }

    /// A column's type. Out of strict mode, a VARCHAR or VARBINARY that is too long for one becomes a TEXT or BLOB.
    fn type_of(&mut self, spec: &TypeSpec, column: &str, inherited: Collation) -> Result<SqlType, SqlError> {
        let utf8mb4 = self.settings.utf8mb4_collation;
        let error = match type_of(spec, column, inherited, utf8mb4) {
            Err(error) if error.errno == ErrorCode::TOO_BIG_FIELDLENGTH.errno => error,
            result => return result,
        };
        let (from, to) = match spec.name.as_str() {
            "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => ("VARCHAR", "TEXT"),
            "VARBINARY" => ("VARBINARY", "BLOB"),
            _ => return Err(error),
        };
        if self.settings.sql_mode.is_strict() {
            return Err(error);
        }
        let ty = type_of(&TypeSpec { name: to.into(), ..spec.clone() }, column, inherited, utf8mb4)?;
        self.warn(Level::Note, 1246, format!("Converting column '{column}' from {from} to {to}"));
        Ok(ty)
    }

    /// A column's DEFAULT: a constant of the column's type, the current time, or an expression. DEFAULT NULL is no default.
    pub(super) fn column_default(
        &mut self,
        column: &ColumnDef,
        default: &DefaultSpec,
        text: &Text<'_>,
    ) -> Result<Option<DefaultValue>, SqlError> {
        match default {
            DefaultSpec::Value(value) => self.plain_default(column, value, text),
            DefaultSpec::Expr(expr) => {
                Place::Default(&column.name).check(expr)?;
                Ok(Some(DefaultValue::Expr(self.kept_text(expr, text))))
            }
        }
    }

    fn plain_default(
        &mut self,
        column: &ColumnDef,
        default: &Expr,
        text: &Text<'_>,
    ) -> Result<Option<DefaultValue>, SqlError> {
        let invalid = || ErrorCode::INVALID_DEFAULT.with(&[&column.name]);
        let view = self.view();
        let none = Arc::new(no_columns());
        let bound = TableBinder::new(text.source, &view, &[], &none, None).expr(default, Clause::Select)?;
        if bound.is_null_literal() {
            return if column.nullable { Ok(None) } else { Err(invalid()) };
        }
        if let Some(members) = column.ty.members() {
            return match bound.as_literal() {
                Some(Datum::Str(text)) => {
                    member_default(&column.ty, members, text).map(Some).ok_or_else(invalid)
                }
                _ => Err(invalid()),
            };
        }
        let has_none = matches!(
            column.ty,
            SqlType::Text { .. } | SqlType::Blob { .. } | SqlType::Json | SqlType::Geometry { .. }
        );
        if has_none {
            let error = ErrorCode::BLOB_CANT_HAVE_DEFAULT.with(&[&column.name]);
            let is_string = matches!(column.ty, SqlType::Text { .. } | SqlType::Blob { .. });
            let is_empty = matches!(bound.as_literal(), Some(Datum::Str(text)) if text.is_empty());
            if !is_string || !is_empty || self.settings.sql_mode.is_strict() {
                return Err(error);
            }
            self.warn(Level::Warning, error.errno, error.message);
            return Ok(None);
        }
        if let Some(fsp) = now_precision(&bound) {
            let fits = matches!(column.ty, SqlType::DateTime { fsp: own } | SqlType::Timestamp { fsp: own } if own == fsp);
            return if fits { Ok(Some(DefaultValue::Now)) } else { Err(invalid()) };
        }
        if !bound.is_immutable_constant() {
            return Err(invalid());
        }
        let bound = avocet_types::expr::Typer::assigned(bound, &column.ty);
        let value = RowProgram::compile(&bound)?.eval_const(&[], &self.context)?.into_owned();
        let mut context = self.convert_context(false);
        context.strict = true;
        let value = match store(value.clone(), &bound.ty, &column.ty, &context) {
            Ok(stored) => stored.value.into_owned(),
            Err(_) if column.ty.is_temporal() => self.refused_default(value, &bound.ty, column)?,
            Err(_) => return Err(invalid()),
        };
        Ok(Some(DefaultValue::Const(value)))
    }

    /// Runs a query whose rows are to fill a new table, until it is known whether there are many.
    pub(crate) async fn begin_filling(
        &mut self,
        bound: BoundQuery,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
    ) -> Result<Filling, SqlError> {
        self.set_storing(true);
        let types: Vec<SqlType> = bound.output().map(|column| column.ty).collect();
        let mut first = self.collected();
        if self.run_in_place(&bound, &tables, text, &mut first, Purpose::Value).await?.is_some() {
            return Ok(Filling { first, types, rest: None });
        }
        let reader = self.txn().reader();
        let mut rest = self.start_analytics(reader.into(), Arc::new(bound), tables, text)?;
        while !self.is_much(&first) {
            let Some(batch) = rest.next().await? else { return Ok(Filling { first, types, rest: None }) };
            first.add(&batch, &types)?;
        }
        Ok(Filling { first, types, rest: Some(rest) })
    }

    /// Stores a query's rows in a table that was made for them, whose last columns they are but for hidden ones. Blocks while the query runs.
    pub(crate) fn fill(
        &mut self,
        txn: &mut Txn,
        table: &Arc<TableHandle>,
        first: usize,
        rows: &mut Filling,
    ) -> Result<Filled, SqlError> {
        self.set_storing(true);
        let storing = self.storing(false);
        let (mut number, mut first_generated) = (0, 0);
        let mut bulk = crate::bulk::Bulk::new(table);
        let many = self.is_much(&rows.first);
        let rules = rules_of(table)?;
        let mut each = |values: Vec<(Value, SqlType)>| {
            number += 1;
            self.info.interrupt.check()?;
            let mut row = Vec::with_capacity(table.def.columns.len());
            for column in &table.def.columns[..first] {
                row.push(match column.auto_increment {
                    true => {
                        let generated = table.reserve_auto_increment(1);
                        if first_generated == 0 {
                            first_generated = generated;
                        }
                        Datum::Int(generated as i64)
                    }
                    // Computed below.
                    false if column.is_computed() => Datum::Null,
                    false => self.default_value(column, &storing, true)?,
                });
            }
            for ((value, ty), column) in values.into_iter().zip(&table.def.columns[first..]) {
                row.push(self.store(value, &ty, column, &storing, number)?);
            }
            let given = first..row.len();
            row.resize(table.def.columns.len(), Datum::Null);
            if let Some(rules) = rules {
                let is_given: Vec<bool> = (0..row.len()).map(|at| given.contains(&at)).collect();
                self.compute_missing(rules, &table.def.columns, &mut row, &is_given, &storing, number)?;
                rules.check(&&row[..], &self.context)?;
            }
            if many {
                bulk.push(txn, &row)
            } else {
                txn.insert(table, &row)?;
                Ok(())
            }
        };
        rows.first.take().for_each(&mut each)?;
        if let Some(rest) = &mut rows.rest {
            while let Some(batch) = rest.next_in_place()? {
                for_each_row(&batch, &rows.types, &mut each)?;
            }
        }
        bulk.finish(txn)?;
        Ok(Filled { rows: number, first_generated })
    }
}

/// What CREATE TABLE … SELECT has stored.
pub(crate) struct Filled {
    pub rows: u64,
    /// The first AUTO_INCREMENT value that was generated; 0 if none was.
    pub first_generated: u64,
}

/// The rows that fill a new table: those that came first, and the query that goes on giving them.
pub(crate) struct Filling {
    first: Collected,
    types: Vec<SqlType>,
    rest: Option<RunningQuery>,
}

fn push_column(def: &mut TableDef, column: ColumnDef) -> Result<(), SqlError> {
    if def.column(&column.name).is_some() {
        return Err(ErrorCode::DUP_FIELDNAME.with(&[&column.name]));
    }
    def.columns.push(column);
    finished::check_number_of_columns(def)
}

fn no_columns() -> TableDef {
    TableDef {
        id: TableId(0),
        database: String::new(),
        name: String::new(),
        columns: Vec::new(),
        indexes: Vec::new(),
        default_collation: Collation::DEFAULT,
        comment: String::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        kept_keys: Vec::new(),
        partitioning: None,
        view: None,
        created_us: None,
        stated: Default::default(),
        stored: None,
    }
}

/// The precision of a CURRENT_TIMESTAMP.
fn now_precision(expr: &BoundExpr) -> Option<u8> {
    match &expr.kind {
        BoundKind::Call(Function::Now, _) => expr.ty.fsp(),
        _ => None,
    }
}

/// A DEFAULT of members: all of the text is names, which may not be numbers.
fn member_default(ty: &SqlType, members: Members, text: &str) -> Option<DefaultValue> {
    let value = match ty {
        SqlType::Set(_) => Some(members.bits(text)).filter(|(_, all)| *all).map(|(bits, _)| bits),
        _ => members.number(text),
    };
    value.map(|value| DefaultValue::Const(Datum::UInt(value)))
}

/// The members of an ENUM or SET (`kind`), at most `most` of them.
fn members(
    spec: &TypeSpec,
    column: &str,
    kind: &str,
    most: usize,
    collation: Collation,
) -> Result<Members, SqlError> {
    if spec.values.len() > most {
        return Err(ErrorCode::TOO_BIG_SET.with(&[&column, &kind]));
    }
    if let Some(name) = spec.values.iter().find(|name| most == MAX_SET && name.contains(',')) {
        return Err(ErrorCode::ILLEGAL_VALUE_FOR_TYPE.with(&[&"set", name]));
    }
    if spec.values.iter().any(|name| name.chars().count() > MAX_MEMBER_CHARS) {
        return Err(ErrorCode::TOO_LONG_SET_ENUM_VALUE.with(&[&column]));
    }
    Members::new(spec.values.clone(), collation).map_err(|error| member_error(error, column, kind))
}

pub(super) fn member_error(error: MembersError, column: &str, kind: &str) -> SqlError {
    match error {
        MembersError::Duplicate(name) => ErrorCode::DUPLICATED_VALUE_IN_TYPE.with(&[&column, &name, &kind]),
        MembersError::TooMany => ErrorCode::TOO_BIG_SET.with(&[&column, &kind]),
        MembersError::NoRoom => ErrorCode::OUT_OF_RESOURCES.with(&[]),
    }
}

/// BIT(n): one bit if nothing is said.
fn bit(spec: &TypeSpec, column: &str) -> Result<SqlType, SqlError> {
    match spec.args.first().copied().unwrap_or(1) {
        0 => Err(ErrorCode::INVALID_FIELD_SIZE.with(&[&column])),
        len @ 1..=64 => Ok(SqlType::Bit { len: len as u8 }),
        _ => Err(ErrorCode::TOO_BIG_DISPLAYWIDTH.with(&[&column, &64])),
    }
}

/// `(M,D)` of FLOAT and DOUBLE.
fn real_format(spec: &TypeSpec, column: &str) -> Result<RealFormat, SqlError> {
    let digits = match *spec.args {
        [digits, decimals, ..] => {
            if decimals > MOST_DECIMALS {
                return Err(ErrorCode::TOO_BIG_SCALE.with(&[&decimals, &column, &MOST_DECIMALS]));
            }
            if digits == 0 || digits > MOST_DIGITS_OF_REAL {
                return Err(ErrorCode::TOO_BIG_DISPLAYWIDTH.with(&[&column, &MOST_DIGITS_OF_REAL]));
            }
            if decimals > digits {
                return Err(ErrorCode::M_BIGGER_THAN_D.with(&[&column]));
            }
            Some((digits as u8, decimals as u8))
        }
        _ => None,
    };
    Ok(RealFormat { unsigned: spec.unsigned, digits })
}

/// The type that a specification means.
/// `utf8mb4`: the collation of a character set of this name alone.
pub(crate) fn type_of(
    spec: &TypeSpec,
    column: &str,
    inherited: Collation,
    utf8mb4: Collation,
) -> Result<SqlType, SqlError> {
    let unsigned = spec.unsigned;
    let width = |width| Ok(SqlType::Int { width, unsigned });
    match spec.name.as_str() {
        "BOOL" | "BOOLEAN" => Ok(SqlType::Bool),
        "TINYINT" | "INT1" if spec.args.first() == Some(&1) && !unsigned => Ok(SqlType::Bool),
        "TINYINT" | "INT1" => width(IntWidth::W8),
        "SMALLINT" | "INT2" => width(IntWidth::W16),
        "MEDIUMINT" | "INT3" | "MIDDLEINT" => width(IntWidth::W24),
        "INT" | "INTEGER" | "INT4" => width(IntWidth::W32),
        "BIGINT" | "INT8" => width(IntWidth::W64),
        "SERIAL" => Ok(SqlType::BIGINT_UNSIGNED),
        "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => decimal(spec, column),
        "FLOAT" | "FLOAT4" => match *spec.args {
            // A number of binary digits.
            [54..=u64::MAX] => Err(ErrorCode::WRONG_FIELD_SPEC.with(&[&column])),
            [25..=u64::MAX] => Ok(SqlType::Double(RealFormat { unsigned, digits: None })),
            [_] => Ok(SqlType::Float(RealFormat { unsigned, digits: None })),
            _ => Ok(SqlType::Float(real_format(spec, column)?)),
        },
        "DOUBLE" => Ok(SqlType::Double(real_format(spec, column)?)),
        "DATE" => Ok(SqlType::Date),
        "DATETIME" => Ok(SqlType::DateTime { fsp: precision(spec, column)? }),
        "TIMESTAMP" => Ok(SqlType::Timestamp { fsp: precision(spec, column)? }),
        "TIME" => Ok(SqlType::Time { fsp: precision(spec, column)? }),
        "YEAR" if spec.args.iter().any(|width| *width != 4) => {
            Err(ErrorCode::INVALID_YEAR_COLUMN_LENGTH.with(&[]))
        }
        "YEAR" => Ok(SqlType::Year),
        "BIT" => bit(spec, column),
        _ => string_type(spec, column, inherited, utf8mb4),
    }
}

fn string_type(
    spec: &TypeSpec,
    column: &str,
    inherited: Collation,
    utf8mb4: Collation,
) -> Result<SqlType, SqlError> {
    let collation = || -> Result<Collation, SqlError> {
        let named = collation_of(spec.charset.as_deref(), spec.collation.as_deref(), utf8mb4)?;
        let named = named.unwrap_or(inherited);
        Ok(if spec.binary { binary_of(named) } else { named })
    };
    let names_binary = spec.charset.as_deref().is_some_and(|c| c.eq_ignore_ascii_case("binary"));
    let names_none = spec.charset.is_none() && spec.collation.is_none();
    let binary_charset = names_binary || names_none && inherited == Collation::BINARY;
    let length = |default: Option<u64>, max: u64| -> Result<u32, SqlError> {
        let len = spec
            .args
            .first()
            .copied()
            .or(default)
            .ok_or_else(|| ErrorCode::PARSE_ERROR.with(&[&spec.name, &1]))?;
        if len > max {
            return Err(ErrorCode::TOO_BIG_FIELDLENGTH.with(&[&column, &max]));
        }
        Ok(len as u32)
    };
    let text = |size| -> Result<SqlType, SqlError> {
        Ok(if binary_charset {
            SqlType::Blob { size }
        } else {
            SqlType::Text { size, collation: collation()? }
        })
    };
    match spec.name.as_str() {
        "CHAR" | "CHARACTER" | "NCHAR" if binary_charset => {
            Ok(SqlType::Binary { len: length(Some(1), 255)? })
        }
        "CHAR" | "CHARACTER" | "NCHAR" => {
            Ok(SqlType::Char { len: length(Some(1), 255)?, collation: collation()? })
        }
        "VARCHAR" | "VARCHARACTER" | "NVARCHAR" if binary_charset => {
            Ok(SqlType::VarBinary { len: length(None, MAX_ROW_BYTES)? })
        }
        "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => {
            let collation = collation()?;
            let max = MAX_ROW_BYTES / u64::from(collation.info().charset.max_len());
            Ok(SqlType::VarChar { len: length(None, max)?, collation })
        }
        "ENUM" | "SET" => {
            let collation = if binary_charset { Collation::BINARY } else { collation()? };
            Ok(match spec.name.as_str() {
                "ENUM" => SqlType::Enum(members(spec, column, "ENUM", MAX_ENUM, collation)?),
                _ => SqlType::Set(members(spec, column, "SET", MAX_SET, collation)?),
            })
        }
        "BINARY" => Ok(SqlType::Binary { len: length(Some(1), 255)? }),
        "VARBINARY" => Ok(SqlType::VarBinary { len: length(None, MAX_ROW_BYTES)? }),
        "TINYTEXT" => text(LobSize::Tiny),
        "TEXT" => text(size_for(spec.args.first(), 4)),
        "MEDIUMTEXT" => text(LobSize::Medium),
        "LONGTEXT" => text(LobSize::Long),
        "TINYBLOB" => Ok(SqlType::Blob { size: LobSize::Tiny }),
        "BLOB" => Ok(SqlType::Blob { size: size_for(spec.args.first(), 1) }),
        "MEDIUMBLOB" => Ok(SqlType::Blob { size: LobSize::Medium }),
        "LONGBLOB" => Ok(SqlType::Blob { size: LobSize::Long }),
        "JSON" => Ok(SqlType::Json),
        other => match GeometryType::by_name(other) {
            Some(ty) => Ok(SqlType::Geometry { ty, srid: None }),
            None => Err(unsupported(format_args!("type {other}"))),
        },
    }
}

/// Whether a specification says in which character set or collation its texts are.
fn names_collation(spec: &TypeSpec, ty: &SqlType) -> bool {
    ty.declared_collation().is_some() && (spec.charset.is_some() || spec.collation.is_some() || spec.binary)
}

/// A spatial type with the reference system that its column names.
fn with_srid(ty: SqlType, srid: Option<u32>) -> Result<SqlType, SqlError> {
    match (ty, srid) {
        (ty, None) => Ok(ty),
        (SqlType::Geometry { ty, .. }, Some(srid)) => match ReferenceSystem::by_id(srid) {
            Some(_) => Ok(SqlType::Geometry { ty, srid: Some(srid) }),
            None => Err(ErrorCode::SRS_NOT_FOUND.with(&[&srid])),
        },
        (_, Some(_)) => Err(ErrorCode::WRONG_USAGE.with(&[&"SRID", &"non-geometry column"])),
    }
}

/// `TEXT(n)` is the smallest that holds n characters.
fn size_for(len: Option<&u64>, bytes_per_char: u64) -> LobSize {
    let Some(bytes) = len.map(|len| len.saturating_mul(bytes_per_char)) else { return LobSize::Normal };
    let sizes = [LobSize::Tiny, LobSize::Normal, LobSize::Medium];
    sizes.into_iter().find(|size| bytes <= size.max_bytes()).unwrap_or(LobSize::Long)
}

/// The `_bin` collation of the same character set.
fn binary_of(collation: Collation) -> Collation {
    let name = format!("{}_bin", collation.info().charset.name());
    Collation::by_name(&name).unwrap_or(collation)
}

fn precision(spec: &TypeSpec, column: &str) -> Result<u8, SqlError> {
    match spec.args.first() {
        None => Ok(0),
        Some(fsp) if *fsp <= MAX_FSP => Ok(*fsp as u8),
        Some(fsp) => Err(ErrorCode::TOO_BIG_PRECISION.with(&[fsp, &column, &MAX_FSP])),
    }
}

fn decimal(spec: &TypeSpec, column: &str) -> Result<SqlType, SqlError> {
    let precision = match spec.args.first() {
        None | Some(0) => 10,
        Some(p) if *p <= 65 => *p,
        Some(p) => return Err(ErrorCode::TOO_BIG_PRECISION.with(&[p, &column, &65])),
    };
    let scale = spec.args.get(1).copied().unwrap_or(0);
    if scale > 30 {
        return Err(ErrorCode::TOO_BIG_SCALE.with(&[&scale, &column, &30]));
    }
    if scale > precision {
        return Err(ErrorCode::M_BIGGER_THAN_D.with(&[&column]));
    }
    Ok(SqlType::Decimal { precision: precision as u8, scale: scale as u8, unsigned: spec.unsigned })
}
