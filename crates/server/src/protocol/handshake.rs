//! The packets of the connection phase: greeting, handshake response, COM_CHANGE_USER, AuthSwitchRequest.

use super::read::{Malformed, Reader};
use super::{CapabilityFlags, PacketBuf};

/// What the server says that it is: MySQL 8.4 for drivers that look, Avocet for people.
pub const SERVER_VERSION: &str = concat!("8.4.13-avocet-", env!("CARGO_PKG_VERSION"));

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

/// The first packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub version: Vec<u8>,
    pub connection_id: u32,
    pub salt: Salt,
    pub capabilities: CapabilityFlags,
    pub collation: u8,
    pub status: u16,
    pub plugin: Vec<u8>,
}

impl Greeting {
    /// Our own.
    pub fn new(connection_id: u32, salt: &Salt, tls: bool, plugin: &str) -> Self {
        let mut capabilities = SERVER_CAPABILITIES;
        capabilities.set(CapabilityFlags::CLIENT_SSL, tls);
        Self {
            version: SERVER_VERSION.into(),
            connection_id,
            salt: *salt,
            capabilities,
            collation: SERVER_COLLATION,
            status: super::StatusFlags::SERVER_STATUS_AUTOCOMMIT.bits(),
            plugin: plugin.into(),
        }
    }

    pub fn write(&self, out: &mut PacketBuf) {
        let [c0, c1, c2, c3] = self.capabilities.bits().to_le_bytes();
        out.begin();
        out.put_u8(10);
        out.nul_bytes(&self.version);
        out.put_u32(self.connection_id);
        out.nul_bytes(&self.salt[..8]);
        out.put(&[c0, c1]);
        out.put_u8(self.collation);
        out.put_u16(self.status);
        out.put(&[c2, c3]);
        out.put_u8(self.salt.len() as u8 + 1);
        out.put(&[0; 10]);
        out.nul_bytes(&self.salt[8..]);
        out.nul_bytes(&self.plugin);
        out.end();
    }

    /// Another server's, which speaks protocol 10 and has authentication plugins, as all since MySQL 5.7 do.
    pub fn read(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != 10 {
            return Err(Malformed);
        }
        let version = reader.nul_bytes().to_vec();
        let connection_id = reader.u32()?;
        let mut salt = Salt::default();
        salt[..8].copy_from_slice(reader.bytes(8)?);
        reader.u8()?;
        let low = reader.u16()?;
        let collation = reader.u8()?;
        let status = reader.u16()?;
        let high = reader.u16()?;
        reader.bytes(11)?;
        salt[8..].copy_from_slice(reader.bytes(12)?);
        reader.u8()?;
        let capabilities = CapabilityFlags::from_bits_truncate(u32::from(high) << 16 | u32::from(low));
        Ok(Self {
            version,
            connection_id,
            salt,
            capabilities,
            collation,
            status,
            plugin: reader.nul_bytes().to_vec(),
        })
    }
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
            let _ = Greeting::read(&payload);
        }
    }

    #[test]
    fn a_greeting_is_read_as_it_was_written() {
        let greeting = Greeting::new(77, b"01234567890123456789", true, "caching_sha2_password");
        let mut out = PacketBuf::new();
        greeting.write(&mut out);
        assert_eq!(Greeting::read(&out.bytes()[4..]), Ok(greeting));
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
