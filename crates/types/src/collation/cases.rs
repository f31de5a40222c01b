//! The case of letters, by the rules of a collation.

use super::coding::Coding;
use super::names::CaseRules;
use super::tables::{tables, uca520};
use super::uca1400::uca1400;

/// The case of a character.
pub(super) fn case(rules: CaseRules, c: char, upper: bool) -> char {
    match (rules, c, upper) {
        (CaseRules::Turkish | CaseRules::Turkish1400, 'i', true) => 'İ',
        (CaseRules::Turkish | CaseRules::Turkish1400, 'I', false) => 'ı',
        (CaseRules::V520, ..) => {
            let changed = uca520().cases.map(c, upper);
            if changed == c { tables().cases_older.map(c, upper) } else { changed }
        }
        (CaseRules::V1400 | CaseRules::Turkish1400, ..) => {
            let changed = uca1400().cases.map(c, upper);
            if changed == c { tables().cases_0900.map(c, upper) } else { changed }
        }
        (CaseRules::Coded(charset), ..) => Coding::get(charset).case(c, upper),
        (CaseRules::V900, ..) => tables().cases_0900.map(c, upper),
        (CaseRules::Older | CaseRules::Turkish, ..) => tables().cases_older.map(c, upper),
    }
}

/// Whether letters of ASCII have their case as there. MySQL's tables of a few character sets have holes.
pub(super) fn keeps_ascii_case(rules: CaseRules) -> bool {
    match rules {
        CaseRules::Turkish | CaseRules::Turkish1400 => false,
        CaseRules::Coded(charset) => Coding::get(charset).keeps_ascii_case(),
        CaseRules::Older | CaseRules::V520 | CaseRules::V900 | CaseRules::V1400 => true,
    }
}
