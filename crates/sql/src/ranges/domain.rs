//! Values as a column can hold them: what a comparison with any value of a comparable class means for the column's
//! own values, and so for the keys of an index.
//!
//! The least that the column holds and that is above `v` is what separates the rows below `v` from those above: so it is
//! enough to know the greatest column value that is not above `v`, and whether it equals `v`.

use avocet_types::expr::ValueClass;
use avocet_types::temporal::{date_of, time_of};
use avocet_types::{Datum, Decimal, SqlType};

/// Where a value lies among the values of a column.
#[derive(Debug)]
pub enum Fit<'a> {
    Null,
    /// The column can hold it.
    Exact(Datum<'a>),
    /// Between two values that the column can hold; this is the smaller.
    Between(Datum<'a>),
    /// Below all that the column can hold.
    Below,
    Above,
    /// Several neighbouring values of the column may equal it: those from the one to the other. None below them does, and
    /// none above.
    Among(Datum<'a>, Datum<'a>),
    /// Anywhere.
    Unknown,
}

/// Whether values of `value` can be looked up among those of `column`, the comparison being made in class `met`.
pub fn comparable(column: &SqlType, met: &SqlType, value: &SqlType) -> bool {
    use ValueClass as C;
    if !has_places(column) {
        return false;
    }
    if *value == SqlType::Null {
        return true;
    }
    let (column_class, met_class, value_class) = (C::of(column), C::of(met), C::of(value));
    if met_class != value_class {
        return false;
    }
    match (column_class, met_class) {
        (C::Text, C::Text) => column.collation() == met.collation() && met.collation() == value.collation(),
        (C::Int | C::Decimal, C::Decimal | C::Double) | (C::Date, C::DateTime) => true,
        (a, b) => a == b,
    }
}

/// Whether values have places among those of a column. Documents and geometries have none: no index is on them, though one may
/// be found in a data directory of a release that made some.
fn has_places(column: &SqlType) -> bool {
    !matches!(column, SqlType::Null | SqlType::Json | SqlType::Geometry { .. })
}

/// Finds a value's place among those of a column.
#[inline]
pub fn fit<'a>(value: Datum<'a>, column: &SqlType) -> Fit<'a> {
    match (column, value) {
        (_, Datum::Null) => Fit::Null,
        (SqlType::Bool | SqlType::Int { .. } | SqlType::Year, value) => fit_int(value, column),
        (SqlType::Enum(_) | SqlType::Set(_) | SqlType::Bit { .. }, value) => fit_int(value, column),
        (SqlType::Decimal { precision, scale, .. }, Datum::Decimal(v)) => fit_decimal(&v, *precision, *scale),
        (SqlType::Decimal { precision, scale, .. }, Datum::Double(v)) => {
            decimals_near(v, *precision, *scale).unwrap_or(Fit::Unknown)
        }
        (SqlType::Double(_), Datum::Float(v)) => Fit::Exact(Datum::Double(v.into())),
        (SqlType::Float(_), Datum::Double(v)) => fit_float(v),
        (SqlType::Date, Datum::DateTime(micros)) => {
            let day = Datum::Date(date_of(micros));
            if time_of(micros) == 0 { Fit::Exact(day) } else { Fit::Between(day) }
        }
        (SqlType::Float(_), value @ Datum::Float(_))
        | (SqlType::Double(_), value @ Datum::Double(_))
        | (SqlType::Date, value @ Datum::Date(_))
        | (SqlType::DateTime { .. } | SqlType::Timestamp { .. }, value @ Datum::DateTime(_))
        | (SqlType::Time { .. }, value @ Datum::Time(_))
        | (SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. }, value @ Datum::Str(_))
        | (
            SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Blob { .. },
            value @ Datum::Bytes(_),
        ) => Fit::Exact(value),
        _ => Fit::Unknown,
    }
}

