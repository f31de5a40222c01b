//! LOAD DATA.

use avocet_types::error::ErrorCode;

use crate::parse::ast::ObjectName;
use crate::parse::dml::is_own_column;
use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::{refused, unserved};
use crate::parse::statement::{Assignment, DelimitedFormat, LoadData, LoadTarget, OnDuplicateKey};

impl Parser<'_> {
    /// After LOAD DATA.
    pub(super) fn load_data(&mut self) -> ParseResult<LoadData> {
        if self.is_word("FROM") {
            return Err(unserved("LOAD DATA FROM"));
        }
        // How soon it is to be run: no effect here.
        self.eat_any(&["LOW_PRIORITY", "CONCURRENT"]);
        let local = self.eat("LOCAL");
        self.expect("INFILE")?;
        let file = self.string()?;
        let on_duplicate = match self.eat_any(&["REPLACE", "IGNORE"]) {
            Some("REPLACE") => OnDuplicateKey::Replace,
            Some(_) => OnDuplicateKey::Ignore,
            // A client that sends its file cannot be told to stop.
            None if local => OnDuplicateKey::Ignore,
            None => OnDuplicateKey::Fail,
        };
        self.expect_all(&["INTO", "TABLE"])?;
        let table = self.object_name()?;
        self.no_partitions(&table, "LOAD DATA")?;
        let charset = if self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]) {
            Some(self.charset_name()?)
        } else {
            None
        };
        let format = self.delimited_format()?;
        let skip_lines = if self.eat("IGNORE") {
            let count = self.unsigned()?;
            if self.eat_any(&["LINES", "ROWS"]).is_none() {
                return Err(self.error());
            }
            count
        } else {
            0
        };
        let targets = self.load_targets(&table)?;
        let assignments =
            if self.eat("SET") { self.comma_separated(|p| p.load_assignment(&table))? } else { Vec::new() };
        let is_assigned =
            |target: &LoadTarget| matches!(target, LoadTarget::Variable(name) if self.assigns.contains(name));
        if targets.iter().flatten().any(is_assigned) {
            return Err(unserved("LOAD DATA that assigns to a variable that it reads"));
        }
        Ok(LoadData { local, file, on_duplicate, table, charset, format, skip_lines, targets, assignments })
    }

    /// `FIELDS …` and `LINES …`, as LOAD DATA and INTO OUTFILE have them.
    pub(super) fn delimited_format(&mut self) -> ParseResult<DelimitedFormat> {
        let mut format = DelimitedFormat::default();
        if self.eat_any(&["FIELDS", "COLUMNS"]).is_some() {
            let start = self.position();
            loop {
                if self.eat_all(&["TERMINATED", "BY"]) {
                    format.field_terminator = self.delimiter()?;
                } else if self.eat_all(&["OPTIONALLY", "ENCLOSED", "BY"]) {
                    format.enclosed = self.delimiter()?;
                    format.optionally_enclosed = true;
                } else if self.eat_all(&["ENCLOSED", "BY"]) {
                    format.enclosed = self.delimiter()?;
                } else if self.eat_all(&["ESCAPED", "BY"]) {
                    format.escape = Some(self.delimiter()?);
                } else {
                    break;
                }
            }
            if self.position() == start {
                return Err(self.error());
            }
        }
        if self.eat("LINES") {
            let start = self.position();
            loop {
                if self.eat_all(&["TERMINATED", "BY"]) {
                    format.line_terminator = self.delimiter()?;
                } else if self.eat_all(&["STARTING", "BY"]) {
                    format.line_start = self.delimiter()?;
                } else {
                    break;
                }
            }
            if self.position() == start {
                return Err(self.error());
            }
        }
        let is_one_byte = |bytes: &[u8]| bytes.len() <= 1;
        if !is_one_byte(&format.enclosed) || !format.escape.as_deref().is_none_or(is_one_byte) {
            return Err(refused(ErrorCode::WRONG_FIELD_TERMINATORS.with(&[])));
        }
        Ok(format)
    }

    /// A string, `x'…'` or `b'…'`.
    fn delimiter(&mut self) -> ParseResult<Vec<u8>> {
        match self.peek() {
            TokenKind::Bytes(bytes) | TokenKind::Bits(bytes) => {
                let bytes = bytes.clone();
                self.advance();
                Ok(bytes)
            }
            _ => self.string_bytes(),
        }
    }

    /// `(a, @b)`; absent and `()` mean all columns.
    fn load_targets(&mut self, table: &ObjectName) -> ParseResult<Option<Vec<LoadTarget>>> {
        if !self.eat_op(Op::LParen) || self.eat_op(Op::RParen) {
            return Ok(None);
        }
        let targets = self.comma_separated(|p| {
            Ok(match p.is_op(Op::At) {
                true => LoadTarget::Variable(p.assigned_variable_name()?),
                false => LoadTarget::Column(is_own_column(table, p.column_name()?)?),
            })
        })?;
        self.expect_op(Op::RParen)?;
        Ok(Some(targets))
    }

    fn load_assignment(&mut self, table: &ObjectName) -> ParseResult<Assignment> {
        let assignment = self.assignment()?;
        is_own_column(table, (assignment.table.clone(), assignment.column.clone()))?;
        Ok(assignment)
    }
}
