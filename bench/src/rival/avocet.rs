//! Avocet itself: the release binary beside this one, or what `$AVOCET_BIN` names; and an earlier one as its rival.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Endpoint, Launch};
use crate::error::{Error, Result};

pub struct Avocet {
    name: &'static str,
    binary: PathBuf,
    options: Vec<String>,
}

impl Avocet {
    /// Finds the binary; `options` are added to `avocet serve`.
    pub fn find(options: &[String]) -> Result<Avocet> {
        Ok(Avocet { name: "avocet", binary: binary()?, options: options.to_vec() })
    }

    /// The binary that `$AVOCET_EARLIER_BIN` names, without options: a new one must not be slower.
    pub fn earlier() -> Result<Avocet> {
        let named = std::env::var_os("AVOCET_EARLIER_BIN");
        let binary = named.ok_or_else(|| {
            Error::Setup(
                "set AVOCET_EARLIER_BIN to the avocet binary that this one is measured against".into(),
            )
        })?;
        Ok(Avocet { name: "earlier", binary: binary.into(), options: Vec::new() })
    }

    pub fn binary(&self) -> &Path {
        &self.binary
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
        self.name
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
