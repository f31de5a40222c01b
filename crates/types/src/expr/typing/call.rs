//! Function calls: argument conversion, result types, and the functions that are written as other expressions.

use crate::collation::Charset;
use crate::datum::Datum;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::function::{ArgClass, BytesAsText, Function, Nulls};
use crate::expr::typing::aggregate::{bytes_type, fsp_of_expr, string_type};
use crate::expr::typing::arith::hybrid_number;
use crate::expr::typing::collation::{Agreement, Coercibility};
use crate::expr::typing::moments::{is_date_like, is_sum_as_text};
use crate::expr::typing::returns::Ret;
use crate::expr::typing::{Dialect, Typer, ValueClass, collation};
use crate::expr::{ArithOp, CastTarget, CompareOp, Expr, ExprKind, IntervalUnit, IsTest, UnitFunction};
use crate::members::Members;
use crate::sql_type::{Collation, SqlType};

impl Typer {
    /// A call of `function`. Error 1582 if it does not take so many arguments.
    pub fn call(&self, function: Function, args: Vec<Expr>) -> EvalResult<Expr> {
        let info = function.info();
        let in_pairs = match function {
            Function::JsonObject => args.len().is_multiple_of(2),
            Function::JsonSet
            | Function::JsonInsert
            | Function::JsonReplace
            | Function::JsonArrayAppend
            | Function::JsonArrayInsert => args.len() % 2 == 1,
            _ => true,
        };
        if !info.takes(args.len()) || !in_pairs {
            return Err(EvalError::ParameterCount(function.name().to_owned()));
        }
        if function == Function::LastInsertId && !args.is_empty() {
            return self.call(Function::SetLastInsertId, args);
        }
        if matches!(info.ret, Ret::Rewrite) {
            return self.rewrite(function, args);
        }
        if matches!(function, Function::ExtractValue | Function::UpdateXml) {
            check_xpath(&args[1])?;
        }
        if function == Function::FindInSet
            && let Some(number) = self.member_number(&args)?
        {
            return Ok(number);
        }
        check_regexp_bytes(function, &args)?;
        if let Some(extreme) = self.extreme_moment(function, &args)? {
            return Ok(extreme);
        }
        let args = self.arguments(function, args)?;
        self.check_rounded(function, &args)?;
        let ty = self.result_type(function, &args)?;
        let nullable = match info.nulls {
            Nulls::Strict => args.iter().any(|arg| arg.nullable),
            Nulls::Partial | Nulls::Own => true,
            Nulls::Never => false,
        };
        let call = Expr::new(ExprKind::Call(function, args), ty, nullable);
        Ok(match (function, self.dialect) {
            // An INT there, and not a YEAR.
            (Function::Year, Dialect::MariaDb) => self.convert(call, SqlType::INT),
            _ => call,
        })
    }

    /// `FIND_IN_SET('member', column)` of a SET: the member's number among all, if the value has it, and not its place in the text.
    fn member_number(&self, args: &[Expr]) -> EvalResult<Option<Expr>> {
        let [wanted, set] = args else { return Ok(None) };
        let (ExprKind::Column(_), SqlType::Set(members)) = (&set.kind, set.ty) else { return Ok(None) };
        let literal = wanted.clone().fold();
        let Some(Datum::Str(wanted)) = literal.as_literal() else {
            return self.number_of_wanted_member(wanted, set, members);
        };
        let Some(at) = members.number(wanted) else { return Ok(None) };
        let bit = Expr::literal(Datum::UInt(1 << (at - 1)), SqlType::BIGINT_UNSIGNED);
        let bits = self.cast(set.clone(), CastTarget::Unsigned)?;
        let has = self.compare(CompareOp::Eq, self.call(Function::BitAnd, vec![bits, bit.clone()])?, bit)?;
        let number = Expr::literal(Datum::Int(at as i64), SqlType::BIGINT);
        self.arith(ArithOp::Mul, has, number).map(Some)
    }

