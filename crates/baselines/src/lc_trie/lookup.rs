use fibula_core::{Addr, Hop};

use super::{LcTrie, NONE, Node, base};
use crate::common::bits;
use fibula_engines::common::hop;

/// The paper's search; `touch` is called for each access to the tables.
#[inline(always)]
pub(super) fn lookup<A: Addr, N: Node>(
    engine: &LcTrie<A, N>,
    addr: A,
    mut touch: impl FnMut(),
) -> Hop {
    let LcTrie { trie, base, prefixes, .. } = engine;
    if base.is_empty() {
        return Hop::NONE;
    }
    let (mut branch, skip, mut address) = trie[0].parts();
    let mut at = skip;
    touch();
    while branch != 0 {
        let node = trie[address + bits(addr, at, branch)];
        touch();
        at += branch;
        let skip;
        (branch, skip, address) = node.parts();
        at += skip;
    }
    let entry = base::read::<A>(base, address);
    touch();
    // The bits in which the entry's address is the looked-up one.
    let common = u32::from(addr.common_prefix_len(entry.key));
    if common >= entry.len {
        return hop(entry.code);
    }
    let mut around = entry.around;
    while around != NONE {
        let [len, next, code] = prefixes[around as usize];
        touch();
        if common >= len {
            return hop(code);
        }
        around = next;
    }
    Hop::NONE
}
