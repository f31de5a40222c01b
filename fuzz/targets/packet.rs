//! What clients send: four bytes of capabilities, then a packet, taken apart as every kind that it could be.

use avocet_server::protocol::command::{self, Command};
use avocet_server::protocol::read::Reader;
use avocet_server::protocol::{CapabilityFlags, handshake, params, sql_text};

/// Parameters of the statement that an execute packet is read for, at most.
const PARAMETERS: usize = 4;

pub fn run(data: &[u8]) {
    let Some((capabilities, packet)) = data.split_first_chunk::<4>() else { return };
    let capabilities = CapabilityFlags::from_bits_truncate(u32::from_le_bytes(*capabilities));
    match command::parse(packet, capabilities) {
        Ok(Command::Query(text) | Command::Prepare(text)) => drop(sql_text::decode(text)),
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
        if params::execute(rest, capabilities, count, &mut types, &long_data, &mut values).is_ok() {
            assert_eq!(values.len(), count, "a value for each parameter");
            // Types that were bound stay for the next execution.
            values.clear();
            let _ = params::execute(rest, capabilities, count, &mut types, &long_data, &mut values);
        }
    }
}
