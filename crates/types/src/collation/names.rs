//! The collations that there are, by MySQL's ids and names.

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
        let default = collations().iter().find(|c| c.charset == self && c.is_default);
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

/// How a collation weighs characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Bytes,
    PaddedBytes,
    Ascii,
    Latin1Swedish,
    General,
    Uca4,
    /// UCA 9.0.0, the first 1, 2 or 3 levels.
    Uca9Primary,
    Uca9Secondary,
    Uca9Tertiary,
}

#[derive(Clone, Copy, Debug)]
pub struct CollationInfo {
    pub id: u16,
    pub name: &'static str,
    pub charset: Charset,
    pub is_default: bool,
    pub pad_space: bool,
    /// As SHOW COLLATION says it.
    pub sort_len: u8,
    pub(super) family: Family,
}

impl CollationInfo {
    pub fn is_bin(&self) -> bool {
        matches!(self.family, Family::Bytes | Family::PaddedBytes)
    }

    pub(super) fn is_0900(&self) -> bool {
        self.id >= 255
    }
}

const fn line(
    id: u16,
    name: &'static str,
    charset: Charset,
    is_default: bool,
    sort_len: u8,
    family: Family,
) -> CollationInfo {
    let pad_space =
        !matches!(family, Family::Bytes | Family::Uca9Primary | Family::Uca9Secondary | Family::Uca9Tertiary);
    CollationInfo { id, name, charset, is_default, pad_space, sort_len, family }
}

static COLLATIONS: [CollationInfo; 15] = [
    line(8, "latin1_swedish_ci", Charset::Latin1, true, 1, Family::Latin1Swedish),
    line(11, "ascii_general_ci", Charset::Ascii, true, 1, Family::Ascii),
    line(33, "utf8mb3_general_ci", Charset::Utf8mb3, true, 1, Family::General),
    line(45, "utf8mb4_general_ci", Charset::Utf8mb4, false, 1, Family::General),
    line(46, "utf8mb4_bin", Charset::Utf8mb4, false, 1, Family::PaddedBytes),
    line(47, "latin1_bin", Charset::Latin1, false, 1, Family::PaddedBytes),
    line(63, "binary", Charset::Binary, true, 1, Family::Bytes),
    line(65, "ascii_bin", Charset::Ascii, false, 1, Family::PaddedBytes),
    line(83, "utf8mb3_bin", Charset::Utf8mb3, false, 1, Family::PaddedBytes),
    line(192, "utf8mb3_unicode_ci", Charset::Utf8mb3, false, 8, Family::Uca4),
    line(224, "utf8mb4_unicode_ci", Charset::Utf8mb4, false, 8, Family::Uca4),
    line(255, "utf8mb4_0900_ai_ci", Charset::Utf8mb4, true, 0, Family::Uca9Primary),
    line(278, "utf8mb4_0900_as_cs", Charset::Utf8mb4, false, 0, Family::Uca9Tertiary),
    line(305, "utf8mb4_0900_as_ci", Charset::Utf8mb4, false, 0, Family::Uca9Secondary),
    line(309, "utf8mb4_0900_bin", Charset::Utf8mb4, false, 1, Family::Bytes),
];

/// All collations, by id.
pub fn collations() -> &'static [CollationInfo] {
    &COLLATIONS
}

/// Position in `COLLATIONS` by id.
static BY_ID: [u8; 320] = {
    let mut table = [11; 320];
    let mut i = 0;
    while i < COLLATIONS.len() {
        table[COLLATIONS[i].id as usize] = i as u8;
        i += 1;
    }
    table
};

#[inline]
pub(super) fn info(id: u16) -> &'static CollationInfo {
    let position = BY_ID.get(usize::from(id)).copied().unwrap_or(BY_ID[255]);
    &COLLATIONS[usize::from(position)]
}
