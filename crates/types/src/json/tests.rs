use std::cmp::Ordering;

use super::*;
use crate::Decimal;

fn document(text: &str) -> Vec<u8> {
    parse(text).expect("a document").encode().expect("it is small")
}

fn shown(bytes: &[u8]) -> String {
    Node::new(bytes).text()
}

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % below
    }

    fn json(&mut self, depth: usize) -> Json {
        let kinds = if depth == 0 { 11 } else { 13 };
        match self.next(kinds) {
            0 => Json::Null,
            1 => Json::Bool(self.next(2) == 0),
            2 => Json::Int(self.next(5) as i64 - 2),
            3 => Json::Int((self.next(u64::MAX) as i64) >> self.next(63)),
            4 => Json::UInt(self.next(u64::MAX) >> self.next(63)),
            5 => Json::Double((self.next(9) as f64 - 4.0) / 2.0),
            6 => Json::Double(f64::from_bits(self.next(u64::MAX))),
            7 => Json::Decimal(Decimal::new(i128::from(self.next(2001)) - 1000, self.next(4) as u8)),
            8 => Json::String("ab\0\"é".chars().take(self.next(6) as usize).collect()),
            9 => Json::Date(self.next(20_000) as i32),
            10 => {
                Json::Opaque { kind: opaque::BLOB, bytes: vec![self.next(256) as u8; self.next(3) as usize] }
            }
            11 => Json::Array((0..self.next(4)).map(|_| self.json(depth - 1)).collect()),
            _ => Json::Object(Map::from_members(
                (0..self.next(4))
                    .map(|_| (["a", "b", "aa", ""][self.next(4) as usize].to_owned(), self.json(depth - 1)))
                    .collect(),
            )),
        }
    }

    fn finite(&mut self, depth: usize) -> Json {
        loop {
            let json = self.json(depth);
            if !has_nan(&json) {
                return json;
            }
        }
    }
}

fn has_nan(json: &Json) -> bool {
    match json {
        Json::Double(v) => !v.is_finite(),
        Json::Array(elements) => elements.iter().any(has_nan),
        Json::Object(members) => members.iter().any(|(_, value)| has_nan(value)),
        _ => false,
    }
}

