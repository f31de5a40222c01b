//! OK, EOF and error packets.

use avocet_channel::{OkReply, ResultsCharset, SessionChange, Status};
use avocet_types::error::SqlError;

use super::{CapabilityFlags, PacketBuf, StatusFlags, charset};

const SESSION_TRACK_SYSTEM_VARIABLES: u8 = 0;
const SESSION_TRACK_SCHEMA: u8 = 1;

/// The status flags that clients see for a session's state.
pub fn status_flags(status: &Status) -> StatusFlags {
    let mut flags = StatusFlags::empty();
    flags.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, status.autocommit);
    flags.set(StatusFlags::SERVER_STATUS_IN_TRANS, status.in_transaction);
    let read_only = status.in_transaction && status.read_only;
    flags.set(StatusFlags::SERVER_STATUS_IN_TRANS_READONLY, read_only);
    flags.set(StatusFlags::SERVER_MORE_RESULTS_EXISTS, status.more_results);
    flags.set(StatusFlags::SERVER_PS_OUT_PARAMS, status.out_parameters);
    flags.set(StatusFlags::SERVER_STATUS_NO_INDEX_USED, status.no_index_used);
    flags.set(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES, status.no_backslash_escapes);
    flags
}

pub fn ok(out: &mut PacketBuf, capabilities: CapabilityFlags, reply: &OkReply<'_>) {
    write_ok(out, capabilities, 0x00, reply, status_flags(&reply.status));
}

fn write_ok(
    out: &mut PacketBuf,
    capabilities: CapabilityFlags,
    header: u8,
    reply: &OkReply<'_>,
    mut flags: StatusFlags,
) {
    let tracks = capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
    let changed = tracks && !reply.changes.is_empty();
    flags.set(StatusFlags::SERVER_SESSION_STATE_CHANGED, changed);
    out.begin();
    out.put_u8(header);
    out.lenenc_int(reply.affected_rows);
    out.lenenc_int(reply.last_insert_id);
    out.put_u16(flags.bits());
    out.put_u16(reply.status.warnings);
    if changed || !reply.info.is_empty() {
        out.lenenc_bytes(reply.info.as_bytes());
    }
    if changed {
        put_changes(out, reply.changes);
    }
    out.end();
}

fn put_changes(out: &mut PacketBuf, changes: &[SessionChange<'_>]) {
    let mut block = PacketBuf::default();
    for change in changes {
        let mut data = PacketBuf::default();
        let kind = match change {
            SessionChange::Database(name) => {
                data.lenenc_bytes(name.as_bytes());
                SESSION_TRACK_SCHEMA
            }
            SessionChange::Variable { name, value } => {
                data.lenenc_bytes(name.as_bytes());
                data.lenenc_bytes(value.as_bytes());
                SESSION_TRACK_SYSTEM_VARIABLES
            }
        };
        block.put_u8(kind);
        block.lenenc_bytes(data.bytes());
    }
    out.lenenc_bytes(block.bytes());
}

/// The end of column definitions: an EOF packet for clients that still want one there, else nothing.
pub fn end_of_columns(out: &mut PacketBuf, capabilities: CapabilityFlags, flags: StatusFlags) {
    if !capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        eof(out, 0, flags);
    }
}

/// The end of rows: an EOF packet, or the OK packet that replaces it.
pub fn end_of_rows(out: &mut PacketBuf, capabilities: CapabilityFlags, warnings: u16, flags: StatusFlags) {
    if capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
        let reply = OkReply { status: Status { warnings, ..Status::default() }, ..OkReply::default() };
        write_ok(out, capabilities, 0xFE, &reply, flags);
    } else {
        eof(out, warnings, flags);
    }
}

pub fn eof(out: &mut PacketBuf, warnings: u16, flags: StatusFlags) {
    out.begin();
    out.put_u8(0xFE);
    out.put_u16(warnings);
    out.put_u16(flags.bits());
    out.end();
}

/// An error. Before capabilities are known (a refused connection) there is no SQLSTATE in it.
pub fn error(out: &mut PacketBuf, with_state: bool, error: &SqlError) {
    error_in(out, with_state, error, ResultsCharset::Utf8mb4);
}

/// As `error`, for a client that reads another character set than UTF-8.
pub fn error_in(out: &mut PacketBuf, with_state: bool, error: &SqlError, results: ResultsCharset) {
    out.begin();
    out.put_u8(0xFF);
    out.put_u16(error.errno);
    if with_state {
        out.put_u8(b'#');
        out.put(&error.sqlstate);
    }
    // libmysqlclient keeps 512 bytes; a longer text is cut at a character.
    let mut end = error.message.len().min(2048);
    while !error.message.is_char_boundary(end) {
        end -= 1;
    }
    out.put(&charset::encode(&error.message[..end], results));
    out.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use avocet_types::error::ErrorCode;

    #[test]
    fn an_error_carries_number_state_and_text() {
        let mut out = PacketBuf::new();
        error(&mut out, true, &ErrorCode::NO_DB_ERROR.with(&[]));
        assert_eq!(&out.bytes()[4..], b"\xFF\x16\x04#3D000No database selected");
    }

    #[test]
    fn a_changed_database_is_tracked_only_for_clients_that_ask() {
        let status = Status { autocommit: true, ..Status::default() };
        let changes = [SessionChange::Database("shop")];
        let reply = OkReply { status, changes: &changes, ..OkReply::default() };
        let mut out = PacketBuf::new();
        ok(&mut out, CapabilityFlags::empty(), &reply);
        assert_eq!(&out.bytes()[4..], [0, 0, 0, 2, 0, 0, 0]);
        let mut out = PacketBuf::new();
        ok(&mut out, CapabilityFlags::CLIENT_SESSION_TRACK, &reply);
        assert_eq!(&out.bytes()[4..], b"\x00\x00\x00\x02\x40\x00\x00\x00\x07\x01\x05\x04shop");
    }

    #[test]
    fn rows_end_as_the_client_understands() {
        let mut out = PacketBuf::new();
        end_of_rows(&mut out, CapabilityFlags::empty(), 1, StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        assert_eq!(&out.bytes()[4..], [0xFE, 1, 0, 2, 0]);
        let mut out = PacketBuf::new();
        let new = CapabilityFlags::CLIENT_DEPRECATE_EOF;
        end_of_rows(&mut out, new, 1, StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        assert_eq!(&out.bytes()[4..], [0xFE, 0, 0, 2, 0, 1, 0]);
    }
}
