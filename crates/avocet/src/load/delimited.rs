//! CSV, TSV and TBL files as batches of texts.
//!
//! Fields are separated by one byte and may be quoted with `"` (doubled within); a quoted field may span
//! lines; a quote within a field that does not begin with one is text. NULL is `\N`, and in CSV and TSV also a field that
//! is empty and not quoted. TBL lines end with a separator.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};

use crate::Failure;

const BATCH_ROWS: usize = 8192;

/// How a kind of file separates its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    separator: u8,
    /// Each line ends with a separator that begins no field.
    trailing: bool,
    quoted: bool,
    empty_is_null: bool,
}

impl Format {
    const CSV: Self = Self { separator: b',', trailing: false, quoted: true, empty_is_null: true };
    const TSV: Self = Self { separator: b'\t', ..Self::CSV };
    const TBL: Self = Self { separator: b'|', trailing: true, quoted: false, empty_is_null: false };

    /// By the file's name.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::CSV),
            "tsv" => Some(Self::TSV),
            "tbl" => Some(Self::TBL),
            _ => None,
        }
    }
}

/// A file of lines and fields.
pub struct Delimited {
    input: BufReader<File>,
    format: Format,
    /// The line that is being read; its buffer is reused.
    line: Vec<u8>,
    line_no: u64,
    columns: usize,
    pub bytes_read: u64,
}

impl Delimited {
    pub fn open(path: &Path, format: Format) -> io::Result<Self> {
        let input = BufReader::with_capacity(1 << 20, File::open(path)?);
        Ok(Self { input, format, line: Vec::new(), line_no: 0, columns: 0, bytes_read: 0 })
    }

    /// Reads the first line as column names.
    pub fn header(&mut self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        if self.read_record()? {
            fields(&self.line, self.format, |field| {
                names.push(field.map(String::from_utf8_lossy).unwrap_or_default().trim().to_owned());
            });
        }
        Ok(names)
    }

    /// The next rows, as texts; `None` at the end. Every line must have as many fields as the first.
    pub fn batch(&mut self) -> Result<Option<Vec<ArrayRef>>, Failure> {
        let mut builders: Vec<StringViewBuilder> = Vec::new();
        let mut rows = 0;
        while rows < BATCH_ROWS && self.read_record()? {
            if self.columns == 0 {
                fields(&self.line, self.format, |_| self.columns += 1);
            }
            if builders.is_empty() {
                builders.resize_with(self.columns, || StringViewBuilder::with_capacity(BATCH_ROWS));
            }
            self.append(&mut builders)?;
            rows += 1;
        }
        let arrays = builders.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef).collect();
        Ok((rows > 0).then_some(arrays))
    }

    fn append(&self, builders: &mut [StringViewBuilder]) -> Result<(), Failure> {
        let mut count = 0;
        let mut all_text = true;
        fields(&self.line, self.format, |field| {
            if let Some(builder) = builders.get_mut(count) {
                match field.map(std::str::from_utf8) {
                    None => builder.append_null(),
                    Some(Ok(text)) => builder.append_value(text),
                    Some(Err(_)) => all_text = false,
                }
            }
            count += 1;
        });
        if !all_text {
            return Err(self.wrong("not UTF-8"));
        }
        if count != builders.len() {
            let expected = builders.len();
            return Err(self.wrong(&format!("{count} fields, but the first line has {expected}")));
        }
        Ok(())
    }

    /// Reads a line, and more while a quote is open; blank lines are passed over. False at the end.
    fn read_record(&mut self) -> Result<bool, Failure> {
        loop {
            self.line.clear();
            let mut place = Place::Start;
            loop {
                let from = self.line.len();
                let count = self.input.read_until(b'\n', &mut self.line)?;
                self.bytes_read += count as u64;
                self.line_no += u64::from(count > 0);
                if self.format.quoted {
                    place = place.after(&self.line[from..], self.format.separator);
                }
                match place {
                    Place::Quoted if count > 0 => {}
                    Place::Quoted => return Err(self.wrong("a quote is not closed")),
                    Place::Wrong => return Err(self.wrong("text behind a closing quote")),
                    _ => break,
                }
            }
            if self.line.is_empty() {
                return Ok(false);
            }
            while matches!(self.line.last(), Some(b'\n' | b'\r')) {
                self.line.pop();
            }
            if !self.line.is_empty() {
                return Ok(true);
            }
        }
    }

    fn wrong(&self, why: &str) -> Failure {
        format!("line {}: {why}", self.line_no).into()
    }
}

