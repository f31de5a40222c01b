//! Optimizer hints: `/*+ … */` behind SELECT, INSERT, REPLACE, UPDATE or DELETE. Anywhere else that is a comment.
//!
//! MAX_EXECUTION_TIME and SET_VAR are kept. The others ask for a way to run the statement, which changes no result; they are
//! checked to be hints, as MySQL does, and left out. What is no hint is a warning, and ends its comment.

use avocet_types::expr::SqlMode;

use super::ast::Span;
use super::lexer::{Op, Raw, Scanner, unquoted};

/// What the hints of a statement say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// In milliseconds.
    pub max_execution_time: Option<u64>,
    /// Names in lower case.
    pub variables: Vec<(String, HintValue)>,
    /// Numbers and texts of the warnings that reading them gave.
    pub warnings: Vec<(u16, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HintValue {
    Number(u64),
    Decimal(f64),
    Text(String),
}

/// A comment of hints, where it stands.
#[derive(Clone, Copy, Debug)]
pub struct HintComment {
    /// Between the comment's marks.
    pub span: Span,
    /// Whether it is that of the first block of a SELECT that stands alone.
    pub may_limit_time: bool,
}

/// Hints that choose a plan.
const OF_PLANS: &[&str] = &[
    "BKA",
    "BNL",
    "DERIVED_CONDITION_PUSHDOWN",
    "GROUP_INDEX",
    "HASH_JOIN",
    "INDEX",
    "INDEX_MERGE",
    "JOIN_FIXED_ORDER",
    "JOIN_INDEX",
    "JOIN_ORDER",
    "JOIN_PREFIX",
    "JOIN_SUFFIX",
    "MERGE",
    "MRR",
    "NO_BKA",
    "NO_BNL",
    "NO_DERIVED_CONDITION_PUSHDOWN",
    "NO_GROUP_INDEX",
    "NO_HASH_JOIN",
    "NO_ICP",
    "NO_INDEX",
    "NO_INDEX_MERGE",
    "NO_JOIN_INDEX",
    "NO_MERGE",
    "NO_MRR",
    "NO_ORDER_INDEX",
    "NO_RANGE_OPTIMIZATION",
    "NO_SEMIJOIN",
    "NO_SKIP_SCAN",
    "ORDER_INDEX",
    "QB_NAME",
    "SEMIJOIN",
    "SKIP_SCAN",
    "SUBQUERY",
];

/// Reads the hints of a statement's comments; `None` if it has none.
pub fn read(source: &[u8], mode: SqlMode, comments: &[HintComment]) -> Option<Box<Hints>> {
    if comments.is_empty() {
        return None;
    }
    let mut hints = Hints::default();
    for comment in comments {
        let text = comment.span.bytes(source);
        let mut reader =
            Reader { source, start: comment.span.start, mode, scanner: Scanner::new(text, mode), next: None };
        if let Err(Stopped { at, message }) = reader.hints(&mut hints, comment.may_limit_time) {
            let rest = &source[at as usize..];
            let near = String::from_utf8_lossy(&rest[..rest.len().min(80)]).into_owned();
            let line = 1 + source[..at as usize].iter().filter(|byte| **byte == b'\n').count();
            hints.warnings.push((1064, format!("{message} near '{near}' at line {line}")));
        }
    }
    Some(Box::new(hints))
}

/// Where reading a comment ended, and why.
struct Stopped {
    at: u32,
    message: &'static str,
}

struct Reader<'a> {
    source: &'a [u8],
    /// Where the comment's text begins in the source.
    start: u32,
    mode: SqlMode,
    scanner: Scanner<'a>,
    next: Option<(Raw, Span)>,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> (Raw, Span) {
        let (scanner, start) = (&mut self.scanner, self.start);
        *self.next.get_or_insert_with(|| {
            let (raw, span) = scanner.token();
            (raw, Span { start: span.start + start, end: span.end + start })
        })
    }

    fn take(&mut self) -> (Raw, &'a [u8]) {
        let (raw, span) = self.peek();
        self.next = None;
        (raw, span.bytes(self.source))
    }

    fn stop<T>(&mut self, message: &'static str) -> Result<T, Stopped> {
        Err(Stopped { at: self.peek().1.start, message })
    }

    fn syntax<T>(&mut self) -> Result<T, Stopped> {
        self.stop("Optimizer hint syntax error")
    }

    fn expect(&mut self, op: Op) -> Result<(), Stopped> {
        if self.peek().0 == Raw::Op(op) {
            self.next = None;
            return Ok(());
        }
        self.syntax()
    }

    fn hints(&mut self, hints: &mut Hints, may_limit_time: bool) -> Result<(), Stopped> {
        if self.peek().0 == Raw::End {
            return self.syntax();
        }
        while self.peek().0 != Raw::End {
            self.hint(hints, may_limit_time)?;
        }
        Ok(())
    }

    fn hint(&mut self, hints: &mut Hints, may_limit_time: bool) -> Result<(), Stopped> {
        let (raw, span) = self.peek();
        let name = String::from_utf8_lossy(span.bytes(self.source)).to_ascii_uppercase();
        let is_known = matches!(&*name, "MAX_EXECUTION_TIME" | "SET_VAR" | "RESOURCE_GROUP")
            || OF_PLANS.contains(&&*name);
        if raw != Raw::Word || !is_known {
            return self.syntax();
        }
        self.next = None;
        self.expect(Op::LParen)?;
        match &*name {
            "MAX_EXECUTION_TIME" => self.max_execution_time(hints, may_limit_time),
            "SET_VAR" => self.set_var(hints),
            "RESOURCE_GROUP" => {
                let group = String::from_utf8_lossy(self.take().1).into_owned();
                hints.warnings.push((3651, format!("Resource Group '{group}' does not exist.")));
                self.expect(Op::RParen)
            }
            _ => self.arguments(),
        }
    }

    fn max_execution_time(&mut self, hints: &mut Hints, allowed: bool) -> Result<(), Stopped> {
        let (raw, span) = self.peek();
        if raw != Raw::Integer {
            return self.syntax();
        }
        let text = String::from_utf8_lossy(span.bytes(self.source));
        self.next = None;
        let Some(time) = text.parse::<u32>().ok() else {
            return self.stop("Unsupported MAX_EXECUTION_TIME");
        };
        self.expect(Op::RParen)?;
        if !allowed {
            let message =
                "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only";
            hints.warnings.push((3125, message.into()));
        } else if hints.max_execution_time.is_some() {
            hints.warnings.push((
                3126,
                format!("Hint MAX_EXECUTION_TIME({time}) is ignored as conflicting/duplicated"),
            ));
        } else {
            hints.max_execution_time = Some(time.into());
        }
        Ok(())
    }

    fn set_var(&mut self, hints: &mut Hints) -> Result<(), Stopped> {
        let (raw, span) = self.peek();
        if raw != Raw::Word {
            return self.syntax();
        }
        let name = String::from_utf8_lossy(span.bytes(self.source)).to_lowercase();
        self.next = None;
        self.expect(Op::Eq)?;
        let shown = String::from_utf8_lossy(self.peek().1.bytes(self.source)).into_owned();
        let value = self.value()?;
        self.expect(Op::RParen)?;
        if hints.variables.iter().any(|(other, _)| *other == name) {
            hints
                .warnings
                .push((3126, format!("Hint SET_VAR({name}={shown})  is ignored as conflicting/duplicated")));
        } else {
            hints.variables.push((name, value));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<HintValue, Stopped> {
        let (raw, span) = self.peek();
        let bytes = span.bytes(self.source);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let value = match raw {
            Raw::Integer => text.parse().ok().map(HintValue::Number),
            Raw::Decimal | Raw::Float => text.parse().ok().map(HintValue::Decimal),
            Raw::String => {
                Some(HintValue::Text(String::from_utf8_lossy(&unquoted(bytes, self.mode)).into_owned()))
            }
            Raw::Word => Some(sized(&text).map_or(HintValue::Text(text), HintValue::Number)),
            _ => None,
        };
        let Some(value) = value else { return self.syntax() };
        self.next = None;
        Ok(value)
    }

    /// Names of tables, indexes, blocks and strategies, up to the closing parenthesis.
    fn arguments(&mut self) -> Result<(), Stopped> {
        loop {
            match self.peek().0 {
                Raw::Op(Op::RParen) => {
                    self.next = None;
                    return Ok(());
                }
                Raw::Word | Raw::QuotedIdent | Raw::Op(Op::At | Op::Comma | Op::Dot) => self.next = None,
                _ => return self.syntax(),
            }
        }
    }
}

/// `16K`, `4M`, `1G`
fn sized(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.len().checked_sub(1)?);
    let shift = match unit {
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}
