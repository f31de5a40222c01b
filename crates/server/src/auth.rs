//! Who may connect: accounts, authentication plugins and the exchange that proves a password.
//!
//! `native` and `sha2` are the two plugins' arithmetic, `exchange` drives them over a connection, `rsa_key` is
//! the key pair by which a client without TLS may send its password encrypted.

pub mod accounts;
pub mod exchange;
pub mod native;
pub mod rsa_key;
pub mod sha2;
mod throttle;

pub use accounts::{Account, Accounts, LoginRule, MemoryAccounts, Plugin, TlsRule};

use crate::protocol::handshake::Salt;

/// Random bytes for one connection's handshake. Seven bits and never zero or `$`, as clients keep it in C strings.
pub fn random_salt() -> Salt {
    use rand::{RngCore, rngs::OsRng};
    let mut salt = [0; 20];
    OsRng.fill_bytes(&mut salt);
    for byte in &mut salt {
        *byte &= 0x7F;
        if matches!(*byte, 0 | b'$') {
            *byte += 1;
        }
    }
    salt
}

fn xor<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// Compares without telling by its time where the difference is.
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}
