//! Expressions in MySQL's canonical text.

use avocet_types::collation::Charset;
use avocet_types::expr::{CastTarget, Function, IsTest};

use super::{Names, Style, is_condition};
use crate::parse::ast::{
    BinaryOp, Expr, ExprKind, Ident, JsonValueCall, OnJsonProblem, Query, TemporalKind, TrimSide, UnaryOp,
};
use crate::parse::grow_stack;

pub(super) struct Printer<'s> {
    pub source: &'s [u8],
    pub style: Style<'s>,
    pub text: String,
    /// Whether a subquery of an expression is being printed, whose columns have no names.
    pub in_expression: bool,
}

impl Printer<'_> {
    pub fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub fn name(&mut self, name: &str) {
        let quote = self.style.quote;
        self.text.push(quote);
        for c in name.chars() {
            if c == quote {
                self.text.push(quote);
            }
            self.text.push(c);
        }
        self.text.push(quote);
    }

    /// A string, with its character set if that is not the connection's.
    fn string(&mut self, value: &str, charset: Option<Charset>) {
        if let Some(charset) = charset.or(self.style.strings) {
            self.text.push('_');
            self.put(charset.name());
            // In quotes, the bytes of the printed text would be taken for those of the character set.
            if !(charset.is_utf8() || value.is_ascii() && charset.keeps_ascii()) {
                self.text.push(' ');
                return self.hex(&charset.encode(value));
            }
        }
        self.quoted(value);
    }

    pub fn quoted(&mut self, value: &str) {
        self.text.push('\'');
        for c in value.chars() {
            match c {
                '\0' => self.put("\\0"),
                '\n' => self.put("\\n"),
                '\r' => self.put("\\r"),
                '\\' => self.put("\\\\"),
                '\'' => self.put("\\'"),
                '\u{1a}' => self.put("\\Z"),
                c => self.text.push(c),
            }
        }
        self.text.push('\'');
    }

    pub fn list(&mut self, items: &[Expr], separator: &str) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.put(separator);
            }
            self.value(item);
        }
    }

    pub fn call(&mut self, name: &str, args: &[Expr]) {
        self.put(name);
        self.text.push('(');
        self.list(args, ",");
        self.text.push(')');
    }

    fn infix(&mut self, left: &Expr, op: BinaryOp, right: &Expr) {
        let (of_left, of_right) = match op.is_comparison() {
            true => (Level::Comparison, Level::Predicate),
            false => (Level::Unary, Level::Unary),
        };
        self.text.push('(');
        self.operand(left, of_left);
        self.put(symbol(op));
        self.operand(right, of_right);
        self.text.push(')');
    }

    /// In parentheses, if it has none of its own and would be read otherwise where at least this level is taken.
    fn operand(&mut self, expr: &Expr, least: Level) {
        let needs = level_of(expr, false) < least;
        if needs {
            self.text.push('(');
        }
        self.value(expr);
        if needs {
            self.text.push(')');
        }
    }

    /// An operand of AND, OR, NOT, XOR and IS TRUE: what is no condition is compared with 0.
    pub fn condition(&mut self, expr: &Expr, negated: bool) {
        if !is_condition(expr) {
            self.put(if negated { "(0 = " } else { "(0 <> " });
            self.value(expr);
            return self.text.push(')');
        }
        match &expr.kind {
            ExprKind::Unary { op: UnaryOp::Not, expr } => self.condition(expr, !negated),
            ExprKind::And(parts) => self.conditions(parts, if negated { " or " } else { " and " }, negated),
            ExprKind::Or(parts) => self.conditions(parts, if negated { " and " } else { " or " }, negated),
            ExprKind::Binary { op: BinaryOp::Xor, left, right } => {
                self.text.push('(');
                self.condition(left, negated);
                self.put(" xor ");
                self.condition(right, false);
                self.text.push(')');
            }
            ExprKind::Binary { op, left, right } if *op != BinaryOp::NullSafeEq => {
                self.comparison(if negated { opposite(*op) } else { *op }, left, right);
            }
            ExprKind::Is { expr, test, negated: own } => self.is(expr, *test, *own != negated),
            ExprKind::InList { expr, list, negated: own } => self.in_list(expr, list, *own != negated),
            ExprKind::Between { expr, low, high, negated: own } => {
                self.text.push('(');
                self.operand(expr, Level::Unary);
                self.put(if *own != negated { " not between " } else { " between " });
                self.operand(low, Level::Unary);
                self.put(" and ");
                self.operand(high, Level::Predicate);
                self.text.push(')');
            }
            ExprKind::Like { expr, pattern, escape, negated: own } => self.inside_not(*own != negated, |p| {
                p.text.push('(');
                p.operand(expr, Level::Unary);
                p.put(" like ");
                p.operand(pattern, Level::Unary);
                if let Some(escape) = escape {
                    p.put(" escape ");
                    p.operand(escape, Level::Unary);
                }
                p.text.push(')');
            }),
            ExprKind::Regexp { expr, pattern, negated: own } => self.inside_not(*own != negated, |p| {
                p.put("regexp_like(");
                p.value(expr);
                p.text.push(',');
                p.value(pattern);
                p.text.push(')');
            }),
            ExprKind::Function { name, args } if Function::lookup(name) == Some(Function::IsNull) => {
                if let [arg] = &args[..] {
                    self.is(arg, IsTest::Null, negated);
                }
            }
            ExprKind::InSubquery { expr, query, negated: own } => self.in_query(expr, query, *own != negated),
            ExprKind::Quantified { op: BinaryOp::Eq, left, all: false, query } => {
                self.in_query(left, query, negated);
            }
            ExprKind::Quantified { op: BinaryOp::Ne, left, all: true, query } => {
                self.in_query(left, query, !negated);
            }
            ExprKind::Quantified { op, left, all, query } => self.inside_not(negated, |p| {
                p.operand(left, Level::Comparison);
                p.put(symbol(*op));
                p.put(if *all { "all " } else { "any " });
                p.subquery(query);
            }),
            ExprKind::Exists(query) => {
                self.put(if negated { "(not exists" } else { "exists" });
                self.subquery(query);
                if negated {
                    self.text.push(')');
                }
            }
            _ => self.inside_not(negated, |p| p.plain(expr)),
        }
    }

    /// Not in parentheses, but for NOT: as a condition of several it stands between AND and OR.
    fn in_query(&mut self, expr: &Expr, query: &Query, negated: bool) {
        self.inside_not(negated, |p| {
            p.operand(expr, Level::Unary);
            p.put(" in ");
            p.subquery(query);
        });
    }

    fn column(&mut self, database: Option<&Ident>, table: Option<&Ident>, column: &Ident) {
        if let (Some(table), Names::Qualified { left_out }) = (table, self.style.names) {
            if let Some(database) = database.filter(|database| left_out != Some(&*database.name)) {
                self.name(&database.name);
                self.text.push('.');
            }
            self.name(&table.name);
            self.text.push('.');
        }
        self.name(&column.name);
    }

    fn inside_not(&mut self, negated: bool, inner: impl FnOnce(&mut Self)) {
        if negated {
            self.put("(not(");
        }
        inner(self);
        if negated {
            self.put("))");
        }
    }

    fn conditions(&mut self, parts: &[Expr], separator: &str, negated: bool) {
        let mut all = Vec::with_capacity(parts.len());
        parts.iter().for_each(|part| flatten(part, negated, separator == " and ", &mut all));
        self.text.push('(');
        for (at, (part, negated)) in all.into_iter().enumerate() {
            if at > 0 {
                self.put(separator);
            }
            self.condition(part, negated);
        }
        self.text.push(')');
    }

    /// Rows are equal if all their columns are.
    fn comparison(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        if let (BinaryOp::Eq | BinaryOp::Ne, ExprKind::Row(lefts), ExprKind::Row(rights)) =
            (op, &left.kind, &right.kind)
            && lefts.len() == rights.len()
        {
            self.text.push('(');
            for (at, (left, right)) in lefts.iter().zip(rights).enumerate() {
                if at > 0 {
                    self.put(if op == BinaryOp::Eq { " and " } else { " or " });
                }
                self.comparison(op, left, right);
            }
            return self.text.push(')');
        }
        self.infix(left, op, right);
    }

    fn is(&mut self, expr: &Expr, test: IsTest, negated: bool) {
        self.text.push('(');
        match test {
            IsTest::True | IsTest::False => self.condition(expr, false),
            IsTest::Null | IsTest::Unknown => self.operand(expr, Level::Comparison),
        }
        self.put(if negated { " is not " } else { " is " });
        self.put(match test {
            IsTest::True => "true",
            IsTest::False => "false",
            IsTest::Null | IsTest::Unknown => "null",
        });
        self.text.push(')');
    }

    fn in_list(&mut self, expr: &Expr, list: &[Expr], negated: bool) {
        if let [only] = list {
            return self.comparison(if negated { BinaryOp::Ne } else { BinaryOp::Eq }, expr, only);
        }
        self.text.push('(');
        self.operand(expr, Level::Unary);
        self.put(if negated { " not in (" } else { " in (" });
        self.list(list, ",");
        self.put("))");
    }

    pub fn value(&mut self, expr: &Expr) {
        grow_stack(|| match is_condition(expr) {
            true => self.condition(expr, false),
            false => self.plain(expr),
        });
    }

    /// Anything but operators whose operands are conditions.
    fn plain(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Null => self.put("NULL"),
            ExprKind::Bool(value) => self.put(if *value { "true" } else { "false" }),
            ExprKind::Integer(value) => self.put(&value.to_string()),
            ExprKind::Decimal(text) => self.put(&decimal(text)),
            ExprKind::Float(value) => {
                // As it was written, but for parentheses that its span has.
                let written = expr.span.text(self.source).to_lowercase();
                match written.trim_matches(|c: char| matches!(c, '(' | ')') || c.is_whitespace()) {
                    "" => self.put(&format!("{value:e}")),
                    digits => self.put(digits),
                }
            }
            ExprKind::String { value, charset } => self.string(value, *charset),
            ExprKind::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.string(text, Some(Charset::Binary)),
                Err(_) => {
                    self.put("_binary");
                    self.hex(bytes);
                }
            },
            ExprKind::Hybrid { bytes, .. } => self.hex(bytes),
            ExprKind::Temporal { kind, text } => {
                self.put(match kind {
                    TemporalKind::Date => "DATE",
                    TemporalKind::Time => "TIME",
                    TemporalKind::Timestamp => "TIMESTAMP",
                });
                let text = temporal(*kind, text);
                self.quoted(&text);
            }
            ExprKind::Column { database, table, column } => {
                self.column(database.as_ref(), table.as_ref(), column);
            }
            ExprKind::DefaultOf { database, table, column } => {
                self.put("default(");
                self.column(database.as_ref(), table.as_ref(), column);
                self.text.push(')');
            }
            ExprKind::Unary { op, expr } => match op {
                UnaryOp::Plus => self.value(expr),
                UnaryOp::Minus => self.call("-", std::slice::from_ref(expr)),
                UnaryOp::BitNot => self.call("~", std::slice::from_ref(expr)),
                UnaryOp::Not => self.condition(expr, true),
            },
            ExprKind::Binary { op: BinaryOp::Concat, left, right } => {
                self.put("concat(");
                self.value(left);
                self.text.push(',');
                self.value(right);
                self.text.push(')');
            }
            ExprKind::Binary { op, left, right } => self.infix(left, *op, right),
            ExprKind::Case { operand, branches, otherwise } => {
                self.put("(case ");
                if let Some(operand) = operand {
                    self.value(operand);
                    self.text.push(' ');
                }
                for (when, then) in branches {
                    self.put("when ");
                    self.value(when);
                    self.put(" then ");
                    self.value(then);
                    self.text.push(' ');
                }
                if let Some(otherwise) = otherwise {
                    self.put("else ");
                    self.value(otherwise);
                    self.text.push(' ');
                }
                self.put("end)");
            }
            ExprKind::Cast { expr, target } => {
                self.put("cast(");
                self.value(expr);
                self.put(" as ");
                self.cast_target(*target);
                self.text.push(')');
            }
            ExprKind::ConvertUsing { expr, charset } => {
                self.put("convert(");
                self.value(expr);
                self.put(" using ");
                self.put(&charset.to_lowercase());
                self.text.push(')');
            }
            ExprKind::Collate { expr, collation } => {
                self.text.push('(');
                self.operand(expr, Level::Simple);
                self.put(" collate ");
                self.put(&collation.to_lowercase());
                self.text.push(')');
            }
            ExprKind::Function { name, args } => self.function(name, args),
            ExprKind::DateArithmetic { expr, amount, unit, subtract } => {
                self.text.push('(');
                self.operand(expr, Level::Unary);
                self.put(if *subtract { " - interval " } else { " + interval " });
                self.value(amount);
                self.text.push(' ');
                self.put(&unit.name().to_lowercase());
                self.text.push(')');
            }
            ExprKind::Extract { unit, expr } => {
                self.put("extract(");
                self.put(&unit.name().to_lowercase());
                self.put(" from ");
                self.value(expr);
                self.text.push(')');
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                self.put("timestampdiff(");
                self.put(unit.name());
                self.text.push(',');
                self.value(from);
                self.text.push(',');
                self.value(to);
                self.text.push(')');
            }
            ExprKind::Trim { side, what, expr } => self.trim(*side, what.as_deref(), expr),
            ExprKind::JsonValue(call) => self.json_value(call),
            ExprKind::Row(items) => self.call("", items),
            ExprKind::Subquery(query) => self.subquery(query),
            ExprKind::Aggregate(call) => self.aggregate(call),
            ExprKind::Window(call) => self.window_call(call),
            // What no definition may contain, and conditions that are printed by `condition`.
            _ => {
                let written = expr.span.text(self.source).into_owned();
                self.put(&written);
            }
        }
    }

    fn json_value(&mut self, call: &JsonValueCall) {
        self.put("json_value(");
        self.value(&call.document);
        self.put(", ");
        self.value(&call.path);
        self.put(" returning ");
        match call.returning {
            Some(target) => self.cast_target(target),
            None => self.put("char(512)"),
        }
        for (problem, event) in [(&call.on_empty, "empty"), (&call.on_error, "error")] {
            match problem {
                // As if nothing were said.
                OnJsonProblem::Null => continue,
                OnJsonProblem::Error => self.put(" error"),
                OnJsonProblem::Default(value) => {
                    self.put(" default ");
                    self.value(value);
                }
            }
            self.put(" on ");
            self.put(event);
        }
        self.text.push(')');
    }

    fn hex(&mut self, bytes: &[u8]) {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.put("0x");
        self.put(&digits);
    }

    fn trim(&mut self, side: TrimSide, what: Option<&Expr>, expr: &Expr) {
        self.put("trim(");
        if let Some(what) = what {
            self.put(match side {
                TrimSide::Both => "both ",
                TrimSide::Leading => "leading ",
                TrimSide::Trailing => "trailing ",
            });
            self.value(what);
            self.put(" from ");
        }
        self.value(expr);
        self.text.push(')');
    }

    fn cast_target(&mut self, target: CastTarget) {
        let len = |len: Option<u64>| len.map_or(String::new(), |len| format!("({len})"));
        let fsp = |fsp: u64| len(Some(fsp).filter(|fsp| *fsp > 0));
        let text = match target {
            CastTarget::Signed => "signed".to_owned(),
            CastTarget::Unsigned => "unsigned".to_owned(),
            CastTarget::Decimal(None) => "decimal(10,0)".to_owned(),
            CastTarget::Decimal(Some((precision, scale))) => format!("decimal({precision},{scale})"),
            CastTarget::Float => "float".to_owned(),
            CastTarget::Double => "double".to_owned(),
            CastTarget::Char(chars, collation) => {
                let charset = collation.map_or(self.style.charset, |collation| collation.info().charset);
                format!("char{} charset {}", len(chars), charset.name())
            }
            CastTarget::Binary(bytes) => format!("char{} charset binary", len(bytes)),
            CastTarget::Date => "date".to_owned(),
            CastTarget::DateTime(digits) => format!("datetime{}", fsp(digits)),
            CastTarget::Time(digits) => format!("time{}", fsp(digits)),
            CastTarget::Year => "year".to_owned(),
            CastTarget::Json => "json".to_owned(),
        };
        self.put(&text);
    }

    /// A call under the name that MySQL has for the function, or as what it has in its place.
    fn function(&mut self, name: &str, args: &[Expr]) {
        let function = Function::lookup(name);
        let known = function.map_or_else(|| name.to_lowercase(), |function| function.name().to_lowercase());
        match (function, args) {
            (Some(Function::Mod), [left, right]) => self.infix(left, BinaryOp::Mod, right),
            (Some(Function::IsNull), [arg]) => self.is(arg, IsTest::Null, false),
            (Some(Function::Instr), [text, what]) => {
                self.put("locate(");
                self.value(what);
                self.text.push(',');
                self.value(text);
                self.text.push(')');
            }
            (Some(Function::JsonMemberOf), [value, document]) => {
                self.operand(value, Level::Unary);
                self.put(" member of (");
                self.operand(document, Level::Unary);
                self.text.push(')');
            }
            (Some(Function::Date), [arg]) => self.cast(arg, "date"),
            (Some(Function::TimeOf), [arg]) => self.cast(arg, "time"),
            (Some(Function::Timestamp), [arg]) => self.cast(arg, "datetime"),
            (Some(Function::WeightString), [arg, Expr { kind: ExprKind::Integer(len), .. }]) => {
                self.cast_as(arg, "weight_string(", &format!("char({len})"));
            }
            (Some(Function::Bin), [arg]) => self.call_with(arg, "conv", ",10,2"),
            (Some(Function::Oct), [arg]) => self.call_with(arg, "conv", ",10,8"),
            (Some(Function::Week), [arg]) => self.call_with(arg, "week", ",0"),
            (Some(Function::Round), [arg]) => self.call_with(arg, "round", ",0"),
            (Some(Function::Ceil), _) => self.call("ceiling", args),
            (Some(Function::Substring), _) => self.call("substr", args),
            _ => self.call(&known, args),
        }
    }

    fn cast(&mut self, arg: &Expr, to: &str) {
        self.cast_as(arg, "cast(", to);
    }

    fn cast_as(&mut self, arg: &Expr, function: &str, to: &str) {
        self.put(function);
        self.value(arg);
        self.put(" as ");
        self.put(to);
        self.text.push(')');
    }

    /// A call with more arguments than were written.
    fn call_with(&mut self, arg: &Expr, name: &str, more: &str) {
        self.put(name);
        self.text.push('(');
        self.value(arg);
        self.put(more);
        self.text.push(')');
    }
}

