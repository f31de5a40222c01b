//! Aggregate functions: argument conversion and MySQL's result types (manual, 14.19.1).

use std::hash::{DefaultHasher, Hash, Hasher};

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::typing::as_double;
use avocet_types::expr::{CompareOp, Expr, Function, Typer, ValueClass, refuse_geometries};
use avocet_types::{Collation, Datum, Decimal, IntWidth, LobSize, RealFormat, SqlType};

use crate::bind::scope::Clause;
use crate::bind::{Binder, unsupported};
use crate::parse::ast::{self, ExprKind};
use crate::plan::{Aggregate, AggregateFunction, ColumnId};

fn function_of(name: &str) -> Option<AggregateFunction> {
    Some(match name {
        "COUNT" => AggregateFunction::Count,
        "SUM" => AggregateFunction::Sum,
        "AVG" => AggregateFunction::Avg,
        "MIN" => AggregateFunction::Min,
        "MAX" => AggregateFunction::Max,
        "BIT_AND" => AggregateFunction::BitAnd,
        "BIT_OR" => AggregateFunction::BitOr,
        "BIT_XOR" => AggregateFunction::BitXor,
        "STD" | "STDDEV" | "STDDEV_POP" => AggregateFunction::StddevPop,
        "STDDEV_SAMP" => AggregateFunction::StddevSamp,
        "VARIANCE" | "VAR_POP" => AggregateFunction::VarPop,
        "VAR_SAMP" => AggregateFunction::VarSamp,
        "GROUP_CONCAT" => AggregateFunction::GroupConcat,
        "JSON_ARRAYAGG" => AggregateFunction::JsonArrayAgg,
        "JSON_OBJECTAGG" => AggregateFunction::JsonObjectAgg,
        "ANY_VALUE" => AggregateFunction::AnyValue,
        _ => return None,
    })
}

/// `latin1_bin`: every byte is a character of it.
const BYTES_AS_TEXT: Collation = Collation(47);
/// `utf8mb4_0900_bin`, under which no two texts are equal, whatever blanks they end with.
const BY_CODES: Collation = Collation(309);

/// Precision and scale of a number as a decimal; None for what sums up as DOUBLE.
fn digits_of(ty: &SqlType) -> Option<(u8, u8)> {
    Some(match *ty {
        SqlType::Decimal { precision, scale, .. } => (precision, scale),
        SqlType::Bool => (3, 0),
        SqlType::Year => (4, 0),
        SqlType::Int { width, unsigned } => match width {
            IntWidth::W8 => (3, 0),
            IntWidth::W16 => (5, 0),
            IntWidth::W24 => (8, 0),
            IntWidth::W32 => (10, 0),
            IntWidth::W64 if unsigned => (20, 0),
            IntWidth::W64 => (19, 0),
        },
        _ => return None,
    })
}

/// SUM: 22 digits more.
fn sum_type(ty: &SqlType) -> SqlType {
    let Some((precision, scale)) = digits_of(ty) else { return as_double(ty) };
    let precision = (precision + 22).min(Decimal::MAX_PRECISION);
    SqlType::Decimal { precision, scale, unsigned: false }
}

/// AVG: as many digits more, all behind the point, as a division gives.
fn average_type(ty: &SqlType, increment: u8) -> SqlType {
    let Some((precision, scale)) = digits_of(ty) else {
        return match as_double(ty) {
            SqlType::Double(RealFormat { digits: Some((_, decimals)), .. }) => {
                SqlType::Double(RealFormat::shown_with(decimals.saturating_add(increment)))
            }
            ty => ty,
        };
    };
    let precision = (precision + increment).min(Decimal::MAX_PRECISION);
    let scale = (scale + increment).min(Decimal::MAX_SCALE).min(precision);
    SqlType::Decimal { precision, scale, unsigned: false }
}

