//! JSON_TABLE: its columns, and the paths that lead to them.

use std::sync::Arc;

use avocet_types::convert::{ConvertContext, store};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalError, Function};
use avocet_types::json::table::{Answer, Column, Level, Source};
use avocet_types::json::{Node, Path, parse};
use avocet_types::{Datum, SqlType};

use crate::bind::Binder;
use crate::bind::scope::{Block, Clause};
use crate::parse::ast::{self, JsonTableColumn, JsonTablePath};
use crate::plan::{ColumnId, JsonTable, QueryBody, QueryExpr};

impl Binder<'_> {
    pub(super) fn json_table(&mut self, table: &ast::JsonTable) -> Result<QueryExpr, SqlError> {
        let mut block = Block::new();
        block.clause = Clause::TableFunction;
        self.blocks.push(block);
        let document = self.expr(&table.document);
        let block = self.blocks.pop().expect("pushed above");
        let document = document?;
        if !block.subqueries.is_empty() {
            return Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"JSON_TABLE"]));
        }
        let document = self.typer.call(Function::JsonTableDocument, vec![document])?;
        let mut columns = Vec::new();
        let level = self.json_level(&table.path, &table.columns, &mut columns)?;
        let table = JsonTable { document, level: Arc::new(level), columns: columns.clone() };
        let body = QueryBody::JsonTable(Box::new(table));
        Ok(QueryExpr { ctes: Vec::new(), body, order_by: Vec::new(), limit: None, outputs: columns })
    }

    /// `made` are the columns so far, in the order in which the statement names them.
    fn json_level(
        &mut self,
        path: &str,
        columns: &[JsonTableColumn],
        made: &mut Vec<ColumnId>,
    ) -> Result<Level, SqlError> {
        let mut level = Level { path: path_of(path)?, columns: Vec::new(), nested: Vec::new() };
        for column in columns {
            let (name, ty, source) = match column {
                JsonTableColumn::Nested { path, columns } => {
                    level.nested.push(self.json_level(path, columns, made)?);
                    continue;
                }
                JsonTableColumn::Ordinality(name) => (name, SqlType::BIGINT, Source::Ordinality),
                JsonTableColumn::Path(column) => {
                    let JsonTablePath { name, ty, exists, path, on_empty, on_error } = &**column;
                    let ty = self.catalog.column_type(ty, &name.name)?;
                    let path = path_of(path)?;
                    let source = match exists {
                        true => Source::Exists(path),
                        false => Source::Path {
                            path,
                            on_empty: self.json_answer(on_empty, &ty, &name.name)?,
                            on_error: self.json_answer(on_error, &ty, &name.name)?,
                        },
                    };
                    (name, ty, source)
                }
            };
            let at = made.len();
            made.push(self.add_column(name.name.as_str(), ty, true));
            level.columns.push(Column { at, name: name.name.as_str().into(), ty, source });
        }
        Ok(level)
    }

    /// A default is the text of a document, whose value the column takes.
    fn json_answer(
        &mut self,
        answer: &ast::OnJsonProblem,
        ty: &SqlType,
        name: &str,
    ) -> Result<Answer, SqlError> {
        let default = match answer {
            ast::OnJsonProblem::Null => return Ok(Answer::Null),
            ast::OnJsonProblem::Error => return Ok(Answer::Error),
            ast::OnJsonProblem::Default(default) => self.expr(default)?.fold(),
        };
        let invalid = || ErrorCode::INVALID_DEFAULT.with(&[&name]);
        let Some(Datum::Str(text)) = default.as_literal() else { return Err(invalid()) };
        let document = parse(text).map_err(|problem| EvalError::InvalidJsonText {
            argument: 1,
            function: "JSON_TABLE",
            problem,
        })?;
        let document = document.encode().map_err(EvalError::Json)?;
        let node = Node::new(&document);
        if *ty != SqlType::Json && !node.is_scalar() {
            return Err(invalid());
        }
        let value = match node.view() {
            avocet_types::json::JsonRef::String(text) if ty.is_string() => {
                let from =
                    SqlType::VarChar { len: u32::MAX, collation: avocet_types::Collation::UTF8MB4_BIN };
                store(Datum::str(text), &from, ty, &ConvertContext::STRICT_UTC)
            }
            _ => store(Datum::bytes(&document), &SqlType::Json, ty, &ConvertContext::STRICT_UTC),
        };
        let value = value.map_err(|problem| avocet_types::error::store_error(&problem, name, 1))?;
        Ok(Answer::Value(value.value.into_owned()))
    }
}

fn path_of(text: &str) -> Result<Path, SqlError> {
    Path::parse(text).map_err(|bad| EvalError::JsonPath(bad.position).into())
}
