//! The options of tables and databases.

use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::unserved;
use crate::parse::statement::TableOptions;
use avocet_types::stated::StatedOption;

/// What a table option that changes nothing here may have as its value.
#[derive(Clone, Copy)]
enum Value {
    Number,
    String,
    /// A name or NULL.
    Name,
}

const ROW_FORMATS: &[&str] = &["DEFAULT", "DYNAMIC", "FIXED", "COMPRESSED", "REDUNDANT", "COMPACT"];

/// Options of InnoDB's files that definitions keep, and the greatest value of each; DEFAULT where it is a setting.
const STATED: &[(StatedOption, u64, bool)] = &[
    (StatedOption::AvgRowLength, u32::MAX as u64, false),
    (StatedOption::Checksum, u64::MAX, false),
    (StatedOption::DelayKeyWrite, u64::MAX, false),
    (StatedOption::KeyBlockSize, u16::MAX as u64, false),
    (StatedOption::MaxRows, u32::MAX as u64, false),
    (StatedOption::MinRows, u32::MAX as u64, false),
    (StatedOption::PackKeys, 1, true),
    (StatedOption::StatsAutoRecalc, 1, true),
    (StatedOption::StatsPersistent, 1, true),
    (StatedOption::StatsSamplePages, u16::MAX as u64, true),
];

/// Options about InnoDB's files and caches, and about an engine that is another server's, which mean nothing here: listed in COMPAT.md.
const WITHOUT_EFFECT: &[(&str, Value)] =
    &[("AUTOEXTEND_SIZE", Value::Number), ("COMPRESSION", Value::String), ("SECONDARY_ENGINE", Value::Name)];

/// Options that say where a table's rows are, or who may read them: dropping one would break a promise.
const UNSERVED: &[&str] = &[
    "CONNECTION",
    "ENGINE_ATTRIBUTE",
    "INSERT_METHOD",
    "PASSWORD",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "START",
    "STORAGE",
    "TABLESPACE",
    "UNION",
];

impl Parser<'_> {
    /// One table option; false if there is none.
    pub(super) fn table_option(&mut self, options: &mut TableOptions) -> ParseResult<bool> {
        let default = self.is_word("DEFAULT")
            && ["CHARSET", "CHARACTER", "COLLATE"].iter().any(|k| self.is_word_ahead(1, k));
        if default {
            self.advance();
        }
        if self.eat("ENGINE") {
            self.eat_op(Op::Eq);
            options.engine = Some(self.name()?);
        } else if self.eat("CHARSET") || self.eat_all(&["CHARACTER", "SET"]) {
            self.eat_op(Op::Eq);
            self.charset_option(&mut options.charset)?;
        } else if self.eat("COLLATE") {
            self.eat_op(Op::Eq);
            options.collation = Some(self.collation_name()?);
        } else if self.eat("COMMENT") {
            self.eat_op(Op::Eq);
            options.comment = Some(self.string()?);
        } else if self.eat("AUTO_INCREMENT") {
            self.eat_op(Op::Eq);
            options.auto_increment = Some(self.unsigned()?);
        } else if self.eat("ENCRYPTION") {
            self.eat_op(Op::Eq);
            self.no_encryption()?;
        } else if self.eat("ROW_FORMAT") {
            self.eat_op(Op::Eq);
            let word = self.eat_any(ROW_FORMATS).ok_or_else(|| self.error())?;
            options.stated.push((StatedOption::RowFormat, StatedOption::row_format(word)));
        } else if let Some(stated) = self.stated_option()? {
            options.stated.push(stated);
        } else {
            return self.option_without_effect();
        }
        Ok(true)
    }

    /// `'N'`: whatever else would promise files that are encrypted.
    pub(super) fn no_encryption(&mut self) -> ParseResult<()> {
        match self.string()?.eq_ignore_ascii_case("N") {
            true => Ok(()),
            false => Err(unserved("ENCRYPTION")),
        }
    }

    /// An option of files with its value, if that is next.
    fn stated_option(&mut self) -> ParseResult<Option<(StatedOption, Option<u64>)>> {
        let is_next = |option: StatedOption| {
            self.is_word(option.name()) || option == StatedOption::Checksum && self.is_word("TABLE_CHECKSUM")
        };
        let Some((option, most, is_setting)) = STATED.iter().find(|(option, ..)| is_next(*option)) else {
            return Ok(None);
        };
        self.advance();
        self.eat_op(Op::Eq);
        if *is_setting && self.eat("DEFAULT") {
            return Ok(Some((*option, None)));
        }
        let error = self.error();
        let value = self.unsigned()?;
        let value = match option {
            StatedOption::Checksum | StatedOption::DelayKeyWrite => value.min(1),
            _ if *is_setting && value > *most => return Err(error),
            _ => value.min(*most),
        };
        Ok(Some((*option, Some(value))))
    }

    fn option_without_effect(&mut self) -> ParseResult<bool> {
        let directory = self.is_words(&["DATA", "DIRECTORY"]) || self.is_words(&["INDEX", "DIRECTORY"]);
        if directory {
            return Err(unserved("DATA DIRECTORY and INDEX DIRECTORY"));
        }
        if let Some(word) = UNSERVED.iter().find(|word| self.is_word(word)) {
            return Err(unserved(word));
        }
        let Some((_, value)) = WITHOUT_EFFECT.iter().find(|(name, _)| self.is_word(name)) else {
            return Ok(false);
        };
        self.advance();
        self.eat_op(Op::Eq);
        match value {
            Value::String => drop(self.string()?),
            Value::Name if self.eat("NULL") => {}
            Value::Name => drop(self.name()?),
            Value::Number => self.size()?,
        }
        Ok(true)
    }

    /// A number, or one with a unit such as `4M`.
    fn size(&mut self) -> ParseResult<()> {
        if *self.peek() == TokenKind::Word && self.source_text().starts_with(|c: char| c.is_ascii_digit()) {
            self.advance();
            return Ok(());
        }
        self.unsigned().map(drop)
    }
}
