//! Clauses that are known and not served.
//!
//! Invariant: what the tree does not carry is refused. A clause is read and dropped only where it can change nothing here;
//! the list of those stands in COMPAT.md, and the tests hold the two together (`tests/grammar`).
//!
//! A refusal ends its own statement alone: those before it in the same text run, as they do when binding refuses.

use avocet_types::error::SqlError;

use crate::parse::ast::ObjectName;
use crate::parse::error::{ParseError, ParseResult};
use crate::parse::parser::Parser;

/// 1235 by the clause's name.
pub(super) fn unserved(what: impl std::fmt::Display) -> ParseError {
    refused(SqlError::unsupported(what))
}

pub(super) fn refused(error: SqlError) -> ParseError {
    ParseError::Refused(Box::new(error))
}

impl Parser<'_> {
    /// Refuses `PARTITION (p, …)` behind the name of a table that rows are put into: which error that is, the table decides.
    pub(super) fn no_partitions(&mut self, table: &ObjectName, statement: &str) -> ParseResult<()> {
        if !self.eat("PARTITION") {
            return Ok(());
        }
        self.parenthesized_idents()?;
        self.refused_partitions_of = Some(table.clone());
        Err(unserved(format_args!("{statement} ... PARTITION")))
    }
}
