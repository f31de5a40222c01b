//! LOAD DATA's files: bytes to rows of fields.
//!
//! The dialect is MySQL's own (Manual, 15.2.9 "Field and Line Handling"): terminators of several bytes, enclosures that are
//! doubled within, escapes, and lines of fixed-size fields. As in MySQL, a line's surplus fields are skipped up to the next
//! line terminator, whatever encloses them.
//!
//! A row is read from the bytes that are on hand. If they end within it, the reader says so and begins the row again when
//! there are more; who feeds it doubles what it holds each time, so that every byte is read a bounded number of times.

use std::ops::Range;

use avocet_types::collation::Charset;

/// How lines and fields are told apart.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// Empty together with `enclosed`: fields have fixed sizes.
    pub field_terminator: Box<[u8]>,
    /// Empty: there are no lines, and every so many fields make a row.
    pub line_terminator: Box<[u8]>,
    /// What a line begins with, after bytes that are passed over.
    pub line_start: Box<[u8]>,
    pub enclosed: Option<u8>,
    pub escape: Option<u8>,
    pub charset: Charset,
    /// The sizes of the fields, in bytes, where they are fixed.
    pub sizes: Option<Box<[usize]>>,
}

/// What reading a row came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A row is there.
    Row,
    /// The bytes end within a row, and are not the file's last.
    More,
    /// The file has ended before another row.
    End,
    /// A byte that begins no character: what there is of the field is the row's last field.
    Malformed,
}

/// A row's fields, in memory that is used again.
#[derive(Debug, Default)]
pub struct Row {
    fields: Vec<Field>,
    /// Fields that are not as they stand in the file.
    rewritten: Vec<u8>,
    /// The line had more than was asked for.
    pub cut: bool,
    /// The file has ended with this row.
    pub last: bool,
}

#[derive(Clone, Debug)]
struct Field {
    /// In the file's bytes, or in `rewritten`.
    place: Range<usize>,
    is_rewritten: bool,
    is_null: bool,
}

impl Row {
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field's text; `None` for NULL. `input` is what the row was read from.
    pub fn field<'r>(&'r self, at: usize, input: &'r [u8]) -> Option<&'r [u8]> {
        let field = &self.fields[at];
        let bytes = if field.is_rewritten { &self.rewritten } else { input };
        (!field.is_null).then(|| &bytes[field.place.clone()])
    }
}

/// The bytes on hand have ended, and are not the file's last.
struct Short;

type Scan<T> = Result<T, Short>;

/// Reads one row after the other.
#[derive(Debug)]
pub struct Reader {
    dialect: Dialect,
    /// Bytes that fields may have within them only if they mean something.
    special: [bool; 256],
    ended: bool,
}

impl Reader {
    pub fn new(mut dialect: Dialect) -> Self {
        // Lines that end as fields do are no lines.
        if dialect.field_terminator == dialect.line_terminator {
            dialect.line_terminator = Box::default();
        }
        let mut special = [false; 256];
        let firsts = [dialect.field_terminator.first(), dialect.line_terminator.first()];
        let marks = firsts.into_iter().flatten().copied().chain(dialect.enclosed).chain(dialect.escape);
        marks.for_each(|byte| special[usize::from(byte)] = true);
        if dialect.charset.max_len() > 1 {
            special[0x80..].fill(true);
        }
        Self { dialect, special, ended: false }
    }

    /// Reads a row of `want` fields from `input` at `from`, and returns where the next one begins. `all`: the input is
    /// the rest of the file.
    pub fn row(&mut self, input: &[u8], from: usize, all: bool, want: usize, row: &mut Row) -> (Step, usize) {
        row.fields.clear();
        row.rewritten.clear();
        (row.cut, row.last) = (false, false);
        if self.ended {
            return (Step::End, from);
        }
        let mut scan = Scanner { reader: self, input, at: from, all, line_ended: false, file_ended: false };
        match scan.row(want, row) {
            Err(Short) => (Step::More, from),
            Ok(step) => {
                let at = scan.at;
                self.ended = row.last || step == Step::End;
                (step, at)
            }
        }
    }

    /// Passes over a line; `None` if its end is not on hand.
    pub fn skip_line(&mut self, input: &[u8], from: usize, all: bool) -> Option<usize> {
        let mut scan = Scanner { reader: self, input, at: from, all, line_ended: false, file_ended: false };
        let ended = scan.next_line().ok()?.is_none();
        let at = scan.at;
        self.ended = ended;
        Some(at)
    }

    pub fn has_lines(&self) -> bool {
        !self.dialect.line_terminator.is_empty()
    }
}

/// One look at the input: a cursor, and what it has come across.
struct Scanner<'s> {
    reader: &'s Reader,
    input: &'s [u8],
    at: usize,
    all: bool,
    line_ended: bool,
    file_ended: bool,
}

