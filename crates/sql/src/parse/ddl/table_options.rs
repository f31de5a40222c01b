//! The options of tables and databases.

use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::unserved;
use crate::parse::statement::TableOptions;

/// What a table option that changes nothing here may have as its value.
#[derive(Clone, Copy)]
enum Value {
    Number,
    /// A number or DEFAULT.
    Setting,
    String,
    Word(&'static [&'static str]),
    /// A name or NULL.
    Name,
}

/// Options about InnoDB's files and caches, and about an engine that is another server's, which mean nothing here: listed in COMPAT.md.
const WITHOUT_EFFECT: &[(&str, Value)] = &[
    ("AUTOEXTEND_SIZE", Value::Number),
    ("AVG_ROW_LENGTH", Value::Number),
    ("CHECKSUM", Value::Number),
    ("COMPRESSION", Value::String),
    ("DELAY_KEY_WRITE", Value::Number),
    ("KEY_BLOCK_SIZE", Value::Number),
    ("MAX_ROWS", Value::Number),
    ("MIN_ROWS", Value::Number),
    ("PACK_KEYS", Value::Setting),
    ("ROW_FORMAT", Value::Word(&["DEFAULT", "DYNAMIC", "FIXED", "COMPRESSED", "REDUNDANT", "COMPACT"])),
    ("SECONDARY_ENGINE", Value::Name),
    ("STATS_AUTO_RECALC", Value::Setting),
    ("STATS_PERSISTENT", Value::Setting),
    ("STATS_SAMPLE_PAGES", Value::Setting),
    ("TABLE_CHECKSUM", Value::Number),
];

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
            Value::Setting if self.eat("DEFAULT") => {}
            Value::Name if self.eat("NULL") => {}
            Value::Name => drop(self.name()?),
            Value::Number | Value::Setting => self.size()?,
            Value::Word(words) => drop(self.eat_any(words).ok_or_else(|| self.error())?),
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
