//! Aggregates and window functions, and the windows that they are over.

use avocet_types::error::ErrorCode;

use crate::parse::ast::*;
use crate::parse::error::ParseResult;
use crate::parse::lexer::Op;
use crate::parse::parser::Parser;
use crate::parse::refuse::refused;

pub(super) const AGGREGATES: &[&str] = &[
    "ANY_VALUE",
    "AVG",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "COUNT",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "MAX",
    "MIN",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "SUM",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];

pub(super) const WINDOW_FUNCTIONS: &[&str] = &[
    "CUME_DIST",
    "DENSE_RANK",
    "FIRST_VALUE",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "NTH_VALUE",
    "NTILE",
    "PERCENT_RANK",
    "RANK",
    "ROW_NUMBER",
];

impl Parser<'_> {
    pub(super) fn aggregate(&mut self, name: &str) -> ParseResult<ExprKind> {
        self.advance();
        self.expect_op(Op::LParen)?;
        let mut call = AggregateCall {
            name: name.into(),
            distinct: false,
            args: Vec::new(),
            order_by: Vec::new(),
            separator: None,
            over: None,
        };
        if name == "COUNT" && self.is_op(Op::Star) {
            self.advance();
        } else if name == "ANY_VALUE" && self.is_op(Op::RParen) {
            // A native function, whose arguments are counted later than those of the grammar's.
            return Err(refused(ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT.with(&[&name])));
        } else {
            let takes_distinct = matches!(name, "AVG" | "COUNT" | "GROUP_CONCAT" | "MAX" | "MIN" | "SUM");
            call.distinct = takes_distinct && self.eat("DISTINCT");
            if !call.distinct && !name.starts_with("JSON_") {
                self.eat("ALL");
            }
            call.args = match name {
                "GROUP_CONCAT" | "ANY_VALUE" => self.expr_list()?,
                "COUNT" if call.distinct => self.expr_list()?,
                "JSON_OBJECTAGG" => self.args_within(2, 2)?,
                _ => self.args_within(1, 1)?,
            };
        }
        if name == "GROUP_CONCAT" {
            call.order_by = self.optional_order_by()?;
            call.separator = if self.eat("SEPARATOR") { Some(self.string()?) } else { None };
        }
        self.expect_op(Op::RParen)?;
        call.over = if self.is_word("OVER") { Some(self.over()?) } else { None };
        Ok(ExprKind::Aggregate(Box::new(call)))
    }

    pub(super) fn window_call(&mut self, name: &str) -> ParseResult<ExprKind> {
        self.advance();
        let (least, most) = match name {
            "LAG" | "LEAD" => (1, 3),
            "FIRST_VALUE" | "LAST_VALUE" | "NTILE" => (1, 1),
            "NTH_VALUE" => (2, 2),
            _ => (0, 0),
        };
        let args = self.call_args_within(least, most)?;
        let from_last = if self.eat_all(&["FROM", "LAST"]) {
            true
        } else {
            self.eat_all(&["FROM", "FIRST"]);
            false
        };
        let ignore_nulls = if self.eat_all(&["IGNORE", "NULLS"]) {
            true
        } else {
            self.eat_all(&["RESPECT", "NULLS"]);
            false
        };
        let over = self.over()?;
        Ok(ExprKind::Window(Box::new(WindowCall { name: name.into(), args, ignore_nulls, from_last, over })))
    }

    fn over(&mut self) -> ParseResult<WindowRef> {
        self.expect("OVER")?;
        if self.is_op(Op::LParen) {
            return Ok(WindowRef::Inline(self.nested(Self::window_spec)?));
        }
        Ok(WindowRef::Named(self.ident()?))
    }

    /// `([base] [PARTITION BY …] [ORDER BY …] [frame])`
    pub(super) fn window_spec(&mut self) -> ParseResult<WindowSpec> {
        self.expect_op(Op::LParen)?;
        let mut spec = WindowSpec::default();
        if self.is_ident() && !self.is_any_word(&["PARTITION", "ORDER", "ROWS", "RANGE"]) {
            spec.base = Some(self.ident()?);
        }
        if self.eat_all(&["PARTITION", "BY"]) {
            spec.partition_by = self.expr_list()?;
        }
        spec.order_by = self.optional_order_by()?;
        spec.frame = match self.eat_any(&["ROWS", "RANGE"]) {
            Some("ROWS") => Some(self.frame(FrameUnit::Rows)?),
            Some(_) => Some(self.frame(FrameUnit::Range)?),
            None => None,
        };
        self.expect_op(Op::RParen)?;
        Ok(spec)
    }

    fn frame(&mut self, unit: FrameUnit) -> ParseResult<Frame> {
        if !self.eat("BETWEEN") {
            return Ok(Frame { unit, start: self.frame_bound()?, end: FrameBound::CurrentRow });
        }
        let start = self.frame_bound()?;
        self.expect("AND")?;
        Ok(Frame { unit, start, end: self.frame_bound()? })
    }

    fn frame_bound(&mut self) -> ParseResult<FrameBound> {
        if self.eat_all(&["CURRENT", "ROW"]) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.eat("UNBOUNDED") {
            return match self.eat_any(&["PRECEDING", "FOLLOWING"]) {
                Some("PRECEDING") => Ok(FrameBound::UnboundedPreceding),
                Some(_) => Ok(FrameBound::UnboundedFollowing),
                None => Err(self.error()),
            };
        }
        let (distance, unit) = if self.is_word("INTERVAL") {
            let (amount, unit) = self.interval()?;
            (amount, Some(unit))
        } else {
            (self.boxed_expr()?, None)
        };
        match self.eat_any(&["PRECEDING", "FOLLOWING"]) {
            Some("PRECEDING") => Ok(FrameBound::Preceding(distance, unit)),
            Some(_) => Ok(FrameBound::Following(distance, unit)),
            None => Err(self.error()),
        }
    }
}
