use fibula_core::{Addr, Hop};
use fibula_simd::{Kernel, Simd};

use super::Tables;
use super::node::{LEAF, STRIDE, child, children_up_to, direct_index, leaf_from_one, slot};
use crate::common::{Answer, hop};

/// One lookup, as a [`Kernel`] so that counting ones is an instruction where the machine has it.
pub(super) struct One<'a, A> {
    pub(super) tables: &'a Tables,
    pub(super) addr: A,
}

impl<A: Addr> Kernel for One<'_, A> {
    type Output = Hop;

    /// The paper's lookup: the direct table, then down the nodes to a leaf.
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Hop {
        let Self { tables, addr } = self;
        let entry = tables.direct[direct_index(addr, 64 - tables.s)];
        if entry & LEAF != 0 {
            return hop(entry & !LEAF);
        }
        let mut node = &tables.nodes[entry as usize];
        let mut at = tables.s;
        loop {
            let slot = slot(addr, at);
            let (is_child, count) = children_up_to(node, slot);
            if !is_child {
                let Answer::Hop(hop) = tables.leaves.get(leaf_from_one(node, slot) as usize - 1, 0)
                else {
                    unreachable!("there are no blocks")
                };
                return hop;
            }
            node = &tables.nodes[child(node, count)];
            at += STRIDE;
        }
    }
}
