//! The collations that only MariaDB has (since 10.10): those of UCA 14.0.0. A column of a table that came from there can have one;
//! MySQL lists none.
//!
//! An id is that of the character set's first collation, and 8 × the language, and the variant. Languages are numbered as MySQL's older
//! collations are, so that two numbers between German 2, 20, and Vietnamese, 23, have none.
//!
//! ```text
//!  1000 llll lvvv   utf8mb3     lllll  language, 0 is the root      vvv  ai_ci ai_cs as_ci as_cs, and the same of NO PAD
//!  1001 llll lvvv   utf8mb4
//! ```

use super::charset::Charset;
use super::names::{AI_CI, AI_CS, AS_CI, AS_CS, CollationInfo, Levels, Version, line, uca};
use super::tailoring::FIRST_OF_1400;

const FIRST_OF_UTF8MB3: u16 = 2048;
const FIRST_OF_UTF8MB4: u16 = 2304;

const LANGUAGES: usize = 23;
const GERMAN2: usize = 20;
const VIETNAMESE: usize = 23;
const GAP: usize = VIETNAMESE - GERMAN2 - 1;
const VARIANTS: usize = 8;
pub(super) const COUNT: usize = 2 * LANGUAGES * VARIANTS;

const fn variant(
    charset: Charset,
    first: u16,
    name: &'static str,
    levels: Levels,
    tailoring: u8,
    pad_space: bool,
) -> CollationInfo {
    let number = match levels {
        [0] => 0,
        [0, 2] => 1,
        [0, 1] => 2,
        _ => 3,
    };
    let language = if tailoring as usize > GERMAN2 { tailoring as usize + GAP } else { tailoring as usize };
    let id = first + 8 * language as u16 + if pad_space { number } else { number + 4 };
    let family = uca(Version::V1400, levels, Some(FIRST_OF_1400 + tailoring));
    let mut line = line(id, name, charset, 8, family);
    line.pad_space = pad_space;
    line
}

macro_rules! variants {
    ($charset:ident, $name:literal, $first:ident, $($language:literal $tailoring:literal),*) => {
        [$([
            variants!(@one $charset, $name, $first, $language, $tailoring, "ai_ci", AI_CI, true),
            variants!(@one $charset, $name, $first, $language, $tailoring, "ai_cs", AI_CS, true),
            variants!(@one $charset, $name, $first, $language, $tailoring, "as_ci", AS_CI, true),
            variants!(@one $charset, $name, $first, $language, $tailoring, "as_cs", AS_CS, true),
            variants!(@one $charset, $name, $first, $language, $tailoring, "nopad_ai_ci", AI_CI, false),
            variants!(@one $charset, $name, $first, $language, $tailoring, "nopad_ai_cs", AI_CS, false),
            variants!(@one $charset, $name, $first, $language, $tailoring, "nopad_as_ci", AS_CI, false),
            variants!(@one $charset, $name, $first, $language, $tailoring, "nopad_as_cs", AS_CS, false),
        ]),*]
    };
    (@one $charset:ident, $name:literal, $first:ident, $language:literal, $tailoring:literal, $variant:literal, $levels:ident, $pad:literal) => {
        variant(Charset::$charset, $first, concat!($name, "_uca1400_", $language, $variant), $levels, $tailoring, $pad)
    };
}

macro_rules! languages {
    ($charset:ident, $name:literal, $first:ident) => {
        variants!($charset, $name, $first,
            "" 0, "icelandic_" 1, "latvian_" 2, "romanian_" 3, "slovenian_" 4, "polish_" 5, "estonian_" 6, "spanish_" 7, "swedish_" 8,
            "turkish_" 9, "czech_" 10, "danish_" 11, "lithuanian_" 12, "slovak_" 13, "spanish2_" 14, "roman_" 15, "persian_" 16,
            "esperanto_" 17, "hungarian_" 18, "sinhala_" 19, "german2_" 20, "vietnamese_" 21, "croatian_" 22)
    };
}

/// By character set, language and variant, which is the order of ids.
static COLLATIONS: [[[CollationInfo; VARIANTS]; LANGUAGES]; 2] =
    [languages!(Utf8mb3, "utf8mb3", FIRST_OF_UTF8MB3), languages!(Utf8mb4, "utf8mb4", FIRST_OF_UTF8MB4)];

/// The collations that only MariaDB has, by id.
pub fn collations_of_mariadb() -> &'static [CollationInfo] {
    COLLATIONS.as_flattened().as_flattened()
}

/// Position in that slice.
pub(super) fn position(id: u16) -> Option<usize> {
    let (charset, within) = match id {
        FIRST_OF_UTF8MB4.. => (1, id - FIRST_OF_UTF8MB4),
        FIRST_OF_UTF8MB3.. => (0, id - FIRST_OF_UTF8MB3),
        _ => return None,
    };
    let tailoring = match usize::from(within) / VARIANTS {
        language @ ..=GERMAN2 => language,
        language @ VIETNAMESE.. => language - GAP,
        _ => return None,
    };
    let variant = usize::from(within) % VARIANTS;
    (tailoring < LANGUAGES).then_some((charset * LANGUAGES + tailoring) * VARIANTS + variant)
}
