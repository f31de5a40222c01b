//! Documents from texts. Messages and positions are those of the parser that MySQL has (RapidJSON).

use crate::json::tree::{Json, Map};
use crate::json::{JsonError, MAX_DEPTH};

/// The document that a text is. Of members with one name the last counts.
pub fn parse(text: &str) -> Result<Json, JsonError> {
    parse_within(text, &mut |_| true)
}

/// The same, for a text that may be long: a tree takes many times the bytes of its text. `room` is told of so many bytes before
/// more are taken; if it says no, the error is [`JsonError::NoRoom`].
pub fn parse_within(text: &str, room: &mut dyn FnMut(usize) -> bool) -> Result<Json, JsonError> {
    let mut parser = Parser { text, bytes: text.as_bytes(), at: 0, depth: 0, untold: 0, room };
    parser.skip_spaces();
    if parser.peek().is_none() {
        return Err(parser.error("The document is empty."));
    }
    let value = parser.value()?;
    parser.skip_spaces();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.error("The document root must not be followed by other values.")),
    }
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    depth: usize,
    /// Bytes that were taken and not told yet.
    untold: usize,
    room: &'t mut dyn FnMut(usize) -> bool,
}

/// Whoever counts the tree's bytes is told of them in steps.
const STEP: usize = 256 << 10;

/// What an allocation takes beside its bytes, about.
const BESIDE: usize = 16;

impl Parser<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.untold += bytes;
        if self.untold < STEP {
            return Ok(());
        }
        match (self.room)(std::mem::take(&mut self.untold)) {
            true => Ok(()),
            false => Err(JsonError::NoRoom),
        }
    }

    /// Adds to what a container has. The room that it grows to is counted before it is taken.
    fn push<T>(&mut self, to: &mut Vec<T>, value: T) -> Result<(), JsonError> {
        if to.len() == to.capacity() {
            let more = to.capacity().max(4);
            self.take(more * size_of::<T>() + BESIDE)?;
            to.reserve_exact(more);
        }
        to.push(value);
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn consume(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_spaces(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn error(&self, message: &'static str) -> JsonError {
        JsonError::Syntax { message, position: self.at }
    }

    fn value(&mut self) -> Result<Json, JsonError> {
        match self.peek() {
            Some(b'n') => self.word(b"null", Json::Null),
            Some(b't') => self.word(b"true", Json::Bool(true)),
            Some(b'f') => self.word(b"false", Json::Bool(false)),
            Some(b'"') => self.string().map(Json::String),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            _ => self.number(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json, JsonError>) -> Result<Json, JsonError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.at += 1;
        self.skip_spaces();
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn word(&mut self, word: &[u8], value: Json) -> Result<Json, JsonError> {
        match word.iter().all(|byte| self.consume(*byte)) {
            true => Ok(value),
            false => Err(self.error("Invalid value.")),
        }
    }

    /// What follows `[` and spaces.
    fn array(&mut self) -> Result<Json, JsonError> {
        let mut elements = Vec::new();
        if self.consume(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            let element = self.value()?;
            self.push(&mut elements, element)?;
            self.skip_spaces();
            if self.consume(b',') {
                self.skip_spaces();
            } else if self.consume(b']') {
                return Ok(Json::Array(elements));
            } else {
                return Err(self.error("Missing a comma or ']' after an array element."));
            }
        }
    }

    /// What follows `{` and spaces.
    fn object(&mut self) -> Result<Json, JsonError> {
        let mut members = Vec::new();
        if self.consume(b'}') {
            return Ok(Json::Object(Map::default()));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("Missing a name for object member."));
            }
            let name = self.string()?;
            self.skip_spaces();
            if !self.consume(b':') {
                return Err(self.error("Missing a colon after a name of object member."));
            }
            self.skip_spaces();
            let value = self.value()?;
            self.push(&mut members, (name, value))?;
            self.skip_spaces();
            if self.consume(b',') {
                self.skip_spaces();
            } else if self.consume(b'}') {
                return Ok(Json::Object(Map::from_members(members)));
            } else {
                return Err(self.error("Missing a comma or '}' after an object member."));
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let start = self.at;
            let plain = |b: &u8| *b >= 0x20 && *b != b'"' && *b != b'\\';
            self.at += self.bytes[start..].iter().take_while(|b| plain(b)).count();
            string.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.take(string.capacity() + BESIDE)?;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                None | Some(0) => return Err(self.error("Missing a closing quotation mark in string.")),
                Some(_) => return Err(self.error("Invalid encoding in string.")),
            }
        }
    }

    /// What follows `\`, and it; errors are where it stands.
    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        let error = |message| JsonError::Syntax { message, position: start };
        self.at += 2;
        let surrogate = || error("The surrogate pair in string is invalid.");
        Ok(match self.bytes.get(start + 1) {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(*c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let hex = || error("Incorrect hex digit after \\u escape in string.");
                let high = self.hex4().ok_or_else(hex)?;
                if !(0xd800..0xe000).contains(&high) {
                    return Ok(char::from_u32(high).expect("it is no surrogate"));
                }
                if high >= 0xdc00 || !(self.consume(b'\\') && self.consume(b'u')) {
                    return Err(surrogate());
                }
                let low = self.hex4().ok_or_else(hex)?;
                if !(0xdc00..0xe000).contains(&low) {
                    return Err(surrogate());
                }
                char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or_else(surrogate)?
            }
            _ => return Err(error("Invalid escape character in string.")),
        })
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        let value = digits.iter().try_fold(0, |v, b| Some(v * 16 + char::from(*b).to_digit(16)?))?;
        self.at += 4;
        Some(value)
    }

    fn digits(&mut self) -> usize {
        let count = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        let negative = self.consume(b'-');
        if !self.consume(b'0') && self.digits() == 0 {
            return Err(self.error("Invalid value."));
        }
        let mut is_integer = true;
        if self.consume(b'.') {
            is_integer = false;
            if self.digits() == 0 {
                return Err(self.error("Miss fraction part in number."));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_integer = false;
            self.at += 1;
            if !self.consume(b'-') {
                self.consume(b'+');
            }
            if self.digits() == 0 {
                return Err(self.error("Miss exponent in number."));
            }
        }
        let text = &self.text[start..self.at];
        if is_integer {
            if let Ok(v) = text.parse() {
                return Ok(Json::Int(v));
            }
            if !negative && let Ok(v) = text.parse() {
                return Ok(Json::UInt(v));
            }
        }
        match text.parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(Json::Double(v)),
            _ => {
                Err(JsonError::Syntax { message: "Number too big to be stored in double.", position: start })
            }
        }
    }
}
