//! XML documents as EXTRACTVALUE and UPDATEXML read them (MySQL Reference Manual, 14.11 "XML Functions").
//!
//! ```text
//!  <a b="1">x<c/></a>      0 root ─▶ 1 tag a ─┬▶ 2 attribute b ─▶ 3 text 1
//!                                             ├▶ 4 text x
//!                                             └▶ 5 tag c
//! ```
//! A document is a list of its nodes in the order in which they begin. Like MySQL it takes fragments, several elements side by
//! side and text beside them; entities stay as they are written.
//!
//! Invariants:
//! 1. Node 0 is the root, and its own parent; a parent stands before its children.
//! 2. Positions are offsets of bytes in the document's text, at borders of characters.

pub(crate) mod evaluate;
mod scan;
pub mod xpath;

pub use scan::XmlProblem;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Root,
    Tag,
    Attribute,
    Text,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub parent: usize,
    /// The name of a tag or an attribute; the text of a text.
    pub start: usize,
    pub end: usize,
    /// Where what belongs to a tag or an attribute ends.
    pub close: usize,
}

/// A parsed document.
#[derive(Debug)]
pub(crate) struct Document<'x> {
    text: &'x str,
    nodes: Vec<Node>,
}

impl<'x> Document<'x> {
    /// # Errors
    /// Where the text is not as it should be.
    pub fn parse(text: &'x str) -> Result<Self, XmlProblem> {
        Ok(Self { text, nodes: scan::nodes(text)? })
    }

    /// Its text with a node replaced; of the root, the whole text.
    pub fn with(&self, node: usize, replacement: &str) -> String {
        let Node { kind, start, close, .. } = self.nodes[node];
        let from = match kind {
            NodeKind::Root => 0,
            // The name stands behind a `<`.
            NodeKind::Tag => start - 1,
            NodeKind::Attribute | NodeKind::Text => start,
        };
        [&self.text[..from], replacement, &self.text[close..]].concat()
    }

    fn name_or_text(&self, node: usize) -> &'x str {
        let Node { start, end, .. } = self.nodes[node];
        &self.text[start..end]
    }

    /// All nodes within a node: they stand behind it, and no other between them.
    fn within(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        (node + 1..self.nodes.len()).take_while(move |inner| self.nodes[*inner].parent >= node)
    }

    fn children(&self, parent: usize) -> impl Iterator<Item = usize> + '_ {
        self.within(parent).filter(move |node| self.nodes[*node].parent == parent)
    }

    /// The tags below a node, in the document's order.
    fn descendants(&self, above: usize) -> impl Iterator<Item = usize> + '_ {
        self.within(above).filter(|node| self.nodes[*node].kind == NodeKind::Tag)
    }

    /// The texts that stand directly in a node.
    fn texts(&self, parent: usize) -> impl Iterator<Item = &'x str> + '_ {
        let is_text = |node: &usize| self.nodes[*node].kind == NodeKind::Text;
        self.children(parent).filter(is_text).map(|node| self.name_or_text(node))
    }

    /// What nodes are as a string: the texts that stand directly in them, in the document's order, with blanks between.
    fn string(&self, nodes: &[usize]) -> String {
        let is_text = |node: &usize| self.nodes[*node].kind == NodeKind::Text;
        let mut texts: Vec<usize> =
            nodes.iter().flat_map(|node| self.children(*node).filter(is_text)).collect();
        texts.sort_unstable();
        let mut string = String::new();
        for text in texts {
            if !string.is_empty() {
                string.push(' ');
            }
            string.push_str(self.name_or_text(text));
        }
        string
    }
}