    /// The same of a text that each row has: its place among the names of all members, if the value has that member.
    fn number_of_wanted_member(
        &self,
        wanted: &Expr,
        set: &Expr,
        members: Members,
    ) -> EvalResult<Option<Expr>> {
        let mut args = self.arguments(Function::FindInSet, vec![self.copy(wanted)?, set.clone()])?;
        if !args[1].ty.is_string() {
            return Ok(None);
        }
        let names = members.joined(u64::MAX >> (64 - members.count().clamp(1, 64))).into_owned();
        args[1] = Expr::literal(Datum::Str(names.into()), args[1].ty);
        let nullable = args[0].nullable;
        let number = Expr::new(ExprKind::Call(Function::FindInSet, args), SqlType::BIGINT, nullable);
        // 0, for no member, leaves nothing.
        let place = self.arith(ArithOp::Sub, self.copy(&number)?, Expr::int(1))?;
        let bits = self.cast(set.clone(), CastTarget::Unsigned)?;
        let one = Expr::literal(Datum::UInt(1), SqlType::BIGINT_UNSIGNED);
        let has = self.call(Function::ShiftRight, vec![bits, place])?;
        let has = self.call(Function::BitAnd, vec![has, one])?;
        let has = self.compare(CompareOp::Ne, has, Expr::int(0))?;
        self.arith(ArithOp::Mul, has, number).map(Some)
    }

    fn arguments(&self, function: Function, args: Vec<Expr>) -> EvalResult<Vec<Expr>> {
        let info = function.info();
        let args = match function {
            // A BIT, and a hexadecimal literal, has digits where others are read as texts of digits.
            Function::Conv | Function::Bin | Function::Oct => {
                let digits = |arg: Expr| match arg.ty {
                    SqlType::Bit { .. } => self.convert(arg, SqlType::BIGINT_UNSIGNED),
                    _ => hybrid_number(&arg).unwrap_or(arg),
                };
                args.into_iter().map(digits).collect()
            }
            Function::Abs | Function::Ceil | Function::Floor | Function::Round | Function::Truncate => args
                .into_iter()
                .enumerate()
                .map(|(at, arg)| match at {
                    0 => self.moment_as_double(self.hybrid_as_double(arg)),
                    _ => arg,
                })
                .collect(),
            Function::Format => args.into_iter().map(|arg| self.hybrid_as_double(arg)).collect(),
            Function::Interval => args.into_iter().map(|arg| self.moment_as_double(arg)).collect(),
            _ => args,
        };
        self.check_geometries(function, &args)?;
        let one = |(i, arg): (usize, Expr)| match (info.arg(i), function.reads_bytes()) {
            (ArgClass::Chars, Some(as_text)) => {
                Ok(self.argument(self.read_bytes(arg, as_text)?, ArgClass::Chars))
            }
            (class, _) => Ok(self.argument(arg, class)),
        };
        let args = args.into_iter().enumerate().map(one).collect::<EvalResult<Vec<_>>>()?;
        let name = function.name();
        Ok(match function {
            Function::Greatest | Function::Least => self.extremes(args, name)?,
            Function::Field => self.field_arguments(args)?,
            Function::JsonQuote | Function::JsonUnquote => {
                args.into_iter().map(|arg| self.json_string(function, arg)).collect::<EvalResult<_>>()?
            }
            Function::JsonObject => self.json_pairs(args, 1),
            Function::JsonSet
            | Function::JsonInsert
            | Function::JsonReplace
            | Function::JsonArrayAppend
            | Function::JsonArrayInsert => self.json_pairs(args, 2),
            Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::BitNot
            | Function::ShiftLeft
            | Function::ShiftRight
            | Function::BitCount => self.bit_operands(function, args)?,
            Function::Hex => args.into_iter().map(|arg| self.hex_argument(arg)).collect(),
            Function::WeightString => args
                .into_iter()
                .enumerate()
                .map(|(at, arg)| if at == 0 { self.weighed(arg) } else { Ok(arg) })
                .collect::<EvalResult<_>>()?,
            Function::TimeDiff => args.into_iter().map(|arg| self.time_or_moment(arg)).collect(),
            Function::TimeFormat => args
                .into_iter()
                .enumerate()
                .map(|(at, arg)| if at == 0 { self.time_or_moment(arg) } else { arg })
                .collect(),
            Function::AddTime | Function::SubTime => {
                args.into_iter().map(|arg| self.time_or_text(arg)).collect()
            }
            // These look at characters, and so need one collation.
            Function::Concat
            | Function::ConcatWs
            | Function::Replace
            | Function::Lpad
            | Function::Rpad
            | Function::Insert
            | Function::SubstringIndex
            | Function::Trim
            | Function::TrimLeading
            | Function::TrimTrailing
            | Function::Instr
            | Function::Locate
            | Function::Strcmp
            | Function::FindInSet
            | Function::MakeSet
            | Function::ExportSet
            | Function::Elt => self.texts_together(function, args)?,
            Function::RegexpLike
            | Function::RegexpInstr
            | Function::RegexpSubstr
            | Function::RegexpReplace => {
                // Text and pattern stay as they are, but must agree on a collation.
                collation::aggregate(&args[..2], self, &function.name().to_lowercase(), Agreement::Compared)?;
                args
            }
            _ => args,
        })
    }

