//! Results for people (tables, as the mysql client draws them) and for programs (tab-separated lines).

use std::io::{self, Write};
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::split::Ending;

/// A result as the shell sees it, from a server or from an embedded session.
#[derive(Debug, Default)]
pub struct ResultSet {
    pub columns: Vec<Column>,
    /// `None` for NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub affected: u64,
    pub info: String,
    pub warnings: u16,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// Numbers stand at the right.
    pub right: bool,
    /// There is room for a NULL, even if there is none.
    pub nullable: bool,
}

impl ResultSet {
    /// Whether the statement has a result set, be it empty.
    pub fn has_rows(&self) -> bool {
        !self.columns.is_empty()
    }
}

/// Where results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Tables, counts and times.
    Interactive,
    /// Tables only.
    Table,
    /// Tab-separated lines under a line of names.
    Batch { names: bool },
}

pub fn print(
    to: &mut dyn Write,
    result: &ResultSet,
    style: Style,
    ending: Ending,
    took: Duration,
) -> io::Result<()> {
    if result.has_rows() {
        match (style, ending) {
            (_, Ending::Vertical) => vertical(to, result)?,
            (Style::Batch { names }, _) => batch(to, result, names)?,
            _ if !result.rows.is_empty() => table(to, result)?,
            _ => {}
        }
    }
    if style == Style::Interactive { summary(to, result, took) } else { Ok(()) }
}

fn summary(to: &mut dyn Write, result: &ResultSet, took: Duration) -> io::Result<()> {
    let plural = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    match (result.has_rows(), result.rows.len() as u64) {
        (true, 0) => write!(to, "Empty set")?,
        (true, rows) => write!(to, "{} in set", plural(rows, "row"))?,
        (false, _) => write!(to, "Query OK, {} affected", plural(result.affected, "row"))?,
    }
    if result.warnings > 0 {
        write!(to, ", {}", plural(u64::from(result.warnings), "warning"))?;
    }
    writeln!(to, " ({:.2} sec)", took.as_secs_f64())?;
    if !result.info.is_empty() {
        writeln!(to, "{}", result.info)?;
    }
    writeln!(to)
}

/// A cell as text; bytes that are none in hexadecimal.
fn shown(cell: &Option<Vec<u8>>) -> String {
    match cell {
        None => "NULL".to_owned(),
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02X}")),
        },
    }
}

/// The width of a text's widest line.
fn width(text: &str) -> usize {
    text.width()
}

fn table(to: &mut dyn Write, result: &ResultSet) -> io::Result<()> {
    let cells: Vec<Vec<String>> = result.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let widths: Vec<usize> = result
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            cells
                .iter()
                .map(|row| width(&row[i]))
                .chain([width(&column.name), if column.nullable { 4 } else { 0 }])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut rule = String::from("+");
    for width in &widths {
        rule.push_str(&"-".repeat(width + 2));
        rule.push('+');
    }
    writeln!(to, "{rule}")?;
    let names = result.columns.iter().map(|column| (column.name.as_str(), false));
    line(to, names, &widths)?;
    writeln!(to, "{rule}")?;
    for (row, raw) in cells.iter().zip(&result.rows) {
        let aligned = row.iter().zip(raw).zip(&result.columns);
        line(
            to,
            aligned.map(|((text, raw), column)| (text.as_str(), column.right && raw.is_some())),
            &widths,
        )?;
    }
    writeln!(to, "{rule}")
}

fn line<'a>(
    to: &mut dyn Write,
    cells: impl Iterator<Item = (&'a str, bool)>,
    widths: &[usize],
) -> io::Result<()> {
    write!(to, "|")?;
    for ((text, right), cell_width) in cells.zip(widths) {
        let padding = " ".repeat(cell_width - width(text));
        if right {
            write!(to, " {padding}{text} |")?;
        } else {
            write!(to, " {text}{padding} |")?;
        }
    }
    writeln!(to)
}

fn vertical(to: &mut dyn Write, result: &ResultSet) -> io::Result<()> {
    let widest = result.columns.iter().map(|column| width(&column.name)).max().unwrap_or(0);
    for (i, row) in result.rows.iter().enumerate() {
        let stars = "*".repeat(27);
        writeln!(to, "{stars} {}. row {stars}", i + 1)?;
        for (column, cell) in result.columns.iter().zip(row) {
            let padding = " ".repeat(widest - width(&column.name));
            writeln!(to, "{padding}{}: {}", column.name, shown(cell))?;
        }
    }
    Ok(())
}

fn batch(to: &mut dyn Write, result: &ResultSet, names: bool) -> io::Result<()> {
    if names {
        let names: Vec<&str> = result.columns.iter().map(|column| column.name.as_str()).collect();
        writeln!(to, "{}", names.join("\t"))?;
    }
    for row in &result.rows {
        for (i, cell) in row.iter().enumerate() {
            if i > 0 {
                write!(to, "\t")?;
            }
            match cell {
                None => write!(to, "NULL")?,
                Some(bytes) => escaped(to, bytes)?,
            }
        }
        writeln!(to)?;
    }
    Ok(())
}

/// What would break lines or columns apart is escaped.
fn escaped(to: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for &byte in bytes {
        match byte {
            b'\t' => to.write_all(b"\\t")?,
            b'\n' => to.write_all(b"\\n")?,
            b'\\' => to.write_all(b"\\\\")?,
            0 => to.write_all(b"\\0")?,
            byte => to.write_all(&[byte])?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ResultSet {
        let column = |name: &str, right| Column { name: name.into(), right, nullable: true };
        ResultSet {
            columns: vec![column("id", true), column("name", false)],
            rows: vec![
                vec![Some(b"7".to_vec()), Some("gr\u{fc}n".into())],
                vec![Some(b"100".to_vec()), None],
            ],
            ..ResultSet::default()
        }
    }

    fn text(result: &ResultSet, style: Style, ending: Ending) -> String {
        let mut out = Vec::new();
        print(&mut out, result, style, ending, Duration::from_millis(12)).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn tables_look_as_the_mysql_client_draws_them() {
        let expected = "\
+------+------+
| id   | name |
+------+------+
|    7 | gr\u{fc}n |
|  100 | NULL |
+------+------+
2 rows in set (0.01 sec)

";
        assert_eq!(text(&sample(), Style::Interactive, Ending::Table), expected);
    }

    #[test]
    fn batches_are_separated_by_tabs() {
        let mut result = sample();
        result.rows[0][1] = Some(b"a\tb\\".to_vec());
        let expected = "id\tname\n7\ta\\tb\\\\\n100\tNULL\n";
        assert_eq!(text(&result, Style::Batch { names: true }, Ending::Table), expected);
    }

    #[test]
    fn a_statement_without_rows_tells_what_it_did() {
        let result = ResultSet { affected: 1, warnings: 1, ..ResultSet::default() };
        let expected = "Query OK, 1 row affected, 1 warning (0.01 sec)\n\n";
        assert_eq!(text(&result, Style::Interactive, Ending::Table), expected);
        assert_eq!(text(&result, Style::Batch { names: true }, Ending::Table), "");
    }
}
