//! The parser's cursor over the tokens, and what all of the grammar's parts share.
//!
//! Recursive descent along MySQL's own grammar (`sql_yacc.yy` is the reference for what binds how). Depth is limited:
//! nested input can not overflow the stack, here or in anything that walks the tree later.

use avocet_types::collation::Charset;
use avocet_types::expr::SqlMode;

use crate::parse::ast::{AssignedNames, Ident, ObjectName, Span};
use crate::parse::deprecated::Noted;
use crate::parse::error::{ParseError, ParseResult};
use crate::parse::hints::HintComment;
use crate::parse::keywords::is_reserved;
use crate::parse::lexer::{Op, Token, TokenKind, tokenize};
use crate::parse::statement::SelectInto;

/// How deep expressions and queries may nest.
pub(super) const MAX_DEPTH: u32 = 300;

/// How tall the tree of a chain of operators may grow, which leans to its left: `a + b + c …`. Chains are read in a loop, but
/// whoever walks their tree recurses; see [`Statement::height`](crate::parse::Statement::height).
const MAX_HEIGHT: u32 = 10_000;

/// How much of the source an error quotes, in bytes, as MySQL does.
const NEAR_LEN: usize = 80;

/// Runs one level of a recursion, on more stack if little is left.
pub fn grow_stack<T>(level: impl FnOnce() -> T) -> T {
    const RED_ZONE: usize = 128 << 10;
    const SEGMENT: usize = 1 << 20;
    stacker::maybe_grow(RED_ZONE, SEGMENT, level)
}

/// Runs what walks trees of a statement of such a [height](crate::parse::Statement::height), on a stack that has room for them.
pub fn on_stack_for<T>(height: u32, walk: impl FnOnce() -> T) -> T {
    // For one level of the walk that needs most. Of what is not used nothing but addresses is taken.
    const LEVEL: usize = 16 << 10;
    match is_tall(height) {
        false => walk(),
        true => {
            let room = height as usize * LEVEL;
            stacker::maybe_grow(room, room, walk)
        }
    }
}

/// Whether trees of such a height need a stack of their own.
pub fn is_tall(height: u32) -> bool {
    height > MAX_DEPTH
}

pub struct Parser<'a> {
    pub(super) source: &'a [u8],
    pub(super) mode: SqlMode,
    tokens: Vec<Token>,
    /// The comments of optimizer hints.
    hints: Vec<Span>,
    at: usize,
    /// Where the text of the current statement begins: behind the last one's semicolon.
    statement_start: usize,
    depth: u32,
    /// The height of the tallest tree that was read since the innermost [`Parser::apart`] began.
    tall: u32,
    /// The most that it was in the current statement.
    pub(super) height: u32,
    /// Queries around the cursor.
    pub(super) queries: u32,
    /// How many `?` the current statement has had so far.
    pub(super) params: u32,
    /// Those of them that are a LIMIT or an OFFSET. What is parsed twice may be in it twice.
    pub(super) limit_params: Vec<u32>,
    /// The first and the last place of SQL_CALC_FOUND_ROWS in the current statement.
    pub(super) calc_found_rows: Option<(usize, usize)>,
    /// The current statement's INTO.
    pub(super) into: Option<SelectInto>,
    /// The variables that the current statement's expressions have assigned to so far, each as often as they do.
    pub(super) assigns: Vec<String>,
    /// Which character set the text was converted from, if it was.
    pub(super) client: Option<Charset>,
    /// The deprecated syntax of the current statement so far.
    pub(super) deprecations: Noted,
    /// Behind ON DUPLICATE KEY UPDATE.
    pub(super) in_upsert: bool,
    /// The current statement reads `@@warning_count` or `@@error_count`.
    pub(super) reads_counts: bool,
    /// The statement is refused because it names partitions of this table.
    pub(super) refused_partitions_of: Option<ObjectName>,
    /// What those who read variables share: all of these, when the statement was read.
    pub(super) assigned: AssignedNames,
}