    fn argument(&self, arg: Expr, class: ArgClass) -> Expr {
        match class {
            ArgClass::Any => arg,
            ArgClass::Text => self.text(arg),
            ArgClass::Chars => {
                let text = self.text(arg);
                // Bytes are read as text, also where literals are bytes.
                match (text.ty.is_bytes(), self.connection_collation) {
                    (false, _) => text,
                    (true, Collation::BINARY) => self.under_collation(text, Collation::UTF8MB4_BIN),
                    (true, connection) => self.under_collation(text, connection),
                }
            }
            ArgClass::Encoded => self.encoded(self.text(arg)),
            ArgClass::Int => match ValueClass::of(&arg.ty) {
                ValueClass::Int | ValueClass::Null => arg,
                _ => self.integer(arg),
            },
            ArgClass::Double => self.to_double(arg),
            ArgClass::Json => self.json(arg),
            ArgClass::Number => self.number(arg),
            ArgClass::DateTime => match arg.ty {
                SqlType::DateTime { .. } | SqlType::Null => arg,
                SqlType::Timestamp { fsp } => self.convert(arg, SqlType::DateTime { fsp }),
                _ => {
                    let fsp = fsp_of_expr(&arg);
                    self.convert(arg, SqlType::DateTime { fsp })
                }
            },
            ArgClass::Day => match arg.ty {
                SqlType::Time { .. } => self.argument(self.convert(arg, SqlType::Date), ArgClass::DateTime),
                _ if arg.ty.is_string() || arg.ty.is_bytes() => self.convert(arg, SqlType::Date),
                // The day of a number is one whatever the time behind it.
                _ if is_plain_number(&arg.ty) => self.convert(arg, SqlType::Date),
                _ => self.argument(arg, ArgClass::DateTime),
            },
            ArgClass::DateParts => match ValueClass::of(&arg.ty) {
                _ if is_plain_number(&arg.ty) => arg,
                ValueClass::Text | ValueClass::Bytes => arg,
                _ => self.argument(arg, ArgClass::Day),
            },
            ArgClass::Moment => match ValueClass::of(&arg.ty) {
                ValueClass::Timestamp => arg,
                // What is no date is no NULL.
                ValueClass::Text
                | ValueClass::Bytes
                | ValueClass::Int
                | ValueClass::Decimal
                | ValueClass::Double
                    if arg.ty != SqlType::Year =>
                {
                    let (ty, nullable) = (SqlType::DateTime { fsp: fsp_of_expr(&arg) }, arg.nullable);
                    Expr::new(ExprKind::Call(Function::DateTimeOrZero, vec![arg]), ty, nullable)
                }
                _ => self.argument(arg, ArgClass::DateTime),
            },
            ArgClass::Time => match arg.ty {
                SqlType::Time { .. } | SqlType::Null => arg,
                _ => {
                    let fsp = fsp_of_expr(&arg);
                    self.convert(arg, SqlType::Time { fsp })
                }
            },
        }
    }

