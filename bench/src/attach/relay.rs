//! A relay that passes bytes on and does nothing else: what one more hop costs by itself, to compare a front with.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::error::{IoContext, Result};

/// Listens until it is dropped; connections last as long as their ends want.
pub struct Relay {
    pub port: u16,
    stop: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Relay {
    /// Passes on to a port of this machine.
    pub fn start(target: u16) -> Result<Self> {
        let what = || "starting a relay".to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).context(what)?;
        let port = listener.local_addr().context(what)?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let listening = std::thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // A client that cannot be served sees its connection closed.
                let _ = client.and_then(|client| join(client, TcpStream::connect(("127.0.0.1", target))?));
            }
        });
        Ok(Self { port, stop, listening: Some(listening) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that it is to end.
        if TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            && let Some(listening) = self.listening.take()
        {
            let _ = listening.join();
        }
    }
}

/// A thread for each direction: the fewest steps between a packet's arrival and its departure.
fn join(client: TcpStream, server: TcpStream) -> std::io::Result<()> {
    for (from, to) in [(&client, &server), (&server, &client)] {
        from.set_nodelay(true)?;
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        std::thread::spawn(move || pass(from, to));
    }
    Ok(())
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // The other end may have closed already.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_ends_are_passed_on_both_ways() {
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let relay = Relay::start(server.local_addr().unwrap().port()).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        let sent: Vec<u8> = (0..300_000_u32).map(|at| at as u8).collect();
        let expected = sent.clone();
        let echo = std::thread::spawn(move || {
            let mut received = Vec::new();
            accepted.read_to_end(&mut received).unwrap();
            accepted.write_all(&received).unwrap();
        });
        client.write_all(&sent).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        echo.join().unwrap();
        assert!(received == expected);
    }
}