#[test]
fn texts_are_read_and_shown_as_mysql_does() {
    for (text, wanted) in [
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("1e2", "100.0"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("-9223372036854775809", "-9.223372036854776e18"),
        ("0.1e-20", "1e-21"),
        (" [ 1 , 1.0,[ ],{ } ] ", "[1, 1.0, [], {}]"),
        (r#"{"b":1,"a":2,"aa":3,"a":4}"#, r#"{"a": 4, "b": 1, "aa": 3}"#),
        (
            r#""\ud83d\ude00 \/ \b\f\n\r\t \" \\ \u001f \u007f é""#,
            "\"😀 / \\b\\f\\n\\r\\t \\\" \\\\ \\u001f \u{7f} é\"",
        ),
    ] {
        assert_eq!(shown(&document(text)), wanted, "{text}");
    }
}

#[test]
fn errors_are_where_mysql_finds_them() {
    for (text, message, position) in [
        ("", "The document is empty.", 0),
        ("  ", "The document is empty.", 2),
        ("[1,", "Invalid value.", 3),
        ("[1", "Missing a comma or ']' after an array element.", 2),
        (r#"{"a":1,}"#, "Missing a name for object member.", 7),
        (r#"{"a" 1}"#, "Missing a colon after a name of object member.", 5),
        (r#"{"a":1"#, "Missing a comma or '}' after an object member.", 6),
        ("nux", "Invalid value.", 2),
        ("1 2", "The document root must not be followed by other values.", 2),
        (r#""abc"#, "Missing a closing quotation mark in string.", 4),
        (r#""a\qb""#, "Invalid escape character in string.", 2),
        (r#""a\u12G4""#, "Incorrect hex digit after \\u escape in string.", 2),
        (r#""a\ud800""#, "The surrogate pair in string is invalid.", 2),
        (r#""a\udc00""#, "The surrogate pair in string is invalid.", 2),
        ("\"a\u{1}\"", "Invalid encoding in string.", 2),
        ("1.", "Miss fraction part in number.", 2),
        ("1e", "Miss exponent in number.", 2),
        ("-", "Invalid value.", 1),
        ("01", "The document root must not be followed by other values.", 1),
        ("1e400", "Number too big to be stored in double.", 0),
    ] {
        assert_eq!(parse(text).expect_err(text), JsonError::Syntax { message, position }, "{text}");
    }
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(parse(&nested(MAX_DEPTH + 1)).expect_err("too deep"), JsonError::TooDeep);
    let inner = parse(&nested(MAX_DEPTH)).expect("it is not");
    assert_eq!(Json::Array(vec![inner]).encode().expect_err("too deep"), JsonError::TooDeep);
}

/// The sizes that MySQL gives.
#[test]
fn the_binary_form_is_as_long_as_mysqls() {
    for (text, size) in [
        (r#"{"a":1}"#, 13),
        (r#"[1,2,"abc",1.5,70000,true,null]"#, 42),
        (r#""abc""#, 5),
        ("1", 3),
        ("70000", 5),
    ] {
        assert_eq!(document(text).len(), size, "{text}");
    }
    for (decimal, size) in [("1.5", 7), ("123456789012.123", 13), ("-0.001", 8)] {
        let decimal = Json::Decimal(decimal.parse().expect("a decimal"));
        assert_eq!(decimal.encode().expect("small").len(), size);
    }
}

#[test]
fn documents_survive_their_binary_form() {
    let seed = 7;
    let mut random = Random(seed);
    for round in 0..20_000 {
        let json = random.finite(4);
        let bytes = json.encode().expect("it is small");
        let again = Node::new(&bytes).to_json();
        assert_eq!(format!("{json:?}"), format!("{again:?}"), "seed {seed}, round {round}");
        assert_eq!(again.encode().expect("it is small"), bytes, "seed {seed}, round {round}");
        let JsonRef::Object(object) = Node::new(&bytes).view() else { continue };
        for name in ["a", "b", "aa", "", "c"] {
            let naive = object.iter().find(|(other, _)| *other == name).map(|(_, value)| value.text());
            assert_eq!(object.get(name).map(|value| value.text()), naive, "seed {seed}, round {round}");
        }
    }
}

/// What is put together of values that there are is what their trees would be.
#[test]
fn documents_are_put_together_of_others() {
    let seed = 5;
    let mut random = Random(seed);
    for round in 0..5_000 {
        // Some are large: with names and values of some thousand bytes.
        let long = |json: Json, random: &mut Random| match random.next(40) {
            0 => Json::String("é".repeat(random.next(40_000) as usize)),
            1 => Json::UInt(random.next(1 << 33)),
            _ => json,
        };
        let values: Vec<_> = (0..random.next(6)).map(|_| random.finite(2)).collect();
        let values: Vec<_> = values.into_iter().map(|json| long(json, &mut random)).collect();
        let names: Vec<_> = values.iter().map(|_| "ab".repeat(random.next(4) as usize)).collect();
        let bytes: Vec<_> = values.iter().map(|json| json.encode().expect("it is small")).collect();
        let nodes: Vec<_> = bytes.iter().map(|bytes| Node::new(bytes)).collect();
        let members = names.iter().cloned().zip(values.iter().cloned()).collect();
        let object = Json::Object(Map::from_members(members)).encode().expect("it is not too big");
        let array = Json::Array(values).encode().expect("it is not too big");
        assert_eq!(array_of(&nodes).expect("it is not too big"), array, "seed {seed}, round {round}");
        let members = names.iter().map(String::as_str).zip(nodes).collect();
        assert_eq!(object_of(members).expect("it is not too big"), object, "seed {seed}, round {round}");
    }
    let deepest = document(&("[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH)));
    assert_eq!(array_of(&[Node::new(&deepest)]), Err(JsonError::TooDeep));
}

/// The work of a path is bounded by its legs and the document's values, the stack by the document's depth.
#[test]
fn long_paths_take_no_stack() {
    let go_on = || Ok::<_, ()>(());
    let nested = document(&("[".repeat(MAX_DEPTH) + "1" + &"]".repeat(MAX_DEPTH)));
    for (legs, count, found) in [("[0]", 300_000, 1), ("**[0]", 1_000, 1), (".a", 300_000, 0)] {
        let path = Path::parse(&format!("${}", legs.repeat(count))).expect("a path");
        assert_eq!(path.find_all(Node::new(&nested), go_on).map(|all| all.len()), Ok(found), "{legs}");
        assert_eq!(path.exists(Node::new(&nested), go_on), Ok(found > 0), "{legs}");
    }
    let wide = document(&format!("[{}]", vec!["[1, {\"a\": [2]}]"; 1_000].join(",")));
    let path = Path::parse("$**[0]**[0]").expect("a path");
    let found = path.find_all(Node::new(&wide), go_on).expect("nobody ends it");
    let places: std::collections::HashSet<_> = found.iter().map(Node::place).collect();
    assert_eq!((places.len(), found.len() > 2_000), (found.len(), true), "each value is found once");
    let long = Path::parse(&format!("$**{}", "[0]".repeat(100_000))).expect("a path");
    assert_eq!(long.find_all(Node::new(&wide), || Err("ended")).err(), Some("ended"));
}

#[test]
fn what_is_large_has_wide_offsets() {
    let long = "x".repeat(70_000);
    let nested = Json::Array(vec![
        Json::Int(70_000),
        Json::Object(Map::from_members(vec![
            ("long".into(), Json::String(long.clone())),
            ("small".into(), Json::Array(vec![Json::Int(70_000), Json::Bool(true)])),
        ])),
        Json::UInt(80_000),
    ]);
    let bytes = nested.encode().expect("it is not too big");
    assert_eq!(format!("{:?}", Node::new(&bytes).to_json()), format!("{nested:?}"));
    let path = Path::parse("$[1].small[0]").expect("a path");
    assert_eq!(path.find(Node::new(&bytes)).expect("it is there").text(), "70000");
    let name = Json::Object(Map::from_members(vec![(long, Json::Null)]));
    assert_eq!(name.encode().expect_err("too long"), JsonError::KeyTooLong);
}

/// Whatever the bytes are, nothing panics.
#[test]
fn broken_bytes_are_no_danger() {
    let mut random = Random(11);
    for _ in 0..20_000 {
        let mut bytes = random.finite(3).encode().expect("it is small");
        for _ in 0..=random.next(4) {
            let at = random.next(bytes.len() as u64) as usize;
            bytes[at] = random.next(256) as u8;
        }
        bytes.truncate(random.next(bytes.len() as u64 + 1) as usize);
        let node = Node::new(&bytes);
        let _ = (node.type_name(), node.length(), node.to_document());
        if let JsonRef::Array(array) = node.view() {
            assert!(array.iter().take(3).all(|element| !element.type_name().is_empty()));
        }
        if let JsonRef::Object(object) = node.view() {
            let _ = object.get("a").map(|value| value.type_name());
        }
    }
}

#[test]
fn keys_order_as_documents_do() {
    let seed = 3;
    let mut random = Random(seed);
    let documents: Vec<_> = (0..700).map(|_| random.finite(2).encode().expect("it is small")).collect();
    let keys: Vec<_> = documents
        .iter()
        .map(|bytes| {
            let mut key = Vec::new();
            sort_key(Node::new(bytes), &mut key);
            key
        })
        .collect();
    for (a, x) in documents.iter().zip(&keys) {
        for (b, y) in documents.iter().zip(&keys) {
            let order = compare(Node::new(a), Node::new(b));
            assert_eq!(order, x.cmp(y), "seed {seed}: {} and {}", shown(a), shown(b));
            assert!(order.is_eq() || !y.starts_with(x), "seed {seed}: {} and {}", shown(a), shown(b));
        }
    }
}

#[test]
fn kinds_come_in_mysqls_order() {
    let decimal = |text: &str| Json::Decimal(text.parse().expect("a decimal"));
    let ordered = [
        Json::Null,
        Json::Double(-1e300),
        Json::Int(i64::MIN),
        decimal("-0.5"),
        Json::Double(0.0),
        decimal("0.1"),
        Json::Double(0.2),
        Json::Int(9_007_199_254_740_992),
        Json::Int(9_007_199_254_740_993),
        Json::Int(i64::MAX),
        Json::UInt(1 << 63),
        Json::Double(1e300),
        Json::String(String::new()),
        Json::String("B".into()),
        Json::String("a".into()),
        Json::Object(Map::default()),
        Json::Array(vec![]),
        Json::Array(vec![Json::Null]),
        Json::Bool(false),
        Json::Bool(true),
        Json::Date(5),
        Json::Time(1),
        Json::DateTime(0),
        Json::Opaque { kind: opaque::VAR_BINARY, bytes: vec![] },
        Json::Opaque { kind: opaque::BLOB, bytes: vec![] },
    ];
    let bytes: Vec<_> = ordered.iter().map(|json| json.encode().expect("it is small")).collect();
    for (i, a) in bytes.iter().enumerate() {
        for (j, b) in bytes.iter().enumerate() {
            assert_eq!(compare(Node::new(a), Node::new(b)), i.cmp(&j), "{} and {}", shown(a), shown(b));
        }
    }
    let equal = |a: Json, b: Json| {
        let (a, b) = (a.encode().expect("small"), b.encode().expect("small"));
        assert_eq!(compare(Node::new(&a), Node::new(&b)), Ordering::Equal, "{} and {}", shown(&a), shown(&b));
    };
    equal(Json::Int(1), Json::Double(1.0));
    equal(decimal("0.10"), Json::Double(0.1));
    equal(Json::UInt(1 << 63), Json::Double(9_223_372_036_854_775_808.0));
    equal(Json::Double(-0.0), Json::Int(0));
}

#[test]
fn paths_lead_where_they_say() {
    for (text, path, wanted) in [
        (r#"{"a":1,"b":[2,3]}"#, "$.b[*]", "2 3"),
        (r#"{"a":1,"b":[2,{"a":3}]}"#, "$**.a", "1 3"),
        ("[1,2,3,4]", "$[1 to 2]", "2 3"),
        ("[1,2,3,4]", "$[last-2 to last]", "2 3 4"),
        ("[1,2,3]", "$[last-5 to 1]", "1 2"),
        ("[1,2,3]", "$[5 to 7]", ""),
        ("[1,2,3]", "$ [ last - 1 ]", "2"),
        ("5", "$[0]", "5"),
        ("5", "$[last]", "5"),
        ("5", "$[0 to 1]", "5"),
        ("5", "$[*]", ""),
        ("5", "$**[0]", "5"),
        ("[[1]]", "$**[0]", "[1] 1"),
        ("[1,[2,[3]]]", "$**[*]", "1 [2, [3]] 2 [3] 3"),
        (r#"{"a b":1,"é":2}"#, r#"$."a b""#, "1"),
        (r#"{"a b":1,"é":2}"#, "$.é", "2"),
    ] {
        let bytes = document(text);
        let path = Path::parse(path).expect(path);
        let found = path.find_all(Node::new(&bytes), || Ok::<_, ()>(())).expect("nobody ends it");
        let found: Vec<_> = found.iter().map(Node::text).collect();
        assert_eq!(found.join(" "), wanted, "{text} {path}");
        let first = path.find(Node::new(&bytes)).map(|node| node.text());
        assert!(path.is_wild() || first == found.first().cloned(), "{text} {path}");
    }
}

#[test]
fn bad_paths_end_where_mysql_says() {
    for (path, position) in [
        ("", 0),
        ("a", 1),
        ("$[", 2),
        ("$.", 2),
        ("$.a b", 4),
        ("$[0to 1]", 4),
        ("$[0 to1]", 5),
        ("$[3 to 1]", 8),
        ("$[last to last-1]", 16),
        ("$[4294967296]", 2),
        ("$[last+1]", 7),
        ("$[-1]", 2),
        ("$.1a", 4),
        ("$.\"a", 4),
        ("$.é.1", 6),
        ("$.a-b", 5),
        ("$**", 3),
        ("$***.a", 3),
        ("$.a**", 5),
    ] {
        assert_eq!(Path::parse(path).expect_err(path), BadPath { position }, "{path}");
    }
}

#[test]
fn members_are_merged_in_one_pass() {
    let merged = |a: &str, b: &str, patch: bool| {
        let (a, b) = (parse(a).expect("JSON"), parse(b).expect("JSON"));
        let merged = if patch { merge_patch(a, b) } else { merge_preserve(a, b) };
        shown(&merged.encode().expect("it is small"))
    };
    let (a, b) =
        (r#"{"b":1,"aa":2,"":3,"c":{"x":1}}"#, r#"{"a":null,"aa":null,"zz":4,"c":{"y":null,"x":5}}"#);
    assert_eq!(merged(a, b, true), r#"{"": 3, "b": 1, "c": {"x": 5}, "zz": 4}"#);
    assert_eq!(
        merged(a, b, false),
        r#"{"": 3, "a": null, "b": 1, "c": {"x": [1, 5], "y": null}, "aa": [2, null], "zz": 4}"#
    );
    assert_eq!(merged("{}", b, true), r#"{"c": {"x": 5}, "zz": 4}"#);
    assert_eq!(merged("[1]", r#"{"a":{"b":null}}"#, true), r#"{"a": {}}"#);
}

#[test]
fn a_tree_takes_the_room_that_is_told() {
    let text = format!("[{}{{\"k\": \"{}\"}}]", "[1, 2], ".repeat(50_000), "x".repeat(1_000_000));
    let mut told = 0;
    let tree = parse_within(&text, &mut |bytes| {
        told += bytes;
        true
    });
    assert_eq!(tree.unwrap().encode(), parse(&text).unwrap().encode());
    assert!(told > 50_000 * 2 * size_of::<Json>() + 1_000_000, "{told}");
    assert!(told < 30 * text.len(), "{told}");
    let mut left = 4;
    let refused = parse_within(&text, &mut |_| {
        left -= 1;
        left > 0
    });
    assert_eq!(refused.err(), Some(JsonError::NoRoom));
    assert_eq!(left, 0, "nothing more is asked for");
}