impl Scanner<'_> {
    /// The next byte; `None` at the file's end.
    fn next(&mut self) -> Scan<Option<u8>> {
        match self.input.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(Some(byte))
            }
            None if self.all => Ok(None),
            None => Err(Short),
        }
    }

    /// Passes over a terminator whose first byte has been read just now, if the rest of it follows.
    fn completes(&mut self, terminator: &[u8]) -> Scan<bool> {
        let rest = &terminator[1..];
        let ahead = &self.input[self.at..];
        if ahead.len() < rest.len() && !self.all && rest.starts_with(ahead) {
            return Err(Short);
        }
        let is_there = ahead.starts_with(rest);
        if is_there {
            self.at += rest.len();
        }
        Ok(is_there)
    }

    /// Whether `byte`, which has been read just now, begins this terminator and the rest follows.
    fn terminates(&mut self, byte: u8, terminator: &[u8]) -> Scan<bool> {
        Ok(terminator.first() == Some(&byte) && self.completes(terminator)?)
    }

    fn row(&mut self, want: usize, row: &mut Row) -> Scan<Step> {
        let dialect = &self.reader.dialect;
        if !dialect.line_start.is_empty() && !self.find_line_start()? {
            return Ok(Step::End);
        }
        if let Some(sizes) = &dialect.sizes {
            if !self.fixed_fields(sizes, row)? {
                return Ok(Step::End);
            }
        } else {
            while row.fields.len() < want && !self.line_ended {
                if self.at == self.input.len() {
                    self.next()?;
                    if row.fields.is_empty() {
                        return Ok(Step::End);
                    }
                    self.end_file();
                    break;
                }
                if !self.field(row)? {
                    return Ok(Step::Malformed);
                }
            }
        }
        if self.line_ended {
            row.last = self.file_ended;
            return Ok(Step::Row);
        }
        let skipped = self.next_line()?;
        (row.last, row.cut) = (skipped.is_none(), skipped == Some(true));
        Ok(Step::Row)
    }

    /// Passes over all before a line, and what it starts with; false if there is no further line.
    fn find_line_start(&mut self) -> Scan<bool> {
        let start = &*self.reader.dialect.line_start;
        match self.input[self.at..].windows(start.len()).position(|window| window == start) {
            Some(found) => {
                self.at += found + start.len();
                Ok(true)
            }
            None if self.all => {
                self.at = self.input.len();
                Ok(false)
            }
            None => Err(Short),
        }
    }

    /// Reads a field up to its terminator; false at a byte that begins no character.
    fn field(&mut self, row: &mut Row) -> Scan<bool> {
        let Dialect { field_terminator, line_terminator, enclosed, escape, .. } = &self.reader.dialect;
        let start = self.at;
        let opening = enclosed.filter(|byte| self.input[start] == *byte);
        self.at += usize::from(opening.is_some());
        let mut text = Text { run: self.at, copied_from: row.rewritten.len(), is_rewritten: false };
        let mut null_escape = false;
        // Where its text ends, and whether an enclosure ends there.
        let (end, is_enclosed) = loop {
            self.pass_plain();
            let mark = self.at;
            let Some(byte) = self.next()? else {
                text.reopen(start, opening, row);
                self.end_file();
                break (mark, false);
            };
            if Some(byte) == *escape {
                // One that escapes nothing stands for itself.
                let Some(escaped) = self.next()? else { continue };
                if escape != enclosed || escaped == byte {
                    text.copy(mark, self.input, row);
                    text.run = self.at;
                    if self.char_len(escaped) == 1 {
                        null_escape |= escaped == b'N';
                        row.rewritten.push(unescaped(escaped));
                    } else {
                        self.at -= 1;
                        text.run = self.at;
                    }
                    continue;
                }
                self.at -= 1;
            }
            if opening.is_none() {
                if self.terminates(byte, line_terminator)? {
                    self.line_ended = true;
                    break (mark, false);
                }
                if self.terminates(byte, field_terminator)? {
                    break (mark, false);
                }
            } else if Some(byte) == opening {
                let Some(follower) = self.next()? else {
                    self.end_file();
                    break (mark, true);
                };
                if follower == byte {
                    text.copy(mark, self.input, row);
                    text.run = self.at - 1;
                    continue;
                }
                self.line_ended = self.terminates(follower, line_terminator)?;
                if self.line_ended || self.terminates(follower, field_terminator)? {
                    break (mark, true);
                }
                // It is within the field after all.
                self.at -= 1;
            }
            match self.char_len(byte) {
                0 => {
                    let field = text.finish(mark, self.input, row);
                    row.fields.push(field);
                    return Ok(false);
                }
                1 => {}
                len if self.input.len() - mark >= len => self.at = mark + self.whole_char(mark, len),
                _ if self.all => {
                    // The file ends within a character, which goes.
                    text.reopen(start, opening, row);
                    self.end_file();
                    break (mark, false);
                }
                _ => return Err(Short),
            }
        };
        let mut field = text.finish(end, self.input, row);
        let bytes = if field.is_rewritten { &row.rewritten } else { self.input };
        let content = &bytes[field.place.clone()];
        field.is_null =
            (null_escape && content.len() == 1) || (!is_enclosed && enclosed.is_some() && content == b"NULL");
        row.fields.push(field);
        Ok(true)
    }

    /// The file ends here, and the line with it.
    fn end_file(&mut self) {
        self.at = self.input.len();
        (self.line_ended, self.file_ended) = (true, true);
    }

    /// Passes over bytes that are text whatever comes before and after them.
    fn pass_plain(&mut self) {
        let special = &self.reader.special;
        let ahead = &self.input[self.at..];
        self.at += ahead.iter().position(|byte| special[usize::from(*byte)]).unwrap_or(ahead.len());
    }

    /// The length of the character at this place if it is one, or of its first byte.
    fn whole_char(&self, at: usize, len: usize) -> usize {
        let bytes = &self.input[at..at + len];
        let is_whole = match self.reader.dialect.charset {
            charset if charset.is_utf8() => std::str::from_utf8(bytes).is_ok(),
            charset => charset.decode(bytes).is_ok(),
        };
        if is_whole { len } else { 1 }
    }

    /// How long a character is that begins with this byte; 0 if none does.
    fn char_len(&self, first: u8) -> usize {
        self.reader.dialect.charset.len_by_first_byte(first)
    }

    /// Reads a line's fields of fixed sizes; false at the file's end.
    fn fixed_fields(&mut self, sizes: &[usize], row: &mut Row) -> Scan<bool> {
        let Dialect { line_terminator, escape, .. } = &self.reader.dialect;
        let most: usize = sizes.iter().sum();
        let from = row.rewritten.len();
        while row.rewritten.len() - from < most {
            let Some(mut byte) = self.next()? else {
                self.end_file();
                break;
            };
            if Some(byte) == *escape {
                byte = match self.next()? {
                    Some(escaped) => unescaped(escaped),
                    None => byte,
                };
            } else if self.terminates(byte, line_terminator)? {
                self.line_ended = true;
                break;
            }
            row.rewritten.push(byte);
        }
        let end = row.rewritten.len();
        if self.file_ended && end == from {
            return Ok(false);
        }
        let mut at = from;
        for &size in sizes {
            if at == end {
                break;
            }
            let place = at..end.min(at + size);
            at = place.end;
            row.fields.push(Field { place, is_rewritten: true, is_null: false });
        }
        Ok(true)
    }

    /// Passes over the rest of a line, and says whether there was any; `None` if the file ends with it.
    fn next_line(&mut self) -> Scan<Option<bool>> {
        let Dialect { line_terminator, escape, .. } = &self.reader.dialect;
        if line_terminator.is_empty() {
            return Ok(Some(false));
        }
        let mut cut = false;
        loop {
            let Some(byte) = self.next()? else { return Ok(None) };
            let len = self.char_len(byte);
            if len > 1 {
                for _ in 1..len {
                    self.next()?;
                }
            } else if Some(byte) == *escape {
                if self.next()?.is_none() {
                    return Ok(None);
                }
            } else if self.terminates(byte, line_terminator)? {
                return Ok(Some(cut));
            }
            cut = true;
        }
    }
}

