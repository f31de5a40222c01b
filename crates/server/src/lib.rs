//! The MySQL protocol server: listeners, sign-in, TLS, commands, results on the wire.
//!
//! ```text
//!   server ──▶ connection ──▶ SqlSession (query)
//!     │           │  ▲  │          │ rows
//!     │           │  └──┼─ wire ◀─ sink
//!     │           │     └▶ front ─▶ the MySQL that is followed
//!     │           └▶ auth
//!     ├▶ http ──▶ SqlSession (metrics, console)
//!     └▶ registry (SHOW PROCESSLIST, KILL, limits, shutdown)
//! ```
//!
//! `protocol` is the wire format without I/O, `wire` a connection's packets, `connection` the task that serves one
//! client. Wire bytes appear in this crate only; what statements mean is `session`'s business.
#![deny(unsafe_code)]

mod account;
pub mod auth;
mod connection;
mod cursor;
pub mod files;
mod front;
mod http;
mod listen;
mod local_file;
pub mod protocol;
mod registry;
mod server;
mod sink;
pub mod tls;
mod transport;
mod wire;
mod workers;

pub use front::{AskedEnd, Late, LogEnd, PeerAccount, Source, SourceTls, Wait};
pub use registry::Registry;
pub use server::{Server, ServerOptions, StartError};
pub use tls::TlsFiles;
