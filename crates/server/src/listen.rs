//! Where clients come in: TCP addresses and Unix sockets.
//!
//! A client on a Unix socket is on this machine, and what it says is read by nobody else: it counts as `localhost`, and its
//! password may come in the clear, as with MySQL. No TLS is offered there.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::auth::accounts::ClientHost;
use crate::server::StartError;
use crate::transport::Transport;

/// Who may connect to a Unix socket: everybody, as far as accounts let them in; but only the server's own user while root
/// needs no password.
const FOR_ALL: u32 = 0o777;
const FOR_OWNER: u32 = 0o700;

/// Where a client is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    Unix,
}

impl Peer {
    pub fn host(self) -> ClientHost {
        match self {
            Self::Tcp(address) => ClientHost::new(address.ip()),
            Self::Unix => ClientHost::of_socket(),
        }
    }

    pub fn is_on_this_machine(self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix => true,
        }
    }

    /// Whether to offer TLS: nobody is between the two ends of a Unix socket.
    pub fn may_upgrade(self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("localhost"),
        }
    }
}

/// One place where clients come in.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(Socket),
}

/// A client that has just come, not yet on any thread's event queue.
pub(crate) enum Incoming {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Incoming {
    /// Puts it on the event queue of this thread.
    pub fn register(self) -> io::Result<Transport> {
        Ok(match self {
            Self::Tcp(stream) => Transport::Plain(TcpStream::from_std(stream)?),
            Self::Unix(stream) => Transport::Unix(UnixStream::from_std(stream)?),
        })
    }

    /// Says something that a fresh socket's buffer has room for; whether it arrives is not known.
    pub fn say(&self, bytes: &[u8]) {
        use std::io::Write;
        let _ = match self {
            Self::Tcp(stream) => (&*stream).write(bytes),
            Self::Unix(stream) => (&*stream).write(bytes),
        };
    }
}

impl Listener {
    pub async fn tcp(address: SocketAddr) -> Result<Self, StartError> {
        let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => StartError::InUse { address },
            _ => StartError::Listen { address, source },
        })?;
        Ok(Self::Tcp(listener))
    }

    /// Takes the place of a socket that a server left behind when it was killed, but of nothing else.
    pub fn unix(path: &Path, root_is_open: bool) -> Result<Self, StartError> {
        let failed = |source| StartError::Socket { path: path.to_owned(), source };
        if let Ok(found) = fs::symlink_metadata(path) {
            let is_served = || std::os::unix::net::UnixStream::connect(path).is_ok();
            if !found.file_type().is_socket() || is_served() {
                return Err(StartError::SocketInUse { path: path.to_owned() });
            }
            fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let socket = Socket { listener, path: path.to_owned() };
        let mode = if root_is_open { FOR_OWNER } else { FOR_ALL };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?;
        Ok(Self::Unix(socket))
    }

    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    pub async fn accept(&self) -> io::Result<(Incoming, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Replies are written whole: waiting to fill segments would only delay them. A client that has left again
                // is found out when it is greeted; others must not wait for that.
                let _ = stream.set_nodelay(true);
                Ok((Incoming::Tcp(stream.into_std()?), Peer::Tcp(address)))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.listener.accept().await?;
                Ok((Incoming::Unix(stream.into_std()?), Peer::Unix))
            }
        }
    }
}

/// A Unix socket; its file goes with its server.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // What is left behind is taken over by the next server.
        let _ = fs::remove_file(&self.path);
    }
}