/// The text of a field that is being read: for as long as it stands in the input as it is, a piece of that; from the first
/// difference on, a copy.
struct Text {
    /// Where the input begins that is not copied yet.
    run: usize,
    copied_from: usize,
    is_rewritten: bool,
}

impl Text {
    /// Copies the input up to `end`; the caller says where it goes on.
    fn copy(&mut self, end: usize, input: &[u8], row: &mut Row) {
        row.rewritten.extend_from_slice(&input[self.run..end]);
        self.is_rewritten = true;
    }

    /// What opened an enclosure that nothing closes is text.
    fn reopen(&mut self, start: usize, opening: Option<u8>, row: &mut Row) {
        match opening {
            Some(byte) if self.is_rewritten => row.rewritten.insert(self.copied_from, byte),
            Some(_) => self.run = start,
            None => {}
        }
    }

    fn finish(&mut self, end: usize, input: &[u8], row: &mut Row) -> Field {
        if self.is_rewritten {
            self.copy(end, input, row);
        }
        let place = if self.is_rewritten { self.copied_from..row.rewritten.len() } else { self.run..end };
        Field { place, is_rewritten: self.is_rewritten, is_null: false }
    }
}

/// What a byte behind an escape stands for. `N` alone is NULL, which the reader of the field sees to.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'0' => 0,
        b'Z' => 0x1A,
        other => other,
    }
}

#[cfg(test)]
mod tests;
