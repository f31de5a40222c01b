//! Well-known text, as MySQL reads and writes it. OGC 06-103r4, 7 "Well-known text representation of geometry".

use super::{MAX_DEPTH, Position, Shape, is_ring};
use crate::number::write_coordinate;

/// The shape that a text is; `None` if it is none.
pub fn parse(text: &[u8]) -> Option<Shape> {
    let mut parser = Parser { rest: text };
    let shape = parser.shape(MAX_DEPTH)?;
    parser.skip_space();
    parser.rest.is_empty().then_some(shape)
}

struct Parser<'t> {
    rest: &'t [u8],
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn eat(&mut self, symbol: u8) -> bool {
        self.skip_space();
        match self.rest.split_first() {
            Some((first, rest)) if *first == symbol => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn is_next(&mut self, symbol: u8) -> bool {
        self.skip_space();
        self.rest.first() == Some(&symbol)
    }

    fn word(&mut self) -> String {
        self.skip_space();
        let len = self.rest.iter().take_while(|c| c.is_ascii_alphabetic()).count();
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        String::from_utf8_lossy(word).to_ascii_uppercase()
    }

    fn number(&mut self) -> Option<f64> {
        self.skip_space();
        let digits = |from: usize| self.rest[from..].iter().take_while(|c| c.is_ascii_digit()).count();
        let mut len = usize::from(matches!(self.rest.first(), Some(b'+' | b'-')));
        let whole = digits(len);
        len += whole;
        let mut fraction = 0;
        if self.rest.get(len) == Some(&b'.') {
            fraction = digits(len + 1);
            len += 1 + fraction;
        }
        if whole + fraction == 0 {
            return None;
        }
        if matches!(self.rest.get(len), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.rest.get(len + 1), Some(b'+' | b'-')));
            let exponent = digits(len + 1 + sign);
            if exponent == 0 {
                return None;
            }
            len += 1 + sign + exponent;
        }
        let (number, rest) = self.rest.split_at(len);
        self.rest = rest;
        let number: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    fn position(&mut self) -> Option<Position> {
        Some([self.number()?, self.number()?])
    }

    /// `(item, item, …)`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        if !self.eat(b'(') {
            return None;
        }
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if self.eat(b')') {
                return Some(items);
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }

    /// A point in parentheses.
    fn point(&mut self) -> Option<Position> {
        let at = if self.eat(b'(') { self.position()? } else { return None };
        self.eat(b')').then_some(at)
    }

    fn line(&mut self) -> Option<Vec<Position>> {
        self.list(Self::position).filter(|line| line.len() >= 2)
    }

    fn polygon(&mut self) -> Option<Vec<Vec<Position>>> {
        self.list(|p| p.list(Self::position).filter(|ring| is_ring(ring)))
    }

    /// Points, all in parentheses or none.
    fn points(&mut self) -> Option<Vec<Position>> {
        let mut ahead = Self { rest: self.rest };
        let in_parentheses = ahead.eat(b'(') && ahead.is_next(b'(');
        self.list(if in_parentheses { Self::point } else { Self::position })
    }

    fn shape(&mut self, depth: usize) -> Option<Shape> {
        Some(match self.word().as_str() {
            "POINT" => Shape::Point(self.point()?),
            "LINESTRING" => Shape::LineString(self.line()?),
            "POLYGON" => Shape::Polygon(self.polygon()?),
            "MULTIPOINT" => Shape::MultiPoint(self.points()?),
            "MULTILINESTRING" => Shape::MultiLineString(self.list(Self::line)?),
            "MULTIPOLYGON" => Shape::MultiPolygon(self.list(Self::polygon)?),
            "GEOMETRYCOLLECTION" => Shape::Collection(self.shapes(depth.checked_sub(1)?)?),
            _ => return None,
        })
    }

    /// `EMPTY`, `()`, or shapes.
    fn shapes(&mut self, depth: usize) -> Option<Vec<Shape>> {
        if !self.is_next(b'(') {
            return (self.word() == "EMPTY").then(Vec::new);
        }
        let mut ahead = Self { rest: self.rest };
        if ahead.eat(b'(') && ahead.eat(b')') {
            self.rest = ahead.rest;
            return Some(Vec::new());
        }
        self.list(|p| p.shape(depth))
    }
}

/// Appends the text of a shape.
pub fn write(shape: &Shape, to: &mut Vec<u8>) {
    match shape {
        Shape::Point(at) => {
            to.extend_from_slice(b"POINT");
            in_parentheses(to, |to| position(at, to));
        }
        Shape::LineString(line) => {
            to.extend_from_slice(b"LINESTRING");
            list(line, to, position);
        }
        Shape::Polygon(rings) => {
            to.extend_from_slice(b"POLYGON");
            polygon(rings, to);
        }
        Shape::MultiPoint(points) => {
            to.extend_from_slice(b"MULTIPOINT");
            list(points, to, |at, to| in_parentheses(to, |to| position(at, to)));
        }
        Shape::MultiLineString(lines) => {
            to.extend_from_slice(b"MULTILINESTRING");
            list(lines, to, |line, to| list(line, to, position));
        }
        Shape::MultiPolygon(polygons) => {
            to.extend_from_slice(b"MULTIPOLYGON");
            list(polygons, to, |rings, to| polygon(rings, to));
        }
        Shape::Collection(shapes) if shapes.is_empty() => {
            to.extend_from_slice(b"GEOMETRYCOLLECTION EMPTY");
        }
        Shape::Collection(shapes) => {
            to.extend_from_slice(b"GEOMETRYCOLLECTION");
            list(shapes, to, write);
        }
    }
}

fn in_parentheses(to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    to.push(b'(');
    write(to);
    to.push(b')');
}

fn list<T>(items: &[T], to: &mut Vec<u8>, each: impl Fn(&T, &mut Vec<u8>)) {
    in_parentheses(to, |to| {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                to.push(b',');
            }
            each(item, to);
        }
    });
}

fn position(at: &Position, to: &mut Vec<u8>) {
    write_coordinate(at[0], to);
    to.push(b' ');
    write_coordinate(at[1], to);
}

fn polygon(rings: &[Vec<Position>], to: &mut Vec<u8>) {
    list(rings, to, |ring, to| list(ring, to, position));
}
