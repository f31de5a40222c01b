//! Spatial values: points, lines and polygons, and collections of them.
//!
//! A value of a spatial type is a `Datum::Bytes` in MySQL's internal form: the number of its spatial reference system, then
//! well-known binary in little-endian order. What a column stores is checked once; functions read it into a [`Shape`].
//! MySQL 8.4 Reference Manual, 13.4 "Spatial Data Types".
//!
//! ```text
//!  value     SRID u32 │ shape
//!  shape     1 u8 (little-endian) │ type u32 │ of a point x f64, y f64; else count u32 │ items
//!  items     of a line points │ of a polygon rings: count u32 │ points │ of the others shapes
//! ```
//!
//! Invariants:
//! 1. Counts are held against the bytes that are left before anything is allocated, and depth ends at [`MAX_DEPTH`]: no value
//!    costs more than its own length.
//! 2. Longitude comes first in a value, whatever the order of its system's axes is; texts and binaries that come and go have
//!    the system's order.

use thiserror::Error;

pub mod geojson;
pub mod wkb;
pub mod wkt;

/// How deep collections may be in each other.
pub const MAX_DEPTH: usize = 100;

/// Bytes of the SRID before the shape.
pub const SRID_BYTES: usize = 4;

/// What a spatial column may hold, and what a value is. The numbers are those of well-known binary, and MySQL's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum GeometryType {
    /// Of any type; no value is of this one.
    Geometry = 0,
    Point = 1,
    LineString = 2,
    Polygon = 3,
    MultiPoint = 4,
    MultiLineString = 5,
    MultiPolygon = 6,
    Collection = 7,
}

impl GeometryType {
    pub const ALL: [Self; 8] = [
        Self::Geometry,
        Self::Point,
        Self::LineString,
        Self::Polygon,
        Self::MultiPoint,
        Self::MultiLineString,
        Self::MultiPolygon,
        Self::Collection,
    ];

    pub fn of_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// As SHOW CREATE TABLE prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Geometry => "geometry",
            Self::Point => "point",
            Self::LineString => "linestring",
            Self::Polygon => "polygon",
            Self::MultiPoint => "multipoint",
            Self::MultiLineString => "multilinestring",
            Self::MultiPolygon => "multipolygon",
            Self::Collection => "geomcollection",
        }
    }

    /// As ST_GEOMETRYTYPE says it.
    pub const fn upper_name(self) -> &'static str {
        match self {
            Self::Geometry => "GEOMETRY",
            Self::Point => "POINT",
            Self::LineString => "LINESTRING",
            Self::Polygon => "POLYGON",
            Self::MultiPoint => "MULTIPOINT",
            Self::MultiLineString => "MULTILINESTRING",
            Self::MultiPolygon => "MULTIPOLYGON",
            Self::Collection => "GEOMCOLLECTION",
        }
    }

    /// A type by the name that a column's definition gives it, in capitals.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "GEOMETRYCOLLECTION" => Some(Self::Collection),
            _ => Self::ALL.into_iter().find(|ty| ty.upper_name() == name),
        }
    }

    /// Whether a value of a type is one of this type. Collections of points, lines and polygons are collections.
    pub const fn holds(self, value: Self) -> bool {
        match self {
            Self::Geometry => true,
            Self::Collection => {
                matches!(
                    value,
                    Self::MultiPoint | Self::MultiLineString | Self::MultiPolygon | Self::Collection
                )
            }
            _ => self as u8 == value as u8,
        }
    }
}

/// x and y, in the order of a value.
pub type Position = [f64; 2];

/// A value without its reference system.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Point(Position),
    LineString(Vec<Position>),
    /// Rings, the outer one first.
    Polygon(Vec<Vec<Position>>),
    MultiPoint(Vec<Position>),
    MultiLineString(Vec<Vec<Position>>),
    MultiPolygon(Vec<Vec<Vec<Position>>>),
    Collection(Vec<Shape>),
}

