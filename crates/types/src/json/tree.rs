//! Documents as trees.

use crate::compare;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::json::opaque;
use crate::sql_type::SqlType;
use crate::temporal::TimeZone;

/// A document, or a part of one, that can be changed.
#[derive(Clone, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// What came as unsigned, or lies beyond `i64`.
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    String(String),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01, local time.
    DateTime(i64),
    /// Microseconds.
    Time(i64),
    /// Bytes of an SQL type (see [`opaque`]).
    Opaque {
        kind: u8,
        bytes: Vec<u8>,
    },
    Array(Vec<Json>),
    Object(Map),
}

/// Members in the order in which MySQL keeps them: by the length of their names, then by bytes. No name is twice.
#[derive(Clone, Debug, Default)]
pub struct Map {
    members: Vec<(String, Json)>,
}

/// The order of names in an object.
pub(super) fn name_order(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// Members in the order of names; of those with one name, the last.
pub(super) fn distinct_members<N: AsRef<str>, V>(mut members: Vec<(N, V)>) -> Vec<(N, V)> {
    // Stable, so that the last of equal names is the last of its run.
    members.sort_by(|(a, _), (b, _)| name_order(a.as_ref(), b.as_ref()));
    members.reverse();
    members.dedup_by(|(a, _), (b, _)| a.as_ref() == b.as_ref());
    members.reverse();
    members
}

impl Json {
    /// Whether there is a date or a time in it that no calendar has, such as one of zeros, which another server has written.
    pub fn has_no_dates(&self) -> bool {
        let mut pending = vec![self];
        while let Some(value) = pending.pop() {
            match value {
                Self::Opaque {
                    kind: opaque::TIMESTAMP | opaque::DATE | opaque::TIME | opaque::DATETIME,
                    ..
                } => return true,
                Self::Array(items) => pending.extend(items),
                Self::Object(members) => pending.extend(members.members.iter().map(|(_, value)| value)),
                _ => {}
            }
        }
        false
    }
}

impl Map {
    /// Of members in any order; of those with one name, the last.
    pub fn from_members(members: Vec<(String, Json)>) -> Self {
        Self { members: distinct_members(members) }
    }

    fn search(&self, name: &str) -> Result<usize, usize> {
        self.members.binary_search_by(|(other, _)| name_order(other, name))
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        self.search(name).ok().map(|at| &mut self.members[at].1)
    }

    /// Adds a member, or replaces it.
    pub fn insert(&mut self, name: String, value: Json) {
        match self.search(&name) {
            Ok(at) => self.members[at].1 = value,
            Err(at) => self.members.insert(at, (name, value)),
        }
    }

    /// The members of this map and of another one in one pass over both. `alone` says what becomes of a value of the other one whose name
    /// this one has not, `together` of two of one name; what is none is left out.
    pub fn merged(
        self,
        other: Self,
        mut alone: impl FnMut(Json) -> Option<Json>,
        mut together: impl FnMut(Json, Json) -> Option<Json>,
    ) -> Self {
        let mut members = Vec::with_capacity(self.len() + other.len());
        let mut own = self.members.into_iter().peekable();
        for (name, value) in other.members {
            while let Some(before) = own.next_if(|(own, _)| name_order(own, &name).is_lt()) {
                members.push(before);
            }
            let value = match own.next_if(|(own, _)| *own == name) {
                Some((_, old)) => together(old, value),
                None => alone(value),
            };
            members.extend(value.map(|value| (name, value)));
        }
        members.extend(own);
        Self { members }
    }

    pub fn remove(&mut self, name: &str) -> Option<Json> {
        self.search(name).ok().map(|at| self.members.remove(at).1)
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.members.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl IntoIterator for Map {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl Json {
    /// A value of an SQL type that is not JSON, as a scalar: strings are strings, not texts of documents.
    pub fn from_sql(value: &Datum<'_>, ty: &SqlType, zone: TimeZone) -> Self {
        match value {
            Datum::Null => Self::Null,
            Datum::Int(v) => Self::Int(*v),
            Datum::UInt(v) => match ty {
                SqlType::Bit { len } => Self::Opaque {
                    kind: opaque::BIT,
                    bytes: v.to_be_bytes()[8 - usize::from(len.div_ceil(8))..].to_vec(),
                },
                _ => Self::UInt(*v),
            },
            Datum::Float(v) => Self::Double((*v).into()),
            Datum::Double(v) => Self::Double(*v),
            Datum::Decimal(v) => Self::Decimal(v.clone()),
            Datum::Str(v) => Self::String(v.to_string()),
            Datum::Date(v) => Self::Date(*v),
            Datum::DateTime(v) if matches!(ty, SqlType::Timestamp { .. }) => {
                Self::DateTime(zone.to_local(*v))
            }
            Datum::DateTime(v) => Self::DateTime(*v),
            Datum::Time(v) => Self::Time(*v),
            Datum::Bytes(v) => {
                let kind = match ty {
                    SqlType::Binary { .. } => opaque::BINARY,
                    SqlType::Blob { .. } => opaque::BLOB,
                    _ => opaque::VAR_BINARY,
                };
                Self::Opaque { kind, bytes: v.to_vec() }
            }
        }
    }

    /// The value as a number of SQL; `None` for what is none. Strings are not read.
    pub fn number(&self) -> Option<Datum<'static>> {
        Some(match self {
            Self::Bool(v) => Datum::Int((*v).into()),
            Self::Int(v) => Datum::Int(*v),
            Self::UInt(v) => Datum::UInt(*v),
            Self::Double(v) => Datum::Double(*v),
            Self::Decimal(v) => Datum::Decimal(v.clone()),
            Self::Date(v) => Datum::Decimal(compare::decimal(&Datum::Date(*v))),
            Self::DateTime(v) => Datum::Decimal(compare::decimal(&Datum::DateTime(*v))),
            Self::Time(v) => Datum::Decimal(compare::decimal(&Datum::Time(*v))),
            _ => return None,
        })
    }
}
