//! The collations that there are, by MySQL's ids and names.

use super::charset::Charset;
use super::tailoring::FIRST_OF_1400;

/// How a collation weighs characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// As their bytes in UTF-8, which is the order of code points.
    Bytes,
    PaddedBytes,
    /// By the tables of the character set, one weight for a character or a few.
    Coded,
    /// As their codes.
    CodedBinary,
    General(General),
    Uca {
        version: Version,
        levels: Levels,
        /// Number of the tailoring (`Tailoring::get`).
        tailoring: Option<u8>,
    },
}

/// The levels that decide, one after the other: 0 has primary weights, 1 secondary and 2 tertiary ones, 3 is Japanese's own.
pub(super) type Levels = &'static [usize];

pub(super) const AI_CI: Levels = &[0];
pub(super) const AI_CS: Levels = &[0, 2];
pub(super) const AS_CI: Levels = &[0, 1];
pub(super) const AS_CS: Levels = &[0, 1, 2];
const AS_CS_KS: Levels = &[0, 1, 2, 3];

/// One weight for each character of the first plane, by its upper case without marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum General {
    Usual,
    /// Of servers before 5.1.24: `ß` is not `s`.
    Mysql500,
    /// By lower case alone.
    Lower,
}

/// A version of the Unicode Collation Algorithm, with its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V400,
    V520,
    V900,
    /// MariaDB's alone.
    V1400,
}

/// How a collation maps the case of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseRules {
    /// As Unicode 3 did.
    Older,
    /// As those, but `i` and `I` have each a partner of its own.
    Turkish,
    V520,
    V900,
    V1400,
    Turkish1400,
    /// By the tables of a character set.
    Coded(Charset),
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
    /// Whether only MariaDB has it, and MySQL not.
    pub fn is_of_mariadb(&self) -> bool {
        matches!(self.family, Family::Uca { version: Version::V1400, .. })
    }

    pub fn is_bin(&self) -> bool {
        matches!(self.family, Family::Bytes | Family::PaddedBytes | Family::CodedBinary)
    }

    pub(super) fn case_rules(&self) -> CaseRules {
        match self.family {
            Family::Uca { version: Version::V400, tailoring: Some(TURKISH), .. } => CaseRules::Turkish,
            Family::Uca { version: Version::V520, .. } => CaseRules::V520,
            Family::Uca { version: Version::V900, .. } => CaseRules::V900,
            Family::Uca { version: Version::V1400, tailoring: Some(TURKISH_OF_1400), .. } => {
                CaseRules::Turkish1400
            }
            Family::Uca { version: Version::V1400, .. } => CaseRules::V1400,
            Family::Coded | Family::CodedBinary => CaseRules::Coded(self.charset),
            Family::Bytes if self.id != super::Collation::BINARY.0 => CaseRules::V900,
            _ => CaseRules::Older,
        }
    }
}

pub(super) const fn line(
    id: u16,
    name: &'static str,
    charset: Charset,
    sort_len: u8,
    family: Family,
) -> CollationInfo {
    let pad_space = !matches!(family, Family::Bytes | Family::Uca { version: Version::V900, .. });
    CollationInfo { id, name, charset, is_default: false, pad_space, sort_len, family }
}

const fn default(
    id: u16,
    name: &'static str,
    charset: Charset,
    sort_len: u8,
    family: Family,
) -> CollationInfo {
    let mut line = line(id, name, charset, sort_len, family);
    line.is_default = true;
    line
}

pub(super) const fn uca(version: Version, levels: Levels, tailoring: Option<u8>) -> Family {
    Family::Uca { version, levels, tailoring }
}

/// The tailorings of UCA 4.0.0 come first in the file; those of 9.0.0 follow.
const TURKISH: u8 = 8;
/// That of UCA 14.0.0: `i` and `I` have each a partner of its own there, too.
const TURKISH_OF_1400: u8 = FIRST_OF_1400 + 9;
const FIRST_OF_900: u8 = 22;

