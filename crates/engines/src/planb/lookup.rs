use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::{Line, PlanB, TreeSearch};
use crate::common::{Answer, Long, SearchAddr, SearchKey, hop};

/// One address: down the tree, one node a level, each a count of keys below the address's.
#[inline(always)]
fn lookup<A: SearchAddr>(tree: &PlanB<A>, addr: A, rank: impl Fn(&Line<A>) -> u32) -> Hop {
    let lanes = A::Key::LANES;
    let (&leaves, inner) = tree.shape.bases().split_last().expect("there is always a leaf");
    // The place among the nodes of its level.
    let mut node = 0;
    for &base in inner {
        node = node * (lanes + 1) + rank(&tree.keys[base + node]) as usize;
    }
    let interval = node * lanes + rank(&tree.keys[leaves + node]) as usize;
    match (tree.values.get(interval, tree.long.as_ref().map_or(0, Long::blocks)), &tree.long) {
        (Answer::Block(block), Some(long)) => hop(long.find(block, addr.low())),
        (Answer::Hop(hop), _) => hop,
        (Answer::Block(_), None) => unreachable!("no blocks, no answer that names one"),
    }
}

/// Addresses one after the other, compiled for an instruction set.
pub(super) struct Each<'a, A: SearchAddr> {
    pub(super) tree: &'a PlanB<A>,
    pub(super) addrs: &'a [A],
    pub(super) hops: &'a mut [Hop],
}

impl<A: SearchAddr> Kernel for Each<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tree, addrs, hops } = self;
        for (&addr, hop) in addrs.iter().zip(hops) {
            let key = addr.high();
            *hop = match tree.search {
                TreeSearch::Compiled => lookup(tree, addr, |line| {
                    line.as_ref().iter().map(|&other| u64::from(other < key)).sum::<u64>() as u32
                }),
                TreeSearch::Batched | TreeSearch::Single => {
                    let key = key.splat(simd);
                    lookup(tree, addr, |line| A::Key::rank(simd, line, key))
                }
            };
        }
    }
}
