//! CSV, TSV and TBL files as batches of texts.
//!
//! The `csv-core` crate tells fields apart: they are separated by one byte and may be quoted with `"` (doubled within); a
//! quoted field may span lines; a quote within a field that does not begin with one is text. NULL is `\N`, and in CSV and TSV
//! also a field that is empty and not quoted. TBL lines end with a separator. The crate takes whatever quotes it meets: that
//! each quoted field is closed, and at its end, is looked after here.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use crate::Failure;

const BATCH_ROWS: usize = 8192;
const QUOTE: u8 = b'"';

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
    reader: Reader,
    record: Record,
    lines: Lines,
    columns: usize,
    pub bytes_read: u64,
}

/// The fields of one record, in memory that is used again.
#[derive(Default)]
struct Record {
    text: Vec<u8>,
    /// How much of `text` is filled.
    len: usize,
    /// Where each field ends in `text`, and whether it was quoted.
    ends: Vec<(usize, bool)>,
}

/// What a field looks like in the file, of files that have quotes.
#[derive(Default)]
struct Raw {
    first: Option<u8>,
    /// Of a quoted field: how many quotes it has, and its last two bytes with what ends it.
    quotes: usize,
    tail: [u8; 2],
}

/// Where in the file its reader is.
#[derive(Default)]
struct Lines {
    ends: u64,
    /// The last byte that was read did not end a line.
    is_within: bool,
}

impl Delimited {
    pub fn open(path: &Path, format: Format) -> io::Result<Self> {
        let input = BufReader::with_capacity(1 << 20, File::open(path)?);
        let reader = ReaderBuilder::new().delimiter(format.separator).quoting(format.quoted).build();
        let record = Record { text: vec![0; 64 * 1024], ..Record::default() };
        Ok(Self { input, format, reader, record, lines: Lines::default(), columns: 0, bytes_read: 0 })
    }

    /// Reads the first line as column names.
    pub fn header(&mut self) -> Result<Vec<String>, Failure> {
        if !self.read_record()? {
            return Ok(Vec::new());
        }
        let name =
            |field: Option<&[u8]>| field.map(String::from_utf8_lossy).unwrap_or_default().trim().to_owned();
        Ok(self.record.fields(self.format).map(name).collect())
    }

    /// The next rows, as texts; `None` at the end. Every line must have as many fields as the first.
    pub fn batch(&mut self) -> Result<Option<Vec<ArrayRef>>, Failure> {
        let mut builders: Vec<StringViewBuilder> = Vec::new();
        let mut rows = 0;
        while rows < BATCH_ROWS && self.read_record()? {
            if self.columns == 0 {
                self.columns = self.record.ends.len();
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
        let (count, expected) = (self.record.ends.len(), builders.len());
        if count != expected {
            return Err(self.wrong(&format!("{count} fields, but the first line has {expected}")));
        }
        for (builder, field) in builders.iter_mut().zip(self.record.fields(self.format)) {
            match field.map(std::str::from_utf8) {
                None => builder.append_null(),
                Some(Ok(text)) => builder.append_value(text),
                Some(Err(_)) => return Err(self.wrong("not UTF-8")),
            }
        }
        Ok(())
    }

    /// Reads the next record; blank lines are passed over. False at the end.
    fn read_record(&mut self) -> Result<bool, Failure> {
        let Record { text, len, ends } = &mut self.record;
        *len = 0;
        ends.clear();
        let mut raw = Raw::default();
        loop {
            let input = self.input.fill_buf()?;
            let is_file_end = input.is_empty();
            let (result, read, written) = self.reader.read_field(input, &mut text[*len..]);
            let bytes = &input[..read];
            self.lines.count(bytes);
            if self.format.quoted {
                raw.count(bytes, ends.is_empty());
            }
            self.input.consume(read);
            self.bytes_read += read as u64;
            let start = ends.last().map_or(0, |(end, _)| *end);
            *len += written;
            match result {
                ReadFieldResult::InputEmpty => {}
                ReadFieldResult::OutputFull => text.resize(2 * text.len(), 0),
                ReadFieldResult::Field { record_end } => {
                    let is_quoted = raw.first == Some(QUOTE);
                    if is_quoted && let Some(wrong) = raw.wrong(&text[start..*len], is_file_end) {
                        return Err(self.wrong(wrong));
                    }
                    ends.push((*len, is_quoted));
                    raw = Raw::default();
                    if record_end {
                        break;
                    }
                }
                ReadFieldResult::End => return Ok(false),
            }
        }
        // A separator at the end of a line begins no field.
        if self.format.trailing
            && let [.., (before, _), (last, _)] = ends[..]
            && before == last
        {
            ends.pop();
        }
        Ok(true)
    }

    fn wrong(&self, why: &str) -> Failure {
        format!("line {}: {why}", self.lines.current()).into()
    }
}

impl Record {
    /// The fields' texts; `None` for NULL.
    fn fields(&self, format: Format) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, is_quoted)| {
            let field = &self.text[start..end];
            start = end;
            let is_null = !is_quoted && (field == b"\\N" || (format.empty_is_null && field.is_empty()));
            (!is_null).then_some(field)
        })
    }
}

impl Lines {
    fn count(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.ends += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.is_within = *last != b'\n';
        }
    }

    /// The number of the line that was read last, from 1.
    fn current(&self) -> u64 {
        self.ends + u64::from(self.is_within)
    }
}

impl Raw {
    /// `begins_record`: line ends before the field are those of the record before, and of blank lines.
    fn count(&mut self, bytes: &[u8], begins_record: bool) {
        let is_blank = |byte: &u8| begins_record && matches!(byte, b'\r' | b'\n');
        let blank = if self.first.is_none() { bytes.iter().take_while(|b| is_blank(b)).count() } else { 0 };
        let bytes = &bytes[blank..];
        self.first = self.first.or(bytes.first().copied());
        if self.first == Some(QUOTE) {
            self.quotes += bytes.iter().filter(|byte| **byte == QUOTE).count();
            if let [.., before, last] = bytes {
                self.tail = [*before, *last];
            } else if let [last] = bytes {
                self.tail = [self.tail[1], *last];
            }
        }
    }

    /// What is wrong with a quoted field, if its closing quote is not its last byte, or there is none.
    fn wrong(&self, text: &[u8], is_file_end: bool) -> Option<&'static str> {
        let doubled = text.iter().filter(|byte| **byte == QUOTE).count();
        // But at the file's end, a separator or a line's end follows.
        let last = self.tail[usize::from(is_file_end)];
        if self.quotes == 2 + 2 * doubled && last == QUOTE {
            return None;
        }
        let is_open = is_file_end && self.quotes % 2 == 1;
        Some(if is_open { "a quote is not closed" } else { "text behind a closing quote" })
    }
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
        assert_eq!(error("1,\"a\"\"\n\n"), "line 2: a quote is not closed");
        assert_eq!(error("1,\"a\"b\"\n"), "line 1: text behind a closing quote");
        assert_eq!(error("1,\"a\" "), "line 1: text behind a closing quote");
        let rows = read("a.csv", "\"\",\"\"\"\"\r\n\r\n\"a\",\"b\"").expect("well-formed");
        assert_eq!(rows, [row(&[Some(""), Some("\"")]), row(&[Some("a"), Some("b")])]);
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
