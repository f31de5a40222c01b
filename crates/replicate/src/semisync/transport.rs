//! Bytes to the source and back, in clear or under TLS, read by one thread while another writes.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mysql::SslOpts;
use mysql_common::packets::SemiSyncAckPacket;
use mysql_common::proto::MySerialize;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::state::LogPlace;

/// A source that takes nothing for so long is gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Of bytes under TLS that are read at a time: what they hold always fits behind what the session keeps.
const PIECE: usize = 4096;

pub struct Transport {
    stream: TcpStream,
    /// Held for no longer than bytes are turned into others, but for writing.
    tls: Option<Mutex<ClientConnection>>,
}

impl Transport {
    /// Connects in clear. Whoever reads is not kept waiting for longer than `silence`.
    pub fn connect(host: &str, port: u16, silence: Duration) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_PATIENCE) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(silence))?;
                    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
                    return Ok(Self { stream, tls: None });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Goes on under TLS.
    pub fn secure(self, host: &str, options: &SslOpts) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut session =
            ClientConnection::new(Arc::new(config(options)?), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut &self.stream)?;
        }
        Ok(Self { tls: Some(Mutex::new(session)), ..self })
    }

    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    pub fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return (&self.stream).read(to) };
        loop {
            {
                let mut session = tls.lock();
                match session.reader().read(to) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
                // What the protocol itself has to say.
                self.flush(&mut session)?;
            }
            let mut piece = [0; PIECE];
            let read = (&self.stream).read(&mut piece)?;
            let mut rest = &piece[..read];
            let mut session = tls.lock();
            loop {
                session.read_tls(&mut rest)?;
                session.process_new_packets().map_err(io::Error::other)?;
                if rest.is_empty() {
                    break;
                }
            }
        }
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match &self.tls {
            None => (&self.stream).write_all(bytes),
            Some(tls) => {
                let mut session = tls.lock();
                session.writer().write_all(bytes)?;
                self.flush(&mut session)
            }
        }
    }

    fn flush(&self, session: &mut ClientConnection) -> io::Result<()> {
        while session.wants_write() {
            session.write_tls(&mut &self.stream)?;
        }
        Ok(())
    }

    /// Tells the source that all before a place is durable here: a packet of its own, whose number is 0.
    pub fn acknowledge(&self, place: &LogPlace) -> io::Result<()> {
        let mut payload = Vec::new();
        SemiSyncAckPacket::new(place.offset, place.file.as_bytes()).serialize(&mut payload);
        self.write(&framed(0, &payload))
    }

    /// Whoever reads or writes fails from now on.
    pub fn close(&self) {
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// A packet of less than 16 MiB.
pub fn framed(number: u8, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() < 0xff_ffff, "nothing as large is sent to a source");
    let mut packet = Vec::with_capacity(4 + payload.len());
    packet.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
    packet.push(number);
    packet.extend_from_slice(payload);
    packet
}

/// What the options of the other connections say.
fn config(options: &SslOpts) -> io::Result<ClientConfig> {
    let authorities = match options.accept_invalid_certs() {
        true => None,
        false => {
            let path =
                options.root_cert_path().ok_or_else(|| io::Error::other("no authorities are named"))?;
            Some(roots(path)?)
        }
    };
    avocet_tls::client_config(authorities).map_err(io::Error::other)
}

fn roots(path: &Path) -> io::Result<RootCertStore> {
    let bad = |why: &dyn std::fmt::Display| io::Error::other(format!("{}: {why}", path.display()));
    let text = fs::read(path).map_err(|error| bad(&error))?;
    avocet_tls::authorities(&text).map_err(|error| bad(&error))
}
