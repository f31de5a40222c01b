//! `@@sql_mode` as text and as flags.

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;

/// The modes that MySQL 8.4 has, in the order in which it shows them, with the flag for those that mean something here.
const MODES: &[(&str, u32)] = &[
    ("REAL_AS_FLOAT", SqlMode::REAL_AS_FLOAT.0),
    ("PIPES_AS_CONCAT", SqlMode::PIPES_AS_CONCAT.0),
    ("ANSI_QUOTES", SqlMode::ANSI_QUOTES.0),
    ("IGNORE_SPACE", SqlMode::IGNORE_SPACE.0),
    ("ONLY_FULL_GROUP_BY", SqlMode::ONLY_FULL_GROUP_BY.0),
    ("NO_UNSIGNED_SUBTRACTION", SqlMode::NO_UNSIGNED_SUBTRACTION.0),
    ("NO_DIR_IN_CREATE", SqlMode::NO_DIR_IN_CREATE.0),
    ("ANSI", 0),
    ("NO_AUTO_VALUE_ON_ZERO", SqlMode::NO_AUTO_VALUE_ON_ZERO.0),
    ("NO_BACKSLASH_ESCAPES", SqlMode::NO_BACKSLASH_ESCAPES.0),
    ("STRICT_TRANS_TABLES", SqlMode::STRICT_TRANS_TABLES.0),
    ("STRICT_ALL_TABLES", SqlMode::STRICT_ALL_TABLES.0),
    ("NO_ZERO_IN_DATE", SqlMode::NO_ZERO_IN_DATE.0),
    ("NO_ZERO_DATE", SqlMode::NO_ZERO_DATE.0),
    ("ALLOW_INVALID_DATES", SqlMode::ALLOW_INVALID_DATES.0),
    ("ERROR_FOR_DIVISION_BY_ZERO", SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0),
    ("TRADITIONAL", 0),
    ("HIGH_NOT_PRECEDENCE", SqlMode::HIGH_NOT_PRECEDENCE.0),
    ("NO_ENGINE_SUBSTITUTION", SqlMode::NO_ENGINE_SUBSTITUTION.0),
    ("PAD_CHAR_TO_FULL_LENGTH", SqlMode::PAD_CHAR_TO_FULL_LENGTH.0),
    ("TIME_TRUNCATE_FRACTIONAL", SqlMode::TIME_TRUNCATE_FRACTIONAL.0),
];

/// Modes under which values would have to be kept, or come out, in another way.
const REFUSED: &[&str] = &["ALLOW_INVALID_DATES", "PAD_CHAR_TO_FULL_LENGTH"];

/// Names of old servers' modes that clients still send; they were removed in MySQL 8.0 and change nothing.
const IGNORED: &[&str] = &["NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS"];

/// What the combined modes stand for.
fn combination(name: &str) -> &'static [&'static str] {
    match name {
        "ANSI" => &["REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ONLY_FULL_GROUP_BY"],
        "TRADITIONAL" => &[
            "STRICT_TRANS_TABLES",
            "STRICT_ALL_TABLES",
            "NO_ZERO_IN_DATE",
            "NO_ZERO_DATE",
            "ERROR_FOR_DIVISION_BY_ZERO",
            "NO_ENGINE_SUBSTITUTION",
        ],
        _ => &[],
    }
}

/// The list of modes as MySQL shows it: known names in its order, combinations with what they stand for.
pub fn normalize(text: &str) -> Result<String, SqlError> {
    let mut chosen = vec![false; MODES.len()];
    let mut choose = |name: &str| -> bool {
        let at = MODES.iter().position(|(mode, _)| mode.eq_ignore_ascii_case(name));
        at.inspect(|&at| chosen[at] = true).is_some()
    };
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if IGNORED.iter().any(|old| old.eq_ignore_ascii_case(name)) {
            continue;
        }
        if REFUSED.iter().any(|refused| refused.eq_ignore_ascii_case(name)) {
            return Err(SqlError::unsupported(format_args!("the SQL mode {}", name.to_ascii_uppercase())));
        }
        if !choose(name) {
            return Err(ErrorCode::WRONG_VALUE_FOR_VAR.with(&[&"sql_mode", &name]));
        }
        for part in combination(&name.to_ascii_uppercase()) {
            choose(part);
        }
    }
    let names: Vec<&str> =
        MODES.iter().zip(&chosen).filter(|(_, on)| **on).map(|((name, _), _)| *name).collect();
    Ok(names.join(","))
}