impl<'a> Parser<'a> {
    pub fn new(source: &'a [u8], mode: SqlMode) -> Self {
        let (tokens, hints) = tokenize(source, mode);
        Self {
            source,
            mode,
            tokens,
            hints,
            at: 0,
            statement_start: 0,
            depth: 0,
            tall: 0,
            height: 0,
            queries: 0,
            params: 0,
            limit_params: Vec::new(),
            calc_found_rows: None,
            into: None,
            assigns: Vec::new(),
            deprecations: Noted::default(),
            in_upsert: false,
            reads_counts: false,
            refused_partitions_of: None,
            assigned: AssignedNames::default(),
            client: None,
        }
    }

    /// The same for a text that the client sent in another character set than UTF-8, from which it was converted: bytes behind
    /// introducers are those that it sent.
    pub fn of_client(self, client: Option<Charset>) -> Self {
        Self { client, ..self }
    }

    /// The optimizer hints of a statement that was read.
    pub(super) fn hint_comments(&self, statement: Span) -> Vec<HintComment> {
        let inside = |hint: &&Span| (statement.start..statement.end).contains(&hint.start);
        let hints = self.hints.iter().filter(inside);
        hints
            .map(|span| HintComment { span: *span, may_limit_time: self.is_first_block(statement, *span) })
            .collect()
    }

    /// Whether a comment is that of the first block of a SELECT that stands alone.
    fn is_first_block(&self, statement: Span, hint: Span) -> bool {
        let before = |token: &&Token| (statement.start..hint.start).contains(&token.span.start);
        let tokens: Vec<&Token> = self.tokens.iter().filter(before).collect();
        let is = |token: &Token, word: &str| {
            token.kind == TokenKind::Word
                && token.span.bytes(self.source).eq_ignore_ascii_case(word.as_bytes())
        };
        // `((SELECT …` is a SELECT, too.
        let lead = tokens.iter().take_while(|token| token.kind == TokenKind::Op(Op::LParen)).count();
        let stands_alone = tokens.get(lead).is_some_and(|first| {
            ["SELECT", "WITH", "EXPLAIN", "DESCRIBE", "DESC"].iter().any(|word| is(first, word))
        });
        let (mut open, mut blocks) = (0, 0);
        for token in tokens {
            match token.kind {
                TokenKind::Op(Op::LParen) => open += 1,
                TokenKind::Op(Op::RParen) => open -= 1,
                _ => blocks += u32::from(open == lead && is(token, "SELECT")),
            }
        }
        stands_alone && open == lead && blocks == 1
    }

    pub(super) fn peek(&self) -> &TokenKind {
        self.peek_ahead(0)
    }

    pub(super) fn peek_ahead(&self, ahead: usize) -> &TokenKind {
        &self.token(ahead).kind
    }

