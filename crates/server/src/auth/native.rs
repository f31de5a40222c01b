//! mysql_native_password: SHA-1 twice over, and a proof that does not show the password's hash.
//!
//! Stored is `SHA1(SHA1(password))`, as `*` and 40 hexadecimal digits. The client sends
//! `SHA1(password) xor SHA1(salt, stored)`, from which the server gets `SHA1(password)` and hashes it again.

use sha1::{Digest, Sha1};

use super::{same_bytes, xor};
use crate::protocol::handshake::Salt;

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hasher = Sha1::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// The stored form of a password; empty for the empty one.
pub fn auth_string(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let hash = sha1(&[&sha1(&[password])]);
    hash.iter().fold(String::from("*"), |text, byte| text + &format!("{byte:02X}"))
}

/// Whether the client's response proves the password whose stored form is `auth_string`.
pub fn verify(auth_string: &str, salt: &Salt, response: &[u8]) -> bool {
    if auth_string.is_empty() {
        return response.is_empty();
    }
    let (Some(stored), Ok(response)) = (parse(auth_string), <[u8; 20]>::try_from(response)) else {
        return false;
    };
    let stage1 = xor(response, sha1(&[salt, &stored]));
    same_bytes(&sha1(&[&stage1]), &stored)
}

/// Whether a text has the stored form.
pub fn is_stored(text: &str) -> bool {
    parse(text).is_some()
}

fn parse(auth_string: &str) -> Option<[u8; 20]> {
    let hex = auth_string
        .strip_prefix('*')
        .filter(|hex| hex.len() == 40 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let mut hash = [0; 20];
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_form_is_mysqls() {
        assert_eq!(auth_string(b"password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(auth_string(b""), "");
        assert!(is_stored(&auth_string(b"password").to_lowercase()));
        for wrong in [
            "garbage",
            "2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19",
            "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E1",
        ] {
            assert!(!is_stored(wrong), "{wrong}");
        }
        assert!(!is_stored(&format!("*+F{}", "0".repeat(38))));
    }

    #[test]
    fn only_the_right_password_is_accepted() {
        let salt = *b"01234567890123456789";
        let scramble =
            |password: &[u8]| mysql_common::scramble::scramble_native(&salt, password).expect("not empty");
        let stored = auth_string(b"secret");
        assert!(verify(&stored, &salt, &scramble(b"secret")));
        assert!(!verify(&stored, &salt, &scramble(b"Secret")));
        assert!(!verify(&stored, &salt, b""));
        assert!(!verify("*nonsense", &salt, &scramble(b"secret")));
        assert!(verify("", &salt, b""));
        assert!(!verify("", &salt, &scramble(b"secret")));
    }
}
