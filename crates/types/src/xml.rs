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

    fn children(&self, parent: usize) -> impl Iterator<Item = usize> + '_ {
        (parent + 1..self.nodes.len()).filter(move |node| self.nodes[*node].parent == parent)
    }

    /// The tags below a node, in the document's order.
    fn descendants(&self, above: usize) -> Vec<usize> {
        let mut within = vec![false; self.nodes.len()];
        within[above] = true;
        let mut found = Vec::new();
        for node in above + 1..self.nodes.len() {
            within[node] = within[self.nodes[node].parent];
            if within[node] && self.nodes[node].kind == NodeKind::Tag {
                found.push(node);
            }
        }
        found
    }

    /// The texts that stand directly in a node.
    fn texts(&self, parent: usize) -> impl Iterator<Item = &'x str> + '_ {
        let is_text = |node: &usize| self.nodes[*node].kind == NodeKind::Text;
        self.children(parent).filter(is_text).map(|node| self.name_or_text(node))
    }

    /// What nodes are as a string: the texts that stand directly in them, with blanks between.
    fn string(&self, nodes: &[usize]) -> String {
        let mut chosen = vec![false; self.nodes.len()];
        nodes.iter().for_each(|node| chosen[*node] = true);
        let mut string = String::new();
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            if node.kind == NodeKind::Text && chosen[node.parent] {
                if !string.is_empty() {
                    string.push(' ');
                }
                string.push_str(self.name_or_text(at));
            }
        }
        string
    }
}
