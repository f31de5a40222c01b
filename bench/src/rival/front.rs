//! `avocet attach` before a real MySQL on this machine: who connects here gets both.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::avocet;
use super::server::{Endpoint, Launch};
use crate::error::Result;

pub struct Front {
    binary: PathBuf,
    source: u16,
    options: Vec<String>,
}

impl Front {
    /// Before the server on this port; `options` are added to `avocet attach`.
    pub fn before(source: u16, options: &[String]) -> Result<Self> {
        Ok(Self { binary: avocet::binary()?, source, options: options.to_vec() })
    }
}

impl Launch for Front {
    fn name(&self) -> &'static str {
        "avocet's front"
    }

    fn initialize(&self, _data: &Path) -> Result<()> {
        Ok(())
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let mut server = Command::new(&self.binary);
        server
            .arg("attach")
            .arg(format!("mysql://root@127.0.0.1:{}/", self.source))
            .arg("--data")
            .arg(data)
            .args(["--listen", "127.0.0.1:0", "--front", &format!("127.0.0.1:{}", at.port)])
            .args(&self.options);
        server
    }
}
