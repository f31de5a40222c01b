//! TLS to the source, for the connections of the replication.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use avocet_replicate::{ReplicateError, source};
use mysql::{Opts, OptsBuilder, SslOpts};

/// As the modes of MySQL's clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SslMode {
    /// Never
    Disabled,
    /// If the source has it and is not on this machine; its certificate is not verified
    #[default]
    Preferred,
    /// Always; its certificate is not verified
    Required,
    /// Always, and the source's certificate has to be for its name and signed by an authority of --source-ssl-ca
    VerifyIdentity,
}

/// How connections to the source are encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    pub mode: SslMode,
    pub authorities: Option<PathBuf>,
}

impl Tls {
    /// The options with TLS. What the source has is found out now, if that is asked for.
    ///
    /// # Errors
    /// If the authorities that certificates are verified with are not there.
    pub fn secure(&self, opts: Opts) -> Result<Opts, String> {
        let with = |ssl: SslOpts| Opts::from(OptsBuilder::from_opts(opts.clone()).ssl_opts(Some(ssl)));
        let any = || with(SslOpts::default().with_danger_accept_invalid_certs(true));
        match (self.mode, &self.authorities) {
            (SslMode::VerifyIdentity, Some(path)) => {
                check_file(path)?;
                Ok(with(SslOpts::default().with_root_cert_path(Some(path.clone()))))
            }
            (SslMode::VerifyIdentity, None) => {
                let what = "the authorities that sign the source's certificate are not named";
                Err(format!("{what} (--source-ssl-ca, SOURCE_SSL_CA)"))
            }
            (_, Some(_)) => {
                Err("--source-ssl-ca verifies nothing without --source-ssl-mode verify-identity".into())
            }
            (SslMode::Disabled, _) => Ok(opts),
            (SslMode::Required, _) => Ok(any()),
            (SslMode::Preferred, _) if is_this_machine(&opts.get_ip_or_hostname()) => Ok(opts),
            (SslMode::Preferred, _) => match source::connect(&any()) {
                Err(ReplicateError::Source(mysql::Error::DriverError(
                    mysql::DriverError::TlsNotSupported,
                ))) => {
                    tracing::warn!("the source has no TLS: what it sends can be read on its way");
                    Ok(opts)
                }
                // Whoever is away is expected back with TLS.
                Ok(_) | Err(_) => Ok(any()),
            },
        }
    }

    pub fn is_required(&self) -> bool {
        matches!(self.mode, SslMode::Required | SslMode::VerifyIdentity)
    }

    /// What the certificate is verified with, if it is.
    pub fn verified_by(&self) -> Option<&Path> {
        self.authorities.as_deref().filter(|_| self.mode == SslMode::VerifyIdentity)
    }
}

fn check_file(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(file) if file.is_file() => Ok(()),
        Ok(_) => Err(format!("{} is not a file", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Nobody else listens to what stays here.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
