//! Expressions, layer by layer as MySQL's grammar has them:
//!
//! ```text
//!  OR ‖ → XOR → AND && → NOT → IS TRUE → = <=> < … IS NULL → IN BETWEEN LIKE REGEXP → | → & → << >> → + − →
//!  * / DIV % MOD → ^ → (‖ under PIPES_AS_CONCAT) → unary − ~ → ! → BINARY COLLATE
//! ```

use avocet_types::expr::SqlMode;

use crate::parse::ast::*;
use crate::parse::deprecated::{Deprecated, known_collation};
use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;

/// Binary operators between bit expressions, with how tightly they bind.
fn bit_operator(parser: &Parser<'_>) -> Option<(BinaryOp, u8)> {
    let found = match parser.peek() {
        TokenKind::Op(op) => match op {
            Op::Pipe => (BinaryOp::BitOr, 1),
            Op::Ampersand => (BinaryOp::BitAnd, 2),
            Op::ShiftLeft => (BinaryOp::ShiftLeft, 3),
            Op::ShiftRight => (BinaryOp::ShiftRight, 3),
            Op::Plus => (BinaryOp::Add, 4),
            Op::Minus => (BinaryOp::Sub, 4),
            Op::Star => (BinaryOp::Mul, 5),
            Op::Slash => (BinaryOp::Div, 5),
            Op::Percent => (BinaryOp::Mod, 5),
            Op::Caret => (BinaryOp::BitXor, 6),
            _ => return None,
        },
        TokenKind::Word if parser.is_word("DIV") => (BinaryOp::IntDiv, 5),
        TokenKind::Word if parser.is_word("MOD") => (BinaryOp::Mod, 5),
        _ => return None,
    };
    Some(found)
}

