//! GET DIAGNOSTICS (MySQL Reference Manual, 15.6.7.3).

use avocet_types::error::ErrorCode;

use crate::parse::error::ParseResult;
use crate::parse::lexer::{Op, TokenKind};
use crate::parse::parser::Parser;
use crate::parse::refuse::refused;
use crate::parse::statement::{ConditionItem, GetDiagnostics, StatementItem, StatementKind};

const STATEMENT_ITEMS: &[(&str, StatementItem)] =
    &[("NUMBER", StatementItem::Number), ("ROW_COUNT", StatementItem::RowCount)];

const CONDITION_ITEMS: &[(&str, ConditionItem)] = &[
    ("CLASS_ORIGIN", ConditionItem::ClassOrigin),
    ("SUBCLASS_ORIGIN", ConditionItem::SubclassOrigin),
    ("RETURNED_SQLSTATE", ConditionItem::ReturnedSqlstate),
    ("MESSAGE_TEXT", ConditionItem::MessageText),
    ("MYSQL_ERRNO", ConditionItem::MysqlErrno),
    ("CONSTRAINT_CATALOG", ConditionItem::Unset),
    ("CONSTRAINT_SCHEMA", ConditionItem::Unset),
    ("CONSTRAINT_NAME", ConditionItem::Unset),
    ("CATALOG_NAME", ConditionItem::Unset),
    ("SCHEMA_NAME", ConditionItem::Unset),
    ("TABLE_NAME", ConditionItem::Unset),
    ("COLUMN_NAME", ConditionItem::Unset),
    ("CURSOR_NAME", ConditionItem::Unset),
];

impl Parser<'_> {
    /// After GET.
    pub(super) fn get_diagnostics(&mut self) -> ParseResult<StatementKind> {
        let stacked = self.eat_any(&["CURRENT", "STACKED"]) == Some("STACKED");
        self.expect("DIAGNOSTICS")?;
        let asked = if self.eat("CONDITION") {
            // A literal, a variable or a name: nothing that is computed.
            let is_simple = !matches!(self.peek(), TokenKind::Op(Op::LParen | Op::LBrace));
            let number = if is_simple { self.primary()? } else { return Err(self.error()) };
            GetDiagnostics::Condition { number, targets: self.diagnostics_targets(CONDITION_ITEMS)? }
        } else {
            GetDiagnostics::Statement { targets: self.diagnostics_targets(STATEMENT_ITEMS)? }
        };
        match stacked {
            true => Err(refused(ErrorCode::GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER.with(&[]))),
            false => Ok(StatementKind::GetDiagnostics(Box::new(asked))),
        }
    }

    /// `target = item, …`
    fn diagnostics_targets<T: Copy>(&mut self, items: &[(&str, T)]) -> ParseResult<Vec<(String, T)>> {
        self.comma_separated(|p| {
            let undeclared = if p.is_op(Op::At) { None } else { Some(p.ident()?) };
            let target = if undeclared.is_none() { p.user_variable_name()? } else { String::new() };
            p.expect_op(Op::Eq)?;
            let item = items.iter().find(|(word, _)| p.is_word(word)).ok_or_else(|| p.error())?;
            p.advance();
            match undeclared {
                // Local variables are routines'.
                Some(name) => Err(refused(ErrorCode::SP_UNDECLARED_VAR.with(&[&name.name]))),
                None => Ok((target, item.1)),
            }
        })
    }
}