/// The 24 collations of UCA 4.0.0 and 5.2.0 that each Unicode character set has, in the order of their ids.
macro_rules! unicode {
    ($charset:ident, $name:literal, $first:literal) => {
        unicode!(@lines $charset, $name, $first,
            "unicode" None, "icelandic" Some(0), "latvian" Some(1), "romanian" Some(2), "slovenian" Some(3), "polish" Some(4),
            "estonian" Some(5), "spanish" Some(6), "swedish" Some(7), "turkish" Some(TURKISH), "czech" Some(9), "danish" Some(10),
            "lithuanian" Some(11), "slovak" Some(12), "spanish2" Some(13), "roman" Some(14), "persian" Some(15), "esperanto" Some(16),
            "hungarian" Some(17), "sinhala" Some(18), "german2" Some(19), "croatian" Some(20), "unicode_520" None, "vietnamese" Some(21))
    };
    (@lines $charset:ident, $name:literal, $first:literal, $($language:literal $tailoring:expr),*) => {{
        let mut id: u16 = $first;
        [$({
            let version = if id - $first == 22 { Version::V520 } else { Version::V400 };
            id += 1;
            let name = concat!($name, "_", $language, "_ci");
            line(id - 1, name, Charset::$charset, 8, uca(version, AI_CI, $tailoring))
        }),*]
    }};
}

/// Of a language's tailoring of UCA 9.0.0, counted from `FIRST_OF_900`, the collations that tell letters and those that tell all apart.
macro_rules! languages {
    ($($language:literal $tailoring:literal $ai_ci:literal $as_cs:literal),* $(,)?) => {
        [$(
            line($ai_ci, concat!("utf8mb4_", $language, "_0900_ai_ci"), Charset::Utf8mb4, 0,
                 uca(Version::V900, AI_CI, Some(FIRST_OF_900 + $tailoring))),
            line($as_cs, concat!("utf8mb4_", $language, "_0900_as_cs"), Charset::Utf8mb4, 0,
                 uca(Version::V900, AS_CS, Some(FIRST_OF_900 + $tailoring))),
        )*]
    };
}

const LANGUAGES: [CollationInfo; 56] = languages! {
    "de_pb" 0 256 279, "is" 1 257 280, "lv" 2 258 281, "ro" 3 259 282, "sl" 4 260 283, "pl" 5 261 284, "et" 6 262 285,
    "es" 7 263 286, "sv" 8 264 287, "tr" 9 265 288, "cs" 10 266 289, "da" 11 267 290, "lt" 12 268 291, "sk" 13 269 292,
    "es_trad" 14 270 293, "la" 15 271 294, "eo" 16 273 296, "hu" 17 274 297, "hr" 18 275 298, "vi" 19 277 300, "ru" 22 306 307,
    "nb" 24 310 311, "nn" 25 312 313, "sr_latn" 26 314 315, "bs" 27 316 317, "bg" 28 318 319, "gl" 29 320 321, "mn_cyrl" 30 322 323,
};

const UCS2: [CollationInfo; 24] = unicode!(Ucs2, "ucs2", 128);
const UTF16: [CollationInfo; 24] = unicode!(Utf16, "utf16", 101);
const UTF32: [CollationInfo; 24] = unicode!(Utf32, "utf32", 160);
const UTF8MB3: [CollationInfo; 24] = unicode!(Utf8mb3, "utf8mb3", 192);
const UTF8MB4: [CollationInfo; 24] = unicode!(Utf8mb4, "utf8mb4", 224);

/// The collations of character sets that are not Unicode, the default ones first.
macro_rules! coded {
    ($($charset:ident $default:literal $name:literal $(, $others:literal $other_names:literal)*;)*) => {
        [$(
            default($default, $name, Charset::$charset, 1, Family::Coded),
            $(coded_line($others, $other_names, Charset::$charset),)*
        )*]
    };
}

const fn coded_line(id: u16, name: &'static str, charset: Charset) -> CollationInfo {
    let is_bin = matches!(name.as_bytes(), [.., b'_', b'b', b'i', b'n']);
    let family = if is_bin { Family::CodedBinary } else { Family::Coded };
    // `ü` weighs as two letters there.
    let sort_len = if id == LATIN1_GERMAN2_CI { 2 } else { 1 };
    line(id, name, charset, sort_len, family)
}

