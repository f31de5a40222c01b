//! XPath as MySQL has it (MySQL Reference Manual, 14.11 "XML Functions"): from text to a tree.
//!
//! ```text
//!  or ▸ and ▸ = != ▸ < <= > >= ▸ + - ▸ * div mod ▸ unary - ▸ | ▸ path
//! ```
//! Axes that MySQL does not walk (following, preceding, their siblings, namespace) are children, and tests of kinds of nodes
//! (`text()`) test nothing, as there. Of blanks it knows the space alone.

mod lexer;

use lexer::{Lexer, Token};

use crate::expr::{ArithOp, CompareOp};

/// What is wrong with a text that is no XPath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum XpathProblem {
    /// What stands where nothing was understood.
    Syntax(String),
    Variable(String),
    TwoNodesets(String),
    /// It has more operators than there is room for on a stack.
    TooDeep,
}

/// As much of the text as MySQL's messages show.
const SHOWN: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Parent,
    Itself,
}

impl Axis {
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "ancestor" => Self::Ancestor,
            "ancestor-or-self" => Self::AncestorOrSelf,
            "attribute" => Self::Attribute,
            "descendant" => Self::Descendant,
            "descendant-or-self" => Self::DescendantOrSelf,
            "parent" => Self::Parent,
            "self" => Self::Itself,
            "child" | "following" | "following-sibling" | "namespace" | "preceding" | "preceding-sibling" => {
                Self::Child
            }
            _ => return None,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub axis: Axis,
    /// `None` for any.
    pub name: Option<String>,
    pub predicates: Vec<XpathExpr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XpathFunction {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Last,
    Not,
    Number,
    Position,
    Round,
    StringLength,
    Substring,
    Sum,
    True,
}

impl XpathFunction {
    /// With how many arguments it takes at least and at most.
    fn by_name(name: &str) -> Option<(Self, usize, usize)> {
        Some(match name {
            "boolean" => (Self::Boolean, 1, 1),
            "ceiling" => (Self::Ceiling, 1, 1),
            "concat" => (Self::Concat, 2, 255),
            "contains" => (Self::Contains, 2, 2),
            "count" => (Self::Count, 1, 1),
            "false" => (Self::False, 0, 0),
            "floor" => (Self::Floor, 1, 1),
            "last" => (Self::Last, 0, 0),
            "not" => (Self::Not, 1, 1),
            "number" => (Self::Number, 0, 1),
            "position" => (Self::Position, 0, 0),
            "round" => (Self::Round, 1, 1),
            "string-length" => (Self::StringLength, 0, 1),
            "substring" => (Self::Substring, 2, 3),
            "sum" => (Self::Sum, 1, 1),
            "true" => (Self::True, 0, 0),
            _ => return None,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) enum PathStart {
    Root,
    Context,
    Nodes(Box<XpathExpr>),
}

#[derive(Clone, Debug)]
pub(crate) enum XpathExpr {
    Or(Box<[XpathExpr; 2]>),
    And(Box<[XpathExpr; 2]>),
    Compare(CompareOp, Box<[XpathExpr; 2]>),
    Arith(ArithOp, Box<[XpathExpr; 2]>),
    Negate(Box<XpathExpr>),
    Union(Box<[XpathExpr; 2]>),
    Path {
        start: PathStart,
        steps: Vec<Step>,
    },
    /// Digits, with a point or without.
    Number(String),
    Text(String),
    /// `$@name`
    Variable(String),
    Call(XpathFunction, Vec<XpathExpr>),
}

impl XpathExpr {
    pub fn is_nodeset(&self) -> bool {
        matches!(self, Self::Path { .. } | Self::Union(_))
    }

    /// Whether it is true or false, rather than a number.
    pub fn is_truth(&self) -> bool {
        use XpathFunction as F;
        match self {
            Self::Or(_) | Self::And(_) | Self::Compare(..) => true,
            Self::Call(function, _) => {
                matches!(function, F::Boolean | F::Contains | F::False | F::Not | F::True)
            }
            _ => false,
        }
    }
}

/// An XPath that was read.
#[derive(Clone, Debug)]
pub struct Xpath(pub(crate) XpathExpr);

impl Xpath {
    pub(crate) fn parse(text: &str) -> Result<Self, XpathProblem> {
        let mut parser = Parser { lexer: Lexer::new(text), predicates: 0, depth: 0, operators: 0 };
        let expr = parser.or()?;
        match parser.lexer.token {
            Token::End => Ok(Self(expr)),
            _ => Err(parser.error()),
        }
    }
}

/// Expressions within expressions, for which there is room on every stack.
const MAX_DEPTH: u32 = 100;
/// Operators with two operands: `1 + 1 + 1 …` is a tree as deep as it is long. MySQL takes about as many.
const MAX_OPERATORS: u32 = 2_000;

struct Parser<'t> {
    lexer: Lexer<'t>,
    /// How many predicates stand around.
    predicates: u32,
    depth: u32,
    operators: u32,
}

type Parsed<T = XpathExpr> = Result<T, XpathProblem>;

impl<'t> Parser<'t> {
    fn error(&self) -> XpathProblem {
        XpathProblem::Syntax(shown(self.lexer.rest()))
    }

    /// An operator of the operands to its left and right.
    fn both(
        &mut self,
        left: XpathExpr,
        operator: impl FnOnce(Box<[XpathExpr; 2]>) -> XpathExpr,
        right: XpathExpr,
    ) -> Parsed {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(XpathProblem::TooDeep);
        }
        Ok(operator(Box::new([left, right])))
    }

    fn eat(&mut self, token: Token<'_>) -> bool {
        let is_there = self.lexer.token == token;
        if is_there {
            self.lexer.advance();
        }
        is_there
    }

    fn expect(&mut self, token: Token<'_>) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.error()) }
    }

    fn or(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error());
        }
        let mut left = self.and()?;
        while self.eat(Token::Name("or")) {
            let right = self.and()?;
            left = self.both(left, XpathExpr::Or, right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.equality()?;
        while self.eat(Token::Name("and")) {
            let right = self.equality()?;
            left = self.both(left, XpathExpr::And, right)?;
        }
        Ok(left)
    }

    fn equality(&mut self) -> Parsed {
        self.comparison(Self::relation, &[(Token::Op("="), CompareOp::Eq), (Token::Op("!="), CompareOp::Ne)])
    }

    fn relation(&mut self) -> Parsed {
        let ops = [
            (Token::Op("<="), CompareOp::Le),
            (Token::Op(">="), CompareOp::Ge),
            (Token::Op("<"), CompareOp::Lt),
            (Token::Op(">"), CompareOp::Gt),
        ];
        self.comparison(Self::sum, &ops)
    }

    fn comparison(
        &mut self,
        operand: fn(&mut Self) -> Parsed,
        ops: &[(Token<'static>, CompareOp)],
    ) -> Parsed {
        let mut left = operand(self)?;
        while let Some((_, op)) = ops.iter().find(|(token, _)| *token == self.lexer.token) {
            let rest = self.lexer.rest();
            self.lexer.advance();
            let right = operand(self)?;
            if left.is_nodeset() && right.is_nodeset() {
                return Err(XpathProblem::TwoNodesets(shown(rest)));
            }
            left = self.both(left, |sides| XpathExpr::Compare(*op, sides), right)?;
        }
        Ok(left)
    }

    fn sum(&mut self) -> Parsed {
        self.arithmetic(Self::product, &[(Token::Op("+"), ArithOp::Add), (Token::Op("-"), ArithOp::Sub)])
    }

    fn product(&mut self) -> Parsed {
        let ops = [
            (Token::Op("*"), ArithOp::Mul),
            (Token::Name("div"), ArithOp::IntDiv),
            (Token::Name("mod"), ArithOp::Mod),
        ];
        self.arithmetic(Self::unary, &ops)
    }

    fn arithmetic(&mut self, operand: fn(&mut Self) -> Parsed, ops: &[(Token<'static>, ArithOp)]) -> Parsed {
        let mut left = operand(self)?;
        while let Some((_, op)) = ops.iter().find(|(token, _)| *token == self.lexer.token) {
            self.lexer.advance();
            let right = operand(self)?;
            left = self.both(left, |sides| XpathExpr::Arith(*op, sides), right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let mut minus = 0;
        while self.eat(Token::Op("-")) {
            minus += 1;
            if minus > MAX_DEPTH {
                return Err(self.error());
            }
        }
        let mut expr = self.union()?;
        for _ in 0..minus {
            expr = XpathExpr::Negate(Box::new(expr));
        }
        Ok(expr)
    }

    fn union(&mut self) -> Parsed {
        let mut left = self.path()?;
        while self.eat(Token::Op("|")) {
            if !left.is_nodeset() {
                return Err(self.error());
            }
            let right = self.path()?;
            if !right.is_nodeset() {
                return Err(self.error());
            }
            left = self.both(left, XpathExpr::Union, right)?;
        }
        Ok(left)
    }

    fn path(&mut self) -> Parsed {
        match self.lexer.token {
            Token::Op("/") => {
                self.lexer.advance();
                match self.lexer.token {
                    // The root itself.
                    Token::End => Ok(XpathExpr::Path { start: PathStart::Root, steps: Vec::new() }),
                    _ => self.steps(PathStart::Root, Vec::new()),
                }
            }
            Token::Op("//") => {
                self.lexer.advance();
                self.steps(PathStart::Root, vec![anywhere_below()])
            }
            Token::Op("." | ".." | "@" | "*") | Token::Name(_) | Token::Axis(_) | Token::Kind => {
                self.steps(PathStart::Context, Vec::new())
            }
            _ => self.filtered(),
        }
    }

    /// What is no path by itself, and the path that may stand behind it.
    fn filtered(&mut self) -> Parsed {
        let expr = self.primary()?;
        let below = match self.lexer.token {
            Token::Op("/") => Vec::new(),
            Token::Op("//") => vec![anywhere_below()],
            _ => return Ok(expr),
        };
        if !expr.is_nodeset() {
            return Err(self.error());
        }
        self.lexer.advance();
        self.steps(PathStart::Nodes(Box::new(expr)), below)
    }

    fn steps(&mut self, start: PathStart, mut steps: Vec<Step>) -> Parsed {
        loop {
            steps.extend(self.step()?);
            match self.lexer.token {
                Token::Op("/") => self.lexer.advance(),
                Token::Op("//") => {
                    self.lexer.advance();
                    steps.push(anywhere_below());
                }
                _ => return Ok(XpathExpr::Path { start, steps }),
            }
        }
    }

    /// `None` for a test that changes nothing.
    fn step(&mut self) -> Parsed<Option<Step>> {
        let axis = match self.lexer.token {
            Token::Op(".") => {
                self.lexer.advance();
                return Ok(None);
            }
            Token::Op("..") => {
                self.lexer.advance();
                return Ok(Some(Step { axis: Axis::Parent, name: None, predicates: Vec::new() }));
            }
            Token::Op("@") => {
                self.lexer.advance();
                Axis::Attribute
            }
            Token::Axis(name) => {
                let axis = Axis::by_name(name).unwrap_or(Axis::Child);
                self.lexer.advance();
                axis
            }
            _ => Axis::Child,
        };
        let mut step = match self.lexer.token {
            Token::Op("*") => {
                self.lexer.advance();
                Step { axis, name: None, predicates: Vec::new() }
            }
            Token::Kind => {
                self.lexer.advance();
                self.expect(Token::Op("("))?;
                self.expect(Token::Op(")"))?;
                Step { axis: Axis::Itself, name: None, predicates: Vec::new() }
            }
            Token::Name(name) => {
                self.lexer.advance();
                let mut name = name.to_owned();
                if self.eat(Token::Op(":")) {
                    name.push(':');
                    name.push_str(self.local_name()?);
                }
                Step { axis, name: Some(name), predicates: Vec::new() }
            }
            _ => return Err(self.error()),
        };
        while self.eat(Token::Op("[")) {
            self.predicates += 1;
            step.predicates.push(self.or()?);
            self.expect(Token::Op("]"))?;
            self.predicates -= 1;
        }
        Ok(Some(step))
    }

    /// The name behind a prefix.
    fn local_name(&mut self) -> Parsed<&'t str> {
        match self.lexer.token {
            Token::Name(name) => {
                self.lexer.advance();
                Ok(name)
            }
            token => {
                // Names of any kind with a prefix are not there.
                if token == Token::Op("*") {
                    self.lexer.advance();
                }
                Err(self.error())
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        match self.lexer.token {
            Token::Number(digits) => {
                self.lexer.advance();
                Ok(XpathExpr::Number(digits.to_owned()))
            }
            Token::Text(text) => {
                self.lexer.advance();
                Ok(XpathExpr::Text(text.to_owned()))
            }
            Token::Op("(") => {
                self.lexer.advance();
                let expr = self.or()?;
                self.expect(Token::Op(")"))?;
                Ok(expr)
            }
            Token::Op("$") => self.variable(),
            Token::Function(name) => self.call(name),
            _ => Err(self.error()),
        }
    }

    fn variable(&mut self) -> Parsed {
        let unknown = XpathProblem::Variable(shown(self.lexer.rest()));
        self.lexer.advance();
        // Without the @ it is one of a stored program.
        if !self.eat(Token::Op("@")) {
            return Err(unknown);
        }
        match self.lexer.token {
            Token::Name(name) => {
                self.lexer.advance();
                Ok(XpathExpr::Variable(name.to_lowercase()))
            }
            _ => Err(self.error()),
        }
    }

    fn call(&mut self, name: &str) -> Parsed {
        let (function, min, max) = XpathFunction::by_name(name).ok_or_else(|| self.error())?;
        self.lexer.advance();
        self.expect(Token::Op("("))?;
        let mut args = Vec::new();
        while args.len() < max && !(args.len() >= min && self.lexer.token == Token::Op(")")) {
            if !args.is_empty() {
                self.expect(Token::Op(","))?;
            }
            args.push(self.or()?);
        }
        self.expect(Token::Op(")"))?;
        use XpathFunction as F;
        let is_there = match function {
            F::Count | F::Sum => args[0].is_nodeset(),
            F::Position | F::Last => self.predicates > 0,
            F::StringLength => self.predicates > 0 || !args.is_empty(),
            _ => true,
        };
        if is_there { Ok(XpathExpr::Call(function, args)) } else { Err(self.error()) }
    }
}

/// What `//` stands for, before a step.
fn anywhere_below() -> Step {
    Step { axis: Axis::DescendantOrSelf, name: None, predicates: Vec::new() }
}

fn shown(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}
