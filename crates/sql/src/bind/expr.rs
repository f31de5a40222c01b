//! Scalar expressions: names resolved here, types by the `Typer`.

use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{
    ArithOp, CastTarget, CompareOp, Expr, ExprKind as Bound, Function, OnJsonProblem, SqlMode, Typer,
    UnitFunction,
};
use avocet_types::temporal::{TimeZone, date_of, parse_datetime, parse_time};
use avocet_types::{Datum, Decimal, DefaultValue, SqlType};

use crate::bind::row_subquery::query_of;
use crate::bind::scope::ColumnName;
use crate::bind::upsert::of_new_row;
use crate::bind::{Binder, unsupported};
use crate::parse::ast::{self, BinaryOp, ExprKind, TemporalKind, TrimSide, UnaryOp};
use crate::parse::grow_stack;
use crate::plan::{ColumnId, JoinKind};

/// Expressions that are bound more than once: as many as the longest lists of rows have, and no more in all.
const MOST_REPEATED: usize = 1 << 22;

/// Columns of rows that are ordered.
const MOST_ORDERED: usize = 256;

impl Binder<'_> {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        self.exprs_bound += 1;
        grow_stack(|| self.expr_here(expr))
    }

    /// Binds what was bound before, or will be again. What is nested is bound twice as often with each level.
    pub(super) fn again<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let before = self.exprs_bound;
        let bound = bind(self)?;
        self.exprs_repeated += self.exprs_bound - before;
        if self.exprs_repeated > MOST_REPEATED {
            return Err(ErrorCode::STACK_OVERRUN_NEED_MORE.with(&[&"rows that are compared within rows"]));
        }
        Ok(bound)
    }

    fn expr_here(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        match &expr.kind {
            ExprKind::Null => Ok(Expr::null()),
            ExprKind::Bool(value) => Ok(Expr::bool(*value)),
            ExprKind::Integer(value) => Ok(integer(*value)),
            ExprKind::Decimal(text) => Ok(decimal(text)),
            ExprKind::Float(value) if value.is_infinite() => {
                let text = expr.span.text(self.source.bytes());
                Err(ErrorCode::ILLEGAL_VALUE_FOR_TYPE.with(&[&"double", &text]))
            }
            ExprKind::Float(value) => Ok(Expr::literal(Datum::Double(*value), SqlType::DOUBLE)),
            ExprKind::String { value, charset: None } => Ok(self.typer.string(value.as_str())),
            ExprKind::String { value, charset: Some(charset) } => {
                let collation = charset.default_collation_with(self.typer.utf8mb4_collation);
                Ok(self.typer.introduced(value.as_str(), collation))
            }
            ExprKind::Bytes(bytes) => Ok(self.typer.bytes(bytes.clone())),
            ExprKind::Hybrid { bytes, bits } => Ok(self.typer.hybrid(bytes.clone(), *bits)),
            ExprKind::Temporal { kind, text } => temporal(*kind, text, &self.typer),
            ExprKind::Param(index) => Ok(self.param(*index as usize)),
            ExprKind::Column { database, table, column } => {
                let name = ColumnName {
                    database: database.as_ref().map(|d| d.name.as_str()),
                    table: table.as_ref().map(|t| t.name.as_str()),
                    column: &column.name,
                };
                self.resolve(&name, expr.span)
            }
            ExprKind::SystemVariable { scope, name } => {
                self.session_dependent = true;
                self.catalog.system_variable(*scope, name)
            }
            ExprKind::UserVariable { name, among } if !among.has(name) => {
                self.session_dependent = true;
                Ok(self.catalog.user_variable(name))
            }
            ExprKind::UserVariable { name, .. } => {
                (self.session_dependent, self.assigns) = (true, true);
                Ok(self.typer.read_variable(name, self.catalog.value_of_variable(name)))
            }
            ExprKind::AssignVariable { name, value } => {
                (self.session_dependent, self.assigns) = (true, true);
                let value = self.expr(value)?;
                Ok(self.typer.assign_variable(name, value))
            }
            ExprKind::DefaultOf { database, table, column } => {
                let name = ColumnName {
                    database: database.as_ref().map(|d| d.name.as_str()),
                    table: table.as_ref().map(|t| t.name.as_str()),
                    column: &column.name,
                };
                self.default_of(&name, column.span)
            }
            ExprKind::Default => Err(unsupported("DEFAULT in an expression")),
            ExprKind::InsertedValue { column, .. } if self.takes_inserted => {
                // In a subquery: MySQL knows no row to be inserted there, unless by an alias.
                let column = &of_new_row(&column.name);
                let column = self.resolve(&ColumnName { database: None, table: None, column }, expr.span)?;
                Ok(Expr::literal(Datum::Null, column.ty))
            }
            ExprKind::InsertedValue { database, table, column } => {
                // There is no row to be inserted.
                let name = ColumnName {
                    database: database.as_ref().map(|d| d.name.as_str()),
                    table: table.as_ref().map(|t| t.name.as_str()),
                    column: &column.name,
                };
                self.resolve(&name, expr.span)?;
                Ok(Expr::null())
            }
            ExprKind::Unsupported(what) => Err(unsupported(what)),
            ExprKind::Unary { op, expr } => self.unary(*op, expr),
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right),
            ExprKind::And(parts) => {
                let parts = self.exprs(parts)?;
                Ok(self.typer.and(parts))
            }
            ExprKind::Or(parts) => {
                let parts = self.exprs(parts)?;
                Ok(self.typer.or(parts))
            }
            ExprKind::Is { expr, test, negated } => {
                let inner = self.expr(expr)?;
                self.typer.check_null_test(&inner, self.is_of_not_null(&inner))?;
                Ok(self.typer.is(inner, *test, *negated))
            }
            ExprKind::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            ExprKind::InSubquery { expr, query, negated } => self.in_subquery(expr, query, *negated),
            ExprKind::Between { expr, low, high, negated } => {
                let (expr, low, high) = (self.expr(expr)?, self.expr(low)?, self.expr(high)?);
                let (expr, low) = self.settle_pair(expr, low);
                let (expr, high) = self.settle_pair(expr, high);
                Ok(self.typer.between(expr, low, high, *negated)?)
            }
            ExprKind::Like { expr, pattern, escape, negated } => {
                self.like(expr, pattern, escape.as_deref(), *negated)
            }
            ExprKind::Regexp { expr, pattern, negated } => {
                let (expr, pattern) = (self.expr(expr)?, self.expr(pattern)?);
                Ok(self.typer.regexp(expr, pattern, *negated)?)
            }
            ExprKind::Case { operand, branches, otherwise } => {
                self.case(operand.as_deref(), branches, otherwise.as_deref())
            }
            ExprKind::Cast { expr, target } => self.cast(expr, *target),
            ExprKind::ConvertUsing { expr, charset } => self.convert_using(expr, charset),
            ExprKind::Collate { expr, collation } => {
                let inner = self.expr(expr)?;
                let to = self.catalog.collation(collation);
                let to = to.ok_or_else(|| ErrorCode::UNKNOWN_COLLATION.with(&[collation]))?;
                Ok(self.typer.collate(inner, to)?)
            }
            ExprKind::Function { name, args } => self.call(name, args),
            ExprKind::Aggregate(call) => self.aggregate(call),
            ExprKind::Window(call) => self.window_call(call),
            ExprKind::DateArithmetic { expr, amount, unit, subtract } => {
                let function = if *subtract { UnitFunction::DateSub } else { UnitFunction::DateAdd };
                let (date, amount) = (self.expr(expr)?, self.expr(amount)?);
                Ok(self.typer.unit_call(function, *unit, vec![date, amount])?)
            }
            ExprKind::Extract { unit, expr } => {
                let date = self.expr(expr)?;
                Ok(self.typer.unit_call(UnitFunction::Extract, *unit, vec![date])?)
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                let args = vec![self.expr(from)?, self.expr(to)?];
                Ok(self.typer.unit_call(UnitFunction::TimestampDiff, *unit, args)?)
            }
            ExprKind::JsonValue(call) => self.json_value(call),
            ExprKind::Trim { side, what, expr } => self.trim(*side, what.as_deref(), expr),
            ExprKind::Row(_) => Err(ErrorCode::OPERAND_COLUMNS.with(&[&1])),
            ExprKind::Subquery(query) => self.scalar_subquery(query),
            ExprKind::Exists(query) => self.exists(query, false),
            ExprKind::Quantified { op, left, all, query } => self.quantified(*op, left, *all, query),
        }
    }

    /// Whether it shows a table's column that is NOT NULL.
    fn is_of_not_null(&self, expr: &Expr) -> bool {
        let Bound::Column(id) = expr.kind else { return false };
        let origin = self.columns[ColumnId(id as u32)].origin.as_ref();
        origin.is_some_and(|origin| !origin.table.columns[origin.column].nullable)
    }

    /// `DEFAULT(column)`
    fn default_of(&mut self, name: &ColumnName<'_>, span: ast::Span) -> Result<Expr, SqlError> {
        let column = self.resolve(name, span)?;
        let origin = match column.kind {
            Bound::Column(id) => self.columns[ColumnId(id as u32)].origin.clone(),
            _ => None,
        };
        let Some(origin) = origin else { return Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"DEFAULT"])) };
        let of = &origin.table.columns[origin.column];
        match &of.default {
            Some(DefaultValue::Const(value)) => Ok(Expr::literal(value.clone(), of.ty)),
            Some(DefaultValue::Expr(_)) => Err(ErrorCode::DEFAULT_AS_VAL_GENERATED.with(&[])),
            // MySQL has no time for it but that of a row that is inserted.
            Some(DefaultValue::Now) => Ok(Expr::literal(Datum::Null, of.ty)),
            None if of.nullable && of.generated.is_none() => Ok(Expr::literal(Datum::Null, of.ty)),
            None | Some(DefaultValue::Dropped) => Err(ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&of.name])),
        }
    }

    pub(super) fn exprs(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>, SqlError> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    fn param(&mut self, index: usize) -> Expr {
        if self.params.len() <= index {
            self.params.resize(index + 1, SqlType::Null);
        }
        Expr::param(index, self.params[index])
    }

    fn unary(&mut self, op: UnaryOp, inner: &ast::Expr) -> Result<Expr, SqlError> {
        if let (UnaryOp::Not, ExprKind::Exists(query)) = (op, &inner.kind) {
            return self.exists(query, true);
        }
        if let (UnaryOp::Not, ExprKind::InSubquery { expr, query, negated }) = (op, &inner.kind) {
            return self.in_subquery(expr, query, !negated);
        }
        // −9223372036854775808 is a BIGINT, although its digits alone are none.
        if let (UnaryOp::Minus, ExprKind::Integer(value)) = (op, &inner.kind)
            && *value <= 1 << 63
        {
            return Ok(Expr::int((*value as i64).wrapping_neg()));
        }
        let inner = self.expr(inner)?;
        Ok(match op {
            UnaryOp::Plus => inner,
            UnaryOp::Minus => self.typer.negate(inner),
            UnaryOp::Not => self.typer.not(inner),
            UnaryOp::BitNot => self.typer.call(Function::BitNot, vec![inner])?,
        })
    }

    fn binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr, SqlError> {
        if op.is_comparison() {
            if let Some(compared) = self.row_with_subquery(op, left, right)? {
                return Ok(compared);
            }
            return self.comparison(comparison_of(op), left, right);
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let function = match op {
            BinaryOp::BitOr => Function::BitOr,
            BinaryOp::BitAnd => Function::BitAnd,
            BinaryOp::BitXor => Function::BitXor,
            BinaryOp::ShiftLeft => Function::ShiftLeft,
            BinaryOp::ShiftRight => Function::ShiftRight,
            BinaryOp::Concat => Function::Concat,
            BinaryOp::Xor => return Ok(self.typer.xor(left, right)),
            _ => {
                let (left, right) = self.settle_pair(left, right);
                return Ok(self.typer.arith(arithmetic_of(op), left, right)?);
            }
        };
        Ok(self.typer.call(function, vec![left, right])?)
    }

    pub(super) fn comparison(
        &mut self,
        op: CompareOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Expr, SqlError> {
        if let (ExprKind::Row(left), ExprKind::Row(right)) = (&left.kind, &right.kind) {
            return self.row_comparison(op, left, right);
        }
        let words = [left, right].map(|side| match side.kind {
            ExprKind::Bool(value) => Some(value),
            _ => None,
        });
        let (mut left, mut right) = (self.expr(left)?, self.expr(right)?);
        if let (Some(value), SqlType::Json) = (words[0], right.ty) {
            left = self.typer.json_word(value);
        }
        if let (Some(value), SqlType::Json) = (words[1], left.ty) {
            right = self.typer.json_word(value);
        }
        let (left, right) = self.settle_pair(left, right);
        Ok(self.typer.compare(op, left, right)?)
    }

    /// Rows compare column by column, from the left.
    fn row_comparison(
        &mut self,
        op: CompareOp,
        left: &[ast::Expr],
        right: &[ast::Expr],
    ) -> Result<Expr, SqlError> {
        if left.len() != right.len() {
            return Err(ErrorCode::OPERAND_COLUMNS.with(&[&left.len()]));
        }
        match op {
            CompareOp::Eq | CompareOp::NullSafeEq => {
                let parts = left.iter().zip(right).map(|(l, r)| self.comparison(op, l, r));
                let parts = parts.collect::<Result<_, _>>()?;
                Ok(self.typer.and(parts))
            }
            CompareOp::Ne => {
                let equal = self.row_comparison(CompareOp::Eq, left, right)?;
                Ok(self.typer.not(equal))
            }
            _ => self.row_ordering(op, left, right),
        }
    }

    /// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`. That nests for each column, and all that looks at it takes more than twice
    /// as long for twice as many.
    fn row_ordering(
        &mut self,
        op: CompareOp,
        left: &[ast::Expr],
        right: &[ast::Expr],
    ) -> Result<Expr, SqlError> {
        let strict = match op {
            CompareOp::Le => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Gt,
            op => op,
        };
        if left.len() > MOST_ORDERED {
            return Err(unsupported(format_args!(
                "rows of more than {MOST_ORDERED} columns beside <, <=, > or >="
            )));
        }
        let last = left.len() - 1;
        if last == 0 {
            return self.comparison(op, &left[0], &right[0]);
        }
        let first = self.comparison(strict, &left[0], &right[0])?;
        let equal = self.again(|binder| binder.comparison(CompareOp::Eq, &left[0], &right[0]))?;
        let rest = self.row_ordering(op, &left[1..], &right[1..])?;
        let both = self.typer.and(vec![equal, rest]);
        Ok(self.typer.or(vec![first, both]))
    }

    fn in_list(&mut self, expr: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr, SqlError> {
        if let ExprKind::Row(row) = &expr.kind {
            return self.row_in_list(row, list, negated);
        }
        if let Some(query) = query_of(expr)
            && self.is_row_query(query)?
        {
            return self.over_rows(JoinKind::Left, &[query], |binder, rows| {
                binder.row_in_list(&rows[0], list, negated)
            });
        }
        let mut expr = self.expr(expr)?;
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            let item = match item.kind {
                ExprKind::Bool(value) if expr.ty == SqlType::Json => self.typer.json_word(value),
                _ => self.expr(item)?,
            };
            let (left, item) = self.settle_pair(expr, item);
            expr = left;
            items.push(item);
        }
        Ok(self.typer.in_list(expr, items, negated)?)
    }

    pub(super) fn row_in_list(
        &mut self,
        row: &[ast::Expr],
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Expr, SqlError> {
        if list.iter().any(|item| query_of(item).is_some()) {
            return self.row_among_queries(row, list, negated);
        }
        let mut any = Vec::with_capacity(list.len());
        for item in list {
            let ExprKind::Row(item) = &item.kind else {
                return Err(ErrorCode::OPERAND_COLUMNS.with(&[&row.len()]));
            };
            any.push(match list.len() {
                1 => self.row_comparison(CompareOp::Eq, row, item)?,
                _ => self.row_equals_leniently(row, item)?,
            });
        }
        let any = self.typer.or(any);
        Ok(if negated { self.typer.not(any) } else { any })
    }

    /// One of several rows in a list: a literal that is no date is equal to none.
    fn row_equals_leniently(&mut self, left: &[ast::Expr], right: &[ast::Expr]) -> Result<Expr, SqlError> {
        if left.len() != right.len() {
            return Err(ErrorCode::OPERAND_COLUMNS.with(&[&left.len()]));
        }
        let mut parts = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (self.again(|binder| binder.expr(left))?, self.expr(right)?);
            let (left, right) = self.settle_pair(left, right);
            parts.push(self.typer.compare_as_left(left, right)?);
        }
        Ok(self.typer.and(parts))
    }

    fn like(
        &mut self,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let (expr, pattern) = (self.expr(expr)?, self.expr(pattern)?);
        let (expr, pattern) = self.settle_pair(expr, pattern);
        let escape = match escape {
            Some(escape) => {
                let escape = self.expr(escape)?;
                self.typer.escape_character(escape)?
            }
            None if self.typer.sql_mode.has(SqlMode::NO_BACKSLASH_ESCAPES) => None,
            None => Some('\\'),
        };
        Ok(self.typer.like(expr, pattern, escape, negated)?)
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        branches: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr, SqlError> {
        let operand = operand.map(|o| self.expr(o)).transpose()?;
        let mut bound = Vec::with_capacity(branches.len());
        for (when, then) in branches {
            bound.push((self.expr(when)?, self.expr(then)?));
        }
        let otherwise = otherwise.map(|o| self.expr(o)).transpose()?;
        let (whens, mut values): (Vec<_>, Vec<_>) = bound.into_iter().unzip();
        let branches = values.len();
        values.extend(otherwise);
        self.settle_alternatives(&mut values);
        let otherwise = if values.len() > branches { values.pop() } else { None };
        Ok(self.typer.case(operand, whens.into_iter().zip(values).collect(), otherwise)?)
    }

    fn cast(&mut self, expr: &ast::Expr, target: CastTarget) -> Result<Expr, SqlError> {
        if let (ExprKind::Bool(value), CastTarget::Json) = (&expr.kind, target) {
            return Ok(self.typer.json_word(*value));
        }
        let inner = self.expr(expr)?;
        Ok(self.typer.cast(inner, target)?)
    }

    fn convert_using(&mut self, expr: &ast::Expr, charset: &str) -> Result<Expr, SqlError> {
        let inner = self.expr(expr)?;
        let target = match Charset::by_name(charset) {
            Some(Charset::Binary) => CastTarget::Binary(None),
            Some(charset) => CastTarget::Char(None, Some(charset.default_collation())),
            None => return Err(ErrorCode::UNKNOWN_CHARACTER_SET.with(&[&charset])),
        };
        Ok(self.typer.cast(inner, target)?)
    }

    fn json_value(&mut self, call: &ast::JsonValueCall) -> Result<Expr, SqlError> {
        let (document, path) = (self.expr(&call.document)?, self.expr(&call.path)?);
        let ty = match call.returning {
            None => Typer::JSON_VALUE_TYPE,
            Some(target) => self.typer.cast_type_of(target)?,
        };
        let on_empty = self.on_json_problem(&call.on_empty)?;
        let on_error = self.on_json_problem(&call.on_error)?;
        Ok(self.typer.json_value(document, path, ty, on_empty, on_error)?)
    }

    pub(super) fn on_json_problem(
        &mut self,
        problem: &ast::OnJsonProblem,
    ) -> Result<OnJsonProblem, SqlError> {
        Ok(match problem {
            ast::OnJsonProblem::Null => OnJsonProblem::Null,
            ast::OnJsonProblem::Error => OnJsonProblem::Error,
            ast::OnJsonProblem::Default(default) => OnJsonProblem::Default(self.expr(default)?),
        })
    }

    fn trim(&mut self, side: TrimSide, what: Option<&ast::Expr>, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let function = match side {
            TrimSide::Both => Function::Trim,
            TrimSide::Leading => Function::TrimLeading,
            TrimSide::Trailing => Function::TrimTrailing,
        };
        let mut args = vec![self.expr(expr)?];
        if let Some(what) = what {
            args.push(self.expr(what)?);
        }
        Ok(self.typer.call(function, args)?)
    }

    fn call(&mut self, name: &str, args: &[ast::Expr]) -> Result<Expr, SqlError> {
        if name.eq_ignore_ascii_case("GROUPING") {
            return self.grouping(args);
        }
        if name.eq_ignore_ascii_case("NAME_CONST") {
            return self.name_const(args);
        }
        let Some(function) = Function::lookup(name) else {
            let database = self.catalog.current_database().unwrap_or("");
            let shown = if name.contains('.') { name.to_owned() } else { format!("{database}.{name}") };
            return Err(ErrorCode::SP_DOES_NOT_EXIST.with(&[&"FUNCTION", &shown]));
        };
        // With a second argument they are TRIM(… FROM …).
        let is_one_sided =
            matches!(function, Function::Trim | Function::TrimLeading | Function::TrimTrailing);
        if !function.info().takes(args.len()) || is_one_sided && args.len() > 1 {
            return Err(ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT.with(&[&name]));
        }
        let mut args = self.call_args(function, args)?;
        match function {
            Function::If => self.settle_alternatives(args.get_mut(1..).unwrap_or_default()),
            Function::IfNull | Function::Coalesce | Function::Greatest | Function::Least => {
                self.settle_alternatives(&mut args);
            }
            _ => {}
        }
        Ok(self.typer.call(function, args)?)
    }

    /// `NAME_CONST('name', literal)`: the literal.
    fn name_const(&mut self, args: &[ast::Expr]) -> Result<Expr, SqlError> {
        let [name, value] = args else {
            return Err(ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT.with(&[&"NAME_CONST"]));
        };
        let is_literal = |kind: &ExprKind| {
            matches!(
                kind,
                ExprKind::Null
                    | ExprKind::Bool(_)
                    | ExprKind::Integer(_)
                    | ExprKind::Decimal(_)
                    | ExprKind::Float(_)
                    | ExprKind::String { .. }
                    | ExprKind::Bytes(_)
                    | ExprKind::Hybrid { .. }
                    | ExprKind::Temporal { .. }
            )
        };
        let is_constant = match &value.kind {
            ExprKind::Unary { op: UnaryOp::Minus, expr } => is_literal(&expr.kind),
            ExprKind::Collate { expr, .. } => is_literal(&expr.kind),
            kind => is_literal(kind),
        };
        match name.kind {
            ExprKind::String { charset: None, .. } if is_constant => self.expr(value),
            _ => Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"NAME_CONST"])),
        }
    }

    /// The arguments of a function: TRUE and FALSE are no numbers where they become parts of documents.
    pub(super) fn call_args(
        &mut self,
        function: Function,
        args: &[ast::Expr],
    ) -> Result<Vec<Expr>, SqlError> {
        let one = |(at, arg): (usize, &ast::Expr)| match arg.kind {
            ExprKind::Bool(value) if function.takes_json_value(at) => Ok(self.typer.json_word(value)),
            ExprKind::Exists(_) | ExprKind::InSubquery { .. } | ExprKind::Quantified { .. }
                if function.takes_json_value(at) =>
            {
                let truth = self.expr(arg)?;
                Ok(self.typer.json_truth(truth))
            }
            _ => self.expr(arg),
        };
        args.iter().enumerate().map(one).collect()
    }
}

