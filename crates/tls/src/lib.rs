//! TLS of connections that this server makes: to a source, and to its peers.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Why a text has no authorities.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    #[error("{0}")]
    Pem(#[from] pem::Error),
    #[error("{0}")]
    Certificate(#[from] Error),
    #[error("it has no certificate")]
    Empty,
}

/// The authorities whose certificates a text (PEM) has.
///
/// # Errors
/// If it is no such text, or has none.
pub fn authorities(text: &[u8]) -> Result<RootCertStore, AuthoritiesError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text) {
        roots.add(certificate?)?;
    }
    if roots.is_empty() { Err(AuthoritiesError::Empty) } else { Ok(roots) }
}

/// How a client encrypts. The server's certificate is verified if authorities are given; else any is taken, since MySQL makes its
/// own, as clients expect (`--ssl-mode=PREFERRED`).
///
/// # Errors
/// If the cryptography has no versions of TLS that are safe.
pub fn client_config(authorities: Option<RootCertStore>) -> Result<ClientConfig, Error> {
    let provider = ring::default_provider();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_safe_default_protocol_versions()?;
    Ok(match authorities {
        Some(authorities) => builder.with_root_certificates(authorities).with_no_client_auth(),
        None => {
            let any = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth()
        }
    })
}

/// Takes any certificate; that its owner has the key is checked.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_certificates_has_no_authorities() {
        assert!(matches!(authorities(b""), Err(AuthoritiesError::Empty)));
        assert!(matches!(authorities(b"-----BEGIN CERTIFICATE-----\nAAAA"), Err(AuthoritiesError::Pem(_))));
    }
}