    /// Byte strings as text, whatever they are. Literals that are text are left to be converted.
    fn read_bytes(&self, arg: Expr, as_text: BytesAsText) -> EvalResult<Expr> {
        let is_text = match arg.as_literal() {
            Some(Datum::Bytes(bytes)) => std::str::from_utf8(bytes).is_ok(),
            _ => false,
        };
        let reads = arg.ty.is_bytes() && !is_text && arg.ty != SqlType::Null;
        match reads && self.string("").ty.charset().is_some_and(Charset::is_utf8) {
            true => Ok(self.call(Function::TextOfBytes, vec![arg, Expr::int(as_text as i64)])?.fold()),
            false => Ok(arg),
        }
    }

    /// GREATEST and LEAST compare and return in the arguments' common type.
    fn extremes(&self, args: Vec<Expr>, name: &str) -> EvalResult<Vec<Expr>> {
        let args = self.extreme_operands(args);
        let is_text = |e: &Expr| matches!(ValueClass::of(&e.ty), ValueClass::Text | ValueClass::Bytes);
        if args.iter().all(|arg| is_text(arg) || arg.ty == SqlType::Null) {
            let to = collation::aggregate(&args, self, &name.to_lowercase(), Agreement::Together)?;
            return Ok(args.into_iter().map(|arg| self.under_collation(arg, to.collation)).collect());
        }
        let ty = self.common_type(&args, name)?;
        let is_text = ty.is_string() || ty.is_bytes();
        let one = |arg: Expr| self.convert(if is_text { self.with_zeros(arg) } else { arg }, ty);
        Ok(args.into_iter().map(one).collect())
    }

    /// FIELD compares strings that agree on no collation by their bytes.
    fn field_arguments(&self, args: Vec<Expr>) -> EvalResult<Vec<Expr>> {
        let is_text = |e: &Expr| matches!(ValueClass::of(&e.ty), ValueClass::Text | ValueClass::Bytes);
        let mut args = self.coded_operands(args);
        // Dates, times and documents are compared as the texts that they are shown as, unless there is a number.
        let is_shown = |e: &Expr| is_text(e) || e.ty.is_temporal() || e.ty == SqlType::Json;
        if !args.iter().all(is_text) && args.iter().all(is_shown) {
            args = args.into_iter().map(|arg| if is_text(&arg) { arg } else { self.text(arg) }).collect();
        }
        // Members of one type are still numbers, which is the same.
        if !args.iter().all(is_text) {
            return self.comparable(args, "field");
        }
        let to = self.collation_to_look_by(&args, 0, "field")?;
        Ok(args.into_iter().map(|arg| self.under_collation(arg, to)).collect())
    }

    /// The collation in which one argument is searched: its own, if the arguments agree on none, or if another is bytes, which
    /// are read as text of its character set.
    fn collation_to_look_by(&self, args: &[Expr], searched: usize, name: &str) -> EvalResult<Collation> {
        let derivation = collation::aggregate(args, self, name, Agreement::Searched)?;
        let own = args[searched].ty.collation();
        let is_beside_bytes = args.iter().any(|arg| arg.ty.is_bytes());
        Ok(match derivation.coercibility {
            Coercibility::NoCollation => own.unwrap_or(derivation.collation),
            _ if is_beside_bytes => own.unwrap_or(derivation.collation),
            _ => derivation.collation,
        })
    }

    /// What ADDTIME adds to: numbers are read as texts of the same digits are.
    fn time_or_text(&self, arg: Expr) -> Expr {
        match ValueClass::of(&arg.ty) {
            _ if arg.ty.members().is_some() => self.decoded(arg),
            ValueClass::Int | ValueClass::Decimal | ValueClass::Double => self.text(arg),
            _ => self.session_time(arg),
        }
    }

