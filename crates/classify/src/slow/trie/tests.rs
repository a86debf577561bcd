//! The tries against trying all prefixes.

use super::*;

/// All prefixes of up to 6 bits come and go in an order that looks random: each value's prefixes are those that are
/// there, the bits show it, and one less does not.
#[test]
fn walks_find_what_is_there() {
    let mut trie = Trie::<u64>::new(64, false);
    let mut there: Vec<(u64, u8, u8)> = Vec::new();
    let mut state = 1u64;
    for step in 0..2000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let len = (state >> 60) as u8 % 6 + 1;
        let bits = (state << 9).first(len);
        if (step / 200) % 2 == 0 || there.is_empty() {
            let group = (state >> 20) as u8 % 3;
            trie.insert(bits, len, group);
            there.push((bits, len, group));
        } else {
            let (bits, len, group) = there.swap_remove((state >> 33) as usize % there.len());
            trie.remove(bits, len, group);
        }
        if step % 150 == 0 {
            trie.pack(64);
        }
        if step % 3 == 0 {
            (0..64).for_each(|value| check(&trie, &there, value << 58));
        }
    }
    for (bits, len, group) in there.drain(..) {
        trie.remove(bits, len, group);
    }
    assert!(trie.more.is_empty(), "counts are left over");
    assert_eq!(trie.nodes.len() - trie.free.len(), 1, "nodes are left over");
    assert_eq!(walk(&trie, 7), (0, vec![]));
}

/// What shows it, and the lengths with their groups.
fn walk<K: Bits + Default>(trie: &Trie<K>, value: K) -> (u8, Vec<(u8, u64)>) {
    // Among others, which go other ways.
    let (values, mut shown) = ([K::default(), value, value], [0; 3]);
    let mut lens = [Vec::new(), Vec::new(), Vec::new()];
    trie.walk(&values, &mut shown, |number, len, groups| {
        if groups != 0 && lens[number].last() != Some(&(len, groups)) {
            lens[number].push((len, groups));
        }
    });
    let [_, lens, again] = lens;
    assert_eq!((lens.as_slice(), shown[1]), (again.as_slice(), shown[2]));
    (shown[1], lens)
}

fn check(trie: &Trie<u64>, there: &[(u64, u8, u8)], value: u64) {
    let (shown, found) = walk(trie, value);
    for (len, groups) in &found {
        let same = there.iter().filter(|at| at.1 == *len && at.0 == value.first(*len));
        assert_eq!(*groups, same.fold(0, |all, at| all | 1 << at.2), "{value:b} {len}");
    }
    let lens: Vec<u8> = found.into_iter().map(|(len, _)| len).collect();
    let of = |value: u64| {
        let has = |&&(bits, len, _): &&(u64, u8, u8)| value.first(len) == bits;
        let mut lens: Vec<u8> = there.iter().filter(has).map(|(_, len, _)| *len).collect();
        lens.sort_unstable();
        lens.dedup();
        lens
    };
    assert_eq!(lens, of(value));
    let same = |shown: u8| {
        (0..64).map(|v| v << 58).filter(|v| v.first(shown) == value.first(shown)).all(|other| {
            let mut others = of(other);
            others.retain(|len| !lens.contains(len));
            others.is_empty()
        })
    };
    assert!(same(shown), "{value:b} {shown}");
    let deepest = lens.last().copied().unwrap_or(0);
    assert!(shown == deepest || !same(shown - 1), "{value:b} {shown} is more than it takes");
}

#[test]
fn ends_of_the_widest_fields() {
    let mut trie = Trie::<u128>::new(128, false);
    for value in [0, u128::MAX] {
        trie.insert(value, 128, 63);
        assert_eq!(walk(&trie, value), (128, vec![(128, 1 << 63)]));
    }
    assert_eq!(walk(&trie, u128::MAX - 1), (128, vec![]));
    trie.remove(u128::MAX, 128, 63);
    assert_eq!(walk(&trie, u128::MAX), (1, vec![]));
}
