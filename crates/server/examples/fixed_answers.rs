//! A server without a database behind it, for the scripts in `tests/clients`: it prints its port, answers the
//! fixed statements of the protocol tests, and stops when its standard input closes.

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::Read;

fn main() {
    let server = support::TestServer::start();
    println!("{}", server.address.port());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    server.stop();
}
