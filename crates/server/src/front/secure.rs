//! TLS to the source. Whoever speaks TLS to the front has it all the way. The source's certificate is verified if authorities are given;
//! else it is not, since MySQL makes its own, as clients expect (`--ssl-mode=PREFERRED`).

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
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

/// What connects to the source under TLS.
///
/// # Errors
/// If the authorities' certificates cannot be read.
pub fn connector(tls: &SourceTls) -> Result<TlsConnector, FileError> {
    Ok(TlsConnector::from(Arc::new(config(tls)?)))
}

fn config(tls: &SourceTls) -> Result<ClientConfig, FileError> {
    let roots = tls.authorities.as_deref().map(roots).transpose()?;
    avocet_tls::client_config(roots).map_err(|error| FileError::bad(Path::new("TLS"), &error))
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
    avocet_tls::authorities(&text).map_err(|error| bad(&error))
}

/// Whether a host is this machine.
pub fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The name to ask for.
pub fn name_of(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).ok()
}
