//! The binary form: MySQL's own layout of documents, so that JSON_STORAGE_SIZE means the same.
//!
//! ```text
//!  document   ┌──────┬───────┐
//!             │ kind │ value │
//!             └──────┴───────┘
//!  container  ┌───────┬──────┬────────────────┬──────────────────┬───────┬────────┐
//!             │ count │ size │ names (object) │ entries          │ names │ values │
//!             │       │      │ offset, length │ kind, offset     │       │        │
//!             └───────┴──────┴────────────────┴──────────────────┴───────┴────────┘
//! ```
//!
//! Counts, sizes and offsets have two bytes in a container of up to 65,535 bytes, and four in a large one; lengths of names
//! have two. Offsets count from the container's beginning. Small values stand in their entry in place of the offset:
//! literals and integers of 16 bits, in large containers those of 32 bits too. Strings and opaque values begin with their
//! length, seven bits a byte, lowest first. All integers are little-endian.
//!
//! Invariants:
//! 1. Names are in the order of `tree::name_order` and distinct: a member is found by binary search.
//! 2. What is out of bounds reads as null; nothing here panics on any bytes.

use crate::decimal::Decimal;
use crate::json::tree::{Json, Map, distinct_members, name_order};
use crate::json::{JsonError, MAX_DEPTH, opaque, packed};

pub(super) mod kind {
    pub const SMALL_OBJECT: u8 = 0;
    pub const LARGE_OBJECT: u8 = 1;
    pub const SMALL_ARRAY: u8 = 2;
    pub const LARGE_ARRAY: u8 = 3;
    pub const LITERAL: u8 = 4;
    pub const INT16: u8 = 5;
    pub const UINT16: u8 = 6;
    pub const INT32: u8 = 7;
    pub const UINT32: u8 = 8;
    pub const INT64: u8 = 9;
    pub const UINT64: u8 = 10;
    pub const DOUBLE: u8 = 11;
    pub const STRING: u8 = 12;
    pub const OPAQUE: u8 = 15;
}

pub(super) mod literal {
    pub const NULL: u8 = 0;
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
}

/// Where a value stands in a document's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    kind: u8,
    /// From the value's first byte to the document's end, or further.
    data: &'a [u8],
}

/// Tells the values of one document from one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(usize, u8);

/// What a node is.
#[derive(Clone, Debug)]
pub enum JsonRef<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    String(&'a str),
    Date(i32),
    DateTime(i64),
    Time(i64),
    Opaque { kind: u8, bytes: &'a [u8] },
    Array(Array<'a>),
    Object(Object<'a>),
}

/// The elements of an array.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a>(Container<'a>);

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a>(Container<'a>);

#[derive(Clone, Copy, Debug)]
struct Container<'a> {
    data: &'a [u8],
    large: bool,
    /// Where the entries begin.
    entries: usize,
}

fn bytes_at<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    data.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn width(large: bool) -> usize {
    if large { 4 } else { 2 }
}

impl<'a> Container<'a> {
    fn new(data: &'a [u8], large: bool, is_object: bool) -> Self {
        let mut container = Self { data, large, entries: 2 * width(large) };
        if is_object {
            container.entries += container.count() * (width(large) + 2);
        }
        container
    }

    fn offset(&self, at: usize) -> usize {
        match self.large {
            true => u32::from_le_bytes(bytes_at(self.data, at)) as usize,
            false => u16::from_le_bytes(bytes_at(self.data, at)).into(),
        }
    }

    /// No more than there are bytes for.
    fn count(&self) -> usize {
        self.offset(0).min(self.data.len() / (1 + width(self.large)))
    }

    fn size(&self) -> usize {
        self.offset(width(self.large))
    }

    fn value(&self, index: usize) -> Node<'a> {
        let at = self.entries + index * (1 + width(self.large));
        let Some(&kind) = self.data.get(at) else { return Node::NULL };
        let data = match is_inlined(kind, self.large) {
            true => self.data.get(at + 1..),
            // What would stand before its entry is no value of this container: documents have no circles.
            false => self.data.get(self.offset(at + 1)..).filter(|rest| rest.len() < self.data.len()),
        };
        data.map_or(Node::NULL, |data| Node { kind, data })
    }

    fn name(&self, index: usize) -> &'a str {
        std::str::from_utf8(self.name_bytes(index)).unwrap_or_default()
    }

    fn name_bytes(&self, index: usize) -> &'a [u8] {
        let at = 2 * width(self.large) + index * (width(self.large) + 2);
        let start = self.offset(at);
        let len = usize::from(u16::from_le_bytes(bytes_at(self.data, at + width(self.large))));
        self.data.get(start..start + len).unwrap_or_default()
    }
}

