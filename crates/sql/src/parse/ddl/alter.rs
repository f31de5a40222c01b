//! ALTER and RENAME of databases, tables, columns, indexes and accounts.

use super::TableParts;
use crate::parse::error::ParseResult;
use crate::parse::lexer::Op;
use crate::parse::parser::Parser;
use crate::parse::refuse::unserved;
use crate::parse::statement::*;

impl Parser<'_> {
    /// After RENAME.
    pub(in crate::parse) fn rename(&mut self) -> ParseResult<StatementKind> {
        if self.eat("USER") {
            let pairs = self.comma_separated(|p| {
                let from = p.user_name()?;
                p.expect("TO")?;
                Ok((from, p.user_name()?))
            })?;
            return Ok(StatementKind::RenameUser(pairs));
        }
        if !self.eat("TABLES") {
            self.expect("TABLE")?;
        }
        let pairs = self.comma_separated(|p| {
            let from = p.object_name()?;
            p.expect("TO")?;
            Ok((from, p.object_name()?))
        })?;
        Ok(StatementKind::RenameTable(pairs))
    }

    /// After ALTER.
    pub(in crate::parse) fn alter(&mut self) -> ParseResult<StatementKind> {
        if self.eat("TABLE") {
            let name = self.object_name()?;
            return Ok(StatementKind::AlterTable { name, actions: self.alter_actions()? });
        }
        if self.eat("DATABASE") || self.eat("SCHEMA") {
            let option = self.is_any_word(&["DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "READ"]);
            let name = if option { None } else { Some(self.ident()?) };
            if self.at_statement_end() {
                return Err(self.error());
            }
            let (charset, collation) = self.database_options()?;
            return Ok(StatementKind::AlterDatabase { name, charset, collation });
        }
        if self.eat("USER") {
            return self.alter_user();
        }
        if let Some(view) = self.view(CreateViewHow::Alter)? {
            return Ok(view);
        }
        let words = [
            "DEFINER",
            "PROCEDURE",
            "FUNCTION",
            "EVENT",
            "SERVER",
            "TABLESPACE",
            "INSTANCE",
            "LOGFILE",
            "RESOURCE",
            "UNDO",
        ];
        if self.is_any_word(&words) { self.unsupported("ALTER") } else { Err(self.error()) }
    }

    /// The list. What is done to partitions stands alone; PARTITION BY and REMOVE PARTITIONING may also stand behind it, without
    /// a comma.
    fn alter_actions(&mut self) -> ParseResult<Vec<AlterAction>> {
        if self.at_statement_end() {
            return Ok(Vec::new());
        }
        if let Some(change) = self.partition_change()? {
            return Ok(vec![AlterAction::Partitions(change)]);
        }
        let actions = self.comma_separated(Self::alter_action)?;
        let mut actions: Vec<AlterAction> = actions.into_iter().flatten().collect();
        if self.is_words(&["PARTITION", "BY"]) || self.is_words(&["REMOVE", "PARTITIONING"]) {
            actions.extend(self.partition_change()?.map(AlterAction::Partitions));
        }
        Ok(actions)
    }

    /// One item of the list. It may say several things: columns in parentheses, a column that refers to another table.
    fn alter_action(&mut self) -> ParseResult<Vec<AlterAction>> {
        self.no_unserved_action()?;
        if self.eat("ADD") {
            return self.alter_add();
        }
        let mut action = self.alter_other()?;
        let (key, checks) = match &mut action {
            AlterAction::ModifyColumn { column, .. } | AlterAction::ChangeColumn { column, .. } => {
                (column.foreign_key(), std::mem::take(&mut column.checks))
            }
            _ => (None, Vec::new()),
        };
        let key = key.map(AlterAction::AddForeignKey);
        Ok([action].into_iter().chain(key).chain(checks.into_iter().map(AlterAction::AddCheck)).collect())
    }

    /// Actions that are refused by their names.
    fn no_unserved_action(&self) -> ParseResult<()> {
        const UNSERVED: &[&[&str]] = &[
            &["DISCARD", "TABLESPACE"],
            &["IMPORT", "TABLESPACE"],
            &["WITH", "VALIDATION"],
            &["WITHOUT", "VALIDATION"],
        ];
        match UNSERVED.iter().find(|words| self.is_words(words)) {
            Some(words) => Err(unserved(format_args!("ALTER TABLE ... {}", words.join(" ")))),
            None => Ok(()),
        }
    }

    fn alter_other(&mut self) -> ParseResult<AlterAction> {
        match self.eat_any(&["DROP", "MODIFY", "CHANGE", "RENAME", "ALTER", "CONVERT"]) {
            Some("DROP") => self.alter_drop(),
            Some("MODIFY") => {
                self.eat("COLUMN");
                let column = self.column_spec()?;
                Ok(AlterAction::ModifyColumn { column, position: self.column_position()? })
            }
            Some("CHANGE") => {
                self.eat("COLUMN");
                let old = self.ident()?;
                let column = self.column_spec()?;
                Ok(AlterAction::ChangeColumn { old, column, position: self.column_position()? })
            }
            Some("RENAME") => self.alter_rename(),
            Some("ALTER") => {
                if let Some(word) = self.eat_any(&["CHECK", "CONSTRAINT"]) {
                    let name = self.ident()?;
                    let enforced = !self.eat("NOT");
                    self.expect("ENFORCED")?;
                    return Ok(AlterAction::EnforceCheck { name, enforced, is_check: word == "CHECK" });
                }
                if self.eat("INDEX") {
                    let index = self.any_ident()?;
                    let word = self.eat_any(&["VISIBLE", "INVISIBLE"]).ok_or_else(|| self.error())?;
                    return Ok(AlterAction::SetIndexVisible { index, visible: word == "VISIBLE" });
                }
                self.eat("COLUMN");
                let column = self.ident()?;
                if self.eat_all(&["DROP", "DEFAULT"]) {
                    return Ok(AlterAction::SetDefault { column, default: None });
                }
                self.expect("SET")?;
                if let Some(word) = self.eat_any(&["VISIBLE", "INVISIBLE"]) {
                    return Ok(AlterAction::SetVisible { column, visible: word == "VISIBLE" });
                }
                self.expect("DEFAULT")?;
                match self.default_spec()? {
                    (default, None) => Ok(AlterAction::SetDefault { column, default: Some(default) }),
                    (_, Some(_)) => Err(self.error()),
                }
            }
            Some(_) => {
                self.expect("TO")?;
                if !self.eat("CHARSET") {
                    self.expect_all(&["CHARACTER", "SET"])?;
                }
                let charset = self.charset_name()?;
                let collation = if self.eat("COLLATE") { Some(self.collation_name()?) } else { None };
                Ok(AlterAction::ConvertCharset { charset, collation })
            }
            None => self.alter_option(),
        }
    }

    fn alter_option(&mut self) -> ParseResult<AlterAction> {
        if self.is_any_word(&["ALGORITHM", "LOCK"]) {
            let mut how = AlterHow::default();
            self.alter_option_of(&mut how)?;
            return Ok(AlterAction::How(how));
        }
        if self.eat_all(&["ENABLE", "KEYS"]) || self.eat_all(&["DISABLE", "KEYS"]) {
            return Ok(AlterAction::Unneeded(Unneeded::Keys));
        }
        if self.eat("FORCE") {
            return Ok(AlterAction::Unneeded(Unneeded::Force));
        }
        // What another server's secondary engine has loaded; a replica gets its statements.
        if self.eat("SECONDARY_LOAD") || self.eat("SECONDARY_UNLOAD") {
            return Ok(AlterAction::Unneeded(Unneeded::SecondaryEngine));
        }
        if self.is_words(&["ORDER", "BY"]) {
            self.optional_order_by()?;
            return Ok(AlterAction::Unneeded(Unneeded::OrderBy));
        }
        let mut options = TableOptions::default();
        if !self.table_option(&mut options)? {
            return Err(self.error());
        }
        while self.table_option(&mut options)? {}
        Ok(AlterAction::Options(options))
    }

    fn alter_add(&mut self) -> ParseResult<Vec<AlterAction>> {
        let is_column = self.eat("COLUMN");
        let mut parts = TableParts::default();
        if self.eat_op(Op::LParen) {
            self.comma_separated(|p| p.table_element(&mut parts))?;
            self.expect_op(Op::RParen)?;
        } else if is_column || (self.is_ident() && !self.is_word("CONSTRAINT")) {
            let mut column = self.column_spec()?;
            let key = column.foreign_key().map(AlterAction::AddForeignKey);
            let checks = std::mem::take(&mut column.checks).into_iter().map(AlterAction::AddCheck);
            let position = self.column_position()?;
            return Ok([AlterAction::AddColumn { column, position }]
                .into_iter()
                .chain(key)
                .chain(checks)
                .collect());
        } else {
            self.table_element(&mut parts)?;
        }
        let TableParts { columns, indexes, foreign_keys, checks } = parts;
        let column = |column| AlterAction::AddColumn { column, position: ColumnPosition::Last };
        let columns = columns.into_iter().map(column);
        let indexes = indexes.into_iter().map(AlterAction::AddIndex);
        let foreign_keys = foreign_keys.into_iter().map(AlterAction::AddForeignKey);
        let checks = checks.into_iter().map(AlterAction::AddCheck);
        Ok(columns.chain(indexes).chain(foreign_keys).chain(checks).collect())
    }

    fn alter_drop(&mut self) -> ParseResult<AlterAction> {
        if self.eat_all(&["PRIMARY", "KEY"]) {
            return Ok(AlterAction::DropPrimaryKey);
        }
        if self.eat_all(&["FOREIGN", "KEY"]) {
            return Ok(AlterAction::DropForeignKey(self.ident()?));
        }
        if self.eat("INDEX") || self.eat("KEY") {
            return Ok(AlterAction::DropIndex(self.any_ident()?));
        }
        if self.eat("CHECK") {
            return Ok(AlterAction::DropCheck(self.ident()?));
        }
        if self.eat("CONSTRAINT") {
            return Ok(AlterAction::DropConstraint(self.ident()?));
        }
        self.eat("COLUMN");
        let column = self.ident()?;
        self.eat_any(&["RESTRICT", "CASCADE"]);
        Ok(AlterAction::DropColumn(column))
    }

    fn alter_rename(&mut self) -> ParseResult<AlterAction> {
        let is_index = self.is_any_word(&["INDEX", "KEY"]);
        if is_index || self.is_word("COLUMN") {
            self.advance();
            let from = self.any_ident()?;
            self.expect("TO")?;
            let to = self.any_ident()?;
            return Ok(match is_index {
                true => AlterAction::RenameIndex { from, to },
                false => AlterAction::RenameColumn { from, to },
            });
        }
        let _ = self.eat("TO") || self.eat("AS") || self.eat_op(Op::Eq);
        Ok(AlterAction::RenameTable(self.object_name()?))
    }

    fn column_position(&mut self) -> ParseResult<ColumnPosition> {
        if self.eat("FIRST") {
            return Ok(ColumnPosition::First);
        }
        if self.eat("AFTER") {
            return Ok(ColumnPosition::After(self.ident()?));
        }
        Ok(ColumnPosition::Last)
    }
}
