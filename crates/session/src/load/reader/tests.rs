use super::*;

type Fields = Vec<Option<Vec<u8>>>;

/// What MySQL's reader does with a file, byte by byte as `READ_INFO` of sql_load.cc is written: the model.
struct Model<'m> {
    dialect: &'m Dialect,
    line_terminator: Vec<u8>,
    input: Vec<u8>,
    at: usize,
    found_end_of_line: bool,
    eof: bool,
    found_null: bool,
    enclosed: bool,
    line_cut: bool,
    malformed: bool,
    start_of_line: bool,
}

impl<'m> Model<'m> {
    fn new(dialect: &'m Dialect, input: &[u8]) -> Self {
        let same = dialect.field_terminator == dialect.line_terminator;
        let line_terminator = if same { Vec::new() } else { dialect.line_terminator.to_vec() };
        Self {
            dialect,
            line_terminator,
            input: input.to_vec(),
            at: 0,
            found_end_of_line: false,
            eof: false,
            found_null: false,
            enclosed: false,
            line_cut: false,
            malformed: false,
            start_of_line: !dialect.line_start.is_empty(),
        }
    }

    fn get(&mut self) -> Option<u8> {
        let byte = self.input.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn push(&mut self) {
        self.at -= 1;
    }

    /// The first byte was read already.
    fn terminator(&mut self, terminator: &[u8]) -> bool {
        let from = self.at;
        for &wanted in &terminator[1..] {
            if self.get() != Some(wanted) {
                self.at = from;
                return false;
            }
        }
        true
    }

    fn char_len(&self, byte: u8) -> usize {
        match (self.dialect.charset, byte) {
            (Charset::Latin1 | Charset::Binary | Charset::Ascii, _) | (_, ..0x80) => 1,
            (_, 0x80..0xC2) => 0,
            (_, 0xC2..0xE0) => 2,
            (_, 0xE0..0xF0) => 3,
            (Charset::Utf8mb4, 0xF0..0xF8) => 4,
            _ => 0,
        }
    }

    fn find_start_of_fields(&mut self) -> bool {
        let start = self.dialect.line_start.to_vec();
        loop {
            match self.get() {
                None => {
                    (self.found_end_of_line, self.eof) = (true, true);
                    return false;
                }
                Some(byte) if byte == start[0] && self.terminator(&start) => return true,
                Some(_) => {}
            }
        }
    }

    /// A field's text; `None` if there is none on this line.
    fn read_field(&mut self) -> Option<Vec<u8>> {
        self.found_null = false;
        if self.found_end_of_line {
            return None;
        }
        if self.start_of_line {
            self.start_of_line = false;
            if !self.find_start_of_fields() {
                return None;
            }
        }
        let Some(first) = self.get() else {
            (self.found_end_of_line, self.eof) = (true, true);
            return None;
        };
        let field_terminator = self.dialect.field_terminator.to_vec();
        let line_terminator = self.line_terminator.clone();
        let mut buffer = Vec::new();
        let opening = self.dialect.enclosed.filter(|byte| *byte == first);
        if opening.is_some() {
            buffer.push(first);
        } else {
            self.push();
        }
        while let Some(mut byte) = self.get() {
            if Some(byte) == self.dialect.escape {
                let Some(next) = self.get() else {
                    buffer.push(byte);
                    break;
                };
                if self.dialect.escape != self.dialect.enclosed || next == byte {
                    if self.char_len(next) == 1 {
                        self.found_null |= next == b'N';
                        buffer.push(unescaped(next));
                    } else {
                        self.push();
                        // The model has no characters whose first byte means something by itself.
                        if let Some(done) = self.character(&mut buffer) {
                            return done;
                        }
                    }
                    continue;
                }
                self.push();
            }
            if opening.is_none()
                && line_terminator.first() == Some(&byte)
                && self.terminator(&line_terminator)
            {
                self.enclosed = false;
                self.found_end_of_line = true;
                return Some(buffer);
            }
            if opening == Some(byte) {
                match self.get() {
                    Some(next) if next == byte => {
                        buffer.push(next);
                        continue;
                    }
                    None => {
                        (self.enclosed, self.found_end_of_line) = (true, true);
                        return Some(buffer.split_off(1));
                    }
                    Some(next)
                        if line_terminator.first() == Some(&next) && self.terminator(&line_terminator) =>
                    {
                        (self.enclosed, self.found_end_of_line) = (true, true);
                        return Some(buffer.split_off(1));
                    }
                    Some(next)
                        if field_terminator.first() == Some(&next) && self.terminator(&field_terminator) =>
                    {
                        self.enclosed = true;
                        return Some(buffer.split_off(1));
                    }
                    Some(_) => {
                        self.push();
                        byte = opening.unwrap_or(byte);
                    }
                }
            } else if opening.is_none()
                && field_terminator.first() == Some(&byte)
                && self.terminator(&field_terminator)
            {
                self.enclosed = false;
                return Some(buffer);
            }
            if self.char_len(byte) == 1 {
                buffer.push(byte);
                continue;
            }
            self.push();
            if let Some(done) = self.character(&mut buffer) {
                return done;
            }
        }
        self.enclosed = false;
        (self.found_end_of_line, self.eof) = (true, true);
        Some(buffer)
    }

    /// Takes a character of several bytes; what the field is if it ends here.
    fn character(&mut self, buffer: &mut Vec<u8>) -> Option<Option<Vec<u8>>> {
        let first = self.input[self.at];
        let len = self.char_len(first);
        if len == 0 {
            self.malformed = true;
            return Some(None);
        }
        let Some(bytes) = self.input.get(self.at..self.at + len) else {
            self.at = self.input.len();
            self.enclosed = false;
            (self.found_end_of_line, self.eof) = (true, true);
            return Some(Some(std::mem::take(buffer)));
        };
        let taken = if std::str::from_utf8(bytes).is_ok() { len } else { 1 };
        buffer.extend_from_slice(&bytes[..taken]);
        self.at += taken;
        None
    }

    /// True at the file's end.
    fn next_line(&mut self) -> bool {
        self.line_cut = false;
        self.start_of_line = !self.dialect.line_start.is_empty();
        if self.found_end_of_line || self.eof {
            self.found_end_of_line = false;
            return self.eof;
        }
        if self.line_terminator.is_empty() {
            return false;
        }
        let terminator = self.line_terminator.clone();
        loop {
            let Some(byte) = self.get() else {
                self.eof = true;
                return true;
            };
            let len = self.char_len(byte);
            if len > 1 {
                for _ in 1..len {
                    if self.get().is_none() {
                        self.eof = true;
                        return true;
                    }
                }
            } else if Some(byte) == self.dialect.escape {
                self.line_cut = true;
                if self.get().is_none() {
                    self.eof = true;
                    return true;
                }
                continue;
            } else if terminator.first() == Some(&byte) && self.terminator(&terminator) {
                return false;
            }
            self.line_cut = true;
        }
    }

    /// All rows, each with whether its line was cut, and whether the file ends with a malformed byte.
    fn rows(mut self, want: usize) -> (Vec<(Fields, bool)>, bool) {
        let mut rows = Vec::new();
        loop {
            let mut fields = Vec::new();
            while fields.len() < want {
                let Some(text) = self.read_field() else { break };
                let null = (self.found_null && text.len() == 1)
                    || (!self.enclosed && self.dialect.enclosed.is_some() && text == b"NULL");
                fields.push((!null).then_some(text));
            }
            if self.malformed {
                return (rows, true);
            }
            if fields.is_empty() {
                return (rows, false);
            }
            let last = self.next_line();
            rows.push((fields, self.line_cut && !last));
            if last {
                return (rows, false);
            }
        }
    }
}

/// Reads a file that comes in pieces which end at these places.
fn read(dialect: &Dialect, input: &[u8], want: usize, cuts: &[usize]) -> (Vec<(Fields, bool)>, bool) {
    let mut reader = Reader::new(dialect.clone());
    let mut row = Row::default();
    let mut rows = Vec::new();
    let mut from = 0;
    for end in cuts.iter().copied().chain([input.len()]) {
        let all = end == input.len();
        loop {
            let (step, next) = reader.row(&input[..end], from, all, want, &mut row);
            match step {
                Step::More => break,
                Step::End => return (rows, false),
                Step::Malformed => return (rows, true),
                Step::Row => {
                    let field = |at| row.field(at, &input[..end]).map(<[u8]>::to_vec);
                    rows.push(((0..row.len()).map(field).collect(), row.cut));
                    from = next;
                }
            }
        }
    }
    unreachable!("the last piece has no more behind it")
}

fn dialect(fields: &str, lines: &str, start: &str, enclosed: Option<u8>, escape: Option<u8>) -> Dialect {
    Dialect {
        field_terminator: fields.as_bytes().into(),
        line_terminator: lines.as_bytes().into(),
        line_start: start.as_bytes().into(),
        enclosed,
        escape,
        charset: Charset::Utf8mb4,
        sizes: None,
    }
}

/// A generator of no consequence, whose seed a failure names.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

#[test]
fn every_file_is_read_as_by_the_model_however_it_is_cut() {
    let pieces: [&[u8]; 21] = [
        b",",
        b"\n",
        b"\"",
        b"\\",
        b"a",
        b"N",
        b"NULL",
        b"bc",
        b"||",
        b"|",
        b"\r\n",
        b"\r",
        b">>",
        b">",
        b"\xC3\xBC",
        b"\xF0\x9F\x98\x80",
        b"n",
        b"\\N",
        b"\"\"",
        b",,",
        b"\xC3",
    ];
    for seed in 0..60_000 {
        let mut random = Random(seed);
        let mut dialect = dialect(
            random.of(&[",", "||", "\t", ",,", ""]),
            random.of(&["\n", "\r\n", "||", "", ","]),
            random.of(&["", "", "", ">>", ">"]),
            random.of(&[None, Some(b'"')]),
            random.of(&[Some(b'\\'), None, Some(b'"')]),
        );
        dialect.charset = random.of(&[Charset::Utf8mb4, Charset::Utf8mb4, Charset::Utf8mb3, Charset::Latin1]);
        if dialect.field_terminator.is_empty() && dialect.line_terminator.is_empty() {
            continue;
        }
        let mut input = Vec::new();
        for _ in 0..random.below(24) {
            input.extend_from_slice(random.of(&pieces));
        }
        let want = 1 + random.below(3);
        let expected = Model::new(&dialect, &input).rows(want);
        let mut cuts: Vec<usize> = (0..random.below(4)).map(|_| random.below(input.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.retain(|cut| *cut < input.len());
        let text = String::from_utf8_lossy(&input);
        for cuts in [Vec::new(), cuts, (0..input.len()).collect()] {
            assert_eq!(
                read(&dialect, &input, want, &cuts),
                expected,
                "seed {seed}: {text:?} cut at {cuts:?}"
            );
        }
    }
}

#[test]
fn any_bytes_come_to_an_end() {
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let mut dialect = dialect(",", "\n", "", Some(b'"'), Some(b'\\'));
        if seed % 3 == 0 {
            dialect.field_terminator = Box::default();
            dialect.enclosed = None;
            dialect.sizes = Some([3, 1, 5].into());
        }
        let input: Vec<u8> = (0..random.below(40)).map(|_| random.below(256) as u8).collect();
        let whole = read(&dialect, &input, 3, &[]);
        let cut = read(&dialect, &input, 3, &(0..input.len()).collect::<Vec<_>>());
        assert_eq!(whole, cut, "seed {seed}: {input:?}");
    }
}
