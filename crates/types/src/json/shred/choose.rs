//! Which paths get a column: those that many of some sampled documents have, with values of one kind.

use std::collections::HashMap;

use arrow::array::{Array, BinaryViewArray};

use super::{Kind, MOST_NAMES, MOST_PATHS, Scalar};
use crate::json::binary::{JsonRef, Node, Object};

/// Documents that are looked at.
const SAMPLE: usize = 512;
/// Members that are looked at in one of them.
const MOST_MEMBERS: usize = 512;
/// Paths that are told apart; of more the first are counted.
const MOST_SEEN: usize = 1024;
/// Names are at most so long, in bytes.
const LONGEST_NAME: usize = 128;
/// A path is of use if at least one document in so many has it.
const RAREST: usize = 16;
/// Of a path's values, all but one in so many are of one kind.
const MIXED: usize = 8;
/// Strings that are longer on average stay in the documents, in bytes.
const LONG_STRINGS: usize = 64;

/// A path and the kind of its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenPath {
    pub names: Box<[Box<str>]>,
    pub kind: Kind,
}

/// What was seen at a path. The first is the root's.
#[derive(Default)]
struct Seen {
    parent: usize,
    name: Box<str>,
    children: HashMap<Box<str>, usize>,
    kinds: [usize; 5],
    /// Values of no kind that columns hold.
    others: usize,
    string_bytes: usize,
}

const KINDS: [Kind; 5] = [Kind::Bool, Kind::Int, Kind::UInt, Kind::Double, Kind::String];

struct Sample {
    seen: Vec<Seen>,
    /// Members that may still be looked at in the document at hand.
    left: usize,
}

/// The paths of a column of documents, those that most documents have first.
pub fn choose(documents: &BinaryViewArray) -> Vec<ChosenPath> {
    let mut sample = Sample { seen: vec![Seen::default()], left: 0 };
    let mut looked_at = 0;
    for row in (0..documents.len()).step_by(documents.len().div_ceil(SAMPLE).max(1)) {
        if documents.is_null(row) {
            continue;
        }
        looked_at += 1;
        sample.left = MOST_MEMBERS;
        if let JsonRef::Object(object) = Node::new(documents.value(row)).view() {
            sample.look(0, object, 1);
        }
    }
    let mut chosen: Vec<_> = (1..sample.seen.len()).filter_map(|at| sample.verdict(at, looked_at)).collect();
    chosen.sort_by(|(a, x), (b, y)| {
        b.cmp(a).then_with(|| x.names.len().cmp(&y.names.len())).then_with(|| x.names.cmp(&y.names))
    });
    chosen.truncate(MOST_PATHS);
    chosen.into_iter().map(|(_, path)| path).collect()
}

impl Sample {
    fn look(&mut self, parent: usize, object: Object<'_>, depth: usize) {
        for (name, node) in object.iter() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let Some(at) = self.child(parent, name) else { continue };
            let seen = &mut self.seen[at];
            match Scalar::of(node) {
                Some(scalar) => {
                    if let Some(kind) = scalar.kind() {
                        seen.kinds[kind as usize] += 1;
                    }
                    if let Scalar::String(text) = scalar {
                        seen.string_bytes += text.len();
                    }
                }
                None => seen.others += 1,
            }
            if let JsonRef::Object(object) = node.view()
                && depth < MOST_NAMES
            {
                self.look(at, object, depth + 1);
            }
        }
    }

    fn child(&mut self, parent: usize, name: &str) -> Option<usize> {
        if let Some(&at) = self.seen[parent].children.get(name) {
            return Some(at);
        }
        let at = self.seen.len();
        if at >= MOST_SEEN || name.len() > LONGEST_NAME {
            return None;
        }
        self.seen[parent].children.insert(name.into(), at);
        self.seen.push(Seen { parent, name: name.into(), ..Seen::default() });
        Some(at)
    }

    /// How many documents have a value of the kind, and the path, if it gets a column.
    fn verdict(&self, at: usize, documents: usize) -> Option<(usize, ChosenPath)> {
        let seen = &self.seen[at];
        let (kind, count) = KINDS.into_iter().zip(seen.kinds).max_by_key(|(_, count)| *count)?;
        let values = seen.kinds.iter().sum::<usize>() + seen.others;
        let is_of_one_kind = count > 0 && (values - count) * MIXED <= values;
        let is_short = kind != Kind::String || seen.string_bytes <= count * LONG_STRINGS;
        if count * RAREST < documents || !is_of_one_kind || !is_short {
            return None;
        }
        let mut names = Vec::new();
        let mut at = at;
        while at != 0 {
            names.push(self.seen[at].name.clone());
            at = self.seen[at].parent;
        }
        names.reverse();
        Some((count, ChosenPath { names: names.into(), kind }))
    }
}
