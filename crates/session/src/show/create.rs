//! SHOW CREATE TABLE, as MySQL prints it: clients parse it.

use std::fmt::Write;

use avocet_sql::kept;
use avocet_sql::parse::is_keyword;
use avocet_types::expr::{SqlMode, TimeZone};
use avocet_types::names;
use avocet_types::schema::{CheckDef, ColumnDef, DefaultValue, IndexDef, IndexKind, KeptKeyKind, TableDef};
use avocet_types::text::with_zeros;
use avocet_types::{Collation, SqlType, Value};

/// The statement that would make the table, in a session with this time zone.
pub(crate) fn create_table(
    table: &TableDef,
    next_auto_increment: u64,
    quotes: Quotes,
    zone: TimeZone,
) -> String {
    let quote = |name: &str| quotes.quote(name);
    let temporary = if table.id.is_temporary() { "TEMPORARY " } else { "" };
    let mut sql = format!("CREATE {temporary}TABLE {} (\n", quote(&table.name));
    let columns =
        table.own_columns().iter().map(|column| column_line(column, table.default_collation, quotes, zone));
    let indexes = indexes_of(table).into_iter().map(|index| index_line(index, table, quotes));
    let mut keys: Vec<_> = table.foreign_keys.iter().collect();
    keys.sort_by_cached_key(|key| names::fold(&key.name).into_owned());
    let keys = keys.into_iter().map(|key| format!("  {}", key.definition(table, quote)));
    let checks = checks_of(table).into_iter().map(|check| {
        let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
        format!("  CONSTRAINT {} CHECK ({}){enforced}", quote(&check.name), check.condition)
    });
    let kept = table.kept_keys.iter().map(|key| {
        let columns: Vec<String> = key.columns.iter().map(|at| quote(&table.columns[*at].name)).collect();
        let parser = match &key.kind {
            KeptKeyKind::Fulltext { parser: Some(parser) } => {
                format!(" /*!50100 WITH PARSER {} */ ", quote(parser))
            }
            _ => String::new(),
        };
        let columns = columns.join(",");
        let comment = key_comment(&key.comment);
        format!("  {} KEY {} ({columns}){comment}{parser}", key.kind.word(), quote(&key.name))
    });
    let lines: Vec<String> = columns.chain(indexes).chain(kept).chain(keys).chain(checks).collect();
    sql.push_str(&lines.join(",\n"));
    let collation = table.default_collation.info();
    let _ = write!(sql, "\n) ENGINE=InnoDB");
    if table.auto_increment_column().is_some() && next_auto_increment > 1 {
        let _ = write!(sql, " AUTO_INCREMENT={next_auto_increment}");
    }
    let _ = write!(sql, " DEFAULT CHARSET={}", collation.charset.name());
    if !collation.is_default || collation.charset.name() == "utf8mb4" {
        let _ = write!(sql, " COLLATE={}", collation.name);
    }
    let _ = write!(sql, "{}", table.stated);
    if !table.comment.is_empty() {
        let _ = write!(sql, " COMMENT={}", string(&table.comment));
    }
    if let Some(text) = &table.partitioning {
        sql.push_str(&partition_by(text, quotes));
    }
    sql
}

/// In a comment that servers without partitions do not read.
fn partition_by(text: &str, quotes: Quotes) -> String {
    let Ok(partitioning) = kept::partitions::read(text) else { return String::new() };
    let has_columns = partitioning.function.is_bounded() && partitioning.function.expr.is_none();
    let name = |name: &str| match needs_quotes(name) {
        true => quotes.quote(name),
        false => name.to_owned(),
    };
    // Both came with 5.5.
    let has_seconds = partitioning.function.expr.iter().any(|expr| expr.contains("to_seconds("));
    let version = if has_columns || has_seconds { "50500" } else { "50100" };
    format!("\n/*!{version} PARTITION BY {} */", partitioning.text(&name, quotes.character(), true))
}

/// Whether a name stands for itself in quotes alone: it is a word of the grammar, or has other characters than names have.
fn needs_quotes(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    name.chars().all(|c| c.is_ascii_digit()) || !name.chars().all(is_plain) || is_keyword(name.as_bytes())
}

