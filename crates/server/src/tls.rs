//! The server's certificate: the configured one, or one of our own in the data directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::files::{self, FileError};

const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Reads the files, or makes a self-signed certificate at the first start if none are given.
pub fn acceptor(data: &Path, configured: Option<&TlsFiles>) -> Result<TlsAcceptor, FileError> {
    let own = TlsFiles { certificate: data.join(CERTIFICATE), key: data.join(KEY) };
    let used = configured.unwrap_or(&own);
    if configured.is_none() && files::read(&own.certificate)?.is_none() {
        create_self_signed(&own)?;
    }
    let bad = |path: &Path| {
        let path = path.to_owned();
        move |e: &dyn std::fmt::Display| FileError::bad(&path, e)
    };
    let chain = CertificateDer::pem_slice_iter(&required(&used.certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| bad(&used.certificate)(&e))?;
    let key = PrivateKeyDer::from_pem_slice(&required(&used.key)?).map_err(|e| bad(&used.key)(&e))?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|e| bad(&used.certificate)(&e))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn required(path: &Path) -> Result<Vec<u8>, FileError> {
    files::read(path)?
        .ok_or_else(|| FileError::Io { path: path.to_owned(), source: io::ErrorKind::NotFound.into() })
}

fn create_self_signed(files: &TlsFiles) -> Result<(), FileError> {
    let names = vec!["localhost".to_owned(), "avocet".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let made =
        rcgen::generate_simple_self_signed(names).map_err(|e| FileError::bad(&files.certificate, e))?;
    // The key first: a certificate that is there has its key.
    files::write_private(&files.key, made.signing_key.serialize_pem().as_bytes())?;
    files::write_private(&files.certificate, made.cert.pem().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_certificate_is_made_once() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(acceptor(dir.path(), None).is_ok());
        let before = std::fs::read(dir.path().join(CERTIFICATE)).expect("the certificate");
        assert!(acceptor(dir.path(), None).is_ok());
        assert_eq!(std::fs::read(dir.path().join(CERTIFICATE)).expect("the certificate"), before);
    }

    #[test]
    fn files_that_are_missing_or_bad_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let files = TlsFiles { certificate: dir.path().join("c.pem"), key: dir.path().join("k.pem") };
        let message = acceptor(dir.path(), Some(&files)).err().expect("missing").to_string();
        assert!(message.contains("c.pem"), "{message}");
    }
}
