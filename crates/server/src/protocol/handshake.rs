//! The packets of the connection phase: greeting, handshake response, COM_CHANGE_USER, AuthSwitchRequest.

use super::read::{Malformed, Reader};
use super::{CapabilityFlags, PacketBuf};

/// What the server says that it is: MySQL 8.4 for drivers that look, Avocet for people.
pub const SERVER_VERSION: &str = concat!("8.4.0-avocet-", env!("CARGO_PKG_VERSION"));

/// utf8mb4_0900_ai_ci.
pub const SERVER_COLLATION: u8 = 255;

/// What the server can do; a connection has of these what its client has too.
pub const SERVER_CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_CONNECT_WITH_DB)
    .union(CapabilityFlags::CLIENT_NO_SCHEMA)
    .union(CapabilityFlags::CLIENT_ODBC)
    .union(CapabilityFlags::CLIENT_LOCAL_FILES)
    .union(CapabilityFlags::CLIENT_IGNORE_SPACE)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_INTERACTIVE)
    .union(CapabilityFlags::CLIENT_IGNORE_SIGPIPE)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_RESERVED)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_CONNECT_ATTRS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
    .union(CapabilityFlags::CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS)
    .union(CapabilityFlags::CLIENT_SESSION_TRACK)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    .union(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);

/// The random bytes that a client mixes into its proof of the password.
pub type Salt = [u8; 20];

/// Writes the first packet of a connection.
pub fn greeting(out: &mut PacketBuf, connection_id: u32, salt: &Salt, tls: bool, plugin: &str) {
    let mut capabilities = SERVER_CAPABILITIES;
    capabilities.set(CapabilityFlags::CLIENT_SSL, tls);
    let [c0, c1, c2, c3] = capabilities.bits().to_le_bytes();
    out.begin();
    out.put_u8(10);
    out.nul_bytes(SERVER_VERSION.as_bytes());
    out.put_u32(connection_id);
    out.nul_bytes(&salt[..8]);
    out.put(&[c0, c1]);
    out.put_u8(SERVER_COLLATION);
    out.put_u16(super::StatusFlags::SERVER_STATUS_AUTOCOMMIT.bits());
    out.put(&[c2, c3]);
    out.put_u8(salt.len() as u8 + 1);
    out.put(&[0; 10]);
    out.nul_bytes(&salt[8..]);
    out.nul_bytes(plugin.as_bytes());
    out.end();
}

/// Asks the client to prove itself by another plugin.
pub fn auth_switch(out: &mut PacketBuf, plugin: &str, salt: &Salt) {
    out.begin();
    out.put_u8(0xFE);
    out.nul_bytes(plugin.as_bytes());
    out.nul_bytes(salt);
    out.end();
}

/// Data of the authentication plugin in mid-exchange.
pub fn auth_more_data(out: &mut PacketBuf, data: &[u8]) {
    out.begin();
    out.put_u8(1);
    out.put(data);
    out.end();
}

/// Capabilities and collation: all of an SSL request, and the start of a full response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHello {
    pub capabilities: CapabilityFlags,
    pub max_packet: u32,
    pub collation: u8,
}

/// Who the client says it is, and its first proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    pub user: &'a [u8],
    pub auth_response: &'a [u8],
    pub database: Option<&'a [u8]>,
    /// The plugin that `auth_response` was made for.
    pub plugin: Option<&'a [u8]>,
    /// Raw connection attributes, see [`attributes`].
    pub attributes: &'a [u8],
}

/// Reads the part that an SSL request and a full response share; the reader is left behind it.
pub fn client_hello(reader: &mut Reader<'_>) -> Result<ClientHello, Malformed> {
    let capabilities = CapabilityFlags::from_bits_truncate(reader.u32()?);
    if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return Err(Malformed);
    }
    let max_packet = reader.u32()?;
    let collation = reader.u8()?;
    reader.bytes(23)?;
    Ok(ClientHello { capabilities, max_packet, collation })
}

