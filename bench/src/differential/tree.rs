//! A statement as a tree of pieces that is written out as SQL, and that knows what may be left out of it.
//!
//! The tree knows no SQL: what can be dropped or put in another's place is said by whoever makes it. Whether the smaller
//! statement means anything is found out by running it.

use std::fmt::{Display, Formatter, Result};

#[derive(Clone, Debug)]
pub enum Tree {
    Text(String),
    /// Pieces one after the other.
    Seq(Vec<Tree>),
    /// A whole expression: any expression in it may stand in its place, or a constant.
    Expr(Box<Tree>),
    /// Something that may be left out.
    Optional(Box<Tree>),
    /// Items between separators, of which so many must stay.
    List {
        items: Vec<Tree>,
        separator: &'static str,
        least: usize,
    },
}

impl Tree {
    pub fn text(text: impl Into<String>) -> Tree {
        Tree::Text(text.into())
    }

    pub fn expr(pieces: Vec<Tree>) -> Tree {
        Tree::Expr(Box::new(Tree::Seq(pieces)))
    }

    pub fn leaf(text: impl Into<String>) -> Tree {
        Tree::Expr(Box::new(Tree::text(text)))
    }

    pub fn optional(pieces: Vec<Tree>) -> Tree {
        Tree::Optional(Box::new(Tree::Seq(pieces)))
    }

    pub fn nothing() -> Tree {
        Tree::Seq(Vec::new())
    }

    pub fn list(items: Vec<Tree>, separator: &'static str, least: usize) -> Tree {
        Tree::List { items, separator, least }
    }

    /// All trees that have one thing less, those that lack most first.
    pub fn smaller(&self) -> Vec<Tree> {
        match self {
            Tree::Text(_) => Vec::new(),
            Tree::Seq(pieces) => smaller_within(pieces, Tree::Seq),
            Tree::Optional(inner) => {
                let mut all = vec![Tree::nothing()];
                all.extend(inner.smaller().into_iter().map(|tree| Tree::Optional(Box::new(tree))));
                all
            }
            Tree::Expr(inner) => {
                let mut all = Vec::new();
                inner.expressions(&mut all);
                if !matches!(**inner, Tree::Text(_)) {
                    all.extend(["NULL", "1", "'1'"].map(Tree::leaf));
                }
                all.extend(inner.smaller().into_iter().map(|tree| Tree::Expr(Box::new(tree))));
                all
            }
            Tree::List { items, separator, least } => {
                let (separator, least) = (*separator, *least);
                let list = |items| Tree::List { items, separator, least };
                let mut all = Vec::new();
                if items.len() > least {
                    for at in 0..items.len() {
                        let mut fewer = items.clone();
                        fewer.remove(at);
                        all.push(list(fewer));
                    }
                }
                all.extend(smaller_within(items, list));
                all
            }
        }
    }

    /// The outermost expressions in this one.
    fn expressions(&self, into: &mut Vec<Tree>) {
        match self {
            Tree::Text(_) => {}
            Tree::Expr(_) => into.push(self.clone()),
            Tree::Optional(inner) => inner.expressions(into),
            Tree::Seq(pieces) | Tree::List { items: pieces, .. } => {
                pieces.iter().for_each(|piece| piece.expressions(into));
            }
        }
    }
}

fn smaller_within(pieces: &[Tree], build: impl Fn(Vec<Tree>) -> Tree) -> Vec<Tree> {
    let mut all = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        for smaller in piece.smaller() {
            let mut changed = pieces.to_vec();
            changed[at] = smaller;
            all.push(build(changed));
        }
    }
    all
}

impl Display for Tree {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Tree::Text(text) => f.write_str(text),
            Tree::Seq(pieces) => pieces.iter().try_for_each(|piece| piece.fmt(f)),
            Tree::Expr(inner) | Tree::Optional(inner) => inner.fmt(f),
            Tree::List { items, separator, .. } => {
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        f.write_str(separator)?;
                    }
                    item.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_tree_drops_items_options_and_operators() {
        let sum = Tree::expr(vec![Tree::leaf("a"), Tree::text(" + "), Tree::leaf("b")]);
        let list = Tree::list(vec![sum, Tree::leaf("c")], ", ", 1);
        let tree = Tree::Seq(vec![Tree::text("SELECT "), list, Tree::optional(vec![Tree::text(" LIMIT 1")])]);
        let smaller: Vec<String> = tree.smaller().iter().map(ToString::to_string).collect();
        for expected in ["SELECT c LIMIT 1", "SELECT a + b LIMIT 1", "SELECT b, c LIMIT 1", "SELECT a + b, c"]
        {
            assert!(smaller.iter().any(|sql| sql == expected), "{expected} in {smaller:?}");
        }
        assert!(smaller.iter().all(|sql| sql.len() < tree.to_string().len()));
    }
}
