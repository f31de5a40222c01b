//! The texts of a GROUP_CONCAT, up to `group_concat_max_len` bytes.
//!
//! Of a group, no more is kept than its result can show: texts behind `group_concat_max_len` are let go. With an order that is the
//! case for those that come after the ones that fill it, which are sorted when there are twice as many as that.

use std::collections::HashSet;
use std::sync::Arc;

use crate::collation::Charset;
use crate::expr::{EvalContext, Warning};

/// How values are put together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concat {
    pub separator: Arc<str>,
    pub distinct: bool,
    /// There is an ORDER BY.
    pub ordered: bool,
    /// Equal texts have equal keys of ORDER BY.
    pub order_follows_text: bool,
    /// In bytes of the character set.
    pub most: usize,
    pub charset: Charset,
}

impl Concat {
    fn len_of(&self, text: &str) -> usize {
        self.charset.encoded_len(text)
    }

    /// Where the first character begins that does not fit, if the text is longer than the limit.
    fn limit_in(&self, text: &str) -> Option<usize> {
        if self.charset.is_utf8() {
            return (text.len() > self.most).then(|| text.floor_char_boundary(self.most));
        }
        let mut taken = 0;
        let mut ends = text.char_indices().map(|(at, c)| {
            taken += self.charset.encoded_len(c.encode_utf8(&mut [0; 4]));
            (at, taken)
        });
        ends.find(|(_, taken)| *taken > self.most).map(|(at, _)| at)
    }

    /// As much of a text as can be shown, and some more if that is not all, so that it is cut.
    pub fn shown_part<'t>(&self, text: &'t str) -> &'t str {
        match self.limit_in(text) {
            Some(end) => &text[..text.ceil_char_boundary(end + 1)],
            None => text,
        }
    }

    /// Whether a text that is not shown keeps an equal one, with another key of ORDER BY, from being shown.
    fn remembers(&self) -> bool {
        self.distinct && !self.order_follows_text && self.ordered
    }
}

/// A key of ORDER BY, which is of one value for all texts if there is no order.
pub trait SortKey: Ord + Clone + Default {
    /// What it takes, in bytes.
    fn bytes(&self) -> usize;
}

impl SortKey for Box<[u8]> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

#[derive(Debug)]
pub struct Entry<K> {
    pub order: K,
    /// Equal for equal texts; empty without DISTINCT.
    pub key: Box<[u8]>,
    pub text: Box<str>,
}

/// With an order, entries are let go of when there are more than these.
const FEW_ENTRIES: usize = 64;
/// What an allocation takes besides its bytes, about.
const ALLOCATION: usize = 16;

#[derive(Debug)]
pub struct Texts<K> {
    entries: Vec<Entry<K>>,
    /// Their keys, with DISTINCT.
    seen: HashSet<Box<[u8]>>,
    seen_bytes: usize,
    /// Of all entries' parts.
    bytes: usize,
    /// Of the entries' texts and the separators between them.
    length: usize,
    /// The entries fill the result: those with this order or a later one, which come later, are not shown.
    bound: Option<K>,
}

impl<K> Default for Texts<K> {
    fn default() -> Self {
        Self { entries: Vec::new(), seen: HashSet::new(), seen_bytes: 0, bytes: 0, length: 0, bound: None }
    }
}

impl<K: SortKey> Texts<K> {
    pub fn add(&mut self, how: &Concat, entry: Entry<K>) {
        let is_behind = self.bound.as_ref().is_some_and(|bound| entry.order >= *bound);
        if is_behind && !how.remembers() {
            return;
        }
        if how.distinct {
            if !self.seen.insert(entry.key.clone()) {
                return;
            }
            self.seen_bytes += entry.key.len() + ALLOCATION;
        }
        if is_behind {
            return;
        }
        self.count(how, &entry);
        self.entries.push(entry);
        match how.ordered {
            false if self.length > how.most => self.bound = Some(K::default()),
            true if self.length / 2 > how.most && self.entries.len() > FEW_ENTRIES => self.let_go(how),
            _ => {}
        }
    }

    fn count(&mut self, how: &Concat, entry: &Entry<K>) {
        let parts = [entry.order.bytes(), entry.key.len(), entry.text.len()];
        self.bytes += parts.into_iter().sum::<usize>() + parts.len() * ALLOCATION;
        let separator = if self.entries.is_empty() { 0 } else { how.len_of(&how.separator) };
        self.length += how.len_of(&entry.text) + separator;
    }

    /// Sorts the entries and keeps the first, up to the one that is cut.
    fn let_go(&mut self, how: &Concat) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by(|a, b| a.order.cmp(&b.order));
        (self.bytes, self.length) = (0, 0);
        let remembers = how.remembers();
        for entry in entries {
            if self.length <= how.most {
                self.count(how, &entry);
                self.entries.push(entry);
            } else if !remembers && self.seen.remove(&entry.key) {
                self.seen_bytes -= entry.key.len() + ALLOCATION;
            }
        }
        self.bound = self.entries.last().map(|last| last.order.clone());
    }

    /// What is kept, in no order.
    pub fn entries(&self) -> &[Entry<K>] {
        &self.entries
    }

    /// The texts put together, cut to the limit with warning 1260; `None` without texts.
    pub fn concatenated(&mut self, how: &Concat, context: &EvalContext) -> Option<String> {
        if self.entries.is_empty() {
            return None;
        }
        if how.ordered {
            self.entries.sort_by(|a, b| a.order.cmp(&b.order));
        }
        let (mut result, mut length) = (String::new(), 0);
        for (at, entry) in self.entries.iter().enumerate() {
            if at > 0 {
                result.push_str(&how.separator);
                length += how.len_of(&how.separator);
            }
            result.push_str(&entry.text);
            length += how.len_of(&entry.text);
            if length > how.most {
                result.truncate(how.limit_in(&result).unwrap_or(result.len()));
                let message = format!("Row {} was cut by GROUP_CONCAT()", at + 1);
                context.push_warning(Warning { errno: 1260, message, note: false });
                break;
            }
        }
        Some(result)
    }

    /// What it takes beside itself, in bytes.
    pub fn bytes(&self) -> usize {
        let keys = self.seen.capacity() * (size_of::<Box<[u8]>>() + 1) + self.seen_bytes;
        self.bytes + self.entries.capacity() * size_of::<Entry<K>>() + keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_of_a_text_is_kept_than_is_shown() {
        let shown = |text: &'static str, most, charset| {
            let how = Concat {
                separator: ",".into(),
                distinct: false,
                ordered: false,
                order_follows_text: false,
                most,
                charset,
            };
            how.shown_part(text)
        };
        assert_eq!(shown("äöü", 2, Charset::Utf8mb4), "äö");
        assert_eq!(shown("äöü", 3, Charset::Utf8mb4), "äö");
        assert_eq!(shown("äöü", 6, Charset::Utf8mb4), "äöü");
        assert_eq!(shown("äöü", 1, Charset::Latin1), "äö");
        assert_eq!(shown("äöü", 7, Charset::Utf32), "äö");
        assert_eq!(shown("", usize::MAX, Charset::Utf8mb4), "");
    }
}
