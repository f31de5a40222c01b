//! What summaries and STATEMENT_DIGEST know statements by.

use sha2::{Digest, Sha256};

/// Bytes that are kept of a digest's text and of a statement's (MySQL's `max_digest_length`).
pub(crate) const MOST_TEXT: usize = 1024;

/// By which programs know a digest: MySQL's are hashes of its parser's tokens, this one is of the text.
pub(crate) fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