/// `SET sql_mode = number`, as `mysqlbinlog` writes it: the bits that [`mysql_bits`] tells.
pub fn of_bits(bits: i128) -> Result<String, SqlError> {
    let wrong = || ErrorCode::WRONG_VALUE_FOR_VAR.with(&[&"sql_mode", &bits]);
    let known = BITS.iter().fold(0, |known, bit| known | 1u64 << bit);
    let set = u64::try_from(bits).ok().filter(|set| set & !known == 0).ok_or_else(wrong)?;
    let names = MODES.iter().zip(BITS).filter(|(_, bit)| set & 1 << bit != 0).map(|((name, _), _)| *name);
    normalize(&names.collect::<Vec<_>>().join(","))
}

/// The bit that MySQL keeps each of [`MODES`] in.
const BITS: [u8; MODES.len()] = [0, 1, 2, 3, 5, 6, 7, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30, 31, 32];

/// The bits that MySQL keeps a normalized list in.
pub fn mysql_bits(text: &str) -> u64 {
    let bit = |name: &str| {
        MODES.iter().zip(BITS).find(|((mode, _), _)| *mode == name).map_or(0, |(_, bit)| 1 << bit)
    };
    text.split(',').fold(0, |bits, name| bits | bit(name))
}

/// MySQL's bits of a session, and of a text that is read in this mode: a prepared one was read before.
pub fn as_read_in(bits: u64, mode: SqlMode) -> u64 {
    let reading = MODES.iter().filter(|(_, flag)| *flag != 0 && SqlMode::PARSING.has(SqlMode(*flag)));
    reading.fold(bits, |bits, (name, flag)| match mode.has(SqlMode(*flag)) {
        true => bits | mysql_bits(name),
        false => bits & !mysql_bits(name),
    })
}

/// Whether the modes about dates and division by zero do not go along with strict mode.
pub fn is_strict_in_part(mode: SqlMode) -> bool {
    let along = [SqlMode::NO_ZERO_IN_DATE, SqlMode::NO_ZERO_DATE, SqlMode::ERROR_FOR_DIVISION_BY_ZERO];
    along.into_iter().any(|flag| mode.has(flag) != mode.is_strict())
}

/// The flags of a normalized list.
pub fn flags(text: &str) -> SqlMode {
    let flag = |name: &str| MODES.iter().find(|(mode, _)| *mode == name).map_or(0, |(_, flag)| *flag);
    SqlMode(text.split(',').fold(0, |flags, name| flags | flag(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_normalized() {
        assert_eq!(
            normalize("strict_trans_tables, ANSI_QUOTES").expect("known"),
            "ANSI_QUOTES,STRICT_TRANS_TABLES"
        );
        assert!(normalize("ansi").expect("known").contains("PIPES_AS_CONCAT"));
        assert_eq!(normalize("x").expect_err("unknown").errno, 1231);
        assert_eq!(normalize("ALLOW_INVALID_DATES").expect_err("refused").errno, 1235);
        assert_eq!(flags(&normalize("").expect("empty")), SqlMode(0));
        // What MySQL 9.7 writes for its default.
        let default = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
                       NO_ENGINE_SUBSTITUTION";
        assert_eq!((mysql_bits(default), mysql_bits("")), (0x45a0_0020, 0));
        assert_eq!(of_bits(1_168_113_696).expect("known"), default);
        assert_eq!(
            (of_bits(0).expect("none"), of_bits(4).expect("known")),
            (String::new(), "ANSI_QUOTES".into())
        );
        assert!(of_bits(1 << 18).expect("known").contains("PIPES_AS_CONCAT"));
        assert_eq!(of_bits(1 << 36).expect_err("unknown").errno, 1231);
        assert_eq!(of_bits(-1).expect_err("unknown").errno, 1231);
    }
}
