//! The wire format: bytes to values and back, without I/O.
//!
//! `read` and `write` are the primitives; `handshake`, `command` and `params` decode what clients send;
//! `reply`, `column`, `text` and `binary` encode what they get. Decoders return [`Malformed`] on any bytes that
//! do not fit and never panic. Numbers and flags are those of MySQL's client/server protocol documentation;
//! the flag types come from mysql_common.

pub mod binary;
pub mod charset;
pub mod column;
pub mod command;
pub mod handshake;
pub mod params;
pub mod plugins;
pub mod read;
pub mod reply;
pub mod rows;
pub mod sql_text;
pub mod status;
pub mod text;
pub mod write;

pub use mysql_common::constants::{CapabilityFlags, StatusFlags};
pub use read::{Malformed, Reader};
pub use write::PacketBuf;

/// The largest payload of one packet; a payload of exactly this length is continued in the next packet.
pub const MAX_PAYLOAD: usize = 0xFF_FFFF;
