//! A client that sends whatever bytes a test wants.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub struct Raw<S = TcpStream> {
    pub stream: S,
}

/// An error packet's number and text, or the packet.
pub fn error_of(payload: &[u8]) -> Option<(u16, String)> {
    match payload {
        [0xFF, a, b, rest @ ..] => {
            Some((u16::from_le_bytes([*a, *b]), String::from_utf8_lossy(rest).into_owned()))
        }
        _ => None,
    }
}

const BASE: u32 = 0x0000_0200 | 0x0000_8000 | 0x0008_0000;

impl Raw {
    /// Connects and reads the greeting.
    pub fn connect(address: SocketAddr) -> (Self, Vec<u8>) {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let mut raw = Self { stream };
        let greeting = raw.read().expect("a greeting").1;
        (raw, greeting)
    }

    /// Connects and signs in as root without a password.
    pub fn sign_in(address: SocketAddr) -> Self {
        Self::sign_in_with(address, 0)
    }

    /// As [`Self::sign_in`], by a client that can do more than what all of these can.
    pub fn sign_in_with(address: SocketAddr, capabilities: u32) -> Self {
        let (mut raw, _) = Self::connect(address);
        raw.log_in(capabilities);
        raw
    }
}

impl Raw<UnixStream> {
    /// As [`Raw::sign_in`], through a socket.
    pub fn sign_in_through(socket: &Path) -> Self {
        let mut raw = Self { stream: UnixStream::connect(socket).expect("a connection") };
        raw.read().expect("a greeting");
        raw.log_in(0);
        raw
    }
}

impl<S: Read + Write> Raw<S> {
    fn log_in(&mut self, capabilities: u32) {
        self.send(1, &login(capabilities, b"root", b"", b"caching_sha2_password"));
        let (_, reply) = self.read().expect("a reply");
        assert_eq!(reply[0], 0, "not OK: {reply:?}");
    }

    pub fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        packet.push(sequence);
        packet.extend_from_slice(payload);
        self.stream.write_all(&packet).expect("a server that reads");
    }

    /// The next packet; `None` if the server closed the connection.
    pub fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).ok()?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload).ok()?;
        Some((header[3], payload))
    }

    /// Sends a command and returns the first packet of its reply.
    pub fn command(&mut self, payload: &[u8]) -> Vec<u8> {
        self.send(0, payload);
        self.read().expect("a reply").1
    }

    pub fn is_closed(&mut self) -> bool {
        self.read().is_none()
    }
}

/// A handshake response.
pub fn login(more: u32, user: &[u8], response: &[u8], plugin: &[u8]) -> Vec<u8> {
    let mut payload = (BASE | more).to_le_bytes().to_vec();
    payload.extend_from_slice(&(1u32 << 24).to_le_bytes());
    payload.push(255);
    payload.extend_from_slice(&[0; 23]);
    payload.extend_from_slice(user);
    payload.push(0);
    payload.push(response.len() as u8);
    payload.extend_from_slice(response);
    payload.extend_from_slice(plugin);
    payload.push(0);
    payload
}