pub(super) fn create_database(
    name: &str,
    collation: Collation,
    if_not_exists: bool,
    quotes: Quotes,
) -> String {
    let info = collation.info();
    let collate = match info.is_default && info.charset.name() != "utf8mb4" {
        true => String::new(),
        false => format!(" COLLATE {}", info.name),
    };
    format!(
        "CREATE DATABASE {}{} /*!40100 DEFAULT CHARACTER SET {}{collate} */ /*!80016 DEFAULT ENCRYPTION='N' */",
        if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" },
        quotes.quote(name),
        info.charset.name()
    )
}

fn key_comment(comment: &str) -> String {
    if comment.is_empty() { String::new() } else { format!(" COMMENT {}", string(comment)) }
}

fn column_line(column: &ColumnDef, inherited: Collation, quotes: Quotes, zone: TimeZone) -> String {
    let mut line = format!("  {} {}", quotes.quote(&column.name), column.type_text());
    if let Some(collation) = column.ty.declared_collation() {
        let info = collation.info();
        let differs = collation != inherited;
        if differs || column.collation_named {
            let _ = write!(line, " CHARACTER SET {}", info.charset.name());
        }
        // The default of utf8mb4 was another one before MySQL 8.
        let is_plain = info.is_default && !(differs && info.charset.name() == "utf8mb4");
        if column.collation_named || !is_plain {
            let _ = write!(line, " COLLATE {}", info.name);
        }
    }
    if let Some(generated) = &column.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        let _ = write!(line, " GENERATED ALWAYS AS ({}) {kind}", generated.expr);
    }
    if !column.nullable {
        line.push_str(" NOT NULL");
    } else if matches!(column.ty, SqlType::Timestamp { .. }) {
        line.push_str(" NULL");
    }
    if let SqlType::Geometry { srid: Some(srid), .. } = column.ty {
        let _ = write!(line, " /*!80003 SRID {srid} */");
    }
    match &column.default {
        Some(DefaultValue::Dropped) => {}
        Some(default) => {
            let _ = write!(line, " DEFAULT {}", default_of(default, column, true, zone));
        }
        _ if column.generated.is_some() => {}
        None if column.nullable && !matches!(column.ty, SqlType::Text { .. } | SqlType::Blob { .. }) => {
            line.push_str(" DEFAULT NULL");
        }
        None => {}
    }
    if column.on_update_now {
        let _ = write!(line, " ON UPDATE {}", now_text(&column.ty));
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    }
    if column.invisible {
        line.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        let _ = write!(line, " COMMENT {}", string(&column.comment));
    }
    line
}

/// The indexes in the order in which MySQL keeps them: the primary key, unique ones that know no NULL, unique ones, others; of
/// each kind those last that have a VIRTUAL column.
pub(super) fn indexes_of(table: &TableDef) -> Vec<&IndexDef> {
    let rank = |index: &IndexDef| match index.kind {
        IndexKind::Primary => 0,
        IndexKind::Unique if index.parts.iter().all(|part| !table.columns[part.column].nullable) => 1,
        IndexKind::Unique => 2,
        IndexKind::Secondary => 3,
    };
    let mut indexes: Vec<&IndexDef> = table.indexes.iter().collect();
    let is_virtual = |column: usize| table.columns[column].is_virtual();
    let has_virtual = |index: &IndexDef| index.parts.iter().any(|part| is_virtual(part.column));
    indexes.sort_by_key(|index| (rank(index), has_virtual(index)));
    indexes
}

/// CHECK constraints by their names.
pub(crate) fn checks_of(table: &TableDef) -> Vec<&CheckDef> {
    let mut checks: Vec<_> = table.checks.iter().collect();
    checks.sort_by_cached_key(|check| names::fold(&check.name).into_owned());
    checks
}

