use std::marker::PhantomData;

use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::{BASE, LcTrie, NONE, Node, PREFIXES, base};
use fibula_engines::common::table;

/// Stored tables, checked whole in one pass over each.
pub(super) fn load<A: Addr, N: Node>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<LcTrie<A, N>, LoadError> {
    let trie: Table<N> = table(tables, N::TRIE)?;
    let words: Table<u32> = table(tables, BASE)?;
    let prefixes: Table<[u32; 3]> = table(tables, PREFIXES)?;
    if !words.len().is_multiple_of(base::width::<A>()) {
        return Err(LoadError::new(BASE, "is not made of whole entries"));
    }
    let count = words.len() / base::width::<A>();
    let bits = u32::from(A::BITS);
    let there = |around: u32, places: usize| around == NONE || (around as usize) < places;
    let known = |code: u32| (1..=hop_count).contains(&code);
    for entry in (0..count).map(|i| base::read::<A>(&words, i)) {
        if entry.len > bits || !there(entry.around, prefixes.len()) || !known(entry.code) {
            return Err(LoadError::new(BASE, "has a length, a route or a hop that is not there"));
        }
    }
    for (place, &[len, around, code]) in prefixes.iter().enumerate() {
        // Covering routes precede a route, so the search for a match ends.
        if len > bits || !there(around, place) || !known(code) {
            return Err(LoadError::new(PREFIXES, "has a length, a route or a hop out of range"));
        }
    }
    check_trie(&trie, count, bits)?;
    Ok(LcTrie { trie, base: words, prefixes, family: PhantomData })
}

/// Checks that every path ends at an entry, within the bits of an address.
fn check_trie<N: Node>(trie: &[N], entries: usize, bits: u32) -> Result<(), LoadError> {
    let error = |reason| Err(LoadError::new(N::TRIE, reason));
    if trie.is_empty() {
        return error("has no root");
    }
    // The bits that the longest path to each node has used. Parents precede their children, so the number of a
    // node is final before the node is checked.
    let mut taken = vec![0u32; trie.len()];
    for (number, node) in trie.iter().enumerate() {
        let (branch, skip, address) = node.parts();
        if branch == 0 {
            // A skip in a leaf would be harmless, but builds never write one. The root of an empty table names no
            // entry.
            if skip != 0 || address >= entries && entries > 0 {
                return error("a leaf names an entry that is not there");
            }
            continue;
        }
        let at = taken[number] + skip + branch;
        let children = address..address + (1usize << branch);
        if at > bits || address <= number || children.end > trie.len() {
            return error("children are not where they can be");
        }
        for child in &mut taken[children] {
            *child = at.max(*child);
        }
    }
    Ok(())
}
