//! How AES_ENCRYPT and AES_DECRYPT encrypt.

/// `@@block_encryption_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMode {
    pub(crate) key_bytes: usize,
    pub(crate) chaining: Chaining,
}

/// How a block depends on those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chaining {
    Ecb,
    Cbc,
    /// By so many bits.
    Cfb(u8),
    Ofb,
}

impl BlockMode {
    pub const DEFAULT: Self = Self { key_bytes: 16, chaining: Chaining::Ecb };

    /// Of a name such as `aes-256-cbc`.
    pub fn by_name(name: &str) -> Option<Self> {
        let (bits, chaining) = name.strip_prefix("aes-")?.split_once('-')?;
        let key_bytes = match bits {
            "128" => 16,
            "192" => 24,
            "256" => 32,
            _ => return None,
        };
        let chaining = match chaining {
            "ecb" => Chaining::Ecb,
            "cbc" => Chaining::Cbc,
            "cfb1" => Chaining::Cfb(1),
            "cfb8" => Chaining::Cfb(8),
            "cfb128" => Chaining::Cfb(128),
            "ofb" => Chaining::Ofb,
            _ => return None,
        };
        Some(Self { key_bytes, chaining })
    }

    /// Whether the last block is filled up.
    pub(crate) fn is_padded(self) -> bool {
        matches!(self.chaining, Chaining::Ecb | Chaining::Cbc)
    }
}