impl Shape {
    pub const fn ty(&self) -> GeometryType {
        match self {
            Self::Point(_) => GeometryType::Point,
            Self::LineString(_) => GeometryType::LineString,
            Self::Polygon(_) => GeometryType::Polygon,
            Self::MultiPoint(_) => GeometryType::MultiPoint,
            Self::MultiLineString(_) => GeometryType::MultiLineString,
            Self::MultiPolygon(_) => GeometryType::MultiPolygon,
            Self::Collection(_) => GeometryType::Collection,
        }
    }

    /// Whether there is no position in it: it is a collection of nothing, or of such.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Collection(shapes) => shapes.iter().all(Self::is_empty),
            _ => false,
        }
    }

    /// Applies `change` to all positions, in order, until it fails.
    pub fn try_each<E>(&mut self, change: &mut impl FnMut(&mut Position) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Point(at) => change(at),
            Self::LineString(line) | Self::MultiPoint(line) => line.iter_mut().try_for_each(change),
            Self::Polygon(lines) | Self::MultiLineString(lines) => {
                lines.iter_mut().flatten().try_for_each(change)
            }
            Self::MultiPolygon(polygons) => polygons.iter_mut().flatten().flatten().try_for_each(change),
            Self::Collection(shapes) => shapes.iter_mut().try_for_each(|shape| shape.try_each(change)),
        }
    }

    /// The same with x and y in each other's place.
    pub fn swapped(mut self) -> Self {
        let Ok(()) = self.try_each::<std::convert::Infallible>(&mut |at| {
            at.swap(0, 1);
            Ok(())
        });
        self
    }

    /// Whether all numbers are finite.
    pub fn is_finite(&mut self) -> bool {
        self.try_each(&mut |at| if at.iter().all(|v| v.is_finite()) { Ok(()) } else { Err(()) }).is_ok()
    }
}

/// A ring of a polygon ends where it began, and has a point between.
pub(crate) fn is_ring(line: &[Position]) -> bool {
    line.len() >= 4 && line.first() == line.last()
}

/// A value of a spatial type.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    pub srid: u32,
    pub shape: Shape,
}

impl Geometry {
    /// Reads a value; `None` if the bytes are none. Rings may be open.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (srid, shape) = bytes.split_first_chunk::<SRID_BYTES>()?;
        let shape = wkb::read(shape, wkb::Source::Stored)?;
        Some(Self { srid: u32::from_le_bytes(*srid), shape })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.srid.to_le_bytes().to_vec();
        wkb::write(&self.shape, &mut bytes);
        bytes
    }
}

/// Why a spatial column does not take a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The bytes are none, or of another type.
    NoGeometry,
    /// It is of another reference system than the column.
    Srid { value: u32, column: u32 },
}

/// Whether a column of this type and reference system takes a value.
pub fn check_stored(bytes: &[u8], ty: GeometryType, srid: Option<u32>) -> Result<(), Misfit> {
    let (own, shape) = bytes.split_first_chunk::<SRID_BYTES>().ok_or(Misfit::NoGeometry)?;
    let shape = wkb::read(shape, wkb::Source::ToStore).ok_or(Misfit::NoGeometry)?;
    if !ty.holds(shape.ty()) {
        return Err(Misfit::NoGeometry);
    }
    let value = u32::from_le_bytes(*own);
    match srid {
        Some(column) if column != value => Err(Misfit::Srid { value, column }),
        _ => Ok(()),
    }
}

/// A spatial reference system, as far as reading and writing values need to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceSystem {
    pub id: u32,
    pub name: &'static str,
    /// Positions are latitude and longitude in degrees, in this order.
    pub is_geographic: bool,
}

