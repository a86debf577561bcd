use fibula_core::{Addr, Hop};

use super::Hbs;
use super::tree::{LEFT, LEN, NONE, PART, RANK, RIGHT};
use crate::common::Part;
use fibula_engines::common::hop;

/// The search; `probe` is called for each table that is probed, `touch` for each slot that is read.
#[inline(always)]
pub(super) fn lookup<A: Addr>(
    engine: &Hbs<A>,
    addr: A,
    mut probe: impl FnMut(),
    mut touch: impl FnMut(),
) -> Hop {
    let (tree, heuristic) = (&engine.tree, engine.is_heuristic());
    let mut best = engine.shape[1];
    // The ranks of the lengths that can have the answer: all, then those of the last entry's origins.
    let (mut low, mut high) = (0, u32::MAX);
    let mut at = if tree.is_empty() { NONE } else { 0 };
    while at != NONE {
        let node = tree[at as usize];
        let rank = node[RANK];
        if heuristic {
            if rank < low {
                at = node[RIGHT];
                continue;
            }
            if rank > high {
                at = node[LEFT];
                continue;
            }
        }
        let key = addr.and(A::netmask(node[LEN] as u8));
        probe();
        let part = Part { first: node[PART], mask: node[PART + 1] };
        match engine.slots.find(part, key, &mut touch) {
            Some((code, note)) => {
                best = code;
                (low, high) = origins(note);
                at = node[RIGHT];
            }
            None => {
                let Some(below) = rank.checked_sub(1) else { break };
                high = high.min(below);
                at = node[LEFT];
            }
        }
        if heuristic && low > high {
            break;
        }
    }
    hop(best)
}

/// The shortest and the longest length of an entry's origins, as ranks; without origins the first is the
/// larger.
#[inline(always)]
pub(super) fn origins(note: u32) -> (u32, u32) {
    (note & 0xff, note >> 8 & 0xff)
}

/// The note of an entry without origins.
pub(super) const NO_ORIGINS: u32 = 1;

/// The note of an entry with these origins and one more.
pub(super) fn with_origin(note: u32, rank: u32) -> u32 {
    let (low, high) = origins(note);
    if low > high { rank | rank << 8 } else { low.min(rank) | high.max(rank) << 8 }
}
