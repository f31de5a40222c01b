//! Character sets: their names, and the bytes of texts in them. All text is UTF-8 inside.

use std::borrow::Cow;

use super::coding::Coding;

macro_rules! charsets {
    ($($variant:ident $name:literal $max_len:literal $description:literal)*) => {
        /// A character set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Charset {
            $($variant),*
        }

        impl Charset {
            /// In the order of their names.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Bytes that a character takes at most.
            pub const fn max_len(self) -> u32 {
                match self { $(Self::$variant => $max_len),* }
            }

            /// As SHOW CHARACTER SET says it.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $description),* }
            }
        }
    };
}

charsets! {
    Armscii8 "armscii8" 1 "ARMSCII-8 Armenian"
    Ascii "ascii" 1 "US ASCII"
    Big5 "big5" 2 "Big5 Traditional Chinese"
    Binary "binary" 1 "Binary pseudo charset"
    Cp1250 "cp1250" 1 "Windows Central European"
    Cp1251 "cp1251" 1 "Windows Cyrillic"
    Cp1256 "cp1256" 1 "Windows Arabic"
    Cp1257 "cp1257" 1 "Windows Baltic"
    Cp850 "cp850" 1 "DOS West European"
    Cp852 "cp852" 1 "DOS Central European"
    Cp866 "cp866" 1 "DOS Russian"
    Cp932 "cp932" 2 "SJIS for Windows Japanese"
    Dec8 "dec8" 1 "DEC West European"
    Eucjpms "eucjpms" 3 "UJIS for Windows Japanese"
    Euckr "euckr" 2 "EUC-KR Korean"
    Gb2312 "gb2312" 2 "GB2312 Simplified Chinese"
    Gbk "gbk" 2 "GBK Simplified Chinese"
    Geostd8 "geostd8" 1 "GEOSTD8 Georgian"
    Greek "greek" 1 "ISO 8859-7 Greek"
    Hebrew "hebrew" 1 "ISO 8859-8 Hebrew"
    Hp8 "hp8" 1 "HP West European"
    Keybcs2 "keybcs2" 1 "DOS Kamenicky Czech-Slovak"
    Koi8r "koi8r" 1 "KOI8-R Relcom Russian"
    Koi8u "koi8u" 1 "KOI8-U Ukrainian"
    Latin1 "latin1" 1 "cp1252 West European"
    Latin2 "latin2" 1 "ISO 8859-2 Central European"
    Latin5 "latin5" 1 "ISO 8859-9 Turkish"
    Latin7 "latin7" 1 "ISO 8859-13 Baltic"
    Macce "macce" 1 "Mac Central European"
    Macroman "macroman" 1 "Mac West European"
    Sjis "sjis" 2 "Shift-JIS Japanese"
    Swe7 "swe7" 1 "7bit Swedish"
    Ucs2 "ucs2" 2 "UCS-2 Unicode"
    Ujis "ujis" 3 "EUC-JP Japanese"
    Utf16 "utf16" 4 "UTF-16 Unicode"
    Utf16le "utf16le" 4 "UTF-16LE Unicode"
    Utf32 "utf32" 4 "UTF-32 Unicode"
    Utf8mb3 "utf8mb3" 3 "UTF-8 Unicode"
    Utf8mb4 "utf8mb4" 4 "UTF-8 Unicode"
}

impl Charset {
    /// Bytes that a character takes at least.
    pub const fn min_len(self) -> u32 {
        match self {
            Self::Ucs2 | Self::Utf16 | Self::Utf16le => 2,
            Self::Utf32 => 4,
            _ => 1,
        }
    }

    /// How many have a table in `data/charsets.bin`.
    pub(super) const CODED: usize = 32;