fn comparison_operator(kind: &TokenKind) -> Option<BinaryOp> {
    let TokenKind::Op(op) = kind else { return None };
    Some(match op {
        Op::Eq => BinaryOp::Eq,
        Op::NullSafeEq => BinaryOp::NullSafeEq,
        Op::Ne => BinaryOp::Ne,
        Op::Lt => BinaryOp::Lt,
        Op::Le => BinaryOp::Le,
        Op::Gt => BinaryOp::Gt,
        Op::Ge => BinaryOp::Ge,
        _ => return None,
    })
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    Expr { kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, span }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> ParseResult<Expr> {
        self.nested(Self::or_expr)
    }

    pub(super) fn boxed_expr(&mut self) -> ParseResult<Box<Expr>> {
        self.expr().map(Box::new)
    }

    pub(super) fn expr_list(&mut self) -> ParseResult<Vec<Expr>> {
        self.comma_separated(Self::expr)
    }

    pub(super) fn parenthesized_exprs(&mut self) -> ParseResult<Vec<Expr>> {
        self.expect_op(Op::LParen)?;
        let list = self.expr_list()?;
        self.expect_op(Op::RParen)?;
        Ok(list)
    }

    fn at_or(&self) -> bool {
        self.is_word("OR") || (self.is_op(Op::PipePipe) && !self.mode.has(SqlMode::PIPES_AS_CONCAT))
    }

    fn or_expr(&mut self) -> ParseResult<Expr> {
        let first = self.xor_expr()?;
        if !self.at_or() {
            return Ok(first);
        }
        let start = first.span;
        let mut operands = vec![first];
        while self.at_or() {
            let is_op = self.is_op(Op::PipePipe);
            self.advance();
            if is_op {
                self.deprecated(Deprecated::DoublePipe);
            }
            operands.push(self.xor_expr()?);
        }
        Ok(Expr { kind: ExprKind::Or(operands), span: self.span_from(start) })
    }

    fn xor_expr(&mut self) -> ParseResult<Expr> {
        self.apart(|parser| {
            let mut left = parser.and_expr()?;
            while parser.eat("XOR") {
                let right = parser.apart(Self::and_expr)?;
                parser.taller()?;
                left = binary(BinaryOp::Xor, left, right);
            }
            Ok(left)
        })
    }

    fn at_and(&self) -> bool {
        self.is_word("AND") || self.is_op(Op::AmpersandAmpersand)
    }

    fn and_expr(&mut self) -> ParseResult<Expr> {
        let first = self.apart(Self::not_expr)?;
        if !self.at_and() {
            return Ok(first);
        }
        let start = first.span;
        let mut operands = vec![first];
        while self.at_and() {
            let is_op = self.is_op(Op::AmpersandAmpersand);
            self.advance();
            if is_op {
                self.deprecated(Deprecated::DoubleAmpersand);
            }
            operands.push(self.apart(Self::not_expr)?);
        }
        Ok(Expr { kind: ExprKind::And(operands), span: self.span_from(start) })
    }

    fn not_expr(&mut self) -> ParseResult<Expr> {
        let start = self.span();
        if self.is_word("NOT") && !self.mode.has(SqlMode::HIGH_NOT_PRECEDENCE) {
            self.advance();
            let expr = self.nested(Self::not_expr)?;
            return Ok(self.unary(UnaryOp::Not, expr, start));
        }
        self.truth_test()
    }

    fn unary(&self, op: UnaryOp, expr: Expr, start: Span) -> Expr {
        Expr { kind: ExprKind::Unary { op, expr: Box::new(expr) }, span: self.span_from(start) }
    }

    /// `e IS [NOT] TRUE | FALSE | UNKNOWN`
    fn truth_test(&mut self) -> ParseResult<Expr> {
        let expr = self.comparison()?;
        if !self.is_word("IS") {
            return Ok(expr);
        }
        self.advance();
        let negated = self.eat("NOT");
        let test = match self.eat_any(&["TRUE", "FALSE", "UNKNOWN"]) {
            Some("TRUE") => IsTest::True,
            Some("FALSE") => IsTest::False,
            Some(_) => IsTest::Unknown,
            None => return Err(self.error()),
        };
        let span = self.span_from(expr.span);
        Ok(Expr { kind: ExprKind::Is { expr: Box::new(expr), test, negated }, span })
    }

    /// Comparisons and IS NULL, from left to right.
    fn comparison(&mut self) -> ParseResult<Expr> {
        self.apart(Self::comparison_here)
    }

    fn comparison_here(&mut self) -> ParseResult<Expr> {
        let mut left = self.predicate()?;
        loop {
            if let Some(op) = comparison_operator(self.peek()) {
                self.advance();
                left = self.comparison_with(op, left)?;
            } else if self.is_words(&["IS", "NULL"]) || self.is_words(&["IS", "NOT", "NULL"]) {
                self.advance();
                let negated = self.eat("NOT");
                self.advance();
                let span = self.span_from(left.span);
                left =
                    Expr { kind: ExprKind::Is { expr: Box::new(left), test: IsTest::Null, negated }, span };
            } else {
                return Ok(left);
            }
            self.taller()?;
        }
    }

    fn comparison_with(&mut self, op: BinaryOp, left: Expr) -> ParseResult<Expr> {
        let quantified = self.is_any_word(&["ANY", "SOME", "ALL"])
            && *self.peek_ahead(1) == TokenKind::Op(Op::LParen)
            && op != BinaryOp::NullSafeEq;
        if !quantified {
            let right = self.apart(Self::predicate)?;
            return Ok(binary(op, left, right));
        }
        let all = self.is_word("ALL");
        self.advance();
        let query = Box::new(self.parenthesized_query()?);
        let span = self.span_from(left.span);
        Ok(Expr { kind: ExprKind::Quantified { op, left: Box::new(left), all, query }, span })
    }

    fn predicate(&mut self) -> ParseResult<Expr> {
        let expr = self.bit_expr(0)?;
        let negated = self.is_word("NOT")
            && ["IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"].iter().any(|k| self.is_word_ahead(1, k));
        if negated {
            self.advance();
        }
        let start = expr.span;
        let expr = Box::new(expr);
        let kind = match self.word_upper().as_deref() {
            Some("IN") => {
                self.advance();
                self.in_predicate(expr, negated)?
            }
            Some("BETWEEN") => {
                self.advance();
                let low = Box::new(self.bit_expr(0)?);
                self.expect("AND")?;
                let high = Box::new(self.nested(Self::predicate)?);
                ExprKind::Between { expr, low, high, negated }
            }
            Some("LIKE") => {
                self.advance();
                let pattern = Box::new(self.simple_expr()?);
                let escape = if self.eat("ESCAPE") { Some(Box::new(self.simple_expr()?)) } else { None };
                ExprKind::Like { expr, pattern, escape, negated }
            }
            Some("REGEXP" | "RLIKE") => {
                self.advance();
                ExprKind::Regexp { expr, pattern: Box::new(self.bit_expr(0)?), negated }
            }
            Some("MEMBER") => {
                self.advance();
                self.eat("OF");
                self.expect_op(Op::LParen)?;
                let document = self.simple_expr()?;
                self.expect_op(Op::RParen)?;
                ExprKind::Function { name: "MEMBER OF".into(), args: vec![*expr, document] }
            }
            Some("SOUNDS") if self.is_word_ahead(1, "LIKE") => {
                self.advance();
                self.advance();
                let right = self.bit_expr(0)?;
                return Ok(sounds_like(*expr, right));
            }
            _ => return Ok(*expr),
        };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    fn in_predicate(&mut self, expr: Box<Expr>, negated: bool) -> ParseResult<ExprKind> {
        if self.at_parenthesized_query() {
            let query = Box::new(self.parenthesized_query()?);
            return Ok(ExprKind::InSubquery { expr, query, negated });
        }
        let list = self.parenthesized_exprs()?;
        Ok(ExprKind::InList { expr, list, negated })
    }

    /// Operators that bind at least as tightly as `min`, from left to right.
    pub(super) fn bit_expr(&mut self, min: u8) -> ParseResult<Expr> {
        self.apart(|parser| parser.bit_expr_here(min))
    }

    fn bit_expr_here(&mut self, min: u8) -> ParseResult<Expr> {
        let mut left = if self.is_word("INTERVAL") && !self.at_interval_function() {
            self.interval_first()?
        } else {
            self.simple_expr()?
        };
        while let Some((op, power)) = bit_operator(self).filter(|(_, power)| *power >= min) {
            self.advance();
            let additive = matches!(op, BinaryOp::Add | BinaryOp::Sub);
            if additive && self.is_word("INTERVAL") && !self.at_interval_function() {
                left = self.plus_interval(left, op == BinaryOp::Sub)?;
            } else {
                let right = self.bit_expr(power + 1)?;
                left = binary(op, left, right);
            }
            self.taller()?;
        }
        Ok(left)
    }

    /// `INTERVAL(n, a, b, …)`, the function, as opposed to `INTERVAL (n) DAY`.
    fn at_interval_function(&mut self) -> bool {
        if *self.peek_ahead(1) != TokenKind::Op(Op::LParen) {
            return false;
        }
        let mut depth = 0;
        for ahead in 1.. {
            match self.peek_ahead(ahead) {
                TokenKind::Op(Op::LParen) => depth += 1,
                TokenKind::Op(Op::RParen) if depth == 1 => return false,
                TokenKind::Op(Op::RParen) => depth -= 1,
                TokenKind::Op(Op::Comma) if depth == 1 => return true,
                TokenKind::End => return false,
                _ => {}
            }
        }
        false
    }

    /// `INTERVAL amount unit`
    pub(super) fn interval(&mut self) -> ParseResult<(Box<Expr>, IntervalUnit)> {
        self.expect("INTERVAL")?;
        let amount = self.boxed_expr()?;
        Ok((amount, self.interval_unit()?))
    }

    pub(super) fn interval_unit(&mut self) -> ParseResult<IntervalUnit> {
        let unit = self.word_upper().and_then(|word| IntervalUnit::parse(&word));
        let unit = unit.ok_or_else(|| self.error())?;
        self.advance();
        Ok(unit)
    }

    fn plus_interval(&mut self, date: Expr, subtract: bool) -> ParseResult<Expr> {
        let start = date.span;
        let (amount, unit) = self.interval()?;
        let kind = ExprKind::DateArithmetic { expr: Box::new(date), amount, unit, subtract };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    /// `INTERVAL amount unit + date`
    fn interval_first(&mut self) -> ParseResult<Expr> {
        let start = self.span();
        let (amount, unit) = self.interval()?;
        self.expect_op(Op::Plus)?;
        let expr = Box::new(self.bit_expr(5)?);
        let kind = ExprKind::DateArithmetic { expr, amount, unit, subtract: false };
        Ok(Expr { kind, span: self.span_from(start) })
    }

    /// MySQL's `simple_expr`: under PIPES_AS_CONCAT, operands of `‖` from left to right.
    pub(super) fn simple_expr(&mut self) -> ParseResult<Expr> {
        let mut left = self.unary_expr()?;
        while self.is_op(Op::PipePipe) && self.mode.has(SqlMode::PIPES_AS_CONCAT) {
            self.advance();
            let right = self.apart(Self::unary_expr)?;
            left = binary(BinaryOp::Concat, left, right);
            self.taller()?;
        }
        Ok(left)
    }

    fn unary_expr(&mut self) -> ParseResult<Expr> {
        let start = self.span();
        let op = match self.peek() {
            TokenKind::Op(Op::Minus) => UnaryOp::Minus,
            TokenKind::Op(Op::Plus) => UnaryOp::Plus,
            TokenKind::Op(Op::Tilde) => UnaryOp::BitNot,
            TokenKind::Op(Op::Bang) => UnaryOp::Not,
            TokenKind::Word if self.is_word("NOT") => UnaryOp::Not,
            TokenKind::Word if self.is_word("BINARY") => {
                self.advance();
                let expr = Box::new(self.nested(Self::unary_expr)?);
                self.deprecated(Deprecated::BinaryOperator);
                let kind = ExprKind::Cast { expr, target: CastTarget::Binary(None) };
                return Ok(Expr { kind, span: self.span_from(start) });
            }
            _ => return self.postfix(),
        };
        let is_bang = self.is_op(Op::Bang);
        self.advance();
        let expr = self.nested(Self::unary_expr)?;
        if is_bang {
            self.deprecated(Deprecated::Bang);
        }
        Ok(self.unary(op, expr, start))
    }

    /// A primary followed by COLLATE, `->` or `->>`.
    fn postfix(&mut self) -> ParseResult<Expr> {
        self.apart(Self::postfix_here)
    }

    fn postfix_here(&mut self) -> ParseResult<Expr> {
        let mut expr = self.primary()?;
        loop {
            let start = expr.span;
            if self.eat("COLLATE") {
                let collation = known_collation(self.name()?)?;
                let kind = ExprKind::Collate { expr: Box::new(expr), collation };
                expr = Expr { kind, span: self.span_from(start) };
            } else if self.is_op(Op::Arrow) || self.is_op(Op::LongArrow) {
                if !matches!(expr.kind, ExprKind::Column { .. }) {
                    return Err(self.error());
                }
                let unquotes = self.is_op(Op::LongArrow);
                self.advance();
                let path = *self.string_literal()?;
                let call = |name: &str, args| {
                    let kind = ExprKind::Function { name: name.into(), args };
                    Expr { kind, span: self.span_from(start) }
                };
                expr = call("json_extract", vec![expr, path]);
                if unquotes {
                    expr = call("json_unquote", vec![expr]);
                }
            } else {
                return Ok(expr);
            }
            self.taller()?;
        }
    }
}

/// `a SOUNDS LIKE b` is `SOUNDEX(a) = SOUNDEX(b)`.
fn sounds_like(left: Expr, right: Expr) -> Expr {
    let soundex = |e: Expr| {
        let span = e.span;
        Expr { kind: ExprKind::Function { name: "SOUNDEX".into(), args: vec![e] }, span }
    };
    binary(BinaryOp::Eq, soundex(left), soundex(right))
}
