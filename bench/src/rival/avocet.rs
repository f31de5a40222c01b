//! Avocet itself: the release binary beside this one, or what `$AVOCET_BIN` names.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Endpoint, Launch};
use crate::error::{Error, Result};

pub struct Avocet {
    binary: PathBuf,
    options: Vec<String>,
}

impl Avocet {
    /// Finds the binary; `options` are added to `avocet serve`.
    pub fn find(options: &[String]) -> Result<Avocet> {
        Ok(Avocet { binary: binary()?, options: options.to_vec() })
    }
}

/// Where the `avocet` binary is.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("AVOCET_BIN") {
        return Ok(PathBuf::from(path));
    }
    let own = std::env::current_exe().map_err(|e| Error::Setup(format!("finding this program: {e}")))?;
    let beside = own.with_file_name("avocet");
    if beside.is_file() {
        return Ok(beside);
    }
    Err(Error::Setup(format!("{} is not there: build it, or set AVOCET_BIN", beside.display())))
}

impl Launch for Avocet {
    fn name(&self) -> &'static str {
        "avocet"
    }

    fn initialize(&self, _data: &Path) -> Result<()> {
        Ok(())
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let mut server = Command::new(&self.binary);
        server
            .arg("serve")
            .arg("--data")
            .arg(data)
            .arg("--listen")
            .arg(format!("127.0.0.1:{}", at.port))
            .arg("--socket")
            .arg(&at.socket)
            .args(&self.options);
        server
    }
}
