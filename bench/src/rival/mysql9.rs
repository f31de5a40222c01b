//! MySQL 9.7 from Debian unstable, with all its libraries and the loader of its own C library, so that it runs on any host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{self, Suite};
use super::server::{Endpoint, Launch};
use crate::cache;
use crate::error::{IoContext, Result};

/// The server with the closure of its libraries.
const PACKAGES: [&str; 22] = [
    "libaio1t64",
    "libbsd0",
    "libc6",
    "libedit2",
    "libfido2-1",
    "libgcc-s1",
    "libgoogle-perftools4t64",
    "libicu78",
    "liblz4-1",
    "liblzma5",
    "libmd0",
    "libnuma1",
    "libprotobuf-lite32t64",
    "libssl3t64",
    "libstdc++6",
    "libtinfo6",
    "libunwind8",
    "libxxhash0",
    "libzstd1",
    "mysql-client-core",
    "mysql-server-core",
    "zlib1g",
];

pub struct Mysql9 {
    root: PathBuf,
    /// What `serve` adds to the options that figures are measured with; later ones prevail.
    options: Vec<String>,
}

impl Mysql9 {
    /// Fetches the packages unless they are there.
    pub fn fetch() -> Result<Mysql9> {
        let root = cache::folder("mysql-9.7", |dir| packages::unpack(Suite::Unstable, &PACKAGES, dir))?;
        Ok(Mysql9 { root, options: Vec::new() })
    }

    /// The same server with these options added.
    pub fn with(mut self, options: &[&str]) -> Mysql9 {
        self.options.extend(options.iter().map(ToString::to_string));
        self
    }

    /// The same server with the zones of this machine's zone database, by their names.
    pub fn with_zones(mut self) -> Result<Mysql9> {
        let file = self.root.join("zones.sql");
        if !file.exists() {
            let zones = cache::run(self.program("usr/bin/mysql_tzinfo_to_sql").arg("/usr/share/zoneinfo"))?;
            fs::write(&file, format!("USE mysql;\n{zones}"))
                .context(|| format!("writing {}", file.display()))?;
        }
        self.options.push(format!("--init-file={}", file.display()));
        Ok(self)
    }

    /// One of its programs.
    pub fn tool(&self, path: &str) -> Command {
        self.program(path)
    }

    fn program(&self, path: &str) -> Command {
        let mut command = Command::new(self.root.join("usr/lib64/ld-linux-x86-64.so.2"));
        let libraries = self.root.join("usr/lib/x86_64-linux-gnu");
        command.arg("--library-path").arg(libraries).arg(self.root.join(path));
        command
    }

    fn command(&self, data: &Path) -> Command {
        let root = self.root.display();
        let mut command = self.program("usr/sbin/mysqld");
        command
            // Unlike --no-defaults, it has what SET PERSIST kept read.
            .args(["--defaults-file=/dev/null", &format!("--basedir={root}/usr")])
            .arg(format!("--lc-messages-dir={root}/usr/share/mysql"))
            .arg(format!("--character-sets-dir={root}/usr/share/mysql/charsets"))
            .arg(format!("--plugin-dir={root}/usr/lib/mysql/plugin"))
            .args(["--secure-file-priv=NULL", &format!("--datadir={}", data.display())]);
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
        command
    }
}

impl Launch for Mysql9 {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn initialize(&self, data: &Path) -> Result<()> {
        cache::run(self.command(data).arg("--initialize-insecure")).map(drop)
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let run = data.parent().unwrap_or(data);
        let mut server = self.command(data);
        server
            .arg(format!("--socket={}", at.socket.display()))
            .arg(format!("--pid-file={}", run.join("pid").display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={}", at.port), "--mysqlx=OFF"])
            .args(["--skip-log-bin", "--performance-schema=OFF"])
            .arg("--innodb-redo-log-capacity=2G")
            .args(super::INNODB)
            .args(&self.options);
        server
    }
}
