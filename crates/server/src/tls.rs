//! The server's certificate: the configured one, or one of our own in the data directory; and clients' certificates.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{CipherSuite, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::name::Name;

use crate::files::{self, FileError};

const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What TLS tells of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPeer {
    /// Of its certificate, as OpenSSL writes names in one line: `/C=SE/O=Avocet/CN=ann`.
    pub subject: Option<String>,
    pub issuer: Option<String>,
    /// As OpenSSL calls it.
    pub cipher: String,
}

impl TlsPeer {
    pub fn of(connection: &rustls::ServerConnection) -> Self {
        let certificate = connection.peer_certificates().and_then(<[_]>::first);
        // A certificate that rustls has accepted can be read.
        let names = certificate.and_then(|der| Certificate::from_der(der).ok()).map(|certificate| {
            let body = certificate.tbs_certificate;
            (one_line(&body.subject), one_line(&body.issuer))
        });
        let (subject, issuer) = names.unzip();
        let cipher = connection.negotiated_cipher_suite().map_or("", |suite| openssl_name(suite.suite()));
        Self { subject, issuer, cipher: cipher.to_owned() }
    }
}

/// A name as `X509_NAME_oneline` writes it.
fn one_line(name: &Name) -> String {
    let mut line = String::new();
    for attribute in name.0.iter().flat_map(|part| part.0.iter()) {
        let oid = attribute.oid.to_string();
        let known = ATTRIBUTES.iter().find(|(number, _)| *number == oid);
        let _ = write!(line, "/{}=", known.map_or(oid.as_str(), |(_, short)| short));
        for &byte in attribute.value.value() {
            match byte {
                b' '..=b'~' => line.push(char::from(byte)),
                other => {
                    let _ = write!(line, "\\x{other:02X}");
                }
            }
        }
    }
    line
}

/// The attributes of names that OpenSSL has short names for, as far as certificates have them.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.42", "GN"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

fn openssl_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        // rustls negotiates no others.
        _ => "",
    }
}

/// Reads the files, or makes a self-signed certificate at the first start if none are given. Clients may have
/// certificates if there is an authority that signs them.
pub fn acceptor(
    data: &Path,
    configured: Option<&TlsFiles>,
    authority: Option<&Path>,
) -> Result<TlsAcceptor, FileError> {
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| bad(&used.certificate)(&e))?;
    let builder = match authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&required(path)?) {
                let added = certificate.map(|certificate| roots.add(certificate));
                added.map_err(|e| bad(path)(&e))?.map_err(|e| bad(path)(&e))?;
            }
            // Who needs a certificate is said of each account.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|e| bad(path)(&e))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(|e| bad(&used.certificate)(&e))?;
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
        assert!(acceptor(dir.path(), None, None).is_ok());
        let before = std::fs::read(dir.path().join(CERTIFICATE)).expect("the certificate");
        assert!(acceptor(dir.path(), None, None).is_ok());
        assert_eq!(std::fs::read(dir.path().join(CERTIFICATE)).expect("the certificate"), before);
    }

    /// A handshake in memory; what the server learns of the client.
    fn meet(
        server: &TlsAcceptor,
        roots: RootCertStore,
        client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    ) -> Result<TlsPeer, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key)?,
        };
        let name = "localhost".try_into().expect("a name");
        let mut client = rustls::ClientConnection::new(Arc::new(config), name)?;
        let mut server = rustls::ServerConnection::new(server.config().clone())?;
        for _ in 0..10 {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).expect("memory");
            server.read_tls(&mut bytes.as_slice()).expect("memory");
            server.process_new_packets()?;
            bytes.clear();
            server.write_tls(&mut bytes).expect("memory");
            client.read_tls(&mut bytes.as_slice()).expect("memory");
            client.process_new_packets()?;
        }
        assert!(!server.is_handshaking());
        Ok(TlsPeer::of(&server))
    }

    #[test]
    fn clients_certificates_are_read() {
        use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
        let dir = tempfile::tempdir().expect("a directory");
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).expect("params");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::OrganizationName, "Avocet");
            params.distinguished_name.push(DnType::CommonName, name);
            let key = KeyPair::generate().expect("a key");
            let certificate = params.self_signed(&key).expect("signed");
            (Issuer::new(params, key), certificate)
        };
        let client_of = |issuer: &Issuer<'_, KeyPair>| {
            let mut params = CertificateParams::new(Vec::new()).expect("params");
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::CountryName, "SE");
            params.distinguished_name.push(DnType::CommonName, "ann é");
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, issuer).expect("signed");
            let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
            (certificate.der().clone(), key)
        };
        let ((ours, certificate), (other, _)) = (authority("ours"), authority("other"));
        let ca = dir.path().join("ca.pem");
        std::fs::write(&ca, certificate.pem()).expect("written");
        let server = acceptor(dir.path(), None, Some(&ca)).map_err(|e| e.to_string()).expect("an acceptor");
        let roots = || {
            let mut roots = RootCertStore::empty();
            let own = std::fs::read(dir.path().join(CERTIFICATE)).expect("the certificate");
            roots.add(CertificateDer::from_pem_slice(&own).expect("a certificate")).expect("a root");
            roots
        };
        let peer = meet(&server, roots(), Some(client_of(&ours))).expect("meet");
        assert_eq!(peer.subject.as_deref(), Some("/C=SE/CN=ann \\xC3\\xA9"));
        assert_eq!(peer.issuer.as_deref(), Some("/O=Avocet/CN=ours"));
        assert!(peer.cipher.starts_with("TLS_"), "{}", peer.cipher);
        let nobody = meet(&server, roots(), None).expect("no certificate is needed");
        assert_eq!((nobody.subject, nobody.issuer), (None, None));
        assert!(meet(&server, roots(), Some(client_of(&other))).is_err(), "another authority's");

        use crate::auth::TlsRule;
        let rule = |subject: &str, issuer: &str, cipher: &str| TlsRule::Certified {
            subject: subject.into(),
            issuer: issuer.into(),
            cipher: cipher.into(),
        };
        let nobody = TlsPeer { subject: None, issuer: None, cipher: peer.cipher.clone() };
        let issuer = "/O=Avocet/CN=ours";
        for (rule, with, without, plain) in [
            (TlsRule::None, true, true, true),
            (TlsRule::Encrypted, true, true, false),
            (TlsRule::Certificate, true, false, false),
            (rule("", issuer, ""), true, false, false),
            (rule("", "/O=Avocet", ""), false, false, false),
            (rule("", issuer, &peer.cipher), true, false, false),
            (rule("/CN=ben", issuer, ""), false, false, false),
            (rule("", "", "none"), false, false, false),
        ] {
            let found = (rule.allows(Some(&peer)), rule.allows(Some(&nobody)), rule.allows(None));
            assert_eq!(found, (with, without, plain), "{rule:?}");
        }
    }

    #[test]
    fn files_that_are_missing_or_bad_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let files = TlsFiles { certificate: dir.path().join("c.pem"), key: dir.path().join("k.pem") };
        let message = acceptor(dir.path(), Some(&files), None).err().expect("missing").to_string();
        assert!(message.contains("c.pem"), "{message}");
    }
}
