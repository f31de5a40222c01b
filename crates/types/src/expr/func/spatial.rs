//! Functions that make spatial values, write them and look at them. MySQL 8.4 Reference Manual, 14.16 "Spatial Analysis
//! Functions". What relates values to each other is not here.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::{bytes, chars, from_buffer, string};
use crate::expr::program::CallInfo;
use crate::geometry::{
    Geometry, GeometryError, GeometryType, Position, ReferenceSystem, Shape, geojson, wkb, wkt,
};

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// In which order an angle's latitude and longitude come and go, as the options of a function say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AxisOrder {
    LatLong,
    LongLat,
}

fn has_null(args: &[Datum<'_>]) -> bool {
    args.iter().any(Datum::is_null)
}

fn refused(problem: GeometryError) -> EvalError {
    EvalError::Geometry(problem)
}

fn read(value: &Datum<'_>, function: &'static str) -> EvalResult<Geometry> {
    Geometry::read(bytes(value)).ok_or(refused(GeometryError::InvalidData(function)))
}

fn made<'a>(geometry: &Geometry) -> Datum<'a> {
    Datum::Bytes(geometry.to_bytes().into())
}

/// The number of a reference system; 0 if there is no argument.
fn srid_of(value: Option<&Datum<'_>>, function: &'static str) -> EvalResult<u32> {
    let srid = match value {
        None => Some(0),
        Some(Datum::UInt(v)) => u32::try_from(*v).ok(),
        Some(Datum::Int(v)) => u32::try_from(*v).ok(),
        Some(_) => None,
    };
    srid.ok_or_else(|| EvalError::OutOfRange { kind: "SRID", expr: function.to_owned() })
}

fn system(srid: u32) -> EvalResult<ReferenceSystem> {
    ReferenceSystem::by_id(srid).ok_or(refused(GeometryError::NoSystem(srid)))
}

/// `key = value, …`; the only key is `axis-order`.
fn axis_order(options: Option<&Datum<'_>>, function: &'static str) -> EvalResult<AxisOrder> {
    let text = options.map_or("", |options| chars(options)).trim();
    let is_separator = |c: &char| matches!(c, ',' | '=');
    if let Some(character) = text.chars().next().filter(is_separator) {
        return Err(refused(GeometryError::OptionStart { character, function }));
    }
    if let Some(character) = text.chars().next_back().filter(is_separator) {
        return Err(refused(GeometryError::OptionEnd { character, function }));
    }
    let mut order = None;
    for pair in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = pair.split('=').map(str::trim).collect();
        let [key, value] = parts[..] else {
            return Err(refused(GeometryError::OptionPair { pair: pair.trim().to_owned(), function }));
        };
        if !key.eq_ignore_ascii_case("axis-order") {
            return Err(refused(GeometryError::OptionKey { key: key.to_owned(), function }));
        }
        if order.is_some() {
            return Err(refused(GeometryError::OptionTwice { key: key.to_owned(), function }));
        }
        order = Some(match value.to_ascii_lowercase().as_str() {
            "lat-long" | "srid-defined" => AxisOrder::LatLong,
            "long-lat" => AxisOrder::LongLat,
            _ => return Err(refused(GeometryError::OptionValue { value: value.to_owned(), function })),
        });
    }
    // The only geographic system that there is has latitudes first.
    Ok(order.unwrap_or(AxisOrder::LatLong))
}

/// A shape between a value and what comes or goes: geographic systems have another order of axes there.
fn turned(shape: Shape, system: Option<ReferenceSystem>, order: AxisOrder) -> Shape {
    match system {
        Some(system) if system.is_geographic && order == AxisOrder::LatLong => shape.swapped(),
        _ => shape,
    }
}

/// Degrees as MySQL turns them into radians before it looks at them: -180 is a little more than -π.
const DEGREE: f64 = 0.017453292519943278;

fn longitude_is_out(v: f64) -> bool {
    let angle = v * DEGREE;
    angle.is_nan() || angle <= -PI || angle > PI
}