/// The systems that this server knows: the plane without units, WGS 84, and what maps on the web are drawn in.
pub const REFERENCE_SYSTEMS: [ReferenceSystem; 3] = [
    ReferenceSystem { id: 0, name: "", is_geographic: false },
    ReferenceSystem { id: 3857, name: "WGS 84 / Pseudo-Mercator", is_geographic: false },
    ReferenceSystem { id: WGS_84, name: "WGS 84", is_geographic: true },
];

pub const WGS_84: u32 = 4326;

impl ReferenceSystem {
    pub fn by_id(id: u32) -> Option<Self> {
        REFERENCE_SYSTEMS.into_iter().find(|system| system.id == id)
    }
}

/// What spatial functions refuse. Names of functions are MySQL's, in small letters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GeometryError {
    #[error("Incorrect arguments to {0}")]
    WrongArguments(String),
    #[error("Illegal non geometric '{0}' value found during parsing")]
    NoGeometry(String),
    #[error("Invalid GIS data provided to function {0}.")]
    InvalidData(&'static str),
    #[error("{source_form} value is a geometry of unexpected type {ty} in {function}.")]
    UnexpectedType { source_form: &'static str, ty: &'static str, function: &'static str },
    #[error("There's no spatial reference system with SRID {0}.")]
    NoSystem(u32),
    #[error("Invalid option key '{key}' in function {function}.")]
    OptionKey { key: String, function: &'static str },
    #[error("Invalid value '{value}' for option 'axis-order' in function '{function}'.")]
    OptionValue { value: String, function: &'static str },
    #[error("The string '{pair}' is not a valid key = value pair in function {function}.")]
    OptionPair { pair: String, function: &'static str },
    #[error("The options argument in function {function} starts with the invalid character '{character}'.")]
    OptionStart { character: char, function: &'static str },
    #[error("The options argument in function {function} ends with the invalid character '{character}'.")]
    OptionEnd { character: char, function: &'static str },
    #[error("Duplicate option key '{key}' in funtion '{function}'.")]
    OptionTwice { key: String, function: &'static str },
    #[error(
        "Longitude {value} is out of range in function {function}. It must be within (-180.000000, 180.000000]."
    )]
    Longitude { value: String, function: &'static str },
    #[error(
        "Latitude {value} is out of range in function {function}. It must be within [-90.000000, 90.000000]."
    )]
    Latitude { value: String, function: &'static str },
    #[error(
        "Function {function} is only defined for geographic spatial reference systems, but one of its arguments is in \
         SRID {srid}, which is not geographic."
    )]
    NotGeographic { srid: u32, function: &'static str },
    #[error(
        "A parameter of function {function} contains a geometry with longitude {value}, which is out of range. It must \
         be within (-180.000000, 180.000000]."
    )]
    LongitudeOfParameter { value: String, function: &'static str },
    #[error(
        "A parameter of function {function} contains a geometry with latitude {value}, which is out of range. It must \
         be within [-90.000000, 90.000000]."
    )]
    LatitudeOfParameter { value: String, function: &'static str },
}

impl GeometryError {
    /// MySQL's error number.
    pub const fn errno(&self) -> u16 {
        match self {
            Self::WrongArguments(_) => 1210,
            Self::NoGeometry(_) => 1367,
            Self::InvalidData(_) => 3037,
            Self::UnexpectedType { .. } => 3516,
            Self::NoSystem(_) => 3548,
            Self::OptionKey { .. } => 3558,
            Self::OptionValue { .. } => 3559,
            Self::OptionPair { .. } => 3560,
            Self::OptionStart { .. } => 3561,
            Self::OptionEnd { .. } => 3562,
            Self::OptionTwice { .. } => 3564,
            Self::Longitude { .. } => 3616,
            Self::Latitude { .. } => 3617,
            Self::NotGeographic { .. } => 3726,
            Self::LongitudeOfParameter { .. } => 3731,
            Self::LatitudeOfParameter { .. } => 3732,
        }
    }
}

#[cfg(test)]
mod tests;
