use fibula_core::{Addr, Hop};

use super::{BsdRadix, Entry, LEAF, NONE, leaf};
use fibula_engines::common::hop;

/// Descends by single bits, then goes up by masks; calls `touch` for each access to the tables.
#[inline(always)]
pub(super) fn lookup<A: Addr>(engine: &BsdRadix<A>, addr: A, mut touch: impl FnMut()) -> Hop {
    let BsdRadix { nodes, leaves, entries, .. } = engine;
    let mut at = 0;
    while at & LEAF == 0 {
        let [bit, left, right, ..] = nodes[at as usize];
        touch();
        at = if addr.bit(bit as u8) { right } else { left };
    }
    let (key, mut parent, mut list) = leaf::read::<A>(leaves, (at & !LEAF) as usize);
    touch();
    // Routes of at most this many bits match.
    let common = u32::from(addr.common_prefix_len(key));
    loop {
        for (len, code) in chain(entries, list) {
            touch();
            if len <= common {
                return hop(code);
            }
        }
        if parent == NONE {
            return Hop::NONE;
        }
        [_, _, _, parent, list] = nodes[parent as usize];
        touch();
    }
}

/// The routes of a chain or list: lengths and codes.
#[inline(always)]
pub(super) fn chain(entries: &[Entry], mut at: u32) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        let [len, code, next] = *entries.get(at as usize)?;
        at = next;
        Some((len, code))
    })
}