const LATIN1_GERMAN2_CI: u16 = 31;

const CODED: [CollationInfo; 80] = coded! {
    Armscii8 32 "armscii8_general_ci", 64 "armscii8_bin";
    Ascii 11 "ascii_general_ci", 65 "ascii_bin";
    Big5 1 "big5_chinese_ci", 84 "big5_bin";
    Cp1250 26 "cp1250_general_ci", 44 "cp1250_croatian_ci", 66 "cp1250_bin", 99 "cp1250_polish_ci";
    Cp1251 51 "cp1251_general_ci", 14 "cp1251_bulgarian_ci", 23 "cp1251_ukrainian_ci", 50 "cp1251_bin", 52 "cp1251_general_cs";
    Cp1256 57 "cp1256_general_ci", 67 "cp1256_bin";
    Cp1257 59 "cp1257_general_ci", 29 "cp1257_lithuanian_ci", 58 "cp1257_bin";
    Cp850 4 "cp850_general_ci", 80 "cp850_bin";
    Cp852 40 "cp852_general_ci", 81 "cp852_bin";
    Cp866 36 "cp866_general_ci", 68 "cp866_bin";
    Cp932 95 "cp932_japanese_ci", 96 "cp932_bin";
    Dec8 3 "dec8_swedish_ci", 69 "dec8_bin";
    Eucjpms 97 "eucjpms_japanese_ci", 98 "eucjpms_bin";
    Euckr 19 "euckr_korean_ci", 85 "euckr_bin";
    Gb2312 24 "gb2312_chinese_ci", 86 "gb2312_bin";
    Gbk 28 "gbk_chinese_ci", 87 "gbk_bin";
    Geostd8 92 "geostd8_general_ci", 93 "geostd8_bin";
    Greek 25 "greek_general_ci", 70 "greek_bin";
    Hebrew 16 "hebrew_general_ci", 71 "hebrew_bin";
    Hp8 6 "hp8_english_ci", 72 "hp8_bin";
    Keybcs2 37 "keybcs2_general_ci", 73 "keybcs2_bin";
    Koi8r 7 "koi8r_general_ci", 74 "koi8r_bin";
    Koi8u 22 "koi8u_general_ci", 75 "koi8u_bin";
    Latin1 8 "latin1_swedish_ci", 5 "latin1_german1_ci", 15 "latin1_danish_ci", 31 "latin1_german2_ci",
        47 "latin1_bin", 48 "latin1_general_ci", 49 "latin1_general_cs", 94 "latin1_spanish_ci";
    Latin2 9 "latin2_general_ci", 21 "latin2_hungarian_ci", 27 "latin2_croatian_ci", 77 "latin2_bin";
    Latin5 30 "latin5_turkish_ci", 78 "latin5_bin";
    Latin7 41 "latin7_general_ci", 20 "latin7_estonian_cs", 42 "latin7_general_cs", 79 "latin7_bin";
    Macce 38 "macce_general_ci", 43 "macce_bin";
    Macroman 39 "macroman_general_ci", 53 "macroman_bin";
    Sjis 13 "sjis_japanese_ci", 88 "sjis_bin";
    Swe7 10 "swe7_swedish_ci", 82 "swe7_bin";
    Ujis 12 "ujis_japanese_ci", 91 "ujis_bin";
};

