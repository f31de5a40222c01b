//! The RSA key pair by which a client without TLS may send its password encrypted.

use std::path::Path;

use rand::rngs::OsRng;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;

use crate::files::{self, FileError};
use crate::protocol::handshake::Salt;

const BITS: usize = 2048;
const FILE: &str = "private_key.pem";

pub struct RsaKey {
    private: RsaPrivateKey,
    public_pem: String,
}

impl RsaKey {
    /// The data directory's key; made, and kept readable by its owner only, at the first start.
    pub fn load_or_create(data: &Path) -> Result<Self, FileError> {
        let path = data.join(FILE);
        let pem = match files::read(&path)? {
            Some(pem) => pem,
            None => {
                let key = RsaPrivateKey::new(&mut OsRng, BITS).map_err(|e| FileError::bad(&path, e))?;
                let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(|e| FileError::bad(&path, e))?;
                files::write_private(&path, pem.as_bytes())?;
                pem.as_bytes().to_vec()
            }
        };
        let text = std::str::from_utf8(&pem).map_err(|e| FileError::bad(&path, e))?;
        let private = RsaPrivateKey::from_pkcs8_pem(text).map_err(|e| FileError::bad(&path, e))?;
        Self::new(private).map_err(|e| FileError::bad(&path, e))
    }

    fn new(private: RsaPrivateKey) -> Result<Self, rsa::pkcs8::spki::Error> {
        let public_pem = private.to_public_key().to_public_key_pem(LineEnding::LF)?;
        Ok(Self { private, public_pem })
    }

    /// The public key, as clients ask for it.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// The password in a client's message; `None` if the message was not made with this key and salt. Blinded, so
    /// that its time tells nothing of the key.
    pub fn decrypt_password(&self, message: &[u8], salt: &Salt) -> Option<Vec<u8>> {
        let mut plain = self.private.decrypt_blinded(&mut OsRng, Oaep::new::<Sha1>(), message).ok()?;
        plain.iter_mut().zip(salt.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        (plain.pop() == Some(0)).then_some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_gets_through_encrypted() {
        let dir = tempfile::tempdir().expect("a directory");
        let key = RsaKey::load_or_create(dir.path()).expect("a key");
        let again = RsaKey::load_or_create(dir.path()).expect("the same key");
        assert_eq!(key.public_pem(), again.public_pem());
        let salt = *b"01234567890123456789";
        let mut masked = b"a password of more than twenty bytes\0".to_vec();
        masked.iter_mut().zip(salt.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        let message = mysql_common::crypto::encrypt(&masked, key.public_pem().as_bytes());
        assert_eq!(
            again.decrypt_password(&message, &salt).as_deref(),
            Some(&b"a password of more than twenty bytes"[..])
        );
        assert_eq!(key.decrypt_password(&[0; 256], &salt), None);
        assert_eq!(key.decrypt_password(b"", &salt), None);
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        RsaKey::load_or_create(dir.path()).expect("a key");
        let mode = std::fs::metadata(dir.path().join(FILE)).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