fn latitude_is_out(v: f64) -> bool {
    let angle = v * DEGREE;
    angle.is_nan() || angle.abs() > FRAC_PI_2
}

fn shown(v: f64) -> String {
    format!("{v:.6}")
}

/// Refuses angles that there are not, where a system has angles.
fn check_angles(
    geometry: &mut Geometry,
    longitude: impl Fn(String) -> GeometryError,
    latitude: impl Fn(String) -> GeometryError,
) -> EvalResult<()> {
    if !ReferenceSystem::by_id(geometry.srid).is_some_and(|system| system.is_geographic) {
        return Ok(());
    }
    geometry.shape.try_each(&mut |&mut [x, y]| {
        if longitude_is_out(x) {
            return Err(refused(longitude(shown(x))));
        }
        if latitude_is_out(y) {
            return Err(refused(latitude(shown(y))));
        }
        Ok(())
    })
}

/// What a client gave as a value; `source_form` is WKT or WKB.
fn received<'a>(
    args: &[Datum<'_>],
    wanted: GeometryType,
    parse: fn(&[u8]) -> Option<Shape>,
    source_form: &'static str,
    function: &'static str,
) -> EvalResult<Datum<'a>> {
    if has_null(args) {
        return Ok(Datum::Null);
    }
    let srid = srid_of(args.get(1), function)?;
    let system = system(srid)?;
    let order = axis_order(args.get(2), function)?;
    let shape = parse(bytes(&args[0])).ok_or(refused(GeometryError::InvalidData(function)))?;
    if !wanted.holds(shape.ty()) {
        let ty = shape.ty().upper_name();
        return Err(refused(GeometryError::UnexpectedType { source_form, ty, function }));
    }
    let mut geometry = Geometry { srid, shape: turned(shape, Some(system), order) };
    check_angles(
        &mut geometry,
        |value| GeometryError::Longitude { value, function },
        |value| GeometryError::Latitude { value, function },
    )?;
    Ok(made(&geometry))
}

fn of_client(binary: &[u8]) -> Option<Shape> {
    wkb::read(binary, wkb::Source::Client)
}

macro_rules! received {
    ($($name:ident $ty:ident $parse:expr, $form:literal, $function:literal;)*) => {
        $(pub(crate) fn $name<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
            received(args, GeometryType::$ty, $parse, $form, $function)
        })*
    };
}

received! {
    geometry_from_text Geometry wkt::parse, "WKT", "st_geomfromtext";
    point_from_text Point wkt::parse, "WKT", "st_pointfromtext";
    line_from_text LineString wkt::parse, "WKT", "st_linefromtext";
    polygon_from_text Polygon wkt::parse, "WKT", "st_polyfromtext";
    multi_point_from_text MultiPoint wkt::parse, "WKT", "st_mpointfromtext";
    multi_line_from_text MultiLineString wkt::parse, "WKT", "st_mlinefromtext";
    multi_polygon_from_text MultiPolygon wkt::parse, "WKT", "st_mpolyfromtext";
    collection_from_text Collection wkt::parse, "WKT", "st_geomcollfromtext";
    geometry_from_binary Geometry of_client, "WKB", "st_geomfromwkb";
    point_from_binary Point of_client, "WKB", "st_pointfromwkb";
    line_from_binary LineString of_client, "WKB", "st_linefromwkb";
    polygon_from_binary Polygon of_client, "WKB", "st_polyfromwkb";
    multi_point_from_binary MultiPoint of_client, "WKB", "st_mpointfromwkb";
    multi_line_from_binary MultiLineString of_client, "WKB", "st_mlinefromwkb";
    multi_polygon_from_binary MultiPolygon of_client, "WKB", "st_mpolyfromwkb";
    collection_from_binary Collection of_client, "WKB", "st_geomcollfromwkb";
}

pub(crate) fn point<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    if has_null(args) {
        return Ok(Datum::Null);
    }
    let (x, y) = (number(&args[0]), number(&args[1]));
    Ok(made(&Geometry { srid: 0, shape: Shape::Point([x, y]) }))
}

