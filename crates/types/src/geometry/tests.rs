use super::*;

fn shape(text: &str) -> Shape {
    wkt::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is a shape"))
}

fn text(shape: &Shape) -> String {
    let mut text = Vec::new();
    wkt::write(shape, &mut text);
    String::from_utf8(text).expect("text is ASCII")
}

/// One of each type, as MySQL writes them.
const TEXTS: [&str; 9] = [
    "POINT(1 -2.5)",
    "LINESTRING(0 0,1e20 0.0000000001)",
    "POLYGON((0 0,10 0,10 10,0 0),(1 1,2 1,2 2,1 1))",
    "MULTIPOINT((1 2),(3 4))",
    "MULTILINESTRING((0 0,10 0),(1 1,2 1,2 2))",
    "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((0 0,-1 0,-1 -1,0 0)))",
    "GEOMETRYCOLLECTION(POINT(1 2),GEOMETRYCOLLECTION EMPTY)",
    "GEOMETRYCOLLECTION EMPTY",
    "POINT(-0 1e15)",
];

#[test]
fn texts_and_values_of_all_types() {
    for wanted in TEXTS {
        let geometry = Geometry { srid: 4326, shape: shape(wanted) };
        let bytes = geometry.to_bytes();
        assert_eq!(Geometry::read(&bytes).as_ref(), Some(&geometry));
        assert_eq!(text(&geometry.shape), wanted);
        assert_eq!(check_stored(&bytes, GeometryType::Geometry, Some(4326)), Ok(()));
        let misfit = Misfit::Srid { value: 4326, column: 0 };
        assert_eq!(check_stored(&bytes, geometry.shape.ty(), Some(0)), Err(misfit));
        // What is cut off is no value, and nothing else happens.
        for end in 0..bytes.len() {
            assert_eq!(Geometry::read(&bytes[..end]), None, "{wanted}: {end}");
        }
    }
}

#[test]
fn damaged_values_are_none() {
    for wanted in TEXTS {
        let bytes = Geometry { srid: 0, shape: shape(wanted) }.to_bytes();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if let Some(read) = Geometry::read(&damaged) {
                    assert_eq!(read.to_bytes(), damaged, "{wanted}: {at}");
                }
            }
        }
    }
}

#[test]
fn texts_that_are_none() {
    let deep = "GEOMETRYCOLLECTION(".repeat(MAX_DEPTH + 1);
    for none in [
        "",
        "POINT",
        "POINT EMPTY",
        "POINT(1)",
        "POINT(1,2)",
        "POINT(1 2 3)",
        "POINT(1 2) x",
        "POINT(1e400 2)",
        "POINT(nan 2)",
        "POINT(1e 2)",
        "LINESTRING(1 2)",
        "POLYGON((0 0,1 0,1 1,0 1))",
        "POLYGON((0 0,1 0,0 0))",
        "MULTIPOINT()",
        "MULTIPOINT((1 2),3 4)",
        "GEOMCOLLECTION(POINT(1 2))",
        &deep,
    ] {
        assert_eq!(wkt::parse(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn columns_take_their_own_types() {
    use GeometryType as G;
    for (column, value, fits) in [
        (G::Geometry, "POINT(1 2)", true),
        (G::Point, "POINT(1 2)", true),
        (G::Point, "MULTIPOINT(1 2)", false),
        (G::Collection, "MULTIPOINT(1 2)", true),
        (G::Collection, "POINT(1 2)", false),
        (G::MultiPoint, "GEOMETRYCOLLECTION(POINT(1 2))", false),
    ] {
        let bytes = Geometry { srid: 0, shape: shape(value) }.to_bytes();
        assert_eq!(check_stored(&bytes, column, None).is_ok(), fits, "{column:?} {value}");
    }
}

#[test]
fn a_client_may_send_either_byte_order() {
    let mut binary = vec![0, 0, 0, 0, 1];
    binary.extend_from_slice(&1f64.to_be_bytes());
    binary.extend_from_slice(&2f64.to_be_bytes());
    assert_eq!(wkb::read(&binary, wkb::Source::Client), Some(Shape::Point([1.0, 2.0])));
    assert_eq!(wkb::read(&binary, wkb::Source::ToStore), None);
}
