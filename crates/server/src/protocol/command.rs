//! What clients ask for after the connection phase.

use mysql_common::constants::Command as Code;

use super::read::{Malformed, Reader};
use super::{CapabilityFlags, params};

/// A command packet, taken apart.
#[derive(Debug)]
pub enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    Query(&'a [u8]),
    FieldList {
        table: &'a [u8],
    },
    Statistics,
    ProcessKill(u32),
    Debug,
    Ping,
    /// The rest of the packet, for `handshake::change_user`.
    ChangeUser(Reader<'a>),
    ResetConnection,
    /// Whether several statements may come in one text from now on.
    SetOption {
        multi_statements: bool,
    },
    Prepare(&'a [u8]),
    /// Id, and the rest for `params::execute`.
    Execute {
        statement: u32,
        rest: Reader<'a>,
    },
    SendLongData {
        statement: u32,
        parameter: u16,
        data: &'a [u8],
    },
    CloseStatement(u32),
    ResetStatement(u32),
    Fetch {
        statement: u32,
        rows: u32,
    },
    /// A replica says who it is.
    RegisterReplica {
        server_id: u32,
        host: &'a [u8],
        port: u16,
    },
    /// A replica wants the binary log from a place on.
    Dump {
        file: &'a [u8],
        position: u64,
        how: DumpFlags,
    },
    /// A replica wants all that it does not have of the binary log; from a place on, if it names a file.
    DumpGtids {
        set: &'a [u8],
        file: &'a [u8],
        position: u64,
        how: DumpFlags,
    },
    Unknown,
}

/// How a replica wants the binary log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpFlags {
    /// No further than it goes now.
    pub until_end: bool,
    /// With heartbeats that have places beyond 4 GiB.
    pub heartbeats_in_full: bool,
}

impl DumpFlags {
    /// BINLOG_DUMP_NON_BLOCK and USE_HEARTBEAT_EVENT_V2; the second one is BINLOG_SEND_ANNOTATE_ROWS_EVENT of a MariaDB.
    fn of(flags: u16) -> Self {
        Self { until_end: flags & 1 != 0, heartbeats_in_full: flags & 2 != 0 }
    }
}

fn short_bytes<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = reader.u8()?;
    reader.bytes(len.into())
}

/// A statement's text. Some clients count the NUL that ends a C string (mysqlslap does).
fn text<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    let text = reader.rest();
    text.strip_suffix(b"\0").unwrap_or(text)
}

