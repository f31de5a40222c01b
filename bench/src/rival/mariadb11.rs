//! MariaDB 11 from Debian unstable, with all its libraries and the loader of its own C library, so that it runs on any host.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{self, Suite};
use super::server::{Endpoint, Launch};
use crate::cache;
use crate::error::{IoContext, Result};

/// The server with the closure of its libraries.
const PACKAGES: [&str; 23] = [
    "libaio1t64",
    "libbsd0",
    "libc6",
    "libcap2",
    "libcrypt1",
    "libedit2",
    "libgcc-s1",
    "libmariadb3",
    "libmd0",
    "libncurses6",
    "libnuma1",
    "libpcre2-8-0",
    "libssl3t64",
    "libstdc++6",
    "libsystemd0",
    "libtinfo6",
    "liburing2",
    "libzstd1",
    "mariadb-client-core",
    "mariadb-common",
    "mariadb-server-core",
    "mysql-common",
    "zlib1g",
];

/// What `mariadb-install-db` reads, a shell script that asks for programs of the host.
const SYSTEM: [&str; 6] = [
    "mariadb_system_tables",
    "mariadb_performance_tables",
    "mariadb_system_tables_data",
    "fill_help_tables",
    "maria_add_gis_sp_bootstrap",
    "mariadb_sys_schema",
];

pub struct MariaDb11 {
    root: PathBuf,
    options: Vec<String>,
}

impl MariaDb11 {
    /// Fetches the packages unless they are there.
    pub fn fetch() -> Result<MariaDb11> {
        let root = cache::folder("mariadb-11", |dir| packages::unpack(Suite::Unstable, &PACKAGES, dir))?;
        Ok(MariaDb11 { root, options: Vec::new() })
    }

    /// The same server with these options added.
    pub fn with(mut self, options: &[&str]) -> MariaDb11 {
        self.options.extend(options.iter().map(ToString::to_string));
        self
    }

    fn command(&self, data: &Path) -> Command {
        let root = self.root.display();
        let mut command = Command::new(self.root.join("usr/lib64/ld-linux-x86-64.so.2"));
        command
            .arg("--library-path")
            .arg(self.root.join("usr/lib/x86_64-linux-gnu"))
            .arg(self.root.join("usr/sbin/mariadbd"))
            .args(["--no-defaults", &format!("--basedir={root}/usr")])
            .arg(format!("--lc-messages-dir={root}/usr/share/mariadb"))
            .arg(format!("--character-sets-dir={root}/usr/share/mariadb/charsets"))
            .arg(format!("--datadir={}", data.display()));
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
        command
    }
}

impl Launch for MariaDb11 {
    fn name(&self) -> &'static str {
        "mariadb 11"
    }

    fn initialize(&self, data: &Path) -> Result<()> {
        let system = data.join("mysql");
        fs::create_dir_all(&system).context(|| format!("creating {}", system.display()))?;
        let mut text = String::from("USE mysql;\nSET @auth_root_socket=NULL;\n");
        for name in SYSTEM {
            let file = self.root.join(format!("usr/share/mariadb/{name}.sql"));
            text.push_str(&fs::read_to_string(&file).context(|| format!("reading {}", file.display()))?);
            text.push('\n');
        }
        let input = data.with_extension("sql");
        fs::write(&input, text).context(|| format!("writing {}", input.display()))?;
        let input = File::open(&input).context(|| format!("opening {}", input.display()))?;
        let mut bootstrap = self.command(data);
        bootstrap
            .args(["--bootstrap", "--log-warnings=0", "--enforce-storage-engine="])
            .args(["--max-allowed-packet=8M", "--net-buffer-length=16K"])
            .stdin(input);
        cache::run(&mut bootstrap).map(drop)
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let mut server = self.command(data);
        server
            .arg(format!("--socket={}", at.socket.display()))
            .arg(format!("--pid-file={}", data.join("pid").display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={}", at.port), "--skip-name-resolve"])
            .arg("--innodb-log-file-size=2G")
            .args(super::INNODB)
            .args(&self.options);
        server
    }
}