impl Binder<'_> {
    /// `f(…)` or `f(…) OVER …`
    pub(super) fn aggregate(&mut self, call: &ast::AggregateCall) -> Result<Expr, SqlError> {
        let function = function_of(&call.name).ok_or_else(|| unsupported(format_args!("{}()", call.name)))?;
        if call.over.is_some() {
            return self.window_aggregate(call, function);
        }
        if function == AggregateFunction::AnyValue {
            let args = self.exprs(&call.args)?;
            return Ok(self.typer.call(Function::AnyValue, args)?);
        }
        if self.block().in_aggregate {
            return Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]));
        }
        let block = self.block();
        (block.in_aggregate, block.names_outer_item) = (true, false);
        let parts = self.aggregate_parts(call, function);
        self.block().in_aggregate = false;
        let mut aggregate = parts?;
        let of_bytes = aggregate.of_bytes;
        let depth = self.place_of(&aggregate).ok_or_else(|| ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]))?;
        let owner = &mut self.blocks[depth];
        owner.is_aggregated |= !owner.in_window_keys;
        let hash = hash_of(&aggregate);
        let alike = owner.alike_aggregates.get(&hash).into_iter().flatten();
        let id = match alike.map(|at| &owner.aggregates[*at]).find(|a| same_aggregate(a, &aggregate)) {
            Some(same) => same.id,
            None => {
                let (ty, nullable) = result_type(function, &aggregate.args, &self.typer);
                aggregate.id = self.add_column(call.name.to_lowercase(), ty, nullable);
                let id = aggregate.id;
                // Texts of literals and numbers insist on their collation no more than these do.
                if ty.is_string() && aggregate.args.iter().all(|arg| self.typer.is_coercible(arg)) {
                    self.typer.coercible_columns.insert(id.index());
                }
                let owner = &mut self.blocks[depth];
                owner.alike_aggregates.entry(hash).or_default().push(owner.aggregates.len());
                owner.aggregates.push(aggregate);
                id
            }
        };
        if depth + 1 < self.blocks.len() {
            self.cross(depth, id);
        }
        let value = self.column_expr(id);
        if !of_bytes {
            return Ok(value);
        }
        let bytes =
            self.typer.convert(value, SqlType::Text { size: LobSize::Normal, collation: BYTES_AS_TEXT });
        Ok(self.typer.convert(bytes, SqlType::Blob { size: LobSize::Normal }))
    }

    /// `GROUPING(key, …)`
    pub(super) fn grouping(&mut self, args: &[ast::Expr]) -> Result<Expr, SqlError> {
        let block = self.block();
        if !block.clause.allows_aggregates() || block.in_aggregate {
            return Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]));
        }
        block.in_aggregate = true;
        let args = self.exprs(args);
        self.block().in_aggregate = false;
        let id = self.add_grouping(args?);
        Ok(self.column_expr(id))
    }

    pub(super) fn add_grouping(&mut self, args: Vec<Expr>) -> ColumnId {
        let aggregate = Aggregate {
            id: ColumnId(u32::MAX),
            function: AggregateFunction::Grouping,
            args,
            distinct: false,
            order_by: Vec::new(),
            separator: "".into(),
            of_bytes: false,
        };
        if let Some(same) = self.block().aggregates.iter().find(|a| same_aggregate(a, &aggregate)) {
            return same.id;
        }
        let id = self.add_column("grouping", SqlType::BIGINT, false);
        self.block().aggregates.push(Aggregate { id, ..aggregate });
        id
    }

    /// The call with its arguments converted; its id is not given yet.
    pub(super) fn aggregate_parts(
        &mut self,
        call: &ast::AggregateCall,
        function: AggregateFunction,
    ) -> Result<Aggregate, SqlError> {
        let mut args = match function {
            AggregateFunction::JsonArrayAgg => self.call_args(Function::JsonArray, &call.args)?,
            AggregateFunction::JsonObjectAgg => self.call_args(Function::JsonObject, &call.args)?,
            _ => self.exprs(&call.args)?,
        };
        // Each row's element or member as a document, of which none is NULL.
        match function {
            AggregateFunction::JsonArrayAgg if args.len() == 1 => {
                args = vec![self.typer.call(Function::JsonArray, args)?];
            }
            AggregateFunction::JsonObjectAgg if args.len() == 2 => {
                args = vec![self.typer.call(Function::JsonObject, args)?];
            }
            AggregateFunction::JsonObjectAgg => return Err(ErrorCode::PARSE_ERROR.with(&[&"", &1])),
            _ => {}
        }
        let single = !matches!(function, AggregateFunction::Count | AggregateFunction::GroupConcat);
        if (single && args.len() != 1)
            || (args.len() > 1 && function == AggregateFunction::Count && !call.distinct)
        {
            return Err(ErrorCode::PARSE_ERROR.with(&[&"", &1]));
        }
        let mut order_by = Vec::with_capacity(call.order_by.len());
        for item in &call.order_by {
            let key = match item.expr.kind {
                // As in a query's ORDER BY: the position of an argument.
                ExprKind::Integer(position) => {
                    let at = usize::try_from(position).ok().and_then(|at| at.checked_sub(1));
                    let unknown = || ErrorCode::BAD_FIELD_ERROR.with(&[&position, &Clause::Order.name()]);
                    at.and_then(|at| args.get(at)).cloned().ok_or_else(unknown)?
                }
                _ => self.expr(&item.expr)?,
            };
            order_by.push((key, item.descending));
        }
        check_geometries(function, &args)?;
        if matches!(function, AggregateFunction::Sum | AggregateFunction::Avg) {
            self.typer.check_operands(&args)?;
        }
        let is_bytes = |arg: &Expr| arg.ty.is_bytes() || matches!(arg.ty, SqlType::Bit { .. });
        let of_bytes = function == AggregateFunction::GroupConcat && args.iter().any(is_bytes);
        if function == AggregateFunction::GroupConcat {
            self.typer.check_together(&args, "group_concat")?;
        }
        let separator = call.separator.as_deref().unwrap_or(",");
        let (args, separator) = match of_bytes {
            true => {
                let args = args.into_iter().map(|arg| self.bytes_as_text(arg)).collect();
                (args, separator.bytes().map(char::from).collect::<String>())
            }
            false => {
                let args = args.into_iter().map(|arg| self.aggregate_arg(function, call.distinct, arg));
                (args.collect::<Result<_, _>>()?, separator.to_owned())
            }
        };
        // DISTINCT changes nothing for these.
        let idempotent = matches!(
            function,
            AggregateFunction::Min
                | AggregateFunction::Max
                | AggregateFunction::BitAnd
                | AggregateFunction::BitOr
        );
        Ok(Aggregate {
            id: ColumnId(u32::MAX),
            function,
            args,
            distinct: call.distinct && !idempotent,
            order_by,
            separator: separator.into(),
            of_bytes,
        })
    }

    /// Bytes as a text that has one character for each, so that equal texts are equal bytes.
    fn bytes_as_text(&self, arg: Expr) -> Expr {
        let arg = if arg.ty.is_string() { arg } else { self.typer.with_zeros(self.typer.decoded(arg)) };
        let size = LobSize::Long;
        let bytes = self.typer.convert(arg, SqlType::Blob { size });
        let text = self.typer.convert(bytes, SqlType::Text { size, collation: BYTES_AS_TEXT });
        self.typer.convert(text, SqlType::Text { size, collation: BY_CODES })
    }

    fn aggregate_arg(
        &self,
        function: AggregateFunction,
        distinct: bool,
        arg: Expr,
    ) -> Result<Expr, SqlError> {
        use AggregateFunction as F;
        let class = ValueClass::of(&arg.ty);
        Ok(match function {
            F::Sum | F::Avg if arg.ty.is_coded() => self.typer.number(arg),
            // Names in the order of their collation.
            F::Min | F::Max | F::GroupConcat if arg.ty.members().is_some() => self.typer.decoded(arg),
            F::Sum | F::Avg => match class {
                ValueClass::Int | ValueClass::Decimal | ValueClass::Double | ValueClass::Null => arg,
                _ => self.typer.number(arg),
            },
            F::StddevPop | F::StddevSamp | F::VarPop | F::VarSamp => self.typer.convert(arg, SqlType::DOUBLE),
            // An empty byte string is what MySQL says of its type.
            F::Min | F::Max if class == ValueClass::Null => {
                self.typer.convert(arg, SqlType::VarBinary { len: 0 })
            }
            F::BitAnd | F::BitOr | F::BitXor => {
                // Binary strings would be put together byte by byte.
                if self.typer.call(Function::BitOr, vec![arg.clone(), arg.clone()])?.ty.is_bytes() {
                    return Err(unsupported("BIT_AND, BIT_OR and BIT_XOR of binary strings"));
                }
                self.typer.call(Function::BitOr, vec![arg, Expr::int(0)])?
            }
            F::GroupConcat if !arg.ty.is_string() => {
                let arg = if distinct && class == ValueClass::Double {
                    self.without_sign_of_zero(arg)?
                } else {
                    arg
                };
                let collation = self.typer.connection_collation;
                let arg = self.typer.with_zeros(self.typer.decoded(arg));
                self.typer.convert(arg, SqlType::Text { size: LobSize::Normal, collation })
            }
            _ => arg,
        })
    }

    /// The two zeros of a FLOAT or DOUBLE are one value, but not one text.
    fn without_sign_of_zero(&self, arg: Expr) -> Result<Expr, SqlError> {
        let zero = match arg.ty {
            SqlType::Float(_) => Datum::Float(0.0),
            _ => Datum::Double(0.0),
        };
        let zero = Expr::literal(zero, arg.ty);
        let is_zero = self.typer.compare(CompareOp::Eq, arg.clone(), zero.clone())?;
        Ok(self.typer.case(None, vec![(is_zero, zero)], Some(arg))?)
    }

    /// The block that an aggregate belongs to: the one of its columns, or where aggregates may not be there, the next one within that
    /// allows them; one without columns to the innermost that does.
    fn place_of(&self, aggregate: &Aggregate) -> Option<usize> {
        let innermost = self.blocks.len() - 1;
        let allows = |depth: &usize| {
            let block = &self.blocks[*depth];
            block.clause.allows_aggregates()
                && !block.has_rows_only
                && !(block.in_aggregate && *depth < innermost)
        };
        match self.owner_of(aggregate) {
            // What an item of an outer block is called is a value here.
            _ if self.blocks[innermost].names_outer_item => {
                self.blocks.iter().rposition(|block| !block.has_rows_only).filter(allows)
            }
            Some(depth) => (depth..=innermost).find(allows),
            None => (0..=innermost).rev().find(allows),
        }
    }

    /// The innermost block of whose columns an aggregate is made. One over nothing but outer columns is the outer block's (manual, 14.19.1).
    fn owner_of(&self, aggregate: &Aggregate) -> Option<usize> {
        let innermost = self.blocks.len() - 1;
        let owns = |depth: usize, id: ColumnId| {
            let block = &self.blocks[depth];
            block.owns(id) || block.subqueries.iter().any(|s| s.subquery.id == id)
        };
        let owner = |id: ColumnId| (0..=innermost).rev().find(|depth| owns(*depth, id));
        let order = aggregate.order_by.iter().map(|(expr, _)| expr);
        let columns = aggregate.args.iter().chain(order).flat_map(Expr::columns);
        columns.filter_map(|index| owner(ColumnId(index as u32))).max()
    }
}

