use fibula_core::{Addr, Hop};

use super::Hbs;
use super::tree::{LEFT, LEN, NONE, Node, PART, RANK, RIGHT};
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
    let (tree, heuristic) = (&engine.tree[..], engine.is_heuristic());
    let mut search = Search::new(tree, engine.shape[1]);
    while let Some(node) = search.next(tree, heuristic) {
        probe();
        match engine.slots.find(part(node), key(node, addr), &mut touch) {
            Some((code, note)) => search.found(node, code, note),
            None => search.missed(node),
        }
    }
    hop(search.best)
}

/// A search on its way down the tree.
#[derive(Clone, Copy)]
pub(super) struct Search {
    /// The code of the longest match so far.
    pub(super) best: u32,
    /// The node that comes next, or [`NONE`].
    at: u32,
    /// The ranks of the lengths that can have the answer: all, then those of the last entry's origins.
    low: u32,
    high: u32,
}

impl Search {
    #[inline(always)]
    pub(super) fn new(tree: &[Node], shortest: u32) -> Self {
        let at = if tree.is_empty() { NONE } else { 0 };
        Self { best: shortest, at, low: 0, high: u32::MAX }
    }

    /// The next node whose table is to be probed; `None` at the end of the search.
    #[inline(always)]
    pub(super) fn next<'t>(&mut self, tree: &'t [Node], heuristic: bool) -> Option<&'t Node> {
        if heuristic && self.low > self.high {
            return None;
        }
        while self.at != NONE {
            let node = &tree[self.at as usize];
            if heuristic && node[RANK] < self.low {
                self.at = node[RIGHT];
            } else if heuristic && node[RANK] > self.high {
                self.at = node[LEFT];
            } else {
                return Some(node);
            }
        }
        None
    }

    /// The node's table has the key.
    #[inline(always)]
    pub(super) fn found(&mut self, node: &Node, code: u32, note: u32) {
        self.best = code;
        (self.low, self.high) = origins(note);
        self.at = node[RIGHT];
    }

    /// The node's table does not have the key: nothing of this length or longer has.
    #[inline(always)]
    pub(super) fn missed(&mut self, node: &Node) {
        match node[RANK].checked_sub(1) {
            Some(below) => {
                self.high = self.high.min(below);
                self.at = node[LEFT];
            }
            None => self.at = NONE,
        }
    }
}

/// The node's hash table.
#[inline(always)]
pub(super) fn part(node: &Node) -> Part {
    Part { first: node[PART], mask: node[PART + 1] }
}

/// The bits of an address that the node's table has.
#[inline(always)]
pub(super) fn key<A: Addr>(node: &Node, addr: A) -> A {
    addr.and(A::netmask(node[LEN] as u8))
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
