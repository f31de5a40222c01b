//! Names of a source that keeps them in lower case (`lower_case_table_names = 1`): a statement of its log has them as its client wrote
//! them, all else of the log in lower case. Here they are told apart by case.

use avocet_sql::parse::is_keyword;
use avocet_sql::parse::outline::{LexemeKind, lexemes};
use avocet_types::SqlMode;

use super::statements::Asked;
use crate::source::quoted;
use crate::state::TableName;

/// A name as the source keeps it.
pub fn folded(name: &str) -> String {
    // What becomes several characters stays, as in MySQL's tables of cases.
    let fold = |c: char| {
        let mut lower = c.to_lowercase();
        lower.next().filter(|_| lower.len() == 0).unwrap_or(c)
    };
    name.chars().map(fold).collect()
}

impl Asked {
    /// The same with the names that the source keeps.
    pub fn with_folded_names(self) -> Self {
        let of_table =
            |name: TableName| TableName { database: folded(&name.database), table: folded(&name.table) };
        let all = |names: Vec<TableName>| names.into_iter().map(of_table).collect();
        match self {
            Self::Definition { tables, databases, looked_at } => Self::Definition {
                tables: all(tables),
                databases: databases.iter().map(|name| folded(name)).collect(),
                looked_at: all(looked_at),
            },
            Self::Replaced(database) => Self::Replaced(folded(&database)),
            Self::Rows { tables, calls_unknown } => Self::Rows { tables: all(tables), calls_unknown },
            Self::Filled { table, calls_unknown } => Self::Filled { table: of_table(table), calls_unknown },
            Self::Nothing | Self::Trigger | Self::NotUnderstood(_) => self,
        }
    }
}

/// Whether a definition may name tables or databases in another case than the source keeps: those that `is_known` in lower case, and
/// parents, which need not be there.
pub fn has_other_case(text: &str, mode: SqlMode, is_known: impl Fn(&str) -> bool) -> bool {
    let mut is_parent = false;
    for lexeme in lexemes(text, mode) {
        let is_name = matches!(lexeme.kind, LexemeKind::Word | LexemeKind::Name);
        let lower = folded(&lexeme.text);
        // A keyword that is the statement's table: that is not found here in this case.
        let is_keyword = lexeme.kind == LexemeKind::Word && is_keyword(lexeme.text.as_bytes());
        if is_name && lower != lexeme.text && (is_parent || !is_keyword && is_known(&lower)) {
            return true;
        }
        // A parent may be named with its database.
        let is_word = |word: &str| lexeme.kind == LexemeKind::Word && lexeme.text.eq_ignore_ascii_case(word);
        is_parent = is_word("REFERENCES") || is_parent && (is_name || lexeme.text == ".");
    }
    false
}

/// A statement about databases with these names in lower case. It has no other names.
pub fn with_folded_databases(text: &str, mode: SqlMode, databases: &[String]) -> String {
    let mut said = String::with_capacity(text.len());
    let mut done = 0;
    for lexeme in lexemes(text, mode) {
        let is_name = matches!(lexeme.kind, LexemeKind::Word | LexemeKind::Name);
        if is_name && databases.contains(&folded(&lexeme.text)) && folded(&lexeme.text) != lexeme.text {
            said.push_str(&text[done..lexeme.span.start as usize]);
            said.push_str(&quoted(&folded(&lexeme.text)));
            done = lexeme.span.end as usize;
        }
    }
    said.push_str(&text[done..]);
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_by_character() {
        for (name, wanted) in [("Orders", "orders"), ("ÄÖ_1", "äö_1"), ("İx", "İx"), ("a", "a")] {
            assert_eq!(folded(name), wanted);
        }
    }

    #[test]
    fn tables_in_another_case_are_noticed_and_columns_are_not() {
        let is_known = |name: &str| ["orders", "shop", "comment"].contains(&name);
        for (text, wanted) in [
            ("TRUNCATE TABLE Orders", true),
            ("TRUNCATE TABLE `Shop`.orders", true),
            ("TRUNCATE TABLE orders", false),
            ("ALTER TABLE orders ADD createdAt INT COMMENT 'Orders'", false),
            ("ALTER TABLE orders ADD FOREIGN KEY (a) REFERENCES Parents (id)", true),
            ("ALTER TABLE orders ADD FOREIGN KEY (a) REFERENCES shop.Parents (id)", true),
            ("ALTER TABLE orders ADD FOREIGN KEY (A) REFERENCES parents (Id)", false),
            ("CREATE VIEW v AS SELECT Id FROM Orders", true),
        ] {
            assert_eq!(has_other_case(text, SqlMode::DEFAULT, is_known), wanted, "{text}");
        }
    }

    #[test]
    fn databases_are_said_in_lower_case() {
        let said = |text| with_folded_databases(text, SqlMode::DEFAULT, &["shop".into()]);
        assert_eq!(said("DROP DATABASE IF EXISTS Shop"), "DROP DATABASE IF EXISTS `shop`");
        assert_eq!(
            said("CREATE DATABASE `SHOP` COLLATE utf8mb4_bin -- Shop"),
            "CREATE DATABASE `shop` COLLATE utf8mb4_bin -- Shop"
        );
        assert_eq!(said("DROP DATABASE shop"), "DROP DATABASE shop");
    }
}
