//! TLS to the source. Whoever speaks TLS to the front has it all the way. The source's certificate is verified if authorities are given;
//! else it is not, since MySQL makes its own, as clients expect (`--ssl-mode=PREFERRED`).

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::files::{self, FileError};

/// How connections to the source are encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceTls {
    /// Who does not speak TLS to the front is not let in, since nothing may go to the source in clear.
    pub is_required: bool,
    /// Certificates (PEM) of the authorities that sign the source's certificate, which then has to be for the source's name.
    pub authorities: Option<PathBuf>,
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

/// What connects to the source under TLS.
///
/// # Errors
/// If the authorities' certificates cannot be read.
pub fn connector(tls: &SourceTls) -> Result<TlsConnector, FileError> {
    Ok(TlsConnector::from(Arc::new(config(tls)?)))
}

fn config(tls: &SourceTls) -> Result<ClientConfig, FileError> {
    let provider = ring::default_provider();
    let own = |error: Error| FileError::bad(Path::new("TLS"), &error);
    let builder = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_safe_default_protocol_versions()
        .map_err(own)?;
    Ok(match &tls.authorities {
        Some(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
        None => {
            let any = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth()
        }
    })
}

/// The same for peers. Sessions are kept by the server's name alone, which the source and peers on one machine have in common: those
/// of the one mean nothing to the other.
///
/// # Errors
/// As [`connector`].
pub fn peer_connector(tls: &SourceTls) -> Result<TlsConnector, FileError> {
    let mut config = config(tls)?;
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(path: &Path) -> Result<RootCertStore, FileError> {
    let bad = |why: &dyn std::fmt::Display| FileError::bad(path, why);
    let text = files::read(path)?.ok_or_else(|| bad(&"there is no such file"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| bad(&error))?;
        roots.add(certificate).map_err(|error| bad(&error))?;
    }
    match roots.is_empty() {
        true => Err(bad(&"it has no certificate")),
        false => Ok(roots),
    }
}

/// Whether a host is this machine.
pub fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The name to ask for.
pub fn name_of(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).ok()
}
