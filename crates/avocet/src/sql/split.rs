//! Cutting input into statements, as the mysql client does.

/// How a statement was ended, and so how its result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `;`, `\g` or the end of the input.
    Table,
    /// `\G`: a line per column.
    Vertical,
}

/// A statement found at the front of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Without its ending and without surrounding blanks.
    pub text: &'a str,
    pub ending: Ending,
    /// Bytes of the input that it took, with its ending.
    pub taken: usize,
}

/// Looks for the end of a statement in input that grows: each byte is looked at once, however many lines the statement has.
#[derive(Debug, Default)]
pub struct Splitter {
    /// What stands before is known.
    at: usize,
    within: Within,
}

#[derive(Clone, Copy, Debug, Default)]
enum Within {
    #[default]
    Statement,
    /// A string or a quoted name.
    Quotes(u8),
    LineComment,
    Comment,
}

impl Splitter {
    /// The first statement that is complete; `None` if the input ends within one (or is blank): then it is to be called again with the
    /// same input and what comes behind it. After a statement, it is to be called with what stands behind that.
    pub fn next<'i>(&mut self, input: &'i str) -> Option<Piece<'i>> {
        let bytes = input.as_bytes();
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            match self.within {
                Within::Statement => {
                    let (ending, len) = match rest {
                        [b';', ..] => (Ending::Table, 1),
                        [b'\\', b'g', ..] => (Ending::Table, 2),
                        [b'\\', b'G', ..] => (Ending::Vertical, 2),
                        _ => {
                            self.at += self.enter(rest)?;
                            continue;
                        }
                    };
                    let (text, taken) = (input[..self.at].trim(), self.at + len);
                    *self = Self::default();
                    return Some(Piece { text, ending, taken });
                }
                Within::Quotes(quote) => match rest {
                    [b'\\'] if quote != b'`' => return None,
                    [b'\\', ..] if quote != b'`' => self.at += 2,
                    [byte, ..] => {
                        self.at += 1;
                        if *byte == quote {
                            self.within = Within::Statement;
                        }
                    }
                    [] => {}
                },
                Within::LineComment => match rest.iter().position(|byte| *byte == b'\n') {
                    Some(end) => {
                        self.at += end + 1;
                        self.within = Within::Statement;
                    }
                    None => self.at = bytes.len(),
                },
                Within::Comment => match rest.windows(2).position(|both| both == b"*/") {
                    Some(end) => {
                        self.at += end + 2;
                        self.within = Within::Statement;
                    }
                    None => {
                        self.at = bytes.len() - 1;
                        return None;
                    }
                },
            }
        }
        None
    }

    /// The length of what begins something or stands for itself; `None` if more of the input has to tell.
    fn enter(&mut self, rest: &[u8]) -> Option<usize> {
        let (within, len) = match rest {
            [quote @ (b'\'' | b'"' | b'`'), ..] => (Within::Quotes(*quote), 1),
            [b'#', ..] => (Within::LineComment, 1),
            [b'-', b'-', b' ' | b'\t' | b'\r' | b'\n', ..] => (Within::LineComment, 2),
            [b'/', b'*', ..] => (Within::Comment, 2),
            [b'-'] | [b'-', b'-'] | [b'/'] | [b'\\'] => return None,
            _ => return Some(1),
        };
        self.within = within;
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(input: &str) -> Option<Piece<'_>> {
        Splitter::default().next(input)
    }

    #[test]
    fn a_statement_ends_where_the_client_says() {
        let piece = next(" select 1 ; select 2;").expect("complete");
        assert_eq!((piece.text, piece.ending, piece.taken), ("select 1", Ending::Table, 11));
        let piece = next("select 1\\G\n").expect("complete");
        assert_eq!((piece.text, piece.ending), ("select 1", Ending::Vertical));
        assert_eq!(next("select 1"), None);
    }

    const HIDDEN: [&str; 4] = [
        "select ';', \"a;b\", `c;d`, 'it''s;', 'x\\';'",
        "select 1 -- not yet;\n + 1",
        "select /* ; */ 1 # ;\n",
        "select 5 --5",
    ];

    #[test]
    fn quotes_and_comments_hide_endings() {
        for text in HIDDEN {
            let input = format!("{text};rest");
            assert_eq!(next(&input).map(|p| p.text), Some(text.trim()), "{text}");
        }
        for open in ["select ';", "select /* ;", "select 1 -- ;", "select `;", "select /*/ ;"] {
            assert_eq!(next(open), None, "{open}");
        }
    }

    #[test]
    fn input_that_comes_in_pieces_is_cut_in_the_same_places() {
        for text in HIDDEN {
            let input = format!("{text};rest");
            let mut splitter = Splitter::default();
            let found = (0..=input.len()).find_map(|end| splitter.next(&input[..end]));
            assert_eq!(found.map(|piece| piece.text), Some(text.trim()), "{text}");
        }
    }
}
