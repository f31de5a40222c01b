//! Lookups and claims of single keys.

use proptest::prelude::*;

use crate::index::{BTree, Lookup};

fn entry(key: &[u8], id: u64) -> Vec<u8> {
    [key, &id.to_be_bytes()].concat()
}

proptest! {
    /// Against a sorted list: keys of all lengths around the head's and the words' bounds, many in common.
    #[test]
    fn lookups_and_claims_agree_with_a_model(
        keys in prop::collection::vec((prop::collection::vec(0u8..3, 0..22), 0u64..3), 1..400),
    ) {
        let tree = BTree::new();
        let mut model = std::collections::BTreeSet::new();
        for (n, (key, id)) in keys.iter().enumerate() {
            // What an index has: no key is the beginning of another.
            let key = [key.iter().map(|b| b + 1).collect::<Vec<_>>(), vec![0]].concat();
            let id = *id << 40 | 7;
            let with_key = |model: &std::collections::BTreeSet<Vec<u8>>| {
                model.iter().filter(|e| e.starts_with(&key)).cloned().collect::<Vec<_>>()
            };
            let before = with_key(&model);
            match tree.lookup(&key) {
                Lookup::Nothing => prop_assert!(before.is_empty()),
                Lookup::One(tail) => prop_assert_eq!(&before, &vec![[&key[..], &tail[..]].concat()]),
                Lookup::Unclear => {}
            }
            let new = entry(&key, id);
            if n % 3 == 0 {
                prop_assert_eq!(tree.insert(&new), model.insert(new));
            } else {
                let added = tree.insert_alone(&new, key.len());
                prop_assert!(!added || before.is_empty());
                if added {
                    prop_assert!(model.insert(new));
                }
            }
        }
        prop_assert_eq!(tree.len(), model.len() as u64);
    }
}

#[test]
fn points_are_clear_in_a_large_tree() {
    let tree = BTree::new();
    let key = |n: u32| [&[0x80][..], &n.to_be_bytes(), &(n / 3).to_be_bytes()].concat();
    let mut added = 0;
    for n in 0..20_000u32 {
        let n = n.wrapping_mul(7_919) % 20_000;
        added += u32::from(tree.insert_alone(&entry(&key(n), u64::from(n)), 9));
    }
    assert!(added > 19_900, "{added}");
    let clear = (0..20_000).filter(|&n| tree.lookup(&key(n)) == Lookup::One(u64::from(n).to_be_bytes()));
    assert!(clear.count() > 19_800);
    assert_eq!(tree.lookup(&key(20_001)), Lookup::Nothing);
    assert!(!tree.insert_alone(&entry(&key(5), 99), 9), "another entry has the key");
}