/// Where in a record its reader is. Only a quote that a field begins with is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the beginning of a field.
    Start,
    Plain,
    Quoted,
    /// Behind a quote that closes the field, unless another one follows.
    Closed,
    /// Something else follows.
    Wrong,
}

impl Place {
    fn after(self, bytes: &[u8], separator: u8) -> Self {
        // Most lines have no quotes at all.
        if self == Self::Start && !bytes.contains(&b'"') {
            return Self::Plain;
        }
        bytes.iter().fold(self, |place, &byte| match (place, byte) {
            (Self::Wrong, _) => Self::Wrong,
            (Self::Start, b'"') | (Self::Closed, b'"') => Self::Quoted,
            (Self::Quoted, b'"') => Self::Closed,
            (Self::Quoted, _) => Self::Quoted,
            (_, byte) if byte == separator => Self::Start,
            (Self::Closed, b'\r' | b'\n') => Self::Closed,
            (Self::Closed, _) => Self::Wrong,
            (Self::Start | Self::Plain, _) => Self::Plain,
        })
    }
}

/// Calls `each` with every field of a line; `None` for NULL.
fn fields(line: &[u8], format: Format, mut each: impl FnMut(Option<&[u8]>)) {
    let mut rest = line;
    loop {
        if format.quoted && rest.first() == Some(&b'"') {
            let (text, after) = unquote(&rest[1..]);
            each(Some(&text));
            match after.iter().position(|&b| b == format.separator) {
                Some(at) => rest = &after[at + 1..],
                None => return,
            }
            continue;
        }
        let end = rest.iter().position(|&b| b == format.separator);
        let field = &rest[..end.unwrap_or(rest.len())];
        if end.is_none() && format.trailing && field.is_empty() {
            return;
        }
        let null = field == b"\\N" || (format.empty_is_null && field.is_empty());
        each((!null).then_some(field));
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => return,
        }
    }
}

/// The text up to the closing quote, and what follows it.
fn unquote(inside: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut text = Vec::with_capacity(inside.len());
    let mut at = 0;
    while at < inside.len() {
        match inside[at] {
            b'"' if inside.get(at + 1) == Some(&b'"') => {
                text.push(b'"');
                at += 2;
            }
            b'"' => return (text, &inside[at + 1..]),
            byte => {
                text.push(byte);
                at += 1;
            }
        }
    }
    (text, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};

    fn read(name: &str, contents: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(name);
        std::fs::write(&path, contents).expect("a file");
        let mut file = Delimited::open(&path, Format::of(&path).expect("a known kind"))?;
        let mut rows = Vec::new();
        while let Some(columns) = file.batch()? {
            for row in 0..columns[0].len() {
                let cell = |column: &ArrayRef| {
                    let texts = column.as_string_view();
                    texts.is_valid(row).then(|| texts.value(row).to_owned())
                };
                rows.push(columns.iter().map(cell).collect());
            }
        }
        Ok(rows)
    }

    fn row(cells: &[Option<&str>]) -> Vec<Option<String>> {
        cells.iter().map(|cell| cell.map(str::to_owned)).collect()
    }

    #[test]
    fn csv_fields_may_be_quoted_and_span_lines() {
        let rows = read("a.csv", "1,\"a \"\"b\"\", c\",\r\n\n2,\"two\nlines\",\\N\n").expect("well-formed");
        assert_eq!(rows[0], row(&[Some("1"), Some("a \"b\", c"), None]));
        assert_eq!(rows[1], row(&[Some("2"), Some("two\nlines"), None]));
    }

    #[test]
    fn a_quote_within_a_field_is_text() {
        let rows = read("a.csv", "5\" pipe\n6\" pipe\n").expect("well-formed");
        assert_eq!(rows, [row(&[Some("5\" pipe")]), row(&[Some("6\" pipe")])]);
    }

    #[test]
    fn quotes_that_do_not_close_a_field_are_named() {
        let error = |contents| read("a.csv", contents).expect_err("refused").to_string();
        assert_eq!(error("1,\"a\nb\n"), "line 2: a quote is not closed");
        assert_eq!(error("1,2\n\"a\"b,2\n"), "line 2: text behind a closing quote");
    }

    #[test]
    fn tbl_lines_end_with_a_separator() {
        let rows = read("a.tbl", "1|say \"hi|\n2||\n").expect("well-formed");
        assert_eq!(rows, [row(&[Some("1"), Some("say \"hi")]), row(&[Some("2"), Some("")])]);
    }

    #[test]
    fn a_line_of_another_length_is_named() {
        let error = read("a.csv", "1,2\n3\n").expect_err("too short").to_string();
        assert_eq!(error, "line 2: 1 fields, but the first line has 2");
    }
}