#[inline]
fn fit_int<'a>(value: Datum<'a>, column: &SqlType) -> Fit<'a> {
    let (whole, exact) = match &value {
        Datum::Int(v) => (i128::from(*v), true),
        Datum::UInt(v) => (i128::from(*v), true),
        Datum::Decimal(v) => {
            let floor = v.floor();
            match floor.as_i128() {
                Some(whole) => (whole, floor == *v),
                None if v.is_negative() => return Fit::Below,
                None => return Fit::Above,
            }
        }
        // Beyond 2^53 several integers are the same double.
        Datum::Double(v) if v.abs() < 9_007_199_254_740_992.0 => (v.floor() as i128, v.fract() == 0.0),
        Datum::Double(v) => return integers_near(*v, column),
        _ => return Fit::Unknown,
    };
    let (min, max) = column.int_range().unwrap_or((i64::MIN.into(), u64::MAX.into()));
    if whole < min {
        return Fit::Below;
    }
    if whole > max {
        return Fit::Above;
    }
    let whole = match value {
        Datum::Int(_) | Datum::UInt(_) => value,
        _ => i64::try_from(whole).map_or(Datum::UInt(whole as u64), Datum::Int),
    };
    if exact { Fit::Exact(whole) } else { Fit::Between(whole) }
}

/// The integers that may equal a double beyond 2^53, where all doubles are whole: those between its neighbours.
fn integers_near<'a>(value: f64, column: &SqlType) -> Fit<'a> {
    if value.is_nan() {
        return Fit::Unknown;
    }
    let (min, max) = column.int_range().unwrap_or((i64::MIN.into(), u64::MAX.into()));
    // What is beyond an i128 becomes its end.
    let (low, high) = (value.next_down() as i128, value.next_up() as i128);
    if high < min {
        return Fit::Below;
    }
    if low > max {
        return Fit::Above;
    }
    let datum = |v: i128| match i64::try_from(v.clamp(min, max)) {
        Ok(v) => Datum::Int(v),
        Err(_) => Datum::UInt(v.clamp(min, max) as u64),
    };
    Fit::Among(datum(low), datum(high))
}

/// The decimals that may equal a double: those between its neighbours, and one more on each side.
fn decimals_near<'a>(value: f64, precision: u8, scale: u8) -> Option<Fit<'a>> {
    let most = Decimal::max_of(precision, scale, false).to_f64();
    if value.next_down() > most {
        return Some(Fit::Above);
    }
    if value.next_up() < -most {
        return Some(Fit::Below);
    }
    let step = Decimal::new(1, scale);
    let clamped = |v: Decimal| match v.fits(precision, scale) {
        true => v,
        false => Decimal::max_of(precision, scale, v.is_negative()),
    };
    let low = Decimal::from_f64(value.next_down()).ok()?.truncate(scale.into()).sub(&step).ok()?;
    let high = Decimal::from_f64(value.next_up()).ok()?.truncate(scale.into()).add(&step).ok()?;
    let datum = |v: Decimal| Some(Datum::Decimal(clamped(v).rescale(scale).ok()?));
    Some(Fit::Among(datum(low)?, datum(high)?))
}

fn fit_decimal<'a>(value: &Decimal, precision: u8, scale: u8) -> Fit<'a> {
    let mut floor = value.truncate(scale.into());
    let exact = floor == *value;
    if !exact && value.is_negative() {
        match floor.sub(&Decimal::new(1, scale)) {
            Ok(below) => floor = below,
            Err(_) => return Fit::Unknown,
        }
    }
    if !floor.fits(precision, scale) {
        return if value.is_negative() { Fit::Below } else { Fit::Above };
    }
    match floor.rescale(scale) {
        Ok(floor) if exact => Fit::Exact(Datum::Decimal(floor)),
        Ok(floor) => Fit::Between(Datum::Decimal(floor)),
        Err(_) => Fit::Unknown,
    }
}

