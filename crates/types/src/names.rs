//! How MySQL compares names, which depends on what they name.
//!
//! | names of | compared | here |
//! |---|---|---|
//! | columns, select items, indexes, CHECK constraints | by letter, whatever its case: as `utf8mb3_tolower_ci` does | `eq`, `fold` |
//! | user variables, savepoints, prepared statements, windows, partitions, foreign keys | without accents, too: as `utf8mb3_general_ci` does | `eq_unaccented`, `fold_unaccented` |
//! | databases, tables and their aliases | as bytes: not here | |
//!
//! Keywords, functions and character sets have names of ASCII's letters alone.

use std::borrow::Cow;

use crate::collation::{Collation, general_letter};

const COLLATION: Collation = Collation::UTF8MB3_GENERAL_CI;

/// Whether two names are of one column, index or the like.
#[inline]
pub fn eq(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && eq_letters(a, b))
}

/// Beyond ASCII, letters may have another length in the other case: `İ` is `i`.
#[cold]
fn eq_letters(a: &str, b: &str) -> bool {
    fold(a) == fold(b)
}

/// What is the same for names that `eq` says are the same: a key for maps.
pub fn fold(name: &str) -> Cow<'_, str> {
    COLLATION.lower(name)
}

/// Whether two names are of one user variable, savepoint or the like.
#[inline]
pub fn eq_unaccented(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && COLLATION.equal(a, b))
}

/// What is the same for names that `eq_unaccented` says are the same.
pub fn fold_unaccented(name: &str) -> Cow<'_, str> {
    if name.is_ascii() {
        return fold(name);
    }
    let letters: String = name.chars().map(general_letter).collect();
    Cow::Owned(fold(&letters).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_that_of_mysqls_older_tables() {
        let same = [
            ("Col", "cOL"),
            ("Ä", "ä"),
            ("İ", "i"),
            ("Σ", "σ"),
            ("ǅ", "ǆ"),
            ("Ｚ", "ｚ"),
            ("ⓐ", "Ⓐ"),
            ("ᾳ", "ᾼ"),
        ];
        for (a, b) in same {
            assert!(eq(a, b), "{a} {b}");
            assert_eq!(fold(a), fold(b));
        }
        for (a, b) in [("a", "á"), ("ı", "I"), ("σ", "ς"), ("ß", "ẞ"), ("ß", "ss"), ("ſ", "s"), ("Ⱥ", "ⱥ")]
        {
            assert!(!eq(a, b), "{a} {b}");
            assert_ne!(fold(a), fold(b));
        }
    }

    #[test]
    fn some_names_have_no_accents() {
        for (a, b) in [("Col", "cOL"), ("á", "A"), ("ς", "Σ"), ("ß", "s"), ("İ", "i")] {
            assert!(eq_unaccented(a, b), "{a} {b}");
            assert_eq!(fold_unaccented(a), fold_unaccented(b));
        }
        assert!(!eq_unaccented("ß", "ss"));
        assert_ne!(fold_unaccented("ä"), fold_unaccented("e"));
    }
}
