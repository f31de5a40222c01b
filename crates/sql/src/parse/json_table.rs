//! `JSON_TABLE(document, path COLUMNS (…))`

use crate::parse::ast::{
    JsonTable, JsonTableColumn, JsonTablePath, OnJsonProblem, Query, QueryBody, TableRef,
};
use crate::parse::error::ParseResult;
use crate::parse::lexer::Op;
use crate::parse::parser::Parser;

impl Parser<'_> {
    /// A derived table that sees the tables before it; the cursor is on the name.
    pub(super) fn json_table(&mut self) -> ParseResult<TableRef> {
        let start = self.span();
        self.advance();
        self.expect_op(Op::LParen)?;
        let document = self.expr()?;
        self.expect_op(Op::Comma)?;
        let path = self.string()?;
        let columns = self.nested(Self::json_table_columns)?;
        self.expect_op(Op::RParen)?;
        let alias = self.table_alias()?;
        let table = JsonTable { document, path, columns };
        let query = Box::new(Query::of(QueryBody::JsonTable(Box::new(table))));
        Ok(TableRef::Derived {
            query,
            alias,
            columns: Vec::new(),
            lateral: true,
            span: self.span_from(start),
        })
    }

    fn json_table_columns(&mut self) -> ParseResult<Vec<JsonTableColumn>> {
        self.expect("COLUMNS")?;
        self.expect_op(Op::LParen)?;
        let columns = self.comma_separated(Self::json_table_column)?;
        self.expect_op(Op::RParen)?;
        Ok(columns)
    }

    fn json_table_column(&mut self) -> ParseResult<JsonTableColumn> {
        if self.eat_all(&["NESTED", "PATH"]) {
            let path = self.string()?;
            return Ok(JsonTableColumn::Nested { path, columns: self.nested(Self::json_table_columns)? });
        }
        let name = self.ident()?;
        if self.eat_all(&["FOR", "ORDINALITY"]) {
            return Ok(JsonTableColumn::Ordinality(name));
        }
        let ty = self.type_spec()?;
        let exists = self.eat("EXISTS");
        self.expect("PATH")?;
        let path = self.string()?;
        let (on_empty, on_error) = match exists {
            true => (OnJsonProblem::Null, OnJsonProblem::Null),
            false => self.on_json_problems()?,
        };
        Ok(JsonTableColumn::Path(Box::new(JsonTablePath { name, ty, exists, path, on_empty, on_error })))
    }
}