    /// The token `ahead` of the cursor; the end token for ever after the end.
    pub(super) fn token(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)]
    }

    pub(super) fn span(&self) -> Span {
        self.token(0).span
    }

    /// The span of the token before the cursor.
    pub(super) fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// From `start` to the token before the cursor.
    pub(super) fn span_from(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    pub(super) fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Back to an earlier [`Parser::position`].
    pub(super) fn rewind(&mut self, position: usize) {
        self.at = position;
        self.deprecations.rewind(position);
    }

    pub(super) fn at_end(&self) -> bool {
        *self.peek() == TokenKind::End
    }

    /// The statement's end: nothing left, or a semicolon.
    pub(super) fn at_statement_end(&self) -> bool {
        matches!(self.peek(), TokenKind::End | TokenKind::Op(Op::Semicolon))
    }

    pub(super) fn is_op(&self, op: Op) -> bool {
        *self.peek() == TokenKind::Op(op)
    }

    pub(super) fn eat_op(&mut self, op: Op) -> bool {
        let found = self.is_op(op);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect_op(&mut self, op: Op) -> ParseResult<()> {
        if self.eat_op(op) { Ok(()) } else { Err(self.error()) }
    }

    fn token_text(&self, ahead: usize) -> &'a [u8] {
        let span = self.token(ahead).span;
        &self.source[span.start as usize..span.end as usize]
    }

    /// Whether the token `ahead` is this keyword (given in upper case), unquoted.
    pub(super) fn is_word_ahead(&self, ahead: usize, keyword: &str) -> bool {
        *self.peek_ahead(ahead) == TokenKind::Word
            && self.token_text(ahead).eq_ignore_ascii_case(keyword.as_bytes())
    }

    pub(super) fn is_word(&self, keyword: &str) -> bool {
        self.is_word_ahead(0, keyword)
    }

    pub(super) fn is_any_word(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|k| self.is_word(k))
    }

    /// Whether these keywords follow each other here.
    pub(super) fn is_words(&self, keywords: &[&str]) -> bool {
        keywords.iter().enumerate().all(|(i, k)| self.is_word_ahead(i, k))
    }

    pub(super) fn eat(&mut self, keyword: &str) -> bool {
        let found = self.is_word(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// Takes all of these keywords, or none.
    pub(super) fn eat_all(&mut self, keywords: &[&str]) -> bool {
        let found = self.is_words(keywords);
        if found {
            self.at += keywords.len();
        }
        found
    }

    /// Takes the first of these keywords that is there.
    pub(super) fn eat_any(&mut self, keywords: &[&'static str]) -> Option<&'static str> {
        let found = keywords.iter().find(|k| self.is_word(k))?;
        self.advance();
        Some(found)
    }

    pub(super) fn expect(&mut self, keyword: &str) -> ParseResult<()> {
        if self.eat(keyword) { Ok(()) } else { Err(self.error()) }
    }

    pub(super) fn expect_all(&mut self, keywords: &[&str]) -> ParseResult<()> {
        keywords.iter().try_for_each(|k| self.expect(k))
    }

    /// The current word in upper case, if it is an unquoted word.
    pub(super) fn word_upper(&self) -> Option<String> {
        match self.peek() {
            TokenKind::Word => Some(String::from_utf8_lossy(self.token_text(0)).to_ascii_uppercase()),
            _ => None,
        }
    }

    /// The current token's text in the source.
    pub(super) fn source_text(&self) -> String {
        String::from_utf8_lossy(self.token_text(0)).into_owned()
    }

    pub(super) fn text(&self, bytes: &[u8]) -> ParseResult<String> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let bad = &bytes[error.valid_up_to()..];
                let shown: String = bad.iter().take(6).map(|b| format!("\\x{b:02X}")).collect();
                Err(ParseError::InvalidText { charset: "utf8mb4", shown })
            }
        }
    }

    /// Whether an identifier is here: a quoted name or a word that is not reserved.
    pub(super) fn is_ident(&self) -> bool {
        match self.peek() {
            TokenKind::QuotedIdent(_) => true,
            TokenKind::Word => !is_reserved(self.token_text(0)),
            _ => false,
        }
    }

    pub(super) fn ident(&mut self) -> ParseResult<Ident> {
        if self.is_ident() { self.any_ident() } else { Err(self.error()) }
    }

    /// An identifier where also reserved words are names: after a point.
    pub(super) fn any_ident(&mut self) -> ParseResult<Ident> {
        let span = self.span();
        let name = match self.peek() {
            TokenKind::QuotedIdent(name) => self.text(name)?,
            TokenKind::Word => self.text(self.token_text(0))?,
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(Ident { name, span })
    }

    /// An alias: an identifier or, as MySQL has it, a string.
    pub(super) fn alias(&mut self) -> ParseResult<Ident> {
        let span = self.span();
        match self.peek() {
            TokenKind::String(_) => Ok(Ident { name: self.string()?, span }),
            _ => self.ident(),
        }
    }

    /// `[AS] alias`, if there is one.
    pub(super) fn optional_alias(&mut self) -> ParseResult<Option<Ident>> {
        if self.eat("AS") || self.is_ident() || matches!(self.peek(), TokenKind::String(_)) {
            self.alias().map(Some)
        } else {
            Ok(None)
        }
    }

    pub(super) fn object_name(&mut self) -> ParseResult<ObjectName> {
        // `.t` means `t`.
        self.eat_op(Op::Dot);
        let first = self.ident()?;
        if !self.eat_op(Op::Dot) {
            return Ok(ObjectName { database: None, name: first });
        }
        Ok(ObjectName { database: Some(first), name: self.any_ident()? })
    }

    pub(super) fn ident_list(&mut self) -> ParseResult<Vec<Ident>> {
        self.comma_separated(Self::ident)
    }

    /// `(a, b, …)`
    pub(super) fn parenthesized_idents(&mut self) -> ParseResult<Vec<Ident>> {
        self.expect_op(Op::LParen)?;
        let list = self.ident_list()?;
        self.expect_op(Op::RParen)?;
        Ok(list)
    }

    /// A string literal; adjacent ones are one.
    pub(super) fn string(&mut self) -> ParseResult<String> {
        let bytes = self.string_bytes()?;
        self.text(&bytes)
    }

    pub(super) fn string_bytes(&mut self) -> ParseResult<Vec<u8>> {
        let mut bytes = match self.peek() {
            TokenKind::String(bytes) => bytes.clone(),
            _ => return Err(self.error()),
        };
        self.advance();
        while let TokenKind::String(more) = self.peek() {
            bytes.extend_from_slice(more);
            self.advance();
        }
        Ok(bytes)
    }

    /// A name given as identifier or string: charsets, collations, users, engines.
    pub(super) fn name(&mut self) -> ParseResult<String> {
        match self.peek() {
            TokenKind::String(_) => self.string(),
            _ => Ok(self.any_ident()?.name),
        }
    }

    pub(super) fn unsigned(&mut self) -> ParseResult<u64> {
        match *self.peek() {
            TokenKind::Integer(value) => {
                self.advance();
                Ok(value)
            }
            _ => Err(self.error()),
        }
    }

    pub(super) fn comma_separated<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_op(Op::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Runs `parse` one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        self.deeper(1)?;
        let around = std::mem::take(&mut self.tall);
        let result = grow_stack(|| parse(self));
        self.tall = around.max(self.tall + 1);
        self.depth -= 1;
        result
    }

    /// Runs `parse` for a tree beside those that were read before.
    pub(super) fn apart<T>(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        let around = std::mem::take(&mut self.tall);
        let result = parse(self);
        self.tall = around.max(self.tall);
        result
    }

    /// What was read becomes the left side of a new tree.
    pub(super) fn taller(&mut self) -> ParseResult<()> {
        self.tall += 1;
        self.height = self.height.max(self.tall);
        if self.tall > MAX_HEIGHT { Err(self.too_deep()) } else { Ok(()) }
    }

    /// Counts `levels` more levels; the caller gives them back by [`Parser::shallower`].
    pub(super) fn deeper(&mut self, levels: u32) -> ParseResult<()> {
        if self.depth + levels > MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += levels;
        Ok(())
    }

    pub(super) fn too_deep(&self) -> ParseError {
        let (near, line) = self.place();
        ParseError::TooDeep { near, line }
    }

    pub(super) fn shallower(&mut self, levels: u32) {
        self.depth -= levels;
    }

    /// The first byte of the current statement that is no blank.
    pub(super) fn statement_start(&self) -> u32 {
        let text = &self.source[self.statement_start..];
        (self.statement_start + text.len() - text.trim_ascii_start().len()) as u32
    }

    pub(super) fn begin_statement(&mut self) {
        self.statement_start = match self.at {
            0 => 0,
            at => self.tokens[at - 1].span.end as usize,
        };
    }

    /// Between statements: one that was refused half-way has not given its levels back.
    pub(super) fn restart_depth(&mut self) {
        self.depth = 0;
        self.tall = 0;
        self.queries = 0;
    }

    /// A syntax error at the cursor.
    pub(super) fn error(&self) -> ParseError {
        let (near, line) = self.place();
        ParseError::Syntax { near, line }
    }

    fn place(&self) -> (String, usize) {
        let start = self.span().start as usize;
        let rest = &self.source[start..];
        let near = String::from_utf8_lossy(&rest[..rest.len().min(NEAR_LEN)]);
        // MySQL's lines are those of the statement.
        let begin = (self.statement_start() as usize).min(start);
        let line = 1 + self.source[begin..start].iter().filter(|b| **b == b'\n').count();
        (near.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned(), line)
    }
}
