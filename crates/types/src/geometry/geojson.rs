//! Shapes as GeoJSON documents. RFC 7946, 3.1 "Geometry Object".

use super::{Geometry, Position, ReferenceSystem, Shape};
use crate::json::Json;
use crate::number::power_of_ten;

/// What a document has beside type and coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The least and largest longitude and latitude.
    pub bounding_box: bool,
    /// The reference system by its short name, `EPSG:4326`.
    pub short_system: bool,
    /// The reference system by its long name, `urn:ogc:def:crs:EPSG::4326`; wins over the short one.
    pub long_system: bool,
}

/// The document of a value; digits after the point are rounded to `decimals`.
pub fn document(geometry: &mut Geometry, decimals: Option<u8>, parts: Parts) -> Json {
    if let Some(decimals) = decimals {
        let unit = power_of_ten(decimals.into());
        let Ok(()) = geometry.shape.try_each::<std::convert::Infallible>(&mut |at| {
            at.iter_mut().for_each(|v| *v = rounded(*v, unit));
            Ok(())
        });
    }
    let system = ReferenceSystem::by_id(geometry.srid).filter(|system| system.id != 0);
    let name = match (parts.long_system, system) {
        (true, Some(system)) => Some(format!("urn:ogc:def:crs:EPSG::{}", system.id)),
        (true, None) if geometry.srid == 0 => Some("urn:ogc:def:crs:MySQL::0".to_owned()),
        (false, Some(system)) if parts.short_system => Some(format!("EPSG:{}", system.id)),
        _ => None,
    };
    let mut members = Vec::new();
    if let Some(name) = name {
        let properties = object(vec![("name", Json::String(name))]);
        members
            .push(("crs", object(vec![("type", Json::String("name".into())), ("properties", properties)])));
    }
    if parts.bounding_box {
        members.push(("bbox", bounding_box(&mut geometry.shape)));
    }
    members.extend(members_of(&geometry.shape));
    object(members)
}

fn rounded(v: f64, unit: f64) -> f64 {
    let scaled = v * unit;
    if scaled.is_finite() { scaled.round_ties_even() / unit } else { v }
}

fn object(members: Vec<(&'static str, Json)>) -> Json {
    let mut map = crate::json::Map::default();
    for (name, value) in members {
        map.insert(name.to_owned(), value);
    }
    Json::Object(map)
}

fn members_of(shape: &Shape) -> Vec<(&'static str, Json)> {
    let (ty, coordinates) = match shape {
        Shape::Point(at) => ("Point", position(at)),
        Shape::LineString(points) => ("LineString", line(points)),
        Shape::Polygon(rings) => ("Polygon", lines(rings)),
        Shape::MultiPoint(points) => ("MultiPoint", line(points)),
        Shape::MultiLineString(all) => ("MultiLineString", lines(all)),
        Shape::MultiPolygon(polygons) => {
            ("MultiPolygon", Json::Array(polygons.iter().map(|rings| lines(rings)).collect()))
        }
        Shape::Collection(shapes) => {
            let shapes = shapes.iter().map(|shape| object(members_of(shape))).collect();
            return vec![
                ("type", Json::String("GeometryCollection".into())),
                ("geometries", Json::Array(shapes)),
            ];
        }
    };
    vec![("type", Json::String(ty.into())), ("coordinates", coordinates)]
}

fn position(at: &Position) -> Json {
    Json::Array(at.iter().map(|v| Json::Double(*v)).collect())
}

fn line(points: &[Position]) -> Json {
    Json::Array(points.iter().map(position).collect())
}

fn lines(all: &[Vec<Position>]) -> Json {
    Json::Array(all.iter().map(|points| line(points)).collect())
}

/// Least x and y, largest x and y; nothing of a shape without positions.
fn bounding_box(shape: &mut Shape) -> Json {
    let mut bounds: Option<[f64; 4]> = None;
    let Ok(()) = shape.try_each::<std::convert::Infallible>(&mut |&mut [x, y]| {
        let [left, bottom, right, top] = bounds.unwrap_or([x, y, x, y]);
        bounds = Some([left.min(x), bottom.min(y), right.max(x), top.max(y)]);
        Ok(())
    });
    Json::Array(bounds.iter().flatten().map(|v| Json::Double(*v)).collect())
}
