//! caching_sha2_password: a slow salted hash at rest, a fast proof once the server has seen the password.
//!
//! Stored is `$A$005$`, a 20-byte salt and 43 characters of SHA-256 crypt over 5000 rounds. That hash can only be
//! checked with the password itself (the *full* exchange). After it the server keeps
//! `SHA256(SHA256(password))` in memory and checks the client's proof
//! `SHA256(password) xor SHA256(SHA256(SHA256(password)), salt)` against that (the *fast* exchange).

use sha2::{Digest, Sha256};

use super::{same_bytes, xor};
use crate::protocol::handshake::Salt;

type Hash = [u8; 32];

const PREFIX: &[u8] = b"$A$";
const SALT_LEN: usize = 20;
const DIGEST_LEN: usize = 43;
/// The rounds in an auth string count thousands.
const ROUNDS_UNIT: usize = 1000;
const DEFAULT_THOUSANDS: usize = 5;

fn sha256(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// What the server remembers of a password that it has seen.
pub fn cache_entry(password: &[u8]) -> Hash {
    sha256(&[&sha256(&[password])])
}

/// Whether a response proves the password that `cached` was made of.
pub fn verify_fast(cached: &Hash, salt: &Salt, response: &[u8]) -> bool {
    let Ok(response) = Hash::try_from(response) else { return false };
    let stage1 = xor(response, sha256(&[cached, salt]));
    same_bytes(&sha256(&[&stage1]), cached)
}

/// The stored form of a password; empty for the empty one. Takes milliseconds, by design.
pub fn auth_string(password: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let salt = super::random_salt();
    let mut text = format!("$A${DEFAULT_THOUSANDS:03X}$").into_bytes();
    text.extend_from_slice(&salt);
    text.extend_from_slice(&crypt(password, &salt, DEFAULT_THOUSANDS * ROUNDS_UNIT));
    text
}

/// Whether `password` is the one whose stored form is `auth_string`. Takes milliseconds, by design.
pub fn verify_full(auth_string: &[u8], password: &[u8]) -> bool {
    if auth_string.is_empty() {
        return password.is_empty();
    }
    let Some((rounds, salt, digest)) = parse(auth_string) else { return false };
    same_bytes(&crypt(password, salt, rounds), digest)
}

/// Whether a text has the stored form.
pub fn is_stored(text: &[u8]) -> bool {
    parse(text).is_some()
}

fn parse(auth_string: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let rest = auth_string.strip_prefix(PREFIX)?;
    let (thousands, rest) = rest.split_at_checked(3)?;
    let rest = rest.strip_prefix(b"$")?;
    let (salt, digest) = rest.split_at_checked(SALT_LEN)?;
    // Which takes a sign.
    let is_number = thousands.iter().all(u8::is_ascii_hexdigit);
    let thousands = std::str::from_utf8(thousands).ok().filter(|_| is_number)?;
    let thousands = usize::from_str_radix(thousands, 16).ok()?;
    (thousands > 0 && digest.len() == DIGEST_LEN).then_some((thousands * ROUNDS_UNIT, salt, digest))
}

/// U. Drepper's SHA-crypt with SHA-256 ("Unix crypt using SHA-256 and SHA-512"), but for the salt's length.
fn crypt(password: &[u8], salt: &[u8], rounds: usize) -> [u8; DIGEST_LEN] {
    let inner = sha256(&[password, salt, password]);
    let mut hasher = Sha256::new();
    hasher.update(password);
    hasher.update(salt);
    update_repeated(&mut hasher, &inner, password.len());
    let mut bits = password.len();
    while bits > 0 {
        hasher.update(if bits & 1 == 1 { &inner[..] } else { password });
        bits >>= 1;
    }
    let mut digest: Hash = hasher.finalize().into();

    let p = sequence(password, password.len(), password.len());
    let s = sequence(salt, 16 + usize::from(digest[0]), salt.len());
    for round in 0..rounds {
        let mut hasher = Sha256::new();
        hasher.update(if round % 2 == 1 { &p[..] } else { &digest });
        if round % 3 != 0 {
            hasher.update(&s);
        }
        if round % 7 != 0 {
            hasher.update(&p);
        }
        hasher.update(if round % 2 == 1 { &digest } else { &p[..] });
        digest = hasher.finalize().into();
    }
    encode(&digest)
}

fn update_repeated(hasher: &mut Sha256, block: &Hash, len: usize) {
    for at in (0..len).step_by(block.len()) {
        hasher.update(&block[..block.len().min(len - at)]);
    }
}

/// `len` bytes of the repeated hash of `text` taken `times` times.
fn sequence(text: &[u8], times: usize, len: usize) -> Vec<u8> {
    let mut hasher = Sha256::new();
    (0..times).for_each(|_| hasher.update(text));
    let block: Hash = hasher.finalize().into();
    block.iter().copied().cycle().take(len).collect()
}

/// crypt's base 64: groups of three bytes, rotated through the digest, least significant bits first.
fn encode(digest: &Hash) -> [u8; DIGEST_LEN] {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = [0; DIGEST_LEN];
    let mut at = 0;
    let mut put = |mut value: u32, count: usize| {
        for _ in 0..count {
            text[at] = ALPHABET[(value & 0x3F) as usize];
            value >>= 6;
            at += 1;
        }
    };
    let (mut a, mut b, mut c) = (0, 10, 20);
    for _ in 0..10 {
        put(u32::from_be_bytes([0, digest[a], digest[b], digest[c]]), 4);
        (a, b, c) = ((a + 21) % 30, (b + 21) % 30, (c + 21) % 30);
    }
    put(u32::from_be_bytes([0, 0, digest[31], digest[30]]), 3);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_has_one_form() {
        assert!(is_stored(&auth_string(b"password")));
        let (salt, digest) = ("s".repeat(SALT_LEN), "d".repeat(DIGEST_LEN));
        assert!(is_stored(format!("$A$0ff${salt}{digest}").as_bytes()));
        for wrong in ["$A$000$", "$A$+05$", "$A$xyz$", "$B$005$", "$A$005", "$A$05$", ""] {
            assert!(!is_stored(format!("{wrong}{salt}{digest}").as_bytes()), "{wrong}");
        }
        assert!(!is_stored(format!("$A$005${salt}{digest}d").as_bytes()));
        assert!(!is_stored(format!("$A$005${salt}").as_bytes()));
    }

    #[test]
    fn crypt_is_the_published_algorithm() {
        // Drepper's test vector, whose salt is shorter than MySQL's.
        assert_eq!(
            crypt(b"Hello world!", b"saltstring", 5000),
            *b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"
        );
    }

    #[test]
    fn stored_form_verifies_its_password_only() {
        let stored = auth_string(b"secret");
        assert_eq!(stored.len(), 70);
        assert!(stored.starts_with(b"$A$005$"));
        assert!(verify_full(&stored, b"secret"));
        assert!(!verify_full(&stored, b"secreT"));
        assert!(!verify_full(b"$A$005$short", b"secret"));
        assert!(verify_full(b"", b""));
        assert!(!verify_full(b"", b"x"));
    }

    #[test]
    fn the_fast_proof_needs_the_password() {
        let salt = *b"01234567890123456789";
        let scramble =
            |password: &[u8]| mysql_common::scramble::scramble_sha256(&salt, password).expect("not empty");
        let cached = cache_entry(b"secret");
        assert!(verify_fast(&cached, &salt, &scramble(b"secret")));
        assert!(!verify_fast(&cached, &salt, &scramble(b"other")));
        assert!(!verify_fast(&cached, &salt, b""));
    }
}