/// The parts of an AND or (not `is_and`) of an OR, those among them that NOT makes one.
fn flatten<'e>(expr: &'e Expr, negated: bool, is_and: bool, to: &mut Vec<(&'e Expr, bool)>) {
    match &expr.kind {
        ExprKind::Unary { op: UnaryOp::Not, expr } if is_condition(expr) => {
            grow_stack(|| flatten(expr, !negated, is_and, to));
        }
        ExprKind::And(parts) if is_and != negated => {
            parts.iter().for_each(|part| grow_stack(|| flatten(part, negated, is_and, to)));
        }
        ExprKind::Or(parts) if is_and == negated => {
            parts.iter().for_each(|part| grow_stack(|| flatten(part, negated, is_and, to)));
        }
        _ => to.push((expr, negated)),
    }
}

fn opposite(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        op => op,
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Xor => " xor ",
        BinaryOp::Eq => " = ",
        BinaryOp::NullSafeEq => " <=> ",
        BinaryOp::Ne => " <> ",
        BinaryOp::Lt => " < ",
        BinaryOp::Le => " <= ",
        BinaryOp::Gt => " > ",
        BinaryOp::Ge => " >= ",
        BinaryOp::BitOr => " | ",
        BinaryOp::BitAnd => " & ",
        BinaryOp::BitXor => " ^ ",
        BinaryOp::ShiftLeft => " << ",
        BinaryOp::ShiftRight => " >> ",
        BinaryOp::Add => " + ",
        BinaryOp::Sub => " - ",
        BinaryOp::Mul => " * ",
        BinaryOp::Div => " / ",
        BinaryOp::IntDiv => " DIV ",
        BinaryOp::Mod => " % ",
        BinaryOp::Concat => " || ",
    }
}