fn is_inlined(kind: u8, large: bool) -> bool {
    match kind {
        kind::LITERAL | kind::INT16 | kind::UINT16 => true,
        kind::INT32 | kind::UINT32 => large,
        _ => false,
    }
}

impl<'a> Array<'a> {
    pub fn len(&self) -> usize {
        self.0.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Option<Node<'a>> {
        (index < self.len()).then(|| self.0.value(index))
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = Node<'a>> {
        (0..self.len()).map(move |i| self.0.value(i))
    }
}

impl<'a> Object<'a> {
    pub(super) fn node(&self) -> Node<'a> {
        let kind = if self.0.large { kind::LARGE_OBJECT } else { kind::SMALL_OBJECT };
        Node { kind, data: self.0.data }
    }

    pub fn len(&self) -> usize {
        self.0.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, name: &str) -> Option<Node<'a>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match name_order(self.0.name(middle), name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(self.0.value(middle)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// As [`Self::get`], of a member that is most likely where it was in the document before: `at`, which is kept up.
    pub(super) fn get_near(&self, name: &str, at: &mut usize) -> Option<Node<'a>> {
        if *at < self.len() && self.0.name_bytes(*at) == name.as_bytes() {
            return Some(self.0.value(*at));
        }
        let found = self.get(name)?;
        *at = (0..self.len()).find(|&i| self.0.name_bytes(i) == name.as_bytes()).unwrap_or(0);
        Some(found)
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = (&'a str, Node<'a>)> {
        (0..self.len()).map(move |i| (self.0.name(i), self.0.value(i)))
    }
}

/// Bytes behind their length; where they end, too.
fn sized(data: &[u8], start: usize) -> (&[u8], usize) {
    let mut len = 0usize;
    for (i, byte) in data.iter().skip(start).take(5).enumerate() {
        len |= usize::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            let at = start + i + 1;
            return (data.get(at..at + len).unwrap_or_default(), at + len);
        }
    }
    (&[], start)
}

pub(super) fn push_len(mut len: usize, to: &mut Vec<u8>) {
    while len >= 0x80 {
        to.push(len as u8 | 0x80);
        len >>= 7;
    }
    to.push(len as u8);
}

fn len_size(len: usize) -> usize {
    (1 + len.checked_ilog2().unwrap_or(0) / 7) as usize
}

impl<'a> Node<'a> {
    pub const NULL: Node<'static> = Node { kind: kind::LITERAL, data: &[literal::NULL] };

    /// The root of a document. No bytes are null.
    pub fn new(document: &'a [u8]) -> Self {
        match document.split_first() {
            Some((&kind, data)) => Self { kind, data },
            None => Self::NULL,
        }
    }

    /// Which of a document's values it is.
    pub fn place(&self) -> Place {
        Place(self.data.as_ptr() as usize, self.kind)
    }