/// Reads the rest of a full handshake response.
pub fn login<'a>(mut reader: Reader<'a>, capabilities: CapabilityFlags) -> Result<Login<'a>, Malformed> {
    let user = reader.nul_bytes();
    let auth_response = if capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
        reader.lenenc_bytes()?
    } else if capabilities.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) {
        let len = reader.u8()?;
        reader.bytes(usize::from(len))?
    } else {
        reader.nul_bytes()
    };
    let with_database = capabilities.contains(CapabilityFlags::CLIENT_CONNECT_WITH_DB);
    let database = with_database.then(|| reader.nul_bytes()).filter(|name| !name.is_empty());
    let with_plugin = capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH);
    let plugin = with_plugin.then(|| reader.nul_bytes()).filter(|name| !name.is_empty());
    let attributes = read_attributes(&mut reader, capabilities)?;
    Ok(Login { user, auth_response, database, plugin, attributes })
}

/// Reads a COM_CHANGE_USER (without its command byte), and the collation in it.
pub fn change_user<'a>(
    mut reader: Reader<'a>,
    capabilities: CapabilityFlags,
) -> Result<(Login<'a>, Option<u16>), Malformed> {
    let user = reader.nul_bytes();
    let len = reader.u8()?;
    let auth_response = reader.bytes(usize::from(len))?;
    let database = Some(reader.nul_bytes()).filter(|name| !name.is_empty());
    let collation = if reader.is_empty() { None } else { Some(reader.u16()?) };
    let with_plugin = capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) && !reader.is_empty();
    let plugin = with_plugin.then(|| reader.nul_bytes()).filter(|name| !name.is_empty());
    let attributes = read_attributes(&mut reader, capabilities)?;
    Ok((Login { user, auth_response, database, plugin, attributes }, collation))
}

fn read_attributes<'a>(
    reader: &mut Reader<'a>,
    capabilities: CapabilityFlags,
) -> Result<&'a [u8], Malformed> {
    if capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS) && !reader.is_empty() {
        reader.lenenc_bytes()
    } else {
        Ok(&[])
    }
}

/// Takes connection attributes apart: (name, value) pairs such as `_client_name`, `libmysql`.
pub fn attributes(raw: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
    let mut reader = Reader::new(raw);
    let mut pairs = Vec::new();
    while !reader.is_empty() {
        let name = String::from_utf8_lossy(reader.lenenc_bytes()?).into_owned();
        let value = String::from_utf8_lossy(reader.lenenc_bytes()?).into_owned();
        pairs.push((name, value));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&payload);
            if let Ok(hello) = client_hello(&mut reader) {
                let _ = login(reader, hello.capabilities).map(|l| attributes(l.attributes));
            }
            let _ = change_user(Reader::new(&payload), CapabilityFlags::all());
            let _ = login(Reader::new(&payload), CapabilityFlags::all());
            let _ = attributes(&payload);
        }
    }

    #[test]
    fn a_response_with_everything_is_taken_apart() {
        let mut raw = SERVER_CAPABILITIES.bits().to_le_bytes().to_vec();
        raw.extend_from_slice(&(1u32 << 24).to_le_bytes());
        raw.push(45);
        raw.extend_from_slice(&[0; 23]);
        raw.extend_from_slice(b"root\0\x03abcshop\0mysql_native_password\0\x08\x03_os\x03bsd");
        let mut reader = Reader::new(&raw);
        let hello = client_hello(&mut reader).expect("well-formed");
        assert_eq!((hello.max_packet, hello.collation), (1 << 24, 45));
        let login = login(reader, hello.capabilities).expect("well-formed");
        assert_eq!(login.user, b"root");
        assert_eq!(login.auth_response, b"abc");
        assert_eq!(login.database, Some(&b"shop"[..]));
        assert_eq!(login.plugin, Some(&b"mysql_native_password"[..]));
        assert_eq!(attributes(login.attributes), Ok(vec![("_os".into(), "bsd".into())]));
    }
}
