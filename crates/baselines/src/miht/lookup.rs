//! One lookup: the tree, a trie, and if need be the trie of the keyless routes.

use fibula_core::Hop;

use super::trie::{TrieAddr, hop, len, matches};
use super::{Miht, Tries};

pub(super) fn lookup<A: TrieAddr>(miht: &Miht<A>, addr: A) -> Hop {
    let trie = miht.index.find(addr.key(miht.k));
    let keyed = longest_match(&miht.tries, trie, miht.k as u8, addr);
    // All keyless prefixes are shorter than all others.
    if keyed.is_none() { longest_match(&miht.tries, miht.keyless, 0, addr) } else { keyed }
}

/// The trie whose root (0: none) is at this level.
fn longest_match<A: TrieAddr>(tries: &Tries<A>, root: u32, level: u8, addr: A) -> Hop {
    let (mut best, mut at, mut level) = (Hop::NONE, root, level);
    while at != 0 {
        let node = &tries.nodes[at as usize];
        if matches(node, addr) {
            best = hop(A::info(node));
            // A longest prefix of its subtrie; one that must stay has longer ones below.
            if len(A::info(node)) > level {
                return best;
            }
        }
        at = A::children(node)[addr.side(level)];
        level += 1;
    }
    best
}
