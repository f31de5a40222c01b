//! Predicates of one column against constants, as scans push them down, and their form on words.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::i256;

use super::keys::KeySet;
use super::types::{Class, ColdType};
use super::value::ColdValue;
use super::words::SIGN;
use crate::error::{Result, StorageError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A condition on a column. NULLs satisfy `IsNull` and nothing else. Strings compare as bytes: whoever has
/// another collation must not push the predicate down. Decimal constants have the column's scale.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnPredicate {
    Compare(CompareOp, ColdValue<'static>),
    /// Both ends included.
    Between(ColdValue<'static>, ColdValue<'static>),
    In(Vec<ColdValue<'static>>),
    /// One of many integers.
    Keys(Arc<KeySet>),
    IsNull,
    IsNotNull,
}

impl CompareOp {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }
}

impl ColumnPredicate {
    /// Whether a value that is not NULL satisfies it. Values of another kind than the constants do not.
    pub fn matches(&self, value: &ColdValue<'_>) -> bool {
        match self {
            Self::Compare(op, c) => value.compare(c).is_some_and(|order| op.holds(order)),
            Self::Between(low, high) => {
                value.compare(low).is_some_and(Ordering::is_ge)
                    && value.compare(high).is_some_and(Ordering::is_le)
            }
            Self::In(list) => list.iter().any(|c| value.compare(c).is_some_and(Ordering::is_eq)),
            Self::Keys(set) => match value {
                ColdValue::Int(v) => set.contains_int(*v),
                ColdValue::UInt(v) => set.contains_uint(*v),
                _ => false,
            },
            Self::IsNull => false,
            Self::IsNotNull => true,
        }
    }

    /// Whether some value between the bounds may satisfy it. The bounds need not be values themselves:
    /// nothing is below the lower one; nothing is above the upper one, save that it may be the beginning
    /// of longer strings (`upper_is_prefix`).
    pub(crate) fn may_match(&self, low: &ColdValue<'_>, high: &ColdValue<'_>, upper_is_prefix: bool) -> bool {
        // Answers are "no" only where both bounds are comparable with the constant.
        let above_low = |c: &ColdValue<'_>| low.compare(c).is_none_or(Ordering::is_le);
        let below_high = |c: &ColdValue<'_>| {
            high.compare(c).is_none_or(Ordering::is_ge) || (upper_is_prefix && begins_with(c, high))
        };
        match self {
            Self::Compare(op, c) => match op {
                CompareOp::Eq => above_low(c) && below_high(c),
                CompareOp::Ne => {
                    let only = !upper_is_prefix
                        && low.compare(c) == Some(Ordering::Equal)
                        && high.compare(c) == Some(Ordering::Equal);
                    !only
                }
                CompareOp::Lt => low.compare(c).is_none_or(Ordering::is_lt),
                CompareOp::Le => above_low(c),
                CompareOp::Gt => {
                    high.compare(c).is_none_or(Ordering::is_gt) || (upper_is_prefix && begins_with(c, high))
                }
                CompareOp::Ge => below_high(c),
            },
            Self::Between(from, to) => above_low(to) && below_high(from),
            Self::In(list) => list.iter().any(|c| above_low(c) && below_high(c)),
            Self::Keys(set) => match (low, high) {
                (ColdValue::Int(low), ColdValue::Int(high)) => set.on_bounds(*low, *high) != Some(false),
                (ColdValue::UInt(low), ColdValue::UInt(high)) => {
                    let word = |value: u64| match set.fits(ColdType::UInt64) {
                        true => KeySet::word_of_u64(value),
                        false => i64::try_from(value).unwrap_or(i64::MAX),
                    };
                    set.on_bounds(word(*low), word(*high)) != Some(false)
                }
                _ => true,
            },
            Self::IsNull | Self::IsNotNull => true,
        }
    }

    fn constants(&self) -> Vec<&ColdValue<'static>> {
        match self {
            Self::Compare(_, c) => vec![c],
            Self::Between(a, b) => vec![a, b],
            Self::In(list) => list.iter().collect(),
            Self::Keys(_) | Self::IsNull | Self::IsNotNull => Vec::new(),
        }
    }

    /// Fails unless every constant is comparable with the column's values.
    pub(crate) fn check(&self, ty: ColdType) -> Result<()> {
        if matches!(self, Self::Keys(set) if ty.class() != Class::Word || !set.fits(ty)) {
            return Err(StorageError::Unsupported(format!("keys of another type for a {ty:?} column")));
        }
        let fits = |c: &ColdValue<'_>| match ty.class() {
            Class::Word | Class::Int128 | Class::Int256 => c.as_integer().is_some(),
            Class::F32 | Class::F64 => c.as_f64().is_some(),
            Class::Bytes => c.as_bytes().is_some(),
        };
        match self.constants().into_iter().find(|c| !fits(c)) {
            None => Ok(()),
            Some(c) => Err(StorageError::Unsupported(format!("comparison of a {ty:?} column with {c:?}"))),
        }
    }
}

