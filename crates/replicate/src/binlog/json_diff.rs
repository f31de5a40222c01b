//! Partial updates of documents, as `binlog_row_value_options = PARTIAL_JSON` writes them: operations on the document as it
//! was before, one after the other.

use avocet_types::json::{Json, Missing, Node, Path, Present, array_insert, put, remove};

use super::bytes::Bytes;
use crate::error::{ReplicateError, Result};

/// The document after the operations; in binary form, canonical.
pub fn apply(before: &[u8], diffs: &[u8]) -> Result<Vec<u8>> {
    let mut document = Node::new(before).to_json();
    let mut diffs = Bytes::new(diffs, "a partial update of a document");
    while !diffs.is_empty() {
        let operation = diffs.u8()?;
        let path = std::str::from_utf8(diffs.packed_bytes()?).ok().and_then(|path| Path::parse(path).ok());
        let path = path.ok_or_else(|| ReplicateError::damaged("a path in a document is none"))?;
        match operation {
            0 => put(&mut document, &path, value(&mut diffs)?, Present::Replace, Missing::Ignore),
            1 => insert(&mut document, &path, value(&mut diffs)?),
            2 => remove(&mut document, &path),
            other => return Err(ReplicateError::damaged(format!("operation {other} on a document"))),
        }
    }
    document.encode().map_err(|error| ReplicateError::damaged(error.to_string()))
}

fn value(from: &mut Bytes<'_>) -> Result<Json> {
    Ok(Node::new(from.packed_bytes()?).to_json())
}

/// A member is added, an element is put before the one that stands there.
fn insert(document: &mut Json, path: &Path, value: Json) {
    match path.legs.last() {
        Some(avocet_types::json::Leg::Cell(_)) => array_insert(document, path, value),
        _ => put(document, path, value, Present::Keep, Missing::Add),
    }
}

#[cfg(test)]
mod tests {
    use avocet_types::json::parse;

    use super::*;

    fn encoded(text: &str) -> Vec<u8> {
        parse(text).expect("a document").encode().expect("encoded")
    }

    #[test]
    fn operations_change_the_document_before() {
        let mut diffs = Vec::new();
        for (operation, path, value) in [
            (0, "$.a", Some("7")),
            (1, "$.b", Some("[true]")),
            (1, "$.l[1]", Some("\"x\"")),
            (2, "$.l[0]", None),
        ] {
            diffs.push(operation);
            diffs.push(path.len() as u8);
            diffs.extend_from_slice(path.as_bytes());
            if let Some(value) = value {
                let value = encoded(value);
                diffs.push(value.len() as u8);
                diffs.extend_from_slice(&value);
            }
        }
        let after = apply(&encoded(r#"{"a": 1, "l": [1, 2]}"#), &diffs).expect("applied");
        assert_eq!(Node::new(&after).text(), r#"{"a": 7, "b": [true], "l": ["x", 2]}"#);
        for cut in 1..diffs.len() {
            let _ = apply(&encoded("{}"), &diffs[..cut]);
        }
    }
}
