//! What clients send: four bytes of capabilities, then a packet, taken apart as every kind that it could be.

use avocet_server::protocol::command::{self, Command};
use avocet_server::protocol::read::Reader;
use avocet_server::protocol::{CapabilityFlags, handshake, params, sql_text};
use avocet_types::collation::Charset;

/// Parameters of the statement that an execute packet is read for, at most.
const PARAMETERS: usize = 4;

pub fn run(data: &[u8]) {
    let Some((capabilities, packet)) = data.split_first_chunk::<4>() else { return };
    let capabilities = CapabilityFlags::from_bits_truncate(u32::from_le_bytes(*capabilities));
    match command::parse(packet, capabilities) {
        Ok(Command::Query(text) | Command::Prepare(text)) => {
            for escapes in [false, true] {
                drop(sql_text::decode(text, escapes));
                drop(sql_text::decode_in(text, Charset::Gbk, escapes));
                drop(sql_text::decode_in(text, Charset::Sjis, escapes));
            }
        }
        Ok(Command::Execute { rest, .. }) => execute(rest, capabilities),
        Ok(Command::ChangeUser(rest)) => {
            let _ = handshake::change_user(rest, capabilities);
        }
        Ok(_) | Err(_) => {}
    }
    execute(Reader::new(packet), capabilities);
    let mut reader = Reader::new(packet);
    if let Ok(hello) = handshake::client_hello(&mut reader)
        && let Ok(login) = handshake::login(reader, hello.capabilities)
    {
        let _ = handshake::attributes(login.attributes);
    }
    let _ = handshake::attributes(packet);
}

fn execute(rest: Reader<'_>, capabilities: CapabilityFlags) {
    let long_data = [None, Some(b"long".to_vec())];
    for count in 0..=PARAMETERS {
        let (mut types, mut values) = (Vec::new(), Vec::new());
        if params::execute(rest, capabilities, count, &mut types, &long_data, None, &mut values).is_ok() {
            assert_eq!(values.len(), count, "a value for each parameter");
            // Types that were bound stay for the next execution.
            values.clear();
            let _ = params::execute(rest, capabilities, count, &mut types, &long_data, None, &mut values);
        }
    }
}

/// Commands, a sign-in and a change of users, each behind capabilities.
#[allow(dead_code, reason = "the fuzzer gets them from the tests")]
pub fn examples() -> Vec<Vec<u8>> {
    let some = CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_CONNECT_WITH_DB;
    let hello = |capabilities: CapabilityFlags| {
        let head = [&capabilities.bits().to_le_bytes()[..], &[0, 0, 0, 1, 255], &[0; 23]].concat();
        [&head[..], b"root\0\x03abcshop\0mysql_native_password\0\x08\x03_os\x03bsd"].concat()
    };
    let packets = [
        b"\x03SELECT 1".to_vec(),
        b"\x03\x01\x01\x00\x01\xfd\x00\x04name\x03valSELECT 1".to_vec(),
        b"\x16SELECT ?".to_vec(),
        b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x03abc".to_vec(),
        b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\x0b\0\x0c\x01\x01\0\0\0\x02\x03\x04\x05\0\0\0".to_vec(),
        b"\x18\x01\0\0\0\0\0more".to_vec(),
        b"\x1c\x01\0\0\0\x05\0\0\0".to_vec(),
        b"\x11root\0\x03abcshop\0\xff\0mysql_native_password\0\x08\x03_os\x03bsd".to_vec(),
        hello(some),
        hello(CapabilityFlags::all()),
    ];
    let behind = |flags: CapabilityFlags| {
        packets.clone().map(|packet| [&flags.bits().to_le_bytes()[..], &packet].concat()).to_vec()
    };
    [behind(some), behind(CapabilityFlags::all())].concat()
}