    /// Bit operations take byte strings as they are, unless all of them are literals. Other strings are read as integers.
    fn bit_operands(&self, function: Function, args: Vec<Expr>) -> EvalResult<Vec<Expr>> {
        let shifts = matches!(function, Function::ShiftLeft | Function::ShiftRight);
        let strings = if shifts { &args[..1] } else { &args[..] };
        let of_bytes = strings.iter().all(|arg| arg.ty.is_bytes() || arg.ty == SqlType::Null)
            && strings.iter().any(|arg| arg.ty.is_bytes() && arg.as_literal().is_none());
        let number = |arg: Expr| match arg.ty.is_string() || arg.ty.is_bytes() {
            true if hybrid_number(&arg).is_none() => match self.moment_as_number(arg) {
                text if text.ty.is_string() || text.ty.is_bytes() => self.cast(text, CastTarget::Unsigned),
                number => Ok(self.number(number)),
            },
            _ if arg.ty.is_coded() => Ok(self.convert(arg, SqlType::BIGINT_UNSIGNED)),
            // They round as dates and times do: 23:59:59.9 is 240000, and not 235960.
            _ if arg.ty.is_temporal() => Ok(self.convert(arg, SqlType::BIGINT)),
            _ => Ok(match self.number(arg) {
                number if is_computed_double(&number) => self.integer(number),
                number => number,
            }),
        };
        let one = |(at, arg)| if of_bytes && !(shifts && at == 1) { Ok(arg) } else { number(arg) };
        args.into_iter().enumerate().map(one).collect()
    }

    /// HEX takes numbers as integers and everything else as bytes.
    fn hex_argument(&self, arg: Expr) -> Expr {
        match ValueClass::of(&arg.ty) {
            _ if arg.ty.members().is_some() => self.encoded(self.decoded(arg)),
            ValueClass::Decimal | ValueClass::Double => self.integer(arg),
            ValueClass::Int | ValueClass::Null => arg,
            _ => self.encoded(self.text(arg)),
        }
    }

    /// What takes integers: the result of an operation on DOUBLEs must be one, while columns and literals are clamped.
    fn integer(&self, arg: Expr) -> Expr {
        match is_computed_double(&arg) {
            true => {
                let nullable = arg.nullable;
                Expr::new(ExprKind::Call(Function::IntegerOfDouble, vec![arg]), SqlType::BIGINT, nullable)
            }
            false => self.convert(arg, SqlType::BIGINT),
        }
    }

    /// A date or time as the DOUBLE that functions of one number, and INTERVAL(), take it for.
    fn moment_as_double(&self, arg: Expr) -> Expr {
        match arg.ty.is_temporal() {
            true => self.convert(arg, SqlType::DOUBLE),
            false => arg,
        }
    }

    /// What WEIGHT_STRING takes: strings of all kinds.
    fn weighed(&self, arg: Expr) -> EvalResult<Expr> {
        match ValueClass::of(&arg.ty) {
            _ if arg.ty.members().is_some() => Ok(self.decoded(arg)),
            ValueClass::Text | ValueClass::Bytes | ValueClass::Null => Ok(arg),
            _ => Err(EvalError::NotSupported("WEIGHT_STRING of what is no string".into())),
        }
    }

    /// A text as the bytes that it has in its character set, where these are not those of UTF-8.
    fn encoded(&self, text: Expr) -> Expr {
        match text.ty.charset() {
            Some(charset) if !charset.is_utf8() => self.under_collation(text, Collation::BINARY),
            _ => text,
        }
    }

    /// A TIMESTAMP as a DATETIME in the session's time zone; other types as they are.
    pub(crate) fn session_time(&self, arg: Expr) -> Expr {
        match arg.ty {
            SqlType::Timestamp { fsp } => self.convert(arg, SqlType::DateTime { fsp }),
            _ => arg,
        }
    }

    /// What is a time or a date as it is, which a text or a number says itself.
    fn time_or_moment(&self, arg: Expr) -> Expr {
        let arg = self.session_time(arg);
        match ValueClass::of(&arg.ty) {
            _ if arg.ty.members().is_some() => self.decoded(arg),
            ValueClass::Text | ValueClass::Bytes => arg,
            ValueClass::Int | ValueClass::Decimal | ValueClass::Double if arg.ty != SqlType::Year => arg,
            _ if arg.ty.is_temporal() => arg,
            _ => self.argument(arg, ArgClass::Time),
        }
    }

