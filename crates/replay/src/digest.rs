//! By what statements are counted together: their text without literals, with lists and blanks of any length.

use avocet_sql::parse::digest::Digest;
use avocet_types::expr::SqlMode;

/// Of a digest that is shown or kept.
const LONGEST: usize = 4096;

/// A statement's digest. Of one that the parser keeps no plan for, its text with blanks made one.
pub fn digest_of(text: &str, mode: SqlMode) -> String {
    let mut digest = Digest::default();
    let text = match digest.read(text.as_bytes(), mode) {
        true => String::from_utf8_lossy(&digest.text).into_owned(),
        false => text.to_owned(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut text = words.join(" ");
    // IN (?, ?, ?) and VALUES ROW(?, ?) of any length.
    for pair in ["?, ?", "?,?"] {
        while let Some(at) = text.find(pair) {
            let end = at + pair.len();
            text.replace_range(at..end, "?…");
            let rest = text[at + "?…".len()..].to_owned();
            let more = rest.trim_start_matches([',', '?', ' ']);
            // A blank before a word stays.
            let blank = if rest.len() > more.len() && rest[..rest.len() - more.len()].ends_with(' ') {
                " "
            } else {
                ""
            };
            text.truncate(at + "?…".len());
            text.push_str(blank);
            text.push_str(more);
        }
    }
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_lists_and_blanks_make_no_difference() {
        let of = |text| digest_of(text, SqlMode::DEFAULT);
        assert_eq!(of("SELECT a\n  FROM t WHERE b = 7"), "SELECT a FROM t WHERE b = ?");
        assert_eq!(of("SELECT a FROM t WHERE b IN (1, 2,3)"), of("SELECT a FROM t WHERE b IN (4,5)"));
        assert_eq!(of("SELECT 1, 2 FROM t"), "SELECT ?… FROM t");
        assert_eq!(of("SHOW  TABLES"), "SHOW TABLES");
        assert_ne!(of("SELECT a FROM t"), of("SELECT b FROM t"));
    }
}