    /// Which of the tables it has.
    pub(super) fn coded_position(self) -> Option<usize> {
        let is_coded = |charset: &Self| !charset.is_unicode() && *charset != Self::Binary;
        // In the order of their names, too, but for the first two.
        let rest = || Self::ALL.iter().filter(|c| is_coded(c) && !matches!(c, Self::Ascii | Self::Latin1));
        match self {
            Self::Ascii => Some(0),
            Self::Latin1 => Some(1),
            _ => rest().position(|charset| *charset == self).map(|position| position + 2),
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
        Self::ALL.iter().copied().find(|c| c.name().eq_ignore_ascii_case(name))
    }

    pub fn default_collation(self) -> super::Collation {
        let default = super::collations().iter().find(|c| c.charset == self && c.is_default);
        default.map_or(super::Collation::DEFAULT, |c| super::Collation(c.id))
    }

    /// As [`Self::default_collation`], where that of utf8mb4 is another.
    pub fn default_collation_with(self, of_utf8mb4: super::Collation) -> super::Collation {
        match self {
            Self::Utf8mb4 => of_utf8mb4,
            _ => self.default_collation(),
        }
    }

    /// The collation in the order of codes.
    pub fn binary_collation(self) -> super::Collation {
        let binary = super::collations().iter().find(|c| c.charset == self && c.is_bin() && c.pad_space);
        binary.map_or(super::Collation::BINARY, |c| super::Collation(c.id))
    }

    pub const fn is_unicode(self) -> bool {
        matches!(self, Self::Ucs2 | Self::Utf16 | Self::Utf16le | Self::Utf32 | Self::Utf8mb3 | Self::Utf8mb4)
    }

    /// Whether the bytes of a text are those of UTF-8, as it is kept.
    #[inline]
    pub const fn is_utf8(self) -> bool {
        matches!(self, Self::Utf8mb3 | Self::Utf8mb4 | Self::Binary)
    }

    /// Whether the characters of ASCII have the codes that they have there.
    pub const fn keeps_ascii(self) -> bool {
        !matches!(self, Self::Swe7 | Self::Sjis | Self::Ucs2 | Self::Utf16 | Self::Utf16le | Self::Utf32)
    }

    /// Whether clients may use it: statements have to be readable byte by byte.
    pub const fn is_for_clients(self) -> bool {
        !matches!(self, Self::Ucs2 | Self::Utf16 | Self::Utf16le | Self::Utf32)
    }

    /// Whether the character set has a character.
    pub fn has(self, c: char) -> bool {
        match self {
            Self::Binary | Self::Utf8mb4 | Self::Utf16 | Self::Utf16le | Self::Utf32 => true,
            Self::Ascii => c.is_ascii(),
            Self::Utf8mb3 | Self::Ucs2 => c <= '\u{ffff}',
            _ => Coding::get(self).code(c).is_some(),
        }
    }

    /// How long a character is that begins with this byte; 0 if none does.
    pub const fn len_by_first_byte(self, first: u8) -> usize {
        match (self, first) {
            (_, 0..=0x7F) => self.min_len() as usize,
            (Self::Utf8mb3 | Self::Utf8mb4, 0x80..0xC2) => 0,
            (Self::Utf8mb3 | Self::Utf8mb4, 0xC2..0xE0) => 2,
            (Self::Utf8mb3 | Self::Utf8mb4, 0xE0..0xF0) => 3,
            (Self::Utf8mb4, 0xF0..0xF8) => 4,
            (Self::Utf8mb3 | Self::Utf8mb4, _) => 0,
            (Self::Ujis | Self::Eucjpms, 0x8F) => 3,
            (Self::Ujis | Self::Eucjpms, 0x8E | 0xA1..=0xFE) => 2,
            // Katakana of half width.
            (Self::Sjis | Self::Cp932, 0xA1..=0xDF) => 1,
            (Self::Sjis | Self::Cp932, 0x81..=0x9F | 0xE0..=0xFC) => 2,
            (Self::Big5 | Self::Gb2312, 0xA1..=0xFE) => 2,
            (Self::Gbk | Self::Euckr, 0x81..=0xFE) => 2,
            _ if self.max_len() == 1 => 1,
            _ => 0,
        }
    }

    /// Whether it has all characters that another has.
    pub fn holds(self, other: Self) -> bool {
        match self {
            _ if self == other => true,
            Self::Binary | Self::Utf8mb4 | Self::Utf16 | Self::Utf16le | Self::Utf32 => true,
            Self::Utf8mb3 | Self::Ucs2 => other.max_len() < 4 || !other.is_unicode(),
            _ => other == Self::Ascii && self.keeps_ascii(),
        }
    }

    /// Where a text has the first character that the character set has not.
    pub fn first_missing(self, text: &str) -> Option<usize> {
        match self {
            Self::Binary | Self::Utf8mb4 | Self::Utf16 | Self::Utf16le | Self::Utf32 => None,
            _ if text.is_ascii() && self.keeps_ascii() => None,
            _ => text.char_indices().find(|(_, c)| !self.has(*c)).map(|(at, _)| at),
        }
    }

    /// The same text with `?` for the characters that the character set has not. A few have the code of another, and come back
    /// as that: in sjis, a backslash is a wide one.
    pub fn fitted(self, text: Cow<'_, str>) -> Cow<'_, str> {
        match self {
            _ if self.is_unicode() || self == Self::Binary => match self.first_missing(&text) {
                None => text,
                Some(_) => text.chars().map(|c| if self.has(c) { c } else { '?' }).collect(),
            },
            _ if text.is_ascii() && self.keeps_ascii() => text,
            _ => {
                let coding = Coding::get(self);
                match text.chars().all(|c| coding.kept(c) == c) {
                    true => text,
                    false => text.chars().map(|c| coding.kept(c)).collect(),
                }
            }
        }
    }

    /// The text that bytes of this character set are, or where they are none. What ASCII has not is shown as `?`. Where characters
    /// have at least two or four bytes, zeros are thought of before what is shorter.
    pub fn decode(self, bytes: &[u8]) -> Result<String, usize> {
        let missing = bytes.len().next_multiple_of(self.min_len() as usize) - bytes.len();
        if missing > 0 {
            return self.decode(&[&[0; 4][..missing], bytes].concat());
        }
        match self {
            Self::Binary | Self::Utf8mb3 | Self::Utf8mb4 => {
                let text = std::str::from_utf8(bytes).map_err(|error| error.valid_up_to())?;
                match self.first_missing(text) {
                    Some(at) => Err(at),
                    None => Ok(text.to_owned()),
                }
            }
            Self::Ucs2 | Self::Utf16 => decode_utf16(bytes, u16::from_be_bytes, self == Self::Utf16),
            Self::Utf16le => decode_utf16(bytes, u16::from_le_bytes, true),
            Self::Utf32 => decode_utf32(bytes),
            _ => Coding::get(self).decode(bytes, self.max_len() as usize),
        }
    }

    /// Where the first byte is that stands for no character, in a character set of single bytes: [`decode`](Self::decode) makes a
    /// question mark of it.
    pub fn first_unassigned(self, bytes: &[u8]) -> Option<usize> {
        self.coded_position().filter(|_| self.max_len() == 1)?;
        let coding = Coding::get(self);
        bytes.iter().position(|byte| !coding.has_byte(*byte))
    }

    /// The bytes of a text in this character set; `?` for characters that it has not.
    pub fn encode(self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len());
        match self {
            Self::Binary | Self::Utf8mb4 => bytes.extend_from_slice(text.as_bytes()),
            Self::Utf8mb3 => bytes.extend_from_slice(self.fitted(text.into()).as_bytes()),
            Self::Ucs2 => {
                let unit = |c: char| u16::try_from(u32::from(c)).unwrap_or(u16::from(b'?'));
                text.chars().for_each(|c| bytes.extend_from_slice(&unit(c).to_be_bytes()));
            }
            Self::Utf16 => text.encode_utf16().for_each(|u| bytes.extend_from_slice(&u.to_be_bytes())),
            Self::Utf16le => text.encode_utf16().for_each(|u| bytes.extend_from_slice(&u.to_le_bytes())),
            Self::Utf32 => text.chars().for_each(|c| bytes.extend_from_slice(&u32::from(c).to_be_bytes())),
            _ if text.is_ascii() && self.keeps_ascii() => bytes.extend_from_slice(text.as_bytes()),
            _ => Coding::get(self).encode(text, &mut bytes),
        }
        bytes
    }

    /// How many bytes a text takes.
    pub fn encoded_len(self, text: &str) -> usize {
        match self {
            Self::Binary | Self::Utf8mb3 | Self::Utf8mb4 => text.len(),
            Self::Utf16 | Self::Utf16le => text.encode_utf16().count() * 2,
            _ => match (self.max_len(), text.chars().count()) {
                (1, chars) => chars,
                (2, chars) if self == Self::Ucs2 => chars * 2,
                (4, chars) => chars * 4,
                _ => self.encode(text).len(),
            },
        }
    }

    /// Which character set an expression of two has: the one that holds the other.
    pub(super) const fn rank(self) -> u8 {
        match self {
            Self::Binary => 0,
            Self::Ascii => 1,
            Self::Utf8mb3 | Self::Ucs2 | Self::Utf16 | Self::Utf16le => 3,
            Self::Utf8mb4 | Self::Utf32 => 4,
            _ => 2,
        }
    }
}

/// Units of two bytes; without surrogates in `ucs2`.
fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, pairs: bool) -> Result<String, usize> {
    let (chunks, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut at = 0;
    for c in char::decode_utf16(chunks.iter().map(|chunk| unit(*chunk))) {
        let c = c.map_err(|_| at)?;
        if c > '\u{ffff}' && !pairs {
            return Err(at);
        }
        text.push(c);
        at += c.len_utf16() * 2;
    }
    if rest.is_empty() { Ok(text) } else { Err(at) }
}

fn decode_utf32(bytes: &[u8]) -> Result<String, usize> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    let decoded = chunks.iter().enumerate().map(|(i, c)| char::from_u32(u32::from_be_bytes(*c)).ok_or(i * 4));
    match decoded.collect::<Result<String, usize>>() {
        Ok(text) if rest.is_empty() => Ok(text),
        Ok(_) => Err(chunks.len() * 4),
        Err(at) => Err(at),
    }
}
