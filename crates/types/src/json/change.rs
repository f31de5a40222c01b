//! Changing parts of a document. Paths lead to one place; as when looking up, a value that is no array stands for an array
//! of itself.

use crate::json::path::{Leg, Path};
use crate::json::tree::{Json, Map};

/// What becomes of a value where a path leads to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    Keep,
    Replace,
}

/// And where it leads to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Add,
    Ignore,
}

/// The value that the legs lead to.
fn find<'j>(mut value: &'j mut Json, legs: &[Leg]) -> Option<&'j mut Json> {
    for leg in legs {
        value = match (leg, value) {
            (Leg::Member(name), Json::Object(members)) => members.get_mut(name)?,
            (Leg::Cell(index), Json::Array(elements)) => {
                let at = index.within(elements.len())?;
                &mut elements[at]
            }
            (leg, value) if leg.is_self() && !matches!(value, Json::Array(_)) => value,
            _ => return None,
        };
    }
    Some(value)
}

/// JSON_SET, JSON_INSERT, JSON_REPLACE of one path.
pub fn put(root: &mut Json, path: &Path, new: Json, present: Present, missing: Missing) {
    if let Some(found) = find(root, &path.legs) {
        if present == Present::Replace {
            *found = new;
        }
        return;
    }
    let Some((last, parents)) = path.legs.split_last().filter(|_| missing == Missing::Add) else { return };
    let Some(parent) = find(root, parents) else { return };
    match (last, parent) {
        (Leg::Member(name), Json::Object(members)) => members.insert(name.clone(), new),
        (Leg::Cell(index), Json::Array(elements)) => elements.insert(index.clamped(elements.len()), new),
        (Leg::Cell(index), scalar) => {
            let mut elements = vec![std::mem::replace(scalar, Json::Null)];
            elements.insert(index.clamped(1), new);
            *scalar = Json::Array(elements);
        }
        _ => {}
    }
}

/// JSON_ARRAY_APPEND of one path.
pub fn append(root: &mut Json, path: &Path, new: Json) {
    match find(root, &path.legs) {
        Some(Json::Array(elements)) => elements.push(new),
        Some(scalar) => *scalar = Json::Array(vec![std::mem::replace(scalar, Json::Null), new]),
        None => {}
    }
}

/// JSON_ARRAY_INSERT of one path, whose last leg is a cell.
pub fn array_insert(root: &mut Json, path: &Path, new: Json) {
    if let Some((Leg::Cell(index), parents)) = path.legs.split_last()
        && let Some(Json::Array(elements)) = find(root, parents)
    {
        elements.insert(index.clamped(elements.len()), new);
    }
}

/// JSON_REMOVE of one path, which is not `$`.
pub fn remove(root: &mut Json, path: &Path) {
    // Legs at the end that mean the value itself are passed over.
    let mut legs = &path.legs[..];
    while let Some((last, parents)) = legs.split_last() {
        match (last, find(root, parents)) {
            (Leg::Member(name), Some(Json::Object(members))) => {
                members.remove(name);
                return;
            }
            (Leg::Cell(index), Some(Json::Array(elements))) => {
                if let Some(at) = index.within(elements.len()) {
                    elements.remove(at);
                }
                return;
            }
            (last, Some(_)) if last.is_self() => legs = parents,
            _ => return,
        }
    }
}

/// JSON_MERGE_PRESERVE of two documents: arrays are put together, members of one name merged, scalars made arrays.
pub fn merge_preserve(left: Json, right: Json) -> Json {
    match (left, right) {
        (Json::Object(left), Json::Object(right)) => {
            Json::Object(left.merged(right, Some, |old, value| Some(merge_preserve(old, value))))
        }
        (left, right) => {
            let mut elements = into_elements(left);
            elements.extend(into_elements(right));
            Json::Array(elements)
        }
    }
}

fn into_elements(value: Json) -> Vec<Json> {
    match value {
        Json::Array(elements) => elements,
        other => vec![other],
    }
}

/// JSON_MERGE_PATCH of two documents (RFC 7396).
pub fn merge_patch(target: Json, patch: Json) -> Json {
    let Json::Object(patch) = patch else { return patch };
    let target = match target {
        Json::Object(target) => target,
        _ => Map::default(),
    };
    let patched = |old: Json, value: Json| match value {
        Json::Null => None,
        value => Some(merge_patch(old, value)),
    };
    Json::Object(target.merged(patch, |value| patched(Json::Null, value), patched))
}