/// Takes a command packet apart.
pub fn parse(payload: &[u8], capabilities: CapabilityFlags) -> Result<Command<'_>, Malformed> {
    let mut reader = Reader::new(payload);
    let code = reader.u8()?;
    Ok(match code {
        c if c == Code::COM_QUERY as u8 => {
            if capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES) {
                params::skip_query_attributes(&mut reader)?;
            }
            Command::Query(text(&mut reader))
        }
        c if c == Code::COM_STMT_EXECUTE as u8 => Command::Execute { statement: reader.u32()?, rest: reader },
        c if c == Code::COM_STMT_PREPARE as u8 => Command::Prepare(text(&mut reader)),
        c if c == Code::COM_STMT_CLOSE as u8 => Command::CloseStatement(reader.u32()?),
        c if c == Code::COM_STMT_RESET as u8 => Command::ResetStatement(reader.u32()?),
        c if c == Code::COM_STMT_FETCH as u8 => {
            Command::Fetch { statement: reader.u32()?, rows: reader.u32()? }
        }
        c if c == Code::COM_STMT_SEND_LONG_DATA as u8 => {
            Command::SendLongData { statement: reader.u32()?, parameter: reader.u16()?, data: reader.rest() }
        }
        c if c == Code::COM_PING as u8 => Command::Ping,
        c if c == Code::COM_QUIT as u8 => Command::Quit,
        c if c == Code::COM_INIT_DB as u8 => Command::InitDb(reader.rest()),
        c if c == Code::COM_FIELD_LIST as u8 => Command::FieldList { table: reader.nul_bytes() },
        c if c == Code::COM_STATISTICS as u8 => Command::Statistics,
        c if c == Code::COM_PROCESS_KILL as u8 => Command::ProcessKill(reader.u32()?),
        c if c == Code::COM_DEBUG as u8 => Command::Debug,
        c if c == Code::COM_CHANGE_USER as u8 => Command::ChangeUser(reader),
        c if c == Code::COM_RESET_CONNECTION as u8 => Command::ResetConnection,
        c if c == Code::COM_SET_OPTION as u8 => match reader.u16()? {
            0 => Command::SetOption { multi_statements: true },
            1 => Command::SetOption { multi_statements: false },
            _ => return Err(Malformed),
        },
        c if c == Code::COM_REGISTER_SLAVE as u8 => {
            let server_id = reader.u32()?;
            let host = short_bytes(&mut reader)?;
            let (_user, _password) = (short_bytes(&mut reader)?, short_bytes(&mut reader)?);
            Command::RegisterReplica { server_id, host, port: reader.u16()? }
        }
        c if c == Code::COM_BINLOG_DUMP as u8 => {
            let (position, flags, _server_id) = (reader.u32()?, reader.u16()?, reader.u32()?);
            Command::Dump { position: position.into(), how: DumpFlags::of(flags), file: reader.rest() }
        }
        c if c == Code::COM_BINLOG_DUMP_GTID as u8 => {
            let (flags, _server_id) = (reader.u16()?, reader.u32()?);
            let len = reader.u32()? as usize;
            let (file, position) = (reader.bytes(len)?, reader.u64()?);
            let len = reader.u32()? as usize;
            Command::DumpGtids { set: reader.bytes(len)?, file, position, how: DumpFlags::of(flags) }
        }
        _ => Command::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(payload in prop::collection::vec(any::<u8>(), 0..100), all: bool) {
            let capabilities = if all { CapabilityFlags::all() } else { CapabilityFlags::empty() };
            let _ = parse(&payload, capabilities);
        }
    }

    #[test]
    fn replicas_say_from_where_and_how() {
        let packet = |code: Code, flags: u16, rest: &[u8]| {
            let mut packet = vec![code as u8];
            if code == Code::COM_BINLOG_DUMP {
                packet.extend_from_slice(&4u32.to_le_bytes());
            }
            packet.extend_from_slice(&flags.to_le_bytes());
            packet.extend_from_slice(&7u32.to_le_bytes());
            packet.extend_from_slice(rest);
            packet
        };
        for (flags, until_end, heartbeats_in_full) in [(0, false, false), (1, true, false), (2, false, true)]
        {
            let wanted = DumpFlags { until_end, heartbeats_in_full };
            let sent = packet(Code::COM_BINLOG_DUMP, flags, b"binlog.000003");
            let Ok(Command::Dump { file, position: 4, how }) = parse(&sent, CapabilityFlags::empty()) else {
                panic!("{sent:?}")
            };
            assert_eq!((file, how), (&b"binlog.000003"[..], wanted));
            for name in [&b""[..], b"binlog.000003"] {
                let mut rest = (name.len() as u32).to_le_bytes().to_vec();
                rest.extend_from_slice(name);
                rest.extend_from_slice(&(5u64 << 32).to_le_bytes());
                rest.extend_from_slice(&3u32.to_le_bytes());
                rest.extend_from_slice(b"set");
                let sent = packet(Code::COM_BINLOG_DUMP_GTID, flags, &rest);
                let Ok(Command::DumpGtids { set: b"set", file, position, how }) =
                    parse(&sent, CapabilityFlags::empty())
                else {
                    panic!("{sent:?}")
                };
                assert_eq!((file, position, how), (name, 5 << 32, wanted));
            }
        }
    }

    #[test]
    fn commands_with_too_little_in_them_are_malformed() {
        assert!(parse(&[], CapabilityFlags::empty()).is_err());
        assert!(parse(&[Code::COM_STMT_EXECUTE as u8, 1], CapabilityFlags::empty()).is_err());
        assert!(matches!(parse(&[0x77], CapabilityFlags::empty()), Ok(Command::Unknown)));
    }
}