/// How tightly the printed text holds together, as MySQL's grammar has it: `bool_pri`, `predicate` and the two kinds of
/// `simple_expr`. Operators print parentheses of their own, but for these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// `a > ALL (…)`
    Comparison,
    /// `a IN (…)`, `a MEMBER OF (…)`
    Predicate,
    /// `-(a)`, which COLLATE would be read into.
    Unary,
    Simple,
}

fn level_of(expr: &Expr, negated: bool) -> Level {
    match &expr.kind {
        ExprKind::Unary { op: UnaryOp::Not, expr } if is_condition(expr) => {
            grow_stack(|| level_of(expr, !negated))
        }
        ExprKind::Unary { op: UnaryOp::Plus, expr } => grow_stack(|| level_of(expr, negated)),
        ExprKind::Unary { op: UnaryOp::Minus | UnaryOp::BitNot, .. } if !negated => Level::Unary,
        ExprKind::InSubquery { negated: own, .. } if *own == negated => Level::Predicate,
        ExprKind::Quantified { op: BinaryOp::Ne, all: true, .. } if negated => Level::Predicate,
        ExprKind::Quantified { op: BinaryOp::Ne, all: true, .. } => Level::Simple,
        ExprKind::Quantified { op: BinaryOp::Eq, all: false, .. } if !negated => Level::Predicate,
        ExprKind::Quantified { .. } if !negated => Level::Comparison,
        ExprKind::Function { name, .. } if Function::lookup(name) == Some(Function::JsonMemberOf) => {
            if negated {
                Level::Simple
            } else {
                Level::Predicate
            }
        }
        _ => Level::Simple,
    }
}

