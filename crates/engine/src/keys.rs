//! Ranges of index keys.

use std::ops::Bound;

use avocet_storage::index::Direction;

/// A range of keys of one index, over encoded key bytes (see `types::key`). A bound may be a prefix of whole
/// keys; it then stands for all keys that begin with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Entries from here on; empty for all.
    lower: Vec<u8>,
    /// Entries before this; `None` for all.
    upper: Option<Vec<u8>>,
}

impl KeyRange {
    pub fn all() -> Self {
        Self::default()
    }

    /// All keys that begin with these bytes.
    pub fn prefix(key: &[u8]) -> Self {
        Self::new(Bound::Included(key), Bound::Included(key))
    }

    pub fn new(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Self {
        let mut range = Self::default();
        range.set(lower, upper);
        range
    }

    /// Like [`Self::new`], into the memory of this range.
    pub fn set(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        self.lower.clear();
        let mut upper_buf = self.upper.take().unwrap_or_default();
        upper_buf.clear();
        match lower {
            Bound::Unbounded => {}
            Bound::Included(key) => self.lower.extend_from_slice(key),
            Bound::Excluded(key) => {
                self.lower.extend_from_slice(key);
                if !increment(&mut self.lower) {
                    // Nothing is beyond the greatest bytes: an empty range.
                    self.upper = Some(upper_buf);
                    return;
                }
            }
        }
        self.upper = match upper {
            Bound::Unbounded => None,
            Bound::Excluded(key) => {
                upper_buf.extend_from_slice(key);
                Some(upper_buf)
            }
            Bound::Included(key) => {
                upper_buf.extend_from_slice(key);
                increment(&mut upper_buf).then_some(upper_buf)
            }
        };
    }

    /// Whether it begins at a key or before it.
    pub fn begins_by(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key
    }

    /// Makes ranges ascend and not overlap, holding what they held together; empty ones go.
    pub fn unite(ranges: &mut Vec<Self>) {
        ranges.retain(|range| range.upper.as_ref().is_none_or(|upper| range.lower < *upper));
        ranges.sort_unstable_by(|a, b| a.lower.cmp(&b.lower));
        ranges.dedup_by(|next, last| {
            let Some(end) = &mut last.upper else { return true };
            if next.lower > *end {
                return false;
            }
            match next.upper.take() {
                None => last.upper = None,
                Some(upper) if upper > *end => *end = upper,
                Some(_) => {}
            }
            true
        });
    }

    /// What two lists of ranges have in common, each of which ascends and does not overlap.
    pub fn intersection(a: &[Self], b: &[Self]) -> Vec<Self> {
        let ends_first = |x: &Self, y: &Self| match (&x.upper, &y.upper) {
            (Some(x), Some(y)) => x < y,
            (x, _) => x.is_some(),
        };
        let mut common = Vec::new();
        let (mut x, mut y) = (0, 0);
        while let (Some(left), Some(right)) = (a.get(x), b.get(y)) {
            let is_left_first = ends_first(left, right);
            let upper = if is_left_first { &left.upper } else { &right.upper };
            let lower = left.lower.as_slice().max(&right.lower);
            if upper.as_deref().is_none_or(|upper| lower < upper) {
                common.push(Self { lower: lower.to_vec(), upper: upper.clone() });
            }
            if is_left_first { x += 1 } else { y += 1 }
        }
        common
    }

    /// What is left of the range from the entries of `key` on.
    pub fn rest_from(&self, key: &[u8], direction: Direction) -> Self {
        let of_key = Self::prefix(key);
        match direction {
            Direction::Ascending => Self { lower: of_key.lower, upper: self.upper.clone() },
            Direction::Descending => {
                Self { lower: self.lower.clone(), upper: of_key.upper.or_else(|| self.upper.clone()) }
            }
        }
    }

    /// Whether an index entry is in the range.
    pub(crate) fn contains(&self, entry: &[u8]) -> bool {
        *entry >= self.lower[..] && self.upper.as_deref().is_none_or(|upper| entry < upper)
    }

    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let lower = if self.lower.is_empty() { Bound::Unbounded } else { Bound::Included(&self.lower[..]) };
        let upper = self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (lower, upper)
    }
}

/// The least bytes that are greater than everything that begins with these; false if there are none.
fn increment(bytes: &mut Vec<u8>) -> bool {
    while let Some(last) = bytes.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return true;
        }
        bytes.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_prefixes() {
        let range = KeyRange::prefix(&[1, 0xff]);
        assert_eq!(range.bounds(), (Bound::Included(&[1, 0xff][..]), Bound::Excluded(&[2][..])));
        let range = KeyRange::new(Bound::Excluded(&[3]), Bound::Unbounded);
        assert_eq!(range.bounds(), (Bound::Included(&[4][..]), Bound::Unbounded));
        let range = KeyRange::new(Bound::Included(&[3]), Bound::Included(&[0xff]));
        assert_eq!(range.bounds(), (Bound::Included(&[3][..]), Bound::Unbounded));
        let range = KeyRange::new(Bound::Excluded(&[0xff]), Bound::Unbounded);
        assert_eq!(range.bounds().1, Bound::Excluded(&[][..]));
    }

    #[test]
    fn united_ranges_ascend_and_do_not_overlap() {
        let range = |lower: &[u8], upper: Option<&[u8]>| KeyRange {
            lower: lower.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
        };
        let mut ranges = vec![
            range(b"m", Some(b"p")),
            range(b"x", Some(b"b")),
            range(b"a", Some(b"c")),
            range(b"b", Some(b"bz")),
            range(b"p", Some(b"q")),
            range(b"y", None),
            range(b"z", Some(b"zz")),
        ];
        KeyRange::unite(&mut ranges);
        assert_eq!(ranges, [range(b"a", Some(b"c")), range(b"m", Some(b"q")), range(b"y", None)]);
        let others = [range(b"b", Some(b"n")), range(b"o", Some(b"o")), range(b"p", None)];
        let common =
            [range(b"b", Some(b"c")), range(b"m", Some(b"n")), range(b"p", Some(b"q")), range(b"y", None)];
        assert_eq!(KeyRange::intersection(&ranges, &others), common);
        assert_eq!(KeyRange::intersection(&others, &ranges), common);
    }
}
