//! Shapes that are kept: by digest, so that statements that differ in literals alone have one, and by their whole text for short ones
//! without a digest (BEGIN, COMMIT, SET, SHOW).
//!
//! When there are too many, all are forgotten: they are made anew in microseconds.

use std::sync::Arc;

use avocet_sql::parse::digest::Digest;
use avocet_types::expr::SqlMode;
use foldhash::HashMap;
use parking_lot::RwLock;

use super::shape::{Shape, has_version_comment};

#[derive(Default)]
pub struct Shapes {
    by_digest: RwLock<HashMap<Box<[u8]>, Arc<Shape>>>,
    by_text: RwLock<HashMap<Box<[u8]>, Arc<Shape>>>,
}

impl Shapes {
    const MOST: usize = 4096;
    /// Digests that are longer are not kept, so that all together are a few MiB at most.
    const LONGEST: usize = 2048;
    /// Nor are longer texts: those that come again and again are short.
    const LONGEST_TEXT: usize = 512;

    /// The shape of a text, whose digest is read as well if it has one.
    pub fn of(&self, text: &str, mode: SqlMode, digest: &mut Digest) -> (Arc<Shape>, bool) {
        // A digest has neither what is behind the last token nor what its reader takes for a comment, and another version does not.
        let has_digest = digest.read(text.as_bytes(), mode)
            && !digest.hinted
            && !digest.has_more
            && digest.text.len() <= Self::LONGEST
            && !has_version_comment(text);
        let kept = match has_digest {
            true => &self.by_digest,
            false if text.len() > Self::LONGEST_TEXT => return (Arc::new(Shape::of(text, mode)), false),
            false => {
                digest.text.clear();
                digest.text.extend_from_slice(text.as_bytes());
                &self.by_text
            }
        };
        // The same tokens mean something else under another mode.
        digest.text.extend_from_slice(&mode.0.to_le_bytes());
        if let Some(shape) = kept.read().get(&*digest.text) {
            return (shape.clone(), has_digest);
        }
        let shape = Arc::new(Shape::of(text, mode));
        let mut kept = kept.write();
        if kept.len() >= Self::MOST {
            kept.clear();
        }
        kept.insert(digest.text.as_slice().into(), shape.clone());
        (shape, has_digest)
    }
}

#[cfg(test)]
mod tests {
    use avocet_session::api::Route;

    use super::*;
    use crate::front::shape::Place;

    #[test]
    fn one_shape_serves_all_literals() {
        let (shapes, mut digest) = (Shapes::default(), Digest::default());
        let (first, _) = shapes.of("SELECT a FROM t WHERE b = 1", SqlMode::DEFAULT, &mut digest);
        let (second, _) = shapes.of("SELECT a FROM t WHERE b = 22", SqlMode::DEFAULT, &mut digest);
        assert!(Arc::ptr_eq(&first, &second));
        let (hinted, has_digest) =
            shapes.of("SELECT /*+ SET_VAR(avocet_route = 'here') */ a FROM t", SqlMode::DEFAULT, &mut digest);
        let Place::Either(candidate) = &hinted.place else { panic!("it is a candidate") };
        assert!(!has_digest && candidate.route == Some(Route::Here));
    }

    #[test]
    fn texts_without_a_digest_have_a_shape_of_their_own() {
        let (shapes, mut digest) = (Shapes::default(), Digest::default());
        let mut of = |text: &str| shapes.of(text, SqlMode::DEFAULT, &mut digest).0;
        assert!(Arc::ptr_eq(&of("COMMIT"), &of("COMMIT")));
        assert!(!Arc::ptr_eq(&of("COMMIT"), &of("commit")));
        let long = format!("SET @a = '{}'", "x".repeat(1000));
        assert_eq!(of(&long), of(&long));
    }

    #[test]
    fn what_a_digest_leaves_out_is_looked_at() {
        let (shapes, mut digest) = (Shapes::default(), Digest::default());
        let mut is_either =
            |text: &str| matches!(shapes.of(text, SqlMode::DEFAULT, &mut digest).0.place, Place::Either(_));
        assert!(is_either("SELECT COUNT(*) FROM t"));
        for text in [
            "SELECT COUNT(*) FROM t /*!90000 WHERE 0 */",
            "/*!90000 EXPLAIN */ SELECT COUNT(*) FROM t",
            "SELECT COUNT(*) FROM t /*M! WHERE 0 */",
            "SELECT COUNT(*) FROM t /*!100100 WHERE 0 */",
            "SELECT COUNT(*) FROM t; -- another statement",
        ] {
            assert!(!is_either(text), "{text}");
            assert!(is_either("SELECT COUNT(*) FROM t"), "{text}");
        }
    }
}