const OTHERS: [CollationInfo; 23] = [
    default(33, "utf8mb3_general_ci", Charset::Utf8mb3, 1, Family::General(General::Usual)),
    default(35, "ucs2_general_ci", Charset::Ucs2, 1, Family::General(General::Usual)),
    line(45, "utf8mb4_general_ci", Charset::Utf8mb4, 1, Family::General(General::Usual)),
    line(46, "utf8mb4_bin", Charset::Utf8mb4, 1, Family::PaddedBytes),
    default(54, "utf16_general_ci", Charset::Utf16, 1, Family::General(General::Usual)),
    line(55, "utf16_bin", Charset::Utf16, 1, Family::PaddedBytes),
    default(56, "utf16le_general_ci", Charset::Utf16le, 1, Family::General(General::Usual)),
    default(60, "utf32_general_ci", Charset::Utf32, 1, Family::General(General::Usual)),
    line(61, "utf32_bin", Charset::Utf32, 1, Family::PaddedBytes),
    line(62, "utf16le_bin", Charset::Utf16le, 1, Family::PaddedBytes),
    default(63, "binary", Charset::Binary, 1, Family::Bytes),
    line(76, "utf8mb3_tolower_ci", Charset::Utf8mb3, 1, Family::General(General::Lower)),
    line(83, "utf8mb3_bin", Charset::Utf8mb3, 1, Family::PaddedBytes),
    line(90, "ucs2_bin", Charset::Ucs2, 1, Family::PaddedBytes),
    line(159, "ucs2_general_mysql500_ci", Charset::Ucs2, 1, Family::General(General::Mysql500)),
    line(223, "utf8mb3_general_mysql500_ci", Charset::Utf8mb3, 1, Family::General(General::Mysql500)),
    default(255, "utf8mb4_0900_ai_ci", Charset::Utf8mb4, 0, uca(Version::V900, AI_CI, None)),
    line(278, "utf8mb4_0900_as_cs", Charset::Utf8mb4, 0, uca(Version::V900, AS_CS, None)),
    line(
        303,
        "utf8mb4_ja_0900_as_cs",
        Charset::Utf8mb4,
        0,
        uca(Version::V900, AS_CS, Some(FIRST_OF_900 + 20)),
    ),
    line(
        304,
        "utf8mb4_ja_0900_as_cs_ks",
        Charset::Utf8mb4,
        24,
        uca(Version::V900, AS_CS_KS, Some(FIRST_OF_900 + 21)),
    ),
    line(305, "utf8mb4_0900_as_ci", Charset::Utf8mb4, 0, uca(Version::V900, AS_CI, None)),
    line(
        308,
        "utf8mb4_zh_0900_as_cs",
        Charset::Utf8mb4,
        0,
        uca(Version::V900, AS_CS, Some(FIRST_OF_900 + 23)),
    ),
    line(309, "utf8mb4_0900_bin", Charset::Utf8mb4, 1, Family::Bytes),
];

const PARTS: [&[CollationInfo]; 8] = [&LANGUAGES, &UCS2, &UTF16, &UTF32, &UTF8MB3, &UTF8MB4, &CODED, &OTHERS];

const COUNT: usize = {
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

static COLLATIONS: [CollationInfo; COUNT] = {
    let mut all = [OTHERS[0]; COUNT];
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut i = 0;
        while i < PARTS[part].len() {
            // Inserted where it belongs by its id.
            let mut at = count;
            while at > 0 && all[at - 1].id > PARTS[part][i].id {
                all[at] = all[at - 1];
                at -= 1;
            }
            all[at] = PARTS[part][i];
            count += 1;
            i += 1;
        }
        part += 1;
    }
    all
};

/// MySQL's collations, by id.
pub fn collations() -> &'static [CollationInfo] {
    &COLLATIONS
}

/// One more than the largest of MySQL's ids.
pub(super) const IDS: usize = COLLATIONS_END as usize + 1;
const COLLATIONS_END: u16 = 323;

/// Position in `COLLATIONS` by id; that of the default collation where there is none.
static BY_ID: [u16; IDS] = {
    let mut table = [u16::MAX; IDS];
    let mut i = 0;
    while i < COLLATIONS.len() {
        table[COLLATIONS[i].id as usize] = i as u16;
        i += 1;
    }
    let (mut id, default) = (0, table[255]);
    while id < IDS {
        if table[id] == u16::MAX {
            table[id] = default;
        }
        id += 1;
    }
    table
};

/// `None` for ids beyond those of MySQL.
#[inline]
pub(super) fn info_of_mysql(id: u16) -> Option<&'static CollationInfo> {
    BY_ID.get(usize::from(id)).map(|position| &COLLATIONS[usize::from(*position)])
}

pub(super) fn default_info() -> &'static CollationInfo {
    &COLLATIONS[usize::from(BY_ID[255])]
}
