//! Options of commands that work on a server or, without one, on a data directory.

use std::path::PathBuf;

use mysql::{Conn, OptsBuilder};

use crate::Failure;

#[derive(clap::Args, Clone, Debug)]
pub struct Target {
    /// Work on this data directory itself, without a server
    #[arg(long, value_name = "DIR", conflicts_with_all = ["host", "port", "socket", "user", "password"])]
    pub data: Option<PathBuf>,
    #[arg(short = 'H', long, default_value = "127.0.0.1")]
    pub host: String,
    #[arg(short = 'P', long, default_value_t = 3307)]
    pub port: u16,
    /// Connect through this Unix socket
    #[arg(short = 'S', long, value_name = "PATH", conflicts_with_all = ["host", "port"])]
    pub socket: Option<String>,
    #[arg(short, long, default_value = "root")]
    pub user: String,
    #[arg(short, long, env = "AVOCET_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
}

impl Target {
    /// Connects to the server.
    pub fn connect(&self, database: Option<&str>) -> Result<Conn, Failure> {
        let opts = OptsBuilder::new()
            .ip_or_hostname(Some(self.host.clone()))
            .tcp_port(self.port)
            .user(Some(self.user.clone()))
            .pass(self.password.clone())
            .db_name(database)
            .socket(self.socket.clone())
            .prefer_socket(false)
            // Known, so the driver need not ask.
            .max_allowed_packet(Some(64 << 20));
        Conn::new(opts).map_err(|error| match error {
            mysql::Error::MySqlError(_) => said(error).into(),
            other => format!(
                "cannot connect to {}: {} (is `avocet serve` running there? --data works without a server)",
                self.place(),
                said(other)
            )
            .into(),
        })
    }

    fn place(&self) -> String {
        self.socket.clone().unwrap_or_else(|| format!("{}:{}", self.host, self.port))
    }
}

/// An error as the server or the system said it, without the driver's wrapping.
pub fn said(error: mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(e) => format!("ERROR {} ({}): {}", e.code, e.state, e.message),
        mysql::Error::DriverError(e) => e.to_string(),
        mysql::Error::IoError(e) => e.to_string(),
        other => other.to_string(),
    }
}
