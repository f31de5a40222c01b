//! Character sets.

/// A character set, by name only: all text is UTF-8 inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    Binary,
    Ascii,
    Latin1,
    Utf8mb3,
    Utf8mb4,
}

impl Charset {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Ascii => "ascii",
            Self::Latin1 => "latin1",
            Self::Utf8mb3 => "utf8mb3",
            Self::Utf8mb4 => "utf8mb4",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
        [Self::Binary, Self::Ascii, Self::Latin1, Self::Utf8mb3, Self::Utf8mb4]
            .into_iter()
            .find(|c| c.name().eq_ignore_ascii_case(name))
    }

    /// Bytes that a character takes at most in MySQL's character set.
    pub const fn max_len(self) -> u32 {
        match self {
            Self::Binary | Self::Ascii | Self::Latin1 => 1,
            Self::Utf8mb3 => 3,
            Self::Utf8mb4 => 4,
        }
    }

    pub fn default_collation(self) -> super::Collation {
        let default = super::collations().iter().find(|c| c.charset == self && c.is_default);
        default.map_or(super::Collation::DEFAULT, |c| super::Collation(c.id))
    }

    /// Whether the character set has a character.
    pub fn has(self, c: char) -> bool {
        match self {
            Self::Binary | Self::Utf8mb4 => true,
            Self::Ascii => c.is_ascii(),
            Self::Latin1 => super::tables::latin1_byte(c).is_some(),
            Self::Utf8mb3 => c <= '\u{ffff}',
        }
    }

    /// The text that bytes of this character set are, or where they are none. What ASCII has not is shown as `?`.
    pub fn decode(self, bytes: &[u8]) -> Result<String, usize> {
        match self {
            Self::Latin1 => Ok(bytes.iter().map(|byte| super::tables::latin1_char(*byte)).collect()),
            Self::Ascii => {
                Ok(bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect())
            }
            Self::Binary | Self::Utf8mb3 | Self::Utf8mb4 => {
                let text = std::str::from_utf8(bytes).map_err(|error| error.valid_up_to())?;
                match text.char_indices().find(|(_, c)| !self.has(*c)) {
                    Some((at, _)) => Err(at),
                    None => Ok(text.to_owned()),
                }
            }
        }
    }

    /// The bytes of a text in this character set; `?` for characters that it has not.
    pub fn encode(self, text: &str) -> Vec<u8> {
        let byte = |byte: Option<u8>| byte.unwrap_or(b'?');
        match self {
            Self::Latin1 => text.chars().map(|c| byte(super::tables::latin1_byte(c))).collect(),
            Self::Ascii => text.chars().map(|c| byte(u8::try_from(c).ok().filter(u8::is_ascii))).collect(),
            Self::Utf8mb3 => {
                let kept = |c: char| if self.has(c) { c } else { '?' };
                text.chars().map(kept).collect::<String>().into_bytes()
            }
            Self::Binary | Self::Utf8mb4 => text.as_bytes().to_vec(),
        }
    }

    /// Which character set an expression of two has: the one that holds the other.
    pub(super) const fn rank(self) -> u8 {
        self as u8
    }
}