fn integer(value: u64) -> Expr {
    match i64::try_from(value) {
        Ok(value) => Expr::int(value),
        Err(_) => Expr::literal(Datum::UInt(value), SqlType::BIGINT_UNSIGNED),
    }
}

fn decimal(text: &str) -> Expr {
    let value = Decimal::parse_prefix(text.as_bytes()).value;
    let scale = value.scale();
    // The 0 before the point counts, further ones do not.
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let zero = u8::from(!whole.is_empty());
    let precision = (value.digits() as u8).max(scale + zero).max(1);
    Expr::literal(Datum::Decimal(value), SqlType::Decimal { precision, scale, unsigned: false })
}

/// `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'`
fn temporal(kind: TemporalKind, text: &str, typer: &Typer) -> Result<Expr, SqlError> {
    let parsed = match kind {
        TemporalKind::Time => parse_time(text.as_bytes(), TimeZone::UTC),
        _ => parse_datetime(text.as_bytes(), TimeZone::UTC, typer.sql_mode.zero_dates()),
    };
    let parsed = parsed.filter(|p| !p.truncated && !p.clipped && (kind != TemporalKind::Date || !p.has_time));
    let Some(parsed) = parsed else {
        let kind = match kind {
            TemporalKind::Date => "DATE",
            TemporalKind::Time => "TIME",
            TemporalKind::Timestamp => "DATETIME",
        };
        return Err(avocet_types::EvalError::IncorrectConstant { kind, value: text.to_owned() }.into());
    };
    Ok(match kind {
        TemporalKind::Date => Expr::literal(Datum::Date(date_of(parsed.micros)), SqlType::Date),
        TemporalKind::Time => Expr::literal(Datum::Time(parsed.micros), SqlType::Time { fsp: parsed.fsp }),
        TemporalKind::Timestamp => {
            let ty = SqlType::DateTime { fsp: parsed.fsp };
            match parsed.utc {
                None => Expr::literal(Datum::DateTime(parsed.micros), ty),
                // An offset says a moment, which is another local time in each session.
                Some(moment) => {
                    let moment =
                        Expr::literal(Datum::DateTime(moment), SqlType::Timestamp { fsp: parsed.fsp });
                    typer.convert(moment, ty)
                }
            }
        }
    })
}

