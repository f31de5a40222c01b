//! Partitions: `PARTITION BY` of CREATE TABLE and ALTER TABLE, and actions of ALTER TABLE on partitions.

use crate::parse::ast::{Expr, Ident};
use crate::parse::error::ParseResult;
use crate::parse::lexer::Op;
use crate::parse::parser::Parser;
use crate::parse::refuse::unserved;
use crate::parse::statement::*;

impl Parser<'_> {
    /// `PARTITION BY …`, if it is there.
    pub(in crate::parse) fn optional_partition_by(&mut self) -> ParseResult<Option<Box<PartitionBy>>> {
        match self.eat_all(&["PARTITION", "BY"]) {
            true => Ok(Some(Box::new(self.partition_by()?))),
            false => Ok(None),
        }
    }

    /// After PARTITION BY.
    pub(in crate::parse) fn partition_by(&mut self) -> ParseResult<PartitionBy> {
        let function = self.partition_function(true)?;
        let count = if self.eat("PARTITIONS") { Some(self.unsigned()?) } else { None };
        let sub = if self.eat_all(&["SUBPARTITION", "BY"]) {
            let function = self.partition_function(false)?;
            let count = if self.eat("SUBPARTITIONS") { Some(self.unsigned()?) } else { None };
            Some(SubpartitionBy { function, count })
        } else {
            None
        };
        let parts = if self.is_op(Op::LParen) { self.partition_list()? } else { Vec::new() };
        Ok(PartitionBy { function, count, sub, parts })
    }

    fn partition_function(&mut self, is_top: bool) -> ParseResult<PartitionFunction> {
        let linear = self.eat("LINEAR");
        let words: &[&'static str] = match (linear, is_top) {
            (false, true) => &["HASH", "KEY", "RANGE", "LIST"],
            _ => &["HASH", "KEY"],
        };
        let method = match self.eat_any(words).ok_or_else(|| self.error())? {
            "HASH" => PartitionMethod::Hash,
            "KEY" => PartitionMethod::Key,
            "RANGE" => PartitionMethod::Range,
            _ => PartitionMethod::List,
        };
        let mut old_algorithm = false;
        if method == PartitionMethod::Key && self.eat("ALGORITHM") {
            self.expect_op(Op::Eq)?;
            old_algorithm = match self.unsigned()? {
                1 => true,
                2 => false,
                _ => return Err(self.error()),
            };
        }
        let has_columns = method == PartitionMethod::Key
            || matches!(method, PartitionMethod::Range | PartitionMethod::List) && self.eat("COLUMNS");
        self.expect_op(Op::LParen)?;
        let of = match has_columns {
            true if method == PartitionMethod::Key && self.is_op(Op::RParen) => {
                PartitionedBy::Columns(Vec::new())
            }
            true => PartitionedBy::Columns(self.ident_list()?),
            false => PartitionedBy::Expr(self.partition_expr()?),
        };
        self.expect_op(Op::RParen)?;
        Ok(PartitionFunction { method, linear, old_algorithm, of })
    }

    /// `(PARTITION p …, …)`
    fn partition_list(&mut self) -> ParseResult<Vec<PartitionSpec>> {
        self.expect_op(Op::LParen)?;
        let parts = self.comma_separated(Self::partition_spec)?;
        self.expect_op(Op::RParen)?;
        Ok(parts)
    }

    fn partition_spec(&mut self) -> ParseResult<PartitionSpec> {
        self.expect("PARTITION")?;
        let name = self.ident()?;
        let values = self.partition_values()?;
        let options = self.partition_options()?;
        let mut subs = Vec::new();
        if self.eat_op(Op::LParen) {
            subs = self.comma_separated(|p| {
                p.expect("SUBPARTITION")?;
                Ok((p.name_of_subpartition()?, p.partition_options()?))
            })?;
            self.expect_op(Op::RParen)?;
        }
        Ok(PartitionSpec { name, values, options, subs })
    }

    /// An identifier or a string.
    fn name_of_subpartition(&mut self) -> ParseResult<Ident> {
        let span = self.span();
        match self.is_ident() {
            true => self.ident(),
            false => Ok(Ident { name: self.string()?, span }),
        }
    }

    fn partition_values(&mut self) -> ParseResult<PartitionValues> {
        if !self.eat("VALUES") {
            return Ok(PartitionValues::None);
        }
        if self.eat("IN") {
            self.expect_op(Op::LParen)?;
            let tuples = self.comma_separated(|p| {
                if !p.is_op(Op::LParen) {
                    return Ok(vec![p.partition_expr()?]);
                }
                // A tuple, or a value in parentheses.
                let start = p.position();
                p.advance();
                let tuple = p.comma_separated(Self::partition_expr)?;
                p.expect_op(Op::RParen)?;
                if !p.is_op(Op::Comma) && !p.is_op(Op::RParen) {
                    p.rewind(start);
                    return Ok(vec![p.partition_expr()?]);
                }
                Ok(tuple)
            })?;
            self.expect_op(Op::RParen)?;
            return Ok(PartitionValues::In(tuples));
        }
        self.expect_all(&["LESS", "THAN"])?;
        if self.eat("MAXVALUE") {
            return Ok(PartitionValues::LessThanMax);
        }
        self.expect_op(Op::LParen)?;
        let tuple = self.comma_separated(|p| match p.eat("MAXVALUE") {
            true => Ok(None),
            false => p.partition_expr().map(Some),
        })?;
        self.expect_op(Op::RParen)?;
        Ok(PartitionValues::LessThan(tuple))
    }

    /// An expression without AND, OR and comparisons, as MySQL's grammar has it here.
    fn partition_expr(&mut self) -> ParseResult<Expr> {
        self.bit_expr(0)
    }

    fn partition_options(&mut self) -> ParseResult<PartitionOptions> {
        let mut options = PartitionOptions::default();
        loop {
            let is_storage = self.is_words(&["STORAGE", "ENGINE"]);
            if is_storage {
                self.advance();
            }
            if self.eat("ENGINE") {
                self.eat_op(Op::Eq);
                options.engine = Some(self.name()?);
            } else if self.eat("COMMENT") {
                self.eat_op(Op::Eq);
                options.comment = Some(self.string()?);
            } else if self.eat("MAX_ROWS") {
                self.eat_op(Op::Eq);
                options.max_rows = Some(self.unsigned()?);
            } else if self.eat("MIN_ROWS") {
                self.eat_op(Op::Eq);
                options.min_rows = Some(self.unsigned()?);
            } else if self.is_words(&["DATA", "DIRECTORY"]) || self.is_words(&["INDEX", "DIRECTORY"]) {
                return Err(unserved("DATA DIRECTORY and INDEX DIRECTORY"));
            } else if self.is_any_word(&["TABLESPACE", "NODEGROUP"]) {
                return Err(unserved(self.word_upper().unwrap_or_default()));
            } else {
                return Ok(options);
            }
        }
    }

    /// An action of ALTER TABLE on partitions, if that is next.
    pub(super) fn partition_change(&mut self) -> ParseResult<Option<PartitionChange>> {
        if self.eat_all(&["REMOVE", "PARTITIONING"]) {
            return Ok(Some(PartitionChange::Remove));
        }
        if self.eat_all(&["PARTITION", "BY"]) {
            return Ok(Some(PartitionChange::By(Box::new(self.partition_by()?))));
        }
        const VERBS: &[&str] = &["ADD", "COALESCE", "DROP", "TRUNCATE", "REBUILD", "REORGANIZE"];
        const REFUSED: &[&str] = &["ANALYZE", "CHECK", "DISCARD", "EXCHANGE", "IMPORT", "OPTIMIZE", "REPAIR"];
        if !self.is_word_ahead(1, "PARTITION") {
            return Ok(None);
        }
        if let Some(verb) = REFUSED.iter().find(|verb| self.is_word(verb)) {
            return Err(unserved(format_args!("ALTER TABLE ... {verb} PARTITION")));
        }
        let Some(verb) = self.eat_any(VERBS) else { return Ok(None) };
        self.expect("PARTITION")?;
        let _ =
            verb != "TRUNCATE" && verb != "DROP" && self.eat_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]).is_some();
        let change = match verb {
            "ADD" if self.eat("PARTITIONS") => PartitionChange::AddCount(self.unsigned()?),
            "ADD" => PartitionChange::Add(self.partition_list()?),
            "COALESCE" => PartitionChange::Coalesce(self.unsigned()?),
            "DROP" => PartitionChange::Drop(self.ident_list()?),
            "TRUNCATE" => PartitionChange::Truncate(self.partition_names()?),
            "REBUILD" => PartitionChange::Rebuild(self.partition_names()?),
            _ if self.at_statement_end() => return Err(unserved("REORGANIZE PARTITION without names")),
            _ => {
                let names = self.ident_list()?;
                self.expect("INTO")?;
                PartitionChange::Reorganize { names, into: self.partition_list()? }
            }
        };
        Ok(Some(change))
    }

    /// Names, or ALL.
    fn partition_names(&mut self) -> ParseResult<Option<Vec<Ident>>> {
        Ok(if self.eat("ALL") { None } else { Some(self.ident_list()?) })
    }
}