/// Equal for those that are the same.
fn hash_of(aggregate: &Aggregate) -> u64 {
    let mut hasher = DefaultHasher::new();
    aggregate.args.hash(&mut hasher);
    hasher.finish()
}

fn same_aggregate(a: &Aggregate, b: &Aggregate) -> bool {
    a.function == b.function
        && a.distinct == b.distinct
        && a.args == b.args
        && a.order_by == b.order_by
        && a.separator == b.separator
        && !a.args.iter().any(Expr::is_volatile)
}

/// Spatial values have no least and no sum.
fn check_geometries(function: AggregateFunction, args: &[Expr]) -> Result<(), SqlError> {
    use AggregateFunction as F;
    let name = match function {
        F::Sum => "sum",
        F::Avg => "avg",
        F::Min => "min",
        F::Max => "max",
        F::StddevPop | F::StddevSamp => "std",
        F::VarPop | F::VarSamp => "variance",
        _ => return Ok(()),
    };
    Ok(refuse_geometries(args, name)?)
}

/// The result's type and whether it can be NULL.
pub(super) fn result_type(function: AggregateFunction, args: &[Expr], typer: &Typer) -> (SqlType, bool) {
    use AggregateFunction as F;
    let arg = args.first().map_or(SqlType::BIGINT, |arg| arg.ty);
    match function {
        F::Count | F::Grouping => (SqlType::BIGINT, false),
        F::Sum => (sum_type(&arg), true),
        F::Avg => (average_type(&arg, typer.div_precision_increment), true),
        F::Min | F::Max | F::AnyValue => (arg, true),
        F::BitAnd | F::BitOr | F::BitXor => (SqlType::BIGINT_UNSIGNED, false),
        F::StddevPop | F::StddevSamp | F::VarPop | F::VarSamp => (SqlType::DOUBLE, true),
        F::JsonArrayAgg | F::JsonObjectAgg => (SqlType::Json, true),
        F::GroupConcat => (
            SqlType::Text {
                size: LobSize::Normal,
                collation: arg.collation().unwrap_or(typer.connection_collation),
            },
            true,
        ),
    }
}