    /// Brings the string arguments under one collation, or all to bytes.
    fn texts_together(&self, function: Function, args: Vec<Expr>) -> EvalResult<Vec<Expr>> {
        let info = function.info();
        let is_text = |i: usize| info.arg(i) == ArgClass::Text;
        let texts = args.iter().enumerate().filter(|(i, _)| is_text(*i)).map(|(_, arg)| arg);
        let agreement = match function {
            Function::Strcmp | Function::FindInSet => Agreement::Compared,
            _ => Agreement::Together,
        };
        let name = function.name().to_lowercase();
        let to = match function {
            Function::Instr => self.collation_to_look_by(&args[..2], 0, &name)?,
            Function::Locate => self.collation_to_look_by(&args[..2], 1, &name)?,
            // What changes a text gives one in its collation, and reads bytes beside it as text.
            _ if function.changes_its_first() && args[0].ty.collation().is_some() => {
                args[0].derivation(self).collation
            }
            _ => collation::aggregate(texts, self, &name, agreement)?.collation,
        };
        let one = |(i, arg)| if is_text(i) { self.under_collation(arg, to) } else { arg };
        Ok(args.into_iter().enumerate().map(one).collect())
    }

    fn result_type(&self, function: Function, args: &[Expr]) -> EvalResult<SqlType> {
        Ok(match function.info().ret {
            Ret::Int => SqlType::BIGINT,
            Ret::UInt => SqlType::BIGINT_UNSIGNED,
            Ret::Double => SqlType::DOUBLE,
            Ret::Text(len) => self.text_type(len(args), args),
            Ret::Ascii(len) => string_type(len(args), self.connection_collation),
            Ret::Bytes(len) => bytes_type(len(args)),
            Ret::System(len) => SqlType::VarChar { len, collation: Collation::UTF8MB3_GENERAL_CI },
            Ret::Date => SqlType::Date,
            Ret::Json => SqlType::Json,
            Ret::Custom(rule) => rule(self, args)?,
            Ret::Rewrite => unreachable!("rewritten functions have no type of their own"),
        })
    }

    /// A string of so many characters, or of so many bytes if an argument is a byte string.
    fn text_type(&self, len: u64, args: &[Expr]) -> SqlType {
        if args.iter().any(|arg| arg.ty.is_bytes()) {
            return bytes_type(len);
        }
        let collation = args.iter().find_map(|arg| arg.ty.collation()).unwrap_or(self.connection_collation);
        string_type(len, collation)
    }

    fn rewrite(&self, function: Function, args: Vec<Expr>) -> EvalResult<Expr> {
        let mut args = args.into_iter();
        let mut next = || args.next().expect("the number of arguments was checked");
        match function {
            Function::Mod => self.arith(ArithOp::Mod, next(), next()),
            Function::If => {
                let (condition, then) = (next(), next());
                let chosen = self.case(None, vec![(condition, then)], Some(next()));
                chosen.map_err(|error| error.in_operation("if"))
            }
            Function::NullIf => {
                let (value, other) = (next(), next());
                let equal = self.compare(CompareOp::Eq, self.copy(&value)?, other);
                let equal = equal.map_err(|error| error.in_operation("nullif"))?;
                self.case(None, vec![(equal, Expr::literal(Datum::Null, value.ty))], Some(value))
            }
            Function::Coalesce => self.coalesce(args.collect()),
            Function::IfNull => self.coalesce(args.collect()).map_err(|error| error.in_operation("ifnull")),
            Function::Coercibility => {
                let coercibility = next().derivation(self).coercibility;
                Ok(Expr::literal(Datum::Int(coercibility.number()), SqlType::BIGINT))
            }
            Function::IsNull => Ok(self.is(next(), IsTest::Null, false)),
            Function::Date => Ok(told_as_nullable(self.to_date(next()))),
            Function::TimeOf => {
                let time = self.argument(next(), ArgClass::Time);
                Ok(if time.is_null_literal() {
                    Expr::literal(Datum::Null, SqlType::Time { fsp: 0 })
                } else {
                    told_as_nullable(time)
                })
            }
            Function::Timestamp => {
                let datetime = next();
                let datetime = match self.argument(datetime, ArgClass::DateTime) {
                    null if null.is_null_literal() => {
                        Expr::literal(Datum::Null, SqlType::DateTime { fsp: 0 })
                    }
                    datetime => datetime,
                };
                match args.next() {
                    Some(time) => self.call(Function::AddTime, vec![datetime, time]),
                    None => Ok(told_as_nullable(datetime)),
                }
            }
            Function::AddDate => self.unit_call(UnitFunction::DateAdd, IntervalUnit::Day, args.collect()),
            Function::SubDate => self.unit_call(UnitFunction::DateSub, IntervalUnit::Day, args.collect()),
            other => unreachable!("{other:?} is not written as another expression"),
        }
    }