fn number(value: &Datum<'_>) -> f64 {
    match value {
        Datum::Double(v) => *v,
        Datum::Float(v) => (*v).into(),
        _ => 0.0,
    }
}

/// The shapes that are put together to another one, each of which has to be one of `part`.
fn parts<T>(args: &[Datum<'_>], part: fn(Shape) -> Option<T>, function: &'static str) -> EvalResult<Vec<T>> {
    let one = |value: &Datum<'_>| {
        part(read(value, function)?.shape).ok_or(refused(GeometryError::WrongArguments(function.to_owned())))
    };
    args.iter().map(one).collect()
}

fn as_point(shape: Shape) -> Option<Position> {
    if let Shape::Point(at) = shape { Some(at) } else { None }
}

fn as_line(shape: Shape) -> Option<Vec<Position>> {
    if let Shape::LineString(line) = shape { Some(line) } else { None }
}

fn as_polygon(shape: Shape) -> Option<Vec<Vec<Position>>> {
    if let Shape::Polygon(rings) = shape { Some(rings) } else { None }
}

/// A value of what was put together. It is in no system, whatever its parts are in.
fn together<'a>(shape: Shape, function: &'static str) -> EvalResult<Datum<'a>> {
    let is_whole = match &shape {
        Shape::LineString(line) => line.len() >= 2,
        Shape::Polygon(rings) => rings.iter().all(|ring| crate::geometry::is_ring(ring)),
        _ => true,
    };
    match is_whole {
        true => Ok(made(&Geometry { srid: 0, shape })),
        false => Err(refused(GeometryError::InvalidData(function))),
    }
}

macro_rules! together {
    ($($name:ident $shape:ident $part:expr, $function:literal;)*) => {
        $(pub(crate) fn $name<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
            if has_null(args) {
                return Ok(Datum::Null);
            }
            together(Shape::$shape(parts(args, $part, $function)?), $function)
        })*
    };
}

together! {
    line_string LineString as_point, "linestring";
    polygon Polygon as_line, "polygon";
    multi_point MultiPoint as_point, "multipoint";
    multi_line_string MultiLineString as_line, "multilinestring";
    multi_polygon MultiPolygon as_polygon, "multipolygon";
    collection Collection Some, "geometrycollection";
}

pub(crate) fn as_text<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    const NAME: &str = "st_astext";
    if has_null(args) {
        return Ok(Datum::Null);
    }
    let order = axis_order(args.get(1), NAME)?;
    let mut geometry = read(&args[0], NAME)?;
    // There is no text of what is no number.
    if !geometry.shape.is_finite() {
        return Ok(Datum::Null);
    }
    let mut text = Vec::new();
    wkt::write(&turned(geometry.shape, ReferenceSystem::by_id(geometry.srid), order), &mut text);
    Ok(from_buffer(text))
}

pub(crate) fn as_binary<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    const NAME: &str = "st_aswkb";
    if has_null(args) {
        return Ok(Datum::Null);
    }
    let order = axis_order(args.get(1), NAME)?;
    let geometry = read(&args[0], NAME)?;
    let mut binary = Vec::new();
    wkb::write(&turned(geometry.shape, ReferenceSystem::by_id(geometry.srid), order), &mut binary);
    Ok(Datum::Bytes(binary.into()))
}

