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

/// The first statement that is complete; `None` if the input ends within one (or is blank).
pub fn next(input: &str) -> Option<Piece<'_>> {
    let bytes = input.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (ending, len) = match &bytes[at..] {
            [b';', ..] => (Ending::Table, 1),
            [b'\\', b'g', ..] => (Ending::Table, 2),
            [b'\\', b'G', ..] => (Ending::Vertical, 2),
            rest => {
                at += skip(rest)?;
                continue;
            }
        };
        return Some(Piece { text: input[..at].trim(), ending, taken: at + len });
    }
    None
}

/// The length of what starts here; `None` if it has no end.
fn skip(rest: &[u8]) -> Option<usize> {
    match rest {
        [quote @ (b'\'' | b'"' | b'`'), ..] => quoted(rest, *quote),
        [b'#', ..] | [b'-', b'-'] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => {
            rest.iter().position(|&b| b == b'\n').map(|end| end + 1)
        }
        [b'/', b'*', ..] => rest.windows(2).skip(2).position(|w| w == b"*/").map(|end| end + 4),
        _ => Some(1),
    }
}

fn quoted(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match *rest.get(at)? {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_where_the_client_says() {
        let piece = next(" select 1 ; select 2;").expect("complete");
        assert_eq!((piece.text, piece.ending, piece.taken), ("select 1", Ending::Table, 11));
        let piece = next("select 1\\G\n").expect("complete");
        assert_eq!((piece.text, piece.ending), ("select 1", Ending::Vertical));
        assert_eq!(next("select 1"), None);
    }

    #[test]
    fn quotes_and_comments_hide_endings() {
        for text in [
            "select ';', \"a;b\", `c;d`, 'it''s;', 'x\\';'",
            "select 1 -- not yet;\n + 1",
            "select /* ; */ 1 # ;\n",
            "select 5 --5",
        ] {
            let input = format!("{text};rest");
            assert_eq!(next(&input).map(|p| p.text), Some(text.trim()), "{text}");
        }
        for open in ["select ';", "select /* ;", "select 1 -- ;", "select `;"] {
            assert_eq!(next(open), None, "{open}");
        }
    }
}
