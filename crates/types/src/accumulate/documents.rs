//! The documents of a JSON_ARRAYAGG or JSON_OBJECTAGG.
//!
//! Each row comes as a document of its own: an array of one element, an object of one member. A part of a group is put
//! together as the whole is, so that results can be put together again.

use std::collections::VecDeque;

use crate::expr::{EvalError, EvalResult};
use crate::json::{JsonRef, Node, array_of, object_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gathered {
    /// Elements, in the order in which they come.
    Array,
    /// Members; of those with one name, the last that comes.
    Object,
}

/// What a document takes besides its bytes, about: its place, its allocation, and its element or member when all are put
/// together, in which their bytes are once more.
const OVERHEAD: usize = size_of::<Box<[u8]>>() + 16 + 32;

fn held(document: &[u8]) -> usize {
    2 * document.len() + OVERHEAD
}

#[derive(Debug)]
pub struct Documents {
    gathered: Gathered,
    /// In their binary form: so they take the least memory.
    documents: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Documents {
    pub fn new(gathered: Gathered) -> Self {
        Self { gathered, documents: VecDeque::new(), bytes: 0 }
    }

    /// Adds a row's document, or what was put together of several; how many bytes more it holds.
    pub fn add(&mut self, document: &[u8]) -> usize {
        let held = held(document);
        self.documents.push_back(document.into());
        self.bytes += held;
        held
    }

    /// Takes back the documents that were added first.
    pub fn retract(&mut self, count: usize) {
        for document in self.documents.drain(..count.min(self.documents.len())) {
            self.bytes -= held(&document);
        }
    }

    /// All in one; `None` without any.
    pub fn together(&self) -> EvalResult<Option<Vec<u8>>> {
        if self.documents.is_empty() {
            return Ok(None);
        }
        let parts = self.documents.iter().map(|document| Node::new(document).view());
        let whole = match self.gathered {
            Gathered::Array => {
                let mut elements = Vec::with_capacity(self.documents.len());
                parts.for_each(|part| {
                    if let JsonRef::Array(some) = part {
                        elements.extend(some.iter())
                    }
                });
                array_of(&elements)
            }
            Gathered::Object => {
                let mut members = Vec::with_capacity(self.documents.len());
                parts.for_each(|part| {
                    if let JsonRef::Object(some) = part {
                        members.extend(some.iter())
                    }
                });
                object_of(members)
            }
        };
        whole.map(Some).map_err(EvalError::Json)
    }

    /// What it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