    fn to_date(&self, arg: Expr) -> Expr {
        let arg = self.session_time(arg);
        match arg.ty {
            SqlType::Date => arg,
            _ => self.convert(arg, SqlType::Date),
        }
    }

    /// A function with an interval unit.
    pub fn unit_call(&self, function: UnitFunction, unit: IntervalUnit, args: Vec<Expr>) -> EvalResult<Expr> {
        let mut args = args.into_iter();
        let mut next = || args.next().expect("the binder gives what the syntax asks for");
        let (args, ty) = match function {
            UnitFunction::DateAdd | UnitFunction::DateSub => {
                let date = self.read_bytes(self.session_time(next()), BytesAsText::Escaped)?;
                let amount = self.interval_amount(next(), unit);
                let (date, ty) = self.date_add_type(date, &amount, unit);
                (vec![date, amount], ty)
            }
            UnitFunction::TimestampAdd => {
                let amount = self.interval_amount(next(), unit);
                let date = self.read_bytes(self.session_time(next()), BytesAsText::Escaped)?;
                let (date, ty) = self.date_add_type(date, &amount, unit);
                (vec![date, amount], ty)
            }
            UnitFunction::Extract => {
                let arg = self.session_time(next());
                let class = match arg.ty {
                    _ if is_plain_number(&arg.ty) => ArgClass::Any,
                    // A column is a date without a month, and another YEAR a number.
                    SqlType::Year if !unit.is_whole_days() && !matches!(arg.kind, ExprKind::Column(_)) => {
                        ArgClass::Any
                    }
                    _ if is_date_like(&arg.ty) || unit.is_whole_days() => ArgClass::DateTime,
                    SqlType::Time { .. } => ArgClass::Time,
                    // A text may be either.
                    _ if arg.ty.is_string() || arg.ty.is_bytes() => ArgClass::Text,
                    _ if is_of_time(unit) => ArgClass::Time,
                    _ => ArgClass::DateTime,
                };
                (vec![self.argument(arg, class)], SqlType::BIGINT)
            }
            UnitFunction::TimestampDiff => {
                let (from, to) = (next(), next());
                let pair = [from, to].map(|arg| self.argument(arg, ArgClass::DateTime));
                (pair.into(), SqlType::BIGINT)
            }
        };
        Ok(Expr::new(ExprKind::UnitCall { function, unit, args }, ty, true))
    }

    /// An amount as an integer, as a decimal for seconds, and as text for compound units.
    pub fn interval_amount(&self, amount: Expr, unit: IntervalUnit) -> Expr {
        if unit.is_compound() {
            return self.text(amount);
        }
        match (unit, ValueClass::of(&amount.ty)) {
            (_, ValueClass::Int | ValueClass::Null) => amount,
            (IntervalUnit::Second, ValueClass::Decimal) => amount,
            (IntervalUnit::Second, _) => {
                // What is less than a microsecond is cut off, not rounded: when it is added.
                self.convert(amount, SqlType::Decimal { precision: 38, scale: 18, unsigned: false })
            }
            _ => self.convert(amount, SqlType::BIGINT),
        }
    }

