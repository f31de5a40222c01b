//! Patterns as ICU reads them (ICU User Guide, "Regular Expressions"), for engines that know less of its escapes, or other ones.

use super::engine::Flags;
use super::error::RegexpError;

/// A pattern for the engines.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    /// It looks around, back, or refuses to go back: only an engine that backtracks has that.
    pub backtracks: bool,
}

/// Line ends, as ICU's `\v` and `\R` have them.
const LINE_ENDS: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";
const BLANKS: &str = r"\t\p{Zs}";

/// Bytes of a pattern: of a longer one no program fits its bound, and trees of much longer ones would take gigabytes.
const LONGEST: usize = 512 << 10;

/// Classes that POSIX has, by the properties of their characters (Unicode Technical Standard 18, Annex C).
const POSIX_CLASSES: [(&str, &str); 13] = [
    ("alpha", r"\p{Alphabetic}"),
    ("lower", r"\p{Lowercase}"),
    ("upper", r"\p{Uppercase}"),
    ("punct", r"\p{P}"),
    ("digit", r"\p{Nd}"),
    ("xdigit", r"\p{Nd}\p{Hex_Digit}"),
    ("alnum", r"\p{Alphabetic}\p{Nd}"),
    ("space", r"\p{White_Space}"),
    ("blank", BLANKS),
    ("cntrl", r"\p{Cc}"),
    ("graph", r"[^\p{White_Space}\p{Cc}\p{Cn}]"),
    ("print", r"[^\p{Cc}\p{Zl}\p{Zp}\p{Cn}]"),
    ("word", r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"),
];

/// What a quantifier would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Atom,
    Quantifier,
    /// That looks around, and is not repeated.
    Assertion,
}

#[derive(Clone, Copy)]
struct Group {
    looks_around: bool,
    is_behind: bool,
    /// What a dot stood for before it.
    dot: Dot,
}

/// What a dot stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dot {
    /// Every character.
    All,
    /// What does not end a line in the sense of Unicode.
    NoLineEnd,
    /// What is no line feed.
    NoLineFeed,
}

