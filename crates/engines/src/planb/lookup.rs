use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::PlanB;
use crate::common::{Answer, Long, SearchAddr, SearchKey, hop};

/// One address: down the tree, one node a level, each a count of keys below the address's.
pub(super) struct One<'a, A: SearchAddr> {
    pub(super) tree: &'a PlanB<A>,
    pub(super) addr: A,
}

impl<A: SearchAddr> Kernel for One<'_, A> {
    type Output = Hop;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Hop {
        let Self { tree, addr } = self;
        let lanes = A::Key::LANES;
        let key = addr.high().splat(simd);
        let (&leaves, inner) = tree.shape.bases().split_last().expect("there is always a leaf");
        // The place among the nodes of its level.
        let mut node = 0;
        for &base in inner {
            node = node * (lanes + 1) + A::Key::rank(simd, &tree.keys[base + node], key) as usize;
        }
        let interval = node * lanes + A::Key::rank(simd, &tree.keys[leaves + node], key) as usize;
        match (tree.values.get(interval, tree.long.as_ref().map_or(0, Long::blocks)), &tree.long) {
            (Answer::Block(block), Some(long)) => hop(long.find(block, addr.low())),
            (Answer::Hop(hop), _) => hop,
            (Answer::Block(_), None) => unreachable!("no blocks, no answer that names one"),
        }
    }
}