pub(super) fn comparison_of(op: BinaryOp) -> CompareOp {
    match op {
        BinaryOp::NullSafeEq => CompareOp::NullSafeEq,
        BinaryOp::Ne => CompareOp::Ne,
        BinaryOp::Lt => CompareOp::Lt,
        BinaryOp::Le => CompareOp::Le,
        BinaryOp::Gt => CompareOp::Gt,
        BinaryOp::Ge => CompareOp::Ge,
        _ => CompareOp::Eq,
    }
}

fn arithmetic_of(op: BinaryOp) -> ArithOp {
    match op {
        BinaryOp::Sub => ArithOp::Sub,
        BinaryOp::Mul => ArithOp::Mul,
        BinaryOp::Div => ArithOp::Div,
        BinaryOp::IntDiv => ArithOp::IntDiv,
        BinaryOp::Mod => ArithOp::Mod,
        _ => ArithOp::Add,
    }
}

/// Whether an expression is a number that GROUP BY and ORDER BY take for a position.
pub(super) fn position(expr: &ast::Expr) -> Option<u64> {
    match expr.kind {
        ExprKind::Integer(position) => Some(position),
        _ => None,
    }
}

/// The two sides of a comparison that the `Typer` made.
pub(super) fn sides(comparison: Expr) -> Option<(Expr, Expr)> {
    match comparison.kind {
        Bound::Compare { left, right, .. } => Some((*left, *right)),
        _ => None,
    }
}
