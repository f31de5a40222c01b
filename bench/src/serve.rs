//! A server with TPC-C's procedures: Avocet's own server as a library, in a process of its own (this program, started anew).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use avocet_server::auth::MemoryAccounts;
use avocet_server::{Server, ServerOptions};
use avocet_session::Database;
use clap::Args;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, IoContext, Result};
use crate::rival::{Endpoint, Launch};
use crate::tpcc::procedures;

#[derive(Args, Clone)]
pub struct Options {
    #[arg(long)]
    data: PathBuf,
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    socket: PathBuf,
}

/// Serves until SIGTERM.
pub fn command(options: &Options) -> Result<()> {
    let engine = procedures::open(&options.data, |_| ())?;
    let database = Database::new(engine, None).map_err(setup)?;
    let runtime = Runtime::new().context(|| "starting the runtime".into())?;
    runtime.block_on(serve(options, database.clone()))?;
    drop(runtime);
    database.shutdown().map_err(setup)
}

fn setup(error: impl std::fmt::Display) -> Error {
    Error::Setup(format!("the server with procedures: {error}"))
}

async fn serve(options: &Options, database: Database) -> Result<()> {
    let mut server_options = ServerOptions::new(options.data.clone(), options.listen);
    server_options.sockets.push(options.socket.clone());
    let accounts = Arc::new(MemoryAccounts::open_root());
    let server = Server::bind(server_options, database, accounts).await.map_err(setup)?;
    let mut terminate = signal(SignalKind::terminate()).context(|| "listening for SIGTERM".into())?;
    server
        .run(async move {
            terminate.recv().await;
        })
        .await;
    Ok(())
}

/// Launches it.
pub struct WithProcedures {
    own: PathBuf,
}

impl WithProcedures {
    pub fn find() -> Result<WithProcedures> {
        Ok(WithProcedures { own: std::env::current_exe().context(|| "finding this program".into())? })
    }
}

impl Launch for WithProcedures {
    fn name(&self) -> &'static str {
        "avocet"
    }

    fn initialize(&self, _data: &Path) -> Result<()> {
        Ok(())
    }

    fn serve(&self, data: &Path, at: &Endpoint) -> Command {
        let mut server = Command::new(&self.own);
        server.arg("serve-procedures").arg("--data").arg(data);
        server.arg("--listen").arg(format!("127.0.0.1:{}", at.port));
        server.arg("--socket").arg(&at.socket);
        server
    }
}