/// `ST_ASGEOJSON(value, digits after the point, options)`
pub(crate) fn as_geojson<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    const NAME: &str = "st_asgeojson";
    /// More digits than this no number has.
    const MOST_DECIMALS: i64 = 30;
    if has_null(args) {
        return Ok(Datum::Null);
    }
    let whole = |at: usize, kind: &'static str, most: i64| match args.get(at) {
        None => Ok(None),
        Some(Datum::Int(v)) if (0..=most).contains(v) => Ok(Some(*v)),
        Some(Datum::UInt(v)) if i64::try_from(*v).is_ok_and(|v| v <= most) => Ok(Some(*v as i64)),
        Some(other) => {
            let value = match other {
                Datum::UInt(v) => v.to_string(),
                Datum::Int(v) => v.to_string(),
                _ => String::new(),
            };
            Err(EvalError::IncorrectForFunction { kind, value, function: NAME })
        }
    };
    let decimals = whole(1, "max decimal digits", i64::from(i32::MAX))?;
    let options = whole(2, "options", 7)?.unwrap_or(0);
    let mut geometry = read(&args[0], NAME)?;
    let parts = geojson::Parts {
        bounding_box: options & 1 != 0,
        short_system: options & 2 != 0,
        long_system: options & 4 != 0,
    };
    let decimals = decimals.filter(|decimals| *decimals <= MOST_DECIMALS).map(|decimals| decimals as u8);
    let document = geojson::document(&mut geometry, decimals, parts).encode().map_err(EvalError::Json)?;
    Ok(Datum::Bytes(document.into()))
}

pub(crate) fn srid<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    const NAME: &str = "st_srid";
    if has_null(args) {
        return Ok(Datum::Null);
    }
    let mut geometry = read(&args[0], NAME)?;
    if args.len() == 1 {
        return Ok(Datum::Int(geometry.srid.into()));
    }
    geometry.srid = system(srid_of(args.get(1), NAME)?)?.id;
    check_angles(
        &mut geometry,
        |value| GeometryError::LongitudeOfParameter { value, function: NAME },
        |value| GeometryError::LatitudeOfParameter { value, function: NAME },
    )?;
    Ok(made(&geometry))
}

/// Which of a position's numbers is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    /// The system's first and second one.
    First,
    Second,
    Latitude,
    Longitude,
}

/// A coordinate of a point; with another argument, the point that has this one instead.
fn coordinate<'a>(args: &[Datum<'_>], axis: Axis, function: &'static str) -> EvalResult<Datum<'a>> {
    if has_null(args) {
        return Ok(Datum::Null);
    }
    let Geometry { srid, shape } = read(&args[0], function)?;
    let Shape::Point(mut at) = shape else {
        let ty = shape.ty().upper_name();
        return Err(refused(GeometryError::UnexpectedType { source_form: "POINT", ty, function }));
    };
    let system = system(srid)?;
    if matches!(axis, Axis::Latitude | Axis::Longitude) && !system.is_geographic {
        return Err(refused(GeometryError::NotGeographic { srid, function }));
    }
    // In the value, x is the longitude.
    let is_x = match axis {
        Axis::First => !system.is_geographic,
        Axis::Second => system.is_geographic,
        Axis::Latitude => false,
        Axis::Longitude => true,
    };
    let own = &mut at[usize::from(!is_x)];
    let Some(other) = args.get(1) else { return Ok(Datum::Double(*own)) };
    *own = number(other);
    let value = shown(*own);
    if system.is_geographic && is_x && longitude_is_out(*own) {
        return Err(refused(GeometryError::Longitude { value, function }));
    }
    if system.is_geographic && !is_x && latitude_is_out(*own) {
        return Err(refused(GeometryError::Latitude { value, function }));
    }
    Ok(made(&Geometry { srid, shape: Shape::Point(at) }))
}

pub(crate) fn x<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    coordinate(args, Axis::First, "st_x")
}

pub(crate) fn y<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    coordinate(args, Axis::Second, "st_y")
}

pub(crate) fn latitude<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    coordinate(args, Axis::Latitude, "st_latitude")
}

pub(crate) fn longitude<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    coordinate(args, Axis::Longitude, "st_longitude")
}

pub(crate) fn geometry_type<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    if has_null(args) {
        return Ok(Datum::Null);
    }
    Ok(string(read(&args[0], "st_geometrytype")?.shape.ty().upper_name()))
}

pub(crate) fn is_empty<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    if has_null(args) {
        return Ok(Datum::Null);
    }
    Ok(Datum::Int(read(&args[0], "st_isempty")?.shape.is_empty().into()))
}
