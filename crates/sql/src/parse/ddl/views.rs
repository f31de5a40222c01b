//! CREATE VIEW and ALTER VIEW.

use avocet_types::error::ErrorCode;
use avocet_types::{ViewAlgorithm, ViewCheck, ViewSecurity};

use crate::parse::error::ParseResult;
use crate::parse::lexer::Op;
use crate::parse::parser::Parser;
use crate::parse::refuse::refused;
use crate::parse::statement::{CreateView, CreateViewHow, StatementKind};

impl Parser<'_> {
    /// After CREATE; `None` if it is no view that is created, and nothing was read.
    pub(in crate::parse) fn create_view(&mut self) -> ParseResult<Option<StatementKind>> {
        let start = self.position();
        let how =
            if self.eat_all(&["OR", "REPLACE"]) { CreateViewHow::OrReplace } else { CreateViewHow::Create };
        let view = self.view(how)?;
        if view.is_none() {
            self.rewind(start);
        }
        Ok(view)
    }

    /// `[ALGORITHM = …] [DEFINER = …] [SQL SECURITY …] VIEW name [(columns)] AS query [WITH … CHECK OPTION]`; `None` if it is
    /// of something else that has a DEFINER.
    pub(in crate::parse) fn view(&mut self, how: CreateViewHow) -> ParseResult<Option<StatementKind>> {
        let start = self.position();
        let mut algorithm = None;
        if self.eat("ALGORITHM") {
            self.expect_op(Op::Eq)?;
            algorithm = Some(match self.eat_any(&["UNDEFINED", "MERGE", "TEMPTABLE"]) {
                Some("MERGE") => ViewAlgorithm::Merge,
                Some("TEMPTABLE") => ViewAlgorithm::TempTable,
                Some(_) => ViewAlgorithm::Undefined,
                None => return Err(self.error()),
            });
        }
        let mut definer = None;
        if self.eat("DEFINER") {
            self.expect_op(Op::Eq)?;
            definer = Some(self.user_name()?);
        }
        let mut security = None;
        if self.eat_all(&["SQL", "SECURITY"]) {
            security = Some(match self.eat_any(&["DEFINER", "INVOKER"]) {
                Some("INVOKER") => ViewSecurity::Invoker,
                Some(_) => ViewSecurity::Definer,
                None => return Err(self.error()),
            });
        }
        if !self.eat("VIEW") {
            if algorithm.is_some() || security.is_some() {
                return Err(self.error());
            }
            self.rewind(start);
            return Ok(None);
        }
        let how = match how {
            CreateViewHow::Create if self.if_not_exists() => CreateViewHow::IfNotExists,
            how => how,
        };
        let name = self.object_name()?;
        let columns = if self.is_op(Op::LParen) { self.parenthesized_idents()? } else { Vec::new() };
        self.expect("AS")?;
        let query = Box::new(self.query()?);
        if self.into.take().is_some() {
            return Err(refused(ErrorCode::VIEW_SELECT_CLAUSE.with(&[&"INTO"])));
        }
        let mut check = ViewCheck::None;
        if self.eat("WITH") {
            check = match self.eat_any(&["CASCADED", "LOCAL"]) {
                Some("LOCAL") => ViewCheck::Local,
                _ => ViewCheck::Cascaded,
            };
            self.expect_all(&["CHECK", "OPTION"])?;
        }
        let view = CreateView { how, name, algorithm, definer, security, columns, query, check };
        Ok(Some(StatementKind::CreateView(Box::new(view))))
    }
}