fn fit_float<'a>(value: f64) -> Fit<'a> {
    let narrow = value as f32;
    if narrow.is_infinite() {
        return if value < 0.0 { Fit::Below } else { Fit::Above };
    }
    match f64::from(narrow).partial_cmp(&value) {
        Some(std::cmp::Ordering::Equal) => Fit::Exact(Datum::Float(narrow)),
        Some(std::cmp::Ordering::Less) => Fit::Between(Datum::Float(narrow)),
        Some(std::cmp::Ordering::Greater) => Fit::Between(Datum::Float(narrow.next_down())),
        None => Fit::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use avocet_types::{Collation, IntWidth, LobSize, Members, RealFormat};

    fn shown(value: Datum<'_>, column: &SqlType) -> String {
        match fit(value, column) {
            Fit::Exact(v) => format!("= {v:?}"),
            Fit::Between(v) => format!("> {v:?}"),
            Fit::Among(low, high) => format!("{low:?}..{high:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_value_of_a_comparable_column_has_a_place_in_it() {
        let members = Members::new(vec!["a".into(), "b".into()], Collation::DEFAULT).expect("two members");
        let (collation, len) = (Collation::DEFAULT, 3);
        let (text, bytes) = (Datum::str("a"), Datum::bytes(b"a"));
        let real = RealFormat { unsigned: false, digits: None };
        let decimal = SqlType::Decimal { precision: 4, scale: 2, unsigned: false };
        let columns = [
            (SqlType::Bool, Datum::Int(1)),
            (SqlType::BIGINT, Datum::Int(1)),
            (SqlType::BIGINT_UNSIGNED, Datum::UInt(1)),
            (SqlType::Year, Datum::Int(2000)),
            (SqlType::Bit { len: 3 }, Datum::UInt(1)),
            (SqlType::Enum(members), Datum::UInt(1)),
            (SqlType::Set(members), Datum::UInt(1)),
            (decimal, Datum::Decimal(Decimal::new(150, 2))),
            (SqlType::Float(real), Datum::Float(1.5)),
            (SqlType::Double(real), Datum::Double(1.5)),
            (SqlType::Char { len, collation }, text.clone()),
            (SqlType::VarChar { len, collation }, text.clone()),
            (SqlType::Text { size: LobSize::Normal, collation }, text),
            (SqlType::Binary { len }, bytes.clone()),
            (SqlType::VarBinary { len }, bytes.clone()),
            (SqlType::Blob { size: LobSize::Normal }, bytes.clone()),
            (SqlType::Date, Datum::Date(1)),
            (SqlType::DateTime { fsp: 0 }, Datum::DateTime(1)),
            (SqlType::Timestamp { fsp: 0 }, Datum::DateTime(1)),
            (SqlType::Time { fsp: 0 }, Datum::Time(1)),
            (SqlType::Json, bytes.clone()),
            (SqlType::GEOMETRY, bytes),
        ];
        for (column, value) in columns {
            let has_place = matches!(fit(value, &column), Fit::Exact(_));
            assert_eq!(comparable(&column, &column, &column), has_place, "{column:?}");
        }
    }

    #[test]
    fn values_find_their_place_among_a_columns() {
        let tiny = SqlType::Int { width: IntWidth::W8, unsigned: false };
        let money = SqlType::Decimal { precision: 4, scale: 2, unsigned: false };
        let dec = |text: &str| Datum::Decimal(text.parse().expect("a decimal"));
        assert_eq!(shown(Datum::Int(200), &tiny), "Above");
        assert_eq!(shown(Datum::Int(-129), &tiny), "Below");
        assert_eq!(shown(dec("-1.5"), &tiny), "> Int(-2)");
        assert_eq!(shown(dec("3.0"), &tiny), "= Int(3)");
        assert_eq!(shown(Datum::Double(2.5), &tiny), "> Int(2)");
        let beyond = Datum::Double(9_007_199_254_740_992.0);
        assert_eq!(shown(beyond, &SqlType::BIGINT), "Int(9007199254740991)..Int(9007199254740994)");
        assert_eq!(shown(Datum::Double(1e30), &SqlType::BIGINT), "Above");
        assert_eq!(shown(Datum::Double(-1e30), &SqlType::BIGINT), "Below");
        assert_eq!(shown(Datum::Double(1e300), &money), "Above");
        let near = format!("{:?}..{:?}", dec("0.98"), dec("1.01"));
        assert_eq!(shown(Datum::Double(1.0), &money), near);
        assert!(shown(dec("1.005"), &money).starts_with("> "));
        assert_eq!(shown(dec("100"), &money), "Above");
        assert_eq!(shown(dec("-100"), &money), "Below");
        assert_eq!(shown(Datum::Null, &money), "Null");
        assert_eq!(shown(Datum::Double(0.5), &SqlType::FLOAT), "= Float(0.5)");
        assert!(shown(Datum::Double(0.1), &SqlType::FLOAT).starts_with("> Float"));
        assert_eq!(shown(Datum::DateTime(86_400_000_001), &SqlType::Date), "> Date(1)");
    }
}