fn begins_with(value: &ColdValue<'_>, prefix: &ColdValue<'_>) -> bool {
    match (value.as_bytes(), prefix.as_bytes()) {
        (Some(value), Some(prefix)) => value.starts_with(prefix),
        _ => false,
    }
}

/// A predicate on words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordTest {
    /// In `low..=high` (empty if `low > high`), or not.
    Range { low: i64, high: i64, negate: bool },
    /// One of these, ascending.
    Set(Box<[i64]>),
    /// One of many.
    Keys(Arc<KeySet>),
}

/// Where a constant lies relative to the words of a type.
enum Place {
    Below,
    At(i64),
    Above,
}

impl WordTest {
    pub const NEVER: Self = Self::Range { low: 0, high: -1, negate: false };
    pub const ALWAYS: Self = Self::Range { low: i64::MIN, high: i64::MAX, negate: false };

    /// The predicate on the words of a column whose constants are integers (`IS NULL` apart).
    pub fn of(pred: &ColumnPredicate, ty: ColdType) -> Result<Self> {
        Ok(match pred {
            ColumnPredicate::Compare(op, c) => Self::compare(*op, place(c, ty)?),
            ColumnPredicate::Between(from, to) => {
                match (
                    Self::compare(CompareOp::Ge, place(from, ty)?),
                    Self::compare(CompareOp::Le, place(to, ty)?),
                ) {
                    (Self::Range { low, high: top, .. }, Self::Range { low: bottom, high, .. }) => {
                        Self::Range { low: low.max(bottom), high: high.min(top), negate: false }
                    }
                    _ => unreachable!("orders are ranges"),
                }
            }
            ColumnPredicate::In(list) => {
                let mut words = Vec::with_capacity(list.len());
                for c in list {
                    if let Place::At(word) = place(c, ty)? {
                        words.push(word);
                    }
                }
                Self::set(words)
            }
            ColumnPredicate::Keys(set) => Self::Keys(set.clone()),
            ColumnPredicate::IsNull => Self::NEVER,
            ColumnPredicate::IsNotNull => Self::ALWAYS,
        })
    }

    fn compare(op: CompareOp, place: Place) -> Self {
        let range = |low, high| Self::Range { low, high, negate: false };
        match (op, place) {
            (CompareOp::Eq, Place::At(w)) => range(w, w),
            (CompareOp::Ne, Place::At(w)) => Self::Range { low: w, high: w, negate: true },
            (CompareOp::Lt, Place::At(w)) => {
                w.checked_sub(1).map_or(Self::NEVER, |high| range(i64::MIN, high))
            }
            (CompareOp::Le, Place::At(w)) => range(i64::MIN, w),
            (CompareOp::Gt, Place::At(w)) => w.checked_add(1).map_or(Self::NEVER, |low| range(low, i64::MAX)),
            (CompareOp::Ge, Place::At(w)) => range(w, i64::MAX),
            (CompareOp::Ne, _)
            | (CompareOp::Lt | CompareOp::Le, Place::Above)
            | (CompareOp::Gt | CompareOp::Ge, Place::Below) => Self::ALWAYS,
            (CompareOp::Eq, _)
            | (CompareOp::Lt | CompareOp::Le, Place::Below)
            | (CompareOp::Gt | CompareOp::Ge, Place::Above) => Self::NEVER,
        }
    }

