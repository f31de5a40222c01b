//! The member lists of ENUM and SET.
//!
//! `SqlType` is `Copy`, and types are compared and hashed wherever plans are. So a type of members is a handle of one word to
//! a list that is kept once, whoever has it: equal lists are the same list.
//!
//! Lists are never given back, and bounded instead: a statement that would make the distinct lists of a process exceed
//! [`MAX_BYTES`] is refused. See `docs/decisions/0051-members-are-interned-numbers.md`.
//!
//! Invariants:
//! 1. Two lists with equal names and collations have one address.
//! 2. Names are distinct under the list's collation, and end with no space.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::sql_type::Collation;

/// What all lists of a process may take.
pub const MAX_BYTES: usize = 64 << 20;
/// Members of an ENUM: its numbers have two bytes.
pub const MAX_ENUM: usize = 65_535;
/// Members of a SET: one for each bit.
pub const MAX_SET: usize = 64;
/// An index that no ENUM column holds, for a text that is no member.
pub const NO_MEMBER: u64 = u64::MAX;

/// A list of members, and the collation in which they are looked up.
#[derive(Clone, Copy)]
pub struct Members(&'static List);

struct List {
    collation: Collation,
    names: Box<[Box<str>]>,
    /// The position of a name by its sort key.
    by_key: HashMap<Box<[u8]>, u16>,
    /// Characters of the longest name, and of all.
    longest: u32,
    total: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersError {
    /// The first of two that are equal under the collation.
    Duplicate(String),
    TooMany,
    /// There is no room for another list in this process.
    NoRoom,
}

/// The lists of the process, by the hash of their content.
struct Interned {
    lists: HashMap<u64, Vec<&'static List>>,
    bytes: usize,
}

static INTERNED: Mutex<Option<Interned>> = Mutex::new(None);

impl Members {
    /// The list of these names, without the spaces that they end with.
    pub fn new(names: Vec<String>, collation: Collation) -> Result<Self, MembersError> {
        Self::bounded(names, collation, MAX_BYTES)
    }

    /// As [`Self::new`], for what is stored already: it has its place whatever there is.
    pub(crate) fn of_stored(names: Vec<String>, collation: Collation) -> Result<Self, MembersError> {
        Self::bounded(names, collation, usize::MAX)
    }

    fn bounded(names: Vec<String>, collation: Collation, most: usize) -> Result<Self, MembersError> {
        if names.len() > MAX_ENUM {
            return Err(MembersError::TooMany);
        }
        let mut by_key = HashMap::with_capacity(names.len());
        let mut bytes = size_of::<List>();
        let (mut longest, mut total) = (0, 0);
        let names: Box<[Box<str>]> =
            names.into_iter().map(|name| name.trim_end_matches(' ').into()).collect();
        for (at, name) in names.iter().enumerate() {
            let mut key = Vec::new();
            collation.sort_key(name, &mut key);
            bytes += 2 * size_of::<Box<[u8]>>() + size_of::<u64>() + name.len() + key.len();
            if let Some(first) = by_key.insert(key.into_boxed_slice(), at as u16) {
                return Err(MembersError::Duplicate(names[usize::from(first)].to_string()));
            }
            let chars = name.chars().count() as u32;
            longest = longest.max(chars);
            total += chars;
        }
        let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
        let interned = interned.get_or_insert_with(|| Interned { lists: HashMap::new(), bytes: 0 });
        let mut hasher = DefaultHasher::new();
        (collation.0, &names).hash(&mut hasher);
        let alike = interned.lists.entry(hasher.finish()).or_default();
        if let Some(known) = alike.iter().find(|known| known.collation == collation && known.names == names) {
            return Ok(Self(known));
        }
        if interned.bytes.saturating_add(bytes) > most {
            return Err(MembersError::NoRoom);
        }
        interned.bytes += bytes;
        let list: &'static List = Box::leak(Box::new(List { collation, names, by_key, longest, total }));
        alike.push(list);
        Ok(Self(list))
    }

    /// The same names under another collation.
    pub fn with_collation(self, collation: Collation) -> Result<Self, MembersError> {
        Self::new(self.0.names.iter().map(|name| name.to_string()).collect(), collation)
    }

    pub const fn collation(self) -> Collation {
        self.0.collation
    }

    pub const fn names(self) -> &'static [Box<str>] {
        &self.0.names
    }

    /// How many there are.
    pub const fn count(self) -> usize {
        self.0.names.len()
    }

    /// Characters of the longest name.
    pub const fn longest(self) -> u32 {
        self.0.longest
    }

    /// Characters of all names with commas between them.
    pub const fn joined_len(self) -> u32 {
        self.0.total + (self.0.names.len() as u32).saturating_sub(1)
    }

    /// The name with an ENUM's number; 0 and what is none is the empty string.
    pub fn name(self, number: u64) -> &'static str {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.0.names.get(at)).map_or("", |name| name)
    }

    /// The names of a SET's bits, with commas between them.
    pub fn joined(self, bits: u64) -> Cow<'static, str> {
        match bits.count_ones() {
            0 => Cow::Borrowed(""),
            1 => Cow::Borrowed(self.name(u64::from(bits.trailing_zeros()) + 1)),
            _ => {
                let names = self.0.names.iter().enumerate();
                let names: Vec<&str> =
                    names.filter(|(at, _)| bits >> at & 1 == 1).map(|(_, name)| &**name).collect();
                Cow::Owned(names.join(","))
            }
        }
    }

    /// All bits that a SET can have.
    pub const fn mask(self) -> u64 {
        match self.count() {
            0 => 0,
            count if count >= MAX_SET => u64::MAX,
            count => (1 << count) - 1,
        }
    }

    /// The number of a name under the list's collation, from 1. Spaces at the end do not count.
    pub fn number(self, text: &str) -> Option<u64> {
        self.find(text.trim_end_matches(' '))
    }

    /// The number of exactly this name.
    fn find(self, text: &str) -> Option<u64> {
        // Short lists are mostly asked for what they have, letter by letter.
        const FEW: usize = 8;
        let exact =
            if self.count() <= FEW { self.0.names.iter().position(|name| **name == *text) } else { None };
        let at = match exact {
            Some(at) => at,
            None => {
                let mut key = Vec::with_capacity(text.len() + 2);
                self.0.collation.sort_key(text, &mut key);
                usize::from(*self.0.by_key.get(&key[..])?)
            }
        };
        Some(at as u64 + 1)
    }

    /// The bits of a text of names with commas between them, and whether all of it is names.
    pub fn bits(self, text: &str) -> (u64, bool) {
        let text = text.trim_end_matches(' ');
        if text.is_empty() {
            return (0, true);
        }
        let numbers = text.split(',').map(|name| self.find(name));
        numbers.fold((0, true), |(bits, all), number| match number {
            Some(number) => (bits | 1 << (number - 1), all),
            None => (bits, false),
        })
    }

    /// The number that a text compares equal with in an ENUM column: [`NO_MEMBER`] if with none. The empty string equals the
    /// error value.
    pub fn number_equal_to(self, text: &str) -> u64 {
        let trimmed = if self.0.collation.is_padded() { text.trim_end_matches(' ') } else { text };
        match self.find(trimmed) {
            Some(number) => number,
            None if self.0.collation.equal(trimmed, "") => 0,
            None => NO_MEMBER,
        }
    }

    /// The bits that a text compares equal with in a SET column: those of names that stand in it in the list's order. The
    /// second is false if there are none: all 64 bits are a value too.
    pub fn bits_equal_to(self, text: &str) -> (u64, bool) {
        let trimmed = if self.0.collation.is_padded() { text.trim_end_matches(' ') } else { text };
        let (bits, _) = self.bits(trimmed);
        (bits, self.0.collation.equal(&self.joined(bits), trimmed))
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Members {}

impl Hash for Members {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// `'a','b'`, as a definition has them.
impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            write!(f, "{separator}'{}'", name.replace('\\', "\\\\").replace('\'', "''"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&str]) -> Members {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Members::new(names, Collation::DEFAULT).expect("distinct names")
    }

    #[test]
    fn equal_lists_are_one() {
        let list = members(&["a", "b "]);
        assert_eq!(list, members(&["a", "b"]));
        assert_ne!(list, members(&["b", "a"]));
        assert_ne!(list, list.with_collation(Collation::UTF8MB4_BIN).expect("distinct names"));
        assert_eq!(list.to_string(), "'a','b'");
    }

    #[test]
    fn names_are_found_under_the_collation() {
        let list = members(&["red", "Ä", "it's"]);
        assert_eq!(list.number("RED  "), Some(1));
        assert_eq!(list.number("a"), Some(2));
        assert_eq!((list.number(""), list.number("re")), (None, None));
        assert_eq!((list.name(3), list.name(0), list.name(4)), ("it's", "", ""));
        assert_eq!((list.number_equal_to(""), list.number_equal_to("x")), (0, NO_MEMBER));
        // No PAD: a space at the end counts where texts are compared.
        assert_eq!(list.number_equal_to("red "), NO_MEMBER);
        let many: Vec<String> = (0..500).map(|n| format!("m{n}")).collect();
        let many = Members::new(many, Collation::DEFAULT).expect("distinct names");
        assert_eq!((many.number("M499"), many.number("m500")), (Some(500), None));
    }

    #[test]
    fn sets_are_bits() {
        let list = members(&["x", "y", "z"]);
        assert_eq!((list.mask(), list.joined_len()), (7, 5));
        assert_eq!(list.bits("z,X,x"), (5, true));
        assert_eq!(list.bits("x,q"), (1, false));
        assert_eq!(list.bits("x,"), (1, false));
        assert_eq!(list.joined(5), "x,z");
        assert_eq!(list.bits_equal_to("X,z"), (5, true));
        assert!(!list.bits_equal_to("z,x").1 && !list.bits_equal_to("q").1);
        assert_eq!(list.bits_equal_to(""), (0, true));
        let all: Vec<String> = (0..64).map(|n| format!("m{n}")).collect();
        let all = Members::new(all, Collation::DEFAULT).expect("distinct names");
        assert_eq!((all.mask(), all.bits("m63").0), (u64::MAX, 1 << 63));
    }

    #[test]
    fn duplicates_and_lists_without_room_are_refused() {
        let names = || vec!["a".to_owned(), "A".to_owned()];
        let duplicate = Members::new(names(), Collation::DEFAULT);
        assert_eq!(duplicate, Err(MembersError::Duplicate("a".to_owned())));
        assert!(Members::new(names(), Collation::UTF8MB4_BIN).is_ok());
        let unheard = || vec!["of no other test".to_owned()];
        assert_eq!(Members::bounded(unheard(), Collation::DEFAULT, 1), Err(MembersError::NoRoom));
        assert!(Members::of_stored(unheard(), Collation::DEFAULT).is_ok());
        assert!(Members::bounded(unheard(), Collation::DEFAULT, 1).is_ok(), "it is there now");
    }
}
