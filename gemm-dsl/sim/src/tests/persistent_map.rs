//! Persistent maps that share subtrees, compared with maps that do not.

use super::shadow::Dice;
use crate::race::persistent_map::{Join, PersistentMap};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Joins two values, which are bit sets, by union.
fn united(a: &u32, b: &u32) -> Join<u32> {
    match a | b {
        all if all == *a => Join::First,
        all if all == *b => Join::Second,
        all => Join::New(all),
    }
}

#[test]
fn a_map_holds_what_was_put_into_it() {
    for seed in 0..40 {
        let mut dice = Dice(seed);
        // Neighbouring keys, or keys that differ in any bit.
        let key = |dice: &mut Dice| match seed % 2 {
            0 => dice.below(40) as u32,
            _ => (dice.below(3) as u32) << dice.below(32) | dice.below(2) as u32,
        };
        let mut maps = vec![(PersistentMap::default(), BTreeMap::new())];
        for _ in 0..200 {
            let i = dice.below(maps.len());
            let (map, expected): &(PersistentMap<u32>, BTreeMap<u32, u32>) = &maps[i];
            let mut expected = expected.clone();
            let map = if dice.below(3) > 0 {
                let (key, value) = (key(&mut dice), 1 << dice.below(32));
                expected.insert(key, value);
                map.with(key, value)
            } else {
                let (other, more) = &maps[dice.below(maps.len())];
                for (&key, &value) in more {
                    *expected.entry(key).or_default() |= value;
                }
                let both = map.and(other, &united);
                // Joining a map that adds nothing returns the same map.
                assert!(both.and(other, &united).is(&both) && both.and(map, &united).is(&both));
                both
            };
            for &key in expected.keys() {
                for at in [key, key ^ 1, key.wrapping_add(1), key ^ 1 << 31] {
                    assert_eq!(map.get(at), expected.get(&at), "{seed}: {at}");
                }
            }
            maps.push((map, expected));
        }
    }
}

/// Each of many blocks knows the knowledge of the previous block, and itself.
#[test]
fn joins_skip_shared_nodes() {
    let mut known = vec![PersistentMap::default()];
    for block in 0..1000 {
        known.push(known[block].with(block as u32, 1));
    }
    let asked = Cell::new(0);
    let both = |a: &u32, b: &u32| {
        asked.set(asked.get() + 1);
        united(a, b)
    };
    for pair in known.windows(2) {
        assert!(pair[0].and(&pair[1], &both).is(&pair[1]));
        assert!(pair[1].and(&pair[0], &both).is(&pair[1]));
    }
    assert!(known[0].and(&known[1000], &both).is(&known[1000]));
    assert_eq!(asked.get(), 0);
    // Two maps with equal contents but no shared subtrees are compared entry by entry.
    let apart = (0..1000).rev().fold(PersistentMap::default(), |map, block| map.with(block, 1));
    assert!(apart.and(&known[1000], &both).is(&apart));
    assert_eq!(asked.get(), 1000);
}
