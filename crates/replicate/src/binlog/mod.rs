//! The binary log's bytes: what events hold, without their meaning for tables here.
//!
//! - `bytes`: reading integers and lengths from a slice
//! - `table_map`: which table a row event is about, and its columns
//! - `codec`: a column's values, from bytes to `Datum`s
//! - `rows`: the rows of an event
//! - `json_diff`: partial updates of documents
//! - `payload`: compressed transactions
//! - `compressed`: MariaDB's compressed events
//! - `query`: statements, with the session that they ran in
//! - `transaction`: the identifiers that transactions begin with

mod bytes;
mod codec;
mod compressed;
mod json_diff;
mod payload;
mod query;
mod rows;
mod table_map;
mod transaction;

pub use bytes::Bytes;
pub use codec::{ReadError, TableCodec};
pub use compressed::decompressed;
pub use payload::each_event;
pub use query::{Query, SessionOfQuery, sql_mode_bits};
pub use rows::{Change, Image, RowsEvent};
pub use table_map::{TableMap, column};
pub use transaction::{Begins, Shape, begins, begins_anonymous, begins_in_domain};

/// The kinds of events that matter here, by their numbers.
pub mod kind {
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const INTVAR: u8 = 5;
    pub const APPEND_BLOCK: u8 = 9;
    pub const DELETE_FILE: u8 = 11;
    pub const RAND: u8 = 13;
    pub const USER_VAR: u8 = 14;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const BEGIN_LOAD_QUERY: u8 = 17;
    pub const EXECUTE_LOAD_QUERY: u8 = 18;
    pub const TABLE_MAP: u8 = 19;
    pub const WRITE_ROWS_V1: u8 = 23;
    pub const UPDATE_ROWS_V1: u8 = 24;
    pub const DELETE_ROWS_V1: u8 = 25;
    pub const INCIDENT: u8 = 26;
    pub const HEARTBEAT: u8 = 27;
    pub const IGNORABLE: u8 = 28;
    pub const ROWS_QUERY: u8 = 29;
    pub const WRITE_ROWS: u8 = 30;
    pub const UPDATE_ROWS: u8 = 31;
    pub const DELETE_ROWS: u8 = 32;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const TRANSACTION_CONTEXT: u8 = 36;
    pub const VIEW_CHANGE: u8 = 37;
    pub const XA_PREPARE: u8 = 38;
    pub const PARTIAL_UPDATE_ROWS: u8 = 39;
    pub const TRANSACTION_PAYLOAD: u8 = 40;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const GTID_TAGGED: u8 = 42;

    /// From here on they are MariaDB's.
    pub const ANNOTATE_ROWS: u8 = 160;
    pub const BINLOG_CHECKPOINT: u8 = 161;
    pub const DOMAIN_GTID: u8 = 162;
    pub const GTID_LIST: u8 = 163;
    pub const START_ENCRYPTION: u8 = 164;
    pub const QUERY_COMPRESSED: u8 = 165;
    pub const WRITE_ROWS_COMPRESSED_V1: u8 = 166;
    pub const UPDATE_ROWS_COMPRESSED_V1: u8 = 167;
    pub const DELETE_ROWS_COMPRESSED_V1: u8 = 168;
    pub const WRITE_ROWS_COMPRESSED: u8 = 169;
    pub const UPDATE_ROWS_COMPRESSED: u8 = 170;
    pub const DELETE_ROWS_COMPRESSED: u8 = 171;
}