fn index_line(index: &IndexDef, table: &TableDef, quotes: Quotes) -> String {
    let quote = |name: &str| quotes.quote(name);
    let parts: Vec<String> = index
        .parts
        .iter()
        .map(|part| {
            let mut text = match table.expression_of(part) {
                Some(expr) => format!("({expr})"),
                None => quote(&table.columns[part.column].name),
            };
            if let Some(len) = part.prefix_len {
                let _ = write!(text, "({len})");
            }
            if part.descending {
                text.push_str(" DESC");
            }
            text
        })
        .collect();
    let parts = parts.join(",");
    let hidden = if index.invisible { " /*!80000 INVISIBLE */" } else { "" };
    let comment = key_comment(&index.comment);
    match index.kind {
        IndexKind::Primary => format!("  PRIMARY KEY ({parts}){comment}"),
        IndexKind::Unique => format!("  UNIQUE KEY {} ({parts}){comment}{hidden}", quote(&index.name)),
        IndexKind::Secondary => format!("  KEY {} ({parts}){comment}{hidden}", quote(&index.name)),
    }
}

fn now_text(ty: &SqlType) -> String {
    match ty.fsp() {
        None | Some(0) => "CURRENT_TIMESTAMP".into(),
        Some(fsp) => format!("CURRENT_TIMESTAMP({fsp})"),
    }
}

/// A column's default, with the zeros of a column of ZEROFILL.
pub(crate) fn default_of(default: &DefaultValue, column: &ColumnDef, quoted: bool, zone: TimeZone) -> String {
    let text = default_text(default, &column.ty, false, zone);
    match (column.zerofill, default) {
        (Some(width), DefaultValue::Const(value)) if !value.is_null() => {
            let text = String::from_utf8(with_zeros(text.into_bytes(), width.into())).expect("digits");
            if quoted { string(&text) } else { text }
        }
        _ => default_text(default, &column.ty, quoted, zone),
    }
}

/// A default as text; constants in quotes if `quoted`.
fn default_text(default: &DefaultValue, ty: &SqlType, quoted: bool, zone: TimeZone) -> String {
    match default {
        DefaultValue::Now => now_text(ty),
        DefaultValue::Expr(text) if quoted => format!("({text})"),
        DefaultValue::Expr(text) => escaped(text),
        DefaultValue::Const(Value::Null) | DefaultValue::Dropped => "NULL".into(),
        DefaultValue::Const(Value::UInt(bits)) if matches!(ty, SqlType::Bit { .. }) => format!("b'{bits:b}'"),
        DefaultValue::Const(value) => {
            let mut text = Vec::new();
            avocet_types::text::write_text(value, ty, zone, &mut text);
            match String::from_utf8(text) {
                Ok(text) if text.is_empty() && !quoted => text,
                // As far as a C string goes.
                Ok(text) if ty.is_bytes() && !quoted => hex(text.split('\0').next().unwrap_or("").as_bytes()),
                Ok(text) if quoted => string(&text),
                Ok(text) => text,
                Err(bytes) if quoted => hex(bytes.as_bytes()),
                Err(bytes) => hex(bytes.as_bytes().split(|byte| *byte == 0).next().unwrap_or_default()),
            }
        }
    }
}

/// A kept expression as information_schema has it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// What names stand in: double quotes under ANSI_QUOTES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quotes(char);

impl Quotes {
    pub fn of(mode: SqlMode) -> Self {
        Self(if mode.has(SqlMode::ANSI_QUOTES) { '"' } else { '`' })
    }

    pub fn character(self) -> char {
        self.0
    }

    pub fn quote(self, name: &str) -> String {
        let Self(quote) = self;
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }
}

/// A text that is shown under `sql_quote_show_create = OFF`: names that need no quotes have none, but for those in CHECK.
pub(super) fn unquoted(text: &str) -> String {
    let line = |line: &str| match line.find(" CHECK (").filter(|_| line.starts_with("  CONSTRAINT ")) {
        Some(at) => unquoted_names(&line[..at]) + &line[at..],
        None => unquoted_names(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn unquoted_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '`', '"']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (token, behind) = rest.split_at(quoted_end(rest));
        let name = token.get(1..token.len() - 1).unwrap_or_default();
        let is_plain = !token.starts_with('\'') && !name.is_empty() && !needs_quotes(name);
        out.push_str(if is_plain { name } else { token });
        rest = behind;
    }
    out + rest
}

/// Where what begins with a quote ends: behind the next one that is not doubled, or behind a backslash in a string.
fn quoted_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'\'' => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        match c {
            '\0' => quoted.push_str("\\0"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\\' => quoted.push_str("\\\\"),
            '\'' => quoted.push_str("''"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}