    pub fn view(&self) -> JsonRef<'a> {
        let data = self.data;
        match self.kind {
            kind::SMALL_OBJECT | kind::LARGE_OBJECT => {
                JsonRef::Object(Object(Container::new(data, self.kind == kind::LARGE_OBJECT, true)))
            }
            kind::SMALL_ARRAY | kind::LARGE_ARRAY => {
                JsonRef::Array(Array(Container::new(data, self.kind == kind::LARGE_ARRAY, false)))
            }
            kind::LITERAL => match data.first() {
                Some(&literal::TRUE) => JsonRef::Bool(true),
                Some(&literal::FALSE) => JsonRef::Bool(false),
                _ => JsonRef::Null,
            },
            kind::INT16 => JsonRef::Int(i16::from_le_bytes(bytes_at(data, 0)).into()),
            kind::UINT16 => JsonRef::UInt(u16::from_le_bytes(bytes_at(data, 0)).into()),
            kind::INT32 => JsonRef::Int(i32::from_le_bytes(bytes_at(data, 0)).into()),
            kind::UINT32 => JsonRef::UInt(u32::from_le_bytes(bytes_at(data, 0)).into()),
            kind::INT64 => JsonRef::Int(i64::from_le_bytes(bytes_at(data, 0))),
            kind::UINT64 => JsonRef::UInt(u64::from_le_bytes(bytes_at(data, 0))),
            kind::DOUBLE => JsonRef::Double(f64::from_le_bytes(bytes_at(data, 0))),
            kind::STRING => JsonRef::String(std::str::from_utf8(sized(data, 0).0).unwrap_or_default()),
            kind::OPAQUE => {
                let of_type = data.first().copied().unwrap_or(opaque::VAR_BINARY);
                let bytes = sized(data, 1).0;
                let packed = || i64::from_le_bytes(bytes_at(bytes, 0));
                let read = match of_type {
                    opaque::DATE => packed::unpack_date(packed()).map(JsonRef::Date),
                    opaque::TIME => packed::unpack_time(packed()).map(JsonRef::Time),
                    opaque::DATETIME | opaque::TIMESTAMP => {
                        packed::unpack_datetime(packed()).map(JsonRef::DateTime)
                    }
                    opaque::DECIMAL => Some(JsonRef::Decimal(read_decimal(bytes))),
                    _ => None,
                };
                read.unwrap_or(JsonRef::Opaque { kind: of_type, bytes })
            }
            _ => JsonRef::Null,
        }
    }

    /// Whether a number has the kind that [`Json::encode`] gives it, and so comes out of writing it as the same bytes.
    pub(super) fn is_shortest(&self) -> bool {
        match self.view() {
            JsonRef::Int(v) if i16::try_from(v).is_ok() => self.kind == kind::INT16,
            JsonRef::Int(v) if i32::try_from(v).is_ok() => self.kind == kind::INT32,
            JsonRef::UInt(v) if u16::try_from(v).is_ok() => self.kind == kind::UINT16,
            JsonRef::UInt(v) if u32::try_from(v).is_ok() => self.kind == kind::UINT32,
            _ => true,
        }
    }

    /// Bytes of the value, its kind not counted.
    pub(crate) fn size(&self) -> usize {
        let size = match self.kind {
            kind::SMALL_OBJECT | kind::SMALL_ARRAY => Container::new(self.data, false, false).size(),
            kind::LARGE_OBJECT | kind::LARGE_ARRAY => Container::new(self.data, true, false).size(),
            kind::LITERAL => 1,
            kind::INT16 | kind::UINT16 => 2,
            kind::INT32 | kind::UINT32 => 4,
            kind::INT64 | kind::UINT64 | kind::DOUBLE => 8,
            kind::STRING => sized(self.data, 0).1,
            kind::OPAQUE => sized(self.data, 1).1,
            _ => 0,
        };
        size.min(self.data.len())
    }

    /// The value as a document of its own.
    pub fn to_document(&self) -> Vec<u8> {
        let size = self.size();
        let mut document = Vec::with_capacity(1 + size);
        document.push(self.kind);
        document.extend_from_slice(&self.data[..size]);
        document
    }

    pub fn to_json(&self) -> Json {
        self.to_json_within(MAX_DEPTH + 1)
    }

    fn to_json_within(self, depth: usize) -> Json {
        if depth == 0 {
            return Json::Null;
        }
        match self.view() {
            JsonRef::Null => Json::Null,
            JsonRef::Bool(v) => Json::Bool(v),
            JsonRef::Int(v) => Json::Int(v),
            JsonRef::UInt(v) => Json::UInt(v),
            JsonRef::Double(v) => Json::Double(v),
            JsonRef::Decimal(v) => Json::Decimal(v),
            JsonRef::String(v) => Json::String(v.to_owned()),
            JsonRef::Date(v) => Json::Date(v),
            JsonRef::DateTime(v) => Json::DateTime(v),
            JsonRef::Time(v) => Json::Time(v),
            JsonRef::Opaque { kind, bytes } => Json::Opaque { kind, bytes: bytes.to_vec() },
            JsonRef::Array(array) => {
                Json::Array(array.iter().map(|element| element.to_json_within(depth - 1)).collect())
            }
            JsonRef::Object(object) => Json::Object(Map::from_members(
                object
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.to_json_within(depth - 1)))
                    .collect(),
            )),
        }
    }

    /// 1 for a scalar or an empty container, and 1 more for each level.
    pub fn depth(&self) -> usize {
        1 + match self.view() {
            JsonRef::Array(array) => array.iter().map(|element| element.depth()).max().unwrap_or(0),
            JsonRef::Object(object) => object.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Containers in one another, with this one: 0 for a scalar.
    fn nesting(&self) -> usize {
        match self.view() {
            JsonRef::Array(array) => 1 + array.iter().map(|element| element.nesting()).max().unwrap_or(0),
            JsonRef::Object(object) => 1 + object.iter().map(|(_, value)| value.nesting()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Elements or members, as JSON_LENGTH counts them; 1 of a scalar.
    pub fn length(&self) -> usize {
        match self.view() {
            JsonRef::Array(array) => array.len(),
            JsonRef::Object(object) => object.len(),
            _ => 1,
        }
    }

    pub fn is_scalar(&self) -> bool {
        self.kind > kind::LARGE_ARRAY
    }

    pub fn is_null(&self) -> bool {
        matches!(self.view(), JsonRef::Null)
    }

    /// As JSON_TYPE names it.
    pub fn type_name(&self) -> &'static str {
        match self.view() {
            JsonRef::Null => "NULL",
            JsonRef::Bool(_) => "BOOLEAN",
            JsonRef::Int(_) => "INTEGER",
            JsonRef::UInt(_) => "UNSIGNED INTEGER",
            JsonRef::Double(_) => "DOUBLE",
            JsonRef::Decimal(_) => "DECIMAL",
            JsonRef::String(_) => "STRING",
            JsonRef::Date(_) => "DATE",
            JsonRef::DateTime(_) => "DATETIME",
            JsonRef::Time(_) => "TIME",
            JsonRef::Opaque { kind: opaque::BIT, .. } => "BIT",
            JsonRef::Opaque { kind: opaque::VAR_BINARY | opaque::BINARY | 249..=252, .. } => "BLOB",
            JsonRef::Opaque { .. } => "OPAQUE",
            JsonRef::Array(_) => "ARRAY",
            JsonRef::Object(_) => "OBJECT",
        }
    }

    /// The text that the value has as a string of SQL: that of a string is without quotation marks and escapes.
    pub fn unquoted(&self) -> String {
        let mut text = Vec::new();
        super::print::write_unquoted(*self, &mut text);
        String::from_utf8(text).expect("documents print as text")
    }

    pub fn text(&self) -> String {
        let mut text = Vec::new();
        super::print::write(*self, &mut text);
        String::from_utf8(text).expect("documents print as text")
    }
}

/// Precision, scale, and the digits in MySQL's binary format of decimals: nine in four bytes.
fn push_decimal(v: &Decimal, to: &mut Vec<u8>) {
    let mut text = Vec::new();
    v.abs().write(&mut text);
    let (int, fraction) = match text.iter().position(|b| *b == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (&text[..], &[][..]),
    };
    to.push((int.len() + fraction.len()) as u8);
    to.push(fraction.len() as u8);
    let start = to.len();
    let (first, whole) = int.split_at(int.len() % 9);
    let value = |digits: &[u8]| digits.iter().fold(0u32, |v, b| v * 10 + u32::from(b - b'0'));
    let mut group = |digits: &[u8]| {
        let bytes = GROUP_BYTES[digits.len()];
        to.extend_from_slice(&value(digits).to_be_bytes()[4 - bytes..]);
    };
    group(first);
    whole.chunks(9).for_each(&mut group);
    fraction.chunks(9).for_each(&mut group);
    if v.is_negative() {
        to[start..].iter_mut().for_each(|b| *b = !*b);
    }
    if let Some(first) = to.get_mut(start) {
        *first ^= 0x80;
    }
}

/// Bytes that so many digits take.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

fn read_decimal(bytes: &[u8]) -> Decimal {
    let [precision, scale] = bytes_at(bytes, 0);
    let mut digits = bytes.get(2..).unwrap_or_default().to_vec();
    let negative = digits.first().is_some_and(|b| b & 0x80 == 0);
    if let Some(first) = digits.first_mut() {
        *first ^= 0x80;
    }
    if negative {
        digits.iter_mut().for_each(|b| *b = !*b);
    }
    let int = usize::from(precision.saturating_sub(scale));
    let mut text = if negative { "-0".to_owned() } else { "0".to_owned() };
    let mut at = 0;
    let mut group = |count: usize, text: &mut String| {
        let size = GROUP_BYTES[count];
        let value =
            digits.get(at..at + size).unwrap_or_default().iter().fold(0u32, |v, b| v << 8 | u32::from(*b));
        at += size;
        if count > 0 {
            text.push_str(&format!("{value:0count$}"));
        }
    };
    group(int % 9, &mut text);
    (0..int / 9).for_each(|_| group(9, &mut text));
    text.push('.');
    (0..usize::from(scale) / 9).for_each(|_| group(9, &mut text));
    group(usize::from(scale) % 9, &mut text);
    Decimal::parse_prefix(text.as_bytes()).value
}

/// The size of each value of a tree, in the order in which it is walked: children are measured before the size of their
/// container says how wide its offsets are.
struct Sizes {
    /// Containers alone: bytes, and whether it is large.
    containers: Vec<(usize, bool)>,
}

impl Sizes {
    fn measure(&mut self, value: &Json, depth: usize) -> Result<usize, JsonError> {
        let (is_object, len) = match value {
            Json::Array(elements) => (false, elements.len()),
            Json::Object(members) => (true, members.len()),
            scalar => return Ok(scalar_size(scalar)),
        };
        if depth >= MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        let at = self.containers.len();
        self.containers.push((0, false));
        let (mut small, mut large) = (0usize, 0usize);
        let mut add = |this: &mut Self, child: &Json| {
            let size = this.measure(child, depth + 1)?;
            let kind = scalar_kind(child);
            small += if kind.is_some_and(|kind| is_inlined(kind, false)) { 0 } else { size };
            large += if kind.is_some_and(|kind| is_inlined(kind, true)) { 0 } else { size };
            Ok(())
        };
        let mut names = 0;
        match value {
            Json::Array(elements) => elements.iter().try_for_each(|element| add(self, element))?,
            Json::Object(members) => {
                for (name, child) in members.iter() {
                    if name.len() > usize::from(u16::MAX) {
                        return Err(JsonError::KeyTooLong);
                    }
                    names += name.len();
                    add(self, child)?;
                }
            }
            _ => {}
        }
        let header = |width: usize| 2 * width + len * ((1 + width) + if is_object { width + 2 } else { 0 });
        let (small, large) = (small + names + header(2), large + names + header(4));
        let is_large = small > usize::from(u16::MAX) || len > usize::from(u16::MAX);
        let size = if is_large { large } else { small };
        if u32::try_from(size).is_err() {
            return Err(JsonError::TooBig);
        }
        self.containers[at] = (size, is_large);
        Ok(size)
    }
}

/// `None` for containers.
fn scalar_kind(value: &Json) -> Option<u8> {
    Some(match value {
        Json::Null | Json::Bool(_) => kind::LITERAL,
        Json::Int(v) => match v {
            -0x8000..0x8000 => kind::INT16,
            -0x8000_0000..0x8000_0000 => kind::INT32,
            _ => kind::INT64,
        },
        Json::UInt(v) => match v {
            0..0x1_0000 => kind::UINT16,
            0x1_0000..0x1_0000_0000 => kind::UINT32,
            _ => kind::UINT64,
        },
        Json::Double(_) => kind::DOUBLE,
        Json::String(_) => kind::STRING,
        Json::Decimal(_) | Json::Date(_) | Json::DateTime(_) | Json::Time(_) | Json::Opaque { .. } => {
            kind::OPAQUE
        }
        Json::Array(_) | Json::Object(_) => return None,
    })
}

fn scalar_size(value: &Json) -> usize {
    let sized = |len: usize| len_size(len) + len;
    match value {
        Json::String(text) => sized(text.len()),
        Json::Opaque { bytes, .. } => 1 + sized(bytes.len()),
        Json::Date(_) | Json::DateTime(_) | Json::Time(_) => 1 + sized(8),
        Json::Decimal(v) => {
            let mut bytes = Vec::new();
            push_decimal(v, &mut bytes);
            1 + sized(bytes.len())
        }
        other => match scalar_kind(other) {
            Some(kind::LITERAL) => 1,
            Some(kind::INT16 | kind::UINT16) => 2,
            Some(kind::INT32 | kind::UINT32) => 4,
            _ => 8,
        },
    }
}

fn push_scalar(value: &Json, to: &mut Vec<u8>) {
    let mut opaque = |kind: u8, bytes: &[u8]| {
        to.push(kind);
        push_len(bytes.len(), to);
        to.extend_from_slice(bytes);
    };
    match value {
        Json::Null => to.push(literal::NULL),
        Json::Bool(v) => to.push(if *v { literal::TRUE } else { literal::FALSE }),
        Json::Int(v) => to.extend_from_slice(&v.to_le_bytes()[..scalar_size(value)]),
        Json::UInt(v) => to.extend_from_slice(&v.to_le_bytes()[..scalar_size(value)]),
        Json::Double(v) => to.extend_from_slice(&v.to_le_bytes()),
        Json::String(text) => {
            push_len(text.len(), to);
            to.extend_from_slice(text.as_bytes());
        }
        Json::Date(days) => opaque(opaque::DATE, &packed::pack_date(*days).to_le_bytes()),
        Json::DateTime(micros) => opaque(opaque::DATETIME, &packed::pack_datetime(*micros).to_le_bytes()),
        Json::Time(micros) => opaque(opaque::TIME, &packed::pack_time(*micros).to_le_bytes()),
        Json::Opaque { kind, bytes } => opaque(*kind, bytes),
        Json::Decimal(v) => {
            let mut bytes = Vec::new();
            push_decimal(v, &mut bytes);
            opaque(opaque::DECIMAL, &bytes);
        }
        Json::Array(_) | Json::Object(_) => {}
    }
}

/// A container that is being written.
struct Writer<'s> {
    sizes: &'s mut dyn Iterator<Item = (usize, bool)>,
    to: Vec<u8>,
}

impl Writer<'_> {
    fn put(&mut self, at: usize, v: usize, large: bool) {
        match large {
            true => self.to[at..at + 4].copy_from_slice(&(v as u32).to_le_bytes()),
            false => self.to[at..at + 2].copy_from_slice(&(v as u16).to_le_bytes()),
        }
    }

    /// Appends a value; its kind goes to `kind_at`.
    fn value(&mut self, value: &Json, kind_at: usize) {
        let (is_object, len) = match value {
            Json::Array(elements) => (false, elements.len()),
            Json::Object(members) => (true, members.len()),
            scalar => {
                self.to[kind_at] = scalar_kind(scalar).expect("containers were matched");
                return push_scalar(scalar, &mut self.to);
            }
        };
        let (size, large) = self.sizes.next().expect("each container was measured");
        self.to[kind_at] = match (is_object, large) {
            (true, false) => kind::SMALL_OBJECT,
            (true, true) => kind::LARGE_OBJECT,
            (false, false) => kind::SMALL_ARRAY,
            (false, true) => kind::LARGE_ARRAY,
        };
        let (start, width) = (self.to.len(), width(large));
        let entries = start + 2 * width + if is_object { len * (width + 2) } else { 0 };
        self.to.resize(entries + len * (1 + width), 0);
        self.put(start, len, large);
        self.put(start + width, size, large);
        match value {
            Json::Array(elements) => {
                for (i, element) in elements.iter().enumerate() {
                    self.entry(element, start, entries + i * (1 + width), large);
                }
            }
            Json::Object(members) => {
                for (i, (name, _)) in members.iter().enumerate() {
                    let at = start + 2 * width + i * (width + 2);
                    self.put(at, self.to.len() - start, large);
                    self.put(at + width, name.len(), false);
                    self.to.extend_from_slice(name.as_bytes());
                }
                for (i, (_, member)) in members.iter().enumerate() {
                    self.entry(member, start, entries + i * (1 + width), large);
                }
            }
            _ => {}
        }
        debug_assert_eq!(self.to.len() - start, size, "a container has the size that was measured");
    }

    fn entry(&mut self, value: &Json, start: usize, at: usize, large: bool) {
        if let Some(kind) = scalar_kind(value).filter(|kind| is_inlined(*kind, large)) {
            let end = self.to.len();
            push_scalar(value, &mut self.to);
            let inlined = self.to.split_off(end);
            self.to[at] = kind;
            self.to[at + 1..at + 1 + inlined.len()].copy_from_slice(&inlined);
            return;
        }
        self.put(at + 1, self.to.len() - start, large);
        self.value(value, at);
    }
}

impl Json {
    /// The document in its binary form.
    pub fn encode(&self) -> Result<Vec<u8>, JsonError> {
        let mut sizes = Sizes { containers: Vec::new() };
        let size = sizes.measure(self, 0)?;
        let mut to = Vec::with_capacity(1 + size);
        to.push(0);
        let mut writer = Writer { sizes: &mut sizes.containers.into_iter(), to };
        writer.value(self, 0);
        Ok(writer.to)
    }
}

/// A document of values that there are already, which are copied as they are.
struct Composition<'v, 'a> {
    /// Of an object, in order.
    names: Option<&'v [&'v str]>,
    values: &'v [Node<'a>],
}