    /// One of some words; a range if they are consecutive.
    pub fn set(mut words: Vec<i64>) -> Self {
        words.sort_unstable();
        words.dedup();
        match (words.first(), words.last()) {
            (Some(&low), Some(&high)) if high.wrapping_sub(low) as u64 == words.len() as u64 - 1 => {
                Self::Range { low, high, negate: false }
            }
            (None, _) | (_, None) => Self::NEVER,
            _ => Self::Set(words.into()),
        }
    }

    #[inline(always)]
    pub fn holds(&self, word: i64) -> bool {
        match self {
            Self::Range { low, high, negate } => (*low <= word && word <= *high) != *negate,
            Self::Set(words) => words.binary_search(&word).is_ok(),
            Self::Keys(set) => set.contains(word),
        }
    }

    /// The answer for all words between the bounds, if it is one answer.
    pub fn on_bounds(&self, min: i64, max: i64) -> Option<bool> {
        match self {
            Self::Range { low, high, negate } => {
                if low > high || max < *low || *high < min {
                    Some(*negate)
                } else if *low <= min && max <= *high {
                    Some(!*negate)
                } else {
                    None
                }
            }
            Self::Set(words) => {
                let from = words.partition_point(|&w| w < min);
                match words.get(from) {
                    Some(&w) if w <= max => (min == max).then_some(true),
                    _ => Some(false),
                }
            }
            Self::Keys(set) => set.on_bounds(min, max),
        }
    }
}

/// The word of an integer constant.
fn place(c: &ColdValue<'_>, ty: ColdType) -> Result<Place> {
    let value = c
        .as_integer()
        .ok_or_else(|| StorageError::Unsupported(format!("comparison of a {ty:?} column with {c:?}")))?;
    let shift = if ty == ColdType::UInt64 { i256::from_i128(i128::from(SIGN)) } else { i256::ZERO };
    let word = value.wrapping_sub(shift);
    Ok(match word.to_i128() {
        // A wrapped-around difference can only come from the far negative end.
        Some(w) if w < i128::from(i64::MIN) => Place::Below,
        Some(w) => i64::try_from(w).map_or(Place::Above, Place::At),
        None if value.is_negative() => Place::Below,
        None => Place::Above,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_outside_the_type_decide_everything() {
        let test = |op, c| WordTest::of(&ColumnPredicate::Compare(op, c), ColdType::UInt64).unwrap();
        assert_eq!(test(CompareOp::Lt, ColdValue::Int(0)), WordTest::NEVER);
        assert_eq!(test(CompareOp::Gt, ColdValue::Int(-1)), WordTest::ALWAYS);
        assert_eq!(test(CompareOp::Le, ColdValue::Int128(1 << 64)), WordTest::ALWAYS);
        assert_eq!(test(CompareOp::Eq, ColdValue::Int256(i256::MIN)), WordTest::NEVER);
        assert_eq!(test(CompareOp::Ge, ColdValue::Int256(i256::MIN)), WordTest::ALWAYS);
        assert!(test(CompareOp::Eq, ColdValue::UInt(7)).holds((7 ^ SIGN) as i64));
    }

    #[test]
    fn sets_become_ranges_where_they_are_consecutive() {
        assert_eq!(WordTest::set(vec![3, 1, 2, 2]), WordTest::Range { low: 1, high: 3, negate: false });
        assert_eq!(WordTest::set(vec![]), WordTest::NEVER);
        let set = WordTest::set(vec![9, 1]);
        assert_eq!(set.on_bounds(2, 8), Some(false));
        assert_eq!(set.on_bounds(9, 9), Some(true));
        assert_eq!(set.on_bounds(0, 5), None);
    }

    #[test]
    fn truncated_upper_bounds_admit_what_begins_with_them() {
        let may = |op, c: &str| {
            ColumnPredicate::Compare(op, c.into()).may_match(&"abc".into(), &"mno".into(), true)
        };
        assert!(may(CompareOp::Eq, "mnopq") && may(CompareOp::Gt, "mnozzz") && may(CompareOp::Ge, "mno"));
        assert!(!may(CompareOp::Eq, "mnp") && !may(CompareOp::Lt, "abc") && may(CompareOp::Ne, "abc"));
    }
}
