//! Well-known binary. OGC 06-103r4, 8.2 "The WKB representation for geometry".

use super::{GeometryType, MAX_DEPTH, Position, Shape, is_ring};

/// Byte order, type and count (or a coordinate) of the least shape there is.
const LEAST_SHAPE: usize = 9;
const POSITION: usize = 16;

/// Where bytes come from, and so what they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A client's: in either byte order, rings closed.
    Client,
    /// A value that a column is to store: little-endian, rings closed.
    ToStore,
    /// A value: little-endian.
    Stored,
}

/// The shape that all of the bytes are.
pub fn read(bytes: &[u8], source: Source) -> Option<Shape> {
    let mut cursor = Cursor { bytes, source, is_little: true };
    let shape = cursor.shape(MAX_DEPTH, None)?;
    cursor.bytes.is_empty().then_some(shape)
}

struct Cursor<'b> {
    bytes: &'b [u8],
    source: Source,
    /// Of the shape that is read: each says its own.
    is_little: bool,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn f64(&mut self) -> Option<f64> {
        let bytes = self.take()?;
        Some(if self.is_little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    }

    /// How many follow, of which each has so many bytes at least.
    fn count(&mut self, least: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        (count <= self.bytes.len() / least).then_some(count)
    }

    fn position(&mut self) -> Option<Position> {
        Some([self.f64()?, self.f64()?])
    }

    fn line(&mut self) -> Option<Vec<Position>> {
        let count = self.count(POSITION)?;
        (0..count).map(|_| self.position()).collect()
    }

    fn rings(&mut self) -> Option<Vec<Vec<Position>>> {
        let count = self.count(4)?;
        let rings = (0..count).map(|_| self.line()).collect::<Option<Vec<_>>>()?;
        let is_closed = |ring: &Vec<Position>| match self.source {
            Source::Stored => !ring.is_empty(),
            Source::Client | Source::ToStore => is_ring(ring),
        };
        (!rings.is_empty() && rings.iter().all(is_closed)).then_some(rings)
    }

    /// A shape of any type, or of the one that is wanted.
    fn shape(&mut self, depth: usize, wanted: Option<GeometryType>) -> Option<Shape> {
        self.is_little = match self.take::<1>()?[0] {
            0 if self.source == Source::Client => false,
            1 => true,
            _ => return None,
        };
        let ty = GeometryType::of_code(self.u32()?)?;
        if wanted.is_some_and(|wanted| wanted != ty) {
            return None;
        }
        Some(match ty {
            GeometryType::Geometry => return None,
            GeometryType::Point => Shape::Point(self.position()?),
            GeometryType::LineString => Shape::LineString(self.line().filter(|line| line.len() >= 2)?),
            GeometryType::Polygon => Shape::Polygon(self.rings()?),
            GeometryType::MultiPoint => {
                Shape::MultiPoint(self.several(GeometryType::Point, |part| match part {
                    Shape::Point(at) => Some(at),
                    _ => None,
                })?)
            }
            GeometryType::MultiLineString => {
                Shape::MultiLineString(self.several(GeometryType::LineString, |part| match part {
                    Shape::LineString(line) => Some(line),
                    _ => None,
                })?)
            }
            GeometryType::MultiPolygon => {
                Shape::MultiPolygon(self.several(GeometryType::Polygon, |part| match part {
                    Shape::Polygon(rings) => Some(rings),
                    _ => None,
                })?)
            }
            GeometryType::Collection => {
                let depth = depth.checked_sub(1)?;
                let count = self.count(LEAST_SHAPE)?;
                Shape::Collection((0..count).map(|_| self.shape(depth, None)).collect::<Option<_>>()?)
            }
        })
    }

    /// The shapes of a collection whose shapes are of one type: at least one.
    fn several<T>(&mut self, ty: GeometryType, part: fn(Shape) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count(LEAST_SHAPE).filter(|count| *count > 0)?;
        (0..count).map(|_| self.shape(0, Some(ty)).and_then(part)).collect()
    }
}

/// Appends a shape in little-endian order.
pub fn write(shape: &Shape, to: &mut Vec<u8>) {
    match shape {
        Shape::Point(at) => {
            head(GeometryType::Point, to);
            position(at, to);
        }
        Shape::LineString(line) => {
            head(GeometryType::LineString, to);
            positions(line, to);
        }
        Shape::Polygon(rings) => polygon(rings, to),
        Shape::MultiPoint(points) => {
            head(GeometryType::MultiPoint, to);
            list(points, to, |at, to| {
                head(GeometryType::Point, to);
                position(at, to);
            });
        }
        Shape::MultiLineString(lines) => {
            head(GeometryType::MultiLineString, to);
            list(lines, to, |line, to| {
                head(GeometryType::LineString, to);
                positions(line, to);
            });
        }
        Shape::MultiPolygon(polygons) => {
            head(GeometryType::MultiPolygon, to);
            list(polygons, to, |rings, to| polygon(rings, to));
        }
        Shape::Collection(shapes) => {
            head(GeometryType::Collection, to);
            list(shapes, to, write);
        }
    }
}

fn head(ty: GeometryType, to: &mut Vec<u8>) {
    to.push(1);
    to.extend_from_slice(&(ty as u32).to_le_bytes());
}

/// Lists come from values and texts, whose lengths are below 2^32.
fn list<T>(items: &[T], to: &mut Vec<u8>, each: impl Fn(&T, &mut Vec<u8>)) {
    to.extend_from_slice(&(items.len() as u32).to_le_bytes());
    items.iter().for_each(|item| each(item, to));
}

fn position(at: &Position, to: &mut Vec<u8>) {
    at.iter().for_each(|v| to.extend_from_slice(&v.to_le_bytes()));
}

fn positions(line: &[Position], to: &mut Vec<u8>) {
    list(line, to, position);
}

fn polygon(rings: &[Vec<Position>], to: &mut Vec<u8>) {
    head(GeometryType::Polygon, to);
    list(rings, to, |ring, to| positions(ring, to));
}