/// An array of values of other documents.
pub fn array_of(values: &[Node<'_>]) -> Result<Vec<u8>, JsonError> {
    Composition { names: None, values }.write()
}

/// An object of values of other documents; of members with one name, the last.
pub fn object_of(members: Vec<(&str, Node<'_>)>) -> Result<Vec<u8>, JsonError> {
    let (names, values): (Vec<_>, Vec<_>) = distinct_members(members).into_iter().unzip();
    Composition { names: Some(&names), values: &values }.write()
}

impl Composition<'_, '_> {
    fn write(&self) -> Result<Vec<u8>, JsonError> {
        let len = self.values.len();
        let (mut small, mut large, mut names) = (0, 0, 0);
        for value in self.values {
            if value.nesting() >= MAX_DEPTH {
                return Err(JsonError::TooDeep);
            }
            let size = value.size();
            small += if is_inlined(value.kind, false) { 0 } else { size };
            large += if is_inlined(value.kind, true) { 0 } else { size };
        }
        for name in self.names.unwrap_or_default() {
            if name.len() > usize::from(u16::MAX) {
                return Err(JsonError::KeyTooLong);
            }
            names += name.len();
        }
        let header =
            |width: usize| 2 * width + len * ((1 + width) + if self.names.is_some() { width + 2 } else { 0 });
        let (small, large) = (small + names + header(2), large + names + header(4));
        let is_large = small > usize::from(u16::MAX) || len > usize::from(u16::MAX);
        let size = if is_large { large } else { small };
        if u32::try_from(size).is_err() {
            return Err(JsonError::TooBig);
        }
        Ok(self.write_sized(is_large, size))
    }

    fn write_sized(&self, large: bool, size: usize) -> Vec<u8> {
        let mut to = Vec::with_capacity(1 + size);
        to.push(match (self.names.is_some(), large) {
            (true, false) => kind::SMALL_OBJECT,
            (true, true) => kind::LARGE_OBJECT,
            (false, false) => kind::SMALL_ARRAY,
            (false, true) => kind::LARGE_ARRAY,
        });
        let put = |to: &mut Vec<u8>, v: usize| match large {
            true => to.extend_from_slice(&(v as u32).to_le_bytes()),
            false => to.extend_from_slice(&(v as u16).to_le_bytes()),
        };
        put(&mut to, self.values.len());
        put(&mut to, size);
        let names = self.names.unwrap_or_default();
        let mut at =
            2 * width(large) + names.len() * (width(large) + 2) + self.values.len() * (1 + width(large));
        for name in names {
            put(&mut to, at);
            to.extend_from_slice(&(name.len() as u16).to_le_bytes());
            at += name.len();
        }
        for value in self.values {
            to.push(value.kind);
            if is_inlined(value.kind, large) {
                let mut inlined = [0; 4];
                inlined[..value.size()].copy_from_slice(&value.data[..value.size()]);
                to.extend_from_slice(&inlined[..width(large)]);
            } else {
                put(&mut to, at);
                at += value.size();
            }
        }
        names.iter().for_each(|name| to.extend_from_slice(name.as_bytes()));
        for value in self.values.iter().filter(|value| !is_inlined(value.kind, large)) {
            to.extend_from_slice(&value.data[..value.size()]);
        }
        debug_assert_eq!(to.len(), 1 + size, "a container has the size that was measured");
        to
    }
}
