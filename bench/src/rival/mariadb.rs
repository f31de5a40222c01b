//! MariaDB from the machine's own Debian suite (10.11 in Debian 12), unpacked, not installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{self, Suite};
use super::server::{Endpoint, Launch};
use crate::cache;
use crate::error::Result;

/// The server, its client, and the libraries that a minimal Debian may lack.
const PACKAGES: [&str; 11] = [
    "libaio1",
    "libaio1t64",
    "liblz4-1",
    "libmariadb3",
    "libnuma1",
    "libpcre2-8-0",
    "libssl3t64",
    "liburing2",
    "mariadb-client-core",
    "mariadb-server-core",
    "mysql-common",
];

pub struct MariaDb {
    root: PathBuf,
    /// What `serve` adds to the options that figures are measured with; later ones prevail.
    options: Vec<String>,
}

impl MariaDb {
    /// Fetches the packages unless they are there.
    pub fn fetch() -> Result<MariaDb> {
        let root = cache::folder("mariadb", |dir| packages::unpack(Suite::OfThisMachine, &PACKAGES, dir))?;
        Ok(MariaDb { root, options: Vec::new() })
    }

    /// The same server with these options added.
    pub fn with(mut self, options: &[&str]) -> MariaDb {
        self.options.extend(options.iter().map(ToString::to_string));
        self
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.root.join(program));
        command.env("LD_LIBRARY_PATH", self.root.join("usr/lib/x86_64-linux-gnu"));
        command
    }
}

impl Launch for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn initialize(&self, data: &Path) -> Result<()> {
        let mut install = self.command("usr/bin/mariadb-install-db");
        install
            .arg("--no-defaults")
            .arg(format!("--basedir={}", self.root.join("usr").display()))
            .arg(format!("--datadir={}", data.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
        if rustix::process::geteuid().is_root() {
            install.arg("--user=root");
        }
        cache::run(&mut install).map(drop)
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let mut server = self.command("usr/sbin/mariadbd");
        server
            .arg("--no-defaults")
            .arg(format!("--basedir={}", self.root.join("usr").display()))
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--plugin-dir={}", self.root.join("usr/lib/mysql/plugin").display()))
            .arg(format!("--socket={}", at.socket.display()))
            .arg(format!("--pid-file={}", data.join("pid").display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={}", at.port), "--skip-name-resolve"])
            .arg("--innodb-log-file-size=2G")
            .args(super::INNODB)
            .args(&self.options);
        if rustix::process::geteuid().is_root() {
            server.arg("--user=root");
        }
        server
    }
}