/// `.5` is `0.5`, `1.` is `1`.
fn decimal(text: &str) -> String {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.starts_with('.') { format!("0{text}") } else { text.to_owned() }
}

/// A temporal literal with all its digits, if it is one.
fn temporal(kind: TemporalKind, text: &str) -> String {
    use avocet_types::temporal::{TimeZone, ZeroDates, date_of, parse_datetime, parse_time};
    use avocet_types::text::to_text;
    use avocet_types::{Datum, SqlType};
    let parsed = match kind {
        TemporalKind::Time => parse_time(text.as_bytes(), TimeZone::UTC),
        _ => parse_datetime(text.as_bytes(), TimeZone::UTC, ZeroDates::ALLOWED),
    };
    // With an offset it is a moment, whose local time is another one for each reader.
    let Some(parsed) = parsed.filter(|parsed| parsed.utc.is_none()) else { return text.to_owned() };
    let (value, ty) = match kind {
        TemporalKind::Date => (Datum::Date(date_of(parsed.micros)), SqlType::Date),
        TemporalKind::Time => (Datum::Time(parsed.micros), SqlType::Time { fsp: parsed.fsp }),
        TemporalKind::Timestamp => (Datum::DateTime(parsed.micros), SqlType::DateTime { fsp: parsed.fsp }),
    };
    to_text(&value, &ty, TimeZone::UTC).unwrap_or_default().into_owned()
}