    /// DATE_ADD of a string gives a string; of a date, a date unless the unit has a time of day.
    fn date_add_type(&self, date: Expr, amount: &Expr, unit: IntervalUnit) -> (Expr, SqlType) {
        let amount_fsp = match unit {
            _ if unit.has_micros() => 6,
            IntervalUnit::Second => fsp_of_expr(amount),
            _ => 0,
        };
        match date.ty {
            SqlType::Date if unit.is_whole_days() => (date, SqlType::Date),
            SqlType::Date => {
                (self.convert(date, SqlType::DateTime { fsp: 0 }), SqlType::DateTime { fsp: amount_fsp })
            }
            SqlType::DateTime { fsp } => (date, SqlType::DateTime { fsp: fsp.max(amount_fsp) }),
            SqlType::Time { fsp } if is_of_time(unit) => (date, SqlType::Time { fsp: fsp.max(amount_fsp) }),
            // A sum that is a text is added to as the date with a time that it is.
            _ if is_sum_as_text(&date) => {
                let moment = self.argument(date, ArgClass::DateTime);
                (moment, SqlType::VarChar { len: 29, collation: self.connection_collation })
            }
            _ if date.ty.is_string() || date.ty.is_bytes() || date.ty == SqlType::Null => {
                let text = self.argument(date, ArgClass::Chars);
                (text, SqlType::VarChar { len: 29, collation: self.connection_collation })
            }
            // Whether a number is a date alone is known when it is there.
            SqlType::Bool
            | SqlType::Int { .. }
            | SqlType::Decimal { .. }
            | SqlType::Float(_)
            | SqlType::Double(_) => {
                (date, SqlType::VarChar { len: 29, collation: self.connection_collation })
            }
            _ => {
                let fsp = fsp_of_expr(&date);
                (self.argument(date, ArgClass::DateTime), SqlType::DateTime { fsp: fsp.max(amount_fsp) })
            }
        }
    }

    /// `expr [NOT] REGEXP pattern`.
    pub fn regexp(&self, expr: Expr, pattern: Expr, negated: bool) -> EvalResult<Expr> {
        let matched = self.call(Function::RegexpLike, vec![expr, pattern])?;
        Ok(if negated { self.not(matched) } else { matched })
    }
}

/// Error 3995 where a regular expression, its subject or what replaces it are texts beside bytes.
fn check_regexp_bytes(function: Function, args: &[Expr]) -> EvalResult<()> {
    let texts = match function {
        Function::RegexpLike | Function::RegexpInstr | Function::RegexpSubstr => 2,
        Function::RegexpReplace => 3,
        _ => return Ok(()),
    };
    let mut strings = args.iter().take(texts).filter_map(|arg| match arg.ty {
        ty if ty.is_bytes() => Some(Collation::BINARY),
        ty => ty.collation(),
    });
    let Some(subject) = strings.next() else { return Ok(()) };
    match strings.find(|other| (*other == Collation::BINARY) != (subject == Collation::BINARY)) {
        None => Ok(()),
        Some(other) => Err(EvalError::RegexpCharset {
            subject: subject.name(),
            other: other.name(),
            function: function.name().to_lowercase(),
        }),
    }
}

/// MySQL tells of no conversion to a date or time that it is never NULL.
fn told_as_nullable(expr: Expr) -> Expr {
    match expr.kind {
        ExprKind::Convert(_) | ExprKind::Cast(_) => Expr { nullable: true, ..expr },
        _ => expr,
    }
}

/// Whether it is a number as such: not a YEAR, and no name of an ENUM.
fn is_plain_number(ty: &SqlType) -> bool {
    matches!(ValueClass::of(ty), ValueClass::Int | ValueClass::Decimal | ValueClass::Double)
        && *ty != SqlType::Year
        && !ty.is_coded()
}

/// Whether it is the result of an operation or a function on DOUBLEs (`Item_func::val_int` raises 1690 beyond BIGINT).
fn is_computed_double(expr: &Expr) -> bool {
    let is_operation = matches!(expr.kind, ExprKind::Negate(_) | ExprKind::Arith { .. } | ExprKind::Call(..));
    is_operation && ValueClass::of(&expr.ty) == ValueClass::Double
}

/// An XPath must be known before there are rows.
fn check_xpath(xpath: &Expr) -> EvalResult<()> {
    match xpath.is_constant() {
        true => Ok(()),
        false => Err(EvalError::Xpath("Only constant XPATH queries are supported".into())),
    }
}

/// Whether it is of the time of day alone: EXTRACT looks at nothing else, and what is added to a TIME leaves it one.
fn is_of_time(unit: IntervalUnit) -> bool {
    use IntervalUnit as U;
    !unit.is_whole_days() && !matches!(unit, U::DayMicrosecond | U::DaySecond | U::DayMinute | U::DayHour)
}