impl Dot {
    fn new(all: bool, unix_lines: bool) -> Self {
        match (all, unix_lines) {
            (true, _) => Self::All,
            (false, true) => Self::NoLineFeed,
            (false, false) => Self::NoLineEnd,
        }
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    out: String,
    backtracks: bool,
    /// Of a pattern's flags, and now.
    unix_lines: bool,
    dot: Dot,
    open: Vec<Group>,
    last: Last,
    groups: usize,
    names: Vec<String>,
    /// Names that are referred to.
    wanted: Vec<String>,
}

impl Pattern {
    pub fn read(source: &str, flags: Flags) -> Result<Self, RegexpError> {
        if source.len() > LONGEST {
            return Err(RegexpError::TooBig);
        }
        let mut reader = Reader {
            chars: source.chars().collect(),
            at: 0,
            out: String::with_capacity(source.len()),
            backtracks: false,
            unix_lines: flags.unix_lines,
            dot: Dot::new(flags.dot_all, flags.unix_lines),
            open: Vec::new(),
            last: Last::Nothing,
            groups: count_groups(source),
            names: Vec::new(),
            wanted: Vec::new(),
        };
        while let Some(next) = reader.take() {
            reader.read(next)?;
        }
        if !reader.open.is_empty() {
            return Err(RegexpError::Parenthesis);
        }
        if reader.wanted.iter().any(|name| !reader.names.contains(name)) {
            return Err(RegexpError::GroupName);
        }
        Ok(Self { text: reader.out, backtracks: reader.backtracks })
    }
}

/// Groups that capture. Comments of `(?x)` count as what they are not.
fn count_groups(source: &str) -> usize {
    let (mut count, mut classes, mut at) = (0, 0_usize, 0);
    let bytes = source.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => classes += 1,
            b']' => classes = classes.saturating_sub(1),
            b'(' if classes == 0 => {
                let is_named =
                    matches!(bytes.get(at + 1..at + 4), Some([b'?', b'<', c]) if !b"=!".contains(c));
                count += usize::from(is_named || bytes.get(at + 1) != Some(&b'?'));
            }
            _ => {}
        }
        at += 1;
    }
    count
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    /// What stands in the braces that begin here, with these.
    fn in_braces(&mut self) -> Option<String> {
        let rest = self.chars.get(self.at..).filter(|rest| rest.first() == Some(&'{'))?;
        let len = rest.iter().position(|c| *c == '}')? + 1;
        self.at += len;
        Some(self.chars[self.at - len..self.at].iter().collect())
    }

    fn eat(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    /// At the character that was taken last.
    fn syntax(&self) -> RegexpError {
        let before: String = self.chars[..self.at].iter().collect();
        let line = before.matches('\n').count() + 1;
        let character = before.chars().rev().take_while(|c| *c != '\n').count();
        RegexpError::Syntax { line, character }
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = Last::Atom;
    }

    fn read(&mut self, next: char) -> Result<(), RegexpError> {
        match next {
            '\\' => self.escape(false),
            '[' => self.class(),
            '(' => self.group(),
            ')' => {
                let group = self.open.pop().ok_or(RegexpError::Parenthesis)?;
                self.dot = group.dot;
                self.out.push(')');
                self.last = if group.looks_around { Last::Assertion } else { Last::Atom };
                Ok(())
            }
            '|' => {
                self.out.push('|');
                self.last = Last::Nothing;
                Ok(())
            }
            '*' | '+' | '?' => self.quantifier(next.to_string(), next != '?'),
            '{' if self.last != Last::Atom => Err(self.syntax()),
            '}' => Err(self.syntax()),
            '{' => {
                let (text, is_endless) = self.interval().ok_or(RegexpError::Interval)?;
                self.quantifier(text, is_endless)
            }
            '.' if self.dot == Dot::NoLineEnd => {
                self.atom(&format!("[^{LINE_ENDS}]"));
                Ok(())
            }
            other => {
                self.out.push(other);
                self.last = Last::Atom;
                Ok(())
            }
        }
    }

    /// `{n}`, `{n,}`, `{n,m}` behind its brace, and whether it has no end; nothing is taken if it is none.
    fn interval(&mut self) -> Option<(String, bool)> {
        let len = self.chars[self.at..].iter().position(|c| *c == '}')?;
        let inner: String = self.chars[self.at..self.at + len].iter().collect();
        let (from, to) = inner.split_once(',').unwrap_or((&inner, &inner));
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        if from.is_empty() || !is_number(from) || !is_number(to) {
            return None;
        }
        self.at += len + 1;
        Some((format!("{{{inner}}}"), to.is_empty()))
    }

    fn quantifier(&mut self, text: String, is_endless: bool) -> Result<(), RegexpError> {
        if self.last != Last::Atom {
            return Err(self.syntax());
        }
        if is_endless && self.open.iter().any(|group| group.is_behind) {
            return Err(RegexpError::LookBehind);
        }
        self.out.push_str(&text);
        if self.eat('?') {
            self.out.push('?');
        } else if self.eat('+') {
            self.out.push('+');
            self.backtracks = true;
        }
        self.last = Last::Quantifier;
        Ok(())
    }

    fn group(&mut self) -> Result<(), RegexpError> {
        let mut group = Group { looks_around: false, is_behind: false, dot: self.dot };
        self.out.push('(');
        if self.eat('?') {
            let kind = self.take().ok_or_else(|| self.syntax())?;
            match kind {
                '#' => {
                    self.out.pop();
                    while self.take().ok_or(RegexpError::Parenthesis)? != ')' {}
                    return Ok(());
                }
                '=' | '!' => {
                    group.looks_around = true;
                    self.out.extend(['?', kind]);
                }
                '<' if matches!(self.peek(), Some('=' | '!')) => {
                    (group.looks_around, group.is_behind) = (true, true);
                    let kind = self.take().unwrap_or('=');
                    self.out.extend(['?', '<', kind]);
                }
                '<' => {
                    let name = self.name()?;
                    if self.names.contains(&name) {
                        return Err(RegexpError::GroupName);
                    }
                    self.out.push_str(&format!("?<{name}>"));
                    self.names.push(name);
                }
                '>' => {
                    self.backtracks = true;
                    self.out.push_str("?>");
                }
                '(' => return Err(RegexpError::Unimplemented),
                ':' => self.out.push_str("?:"),
                'i' | 'm' | 's' | 'x' | 'w' | 'u' | '-' => {
                    self.at -= 1;
                    return self.flags(group);
                }
                _ => return Err(self.syntax()),
            }
        }
        self.backtracks |= group.looks_around;
        self.open.push(group);
        self.last = Last::Nothing;
        Ok(())
    }

    /// `ims-x)` and `ims-x:` behind `(?`. What the engines do always is left out.
    fn flags(&mut self, group: Group) -> Result<(), RegexpError> {
        let mut flags = String::new();
        let mut is_off = false;
        self.last = Last::Nothing;
        while let Some(next) = self.take() {
            match next {
                's' => self.dot = Dot::new(!is_off, self.unix_lines),
                '-' => is_off = true,
                _ => {}
            }
            match next {
                'i' | 'm' | 's' | 'x' | '-' => flags.push(next),
                'w' | 'u' => {}
                ':' => {
                    self.out.push_str(&format!("?{}:", flags.trim_end_matches('-')));
                    self.open.push(group);
                    return Ok(());
                }
                ')' if flags.trim_end_matches('-').is_empty() => {
                    self.out.pop();
                    return Ok(());
                }
                ')' => {
                    self.out.push_str(&format!("?{})", flags.trim_end_matches('-')));
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(RegexpError::Flag)
    }

    /// A name behind its `<`.
    fn name(&mut self) -> Result<String, RegexpError> {
        let mut name = String::new();
        loop {
            match self.take() {
                Some('>') if !name.is_empty() => return Ok(name),
                Some(c) if c.is_ascii_alphabetic() || (c.is_ascii_digit() && !name.is_empty()) => {
                    name.push(c)
                }
                Some(_) if name.is_empty() => return Err(self.syntax()),
                _ => return Err(RegexpError::GroupName),
            }
        }
    }

    /// A class behind its bracket; others may stand in it.
    fn class(&mut self) -> Result<(), RegexpError> {
        if let Some(named) = self.named_class() {
            self.atom(&named);
            return Ok(());
        }
        self.out.push('[');
        let mut depth = 1;
        let mut is_first = true;
        while depth > 0 {
            let next = self.take().ok_or(RegexpError::Bracket)?;
            match next {
                '\\' => self.escape(true)?,
                '[' if let Some(named) = self.named_class() => self.out.push_str(&named),
                '[' => {
                    depth += 1;
                    self.out.push('[');
                }
                ']' if !is_first => {
                    depth -= 1;
                    self.out.push(']');
                }
                other => self.out.push(other),
            }
            is_first = next == '[' && !self.out.ends_with(']') || is_first && next == '^';
        }
        self.last = Last::Atom;
        Ok(())
    }

    /// `:name:]` or `:^name:]` behind its bracket, as the Unicode properties that ICU has for it; nothing is taken if it is none.
    fn named_class(&mut self) -> Option<String> {
        let rest = self.chars.get(self.at..).filter(|rest| rest.first() == Some(&':'))?;
        let len = rest.iter().position(|c| *c == ']')?;
        let inner: String = rest[1..len].iter().collect();
        let inner = inner.strip_suffix(':')?;
        let (is_negated, name) = inner.strip_prefix('^').map_or((false, inner), |name| (true, name));
        if !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ' ' | '-' | '=')) {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let known = POSIX_CLASSES.iter().find(|(known, _)| *known == lower);
        let class = known.map_or_else(|| format!(r"\p{{{name}}}"), |(_, class)| (*class).to_owned());
        self.at += len + 1;
        Some(format!("[{}{class}]", if is_negated { "^" } else { "" }))
    }

    /// What a backslash stands before.
    fn escape(&mut self, in_class: bool) -> Result<(), RegexpError> {
        let next = self.take().ok_or(RegexpError::Escape)?;
        let known = match next {
            'h' if in_class => BLANKS.to_owned(),
            'v' if in_class => LINE_ENDS.to_owned(),
            'h' => format!("[{BLANKS}]"),
            'H' if !in_class => format!("[^{BLANKS}]"),
            'v' => format!("[{LINE_ENDS}]"),
            'V' if !in_class => format!("[^{LINE_ENDS}]"),
            'R' if !in_class => format!(r"(?:\r\n|[{LINE_ENDS}])"),
            'e' => r"\x1B".to_owned(),
            'Q' => return self.quoted(in_class),
            'Z' if !in_class => {
                self.backtracks = true;
                format!(r"(?=(?:\r\n|[{LINE_ENDS}])?\z)")
            }
            '1'..='9' if !in_class => return self.reference(next),
            'k' if !in_class => return self.named_reference(),
            'u' | 'U' => match self.number(if next == 'u' { 4 } else { 8 }) {
                Some(digits) => format!(r"\x{{{digits}}}"),
                None => return Err(RegexpError::Escape),
            },
            'p' | 'P' => {
                let property = self.in_braces().ok_or(RegexpError::Argument)?;
                format!("\\{next}{property}")
            }
            'x' | 'N' => format!("\\{next}{}", self.in_braces().unwrap_or_default()),
            'a' | 'b' | 'B' | 'A' | 'd' | 'D' | 'f' | 'n' | 'r' | 's' | 'S' | 't' | 'w' | 'W' | 'z' | 'X'
            | 'G' | '0' => format!("\\{next}"),
            // With `(?x)`, a blank is none otherwise.
            blank if blank.is_whitespace() => format!(r"\x{{{:x}}}", u32::from(blank)),
            // A letter without a meaning is itself.
            other => regex_syntax::escape(other.encode_utf8(&mut [0; 4])),
        };
        if in_class {
            self.out.push_str(&known);
        } else {
            self.atom(&known);
        }
        if !in_class && matches!(next, 'b' | 'B' | 'A' | 'z' | 'Z' | 'G') {
            self.last = Last::Assertion;
        }
        Ok(())
    }

    /// So many hexadecimal digits.
    fn number(&mut self, len: usize) -> Option<String> {
        let digits: String = self.chars.get(self.at..self.at + len)?.iter().collect();
        if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        self.at += len;
        Some(digits)
    }

    /// All that stands before `\E` is itself.
    fn quoted(&mut self, in_class: bool) -> Result<(), RegexpError> {
        while let Some(next) = self.take() {
            if next == '\\' && self.eat('E') {
                return Ok(());
            }
            let mut buffer = [0; 4];
            let text = regex_syntax::escape(next.encode_utf8(&mut buffer));
            if in_class {
                self.out.push_str(&text);
            } else {
                self.atom(&text);
            }
        }
        Ok(())
    }

    /// `\n`: of the digits as many count as make the number of a group.
    fn reference(&mut self, first: char) -> Result<(), RegexpError> {
        let mut group = first.to_digit(10).unwrap_or(0) as usize;
        if group > self.groups {
            return Err(RegexpError::BackReference);
        }
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let longer = group * 10 + digit as usize;
            if longer > self.groups {
                break;
            }
            group = longer;
            self.at += 1;
        }
        self.refer(&format!(r"(?:\{group})"))
    }

    fn named_reference(&mut self) -> Result<(), RegexpError> {
        if !self.eat('<') {
            return Err(RegexpError::GroupName);
        }
        let name = self.name()?;
        self.refer(&format!(r"\k<{name}>"))?;
        self.wanted.push(name);
        Ok(())
    }

    fn refer(&mut self, text: &str) -> Result<(), RegexpError> {
        if self.open.iter().any(|group| group.is_behind) {
            return Err(RegexpError::LookBehind);
        }
        self.backtracks = true;
        self.atom(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str) -> (String, bool) {
        let read = Pattern::read(pattern, Flags::default()).expect("it is a pattern");
        (read.text, read.backtracks)
    }

    #[test]
    fn what_both_engines_know_stays() {
        for pattern in [r"a(b|c)*d{2,3}?", r"[\-x]+\.\d", r"(?i)x(?<n>y)(?:z)", "^$"] {
            assert_eq!(read(pattern), (pattern.to_owned(), false));
        }
    }

    #[test]
    fn what_looks_around_backtracks() {
        for pattern in ["a(?=b)", "(?<!a)b", "a*+", "(?>a+)b", r"(?<x>a)\k<x>"] {
            assert_eq!(read(pattern), (pattern.to_owned(), true));
        }
        assert_eq!(read(r"(a)\10"), (r"(a)(?:\1)0".to_owned(), true));
    }

    #[test]
    fn icus_escapes_are_rewritten() {
        assert_eq!(read(r"\Qa.b\E"), (r"a\.b".to_owned(), false));
        assert_eq!(read(r"\h"), (r"[\t\p{Zs}]".to_owned(), false));
        assert_eq!(read("a(?#b)c"), ("ac".to_owned(), false));
        assert_eq!(read("[x[:^digit:]]"), (r"[x[^\p{Nd}]]".to_owned(), false));
    }

    #[test]
    fn dots_stop_at_line_ends() {
        let line = format!("[^{LINE_ENDS}]");
        let with = |pattern: &str, flags: Flags| Pattern::read(pattern, flags).expect("it is a pattern").text;
        let all = Flags { dot_all: true, ..Flags::default() };
        assert_eq!(with(r".[.]\.", Flags::default()), format!(r"{line}[.]\."));
        assert_eq!(with(".", Flags { unix_lines: true, ..Flags::default() }), ".");
        assert_eq!(
            with("a(?s:.)(.(?s).)(?-s:.).", Flags::default()),
            format!("a(?s:.)({line}(?s).)(?-s:{line}){line}")
        );
        assert_eq!(with(".(?-s:.)(?-s).", all), format!(".(?-s:{line})(?-s){line}"));
    }

    #[test]
    fn errors_are_mysqls() {
        let error = |pattern: &str| Pattern::read(pattern, Flags::default()).expect_err("it is none").code();
        assert_eq!(error(&"a".repeat(LONGEST + 1)), 3700);
        assert_eq!(error("(?=a"), 3691);
        assert_eq!(error("a)"), 3691);
        assert_eq!(error("(?=a)*"), 3688);
        assert_eq!(error("a**"), 3688);
        assert_eq!(error(r"\2(a)"), 3694);
        assert_eq!(error(r"\k<y>"), 3887);
        assert_eq!(error("(?<=a+)b"), 3695);
        assert_eq!(error("(?(1)a|b)"), 3690);
    }
}
