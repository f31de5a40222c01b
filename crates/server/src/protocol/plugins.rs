//! Names and messages of the authentication plugins, as MySQL's documentation of the connection phase has them.

pub const CACHING_SHA2: &str = "caching_sha2_password";
pub const NATIVE: &str = "mysql_native_password";
/// Passwords as they are.
pub const CLEAR: &str = "mysql_clear_password";

/// Messages of caching_sha2_password.
pub mod caching_sha2 {
    /// From the server: the proof will do.
    pub const FAST_AUTH_SUCCESS: u8 = 3;
    /// From the server: it needs the password.
    pub const PERFORM_FULL_AUTHENTICATION: u8 = 4;
    /// From a client without TLS: it needs a key to send the password by.
    pub const REQUEST_PUBLIC_KEY: &[u8] = &[2];
}
